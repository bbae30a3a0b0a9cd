//! Why a file was not read.

use std::fmt;
use std::path::{Path, PathBuf};

/// Why a file was not read, in one sentence that names the file, and the line where there is one.
#[derive(Debug)]
pub struct ReadError {
    path: PathBuf,
    line: Option<u64>,
    why: String,
}

impl ReadError {
    /// Of the file as a whole.
    pub(crate) fn of(path: &Path, why: impl fmt::Display) -> Self {
        Self { path: path.to_owned(), line: None, why: why.to_string() }
    }

    /// Of one line, the first of which is 1; of a table without lines, its row.
    pub(crate) fn at(path: &Path, line: u64, why: impl fmt::Display) -> Self {
        Self { path: path.to_owned(), line: Some(line), why: why.to_string() }
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        // What a library says may end with a stop or hold several lines.
        let why = self.why.trim().trim_end_matches('.').replace('\n', " ");
        match self.line {
            Some(line) => write!(out, "{}: line {line}: {why}", self.path.display()),
            None => write!(out, "{}: {why}", self.path.display()),
        }
    }
}

impl std::error::Error for ReadError {}
