//! Options whose text is more than a number, and numbers with the limits in the message.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

use levelhead_drive::QUEUE_DEPTH_MAX;
use levelhead_units::{DriveIdx, Nanos};

/// A number above zero.
pub fn positive(text: &str) -> Result<f64, String> {
    let value = text.parse::<f64>().ok().filter(|value| value.is_finite() && *value > 0.0);
    value.ok_or_else(|| format!("'{text}' is not a number above zero"))
}

/// Any number, also one with a fraction.
pub fn number(text: &str) -> Result<f64, String> {
    text.parse().map_err(|_| format!("'{text}' is not a number"))
}

/// Commands inside a drive.
pub fn window(text: &str) -> Result<u32, String> {
    whole_in(text, 1..=QUEUE_DEPTH_MAX)
}

/// A drive's number in an array.
pub fn drive(text: &str) -> Result<u8, String> {
    whole_in(text, 0..=DriveIdx::MAX - 1)
}

/// Any seed.
pub fn seed(text: &str) -> Result<u64, String> {
    whole_in(text, 0..=u64::MAX)
}

/// A probability, as a number or in percent.
pub fn probability(text: &str) -> Result<f64, String> {
    let (number, scale) = match text.trim().strip_suffix('%') {
        Some(number) => (number, 100.0),
        None => (text, 1.0),
    };
    let value = number.trim().parse::<f64>().ok().map(|value| value / scale);
    value
        .filter(|value| (0.0..=1.0).contains(value))
        .ok_or_else(|| format!("'{text}' is not a probability from 0 to 1, such as 1e-3 or 0.1%"))
}

/// A time of at most a minute: what a drive takes for one thing.
pub fn short_time(text: &str) -> Result<Nanos, String> {
    let time: Nanos = text.parse().map_err(|error| format!("{error}"))?;
    let is_short = time <= Nanos::from_secs(60);
    is_short.then_some(time).ok_or_else(|| format!("'{text}' is longer than a minute"))
}

/// Any whole number of its type that is not negative.
pub fn whole<T: FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("expected a whole number from 0, got '{text}'"))
}

/// The length of a run of the demo.
pub fn seconds(text: &str) -> Result<u64, String> {
    whole_in(text, 1..=3600)
}

/// A whole number within these limits.
pub fn whole_in<T>(text: &str, range: RangeInclusive<T>) -> Result<T, String>
where
    T: FromStr + PartialOrd + Display,
{
    let (first, last) = (range.start(), range.end());
    text.parse()
        .ok()
        .filter(|value| range.contains(value))
        .ok_or_else(|| format!("'{text}' is not a whole number from {first} to {last}"))
}
