//! The ledger that keeps a fleet of some millions of hours at its laws.

use levelhead_stats::Rng;

use super::fitted::Fitted;
use super::law::{GOLDEN, share_at};

/// Ranks of a tail hour's largest slowdown, from 1 at 2x down to 0: edges of the cells that the ledger keeps apart.
const RANKS: [f64; 18] = [
    1.0, 0.85, 0.7, 0.55, 0.42, 0.32, 0.24, 0.18, 0.13, 0.095, 0.065, 0.045, 0.03, 0.02, 0.0125,
    0.0065, 0.002, 0.0,
];
const CELLS: usize = RANKS.len() - 1;

/// What an hour of a group came to.
pub(super) struct Made {
    pub(super) width: usize,
    /// Drives at 2 and above.
    pub(super) slow: usize,
    /// Drives from 1.5 to 2.
    pub(super) upper: usize,
    /// Drives from 1.2 to 1.5.
    pub(super) lower: usize,
    /// The rank of the largest slowdown, if it is of 2 and more.
    pub(super) rank: Option<f64>,
}

/// What hours have been made beyond, or short of, the laws: each balance in hours, above 0 if more are due. Chances are tilted by it,
/// so that what a fleet comes to is off by some dozens of hours, however many it has.
pub(super) struct Ledger {
    pub(super) fitted: &'static Fitted,
    tail: f64,
    tail_of_two: f64,
    tail_of_three: f64,
    slow: f64,
    upper: f64,
    lower: f64,
    upper_first: f64,
    lower_first: f64,
    cells: [f64; CELLS],
    /// Steps of the sequences of lengths: of groups whose sessions are of any drives, and of drives of their own.
    steps: [f64; 2],
}

impl Ledger {
    pub(super) fn new(fitted: &'static Fitted, steps: [f64; 2]) -> Self {
        Self {
            steps,
            fitted,
            tail: 0.0,
            tail_of_two: 0.0,
            tail_of_three: 0.0,
            slow: 0.0,
            upper: 0.0,
            lower: 0.0,
            upper_first: 0.0,
            lower_first: 0.0,
            cells: [0.0; CELLS],
        }
    }

    pub(super) fn enter(&mut self, made: &Made) {
        let Fitted { first, drives, .. } = self.fitted;
        let width = made.width as f64;
        let is_tail = made.rank.is_some();
        let first_is = |is: bool| f64::from(u8::from(is));
        self.tail += share_at(first, 2.0) - first_is(is_tail);
        self.upper_first +=
            share_at(first, 1.5) - share_at(first, 2.0) - first_is(!is_tail && made.upper > 0);
        self.lower_first += share_at(first, 1.2)
            - share_at(first, 1.5)
            - first_is(!is_tail && made.upper == 0 && made.lower > 0);
        self.slow += width * drives.from_2 - made.slow as f64;
        self.upper += width * (drives.from_1_5 - drives.from_2) - made.upper as f64;
        self.lower += width * (drives.from_1_2 - drives.from_1_5) - made.lower as f64;
        if let Some(rank) = made.rank {
            self.tail_of_two += self.fitted.together.two - first_is(made.slow >= 2);
            self.tail_of_three += self.fitted.together.three - first_is(made.slow >= 3);
            for (balance, edges) in self.cells.iter_mut().zip(RANKS.windows(2)) {
                *balance += edges[0] - edges[1];
            }
            self.cells[cell_of(rank)] -= 1.0;
        }
    }

    /// By what the chance of a session is multiplied.
    pub(super) fn haste(&self) -> f64 {
        (self.tail / 300.0).clamp(-3.0, 3.0).exp()
    }

    /// By what the chances of a largest slowdown from 1.5 to 2, and from 1.2 to 1.5, are multiplied.
    pub(super) fn haste_upper(&self) -> f64 {
        (self.upper_first / 150.0).clamp(-2.0, 2.0).exp()
    }

    pub(super) fn haste_lower(&self) -> f64 {
        (self.lower_first / 150.0).clamp(-2.0, 2.0).exp()
    }

    /// How many hours an interval lasts: the law's range is filled evenly.
    pub(super) fn draw_hours(&mut self, has_own: bool) -> u32 {
        let step = &mut self.steps[usize::from(has_own)];
        *step = (*step + GOLDEN).fract();
        self.fitted.lasting.hours_at(1.0 - *step)
    }

    /// How many drives of a session are slow, of at most `most`.
    pub(super) fn draw_slow(&self, most: usize, rng: &mut Rng) -> usize {
        let together = &self.fitted.together;
        let mut slow = 1;
        if slow < most && rng.unit() < tilted(together.two, self.tail_of_two / 60.0) {
            slow += 1;
        }
        let third = together.three / together.two;
        if slow == 2 && slow < most && rng.unit() < tilted(third, self.tail_of_three / 60.0) {
            slow += 1;
        }
        while slow >= 3 && slow < most && rng.unit() < tilted(together.more, self.slow / 100.0) {
            slow += 1;
        }
        slow
    }

    /// Whether one more drive lies from 1.5 to 2 in an hour whose largest slowdown is above 1.5.
    pub(super) fn draw_upper(&self, rng: &mut Rng) -> bool {
        rng.unit() < tilted(0.36, self.upper / 60.0)
    }

    /// Whether one more drive lies from 1.2 to 1.5 in an hour whose largest slowdown is above 1.2.
    pub(super) fn draw_lower(&self, rng: &mut Rng) -> bool {
        rng.unit() < tilted(0.5, self.lower / 60.0)
    }

    /// The rank of a new interval of this number of hours: near that of the group's last one with the chance `like_last`; such that no cell
    /// is
    /// overdrawn by much.
    pub(super) fn draw_rank(&self, last: Option<f64>, hours: u32, rng: &mut Rng) -> f64 {
        let is_open = |cell: usize| f64::from(hours) <= self.cells[cell] + 2.0 * scale_of(cell);
        if let Some(last) = last
            && rng.unit() < self.fitted.like_last
            && is_open(cell_of(last))
        {
            return last;
        }
        let weights: [f64; CELLS] = std::array::from_fn(|cell| {
            let due = (self.cells[cell] / scale_of(cell)).clamp(-4.0, 3.0);
            if is_open(cell) { (RANKS[cell] - RANKS[cell + 1]) * due.exp() } else { 0.0 }
        });
        let mut left = weights.iter().sum::<f64>() * rng.unit();
        let mut cell = 0;
        while cell < CELLS - 1 && left >= weights[cell] {
            left -= weights[cell];
            cell += 1;
        }
        RANKS[cell + 1] + (RANKS[cell] - RANKS[cell + 1]) * rng.unit()
    }
}

/// Hours that a cell's balance may be off before its chance changes by a factor of e.
fn scale_of(cell: usize) -> f64 {
    5.0 + 200.0 * (RANKS[cell] - RANKS[cell + 1])
}

fn cell_of(rank: f64) -> usize {
    RANKS[1..].iter().position(|&edge| rank >= edge).unwrap_or(CELLS - 1)
}

/// A chance whose odds are multiplied by e to the power of `due`.
fn tilted(chance: f64, due: f64) -> f64 {
    let odds = chance / (1.0 - chance) * due.clamp(-4.0, 4.0).exp();
    odds / (1.0 + odds)
}
