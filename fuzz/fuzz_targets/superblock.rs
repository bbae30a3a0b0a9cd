//! Whatever bytes lie where superblocks are expected: they are refused, or describe an array that can be.
//!
//! The first byte of the input chooses. From 128 on the input is cut into members of two copies each, as it is. Below,
//! there is an array in good order, and the input changes bytes of its members' copies: nothing would find the way
//! through all that must go together by itself. Checksums are made right, or nothing behind them would ever be reached.

#![no_main]

use levelhead_array::Layout;
use levelhead_array::Spec;
use levelhead_array::membership::{Member, Membership};
use levelhead_array::quorum::{Copy, Found, quorum};
use levelhead_array::reserve::Division;
use levelhead_array::superblock::{Book, Forced, Kept, Logs, Own, State, Superblock, Uuid};
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
    if let Ok(assembly) = quorum(&found) {
        let layout = Layout::new(assembly.book.spec, assembly.area.size());
        assert!(layout.stripes() >= assembly.trusted);
        assert!(assembly.absent.len() as usize <= assembly.book.spec.redundant());
    }
});

/// Members whose copies the input is cut into.
fn as_they_are(bytes: &[u8]) -> Vec<Found> {
    let members = bytes.chunks(2 * SECTOR).take(8).map(|member| {
        let (first, second) = member.split_at(member.len().min(SECTOR));
        Found::new([copy(first), copy(second)], Sectors::new(1 << 41))
    });
    members.collect()
}

/// Members of an array, with changes of three bytes each: which member and copy and where, and what is there then.
fn changed(first: u8, changes: &[u8]) -> Vec<Found> {
    let text = SPECS[usize::from(first) % SPECS.len()];
    let spec: Spec = text.parse().expect("it is a shape");
    let mut copies: Vec<[Vec<u8>; 2]> = (0..drives(spec))
        .map(|drive| {
            let bytes = superblock(spec, drive, first & 64 != 0).encode();
            [bytes.to_vec(), bytes.to_vec()]
        })
        .collect();
    for change in changes.chunks_exact(4).take(64) {
        let member = usize::from(change[0] & 0x7f) % copies.len();
        let place = usize::from(u16::from_le_bytes([change[1], change[2]])) % (SECTOR - 4);
        // Most changes are of both copies, or the other one would be taken.
        for copy in &mut copies[member][usize::from(change[0] >> 7)..] {
            copy[place] = change[3];
        }
    }
    let members = copies.iter().map(|[one, other]| Found::new([copy(one), copy(other)], SIZE));
    members.collect()
}

/// How many drives it has: those of all groups.
fn drives(spec: Spec) -> u8 {
    let bits = spec.groups().fold(0, |all, group| all | group.to_bits());
    bits.count_ones() as u8
}

fn superblock(spec: Spec, drive: u8, has_journal: bool) -> Superblock {
    let division = Division::of(&spec, SIZE).expect("the members are large enough");
    let member = |at| Member { uuid: Uuid([0xB0 + at; 16]), membership: Membership::Present };
    let book = Book {
        generation: 1_000,
        array: Uuid([0xA0; 16]),
        run: Uuid([0xC0; 16]),
        spec,
        drive_size: division.drive_size,
        state: State::Dirty,
        forced: Forced::No,
        synced: 0,
        synced_last: 10,
        journal: has_journal.then_some(Kept { first: 1, logs: Logs::Parts }),
        missed: levelhead_units::DriveSet::EMPTY,
        wishes: levelhead_array::Wishes::default(),
        members: (0..drives(spec)).map(member).collect(),
    };
    let reserved = division.reserved(SIZE);
    Superblock {
        book,
        own: Own { drive: DriveIdx::new(drive), size: SIZE, reserved },
        read_only: 0,
    }
}

/// A sector of these bytes and the right checksum.
fn copy(bytes: &[u8]) -> Copy {
    let mut sector = [0; SECTOR];
    let len = bytes.len().min(SECTOR - 4);
    sector[..len].copy_from_slice(&bytes[..len]);
    let checksum = crc32c::crc32c(&sector[..SECTOR - 4]);
    sector[SECTOR - 4..].copy_from_slice(&checksum.to_le_bytes());
    let decoded = Superblock::decode(&sector);
    if let Ok(superblock) = &decoded {
        let again = Superblock::decode(&superblock.encode());
        assert_eq!(again.as_ref(), Ok(superblock));
    }
    Copy::Read(Box::new(decoded))
}
