//! A decorator that fails reads on purpose, from a seed.

use levelhead_stats::Rng;
use levelhead_units::{Ratio, Sectors};

use crate::{BlockDevice, Command, Data, Effort, Outcome, Reply, Request, SectorSet};

/// What goes wrong, and how often.
#[derive(Clone, Copy, Debug)]
pub struct Faults {
    /// Probability that a sector's first pass fails, each time it is read.
    pub soft: Ratio,
    /// Probability that a sector whose first pass failed cannot be read with full effort either.
    pub hard: Ratio,
}

/// A device whose reads fail as [`Faults`] says: *unknown* after little effort, *damaged* after full
/// effort. Failed sectors come back overwritten, so that they cannot be used by accident.
pub struct Faulty<D> {
    inner: D,
    faults: Faults,
    rng: Rng,
    gone: bool,
}

impl<D: BlockDevice> Faulty<D> {
    /// Puts `faults` over `inner`, drawn from `rng`.
    pub fn new(inner: D, faults: Faults, rng: Rng) -> Self {
        Self { inner, faults, rng, gone: false }
    }

    /// From now on every request ends as [`Outcome::Gone`].
    pub fn disappear(&mut self) {
        self.gone = true;
    }

    /// The device underneath.
    pub fn inner(&self) -> &D {
        &self.inner
    }

    fn spoil(&mut self, command: &Command, reply: &mut Reply) {
        let Command::Read { extent, effort } = *command else { return };
        let Outcome::Done { unknown, damaged } = &mut reply.outcome else { return };
        let soft: Vec<u32> = (0..extent.sectors.get() as u32)
            .filter(|_| self.rng.chance(self.faults.soft))
            .collect();
        let (set, failed): (&mut SectorSet, Vec<u32>) = match effort {
            Effort::Fast | Effort::Limited(_) => (unknown, soft),
            Effort::Full | Effort::Medium => {
                (damaged, soft.into_iter().filter(|_| self.rng.chance(self.faults.hard)).collect())
            }
        };
        let mut buf = std::mem::replace(&mut reply.data, Data::None).into_buf();
        for &offset in &failed {
            buf.part_mut(offset as usize, 1).fill(0xEE);
        }
        reply.data = Data::Buf(buf);
        *set = set.iter().chain(failed).collect();
    }
}

impl<D: BlockDevice> BlockDevice for Faulty<D> {
    fn size(&self) -> Sectors {
        self.inner.size()
    }

    fn run(&mut self, batch: Vec<Request>) -> Vec<Reply> {
        if self.gone {
            return batch.iter().map(|_| Reply::bare(Outcome::Gone)).collect();
        }
        let commands: Vec<Command> = batch.iter().map(|request| request.command).collect();
        let mut replies = self.inner.run(batch);
        for (command, reply) in commands.iter().zip(&mut replies) {
            self.spoil(command, reply);
        }
        replies
    }
}
