//! Entries of directories.

use super::trees::Sink;
use super::walk::{Directory, Name};
use super::{Checker, Problem};
use crate::format::entry::{Entry, TWINS, key_of};
use crate::format::inode::Inode;
use crate::format::node::Pair;
use crate::ops::directories::check_name;

/// The entries of a directory.
pub(super) struct Entries {
    directory: u64,
    count: u64,
    /// The least key of the names that came last, and those names.
    twins: (u64, Vec<Vec<u8>>),
}

impl Entries {
    pub(super) fn new(directory: u64) -> Self {
        Self { directory, count: 0, twins: (0, Vec::new()) }
    }

    pub(super) fn count(&self) -> u64 {
        self.count
    }
}

impl Sink for Entries {
    fn take(&mut self, checker: &mut Checker<'_>, pair: &Pair) -> bool {
        self.count += 1;
        let Some(entry) = Entry::decode(&pair.value) else { return false };
        let (directory, key) = (self.directory, pair.key);
        let first = key_of(&entry.name, checker.superblock.filesystem());
        let is_found = (first..first + TWINS).contains(&key);
        if self.twins.0 != first {
            self.twins = (first, Vec::new());
        }
        let is_twice = self.twins.1.contains(&entry.name);
        if !is_found || is_twice || check_name(&entry.name).is_err() {
            checker.note(Problem::Name { directory, key });
        }
        self.twins.1.push(entry.name);
        checker.want_inode(entry.inode);
        checker.walk.names.push(Name::new(entry.inode, entry.kind, directory));
        true
    }
}

impl Checker<'_> {
    /// A directory was found.
    pub(super) fn enter_directory(&mut self, number: u64, inode: &Inode) {
        let (links, parent) = (inode.links, inode.parent);
        let directory = Directory { links, parent, children: 0, named_by: None };
        self.walk.directories.insert(number, directory);
    }
}
