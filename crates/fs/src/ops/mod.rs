//! Operations that read and change metadata alone, each an attempt ([`crate::attempt`]).

pub(crate) mod access;
pub(crate) mod attributes;
pub(crate) mod directories;
pub(crate) mod extended;
pub(crate) mod extents;
pub(crate) mod names;
pub(crate) mod values;
