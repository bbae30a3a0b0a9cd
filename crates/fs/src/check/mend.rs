//! Repairs of what one pass has found and has one right answer.
//!
//! Bitmaps and the summary come first, from what was found to have sectors; then checksums that are lost; then inodes, names and
//! lists, by the same operations over the same trees as when it is mounted. The next pass says what is left.

use std::collections::{BTreeMap, BTreeSet};

use levelhead_units::Lba;

use super::report::List;
use super::space::SUMMARIES;
use super::{Checker, Problem, WRONG_MAX};
use crate::attempt::{Attempt, Changed, Ground, RoomLeft, Stop};
use crate::cache::{Cache, Unit};
use crate::format::entry::Entry;
use crate::format::fields::FieldsMut;
use crate::format::inode::{Inode, mode};
use crate::format::superblock::Superblock;
use crate::format::unit::{BODY, HEAD, Head, Kind, Sector};
use crate::geometry::{BITS, GroupIdx, SUMS, SumPlace};
use crate::ops::directories::{check_name, kind_of};
use crate::ops::names::{Asked, NewFile};
use crate::recent::Recent;
use crate::request::{Caller, Named};
use crate::tree::Owned;

/// Units that stay in memory: 32 MiB.
const CACHED_MAX: usize = 1 << 13;

/// Reads after which an attempt is given up.
const READS_MAX: u32 = 1 << 12;

/// Where what has no name gets one.
const RESCUED: &[u8] = b"lost+found";

/// See the module.
struct Mender<'c, 'd> {
    checker: &'c mut Checker<'d>,
    cache: Cache,
    recent: Recent,
    lost: BTreeSet<Lba>,
    has_changed: bool,
}

impl Checker<'_> {
    /// Repairs what has one right answer; returns whether anything was changed.
    pub(super) fn mend(&mut self) -> bool {
        let wrong = std::mem::take(&mut self.wrong);
        if wrong.is_empty() || self.disk.trouble().is_some() {
            return false;
        }
        let mut mender = Mender {
            checker: self,
            cache: Cache::new(CACHED_MAX),
            recent: Recent::default(),
            lost: BTreeSet::new(),
            has_changed: false,
        };
        mender.mend_space(&wrong);
        mender.mend_sums(&wrong);
        // What a directory says of its parent decides which of two names stays.
        let parents = wrong.iter().filter(|problem| matches!(problem, Problem::Parent { .. }));
        for problem in parents {
            mender.mend_one(problem);
        }
        for problem in &wrong {
            mender.mend_one(problem);
        }
        mender.has_changed
    }
}

impl Mender<'_, '_> {
    /// Bitmaps and summary: what was found to have sectors, and, while not everything is known, what was taken before.
    fn mend_space(&mut self, wrong: &[Problem]) {
        let geometry = self.checker.superblock.geometry;
        let mut groups: BTreeSet<GroupIdx> = BTreeSet::new();
        for problem in wrong {
            match *problem {
                Problem::Free(extent) | Problem::Leaked(extent) => {
                    groups.insert(geometry.group_of(extent.lba));
                }
                Problem::Summary { group, .. } => {
                    groups.insert(group);
                }
                Problem::UnitLost { lead, kind: Kind::Bitmap, .. }
                | Problem::UnitWrong { lead, kind: Kind::Bitmap, .. } => {
                    groups.insert(geometry.group_of(lead));
                }
                Problem::UnitLost { kind: Kind::Summary, .. }
                | Problem::UnitWrong { kind: Kind::Summary, .. } => {
                    let all = (0..geometry.groups()).map(GroupIdx);
                    groups.extend(
                        all.filter(|&group| !self.checker.is_summed_up(geometry.group(group).lba)),
                    );
                }
                _ => {}
            }
        }
        let mut free: BTreeMap<GroupIdx, u32> = BTreeMap::new();
        for group in groups {
            if let Some(says) = self.mend_bitmaps(group) {
                free.insert(group, says);
            }
        }
        self.mend_summary(&free);
    }

    /// Returns what the summary has to say of a group; nothing if that is not known.
    fn mend_bitmaps(&mut self, group: GroupIdx) -> Option<u32> {
        let geometry = self.checker.superblock.geometry;
        let used = self.checker.walk.used.group(group).to_vec();
        let leads: Vec<Lba> = geometry.bitmaps(group).collect();
        let old: Vec<Option<Vec<u64>>> =
            (0..leads.len() as u64).map(|at| self.checker.bitmap(group, at)).collect();
        let all = 0..geometry.group(group).sectors.get();
        let first = geometry.group(group).lba;
        let is_untouched = old.iter().all(Option::is_none)
            && !all.clone().any(|offset| {
                let lba = first + levelhead_units::Sectors::new(offset);
                super::marks::is_set(&used, offset) && !crate::space::is_reserved(&geometry, lba)
            });
        if is_untouched {
            return Some(0);
        }
        let mut free = 0;
        let per = (BITS / 64) as usize;
        for ((at, &lead), old) in (0..).zip(&leads).zip(&old) {
            let mut bits: Vec<u64> = used.iter().skip(at * per).take(per).copied().collect();
            bits.resize(per, 0);
            match (old, self.checker.is_known) {
                (_, true) => {}
                (Some(old), false) => {
                    bits.iter_mut().zip(old).for_each(|(bits, old)| *bits |= old);
                }
                // Nothing is freed that something may have (CK3).
                (None, false) => return None,
            }
            let range = geometry.bits_of(group, at as u64);
            free += range.filter(|offset| !super::marks::is_set(&bits, offset % BITS)).count();
            if old.as_ref() != Some(&bits) {
                let body: Vec<u8> = bits.iter().flat_map(|word| word.to_le_bytes()).collect();
                self.write_body(lead, Kind::Bitmap, &body);
            }
        }
        Some(free as u32 + 1)
    }

    fn mend_summary(&mut self, free: &BTreeMap<GroupIdx, u32>) {
        for (lead, unit) in self.checker.summary_leads().into_iter().zip(0..) {
            let groups = GroupIdx(unit * SUMMARIES)..GroupIdx((unit + 1) * SUMMARIES);
            let mut says = free.range(groups).peekable();
            if says.peek().is_none() {
                continue;
            }
            let known = self.checker.read_quietly(lead, Kind::Summary);
            let mut body = known.as_ref().map_or(vec![0; BODY], |bytes| bytes[HEAD..].to_vec());
            for (group, &says) in says {
                FieldsMut(&mut body).put_u32(4 * (group.0 % SUMMARIES) as usize, says);
            }
            if known.is_none_or(|known| known[HEAD..] != body[..]) {
                self.write_body(lead, Kind::Summary, &body);
            }
        }
    }

    /// Checksums that are lost, from what is there, where something redundant says the same; other sectors count as bad.
    fn mend_sums(&mut self, wrong: &[Problem]) {
        let mut sums: BTreeMap<Lba, Vec<u8>> = BTreeMap::new();
        for problem in wrong {
            if let Problem::UnitLost { lead, kind: Kind::Sums, .. }
            | Problem::UnitWrong { lead, kind: Kind::Sums, .. } = *problem
            {
                sums.insert(lead, vec![0; BODY]);
            }
        }
        let extents = std::mem::take(&mut self.checker.walk.unsummed_extents);
        if sums.is_empty() || extents.len() >= WRONG_MAX || !self.checker.is_known {
            return;
        }
        let geometry = self.checker.superblock.geometry;
        for extent in extents {
            for word in self.checker.read_extent(&extent) {
                let known = word.sums.iter().zip(&word.belong);
                for (&lba, (&sum, &belongs)) in word.places.iter().zip(known) {
                    let SumPlace { lead, at } = geometry.sum_of(lba);
                    let Some(body) = sums.get_mut(&lead) else { continue };
                    assert!((at as u64) < SUMS, "{at}");
                    let wrong = (sum ^ 1).max(1);
                    FieldsMut(body).put_u32(4 * at, if belongs { sum } else { wrong });
                }
            }
        }
        for (lead, body) in sums {
            self.write_body(lead, Kind::Sums, &body);
        }
    }

    fn write_body(&mut self, lead: Lba, kind: Kind, body: &[u8]) {
        let mut bytes: Sector = [0; HEAD + BODY];
        bytes[HEAD..].copy_from_slice(body);
        self.write_unit(lead, kind, 0, bytes);
    }

    fn write_unit(&mut self, lead: Lba, kind: Kind, owner: u64, mut bytes: Sector) {
        let Superblock { geometry, record, .. } = self.checker.superblock;
        let filesystem = self.checker.superblock.filesystem();
        // The transaction that comes next, which gets another name.
        Head { kind, filesystem, lba: lead, generation: record, owner }.seal(&mut bytes);
        for lba in geometry.copies_of(lead) {
            self.checker.disk.write(lba, &bytes);
            self.checker.copies_written.insert(lba);
        }
        self.checker.changed.insert(lead);
        self.has_changed = true;
    }

    /// Carries out an operation; nothing if it cannot be done.
    fn attempt<T>(&mut self, operation: impl Fn(&mut Attempt<'_>) -> Result<T, Stop>) -> Option<T> {
        for _ in 0..READS_MAX {
            let ground = Ground {
                superblock: &self.checker.superblock,
                recent: &self.recent,
                room: RoomLeft::default(),
                cache: &mut self.cache,
                lost: &self.lost,
            };
            let mut attempt = Attempt::new(ground);
            let brought = operation(&mut attempt);
            let missing = attempt.take_missing();
            match brought {
                Ok(brought) => {
                    let changed = attempt.finish();
                    self.store(changed);
                    return Some(brought);
                }
                Err(Stop::Need) if !missing.is_empty() => self.fetch(missing),
                Err(Stop::Need | Stop::Fail(_)) => return None,
            }
        }
        None
    }

    fn fetch(&mut self, missing: Vec<Lba>) {
        for lead in missing {
            let unit = self.checker.read_whole(lead);
            match unit {
                Some(unit) => self.cache.insert_read(lead, &unit.head, *unit.bytes),
                None => drop(self.lost.insert(lead)),
            }
        }
    }

    fn store(&mut self, changed: Changed) {
        for lead in changed.freed_units {
            self.cache.remove(lead);
        }
        for (lead, unit) in changed.units {
            let Unit { kind, owner, bytes } = unit.clone();
            self.write_unit(lead, kind, owner, *bytes);
            self.lost.remove(&lead);
            self.cache.insert_changed(lead, unit, 1);
            self.cache.release(lead, 1);
        }
    }

    fn edit(&mut self, number: u64, change: impl Fn(&mut Inode)) {
        self.attempt(|attempt| {
            let mut inode = attempt.inode(number)?;
            change(&mut inode);
            attempt.set_inode(number, &inode)
        });
    }

    fn mend_one(&mut self, problem: &Problem) {
        let Superblock { units, spare, damaged, .. } = self.checker.superblock;
        let number = |list| match list {
            List::Units => units,
            List::Spare => spare,
            List::Damaged => damaged,
        };
        let is_known = self.checker.is_known;
        match *problem {
            Problem::Sectors { inode, is, .. } => self.edit(inode, |inode| inode.sectors = is),
            Problem::Size { inode, is, .. } => self.edit(inode, |inode| inode.size = is),
            // Names that are lost with a node are no fewer links.
            Problem::Links { inode, is, .. } if is_known => {
                self.edit(inode, |inode| inode.links = is as u32);
            }
            Problem::Parent { inode, is, .. } => self.edit(inode, |inode| inode.parent = is),
            Problem::Count { list, is, .. } => self.edit(number(list), |inode| inode.size = is),
            Problem::Unlisted { list, key } => {
                self.attempt(|attempt| attempt.list_unit(number(list), Lba::new(key), true));
            }
            Problem::WronglyListed { list, key } => {
                self.attempt(|attempt| attempt.list_unit(number(list), Lba::new(key), false));
            }
            Problem::FreeOrphan { inode } => {
                self.attempt(|attempt| attempt.remove_orphan(inode));
            }
            Problem::ForgottenOrphan { inode } if is_known => {
                self.attempt(|attempt| attempt.add_orphan(inode));
            }
            Problem::Unreachable { inode } => self.rescue(inode),
            Problem::Dangling { directory, inode } if is_known => {
                self.remove_names(directory, inode, 0);
            }
            Problem::SecondName { inode, directory } => {
                let named_by = self.checker.walk.directories.get(&inode);
                let is_here = named_by.and_then(|found| found.named_by) == Some(directory);
                self.remove_names(directory, inode, usize::from(is_here));
            }
            Problem::Circle { inode } => {
                let named_by = self.checker.walk.directories.get(&inode);
                if let Some(directory) = named_by.and_then(|found| found.named_by) {
                    self.remove_names(directory, inode, 0);
                }
            }
            Problem::EntryType { directory, inode } => self.mend_types(directory, inode),
            Problem::Name { directory, key } => self.mend_name(directory, key),
            Problem::GroupLost { inode, .. } => {
                self.attempt(|attempt| attempt.note_damaged(inode, true));
            }
            Problem::Codeword { .. } => {
                for new in std::mem::take(&mut self.checker.comparing.anew) {
                    self.attempt(|attempt| attempt.set_sum(new.lba, Some(new.sum)));
                }
            }
            Problem::Inode { inode } | Problem::Tree { inode, .. } => self.empty_list(inode),
            Problem::Pointer { owner, .. }
            | Problem::UnitLost { kind: Kind::Node, owner, .. }
            | Problem::UnitWrong { kind: Kind::Node, owner, .. } => self.empty_list(owner),
            _ => {}
        }
    }

    /// A list of the filesystem's own is made anew by the passes that follow.
    fn empty_list(&mut self, number: u64) {
        if !self.checker.superblock.own_inodes().contains(&number) {
            return;
        }
        let now = self.checker.options.now;
        self.attempt(|attempt| {
            let known = attempt.get_inode(number).ok();
            let mut list = Inode::new(mode::FILE, now);
            list.links = 1;
            list.size = known.map_or(0, |known| known.size);
            attempt.set_inode(number, &list)
        });
    }

    /// All names of a directory that satisfy something, with their keys.
    fn names(
        &mut self,
        directory: u64,
        is_wanted: impl Fn(u64, &Entry) -> bool,
    ) -> Vec<(u64, Entry)> {
        let (mut found, mut from) = (Vec::new(), 0);
        loop {
            let page = self.attempt(|attempt| {
                let inode = attempt.directory(directory)?;
                attempt.tree_from(directory, &inode, from)
            });
            let Some(last) = page.as_ref().and_then(|page| page.last()) else { return found };
            from = last.key + 1;
            for pair in page.unwrap_or_default() {
                let entry = Entry::decode(&pair.value);
                found.extend(
                    entry.filter(|entry| is_wanted(pair.key, entry)).map(|entry| (pair.key, entry)),
                );
            }
        }
    }

    /// Takes names of an inode away, but for some.
    fn remove_names(&mut self, directory: u64, inode: u64, kept: usize) {
        let now = self.checker.options.now;
        for (key, _) in
            self.names(directory, |_, entry| entry.inode == inode).into_iter().skip(kept)
        {
            self.attempt(|attempt| {
                let mut inode = attempt.directory(directory)?;
                attempt.leave(directory, &mut inode, key, now)
            });
        }
    }

    /// Names say the type of their inode.
    fn mend_types(&mut self, directory: u64, inode: u64) {
        for (key, entry) in self.names(directory, |_, entry| entry.inode == inode) {
            self.attempt(|attempt| {
                let kind = kind_of(&attempt.inode(inode)?);
                let mut parent = attempt.directory(directory)?;
                let value = Entry { kind, ..entry.clone() }.encode();
                attempt.tree_insert(
                    &mut Owned { number: directory, inode: &mut parent },
                    key,
                    value,
                )?;
                attempt.set_inode(directory, &parent)
            });
        }
    }

    /// A name that lies where it is not looked for comes where it is; one that cannot be, or is there twice, becomes another one.
    fn mend_name(&mut self, directory: u64, key: u64) {
        let now = self.checker.options.now;
        let Some((_, entry)) = self.names(directory, |at, _| at == key).pop() else { return };
        self.attempt(|attempt| {
            let mut parent = attempt.directory(directory)?;
            attempt.leave(directory, &mut parent, key, now)?;
            let mut entry = entry.clone();
            let is_taken = check_name(&entry.name).is_err()
                || attempt.find_entry(directory, &parent, &entry.name)?.is_some();
            if is_taken {
                entry.name = format!("#{key}").into_bytes();
            }
            attempt.enter(directory, &mut parent, &entry, now)
        });
    }

    /// An inode without a name gets one.
    fn rescue(&mut self, number: u64) {
        let (root, now) = (self.checker.superblock.root, self.checker.options.now);
        let asked = Asked { caller: Caller { uid: 0, gid: 0 }, now };
        self.attempt(|attempt| {
            let top = attempt.directory(root)?;
            let home = match attempt.find_entry(root, &top, RESCUED)? {
                Some(found) => match attempt.directory(found.entry.inode) {
                    Ok(_) => found.entry.inode,
                    Err(Stop::Need) => return Err(Stop::Need),
                    Err(Stop::Fail(_)) => root,
                },
                None => {
                    let named = Named { parent: root, name: RESCUED.to_vec() };
                    let inode = Inode::new(mode::DIRECTORY | 0o700, now);
                    let new = NewFile { inode, umask: 0 };
                    attempt.make(&named, &new, asked)?.inode
                }
            };
            let mut inode = attempt.inode(number)?;
            let mut directory = attempt.directory(home)?;
            match inode.is_directory() {
                true => directory.links = directory.links.saturating_add(1),
                false => inode.links = 1,
            }
            attempt.set_inode(number, &inode)?;
            let name = format!("#{number}").into_bytes();
            let entry = Entry { inode: number, kind: kind_of(&inode), name };
            attempt.enter(home, &mut directory, &entry, now)?;
            attempt.set_parent(number, home, now)
        });
    }
}

/// Carries out an operation on a disk whose filesystem is not mounted.
#[cfg(test)]
pub(super) fn attempt_over<T>(
    disk: &mut levelhead_block::Memory,
    superblock: &Superblock,
    operation: impl Fn(&mut Attempt<'_>) -> Result<T, Stop>,
) -> Option<T> {
    let options = super::CheckOptions::new(levelhead_erasure::Kernel::best());
    let (report, mut on_step) = (super::Report::default(), |_| {});
    let mut checker = Checker::new(disk, superblock.clone(), options, report, &mut on_step);
    let mut mender = Mender {
        checker: &mut checker,
        cache: Cache::new(CACHED_MAX),
        recent: Recent::default(),
        lost: BTreeSet::new(),
        has_changed: false,
    };
    let brought = mender.attempt(operation);
    checker.disk.flush();
    brought
}
