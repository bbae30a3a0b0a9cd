//! `fsck.levelhead`: `levelhead fs check` as fsck(8) calls it.
//!
//! Exit codes: 0 clean, 1 corrected, 4 something is left uncorrected, 8 it could not be checked, 16 wrong usage.

use std::process::ExitCode;

use clap::Parser;
use levelhead_app_fs::{CheckEnd, CheckFilesystem, CheckWhen, Depth, Repair, check_filesystem};

use levelhead_terminal::{Output, printer, progress};

const CORRECTED: u8 = 1;
const UNCORRECTED: u8 = 4;
const TROUBLE: u8 = 8;
const USAGE: u8 = 16;

/// Check a filesystem that is not mounted. Without -a, -p or -y nothing is written.
#[derive(Parser)]
#[command(name = "fsck.levelhead", version)]
struct Fsck {
    /// A file, a block device, or an emulated drive
    target: String,
    /// Repair problems that have one correct solution; skip a filesystem that was stopped cleanly, unless -f is given
    #[arg(short, conflicts_with_all = ["p", "y", "n"])]
    a: bool,
    /// The same as -a
    #[arg(short, conflicts_with_all = ["y", "n"])]
    p: bool,
    /// Repair problems that have one correct solution
    #[arg(short, conflicts_with = "n")]
    y: bool,
    /// Write nothing
    #[arg(short)]
    n: bool,
    /// Check even if it was stopped cleanly
    #[arg(short)]
    f: bool,
    /// Say more: means nothing here
    #[arg(short, hide = true)]
    v: bool,
    #[command(flatten)]
    output: Output,
}

/// Checks what the command line says.
pub(crate) fn run() -> ExitCode {
    let fsck = match Fsck::try_parse() {
        Ok(fsck) => fsck,
        Err(error) if !error.use_stderr() => error.exit(),
        Err(error) => {
            levelhead_terminal::refuse("fsck.levelhead", &error);
            return ExitCode::from(USAGE);
        }
    };
    let Fsck { target, a, p, y, f, output, .. } = fsck;
    let ask = CheckFilesystem {
        target,
        repair: if a || p || y { Repair::All } else { Repair::None },
        depth: Depth::Metadata,
        when: if (a || p) && !f { CheckWhen::NotInOrder } else { CheckWhen::Always },
    };
    let checked = check_filesystem(&ask, progress::bars(output).as_ref());
    let shown = checked.and_then(|checked| output.print(&checked).map(|()| checked.end()));
    match shown {
        Ok(CheckEnd::Clean) => ExitCode::SUCCESS,
        Ok(CheckEnd::Corrected) => ExitCode::from(CORRECTED),
        Ok(CheckEnd::Left) => ExitCode::from(UNCORRECTED),
        Err(error) => {
            printer::say_last(format!("fsck.levelhead: {error}"));
            ExitCode::from(TROUBLE)
        }
    }
}
