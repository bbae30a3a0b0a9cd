//! What a misbehaving drive does, on a small disk: every kind shows in its completions, at the rate of
//! its closed form and independently of who asks when.

use levelhead_block::{Command, Effort, Outcome, SectorSet, Silent};
use levelhead_drive::{CacheMode, Completion, Drive, Faults, Settings};
use levelhead_stats::Streams;
use levelhead_testkit::check_share;
use levelhead_testkit::profiles::Tiny;
use levelhead_units::{Extent, Instant, Lba, Nanos, Sectors};

use crate::support::{profile, read_with, write};

const TINY: Tiny =
    Tiny { write_settle: "3ms", seek: r#"[[1, "1.5ms"], [2, "4ms"], [9, "11ms"]]"#, cache: None };

const TURN: Nanos = Nanos::from_millis(10);

fn faults(text: &str) -> Faults {
    text.parse().unwrap()
}

fn named(text: &str, name: &str) -> Drive {
    let settings = Settings { faults: faults(text), ..Settings::PLAIN };
    Drive::new(profile(TINY), settings, Streams::new(1), name).unwrap()
}

fn drive(text: &str) -> Drive {
    named(text, "drive/0")
}

fn at(millis: u64) -> Instant {
    Instant::ZERO + Nanos::from_millis(millis)
}

/// Runs one command on an idle drive.
fn run(drive: &mut Drive, now: Instant, command: Command, origin: u64) -> Completion {
    drive.handle_submit(now, 7, command, origin);
    while let Some(deadline) = drive.deadline() {
        drive.handle_timeout(deadline);
    }
    let completion = drive.poll().unwrap();
    assert_eq!(drive.poll(), None);
    completion
}

/// Commands one at a time, ten a second for a hundred seconds.
fn lonely_run(text: &str) -> Vec<Completion> {
    let mut drive = drive(text);
    let command = |n: u64| match n % 3 {
        0 => write(n * 7 % 180, 5),
        _ => read_with(n * 7 % 180, 5, Effort::Full),
    };
    (0..1_000).map(|n| run(&mut drive, at(n * 1_000), command(n), n)).collect()
}

#[test]
fn every_kind_shows_in_what_the_drive_answers() {
    let good = lonely_run("none");
    for text in [
        "retry-rate=1%",
        "bursts=400KiB/40KiB/50%",
        "hard-rate=1%",
        "slowdown=1.1",
        "episodes=10s/90s/2",
        "periodic=100s/10s/2",
        "field=10s",
        "stalls=10s/1s",
        "lost-writes=1%",
        "torn-writes=1%",
        "misdirected-writes=3%",
        "flips=1%",
        "death=500s",
    ] {
        assert_ne!(lonely_run(text), good, "{text}");
        assert_eq!(lonely_run(text), lonely_run(text), "{text}");
    }
    // What changes another kind only.
    for (one, other) in [
        ("retry-rate=5%,rotations=3", "retry-rate=5%,rotations=geometric:3"),
        ("retry-rate=5%,rotations=3", "retry-rate=5%,rotations=uniform:1-5"),
        ("retry-rate=5%,rotations=3", "retry-rate=5%,rotations=1:50%+5:50%"),
        ("retry-rate=5%", "retry-rate=5%,adjacency=4"),
    ] {
        assert_ne!(lonely_run(one), lonely_run(other), "{other}");
    }
    // And a drive in good order does not care how long retries would take.
    assert_eq!(lonely_run("rotations=uniform:1-5"), good);
}

/// With every law: `r` revolutions more than the same read without, `r` by the law and the same for
/// the same origin; fast ends after the first pass, limited if and only if `r` fits.
#[test]
fn reads_are_right_at_every_effort_whatever_a_retry_takes() {
    for law in ["4", "uniform:1-9", "geometric:3", "1:50%+3:30%+20:20%"] {
        let text = format!("retry-rate=100%,rotations={law}");
        let (mut total, mut square, n) = (0.0, 0.0, 4_000_u64);
        let mut bad = drive(&text);
        let (mut good, mut other) = (drive("none"), drive(&text));
        for n in 0..n {
            let (now, lba) = (at(n * 1_000), n * 13 % 190);
            let ask = |drive: &mut Drive, effort| run(drive, now, read_with(lba, 3, effort), n);
            let plain = ask(&mut good, Effort::Full);
            let full = ask(&mut bad, Effort::Full);
            assert_eq!(full.outcome, Outcome::GOOD);
            assert_eq!(full.ended, plain.ended + TURN * full.retries.into(), "{law}");
            assert_eq!(full.service, plain.service + TURN * full.retries.into(), "{law}");
            total += f64::from(full.retries);
            square += f64::from(full.retries).powi(2);
            // Another drive object that met other commands before.
            let limit = TURN * (n % 7);
            let limited = ask(&mut other, Effort::Limited(limit));
            let fits = u64::from(full.retries) <= n % 7;
            let spent = if fits { full.retries } else { (n % 7) as u32 };
            let all = SectorSet::first(Sectors::new(3));
            let unknown = if fits { SectorSet::EMPTY } else { all.clone() };
            assert_eq!(limited.retries, spent, "{law}, limit {limit}");
            assert_eq!(limited.ended, plain.ended + TURN * spent.into());
            assert_eq!(limited.outcome, Outcome::Done { unknown, damaged: SectorSet::EMPTY });
        }
        let counters = bad.counters();
        assert_eq!((counters.retries, counters.rotations), (n, total as u64));
        assert_eq!(counters.retrying, TURN * total as u64);
        assert_eq!(bad.health(at(0)).retries, Some(n));
        let (mean, n) = (total / n as f64, n as f64);
        let error = ((square / n - mean * mean) / n).sqrt();
        let expected = faults(&text).rotations.mean();
        assert!((mean - expected).abs() <= 4.0 * error + 1e-9, "{law}: {mean}, law {expected}");
        let fast = run(&mut bad, at(9_000_000), read_with(0, 3, Effort::Fast), 1);
        let plain = run(&mut good, at(9_000_000), read_with(0, 3, Effort::Full), 1);
        assert_eq!((fast.ended, fast.retries), (plain.ended, 0));
    }
}

#[test]
fn a_slow_service_takes_the_factor_of_its_beginning() {
    for (millis, factor) in [(49_999, 1), (50_000, 3), (99_990, 3), (100_000, 1), (150_000, 3)] {
        let ask = |text: &str| run(&mut drive(text), at(millis), read_with(35, 4, Effort::Full), 1);
        let slow = ask("periodic=100s/50s/3/50s,retry-rate=100%,rotations=2");
        let usual = ask("retry-rate=100%,rotations=2");
        assert_eq!(slow.service, usual.service * factor, "at {millis} ms");
    }
    // The beginning of its service, not its arrival.
    let mut waits = drive("periodic=100s/50s/3/50s");
    waits.handle_submit(at(49_999), 1, Command::Flush, 1);
    (2..4).for_each(|id| waits.handle_submit(at(49_999), id, Command::Flush, id));
    waits.handle_timeout(at(60_000));
    let micros: Vec<u64> =
        std::iter::from_fn(|| waits.poll()).map(|done| done.service.get() / 1_000).collect();
    assert_eq!(micros, [500, 500, 1_500]);
}

#[test]
fn the_length_of_a_retry_belongs_to_the_request_and_its_first_failed_sector() {
    let text = "retry-rate=30%,rotations=uniform:1-1000";
    let retries = |lba: u64, sectors: u64, origin: u64| {
        run(&mut drive(text), at(0), read_with(lba, sectors, Effort::Full), origin).retries
    };
    let (mut compared, mut differing) = (0, 0);
    for origin in 0..200 {
        let unknown = run(&mut drive(text), at(0), read_with(50, 8, Effort::Fast), origin).outcome;
        let Outcome::Done { unknown, .. } = unknown else { panic!("it is alive") };
        let Some(first) = unknown.iter().next().map(u64::from) else { continue };
        let whole = retries(50, 8, origin);
        // Cut anywhere up to its first failure, longer or shorter, it is the same retry.
        assert_eq!(retries(50 + first, 8 - first, origin), whole);
        assert_eq!(retries(50 + first, 1, origin), whole);
        compared += 1;
        differing += u32::from(retries(50 + first, 100, origin + 1_000) != whole);
    }
    assert!(compared > 150 && differing > compared - 10, "{differing} of {compared}");
}

/// Seen from outside: how often a lone read is slow.
#[test]
fn episodes_and_the_field_slow_as_many_reads_as_their_laws_say() {
    let n = 20_000_u64;
    let slow = |text: &str, drive: u64, least: f64| {
        let name = format!("drive/{drive}");
        let ask =
            |text: &str| run(&mut named(text, &name), at(50_000), read_with(9, 1, Effort::Fast), 1);
        ask(text).service.get() as f64 >= least * ask("none").service.get() as f64 - 1.0
    };
    let text = "episodes=10s/30s/5";
    let law = faults(text).episodes.unwrap().share();
    let seen = (0..n).filter(|&drive| slow(text, drive, 5.0)).count() as u64;
    check_share("episodes", seen, n, law);
    let seen = (0..n).filter(|&drive| slow("field=1s", drive, 1.2)).count() as u64;
    check_share("the field", seen, n, 0.03);
}

#[test]
fn nothing_begins_and_nothing_is_answered_in_a_stall() {
    let text = "stalls=1s/300ms";
    let stalls = faults(text).stalls.unwrap();
    let (mut begun_late, mut begun_within, n) = (0, 0, 20_000_u64);
    for drive in 0..n {
        let name = format!("drive/{drive}");
        let (mut stalled, mut usual) = (named(text, &name), named("none", &name));
        let late = run(&mut stalled, at(50_000), read_with(9, 1, Effort::Full), 1);
        let plain = run(&mut usual, at(50_000), read_with(9, 1, Effort::Full), 1);
        assert!(late.ended >= plain.ended, "drive {drive}");
        // Either nothing was held up, or the answer waited for an end of a stall; a service that began
        // late was counted from there.
        begun_late += u64::from(late.ended > plain.ended);
        // An answer is outside of every stall: the next command at that time begins at once.
        let next = run(&mut stalled, late.ended, Command::Flush, 2);
        let held = next.ended - late.ended;
        let overhead = Nanos::from_micros(500);
        assert!(held == overhead || held >= Nanos::from_millis(300), "drive {drive}: {held}");
        // Nor did it begin in one, if no other one held its answer back.
        let began = Instant::ZERO + (late.ended - Instant::ZERO - late.service);
        let then = run(&mut named(text, &name), began, Command::Flush, 2);
        begun_within += u64::from(then.ended != began + overhead);
    }
    // Another stall begins within a service and an overhead of at most 25 ms.
    assert!(begun_within < n * 3 / 100, "{begun_within} of {n}");
    // Held up if a stall covers any moment from the submission to the end: 300 ms and the service, of
    // 0.5 to 20 ms, before the end.
    let least = stalls.share();
    let most = 1.0 - (-(300.0 + 25.0) / 1_000.0_f64).exp();
    let share = begun_late as f64 / n as f64;
    let error = 4.0 * (least / n as f64).sqrt();
    assert!((least - error..=most + error).contains(&share), "{least} <= {share} <= {most}");
}

/// The sectors of a write that did not reach the medium.
fn missing(silent: &Silent) -> SectorSet {
    match silent {
        Silent::Nothing => SectorSet::EMPTY,
        Silent::Write(wrong) => {
            assert_eq!((wrong.landed, wrong.flips.len()), (None, 0));
            wrong.missing.clone()
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn lost_and_torn_writes_look_good_and_say_what_is_missing_to_the_runtime_only() {
    let text = "lost-writes=10%,torn-writes=20%";
    let (mut bad, mut good) = (drive(text), drive("none"));
    let (n, mut lost, mut torn, mut sum) = (20_000_u64, 0, 0, 0);
    for origin in 0..n {
        let (now, command) = (at(origin * 100), write(origin * 7 % 190, 4));
        let answer = run(&mut bad, now, command, origin);
        let plain = run(&mut good, now, command, origin);
        assert_eq!((&answer.outcome, answer.ended), (&plain.outcome, plain.ended));
        assert_eq!(plain.silent, Silent::Nothing);
        let missing = missing(&answer.silent);
        assert!(missing.iter().eq(4 - missing.len() as u32..4), "the last ones");
        match missing.len() {
            0 => {}
            4 => lost += 1,
            _ => torn += 1,
        }
        sum += missing.len() as u64;
    }
    check_share("lost", lost, n, 0.1);
    check_share("torn", torn, n, 0.9 * 0.2);
    assert_eq!(bad.counters().silent.sectors_missing, sum);
    // A read is not concerned.
    assert!(
        (0..100).all(|n| run(&mut bad, at(9_000_000), read_with(n, 4, Effort::Full), n).silent
            == Silent::Nothing)
    );
}

#[test]
fn misdirected_writes_look_good_and_take_the_time_of_the_wanted_place() {
    let (mut bad, mut good) = (drive("misdirected-writes=10%"), drive("none"));
    let (n, mut stray) = (20_000_u64, 0);
    for origin in 0..n {
        let (now, first) = (at(origin * 100), origin * 7 % 190);
        let answer = run(&mut bad, now, write(first, 4), origin);
        let plain = run(&mut good, now, write(first, 4), origin);
        assert_eq!((&answer.outcome, answer.ended), (&plain.outcome, plain.ended));
        let Silent::Write(wrong) = &answer.silent else {
            assert_eq!(answer.silent, Silent::Nothing);
            continue;
        };
        assert!(wrong.missing.is_empty() && wrong.flips.is_empty());
        let lba = wrong.landed.unwrap();
        assert!(lba.get() + 4 <= 200 && lba.get().abs_diff(first) >= 4, "{lba:?} for {first}");
        stray += 1;
    }
    check_share("misdirected", stray, n, 0.1);
    assert_eq!(bad.counters().silent.writes_misdirected, stray);
}

#[test]
fn flips_are_the_same_in_every_read_until_the_sector_is_written() {
    let flips = |completion: Completion| match completion.silent {
        Silent::Nothing => Vec::new(),
        Silent::Read { flips } => flips,
        Silent::Write(wrong) => wrong.flips,
        Silent::Flush => panic!("no flush was asked for"),
    };
    let mut bad = drive("flips=10%");
    let all = |effort| read_with(0, 200, effort);
    let at_rest = flips(run(&mut bad, at(0), all(Effort::Full), 1));
    assert_eq!(at_rest, flips(run(&mut bad, at(9_000), all(Effort::Fast), 2)));
    check_share("at rest", at_rest.len() as u64, 200, 0.1);
    // What is stored flipped is so on the medium: a read of it has nothing to tell.
    let n = 2_000;
    let stored: usize = (0..n)
        .map(|n| flips(run(&mut bad, at(20_000 + n * 100), write(50, 10), 3 + n)).len())
        .sum();
    check_share("stored", stored as u64, n * 10, 0.1);
    let left = flips(run(&mut bad, at(900_000), all(Effort::Full), 1));
    let untouched = at_rest.iter().filter(|flip| !(50..60).contains(&flip.offset));
    assert!(left.iter().eq(untouched) && left.len() < at_rest.len());
    let sum = (2 * at_rest.len() + left.len() + stored) as u64;
    assert_eq!(bad.counters().silent.sectors_flipped, sum);
}

#[test]
fn a_lying_flush_ends_at_once_and_leaves_the_memory_as_it_was() {
    let cache = Some(
        r#"
            segments = 2
            segment_blocks = 20
            read_ahead_blocks = 8
            write_blocks = 40
            write_delay = "100s"
            flush_overhead = "7ms"
        "#,
    );
    let profile = profile(Tiny { cache, ..TINY });
    let flushed = |text: &str| {
        let settings =
            Settings { cache: CacheMode::WriteBack, faults: faults(text), ..Settings::PLAIN };
        let streams = Streams::new(1);
        let mut drive = Drive::new(profile.clone(), settings, streams, "drive/0").unwrap();
        let written = run(&mut drive, at(0), write(50, 4), 1).ended;
        let flush = run(&mut drive, written, Command::Flush, 2);
        assert!(flush.outcome.is_good());
        let unwritten = drive.handle_power_cut(flush.ended);
        (flush.silent, flush.ended - written, unwritten, drive.counters().silent.flushes_lying)
    };
    let (silent, time, unwritten, lying) = flushed("none");
    assert_eq!((silent, unwritten, lying), (Silent::Nothing, vec![], 0));
    assert!(time > Nanos::from_millis(7), "{time}");
    let (silent, time, unwritten, lying) = flushed("lying-flush=100%");
    let waiting = vec![Extent::new(Lba::new(50), Sectors::new(4))];
    assert_eq!((silent, unwritten, lying), (Silent::Flush, waiting, 1));
    assert_eq!(time, Nanos::from_micros(500), "the overhead of a command");
}

#[test]
fn a_write_mends_what_it_stored_where_it_stored_it() {
    let damaged =
        |drive: &mut Drive| match run(drive, at(0), read_with(0, 200, Effort::Full), 1).outcome {
            Outcome::Done { damaged, .. } => damaged,
            other => panic!("{other:?}"),
        };
    let all_but = |mended: std::ops::Range<u32>| {
        (0..200).filter(|at| !mended.contains(at)).collect::<SectorSet>()
    };
    let mut lossy = drive("hard-rate=100%,lost-writes=100%");
    run(&mut lossy, at(0), write(20, 4), 5);
    assert_eq!(damaged(&mut lossy).len(), 200);
    let mut tearing = drive("hard-rate=100%,torn-writes=100%");
    let missing = missing(&run(&mut tearing, at(0), write(20, 4), 5).silent);
    assert!(!missing.is_empty() && missing.len() < 4);
    assert_eq!(damaged(&mut tearing), all_but(20..24 - missing.len() as u32));
    let mut straying = drive("hard-rate=100%,misdirected-writes=100%");
    let silent = run(&mut straying, at(0), write(20, 4), 5).silent;
    let Silent::Write(wrong) = silent else { panic!("{silent:?}") };
    let first = wrong.landed.unwrap().get() as u32;
    assert_eq!(damaged(&mut straying), all_but(first..first + 4));
}

#[test]
fn a_drive_dies_at_its_time_whoever_looks_when() {
    // Twenty commands wait when it dies; the looks come on time, late, or much later.
    let ends = |looks: &[u64]| {
        let mut drive = drive("death=100ms");
        (0..20).for_each(|n| drive.handle_submit(at(n), n, read_with(n * 9, 2, Effort::Full), n));
        looks.iter().for_each(|&millis| drive.handle_timeout(at(millis)));
        let next = at(*looks.last().unwrap());
        drive.handle_submit(next, 99, Command::Flush, 99);
        assert_eq!((drive.deadline(), drive.queue_len()), (None, 0));
        let mut ends: Vec<Completion> = std::iter::from_fn(|| drive.poll()).collect();
        let last = ends.pop().unwrap();
        assert_eq!((last.id, last.outcome, last.ended), (99, Outcome::Gone, next));
        ends
    };
    let ended = ends(&[200]);
    assert_eq!(ended, ends(&[30, 60, 99, 100, 300]));
    assert_eq!(ended.len(), 20);
    let gone = ended.iter().filter(|done| done.outcome == Outcome::Gone).count();
    assert!((1..19).contains(&gone), "{gone} of 20");
    for done in &ended {
        match done.outcome {
            Outcome::Gone => assert_eq!(done.ended, at(100)),
            _ => assert!(done.ended <= at(100), "{done:?}"),
        }
    }
}

#[test]
fn death_is_in_time_for_a_busy_drive() {
    let mut drive = drive("death=3ms");
    drive.handle_submit(at(0), 1, read_with(190, 8, Effort::Full), 1);
    assert_eq!(drive.deadline(), Some(at(3)));
    drive.handle_timeout(at(3));
    let done = drive.poll().unwrap();
    assert_eq!((done.outcome, done.ended), (Outcome::Gone, at(3)));
}

#[test]
fn new_faults_leave_the_queue_the_account_and_the_mended_sectors_alone() {
    let mut drive = drive("hard-rate=50%");
    run(&mut drive, at(0), write(0, 200), 1);
    let mended = run(&mut drive, at(2_000), read_with(0, 200, Effort::Full), 2);
    assert_eq!(mended.outcome, Outcome::GOOD);
    for id in 0..4 {
        drive.handle_submit(at(4_000), id, read_with(id * 40, 2, Effort::Full), 10 + id);
    }
    let first_end = drive.deadline().unwrap();
    let before = drive.counters();
    drive.set_faults(at(4_001), faults("retry-rate=100%,rotations=2,hard-rate=50%")).unwrap();
    assert_eq!((drive.queue_len(), drive.counters()), (4, before));
    assert_eq!(drive.deadline(), Some(first_end), "the end of what is in service was determined");
    drive.handle_timeout(at(9_000));
    let ends: Vec<Completion> = std::iter::from_fn(|| drive.poll()).collect();
    let retries: Vec<u32> = ends.iter().map(|done| done.retries).collect();
    assert_eq!(retries, [0, 2, 2, 2], "the others begin under the new faults");
    assert!(ends.iter().all(|done| done.outcome == Outcome::GOOD), "mended is mended");
    assert_eq!(drive.health(at(9_000)).commands, Some(6));
    assert!(drive.set_faults(at(9_000), Faults { slowdown: 0.0, ..Faults::NONE }).is_err());
    // Death that has passed is now, and nothing undoes it.
    drive.set_faults(at(10_000), faults("death=1s")).unwrap();
    drive.handle_submit(at(10_000), 7, Command::Flush, 7);
    let gone = drive.poll().unwrap();
    assert_eq!((gone.outcome, gone.ended), (Outcome::Gone, at(10_000)));
    drive.set_faults(at(11_000), Faults::NONE).unwrap();
    drive.handle_submit(at(11_000), 8, Command::Flush, 8);
    assert_eq!(drive.poll().unwrap().outcome, Outcome::Gone);
}

/// A random run with every fault at once: looked at whenever something ends, or only now and then.
fn random_run(seed: u64, is_prompt: bool) -> Vec<Completion> {
    const TEXT: &str = "retry-rate=5%,adjacency=2,bursts=256KiB/geometric:32KiB/50%,\
                        rotations=geometric:3,hard-rate=2%,episodes=1s/2s/3,periodic=3s/500ms/2,\
                        field=1s,stalls=1s/100ms,lost-writes=5%,torn-writes=5%,\
                        misdirected-writes=5%,flips=2%,lying-flush=20%,death=20s";
    let mut rng = Streams::new(seed).stream("commands");
    let mut drive = named(TEXT, &format!("drive/{seed}"));
    let (mut now, mut ends) = (Instant::ZERO, Vec::new());
    for id in 0..150 {
        now = now + rng.exponential(Nanos::from_millis(150));
        let (lba, sectors) = (rng.below(180), 1 + rng.below(19));
        let command = match rng.below(6) {
            0 => Command::Flush,
            1 | 2 => write(lba, sectors),
            3 => read_with(lba, sectors, Effort::Fast),
            4 => read_with(lba, sectors, Effort::Limited(Nanos::from_millis(rng.below(60)))),
            _ => read_with(lba, sectors, Effort::Full),
        };
        while let Some(deadline) = drive.deadline().filter(|&at| is_prompt && at <= now) {
            drive.handle_timeout(deadline);
        }
        drive.handle_timeout(now);
        if drive.has_room() {
            drive.handle_submit(now, id, command, id);
        }
        ends.extend(std::iter::from_fn(|| drive.poll()));
    }
    drive.handle_timeout(at(1_000_000));
    ends.extend(std::iter::from_fn(|| drive.poll()));
    assert_eq!((drive.queue_len(), drive.deadline()), (0, None));
    ends
}

#[test]
fn every_fault_at_once_is_the_same_whoever_looks_when() {
    let mut gone = 0;
    for seed in 0..100 {
        let ends = random_run(seed, true);
        assert_eq!(ends, random_run(seed, false), "seed {seed}");
        assert!(ends.is_sorted_by_key(|done| done.ended), "seed {seed}");
        let mut ids: Vec<u64> = ends.iter().map(|done| done.id).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), ends.len(), "seed {seed}: an answer each");
        gone += ends.iter().filter(|done| done.outcome == Outcome::Gone).count();
    }
    assert!(gone > 100, "{gone}");
}
