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

/// Look whether everything on a disk that is not mounted belongs together. Without -a, -p or -y nothing is written.
#[derive(Parser)]
#[command(name = "fsck.levelhead", version)]
struct Fsck {
    /// A file, a block device, or an emulated drive
    target: String,
    /// Repair what has one right answer; what was stopped in order is not looked at without -f
    #[arg(short, conflicts_with_all = ["p", "y", "n"])]
    a: bool,
    /// The same
    #[arg(short, conflicts_with_all = ["y", "n"])]
    p: bool,
    /// Repair what has one right answer
    #[arg(short, conflicts_with = "n")]
    y: bool,
    /// Write nothing
    #[arg(short)]
    n: bool,
    /// Look at what was stopped in order, too
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
