//! Whatever bytes lie where superblocks are expected: they are refused, or describe an array that can be.
//!
//! The first byte of the input chooses. From 128 on the input is cut into members of three copies each, as it is. Below,
//! there is an array that could be started, and the input changes bytes of its members' copies: nothing would find the
//! way through all that must go together by itself. Checksums are made right, or nothing behind them would ever be
//! reached. The metadata of the members is what a program would have written.

#![no_main]

use std::collections::BTreeMap;
use std::sync::Arc;

use levelhead_array::assembly::{Copy, Found, assemble};
use levelhead_array::membership::{Generation, Member, MemberId, Membership};
use levelhead_array::metadata::{Forced, Inscription, Kept, Logs, Metadata, State};
use levelhead_array::reserve::Division;
use levelhead_array::superblock::{Own, Superblock, Uuid};
use levelhead_array::{Layout, Spec, Wishes, damaged::DamagedList};
use levelhead_units::{DriveIdx, Sectors};
use libfuzzer_sys::fuzz_target;

/// Bytes of a superblock, of which the last four are the checksum.
const SECTOR: usize = 4096;

/// The sectors of every member.
const SIZE: Sectors = Sectors::new(262_144);

const SPECS: [&str; 6] = [
    "eraid:5+1,e=2,chunk=8KiB",
    "raid6:4+2",
    "raid1:2",
    "raid10:4",
    "raid5:2+1,chunk=4KiB",
    "raid0:3",
];

fuzz_target!(|bytes: &[u8]| {
    let Some((&first, rest)) = bytes.split_first() else { return };
    let found = if first < 128 { changed(first, rest) } else { as_they_are(rest) };
    for superblock in found.iter().flat_map(|found| &found.copies).filter_map(Copy::good) {
        let again = Superblock::decode(&superblock.encode());
        assert_eq!(again.as_ref(), Ok(superblock));
        assert_eq!(superblock.own.slots()[0].end(), superblock.own.slots()[1].lba);
    }
    if let Ok(assembly) = assemble(&found) {
        let layout = Layout::new(assembly.metadata.spec, assembly.area.size());
        assert!(layout.stripes() >= assembly.trusted);
        assert!(assembly.absent.len() as usize <= assembly.metadata.spec.redundant());
        for placed in assembly.places.iter().flatten() {
            assert!(placed.own.size <= found[placed.found].size);
        }
    }
});

/// Members whose copies the input is cut into.
fn as_they_are(bytes: &[u8]) -> Vec<Found> {
    let members = bytes.chunks(3 * SECTOR).take(8).map(|member| {
        let copies = [0, 1, 2].map(|at| member.get(at * SECTOR..).unwrap_or_default());
        let copies = copies.map(|bytes| Copy::Read(Box::new(Superblock::decode(&sealed(bytes)))));
        Found::new(copies, Sectors::new(1 << 41))
    });
    members.collect()
}

/// Members of an array, with changes of four bytes each: which member and copy, where, and what is there then.
fn changed(first: u8, changes: &[u8]) -> Vec<Found> {
    let text = SPECS[usize::from(first) % SPECS.len()];
    let spec: Spec = text.parse().expect("it is a shape");
    let metadata = Arc::new(metadata(spec, first & 64 != 0));
    let members = 0..metadata.members.len() as u8;
    let superblocks: Vec<Superblock> = members.map(|drive| superblock(&metadata, drive)).collect();
    let mut copies: Vec<[Vec<u8>; 3]> = superblocks
        .iter()
        .map(|superblock| [(); 3].map(|()| superblock.encode().to_vec()))
        .collect();
    for change in changes.chunks_exact(4).take(64) {
        let member = usize::from(change[0] & 0x3f) % copies.len();
        let place = usize::from(u16::from_le_bytes([change[1], change[2]])) % (SECTOR - 4);
        // Most changes are of all copies, or they would differ.
        for copy in &mut copies[member][usize::from(change[0] >> 6) % 3..] {
            copy[place] = change[3];
        }
    }
    let members = superblocks.iter().zip(&copies);
    members.map(|(superblock, copies)| read(&metadata, superblock, copies)).collect()
}

/// The member that has these copies where `superblock` says.
fn read(metadata: &Arc<Metadata>, superblock: &Superblock, copies: &[Vec<u8>; 3]) -> Found {
    let mut sectors: BTreeMap<u64, Vec<u8>> = BTreeMap::new();
    for (lba, copy) in superblock.own.copies().iter().zip(copies) {
        sectors.insert(lba.get(), sealed(copy).to_vec());
    }
    let (metadata, holder) = (Arc::clone(metadata), MemberId::new(superblock.member));
    let slot = superblock.own.slots()[1].lba.get();
    let encoded = Inscription { metadata, holder }.encode();
    for (at, sector) in (slot..).zip(encoded.chunks(SECTOR)) {
        sectors.insert(at, sector.to_vec());
    }
    Found::read(SIZE, |extent| {
        assert!(extent.end().get() <= SIZE.get(), "past the end of the member");
        let sector = |lba| sectors.get(&lba).cloned().unwrap_or(vec![0; SECTOR]);
        Some((extent.lba.get()..extent.end().get()).flat_map(sector).collect())
    })
}

fn metadata(spec: Spec, has_journal: bool) -> Metadata {
    let division = Division::of(&spec, SIZE).expect("the members are large enough");
    let generation = Generation(1_000);
    let member = |at| Member {
        stored: generation,
        given: generation,
        ..Member::new(Uuid([0xB0 + at; 16]), Membership::Present)
    };
    Metadata {
        generation,
        array: Uuid([0xA0; 16]),
        run: Uuid([0xC0; 16]),
        base: Generation(900),
        spec,
        drive_size: division.drive_size,
        state: State::Dirty,
        forced: Forced::No,
        synced: 0,
        synced_last: 10,
        journal: has_journal.then_some(Kept { first: 1, logs: Logs::Parts }),
        wishes: Wishes::default(),
        members: (0..drives(spec)).map(member).collect(),
        damaged: DamagedList::default(),
    }
}

/// How many drives it has: those of all groups.
fn drives(spec: Spec) -> u8 {
    let bits = spec.groups().fold(0, |all, group| all | group.to_bits());
    bits.count_ones() as u8
}

fn superblock(metadata: &Metadata, drive: u8) -> Superblock {
    let Metadata { array, spec, drive_size, journal, .. } = *metadata;
    let division = Division::of(&spec, SIZE).expect("the members are large enough");
    let reserved = division.reserved(SIZE);
    Superblock {
        array,
        member: metadata.members[usize::from(drive)].id.uuid,
        spec,
        drive_size,
        logs: journal.map(|kept| kept.logs),
        own: Own { drive: DriveIdx::new(drive), size: SIZE, reserved },
        read_only: 0,
    }
}

/// A sector of these bytes and the right checksum.
fn sealed(bytes: &[u8]) -> [u8; SECTOR] {
    let mut sector = [0; SECTOR];
    let len = bytes.len().min(SECTOR - 4);
    sector[..len].copy_from_slice(&bytes[..len]);
    let checksum = crc32c::crc32c(&sector[..SECTOR - 4]);
    sector[SECTOR - 4..].copy_from_slice(&checksum.to_le_bytes());
    sector
}
