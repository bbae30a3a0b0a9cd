//! Our own benchmarks: `cargo bench -p levelhead-bench`, or with a name to run only what has it,
//! as in `cargo bench -p levelhead-bench -- encode`. There is no library here.
//!
//! A benchmark measures; it claims nothing. A claim of speed is a ratio against a named peer in the
//! same run, and peers are benchmarked elsewhere, so that building this compiles none of them.

#![forbid(unsafe_code)]
