//! What others do against the write hole, as commands to drives and nothing else: no bytes, no recovery.
//!
//! ```text
//!             bitmap                        log of parity, journal
//!   write --> region marked? --> reads --> record --> places --> answer
//! ```
//!
//! Each model sends the reads and the places of an array without protection, with the commands that its
//! mechanism adds, and answers when the last place is written. All of them are mechanisms of Linux MD, as its own
//! sources and manuals describe them; they were not compared with a running MD:
//!
//! | model | source | what is sent |
//! |---|---|---|
//! | [`Mechanism::None`] | - | reads and places only: says how far these models are from our array without protection |
//! | [`Mechanism::Bitmap`] | `md(4)`, bitmap write-intent logging; `mdadm(8)`, `--bitmap-chunk` and `--delay` | a sector near the beginning of every drive before the first write of a clean region of 64 MiB; writes that wait share it; a region is clean again 5 to 10 s after its last write, which is one more such sector every 5 s |
//! | [`Mechanism::PartialParity`] | the description in `drivers/md/raid5-ppl.c` | to the log at the beginning of the parity's drive a header and, of rows that are written in part, the XOR of what stays: one write with FUA; the next one, with what has come meanwhile, when the writes of this one are in their places |
//! | [`Mechanism::Device`] | `Documentation/driver-api/md/raid5-cache.rst` | all data and parity to a device of its own, in order, with a header a unit of at most 1 MiB; one unit at a time; write-through, which is MD's default |
//!
//! # Assumptions
//!
//! - A1. The stripe cache is as large as it must be; stripes wait for each other nowhere.
//! - A2. The journal's device is one more drive of the same make. With flash it would cost less.
//! - A3. No header of a log is read or written besides the records themselves; a log that is full goes on at its
//!   beginning, as everything before is in its place.
//! - A4. A write lies in one stripe.
//! - A5. Neighbouring sectors of one write are one command a drive; commands of different writes are not merged.
//!
//! It leaves out: what any of them does after a crash, and what each leaves open (see `docs/studies.md`).

mod disks;
mod plan;

use std::collections::{BTreeMap, VecDeque};

use levelhead_array::{Area, Layout, Spec};
use levelhead_block::{Command, Durability, Effort, ZeroTail};
use levelhead_trace::Arrival;
use levelhead_units::{Extent, Instant, Lba, Nanos, Sectors};

use self::disks::{Disks, Happened};
use self::plan::Plan;
use super::figures::{Answered, Sent};
use crate::WorldSettings;
use crate::replay::{BACKLOG_MAX, End, Sending};

/// How an array is protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::studies) enum Mechanism {
    /// Not at all.
    None,
    /// Regions are marked before they are written.
    Bitmap,
    /// A log of partial parities.
    PartialParity,
    /// A journal of all data, on a device of its own.
    Device,
}

/// The size of a region of the bitmap: `mdadm` takes 64 MiB where that suffices.
const REGION: Sectors = Sectors::new(16 << 10);

/// Bits of the bitmap in one sector.
const BITS: u64 = 32_768;

/// Where the bitmap lies on every drive: behind the superblock.
const BITMAP: Lba = Lba::new(2);

/// How often the bitmap is looked through.
const DAEMON_PAUSE: Nanos = Nanos::from_secs(5);

/// Where the log of partial parities lies on every drive.
const LOG: Extent = Extent::new(Lba::new(8), Sectors::new(240));

/// The most sectors of one write to a log: 1 MiB, or what the log of partial parities takes.
const UNIT_MAX: u64 = 256;

const _: () = assert!(LOG.sectors.get() < UNIT_MAX);

/// A log, and what waits for it.
#[derive(Debug, Default)]
struct Log {
    /// Writes that wait, with the sectors of each.
    waiting: VecDeque<(usize, u64)>,
    /// The writes of the unit under way.
    writing: Vec<usize>,
    /// Writes of earlier units that must be in their places before the next one goes out.
    unplaced: usize,
    /// Where the next unit goes, counted from the log's beginning.
    at: u64,
}

/// A region of the bitmap that is marked.
#[derive(Clone, Copy, Debug, Default)]
struct Region {
    users: u32,
    /// Looks since the last user.
    looks: u32,
}

#[derive(Clone, Copy, Debug)]
enum Whose {
    /// One of the commands that a write waits for.
    Write(usize),
    /// The unit of a log.
    Unit(usize),
    /// A sector of the bitmap.
    Bitmap,
}

/// What a write does next, once its commands have ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Read,
    Record,
    Place,
    Over,
}

#[derive(Debug)]
struct Write {
    arrived: Instant,
    plan: Plan,
    /// Commands and records that it waits for.
    open: usize,
    next: Stage,
}

/// See the module.
struct Model<'a> {
    mechanism: Mechanism,
    layout: Layout,
    area: Area,
    arrivals: &'a [Arrival],
    disks: Disks,
    whose: BTreeMap<u64, Whose>,
    writes: Vec<Write>,
    logs: Vec<Log>,
    regions: BTreeMap<u64, Region>,
    /// Writes that wait until the bitmap says what they need; those of the mark under way first.
    marking: [Vec<usize>; 2],
    marks_open: usize,
    answered: Vec<Answered>,
    /// No write before this one is unanswered.
    oldest: usize,
    is_answered: Vec<bool>,
}

/// Sends writes to a model over the drives of `settings`.
///
/// # Errors
///
/// Drives that cannot be.
pub(super) fn send(
    settings: &WorldSettings,
    mechanism: Mechanism,
    arrivals: &[Arrival],
    sending: Sending,
) -> Result<Sent, String> {
    let spec: Spec = settings.spec;
    let area = settings.area.clone().ok_or("a model needs an area")?;
    let count = spec.drives() + usize::from(mechanism == Mechanism::Device);
    let (drive, window) = (settings.drives[0], settings.window);
    let mut model = Model {
        mechanism,
        layout: Layout::new(spec, area.size()),
        area,
        arrivals,
        disks: Disks::new(&settings.profile, drive, count, window, settings.seed)?,
        whose: BTreeMap::new(),
        writes: Vec::with_capacity(arrivals.len()),
        logs: (0..count).map(|_| Log::default()).collect(),
        regions: BTreeMap::new(),
        marking: [Vec::new(), Vec::new()],
        marks_open: 0,
        answered: Vec::with_capacity(arrivals.len()),
        oldest: 0,
        is_answered: vec![false; arrivals.len()],
    };
    if mechanism == Mechanism::Bitmap {
        model.disks.set_alarm(Instant::ZERO, DAEMON_PAUSE);
    }
    let mut end = End::Complete;
    while model.answered.len() < arrivals.len() {
        model.step(sending);
        if sending == Sending::Open && model.is_overloaded() {
            end = End::Overloaded;
            break;
        }
    }
    Ok(Sent { answered: model.answered, end, commands: model.disks.pushed() })
}

impl Model<'_> {
    fn step(&mut self, sending: Sending) {
        let sent = self.writes.len();
        let next = self.arrivals.get(sent).and_then(|arrival| match sending {
            Sending::Open | Sending::OpenToTheEnd => Some(arrival.at),
            Sending::Closed(outstanding) => {
                (sent - self.answered.len() < outstanding).then_some(self.disks.now())
            }
        });
        match (next, self.disks.next_at()) {
            (Some(at), event) if event.is_none_or(|event| at <= event) => self.begin(at, sent),
            _ => match self.disks.step() {
                Happened::Ended(names) => names.into_iter().for_each(|name| self.end(name)),
                Happened::Alarm => self.look_at_bitmap(),
            },
        }
    }

    fn begin(&mut self, now: Instant, index: usize) {
        let plan = Plan::of(&self.layout, &self.area, self.arrivals[index].extent);
        assert_eq!(plan.stripes.len(), 1, "A4: write {index}");
        let next = if plan.reads.is_empty() { Stage::Record } else { Stage::Read };
        self.writes.push(Write { arrived: now, plan, open: 0, next });
        match self.mechanism {
            Mechanism::Bitmap => {
                let regions = self.regions_of(index);
                let is_marked = regions.iter().all(|region| self.regions.contains_key(region));
                if is_marked {
                    self.use_regions(index);
                    self.advance(now, index);
                } else {
                    self.marking[1].push(index);
                    self.mark(now);
                }
            }
            Mechanism::None | Mechanism::PartialParity | Mechanism::Device => {
                self.advance(now, index);
            }
        }
    }

    /// A command has ended.
    fn end(&mut self, name: u64) {
        let now = self.disks.now();
        match self.whose.remove(&name) {
            None => {}
            Some(Whose::Write(index)) => self.end_part(now, index),
            Some(Whose::Unit(log)) => {
                let written = std::mem::take(&mut self.logs[log].writing);
                if self.mechanism == Mechanism::PartialParity {
                    self.logs[log].unplaced = written.len();
                }
                for index in written {
                    self.end_part(now, index);
                }
                self.append(now, log);
            }
            Some(Whose::Bitmap) => {
                self.marks_open -= 1;
                if self.marks_open == 0 {
                    for index in std::mem::take(&mut self.marking[0]) {
                        self.advance(now, index);
                    }
                    self.mark(now);
                }
            }
        }
    }

    fn end_part(&mut self, now: Instant, index: usize) {
        self.writes[index].open -= 1;
        if self.writes[index].open == 0 {
            self.advance(now, index);
        }
    }

    /// Takes a write to its next stage.
    fn advance(&mut self, now: Instant, index: usize) {
        match self.writes[index].next {
            Stage::Read => {
                self.writes[index].next = Stage::Record;
                for (disk, extent) in self.writes[index].plan.reads.clone() {
                    let command = Command::Read { extent, effort: Effort::Full };
                    self.push(now, disk, command, Whose::Write(index));
                }
            }
            Stage::Record => {
                self.writes[index].next = Stage::Place;
                let records = self.records_of(index);
                if records.is_empty() {
                    return self.advance(now, index);
                }
                self.writes[index].open += records.len();
                for (log, sectors) in records {
                    self.logs[log].waiting.push_back((index, sectors));
                    self.append(now, log);
                }
            }
            Stage::Place => {
                self.writes[index].next = Stage::Over;
                for (disk, extent) in self.writes[index].plan.places.clone() {
                    self.push(now, disk, write(extent, Durability::Cached), Whose::Write(index));
                }
            }
            Stage::Over => {
                for region in self.regions_of(index) {
                    if let Some(region) = self.regions.get_mut(&region) {
                        region.users -= 1;
                    }
                }
                if self.mechanism == Mechanism::PartialParity {
                    for log in self.records_of(index).into_iter().map(|(log, _)| log) {
                        self.logs[log].unplaced -= 1;
                        self.append(now, log);
                    }
                }
                let Write { arrived, .. } = self.writes[index];
                self.is_answered[index] = true;
                let index = index as u64;
                self.answered.push(Answered { index, at: now, latency: now - arrived });
            }
        }
    }

    /// What is recorded before a write goes to its places: which logs, and how many sectors besides the header.
    fn records_of(&self, index: usize) -> Vec<(usize, u64)> {
        let Plan { places, stripes, .. } = &self.writes[index].plan;
        match self.mechanism {
            Mechanism::None | Mechanism::Bitmap => Vec::new(),
            Mechanism::PartialParity => {
                stripes.iter().map(|stripe| (stripe.parity, stripe.rows_partial)).collect()
            }
            Mechanism::Device => {
                let device = self.layout.spec().drives();
                vec![(device, places.iter().map(|(_, extent)| extent.sectors.get()).sum())]
            }
        }
    }

    /// Begins the next unit of a log, if none is under way and something waits.
    fn append(&mut self, now: Instant, log: usize) {
        let (first, room) = match self.mechanism {
            Mechanism::Device => (0, self.disks.size(log)),
            _ => (LOG.lba.get(), LOG.sectors.get()),
        };
        let most = UNIT_MAX.min(room);
        let one = &mut self.logs[log];
        if !one.writing.is_empty() || one.unplaced > 0 {
            return;
        }
        let mut sectors = 1;
        while let Some(&(index, more)) = one.waiting.front()
            && (sectors + more <= most || one.writing.is_empty())
        {
            one.waiting.pop_front();
            one.writing.push(index);
            sectors += more;
        }
        if one.writing.is_empty() {
            return;
        }
        if one.at + sectors > room {
            one.at = 0;
        }
        let extent = Extent::new(Lba::new(first + one.at), Sectors::new(sectors));
        one.at += sectors;
        self.push(now, log, write(extent, Durability::Durable), Whose::Unit(log));
    }

    fn regions_of(&self, index: usize) -> Vec<u64> {
        if self.mechanism != Mechanism::Bitmap {
            return Vec::new();
        }
        let chunk = self.layout.spec().chunk().get();
        let stripes = self.writes[index].plan.stripes.iter();
        let mut regions: Vec<u64> =
            stripes.map(|stripe| stripe.number * chunk / REGION.get()).collect();
        regions.dedup();
        regions
    }

    fn use_regions(&mut self, index: usize) {
        for region in self.regions_of(index) {
            let region = self.regions.entry(region).or_default();
            region.users += 1;
            region.looks = 0;
        }
    }

    /// Writes the bitmap, if it is not being written and writes wait for it.
    fn mark(&mut self, now: Instant) {
        if self.marks_open > 0 || self.marking[1].is_empty() {
            return;
        }
        self.marking.swap(0, 1);
        let mut pages: Vec<u64> = Vec::new();
        for index in self.marking[0].clone() {
            pages.extend(self.regions_of(index).iter().map(|region| region / BITS));
            self.use_regions(index);
        }
        self.write_bitmap(now, pages);
    }

    fn write_bitmap(&mut self, now: Instant, mut pages: Vec<u64>) {
        pages.sort_unstable();
        pages.dedup();
        for page in pages {
            let extent = Extent::new(BITMAP + Sectors::new(page), Sectors::new(1));
            for disk in 0..self.layout.spec().drives() {
                self.marks_open += 1;
                self.push(now, disk, write(extent, Durability::Durable), Whose::Bitmap);
            }
        }
    }

    /// What was not written since the last look but one is clean.
    fn look_at_bitmap(&mut self) {
        let now = self.disks.now();
        self.disks.set_alarm(now, DAEMON_PAUSE);
        let mut pages = Vec::new();
        self.regions.retain(|region, marked| {
            if marked.users > 0 {
                return true;
            }
            marked.looks += 1;
            if marked.looks >= 2 {
                pages.push(region / BITS);
            }
            marked.looks < 2
        });
        self.write_bitmap(now, pages);
    }

    fn push(&mut self, now: Instant, disk: usize, command: Command, whose: Whose) {
        if let Whose::Write(index) = whose {
            self.writes[index].open += 1;
        }
        let name = self.disks.push(now, disk, command);
        self.whose.insert(name, whose);
    }

    fn is_overloaded(&mut self) -> bool {
        while self.is_answered.get(self.oldest) == Some(&true) {
            self.oldest += 1;
        }
        let oldest = self.writes.get(self.oldest);
        oldest.is_some_and(|one| self.disks.now().saturating_since(one.arrived) > BACKLOG_MAX)
    }
}

fn write(extent: Extent, durability: Durability) -> Command {
    Command::Write { extent, durability, zero_tail: ZeroTail::None }
}
