//! Whatever can be made up from a seed.

use std::fmt;
use std::str::FromStr;

use levelhead_stats::Streams;
use levelhead_units::Sectors;

use crate::synthetic::{Synthetic, SyntheticError};
use crate::{Arrival, Iraw, iraw};

/// A workload that is made up: `size=40KiB,interval=8ms,count=20000,reads=100%` ([`Synthetic`]), or
/// `iraw:web` ([`Iraw`]).
///
/// ```
/// use levelhead_stats::Streams;
/// use levelhead_trace::Workload;
/// use levelhead_units::Sectors;
///
/// let workload: Workload = "iraw:web,length=10min".parse()?;
/// let arrivals = workload.generate(Sectors::new(17_000_000), Streams::new(7))?;
/// assert!(arrivals.is_sorted_by_key(|arrival| arrival.at));
/// # Ok::<(), levelhead_trace::SyntheticError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub enum Workload {
    /// Poisson arrivals at uniformly random addresses.
    Poisson(Synthetic),
    /// Like a trace of `[IRAW08]`.
    Iraw(Iraw),
}

impl Workload {
    /// Its requests to a drive or an array of `size`, ordered by time: the same for the same seed.
    ///
    /// # Errors
    ///
    /// A setting beyond its limit; a size that is too small for the workload.
    pub fn generate(
        &self,
        size: Sectors,
        streams: Streams,
    ) -> Result<Vec<Arrival>, SyntheticError> {
        match self {
            Self::Poisson(synthetic) => synthetic.generate(size, streams),
            Self::Iraw(iraw) => iraw.generate(size, streams),
        }
    }

    /// What it is, in a few words.
    pub const fn account(&self) -> &'static str {
        match self {
            Self::Poisson(_) => "Poisson arrivals at uniformly random addresses",
            Self::Iraw(_) => "synthetic, after what is published of a trace",
        }
    }
}

impl FromStr for Workload {
    type Err = SyntheticError;

    fn from_str(text: &str) -> Result<Self, SyntheticError> {
        if text.trim_start().starts_with(iraw::PREFIX) {
            return text.parse().map(Self::Iraw);
        }
        text.parse().map(Self::Poisson)
    }
}

/// The form that [`Workload::from_str`] reads.
impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Poisson(synthetic) => synthetic.fmt(f),
            Self::Iraw(iraw) => iraw.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_told_apart_by_their_beginning() {
        for text in ["size=8KiB,interval=1ms,count=7,reads=41%", "iraw:web", "iraw:sas,length=1s"] {
            let workload: Workload = text.parse().unwrap();
            assert_eq!(workload.to_string(), text);
            assert_eq!(matches!(workload, Workload::Iraw(_)), text.starts_with("iraw"));
        }
        let error = "web".parse::<Workload>().unwrap_err().to_string();
        assert!(error.starts_with("workload, web: expected key=value"), "{error}");
    }
}
