//! Our policy against those of the papers: case by case, and over the whole range of loads and troubles.

mod all;
mod points;
mod sweep;

use super::Study;

pub(super) fn studies() -> Vec<Study> {
    vec![all::ALL, sweep::SWEEP]
}
