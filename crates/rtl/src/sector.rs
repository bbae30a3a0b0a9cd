//! The text of the module `sector` for one code.

use std::error::Error;
use std::fmt;

use levelhead_erasure::{Code, Field};

/// The most rows that a count of 8 bits has room for.
const ROWS_MAX: usize = 255;

/// A file of an engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Its name, without a folder: the module's, with `.sv`.
    pub name: &'static str,
    /// What is in it.
    pub text: String,
}

/// A code that no engine is made for: one without redundant symbols, or with more than 255.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnfitCode {
    /// How many redundant symbols it has.
    pub redundant: usize,
}

impl fmt::Display for UnfitCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an engine has 1 to {ROWS_MAX} redundant symbols, not {}", self.redundant)
    }
}

impl Error for UnfitCode {}

/// The modules of the engine of `code`: `row_ram`, `lanes` and, on top, `sector`, whose parameter
/// `BEATS_LOG` (at least 4) is the logarithm of a sector's size in 16 bytes.
///
/// # Errors
///
/// If the code has no redundant symbols, or more than 255.
pub fn sector(code: &Code) -> Result<Vec<File>, UnfitCode> {
    let redundant = code.redundant();
    if !(1..=ROWS_MAX).contains(&redundant) {
        return Err(UnfitCode { redundant });
    }
    let tower = u8::from(code.field() == Field::Tower);
    let top = include_str!("sector.sv")
        .replace("@ROWS@", &redundant.to_string())
        .replace("@TOWER@", &tower.to_string())
        .replace("@TIMES_L@", &times_l());
    Ok(vec![
        File { name: "row_ram.sv", text: include_str!("row_ram.sv").into() },
        File { name: "lanes.sv", text: include_str!("lanes.sv").into() },
        File { name: "sector.sv", text: top },
    ])
}

/// `L d` as xors of the bits of `d`, with `L = 0x20` of `docs/formats/codeword.md`.
fn times_l() -> String {
    let product_of_bit = |bit: usize| {
        (0..5).fold(1_u8 << bit, |element, _| {
            (element << 1) ^ (if element & 0x80 == 0 { 0 } else { 0x1d })
        })
    };
    let bits: Vec<String> = (0..8)
        .rev()
        .map(|of_product| {
            let terms = (0..8).filter(|&bit| product_of_bit(bit) >> of_product & 1 == 1);
            terms.map(|bit| format!("d[{bit}]")).collect::<Vec<_>>().join(" ^ ")
        })
        .collect();
    format!("{{{}}}", bits.join(", "))
}
