//! A mirror's copies: which of them a read takes, and what of a codeword may be read at all.

use levelhead_units::{DriveIdx, DriveSet, Instant};

use crate::core::Core;
use crate::ops::fetch::{Codeword, Fetch, present};
use crate::policy::Policy;
use crate::policy::mirror::{Copy, soonest};

/// The copy that was chosen among those on some drives.
#[derive(Clone, Copy, Debug)]
struct Chosen {
    among: DriveSet,
    drive: DriveIdx,
}

/// Makes one copy of each codeword of a read the requested one.
pub(crate) fn choose(core: &mut Core, now: Instant, fetch: &mut Fetch, policy: Policy) {
    core.reads.take_turn();
    let mut chosen: Vec<Chosen> = Vec::new();
    for at in 0..fetch.codewords.len() {
        let word = &fetch.codewords[at];
        if let Some(had) = word.have.iter().next() {
            // It is in memory: what the journal has not put into its place yet.
            fetch.codewords[at].subject = std::iter::once(had).collect();
            continue;
        }
        let among = on(core, word);
        let known = chosen.iter().find(|known| known.among == among).map(|known| known.drive);
        let Some(drive) = known.or_else(|| pick(core, now, &fetch.codewords, at, policy)) else {
            continue;
        };
        if known.is_none() {
            chosen.push(Chosen { among, drive });
        }
        let row = word.row;
        let symbol = word.usable.iter().find(|&copy| core.layout().cell(row, copy).drive == drive);
        fetch.codewords[at].subject = symbol.into_iter().collect();
    }
}

/// The drives with copies that may be read.
fn on(core: &Core, word: &Codeword) -> DriveSet {
    word.usable.iter().map(|copy| core.layout().cell(word.row, copy).drive).collect()
}

/// The drive whose copy of codeword `at` a read takes; nothing if there is no copy.
fn pick(
    core: &Core,
    now: Instant,
    words: &[Codeword],
    at: usize,
    policy: Policy,
) -> Option<DriveIdx> {
    let word = &words[at];
    let all = on(core, word);
    let avoided = match policy {
        // The wait at a drive that sits out decides, unless an operator wants it so.
        Policy::Level(_) => core.drives.overview().by_hand,
        Policy::Normal
        | Policy::OnFailure
        | Policy::Assisted(_)
        | Policy::ProActive(_)
        | Policy::Tolerant(_) => core.drives.sat_out(),
    };
    let left = all.without(avoided);
    let among: Vec<DriveIdx> = if left.is_empty() { all } else { left }.iter().collect();
    if among.len() < 2 {
        return among.first().copied();
    }
    let chosen = match policy {
        Policy::Level(_) => {
            let copies: Vec<Copy> =
                among.iter().map(|&drive| copy(core, now, word, drive)).collect();
            let same = words.iter().filter(|word| on(core, word) == all);
            soonest(&copies, same.count() as u32)
        }
        Policy::Normal
        | Policy::OnFailure
        | Policy::Assisted(_)
        | Policy::ProActive(_)
        | Policy::Tolerant(_) => (core.reads.turn() % among.len() as u64) as usize,
    };
    Some(among[chosen])
}

fn copy(core: &Core, now: Instant, word: &Codeword, drive: DriveIdx) -> Copy {
    let cells = word.usable.iter().map(|copy| core.layout().cell(word.row, copy));
    let lba = cells.filter(|cell| cell.drive == drive).map(|cell| cell.lba).next();
    let distance = lba.map_or(0, |lba| core.drives.distance(drive, lba).get());
    let is_next = lba.is_some_and(|lba| core.drives.is_next(drive, lba));
    let distance = distance as f64 / core.area().size().get() as f64;
    Copy { drive: core.drives.view(now, drive), distance, is_next }
}

/// Where copies may differ, and the one that may be read is gone or damaged, the next one may be read.
pub(crate) fn renew(core: &Core, fetch: &mut Fetch) {
    for word in &mut fetch.codewords {
        if word.usable.minus(word.damaged).is_empty() {
            let left = present(core, word.row, core.layout().symbols()).minus(word.tried);
            word.usable = word.usable.or(left.iter().take(1).collect());
        }
    }
}
