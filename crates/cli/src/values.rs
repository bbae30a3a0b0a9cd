//! Options whose text is more than a number, and numbers with the limits in the message.

use std::fmt::{self, Display, Formatter};
use std::time::Duration;

use levelhead_app_fs::{COPIES_MAX, INTERLEAVE_MAX, PerGroup};
use levelhead_app_watch::{EVERY_MAX, EVERY_MIN};
use levelhead_host::{ArrayVersion, Journaling};
use levelhead_terminal::values::whole_in;
use levelhead_units::{Bytes, Extent, Lba, Nanos, Sectors};

/// A file's mode, written in octal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mode(pub(crate) u32);

impl Display for Mode {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{:03o}", self.0)
    }
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
    number.map_err(|_| format!("'{text}' is not a sector number: expected a whole number from 0"))
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

/// Where an array keeps its journal, as it was typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JournalChoice {
    pub(crate) journaling: Journaling,
    /// Drives that are for it alone.
    pub(crate) drives: Vec<String>,
}

/// A version of an array's superblock.
pub(crate) fn array_version(text: &str) -> Result<ArrayVersion, String> {
    match text {
        "2" => Ok(ArrayVersion::Two),
        "3" => Ok(ArrayVersion::Three),
        _ => {
            Err(format!("'{text}' is not a version that an array is converted to: expected 2 or 3"))
        }
    }
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
                    "'{text}' is not a journal: expected members, all, none, or drives for it alone, as in \
                     /dev/nvme0n1,/dev/nvme1n1"
                ));
            }
            Ok(JournalChoice { journaling: Journaling::Members, drives })
        }
    }
}

/// Sectors of a coding group of a file.
pub(crate) fn group_length(text: &str) -> Result<u64, String> {
    match text {
        "255" => Ok(255),
        "1023" => Ok(1023),
        _ => Err(format!("'{text}' is not a group length: expected 255 or 1023")),
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
        format!("'{text}' is not a socket mode: expected octal digits up to 666, as in 600 or 660")
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
        None => text.parse().map_err(|_| format!("expected a number of seconds, got '{text}'"))?,
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

/// Bytes a second that a rebuild keeps; 0 for none.
pub(crate) fn rebuild_rate(text: &str) -> Result<Bytes, String> {
    let rate: Bytes = text.parse().map_err(|error| format!("{error}"))?;
    let range = Bytes::new(10_000)..=Bytes::new(100_000_000_000);
    let is_one = rate == Bytes::new(0) || range.contains(&rate);
    is_one
        .then_some(rate)
        .ok_or_else(|| format!("'{text}' is neither 0 nor from 10kB to 100GB a second"))
}
