//! The levelhead program: parse, call, print.
fn main() {}
