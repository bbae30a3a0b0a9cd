//! Faults beside lost drives and power cuts: commands that land late, members that go back in time, a server that stands
//! still, an operator's commands.

use levelhead_array::{Blame, RebuildWish, ScrubState, ServerClock};
use levelhead_block::{Command, Outcome, SectorSet};
use levelhead_stats::Rng;
use levelhead_units::{DriveIdx, DriveSet, Extent, Instant, Nanos, SECTOR_SIZE, Sectors};

use super::inside::bytes_of;
use super::{Inside, Machine, Of};
use crate::crash::aim::Planted;
use crate::crash::image::{Torn, drawn};
use crate::crash::met::Fault;

/// How long a server stands still: longer than a drive may be silent.
const STANDSTILL: Nanos = Nanos::from_secs(90);

/// Earlier states of disks that are kept.
const EARLIER_MAX: usize = 4;

impl Machine {
    /// The server does not run for a while: it is stopped, frozen or starved. No drive completes anything that it sees.
    pub(crate) fn stand_still(&mut self) {
        self.meet(Fault::Standstill);
        if self.planted == Planted::StandstillsCount {
            self.now = self.now + STANDSTILL;
        } else {
            let mut clock = ServerClock::default();
            clock.plan_wait(self.now.saturating_since(Instant::ZERO));
            clock.read(self.now);
            assert!(!clock.take_standstill(), "SC1: it ran until now");
            clock.read(self.now + STANDSTILL);
            assert!(clock.take_standstill(), "SC3: {STANDSTILL:?} are a standstill");
            self.now = self.now + ServerClock::STEP_MAX;
            self.array.handle_standstill(self.now);
        }
        self.array.handle_timeout(self.now);
        self.carry_out();
    }

    /// The connection to a member breaks: of one command inside it the server hears no more than that, and what it writes
    /// may land at any later moment.
    pub(crate) fn disconnect(&mut self, of: DriveSet, rng: &mut Rng) -> bool {
        let is_write = |inside: &Inside| {
            let is_write = matches!(inside.submit.command, Command::Write { .. });
            let of = of.without(self.array.away());
            inside.of == Of::Place && is_write && of.contains(inside.submit.drive)
        };
        let writes: Vec<usize> =
            (0..self.inside.len()).filter(|&at| is_write(&self.inside[at])).collect();
        if writes.is_empty() {
            return false;
        }
        self.meet(Fault::Disconnect);
        let inside = self.inside.remove(writes[rng.below(writes.len() as u64) as usize]);
        self.late.extend(torn_of(&inside));
        self.array.handle_done(self.now, inside.submit.sub, &Outcome::Unreachable);
        self.carry_out();
        true
    }

    /// A write of an earlier connection, or of an earlier server, lands now.
    pub(crate) fn land(&mut self, rng: &mut Rng) -> bool {
        if self.late.is_empty() {
            return false;
        }
        self.meet(Fault::Late);
        let late = self.late.swap_remove(rng.below(self.late.len() as u64) as usize);
        let Torn { drive, extent, durability, bytes } = late;
        let disk = &mut self.disks[drive.as_usize()];
        disk.write_as(extent, &bytes, durability);
        true
    }

    /// Keeps what a disk holds now, so that it may go back to that.
    pub(crate) fn remember(&mut self, drive: DriveIdx) {
        if self.earlier.len() == EARLIER_MAX {
            self.earlier.remove(0);
        }
        let mut disk = self.disks[drive.as_usize()].clone();
        disk.settle();
        self.earlier.push((drive, disk));
    }

    /// A disk goes back to an earlier state of its own while the array runs.
    pub(crate) fn go_back(&mut self, rng: &mut Rng) -> Option<DriveIdx> {
        let (drive, disk) = drawn(&mut self.earlier, rng)?;
        self.meet(Fault::Older);
        self.disks[drive.as_usize()] = disk;
        Some(drive)
    }

    /// Another server of the same members takes its turn: what it does there and has promised is done to this one's.
    pub(crate) fn beside(&mut self, second: &mut Self, turn: impl FnOnce(&mut Self)) {
        let share = |one: &mut Self, other: &mut Self| {
            std::mem::swap(&mut one.disks, &mut other.disks);
            std::mem::swap(&mut one.promise, &mut other.promise);
        };
        share(self, second);
        turn(second);
        share(self, second);
    }

    /// An operator starts a scrub, or stops the one that runs.
    pub(crate) fn start_or_stop_scrub(&mut self) -> bool {
        self.meet(Fault::Scrub);
        let is_running = self.array.scrub().state == ScrubState::Running;
        let done = match is_running {
            true => self.array.handle_scrub_stop(self.now),
            false => self.array.handle_scrub_start(self.now, Blame::Drives),
        };
        self.carry_out();
        done && !is_running
    }

    /// An operator pauses rebuilds, or lets them go on.
    pub(crate) fn turn_rebuilds(&mut self) {
        self.meet(Fault::Pause);
        let wish = self.array.rebuild_wish();
        let wish = RebuildWish { is_paused: !wish.is_paused, ..wish };
        self.array.handle_rebuild_wish(self.now, wish);
        self.carry_out();
    }

    /// A write or a flush fails, as its disk says: some sectors of a write are written, and others are as before or cannot be
    /// read any more; some of those that were written count as failed, too.
    pub(super) fn fail_command(&mut self, inside: &Inside, rng: &mut Rng) -> Option<Outcome> {
        let drive = inside.submit.drive;
        match inside.submit.command {
            Command::Flush => return Some(Outcome::Gone),
            Command::Write { .. } => {}
            _ => return None,
        }
        let Torn { extent, durability, bytes, .. } = torn_of(inside)?;
        let disk = &mut self.disks[drive.as_usize()];
        let mut damaged: Vec<u32> = Vec::new();
        for (offset, (lba, sector)) in (0..).zip(extent.iter().zip(bytes.chunks_exact(SECTOR_SIZE)))
        {
            match rng.below(4) {
                0 => damaged.push(offset),
                1 => {
                    disk.spoil(lba);
                    self.spoilt = self.spoilt.with(drive);
                    damaged.push(offset);
                }
                kind => {
                    disk.write_as(Extent::new(lba, Sectors::new(1)), sector, durability);
                    damaged.extend((kind == 2).then_some(offset));
                }
            }
        }
        if damaged.is_empty() {
            damaged.push(0);
        }
        self.failed += 1;
        let damaged = damaged.into_iter().collect();
        Some(Outcome::Done { unknown: SectorSet::EMPTY, damaged })
    }

    /// Another disk is in this place: nothing that was sent to the old one lands here, and nothing of it comes back.
    pub(super) fn forget_disk(&mut self, drive: DriveIdx) {
        self.late.retain(|torn| torn.drive != drive);
        self.earlier.retain(|&(of, _)| of != drive);
    }

    /// A drive was found unresponsive. With nothing wrong with any drive that is a fault of the array.
    pub(super) fn note_silent(&mut self, drive: DriveIdx) {
        if !self.troubled.contains(drive) {
            self.note(Err(format!(
                "drive {drive} was failed as silent, and nothing is wrong with it"
            )));
        }
    }

    /// Something is wrong with a disk from now on.
    pub(crate) fn trouble(&mut self, trouble: super::Trouble) {
        self.meet(Fault::Trouble);
        self.troubled = self.troubled.or(DriveSet::EMPTY.with(trouble.drive));
        self.trouble = Some(trouble);
    }
}

/// What a write inside a disk would write.
pub(super) fn torn_of(inside: &Inside) -> Option<Torn> {
    let Command::Write { extent, durability, .. } = inside.submit.command else { return None };
    let bytes = bytes_of(&inside.pieces);
    Some(Torn { drive: inside.submit.drive, extent, durability, bytes })
}
