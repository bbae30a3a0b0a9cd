//! The planner's closed forms against chance: sectors drawn one by one, seeded.
//!
//! Every check compares a share with a probability, and asks that the probability lies within the
//! 99 % interval of the share (Wilson's, which also holds for few hits).

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
use levelhead_units::{Bytes, Nanos};

/// 99 % of a normal law lie within this number of standard deviations.
const Z_99: f64 = 2.576;

#[track_caller]
fn check(what: &str, hits: u64, draws: u64, want: f64) {
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
fn check_law(what: &str, law: &Law, draws: u64, mut draw: impl FnMut() -> Nanos) {
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

#[test]
fn codes_fail_as_often_as_drawn_codewords() {
    let mut rng = Streams::new(5).stream("codes");
    for (code, rate) in [
        (Code { data: 250, redundant: 5 }, 0.015),
        (Code { data: 62, redundant: 1 }, 5e-3),
        (coding_group(5, 1, 2), 0.05),
        (Code { data: 1004, redundant: 19 }, 0.015),
    ] {
        let draws = 20_000;
        let hits = (0..draws)
            .filter(|_| failed(&mut rng, code.length(), rate) > code.redundant)
            .count() as u64;
        check(&format!("code {code}"), hits, draws, failure(code, rate));
    }
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

/// What decodes is rebuilt; what does not is retried until it does.
fn group(rng: &mut Rng, data: u64, code: Code, rate: f64) -> (u64, u64) {
    (failed(rng, data, rate), failed(rng, code.redundant, rate))
}

#[test]
fn long_reads_take_as_long_as_drawn_ones() {
    let mut rng = Streams::new(8).stream("long reads");
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
        let mut of_bare = Streams::new(9).stream("bare");
        check_law("retries alone", &law, 20_000, || {
            bare() + read.retry_time * failed(&mut of_bare, sectors, rate)
        });
        let law = sequential::exact(read, code, &decode).unwrap();
        check_law(&format!("code {code}"), &law, 20_000, || {
            let mut time = bare();
            let mut left = sectors;
            while left > 0 {
                let data = left.min(code.data);
                left -= data;
                let (of_data, of_redundant) = group(&mut rng, data, code, rate);
                let failures = of_data + of_redundant;
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
    let mut rng = Streams::new(10).stream("random reads");
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
        check_law(&format!("depth {depth}, code {code}"), &law, 20_000, || {
            let one = |rng: &mut Rng| {
                let mine = failed(rng, sectors, rate);
                if mine == 0 {
                    return reads.sector_time * sectors + reads.seek_time;
                }
                let failures = mine + failed(rng, code.length() - sectors, rate);
                reads.sector_time * code.length()
                    + reads.seek_time
                    + decode.of(code, failures.min(code.redundant))
                    + reads.retry_time * failures.saturating_sub(code.redundant)
            };
            (0..depth).map(|_| one(&mut rng)).sum()
        });
        let law = random::without_code(reads);
        check_law("random, retries alone", &law, 20_000, || {
            reads.ideal() + reads.retry_time * failed(&mut rng, depth * sectors, rate)
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
