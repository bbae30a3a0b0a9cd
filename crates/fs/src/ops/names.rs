//! Names come, go and change.

use crate::attempt::{Attempt, Stop};
use crate::format::entry::Entry;
use crate::format::inode::{FileKind, Form, INLINE, Inode, Moment, mode};
use crate::ops::attributes::attributes;
use crate::ops::directories::{Found, check_name, kind_of};
use crate::request::{Attributes, Caller, Errno, Named, Removed, Renaming};
use crate::tree::Owned;

/// The most names of an inode.
const LINKS_MAX: u32 = 65_000;

/// The longest target of a symbolic link.
pub(crate) const TARGET_MAX: usize = 4_095;

/// Who asks, and when.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    pub(crate) caller: Caller,
    pub(crate) now: Moment,
}

/// A file that comes to be.
#[derive(Clone, Debug)]
pub(crate) struct NewFile {
    pub(crate) inode: Inode,
    /// What its mode loses, unless its directory has a list of who may do what.
    pub(crate) umask: u32,
}

/// What becomes of a name that goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unnamed {
    pub(crate) inode: u64,
    /// Whether it was its last one.
    pub(crate) is_last: bool,
}

impl Attempt<'_> {
    /// The inode of a name. "." is an inode itself, also that of a file: so a file handle is opened (open_by_handle_at(2), NFS).
    pub(crate) fn lookup(&mut self, named: &Named) -> Result<Attributes, Stop> {
        if named.name == b"." {
            return self.attributes(named.parent);
        }
        let directory = self.directory(named.parent)?;
        let number = match named.name.as_slice() {
            b".." => directory.parent,
            name => self.entry(named.parent, &directory, name)?.entry.inode,
        };
        self.attributes(number)
    }

    /// A new inode with a name.
    pub(crate) fn make(
        &mut self,
        named: &Named,
        new: &NewFile,
        asked: Asked,
    ) -> Result<Attributes, Stop> {
        let Asked { caller, now } = asked;
        check_name(&named.name)?;
        let mut directory = self.named_directory(named.parent)?;
        if self.find_entry(named.parent, &directory, &named.name)?.is_some() {
            return Err(Stop::Fail(Errno::Exists));
        }
        let mut inode = Inode { uid: caller.uid, gid: caller.gid, links: 1, ..new.inode.clone() };
        // What is in a directory with this bit belongs to the directory's group.
        if directory.mode & mode::SETGID != 0 {
            inode.gid = directory.gid;
            if inode.is_directory() {
                inode.mode |= mode::SETGID;
            }
        }
        if inode.is_directory() || directory.kind != FileKind::Auto {
            inode.kind = directory.kind;
        }
        if !inode.is_file() && !inode.is_directory() {
            inode.kind = FileKind::Auto;
        }
        let inherited = self.inherit(named.parent, &mut inode, new.umask)?;
        if inode.is_directory() {
            (inode.links, inode.parent) = (2, named.parent);
            directory.links += 1;
            if directory.links > LINKS_MAX {
                return Err(Stop::Fail(Errno::TooManyLinks));
            }
        }
        let new = self.new_inode(named.parent, &inode)?;
        let entry =
            Entry { inode: new.number, kind: kind_of(&new.inode), name: named.name.clone() };
        self.enter(named.parent, &mut directory, &entry, now)?;
        if !inherited.is_empty() {
            self.put_extended(new.number, &inherited, now)?;
        }
        Ok(attributes(new.number, &new.inode))
    }

    /// A new symbolic link.
    pub(crate) fn make_link(
        &mut self,
        named: &Named,
        target: &[u8],
        asked: Asked,
    ) -> Result<Attributes, Stop> {
        if target.is_empty() || target.len() > TARGET_MAX {
            return Err(Stop::Fail(Errno::NameTooLong));
        }
        let mut inode = Inode::new(mode::LINK | 0o777, asked.now);
        inode.size = target.len() as u64;
        if target.len() <= INLINE {
            inode.form = Form::Content;
            inode.inline[..target.len()].copy_from_slice(target);
            return self.make(named, &NewFile { inode, umask: 0 }, asked);
        }
        let made = self.make(named, &NewFile { inode, umask: 0 }, asked)?;
        let mut inode = self.inode(made.inode)?;
        for (key, part) in (0..).zip(target.chunks(PART)) {
            let mut of = Owned { number: made.inode, inode: &mut inode };
            self.tree_insert(&mut of, key, part.to_vec())?;
        }
        self.set_inode(made.inode, &inode)?;
        Ok(made)
    }

    /// What a symbolic link says.
    pub(crate) fn read_link(&mut self, number: u64) -> Result<Vec<u8>, Stop> {
        let inode = self.inode(number)?;
        if !inode.is_link() {
            return Err(Stop::Fail(Errno::Invalid));
        }
        let size = usize::try_from(inode.size).unwrap_or(usize::MAX);
        if inode.form == Form::Content {
            return inode.inline.get(..size).map(<[u8]>::to_vec).ok_or(Stop::Fail(Errno::Io));
        }
        let mut target = Vec::new();
        let mut from = 0;
        loop {
            let pairs = self.tree_from(number, &inode, from)?;
            let Some(last) = pairs.last() else { break };
            from = last.key + 1;
            pairs.iter().for_each(|pair| target.extend_from_slice(&pair.value));
        }
        if target.len() == size { Ok(target) } else { Err(Stop::Fail(Errno::Io)) }
    }

    /// Another name for an inode.
    pub(crate) fn link(
        &mut self,
        number: u64,
        named: &Named,
        asked: Asked,
    ) -> Result<Attributes, Stop> {
        check_name(&named.name)?;
        let mut inode = self.inode(number)?;
        if inode.is_directory() {
            return Err(Stop::Fail(Errno::NotPermitted));
        }
        if inode.links == 0 {
            return Err(Stop::Fail(Errno::NotFound));
        }
        if inode.links >= LINKS_MAX {
            return Err(Stop::Fail(Errno::TooManyLinks));
        }
        let mut directory = self.named_directory(named.parent)?;
        if self.find_entry(named.parent, &directory, &named.name)?.is_some() {
            return Err(Stop::Fail(Errno::Exists));
        }
        (inode.links, inode.changed) = (inode.links + 1, asked.now);
        self.set_inode(number, &inode)?;
        let entry = Entry { inode: number, kind: kind_of(&inode), name: named.name.clone() };
        self.enter(named.parent, &mut directory, &entry, asked.now)?;
        Ok(attributes(number, &inode))
    }

    /// A name less.
    pub(crate) fn remove(
        &mut self,
        named: &Named,
        what: Removed,
        asked: Asked,
    ) -> Result<Unnamed, Stop> {
        match (what, named.name.as_slice()) {
            (Removed::Directory, b".") => return Err(Stop::Fail(Errno::Invalid)),
            (Removed::Directory, b"..") => return Err(Stop::Fail(Errno::NotEmpty)),
            (Removed::File, b"." | b"..") => return Err(Stop::Fail(Errno::IsDirectory)),
            _ => {}
        }
        let mut directory = self.directory(named.parent)?;
        let found = self.entry(named.parent, &directory, &named.name)?;
        let inode = self.inode(found.entry.inode)?;
        match (what, inode.is_directory()) {
            (Removed::File, true) => return Err(Stop::Fail(Errno::IsDirectory)),
            (Removed::Directory, false) => return Err(Stop::Fail(Errno::NotDirectory)),
            (Removed::Directory, true) if inode.size > 0 => {
                return Err(Stop::Fail(Errno::NotEmpty));
            }
            _ => {}
        }
        check_sticky(&directory, &inode, asked.caller)?;
        self.leave(named.parent, &mut directory, found.key, asked.now)?;
        if inode.is_directory() {
            directory.links -= 1;
            self.set_inode(named.parent, &directory)?;
        }
        self.unname(found.entry.inode, inode, asked.now)
    }

    /// Puts a file on the list of those with sectors that are lost, or takes it off. The list's size is their number.
    pub(crate) fn note_damaged(&mut self, inode: u64, is_damaged: bool) -> Result<(), Stop> {
        let number = self.superblock.damaged;
        let mut list = self.inode(number)?;
        let was_damaged = self.tree_get(number, &list, inode)?.is_some();
        if was_damaged == is_damaged {
            return Ok(());
        }
        let mut of = Owned { number, inode: &mut list };
        match is_damaged {
            true => self.tree_insert(&mut of, inode, Vec::new())?,
            false => self.tree_remove(&mut of, inode)?,
        }
        list.size =
            if is_damaged { list.size.saturating_add(1) } else { list.size.saturating_sub(1) };
        self.set_inode(number, &list)
    }

    /// Files with sectors that are lost, as many as that at most.
    pub(crate) fn damaged_inodes(&mut self, most: usize) -> Result<Vec<u64>, Stop> {
        let number = self.superblock.damaged;
        let list = self.inode(number)?;
        let (mut found, mut key) = (Vec::new(), 0);
        while found.len() < most
            && let Some(pair) = self.tree_next(number, &list, key)?
        {
            found.push(pair.key);
            let Some(next) = pair.key.checked_add(1) else { break };
            key = next;
        }
        Ok(found)
    }

    /// How many files have sectors that are lost.
    pub(crate) fn damaged_files(&mut self) -> Result<u64, Stop> {
        Ok(self.inode(self.superblock.damaged)?.size)
    }

    /// An inode has a name less; one without names is on the list of orphans.
    fn unname(&mut self, number: u64, mut inode: Inode, now: Moment) -> Result<Unnamed, Stop> {
        // A directory counts itself.
        let left = if inode.is_directory() { 0 } else { inode.links.saturating_sub(1) };
        (inode.links, inode.changed) = (left, now);
        self.set_inode(number, &inode)?;
        let is_last = left == 0;
        if is_last {
            self.add_orphan(number)?;
        }
        Ok(Unnamed { inode: number, is_last })
    }

    /// Another name instead of this one; returns what has a name less.
    pub(crate) fn rename(
        &mut self,
        from: &Named,
        to: &Named,
        renaming: Renaming,
        asked: Asked,
    ) -> Result<Option<Unnamed>, Stop> {
        let Asked { caller, now } = asked;
        for name in [&from.name, &to.name] {
            if matches!(name.as_slice(), b"." | b"..") {
                return Err(Stop::Fail(Errno::Invalid));
            }
        }
        check_name(&to.name)?;
        let source = self.directory(from.parent)?;
        let target = self.named_directory(to.parent)?;
        let moved = self.entry(from.parent, &source, &from.name)?;
        let replaced = self.find_entry(to.parent, &target, &to.name)?;
        let inode = self.inode(moved.entry.inode)?;
        check_sticky(&source, &inode, caller)?;
        if inode.is_directory() {
            self.check_not_below(moved.entry.inode, to.parent)?;
        }
        match (renaming, &replaced) {
            (Renaming::Keep, Some(_)) => return Err(Stop::Fail(Errno::Exists)),
            (Renaming::Exchange, None) => return Err(Stop::Fail(Errno::NotFound)),
            (Renaming::Exchange, Some(other)) => {
                let other = Found { key: other.key, entry: other.entry.clone() };
                self.exchange(from, to, &moved, &other, asked)?;
                return Ok(None);
            }
            (Renaming::Replace | Renaming::Keep, _) => {}
        }
        let mut unnamed = None;
        if let Some(Found { key, entry }) = replaced {
            if entry.inode == moved.entry.inode {
                return Ok(None); // Two names of one inode: nothing happens.
            }
            let old = self.inode(entry.inode)?;
            check_sticky(&target, &old, caller)?;
            match (inode.is_directory(), old.is_directory()) {
                (true, false) => return Err(Stop::Fail(Errno::NotDirectory)),
                (false, true) => return Err(Stop::Fail(Errno::IsDirectory)),
                (true, true) if old.size > 0 => return Err(Stop::Fail(Errno::NotEmpty)),
                _ => {}
            }
            let mut target = self.directory(to.parent)?;
            self.leave(to.parent, &mut target, key, now)?;
            if old.is_directory() {
                target.links -= 1;
                self.set_inode(to.parent, &target)?;
            }
            unnamed = Some(self.unname(entry.inode, old, now)?);
        }
        let mut source = self.directory(from.parent)?;
        self.leave(from.parent, &mut source, moved.key, now)?;
        if inode.is_directory() && from.parent != to.parent {
            source.links -= 1;
            self.set_inode(from.parent, &source)?;
        }
        let mut target = self.directory(to.parent)?;
        if inode.is_directory() && from.parent != to.parent {
            target.links += 1;
        }
        let entry = Entry { name: to.name.clone(), ..moved.entry };
        self.enter(to.parent, &mut target, &entry, now)?;
        self.set_parent(entry.inode, to.parent, now)?;
        Ok(unnamed)
    }

    fn exchange(
        &mut self,
        from: &Named,
        to: &Named,
        one: &Found,
        other: &Found,
        asked: Asked,
    ) -> Result<(), Stop> {
        if one.entry.inode == other.entry.inode {
            return Ok(());
        }
        let (first, second) = (self.inode(one.entry.inode)?, self.inode(other.entry.inode)?);
        let target = self.directory(to.parent)?;
        check_sticky(&target, &second, asked.caller)?;
        if second.is_directory() {
            self.check_not_below(other.entry.inode, from.parent)?;
        }
        for (parent, key, entry) in
            [(from.parent, one.key, &other.entry), (to.parent, other.key, &one.entry)]
        {
            let mut directory = self.directory(parent)?;
            let name = if parent == from.parent && key == one.key { &from.name } else { &to.name };
            let entry = Entry { name: name.clone(), ..entry.clone() };
            let mut of = Owned { number: parent, inode: &mut directory };
            self.tree_insert(&mut of, key, entry.encode())?;
            (directory.modified, directory.changed) = (asked.now, asked.now);
            self.set_inode(parent, &directory)?;
        }
        if from.parent != to.parent && first.is_directory() != second.is_directory() {
            let (more, fewer) = match first.is_directory() {
                true => (to.parent, from.parent),
                false => (from.parent, to.parent),
            };
            let mut gains = self.directory(more)?;
            gains.links += 1;
            self.set_inode(more, &gains)?;
            let mut loses = self.directory(fewer)?;
            loses.links -= 1;
            self.set_inode(fewer, &loses)?;
        }
        self.set_parent(one.entry.inode, to.parent, asked.now)?;
        self.set_parent(other.entry.inode, from.parent, asked.now)
    }

    pub(crate) fn set_parent(&mut self, number: u64, parent: u64, now: Moment) -> Result<(), Stop> {
        let mut inode = self.inode(number)?;
        inode.changed = now;
        if inode.is_directory() {
            inode.parent = parent;
        }
        self.set_inode(number, &inode)
    }

    /// A directory does not come into itself or what is in it.
    fn check_not_below(&mut self, moved: u64, mut directory: u64) -> Result<(), Stop> {
        // Deeper than any path can be: the disk has a circle.
        for _ in 0..1 << 16 {
            if directory == moved {
                return Err(Stop::Fail(Errno::Invalid));
            }
            if directory == self.superblock.root {
                return Ok(());
            }
            directory = self.directory(directory)?.parent;
        }
        Err(Stop::Fail(Errno::Io))
    }

    /// A directory that has a name: nothing comes into one that has none any more.
    fn named_directory(&mut self, number: u64) -> Result<Inode, Stop> {
        let inode = self.directory(number)?;
        if inode.links == 0 { Err(Stop::Fail(Errno::NotFound)) } else { Ok(inode) }
    }

    pub(crate) fn enter(
        &mut self,
        parent: u64,
        directory: &mut Inode,
        entry: &Entry,
        now: Moment,
    ) -> Result<(), Stop> {
        (directory.modified, directory.changed) = (now, now);
        self.add_entry(&mut Owned { number: parent, inode: directory }, entry)?;
        self.set_inode(parent, directory)
    }

    pub(crate) fn leave(
        &mut self,
        parent: u64,
        directory: &mut Inode,
        key: u64,
        now: Moment,
    ) -> Result<(), Stop> {
        (directory.modified, directory.changed) = (now, now);
        self.remove_entry(&mut Owned { number: parent, inode: directory }, key)?;
        self.set_inode(parent, directory)
    }

    /// An inode is to be emptied and freed, at the next mount at the latest.
    pub(crate) fn add_orphan(&mut self, number: u64) -> Result<(), Stop> {
        let orphans = self.superblock.orphans;
        let mut list = self.inode(orphans)?;
        self.tree_insert(&mut Owned { number: orphans, inode: &mut list }, number, Vec::new())?;
        self.set_inode(orphans, &list)
    }

    /// It is not any more.
    pub(crate) fn remove_orphan(&mut self, number: u64) -> Result<(), Stop> {
        let orphans = self.superblock.orphans;
        let mut list = self.inode(orphans)?;
        self.tree_remove(&mut Owned { number: orphans, inode: &mut list }, number)?;
        self.set_inode(orphans, &list)
    }

    /// Inodes that are to be emptied and freed, from a number on.
    pub(crate) fn orphans(&mut self, from: u64) -> Result<Vec<u64>, Stop> {
        let orphans = self.superblock.orphans;
        let list = self.inode(orphans)?;
        let pairs = self.tree_from(orphans, &list, from)?;
        Ok(pairs.into_iter().map(|pair| pair.key).collect())
    }
}

/// Bytes of a symbolic link's target that one pair of its tree has.
const PART: usize = 1_000;

/// In a sticky directory only the owner of a file or of the directory takes its name away.
fn check_sticky(directory: &Inode, inode: &Inode, caller: Caller) -> Result<(), Stop> {
    let is_sticky = directory.mode & 0o1000 != 0;
    let may = [0, directory.uid, inode.uid].contains(&caller.uid);
    if is_sticky && !may { Err(Stop::Fail(Errno::NotPermitted)) } else { Ok(()) }
}
