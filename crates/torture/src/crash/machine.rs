//! A machine with an array over the disks of a crash swarm. Who ends first is drawn, and so is when time passes.

mod doubts;
mod faults;
mod faulty;
mod inside;
mod moves;
mod settling;
mod steps;

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use levelhead_array::journal::record::{checksums, examine};
use levelhead_array::journal::rules::Rules;
use levelhead_array::membership::Why;
use levelhead_array::metadata::Inscription;
use levelhead_array::superblock::{Own, Superblock, Uuid};
use levelhead_array::{
    Action, Answer, Array, ArrayEvent, Budget, BufId, Cell, Content, Deliver, Ending, Event, Flaw,
    HostOrder, JournalSettings, NewMember, Patience, Policy, Recorded, RequestId, Settings, Sums,
    VerifySettings, lists_in, tags_in,
};
use levelhead_block::{
    Buf, Command, Data, Durability, Effort, Outcome, Piece, SectorSet, ZeroTail,
};
use levelhead_bytes::Buffers;
use levelhead_erasure::Kernel;
use levelhead_stats::{Rng, Streams};
use levelhead_units::{DriveIdx, DriveSet, Extent, Instant, Lba, Nanos, Sectors};

use self::inside::{Inside, Of};
use super::aim::Planted;
use super::faulty::Faulty;
use super::image::{Assembled, Image, Replaced, Torn, assemble, find, is_member, with_bad_places};
use super::lies::{Doubts, Liar};
use super::met::{Fault, Met, Watch};
use super::promise::{Promise, Sent};
use crate::disk::Disk;

/// What is wrong with a disk for a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wrong {
    /// It ends nothing.
    Hangs,
    /// There is often no room for a command of its.
    Refuses,
    /// There is no room for any write.
    Full,
    /// It may not be written.
    ReadOnly,
    /// Its writes and flushes fail.
    Fails,
}

/// A disk with which something is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Trouble {
    pub(crate) drive: DriveIdx,
    pub(crate) wrong: Wrong,
}

/// How a machine is started.
#[derive(Clone, Debug)]
pub(crate) struct Start {
    /// What the last run has left.
    pub(crate) image: Image,
    /// Disks that are not shown to the array.
    pub(crate) hidden: DriveSet,
    pub(crate) rules: Rules,
    pub(crate) patience: Option<Patience>,
    pub(crate) slow_metadata: bool,
    pub(crate) slow_aside: bool,
    /// Whether disks are filled stripe by stripe.
    pub(crate) fills: bool,
    pub(crate) verify: Option<VerifySettings>,
    /// Of how many writes in place a disk does not store one.
    pub(crate) lies: u64,
    /// Whether there is work in the background, a little at a time.
    pub(crate) has_background: bool,
    /// A fault of the server.
    pub(crate) planted: Planted,
    pub(crate) seed: u64,
}

/// A disk that is given a copy of another one.
#[derive(Clone, Debug)]
struct Coming {
    disk: Disk,
    /// Whether something but zeroes over superblocks was written to it.
    has_copy: bool,
}

/// A read that was sent.
#[derive(Clone, Debug)]
struct Asked {
    extent: Extent,
    /// What each of its sectors must be at least, where the read is beside writes.
    floors: Option<Vec<usize>>,
}

/// A write that was sent.
#[derive(Clone, Copy, Debug)]
struct Wrote {
    sent: Sent,
    durability: Durability,
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Machine {
    pub(crate) array: Array,
    disks: Vec<Disk>,
    buffers: Buffers,
    inside: Vec<Inside>,
    pub(crate) now: Instant,
    request_next: u64,
    writes: BTreeMap<RequestId, Wrote>,
    /// What was answered when they were sent.
    flushes: BTreeMap<RequestId, Vec<Sent>>,
    reads: BTreeMap<RequestId, Asked>,
    /// Reads of the whole array that were answered.
    delivered: BTreeMap<RequestId, (Answer, Vec<u8>)>,
    pub(crate) promise: Promise,
    pub(crate) trouble: Option<Trouble>,
    has_patience: bool,
    slow_metadata: bool,
    pub(crate) slow_aside: bool,
    fills: bool,
    /// Disks that are back, and that the array does without.
    returning: DriveSet,
    /// Those of them that were lost since the start.
    lost: DriveSet,
    /// Disks that were taken back.
    pub(crate) returned: u64,
    /// Disks that are being filled, or were when they were lost or the power failed: what says that they are full may lie on one
    /// disk alone.
    unfilled: DriveSet,
    coming: Option<Coming>,
    replaced: Vec<Replaced>,
    /// Disks that were given a copy of another one and have its place.
    pub(crate) seated: u64,
    /// Disks that never come back.
    pub(crate) dead: DriveSet,
    spoilt: DriveSet,
    ending: Option<Ending>,
    /// What was answered and must not have been.
    broken: Option<String>,
    /// Sectors that the array said it could not bring back.
    pub(crate) given_up: u64,
    /// Sectors that are damaged.
    pub(crate) damaged: u64,
    /// Writes that failed.
    pub(crate) failed: u64,
    liar: Liar,
    /// A drive that stores a write command in another way than it says.
    pub(crate) faulty: Option<Faulty>,
    /// What the array has reported of sectors that are not what was written.
    pub(crate) findings: Vec<ArrayEvent>,
    pub(crate) doubts: Doubts,
    /// What was recorded of redundancy before this start.
    recorded: u64,
    /// Writes of earlier connections and servers that may land yet.
    late: Vec<Torn>,
    /// Whether there are more faults than the layout survives.
    pub(crate) is_beyond: bool,
    /// Earlier states of disks.
    earlier: Vec<(DriveIdx, Disk)>,
    /// Disks with which something was wrong since the start.
    troubled: DriveSet,
    planted: Planted,
    pub(crate) met: Met,
    watch: Watch,
}

impl Machine {
    /// Finds the array on its disks and starts it.
    pub(crate) fn start(start: Start) -> Result<Self, String> {
        let Start { image, hidden, rules, patience, slow_metadata, slow_aside, .. } = start;
        let Start { fills, verify, lies, seed, has_background, planted, .. } = start;
        let Image { disks, promise, lost, dead, unfilled, spoilt, doubts, recorded, .. } = image;
        let Image { late, earlier, is_beyond, .. } = image;
        let replaced = Vec::new();
        let Assembled { assembly, returning, .. } = assemble(&disks, hidden, lost)?;
        if let Some(doubt) = assembly.doubt {
            return Err(format!("the array is in doubt: {doubt}"));
        }
        let settings = Settings {
            spec: assembly.metadata.spec,
            area: assembly.area.clone(),
            policy: Policy::Normal,
            window: 4,
            order: HostOrder::Fcfs,
            content: Content::Carried,
            synced: match planted {
                Planted::TrustsRedundancy => u64::MAX,
                Planted::None | Planted::StandstillsCount => assembly.trusted,
            },
            lost: assembly.absent.or(assembly.filling),
            recorded: Some(Recorded::of(&assembly, Uuid(u128::from(seed).to_le_bytes()))),
            patience,
            background: (fills || has_background).then_some(Budget {
                step: Sectors::new(1),
                mark: Nanos::from_millis(1),
                pause: Nanos::from_millis(1),
                ..Budget::DEFAULT
            }),
            journal: JournalSettings::of(&assembly).map(|known| JournalSettings {
                rules,
                // A stripe each.
                region_min: Sectors::new(1),
                // Also the shortest.
                intents_from: known.intents_from.and(NonZeroU32::new(1)),
                ..known
            }),
            verify: verify.map(|verify| VerifySettings { rules, ..verify }),
        };
        let mut machine = Self {
            array: Array::new(&settings, Streams::new(seed)),
            disks,
            buffers: Buffers::new(Kernel::best()),
            inside: Vec::new(),
            now: Instant::ZERO,
            request_next: 0,
            writes: BTreeMap::new(),
            flushes: BTreeMap::new(),
            reads: BTreeMap::new(),
            delivered: BTreeMap::new(),
            promise,
            trouble: None,
            has_patience: patience.is_some(),
            slow_metadata,
            slow_aside,
            fills,
            returning,
            lost: DriveSet::EMPTY,
            returned: 0,
            unfilled,
            coming: None,
            replaced,
            seated: 0,
            dead,
            spoilt,
            ending: None,
            broken: None,
            given_up: 0,
            damaged: 0,
            failed: 0,
            liar: Liar::new(lies, seed, assembly.area.clone()),
            faulty: None,
            findings: Vec::new(),
            doubts,
            recorded,
            late,
            earlier,
            is_beyond,
            troubled: DriveSet::EMPTY,
            planted,
            met: Met::default(),
            watch: Watch::default(),
        };
        machine.excuse();
        machine.carry_out();
        Ok(machine)
    }

    /// What would be left if the power failed now.
    pub fn image(&self) -> Image {
        let mut torn = Vec::new();
        let of_place = self.inside.iter().filter(|inside| inside.of == Of::Place);
        torn.extend(of_place.filter_map(faults::torn_of));
        let (disks, promise) = (self.disks.clone(), self.promise.clone());
        let (lost, dead) = (self.array.away(), self.dead);
        let (unfilled, spoilt) = (self.unfilled, self.spoilt);
        let replaced = self.replaced.clone();
        let is_mistaken = |coming: &Coming| coming.has_copy && is_member(&coming.disk);
        assert!(!self.coming.as_ref().is_some_and(is_mistaken), "CP1: it says that it is a member");
        let doubts = self.doubts_now();
        let recorded = self.recorded.max(self.array.synced_recorded());
        let (late, earlier) = (self.late.clone(), self.earlier.clone());
        Image {
            disks,
            torn,
            promise,
            lost,
            dead,
            unfilled,
            replaced,
            spoilt,
            doubts,
            recorded,
            late,
            earlier,
            is_beyond: self.is_beyond,
        }
    }

    /// What was answered and must not have been.
    pub(crate) fn is_good(&mut self) -> Result<(), String> {
        self.broken.take().map_or(Ok(()), Err)
    }

    /// Disks that count like lost ones.
    pub(crate) fn faults(&self) -> DriveSet {
        let troubled = self.trouble.iter().map(|trouble| trouble.drive).collect();
        self.spoilt.or(with_bad_places(&self.disks)).or(troubled)
    }

    /// Disks that are away, or that the array does not count on for good.
    pub(crate) fn gone(&self) -> DriveSet {
        self.array.lost().or(self.unfilled)
    }

    /// A disk is not one of those any more when enough disks say that it is full. One that the array does without stays one: it
    /// may be back after a crash before its loss is recorded.
    fn note_unfilled(&mut self) {
        let filling = self.array.lost().without(self.array.away());
        if self.array.is_recorded() {
            self.unfilled = self.unfilled.and(self.array.lost());
        }
        self.unfilled = self.unfilled.or(filling);
    }

    /// The recovery is over: no unreadable sector of a journal matters any more.
    pub(crate) fn note_recovered(&mut self) {
        self.spoilt = DriveSet::EMPTY;
    }

    /// Whether something may be wrong with a disk for a time: the array waits for it only as long as its patience lasts.
    pub(crate) fn has_patience(&self) -> bool {
        self.has_patience
    }

    /// Requests that are not answered.
    pub fn outstanding(&self) -> usize {
        self.writes.len() + self.reads.len() + self.flushes.len()
    }

    /// Sends a write.
    pub fn write(&mut self, extent: Extent, durability: Durability) {
        let sent = self.promise.send(extent);
        let zero_tail = ZeroTail::None;
        let id = self.name();
        self.writes.insert(id, Wrote { sent, durability });
        self.buffers.insert(BufId::Client(id), Buf::copy_of(&sent.bytes()));
        self.send(id, Command::Write { extent, durability, zero_tail });
    }

    /// Sends a read beside writes.
    pub fn read(&mut self, extent: Extent) {
        let floors = Some(self.promise.floors(extent));
        self.ask(extent, floors);
    }

    fn ask(&mut self, extent: Extent, floors: Option<Vec<usize>>) -> RequestId {
        let id = self.name();
        self.reads.insert(id, Asked { extent, floors });
        self.send(id, Command::Read { extent, effort: Effort::Full });
        id
    }

    /// Sends a flush.
    pub fn flush(&mut self) {
        let id = self.name();
        self.flushes.insert(id, self.promise.answered());
        self.send(id, Command::Flush);
    }

    fn name(&mut self) -> RequestId {
        self.request_next += 1;
        RequestId(self.request_next)
    }

    fn send(&mut self, id: RequestId, command: Command) {
        self.array.handle_request(self.now, id, command);
        self.carry_out();
    }

    /// The array does without a disk from now on.
    pub fn lose(&mut self, drive: DriveIdx) {
        self.fail(drive, Why::Failed);
    }

    /// The same, for this reason.
    pub(crate) fn fail(&mut self, drive: DriveIdx, why: Why) {
        self.meet(Fault::Loss);
        self.array.handle_lost(self.now, drive, why);
        self.carry_out();
        if !self.dead.contains(drive) {
            self.returning = self.returning.with(drive);
            self.lost = self.lost.with(drive);
        }
    }

    /// A disk that the array does without is back, if one is and the array takes it.
    pub(crate) fn take_back(&mut self, rng: &mut Rng) {
        if self.replace_lost(rng) {
            return;
        }
        let Some(drive) = self.may_return().iter().next() else { return };
        self.bring_back(drive);
    }

    /// This disk, which the array does without, is back.
    pub(crate) fn bring_back(&mut self, drive: DriveIdx) {
        self.meet(Fault::Return);
        let word = find(&self.disks[drive.as_usize()]).word().expect("the array knows it");
        let Superblock { member: uuid, own, .. } = word.superblock;
        let new = NewMember { uuid, own, held: word.held };
        let only = DriveSet::EMPTY.with(drive);
        (self.returning, self.lost) = (self.returning.without(only), self.lost.without(only));
        self.returned += 1;
        let taken = self.array.handle_returned(self.now, drive, Some(new));
        assert_eq!(taken, Ok(()), "it may return");
        self.carry_out();
    }

    /// A new disk comes into the place of a lost one, if there is one: always if it had nothing but the journal and never comes
    /// back, and now and then if it had data.
    fn replace_lost(&mut self, rng: &mut Rng) -> bool {
        let spec = *self.array.layout().spec();
        let with_data =
            if self.fills || rng.below(4) == 0 { spec.data_drives() } else { DriveSet::EMPTY };
        let lost = self.array.away().and(spec.journal_drives().and(self.dead).or(with_data));
        let Some(drive) = self.may_replace().and(lost).iter().next() else { return false };
        self.replace(drive, rng);
        true
    }

    /// A new disk comes into the place of this one, which the array does without.
    pub(crate) fn replace(&mut self, drive: DriveIdx, rng: &mut Rng) {
        self.meet(Fault::Replacement);
        let own = self.array.own_of_a_member(drive).cloned().expect("another one is there");
        let own = Own { drive, ..own };
        let new = self.disks[drive.as_usize()].another();
        self.put_in(drive, new);
        self.spoilt = self.spoilt.without(DriveSet::EMPTY.with(drive));
        let uuid = Uuid(u128::from(rng.bits()).to_le_bytes());
        let taken =
            self.array.handle_replaced(self.now, drive, Some(NewMember { uuid, own, held: None }));
        assert_eq!(taken, Ok(()), "it may be replaced");
        self.carry_out();
    }

    /// A disk is copied to a new one from now on, if the array does that. The new one may have been a member.
    pub(crate) fn copy(&mut self, drive: DriveIdx, rng: &mut Rng) -> bool {
        if self.array.may_copy(drive).is_err() {
            return false;
        }
        let Some(own) = self.array.own(drive).cloned() else { return false };
        self.meet(Fault::Copy);
        let any = rng.below(self.disks.len() as u64) as usize;
        let mut disk = self.disks[any].clone();
        disk.heal();
        self.coming = Some(Coming { disk, has_copy: false });
        let new = NewMember { uuid: Uuid(u128::from(rng.bits()).to_le_bytes()), own, held: None };
        let taken = self.array.handle_copy(self.now, drive, Some(new));
        assert_eq!(taken, Ok(()), "it may be copied");
        self.carry_out();
        true
    }

    /// The next step of making redundancy valid.
    pub fn resync(&mut self) {
        self.meet(Fault::Resync);
        self.array.handle_resync(self.now);
        self.carry_out();
    }

    /// A disk sits out from now on, or is admitted again if it does. Returns whether it sits out now.
    pub fn turn_aside(&mut self, drive: DriveIdx) -> bool {
        self.meet(Fault::Aside);
        let was_aside = self.array.sat_out().contains(drive);
        let turned = match was_aside {
            true => self.array.handle_admit(self.now, drive),
            false => self.array.handle_sit_out(self.now, drive),
        };
        self.excuse();
        self.carry_out();
        turned.is_ok() && !was_aside
    }

    /// The array is to end.
    pub fn stop(&mut self) {
        self.meet(Fault::Stop);
        self.array.handle_stop(self.now);
        self.carry_out();
    }

    /// How it has ended, once it has.
    pub fn ending(&self) -> Option<Ending> {
        self.ending
    }

    /// Steps until every request is answered.
    pub fn run_until_answered(&mut self, rng: &mut Rng) -> Result<(), String> {
        for _ in 0..20_000 {
            if self.outstanding() == 0 {
                return Ok(());
            }
            if !self.step(rng) {
                return Err(format!("{} requests are never answered", self.outstanding()));
            }
        }
        Err("requests are not answered in 20,000 steps".into())
    }

    /// Reads the whole array and holds it against the promise.
    pub fn verify(&mut self, rng: &mut Rng) -> Result<(), String> {
        self.run_until_answered(rng)?;
        self.excuse();
        let extent = Extent::new(Lba::ZERO, self.array.size());
        let id = self.ask(extent, None);
        self.run_until_answered(rng)?;
        self.is_good()?;
        let (answer, data) = self.delivered.remove(&id).expect("it was answered");
        self.hold_against_promise(extent, &answer.outcome, &data)
    }

    /// What a read of the whole array has brought that nothing is writing.
    fn hold_against_promise(
        &mut self,
        extent: Extent,
        outcome: &Outcome,
        data: &[u8],
    ) -> Result<(), String> {
        self.may_fail(extent, outcome)?;
        match lacking(outcome) {
            None => Ok(()),
            Some(lacking) if self.is_beyond => {
                let floors = self.promise.floors(extent);
                self.promise.see(extent, &floors, data, &lacking)
            }
            Some(lacking) => self.promise.check(extent, data, &lacking),
        }
    }

    /// Whether a read may have ended so: only sectors may be missing that the array has given up.
    fn may_fail(&self, extent: Extent, outcome: &Outcome) -> Result<(), String> {
        if self.is_beyond {
            return Ok(());
        }
        let is_given_up = |offset: u32| {
            let lba = extent.lba + Sectors::new(offset.into());
            self.promise.is_given_up(lba.get())
        };
        match outcome {
            Outcome::Done { unknown, damaged } if unknown.is_empty() => {
                match damaged.iter().find(|&offset| !is_given_up(offset)) {
                    None => Ok(()),
                    Some(offset) => Err(format!("sector {offset} of {extent:?} cannot be read")),
                }
            }
            outcome => Err(format!("{extent:?} cannot be read: {outcome:?}")),
        }
    }

    /// The disk that was coming has a place.
    fn seat(&mut self, drive: DriveIdx) {
        let Coming { disk, .. } = self.coming.take().expect("a disk was coming");
        self.put_in(drive, disk);
        self.seated += 1;
    }

    /// Another disk is in a place from now on; the old one may still be shown after a crash.
    fn put_in(&mut self, drive: DriveIdx, disk: Disk) {
        let old = std::mem::replace(&mut self.disks[drive.as_usize()], disk);
        self.replaced.retain(|replaced| replaced.drive != drive);
        self.replaced.push(Replaced { drive, disk: old });
        self.forget_disk(drive);
        let only = DriveSet::EMPTY.with(drive);
        (self.returning, self.dead) = (self.returning.without(only), self.dead.without(only));
        self.lost = self.lost.without(only);
        self.leave(|inside| inside.of == Of::Place && inside.submit.drive == drive);
    }

    fn carry_out(&mut self) {
        while let Some(action) = self.array.poll() {
            match action {
                Action::Acquire { buf, sectors } => {
                    let mut fresh = Buf::zeroed(sectors);
                    fresh.as_mut_slice().fill(0xA5);
                    self.buffers.insert(buf, fresh);
                }
                Action::Submit(submit) => self.take(Of::Place, submit),
                Action::Coming(submit) => self.take(Of::Coming, submit),
                Action::Seat(drive) => self.seat(drive),
                Action::Dismiss(_) => {
                    self.coming = None;
                    self.leave(|inside| inside.of == Of::Coming);
                }
                Action::Combine(combine) => self.buffers.combine(&combine),
                Action::Deliver(Deliver { request, segments }) => {
                    self.buffers.deliver(BufId::Client(request), &segments);
                }
                Action::Release(buf) => self.buffers.discard(buf),
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
                Action::Examine { buf, first, unreadable, ring } => {
                    let found = examine(self.buffers.bytes(buf), first, &unreadable, ring);
                    self.array.handle_examined(self.now, buf, found);
                }
                Action::Digest { id, of, into } => {
                    let sums = checksums(self.buffers.share(&of).iter().map(Piece::bytes));
                    for tag in &into {
                        self.buffers.inscribe(tag.into, &tag.encode(&sums));
                    }
                    self.array.handle_digested(self.now, id, &sums);
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
                Action::Sum { buf } => {
                    let sums = checksums(std::iter::once(self.buffers.bytes(buf)));
                    self.array.handle_summed(self.now, buf, &sums);
                }
                Action::Check { op, sums } => {
                    let zero: Vec<bool> =
                        sums.iter().map(|sum| self.buffers.is_zero_sum(sum)).collect();
                    self.array.handle_checked(self.now, op, &zero);
                }
                Action::Stopped(ending) => self.ending = Some(ending),
                Action::Event(Event::Array(ArrayEvent::Unrecovered { extent })) => {
                    self.given_up += extent.sectors.get();
                    self.promise.give_up(extent);
                }
                Action::Event(Event::Array(ArrayEvent::Damaged { drive, extent })) => {
                    self.note_damaged(drive, extent);
                }
                Action::Event(Event::Array(ArrayEvent::WriteFlawed {
                    drive,
                    extent,
                    flaw,
                    ..
                })) if flaw != Flaw::Unreadable => self.note_flawed(drive, extent),
                Action::Event(Event::Lost { drive, why: Why::Silent, .. }) => {
                    self.note_silent(drive);
                }
                Action::Event(Event::Array(
                    event @ (ArrayEvent::Corrupt { .. }
                    | ArrayEvent::Repaired { .. }
                    | ArrayEvent::Unlocated { .. }),
                )) => self.findings.push(event),
                Action::Event(_) => {}
                Action::Answer(answer) => self.note_answer(answer),
            }
        }
        self.note_unfilled();
        self.watch.look(&self.array, &mut self.met);
    }

    /// A fault comes now.
    pub(crate) fn meet(&mut self, fault: Fault) {
        self.met.note(fault, &self.array);
    }

    fn note_answer(&mut self, answer: Answer) {
        let id = answer.request;
        if let Some(Asked { extent, floors }) = self.reads.remove(&id) {
            let data = self.buffers.take_delivered(BufId::Client(id));
            let data = data.unwrap_or(Data::None);
            let Some(floors) = floors else {
                self.delivered.insert(id, (answer, data.into_buf().as_slice().to_vec()));
                return;
            };
            // Also what was written since the start. Where nothing is computed, what waits is had from memory.
            if self.note_computed() {
                self.excuse();
            }
            let seen = self.may_fail(extent, &answer.outcome).and_then(|()| {
                let Some(lacking) = lacking(&answer.outcome) else { return Ok(()) };
                let bytes = data.into_buf();
                self.promise.see(extent, &floors, bytes.as_slice(), &lacking)
            });
            return self.note(seen);
        }
        match self.writes.remove(&id) {
            Some(Wrote { sent, durability }) if answer.outcome.is_good() => {
                self.promise.answer(sent, durability);
            }
            Some(Wrote { .. }) if self.is_beyond => {}
            Some(Wrote { sent, .. }) => {
                self.note(Err(format!("{sent:?} failed: {:?}", answer.outcome)));
            }
            None => {
                let safe = self.flushes.remove(&id).expect("it was sent");
                if answer.outcome.is_good() {
                    self.promise.flush(&safe);
                } else if !self.is_beyond {
                    self.note(Err(format!("a flush failed: {:?}", answer.outcome)));
                }
            }
        }
    }

    /// Data may be nowhere if it was being replaced when the power failed, and the disk is not there.
    fn note_damaged(&mut self, drive: DriveIdx, extent: Extent) {
        for lba in extent.iter() {
            let (row, symbol) = self.array.layout().symbol(Cell { drive, lba });
            let symbol = if self.array.layout().spec().is_mirror() { 0 } else { symbol };
            if symbol < self.array.layout().data_symbols() {
                self.damaged += 1;
                let sector = self.array.layout().sector(row, symbol);
                let seen = self.promise.damage(sector);
                self.note(if self.is_beyond { Ok(()) } else { seen });
            }
        }
    }

    fn note(&mut self, seen: Result<(), String>) {
        if let Err(broken) = seen {
            self.broken.get_or_insert(broken);
        }
    }
}

/// Sectors that a read has not brought; `None` if it has brought nothing.
fn lacking(outcome: &Outcome) -> Option<SectorSet> {
    match outcome {
        Outcome::Done { unknown, damaged } => Some(unknown.iter().chain(damaged.iter()).collect()),
        Outcome::Refused | Outcome::Unreachable | Outcome::Gone => None,
    }
}
