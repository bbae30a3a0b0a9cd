//! Lists that are made anew for every read, and need not ask for memory every time.

/// A list that is empty between two uses and keeps its memory, as much as the longest read so far needed.
#[derive(Debug)]
pub(crate) struct Room<T>(Vec<T>);

impl<T> Default for Room<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Room<T> {
    /// An empty list, to be given back. A second one, taken meanwhile, has no memory yet.
    pub(crate) fn take(&mut self) -> Vec<T> {
        std::mem::take(&mut self.0)
    }

    /// The list is not needed any more.
    pub(crate) fn give_back(&mut self, mut list: Vec<T>) {
        list.clear();
        self.0 = list;
    }
}
