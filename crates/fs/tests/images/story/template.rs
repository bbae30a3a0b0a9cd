//! Filesystems before they are damaged: of several shapes, with files of all types, left in order or cut off.

use levelhead_fs::format::ladder::Ladder;
use levelhead_fs::format::record::Descriptor;
use levelhead_fs::format::superblock::Superblock;
use levelhead_fs::format::unit::Head;
use levelhead_fs::{
    Allocation, Answer, Changes, Moment, MountMode, Named, Removed, Setting, What, Wishes, make,
};
use levelhead_units::{Lba, Sectors};

use super::disk::Disk;
use super::mounted::Mounted;

/// A disk with a filesystem, and where what can be damaged lies.
#[derive(Clone, Debug)]
pub(crate) struct Template {
    pub(crate) disk: Disk,
    pub(crate) superblock: Superblock,
    /// Leads of units.
    pub(crate) leads: Vec<Lba>,
    /// Sectors of descriptors of the journal.
    pub(crate) descriptors: Vec<Lba>,
    /// Inodes of files.
    pub(crate) inodes: Vec<u64>,
}

/// What a template is like.
struct Shape {
    sectors: u64,
    copies: u8,
    /// Of the ladder; without any there is no redundancy.
    rungs: &'static [u16],
    interleave: u8,
    is_cut: bool,
}

const RUNGS: &[u16] = &[0, 4, 8, 16];

const SHAPES: [Shape; 5] = [
    Shape { sectors: 4_096, copies: 1, rungs: RUNGS, interleave: 1, is_cut: false },
    Shape { sectors: 4_500, copies: 3, rungs: RUNGS, interleave: 4, is_cut: true },
    Shape { sectors: 5_120, copies: 2, rungs: &[0, 4], interleave: 8, is_cut: false },
    Shape { sectors: 4_100, copies: 1, rungs: RUNGS, interleave: 2, is_cut: true },
    Shape { sectors: 4_096, copies: 2, rungs: &[], interleave: 1, is_cut: true },
];

const FILE: u32 = 0o100_644;
const DIRECTORY: u32 = 0o040_755;

/// All of them.
pub(crate) fn templates() -> Vec<Template> {
    SHAPES.iter().map(template).collect()
}

fn template(shape: &Shape) -> Template {
    let ladder = match shape.rungs {
        [] => Ladder::without_redundancy(100),
        rungs => Ladder::new(rungs),
    };
    let wishes = Wishes {
        size: Sectors::new(shape.sectors),
        copies: shape.copies,
        ladder: ladder.expect("there is such a code"),
        interleave: shape.interleave,
        forced: None,
        identity: [7; 16],
        label: "a label".to_owned(),
        uid: 0,
        gid: 0,
        now: Moment::default(),
    };
    let new = make(&wishes).expect("it can be made");
    let mut disk = Disk::new(wishes.size);
    for written in new.first.iter().chain(&new.last) {
        disk.put(written.lba, &written.bytes);
    }
    let mut mounted = Mounted::new(disk, new.superblock.clone(), MountMode::ReadWrite, 5);
    let inodes = fill(&mut mounted);
    let (disk, superblock) = match shape.is_cut {
        false => {
            let disk = mounted.unmount();
            let superblock = Superblock::decode(&disk.sector(Lba::ZERO)).expect("it is whole");
            (disk, superblock)
        }
        // Everything was synced, and much of it is in the journal alone.
        true => (mounted.disk, new.superblock),
    };
    let sectors: Vec<Lba> = disk.written().into_iter().map(Lba::new).collect();
    let is_lead = |lba: &Lba| Head::open(&disk.sector(*lba)).is_ok_and(|head| head.lba == *lba);
    let filesystem = superblock.filesystem();
    let is_descriptor =
        |lba: &Lba| Descriptor::decode_part(&disk.sector(*lba), filesystem, *lba).is_some();
    let (descriptors, leads): (Vec<Lba>, Vec<Lba>) =
        sectors.into_iter().filter(is_lead).partition(is_descriptor);
    Template { disk: disk.fresh(), superblock, leads, descriptors, inodes }
}

/// Files of all types, whose trees have one and several levels.
fn fill(mounted: &mut Mounted) -> Vec<u64> {
    let root = mounted.root();
    let named = |parent, name: &str| Named { parent, name: name.as_bytes().to_vec() };
    let mut inodes = vec![root];
    let mut make = |mounted: &mut Mounted, name: Named, mode| {
        let answer = mounted.run(What::Make { name, mode, umask: 0, device: 0 });
        let Answer::Entry(made) = answer else { panic!("{answer:?}") };
        inodes.push(made.inode);
        made.inode
    };
    let folder = make(mounted, named(root, "folder"), DIRECTORY);
    let inner = make(mounted, named(folder, "inner"), DIRECTORY);
    let large = make(mounted, named(inner, "large"), FILE);
    let holes = make(mounted, named(root, "holes"), FILE);
    let small = make(mounted, named(root, "small"), FILE);
    make(mounted, named(root, "pipe"), 0o010_600);
    let gone = make(mounted, named(root, "gone"), FILE);
    for at in 0..40 {
        make(mounted, named(folder, &format!("{at:0>120}")), FILE);
    }
    let bytes = |count: usize, step: usize| (0..count).map(|at| (at * step / 7) as u8).collect();
    let write =
        |inode, offset, bytes: Vec<u8>| What::Write { inode, offset, bytes, appends: false };
    let hole =
        What::Allocate { inode: large, offset: 20_000, count: 30_000, how: Allocation::Punch };
    let attribute = |at: usize| What::SetExtended {
        inode: small,
        name: format!("user.{at}").into_bytes(),
        value: bytes(50 * at, 3),
        mode: Setting::Any,
    };
    let mut all = vec![
        write(large, 0, bytes(400_000, 3)),
        write(small, 0, bytes(100, 5)),
        write(gone, 0, bytes(9_000, 5)),
        What::Link { inode: small, name: named(folder, "again") },
        What::MakeLink { name: named(root, "short"), target: bytes(50, 9) },
        What::MakeLink { name: named(root, "long"), target: vec![b'x'; 3_000] },
        What::Remove { name: named(root, "gone"), what: Removed::File },
        attribute(1),
        attribute(2),
        What::Sync { inode: None },
        write(large, 90_000, bytes(9_000, 11)),
        hole,
    ];
    // Windows of a page each, more than the inode has room for.
    all.extend((0..30).map(|at| write(holes, at * 40_000, bytes(10, 13))));
    all.push(What::Sync { inode: None });
    let size = Some(350_000);
    all.push(What::SetAttributes { inode: large, changes: Changes { size, ..Changes::default() } });
    all.push(write(small, 20_000, bytes(3_000, 5)));
    all.push(What::Sync { inode: None });
    for what in all {
        let answer = mounted.run(what);
        assert!(!matches!(answer, Answer::Failed(_)), "{answer:?}");
    }
    inodes
}
