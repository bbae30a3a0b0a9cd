//! The measured rows of `lec.fig10`: files of the drawn sizes on our filesystem, and the sectors that it gave them.

use levelhead_planner::Code;
use levelhead_planner::capacity::{Class, FileSizes, overhead};
use levelhead_stats::Streams;
use levelhead_trace::{FileId, Habit, Stage, Step};
use levelhead_units::{Bytes, SECTOR_SIZE};

use crate::studies::files::{FilesBed, Redundancy};
use crate::studies::plan::{Cell, Measured};

/// Files by classes of size, to be written on a filesystem.
#[derive(Clone, Debug)]
pub(super) struct Drawn {
    pub(super) classes: Vec<Class>,
    pub(super) code: Code,
    /// About how many bytes all files have.
    pub(super) volume: u64,
}

/// What a program writes at a time.
const REQUEST: u64 = 1 << 20;

impl Drawn {
    /// A cell with the capacity overhead that was measured, and the planner's for the same files: `measured`, `planned`.
    pub(super) fn cell(self, name: String) -> Cell {
        Cell::new(name, move |seed| self.measure(seed))
    }

    /// Sizes of which each class has its share of the bytes, spread evenly over the sizes of the class.
    fn sizes(&self, seed: u64) -> Vec<u64> {
        let mut rng = Streams::new(seed).stream("sizes");
        let mut sizes = Vec::new();
        for class in &self.classes {
            let (from, to) = (class.from.get(), class.to.get());
            let wanted = (class.share * self.volume as f64) as u64;
            let mut drawn = 0;
            while drawn < wanted {
                let size = from + rng.below(to - from + 1);
                drawn += size;
                sizes.push(size);
            }
        }
        sizes
    }

    fn measure(&self, seed: u64) -> Result<Measured, String> {
        let sizes = self.sizes(seed);
        let bed = FilesBed { redundancy: Redundancy::Fixed(self.code), ..FilesBed::PERFECT };
        let mut mounted = bed.mount(seed)?;
        let mut known = FileSizes::new();
        let mut steps = Vec::new();
        for (file, &size) in (0..).map(FileId).zip(&sizes) {
            known.add(Bytes::new(size), 1);
            steps.push(Step::Create { file, habit: Habit::Sequential });
            steps.extend((0..size).step_by(REQUEST as usize).map(|at| Step::Write {
                file,
                offset: Bytes::new(at),
                length: Bytes::new(REQUEST.min(size - at)),
            }));
        }
        let stage = Stage { name: "written", is_measured: true, window: 8, steps };
        mounted.carry_out(&stage).map_err(|error| error.to_string())?;
        let mut taken = 0;
        for file in (0..sizes.len() as u32).map(FileId) {
            taken += mounted.sectors_of(file).map_err(|error| error.to_string())?;
        }
        let data: u64 = sizes.iter().map(|size| size.div_ceil(SECTOR_SIZE as u64)).sum();
        let measured = (taken - data) as f64 / data as f64;
        let planned = overhead(&known, self.code);
        Ok(Measured::default()
            .with("measured", measured * 100.0)
            .with("planned", planned * 100.0)
            .with("sectors", taken as f64))
    }
}

#[cfg(test)]
mod tests {
    use levelhead_planner::capacity::PAGERANK;

    use super::*;

    #[test]
    fn filesystem_takes_the_sectors_that_the_planner_says() {
        let code = Code { redundant: 5, data: 250 };
        let drawn = Drawn { classes: PAGERANK.to_vec(), code, volume: 40_000_000 };
        let measured = drawn.measure(3).unwrap();
        let [ours, planned] = ["measured", "planned"].map(|name| measured.values[name]);
        assert!((ours - planned).abs() < 1e-9, "{ours} {planned}");
    }
}
