//! What is converted and back, and what is refused.

use levelhead_units::Bytes;

use super::*;
use crate::meta::reserve::Division;
use crate::{GoesOn, RebuildWish, ScrubMark};

fn extent(lba: u64, sectors: u64) -> Extent {
    Extent::new(Lba::new(lba), Sectors::new(sectors))
}

/// The bytes that `offset: hex` lines name; the others are zero.
fn bytes_of(lines: &str, sectors: usize) -> Vec<u8> {
    let mut bytes = vec![0; sectors * SECTOR_SIZE];
    for line in lines.lines() {
        let (offset, row) = line.split_once(": ").unwrap();
        let row: Vec<u8> =
            row.split(' ').map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect();
        put(&mut bytes, offset.parse().unwrap(), &row);
    }
    bytes
}

/// A place with the values of the first vector that the page of version 2 had, of an array that was stopped cleanly with all
/// its drives.
fn example() -> Old {
    let member = |place: u8| Member {
        stored: Generation(0x0102_0304_0506_0708),
        given: Generation(0x0102_0304_0506_0708),
        ..Member::new(Uuid([0xB0 + place; 16]), Membership::Present)
    };
    let metadata = Metadata {
        generation: Generation(0x0102_0304_0506_0708),
        array: Uuid(std::array::from_fn(|at| 0xA0 + at as u8)),
        run: Uuid([0xC0; 16]),
        base: Generation::NONE,
        spec: "eraid:5+1,e=2,chunk=8KiB".parse().unwrap(),
        drive_size: Sectors::new(261_600),
        state: State::Clean,
        forced: Forced::Yes,
        synced: 0,
        synced_last: 1_000,
        journal: Some(Kept { first: 0x1112_1314_1516_1718, logs: Logs::Parts }),
        wishes: Wishes::default(),
        members: (0..6).map(member).collect(),
        damaged: DamagedList::default(),
    };
    let size = Sectors::new(262_144);
    let reserved = today(&[extent(100_256, 16)], size);
    Old { metadata, own: Own { drive: DriveIdx::new(4), size, reserved } }
}

/// Makes the checksum right again.
fn seal(bytes: &mut [u8]) {
    let checksum = crc32c::crc32c(&bytes[..at::CHECKSUM]);
    put(bytes, at::CHECKSUM, &checksum.to_le_bytes());
}

/// The first vector of the page of version 2: dirty, with a failed drive.
const DIRTY: &str = "\
0: 6c 65 76 65 6c 68 65 61 64 20 61 72 72 61 79 00
16: 02 00 00 00 01 00 00 00 00 00 00 00 00 00 00 00
32: 00 00 00 00 00 00 00 00 13 00 00 00 00 00 00 00
48: 08 07 06 05 04 03 02 01 a0 a1 a2 a3 a4 a5 a6 a7
64: a8 a9 aa ab ac ad ae af b4 b4 b4 b4 b4 b4 b4 b4
80: b4 b4 b4 b4 b4 b4 b4 b4 c0 c0 c0 c0 c0 c0 c0 c0
96: c0 c0 c0 c0 c0 c0 c0 c0 04 65 05 01 02 00 00 00
112: 02 00 00 00 01 01 01 08 e0 fd 03 00 00 00 00 00
128: 00 00 04 00 00 00 00 00 00 00 00 00 00 00 00 00
144: e8 03 00 00 00 00 00 00 18 17 16 15 14 13 12 11
288: 03 01 00 00 00 00 00 00 00 00 00 00 00 00 00 00
1280: b0 b0 b0 b0 b0 b0 b0 b0 b0 b0 b0 b0 b0 b0 b0 b0
1296: b1 b1 b1 b1 b1 b1 b1 b1 b1 b1 b1 b1 b1 b1 b1 b1
1312: b2 b2 b2 b2 b2 b2 b2 b2 b2 b2 b2 b2 b2 b2 b2 b2
1328: b3 b3 b3 b3 b3 b3 b3 b3 b3 b3 b3 b3 b3 b3 b3 b3
1344: b4 b4 b4 b4 b4 b4 b4 b4 b4 b4 b4 b4 b4 b4 b4 b4
1360: b5 b5 b5 b5 b5 b5 b5 b5 b5 b5 b5 b5 b5 b5 b5 b5
2304: 00 00 00 00 00 00 00 00 01 00 00 00 01 00 00 00
2320: 01 00 00 00 00 00 00 00 3f 00 00 00 04 00 00 00
2336: 40 00 00 00 00 00 00 00 80 00 00 00 03 00 00 00
2352: c0 00 00 00 00 00 00 00 40 00 00 00 04 00 00 00
2368: a0 87 01 00 00 00 00 00 10 00 00 00 02 00 00 00
2384: 00 ff 03 00 00 00 00 00 80 00 00 00 05 00 00 00
2400: 80 ff 03 00 00 00 00 00 7f 00 00 00 04 00 00 00
2416: ff ff 03 00 00 00 00 00 01 00 00 00 01 00 00 00
4092: 7d 60 15 e6";

/// The vector of the page of the list of version 2.
const LIST: &str = "\
0: 6c 65 76 65 6c 68 65 61 64 20 64 61 6d 61 67 65
16: 01 00 00 00 03 00 00 00 08 07 06 05 04 03 02 01
32: a0 a0 a0 a0 a0 a0 a0 a0 a0 a0 a0 a0 a0 a0 a0 a0
48: b2 b2 b2 b2 b2 b2 b2 b2 b2 b2 b2 b2 b2 b2 b2 b2
64: 33 20 ea 3e 00 00 00 00 00 00 00 00 00 00 00 00
4080: 00 00 00 00 00 00 00 00 00 00 00 00 12 06 f8 cc
4096: e8 03 00 00 00 00 00 00 03 00 00 00 00 02 00 00
4112: d0 07 00 00 00 00 00 00 01 00 00 00 00 02 00 00
4128: e8 03 00 00 00 00 00 00 01 00 00 00 01 05 00 00";

#[test]
fn vector_of_the_page_is_refused_until_it_is_clean_and_has_all_drives() {
    let mut bytes = bytes_of(DIRTY, 1);
    let known = identity(&bytes).unwrap();
    let Old { metadata, own } = example();
    assert_eq!(known, Identity { array: metadata.array, spec: metadata.spec, size: own.size });
    assert_eq!(decode(&bytes), Err(Version2Error::Unclean));
    bytes[at::STATE] = 0;
    seal(&mut bytes);
    let drive = DriveIdx::new(2);
    assert_eq!(decode(&bytes), Err(Version2Error::NotPresent { drive }));
    put(&mut bytes, 288, &[0; 2]);
    seal(&mut bytes);
    assert_eq!(decode(&bytes), Ok(example()));
    assert_eq!(encode(&example()).unwrap()[..], bytes[..]);
}

#[test]
fn what_was_encoded_decodes_to_the_same() {
    let found = crate::ScrubFound { unreadable: 1, wrong: 2, unrepaired: 3, unlocated: 4 };
    let scrub = Some(ScrubMark { goes_on: GoesOn::WhenTold, to: 3, found });
    let rebuild = RebuildWish { rate_min: Some(Bytes::new(5_000_000)), is_paused: true };
    for (text, journals) in [
        ("raid0:3", 0),
        ("raid4:3+1", 0),
        ("raid5:5+1,chunk=512KiB", 0),
        ("raid5:3+1", 2),
        ("raid6:6+2,parity=fixed", 0),
        ("raid1:5,chunk=4KiB", 0),
        ("raid10:7,chunk=8KiB", 0),
        ("eraid:5+1,e=2,chunk=8KiB", 0),
    ] {
        let spec: Spec = text.parse().unwrap();
        let spec = if journals > 0 { spec.with_journals(journals).unwrap() } else { spec };
        let size = Sectors::new(100_000);
        let division = Division::of(&spec, size).unwrap();
        let kinds = [None, Some(Logs::All), Some(Logs::Parts)].into_iter();
        for logs in kinds.filter(|logs| logs.is_some() || journals == 0) {
            if logs.is_some() && division.journal() == Sectors::ZERO && journals == 0 {
                continue;
            }
            for wishes in [Wishes::default(), Wishes { rebuild, scrub }] {
                let mut old = example();
                let uuids = (0..spec.members()).map(|at| Uuid([at as u8 + 1; 16]));
                let member = |uuid| Member {
                    stored: old.metadata.generation,
                    given: old.metadata.generation,
                    ..Member::new(uuid, Membership::Present)
                };
                old.metadata.members = uuids.map(member).collect();
                old.metadata.journal = logs.map(|logs| Kept { first: 7, logs });
                old.metadata.drive_size = division.drive_size;
                (old.metadata.spec, old.metadata.wishes) = (spec, wishes);
                old.metadata.synced_last = 1;
                old.own.drive = DriveIdx::new(1);
                (old.own.size, old.own.reserved) = (size, division.reserved(size));
                let bytes = encode(&old).unwrap();
                assert_eq!(decode(&bytes), Ok(old), "{text}, {logs:?}, {wishes:?}");
            }
        }
    }
}

fn is_torn(decoded: &Result<Old, Version2Error>) -> bool {
    matches!(decoded, Err(Version2Error::Superblock(SuperblockError::Checksum { .. })))
}

#[test]
fn every_changed_byte_is_refused_or_means_something_else() {
    let bytes = encode(&example()).unwrap();
    assert_eq!(decode(&bytes[1..]), Err(SuperblockError::Absent.into()));
    for at in 0..at::CHECKSUM {
        for bit in 0..8 {
            let mut changed = bytes;
            changed[at] ^= 1 << bit;
            if at > 16 {
                let torn = decode(&changed);
                assert!(is_torn(&torn), "byte {at}: {torn:?}");
            }
            seal(&mut changed);
            match decode(&changed) {
                // V1.
                Ok(old) => assert_eq!(encode(&old).unwrap(), changed, "byte {at}"),
                Err(error) => assert!(!error.to_string().is_empty(), "byte {at}"),
            }
        }
    }
    let refused = |at: usize, value: u8| {
        let mut changed = bytes;
        changed[at] = value;
        seal(&mut changed);
        decode(&changed).unwrap_err()
    };
    assert_eq!(refused(at::VERSION, 3), SuperblockError::Version { version: 3 }.into());
    assert_eq!(
        refused(at::INCOMPATIBLE + 2, 1),
        SuperblockError::Features { bits: 1 << 16 }.into()
    );
    assert_eq!(refused(at::COMPATIBLE + 1, 1), SuperblockError::Features { bits: 1 << 8 }.into());
    assert_eq!(refused(at::READ_ONLY, 2), SuperblockError::Features { bits: 2 }.into());
    assert_eq!(
        refused(at::INCOMPATIBLE, 0x33),
        SuperblockError::Unnamed { offset: at::INCOMPATIBLE }.into()
    );
    assert_eq!(refused(at::RESERVED_COUNT, 97), field("number of reserved places", 97));
    assert_eq!(refused(at::DRIVE, 6), field("drive", 6));
    assert_eq!(refused(4_000, 1), SuperblockError::Unnamed { offset: 4_000 }.into());
    assert_eq!(refused(at::SYNCED + 4, 1), MetadataError::Field("stripes in sync").into());
}

#[test]
fn what_version_2_cannot_say_is_not_encoded() {
    let mut dirty = example();
    dirty.metadata.state = State::Dirty;
    assert_eq!(encode(&dirty), Err(Version2Error::Unclean));
    let mut away = example();
    away.metadata.members[3].membership = Membership::Missing;
    assert_eq!(encode(&away), Err(Version2Error::NotPresent { drive: DriveIdx::new(3) }));
    let mut elsewhere = example();
    elsewhere.own.reserved.swap(0, 1);
    assert_eq!(encode(&elsewhere), Err(field("number of reserved places", 6)));
    let mut many = example();
    many.own.reserved = today(&vec![extent(1_000, 4); PIECES_MAX + 1], many.own.size);
    assert_eq!(encode(&many), Err(field("number of reserved places", PIECES_MAX as u64 + 6)));
}

/// The metadata of the array, and the member, that the vector of the list names.
fn listed() -> (Metadata, Uuid) {
    let metadata = Metadata { array: Uuid([0xA0; 16]), ..example().metadata };
    (metadata, Uuid([0xB2; 16]))
}

#[test]
fn list_of_the_page_is_encoded_and_what_lies_beyond_the_drives_is_refused() {
    let (mut metadata, member) = listed();
    let slot = bytes_of(LIST, 64);
    let none = [0; SECTOR_SIZE];
    let impossible = Err(MetadataError::Field("damaged sectors").into());
    assert_eq!(decode_lists([&slot, &none], &metadata, member), impossible, "2^32 sectors");
    metadata.drive_size = Sectors::new(1 << 33);
    let list = decode_lists([&none, &slot], &metadata, member).unwrap().unwrap();
    let ranges: Vec<Extent> = list.damaged.ranges().map(|range| range.extent).collect();
    assert_eq!(ranges, [extent(1_000, 3), extent(2_000, 1), extent(1_000, 0x1_0000_0001)]);
    assert_eq!(list.generation, 0x0102_0304_0506_0708);
    let bytes = encode_list(&list, metadata.array, member);
    assert_eq!(bytes[..], slot[..bytes.len()]);
    let other = Uuid([0xB3; 16]);
    assert_eq!(decode_lists([&slot, &none], &metadata, other), Ok(None), "another member's");
    assert_eq!(decode_lists([&none, &none], &metadata, member), Ok(None));
    let mut rot = slot.clone();
    rot[4_096] ^= 1;
    assert_eq!(decode_lists([&rot, &slot], &metadata, member), Ok(Some(list)), "one was cut off");
    assert_eq!(decode_lists([&rot, &rot], &metadata, member), Err(MetadataError::Checksum.into()));
    let mut unnamed = slot.clone();
    unnamed[70] = 1;
    seal(&mut unnamed[..SECTOR_SIZE]);
    assert_eq!(
        decode_lists([&unnamed, &none], &metadata, member),
        Err(MetadataError::Field("unnamed bytes").into())
    );
    let mut many = slot;
    put(&mut many, 20, &u32::MAX.to_le_bytes());
    seal(&mut many[..SECTOR_SIZE]);
    assert!(decode_lists([&many, &none], &metadata, member).is_err());
}

#[test]
fn newer_list_counts_and_one_with_too_many_ranges_is_widened() {
    let (metadata, member) = listed();
    let slot_of = |generation: u64, ranges: u64| {
        let mut bytes = Vec::new();
        for at in 0..ranges {
            bytes.extend((3 * at).to_le_bytes());
            bytes.extend([1, 0, 0, 0, 0, 1, 0, 0]);
        }
        let damaged = DamagedList::decode(&bytes, false, 6, metadata.drive_size).unwrap();
        encode_list(&List { generation, damaged }, metadata.array, member)
    };
    for (first, second) in [((7, 5), (8, 6)), ((8, 6), (7, 5))] {
        let slots = [first, second].map(|(generation, ranges)| slot_of(generation, ranges));
        let list = decode_lists(slots.each_ref().map(Vec::as_slice), &metadata, member);
        let list = list.unwrap().unwrap();
        assert_eq!((list.generation, list.damaged.ranges().count()), (8, 6));
        assert!(!list.damaged.is_widened());
    }
    let full = slot_of(9, LIST_RANGES_MAX as u64);
    let list = decode_lists([&full, &[]], &metadata, member).unwrap().unwrap();
    assert_eq!(list.damaged.ranges().count(), RANGES_MAX);
    assert!(list.damaged.is_widened());
    let is_on = |at: u64| {
        list.damaged.covers(crate::shape::Cell { drive: DriveIdx::new(1), lba: Lba::new(3 * at) })
    };
    assert!((0..LIST_RANGES_MAX as u64).all(is_on), "none is forgotten");
}
