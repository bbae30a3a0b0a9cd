//! Quantiles of streams of times and of other numbers, without keeping them.

use levelhead_units::Nanos;

/// A quantile of a stream of positive numbers, by stochastic approximation: each number moves the estimate up or
/// down by a small share of it. The two shares are chosen so that the estimate comes to rest where a share `p` of
/// the numbers is below it. Times are numbers of seconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Quantile {
    p: f64,
    value: Option<f64>,
}

/// The least first estimate.
const VALUE_MIN: f64 = 1e-6;

/// How far one number moves a quantile, at most, as a share of it.
const STEP: f64 = 0.05;

impl Quantile {
    pub(crate) const fn new(p: f64) -> Self {
        Self { p, value: None }
    }

    pub(crate) fn note(&mut self, time: Nanos) {
        self.note_number(time.as_secs_f64());
    }

    pub(crate) fn note_number(&mut self, number: f64) {
        // A quantile moves by shares of itself, so it must not begin at zero: it would stay there.
        let value = self.value.get_or_insert(number.max(VALUE_MIN));
        *value *= if number > *value { 1.0 + STEP * self.p } else { 1.0 - STEP * (1.0 - self.p) };
    }

    pub(crate) fn number(self) -> Option<f64> {
        self.value
    }

    pub(crate) fn get(self) -> Option<Nanos> {
        self.value.map(Nanos::from_secs_f64_round)
    }
}

#[cfg(test)]
mod tests {
    use levelhead_stats::Streams;

    use super::*;

    #[test]
    fn quantiles_are_found_and_followed() {
        let mut rng = Streams::new(3).stream("times");
        let (mut median, mut tail) = (Quantile::new(0.5), Quantile::new(0.99));
        for mean in [10, 40] {
            for _ in 0..20_000 {
                let time = rng.exponential(Nanos::from_millis(mean));
                median.note(time);
                tail.note(time);
            }
            let ratio = |quantile: Quantile, exact: f64| {
                quantile.get().unwrap().as_millis_f64() / (exact * mean as f64)
            };
            let (half, last) = (ratio(median, std::f64::consts::LN_2), ratio(tail, 100f64.ln()));
            assert!((0.7..1.4).contains(&half), "{half}");
            assert!((0.7..1.4).contains(&last), "{last}");
        }
    }
}
