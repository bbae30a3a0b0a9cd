//! All that is known of a drive.

pub(crate) mod admission;
pub mod detect;
pub(crate) mod quantile;
pub(crate) mod queue;
pub(crate) mod silence;
pub(crate) mod track;
