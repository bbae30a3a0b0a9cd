//! Names and inodes: each inode has as many names as it says, and every directory is below the root.

use std::collections::{BTreeMap, BTreeSet};

use super::walk::{BROKEN, Live, Name};
use super::{Checker, Problem};
use crate::format::inode::{InodePlace, mode};

/// The type of a directory, as names say it.
const DIRECTORY: u8 = (mode::DIRECTORY >> 12) as u8;

impl Checker<'_> {
    pub(super) fn check_names(&mut self) {
        let mut names = std::mem::take(&mut self.walk.names);
        let mut live = std::mem::take(&mut self.walk.live);
        names.sort_unstable_by_key(|name| (name.inode(), name.directory));
        live.sort_unstable();
        let mut orphans = std::mem::take(&mut self.walk.orphans);
        orphans.sort_unstable();
        let mut rest = names.as_slice();
        for live in &live {
            let before = rest.partition_point(|name| name.inode() < live.inode);
            let (dangling, from) = rest.split_at(before);
            self.note_dangling(dangling);
            let count = from.partition_point(|name| name.inode() == live.inode);
            let (own, behind) = from.split_at(count);
            rest = behind;
            self.check_named(live, own, orphans.binary_search(&live.inode).is_ok());
        }
        self.note_dangling(rest);
        for orphan in orphans {
            let is_live = live.binary_search_by_key(&orphan, |live| live.inode).is_ok();
            if !is_live && !self.is_lost(orphan) {
                self.note(Problem::FreeOrphan { inode: orphan });
            }
        }
        self.check_directories();
        self.walk.live = live;
    }

    /// Names that lead to no inode.
    fn note_dangling(&mut self, names: &[Name]) {
        for name in names {
            let (directory, inode) = (name.directory, name.inode());
            if !self.is_lost(inode) {
                self.note(Problem::Dangling { directory, inode });
            }
        }
    }

    fn is_lost(&self, inode: u64) -> bool {
        self.walk.lost.contains(&InodePlace::of(inode).lead)
    }

    fn check_named(&mut self, live: &Live, names: &[Name], is_orphan: bool) {
        let &Live { inode, links, kind } = live;
        if kind == BROKEN {
            return; // That it is broken was said.
        }
        let is_own = self.superblock.own_inodes().contains(&inode);
        if is_own || inode == self.superblock.root {
            self.note_dangling(names);
            if is_own && links != 1 {
                self.note(Problem::Links { inode, says: links.into(), is: 1 });
            }
            return;
        }
        for name in names.iter().filter(|name| name.kind() != kind) {
            self.note(Problem::EntryType { directory: name.directory, inode });
        }
        let is = names.len() as u64;
        if is == 0 {
            match (links, is_orphan) {
                (0, true) => self.report.orphans += 1,
                (0, false) => self.note(Problem::ForgottenOrphan { inode }),
                (_, _) => self.note(Problem::Unreachable { inode }),
            }
            return;
        }
        if kind == DIRECTORY {
            self.report.directories += 1;
            return self.place_directory(inode, names);
        }
        self.report.files += 1;
        if u64::from(links) != is {
            self.note(Problem::Links { inode, says: links.into(), is });
        }
    }

    fn place_directory(&mut self, inode: u64, names: &[Name]) {
        let says = self.walk.directories.get(&inode).map(|directory| directory.parent);
        let kept = names.iter().position(|name| Some(name.directory) == says).unwrap_or(0);
        let by = names[kept].directory;
        for (_, name) in names.iter().enumerate().filter(|(at, _)| *at != kept) {
            self.note(Problem::SecondName { inode, directory: name.directory });
        }
        if let Some(above) = self.walk.directories.get_mut(&by) {
            above.children += 1;
        }
        let Some(directory) = self.walk.directories.get_mut(&inode) else { return };
        directory.named_by = Some(by);
        let says = directory.parent;
        if says != by {
            self.note(Problem::Parent { inode, says, is: by });
        }
    }

    /// Links of directories, and circles.
    fn check_directories(&mut self) {
        let directories = std::mem::take(&mut self.walk.directories);
        let root = self.superblock.root;
        match directories.get(&root) {
            Some(directory) if directory.parent != root => {
                self.note(Problem::Parent { inode: root, says: directory.parent, is: root });
            }
            Some(_) => self.report.directories += 1,
            None => self.note(Problem::Inode { inode: root }),
        }
        // Those from which a way leads up to the root, or to a directory without a name.
        let mut placed: BTreeSet<u64> = BTreeSet::new();
        for (&inode, directory) in &directories {
            let is_named = directory.named_by.is_some() || inode == root;
            let (says, is) = (u64::from(directory.links), directory.children + 2);
            if is_named && says != is {
                self.note(Problem::Links { inode, says, is });
            }
            let mut way: BTreeMap<u64, ()> = BTreeMap::new();
            let mut at = Some(inode);
            while let Some(here) = at.filter(|here| !placed.contains(here)) {
                if way.insert(here, ()).is_some() {
                    self.note(Problem::Circle { inode: here });
                    break;
                }
                at = directories.get(&here).and_then(|directory| directory.named_by);
            }
            placed.extend(way.into_keys());
        }
        self.walk.directories = directories;
    }
}
