//! When writes are read back, and what that is worth.

use std::fmt;
use std::str::FromStr;

use levelhead_units::{Nanos, Sectors};

use crate::log::rules::Rules;

/// When writes are read back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VerifyMode {
    /// As soon as they have ended.
    Raw,
    /// When their drive has had nothing to do for a while.
    Idle,
}

impl VerifyMode {
    /// Its name in programs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::Idle => "idle",
        }
    }
}

/// What a read that is to come from the medium says about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Promise {
    /// The drive gives back what it took: perhaps from its memory.
    Interface,
    /// Its memory can hardly have had it any more: half of the last reads took longer than memory does.
    Likely,
    /// It comes from the medium.
    Medium,
}

impl Promise {
    /// All of them, the weakest first.
    pub const ALL: [Self; 3] = [Self::Interface, Self::Likely, Self::Medium];

    /// Its name in programs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Interface => "interface",
            Self::Likely => "likely",
            Self::Medium => "medium",
        }
    }
}

/// What lies between an array and a drive: whether what a read takes says where it comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Nothing that takes time: what the drive has in its memory comes at once.
    Near,
    /// Something that does, or that has a memory of its own: a network, another program, the page cache of this machine.
    Far,
}

/// How writes are read back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VerifySettings {
    /// When.
    pub mode: VerifyMode,
    /// The most bytes of writes that are kept, in sectors; of what does not fit, checksums are.
    pub cache: Sectors,
    /// How long a drive must have had nothing to do.
    pub wait: Nanos,
    /// Which rules are kept: all of them, but where a test must notice that one is not.
    pub rules: Rules,
}

impl VerifySettings {
    /// When drives are idle; 16 MiB; 1 ms.
    pub const IDLE: Self = Self {
        mode: VerifyMode::Idle,
        cache: Sectors::new(4_096),
        wait: Nanos::from_millis(1),
        rules: Rules::ALL,
    };

    /// The same for an array whose sectors have checksums or not: these say what was written, so that no bytes are kept, unless another
    /// amount than the default was asked for. A sector is 4 bytes then and not 4,096.
    #[must_use]
    pub fn for_sectors_with(self, checksums: bool) -> Self {
        let cache =
            if checksums && self.cache == Self::IDLE.cache { Sectors::ZERO } else { self.cache };
        Self { cache, ..self }
    }
}

/// What was typed for it: `off`, `raw`, `idle` or `idle:8MiB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VerifyWrites(pub Option<VerifySettings>);

impl FromStr for VerifyWrites {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let settings = match text.split_once(':') {
            None if text == "off" => None,
            None if text == "raw" => {
                Some(VerifySettings { mode: VerifyMode::Raw, ..VerifySettings::IDLE })
            }
            None if text == "idle" => Some(VerifySettings::IDLE),
            Some(("idle", cache)) => {
                let bytes: levelhead_units::Bytes =
                    cache.parse().map_err(|error| format!("'{text}': {error}"))?;
                let cache = bytes.sectors_floor();
                if cache > CACHE_MAX {
                    return Err(format!("'{text}': the cache is at most {}", CACHE_MAX.bytes()));
                }
                Some(VerifySettings { cache, ..VerifySettings::IDLE })
            }
            None | Some(_) => {
                return Err(format!(
                    "'{text}': expected off, raw, idle or idle:CACHE, as idle:8MiB"
                ));
            }
        };
        Ok(Self(settings))
    }
}

impl fmt::Display for VerifyWrites {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            None => f.write_str("off"),
            Some(VerifySettings { mode: VerifyMode::Raw, .. }) => f.write_str("raw"),
            Some(VerifySettings { cache, .. }) => write!(f, "idle:{}", cache.bytes()),
        }
    }
}

/// The largest cache: 64 GiB.
const CACHE_MAX: Sectors = Sectors::new(1 << 24);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sectors_with_checksums_need_no_bytes_to_be_read_back() {
        let [idle, more] =
            ["idle", "idle:8MiB"].map(|text| text.parse::<VerifyWrites>().unwrap().0.unwrap());
        assert_eq!(idle.for_sectors_with(true).cache, Sectors::ZERO);
        assert_eq!(idle.for_sectors_with(false).cache, VerifySettings::IDLE.cache);
        assert_eq!(more.for_sectors_with(true).cache, more.cache);
    }

    #[test]
    fn text_says_when_and_with_how_much_memory() {
        let parsed = |text: &str| text.parse::<VerifyWrites>();
        assert_eq!(parsed("off"), Ok(VerifyWrites(None)));
        assert_eq!(parsed("idle"), Ok(VerifyWrites(Some(VerifySettings::IDLE))));
        let two = parsed("idle:2MiB").unwrap();
        assert_eq!(two.0.unwrap().cache, Sectors::new(512));
        assert_eq!(
            (two.to_string().as_str(), parsed("raw").unwrap().to_string().as_str()),
            ("idle:2MiB", "raw")
        );
        for wrong in ["", "on", "idle:", "raw:2MiB", "idle:x", "idle:65GiB"] {
            assert!(parsed(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn promises_are_in_the_order_of_what_they_are_worth() {
        assert!(Promise::ALL.is_sorted());
        assert_eq!(Promise::ALL.map(Promise::name), ["interface", "likely", "medium"]);
    }
}
