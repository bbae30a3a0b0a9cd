//! What reading back finds, and what becomes of it.
//!
//! The disk says when it has read something back or written it again; here it is decided what that means. A lost, torn,
//! misdirected or flipped write is a state of the medium: its sectors are *stale* until they are written
//! again in good order. A comparison fails exactly if one of its sectors is stale.
//!
//! Only sectors of writes that wait are kept track of: those of all others make no difference any more.
//!
//! ```text
//!   write ends: stale or not --> read back --> not stale: verified
//!                                   ^    '---> stale: write again (a chance of its own) --.
//!                                   '--------------- at most 3 times -------------------'
//! ```
//!
//! # Invariants
//!
//! - VR1. A repair has the chances of its own attempt, not those of the write it repairs: else that would be lost for
//!   ever.
//! - VR2. The runtime that keeps the bytes hears of every repair, and of every write whose bytes the drive has let go
//!   while the medium had others: [`Aftermath`]. It hears of a write that lands on others before
//!   it does.
//!
//! # What is left out
//!
//! A misdirected write counts as landed when it is answered, also one that waits in memory for the medium then. What it
//! hits is found sooner than it could be, and if that is written again, or anew, before the medium has the misdirected
//! write, what that does to it then is not found. It is told when it is answered because VR2 asks for that: a runtime
//! takes what has left the memory to its medium before it hears anything else.

use std::collections::VecDeque;

use levelhead_block::{Aftermath, SectorSet, Silent, SilentWrite, What};
use levelhead_stats::hash_of;
use levelhead_units::{Extent, Lba, Sectors};

use crate::Verify;
use crate::cache::Dirty;
use crate::health::VerifyCounters;

/// What one drive knows, and does not know, of its medium.
#[derive(Clone, Debug)]
pub(crate) struct Verifying {
    is_on: bool,
    /// Sectors of waiting writes that are not what was written. The drive itself does not know.
    stale: Dirty,
    pub(crate) aftermaths: VecDeque<Aftermath>,
    /// What was verified within commands.
    pub(crate) raw: VerifyCounters,
}

impl Verifying {
    pub(crate) fn new(verify: Verify) -> Self {
        Self {
            is_on: matches!(verify, Verify::Idle(_)),
            stale: Dirty::default(),
            aftermaths: VecDeque::new(),
            raw: VerifyCounters::default(),
        }
    }

    /// `extent` has been written, except for what was silently wrong with that.
    pub(crate) fn wrote(&mut self, extent: Extent, silent: &Silent) {
        if !self.is_on {
            return;
        }
        self.stale.remove(&range(extent));
        let Silent::Write(wrong) = silent else { return };
        let SilentWrite { missing, landed, flips } = &**wrong;
        if landed.is_some() {
            self.stale.insert(range(extent));
            return;
        }
        for at in missing.iter().chain(flips.iter().map(|flip| flip.offset)) {
            let lba = (extent.lba + Sectors::new(at.into())).get();
            self.stale.insert(lba..lba + 1);
        }
    }

    /// Another write has landed on these sectors of a waiting one.
    pub(crate) fn was_hit(&mut self, extent: Extent) {
        self.stale.insert(range(extent));
    }

    /// No write waits for these sectors any more.
    pub(crate) fn forget(&mut self, extent: Extent) {
        self.stale.remove(&range(extent));
    }

    /// Whether any of these sectors is not what was last written there.
    pub(crate) fn is_stale(&self, extent: Extent) -> bool {
        self.stale.overlapping(&range(extent)).is_some()
    }

    /// Whether something that waits will be found not to be what was written.
    pub(crate) fn expects(&self) -> bool {
        !self.stale.is_empty()
    }

    /// A write and its repairs have been read back within the command.
    pub(crate) fn count_raw(&mut self, again: &[Aftermath]) {
        let is_good = again.last().is_none_or(|one| one.what != What::LetGo);
        let was_found = u64::from(!again.is_empty());
        self.raw.writes += 1;
        self.raw.verified += u64::from(is_good);
        self.raw.unverified += u64::from(!is_good);
        self.raw.found += was_found;
        self.raw.mended += was_found * u64::from(is_good);
        self.raw.unmended += u64::from(!is_good);
    }

    /// The drive lets what has become of a write be known.
    pub(crate) fn tell(&mut self, id: u64, extent: Extent, what: What) {
        self.aftermaths.push_back(Aftermath { id, extent, what });
    }
}

/// On whose behalf a repair runs: the chances of attempt number `attempt` are its own (VR1).
pub(crate) fn repair_origin(origin: u64, attempt: u32) -> u64 {
    hash_of(origin, &[0x7e_9a12, attempt.into()])
}

/// Where a misdirected write goes: the place and the sectors that get there.
pub(crate) fn misdirected(extent: Extent, silent: &Silent) -> Option<Extent> {
    let Silent::Write(wrong) = silent else { return None };
    wrong.landed.map(|landed| landing(extent, landed, &wrong.missing))
}

/// The missing sectors of a write are its last ones.
fn landing(extent: Extent, landed: Lba, missing: &SectorSet) -> Extent {
    Extent::new(landed, extent.sectors.saturating_sub(Sectors::new(missing.len() as u64)))
}

fn range(extent: Extent) -> std::ops::Range<u64> {
    extent.lba.get()..extent.end().get()
}

#[cfg(test)]
mod tests {
    use levelhead_stats::Streams;
    use levelhead_units::Ratio;

    use super::*;
    use crate::Faults;
    use crate::faults::Misbehaviour;

    /// VR1.
    #[test]
    fn every_attempt_has_chances_of_its_own() {
        let lost = 0.3;
        let faults = Faults { lost_rate: Ratio::new(lost).unwrap(), ..Faults::NONE };
        let key = Streams::new(0).key("drive/0");
        let map = Misbehaviour::new(&faults, key, Sectors::new(1 << 20));
        let n = 100_000;
        // How many writes are lost together with their first repairs, by the number of these.
        let mut counts = [0_u32; 4];
        for origin in 0..n {
            let extent = Extent::new(Lba::new(origin % 999), Sectors::new(2));
            let is_lost = |attempt: u32| {
                let origin = if attempt == 0 { origin } else { repair_origin(origin, attempt) };
                map.write(extent, origin) != Silent::Nothing
            };
            let in_a_row = (0..4).take_while(|&attempt| is_lost(attempt)).count();
            counts[..in_a_row].iter_mut().for_each(|count| *count += 1);
        }
        for (at, count) in counts.into_iter().enumerate() {
            let law = lost.powi(at as i32 + 1);
            let (share, error) =
                (f64::from(count) / n as f64, (law * (1.0 - law) / n as f64).sqrt());
            assert!((share - law).abs() <= 4.0 * error, "{at}: {share}, law {law}");
        }
    }
}
