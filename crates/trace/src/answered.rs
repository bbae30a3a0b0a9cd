//! Requests with the times at which they were answered, and the busy periods and idle intervals that
//! follow from them.

use std::ops::Range;

use levelhead_units::{Instant, Nanos};

use crate::onto_array::touched;
use crate::{Arrival, Trace};

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

/// The requests of a trace to one drive: the device that got most of them, in whole sectors. They were
/// answered when the trace says ([`Trace::responses`]); where it does not, one after another in the order
/// of their arrival, after `service` each.
pub fn recorded(trace: &Trace, service: Nanos) -> Vec<Answered> {
    let most = trace.devices.iter().map(|device| device.requests).max();
    let drive = trace.devices.iter().position(|device| Some(device.requests) == most);
    let mut free = Instant::ZERO;
    let mut answered = Vec::new();
    for (idx, record) in trace.records.iter().enumerate() {
        if Some(record.device as usize) != drive {
            continue;
        }
        let at = Instant::ZERO + record.at;
        let departure = match trace.responses.get(idx) {
            Some(response) => at + *response,
            None => at.max(free) + service,
        };
        free = departure;
        let arrival = Arrival { at, kind: record.kind, extent: touched(record) };
        answered.push(Answered { arrival, departure });
    }
    answered
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

    fn read(text: &str) -> Trace {
        crate::read(text.as_bytes(), "t", None, &mut |_| ()).unwrap()
    }

    #[test]
    fn requests_to_the_busiest_device_are_answered_when_the_trace_says() {
        let text =
            "100,hm,1,Write,0,4096,7\n200,hm,0,Read,512,4096,30\n250,hm,0,Write,8192,512,5\n";
        let found = recorded(&read(text), Nanos::from_millis(5));
        let times: Vec<(u64, u64)> =
            found.iter().map(|one| (one.arrival.at.as_nanos(), one.departure.as_nanos())).collect();
        assert_eq!(times, [(10_000, 13_000), (15_000, 15_500)]);
        assert_eq!(found[0].arrival.extent, Extent::new(Lba::ZERO, Sectors::new(2)));
        assert_eq!(found[1].arrival.kind, Kind::Write);
    }

    #[test]
    fn requests_whose_answers_are_not_recorded_are_served_in_turn() {
        let trace = read("0 0 0 8 1\n2000000 0 64 8 0\n20000000 0 8 8 1\n");
        let departures: Vec<u64> = recorded(&trace, Nanos::from_millis(5))
            .iter()
            .map(|one| one.departure.as_nanos() / 1_000_000)
            .collect();
        assert_eq!(departures, [5, 10, 25]);
    }

    #[test]
    fn no_requests_have_no_periods() {
        assert_eq!(periods(&[]).count(), 0);
    }
}
