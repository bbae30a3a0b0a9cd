//! What an array does of its own accord, a step at a time: no client waits for it.

pub(crate) mod budget;
pub(crate) mod resync;
