//! The text of the module `sector` for one code.
//!
//! Over the tower field the 128 bytes of a block come as 64 `a` and then 64 `b` of elements `a + b Y`. So a
//! row has two sums, and a beat of `a` adds `c a` and `d a` to them, a beat of `b` adds `L d b` and
//! `(c + d) b`, for the coefficient `c + d Y`. Nothing has to be put in another order.

use levelhead_erasure::{Code, Field};

use crate::engine::File;

/// The modules of the engine of `code`: `row_ram`, `lanes` and, on top, `sector`.
pub(crate) fn modules(code: &Code) -> Vec<File> {
    let tower = u8::from(code.field() == Field::Tower);
    let top = include_str!("text/sector.sv")
        .replace("@ROWS@", &code.redundant().to_string())
        .replace("@TOWER@", &tower.to_string())
        .replace("@TIMES_L@", &times_l());
    vec![
        File { name: "row_ram.sv", text: include_str!("text/row_ram.sv").into() },
        File { name: "lanes.sv", text: include_str!("text/lanes.sv").into() },
        File { name: "sector.sv", text: top },
    ]
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
