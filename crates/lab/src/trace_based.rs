//! Which writes a drive could verify in its idle time, worked out from arrivals and departures alone:
//! the trace-based analysis of `[IRAW08]`, section 5.1.
//!
//! ```text
//!   busy | idle, 12 ms     | busy      | idle, 4 ms | busy | idle, 31 ms
//!   W W  | v v             | W W W     |            | W    | v v v v
//!   ^ enter                  ^ enter     too short          ^ the first come are the first verified
//! ```
//!
//! # Rules
//!
//! - V1. Every write of a busy period waits from then on, in the order of arrival; two writes of the same
//!   sectors are two.
//! - V2. In an idle interval of length I the drive verifies floor(I / 5 ms) of them, the oldest first. It
//!   knows I beforehand, so that no request is ever held up.
//! - V3. With a limit of age, a write that is not verified in any of that many idle intervals is given up
//!   at the end of the last. With a limit of room, the oldest writes are given up until the new one fits.
//! - V4. The interval after the last departure has no end: what waits then is verified.
//!
//! It leaves out: that a verification takes longer or shorter, and what it costs other requests; the
//! modelled drive has both.

use std::collections::VecDeque;

use levelhead_trace::{Answered, Kind, periods};
use levelhead_units::{Bytes, Nanos};

/// How long a verification takes, as in the paper.
pub const VERIFICATION: Nanos = Nanos::from_millis(5);

/// The largest limit of age that the paper considers.
pub const AGE_MAX: u64 = 512;

/// What keeps writes from waiting without end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// The number of idle intervals that a write waits through at most.
    Age(u64),
    /// How many bytes wait at most.
    Room(Bytes),
}

/// What became of the writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verified {
    /// How many there were.
    pub writes: u64,
    /// How many of them were verified.
    pub verified: u64,
    /// The most bytes that waited at a time.
    pub room_max: Bytes,
    /// The most idle intervals that a verified write has waited for, the one in which it was verified
    /// among them.
    pub age_max: u64,
}

impl Verified {
    /// The verified writes of 100; all of them if there were none.
    pub fn percent(&self) -> f64 {
        if self.writes == 0 {
            return 100.0;
        }
        self.verified as f64 / self.writes as f64 * 100.0
    }
}

/// A write that waits.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    bytes: u64,
    /// How many idle intervals there were before it.
    since: u64,
}

/// Verifies the writes among `requests`, which are ordered by arrival.
pub fn verify(requests: &[Answered], limit: Limit) -> Verified {
    let mut waiting: VecDeque<Waiting> = VecDeque::new();
    let mut bytes = 0;
    let mut found = Verified::default();
    for (idle_idx, period) in periods(requests).enumerate() {
        let now = idle_idx as u64;
        for request in &requests[period.requests] {
            if request.arrival.kind == Kind::Read {
                continue;
            }
            let write = request.arrival.extent.sectors.bytes().get();
            found.writes += 1;
            waiting.push_back(Waiting { bytes: write, since: now });
            bytes += write;
            if let Limit::Room(room) = limit {
                while bytes > room.get() {
                    bytes -= oldest(&mut waiting).bytes;
                }
            }
            found.room_max = found.room_max.max(Bytes::new(bytes));
        }
        let fitting = period.idle.map_or(u64::MAX, |idle| idle.get() / VERIFICATION.get());
        for _ in 0..fitting.min(waiting.len() as u64) {
            let write = oldest(&mut waiting);
            bytes -= write.bytes;
            found.verified += 1;
            found.age_max = found.age_max.max(now - write.since + 1);
        }
        if let Limit::Age(age) = limit {
            while waiting.front().is_some_and(|write| now - write.since + 1 >= age) {
                bytes -= oldest(&mut waiting).bytes;
            }
        }
    }
    found
}

/// The smallest power of two that, as a limit of age, loses no write; [`AGE_MAX`] if every such limit
/// loses one.
pub fn least_age(requests: &[Answered]) -> u64 {
    // A limit that loses nothing changes nothing, so that the oldest write tells it.
    verify(requests, Limit::Age(u64::MAX)).age_max.next_power_of_two().min(AGE_MAX)
}

fn oldest(waiting: &mut VecDeque<Waiting>) -> Waiting {
    waiting.pop_front().expect("there is one")
}

#[cfg(test)]
mod tests;
