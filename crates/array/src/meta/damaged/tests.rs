use levelhead_testkit::extent;

use super::*;

fn list(ranges: &[(u8, u64, u64)]) -> DamagedList {
    let mut list = DamagedList::default();
    for &(drive, lba, sectors) in ranges {
        list.add(DriveIdx::new(drive), extent(lba, sectors));
    }
    list
}

fn cell(drive: u8, lba: u64) -> Cell {
    Cell { drive: DriveIdx::new(drive), lba: Lba::new(lba) }
}

fn told(list: &DamagedList) -> Vec<(u8, u64, u64)> {
    let tell = |range: DamagedRange| {
        let DamagedRange { drive, extent } = range;
        (drive.as_usize() as u8, extent.lba.get(), extent.sectors.get())
    };
    list.ranges().map(tell).collect()
}

#[test]
fn ranges_that_overlap_or_touch_are_one() {
    let mut damaged = list(&[(1, 10, 2), (1, 20, 2), (0, 12, 1)]);
    assert_eq!(told(&damaged), [(0, 12, 1), (1, 10, 2), (1, 20, 2)]);
    assert!(!damaged.add(DriveIdx::new(1), extent(20, 2)), "it is there");
    assert!(damaged.add(DriveIdx::new(1), extent(11, 9)));
    assert_eq!(told(&damaged), [(0, 12, 1), (1, 10, 12)]);
    assert!(damaged.add(DriveIdx::new(1), extent(5, 30)));
    assert_eq!(told(&damaged), [(0, 12, 1), (1, 5, 30)]);
    assert_eq!(damaged.sectors(), Sectors::new(31));
}

#[test]
fn sector_that_is_written_leaves_and_the_others_stay() {
    let mut damaged = list(&[(1, 10, 3)]);
    assert!(!damaged.remove(cell(1, 9)) && !damaged.remove(cell(0, 10)));
    assert!(damaged.remove(cell(1, 11)));
    assert_eq!(told(&damaged), [(1, 10, 1), (1, 12, 1)]);
    assert!(damaged.covers(cell(1, 10)) && !damaged.covers(cell(1, 11)));
    assert!(damaged.remove(cell(1, 10)) && damaged.remove(cell(1, 12)) && damaged.is_empty());
}

/// Against a set of sectors.
#[test]
fn list_holds_what_a_set_of_sectors_holds() {
    use std::collections::BTreeSet;

    use levelhead_stats::Streams;
    for seed in 0..200 {
        let mut rng = Streams::new(seed).stream("damaged");
        let (mut damaged, mut set) = (DamagedList::default(), BTreeSet::new());
        for _ in 0..60 {
            let (drive, lba) = (rng.below(2) as u8, rng.below(30));
            if rng.below(3) == 0 {
                assert_eq!(damaged.remove(cell(drive, lba)), set.remove(&cell(drive, lba)));
            } else {
                let sectors = 1 + rng.below(4);
                let before = set.len();
                set.extend((lba..lba + sectors).map(|lba| cell(drive, lba)));
                let is_new = damaged.add(DriveIdx::new(drive), extent(lba, sectors));
                assert_eq!(is_new, set.len() > before, "seed {seed}");
            }
            for at in (0..2).flat_map(|drive| (0..40).map(move |lba| cell(drive, lba))) {
                assert_eq!(damaged.covers(at), set.contains(&at), "seed {seed}: {at:?}");
            }
            assert_eq!(damaged.sectors().get() as usize, set.len());
        }
    }
}

#[test]
fn full_list_forgets_nothing_and_says_that_it_covers_more() {
    let mut damaged = list(&[(0, 0, 1), (0, 10, 1), (0, 14, 1), (1, 16, 1)]);
    assert!(!damaged.is_widened());
    damaged.add_within(DriveIdx::new(1), extent(40, 1), 4);
    assert_eq!(told(&damaged), [(0, 0, 1), (0, 10, 5), (1, 16, 1), (1, 40, 1)]);
    assert!(damaged.is_widened());
    damaged.add_within(DriveIdx::new(1), extent(50, 1), 2);
    assert_eq!(told(&damaged), [(0, 0, 15), (1, 16, 35)]);
    damaged.add_within(DriveIdx::new(2), extent(50, 1), 2);
    assert_eq!(damaged.ranges().count(), 3, "one range of each drive is never too much");
}

#[test]
fn full_list_lets_go_of_a_sector_in_the_middle_of_a_range() {
    let mut damaged = list(&[(0, 0, 5), (0, 10, 1), (1, 16, 1), (1, 40, 1)]);
    assert!(damaged.remove_within(cell(0, 2), 4));
    assert_eq!(told(&damaged), [(0, 0, 2), (0, 3, 8), (1, 16, 1), (1, 40, 1)]);
    assert!(!damaged.covers(cell(0, 2)) && damaged.is_widened());
    assert!(damaged.remove_within(cell(0, 10), 4), "at an end there is room");
    assert_eq!(told(&damaged), [(0, 0, 2), (0, 3, 7), (1, 16, 1), (1, 40, 1)]);
}

/// What [`super::super::metadata`] asks for, of an array of six drives.
fn decode(bytes: &[u8]) -> Option<DamagedList> {
    DamagedList::decode(bytes, false, 6, Sectors::new(1 << 40))
}

fn example() -> DamagedList {
    list(&[(2, 1_000, 3), (2, 2_000, 1), (5, 1_000, 0x01_0000_0001)])
}

#[test]
fn what_was_encoded_decodes_to_the_same() {
    let bytes = example().encode();
    assert_eq!(bytes.len(), 3 * RANGE_BYTES);
    assert_eq!(bytes[32..], [0xE8, 3, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 5, 0, 0]);
    assert_eq!(decode(&bytes), Some(example()));
    let widened = DamagedList { is_widened: true, ..example() };
    let decoded = DamagedList::decode(&bytes, true, 6, Sectors::new(1 << 40));
    assert_eq!(decoded, Some(widened), "the bytes do not say that");
    assert_eq!(decode(&[]), Some(DamagedList::default()));
}

#[test]
fn list_that_cannot_be_is_refused() {
    let wrong = |at: usize, value: &[u8]| {
        let mut bytes = example().encode();
        put(&mut bytes, at, value);
        decode(&bytes)
    };
    assert_eq!(wrong(0, &[]), Some(example()));
    for (at, value, what) in [
        (13, &[6][..], "a drive that the array does not have"),
        (8, &[0], "an empty range"),
        (7, &[1], "an address that no drive has"),
        (16 + 1, &[0], "out of order"),
        (16, &1_002_u64.to_le_bytes(), "two that overlap"),
        (16, &1_003_u64.to_le_bytes(), "two that touch"),
        (15, &[1], "a byte without a name"),
        (14, &[1], "a byte without a name"),
    ] {
        assert_eq!(wrong(at, value), None, "{what}");
    }
    assert!(wrong(16, &1_004_u64.to_le_bytes()).is_some(), "one sector between two is enough");
    let decoded = DamagedList::decode(&example().encode(), false, 6, Sectors::new(1 << 32));
    assert_eq!(decoded, None, "an end behind that of the drives");
}

/// Whatever is damaged, the list stays within its bound, which the metadata has room for.
#[test]
fn list_is_never_longer_than_its_bound() {
    let mut damaged = DamagedList::default();
    for at in 0..RANGES_MAX as u64 + 10 {
        damaged.add(DriveIdx::new((at % 3) as u8), extent(at * 10, 1));
    }
    assert_eq!(damaged.ranges().count(), RANGES_MAX);
    assert!(damaged.is_widened());
    assert_eq!(damaged.encode().len(), RANGES_MAX * RANGE_BYTES);
}
