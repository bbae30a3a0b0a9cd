//! Every kind of damage that a check knows, planted: each is found, and what has one right answer is repaired without a loss.

use std::collections::BTreeMap;

use levelhead_block::Memory;
use levelhead_erasure::Kernel;
use levelhead_units::{Lba, Sectors};

use super::shelf::{DIRECTORY, FILE, NOW, Shelf};
use super::tests::{assert_clean, looked};
use super::{CheckOptions, Depth, List, Problem, Repair, check};
use crate::bed::Bed;
use crate::format::entry::{Entry, key_of};
use crate::format::fields::FieldsMut;
use crate::format::inode::{INODE, Inode, InodePlace, mode};
use crate::format::unit::{Head, Kind, Sector};
use crate::geometry::GroupIdx;
use crate::request::{Answer, Named, What};
use crate::space::Wanted;
use crate::sums::sum_of;

/// Files by their paths, and their bytes.
type Content = BTreeMap<&'static str, Vec<u8>>;

/// What the files have, over the next mount.
fn content(disk: Memory, paths: &[&'static str]) -> Content {
    let mut bed = Bed::mount(disk, 1);
    let mut found = Content::new();
    for &path in paths {
        let (mut parent, mut at) = (bed.fs.root(), None);
        for name in path.split('/') {
            let named = Named { parent, name: name.as_bytes().to_vec() };
            let Answer::Entry(entry) = bed.run(What::Lookup(named)) else {
                panic!("{path} is not there");
            };
            (parent, at) = (entry.inode, Some(entry));
        }
        let entry = at.unwrap();
        let is_file = entry.mode & mode::TYPE == mode::FILE;
        let bytes = if is_file { bed.read(entry.inode, 0, 400_000).unwrap() } else { Vec::new() };
        found.insert(path, bytes);
    }
    found
}

const PATHS: [&str; 5] = ["file", "small", "folder", "folder/inner", "folder/below"];

struct Planted {
    name: &'static str,
    plant: fn(&mut Shelf),
    is_it: fn(&Problem) -> bool,
}

/// What has one right answer.
fn mended() -> Vec<Planted> {
    vec![
        Planted {
            name: "a superblock",
            plant: |shelf| shelf.spoil(Lba::ZERO),
            is_it: |problem| matches!(problem, Problem::Superblock { .. }),
        },
        Planted {
            name: "copies of a unit",
            plant: |shelf| {
                let lead = InodePlace::of(shelf.file).lead;
                let copies = shelf.superblock.geometry.copies_of(lead);
                copies[1..].iter().for_each(|&copy| shelf.spoil(copy));
            },
            is_it: |problem| matches!(problem, Problem::Copies { bad: 2, .. }),
        },
        Planted {
            name: "a bitmap",
            plant: |shelf| {
                let lead = shelf.superblock.geometry.bitmap_of(Lba::new(9));
                shelf.spoil_unit(lead);
            },
            is_it: |problem| matches!(problem, Problem::UnitLost { kind: Kind::Bitmap, .. }),
        },
        Planted {
            name: "the summary",
            plant: |shelf| shelf.spoil_unit(shelf.superblock.summary),
            is_it: |problem| matches!(problem, Problem::UnitLost { kind: Kind::Summary, .. }),
        },
        Planted {
            name: "checksums",
            plant: |shelf| {
                let lba = shelf.window(shelf.file).extent.lba;
                shelf.spoil_unit(shelf.superblock.geometry.sum_of(lba).lead);
            },
            is_it: |problem| matches!(problem, Problem::UnitLost { kind: Kind::Sums, .. }),
        },
        Planted {
            name: "a number of the summary",
            plant: |shelf| {
                shelf.edit_unit(shelf.superblock.summary, |body| FieldsMut(body).put_u32(0, 77));
            },
            is_it: |problem| matches!(problem, Problem::Summary { group: GroupIdx(0), .. }),
        },
        Planted {
            name: "sectors that nothing has",
            plant: |shelf| {
                shelf.plant(|attempt| {
                    attempt.take_run(Lba::new(2_000), Wanted { most: 9, least: 1 })
                });
            },
            is_it: |problem| matches!(problem, Problem::Leaked(_)),
        },
        Planted {
            name: "sectors in use that are free",
            plant: |shelf| {
                let all = shelf.window(shelf.file).extent.all();
                shelf.plant(|attempt| attempt.give_back(all));
            },
            is_it: |problem| matches!(problem, Problem::Free(_)),
        },
        Planted {
            name: "sectors of an inode",
            plant: |shelf| shelf.edit(shelf.file, |inode| inode.sectors += 1),
            is_it: |problem| matches!(problem, Problem::Sectors { .. }),
        },
        Planted {
            name: "entries of a directory",
            plant: |shelf| shelf.edit(shelf.folder, |inode| inode.size = 9),
            is_it: |problem| matches!(problem, Problem::Size { says: 9, is: 2, .. }),
        },
        Planted {
            name: "links of a file",
            plant: |shelf| shelf.edit(shelf.small, |inode| inode.links = 2),
            is_it: |problem| matches!(problem, Problem::Links { says: 2, is: 1, .. }),
        },
        Planted {
            name: "links of a directory",
            plant: |shelf| shelf.edit(shelf.folder, |inode| inode.links = 2),
            is_it: |problem| matches!(problem, Problem::Links { says: 2, is: 3, .. }),
        },
        Planted {
            name: "a parent",
            plant: |shelf| {
                let root = shelf.superblock.root;
                shelf.edit(shelf.below, move |inode| inode.parent = root);
            },
            is_it: |problem| matches!(problem, Problem::Parent { .. }),
        },
        Planted {
            name: "an orphan that is on no list",
            plant: |shelf| {
                let root = shelf.superblock.root;
                shelf.plant(|attempt| attempt.new_inode(root, &Inode::new(FILE, NOW)));
            },
            is_it: |problem| matches!(problem, Problem::ForgottenOrphan { .. }),
        },
        Planted {
            name: "an orphan that is free",
            plant: |shelf| {
                let number = shelf.free_number();
                shelf.plant(|attempt| attempt.add_orphan(number));
            },
            is_it: |problem| matches!(problem, Problem::FreeOrphan { .. }),
        },
        Planted {
            name: "a name that leads to nothing",
            plant: |shelf| {
                let number = shelf.free_number();
                shelf.name(shelf.folder, b"nothing", number, FILE);
            },
            is_it: |problem| matches!(problem, Problem::Dangling { .. }),
        },
        Planted {
            name: "the type of a name",
            plant: |shelf| {
                let (root, small) = (shelf.superblock.root, shelf.small);
                shelf.unname(root, b"small");
                shelf.name(root, b"small", small, DIRECTORY);
            },
            is_it: |problem| matches!(problem, Problem::EntryType { .. }),
        },
        Planted {
            name: "the place of a name",
            plant: |shelf| {
                let (root, inode) = (shelf.superblock.root, shelf.small);
                shelf.unname(root, b"small");
                shelf.name(root, b"other", inode, FILE);
                let key = key_of(b"other", shelf.superblock.filesystem());
                let kind = (FILE >> 12) as u8;
                shelf.put(root, key, &Entry { inode, kind, name: b"small".to_vec() }.encode());
            },
            is_it: |problem| matches!(problem, Problem::Name { .. }),
        },
        Planted {
            name: "a name that is there twice",
            plant: |shelf| {
                let (root, inode) = (shelf.superblock.root, shelf.inner);
                let key = key_of(b"small", shelf.superblock.filesystem()) + 7;
                let kind = (FILE >> 12) as u8;
                shelf.put(root, key, &Entry { inode, kind, name: b"small".to_vec() }.encode());
                shelf.edit(inode, |inode| inode.links += 1);
                shelf.edit(root, |inode| inode.size += 1);
            },
            is_it: |problem| matches!(problem, Problem::Name { .. }),
        },
        Planted {
            name: "a second name of a directory",
            plant: |shelf| {
                shelf.name(shelf.superblock.root, b"again", shelf.below, DIRECTORY);
            },
            is_it: |problem| matches!(problem, Problem::SecondName { .. }),
        },
        Planted {
            name: "a unit that the list of units lacks",
            plant: |shelf| {
                let (units, lead) = (shelf.superblock.units, InodePlace::of(shelf.inner).lead);
                shelf.plant(|attempt| attempt.list_unit(units, lead, false));
            },
            is_it: |problem| matches!(problem, Problem::Unlisted { list: List::Units, .. }),
        },
        Planted {
            name: "a unit that has free inodes and is not listed",
            plant: |shelf| {
                let spare = shelf.superblock.spare;
                shelf.plant(|attempt| {
                    let list = attempt.inode(spare)?;
                    let key = attempt.tree_next(spare, &list, 0)?.expect("one has some").key;
                    attempt.list_unit(spare, Lba::new(key), false)
                });
            },
            is_it: |problem| matches!(problem, Problem::Unlisted { list: List::Spare, .. }),
        },
        Planted {
            name: "what is not a unit of inodes",
            plant: |shelf| {
                let units = shelf.superblock.units;
                shelf.plant(|attempt| attempt.list_unit(units, Lba::new(4_000), true));
            },
            is_it: |problem| matches!(problem, Problem::WronglyListed { list: List::Units, .. }),
        },
        Planted {
            name: "a unit without free inodes that is listed",
            plant: |shelf| {
                let (spare, lead) = (shelf.superblock.spare, InodePlace::of(shelf.inner).lead);
                shelf.plant(|attempt| attempt.list_unit(spare, lead, true));
            },
            is_it: |problem| matches!(problem, Problem::WronglyListed { list: List::Spare, .. }),
        },
        Planted {
            name: "a damaged file that is none",
            plant: |shelf| {
                let number = shelf.free_number();
                shelf.plant(|attempt| attempt.note_damaged(number, true));
            },
            is_it: |problem| matches!(problem, Problem::WronglyListed { list: List::Damaged, .. }),
        },
        Planted {
            name: "the number of inodes",
            plant: |shelf| shelf.edit(shelf.superblock.units, |list| list.size += 1),
            is_it: |problem| matches!(problem, Problem::Count { list: List::Units, .. }),
        },
        Planted {
            name: "the number of damaged files",
            plant: |shelf| shelf.edit(shelf.superblock.damaged, |list| list.size += 1),
            is_it: |problem| matches!(problem, Problem::Count { list: List::Damaged, .. }),
        },
        Planted {
            name: "the list of units",
            plant: |shelf| shelf.edit(shelf.superblock.units, |list| list.inline.fill(0xFF)),
            is_it: |problem| matches!(problem, Problem::Tree { .. }),
        },
        Planted {
            name: "the list of units with free inodes",
            plant: |shelf| shelf.edit(shelf.superblock.spare, |list| list.inline.fill(0xFF)),
            is_it: |problem| matches!(problem, Problem::Tree { .. }),
        },
        Planted {
            name: "a data sector",
            plant: |shelf| {
                let lba = shelf.window(shelf.file).extent.lba;
                shelf.spoil(lba);
            },
            is_it: |problem| matches!(problem, Problem::Data { .. }),
        },
        Planted {
            name: "a redundant sector",
            plant: |shelf| {
                let extent = shelf.window(shelf.file).extent;
                shelf.spoil(extent.lba + Sectors::new(extent.data.into()));
            },
            is_it: |problem| matches!(problem, Problem::Redundant { .. }),
        },
        Planted {
            name: "a redundant sector of other data",
            plant: |shelf| {
                let extent = shelf.window(shelf.file).extent;
                let lba = extent.lba + Sectors::new(extent.data.into());
                shelf.spoil(lba);
                let sum = sum_of(shelf.superblock.filesystem(), lba, shelf.sector(lba));
                shelf.plant(|attempt| attempt.set_sum(lba, Some(sum)));
            },
            is_it: |problem| matches!(problem, Problem::Codeword { .. }),
        },
    ]
}

fn options(repair: Repair) -> CheckOptions {
    CheckOptions { repair, depth: Depth::Data, ..CheckOptions::new(Kernel::best()) }
}

#[test]
fn what_has_one_right_answer_is_found_and_repaired_without_a_loss() {
    let right = content(Shelf::new().disk, &PATHS);
    for Planted { name, plant, is_it } in mended() {
        let mut shelf = Shelf::new();
        plant(&mut shelf);
        let found = looked(&mut shelf.disk);
        let is_found = found.listed.iter().any(|listed| is_it(&listed.problem));
        assert!(is_found, "{name} is not found: {:?}", found.listed);
        let report = check(&mut shelf.disk, &options(Repair::All)).unwrap();
        assert!(report.is_clean() && report.problems >= found.problems, "{name}: {report:#?}");
        println!("{name}");
        assert_clean(&looked(&mut shelf.disk));
        assert!(content(shelf.disk, &PATHS) == right, "{name}: something was lost");
    }
}

#[test]
fn what_has_lost_its_name_gets_one() {
    let right = content(Shelf::new().disk, &PATHS);
    let mut shelf = Shelf::new();
    let (root, small) = (shelf.superblock.root, shelf.small);
    shelf.unname(root, b"small");
    let report = check(&mut shelf.disk, &options(Repair::All)).unwrap();
    let is_it =
        |problem: &Problem| matches!(problem, Problem::Unreachable { inode } if *inode == small);
    assert!(report.listed.iter().any(|listed| is_it(&listed.problem)), "{report:#?}");
    assert!(report.is_clean(), "{report:#?}");
    let path: &'static str = format!("lost+found/#{small}").leak();
    assert_eq!(content(shelf.disk, &[path])[path], right["small"]);
}

#[test]
fn circle_of_directories_is_cut_and_named() {
    let right = content(Shelf::new().disk, &PATHS);
    let mut shelf = Shelf::new();
    let (root, folder, below) = (shelf.superblock.root, shelf.folder, shelf.below);
    shelf.unname(root, b"folder");
    shelf.name(below, b"circle", folder, DIRECTORY);
    let report = check(&mut shelf.disk, &options(Repair::All)).unwrap();
    assert!(report.listed.iter().any(|listed| matches!(listed.problem, Problem::Circle { .. })));
    assert!(report.is_clean(), "{report:#?}");
    assert_clean(&looked(&mut shelf.disk));
    let inner = [folder, below].map(|top| -> &'static str {
        match top == folder {
            true => format!("lost+found/#{folder}/inner").leak(),
            false => format!("lost+found/#{below}/circle/inner").leak(),
        }
    });
    let is_there = |path: &&'static str| {
        let disk = shelf.disk.clone();
        std::panic::catch_unwind(|| content(disk, &[path])[path] == right["folder/inner"])
            .unwrap_or(false)
    };
    assert!(inner.iter().any(is_there));
}

#[test]
fn what_has_no_right_answer_is_found_and_left() {
    let table: Vec<Planted> = vec![
        Planted {
            name: "a group that is lost",
            plant: |shelf| {
                let extent = shelf.window(shelf.file).extent;
                let count = u64::from(extent.redundant) + 1;
                (0..count).for_each(|at| shelf.spoil(extent.lba + Sectors::new(at)));
            },
            is_it: |problem| matches!(problem, Problem::GroupLost { .. }),
        },
        Planted {
            name: "sectors of two files",
            plant: |shelf| {
                let window = shelf.window(shelf.file);
                shelf.put(shelf.small, 1_000, &window.encode());
            },
            is_it: |problem| matches!(problem, Problem::Shared { .. }),
        },
        Planted {
            name: "an inode",
            plant: |shelf| {
                let InodePlace { lead, slot } = InodePlace::of(shelf.inner);
                shelf.edit_unit(lead, |body| body[slot * INODE + 85] = 9);
            },
            is_it: |problem| matches!(problem, Problem::Inode { .. }),
        },
        Planted {
            name: "inodes",
            plant: |shelf| {
                let lead = shelf.last_unit();
                shelf.spoil_unit(lead);
            },
            is_it: |problem| matches!(problem, Problem::UnitLost { kind: Kind::Inodes, .. }),
        },
        Planted {
            name: "the tree of a file",
            plant: |shelf| shelf.edit(shelf.file, |inode| inode.inline.fill(0xFF)),
            is_it: |problem| matches!(problem, Problem::Tree { .. }),
        },
        Planted {
            name: "a node",
            plant: |shelf| {
                let lead = shelf.node(shelf.below);
                shelf.spoil_unit(lead);
            },
            is_it: |problem| matches!(problem, Problem::UnitLost { kind: Kind::Node, .. }),
        },
        Planted {
            name: "a node of something else",
            plant: |shelf| {
                let (lead, small) = (shelf.node(shelf.below), shelf.small);
                let mut bytes: Sector = (&*shelf.sector(lead)).try_into().unwrap();
                let head = Head::open(&bytes).unwrap();
                Head { owner: small, ..head }.seal(&mut bytes);
                for copy in shelf.superblock.geometry.copies_of(lead) {
                    shelf.sector(copy).copy_from_slice(&bytes);
                }
            },
            is_it: |problem| matches!(problem, Problem::UnitWrong { kind: Kind::Node, .. }),
        },
        Planted {
            name: "attributes",
            plant: |shelf| {
                let small = shelf.small;
                let lead = shelf.plant(|attempt| Ok(attempt.inode(small)?.attributes));
                shelf.spoil_unit(lead);
            },
            is_it: |problem| matches!(problem, Problem::UnitLost { kind: Kind::Attributes, .. }),
        },
        Planted {
            name: "a pointer",
            plant: |shelf| shelf.edit(shelf.small, |inode| inode.attributes = Lba::new(1)),
            is_it: |problem| matches!(problem, Problem::Pointer { .. }),
        },
        Planted {
            name: "the shape of a group",
            plant: |shelf| {
                let mut window = shelf.window(shelf.small);
                window.extent.redundant -= 1;
                shelf.put(shelf.small, 0, &window.encode());
            },
            is_it: |problem| matches!(problem, Problem::Shape { .. }),
        },
    ];
    for Planted { name, plant, is_it } in table {
        let mut shelf = Shelf::new();
        plant(&mut shelf);
        let report = check(&mut shelf.disk, &options(Repair::All)).unwrap();
        let is_left =
            |listed: &super::Listed| is_it(&listed.problem) && listed.fate == super::Fate::Left;
        assert!(report.listed.iter().any(is_left), "{name}: {report:#?}");
        assert!(!report.is_clean());
        println!("{name}");
    }
}
