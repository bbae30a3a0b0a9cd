//! Our own benchmarks.
