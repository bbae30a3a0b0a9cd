//! Operations: what becomes of a client's request, from its stripes to its answer.

pub(crate) mod check;
pub(crate) mod choice;
pub(crate) mod copies;
pub(crate) mod fetch;
pub(crate) mod fill;
pub(crate) mod lateness;
pub(crate) mod locks;
pub(crate) mod mend;
pub(crate) mod read;
pub(crate) mod rule;
pub(crate) mod ways;
pub(crate) mod write;
