//! What is wrong with a mount, in one sentence.

use std::fmt;

/// Why something cannot be mounted, in one sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FuseError(String);

impl FuseError {
    pub(crate) fn new(sentence: impl Into<String>) -> Self {
        Self(sentence.into())
    }
}

impl fmt::Display for FuseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for FuseError {}
