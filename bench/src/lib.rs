//! Our own benchmarks.
//!
//! - `cargo run --release -p bench -- drive [--json]`: how many requests the drive's model and an array
//!   of them take in a second ([`drive`]).
//! - `cargo bench -p bench`: the erasure codes, by kernel; with a name only what has it, as in
//!   `cargo bench -p bench -- encode`.
//! - `cargo bench -p bench --bench decide`: what a policy takes to decide a read.
//!
//! A benchmark measures; it claims nothing. A claim of speed is a ratio against a named peer in the
//! same run, and peers are benchmarked elsewhere, so that building this compiles none of them.

#![forbid(unsafe_code)]

pub mod drive;
