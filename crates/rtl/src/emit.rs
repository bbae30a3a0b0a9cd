//! What is written for a code: modules, a testbench with its tables, a script for yosys, a README.

use std::error::Error;
use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use levelhead_erasure::Code;
use levelhead_stats::Streams;

use crate::polynomial::Symbols;
use crate::{gates, polynomial, readme, sector, vectors};

/// The sizes of a sector that a testbench plays, in bytes; each is a power of two.
pub const SECTOR_SIZES: RangeInclusive<usize> = 256..=65_536;

/// The most rows that a count of 8 bits has room for.
const REDUNDANT_MAX: usize = 255;

/// Which engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Ours: whole sectors one after the other, encoding and decoding.
    Sector,
    /// The paper's encoder: the symbols of one codeword one after the other.
    Polynomial,
}

impl Kind {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Sector, Self::Polynomial];

    /// The name of the kind and of its module on top.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sector => "sector",
            Self::Polynomial => "polynomial",
        }
    }

    /// Cycles from the last beat of a group that comes in to the first that leaves, without stalls.
    pub fn latency(self) -> u64 {
        match self {
            Self::Sector => 2,
            Self::Polynomial => 1,
        }
    }

    /// Bits of a beat that comes in.
    pub fn beat_bits(self, code: &Code) -> usize {
        match self {
            Self::Sector => 8 * vectors::BEAT_SIZE,
            Self::Polynomial => Symbols::of(code).beat_bits(),
        }
    }

    /// Which share of the beats is data: the first beat of a polynomial codeword may be filled up.
    pub fn filled(self, code: &Code) -> f64 {
        match self {
            Self::Sector => 1.0,
            Self::Polynomial => {
                let lanes = Symbols::of(code).lanes;
                code.data() as f64 / code.data().next_multiple_of(lanes) as f64
            }
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A name that no kind has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownKind {
    name: String,
}

impl fmt::Display for UnknownKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}' is no kind of engine: expected sector or polynomial", self.name)
    }
}

impl Error for UnknownKind {}

impl FromStr for Kind {
    type Err = UnknownKind;

    fn from_str(name: &str) -> Result<Self, UnknownKind> {
        let unknown = || UnknownKind { name: name.to_owned() };
        Self::ALL.into_iter().find(|kind| kind.name() == name).ok_or_else(unknown)
    }
}

/// A file of an engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Its name, without a folder. A module's file is the module's name with `.sv`.
    pub name: &'static str,
    /// What is in it.
    pub text: String,
}

/// A code that no engine of a kind is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnfitCode {
    /// Of which kind.
    pub kind: Kind,
    /// How many redundant symbols it has.
    pub redundant: usize,
    /// The most that an engine of the kind has.
    pub redundant_max: usize,
}

impl fmt::Display for UnfitCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, redundant, redundant_max } = self;
        write!(
            f,
            "an engine of kind {kind} has 1 to {redundant_max} redundant symbols, not {redundant}"
        )
    }
}

impl Error for UnfitCode {}

/// What the testbench plays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Play {
    /// One encoding, then this many patterns of each number of erasures; of the polynomial encoder, ten
    /// codewords for each pattern.
    Patterns(usize),
    /// Groups in a row that keep the engine busy: this many, encodings and decodings of as many erasures as
    /// the code repairs in turn; of the polynomial encoder, codewords.
    Row(usize),
}

/// What to write.
#[derive(Clone, Copy, Debug)]
pub struct Emit<'a> {
    /// The code of the engine.
    pub code: &'a Code,
    /// Which engine.
    pub kind: Kind,
    /// Bytes of a sector that the testbench plays: one of [`SECTOR_SIZES`], a power of two. The polynomial
    /// encoder has no sectors.
    pub sector_size: usize,
    /// What the testbench plays.
    pub play: Play,
    /// Where its bytes and erasures come from.
    pub seed: u64,
}

/// The modules of an engine: those that others use first, the one on top last.
///
/// `sector` has the parameter `BEATS_LOG`, at least 4: the logarithm of a sector's size in 16 bytes.
///
/// # Errors
///
/// A code with no redundant symbols, or with more than an engine of the kind has rows for.
pub fn modules(code: &Code, kind: Kind) -> Result<Vec<File>, UnfitCode> {
    let redundant_max = match kind {
        Kind::Sector => REDUNDANT_MAX,
        Kind::Polynomial => polynomial::REDUNDANT_MAX,
    };
    let redundant = code.redundant();
    if !(1..=redundant_max).contains(&redundant) {
        return Err(UnfitCode { kind, redundant, redundant_max });
    }
    Ok(match kind {
        Kind::Sector => sector::modules(code),
        Kind::Polynomial => polynomial::modules(code),
    })
}

/// All files of an engine: modules, testbench and tables, `synth.ys`, `README.md`.
///
/// # Errors
///
/// As [`modules`].
///
/// # Panics
///
/// If the sector's size is none of [`SECTOR_SIZES`], or not a power of two.
pub fn emit(ask: &Emit<'_>) -> Result<Vec<File>, UnfitCode> {
    let Emit { code, kind, sector_size, play, seed } = *ask;
    assert!(SECTOR_SIZES.contains(&sector_size) && sector_size.is_power_of_two());
    let mut files = modules(code, kind)?;
    let names: Vec<&str> = files.iter().map(|module| module.name).collect();
    let script = gates::script(kind, &names);
    let mut rng = Streams::new(seed).stream("rtl");
    files.extend(match kind {
        Kind::Sector => {
            let groups = vectors::groups(code, sector_size, play, &mut rng);
            let groups = groups.expect("sectors are of a size that every code takes");
            vectors::files(code, sector_size, &groups)
        }
        Kind::Polynomial => polynomial::vectors(code, play, &mut rng),
    });
    files.push(File { name: "synth.ys", text: script });
    let readme = readme::of(ask, &files);
    files.push(File { name: "README.md", text: readme });
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(code: &Code, kind: Kind) -> Emit<'_> {
        Emit { code, kind, sector_size: 256, play: Play::Patterns(1), seed: 7 }
    }

    #[test]
    fn same_code_kind_and_seed_give_the_same_text_and_another_seed_another_table() {
        let code = Code::new(20, 3).expect("it exists");
        for kind in Kind::ALL {
            let ask = ask(&code, kind);
            let files = emit(&ask).expect("the code fits");
            assert_eq!(emit(&ask), Ok(files.clone()));
            let other = emit(&Emit { seed: 8, ..ask }).expect("the code fits");
            let differ = |name: &str| {
                let of = |files: &[File]| files.iter().find(|file| file.name == name).cloned();
                of(&files) != of(&other)
            };
            assert!(differ("in.hex") && differ("out.hex") && !differ("testbench.sv"), "{kind}");
            let left = files.iter().find(|file| file.text.contains('@'));
            let left = left.filter(|file| file.text.replace("always @(", "").contains('@'));
            assert_eq!(left, None, "a place that was not filled");
        }
    }

    #[test]
    fn codes_without_an_engine_are_refused() {
        let none = Code::new(20, 0).expect("it exists");
        let many = Code::new(500, 256).expect("it exists");
        for kind in Kind::ALL {
            for code in [&none, &many] {
                let problem = emit(&ask(code, kind)).expect_err("no engine has this many rows");
                assert_eq!(problem.redundant, code.redundant());
                assert!(problem.to_string().contains("redundant symbols, not"), "{problem}");
            }
        }
        assert!("decoder".parse::<Kind>().is_err());
    }
}
