//! Why a command did not do what was asked.

use std::fmt;

/// Why a command did not do what was asked, in one sentence.
#[derive(Debug)]
pub enum AppError {
    /// What was asked for cannot be: wrong input, nothing was changed.
    Usage(String),
    /// It was possible and did not work out, or what was looked at is not as it should be.
    Trouble(String),
    /// What was looked at has failed: data cannot be had.
    Failed(String),
}

impl AppError {
    /// What was asked for cannot be.
    pub fn usage(sentence: impl fmt::Display) -> Self {
        Self::Usage(sentence.to_string())
    }

    /// It was possible and did not work out.
    pub fn trouble(sentence: impl fmt::Display) -> Self {
        Self::Trouble(sentence.to_string())
    }
}

impl fmt::Display for AppError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(sentence) | Self::Trouble(sentence) | Self::Failed(sentence) => {
                f.write_str(sentence)
            }
        }
    }
}

impl std::error::Error for AppError {}
