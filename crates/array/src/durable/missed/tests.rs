//! Vectors of the page `docs/formats/missed.md`, and what is found where copies differ.

use super::*;

fn key() -> MapKey {
    MapKey { drive: DriveIdx::new(3), since: 0x0102_0304_0506_0708, shift: 6, regions: 70_000 }
}

fn page(number: u8, words: Vec<u64>) -> Page {
    Page { array: Uuid([0xA0; 16]), holder: Uuid([0xB2; 16]), key: key(), number, words }
}

fn bits(of: &[usize]) -> Vec<u64> {
    let mut words = vec![0; WORDS_IN_PAGE];
    of.iter().for_each(|&at| words[at / 64] |= 1 << (at % 64));
    words
}

/// Rows of 16 bytes that are not all zero.
fn rows(bytes: &[u8]) -> Vec<String> {
    let rows = bytes.chunks(16).enumerate().filter(|(_, row)| row.iter().any(|&byte| byte != 0));
    rows.map(|(at, row)| {
        let bytes: Vec<String> = row.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{}: {}", 16 * at, bytes.join(" "))
    })
    .collect()
}

#[test]
fn the_page_shows_this_vector() {
    let text = include_str!("../../../../../docs/formats/missed.md");
    let vectors: Vec<&str> = text.split("```text\n").skip(1).collect();
    let vector = |at: usize| -> Vec<&str> {
        let (rows, _) = vectors[at].split_once("```").unwrap();
        rows.lines().collect()
    };
    assert_eq!(rows(&page(0, vec![0x1112]).encode()), vector(0));
    assert_eq!(rows(&page(2, bits(&[0, 9, 32_127])).encode()), vector(1));
}

#[test]
fn what_was_encoded_decodes_to_the_same_and_no_bit_may_differ() {
    for page in [page(0, vec![9]), page(15, bits(&[5]))] {
        let bytes = page.encode();
        assert_eq!(Page::decode(&bytes), Ok(page));
        for bit in (0..8 * SECTOR_SIZE).step_by(7) {
            let mut wrong = bytes;
            wrong[bit / 8] ^= 1 << (bit % 8);
            assert!(Page::decode(&wrong).is_err(), "bit {bit}");
        }
    }
    assert_eq!(Page::decode(&[0; SECTOR_SIZE]), Err(PageError::Absent));
    assert_eq!(Page::decode(&[0; 7]), Err(PageError::Absent));
}

#[test]
fn what_cannot_be_is_refused_although_its_checksum_is_right() {
    let mut bytes = page(0, vec![9]).encode();
    for (at, value, error) in [
        (at::VERSION, 2, PageError::Version { version: 2 }),
        (at::NUMBER, 16, PageError::Contents),
        (at::DRIVE, 64, PageError::Contents),
        (at::NUMBER + 1, 1, PageError::Contents),
        (at::BITS + 8, 1, PageError::Contents),
    ] {
        let before = std::mem::replace(&mut bytes[at], value);
        let checksum = crc32c::crc32c(&bytes[..at::CHECKSUM]);
        put(&mut bytes, at::CHECKSUM, &checksum.to_le_bytes());
        assert_eq!(Page::decode(&bytes), Err(error), "byte {at}");
        bytes[at] = before;
    }
}

#[test]
fn regions_are_as_small_as_was_asked_for_and_no_more_than_there_is_room_for() {
    let key = |stripes, least| MapKey::new(DriveIdx::new(0), 1, stripes, least);
    assert_eq!((key(1, 1).shift, key(1, 1).regions), (0, 1));
    assert_eq!((key(100, 32).shift, key(100, 32).regions), (5, 4));
    // 2 TB in chunks of 64 KiB: 4 MiB each, though 2 MiB were asked for.
    assert_eq!((key(30_500_000, 32).shift, key(30_500_000, 32).regions), (6, 476_563));
    let huge = key(1 << 40, 32);
    assert!(huge.regions <= REGIONS_MAX && huge.regions > REGIONS_MAX / 4, "{huge:?}");
    assert!(huge.is_of(1 << 40) && !huge.is_of((1 << 40) + (1 << huge.shift)));
    assert!(huge.pages() <= PAGES);
    let full = key(REGIONS_MAX, 1);
    assert_eq!((full.regions, full.is_of(REGIONS_MAX)), (REGIONS_MAX, true));
}

/// What a member has in the first of its slots: the head, and the first page of bits.
fn on(member: u8, head: PageCopy, bits: PageCopy) -> Vec<PageCopy> {
    let salted = |copy| match copy {
        PageCopy::Read(page) => {
            PageCopy::Read(Box::new(Page { holder: Uuid([member; 16]), ..*page }))
        }
        copy => copy,
    };
    let mut pages = vec![PageCopy::Nothing; MAP_SECTORS as usize];
    (pages[0], pages[1]) = (salted(head), salted(bits));
    pages
}

fn found(members: &[(u8, Vec<PageCopy>)], survives: usize) -> Vec<FoundMap> {
    let of = |(member, pages): &(u8, Vec<PageCopy>)| (Uuid([*member; 16]), pages.clone());
    let all: Vec<(Uuid, Vec<PageCopy>)> = members.iter().map(of).collect();
    let on: Vec<MapsOn<'_>> = all
        .iter()
        .zip(0..)
        .map(|((member, pages), at)| MapsOn { drive: DriveIdx::new(at), member: *member, pages })
        .collect();
    let drives = [DriveIdx::new(3)].into_iter();
    let is_left = |lost: &[DriveIdx]| lost.len() <= survives;
    find_maps(Uuid([0xA0; 16]), 64 * 70_000, drives, &on, is_left)
}

fn read(page: Page) -> PageCopy {
    PageCopy::Read(Box::new(page))
}

#[test]
fn copies_are_put_together_and_those_of_other_members_do_not_count() {
    let head = || read(page(0, vec![9]));
    let one = on(1, head(), read(page(1, bits(&[3]))));
    let other = on(2, head(), read(page(1, bits(&[64]))));
    let maps = found(&[(1, one.clone()), (2, other.clone())], 0);
    assert_eq!((maps.len(), maps[0].last, &maps[0].words[..2]), (1, 9, &[8, 1][..]));
    // The second was copied from another drive.
    let maps = found(&[(1, one.clone()), (7, other)], 0);
    assert_eq!(maps[0].words[..2], [8, 0]);
    // A page of an earlier map.
    let old = Page { key: MapKey { since: 1, ..key() }, ..page(1, bits(&[7])) };
    let maps = found(&[(1, one), (2, on(2, head(), read(old)))], 0);
    assert_eq!(maps[0].words[..2], [8, 0]);
    assert_eq!(found(&[(1, on(1, PageCopy::Nothing, PageCopy::Nothing))], 0), []);
}

/// A run began it in one slot and was cut off before the books said so; the next one began the same map in another.
#[test]
fn same_map_in_two_slots_says_what_both_say() {
    let head = || read(page(0, vec![9]));
    let slots = [bits(&[3]), bits(&[64])].map(|bits| on(1, head(), read(page(1, bits))));
    for pages in [slots.concat(), slots.iter().rev().cloned().collect::<Vec<_>>().concat()] {
        let maps = found(&[(1, pages)], 0);
        assert_eq!((maps.len(), &maps[0].words[..2]), (1, &[8, 1][..]));
    }
}

#[test]
fn what_cannot_be_read_counts_as_missed_once_nothing_else_need_have_it() {
    let head = || read(page(0, vec![9]));
    let bad = on(1, head(), PageCopy::Unreadable);
    let good = on(2, head(), read(page(1, bits(&[3]))));
    let maps = found(&[(1, bad.clone()), (2, good.clone())], 1);
    assert_eq!(maps[0].words[..2], [8, 0]);
    let maps = found(&[(1, bad), (2, good.clone())], 0);
    assert!(maps[0].words[..WORDS_IN_PAGE].iter().all(|&word| word == u64::MAX));
    assert_eq!(maps[0].words[WORDS_IN_PAGE..], vec![0; key().words() - WORDS_IN_PAGE]);
    // A newer head may be on the first.
    let headless = on(1, PageCopy::Unreadable, PageCopy::Nothing);
    assert_eq!(found(&[(1, headless.clone()), (2, good.clone())], 0), []);
    assert_eq!(found(&[(1, headless), (2, good)], 1).len(), 1);
}
