//! The decoder of the code inside a drive, measured against those of ldpc-toolbox.
//!
//! All decode the same code, at most 50 iterations, random codewords under white Gaussian noise of the same bit error rate.
//! The peers are given their frames ready, as log-likelihood ratios, and only their decoding is timed; ours draws
//! noise, too, and does all else that a count of failures takes: that is what `with_noise` means.
//!
//! What comes before the first iteration, noise and first syndrome, is measured as a count with no iteration at all.
//!
//! Turns and CPU time are as in [`measure`](crate::measure): everybody once in each round, in an order that moves on
//! by one, and the median of the rounds counts.

mod report;
mod toolbox;

use std::time::Duration;

use levelhead_ldpc::{BLOCK_FRAMES, ChannelKind, Kernel, Point, ZeroForcing};

use crate::measure::{cpu_time, median};
pub(crate) use report::Report;
use report::Row;
use toolbox::{PEERS, Toolbox};

/// Raw bit error rates.
const BERS: [f64; 2] = [0.0100, 0.0170];

/// The most iterations of a decoding.
const ITERATIONS: u32 = 50;

/// What noise is drawn from.
const SEED: u64 = 7;

/// What a turn came to.
#[derive(Clone, Copy, Debug)]
struct Turn {
    frames: u64,
    failures: u64,
    took: Duration,
}

/// One decoder under one bit error rate.
enum Contestant {
    Ours {
        point: Point,
        kernel: Kernel,
        /// The next block.
        number: u64,
    },
    Peer(Box<Toolbox>),
}

impl Contestant {
    fn turn(&mut self) -> Turn {
        match self {
            Self::Ours { point, kernel, number } => {
                let start = cpu_time();
                let count = point.block(*number, *kernel).expect("a channel has this rate");
                let took = cpu_time() - start;
                *number += 1;
                Turn { frames: BLOCK_FRAMES, failures: count.failed.count_ones().into(), took }
            }
            Self::Peer(toolbox) => toolbox.turn(),
        }
    }
}

/// What a contestant came to.
struct Measured {
    frames: u64,
    failures: u64,
    frames_per_s: f64,
}

/// Everybody's figures, in their order.
fn race(contestants: &mut [Contestant], rounds: usize) -> Vec<Measured> {
    let mut turns: Vec<Vec<Turn>> = contestants.iter().map(|_| Vec::new()).collect();
    // What the first round needs, such as caches and clocks, is not to be paid by the one who begins.
    contestants.iter_mut().for_each(|contestant| {
        contestant.turn();
    });
    for round in 0..rounds {
        for place in 0..contestants.len() {
            let at = (place + round) % contestants.len();
            turns[at].push(contestants[at].turn());
        }
    }
    let measured = |turns: &Vec<Turn>| Measured {
        frames: turns.iter().map(|turn| turn.frames).sum(),
        failures: turns.iter().map(|turn| turn.failures).sum(),
        frames_per_s: median(
            turns.iter().map(|turn| turn.frames as f64 / turn.took.as_secs_f64()).collect(),
        ),
    };
    turns.iter().map(measured).collect()
}

/// Our kernels that this machine has, the fastest first, but the one that defines the others.
fn kernels() -> Vec<Kernel> {
    Kernel::available().rev().filter(|kernel| *kernel != Kernel::Naive).collect()
}

/// All rows.
pub(crate) fn measure(rounds: usize) -> Report {
    let mut rows = Vec::new();
    for ber in BERS {
        eprintln!("BER {ber:.4}");
        let point = |forced, iterations| Point {
            forced,
            channel: ChannelKind::Soft,
            ber,
            iterations,
            seed: SEED,
        };
        let mut contestants: Vec<Contestant> =
            PEERS.map(|peer| Contestant::Peer(Box::new(Toolbox::new(peer, ber)))).into();
        for kernel in kernels() {
            let points = ZeroForcing::ALL.map(|forced| point(forced, ITERATIONS));
            // The last one has no iteration.
            let points = points.into_iter().chain([point(ZeroForcing::None, 0)]);
            contestants.extend(points.map(|point| Contestant::Ours { point, kernel, number: 0 }));
        }
        let measured = race(&mut contestants, rounds);
        let (peers, ours) = measured.split_at(PEERS.len());
        rows.extend(
            PEERS.iter().zip(peers).map(|(peer, measured)| Row::peer(*peer, ber, measured)),
        );
        let basis = peers[0].frames_per_s;
        for (kernel, measured) in kernels().into_iter().zip(ours.chunks(ZeroForcing::ALL.len() + 1))
        {
            let (begun, measured) = measured.split_last().expect("one without an iteration");
            for (forced, measured) in ZeroForcing::ALL.into_iter().zip(measured) {
                let row = Row::ours(kernel, ber, forced, measured).against(basis);
                rows.push(match forced {
                    ZeroForcing::None => row.begun(begun),
                    ZeroForcing::B256 | ZeroForcing::B512 | ZeroForcing::B1024 => row,
                });
            }
        }
    }
    Report::new(rounds, rows)
}
