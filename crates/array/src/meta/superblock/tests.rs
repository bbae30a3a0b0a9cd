//! What the page says, byte by byte, and what is refused.

use levelhead_stats::Streams;

use super::*;
use crate::meta::reserve::{Apart, Division, SLOT};
use crate::shape::Layout;

const PAGE: &str = include_str!("../../../../../docs/formats/superblock.md");

/// Where the fields of the shape begin.
mod shape_at {
    use super::at;

    pub(super) const FAMILY: usize = at::SHAPE;
    pub(super) const PARITY: usize = at::SHAPE + 3;
    pub(super) const DRIVE_COUNT: usize = at::SHAPE + 4;
    pub(super) const JOURNAL_COUNT: usize = at::SHAPE + 5;
    pub(super) const EXPANSION: usize = at::SHAPE + 8;
    pub(super) const DRIVE_SIZE: usize = at::SHAPE + 16;
}

const fn place(lba: u64, sectors: u64, purpose: Use) -> Reserved {
    Reserved { extent: Extent::new(Lba::new(lba), Sectors::new(sectors)), purpose }
}

/// The superblock that the page shows.
fn example() -> Superblock {
    let own = Own {
        drive: DriveIdx::new(4),
        size: Sectors::new(262_144),
        reserved: vec![
            place(0, 1, Use::Superblock),
            place(1, 254, Use::Metadata),
            place(255, 1, Use::Superblock),
            place(100_256, 16, Use::Journal),
            place(261_888, 255, Use::Free),
            place(262_143, 1, Use::Superblock),
        ],
    };
    Superblock {
        array: Uuid(std::array::from_fn(|at| 0xA0 + at as u8)),
        member: Uuid([0xB4; 16]),
        spec: "eraid:5+1,e=2,chunk=8KiB".parse().unwrap(),
        drive_size: Sectors::new(261_600),
        logs: Some(Logs::Parts),
        own,
        read_only: 0,
    }
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
        for logs in [None, Some(Logs::All), Some(Logs::Parts)] {
            let mut superblock = Superblock { spec, logs, ..example() };
            superblock.drive_size = spec.chunk() * 3;
            superblock.own.drive = DriveIdx::new(1);
            let decoded = Superblock::decode(&superblock.encode());
            // The places of the example have a ring; a stripe has to fit into it.
            let takes_all = takes_codewords(Sectors::new(16), &spec);
            assert!(logs.is_none() || takes_all, "{text}");
            assert_eq!(decoded, Ok(superblock), "{text}, {logs:?}");
        }
    }
}

/// The members of a new array, which reserve what the module `reserve` says.
#[test]
fn superblock_of_a_new_member_of_any_size_decodes_to_the_same() {
    let spec: Spec = "raid6:4+2,chunk=16KiB".parse().unwrap();
    for size in [600, 2_000, 262_144, (1 << 33) + 7].map(Sectors::new) {
        let division = Division::of(&spec, size).unwrap();
        let logs = (division.journal() > Sectors::ZERO).then_some(Logs::All);
        let own = Own { drive: DriveIdx::new(5), size, reserved: division.reserved(size) };
        let drive_size = division.drive_size;
        let superblock = Superblock { spec, drive_size, logs, own, ..example() };
        assert_eq!(Superblock::decode(&superblock.encode()).as_ref(), Ok(&superblock));
        let last = Lba::ZERO + (size - Sectors::new(1));
        assert_eq!(superblock.own.copies(), [Lba::ZERO, Lba::new(255), last]);
        assert_eq!(copies_of_unknown(size), superblock.own.copies(), "a reader looks there");
        let slots = [1, 128].map(|lba| Extent::new(Lba::new(lba), SLOT));
        assert_eq!(superblock.own.slots(), slots);
    }
}

#[test]
fn copies_are_looked_for_on_a_drive_of_any_size() {
    for (size, copies) in
        [(1, [0, 0, 0]), (2, [0, 1, 1]), (256, [0, 255, 255]), (257, [0, 255, 256])]
    {
        assert_eq!(copies_of_unknown(Sectors::new(size)), copies.map(Lba::new), "{size}");
    }
}

/// The page lists every byte that is not zero, as `offset: bytes`.
#[test]
fn page_and_code_have_the_same_bytes() {
    let (_, after) = PAGE.split_once("## Test vector").expect("the page has a test vector");
    let (_, block) = after.split_once("```text\n").expect("the vector is a block");
    let (block, _) = block.split_once("```").expect("the block ends");
    let mut expected = [0; SECTOR_SIZE];
    for line in block.lines() {
        let (offset, bytes) = line.split_once(": ").expect("offset: bytes");
        let bytes: Vec<u8> =
            bytes.split(' ').map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect();
        put(&mut expected, offset.parse().unwrap(), &bytes);
    }
    let encoded = example().encode();
    let lines = |bytes: &[u8]| -> Vec<String> {
        let rows = bytes.chunks(16).enumerate().filter(|(_, row)| row.iter().any(|&b| b != 0));
        let hex = |row: &[u8]| row.iter().map(|b| format!("{b:02x}")).collect::<Vec<_>>().join(" ");
        rows.map(|(at, row)| format!("{}: {}", at * 16, hex(row))).collect()
    };
    assert_eq!(lines(&encoded), lines(&expected));
    assert_eq!(Superblock::decode(&expected), Ok(example()));
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
    check(at::VERSION, &[4], "the superblock is of version 4, this program reads 3");
    let upgrade = "the superblock is of version 2, this program reads 3: run levelhead array upgrade on all members of its array";
    check(at::VERSION, &[2], upgrade);
    check(at::CODE_VERSION, &[9], "the array's codewords are of version 9, this program knows 1");
    check(
        shape_at::EXPANSION,
        &[3],
        "the superblock describes no array: a chunk of 8KiB is 2 sectors, which e=3 sectors do not divide",
    );
    cannot(shape_at::FAMILY, &[7], "7 as its family");
    check(
        shape_at::FAMILY,
        &[10],
        "the superblock describes no array: a stripe of raid10 has one data chunk, got 5",
    );
    check(
        shape_at::DRIVE_COUNT,
        &[9],
        "the superblock describes no array: a stripe of eraid lies on all drives, got 6 of 9",
    );
    check(shape_at::DRIVE_COUNT, &[6], "byte 84 of the superblock is not zero and means nothing");
    cannot(shape_at::PARITY, &[2], "2 as its parity");
    cannot(shape_at::DRIVE_SIZE, &[1, 0, 0], "1 as its drive size");
    cannot(shape_at::DRIVE_SIZE, &[0; 8], "0 as its drive size");
    cannot(shape_at::DRIVE_SIZE + 5, &[1, 0, 0], "1099511889376 as its drive size");
    cannot(shape_at::DRIVE_SIZE, &[0, 0xFE, 3], "262144 as its size of the member");
    cannot(at::DRIVE, &[6], "6 as its drive");
    cannot(at::MEMBER_SIZE + 5, &[2, 0, 0], "2199023517696 as its size of the member");
    cannot(at::RESERVED_COUNT, &[97], "97 as its number of reserved places");
    cannot(at::RESERVED_COUNT, &[5], "5 as its number of places for superblocks");
    cannot(at::RESERVED + 12, &[9], "9 as its use of a reserved place");
    cannot(at::RESERVED + 12, &[4], "6 as its number of places for superblocks");
    cannot(at::RESERVED + 8, &[0], "6 as its number of places for superblocks");
    cannot(at::RESERVED + RESERVED_BYTES + 12, &[4], "6 as its number of places for metadata");
    cannot(at::RESERVED + RESERVED_BYTES + 8, &[253], "6 as its number of places for metadata");
    let second = at::RESERVED + 4 * RESERVED_BYTES;
    cannot(second + 12, &[6], "6 as its number of places for metadata");
    cannot(second, &[0, 0, 0, 0, 0, 2], "2199023255552 as its reserved place");
    // The free place lies before the others; it overlaps the last superblock.
    cannot(second, &[0, 0, 0], "262144 as its size of the member");
    cannot(second + 8, &[0, 1], "262144 as its size of the member");
    // The piece of the journal cuts a chunk in two.
    cannot(at::RESERVED + 3 * RESERVED_BYTES, &[0xA1], "261600 as its drive size");
    let short = Superblock::decode(&[0; 512]).unwrap_err().to_string();
    assert_eq!(short, "a superblock has 4096 bytes, got 512");
}

/// A program that does not know a feature must not take the array for one without.
#[test]
fn features_are_there_exactly_where_they_are_used() {
    for (logs, bits) in [(None, 0), (Some(Logs::All), 0x01), (Some(Logs::Parts), 0x11)] {
        let superblock = Superblock { logs, ..example() };
        let bytes = superblock.encode();
        assert_eq!(u64_at(&bytes, at::INCOMPATIBLE), bits);
        assert_eq!(Superblock::decode(&bytes), Ok(superblock));
    }
    let refused = |bits: u8| sentence(at::INCOMPATIBLE, &[bits]);
    for bits in [0x10, 0x51, 0x80, 0x91] {
        assert_eq!(refused(bits), format!("the superblock cannot have {bits} as its features"));
    }
    for bit in [1, 2, 3, 5] {
        let expected = format!(
            "the array uses features that this program does not know: bits {:#x}",
            1 << bit
        );
        assert_eq!(refused(0x11 | 1 << bit), expected);
    }
}

/// An array with checksums says so twice, and is none without a journal.
#[test]
fn checksums_are_a_feature_of_an_array_with_a_journal() {
    let with = |logs| {
        let mut superblock = Superblock { logs, ..example() };
        superblock.spec = superblock.spec.with_checksums().unwrap();
        // Runs of whole groups with their tag sectors, and more room.
        superblock.own.reserved[3].extent.lba = Lba::new(256 + 1_538 * 65);
        let free = &mut superblock.own.reserved[4].extent;
        let (lba, end) = (Lba::new(256 + 1_538 * 65 + 16 + 2_486 * 65), free.end());
        *free = Extent::new(lba, end - lba);
        superblock.own.size += Sectors::new(1 << 16);
        superblock
    };
    let bytes = with(Some(Logs::Parts)).encode();
    assert_eq!((u64_at(&bytes, at::INCOMPATIBLE), bytes[at::SHAPE + 6]), (0x91, 1));
    assert_eq!(Superblock::decode(&bytes), Ok(with(Some(Logs::Parts))));
    let refused = Superblock::decode(&with(None).encode()).unwrap_err().to_string();
    assert_eq!(refused, "the superblock cannot have 128 as its features");
}

#[test]
fn only_what_a_newer_program_wrote_is_foreign() {
    let error = |at: usize, value: u8| {
        let mut bytes = example().encode();
        bytes[at] = value;
        seal(&mut bytes);
        Superblock::decode(&bytes).unwrap_err()
    };
    for (at, value) in [(at::VERSION, 4), (at::CODE_VERSION, 2), (at::INCOMPATIBLE + 1, 1)] {
        assert!(error(at, value).is_foreign(), "byte {at}");
    }
    for (at, value) in [(at::MAGIC, 0), (at::DRIVE, 6), (at::CHECKSUM - 1, 1)] {
        assert!(!error(at, value).is_foreign(), "byte {at}");
    }
    let mut torn = example().encode();
    torn[at::ARRAY] ^= 1;
    let error = Superblock::decode(&torn).unwrap_err();
    assert!(matches!(error, SuperblockError::Checksum { .. }) && !error.is_foreign());
}

/// An array with a journal on two drives of its own, as one of its drives has it.
fn apart(drive: u8) -> Superblock {
    let mut superblock = example();
    let spec = superblock.spec.with_journals(2).unwrap();
    superblock.spec = spec;
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
        assert_eq!(bytes[shape_at::JOURNAL_COUNT], 2);
        assert_eq!(u64_at(&bytes, at::INCOMPATIBLE) & 0x40, 0x40);
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
    refused(Superblock { logs: None, ..apart(0) }, "features");
    let mut bytes = apart(0).encode();
    bytes[shape_at::JOURNAL_COUNT] = 1;
    seal(&mut bytes);
    assert!(matches!(Superblock::decode(&bytes), Err(SuperblockError::Spec(_))));
}

/// A later program may use what this one does not name; it says so by a feature.
#[test]
fn bytes_without_a_name_are_zero_unless_a_feature_says_otherwise() {
    let behind = at::MEMBER_SIZE + 8;
    let unnamed = [behind, at::RESERVED - 1, at::RESERVED + 14, at::CHECKSUM - 1];
    for offset in unnamed.into_iter().chain([at::RESERVED_COUNT + 1, at::SHAPE + 7]) {
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
                1 | 2 => at::RESERVED as u64 + rng.below(6 * 16),
                _ => rng.below(at::MEMBER_SIZE as u64 + 8),
            };
            bytes[at as usize] =
                if rng.below(2) == 0 { rng.below(256) } else { rng.below(8) } as u8;
        }
        seal(&mut bytes);
        if let Ok(superblock) = Superblock::decode(&bytes) {
            decoded += 1;
            let again = Superblock::decode(&superblock.encode());
            assert_eq!(again.as_ref(), Ok(&superblock), "seed {seed}");
            let Superblock { spec, drive_size, own, .. } = &superblock;
            let layout = Layout::new(*spec, *drive_size);
            assert!(layout.size() > Sectors::ZERO, "seed {seed}");
            if spec.data_drives().contains(own.drive) {
                let area = own.area(spec, *drive_size).expect("it was checked");
                assert_eq!(area.size(), *drive_size, "seed {seed}");
            }
            assert!(own.copies().iter().all(|lba| lba.get() < own.size.get()), "seed {seed}");
            let end = Lba::ZERO + own.size;
            assert!(own.slots().iter().all(|slot| slot.end() <= end), "seed {seed}");
        }
    }
    assert!(decoded > 1_000, "only {decoded} of 20000 got past the checks");
}

#[test]
fn uuid_is_written_in_the_usual_groups() {
    assert_eq!(example().array.to_string(), "a0a1a2a3-a4a5-a6a7-a8a9-aaabacadaeaf");
}
