//! `level`: this project's own detector, which finds drives that are mildly but steadily slower than their peers.
//!
//! For each window and member, `x` is the log of the member's latency over the median of the *others'*. Over each span of the last
//! `n` windows, `m` is the median of `x`. A member is slow when for one of the spans
//!
//! ```text
//!   m > ln RATIO_MIN   and   m > THRESHOLD sqrt(V + (EXCURSION^2 min(1, B / n)) + LASTING^2)
//!
//!   V = K sigma^2 (1 / n - 1 / B) + W       for spans n below a block of B windows
//!   V = W B / n                             for longer ones
//!   W = max(K sigma^2 / B, d^2, (OWN d_i)^2)
//!
//!   sigma   spread of x within a member (quartiles' distance / 1.349), the median over members
//!   d_i     spread of the medians of a member's last blocks about their median; d, the median over members
//! ```
//!
//! so that the noise of the group itself sets the scale, at five minutes and at three hours. Spreads are taken *within* members:
//! slow members of a small group would swell a spread over all its readings and hide themselves. `EXCURSION` is what a
//! healthy member may differ by for a day, `LASTING` at all times: without them quiet groups would accuse every difference.
//!
//! A slow member is fine again when its medians over all of `RECOVERY_HOURS` are below `RECOVERY_RATIO`; what was before these
//! hours is forgotten then.
//!
//! ```text
//!   cannot tell --> fine <--> slow
//!     (less than an hour of usable windows)
//! ```
//!
//! # Invariants
//!
//! - L1. A member is found slow in the first window in which the rule holds, and `decided_at` never changes after.
//! - L2. A window without a usable reading, or with too few peers, changes nothing for the member.
//!
//! # References
//!
//! - `[PERSEUS]` for the records on which the constants were frozen; `docs/detect.md` for what they find.

mod codec;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use levelhead_stats::{median_of, median_of_sorted};

use super::history::History;
use super::peers::{log_ratios, quantile};
use super::{Detector, Finding, Reading, Verdict, WINDOW, WINDOWS_PER_HOUR};

/// How many spans there are.
const SPANS: usize = 7;

/// The hours of which all must look fine before a slow member is called fine again: spans that there are.
const RECOVERY_HOURS: [usize; 3] = [3, 6, 9];

/// What a median must be below then: latency over the peers'.
const RECOVERY_RATIO: f64 = 1.05;

/// Hours of a block: a day of the records on which the constants were frozen.
const BLOCK_HOURS: usize = 3;

/// Windows of a block.
const BLOCK: usize = BLOCK_HOURS * WINDOWS_PER_HOUR;

/// The fewest and the most blocks that a spread is taken of.
const BLOCKS_MIN: usize = 3;
const BLOCKS_MAX: usize = 10;

/// The quartiles' distance of a normal distribution, in standard deviations.
const QUARTILES: f64 = 1.349;

/// The mean deviation of a normal distribution times this is its standard deviation: `sqrt(pi / 2)`.
const MEAN_DEVIATION: f64 = 1.2533;

/// Two-sided 95 % of a normal distribution, in standard deviations.
const INTERVAL: f64 = 1.96;

/// The longest span, in hours, whose median is shown as a fine member's ratio.
const SHOWN_HOURS: usize = 15;

/// Constants of the rule.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// Spans, in busy hours, rising.
    pub spans_hours: [usize; SPANS],
    /// `RATIO_MIN`: the least latency over the peers' that is called slow.
    pub ratio_min: f64,
    /// `THRESHOLD`, in standard deviations of what a healthy member shows.
    pub threshold: f64,
    /// `K`: how many times slower than that of white noise the variance of a median falls.
    pub inflation: f64,
    /// Whether the noise of the group counts at all; without it every group is taken to be silent.
    pub is_scaled: bool,
    /// `OWN`: the share of a member's own spread at three hours that counts against it.
    pub own_share: f64,
    /// `EXCURSION`: standard deviation of the log of what a healthy member differs by for a day.
    pub excursion: f64,
    /// `LASTING`: standard deviation of the log of what a healthy member differs by lastingly.
    pub lasting: f64,
    /// Peers with a usable reading that a member's window needs.
    pub peers_min: usize,
}

impl Options {
    /// The constants, frozen on clusters A and C of PERSEUS.
    pub const FROZEN: Self = Self {
        spans_hours: [1, 2, 3, 6, 9, 15, 30],
        ratio_min: 1.1,
        threshold: 5.5,
        inflation: 6.0,
        is_scaled: true,
        own_share: 0.5,
        excursion: 0.03,
        lasting: 0.03,
        peers_min: 2,
    };

    /// The rule and each of its constants, as text of several lines.
    pub fn explain(&self) -> String {
        let spans: Vec<String> = self.spans_hours.iter().map(ToString::to_string).collect();
        let recovery: Vec<String> = RECOVERY_HOURS.iter().map(ToString::to_string).collect();
        format!(
            "level: log latency over the median of the other members', per window of {WINDOW} s;\n\
             m = its median over the last n windows. Slow when for one of the spans\n\
             \x20 m > ln RATIO_MIN and m > THRESHOLD sqrt(V + EXCURSION^2 min(1, B / n) + LASTING^2)\n\
             \x20 V = K sigma^2 (1 / n - 1 / B) + W for n < B, W B / n else\n\
             \x20 W = max(K sigma^2 / B, d^2, (OWN d_i)^2)\n\
             sigma: spread within members, at a window; d: at a block of B windows; d_i: the member's own.\n\
             \x20 spans       {} h\n\
             \x20 RATIO_MIN   {}\n\
             \x20 THRESHOLD   {}\n\
             \x20 K           {}\n\
             \x20 B           {BLOCK} windows ({BLOCK_HOURS} h), spread over the last {BLOCKS_MIN} to {BLOCKS_MAX}\n\
             \x20 OWN         {}\n\
             \x20 EXCURSION   {}\n\
             \x20 LASTING     {}\n\
             \x20 peers       at least {}\n\
             \x20 fine again  medians over {} h all below {RECOVERY_RATIO}\n\
             frozen on clusters A and C of PERSEUS (FAST '23)\n",
            spans.join(", "),
            self.ratio_min,
            self.threshold,
            self.inflation,
            self.own_share,
            self.excursion,
            self.lasting,
            self.peers_min,
            recovery.join(", "),
        )
    }

    fn lengths(&self) -> [usize; SPANS] {
        self.spans_hours.map(|hours| hours * WINDOWS_PER_HOUR)
    }

    fn span_of(&self, hours: usize) -> usize {
        let place = self.spans_hours.iter().position(|&span| span == hours);
        place.unwrap_or_else(|| panic!("a span of {hours} h is needed"))
    }
}

/// The rule, over one group.
#[derive(Clone, Debug, PartialEq)]
pub struct Level {
    options: Options,
    members: Vec<Member>,
    noise: Noise,
}

#[derive(Clone, Debug, PartialEq)]
struct Member {
    history: History,
    /// Usable windows so far.
    windows: u64,
    /// Medians of the last blocks, and their spread about their median, once there are enough of them.
    blocks: VecDeque<f64>,
    block_spread: Option<f64>,
    is_slow: bool,
    decided: Option<Decided>,
}

/// The first time a member was found slow.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Decided {
    at: i64,
    windows: u64,
}

/// The group's noise.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Noise {
    sigma: f64,
    block: f64,
}

impl Level {
    /// A group of this number of members, of which nothing is known.
    ///
    /// Panics if spans that recovery and blocks need are not there.
    pub fn new(member_count: usize, options: Options) -> Self {
        for hours in RECOVERY_HOURS.into_iter().chain([BLOCK_HOURS]) {
            options.span_of(hours);
        }
        let member = Member {
            history: History::new(&options.lengths()),
            windows: 0,
            blocks: VecDeque::new(),
            block_spread: None,
            is_slow: false,
            decided: None,
        };
        Self { options, members: vec![member; member_count], noise: Noise::default() }
    }

    /// The group's noise from what its members have kept.
    fn noise(&self) -> Noise {
        let median = |mut spreads: Vec<f64>| {
            if spreads.is_empty() { 0.0 } else { median_of(&mut spreads) }
        };
        let with_hour = self.members.iter().filter(|member| member.is_known());
        Noise {
            sigma: median(
                with_hour.map(|member| spread(member.history.sorted(SPANS - 1))).collect(),
            ),
            block: median(self.members.iter().filter_map(|member| member.block_spread).collect()),
        }
    }

    /// The variance of a healthy member's median over a span, by noise alone.
    fn variance(&self, member: &Member, span_idx: usize) -> f64 {
        if !self.options.is_scaled {
            return 0.0;
        }
        let windows = (self.options.spans_hours[span_idx] * WINDOWS_PER_HOUR) as f64;
        let block = BLOCK as f64;
        let white = self.options.inflation * self.noise.sigma.powi(2);
        let own = self.options.own_share * member.block_spread.unwrap_or(0.0);
        let of_block = (white / block).max(self.noise.block.powi(2)).max(own.powi(2));
        if windows < block {
            white * (1.0 / windows - 1.0 / block) + of_block
        } else {
            of_block * block / windows
        }
    }

    /// A span's median in standard deviations of a healthy member's; none while the span is not full.
    fn score(&self, member: &Member, span_idx: usize) -> Option<f64> {
        let median = member.history.median(span_idx)?;
        let windows = (self.options.spans_hours[span_idx] * WINDOWS_PER_HOUR) as f64;
        let days = (windows / BLOCK as f64).max(1.0);
        let variance = self.variance(member, span_idx)
            + self.options.excursion.powi(2) / days
            + self.options.lasting.powi(2);
        // Without noise and without differences anything at all is beyond every threshold.
        Some(if variance > 0.0 { median / variance.sqrt() } else { median * f64::INFINITY })
    }

    fn is_beyond(&self, member: &Member, span_idx: usize) -> bool {
        let median = member.history.median(span_idx);
        median.is_some_and(|median| median > self.options.ratio_min.ln())
            && self.score(member, span_idx).is_some_and(|score| score > self.options.threshold)
    }

    /// Whether all of the last hours look fine.
    fn has_recovered(&self, member: &Member) -> bool {
        RECOVERY_HOURS.iter().all(|&hours| {
            let median = member.history.median(self.options.span_of(hours));
            median.is_some_and(|median| median < RECOVERY_RATIO.ln())
        })
    }

    /// The span whose median is shown: of a slow member the one that says so most clearly.
    fn shown_span(&self, member: &Member) -> Option<usize> {
        let full = (0..SPANS).filter_map(|idx| Some((idx, self.score(member, idx)?)));
        if member.is_slow {
            return full.max_by(|a, b| a.1.total_cmp(&b.1)).map(|span| span.0);
        }
        full.map(|span| span.0).rfind(|&idx| self.options.spans_hours[idx] <= SHOWN_HOURS)
    }

    fn finding(&self, member: &Member) -> Finding {
        let verdict = match (member.is_known(), member.is_slow) {
            (false, _) => Verdict::CannotTell,
            (true, false) => Verdict::Fine,
            (true, true) => Verdict::Slow,
        };
        let windows = member.decided.map_or(member.windows, |decided| decided.windows);
        let (ratio, half) = match self.shown_span(member) {
            Some(span_idx) => {
                let median = member.history.median(span_idx).expect("a span shown is full");
                (median, INTERVAL * self.variance(member, span_idx).sqrt())
            }
            // Less than an hour: what there is, and nothing to say how far it may be off.
            None if member.history.len() > 0 => {
                (median_of_sorted(member.history.sorted(SPANS - 1)), f64::INFINITY)
            }
            None => (f64::NAN, f64::NAN),
        };
        Finding {
            verdict,
            ratio: ratio.exp(),
            low: (ratio - half).exp(),
            high: (ratio + half).exp(),
            decided_at: member.decided.map(|decided| decided.at),
            busy_hours: windows as f64 / WINDOWS_PER_HOUR as f64,
        }
    }
}

impl Detector for Level {
    fn handle_window(&mut self, at: i64, members: &[Option<Reading>]) {
        assert_eq!(members.len(), self.members.len(), "a group keeps its members");
        let block_span = self.options.span_of(BLOCK_HOURS);
        let ratios = log_ratios(members, self.options.peers_min);
        for (member, ratio) in self.members.iter_mut().zip(&ratios) {
            if let Some(ratio) = ratio {
                member.take(*ratio, block_span);
            }
        }
        self.noise = self.noise();
        for idx in (0..members.len()).filter(|&idx| ratios[idx].is_some()) {
            let member = &self.members[idx];
            let is_beyond = (0..SPANS).any(|span_idx| self.is_beyond(member, span_idx));
            let has_recovered = member.is_slow && self.has_recovered(member);
            self.members[idx].advance(at + WINDOW, is_beyond, has_recovered);
        }
    }

    fn findings(&self) -> Vec<Finding> {
        self.members.iter().map(|member| self.finding(member)).collect()
    }
}

impl Member {
    /// Whether there is an hour of usable windows.
    fn is_known(&self) -> bool {
        self.history.len() >= WINDOWS_PER_HOUR
    }

    fn take(&mut self, ratio: f64, block_span: usize) {
        self.history.push(ratio);
        self.windows += 1;
        if !self.windows.is_multiple_of(BLOCK as u64) {
            return;
        }
        let Some(median) = self.history.median(block_span) else { return };
        if self.blocks.len() == BLOCKS_MAX {
            self.blocks.pop_front();
        }
        self.blocks.push_back(median);
        self.block_spread = spread_of_blocks(&self.blocks);
    }

    /// No other function changes the verdict.
    fn advance(&mut self, now: i64, is_beyond: bool, has_recovered: bool) {
        if self.is_slow && has_recovered {
            self.is_slow = false;
            // The longer spans are still full of what is over.
            let longest = RECOVERY_HOURS[RECOVERY_HOURS.len() - 1];
            self.history.keep_last(longest * WINDOWS_PER_HOUR);
            self.blocks.clear();
            self.block_spread = None;
        } else if !self.is_slow && is_beyond {
            self.is_slow = true;
            self.decided.get_or_insert(Decided { at: now, windows: self.windows });
        }
    }
}

/// A robust standard deviation of values in order.
fn spread(sorted: &[f64]) -> f64 {
    (quantile(sorted, 0.75) - quantile(sorted, 0.25)) / QUARTILES
}

/// The standard deviation of blocks, from their mean distance to their median; none if they are too few.
fn spread_of_blocks(blocks: &VecDeque<f64>) -> Option<f64> {
    if blocks.len() < BLOCKS_MIN {
        return None;
    }
    let mut sorted: Vec<f64> = blocks.iter().copied().collect();
    sorted.sort_by(f64::total_cmp);
    let median = median_of_sorted(&sorted);
    let distances: f64 = sorted.iter().map(|block| (block - median).abs()).sum();
    Some(distances / (blocks.len() - 1) as f64 * MEAN_DEVIATION)
}
