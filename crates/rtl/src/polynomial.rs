//! The polynomial encoder of `[LEC17]`, table 2: its field, its matrix, and the module.
//!
//! Symbols are elements of GF(2^8) by `x^8 + x^4 + x^3 + x^2 + 1` in codes of up to 255 symbols, of
//! GF(2^10) by `x^10 + x^3 + 1` in longer ones, up to 1,023. The generator polynomial has the roots `a^0` to
//! `a^(m-1)`, with `a = x`. The redundant symbols are the remainder of the data, times `x^m`, by it; the
//! first symbol has the highest power. The paper names neither its fields nor its roots.
//!
//! A beat holds `lanes` symbols, and one matrix takes the remainder past all of them: the remainder is
//! added to the first symbols of a beat, as a division by hand does, and each lane's `x^(m+lanes-1-lane)`
//! by the generator polynomial is a column of it.

use std::collections::BTreeSet;
use std::fmt::Write;

use levelhead_erasure::Code;

use levelhead_stats::Rng;

use crate::engine::{File, Play};
use crate::hex::{Table, bits_of};
use crate::pairs::{Network, share};
use crate::testbench::Testbench;

/// The most redundant symbols. More would be right as well, but sharing their pairs takes long.
pub(crate) const REDUNDANT_MAX: usize = 64;

/// The most symbols of a codeword: the powers of `x` in the larger field.
pub(crate) const LENGTH_MAX: usize = 1023;

/// The depth that the matrix may have: with the gates before it, 11 of the 12 that a cycle has room for.
const DEPTH: u32 = 9;

/// Symbols of a polynomial encoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Symbols {
    /// Bits of a symbol.
    pub(crate) bits: usize,
    /// Symbols of a beat.
    pub(crate) lanes: usize,
    /// The field's polynomial, without its highest power.
    polynomial: u16,
}

impl Symbols {
    /// Those of a code: 16 bytes of GF(2^8) a cycle, or 13 symbols of GF(2^10).
    pub(crate) fn of(code: &Code) -> Self {
        if code.len() <= 255 {
            Self { bits: 8, lanes: 16, polynomial: 0x1d }
        } else {
            Self { bits: 10, lanes: 13, polynomial: 0x09 }
        }
    }

    /// An element times `x`.
    fn doubled(self, element: u16) -> u16 {
        let high = element >> (self.bits - 1) & 1;
        (element << 1 & ((1 << self.bits) - 1)) ^ (high * self.polynomial)
    }

    pub(crate) fn product(self, left: u16, right: u16) -> u16 {
        let (mut sum, mut power) = (0, left);
        for bit in 0..self.bits {
            if right >> bit & 1 == 1 {
                sum ^= power;
            }
            power = self.doubled(power);
        }
        sum
    }

    /// The generator polynomial with `redundant` roots, the highest power, which is 1, left out; then
    /// the next highest first.
    pub(crate) fn generator(self, redundant: usize) -> Vec<u16> {
        let mut generator = vec![];
        let mut root = 1;
        for _ in 0..redundant {
            // (x + root) times what there is: each coefficient gets the one below it times the root.
            generator.push(0);
            let mut above = 1;
            for coefficient in &mut generator {
                let shifted = *coefficient;
                *coefficient = shifted ^ self.product(above, root);
                above = shifted;
            }
            root = self.doubled(root);
        }
        generator
    }

    /// The redundant symbols of `data`, the highest power first in both.
    pub(crate) fn remainder(self, data: &[u16], redundant: usize) -> Vec<u16> {
        let generator = self.generator(redundant);
        let mut remainder = vec![0; redundant];
        for symbol in data {
            let quotient = symbol ^ remainder[0];
            remainder.rotate_left(1);
            remainder[redundant - 1] = 0;
            for (into, &coefficient) in remainder.iter_mut().zip(&generator) {
                *into ^= self.product(quotient, coefficient);
            }
        }
        remainder
    }
}

/// The matrix that takes a remainder past a beat, as gates.
///
/// Inputs are the bits of the beat's symbols, the remainder added to the first ones, and behind them those
/// of the remainder's symbols that are past the lanes.
fn network(code: &Code, symbols: Symbols) -> Network {
    let Symbols { bits, lanes, .. } = symbols;
    let redundant = code.redundant();
    let mut rows = vec![BTreeSet::new(); bits * redundant];
    for lane in 0..lanes {
        for bit in 0..bits {
            let mut data = vec![0; lanes - lane];
            data[0] = 1 << bit;
            for (symbol, element) in symbols.remainder(&data, redundant).into_iter().enumerate() {
                for of_element in (0..bits).filter(|&at| element >> at & 1 == 1) {
                    rows[bits * symbol + of_element].insert(bits * lane + bit);
                }
            }
        }
    }
    let past = redundant.saturating_sub(lanes);
    for (at, row) in rows.iter_mut().enumerate().take(bits * past) {
        row.insert(bits * lanes + at);
    }
    // The remainder comes through one gate, and meets the beat in another.
    let mut levels = vec![0; bits * lanes];
    levels[..bits * redundant.min(lanes)].fill(1);
    levels.extend(vec![0; bits * past]);
    share(rows, levels, DEPTH).expect("130 terms of depth 1 and one of depth 0 weigh less than 512")
}

/// The module `polynomial` of a code with 1 to [`REDUNDANT_MAX`] redundant symbols.
pub(crate) fn modules(code: &Code) -> Vec<File> {
    let redundant = code.redundant();
    let symbols = Symbols::of(code);
    let network = network(code, symbols);
    let inputs = symbols.bits * (symbols.lanes + redundant.saturating_sub(symbols.lanes));
    let name = |node: usize| match node.checked_sub(inputs) {
        None => format!("used[{node}]"),
        Some(gate) => format!("pair_{gate}"),
    };
    let mut gates = String::new();
    for (at, gate) in network.gates.iter().enumerate() {
        let (left, right) = (name(gate.left), name(gate.right));
        writeln!(gates, "    wire pair_{at} = {left} ^ {right};").expect("a string takes all");
    }
    for (row, node) in network.rows.iter().enumerate() {
        let node = node.map_or_else(|| "1'b0".to_owned(), name);
        writeln!(gates, "    assign next[{row}] = {node};").expect("a string takes all");
    }
    let text = include_str!("text/polynomial.sv")
        .replace("@LANES@", &symbols.lanes.to_string())
        .replace("@BITS@", &symbols.bits.to_string())
        .replace("@REDUNDANT@", &redundant.to_string())
        .replace("@GATES@", gates.trim_end());
    vec![File { name: "polynomial.sv", text }]
}

/// The testbench, which rests by `chance`, not 0, and its tables: random codewords, one after the other.
pub(crate) fn vectors(code: &Code, play: Play, rng: &mut Rng, chance: u32) -> Vec<File> {
    let symbols = Symbols::of(code);
    let Symbols { bits, lanes, .. } = symbols;
    let codewords = match play {
        Play::Patterns(count) => 10 * count,
        Play::Row(count) => count,
    };
    let (mut ins, mut outs) = (Table::default(), Table::default());
    for _ in 0..codewords {
        let data: Vec<u16> = (0..code.data()).map(|_| rng.below(1 << bits) as u16).collect();
        let mut beats = vec![0; code.data().next_multiple_of(lanes) - code.data()];
        beats.extend(&data);
        let last = beats.len() / lanes - 1;
        for (at, beat) in beats.chunks(lanes).enumerate() {
            let bits = beat.iter().flat_map(|&symbol| bits_of(symbol, bits));
            ins.push(bits.chain([at == last]));
        }
        let remainder = symbols.remainder(&data, code.redundant());
        outs.push(remainder.into_iter().flat_map(|symbol| bits_of(symbol, bits)));
    }
    let testbench = Testbench {
        engine: include_str!("text/polynomial_side.sv"),
        ins: ins.lines,
        in_bits: lanes * bits + 1,
        in_last: lanes * bits,
        outs: outs.lines,
        out_bits: code.redundant() * bits,
        out: "codeword",
        others: 0,
        chance,
    };
    vec![
        File { name: "testbench.sv", text: testbench.text() },
        File { name: "in.hex", text: ins.text },
        File { name: "out.hex", text: outs.text },
    ]
}

#[cfg(test)]
mod tests {
    use levelhead_stats::Streams;

    use super::*;

    /// The remainder by long division of the whole polynomial, which shares nothing with the above but
    /// the field's product.
    fn divided(symbols: Symbols, data: &[u16], redundant: usize) -> Vec<u16> {
        let mut divisor = vec![1];
        let mut root = 1;
        for _ in 0..redundant {
            let mut product = vec![0; divisor.len() + 1];
            for (at, &coefficient) in divisor.iter().enumerate() {
                product[at] ^= coefficient;
                product[at + 1] ^= symbols.product(coefficient, root);
            }
            divisor = product;
            root = symbols.product(root, 2);
        }
        let mut dividend = [data, &vec![0; redundant]].concat();
        for at in 0..data.len() {
            let quotient = dividend[at];
            for (place, &coefficient) in divisor.iter().enumerate() {
                dividend[at + place] ^= symbols.product(quotient, coefficient);
            }
        }
        dividend.split_off(data.len())
    }

    #[test]
    fn remainders_are_those_of_long_division_and_codewords_are_zero_at_the_roots() {
        let mut rng = Streams::new(6).stream("polynomial");
        for (data, redundant) in [(252, 3), (246, 9), (1019, 4), (1004, 19)] {
            let symbols = Symbols::of(&Code::new(data, redundant).expect("it exists"));
            let below = 1 << symbols.bits;
            let data: Vec<u16> = (0..data).map(|_| rng.below(below) as u16).collect();
            let remainder = symbols.remainder(&data, redundant);
            assert_eq!(remainder, divided(symbols, &data, redundant));
            let mut root = 1;
            for _ in 0..redundant {
                let value = data.iter().chain(&remainder);
                assert_eq!(value.fold(0, |sum, symbol| symbols.product(sum, root) ^ symbol), 0);
                root = symbols.product(root, 2);
            }
        }
    }

    #[test]
    fn powers_of_x_run_through_each_field() {
        for code in [Code::new(20, 3), Code::new(1000, 3)] {
            let symbols = Symbols::of(&code.expect("it exists"));
            let order = (1 << symbols.bits) - 1;
            let mut seen = BTreeSet::from([1]);
            let mut power = 1;
            while seen.insert(symbols.doubled(power)) {
                power = symbols.doubled(power);
            }
            assert_eq!(seen.len(), order);
        }
    }
}
