//! Arrays that are stopped, cut off from their power and started again many times: no write that was promised to
//! be safe is lost, whichever members come back.
//!
//! A seed decides all of it: layout, policy, caches, traffic, which cables come out, which drives hang,
//! when the power fails (between any two commands that write metadata, among other moments), which
//! members are shown to the next start, and whether an old copy of one is shown in its place. Every write
//! fills its sectors with a number of its own; the checker knows for each sector which numbers may be
//! there:
//!
//! ```text
//!   after a clean stop     the number of the last write
//!   after a power cut      that of the last write that was made safe, or of a later one
//!   after a power cut, and a drive is missing, and the array was made to go on:
//!                          anything in stripes that were being written (the write hole), else the same
//! ```
//!
//! Drives are taken away within what the layout survives. No other sector may be wrong, and no other
//! request refused or left unanswered.

mod planted;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use levelhead_array::{ArrayEvent, Content, Ending, HostOrder, Policy, RequestId, Spec};
use levelhead_block::{Buf, Command, Durability, Effort, Memory, Outcome, ZeroTail};
use levelhead_drive::{CacheMode, Profile, Settings};
use levelhead_stats::{Rng, Streams};
use levelhead_units::{DriveIdx, DriveSet, Extent, Instant, Lba, Nanos, SECTOR_SIZE, Sectors};

use levelhead_lab::{Force, Journaling, NoStart, World, WorldSettings};

use self::planted::Earlier;
pub use self::planted::Planted;

const LAYOUTS: [&str; 10] = [
    "raid4:2+1,chunk=8KiB",
    "raid5:3+1,chunk=8KiB",
    "raid5:5+1,chunk=4KiB",
    "raid6:3+2,chunk=8KiB",
    "eraid:3+1,e=2,chunk=8KiB",
    "eraid:2+3,e=2,chunk=8KiB",
    "raid1:2,chunk=8KiB",
    "raid1:3,chunk=16KiB",
    "raid10:4,chunk=8KiB",
    "raid10:5,chunk=4KiB",
];

/// Sectors of a member: hardly more than its metadata needs, so that requests meet.
const DRIVE_SIZE: Sectors = Sectors::new(600);

/// Lives of the array in one run: from a start to a stop or a power cut.
const LIVES: u64 = 5;

/// The longest time that any step of a run may take.
const PATIENCE: Nanos = Nanos::from_secs(600);

/// What one run has come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// What everything was drawn from.
    pub seed: u64,
    /// The array and its policy.
    pub what: String,
    /// Sectors looked at after a start and found right.
    pub verified: u64,
    /// Sectors that a power cut set back to an older write.
    pub set_back: u64,
    /// Power cuts.
    pub cuts: u64,
    /// Those of them between two commands that write metadata.
    pub cuts_in_metadata: u64,
    /// Clean stops.
    pub stops: u64,
    /// Members that a start refused because they held old data, although they had been connected all the time.
    pub refused: u64,
    /// Drives that came into the places of lost ones.
    pub replaced: u64,
    /// Those of them that were filled and counted again.
    pub rebuilt: u64,
    /// Drives that ended nothing for a while, or whose machine had no room for a while.
    pub stalls: u64,
    /// The hash of all that happened.
    pub log: u64,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            seed,
            what,
            verified,
            set_back,
            cuts,
            cuts_in_metadata,
            stops,
            refused,
            replaced,
            rebuilt,
            stalls,
            log,
        } = self;
        write!(
            f,
            "seed {seed}: {what}: {verified} sectors right, {set_back} set back, {cuts} power cuts, \
             {cuts_in_metadata} of them within the metadata, {stops} stops, {refused} members refused, {replaced} drives replaced, {rebuilt} rebuilt, \
             {stalls} stalls, log {log:016x}"
        )
    }
}

/// Runs one seed.
///
/// Panics at the first wrong sector, unanswered request or unjustified refusal, with the seed.
pub fn run(seed: u64, planted: Planted) -> Report {
    let mut rng = Streams::new(seed).stream("restarts/plan");
    let settings = draw(&mut rng, seed);
    let journaling = match planted {
        Planted::None if rng.below(2) == 0 => Journaling::Members,
        Planted::MarkBeforeFlush | Planted::CopyWithoutLock => Journaling::Members,
        _ => Journaling::None,
    };
    let world = World::create(&settings, journaling, planted.rules());
    let world = world.expect("the settings above are valid");
    let mut run = Run::new(seed, &settings, world, rng);
    (run.journaling, run.planted) = (journaling, planted);
    for _ in 0..LIVES {
        run.live();
        run.look_at_everything();
    }
    run.report()
}

fn draw(rng: &mut Rng, seed: u64) -> WorldSettings {
    let mut pick = |count: usize| rng.below(count as u64) as usize;
    let spec: Spec = LAYOUTS[pick(LAYOUTS.len())].parse().expect("the layouts above are valid");
    let policies = Policy::all();
    let cache = [CacheMode::Off, CacheMode::WriteBack][pick(2)];
    WorldSettings {
        spec,
        policy: policies[pick(policies.len())],
        window: 1 + pick(8) as u32,
        order: [HostOrder::Fcfs, HostOrder::Elevator][pick(2)],
        content: Content::Carried,
        profile: Arc::new(Profile::shipped("nearline-2tb").expect("it is shipped")),
        drives: vec![Settings {
            queue_depth: 8,
            cache,
            faults: "retry-rate=2%,rotations=1".parse().expect("these faults are possible"),
            size: Some(DRIVE_SIZE),
            ..Settings::PLAIN
        }],
        area: None,
        journal: None,
        seed,
    }
}

/// What may be in a sector: the safe number first, then those written since.
#[derive(Clone)]
struct Sector {
    numbers: Vec<u64>,
    /// How many of them have been answered.
    answered: usize,
    /// What another copy of a mirror may hold instead of the safe number, until the copies are made alike.
    twins: Vec<u64>,
}

impl Sector {
    /// Nothing older than `number` may come back.
    fn make_safe(&mut self, number: u64) {
        // Something newer may have been made safe meanwhile.
        if let Some(at) = self.numbers.iter().position(|&other| other == number) {
            if self.numbers.drain(..at).len() > 0 {
                self.twins.clear();
            }
            self.answered = self.answered.saturating_sub(at).max(1);
        }
    }
}

enum Inside {
    Read(Extent),
    Write(Extent, Durability),
    Flush(Covers),
}

/// What a flush makes safe.
struct Covers {
    /// The number that every sector had when it was asked for.
    numbers: Vec<u64>,
    /// The writes that had been answered.
    writes: BTreeSet<u64>,
    /// Whether all redundancy had been made valid.
    is_synced: bool,
}

struct Run {
    seed: u64,
    what: String,
    rng: Rng,
    world: World,
    now: Instant,
    sectors: Vec<Sector>,
    inside: BTreeMap<u64, Inside>,
    id_next: u64,
    /// Writes that no flush has covered, and whether they were answered.
    unflushed: BTreeMap<u64, (Extent, bool)>,
    /// Stripes that were being written when the power failed, until their redundancy is valid and flushed.
    suspect: BTreeSet<u64>,
    /// Stripes whose redundancy may be wrong for good: the write hole of an array that was made to go on.
    tainted: BTreeSet<u64>,
    /// Drives that it does without, or did for a while.
    gone: DriveSet,
    disconnected: DriveSet,
    /// Drives that are being filled, or were since they were last counted as gone.
    filled: DriveSet,
    /// A copy of a member, made in this life.
    copy: Option<(DriveIdx, Memory)>,
    journaling: Journaling,
    planted: Planted,
    earlier: Earlier,
    report: Report,
}

impl Run {
    fn new(seed: u64, settings: &WorldSettings, world: World, rng: Rng) -> Self {
        let what = format!("{}, {}, window {}", settings.spec, settings.policy, settings.window);
        let count = world.size().as_usize();
        let report = Report {
            seed,
            what: what.clone(),
            verified: 0,
            set_back: 0,
            cuts: 0,
            cuts_in_metadata: 0,
            stops: 0,
            refused: 0,
            replaced: 0,
            rebuilt: 0,
            stalls: 0,
            log: 0,
        };
        Self {
            seed,
            what,
            rng,
            world,
            now: Instant::ZERO,
            sectors: vec![Sector { numbers: vec![0], answered: 1, twins: Vec::new() }; count],
            inside: BTreeMap::new(),
            id_next: 1,
            unflushed: BTreeMap::new(),
            suspect: BTreeSet::new(),
            tainted: BTreeSet::new(),
            gone: DriveSet::EMPTY,
            disconnected: DriveSet::EMPTY,
            filled: DriveSet::EMPTY,
            copy: None,
            journaling: Journaling::None,
            planted: Planted::None,
            earlier: Earlier::default(),
            report,
        }
    }

    /// From a start to a stop or a power cut, and the next start.
    fn live(&mut self) {
        // A power cut after `in_metadata` more commands that write metadata, or after some requests.
        let in_metadata = (self.rng.below(3) == 0).then(|| self.rng.below(30));
        let writes_before = self.world.metadata_writes();
        let until = in_metadata.map(|count| writes_before + count);
        let wants_stop = self.rng.below(2) == 0;
        // Now and then a stop or a power cut comes right after the start, while the resync is under way.
        let requests = if self.rng.below(8) == 0 { 0 } else { 5 + self.rng.below(25) };
        for _ in 0..requests {
            self.request();
            self.misfortune();
            let time = self.rng.exponential(Nanos::from_millis(15));
            if self.pass(Some(time), until) == Passed::CutDue {
                self.report.cuts_in_metadata += 1;
                return self.cut();
            }
        }
        if !wants_stop {
            return self.cut();
        }
        if self.rng.below(2) == 0 {
            self.pass(None, None);
        }
        self.world.stop(self.now);
        let limit = self.now + PATIENCE;
        while self.world.ending().is_none() {
            if until.is_some_and(|until| self.world.metadata_writes() > until) {
                self.report.cuts_in_metadata += 1;
                return self.cut();
            }
            self.step(limit);
        }
        assert_eq!(self.world.ending(), Some(Ending::Clean), "{}", self.context());
        let told = self.world.array_events();
        let is_start = matches!(told.first(), Some(ArrayEvent::Assembled { .. }));
        assert!(is_start, "{told:?}: {}", self.context());
        let end = ArrayEvent::Stopped(Ending::Clean);
        assert_eq!(told.last(), Some(&end), "{}", self.context());
        self.report.stops += 1;
        self.unflushed.clear();
        if self.is_synced() {
            self.forget_suspects();
        }
        for sector in &mut self.sectors {
            let newest = sector.numbers[sector.answered - 1];
            sector.make_safe(newest);
        }
        self.after_a_stop(writes_before);
    }

    /// Perhaps a cable comes out, a drive hangs for good or for a while, its machine has no room for a while, or
    /// a copy of a member is made.
    fn misfortune(&mut self) {
        self.replace_lost();
        let drives = self.world.array().layout().spec().drives() as u64;
        let drive = DriveIdx::from_usize(self.rng.below(drives) as usize);
        if self.rng.below(10) == 0 {
            self.world.resync(self.now);
        }
        let is_synced = self.is_synced();
        let is_there = !self.world.array().lost().or(self.disconnected).contains(drive);
        if self.rng.below(25) == 0 && self.can_do_without(drive) && is_synced && is_there {
            self.gone = self.gone.with(drive);
            // Long enough to be silent, and not long enough to be lost.
            let until = self.now + Nanos::from_millis(5_000 + self.rng.below(40_000));
            match self.rng.below(4) {
                0 => self.world.disconnect(self.now, drive),
                1 => self.world.hang(self.now, drive),
                2 => self.world.stall(self.now, drive, until),
                _ => self.world.refuse(self.now, drive, until),
            }
            if self.world.is_away(drive) {
                self.disconnected = self.disconnected.with(drive);
            } else {
                self.report.stalls += 1;
            }
            self.collect();
        } else if self.rng.below(10) == 0 && is_there {
            let medium = self.world.platter_mut(drive).expect("bytes are carried");
            self.copy = Some((drive, medium.clone()));
        }
    }

    /// Perhaps a lost drive is replaced; what was filled is no longer gone, once that is recorded.
    fn replace_lost(&mut self) {
        let lost = self.world.array().lost();
        let back = self.gone.without(lost).without(self.disconnected);
        let back = back.and(self.filled);
        if !back.is_empty() && self.world.array().is_quiet() {
            self.gone = self.gone.without(back);
            self.filled = self.filled.without(back);
            self.report.rebuilt += u64::from(back.len());
        }
        let Some(drive) = lost.iter().next() else { return };
        if self.rng.below(6) == 0 && self.world.replace(self.now, drive).is_ok() {
            self.report.replaced += 1;
            let only = DriveSet::EMPTY.with(drive);
            self.disconnected = self.disconnected.without(only);
            (self.gone, self.filled) = (self.gone.or(only), self.filled.or(only));
            if self.copy.as_ref().is_some_and(|(copied, _)| *copied == drive) {
                self.copy = None;
            }
            self.collect();
        }
    }

    /// The next start after a clean stop: with all members, without one, or with an old copy of one. `writes_before` is the
    /// number of such commands that there were when the run that was stopped began.
    fn after_a_stop(&mut self, writes_before: u64) {
        let copy = self.copy.take();
        let was_opened = self.world.metadata_writes() > writes_before;
        let may_lose = self.is_synced() && was_opened;
        match self.rng.below(4) {
            0 if may_lose => self.peek_without_one(),
            1 if may_lose => {
                if let Some((drive, medium)) = copy
                    && !self.disconnected.contains(drive)
                    && self.can_do_without(drive)
                {
                    *self.world.platter_mut(drive).expect("bytes are carried") = medium;
                }
            }
            _ => {}
        }
        let absent = match self.start(DriveSet::EMPTY, Force::No) {
            // It was made to go on before, and nothing was written since that would say so.
            Err(NoStart::Doubtful) if !was_opened => self.start(DriveSet::EMPTY, Force::Yes),
            started => started,
        };
        let absent = absent.unwrap_or_else(|no| panic!("{}: {no:?}", self.context()));
        self.note_absent(absent);
    }

    /// A start without a drive to which nothing is written evicts nothing.
    fn peek_without_one(&mut self) {
        let drives = self.world.array().layout().spec().drives();
        let gone = self.world.array().lost().or(self.disconnected);
        let there = DriveSet::first(drives as u8).without(gone);
        let there: Vec<DriveIdx> =
            there.iter().filter(|&drive| self.can_do_without(drive)).collect();
        if there.is_empty() {
            return;
        }
        let one = there[self.rng.below(there.len() as u64) as usize];
        let left_out = DriveSet::EMPTY.with(one);
        self.start(left_out, Force::No).expect("the array survives the loss of one more");
        self.look_at_everything();
        self.world.stop(self.now);
        let limit = self.now + PATIENCE;
        while self.world.ending().is_none() {
            self.step(limit);
        }
        let absent = self.start(DriveSet::EMPTY, Force::No).expect("nothing was written");
        assert!(!absent.contains(one), "{}: drive {one} was evicted", self.context());
        self.world.stop(self.now);
        while self.world.ending().is_none() {
            self.step(limit);
        }
    }

    /// The power fails and comes back, and the array is started with the members that are shown to it.
    fn cut(&mut self) {
        self.report.cuts += 1;
        self.collect();
        self.world.power_cut(self.now);
        if self.planted == Planted::RecordLate {
            self.earlier.put_back(&mut self.world);
        }
        self.inside.clear();
        self.copy = None;
        let drives = self.world.array().layout().spec().drives() as u64;
        let one = DriveIdx::from_usize(self.rng.below(drives) as usize);
        let mut left_out = DriveSet::EMPTY;
        if self.rng.below(2) == 0 {
            left_out = self.disconnected; // They stay away; else they come back.
        } else if self.rng.below(4) == 0
            && self.can_do_without(one)
            && !self.disconnected.contains(one)
        {
            left_out = left_out.with(one);
        }
        let layout = self.world.array().layout();
        let is_open = self.journaling == Journaling::None;
        let written = self.unflushed.iter().filter(|_| is_open).map(|(_, written)| written);
        let written = written.flat_map(|&(extent, _)| layout.stripes_of(extent));
        let written: Vec<u64> = written.collect();
        self.suspect.extend(written);
        self.unflushed.clear();
        let started = match self.start(left_out, Force::No) {
            Err(NoStart::Doubtful)
                if left_out.contains(one) && !self.disconnected.contains(one) =>
            {
                // It was merely not plugged in.
                left_out = DriveSet::EMPTY;
                self.start(left_out, Force::No)
            }
            started => started,
        };
        let absent = match started {
            Ok(absent) => absent,
            Err(NoStart::Doubtful) => {
                self.tainted.append(&mut self.suspect);
                self.start(left_out, Force::Yes).expect("it was made to go on")
            }
            Err(NoStart::Refused(refusal)) => panic!("{}: {refusal:?}", self.context()),
        };
        self.note_absent(absent);
        // All redundancy is made valid, or part of it.
        let steps = if self.rng.below(4) == 0 { self.rng.below(3) } else { u64::MAX };
        for _ in 0..steps {
            // Copies are made alike also without some drives.
            let is_stuck = !self.world.array().lost().is_empty() && !self.is_mirror();
            if self.is_synced() || is_stuck {
                break;
            }
            let before = self.world.array().synced();
            self.world.resync(self.now);
            self.pass(None, None);
            // It waits for a client's write where drives are missing.
            if self.world.array().synced() == before {
                break;
            }
        }
    }

    fn start(&mut self, left_out: DriveSet, force: Force) -> Result<DriveSet, NoStart> {
        let known = left_out.or(self.disconnected).or(self.world.array().lost());
        let drives = self.world.array().layout().spec().drives();
        self.planted.plant(&mut self.world, DriveSet::first(drives as u8).without(left_out));
        let started = self.world.start(self.now, left_out, force);
        if let Ok(absent) = started {
            self.report.refused += u64::from(absent.without(known).len());
        }
        started
    }

    fn note_absent(&mut self, absent: DriveSet) {
        // Some of those that are not absent may be filled.
        let lost = self.world.array().lost();
        (self.gone, self.disconnected) = (absent.or(lost), absent);
        self.filled = lost.without(absent);
    }

    /// Whether the array survives the loss of this drive besides all that is gone.
    fn can_do_without(&self, drive: DriveIdx) -> bool {
        let spec = self.world.array().layout().spec();
        !self.gone.contains(drive) && spec.survives(self.gone.with(drive))
    }

    fn is_mirror(&self) -> bool {
        self.world.array().layout().spec().is_mirror()
    }

    /// All redundancy is valid, and that is safe.
    fn forget_suspects(&mut self) {
        self.suspect.clear();
        self.sectors.iter_mut().for_each(|sector| sector.twins.clear());
    }

    fn is_synced(&self) -> bool {
        let array = self.world.array();
        array.synced() == array.layout().stripes()
    }

    fn context(&self) -> String {
        format!("seed {}: {} at {:?}", self.seed, self.what, self.now)
    }

    fn request(&mut self) {
        let sectors = 1 + self.rng.below(12);
        let lba = self.rng.below(self.world.size().get() - sectors + 1);
        let extent = Extent::new(Lba::new(lba), Sectors::new(sectors));
        // Which of two writes comes last would be the array's choice.
        let overlaps = |inside: &Inside| match inside {
            Inside::Read(other) | Inside::Write(other, _) => {
                other.lba < extent.end() && extent.lba < other.end()
            }
            Inside::Flush(_) => false,
        };
        if self.inside.len() == 8 || self.inside.values().any(overlaps) {
            self.pass(None, None);
        }
        match self.rng.below(8) {
            0 => {
                let answered = |sector: &Sector| sector.numbers[sector.answered - 1];
                let numbers = self.sectors.iter().map(answered).collect();
                let writes = self.unflushed.iter().filter(|(_, (_, answered))| *answered);
                let writes = writes.map(|(&id, _)| id).collect();
                let is_synced = self.is_synced();
                let covers = Covers { numbers, writes, is_synced };
                self.submit(Command::Flush, Buf::empty(), Inside::Flush(covers));
            }
            1..3 => self.read(extent),
            3 => self.write(extent, Durability::Durable),
            _ => self.write(extent, Durability::Cached),
        }
    }

    fn read(&mut self, extent: Extent) {
        let command = Command::Read { extent, effort: Effort::Full };
        self.submit(command, Buf::zeroed(extent.sectors), Inside::Read(extent));
    }

    fn write(&mut self, extent: Extent, durability: Durability) {
        let number = self.id_next;
        let bytes: Vec<u8> = number.to_le_bytes().repeat(extent.sectors.as_usize() * 512);
        for lba in extent.iter() {
            self.sectors[lba.get() as usize].numbers.push(number);
        }
        self.unflushed.insert(number, (extent, false));
        let command = Command::Write { extent, durability, zero_tail: ZeroTail::None };
        self.submit(command, Buf::copy_of(&bytes), Inside::Write(extent, durability));
    }

    fn submit(&mut self, command: Command, buf: Buf, inside: Inside) {
        self.inside.insert(self.id_next, inside);
        self.world.submit(self.now, RequestId(self.id_next), command, Some(buf));
        self.id_next += 1;
    }

    /// Lets `time` pass, or without one as much as the array needs to become quiet; stops at once when more
    /// than `until_written` commands have written metadata.
    fn pass(&mut self, time: Option<Nanos>, until_written: Option<u64>) -> Passed {
        let until = time.map(|time| self.now + time);
        let limit = self.now + PATIENCE;
        let is_busy = |world: &World| !world.array().is_quiet_but_for_silent();
        while until.map_or(is_busy(&self.world), |until| self.world.next_at() < until) {
            if until_written.is_some_and(|count| self.world.metadata_writes() > count) {
                return Passed::CutDue;
            }
            self.step(limit);
        }
        self.now = until.unwrap_or(self.now).max(self.world.now());
        self.collect();
        Passed::AsWanted
    }

    fn step(&mut self, limit: Instant) {
        assert!(self.now < limit, "{}: no end", self.context());
        self.world.step();
        if self.planted == Planted::RecordLate {
            self.earlier.look(&mut self.world);
        }
        self.now = self.now.max(self.world.now());
        self.collect();
    }

    fn collect(&mut self) {
        for (_, answer) in self.world.take_answers() {
            let buf = self.world.take_buf(answer.request).expect("bytes are carried");
            self.end(answer.request.0, &answer.outcome, &buf);
        }
    }

    fn end(&mut self, id: u64, outcome: &Outcome, buf: &Buf) {
        assert!(outcome.is_good(), "{}: request {id}: {outcome:?}", self.context());
        match self.inside.remove(&id).expect("it was asked for and not answered") {
            Inside::Read(extent) => {
                for (lba, bytes) in extent.iter().zip(buf.as_slice().chunks(SECTOR_SIZE)) {
                    if self.is_tainted(lba) {
                        continue;
                    }
                    let number = self.number(lba, bytes);
                    let newest = self.sectors[lba.get() as usize].numbers.last();
                    assert_eq!(Some(&number), newest, "{}: {lba:?} is wrong", self.context());
                }
            }
            Inside::Write(extent, durability) => {
                // What the journal has is safe.
                let durability = match self.journaling {
                    Journaling::Members => Durability::Durable,
                    Journaling::None => durability,
                };
                for lba in extent.iter() {
                    let sector = &mut self.sectors[lba.get() as usize];
                    sector.answered = sector.numbers.len();
                    if durability == Durability::Durable {
                        sector.make_safe(id);
                    }
                }
                match durability {
                    Durability::Durable => drop(self.unflushed.remove(&id)),
                    Durability::Cached => drop(self.unflushed.insert(id, (extent, true))),
                }
            }
            Inside::Flush(Covers { numbers, writes, is_synced }) => {
                if is_synced {
                    self.forget_suspects();
                }
                for (sector, number) in self.sectors.iter_mut().zip(numbers) {
                    sector.make_safe(number);
                }
                self.unflushed.retain(|id, _| !writes.contains(id));
            }
        }
    }

    fn look_at_everything(&mut self) {
        let size = self.world.size();
        let mut lba = Lba::ZERO;
        while lba < Lba::ZERO + size {
            let sectors = Sectors::new(32).min(Lba::ZERO + size - lba);
            let extent = Extent::new(lba, sectors);
            let command = Command::Read { extent, effort: Effort::Full };
            let id = self.id_next;
            self.id_next += 1;
            self.world.submit(self.now, RequestId(id), command, Some(Buf::zeroed(sectors)));
            let limit = self.now + PATIENCE;
            let answer = loop {
                if let Some((_, answer)) = self.world.take_answers().pop() {
                    break answer;
                }
                assert!(self.now < limit, "{}: no answer", self.context());
                self.world.step();
                self.now = self.now.max(self.world.now());
            };
            let buf = self.world.take_buf(answer.request).expect("bytes are carried");
            for (at, lba) in extent.iter().enumerate() {
                self.look_at(lba, buf.part(at, 1), &answer.outcome, at as u32);
            }
            lba = extent.end();
        }
        self.pass(None, None);
    }

    fn look_at(&mut self, lba: Lba, bytes: &[u8], outcome: &Outcome, at: u32) {
        if self.is_tainted(lba) {
            return;
        }
        let Outcome::Done { damaged, .. } = outcome else { panic!("{}: gone", self.context()) };
        assert!(!damaged.contains(at), "{}: {lba:?} is not to be had", self.context());
        let number = self.number(lba, bytes);
        let (context, is_mirror) = (self.context(), self.is_mirror());
        let stripe = self.world.array().layout().find(lba).0.stripe;
        let sector = &mut self.sectors[lba.get() as usize];
        assert!(
            sector.numbers.contains(&number) || sector.twins.contains(&number),
            "{context}: {lba:?}: what was safe is gone: {number} of {:?}",
            sector.numbers
        );
        self.report.verified += 1;
        self.report.set_back += u64::from(number != sector.numbers[sector.answered - 1]);
        let mut twins = Vec::new();
        if is_mirror && self.suspect.contains(&stripe) {
            twins
                .extend(sector.numbers.iter().chain(&sector.twins).filter(|&&twin| twin != number));
        }
        *sector = Sector { numbers: vec![number], answered: 1, twins };
    }

    fn is_tainted(&self, lba: Lba) -> bool {
        self.tainted.contains(&self.world.array().layout().find(lba).0.stripe)
    }

    /// The number that fills a sector.
    fn number(&self, lba: Lba, bytes: &[u8]) -> u64 {
        let (first, rest) = bytes.split_at(8);
        assert!(rest.chunks(8).all(|next| next == first), "{}: {lba:?} is torn", self.context());
        u64::from_le_bytes(first.try_into().expect("eight bytes"))
    }

    fn report(mut self) -> Report {
        self.report.log = self.world.log().get();
        self.report
    }
}

/// Why the time has stopped passing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Passed {
    AsWanted,
    /// The power is to fail now.
    CutDue,
}
