//! Exhaustive search over the real array, in small.
//!
//! ```text
//!   a new array ----> every order in which commands end ----> at every moment a power cut:
//!     writes, losses,      clients' requests, losses and        every version of every sector that no flush covers,
//!     returns              returns in between                   every part of every write that was inside
//!                                                                    |
//!                     every order again, while cuts are left    <----+----> every set of drives that may be missing:
//!                                                                          start, read all, lose more, read again
//! ```
//!
//! The array is the product's own state machine, over the disks and the promise of the crash swarm. Where a swarm draws, a
//! search takes every way, once: states that were seen are not left a second time.
//!
//! # What it proves
//!
//! Within its bound ([`Bound`]): no order of completions, no moment of a power cut, no choice of what is left in the disks'
//! caches and no missing drives that the layout survives break the promise of `docs/array.md`. A bound that was not seen to
//! its end proves nothing; its result says so.
//!
//! # What it leaves out
//!
//! - Reads of drives end before anything else does. They change nothing on the drives; that an answer of a read comes later
//!   than the end of a write is left to the swarm.
//! - Clients read only where nothing else is under way, and after every start. What follows a start then is one way of many:
//!   everything is read, also without each drive that may be lost; and the same once all drives are back that may be.
//! - Time stands still but where nothing else can happen: then it goes on to what the array has planned next.
//! - Drives end what they were sent, and do what they say: errors, lies and torn sectors are left to the swarm.
//! - A lost drive may be shown after a power cut, or not. That it is dead before is the same as not being shown. What is inside
//!   it when it is lost is not written; what is in its cache stays there.
//! - A drive that was replaced, and is shown once more after a power cut, has stored all that it was sent.
//! - A client writes only where no request is under way.
//! - States are told apart by a hash of 128 bits of the array, the disks and the commands inside them; of a command, a
//!   buffer and a sector it has a hash of 64 bits. Numbers that only give names (of commands, buffers and requests), counters and
//!   what was measured of the drives do not count. Two states whose hashes are equal are taken for one. So are states in which
//!   two buffers of the same content, or two commands inside a drive that are alike, are exchanged, and in which commands
//!   inside the drives were given their names in another order.

mod bound;
mod canon;
mod cuts;
mod walk;

use std::fmt;
use std::time::Duration;

pub use self::bound::Bound;
use self::walk::Search;

/// How much of a bound is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Left {
    writes: u8,
    flushes: u8,
    losses: u8,
    returns: u8,
    replacements: u8,
    cuts: u8,
}

/// What a search came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// States that were seen while the array ran.
    pub states: u64,
    /// Different images that power cuts left.
    pub images: u64,
    /// Starts from them, each without another set of drives.
    pub starts: u64,
    /// Whether all there are were seen, every image of every power cut among them.
    pub is_exhausted: bool,
    /// Power cuts of which not every image was taken, because there were too many.
    pub capped: u64,
    /// The first promise that was broken, and what led there.
    pub broken: Option<Broken>,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { states, images, starts, capped, .. } = self;
        write!(f, "{states} states, {images} images, {starts} starts")?;
        if *capped > 0 {
            write!(f, ", {capped} power cuts of which not all images were taken")?;
        }
        let end = match (&self.broken, self.is_exhausted) {
            (Some(_), _) => "a promise was broken",
            (None, true) => "exhausted",
            (None, false) => "not exhausted",
        };
        write!(f, ", {end}")
    }
}

/// A promise that was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// What was wrong.
    pub how: String,
    /// What happened, in order.
    pub trace: Vec<String>,
}

/// How far a search goes at most, and by how many threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How long it takes.
    pub time: Duration,
    /// States that it sees.
    pub states: u64,
    /// Threads.
    pub workers: usize,
}

/// Searches all that a bound allows, until that is done, a promise is broken or a limit is reached, and tells now and then how
/// far it is. What a search that ends of itself comes to does not depend on the number of workers.
pub fn search(bound: Bound, limits: Limits, tell: &(dyn Fn(&Outcome) + Sync)) -> Outcome {
    Search::new(bound, limits, tell).run()
}
