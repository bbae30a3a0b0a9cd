//! The checksum of a sector of a file: it tells what is damaged, stale or of another place.

use levelhead_units::Lba;

/// CRC-32C of the filesystem's first 8 bytes of identity, the sector's place and its bytes; never 0, which stands for a sector that
/// was not written.
pub fn sum_of(filesystem: u64, lba: Lba, bytes: &[u8]) -> u32 {
    let seed = crc32c::crc32c(&filesystem.to_le_bytes());
    let seed = crc32c::crc32c_append(seed, &lba.get().to_le_bytes());
    crc32c::crc32c_append(seed, bytes).max(1)
}
