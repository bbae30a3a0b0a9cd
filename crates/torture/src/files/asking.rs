//! What is asked of a filesystem, and what the answers have to be.

use std::collections::BTreeMap;

use levelhead_fs::format::inode::mode;
use levelhead_fs::{
    Allocation, Answer, Attributes, Changes, Errno, Named as FsNamed, Removed, ScrubParts,
    ScrubPlace, Scrubbed, Setting, What,
};
use levelhead_units::Nanos;

use super::Files;
use super::asked::{About, Asked, short};
use super::content::stamped;
use super::machine::Machine;
use super::model::Found;
use super::names::{At, Change, Id, Kind, Looks, Node};
use super::op::{Op, Range, Spot};

/// Bytes of names and attributes that one listing brings.
const LISTED: usize = 4_000;

impl Machine {
    /// Whether a request that is under way names it.
    fn is_used(&self, id: Id) -> bool {
        self.asked.values().any(|asked| asked.uses.contains(&id))
    }

    /// Whether a part of a file is being given or losing its room, which other writes must not meet: what is then seen between its
    /// steps is in no state of the model.
    fn is_allocating(&self, of: Id) -> bool {
        let is_its = |about: &About| matches!(about, About::Allocate { id, .. } if *id == of);
        self.asked.values().any(|asked| is_its(&asked.what))
    }

    fn is_changing(&self, of: Id) -> bool {
        let is_its = |about: &About| match about {
            About::Write { id, .. } | About::Truncate { id, .. } | About::Allocate { id, .. } => {
                *id == of
            }
            About::Change(_) | About::Open(_) | About::Read { .. } | About::Sync(_) => false,
        };
        self.asked.values().any(|asked| is_its(&asked.what))
    }

    /// A directory of those that the caller knows.
    fn directory(&self, which: u8) -> Id {
        let names = self.model.names();
        let all: Vec<Id> =
            names.ids().filter(|&id| names.is_directory(id) && self.model.is_held(id)).collect();
        all[usize::from(which) % all.len()]
    }

    fn at(&self, spot: Spot) -> At {
        let name = format!("n{}", spot.name).into_bytes();
        At { parent: self.directory(spot.directory), name }
    }

    /// A file that the caller knows.
    fn file(&self, which: u8) -> Option<Id> {
        let names = self.model.names();
        let all: Vec<Id> =
            names.ids().filter(|&id| names.is_file(id) && self.model.is_held(id)).collect();
        (!all.is_empty()).then(|| all[usize::from(which) % all.len()])
    }

    fn inode(&self, id: Id) -> u64 {
        self.model.names().get(id).expect("it is there").inode
    }

    fn named(&self, at: &At) -> FsNamed {
        FsNamed { parent: self.inode(at.parent), name: at.name.clone() }
    }

    /// Sends what an operation is; nothing where it makes no sense now.
    pub(crate) fn send(&mut self, op: Op) {
        if let Op::Wait(seconds) = op {
            self.told.push(format!("{seconds} s pass"));
            return self.wait(Nanos::from_secs(seconds.into()));
        }
        if let Op::Close { file } = op {
            return self.close(file);
        }
        let Some(Sending { what, about, uses }) = self.resolve(op) else { return };
        self.told.push(short(&what));
        self.ask(what, Some(Asked { what: about, uses }));
    }

    fn close(&mut self, file: u8) {
        let Some(id) = self.file(file).filter(|&id| !self.is_used(id)) else { return };
        let count = self.model.held[&id];
        let what = What::Forget { inode: self.inode(id), count };
        self.told.push(short(&what));
        self.model.release(id);
        self.ask(what, None);
    }

    /// Nothing is under way, and the caller knows nothing any more.
    pub(crate) fn forget_all(&mut self) {
        for (id, count) in self.model.held.clone() {
            let what = What::Forget { inode: self.inode(id), count };
            self.model.release(id);
            self.ask(what, None);
        }
    }

    fn resolve(&mut self, op: Op) -> Option<Sending> {
        let change = |what: What, change: Change, uses: Vec<Id>| {
            Some(Sending { what, about: About::Change(change), uses })
        };
        match op {
            Op::Create(spot) | Op::MakeDirectory(spot) | Op::MakeLink { at: spot, .. } => {
                let at = self.at(spot);
                let (name, id, uses) = (self.named(&at), self.model.new_id(), vec![at.parent]);
                let (kind, permissions, what) = match op {
                    Op::MakeDirectory(_) => {
                        let kind = Kind::Directory(BTreeMap::new());
                        let mode = mode::DIRECTORY | 0o755;
                        (kind, 0o755, What::Make { name, mode, umask: 0, device: 0 })
                    }
                    Op::MakeLink { count, .. } => {
                        let target = vec![b'a' + (id.0 % 26) as u8; count.into()];
                        (Kind::Link(target.clone()), 0o777, What::MakeLink { name, target })
                    }
                    _ => {
                        let mode = mode::FILE | 0o644;
                        (Kind::File, 0o644, What::Make { name, mode, umask: 0, device: 0 })
                    }
                };
                let extended = BTreeMap::new();
                let node = Node { inode: 0, generation: 0, mode: permissions, extended, kind };
                change(what, Change::Make { at, id, node }, uses)
            }
            Op::Link { file, at } => {
                let (id, at) = (self.file(file)?, self.at(at));
                let uses = vec![id, at.parent];
                let what = What::Link { inode: self.inode(id), name: self.named(&at) };
                change(what, Change::Link { id, at }, uses)
            }
            Op::Rename { from, to, mode } => {
                let (from, to) = (self.at(from), self.at(to));
                let uses = vec![from.parent, to.parent];
                let what = What::Rename { from: self.named(&from), to: self.named(&to), mode };
                change(what, Change::Rename { from, to, mode }, uses)
            }
            Op::Remove(spot) => {
                let at = self.at(spot);
                let names = self.model.names();
                let is_directory = names.find(&at).is_some_and(|id| names.is_directory(id));
                let uses = vec![at.parent];
                let what = if is_directory { Removed::Directory } else { Removed::File };
                let what = What::Remove { name: self.named(&at), what };
                change(what, Change::Remove { at, is_directory }, uses)
            }
            Op::Open(spot) => {
                let at = self.at(spot);
                let uses = vec![at.parent];
                Some(Sending { what: What::Lookup(self.named(&at)), about: About::Open(at), uses })
            }
            Op::SetExtended { file, name, count } => {
                let id = self.file(file)?;
                self.stamp += 1;
                let value = stamped(self.stamp, Range { offset: 0, count: count.into() });
                let (inode, name) = (self.inode(id), format!("user.x{name}").into_bytes());
                let what = What::SetExtended {
                    inode,
                    name: name.clone(),
                    value: value.clone(),
                    mode: Setting::Any,
                };
                change(what, Change::SetExtended { id, name, value }, vec![id])
            }
            Op::RemoveExtended { file, name } => {
                let id = self.file(file)?;
                let (inode, name) = (self.inode(id), format!("user.x{name}").into_bytes());
                let what = What::RemoveExtended { inode, name: name.clone() };
                change(what, Change::RemoveExtended { id, name }, vec![id])
            }
            Op::Mode { file, mode } => {
                let (id, mode) = (self.file(file)?, u32::from(mode));
                let changes = Changes { mode: Some(mode), ..Changes::default() };
                let what = What::SetAttributes { inode: self.inode(id), changes };
                change(what, Change::Mode { id, mode }, vec![id])
            }
            Op::Write { .. }
            | Op::Append { .. }
            | Op::Truncate { .. }
            | Op::Allocate { .. }
            | Op::Read { .. }
            | Op::Sync { .. } => self.resolve_of_file(op),
            Op::SyncAll => {
                let about = About::Sync(self.model.mark(None));
                Some(Sending { what: What::Sync { inode: None }, about, uses: Vec::new() })
            }
            Op::Close { .. } | Op::Wait(_) => unreachable!("they are no requests"),
        }
    }

    fn resolve_of_file(&mut self, op: Op) -> Option<Sending> {
        let (Op::Write { file, .. }
        | Op::Append { file, .. }
        | Op::Truncate { file, .. }
        | Op::Allocate { file, .. }
        | Op::Read { file, .. }
        | Op::Sync { file }) = op
        else {
            unreachable!("it is about a file")
        };
        let id = self.file(file)?;
        let inode = self.inode(id);
        let (what, about) = match op {
            Op::Write { .. } | Op::Append { .. } | Op::Truncate { .. }
                if self.is_allocating(id) =>
            {
                return None;
            }
            Op::Allocate { .. } if self.is_changing(id) => return None,
            Op::Write { range, .. } => {
                self.stamp += 1;
                let (stamp, bytes) = (self.stamp, stamped(self.stamp, range));
                let what = What::Write { inode, offset: range.offset, bytes, appends: false };
                (what, About::Write { id, range, stamp, appends: false })
            }
            Op::Append { count, .. } => {
                self.stamp += 1;
                let (stamp, range) = (self.stamp, Range { offset: 0, count });
                let bytes = stamped(stamp, range);
                let what = What::Write { inode, offset: 0, bytes, appends: true };
                (what, About::Write { id, range, stamp, appends: true })
            }
            Op::Truncate { size, .. } => {
                let changes = Changes { size: Some(size), ..Changes::default() };
                (What::SetAttributes { inode, changes }, About::Truncate { id, size })
            }
            Op::Allocate { range, how, .. } => {
                let Range { offset, count } = range;
                let history = self.model.contents.get_mut(&id)?;
                history.begin(|state| allocate(state, range, how));
                (What::Allocate { inode, offset, count, how }, About::Allocate { id, range, how })
            }
            Op::Read { range, .. } => {
                let mark = self.model.contents.get(&id)?.mark();
                let (offset, count) = (range.offset, range.count as u32);
                (What::Read { inode, offset, count }, About::Read { id, range, mark })
            }
            Op::Sync { .. } => {
                (What::Sync { inode: Some(inode) }, About::Sync(self.model.mark(Some(id))))
            }
            _ => unreachable!("it is about a file"),
        };
        Some(Sending { what, about, uses: vec![id] })
    }

    /// An answer has come.
    pub(super) fn answered(&mut self, asked: Asked, answer: &Answer) {
        if let Err(how) = self.compare(asked.what, answer) {
            self.note_broken(how);
        }
    }

    fn compare(&mut self, about: About, answer: &Answer) -> Result<(), String> {
        let has_failed = matches!(answer, Answer::Failed(_));
        if *answer == Answer::Failed(Errno::NoSpace) && self.may_lack_room(&about) {
            return Ok(());
        }
        match about {
            About::Change(mut change) => {
                let mut known = None;
                match (&mut change, answer) {
                    (Change::Make { id, node, .. }, Answer::Entry(attributes)) => {
                        (node.inode, node.generation) = (attributes.inode, attributes.generation);
                        known = Some(*id);
                    }
                    (Change::Link { id, .. }, Answer::Entry(_)) => known = Some(*id),
                    _ => {}
                }
                // It is known before anything without names goes.
                known.into_iter().for_each(|id| self.model.hold(id));
                let can = self.model.change(&change);
                if can == has_failed {
                    return Err(format!("{change:?} is answered with {answer:?}"));
                }
                Ok(())
            }
            About::Open(at) => {
                let found = self.model.names().find(&at);
                match (found, answer) {
                    (None, Answer::Failed(_)) => Ok(()),
                    (Some(id), Answer::Entry(attributes)) if attributes.inode == self.inode(id) => {
                        self.model.hold(id);
                        Ok(())
                    }
                    (found, answer) => Err(format!("{at:?} is {found:?} and not {answer:?}")),
                }
            }
            About::Write { id, range, stamp, appends } => {
                if *answer != Answer::Written(range.count as u32) {
                    return Err(format!("a write of {range:?} is answered with {answer:?}"));
                }
                self.change_content(id, |state| {
                    let offset = if appends { state.size } else { range.offset };
                    state.write(offset, &stamped(stamp, range));
                });
                Ok(())
            }
            About::Truncate { id, size } => {
                if has_failed {
                    return Err(format!("a size of {size} is answered with {answer:?}"));
                }
                self.change_content(id, |state| state.resize(size));
                Ok(())
            }
            About::Allocate { id, range, how } => {
                if has_failed {
                    return Err(format!("{how:?} of {range:?} is answered with {answer:?}"));
                }
                if let Some(history) = self.model.contents.get_mut(&id) {
                    history.end();
                }
                Ok(())
            }
            About::Read { id, range, mark } => {
                let Answer::Bytes(bytes) = answer else {
                    return Err(format!("a read of {range:?} is answered with {answer:?}"));
                };
                let Some(history) = self.model.contents.get(&id) else { return Ok(()) };
                history.allows_read(mark, range, bytes).map_err(|how| format!("a read: {how}"))
            }
            About::Sync(mark) => {
                if *answer != Answer::Done {
                    return Err(format!("a sync is answered with {answer:?}"));
                }
                self.model.keep(&mark);
                Ok(())
            }
        }
    }

    /// Whether something may have failed because the disk is full: then nothing has changed. What was written had room.
    fn may_lack_room(&self, about: &About) -> bool {
        self.start.files == Files::OnFullDisk
            && match about {
                About::Change(_) | About::Write { .. } | About::Truncate { .. } => true,
                About::Allocate { .. } | About::Open(_) | About::Read { .. } | About::Sync(_) => {
                    false
                }
            }
    }

    fn change_content(&mut self, id: Id, change: impl FnOnce(&mut super::content::State)) {
        if let Some(history) = self.model.contents.get_mut(&id) {
            history.change(change);
        }
    }

    /// Looks at everything that has a name.
    pub(crate) fn walk(&mut self) -> Result<Found, String> {
        let mut found = Found::default();
        let mut left = vec![(self.fs.root(), Vec::new())];
        while let Some((inode, path)) = left.pop() {
            for (name, attributes) in self.list(inode)? {
                let path: Vec<u8> = [&path[..], b"/", &name[..]].concat();
                let looks = self.look(&attributes)?;
                match attributes.mode & mode::TYPE {
                    mode::DIRECTORY => left.push((attributes.inode, path.clone())),
                    mode::FILE => {
                        let bytes = self.read_all(&attributes)?;
                        found.contents.insert(path.clone(), bytes);
                    }
                    _ => {}
                }
                found.looks.insert(path, looks);
            }
        }
        self.is_good()?;
        Ok(found)
    }

    /// Reads everything that is in use, and writes anew what is bad of it.
    pub(crate) fn scrub(&mut self) -> Result<(), String> {
        let mut next = Some(ScrubPlace::FIRST);
        while let Some(place) = next {
            match self.run(What::Scrub { place, parts: ScrubParts::ALL })? {
                Answer::Scrubbed(Scrubbed { lost: 0, next: then, .. }) => next = then,
                other => return Err(format!("a step of a scrub at {place:?}: {other:?}")),
            }
        }
        self.is_good()
    }

    fn list(&mut self, inode: u64) -> Result<Vec<(Vec<u8>, Attributes)>, String> {
        let (mut all, mut after) = (Vec::new(), 0);
        loop {
            let what = What::ReadDirectory { inode, after, room: LISTED, with_attributes: true };
            let entries = match self.run(what)? {
                Answer::Entries(entries) => entries,
                other => return Err(format!("a directory is listed with {other:?}")),
            };
            let Some(last) = entries.last() else { return Ok(all) };
            after = last.cookie;
            let known =
                entries.into_iter().filter_map(|entry| Some((entry.name, entry.attributes?)));
            all.extend(known);
        }
    }

    fn look(&mut self, attributes: &Attributes) -> Result<Looks, String> {
        let &Attributes { inode, generation, links, mode: known, .. } = attributes;
        let kind = known & mode::TYPE;
        let target = match kind == mode::LINK {
            true => Some(self.bytes(What::ReadLink(inode))?),
            false => None,
        };
        let mut extended = BTreeMap::new();
        let names = self.bytes(What::ListExtended(inode))?;
        for name in names.split(|&byte| byte == 0).filter(|name| !name.is_empty()) {
            if name == b"user.levelhead.kind" {
                continue; // What is changed becomes mutable by itself.
            }
            let value = self.bytes(What::GetExtended { inode, name: name.to_vec() })?;
            extended.insert(name.to_vec(), value);
        }
        let is_directory = kind == mode::DIRECTORY;
        let mode = known & mode::PERMISSIONS;
        Ok(Looks { inode, generation, links, mode, is_directory, target, extended })
    }

    fn read_all(&mut self, attributes: &Attributes) -> Result<Vec<u8>, String> {
        let (inode, count) = (attributes.inode, attributes.size as u32 + 1);
        let bytes = self.bytes(What::Read { inode, offset: 0, count })?;
        match bytes.len() as u64 == attributes.size {
            true => Ok(bytes),
            false => Err(format!("{} bytes of a file of {}", bytes.len(), attributes.size)),
        }
    }

    fn bytes(&mut self, what: What) -> Result<Vec<u8>, String> {
        let text = short(&what);
        match self.run(what)? {
            Answer::Bytes(bytes) => Ok(bytes),
            other => Err(format!("{text} is answered with {other:?}")),
        }
    }
}

/// What is sent for an operation.
struct Sending {
    what: What,
    about: About,
    uses: Vec<Id>,
}

/// What becomes of a file's bytes.
fn allocate(state: &mut super::content::State, range: Range, how: Allocation) {
    let end = range.offset + range.count;
    match how {
        Allocation::Keep => {}
        Allocation::Extend => state.resize(state.size.max(end)),
        Allocation::Punch | Allocation::ZeroKeep => state.zero(range.offset, end),
        Allocation::Zero => {
            state.zero(range.offset, end);
            state.resize(state.size.max(end));
        }
    }
}
