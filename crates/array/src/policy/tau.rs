//! The aggregated net read latency of `[ERAID]`: is reading the whole coding group worth it?
//!
//! ```text
//!   tau =  sum over drives with requested data   E[n_j] (p_j tau_retry_j + c_j tau_hdd_j)
//!        - sum over the group's other drives     E[n_j] (1 - c_j) tau_hdd_j        [ERAID] Eq. 1-4
//! ```
//!
//! with `p_j` the probability that the sub-request fails, `c_j` the recent probability that a
//! sub-request is withdrawn before drive `j` starts on it, and `n_j` the number of later
//! sub-requests that wait longer because of this decision. The group is read iff `tau > 0`.
//!
//! # References
//!
//! - `[ERAID]` sec. III-C.
//!
//! # Assumptions
//!
//! - M1. Poisson arrivals and constant service times: the law behind every form of `E[n]`.
//! - M2. Sectors fail independently: a sub-request of `b` sectors fails with `1 - (1 - p)^b`.
//! - M3. Means only: that five of six answers come sooner than five of five is not seen.

use std::fmt;

use levelhead_units::DriveIdx;

/// How `E[n]` is estimated: which later sub-requests a decision delays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The paper's sum, `sum_n n Pois(n; lambda T(n))` with `T(n) = (q + n) tau_hdd`. Its terms
    /// are not a law: they sum to about `1 / (1 - rho)`.
    Paper,
    /// The mean number served in the busy period that starts with `q` (Borel-Tanner).
    Exact,
    /// The same for one job more than wait now: what adding one job costs the others.
    Externality,
}

impl Form {
    /// All of them, by the names of the command line.
    pub const ALL: [(Self, &'static str); 3] =
        [(Self::Paper, "paper"), (Self::Exact, "exact"), (Self::Externality, "externality")];
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::ALL.iter().find(|(form, _)| form == self).map_or("", |(_, name)| name))
    }
}

/// Loads are taken as at most this; at 1 the sums have no end.
const LOAD_MAX: f64 = 0.98;

/// Expected number of later sub-requests delayed on a drive with `queued` commands waiting or
/// inside and a load `rho = lambda tau_hdd`.
///
/// ```text
///   paper        (q rho / (1 - rho) + rho / (1 - rho)^2) / (1 - rho)
///   exact         q rho / (1 - rho)
///   externality  (q + 1) rho / (1 - rho)
/// ```
///
/// The first is what the paper's sum comes to in closed form.
pub fn delayed(form: Form, queued: f64, rho: f64) -> f64 {
    assert!(queued >= 0.0);
    let rho = rho.clamp(0.0, LOAD_MAX);
    let idle = 1.0 - rho;
    match form {
        Form::Paper => (queued * rho / idle + rho / (idle * idle)) / idle,
        Form::Exact => queued * rho / idle,
        Form::Externality => (queued + 1.0) * rho / idle,
    }
}

/// What is known of one drive when a read is decided. Times in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DriveView {
    /// Commands waiting for it or inside it.
    pub queued: f64,
    /// Sub-requests a second that come its way.
    pub arrival_rate: f64,
    /// Recent probability that one is withdrawn before the drive starts on it.
    pub removal: f64,
    /// Probability that a sector's first pass fails.
    pub retry_rate: f64,
    /// Mean time of its retries.
    pub retry_latency: f64,
    /// Mean time of one command in its mechanics.
    pub service_time: f64,
    /// Time of one command lately, as the array sees it; at least what its silence tells.
    pub pace: f64,
    /// The same, had it been the only command inside: what drives with unlike queues are compared by.
    pub pace_alone: f64,
    /// Share of sectors that it did not give without retries, as the array has learnt it.
    pub failure_rate: f64,
    /// Mean time that a retry takes, by what the drive says, or what was seen, or what is usual.
    pub retry_time: f64,
    /// Mean time by which a command takes longer than what is usual for all drives: slow now and then.
    pub excess: f64,
}

impl DriveView {
    /// How long a new command would take: all that is there, and itself.
    pub fn wait(&self) -> f64 {
        (self.queued + 1.0) * self.pace
    }
}

/// One drive's share of a read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share {
    /// Its place.
    pub idx: DriveIdx,
    /// What is known of it.
    pub drive: DriveView,
    /// Sectors of requested data on it; 0 if it holds only the rest of the group.
    pub wanted: u32,
}

/// Seconds of read latency that all affected requests together save if this read takes the whole
/// group instead of the requested data alone. Eq. (4) of `[ERAID]`.
pub fn net_latency(form: Form, shares: &[Share]) -> f64 {
    shares
        .iter()
        .map(|&Share { drive, wanted, .. }| {
            let rho = drive.arrival_rate * drive.service_time;
            let delayed = delayed(form, drive.queued, rho);
            if wanted > 0 {
                let fails = -(f64::from(wanted) * (-drive.retry_rate).ln_1p()).exp_m1();
                delayed * (fails * drive.retry_latency + drive.removal * drive.service_time)
            } else {
                -delayed * (1.0 - drive.removal) * drive.service_time
            }
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// q = 4, rho = 0.8: 180 as the paper sums it, 16 exactly.
    #[test]
    fn reproduces_the_erratum_of_eraid() {
        assert!((delayed(Form::Paper, 4.0, 0.8) - 180.0).abs() < 1e-9);
        assert!((delayed(Form::Exact, 4.0, 0.8) - 16.0).abs() < 1e-9);
        assert!((delayed(Form::Externality, 4.0, 0.8) - 20.0).abs() < 1e-9);
    }

    /// The paper's sum term by term, as far as it matters, against the closed form.
    #[test]
    fn paper_form_is_the_papers_sum() {
        for (queued, rho) in [(0.0, 0.5), (3.0, 0.3), (4.0, 0.8), (20.0, 0.6)] {
            let (mut sum, mut log_factorial) = (0.0, 0.0);
            for n in 1..20_000 {
                let n = f64::from(n);
                log_factorial += n.ln();
                let mean: f64 = rho * (queued + n);
                sum += n * (n * mean.ln() - mean - log_factorial).exp();
            }
            let closed = delayed(Form::Paper, queued, rho);
            assert!((sum / closed - 1.0).abs() < 1e-6, "q {queued}, rho {rho}: {sum} {closed}");
        }
    }

    #[test]
    fn the_whole_group_pays_when_nothing_extra_is_read_or_retries_are_dear() {
        let drive = DriveView {
            queued: 3.0,
            arrival_rate: 60.0,
            removal: 0.1,
            retry_rate: 0.02,
            retry_latency: 0.025,
            service_time: 0.010,
            ..DriveView::default()
        };
        let shares =
            |wanted: [u32; 6]| wanted.map(|wanted| Share { idx: DriveIdx::new(0), drive, wanted });
        assert!(net_latency(Form::Paper, &shares([4; 6])) > 0.0);
        assert!(net_latency(Form::Paper, &shares([2, 0, 0, 0, 0, 0])) < 0.0);
        let dear = DriveView { retry_latency: 10.0, ..drive };
        let shares = [2, 2, 0].map(|wanted| Share { idx: DriveIdx::new(0), drive: dear, wanted });
        assert!(net_latency(Form::Externality, &shares) > 0.0);
    }

    #[test]
    fn overload_is_clipped_and_stays_a_number() {
        for form in Form::ALL.map(|(form, _)| form) {
            assert!(delayed(form, 1e6, 7.0).is_finite());
            assert!(delayed(form, 0.0, 0.0).abs() < f64::EPSILON);
        }
    }
}
