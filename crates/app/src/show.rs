//! What a command has to show.

/// What a command has to show, for people and for programs.
pub trait Show {
    /// For people: a table and what belongs to it.
    fn text(&self) -> String;

    /// For programs: one JSON value.
    fn json(&self) -> String;
}
