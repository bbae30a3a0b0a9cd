//! All sequences of one operation and of two, with every fate at every boundary between their commands.

use levelhead_fs::{Allocation, Renaming};

use super::life::{Make, Script};
use super::op::{Op, Range, Spot};
use super::{Aim, Broken, Fates, Odds, Tally};

const PAGE: u64 = 4_096;

/// Sectors that the code of these filesystems has at most.
const CODEWORD: u64 = 48;

/// Files with a sector less than a codeword has, as many, and one more.
const SIZES: [u64; 3] = [CODEWORD - 1, CODEWORD, CODEWORD + 1];

fn spot(name: u8) -> Spot {
    Spot { directory: 0, name }
}

/// Two files, one of them of some sectors, and an empty directory: everything in its place.
fn before(sectors: u64) -> Vec<Op> {
    let range = Range { offset: 0, count: sectors * PAGE };
    vec![
        Op::Create(spot(0)),
        Op::Write { file: 0, range },
        Op::Create(spot(1)),
        Op::Write { file: 1, range: Range { offset: 0, count: 3 * PAGE } },
        Op::MakeDirectory(spot(2)),
        Op::SyncAll,
        Op::Wait(40),
    ]
}

/// What there is to be done.
fn operations(sectors: u64) -> Vec<Op> {
    let middle = sectors / 2 * PAGE;
    let part = Range { offset: middle + 100, count: 2 * PAGE };
    let allocate = |how| Op::Allocate { file: 0, range: part, how };
    let rename = |mode| Op::Rename { from: spot(0), to: spot(1), mode };
    vec![
        Op::Create(spot(3)),
        Op::MakeDirectory(spot(3)),
        Op::MakeLink { at: spot(3), count: 3_000 },
        Op::Append { file: 0, count: PAGE + 7 },
        Op::Write { file: 0, range: part },
        Op::Write { file: 0, range: Range { offset: 0, count: sectors * PAGE } },
        Op::Truncate { file: 0, size: middle },
        Op::Truncate { file: 0, size: 0 },
        Op::Truncate { file: 0, size: (sectors + 5) * PAGE },
        allocate(Allocation::Punch),
        allocate(Allocation::ZeroKeep),
        rename(Renaming::Replace),
        rename(Renaming::Exchange),
        Op::Link { file: 0, at: spot(3) },
        Op::Remove(spot(0)),
        Op::Remove(spot(2)),
        Op::SetExtended { file: 0, name: 0, count: 900 },
        Op::Sync { file: 0 },
        Op::SyncAll,
        Op::Wait(40),
    ]
}

/// Every sequence of one operation and of two, and a sync behind it: one in `part` of them, begun with another one for each seed.
pub fn sequences(seed: u64, part: u64, aim: &Aim, tally: &mut Tally) -> Result<(), Broken> {
    let odds = Odds {
        image: 1,
        again: 8,
        goes_on: 0,
        damage_at_once: 8,
        retries: 0,
        stops: 0,
        ..aim.odds
    };
    let aim = Aim { odds, fates: Fates::All, ..*aim };
    let mut at = seed;
    for sectors in SIZES {
        let all = operations(sectors);
        let one = all.iter().map(|&op| vec![op]);
        let two = all.iter().flat_map(|&op| all.iter().map(move |&next| vec![op, next]));
        for sequence in one.chain(two) {
            at += 1;
            if !at.is_multiple_of(part.max(1)) {
                continue;
            }
            let looked_at = sequence.len() + 1;
            let operations = [&before(sectors)[..], &sequence[..], &[Op::SyncAll]].concat();
            let mut script = Script::of(at, &aim, operations, looked_at);
            script.make = Make::of_sequences(script.make, CODEWORD as u16);
            let what = format!("{}, after {sectors} sectors {sequence:?}", script.make);
            script.run(tally).map_err(|how| Broken { seed: at, what, how })?;
        }
    }
    Ok(())
}
