//! How it is timed: by the CPU time of the thread, in rounds, everybody once in each.
//!
//! Other programs may take the CPU away (that costs no CPU time) or fill caches and memory busses
//! (that slows everybody, the one more, the other less). So contestants take turns of a few
//! milliseconds, in an order that moves on by one each round, and the median of the rounds counts.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use crate::code::Cache;
use crate::kernel::SECTOR_SIZE;
use crate::pool::Codeword;

/// An implementation that can do the operation.
pub(crate) trait Coder {
    /// Does it to one codeword.
    fn run(&mut self, codeword: &mut Codeword<'_>);
}

/// How long it is measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort {
    /// Rounds; the median counts.
    pub(crate) rounds: usize,
    /// CPU time of one turn, about; at least one codeword is worked on.
    pub(crate) turn: Duration,
}

/// CPU time this thread has had.
pub(crate) fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).expect("below 1e9"))
}

/// The rate of each coder in GB (of data) per second of CPU time.
pub(crate) fn race(
    codewords: &mut [Codeword<'_>],
    cache: Cache,
    data_count: usize,
    effort: Effort,
    coders: &mut [&mut dyn Coder],
) -> Vec<f64> {
    let mut cursor = 0;
    let mut turn = |coder: &mut dyn Coder, count: u32| {
        let start = cpu_time();
        for _ in 0..count {
            coder.run(&mut codewords[cursor]);
            match cache {
                Cache::Dram => cursor = (cursor + 1) % codewords.len(),
                Cache::Hot => {}
            }
        }
        cpu_time() - start
    };
    let counts: Vec<u32> = coders
        .iter_mut()
        .map(|coder| {
            let mut count = 1;
            loop {
                let took = turn(*coder, count);
                if took * 4 >= effort.turn {
                    let ratio = effort.turn.as_secs_f64() / took.as_secs_f64();
                    return (f64::from(count) * ratio).ceil() as u32;
                }
                count *= 2;
            }
        })
        .collect();
    let mut rates = vec![Vec::with_capacity(effort.rounds); coders.len()];
    for round in 0..effort.rounds {
        for place in 0..coders.len() {
            let at = (place + round) % coders.len();
            match cache {
                Cache::Dram => {}
                // Its tables and its codeword are to be in the cache when its turn begins.
                Cache::Hot => drop(turn(coders[at], 1)),
            }
            let took = turn(coders[at], counts[at]);
            let bytes = f64::from(counts[at]) * (data_count * SECTOR_SIZE) as f64;
            rates[at].push(bytes / took.as_secs_f64() / 1e9);
        }
    }
    rates.into_iter().map(median).collect()
}

/// The one in the middle.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    assert!(!values.is_empty(), "a median of something");
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_value_in_the_middle() {
        assert!((median(vec![3.0, 1.0, 2.0]) - 2.0).abs() < f64::EPSILON);
        assert!((median(vec![7.0]) - 7.0).abs() < f64::EPSILON);
    }
}
