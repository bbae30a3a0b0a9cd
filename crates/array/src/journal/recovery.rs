//! What an array does first after it was cut off: everything in the journal is brought to its place, or counts as
//! never begun.
//!
//! ```text
//!   read all rings --> decide --> put what was computed onto its ring --> mark what was decided
//!                         ^                                                        |
//!                         |  a drive is lost, a sector is not given                v
//!                         +-------------------------------------- write everything in its place
//!                                                                                  |
//!                        serve <-- mark that everything is over <-- flush <--------+
//! ```
//!
//! # Invariants
//!
//! - X1. Nothing is written before the drives that are not there are recorded as missing.
//! - X2. Nothing is written in place before all that was decided is on the rings for good. Another crash then finds
//!   the same, whichever drive it takes away.
//! - X3. Nothing is served before every ring that is there says for good that everything is over.
//! - X4. It ends, whatever sectors drives do not give: each time it begins anew because of one, that is a sector more
//!   which counts as unreadable. A sector of a ring counts as readable again when it is written; one that then is not
//!   given is not written any more. A mark says first of its ring that it has such sectors: what it lacks then proves nothing.
//! - X5. What is computed is written only if it has the checksum that its transaction's records name.
//! - X6. What is found in the journal is lacking on every drive of which it is known what it lacks. That is committed before it
//!   ends.
//! - X7. What it brings to its place is off the list of damaged sectors for good before it ends: until then redundancy may count it
//!   or zeroes, and only the records say which.
//! - X8. What is read of a ring is written in place only if it has the checksum that its transaction's records name. If not, the
//!   sector counts as unreadable.

mod computing;
mod decision;
mod judging;
mod placing;
mod scan;
mod telling;
mod transfers;

use std::collections::BTreeSet;

use levelhead_block::{BufId, Durability, Outcome, Place};
use levelhead_units::{DriveIdx, DriveSet, Instant, Lba, Sectors};

use self::computing::Computing;
use self::decision::{Decision, Room};
use self::judging::Announced;
use self::placing::Placing;
use self::scan::Scan;
use self::transfers::{Filled, Transfers};
use super::record::{FoundRecord, Kind, Record};
use super::ring::{Ring, Watermarks};
use super::rules::{Rule, Rules};
use super::verdict::Verdict;
use super::{Ended, Journal};
use crate::action::Sums;
use crate::core::Core;
use crate::shape::Cell;

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Recovery {
    step: Step,
    has_begun: bool,
    /// Whether some drive did not give a sector that was relied on.
    came_short: bool,
    rules: Rules,
    transfers: Transfers,
    scan: Scan,
    decision: Decision,
    /// Codewords that were being replaced as a whole.
    announced: Announced,
    computing: Computing,
    placing: Placing,
}

/// Marks that rings are to get.
#[derive(Clone, Copy, Debug)]
struct Marks {
    on: DriveSet,
    says: Watermarks,
    /// Whether sectors of these rings were not given.
    has_gaps: bool,
}

impl Marks {
    fn of_all(core: &Core, says: Watermarks) -> Self {
        Self { on: core.drives.reachable(), says, has_gaps: false }
    }
}

/// What is going on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Rings are being read.
    Reading,
    /// Everything was read; the drives that are not there are being recorded.
    Opening,
    /// Codewords that were being replaced as a whole are being read,
    Summing,
    /// their checksums computed,
    Judging,
    /// and what was not right is being written.
    Mending,
    /// Rings of which sectors were not given say so.
    Noting,
    /// The next thing to compute is being chosen.
    Choosing,
    /// What is needed to compute a part of a transaction is being read.
    Fetching(u64),
    /// It is being held against its checksums.
    Weighing(u64),
    /// What was computed of it is being held against its checksums.
    Checking,
    /// It is being put onto its rings.
    Appending,
    /// What was decided is being marked.
    Marking,
    /// Some of what is to be written in place is being read.
    Loading,
    /// It is being held against its checksums.
    Proving,
    /// It is being written.
    Placing,
    Flushing,
    Concluding,
    Done,
    /// All is to begin anew once the drives have ended what is inside them.
    Again,
}

/// Sectors of a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct At {
    drive: DriveIdx,
    space: Space,
    lba: Lba,
    sectors: Sectors,
}

/// How the sectors of a drive are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Space {
    /// As the drive does.
    Drive,
    /// As the layout does.
    Layout,
}

impl At {
    fn one(drive: DriveIdx, space: Space, lba: Lba) -> Self {
        Self { drive, space, lba, sectors: Sectors::new(1) }
    }

    fn end(self) -> Lba {
        self.lba + self.sectors
    }

    /// Each of its sectors.
    fn each(self) -> impl Iterator<Item = Self> {
        (0..self.sectors.get())
            .map(move |at| Self::one(self.drive, self.space, self.lba + Sectors::new(at)))
    }
}

impl Recovery {
    pub(crate) fn new(floor: u64, rules: Rules) -> Self {
        Self {
            step: Step::Again,
            has_begun: false,
            came_short: false,
            rules,
            transfers: Transfers::default(),
            scan: Scan::default(),
            decision: Decision::new(floor, rules),
            announced: Announced::default(),
            computing: Computing::default(),
            placing: Placing::default(),
        }
    }

    /// The name of the next transaction, once everything is in its place.
    pub(crate) fn ended(&self) -> Option<u64> {
        (self.step == Step::Done).then(|| self.decision.next())
    }

    /// A drive has ended a command of the recovery's.
    pub(crate) fn handle_done(&mut self, core: &mut Core, ended: Ended<'_>) {
        let Ended { sub, buf, spread, outcome, .. } = ended;
        let Some(Filled { buf, at }) = self.transfers.end(core, sub, buf) else { return };
        let missing = |offset: u32| match outcome {
            Outcome::Done { unknown, damaged } => {
                unknown.contains(offset) || damaged.contains(offset)
            }
            Outcome::Refused | Outcome::Unreachable | Outcome::Gone => true,
        };
        for (one, sector) in at.each().zip(0..) {
            self.came_short |= missing(sector);
            match (missing(sector), one.space) {
                (false, _) if self.step == Step::Reading => {}
                (false, _) => self.transfers.keep(one, spread.place(buf, sector)),
                (true, Space::Drive) => self.scan.tear(one),
                (true, Space::Layout) => {
                    self.decision.note_unreadable(Cell { drive: one.drive, lba: one.lba });
                }
            }
        }
    }

    /// What was found in a buffer.
    pub(crate) fn handle_examined(&mut self, buf: BufId, found: Vec<FoundRecord>) {
        if let Some(missing) = self.computing.take_checked(buf) {
            if !found.iter().any(|found| found.is_whole) {
                self.decision.note_wrong(missing);
                self.came_short = true;
            }
            return;
        }
        self.scan.handle_examined(buf, found);
    }

    /// The array does without a drive from now on: everything is decided anew.
    pub(crate) fn handle_lost(&mut self, drive: DriveIdx) {
        self.transfers.lose(drive);
        if self.step != Step::Done {
            self.step = Step::Again;
        }
    }

    /// Whether it has begun.
    pub(crate) fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// The array has failed: what was cut off never comes to its place.
    pub(crate) fn give_up(&mut self, core: &mut Core) {
        self.has_begun = true;
        if self.is_quiet() {
            self.release(core);
        }
    }

    /// Whether everything has ended that the step has begun.
    fn is_quiet(&self) -> bool {
        let is_known = self.scan.is_quiet() && self.computing.is_quiet();
        let is_summed = self.announced.is_quiet() && self.placing.is_quiet();
        self.transfers.is_quiet() && is_known && is_summed
    }

    /// Moves on as the facts demand.
    pub(crate) fn advance(&mut self, core: &mut Core, now: Instant, rings: &mut [Ring]) {
        self.has_begun = true;
        while self.is_quiet() && self.step != Step::Done {
            let step = self.step;
            self.step(core, now, rings);
            if step == self.step && self.is_quiet() {
                return; // It waits for the metadata.
            }
        }
    }

    /// All commands of the step have ended: goes to the next.
    fn step(&mut self, core: &mut Core, now: Instant, rings: &mut [Ring]) {
        match self.step {
            Step::Again => self.begin(core, now, rings),
            Step::Reading => self.examine(core, now, rings),
            // X1
            Step::Opening if core.gate.may_write() && core.gate.unrecorded().is_empty() => {
                self.decide(core, now, rings);
            }
            Step::Opening | Step::Done => {}
            Step::Noting => {
                self.release(core);
                self.step = Step::Choosing;
            }
            // Until tag sectors are known.
            Step::Summing | Step::Fetching(_) if core.is_reading_tags() => {}
            Step::Summing => self.sum(core),
            Step::Judging => self.judge(core, now),
            Step::Mending => self.judge_next(core, now),
            Step::Choosing => self.compute_next(core, now, rings),
            Step::Fetching(id) => self.weigh(core, id),
            Step::Weighing(id) => self.compute(core, rings, id),
            Step::Checking => self.append_computed(core, now),
            Step::Appending => {
                self.release(core);
                self.step = Step::Choosing;
            }
            Step::Marking => self.judge_next(core, now),
            Step::Loading => self.prove(core),
            Step::Proving => self.place(core, now),
            Step::Placing => {
                self.release(core);
                self.step = Step::Loading;
                self.load(core, now);
            }
            Step::Flushing => {
                core.meta.undamage(self.placing.take_right());
                if !core.meta.is_settled() || !core.are_tags_written() {
                    return; // It waits for the metadata, or for tag sectors (TG2).
                }
                let next = self.decision.next();
                let says = Watermarks { committed: next - 1, retired: next };
                if self.rules.keep(Rule::Conclude) {
                    self.mark(core, now, rings, Marks::of_all(core, says));
                }
                self.step = Step::Concluding;
            }
            Step::Concluding => {
                rings.iter_mut().for_each(Ring::reclaim);
                self.release(core);
                self.step = Step::Done;
            }
        }
    }

    /// Reads sectors, and the tag sectors of those that lie in their places.
    fn fetch_tagged(&mut self, core: &mut Core, now: Instant, wanted: &BTreeSet<At>) {
        self.transfers.fetch(core, now, wanted);
        let Some(tags) = core.tags.as_ref().filter(|_| core.out.carries_content()) else { return };
        let in_place = wanted.iter().filter(|at| at.space == Space::Layout);
        let groups: BTreeSet<(DriveIdx, u64)> =
            in_place.map(|at| (at.drive, tags.find(at.lba).0)).collect();
        let reachable = core.drives.reachable();
        let is_unknown = |&(drive, group): &(DriveIdx, u64)| {
            reachable.contains(drive) && !tags.knows(drive, group)
        };
        let unknown: Vec<(DriveIdx, u64)> = groups.into_iter().filter(is_unknown).collect();
        unknown.into_iter().for_each(|(drive, group)| Journal::read_tag(core, now, drive, group));
    }

    fn release(&mut self, core: &mut Core) {
        self.computing.release();
        self.transfers.release(core);
    }

    fn begin(&mut self, core: &mut Core, now: Instant, rings: &[Ring]) {
        self.release(core);
        self.announced = Announced::default();
        self.placing.take_right();
        self.came_short = false;
        let mut pieces: Vec<At> = Vec::new();
        for drive in core.drives.reachable().iter() {
            pieces.extend(rings[drive.as_usize()].pieces().map(|extent| At {
                drive,
                space: Space::Drive,
                lba: extent.lba,
                sectors: extent.sectors,
            }));
        }
        self.scan.begin(pieces);
        self.step = Step::Reading;
        self.read_pieces(core, now);
    }

    fn read_pieces(&mut self, core: &mut Core, now: Instant) {
        for piece in self.scan.next_pieces() {
            self.transfers.read(core, now, piece);
        }
    }

    /// Has what was read of the rings examined; then reads more, if there is more.
    fn examine(&mut self, core: &mut Core, now: Instant, rings: &[Ring]) {
        for filled in self.transfers.take_filled() {
            self.scan.examine(core, &rings[filled.at.drive.as_usize()], filled);
        }
        if !self.scan.is_quiet() {
            return;
        }
        self.release(core);
        self.read_pieces(core, now);
        if self.transfers.is_quiet() {
            self.step = Step::Opening;
        }
    }

    /// Decides what is the last content of every sector, and holds the space of all that counts.
    fn decide(&mut self, core: &mut Core, now: Instant, rings: &mut [Ring]) {
        self.came_short = false; // What was not given of the rings is known by now.
        if self.rules.keep(Rule::MissedAgain) {
            self.decision.mark_missed(core, &self.scan);
        }
        loop {
            self.decision.decide(core, &self.scan);
            self.announced = Announced::of(core, &self.scan, &self.decision);
            match self.decision.hold(core, &self.scan, rings) {
                Room::Enough => break,
                Room::Short => {}
            }
        }
        // Before anything is written there that may make them readable.
        let Verdict { retired, committed, .. } = *self.decision.verdict();
        let on = self.scan.with_gaps(retired);
        let says = Watermarks { committed, retired };
        self.mark(core, now, rings, Marks { on, says, has_gaps: true });
        // What is in place is what another power cut leaves there.
        self.transfers.flush(core, now);
        self.step = Step::Noting;
    }

    /// Puts a record onto a ring: all of a buffer.
    fn write_record(
        &mut self,
        core: &mut Core,
        now: Instant,
        at: At,
        buf: BufId,
        durability: Durability,
    ) {
        self.scan.rewrite(at);
        self.transfers.write(core, now, at, buf, durability);
    }

    /// Those of these rings that are there get a mark.
    fn mark(&mut self, core: &mut Core, now: Instant, rings: &mut [Ring], marks: Marks) {
        let Marks { on, says, has_gaps } = marks;
        let Watermarks { committed, retired } = says;
        let mut dropped: Vec<u64> = self.decision.verdict().dropped.iter().copied().collect();
        dropped.retain(|&id| id >= retired);
        dropped.truncate(Record::DROPPED_MAX);
        let with_ring = core.layout().spec().ring_drives();
        for drive in on.and(core.drives.reachable()).and(with_ring).iter() {
            let ring = &mut rings[drive.as_usize()];
            let record = Record {
                ring: ring.name,
                place: ring.take_mark(core.arm(drive), says),
                kind: Kind::Mark,
                id: 0,
                drive,
                participants: DriveSet::EMPTY,
                runs: Vec::new(),
                committed,
                retired,
                dropped: dropped.clone(),
                has_gaps,
            };
            let at = At::one(drive, Space::Drive, record.place);
            let buf = self.transfers.acquire(core, Sectors::new(1));
            core.out.log(Place { buf, sector: 0 }, record, Sums::Known(Vec::new()));
            self.write_record(core, now, at, buf, Durability::Durable);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::verdict::Missing;
    use crate::log::record::RingName;
    use crate::meta::membership::MemberId;
    use crate::meta::superblock::Uuid;

    fn found(is_whole: bool) -> FoundRecord {
        let record = Record {
            ring: RingName { array: Uuid::default(), member: MemberId::default() },
            place: Lba::new(7),
            kind: Kind::Payload,
            id: 5,
            drive: DriveIdx::new(1),
            participants: DriveSet::first(3),
            runs: Vec::new(),
            committed: 0,
            retired: 0,
            dropped: Vec::new(),
            has_gaps: false,
        };
        FoundRecord { record, sums: Vec::new(), is_whole }
    }

    /// X5. What does not have its checksum is never written, and everything is decided anew without it.
    #[test]
    fn what_was_computed_counts_only_if_its_record_is_whole() {
        let (buf, missing) = (BufId::Own(3), Missing { id: 5, drive: DriveIdx::new(1) });
        for (found, is_wrong) in [
            (vec![found(true)], false),
            (vec![found(false), found(true)], false),
            (vec![found(false)], true),
            (Vec::new(), true),
        ] {
            let mut recovery = Recovery::new(1, Rules::ALL);
            recovery.computing.check(buf, missing);
            recovery.handle_examined(buf, found.clone());
            assert_eq!(recovery.decision.is_wrong(missing), is_wrong, "{found:?}");
            assert_eq!(recovery.came_short, is_wrong, "{found:?}");
            assert!(recovery.scan.records().is_empty(), "it is on no ring");
        }
    }

    /// A step is not over while something is held against its checksums.
    #[test]
    fn recovery_waits_for_what_is_held_against_its_checksums() {
        let is_quiet = |begin: &dyn Fn(&mut Recovery)| {
            let mut recovery = Recovery::new(1, Rules::ALL);
            begin(&mut recovery);
            recovery.is_quiet()
        };
        assert!(is_quiet(&|_| {}));
        let missing = Missing { id: 5, drive: DriveIdx::new(1) };
        assert!(!is_quiet(&|recovery| recovery.computing.check(BufId::Own(3), missing)));
    }
}
