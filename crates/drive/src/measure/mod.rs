//! A make's figures from one drive of it, by reads alone.
//!
//! A [`Measurement`] sees neither the drive nor a clock. It says what to read ([`Measurement::poll`])
//! and is told when each read began and ended ([`Measurement::handle_done`]); what runs it may be a
//! real disk, an emulated one or a [`Drive`](crate::Drive) in virtual time.
//!
//! ```text
//!   rates --> rotation --> random reads by depth --> layout --> seeks by length --> Measured
//!             (needs rates)                     (needs both)
//! ```
//!
//! - *Rates*: streams of large reads at places spread over the drive, in two sizes. What one command
//!   costs besides its bytes is the same in both, so the difference is that of the bytes alone, whether
//!   the drive reads ahead or loses a revolution between commands. Where the reads agree too little, more are read beside
//!   them once the rotation is known, a few times at most.
//! - *Rotation*: the same few sectors come by once a revolution. Single sectors of one track are read
//!   in falling order with far reads in between, so that neither the drive's memory nor its reading
//!   ahead can answer. The period is the one that makes all ends agree; how they move on from sector to
//!   sector is the time a sector takes to pass, and that gives the length of the track. A track's
//!   length and the sustained rate together give the time that is lost between tracks, the skew.
//! - *Random reads*: with 1 to 32 inside the drive at a time.
//! - *Seeks*: from a sector to another cylinder and back to a neighbour of the first, which is chosen so that it passes the head
//!   just when the arm could be there. Whether it was, or had to wait for another revolution, says on which side of the
//!   edge the choice was, and the next one is nearer to it (`hunt.rs`). What all of them say together is a matter of
//!   probabilities (`threshold.rs`).
//!
//! What the machine adds to a drive's times by waking its threads late is measured beside ([`Measurement::handle_wake`]) and what
//! is usual of it during a stage taken off. A stage in which late wake-ups were not rare, or that did not find what it was for, is
//! begun anew, a few times at most. Rates, rotation, seeks and random reads have errors. Where one of these is too great, or late wake-ups
//! are not rare in the whole, there is no answer ([`MeasureError::Late`], [`MeasureError::Unsure`], [`MeasureError::Unsteady`]).
//!
//! # Invariants
//!
//! - M1. No sector is asked for twice on purpose, and nothing is ever written.
//! - M2. The same answers give the same questions: chance comes from the seed.
//!
//! # What it leaves out
//!
//! How many heads there are, where zones begin exactly, how writes differ from reads, in which order a
//! drive serves what it holds, and what its memory does: none of these shows in reads alone. What is
//! assumed instead stands in the profile ([`Measured::to_toml`]).

mod error;
mod facts;
mod fit;
mod hunt;
mod lateness;
mod layout;
mod measured;
mod stage;
mod streams;
mod threshold;
mod trust;

use levelhead_stats::{Rng, Streams};
use levelhead_units::{Extent, Instant, Nanos, Sectors};

pub use error::{Figure, MeasureError};
pub use facts::{AtDepth, Rate, Seek};
pub use lateness::{Lateness, Usual, Wake};
pub use measured::Measured;

use crate::QUEUE_DEPTH_MAX;
use hunt::Hunt;
use lateness::{Shift, Wakes};
use layout::Layout;
use stage::Stage;
use streams::{Plan, Way};
use threshold::Known;

/// How many reads are spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Thoroughness {
    /// Some seconds of a drive's time; figures within some per cent.
    Quick,
    /// Two or three minutes.
    Thorough,
}

/// How to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// How many reads are spent.
    pub thoroughness: Thoroughness,
    /// The largest read that reaches the drive in one piece.
    pub read_max: Sectors,
    /// What tells the program that a read has ended, see [`Measurement::handle_wake`].
    pub end: Wake,
    /// What chance is drawn from.
    pub seed: u64,
}

/// A read that is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Read {
    /// Its name; counted up.
    pub id: u64,
    /// What to read.
    pub extent: Extent,
}

/// How many reads each stage spends.
#[derive(Clone, Copy, Debug)]
struct Counts {
    /// Reads of one size at one place.
    stream: u64,
    /// Single sectors from which the rotation is found.
    rotation: u64,
    /// Random reads at each depth.
    random: u64,
    /// The most aimed reads for each seek length, unless it is not known well enough to be told.
    seeks: u64,
    /// The error, as the part of a seek's positioning, at which no more of them are needed.
    seek_error: f64,
}

impl Thoroughness {
    const fn counts(self) -> Counts {
        match self {
            Self::Quick => {
                Counts { stream: 12, rotation: 144, random: 100, seeks: 60, seek_error: 0.02 }
            }
            Self::Thorough => {
                Counts { stream: 16, rotation: 240, random: 500, seeks: 160, seek_error: 0.005 }
            }
        }
    }
}

/// Far reads in the middle of a run of sectors: some 30 revolutions, so that noise of a tenth of a millisecond changes the rotation that the run
/// says by some hundredths of a per cent.
const PAUSE: u64 = 24;
/// How often the streams of a place are read again at most.
const ROUNDS_MAX: u64 = 3;
/// How many stages are begun anew at most, because the machine was late in them or their figure is not known well enough.
const REPEATS_MAX: u32 = 8;
/// How many times as many aimed reads a length gets at most that is not known well enough to be told.
const MORE_MAX: u64 = 2;
/// Places at which rates are measured, both ends included.
const PLACES: u64 = 20;
/// The smallest large read: 128 KiB.
const LARGE_MIN: u64 = 32;
/// Commands inside the drive at a time.
const DEPTHS: [u32; 6] = [1, 2, 4, 8, 16, 32];
const _: () = assert!(DEPTHS[DEPTHS.len() - 1] <= QUEUE_DEPTH_MAX);

/// See the module.
///
/// Call [`Measurement::poll`] until it gives nothing, hand the reads to the drive, and report each end;
/// then poll again. When nothing is wanted and nothing is under way, [`Measurement::finish`].
#[derive(Debug)]
pub struct Measurement {
    size: Sectors,
    /// Sectors of the larger reads of a stream; the smaller ones have half.
    large: u64,
    counts: Counts,
    rng: Rng,
    stage: Stage,
    hunt: Option<Hunt>,
    /// What the hunts have found of the time of a sector.
    scale: f64,
    /// How late the machine's own threads were during this stage, and during all those before that count.
    wakes: Wakes,
    wakes_before: Wakes,
    /// How many stages were begun anew.
    repeats: u32,
    /// Lengths that were put in between others.
    put_in: Vec<u64>,
    end: Wake,
    /// The first stage, once it is over.
    streams: Option<Stage>,
    /// How the drive reads streams.
    way: Way,
    /// What each reading of a place's streams says of its rate.
    readings: Vec<Vec<Rate>>,
    /// The places whose streams are read again.
    unsure: Vec<u64>,
    /// Which of the stages is under way.
    step: Step,
    named: u64,
    found: Found,
    failed: Option<MeasureError>,
}

/// What is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Rates,
    Rotation,
    /// Streams of the places whose rates are not known well enough; how often they were read before.
    Again(u64),
    Random(usize),
    Seeks(usize),
    Done,
}

/// What is known so far; times in seconds.
#[derive(Debug, Default)]
struct Found {
    rates: Vec<Rate>,
    rotation: f64,
    rotation_error: f64,
    /// Time lost between tracks, in revolutions.
    skew: f64,
    depths: Vec<AtDepth>,
    layout: Option<Layout>,
    seeks: Vec<Seek>,
}

impl Measurement {
    /// A measurement of a drive of `size` sectors that has not begun.
    ///
    /// # Errors
    ///
    /// [`MeasureError::TooSmall`].
    pub fn new(size: Sectors, options: Options) -> Result<Self, MeasureError> {
        let counts = options.thoroughness.counts();
        // Two streams at every place, with as much again between places.
        let streams = PLACES * (counts.stream + 1) * 3;
        let large = options.read_max.get().min(size.get() / streams) & !1;
        if large < LARGE_MIN {
            return Err(MeasureError::TooSmall { size, least: Sectors::new(streams * LARGE_MIN) });
        }
        let rng = Streams::new(options.seed).stream("measure");
        let mut measurement = Self {
            size,
            large,
            counts,
            rng,
            stage: Stage::new(1, Vec::new()),
            hunt: None,
            scale: 1.0,
            wakes: Wakes::default(),
            wakes_before: Wakes::default(),
            repeats: 0,
            put_in: Vec::new(),
            end: options.end,
            streams: None,
            way: Way::Apart,
            readings: Vec::new(),
            unsure: Vec::new(),
            step: Step::Rates,
            named: 0,
            found: Found::default(),
            failed: None,
        };
        measurement.stage = measurement.streams_at(&Vec::from_iter(0..PLACES), 0);
        Ok(measurement)
    }

    /// The next read for the drive, if it is to have another one now.
    pub fn poll(&mut self) -> Option<Read> {
        while self.stage.is_done() && self.step != Step::Done {
            self.advance();
        }
        let extent = self.stage.next()?;
        self.named += 1;
        Some(Read { id: self.named - 1, extent })
    }

    /// A read has ended; `began` is when it was handed to the drive.
    ///
    /// # Panics
    ///
    /// If no such read is under way.
    pub fn handle_done(&mut self, id: u64, began: Instant, ended: Instant) {
        let first = self.named - self.stage.sent();
        self.stage.handle_done(id.checked_sub(first).expect("reads end once"), began, ended);
    }

    /// A thread of this program woke up this late after what it had waited for, at some time during the measurement. What is usual
    /// is taken off the drive's times: a read's order is a message to a thread, and [`Options::end`] tells of its end.
    pub fn handle_wake(&mut self, wake: Wake, late: Nanos) {
        self.wakes.add(wake, late);
    }

    /// Reads that have ended, and all of them as far as is known; the second number may still change a
    /// little.
    pub fn progress(&self) -> (u64, u64) {
        let Counts { rotation, random, seeks, .. } = self.counts;
        let of_a_length = seeks / 3 * READS_OF_AN_AIM;
        let later = match self.step {
            Step::Rates => rotation * 2 + random * DEPTHS.len() as u64 + of_a_length * SEEKS_ABOUT,
            Step::Rotation | Step::Again(_) => {
                random * DEPTHS.len() as u64 + of_a_length * SEEKS_ABOUT
            }
            Step::Random(at) => random * (DEPTHS.len() - 1 - at) as u64 + of_a_length * SEEKS_ABOUT,
            Step::Seeks(at) => {
                let lengths = self.found.layout.as_ref().map_or(0, |layout| layout.lengths().len());
                of_a_length * lengths.saturating_sub(at + 1) as u64
            }
            Step::Done => 0,
        };
        let done = self.named - self.stage.under_way();
        (done, done + self.stage.left() + later)
    }

    /// What was found, if it is known well enough to be told.
    ///
    /// # Errors
    ///
    /// What makes no sense of a disk, or is not known.
    ///
    /// # Panics
    ///
    /// If it is not over.
    pub fn finish(self) -> Result<Measured, MeasureError> {
        // On a machine that is late nothing seems to turn, so that this comes first.
        trust::check_lateness(self.lateness().as_ref())?;
        let lateness = self.lateness();
        let checked =
            self.finish_unchecked().and_then(|measured| trust::check(&measured).map(|()| measured));
        checked.map_err(|error| trust::reason(error, lateness.as_ref()))
    }

    /// What was found, known or not: for a look at what [`Measurement::finish`] refuses.
    ///
    /// # Errors
    ///
    /// What makes no sense of a disk.
    ///
    /// # Panics
    ///
    /// If it is not over.
    pub fn finish_unchecked(self) -> Result<Measured, MeasureError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        assert_eq!(self.step, Step::Done, "reads are still wanted");
        let lateness = self.lateness();
        let Found { rates, rotation, rotation_error, skew, depths, layout, mut seeks } = self.found;
        let layout = layout.expect("it was made before the seeks");
        seeks.sort_by_key(|seek| seek.length);
        fit::make_rise(&mut seeks);
        let size = self.size;
        let mut measured = Measured {
            size,
            rotation,
            rotation_error,
            skew,
            rates,
            depths,
            seeks,
            layout,
            lateness,
        };
        trust::leave_out(&mut measured);
        fit::doubt(&mut measured.seeks, |length| self.put_in.contains(&length));
        Ok(measured)
    }

    /// A stage is over: takes its facts and begins the next one. Only this function changes `step`.
    fn advance(&mut self) {
        if self.go_on() || self.was_late() && self.begin_anew() {
            return;
        }
        let concluded = self.conclude();
        if !self.is_known(&concluded) && self.begin_anew() {
            return;
        }
        self.wakes_before.append(&mut self.wakes);
        match concluded {
            Ok(()) => {}
            Err(error) => {
                self.failed = Some(error);
                self.step = Step::Done;
                self.stage = Stage::new(1, Vec::new());
                return;
            }
        }
        (self.step, self.stage) = match self.step {
            Step::Rates => (Step::Rotation, self.rotation()),
            Step::Rotation => self.again(1),
            Step::Again(round) => self.again(round + 1),
            Step::Random(at) if at + 1 < DEPTHS.len() => {
                (Step::Random(at + 1), self.random(DEPTHS[at + 1]))
            }
            Step::Random(_) => (Step::Seeks(0), self.set_out(0)),
            Step::Seeks(at) => self.after_seeks(at),
            Step::Done => (Step::Done, Stage::new(1, Vec::new())),
        };
    }

    /// What comes after the seeks of length number `at`: those of a length between two that are unlike, or of the next one.
    fn after_seeks(&mut self, at: usize) -> (Step, Stage) {
        let next = at + 1;
        if let Some(length) = self.between() {
            let layout = self.found.layout.as_mut().expect("it is made before the seeks");
            layout.put_in(next, length);
            self.put_in.push(length);
        }
        if next < self.lengths() {
            return (Step::Seeks(next), self.set_out(next));
        }
        (Step::Done, Stage::new(1, Vec::new()))
    }

    /// A short length between two neighbours whose times are unlike: between a few tracks and a few dozen a seek turns
    /// from a switch of heads into a movement of the arm, and where it does is not known before.
    fn between(&self) -> Option<u64> {
        if self.put_in.len() >= PUT_IN_MAX {
            return None;
        }
        let short = self.layout().cylinders() / 64;
        let mut seeks = self.found.seeks.clone();
        seeks.sort_by_key(|seek| seek.length);
        let jump_and_middle = |pair: &[Seek]| {
            let (near, far) = (pair[0], pair[1]);
            let is_apart = far.length > (near.length + 1).max(near.length * 6 / 5);
            let middle = (near.length as f64 * far.length as f64).sqrt().round() as u64;
            let jump = far.positioning / near.positioning;
            (far.length <= short && is_apart && jump > UNLIKE && !self.put_in.contains(&middle))
                .then_some((jump, middle))
        };
        let pairs = seeks.windows(2).filter_map(jump_and_middle);
        pairs.max_by(|left, right| left.0.total_cmp(&right.0)).map(|(_, middle)| middle)
    }

    fn conclude(&mut self) -> Result<(), MeasureError> {
        match self.step {
            Step::Rates => {
                self.streams = Some(std::mem::replace(&mut self.stage, Stage::new(1, Vec::new())));
                let found = self.rates_at(None).ok_or(MeasureError::NoRate)?;
                self.found.rates = found.iter().map(|found| found.rate(self.way)).collect();
            }
            Step::Rotation => {
                self.spin()?;
                // The rotation makes the rates better, and they the rotation.
                if let Some(found) = self.rates_at(Some(self.found.rotation)) {
                    self.way = streams::way(&found, self.plan(), self.found.rotation);
                    self.found.rates = found.iter().map(|found| found.rate(self.way)).collect();
                    self.spin()?;
                }
                self.readings = self.found.rates.iter().map(|rate| vec![*rate]).collect();
                let rates = self.found.rates.iter_mut();
                rates.for_each(|rate| *rate = self.way.doubted(*rate));
            }
            Step::Again(_) => {
                let found = streams::look(&self.stage, self.plan(), Some(self.found.rotation));
                for (&place, found) in self.unsure.iter().zip(found.into_iter().flatten()) {
                    let readings = &mut self.readings[place as usize];
                    readings.push(found.rate(self.way));
                    self.found.rates[place as usize] =
                        self.way.doubted(streams::combined(readings));
                }
            }
            Step::Random(at) => {
                self.found.depths.push(stage::at_depth(&self.stage, DEPTHS[at]));
            }
            Step::Seeks(at) => {
                let length = self.layout().lengths()[at];
                let hunt = self.hunt.take().expect("it is what the stage is");
                self.scale = hunt.scale();
                let seek = self.seek(length, hunt.known());
                self.found.seeks.push(seek);
            }
            Step::Done => {}
        }
        Ok(())
    }

    /// How late the machine was in all that counts.
    fn lateness(&self) -> Option<Lateness> {
        let mut wakes = self.wakes_before.clone();
        wakes.append(&mut self.wakes.clone());
        wakes.lateness()
    }

    /// A seek of this length, without what the machine was usually late by meanwhile.
    fn seek(&self, length: u64, known: Known) -> Seek {
        let lateness = self.wakes.lateness().or_else(|| self.lateness());
        let usual = lateness.map(|lateness| lateness.of_a_read(self.end));
        let Shift { median, doubt, quartile } = usual.unwrap_or_default();
        // Where ways of one length differ more than the machine's lateness does, their mean may be as far from their median.
        let unlike = (known.quartile - quartile).max(0.0);
        let error = known.error + doubt + unlike;
        Seek { length, positioning: (known.middle - median).max(0.0), error }
    }

    /// Whether the machine was late too often during this stage.
    fn was_late(&self) -> bool {
        self.wakes.lateness().is_some_and(|lateness| !lateness.is_usual())
    }

    /// Whether what this stage has found could be told.
    fn is_known(&self, concluded: &Result<(), MeasureError>) -> bool {
        let Found { rotation, rotation_error, seeks, .. } = &self.found;
        match self.step {
            Step::Rotation => {
                concluded.is_ok() && trust::knows_rotation(*rotation, *rotation_error)
            }
            Step::Seeks(_) => seeks.last().is_some_and(|seek| {
                let share = seek.length as f64 / self.layout().cylinders() as f64;
                seek.error <= trust::seek_error_max(share) * seek.positioning
            }),
            Step::Rates | Step::Again(_) | Step::Random(_) | Step::Done => true,
        }
    }

    /// Begins this stage anew, elsewhere on the drive, unless that has been done too often; whether it did. Streams say themselves
    /// which of their places were disturbed, and those alone are read again.
    fn begin_anew(&mut self) -> bool {
        if self.repeats >= REPEATS_MAX {
            return false;
        }
        self.stage = match self.step {
            // These are not begun anew, and count for nothing.
            Step::Rates | Step::Again(_) | Step::Done => return false,
            Step::Rotation => self.rotation(),
            Step::Random(at) => self.random(DEPTHS[at]),
            Step::Seeks(at) => {
                self.found.seeks.truncate(at);
                self.set_out(at)
            }
        };
        self.repeats += 1;
        self.wakes = Wakes::default();
        true
    }

    /// Streams beside the places whose rates are not known well enough, if there are any and this is no round too many; else the
    /// layout, and the next step.
    fn again(&mut self, round: u64) -> (Step, Stage) {
        let is_known = |place: u64| trust::knows_rate(&self.found.rates, place as usize);
        self.unsure = (0..PLACES).filter(|&place| !is_known(place)).collect();
        if self.unsure.is_empty() || round > self.rounds_max() {
            let Found { rates, rotation, skew, .. } = &self.found;
            self.found.layout = Some(Layout::new(self.size, rates, *rotation, *skew));
            return (Step::Random(0), self.random(DEPTHS[0]));
        }
        (Step::Again(round), self.streams_at(&self.unsure, round))
    }

    /// Rotation and skew by the single sectors just read and the rates known so far.
    fn spin(&mut self) -> Result<(), MeasureError> {
        let turns = stage::turns_of(&self.stage, &self.found.rates);
        let spin = fit::spin(&turns).ok_or(MeasureError::NoRotation)?;
        let found = &mut self.found;
        (found.rotation, found.rotation_error, found.skew) = (spin.rotation, spin.error, spin.skew);
        Ok(())
    }

    /// The next reads of a hunt, if it is not over; whether there are any.
    fn go_on(&mut self) -> bool {
        let Some(hunt) = &mut self.hunt else { return false };
        let layout = self.found.layout.as_ref().expect("it is made before the seeks");
        if self.stage.sent().is_multiple_of(READS_OF_AN_AIM) {
            let (began, ended) = self.stage.last(0);
            hunt.score(began, ended);
            let (tried, counted, known) = (hunt.tried(), hunt.counted(), hunt.known());
            let Counts { seeks, seek_error, .. } = self.counts;
            let is_within = |share: f64| known.error <= share * known.middle;
            let is_known = counted >= COUNTED_MIN && is_within(seek_error);
            let most = if is_within(SEEK_ERROR_MAX) { seeks } else { seeks * MORE_MAX };
            if is_known || tried >= most {
                return false;
            }
            let hunt = self.hunt.as_mut().expect("it goes on");
            self.stage.push(hunt.set_out(&mut self.rng, layout));
        } else {
            let (first_ended, away_ended) = (self.stage.last(1).1, self.stage.last(0).1);
            let size = self.size.get();
            let back = hunt.aim(&mut self.rng, size, first_ended, away_ended);
            self.stage.push([back]);
        }
        true
    }

    /// The rates by the streams that have been read, with what is known of the rotation.
    fn rates_at(&self, rotation: Option<f64>) -> Option<Vec<streams::Found>> {
        let streams = self.streams.as_ref().expect("they come first");
        streams::look(streams, self.plan(), rotation)
    }

    fn plan(&self) -> Plan {
        Plan { steps: self.counts.stream, large: self.large }
    }

    fn layout(&self) -> &Layout {
        self.found.layout.as_ref().expect("it is made before the seeks")
    }

    fn lengths(&self) -> usize {
        self.layout().lengths().len()
    }

    /// Sectors of the streams of a place.
    fn span(&self) -> u64 {
        (self.counts.stream + 1) * (self.large + self.large / 2)
    }

    /// How often there is room for the streams of a place beside those that were read. The two places in the middle move
    /// towards each other, a span each a round, and end at least a span apart.
    fn rounds_max(&self) -> u64 {
        let apart = (self.size.get() - self.span()) / (PLACES - 1);
        ROUNDS_MAX.min((apart / self.span()).saturating_sub(1) / 2)
    }

    /// Streams of two sizes at these places, or beside them: the drive may remember what was read there.
    fn streams_at(&self, places: &[u64], round: u64) -> Stage {
        let count = self.counts.stream + 1;
        let span = self.span();
        let room = self.size.get() - span;
        let mut reads = Vec::new();
        for &place in places {
            let at = (u128::from(room) * u128::from(place) / u128::from(PLACES - 1)) as u64;
            let beside = span * round;
            let is_outside = place < PLACES / 2;
            let mut lba =
                if is_outside { (at + beside).min(room) } else { at.saturating_sub(beside) };
            for sectors in [self.large / 2, self.large] {
                for _ in 0..count {
                    reads.push(stage::extent(lba, sectors));
                    lba += sectors;
                }
            }
        }
        Stage::new(1, reads)
    }

    /// Single sectors of one track in falling order, with far ones in between, at many places.
    fn rotation(&mut self) -> Stage {
        let runs =
            stage::runs(&self.found.rates, self.size, self.counts.rotation, self.repeats.into());
        let mut reads = Vec::new();
        for run in &runs {
            for step in 0..run.count {
                // Pauses that tell the revolution from the sectors' advance. Among a few sectors a long one would leave open
                // how many revolutions it was.
                let far = match step {
                    _ if run.is_long() && step == run.count / 2 => PAUSE,
                    _ if step % 4 == 3 => 4,
                    _ => 1,
                };
                (0..far)
                    .for_each(|_| reads.push(stage::extent(self.rng.below(self.size.get()), 1)));
                reads.push(stage::extent(run.first - step * run.stride, 1));
            }
        }
        Stage::with_runs(reads, runs)
    }

    fn random(&mut self, depth: u32) -> Stage {
        let count = self.counts.random + 2 * u64::from(depth);
        let size = self.size.get();
        Stage::new(depth, (0..count).map(|_| stage::extent(self.rng.below(size), 1)).collect())
    }

    /// The first reads of a hunt for a length's positioning.
    fn set_out(&mut self, at: usize) -> Stage {
        let layout = self.found.layout.as_ref().expect("it is made before the seeks");
        let mut hunt = Hunt::new(layout.lengths()[at], self.found.rotation, self.scale);
        let reads = hunt.set_out(&mut self.rng, layout);
        self.hunt = Some(hunt);
        Stage::new(1, reads.to_vec())
    }
}

/// Reads of one aim: the first, the one away, the one back.
const READS_OF_AN_AIM: u64 = 3;
/// The least reads back that must count.
const COUNTED_MIN: u64 = 8;
/// The part of its time by which a seek's middle may be off at most after all its reads, if there is to be room for what the
/// machine's lateness leaves in doubt.
const SEEK_ERROR_MAX: f64 = 0.025;
const _: () = assert!(SEEK_ERROR_MAX < trust::SEEK);
/// How many seek lengths a usual drive has, for the progress before they are known.
const SEEKS_ABOUT: u64 = 22;
/// The most lengths that are put in between others.
const PUT_IN_MAX: usize = 8;
/// How many times as long as the one before a seek takes, for a length to be put in between.
const UNLIKE: f64 = 1.08;
