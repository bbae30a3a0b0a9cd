//! `level`: this project's own detector.
use super::history::History;
use super::peers::{log_ratios, quantile};
use super::{Detector, Finding, Reading, Verdict, WINDOW, WINDOWS_PER_HOUR};

/// Constants of the rule.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// Spans, in busy hours, each of whose medians is looked at.
    pub spans_hours: [usize; 6],
    /// The least latency over the peers' that is called slow.
    pub ratio_min: f64,
    /// How many times slower than that of white noise the variance of a span's median falls.
    pub inflation: f64,
    /// Standard deviation of the log of what healthy members differ by for ever.
    pub lasting: f64,
    /// How many standard deviations of a healthy member's median are slow.
    pub threshold: f64,
    /// Peers with a usable reading that a window needs.
    pub peers_min: usize,
}

impl Options {
    /// Frozen.
    pub const FROZEN: Self = Self {
        spans_hours: [1, 2, 3, 6, 9, 15],
        ratio_min: 1.1,
        inflation: 5.0,
        lasting: 0.03,
        threshold: 6.0,
        peers_min: 2,
    };
    /// Text.
    pub fn explain(&self) -> String {
        String::new()
    }
}

#[derive(Clone, Debug)]
struct Member {
    history: History,
    windows: u64,
    best: f64,
    best_at: (usize, f64, f64, f64),
    decided: Option<(i64, u64)>,
    is_slow: bool,
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Level {
    options: Options,
    members: Vec<Member>,
    sigma: f64,
}

impl Level {
    /// New.
    pub fn new(member_count: usize, options: Options) -> Self {
        let lengths = options.spans_hours.map(|hours| hours * WINDOWS_PER_HOUR);
        let member = Member {
            history: History::new(&lengths),
            windows: 0,
            best: 0.0,
            best_at: (0, 0.0, 0.0, 0.0),
            decided: None,
            is_slow: false,
        };
        Self { options, members: vec![member; member_count], sigma: f64::NAN }
    }
    /// Where.
    pub fn bests_at(&self) -> Vec<(usize, f64, f64, f64)> {
        self.members.iter().map(|m| m.best_at).collect()
    }
    /// Largest scores so far.
    pub fn bests(&self) -> Vec<f64> {
        self.members.iter().map(|m| m.best).collect()
    }
}

impl Detector for Level {
    fn handle_window(&mut self, at: i64, members: &[Option<Reading>]) {
        assert_eq!(members.len(), self.members.len());
        let last = self.options.spans_hours.len() - 1;
        let ratios = log_ratios(members, self.options.peers_min);
        for (member, ratio) in self.members.iter_mut().zip(&ratios) {
            if let Some(ratio) = ratio {
                member.history.push(*ratio);
                member.windows += 1;
            }
        }
        let mut sigmas: Vec<f64> = self
            .members
            .iter()
            .filter(|m| m.history.len() >= WINDOWS_PER_HOUR)
            .map(|m| {
                let s = m.history.sorted(last);
                (quantile(s, 0.75) - quantile(s, 0.25)) / 1.349
            })
            .collect();
        if sigmas.is_empty() {
            return;
        }
        let sigma = levelhead_median(&mut sigmas);
        self.sigma = sigma;
        for (member, ratio) in self.members.iter_mut().zip(&ratios) {
            if ratio.is_none() {
                continue;
            }
            for (idx, hours) in self.options.spans_hours.iter().enumerate() {
                let Some(m) = member.history.median(idx) else { continue };
                let n = (hours * WINDOWS_PER_HOUR) as f64;
                let sd = (self.options.inflation * sigma * sigma / n
                    + self.options.lasting * self.options.lasting)
                    .sqrt();
                let score = m / sd;
                if m > self.options.ratio_min.ln() {
                    if score > member.best {
                        member.best = score;
                        member.best_at = (*hours, member.windows as f64 / 12.0, m.exp(), sigma);
                    }
                    if score > self.options.threshold {
                        member.is_slow = true;
                        member.decided.get_or_insert((at + WINDOW, member.windows));
                    }
                }
            }
        }
    }

    fn findings(&self) -> Vec<Finding> {
        self.members
            .iter()
            .map(|m| Finding {
                verdict: if m.is_slow { Verdict::Slow } else { Verdict::Fine },
                ratio: 1.0,
                low: 1.0,
                high: 1.0,
                decided_at: m.decided.map(|d| d.0),
                busy_hours: m.decided.map_or(m.windows, |d| d.1) as f64 / 12.0,
            })
            .collect()
    }
}

fn levelhead_median(v: &mut [f64]) -> f64 {
    crate::median_of(v)
}
