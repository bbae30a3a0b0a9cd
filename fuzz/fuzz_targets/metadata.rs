//! Whatever bytes lie where metadata is expected: it is refused, or is the same when it is written again; what is put on
//! the bad-sector list and taken off it then is kept as a plain set would keep it; and what the members of an array have
//! is refused, or is an array none of whose members is a copy from before.
//!
//! The first byte of the input says whether checksums stay wrong (bit 0), and how many changes of the list come first,
//! eight bytes each. The rest is changes of four bytes each, to the slots that a program would have written: which member,
//! slot and sector, where, and what is there then. Checksums are made right as a rule, or nothing behind them would ever
//! be reached.

#![no_main]

use std::convert::Infallible;
use std::sync::Arc;

use levelhead_array::assembly::{Copy, Found, assemble};
use levelhead_array::damaged::{DamagedList, RANGES_MAX};
use levelhead_array::membership::{Generation, Member, MemberId, Membership};
use levelhead_array::metadata::{Forced, Inscription, Kept, Logs, Metadata, MetadataError, State};
use levelhead_array::reserve::Division;
use levelhead_array::superblock::{Own, Superblock, Uuid};
use levelhead_array::{Cell, Spec, Wishes};
use levelhead_units::{DriveIdx, Extent, Lba, Sectors};
use libfuzzer_sys::fuzz_target;

const SECTOR: usize = 4096;

/// Sectors of a slot.
const SLOT: usize = 127;

/// Sectors of a slot that the changes are of.
const CHANGED: usize = 4;

/// The sectors of every member.
const SIZE: Sectors = Sectors::new(262_144);

/// The drive that is missing. It was there when the generation before the last one was written.
const MISSING: usize = 2;

/// Bytes of a change of the list: what and which drive, how many sectors, four bytes of an address, and what is done.
const CHANGE: usize = 8;

/// Where the header has the checksum of what is behind it.
const BODY_SUM: usize = 68;

/// A slot, as far as it is not zeroes.
type Bytes = Vec<u8>;

fuzz_target!(|bytes: &[u8]| {
    let Some((&first, rest)) = bytes.split_first() else { return };
    let (listed, changes) = rest.split_at(rest.len().min(usize::from(first >> 1 & 7) * CHANGE));
    let superblocks: Vec<Superblock> = (0..4).map(superblock).collect();
    let mut slots: Vec<[Bytes; 2]> = (0..4).map(slots_of).collect();
    for change in changes.chunks_exact(4).take(64) {
        let slot = &mut slots[usize::from(change[0] & 3)][usize::from(change[0] >> 2 & 1)];
        let place = usize::from(u16::from_le_bytes([change[1], change[2]])) % SECTOR;
        slot[usize::from(change[0] >> 3) % CHANGED * SECTOR + place] = change[3];
    }
    for slot in slots.iter_mut().flatten() {
        if first & 1 == 0 {
            seal(slot);
        }
        if let Ok(mut inscription) = decode(slot) {
            let all = Extent::new(Lba::ZERO, inscription.metadata.sectors());
            assert_eq!(inscription.encode(), part(slot, all));
            change_list(&mut inscription, listed);
        }
    }
    let members = superblocks.iter().zip(&slots);
    let found: Vec<Found> = members.map(|(superblock, slots)| read(superblock, slots)).collect();
    let Ok(assembly) = assemble(&found) else { return };
    assert!(assembly.trusted <= assembly.metadata.stripes());
    let words = found.iter().filter_map(Found::word);
    assert!(words.clone().all(|word| word.generation() <= assembly.metadata.generation));
    for (member, place) in assembly.metadata.members.iter().zip(&assembly.places) {
        let Some(place) = place else { continue };
        let has = place.held.map_or(Generation::NONE, |held| held.generation);
        assert!(member.stored <= has, "a copy from before");
        assert!(!matches!(member.membership, Membership::Missing | Membership::Lost { .. }));
    }
    for back in &assembly.returning {
        assert!(assembly.metadata.members[back.own.drive.as_usize()].lacks.is_some());
    }
});

/// The metadata of an array that went on without a drive, with two ranges on the list.
fn metadata(generation: u64) -> Metadata {
    let spec: Spec = "raid6:2+2,chunk=4KiB".parse().expect("it is a shape");
    let division = Division::of(&spec, SIZE).expect("the members are large enough");
    let member = |at: u8| Member {
        stored: Generation(990),
        given: Generation(999),
        ..Member::new(Uuid([0xB0 + at; 16]), Membership::Present)
    };
    let mut damaged = DamagedList::default();
    damaged.add(DriveIdx::new(0), Extent::new(Lba::new(1_000), Sectors::new(3)));
    damaged.add(DriveIdx::new(3), Extent::new(Lba::new(1_000), Sectors::new(1)));
    Metadata {
        generation: Generation(generation),
        array: Uuid([0xA0; 16]),
        run: Uuid([0xC0; 16]),
        base: Generation(900),
        spec,
        drive_size: division.drive_size,
        state: State::Dirty,
        forced: Forced::No,
        synced: 0,
        synced_last: 10,
        journal: Some(Kept { first: 1, logs: Logs::Parts }),
        wishes: Wishes::default(),
        members: (0..4).map(member).collect(),
        damaged,
    }
}

fn holder(at: usize) -> MemberId {
    MemberId::new(Uuid([0xB0 + at as u8; 16]))
}

/// The slots of a member: the missing drive has the generation before the one that calls it so.
fn slots_of(at: usize) -> [Bytes; 2] {
    let before = Arc::new(metadata(1_000));
    let without = if at == MISSING { Arc::new(metadata(999)) } else { Arc::new(without()) };
    [before, without].map(|metadata| {
        let mut slot = Inscription { metadata, holder: holder(at) }.encode();
        slot.resize(slot.len().max(CHANGED * SECTOR), 0);
        slot
    })
}

/// What the others say once it is missing: it lacks some regions. Only bytes say so, as it would be read.
fn without() -> Metadata {
    let mut metadata = metadata(1_001);
    metadata.members[MISSING].membership = Membership::Missing;
    let mut slot = Inscription { metadata: Arc::new(metadata), holder: holder(0) }.encode();
    slot.resize(CHANGED * SECTOR, 0);
    // Regions of 2^6 stripes, of which the first lacks something.
    slot[256 + 56 * MISSING + 20] = 7;
    slot[2 * SECTOR] = 1;
    seal(&mut slot);
    let read = decode(&slot).expect("it can be");
    Metadata::clone(&read.metadata)
}

/// Makes the checksums right.
fn seal(slot: &mut [u8]) {
    let seal_header = |header: &mut [u8]| {
        let checksum = crc32c::crc32c(&header[..SECTOR - 4]).to_le_bytes();
        header[SECTOR - 4..SECTOR].copy_from_slice(&checksum);
    };
    seal_header(slot);
    let mut body = None;
    let asked: Result<Result<Inscription, MetadataError>, Infallible> =
        Inscription::decode(|extent| {
            let bytes = part(slot, extent);
            if extent.lba > Lba::ZERO {
                body = Some(crc32c::crc32c(&bytes));
            }
            Ok(bytes)
        });
    let Ok(_) = asked;
    slot[BODY_SUM..][..4].copy_from_slice(&body.unwrap_or(0).to_le_bytes());
    seal_header(slot);
}

/// Sectors of a slot, counted from its first one.
fn part(slot: &[u8], extent: Extent) -> Vec<u8> {
    assert!(extent.end().get() <= SLOT as u64, "past the end of the slot");
    let start = (extent.lba.get() as usize * SECTOR).min(slot.len());
    let mut bytes = slot[start..].to_vec();
    bytes.resize(extent.sectors.get() as usize * SECTOR, 0);
    bytes
}

fn decode(slot: &[u8]) -> Result<Inscription, MetadataError> {
    let read: Result<_, Infallible> = Inscription::decode(|extent| Ok(part(slot, extent)));
    let Ok(decoded) = read;
    decoded
}

fn superblock(at: usize) -> Superblock {
    let Metadata { array, spec, drive_size, journal, .. } = metadata(1_000);
    let division = Division::of(&spec, SIZE).expect("the members are large enough");
    let own =
        Own { drive: DriveIdx::from_usize(at), size: SIZE, reserved: division.reserved(SIZE) };
    let (member, logs) = (holder(at).uuid, journal.map(|kept| kept.logs));
    Superblock { array, member, spec, drive_size, logs, own, read_only: 0 }
}

/// A member with these slots.
fn read(superblock: &Superblock, slots: &[Bytes; 2]) -> Found {
    let copies = [(); 3].map(|()| Copy::Read(Box::new(Ok(superblock.clone()))));
    let mut found = Found::new(copies, SIZE);
    found.read_slots(|extent| {
        let places = superblock.own.slots();
        let at = usize::from(extent.lba >= places[1].lba);
        let first = Lba::ZERO + (extent.lba - places[at].lba);
        Some(part(&slots[at], Extent::new(first, extent.sectors)))
    });
    found
}

/// Changes the list, which goes together with itself and is read back after each change.
fn change_list(inscription: &mut Inscription, changes: &[u8]) {
    check(&inscription.metadata.damaged);
    for change in changes.chunks_exact(CHANGE) {
        let metadata = Arc::make_mut(&mut inscription.metadata);
        let (drives, size) = (metadata.spec.drives(), metadata.drive_size);
        apply(&mut metadata.damaged, drives, size, change);
        check(&metadata.damaged);
        assert_eq!(decode(&inscription.encode()).as_ref(), Ok(&*inscription));
    }
}

/// The list goes together with itself.
fn check(list: &DamagedList) {
    let ranges: Vec<_> = list.ranges().collect();
    assert!(ranges.len() <= RANGES_MAX);
    assert_eq!(list.is_empty(), ranges.is_empty());
    assert_eq!(list.sectors(), ranges.iter().map(|range| range.extent.sectors).sum());
    for pair in ranges.windows(2) {
        let [before, next] = pair else { unreachable!("windows of two") };
        assert!(before.drive <= next.drive);
        assert!(before.drive != next.drive || before.extent.end() < next.extent.lba);
    }
}

/// Puts sectors on the list, or takes one off.
fn apply(list: &mut DamagedList, drives: usize, size: Sectors, change: &[u8]) {
    let drive = DriveIdx::from_usize(usize::from(change[0]) % drives);
    let near = u64::from(u32::from_le_bytes(change[2..6].try_into().expect("four bytes")));
    let lba = Lba::new(near % size.get());
    let cell = Cell { drive, lba };
    let before = list.sectors();
    if change[7].is_multiple_of(2) {
        let sectors = (1 + u64::from(change[1])).min(size.get() - lba.get());
        let extent = Extent::new(lba, Sectors::new(sectors));
        let is_new = list.add(drive, extent);
        assert_eq!(is_new, list.sectors() > before);
        let last = Lba::new(extent.end().get() - 1);
        assert!(list.covers(cell) && list.covers(Cell { drive, lba: last }));
    } else {
        let was_on = list.covers(cell);
        assert_eq!(list.remove(cell), was_on);
        assert!(!list.covers(cell));
        assert_eq!(before - list.sectors(), Sectors::new(u64::from(was_on)));
    }
}
