//! The cells of the sweep: its axes, the centres, and the draw.

use std::fmt;

use levelhead_drive::Faults;
use levelhead_stats::{Rng, Streams};

/// Cells of the full study; those that the axes leave open are drawn.
pub(super) const CELLS: usize = 600;

/// What cells are drawn from.
const DRAW_SEED: u64 = 20_261;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Array {
    pub(super) name: &'static str,
    pub(super) spec: &'static str,
    pub(super) redundant: usize,
}

pub(super) const ARRAYS: [Array; 3] = [
    Array { name: "eRAID(2)", spec: "eraid:5+1,e=2,chunk=8KiB", redundant: 1 },
    Array { name: "RAID-5", spec: "raid5:6,chunk=8KiB", redundant: 1 },
    Array { name: "RAID-6", spec: "raid6:6+2,chunk=8KiB", redundant: 2 },
];

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Size {
    pub(super) name: &'static str,
    pub(super) sizes: &'static str,
}

pub(super) const SIZES: [Size; 6] = [
    Size { name: "4 kB", sizes: "4KiB" },
    Size { name: "8 kB", sizes: "8KiB" },
    Size { name: "24 kB", sizes: "24KiB" },
    Size { name: "40 kB", sizes: "40KiB" },
    Size { name: "80 kB", sizes: "80KiB" },
    Size { name: "mix", sizes: "8KiB/16KiB/24KiB/32KiB/40KiB/48KiB/56KiB/64KiB/72KiB/80KiB" },
];

/// Shares of reads, in percent.
pub(super) const READS: [u32; 2] = [100, 70];

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Offered {
    /// Poisson arrivals, at a rate in percent of the one that `normal` carries.
    Open(u32),
    /// A fixed number of requests outstanding.
    Closed(usize),
}

pub(super) const OFFERED: [Offered; 16] = [
    Offered::Open(10),
    Offered::Open(25),
    Offered::Open(40),
    Offered::Open(55),
    Offered::Open(70),
    Offered::Open(80),
    Offered::Open(90),
    Offered::Open(100),
    Offered::Open(110),
    Offered::Open(120),
    Offered::Closed(1),
    Offered::Closed(4),
    Offered::Closed(16),
    Offered::Closed(64),
    Offered::Closed(256),
    Offered::Closed(1024),
];

impl fmt::Display for Offered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open(percent) => write!(f, "open {percent} %"),
            Self::Closed(outstanding) => write!(f, "closed {outstanding}"),
        }
    }
}

/// How many drives are in trouble.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Many {
    One,
    /// As many as the layout can lose.
    Redundant,
    All,
}

impl fmt::Display for Many {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::One => "one",
            Self::Redundant => "k",
            Self::All => "all",
        })
    }
}

/// What is wrong with the drives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Trouble {
    Healthy,
    /// `permille` of 1,000 sectors fail at first.
    Failing {
        permille: u32,
        many: Many,
    },
    /// Slower by the factor `tenths` / 10, always or by turns.
    Slow {
        tenths: u32,
        many: Many,
        lasting: Lasting,
    },
}

/// For how long a drive is slow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Lasting {
    Always,
    /// For this number of milliseconds in each period of three times that length.
    Millis(u64),
}

const MILD_TENTHS: u32 = 23;
const SLOW_TENTHS: [u32; 7] = [12, 15, 23, 50, 100, 300, 1_000];
const LASTING: [Lasting; 6] = [
    Lasting::Always,
    Lasting::Millis(10),
    Lasting::Millis(100),
    Lasting::Millis(1_000),
    Lasting::Millis(10_000),
    Lasting::Millis(60_000),
];

pub(super) fn troubles() -> Vec<Trouble> {
    let mut troubles = vec![Trouble::Healthy];
    for permille in [5, 20] {
        troubles.extend([Many::One, Many::All].map(|many| Trouble::Failing { permille, many }));
    }
    for tenths in SLOW_TENTHS {
        for many in [Many::One, Many::Redundant] {
            troubles.extend(LASTING.map(|lasting| Trouble::Slow { tenths, many, lasting }));
        }
    }
    troubles
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Healthy => f.write_str("healthy"),
            Self::Failing { permille, many } => {
                write!(f, "{} % on {many}", f64::from(*permille) / 10.0)
            }
            Self::Slow { tenths, many, lasting } => {
                write!(f, "{many} {}x slower", f64::from(*tenths) / 10.0)?;
                match lasting {
                    Lasting::Always => Ok(()),
                    Lasting::Millis(millis) => write!(f, " for {millis} ms of {}", 3 * millis),
                }
            }
        }
    }
}

impl Trouble {
    /// How each drive misbehaves; the last entry stands for all further drives.
    pub(super) fn faults(self, redundant: usize) -> Vec<Faults> {
        let (text, many) = match self {
            Self::Healthy => return vec![Faults::NONE],
            Self::Failing { permille, many } => {
                let percent = f64::from(permille) / 10.0;
                (format!("retry-rate={percent}%,rotations=3,adjacency=2"), many)
            }
            Self::Slow { tenths, many, lasting } => {
                let factor = f64::from(tenths) / 10.0;
                let text = match lasting {
                    Lasting::Always => format!("slowdown={factor}"),
                    Lasting::Millis(millis) => {
                        format!("periodic={}ms/{millis}ms/{factor}/{millis}ms", 3 * millis)
                    }
                };
                (text, many)
            }
        };
        let bad: Faults = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
        let count = match many {
            Many::One => 1,
            Many::Redundant => redundant,
            Many::All => return vec![bad],
        };
        let mut faults = vec![bad; count];
        faults.push(Faults::NONE);
        faults
    }

    /// Whether it is no slower than slow drives in the field usually are.
    pub(super) fn is_mild(self) -> bool {
        match self {
            Self::Slow { tenths, .. } => tenths <= MILD_TENTHS,
            Self::Healthy | Self::Failing { .. } => false,
        }
    }

    /// The name of its group in a figure.
    pub(super) fn family(self) -> String {
        match self {
            Self::Healthy | Self::Failing { .. } => self.to_string(),
            Self::Slow { tenths, lasting, .. } => {
                let factor = f64::from(tenths) / 10.0;
                let how = if lasting == Lasting::Always { "lasting" } else { "in episodes" };
                format!("{factor}x slower, {how}")
            }
        }
    }

    /// For how long a cell must run to see it a few times, in seconds.
    pub(super) fn span(self) -> f64 {
        match self {
            Self::Slow { lasting: Lasting::Millis(millis), .. } => {
                let length = millis as f64 / 1e3;
                if length >= 30.0 { 3.0 * length } else { 9.0 * length }
            }
            Self::Healthy | Self::Failing { .. } | Self::Slow { .. } => 0.0,
        }
    }
}

/// One point of the sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Point {
    pub(super) array: Array,
    pub(super) size: Size,
    pub(super) reads: u32,
    pub(super) offered: Offered,
    pub(super) trouble: Trouble,
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { array, size, reads, offered, trouble } = self;
        write!(f, "{}, {}, {reads} % reads, {offered}, {trouble}", array.name, size.name)
    }
}

fn centres() -> [Point; 3] {
    let [eraid, raid5, raid6] = ARRAYS;
    let slow = Trouble::Slow { tenths: 100, many: Many::One, lasting: Lasting::Always };
    [
        Point {
            array: eraid,
            size: SIZES[3],
            reads: 100,
            offered: Offered::Open(55),
            trouble: Trouble::Healthy,
        },
        Point {
            array: raid5,
            size: SIZES[1],
            reads: 100,
            offered: Offered::Closed(64),
            trouble: Trouble::Failing { permille: 20, many: Many::All },
        },
        Point {
            array: raid6,
            size: SIZES[5],
            reads: 70,
            offered: Offered::Open(40),
            trouble: slow,
        },
    ]
}

/// Every cell, each once, in the order of their making.
pub(super) fn points() -> Vec<Point> {
    let mut points: Vec<Point> = Vec::with_capacity(CELLS);
    let mut add = |point: Point| {
        // With one redundant drive, k drives are one.
        let one = match point.trouble {
            Trouble::Slow { tenths, many: Many::Redundant, lasting }
                if point.array.redundant == 1 =>
            {
                Trouble::Slow { tenths, many: Many::One, lasting }
            }
            other => other,
        };
        let point = Point { trouble: one, ..point };
        if !points.contains(&point) {
            points.push(point);
        }
        points.len()
    };
    for centre in centres() {
        let arrays = ARRAYS.into_iter().map(|array| Point { array, ..centre });
        let sizes = SIZES.into_iter().map(|size| Point { size, ..centre });
        let reads = READS.into_iter().map(|reads| Point { reads, ..centre });
        let loads = OFFERED.into_iter().map(|offered| Point { offered, ..centre });
        let troubles = troubles().into_iter().map(|trouble| Point { trouble, ..centre });
        for point in arrays.chain(sizes).chain(reads).chain(loads).chain(troubles) {
            add(point);
        }
    }
    let mut rng = Streams::new(DRAW_SEED).stream("level.sweep");
    let troubles = troubles();
    loop {
        let point = Point {
            array: *pick(&mut rng, &ARRAYS),
            size: *pick(&mut rng, &SIZES),
            reads: *pick(&mut rng, &READS),
            offered: *pick(&mut rng, &OFFERED),
            // Drives that are well and drives that fail are no rarer than slow ones.
            trouble: match rng.below(3) {
                0 => *pick(&mut rng, &troubles[..5]),
                _ => *pick(&mut rng, &troubles[5..]),
            },
        };
        if add(point) >= CELLS {
            return points;
        }
    }
}

fn pick<'a, T>(rng: &mut Rng, from: &'a [T]) -> &'a T {
    &from[rng.below(from.len() as u64) as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_of_cells_is_fixed_and_has_every_value_of_every_axis() {
        let points = points();
        assert_eq!(points.len(), CELLS);
        assert!(ARRAYS.iter().all(|array| points.iter().any(|point| point.array == *array)));
        assert!(SIZES.iter().all(|size| points.iter().any(|point| point.size == *size)));
        assert!(OFFERED.iter().all(|one| points.iter().any(|point| point.offered == *one)));
        assert!(troubles().iter().all(|one| points.iter().any(|point| point.trouble == *one)));
        let text: String = points.iter().map(|point| format!("{point}\n")).collect();
        let hash = levelhead_stats::hash_of(0, &text.bytes().map(u64::from).collect::<Vec<_>>());
        assert_eq!(
            hash, 214_945_734_143_900_655,
            "the cells were drawn before anything was tuned on them"
        );
    }
}
