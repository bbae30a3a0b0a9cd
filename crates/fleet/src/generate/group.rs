//! A group of drives: rest, sessions of slow intervals, drives that are unplugged and come back.
//!
//! ```text
//!            start                       length over, no more
//!   Rest ------------> Slow -------------------------------------> Rest (a day at least)
//!                       ^ |  length over, again
//!                       | v
//!                      Pause (some hours)
//! ```
//!
//! A slow drive that is unplugged ends its session; one that is replugged may begin another within a day.

use levelhead_stats::Rng;

use super::fitted::{Habit, Members, Unplugging};
use super::law::shuffle_first;
use super::ledger::Ledger;
use crate::events::{EventKind, EventsTable};

/// Hours of rest between two sessions: the next slow hour is more than a day after the last.
const REST_MIN: u32 = 25;

/// The most slow drives that leave the median among the others.
fn slow_most(width: usize) -> usize {
    (width - 1) / 2
}

/// Hours until a drive that replaces another has its first row.
const REPLACED_AFTER: u32 = 24;

/// Where a drive is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    In,
    /// In for these hours, then unplugged.
    Leaving(u32),
    /// Out for these hours, then replugged.
    Out(u32),
    /// Out for good; after these hours another drive takes its place.
    Gone(u32),
}

impl Place {
    pub(super) fn is_in(self) -> bool {
        match self {
            Self::In | Self::Leaving(_) => true,
            Self::Out(_) | Self::Gone(_) => false,
        }
    }
}

/// How far a drive is from its group, for onsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    Stable,
    Mild,
    Slow,
}

impl Level {
    pub(super) fn of(slowdown: f64) -> Self {
        if slowdown >= 2.0 {
            Self::Slow
        } else if slowdown >= 1.5 {
            Self::Mild
        } else {
            Self::Stable
        }
    }
}

pub(super) struct Slot {
    pub(super) drive: i32,
    pub(super) place: Place,
    /// In the hour before.
    pub(super) level: Level,
}

#[derive(Clone, Copy)]
enum Phase {
    /// No session for these hours at least.
    Rest(u32),
    /// Slow for these hours more.
    Slow(u32),
    /// These hours until the next interval.
    Pause(u32),
}

pub(super) struct Group {
    pub(super) latency_us: f64,
    pub(super) ios: f64,
    /// In the first hour.
    pub(super) age_hours: i32,
    /// Number in the list of models.
    pub(super) model: usize,
    /// How often it has hours from 1.5 to 2, for one of the mean group.
    pub(super) mild: f64,
    /// Width over mean width: a wide group has as many more hours with a slow drive.
    pub(super) weight: f64,
    pub(super) habit: &'static Habit,
    /// Hours for which no record comes.
    pub(super) missing: u32,
    pub(super) slots: Vec<Slot>,
    /// Slots in the order of their drives' numbers.
    pub(super) by_drive: Vec<usize>,
    phase: Phase,
    /// Slots that are slow in this session.
    pub(super) members: Vec<usize>,
    /// Slots that are slow in sessions: the first of them in more, by habit.
    own: Vec<usize>,
    /// Rank of the interval's largest slowdown.
    pub(super) rank: Option<f64>,
}

impl Group {
    pub(super) fn new(first_drive: i32, width: usize, habit: &'static Habit) -> Self {
        let slot = |number: usize| Slot {
            drive: first_drive + number as i32,
            place: Place::In,
            level: Level::Stable,
        };
        Self {
            latency_us: 0.0,
            ios: 0.0,
            age_hours: 0,
            model: 0,
            mild: 1.0,
            weight: 1.0,
            habit,
            missing: 0,
            slots: (0..width).map(slot).collect(),
            by_drive: (0..width).collect(),
            phase: Phase::Rest(0),
            members: Vec::new(),
            own: Vec::new(),
            rank: None,
        }
    }

    /// Draws which drives its sessions are of, `slow` where that many are always the same, and begins somewhere in a rest, so that a
    /// fleet has no first day of its own.
    pub(super) fn begin(&mut self, slow: usize, rng: &mut Rng) {
        let width = self.slots.len();
        let count = match self.habit.members {
            Members::Same => slow,
            Members::EachSixth => (width + 3) / 6,
            Members::First | Members::Any => width,
        };
        self.draw_own(count.clamp(1, slow_most(width)), rng);
        self.phase = Phase::Rest(rng.below(u64::from(REST_MIN)) as u32);
    }

    /// The group's hour: whether members of a session are slow in it.
    pub(super) fn advance(&mut self, ledger: &mut Ledger, rng: &mut Rng) -> bool {
        let (phase, is_slow) = match self.phase {
            Phase::Slow(1) if rng.unit() < self.habit.again => {
                (Phase::Pause(1 + rng.below(self.habit.pause_max) as u32), true)
            }
            Phase::Slow(1) => (Phase::Rest(REST_MIN), true),
            Phase::Slow(left) => (Phase::Slow(left - 1), true),
            Phase::Pause(1) => (self.interval(ledger, rng), false),
            Phase::Pause(left) => (Phase::Pause(left - 1), false),
            Phase::Rest(0) => {
                let weight = if self.has_own() { 1.0 } else { self.weight };
                if rng.unit() < self.habit.start * weight * ledger.haste() {
                    self.draw_members(ledger, rng);
                    (self.interval(ledger, rng), false)
                } else {
                    (Phase::Rest(0), false)
                }
            }
            Phase::Rest(left) => (Phase::Rest(left - 1), false),
        };
        self.phase = phase;
        is_slow
    }

    /// A drive that is slow again and again, if the group has any: the first of them most often.
    pub(super) fn draw_prone(&self, rng: &mut Rng) -> Option<usize> {
        self.has_own().then(|| {
            let up_to = 1 + rng.below(self.own.len() as u64);
            self.own[rng.below(up_to) as usize]
        })
    }

    /// Whether its sessions are of drives of its own.
    fn has_own(&self) -> bool {
        match self.habit.members {
            Members::Same | Members::EachSixth | Members::First => true,
            Members::Any => false,
        }
    }

    fn is_prone(&self, slot: usize) -> bool {
        self.has_own() && self.own.contains(&slot)
    }

    fn interval(&mut self, ledger: &mut Ledger, rng: &mut Rng) -> Phase {
        let hours = ledger.draw_hours(self.has_own());
        self.rank = Some(ledger.draw_rank(self.rank, hours, rng));
        Phase::Slow(hours)
    }

    fn draw_members(&mut self, ledger: &mut Ledger, rng: &mut Rng) {
        let count = match self.habit.members {
            Members::Same | Members::EachSixth => self.own.len(),
            Members::First => ledger.draw_slow(self.own.len(), rng),
            Members::Any => {
                self.rank = None;
                let most = slow_most(self.slots.len());
                self.draw_own(most, rng);
                ledger.draw_slow(most, rng)
            }
        };
        self.members.clear();
        self.members.extend(&self.own[..count]);
    }

    fn draw_own(&mut self, count: usize, rng: &mut Rng) {
        self.own.clear();
        self.own.extend(0..self.slots.len());
        shuffle_first(rng, &mut self.own, count);
        self.own.truncate(count);
    }

    /// Lets the drives come and go at the end of an hour.
    pub(super) fn move_drives(
        &mut self,
        hour: i32,
        ledger: &mut Ledger,
        drive_next: &mut i32,
        events: &mut EventsTable,
        rng: &mut Rng,
    ) {
        for slot in 0..self.slots.len() {
            let drive = self.slots[slot].drive;
            let place = match self.slots[slot].place {
                Place::In => continue,
                Place::Leaving(1) => {
                    let present = self.slots.iter().filter(|slot| slot.place.is_in()).count();
                    if present <= 3 {
                        // The fewest that a group is measured with.
                        Place::In
                    } else {
                        events.push(hour, drive, EventKind::Unplug);
                        self.end_session_of(slot);
                        if rng.unit() < ledger.fitted.unplugging.replugged {
                            Place::Out(ledger.fitted.unplugging.draw_away(rng))
                        } else {
                            Place::Gone(REPLACED_AFTER)
                        }
                    }
                }
                Place::Leaving(left) => Place::Leaving(left - 1),
                Place::Out(1) => {
                    events.push(hour, drive, EventKind::Replug);
                    let Unplugging { recurs, recurs_prone, .. } = ledger.fitted.unplugging;
                    let chance = if self.is_prone(slot) { recurs_prone } else { recurs };
                    if rng.unit() < chance {
                        self.begin_session_of(slot, ledger, rng);
                    }
                    Place::In
                }
                Place::Out(left) => Place::Out(left - 1),
                Place::Gone(1) => {
                    self.slots[slot].drive = *drive_next;
                    *drive_next += 1;
                    self.by_drive.retain(|&other| other != slot);
                    self.by_drive.push(slot);
                    Place::In
                }
                Place::Gone(left) => Place::Gone(left - 1),
            };
            self.slots[slot].place = place;
        }
    }

    /// A session of drives that have no habit of it ends with one of them.
    fn end_session_of(&mut self, slot: usize) {
        match self.phase {
            Phase::Slow(_) | Phase::Pause(_)
                if self.members.contains(&slot) && !self.is_prone(slot) =>
            {
                self.phase = Phase::Rest(REST_MIN);
            }
            Phase::Slow(_) | Phase::Pause(_) | Phase::Rest(_) => {}
        }
    }

    fn begin_session_of(&mut self, slot: usize, ledger: &mut Ledger, rng: &mut Rng) {
        match self.phase {
            Phase::Rest(_) => {
                self.draw_members(ledger, rng);
                if !self.members.contains(&slot) {
                    self.members[0] = slot;
                }
                self.phase = Phase::Pause(1 + rng.below(20) as u32);
            }
            Phase::Slow(_) | Phase::Pause(_) => {}
        }
    }
}
