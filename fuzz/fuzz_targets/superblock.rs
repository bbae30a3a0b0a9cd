//! Whatever bytes lie where superblocks are expected: they are refused, or describe an array that can be.
//!
//! The input is cut into members of two copies each. Checksums are made right, or nothing behind them would
//! ever be reached.

#![no_main]

use levelhead_array::quorum::{Copy, Found, quorum};
use levelhead_array::superblock::Superblock;
use levelhead_array::Layout;
use levelhead_units::Sectors;
use libfuzzer_sys::fuzz_target;

/// Bytes of a superblock, of which the last four are the checksum.
const SECTOR: usize = 4096;

fn copy(bytes: &[u8]) -> Copy {
    let mut sector = [0; SECTOR];
    let len = bytes.len().min(SECTOR - 4);
    sector[..len].copy_from_slice(&bytes[..len]);
    let checksum = crc32c::crc32c(&sector[..SECTOR - 4]);
    sector[SECTOR - 4..].copy_from_slice(&checksum.to_le_bytes());
    let decoded = Superblock::decode(&sector);
    if let Ok(superblock) = &decoded {
        let again = Superblock::decode(&superblock.encode());
        assert_eq!(again.as_ref(), Ok(superblock));
    }
    Copy::Read(Box::new(decoded))
}

fuzz_target!(|bytes: &[u8]| {
    let found: Vec<Found> = bytes
        .chunks(2 * SECTOR)
        .take(8)
        .map(|member| {
            let (first, second) = member.split_at(member.len().min(SECTOR));
            Found::new([copy(first), copy(second)], Sectors::new(1 << 41))
        })
        .collect();
    if let Ok(assembly) = quorum(&found) {
        let layout = Layout::new(assembly.book.spec, assembly.area.size());
        assert!(layout.stripes() >= assembly.trusted);
        assert!(assembly.absent.len() as usize <= assembly.book.spec.redundant());
    }
});
