//! Clients' writes: those that were carried out, those that may be gone with a drive, and those that were given up.

use levelhead_units::Sectors;

/// See the module.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ClientWrites {
    /// Those that have been carried out.
    ended: u64,
    /// Those of them that a flush has made safe.
    flushed: u64,
    /// Whether writes that were not flushed may be gone with a drive, so that the next flush must fail.
    has_lost: bool,
    /// Memory of those that were given up and are still being carried out.
    given_up: Sectors,
}

impl ClientWrites {
    pub(crate) fn ended(&self) -> u64 {
        self.ended
    }

    /// One more has been carried out.
    pub(crate) fn end(&mut self) {
        self.ended += 1;
    }

    /// A flush has made this many of them safe.
    pub(crate) fn note_flushed(&mut self, covers: u64) {
        self.flushed = self.flushed.max(covers);
    }

    /// Whether some of them are not flushed.
    pub(crate) fn are_unflushed(&self) -> bool {
        self.ended > self.flushed
    }

    /// Some of them may be gone: the next flush must fail.
    pub(crate) fn lose(&mut self) {
        self.has_lost = true;
    }

    /// Whether this flush must fail; the next one need not.
    pub(crate) fn take_lost(&mut self) -> bool {
        std::mem::take(&mut self.has_lost)
    }

    pub(crate) fn given_up(&self) -> Sectors {
        self.given_up
    }

    /// One is given up that keeps this memory.
    pub(crate) fn give_up(&mut self, kept: Sectors) {
        self.given_up += kept;
    }

    /// One that was given up has let go of its memory.
    pub(crate) fn let_go(&mut self, kept: Sectors) {
        assert!(kept <= self.given_up, "O3: {kept:?} of {:?}", self.given_up);
        self.given_up = self.given_up - kept;
    }
}
