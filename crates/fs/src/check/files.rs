//! What an inode has: the sectors of a file, what a symbolic link says, extended attributes.

use std::collections::BTreeMap;

use levelhead_units::Lba;

use super::directories::Entries;
use super::survey::Surveyed;
use super::trees::Sink;
use super::walk::Wanted;
use super::{Checker, Problem, WRONG_MAX};
use crate::format::extent::{CodingExtent, Window};
use crate::format::inode::{FileKind, Form, INLINE, Inode, mode};
use crate::format::ladder::Ladder;
use crate::format::node::{Node, Pair};
use crate::format::superblock::Superblock;
use crate::format::unit::{HEAD, Kind};
use crate::ops::attributes::SIZE_MAX;
use crate::ops::extents::PAGES_MAX;
use crate::ops::names::TARGET_MAX;

impl Checker<'_> {
    /// Looks at an inode that is not free.
    pub(super) fn check_content(&mut self, number: u64, inode: &Inode) {
        let is_listed = self.superblock.own_inodes().contains(&number);
        match inode.mode & mode::TYPE {
            mode::FILE if is_listed => self.check_list(number, inode),
            mode::FILE => self.check_file(number, inode),
            mode::DIRECTORY => self.check_directory(number, inode),
            mode::LINK => self.check_link(number, inode),
            mode::PIPE | mode::SOCKET | mode::BLOCK_DEVICE | mode::CHARACTER_DEVICE => {
                self.check_tree(number, inode, &mut Nothing);
            }
            _ => self.note_unknown(Problem::Inode { inode: number }),
        }
        if inode.attributes != Lba::ZERO {
            self.check_attributes(number, inode.attributes);
        }
    }

    fn check_file(&mut self, number: u64, inode: &Inode) {
        let mut windows = Windows { inode: number, end: 0, open: BTreeMap::new(), sectors: 0 };
        let was_known = std::mem::replace(&mut self.is_known, true);
        self.check_tree(number, inode, &mut windows);
        // Windows in a node that is lost are not missing.
        let is_whole = self.is_known;
        self.is_known &= was_known;
        let sectors = windows.sectors;
        if is_whole && inode.sectors != sectors {
            self.note(Problem::Sectors { inode: number, says: inode.sectors, is: sectors });
        }
        if inode.size > SIZE_MAX {
            self.note(Problem::Inode { inode: number });
        }
    }

    fn check_directory(&mut self, number: u64, inode: &Inode) {
        let mut entries = Entries::new(number);
        let was_known = std::mem::replace(&mut self.is_known, true);
        self.check_tree(number, inode, &mut entries);
        // Entries in a node that is lost are not missing.
        let is_whole = self.is_known;
        self.is_known &= was_known;
        if is_whole && inode.size != entries.count() {
            self.note(Problem::Size { inode: number, says: inode.size, is: entries.count() });
        }
        self.enter_directory(number, inode);
    }

    fn check_link(&mut self, number: u64, inode: &Inode) {
        let is = match inode.form {
            Form::Content => inode.size.min(INLINE as u64),
            Form::Tree => {
                let mut target = Target { length: 0 };
                self.check_tree(number, inode, &mut target);
                target.length
            }
        };
        if inode.size != is {
            self.note(Problem::Size { inode: number, says: inode.size, is });
        }
    }

    /// A list of the filesystem's own.
    fn check_list(&mut self, number: u64, inode: &Inode) {
        let mut keys = Keys { inode: number };
        self.check_tree(number, inode, &mut keys);
        let Superblock { damaged, units, .. } = self.superblock;
        match number {
            number if number == units => self.walk.listed.inodes = inode.size,
            number if number == damaged => self.walk.listed.files = inode.size,
            _ => {}
        }
    }

    fn check_attributes(&mut self, number: u64, lead: Lba) {
        if !self.may_be_unit(lead) {
            return self.note_unknown(Problem::Pointer { lead, owner: number });
        }
        let found = self.read_units(&[lead]).pop().flatten();
        let wanted = Wanted { lead, kind: Kind::Attributes, owner: number };
        let Some(unit) = self.expect(wanted, found) else { return };
        self.take_unit(lead, number);
        let is_right = |node: &Node| {
            let names: Option<Vec<&[u8]>> = node.pairs.iter().map(attribute_name).collect();
            names.is_some_and(|names| node.depth == 0 && names.is_sorted_by(|a, b| a < b))
        };
        if !Node::decode(&unit.bytes[HEAD..]).is_some_and(|node| is_right(&node)) {
            self.note(Problem::Tree { inode: number, key: 0 });
        }
    }

    /// A coding extent that was not met before.
    fn take_extent(&mut self, extent: &CodingExtent, inode: u64) {
        if let Some(found) = &mut self.surveyed {
            found.extents.push(Surveyed { inode, extent: *extent });
        }
        let all = extent.all();
        self.report.file_sectors += all.sectors.get();
        if !self.walk.used.mark(all) {
            self.note(Problem::Shared { extent: all, inode });
        }
        if !self.has_shape(extent) {
            self.note(Problem::Shape { lba: extent.lba, inode });
        }
        let geometry = self.superblock.geometry;
        if !self.walk.unsummed.is_empty()
            && self.walk.unsummed_extents.len() < WRONG_MAX
            && all.iter().any(|lba| self.walk.unsummed.contains(&geometry.sum_of(lba).lead))
        {
            self.walk.unsummed_extents.push(*extent);
        }
        self.compare(extent, inode);
    }

    /// Whether a coding extent has as many redundant sectors as the ladder says.
    fn has_shape(&self, extent: &CodingExtent) -> bool {
        let longest = extent.data.div_ceil(extent.depth.into());
        let is_of = |ladder: &Ladder| {
            extent.depth <= self.superblock.interleave
                && longest <= u32::from(ladder.data_max())
                && extent.redundant == ladder.redundant(longest)
        };
        match (extent.kind, &self.superblock.forced) {
            (FileKind::Auto | FileKind::A, _) => is_of(&self.superblock.ladder),
            (FileKind::B | FileKind::Mutable, None) => false,
            (FileKind::B, Some(ladder)) => is_of(ladder),
            (FileKind::Mutable, Some(_)) => {
                (extent.redundant, extent.depth) == (0, 1)
                    && extent.pages() <= self.superblock.pages_max(extent.kind)
            }
        }
    }
}

fn attribute_name(pair: &Pair) -> Option<&[u8]> {
    let (&len, rest) = pair.value.split_first()?;
    rest.get(..usize::from(len)).filter(|name| !name.is_empty())
}

/// The windows of a file.
struct Windows {
    inode: u64,
    /// The page behind the last one.
    end: u64,
    /// Coding extents of which more windows may come, by their first sector, and the page that this would have.
    open: BTreeMap<Lba, (CodingExtent, u64)>,
    sectors: u64,
}

impl Sink for Windows {
    fn take(&mut self, checker: &mut Checker<'_>, pair: &Pair) -> bool {
        let size = checker.superblock.geometry.sectors;
        let Some(window) = Window::decode(&pair.value, size) else { return false };
        let (page, extent) = (pair.key, window.extent);
        let base = page.checked_sub(window.skip.into());
        let end = page.checked_add(window.count.into());
        let (Some(base), Some(end)) = (base, end) else { return false };
        if page < self.end || page >= PAGES_MAX {
            return false;
        }
        self.end = end;
        self.open.retain(|_, (open, base)| *base + u64::from(open.pages()) > page);
        match self.open.get(&extent.lba) {
            Some(&known) => known == (extent, base),
            None => {
                self.open.insert(extent.lba, (extent, base));
                self.sectors += extent.all().sectors.get();
                checker.take_extent(&extent, self.inode);
                true
            }
        }
    }
}

/// What a long symbolic link says.
struct Target {
    length: u64,
}

impl Sink for Target {
    fn take(&mut self, _: &mut Checker<'_>, pair: &Pair) -> bool {
        self.length += pair.value.len() as u64;
        self.length <= TARGET_MAX as u64
    }
}

/// What a list of the filesystem's own names.
struct Keys {
    inode: u64,
}

impl Sink for Keys {
    fn take(&mut self, checker: &mut Checker<'_>, pair: &Pair) -> bool {
        let Superblock { orphans, damaged, spare, units, .. } = checker.superblock;
        let listed = &mut checker.walk.listed;
        match self.inode {
            number if number == units => listed.units.push(pair.key),
            number if number == spare => listed.spare.push(pair.key),
            number if number == damaged => listed.damaged.push(pair.key),
            number if number == orphans => {
                if checker.want_inode(pair.key) {
                    checker.walk.orphans.push(pair.key);
                } else {
                    checker.note(Problem::FreeOrphan { inode: pair.key });
                }
            }
            _ => return false,
        }
        true
    }
}

/// The tree of what has no content.
struct Nothing;

impl Sink for Nothing {
    fn take(&mut self, _: &mut Checker<'_>, _: &Pair) -> bool {
        false
    }
}
