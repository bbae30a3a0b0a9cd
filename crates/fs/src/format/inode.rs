//! An inode: what is known of a file but its name.
//!
//! `docs/formats/filesystem.md` is the normative text. Eight lie in a unit; the number of one is eight times its unit's lead and its
//! place there, so that no table is needed to find it.

use levelhead_units::Lba;

use super::fields::{Fields, FieldsMut};
use super::unit::BODY;

/// Bytes of an inode.
pub const INODE: usize = BODY / INODES;

/// Inodes of a unit.
pub const INODES: usize = 8;

/// Bytes of an inode that its tree's root, or its content, has room for.
pub const INLINE: usize = INODE - at::INLINE;

mod at {
    pub(super) const MODE: usize = 0;
    pub(super) const LINKS: usize = 4;
    pub(super) const UID: usize = 8;
    pub(super) const GID: usize = 12;
    pub(super) const SIZE: usize = 16;
    pub(super) const SECTORS: usize = 24;
    pub(super) const ACCESSED: usize = 32;
    pub(super) const MODIFIED: usize = 44;
    pub(super) const CHANGED: usize = 56;
    pub(super) const CREATED: usize = 68;
    pub(super) const GENERATION: usize = 80;
    pub(super) const FLAGS: usize = 84;
    pub(super) const DEVICE: usize = 88;
    pub(super) const ATTRIBUTES: usize = 96;
    pub(super) const PARENT: usize = 104;
    pub(super) const INLINE: usize = 112;
}

/// A moment since 1970.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment {
    /// Whole seconds.
    pub seconds: i64,
    /// Below a thousand million.
    pub nanos: u32,
}

/// What the tree of an inode begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Form {
    /// A node of the tree lies in the inode itself.
    Tree = 0,
    /// The content does: of a symbolic link, or of a small file.
    Content = 1,
}

/// How the sectors of a file are laid out and protected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum FileKind {
    /// Coded, and changed in place.
    #[default]
    Auto = 0,
    /// Read in sequence and never changed: the same.
    A = 1,
    /// Never changed and read at random: pages end in forced zeroes, and groups are coded.
    B = 2,
    /// Pages end in twice as many forced zeroes, and nothing is coded.
    Mutable = 3,
}

impl FileKind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Auto, Self::A, Self::B, Self::Mutable];

    /// Its name for programs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::A => "a",
            Self::B => "b",
            Self::Mutable => "mutable",
        }
    }
}

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inode {
    /// Type and permissions, as `stat` gives them.
    pub mode: u32,
    /// Names that it has; 0 of one that is free.
    pub links: u32,
    /// Its owner.
    pub uid: u32,
    /// Its group of owners.
    pub gid: u32,
    /// Bytes.
    pub size: u64,
    /// Sectors that it takes, redundant ones included and metadata not.
    pub sectors: u64,
    /// When it was read last.
    pub accessed: Moment,
    /// When its content was changed last.
    pub modified: Moment,
    /// When anything of it was changed last.
    pub changed: Moment,
    /// When it was made.
    pub created: Moment,
    /// How many inodes have had this number before.
    pub generation: u32,
    /// How its sectors are laid out.
    pub kind: FileKind,
    /// What it begins with.
    pub form: Form,
    /// Of a device its number, as `stat` gives it.
    pub device: u32,
    /// The lead of the unit with its extended attributes, or 0.
    pub attributes: Lba,
    /// Of a directory the inode that has its name.
    pub parent: u64,
    /// What the tree begins with, or the content.
    pub inline: [u8; INLINE],
}

/// What `mode` says of the type.
pub mod mode {
    /// The bits of the type.
    pub const TYPE: u32 = 0o170_000;
    /// A regular file.
    pub const FILE: u32 = 0o100_000;
    /// A directory.
    pub const DIRECTORY: u32 = 0o040_000;
    /// A symbolic link.
    pub const LINK: u32 = 0o120_000;
    /// A named pipe.
    pub const PIPE: u32 = 0o010_000;
    /// A character device.
    pub const CHARACTER_DEVICE: u32 = 0o020_000;
    /// A block device.
    pub const BLOCK_DEVICE: u32 = 0o060_000;
    /// A socket.
    pub const SOCKET: u32 = 0o140_000;
    /// Set the owner when it is run.
    pub const SETUID: u32 = 0o4000;
    /// Set the group when it is run.
    pub const SETGID: u32 = 0o2000;
    /// The bits that `chmod` sets.
    pub const PERMISSIONS: u32 = 0o7777;
}

impl Inode {
    /// One of a type with these permissions, without names and content.
    pub fn new(mode: u32, now: Moment) -> Self {
        Self {
            mode,
            links: 0,
            uid: 0,
            gid: 0,
            size: 0,
            sectors: 0,
            accessed: now,
            modified: now,
            changed: now,
            created: now,
            generation: 0,
            kind: FileKind::Auto,
            form: Form::Tree,
            device: 0,
            attributes: Lba::ZERO,
            parent: 0,
            inline: [0; INLINE],
        }
    }

    /// Whether it is a directory.
    pub fn is_directory(&self) -> bool {
        self.mode & mode::TYPE == mode::DIRECTORY
    }

    /// Whether it is a regular file.
    pub fn is_file(&self) -> bool {
        self.mode & mode::TYPE == mode::FILE
    }

    /// Whether it is a symbolic link.
    pub fn is_link(&self) -> bool {
        self.mode & mode::TYPE == mode::LINK
    }

    /// Into its place of a unit's body.
    pub fn encode(&self, into: &mut [u8]) {
        assert_eq!(into.len(), INODE);
        into.fill(0);
        into[at::INLINE..].copy_from_slice(&self.inline);
        let mut fields = FieldsMut(into);
        fields.put_u32(at::MODE, self.mode);
        fields.put_u32(at::LINKS, self.links);
        fields.put_u32(at::UID, self.uid);
        fields.put_u32(at::GID, self.gid);
        fields.put_u64(at::SIZE, self.size);
        fields.put_u64(at::SECTORS, self.sectors);
        for (at, moment) in [
            (at::ACCESSED, self.accessed),
            (at::MODIFIED, self.modified),
            (at::CHANGED, self.changed),
            (at::CREATED, self.created),
        ] {
            fields.put_i64(at, moment.seconds);
            fields.put_u32(at + 8, moment.nanos);
        }
        fields.put_u32(at::GENERATION, self.generation);
        fields.put_u8(at::FLAGS, self.kind as u8);
        fields.put_u8(at::FLAGS + 1, self.form as u8);
        fields.put_u32(at::DEVICE, self.device);
        fields.put_u64(at::ATTRIBUTES, self.attributes.get());
        fields.put_u64(at::PARENT, self.parent);
    }

    /// From its place; nothing if what is there cannot be an inode.
    pub fn decode(from: &[u8]) -> Option<Self> {
        assert_eq!(from.len(), INODE);
        let fields = Fields(from);
        let moment =
            |at| Moment { seconds: fields.i64(at), nanos: fields.u32(at + 8).min(999_999_999) };
        let kind = FileKind::ALL.into_iter().find(|kind| *kind as u8 == fields.u8(at::FLAGS));
        let form = match fields.u8(at::FLAGS + 1) {
            0 => Form::Tree,
            1 => Form::Content,
            _ => return None,
        };
        let mode = fields.u32(at::MODE);
        if mode > u32::from(u16::MAX) {
            return None; // An entry of a directory has the upper four bits of 16.
        }
        Some(Self {
            mode,
            links: fields.u32(at::LINKS),
            uid: fields.u32(at::UID),
            gid: fields.u32(at::GID),
            size: fields.u64(at::SIZE),
            sectors: fields.u64(at::SECTORS),
            accessed: moment(at::ACCESSED),
            modified: moment(at::MODIFIED),
            changed: moment(at::CHANGED),
            created: moment(at::CREATED),
            generation: fields.u32(at::GENERATION),
            kind: kind?,
            form,
            device: fields.u32(at::DEVICE),
            attributes: Lba::new(fields.u64(at::ATTRIBUTES)),
            parent: fields.u64(at::PARENT),
            inline: from[at::INLINE..].try_into().expect("the length is right"),
        })
    }
}

/// Where an inode lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InodePlace {
    /// The lead of its unit.
    pub lead: Lba,
    /// Its place there.
    pub slot: usize,
}

impl InodePlace {
    /// That of an inode with a number.
    pub fn of(number: u64) -> Self {
        Self { lead: Lba::new(number / INODES as u64), slot: (number % INODES as u64) as usize }
    }

    /// The number of the inode there.
    pub fn number(self) -> u64 {
        self.lead.get() * INODES as u64 + self.slot as u64
    }
}

const _: () = assert!(INODE == 504 && INLINE == 392);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inode_is_read_as_it_was_written() {
        let now = Moment { seconds: -7, nanos: 5 };
        let mut inode = Inode::new(mode::FILE | 0o644, now);
        inode.inline[3] = 9;
        (inode.links, inode.size, inode.kind) = (3, 1 << 40, FileKind::Mutable);
        let mut bytes = [1; INODE];
        inode.encode(&mut bytes);
        assert_eq!(Inode::decode(&bytes), Some(inode));
        bytes[at::FLAGS] = 7;
        assert_eq!(Inode::decode(&bytes), None);
        assert_eq!(InodePlace::of(8_003).number(), 8_003);
    }
}
