//! What a filesystem has promised: names and contents since the last sync that was answered, and what may be left of them after a cut.
//!
//! Names and attributes are as they were after some change, and not before the last one that was synced. Every page of a file is as it
//! was in some state, and not before the one that was synced last.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::content::{History, State};
use super::names::{Change, Id, Looks, Names, ROOT};

/// Up to where everything is known to be safe, should a sync that is sent now be answered.
#[derive(Clone, Debug)]
pub(crate) struct Mark {
    names: usize,
    contents: BTreeMap<Id, usize>,
}

/// What a walk has found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) looks: BTreeMap<Vec<u8>, Looks>,
    /// The bytes of files, by their paths.
    pub(crate) contents: BTreeMap<Vec<u8>, Vec<u8>>,
}

/// See the module. A clone shares nearly everything.
#[derive(Clone, Debug)]
pub(crate) struct Model {
    /// The last one is what there is now.
    past: Vec<Arc<Names>>,
    /// The first one that may be left.
    floor: usize,
    pub(crate) contents: BTreeMap<Id, History>,
    /// How often the caller knows each.
    pub(crate) held: BTreeMap<Id, u64>,
    id_last: u32,
}

impl Model {
    /// An empty root directory.
    pub(crate) fn new(root: u64, generation: u32) -> Self {
        let past = vec![Arc::new(Names::new(root, generation))];
        let (contents, held) = Default::default();
        Self { past, floor: 0, contents, held, id_last: ROOT.0 }
    }

    pub(crate) fn names(&self) -> &Names {
        self.past.last().expect("there is one")
    }

    pub(crate) fn new_id(&mut self) -> Id {
        self.id_last += 1;
        Id(self.id_last)
    }

    /// A change was answered; returns whether it could be carried out.
    pub(crate) fn change(&mut self, change: &Change) -> bool {
        let mut names = self.names().clone();
        if !names.apply(change) {
            return false;
        }
        if let Change::Make { id, .. } = change
            && names.is_file(*id)
        {
            self.contents.insert(*id, History::new(State::default()));
        }
        self.past.push(Arc::new(names));
        self.let_go();
        true
    }

    /// The caller knows it once more.
    pub(crate) fn hold(&mut self, id: Id) {
        *self.held.entry(id).or_default() += 1;
    }

    pub(crate) fn is_held(&self, id: Id) -> bool {
        id == ROOT || self.held.get(&id).is_some_and(|&held| held > 0)
    }

    /// The caller does not know it any more.
    pub(crate) fn release(&mut self, id: Id) {
        self.held.remove(&id);
        self.let_go();
    }

    /// What has no name and is not known is there no more.
    fn let_go(&mut self) {
        let names = self.names();
        let gone: Vec<Id> = names
            .ids()
            .filter(|&id| id != ROOT && names.links(id) == 0 && !self.is_held(id))
            .collect();
        if !gone.is_empty() {
            let names = Arc::make_mut(self.past.last_mut().expect("there is one"));
            gone.into_iter().for_each(|id| names.drop(id));
        }
    }

    /// A sync is sent.
    pub(crate) fn mark(&self, of: Option<Id>) -> Mark {
        let is_meant = |id: &Id| of.is_none_or(|of| of == *id);
        let contents = self
            .contents
            .iter()
            .filter(|(id, _)| is_meant(id))
            .map(|(&id, history)| (id, history.mark()))
            .collect();
        Mark { names: self.past.len() - 1, contents }
    }

    /// It was answered.
    pub(crate) fn keep(&mut self, mark: &Mark) {
        self.floor = self.floor.max(mark.names);
        for (id, &at) in &mark.contents {
            if let Some(history) = self.contents.get_mut(id) {
                history.keep_from(at);
            }
        }
    }

    /// Whether this may be left after a cut; which of the past names it is.
    pub(crate) fn allows(&self, found: &Found) -> Result<usize, String> {
        let mut why = None;
        for (at, names) in self.past.iter().enumerate().skip(self.floor).rev() {
            match self.agrees(names, found) {
                Ok(()) => return Ok(at),
                Err(how) => why = why.or(Some(how)),
            }
        }
        let states = self.past.len() - self.floor;
        Err(format!("none of {states} states: {}", why.expect("there is a state")))
    }

    /// Whether everything is as it should be now.
    pub(crate) fn is_now(&self, found: &Found) -> Result<(), String> {
        self.agrees(self.names(), found)?;
        for (path, named) in self.names().paths() {
            if let (Some(history), Some(bytes)) =
                (self.contents.get(&named.id), found.contents.get(&path))
            {
                let all = super::op::Range { offset: 0, count: u64::MAX };
                history
                    .allows_read(history.mark(), all, bytes)
                    .map_err(|how| format!("{}: {how}", text(&path)))?;
            }
        }
        Ok(())
    }

    fn agrees(&self, names: &Names, found: &Found) -> Result<(), String> {
        let paths = names.paths();
        for path in found.looks.keys() {
            if !paths.contains_key(path) {
                return Err(format!("{} is there", text(path)));
            }
        }
        for (path, named) in &paths {
            match found.looks.get(path) {
                None => return Err(format!("{} is not there", text(path))),
                Some(looks) if *looks != named.looks => {
                    return Err(format!("{} is {looks:?} and not {:?}", text(path), named.looks));
                }
                Some(_) => {}
            }
            if let (Some(history), Some(bytes)) =
                (self.contents.get(&named.id), found.contents.get(path))
            {
                history.allows(bytes).map_err(|how| format!("{}: {how}", text(path)))?;
            }
        }
        Ok(())
    }

    /// This was left, and nothing else is from now on.
    pub(crate) fn begin_again(&mut self, at: usize, found: &Found) {
        let mut names = (*self.past[at]).clone();
        let paths = names.paths();
        let named: Vec<Id> = paths.values().map(|named| named.id).collect();
        let gone: Vec<Id> = names.ids().filter(|id| *id != ROOT && !named.contains(id)).collect();
        gone.into_iter().for_each(|id| names.drop(id));
        self.contents.clear();
        for (path, named) in paths {
            if let Some(bytes) = found.contents.get(&path) {
                self.contents.insert(named.id, History::new(State::of(bytes)));
            }
        }
        (self.past, self.floor) = (vec![Arc::new(names)], 0);
        self.held.clear();
    }

    /// The disk was left in order with this on it.
    pub(crate) fn end(&mut self, found: &Found) {
        self.begin_again(self.past.len() - 1, found);
    }

    /// How often a walk has made each known.
    pub(crate) fn hold_found(&mut self) {
        let ids: Vec<Id> = self.names().paths().into_values().map(|named| named.id).collect();
        ids.into_iter().for_each(|id| self.hold(id));
    }
}

fn text(path: &[u8]) -> String {
    String::from_utf8_lossy(path).into_owned()
}
