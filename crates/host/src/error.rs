//! What is wrong with a request from outside, in one sentence.

use std::fmt;

/// Why something was not done, in one sentence that names the thing and the limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostError {
    sentence: String,
    has_array_failed: bool,
}

impl HostError {
    pub(crate) fn new(sentence: impl Into<String>) -> Self {
        Self { sentence: sentence.into(), has_array_failed: false }
    }

    /// More drives of an array are missing than it survives.
    pub(crate) fn array_failed(sentence: impl Into<String>) -> Self {
        Self { has_array_failed: true, ..Self::new(sentence) }
    }

    /// Whether the reason is that more drives of an array are missing than it survives.
    pub fn has_array_failed(&self) -> bool {
        self.has_array_failed
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
