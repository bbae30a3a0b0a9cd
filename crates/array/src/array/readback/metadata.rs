//! What the array records of itself is read back at once, whether or not writes are: superblocks and metadata. The store hears
//! of the end of a record when the drive has it.
//!
//! ```text
//!   a record has ended --> read back --> the same: the store hears of it
//!                            ^   |
//!                            |   v differs, cannot be read, or could not be written
//!                            +-- written again, three times at most: then the array does without the drive, where it can
//! ```
//!
//! To the store the record is inside the drive until then: an older one never lands after a newer one, and the slot with the
//! newest metadata is not written over before the other one is there.
//!
//! A drive that does not store a record, and that the array needs, is kept: the others say what it does not, and a start
//! that does without all of them does without more drives than the layout survives. But the drive never counts among those
//! that have the record; where it would have to, the array does without it after all, and has failed.
//!
//! # What it leaves out
//!
//! Records of the journal are not read back: each is checked where it is used, and what it says is written in place soon.

use std::collections::BTreeMap;

use levelhead_block::{BufId, Command, Durability, Effort, Outcome, Place, Segment, ZeroTail};
use levelhead_units::{DriveIdx, DriveSet, Extent, Instant, Sectors};

use crate::action::Action;
use crate::array::{Array, Moved};
use crate::core::{Core, Enqueue, Purpose, Sub};
use crate::drives::Fate;
use crate::drives::queue::End;
use crate::event::ArrayEvent;
use crate::meta::fence::{Seen, Target};
use crate::meta::membership::Why;
use crate::meta::metadata::Author;
use crate::names::{OpId, SubId};
use crate::store::{Store, Stored};

/// A record that differs after it was written again this number of times costs the drive, where the array can do without it.
const AGAIN_MAX: u32 = 3;

/// The records that are being read back.
#[derive(Clone, Debug, Default)]
pub(crate) struct RecordChecks {
    /// By the command that is inside the drive for it.
    inside: BTreeMap<SubId, RecordCheck>,
    comparing: BTreeMap<OpId, Comparing>,
    /// Drives that have not stored one, and are needed all the same: those are told.
    told: DriveSet,
    /// Looks at slots, by the commands that read them.
    looks: BTreeMap<SubId, Look>,
    /// The same by the buffers that the runtime looks into; nothing of a drive that is lost by now.
    looked: BTreeMap<BufId, Option<Look>>,
}

/// A look at who has written a slot (`meta/fence.rs`).
#[derive(Clone, Copy, Debug)]
struct Look {
    target: Target,
    /// How many sectors of it are read.
    sectors: Sectors,
    then: Then,
}

/// What comes after a look that shows nothing of another server.
#[derive(Clone, Copy, Debug)]
enum Then {
    Nothing,
    /// A record counts.
    Tell(Ended),
    /// A record that is not there is written again.
    Rewrite(RecordCheck),
}

impl Look {
    fn at(target: Target) -> Self {
        Self { target, sectors: Sectors::new(1), then: Then::Nothing }
    }
}

/// A record that is being read back.
#[derive(Clone, Copy, Debug)]
struct RecordCheck {
    /// The command of the store.
    sub: SubId,
    drive: DriveIdx,
    extent: Extent,
    /// What it says.
    buf: BufId,
    /// How often it was written again.
    again: u32,
}

#[derive(Clone, Copy, Debug)]
struct Comparing {
    /// Nothing once the drive is lost.
    check: Option<RecordCheck>,
    read: BufId,
}

impl RecordChecks {
    /// Whether a comparison is under way.
    pub(crate) fn is_comparing(&self) -> bool {
        !self.comparing.is_empty() || !self.looked.is_empty()
    }
}

impl Array {
    /// A drive that is not lost has ended a command of the store, or one that reads back for them.
    pub(crate) fn handle_meta_done(
        &mut self,
        now: Instant,
        sub: SubId,
        state: &Sub,
        outcome: &Outcome,
    ) {
        if let Some(look) = self.readback.records.looks.remove(&sub) {
            return self.look_into(now, look, state.read_buf(), outcome);
        }
        let check = self.readback.records.inside.remove(&sub);
        let drive = state.drive;
        let check = match (check, state.command) {
            (Some(check), Command::Read { .. }) => {
                return self.compare_record(now, check, state.read_buf(), outcome);
            }
            (Some(check), _) => check,
            (None, Command::Write { extent, .. }) if self.core.out.carries_content() => {
                let buf = state.written_buf().expect("a record is in a buffer");
                self.core.out.retain(buf);
                RecordCheck { sub, drive, extent, buf, again: 0 }
            }
            (None, command) => {
                // A flush ends well or with its drive; where no content is carried there is nothing to be compared.
                let is_write = matches!(command, Command::Write { .. });
                assert!(!is_write || !self.core.out.carries_content(), "a record is read back");
                let ended = Ended { drive, sub, stored: Stored::Yes };
                return self.tell_store(ended);
            }
        };
        match outcome.is_good() {
            true => self.read_record(now, check),
            false => self.write_record_again(now, check),
        }
    }

    fn tell_store(&mut self, ended: Ended) {
        let Ended { drive, sub, stored } = ended;
        let store = self.store.as_mut().expect("it has asked for this");
        store.handle_done(&mut self.core, drive, sub, stored);
    }

    fn read_record(&mut self, now: Instant, check: RecordCheck) {
        let place = Place { buf: self.core.out.name_buf(), sector: 0 };
        let command = Command::Read { extent: check.extent, effort: Effort::Medium };
        self.ask_for_record(now, check, command, place);
    }

    fn ask_for_record(&mut self, now: Instant, check: RecordCheck, command: Command, place: Place) {
        let what = of_metadata(&self.core, check.drive, command, place);
        let sub = self.core.enqueue(now, what);
        self.readback.records.inside.insert(sub, check);
    }

    fn compare_record(
        &mut self,
        now: Instant,
        check: RecordCheck,
        read: Option<BufId>,
        outcome: &Outcome,
    ) {
        let read = read.expect("a read fills a buffer");
        if !outcome.is_good() {
            self.core.out.release(read);
            return self.write_record_again(now, check);
        }
        let op = self.work.name();
        let pair = |sector| [check.buf, read].map(|buf| (1, Place { buf, sector })).to_vec();
        let sums = (0..check.extent.sectors.get() as u32).map(pair).collect();
        self.core.out.push(Action::Check { op, sums });
        self.readback.records.comparing.insert(op, Comparing { check: Some(check), read });
    }

    /// Whether the sectors of a record are what they should be, if that was asked for here.
    pub(crate) fn handle_record_compared(&mut self, now: Instant, op: OpId, same: &[bool]) {
        let Some(Comparing { check, read }) = self.readback.records.comparing.remove(&op) else {
            return;
        };
        self.core.out.release(read);
        let Some(check) = check else { return };
        let is_same = same.iter().all(|&is_same| is_same);
        let store = self.store.as_ref().expect("it has asked for this");
        let beside = store.slot_beside(check.drive, check.extent.lba);
        // Another server has written its own into the slot itself, or beside it.
        let look = |slot, then| Look { then, ..Look::at(store.target(check.drive, slot)) };
        match (is_same, beside) {
            (true, Some(slot)) => {
                let look = look(slot, Then::Tell(check.ended(Stored::Yes)));
                self.core.out.release(check.buf);
                self.look(now, look);
            }
            (true, None) => {
                self.core.out.release(check.buf);
                self.tell_store(check.ended(Stored::Yes));
            }
            (false, Some(slot)) => {
                let look = look(1 - slot, Then::Rewrite(check));
                self.look(now, look);
            }
            (false, None) => self.write_record_again(now, check),
        }
    }

    fn write_record_again(&mut self, now: Instant, check: RecordCheck) {
        if check.again == AGAIN_MAX {
            return self.give_up_record(now, check);
        }
        self.core.counters.verify_records += 1;
        let (extent, place) = (check.extent, Place { buf: check.buf, sector: 0 });
        let (durability, zero_tail) = (Durability::Durable, ZeroTail::None);
        let command = Command::Write { extent, durability, zero_tail };
        self.ask_for_record(now, RecordCheck { again: check.again + 1, ..check }, command, place);
    }

    /// Looks at both slots of these drives, where that is not being done already.
    pub(crate) fn look_at(&mut self, now: Instant, drives: DriveSet) {
        for (drive, slot) in drives.iter().flat_map(|drive| [(drive, 0), (drive, 1)]) {
            let RecordChecks { looks, looked, .. } = &self.readback.records;
            let mut open = looks.values().chain(looked.values().flatten());
            let is_open = open.any(|look| {
                let is_plain = matches!(look.then, Then::Nothing);
                is_plain && (look.target.drive, look.target.slot) == (drive, slot)
            });
            if !is_open {
                self.look_at_slot(now, drive, slot);
            }
        }
    }

    fn look_at_slot(&mut self, now: Instant, drive: DriveIdx, slot: usize) {
        let store = self.store.as_ref().expect("it has asked for this");
        let look = Look::at(store.target(drive, slot));
        self.look(now, look);
    }

    fn look(&mut self, now: Instant, look: Look) {
        let Target { drive, slot, .. } = look.target;
        let own = self.store.as_ref().and_then(|store| store.own(drive));
        let slot = own.expect("a drive that is there said something of itself").slots()[slot];
        let extent = Extent::new(slot.lba, look.sectors);
        let place = Place { buf: self.core.out.name_buf(), sector: 0 };
        let command = Command::Read { extent, effort: Effort::Medium };
        let sub = self.core.enqueue(now, of_metadata(&self.core, drive, command, place));
        self.readback.records.looks.insert(sub, look);
    }

    fn look_into(&mut self, now: Instant, look: Look, read: Option<BufId>, outcome: &Outcome) {
        let read = read.expect("a read fills a buffer");
        if outcome.is_good() {
            self.readback.records.looked.insert(read, Some(look));
            self.core.out.push(Action::Look { buf: read });
        } else {
            self.core.out.release(read);
            self.end_look(now, look, None);
        }
    }

    /// Who has written the slot that this buffer was read from, if that can be told ([`Action::Look`]).
    pub fn handle_looked(&mut self, now: Instant, buf: BufId, author: Option<Author>) {
        let look = self.readback.records.looked.remove(&buf).expect("it was asked for");
        self.core.out.release(buf);
        if let Some(look) = look {
            self.end_look(now, look, author);
        }
        self.move_on(now);
    }

    fn end_look(&mut self, now: Instant, look: Look, author: Option<Author>) {
        let Look { target, sectors, then } = look;
        let drive = target.drive;
        let store = self.store.as_mut().expect("it has asked for this");
        let (seen, is_wanted_again) = store.handle_look(target, author);
        match (seen, author) {
            // Its write may have been cut off, and be nothing.
            (Seen::AnotherServer, Some(author)) if sectors < author.sectors => {
                return self.look(now, Look { sectors: author.sectors, ..look });
            }
            (Seen::AnotherServer, _) => {
                self.let_go(look);
                return self.fence(now);
            }
            (Seen::Earlier, _) => {
                self.let_go(look);
                self.tell(ArrayEvent::WentBack { drive });
                return self.lose(now, drive, Why::Failed);
            }
            (Seen::Own | Seen::Nothing, _) => {}
        }
        match then {
            Then::Nothing if is_wanted_again => self.look_at_slot(now, drive, target.slot),
            Then::Nothing => {}
            Then::Tell(ended) => self.tell_store(ended),
            Then::Rewrite(check) => self.write_record_again(now, check),
        }
    }

    /// A look has no consequences any more.
    fn let_go(&mut self, look: Look) {
        if let Then::Rewrite(check) = look.then {
            self.core.out.release(check.buf);
        }
    }

    /// Another server has the array: gives up all drives.
    fn fence(&mut self, now: Instant) {
        // Not even what was on its way goes there.
        let sent = self.core.out.take_back_submits();
        self.tell(ArrayEvent::Fenced);
        for drive in DriveSet::first(self.core.layout().spec().members() as u8).iter() {
            self.lose(now, drive, Why::Failed);
        }
        sent.into_iter().for_each(|sub| self.handle_done(now, sub, &Outcome::Gone));
    }

    /// A record is not stored, however often it is written. A drive that is needed is kept, and does not count among those that
    /// have the record.
    fn give_up_record(&mut self, now: Instant, check: RecordCheck) {
        self.core.out.release(check.buf);
        let drive = check.drive;
        let only = DriveSet::EMPTY.with(drive);
        // One that is being filled counts as lost already.
        let is_kept = !self.could_spare(drive) && !self.core.drives.lost().contains(drive);
        if !is_kept || !self.readback.records.told.contains(drive) {
            self.tell(ArrayEvent::RecordLost { drive, is_kept });
        }
        if is_kept {
            self.readback.records.told = self.readback.records.told.or(only);
            self.tell_store(check.ended(Stored::No));
        } else {
            self.lose(now, drive, Why::Failed);
        }
    }

    /// Whether everything that was written could be had without a drive as well.
    pub(crate) fn could_spare(&self, drive: DriveIdx) -> bool {
        let is_redundant = self.core.is_redundant(self.core.layout().stripes());
        is_redundant && self.core.drives.can_spare(DriveSet::EMPTY.with(drive))
    }

    /// Loses drives that have not stored a record and that were kept, if without them it is on too few.
    pub(crate) fn lose_unstored(&mut self, now: Instant) -> Moved {
        let core = &mut self.core;
        if self.readback.records.told.is_empty() || core.has_failed() {
            return Moved::No;
        }
        let unstored = |store: &Store| store.unstored(core);
        let drives = self.store.as_ref().map_or(DriveSet::EMPTY, unstored);
        let drives = drives.without(core.drives.away());
        drives.iter().for_each(|drive| self.lose(now, drive, Why::Failed));
        if drives.is_empty() { Moved::No } else { Moved::Yes }
    }

    /// The array does without a drive from now on.
    pub(crate) fn forget_records(&mut self, drive: DriveIdx) {
        let checks = &mut self.readback.records;
        checks.told = checks.told.without(DriveSet::EMPTY.with(drive));
        let is_meant = |check: &RecordCheck| check.drive == drive;
        let of_drive = |_: &SubId, check: &mut RecordCheck| is_meant(check);
        let inside = checks.inside.extract_if(.., of_drive).map(|(_, check)| check);
        // What is being compared is not the affair of a drive that comes into its place.
        let compared =
            checks.comparing.values_mut().filter_map(|known| known.check.take_if(|c| is_meant(c)));
        let is_look = |look: &Look| look.target.drive == drive;
        let looks = checks.looks.extract_if(.., |_, look| is_look(look)).map(|(_, look)| look);
        let looked =
            checks.looked.values_mut().filter_map(|look| look.take_if(|look| is_look(look)));
        let rewritten = looks.chain(looked).filter_map(|look| match look.then {
            Then::Rewrite(check) => Some(check),
            Then::Nothing | Then::Tell(_) => None,
        });
        let gone: Vec<RecordCheck> = inside.chain(compared).chain(rewritten).collect();
        gone.into_iter().for_each(|check| self.core.out.release(check.buf));
    }
}

/// A command that reads or writes what is in the buffer from this place on.
fn of_metadata(core: &Core, drive: DriveIdx, command: Command, place: Place) -> Enqueue {
    let sectors = command.extent().map_or(0, |extent| extent.sectors.get() as u32);
    Enqueue {
        purpose: Purpose::Meta,
        drive,
        command,
        segments: Segment { place, sectors }.into(),
        origin: core.own_origin(),
        end: End::First,
        fate: Fate::Certain,
        since: None,
    }
}

/// The end of a record, as the store hears of it.
#[derive(Clone, Copy, Debug)]
struct Ended {
    drive: DriveIdx,
    /// The command of the store.
    sub: SubId,
    stored: Stored,
}

impl RecordCheck {
    fn ended(self, stored: Stored) -> Ended {
        let Self { drive, sub, .. } = self;
        Ended { drive, sub, stored }
    }
}
