//! Whether what was measured may be told: a figure that is not known well enough is none.

use super::error::{Figure, MeasureError};
use super::facts::{Rate, Seek};
use super::lateness::{LATE_SHARE_SOME, Lateness};
use super::measured::Measured;

/// The greatest error of a rate, of the first one and of all others, as its part.
const RATE_FIRST: f64 = 0.04;
const RATE: f64 = 0.05;
/// The greatest error of the rotation, as its part: tracks are as long as it says.
const ROTATION: f64 = 0.005;
/// The greatest error of a seek, as the part of its positioning. Half of the time that a sector takes to pass is allowed too, because
/// reads begin and end with sectors, and so is a fixed time: what the machine's threads are late by is in doubt by as much.
pub(super) const SEEK: f64 = 0.05;
const SEEK_TIME: f64 = 50e-6;
/// The same of seeks over less than this part of the stroke: in how many cylinders two near sectors lie depends on what is assumed,
/// so that ways of one length differ.
const SEEK_SHORT: f64 = 0.5;
const SHORT: f64 = 1.0 / 64.0;
/// The greatest error of the rate of random reads, as its part: a quick look has a hundred of them at each depth.
const RANDOM: f64 = 0.25;

/// Refuses what a machine says that is late itself.
pub(super) fn check_lateness(lateness: Option<&Lateness>) -> Result<(), MeasureError> {
    match lateness {
        Some(lateness) if !lateness.is_usual() => {
            Err(MeasureError::Late { share: lateness.late_share, p99: lateness.p99 })
        }
        Some(_) | None => Ok(()),
    }
}

/// Whether the rate of this place is known well enough.
pub(super) fn knows_rate(rates: &[Rate], place: usize) -> bool {
    rates[place].error <= rate_error_max(place) * rates[place].bytes_per_s
}

/// The greatest error, as its part, of a seek over this share of the stroke.
pub(super) fn seek_error_max(share: f64) -> f64 {
    // Lengths are whole numbers of cylinders.
    if share < SHORT * 0.99 { SEEK_SHORT } else { SEEK }
}

/// Leaves out the short seeks that are not known, but for the shortest: of two near sectors it depends on what is not known
/// of the drive whether the arm moves at all, and their neighbours say nearly as much. On a machine that is too late to
/// know them, longer ones are not known either.
pub(super) fn leave_out(measured: &mut Measured) {
    let seeks = std::mem::take(&mut measured.seeks);
    let is_told = |(at, seek): &(usize, Seek)| {
        let (error, most, share) = seek_error(measured, seek);
        must_be_told(*at, share) || error <= most
    };
    measured.seeks = seeks.into_iter().enumerate().filter(is_told).map(|(_, seek)| seek).collect();
}

/// Whether nothing is told where this seek is not known: number `at`, over this share of the stroke.
fn must_be_told(at: usize, share: f64) -> bool {
    at == 0 || share >= SHORT * 0.99
}

/// The error of a seek as its part, the greatest that may be told, and the share of the stroke.
fn seek_error(measured: &Measured, seek: &Seek) -> (f64, f64, f64) {
    let stroke = measured.cylinders().saturating_sub(1).max(1) as f64;
    let share = seek.length as f64 / stroke;
    let least = SEEK_TIME.max(measured.sector() / 2.0);
    // A seek that takes no time was found by a machine that is later than the seek is long.
    let allowed = if seek.positioning > 0.0 { least / seek.positioning } else { 0.0 };
    (seek.error / seek.positioning, seek_error_max(share).max(allowed), share)
}

/// Why there is no answer: what is not known on a machine that was late now and then is not the drive's fault.
pub(super) fn reason(error: MeasureError, lateness: Option<&Lateness>) -> MeasureError {
    match (error, lateness) {
        (
            MeasureError::Unsure { .. } | MeasureError::Unsteady,
            Some(&Lateness { late_share: share, p99, .. }),
        ) if share > LATE_SHARE_SOME => MeasureError::Late { share, p99 },
        (error, _) => error,
    }
}

/// Whether the time of a revolution is known well enough.
pub(super) fn knows_rotation(rotation: f64, error: f64) -> bool {
    error <= ROTATION * rotation
}

fn rate_error_max(place: usize) -> f64 {
    if place == 0 { RATE_FIRST } else { RATE }
}

/// Refuses what is not known well enough, by the first reason that there is.
pub(super) fn check(measured: &Measured) -> Result<(), MeasureError> {
    let unsure = |what: Figure, error: f64, figure: f64, most: f64| {
        // An error that is no number is none that is small.
        let share = error / figure;
        let is_known = share <= most;
        if is_known { Ok(()) } else { Err(MeasureError::Unsure { what, share, most }) }
    };
    unsure(Figure::Rotation, measured.rotation_error, measured.rotation, ROTATION)?;
    for (at, rate) in measured.rates.iter().enumerate() {
        let most = rate_error_max(at);
        let what = Figure::Rate { lba: rate.lba.get() };
        unsure(what, rate.error, rate.bytes_per_s, most)?;
    }
    for (at, seek) in measured.seeks.iter().enumerate() {
        let (_, most, share) = seek_error(measured, seek);
        if must_be_told(at, share) {
            unsure(Figure::Seek { stroke: share }, seek.error, seek.positioning, most)?;
        }
    }
    for at in &measured.depths {
        unsure(Figure::Random { depth: at.depth }, at.error, at.per_s, RANDOM)?;
    }
    if measured.is_steady() { Ok(()) } else { Err(MeasureError::Unsteady) }
}
