//! `sdhdd.fig11`: files of kind B that are updated in place.

use std::sync::Arc;

use levelhead_block::{Buf, Command, Durability, Effort, Payload, Piece, Request, ZeroTail};
use levelhead_drive::{Drive, Profile, Settings};
use levelhead_planner::kinds::{UpdateTimes, Updates, updates};
use levelhead_planner::system::pages;
use levelhead_stats::{Rng, Streams};
use levelhead_trace::{FileId, Habit, Stage, Step};
use levelhead_units::{Bytes, Extent, Instant, Lba, Nanos, SECTOR_SIZE, Sectors};

use super::speed::{CLOSED, DISK, bars, loss};
use super::{FORCED, KINDS};
use crate::Lone;
use crate::mounted::{Compact, Kinds, Room};
use crate::studies::files::{BED, FilesBed};
use crate::studies::plan::{Cell, Measured};
use crate::studies::{Ask, Head, Row, Study, StudyPlan, Takes, Unit};

pub(super) const FIG_11: Study = Study {
    name: "sdhdd.fig11",
    title: "Updates a second of files of kind B through an undo log",
    source: "[SDHDD], Fig. 11",
    says: "Updates in place of 1, 8, 16 or 32 sectors lose around 30 %, weakly dependent on their size.",
    bed: BED,
    seeds_quick: 1,
    seeds_full: 3,
    takes: Takes::Nothing,
    plan,
};

/// Sectors of each update.
const SIZES: [u64; 4] = [1, 8, 16, 32];

/// How many updates are under way.
const MANNERS: [(u32, &str); 2] = [(1, "one at a time"), (8, "eight at a time")];

/// The paper names no failure rate here: the highest that it looks at.
const RATE: f64 = 1e-2;

/// Time of moving the head within 2 GB, where a log is near: half a rotation, and a short seek.
const NEAR: Nanos = Nanos::from_millis(6);

const LOGGED: &str = "kind B";
const NO_CODE: &str = "no code, perfect drive";

/// How one cell updates.
#[derive(Clone, Copy, Debug)]
struct Updating {
    files: u32,
    count: u64,
    sectors: u64,
    together: u32,
}

fn plan(ask: &Ask) -> Result<StudyPlan, String> {
    let bed = FilesBed::forced(Kinds::All(levelhead_fs::FileKind::B), RATE)?;
    let mut plan = StudyPlan::default();
    let mut groups = Vec::new();
    for sectors in SIZES {
        let case = format!("{sectors} sectors");
        for (together, manner) in MANNERS {
            let (files, count) = (ask.pick(100, 400), ask.pick(600, 4_000));
            let updating = Updating { files, count, sectors, together };
            let name = |what: &str| format!("{case}, {manner}, {what}");
            let (plain, logged, base) = (name("plain"), name(LOGGED), name(NO_CODE));
            plan.cells.push(Cell::new(plain.clone(), move |seed| updating.plain(seed)));
            for (name, bed) in [(&logged, bed), (&base, FilesBed::PERFECT)] {
                plan.cells.push(Cell::new(name.clone(), move |seed| updating.measure(&bed, seed)));
            }
            let rate_over = |metric: String, base: String| {
                let logged = logged.clone();
                Row::new(Head::new(case.clone(), metric), Unit::Percent, move |seed| {
                    loss(seed.get(&base, "rate"), seed.get(&logged, "rate"))
                })
            };
            plan.rows.push(rate_over(manner.to_owned(), plain.clone()).paper(30.0));
            plan.rows
                .push(rate_over(format!("{manner}, over our filesystem without a code"), base));
            let head = Head::new(case.clone(), format!("{manner}, plain updates a second"));
            plan.rows.push(Row::new(head, Unit::PerSecond, move |seed| seed.get(&plain, "rate")));
            for (place, log_time) in [("near", NEAR), ("anywhere", DISK.seek_time)] {
                let of = Updates {
                    count: sectors,
                    pages: pages(256),
                    together: together.into(),
                    log_time,
                };
                let UpdateTimes { bare, logged } = updates(DISK, of);
                let head = Head::new(case.clone(), format!("{manner}, log {place}, closed form"));
                plan.rows.push(Row::exact(head, Unit::Percent, (1.0 - bare / logged) * 100.0));
            }
        }
        groups.push(case);
    }
    plan.remarks = vec![
        "Each update is synced. Plain: the same updates of the same layout on the bare drive, without failures, a code or a log: the sectors \
         and their complementary ones are read and written in place, a rotation later. The paper does not say whether its updates read what \
         they do not replace."
            .to_owned(),
        "Our filesystem logs what is new, in its journal in the middle of the disk, and not what was there: an update is safe after one \
         write and a flush, and reaches its place later, together with others. So there is less to do before the answer than with an undo \
         log, and the time ends when everything is in its place. Files lie in 32 places all over the disk."
            .to_owned(),
        CLOSED.to_owned(),
        "The closed form is of the paper's undo log: near, within 2 GB of the files, the head moves for 6 ms, anywhere for 10 ms; one write \
         of the log serves all updates that are done together."
            .to_owned(),
        KINDS.to_owned(),
        FORCED.to_owned(),
    ];
    let metrics = MANNERS.map(|(_, manner)| manner);
    plan.drawings.push(bars("Loss of updates a second, by size", &metrics, &groups));
    Ok(plan)
}

/// The size of each file.
const PAGES: u64 = 1_200;

/// Pairs of places in which files lie.
const PAIRS: u64 = 16;

impl Updating {
    fn room(&self) -> Room {
        let data = u64::from(self.files) * PAGES;
        Room { pairs: PAIRS, size: Sectors::new(data * 4 / 3 / (2 * PAIRS)) }
    }

    fn measure(&self, bed: &FilesBed, seed: u64) -> Result<Measured, String> {
        let bed = FilesBed { room: Some(self.room()), ..*bed };
        let mut mounted = bed.mount(seed)?;
        let mut run = |stage: &Stage| mounted.carry_out(stage).map_err(|error| error.to_string());
        run(&self.written())?;
        bed.begin_to_fail(&mut mounted)?;
        let took = mounted.carry_out(&self.updates(seed)).map_err(|error| error.to_string())?;
        // What is known of the files is in memory by then.
        let begun = took.ends[self.files as usize - 1];
        let time = took.all.saturating_sub(begun);
        Ok(Measured::default().with("rate", self.count as f64 / time.as_secs_f64()))
    }

    fn written(&self) -> Stage {
        let mut steps = Vec::new();
        for file in (0..self.files).map(FileId) {
            steps.push(Step::Create { file, habit: Habit::Random });
            steps.extend((0..PAGES).step_by(240).map(|page| Step::Write {
                file,
                offset: pages_long(page),
                length: pages_long(240),
            }));
        }
        Stage { name: "written", is_measured: false, window: 8, steps }
    }

    /// A byte of each file, so that what is known of it is in memory; then the updates, as many under way as there may be.
    fn updates(&self, seed: u64) -> Stage {
        let mut rng = Streams::new(seed).stream("updates");
        let first = |file| Step::Read { file, offset: Bytes::new(0), length: Bytes::new(1) };
        let mut steps: Vec<Step> = (0..self.files).map(FileId).map(first).collect();
        for _ in (0..self.count).step_by(self.together as usize) {
            let files = self.some_files(&mut rng);
            for &file in &files {
                let offset = pages_long(self.place(&mut rng));
                steps.push(Step::Write { file, offset, length: pages_long(self.sectors) });
            }
            steps.extend(files.into_iter().map(Step::Sync));
        }
        Stage { name: "updated", is_measured: true, window: self.together, steps }
    }

    /// Different ones, as many as are updated together.
    fn some_files(&self, rng: &mut Rng) -> Vec<FileId> {
        let mut files: Vec<FileId> = Vec::new();
        while files.len() < self.together as usize {
            let file = FileId(rng.below(self.files.into()) as u32);
            if !files.contains(&file) {
                files.push(file);
            }
        }
        files
    }

    /// The first page of an update.
    fn place(&self, rng: &mut Rng) -> u64 {
        rng.below(PAGES - self.sectors)
    }

    /// The same on a bare drive: what an update touches is read, and written when it has come.
    fn plain(&self, seed: u64) -> Result<Measured, String> {
        let profile = Profile::shipped("nearline-2tb").ok_or("no drive nearline-2tb")?;
        let drive = Drive::new(profile, Settings::PLAIN, Streams::new(seed), "disk");
        let mut lone = Lone::over(drive.map_err(|error| error.to_string())?, Compact::default());
        let mut rng = Streams::new(seed).stream("updates");
        let set = pages(256);
        let file_sectors = PAGES / set * (set + 1);
        let places = lone.size().get() / file_sectors;
        let extent = |rng: &mut Rng| {
            let (place, page) = (rng.below(places), self.place(rng));
            let last = page + self.sectors - 1;
            let first = page + page / set;
            let end = (last / set + 1) * (set + 1);
            Extent::new(Lba::new(place * file_sectors + first), Sectors::new(end - first))
        };
        // Reads have even names and the writes that follow them odd ones.
        let mut begun = 0;
        let mut extents = std::collections::BTreeMap::new();
        let mut ended = 0;
        while ended < self.count {
            while extents.len() < self.together as usize && begun < self.count {
                let extent = extent(&mut rng);
                extents.insert(2 * begun, extent);
                let read =
                    Request::new(Command::Read { extent, effort: Effort::Full }, Payload::None);
                lone.submit(lone.now(), 2 * begun, read);
                begun += 1;
            }
            for (name, _) in lone.run_on() {
                let extent = extents.remove(&name).ok_or("it was not asked for")?;
                if name % 2 == 1 {
                    ended += 1;
                    continue;
                }
                extents.insert(name + 1, extent);
                lone.submit(lone.now(), name + 1, write(extent));
            }
        }
        let time = lone.now().saturating_since(Instant::ZERO);
        Ok(Measured::default().with("rate", self.count as f64 / time.as_secs_f64()))
    }
}

fn write(extent: Extent) -> Request {
    let piece = Piece::whole(Arc::new(Buf::zeroed(extent.sectors)));
    let (durability, zero_tail) = (Durability::Durable, ZeroTail::None);
    let command = Command::Write { extent, durability, zero_tail };
    Request::new(command, Payload::Pieces(vec![piece]))
}

fn pages_long(pages: u64) -> Bytes {
    Bytes::new(pages * SECTOR_SIZE as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The paper's undo log loses 30 %.
    #[test]
    fn updates_lose_less_than_with_an_undo_log() {
        let bed = FilesBed::forced(Kinds::All(levelhead_fs::FileKind::B), RATE).unwrap();
        for (together, most) in [(1, 30.0), (8, 15.0)] {
            let updating = Updating { files: 100, count: 400, sectors: 8, together };
            let plain = updating.plain(7).unwrap().values["rate"];
            let logged = updating.measure(&bed, 7).unwrap().values["rate"];
            let lost = loss(plain, logged);
            assert!((-50.0..most).contains(&lost), "{together} together: {lost} %");
        }
    }

    /// Half a rotation and a seek to read, and a rotation to write.
    #[test]
    fn plain_updates_take_a_rotation_more_than_reads() {
        let updating = Updating { files: 100, count: 300, sectors: 8, together: 1 };
        let rate = updating.plain(7).unwrap().values["rate"];
        assert!((40.0..55.0).contains(&rate), "{rate}");
        let eight = Updating { together: 8, ..updating }.plain(7).unwrap().values["rate"];
        assert!(eight > 1.1 * rate, "{eight} {rate}");
    }
}
