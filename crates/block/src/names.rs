//! The names of bytes: a state machine that must not hold any says with these what becomes of them.

/// A client's request, named by the client. Also the *origin* of the commands it causes: emulated
/// drives fail the same sectors for the same origin, whatever the policy. Writes that joined have the
/// origin of the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// The name of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BufId {
    /// The client's own: there from the client's request to the answer.
    Client(RequestId),
    /// One that the state machine has asked for: there until it is released.
    Own(u64),
}

/// A sector in a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The buffer.
    pub buf: BufId,
    /// The sector's number in it.
    pub sector: u32,
}

impl Place {
    /// `count` sectors further on.
    #[must_use]
    pub fn plus(self, count: u32) -> Self {
        Self { sector: self.sector + count, ..self }
    }
}

/// Some sectors in a row in one buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The first.
    pub place: Place,
    /// How many.
    pub sectors: u32,
}

/// `into = sum of coefficient * from`, sector by sector, over GF(2^8).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Combine {
    /// Where the result goes; overlaps none of the sources.
    pub into: Place,
    /// How many sectors, here and in every source.
    pub sectors: u32,
    /// The sources. A single one with coefficient 1 is a copy, none at all gives zeroes.
    pub from: Vec<(u8, Place)>,
}
