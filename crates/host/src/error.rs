//! What is wrong with a request from outside, in one sentence.

use std::fmt;

/// Why something was not done, in one sentence that names the thing and the limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostError(String);

impl HostError {
    pub(crate) fn new(sentence: impl Into<String>) -> Self {
        Self(sentence.into())
    }
}

impl fmt::Display for HostError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for HostError {}

/// An error with this sentence.
pub(crate) fn fail<T>(sentence: impl Into<String>) -> Result<T, HostError> {
    Err(HostError::new(sentence))
}
