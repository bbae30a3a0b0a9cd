//! Studies of fleets: what the field's drives are like, and what that makes of an array.

mod detect;
mod field;
mod hours;

use super::Study;

pub(super) fn studies() -> Vec<Study> {
    [hours::studies(), vec![detect::DETECT], field::studies()].concat()
}
