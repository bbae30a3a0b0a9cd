//! The planner's closed forms against chance: sectors drawn one by one, seeded, and sectors that a modelled drive reads whose
//! failures come from the table of its own code. Planner, table and drive share no code.
//!
//! Every check compares a share with a probability, and asks that the probability lies within the
//! 99 % interval of the share (Wilson's, which also holds for few hits).

use levelhead_block::{Command, Effort, Outcome};
use levelhead_drive::{Drive, Ecc, Faults, Profile, Settings};
use levelhead_ldpc::{RetryModel, RetryTable, Step};
use levelhead_planner::capacity::{FileSizes, overhead};
use levelhead_planner::code::{
    Goal, coding_group, failure, failure_bound_correlated, failure_rate_max, least_redundant,
};
use levelhead_planner::decode::DecodeTime;
use levelhead_planner::mode::{Delayed, busy_period, delayed};
use levelhead_planner::random::{self, Reads};
use levelhead_planner::sequential::{self, Read};
use levelhead_planner::system::{Capacities, redundancy};
use levelhead_planner::{Code, Law, metadata};
use levelhead_stats::{Rng, Streams};
use levelhead_units::{Bytes, Extent, Instant, Lba, Nanos, Sectors};

/// 99 % of a normal law lie within this number of standard deviations.
const Z_99: f64 = 2.576;

#[track_caller]
pub(crate) fn check(what: &str, hits: u64, draws: u64, want: f64) {
    let (n, share) = (draws as f64, hits as f64 / draws as f64);
    let square = Z_99 * Z_99 / n;
    let middle = (share + square / 2.0) / (1.0 + square);
    let spread = share * (1.0 - share) / n + square / (4.0 * n);
    let half = Z_99 * spread.sqrt() / (1.0 + square);
    let is_inside = (middle - half..=middle + half).contains(&want);
    assert!(is_inside, "{what}: {want:e}, drawn {share:e} in {half:e} about {middle:e}");
}

/// Draws latencies and compares how many lie above three of the law's points.
#[track_caller]
pub(crate) fn check_law(what: &str, law: &Law, draws: u64, mut draw: impl FnMut() -> Nanos) {
    let drawn: Vec<Nanos> = (0..draws).map(|_| draw()).collect();
    for share in [0.5, 0.9, 0.99] {
        let point = law.quantile(share).high.unwrap();
        let hits = drawn.iter().filter(|&&time| time > point).count() as u64;
        check(&format!("{what}, above p{}", share * 100.0), hits, draws, law.above(point));
    }
}

fn failed(rng: &mut Rng, sectors: u64, rate: f64) -> u64 {
    (0..sectors).filter(|_| rng.unit() < rate).count() as u64
}

/// Where failures come from: how many of so many sectors fail that are read next.
type Failing<'a> = dyn FnMut(u64) -> u64 + 'a;

/// How a source of failures with this rate is made, for what it is named after.
type Source = dyn Fn(&str, f64) -> Box<Failing<'static>>;

/// Each sector fails by a number of its own.
fn drawn(name: &str, rate: f64) -> Box<Failing<'static>> {
    let mut rng = Streams::new(5).stream(name);
    Box::new(move |sectors| failed(&mut rng, sectors, rate))
}

/// Each sector is read on a modelled drive of whose sectors this share fails by the table of the code, all with the same noise.
fn of_drive(name: &str, failure_rate: f64) -> Box<Failing<'static>> {
    let steps = Step::list();
    let model = RetryModel { failure_rate, written_offset: 0.0, pass_offset: 0.0, steps };
    let mut drive = CodedDrive::new(&model, name);
    let mut origin = 0;
    Box::new(move |sectors| {
        origin += 1;
        drive.failures(sectors, origin)
    })
}

/// A modelled drive with a retry table.
struct CodedDrive {
    drive: Drive,
    now: Instant,
    next: u64,
}

impl CodedDrive {
    fn new(model: &RetryModel, name: &str) -> Self {
        // As long as the test.
        let table: &'static RetryTable = Box::leak(Box::new(model.table(name).unwrap()));
        let faults = Faults { ecc: Some(Ecc::of(table)), ..Faults::NONE };
        let settings = Settings { faults, ..Settings::PLAIN };
        let profile = Profile::shipped("nearline-2tb").unwrap();
        let drive = Drive::new(profile, settings, Streams::new(6), name).unwrap();
        Self { drive, now: Instant::ZERO, next: 0 }
    }

    /// How many of the next sectors a first pass leaves unread on behalf of `origin`.
    fn failures(&mut self, sectors: u64, origin: u64) -> u64 {
        let failed = self.failures_at(self.next, sectors, origin);
        self.next = (self.next + sectors) % (1 << 24);
        failed
    }

    fn failures_at(&mut self, lba: u64, sectors: u64, origin: u64) -> u64 {
        let extent = Extent::new(Lba::new(lba), Sectors::new(sectors));
        let command = Command::Read { extent, effort: Effort::Fast };
        self.drive.handle_submit(self.now, origin, command, origin);
        loop {
            if let Some(completion) = self.drive.poll() {
                let Outcome::Done { unknown, .. } = completion.outcome else { panic!("it lives") };
                return unknown.len() as u64;
            }
            self.now = self.drive.deadline().expect("a read ends");
            self.drive.handle_timeout(self.now);
        }
    }
}

#[test]
fn codes_fail_as_often_as_drawn_codewords() {
    check_codes(&drawn);
}

/// Eq. 1 of `[LEC17]`.
#[test]
fn codes_fail_as_often_as_groups_on_a_drive_with_a_code_of_its_own() {
    check_codes(&of_drive);
}

fn check_codes(source: &Source) {
    for (code, rate) in [
        (Code { data: 250, redundant: 5 }, 0.015),
        (Code { data: 62, redundant: 1 }, 5e-3),
        (coding_group(5, 1, 2), 0.05),
        (Code { data: 1004, redundant: 19 }, 0.015),
    ] {
        let draws = 20_000;
        let mut failed = source(&format!("code {code}"), rate);
        let hits = (0..draws).filter(|_| failed(code.length()) > code.redundant).count() as u64;
        check(&format!("code {code}"), hits, draws, failure(code, rate));
    }
}

/// Where heads wander, Eq. 1 still holds for one read of a group, because sectors are written and read with offsets of their own. It
/// does not hold for the reads of one group together: the sectors that were written beside the track fail again and again.
#[test]
fn groups_under_wandering_heads_fail_together_in_time_and_not_in_space() {
    let steps = Step::list();
    let failure_rate = 5e-3;
    let model = RetryModel { failure_rate, written_offset: 0.06, pass_offset: 0.02, steps };
    let mut drive = CodedDrive::new(&model, "wander");
    let code = Code { data: 252, redundant: 3 };
    let groups = 12_000;
    let (mut once, mut twice) = (0, 0);
    for group in 0..groups {
        let lba = group * code.length();
        let fails = [2 * group, 2 * group + 1]
            .map(|origin| drive.failures_at(lba, code.length(), origin) > code.redundant);
        once += u64::from(fails[0]);
        twice += u64::from(fails[0] && fails[1]);
    }
    let law = failure(code, failure_rate);
    check("one read of a group", once, groups, law);
    let again = twice as f64 / once as f64;
    assert!(again > 2.0 * law, "{again} of the groups that failed fail again, {law} of all fail");
}

/// The bound for correlated sectors is one: chains in which a failure makes the next sector `c` times
/// as likely to fail stay below it.
#[test]
fn correlated_groups_fail_less_often_than_the_bound() {
    let mut rng = Streams::new(6).stream("correlated");
    for (sectors, rate, correlation) in [(2, 0.03, 2.0), (3, 0.05, 2.0), (2, 0.02, 5.0)] {
        let (code, draws) = (coding_group(5, 1, sectors), 200_000);
        let hits = (0..draws)
            .filter(|_| {
                let mut failures = 0;
                for _drive in 0..6 {
                    let mut before = false;
                    for _sector in 0..sectors {
                        before = rng.unit() < if before { rate * correlation } else { rate };
                        failures += u64::from(before);
                    }
                }
                failures > code.redundant
            })
            .count();
        let share = hits as f64 / f64::from(draws);
        let deviation = (share / f64::from(draws)).sqrt();
        let bound = failure_bound_correlated(code, rate, correlation);
        assert!(share - Z_99 * deviation < bound, "e {sectors}: {share} above {bound}");
        assert!(share > failure(code, rate), "e {sectors}: correlation makes it worse");
    }
}

#[test]
fn replicas_fail_together_as_often_as_drawn() {
    let mut rng = Streams::new(7).stream("replicas");
    for (rate, target) in [(0.1, 0.02), (0.2, 0.01), (0.05, 0.01)] {
        let (copies, draws) = (metadata::replicas(rate, target).unwrap(), 200_000);
        let hits = (0..draws).filter(|_| failed(&mut rng, copies, rate) == copies).count() as u64;
        check("replicas", hits, draws, rate.powi(copies as i32));
        assert!(rate.powi(copies as i32) <= target && rate.powi(copies as i32 - 1) > target);
    }
}

#[test]
fn long_reads_take_as_long_as_drawn_ones() {
    check_long_reads(&drawn);
}

/// Eq. 2 of `[LEC17]`.
#[test]
fn long_reads_take_as_long_as_those_of_a_drive_with_a_code_of_its_own() {
    check_long_reads(&of_drive);
}

/// What decodes is rebuilt; what does not is retried until it does.
fn check_long_reads(source: &Source) {
    let decode = DecodeTime::PAPER_SOFTWARE;
    for (sectors, rate, code) in [
        (1_000, 5e-3, Code { data: 246, redundant: 9 }),
        (600, 0.02, Code { data: 100, redundant: 3 }),
        (500, 0.01, Code { data: 250, redundant: 2 }),
    ] {
        let read = Read {
            sectors,
            failure_rate: rate,
            sector_time: Nanos::from_micros(33),
            retry_time: Nanos::from_millis(20),
        };
        let bare = || read.sector_time * sectors;
        let law = sequential::without_code(read);
        let mut failed = source("bare", rate);
        check_law("retries alone", &law, 20_000, || bare() + read.retry_time * failed(sectors));
        let mut failed = source(&format!("long reads, {code}"), rate);
        let law = sequential::exact(read, code, &decode).unwrap();
        check_law(&format!("code {code}"), &law, 20_000, || {
            let mut time = bare();
            let mut left = sectors;
            while left > 0 {
                let data = left.min(code.data);
                left -= data;
                let of_data = failed(data);
                let failures = of_data + failed(code.redundant);
                let beyond = failures.saturating_sub(code.redundant);
                if left > 0 {
                    time += read.sector_time * code.redundant + read.retry_time * beyond;
                    if beyond > 0 {
                        time += decode.of(code, code.redundant);
                    }
                } else if of_data > 0 {
                    time += read.sector_time * code.redundant
                        + read.retry_time * beyond
                        + decode.of(code, failures.min(code.redundant));
                }
            }
            time
        });
    }
}

#[test]
fn random_reads_take_as_long_as_drawn_ones() {
    check_random_reads(&drawn);
}

/// Eqs. 3 and 4 of `[LEC17]`.
#[test]
fn random_reads_take_as_long_as_those_of_a_drive_with_a_code_of_its_own() {
    check_random_reads(&of_drive);
}

fn check_random_reads(source: &Source) {
    let decode = DecodeTime::PAPER_SOFTWARE;
    for (depth, sectors, rate, code) in [
        (1, 16, 5e-3, Code { data: 246, redundant: 9 }),
        (8, 4, 5e-3, Code { data: 246, redundant: 9 }),
        (16, 8, 0.02, Code { data: 62, redundant: 1 }),
    ] {
        let reads = Reads {
            depth,
            sectors,
            failure_rate: rate,
            sector_time: Nanos::from_micros(33),
            seek_time: Nanos::from_millis(10),
            retry_time: Nanos::from_millis(20),
        };
        let law = random::exact(reads, code, &decode).unwrap();
        let mut failed = source(&format!("random reads, {code}"), rate);
        check_law(&format!("depth {depth}, code {code}"), &law, 20_000, || {
            let mut one = || {
                let mine = failed(sectors);
                if mine == 0 {
                    return reads.sector_time * sectors + reads.seek_time;
                }
                let failures = mine + failed(code.length() - sectors);
                reads.sector_time * code.length()
                    + reads.seek_time
                    + decode.of(code, failures.min(code.redundant))
                    + reads.retry_time * failures.saturating_sub(code.redundant)
            };
            (0..depth).map(|_| one()).sum()
        });
        let law = random::without_code(reads);
        check_law("random, retries alone", &law, 20_000, || {
            reads.ideal() + reads.retry_time * failed(depth * sectors)
        });
    }
}

/// An M/D/1 queue, customer by customer: how many more are served before it is empty.
#[test]
fn busy_periods_are_as_long_as_drawn_ones() {
    let mut rng = Streams::new(11).stream("busy periods");
    for (queued, load) in [(1, 0.5), (4, 0.8), (10, 0.3)] {
        let draws = 40_000;
        let (mut none, mut sum, mut squares) = (0, 0.0, 0.0);
        for _ in 0..draws {
            let (mut waiting, mut later) = (queued, 0);
            while waiting > 0 {
                waiting -= 1;
                // Arrivals within one service time: Poisson, by exponential gaps.
                let mut gap = -(1.0 - rng.unit()).ln() / load;
                while gap < 1.0 {
                    waiting += 1;
                    later += 1;
                    gap -= (1.0 - rng.unit()).ln() / load;
                }
            }
            none += u64::from(later == 0);
            sum += f64::from(later);
            squares += f64::from(later).powi(2);
        }
        check("no later job", none, draws, busy_period(queued, load, 0));
        let (mean, n) = (sum / draws as f64, draws as f64);
        let half = Z_99 * ((squares / n - mean * mean) / n).sqrt();
        let want = delayed(Delayed::BusyPeriod, queued, load);
        assert!((mean - want).abs() < half, "queued {queued}: {want}, drawn {mean} +- {half}");
    }
}

/// Sectors written one after the other, redundancy whenever a group is full or the file ends.
#[test]
fn overhead_is_what_writing_files_takes() {
    let mut rng = Streams::new(12).stream("files");
    for code in [(5, 250), (9, 1014), (1, 62)].map(|(redundant, data)| Code { data, redundant }) {
        let (mut sizes, mut data, mut redundant) = (FileSizes::new(), 0_u64, 0_u64);
        for _ in 0..2_000 {
            let sectors = 1 + rng.below(3_000);
            sizes.add(Bytes::new(sectors * 4096 - rng.below(4096)), 1);
            let mut in_group = 0;
            for _ in 0..sectors {
                data += 1;
                in_group += 1;
                if in_group == code.data {
                    redundant += code.redundant;
                    in_group = 0;
                }
            }
            redundant += if in_group > 0 { code.redundant } else { 0 };
        }
        let drawn = redundant as f64 / data as f64;
        assert!((overhead(&sizes, code) - drawn).abs() < 1e-12, "code {code}");
    }
}

/// A drive filled with pages of the three kinds, drawn by their shares.
#[test]
fn redundancy_of_a_drive_is_what_filling_one_takes() {
    let mut rng = Streams::new(13).stream("drive");
    for (mix, rate) in
        [([0.9, 0.08, 0.02], 1e-3), ([0.7, 0.24, 0.06], 5e-3), ([0.5, 0.4, 0.1], 1e-2)]
    {
        let code = least_redundant(255, Goal { failure_rate: rate, target: 1e-6 }).unwrap();
        let random = Code { data: 126, redundant: 1 };
        assert!(failure_rate_max(code, 1e-6) >= rate);
        let [a, b, m] = mix;
        let capacities = Capacities { sequential: a, random: b, mutable: m };
        let costs = [code.redundancy(), 1.0 / 15.0 + random.redundancy(), 2.0 / 7.0];
        let draws = 200_000;
        let (mut sum, mut squares) = (0.0, 0.0);
        for _ in 0..draws {
            let at = rng.unit();
            let cost = costs[if at < a {
                0
            } else if at < a + b {
                1
            } else {
                2
            }];
            sum += cost;
            squares += cost * cost;
        }
        let n = f64::from(draws);
        let mean = sum / n;
        let half = Z_99 * ((squares / n - mean * mean) / n).sqrt();
        let want = redundancy(capacities, code, random);
        assert!((mean - want).abs() < half, "{mix:?}: {want}, drawn {mean} +- {half}");
    }
}
