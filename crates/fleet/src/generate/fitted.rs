//! Constants of the generator of hours tables, from the numbers of `[TAIL16]`, tables 1 and 3 and section 4.

/// What a fleet of one kind of drives is made of.
pub(super) struct Fitted {
    /// Widths of groups, in turn: means of 11.9 and 7.0 data drives.
    pub(super) widths: &'static [usize],
    /// Where the largest slowdown of a group hour lies: value, and the share of group hours at or above it; log-log between.
    pub(super) first: &'static [(f64, f64)],
    /// The same of the other slow drives: drives per group hour, which is the width times the drives' share less `first`.
    pub(super) others: &'static [(f64, f64)],
    /// Share of group hours above 1.2 in which at least one, at least two others go along.
    pub(super) along: [f64; 2],
    /// Chance of one more after two.
    pub(super) along_more: f64,
    /// Spread of the logarithm of what is below 1.2.
    pub(super) body_spread: f64,
    /// Chance that a slow interval lasts two hours or more, and the power by which that falls on.
    pub(super) lasting: (f64, f64),
    /// Longest interval, in hours.
    pub(super) lasting_max: f64,
    /// Chance of another interval of the same drives within a day.
    pub(super) again: f64,
    /// Shares of groups, which add up to 1, and how many sessions they have for one of a group that is not prone, which comes last.
    pub(super) prone: &'static [(f64, f64)],
    /// Chance of twice the requests and of twice the size: of a slow drive hour, of any other.
    pub(super) rate: (f64, f64),
    pub(super) size: (f64, f64),
    /// Logarithm by which a group has fewer requests in a tail hour.
    pub(super) degradation: f64,
}

pub(super) const DISK: Fitted = Fitted {
    widths: &[6, 13, 10, 15, 8, 17, 12, 11, 14, 13],
    first: &[
        (1.2, 0.167),
        (1.3, 0.100),
        (1.5, 0.046),
        (2.0, 0.0154),
        (2.4, 0.0100),
        (4.0, 0.0028),
        (9.0, 0.0010),
        (29.0, 1.0e-4),
        (229.0, 1.0e-5),
        (2000.0, 1.0e-6),
    ],
    others: &[
        (1.2, 0.190),
        (1.5, 0.0373),
        (2.0, 0.01078),
        (2.7, 0.0045),
        (4.0, 0.00196),
        (9.0, 0.00019),
        (30.0, 2.0e-5),
    ],
    along: [0.66, 0.385],
    along_more: 0.39,
    body_spread: 0.088,
    lasting: (0.385, 0.80),
    lasting_max: 48.0,
    again: 0.33,
    prone: &[(0.05, 45.0), (0.10, 6.0), (0.85, 1.0)],
    rate: (0.05, 0.0109),
    size: (0.025, 0.055),
    degradation: 0.173,
};

pub(super) const SSD: Fitted = Fitted {
    widths: &[4, 8, 6, 7, 10, 5, 8, 7, 8, 7],
    first: &[
        (1.2, 0.130),
        (1.3, 0.100),
        (1.5, 0.048),
        (2.0, 0.0223),
        (2.5, 0.0100),
        (4.0, 0.0033),
        (20.0, 0.0010),
        (37.0, 1.0e-4),
        (65.0, 1.0e-5),
    ],
    others: &[
        (1.2, 0.156),
        (1.5, 0.0426),
        (2.0, 0.0181),
        (3.1, 0.0045),
        (4.0, 0.00228),
        (10.0, 0.0002),
        (39.0, 2.0e-5),
    ],
    along: [0.92, 0.62],
    along_more: 0.0,
    body_spread: 0.092,
    lasting: (0.35, 1.77),
    lasting_max: 48.0,
    again: 0.45,
    prone: &[(0.03, 4000.0), (0.10, 30.0), (0.87, 1.0)],
    rate: (0.05, 0.0055),
    size: (0.011, 0.0318),
    degradation: 0.463,
};
