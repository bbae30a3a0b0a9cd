//! What the page says, byte by byte, and what is refused.

use levelhead_stats::Streams;

use levelhead_units::Bytes;

use super::*;
use crate::background::progress::ScrubFound;
use crate::durable::membership::Why;
use crate::durable::reserve::Apart;
use crate::durable::wishes::{GoesOn, RebuildWish, ScrubMark};

const PAGE: &str = include_str!("../../../../../docs/formats/superblock.md");

const fn place(lba: u64, sectors: u64, purpose: Use) -> Reserved {
    Reserved { extent: Extent::new(Lba::new(lba), Sectors::new(sectors)), purpose }
}

/// The superblock that the page shows.
fn example() -> Superblock {
    let members = (0..6).map(|at| Member {
        uuid: Uuid([0xB0 + at; 16]),
        membership: match at {
            2 => Membership::Lost { why: Why::Silent },
            _ => Membership::Present,
        },
    });
    let book = Book {
        generation: 0x0102_0304_0506_0708,
        array: Uuid(std::array::from_fn(|at| 0xA0 + at as u8)),
        run: Uuid([0xC0; 16]),
        spec: "eraid:5+1,e=2,chunk=8KiB".parse().unwrap(),
        drive_size: Sectors::new(261_600),
        state: State::Dirty,
        forced: Forced::Yes,
        synced: 0,
        synced_last: 1_000,
        journal: Some(Kept { first: 0x1112_1314_1516_1718, logs: Logs::Parts }),
        missed: DriveSet::EMPTY,
        wishes: Wishes::default(),
        members: members.collect(),
    };
    let own = Own {
        drive: DriveIdx::new(4),
        size: Sectors::new(262_144),
        reserved: vec![
            place(0, 1, Use::Superblock),
            place(1, 63, Use::Free),
            place(64, 128, Use::Maps),
            place(192, 64, Use::Free),
            place(100_256, 16, Use::Journal),
            place(261_888, 128, Use::Damaged),
            place(262_016, 127, Use::Free),
            place(262_143, 1, Use::Superblock),
        ],
    };
    Superblock { book, own, read_only: 0 }
}

/// The second one that the page shows: what the first one does not have.
fn busier_example() -> Superblock {
    let mut superblock = example();
    let book = &mut superblock.book;
    book.spec = "eraid:4+2,e=2,chunk=8KiB".parse().unwrap();
    book.members[2].membership = Membership::Filling { to: 0x0203 };
    book.members[5].membership = Membership::Lost { why: Why::Failed };
    book.missed = DriveSet::EMPTY.with(DriveIdx::new(2)).with(DriveIdx::new(5));
    book.forced = Forced::No;
    let found = ScrubFound { unreadable: 0x21, wrong: 0x22, unrepaired: 0x23, unlocated: 0x24 };
    let rate_min = Some(Bytes::new(5_000_000));
    book.wishes = Wishes {
        rebuild: RebuildWish { rate_min, is_paused: true },
        scrub: Some(ScrubMark { goes_on: GoesOn::Yes, to: 0x0304, found }),
    };
    superblock
}

/// Makes the checksum right again.
fn seal(bytes: &mut [u8]) {
    let checksum = crc32c::crc32c(&bytes[..at::CHECKSUM]);
    put(bytes, at::CHECKSUM, &checksum.to_le_bytes());
}

#[test]
fn what_was_encoded_decodes_to_the_same() {
    for text in [
        "raid0:3",
        "raid4:3+1",
        "raid5:5+1,chunk=512KiB",
        "raid6:6+2,parity=fixed",
        "raid1:2",
        "raid1:5,chunk=4KiB",
        "raid10:4",
        "raid10:7,chunk=8KiB",
    ] {
        let spec: Spec = text.parse().unwrap();
        let mut superblock = example();
        superblock.book.spec = spec;
        superblock.book.drive_size = spec.chunk() * 3;
        superblock.book.synced_last = 3;
        let member = |at| Member { uuid: Uuid([at; 16]), membership: Membership::Present };
        superblock.book.members = (0..spec.drives() as u8).map(member).collect();
        superblock.own.drive = DriveIdx::new(1);
        assert_eq!(Superblock::decode(&superblock.encode()), Ok(superblock), "{text}");
    }
    let mut clean = example();
    (clean.book.state, clean.book.forced) = (State::Clean, Forced::No);
    assert_eq!(Superblock::decode(&clean.encode()), Ok(clean));
}

/// The page lists every byte that is not zero, as `offset: bytes`.
#[test]
fn page_and_code_have_the_same_bytes() {
    let (_, after) = PAGE.split_once("## Test vectors").expect("the page has test vectors");
    let mut blocks = after.split("```text\n").skip(1);
    for superblock in [example(), busier_example()] {
        let block = blocks.next().expect("each has a block");
        check_bytes(&superblock, block.split_once("```").expect("the block ends").0);
    }
    assert_eq!(blocks.next(), None);
}

fn check_bytes(superblock: &Superblock, block: &str) {
    let mut expected = [0; SECTOR_SIZE];
    for line in block.lines() {
        let (offset, bytes) = line.split_once(": ").expect("offset: bytes");
        let bytes: Vec<u8> =
            bytes.split(' ').map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect();
        put(&mut expected, offset.parse().unwrap(), &bytes);
    }
    let encoded = superblock.encode();
    let lines = |bytes: &[u8]| -> Vec<String> {
        let rows = bytes.chunks(16).enumerate().filter(|(_, row)| row.iter().any(|&b| b != 0));
        let hex = |row: &[u8]| row.iter().map(|b| format!("{b:02x}")).collect::<Vec<_>>().join(" ");
        rows.map(|(at, row)| format!("{}: {}", at * 16, hex(row))).collect()
    };
    assert_eq!(lines(&encoded), lines(&expected));
    assert_eq!(Superblock::decode(&expected).as_ref(), Ok(superblock));
}

#[test]
fn flip_of_any_bit_is_detected() {
    let good = example().encode();
    for byte in 0..SECTOR_SIZE {
        for bit in 0..8 {
            let mut bytes = good;
            bytes[byte] ^= 1 << bit;
            assert!(Superblock::decode(&bytes).is_err(), "bit {bit} of byte {byte}");
        }
    }
}

fn sentence(at: usize, value: &[u8]) -> String {
    let mut bytes = example().encode();
    put(&mut bytes, at, value);
    seal(&mut bytes);
    Superblock::decode(&bytes).unwrap_err().to_string()
}

#[test]
fn impossible_fields_are_refused_in_one_sentence() {
    let check = |at: usize, value: &[u8], expected: &str| {
        assert_eq!(sentence(at, value), expected);
    };
    let cannot = |at: usize, value: &[u8], expected: &str| {
        assert_eq!(sentence(at, value), format!("the superblock cannot have {expected}"));
    };
    check(at::MAGIC, b"L", "no superblock was found");
    check(at::VERSION, &[1], "the superblock is of version 1, this program reads 2");
    check(at::CODE_VERSION, &[9], "the array's codewords are of version 9, this program knows 1");
    check(
        at::EXPANSION,
        &[3],
        "the superblock describes no array: a chunk of 8KiB is 2 sectors, which e=3 sectors do not divide",
    );
    cannot(at::FAMILY, &[7], "7 as its family");
    check(
        at::FAMILY,
        &[10],
        "the superblock describes no array: a stripe of raid10 has one data chunk, got 5",
    );
    check(
        at::DRIVE_COUNT,
        &[9],
        "the superblock describes no array: a stripe of eraid lies on all drives, got 6 of 9",
    );
    check(at::DRIVE_COUNT, &[6], "byte 160 of the superblock is not zero and means nothing");
    cannot(at::PARITY, &[2], "2 as its parity");
    cannot(at::STATE, &[2], "2 as its state");
    cannot(at::FORCED, &[2], "2 as its mark of what was forced");
    cannot(at::DRIVE, &[6], "6 as its drive");
    cannot(at::DRIVE, &[2], "2 as its drive");
    cannot(at::MEMBERSHIPS, &[9], "9 as its state of a drive");
    cannot(at::MEMBERSHIPS, &[4], "2 as its number of drives that are not present");
    cannot(at::MEMBER, &[1], "13021231110853800961 as its identity of the member");
    cannot(at::GENERATION, &[0xFF; 8], "18446744073709551615 as its generation");
    cannot(at::DRIVE_SIZE, &[1, 0, 0], "1 as its drive size");
    cannot(at::DRIVE_SIZE, &[0, 0xFE, 3], "262144 as its size of the member");
    cannot(at::SYNCED, &[0, 0, 3], "196608 as its number of stripes in sync");
    cannot(at::SYNCED_LAST, &[0, 0, 3], "196608 as its number of stripes in sync");
    cannot(at::RESERVED_COUNT, &[97], "97 as its number of reserved places");
    cannot(at::RESERVED_COUNT, &[6], "6 as its number of places for superblocks");
    cannot(at::RESERVED + 12, &[9], "9 as its use of a reserved place");
    // The piece of the journal cuts a chunk in two.
    cannot(at::RESERVED + 4 * RESERVED_BYTES, &[0xA1], "261600 as its drive size");
    let short = Superblock::decode(&[0; 512]).unwrap_err().to_string();
    assert_eq!(short, "a superblock has 4096 bytes, got 512");
}

#[test]
fn array_keeps_maps_with_a_journal_and_of_drives_that_are_not_present() {
    let refused = |change: &dyn Fn(&mut Book)| {
        let mut superblock = example();
        change(&mut superblock.book);
        Superblock::decode(&superblock.encode()).map(drop).map_err(|error| error.to_string())
    };
    let mapped = |at: usize| DriveSet::EMPTY.with(DriveIdx::from_usize(at));
    assert_eq!(refused(&|book| book.missed = mapped(2)), Ok(()));
    assert_eq!(refused(&|book| book.journal = None), Ok(()));
    let cannot = |bits: u64| {
        Err(format!("the superblock cannot have {bits} as its set of drives with a map"))
    };
    assert_eq!(refused(&|book| book.missed = mapped(1)), cannot(2));
    let unjournaled = |book: &mut Book| (book.missed, book.journal) = (mapped(2), None);
    assert_eq!(refused(&unjournaled), cannot(4));
}

#[test]
fn a_book_is_on_enough_drives_when_no_loss_that_is_survived_takes_all_of_them() {
    let on = |book: &Book, drives: &[usize]| {
        book.is_on_enough(drives.iter().map(|&at| DriveIdx::from_usize(at)).collect())
    };
    let mut book = example().book;
    assert!(on(&book, &[0]), "drive 2 is lost: all others are needed");
    assert!(!on(&book, &[]));
    book.members[2].membership = Membership::Present;
    assert!(!on(&book, &[0]) && on(&book, &[0, 5]));
}

#[test]
fn copies_of_one_pair_cannot_both_be_gone() {
    let spec: Spec = "raid10:4".parse().unwrap();
    let with = |gone: &[u8]| {
        let mut superblock = example();
        superblock.book.spec = spec;
        superblock.book.drive_size = spec.chunk() * 3;
        superblock.book.synced_last = 0;
        let lost = Membership::Lost { why: Why::Failed };
        let member = |at| Member {
            uuid: Uuid([at; 16]),
            membership: if gone.contains(&at) { lost } else { Membership::Present },
        };
        superblock.book.members = (0..4).map(member).collect();
        superblock.own.drive = DriveIdx::new(3);
        Superblock::decode(&superblock.encode()).map(drop).map_err(|error| error.to_string())
    };
    assert_eq!(with(&[0, 2]), Ok(()));
    let refused = "the superblock cannot have 2 as its number of drives that are not present";
    assert_eq!(with(&[0, 1]), Err(refused.to_owned()));
}

/// An array with a journal on two drives of its own, as one of its drives has it.
fn apart(drive: u8) -> Superblock {
    let mut superblock = example();
    let spec = superblock.book.spec.with_journals(2).unwrap();
    let member = |at| Member { uuid: Uuid([at; 16]), membership: Membership::Present };
    superblock.book.spec = spec;
    superblock.book.members = (0..8).map(member).collect();
    superblock.own.drive = DriveIdx::new(drive);
    if drive < 6 {
        superblock.own.reserved.retain(|place| place.purpose != Use::Journal);
    } else {
        let (size, whole) = (Sectors::new(4_096), Apart::of(&spec, Sectors::new(4_096)).unwrap());
        (superblock.own.size, superblock.own.reserved) = (size, whole.reserved(size));
    }
    superblock
}

#[test]
fn a_journal_on_drives_of_its_own_is_there_and_nowhere_else() {
    for drive in [0, 5, 6, 7] {
        let bytes = apart(drive).encode();
        assert_eq!((bytes[161], u64_at(&bytes, at::INCOMPATIBLE) & 0x40), (2, 0x40));
        assert_eq!(Superblock::decode(&bytes), Ok(apart(drive)), "drive {drive}");
    }
    let refused = |superblock: Superblock, name| {
        let refused = Superblock::decode(&superblock.encode());
        let is_meant =
            matches!(refused, Err(SuperblockError::Field { name: of, .. }) if of == name);
        assert!(is_meant, "{refused:?}");
    };
    let mut with_ring = apart(0);
    with_ring.own.reserved = example().own.reserved;
    refused(with_ring, "number of places for a journal");
    let mut without = apart(6);
    without.own.reserved.retain(|place| place.purpose != Use::Journal);
    refused(without, "number of places for a journal");
    let mut overlapping = apart(6);
    overlapping.own.reserved[3].extent.sectors += Sectors::new(1);
    refused(overlapping, "size of the member");
    let mut none_left = apart(0);
    for at in [6, 7] {
        none_left.book.members[at].membership = Membership::Lost { why: Why::Failed };
    }
    refused(none_left, "number of drives that are not present");
    let mut bytes = apart(0).encode();
    bytes[161] = 1;
    seal(&mut bytes);
    assert!(matches!(Superblock::decode(&bytes), Err(SuperblockError::Spec(_))));
}

/// A later program may use what this one does not name; it says so by a feature.
#[test]
fn drive_that_is_being_filled_is_a_feature_that_is_there_then_and_only_then() {
    let mut superblock = example();
    superblock.book.members[2].membership = Membership::Filling { to: 99 };
    let bytes = superblock.encode();
    assert_eq!(u64_at(&bytes, at::INCOMPATIBLE), u64_at(&example().encode(), at::INCOMPATIBLE) | 4);
    assert_eq!(Superblock::decode(&bytes), Ok(superblock.clone()));
    for (book, features) in [(superblock, 0x11_u64), (example(), 0x15)] {
        let mut bytes = book.encode();
        put(&mut bytes, at::INCOMPATIBLE, &features.to_le_bytes());
        seal(&mut bytes);
        let refused = Superblock::decode(&bytes).unwrap_err();
        assert_eq!(refused, SuperblockError::Field { name: "features", value: features });
    }
    let mut too_far = example();
    let to = too_far.book.stripes() + 1;
    too_far.book.members[2].membership = Membership::Filling { to };
    assert!(Superblock::decode(&too_far.encode()).is_err());
}

#[test]
fn wishes_are_a_feature_that_is_there_then_and_only_then() {
    let none = example();
    let mut some = example();
    some.book.wishes.rebuild.is_paused = true;
    assert_eq!((none.encode()[at::COMPATIBLE], some.encode()[at::COMPATIBLE]), (0, 1));
    assert_eq!(Superblock::decode(&some.encode()).as_ref(), Ok(&some));
    assert_eq!(
        sentence(at::COMPATIBLE, &[1]),
        format!("byte {} of the superblock is not zero and means nothing", at::COMPATIBLE)
    );
    // A program that knows more has said something, too.
    let mut bytes = some.encode();
    bytes[at::COMPATIBLE] |= 2;
    seal(&mut bytes);
    assert_eq!(Superblock::decode(&bytes), Ok(some.clone()));
    let found = ScrubFound::default();
    let to = some.book.stripes() + 1;
    some.book.wishes.scrub = Some(ScrubMark { goes_on: GoesOn::Yes, to, found });
    let refused = Superblock::decode(&some.encode()).unwrap_err().to_string();
    let expected =
        format!("the superblock cannot have {to} as its number of stripes that were scrubbed");
    assert_eq!(refused, expected);
}

#[test]
fn bytes_without_a_name_are_zero_unless_a_feature_says_otherwise() {
    let unnamed = [at::END, at::MEMBERSHIPS - 1, at::RESERVED + 14, at::CHECKSUM - 1];
    // Where no feature says that there are wishes, they have no name either.
    for offset in unnamed.into_iter().chain([at::WISHES]) {
        let expected = format!("byte {offset} of the superblock is not zero and means nothing");
        assert_eq!(sentence(offset, &[1]), expected);
        for feature in [at::COMPATIBLE, at::READ_ONLY] {
            let mut bytes = example().encode();
            (bytes[offset], bytes[feature]) = (1, 4);
            seal(&mut bytes);
            let read_only = if feature == at::READ_ONLY { 4 } else { 0 };
            assert_eq!(Superblock::decode(&bytes), Ok(Superblock { read_only, ..example() }));
        }
    }
    let unknown = "the array uses features that this program does not know: bits 0x8";
    assert_eq!(sentence(at::INCOMPATIBLE, &[8]), unknown);
}

/// Whatever the bytes, the answer is a superblock that encodes to itself or an error. The
/// checksum is made right, or nothing behind it would ever be reached.
#[test]
fn any_bytes_are_decoded_or_refused() {
    let mut decoded = 0;
    for seed in 0..20_000 {
        let mut rng = Streams::new(seed).stream("superblock");
        let mut bytes = example().encode();
        for _ in 0..=rng.below(4) {
            // The fields, far more often than the zeroes after them.
            let at = match rng.below(8) {
                0 => rng.below(4092),
                1 => at::RESERVED as u64 + rng.below(7 * 16),
                2 => at::MEMBERSHIPS as u64 + rng.below(6 * 16),
                _ => rng.below(at::END as u64),
            };
            bytes[at as usize] =
                if rng.below(2) == 0 { rng.below(256) } else { rng.below(8) } as u8;
        }
        seal(&mut bytes);
        if let Ok(superblock) = Superblock::decode(&bytes) {
            decoded += 1;
            let again = Superblock::decode(&superblock.encode());
            assert_eq!(again.as_ref(), Ok(&superblock), "seed {seed}");
            let Superblock { book, own, .. } = &superblock;
            let layout = Layout::new(book.spec, book.drive_size);
            assert!(layout.size() > Sectors::ZERO, "seed {seed}");
            if book.spec.data_drives().contains(own.drive) {
                let area = own.area(book.drive_size).expect("it was checked");
                assert_eq!(area.size(), book.drive_size, "seed {seed}");
            }
            assert!(own.copies().iter().all(|lba| lba.get() < own.size.get()), "seed {seed}");
        }
    }
    assert!(decoded > 1_000, "only {decoded} of 20000 got past the checks");
}

#[test]
fn uuid_is_written_in_the_usual_groups() {
    assert_eq!(example().book.array.to_string(), "a0a1a2a3-a4a5-a6a7-a8a9-aaabacadaeaf");
}
