//! Options whose text is more than a number, and numbers with the limits in the message.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

use levelhead_drive::QUEUE_DEPTH_MAX;
use levelhead_units::DriveIdx;

/// `DRIVE=FACTOR`, as in `3=10`.
pub(crate) fn slow_drive(text: &str) -> Result<(u8, f64), String> {
    let parts = text.split_once('=').and_then(|(drive, factor)| {
        Some((drive.parse().ok()?, factor.parse::<f64>().ok().filter(|factor| factor.is_finite())?))
    });
    parts.ok_or_else(|| format!("'{text}': expected DRIVE=FACTOR, as in 3=10"))
}

/// A number above zero.
pub(crate) fn positive(text: &str) -> Result<f64, String> {
    let value = text.parse::<f64>().ok().filter(|value| value.is_finite() && *value > 0.0);
    value.ok_or_else(|| format!("'{text}' is not a number above zero"))
}

/// Any number, also one with a fraction.
pub(crate) fn number(text: &str) -> Result<f64, String> {
    text.parse().map_err(|_| format!("'{text}' is not a number"))
}

/// Commands inside a drive.
pub(crate) fn window(text: &str) -> Result<u32, String> {
    whole_in(text, 1..=QUEUE_DEPTH_MAX)
}

/// A drive's number in an array.
pub(crate) fn drive(text: &str) -> Result<u8, String> {
    whole_in(text, 0..=DriveIdx::MAX - 1)
}

/// Any seed.
pub(crate) fn seed(text: &str) -> Result<u64, String> {
    whole_in(text, 0..=u64::MAX)
}

fn whole_in<T>(text: &str, range: RangeInclusive<T>) -> Result<T, String>
where
    T: FromStr + PartialOrd + Display,
{
    let (first, last) = (range.start(), range.end());
    text.parse()
        .ok()
        .filter(|value| range.contains(value))
        .ok_or_else(|| format!("'{text}' is not a whole number from {first} to {last}"))
}
