//! What the array records of itself is read back at once, where writes are read back at all: the ledger hears of the end of a record
//! when the drive has it.
//!
//! ```text
//!   a record has ended --> read back --> the same: the ledger is told
//!                            ^   |
//!                            |   v differs
//!                            +-- written again, three times at most: then the array does without the drive, where it can
//! ```
//!
//! To the ledger the record is inside the drive until then, so that G7 holds: an older one never lands after a newer one.

use std::collections::BTreeMap;

use levelhead_block::{BufId, Command, Durability, Effort, Outcome, Place, Segment, ZeroTail};
use levelhead_units::{DriveIdx, DriveSet, Extent, Instant};

use crate::Array;
use crate::action::{Action, SubId};
use crate::core::{Enqueue, OpId, Purpose, Sub};
use crate::drives::Fate;
use crate::drives::queue::End;
use crate::durable::membership::Why;
use crate::event::ArrayEvent;

/// A record that differs after it was written again this number of times costs the drive, where the array can do without it.
const AGAIN_MAX: u32 = 3;

/// The records that are being read back.
#[derive(Debug)]
pub(crate) struct RecordChecks {
    is_on: bool,
    /// By the command that is inside the drive for it.
    inside: BTreeMap<SubId, RecordCheck>,
    comparing: BTreeMap<OpId, Comparing>,
    /// Drives that have not stored one, and are needed all the same: those are told.
    told: DriveSet,
}

/// A record that is being read back.
#[derive(Clone, Copy, Debug)]
struct RecordCheck {
    /// The ledger's command.
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
    check: RecordCheck,
    read: BufId,
}

impl RecordChecks {
    pub(crate) fn new(is_on: bool) -> Self {
        let (inside, comparing) = (BTreeMap::new(), BTreeMap::new());
        Self { is_on, inside, comparing, told: DriveSet::EMPTY }
    }
}

impl Array {
    /// A drive that is not lost has ended a command of the ledger's, or one that reads back for it.
    pub(crate) fn handle_books_done(
        &mut self,
        now: Instant,
        sub: SubId,
        state: &Sub,
        outcome: &Outcome,
    ) {
        match (self.record_checks.inside.remove(&sub), state.command) {
            (Some(check), Command::Read { .. }) => {
                self.compare_record(now, check, state.read_buf(), outcome);
            }
            (Some(check), _) => self.read_record(now, check),
            (None, Command::Write { extent, .. })
                if self.record_checks.is_on && outcome.is_good() =>
            {
                let buf = state.written_buf().expect("a record is in a buffer");
                self.core.retain(buf);
                let (drive, again) = (state.drive, 0);
                self.read_record(now, RecordCheck { sub, drive, extent, buf, again });
            }
            (None, _) => self.tell_ledger(now, state.drive, sub),
        }
    }

    fn tell_ledger(&mut self, now: Instant, drive: DriveIdx, sub: SubId) {
        let ledger = self.ledger.as_mut().expect("it has asked for this");
        ledger.handle_done(&mut self.core, now, drive, sub);
    }

    fn read_record(&mut self, now: Instant, check: RecordCheck) {
        let place = Place { buf: self.core.name_buf(), sector: 0 };
        let command = Command::Read { extent: check.extent, effort: Effort::Medium };
        self.ask_for_record(now, check, command, place);
    }

    fn ask_for_record(&mut self, now: Instant, check: RecordCheck, command: Command, place: Place) {
        let what = Enqueue {
            purpose: Purpose::Ledger,
            drive: check.drive,
            command,
            segments: vec![Segment { place, sectors: 1 }],
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
        let place = |buf| Place { buf, sector: 0 };
        let sums = vec![vec![(1, place(check.buf)), (1, place(read))]];
        self.core.actions.push_back(Action::Check { op, sums });
        self.record_checks.comparing.insert(op, Comparing { check, read });
    }

    /// Whether a record is what it should be, if that was asked for here.
    pub(crate) fn handle_record_compared(&mut self, now: Instant, op: OpId, same: &[bool]) {
        let Some(Comparing { check, read }) = self.record_checks.comparing.remove(&op) else {
            return;
        };
        self.core.release(read);
        if self.core.drives.away().contains(check.drive) {
            self.core.release(check.buf);
        } else if same.iter().all(|&is_same| is_same) {
            self.core.release(check.buf);
            self.tell_ledger(now, check.drive, check.sub);
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

    /// A record is not stored, however often it is written. A drive that is needed is kept: of its records others have copies.
    fn give_up_record(&mut self, now: Instant, check: RecordCheck) {
        self.core.release(check.buf);
        let drive = check.drive;
        let is_redundant = self.core.is_redundant(self.core.layout.stripes());
        let only = DriveSet::EMPTY.with(drive);
        let is_kept = !is_redundant || !self.core.drives.can_spare(only);
        if !is_kept || !self.record_checks.told.contains(drive) {
            self.tell(ArrayEvent::RecordLost { drive, is_kept });
        }
        if is_kept {
            self.record_checks.told = self.record_checks.told.or(only);
            self.tell_ledger(now, drive, check.sub);
        } else {
            self.lose(now, drive, Why::Failed);
        }
    }

    /// The array does without a drive from now on.
    pub(crate) fn forget_records(&mut self, drive: DriveIdx) {
        let of_drive = |_: &SubId, check: &mut RecordCheck| check.drive == drive;
        self.record_checks.told = self.record_checks.told.without(DriveSet::EMPTY.with(drive));
        let gone: Vec<RecordCheck> =
            self.record_checks.inside.extract_if(.., of_drive).map(|(_, check)| check).collect();
        gone.into_iter().for_each(|check| self.core.release(check.buf));
    }
}
