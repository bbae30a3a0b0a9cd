//! Reading back what was written, in place and of the metadata, and what is made of a difference.

pub(crate) mod checking;
pub(crate) mod findings;
pub(crate) mod metadata;
