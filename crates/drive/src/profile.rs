//! A make of drive: its figures, read from text.
//!
//! ```toml
//! name = "example"
//! block_size = 512            # the drive's own blocks, 512 or 4096 bytes
//! rpm = 7200
//! heads = 2
//! overhead = "0.2ms"          # the controller, before anything moves
//! head_switch = "0.8ms"
//! write_settle = "0.4ms"
//!
//! [seek]                      # either: a curve
//! single = "0.23ms"           #   one cylinder
//! settle = "1.2ms"            #   what any longer seek takes besides its motion
//! third = "8.2ms"             #   a third of the stroke, which manuals call the average
//! full = "17.1ms"             #   the whole stroke
//! # points = [[1, "0.23ms"], [400, "2ms"], [999, "9ms"]]     or: a table, interpolated
//!
//! [[zone]]                    # outermost first
//! cylinders = 1000
//! blocks_per_track = 3000
//! track_skew = 480            # in blocks
//! cylinder_skew = 480
//! ```
//!
//! Every key is needed and no other is allowed; a mistake is reported with its key and its limit.
//! The seek curve becomes a table with a nanosecond count for every length, computed once with
//! operations that round alike on every machine, so that a run gives the same times everywhere.

use std::fmt;
use std::sync::Arc;

use levelhead_units::{Nanos, Sectors};
use serde::Deserialize;

use crate::geometry::{Geometry, Zone};
use crate::mechanics::{BLOCKS_PER_TRACK_MAX, Mechanics, RPM_MAX, Spindle, rotation_round};

/// A make of drive. Clones share the large parts.
#[derive(Clone, Debug)]
pub struct Profile {
    name: String,
    rpm: u32,
    geometry: Arc<Geometry>,
    overhead: Nanos,
    head_switch: Nanos,
    write_settle: Nanos,
    seek: Arc<[u32]>,
}

/// The profiles that come with the program, by name.
const SHIPPED: [(&str, &str); 4] = [
    ("nearline-2tb", include_str!("../profiles/nearline-2tb.toml")),
    ("nearline-6tb", include_str!("../profiles/nearline-6tb.toml")),
    ("nearline-18tb", include_str!("../profiles/nearline-18tb.toml")),
    ("st2000dm006", include_str!("../profiles/st2000dm006.toml")),
];

const HEADS_MAX: u32 = 255;
const CYLINDERS_MAX: u32 = 10_000_000;
const TIME_MAX: Nanos = Nanos::from_secs(1);
/// The three-point seek curve needs three lengths well apart.
const CYLINDERS_MIN_FOR_CURVE: u32 = 10;

// A zone's blocks on one cylinder are counted in 32 bits.
const _: () = assert!(BLOCKS_PER_TRACK_MAX.checked_mul(HEADS_MAX).is_some());

impl Profile {
    /// The profile that `text` describes.
    pub fn parse(text: &str) -> Result<Self, ProfileError> {
        let typed: Typed = toml::from_str(text).map_err(ProfileError::syntax)?;
        typed.check()
    }

    /// The profile of this name that comes with the program.
    pub fn shipped(name: &str) -> Option<Self> {
        let (_, text) = SHIPPED.iter().find(|(shipped, _)| *shipped == name)?;
        Some(Self::parse(text).expect("shipped profiles parse: a test reads them all"))
    }

    /// The names of the profiles that come with the program.
    pub fn names() -> &'static [&'static str] {
        const NAMES: [&str; SHIPPED.len()] = {
            let mut names = [""; SHIPPED.len()];
            let mut at = 0;
            while at < SHIPPED.len() {
                names[at] = SHIPPED[at].0;
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

    pub(crate) fn geometry(&self) -> Arc<Geometry> {
        Arc::clone(&self.geometry)
    }

    /// The moving parts of one drive, whose platter has this phase at time zero.
    pub(crate) fn mechanics(&self, phase: u64) -> Mechanics {
        Mechanics {
            spindle: Spindle::new(self.rpm, phase),
            overhead: self.overhead,
            head_switch: self.head_switch,
            write_settle: self.write_settle,
            seek: Arc::clone(&self.seek),
        }
    }
}

/// What is wrong with the text of a profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProfileError {
    key: String,
    problem: String,
}

impl ProfileError {
    fn new(key: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { key: key.into(), problem: problem.into() }
    }

    #[expect(clippy::needless_pass_by_value, reason = "the shape that map_err wants")]
    fn syntax(error: toml::de::Error) -> Self {
        Self::new("", error.to_string().trim_end())
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

/// A seek curve by what manuals say: `single` for one cylinder, and for every longer seek of `d`
/// cylinders `settle + b sqrt(d) + c d`, with `b` and `c` such that a third of the stroke and the
/// whole stroke take what is given.
struct Curve {
    single: Nanos,
    settle: Nanos,
    third: Nanos,
    full: Nanos,
}

/// The text's own form.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Typed {
    name: String,
    block_size: u32,
    rpm: u32,
    heads: u32,
    overhead: String,
    head_switch: String,
    write_settle: String,
    seek: TypedSeek,
    zone: Vec<TypedZone>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TypedSeek {
    single: Option<String>,
    settle: Option<String>,
    third: Option<String>,
    full: Option<String>,
    points: Option<Vec<(u32, String)>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TypedZone {
    cylinders: u32,
    blocks_per_track: u32,
    track_skew: u32,
    cylinder_skew: u32,
}

impl Typed {
    fn check(self) -> Result<Profile, ProfileError> {
        if self.name.is_empty() {
            return Err(ProfileError::new("name", "is empty"));
        }
        if self.block_size != 512 && self.block_size != 4096 {
            let problem = format!("is {}: expected 512 or 4096", self.block_size);
            return Err(ProfileError::new("block_size", problem));
        }
        within("rpm", self.rpm, 1, RPM_MAX)?;
        within("heads", self.heads, 1, HEADS_MAX)?;
        within("the number of zones", self.zone.len() as u32, 1, CYLINDERS_MAX)?;
        let mut cylinders = 0_u32;
        for (at, zone) in self.zone.iter().enumerate() {
            let key = |name: &str| format!("zone[{at}].{name}");
            let track = zone.blocks_per_track;
            within(&key("cylinders"), zone.cylinders, 1, CYLINDERS_MAX)?;
            within(&key("blocks_per_track"), track, 8, BLOCKS_PER_TRACK_MAX)?;
            within(&key("track_skew"), zone.track_skew, 0, track - 1)?;
            within(&key("cylinder_skew"), zone.cylinder_skew, 0, track - 1)?;
            cylinders = cylinders.saturating_add(zone.cylinders);
        }
        within("the cylinders of all zones", cylinders, 1, CYLINDERS_MAX)?;
        let zones: Vec<Zone> = self.zone.iter().map(TypedZone::zone).collect();
        let geometry = Geometry::new(self.block_size, self.heads, &zones);
        Ok(Profile {
            geometry: Arc::new(geometry),
            rpm: self.rpm,
            overhead: time("overhead", &self.overhead)?,
            head_switch: time("head_switch", &self.head_switch)?,
            write_settle: time("write_settle", &self.write_settle)?,
            seek: self.seek.table(cylinders)?,
            name: self.name,
        })
    }
}

impl TypedZone {
    fn zone(&self) -> Zone {
        Zone {
            cylinder_count: self.cylinders,
            blocks_per_track: self.blocks_per_track,
            track_skew: self.track_skew,
            cylinder_skew: self.cylinder_skew,
        }
    }
}

impl TypedSeek {
    /// The time of every length, on a drive of so many cylinders.
    fn table(&self, cylinders: u32) -> Result<Arc<[u32]>, ProfileError> {
        match self {
            Self {
                single: Some(single),
                settle: Some(settle),
                third: Some(third),
                full: Some(full),
                points: None,
            } => {
                let single = time("seek.single", single)?;
                let settle = time("seek.settle", settle)?;
                let third = time("seek.third", third)?;
                let full = time("seek.full", full)?;
                curve(cylinders, &Curve { single, settle, third, full })
            }
            Self { single: None, settle: None, third: None, full: None, points: Some(points) } => {
                interpolation(cylinders, points)
            }
            _ => {
                let problem = "needs either single, settle, third and full, or points";
                Err(ProfileError::new("seek", problem))
            }
        }
    }
}

/// The times of [`Curve`] for every length on a drive of so many cylinders.
fn curve(cylinders: u32, curve: &Curve) -> Result<Arc<[u32]>, ProfileError> {
    if cylinders < CYLINDERS_MIN_FOR_CURVE {
        let problem = format!(
            "by single, settle, third and full needs at least {CYLINDERS_MIN_FOR_CURVE} \
             cylinders, not {cylinders}: give points"
        );
        return Err(ProfileError::new("seek", problem));
    }
    let [single, a, third, full] =
        [curve.single, curve.settle, curve.third, curve.full].map(|time| time.get() as f64);
    let stroke = f64::from(cylinders - 1);
    // Two equations, u = b sqrt(d) + c d at a third of the stroke and at all of it.
    let (x1, y1, u1) = ((stroke / 3.0).sqrt(), stroke / 3.0, third - a);
    let (x2, y2, u2) = (stroke.sqrt(), stroke, full - a);
    let determinant = x1 * y2 - x2 * y1;
    let b = (u1 * y2 - u2 * y1) / determinant;
    let c = (x1 * u2 - x2 * u1) / determinant;
    let time = |length: u32| match length {
        0 => 0.0,
        1 => single,
        // Sums, products and square roots round alike everywhere (IEEE 754).
        _ => a + b * f64::from(length).sqrt() + c * f64::from(length),
    };
    // A negative time becomes zero and is found out by what follows. (Measured tables do fall here
    // and there; a curve that falls has been given times that no arm keeps.)
    let table: Arc<[u32]> = (0..cylinders).map(|length| time(length).round() as u32).collect();
    if let Some(at) = (1..table.len()).find(|&at| table[at] < table[at - 1]) {
        let problem = format!("takes longer over {} cylinders than over {at}", at - 1);
        return Err(ProfileError::new("seek", problem));
    }
    Ok(table)
}

/// Straight lines between the points.
fn interpolation(cylinders: u32, points: &[(u32, String)]) -> Result<Arc<[u32]>, ProfileError> {
    let key = |at: usize| format!("seek.points[{at}]");
    let mut table = vec![0_u32; 1];
    let mut last: Option<(u32, Nanos)> = None;
    for (at, (length, text)) in points.iter().enumerate() {
        let reached = time(&key(at), text)?;
        let (length_before, before) = last.unwrap_or((*length, reached));
        let in_order = if last.is_none() { *length == 1 } else { *length > length_before };
        if !in_order || *length > CYLINDERS_MAX {
            let problem = format!(
                "is a length of {length}: expected lengths that start with 1, rise, and end by \
                 {CYLINDERS_MAX}"
            );
            return Err(ProfileError::new(key(at), problem));
        }
        let span = u64::from(length - length_before).max(1);
        for step in u64::from(last.is_some())..=u64::from(length - length_before) {
            let sum = before.get() * (span - step) + reached.get() * step;
            // Times are at most a second, which is less than 2^32 ns.
            table.push(((sum + span / 2) / span) as u32);
        }
        last = Some((*length, reached));
    }
    let stroke = cylinders - 1;
    if table.len() <= stroke as usize {
        let end = last.map_or(0, |(length, _)| length);
        let problem = format!("end at {end} cylinders: expected at least the stroke, {stroke}");
        return Err(ProfileError::new("seek.points", problem));
    }
    table.truncate(cylinders as usize);
    Ok(table.into())
}

fn within(key: &str, value: u32, least: u32, most: u32) -> Result<(), ProfileError> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(ProfileError::new(key, format!("is {value}: expected {least} to {most}")))
}

fn time(key: &str, text: &str) -> Result<Nanos, ProfileError> {
    let time: Nanos = text.parse().map_err(|error: levelhead_units::ParseUnitError| {
        ProfileError::new(key, error.to_string())
    })?;
    if time > TIME_MAX {
        return Err(ProfileError::new(key, format!("is {time}: expected at most {TIME_MAX}")));
    }
    Ok(time)
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn a_curve_goes_through_the_times_given() {
        let [single, settle, third, full] = [230, 1_200, 8_200, 17_100].map(Nanos::from_micros);
        let table = curve(3_001, &Curve { single, settle, third, full }).unwrap();
        assert_eq!(table.len(), 3_001);
        for (length, time) in [(0, Nanos::ZERO), (1, single), (1_000, third), (3_000, full)] {
            assert_eq!(u64::from(table[length]), time.get(), "{length}");
        }
        assert!(table.is_sorted());
        assert!(u64::from(table[2]) > settle.get());
    }

    #[track_caller]
    fn check_refused(from: &str, to: &str, expected: &str) {
        assert!(EXAMPLE.contains(from), "{from}");
        let error = Profile::parse(&EXAMPLE.replace(from, to)).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
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
        check_refused("cylinders = 10", "cylinders = 11", "end at 9 cylinders: expected at least");
        check_refused("[9, \"5.5ms\"]", "[2, \"5.5ms\"]", "seek.points[2] is a length of 2");
        check_refused("\"0.5ms\"", "\"0.5\"", "overhead '0.5' is not a time");
        check_refused("\"0.5ms\"", "\"2s\"", "overhead is 2s: expected at most 1s");
        check_refused("rpm = 6000", "spin = 6000", "spin");
        check_refused("points =", "single = \"1ms\"\npoints =", "seek needs either");
        check_refused(
            "points = [[1, \"1.5ms\"], [3, \"4ms\"], [9, \"5.5ms\"]]",
            "single = \"1ms\"\nsettle = \"2ms\"\nthird = \"9ms\"\nfull = \"2ms\"",
            "seek takes longer",
        );
    }
}
