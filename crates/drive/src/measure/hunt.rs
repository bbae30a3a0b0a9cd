//! How long the arm needs for one distance: aimed reads.
//!
//! ```text
//!   first: a sector of one cylinder, whose end says when it passes the head
//!   away:  a sector of the other cylinder
//!   back:  a neighbour of the first, chosen so that it passes a wanted time after the read away
//! ```
//!
//! The read back takes the time `t` that it needs until it passes for the first time with the arm there. So the arm
//! needs at most `t`, and more than `t` less a revolution: the time before. What follows from all reads back is in
//! `threshold.rs`, and the next one is aimed at a time that is likely by then.
//!
//! # Invariants
//!
//! - HU1. A read back counts only if it ended when its sector was to pass. What memory answered, what lay on another track
//!   than the first, and what came late did not.
//! - HU2. Two ends say when the sector passed: that of the read back, and that of the first, moved by the time between the two
//!   sectors. A machine makes ends late and never early, so the earlier of the two counts. The time between the sectors is taken to
//!   be known, since `scale` follows it.

use levelhead_stats::Rng;
use levelhead_units::Extent;

use super::layout::Layout;
use super::stage::extent;
use super::threshold::{Known, Threshold};

/// The part of a revolution by which a sector may pass earlier or later than it should.
const TOLERANCE: f64 = 0.03;
/// The part by which the time of a sector is mended by one read back, and the part of a revolution that has to lie between it
/// and the first to say anything of that.
const MENDING: f64 = 0.15;
const FAR: f64 = 0.1;
/// A turn of this many seconds between an end and the next order is assumed at first.
const TURN_USUAL: f64 = 50e-6;

/// See the module. Times in seconds.
#[derive(Debug)]
pub(super) struct Hunt {
    length: u64,
    rotation: f64,
    /// Reads back, those that do not count too.
    tried: u64,
    /// How many of them count, and what they say.
    counted: u64,
    threshold: Threshold,
    /// From the read away's end to the next order.
    turn: f64,
    first: u64,
    /// The time one sector takes to pass the head at the first, by the rates.
    sector: f64,
    /// The same by what was read back so far, as its part.
    scale: f64,
    /// From the read back's passing to the first's.
    ahead: f64,
    /// When the sector aimed at is to have passed.
    expected: f64,
    away_ended: f64,
}

impl Hunt {
    /// `scale` is what the hunt before has found.
    pub(super) fn new(length: u64, rotation: f64, scale: f64) -> Self {
        Self {
            length,
            rotation,
            tried: 0,
            counted: 0,
            threshold: Threshold::new(rotation),
            turn: TURN_USUAL,
            first: 0,
            sector: 0.0,
            scale,
            ahead: 0.0,
            expected: 0.0,
            away_ended: 0.0,
        }
    }

    /// The first read and the one away, somewhere else each time, inwards and outwards by turns.
    pub(super) fn set_out(&mut self, rng: &mut Rng, layout: &Layout) -> [Extent; 2] {
        let stroke = layout.cylinders() - 1;
        let outer = rng.below(stroke + 1 - self.length);
        let inner = outer + self.length;
        let (home, away) =
            if self.tried.is_multiple_of(2) { (inner, outer) } else { (outer, inner) };
        let [first, away] = [home, away].map(|cylinder| {
            let (lba, sectors) = layout.cylinder(cylinder);
            lba + rng.below(sectors)
        });
        self.first = first;
        self.sector = self.rotation / layout.track_sectors(home);
        [extent(first, 1), extent(away, 1)]
    }

    /// The read back, aimed at what is not known yet.
    pub(super) fn aim(
        &mut self,
        rng: &mut Rng,
        size: u64,
        first_ended: f64,
        away_ended: f64,
    ) -> Extent {
        let ends = away_ended + self.turn + self.threshold.draw(rng);
        // How many sectors earlier than the first passes the head then; behind it in the second half of the track.
        let mut before = ((first_ended - ends) / self.rotation).rem_euclid(1.0);
        if before > 0.5 {
            before -= 1.0;
        }
        let sector = self.sector * self.scale;
        let mut step = (before * self.rotation / sector).round() as i64;
        if step == 0 {
            step = 1;
        }
        let place = self.first as i64 - step;
        let last = size as i64 - 1;
        let place = if (0..=last).contains(&place) { place } else { self.first as i64 + step };
        let place = place.clamp(0, last);
        self.ahead = (self.first as i64 - place) as f64 * sector;
        self.expected = first_ended - self.ahead;
        self.away_ended = away_ended;
        extent(place as u64, 1)
    }

    /// The read back is over.
    pub(super) fn score(&mut self, began: f64, ended: f64) {
        self.tried += 1;
        let turn = began - self.away_ended;
        // Slowly, so that one late order does not spoil the next aim.
        self.turn += (turn.clamp(0.0, 4.0 * self.turn) - self.turn) / 4.0;
        let turns = (ended - self.expected) / self.rotation;
        let late = turns - turns.round();
        if late.abs() > TOLERANCE {
            return;
        }
        let passed = ended.min(self.expected + turns.round() * self.rotation);
        self.threshold.read(passed - began);
        self.counted += 1;
        if self.ahead.abs() > FAR * self.rotation {
            self.scale *= 1.0 - MENDING * late * self.rotation / self.ahead;
        }
    }

    /// The time of a sector as a part of what the rates say.
    pub(super) fn scale(&self) -> f64 {
        self.scale
    }

    pub(super) fn tried(&self) -> u64 {
        self.tried
    }

    /// How many reads back count.
    pub(super) fn counted(&self) -> u64 {
        self.counted
    }

    /// What the reads back that count say.
    pub(super) fn known(&self) -> Known {
        self.threshold.known()
    }
}
