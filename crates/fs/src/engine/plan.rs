//! Where pages of a file are: in memory, on the disk, or nowhere.

use std::collections::BTreeMap;

use levelhead_block::Piece;
use levelhead_units::{Lba, Sectors};

use crate::attempt::{Attempt, Stop};
use crate::format::extent::{CodingExtent, PagePlace, SplitPlace};
use crate::format::inode::Inode;
use crate::ops::extents::Pages;

/// Where a page of a file is.
#[derive(Clone, Debug)]
pub(super) enum Source {
    Memory(Piece),
    Zero,
    Disk(Lba),
    /// In two sectors of the disk, each of which may be in memory.
    Parts(SplitPlace),
}

impl Source {
    /// Where its first bytes are, if they are on the disk.
    pub(super) fn place(&self) -> Option<Lba> {
        match self {
            Self::Memory(_) | Self::Zero => None,
            Self::Disk(lba) => Some(*lba),
            Self::Parts(place) => Some(place.primary),
        }
    }
}

/// A sector that is wanted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Target {
    pub(super) sum: u32,
    pub(super) extent: CodingExtent,
}

/// Pages of a file and where they are.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) sources: Vec<Source>,
    pub(super) targets: BTreeMap<Lba, Target>,
    /// Sectors that are in memory and have a part of a page.
    pub(super) held: BTreeMap<Lba, Piece>,
}

impl Plan {
    /// Whether something of it is on the disk alone.
    pub(super) fn wants_some(&self) -> bool {
        self.targets.keys().any(|lba| !self.held.contains_key(lba))
    }
}

impl Attempt<'_> {
    /// Where pages of a file are, on the disk or nowhere.
    pub(super) fn plan(&mut self, number: u64, inode: &Inode, pages: Pages) -> Result<Plan, Stop> {
        let mut plan = Plan::default();
        let windows = self.windows(number, inode, pages, usize::MAX)?;
        let mut page = pages.from;
        for mapped in windows {
            plan.sources.extend((page..mapped.page).map(|_| Source::Zero));
            let extent = mapped.window.extent;
            for place in mapped.window.places() {
                let (sectors, source) = match place {
                    PagePlace::Whole(lba) => ([Some(lba), None], Source::Disk(lba)),
                    PagePlace::Split(place) => {
                        ([Some(place.primary), Some(place.complement)], Source::Parts(place))
                    }
                };
                let mut is_written = false;
                for lba in sectors.into_iter().flatten() {
                    if let Some(sum) = self.sum(lba)? {
                        plan.targets.insert(lba, Target { sum, extent });
                        is_written = true;
                    }
                }
                plan.sources.push(if is_written { source } else { Source::Zero });
            }
            page = mapped.end();
        }
        plan.sources.extend((page..pages.to).map(|_| Source::Zero));
        Ok(plan)
    }
}

/// A page that was never written.
pub(super) fn zero_page() -> Piece {
    Piece::zeroes(Sectors::new(1)).remove(0)
}
