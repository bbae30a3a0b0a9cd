//! A make of drive: its figures, read from text.
//!
//! ```toml
//! name = "example"
//! block_size = 512            # the drive's own blocks, 512 or 4096 bytes
//! blocks = 6000000            # how many are used; without it, all
//! rpm = 7200
//! heads = 2
//! overhead = "0.2ms"          # the controller, before anything moves; or a table, see below
//! head_switch = "0.8ms"
//! write_settle = "0.4ms"      # after a seek or switch that ends in a write
//! bus_rate = "550MB/s"        # without it, bytes leave the drive in no time
//!
//! # [overhead]                # each a time, or two: after a read, after a write
//! # read = "0.2ms"            #   from the medium
//! # write = "0.2ms"           #   to the medium
//! # read_hit = "0.1ms"        #   from the cache; without it, as from the medium
//! # write_hit = ["0.1ms", "0.2ms"]
//!
//! # [cache]                   # without it, every command goes to the medium; sizes in blocks
//! # segments = 32             #   how many streams it keeps apart
//! # segment_blocks = 2048     #   how much of each
//! # read_ahead_blocks = 2048  #   how far the drive reads on after a read; usually a segment
//! # read_ahead_after = 0      #   how many reads must follow one another before it does
//! # read_ahead_over_requested = true   # whether that may push out what was asked for
//! # read_ahead_on_track = false   # whether it stops at the end of a track
//! # read_ahead_on_hit = true  #   whether a read from the cache moves that end on
//! # write_blocks = 65536      #   how much may wait for the medium; usually nothing
//! # write_segments = 1024     #   in how many runs of blocks at most
//! # write_delay = "100ms"     #   how long the drive idles before it writes back; usually not
//! # flush_overhead = "28ms"   #   what a flush takes besides the writes, if there are any
//!
//! [seek]                      # either: a curve
//! single = "0.23ms"           #   one cylinder
//! settle = "1.2ms"            #   what any longer seek takes besides its motion
//! third = "8.2ms"             #   a third of the stroke, which manuals call the average
//! full = "17.1ms"             #   the whole stroke
//! # points = [[1, "0.23ms"], [400, "2ms"], [999, "9ms"]]     or: a table, interpolated
//!
//! # [seek_write]              # the same for writes; without it, writes seek like reads
//!
//! [[zone]]                    # outermost first
//! cylinders = 1000
//! blocks_per_track = 3000
//! track_skew = 480            # in blocks
//! cylinder_skew = 480
//! # gap = 1                   # cylinders before it that hold no data
//! # front = 100               # blocks at its beginning that hold no data
//! # spares = 88               # blocks at the end of every range that hold no data
//! # spare_cylinders = 6       # the cylinders of a range; without it, all of the zone
//! # slips = [17, 230]         # bad blocks, skipped at the cost of spares
//! ```
//!
//! No other key is allowed; a mistake is reported with its key and its limit. Slips are numbers of
//! blocks on the medium, from the zone's first.
//!
//! The seek curve becomes a table with a nanosecond count for every length, computed once with
//! operations that round alike on every machine, so that a run gives the same times everywhere.

use std::fmt;
use std::sync::Arc;

use levelhead_units::{Bytes, Nanos, SECTOR_SIZE, Sectors};

use crate::cache::CacheShape;
use crate::geometry::Geometry;
use crate::mechanics::{Mechanics, Overheads, Spindle, rotation_round};
use crate::{CacheMode, SettingsError};

mod limits;
mod seek;
mod shipped;
mod text;

/// A make of drive. Clones share the large parts.
#[derive(Clone, Debug)]
pub struct Profile {
    name: String,
    rpm: u32,
    geometry: Arc<Geometry>,
    overheads: Overheads,
    head_switch: Nanos,
    write_settle: Nanos,
    bus_block: u64,
    cache: Option<CacheShape>,
    seek: Arc<[u32]>,
    seek_write: Arc<[u32]>,
}

impl Profile {
    /// The profile that `text` describes.
    pub fn parse(text: &str) -> Result<Self, ProfileError> {
        let typed: text::Typed =
            toml::from_str(text).map_err(|error| ProfileError::syntax(text, &error))?;
        typed.check()
    }

    /// The profile of this name that comes with the program.
    pub fn shipped(name: &str) -> Option<Self> {
        let (_, text) = shipped::ALL.iter().find(|(shipped, _)| *shipped == name)?;
        Some(Self::parse(text).expect("shipped profiles parse: a test reads them all"))
    }

    /// The names of the profiles that come with the program.
    pub fn names() -> &'static [&'static str] {
        const NAMES: [&str; shipped::ALL.len()] = {
            let mut names = [""; shipped::ALL.len()];
            let mut at = 0;
            while at < shipped::ALL.len() {
                names[at] = shipped::ALL[at].0;
                at += 1;
            }
            names
        };
        &NAMES
    }

    /// What the make is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How many sectors of 4096 bytes a drive of this make has.
    pub fn size(&self) -> Sectors {
        self.geometry.size()
    }

    /// How long one revolution takes, to the nearest nanosecond.
    pub fn rotation(&self) -> Nanos {
        rotation_round(self.rpm)
    }

    /// How many revolutions it makes in a minute.
    pub fn rpm(&self) -> u32 {
        self.rpm
    }

    pub(crate) fn geometry(&self) -> Arc<Geometry> {
        Arc::clone(&self.geometry)
    }

    /// The memory of the make, if it has any.
    pub(crate) fn cache(&self) -> Option<CacheShape> {
        self.cache
    }

    /// How much memory a drive of this make has for what it reads.
    pub(crate) fn memory(&self) -> Option<Bytes> {
        let block_size = SECTOR_SIZE as u64 / self.geometry.blocks_per_sector();
        let blocks = self.cache.map(|cache| u64::from(cache.segments) * cache.segment_blocks);
        blocks.map(|blocks| Bytes::new(blocks * block_size))
    }

    /// Whether a drive of this make can use its memory like that.
    pub(crate) fn check_cache(&self, mode: CacheMode) -> Result<(), SettingsError> {
        let is_there = match mode {
            CacheMode::Off => true,
            CacheMode::Read => self.cache.is_some(),
            CacheMode::WriteBack => self.cache.is_some_and(|shape| shape.write_blocks > 0),
        };
        if is_there { Ok(()) } else { Err(SettingsError::Cache { mode }) }
    }

    /// The moving parts of one drive, whose platter has this phase at time zero.
    pub(crate) fn mechanics(&self, phase: u64) -> Mechanics {
        Mechanics {
            spindle: Spindle::new(self.rpm, phase),
            overheads: self.overheads,
            head_switch: self.head_switch,
            write_settle: self.write_settle,
            seek: Arc::clone(&self.seek),
            seek_write: Arc::clone(&self.seek_write),
            bus_block: self.bus_block,
            #[cfg(test)]
            bug: None,
        }
    }
}

/// What is wrong with the text of a profile, in one sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProfileError {
    /// The key, or the line where the text is no TOML or lacks a key; empty if neither is known.
    key: String,
    problem: String,
}

impl ProfileError {
    fn new(key: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { key: key.into(), problem: problem.into() }
    }

    /// The parser's own sentence, without the lines of the text that it shows below it.
    fn syntax(text: &str, error: &toml::de::Error) -> Self {
        let problem = error.message().trim_end().replace('\n', ", ");
        let before = error.span().and_then(|span| text.get(..span.start));
        match before {
            Some(before) => {
                let line = before.matches('\n').count() + 1;
                Self::new(format!("line {line}:"), problem)
            }
            None => Self::new("", problem),
        }
    }
}

impl fmt::Display for ProfileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.key.as_str() {
            "" => write!(f, "drive profile: {}", self.problem),
            key => write!(f, "drive profile: {key} {}", self.problem),
        }
    }
}

impl std::error::Error for ProfileError {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mechanics::Overhead;

    const EXAMPLE: &str = r#"
        name = "example"
        block_size = 4096
        rpm = 6000
        heads = 2
        overhead = "0.5ms"
        head_switch = "2ms"
        write_settle = "3ms"
        [seek]
        points = [[1, "1.5ms"], [3, "4ms"], [9, "5.5ms"]]
        [[zone]]
        cylinders = 10
        blocks_per_track = 10
        track_skew = 3
        cylinder_skew = 4
    "#;

    #[test]
    fn shipped_profiles_parse_and_carry_their_names() {
        for name in Profile::names() {
            assert_eq!(Profile::shipped(name).unwrap().name(), *name);
        }
        assert!(Profile::shipped("no such make").is_none());
    }

    #[test]
    fn a_table_of_points_is_interpolated() {
        let profile = Profile::parse(EXAMPLE).unwrap();
        assert_eq!(profile.size(), Sectors::new(200));
        assert_eq!(profile.rotation(), Nanos::from_millis(10));
        let micros: Vec<u32> = profile.seek.iter().map(|nanos| nanos / 1000).collect();
        assert_eq!(micros, [0, 1500, 2750, 4000, 4250, 4500, 4750, 5000, 5250, 5500]);
    }

    #[track_caller]
    fn check_refused(from: &str, to: &str, expected: &str) {
        assert!(EXAMPLE.contains(from), "{from}");
        let error = Profile::parse(&EXAMPLE.replace(from, to)).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
        assert_eq!(error.lines().count(), 1, "one sentence: {error}");
    }

    #[test]
    fn a_mistake_is_reported_with_its_key_and_its_limit() {
        check_refused("rpm = 6000", "rpm = 0", "rpm is 0: expected 1 to 60000");
        check_refused("heads = 2", "heads = 256", "heads is 256: expected 1 to 255");
        check_refused("block_size = 4096", "block_size = 520", "is 520: expected 512 or 4096");
        check_refused(
            "track_skew = 3",
            "track_skew = 10",
            "zone[0].track_skew is 10: expected 0 to 9",
        );
        check_refused("cylinders = 10", "cylinders = 0", "zone[0].cylinders is 0");
        let less = EXAMPLE
            .replace("block_size = 4096", "block_size = 512")
            .replace("heads = 2", "heads = 1");
        let less = less
            .replace("cylinders = 10", "cylinders = 1")
            .replace("per_track = 10", "per_track = 9");
        let error = Profile::parse(&(less + "spares = 2")).unwrap_err().to_string();
        assert!(error.contains("together hold 7 blocks: expected a sector at least, 8"), "{error}");
        check_refused("cylinders = 10", "cylinders = 11", "end at 9 cylinders: expected at least");
        check_refused("[9, \"5.5ms\"]", "[2, \"5.5ms\"]", "seek.points[2] is a length of 2");
        check_refused("\"0.5ms\"", "\"0.5\"", "overhead '0.5' is not a time");
        check_refused("\"0.5ms\"", "\"2s\"", "overhead is 2s: expected at most 1s");
        check_refused("rpm = 6000", "spin = 6000", "line 4: unknown field `spin`, expected one of");
        check_refused("rpm = 6000", "rpm = ", "line 4: ");
        check_refused("rpm = 6000", "rpm = \"6000\"", "line 4: invalid type: string \"6000\"");
        check_refused("rpm = 6000", "", "missing field `rpm`");
        check_refused("[seek]", "[seek", "line 9: ");
        check_refused("\"0.5ms\"", "5", "expected a time, as in \"0.2ms\", or a table with read");
        check_refused("points =", "single = \"1ms\"\npoints =", "seek needs either");
        check_refused(
            "points = [[1, \"1.5ms\"], [3, \"4ms\"], [9, \"5.5ms\"]]",
            "single = \"1ms\"\nsettle = \"2ms\"\nthird = \"9ms\"\nfull = \"2ms\"",
            "seek takes longer",
        );
    }

    #[test]
    fn figures_that_may_be_left_out_change_what_they_name() {
        let mechanics = |text: &str| Profile::parse(text).unwrap().mechanics(0);
        let plain = mechanics(EXAMPLE);
        assert_eq!(plain.seek, plain.seek_write);
        assert_eq!(plain.bus_block, 0);
        assert_eq!(plain.overheads.read_hit.after_write, Nanos::from_micros(500));
        let text = EXAMPLE
            .replace("overhead = \"0.5ms\"", "bus_rate = \"100MB/s\"")
            .replace("[[zone]]", "[seek_write]\npoints = [[1, \"2ms\"], [9, \"6ms\"]]\n[[zone]]")
            + "spares = 20\nslips = [3, 17]\n[overhead]\nread = \"0.3ms\"\n\
               write = [\"0.4ms\", \"0.6ms\"]\nread_hit = \"0.1ms\"";
        let full = mechanics(&text);
        assert_eq!(
            (full.seek[1], full.seek_write[1], full.seek_write[5]),
            (1_500_000, 2_000_000, 4_000_000)
        );
        // 4096 bytes at 100 MB/s are 40.96 us.
        assert_eq!(full.bus_block, 40_960_000);
        let micros = |overhead: Overhead| {
            [overhead.after_read, overhead.after_write].map(|time| time.get() / 1_000)
        };
        assert_eq!(micros(full.overheads.read), [300, 300]);
        assert_eq!(micros(full.overheads.read_hit), [100, 100]);
        assert_eq!(micros(full.overheads.write), [400, 600]);
        assert_eq!(micros(full.overheads.write_hit), [400, 600]);
        assert_eq!(Profile::parse(&text).unwrap().size(), Sectors::new(180));
        let fewer = text.replace("rpm", "blocks = 100\nrpm");
        assert_eq!(Profile::parse(&fewer).unwrap().size(), Sectors::new(100));
    }

    #[test]
    fn a_mistake_in_them_is_reported_too() {
        let after = |key: &str| format!("cylinder_skew = 4\n{key}");
        check_refused("cylinder_skew = 4", &after("slips = [3]"), "zone[0] has no room");
        check_refused("cylinder_skew = 4", &after("spares = 200"), "zone[0] has no room");
        check_refused("cylinder_skew = 4", &after("slips = [3, 3]"), "zone[0].slips must rise");
        check_refused(
            "cylinder_skew = 4",
            &after("front = 1\nspare_cylinders = 1"),
            "zone[0].spare_cylinders is a range of a zone with a front",
        );
        check_refused("rpm", "blocks = 201\nrpm", "blocks is 201: expected 8 to 200");
        check_refused(
            "rpm",
            "bus_rate = \"5GB\"\nrpm",
            "bus_rate is '5GB': expected 0.01 to 100000 MB/s",
        );
        check_refused("rpm", "bus_rate = \"0MB/s\"\nrpm", "bus_rate is '0MB/s'");
        check_refused(
            "[seek]",
            "[seek_write]\npoints = [[1, \"1ms\"]]\n[seek]",
            "seek_write.points end at 1",
        );
    }
}
