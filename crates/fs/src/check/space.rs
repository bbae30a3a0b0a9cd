//! Fixed units, and which sectors are taken: the bitmaps against what has sectors, the summary against the bitmaps.

use levelhead_units::{Extent, Lba, Sectors};

use super::marks::is_set;
use super::walk::{UNITS_MAX, Unit, Wanted};
use super::{Checker, Problem};
use crate::format::fields::Fields;
use crate::format::unit::{BODY, HEAD, Kind};
use crate::geometry::{BITS, GroupIdx};
use crate::space::{free_at_first, is_reserved, summary_leads};

/// Groups that one unit of the summary speaks of.
pub(super) const SUMMARIES: u64 = BODY as u64 / 4;

impl Checker<'_> {
    pub(super) fn summary_leads(&self) -> Vec<Lba> {
        summary_leads(&self.superblock.geometry, self.superblock.summary).collect()
    }

    /// The summary, and the bitmaps and sums of groups of which anything was ever taken.
    pub(super) fn check_fixed(&mut self) {
        let geometry = self.superblock.geometry;
        let leads = self.summary_leads();
        if !leads.iter().all(|&lead| self.may_be_unit(lead)) {
            let lead = self.superblock.summary;
            return self.note_unknown(Problem::Pointer { lead, owner: 0 });
        }
        for (some, at) in leads.chunks(UNITS_MAX).zip((0..).step_by(UNITS_MAX)) {
            let units = self.read_units(some);
            for ((&lead, found), unit) in some.iter().zip(units).zip(at..) {
                let wanted = Wanted { lead, kind: Kind::Summary, owner: 0 };
                let found = self.expect_fixed(wanted, found);
                let first = unit * SUMMARIES;
                for at in 0..SUMMARIES.min(geometry.groups().saturating_sub(first)) {
                    let says = found
                        .as_ref()
                        .map(|unit| u64::from(Fields(&unit.bytes[HEAD..]).u32(4 * at as usize)));
                    self.walk.summary.push(says);
                }
            }
        }
        for group in (0..geometry.groups()).map(GroupIdx) {
            if self.is_open(group) {
                self.check_fixed_of(group);
            }
        }
    }

    /// Whether the bitmaps of a group were ever written.
    fn is_open(&self, group: GroupIdx) -> bool {
        self.walk.summary.get(group.0 as usize).is_some_and(|says| *says != Some(0))
    }

    /// Whether it is known if anything was ever taken of the group of a sector.
    pub(super) fn is_summed_up(&self, lba: Lba) -> bool {
        let group = self.superblock.geometry.group_of(lba);
        self.walk.summary.get(group.0 as usize).copied().flatten().is_some()
    }

    fn check_fixed_of(&mut self, group: GroupIdx) {
        let geometry = self.superblock.geometry;
        let leads: Vec<Lba> = geometry.bitmaps(group).collect();
        let first = geometry.group(group).lba;
        let mut sums: Vec<Lba> = Vec::new();
        for ((bitmap, lead), found) in (0..).zip(&leads).zip(self.read_units(&leads)) {
            let wanted = Wanted { lead: *lead, kind: Kind::Bitmap, owner: 0 };
            let Some(unit) = self.expect_fixed(wanted, found) else {
                self.walk.unmapped.insert(*lead);
                continue;
            };
            let bits = words(&unit.bytes[HEAD..]);
            for offset in geometry.bits_of(group, bitmap) {
                let lba = first + Sectors::new(offset);
                if is_set(&bits, offset % BITS) && !is_reserved(&geometry, lba) {
                    let lead = geometry.sum_of(lba).lead;
                    if sums.last() != Some(&lead) {
                        sums.push(lead);
                    }
                }
            }
        }
        sums.dedup();
        for some in sums.chunks(UNITS_MAX) {
            let units = self.read_units(some);
            for (&lead, found) in some.iter().zip(units) {
                let wanted = Wanted { lead, kind: Kind::Sums, owner: 0 };
                if self.expect_fixed(wanted, found).is_none() {
                    self.walk.unsummed.insert(lead);
                }
            }
        }
    }

    /// A unit of the summary, of bitmaps or of sums. They name nothing: what has sectors is known without them.
    fn expect_fixed(&mut self, wanted: Wanted, found: Option<Unit>) -> Option<Unit> {
        if found.is_none() && wanted.kind == Kind::Bitmap && !self.is_summed_up(wanted.lead) {
            return None; // Whether it was ever written is not known.
        }
        let was_known = self.is_known;
        let found = self.expect(wanted, found);
        self.is_known = was_known;
        found
    }

    /// One bitmap, as words of 64 bits; nothing if it was never written or is lost.
    pub(super) fn bitmap(&mut self, group: GroupIdx, bitmap: u64) -> Option<Vec<u64>> {
        let lead = self.superblock.geometry.bitmaps(group).nth(bitmap as usize)?;
        if !self.is_open(group) || self.walk.unmapped.contains(&lead) {
            return None;
        }
        self.read_quietly(lead, Kind::Bitmap).map(|bytes| words(&bytes[HEAD..]))
    }

    /// Bitmaps and summary.
    pub(super) fn check_space(&mut self) {
        let geometry = self.superblock.geometry;
        for group in (0..geometry.groups()).map(GroupIdx) {
            if !self.is_open(group) {
                self.report.free_sectors += free_at_first(&geometry, group);
                if self.walk.used.has_group(group) {
                    self.compare_closed(group);
                }
                continue;
            }
            let mut free = Some(0);
            for bitmap in 0..geometry.bitmaps(group).count() as u64 {
                let found = self.bitmap(group, bitmap);
                free = found.zip(free).map(|(bits, free)| {
                    let range = geometry.bits_of(group, bitmap);
                    self.compare_bitmap(group, range.clone(), &bits);
                    free + range.filter(|offset| !is_set(&bits, offset % BITS)).count() as u64
                });
            }
            let Some(free) = free else { continue };
            self.report.free_sectors += free;
            match self.walk.summary.get(group.0 as usize).copied().flatten() {
                Some(says) if says != free + 1 => {
                    let says = says.saturating_sub(1);
                    self.note(Problem::Summary { group, says, is: free });
                }
                Some(_) | None => {}
            }
        }
    }

    /// A group of which nothing was ever taken, as the summary says, and something that was found lies in it.
    fn compare_closed(&mut self, group: GroupIdx) {
        let geometry = self.superblock.geometry;
        let first = geometry.group(group).lba;
        let bits = self.walk.used.group(group).to_vec();
        let offsets = 0..geometry.group(group).sectors.get();
        let is_used = |offset: u64| {
            is_set(&bits, offset) && !is_reserved(&geometry, first + Sectors::new(offset))
        };
        for run in runs(offsets, is_used) {
            self.note(Problem::Free(Extent::new(first + Sectors::new(run.0), Sectors::new(run.1))));
        }
    }

    fn compare_bitmap(&mut self, group: GroupIdx, range: std::ops::Range<u64>, bits: &[u64]) {
        let first = self.superblock.geometry.group(group).lba;
        let used = self.walk.used.group(group).to_vec();
        let extent = |(offset, count): (u64, u64)| {
            Extent::new(first + Sectors::new(offset), Sectors::new(count))
        };
        let is_taken = |offset: u64| is_set(bits, offset % BITS);
        for run in runs(range.clone(), |offset| is_set(&used, offset) && !is_taken(offset)) {
            self.note(Problem::Free(extent(run)));
        }
        for run in runs(range, |offset| is_taken(offset) && !is_set(&used, offset)) {
            self.note(Problem::Leaked(extent(run)));
        }
    }
}

/// Runs of numbers for which something holds: the first one, and how many.
fn runs(range: std::ops::Range<u64>, holds: impl Fn(u64) -> bool) -> Vec<(u64, u64)> {
    let mut runs: Vec<(u64, u64)> = Vec::new();
    for at in range.filter(|&at| holds(at)) {
        match runs.last_mut() {
            Some((first, count)) if *first + *count == at => *count += 1,
            Some(_) | None => runs.push((at, 1)),
        }
    }
    runs
}

fn words(body: &[u8]) -> Vec<u64> {
    let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
    body.chunks_exact(8).map(word).collect()
}
