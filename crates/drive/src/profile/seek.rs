//! How long a seek takes, by its length: a curve through a manual's figures, or a measured table.

use std::sync::Arc;

use levelhead_units::Nanos;
use serde::Deserialize;

use super::ProfileError;
use super::limits::{CYLINDERS_MAX, time};

/// The three-point seek curve needs three lengths well apart.
const CYLINDERS_MIN_FOR_CURVE: u32 = 10;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TypedSeek {
    single: Option<String>,
    settle: Option<String>,
    third: Option<String>,
    full: Option<String>,
    points: Option<Vec<(u32, String)>>,
}

/// A seek curve by what manuals say: `single` for one cylinder, and for every longer seek of `d`
/// cylinders `settle + b sqrt(d) + c d`, with `b` and `c` such that a third of the stroke and the
/// whole stroke take what is given.
struct Curve {
    single: Nanos,
    settle: Nanos,
    third: Nanos,
    full: Nanos,
}

impl TypedSeek {
    /// The time of a seek of each length, on a drive of `cylinders` cylinders.
    pub(super) fn table(&self, section: &str, cylinders: u32) -> Result<Arc<[u32]>, ProfileError> {
        match self {
            Self {
                single: Some(single),
                settle: Some(settle),
                third: Some(third),
                full: Some(full),
                points: None,
            } => {
                let figure = |name: &str, text| time(&format!("{section}.{name}"), text);
                let figures = Curve {
                    single: figure("single", single)?,
                    settle: figure("settle", settle)?,
                    third: figure("third", third)?,
                    full: figure("full", full)?,
                };
                curve(section, cylinders, &figures)
            }
            Self { single: None, settle: None, third: None, full: None, points: Some(points) } => {
                interpolation(section, cylinders, points)
            }
            _ => {
                let problem = "needs either single, settle, third and full, or points";
                Err(ProfileError::new(section, problem))
            }
        }
    }
}

/// The time of a seek of each length by [`Curve`], on a drive of `cylinders` cylinders.
fn curve(section: &str, cylinders: u32, curve: &Curve) -> Result<Arc<[u32]>, ProfileError> {
    if cylinders < CYLINDERS_MIN_FOR_CURVE {
        let problem = format!(
            "by single, settle, third and full needs at least {CYLINDERS_MIN_FOR_CURVE} \
             cylinders, not {cylinders}: give points"
        );
        return Err(ProfileError::new(section, problem));
    }
    let [single, a, third, full] =
        [curve.single, curve.settle, curve.third, curve.full].map(|time| time.get() as f64);
    let stroke = f64::from(cylinders - 1);
    // Two equations, u = b sqrt(d) + c d at a third of the stroke and at all of it.
    let (x1, y1, u1) = ((stroke / 3.0).sqrt(), stroke / 3.0, third - a);
    let (x2, y2, u2) = (stroke.sqrt(), stroke, full - a);
    let determinant = x1 * y2 - x2 * y1;
    let b = (u1 * y2 - u2 * y1) / determinant;
    let c = (x1 * u2 - x2 * u1) / determinant;
    let time = |length: u32| match length {
        0 => 0.0,
        1 => single,
        // Sums, products and square roots round alike everywhere (IEEE 754).
        _ => a + b * f64::from(length).sqrt() + c * f64::from(length),
    };
    // A negative time becomes zero and is found out by what follows. (Measured tables do fall here
    // and there; a curve that falls has been given times that no arm keeps.)
    let table: Arc<[u32]> = (0..cylinders).map(|length| time(length).round() as u32).collect();
    if let Some(at) = (1..table.len()).find(|&at| table[at] < table[at - 1]) {
        let problem = format!("takes longer over {} cylinders than over {at}", at - 1);
        return Err(ProfileError::new(section, problem));
    }
    Ok(table)
}

/// Straight lines between the points.
fn interpolation(
    section: &str,
    cylinders: u32,
    points: &[(u32, String)],
) -> Result<Arc<[u32]>, ProfileError> {
    let key = |at: usize| format!("{section}.points[{at}]");
    let mut table = vec![0_u32; 1];
    let mut last: Option<(u32, Nanos)> = None;
    for (at, (length, text)) in points.iter().enumerate() {
        let reached = time(&key(at), text)?;
        let (length_before, before) = last.unwrap_or((*length, reached));
        let in_order = if last.is_none() { *length == 1 } else { *length > length_before };
        if !in_order || *length > CYLINDERS_MAX {
            let problem = format!(
                "is a length of {length}: expected lengths that start with 1, rise, and end by \
                 {CYLINDERS_MAX}"
            );
            return Err(ProfileError::new(key(at), problem));
        }
        let span = u64::from(length - length_before).max(1);
        for step in u64::from(last.is_some())..=u64::from(length - length_before) {
            let sum = before.get() * (span - step) + reached.get() * step;
            // Times are at most a second, which is less than 2^32 ns.
            table.push(((sum + span / 2) / span) as u32);
        }
        last = Some((*length, reached));
    }
    let stroke = cylinders - 1;
    if table.len() <= stroke as usize {
        let end = last.map_or(0, |(length, _)| length);
        let problem = format!("end at {end} cylinders: expected at least the stroke, {stroke}");
        return Err(ProfileError::new(format!("{section}.points"), problem));
    }
    table.truncate(cylinders as usize);
    Ok(table.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_goes_through_the_times_given() {
        let [single, settle, third, full] = [230, 1_200, 8_200, 17_100].map(Nanos::from_micros);
        let table = curve("seek", 3_001, &Curve { single, settle, third, full }).unwrap();
        assert_eq!(table.len(), 3_001);
        for (length, time) in [(0, Nanos::ZERO), (1, single), (1_000, third), (3_000, full)] {
            assert_eq!(u64::from(table[length]), time.get(), "{length}");
        }
        assert!(table.is_sorted());
        assert!(u64::from(table[2]) > settle.get());
    }
}
