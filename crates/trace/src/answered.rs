//! Requests with the times at which they were answered, and the busy periods and idle intervals that
//! follow from them.

use std::ops::Range;

use levelhead_units::{Instant, Nanos};

use crate::Arrival;

/// A request, and when it was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answered {
    /// The request.
    pub arrival: Arrival,
    /// When it was answered: not before it arrived.
    pub departure: Instant,
}

/// A time in which a drive had something to do without a pause, and what came after.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Period {
    /// The requests that arrived in it, as places in the whole list.
    pub requests: Range<usize>,
    /// When the first of them arrived.
    pub start: Instant,
    /// How long it was.
    pub busy: Nanos,
    /// How long the drive had nothing to do afterwards; none after the last period.
    pub idle: Option<Nanos>,
}

/// The busy periods of requests, which are ordered by arrival: as long as any request is there that has
/// not been answered, the drive is busy. Where one arrives in the moment in which the last was answered
/// the period goes on.
pub fn periods(requests: &[Answered]) -> impl Iterator<Item = Period> {
    let mut from = 0;
    std::iter::from_fn(move || {
        let first = requests.get(from)?;
        let start = first.arrival.at;
        let mut end = first.departure;
        let mut next = from + 1;
        while let Some(request) = requests.get(next)
            && request.arrival.at <= end
        {
            end = end.max(request.departure);
            next += 1;
        }
        let period = Period {
            requests: from..next,
            start,
            busy: end.saturating_since(start),
            idle: requests.get(next).map(|request| request.arrival.at - end),
        };
        from = next;
        Some(period)
    })
}

#[cfg(test)]
mod tests {
    use levelhead_units::{Extent, Lba, Sectors};

    use super::*;
    use crate::Kind;

    fn requests(times: &[(u64, u64)]) -> Vec<Answered> {
        let extent = Extent::new(Lba::ZERO, Sectors::new(1));
        let request = |&(at, departure)| Answered {
            arrival: Arrival { at: Instant::from_nanos(at), kind: Kind::Read, extent },
            departure: Instant::from_nanos(departure),
        };
        times.iter().map(request).collect()
    }

    #[test]
    fn a_period_lasts_until_everything_that_has_arrived_is_answered() {
        // The second is answered before the first; the fourth arrives as the third is answered.
        let requests = requests(&[(10, 40), (20, 30), (35, 50), (50, 60), (90, 91), (100, 120)]);
        let found: Vec<Period> = periods(&requests).collect();
        let period = |requests, start, busy, idle: Option<u64>| Period {
            requests,
            start: Instant::from_nanos(start),
            busy: Nanos::new(busy),
            idle: idle.map(Nanos::new),
        };
        let wanted = [
            period(0..4, 10, 50, Some(30)),
            period(4..5, 90, 1, Some(9)),
            period(5..6, 100, 20, None),
        ];
        assert_eq!(found, wanted);
    }

    #[test]
    fn no_requests_have_no_periods() {
        assert_eq!(periods(&[]).count(), 0);
    }
}
