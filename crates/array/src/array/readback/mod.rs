//! Reading back what was written, in place and of the metadata, and what is made of a difference.

pub(crate) mod checking;
pub(crate) mod findings;
pub(crate) mod metadata;

use self::checking::Checks;
use self::metadata::RecordChecks;

/// What is being read back, and what was found.
#[derive(Clone, Debug)]
pub(super) struct Readback {
    checks: Checks,
    pub(super) records: RecordChecks,
}

impl Readback {
    pub(super) fn new(drives: usize) -> Self {
        Self { checks: Checks::new(drives), records: RecordChecks::default() }
    }
}
