//! Whatever bytes a ring of a journal holds: a header is refused, or says what can be and is the same when it is written
//! again; what is found in a piece lies there.
//!
//! Checksums, and the names of array, member and place, are made right, or nothing behind them would ever be reached.
//! The first byte of what is given for a sector says whether it is a header with such a name (bit 0 unset), and whether
//! the rest changes bytes of a record that could have been written (bit 1) or is its bytes.

#![no_main]

use levelhead_array::journal::record::{ChangedRun, Kind, Record, RingName, examine};
use levelhead_array::membership::MemberId;
use levelhead_array::superblock::Uuid;
use levelhead_block::SectorSet;
use levelhead_units::{DriveIdx, DriveSet, Extent, Lba, Sectors};
use libfuzzer_sys::fuzz_target;

/// Bytes of a sector, of which the last four of a header are its checksum.
const SECTOR: usize = 4096;

const MEMBER: MemberId = MemberId { uuid: Uuid([0xB2; 16]), seating: 3 };

const RING: RingName = RingName { array: Uuid([0xA0; 16]), member: MEMBER };

/// The first sector of the piece.
const FIRST: u64 = 100_000;

fuzz_target!(|bytes: &[u8]| {
    let mut piece = vec![0; bytes.len().div_ceil(SECTOR).min(8) * SECTOR];
    for (at, (sector, given)) in piece.chunks_mut(SECTOR).zip(bytes.chunks(SECTOR)).enumerate() {
        match given[0] & 2 {
            0 => sector[..given.len()].copy_from_slice(given),
            _ => sector.copy_from_slice(&changed(given, FIRST + at as u64)),
        }
        if given[0] % 2 == 0 {
            sector[..16].copy_from_slice(b"levelhead redo\0\0");
            sector[32..48].copy_from_slice(&RING.array.0);
            sector[48..64].copy_from_slice(&MEMBER.uuid.0);
            sector[64..72].copy_from_slice(&(FIRST + at as u64).to_le_bytes());
            sector[104..108].copy_from_slice(&MEMBER.seating.to_le_bytes());
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

/// The bytes of a record that could have been written, with changes of three bytes each: where, and what is there then.
fn changed(given: &[u8], place: u64) -> [u8; SECTOR] {
    let kind = [Kind::Payload, Kind::Intent, Kind::Mark][usize::from(given[0] >> 2) % 3];
    let is_here = matches!(kind, Kind::Payload);
    let run = |drive, sectors, is_here| {
        let extent = Extent::new(Lba::new(1_000), Sectors::new(sectors));
        ChangedRun { drive: DriveIdx::new(drive), extent, is_here }
    };
    let runs = vec![run(2, 1 + u64::from(given[0] >> 6), is_here), run(5, 1, false)];
    let is_mark = matches!(kind, Kind::Mark);
    let record = Record {
        ring: RING,
        place: Lba::new(place),
        kind,
        id: if is_mark { 0 } else { 1_000 },
        drive: DriveIdx::new(2),
        participants: DriveSet::from_bits(if is_mark { 0 } else { 0b10_0100 }),
        runs: if is_mark { Vec::new() } else { runs },
        committed: 900,
        retired: 800,
        dropped: if is_mark { vec![907, 909] } else { Vec::new() },
        has_gaps: is_mark,
    };
    let sums: Vec<u32> = (0..record.runs.iter().map(|run| run.extent.sectors.get()).sum())
        .map(|at: u64| at as u32)
        .collect();
    let mut bytes = record.encode(&sums);
    for change in given[1..].chunks_exact(3) {
        bytes[usize::from(u16::from_le_bytes([change[0], change[1]])) % SECTOR] = change[2];
    }
    bytes
}
