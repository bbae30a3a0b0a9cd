//! The crate seen from outside: the matrix, the plans, the bytes, and the page that fixes them.

#![forbid(unsafe_code)]

mod bytes;
mod choices;
mod long;
mod oracle;
mod page;
mod plans;
mod transforms;
