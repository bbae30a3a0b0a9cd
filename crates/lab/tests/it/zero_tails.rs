//! Modelled drives that know of zeroes at the ends of sectors, against the planner's closed forms of zero forcing
//! (`[SDHDD]`): both are ours, and neither crate sees the other.
//!
//! Every check asks that a probability lies within the 99 % interval of the share that was counted (Wilson's).

use levelhead_block::{Command, Durability, Effort, Outcome, SectorSet, ZeroTail};
use levelhead_drive::{Drive, Faults, Profile, Settings, rate_under};
use levelhead_planner::Code;
use levelhead_planner::code::failure;
use levelhead_planner::decode::DecodeTime;
use levelhead_planner::random::{Reads, exact, with_complementary, without_code};
use levelhead_planner::system::{forced_failure_rate, pages};
use levelhead_stats::Streams;
use levelhead_units::{Extent, Instant, Lba, Nanos, Ratio, Sectors};

use crate::planner_agrees::{check, check_law};

/// A drive all of whose sectors have been written with this tail, and which is asked for one coding group after the
/// other, each time on behalf of another request.
struct Groups {
    drive: Drive,
    now: Instant,
    origin: u64,
}

impl Groups {
    const SIZE: Sectors = Sectors::new(100_000);

    fn new(retry_rate: f64, tail: ZeroTail) -> Self {
        let faults = Faults { retry_rate: Ratio::new(retry_rate).unwrap(), ..Faults::NONE };
        let settings = Settings { faults, size: Some(Self::SIZE), ..Settings::PLAIN };
        let profile = Profile::shipped("nearline-2tb").unwrap();
        let drive = Drive::new(profile, settings, Streams::new(6), "drive/0").unwrap();
        let mut groups = Self { drive, now: Instant::ZERO, origin: 0 };
        let (extent, durability) = (Extent::new(Lba::ZERO, Self::SIZE), Durability::Cached);
        groups.run(Command::Write { extent, durability, zero_tail: tail });
        groups
    }

    fn run(&mut self, command: Command) -> Outcome {
        self.origin += 1;
        self.drive.handle_submit(self.now, self.origin, command, self.origin);
        loop {
            if let Some(done) = self.drive.poll() {
                self.now = done.ended;
                return done.outcome;
            }
            self.drive.handle_timeout(self.drive.deadline().unwrap());
        }
    }

    /// Which sectors of the next group of this length fail.
    fn read(&mut self, sectors: u64) -> SectorSet {
        let first = self.origin * sectors % (Self::SIZE.get() - sectors);
        let extent = Extent::new(Lba::new(first), Sectors::new(sectors));
        match self.run(Command::Read { extent, effort: Effort::Fast }) {
            Outcome::Done { unknown, .. } => unknown,
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn the_drive_and_the_planner_assume_the_same_rate_under_zeroes() {
    for rate in [0.0, 1e-4, 1e-3, 5e-3, 8e-3, 1e-2, 0.3, 1.0] {
        let (drive, planner) = (rate_under(ZeroTail::B256, rate), forced_failure_rate(rate));
        assert!((drive - planner).abs() <= f64::EPSILON * planner, "{rate}: {drive}, {planner}");
    }
}

/// Table 2's question at rates at which a code fails while one looks.
#[test]
fn groups_with_zeroes_fail_to_decode_as_often_as_the_closed_form_says() {
    for (rate, code) in [
        (0.1, Code { data: 254, redundant: 1 }),
        (0.2, Code { data: 253, redundant: 2 }),
        (0.2, Code { data: 62, redundant: 1 }),
    ] {
        let mut groups = Groups::new(rate, ZeroTail::B256);
        let draws = 20_000;
        let hits = (0..draws)
            .filter(|_| groups.read(code.length()).len() as u64 > code.redundant)
            .count() as u64;
        let want = failure(code, forced_failure_rate(rate));
        assert!(hits > 100, "{hits} is too few to tell");
        check(&format!("{code} at {rate}"), hits, draws, want);
    }
}

/// Eq. (3) and (4) of `[SDHDD]` and its Fig. 10: the law that `sdhdd.fig10` prints, with the failures of a drive that
/// was written with and without zeroes in the place of drawn ones. The first bed of each is the paper's rate.
#[test]
fn reads_of_files_with_zeroes_take_as_long_as_the_closed_form_of_fig_10_says() {
    let decode = DecodeTime::PAPER_SOFTWARE;
    for (rate, tail, code) in [
        (5e-3, ZeroTail::B256, Code { data: 254, redundant: 1 }),
        (0.1, ZeroTail::B256, Code { data: 253, redundant: 2 }),
        (5e-3, ZeroTail::None, Code { data: 246, redundant: 9 }),
        (0.02, ZeroTail::None, Code { data: 240, redundant: 15 }),
    ] {
        let sectors = match tail {
            ZeroTail::B256 => with_complementary(8, pages(256)),
            ZeroTail::None | ZeroTail::B512 => 8,
        };
        let reads = Reads {
            depth: 8,
            sectors,
            failure_rate: rate_under(tail, rate),
            sector_time: Nanos::from_micros(33),
            seek_time: Nanos::from_millis(10),
            retry_time: Nanos::from_millis(20),
        };
        let mut groups = Groups::new(rate, tail);
        let law = exact(reads, code, &decode).unwrap();
        let mut one = || {
            let failed = groups.read(code.length());
            let failures = failed.len() as u64;
            if failed.iter().all(|at| u64::from(at) >= sectors) {
                return reads.sector_time * sectors + reads.seek_time;
            }
            reads.sector_time * code.length()
                + reads.seek_time
                + decode.of(code, failures.min(code.redundant))
                + reads.retry_time * failures.saturating_sub(code.redundant)
        };
        let what = format!("{tail:?} at {rate}, code {code}");
        check_law(&what, &law, 4_000, || (0..reads.depth).map(|_| one()).sum());
        let mut groups = Groups::new(rate, tail);
        let law = without_code(reads);
        check_law(&format!("{what}, retries alone"), &law, 4_000, || {
            let failed = groups.read(reads.depth * sectors).len() as u64;
            reads.ideal() + reads.retry_time * failed
        });
    }
}
