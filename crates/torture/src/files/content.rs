//! What a file may hold: every state that it had since it was synced last.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::op::Range;

/// Bytes of a page.
pub(crate) const PAGE: u64 = 4_096;

type Page = [u8; PAGE as usize];

static ZEROES: Page = [0; PAGE as usize];

/// A file's bytes at some moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct State {
    pub(crate) size: u64,
    /// Pages that are not all zero, by their number.
    pages: BTreeMap<u64, Arc<Page>>,
}

impl State {
    /// A file of these bytes.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        let mut state = Self::default();
        state.write(0, bytes);
        state.resize(bytes.len() as u64);
        state
    }

    fn page(&self, page: u64) -> &Page {
        self.pages.get(&page).map_or(&ZEROES, |page| page)
    }

    /// Changes a part of a page.
    fn edit(&mut self, page: u64, edit: impl FnOnce(&mut Page)) {
        let mut bytes = *self.page(page);
        edit(&mut bytes);
        match bytes == ZEROES {
            true => drop(self.pages.remove(&page)),
            false => drop(self.pages.insert(page, Arc::new(bytes))),
        }
    }

    /// Bytes into it, from an offset on.
    pub(crate) fn write(&mut self, offset: u64, bytes: &[u8]) {
        let mut at = 0;
        while at < bytes.len() {
            let place = offset + at as u64;
            let within = (place % PAGE) as usize;
            let count = (PAGE as usize - within).min(bytes.len() - at);
            let part = &bytes[at..at + count];
            self.edit(place / PAGE, |page| page[within..within + count].copy_from_slice(part));
            at += count;
        }
        self.size = self.size.max(offset + bytes.len() as u64);
    }

    /// Another size.
    pub(crate) fn resize(&mut self, size: u64) {
        let old = self.size;
        self.size = size.max(old);
        self.zero(size, old);
        self.size = size;
    }

    /// Zeroes from one byte to before another, as far as the file reaches.
    pub(crate) fn zero(&mut self, from: u64, to: u64) {
        let to = to.min(self.size);
        let mut place = from;
        while place < to {
            let within = (place % PAGE) as usize;
            let count = (PAGE - place % PAGE).min(to - place) as usize;
            self.edit(place / PAGE, |page| page[within..within + count].fill(0));
            place += count as u64;
        }
    }

    /// Whether bytes from an offset on, which lie in one page, are those of this state, and zero behind its end.
    fn holds(&self, offset: u64, bytes: &[u8]) -> bool {
        let within = (offset % PAGE) as usize;
        self.page(offset / PAGE)[within..within + bytes.len()] == *bytes
    }

    /// How many bytes a read brings.
    fn count(&self, range: Range) -> u64 {
        self.size.saturating_sub(range.offset).min(range.count)
    }
}

/// See the module. States are counted from the first one that there ever was.
#[derive(Clone, Debug)]
pub(crate) struct History {
    states: Vec<Arc<State>>,
    /// The first one that the file may have after a cut.
    floor: usize,
    /// What a change that takes several steps makes of it: until that is answered any page may be as before or as after.
    coming: Option<Arc<State>>,
}

impl History {
    pub(crate) fn new(state: State) -> Self {
        Self { states: vec![Arc::new(state)], floor: 0, coming: None }
    }

    /// The state that it has.
    pub(crate) fn now(&self) -> &State {
        self.states.last().expect("there is one")
    }

    /// Which state that is.
    pub(crate) fn mark(&self) -> usize {
        self.states.len() - 1
    }

    /// It is changed.
    pub(crate) fn change(&mut self, change: impl FnOnce(&mut State)) {
        let mut state = self.now().clone();
        change(&mut state);
        self.states.push(Arc::new(state));
    }

    /// It is going to be changed.
    pub(crate) fn begin(&mut self, change: impl FnOnce(&mut State)) {
        let mut state = self.now().clone();
        change(&mut state);
        self.coming = Some(Arc::new(state));
    }

    /// It is changed.
    pub(crate) fn end(&mut self) {
        self.states.extend(self.coming.take());
    }

    /// What it was before this state it is not any more after a cut.
    pub(crate) fn keep_from(&mut self, mark: usize) {
        self.floor = self.floor.max(mark);
    }

    /// Whether it may have these bytes after a cut: each page as some state has it. A write of many pages may be there in part: then the
    /// file ends with a page between two of its sizes.
    pub(crate) fn allows(&self, bytes: &[u8]) -> Result<(), String> {
        let count = bytes.len() as u64;
        let sizes = || self.states[self.floor..].iter().chain(&self.coming).map(|state| state.size);
        let is_between = sizes().any(|size| size < count) && sizes().any(|size| size > count);
        if !(sizes().any(|size| size == count) || is_between && count.is_multiple_of(PAGE)) {
            return Err(format!("{count} bytes and not {:?}", sizes().collect::<Vec<u64>>()));
        }
        self.allows_pages(self.floor, Range { offset: 0, count }, bytes)
    }

    /// Whether a read may bring these bytes that was sent in some state.
    pub(crate) fn allows_read(
        &self,
        mark: usize,
        range: Range,
        bytes: &[u8],
    ) -> Result<(), String> {
        let states: Vec<&Arc<State>> = self.states[mark..].iter().chain(&self.coming).collect();
        let count = bytes.len() as u64;
        if !states.iter().any(|state| state.count(range) == count) {
            let counts: Vec<u64> = states.iter().map(|state| state.count(range)).collect();
            return Err(format!("{count} bytes and not {counts:?}"));
        }
        self.allows_pages(mark, range, bytes)
    }

    fn allows_pages(&self, mark: usize, range: Range, bytes: &[u8]) -> Result<(), String> {
        let states: Vec<&Arc<State>> = self.states[mark..].iter().chain(&self.coming).collect();
        let mut at = 0;
        while at < bytes.len() {
            let offset = range.offset + at as u64;
            let count = ((PAGE - offset % PAGE) as usize).min(bytes.len() - at);
            let part = &bytes[at..at + count];
            if !states.iter().any(|state| state.holds(offset, part)) {
                let was = self.states[..mark].iter().rposition(|state| state.holds(offset, part));
                let was = match was {
                    Some(at) => format!("what it was {} states before", mark - at),
                    None => "never what it was".to_owned(),
                };
                let states = states.len();
                return Err(format!("the page at {offset} is of none of {states} states: {was}"));
            }
            at += count;
        }
        Ok(())
    }
}

/// Bytes that nothing else has: every eight of them name the write and their place in the file.
pub(crate) fn stamped(stamp: u64, range: Range) -> Vec<u8> {
    let first = range.offset / 8;
    let last = (range.offset + range.count).div_ceil(8);
    let mut bytes = Vec::with_capacity(((last - first) * 8) as usize);
    for word in first..last {
        bytes.extend_from_slice(&((stamp + 1) << 32 | word).to_le_bytes());
    }
    let skip = (range.offset - first * 8) as usize;
    bytes.drain(..skip);
    bytes.truncate(range.count as usize);
    bytes
}
