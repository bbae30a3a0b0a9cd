//! Faults as people write them: `retry-rate=2%,rotations=geometric:3,stalls=10min/5s`.
//!
//! The names, the forms of the values and their examples stand in the table of the parent. What is left
//! out stays as it is in a drive in good order. Command lines, members of arrays and configuration files
//! all come here.

use std::fmt;
use std::str::FromStr;

use levelhead_units::{Instant, Nanos, Ratio};

use super::parts::{ParseFaultsError, Parsed, number, unit};
use super::{FaultKind, Faults, FaultsError};

impl From<FaultsError> for ParseFaultsError {
    fn from(error: FaultsError) -> Self {
        Self::new(error)
    }
}

/// The value of one kind.
pub(super) trait Value: Sized {
    /// The value that `text` writes.
    fn read(text: &str) -> Parsed<Self>;

    /// Its text, unless it is that of a drive in good order.
    fn shown(&self, good: &Self) -> Option<String>;
}

/// The figures of a kind that is switched on or off.
pub(super) trait Form: Sized {
    /// The figures that `text` writes.
    fn read(text: &str) -> Parsed<Self>;

    /// Their text.
    fn show(&self) -> String;
}

impl<T: Form> Value for Option<T> {
    fn read(text: &str) -> Parsed<Self> {
        T::read(text).map(Some)
    }

    fn shown(&self, _: &Self) -> Option<String> {
        self.as_ref().map(T::show)
    }
}

/// A share.
impl Value for Ratio {
    fn read(text: &str) -> Parsed<Self> {
        unit(text)
    }

    fn shown(&self, good: &Self) -> Option<String> {
        (self != good).then(|| self.to_string())
    }
}

/// A factor.
impl Value for f64 {
    fn read(text: &str) -> Parsed<Self> {
        number(text)
    }

    fn shown(&self, good: &Self) -> Option<String> {
        (self > good).then(|| self.to_string())
    }
}

/// A time since the beginning.
impl Form for Instant {
    fn read(text: &str) -> Parsed<Self> {
        unit(text).map(|time: Nanos| Self::ZERO + time)
    }

    fn show(&self) -> String {
        (*self - Self::ZERO).to_string()
    }
}

impl Faults {
    /// Changes one kind. An unknown name is refused; whether the kinds fit together is for
    /// [`Faults::check`] to say once all are there.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), ParseFaultsError> {
        match Self::kind(key) {
            Some(kind) => (kind.set)(self, value),
            None => Err(ParseFaultsError::new(format!("expected {}", Self::KEYS))),
        }
    }
}

/// Pairs of a name and a value, separated by commas; `none` and nothing at all are a drive in good
/// order. What comes out can be: it has been checked.
impl FromStr for Faults {
    type Err = ParseFaultsError;

    fn from_str(text: &str) -> Result<Self, ParseFaultsError> {
        Self::parse_by(text, &Self::set)
    }
}

/// What sets one kind to the value that a text gives it.
pub(super) type Set<'a> = dyn Fn(&mut Faults, &str, &str) -> Result<(), ParseFaultsError> + 'a;

impl Faults {
    /// The same, where values are not what this module makes of them.
    pub(super) fn parse_by(text: &str, set: &Set<'_>) -> Result<Self, ParseFaultsError> {
        let (mut faults, mut stated) = (Self::NONE, Vec::new());
        if text.trim() == "none" {
            return Ok(faults);
        }
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let Some((key, value)) = part.split_once('=') else {
                let keys = Self::KEYS;
                return Err(ParseFaultsError::new(format!(
                    "'{part}': expected KEY=VALUE with {keys}"
                )));
            };
            let (key, value) = (key.trim(), value.trim());
            set(&mut faults, key, value)
                .map_err(|error| ParseFaultsError::new(format!("'{part}': {error}")))?;
            stated.push(key);
        }
        faults.check_stated(&stated)?;
        Ok(faults)
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = |kind: &FaultKind| Some(format!("{}={}", kind.key, (kind.get)(self)?));
        let parts: Vec<String> = Self::KINDS.iter().filter_map(part).collect();
        if parts.is_empty() {
            return f.write_str("none");
        }
        f.write_str(&parts.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: &str = "retry-rate=2%,adjacency=2,zero-tails=0.1%/0.001%,\
                       bursts=10GiB/geometric:1MiB/50%,rotations=1:80%+30:20%,hard-rate=0.1%,slowdown=1.5,episodes=20s/300s/5,\
                       periodic=7200s/240s/5/600s,field=3600s/40%,stalls=600s/5s,lost-writes=0.1%,\
                       torn-writes=0.2%,misdirected-writes=0.3%,flips=0.4%,lying-flush=1%,\
                       death=30s";

    #[test]
    fn every_key_is_read_and_printed() {
        let faults: Faults = ALL.parse().unwrap();
        assert_eq!(faults.to_string(), ALL);
        let keys: Vec<&str> = ALL.split(',').map(|part| part.split_once('=').unwrap().0).collect();
        let kinds = Faults::KINDS.iter().map(|kind| kind.key);
        assert_eq!(kinds.clone().collect::<Vec<_>>().join(", "), Faults::KEYS);
        // A table takes the place of other kinds.
        assert_eq!(keys, kinds.filter(|key| *key != "ecc").collect::<Vec<_>>());
        let by_table = "ecc=wander-2,slowdown=1.5";
        assert_eq!(by_table.parse::<Faults>().unwrap().to_string(), by_table);
        assert_eq!("none".parse(), Ok(Faults::NONE));
        assert_eq!("".parse(), Ok(Faults::NONE));
        assert_eq!(Faults::NONE.to_string(), "none");
    }

    #[test]
    fn every_example_is_read_and_has_the_form_that_the_table_gives() {
        for kind in Faults::KINDS {
            let most = kind.form.split('/').count();
            for example in kind.examples {
                let mut faults = Faults::NONE;
                faults.set(kind.key, example).unwrap();
                let is_default = (kind.get)(&faults).is_none();
                assert!(!is_default || kind.key == "rotations", "{}={example}", kind.key);
                assert!(example.split('/').count() <= most, "{}={example}", kind.key);
            }
            assert!(kind.help().starts_with(char::is_uppercase), "{}", kind.help());
            assert!(!kind.help().contains("  "), "{}", kind.help());
        }
    }

    #[test]
    fn documentation_names_the_kinds_of_the_table_and_no_others() {
        let page = include_str!("../../../../docs/drive.md");
        let (_, rows) = page.split_once("| key | value | as in |\n|---|---|---|\n").unwrap();
        let rows: Vec<Vec<&str>> = rows
            .lines()
            .map_while(|line| line.strip_prefix('|'))
            .map(|line| line.split('|').map(str::trim).collect())
            .collect();
        let in_code = |cell: &'static str| cell.split('`').skip(1).step_by(2);
        let keys: Vec<&str> = rows.iter().flat_map(|cells| in_code(cells[0])).collect();
        assert_eq!(keys.join(", "), Faults::KEYS);
        for cells in rows {
            let examples: Vec<&str> = in_code(cells[2]).collect();
            for key in in_code(cells[0]) {
                assert_eq!(Faults::kind(key).unwrap().examples, examples, "{key}");
            }
        }
    }

    #[test]
    fn every_form_reads_back_as_it_is_printed() {
        for text in [
            "rotations=5",
            "rotations=uniform:1-7",
            "rotations=geometric:2.5",
            "bursts=1GiB/64KiB/5%",
            "bursts=1GiB/uniform:64KiB/5%",
            "periodic=100s/10s/3",
            "periodic=2h-3h/3min-6min/5/10s",
            "field=1h",
            "retry-rate=1%,zero-tails=0.002%/0.0000001%",
        ] {
            let faults: Faults = text.parse().unwrap();
            assert_ne!(faults, Faults::NONE, "{text}");
            assert_eq!(faults.to_string().parse(), Ok(faults), "{text}");
        }
    }

    #[test]
    fn nonsense_is_refused_with_the_part_that_is_wrong() {
        let keys = Faults::KEYS;
        for (text, expected) in [
            ("slow", format!("'slow': expected KEY=VALUE with {keys}")),
            ("rpm=3", format!("'rpm=3': expected {keys}")),
            (
                "retry-rate=2%,rotations=x",
                "'rotations=x': 'x' is not a number of revolutions: expected 3, uniform:1-7, \
                 geometric:3 or 1:80%+30:20%"
                    .into(),
            ),
            ("rotations=0", "'rotations=0': a retry takes 1 to 1000 revolutions, not 0".into()),
            (
                "rotations=1:50%+2:20%",
                "'rotations=1:50%+2:20%': the shares of a retry's lengths add up to 100%, not 70%"
                    .into(),
            ),
            (
                "bursts=1GiB/1MiB",
                "'bursts=1GiB/1MiB': '1GiB/1MiB' is not GAP/LENGTH/SHARE, as in 10GiB/1MiB/50%"
                    .into(),
            ),
            (
                "bursts=1GiB/5kB/1%",
                "'bursts=1GiB/5kB/1%': a stretch of a disk is a whole number of 4KiB sectors, not \
                 5000B"
                    .into(),
            ),
            ("stalls=5", "'stalls=5': '5' is not GAP/DURATION, as in 10min/5s".into()),
            ("slowdown=fast", "'slowdown=fast': 'fast' is not a number".into()),
            ("slowdown=0", "a drive is slowed down 1 to 1000 times, not 0 times".into()),
            (
                "ecc=round",
                "'ecc=round': 'round' is not a retry table: expected one of equal, wander-1, wander-2, wander-4"
                    .into(),
            ),
            (
                "ecc=equal,rotations=3",
                "the retry table 'equal' says how sectors fail and recover: rotations cannot be stated beside ecc"
                    .into(),
            ),
            ("stalls=1s/5s", "a stall every 1s lasts at most 1s, not 5s".into()),
        ] {
            assert_eq!(text.parse::<Faults>().unwrap_err().to_string(), expected);
        }
    }
}
