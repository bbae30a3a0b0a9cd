//! What is wrong with a request from outside, in one sentence.

use std::fmt;

/// Why something was not done, in one sentence that names the thing and the limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostError {
    sentence: String,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// More drives of an array are missing than it survives.
    ArrayFailed,
    /// A drive is there, and takes no writes.
    ReadOnly,
    Other,
}

impl HostError {
    pub(crate) fn new(sentence: impl Into<String>) -> Self {
        Self { sentence: sentence.into(), kind: Kind::Other }
    }

    /// More drives of an array are missing than it survives.
    pub(crate) fn array_failed(sentence: impl Into<String>) -> Self {
        Self { sentence: sentence.into(), kind: Kind::ArrayFailed }
    }

    /// Whether the reason is that more drives of an array are missing than it survives.
    pub fn has_array_failed(&self) -> bool {
        self.kind == Kind::ArrayFailed
    }

    /// A drive is there, and takes no writes.
    pub(crate) fn read_only(sentence: impl Into<String>) -> Self {
        Self { sentence: sentence.into(), kind: Kind::ReadOnly }
    }

    /// Whether a drive is there and takes no writes.
    pub(crate) fn is_read_only(&self) -> bool {
        self.kind == Kind::ReadOnly
    }
}

impl fmt::Display for HostError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)
    }
}

impl std::error::Error for HostError {}

/// An error with this sentence.
pub(crate) fn fail<T>(sentence: impl Into<String>) -> Result<T, HostError> {
    Err(HostError::new(sentence))
}
