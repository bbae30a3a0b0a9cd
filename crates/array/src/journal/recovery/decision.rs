//! What a recovery decides: what is the last content of every sector, what of it is missing, and which place on the rings that gets.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use levelhead_units::{DriveIdx, DriveSet, Lba, Sectors};

use super::scan::Scan;
use super::{At, Space};
use crate::core::Core;
use crate::journal::ring::Ring;
use crate::journal::verdict::{Final, Known, Missing, OnRing, Source, Verdict, fits};
use crate::log::record::{FoundRecord, Kind, Record};
use crate::log::rules::Rules;
use crate::shape::{Cell, Row};

/// From the last transaction that was found to the first new one. What was found may not have been the last: its
/// records may all have been on drives that are gone.
const GAP: u64 = 1 << 20;

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct Decision {
    /// Transactions below this one are over.
    floor: u64,
    rules: Rules,
    /// Sectors in place that drives did not give.
    unreadable: BTreeSet<Cell>,
    /// What was computed and did not have its checksum.
    wrong: BTreeSet<Missing>,
    /// Transactions for whose missing records there was no room.
    homeless: BTreeSet<u64>,
    verdict: Verdict,
    /// On which rings the record of a participant was found whole.
    found_on: BTreeMap<Missing, DriveSet>,
    /// Where the records go that are missing.
    reserved: BTreeMap<Homed, Lba>,
    /// Transactions of which something is to be computed.
    incomplete: VecDeque<u64>,
}

/// A record that a ring is to get.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Homed {
    pub(super) missing: Missing,
    pub(super) ring: DriveIdx,
}

/// Whether the rings have room for what is to be put onto them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Room {
    Enough,
    /// Without one transaction more there may be.
    Short,
}

impl Decision {
    pub(super) fn new(floor: u64, rules: Rules) -> Self {
        Self {
            floor,
            rules,
            unreadable: BTreeSet::new(),
            wrong: BTreeSet::new(),
            homeless: BTreeSet::new(),
            verdict: Verdict::default(),
            found_on: BTreeMap::new(),
            reserved: BTreeMap::new(),
            incomplete: VecDeque::new(),
        }
    }

    pub(super) fn verdict(&self) -> &Verdict {
        &self.verdict
    }

    #[cfg(test)]
    pub(super) fn is_wrong(&self, missing: Missing) -> bool {
        self.wrong.contains(&missing)
    }

    #[cfg(test)]
    pub(super) fn verdict_mut(&mut self) -> &mut Verdict {
        &mut self.verdict
    }

    /// The name of the next transaction.
    pub(super) fn next(&self) -> u64 {
        self.verdict.newest.max(self.verdict.retired).max(self.verdict.committed) + GAP
    }

    /// A drive did not give a sector in its place.
    pub(super) fn note_unreadable(&mut self, cell: Cell) {
        self.unreadable.insert(cell);
    }

    /// A sector is written in its place: its drive gives it from then on.
    pub(super) fn note_written(&mut self, cell: Cell) {
        self.unreadable.remove(&cell);
    }

    pub(super) fn is_unreadable(&self, cell: Cell) -> bool {
        self.unreadable.contains(&cell)
    }

    /// What was computed does not have its checksum.
    pub(super) fn note_wrong(&mut self, missing: Missing) {
        self.wrong.insert(missing);
    }

    /// The record with a sector's last content is on a ring from now on.
    pub(super) fn note_on_ring(&mut self, cell: Cell, drive: DriveIdx, lba: Lba) {
        let last = self.verdict.finals.get_mut(&cell).expect("it is lacking");
        last.source = Source::Ring { drive, lba };
    }

    /// Decides what is the last content of every sector that these records give.
    pub(super) fn decide(&mut self, core: &Core, scan: &Scan) {
        self.found_on = scan.found_on();
        self.verdict = Verdict::of(scan.records(), self.known(core));
        self.find_unwritten(core, scan);
    }

    /// Holds the space of all that counts on the rings, and gives what is missing its own.
    pub(super) fn hold(&mut self, core: &Core, scan: &Scan, rings: &mut [Ring]) -> Room {
        let Verdict { retired, finals, dropped, .. } = &self.verdict;
        for ring in rings.iter_mut() {
            ring.forget();
            let drive = ring.drive;
            let own = scan.records().iter().filter(|on| on.ring == drive);
            let own = own.filter(|on| !dropped.contains(&on.found.record.id));
            own.for_each(|on| ring.hold_found(&on.found, *retired));
            scan.worn(drive).for_each(|lba| ring.give_up_sector(lba));
        }
        let mut records: BTreeMap<Homed, u64> = BTreeMap::new();
        for (cell, last) in finals {
            let missing = Missing { id: last.id, drive: cell.drive };
            for ring in self.rings_without(core, *cell, *last).iter() {
                *records.entry(Homed { missing, ring }).or_default() += 1;
            }
        }
        let ids: BTreeSet<u64> = records.keys().map(|homed| homed.missing.id).collect();
        self.incomplete = ids.into_iter().collect();
        rings.iter_mut().for_each(Ring::hold_latest);
        self.reserve(core, rings, records)
    }

    /// The next transaction of which something is to be computed.
    pub(super) fn take_incomplete(&mut self) -> Option<u64> {
        self.incomplete.pop_front()
    }

    /// What was perhaps answered and never comes to its place.
    pub(super) fn undone(&self) -> impl Iterator<Item = Cell> {
        let wrong = self.wrong.iter().map(|&Missing { id, .. }| id);
        let ids = self.homeless.iter().copied().chain(wrong);
        let dropped = ids.filter(|id| self.verdict.dropped.contains(id));
        let changed = dropped.filter_map(|id| self.verdict.changed.get(&id));
        changed.flat_map(|changed| changed.keys().copied())
    }

    /// Intents of which a ring that is there, and has no gaps, should have a record and has none: they were never on enough rings, so
    /// that nothing was written in place. Not so below what some ring says is committed: another recovery may have
    /// missed such a ring, and decided that they count (V2).
    pub(super) fn find_unwritten(&mut self, core: &Core, scan: &Scan) {
        let present = core.drives.present();
        let unread = scan.with_gaps(self.verdict.retired);
        let mut holders: BTreeMap<u64, DriveSet> = BTreeMap::new();
        let mut found: BTreeMap<u64, DriveSet> = BTreeMap::new();
        for OnRing { ring, found: FoundRecord { record, .. } } in scan.intents(self.verdict.retired)
        {
            holders.insert(record.id, record.participants);
            let on = found.entry(record.id).or_default();
            *on = on.with(*ring);
        }
        let unwritten = holders.iter().filter(|(id, holders)| {
            let without = holders.and(present).without(unread).without(found[id]);
            **id > self.verdict.committed && !without.is_empty()
        });
        let unwritten: Vec<u64> = unwritten.map(|(&id, _)| id).collect();
        self.verdict.dropped.extend(unwritten);
    }

    /// Gives the records that are missing their space: each of them had some that was large enough, so the largest
    /// ones come first, each into the smallest free stretch that it fits into. What was there before counts for nothing.
    fn reserve(&mut self, core: &Core, rings: &mut [Ring], records: BTreeMap<Homed, u64>) -> Room {
        let mut records: Vec<(Homed, u64)> = records.into_iter().collect();
        // What lies on other rings comes last: it needs its own only for good measure.
        records.sort_by_key(|&(homed, sectors)| {
            (!self.verdict.is_lacking(homed.missing), Reverse(sectors))
        });
        self.reserved.clear();
        let mut homeless: Vec<Missing> = Vec::new();
        for (homed, sectors) in records {
            let Homed { missing, ring } = homed;
            let (ring, sectors) = (&mut rings[ring.as_usize()], Sectors::new(1 + sectors));
            match ring.tightest(sectors).or_else(|| ring.room_without_latest(sectors)) {
                Some(place) => {
                    ring.reserve(place, sectors, missing.id);
                    self.reserved.insert(homed, place);
                }
                None => homeless.push(missing),
            }
        }
        // What lies on other rings only goes from there to its place.
        homeless.retain(|&missing| {
            self.verdict.is_lacking(missing) && self.homes(missing).next().is_none()
        });
        // No program of ours leaves such a ring, but sectors may have worn out since.
        for missing in &homeless {
            if self.verdict.may_give_up(missing.id, self.known(core)) {
                self.homeless.insert(missing.id); // One transaction less each time.
                return Room::Short;
            }
        }
        for &missing in &homeless {
            self.verdict.give_up_on(missing);
        }
        let mut verdict = std::mem::take(&mut self.verdict);
        verdict.give_up_hopeless(self.known(core));
        self.verdict = verdict;
        Room::Enough
    }

    /// The codewords of which something is to be computed that this transaction gave.
    pub(super) fn rows_of(&self, core: &Core, id: u64) -> BTreeSet<Row> {
        let finals = self.verdict.finals.iter();
        let lacking = finals.filter(|(_, last)| last.id == id && last.source == Source::Codeword);
        lacking.map(|(&cell, _)| core.layout().symbol(cell).0).collect()
    }

    /// Where the last content of a sector is that can be had.
    pub(super) fn source_at(&self, cell: Cell) -> At {
        match self.verdict.finals.get(&cell).map(|last| last.source) {
            Some(Source::Ring { drive, lba }) => At::one(drive, Space::Drive, lba),
            _ => At::one(cell.drive, Space::Layout, cell.lba),
        }
    }

    /// What this transaction gave that is to go onto the rings of its drives, where there is room.
    pub(super) fn to_log(&self, core: &Core, id: u64) -> Vec<Cell> {
        let finals = self.verdict.finals.iter().filter(|(_, last)| last.id == id);
        let to_log =
            finals.filter(|(cell, last)| !self.rings_without(core, **cell, **last).is_empty());
        let has_room = |cell: &Cell| self.homes(Missing { id, drive: cell.drive }).next().is_some();
        to_log.map(|(&cell, _)| cell).filter(has_room).collect()
    }

    /// The rings that a sector's last content is to go onto before it is written in place.
    fn rings_without(&self, core: &Core, cell: Cell, last: Final) -> DriveSet {
        let (spec, present) = (core.layout().spec(), core.drives.reachable());
        if spec.journals() == 0 {
            let is_to_log = self.verdict.is_to_log(cell, last, present);
            return if is_to_log { DriveSet::EMPTY.with(cell.drive) } else { DriveSet::EMPTY };
        }
        let all = present.and(spec.journal_drives());
        let missing = Missing { id: last.id, drive: cell.drive };
        match last.source {
            Source::Codeword => all,
            Source::Ring { .. } if present.contains(cell.drive) => {
                all.without(self.found_on.get(&missing).copied().unwrap_or(DriveSet::EMPTY))
            }
            Source::Ring { .. } | Source::Absent | Source::Lost => DriveSet::EMPTY,
        }
    }

    /// The rings with a place for the record of a participant.
    pub(super) fn homes(&self, missing: Missing) -> impl Iterator<Item = DriveIdx> {
        let first = Homed { missing, ring: DriveIdx::new(0) };
        let homed = self.reserved.range(first..).map(|(homed, _)| *homed);
        homed.take_while(move |homed| homed.missing == missing).map(|homed| homed.ring)
    }

    /// The place on its ring of a record that is missing.
    pub(super) fn home(&self, homed: Homed) -> Lba {
        self.reserved[&homed]
    }

    /// What is brought to its place without a drive, or was begun without it, is among what it lacks (X6).
    pub(super) fn mark_missed(&self, core: &mut Core, scan: &Scan) {
        if !core.meta.may_lack() {
            return;
        }
        let known = self.known(core);
        let retired = scan.records().iter().map(|on| on.found.record.retired).max().unwrap_or(0);
        let is_live = |record: &&Record| {
            record.kind != Kind::Mark && record.id >= retired.max(self.floor) && fits(record, known)
        };
        let live = scan.records().iter().map(|on| &on.found.record).filter(is_live);
        let runs = live.flat_map(|record| &record.runs);
        let cells =
            runs.flat_map(|run| run.extent.iter().map(|lba| Cell { drive: run.drive, lba }));
        let stripes: BTreeSet<u64> =
            cells.map(|cell| core.layout().symbol(cell).0.stripe).collect();
        for drive in DriveSet::first(core.layout().spec().members() as u8).iter() {
            for &stripe in &stripes {
                core.meta.miss(drive, stripe);
            }
        }
    }

    pub(super) fn known<'a>(&'a self, core: &'a Core) -> Known<'a> {
        Known {
            layout: core.layout(),
            area: core.area(),
            valid: core.holdings.valid(),
            meta: Some(&core.meta),
            damaged: core.meta.damaged(),
            synced: core.holdings.synced(),
            floor: self.floor,
            unreadable: &self.unreadable,
            wrong: &self.wrong,
            dropped: &self.homeless,
            rules: self.rules,
        }
    }
}

#[cfg(test)]
mod tests {
    use levelhead_stats::Streams;

    use super::*;
    use crate::log::record::RingName;
    use crate::meta::membership::MemberId;
    use crate::meta::superblock::Uuid;
    use crate::settings::Settings;

    /// A record of the first two drives on a ring.
    fn on(ring: DriveIdx, kind: Kind, id: u64, retired: u64, has_gaps: bool) -> OnRing {
        let record = Record {
            ring: RingName { array: Uuid::default(), member: MemberId::default() },
            place: Lba::new(7),
            kind,
            id,
            drive: ring,
            participants: DriveSet::first(2),
            runs: Vec::new(),
            committed: 0,
            retired,
            dropped: Vec::new(),
            has_gaps,
        };
        OnRing { ring, found: FoundRecord { record, sums: Vec::new(), is_whole: true } }
    }

    /// An intent that one of its rings lacks was never written in place, unless the ring has gaps, or had some that a recovery which
    /// was cut off has filled.
    #[test]
    fn what_a_ring_lacks_proves_nothing_where_it_has_gaps_or_had_some() {
        let settings = Settings::of_test("raid5:2+1,chunk=4KiB".parse().unwrap());
        let core = Core::new(&settings, Streams::new(1));
        let [first, second] = [0, 1].map(DriveIdx::new);
        let sector = At::one(second, Space::Drive, Lba::new(9));
        let intent = on(first, Kind::Intent, 5, 5, false);
        for (other, gap, is_unwritten) in [
            (None, None, true),
            (Some(on(second, Kind::Intent, 5, 5, false)), None, false),
            (None, Some(sector), false),
            (Some(on(second, Kind::Mark, 0, 5, true)), None, false),
            (Some(on(second, Kind::Mark, 0, 5, false)), None, true),
            // That recovery came to its end.
            (Some(on(second, Kind::Mark, 0, 4, true)), None, true),
        ] {
            let mut decision = Decision::new(1, Rules::ALL);
            decision.verdict.retired = 5;
            let mut scan = Scan::default();
            for OnRing { ring, found } in [Some(&intent), other.as_ref()].into_iter().flatten() {
                scan.add(*ring, vec![found.clone()]);
            }
            gap.into_iter().for_each(|gap| scan.tear(gap));
            for is_rewritten in [false, true] {
                gap.into_iter().filter(|_| is_rewritten).for_each(|gap| scan.rewrite(gap));
                decision.verdict.dropped.clear();
                decision.find_unwritten(&core, &scan);
                let dropped = &decision.verdict.dropped;
                assert_eq!(dropped.contains(&5), is_unwritten, "{other:?} {gap:?}");
            }
        }
    }

    /// V2: what some ring says is committed is not dropped, whatever another ring lacks.
    #[test]
    fn what_is_committed_counts_though_a_ring_lacks_it() {
        let settings = Settings::of_test("raid5:2+1,chunk=4KiB".parse().unwrap());
        let core = Core::new(&settings, Streams::new(1));
        let OnRing { ring, found } = on(DriveIdx::new(0), Kind::Intent, 5, 5, false);
        let mut scan = Scan::default();
        scan.add(ring, vec![found]);
        for (committed, is_dropped) in [(4, true), (5, false), (6, false)] {
            let mut decision = Decision::new(1, Rules::ALL);
            (decision.verdict.retired, decision.verdict.committed) = (5, committed);
            decision.find_unwritten(&core, &scan);
            assert_eq!(decision.verdict.dropped.contains(&5), is_dropped, "{committed}");
        }
    }

    /// What is to be computed of a transaction is what it gave last and no ring has.
    #[test]
    fn codewords_of_a_transaction_are_those_of_which_it_gave_what_no_ring_has() {
        let settings = Settings::of_test("raid5:2+1,chunk=4KiB".parse().unwrap());
        let core = Core::new(&settings, Streams::new(1));
        let mut decision = Decision::new(1, Rules::ALL);
        let ring = Source::Ring { drive: DriveIdx::new(1), lba: Lba::new(9) };
        for (stripe, id, source) in
            [(0, 5, Source::Codeword), (1, 6, Source::Codeword), (2, 5, ring), (3, 6, ring)]
        {
            let cell = core.layout().cell(Row { stripe, row: 0 }, 0);
            decision.verdict.finals.insert(cell, Final { id, source });
        }
        let rows =
            |id| -> Vec<u64> { decision.rows_of(&core, id).iter().map(|row| row.stripe).collect() };
        assert_eq!([rows(5), rows(6), rows(7)], [vec![0], vec![1], vec![]]);
    }

    /// Where the journal has drives of its own, a record goes onto those of them that have it not, but not for a drive that is
    /// not there.
    #[test]
    fn record_of_an_absent_drive_goes_onto_no_journal_drive() {
        let spec: crate::shape::Spec = "raid5:2+1,chunk=4KiB,journals=2".parse().unwrap();
        let lost = DriveSet::EMPTY.with(DriveIdx::new(1));
        let settings = Settings { lost, ..Settings::of_test(spec) };
        let core = Core::new(&settings, Streams::new(1));
        let mut decision = Decision::new(1, Rules::ALL);
        let source = Source::Ring { drive: DriveIdx::new(3), lba: Lba::new(9) };
        for (drive, expected) in [(0, vec![4]), (1, vec![])] {
            let (cell, last) =
                (Cell { drive: DriveIdx::new(drive), lba: Lba::ZERO }, Final { id: 5, source });
            let missing = Missing { id: 5, drive: cell.drive };
            decision.found_on.insert(missing, DriveSet::EMPTY.with(DriveIdx::new(3)));
            let rings = decision.rings_without(&core, cell, last);
            let rings: Vec<usize> = rings.iter().map(DriveIdx::as_usize).collect();
            assert_eq!(rings, expected, "drive {drive}");
        }
    }
}
