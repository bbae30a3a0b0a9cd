//! Sectors that end in zeroes: they fail less, as long as the medium has them.

use levelhead_block::{
    Command, Durability, Effort, Outcome, SectorSet, Silent, SilentWrite, ZeroTail,
};
use levelhead_drive::{CacheMode, Completion, Drive, Faults, Profile, Settings};
use levelhead_stats::Streams;
use levelhead_testkit::extent;
use levelhead_units::{Extent, Instant, Nanos, Sectors};

use crate::support;

/// Sectors fail unless the drive knows of zeroes at their ends.
const TELLS: &str = "retry-rate=100%,zero-tails=0%/0%";

fn drive(settings: Settings, faults: &str) -> Drive {
    let faults: Faults = faults.parse().unwrap();
    let profile = Profile::shipped("nearline-2tb").unwrap();
    let size = Some(Sectors::new(20_000));
    Drive::new(profile, Settings { faults, size, ..settings }, Streams::new(1), "drive/0").unwrap()
}

fn plain(faults: &str) -> Drive {
    drive(Settings::PLAIN, faults)
}

/// Runs one command that comes when the drive holds no other.
fn run(drive: &mut Drive, command: Command, origin: u64) -> Completion {
    // Long after whatever has happened before.
    let now = Instant::ZERO + Nanos::from_secs(origin);
    support::run(drive, now, origin, command)
}

fn write(drive: &mut Drive, extent: Extent, zero_tail: ZeroTail, origin: u64) -> Silent {
    let command = Command::Write { extent, durability: Durability::Cached, zero_tail };
    run(drive, command, origin).silent
}

fn unread(drive: &mut Drive, extent: Extent, origin: u64) -> SectorSet {
    let command = Command::Read { extent, effort: Effort::Fast };
    match run(drive, command, origin).outcome {
        Outcome::Done { unknown, .. } => unknown,
        other => panic!("{other:?}"),
    }
}

/// The first `sectors` of a drive that tells: those that have zeroes at their ends.
fn told(drive: &mut Drive, sectors: u64, origin: u64) -> Vec<bool> {
    let unread = unread(drive, extent(0, sectors), origin);
    (0..sectors as u32).map(|at| !unread.contains(at)).collect()
}

/// Four standard errors around each rate, for the same reads of four stretches of one drive.
#[test]
fn sectors_fail_at_the_rate_that_their_zeroes_leave() {
    for (faults, rates) in [
        ("retry-rate=20%", [0.2, 0.2 * 0.2 * 0.2, 0.2 * 0.008 * 0.008]),
        ("retry-rate=20%,adjacency=2", [0.2, 0.2 * 0.2 * 0.2, 0.2 * 0.008 * 0.008]),
        ("retry-rate=2%,zero-tails=1%/0.1%", [0.02, 0.01, 0.001]),
    ] {
        let mut drive = plain(faults);
        let tails = [ZeroTail::None, ZeroTail::B256, ZeroTail::B512];
        for (at, tail) in (0..).zip(tails) {
            write(&mut drive, extent(at * 2_000, 2_000), tail, 1 + at);
        }
        let mut failed = [0_u64; 4];
        let n = 40;
        for origin in 10..10 + n {
            for (at, failed) in (0..).zip(&mut failed) {
                *failed += unread(&mut drive, extent(at * 2_000, 2_000), origin).len() as u64;
            }
        }
        let of = (n * 2_000) as f64;
        // The last stretch was never written.
        for (seen, law) in failed.into_iter().zip([rates[0], rates[1], rates[2], rates[0]]) {
            // Failures that come in pairs spread more widely.
            let error = (2.0 * law * (1.0 - law) / of).sqrt();
            let share = seen as f64 / of;
            assert!((share - law).abs() <= 4.0 * error + 1.0 / of, "{faults}: {share}, law {law}");
        }
    }
}

#[test]
fn the_same_reads_of_a_drive_that_knows_of_zeroes_fail_in_fewer_of_the_same_sectors() {
    let all = extent(0, 5_000);
    let mut drives = [ZeroTail::None, ZeroTail::B256].map(|tail| {
        let mut drive = plain("retry-rate=30%");
        write(&mut drive, all, tail, 1);
        drive
    });
    for origin in 2..12 {
        let [none, some] = drives.each_mut().map(|drive| unread(drive, all, origin));
        assert!(some.len() > 20 && some.len() * 4 < none.len(), "{} {}", some.len(), none.len());
        assert!(some.iter().all(|at| none.contains(at)));
    }
}

#[test]
fn zeroes_are_forgotten_sector_by_sector_when_others_are_written() {
    let mut drive = plain(TELLS);
    let mut expected = vec![false; 12];
    assert_eq!(told(&mut drive, 12, 1), expected);
    for (origin, (first, end, tail)) in (2..).step_by(2).zip([
        (0, 8, ZeroTail::B256),
        (2, 3, ZeroTail::None),
        (4, 10, ZeroTail::B512),
        (6, 7, ZeroTail::None),
        (2, 4, ZeroTail::B256),
    ]) {
        write(&mut drive, extent(first, end - first), tail, origin);
        expected[first as usize..end as usize].fill(tail != ZeroTail::None);
        assert_eq!(told(&mut drive, 12, origin + 1), expected);
    }
    // Trimming changes nothing, zeroes are zeroes, and faults change what follows from them alone.
    let (durability, place) = (Durability::Cached, extent(6, 1));
    run(&mut drive, Command::Trim { extent: extent(0, 12) }, 20);
    assert_eq!(told(&mut drive, 12, 21), expected);
    run(&mut drive, Command::WriteZeroes { extent: place, durability }, 22);
    expected[6] = true;
    assert_eq!(told(&mut drive, 12, 23), expected);
    let mut faults: Faults = TELLS.parse().unwrap();
    faults.zero_tails = None;
    drive.set_faults(Instant::ZERO + Nanos::from_secs(30), faults).unwrap();
    assert_ne!(told(&mut drive, 12, 31), expected);
    drive.set_faults(Instant::ZERO + Nanos::from_secs(40), TELLS.parse().unwrap()).unwrap();
    assert_eq!(told(&mut drive, 12, 41), expected);
}

/// A hard failure is the medium's, too: what is written is mended, and a rate that rises later counts as what it
/// leaves.
#[test]
fn zeroes_leave_less_of_a_hard_failure_rate_that_rises_later() {
    let mut drive = plain("none");
    write(&mut drive, extent(0, 10_000), ZeroTail::B256, 1);
    let hard = |rate: f64| format!("hard-rate={}%", rate * 100.0).parse::<Faults>().unwrap();
    drive.set_faults(Instant::ZERO + Nanos::from_secs(2), hard(0.3)).unwrap();
    for (first, law) in [(0, 0.2 * 0.3 * 0.3), (10_000, 0.3)] {
        let failed = unread(&mut drive, extent(first, 10_000), 3 + first).len() as f64;
        let error = (law * (1.0 - law) * 1e4_f64).sqrt();
        assert!((failed - law * 1e4).abs() <= 4.0 * error, "{failed}, law {law}");
    }
}

#[test]
fn writes_that_are_lost_torn_or_misdirected_leave_the_zeroes_that_the_medium_has() {
    const SIZE: u64 = 64;
    let mut drive = {
        let faults = format!("{TELLS},lost-writes=20%,torn-writes=30%,misdirected-writes=30%");
        let settings = Settings {
            faults: faults.parse().unwrap(),
            size: Some(Sectors::new(SIZE)),
            ..Settings::PLAIN
        };
        let profile = Profile::shipped("nearline-2tb").unwrap();
        Drive::new(profile, settings, Streams::new(1), "drive/0").unwrap()
    };
    let mut expected = vec![false; SIZE as usize];
    let mut rng = Streams::new(4).stream("writes");
    let [mut lost, mut torn, mut stray] = [0; 3];
    for origin in (1..1_200).step_by(2) {
        let place = extent(rng.below(SIZE - 8), 1 + rng.below(8));
        let tail = [ZeroTail::None, ZeroTail::B256, ZeroTail::B512][rng.below(3) as usize];
        let silent = write(&mut drive, place, tail, origin);
        let (mut at, mut sectors) = (place.lba, place.sectors.get());
        if let Silent::Write(wrong) = silent {
            let SilentWrite { missing, landed, .. } = *wrong;
            sectors -= missing.len() as u64;
            at = landed.unwrap_or(at);
            lost += u32::from(sectors == 0);
            torn += u32::from(!missing.is_empty() && sectors > 0);
            stray += u32::from(landed.is_some());
        }
        let first = at.get() as usize;
        expected[first..first + sectors as usize].fill(tail != ZeroTail::None);
        assert_eq!(told(&mut drive, SIZE, origin + 1), expected, "write {origin}");
    }
    assert!(lost.min(torn).min(stray) > 50, "{lost} {torn} {stray}");
}

/// The drive as it is after the writes of `script`, a cut of power at a time after the last of them, and nothing else.
fn after_a_cut(script: &[(Extent, ZeroTail, Durability)], wait: Nanos) -> (Vec<bool>, usize) {
    let settings = Settings { cache: CacheMode::WriteBack, ..Settings::PLAIN };
    let mut drive = drive(settings, TELLS);
    let mut now = Instant::ZERO;
    for (origin, &(extent, zero_tail, durability)) in (1..).zip(script) {
        now =
            support::run(&mut drive, now, origin, Command::Write { extent, durability, zero_tail })
                .ended;
    }
    let lost = drive.handle_power_cut(now + wait);
    while drive.poll().is_some() {}
    // A thousand seconds on.
    (told(&mut drive, 12, 1_000), lost.len())
}

/// The medium remembers, and what was in memory only is as if it had not been written.
#[test]
fn a_cut_of_power_takes_the_zeroes_of_the_writes_that_it_loses() {
    let (none, some) = (ZeroTail::None, ZeroTail::B256);
    let (cached, durable) = (Durability::Cached, Durability::Durable);
    let zeroes =
        |from: usize, to: usize| (0..12).map(|at| (from..to).contains(&at)).collect::<Vec<bool>>();
    let at_once = Nanos::ZERO;
    let (whole, part) = (extent(0, 12), extent(4, 4));
    for (script, kept, lost) in [
        (vec![(whole, some, durable)], zeroes(0, 12), 0),
        (vec![(whole, some, cached)], zeroes(0, 0), 1),
        (vec![(whole, some, durable), (whole, none, cached)], zeroes(0, 12), 1),
        (vec![(part, some, durable), (whole, some, cached)], zeroes(4, 8), 1),
        (vec![(whole, some, cached), (part, some, cached)], zeroes(0, 0), 1),
        (
            vec![(whole, some, durable), (whole, none, cached), (part, none, cached)],
            zeroes(0, 12),
            1,
        ),
        // The second write of a place takes the place of the first, which the medium never had.
        (vec![(part, some, cached), (part, none, cached)], zeroes(0, 0), 1),
        (vec![(part, some, cached), (whole, none, durable)], zeroes(0, 0), 0),
    ] {
        assert_eq!(after_a_cut(&script, at_once), (kept, lost), "{script:?}");
    }
    // Given time, the drive brings everything to the medium: the last write counts.
    let script = [(whole, some, durable), (part, none, cached)];
    let kept: Vec<bool> = (0..12).map(|at| !(4..8).contains(&at)).collect();
    assert_eq!(after_a_cut(&script, Nanos::from_secs(10)), (kept, 0));
    assert_eq!(after_a_cut(&script, at_once), (zeroes(0, 12), 1));
}

/// A repair is the write that it repairs, zeroes included.
#[test]
fn a_lost_write_that_the_drive_repairs_has_its_zeroes_then() {
    for how in ["raw", "idle"] {
        let mut settings = Settings { cache: CacheMode::Read, ..Settings::PLAIN };
        settings.verify.set("verify", how).unwrap();
        let mut drive = drive(settings, &format!("{TELLS},lost-writes=30%"));
        let mut lost = 0;
        for at in 0..60 {
            let silent = write(&mut drive, extent(at * 4, 4), ZeroTail::B512, 1 + at);
            lost += u32::from(silent != Silent::Nothing);
        }
        drive.settle(Instant::ZERO + Nanos::from_secs(100));
        while drive.poll().is_some() || drive.poll_aftermath().is_some() {}
        let counters = drive.counters().verify;
        let kept = told(&mut drive, 240, 200).iter().filter(|told| **told).count() as u64;
        assert_eq!(kept, 240 - 4 * counters.unmended, "{how}: {counters:?}");
        assert!(lost > 8 && counters.mended > 8, "{how}: {lost} {counters:?}");
    }
}
