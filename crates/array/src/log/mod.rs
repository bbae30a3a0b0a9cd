//! What the journal keeps of what is written, and what the rest of the array sees of it.
//!
//! - `record`: the format of a record's header;
//! - `rules`: the rules that a journal keeps, by name;
//! - `contents`: what an operation gives to the journal;
//! - `unplaced`, `at_risk`, `live`: what is committed and not in its place, written and not flushed, or on the rings still.

pub(crate) mod at_risk;
pub(crate) mod contents;
pub(crate) mod live;
pub mod record;
pub mod rules;
pub(crate) mod unplaced;
