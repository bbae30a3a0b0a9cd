//! `lec.fig11`: what it costs to change a few sectors of each codeword.

use std::sync::Arc;

use levelhead_block::{Buf, Command, Durability, Payload, Piece, Request, ZeroTail};
use levelhead_drive::{Drive, Profile, Settings};
use levelhead_fs::Update;
use levelhead_stats::Streams;
use levelhead_trace::{FileId, Habit, Stage, Step};
use levelhead_units::{Bytes, Extent, Instant, Lba, SECTOR_SIZE, Sectors};

use super::{CODES, least};
use crate::Lone;
use crate::mounted::{Compact, SyncEnds};
use crate::studies::files::{BED, FilesBed, Redundancy};
use crate::studies::plan::{Cell, Measured};
use crate::studies::{Ask, Drawing, Head, Row, Study, StudyPlan, Takes, Unit};

pub(super) const FIG_11: Study = Study {
    name: "lec.fig11",
    title: "What changing 50 or 200 sectors of each codeword of 255 costs more than without a code",
    source: "[LEC17], Fig. 11",
    says: "Computing the redundancy from the difference is better than from scratch at both, and clearly so at 50 sectors; no numbers \
           in the text.",
    bed: BED,
    seeds_quick: 2,
    seeds_full: 5,
    takes: Takes::Nothing,
    plan,
};

/// Sectors that are changed in each codeword.
const CHANGED: [u64; 2] = [50, 200];

/// Memory for so little that nothing old is in it.
const CACHE: Sectors = Sectors::new(256);

const WAYS: [(&str, Update); 2] =
    [("scratch", Update::Scratch), ("difference", Update::Difference)];

/// How the changes come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Coming {
    /// Each when the redundancy of the one before is in its place.
    OneAtATime,
    /// Each when the one before is durable; redundancy follows for many at once.
    Synced,
}

impl Coming {
    const ALL: [(Self, &str); 2] = [(Self::OneAtATime, "one at a time"), (Self::Synced, "synced")];
}

fn plan(ask: &Ask) -> Result<StudyPlan, String> {
    let codewords = ask.pick(60, 2_000);
    let mut plan = StudyPlan::default();
    let mut names = Vec::new();
    for (coming, manner) in Coming::ALL {
        for (rate, _) in CODES {
            let code = least(255, rate)?;
            for changed in CHANGED {
                let case = format!("{},{}, {changed} sectors, {manner}", code.redundant, code.data);
                let updates = Updates { codewords, data: code.data, changed, coming };
                let perfect = FilesBed { cache: Some(CACHE), ..FilesBed::PERFECT };
                let base = format!("{case}, no code");
                plan.cells.push(updates.cell(base.clone(), perfect));
                let plain = format!("{case}, plain writes");
                plan.cells.push(Cell::new(plain.clone(), move |seed| updates.plain(seed)));
                for (way, update) in WAYS {
                    let redundancy = Redundancy::Fixed(code);
                    let name = format!("{case}, {way}");
                    let bed = FilesBed { redundancy, update, ..perfect };
                    plan.cells.push(updates.cell(name.clone(), bed));
                    let head = Head::new(case.clone(), format!("{way}, over no code"));
                    plan.rows.push(Row::change(head, "latency", [name.clone(), base.clone()]));
                    let (without, plain) = (base.clone(), plain.clone());
                    let head = Head::new(case.clone(), way);
                    plan.rows.push(Row::new(head, Unit::Percent, move |seed| {
                        let by = |cell: &str| seed.get(cell, "latency");
                        (by(&name) - by(&without)) / by(&plain) * 100.0
                    }));
                }
                let [scratch, difference] = WAYS.map(|(way, _)| format!("{case}, {way}"));
                let head = Head::new(case.clone(), "scratch less difference");
                let over = plain.clone();
                plan.rows.push(Row::new(head, Unit::Percent, move |seed| {
                    let by = |cell: &str| seed.get(cell, "latency");
                    (by(&scratch) - by(&difference)) / by(&over) * 100.0
                }));
                plan.rows.push(Row::of(base, "latency", Unit::Millis));
                plan.rows.push(Row::of(plain, "latency", Unit::Millis));
                if coming == Coming::OneAtATime {
                    names.push((format!("{}, {changed}", code.redundant), case));
                }
            }
        }
    }
    plan.drawings.push(Drawing::beside_paper(
        "Added latency by code and sectors changed, one at a time",
        "added latency (%)",
        &["scratch", "difference"],
        &names,
    ));
    plan.remarks = vec![
        "Codewords in random order; nothing old is in memory. Latency is the time of all changes over their number. One at a time: a \
         change begins when the redundancy of the one before is in its place. Synced: when that is durable, and the redundancy of many \
         is computed together, as the mounted filesystem does it, in the order of the disk: then scratch reads codewords that lie side by \
         side in one go, and is the cheaper way where most of their sectors have changed."
            .to_owned(),
        "A change is written to the journal and then to its place, with and without a code, so that no power cut leaves half of it: \
         the paper's filesystem promises nothing of the kind. So what the code adds is set against plain writes in place on the \
         bare drive, the paper's kind of baseline; over no code sets it against our filesystem without a code."
            .to_owned(),
    ];
    Ok(plan)
}

/// Some sectors of each codeword of a file are changed.
#[derive(Clone, Copy, Debug)]
struct Updates {
    codewords: u64,
    /// Data sectors of each.
    data: u64,
    changed: u64,
    coming: Coming,
}

impl Updates {
    fn cell(self, name: String, bed: FilesBed) -> Cell {
        Cell::new(name, move |seed| self.measure(&bed, seed))
    }

    fn measure(&self, bed: &FilesBed, seed: u64) -> Result<Measured, String> {
        let sync = match self.coming {
            Coming::OneAtATime => SyncEnds::Redundant,
            Coming::Synced => SyncEnds::Durable,
        };
        let mut mounted = FilesBed { sync, ..*bed }.mount(seed)?;
        let mut run = |stage: &Stage| mounted.carry_out(stage).map_err(|error| error.to_string());
        run(&self.written())?;
        let took = run(&self.changes(seed))?;
        Ok(Measured::default().with("latency", took.all.as_millis_f64() / self.codewords as f64))
    }

    /// The same changes as plain writes to a drive, one after the other.
    fn plain(&self, seed: u64) -> Result<Measured, String> {
        let profile = Profile::shipped("nearline-2tb").ok_or("no drive nearline-2tb")?;
        let drive = Drive::new(profile, Settings::PLAIN, Streams::new(seed), "disk");
        let mut lone = Lone::over(drive.map_err(|error| error.to_string())?, Compact::default());
        let count = Sectors::new(self.changed);
        let piece = Piece::whole(Arc::new(Buf::zeroed(count)));
        for (name, place) in (0..).zip(self.places(seed)) {
            let command = Command::Write {
                extent: Extent::new(Lba::new(place), count),
                durability: Durability::Durable,
                zero_tail: ZeroTail::None,
            };
            let request = Request::new(command, Payload::Pieces(vec![piece.clone()]));
            lone.submit(lone.now(), name, request);
            lone.run_out();
        }
        let time = lone.now().saturating_since(Instant::ZERO);
        Ok(Measured::default().with("latency", time.as_millis_f64() / self.codewords as f64))
    }

    /// The first sector of each change, as data of the file.
    fn places(&self, seed: u64) -> Vec<u64> {
        let mut rng = Streams::new(seed).stream("updates");
        let mut order: Vec<u64> = (0..self.codewords).collect();
        for at in (1..order.len()).rev() {
            order.swap(at, rng.below(at as u64 + 1) as usize);
        }
        let place = |codeword| codeword * self.data + rng.below(self.data - self.changed + 1);
        order.into_iter().map(place).collect()
    }

    fn written(&self) -> Stage {
        const FILE: FileId = FileId(0);
        let length = sectors(self.data);
        let write = |at| Step::Write { file: FILE, offset: sectors(at * self.data), length };
        let mut steps = vec![Step::Create { file: FILE, habit: Habit::Changing }];
        steps.extend((0..self.codewords).map(write));
        steps.push(Step::Sync(FILE));
        Stage { name: "written", is_measured: false, window: 4, steps }
    }

    fn changes(&self, seed: u64) -> Stage {
        const FILE: FileId = FileId(0);
        let length = sectors(self.changed);
        let mut steps = Vec::new();
        for place in self.places(seed) {
            let offset = sectors(place);
            steps.extend([Step::Write { file: FILE, offset, length }, Step::Sync(FILE)]);
        }
        Stage { name: "changed", is_measured: true, window: 1, steps }
    }
}

fn sectors(count: u64) -> Bytes {
    Bytes::new(count * SECTOR_SIZE as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::studies::Estimate;
    use crate::studies::tests::measured_rows;

    #[test]
    fn difference_is_cheaper_than_scratch() {
        let ask = Ask { quick: true, seed: 7, seeds: 1, traces: Vec::new() };
        let mut plan = plan(&ask).unwrap();
        plan.cells.retain(|cell| cell.name.starts_with("5,250"));
        plan.rows.retain(|row| row.case.starts_with("5,250"));
        let rows = measured_rows(&plan, 7);
        let cheaper = rows.iter().filter(|row| row.metric == "scratch less difference");
        assert_eq!(cheaper.clone().count(), 4);
        // Computed together, in the order of the disk, whole codewords are read one behind the other: where most of them has changed, scratch
        // is the cheaper one then.
        let is_one = |row: &&Estimate| !row.case.contains("200 sectors, synced");
        assert!(cheaper.clone().filter(is_one).all(|row| row.ours > 0.0), "{rows:?}");
        // A few sectors gain more than many.
        let by = |part: &str| cheaper.clone().find(|row| row.case.contains(part)).unwrap().ours;
        assert!(by("50 sectors, synced") > by("200 sectors, synced"), "{rows:?}");
    }
}
