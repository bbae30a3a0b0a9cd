//! Our policy against those of the papers: case by case, over the whole range of loads and troubles, on recorded
//! arrivals, and on mirrors.

mod all;
mod mirrors;
mod points;
mod sweep;
mod traces;

use super::Study;

pub(super) fn studies() -> Vec<Study> {
    vec![all::ALL, sweep::SWEEP, traces::TRACES, mirrors::MIRRORS]
}
