//! What stays in a drive's memory, and which of it makes room.

use std::fmt;
use std::str::FromStr;

use levelhead_units::Bytes;

/// Memory is given out in units of this size.
pub(crate) const UNIT: Bytes = Retention::UNIT;

/// What stays in a drive's memory: a list of segments, of which the least recently used (LRU) makes room
/// first and the most recently used (MRU) last.
///
/// Written `mru-mru:8MB`, or `dedicated:8MB/2MB` where writes have memory of another size.
///
/// ```
/// use levelhead_drive::{Placing, Retention};
/// use levelhead_units::Bytes;
///
/// let retention: Retention = "mru-mru:8MB".parse()?;
/// assert_eq!(retention.placing, Placing::MruMru);
/// assert_eq!(retention.memory, Bytes::new(8_000_000));
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Where completed reads and writes go.
    pub placing: Placing,
    /// The memory for all segments; of [`Placing::Dedicated`] for those of reads.
    pub memory: Bytes,
    /// The memory that [`Placing::Dedicated`] has for writes; no other uses it.
    pub writes: Bytes,
}

/// Where the segments of completed reads and writes go: the retention policies of `[IRAW08]`, section 5.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placing {
    /// Reads to the MRU end, writes to the LRU end, as drives do today.
    MruLru,
    /// Both to the MRU end.
    MruMru,
    /// Every new segment enters at the MRU end, and nothing moves it: first in, first out.
    Stay,
    /// One list for reads and one for writes, both in the same memory. The class that has more than its share of
    /// the recent requests makes room.
    Adaptive,
    /// One list for reads and one for writes, each in memory of its own.
    Dedicated,
}

impl Placing {
    /// Every policy and its name.
    pub const ALL: [(Self, &str); 5] = [
        (Self::MruLru, "mru-lru"),
        (Self::MruMru, "mru-mru"),
        (Self::Stay, "stay"),
        (Self::Adaptive, "adaptive"),
        (Self::Dedicated, "dedicated"),
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(placing, _)| *placing == self).map_or("", |(_, name)| name)
    }
}

impl FromStr for Placing {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.iter().find(|(_, known)| *known == text);
        let names = "mru-lru, mru-mru, stay, adaptive or dedicated";
        let wrong = || format!("'{text}' is not a retention policy: expected {names}");
        found.map(|(placing, _)| *placing).ok_or_else(wrong)
    }
}

impl Retention {
    /// Whether a drive may have this much memory for one class.
    ///
    /// # Errors
    ///
    /// Less than a unit of 16 KiB, or more than a TiB.
    pub fn check_memory(size: Bytes) -> Result<Bytes, String> {
        if size < UNIT || size > Self::MEMORY_MAX {
            return Err(format!("a drive's memory has {UNIT} to {}, not {size}", Self::MEMORY_MAX));
        }
        Ok(size)
    }

    /// Memory is given out in units of this size.
    pub const UNIT: Bytes = Bytes::new(16 << 10);

    /// The most memory a drive may have for one class.
    pub const MEMORY_MAX: Bytes = Bytes::new(1 << 40);

    /// This policy with this much memory, and as much again for writes where they have their own.
    pub const fn new(placing: Placing, memory: Bytes) -> Self {
        Self { placing, memory, writes: memory }
    }
}

impl FromStr for Retention {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let form = "expected POLICY:SIZE with mru-lru, mru-mru, stay, adaptive or dedicated";
        let (name, sizes) = text.split_once(':').unwrap_or((text, ""));
        let found = Placing::ALL.iter().find(|(_, known)| *known == name);
        let placing = found.ok_or_else(|| format!("'{text}' is not a retention policy: {form}"))?.0;
        if sizes.is_empty() {
            return Err(format!("'{text}' names no size: {form}"));
        }
        let (memory, writes) = match sizes.split_once('/') {
            None => (size(sizes)?, size(sizes)?),
            Some((memory, writes)) if placing == Placing::Dedicated => {
                (size(memory)?, size(writes)?)
            }
            Some(_) => return Err(format!("'{text}': only dedicated has two sizes")),
        };
        Ok(Self { placing, memory, writes })
    }
}

fn size(text: &str) -> Result<Bytes, String> {
    Retention::check_memory(text.parse().map_err(|error| format!("{error}"))?)
}

impl fmt::Display for Retention {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.placing.name(), self.memory)?;
        if self.placing == Placing::Dedicated && self.writes != self.memory {
            write!(f, "/{}", self.writes)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_what_is_meant() {
        for text in ["mru-lru:16KiB", "stay:8MiB", "adaptive:1MiB", "dedicated:8MiB/2MiB"] {
            assert_eq!(text.parse::<Retention>().unwrap().to_string(), text);
        }
        let even: Retention = "dedicated:2MB".parse().unwrap();
        assert_eq!(even, Retention::new(Placing::Dedicated, Bytes::new(2_000_000)));
    }

    #[test]
    fn what_cannot_be_is_refused_with_the_limit() {
        let form = "expected POLICY:SIZE with mru-lru, mru-mru, stay, adaptive or dedicated";
        for (text, expected) in [
            ("lru:1MB", format!("'lru:1MB' is not a retention policy: {form}")),
            ("stay", format!("'stay' names no size: {form}")),
            ("stay:1MB/1MB", "'stay:1MB/1MB': only dedicated has two sizes".to_owned()),
            ("stay:4KiB", "a drive's memory has 16KiB to 1TiB, not 4KiB".to_owned()),
        ] {
            assert_eq!(text.parse::<Retention>().unwrap_err(), expected);
        }
    }
}
