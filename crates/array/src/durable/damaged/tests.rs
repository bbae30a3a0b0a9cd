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

fn listing() -> Listing {
    Listing {
        array: Uuid([0xa0; 16]),
        member: Uuid([0xb2; 16]),
        generation: 0x0102_0304_0506_0708,
        list: list(&[(2, 1_000, 3), (2, 2_000, 1), (5, 1_000, 0x01_0000_0001)]),
    }
}

fn decode(bytes: &[u8]) -> Result<Listing, ListingError> {
    let read = |extent: Extent| -> Result<Vec<u8>, ()> {
        let start = extent.lba.get() as usize * SECTOR_SIZE;
        let bytes = bytes.get(start..start + extent.sectors.get() as usize * SECTOR_SIZE);
        Ok(bytes.unwrap_or_default().to_vec())
    };
    Listing::decode(read).unwrap()
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

#[test]
fn vector_of_the_page_is_what_is_written() {
    let page = include_str!("../../../../../docs/formats/damaged.md");
    let rows = page.lines().filter_map(|line| {
        let (offset, bytes) = line.split_once(": ")?;
        let offset: usize = offset.parse().ok()?;
        let byte = |text: &str| u8::from_str_radix(text, 16).unwrap();
        Some((offset, bytes.split(' ').map(byte).collect::<Vec<u8>>()))
    });
    let mut expected = vec![0; 2 * SECTOR_SIZE];
    for (offset, bytes) in rows {
        expected[offset..][..bytes.len()].copy_from_slice(&bytes);
    }
    let written = listing().encode();
    let dump = |bytes: &[u8]| {
        let rows = bytes.chunks(16).enumerate();
        let rows = rows.filter(|(_, row)| row.iter().any(|&byte| byte != 0));
        let text =
            |row: &[u8]| row.iter().map(|b| format!("{b:02x}")).collect::<Vec<_>>().join(" ");
        rows.map(|(at, row)| format!("{}: {}\n", at * 16, text(row))).collect::<String>()
    };
    assert_eq!(dump(&written), dump(&expected));
    assert_eq!(decode(&expected), Ok(listing()));
}

#[test]
fn every_bit_of_a_list_counts() {
    let good = listing().encode();
    assert_eq!(decode(&good), Ok(listing()));
    for bit in 0..good.len() * 8 {
        let mut bytes = good.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert!(decode(&bytes).is_err(), "bit {bit}");
    }
    assert_eq!(decode(&[]), Err(ListingError::Absent));
}

#[test]
fn list_that_says_what_cannot_be_is_refused() {
    type Change = fn(&mut [u8], &mut [u8]);
    let wrong = |change: Change| {
        let mut bytes = listing().encode();
        let (header, ranges) = bytes.split_at_mut(SECTOR_SIZE);
        change(header, ranges);
        put(header, at::RANGES_SUM, &crc32c::crc32c(ranges).to_le_bytes());
        let checksum = crc32c::crc32c(&header[..at::CHECKSUM]);
        put(header, at::CHECKSUM, &checksum.to_le_bytes());
        decode(&bytes)
    };
    assert_eq!(wrong(|_, _| {}), Ok(listing()));
    let cases: [Change; 9] = [
        |_, ranges| ranges[13] = DriveIdx::MAX,
        |_, ranges| ranges[8] = 0,
        |_, ranges| ranges[7] = 1,
        |_, ranges| ranges[16 + 1] = 0,
        |_, ranges| put(ranges, 16, &1_003_u64.to_le_bytes()),
        |_, ranges| ranges[15] = 1,
        |_, ranges| ranges[48] = 1,
        |header, _| header[at::END] = 1,
        |header, _| header[at::WIDENED] = 2,
    ];
    for (at, case) in cases.into_iter().enumerate() {
        assert_eq!(wrong(case), Err(ListingError::Contents), "case {at}");
    }
    let version = wrong(|header, _| header[at::VERSION] = 9);
    assert_eq!(version, Err(ListingError::Version { version: 9 }));
}

/// Only one slot is written at a time, and the other one holds a list then.
#[test]
fn one_slot_with_a_wrong_checksum_was_cut_off_and_two_are_not_what_was_written() {
    let whole = listing().encode();
    let mut wrong = whole.clone();
    wrong[SECTOR_SIZE] ^= 1;
    let absent = vec![0; whole.len()];
    let found = |slots: [&Vec<u8>; 2]| {
        find(Some(extent(0, DAMAGED_PLACE.get())), |extent| {
            let at = extent.lba.get() as usize;
            let (slot, first) = (slots[at / SLOT.as_usize()], at % SLOT.as_usize());
            Some(slot[first * SECTOR_SIZE..][..extent.sectors.as_usize() * SECTOR_SIZE].to_vec())
        })
    };
    let read = ListCopy::Read(Box::new(listing()));
    assert_eq!(found([&whole, &wrong]), [read.clone(), ListCopy::Nothing]);
    assert_eq!(found([&wrong, &whole]), [ListCopy::Nothing, read]);
    assert_eq!(found([&wrong, &absent]), [ListCopy::Nothing, ListCopy::Nothing]);
    assert_eq!(found([&wrong, &wrong]), [ListCopy::Unreadable, ListCopy::Unreadable]);
}
