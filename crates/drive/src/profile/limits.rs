//! Limits that the figures of a profile are held to, and how a figure beyond one is refused.

use levelhead_units::Nanos;

use super::ProfileError;

pub(super) const CYLINDERS_MAX: u32 = 10_000_000;
pub(super) const TIME_MAX: Nanos = Nanos::from_secs(1);

pub(super) fn within(key: &str, value: u32, least: u32, most: u32) -> Result<(), ProfileError> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(ProfileError::new(key, format!("is {value}: expected {least} to {most}")))
}

pub(super) fn time(key: &str, text: &str) -> Result<Nanos, ProfileError> {
    time_up_to(TIME_MAX, key, text)
}

pub(super) fn time_up_to(most: Nanos, key: &str, text: &str) -> Result<Nanos, ProfileError> {
    let time: Nanos = text.parse().map_err(|error: levelhead_units::ParseUnitError| {
        ProfileError::new(key, error.to_string())
    })?;
    if time > most {
        return Err(ProfileError::new(key, format!("is {time}: expected at most {most}")));
    }
    Ok(time)
}
