//! Whatever bytes the pages of maps hold: a page is refused, or is the same when it is written again; and of what the
//! drives of an array give, every bit counts that a page of the map has.
//!
//! The input is changes of four bytes each, to the pages that a program would have written: which drive and page, where,
//! and what is there then. Checksums are made right unless the first bit of the input says otherwise, or nothing
//! behind them would ever be reached.

#![no_main]

use levelhead_array::Spec;
use levelhead_array::membership::{Member, Membership};
use levelhead_array::missed::{MAP_SECTORS, MapKey, Page, PageCopy, PageError};
use levelhead_array::quorum::{Copy, Found, quorum};
use levelhead_array::reserve::Division;
use levelhead_array::superblock::{Book, Forced, Kept, Logs, Own, State, Superblock, Uuid};
use levelhead_units::{DriveIdx, DriveSet, Sectors};
use libfuzzer_sys::fuzz_target;

const SECTOR: usize = 4096;

/// The sectors of every member.
const SIZE: Sectors = Sectors::new(262_144);

/// The drive that is missing, and those that keep its map.
const MISSING: DriveIdx = DriveIdx::new(2);
const HOLDERS: [usize; 3] = [0, 1, 3];

/// Pages of the map that have bits.
const PAGES: usize = 2;

fuzz_target!(|bytes: &[u8]| {
    let Some((&first, changes)) = bytes.split_first() else { return };
    let book = book();
    let mut sectors: Vec<Vec<Vec<u8>>> = HOLDERS.iter().map(|&at| pages(&book, at)).collect();
    for change in changes.chunks_exact(4).take(64) {
        let holder = &mut sectors[usize::from(change[0]) % HOLDERS.len()];
        let page = usize::from(change[0] >> 2) % holder.len();
        let place = usize::from(u16::from_le_bytes([change[1], change[2]])) % (SECTOR - 4);
        holder[page][place] = change[3];
        if first & 1 == 0 {
            seal(&mut holder[page]);
        }
    }
    let copies: Vec<Vec<PageCopy>> =
        sectors.iter().map(|pages| pages.iter().map(|page| copy(page)).collect()).collect();
    let found: Vec<Found> =
        HOLDERS.iter().zip(&copies).map(|(&at, maps)| member(&book, at, maps)).collect();
    let assembly = quorum(&found).expect("maps say nothing of who is right");
    for map in &assembly.missed {
        assert_eq!(map.key.drive, MISSING);
        assert_eq!(map.words.len(), map.key.regions.div_ceil(64) as usize);
        check_bits(&book, map.slot, map.key, &map.words, &copies);
    }
});

/// Every bit of every page with the key of the map is on it.
fn check_bits(book: &Book, slot: usize, key: MapKey, words: &[u64], copies: &[Vec<PageCopy>]) {
    for (&at, copies) in HOLDERS.iter().zip(copies) {
        let slot = copies.iter().skip(slot * MAP_SECTORS as usize).take(MAP_SECTORS as usize);
        for (number, copy) in slot.enumerate().skip(1) {
            let PageCopy::Read(page) = copy else { continue };
            let is_of_map = page.array == book.array
                && page.holder == book.members[at].uuid
                && page.key == key
                && usize::from(page.number) == number;
            if !is_of_map {
                continue;
            }
            let first = (number - 1) * page.words.len();
            for (has, word) in words.iter().skip(first).zip(&page.words) {
                assert_eq!(has & word, *word, "page {number} of drive {at}");
            }
        }
    }
}

fn copy(sector: &[u8]) -> PageCopy {
    match Page::decode(sector) {
        Ok(page) => {
            assert_eq!(page.encode()[..], *sector);
            PageCopy::Read(Box::new(page))
        }
        Err(PageError::Absent) => PageCopy::Nothing,
        Err(PageError::Checksum | PageError::Version { .. } | PageError::Contents) => {
            PageCopy::Unreadable
        }
    }
}

/// An array that went on without a drive.
fn book() -> Book {
    let spec: Spec = "raid6:2+2,chunk=4KiB".parse().expect("it is a shape");
    let division = Division::of(&spec, SIZE).expect("the members are large enough");
    let member = |at: u8| Member { uuid: Uuid([0xB0 + at; 16]), membership: Membership::Present };
    let mut members: Vec<Member> = (0..4_u8).map(member).collect();
    members[MISSING.as_usize()].membership = Membership::Missing { since: 900 };
    Book {
        generation: 1_000,
        array: Uuid([0xA0; 16]),
        run: Uuid([0xC0; 16]),
        spec,
        drive_size: division.drive_size,
        state: State::Dirty,
        forced: Forced::No,
        synced: 0,
        synced_last: 10,
        journal: Some(Kept { first: 1, logs: Logs::Parts }),
        missed: DriveSet::EMPTY.with(MISSING),
        wishes: levelhead_array::Wishes::default(),
        members,
    }
}

/// The sectors of two slots for maps, of which the first has one.
fn pages(book: &Book, at: usize) -> Vec<Vec<u8>> {
    // The largest regions of which there are as many as two pages have.
    let stripes = book.stripes();
    let shift = (0..63).find(|&shift| (stripes - 1) >> shift < 40_000).expect("one region fits");
    let regions = ((stripes - 1) >> shift) + 1;
    let key = MapKey { drive: MISSING, since: 900, shift, regions };
    let mut sectors = vec![vec![0; SECTOR]; 2 * MAP_SECTORS as usize];
    for (number, sector) in sectors.iter_mut().enumerate().take(1 + PAGES) {
        let words = if number == 0 { vec![900] } else { vec![1 << at; 502] };
        let (array, holder) = (book.array, book.members[at].uuid);
        let page = Page { array, holder, key, number: number as u8, words };
        sector.copy_from_slice(&page.encode());
    }
    sectors
}

fn member(book: &Book, at: usize, maps: &[PageCopy]) -> Found {
    let division = Division::of(&book.spec, SIZE).expect("the members are large enough");
    let own =
        Own { drive: DriveIdx::from_usize(at), size: SIZE, reserved: division.reserved(SIZE) };
    let superblock = Superblock { book: book.clone(), own, read_only: 0 };
    let copy = Copy::Read(Box::new(Ok(superblock)));
    let mut found = Found::new([copy.clone(), copy], SIZE);
    found.maps = maps.to_vec();
    found
}

/// Makes the checksum right again.
fn seal(sector: &mut [u8]) {
    let checksum = crc32c::crc32c(&sector[..SECTOR - 4]).to_le_bytes();
    sector[SECTOR - 4..].copy_from_slice(&checksum);
}
