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
use levelhead_units::{DriveIdx, DriveSet, Extent, Instant};

use crate::action::{Action, SubId};
use crate::core::{Enqueue, OpId, Purpose, Sub};
use crate::drives::Fate;
use crate::drives::queue::End;
use crate::event::ArrayEvent;
use crate::meta::membership::Why;
use crate::meta::store::{Store, Stored};
use crate::{Array, Moved};

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
        !self.comparing.is_empty()
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
        let check = self.record_checks.inside.remove(&sub);
        let drive = state.drive;
        let check = match (check, state.command) {
            (Some(check), Command::Read { .. }) => {
                return self.compare_record(now, check, state.read_buf(), outcome);
            }
            (Some(check), _) => check,
            (None, Command::Write { extent, .. }) if self.core.carries_content() => {
                let buf = state.written_buf().expect("a record is in a buffer");
                self.core.retain(buf);
                RecordCheck { sub, drive, extent, buf, again: 0 }
            }
            (None, command) => {
                // A flush ends well or with its drive; where no content is carried there is nothing to be compared.
                let is_write = matches!(command, Command::Write { .. });
                assert!(!is_write || !self.core.carries_content(), "a record is read back");
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
        let place = Place { buf: self.core.name_buf(), sector: 0 };
        let command = Command::Read { extent: check.extent, effort: Effort::Medium };
        self.ask_for_record(now, check, command, place);
    }

    fn ask_for_record(&mut self, now: Instant, check: RecordCheck, command: Command, place: Place) {
        let sectors = check.extent.sectors.get() as u32;
        let what = Enqueue {
            purpose: Purpose::Meta,
            drive: check.drive,
            command,
            segments: Segment { place, sectors }.into(),
            origin: self.core.own_origin(),
            end: End::Head,
            fate: Fate::Certain,
            since: None,
        };
        let sub = self.core.enqueue(now, what);
        self.record_checks.inside.insert(sub, check);
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
            self.core.release(read);
            return self.write_record_again(now, check);
        }
        let op = self.name_op();
        let pair = |sector| [check.buf, read].map(|buf| (1, Place { buf, sector })).to_vec();
        let sums = (0..check.extent.sectors.get() as u32).map(pair).collect();
        self.core.actions.push_back(Action::Check { op, sums });
        self.record_checks.comparing.insert(op, Comparing { check: Some(check), read });
    }

    /// Whether the sectors of a record are what they should be, if that was asked for here.
    pub(crate) fn handle_record_compared(&mut self, now: Instant, op: OpId, same: &[bool]) {
        let Some(Comparing { check, read }) = self.record_checks.comparing.remove(&op) else {
            return;
        };
        self.core.release(read);
        let Some(check) = check else { return };
        if same.iter().all(|&is_same| is_same) {
            self.core.release(check.buf);
            self.tell_store(check.ended(Stored::Yes));
        } else {
            self.write_record_again(now, check);
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

    /// A record is not stored, however often it is written. A drive that is needed is kept, and does not count among those that
    /// have the record.
    fn give_up_record(&mut self, now: Instant, check: RecordCheck) {
        self.core.release(check.buf);
        let drive = check.drive;
        let only = DriveSet::EMPTY.with(drive);
        // One that is being filled counts as lost already.
        let is_kept = !self.could_spare(drive) && !self.core.drives.lost().contains(drive);
        if !is_kept || !self.record_checks.told.contains(drive) {
            self.tell(ArrayEvent::RecordLost { drive, is_kept });
        }
        if is_kept {
            self.record_checks.told = self.record_checks.told.or(only);
            self.tell_store(check.ended(Stored::No));
        } else {
            self.lose(now, drive, Why::Failed);
        }
    }

    /// Whether everything that was written could be had without a drive as well.
    pub(crate) fn could_spare(&self, drive: DriveIdx) -> bool {
        let is_redundant = self.core.is_redundant(self.core.layout.stripes());
        is_redundant && self.core.drives.can_spare(DriveSet::EMPTY.with(drive))
    }

    /// Loses drives that have not stored a record and that were kept, if without them it is on too few.
    pub(crate) fn lose_unstored(&mut self, now: Instant) -> Moved {
        let core = &mut self.core;
        if self.record_checks.told.is_empty() || core.has_failed() {
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
        let checks = &mut self.record_checks;
        checks.told = checks.told.without(DriveSet::EMPTY.with(drive));
        let is_meant = |check: &RecordCheck| check.drive == drive;
        let of_drive = |_: &SubId, check: &mut RecordCheck| is_meant(check);
        let inside = checks.inside.extract_if(.., of_drive).map(|(_, check)| check);
        // What is being compared is not the affair of a drive that comes into its place.
        let compared =
            checks.comparing.values_mut().filter_map(|known| known.check.take_if(|c| is_meant(c)));
        let gone: Vec<RecordCheck> = inside.chain(compared).collect();
        gone.into_iter().for_each(|check| self.core.release(check.buf));
    }
}

/// The end of a record, as the store hears of it.
#[derive(Clone, Copy)]
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
