//! Options whose text is more than a number, and numbers with the limits in the message.

use chrono::DateTime;
use levelhead_app_lab::replay::OUTSTANDING_MAX;
use levelhead_drive::{IdleVerify, Retention};
use levelhead_ldpc::Step;
use levelhead_planner::code::LENGTH_MAX;
use levelhead_planner::sequential::SECTORS_MAX;
use levelhead_planner::system::Capacities;
use levelhead_terminal::values::whole_in;
use levelhead_units::{Bytes, DriveIdx, Nanos, ParseUnitError};

/// `DRIVE=FACTOR`, as in `3=10`.
pub(crate) fn slow_drive(text: &str) -> Result<(u8, f64), String> {
    let parts = text.split_once('=').and_then(|(drive, factor)| {
        Some((drive.parse().ok()?, factor.parse::<f64>().ok().filter(|factor| factor.is_finite())?))
    });
    parts.ok_or_else(|| format!("'{text}': expected DRIVE=FACTOR, as in 3=10"))
}

/// Requests outstanding in a closed loop.
pub(crate) fn outstanding(text: &str) -> Result<usize, String> {
    whole_in(text, 1..=OUTSTANDING_MAX)
}

/// Steps of a list of operations on files that are under way.
pub(crate) fn steps(text: &str) -> Result<u32, String> {
    whole_in(text, 1..=1_024)
}

/// A date with its time of day, as RFC 3339 has it, a date alone (midnight, UTC), or seconds since 1970: seconds since 1970.
pub(crate) fn clock_time(text: &str) -> Result<i64, String> {
    let rfc3339 = |text: &str| DateTime::parse_from_rfc3339(text).map(|time| time.timestamp());
    let date = || rfc3339(text).or_else(|_| rfc3339(&format!("{text}T00:00:00Z"))).ok();
    text.parse().ok().or_else(date).ok_or_else(|| {
        format!("'{text}' is not a time: expected 2026-01-01T00:00:00Z or seconds since 1970")
    })
}

/// The time between two values of a query, in whole seconds: `5m`, or a number of seconds.
pub(crate) fn step(text: &str) -> Result<u32, String> {
    let given = text.parse::<Nanos>().ok().map(Nanos::get);
    let seconds = given.map_or_else(
        || text.parse().ok(),
        |nanos| (nanos % 1_000_000_000 == 0).then_some(nanos / 1_000_000_000),
    );
    let step = seconds.and_then(|seconds| u32::try_from(seconds).ok()).filter(|step| *step > 0);
    step.ok_or_else(|| {
        format!("'{text}' is not a step: expected 1 to {} whole seconds, as in 5m or 300", u32::MAX)
    })
}

/// Requests of a drive hour.
pub(crate) fn requests_min(text: &str) -> Result<i32, String> {
    whole_in(text, 0..=i32::MAX)
}

/// Failures that end a count.
pub(crate) fn failures(text: &str) -> Result<u64, String> {
    whole_in(text, 2..=1_000_000_000)
}

/// Sectors that end a count.
pub(crate) fn frames(text: &str) -> Result<u64, String> {
    whole_in(text, 1..=1_000_000_000_000)
}

/// Iterations of a decoding.
pub(crate) fn iterations(text: &str) -> Result<u32, String> {
    whole_in(text, 1..=1_000)
}

/// A step of a drive's retries: `revolutions=1,aim=-3%,averaged=1,iterations=50`.
pub(crate) fn retry_step(text: &str) -> Result<Step, String> {
    let mut step = Step::FIRST;
    let mut seen = Vec::new();
    for part in text.split(',') {
        let expected = || {
            format!(
                "'{part}': expected revolutions=N, aim=SHARE, averaged=N or iterations=N, as in aim=-3%"
            )
        };
        let (key, value) = part.split_once('=').ok_or_else(expected)?;
        if seen.contains(&key.trim()) {
            return Err(format!("'{}' is there twice", key.trim()));
        }
        seen.push(key.trim());
        let whole = || value.trim().parse::<u32>().map_err(|_| expected());
        match key.trim() {
            "revolutions" => step.revolutions = whole()?,
            "averaged" => step.averaged = whole()?,
            "iterations" => step.iterations = whole()?,
            "aim" => {
                let (number, scale) = match value.trim().strip_suffix('%') {
                    Some(number) => (number, 100.0),
                    None => (value, 1.0),
                };
                let number: f64 = number.trim().parse().map_err(|_| expected())?;
                step.aim = number / scale;
            }
            _ => return Err(expected()),
        }
    }
    Ok(step)
}

/// A percentile, as a share.
pub(crate) fn percentile(text: &str) -> Result<f64, String> {
    let value = text.trim().trim_end_matches('%').parse::<f64>().ok();
    value
        .filter(|value| (0.0..=99.999_999).contains(value))
        .map(|value| value / 100.0)
        .ok_or_else(|| format!("'{text}' is not a percentile from 0 to 99.999999"))
}

/// A factor that raises or leaves alone.
pub(crate) fn at_least_one(text: &str) -> Result<f64, String> {
    let value = text.parse::<f64>().ok().filter(|value| value.is_finite() && *value >= 1.0);
    value.ok_or_else(|| format!("'{text}' is not a number of at least 1"))
}

/// Symbols of a codeword.
pub(crate) fn symbols(text: &str) -> Result<u64, String> {
    whole_in(text, 1..=LENGTH_MAX)
}

/// Sectors of a read.
pub(crate) fn read_sectors(text: &str) -> Result<u64, String> {
    whole_in(text, 1..=SECTORS_MAX)
}

/// Requests in a queue.
pub(crate) fn depth(text: &str) -> Result<u64, String> {
    whole_in(text, 1..=256)
}

/// Sub-requests waiting at a drive.
pub(crate) fn queued(text: &str) -> Result<u64, String> {
    whole_in(text, 0..=10_000)
}

/// Drives of a group.
pub(crate) fn drives(text: &str) -> Result<u64, String> {
    whole_in(text, 1..=u64::from(DriveIdx::MAX))
}

/// Bytes a second, some of them.
pub(crate) fn rate(text: &str) -> Result<Bytes, String> {
    let rate: Bytes = text.parse().map_err(|error| format!("{error}"))?;
    let is_some = rate >= Bytes::new(1_000_000);
    is_some.then_some(rate).ok_or_else(|| format!("'{text}' is less than 1MB a second"))
}

/// Capacities of three kinds of file.
pub(crate) fn drive_memory(text: &str) -> Result<Bytes, String> {
    Retention::check_memory(text.parse().map_err(|error: ParseUnitError| error.to_string())?)
}

pub(crate) fn idle_wait(text: &str) -> Result<Nanos, String> {
    IdleVerify::check_wait(text.parse().map_err(|error: ParseUnitError| error.to_string())?)
}

pub(crate) fn sums(text: &str) -> Result<Bytes, String> {
    IdleVerify::check_sums(text.parse().map_err(|error: ParseUnitError| error.to_string())?)
}

pub(crate) fn capacities(text: &str) -> Result<Capacities, String> {
    let parts: Vec<f64> = text
        .split(':')
        .filter_map(|part| part.trim().parse().ok())
        .filter(|part: &f64| (0.0..=1e18).contains(part))
        .collect();
    match parts[..] {
        [sequential, random, mutable]
            if text.split(':').count() == 3 && sequential + random + mutable > 0.0 =>
        {
            Ok(Capacities { sequential, random, mutable })
        }
        _ => Err(format!("'{text}': expected three capacities A:B:M, as in 90:8:2")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_steps_are_read_as_people_write_them() {
        let midnight = Ok(1_767_225_600);
        for text in
            ["2026-01-01T00:00:00Z", "2026-01-01T01:00:00+01:00", "2026-01-01", "1767225600"]
        {
            assert_eq!(clock_time(text), midnight, "{text}");
        }
        for text in ["soon", "", "2026-13-01", "2026-01-01T25:00:00Z"] {
            assert!(clock_time(text).is_err(), "{text}");
        }
        for (text, seconds) in [("5m", 300), ("300", 300), ("300s", 300), ("1h", 3600)] {
            assert_eq!(step(text), Ok(seconds), "{text}");
        }
        for text in ["0", "0s", "20ms", "1500ms", "-5", "4294967296", "soon"] {
            assert!(step(text).is_err(), "{text}");
        }
    }
}
