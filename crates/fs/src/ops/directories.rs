//! Entries of directories.

use crate::attempt::{Attempt, Stop, broken};
use crate::format::entry::{Entry, NAME_MAX, TWINS, key_of};
use crate::format::inode::{Inode, mode};
use crate::ops::attributes::attributes;
use crate::request::{Errno, Listed};
use crate::tree::Owned;

/// An entry and its key.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) key: u64,
    pub(crate) entry: Entry,
}

/// Cookies of a directory itself and of its parent: no name has these keys.
const SELF: u64 = 1;
const PARENT: u64 = 2;

/// What a listed entry takes beside its name, in the kernel's count.
const LISTED: usize = 24;

/// Attributes take that much more.
const LISTED_PLUS: usize = 128;

/// The upper bits of a mode, as a directory has them.
pub(crate) fn kind_of(inode: &Inode) -> u8 {
    (inode.mode >> 12) as u8
}

/// Whether a name may be one.
pub(crate) fn check_name(name: &[u8]) -> Result<(), Errno> {
    match name {
        b"" | b"." | b".." => Err(Errno::Invalid),
        name if name.len() > NAME_MAX => Err(Errno::NameTooLong),
        name if name.iter().any(|byte| matches!(byte, 0 | b'/')) => Err(Errno::Invalid),
        _ => Ok(()),
    }
}

impl Attempt<'_> {
    /// A directory that still has a name.
    pub(crate) fn directory(&mut self, number: u64) -> Result<Inode, Stop> {
        let inode = self.inode(number)?;
        match inode.is_directory() {
            true => Ok(inode),
            false => Err(Stop::Fail(Errno::NotDirectory)),
        }
    }

    /// The entry with a name.
    pub(crate) fn find_entry(
        &mut self,
        number: u64,
        directory: &Inode,
        name: &[u8],
    ) -> Result<Option<Found>, Stop> {
        if name.len() > NAME_MAX {
            return Err(Stop::Fail(Errno::NameTooLong));
        }
        let first = key_of(name, self.superblock.filesystem());
        let mut from = first;
        loop {
            let next = self.tree_next(number, directory, from)?;
            let Some(pair) = next.filter(|pair| pair.key < first + TWINS) else {
                return Ok(None);
            };
            let entry = broken(Entry::decode(&pair.value))?;
            if entry.name == name {
                return Ok(Some(Found { key: pair.key, entry }));
            }
            from = pair.key + 1;
        }
    }

    /// The entry with a name, which must be there.
    pub(crate) fn entry(
        &mut self,
        number: u64,
        directory: &Inode,
        name: &[u8],
    ) -> Result<Found, Stop> {
        self.find_entry(number, directory, name)?.ok_or(Stop::Fail(Errno::NotFound))
    }

    /// Adds an entry whose name is not there yet.
    pub(crate) fn add_entry(&mut self, of: &mut Owned<'_>, entry: &Entry) -> Result<(), Stop> {
        check_name(&entry.name)?;
        let first = key_of(&entry.name, self.superblock.filesystem());
        let mut key = first;
        // The first key of the name's hash that is free.
        while self.tree_get(of.number, of.inode, key)?.is_some() {
            key += 1;
            if key == first + TWINS {
                return Err(Stop::Fail(Errno::NoSpace));
            }
        }
        of.inode.size = of.inode.size.saturating_add(1);
        self.tree_insert(of, key, entry.encode())
    }

    /// Takes an entry away.
    pub(crate) fn remove_entry(&mut self, of: &mut Owned<'_>, key: u64) -> Result<(), Stop> {
        of.inode.size = broken(of.inode.size.checked_sub(1))?;
        self.tree_remove(of, key)
    }

    /// Lists entries after a cookie, as many as there is room for.
    pub(crate) fn list(
        &mut self,
        number: u64,
        after: u64,
        room: usize,
        with_attributes: bool,
    ) -> Result<Vec<Listed>, Stop> {
        let directory = self.inode(number)?;
        if !directory.is_directory() {
            return Err(Stop::Fail(Errno::NotDirectory));
        }
        let (mut listed, mut left) = (Vec::new(), room);
        let own = (mode::DIRECTORY >> 12) as u8;
        for (cookie, inode, name) in [(SELF, number, &b"."[..]), (PARENT, directory.parent, b"..")]
        {
            if after < cookie {
                let (name, attributes) = (name.to_vec(), None);
                listed.push(Listed { inode, kind: own, name, cookie, attributes });
                left = left.saturating_sub(LISTED + 8);
            }
        }
        let mut from = after.max(PARENT).saturating_add(1);
        loop {
            let pairs = self.tree_from(number, &directory, from)?;
            let Some(last) = pairs.last() else { return Ok(listed) };
            from = last.key + 1;
            for pair in pairs {
                let Entry { inode, kind, name } = broken(Entry::decode(&pair.value))?;
                let takes = LISTED
                    + name.len().next_multiple_of(8)
                    + if with_attributes { LISTED_PLUS } else { 0 };
                if takes > left {
                    return Ok(listed);
                }
                left -= takes;
                let attributes = match with_attributes {
                    true => Some(attributes(inode, &self.inode(inode)?)),
                    false => None,
                };
                listed.push(Listed { inode, kind, name, cookie: pair.key, attributes });
            }
        }
    }
}
