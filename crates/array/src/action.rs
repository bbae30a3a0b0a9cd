//! What the array asks of its runtime. The bytes it talks about have the names of `levelhead_block`.

use std::ops::Deref;

use levelhead_block::{BufId, Combine, Command, Outcome, Place, RequestId, SectorSet, Segment};
use levelhead_units::{DriveIdx, Lba, Sectors};

use crate::event::{Ending, Event};
use crate::log::record::{Record, RingName};
use crate::meta::metadata::Inscription;
use crate::meta::superblock::Superblock;
use crate::names::{OpId, SubId};
use crate::tags::list::ListSector;
use crate::tags::sector::TagSector;
use crate::tags::{ReadTag, TagAlong};

/// What the runtime must do next. Actions are carried out in order, each before the next is polled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// A buffer is needed.
    Acquire {
        /// Its name.
        buf: BufId,
        /// Its size.
        sectors: Sectors,
    },
    /// Hand a command to a drive. Its end comes back as
    /// [`Array::handle_done`](crate::Array::handle_done).
    Submit(Submit),
    /// Hand a command to the drive that is coming into the place of this one
    /// ([`Array::handle_copy`](crate::Array::handle_copy)). Its end comes back in the same way.
    Coming(Submit),
    /// The drive that was coming has this place from now on: what follows for the place is the new drive's.
    Seat(DriveIdx),
    /// The drive that was coming into this place is not wanted any more.
    Dismiss(DriveIdx),
    /// Compute. Done before anything that follows.
    Combine(Combine),
    /// A buffer is not needed any more, the array's own or that of a client's write; no drive is using it.
    Release(BufId),
    /// Put what a member records of the array into a buffer.
    Inscribe {
        /// Where: as many sectors as it takes.
        into: Place,
        /// What it says.
        what: Inscribed,
    },
    /// Put the header of a record of the journal into a buffer, with the checksums of what it is about.
    Log {
        /// Where: one sector.
        into: Place,
        /// What it says.
        record: Box<Record>,
        /// The checksums of the sectors of its runs, in order.
        sums: Sums,
    },
    /// Look for records of the journal in what a drive has read. The findings go to
    /// [`Array::handle_examined`](crate::Array::handle_examined) before the next action is polled.
    Examine {
        /// The buffer.
        buf: BufId,
        /// The address of its first sector on the drive.
        first: Lba,
        /// Sectors of it that the drive did not give.
        unreadable: SectorSet,
        /// The ring that is read.
        ring: RingName,
    },
    /// See who has written the metadata that begins in this buffer. That goes to
    /// [`Array::handle_looked`](crate::Array::handle_looked) before the next action is polled.
    Look {
        /// The buffer.
        buf: BufId,
    },
    /// See what tag sectors say that a command has read. That goes to [`Array::handle_tags`](crate::Array::handle_tags) before the
    /// next action is polled.
    Tags {
        /// The command.
        sub: SubId,
        /// The drive that they were read from.
        drive: DriveIdx,
        /// Where they are.
        of: Vec<ReadTag>,
    },
    /// See what sectors of lists of checksums a command has read. That goes to [`Array::handle_lists`](crate::Array::handle_lists)
    /// before the next action is polled.
    Lists {
        /// The command.
        sub: SubId,
        /// The buffer that it filled.
        buf: BufId,
    },
    /// Compute the checksum, CRC-32C, of every sector of a buffer. They go to
    /// [`Array::handle_summed`](crate::Array::handle_summed) before the next action is polled.
    Sum {
        /// The buffer.
        buf: BufId,
    },
    /// Compute the checksum, CRC-32C, of every sector of these segments. They go to
    /// [`Array::handle_digested`](crate::Array::handle_digested) before the next action is polled.
    Digest {
        /// What they are for.
        id: u64,
        /// The sectors, in order.
        of: Vec<Segment>,
        /// Tag sectors that they go into as well.
        into: Vec<TagAlong>,
    },
    /// See which of these sums are zero. The answer goes to
    /// [`Array::handle_checked`](crate::Array::handle_checked) before the next action is polled.
    Check {
        /// Who wants to know.
        op: OpId,
        /// For each sum its terms: one sector each.
        sums: Vec<Vec<(u8, Place)>>,
    },
    /// The array has come to its end after [`Array::handle_stop`](crate::Array::handle_stop).
    Stopped(Ending),
    /// Something happened that an operator may want to know. The runtime has nothing to do.
    Event(Event),
    /// What a read has brought. Comes before its buffers are released, and before its answer.
    Deliver(Deliver),
    /// A request has ended.
    Answer(Answer),
}

impl Action {
    /// Computes the checksums of these sectors.
    pub(crate) fn digest(id: u64, of: Vec<Segment>) -> Self {
        Self::Digest { id, of, into: Vec::new() }
    }
}

/// What a member records of the array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Inscribed {
    /// Who it is.
    Superblock(Box<Superblock>),
    /// How the array stands.
    Metadata(Inscription),
    /// The checksums of a group of sectors.
    Tags(Box<TagSector>),
    /// Checksums that no tag sector has yet.
    List(Box<[ListSector]>),
}

impl Inscribed {
    /// Its bytes: whole sectors.
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Self::Superblock(superblock) => superblock.encode().to_vec(),
            Self::Metadata(inscription) => inscription.encode(),
            Self::Tags(tags) => tags.encode().to_vec(),
            Self::List(list) => list.iter().flat_map(ListSector::encode).collect(),
        }
    }
}

/// Checksums of sectors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sums {
    /// Those of what is there.
    Of(Vec<Segment>),
    /// These.
    Known(Vec<u32>),
}

/// The pieces of buffers that a command is about, in order. Nearly every command has one, which needs no list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segments(Pieces);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Pieces {
    One(Segment),
    /// None, or several.
    List(Vec<Segment>),
}

impl Segments {
    /// No piece: the command has no bytes.
    pub const NONE: Self = Self(Pieces::List(Vec::new()));

    /// All of them.
    pub fn as_slice(&self) -> &[Segment] {
        match &self.0 {
            Pieces::One(segment) => std::slice::from_ref(segment),
            Pieces::List(list) => list,
        }
    }
}

impl From<Segment> for Segments {
    fn from(segment: Segment) -> Self {
        Self(Pieces::One(segment))
    }
}

impl From<Vec<Segment>> for Segments {
    fn from(list: Vec<Segment>) -> Self {
        match list[..] {
            [segment] => segment.into(),
            _ => Self(Pieces::List(list)),
        }
    }
}

impl Deref for Segments {
    type Target = [Segment];

    fn deref(&self) -> &[Segment] {
        self.as_slice()
    }
}

/// Adds a sector to the last segment, if it lies right behind that, or else as a new segment.
pub(crate) fn append(segments: &mut Vec<Segment>, place: Place) {
    match segments.last_mut() {
        Some(last) if last.place.plus(last.sectors) == place => last.sectors += 1,
        Some(_) | None => segments.push(Segment { place, sectors: 1 }),
    }
}

/// The sectors from one on of what these name.
pub(crate) fn part_of(segments: &[Segment], mut from: u32, mut count: u32) -> Vec<Segment> {
    let mut part = Vec::new();
    for &Segment { place, sectors } in segments {
        let skipped = from.min(sectors);
        let taken = count.min(sectors - skipped);
        if taken > 0 {
            part.push(Segment { place: place.plus(skipped), sectors: taken });
        }
        (from, count) = (from - skipped, count - taken);
    }
    part
}

/// A command for one drive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Submit {
    /// Which drive.
    pub drive: DriveIdx,
    /// The command's name.
    pub sub: SubId,
    /// What to do; its addresses are the drive's own.
    pub command: Command,
    /// Where its bytes are, in order: one whole buffer for a read, any number of pieces for a write.
    pub segments: Segments,
    /// The request it serves, the first of them where several joined; a number near the largest for
    /// the array's own.
    pub origin: u64,
}

/// Where the data of a read lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deliver {
    /// Whose read.
    pub request: RequestId,
    /// As many sectors as its extent, in order, in buffers of the array's own.
    pub segments: Vec<Segment>,
}

/// The end of a request, and what it took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Which request.
    pub request: RequestId,
    /// How it ended. What a read has brought holds the data, except for sectors named here. A read that
    /// was given up before it began has brought nothing.
    pub outcome: Outcome,
    /// What it took.
    pub cost: Cost,
}

/// What a request took. Writes that joined tell all of it with the first of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Commands put into the drives' queues for it.
    pub subs: u32,
    /// Those of them that were withdrawn before a drive had them.
    pub removed: u32,
    /// Those of them that asked again, with retries, for what little effort had not given.
    pub redispatched: u32,
    /// Codewords of which a part was computed from redundancy.
    pub decoded: u32,
}
