//! Checks of what was used, cut off and damaged.

use std::collections::BTreeSet;

use levelhead_block::{BlockDevice, Memory, Outcome, Reply, Request, SectorSet};
use levelhead_erasure::Kernel;

use levelhead_units::{Extent, Lba, Sectors};

use super::shelf::Shelf;
use super::{CheckOptions, Depth, Fate, Listed, Problem, Repair, Report, check};
use crate::bed::Bed;
use crate::format::inode::mode;
use crate::format::superblock::Superblock;
use crate::format::unit::Sector;
use crate::request::{Allocation, Answer, Changes, Named, Removed, Renaming, Setting, What};

const FILE: u32 = mode::FILE | 0o644;
const DIRECTORY: u32 = mode::DIRECTORY | 0o755;

pub(super) fn looked(disk: &mut Memory) -> Report {
    let options = CheckOptions { depth: Depth::Data, ..CheckOptions::new(Kernel::best()) };
    check(disk, &options).unwrap()
}

#[track_caller]
pub(super) fn assert_clean(report: &Report) {
    let first: Vec<String> =
        report.listed.iter().take(9).map(|listed| listed.problem.to_string()).collect();
    assert!(report.is_clean(), "{} problems: {first:#?}", report.problems);
}

/// Some random requests: names come, go and change, files are written, cut and punched.
pub(super) fn use_at_random(bed: &mut Bed, steps: u64) {
    let root = bed.fs.root();
    let mut directories = vec![root];
    for _ in 0..steps {
        let pick = |bed: &mut Bed, directories: &[u64]| {
            let parent = directories[bed.rng().below(directories.len() as u64) as usize];
            let name = format!("name {}", bed.rng().below(12)).into_bytes();
            Named { parent, name }
        };
        let (name, other) = (pick(bed, &directories), pick(bed, &directories));
        let found = match bed.run(What::Lookup(name.clone())) {
            Answer::Entry(found) => Some(found),
            _ => None,
        };
        let what = match (bed.rng().below(16), found) {
            (0..3, _) => What::Make { name, mode: FILE, umask: 0, device: 0 },
            (3, _) => What::Make { name, mode: DIRECTORY, umask: 0, device: 0 },
            (4, _) => {
                let target = vec![b'x'; 1 + bed.rng().below(3_000) as usize];
                What::MakeLink { name, target }
            }
            (5, _) => What::Remove { name, what: Removed::File },
            (6, _) => What::Remove { name, what: Removed::Directory },
            (7, _) => {
                let mode = [Renaming::Replace, Renaming::Keep, Renaming::Exchange]
                    [bed.rng().below(3) as usize];
                What::Rename { from: name, to: other, mode }
            }
            (_, None) => continue,
            (8, Some(found)) => What::Link { inode: found.inode, name: other },
            (9, Some(found)) => {
                let size = Some(bed.rng().below(200_000));
                let changes = Changes { size, ..Changes::default() };
                What::SetAttributes { inode: found.inode, changes }
            }
            (10, Some(found)) => {
                let (offset, count) = (bed.rng().below(200_000), 1 + bed.rng().below(90_000));
                let how = [Allocation::Punch, Allocation::Keep, Allocation::Zero]
                    [bed.rng().below(3) as usize];
                What::Allocate { inode: found.inode, offset, count, how }
            }
            (11, Some(found)) => What::SetExtended {
                inode: found.inode,
                name: format!("user.{}", bed.rng().below(5)).into_bytes(),
                value: vec![7; bed.rng().below(500) as usize],
                mode: Setting::Any,
            },
            (12, _) => What::Sync { inode: None },
            (_, Some(found)) => {
                let most = if bed.rng().below(4) == 0 { 300_000 } else { 9_000 };
                let mut bytes = vec![0; 1 + bed.rng().below(most) as usize];
                bed.rng().fill(&mut bytes);
                let offset = bed.rng().below(200_000);
                What::Write { inode: found.inode, offset, bytes, appends: false }
            }
        };
        let is_new = matches!(what, What::Make { mode: DIRECTORY, .. });
        if let Answer::Entry(made) = bed.run(what)
            && is_new
            && directories.len() < 6
        {
            directories.push(made.inode);
        }
        for _ in 0..bed.rng().below(4) {
            bed.step();
        }
    }
}

#[test]
fn new_filesystem_is_clean() {
    let mut bed = Bed::new(20_000, 1);
    bed.sync(None);
    let report = looked(&mut bed.unmount());
    assert_clean(&report);
    assert!(report.was_in_order);
    assert_eq!((report.files, report.directories), (0, 1));
}

#[test]
fn filesystem_that_was_used_is_clean_and_its_files_are_counted() {
    let mut bed = Bed::new(20_000, 1);
    for at in 0..40 {
        let name = bed.root(&format!("file {at}"));
        let inode = bed.make(&name, FILE).inode;
        bed.write(inode, 0, &vec![at as u8; 1_000 * at]);
    }
    let report = looked(&mut bed.unmount());
    assert_clean(&report);
    assert_eq!((report.files, report.directories), (40, 1));
}

#[test]
fn filesystem_is_clean_after_any_use() {
    for seed in 0..if cfg!(debug_assertions) { 12 } else { 200 } {
        let mut bed = Bed::new(20_000, seed);
        use_at_random(&mut bed, 200);
        let report = looked(&mut bed.unmount());
        println!("seed {seed}: {} files", report.files);
        assert_clean(&report);
    }
}

#[test]
fn filesystem_is_clean_after_a_cut_at_any_moment() {
    for seed in 0..if cfg!(debug_assertions) { 12 } else { 400 } {
        let mut bed = Bed::new(20_000, seed);
        let steps = 20 + bed.rng().below(150);
        use_at_random(&mut bed, steps);
        let steps = bed.rng().below(20);
        for _ in 0..steps {
            bed.step();
        }
        let mut disk = bed.cut();
        println!("seed {seed}");
        let before = disk.clone();
        let report = looked(&mut disk);
        assert_clean(&report);
        let all = Extent::new(Lba::ZERO, Sectors::new(20_000));
        assert!(disk.bytes(all) == before.bytes(all), "CK1");
    }
}

/// A disk of which some sectors cannot be written.
struct Worn<'a> {
    below: &'a mut Memory,
    unwritable: BTreeSet<Lba>,
}

impl BlockDevice for Worn<'_> {
    fn size(&self) -> Sectors {
        self.below.size()
    }

    fn run(&mut self, batch: Vec<Request>) -> Vec<Reply> {
        let mut replies = Vec::new();
        for request in batch {
            let extent = request.command.extent().filter(|_| request.command.is_write());
            let is_bad = |extent: Extent| extent.iter().any(|lba| self.unwritable.contains(&lba));
            replies.extend(match extent.filter(|&extent| is_bad(extent)) {
                Some(extent) => {
                    let (unknown, damaged) = (SectorSet::EMPTY, SectorSet::first(extent.sectors));
                    vec![Reply::bare(Outcome::Done { unknown, damaged })]
                }
                None => self.below.run(vec![request]),
            });
        }
        replies
    }
}

/// A repair of what lies in sectors that cannot be written says so, and leaves no problem; without a repair an older copy is told from a
/// damaged one.
#[test]
fn sectors_that_cannot_be_written_are_no_problem_that_is_left() {
    let mut shelf = Shelf::new();
    let lead = crate::format::inode::InodePlace::of(shelf.file).lead;
    let copy = shelf.superblock.geometry.copies_of(lead)[1];
    let older = shelf.sector(copy).to_vec();
    shelf.edit(shelf.file, |inode| inode.modified.seconds = 77);
    let data = shelf.window(shelf.file).extent.lba;
    shelf.sector(copy).copy_from_slice(&older);
    shelf.spoil(data);
    let copies = Problem::Copies { lead, bad: 1, unwritten: 1 };
    assert!(looked(&mut shelf.disk).listed.iter().any(|listed| listed.problem == copies));
    let options = CheckOptions {
        depth: Depth::Data,
        repair: Repair::All,
        ..CheckOptions::new(Kernel::best())
    };
    let mut worn = Worn { below: &mut shelf.disk, unwritable: [copy, data].into() };
    let report = check(&mut worn, &options).unwrap();
    assert!(report.is_clean(), "{report:?}");
    // The next mount compares copies.
    for lba in shelf.superblock.geometry.superblocks() {
        let sector: Sector = (&*shelf.sector(lba)).try_into().unwrap();
        assert!(Superblock::decode(&sector).unwrap().has_older_copies(), "{lba:?}");
    }
    let is_its = |listed: &Listed| match listed.problem {
        Problem::Copies { .. } => listed.problem == copies,
        Problem::Data { lba, .. } => lba == data,
        _ => false,
    };
    assert_eq!(report.listed.len(), 2, "{report:?}");
    assert!(
        report.listed.iter().all(|listed| is_its(listed) && listed.fate == Fate::Unwritable),
        "{report:?}"
    );
}
