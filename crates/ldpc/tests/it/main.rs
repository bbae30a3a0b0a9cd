//! The crate seen from outside: beside another one's decoder, and with codewords that are not zero.

#![forbid(unsafe_code)]

mod codewords;
mod frames;
mod toolbox;
