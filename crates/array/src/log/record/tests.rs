//! What the page says, byte by byte, and what is refused.

use super::*;

const PAGE: &str = include_str!("../../../../../docs/formats/journal.md");

fn run(drive: u8, lba: u64, sectors: u64, is_here: bool) -> ChangedRun {
    let extent = Extent::new(Lba::new(lba), Sectors::new(sectors));
    ChangedRun { drive: DriveIdx::new(drive), extent, is_here }
}

const MEMBER: MemberId = MemberId { uuid: Uuid([0xB2; 16]), seating: 0x5152_5354 };

const RING: RingName = RingName { array: Uuid([0xA0; 16]), member: MEMBER };

/// The record that the page shows: of drive 2, two sectors, with one of drive 5 beside them.
fn example() -> Record {
    Record {
        ring: RING,
        place: Lba::new(100_258),
        kind: Kind::Payload,
        id: 0x0102_0304_0506_0708,
        drive: DriveIdx::new(2),
        participants: DriveSet::from_bits(0b10_0100),
        runs: vec![run(2, 1_000, 2, true), run(5, 1_000, 1, false)],
        committed: 0x0102_0304_0506_0700,
        retired: 0x0102_0304_0506_0600,
        dropped: Vec::new(),
        has_gaps: false,
    }
}

const SUMS: [u32; 3] = [0x1111_1111, 0x2222_2222, 0x3333_3333];

fn mark() -> Record {
    let (kind, id, runs) = (Kind::Mark, 0, Vec::new());
    let (dropped, participants, has_gaps) = (vec![7, 9], DriveSet::EMPTY, true);
    Record { kind, id, runs, participants, dropped, has_gaps, ..example() }
}

fn intent() -> Record {
    let runs = example().runs.into_iter().map(|run| ChangedRun { is_here: false, ..run });
    Record { kind: Kind::Intent, runs: runs.collect(), ..example() }
}

fn lines(bytes: &[u8]) -> Vec<String> {
    let rows = bytes.chunks(16).enumerate().filter(|(_, row)| row.iter().any(|&b| b != 0));
    let hex = |row: &[u8]| row.iter().map(|b| format!("{b:02x}")).collect::<Vec<_>>().join(" ");
    rows.map(|(at, row)| format!("{}: {}", at * 16, hex(row))).collect()
}

/// The page lists every row that is not zero, as `offset: bytes`.
#[test]
fn page_and_code_have_the_same_bytes() {
    let (_, after) = PAGE.split_once("## Test vector").expect("the page has a test vector");
    let (_, block) = after.split_once("```text\n").expect("the vector is a block");
    let (block, _) = block.split_once("```").expect("the block ends");
    let encoded = example().encode(&SUMS);
    assert_eq!(lines(&encoded), block.lines().collect::<Vec<_>>());
    assert_eq!(Record::decode(&encoded), Ok((example(), SUMS.to_vec())));
}

#[test]
fn flip_of_any_bit_is_detected() {
    for (record, sums) in [(example(), &SUMS[..]), (mark(), &[]), (intent(), &SUMS[..])] {
        let good = record.encode(sums);
        assert_eq!(Record::decode(&good), Ok((record, sums.to_vec())));
        for bit in 0..SECTOR_SIZE * 8 {
            let mut bytes = good;
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(Record::decode(&bytes).is_err(), "bit {bit}");
        }
    }
}

/// A header with a good checksum that says what cannot be.
fn refusal(change: impl FnOnce(&mut [u8; SECTOR_SIZE])) -> RecordError {
    let mut bytes = example().encode(&SUMS);
    change(&mut bytes);
    let checksum = crc32c::crc32c(&bytes[..at::CHECKSUM]);
    bytes[at::CHECKSUM..].copy_from_slice(&checksum.to_le_bytes());
    Record::decode(&bytes).expect_err("it cannot be")
}

#[test]
fn what_cannot_be_is_refused_by_the_name_of_the_field() {
    assert_eq!(refusal(|bytes| bytes[at::VERSION] = 1), RecordError::Version(1));
    let named = |at: usize, value: u8| refusal(|bytes| bytes[at] = value);
    assert_eq!(named(at::KIND, 4), RecordError::Field("kind"));
    assert_eq!(named(at::KIND, 3), RecordError::Field("intent"), "an intent with a payload");
    assert_eq!(named(at::DRIVE, 64), RecordError::Field("drive"));
    assert_eq!(named(at::RUNS + 1, 0xFF), RecordError::Field("lists"));
    assert_eq!(named(at::SUMS, 2), RecordError::Field("checksums"));
    assert_eq!(named(at::ID + 7, 0xFF), RecordError::Field("transaction"));
    assert_eq!(named(at::PLACE + 7, 0xFF), RecordError::Field("addresses"));
    assert_eq!(named(at::PARTICIPANTS, 0b100_0000), RecordError::Field("payload"));
    assert_eq!(named(at::LISTS + 13, 2), RecordError::Field("runs"));
    assert_eq!(named(at::LISTS + 13, 0), RecordError::Field("payload"));
    assert_eq!(named(at::LISTS + 8, 0), RecordError::Field("runs"), "an empty run");
    assert_eq!(named(at::LISTS + 12, 6), RecordError::Field("runs"), "another drive's payload");
    assert_eq!(named(at::LISTS + 14, 1), RecordError::Field("unnamed bytes"));
    assert_eq!(named(at::LISTS - 1, 1), RecordError::Field("unnamed bytes"));
    assert_eq!(named(at::KIND, 2), RecordError::Field("mark"));
    assert_eq!(named(at::GAPS, 1), RecordError::Field("gaps"), "of a payload");
    assert_eq!(Record::decode(&[0; SECTOR_SIZE]), Err(RecordError::Absent));
    assert_eq!(Record::decode(&[0; 7]), Err(RecordError::Absent));
}

/// A record counts only at its own place of its own ring, and its payload only if all of it is there.
#[test]
fn record_is_found_at_its_own_place_and_nowhere_else() {
    let payload = [[1_u8; SECTOR_SIZE], [2; SECTOR_SIZE]].concat();
    let sums: Vec<u32> = checksums([&payload[..]].into_iter()).into_iter().chain([9]).collect();
    let bytes = [&[0; SECTOR_SIZE][..], &example().encode(&sums), &payload].concat();
    let first = Lba::new(100_257);
    let whole = |bytes: &[u8], unreadable: &[u32]| -> Vec<bool> {
        let unreadable: SectorSet = unreadable.iter().copied().collect();
        examine(bytes, first, &unreadable, RING).iter().map(|found| found.is_whole).collect()
    };
    assert_eq!(whole(&bytes, &[]), [true]);
    assert_eq!(whole(&bytes, &[3]), [false], "a sector of the payload was not given");
    assert_eq!(whole(&bytes, &[1]), [false; 0], "the header was not given");
    assert_eq!(whole(&bytes[..3 * SECTOR_SIZE], &[]), [false], "the payload goes on elsewhere");
    let mut torn = bytes.clone();
    torn[4 * SECTOR_SIZE - 1] ^= 1;
    assert_eq!(whole(&torn, &[]), [false]);
    let other = MemberId { uuid: Uuid([0xB3; 16]), ..MEMBER };
    for member in [other, MEMBER.again()] {
        let ring = RingName { member, ..RING };
        assert_eq!(examine(&bytes, first, &SectorSet::EMPTY, ring), [], "{member:?}");
    }
    assert_eq!(examine(&bytes, Lba::new(100_256), &SectorSet::EMPTY, RING), [], "a copy of it");
}

#[test]
fn header_has_room_for_what_it_says_it_has() {
    // 16 bytes a run and 4 a sector, of 3,964.
    let full = [(0, 991), (1, 987), (2, 983), (247, 3)];
    for (runs, sectors) in full {
        let room = [sectors, sectors + 1].map(|sectors| Record::has_room(runs, sectors));
        assert_eq!(room, [true, false], "{runs} runs, {sectors} sectors");
    }
    let (_, most) = full[1];
    let runs = vec![run(2, 0, most as u64, true)];
    let record = Record { runs, ..example() };
    let sums = vec![1; most];
    assert_eq!(Record::decode(&record.encode(&sums)), Ok((record, sums)));
    let dropped: Vec<u64> = (0..Record::DROPPED_MAX as u64).collect();
    let record = Record { dropped, ..mark() };
    assert_eq!(Record::decode(&record.encode(&[])), Ok((record, Vec::new())));
}
