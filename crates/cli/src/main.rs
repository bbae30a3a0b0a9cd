//! The levelhead program: parse what was typed, call one function of `app`, print what it shows.
//!
//! Exit codes: 0 good, 1 found trouble, 2 wrong usage, 3 what was looked at has failed. Results go to standard output, everything
//! else (progress, errors) to standard error. Called `fsck.levelhead`, it has the exit codes of fsck(8).

#![forbid(unsafe_code)]

mod commands;
mod faults;
mod journal;
mod manager;
mod names;
mod printer;
mod progress;
mod signals;
mod values;

use std::borrow::Cow;
use std::ops::ControlFlow;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue};
use clap::{Args, CommandFactory, Parser};
use levelhead_app::{AppError, Show};
use levelhead_units::{escaped, escaped_lines};

use crate::commands::Command;

/// Disk arrays that stay fast and intact while their disks misbehave.
#[derive(Parser)]
#[command(name = "levelhead", version, propagate_version = true)]
struct Cli {
    #[command(flatten)]
    output: Output,
    #[command(subcommand)]
    command: Command,
}

/// What every command understands.
#[derive(Args, Clone, Copy)]
struct Output {
    /// Print one JSON value on standard output and nothing else
    #[arg(long, global = true)]
    json: bool,
    /// Show no progress, and nothing of `fs mkfs`, `mount`, `umount` and `sync` that went well
    #[arg(long, global = true)]
    quiet: bool,
}

impl Output {
    /// Prints a result as it was asked for.
    fn print(self, result: &dyn Show) -> Result<(), AppError> {
        self.print_on(result).map(drop)
    }

    /// The same for one of many results: a break if standard output is not read any more.
    fn print_on(self, result: &dyn Show) -> Result<ControlFlow<()>, AppError> {
        self.print_after("", result)
    }

    /// Prints what a command has done, whose caller may only want to know that it has.
    fn print_done(self, result: &dyn Show) -> Result<(), AppError> {
        // Of what has failed the error says all there is to be said.
        let is_empty = !self.json && result.text().is_empty();
        if self.is_silent() || is_empty { Ok(()) } else { self.print(result) }
    }

    /// Whether nothing is said of what went well.
    fn is_silent(self) -> bool {
        self.quiet && !self.json
    }

    /// Prints what another run of this program has made of a result.
    fn print_text(self, text: &str) -> Result<(), AppError> {
        self.write("", text).map(drop)
    }

    /// The same with something before it.
    fn print_after(self, before: &str, result: &dyn Show) -> Result<ControlFlow<()>, AppError> {
        let text = if self.json { result.json() } else { result.text() };
        self.write(before, &text)
    }

    /// Writes a text; where people read it, without what would steer their terminal.
    fn write(self, before: &str, text: &str) -> Result<ControlFlow<()>, AppError> {
        use std::io::{ErrorKind, Write};
        let text = if self.json { Cow::Borrowed(text) } else { escaped_lines(text) };
        match writeln!(std::io::stdout(), "{before}{}", text.trim_end()) {
            Ok(()) => Ok(ControlFlow::Continue(())),
            // A reader that has gone away has seen enough.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(ControlFlow::Break(())),
            Err(error) => Err(AppError::trouble(format!("standard output: {error}"))),
        }
    }
}

fn main() -> ExitCode {
    if names::is_fsck(std::env::args_os().next().as_deref()) {
        return commands::fsck::run();
    }
    let cli = match Cli::try_parse_from(names::arguments(std::env::args_os())) {
        Ok(cli) => cli,
        Err(error) => return refuse(&error),
    };
    match commands::run(cli.command, cli.output, &mut Cli::command()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            printer::say_last(format!("levelhead: {error}"));
            match error {
                AppError::Trouble(_) => ExitCode::from(1),
                AppError::Usage(_) => ExitCode::from(2),
                AppError::Failed(_) => ExitCode::from(3),
            }
        }
    }
}

/// Says what is wrong with a command line: one sentence on the first line, and below it what may
/// help.
fn refuse(error: &clap::Error) -> ExitCode {
    // What an option's `help` has to say.
    if let Some(ContextValue::String(help)) = error.get(ContextKind::Custom) {
        use std::io::Write;
        // If it is not read, there is no one to tell.
        let _ = std::io::stdout().write_all(help.as_bytes());
        return ExitCode::SUCCESS;
    }
    let text = error.to_string();
    // Help and the version come this way too.
    let Some(text) = text.strip_prefix("error: ") else { error.exit() };
    let (sentence, rest) = text.split_once("\n\n").unwrap_or((text, ""));
    let sentence: Vec<&str> = sentence.lines().map(str::trim).collect();
    write_error(&format!(
        "levelhead: {}\n\n{}",
        escaped(&sentence.join(" ")),
        escaped_lines(rest.trim_end())
    ));
    ExitCode::from(2)
}

/// Whether standard output is a pipe that is not read any more.
fn is_unread() -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let stdout = std::io::stdout();
    let mut fds = [PollFd::new(&stdout, PollFlags::empty())];
    poll(&mut fds, Some(&Timespec::default())).is_ok() && fds[0].revents().contains(PollFlags::ERR)
}

/// Writes a sentence to standard error, as one line whatever is in it.
fn say(sentence: &str) {
    write_error(&escaped(sentence));
}

/// Writes to standard error, if it is still read.
fn write_error(text: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "{text}");
}
