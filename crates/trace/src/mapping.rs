//! How a trace is put onto an array, and what one request becomes. The rules are in `onto_array`.

use std::fmt;

use levelhead_units::{Extent, Instant, Sectors};

use crate::{Kind, Trace, text};

/// How addresses get from the trace onto the array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// In proportion: the end of the trace's devices becomes the end of the array.
    Scale,
    /// Around and around: what lies beyond the end begins again at the start.
    Wrap,
}

/// How a trace is put onto an array.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mapping {
    /// The size of the array.
    pub array_sectors: Sectors,
    /// How addresses get onto it.
    pub placement: Placement,
    /// How many times as fast as recorded: times are divided by this.
    pub rate: f64,
}

impl Mapping {
    /// As recorded: at the recorded rate, at the recorded addresses if they all fit the array, and
    /// scaled otherwise.
    pub fn as_recorded(trace: &Trace, array_sectors: Sectors) -> Self {
        let fits = trace.sectors() <= array_sectors;
        let placement = if fits { Placement::Wrap } else { Placement::Scale };
        Self { array_sectors, placement, rate: 1.0 }
    }
}

/// One request to an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// When it arrives.
    pub at: Instant,
    /// What it does.
    pub kind: Kind,
    /// The sectors it reads or writes.
    pub extent: Extent,
}

/// A trace that cannot be put onto an array as asked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MappingError {
    /// A request is longer than the array.
    TooLong {
        /// The request, counted from 0 in the order of time.
        request: u64,
        /// How many sectors it touches.
        sectors: Sectors,
        /// The size of the array.
        array_sectors: Sectors,
    },
    /// The rate is no number above zero, or stretches the trace beyond 100 years.
    Rate {
        /// The rate asked for.
        rate: f64,
    },
}

/// The longest that a trace may last after division by the rate.
const SPAN_MAX_YEARS: u64 = 100;
pub(crate) const SPAN_MAX_NANOS: f64 = (SPAN_MAX_YEARS * 365 * 86_400) as f64 * 1e9;

impl fmt::Display for MappingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong { request, sectors, array_sectors } => write!(
                f,
                "request {request} of the trace touches {}, more than the array has: {}",
                text::sectors(*sectors),
                text::sectors(*array_sectors)
            ),
            Self::Rate { rate } => write!(
                f,
                "rate {rate} is not possible: expected a number above zero with which the trace \
                 lasts at most {SPAN_MAX_YEARS} years"
            ),
        }
    }
}

impl std::error::Error for MappingError {}

/// Where a request went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Placed {
    pub(crate) extent: Extent,
    /// Whether it was moved down to end with the array (M2).
    pub(crate) moved: bool,
}
