//! Where the header of a format begins on a drive of some size.

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// So many bytes from the beginning.
    Start(u64),
    /// So many bytes before the end, rounded down to a multiple of `align`.
    End { back: u64, align: u64 },
}

pub(super) const fn start(at: u64) -> Place {
    Place::Start(at)
}

pub(super) const fn end(back: u64, align: u64) -> Place {
    Place::End { back, align }
}

impl Place {
    /// The byte, if a drive of `size` bytes has it.
    pub(super) fn on(self, size: u64) -> Option<u64> {
        let at = match self {
            Self::Start(at) => at,
            Self::End { back, align } => size.checked_sub(back)? / align * align,
        };
        (at < size).then_some(at)
    }
}
