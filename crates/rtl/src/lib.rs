//! The erasure engine in hardware: SystemVerilog text, and vectors that its testbench plays.
//!
//! The module `sector` takes sectors in the order in which a disk gives them, 16 bytes a cycle, and
//! adds each, times one coefficient a row, to `redundant` sums. Encoding and decoding differ in the
//! coefficients alone, and these come from the `erasure` crate: see [`coefficients`].
//!
//! ```text
//!   coefficient --> chain of the next sector --> active, one a row
//!                                                  |
//!   sector, 16 bytes a cycle --> register --> [ lanes: 16 products ] --> xor --> [ RAM, 2 banks ] --> out
//!                                                                         ^         |
//!                                                                         +---------+  0 in a first sector
//! ```
//!
//! Over the tower field the 128 bytes of a block come as 64 `a` and then 64 `b` of elements `a + b Y`. So a
//! row has two sums, and a beat of `a` adds `c a` and `d a` to them, a beat of `b` adds `L d b` and
//! `(c + d) b`, for the coefficient `c + d Y`. Nothing has to be put in another order.
//!
//! # Invariants
//!
//! - T1. The same code gives the same text.
//! - T2. A sector starts only when all its coefficients are there; a group only in a bank that has left.
//! - T3. The first sector of a group does not read what its bank held.
//!
//! # What it leaves out
//!
//! Errors at unknown places: erasures are known. The polynomial encoder of `[LEC17]`, table 2.

#![forbid(unsafe_code)]

mod sector;
mod vectors;

pub use sector::{File, UnfitCode, sector};
pub use vectors::{Group, Vectors, coefficients};
