//! Whether what was measured may be told: a figure that is not known well enough is none.

use super::error::{Figure, MeasureError};
use super::facts::Rate;
use super::lateness::Lateness;
use super::measured::Measured;

/// The greatest error of a rate, of the first one and of all others, as its part.
const RATE_FIRST: f64 = 0.04;
const RATE: f64 = 0.05;
/// The greatest error of the rotation, as its part: tracks are as long as it says.
const ROTATION: f64 = 0.005;
/// The greatest error of a seek, as the part of its positioning; half of the time that a sector takes to pass is allowed too, because reads
/// begin and end with sectors.
const SEEK: f64 = 0.05;
/// Seeks over less than this part of the stroke may be off by that of the shortest one that is longer: in how many cylinders two
/// near sectors lie depends on what is assumed.
pub(super) const SHORT: f64 = 1.0 / 64.0;

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
    let stroke = measured.cylinders().saturating_sub(1).max(1) as f64;
    for seek in &measured.seeks {
        let share = seek.length as f64 / stroke;
        if share >= SHORT * 0.99 {
            let passing = measured.sector() / 2.0 / seek.positioning;
            let most = SEEK.max(passing);
            unsure(Figure::Seek { stroke: share }, seek.error, seek.positioning, most)?;
        }
    }
    if measured.is_steady() { Ok(()) } else { Err(MeasureError::Unsteady) }
}
