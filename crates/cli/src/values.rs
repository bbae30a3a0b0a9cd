//! Options whose text is more than a number.

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
