//! The erasure engine in hardware: SystemVerilog text, vectors that its testbench plays, and the count of
//! its gates.
//!
//! Two kinds. `sector` is our engine: it takes sectors in the order in which a disk gives them, 16 bytes a
//! cycle, and adds each, times one coefficient a row, to `redundant` sums. Encoding and decoding differ in
//! the coefficients alone, and these come from the `erasure` crate: see [`coefficients`]. `polynomial` is
//! the encoder of `[LEC17]`, table 2: all symbols of one codeword in turn, and another code.
//!
//! ```text
//!   code --> modules (*.sv) ------------------------> yosys ----> gates, depth ----> Gates --> Row
//!     |                                                 ^
//!     +----> groups of a seed --> tables (*.hex) --> testbench under iverilog, verilator
//! ```
//!
//! This crate writes text and reads text; `cargo xtask rtl` runs the tools.
//!
//! # Invariants
//!
//! - T1. The same code, kind and seed give the same text.
//! - T2. A sector starts only when all its coefficients are there; a group only in a bank that has left.
//! - T3. The first sector of a group does not read what its bank held; the first beat of a codeword does
//!   not read the remainder before it.
//!
//! # What it leaves out
//!
//! Errors at unknown places, which the paper's decoder finds: here the erasures are known.

#![forbid(unsafe_code)]

mod emit;
mod engine;
mod gates;
mod hex;
mod pairs;
mod polynomial;
mod readme;
mod sector;
mod table;
mod testbench;
mod vectors;

pub use emit::{bytes_of_beat, emit, modules};
pub use engine::{Emit, File, Kind, Play, SECTOR_SIZES, UnfitCode, UnknownKind};
pub use gates::{Gates, UnreadableReport, Weights};
pub use table::{BEAT_ROUNDING, COMMITTED, PAPER, Published, Row, UnreadableTable, committed};
pub use vectors::{Group, coefficients};
