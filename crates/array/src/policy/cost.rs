//! What reading costs all requests together, in seconds of delay: the read's own time, and what its commands
//! delay others.
//!
//! ```text
//!   w = (q + 1) s              a drive's wait: commands there and one more, times the time of one
//!   T(m of a) = w (1 + c (H(a) - H(a - m) - 1))     until m of a drives have answered;
//!                              H(a) = 1 + 1/2 + .. + 1/a,  c = (0.4 + q) / (1 + q)
//!   P = s q                    delay to others for one command more at a drive: it delays those there
//!
//!   wanted data alone    T(l of l) + excess + f S
//!   whole group          min(T(l of l), T(d of n)) + the extra drives' P, weighted
//!   a second trip, S     T(e of e) + the P of the e drives that are asked then
//!   retries at once      R (1 + q)
//! ```
//!
//! for `l` drives with requested data, `d` that suffice to compute anything, `n` that are not set aside, `f`
//! the probability that some requested sector is not given without retries, and `R` the time of a retry.
//! Times of single commands at an idle drive vary by 0.4 of their mean (half a seek, half a rotation), and
//! waits in a queue by their mean: the order statistics are those of an exponential law of that spread. Where
//! drives have unlike waits, their root mean square takes the place of `w`; that is what the largest of
//! several exponential times of unlike means comes to within a tenth.
//!
//! Choosing what costs least in this measure is choosing the smallest sum of queue lengths times work
//! (MaxWeight with a penalty for the read's own time); `docs/level.md` argues from it that `level` returns from
//! overload.

use levelhead_units::{DriveIdx, DriveSet};

use super::{Arrivals, View};
use crate::policy::tau::{DriveView, Share};

/// The number of longest waits that are looked at one by one. Layouts with more redundant drives treat the other
/// waits as equal.
const LONGEST: usize = 4;

/// The spread of an idle drive's times, over their mean.
const SPREAD_IDLE: f64 = 0.4;

/// One command more takes this share of a command's time where the drive chooses among few, because the
/// choice makes it faster, and all of it where its window is full. Rates of modelled drives rise with the
/// 0.26th power of the commands inside.
const MARGINAL_MIN: f64 = 0.74;

/// How much the delay to others counts where a drive is read or done without. Above one, because what is
/// delayed delays others.
const WEIGHT: f64 = 1.5;

/// How much it counts for extra reads of a whole group: the last of them are withdrawn or not waited for.
const WEIGHT_EXTRA: f64 = 0.75;

/// And how much more of it for each window's worth of commands at a drive, where drives are alike: an array
/// near saturation catches up late.
const WEIGHT_CROWDED: f64 = 0.7;

/// Extra reads must save more than they cost by this multiple of one drive's wait.
const MARGIN: f64 = 0.07;

/// A drive is read without retries at first if that costs at most this multiple of reading with retries.
const FAST_BIAS: f64 = 1.2;

/// At an idle drive that multiple is larger by this: a retry would keep the drive from all requests that come
/// meanwhile.
const FAST_BIAS_IDLE: f64 = 1.0;

/// The host's own time for one command and for computing what it would have read, in seconds: of drives that
/// take no longer than that for a command, none is read to save another one's time.
const HOST_TIME: f64 = 30e-6;

/// Drives are healthy while fewer of the reads than this have a sector that fails, and while commands take no more of
/// their pace than this beyond what is usual.
const HEALTHY_FAILS: f64 = 0.01;
const HEALTHY_EXCESS: f64 = 0.25;

/// Drives are readable while each of them gives all sectors but this share.
const READABLE_FAILS: f64 = 0.01;

/// What one read costs, done this way or that. See the module.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Costs {
    /// `n`: drives that are not set aside.
    drives: usize,
    /// `l`: how many of them have requested data.
    wanted: usize,
    /// `d`: how many drives must answer before anything is computed.
    needed: usize,
    /// How many are asked if no more is asked than must be.
    asked: usize,
    /// `s`: the mean time of a command, in seconds.
    pace: f64,
    /// `q`: the mean number of commands at a drive.
    queued: f64,
    /// Commands inside a drive at most.
    window: f64,
    /// `P`, at a drive on average.
    price: f64,
    /// The sum of `P` over the drives that need not be asked.
    price_extra: f64,
    weight_extra: f64,
    failing: Failing,
    /// What drives with requested data take longer now and then, in seconds, all together.
    excess: f64,
    /// The root mean square of the waits at those that must be asked, over the mean wait of all.
    unlike_own: f64,
    /// The same for the `needed` drives with the shortest waits.
    unlike_any: f64,
    /// How likely one of the other drives answers before one of these: 1 where all are alike.
    helpful: f64,
}

/// How often sectors are not given at once, and what that takes.
#[derive(Clone, Copy, Debug)]
struct Failing {
    /// `f`.
    reads: f64,
    /// The share of sectors that fail at the worst drive.
    rate: f64,
    /// How many sectors fail, on average, if the longest part of the read is read from each drive: of all, and of the worst.
    sectors: f64,
    sectors_worst: f64,
    /// `R`, in seconds.
    retry_time: f64,
}

/// Sums over drives.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    count: usize,
    pace: f64,
    queued: f64,
    price: f64,
    retry_time: f64,
    waits: f64,
    squares: f64,
    excess: f64,
    failure_rates: f64,
    failure_rate_max: f64,
    /// The probability that all requested sectors are given without retries.
    good: f64,
}

impl Sums {
    fn add(&mut self, view: &View<'_>, share: &Share) {
        let Share { drive, wanted, .. } = share;
        let wait = drive.wait();
        self.count += 1;
        self.pace += drive.pace;
        self.queued += drive.queued;
        self.price += price(view, drive);
        self.retry_time += drive.retry_time;
        self.waits += wait;
        self.squares += wait * wait;
        self.excess += drive.excess;
        self.failure_rates += drive.failure_rate;
        self.failure_rate_max = self.failure_rate_max.max(drive.failure_rate);
        self.good *= (1.0 - drive.failure_rate).powi(*wanted as i32);
    }

    /// The root mean square of the waits.
    fn unlike(&self) -> f64 {
        (self.squares / self.count.max(1) as f64).sqrt()
    }
}

/// The longest waits, in descending order.
struct Longest {
    waits: [f64; LONGEST],
    count: usize,
}

impl Longest {
    fn add(&mut self, mut wait: f64) {
        for place in &mut self.waits[..self.count] {
            if wait > *place {
                std::mem::swap(&mut wait, place);
            }
        }
    }

    fn waits(&self) -> &[f64] {
        &self.waits[..self.count]
    }

    /// The delay to others for one command more at each of the first `count`, where one takes `pace`.
    fn prices(&self, count: usize, pace: f64) -> f64 {
        self.waits().iter().take(count).map(|wait| (wait - pace).max(0.0)).sum()
    }
}

impl Costs {
    /// The costs of a read that does without the drives `aside`.
    pub(crate) fn of(view: &View<'_>, aside: DriveSet) -> Self {
        let View { shares, spare, window, .. } = *view;
        let drives = shares.len().saturating_sub(aside.len() as usize);
        let needed = shares.len().saturating_sub(spare).min(drives);
        let mut longest = Longest { waits: [0.0; LONGEST], count: (drives - needed).min(LONGEST) };
        let mut all = Sums { good: 1.0, ..Sums::default() };
        let mut own = all;
        let mut is_redirected = false;
        for share in shares {
            if aside.contains(share.idx) {
                is_redirected |= share.wanted > 0;
                continue;
            }
            all.add(view, share);
            longest.add(share.drive.wait());
            if share.wanted > 0 {
                own.add(view, share);
            }
        }
        let wanted = own.count;
        let asked = if is_redirected { needed.max(wanted) } else { wanted };
        let price_extra = if is_redirected {
            // In place of others those are asked that have the shortest waits; the rest is extra.
            longest.prices(drives - asked, all.pace / drives.max(1) as f64)
        } else {
            (all.price - own.price).max(0.0)
        };
        let longest_part = f64::from(shares.iter().map(|share| share.wanted).max().unwrap_or(0));
        let count = drives.max(1) as f64;
        let mean = (all.waits / count).max(f64::MIN_POSITIVE);
        let squares: f64 = longest.waits().iter().map(|wait| wait * wait).sum();
        let shortest = Sums {
            count: all.count - longest.count,
            squares: (all.squares - squares).max(0.0),
            ..Sums::default()
        };
        let any = shortest.unlike();
        let likely = |wait: &f64| (any / wait.max(f64::MIN_POSITIVE)).min(1.0);
        let helpful: f64 = longest.waits().iter().map(likely).sum();
        Self {
            drives,
            wanted,
            needed,
            asked,
            pace: all.pace / count,
            queued: all.queued / count,
            window,
            price: all.price / count,
            price_extra,
            weight_extra: match view.arrivals {
                Arrivals::Independent => WEIGHT_EXTRA,
                Arrivals::UponAnswers => WEIGHT,
            },
            failing: Failing {
                reads: 1.0 - own.good,
                rate: all.failure_rate_max,
                sectors: all.failure_rates * longest_part,
                sectors_worst: all.failure_rate_max * longest_part,
                retry_time: all.retry_time / count,
            },
            excess: own.excess,
            unlike_own: if asked > wanted || wanted == 0 { all.unlike() } else { own.unlike() }
                / mean,
            unlike_any: any / mean,
            helpful: helpful / longest.count.max(1) as f64,
        }
    }

    /// If no more is asked than must be.
    pub(crate) fn wanted(&self) -> f64 {
        let failed = if self.is_fast() { self.second() } else { self.at_once() };
        self.time_own() + self.excess + self.failing.reads * failed
    }

    /// Whether the drives take long enough for a command that computing instead of reading can save time.
    pub(crate) fn may_save(&self) -> bool {
        self.pace > HOST_TIME
    }

    /// Whether hardly any sector fails, and no drive is slow now and then.
    pub(crate) fn is_healthy(&self) -> bool {
        self.failing.reads < HEALTHY_FAILS
            && self.excess < HEALTHY_EXCESS * self.pace * self.wanted as f64
    }

    /// Whether few sectors fail.
    pub(crate) fn is_readable(&self) -> bool {
        self.failing.rate < READABLE_FAILS
    }

    /// Commands of the whole group beyond those that must be made.
    pub(crate) fn extra(&self) -> u32 {
        (self.drives - self.asked) as u32
    }

    /// If the whole group is asked.
    pub(crate) fn group(&self) -> f64 {
        let crowded = WEIGHT_CROWDED * self.helpful.powi(2) * self.queued / self.window;
        let weight = self.weight_extra * self.marginal() * (1.0 + crowded);
        let margin = MARGIN * self.time(self.queued, 1.0);
        self.time_own().min(self.time_any()) + weight * self.price_extra + margin
    }

    /// Whether doing without this drive, as these costs do, costs less than reading it.
    pub(crate) fn spares(&self, drive: &Share) -> bool {
        match drive.wanted {
            // It is asked only where a sector of another one fails, which is retried without it.
            0 => self.failing.reads * self.at_once() <= self.failing.reads * own(drive),
            _ => self.instead() + self.risk() < own(drive),
        }
    }

    /// If others are read instead of a drive that is set aside, for the part of that drive.
    fn instead(&self) -> f64 {
        match self.asked - self.wanted {
            0 => self.time(self.queued, 1.0),
            extra => self.rest(extra, WEIGHT),
        }
    }

    /// Whether no redundancy is left to compute with.
    fn is_bare(&self) -> bool {
        self.drives <= self.needed
    }

    /// What that costs, if it is so: sectors that fail are read with retries.
    fn risk(&self) -> f64 {
        if !self.is_bare() {
            return 0.0;
        }
        let others = WEIGHT * self.failing.sectors * self.delayed();
        self.failing.retry_time * (self.failing.sectors_worst + others)
    }

    /// Whether it costs less to read without retries at first, and to compute or read again what fails.
    pub(crate) fn is_fast(&self) -> bool {
        self.failing.reads <= 0.0 || self.second() <= self.bias() * self.at_once()
    }

    /// How long it takes on average until as many drives have answered as are needed, if all are asked.
    fn time_any(&self) -> f64 {
        let alike = harmonic(self.drives) - harmonic(self.drives - self.needed);
        let alone = harmonic(self.needed);
        self.unlike_any * self.time(self.queued, alone + self.helpful * (alike - alone))
    }

    /// How long it takes until all drives have answered that must be asked.
    fn time_own(&self) -> f64 {
        self.unlike_own * self.time(self.queued, harmonic(self.asked))
    }

    /// How long a drive takes after `ahead` other commands, on average; an order statistic of several drives'
    /// times whose mean is `order` for an exponential law of mean 1.
    fn time(&self, ahead: f64, order: f64) -> f64 {
        let spread = (SPREAD_IDLE + ahead) / (1.0 + ahead);
        (ahead + 1.0) * self.pace * (1.0 + spread * (order - 1.0))
    }

    /// What one command more takes at a drive, as a share of a command's time.
    fn marginal(&self) -> f64 {
        MARGINAL_MIN + (1.0 - MARGINAL_MIN) * (self.queued / self.window).min(1.0)
    }

    /// A second trip: what is missing is computed from the rest of the group.
    fn second(&self) -> f64 {
        self.rest(self.needed.saturating_sub(self.asked).max(1), 1.0)
    }

    /// Reading from `extra` more drives, at the head of their queues.
    fn rest(&self, extra: usize, weight: f64) -> f64 {
        let ahead = self.queued.min(self.window);
        self.time(ahead, harmonic(extra)) + weight * self.marginal() * extra as f64 * self.price
    }

    /// Retries that the drive makes at once.
    fn at_once(&self) -> f64 {
        self.failing.retry_time * (1.0 + self.delayed())
    }

    /// Requests that one command more at a drive delays.
    fn delayed(&self) -> f64 {
        self.price / self.pace.max(f64::MIN_POSITIVE)
    }

    fn bias(&self) -> f64 {
        FAST_BIAS + FAST_BIAS_IDLE / (1.0 + self.queued)
    }
}

/// What reading a drive costs, for its part of a read. Only what is there counts: a drive that is done without
/// has fewer commands than others.
fn own(share: &Share) -> f64 {
    let DriveView { pace, queued, .. } = share.drive;
    share.drive.wait() + WEIGHT * pace * queued
}

/// Seconds of delay to other requests for one command more at a drive: it delays those that are there, or,
/// where requests come at times of their own, those that are there as a rule.
fn price(view: &View<'_>, drive: &DriveView) -> f64 {
    let queue = match view.arrivals {
        Arrivals::Independent => drive.queued.max(view.seen),
        Arrivals::UponAnswers => drive.queued.max(view.seen.min(view.seen * view.seen)),
    };
    drive.pace * queue
}

/// 1 + 1/2 + .. + 1/n.
fn harmonic(n: usize) -> f64 {
    HARMONIC[n]
}

const HARMONIC: [f64; DriveIdx::MAX as usize + 1] = {
    let mut sums = [0.0; DriveIdx::MAX as usize + 1];
    let mut n = 1;
    while n < sums.len() {
        sums[n] = sums[n - 1] + 1.0 / n as f64;
        n += 1;
    }
    sums
};
