//! The parts that values of faults are written in: numbers, shares, sizes and times, with `/` between.

use std::fmt;
use std::str::FromStr;

use levelhead_units::{Bytes, Sectors};

/// A text that is no faults: the part that is wrong, and what was expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseFaultsError {
    message: String,
}

impl fmt::Display for ParseFaultsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ParseFaultsError {}

impl ParseFaultsError {
    pub(super) fn new(message: impl fmt::Display) -> Self {
        Self { message: message.to_string() }
    }
}

pub(super) type Parsed<T> = Result<T, ParseFaultsError>;

/// The parts of a value, as many as its form has.
pub(super) fn fields<'a, const N: usize>(text: &'a str, form: &str) -> Parsed<[&'a str; N]> {
    let parts: Vec<&str> = text.split('/').map(str::trim).collect();
    parts.try_into().map_err(|_| ParseFaultsError::new(format!("'{text}' is not {form}")))
}

/// A size, time or share.
pub(super) fn unit<T: FromStr<Err: fmt::Display>>(text: &str) -> Parsed<T> {
    text.parse().map_err(ParseFaultsError::new)
}

pub(super) fn number(text: &str) -> Parsed<f64> {
    text.parse().map_err(|_| ParseFaultsError::new(format!("'{text}' is not a number")))
}

pub(super) fn sectors(text: &str) -> Parsed<Sectors> {
    let size: Bytes = unit(text)?;
    let sectors = size.sectors_exact();
    let whole = || format!("a stretch of a disk is a whole number of 4KiB sectors, not {size}");
    sectors.ok_or_else(|| ParseFaultsError::new(whole()))
}
