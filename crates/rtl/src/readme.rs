//! The README of an engine: ports, timing, and how its files are used.

use crate::engine::{Emit, File, Kind, Play};
use crate::polynomial::Symbols;

/// The README of what was asked for, which lies beside `files`.
pub(crate) fn of(ask: &Emit<'_>, files: &[File]) -> String {
    let Emit { code, kind, sector_size, play, seed } = *ask;
    let (redundant, data) = (code.redundant(), code.data());
    let template = match kind {
        Kind::Sector => include_str!("text/sector.md"),
        Kind::Polynomial => include_str!("text/polynomial.md"),
    };
    let Symbols { bits, lanes, .. } = Symbols::of(code);
    let modules: Vec<&str> =
        files.iter().map(|file| file.name).filter(|name| name.ends_with(".sv")).collect();
    let command = match play {
        Play::Patterns(count) => format!(
            "levelhead-lab rtl emit --code {redundant},{data} --kind {kind} --sector-size {sector_size} \
             --patterns {count} --seed {seed} -o DIR"
        ),
        Play::Row(count) => format!("a run of {count} groups in a row of seed {seed}"),
    };
    let tower = code.len() > 256;
    let beats = data.div_ceil(lanes);
    template
        .replace("@COMMAND@", &command)
        .replace("@SOURCES@", &modules.join(" "))
        .replace("@REDUNDANT@", &redundant.to_string())
        .replace("@DATA@", &data.to_string())
        .replace("@SYMBOL@", if tower { "16" } else { "8" })
        .replace("@FIELD@", if tower { "the tower field of 2^16 elements" } else { "GF(2^8)" })
        .replace("@BITS@", &bits.to_string())
        .replace("@LANES@", &lanes.to_string())
        .replace("@BEATS@", &beats.to_string())
        .replace("@EMPTY@", &(beats * lanes - data).to_string())
        .replace("@BEAT_BITS@", &(bits * lanes).to_string())
        .replace("@OUT_BITS@", &(bits * redundant).to_string())
        .replace(
            "@POLYNOMIAL@",
            if bits == 8 { "x^8 + x^4 + x^3 + x^2 + 1" } else { "x^10 + x^3 + 1" },
        )
}
