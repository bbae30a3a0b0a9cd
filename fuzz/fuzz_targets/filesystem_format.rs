//! Whatever bytes lie where a structure of the filesystem is expected: they are refused, or are the same when they are written and
//! read again, and what follows from them lies on the disk.
//!
//! The first byte of the input chooses the structure, the rest is its bytes. Checksums are made right, or nothing behind them would
//! ever be reached.

#![no_main]

use levelhead_fs::format::entry::{Entry, TWINS, key_of};
use levelhead_fs::format::extent::{PagePlace, WINDOW, Window, WordSymbol};
use levelhead_fs::format::inode::{INODE, Inode, InodePlace};
use levelhead_fs::format::ladder::Ladder;
use levelhead_fs::format::node::Node;
use levelhead_fs::format::packed::{self, Packed};
use levelhead_fs::format::record::{Descriptor, ENTRIES};
use levelhead_fs::format::superblock::Superblock;
use levelhead_fs::format::unit::{HEAD, Head, Kind, Sector};
use levelhead_fs::geometry::{Geometry, GroupIdx};
use levelhead_units::{Lba, SECTOR_SIZE};
use libfuzzer_sys::fuzz_target;

const FILESYSTEM: u64 = 77;

/// Bytes of a unit's body.
const BODY: usize = SECTOR_SIZE - HEAD;

fuzz_target!(|bytes: &[u8]| {
    let Some((&first, rest)) = bytes.split_first() else { return };
    match first % 7 {
        0 => superblock(rest),
        1 => head(rest),
        2 => inode(rest),
        3 => node(rest),
        4 => window(rest),
        5 => descriptor(rest),
        _ => entry(rest),
    }
});

/// A sector that begins with some bytes.
fn sector(bytes: &[u8]) -> Sector {
    let mut sector = [0; SECTOR_SIZE];
    let count = bytes.len().min(SECTOR_SIZE);
    sector[..count].copy_from_slice(&bytes[..count]);
    sector
}

/// Magic and version are those of a superblock: the input has what is behind them.
fn superblock(bytes: &[u8]) {
    let mut sector = sector(&[&b"levelhead disk\0\0\x01\0\0\0"[..], bytes].concat());
    let sum = crc32c::crc32c(&sector[..SECTOR_SIZE - 4]);
    sector[SECTOR_SIZE - 4..].copy_from_slice(&sum.to_le_bytes());
    let Ok(superblock) = Superblock::decode(&sector) else { return };
    assert_eq!(Superblock::decode(&superblock.encode()).as_ref(), Ok(&superblock));
    let Superblock { geometry, ladder, summary, .. } = superblock;
    places(&geometry);
    assert!(geometry.may_lead_summary(summary));
    for data in [1, u32::from(ladder.data_max())] {
        assert!(ladder.redundant(data) <= ladder.redundant_max());
    }
}

/// Everything that follows from a geometry lies on the disk.
fn places(geometry: &Geometry) {
    let Geometry { sectors, .. } = *geometry;
    assert!(geometry.journal().end().get() <= sectors);
    assert!(geometry.superblocks().iter().all(|lba| lba.get() < sectors));
    let last = geometry.groups() - 1;
    for group in [0, 1, geometry.groups() / 2, last - 1, last].map(GroupIdx) {
        let extent = geometry.group(group);
        assert!(extent.end().get() <= sectors);
        let first = extent.lba.get();
        for lba in [first, extent.end().get() - 1, first + geometry.fixed_end()].map(Lba::new) {
            if lba >= extent.end() {
                continue;
            }
            for lead in [geometry.bitmap_of(lba), geometry.sum_of(lba).lead, lba] {
                if geometry.may_lead(lead) {
                    assert!(geometry.copies_of(lead).iter().all(|copy| copy.get() < sectors));
                }
            }
            assert!(geometry.may_lead(geometry.bitmap_of(lba)));
            assert!(geometry.may_lead(geometry.sum_of(lba).lead));
        }
    }
}

fn head(bytes: &[u8]) {
    let sector = sector(bytes);
    let Ok(head) = Head::open(&sector) else {
        let mut sealed = sector;
        let lba = Lba::new(5);
        let head = Head { kind: Kind::Node, filesystem: FILESYSTEM, lba, generation: 1, owner: 2 };
        head.seal(&mut sealed);
        assert_eq!(Head::open(&sealed), Ok(head));
        return;
    };
    let mut again = sector;
    head.seal(&mut again);
    assert_eq!(again, sector);
}

fn inode(bytes: &[u8]) {
    let bytes = &sector(bytes)[..INODE];
    let Some(inode) = Inode::decode(bytes) else { return };
    let mut again = [0; INODE];
    inode.encode(&mut again);
    assert_eq!(Inode::decode(&again), Some(inode));
    let number = u64::from_le_bytes(bytes[..8].try_into().expect("8 bytes")) >> 8;
    assert_eq!(InodePlace::of(number).number(), number);
}

/// A node as a whole and in its place; keys come and go.
fn node(bytes: &[u8]) {
    let mut area = sector(bytes)[..BODY].to_vec();
    let node = Node::decode(&area);
    assert_eq!(Packed::new(&area).is_some(), node.is_some());
    let Some(mut node) = node else { return };
    check_node(&area, &node);
    if node.depth > 0 {
        return;
    }
    for key in bytes.iter().take(16).map(|&byte| u64::from(byte) << 3) {
        match node.find(key) {
            Ok(at) => {
                packed::remove(&mut area, key);
                node.pairs.remove(at);
            }
            Err(at) if Packed::new(&area).expect("it is one").has_room(5) => {
                packed::insert(&mut area, key, b"value");
                let value = b"value".to_vec();
                node.pairs.insert(at, levelhead_fs::format::node::Pair { key, value });
            }
            Err(_) => {}
        }
        check_node(&area, &node);
    }
}

fn check_node(area: &[u8], node: &Node) {
    let packed = Packed::new(area).expect("it is a node");
    assert_eq!((packed.depth(), usize::from(packed.count())), (node.depth, node.pairs.len()));
    let pairs: Vec<(u64, &[u8])> = packed.pairs().map(|pair| (pair.key, pair.value)).collect();
    let expected: Vec<(u64, &[u8])> =
        node.pairs.iter().map(|pair| (pair.key, &pair.value[..])).collect();
    assert_eq!(pairs, expected);
    for key in [0, 8, 1 << 40, u64::MAX] {
        let floor = node.floor(key).map(|at| node.pairs[at].key);
        assert_eq!(packed.floor(key).map(|pair| pair.key), floor);
    }
    let mut again = vec![1; area.len()];
    node.encode(&mut again);
    assert_eq!(Node::decode(&again).as_ref(), Some(node));
}

fn window(bytes: &[u8]) {
    const SIZE: u64 = 1 << 40;
    let bytes = &sector(bytes)[..WINDOW];
    let Some(window) = Window::decode(bytes, SIZE) else { return };
    assert_eq!(window.encode(), bytes);
    let extent = window.extent;
    assert!(extent.all().end().get() <= SIZE && extent.data().contains(window.first()));
    assert!(u64::from(window.skip) + u64::from(window.count) <= u64::from(extent.pages()));
    for place in window.places() {
        let sectors = match place {
            PagePlace::Whole(lba) => vec![lba],
            PagePlace::Split(place) => {
                assert_eq!(place.twin, extent.twin_of(place.complement));
                [Some(place.primary), Some(place.complement), place.twin]
                    .into_iter()
                    .flatten()
                    .collect()
            }
        };
        assert!(sectors.iter().all(|&lba| extent.data().contains(lba)));
        assert!(extent.page_of(sectors[0]).is_some());
    }
    let sectors = extent.all().sectors.get() as u32;
    let mut symbols = 0;
    for word in 0..extent.words() {
        let count = extent.word_data(word) as usize + usize::from(extent.redundant);
        assert!(count <= Ladder::LENGTH_MAX);
        symbols += count;
        for symbol in [0, count / 2, count - 1] {
            let of = WordSymbol { word, symbol };
            assert!(extent.sector(of) < sectors);
            assert_eq!(extent.symbol(extent.sector(of)), of);
        }
    }
    // Where it is woven wider than it has data, some redundant sectors are of no codeword.
    assert!(symbols <= sectors as usize);
}

/// The input is the body behind the head, which is right.
fn descriptor(bytes: &[u8]) {
    let place = Lba::new(900);
    let mut sector = sector(&[&[0; HEAD], bytes].concat());
    let generation = u64::from_le_bytes(sector[HEAD..HEAD + 8].try_into().expect("8 bytes"));
    let (kind, filesystem, owner) = (Kind::Record, FILESYSTEM, 0);
    Head { kind, filesystem, lba: place, generation, owner }.seal(&mut sector);
    let Some(part) = Descriptor::decode_part(&sector, FILESYSTEM, place) else { return };
    assert!(part.part < part.sectors && part.entries.len() <= ENTRIES);
    let (record, oldest, oldest_at) = (part.record, part.oldest, part.oldest_at);
    let entries = part.entries.clone();
    let descriptor = Descriptor { filesystem, record, oldest, oldest_at, entries };
    if part.sectors == 1 {
        let again = Descriptor::decode_part(&descriptor.encode(&[place])[0], FILESYSTEM, place);
        let again = again.expect("it was one before");
        assert_eq!(again.entries, part.entries);
        assert_eq!((again.record, again.oldest, again.oldest_at), (record, oldest, oldest_at));
    }
}

fn entry(bytes: &[u8]) {
    let key = key_of(bytes, FILESYSTEM);
    assert!(key.is_multiple_of(TWINS) && (TWINS..1 << 63).contains(&(key + TWINS)));
    if let Some(entry) = Entry::decode(bytes) {
        assert_eq!(entry.encode(), bytes);
    }
}
