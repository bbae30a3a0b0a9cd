//! Traces: any bytes, and real ones.

mod any_bytes;
mod real_traces;
