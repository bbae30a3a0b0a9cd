//! What is written for a code: modules, a testbench with its tables, a script for yosys, a README.

use levelhead_erasure::Code;
use levelhead_stats::Streams;

use crate::engine::{Emit, File, Kind, SECTOR_SIZES, UnfitCode};
use crate::polynomial::Symbols;
use crate::{gates, polynomial, readme, sector, vectors};

/// The most rows that a count of 8 bits has room for.
const REDUNDANT_MAX: usize = 255;

/// The modules of an engine: those that others use first, the one on top last.
///
/// `sector` has the parameter `BEATS_LOG`, at least 4: the logarithm of a sector's size in 16 bytes.
///
/// # Errors
///
/// A code with no redundant symbols, or with more than an engine of the kind has rows for; a polynomial code
/// of more than 1,023 symbols.
pub fn modules(code: &Code, kind: Kind) -> Result<Vec<File>, UnfitCode> {
    let redundant_max = match kind {
        Kind::Sector => REDUNDANT_MAX,
        Kind::Polynomial => polynomial::REDUNDANT_MAX,
    };
    let redundant = code.redundant();
    if !(1..=redundant_max).contains(&redundant) {
        return Err(UnfitCode::Redundant { kind, redundant, redundant_max });
    }
    let (length, length_max) = (code.len(), polynomial::LENGTH_MAX);
    if kind == Kind::Polynomial && length > length_max {
        return Err(UnfitCode::Length { length, length_max });
    }
    Ok(match kind {
        Kind::Sector => sector::modules(code),
        Kind::Polynomial => polynomial::modules(code),
    })
}

/// Bytes of data in a beat that comes in, on average: the first beat of a polynomial codeword may be filled up.
pub fn bytes_of_beat(code: &Code, kind: Kind) -> f64 {
    match kind {
        Kind::Sector => vectors::BEAT_SIZE as f64,
        Kind::Polynomial => {
            let Symbols { bits, lanes, .. } = Symbols::of(code);
            let beats = code.data().div_ceil(lanes);
            (code.data() * bits) as f64 / 8.0 / beats as f64
        }
    }
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
    let chance = Streams::new(seed).stream("stalls").below(u64::from(u32::MAX)) as u32 + 1;
    files.extend(match kind {
        Kind::Sector => {
            let groups = vectors::groups(code, sector_size, play, &mut rng);
            let groups = groups.expect("sectors are of a size that every code takes");
            vectors::files(code, sector_size, &groups, chance)
        }
        Kind::Polynomial => polynomial::vectors(code, play, &mut rng, chance),
    });
    files.push(File { name: "synth.ys", text: script });
    let readme = readme::of(ask, &files);
    files.push(File { name: "README.md", text: readme });
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Play;

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
            assert!(
                !differ("synth.ys")
                    && differ("in.hex")
                    && differ("out.hex")
                    && differ("testbench.sv"),
                "{kind}"
            );
            let has_place = |file: &&File| {
                let mut parts = file.text.split('@').skip(1);
                parts.any(|part| part.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_'))
            };
            let left = files.iter().find(has_place).map(|file| file.name);
            assert_eq!(left, None, "a place that was not filled");
        }
    }

    #[test]
    fn codes_without_an_engine_are_refused() {
        let code = |data, redundant| Code::new(data, redundant).expect("it exists");
        for kind in Kind::ALL {
            for code in [code(20, 0), code(500, 256)] {
                let problem = emit(&ask(&code, kind)).expect_err("no engine has this many rows");
                assert!(problem.to_string().contains("redundant symbols, not"), "{problem}");
            }
        }
        let long = code(1020, 4);
        assert!(modules(&long, Kind::Sector).is_ok());
        let problem = modules(&long, Kind::Polynomial).expect_err("the field has 1,023 powers");
        assert_eq!(problem, UnfitCode::Length { length: 1024, length_max: 1023 });
        assert!(modules(&code(1019, 4), Kind::Polynomial).is_ok());
        assert!("decoder".parse::<Kind>().is_err());
    }
}
