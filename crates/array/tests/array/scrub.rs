//! What drives do to their bytes without a word, and what a scrub makes of it.

use levelhead_array::{
    ArrayEvent, Blame, Budget, Cell, Fault, Patience, Policy, Row, ScrubState, Settings, Spec,
    Submit,
};
use levelhead_block::{BlockDevice, Memory};
use levelhead_stats::{Rng, Streams};
use levelhead_units::{DriveIdx, DriveSet, Extent, Lba, Nanos, Sectors};

use crate::runtime::{Runtime, extent, journaled, settings};

/// What is done to a stripe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Harm {
    None,
    /// Bits of one sector are flipped.
    Flip,
    /// A drive has lost its write: all of its sectors are as they were before.
    LostWrite,
    /// It was written where the next stripe lies, which has lost its own.
    Misdirected,
    /// A drive does not give a sector.
    Unreadable,
    /// Bits of two drives are flipped.
    TwoDrives,
    /// One drive does not give a sector, and bits of another are flipped.
    UnreadableAndFlip,
}

impl Harm {
    const ALL: [Self; 7] = [
        Self::None,
        Self::Flip,
        Self::LostWrite,
        Self::Misdirected,
        Self::Unreadable,
        Self::TwoDrives,
        Self::UnreadableAndFlip,
    ];

    /// Whether two redundant drives say what is right.
    fn is_located(self) -> bool {
        match self {
            Self::None | Self::Flip | Self::LostWrite | Self::Misdirected | Self::Unreadable => {
                true
            }
            Self::TwoDrives | Self::UnreadableAndFlip => false,
        }
    }
}

pub(crate) const SMALL: Budget = Budget {
    step: Sectors::new(64),
    memory: Sectors::new(1 << 10),
    pause: Nanos::from_millis(20),
    mark: Nanos::from_secs(30),
};

/// Arrays whose stripes have one codeword.
fn start(text: &str, stripes: u64, seed: u64) -> Runtime {
    start_with(SMALL, text, stripes, seed)
}

fn start_with(budget: Budget, text: &str, stripes: u64, seed: u64) -> Runtime {
    let spec: Spec = text.parse().unwrap();
    let start = settings(spec, stripes, Policy::Normal, DriveSet::EMPTY);
    Runtime::new(&Settings { background: Some(budget), ..start }, seed)
}

fn fill(run: &mut Runtime, bytes: &[u8]) {
    run.write(1, extent(0, run.array.size().get()), bytes);
    run.run_until_quiet();
    assert!(run.take(1).unwrap().0.outcome.is_good());
}

fn all_of(drive: &Memory) -> Vec<u8> {
    drive.bytes(Extent::new(Lba::ZERO, drive.size())).to_vec()
}

/// A stripe's sectors of one drive.
fn chunk(run: &Runtime, stripe: u64) -> Extent {
    let chunk = run.array.layout().spec().chunk();
    Extent::new(Lba::new(stripe * chunk.get()), chunk)
}

fn flip(run: &mut Runtime, rng: &mut Rng, drive: usize, stripe: u64) {
    let chunk = chunk(run, stripe);
    let at = Lba::new(chunk.lba.get() + rng.below(chunk.sectors.get()));
    let bytes = run.drives[drive].bytes_mut(Extent::new(at, Sectors::new(1)));
    for _ in 0..=rng.below(3) {
        bytes[rng.below(4096) as usize] ^= 1 + rng.below(255) as u8;
    }
}

/// Content, and the same changed everywhere: in half of the stripes every sector of the stripe by the same bytes.
fn contents(run: &Runtime, rng: &mut Rng) -> [Vec<u8>; 2] {
    let layout = run.array.layout();
    let mut old = vec![0; layout.size().bytes().get() as usize];
    rng.fill(&mut old);
    let mut new = old.clone();
    let width = layout.data_symbols() * 4096;
    for stripe in new.chunks_mut(width) {
        if rng.below(2) == 0 {
            rng.fill(stripe);
            continue;
        }
        let mut change = vec![0; 4096];
        rng.fill(&mut change);
        for sector in stripe.chunks_mut(4096) {
            sector.iter_mut().zip(&change).for_each(|(byte, &change)| *byte ^= change);
        }
    }
    [old, new]
}

/// Does all kinds of harm to an array with two redundant drives, and has it scrubbed.
fn check(text: &str, stripes: u64, seed: u64, blame: Blame) {
    let mut rng = Streams::new(seed).stream("scrub");
    let mut run = start(text, stripes, seed);
    let [old, new] = contents(&run, &mut rng);
    fill(&mut run, &old);
    let before: Vec<Vec<u8>> = run.drives.iter().map(all_of).collect();
    fill(&mut run, &new);
    let right: Vec<Vec<u8>> = run.drives.iter().map(all_of).collect();
    let drives = run.drives.len() as u64;
    let bytes_of = |extent: Extent| {
        let start = extent.lba.get() as usize * 4096;
        start..start + extent.sectors.get() as usize * 4096
    };
    let mut harms = vec![Harm::None; stripes as usize];
    let mut stripe = 0;
    while stripe < stripes {
        let mut harm = Harm::ALL[rng.below(7) as usize];
        if stripe + 1 == stripes && harm == Harm::Misdirected {
            harm = Harm::None;
        }
        harms[stripe as usize] = harm;
        let [one, other] = {
            let one = rng.below(drives);
            [one as usize, ((one + 1 + rng.below(drives - 1)) % drives) as usize]
        };
        let place = chunk(&run, stripe);
        match harm {
            Harm::None => {}
            Harm::Flip => flip(&mut run, &mut rng, one, stripe),
            Harm::LostWrite => {
                run.drives[one].bytes_mut(place).copy_from_slice(&before[one][bytes_of(place)]);
            }
            Harm::Misdirected => {
                let astray = chunk(&run, stripe + 1);
                let drive = &mut run.drives[one];
                drive.bytes_mut(place).copy_from_slice(&before[one][bytes_of(place)]);
                drive.bytes_mut(astray).copy_from_slice(&right[one][bytes_of(place)]);
                stripe += 1;
                harms[stripe as usize] = harm;
            }
            Harm::Unreadable | Harm::UnreadableAndFlip => {
                let at = Lba::new(place.lba.get() + rng.below(place.sectors.get()));
                run.bad.insert((DriveIdx::from_usize(one), at));
                if harm == Harm::UnreadableAndFlip {
                    flip(&mut run, &mut rng, other, stripe);
                }
            }
            Harm::TwoDrives => {
                flip(&mut run, &mut rng, one, stripe);
                flip(&mut run, &mut rng, other, stripe);
            }
        }
        stripe += 1;
    }
    let harmed: Vec<Vec<u8>> = run.drives.iter().map(all_of).collect();
    let bad = run.bad.clone();
    let done = run.scrub(blame);
    assert_eq!((done.state, done.to), (ScrubState::Done, stripes), "{text}, seed {seed}");
    let mut unlocated = Vec::new();
    for event in &run.array_events {
        if let ArrayEvent::Unlocated { stripe, first_sector, sectors } = event {
            let chunk = chunk(&run, 0).sectors.get();
            assert_eq!(first_sector / chunk, *stripe, "{text}, seed {seed}");
            unlocated.extend(*stripe..(first_sector + sectors).div_ceil(chunk));
        }
    }
    let (mut wrong, mut unreadable) = (0, 0);
    for (stripe, &harm) in (0..).zip(&harms) {
        let place = chunk(&run, stripe);
        for drive in 0..run.drives.len() {
            let is = run.drives[drive].bytes(place);
            let range = bytes_of(place);
            if !harm.is_located() {
                assert_eq!(is, &harmed[drive][range], "{text}, {seed}: {harm:?} {stripe}: changed");
                continue;
            }
            assert!(is == &right[drive][range.clone()], "{text}, {seed}: {harm:?} {stripe}: wrong");
            let sectors =
                harmed[drive][range.clone()].chunks(4096).zip(right[drive][range].chunks(4096));
            let harmed: Vec<u64> =
                (0..).zip(sectors).filter(|(_, (was, is))| was != is).map(|(at, _)| at).collect();
            wrong += harmed.len() as u64;
            for at in harmed {
                let lba = place.lba.get() + at;
                let names_it = |event: &ArrayEvent| match event {
                    ArrayEvent::Repaired { drive: named, extent, fault, is_repaired } => {
                        let is_there = extent.lba.get() <= lba && lba < extent.end().get();
                        let is_right = *fault == Fault::Wrong && *is_repaired;
                        named.as_usize() == drive && is_there && is_right
                    }
                    _ => false,
                };
                assert!(
                    run.array_events.iter().any(names_it),
                    "{stripe}, drive {drive}: not named"
                );
            }
        }
        unreadable += u64::from(harm == Harm::Unreadable);
        assert_eq!(unlocated.contains(&stripe), !harm.is_located(), "{text}, {seed}: {harm:?}");
    }
    assert_eq!((done.found.wrong, done.found.unreadable), (wrong, unreadable), "{text}, {seed}");
    let beyond = harms.iter().filter(|harm| !harm.is_located()).count() as u64;
    assert_eq!((done.found.unlocated, done.found.unrepaired), (beyond, 0), "{text}, {seed}");
    let left = bad.len() as u64 - unreadable;
    assert_eq!(run.bad.len() as u64, left, "what was repaired is readable");
    assert!(run.buffers.is_empty() && run.array.is_quiet());
}

const SHAPES: [&str; 5] = [
    "eraid:4+2,e=2,chunk=8KiB",
    "raid6:4+2,chunk=4KiB",
    "eraid:3+2,e=4,chunk=16KiB",
    "raid6:2+2,chunk=4KiB,parity=fixed",
    "eraid:4+3,e=2,chunk=8KiB",
];

fn check_all(rounds: u64) {
    for seed in 0..rounds {
        for text in &SHAPES[..4] {
            check(text, 100, seed, Blame::Drives);
        }
    }
}

#[test]
fn what_two_redundant_drives_locate_is_repaired_and_named_and_the_rest_is_told() {
    check_all(5);
}

/// 10^5 stripes.
#[test]
#[ignore = "100,000 stripes: cargo xtask soak corruption"]
fn soak_of_silent_corruption_repairs_nothing_wrongly() {
    check_all(250);
}

/// Both sectors of a drive change alike, and the write is lost: by sectors that looks like one wrong redundant sector
/// where two are redundant, and writing that one anew seals the loss.
#[test]
fn lost_write_whose_sectors_change_alike_is_blamed_on_its_drive_or_on_none() {
    let run_with = |text, blame| {
        let mut run = start(text, 1, 1);
        let size = run.array.size().bytes().get() as usize;
        fill(&mut run, &vec![3; size]);
        let before = all_of(&run.drives[1]);
        fill(&mut run, &vec![5; size]);
        let right: Vec<Vec<u8>> = run.drives.iter().map(all_of).collect();
        run.drives[1].bytes_mut(extent(0, 2)).copy_from_slice(&before);
        let first = run.scrub(blame).found;
        let is: Vec<Vec<u8>> = run.drives.iter().map(all_of).collect();
        let second = run.scrub(Blame::Drives).found;
        (is == right, first.wrong, second.wrong + second.unlocated)
    };
    let (one, two) = ("eraid:5+1,e=2,chunk=8KiB", "eraid:4+2,e=2,chunk=8KiB");
    assert_eq!(run_with(two, Blame::Drives), (true, 2, 0));
    assert_eq!(run_with(one, Blame::Drives), (false, 0, 1), "told, again and again");
    assert_eq!(run_with(one, Blame::Sectors), (false, 1, 0), "the canary: nothing tells of it");
}

/// Two sectors of one drive are never one wrong sector.
#[test]
#[should_panic(expected = "wrong")]
fn sectors_instead_of_drives_are_blamed_wrongly() {
    for seed in 0..5 {
        check(SHAPES[0], 100, seed, Blame::Sectors);
    }
}

#[test]
fn with_one_redundant_drive_a_mismatch_is_told_and_nothing_is_changed() {
    for text in ["raid5:3+1,chunk=4KiB", "eraid:3+1,e=2,chunk=8KiB", "raid1:2,chunk=4KiB"] {
        let mut run = start(text, 8, 1);
        let mut rng = Streams::new(1).stream("scrub");
        let [content, _] = contents(&run, &mut rng);
        fill(&mut run, &content);
        flip(&mut run, &mut rng, 1, 5);
        let before: Vec<Vec<u8>> = run.drives.iter().map(all_of).collect();
        let done = run.scrub(Blame::Drives);
        assert_eq!((done.found.unlocated, done.found.wrong), (1, 0), "{text}");
        assert_eq!(run.drives.iter().map(all_of).collect::<Vec<_>>(), before, "{text}");
        let is_told = |event: &ArrayEvent| matches!(event, ArrayEvent::Unlocated { stripe: 5, .. });
        assert!(run.array_events.iter().any(is_told), "{text}");
    }
}

/// Overwrites these stripes' chunks of drive 1 with noise, and has all scrubbed. Returns the runs of sectors that are reported.
fn overwrite_and_scrub(run: &mut Runtime, stripes: impl Iterator<Item = u64>) -> Vec<Extent> {
    let mut rng = Streams::new(1).stream("scrub");
    let [content, _] = contents(run, &mut rng);
    fill(run, &content);
    for stripe in stripes {
        let place = chunk(run, stripe);
        rng.fill(run.drives[1].bytes_mut(place));
    }
    // A client waits all the time, so that the scrub pauses between its steps.
    let last = run.array.size().get() - 1;
    run.read(9, extent(last, 1));
    let held = run.inside[0].command.extent();
    assert!(run.array.handle_scrub_start(run.now(), Blame::Drives));
    run.run_but_for(|submit| submit.command.extent() == held, Nanos::from_secs(60));
    assert_eq!(run.array.scrub().state, ScrubState::Done);
    run.run_until_quiet();
    let reported = |event: &ArrayEvent| match event {
        ArrayEvent::Repaired { drive, extent, fault: Fault::Wrong, is_repaired: true } => {
            assert_eq!(drive.as_usize(), 1);
            Some(*extent)
        }
        _ => None,
    };
    run.array_events.iter().filter_map(reported).collect()
}

/// Also across the steps of a scrub that pauses between them.
#[test]
fn sectors_that_adjoin_are_one_event_and_the_scrub_names_their_drive() {
    // All that a step has found is repaired before the next step.
    let budget = Budget { pause: Nanos::from_secs(1), ..SMALL };
    let mut run = start_with(budget, "raid6:4+2,chunk=8KiB", 1_000, 1);
    let reported = overwrite_and_scrub(&mut run, (50..700).chain([800]));
    let runs = [(50, 650), (800, 1)]
        .map(|(from, count)| Extent::new(Lba::new(2 * from), Sectors::new(2 * count)));
    assert_eq!(reported, runs);
    let found: Vec<_> = run.array.found_on().collect();
    let [only] = found[..] else { panic!("{found:?}") };
    assert_eq!((only.drive.as_usize(), only.wrong, only.unreadable), (1, 1_302, 0));
    assert_eq!([0, 1].map(|drive| run.array.wrong_sectors(DriveIdx::new(drive))), [0, 1_302]);
    assert_eq!(run.array.scrub().unreported, 0);
    let last = run.array_events.last();
    assert!(matches!(last, Some(ArrayEvent::ScrubDone(_))), "runs are told before: {last:?}");
    run.scrub(Blame::Drives);
    assert_eq!(run.array.found_on().count(), 0, "this scrub has found nothing");
    assert_eq!(run.array.wrong_sectors(DriveIdx::new(1)), 1_302, "and it was found before");
}

#[test]
fn scrub_says_how_many_runs_it_does_not_report_one_by_one() {
    let mut run = start("raid6:4+2,chunk=4KiB", 1_000, 1);
    let reported = overwrite_and_scrub(&mut run, (0..1_000).step_by(2));
    let unreported = run.array.scrub().unreported;
    assert_eq!((reported.len() as u64, unreported), (256, 500 - 256));
    let found = run.array_events.iter().find_map(|event| match event {
        ArrayEvent::ScrubDone(done) => Some((done.unreported, done.found.wrong)),
        _ => None,
    });
    assert_eq!(found, Some((unreported, 500)));
}

/// 256 runs that were repaired hide none that was not.
#[test]
fn what_was_not_repaired_is_reported_however_much_was() {
    let mut run = start("raid6:4+2,chunk=4KiB", 1_000, 1);
    let mut rng = Streams::new(1).stream("scrub");
    let [content, _] = contents(&run, &mut rng);
    fill(&mut run, &content);
    let drives = |stripe| if stripe == 900 { 0..2 } else { 1..2 };
    for (stripe, drive) in
        (0..1_000).step_by(2).flat_map(|at| drives(at).map(move |drive| (at, drive)))
    {
        let place = chunk(&run, stripe);
        rng.fill(run.drives[drive].bytes_mut(place));
    }
    let done = run.scrub(Blame::Drives);
    assert_eq!((done.found.unlocated, done.unreported), (1, 499 - 256));
    let is_told = |event: &ArrayEvent| matches!(event, ArrayEvent::Unlocated { stripe: 900, .. });
    assert!(run.array_events.iter().any(is_told));
}

/// All of drive 1 is wrong from a stripe on, so that what comes next may always adjoin, and drive 2 takes a command of a scan or of a
/// repair, which has one stripe, and does not end it. Returns after how long the finding before that is reported.
fn reported_after(patience: Option<Patience>, is_of_repair: bool) -> Nanos {
    let spec: Spec = "raid6:4+2,chunk=4KiB".parse().unwrap();
    let start = settings(spec, 1_000, Policy::Normal, DriveSet::EMPTY);
    let mut run = Runtime::new(&Settings { background: Some(SMALL), patience, ..start }, 1);
    let mut rng = Streams::new(1).stream("scrub");
    let [content, _] = contents(&run, &mut rng);
    fill(&mut run, &content);
    for stripe in 100..1_000 {
        let place = chunk(&run, stripe);
        rng.fill(run.drives[1].bytes_mut(place));
    }
    let last = chunk(&run, 500).lba;
    let begun = run.now();
    assert!(run.array.handle_scrub_start(begun, Blame::Drives));
    let hangs = |submit: &Submit| {
        let is_it = |it: Extent| it.end() > last && (it.sectors.get() == 1) == is_of_repair;
        submit.drive.as_usize() == 2 && submit.command.extent().is_some_and(is_it)
    };
    let is_told = |event: &ArrayEvent| matches!(event, ArrayEvent::Repaired { .. });
    while !run.array_events.iter().any(is_told) {
        run.run_but_for(hangs, Nanos::from_secs(1));
    }
    run.now().saturating_since(begun)
}

#[test]
fn finding_is_reported_although_the_scrub_hangs() {
    for is_of_repair in [false, true] {
        let after = reported_after(None, is_of_repair);
        assert!((Nanos::from_secs(59)..=Nanos::from_secs(62)).contains(&after), "{after:?}");
        // What is unresponsive may hold up everything.
        let patience = Patience { silent: Nanos::from_secs(5), lost: Nanos::from_secs(600) };
        let after = reported_after(Some(patience), is_of_repair);
        assert!((Nanos::from_secs(4)..=Nanos::from_secs(8)).contains(&after), "{after:?}");
    }
}

/// No scrub is under way, and nothing waits for one.
#[test]
fn what_clients_read_find_is_reported_when_it_is_repaired() {
    let mut run = start("raid6:4+2,chunk=4KiB", 100, 1);
    let mut rng = Streams::new(1).stream("scrub");
    let [content, _] = contents(&run, &mut rng);
    fill(&mut run, &content);
    run.bad.extend((40..50).map(|at| (DriveIdx::new(2), Lba::new(at))));
    run.read(2, extent(0, run.array.size().get()));
    run.run_until_quiet();
    run.run_for(Nanos::from_secs(10));
    let reported = |event: &ArrayEvent| match event {
        ArrayEvent::Repaired { extent, fault: Fault::Unreadable, .. } => Some(extent.sectors.get()),
        _ => None,
    };
    let reported: Vec<u64> = run.array_events.iter().filter_map(reported).collect();
    // At each place of a stripe's redundancy a client reads one drive less.
    assert!(reported.len() <= 3 && reported.iter().sum::<u64>() >= 5, "{reported:?}");
}

#[test]
fn copies_are_outvoted_by_two_others() {
    let mut run = start("raid1:3,chunk=4KiB", 8, 1);
    let mut rng = Streams::new(1).stream("scrub");
    let [content, _] = contents(&run, &mut rng);
    fill(&mut run, &content);
    flip(&mut run, &mut rng, 0, 5);
    let done = run.scrub(Blame::Drives);
    assert_eq!((done.found.unlocated, done.found.wrong), (0, 1));
    assert_eq!(all_of(&run.drives[0]), all_of(&run.drives[1]));
}

/// Sectors that a drive does not give are computed, written anew and read again, without a scrub.
#[test]
fn reads_of_clients_repair_what_a_drive_does_not_give() {
    for text in ["raid5:3+1,chunk=4KiB", "eraid:3+1,e=2,chunk=8KiB", "raid1:2,chunk=4KiB"] {
        for with_journal in [false, true] {
            let spec: Spec = text.parse().unwrap();
            let start = settings(spec, 8, Policy::Normal, DriveSet::EMPTY);
            let start = Settings { background: Some(SMALL), ..start };
            let start = if with_journal { journaled(start) } else { start };
            let mut run = Runtime::new(&start, 1);
            let size = run.array.size().get();
            run.write(1, extent(0, size), &vec![7; size as usize * 4096]);
            run.run_for(Nanos::from_secs(60));
            run.take(1).unwrap();
            let bad = (DriveIdx::new(1), Lba::new(3));
            run.bad.insert(bad);
            run.read(2, extent(0, size));
            run.run_for(Nanos::from_secs(60));
            let (answer, buf) = run.take(2).unwrap();
            assert!(answer.outcome.is_good() && buf.as_slice().iter().all(|&byte| byte == 7));
            if run.bad.contains(&bad) {
                assert!(spec.is_mirror(), "{text}: it was read");
                run.scrub(Blame::Drives);
            }
            assert!(run.bad.is_empty(), "{text}: it is written anew");
            let is_told = |event: &&ArrayEvent| {
                let ArrayEvent::Repaired { drive, extent, fault, is_repaired } = event else {
                    return false;
                };
                let is_it = *drive == bad.0 && extent.lba == bad.1;
                is_it && *fault == Fault::Unreadable && *is_repaired
            };
            assert_eq!(run.array_events.iter().filter(is_told).count(), 1, "{text}");
        }
    }
}

#[test]
fn drive_that_fails_reads_again_and_again_is_done_without_where_that_is_survived() {
    let mut run = start("raid5:3+1,chunk=4KiB", 200, 1);
    let size = run.array.size().get();
    fill(&mut run, &vec![7; size as usize * 4096]);
    for (drive, lost) in [(1, 1), (2, 1)] {
        let drive = DriveIdx::new(drive);
        run.bad.extend((0..200).map(|lba| (drive, Lba::new(lba))));
        let layout = run.array.layout();
        let of_drive = |stripe: u64| {
            let (row, symbol) = layout.symbol(Cell { drive, lba: Lba::new(stripe) });
            assert_eq!(row, Row { stripe, row: 0 });
            (0..3).map(|at| 3 * stripe + at).find(|&lba| layout.find(Lba::new(lba)).1 == symbol)
        };
        let sectors: Vec<u64> = (0..200).filter_map(of_drive).collect();
        for (id, lba) in (2..).zip(sectors) {
            run.read(id, extent(lba, 1));
            run.run_until_quiet();
            run.take(id).unwrap();
        }
        assert_eq!(run.array.lost().len(), lost, "never below what it survives");
    }
    let kept: Vec<bool> = run
        .array_events
        .iter()
        .filter_map(|event| match event {
            ArrayEvent::ReadErrors { is_kept, .. } => Some(*is_kept),
            _ => None,
        })
        .collect();
    assert_eq!(kept, [false, true]);
}

#[test]
fn scrub_that_is_stopped_goes_on_from_there() {
    let mut run = start("raid6:4+2,chunk=4KiB", 400, 1);
    let now = run.now();
    run.array.handle_scrub_start(now, Blame::Drives);
    run.wait(Nanos::from_millis(1));
    run.run_until(|run| run.array.scrub().to >= 100);
    assert!(run.array.handle_scrub_stop(run.now()));
    run.run_until_quiet();
    let stopped = run.array.scrub();
    assert_eq!(stopped.state, ScrubState::Stopped);
    assert!((100..400).contains(&stopped.to), "{stopped:?}");
    assert!(!run.array.handle_scrub_stop(run.now()), "none is under way");
    let read_before = run.array.counters().scrubbed_stripes;
    let done = run.scrub(Blame::Drives);
    assert_eq!((done.state, done.to), (ScrubState::Done, 400));
    assert_eq!(run.array.counters().scrubbed_stripes - read_before, 400 - stopped.to);
}

/// A scrub under writes finds nothing: what it reads is never half of a write.
#[test]
fn scrub_beside_writes_finds_no_harm() {
    for with_journal in [false, true] {
        let spec: Spec = "eraid:3+2,e=2,chunk=8KiB".parse().unwrap();
        let start = settings(spec, 32, Policy::Normal, DriveSet::EMPTY);
        let start = Settings { background: Some(SMALL), ..start };
        let start = if with_journal { journaled(start) } else { start };
        let mut run = Runtime::new(&start, 3);
        let mut rng = Streams::new(3).stream("writes");
        let size = run.array.size().get();
        for id in 1..600 {
            if id % 100 == 1 {
                let now = run.now();
                run.array.handle_scrub_start(now, Blame::Drives);
            }
            let sectors = 1 + rng.below(4);
            let at = rng.below(size - sectors);
            let mut bytes = vec![0; sectors as usize * 4096];
            rng.fill(&mut bytes);
            run.write(id, extent(at, sectors), &bytes);
            for _ in 0..rng.below(6) {
                if !run.inside.is_empty() {
                    run.finish_any();
                }
            }
        }
        run.run_for(Nanos::from_secs(60));
        let progress = run.array.scrub();
        assert_eq!(progress.state, ScrubState::Done);
        assert_eq!(progress.found, levelhead_array::ScrubFound::default(), "{with_journal}");
        assert!(run.array.counters().scrubbed_stripes >= 64);
    }
}

/// Whatever drive gave a wrong sector may be lost before the others have given theirs.
#[test]
fn drive_that_is_lost_while_its_sector_is_mended_is_not_written_to() {
    for ends in 0..80 {
        let mut run = start("raid6:2+2,chunk=8KiB", 4, ends);
        let bytes: Vec<u8> = (0..run.array.size().get()).flat_map(|at| [at as u8; 4096]).collect();
        fill(&mut run, &bytes);
        let mut rng = Streams::new(ends).stream("test/lost");
        (0..4).for_each(|stripe| flip(&mut run, &mut rng, 1, stripe));
        assert!(run.array.handle_scrub_start(run.now(), Blame::Drives));
        run.wait(Nanos::ZERO);
        for _ in 0..ends {
            if !run.inside.is_empty() {
                run.finish_any();
            }
        }
        run.lose(DriveIdx::new(1));
        run.run_for(Nanos::from_secs(10));
        run.read(2, extent(0, run.array.size().get()));
        run.run_until_quiet();
        assert_eq!(run.take(2).unwrap().1.as_slice(), bytes, "after {ends} ends");
    }
}
