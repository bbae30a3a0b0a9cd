//! The sizes of the code, and a block of its bits.

/// Bits of a block: rows and columns of a circulant.
pub const BLOCK_BITS: usize = 512;

/// Circulants above one another.
pub const ROWS: usize = 7;

/// Circulants side by side.
pub const COLUMNS: usize = 71;

/// The first columns, which are the sector's bits.
pub const DATA_COLUMNS: usize = COLUMNS - ROWS;

/// Bits of a codeword.
pub const CODE_BITS: usize = COLUMNS * BLOCK_BITS;

/// Bits of a sector.
pub const DATA_BITS: usize = DATA_COLUMNS * BLOCK_BITS;

/// Bytes of a sector.
pub const SECTOR_BYTES: usize = DATA_BITS / 8;

const _: () = assert!(SECTOR_BYTES == 4_096);

/// The bits of one column: bit `i` is bit `i % 64` of word `i / 64`.
pub type Block = [u64; BLOCK_BITS / 64];
