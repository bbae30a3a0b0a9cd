//! What an array does without being asked by a client, one step at a time.

pub(crate) mod copying;
pub(crate) mod places;
pub(crate) mod rebuild;
pub(crate) mod resync;
mod runs;
pub(crate) mod scrub;
mod tempo;

#[cfg(test)]
mod tests;
