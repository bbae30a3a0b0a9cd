//! Options whose text is more than a number, and numbers with the limits in the message.

use std::fmt::{self, Display, Formatter};
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

use levelhead_app::filesystem::{COPIES_MAX, INTERLEAVE_MAX, PerGroup, Redundancy};
use levelhead_app::replay::OUTSTANDING_MAX;
use levelhead_app::watch::{EVERY_MAX, EVERY_MIN};
use levelhead_drive::{IdleVerify, QUEUE_DEPTH_MAX, Retention};
use levelhead_host::Journaling;
use levelhead_ldpc::Step;
use levelhead_planner::code::LENGTH_MAX;
use levelhead_planner::sequential::SECTORS_MAX;
use levelhead_planner::system::Capacities;
use levelhead_units::{Bytes, DriveIdx, Extent, Lba, Nanos, ParseUnitError, Sectors};

/// A file's mode, written in octal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mode(pub(crate) u32);

impl Display for Mode {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{:03o}", self.0)
    }
}

/// `DRIVE=FACTOR`, as in `3=10`.
pub(crate) fn slow_drive(text: &str) -> Result<(u8, f64), String> {
    let parts = text.split_once('=').and_then(|(drive, factor)| {
        Some((drive.parse().ok()?, factor.parse::<f64>().ok().filter(|factor| factor.is_finite())?))
    });
    parts.ok_or_else(|| format!("'{text}': expected DRIVE=FACTOR, as in 3=10"))
}

/// Sectors of each group of files: a number, or as many as a group repairs.
pub(crate) fn per_group(text: &str) -> Result<PerGroup, String> {
    match text.parse() {
        Ok(sectors) => Ok(PerGroup::Sectors(sectors)),
        Err(_) if text == "max" => Ok(PerGroup::Max),
        Err(_) => Err(format!("'{text}': expected a number of sectors, or max")),
    }
}

/// The place of a sector, from 0.
pub(crate) fn lba(text: &str) -> Result<Lba, String> {
    let number = text.parse().map(Lba::new);
    number.map_err(|_| format!("'{text}' is no place of a sector: expected a whole number from 0"))
}

/// `LBA,COUNT`, as in `5000,72`.
pub(crate) fn run_of_sectors(text: &str) -> Result<Extent, String> {
    let parts = text.split_once(',').and_then(|(lba, sectors)| {
        let (lba, sectors): (u64, u64) = (lba.parse().ok()?, sectors.parse().ok()?);
        lba.checked_add(sectors)?;
        (sectors > 0).then(|| Extent::new(Lba::new(lba), Sectors::new(sectors)))
    });
    parts.ok_or_else(|| format!("'{text}': expected LBA,COUNT, as in 5000,72"))
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

/// Requests outstanding in a closed loop.
pub(crate) fn outstanding(text: &str) -> Result<usize, String> {
    whole_in(text, 1..=OUTSTANDING_MAX)
}

/// Steps of a list of operations on files that are under way.
pub(crate) fn steps(text: &str) -> Result<u32, String> {
    whole_in(text, 1..=1_024)
}

/// A drive's number in an array.
pub(crate) fn drive(text: &str) -> Result<u8, String> {
    whole_in(text, 0..=DriveIdx::MAX - 1)
}

/// Where an array keeps its journal, as it was typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JournalChoice {
    pub(crate) journaling: Journaling,
    /// Drives that are for it alone.
    pub(crate) drives: Vec<String>,
}

/// Where an array keeps its journal.
pub(crate) fn journal(text: &str) -> Result<JournalChoice, String> {
    let kept = |journaling| JournalChoice { journaling, drives: Vec::new() };
    match text {
        "members" => Ok(kept(Journaling::Members)),
        "all" => Ok(kept(Journaling::All)),
        "none" => Ok(kept(Journaling::None)),
        _ => {
            let drives: Vec<String> = text.split(',').map(str::to_owned).collect();
            let is_one = |name: &String| name.contains(['/', ':', '.']);
            if !drives.iter().all(is_one) {
                return Err(format!(
                    "'{text}' is no journal: expected members, all, none, or drives for it alone, as in /dev/nvme0n1,/dev/nvme1n1"
                ));
            }
            Ok(JournalChoice { journaling: Journaling::Members, drives })
        }
    }
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

/// Any seed.
pub(crate) fn seed(text: &str) -> Result<u64, String> {
    whole_in(text, 0..=u64::MAX)
}

/// A probability, as a number or in percent.
pub(crate) fn probability(text: &str) -> Result<f64, String> {
    let (number, scale) = match text.trim().strip_suffix('%') {
        Some(number) => (number, 100.0),
        None => (text, 1.0),
    };
    let value = number.trim().parse::<f64>().ok().map(|value| value / scale);
    value
        .filter(|value| (0.0..=1.0).contains(value))
        .ok_or_else(|| format!("'{text}' is no probability from 0 to 1, such as 1e-3 or 0.1%"))
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
        .ok_or_else(|| format!("'{text}' is no percentile from 0 to 99.999999"))
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

/// Sectors of a coding group of a file.
pub(crate) fn group_length(text: &str) -> Result<u64, String> {
    match text {
        "255" => Ok(255),
        "1023" => Ok(1023),
        _ => Err(format!("'{text}' is no length of a group: expected 255 or 1023")),
    }
}

/// What shorter groups of a file get.
pub(crate) fn redundancy(text: &str) -> Result<Redundancy, String> {
    match text {
        "by-length" => Ok(Redundancy::ByLength),
        "fixed" => Ok(Redundancy::Fixed),
        _ => Err(format!("'{text}' is no redundancy: expected by-length or fixed")),
    }
}

/// Copies of each sector of a filesystem's metadata.
pub(crate) fn metadata_copies(text: &str) -> Result<u8, String> {
    whole_in(text, 1..=COPIES_MAX)
}

/// Groups of a file that are woven.
pub(crate) fn interleave(text: &str) -> Result<u8, String> {
    whole_in(text, 1..=INTERLEAVE_MAX)
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

/// A time of at most a minute: what a drive takes for one thing.
pub(crate) fn short_time(text: &str) -> Result<Nanos, String> {
    let time: Nanos = text.parse().map_err(|error| format!("{error}"))?;
    let is_short = time <= Nanos::from_secs(60);
    is_short.then_some(time).ok_or_else(|| format!("'{text}' is longer than a minute"))
}

/// How long an array waits for a drive.
pub(crate) fn patience(text: &str) -> Result<Nanos, String> {
    let time: Nanos = text.parse().map_err(|error| format!("{error}"))?;
    let range = Nanos::from_secs(1)..=Nanos::from_secs(3_600);
    range.contains(&time).then_some(time).ok_or_else(|| format!("'{text}' is not from 1s to 1h"))
}

/// How long drives are looked for before an array starts without them; 0s is at once.
pub(crate) fn look_for(text: &str) -> Result<Nanos, String> {
    let time: Nanos = text.parse().map_err(|error| format!("{error}"))?;
    if time == Nanos::ZERO { Ok(time) } else { patience(text) }
}

/// Connections of a server.
pub(crate) fn connections(text: &str) -> Result<usize, String> {
    whole_in(text, 1..=1024)
}

/// A file's mode, in octal digits: read, write and no more, because a socket is not run.
pub(crate) fn mode(text: &str) -> Result<Mode, String> {
    let mode = u32::from_str_radix(text, 8).ok().filter(|mode| mode & !0o666 == 0);
    mode.map(Mode).ok_or_else(|| {
        format!(
            "'{text}' is no mode of a socket: expected octal digits up to 666, as in 600 or 660"
        )
    })
}

/// How long a client's handshake may take.
pub(crate) fn handshake(text: &str) -> Result<Nanos, String> {
    let time: Nanos = text.parse().map_err(|error| format!("{error}"))?;
    let range = Nanos::from_millis(100)..=Nanos::from_secs(600);
    range
        .contains(&time)
        .then_some(time)
        .ok_or_else(|| format!("'{text}' is not from 100ms to 10min"))
}

/// How often a running array is looked at: seconds, or a time with its unit.
pub(crate) fn look_every(text: &str) -> Result<Nanos, String> {
    let seconds = text.parse().ok().filter(|seconds: &f64| seconds.is_finite() && *seconds >= 0.0);
    let time = match seconds {
        Some(seconds) => Nanos::new((seconds.min(1e6) * 1e9) as u64),
        None => text.parse().map_err(|_| format!("'{text}' is no number of seconds"))?,
    };
    let range = Nanos::from_millis(100)..=Nanos::from_secs(3_600);
    range
        .contains(&time)
        .then_some(time)
        .ok_or_else(|| format!("'{text}' is not from 0.1 s to 1 h"))
}

/// The time between two samples of a watch.
pub(crate) fn sample_every(text: &str) -> Result<Nanos, String> {
    let time: Nanos = text.parse().map_err(|error| format!("{error}"))?;
    let range = EVERY_MIN..=EVERY_MAX;
    range
        .contains(&Duration::from(time))
        .then_some(time)
        .ok_or_else(|| format!("'{text}' is not from 1s to 30s"))
}

/// Bytes a second, some of them.
pub(crate) fn rate(text: &str) -> Result<Bytes, String> {
    let rate: Bytes = text.parse().map_err(|error| format!("{error}"))?;
    let is_some = rate >= Bytes::new(1_000_000);
    is_some.then_some(rate).ok_or_else(|| format!("'{text}' is less than 1MB a second"))
}

/// Bytes a second that a rebuild keeps; 0 for none.
pub(crate) fn rebuild_rate(text: &str) -> Result<Bytes, String> {
    let rate: Bytes = text.parse().map_err(|error| format!("{error}"))?;
    let range = Bytes::new(10_000)..=Bytes::new(100_000_000_000);
    let is_one = rate == Bytes::new(0) || range.contains(&rate);
    is_one
        .then_some(rate)
        .ok_or_else(|| format!("'{text}' is neither 0 nor from 10kB to 100GB a second"))
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
