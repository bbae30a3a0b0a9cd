//! What a modelled drive promises, and what is measured from outside.

mod cache;
mod drive;
mod ecc;
mod faults;
mod measure;
mod measure_late;
mod nearline;
#[path = "../support/mod.rs"]
mod support;
#[path = "../truth/mod.rs"]
mod truth;
mod verify;
mod zero_tails;
