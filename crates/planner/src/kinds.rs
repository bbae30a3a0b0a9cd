//! Mean times of what files of the three kinds ask of a disk: reads at random, reads and writes in sequence, updates.
//!
//! The model is that of `[SDHDD]` sec. 4.3, for means and not for tails: an access moves the head and waits for the
//! sectors to pass under it. What the paper measured with it (Fig. 7, 8, 9, 11 and 12) it gives as measurements alone;
//! these closed forms are ours.
//!
//! # Assumptions
//!
//! - K1. Every access moves the head, for one time whatever the distance.
//! - K2. A read passes over everything from its first sector to its last, what it does not need included.
//! - K3. Decoding and computing take no time, and what is left after a code has failed is not counted: less than one
//!   group in 10^6.
//!
//! # References
//!
//! - `[SDHDD]` sec. 3.2 and 3.3, the kinds; sec. 4.3, Eq. (3) and (4); sec. 4.4, the undo log.

use levelhead_units::Nanos;

use crate::Code;

/// What an access to a disk costs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Disk {
    /// Time of moving the head, and of waiting for the first sector.
    pub seek_time: Nanos,
    /// Time in which a sector passes.
    pub sector_time: Nanos,
    /// Time of a rotation.
    pub rotation_time: Nanos,
}

impl Disk {
    /// That of `[SDHDD]` sec. 4.3, at 7200 rpm.
    pub const PAPER: Self = Self {
        seek_time: Nanos::from_millis(10),
        sector_time: Nanos::from_micros(33),
        rotation_time: Nanos::from_micros(8_333),
    };

    /// An access to a stretch of this number of sectors, in milliseconds.
    fn access(&self, sectors: f64) -> f64 {
        self.seek_time.as_millis_f64() + self.pass(sectors)
    }

    fn pass(&self, sectors: f64) -> f64 {
        self.sector_time.as_millis_f64() * sectors
    }
}

/// How the pages of a file lie on the disk.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Stored {
    /// One page a sector, and nothing else; no sector fails.
    Plain,
    /// One page a sector, with a code over them, where sectors fail with this probability: kind A.
    Coded {
        /// The code.
        code: Code,
        /// The probability that a sector's first pass fails.
        failure_rate: f64,
    },
    /// Sets of this number of pages with a complementary sector behind them, and a code over both: kind B.
    Forced {
        /// Pages to a complementary sector.
        pages: u64,
        /// The code.
        code: Code,
        /// The probability that a sector's first pass fails, under zero forcing.
        failure_rate: f64,
    },
    /// Sets of this number of pages between two complementary sectors; no sector fails: mutable.
    Mutable {
        /// Pages between two complementary sectors.
        pages: u64,
    },
}

impl Stored {
    /// Sectors on the disk for each page, in sequence.
    ///
    /// ```text
    ///   A: 1 + m/k      B: (1 + 1/d)(1 + m/k)      mutable: 1 + 2/d
    /// ```
    pub fn expansion(&self) -> f64 {
        match self {
            Self::Plain => 1.0,
            Self::Coded { code, .. } => 1.0 + code.redundancy(),
            Self::Forced { pages, code, .. } => {
                (1.0 + 1.0 / *pages as f64) * (1.0 + code.redundancy())
            }
            Self::Mutable { pages } => 1.0 + 2.0 / *pages as f64,
        }
    }
}

/// Mean number of sectors from the first of `count` pages, which begin anywhere in a set of `pages`, to the
/// complementary sector of the last one's set; and mean number of sets.
///
/// ```text
///   begin o = 0 .. d-1:   sets(o) = floor((o + q - 1)/d) + 1     span(o) = sets(o) (d+1) - o
/// ```
///
/// # Panics
///
/// If one of them is 0.
pub fn span(count: u64, pages: u64) -> Span {
    assert!(count > 0 && pages > 0, "{count} pages, sets of {pages}");
    let all = |of: &dyn Fn(u64) -> u64| {
        (0..pages).map(|begin| of(begin) as f64).sum::<f64>() / pages as f64
    };
    let sets = |begin: u64| (begin + count - 1) / pages + 1;
    Span { sectors: all(&|begin| sets(begin) * (pages + 1) - begin), sets: all(&sets) }
}

/// See [`span`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Span {
    /// Sectors that pass under the head.
    pub sectors: f64,
    /// Sets of pages that the request touches, each with its complementary sector.
    pub sets: f64,
}

/// Mean time of reading `count` pages at a random place of files that lie like that, in milliseconds.
///
/// ```text
///   plain    seek + q tau_u
///   A        the same, and where one of q sectors fails, the whole group instead     [SDHDD] Eq. (3), (4)
///   B        seek + span tau_u, and where one of q + sets fails, the whole group
///   mutable  seek + span tau_u
/// ```
///
/// # Panics
///
/// If `count` is 0.
pub fn random_read(disk: Disk, stored: Stored, count: u64) -> f64 {
    assert!(count > 0, "a read of nothing");
    let mended = |code: Code, failure_rate: f64, asked: f64, passed: f64| {
        let clean = ((-failure_rate).ln_1p() * asked).exp();
        let whole = disk.access((code.length() as f64).max(passed));
        clean * disk.access(passed) + (1.0 - clean) * whole
    };
    match stored {
        Stored::Plain => disk.access(count as f64),
        Stored::Coded { code, failure_rate } => {
            mended(code, failure_rate, count as f64, count as f64)
        }
        Stored::Forced { pages, code, failure_rate } => {
            let Span { sectors, sets } = span(count, pages);
            mended(code, failure_rate, count as f64 + sets, sectors)
        }
        // The complementary sector before the pages is a copy: reads need one of the two.
        Stored::Mutable { pages } => disk.access(span(count, pages).sectors),
    }
}

/// Updates in place of files of kind B, without an undo log and with one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Updates {
    /// Pages of each.
    pub count: u64,
    /// Pages to a complementary sector.
    pub pages: u64,
    /// How many are done together: their old sectors go to the log in one write.
    pub together: u64,
    /// Time of moving the head to the log, or back to the place after it.
    pub log_time: Nanos,
}

/// Mean time of an update, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UpdateTimes {
    /// Read, and written a rotation later.
    pub bare: f64,
    /// Read, the old sectors written to the log, and written in place.
    pub logged: f64,
}

/// What an undo log costs.
///
/// ```text
///   bare     seek + span tau_u + rotation
///   logged   seek + span tau_u + (t_log + n (q + sets) tau_u)/n + back + span tau_u
///            back = t_log for one at a time, seek for several
/// ```
///
/// The old sectors are read first in both: an update of part of a page needs them, and the complementary sector always.
///
/// # Panics
///
/// If a number is 0.
pub fn updates(disk: Disk, updates: Updates) -> UpdateTimes {
    let Updates { count, pages, together, log_time } = updates;
    assert!(together > 0, "no update at all");
    let Span { sectors, sets } = span(count, pages);
    let read = disk.access(sectors);
    let log = log_time.as_millis_f64() / together as f64 + disk.pass(count as f64 + sets);
    let back = if together == 1 { log_time } else { disk.seek_time }.as_millis_f64();
    UpdateTimes {
        bare: read + disk.rotation_time.as_millis_f64(),
        logged: read + log + back + disk.pass(sectors),
    }
}

/// The share of throughput that is lost where the disk is busy for `busy` of the time and then has `factor` times as
/// much to do, beside computing that goes on meanwhile.
///
/// ```text
///   1 - 1 / max(1, busy factor)
/// ```
///
/// # Panics
///
/// If the disk is busy for less than none of the time, or more than all of it.
pub fn lost(busy: f64, factor: f64) -> f64 {
    assert!((0.0..=1.0).contains(&busy), "a disk that is busy for {busy} of the time");
    1.0 - 1.0 / (busy * factor).max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CODE: Code = Code { data: 253, redundant: 2 };

    #[test]
    fn spans_are_those_of_sectors_counted_one_by_one() {
        for (count, pages) in [(1, 15), (8, 15), (16, 15), (32, 15), (1, 7), (30, 7), (15, 15)] {
            let (mut sectors, mut sets) = (0, 0);
            for begin in 0..pages {
                // Page i lies at i + i/d, the complementary sector of set g at (g+1)(d+1)-1.
                let (first, last) = (begin, begin + count - 1);
                let complementary = (last / pages + 1) * (pages + 1) - 1;
                sectors += complementary - (first + first / pages) + 1;
                sets += last / pages - first / pages + 1;
            }
            let Span { sectors: of_sectors, sets: of_sets } = span(count, pages);
            assert!((of_sectors * pages as f64 - sectors as f64).abs() < 1e-9, "{count}, {pages}");
            assert!((of_sets * pages as f64 - sets as f64).abs() < 1e-9, "{count}, {pages}");
        }
    }

    /// By hand: one page is 7 sectors from its complementary one on average.
    #[test]
    fn one_page_of_kind_b_takes_as_long_as_nine_sectors() {
        let stored = Stored::Forced { pages: 15, code: CODE, failure_rate: 0.0 };
        let (plain, forced) =
            (random_read(Disk::PAPER, Stored::Plain, 1), random_read(Disk::PAPER, stored, 1));
        assert!((plain - 10.033).abs() < 1e-9 && (forced - 10.297).abs() < 1e-9, "{forced}");
    }

    #[test]
    fn a_read_that_fails_surely_takes_its_whole_group() {
        let code = Code { data: 246, redundant: 9 };
        let time = random_read(Disk::PAPER, Stored::Coded { code, failure_rate: 1.0 }, 8);
        assert!((time - (10.0 + 255.0 * 0.033)).abs() < 1e-9, "{time}");
        let never = random_read(Disk::PAPER, Stored::Coded { code, failure_rate: 0.0 }, 8);
        assert!((never - random_read(Disk::PAPER, Stored::Plain, 8)).abs() < 1e-12);
    }

    /// 9 sectors for 7 pages, and the same as `system` says of capacity.
    #[test]
    fn mutable_files_lose_two_ninths_where_the_disk_is_the_bound_and_nothing_where_it_is_idle() {
        let factor = Stored::Mutable { pages: 7 }.expansion();
        assert!((lost(1.0, factor) - 2.0 / 9.0).abs() < 1e-12);
        assert!(lost(0.5, factor).abs() < 1e-12 && lost(0.0, factor).abs() < 1e-12);
        assert!(lost(7.0 / 9.0, factor).abs() < 1e-12);
        assert!(lost(0.8, factor) > 0.0);
    }

    #[test]
    fn one_log_write_for_several_updates_costs_less_for_each() {
        let of = |together| {
            let log_time = Nanos::from_millis(10);
            updates(Disk::PAPER, Updates { count: 8, pages: 15, together, log_time })
        };
        assert!((of(1).bare - of(8).bare).abs() < 1e-12);
        assert!(of(1).logged > of(8).logged && of(8).logged > of(32).logged);
        assert!(of(32).logged > of(32).bare);
    }
}
