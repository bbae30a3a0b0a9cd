//! The equations of the papers: how often a code fails, how little redundancy suffices, how long
//! the slowest reads take, and which way of reading costs all requests together less. Ours: what
//! checksums cost and find.
//!
//! ```text
//!   failure rate, target --> code      --> redundant symbols, failure probability
//!                            metadata  --> replicas
//!   sizes of files, code --> capacity  --> share of space that redundancy takes
//!   three kinds of file  --> system    --> redundancy of a whole drive
//!                            kinds     --> mean times of reads, writes and updates
//!   read, code, times    --> sequential, random --> Law of the latency --> any percentile
//!   queue, load, rates   --> mode      --> net latency, whole group or requested data
//!   groups, rates        --> checksums --> what they cost, and which sectors are answered wrong
//! ```
//!
//! One module a subject; each equation stands in its function's comment with its number in the paper.
//! The papers' own expressions are kept even where they are wrong, beside what is right, because a
//! study compares both.
//!
//! # Invariants
//!
//! - P1. Probabilities keep ten digits down to 1e-30 and below: every binomial term is computed from
//!   its deviance ([`binomial`]), and no small number is ever the difference of two large ones.
//! - P2. What a [`Law`] leaves out, it counts: percentiles come as a bracket whose width is due to it.
//! - P3. Nothing here is shared with the crates that the planner is compared with: `array` has its own
//!   expression of the net latency, `lab` draws its own sectors.
//!
//! # References
//!
//! - `[ERAID]` fail-slow drives and eRAID; the net latency of a read.
//! - `[LEC17]` local erasure coding within files.
//! - `[SDHDD]` zero forcing, three kinds of file.
//! - `[BGS08]` how many drives return wrong bytes.
//!
//! # Assumptions
//!
//! - A1. Sectors fail independently of each other, with one probability, except where a function
//!   says otherwise ([`code::failure_bound_correlated`]).
//! - A2. A code is maximum distance separable: any `redundant` failures of a codeword are repaired,
//!   and not one more.

#![forbid(unsafe_code)]

pub mod binomial;
pub mod capacity;
pub mod checksums;
pub mod code;
pub mod decode;
pub mod kinds;
pub mod law;
pub mod metadata;
pub mod mode;
pub mod random;
pub mod sequential;
pub mod system;

pub use code::Code;
pub use law::{Bracket, Law};
