//! The rules that keep files safe through a power cut, by name, so that a test can leave one out and must notice.
//!
//! A mount keeps all of them. `levelhead-torture` leaves each out and says which seeds notice that (`torture/tests/it/files.rs`).

/// A rule of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// EN2: what a record points to is flushed before the record is written.
    Flush,
    /// EN2: it has ended before that flush goes out.
    Data,
    /// RD2: redundancy that the journal says is stale is not used after a crash: it is computed anew.
    Stale,
    /// CP1: all sectors that a page consists of come into one record.
    Pages,
    /// EP1: a record that has a page counts until what the page consists of is in another one.
    Early,
    /// EN4: what has come to its place is flushed before its record is let go.
    Retire,
    /// All copies of a unit come to their places, not the lead alone.
    Copies,
    /// Everything counts up to the newest complete record, not up to the one before it.
    Newest,
    /// Records from before the last mount of a disk that was left in order do not count.
    Generation,
    /// Inodes without names that a crash has left are freed.
    Orphans,
}

impl Rule {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Flush,
        Self::Data,
        Self::Stale,
        Self::Pages,
        Self::Early,
        Self::Retire,
        Self::Copies,
        Self::Newest,
        Self::Generation,
        Self::Orphans,
    ];
}

/// Which rules are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    left_out: Option<Rule>,
}

impl Rules {
    /// All.
    pub const ALL: Self = Self { left_out: None };

    /// All but this one.
    pub const fn without(rule: Rule) -> Self {
        Self { left_out: Some(rule) }
    }

    /// Whether this one is kept.
    pub fn keep(self, rule: Rule) -> bool {
        self.left_out != Some(rule)
    }
}
