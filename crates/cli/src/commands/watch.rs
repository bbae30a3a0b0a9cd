//! `levelhead watch`.

use std::io::{BufRead, Read};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use levelhead_app::AppError;
use levelhead_app_watch::{Ask, Host, Plan, Said, default_state, fix, once, watch, write_survey};
use levelhead_host::words;
use levelhead_metrics::Address;
use levelhead_units::Nanos;

use crate::values;
use levelhead_terminal::Output;
use levelhead_terminal::printer::{self, Printer};
use levelhead_terminal::signals::{stop_on_signals, stop_once_begun};

#[derive(Args)]
#[command(
    after_help = "It opens no block device: smartctl does, as a child, once a day, and does not wake sleeping \
        drives. It ends with 0, \
                  and with --once with 1 if a drive is slow or hangs. Without --once, --json prints one JSON object a line."
)]
pub(crate) struct Options {
    /// Judge once, by the saved state and a sample of some seconds, and end
    #[arg(long, conflicts_with_all = ["record", "metrics", "on_event", "every"])]
    once: bool,
    /// Correct limits of error recovery and kernel timers that do not suit the drives' redundancy; asks first
    #[arg(long, conflicts_with_all = ["once", "record", "metrics", "on_event", "every", "no_smart", "state"])]
    fix: bool,
    /// File with the groups of drives, one a line: a name, then the drives' names or WWIDs; found by itself if not given
    #[arg(long, value_name = "FILE")]
    groups: Option<PathBuf>,
    /// File of the state that is kept across restarts; by default watch.state in $STATE_DIRECTORY or /var/lib/levelhead
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    /// Append each window of each drive to this CSV, for `levelhead-lab fleet detect`
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Serve metrics over HTTP for Prometheus: PORT for this machine only, ADDRESS:PORT,
    /// or [ADDRESS]:PORT
    #[arg(long, value_name = "ADDRESS")]
    metrics: Option<Address>,
    /// A program to run, without a shell, for each change of a verdict; it gets one line of JSON on standard input, and
    /// LEVELHEAD_EVENT, _SEVERITY, _AT, _SENTENCE, _GROUP, _DRIVE, _DEVICE, _STATE and _BEFORE in its environment
    #[arg(long, value_name = "CMD")]
    on_event: Option<PathBuf>,
    /// Time between two samples, 1s to 30s
    #[arg(long, value_name = "TIME", default_value = "15s", value_parser = values::sample_every)]
    every: Nanos,
    /// Do not query the drives' error recovery
    #[arg(long)]
    no_smart: bool,
    /// Folder with the host's sys, proc, dev and var
    #[arg(long, value_name = "FOLDER", default_value = "/")]
    root: PathBuf,
    /// Write what is below the root for the watch that has started this, and end
    #[arg(long, hide = true, exclusive = true, value_name = "ROOT")]
    survey: Option<PathBuf>,
}

pub(crate) fn run(options: Options, output: Output) -> Result<(), AppError> {
    if let Some(root) = options.survey {
        return write_survey(&root, &mut std::io::stdout());
    }
    let Options { once: is_once, fix: is_fix, state, record, metrics, on_event, every, .. } =
        options;
    if !options.root.is_dir() {
        let root = options.root.display();
        return Err(AppError::usage(format!("--root {root}: no such folder")));
    }
    let state = state.unwrap_or_else(|| default_state(&options.root));
    let host = Host {
        // This very program, also after another one has taken its place.
        surveyor: ["/proc/self/exe", "watch", "--survey"].map(PathBuf::from).into(),
        zpool: "zpool".into(),
        smartctl: (!options.no_smart).then(|| "smartctl".into()),
        root: options.root,
        groups: options.groups,
    };
    if is_fix {
        return run_fix(&host, output);
    }
    let stop = stop_on_signals()?;
    if is_once {
        let look = once(&host, &state, &stop)?;
        output.print(&look)?;
        return match look.trouble_count() {
            0 => Ok(()),
            trouble => {
                let all = look.drive_count();
                let (all, or) = match trouble {
                    1 => (words::counted(all, "drive"), "is slow or hangs"),
                    _ => (words::counted(all, "drive"), "are slow or hang"),
                };
                Err(AppError::trouble(format!("{trouble} of {all} {or}")))
            }
        };
    }
    let ask = Ask { host, state, every: every.into(), record, metrics, on_event };
    // Printed on threads of their own: what reads them may be slow, or read nothing at all.
    let out = Printer::start(move |said: Said| drop(output.print(&said)))?;
    let err = Printer::start(|line: String| levelhead_terminal::say(&line))?;
    let (to_out, to_err) = (out.lines(), err.lines());
    let watched = watch(&ask, &stop, &mut |said| {
        match said {
            Said::Note(sentence) if !output.json => {
                drop(to_err.send(format!("levelhead: {sentence}")));
            }
            said => drop(to_out.send(said)),
        }
        if levelhead_terminal::is_unread() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    });
    drop((to_out, to_err));
    let by = Instant::now() + printer::FAREWELL / 4;
    out.end(by);
    err.end(by);
    watched
}

fn run_fix(host: &Host, output: Output) -> Result<(), AppError> {
    if output.json {
        return Err(AppError::usage("--fix asks before it sets anything, and has no --json"));
    }
    // Until the answer is yes a signal ends it at once: at the prompt nothing else would hear of it.
    let (stop, begun) = stop_once_begun()?;
    let mut is_wanted = |plan: &Plan| {
        output.print(plan)?;
        if plan.is_empty() {
            return Ok(false);
        }
        levelhead_terminal::say("set these? yes or no:");
        let is_yes = answer()? == "yes";
        if is_yes {
            begun.note();
        }
        Ok(is_yes)
    };
    let fixed = fix(host, &stop, &mut is_wanted)?;
    let Some(fixed) = fixed else {
        levelhead_terminal::say("nothing was set");
        return Ok(());
    };
    output.print(&fixed)?;
    match fixed.failed_count() {
        0 => Ok(()),
        failed => {
            Err(AppError::trouble(format!("{} could not be set", words::counted(failed, "drive"))))
        }
    }
}

/// The longest answer, in bytes.
const ANSWER_MAX: u64 = 64;

/// A line of standard input.
fn answer() -> Result<String, AppError> {
    let mut line = String::new();
    let read = std::io::stdin().lock().take(ANSWER_MAX).read_line(&mut line);
    read.map_err(|error| AppError::trouble(format!("standard input: {error}")))?;
    Ok(line.trim().to_owned())
}
