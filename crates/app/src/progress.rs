//! How long work says how far it is.

/// Where long work says how far it is.
pub trait Progress: Send + Sync {
    /// A task begins; `total` is in the unit that [`Task::reach`] counts, 0 if unknown.
    fn begin(&self, label: &str, total: u64) -> Box<dyn Task>;
}

/// One task under way. Dropping it ends it.
pub trait Task: Send {
    /// `done` of the total is done.
    fn reach(&self, done: u64);
}

/// Shows nothing.
#[derive(Clone, Copy, Debug)]
pub struct NoProgress;

impl Progress for NoProgress {
    fn begin(&self, _label: &str, _total: u64) -> Box<dyn Task> {
        Box::new(Self)
    }
}

impl Task for NoProgress {
    fn reach(&self, _done: u64) {}
}
