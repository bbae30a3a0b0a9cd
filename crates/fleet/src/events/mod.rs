//! What happens to drives, and how it stands to their slowdowns: figure 11 of `[TAIL16]`.
//!
//! ```text
//!   Hours slices --+
//!                  +--> EventsKernel --> EventsSummary --+-- merge --> EventsSummary --> waits, recurrences, absences
//!   EventsTable ---+                     EventsSummary --'
//!
//!          onset        unplug      replug       slow
//!   ---------|-------------|-----------|-----------|------> hours of a drive
//!            '--- wait ----'- absence -'-- recur --'
//! ```
//!
//! *Onset*: an hour at 1.5 and above, where the drive was not there or below 1.5 the hour before; or at 2 and above, where it was not
//! there or below 2. A drive that stays as slow has one onset, whatever it lasts. *Wait*: from an onset to the drive's next unplug.
//! *Recurrence*: from a replug to the drive's next slow hour. *Absence*: from an unplug to the replug that is the drive's next event.
//!
//! * E1: an event stands at the end of its hour: it follows that hour's row of the drive. A wait may be of 0 hours, a recurrence not.
//! * E2: the summaries of parts merged are that of one pass, if each drive's parts are joined neighbour to neighbour and each event was
//!   given to one part.
//! * E3: an onset without a later unplug is counted, as one that does not end; so are replugs and unplugs.
//!
//! Memory grows with the drives that were ever at 1.5 or had an event, and with [`HOURS_MAX`]; never with hours. Left out: events of
//! other kinds.

mod kernel;
mod summary;
mod table;
#[cfg(test)]
mod tests;

pub use kernel::{EventsError, EventsKernel};
pub use summary::{EventsOverlap, EventsSummary, HOURS_MAX, Spans};
pub use table::{EventKind, EventsTable, Severity};
