//! Which way of reading costs all requests together less: the aggregated net read latency.
//!
//! ```text
//!   tau =  sum over drives with requested data   E[n_j] (f_j tau_retry_j + c_j tau_hdd_j)
//!        - sum over the group's other drives     E[n_j] (1 - c_j) tau_hdd_j
//! ```
//!
//! Reading the whole group is worth it iff `tau > 0`. `f_j` is the probability that the sub-request
//! fails, `c_j` that one is removed from the queue before the drive begins, `n_j` the number of later
//! sub-requests that wait longer for this one.
//!
//! The paper's `E[n]` sums `n Pois(n; lambda T(n))` over all `n`; those terms are no law, for `T`
//! depends on `n`. The number that a server with constant times serves in a busy period that begins
//! with `q` jobs follows the Borel-Tanner law, which differs by the factor `q / (q + n)`.
//!
//! # References
//!
//! - `[ERAID]` sec. III-C, Eq. (1) to (4).
//! - `[Tan61]` the law of a busy period.
//!
//! # Assumptions
//!
//! - A1. Poisson arrivals, constant service times, drives independent of each other.
//! - A2. Sectors fail independently: a sub-request of `b` sectors fails with `1 - (1-p)^b`.

/// How `E[n]` is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delayed {
    /// The paper's sum, as printed.
    Paper,
    /// The mean of the Borel-Tanner law: what is served before the queue is next empty.
    BusyPeriod,
    /// The same for one job more than there are: what adding a job costs others.
    Externality,
}

impl Delayed {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Paper, Self::BusyPeriod, Self::Externality];

    /// Its name in a table.
    pub fn name(self) -> &'static str {
        match self {
            Self::Paper => "paper",
            Self::BusyPeriod => "exact",
            Self::Externality => "externality",
        }
    }
}

/// A drive when a read is decided. Times in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drive {
    /// Sub-requests that wait for it or are inside it.
    pub queued: u64,
    /// The share of time it is busy, `lambda tau_hdd`; at most [`LOAD_MAX`] counts.
    pub load: f64,
    /// Probability that a sub-request is removed before the drive begins.
    pub removal: f64,
    /// Probability that a sector's first pass fails.
    pub failure_rate: f64,
    /// Mean time of a retry.
    pub retry_time: f64,
    /// Mean time of a sub-request without retries.
    pub service_time: f64,
}

/// Which sub-requests a read sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// To the drives with requested data, retries on.
    Normal,
    /// To all drives of the group, retries off, what waits is removed once enough has come.
    Assisted,
}

/// The highest load that is told apart: at 1 no busy period ends.
pub const LOAD_MAX: f64 = 0.98;

/// `E[n]`: later sub-requests that one more now delays.
///
/// ```text
///   paper        sum_n n Pois(n; rho (q + n))                             [ERAID] Eq. (3)
///   exact        sum_n n q/(q+n) Pois(n; rho (q + n))  =  q rho / (1-rho)           [Tan61]
///   externality  (q + 1) rho / (1-rho)
/// ```
///
/// # Panics
///
/// If `load` is negative or not a number.
pub fn delayed(form: Delayed, queued: u64, load: f64) -> f64 {
    assert!(load >= 0.0, "a load of {load}");
    let load = load.min(LOAD_MAX);
    let per_job = load / (1.0 - load);
    match form {
        Delayed::Paper => papers_sum(queued as f64, load),
        Delayed::BusyPeriod => queued as f64 * per_job,
        Delayed::Externality => (queued + 1) as f64 * per_job,
    }
}

/// The sum as printed, term by term.
fn papers_sum(queued: f64, load: f64) -> f64 {
    if load <= 0.0 {
        return 0.0;
    }
    let (mut sum, mut ln_factorial) = (0.0, 0.0);
    let mut n = 0.0;
    loop {
        n += 1.0;
        ln_factorial += f64::ln(n);
        let mean = load * (queued + n);
        let term = n * (n * mean.ln() - mean - ln_factorial).exp();
        sum += term;
        // Past its peak the sum falls at least as fast as a geometric one of ratio load e^(1-load).
        let ratio = load * (1.0 - load).exp();
        if n > queued && term < 1e-13 * sum * (1.0 - ratio) {
            return sum;
        }
    }
}

/// Probability that a busy period that begins with `queued` jobs serves `later` more.
///
/// ```text
///   q/(q+n) Pois(n; rho (q + n))                                                    [Tan61]
/// ```
///
/// # Panics
///
/// If `load` is outside 0 to 1.
pub fn busy_period(queued: u64, load: f64, later: u64) -> f64 {
    assert!((0.0..=1.0).contains(&load), "a load of {load}");
    if queued == 0 || load <= 0.0 {
        return if later == 0 { 1.0 } else { 0.0 };
    }
    let (q, n) = (queued as f64, later as f64);
    let mean = load * (q + n);
    let ln_factorial: f64 = (1..=later).map(|i| (i as f64).ln()).sum();
    q / (q + n) * (n * mean.ln() - mean - ln_factorial).exp()
}

/// Seconds that all requests together save if this read takes the whole group; `wanted` are the
/// requested sectors on each drive, 0 for those with only the rest of the group. `[ERAID]` Eq. (4).
pub fn net_latency(form: Delayed, shares: &[(Drive, u64)]) -> f64 {
    let of = |&(drive, wanted): &(Drive, u64)| {
        let delayed = delayed(form, drive.queued, drive.load);
        if wanted == 0 {
            return -delayed * (1.0 - drive.removal) * drive.service_time;
        }
        let fails = -(wanted as f64 * (-drive.failure_rate).ln_1p()).exp_m1();
        delayed * (fails * drive.retry_time + drive.removal * drive.service_time)
    };
    shares.iter().map(of).sum()
}

/// The mode that a [`net_latency`] chooses.
pub fn choice(net_latency: f64) -> Mode {
    if net_latency > 0.0 { Mode::Assisted } else { Mode::Normal }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Four waiting at a load of 0.8: 180 as printed, 16 exactly.
    #[test]
    fn reproduces_the_erratum_of_eraid() {
        for (form, want) in
            [(Delayed::Paper, 180.0), (Delayed::BusyPeriod, 16.0), (Delayed::Externality, 20.0)]
        {
            let delayed = delayed(form, 4, 0.8);
            assert!((delayed / want - 1.0).abs() < 1e-9, "{form:?}: {delayed}");
        }
    }

    /// The printed sum is `(q rho / (1-rho) + rho / (1-rho)^2) / (1-rho)`.
    #[test]
    fn the_papers_sum_has_a_closed_form() {
        for queued in [0, 1, 5, 40] {
            for load in [0.01, 0.3, 0.9, 0.98] {
                let idle = 1.0 - load;
                let closed = (queued as f64 * load / idle + load / (idle * idle)) / idle;
                let sum = delayed(Delayed::Paper, queued, load);
                assert!((sum / closed - 1.0).abs() < 1e-8, "{queued} {load}: {sum} {closed}");
            }
        }
    }

    #[test]
    fn busy_periods_are_a_law_with_the_exact_mean() {
        for (queued, load) in [(1, 0.3), (4, 0.8), (10, 0.5)] {
            let law = (0..2_000).map(|n| (n as f64, busy_period(queued, load, n)));
            let (mass, mean) =
                law.fold((0.0, 0.0), |(mass, mean), (n, p)| (mass + p, mean + n * p));
            assert!((mass - 1.0).abs() < 1e-9, "{queued} {load}: {mass}");
            let want = delayed(Delayed::BusyPeriod, queued, load);
            assert!((mean / want - 1.0).abs() < 1e-7, "{queued} {load}: {mean} {want}");
        }
    }

    #[test]
    fn extreme_states_are_numbers() {
        for form in Delayed::ALL {
            assert!(delayed(form, 1_000_000, 7.0).is_finite());
            assert!(delayed(form, 0, 0.0).abs() < f64::EPSILON);
        }
    }
}
