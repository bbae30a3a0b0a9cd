//! Whether and when a drive reads back what it has written.

use std::fmt;
use std::str::FromStr;

use levelhead_units::{Bytes, Nanos};

/// The longest that a drive can be told to idle before it verifies.
const WAIT_MAX: Nanos = Nanos::from_secs(60);

/// The most memory that checksums may take.
const SUMS_MAX: Bytes = Bytes::new(1 << 30);

/// Whether and when a drive reads back what it has written, compares, and writes again what differs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verify {
    /// It never does.
    #[default]
    Off,
    /// Read after write: within the command, before the next one.
    Raw,
    /// Idle read after write, of `[IRAW08]`: when no command waits or is served.
    Idle(IdleVerify),
}

/// How a drive verifies its writes when it is idle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdleVerify {
    /// How long no command must have been there before the first verification.
    pub wait: Nanos,
    /// When the arm sets out for a verification.
    pub start: VerifyStart,
    /// Memory for checksums of writes whose bytes have made room. 0 keeps none.
    pub sums: Bytes,
}

impl IdleVerify {
    /// The paper's wait of 1 ms, and no checksums.
    pub const DEFAULT: Self =
        Self { wait: Nanos::from_millis(1), start: VerifyStart::Late, sums: Bytes::new(0) };

    /// Whether a drive can idle that long before it verifies.
    ///
    /// # Errors
    ///
    /// More than a minute.
    pub fn check_wait(wait: Nanos) -> Result<Nanos, String> {
        let long = || format!("a drive idles 0ns to {WAIT_MAX} before it verifies, not {wait}");
        if wait > WAIT_MAX { Err(long()) } else { Ok(wait) }
    }

    /// Whether checksums can take that much memory.
    ///
    /// # Errors
    ///
    /// More than a GiB.
    pub fn check_sums(sums: Bytes) -> Result<Bytes, String> {
        let much = || format!("a drive keeps at most {SUMS_MAX} of checksums, not {sums}");
        if sums > SUMS_MAX { Err(much()) } else { Ok(sums) }
    }
}

/// When the arm sets out for a verification. Both end at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VerifyStart {
    /// As soon as it has been chosen: the rotational latency is waited out on the track.
    AtOnce,
    /// As late as possible: a command that comes before holds nothing up.
    Late,
}

impl VerifyStart {
    const ALL: [(Self, &str); 2] = [(Self::AtOnce, "at-once"), (Self::Late, "late")];
}

impl FromStr for VerifyStart {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.iter().find(|(_, name)| *name == text);
        let wrong = || format!("'{text}' is not a verification start: expected at-once or late");
        found.map(|(start, _)| *start).ok_or_else(wrong)
    }
}

impl fmt::Display for VerifyStart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", Self::ALL.iter().find(|(start, _)| start == self).map_or("", |one| one.1))
    }
}

impl Verify {
    /// Idle verification as `[IRAW08]` has it.
    pub const IDLE: Self = Self::Idle(IdleVerify::DEFAULT);

    /// What is set so far with one key changed: `verify`, `idle-wait`, `verify-start` or `verify-sums`.
    ///
    /// # Errors
    ///
    /// A value that cannot be, or a key of idle verification where the drive does not verify when idle.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        if key == "verify" {
            *self = value.parse()?;
            return Ok(());
        }
        let Self::Idle(idle) = self else {
            return Err(format!("{key} needs verify=idle before it"));
        };
        match key {
            "idle-wait" => {
                idle.wait = IdleVerify::check_wait(value.parse().map_err(text_of)?)?;
            }
            "verify-start" => idle.start = value.parse()?,
            "verify-sums" => {
                idle.sums = IdleVerify::check_sums(value.parse().map_err(text_of)?)?;
            }
            _ => return Err(format!("no such key: expected {}", Self::KEYS)),
        }
        Ok(())
    }

    /// The keys of [`Verify::set`].
    pub const KEYS: &str = "verify, idle-wait, verify-start, verify-sums";
}

fn text_of(error: impl fmt::Display) -> String {
    error.to_string()
}

impl FromStr for Verify {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "off" => Ok(Self::Off),
            "raw" => Ok(Self::Raw),
            "idle" => Ok(Self::IDLE),
            _ => Err(format!(
                "'{text}' is not a mode of write verification: expected off, raw or idle"
            )),
        }
    }
}

impl fmt::Display for Verify {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => write!(f, "off"),
            Self::Raw => write!(f, "raw"),
            Self::Idle(_) => write!(f, "idle"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verification_has_names_and_keys() {
        for name in ["off", "raw", "idle"] {
            assert_eq!(name.parse::<Verify>().unwrap().to_string(), name);
        }
        let mut verify: Verify = "idle".parse().unwrap();
        for (key, value) in
            [("idle-wait", "5ms"), ("verify-start", "at-once"), ("verify-sums", "2MB")]
        {
            verify.set(key, value).unwrap();
        }
        let expected = IdleVerify {
            wait: Nanos::from_millis(5),
            start: VerifyStart::AtOnce,
            sums: Bytes::new(2_000_000),
        };
        assert_eq!(verify, Verify::Idle(expected));
    }

    #[test]
    fn what_cannot_be_is_refused_with_the_limit() {
        for (first, key, value, expected) in [
            (
                "idle",
                "verify",
                "on",
                "'on' is not a mode of write verification: expected off, raw or idle",
            ),
            ("raw", "idle-wait", "1ms", "idle-wait needs verify=idle before it"),
            ("idle", "idle-wait", "61s", "a drive idles 0ns to 60s before it verifies, not 61s"),
            (
                "idle",
                "verify-start",
                "soon",
                "'soon' is not a verification start: expected at-once or late",
            ),
            ("idle", "verify-sums", "2GiB", "a drive keeps at most 1GiB of checksums, not 2GiB"),
        ] {
            let mut verify: Verify = first.parse().unwrap();
            assert_eq!(verify.set(key, value).unwrap_err(), expected);
        }
    }
}
