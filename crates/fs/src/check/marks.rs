//! Marks on sectors: a bit each, in memory only for groups in which there are some.

use std::collections::BTreeMap;

use levelhead_units::Extent;

use crate::geometry::{Geometry, GroupIdx};

/// See the module.
pub(super) struct Marks {
    geometry: Geometry,
    groups: BTreeMap<u64, Box<[u64]>>,
    /// Whether fixed places and the journal are marked from the beginning.
    has_reserved: bool,
}

impl Marks {
    /// None.
    pub(super) fn none(geometry: Geometry) -> Self {
        Self { geometry, groups: BTreeMap::new(), has_reserved: false }
    }

    /// Those of fixed places and the journal.
    pub(super) fn reserved(geometry: Geometry) -> Self {
        Self { has_reserved: true, ..Self::none(geometry) }
    }

    /// The bits of a group, 64 sectors a word.
    pub(super) fn group(&mut self, group: GroupIdx) -> &mut [u64] {
        let Self { geometry, groups, has_reserved } = self;
        groups.entry(group.0).or_insert_with(|| {
            let words = geometry.group_sectors.div_ceil(64) as usize;
            let mut bits = vec![0; words].into_boxed_slice();
            if *has_reserved {
                (0..geometry.fixed_end()).for_each(|offset| set(&mut bits, offset));
                let (all, journal) = (geometry.group(group), geometry.journal());
                for lba in journal.iter().filter(|&lba| all.contains(lba)) {
                    set(&mut bits, geometry.offset(lba));
                }
            }
            bits
        })
    }

    /// Whether a group has marks of its own.
    pub(super) fn has_group(&self, group: GroupIdx) -> bool {
        self.groups.contains_key(&group.0)
    }

    /// Marks some sectors; returns whether none was marked before.
    pub(super) fn mark(&mut self, extent: Extent) -> bool {
        let geometry = self.geometry;
        let mut is_new = true;
        for lba in extent.iter() {
            let bits = self.group(geometry.group_of(lba));
            let offset = geometry.offset(lba);
            is_new &= !is_set(bits, offset);
            set(bits, offset);
        }
        is_new
    }

    /// Whether a sector is marked.
    pub(super) fn has(&mut self, extent: Extent) -> bool {
        let geometry = self.geometry;
        extent.iter().all(|lba| {
            let offset = geometry.offset(lba);
            is_set(self.group(geometry.group_of(lba)), offset)
        })
    }
}

fn set(bits: &mut [u64], offset: u64) {
    bits[(offset / 64) as usize] |= 1 << (offset % 64);
}

/// Whether a bit is set.
pub(super) fn is_set(bits: &[u64], offset: u64) -> bool {
    bits[(offset / 64) as usize] >> (offset % 64) & 1 == 1
}
