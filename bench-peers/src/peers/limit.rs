//! The true limit: all sources read and all results written, and no arithmetic.
//!
//! No single way of doing that is the fastest for every shape and machine, so several take part, and the
//! fastest is the limit.

use crate::code::{Cache, Operation};
use crate::kernel::{Manner, Order, Stores, Width};
use crate::measure::Coder;
use crate::pool::Codeword;

/// One way.
pub(crate) struct Mover {
    manner: Manner,
    width: Width,
    /// Whether what is written is read before.
    reads_wanted: bool,
}

/// All ways.
pub(crate) fn movers(operation: &Operation, cache: Cache) -> Vec<Mover> {
    let reads_wanted = match operation {
        Operation::Encode | Operation::Reconstruct { .. } => false,
        Operation::Update | Operation::Accumulate => true,
    };
    let ahead = match cache {
        Cache::Dram => vec![0, 2048, 4096, 8192],
        Cache::Hot => vec![0],
    };
    let stores = match (cache, reads_wanted) {
        (Cache::Dram, false) => vec![Stores::Past, Stores::Cached],
        (Cache::Hot, _) | (_, true) => vec![Stores::Cached],
    };
    let mut movers = Vec::new();
    for order in [Order::InTurn, Order::Together] {
        for &ahead in &ahead {
            for &stores in &stores {
                let manner = Manner { order, ahead, stores };
                movers.push(Mover { manner, width: Width::here(), reads_wanted });
            }
        }
    }
    movers
}

impl Coder for Mover {
    fn run(&mut self, codeword: &mut Codeword<'_>) {
        let (sources, wanted) = codeword.split();
        if self.reads_wanted {
            self.width.read(wanted);
        }
        self.width.move_all(sources, wanted, self.manner);
    }
}
