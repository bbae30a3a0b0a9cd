//! Access control lists (POSIX 1003.1e, draft 17), as the extended attributes by which Linux knows them.
//!
//! Who may do what is the caller's affair. Here a list comes with new files and goes along with the bits of the mode.
//!
//! ```text
//!   version 2 | tag, permissions, id | ..      4 bytes, and 8 an entry, in the order of the tags and ids
//! ```

use crate::attempt::{Attempt, Stop, broken};
use crate::format::fields::{Fields, FieldsMut};
use crate::format::inode::{Inode, mode};
use crate::ops::extended::Extended;
use crate::request::Errno;

/// The attribute with the list that says who may do what with a file.
pub(crate) const ACCESS: &[u8] = b"system.posix_acl_access";

/// The attribute with the list that a directory's new files begin with.
pub(crate) const DEFAULT: &[u8] = b"system.posix_acl_default";

/// The bits of a mode that say who may do what.
const BITS: u32 = 0o777;

/// The format's version.
const VERSION: u32 = 2;

/// Bytes before the first entry, and of each.
const HEAD: usize = 4;
const ENTRY: usize = 8;

/// Whom an entry is about, in the order in which they stand in a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u16)]
enum Tag {
    Owner = 0x01,
    User = 0x02,
    OwningGroup = 0x04,
    Group = 0x08,
    /// The most that users and groups with a name, and the owning group, may do.
    Mask = 0x10,
    Other = 0x20,
}

impl Tag {
    const ALL: [Self; 6] =
        [Self::Owner, Self::User, Self::OwningGroup, Self::Group, Self::Mask, Self::Other];

    fn has_id(self) -> bool {
        matches!(self, Self::User | Self::Group)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    tag: Tag,
    /// Read 4, write 2, run 1.
    permissions: u16,
    /// Of a user or a group with a name; of others nothing is meant.
    id: u32,
}

/// A list that makes sense.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AccessList {
    entries: Vec<Entry>,
}

impl AccessList {
    /// From an attribute's value; nothing if that is no list, or none that makes sense.
    pub(crate) fn decode(value: &[u8]) -> Option<Self> {
        let (head, rest) = value.split_at_checked(HEAD)?;
        if Fields(head).u32(0) != VERSION || !rest.len().is_multiple_of(ENTRY) {
            return None;
        }
        let entry = |bytes: &[u8]| {
            let fields = Fields(bytes);
            let tag = Tag::ALL.into_iter().find(|tag| *tag as u16 == fields.u16(0))?;
            let permissions = fields.u16(2);
            (permissions <= 7).then_some(Entry { tag, permissions, id: fields.u32(4) })
        };
        let entries: Vec<Entry> = rest.chunks_exact(ENTRY).map(entry).collect::<Option<_>>()?;
        let list = Self { entries };
        list.makes_sense().then_some(list)
    }

    /// The value of an attribute.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut value = vec![0; HEAD + ENTRY * self.entries.len()];
        FieldsMut(&mut value).put_u32(0, VERSION);
        for (entry, bytes) in self.entries.iter().zip(value[HEAD..].chunks_exact_mut(ENTRY)) {
            let mut fields = FieldsMut(bytes);
            fields.put_u16(0, entry.tag as u16);
            fields.put_u16(2, entry.permissions);
            fields.put_u32(4, entry.id);
        }
        value
    }

    /// One owner, one owning group, all others, and a mask where there are names; in order.
    fn makes_sense(&self) -> bool {
        let count = |tag: Tag| self.entries.iter().filter(|entry| entry.tag == tag).count();
        let are_whole =
            [Tag::Owner, Tag::OwningGroup, Tag::Other].into_iter().all(|tag| count(tag) == 1);
        let names = count(Tag::User) + count(Tag::Group);
        let is_masked = count(Tag::Mask) == 1 || count(Tag::Mask) == 0 && names == 0;
        // The order of ids is not: programs write them as they come.
        are_whole && is_masked && self.entries.is_sorted_by_key(|entry| entry.tag)
    }

    fn of(&mut self, tag: Tag) -> Option<&mut u16> {
        let entry = self.entries.iter_mut().find(|entry| entry.tag == tag)?;
        Some(&mut entry.permissions)
    }

    /// The entry that the group's bits of a mode stand for.
    fn group_class(&self) -> Tag {
        match self.entries.iter().any(|entry| entry.tag == Tag::Mask) {
            true => Tag::Mask,
            false => Tag::OwningGroup,
        }
    }

    /// Whether the bits of a mode say as much.
    pub(crate) fn is_mode(&self) -> bool {
        !self.entries.iter().any(|entry| entry.tag.has_id() || entry.tag == Tag::Mask)
    }

    /// The bits of a mode that go with it.
    pub(crate) fn bits(&self) -> u32 {
        let group = self.group_class();
        let bits = self.entries.iter().map(|entry| {
            let shift = match entry.tag {
                Tag::Owner => 6,
                Tag::Other => 0,
                tag if tag == group => 3,
                Tag::User | Tag::OwningGroup | Tag::Group | Tag::Mask => return 0,
            };
            u32::from(entry.permissions) << shift
        });
        bits.fold(0, |all, bits| all | bits)
    }

    /// The same with the bits of another mode.
    pub(crate) fn with_bits(mut self, mode: u32) -> Self {
        let group = self.group_class();
        for (tag, shift) in [(Tag::Owner, 6), (group, 3), (Tag::Other, 0)] {
            if let Some(permissions) = self.of(tag) {
                *permissions = (mode >> shift & 7) as u16;
            }
        }
        self
    }
}

impl Attempt<'_> {
    /// What a new file in a directory begins with; its mode loses what the mask of the caller, or the directory's list, withholds.
    pub(crate) fn inherit(
        &mut self,
        parent: u64,
        inode: &mut Inode,
        umask: u32,
    ) -> Result<Vec<Extended>, Stop> {
        if inode.is_link() {
            return Ok(Vec::new());
        }
        let Some(default) = self.access_list(parent, DEFAULT)? else {
            inode.mode &= !(umask & BITS);
            return Ok(Vec::new());
        };
        let list = default.clone();
        let bits = list.bits() & inode.mode;
        let list = list.with_bits(bits);
        inode.mode = inode.mode & !BITS | bits;
        let mut attributes = Vec::new();
        if !list.is_mode() {
            attributes.push(Extended { name: ACCESS.to_vec(), value: list.encode() });
        }
        if inode.is_directory() {
            attributes.push(Extended { name: DEFAULT.to_vec(), value: default.encode() });
        }
        Ok(attributes)
    }

    /// One of an inode's lists, if it has it.
    pub(crate) fn access_list(
        &mut self,
        number: u64,
        name: &[u8],
    ) -> Result<Option<AccessList>, Stop> {
        let all = self.extended(number)?;
        match all.into_iter().find(|extended| extended.name == name) {
            None => Ok(None),
            Some(found) => broken(AccessList::decode(&found.value)).map(Some),
        }
    }
}

/// The list that an attribute of an inode would be.
pub(crate) fn check_list(inode: &Inode, name: &[u8], value: &[u8]) -> Result<AccessList, Errno> {
    if inode.is_link() {
        return Err(Errno::NotSupported);
    }
    if name == DEFAULT && !inode.is_directory() {
        return Err(Errno::NotPermitted);
    }
    AccessList::decode(value).ok_or(Errno::Invalid)
}

/// An inode's mode after it got a list. One who is not of the file's group does not keep its group's rights for a program; of a
/// caller's groups only the first is known.
pub(crate) fn mode_with(inode: &Inode, list: &AccessList, caller: crate::request::Caller) -> u32 {
    let kept = inode.mode & !BITS | list.bits();
    match caller.uid == 0 || caller.gid == inode.gid {
        true => kept,
        false => kept & !mode::SETGID,
    }
}

#[cfg(test)]
mod tests;
