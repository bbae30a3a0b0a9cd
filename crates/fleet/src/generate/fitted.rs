//! Constants of the generator of hours tables, fitted to the numbers of `[TAIL16]`, tables 1 and 3 and section 4.

use levelhead_stats::Rng;

use super::law::Point;

/// What a fleet of one kind of drives is made of.
pub(super) struct Fitted {
    /// Widths of groups, in turn.
    pub(super) widths: &'static [usize],
    /// Where the largest slowdown of a group hour lies, of group hours.
    pub(super) first: &'static [Point],
    /// Where drives lie that are slow along with the first, of these drives.
    pub(super) others: &'static [Point],
    /// Where drives lie, of drive hours.
    pub(super) drives: DriveShares,
    /// How many drives are slow together.
    pub(super) together: Together,
    /// Spread of the logarithm of what is below 1.2.
    pub(super) body_spread: f64,
    pub(super) lasting: Lasting,
    /// Chance that an interval of a group is as slow as its last one.
    pub(super) like_last: f64,
    /// Groups by how often they have sessions; the last takes what the others leave.
    pub(super) habits: &'static [Habit],
    pub(super) ages: &'static [Age],
    pub(super) models: &'static [Model],
    /// Chance of twice the requests.
    pub(super) rate: Imbalance,
    /// Chance of twice the size.
    pub(super) size: Imbalance,
    /// Logarithm by which a group has fewer requests in a tail hour.
    pub(super) degradation: f64,
    pub(super) unplugging: Unplugging,
}

/// Shares of drive hours at or above a slowdown.
pub(super) struct DriveShares {
    pub(super) from_1_2: f64,
    pub(super) from_1_5: f64,
    pub(super) from_2: f64,
}

pub(super) struct Together {
    /// Share of tail hours with at least two slow drives.
    pub(super) two: f64,
    /// Share of tail hours with at least three.
    pub(super) three: f64,
    /// Chance of one more after three.
    pub(super) more: f64,
}

impl Together {
    /// How many drives are slow together at this rank, from 0 to 1, of groups where it is always the same number: at most three.
    pub(super) fn slow_at(&self, rank: f64) -> usize {
        1 + usize::from(rank < self.two) + usize::from(rank < self.three)
    }
}

/// How long an interval is.
pub(super) struct Lasting {
    /// Chance of two hours or more.
    pub(super) two: f64,
    /// Power by which the chance of longer ones falls from there.
    pub(super) power: f64,
    /// Longest, in hours.
    pub(super) hours_max: f64,
}

impl Lasting {
    /// The hours that this share of intervals last at least, above 0 and at most 1.
    pub(super) fn hours_at(&self, share: f64) -> u32 {
        if share > self.two {
            1
        } else {
            (2.0 * (share / self.two).powf(-1.0 / self.power)).min(self.hours_max) as u32
        }
    }
}

/// Which drives of a group are slow in its sessions.
#[derive(Clone, Copy)]
pub(super) enum Members {
    /// Always the same, as many as the study has slow together.
    Same,
    /// Always the same, one of six.
    EachSixth,
    /// As many as it takes, of a fixed order.
    First,
    /// Others each time.
    Any,
}

pub(super) struct Habit {
    /// Share of groups, of those that are of no age or model of their own.
    pub(super) share: f64,
    /// Chance of a session in an hour of rest.
    pub(super) start: f64,
    /// Chance of another interval in a session.
    pub(super) again: f64,
    /// Most hours between two intervals of a session.
    pub(super) pause_max: u64,
    pub(super) members: Members,
}

pub(super) struct Age {
    /// In whole years, the first being 0.
    pub(super) year: i32,
    pub(super) share: f64,
    pub(super) prone: Prone,
}

/// How an age has to do with habits.
#[derive(Clone, Copy)]
pub(super) enum Prone {
    /// Shares of habits but for the last are multiplied.
    Times(f64),
    /// All groups of this age are of the first habit.
    Worn,
}

pub(super) struct Model {
    /// Nothing if customers do not tell.
    pub(super) name: Option<&'static str>,
    pub(super) share: f64,
    /// By what the shares of habits but for the last are multiplied.
    pub(super) times: f64,
    /// By what hours from 1.5 to 2 are multiplied.
    pub(super) mild: f64,
}

/// Chance of an imbalance of 2 or more.
pub(super) struct Imbalance {
    pub(super) slow: f64,
    pub(super) stable: f64,
}

pub(super) struct Unplugging {
    /// Chance that a drive is unplugged within a day after it has become 1.5 to 2 times as slow.
    pub(super) mild: f64,
    /// The same from each slowdown on, with 2 to begin with: here `share` is a chance.
    pub(super) slow: &'static [Point],
    /// Chance that the same drive comes back.
    pub(super) replugged: f64,
    /// Chance that it does within two hours, within ten, and the longest that it takes.
    pub(super) within_2: f64,
    pub(super) within_10: f64,
    pub(super) away_max: u64,
    /// Chance of a session within a day from then, beside those that come anyway: of a drive of which sessions have a habit, and of any
    /// other.
    pub(super) recurs_prone: f64,
    pub(super) recurs: f64,
}

impl Unplugging {
    pub(super) fn chance(&self, slowdown: f64) -> f64 {
        let point = self.slow.iter().rev().find(|point| slowdown >= point.at);
        point.map_or(self.mild, |point| point.share)
    }

    pub(super) fn draw_away(&self, rng: &mut Rng) -> u32 {
        let u = rng.unit();
        let hours = if u < self.within_2 {
            1 + rng.below(2)
        } else if u < self.within_10 {
            3 + rng.below(8)
        } else {
            11 + rng.below(self.away_max - 10)
        };
        hours as u32
    }
}

const fn at(at: f64, share: f64) -> Point {
    Point { at, share }
}

const fn of_age(year: i32, share: f64, prone: Prone) -> Age {
    Age { year, share, prone }
}

pub(super) const DISK: Fitted = Fitted {
    widths: &[6, 13, 10, 15, 8, 17, 12, 11, 14, 13],
    first: &[
        at(1.2, 0.167),
        at(1.3, 0.100),
        at(1.5, 0.046),
        at(2.0, 0.0153),
        at(2.4, 0.0100),
        at(4.0, 0.0028),
        at(9.0, 0.0010),
        at(29.0, 1.0e-4),
        at(229.0, 1.0e-5),
        at(2000.0, 1.0e-6),
    ],
    others: &[at(2.0, 1.0), at(2.7, 0.42), at(4.0, 0.18), at(9.0, 0.0176), at(30.0, 0.00186)],
    drives: DriveShares { from_1_2: 0.0300, from_1_5: 0.00695, from_2: 0.0022 },
    together: Together { two: 0.39, three: 0.195, more: 0.375 },
    body_spread: 0.088,
    lasting: Lasting { two: 0.395, power: 0.79, hours_max: 30.0 },
    like_last: 0.0,
    habits: &[
        Habit { share: 0.0, start: 0.1, again: 1.0, pause_max: 10, members: Members::EachSixth },
        Habit { share: 0.115, start: 0.028, again: 0.30, pause_max: 18, members: Members::Same },
        Habit { share: 0.885, start: 0.00130, again: 0.33, pause_max: 18, members: Members::Any },
    ],
    ages: &[
        of_age(0, 0.22, Prone::Times(0.75)),
        of_age(1, 0.33, Prone::Times(0.9)),
        of_age(2, 0.21, Prone::Times(1.0)),
        of_age(3, 0.115, Prone::Times(1.15)),
        of_age(4, 0.08, Prone::Times(1.3)),
        of_age(5, 0.0309, Prone::Times(1.8)),
        of_age(6, 0.011, Prone::Times(2.5)),
        of_age(7, 0.0018, Prone::Worn),
        of_age(8, 0.0011, Prone::Times(1.0)),
        of_age(9, 0.0002, Prone::Times(2.5)),
    ],
    models: &[
        Model { name: None, share: 0.3, times: 1.0, mild: 1.0 },
        Model { name: Some("disk-sata"), share: 0.4, times: 1.0, mild: 1.0 },
        Model { name: Some("disk-sas"), share: 0.2, times: 1.0, mild: 1.0 },
        Model { name: Some("disk-fc"), share: 0.1, times: 1.0, mild: 1.0 },
    ],
    rate: Imbalance { slow: 0.05, stable: 0.0109 },
    size: Imbalance { slow: 0.025, stable: 0.055 },
    degradation: 0.173,
    unplugging: Unplugging {
        mild: 0.025,
        slow: &[at(2.0, 0.022), at(4.0, 0.03), at(8.0, 0.04), at(16.0, 0.06)],
        replugged: 0.89,
        within_2: 0.54,
        within_10: 0.90,
        away_max: 72,
        recurs_prone: 0.9,
        recurs: 0.115,
    },
};

pub(super) const SSD: Fitted = Fitted {
    widths: &[7, 4, 9, 7, 12, 3, 8, 6, 8, 7, 7],
    first: &[
        at(1.2, 0.130),
        at(1.3, 0.100),
        at(1.5, 0.048),
        at(2.0, 0.0221),
        at(2.5, 0.0100),
        at(3.1, 0.0046),
        at(4.0, 0.0033),
        at(20.0, 0.0010),
        at(37.0, 1.0e-4),
        at(65.0, 1.0e-5),
    ],
    others: &[at(2.0, 1.0), at(3.1, 0.117), at(4.0, 0.108), at(10.0, 0.0094), at(39.0, 0.00094)],
    drives: DriveShares { from_1_2: 0.041, from_1_5: 0.01285, from_2: 0.0061 },
    together: Together { two: 0.62, three: 0.35, more: 0.0001 },
    body_spread: 0.092,
    lasting: Lasting { two: 0.35, power: 1.77, hours_max: 48.0 },
    like_last: 0.9,
    habits: &[
        Habit { share: 0.045, start: 0.2, again: 0.93, pause_max: 4, members: Members::First },
        Habit { share: 0.183, start: 0.0185, again: 0.1, pause_max: 6, members: Members::Same },
        Habit { share: 0.772, start: 0.00033, again: 0.1, pause_max: 18, members: Members::Any },
    ],
    ages: &[
        of_age(0, 0.40, Prone::Times(1.0)),
        of_age(1, 0.43, Prone::Times(1.0)),
        of_age(2, 0.12, Prone::Times(1.0)),
        of_age(3, 0.05, Prone::Times(1.0)),
    ],
    models: &[
        Model { name: Some("slc-a"), share: 0.516, times: 0.66, mild: 0.15 },
        Model { name: Some("mlc-b"), share: 0.310, times: 0.82, mild: 1.3 },
        Model { name: Some("mlc-c"), share: 0.034, times: 0.82, mild: 7.9 },
        Model { name: None, share: 0.14, times: 2.7, mild: 1.75 },
    ],
    rate: Imbalance { slow: 0.05, stable: 0.0057 },
    size: Imbalance { slow: 0.011, stable: 0.0330 },
    degradation: 0.49,
    unplugging: Unplugging {
        mild: 0.0415,
        slow: &[at(2.0, 0.022)],
        replugged: 1.0,
        within_2: 0.61,
        within_10: 0.97,
        away_max: 72,
        recurs_prone: 0.9,
        recurs: 0.12,
    },
};
