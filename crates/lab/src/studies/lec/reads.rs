//! The measured rows of `lec.fig8`: one file after the other read in sequence on the filesystem, each as a whole.

use levelhead_drive::{RotationList, Rotations};
use levelhead_stats::Summary;
use levelhead_trace::{FileId, Habit, Stage, Step};
use levelhead_units::{Bytes, Nanos, Ratio, SECTOR_SIZE, Sectors};

use crate::studies::files::FilesBed;
use crate::studies::plan::{Cell, Measured};

/// Files of one size that are read, and how their sectors fail.
#[derive(Clone, Copy, Debug)]
pub(super) struct WholeReads {
    pub(super) sectors: u64,
    pub(super) failure_rate: f64,
    pub(super) files: u32,
    /// How often each file is read.
    pub(super) rounds: u32,
}

/// Memory of the filesystem: less than the files have, so that nothing is in it when a file is read again.
const CACHE: Sectors = Sectors::new(1 << 14);

/// What is asked for at a time, and how many of that.
const REQUEST: u64 = 1 << 20;
const WINDOW: u32 = 8;

/// The 99th percentiles of reading a file, in milliseconds.
#[derive(Clone, Copy, Debug)]
struct Tails {
    /// As the drive does it: one retry mends all failed sectors of a command.
    by_command: f64,
    /// If it took a retry for each failed sector, as in the paper: what was retried is taken off, and so much added.
    by_sector: f64,
}

impl WholeReads {
    /// A cell with the 99th percentiles of reading a file without a code, where a retry takes this number of milliseconds on average.
    pub(super) fn retries(self, name: String, retry: u64) -> Cell {
        Cell::new(name, move |seed| {
            let rotations = rotations(retry)?;
            let bed = FilesBed { failure_rate: self.failure_rate, rotations, ..FilesBed::PERFECT };
            let Tails { by_command, by_sector } = self.tails(bed, seed, retry)?;
            Ok(Measured::default().with("by command", by_command).with("by sector", by_sector))
        })
    }

    /// The same with a code, where hardly any read retries: `p99`.
    pub(super) fn coded(self, name: String, length: u64) -> Cell {
        Cell::new(name, move |seed| {
            let coded = self.tails(FilesBed::coded(length, self.failure_rate)?, seed, 0)?;
            Ok(Measured::default().with("p99", coded.by_command))
        })
    }

    fn tails(&self, bed: FilesBed, seed: u64, retry: u64) -> Result<Tails, String> {
        let bed = FilesBed { cache: Some(CACHE), ..bed };
        let mut mounted = bed.mount(seed)?;
        let mut run = |stage: &Stage| mounted.carry_out(stage).map_err(|error| error.to_string());
        run(&self.written())?;
        bed.begin_to_fail(&mut mounted)?;
        let (mut by_command, mut by_sector) = (Vec::new(), Vec::new());
        for at in 0..self.files * self.rounds {
            let before = mounted.counters();
            let stage = self.read(FileId(at % self.files));
            let took = mounted.carry_out(&stage).map_err(|error| error.to_string())?;
            let after = mounted.counters();
            let end = took.ends.iter().max().copied().unwrap_or_default();
            let time = end.saturating_sub(took.ends[1]);
            by_command.push(time);
            let failed = after.sectors_failed - before.sectors_failed;
            let retried = after.retrying.saturating_sub(before.retrying);
            let alone = Nanos::from_millis(retry * failed);
            by_sector.push(time.saturating_sub(retried) + alone);
        }
        let p99 = |times: &mut [Nanos]| Summary::of(times).p99.as_millis_f64();
        let (by_command, by_sector) = (p99(&mut by_command), p99(&mut by_sector));
        Ok(Tails { by_command, by_sector })
    }

    fn parts(&self) -> impl Iterator<Item = (Bytes, Bytes)> {
        let size = self.sectors * SECTOR_SIZE as u64;
        let part = move |at: u64| (Bytes::new(at), Bytes::new(REQUEST.min(size - at)));
        (0..size).step_by(REQUEST as usize).map(part)
    }

    fn written(&self) -> Stage {
        let mut steps = Vec::new();
        for file in (0..self.files).map(FileId) {
            steps.push(Step::Create { file, habit: Habit::Sequential });
            steps.extend(self.parts().map(|(offset, length)| Step::Write { file, offset, length }));
        }
        Stage { name: "written", is_measured: false, window: WINDOW, steps }
    }

    /// The last byte, so that what is known of the file is in memory; when that has come, all of it.
    fn read(&self, file: FileId) -> Stage {
        let last = Bytes::new(self.sectors * SECTOR_SIZE as u64 - 1);
        let known = Step::Read { file, offset: last, length: Bytes::new(1) };
        let mut steps = vec![known, Step::Sync(file)];
        steps.extend(self.parts().map(|(offset, length)| Step::Read { file, offset, length }));
        Stage { name: "read", is_measured: true, window: WINDOW, steps }
    }
}

/// Two numbers of rotations that take this number of milliseconds on average, at 7200 rpm.
fn rotations(retry: u64) -> Result<Rotations, String> {
    let mean = retry as f64 * 120.0 / 1e3;
    let (least, more) = (mean as u32, mean.fract());
    let [less, more] = [1.0 - more, more].map(Ratio::new);
    let shares = [(least, less.ok_or("no share")?), (least + 1, more.ok_or("no share")?)];
    let list = RotationList::new(&shares).map_err(|error| error.to_string())?;
    Ok(Rotations::Listed(list))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A few reads of one case: the closed form says 79 %.
    #[test]
    fn code_cuts_the_tail_by_what_the_closed_form_says() {
        let reads = WholeReads { sectors: 10_000, failure_rate: 5e-3, files: 3, rounds: 7 };
        let of = |cell: Cell| cell.measure(7).unwrap().values;
        let retries = of(reads.retries("retries".to_owned(), 20));
        let coded = of(reads.coded("coded".to_owned(), 255))["p99"];
        let cut = |base: &str| 100.0 * (1.0 - coded / retries[base]);
        assert!((cut("by sector") - 79.0).abs() < 8.0, "{}", cut("by sector"));
        assert!(cut("by command") > 20.0, "{}", cut("by command"));
    }
}
