//! What the page says, byte by byte, and what is refused.

use levelhead_stats::Streams;
use levelhead_testkit::extent;
use levelhead_units::{Bytes, DriveIdx};

use super::*;
use crate::meta::membership::Why;
use crate::meta::own::Own;
use crate::meta::reserve::Division;
use crate::meta::wishes::{GoesOn, RebuildWish, ScrubMark};
use crate::progress::ScrubFound;

const PAGE: &str = include_str!("../../../../../docs/formats/metadata.md");

/// Where the fields of the shape begin.
const FAMILY: usize = at::SHAPE;
const DRIVE_SIZE: usize = at::SHAPE + 16;

/// Where the fields of the member in a place begin.
const fn member_at(place: usize) -> usize {
    at::MEMBERS + place * MEMBER_BYTES
}

const GRID: usize = 20;
const MEMBERSHIP: usize = 24;

fn regions(stripes: u64, shift: u8, some: &[u64]) -> Regions {
    let mut regions = Regions::none(Grid::of(stripes, shift).unwrap());
    some.iter().for_each(|&region| assert!(regions.add(region << shift)));
    regions
}

/// The metadata that the page shows.
fn example() -> Metadata {
    let (generation, base) = (Generation(0x0102_0304_0506_0708), Generation(0x0102_0304_0506_0700));
    let member = |at: u8| Member {
        stored: Generation(generation.0 - 1),
        given: generation,
        ..Member::new(Uuid([0xB0 + at; 16]), Membership::Present)
    };
    let found = ScrubFound { unreadable: 0x21, wrong: 0x22, unrepaired: 0x23, unlocated: 0x24 };
    let mut metadata = Metadata {
        generation,
        array: Uuid(std::array::from_fn(|at| 0xA0 + at as u8)),
        run: Uuid([0xC0; 16]),
        base,
        spec: "eraid:4+2,e=2,chunk=8KiB".parse().unwrap(),
        drive_size: Sectors::new(261_600),
        state: State::Dirty,
        forced: Forced::Yes,
        synced: 0,
        synced_last: 1_000,
        journal: Some(Kept { first: 0x1112_1314_1516_1718, logs: Logs::Parts }),
        wishes: Wishes {
            rebuild: RebuildWish { rate_min: Some(Bytes::new(5_000_000)), is_paused: true },
            scrub: Some(ScrubMark { goes_on: GoesOn::Yes, to: 0x0304, found }),
        },
        members: (0..6).map(member).collect(),
        damaged: DamagedList::default(),
    };
    let stripes = metadata.stripes();
    let filled = &mut metadata.members[2];
    filled.id.seating = 3;
    filled.membership = Membership::Filling { to: 0x0203 };
    filled.lacks = Some(regions(stripes, 9, &[0, 9, 255]));
    let lost = &mut metadata.members[5];
    lost.membership = Membership::Lost { why: Why::Silent };
    (lost.stored, lost.given) = (Generation(base.0 + 1), Generation(base.0 + 2));
    lost.lacks = Some(regions(stripes, 10, &[7, 64]));
    metadata.damaged.add(DriveIdx::new(2), extent(1_000, 3));
    metadata.damaged.add(DriveIdx::new(2), extent(2_000, 1));
    metadata.damaged.add(DriveIdx::new(5), extent(1_000, 0x01_0001));
    metadata
}

const HOLDER: MemberId = MemberId { uuid: Uuid([0xB4; 16]), seating: 0x5152_5354 };

fn encode(metadata: &Metadata) -> Vec<u8> {
    Inscription { metadata: Arc::new(metadata.clone()), holder: HOLDER }.encode()
}

/// What a slot holds that begins with these bytes; nothing outside it is asked for.
fn decode(bytes: &[u8]) -> Result<Inscription, MetadataError> {
    let read = |extent: Extent| -> Result<Vec<u8>, ()> {
        assert!(extent.end() <= Lba::ZERO + SLOT && extent.sectors > Sectors::ZERO);
        let mut slot = bytes.to_vec();
        slot.resize(SLOT.as_usize() * SECTOR_SIZE, 0xEE);
        let start = extent.lba.get() as usize * SECTOR_SIZE;
        Ok(slot[start..][..extent.sectors.as_usize() * SECTOR_SIZE].to_vec())
    };
    Inscription::decode(read).unwrap()
}

#[track_caller]
fn check_same(metadata: &Metadata, context: &str) {
    let bytes = encode(metadata);
    assert_eq!(bytes.len(), metadata.sectors().as_usize() * SECTOR_SIZE, "{context}");
    let decoded = decode(&bytes).unwrap_or_else(|error| panic!("{context}: {error}"));
    assert_eq!(*decoded.metadata, *metadata, "{context}");
    assert_eq!(decoded.holder, HOLDER, "{context}");
}

/// Makes the checksums right again.
fn seal(bytes: &mut [u8]) {
    let (header, body) = bytes.split_at_mut(SECTOR_SIZE);
    put(header, at::BODY_SUM, &crc32c::crc32c(body).to_le_bytes());
    let checksum = crc32c::crc32c(&header[..at::CHECKSUM]);
    put(header, at::CHECKSUM, &checksum.to_le_bytes());
}

/// Rows of 16 bytes that are not all zero.
fn rows(bytes: &[u8]) -> Vec<String> {
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
    assert_eq!(rows(&encode(&example())), block.lines().collect::<Vec<_>>());
    check_same(&example(), "the vector");
}

#[test]
fn what_was_encoded_decodes_to_the_same() {
    for text in ["raid0:3", "raid1:5,chunk=4KiB", "raid10:7,chunk=8KiB", "raid6:6+2,parity=fixed"] {
        let spec: Spec = text.parse().unwrap();
        let mut metadata = Metadata { spec, drive_size: spec.chunk() * 2_000, ..example() };
        let member = |at| Member::new(Uuid([at; 16]), Membership::Present);
        metadata.members = (0..spec.members() as u8).map(member).collect();
        metadata.damaged = DamagedList::default();
        metadata.generation = metadata.base;
        check_same(&metadata, text);
        metadata.journal = None;
        (metadata.state, metadata.forced) = (State::Clean, Forced::No);
        (metadata.synced, metadata.synced_last) = (metadata.stripes(), metadata.stripes());
        (metadata.wishes, metadata.run) = (Wishes::default(), Uuid::default());
        check_same(&metadata, text);
        assert_eq!(metadata.sectors(), Sectors::new(1), "a header is all that there is");
    }
    for membership in [
        Membership::Present,
        Membership::Missing,
        Membership::Filling { to: 0x0304 },
        Membership::Lost { why: Why::Failed },
        Membership::Lost { why: Why::ByHand },
        Membership::Spare,
    ] {
        let mut metadata = example();
        (metadata.members[2].membership, metadata.members[2].lacks) = (membership, None);
        check_same(&metadata, "a member");
    }
}

/// An array of one stripe more than there are regions, so that what a member lacks takes any size up to the largest.
fn many(ranges: usize, lacks: &[u8]) -> Metadata {
    let spec: Spec = "raid1:10,chunk=4KiB".parse().unwrap();
    let stripes = super::super::regions::REGIONS_MAX;
    let mut metadata = Metadata { spec, drive_size: Sectors::new(stripes), ..example() };
    let member = |at| Member::new(Uuid([at; 16]), Membership::Present);
    metadata.members = (0..10).map(member).collect();
    metadata.damaged = DamagedList::default();
    for at in 0..ranges as u64 {
        metadata.damaged.add(DriveIdx::new((at % 10) as u8), extent(at * 3, 1 + at % 2));
    }
    for (at, &shift) in lacks.iter().enumerate() {
        let mut some = Regions::none(Grid::of(stripes, shift).unwrap());
        assert!(some.add_all(at as u64 * 1_000..at as u64 * 1_300 + 9) && some.add(stripes - 1));
        let member = &mut metadata.members[1 + at];
        (member.membership, member.lacks) = (Membership::Missing, Some(some));
    }
    metadata
}

#[test]
fn damaged_sectors_and_what_members_lack_are_read_back_whatever_there_is_of_both() {
    for ranges in [0, 1, 255, 256, 257, 3_000, RANGES_MAX] {
        for lacks in [&[][..], &[0], &[18], &[0, 5], &[4, 3, 3], &[0; LACKS_MAX]] {
            let metadata = many(ranges, lacks);
            check_same(&metadata, &format!("{ranges} ranges, grids {lacks:?}"));
            assert_eq!(metadata.damaged.ranges().count(), ranges);
        }
    }
    let largest = many(RANGES_MAX, &[0; LACKS_MAX]);
    assert_eq!(largest.sectors(), Sectors::new(1 + 16 + 15 * LACKS_MAX as u64));
    assert!(largest.sectors() <= SLOT, "any that may be has room in a slot");
    let mut widened = many(RANGES_MAX, &[]);
    widened.damaged.add(DriveIdx::new(0), extent(100_000, 1));
    assert!(widened.damaged.is_widened());
    check_same(&widened, "a list that was full");
}

#[test]
fn flip_of_any_bit_of_the_header_or_the_body_is_detected() {
    let good = encode(&example());
    assert_eq!(good.len(), 4 * SECTOR_SIZE, "a header, the ranges, and twice regions");
    for bit in 0..good.len() * 8 {
        let mut bytes = good.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert!(decode(&bytes).is_err(), "bit {bit}");
    }
    let mut behind = good.clone();
    behind.extend([1; SECTOR_SIZE]);
    assert!(decode(&behind).is_ok(), "what is left of a longer one is no part of it");
}

#[test]
fn no_more_is_taken_than_there_may_be() {
    let more = many(0, &[3; LACKS_MAX + 1]);
    assert_eq!(decode(&encode(&more)), Err(MetadataError::Field("regions")));
    let count = |count: u32| {
        let mut bytes = encode(&many(RANGES_MAX, &[]));
        bytes.resize(SLOT.as_usize() * SECTOR_SIZE, 0);
        put(&mut bytes, at::COUNT, &count.to_le_bytes());
        let body = SECTOR_SIZE * (1 + sectors_of(count.min(9_000) as usize * RANGE_BYTES) as usize);
        seal(&mut bytes[..body]);
        decode(&bytes).map(drop)
    };
    assert_eq!(count(RANGES_MAX as u32), Ok(()));
    for more in [RANGES_MAX as u32 + 1, 9_000, u32::MAX] {
        assert_eq!(count(more), Err(MetadataError::Field("lists")), "{more}");
    }
}

/// Metadata with good checksums that says what cannot be.
fn refusal(change: impl FnOnce(&mut [u8])) -> MetadataError {
    let mut bytes = encode(&example());
    change(&mut bytes);
    seal(&mut bytes);
    decode(&bytes).expect_err("it cannot be")
}

#[test]
fn what_cannot_be_is_refused_by_the_name_of_the_field() {
    let named = |at: usize, value: &[u8]| match refusal(|bytes| put(bytes, at, value)) {
        MetadataError::Field(name) => name,
        error => panic!("byte {at}: {error}"),
    };
    assert_eq!(refusal(|bytes| bytes[0] = 0), MetadataError::Absent);
    assert_eq!(refusal(|bytes| bytes[at::VERSION] = 2), MetadataError::Version { version: 2 });
    assert_eq!(named(FAMILY, &[7]), "shape");
    assert_eq!(named(DRIVE_SIZE, &[0; 8]), "shape");
    assert_eq!(named(at::GENERATION, &[0xFF; 8]), "generation");
    assert_eq!(named(at::BASE + 7, &[2]), "generation", "it began with a later one");
    assert_eq!(named(at::SYNCED + 4, &[1]), "stripes in sync");
    assert_eq!(named(at::SYNCED_LAST + 4, &[1]), "stripes in sync");
    assert_eq!(named(at::JOURNAL, &[0; 8]), "first transaction");
    assert_eq!(named(at::JOURNAL + 7, &[0x41]), "first transaction");
    assert_eq!(named(at::LOGS, &[3]), "journal");
    assert_eq!(named(at::LOGS, &[0]), "regions", "without a journal nobody knows");
    assert_eq!(named(at::STATE, &[2]), "unnamed bytes");
    assert_eq!(named(at::FORCED, &[2]), "unnamed bytes");
    assert_eq!(named(at::WIDENED, &[2]), "unnamed bytes");
    assert_eq!(named(at::WIDENED + 1, &[1]), "unnamed bytes");
    assert_eq!(named(at::WISHES, &[3]), "state of a scrub");
    assert_eq!(named(at::WISHES + WISHES_BYTES, &[1]), "unnamed bytes");
    assert_eq!(named(member_at(6), &[1]), "unnamed bytes", "there are six members");
    assert_eq!(named(at::CHECKSUM - 1, &[1]), "unnamed bytes");
    assert_eq!(named(member_at(0) + 21, &[1]), "unnamed bytes");
    assert_eq!(named(member_at(0) + MEMBERSHIP, &[9]), "drives");
    assert_eq!(named(member_at(2) + MEMBERSHIP + 8, &[0, 0, 2]), "drives", "filled too far");
    assert_eq!(named(member_at(2) + MEMBERSHIP, &[0; 16]), "drives", "it lacks something");
    assert_eq!(named(member_at(2) + MEMBERSHIP, &Membership::Spare.encode()), "drives");
    let away = Membership::Missing.encode();
    assert_eq!(named(member_at(1) + MEMBERSHIP, &away), "drives that are not present");
    assert_eq!(named(member_at(2) + GRID, &[64]), "regions");
    assert_eq!(named(at::COUNT, &[0xFF, 0xFF]), "lists");
    assert_eq!(named(SECTOR_SIZE + RANGE_BYTES, &1_003_u64.to_le_bytes()), "damaged sectors");
    assert_eq!(named(SECTOR_SIZE + 3 * RANGE_BYTES, &[1]), "unnamed bytes");
    assert_eq!(named(3 * SECTOR_SIZE + 16, &[1]), "unnamed bytes");
    assert_eq!(named(member_at(5) + GRID, &[18]), "regions", "a bit behind the only one");
    let mut apart = example();
    (apart.spec, apart.journal) = (apart.spec.with_journals(3).unwrap(), None);
    let member = |at| Member::new(Uuid([at; 16]), Membership::Present);
    apart.members = (0..9).map(member).collect();
    assert_eq!(decode(&encode(&apart)), Err(MetadataError::Field("journal")));
    let text = refusal(|bytes| bytes[at::VERSION] = 2).to_string();
    assert_eq!(text, "the metadata is of version 2, this program reads 1");
}

#[test]
fn copies_of_one_pair_cannot_both_be_gone() {
    let spec: Spec = "raid10:4".parse().unwrap();
    let with = |gone: &[u8]| {
        let mut metadata = Metadata { spec, drive_size: spec.chunk() * 3, ..example() };
        metadata.wishes.scrub = None;
        (metadata.synced_last, metadata.damaged) = (0, DamagedList::default());
        let lost = Membership::Lost { why: Why::Failed };
        let membership = |at| if gone.contains(&at) { lost } else { Membership::Present };
        let member = |at| Member::new(Uuid([at; 16]), membership(at));
        metadata.members = (0..4).map(member).collect();
        decode(&encode(&metadata)).map(drop)
    };
    assert_eq!(with(&[0, 2]), Ok(()));
    assert_eq!(with(&[0, 1]), Err(MetadataError::Field("drives that are not present")));
}

#[test]
fn metadata_is_on_enough_drives_when_no_loss_that_is_survived_takes_all_of_them() {
    let on = |metadata: &Metadata, drives: &[u8]| {
        metadata.is_on_enough(drives.iter().copied().map(DriveIdx::new).collect())
    };
    let mut metadata = example();
    assert!(on(&metadata, &[0]), "drives 2 and 5 are not present: all others are needed");
    assert!(!on(&metadata, &[]) && !on(&metadata, &[2, 5]));
    metadata.members[5].membership = Membership::Present;
    assert!(!on(&metadata, &[0]) && on(&metadata, &[0, 5]));
    metadata.members[2].membership = Membership::Present;
    assert!(!on(&metadata, &[0, 5]) && on(&metadata, &[0, 2, 5]));
}

/// A member of the example's array.
fn superblock() -> Superblock {
    let Metadata { array, spec, .. } = example();
    let size = Sectors::new(262_144);
    let division = Division::of(&spec, size).unwrap();
    let own = Own { drive: DriveIdx::new(4), size, reserved: division.reserved(size) };
    let (drive_size, logs) = (example().drive_size, Some(Logs::Parts));
    Superblock { array, member: HOLDER.uuid, spec, drive_size, logs, own, read_only: 0 }
}

/// What is found in two slots with these bytes; sectors of the first that a drive does not give.
fn found(slots: [&[u8]; 2], unreadable: &[u64]) -> [Slot; 2] {
    find(&superblock(), |extent| {
        let at = extent.lba.get() - 1;
        let (slot, first) = (at / SLOT.get(), (at % SLOT.get()) as usize);
        let is_readable = slot > 0 || unreadable.iter().all(|&lba| !extent.contains(Lba::new(lba)));
        let mut bytes = slots[slot as usize].to_vec();
        bytes.resize(SLOT.as_usize() * SECTOR_SIZE, 0);
        is_readable.then(|| {
            bytes[first * SECTOR_SIZE..][..extent.sectors.as_usize() * SECTOR_SIZE].to_vec()
        })
    })
}

/// G3: only one slot is written at a time, and the other one holds metadata then.
#[test]
fn one_slot_with_a_wrong_checksum_was_cut_off_and_two_are_not_what_was_written() {
    let whole = encode(&example());
    let read = || Slot::Read(Arc::new(example()));
    let absent = [];
    assert_eq!(found([&whole, &whole], &[]), [read(), read()]);
    assert_eq!(found([&absent, &whole], &[]), [Slot::Nothing, read()]);
    assert_eq!(found([&absent, &absent], &[]), [Slot::Nothing, Slot::Nothing]);
    for byte in [at::GENERATION, SECTOR_SIZE, 3 * SECTOR_SIZE] {
        let mut torn = whole.clone();
        torn[byte] ^= 1;
        assert_eq!(found([&whole, &torn], &[]), [read(), Slot::Nothing], "byte {byte}");
        assert_eq!(found([&torn, &whole], &[]), [Slot::Nothing, read()], "byte {byte}");
        assert_eq!(found([&torn, &absent], &[]), [Slot::Nothing, Slot::Nothing]);
        assert_eq!(found([&torn, &torn], &[]), [Slot::Unreadable, Slot::Unreadable]);
    }
    // A write that was cut off behind any of its sectors.
    for sectors in 1..4 {
        let mut newer = example();
        newer.generation = newer.generation.plus(2);
        newer.damaged.add(DriveIdx::new(0), extent(5, 1));
        newer.members[2].lacks.as_mut().unwrap().fill();
        newer.members[5].lacks.as_mut().unwrap().fill();
        let mut torn = whole.clone();
        let written = sectors * SECTOR_SIZE;
        torn[..written].copy_from_slice(&encode(&newer)[..written]);
        assert_eq!(found([&torn, &whole], &[]), [Slot::Nothing, read()], "{sectors} sectors");
    }
}

#[test]
fn slot_that_cannot_be_read_or_understood_may_be_the_newest() {
    let whole = encode(&example());
    for lba in 1..=4 {
        assert_eq!(found([&whole, &[]], &[lba])[0], Slot::Unreadable, "sector {lba}");
    }
    assert!(matches!(found([&whole, &[]], &[5])[0], Slot::Read(_)), "it ends before that");
    let changed = |change: &dyn Fn(&mut [u8])| {
        let mut bytes = whole.clone();
        change(&mut bytes);
        seal(&mut bytes);
        found([&bytes, &whole], &[])[0].clone()
    };
    assert_eq!(changed(&|bytes| bytes[at::VERSION] = 2), Slot::Unreadable);
    assert_eq!(changed(&|bytes| bytes[at::STATE] = 2), Slot::Unreadable);
    // Its own superblock says something else.
    let with = |change: &dyn Fn(&mut Metadata)| {
        let mut metadata = example();
        change(&mut metadata);
        found([&encode(&metadata), &whole], &[])[0].clone()
    };
    assert!(matches!(with(&|_| ()), Slot::Read(_)));
    assert_eq!(with(&|of| of.drive_size = of.drive_size - Sectors::new(2)), Slot::Unreadable);
    assert_eq!(with(&|of| of.spec = "eraid:4+2,e=1,chunk=8KiB".parse().unwrap()), Slot::Unreadable);
    let all = Some(Kept { first: 1, logs: Logs::All });
    assert_eq!(with(&|of| of.journal = all), Slot::Unreadable);
}

/// A drive that was a member of something else before, or was copied from another one.
#[test]
fn metadata_of_another_array_or_member_says_nothing() {
    let whole = encode(&example());
    let other = Metadata { array: Uuid([1; 16]), ..example() };
    let other = encode(&other);
    assert_eq!(found([&other, &whole], &[])[0], Slot::Nothing);
    let holder = MemberId::new(Uuid([0xB3; 16]));
    let other = Inscription { metadata: Arc::new(example()), holder }.encode();
    assert_eq!(found([&other, &whole], &[])[0], Slot::Nothing);
    let holder = HOLDER.again();
    let again = Inscription { metadata: Arc::new(example()), holder }.encode();
    let found = found([&again, &[]], &[]);
    assert!(matches!(found[0], Slot::Read(_)), "the same drive, whatever its seating");
}

/// Whatever the bytes, the answer is metadata that encodes to itself or an error. The checksums are made right, or nothing
/// behind them would ever be reached.
#[test]
fn any_bytes_are_decoded_or_refused() {
    let mut decoded = 0;
    for seed in 0..20_000 {
        let mut rng = Streams::new(seed).stream("metadata");
        let mut bytes = encode(&example());
        for _ in 0..=rng.below(4) {
            // The fields, far more often than the zeroes after them.
            let at = match rng.below(8) {
                0 => rng.below(bytes.len() as u64),
                1 => SECTOR_SIZE as u64 + rng.below(3 * RANGE_BYTES as u64),
                2 => (2 + rng.below(2)) * SECTOR_SIZE as u64 + rng.below(32),
                3 | 4 => rng.below(at::MEMBERS as u64),
                _ => at::MEMBERS as u64 + rng.below(6 * MEMBER_BYTES as u64),
            };
            bytes[at as usize] =
                if rng.below(2) == 0 { rng.below(256) } else { rng.below(8) } as u8;
        }
        seal(&mut bytes);
        if let Ok(inscription) = decode(&bytes) {
            decoded += 1;
            assert_eq!(inscription.encode(), bytes, "seed {seed}");
            let metadata = &inscription.metadata;
            assert!(metadata.stripes() > 0 && metadata.sectors() <= SLOT, "seed {seed}");
            assert_eq!(metadata.members.len(), metadata.spec.members(), "seed {seed}");
        }
    }
    assert!(decoded > 1_000, "only {decoded} of 20000 got past the checks");
}
