//! Crash swarms over arrays with a journal.

use levelhead_array::journal::rules::{Rule, Rules};
use levelhead_torture::crash::{Aim, Met, Planted, Tally, run};
use levelhead_torture::disk::Manners;

use crate::expected::caught;

/// Runs `count` seeds from `first` on.
fn swarm(first: u64, count: u64, aim: Aim) -> Tally {
    let mut tally = Tally::default();
    for seed in first..first + count {
        if let Err(broken) = run(seed, aim, &mut tally) {
            panic!("{broken}");
        }
    }
    println!("seeds {first} to {}: {tally:?}", first + count - 1);
    tally
}

/// Seeds of each aim: more than 20,000 crash images together, in less than a minute of one core. Without
/// optimization an eighth of them.
const SEEDS: [(&str, u64); 36] = [
    ("short", 55),
    ("long", 60),
    ("focused", 30),
    ("losses", 60),
    ("late-metadata", 30),
    ("again", 60),
    ("unsynced", 40),
    ("announced", 30),
    ("aside", 20),
    ("returns", 40),
    ("apart", 30),
    ("held-up", 25),
    ("damaged", 60),
    ("torn", 20),
    ("copies", 40),
    ("fills", 10),
    ("verified", 40),
    ("verified-at-once", 30),
    ("lies", 60),
    ("scrubs", 12),
    ("standstills", 20),
    ("flaky", 20),
    ("two-redundant", 20),
    ("unjournaled", 20),
    ("listed", 16),
    ("listed-fills", 10),
    ("judged", 10),
    ("lacks", 20),
    ("counted", 8),
    ("tight-fills", 10),
    ("full", 20),
    ("stops", 10),
    ("twins", 10),
    ("failed", 20),
    ("recoveries", 10),
    ("recoveries-lies", 10),
];

/// Images of all aims at least, and pairs of a fault and a phase that are never met at most: without optimization, and with. A
/// swarm in which less happens proves less.
const FLOORS: [(u64, usize); 2] = [(6_000, 65), (20_000, 55)];

/// Faults that only aims at known defects have.
const OF_KNOWN: [&str; 3] = ["disconnect", "late", "older"];

#[test]
fn no_crash_breaks_the_promise() {
    let asked = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let first = asked("CRASH_FIRST").unwrap_or(0);
    let only = std::env::var("CRASH_AIM").ok();
    let (mut images, mut met) = (0, Met::default());
    for ((name, aim), (named, seeds)) in Aim::ALL.into_iter().zip(SEEDS) {
        assert_eq!(name, named, "a number of seeds for each aim");
        if only.as_ref().is_some_and(|only| only != name) {
            continue;
        }
        let seeds = if cfg!(debug_assertions) { (seeds / 8).max(1) } else { seeds };
        print!("{name}: ");
        let tally = swarm(first, asked("CRASH_SEEDS").unwrap_or(seeds), aim);
        match name {
            _ if asked("CRASH_SEEDS").is_some() => {} // A few seeds may do without.
            "failed" => assert!(tally.failed > 0, "no write has failed"),
            "recoveries" | "recoveries-lies" => {
                assert!(2 * tally.again > tally.images, "few images of recoveries");
            }
            _ => {}
        }
        images += tally.images;
        met.add(&tally.met);
    }
    println!("{images} crash images\n{met}");
    let (images_min, never_max) = FLOORS[usize::from(!cfg!(debug_assertions))];
    if asked("CRASH_SEEDS").is_none() && only.is_none() {
        assert!(images >= images_min, "{images} crash images");
        let [mut never, _] = met.never();
        never.retain(|pair| !OF_KNOWN.iter().any(|fault| pair.starts_with(fault)));
        assert!(never.len() <= never_max, "{} never met: {never:?}", never.len());
    }
}

/// Redundancy counted what was written to damaged sectors, and reads of other sectors counted zeroes: after a recovery had brought
/// it to its place, and where no drive had a place for it.
#[test]
fn damaged_sectors_that_are_written_again_count_after_a_crash() {
    for seed in [112, 1176, 2739] {
        swarm(seed, 1, Aim::HELD_UP);
    }
}

/// A disk was lost before losses are recorded, and a blank one in its place was given the superblock that was found: after the next
/// crash it passed for the old one.
#[test]
fn blank_disk_does_not_pass_for_the_one_that_was_lost() {
    for seed in [1_062, 4_778, 4_792] {
        swarm(seed, 1, Aim::COPIES);
    }
}

/// A cut left the entry that says that a filled disk is full on a few disks. The next run went without the disk, and was cut off before
/// that was recorded; then the disk was back, and those few were not. All of them together are more than the layout survives,
/// and the swarm had forgotten that the disk was not full for good.
#[test]
fn disk_that_few_know_to_be_full_counts_as_lost_although_it_is_back() {
    for seed in [2_758, 5_340, 6_356, 6_732, 7_058] {
        swarm(seed, 1, Aim::COPIES);
    }
}

/// A mark was on its way to a drive that hindered while the array was stopped, and the metadata said that transactions begin where
/// they had begun before: none of the next run's counted after a crash.
#[test]
fn stop_with_a_mark_on_its_way_leaves_the_next_run_its_own_transactions() {
    for (seed, aim) in [(5_049, Aim::LONG), (5_612, Aim::LONG), (5_340, Aim::FOCUSED)] {
        swarm(seed, 1, aim);
    }
}

/// FI5: a sector of a mirror was on the list of damaged sectors and was written while a disk was away. The disk was rebuilt and its
/// copy stayed on the list: when the other disk was lost, the sector could not be read.
#[test]
fn copy_of_a_mirror_is_off_the_list_once_it_is_rebuilt() {
    for seed in [1, 5, 11, 25] {
        swarm(seed, 1, Aim::LISTED_FILLS);
    }
}

/// RB5: a disk counted again although one ring alone said that older records were over. With that sector unreadable they counted
/// again, and either the disk got what they say of it, or it was said that this could not be brought back.
#[test]
fn records_that_are_over_stay_so_when_a_disk_that_counts_again_has_an_empty_ring() {
    for (seed, aim) in [(9_000_932, Aim::APART), (9_004_088, Aim::VERIFIED_AT_ONCE)] {
        swarm(seed, 1, aim);
    }
}

/// J11: a record waited twice for one ring, was withdrawn once, and came there without contents when its transaction was over.
#[test]
fn record_goes_to_a_ring_once_and_never_after_its_transaction() {
    swarm(9_000_131, 1, Aim::UNSYNCED);
}

/// A run did without a disk, put a blank one into its place, and was cut off before that had a superblock. The old disk, which had
/// an entry from the run before, was there again. It had gone a different way and was refused; the swarm had forgotten that it
/// was a disk to leave out, as an operator does.
#[test]
fn disk_whose_place_was_given_away_is_left_out_when_it_has_gone_a_different_way() {
    swarm(9_700_016, 1, Aim::VERIFIED_AT_ONCE);
}

/// A data disk was lost just after all redundancy was valid, and a cut left the entry that records both on one disk alone: one of
/// the journal that was being filled. A start without these two was refused, rightly: nothing that is left says that redundancy is
/// valid. The swarm had asked whether the array is in doubt with that disk there.
#[test]
fn start_without_the_one_disk_that_knows_redundancy_to_be_valid_is_in_doubt() {
    swarm(11_001_731, 1, Aim::APART);
}

/// A disk had not stored a sector when the power failed, and the next run did without another disk. What was written to that one's
/// place then went into redundancy that counts what was not stored, and a read computed it from what was there. That is nowhere;
/// the swarm had excused the codeword at the start alone, and the write had made its promise anew.
#[test]
fn what_is_written_to_a_doubtful_codeword_with_a_disk_less_is_not_promised() {
    for seed in [20_915, 7_000_014] {
        swarm(seed, 1, Aim::RECOVERIES_LIES);
    }
}

/// How many seeds it takes until the swarm notices that something is wrong with arrays like these.
fn seeds_to_find(what: &str, aim: Aim) -> u64 {
    seeds_to_find_from(0, what, aim)
}

/// The same from this seed on.
fn seeds_to_find_from(first: u64, what: &str, aim: Aim) -> u64 {
    let most = 1_000;
    let mut tally = Tally::default();
    let is_broken = |seed: &u64| {
        let run = caught(|| run(*seed, aim, &mut tally));
        !matches!(run, Ok(Ok(())))
    };
    let found = (first..first + most).find(is_broken);
    eprintln!("{what}: {found:?}, {} images", tally.images);
    found.map_or(most + 1, |seed| seed - first + 1)
}

/// Rules that a few seeds notice. Others of [`Rule::ALL`] take two or three faults at one moment: the example
/// `canaries` looks for all of them.
#[test]
fn rules_that_are_left_out_are_noticed() {
    for rule in [Rule::Records, Rule::Flush, Rule::Complete, Rule::Order] {
        let aim = Aim { rules: Rules::without(rule), ..Aim::DEFAULT };
        assert!(seeds_to_find(&format!("without {rule:?}"), aim) <= 100, "{rule:?}");
    }
    let aims = [
        (Rule::Apart, Aim::ANNOUNCED),
        (Rule::Hints, Aim::ASIDE),
        (Rule::Hints, Aim::APART),
        (Rule::Records, Aim::APART),
    ];
    for (rule, aim) in aims {
        let aim = Aim { rules: Rules::without(rule), ..aim };
        assert!(seeds_to_find(&format!("without {rule:?}"), aim) <= 100, "{rule:?}");
    }
    let aim = Aim { rules: Rules::without(Rule::MissedAgain), ..Aim::RETURNS };
    assert!(seeds_to_find("without MissedAgain", aim) <= 100);
    let aim = Aim { rules: Rules::without(Rule::UnlistedAgain), ..Aim::DAMAGED };
    assert!(seeds_to_find("without UnlistedAgain", aim) <= 300);
    let rules = [
        (Rule::CopyFlush, Aim::COPIES, 0),
        (Rule::FillOver, Aim::FILLS, 300),
        (Rule::Loss, Aim::LATE_METADATA, 250),
        (Rule::Superseded, Aim::VERIFIED, 0),
    ];
    for (rule, aim, first) in rules {
        let aim = Aim { rules: Rules::without(rule), ..aim };
        let seeds = seeds_to_find_from(first, &format!("without {rule:?}"), aim);
        assert!(seeds <= 150, "{rule:?}");
    }
}

/// Disks that do not store what is written in place are noticed unless that is read back, and what waits is had from memory; and
/// the swarm meets both what was found and what was lost with the power.
#[test]
fn writes_that_are_not_stored_are_noticed_where_they_are_not_read_back() {
    let unread = Aim { verify: None, ..Aim::LIES };
    assert!(seeds_to_find("lies that are not read back", unread) <= 20);
    let rules = Rules::without(Rule::FromRecord);
    assert!(seeds_to_find("lies without FromRecord", Aim { rules, ..Aim::LIES }) <= 100);
    let seen = swarm(0, if cfg!(debug_assertions) { 6 } else { 60 }, Aim::LIES);
    assert!(seen.flawed > 0 && 0 < seen.doubtful && seen.doubtful < seen.images, "{seen:?}");
    assert!(
        0 < seen.unstored && seen.unstored < seen.doubtful,
        "the journal has the others: {seen:?}"
    );
}

#[test]
fn redundancy_that_is_trusted_and_disks_that_lie_are_noticed() {
    let trusting = Aim { planted: Planted::TrustsRedundancy, ..Aim::UNJOURNALED };
    assert!(seeds_to_find("redundancy that is trusted without a journal", trusting) <= 100);
    let lying = Aim { manners: Manners::Lying, ..Aim::UNJOURNALED };
    assert!(seeds_to_find("disks that lie without a journal", lying) <= 100);
    let lying = Aim { manners: Manners::Lying, ..Aim::DEFAULT };
    assert!(seeds_to_find("disks that lie", lying) <= 100);
}

/// Faults that the array does not survive yet. Each of them is found; what repairs one turns its assertion round and moves the aim
/// to those that must be survived.
#[test]
fn faults_that_are_known_are_found() {
    for (name, aim) in Aim::KNOWN {
        assert!(seeds_to_find(name, aim) <= 300, "{name}");
    }
}

/// Time in which the server did not run, counted against its drives, is noticed.
#[test]
fn standstill_that_counts_against_drives_is_noticed() {
    let counted = Aim { planted: Planted::StandstillsCount, ..Aim::STANDSTILLS };
    assert!(seeds_to_find("standstills that count", counted) <= 20);
}
