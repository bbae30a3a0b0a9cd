//! What names, directories and attributes there are, in plain memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use levelhead_fs::Renaming;

/// A file, directory or link of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Id(pub(crate) u32);

/// The root directory.
pub(crate) const ROOT: Id = Id(0);

/// A name in a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct At {
    pub(crate) parent: Id,
    pub(crate) name: Vec<u8>,
}

/// What is known of one of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) inode: u64,
    pub(crate) generation: u32,
    /// Its permissions.
    pub(crate) mode: u32,
    pub(crate) extended: BTreeMap<Vec<u8>, Vec<u8>>,
    pub(crate) kind: Kind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    File,
    Directory(BTreeMap<Vec<u8>, Id>),
    Link(Vec<u8>),
}

/// A change of names or attributes.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    Make { at: At, id: Id, node: Node },
    Link { id: Id, at: At },
    Rename { from: At, to: At, mode: Renaming },
    Remove { at: At, is_directory: bool },
    SetExtended { id: Id, name: Vec<u8>, value: Vec<u8> },
    RemoveExtended { id: Id, name: Vec<u8> },
    Mode { id: Id, mode: u32 },
}

/// See the module. A clone shares its nodes.
#[derive(Clone, Debug)]
pub(crate) struct Names {
    nodes: BTreeMap<Id, Arc<Node>>,
}

/// What a walk over a filesystem sees of something with a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Looks {
    pub(crate) inode: u64,
    pub(crate) generation: u32,
    pub(crate) links: u32,
    pub(crate) mode: u32,
    pub(crate) is_directory: bool,
    /// Of a link what it says.
    pub(crate) target: Option<Vec<u8>>,
    pub(crate) extended: BTreeMap<Vec<u8>, Vec<u8>>,
}

/// One of the model and how it looks.
#[derive(Clone, Debug)]
pub(crate) struct Named {
    pub(crate) id: Id,
    pub(crate) looks: Looks,
}

impl Names {
    /// A root directory alone.
    pub(crate) fn new(inode: u64, generation: u32) -> Self {
        let (mode, extended) = (0o755, BTreeMap::new());
        let kind = Kind::Directory(BTreeMap::new());
        let root = Node { inode, generation, mode, extended, kind };
        Self { nodes: BTreeMap::from([(ROOT, Arc::new(root))]) }
    }

    pub(crate) fn get(&self, id: Id) -> Option<&Node> {
        self.nodes.get(&id).map(|node| &**node)
    }

    fn change(&mut self, id: Id) -> Option<&mut Node> {
        self.nodes.get_mut(&id).map(Arc::make_mut)
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = Id> {
        self.nodes.keys().copied()
    }

    /// It is there no more.
    pub(crate) fn drop(&mut self, id: Id) {
        self.nodes.remove(&id);
    }

    fn entries(&self, id: Id) -> Option<&BTreeMap<Vec<u8>, Id>> {
        match &self.get(id)?.kind {
            Kind::Directory(entries) => Some(entries),
            Kind::File | Kind::Link(_) => None,
        }
    }

    fn entries_mut(&mut self, id: Id) -> &mut BTreeMap<Vec<u8>, Id> {
        match self.change(id).map(|node| &mut node.kind) {
            Some(Kind::Directory(entries)) => entries,
            other => panic!("{id:?} is not a directory: {other:?}"),
        }
    }

    pub(crate) fn is_directory(&self, id: Id) -> bool {
        self.entries(id).is_some()
    }

    pub(crate) fn is_file(&self, id: Id) -> bool {
        self.get(id).is_some_and(|node| node.kind == Kind::File)
    }

    /// What has a name.
    pub(crate) fn find(&self, at: &At) -> Option<Id> {
        self.entries(at.parent)?.get(&at.name).copied()
    }

    /// How many names it has.
    pub(crate) fn links(&self, id: Id) -> u32 {
        let of = |node: &Arc<Node>| match &node.kind {
            Kind::Directory(entries) => entries.values().filter(|&&other| other == id).count(),
            Kind::File | Kind::Link(_) => 0,
        };
        self.nodes.values().map(of).sum::<usize>() as u32
    }

    /// A directory in which something can be made.
    fn has_room(&self, id: Id) -> bool {
        self.is_directory(id) && (id == ROOT || self.links(id) > 0)
    }

    /// Whether a directory is another one or lies in it.
    fn is_below(&self, id: Id, other: Id) -> bool {
        if id == other {
            return true;
        }
        let parent = |id: Id| {
            let has = |(_, node): &(&Id, &Arc<Node>)| match &node.kind {
                Kind::Directory(entries) => entries.values().any(|&entry| entry == id),
                Kind::File | Kind::Link(_) => false,
            };
            self.nodes.iter().find(has).map(|(&parent, _)| parent)
        };
        parent(id).is_some_and(|parent| self.is_below(parent, other))
    }

    /// Carries out a change, if it can be; returns whether it can.
    pub(crate) fn apply(&mut self, change: &Change) -> bool {
        match change {
            Change::Make { at, id, node } => {
                let can = self.has_room(at.parent) && self.find(at).is_none();
                if can {
                    self.nodes.insert(*id, Arc::new(node.clone()));
                    self.entries_mut(at.parent).insert(at.name.clone(), *id);
                }
                can
            }
            Change::Link { id, at } => {
                let can = self.has_room(at.parent)
                    && self.find(at).is_none()
                    && !self.is_directory(*id)
                    && self.links(*id) > 0;
                if can {
                    self.entries_mut(at.parent).insert(at.name.clone(), *id);
                }
                can
            }
            Change::Rename { from, to, mode } => self.rename(from, to, *mode),
            Change::Remove { at, is_directory } => {
                let Some(id) = self.find(at) else { return false };
                let can = match self.entries(id) {
                    Some(entries) => *is_directory && entries.is_empty(),
                    None => !*is_directory,
                };
                if can {
                    self.entries_mut(at.parent).remove(&at.name);
                }
                can
            }
            Change::SetExtended { id, name, value } => {
                let Some(node) = self.change(*id) else { return false };
                node.extended.insert(name.clone(), value.clone());
                true
            }
            Change::RemoveExtended { id, name } => {
                self.change(*id).is_some_and(|node| node.extended.remove(name).is_some())
            }
            Change::Mode { id, mode } => {
                let Some(node) = self.change(*id) else { return false };
                node.mode = *mode;
                true
            }
        }
    }

    fn rename(&mut self, from: &At, to: &At, mode: Renaming) -> bool {
        let (Some(moved), true) = (self.find(from), self.has_room(to.parent)) else { return false };
        if self.is_directory(moved) && self.is_below(to.parent, moved) {
            return false;
        }
        let replaced = self.find(to);
        match (mode, replaced) {
            (Renaming::Keep, Some(_)) | (Renaming::Exchange, None) => return false,
            (_, Some(other)) if other == moved => return true,
            (Renaming::Exchange, Some(other)) => {
                if self.is_directory(other) && self.is_below(from.parent, other) {
                    return false;
                }
                self.entries_mut(from.parent).insert(from.name.clone(), other);
                self.entries_mut(to.parent).insert(to.name.clone(), moved);
                return true;
            }
            (Renaming::Replace, Some(other)) => {
                let is_empty = self.entries(other).is_none_or(BTreeMap::is_empty);
                if self.is_directory(moved) != self.is_directory(other) || !is_empty {
                    return false;
                }
            }
            (Renaming::Replace | Renaming::Keep, None) => {}
        }
        self.entries_mut(from.parent).remove(&from.name);
        self.entries_mut(to.parent).insert(to.name.clone(), moved);
        true
    }

    /// Everything that has a name, by its path.
    pub(crate) fn paths(&self) -> BTreeMap<Vec<u8>, Named> {
        let mut all = BTreeMap::new();
        let mut left = vec![(ROOT, Vec::new())];
        while let Some((directory, path)) = left.pop() {
            for (name, &id) in self.entries(directory).into_iter().flatten() {
                let mut path: Vec<u8> = path.clone();
                path.push(b'/');
                path.extend_from_slice(name);
                let node = self.get(id).expect("what has a name is there");
                let links = match self.entries(id) {
                    Some(entries) => {
                        2 + entries.values().filter(|&&id| self.is_directory(id)).count() as u32
                    }
                    None => self.links(id),
                };
                let target = match &node.kind {
                    Kind::Link(target) => Some(target.clone()),
                    Kind::File | Kind::Directory(_) => None,
                };
                let looks = Looks {
                    inode: node.inode,
                    generation: node.generation,
                    links,
                    mode: node.mode,
                    is_directory: self.is_directory(id),
                    target,
                    extended: node.extended.clone(),
                };
                if looks.is_directory {
                    left.push((id, path.clone()));
                }
                all.insert(path, Named { id, looks });
            }
        }
        all
    }
}
