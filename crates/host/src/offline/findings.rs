//! What is wrong with an array that was looked at.

use std::collections::BTreeMap;

use levelhead_units::{DriveIdx, DriveSet, Extent};

/// Findings that are kept by name; those beyond are counted.
const NAMED_MAX: usize = 1_000;

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FindingKind {
    /// A copy of a superblock cannot be read, or is damaged.
    Superblock,
    /// A slot for the metadata cannot be read, or is damaged, or a drive lacks the newest metadata.
    Metadata,
    /// A sector of a ring cannot be read.
    Ring,
    /// The record of a committed transaction is missing or damaged.
    Record,
    /// A drive does not give a sector.
    Unreadable,
    /// Sectors of a codeword do not agree; where one drive explains that, it is that drive's sectors.
    Mismatch,
    /// A sector does not match its checksum.
    Corrupt,
    /// A sector does not match its checksum, and is what the others of its codeword compute.
    Doubtful,
    /// The array keeps a sector as damaged: what it held is nowhere, and redundancy counts it as zeroes.
    Damaged,
    /// Nothing gives a sector.
    Lost,
}

impl FindingKind {
    /// Its name, in a word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Superblock => "superblock",
            Self::Metadata => "metadata",
            Self::Ring => "ring",
            Self::Record => "record",
            Self::Unreadable => "unreadable",
            Self::Mismatch => "mismatch",
            Self::Corrupt => "corrupt",
            Self::Doubtful => "doubtful",
            Self::Damaged => "damaged",
            Self::Lost => "lost",
        }
    }
}

/// Something that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What.
    pub kind: FindingKind,
    /// The drive, or those of which one is wrong.
    pub drives: DriveSet,
    /// Which of its sectors, as the drive counts them.
    pub on_drive: Option<Extent>,
    /// From the first of the array's sectors that it is about to the last one; nothing where it is about none.
    pub in_array: Option<Extent>,
    /// What else is to be said.
    pub detail: String,
}

/// Findings, those of neighbouring sectors together.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    done: Vec<Finding>,
    /// Those that may go on.
    open: BTreeMap<(FindingKind, u64), Finding>,
    beyond: u64,
}

/// All findings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllFindings {
    /// Those that are named, by their kinds and drives.
    pub named: Vec<Finding>,
    /// How many others there are.
    pub beyond: u64,
}

impl Findings {
    pub(crate) fn note(&mut self, finding: Finding) {
        let key = (finding.kind, finding.drives.to_bits());
        match self.open.get_mut(&key) {
            Some(open) if goes_on(open, &finding) => {
                let (before, more) = (open.on_drive.as_mut(), finding.on_drive);
                if let (Some(before), Some(more)) = (before, more) {
                    before.sectors += more.sectors;
                }
                open.in_array = hull(open.in_array, finding.in_array);
            }
            Some(_) | None => {
                if let Some(done) = self.open.insert(key, finding) {
                    self.keep(done);
                }
            }
        }
    }

    fn keep(&mut self, finding: Finding) {
        if self.done.len() < NAMED_MAX {
            self.done.push(finding);
        } else {
            self.beyond += 1;
        }
    }

    pub(crate) fn finish(mut self) -> AllFindings {
        for finding in std::mem::take(&mut self.open).into_values() {
            self.keep(finding);
        }
        let by = |finding: &Finding| {
            let lba = finding.on_drive.map(|extent| extent.lba);
            (finding.kind, finding.drives.to_bits(), lba)
        };
        self.done.sort_by_key(by);
        AllFindings { named: self.done, beyond: self.beyond }
    }
}

/// Whether the one is about the sectors behind those of the other.
fn goes_on(open: &Finding, next: &Finding) -> bool {
    let is_next = match (open.on_drive, next.on_drive) {
        (Some(open), Some(next)) => open.end() == next.lba,
        (_, _) => false,
    };
    is_next && open.detail == next.detail
}

fn hull(one: Option<Extent>, other: Option<Extent>) -> Option<Extent> {
    let (Some(a), Some(b)) = (one, other) else { return one.or(other) };
    let (start, end) = (a.lba.min(b.lba), a.end().max(b.end()));
    Some(Extent::new(start, end - start))
}

/// One drive as a set.
pub(crate) fn only(drive: DriveIdx) -> DriveSet {
    DriveSet::EMPTY.with(drive)
}

#[cfg(test)]
mod tests {
    use levelhead_units::{Lba, Sectors};

    use super::*;

    fn finding(drive: u8, lba: u64, in_array: Option<u64>) -> Finding {
        let one = |lba| Extent::new(Lba::new(lba), Sectors::new(1));
        Finding {
            kind: FindingKind::Mismatch,
            drives: only(DriveIdx::new(drive)),
            on_drive: Some(one(lba)),
            in_array: in_array.map(one),
            detail: String::new(),
        }
    }

    #[test]
    fn neighbours_of_one_drive_are_one_finding_whatever_comes_between() {
        let mut findings = Findings::default();
        for lba in [5, 6, 7, 9] {
            findings.note(finding(1, lba, Some(100 + lba)));
            findings.note(finding(2, 2 * lba, None));
        }
        let all = findings.finish();
        let of = |drive| {
            let own = all.named.iter().filter(move |own| own.drives == only(DriveIdx::new(drive)));
            own.map(|own| own.on_drive.unwrap()).map(|on| (on.lba.get(), on.sectors.get()))
        };
        assert_eq!(of(1).collect::<Vec<_>>(), [(5, 3), (9, 1)]);
        assert_eq!(of(2).collect::<Vec<_>>(), [(10, 1), (12, 1), (14, 1), (18, 1)]);
        let hull = all.named[0].in_array.unwrap();
        assert_eq!((hull.lba.get(), hull.sectors.get()), (105, 3));
    }

    #[test]
    fn findings_beyond_those_that_are_named_are_counted() {
        let mut findings = Findings::default();
        (0..NAMED_MAX as u64 + 7).for_each(|at| findings.note(finding(0, 2 * at, None)));
        let all = findings.finish();
        assert_eq!((all.named.len(), all.beyond), (NAMED_MAX, 7));
    }
}
