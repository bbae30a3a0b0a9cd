//! How much space local erasure coding takes, over files as they are.
//!
//! # References
//!
//! - `[LEC17]` sec. 3.1, Eq. (2); sec. 4.4, Fig. 10.

use std::collections::BTreeMap;

use levelhead_units::{Bytes, SECTOR_SIZE, Sectors};

use crate::Code;

/// The most files that a table may list: their number is counted in 64 bits.
const FILES_MAX: u64 = 1 << 60;

/// How many files there are of each size.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileSizes {
    counts: BTreeMap<Sectors, u64>,
    empty: u64,
}

impl FileSizes {
    /// No files.
    pub fn new() -> Self {
        Self::default()
    }

    /// `count` more files of this size. Empty files have no sectors and need no code.
    pub fn add(&mut self, size: Bytes, count: u64) {
        match size.sectors_ceil() {
            Sectors::ZERO => self.empty += count,
            sectors => *self.counts.entry(sectors).or_default() += count,
        }
    }

    /// The files that a table lists, one line each or `SIZE,COUNT`, where sizes are bytes or written
    /// as `8KiB`. Blank lines, lines that open with `#` and a head (`size`, `size,count`) in the first
    /// line are skipped.
    ///
    /// # Errors
    ///
    /// A sentence that names the line.
    pub fn from_csv(text: &str) -> Result<Self, String> {
        let mut sizes = Self::new();
        let (mut total, mut files) = (0_u64, 0_u64);
        for (at, line) in text.lines().enumerate() {
            let line = line.trim();
            let is_head = at == 0 && line.to_ascii_lowercase().starts_with("size");
            if line.is_empty() || line.starts_with('#') || is_head {
                continue;
            }
            let wrong = |what: &str| format!("line {}: '{line}': {what}", at + 1);
            let (size, count) = line.split_once(',').unwrap_or((line, "1"));
            let size: Bytes = size.trim().parse().map_err(|error| wrong(&format!("{error}")))?;
            let count = count.trim().parse().map_err(|_| wrong("expected SIZE,COUNT"))?;
            let bytes = size.get().checked_mul(count);
            total = bytes
                .and_then(|bytes| total.checked_add(bytes))
                .filter(|&total| total <= 1 << 60)
                .ok_or_else(|| wrong("more than 1 EiB in all"))?;
            files = files
                .checked_add(count)
                .filter(|&files| files <= FILES_MAX)
                .ok_or_else(|| wrong("more than 2^60 files in all"))?;
            sizes.add(size, count);
        }
        Ok(sizes)
    }

    /// Files with and without data.
    pub fn files(&self) -> u64 {
        self.counts.values().sum::<u64>() + self.empty
    }

    /// Files without data.
    pub fn empty(&self) -> u64 {
        self.empty
    }

    /// Sectors of data.
    pub fn sectors(&self) -> u128 {
        self.iter().map(|(sectors, count)| u128::from(sectors.get()) * u128::from(count)).sum()
    }

    /// Sizes and how many files have them, ascending.
    pub fn iter(&self) -> impl Iterator<Item = (Sectors, u64)> + '_ {
        self.counts.iter().map(|(&sectors, &count)| (sectors, count))
    }
}

/// Redundant sectors of a file: every started group has all of them.
///
/// ```text
///   ceil(x / k) m                                              [LEC17] Eq. (2)
/// ```
///
/// # Panics
///
/// If the code has no data.
pub fn redundant_sectors(file: Sectors, code: Code) -> u128 {
    // A sparse file of 8 EiB under a code that is almost all redundancy has more than 64 bits hold.
    u128::from(file.get().div_ceil(code.data)) * u128::from(code.redundant)
}

/// Redundant sectors for each sector of data, over all files; 0 if there is no data.
///
/// ```text
///   r_avg = E[ceil(x/k) m] / E[x]                              [LEC17] Eq. (2)
/// ```
///
/// # Panics
///
/// If the code has no data.
pub fn overhead(files: &FileSizes, code: Code) -> f64 {
    let redundant: u128 = files
        .iter()
        .map(|(sectors, count)| redundant_sectors(sectors, code) * u128::from(count))
        .sum();
    let sectors = files.sectors();
    if sectors == 0 { 0.0 } else { redundant as f64 / sectors as f64 }
}

/// A share of all bytes in files of certain sizes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Class {
    /// The smallest size.
    pub from: Bytes,
    /// The largest size.
    pub to: Bytes,
    /// The share of bytes, 0 to 1.
    pub share: f64,
}

/// An overhead of which only the classes of the sizes are known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range {
    /// If all sizes were the best of their class.
    pub low: f64,
    /// If a class's bytes are spread evenly over its sizes.
    pub even: f64,
    /// If all sizes were the worst of their class.
    pub high: f64,
}

/// What `[LEC17]` says about the files of `pagerank`: over 95 % of the bytes in files of 100 kB to
/// 1 MB, another 1.4 % in files below 10 kB. The remaining 3.6 % are put between the two.
pub const PAGERANK: [Class; 3] = [
    Class { from: Bytes::new(1), to: Bytes::new(10_000), share: 0.014 },
    Class { from: Bytes::new(10_000), to: Bytes::new(100_000), share: 0.036 },
    Class { from: Bytes::new(100_000), to: Bytes::new(1_000_000), share: 0.95 },
];

/// What `[LEC17]` says about the files of `hivebench`: over 99 % of the bytes in files above 100 MB,
/// here to 1 GB. The remaining 1 % is put into files of 1 to 100 MB.
pub const HIVEBENCH: [Class; 2] = [
    Class { from: Bytes::new(1_000_000), to: Bytes::new(100_000_000), share: 0.01 },
    Class { from: Bytes::new(100_000_000), to: Bytes::new(1_000_000_000), share: 0.99 },
];

/// [`overhead`] of files of which only classes are known.
///
/// # Panics
///
/// If a class is empty or upside down, or the code has no data.
pub fn overhead_of_classes(classes: &[Class], code: Code) -> Range {
    let mut range = Range { low: 0.0, even: 0.0, high: 0.0 };
    for class in classes {
        let (from, to) = (class.from.sectors_ceil().get(), class.to.sectors_ceil().get());
        assert!(0 < from && from <= to, "{class:?}");
        let (mut low, mut sum, mut high) = (f64::INFINITY, 0.0, 0.0_f64);
        for sectors in from..=to {
            let redundant = redundant_sectors(Sectors::new(sectors), code);
            let of_file = redundant as f64 / sectors as f64;
            sum += of_file;
            low = low.min(of_file);
            high = high.max(of_file);
        }
        range.low += class.share * low;
        range.even += class.share * sum / (to - from + 1) as f64;
        range.high += class.share * high;
    }
    range
}

const _: () = assert!(SECTOR_SIZE == 4096, "the papers' sector");

#[cfg(test)]
mod tests {
    use super::*;

    const CODE: Code = Code { data: 1014, redundant: 9 };

    fn sizes(sizes: &[(u64, u64)]) -> FileSizes {
        let mut files = FileSizes::new();
        for &(size, count) in sizes {
            files.add(Bytes::new(size), count);
        }
        files
    }

    #[test]
    fn every_started_group_is_charged_in_full() {
        for (files, want) in [
            (sizes(&[(1, 1)]), 9.0),
            (sizes(&[(1014 * 4096, 1)]), 9.0 / 1014.0),
            (sizes(&[(1015 * 4096, 1)]), 18.0 / 1015.0),
            (sizes(&[(4096, 2), (3 * 4096, 1), (0, 7)]), 27.0 / 5.0),
            (sizes(&[(0, 3)]), 0.0),
        ] {
            assert!((overhead(&files, CODE) - want).abs() < 1e-15, "{files:?}");
        }
    }

    /// `[LEC17]` sec. 4.4, at 1e-3 and length 1023: above 12 % and below 2 %.
    #[test]
    fn reproduces_the_two_overheads_that_lec17_states() {
        let pagerank = overhead_of_classes(&PAGERANK, CODE);
        assert!(pagerank.low < 0.12 && pagerank.even > 0.12, "{pagerank:?}");
        let hivebench = overhead_of_classes(&HIVEBENCH, CODE);
        assert!(hivebench.even < 0.02 && hivebench.high < 0.02, "{hivebench:?}");
    }

    #[test]
    fn the_longest_file_under_the_weakest_code_is_a_number() {
        let files = sizes(&[(u64::MAX / 2, 1)]);
        let share = overhead(&files, Code { data: 1, redundant: 65_535 });
        assert!((share - 65_535.0).abs() < 1e-9, "{share}");
    }

    #[test]
    fn tables_of_sizes_are_read() {
        let files =
            FileSizes::from_csv("size,count\n# a comment\n8KiB,3\n\n100\n 0 , 2\n").unwrap();
        assert_eq!(files, sizes(&[(8192, 3), (100, 1), (0, 2)]));
        assert_eq!((files.files(), files.empty(), files.sectors()), (6, 2, 7));
    }

    #[test]
    fn what_is_no_table_is_refused_by_line() {
        for (text, want) in [
            ("8KiB,x", "line 1: '8KiB,x': expected SIZE,COUNT"),
            ("1\nbig", "line 2: 'big': 'big' is not a size"),
            ("1TiB,999999999999", "line 1: '1TiB,999999999999': more than 1 EiB"),
            ("0,18446744073709551615", "line 1: '0,18446744073709551615': more than 2^60 files"),
            ("1,1152921504606846976\n0,1", "line 2: '0,1': more than 2^60 files"),
        ] {
            let error = FileSizes::from_csv(text).unwrap_err();
            assert!(error.starts_with(want), "{error}");
        }
    }
}
