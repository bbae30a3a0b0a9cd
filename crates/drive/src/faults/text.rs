//! Faults as people write them: `retry-rate=2%,rotations=geometric:3,stalls=10min/5s`.
//!
//! | key | value | as in |
//! |---|---|---|
//! | `retry-rate` | share of sectors | `2%` |
//! | `adjacency` | factor | `2` |
//! | `bursts` | mean gap / length / share of failing sectors | `10GiB/geometric:1MiB/50%` |
//! | `rotations` | revolutions of a retry | `3`, `uniform:1-7`, `geometric:3`, `1:80%+30:20%` |
//! | `hard-rate` | share of sectors | `0.1%` |
//! | `slowdown` | factor | `10` |
//! | `episodes` | mean slow time / mean time between / factor | `20s/5min/5` |
//! | `periodic` | period / duration / factor, and the offset | `2h/4min/5/10min`, `2h-3h/3min-6min/5` |
//! | `field` | interval, and persistence (40 % if left out) | `1h`, `1h/0%` |
//! | `stalls` | mean gap / duration | `10min/5s` |
//! | `lost-writes` | share of writes | `0.1%` |
//! | `torn-writes` | share of writes | `0.1%` |
//! | `death` | time since the beginning | `30s` |
//!
//! A burst's length is a size, `uniform:` and the largest size, or `geometric:` and the mean. What is
//! left out stays as it is in a drive in good order. This is the one place that knows the names:
//! command lines, members of arrays and configuration files come here.

use std::fmt;
use std::str::FromStr;

use levelhead_units::{Bytes, Instant, Nanos, Sectors};

use super::{
    Between, BurstLength, Bursts, Episodes, Faults, FaultsError, Field, Periodic, RotationList,
    Rotations, Stalls,
};

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

impl From<FaultsError> for ParseFaultsError {
    fn from(error: FaultsError) -> Self {
        Self::new(error)
    }
}

impl ParseFaultsError {
    fn new(message: impl fmt::Display) -> Self {
        Self { message: message.to_string() }
    }
}

type Parsed<T> = Result<T, ParseFaultsError>;

impl Faults {
    /// The names of all kinds, for messages.
    pub const KEYS: &str = "retry-rate, adjacency, bursts, rotations, hard-rate, slowdown, episodes, \
                            periodic, field, stalls, lost-writes, torn-writes, death";

    /// Changes one kind. An unknown name is refused; whether the kinds fit together is for
    /// [`Faults::check`] to say once all are there.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), ParseFaultsError> {
        match key {
            "retry-rate" => self.soft_rate = unit(value)?,
            "adjacency" => self.adjacency = number(value)?,
            "bursts" => self.bursts = Some(bursts(value)?),
            "rotations" => self.rotations = value.parse()?,
            "hard-rate" => self.hard_rate = unit(value)?,
            "slowdown" => self.slowdown = number(value)?,
            "episodes" => self.episodes = Some(episodes(value)?),
            "periodic" => self.periodic = Some(periodic(value)?),
            "field" => self.field = Some(field(value)?),
            "stalls" => self.stalls = Some(stalls(value)?),
            "lost-writes" => self.lost_rate = unit(value)?,
            "torn-writes" => self.torn_rate = unit(value)?,
            "death" => self.death = Some(Instant::ZERO + unit(value)?),
            _ => return Err(ParseFaultsError::new(format!("expected {}", Self::KEYS))),
        }
        Ok(())
    }
}

/// Pairs of a name and a value, separated by commas; `none` and nothing at all are a drive in good
/// order. What comes out can be: it has been checked.
impl FromStr for Faults {
    type Err = ParseFaultsError;

    fn from_str(text: &str) -> Result<Self, ParseFaultsError> {
        let mut faults = Self::NONE;
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
            faults
                .set(key.trim(), value.trim())
                .map_err(|error| ParseFaultsError::new(format!("'{part}': {error}")))?;
        }
        faults.check()?;
        Ok(faults)
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let none = Self::NONE;
        let mut parts = Vec::new();
        let mut say = |differs: bool, key: &str, value: &dyn fmt::Display| {
            if differs {
                parts.push(format!("{key}={value}"));
            }
        };
        say(self.soft_rate != none.soft_rate, "retry-rate", &self.soft_rate);
        say(self.adjacency > none.adjacency, "adjacency", &self.adjacency);
        if let Some(Bursts { gap, length, failure }) = self.bursts {
            say(true, "bursts", &format!("{}/{length}/{failure}", gap.bytes()));
        }
        say(self.rotations != none.rotations, "rotations", &self.rotations);
        say(self.hard_rate != none.hard_rate, "hard-rate", &self.hard_rate);
        say(self.slowdown > none.slowdown, "slowdown", &self.slowdown);
        if let Some(Episodes { slow, well, factor }) = self.episodes {
            say(true, "episodes", &format!("{slow}/{well}/{factor}"));
        }
        if let Some(Periodic { period, duration, offset, factor }) = self.periodic {
            let offset = offset.map_or(String::new(), |offset| format!("/{offset}"));
            say(true, "periodic", &format!("{period}/{duration}/{factor}{offset}"));
        }
        if let Some(Field { interval, persistence }) = self.field {
            say(true, "field", &format!("{interval}/{persistence}"));
        }
        if let Some(Stalls { gap, duration }) = self.stalls {
            say(true, "stalls", &format!("{gap}/{duration}"));
        }
        say(self.lost_rate != none.lost_rate, "lost-writes", &self.lost_rate);
        say(self.torn_rate != none.torn_rate, "torn-writes", &self.torn_rate);
        if let Some(death) = self.death {
            say(true, "death", &(death - Instant::ZERO));
        }
        if parts.is_empty() {
            return f.write_str("none");
        }
        f.write_str(&parts.join(","))
    }
}

impl FromStr for Rotations {
    type Err = ParseFaultsError;

    fn from_str(text: &str) -> Result<Self, ParseFaultsError> {
        const FORMS: &str =
            "a number of revolutions: expected 3, uniform:1-7, geometric:3 or 1:80%+30:20%";
        let wrong = || ParseFaultsError::new(format!("'{text}' is not {FORMS}"));
        let count = |text: &str| text.trim().parse::<u32>().map_err(|_| wrong());
        let rotations = if let Some(range) = text.strip_prefix("uniform:") {
            let (first, last) = range.split_once('-').ok_or_else(wrong)?;
            Self::Uniform { first: count(first)?, last: count(last)? }
        } else if let Some(mean) = text.strip_prefix("geometric:") {
            Self::Geometric { mean: mean.trim().parse().map_err(|_| wrong())? }
        } else if text.contains(':') {
            let mut list = Vec::new();
            for entry in text.split('+') {
                let (rotations, share) = entry.split_once(':').ok_or_else(wrong)?;
                list.push((count(rotations)?, unit(share)?));
            }
            Self::Listed(RotationList::new(&list)?)
        } else {
            Self::Fixed(count(text)?)
        };
        rotations.check()?;
        Ok(rotations)
    }
}

fn bursts(text: &str) -> Parsed<Bursts> {
    let [gap, length, failure] = fields(text, "GAP/LENGTH/SHARE, as in 10GiB/1MiB/50%")?;
    let length = if let Some(most) = length.strip_prefix("uniform:") {
        BurstLength::Uniform(sectors(most)?)
    } else if let Some(mean) = length.strip_prefix("geometric:") {
        BurstLength::Geometric(sectors(mean)?)
    } else {
        BurstLength::Fixed(sectors(length)?)
    };
    Ok(Bursts { gap: sectors(gap)?, length, failure: unit(failure)? })
}

fn episodes(text: &str) -> Parsed<Episodes> {
    let [slow, well, factor] = fields(text, "SLOW/WELL/FACTOR, as in 20s/5min/5")?;
    Ok(Episodes { slow: unit(slow)?, well: unit(well)?, factor: number(factor)? })
}

fn periodic(text: &str) -> Parsed<Periodic> {
    const FORM: &str = "PERIOD/DURATION/FACTOR or PERIOD/DURATION/FACTOR/OFFSET, as in 2h/4min/5";
    let (offset, [period, duration, factor]) = match text.splitn(4, '/').nth(3) {
        Some(offset) => {
            (Some(unit(offset)?), fields(&text[..text.len() - offset.len() - 1], FORM)?)
        }
        None => (None, fields(text, FORM)?),
    };
    let (period, duration) = (between(period)?, between(duration)?);
    Ok(Periodic { period, duration, offset, factor: number(factor)? })
}

/// A time, or two with a dash between.
fn between(text: &str) -> Parsed<Between> {
    let Some((least, most)) = text.split_once('-') else {
        return unit::<Nanos>(text).map(Into::into);
    };
    Ok(Between { least: unit(least)?, most: unit(most)? })
}

fn field(text: &str) -> Parsed<Field> {
    let Some((interval, persistence)) = text.split_once('/') else {
        return Ok(Field { interval: unit(text)?, ..Field::measured() });
    };
    Ok(Field { interval: unit(interval)?, persistence: unit(persistence)? })
}

fn stalls(text: &str) -> Parsed<Stalls> {
    let [gap, duration] = fields(text, "GAP/DURATION, as in 10min/5s")?;
    Ok(Stalls { gap: unit(gap)?, duration: unit(duration)? })
}

/// The parts of a value, as many as its form has.
fn fields<'a, const N: usize>(text: &'a str, form: &str) -> Parsed<[&'a str; N]> {
    let parts: Vec<&str> = text.split('/').map(str::trim).collect();
    parts.try_into().map_err(|_| ParseFaultsError::new(format!("'{text}' is not {form}")))
}

/// A size, time or share.
fn unit<T: FromStr<Err: fmt::Display>>(text: &str) -> Parsed<T> {
    text.parse().map_err(ParseFaultsError::new)
}

fn number(text: &str) -> Parsed<f64> {
    text.parse().map_err(|_| ParseFaultsError::new(format!("'{text}' is not a number")))
}

fn sectors(text: &str) -> Parsed<Sectors> {
    let size: Bytes = unit(text)?;
    let sectors = size.sectors_exact();
    let whole = || format!("a stretch of a disk is a whole number of 4KiB sectors, not {size}");
    sectors.ok_or_else(|| ParseFaultsError::new(whole()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: &str = "retry-rate=2%,adjacency=2,bursts=10GiB/geometric:1MiB/50%,\
                       rotations=1:80%+30:20%,hard-rate=0.1%,slowdown=1.5,episodes=20s/300s/5,\
                       periodic=7200s/240s/5/600s,field=3600s/40%,stalls=600s/5s,lost-writes=0.1%,\
                       torn-writes=0.2%,death=30s";

    #[test]
    fn every_key_is_read_and_printed() {
        let faults: Faults = ALL.parse().unwrap();
        assert_eq!(faults.to_string(), ALL);
        let keys: Vec<&str> = ALL.split(',').map(|part| part.split_once('=').unwrap().0).collect();
        assert_eq!(keys.join(", "), Faults::KEYS);
        assert_eq!("none".parse(), Ok(Faults::NONE));
        assert_eq!("".parse(), Ok(Faults::NONE));
        assert_eq!(Faults::NONE.to_string(), "none");
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
            ("stalls=1s/5s", "a stall every 1s lasts at most so long, not 5s".into()),
        ] {
            assert_eq!(text.parse::<Faults>().unwrap_err().to_string(), expected);
        }
    }
}
