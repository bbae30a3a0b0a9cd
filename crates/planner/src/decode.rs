//! How long it takes to rebuild symbols of one codeword.
//!
//! # References
//!
//! - `[LEC17]` sec. 4.1: 400 MB/s at ten erasures of a codeword of 255 symbols, software on one
//!   core of 3.3 GHz; 4 GB/s in hardware, whatever is erased.

use levelhead_units::{Bytes, Nanos, SECTOR_SIZE};

use crate::Code;

/// The time of a decoding, by code and number of erased symbols.
#[derive(Clone, Debug, PartialEq)]
pub enum DecodeTime {
    /// Decoding takes no time.
    Free,
    /// Work grows with codeword times erasures: the bytes a second that pass one row of the matrix.
    /// `[LEC17]`'s software does 4 GB/s by this measure (400 MB/s of codeword at ten erasures).
    PerRow(Bytes),
    /// The bytes of codeword a second, which do not depend on the number of erasures: `[LEC17]`'s hardware.
    PerCodeword(Bytes),
    /// Measured: erased symbols and the time of one codeword of the code in question, ascending.
    /// Between two entries the time is interpolated; beyond the last it grows in proportion.
    Table(Vec<(u64, Nanos)>),
}

impl DecodeTime {
    /// `[LEC17]`'s software, as 400 MB/s at ten erasures.
    pub const PAPER_SOFTWARE: Self = Self::PerRow(Bytes::new(4_000_000_000));

    /// The time to rebuild `erased` symbols of one sector each.
    pub fn of(&self, code: Code, erased: u64) -> Nanos {
        let bytes = (code.length() * SECTOR_SIZE as u64) as f64;
        match self {
            _ if erased == 0 => Nanos::ZERO,
            Self::Free => Nanos::ZERO,
            Self::PerRow(rate) => {
                Nanos::from_secs_f64_round(bytes * erased as f64 / rate.get() as f64)
            }
            Self::PerCodeword(rate) => Nanos::from_secs_f64_round(bytes / rate.get() as f64),
            Self::Table(table) => interpolated(table, erased),
        }
    }
}

fn interpolated(table: &[(u64, Nanos)], erased: u64) -> Nanos {
    let after = table.partition_point(|&(at, _)| at < erased);
    let (low, low_time) = after.checked_sub(1).map_or((0, Nanos::ZERO), |before| table[before]);
    let per_symbol = match table.get(after) {
        Some(&(high, high_time)) => {
            (high_time.get() as f64 - low_time.get() as f64) / (high - low) as f64
        }
        None if low > 0 => low_time.get() as f64 / low as f64,
        None => 0.0,
    };
    Nanos::new((low_time.get() as f64 + per_symbol * (erased - low) as f64).max(0.0).round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_software_decodes_a_short_codeword_in_2_6_ms_at_ten_erasures() {
        let code = Code { data: 245, redundant: 10 };
        let time = DecodeTime::PAPER_SOFTWARE.of(code, 10);
        assert_eq!(time, Nanos::new(2_611_200));
        assert_eq!(DecodeTime::PAPER_SOFTWARE.of(code, 0), Nanos::ZERO);
    }

    #[test]
    fn a_table_is_met_at_its_entries_and_grows_beyond_them() {
        let us = |us: u64| Nanos::new(us * 1000);
        let table = DecodeTime::Table(vec![(1, us(10)), (4, us(40)), (8, us(60))]);
        let code = Code { data: 250, redundant: 20 };
        for (erased, want) in [(0, 0), (1, 10), (2, 20), (4, 40), (6, 50), (8, 60), (16, 120)] {
            assert_eq!(table.of(code, erased), us(want), "{erased}");
        }
        assert_eq!(DecodeTime::Table(Vec::new()).of(code, 3), Nanos::ZERO);
    }
}
