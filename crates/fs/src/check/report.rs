//! What a check has found.

use std::collections::BTreeSet;
use std::fmt;

use levelhead_units::{Extent, Lba};

use crate::format::unit::Kind;
use crate::geometry::{Geometry, GroupIdx};

/// Problems that are named one by one; more of them are only counted.
pub const LISTED_MAX: usize = 4_096;

/// What a check has found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The first [`LISTED_MAX`] problems, and what became of each.
    pub listed: Vec<Listed>,
    /// Problems in all.
    pub problems: u64,
    /// Problems that are no more.
    pub repaired: u64,
    /// Whether the filesystem had been stopped in order.
    pub was_in_order: bool,
    /// Inodes with a name that are no directories.
    pub files: u64,
    /// Directories, the root among them.
    pub directories: u64,
    /// Inodes without names that the next mount frees.
    pub orphans: u64,
    /// Sectors that files take, redundant ones included.
    pub file_sectors: u64,
    /// Sectors of metadata, fixed places and the journal left out.
    pub metadata_sectors: u64,
    /// Sectors that nothing has taken.
    pub free_sectors: u64,
    /// Sectors of files that were read and compared.
    pub compared_sectors: u64,
}

/// A problem and what became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The problem.
    pub problem: Problem,
    /// What became of it.
    pub fate: Fate,
}

/// What became of a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is still there.
    Left,
    /// It is no more.
    Repaired,
    /// Its sector cannot be written: other copies have what it should hold, or its group does.
    Unwritable,
}

/// What can be wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem {
    /// A copy of the superblock is damaged, or of another time.
    Superblock {
        /// Where it lies.
        lba: Lba,
    },
    /// A record of the journal that counts is damaged beyond repair.
    Journal,
    /// What the journal has could not come to its place.
    Unsettled,
    /// Some copies of a unit cannot be read, are damaged or are of another time.
    Copies {
        /// The unit's lead.
        lead: Lba,
        /// How many.
        bad: u8,
        /// How many of these hold an older version, or zeroes: they are not damaged, a write of them has failed.
        unwritten: u8,
    },
    /// No copy of a unit is left.
    UnitLost {
        /// The unit's lead.
        lead: Lba,
        /// What it held.
        kind: Kind,
        /// The inode that it is of, or 0.
        owner: u64,
    },
    /// A unit is whole, and is not what belongs there.
    UnitWrong {
        /// The unit's lead.
        lead: Lba,
        /// What belongs there.
        kind: Kind,
        /// The inode that it is of, or 0.
        owner: u64,
    },
    /// A pointer leads to where no unit can lie.
    Pointer {
        /// Where it leads.
        lead: Lba,
        /// The inode that it is of, or 0.
        owner: u64,
    },
    /// The summary does not say how many sectors of a group are free.
    Summary {
        /// The group.
        group: GroupIdx,
        /// What it says.
        says: u64,
        /// How many the bitmaps say.
        is: u64,
    },
    /// Sectors are taken, and nothing has them.
    Leaked(Extent),
    /// Sectors are in use, and the bitmap says that they are free.
    Free(Extent),
    /// Some of these sectors of an inode belong to something else, too.
    Shared {
        /// The sectors.
        extent: Extent,
        /// The inode.
        inode: u64,
    },
    /// What an inode says cannot be.
    Inode {
        /// Its number.
        inode: u64,
    },
    /// The tree in an inode, or a pair of it, cannot be.
    Tree {
        /// The inode.
        inode: u64,
        /// The key of the pair, or of the first one in the node.
        key: u64,
    },
    /// A coding extent does not have the shape that belongs to its length.
    Shape {
        /// Its first sector.
        lba: Lba,
        /// The inode.
        inode: u64,
    },
    /// An inode does not say how many sectors it has.
    Sectors {
        /// The inode.
        inode: u64,
        /// What it says.
        says: u64,
        /// How many it has.
        is: u64,
    },
    /// A directory does not say how many entries it has, or a symbolic link how long it is.
    Size {
        /// The inode.
        inode: u64,
        /// What it says.
        says: u64,
        /// What is there.
        is: u64,
    },
    /// An inode does not say how many names it has; a directory, how many directories are in it.
    Links {
        /// The inode.
        inode: u64,
        /// What it says.
        says: u64,
        /// How many there are.
        is: u64,
    },
    /// An inode says that it has names, and has none.
    Unreachable {
        /// The inode.
        inode: u64,
    },
    /// Directories are in each other in a circle.
    Circle {
        /// One of them.
        inode: u64,
    },
    /// An inode has no names, and is not on the list of those that are to be freed.
    ForgottenOrphan {
        /// The inode.
        inode: u64,
    },
    /// The list of orphans names an inode that is free.
    FreeOrphan {
        /// The inode.
        inode: u64,
    },
    /// A name leads to an inode that is free, or to none.
    Dangling {
        /// The directory.
        directory: u64,
        /// The inode that the name leads to.
        inode: u64,
    },
    /// A name says another type than its inode.
    EntryType {
        /// The directory.
        directory: u64,
        /// The inode that the name leads to.
        inode: u64,
    },
    /// A name lies where it is not looked for, or is there twice.
    Name {
        /// The directory.
        directory: u64,
        /// Its key.
        key: u64,
    },
    /// A directory has a name too many.
    SecondName {
        /// The directory that has it.
        inode: u64,
        /// Where that name is.
        directory: u64,
    },
    /// A list of the filesystem's own does not name what belongs on it.
    Unlisted {
        /// The list.
        list: List,
        /// What belongs on it: a unit's lead, or an inode.
        key: u64,
    },
    /// A list of the filesystem's own names what does not belong on it.
    WronglyListed {
        /// The list.
        list: List,
        /// What does not belong on it.
        key: u64,
    },
    /// A list of the filesystem's own does not say how many there are.
    Count {
        /// The list.
        list: List,
        /// What it says.
        says: u64,
        /// How many there are.
        is: u64,
    },
    /// A directory names another one as its parent than the one that it is in.
    Parent {
        /// The directory.
        inode: u64,
        /// What it says.
        says: u64,
        /// Where it is.
        is: u64,
    },
    /// A sector of a file cannot be read or is wrong, and is computed from its group.
    Data {
        /// Where it lies.
        lba: Lba,
        /// The inode.
        inode: u64,
    },
    /// A redundant sector of a file cannot be read or is wrong.
    Redundant {
        /// Where it lies.
        lba: Lba,
        /// The inode.
        inode: u64,
    },
    /// More sectors of a group are lost than its redundancy computes.
    GroupLost {
        /// The first sector of the coding extent.
        lba: Lba,
        /// Sectors of data that are lost.
        sectors: u32,
        /// The inode.
        inode: u64,
    },
    /// Every sector of a group has its checksum, and what is redundant is not what belongs to the data.
    Codeword {
        /// The first sector of the coding extent.
        lba: Lba,
        /// The inode.
        inode: u64,
    },
    /// The checksums of a coding extent are lost.
    Unsummed {
        /// The first sector of the coding extent.
        lba: Lba,
        /// The inode.
        inode: u64,
    },
}

/// A list of the filesystem's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum List {
    /// Of all units of inodes; it counts inodes that are not the filesystem's own.
    Units,
    /// Of those that have free inodes.
    Spare,
    /// Of files with sectors that are lost; it counts them.
    Damaged,
}

impl Report {
    /// Whether nothing is wrong any more.
    pub fn is_clean(&self) -> bool {
        self.left() == 0
    }

    /// Problems that are still there.
    pub fn left(&self) -> u64 {
        self.problems - self.repaired
    }

    /// What a later pass over the same has found is left; everything else that was is repaired.
    pub(super) fn settle(&mut self, later: &Self) {
        let is_left = |problem: &Problem| {
            later
                .listed
                .iter()
                .any(|listed| listed.fate == Fate::Left && listed.problem == *problem)
        };
        let mut known = Vec::new();
        for listed in &mut self.listed {
            if listed.fate == Fate::Left && !is_left(&listed.problem) {
                listed.fate = Fate::Repaired;
            }
            known.push(listed.problem);
        }
        let before = self.problems;
        for listed in later.listed.iter().filter(|listed| !known.contains(&listed.problem)) {
            self.problems += 1;
            if self.listed.len() < LISTED_MAX {
                self.listed.push(*listed);
            }
        }
        // Those that are not listed are counted alone.
        self.problems = self.problems.max(later.left()).max(before);
        self.repaired = self.problems - later.left();
        let (listed, problems, repaired) =
            (std::mem::take(&mut self.listed), self.problems, self.repaired);
        let was_in_order = self.was_in_order;
        *self = Self { listed, problems, repaired, was_in_order, ..later.clone() };
    }

    /// What was to be repaired in sectors that cannot be written is not.
    pub(super) fn note_unwritable(&mut self, unwritable: &BTreeSet<Lba>, geometry: &Geometry) {
        for listed in self.listed.iter_mut().filter(|listed| listed.fate == Fate::Repaired) {
            let is_unwritable = match listed.problem {
                Problem::Superblock { lba }
                | Problem::Data { lba, .. }
                | Problem::Redundant { lba, .. } => unwritable.contains(&lba),
                Problem::Copies { lead, .. } => {
                    geometry.copies_of(lead).iter().any(|copy| unwritable.contains(copy))
                }
                _ => false,
            };
            if is_unwritable {
                listed.fate = Fate::Unwritable;
            }
        }
    }

    pub(super) fn note(&mut self, problem: Problem, fate: Fate) {
        self.problems += 1;
        self.repaired += u64::from(fate != Fate::Left);
        if self.listed.len() < LISTED_MAX {
            self.listed.push(Listed { problem, fate });
        }
    }
}

/// A number of copies for people.
fn copies(count: u8) -> String {
    if count == 1 { "1 copy".to_owned() } else { format!("{count} copies") }
}

/// A run of sectors for people.
fn run(extent: &Extent) -> String {
    match extent.sectors.get() {
        1 => format!("sector {}", extent.lba.get()),
        _ => format!("sectors {} to {}", extent.lba.get(), extent.end().get() - 1),
    }
}

fn name(kind: Kind) -> &'static str {
    match kind {
        Kind::Bitmap => "a bitmap",
        Kind::Sums => "checksums",
        Kind::Summary => "the summary",
        Kind::Inodes => "inodes",
        Kind::Node => "a node of a tree",
        Kind::Attributes => "extended attributes",
        Kind::Record => "a record",
    }
}

fn list_name(list: List) -> &'static str {
    match list {
        List::Units => "the list of metadata with inodes",
        List::Spare => "the list of metadata with free inodes",
        List::Damaged => "the list of damaged files",
    }
}

fn counted(list: List) -> &'static str {
    match list {
        List::Units => "inodes",
        List::Spare => "of them",
        List::Damaged => "files",
    }
}

fn of(owner: u64) -> String {
    if owner == 0 { String::new() } else { format!(" of inode {owner}") }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Superblock { lba } => {
                write!(f, "the superblock at sector {lba} is damaged", lba = lba.get())
            }
            Self::Journal => write!(f, "a record of the journal that counts is lost"),
            Self::Unsettled => write!(f, "what the journal has cannot all come to its place"),
            Self::Copies { lead, bad, unwritten } => {
                let lead = lead.get();
                match bad - unwritten {
                    0 => write!(
                        f,
                        "{} of the metadata at sector {lead}: out of date, could not be written",
                        copies(bad)
                    ),
                    damaged if unwritten == 0 => {
                        write!(f, "{} of the metadata at sector {lead}: damaged", copies(damaged))
                    }
                    damaged => write!(
                        f,
                        "{} of the metadata at sector {lead}: damaged, and {} out of date",
                        copies(damaged),
                        copies(unwritten)
                    ),
                }
            }
            Self::UnitLost { lead, kind, owner } => {
                let (kind, owner) = (name(kind), of(owner));
                write!(
                    f,
                    "{kind}{owner} at sector {lead}: all copies are damaged",
                    lead = lead.get()
                )
            }
            Self::UnitWrong { lead, kind, owner } => {
                let (kind, owner) = (name(kind), of(owner));
                write!(
                    f,
                    "{kind}{owner} at sector {lead}: something else is there",
                    lead = lead.get()
                )
            }
            Self::Pointer { lead, owner } => {
                write!(
                    f,
                    "a pointer{} leads to sector {lead}, where no metadata can be",
                    of(owner),
                    lead = lead.get()
                )
            }
            Self::Summary { group, says, is } => {
                write!(f, "group {}: {is} sectors are free, the summary says {says}", group.0)
            }
            Self::Leaked(extent) => write!(f, "{}: taken, and nothing has it", run(&extent)),
            Self::Free(extent) => write!(f, "{}: in use, and not taken", run(&extent)),
            Self::Shared { extent, inode } => {
                write!(f, "{}: inode {inode} and something else have it", run(&extent))
            }
            Self::Inode { inode } => write!(f, "inode {inode}: what it says cannot be"),
            Self::Tree { inode, key } => {
                write!(f, "inode {inode}: what its tree has from {key} on cannot be")
            }
            Self::Shape { lba, inode } => {
                write!(
                    f,
                    "inode {inode}: the group at sector {lba} has the wrong shape",
                    lba = lba.get()
                )
            }
            Self::Sectors { inode, says, is } => {
                write!(f, "inode {inode}: it has {is} sectors, and says {says}")
            }
            Self::Size { inode, says, is } => {
                write!(f, "inode {inode}: its size is {is}, and it says {says}")
            }
            Self::Links { inode, says, is } => {
                write!(f, "inode {inode}: its number of links is {is}, and it says {says}")
            }
            Self::Unreachable { inode } => write!(f, "inode {inode}: no directory names it"),
            Self::Circle { inode } => write!(f, "inode {inode}: the directory is in itself"),
            Self::ForgottenOrphan { inode } => {
                write!(f, "inode {inode}: it has no name, and would never be freed")
            }
            Self::FreeOrphan { inode } => {
                write!(f, "inode {inode}: it is to be freed, and is free")
            }
            Self::Dangling { directory, inode } => {
                write!(
                    f,
                    "directory {directory}: a name leads to inode {inode}, which is not there"
                )
            }
            Self::EntryType { directory, inode } => {
                write!(f, "directory {directory}: the name of inode {inode} says another type")
            }
            Self::Name { directory, key } => {
                write!(f, "directory {directory}: the name with key {key} cannot be there")
            }
            Self::SecondName { inode, directory } => {
                write!(f, "directory {inode}: directory {directory} has a name too many of it")
            }
            Self::Unlisted { list, key } => {
                write!(f, "{}: {key} belongs on it, and is not there", list_name(list))
            }
            Self::WronglyListed { list, key } => {
                write!(f, "{}: {key} is on it, and does not belong there", list_name(list))
            }
            Self::Count { list, says, is } => {
                let (name, what) = (list_name(list), counted(list));
                write!(f, "{name}: there are {is} {what}, and it says {says}")
            }
            Self::Parent { inode, says, is } => {
                write!(f, "directory {inode}: its parent is {is}, and it says {says}")
            }
            Self::Data { lba, inode } => {
                write!(
                    f,
                    "sector {lba}: data of inode {inode} is damaged or could not be written, its group has it",
                    lba = lba.get()
                )
            }
            Self::Redundant { lba, inode } => {
                write!(
                    f,
                    "sector {lba}: what is redundant of inode {inode} is damaged or could not be written",
                    lba = lba.get()
                )
            }
            Self::GroupLost { lba, sectors, inode } => {
                let (noun, are) = if sectors == 1 { ("sector", "is") } else { ("sectors", "are") };
                write!(
                    f,
                    "the group at sector {lba}: {sectors} {noun} of inode {inode} {are} lost",
                    lba = lba.get()
                )
            }
            Self::Codeword { lba, inode } => write!(
                f,
                "the group at sector {lba}: what is redundant of inode {inode} does not belong to the data",
                lba = lba.get()
            ),
            Self::Unsummed { lba, inode } => {
                write!(
                    f,
                    "the group at sector {lba}: the checksums of inode {inode} are lost",
                    lba = lba.get()
                )
            }
        }
    }
}
