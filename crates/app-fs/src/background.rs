//! A mount whose caller goes on: the program starts itself again and waits until that has mounted.
//!
//! ```text
//!   fs mount .. --------- starts ------> fs mount .. --foreground --let-go
//!        |                                    |  mounts, says so on the pipe, lets go of it
//!        +-- prints what was said, ends       +-- answers for the filesystem until it is unmounted
//! ```

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::Read;
use std::process::{Command, Stdio};

use levelhead_app::AppError;

/// What every sentence of this program on standard error begins with.
const NAME: &str = "levelhead: ";

/// In how many arenas the C library's allocator is to hold memory, and how it is told: with an arena for each thread a million new files left
/// 250 MiB in pieces.
const ARENAS: (&str, &str) = ("MALLOC_ARENA_MAX", "2");

/// The most sentences of a mount that fails: the last one is why, and those before it may be the disk's part in it.
const SENTENCES_MAX: usize = 3;

/// Exit code for a mistake of the caller's.
const USAGE: i32 = 2;

/// Starts this program with these arguments. Returns what it says before it lets go.
///
/// # Errors
///
/// What it says if it ends before that.
pub fn start_in_background(arguments: &[OsString]) -> Result<String, AppError> {
    let program = std::env::current_exe();
    let program =
        program.map_err(|error| AppError::trouble(format!("cannot find this program: {error}")))?;
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let (name, value) = ARENAS;
    if std::env::var_os(name).is_none() {
        command.env(name, value);
    }
    let cannot = |error| AppError::trouble(format!("cannot start this program again: {error}"));
    let mut child = command.spawn().map_err(cannot)?;
    let (mut said, mut blame) = (String::new(), String::new());
    // It says at most a sentence or two, which fit into the pipes.
    if let Some(out) = &mut child.stdout {
        out.read_to_string(&mut said).map_err(cannot)?;
    }
    // With --json it also says in an object why it has failed; what its caller hears is the sentence.
    if !said.is_empty() && !said.starts_with("{\"error\":") {
        return Ok(said);
    }
    if let Some(err) = &mut child.stderr {
        err.read_to_string(&mut blame).map_err(cannot)?;
    }
    let ended = child.wait().map_err(cannot)?;
    let sentence = last_sentences(&blame);
    Err(match (ended.code(), sentence.as_str()) {
        (Some(USAGE), _) => AppError::usage(sentence),
        (_, "") => AppError::trouble(format!("the program that mounts has ended: {ended}")),
        _ => AppError::trouble(sentence),
    })
}

/// What was said last, in one line.
fn last_sentences(said: &str) -> String {
    let lines: Vec<&str> =
        said.lines().map(|line| line.strip_prefix(NAME).unwrap_or(line)).collect();
    lines[lines.len().saturating_sub(SENTENCES_MAX)..].join("; ")
}

/// Lets go of the caller: of its terminal, its folder and its pipes.
///
/// # Errors
///
/// The machine does not allow it.
pub fn let_go() -> Result<(), AppError> {
    let all = || -> std::io::Result<()> {
        // The leader of a group cannot, but then no terminal is there to be left either.
        let _ = rustix::process::setsid();
        rustix::process::chdir("/")?;
        let null = OpenOptions::new().read(true).write(true).open("/dev/null")?;
        rustix::stdio::dup2_stdin(&null)?;
        rustix::stdio::dup2_stderr(&null)?;
        rustix::stdio::dup2_stdout(&null)?;
        Ok(())
    };
    all().map_err(|error| AppError::trouble(format!("cannot let go of the caller: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_of_a_mount_that_fails_are_one_line() {
        let said = "levelhead: one\nlevelhead: two\nlevelhead: three\nlevelhead: four\n";
        assert_eq!(last_sentences(said), "two; three; four");
        assert_eq!(last_sentences("levelhead: one\n"), "one");
        assert_eq!(last_sentences(""), "");
    }
}
