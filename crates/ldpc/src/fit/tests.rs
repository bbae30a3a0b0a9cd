use super::*;
use crate::channel::ChannelKind;
use crate::decoder::Kernel;
use crate::simulate::{Point, Tally, Until};

fn known() -> Fit {
    Fit { forced: ZeroForcing::B256, centre: 0.49, slope: 300.0 }
}

/// Counts that are what the curve expects, but for rounding.
fn expected(fit: &Fit, points: &[(f64, u64)]) -> Vec<Count> {
    let count = |&(ber, frames): &(f64, u64)| {
        let failures = (fit.failure_at(ber) * frames as f64).round() as u64;
        Count::of_frames(ber, frames, failures)
    };
    points.iter().map(count).collect()
}

const POINTS: [(f64, u64); 4] =
    [(0.0191, 10_000), (0.0186, 100_000), (0.0182, 1_000_000), (0.0179, 10_000_000)];

#[test]
fn a_curve_is_found_again_from_what_it_expects() {
    let fitted = Fitted::of(ZeroForcing::B256, &expected(&known(), &POINTS)).unwrap();
    assert!((fitted.fit.centre - 0.49).abs() < 2e-6, "{fitted:?}");
    assert!((fitted.fit.slope - 300.0).abs() < 0.5, "{fitted:?}");
    assert!(fitted.chi_squared < 0.01, "{fitted:?}");
    assert_eq!((fitted.freedom, fitted.fit.forced), (2, ZeroForcing::B256));
    // Two points have a curve that meets both.
    let two = Fitted::of(ZeroForcing::B256, &expected(&known(), &POINTS[1..3])).unwrap();
    assert!((two.chi_squared < 1e-12) && two.freedom == 0, "{two:?}");
}

#[test]
fn no_curve_is_likelier_than_the_one_that_is_found() {
    let counts = [
        Count::of_frames(0.0191, 5_000, 90),
        Count::of_frames(0.0186, 50_000, 120),
        Count::of_frames(0.0182, 200_000, 18),
        Count::of_frames(0.0176, 100_000, 0),
    ];
    let fitted = Fitted::of(ZeroForcing::B256, &counts).unwrap();
    let likelihood = |fit: Fit| {
        let of = |count: &Count| {
            let rate = fit.failure(count.sigma);
            let others = count.frames - count.failures;
            count.failures as f64 * rate.ln() + others as f64 * (-rate).ln_1p()
        };
        counts.iter().map(of).sum::<f64>()
    };
    let best = likelihood(fitted.fit);
    for (centre, slope) in [(1e-5, 0.0), (-1e-5, 0.0), (0.0, 1e-3), (0.0, -1e-3), (1e-5, 1e-2)] {
        let Fit { centre: at, slope: by, .. } = fitted.fit;
        let other = Fit { centre: at + centre, slope: by * (1.0 + slope), ..fitted.fit };
        assert!(likelihood(other) < best, "{other:?} beside {fitted:?}");
    }
}

#[test]
fn counts_without_a_curve_have_none() {
    let of = |counts: &[Count]| Fitted::of(ZeroForcing::None, counts);
    assert_eq!(of(&[]), None);
    assert_eq!(of(&[Count::of_frames(0.018, 100, 10)]), None);
    assert_eq!(of(&[Count::of_frames(0.018, 100, 10), Count::of_frames(0.017, 100, 0)]), None);
    assert_eq!(of(&[Count::of_frames(0.018, 100, 10); 2]), None);
    // More noise that fails less is no curve.
    assert_eq!(of(&[Count::of_frames(0.018, 900, 10), Count::of_frames(0.017, 900, 50)]), None);
}

/// Of 100 sets of counts that are drawn from a curve, about 95 have a band that holds the curve's rate.
#[test]
fn bands_hold_the_truth_as_often_as_they_say() {
    let fit = known();
    let start = expected(&fit, &[(0.0191, 5_000), (0.0186, 50_000), (0.0182, 200_000)]);
    let fitted = Fitted::of(fit.forced, &start).unwrap();
    let truth = Fitted { fit, ..fitted };
    let by_failures: Vec<Count> =
        start.iter().map(|count| Count { end: End::Failure, ..*count }).collect();
    for counts in [start, by_failures] {
        let mut held = [0; 2];
        let worlds = Bootstrap::new(&truth, &counts, 100, 3);
        for (at, world) in worlds.fits().iter().enumerate() {
            let again = Fitted { fit: *world, ..fitted };
            let band = Bootstrap::new(&again, &counts, 200, at as u64);
            let rate = band.band(|fit| fit.failure_at(0.0178));
            let ber = band.band(|fit| fit.ber_at(1e-3));
            assert!(rate.low < world.failure_at(0.0178) && world.failure_at(0.0178) < rate.high);
            held[0] += u32::from(
                rate.low <= fit.failure_at(0.0178) && fit.failure_at(0.0178) <= rate.high,
            );
            held[1] += u32::from(ber.low <= fit.ber_at(1e-3) && fit.ber_at(1e-3) <= ber.high);
        }
        assert!(held.iter().all(|held| (86..=100).contains(held)), "{held:?} of 100");
    }
}

#[test]
fn rates_and_noise_are_inverse_to_each_other() {
    for fit in FITS {
        for rate in [1e-8, 1e-5, 1e-3, 0.4, 0.9] {
            assert!((fit.failure(fit.sigma_at(rate)) / rate - 1.0).abs() < 1e-9);
            assert!((fit.failure_at(fit.ber_at(rate)) / rate - 1.0).abs() < 1e-9);
        }
    }
    let under = CURVES[0].under(ZeroForcing::None, 5e-3);
    assert!((under / 5e-3 - 1.0).abs() < 1e-9, "{under}");
}

fn fitted(forced: ZeroForcing) -> (Fitted, Vec<Count>) {
    fitted_with(Counted::ITERATIONS, forced)
}

fn fitted_with(iterations: u32, forced: ZeroForcing) -> (Fitted, Vec<Count>) {
    let counts: Vec<Count> = Counted::with(iterations, forced).map(|row| row.count()).collect();
    (Fitted::of(forced, &counts).unwrap(), counts)
}

#[test]
fn the_committed_curves_follow_from_the_committed_counts() {
    let all = CURVES.iter().flat_map(|curves| curves.fits.map(|fit| (curves.iterations, fit)));
    for (iterations, committed) in all {
        let (fitted, counts) = fitted_with(iterations, committed.forced);
        let Fit { centre, slope, .. } = fitted.fit;
        assert!((centre - committed.centre).abs() < 5e-7, "{iterations}: {fitted:?}");
        assert!((slope - committed.slope).abs() < 0.05, "{iterations}: {fitted:?}");
        // 99.9 % of chi-squared.
        let most = [10.9, 13.9, 16.3, 18.5][fitted.freedom - 1];
        assert!(fitted.chi_squared < most, "{fitted:?}");
        assert!(counts.iter().all(|count| count.failures >= 20));
    }
}

/// Of the same samples more iterations fail only where fewer fail.
#[test]
fn more_iterations_fail_less() {
    assert_eq!(CURVES.map(|curves| curves.iterations), [50, 20, 200]);
    for forced in ZeroForcing::ALL {
        let [usual, few, many] = CURVES.map(|curves| curves.fit(forced));
        for rate in [1e-2, 1e-3, 1e-4] {
            let sigma = usual.sigma_at(rate);
            assert!(few.failure(sigma) > rate && many.failure(sigma) < rate, "{forced} {rate}");
        }
    }
}

/// What is known of the paper's curve: 512 zeroes are worth five orders of magnitude and more.
#[test]
fn reproduces_that_512_zeroes_are_far_below_1e_8() {
    let [(none, plain), (forced, more)] = [ZeroForcing::None, ZeroForcing::B512].map(fitted);
    let bands = [Bootstrap::new(&none, &plain, 400, 7), Bootstrap::new(&forced, &more, 400, 7)];
    let band = bands[0].band_with(&bands[1], |none, forced| forced.failure(none.sigma_at(1e-3)));
    assert!(CURVES[0].under(ZeroForcing::B512, 1e-3) < 1e-8);
    assert!(band.high < 1e-8, "{band:?}");
}

/// Failure rates that the code has to have, by counts of at least 100 failures.
#[test]
fn the_committed_counts_are_below_what_is_asked() {
    use ChannelKind::{Hard, Soft};
    for (channel, forced, ber, most) in [
        (Soft, ZeroForcing::None, 0.0175, 2.8e-3),
        (Soft, ZeroForcing::B256, 0.0185, 1.7e-3),
        (Soft, ZeroForcing::B512, 0.02, 4.5e-3),
        (Soft, ZeroForcing::B1024, 0.0235, 1.5e-2),
        (Hard, ZeroForcing::None, 0.0065, 2e-3),
    ] {
        let is_meant = |row: &Counted| row.ber.to_bits() == f64::to_bits(ber);
        let row = Counted::of(channel, forced).find(is_meant).unwrap();
        assert!(row.failures >= 100, "{row:?}");
        let rate = (row.failures - 1) as f64 / (row.frames - 1) as f64;
        assert!(rate <= most, "{row:?}: {rate}");
    }
}

/// A point with less noise, or with as much and more zeroes, fails less.
#[test]
fn the_committed_counts_fall_with_zeroes_and_with_less_noise() {
    let rate = |row: &Counted| row.failures as f64 / row.frames as f64;
    for one in COUNTS {
        for other in COUNTS.into_iter().filter(|other| other.channel == one.channel) {
            let is_better = other.forced >= one.forced && other.ber <= one.ber;
            assert!(!is_better || rate(&other) <= rate(&one), "{one:?} {other:?}");
        }
    }
}

/// The small ones again, the large ones in part: a count is what its command counts.
#[test]
fn the_committed_counts_are_what_the_code_gives() {
    const SHARE: u64 = 1_280;
    for row in COUNTS {
        let Counted { forced, channel, ber, .. } = row;
        let point =
            Point { forced, channel, ber, iterations: Counted::ITERATIONS, seed: Counted::SEED };
        let until = Until { failures: row.failures, frames_max: row.frames.min(SHARE) };
        let mut tally = Tally::default();
        while !tally.has_ended(until) {
            tally.add(point.block(tally.blocks, Kernel::best()).unwrap());
        }
        let outcome = tally.outcome(until);
        if outcome.failures == row.failures {
            assert_eq!(
                (outcome.frames, outcome.undetected),
                (row.frames, row.undetected),
                "{row:?}"
            );
        } else {
            let rate = row.failures as f64 / row.frames as f64;
            assert!(
                outcome.rate.low < 1.5 * rate && rate < outcome.rate.high,
                "{row:?} {outcome:?}"
            );
        }
    }
}
