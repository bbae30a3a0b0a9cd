//! A file by its path, and a path by its inode.

use std::collections::{BTreeMap, VecDeque};

use super::{CannotInspect, Inspector};
use crate::format::entry::Entry;
use crate::format::extent::Window;
use crate::format::inode::{Form, Inode};
use crate::ops::extents::Pages;
use crate::request::Errno;

/// Windows that one attempt takes from a tree.
const WINDOWS_MAX: usize = 256;

/// A file, a directory or whatever has a path.
#[derive(Clone, Debug)]
pub struct FileFound {
    /// The number of its inode.
    pub number: u64,
    /// Its inode.
    pub inode: Inode,
    /// Where its sectors lie, in the order of its pages; of directories and others nothing.
    pub windows: Vec<FileWindow>,
    /// Whether it is on the list of files with lost sectors.
    pub is_listed_damaged: bool,
}

/// A window of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileWindow {
    /// Its first page.
    pub page: u64,
    /// Where its sectors lie.
    pub window: Window,
}

impl Inspector<'_> {
    /// What has a path: names with slashes between them, from the root directory on.
    ///
    /// # Errors
    ///
    /// There is no such path, or what leads to it cannot be read.
    pub fn file(&mut self, path: &[u8]) -> Result<FileFound, CannotInspect> {
        let mut number = self.superblock.root;
        for name in path.split(|&byte| byte == b'/').filter(|name| !name.is_empty()) {
            number = self.attempt(|attempt| {
                let directory = attempt.directory(number)?;
                match name {
                    b"." => Ok(number),
                    b".." => Ok(directory.parent),
                    name => Ok(attempt.entry(number, &directory, name)?.entry.inode),
                }
            })?;
        }
        let inode = self.attempt(|attempt| attempt.inode(number))?;
        let damaged = self.superblock.damaged;
        let is_listed_damaged = self.attempt(|attempt| {
            let list = attempt.inode(damaged)?;
            Ok(attempt.tree_get(damaged, &list, number)?.is_some())
        })?;
        let windows = self.windows(number, &inode)?;
        Ok(FileFound { number, inode, windows, is_listed_damaged })
    }

    fn windows(&mut self, number: u64, inode: &Inode) -> Result<Vec<FileWindow>, CannotInspect> {
        let mut windows: Vec<FileWindow> = Vec::new();
        if !inode.is_file() || inode.form == Form::Content {
            return Ok(windows);
        }
        let mut from = 0;
        loop {
            let pages = Pages { from, to: u64::MAX };
            let some =
                self.attempt(|attempt| attempt.windows(number, inode, pages, WINDOWS_MAX))?;
            let Some(last) = some.last() else { return Ok(windows) };
            from = last.end();
            windows.extend(
                some.iter().map(|mapped| FileWindow { page: mapped.page, window: mapped.window }),
            );
        }
    }

    /// The windows of an inode that is there.
    pub(super) fn windows_of(&mut self, number: u64) -> Result<Vec<FileWindow>, CannotInspect> {
        let inode = self.attempt(|attempt| attempt.inode(number))?;
        self.windows(number, &inode)
    }

    /// A path that leads to an inode, without a slash before it; nothing if no directory that can be read names it.
    ///
    /// # Errors
    ///
    /// The device fails.
    pub fn path_of(&mut self, number: u64) -> Result<Option<Vec<u8>>, CannotInspect> {
        let root = self.superblock.root;
        let mut above: BTreeMap<u64, (u64, Vec<u8>)> = BTreeMap::new();
        let mut next: VecDeque<u64> = [root].into();
        while let Some(directory) = next.pop_front() {
            for entry in self.entries(directory)? {
                let inode = entry.inode;
                if inode == root || above.contains_key(&inode) {
                    continue;
                }
                above.insert(inode, (directory, entry.name));
                if inode == number {
                    return Ok(Some(path(&above, number)));
                }
                if u32::from(entry.kind) << 12 == crate::format::inode::mode::DIRECTORY {
                    next.push_back(inode);
                }
            }
        }
        Ok(None)
    }

    /// The entries of a directory, as far as they can be read.
    fn entries(&mut self, directory: u64) -> Result<Vec<Entry>, CannotInspect> {
        let (mut entries, mut from) = (Vec::new(), 0);
        loop {
            let pairs = self.attempt(|attempt| {
                let inode = attempt.directory(directory)?;
                attempt.tree_from(directory, &inode, from)
            });
            match pairs {
                Ok(pairs) => {
                    let Some(last) = pairs.last() else { return Ok(entries) };
                    from = last.key + 1;
                    entries.extend(pairs.iter().filter_map(|pair| Entry::decode(&pair.value)));
                }
                Err(CannotInspect::Failed(Errno::Io | Errno::NotFound | Errno::NotDirectory)) => {
                    return Ok(entries);
                }
                Err(why) => return Err(why),
            }
        }
    }
}

/// The names from the root on.
fn path(above: &BTreeMap<u64, (u64, Vec<u8>)>, number: u64) -> Vec<u8> {
    let (mut names, mut at) = (Vec::new(), number);
    while let Some((directory, name)) = above.get(&at) {
        names.push(name.as_slice());
        at = *directory;
    }
    names.reverse();
    names.join(&b'/')
}
