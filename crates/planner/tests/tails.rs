//! Failure probabilities against numbers with 60 digits, made once by `fixtures/tails.py`.

use levelhead_planner::Code;
use levelhead_planner::code::{failure, failure_bound_correlated, ln_failure};

const FIXTURE: &str = include_str!("fixtures/tails.csv");

/// Largest relative error that is let through.
const ERROR_MAX: f64 = 1e-10;

#[test]
fn probabilities_keep_ten_digits_down_to_1e_30_and_beyond() {
    let (mut count, mut tiny, mut worst) = (0, 0, 0.0_f64);
    for line in FIXTURE.lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        let [kind, length, redundant, rate, correlation, want] = fields[..] else {
            panic!("{line}");
        };
        let (length, redundant): (u64, u64) = (length.parse().unwrap(), redundant.parse().unwrap());
        let (rate, want): (f64, f64) = (rate.parse().unwrap(), want.parse().unwrap());
        let code = Code { data: length - redundant, redundant };
        let ours = match kind {
            "failure" => {
                let by_log = ln_failure(code, rate).exp();
                assert!((by_log / want - 1.0).abs() < ERROR_MAX, "{line}: {by_log:e} by logarithm");
                failure(code, rate)
            }
            "bound" => failure_bound_correlated(code, rate, correlation.parse().unwrap()),
            other => panic!("{other}"),
        };
        let error = (ours / want - 1.0).abs();
        assert!(error < ERROR_MAX, "{line}: {ours:e}, off by {error:e}");
        worst = worst.max(error);
        count += 1;
        tiny += u32::from((1e-40..1e-25).contains(&want));
    }
    println!("{count} numbers, {tiny} of them around 1e-30, worst relative error {worst:e}");
    assert!(count > 500 && tiny > 20, "{count} numbers, {tiny} around 1e-30");
}
