//! When requests arrive and are answered: busy periods and idle intervals in turns.
//!
//! ```text
//!   calm ..... storm .... calm ... heavy .. calm ...          stretches, each of many cycles
//!   |busy|idle    |busy|idle|...                              cycles
//!   a a  a d d d  a                                           arrivals, and departures one after another
//! ```
//!
//! # Invariants
//!
//! - B1. Requests are served in the order in which they arrive, one at a time, and a busy period has no
//!   gap: each request but its first arrives before what has come before it is served.
//! - B2. The lengths of the idle intervals and the service times of calm cycles have the means with which
//!   the whole trace has those that are published.

use levelhead_stats::{Rng, Streams};
use levelhead_units::{Instant, Nanos};

use super::servers::{Description, Published};
use crate::Kind;

/// The shape of the Weibull distribution of what long idle intervals have above [`LONG`].
const SHAPE: f64 = 0.6;

/// The mean of a Weibull distribution of shape 0.6 and scale 1: Gamma(1 + 1/0.6).
const MEAN_AT_SCALE_ONE: f64 = 1.504_575_488_251_556;

/// The shares of all idle intervals that are below 10 ms and above 100 ms.
const SHORT_SHARE: f64 = 0.1;
const LONG_SHARE: f64 = 0.4;

/// The lengths between which calm idle intervals are short, or middling; long ones begin at the end.
const SHORT: [Nanos; 2] = [Nanos::from_millis(1), Nanos::from_millis(10)];
const MIDDLE: [Nanos; 2] = [SHORT[1], LONG];
const LONG: Nanos = Nanos::from_millis(100);

/// The part of a service time that is always the same; the rest is exponential.
const SERVICE_FIXED: f64 = 0.4;

/// What a cycle is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Calm,
    Storm,
    Heavy,
}

/// Cycles of one phase that follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stretch {
    phase: Phase,
    cycles: u64,
}

/// A request without its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Timed {
    pub(super) at: Instant,
    pub(super) departure: Instant,
    pub(super) kind: Kind,
    pub(super) phase: Phase,
    /// Whether it is the first of its stretch.
    pub(super) is_first: bool,
}

/// What follows from the published figures and what was fitted to them.
#[derive(Clone, Copy, Debug)]
struct Laws {
    calm_cycles: u64,
    /// The shares of calm idle intervals that are short and long.
    short_share: f64,
    long_share: f64,
    /// The mean of what long idle intervals have above [`LONG`].
    above_long: Nanos,
    calm_service: Nanos,
    calm_writes: f64,
}

impl Laws {
    fn of(published: &Published, description: &Description) -> Self {
        let Description { calm, storms, heavy, .. } = description;
        let idle_mean = published.idle_mean.get() as f64;
        let idle_total = published.length.get() as f64 * published.idle.get();
        let busy_total = published.length.get() as f64 - idle_total;
        let cycles = idle_total / idle_mean;

        let stormy = storms.cycles.iter().sum::<u64>() as f64;
        let storm_writes = stormy * storms.writes as f64;
        let heavy_cycles = heavy.map_or(0.0, |heavy| heavy.cycles as f64);
        let heavy_requests = heavy.map_or(0.0, |heavy| heavy_cycles * heavy.requests_mean);
        let heavy_writes = heavy.map_or(0.0, |heavy| heavy_requests * heavy.writes);
        let calm_cycles = cycles - stormy - heavy_cycles;
        let calm_requests = calm_cycles * calm.requests_mean;

        let short = SHORT_SHARE * cycles - stormy;
        let long = LONG_SHARE * cycles;
        assert!(short >= 0.0, "storms have no more idle intervals than may be short");
        let idle_elsewhere = stormy * log_uniform_mean(storms.idle)
            + heavy.map_or(0.0, |heavy| heavy_cycles * log_uniform_mean(heavy.idle));
        let idle_below_long = short * log_uniform_mean(SHORT)
            + (calm_cycles - short - long) * log_uniform_mean(MIDDLE);
        let long_mean = (idle_total - idle_elsewhere - idle_below_long) / long;

        let busy_elsewhere = storm_writes * storms.service.get() as f64
            + heavy.map_or(0.0, |heavy| heavy_requests * heavy.service.get() as f64);
        let calm_service = (busy_total - busy_elsewhere) / calm_requests;
        let requests = calm_requests + storm_writes + heavy_requests;
        let writes = requests * (1.0 - published.reads.get());
        Self {
            calm_cycles: calm_cycles.round() as u64,
            short_share: short / calm_cycles,
            long_share: long / calm_cycles,
            above_long: nanos(long_mean - LONG.get() as f64),
            calm_service: nanos(calm_service),
            calm_writes: (writes - storm_writes - heavy_writes) / calm_requests,
        }
    }
}

/// Draws times and kinds, one busy period after another.
pub(super) struct Timing<'a> {
    description: &'a Description,
    laws: Laws,
    idle: Rng,
    counts: Rng,
    service: Rng,
    arrivals: Rng,
    kinds: Rng,
}

impl<'a> Timing<'a> {
    pub(super) fn new(
        published: &Published,
        description: &'a Description,
        streams: Streams,
    ) -> Self {
        Self {
            description,
            laws: Laws::of(published, description),
            idle: streams.stream("iraw/idle"),
            counts: streams.stream("iraw/counts"),
            service: streams.stream("iraw/service"),
            arrivals: streams.stream("iraw/arrivals"),
            kinds: streams.stream("iraw/kinds"),
        }
    }

    /// Hands all requests that arrive before `end` to `take`, in order.
    pub(super) fn run(mut self, streams: Streams, end: Instant, mut take: impl FnMut(Timed)) {
        let mut now = Instant::ZERO;
        for stretch in stretches(&self.laws, self.description, streams) {
            for cycle in 0..stretch.cycles {
                now = self.busy(stretch.phase, cycle == 0, now, &mut |request: Timed| {
                    if request.at < end {
                        take(request);
                    }
                });
                now = now + self.idle(stretch.phase);
                if now >= end {
                    return;
                }
            }
        }
    }

    /// One busy period that begins at `start`; when it ends.
    fn busy(
        &mut self,
        phase: Phase,
        is_first: bool,
        start: Instant,
        take: &mut impl FnMut(Timed),
    ) -> Instant {
        let (mut at, mut departure) = (start, start);
        for request in 0..self.count(phase) {
            if request > 0 {
                let room = (departure - at).get() as f64;
                at = at + nanos((room * self.arrivals.unit()).floor());
            }
            departure = departure + self.service_time(phase);
            let is_first = is_first && request == 0;
            take(Timed { at, departure, kind: self.kind(phase), phase, is_first });
        }
        departure
    }

    /// The number of requests in a busy period.
    fn count(&mut self, phase: Phase) -> u64 {
        match phase {
            Phase::Calm => geometric(&mut self.counts, self.description.calm.requests_mean),
            Phase::Storm => self.description.storms.writes,
            Phase::Heavy => {
                let mean = self.heavy().requests_mean;
                geometric(&mut self.counts, mean)
            }
        }
    }

    fn service_time(&mut self, phase: Phase) -> Nanos {
        let mean = match phase {
            Phase::Calm => self.laws.calm_service,
            Phase::Storm => self.description.storms.service,
            Phase::Heavy => self.heavy().service,
        };
        let fixed = nanos(mean.get() as f64 * SERVICE_FIXED);
        // A service takes some time, however little: else a busy period could be none.
        (fixed + self.service.exponential(mean - fixed)).max(Nanos::new(1))
    }

    fn kind(&mut self, phase: Phase) -> Kind {
        let writes = match phase {
            Phase::Calm => self.laws.calm_writes,
            Phase::Storm => 1.0,
            Phase::Heavy => self.heavy().writes,
        };
        if self.kinds.unit() < writes { Kind::Write } else { Kind::Read }
    }

    fn idle(&mut self, phase: Phase) -> Nanos {
        match phase {
            Phase::Storm => log_uniform(&mut self.idle, self.description.storms.idle),
            Phase::Heavy => {
                let range = self.heavy().idle;
                log_uniform(&mut self.idle, range)
            }
            Phase::Calm => {
                let which = self.idle.unit();
                if which < self.laws.short_share {
                    log_uniform(&mut self.idle, SHORT)
                } else if which < self.laws.short_share + self.laws.long_share {
                    LONG + weibull(&mut self.idle, self.laws.above_long)
                } else {
                    log_uniform(&mut self.idle, MIDDLE)
                }
            }
        }
    }

    fn heavy(&self) -> super::servers::Heavy {
        self.description.heavy.expect("only a description that has it has such a stretch")
    }
}

/// The stretches of a trace: storms, and the heavy one, in random order at random places among the calm
/// cycles. Between two of them, before the first and after the last there are at least a quarter of the
/// calm cycles that there would be if all these distances were equal: so that what one leaves behind is
/// gone before the next.
fn stretches(laws: &Laws, description: &Description, streams: Streams) -> Vec<Stretch> {
    let mut rng = streams.stream("iraw/stretches");
    let storm = |&cycles: &u64| Stretch { phase: Phase::Storm, cycles };
    let mut others: Vec<Stretch> = description.storms.cycles.iter().map(storm).collect();
    others.extend(
        description.heavy.map(|heavy| Stretch { phase: Phase::Heavy, cycles: heavy.cycles }),
    );
    for last in (1..others.len()).rev() {
        others.swap(last, rng.below(last as u64 + 1) as usize);
    }
    let distance_min = laws.calm_cycles / (4 * (others.len() as u64 + 1));
    let free = laws.calm_cycles - distance_min * (others.len() as u64 + 1);
    let mut places: Vec<u64> = others.iter().map(|_| rng.below(free + 1)).collect();
    places.sort_unstable();
    let mut all = Vec::with_capacity(2 * others.len() + 1);
    let mut before = 0;
    for (place, other) in places.into_iter().zip(others) {
        all.push(Stretch { phase: Phase::Calm, cycles: place - before + distance_min });
        all.push(other);
        before = place;
    }
    all.push(Stretch { phase: Phase::Calm, cycles: free - before + distance_min });
    all
}

/// A number of nanoseconds that is positive and far below the largest.
fn nanos(count: f64) -> Nanos {
    assert!((0.0..1e18).contains(&count), "{count} ns is not a length of time here");
    Nanos::new(count.round() as u64)
}

/// A length whose logarithm is uniform.
fn log_uniform(rng: &mut Rng, [low, high]: [Nanos; 2]) -> Nanos {
    let (low, high) = (low.get() as f64, high.get() as f64);
    nanos(low * ((high / low).ln() * rng.unit()).exp())
}

fn log_uniform_mean([low, high]: [Nanos; 2]) -> f64 {
    let (low, high) = (low.get() as f64, high.get() as f64);
    (high - low) / (high / low).ln()
}

/// A length of a Weibull distribution of shape [`SHAPE`].
fn weibull(rng: &mut Rng, mean: Nanos) -> Nanos {
    let exponential = -(1.0 - rng.unit()).ln();
    nanos(mean.get() as f64 / MEAN_AT_SCALE_ONE * exponential.powf(1.0 / SHAPE))
}

/// A number from 1 on that is geometric.
fn geometric(rng: &mut Rng, mean: f64) -> u64 {
    let stays = 1.0 - 1.0 / mean;
    1 + ((1.0 - rng.unit()).ln() / stays.ln()).floor() as u64
}
