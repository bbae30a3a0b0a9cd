//! A question that may never be answered, put by a child process.
//!
//! - CH1. A source has one child at most, also after a deadline: one that cannot be killed stands for its source.
//! - CH2. Nothing here waits: not for an answer, not for an end.
//! - CH3. An answer is held up to [`ANSWER_MAX`] bytes; a longer one is none.

use std::io::{ErrorKind, Read};
use std::process::{self, Command, Stdio};
use std::time::{Duration, Instant};

/// The longest answer, in bytes.
const ANSWER_MAX: usize = 4 << 20;

/// What is asked again and again.
#[derive(Debug, Default)]
pub struct Source {
    child: Option<Child>,
}

/// One question.
#[derive(Debug)]
pub struct Child {
    process: process::Child,
    answer: Vec<u8>,
    deadline: Instant,
    is_killed: bool,
}

/// What has become of a question.
#[derive(Debug, PartialEq, Eq)]
pub enum Look {
    /// None is open.
    Idle,
    /// It is not answered yet.
    Waiting,
    /// It was, all of it.
    Answered(String),
    /// It will not be.
    Failed {
        /// Why.
        why: String,
        /// What had come until then.
        part: String,
    },
}

impl Source {
    /// Puts a question, unless one is open (CH1).
    ///
    /// # Errors
    ///
    /// The program cannot be started.
    pub fn ask(&mut self, mut command: Command, patience: Duration) -> Result<(), String> {
        if self.child.is_some() {
            return Ok(());
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let name = command.get_program().to_string_lossy().into_owned();
        let process = command.spawn().map_err(|error| format!("{name}: {error}"))?;
        if let Some(out) = &process.stdout {
            rustix::io::ioctl_fionbio(out, true).map_err(|error| format!("{name}: {error}"))?;
        }
        let deadline = Instant::now() + patience;
        self.child = Some(Child { process, answer: Vec::new(), deadline, is_killed: false });
        Ok(())
    }

    /// Whether a question is open, or has not let go of its child.
    pub fn is_busy(&self) -> bool {
        self.child.is_some()
    }

    /// What has become of it. Returns at once (CH2); an end is told once.
    pub fn look(&mut self) -> Look {
        let Some(child) = &mut self.child else { return Look::Idle };
        let look = child.look();
        if child.has_ended() {
            self.child = None;
        }
        look
    }

    /// Whether its question was given up and the child has not ended.
    pub fn is_given_up(&self) -> bool {
        self.child.as_ref().is_some_and(|it| it.is_killed)
    }
}

impl Drop for Source {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            // It ends when the kernel lets it, and nothing waits for that.
            let _gone = child.process.kill();
        }
    }
}

impl Child {
    fn has_ended(&mut self) -> bool {
        !matches!(self.process.try_wait(), Ok(None))
    }

    fn look(&mut self) -> Look {
        if self.is_killed {
            return Look::Waiting;
        }
        let read = self.read();
        let has_ended = self.has_ended();
        // What it wrote before it ended may have come after the first read.
        let read = if has_ended { read.and_then(|()| self.read()) } else { read };
        let why = match read {
            Ok(()) if has_ended => return Look::Answered(self.text()),
            Ok(()) if Instant::now() < self.deadline => return Look::Waiting,
            Ok(()) => "it did not answer in time".to_owned(),
            Err(error) => error,
        };
        self.is_killed = true;
        let _gone = self.process.kill();
        Look::Failed { why, part: self.text() }
    }

    fn text(&mut self) -> String {
        String::from_utf8_lossy(&std::mem::take(&mut self.answer)).into_owned()
    }

    fn read(&mut self) -> Result<(), String> {
        let Some(out) = &mut self.process.stdout else { return Ok(()) };
        let mut buffer = [0; 16 << 10];
        loop {
            match out.read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(count) => self.answer.extend(&buffer[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.to_string()),
            }
            if self.answer.len() > ANSWER_MAX {
                return Err(format!("it answers with more than {ANSWER_MAX} bytes"));
            }
        }
    }
}
