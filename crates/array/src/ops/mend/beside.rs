//! What is redundant beside sectors that are mended, and counts what their drive has there instead of what was written.
//!
//! A drive may lose a write of redundancy whose record had given way, and another drive the write of the data. Then all drives
//! agree on what was there before, and from the mend of the data on they do not: a scrub finds a codeword that does not match
//! and, with one redundant drive, not which sector of it is wrong; with two it would find the mended one guilty. So the
//! codewords are looked at before a mend, while the record says what is right and the drive still has what is not:
//!
//! ```text
//!   the others match with what was written       nothing is stale
//!   they match with what the drive has           what is redundant counts that: it is written again, with the difference
//!   they match with neither                      something else is wrong: a scrub tells that
//! ```
//!
//! A mirror needs no such proof: every copy is to be what was written.

use levelhead_block::{Place, Segment};
use levelhead_erasure::SymbolSet;

use crate::core::Core;
use crate::ops::fetch::Codeword;
use crate::shape::Cell;

/// A sum over a codeword that is zero if what it is about matches.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clue {
    /// The codeword's place in the fetch.
    word: usize,
    /// The symbol that is computed from others, and compared.
    symbol: usize,
    with: With,
}

/// What the sectors that are mended are taken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum With {
    Written,
    OnDrive,
}

/// A sector that is mended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Own {
    pub(super) symbol: usize,
    pub(super) written: Place,
    /// What its drive has, if it gives anything.
    pub(super) on_drive: Option<Place>,
}

/// A redundant sector that is to be written again, and what it should be.
#[derive(Clone, Debug)]
pub(super) struct Stale {
    pub(super) cell: Cell,
    pub(super) from: Vec<(u8, Place)>,
}

/// What to compute of a codeword, and what each sum says.
pub(super) fn clues(
    core: &Core,
    at: usize,
    word: &Codeword,
    own: &[Own],
) -> Vec<(Clue, Vec<(u8, Place)>)> {
    if word.row.stripe >= core.holdings.synced() {
        return Vec::new();
    }
    let mut clues = of_version(core, at, word, own, With::Written);
    if own.iter().all(|own| own.on_drive.is_some()) {
        clues.extend(of_version(core, at, word, own, With::OnDrive));
    }
    clues
}

fn of_version(
    core: &Core,
    at: usize,
    word: &Codeword,
    own: &[Own],
    with: With,
) -> Vec<(Clue, Vec<(u8, Place)>)> {
    let code = core.code().expect("only a redundant array is looked at");
    let place = |symbol: usize| match own.iter().find(|own| own.symbol == symbol) {
        Some(own) => match with {
            With::Written => own.written,
            With::OnDrive => own.on_drive.expect("the caller has looked"),
        },
        None => word.place(symbol),
    };
    let mended: SymbolSet = own.iter().map(|own| own.symbol).collect();
    let others = word.have.minus(mended);
    let in_turn = mended.iter().chain(others.iter());
    let basis: SymbolSet = in_turn.take(core.layout().data_symbols()).collect();
    let clue = |symbol| {
        let terms = code.compute(&basis, symbol).into_iter();
        let mut sum: Vec<_> = terms.map(|(factor, source)| (factor, place(source))).collect();
        sum.push((1, place(symbol)));
        (Clue { word: at, symbol, with }, sum)
    };
    mended.or(others).minus(basis).iter().map(clue).collect()
}

/// What is stale in a codeword, as the sums say.
pub(super) fn stale(
    core: &Core,
    at: usize,
    word: &Codeword,
    own: &[Own],
    seen: &[(Clue, bool)],
) -> Vec<Stale> {
    let of = |with: With| {
        let is_meant = move |(clue, _): &&(Clue, bool)| clue.word == at && clue.with == with;
        seen.iter().filter(is_meant)
    };
    let wrong = of(With::Written).filter(|(_, is_zero)| !is_zero).map(|(clue, _)| clue.symbol);
    let wrong: SymbolSet = wrong.collect();
    let data = SymbolSet::first(core.layout().data_symbols());
    let is_free = |symbol: &usize| {
        let cell = core.layout().cell(word.row, *symbol);
        core.drives.present().contains(cell.drive)
            && !core.verify.records.waits(cell)
            && core.log.unplaced.find(cell).is_none()
            && !core.meta.is_damaged(cell)
    };
    let stale = |symbol, from| Stale { cell: core.layout().cell(word.row, symbol), from };
    if core.layout().spec().is_mirror() {
        let right = own[0].written;
        return wrong.iter().filter(is_free).map(|copy| stale(copy, vec![(1, right)])).collect();
    }
    let is_consistent = of(With::OnDrive).all(|&(_, is_zero)| is_zero);
    let has_proof = of(With::OnDrive).next().is_some() && is_consistent;
    let is_data = own.iter().all(|own| data.contains(own.symbol));
    if wrong.is_empty() || !has_proof || !is_data {
        return Vec::new();
    }
    let code = core.code().expect("only a redundant array is looked at");
    let redundant = word.have.minus(data);
    let changed = |symbol: usize| {
        let factor = |own: &Own| code.coefficient(symbol - data.len(), own.symbol);
        let both = |own: &Own| {
            let before = own.on_drive.expect("it was compared");
            [(factor(own), own.written), (factor(own), before)]
        };
        let mut from = vec![(1, word.place(symbol))];
        from.extend(own.iter().flat_map(both));
        stale(symbol, from)
    };
    redundant.iter().filter(is_free).map(changed).collect()
}

/// Where a sector is in segments that follow each other.
pub(super) fn place_at(segments: &[Segment], at: u32) -> Place {
    let mut left = at;
    for segment in segments {
        if left < segment.sectors {
            return segment.place.plus(left);
        }
        left -= segment.sectors;
    }
    unreachable!("sector {at} is past what was found")
}
