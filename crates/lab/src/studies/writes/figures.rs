//! What became of a load of writes, whichever array they were sent to.

use levelhead_stats::Summary;
use levelhead_units::{Instant, Nanos, SECTOR_SIZE, Sectors};

use crate::replay::{End, Run, Sending};
use crate::studies::Measured;

/// One write that was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Answered {
    /// Its place in the list of arrivals.
    pub(super) index: u64,
    /// When it was answered.
    pub(super) at: Instant,
    /// From its arrival, or in a closed loop from its sending, to its answer.
    pub(super) latency: Nanos,
}

/// All of them.
#[derive(Clone, Debug)]
pub(super) struct Sent {
    /// In the order of the answers.
    pub(super) answered: Vec<Answered>,
    /// Whether it went to its end.
    pub(super) end: End,
    /// Commands that drives were given.
    pub(super) commands: u64,
}

impl From<Run> for Sent {
    fn from(run: Run) -> Self {
        let answered = run.served.iter().map(|one| Answered {
            index: one.index,
            at: one.at,
            latency: one.latency,
        });
        Self { answered: answered.collect(), end: run.end, commands: run.submitted }
    }
}

impl Sent {
    /// The figures. Of an open loop the first tenth of the writes does not count. Of a closed one the first half of
    /// the answers does not, until as much waits for its place as ever will.
    pub(super) fn measured(&self, sending: Sending, size: Sectors) -> Measured {
        let count = self.answered.len();
        let counts: Vec<Answered> = match sending {
            Sending::Open | Sending::OpenToTheEnd => {
                let first = count as u64 / 10;
                self.answered.iter().copied().filter(|one| one.index >= first).collect()
            }
            Sending::Closed(_) => self.answered[count / 2..].to_vec(),
        };
        let mut latencies: Vec<Nanos> = counts.iter().map(|one| one.latency).collect();
        let summary = Summary::of(&mut latencies);
        let bound = |time: Nanos| match self.end {
            End::Complete => time.as_millis_f64(),
            End::Overloaded => f64::INFINITY,
        };
        let span = match (counts.first(), counts.last()) {
            (Some(first), Some(last)) => (last.at.saturating_since(first.at)).as_secs_f64(),
            _ => 0.0,
        };
        let rate = if span > 0.0 { (counts.len() - 1) as f64 / span } else { 0.0 };
        Measured::default()
            .with("mean", bound(summary.mean))
            .with("p99", bound(summary.p99))
            .with("rate", rate)
            .with("throughput", rate * size.get() as f64 * SECTOR_SIZE as f64 / 1e6)
            .with("commands", self.commands as f64 / count.max(1) as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(end: End) -> Sent {
        let at = |index: u64| Answered {
            index,
            at: Instant::ZERO + Nanos::from_millis(if index < 5 { index } else { index * 10 }),
            latency: Nanos::from_millis(index + 1),
        };
        Sent { answered: (0..10).map(at).collect(), end, commands: 40 }
    }

    #[test]
    fn rate_of_a_closed_loop_is_that_of_its_second_half() {
        let size = Sectors::new(16);
        let measured = sent(End::Complete).measured(Sending::Closed(4), size);
        let value = |name: &str| measured.values[name];
        assert!((value("rate") - 100.0).abs() < 1e-9, "{measured:?}");
        assert!((value("throughput") - 100.0 * 65_536.0 / 1e6).abs() < 1e-9, "{measured:?}");
        assert!((value("commands") - 4.0).abs() < 1e-9, "{measured:?}");
        assert!((value("mean") - 8.0).abs() < 1e-9, "{measured:?}");
    }

    #[test]
    fn first_tenth_of_an_open_loop_and_the_times_of_an_overloaded_one_do_not_count() {
        let size = Sectors::new(1);
        let measured = sent(End::Complete).measured(Sending::Open, size);
        assert!((measured.values["mean"] - 6.0).abs() < 1e-9, "{measured:?}");
        let measured = sent(End::Overloaded).measured(Sending::Open, size);
        assert!(measured.values["mean"].is_infinite());
    }
}
