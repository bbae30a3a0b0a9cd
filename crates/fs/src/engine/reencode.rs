//! How the redundancy of a coding extent comes to go with its new data: anew from all of it, or from what has changed.
//!
//! ```text
//!   scratch:     r' = G d'               reads what neither the journal nor memory has of the data
//!   difference:  r' = r xor G (d' xor d)  reads the old data of what has changed, and the old redundancy
//! ```
//!
//! `[LEC17]` 3.4: which one is sooner is told by what it reads.

use std::collections::BTreeMap;

use levelhead_block::Piece;
use levelhead_units::Lba;

use super::Filesystem;
use super::job::PAGE;
use super::plan::Target;
use super::reads::GAP_MAX;
use crate::format::extent::{CodingExtent, WordSymbol};
use crate::settings::Update;

/// What a command takes beside its transfer, in sectors of transfer: what lies between others is read along where it is less.
const COMMAND_COST: u64 = GAP_MAX;

/// How redundancy is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// From all the data.
    Scratch,
    /// From what has changed.
    Difference,
}

/// What has to be read for it, and what is in memory already.
#[derive(Debug)]
pub(super) struct Sources {
    pub(super) way: Way,
    pub(super) targets: BTreeMap<Lba, Target>,
    pub(super) got: BTreeMap<Lba, Piece>,
}

impl Sources {
    fn cost(&self) -> u64 {
        let (mut cost, mut last) = (0, None);
        for lba in self.targets.keys() {
            cost += match last {
                Some(last) if lba.get() - last <= GAP_MAX => lba.get() - last,
                Some(_) | None => COMMAND_COST + 1,
            };
            last = Some(lba.get());
        }
        cost
    }
}

impl Filesystem {
    /// What is read to compute a coding extent's redundancy. `sums` are the checksums of all its sectors; `may_differ` says whether what
    /// is in its places is still a whole codeword.
    pub(super) fn sources_of(
        &mut self,
        extent: CodingExtent,
        sums: &BTreeMap<Lba, Option<u32>>,
        may_differ: bool,
    ) -> Sources {
        if extent.redundant == 0 {
            let (targets, got) = Default::default();
            return Sources { way: Way::Scratch, targets, got };
        }
        let scratch = self.scratch_sources(extent, sums);
        let difference = if may_differ { self.difference_sources(extent, sums) } else { None };
        let Some(difference) = difference else { return scratch };
        let is_sooner = match self.settings.update {
            Update::Sooner => difference.cost() < scratch.cost(),
            Update::Scratch => false,
            Update::Difference => true,
        };
        if is_sooner { difference } else { scratch }
    }

    fn scratch_sources(
        &mut self,
        extent: CodingExtent,
        sums: &BTreeMap<Lba, Option<u32>>,
    ) -> Sources {
        let (mut targets, mut got) = (BTreeMap::new(), BTreeMap::new());
        for lba in extent.data().iter() {
            let Some(sum) = sums[&lba] else { continue };
            if self.logged.contains_key(&lba) {
                continue;
            }
            match self.sectors.get(lba, sum) {
                Some(piece) => drop(got.insert(lba, piece)),
                None => drop(targets.insert(lba, Target { sum, extent })),
            }
        }
        Sources { way: Way::Scratch, targets, got }
    }

    /// Nothing if the redundancy was never computed for all of the extent as it is.
    fn difference_sources(
        &mut self,
        extent: CodingExtent,
        sums: &BTreeMap<Lba, Option<u32>>,
    ) -> Option<Sources> {
        let data = extent.data();
        let redundant = extent.all().iter().skip(extent.data as usize);
        let mut wanted: Vec<(Lba, u32)> = Vec::new();
        for lba in redundant {
            wanted.push((lba, sums[&lba]?));
        }
        let changed = self.logged.range(data.lba..data.end());
        wanted.extend(changed.filter_map(|(&lba, logged)| Some((lba, logged.old?))));
        let (mut targets, mut got) = (BTreeMap::new(), BTreeMap::new());
        for (lba, sum) in wanted {
            match self.sectors.get(lba, sum) {
                Some(piece) => drop(got.insert(lba, piece)),
                None => drop(targets.insert(lba, Target { sum, extent })),
            }
        }
        Some(Sources { way: Way::Difference, targets, got })
    }

    /// Computes the redundancy from what was read, into `into`, which is zeroes.
    pub(super) fn compute_redundancy(
        &mut self,
        extent: CodingExtent,
        way: Way,
        got: &BTreeMap<Lba, Piece>,
        into: &mut [u8],
    ) {
        let zero = [0; PAGE as usize];
        let choices = self.settings.choices;
        if way == Way::Scratch {
            // What is lost counts as zeroes: it stays lost, and the others can be computed.
            let data: Vec<&[u8]> = extent
                .data()
                .iter()
                .map(|lba| {
                    let logged = self.logged.get(&lba).map(|logged| &logged.page);
                    logged.or_else(|| got.get(&lba)).map_or(&zero[..], |piece| piece.bytes())
                })
                .collect();
            return self.codes.encode(choices, &extent, &data, into);
        }
        let (data, depth) = (extent.data(), usize::from(extent.depth));
        let redundant = extent.all().iter().skip(extent.data as usize);
        for (lba, into) in redundant.zip(into.chunks_mut(PAGE as usize)) {
            into.copy_from_slice(got[&lba].bytes());
        }
        let mut difference = vec![0; PAGE as usize];
        for (&lba, logged) in self.logged.range(data.lba..data.end()) {
            let old = got.get(&lba).map_or(&zero[..], |piece| piece.bytes());
            for (byte, (old, new)) in difference.iter_mut().zip(old.iter().zip(logged.page.bytes()))
            {
                *byte = old ^ new;
            }
            let WordSymbol { word, symbol } = extent.symbol((lba - extent.lba).get() as u32);
            let rows = into.chunks_mut(PAGE as usize).skip(word as usize).step_by(depth);
            let mut rows: Vec<&mut [u8]> = rows.collect();
            let code = self.codes.get(extent.word_data(word), extent.redundant);
            code.update(choices, symbol, &difference, &mut rows)
                .expect("it is a data symbol of the code");
        }
    }
}
