//! What a drive knows of zeroes at the ends of its sectors.
//!
//! `[SDHDD]` sec. 3.4 has the drive find them by itself when it decodes: it keeps the zeroes apart from its
//! pseudo-random pattern, so that the medium tells. Here a write says what it has ([`ZeroTail`]), and what the medium
//! tells is kept beside it, sector by sector.
//!
//! ```text
//!   write ends --> told --> read: told
//!                    ^
//!    cut of power    '-- before, of what was in memory only
//! ```
//!
//! # Invariants
//!
//! - ZT1. A sector has the tail of the last write that reached it, whole: a lost write changes none, a torn one those of
//!   its first sectors, a misdirected one those where it has landed. A flipped bit is no zero.
//! - ZT2. After a cut of power a sector has the tail of what the medium has: that of a write whose bytes were lost is
//!   forgotten, that before it is back.
//! - ZT3. What was never written has no tail; nor has it again once it is written without.
//!
//! # What is left out
//!
//! A misdirected write counts as landed when it is answered, also one that waits in memory and is lost there. What the
//! drive knows ends with the drive: another one over the same bytes begins without.

use std::ops::Range;

use levelhead_block::{Silent, ZeroTail};
use levelhead_units::{Extent, Lba, SECTOR_SIZE, Sectors};

use crate::runs::Runs;

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tails {
    /// The tails of sectors that have one.
    told: Runs<ZeroTail>,
    /// What the medium has, of sectors that are in memory only, where it is not the same.
    before: Runs<ZeroTail>,
}

impl Tails {
    /// Whether no sector has a tail, now or on the medium.
    pub(crate) fn is_empty(&self) -> bool {
        self.told.is_empty() && self.before.is_empty()
    }

    /// Whether all sectors end in what is no zeroes, as far as it is known.
    pub(crate) fn are_alike(&self) -> bool {
        self.told.is_empty()
    }

    /// The sectors of `extent` in pieces of one tail each, in their order.
    pub(crate) fn pieces(&self, extent: Extent) -> Vec<(Extent, ZeroTail)> {
        let piece = |(range, tail): (Range<u64>, Option<ZeroTail>)| {
            (extent_of(&range), tail.unwrap_or(ZeroTail::None))
        };
        self.told.pieces(range_of(extent)).into_iter().map(piece).collect()
    }

    /// The tail of this sector.
    pub(crate) fn of(&self, lba: Lba) -> ZeroTail {
        self.told.get(lba.get()).unwrap_or(ZeroTail::None)
    }

    /// A write of `extent` begins on a drive that writes back, which has the sectors of `waiting` in memory only.
    pub(crate) fn begin(&mut self, extent: Extent, waiting: &[Extent]) {
        let mut from = extent.lba.get();
        let end = extent.end().get();
        for held in waiting.iter().map(|held| range_of(*held)) {
            self.settle(from..held.start.min(end));
            // Of what has waited before, what the medium has is known, or the same.
            let waits = held.start.max(from)..held.end.min(end);
            for (range, tail) in self.told.pieces(waits) {
                for (range, before) in self.before.pieces(range) {
                    if before.is_none() {
                        self.before.set(range, Some(tail.unwrap_or(ZeroTail::None)));
                    }
                }
            }
            from = from.max(held.end.min(end));
        }
        self.settle(from..end);
    }

    /// What was written there has reached the medium.
    fn settle(&mut self, range: Range<u64>) {
        for (range, tail) in self.told.pieces(range) {
            self.before.set(range, Some(tail.unwrap_or(ZeroTail::None)));
        }
    }

    /// `extent` has been written with this tail, except for what was silently wrong with that.
    pub(crate) fn write(&mut self, extent: Extent, tail: ZeroTail, silent: &Silent) {
        let stored = stored(extent, silent);
        let kept = |tail| (tail != ZeroTail::None).then_some(tail);
        self.told.set(range_of(stored), kept(tail));
        let Silent::Write(wrong) = silent else { return };
        for flip in &wrong.flips {
            let place = stored.lba + Sectors::new(flip.offset.into());
            if place < stored.end() {
                let left = kept(unflipped(tail, flip.bit));
                self.told.set(place.get()..place.get() + 1, left);
            }
        }
    }

    /// Everything that was written has reached the medium.
    pub(crate) fn flush(&mut self) {
        self.before = Runs::default();
    }

    /// The power has failed: what was written to `lost` has not reached the medium.
    pub(crate) fn lose_power(&mut self, lost: &[Extent]) {
        for extent in lost {
            for (range, before) in self.before.pieces(range_of(*extent)) {
                if let Some(tail) = before {
                    self.told.set(range, (tail != ZeroTail::None).then_some(tail));
                }
            }
        }
        self.flush();
    }
}

/// The sectors that a write of `extent` changes on the medium, with what is silently wrong with it.
pub(crate) fn stored(extent: Extent, silent: &Silent) -> Extent {
    match silent {
        // The missing ones are the last ones.
        Silent::Write(wrong) => Extent::new(
            wrong.landed.unwrap_or(extent.lba),
            extent.sectors.saturating_sub(Sectors::new(wrong.missing.len() as u64)),
        ),
        Silent::Nothing | Silent::Read { .. } | Silent::Flush => extent,
    }
}

/// The zeroes that are left behind a bit that is none any more.
fn unflipped(tail: ZeroTail, bit: u16) -> ZeroTail {
    let left = SECTOR_SIZE - 1 - usize::from(bit / 8);
    match tail {
        ZeroTail::B512 if (256..512).contains(&left) => ZeroTail::B256,
        ZeroTail::B256 | ZeroTail::B512 if left < 256 => ZeroTail::None,
        ZeroTail::None | ZeroTail::B256 | ZeroTail::B512 => tail,
    }
}

fn range_of(extent: Extent) -> Range<u64> {
    extent.lba.get()..extent.end().get()
}

fn extent_of(range: &Range<u64>) -> Extent {
    Extent::new(Lba::new(range.start), Sectors::new(range.end - range.start))
}

#[cfg(test)]
mod tests {
    use std::iter;

    use levelhead_block::{Flip, SectorSet, SilentWrite};
    use levelhead_stats::Streams;
    use levelhead_testkit::extent;

    use super::*;

    const TAILS: [ZeroTail; 3] = [ZeroTail::None, ZeroTail::B256, ZeroTail::B512];

    fn of(tails: &Tails, sectors: u64) -> Vec<ZeroTail> {
        let pieces = tails.pieces(extent(0, sectors));
        pieces
            .into_iter()
            .flat_map(|(piece, tail)| iter::repeat_n(tail, piece.sectors.get() as usize))
            .collect()
    }

    /// ZT1.
    #[test]
    fn a_write_that_goes_wrong_leaves_the_tails_of_what_the_medium_has() {
        let [none, b256, b512] = TAILS;
        let all = extent(0, 4);
        let wrong = |missing: &[u32], landed: Option<u64>, flips: Vec<Flip>| {
            let missing: SectorSet = missing.iter().copied().collect();
            Silent::Write(Box::new(SilentWrite { missing, landed: landed.map(Lba::new), flips }))
        };
        let flip = |offset, byte: u16| Flip { offset, bit: byte * 8 + 3 };
        for (silent, expected) in [
            (Silent::Nothing, [b512, b512, b512, b512, none, none, none, none]),
            (wrong(&[0, 1, 2, 3], None, vec![]), [b256, b256, b256, b256, none, none, none, none]),
            (wrong(&[2, 3], None, vec![]), [b512, b512, b256, b256, none, none, none, none]),
            (wrong(&[], Some(4), vec![]), [b256, b256, b256, b256, b512, b512, b512, b512]),
            (wrong(&[3], Some(5), vec![]), [b256, b256, b256, b256, none, b512, b512, b512]),
            (
                wrong(
                    &[3],
                    None,
                    vec![flip(0, 3_583), flip(1, 3_584), flip(2, 3_840), flip(3, 4_095)],
                ),
                [b512, b256, none, b256, none, none, none, none],
            ),
        ] {
            let mut tails = Tails::default();
            tails.write(all, b256, &Silent::Nothing);
            tails.write(all, b512, &silent);
            assert_eq!(of(&tails, 8), expected, "{silent:?}");
            tails.write(extent(0, 8), none, &Silent::Nothing);
            assert!(tails.is_empty());
        }
    }

    /// ZT2, against a list of what the medium and the memory have.
    #[test]
    fn a_cut_of_power_leaves_the_tails_of_what_the_medium_has() {
        const SIZE: u64 = 24;
        for seed in 0..400 {
            let mut rng = Streams::new(seed).stream("cuts");
            let mut tails = Tails::default();
            let mut medium = [ZeroTail::None; SIZE as usize];
            let mut memory: [Option<ZeroTail>; SIZE as usize] = [None; SIZE as usize];
            for step in 0..80 {
                let waiting: Vec<Extent> = (0..SIZE)
                    .filter(|&at| memory[at as usize].is_some())
                    .map(|at| extent(at, 1))
                    .collect();
                let place = extent(rng.below(SIZE - 6), 1 + rng.below(6));
                let sectors = || place.iter().map(|lba| lba.get() as usize);
                match rng.below(10) {
                    0..6 => {
                        let tail = TAILS[rng.below(3) as usize];
                        let inside: Vec<Extent> =
                            waiting.into_iter().filter(|at| place.contains(at.lba)).collect();
                        tails.begin(place, &inside);
                        match rng.below(8) {
                            // Cut off before its end: what waited is not in memory any more.
                            0 => {
                                let lost: Vec<Extent> = (0..SIZE).map(|at| extent(at, 1)).collect();
                                let gone = |at: &Extent| {
                                    memory[at.lba.get() as usize].is_some()
                                        || place.contains(at.lba)
                                };
                                let lost: Vec<Extent> = lost.into_iter().filter(gone).collect();
                                tails.lose_power(&lost);
                                memory = [None; SIZE as usize];
                            }
                            // Durable.
                            1 => {
                                tails.write(place, tail, &Silent::Nothing);
                                sectors().for_each(|at| (medium[at], memory[at]) = (tail, None));
                            }
                            _ => {
                                tails.write(place, tail, &Silent::Nothing);
                                sectors().for_each(|at| memory[at] = Some(tail));
                            }
                        }
                    }
                    // The drive writes something back.
                    6..8 => sectors().for_each(|at| {
                        if let Some(tail) = memory[at].take() {
                            medium[at] = tail;
                        }
                    }),
                    8 => {
                        tails.flush();
                        for at in 0..SIZE as usize {
                            medium[at] = memory[at].take().unwrap_or(medium[at]);
                        }
                    }
                    _ => {
                        tails.lose_power(&waiting);
                        memory = [None; SIZE as usize];
                    }
                }
                let known: Vec<ZeroTail> =
                    (0..SIZE as usize).map(|at| memory[at].unwrap_or(medium[at])).collect();
                assert_eq!(of(&tails, SIZE), known, "seed {seed}, step {step}");
            }
        }
    }
}
