//! What happens to drives, and how it stands to their slowdowns.

mod table;

pub use table::{EventKind, EventsTable};
