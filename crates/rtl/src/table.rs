//! The table beside `[LEC17]`, table 2: the paper's figures, rows of ours, and the ones that are kept.

use std::error::Error;
use std::fmt;

use levelhead_erasure::Code;

use crate::engine::Kind;
use crate::gates::Gates;

/// What the paper says of a code, in its own unit, which it does not define.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Published {
    /// Redundant symbols.
    pub redundant: usize,
    /// Data symbols.
    pub data: usize,
    /// Gates of its encoder.
    pub encoder: u64,
    /// Gates of its decoder.
    pub decoder: u64,
}

const fn published(redundant: usize, data: usize, encoder: u64, decoder: u64) -> Published {
    Published { redundant, data, encoder: 1000 * encoder, decoder: 1000 * decoder }
}

/// `[LEC17]`, table 2.
pub const PAPER: [Published; 8] = [
    published(3, 252, 11, 156),
    published(4, 251, 11, 161),
    published(5, 250, 17, 185),
    published(9, 246, 28, 232),
    published(4, 1019, 16, 634),
    published(7, 1016, 31, 699),
    published(9, 1014, 39, 732),
    published(19, 1004, 78, 894),
];

impl Published {
    /// The code.
    pub fn code(&self) -> Code {
        Code::new(self.data, self.redundant).expect("the codes of the paper exist")
    }
}

/// One engine: what it is made of, what it does in a cycle, and what the paper has.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    /// The code, and the paper's figures.
    pub published: Published,
    /// Which engine.
    pub kind: Kind,
    /// What yosys counts.
    pub gates: Gates,
    /// Bits of RAM, for sectors of 4,096 bytes.
    pub ram_bits: u64,
    /// Bytes of data that it takes in a cycle, over ten groups or codewords in a row without stalls.
    pub bytes_per_cycle: f64,
}

/// The sector that bits of RAM are counted for, in bytes.
const SECTOR: u64 = 4096;

impl Row {
    /// The bits of RAM of an engine: two banks of one sector for each row.
    pub fn ram_bits(kind: Kind, code: &Code) -> u64 {
        match kind {
            Kind::Sector => 2 * 8 * SECTOR * code.redundant() as u64,
            Kind::Polynomial => 0,
        }
    }

    /// How a row is named: `sector 9,246`.
    pub fn name(&self) -> String {
        format!("{} {},{}", self.kind, self.published.redundant, self.published.data)
    }
}

/// How far two figures of bytes per cycle may be apart that are the same, as one is kept with four digits.
pub const BEAT_ROUNDING: f64 = 1e-3;

/// The file of kept rows, below this crate. `cargo xtask rtl --table --keep` writes it.
pub const COMMITTED: &str = "src/text/table.csv";

const HEADER: &str = "kind,redundant,data,xor,and,flip_flops,rams,depth,bytes_per_cycle";

/// A line of a table that is not a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreadableTable {
    line: String,
}

impl fmt::Display for UnreadableTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}' is not a row of {HEADER}", self.line)
    }
}

impl Error for UnreadableTable {}

impl Row {
    /// Rows as the text of a table.
    pub fn write(rows: &[Self]) -> String {
        let mut text = format!("{HEADER}\n");
        for row in rows {
            let Published { redundant, data, .. } = row.published;
            let Gates { xor, and, flip_flops, rams, depth } = row.gates;
            let (kind, bytes) = (row.kind, row.bytes_per_cycle);
            text.push_str(&format!(
                "{kind},{redundant},{data},{xor},{and},{flip_flops},{rams},{depth},{bytes:.4}\n"
            ));
        }
        text
    }

    /// Rows of the text of a table.
    ///
    /// # Errors
    ///
    /// A line that is not a row, or is one of a code that is not in the paper.
    pub fn read(text: &str) -> Result<Vec<Self>, UnreadableTable> {
        text.lines()
            .skip(1)
            .map(|line| Self::of_line(line).ok_or(UnreadableTable { line: line.into() }))
            .collect()
    }

    fn of_line(line: &str) -> Option<Self> {
        let (kind, figures) = line.split_once(',')?;
        let (figures, bytes) = figures.rsplit_once(',')?;
        let figures: Vec<u64> =
            figures.split(',').map(str::parse).collect::<Result<_, _>>().ok()?;
        let &[redundant, data, xor, and, flip_flops, rams, depth] = figures.as_slice() else {
            return None;
        };
        let is_this = |of: &&Published| (of.redundant as u64, of.data as u64) == (redundant, data);
        let published = *PAPER.iter().find(is_this)?;
        let kind = kind.parse().ok()?;
        Some(Self {
            published,
            kind,
            gates: Gates { xor, and, flip_flops, rams, depth },
            ram_bits: Self::ram_bits(kind, &published.code()),
            bytes_per_cycle: bytes.parse().ok()?,
        })
    }
}

/// The rows that are kept: every code of [`PAPER`] as each kind, as yosys 0.23 counted them.
///
/// # Panics
///
/// Never: a test reads them.
pub fn committed() -> Vec<Row> {
    Row::read(include_str!("text/table.csv")).expect("what is kept is a table")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_of_the_paper_is_kept_as_each_kind_and_reads_as_it_is_written() {
        let rows = committed();
        assert_eq!(Row::write(&rows), include_str!("text/table.csv"));
        let names: Vec<Published> = rows.iter().map(|row| row.published).collect();
        assert_eq!(names, [PAPER, PAPER].concat());
        let of_kind = |kind| rows.iter().filter(|row| row.kind == kind).count();
        assert_eq!(Kind::ALL.map(of_kind), [8, 8]);
    }

    /// The sector engine: a tenth of the paper's encoder and decoder, and no more than its encoder and 3,000.
    /// The polynomial encoder: a sixth of the paper's. Both: 12 gates between registers, 4 GB/s at 250 MHz but
    /// for the filled beat of a codeword.
    #[test]
    fn engines_are_small_beside_the_papers_and_as_fast() {
        for row in committed() {
            let Published { encoder, decoder, .. } = row.published;
            let equivalent = row.gates.xor_equivalent();
            let (most, slowest) = match row.kind {
                Kind::Sector => ((encoder + decoder).div_euclid(10).min(encoder + 3000), 15.9),
                Kind::Polynomial => (encoder / 6, 15.3),
            };
            assert!(equivalent <= most as f64, "{}: {equivalent} of {most}", row.name());
            assert!(row.gates.depth <= 12, "{}", row.name());
            assert!(row.bytes_per_cycle >= slowest, "{}", row.name());
        }
    }

    #[test]
    fn lines_that_are_no_rows_are_refused() {
        let text = include_str!("text/table.csv");
        for (from, to) in
            [("9,246", "9,247"), ("sector", "vector"), (",16.0", ",x"), ("sector,3", "sector")]
        {
            let broken = text.replacen(from, to, 1);
            assert_ne!(broken, text);
            assert!(Row::read(&broken).is_err(), "{to}");
        }
    }
}
