//! Drives that have something to do and end nothing.
//!
//! ```text
//!   a command ends        silent        lost, if writes or flushes wait for it
//!   |--------------------->|---------------------------->|
//!   0                  Patience::silent             Patience::lost
//! ```
//!
//! A silent drive is treated like one that sits out by hand: no read counts on it where another drive will do. When
//! it ends a command, it is as before.
//!
//! # Invariants
//!
//! - S1. A drive is lost for its silence only if something waits for it, and the layout survives the loss of every
//!   drive that is silent: where one too many is, to lose some of them would help no request.
//! - S2. Where it cannot be lost, what waits for it is answered with a failure in the end: no client waits
//!   longer than [`Patience::answer`].

use levelhead_units::Nanos;

/// How long an array waits for a drive that says nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// Then it counts as silent.
    pub silent: Nanos,
    /// Then it is lost, if writes or flushes wait for it.
    pub lost: Nanos,
}

impl Patience {
    /// 5 s, and 60 s: a drive that recovers a sector as long as it likes takes seconds to a minute, and the
    /// kernel resets one that has not answered after 30 s.
    pub const DEFAULT: Self = Self { silent: Nanos::from_secs(5), lost: Nanos::from_secs(60) };

    /// The longest that a client waits for an answer: until the drive it waits for should have been lost, and
    /// as long again for the next one.
    pub fn answer(self) -> Nanos {
        self.lost * 2
    }
}
