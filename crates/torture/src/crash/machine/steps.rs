//! Which command of a machine ends next, and when time passes instead.

use levelhead_array::Submit;
use levelhead_array::reserve::HEAD;
use levelhead_block::{Command, Outcome, SectorSet};
use levelhead_stats::Rng;
use levelhead_units::{Extent, Instant, Lba, Nanos, Sectors};

use super::{Inside, Machine, Of, Trouble, Wrong};

/// The longest step of time that a disk sees which could end a command and does not, where the array's patience has an end.
const STEP_MAX: Nanos = Nanos::from_secs(1);

/// A disk keeps no command for longer because it sits out or is late with the metadata, and so is never found silent.
const KEPT_MAX: Nanos = Nanos::from_secs(2);

/// Of this number of superblocks and generations that are read back, one read takes its time.
const READ_BACK_KEPT: u64 = 16;

/// Of this number of flushes of a disk that is coming, one fails, and one is refused.
const COMING_FAILS: u64 = 10;

impl Machine {
    /// One command ends, or time passes if there is none: a step from one effect to the next. Returns whether there was
    /// anything to do.
    pub fn step(&mut self, rng: &mut Rng) -> bool {
        self.now = self.now + Nanos::from_micros(100);
        let mut able = self.able();
        // A disk with which nothing is wrong is never found silent.
        let is_stuck = able.is_empty();
        let may_wait = |at: Instant| !self.has_patience || is_stuck || at < self.now + STEP_MAX;
        let deadline = self.array.deadline().filter(|&at| may_wait(at));
        let keeps_metadata = self.slow_metadata && rng.below(16) > 0;
        let keeps_aside = self.slow_aside && rng.below(32) > 0;
        let is_kept = |&at: &usize| {
            let Inside { since, submit, .. } = &self.inside[at];
            let is_aside = self.array.sat_out().contains(submit.drive);
            let is_late = (keeps_metadata && self.is_of_metadata(at)) || (keeps_aside && is_aside);
            is_late && self.now < *since + KEPT_MAX
        };
        if deadline.is_some() || !able.iter().all(is_kept) {
            able.retain(|at| !is_kept(at));
        }
        let waits_for_time = able.is_empty() || rng.below(12) == 0;
        match deadline {
            Some(at) if waits_for_time => {
                self.now = self.now.max(at);
                self.array.handle_timeout(self.now);
                self.carry_out();
            }
            Some(_) | None if able.is_empty() => return false,
            Some(_) | None => {
                let at = able[rng.below(able.len() as u64) as usize];
                self.finish(at, rng);
                self.end_read_backs(rng);
            }
        }
        true
    }

    /// What the array records of itself is read back. That changes nothing on the disks, and mostly ends at once, so that a swarm
    /// has its steps for what does.
    fn end_read_backs(&mut self, rng: &mut Rng) {
        while !self.slow_metadata && rng.below(READ_BACK_KEPT) > 0 {
            let is_read = |at: &usize| {
                matches!(self.inside[*at].submit.command, Command::Read { .. })
                    && self.inside[*at].of == Of::Place
                    && self.is_of_metadata(*at)
            };
            let Some(at) = self.able().into_iter().find(is_read) else { return };
            self.finish(at, rng);
        }
    }

    /// The commands inside disks that do not hang.
    fn able(&self) -> Vec<usize> {
        let hangs = |&at: &usize| {
            let Inside { of, submit: Submit { drive, .. }, .. } = self.inside[at];
            of == Of::Place
                && self.trouble == Some(Trouble { drive, wrong: Wrong::Hangs })
                && !self.array.away().contains(drive)
        };
        (0..self.inside.len()).filter(|at| !hangs(at)).collect()
    }

    /// Whether a command is about what the array records of itself.
    fn is_of_metadata(&self, at: usize) -> bool {
        let Submit { drive, command, .. } = &self.inside[at].submit;
        // Two superblocks and the metadata between them, and the last superblock.
        let first = Extent::new(Lba::ZERO, HEAD);
        let size = self.disks[drive.as_usize()].size();
        let last = Lba::ZERO + (size - Sectors::new(1));
        command.extent().is_some_and(|own| first.contains(own.lba) || own.lba >= last)
    }

    fn finish(&mut self, at: usize, rng: &mut Rng) {
        let inside = self.inside.remove(at);
        let hindered = match inside.of {
            Of::Place => self.hindered(&inside, rng),
            Of::Coming => self.coming_hindered(&inside, rng),
            Of::Gone => None,
        };
        self.conclude(inside, hindered);
    }

    /// How a flush ends that a disk which is coming does not carry out: it fails, or has no room for now. A disk that is not
    /// flushed well does not get the place, and the old one may have made way already.
    fn coming_hindered(&self, inside: &Inside, rng: &mut Rng) -> Option<Outcome> {
        let is_flush = inside.submit.command == Command::Flush;
        match is_flush.then(|| rng.below(COMING_FAILS)) {
            Some(0) => Some(Outcome::Gone),
            Some(1) => Some(Outcome::Refused),
            Some(_) | None => None,
        }
    }

    /// How a command ends that a disk does not carry out because something is wrong with it.
    fn hindered(&mut self, inside: &Inside, rng: &mut Rng) -> Option<Outcome> {
        let Submit { drive, command, .. } = &inside.submit;
        let trouble = self.trouble.filter(|trouble| trouble.drive == *drive)?;
        if self.array.away().contains(*drive) {
            return None;
        }
        let is_write = matches!(command, Command::Write { .. });
        match trouble.wrong {
            Wrong::Refuses => (rng.below(2) == 0).then_some(Outcome::Refused),
            Wrong::Full => is_write.then_some(Outcome::Refused),
            Wrong::ReadOnly => {
                let extent = command.extent().filter(|_| is_write)?;
                let damaged = SectorSet::first(extent.sectors);
                Some(Outcome::Done { unknown: SectorSet::EMPTY, damaged })
            }
            Wrong::Fails => self.fail_command(inside, rng),
            Wrong::Hangs => None,
        }
    }
}
