//! What is done to a filesystem: operations that name what they are about by its place in the model, so that a history from which some
//! were left out still makes sense.

use levelhead_fs::{Allocation, Renaming};
use levelhead_stats::Rng;

/// Pages that files have at most, where it is up to the operations.
const PAGES_MAX: u64 = 72;

/// Names in a directory.
pub(crate) const NAMES: u8 = 5;

/// A name in one of the directories that there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spot {
    /// Which of them, counted round.
    pub(crate) directory: u8,
    /// Which name.
    pub(crate) name: u8,
}

/// Bytes of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    /// The first one.
    pub(crate) offset: u64,
    /// How many.
    pub(crate) count: u64,
}

/// See the module. Files are counted round among those that have a name or are open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    /// A new file.
    Create(Spot),
    /// A new directory.
    MakeDirectory(Spot),
    /// A new symbolic link that says this number of bytes.
    MakeLink { at: Spot, count: u16 },
    /// Another name of a file.
    Link { file: u8, at: Spot },
    /// Another name instead of one.
    Rename { from: Spot, to: Spot, mode: Renaming },
    /// A name less.
    Remove(Spot),
    /// The caller knows what has a name.
    Open(Spot),
    /// The caller knows a file no more.
    Close { file: u8 },
    /// Bytes into a file.
    Write { file: u8, range: Range },
    /// Bytes at its end.
    Append { file: u8, count: u64 },
    /// Another size.
    Truncate { file: u8, size: u64 },
    /// Room or none for a part of it.
    Allocate { file: u8, range: Range, how: Allocation },
    /// An extended attribute.
    SetExtended { file: u8, name: u8, count: u16 },
    /// One less.
    RemoveExtended { file: u8, name: u8 },
    /// Other permissions.
    Mode { file: u8, mode: u16 },
    /// Bytes of it.
    Read { file: u8, range: Range },
    /// What was done to a file outlasts a cut.
    Sync { file: u8 },
    /// What was done to all outlasts it.
    SyncAll,
    /// Time passes: seconds.
    Wait(u8),
}

/// One at random.
pub(crate) fn draw(rng: &mut Rng) -> Op {
    let file = rng.below(16) as u8;
    match rng.below(64) {
        0..6 => Op::Create(spot(rng)),
        6..8 => Op::MakeDirectory(spot(rng)),
        8 => Op::MakeLink { at: spot(rng), count: [5, 391, 393, 3_000][rng.below(4) as usize] },
        9..11 => Op::Link { file, at: spot(rng) },
        11..16 => {
            let modes = [Renaming::Replace, Renaming::Replace, Renaming::Keep, Renaming::Exchange];
            let mode = modes[rng.below(4) as usize];
            Op::Rename { from: spot(rng), to: spot(rng), mode }
        }
        16..20 => Op::Remove(spot(rng)),
        20 => Op::Open(spot(rng)),
        21..23 => Op::Close { file },
        23..36 => Op::Write { file, range: range(rng) },
        36..39 => Op::Append { file, count: 1 + rng.below(20_000) },
        39..43 => Op::Truncate { file, size: offset(rng) },
        43..47 => {
            let ways = [
                Allocation::Extend,
                Allocation::Keep,
                Allocation::Punch,
                Allocation::Punch,
                Allocation::Zero,
                Allocation::ZeroKeep,
            ];
            Op::Allocate { file, range: range(rng), how: ways[rng.below(6) as usize] }
        }
        47..49 => Op::SetExtended { file, name: rng.below(3) as u8, count: rng.below(900) as u16 },
        49 => Op::RemoveExtended { file, name: rng.below(3) as u8 },
        50 => Op::Mode { file, mode: 0o600 + rng.below(8) as u16 },
        51..54 => Op::Read { file, range: range(rng) },
        54..60 => Op::Sync { file },
        60..62 => Op::SyncAll,
        _ => Op::Wait([1, 6, 40][rng.below(3) as usize]),
    }
}

/// One of those that a database would do with the first files: pages somewhere in a file that is there, synced.
pub(crate) fn draw_of_pages(rng: &mut Rng) -> Op {
    let file = rng.below(2) as u8;
    match rng.below(12) {
        0 => Op::Append { file, count: 40 * 4_096 },
        1..6 => {
            let offset = 4_096 * rng.below(40);
            Op::Write { file, range: Range { offset, count: 4_096 * (1 + rng.below(2)) } }
        }
        6..10 => Op::Sync { file },
        _ => Op::Wait(40),
    }
}

/// One at random of those that take and give back many sectors, or a few behind many.
pub(crate) fn draw_on_full_disk(rng: &mut Rng) -> Op {
    let file = rng.below(16) as u8;
    match rng.below(20) {
        0..3 => Op::Create(spot(rng)),
        3..6 => Op::Remove(spot(rng)),
        6..10 => Op::Append { file, count: 4_096 * many_pages(rng) },
        10..12 => Op::Append { file, count: 1 + rng.below(100_000) },
        12..14 => {
            let offset = 4_096 * rng.below(400);
            Op::Write { file, range: Range { offset, count: 4_096 * (1 + rng.below(40)) } }
        }
        14 => Op::Truncate { file, size: 4_096 * rng.below(400) },
        15..18 => Op::Sync { file },
        18 => Op::SyncAll,
        _ => Op::Wait([1, 40][rng.below(2) as usize]),
    }
}

/// Files that leave little room on a disk of this size, all of it in its place.
pub(crate) fn filling(rng: &mut Rng, sectors: u64) -> Vec<Op> {
    let mut ops: Vec<Op> =
        (0..NAMES - 1).map(|name| Op::Create(Spot { directory: 0, name })).collect();
    let mut left = sectors * 3 / 4 + rng.below(sectors / 4);
    while left > 0 {
        let pages = many_pages(rng).min(left);
        left -= pages;
        ops.push(Op::Append { file: rng.below(u64::from(NAMES) - 1) as u8, count: 4_096 * pages });
        ops.push(Op::SyncAll);
    }
    ops.push(Op::Wait(40));
    ops
}

fn many_pages(rng: &mut Rng) -> u64 {
    match rng.below(3) {
        0 => [246, 250, 251, 256, 400, 406][rng.below(6) as usize],
        1 => 32 + rng.below(100),
        _ => 130 + rng.below(300),
    }
}

fn spot(rng: &mut Rng) -> Spot {
    let directory = if rng.below(2) == 0 { 0 } else { rng.below(4) as u8 };
    Spot { directory, name: rng.below(NAMES.into()) as u8 }
}

fn offset(rng: &mut Rng) -> u64 {
    let most = [3, 20, PAGES_MAX][rng.below(3) as usize];
    let page = rng.below(most) * 4_096;
    match rng.below(3) {
        0 => page + rng.below(4_096),
        _ => page,
    }
}

fn range(rng: &mut Rng) -> Range {
    let offset = offset(rng);
    let count = match rng.below(8) {
        0..3 => 4_096 * (1 + rng.below(4)),
        3..6 => 1 + rng.below(9_000),
        6 => 4_096 * (30 + rng.below(20)),
        _ => 1 + rng.below(150_000),
    };
    Range { offset, count: count.min(PAGES_MAX * 4_096 - offset.min(PAGES_MAX * 4_096 - 1)) }
}
