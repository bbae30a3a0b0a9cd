//! Swarms of arrays with checksums over a drive that misbehaves.

use levelhead_torture::rot::{Aim, Tally, run};

use crate::expected::caught;

/// Runs these seeds; none breaks the promise.
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

/// Seeds of an aim: fewer without optimization.
const SEEDS: u64 = if cfg!(debug_assertions) { 12 } else { 100 };

/// How many seeds from `first` on find that the promise is broken, of 100 at most.
fn seeds_to_find(first: u64, what: &str, aim: Aim) -> u64 {
    for seed in first..first + 100 {
        let ended = caught(|| run(seed, aim, &mut Tally::default()));
        match ended {
            Ok(Ok(())) => continue,
            Ok(Err(broken)) => println!("{what}: {broken}"),
            Err(_) => println!("{what}: seed {seed} panics"),
        }
        return seed + 1 - first;
    }
    panic!("{what}: no seed finds it");
}

#[test]
fn no_faulty_drive_breaks_the_promise() {
    for (name, aim) in Aim::ALL {
        print!("{name}: ");
        let tally = swarm(0, SEEDS, aim);
        match aim {
            Aim::GOOD | Aim::GOOD_CUTS => {
                assert_eq!((tally.faulty, tally.corrupt, tally.repaired), (0, 0, 0), "{name}");
            }
            _ => {
                assert!(tally.faulty > SEEDS / 2, "few drives misbehave");
                assert!(tally.corrupt > 0 && tally.repaired > 0, "{name}: nothing is found");
            }
        }
    }
}

#[test]
fn faulty_drives_are_noticed_where_sectors_have_no_checksums() {
    for (name, aim) in Aim::ALL {
        if ![Aim::GOOD, Aim::GOOD_CUTS, Aim::DROPPED].contains(&aim) {
            let unchecked = Aim { has_checksums: false, ..aim };
            assert!(
                seeds_to_find(0, &format!("{name} without checksums"), unchecked) <= 30,
                "{name}"
            );
        }
    }
}

/// What a drive that drops several writes returns is counted: some of it is wrong, and a scrub finds some of that.
#[test]
fn several_writes_that_are_dropped_are_more_than_is_promised() {
    let tally = swarm(0, if cfg!(debug_assertions) { 100 } else { 300 }, Aim::DROPPED);
    assert!(0 < tally.wrong_before && tally.wrong_before < tally.faulty / 4, "{tally:?}");
    assert!(tally.wrong_after <= tally.wrong_before, "{tally:?}");
}

/// Faults that the array does not survive yet. Each of them is found; what repairs one turns its assertion round and moves the aim
/// to those that must be survived.
#[test]
fn faults_that_are_known_are_found() {
    for ((name, aim), first) in Aim::KNOWN.into_iter().zip([401_160, 41_625, 40_235, 41_625]) {
        assert!(seeds_to_find(first, name, aim) <= 20, "{name}");
    }
}

#[test]
fn same_seeds_do_the_same_again() {
    let twice = [(); 2].map(|()| {
        let mut tally = Tally::default();
        let ended: Vec<_> = (0..10).map(|seed| run(seed, Aim::LOST_CUTS, &mut tally)).collect();
        (ended, tally)
    });
    assert_eq!(twice[0], twice[1]);
}

/// Short rings: a part of a long write was announced, the rest was to be logged because a drive had become slow, and found no room
/// as long as the announcement was not over, which it never was.
#[test]
fn a_write_that_its_own_announcement_keeps_from_having_room_is_answered() {
    for seed in [2_296, 11_161, 21_884, 22_585, 40_943] {
        swarm(seed, 1, Aim::GOOD);
    }
}
