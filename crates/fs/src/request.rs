//! What a filesystem is asked for, and what it answers.
//!
//! Names and contents are bytes. Inodes have the numbers that [`Filesystem::root`](crate::Filesystem::root) and earlier
//! answers gave. Permissions are the caller's affair (a kernel checks them before it asks), but for what only the filesystem
//! can know: sticky directories, lists of who may do what that come with new files, and a program's rights, which it loses when it
//! is written to by another one than root, or given away.

use levelhead_block::RequestId;
use levelhead_units::Lba;

use crate::format::inode::{FileKind, Moment};

/// One request.
#[derive(Clone, Debug)]
pub struct Request {
    /// Its name, which no other request that is under way has.
    pub id: RequestId,
    /// Who asks: new files are theirs.
    pub caller: Caller,
    /// The time of day.
    pub now: Moment,
    /// What is asked for.
    pub what: What,
}

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The user.
    pub uid: u32,
    /// The group.
    pub gid: u32,
}

/// A name in a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// The directory's inode.
    pub parent: u64,
    /// The name.
    pub name: Vec<u8>,
}

/// What is asked for.
#[derive(Clone, Debug)]
pub enum What {
    /// The inode of a name. The caller knows it then ([`What::Forget`]): [`Answer::Entry`].
    Lookup(Named),
    /// The caller does not know an inode any more that answers have named this number of times: [`Answer::Done`].
    Forget {
        /// The inode.
        inode: u64,
        /// How often it was named.
        count: u64,
    },
    /// What is known of an inode: [`Answer::Attributes`].
    GetAttributes(u64),
    /// Changes that: [`Answer::Attributes`].
    SetAttributes {
        /// The inode.
        inode: u64,
        /// What changes.
        changes: Changes,
    },
    /// A new file, directory, device or other thing: [`Answer::Entry`].
    Make {
        /// Its name.
        name: Named,
        /// Its type and permissions.
        mode: u32,
        /// Permissions that the caller's new files do not have, unless the directory has a list of who may do what with them.
        umask: u32,
        /// Of a device its number.
        device: u32,
    },
    /// A new symbolic link: [`Answer::Entry`].
    MakeLink {
        /// Its name.
        name: Named,
        /// What it says.
        target: Vec<u8>,
    },
    /// What a symbolic link says: [`Answer::Bytes`].
    ReadLink(u64),
    /// Another name for an inode: [`Answer::Entry`].
    Link {
        /// The inode.
        inode: u64,
        /// The name.
        name: Named,
    },
    /// A name less: [`Answer::Done`].
    Remove {
        /// The name.
        name: Named,
        /// Whether it must be an empty directory, or must not be a directory.
        what: Removed,
    },
    /// Another name instead of this one: [`Answer::Done`].
    Rename {
        /// What it is called.
        from: Named,
        /// What it is to be called.
        to: Named,
        /// What becomes of what has that name.
        mode: Renaming,
    },
    /// The entries of a directory: [`Answer::Entries`].
    ReadDirectory {
        /// Its inode.
        inode: u64,
        /// The cookie of the last entry that is known, or 0.
        after: u64,
        /// The most bytes of names, with 24 more for each.
        room: usize,
        /// Whether attributes are wanted, too; the caller knows the inodes then.
        with_attributes: bool,
    },
    /// Bytes of a file, as many as there are: [`Answer::Bytes`].
    Read {
        /// Its inode.
        inode: u64,
        /// The first byte.
        offset: u64,
        /// The most bytes.
        count: u32,
    },
    /// Bytes into a file: [`Answer::Written`].
    Write {
        /// Its inode.
        inode: u64,
        /// Where the first one goes.
        offset: u64,
        /// The bytes.
        bytes: Vec<u8>,
        /// Whether they are at the end, wherever that is.
        appends: bool,
    },
    /// Everything that was written to an inode, and its names, outlast a power cut from the answer on: [`Answer::Done`].
    Sync {
        /// The inode, or nothing for all of them.
        inode: Option<u64>,
    },
    /// Room for a part of a file, or none any more: [`Answer::Done`].
    Allocate {
        /// Its inode.
        inode: u64,
        /// The first byte.
        offset: u64,
        /// How many bytes.
        count: u64,
        /// What becomes of them.
        how: Allocation,
    },
    /// The next byte from one on that is data, or is not: [`Answer::Offset`].
    Seek {
        /// Its inode.
        inode: u64,
        /// Where to begin.
        offset: u64,
        /// What is looked for.
        what: Sought,
    },
    /// The value of an extended attribute: [`Answer::Bytes`].
    GetExtended {
        /// The inode.
        inode: u64,
        /// The attribute.
        name: Vec<u8>,
    },
    /// The names of all of them, each with a zero byte behind it: [`Answer::Bytes`].
    ListExtended(u64),
    /// Another value of one: [`Answer::Done`].
    SetExtended {
        /// The inode.
        inode: u64,
        /// The attribute.
        name: Vec<u8>,
        /// The value.
        value: Vec<u8>,
        /// Whether it must be there, or must not be.
        mode: Setting,
    },
    /// One of them less: [`Answer::Done`].
    RemoveExtended {
        /// The inode.
        inode: u64,
        /// The attribute.
        name: Vec<u8>,
    },
    /// A step of a scrub: what lies from a place on is read, and what is bad of it is written anew: [`Answer::Scrubbed`].
    Scrub {
        /// Where it begins.
        place: ScrubPlace,
        /// What is read.
        parts: ScrubParts,
    },
    /// How much room there is: [`Answer::Room`].
    Room,
    /// Files with sectors that are lost, the first thousand: [`Answer::Inodes`].
    Damaged,
}

impl What {
    /// Whether it may change what is on the disk.
    pub(crate) fn changes(&self) -> bool {
        match self {
            Self::SetAttributes { .. }
            | Self::Make { .. }
            | Self::MakeLink { .. }
            | Self::Link { .. }
            | Self::Remove { .. }
            | Self::Rename { .. }
            | Self::Write { .. }
            | Self::Allocate { .. }
            | Self::SetExtended { .. }
            | Self::RemoveExtended { .. } => true,
            Self::Lookup(_)
            | Self::Forget { .. }
            | Self::GetAttributes(_)
            | Self::ReadLink(_)
            | Self::ReadDirectory { .. }
            | Self::Read { .. }
            | Self::Sync { .. }
            | Self::Seek { .. }
            | Self::GetExtended { .. }
            | Self::ListExtended(_)
            | Self::Scrub { .. }
            | Self::Room
            | Self::Damaged => false,
        }
    }
}

/// Where a step of a scrub begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScrubPlace {
    /// At the bitmaps and sums of this group.
    Group(u64),
    /// At an inode.
    Inode {
        /// The lead of its unit, or of the next one behind it.
        lead: Lba,
        /// Its place there.
        slot: usize,
        /// The page of it.
        page: u64,
        /// Whether an earlier page was found lost.
        was_damaged: bool,
    },
}

impl ScrubPlace {
    /// Where a scrub begins.
    pub const FIRST: Self = Self::Group(0);

    /// The first inode of the units from one on.
    pub fn inodes_from(lead: Lba) -> Self {
        Self::Inode { lead, slot: 0, page: 0, was_damaged: false }
    }
}

/// What a scrub reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScrubParts {
    /// Data sectors of files.
    pub data: bool,
    /// Redundant sectors of files.
    pub redundancy: bool,
    /// All copies of metadata.
    pub metadata: bool,
}

impl ScrubParts {
    /// Everything.
    pub const ALL: Self = Self { data: true, redundancy: true, metadata: true };
}

/// What a step of a scrub has found, in sectors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scrubbed {
    /// Where the next step begins; nothing at the end.
    pub next: Option<ScrubPlace>,
    /// Sectors that were read.
    pub read: u64,
    /// Those that one pass did not bring, or not right.
    pub damaged: u64,
    /// Those of them that were written anew.
    pub repaired: u64,
    /// Those of them that are lost.
    pub lost: u64,
}

/// What changes of an inode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Its permissions.
    pub mode: Option<u32>,
    /// Its owner.
    pub uid: Option<u32>,
    /// Its group.
    pub gid: Option<u32>,
    /// Its size: what is beyond is gone, and what is new is zero.
    pub size: Option<u64>,
    /// When it was read last.
    pub accessed: Option<Moment>,
    /// When it was changed last.
    pub modified: Option<Moment>,
    /// How its sectors are laid out from now on.
    pub kind: Option<FileKind>,
}

/// What a name may be of that is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removed {
    /// Of anything but a directory.
    File,
    /// Of an empty directory.
    Directory,
}

/// What becomes of what has the new name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Renaming {
    /// It has one name less.
    Replace,
    /// Nothing: the request fails.
    Keep,
    /// It has the old name then.
    Exchange,
}

/// What becomes of a part of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allocation {
    /// There is room for it, and the file ends behind it at least.
    Extend,
    /// There is room for it, and the file's size stays.
    Keep,
    /// It is zero and takes no room; the file's size stays.
    Punch,
    /// It is zero and there is room for it; the file ends behind it at least.
    Zero,
    /// The same, and the file's size stays.
    ZeroKeep,
}

/// What is looked for in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sought {
    /// What is not a hole.
    Data,
    /// A hole, or the end.
    Hole,
}

/// Whether an extended attribute must be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setting {
    /// It may be.
    Any,
    /// It must not be.
    Create,
    /// It must be.
    Replace,
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It is done.
    Done,
    /// What is known of an inode.
    Attributes(Attributes),
    /// An inode that the caller knows from now on.
    Entry(Attributes),
    /// Some bytes.
    Bytes(Vec<u8>),
    /// How many bytes were written.
    Written(u32),
    /// Entries of a directory.
    Entries(Vec<Listed>),
    /// A place in a file.
    Offset(u64),
    /// How much room there is.
    Room(Room),
    /// Numbers of inodes, in ascending order.
    Inodes(Vec<u64>),
    /// What a step of a scrub has found.
    Scrubbed(Scrubbed),
    /// It cannot be done.
    Failed(Errno),
}

/// What is known of an inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attributes {
    /// Its number.
    pub inode: u64,
    /// How many inodes have had the number before.
    pub generation: u32,
    /// Type and permissions.
    pub mode: u32,
    /// Names that it has.
    pub links: u32,
    /// Its owner.
    pub uid: u32,
    /// Its group.
    pub gid: u32,
    /// Of a device its number.
    pub device: u32,
    /// Bytes.
    pub size: u64,
    /// Sectors that it takes, redundant ones included.
    pub sectors: u64,
    /// When it was read last.
    pub accessed: Moment,
    /// When its content was changed last.
    pub modified: Moment,
    /// When anything of it was changed last.
    pub changed: Moment,
    /// When it was made.
    pub created: Moment,
}

/// An entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Its inode.
    pub inode: u64,
    /// The upper four bits of the inode's mode.
    pub kind: u8,
    /// Its name.
    pub name: Vec<u8>,
    /// What a reader goes on from.
    pub cookie: u64,
    /// What is known of the inode, if that was wanted; not of the directory itself and its parent.
    pub attributes: Option<Attributes>,
}

/// How much room there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Sectors that files may take in all, what their redundancy takes left out.
    pub sectors: u64,
    /// Those of them that are free.
    pub free: u64,
    /// Inodes that there are.
    pub inodes: u64,
    /// Inodes that there is room for.
    pub inodes_free: u64,
}

/// Why something cannot be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Errno {
    /// There is no such name or inode.
    NotFound,
    /// The name is there already.
    Exists,
    /// It is not a directory.
    NotDirectory,
    /// It is a directory.
    IsDirectory,
    /// The directory is not empty.
    NotEmpty,
    /// There is no room.
    NoSpace,
    /// What was asked for makes no sense for this inode.
    Invalid,
    /// The name is too long.
    NameTooLong,
    /// The file would be too large.
    TooLarge,
    /// It has as many names as it may have.
    TooManyLinks,
    /// What is on the disk cannot be read, or is not right.
    Io,
    /// Nothing is written: the filesystem was mounted so, or is damaged.
    ReadOnly,
    /// There is no such extended attribute.
    NoData,
    /// An extended attribute is too large.
    TooBig,
    /// There is nothing beyond.
    Beyond,
    /// It is not permitted.
    NotPermitted,
    /// It is not supported.
    NotSupported,
}
