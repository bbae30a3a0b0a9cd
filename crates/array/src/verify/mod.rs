//! Idle read after write: what was written in place is kept in memory, read back from its medium when its drive has
//! nothing else to do, compared, mended where it differs, and read back again.
//!
//! ```text
//!   a sub-write ends --> waiting --> being read --> as it should be: forgotten
//!                          ^  ^          |
//!                          |  |          v
//!                          |  +--- being mended: from memory, the journal, or the other drives
//!                          +------ given back: the read ended with nothing
//! ```
//!
//! A *record* is what is known of one sub-write: its bytes while there is room for them, and a checksum of each sector
//! otherwise. A write of the same sectors ends it when it goes out to the drive; what it does not cover is checked all
//! the same. Nothing of this is written anywhere: after a crash nothing waits. Of what was not stored and not read back before, the
//! journal still has what is not over, and writes that to its place again; of the rest a scrub finds what does not match.
//!
//! What answers the read is the drive's business: the read has [`Effort::Medium`](levelhead_block::Effort::Medium), and
//! what that is worth of each drive ([`Promise`]) the runtime knows, or what such reads take says it (`promises.rs`).
//!
//! # Invariants
//!
//! - VF1. A record is made when its sub-write has ended well, and of each sector there is one at most.
//! - VF2. A record loses a sector when another write of it goes out to its drive. A comparison that was under way counts
//!   for what its record still has then.
//! - VF3. What an operation reads of a waiting sector is what was written: it comes from the record's bytes, or it has
//!   the record's checksum, or it counts as damaged.
//! - VF4. A sector is mended with what its record says: with its bytes, or with what a ring of the journal still has or the
//!   other drives give, if that has its checksum. That is written while nothing else uses the stripe and nothing of the sector waits in the journal, and
//!   keeps the record. What is redundant and counts what the drive has there instead is written with it (ME3).
//! - VF5. Bytes are within their room and everything else is within its own, always ([`Room`]).
//! - VF6. The read of a drive begins when the drive has had nothing to do for the wait, and while no other drive of its
//!   group is being checked; other than that only where room presses, as a step of the [`Budget`](crate::Budget).
//! - VF7. A drive that is lost, or that is being filled, has no records.
//!
//! # What else happens to such sectors
//!
//! - *In the journal.* What is committed and not in its place is read from there, newer than any record. Its record is
//!   made when it is in its place.
//! - *Listed as damaged.* What goes onto the list loses its record, and what is on it is not had from one that is made later:
//!   what is redundant may count something else than the list says. A write takes a sector off the list; then it has a record
//!   like any other.
//! - *Lacking on a lost drive.* What of a drive waits when it is lost is among what it lacks, where that is known: it may not be on the
//!   drive if that comes back. What gives a drive the sectors that it has missed writes while it is being filled, and has no
//!   record: a scrub is what reads those.
//! - *Computed for a new drive, or copied to one.* What a rebuild or a copy writes has no record (VF7), nor has what a client writes
//!   to a drive before that counts: such a drive may have lost any of it, and a scrub is what finds that.
//! - *Being copied to a new drive.* The drive may give what is stale to the copy. Mending it is a write, which goes to both
//!   drives or marks its region; and what waits at the exchange is lacking, as above.
//! - *Being scrubbed.* What is waiting is had from memory, so that nothing is blamed that is to be mended anyway.
//! - *Over in the journal.* Nothing stays on a ring for this. A ring is written from one end to the other, so that what is
//!   over lies there for long, and its checksum says whether it still does (`journal::recalled`).

pub(crate) mod on_rings;
pub(crate) mod promises;
pub(crate) mod records;
pub(crate) mod runs;
pub(crate) mod state;
