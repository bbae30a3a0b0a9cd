//! Cuts between the superblocks of an end in good order, and of the next mount, and whichever of them is left then.

use levelhead_block::Memory;

use crate::bed::{Bed, copy, newest};
use crate::format::inode::mode;
use crate::made::wishes;
use crate::request::What;

const PAGE: usize = 4_096;

/// Every set of superblocks that may be left.
const SETS: std::ops::Range<u8> = 1..8;

fn page(byte: u8) -> Vec<u8> {
    vec![byte; PAGE]
}

/// The same disk without the superblocks that are not in a set.
fn with_superblocks(disk: &Memory, set: u8) -> Memory {
    let places = newest(disk).expect("there is one").geometry.superblocks();
    let mut bed = Bed::mount(copy(disk), 0);
    for (at, lba) in places.into_iter().enumerate() {
        if set >> at & 1 == 0 {
            bed.overwrite(lba.get());
        }
    }
    bed.disk
}

/// The disk has a file of three pages, the second of which is one of some; and it can be written to, left in order, and mounted again.
fn is_in_order(disk: Memory, inode: u64, may_be: &[u8], what: &str) {
    let mut bed = Bed::mount(disk, 1);
    let found = bed.read(inode, 0, 100_000).unwrap_or_else(|errno| panic!("{what}: {errno:?}"));
    assert_eq!(found.len(), 3 * PAGE, "{what}");
    let pages: Vec<&[u8]> = found.chunks(PAGE).collect();
    assert!(pages[0] == page(1) && pages[2] == page(3), "{what}");
    assert!(may_be.iter().any(|&byte| pages[1] == page(byte)), "{what}: {:?}", &pages[1][..8]);
    bed.write(inode, 0, &page(11));
    let mut bed = Bed::mount(bed.unmount(), 2);
    assert_eq!(bed.read(inode, 0, PAGE as u32), Ok(page(11)), "{what}");
}

/// A file of three pages, the second of which was overwritten and synced: the journal has several records that count.
fn life(seed: u64) -> (Bed, u64) {
    let mut bed = Bed::made(&wishes(4_096, 3), seed);
    let name = bed.root("a file");
    let inode = bed.make(&name, mode::FILE | 0o644).inode;
    bed.write(inode, 0, &[page(1), page(2), page(3)].concat());
    let mut bed = Bed::mount(bed.unmount(), seed);
    bed.write(inode, PAGE as u64, &page(9));
    bed.sync(None);
    bed.write(inode, PAGE as u64, &page(4));
    bed.sync(None);
    (bed, inode)
}

/// What is on the medium after each command, until nothing is to be done.
fn media(bed: &mut Bed) -> Vec<Memory> {
    let mut media = vec![copy(&bed.medium)];
    while bed.step() {
        media.push(copy(&bed.medium));
    }
    media
}

#[test]
fn cut_between_superblocks_leaves_a_disk_in_order_whichever_of_them_are_left() {
    let (mut bed, inode) = life(1);
    bed.begin_unmount();
    let end = media(&mut bed);
    let mut bed = Bed::mount(bed.disk, 1);
    let mount = media(&mut bed);
    let generations = |disk: &Memory| {
        let of = |set| newest(&with_superblocks(disk, set)).map(|known| known.generation);
        [of(1), of(2), of(4)]
    };
    let mut between = 0;
    for (name, disk) in [("end", &end), ("mount", &mount)]
        .into_iter()
        .flat_map(|(name, all)| all.iter().map(move |one| (name, one)))
    {
        let known = generations(disk);
        let is_between = known[0] != known[2];
        between += u64::from(is_between);
        for set in SETS {
            let what = format!("{name}, generations {known:?}, superblocks {set:03b}");
            is_in_order(with_superblocks(disk, set), inode, &[4], &what);
            if is_between {
                // Everything is in its place, and its redundancy counts.
                let mut bed = Bed::mount(with_superblocks(disk, set), 0);
                let lba = bed.find(&page(3))[0];
                bed.overwrite(lba);
                is_in_order(bed.disk, inode, &[4], &what);
            }
        }
    }
    assert_eq!(between, 4, "after the first one and the second one, of the end and of the mount");
}

/// The journal of the life before has several records that counted, and the first one of this life is written over them. Cut off in the
/// middle of that, what is left of the old ones must not count, whichever superblocks are left.
#[test]
fn records_of_the_life_before_do_not_count_when_the_first_of_this_one_is_cut_off() {
    let (bed, inode) = life(2);
    let disk = bed.unmount();
    for seed in 0..60 {
        let mut bed = Bed::mount(copy(&disk), seed);
        bed.write(inode, PAGE as u64, &page(5));
        bed.ask(What::Sync { inode: None });
        for _ in 0..seed % 6 {
            bed.step();
        }
        let cut = bed.cut();
        for set in SETS {
            let what = format!("seed {seed}, superblocks {set:03b}");
            is_in_order(with_superblocks(&cut, set), inode, &[4, 5], &what);
        }
    }
}
