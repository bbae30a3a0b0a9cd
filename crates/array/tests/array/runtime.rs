//! A runtime for tests: drives are vectors, time is a counter, and who finishes next is the test's
//! choice.

use std::collections::{BTreeMap, BTreeSet};

use levelhead_array::journal::record::{checksums, examine};
use levelhead_array::journal::rules::Rules;
use levelhead_array::membership::Why;
use levelhead_array::metadata::Inscription;
use levelhead_array::superblock::Uuid;
use levelhead_array::{
    Action, Answer, Area, Array, ArrayEvent, Blame, BufId, Content, Cost, Deliver, DriveEvent,
    Ending, Event, GroupSums, HostOrder, JournalSettings, Left, Policy, Refusal, RequestId,
    ScrubProgress, ScrubState, Settings, Spec, SubId, Submit, Sums, TagSector, lists_in, tags_in,
};
use levelhead_block::{
    BlockDevice, Buf, Command, Data, Durability, Effort, Memory, Outcome, Piece, SectorSet,
    ZeroTail,
};
use levelhead_bytes::Buffers;
use levelhead_erasure::Kernel;
use levelhead_stats::{Rng, Streams};
pub(crate) use levelhead_testkit::extent;
use levelhead_units::{DriveIdx, DriveSet, Extent, Instant, Lba, Nanos, Sectors};

pub(crate) struct Runtime {
    pub(crate) array: Array,
    pub(crate) buffers: Buffers,
    pub(crate) drives: Vec<Memory>,
    /// Commands inside a drive.
    pub(crate) inside: Vec<Submit>,
    pub(crate) answers: Vec<Answer>,
    /// Writes whose buffers the array has not released.
    pub(crate) writing: BTreeSet<RequestId>,
    pub(crate) events: Vec<DriveEvent>,
    pub(crate) array_events: Vec<ArrayEvent>,
    /// Why drives were lost, in order.
    pub(crate) losses: Vec<Why>,
    /// Those of them that made way for a copy.
    pub(crate) made_way: usize,
    pub(crate) ending: Option<Ending>,
    /// Writes that a drive has carried out.
    pub(crate) written: u64,
    /// Drives that end nothing.
    hung: DriveSet,
    /// The drive that hangs once so many commands have ended.
    hang_after: Option<(DriveIdx, u64)>,
    ended: u64,
    /// Drives that have no room for what they are to write or flush.
    refusing: DriveSet,
    /// The drive that is given a copy of one, and its commands.
    pub(crate) coming: Option<Coming>,
    /// Combinations so far.
    pub(crate) combined: u32,
    now: Instant,
    /// Of 1000 sectors read without retries, so many are not given.
    pub(crate) soft_per_mille: u64,
    /// Sectors that no effort reads until they are written.
    pub(crate) bad: BTreeSet<(DriveIdx, Lba)>,
    rng: Rng,
}

/// A drive that is given a copy of another one.
pub(crate) struct Coming {
    pub(crate) medium: Memory,
    /// Its commands, each with what had been written when it was begun.
    subs: BTreeMap<SubId, u64>,
    /// How many writes it has carried out.
    pub(crate) written: u64,
    /// Those of them that a flush was begun after.
    pub(crate) flushed: u64,
    /// Whether it stores nothing.
    pub(crate) is_broken: bool,
    /// Whether it has no room for now.
    pub(crate) is_full: bool,
}

pub(crate) fn settings(spec: Spec, stripes: u64, policy: Policy, lost: DriveSet) -> Settings {
    let (data, groups) = (spec.chunk() * stripes, spec.tag_groups());
    let sectors = groups.map_or(data, |groups| groups.with_tags(data));
    Settings {
        spec,
        area: Area::filling(Extent::new(Lba::ZERO, sectors), groups),
        policy,
        window: 3,
        order: HostOrder::Elevator,
        content: Content::Carried,
        synced: u64::MAX,
        lost,
        recorded: None,
        patience: None,
        background: None,
        verify: None,
        journal: None,
    }
}

/// Puts tag sectors onto a drive of an array of this kind, for what lies on it.
fn tag(settings: &Settings, medium: &mut Memory, drive: usize) {
    let area = &settings.area;
    let mut lba = Lba::ZERO;
    while area.groups().is_some() && lba < Lba::ZERO + area.size() {
        let place = area.tag_of(lba).expect("it has groups");
        let mut sums = GroupSums::NONE;
        for (at, lba) in place.covers.iter().enumerate() {
            let on_drive = area.on_drive(Extent::new(lba, Sectors::new(1)));
            sums.set(at, checksums(std::iter::once(medium.bytes(on_drive)))[0]);
        }
        let (array, drive) = (Uuid::default(), DriveIdx::from_usize(drive));
        let tag = TagSector { array, drive, group: place.group, list: 0, sums };
        let extent = Extent::new(place.lba, Sectors::new(1));
        medium.bytes_mut(extent).copy_from_slice(&tag.encode());
        lba = place.covers.end();
    }
}

/// The same array with a journal in two pieces behind its data, so small that it is always nearly full, and with lists behind that if
/// sectors have checksums.
pub(crate) fn journaled(settings: Settings) -> Settings {
    let end = settings.area.runs().last().expect("it has a run").end().get();
    let pieces = vec![extent(end, 24), extent(end + 24, 30)];
    let journal = JournalSettings {
        pieces,
        lists: settings.spec.tag_groups().map(|_| extent(end + 54, 8)),
        floor: 1,
        left: Left::Drained,
        intents_from: std::num::NonZeroU32::new(2),
        region_min: JournalSettings::REGION_MIN,
        rules: Rules::ALL,
    };
    Settings { journal: Some(journal), ..settings }
}

impl Runtime {
    /// Drives full of zeroes, which is a consistent array; lost ones are full of garbage.
    pub(crate) fn new(settings: &Settings, seed: u64) -> Self {
        let journal = settings.journal.iter();
        let journal = journal.flat_map(|journal| journal.pieces.iter().chain(&journal.lists));
        let journal: Sectors = journal.map(|piece| piece.sectors).sum();
        let data = settings.area.runs().last().expect("it has a run").end() - Lba::ZERO;
        Self::with_drives_of(settings, seed, data + journal)
    }

    /// The same over drives of so many sectors, of which the array's area is a part.
    pub(crate) fn with_drives_of(settings: &Settings, seed: u64, size: Sectors) -> Self {
        let streams = Streams::new(seed);
        let mut rng = streams.stream("test/runtime");
        let drives = (0..settings.spec.drives())
            .map(|idx| {
                let mut drive = Memory::new(size);
                if settings.lost.contains(DriveIdx::from_usize(idx)) {
                    rng.fill(drive.bytes_mut(Extent::new(Lba::ZERO, size)));
                }
                drive
            })
            .collect();
        let mut drives: Vec<Memory> = drives;
        drives.iter_mut().zip(0..).for_each(|(drive, at)| tag(settings, drive, at));
        Self {
            array: Array::new(settings, streams),
            buffers: Buffers::new(Kernel::best()),
            drives,
            inside: Vec::new(),
            answers: Vec::new(),
            writing: BTreeSet::new(),
            events: Vec::new(),
            array_events: Vec::new(),
            losses: Vec::new(),
            made_way: 0,
            ending: None,
            written: 0,
            hung: DriveSet::EMPTY,
            hang_after: None,
            ended: 0,
            refusing: DriveSet::EMPTY,
            coming: None,
            combined: 0,
            now: Instant::ZERO,
            soft_per_mille: 0,
            bad: BTreeSet::new(),
            rng,
        }
    }

    pub(crate) fn write(&mut self, id: u64, extent: Extent, bytes: &[u8]) {
        let (durability, zero_tail) = (Durability::Cached, ZeroTail::None);
        self.request(id, Command::Write { extent, durability, zero_tail }, Buf::copy_of(bytes));
    }

    pub(crate) fn read(&mut self, id: u64, extent: Extent) {
        let buf = Buf::zeroed(extent.sectors);
        self.request(id, Command::Read { extent, effort: Effort::Full }, buf);
    }

    pub(crate) fn read_with(&mut self, id: u64, extent: Extent, effort: Effort) {
        let buf = Buf::zeroed(extent.sectors);
        self.request(id, Command::Read { extent, effort }, buf);
    }

    pub(crate) fn request(&mut self, id: u64, command: Command, buf: Buf) {
        self.tick();
        self.buffers.insert(BufId::Client(RequestId(id)), buf);
        if command.is_write() && !matches!(command, Command::Trim { .. }) {
            self.writing.insert(RequestId(id));
        }
        self.array.handle_request(self.now, RequestId(id), command);
        self.carry_out();
    }

    /// Ends the command at place `at` among those inside a drive.
    pub(crate) fn finish(&mut self, at: usize) {
        self.tick();
        let submit = self.inside.remove(at);
        self.ended += 1;
        let outcome = self.execute(&submit);
        self.array.handle_done(self.now, submit.sub, &outcome);
        self.carry_out();
    }

    /// Ends the write at place `at` among those inside a drive: it stores none of its sectors, and says so.
    pub(crate) fn fail_write(&mut self, at: usize) {
        self.tick();
        let submit = self.inside.remove(at);
        self.ended += 1;
        assert!(submit.command.is_write(), "{submit:?}");
        let damaged = SectorSet::first(submit.command.payload());
        let outcome = Outcome::Done { unknown: SectorSet::EMPTY, damaged };
        self.array.handle_done(self.now, submit.sub, &outcome);
        self.carry_out();
    }

    /// What is left to chance is drawn anew.
    pub(crate) fn reseed(&mut self, seed: u64) {
        self.rng = Streams::new(seed).stream("test/runtime");
    }

    /// Ends one command, whichever.
    pub(crate) fn finish_any(&mut self) {
        let at = self.rng.below(self.inside.len() as u64) as usize;
        self.finish(at);
    }

    /// Ends commands until none is left that is not a superblock's.
    pub(crate) fn finish_all_but_records(&mut self) {
        let is_record =
            |submit: &Submit| submit.command.is_write() && crate::metadata::is_record(submit);
        while let Some(at) = self.inside.iter().position(|submit| !is_record(submit)) {
            self.finish(at);
        }
    }

    pub(crate) fn flush(&mut self, id: u64) {
        self.request(id, Command::Flush, Buf::empty());
    }

    pub(crate) fn stop(&mut self) {
        self.tick();
        self.array.handle_stop(self.now);
        self.carry_out();
    }

    /// A drive ends nothing from now on.
    pub(crate) fn hang(&mut self, drive: DriveIdx) {
        self.hung = self.hung.with(drive);
    }

    /// A drive that hung ends what it is asked.
    pub(crate) fn answer_again(&mut self, drive: DriveIdx) {
        self.hung = self.hung.without(DriveSet::EMPTY.with(drive));
    }

    /// A drive ends nothing once so many commands have ended.
    pub(crate) fn hang_after(&mut self, drive: DriveIdx, count: u64) {
        self.hang_after = Some((drive, count));
    }

    /// A drive has no room for writes and flushes from now on.
    pub(crate) fn refuse(&mut self, drive: DriveIdx) {
        self.refusing = self.refusing.with(drive);
    }

    /// It has room again.
    pub(crate) fn accept(&mut self, drive: DriveIdx) {
        self.refusing = self.refusing.without(DriveSet::EMPTY.with(drive));
    }

    /// Lets so much time pass; drives that do not hang end at once what they are asked.
    pub(crate) fn run_for(&mut self, time: Nanos) {
        let end = self.now + time;
        loop {
            if let Some((drive, _)) = self.hang_after.filter(|&(_, count)| self.ended >= count) {
                self.hang(drive);
            }
            let hung = self.hung;
            if let Some(at) = self.inside.iter().position(|submit| !hung.contains(submit.drive)) {
                self.finish(at);
                continue;
            }
            match self.array.deadline() {
                Some(at) if at <= end => self.wait(at.saturating_since(self.now)),
                Some(_) | None => break,
            }
        }
        self.wait(end.saturating_since(self.now));
    }

    /// Ends what is inside drives, but for what is held, and lets this time pass.
    pub(crate) fn run_but_for(&mut self, is_held: impl Fn(&Submit) -> bool, time: Nanos) {
        let end = self.now + time;
        while self.now < end {
            while let Some(at) = self.inside.iter().position(|submit| !is_held(submit)) {
                self.finish(at);
            }
            self.wait(Nanos::from_millis(5));
        }
    }

    /// Ends commands in random order until none is left.
    pub(crate) fn run_until_quiet(&mut self) {
        while !self.inside.is_empty() {
            let at = self.rng.below(self.inside.len() as u64) as usize;
            self.finish(at);
        }
    }

    /// Ends commands in random order until it is so.
    pub(crate) fn run_until(&mut self, is_so: impl Fn(&Self) -> bool) {
        while !is_so(self) {
            self.finish_any();
        }
    }

    /// So much time passes, and the array is told.
    pub(crate) fn wait(&mut self, time: Nanos) {
        self.now = self.now + time;
        self.array.handle_timeout(self.now);
        self.carry_out();
    }

    /// Somebody sits a drive out.
    pub(crate) fn sit_out(&mut self, drive: DriveIdx) -> Result<(), Refusal> {
        let done = self.array.handle_sit_out(self.now, drive);
        self.carry_out();
        done
    }

    /// A drive stops answering: what is inside it ends as gone.
    pub(crate) fn lose(&mut self, drive: DriveIdx) {
        self.tick();
        self.array.handle_lost(self.now, drive, Why::Failed);
        self.carry_out();
    }

    /// The place of a lost drive has a new one, full of garbage.
    pub(crate) fn replace(&mut self, drive: DriveIdx) {
        self.tick();
        let medium = &mut self.drives[drive.as_usize()];
        let all = Extent::new(Lba::ZERO, BlockDevice::size(medium));
        self.rng.fill(medium.bytes_mut(all));
        let replaced = self.array.handle_replaced(self.now, drive, None);
        replaced.expect("its drive is lost");
        self.carry_out();
    }

    /// A drive that was lost is there again, with what it had.
    pub(crate) fn take_back(&mut self, drive: DriveIdx) {
        self.tick();
        let returned = self.array.handle_returned(self.now, drive, None);
        returned.expect("it may return");
        self.carry_out();
    }

    /// A new drive, full of garbage, is given a copy of a drive that is there.
    pub(crate) fn copy(&mut self, drive: DriveIdx) {
        self.tick();
        let size = BlockDevice::size(&self.drives[drive.as_usize()]);
        let mut medium = Memory::new(size);
        self.rng.fill(medium.bytes_mut(Extent::new(Lba::ZERO, size)));
        let subs = BTreeMap::new();
        self.coming =
            Some(Coming { medium, subs, written: 0, flushed: 0, is_broken: false, is_full: false });
        self.array.handle_copy(self.now, drive, None).expect("it may be copied");
        self.carry_out();
    }

    pub(crate) fn resync(&mut self) {
        self.tick();
        self.array.handle_resync(self.now);
        self.carry_out();
    }

    /// A scrub from the first stripe to the last.
    pub(crate) fn scrub(&mut self, blame: Blame) -> ScrubProgress {
        self.tick();
        assert!(self.array.handle_scrub_start(self.now, blame));
        self.carry_out();
        while self.array.scrub().state == ScrubState::Running {
            let waits = self.inside.is_empty().then(|| self.array.deadline());
            match waits {
                Some(at) => self.wait(at.expect("it goes on").saturating_since(self.now)),
                None => self.run_until_quiet(),
            }
        }
        self.array.scrub()
    }

    /// The answer to a request that was answered, and the bytes of a read.
    pub(crate) fn take(&mut self, id: u64) -> Option<(Answer, Buf)> {
        let at = self.answers.iter().position(|answer| answer.request == RequestId(id))?;
        let answer = self.answers.swap_remove(at);
        if self.writing.contains(&answer.request) {
            return Some((answer, Buf::empty()));
        }
        let data = self.buffers.take_delivered(BufId::Client(answer.request));
        Some((answer, data.map_or_else(Buf::empty, Data::into_buf)))
    }

    pub(crate) fn now(&self) -> Instant {
        self.now
    }

    fn tick(&mut self) {
        self.now = self.now + Nanos::from_micros(100);
    }

    fn carry_out(&mut self) {
        while let Some(action) = self.array.poll() {
            match action {
                Action::Acquire { buf, sectors } => {
                    let mut fresh = Buf::zeroed(sectors);
                    fresh.as_mut_slice().fill(0xA5); // nobody may rely on zeroes
                    self.buffers.insert(buf, fresh);
                }
                Action::Submit(submit) => {
                    let is_lost = self.array.lost().contains(submit.drive);
                    assert!(!is_lost || self.array.is_filling(submit.drive), "A2: {submit:?}");
                    if submit.command.is_write() {
                        // As a server does, which hands the bytes over.
                        drop(self.buffers.share(&submit.segments));
                    }
                    self.inside.push(submit);
                }
                Action::Coming(submit) => {
                    drop(self.buffers.share(&submit.segments));
                    let coming = self.coming.as_mut().expect("a drive is coming");
                    coming.subs.insert(submit.sub, coming.written);
                    self.inside.push(submit);
                }
                Action::Seat(drive) => {
                    let coming = self.coming.take().expect("a drive is coming");
                    assert_eq!(coming.flushed, coming.written, "CP2");
                    self.drives[drive.as_usize()] = coming.medium;
                }
                Action::Dismiss(_) => self.coming = None,
                Action::Combine(combine) => {
                    self.combined += 1;
                    self.buffers.combine(&combine);
                }
                Action::Deliver(Deliver { request, segments }) => {
                    self.buffers.deliver(BufId::Client(request), &segments);
                }
                Action::Release(buf) => {
                    if let BufId::Client(request) = buf {
                        assert!(self.writing.remove(&request), "{request:?} is released twice");
                    }
                    self.buffers.discard(buf);
                }
                Action::Inscribe { into, what } => self.buffers.inscribe(into, &what.encode()),
                Action::Log { into, record, sums } => {
                    let sums = match sums {
                        Sums::Known(sums) => sums,
                        Sums::Of(contents) => {
                            checksums(self.buffers.share(&contents).iter().map(Piece::bytes))
                        }
                    };
                    self.buffers.inscribe(into, &record.encode(&sums));
                }
                Action::Digest { id, of, into } => {
                    let sums = checksums(self.buffers.share(&of).iter().map(Piece::bytes));
                    for tag in &into {
                        self.buffers.inscribe(tag.into, &tag.encode(&sums));
                    }
                    self.array.handle_digested(self.now, id, &sums);
                }
                Action::Sum { buf } => {
                    let sums = checksums(std::iter::once(self.buffers.bytes(buf)));
                    self.array.handle_summed(self.now, buf, &sums);
                }
                Action::Tags { sub, drive, of } => {
                    let found = tags_in(&of, |buf| self.buffers.bytes(buf));
                    self.array.handle_tags(self.now, sub, drive, found);
                }
                Action::Lists { sub, buf } => {
                    let found = lists_in(self.buffers.bytes(buf));
                    self.array.handle_lists(self.now, sub, found);
                }
                Action::Look { buf } => {
                    let author = Inscription::author_of(self.buffers.bytes(buf)).ok();
                    self.array.handle_looked(self.now, buf, author);
                }
                Action::Examine { buf, first, unreadable, ring } => {
                    let found = examine(self.buffers.bytes(buf), first, &unreadable, ring);
                    self.array.handle_examined(self.now, buf, found);
                }
                Action::Check { op, sums } => {
                    let zero: Vec<bool> =
                        sums.iter().map(|sum| self.buffers.is_zero_sum(sum)).collect();
                    self.array.handle_checked(self.now, op, &zero);
                }
                Action::Stopped(ending) => self.ending = Some(ending),
                Action::Event(Event::Standing(event)) => self.events.push(event),
                Action::Event(Event::Lost { drive, why, is_copied }) => {
                    assert!(self.array.lost().contains(drive));
                    self.losses.push(why);
                    self.made_way += usize::from(is_copied);
                }
                Action::Event(Event::Released { .. }) => {}
                Action::Event(Event::Array(event)) => self.array_events.push(event),
                Action::Answer(answer) => self.answers.push(answer),
            }
        }
    }

    fn execute_coming(&mut self, submit: &Submit) -> Outcome {
        let Some(coming) =
            self.coming.as_mut().filter(|coming| coming.subs.contains_key(&submit.sub))
        else {
            return Outcome::GOOD; // It was dismissed.
        };
        match submit.command {
            _ if coming.is_broken => return Outcome::Gone,
            _ if coming.is_full => return Outcome::Refused,
            Command::Write { extent, durability, .. } => {
                let pieces = self.buffers.share(&submit.segments);
                let bytes: Vec<u8> = pieces.iter().flat_map(Piece::bytes).copied().collect();
                coming.medium.bytes_mut(extent).copy_from_slice(&bytes);
                coming.written += u64::from(durability == Durability::Cached);
            }
            Command::Flush => coming.flushed = coming.flushed.max(coming.subs[&submit.sub]),
            command => unreachable!("{command:?}"),
        }
        Outcome::GOOD
    }

    fn execute(&mut self, submit: &Submit) -> Outcome {
        if self.array.is_orphan(submit.sub) {
            return Outcome::GOOD;
        }
        if self.array.is_coming(submit.sub) {
            return self.execute_coming(submit);
        }
        let is_lost = self.array.lost().contains(submit.drive);
        if is_lost && !self.array.is_filling(submit.drive) {
            return Outcome::Gone;
        }
        if self.refusing.contains(submit.drive) && !matches!(submit.command, Command::Read { .. }) {
            return Outcome::Refused;
        }
        let drive = &mut self.drives[submit.drive.as_usize()];
        match submit.command {
            Command::Read { extent, effort } => {
                let id = submit.segments[0].place.buf;
                let mut buf = self.buffers.lend(id);
                buf.as_mut_slice().copy_from_slice(drive.bytes(extent));
                let (mut unknown, mut damaged) = (Vec::new(), Vec::new());
                for (offset, lba) in (0..).zip(extent.iter()) {
                    let bad = self.bad.contains(&(submit.drive, lba));
                    let soft = self.rng.below(1000) < self.soft_per_mille;
                    match effort {
                        Effort::Fast | Effort::Limited(_) if bad || soft => unknown.push(offset),
                        Effort::Full | Effort::Medium if bad => damaged.push(offset),
                        Effort::Fast | Effort::Limited(_) | Effort::Full | Effort::Medium => {
                            continue;
                        }
                    }
                    buf.part_mut(offset as usize, 1).fill(0xEE);
                }
                self.buffers.give_back(id, Data::Buf(buf));
                let [unknown, damaged] = [unknown, damaged].map(|set| set.into_iter().collect());
                Outcome::Done { unknown, damaged }
            }
            Command::Write { extent, .. } => {
                self.written += 1;
                self.bad.retain(|&(drive, lba)| drive != submit.drive || !extent.contains(lba));
                let pieces = self.buffers.share(&submit.segments);
                let mut rest = drive.bytes_mut(extent);
                for piece in &pieces {
                    let (next, after) = rest.split_at_mut(piece.bytes().len());
                    next.copy_from_slice(piece.bytes());
                    rest = after;
                }
                assert!(rest.is_empty(), "{submit:?} has fewer bytes than sectors");
                Outcome::GOOD
            }
            Command::Flush => Outcome::GOOD,
            other @ (Command::WriteZeroes { .. } | Command::Trim { .. }) => {
                panic!("the array never asks drives for {other:?}")
            }
        }
    }
}

/// Every set of drives whose loss the layout survives.
pub(crate) fn survivable(spec: &Spec) -> Vec<DriveSet> {
    let sets = (0..1_u64 << spec.drives()).map(DriveSet::from_bits);
    sets.filter(|&set| spec.survives(set)).collect()
}

/// Data sectors of a stripe of four data drives with chunks of one sector.
pub(crate) const STRIPE: u64 = 4;

/// An array of so many stripes whose drives nothing is known of.
pub(crate) fn fresh(text: &str, policy: &str, stripes: u64) -> Runtime {
    fresh_with_window(text, policy, stripes, 32)
}

/// The same, with so many commands inside a drive at most.
pub(crate) fn fresh_with_window(text: &str, policy: &str, stripes: u64, window: u32) -> Runtime {
    let spec: Spec = text.parse().unwrap();
    let mut settings = settings(spec, stripes, policy.parse().unwrap(), DriveSet::EMPTY);
    settings.window = window;
    Runtime::new(&settings, 1)
}

/// An array of so many stripes, full of sevens.
pub(crate) fn run_of(text: &str, policy: &str, stripes: u64) -> Runtime {
    let mut run = fresh(text, policy, stripes);
    let sectors = run.array.size();
    run.write(0, extent(0, sectors.get()), &vec![7; sectors.bytes().get() as usize]);
    run.run_until_quiet();
    run.take(0).unwrap();
    run
}

/// The drives with commands inside, one by one.
pub(crate) fn asked(run: &Runtime) -> Vec<usize> {
    let mut drives: Vec<usize> = run.inside.iter().map(|sub| sub.drive.as_usize()).collect();
    drives.sort_unstable();
    drives
}

/// How many commands are inside a drive.
pub(crate) fn inside_of(run: &Runtime, drive: usize) -> usize {
    run.inside.iter().filter(|sub| sub.drive.as_usize() == drive).count()
}

/// How hard the drives try, for each read that is inside one, by drive.
pub(crate) fn efforts(run: &Runtime) -> Vec<(usize, Effort)> {
    let effort = |sub: &Submit| match sub.command {
        Command::Read { effort, .. } => Some((sub.drive.as_usize(), effort)),
        _ => None,
    };
    let mut efforts: Vec<(usize, Effort)> = run.inside.iter().filter_map(effort).collect();
    efforts.sort_by_key(|(drive, _)| *drive);
    efforts
}

/// Ends the command that went into `drive` first.
pub(crate) fn finish(run: &mut Runtime, drive: usize) {
    let at = run.inside.iter().position(|sub| sub.drive.as_usize() == drive);
    run.finish(at.expect("the drive was asked"));
}

/// The same as [`finish`], but the drive does not give a sector that it is to read without retries.
pub(crate) fn fail(run: &mut Runtime, drive: usize) {
    run.soft_per_mille = 1_000;
    finish(run, drive);
    run.soft_per_mille = 0;
}

/// A read of what is full of sevens was answered with them; returns what it took.
pub(crate) fn assert_answered(run: &mut Runtime, id: u64) -> Cost {
    let (answer, buf) = run.take(id).unwrap_or_else(|| panic!("{id} waits"));
    assert!(answer.outcome.is_good() && buf.as_slice().iter().all(|&byte| byte == 7));
    answer.cost
}

/// Runs `count` reads on drives that take so long for each, so that something is known of them.
pub(crate) fn warm_up(run: &mut Runtime, count: u64, what: Extent, took: Nanos) {
    for id in 1_000..1_000 + count {
        run.read(id, what);
        run.wait(took);
        run.run_until_quiet();
        let (answer, _) = run.take(id).unwrap_or_else(|| panic!("{id} waits"));
        assert!(answer.outcome.is_good());
    }
}

/// The sectors that were not returned because they are damaged; none of the others may be unknown.
pub(crate) fn damaged(outcome: &Outcome) -> Vec<u32> {
    let Outcome::Done { unknown, damaged } = outcome else { panic!("{outcome:?}") };
    assert!(unknown.is_empty(), "{unknown:?}");
    damaged.iter().collect()
}

/// Lets time pass up to the array's deadline.
pub(crate) fn wait_for_deadline(run: &mut Runtime) {
    let deadline = run.array.deadline().expect("the array waits for something");
    run.wait(deadline.saturating_since(run.now()));
}
