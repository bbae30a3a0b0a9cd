//! How sizes, times and shares are written by people: `8KiB`, `20ms`, `2%`.

use std::fmt;
use std::str::FromStr;

use crate::{Bytes, Nanos, Ratio};

/// A text that is no size, time or share: what it said and what was expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseUnitError {
    text: String,
    expected: &'static str,
}

impl fmt::Display for ParseUnitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}' is not {}", self.text, self.expected)
    }
}

impl std::error::Error for ParseUnitError {}

const SIZE: &str =
    "a size: expected a number and B, KiB, MiB, GiB, TiB, kB, MB, GB or TB, as in 8KiB";
const TIME: &str = "a time: expected a number and ns, us, ms, s, m (or min) or h, as in 20ms";
const SHARE: &str = "a percentage from 0% to 100%: expected a number and %, as in 2%";

const SIZES: [(&str, u64); 13] = [
    ("", 1),
    ("B", 1),
    ("k", 1 << 10),
    ("KiB", 1 << 10),
    ("M", 1 << 20),
    ("MiB", 1 << 20),
    ("G", 1 << 30),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
];

const TIMES: [(&str, u64); 7] = [
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("min", 60_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

impl FromStr for Bytes {
    type Err = ParseUnitError;
    fn from_str(text: &str) -> Result<Self, ParseUnitError> {
        scaled(text, &SIZES).map(Self::new).ok_or_else(|| wrong(text, SIZE))
    }
}

impl FromStr for Nanos {
    type Err = ParseUnitError;
    fn from_str(text: &str) -> Result<Self, ParseUnitError> {
        scaled(text, &TIMES).map(Self::new).ok_or_else(|| wrong(text, TIME))
    }
}

impl FromStr for Ratio {
    type Err = ParseUnitError;
    fn from_str(text: &str) -> Result<Self, ParseUnitError> {
        let percent = text.trim().strip_suffix('%').and_then(|number| number.trim().parse().ok());
        percent
            .and_then(|percent: f64| Self::new(percent / 100.0))
            .ok_or_else(|| wrong(text, SHARE))
    }
}

fn wrong(text: &str, expected: &'static str) -> ParseUnitError {
    ParseUnitError { text: text.to_owned(), expected }
}

/// The number before the suffix times the suffix's factor, if that is a whole number.
fn scaled(text: &str, factors: &[(&str, u64)]) -> Option<u64> {
    let text = text.trim();
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, suffix) = text.split_at(split);
    let factor = factors.iter().find(|(name, _)| *name == suffix.trim())?.1;
    if let Ok(whole) = number.parse::<u64>() {
        return whole.checked_mul(factor);
    }
    let value = number.parse::<f64>().ok()? * factor as f64;
    (value < 9.0e15 && (value - value.round()).abs() < 1e-6).then_some(value.round() as u64)
}

/// `value` with three digits, or all digits of a larger whole part: for people, not for reading back.
pub fn short(value: f64) -> String {
    let digits = if value < 9.995 {
        format!("{value:.2}")
    } else if value < 99.95 {
        format!("{value:.1}")
    } else {
        return format!("{value:.0}");
    };
    digits.trim_end_matches('0').trim_end_matches('.').to_owned()
}

impl Bytes {
    /// The size with three digits, such as `15.1KiB`: for people, not for reading back.
    pub fn short(self) -> String {
        let (mut value, mut unit) = (self.get() as f64, "B");
        for larger in ["KiB", "MiB", "GiB", "TiB", "PiB"] {
            if value < 1024.0 {
                break;
            }
            (value, unit) = (value / 1024.0, larger);
        }
        format!("{}{unit}", short(value))
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mut value, mut unit) = (self.get(), "B");
        for larger in ["KiB", "MiB", "GiB", "TiB"] {
            if value == 0 || value % 1024 != 0 {
                break;
            }
            (value, unit) = (value / 1024, larger);
        }
        write!(f, "{value}{unit}")
    }
}

impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.get();
        let unit = TIMES[..4].iter().rev().find(|(_, factor)| nanos >= *factor);
        let (name, factor) = unit.unwrap_or(&TIMES[0]);
        write!(f, "{}{name}", nanos as f64 / *factor as f64)
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Twelve digits hide the rounding of the division by 100 and nothing else.
        let percent = (self.get() * 100.0 * 1e12).round() / 1e12;
        write!(f, "{percent}%")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_times_and_shares_read_as_people_write_them() {
        assert_eq!("8KiB".parse(), Ok(Bytes::new(8192)));
        assert_eq!("1.5MiB".parse(), Ok(Bytes::new(1_572_864)));
        assert_eq!("2TB".parse(), Ok(Bytes::new(2_000_000_000_000)));
        assert_eq!("4096".parse(), Ok(Bytes::new(4096)));
        assert_eq!("20ms".parse(), Ok(Nanos::from_millis(20)));
        assert_eq!("0.5us".parse(), Ok(Nanos::new(500)));
        assert_eq!("5m".parse(), Ok(Nanos::from_secs(300)));
        assert_eq!("2%".parse(), Ok(Ratio::new(0.02).unwrap()));
    }

    #[test]
    fn nonsense_is_refused_with_the_text_and_the_form() {
        for text in ["", "KiB", "8kib", "-1KiB", "0.3B", "1e3KiB", "99999999999TiB", "nanB"] {
            assert!(text.parse::<Bytes>().is_err(), "{text}");
        }
        for text in ["5", "20 x", "-2ms", "ms"] {
            assert!(text.parse::<Nanos>().is_err(), "{text}");
        }
        for text in ["2", "101%", "-1%", "nan%", "%"] {
            assert!(text.parse::<Ratio>().is_err(), "{text}");
        }
        let error = "101%".parse::<Ratio>().unwrap_err().to_string();
        assert!(error.starts_with("'101%' is not a percentage from 0% to 100%"), "{error}");
    }

    #[test]
    fn short_sizes_have_three_digits_and_a_unit() {
        let sizes = [0, 512, 8192, 15_418, 1 << 40, 1 << 50, (1 << 30) * 36];
        let texts = ["0B", "512B", "8KiB", "15.1KiB", "1TiB", "1PiB", "36GiB"];
        assert_eq!(sizes.map(|bytes| Bytes::new(bytes).short()), texts);
        assert_eq!([9.999, 99.99, 1234.5].map(short), ["10", "100", "1234"]);
    }

    #[test]
    fn what_is_printed_reads_back() {
        for size in [0, 1, 4096, 8192, 1 << 30, 12_345] {
            let size = Bytes::new(size);
            assert_eq!(size.to_string().parse(), Ok(size));
        }
        for time in [0, 17, 1_500, 20_000_000, 90_000_000_000] {
            let time = Nanos::new(time);
            assert_eq!(time.to_string().parse(), Ok(time));
        }
        for share in ["0%", "1.5%", "0.001%", "100%", "7%"] {
            assert_eq!(share.parse::<Ratio>().unwrap().to_string(), share);
        }
    }
}
