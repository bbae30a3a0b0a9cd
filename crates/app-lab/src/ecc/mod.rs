//! `levelhead-lab ecc`: the code inside a drive, and how often it fails.

mod checkpoint;
mod code;
mod simulate;
mod table;

pub use code::{CodeShown, show_code};
pub use simulate::{POINTS_MAX, Simulate, Simulated, simulate};
pub use table::{TableAsk, TableShown, retry_table};
