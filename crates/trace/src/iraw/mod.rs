//! Workloads like the five traces of `[IRAW08]`, which were never published: made up so that what the
//! paper says of them holds.
//!
//! ```text
//!   servers (what is published, what was fitted) --> timing (arrivals, departures, kinds) --> places (extents)
//! ```
//!
//! Most of a trace is *calm*: short busy periods, idle intervals of which four in ten are longer than
//! 100 ms. In *storms* of writes no idle interval is long enough for a verification; what the paper found
//! about cache sizes follows from their lengths. `docs/iraw.md` says what is published, fitted and assumed.
//!
//! Each quantity is drawn from a stream of its own: arrivals, departures and kinds depend on the server
//! and the seed alone, never on the size of the drive or array.
//!
//! It leaves out: that a request waits for another, and time of day.

mod places;
mod servers;
mod timing;

use std::fmt;
use std::str::FromStr;

use levelhead_stats::Streams;
use levelhead_units::{Bytes, Instant, Nanos, Sectors};

use crate::synthetic::{SyntheticError, wrong};
use crate::{Answered, Arrival};
use places::{Places, SPOT, SPOTS};
pub use servers::{Published, Server};
use timing::Timing;

/// What the text of such a workload begins with.
pub(crate) const PREFIX: &str = "iraw:";

/// A workload like one of the traces of `[IRAW08]`: `iraw:web`, `iraw:email`, `iraw:user-acc`,
/// `iraw:code-dev` or `iraw:sas`; `iraw:web,length=1h` is its first hour.
///
/// ```
/// use levelhead_stats::Streams;
/// use levelhead_trace::Iraw;
/// use levelhead_units::Sectors;
///
/// let workload: Iraw = "iraw:user-acc,length=5min".parse()?;
/// let drive = Sectors::new(17_000_000);
/// let requests = workload.answered(drive, Streams::new(7))?;
/// assert!(requests.iter().all(|request| request.departure > request.arrival.at));
/// # Ok::<(), levelhead_trace::SyntheticError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Iraw {
    /// The server.
    pub server: Server,
    /// How much of the trace, from its beginning: all of it if none is given.
    pub length: Option<Nanos>,
}

/// The smallest drive or array with room for all spots.
const SIZE_MIN: Bytes = Bytes::new(SPOT.get() * SPOTS);

impl Iraw {
    /// The whole trace of this server.
    pub const fn whole(server: Server) -> Self {
        Self { server, length: None }
    }

    /// Its requests to a drive or an array of `size`, ordered by time: the same for the same seed.
    ///
    /// # Errors
    ///
    /// As [`Iraw::answered`].
    pub fn generate(self, size: Sectors, streams: Streams) -> Result<Vec<Arrival>, SyntheticError> {
        Ok(self.answered(size, streams)?.into_iter().map(|request| request.arrival).collect())
    }

    /// The same requests, each with the time at which the drive of the trace answered it.
    ///
    /// # Errors
    ///
    /// A length of nothing, or beyond the trace's; a size without room for the places most requests go
    /// to.
    pub fn answered(
        self,
        size: Sectors,
        streams: Streams,
    ) -> Result<Vec<Answered>, SyntheticError> {
        self.check()?;
        if size.get() / SPOTS < SPOT.sectors_floor().get() {
            let (needed, spot) = (SIZE_MIN.get() as f64 / 1e9, SPOT.get() / 1_000_000);
            let size = crate::text::sectors(size);
            let problem =
                format!("needs {needed} GB for its {SPOTS} places of {spot} MB, got {size}");
            return Err(wrong("iraw", problem));
        }
        let description = self.server.description();
        let timing = Timing::new(&self.server.published(), &description, streams);
        let mut places = Places::new(&description, size, streams);
        let end =
            self.length.map_or(Instant::from_nanos(u64::MAX), |length| Instant::ZERO + length);
        let mut requests = Vec::new();
        timing.run(streams, end, |request| {
            let extent = places.extent(&request);
            let arrival = Arrival { at: request.at, kind: request.kind, extent };
            requests.push(Answered { arrival, departure: request.departure });
        });
        Ok(requests)
    }

    fn check(self) -> Result<(), SyntheticError> {
        let longest = self.server.published().length;
        match self.length {
            Some(length) if length == Nanos::ZERO || length > longest => {
                let (longest, length) = (crate::text::time(longest), crate::text::time(length));
                let problem =
                    format!("expected more than none and at most {longest}, got {length}");
                Err(wrong("length", problem))
            }
            Some(_) | None => Ok(()),
        }
    }
}

impl FromStr for Iraw {
    type Err = SyntheticError;

    fn from_str(text: &str) -> Result<Self, SyntheticError> {
        let rest = text.trim().strip_prefix(PREFIX);
        let rest =
            rest.ok_or_else(|| wrong("iraw", format!("'{text}' does not begin with {PREFIX}")))?;
        let mut parts = rest.split(',').map(str::trim);
        let server = parts.next().unwrap_or_default();
        let server = server.parse().map_err(|problem| wrong("iraw", problem))?;
        let mut workload = Self::whole(server);
        for part in parts.filter(|part| !part.is_empty()) {
            let Some((key, value)) = part.split_once('=') else {
                return Err(wrong(part, "expected key=value, the key being length"));
            };
            let (key, value) = (key.trim(), value.trim());
            if key != "length" {
                return Err(wrong(key, "no such key: expected length"));
            }
            if workload.length.is_some() {
                return Err(wrong(key, "given twice"));
            }
            workload.length = Some(value.parse().map_err(|error| wrong(key, error))?);
        }
        workload.check()?;
        Ok(workload)
    }
}

/// The form that [`Iraw::from_str`] reads.
impl fmt::Display for Iraw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}", self.server)?;
        match self.length {
            Some(length) => write!(f, ",length={length}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
