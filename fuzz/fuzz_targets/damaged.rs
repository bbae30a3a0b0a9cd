//! Whatever bytes a slot of the list of damaged sectors holds: the list is refused, or is the same when it is written
//! again; and what is put on it and taken off it then is kept as a plain set would keep it.
//!
//! The first byte says how many changes come first, eight bytes each; the rest is the slot. Its checksums are made
//! right, or nothing behind them would ever be reached.

#![no_main]

use std::convert::Infallible;

use levelhead_array::Cell;
use levelhead_array::damaged::{DAMAGED_PLACE, Listing, RANGES_MAX};
use levelhead_units::{DriveIdx, Extent, Lba, Sectors};
use libfuzzer_sys::fuzz_target;

const SECTOR: usize = 4096;

/// The most sectors of a slot that an input fills.
const SLOT: usize = 4;

/// Bytes of a change: what and which drive, how many sectors, four bytes of an address, and two that scale it.
const CHANGE: usize = 8;

/// Where the header says how long it is and what its checksums are.
const COUNT: usize = 20;
const RANGES_SUM: usize = 64;

fuzz_target!(|bytes: &[u8]| {
    let Some((&first, rest)) = bytes.split_first() else { return };
    let (changes, slot) = rest.split_at(rest.len().min(usize::from(first % 16) * CHANGE));
    let slot = sealed(slot, first & 0x80 != 0);
    let Some(mut listing) = decode(&slot) else { return };
    assert_eq!(listing.encode()[..], slot[..listing.encode().len()]);
    check(&listing);
    for change in changes.chunks_exact(CHANGE) {
        apply(&mut listing, change);
        check(&listing);
        assert_eq!(decode(&listing.encode()).as_ref(), Some(&listing));
    }
});

/// A slot of these bytes: with checksums that are right, and, if wanted, a magic and a number of ranges that are too.
fn sealed(bytes: &[u8], is_list: bool) -> Vec<u8> {
    let mut slot = bytes[..bytes.len().min(SLOT * SECTOR)].to_vec();
    slot.resize(SLOT * SECTOR, 0);
    if is_list {
        slot[..16].copy_from_slice(b"levelhead damage");
        slot[16..COUNT].copy_from_slice(&1_u32.to_le_bytes());
        let ranges = bytes.len().saturating_sub(SECTOR).min((SLOT - 1) * SECTOR).div_ceil(16);
        slot[COUNT..24].copy_from_slice(&(ranges as u32).to_le_bytes());
    }
    let count = u32::from_le_bytes(slot[COUNT..24].try_into().expect("four bytes")) as usize;
    let ranges = &slot[SECTOR..][..(count.div_ceil(256) * SECTOR).min((SLOT - 1) * SECTOR)];
    let sum = crc32c::crc32c(ranges).to_le_bytes();
    slot[RANGES_SUM..][..4].copy_from_slice(&sum);
    let sum = crc32c::crc32c(&slot[..SECTOR - 4]).to_le_bytes();
    slot[SECTOR - 4..SECTOR].copy_from_slice(&sum);
    slot
}

fn decode(slot: &[u8]) -> Option<Listing> {
    let read = |extent: Extent| -> Result<Vec<u8>, Infallible> {
        assert!(extent.end().get() <= DAMAGED_PLACE.get() / 2, "past the end of the slot");
        let wanted = extent.sectors.get() as usize * SECTOR;
        let mut bytes = slot.get(extent.lba.get() as usize * SECTOR..).unwrap_or_default().to_vec();
        bytes.resize(wanted, 0);
        Ok(bytes)
    };
    let Ok(listing) = Listing::decode(read);
    listing.ok()
}

/// The list goes together with itself.
fn check(listing: &Listing) {
    let list = &listing.list;
    let ranges: Vec<_> = list.ranges().collect();
    assert!(ranges.len() <= RANGES_MAX);
    assert_eq!(list.is_empty(), ranges.is_empty());
    assert_eq!(list.sectors(), ranges.iter().map(|range| range.extent.sectors).sum());
    for pair in ranges.windows(2) {
        let [before, next] = pair else { unreachable!("windows of two") };
        assert!(before.drive <= next.drive);
        assert!(before.drive != next.drive || before.extent.end() < next.extent.lba);
    }
}

/// Puts sectors on the list, or takes one off.
fn apply(listing: &mut Listing, change: &[u8]) {
    let drive = DriveIdx::new(change[0] % 64);
    let near = u64::from(u32::from_le_bytes(change[2..6].try_into().expect("four bytes")));
    let lba = Lba::new(near << (change[6] % 8));
    let cell = Cell { drive, lba };
    let list = &mut listing.list;
    let before = list.sectors();
    if change[7].is_multiple_of(2) {
        let extent = Extent::new(lba, Sectors::new(1 + u64::from(change[1])));
        let is_new = list.add(drive, extent);
        assert_eq!(is_new, list.sectors() > before);
        let last = Lba::new(extent.end().get() - 1);
        assert!(list.covers(cell) && list.covers(Cell { drive, lba: last }));
    } else {
        let was_on = list.covers(cell);
        assert_eq!(list.remove(cell), was_on);
        assert!(!list.covers(cell));
        assert_eq!(before - list.sectors(), Sectors::new(u64::from(was_on)));
    }
}
