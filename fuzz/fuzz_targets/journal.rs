//! Whatever bytes a ring of a journal holds: a header is refused, or says what can be and is the same when it is written
//! again; what is found in a piece lies there.
//!
//! Checksums, and the names of array, member and place, are made right, or nothing behind them would ever be reached.

#![no_main]

use levelhead_array::journal::record::{Record, RingName, examine};
use levelhead_array::superblock::Uuid;
use levelhead_block::SectorSet;
use levelhead_units::Lba;
use libfuzzer_sys::fuzz_target;

/// Bytes of a sector, of which the last four of a header are its checksum.
const SECTOR: usize = 4096;

const RING: RingName = RingName { array: Uuid([0xA0; 16]), member: Uuid([0xB2; 16]) };

/// The first sector of the piece.
const FIRST: u64 = 100_000;

fuzz_target!(|bytes: &[u8]| {
    let mut piece = vec![0; bytes.len().div_ceil(SECTOR).min(8) * SECTOR];
    for (at, (sector, given)) in piece.chunks_mut(SECTOR).zip(bytes.chunks(SECTOR)).enumerate() {
        sector[..given.len()].copy_from_slice(given);
        if given[0] % 2 == 0 {
            sector[..16].copy_from_slice(b"levelhead redo\0\0");
            sector[32..48].copy_from_slice(&RING.array.0);
            sector[48..64].copy_from_slice(&RING.member.0);
            sector[64..72].copy_from_slice(&(FIRST + at as u64).to_le_bytes());
            let checksum = crc32c::crc32c(&sector[..SECTOR - 4]);
            sector[SECTOR - 4..].copy_from_slice(&checksum.to_le_bytes());
        }
        if let Ok((record, sums)) = Record::decode(sector) {
            assert_eq!(record.encode(&sums)[..], *sector);
        }
    }
    let end = FIRST + (piece.len() / SECTOR) as u64;
    for found in examine(&piece, Lba::new(FIRST), &SectorSet::EMPTY, RING) {
        assert!((FIRST..end).contains(&found.record.place.get()));
        let behind = found.record.place.get() + 1 + found.record.payload().get();
        assert!(!found.is_whole || behind <= end, "a payload that is not there is not whole");
    }
});
