//! The script for yosys, and what its reports say: gates, flip-flops, RAM, depth.

use std::error::Error;
use std::fmt;

use crate::engine::Kind;

/// What a cell weighs, in XOR equivalents.
///
/// A XOR of two inputs is two NANDs, and a flip-flop 5.6 of them, as in common libraries of standard cells.
/// `[LEC17]` does not define its unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Weights {
    /// A XOR or XNOR of two inputs.
    pub xor: f64,
    /// Another gate of two inputs, or an inverter.
    pub and: f64,
    /// A flip-flop, with or without enable and reset.
    pub flip_flop: f64,
    /// How many NANDs are a XOR.
    pub nand2_of_xor: f64,
}

impl Weights {
    /// Those of every figure here.
    pub const ALL: Self = Self { xor: 1.0, and: 0.5, flip_flop: 2.8, nand2_of_xor: 2.0 };
}

/// What an engine is made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gates {
    /// XORs and XNORs of two inputs.
    pub xor: u64,
    /// Other gates of two inputs, and inverters.
    pub and: u64,
    /// Flip-flops.
    pub flip_flops: u64,
    /// RAMs, counted apart and without weight.
    pub rams: u64,
    /// Gates on the longest path between registers, RAMs and ports.
    pub depth: u64,
}

/// A report of yosys in which something was not found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreadableReport {
    what: String,
}

impl fmt::Display for UnreadableReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the report of yosys {}", self.what)
    }
}

impl Error for UnreadableReport {}

impl Gates {
    /// Reads what `synth.ys` leaves in `stat.txt` and `ltp.txt`.
    ///
    /// # Errors
    ///
    /// A report that is not one of these, a latch, and a cell that is no gate of two inputs.
    pub fn read(stat: &str, longest_path: &str) -> Result<Self, UnreadableReport> {
        let unreadable = |what: String| UnreadableReport { what };
        let mut gates = Self::default();
        let cells = stat.split_once("Number of cells:");
        let (_, cells) = cells.ok_or_else(|| unreadable("has no cells".into()))?;
        for line in cells.lines().skip(1) {
            let mut words = line.split_whitespace();
            let (Some(cell), Some(count)) = (words.next(), words.next()) else { continue };
            let count: u64 = count.parse().map_err(|_| unreadable(format!("says '{line}'")))?;
            match cell {
                _ if cell.contains("DLATCH") => return Err(unreadable(format!("has {cell}"))),
                "$_XOR_" | "$_XNOR_" => gates.xor += count,
                _ if cell.contains("DFF") => gates.flip_flops += count,
                "$_NOT_" | "$_AND_" | "$_NAND_" | "$_OR_" | "$_NOR_" | "$_ANDNOT_" | "$_ORNOT_" => {
                    gates.and += count;
                }
                _ if cell.contains("row_ram") => gates.rams += count,
                _ => {
                    return Err(unreadable(format!(
                        "has {cell}, which is not a gate of two inputs"
                    )));
                }
            }
        }
        let length = longest_path.split_once("length=").and_then(|(_, rest)| rest.split_once(')'));
        let length = length.and_then(|(length, _)| length.parse().ok());
        gates.depth = length.ok_or_else(|| unreadable("has no longest path".into()))?;
        Ok(gates)
    }

    /// All but RAM, in XORs of two inputs.
    pub fn xor_equivalent(&self) -> f64 {
        let Weights { xor, and, flip_flop, .. } = Weights::ALL;
        self.xor as f64 * xor + self.and as f64 * and + self.flip_flops as f64 * flip_flop
    }

    /// The same in NANDs of two inputs.
    pub fn nand2_equivalent(&self) -> f64 {
        self.xor_equivalent() * Weights::ALL.nand2_of_xor
    }
}

/// The script of an engine. RAM is a box without gates; a report of latches ends it.
pub(crate) fn script(kind: Kind, modules: &[&str]) -> String {
    let boxes: Vec<&str> =
        modules.iter().copied().filter(|name| name.ends_with("_ram.sv")).collect();
    let rest: Vec<&str> = modules.iter().copied().filter(|name| !boxes.contains(name)).collect();
    let mut script = String::from("# Gates and depth: yosys -q -s synth.ys\n");
    for name in boxes {
        let module = name.trim_end_matches(".sv");
        script.push_str(&format!("read_verilog -sv {name}\nblackbox {module}\n"));
    }
    script.push_str(
        &include_str!("text/synth.ys")
            .replace("@TOP@", kind.name())
            .replace("@MODULES@", &rest.join(" ")),
    );
    script
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "=== sector ===\n\n   Number of wires:  3\n   Number of cells:  9\n     $_XOR_  4\n     \
        $_ANDNOT_   2\n     $_DFFE_PP_   1\n     row_ram    2\n\n";

    #[test]
    fn reports_are_read_and_weighed() {
        let gates =
            Gates::read(STAT, "Longest topological path in sector (length=7):\n").expect("good");
        assert_eq!(gates, Gates { xor: 4, and: 2, flip_flops: 1, rams: 2, depth: 7 });
        assert!((gates.xor_equivalent() - 7.8).abs() < 1e-9);
        assert!((gates.nand2_equivalent() - 15.6).abs() < 1e-9);
    }

    #[test]
    fn latches_and_what_is_no_gate_are_refused() {
        for cell in ["$_DLATCH_P_", "$mux", "$_MUX_"] {
            let stat = STAT.replace("$_ANDNOT_", cell);
            let problem = Gates::read(&stat, "(length=7)").expect_err(cell);
            assert!(problem.to_string().contains(cell), "{problem}");
        }
        assert!(Gates::read(STAT, "").is_err());
        assert!(Gates::read("", "(length=7)").is_err());
    }
}
