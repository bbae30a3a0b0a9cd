//! The superblocks on the drives: reading one drive's, and keeping those of all drives in step.

use std::io;
use std::sync::Arc;

use levelhead_array::superblock::{State, Superblock, SuperblockError, Uuid};
use levelhead_block::Buf;
use levelhead_units::{DriveIdx, DriveSet, Lba, Sectors};

use crate::medium::Medium;

/// What a drive's two copies say.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Label {
    /// At least one is good; the newer of them.
    Good(Superblock),
    /// There is something, and none of it is good.
    Bad(SuperblockError),
    /// This was never a drive of an array.
    Absent,
}

/// Where the copies lie on a drive with so many sectors.
fn places(size: Sectors) -> [Lba; 2] {
    [Lba::ZERO, Lba::new(size.get() - 1)]
}

/// Reads both copies; one that can be read is enough. The drive has at least one sector.
pub(crate) fn read(medium: &Medium) -> io::Result<Label> {
    let (mut label, mut failed) = (Label::Absent, None);
    for lba in places(medium.size()) {
        let mut sector = Buf::zeroed(Sectors::new(1));
        if let Err(error) = medium.read(lba, sector.as_mut_slice()) {
            failed = Some(error);
            continue;
        }
        label = match (Superblock::decode(sector.as_slice()), label) {
            (Ok(new), Label::Good(old)) if old.generation >= new.generation => Label::Good(old),
            (Ok(new), _) => Label::Good(new),
            (Err(SuperblockError::Absent), label) => label,
            (Err(error), Label::Absent) => Label::Bad(error),
            (Err(_), label) => label,
        };
    }
    match (label, failed) {
        (Label::Absent | Label::Bad(_), Some(error)) => Err(error),
        (label, _) => Ok(label),
    }
}

/// Writes both copies, the second once the first is safe.
pub(crate) fn write(medium: &Medium, superblock: &Superblock) -> io::Result<()> {
    let sector = Buf::copy_of(&superblock.encode());
    for lba in places(medium.size()) {
        medium.write(lba, sector.as_slice())?;
        medium.sync()?;
    }
    Ok(())
}

/// Both copies as they are, to be put back if something goes wrong.
pub(crate) fn save(medium: &Medium) -> io::Result<[Buf; 2]> {
    let mut saved = [(); 2].map(|()| Buf::zeroed(Sectors::new(1)));
    for (lba, sector) in places(medium.size()).into_iter().zip(&mut saved) {
        medium.read(lba, sector.as_mut_slice())?;
    }
    Ok(saved)
}

/// Puts back what [`save`] found.
pub(crate) fn restore(medium: &Medium, saved: &[Buf; 2]) -> io::Result<()> {
    for (lba, sector) in places(medium.size()).into_iter().zip(saved) {
        medium.write(lba, sector.as_slice())?;
    }
    medium.sync()
}

/// The superblocks of a running array.
#[derive(Debug)]
pub(crate) struct Ledger {
    /// What all drives say, but for which drive it is.
    last: Superblock,
    media: Vec<Option<Arc<Medium>>>,
}

impl Ledger {
    /// The superblocks on `media`, one place a drive, that say what `last` says.
    pub(crate) fn new(last: Superblock, media: Vec<Option<Arc<Medium>>>) -> Self {
        assert_eq!(media.len(), last.spec.drives());
        Self { last, media }
    }

    /// Which array it is.
    pub(crate) fn uuid(&self) -> Uuid {
        self.last.uuid
    }

    /// Records a new state of the array on every drive that is not lost, one after another, each
    /// safe before this returns. Returns the drives that did not take it.
    ///
    /// Panics if more drives are lost than the array survives: that is never recorded.
    pub(crate) fn record(&mut self, state: State, synced: u64, lost: DriveSet) -> DriveSet {
        assert!(lost.len() as usize <= self.last.spec.redundant(), "{lost} are too many to lose");
        let generation = self.last.generation + 1;
        self.last = Superblock { generation, state, synced, lost, ..self.last };
        self.each(lost, |drive, medium| write(medium, &Superblock { drive, ..self.last }))
    }

    /// Makes everything written safe. Returns the drives that did not manage.
    pub(crate) fn sync(&self, lost: DriveSet) -> DriveSet {
        self.each(lost, |_, medium| medium.sync())
    }

    fn each(&self, lost: DriveSet, act: impl Fn(DriveIdx, &Medium) -> io::Result<()>) -> DriveSet {
        let drives = (0..self.media.len()).map(DriveIdx::from_usize).zip(&self.media);
        drives
            .filter(|(drive, _)| !lost.contains(*drive))
            .filter_map(|(drive, medium)| {
                let medium = medium.as_ref().expect("a drive that is not lost is there");
                act(drive, medium).is_err().then_some(drive)
            })
            .collect()
    }
}
