//! Records of writes that wait to be read back, against plain ones.

use levelhead_stats::Streams;
use levelhead_testkit::extent;

use super::*;

const DRIVE: DriveIdx = DriveIdx::new(0);

fn records(bytes: u64, sums: usize) -> Records {
    Records::new(1, Room { bytes: Sectors::new(bytes), sums })
}

/// The record of a write, with bytes or sums as there is room.
fn write(records: &mut Records, at: Extent) -> Option<u64> {
    records.supersede(DRIVE, at);
    let begun = records.begin(DRIVE, at, true)?;
    match begun.keeps {
        Keeps::Bytes => records.set_bytes(begun.write, BufId::Own(begun.write)),
        Keeps::Sums => records.set_sums(begun.write, &vec![7; at.sectors.as_usize()]),
    }
    Some(begun.write)
}

fn next(records: &mut Records, from: u64) -> Vec<Part> {
    records.next(DRIVE, Lba::new(from), Sectors::new(256), |_| true)
}

#[test]
fn write_that_is_overlapped_in_part_leaves_the_rest_to_be_checked() {
    let mut records = records(100, SUMS_ROOM);
    let first = write(&mut records, extent(10, 10)).unwrap();
    let second = write(&mut records, extent(13, 2)).unwrap();
    let parts = next(&mut records, 0);
    let expected = [(first, 10, 3, 0), (second, 13, 2, 0), (first, 15, 5, 5)];
    let seen = parts.iter().map(|part| {
        let Part { write, extent, offset } = *part;
        (write, extent.lba.get(), extent.sectors.get(), offset)
    });
    assert_eq!(seen.collect::<Vec<_>>(), expected);
    let place = |lba| records.find(Cell { drive: DRIVE, lba: Lba::new(lba) });
    assert_eq!(place(17), Some(Place { buf: BufId::Own(first), sector: 7 }));
    assert_eq!(place(14), Some(Place { buf: BufId::Own(second), sector: 1 }));
    assert_eq!(place(20), None);
    for part in parts {
        records.note_checked(DRIVE, part);
    }
    let tally = Tally { writes: 2, verified: 2, ..Tally::default() };
    assert_eq!((records.tally(), records.memory()), (tally, 0));
    assert_eq!(records.take_freed().len(), 2);
}

/// Two flaws of one write, apart: what becomes of each decides whether the write counts as mended.
#[test]
fn write_counts_as_mended_unless_one_of_its_flaws_could_not_be() {
    enum Fate {
        WrittenOver,
        NotMended,
        TriedAgain,
    }
    for (fate, expected) in [(Fate::WrittenOver, 1), (Fate::NotMended, 0), (Fate::TriedAgain, 1)] {
        let mut records = records(100, SUMS_ROOM);
        let name = write(&mut records, extent(10, 6)).unwrap();
        let part = |lba, offset| Part { write: name, extent: extent(lba, 2), offset };
        records.note_checked(DRIVE, part(12, 2));
        assert!(records.note_flaw(name) && !records.note_flaw(name), "one write");
        records.note_mended(DRIVE, part(10, 0));
        match fate {
            Fate::WrittenOver => {}
            Fate::NotMended => records.note_not_mended(name),
            Fate::TriedAgain => {
                records.note_not_mended(name);
                records.note_tried_again(name);
            }
        }
        records.note_checked(DRIVE, part(10, 0));
        records.supersede(DRIVE, extent(14, 2));
        let Tally { found, mended, verified, .. } = records.tally();
        assert_eq!((found, mended, verified), (1, expected, 1));
    }
}

#[test]
fn comparison_of_what_was_written_again_meanwhile_is_void() {
    let mut records = records(100, SUMS_ROOM);
    write(&mut records, extent(10, 4));
    let read = next(&mut records, 0)[0];
    let newer = write(&mut records, extent(12, 4)).unwrap();
    let left = records.left_of(DRIVE, read);
    assert_eq!(left, [Part { extent: extent(10, 2), ..read }]);
    records.note_checked(DRIVE, read);
    let left = next(&mut records, 0);
    assert_eq!(left, [Part { write: newer, extent: extent(12, 4), offset: 0 }]);
    records.supersede(DRIVE, extent(0, 100));
    let tally = Tally { writes: 2, verified: 1, superseded: 1, ..Tally::default() };
    assert_eq!(records.tally(), tally);
}

#[test]
fn what_does_not_fit_has_checksums_and_the_oldest_gives_way() {
    let mut records = records(8, 3 * (WRITE_COST + RUN_COST) + 16 * SUM_COST);
    let old = write(&mut records, extent(0, 8)).unwrap();
    let sums = write(&mut records, extent(10, 4)).unwrap();
    assert_eq!((records.bytes(old), records.bytes(sums)), (Some(BufId::Own(old)), None));
    assert_eq!(records.sum(Cell { drive: DRIVE, lba: Lba::new(11) }), Some(7));
    assert!(records.has_sums(DRIVE, extent(9, 2)) && !records.has_sums(DRIVE, extent(0, 10)));
    write(&mut records, extent(20, 4)).unwrap();
    assert_eq!(records.waiting(), 3);
    // There is room for three.
    let newest = write(&mut records, extent(30, 8)).unwrap();
    assert_eq!(records.waiting(), 3);
    assert_eq!(records.take_freed(), [BufId::Own(old)]);
    assert_eq!(records.bytes(newest), None, "how it is kept is decided first");
    assert_eq!(records.tally().unverified, 1);
    assert!(records.begin(DRIVE, extent(50, 1), false).is_none(), "nothing gives way for it");
    assert!(records.begin(DRIVE, extent(60, 1 << 20), true).is_none(), "it would never fit");
}

#[test]
fn reads_go_upwards_and_take_neighbours_along_and_what_is_hurried_comes_first() {
    let mut records = records(100, SUMS_ROOM);
    for lba in [40, 10, 12, 20] {
        write(&mut records, extent(lba, 2));
    }
    records.hurry(Cell { drive: DRIVE, lba: Lba::new(41) });
    let firsts =
        |parts: Vec<Part>| -> Vec<u64> { parts.iter().map(|part| part.extent.lba.get()).collect() };
    assert!(records.is_hurried(DRIVE));
    assert_eq!(firsts(next(&mut records, 15)), [40]);
    assert!(!records.is_hurried(DRIVE) && records.is_ready(DRIVE));
    assert_eq!(firsts(next(&mut records, 15)), [20]);
    let apart = records.next(DRIVE, Lba::ZERO, Sectors::new(256), |_| false);
    assert_eq!(firsts(apart), [10]);
    assert_eq!(firsts(next(&mut records, 0)), [12]);
    assert!(!records.is_ready(DRIVE) && next(&mut records, 0).is_empty());
}

#[test]
fn write_into_the_middle_of_what_is_beyond_mending_makes_some_of_that_give_way() {
    let count = LOOKS_MAX as u64 + 6;
    for is_last_right in [false, true] {
        let mut records = records(1_000, count as usize * (WRITE_COST + RUN_COST));
        for at in 0..count {
            let whole = extent(10 * at, 3);
            let write = write(&mut records, whole).unwrap();
            let stage = match is_last_right && at + 1 == count {
                true => Stage::Read,
                false => Stage::Flawed,
            };
            records.set_stage(DRIVE, Part { write, extent: whole, offset: 0 }, stage);
        }
        records.supersede(DRIVE, extent(501, 1));
        assert_eq!(records.tally().unverified, 1);
        let waits = |at: u64| records.waits(Cell { drive: DRIVE, lba: Lba::new(10 * at) });
        let left = if is_last_right { count - 1 } else { 0 };
        assert_eq!((0..count).find(|&at| !waits(at)), Some(left), "{is_last_right}");
    }
}

#[test]
fn hurried_runs_are_read_by_age_and_what_cannot_be_read_is_not_the_oldest() {
    let mut records = records(1_000, SUMS_ROOM);
    let writes = [50, 30, 10].map(|lba| write(&mut records, extent(lba, 2)).unwrap());
    assert_eq!(records.oldest_ready(DRIVE), Some(writes[0]));
    for lba in [10, 30] {
        records.hurry(Cell { drive: DRIVE, lba: Lba::new(lba) });
    }
    assert_eq!(records.oldest_ready(DRIVE), Some(writes[0]), "hurried or not");
    let part = next(&mut records, 0)[0];
    assert_eq!(part.write, writes[1], "the older one of those that are hurried");
    records.set_stage(DRIVE, part, Stage::Flawed);
    records.note_checked(DRIVE, Part { write: writes[0], extent: extent(50, 2), offset: 0 });
    assert_eq!(records.oldest_ready(DRIVE), Some(writes[2]), "the flawed one is older");
    records.supersede(DRIVE, extent(10, 2));
    assert_eq!((records.oldest_ready(DRIVE), records.is_hurried(DRIVE)), (None, false));
    assert!(records.drives[0].ready.is_empty());
}

/// VF1, VF2 and VF5 against a plain array of sectors.
#[test]
fn random_writes_and_checks_are_as_a_plain_array_says_and_within_bounds() {
    for seed in 0..200 {
        let mut rng = Streams::new(seed).stream("records");
        let room = Room { bytes: Sectors::new(20), sums: 12 * (WRITE_COST + RUN_COST) };
        let mut records = Records::new(1, room);
        let mut plain = [0_u64; 40];
        let mut reads: Vec<Part> = Vec::new();
        for _ in 0..300 {
            let at = rng.below(36);
            let at = extent(at, 1 + rng.below(4));
            match rng.below(4) {
                0 => reads.extend(next(&mut records, at.lba.get())),
                1 if !reads.is_empty() => {
                    let part = reads.swap_remove(rng.below(reads.len() as u64) as usize);
                    for left in records.left_of(DRIVE, part) {
                        let shift = (left.extent.lba - part.extent.lba).get() as u32;
                        assert_eq!(left.offset, part.offset + shift, "seed {seed}");
                        for lba in left.extent.iter() {
                            assert_eq!(plain[lba.get() as usize], part.write, "seed {seed}");
                        }
                    }
                    records.note_checked(DRIVE, part);
                    for owner in &mut plain[part.extent.lba.get() as usize..]
                        [..part.extent.sectors.as_usize()]
                    {
                        if *owner == part.write {
                            *owner = 0;
                        }
                    }
                }
                _ => {
                    let name = write(&mut records, at).unwrap_or(0);
                    plain[at.lba.get() as usize..][..at.sectors.as_usize()].fill(name);
                }
            }
            let bound = room.bytes.bytes().get() + room.sums as u64;
            assert!(records.memory() <= bound, "VF5, seed {seed}");
            for (lba, owner) in plain.iter_mut().enumerate() {
                let found = records.drives[0].at(Lba::new(lba as u64));
                match found {
                    Some((_, run)) => assert_eq!(run.write, *owner, "seed {seed}: {lba}"),
                    None => *owner = 0, // It may have given way.
                }
            }
            let Tally { writes, verified, superseded, unverified, .. } = records.tally();
            let left = writes - verified - superseded - unverified;
            assert_eq!(left, records.waiting() as u64, "seed {seed}");
        }
        records.forget_all();
        assert_eq!((records.memory(), records.waiting()), (0, 0), "seed {seed}");
    }
}
