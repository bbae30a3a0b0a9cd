//! A command in a drive's queue or inside the drive: what is asked, and what its end says of the drive.

use levelhead_block::{BufId, Command, Effort, Outcome, SectorSet, Segment};
use levelhead_units::{DriveIdx, Extent, Instant, Lba, Nanos};

use super::purpose::Purpose;
use super::spread::Spread;
use crate::action::{Segments, Submit};
use crate::core::copied::What;
use crate::drives::queue::End;
use crate::drives::{EndedRead, Fate, Reader};
use crate::names::SubId;
use crate::shape::Area;
use crate::tags::state::Tags;

/// A command in a drive's queue or inside the drive.
#[derive(Clone, Debug)]
pub(crate) struct Sub {
    pub(crate) purpose: Purpose,
    pub(crate) drive: DriveIdx,
    pub(crate) command: Command,
    pub(super) segments: Segments,
    /// Where what it reads lies in its buffer, once it is inside its drive.
    pub(crate) spread: Spread,
    /// The sectors of the drive that it reads, once it is inside.
    pub(crate) first: Option<Extent>,
    /// Those of its sectors of which nothing says a checksum, by their offsets in it (F5), and those that have another one than
    /// they should.
    pub(crate) unproven: Vec<u32>,
    pub(crate) corrupt: Vec<u32>,
    /// What it writes with tag sectors between, once it is inside.
    pub(super) along: Option<Box<(Extent, Segments)>>,
    pub(super) origin: u64,
    pub(super) fate: Fate,
    pub(super) since: Option<Instant>,
    pub(super) enqueued: Instant,
    pub(super) started: Option<Instant>,
    /// It is late if it ends after this time, where the policy counts late drives.
    pub(super) due: Option<Instant>,
    /// Commands that its drive had ended when it went in.
    pub(super) ended_before: u64,
    /// Whether it is inside a drive whose place has another one now.
    pub(super) is_orphan: bool,
    /// Whether it was refused: what it takes says nothing.
    pub(super) is_refused: bool,
}

/// Sectors of a drive that are being written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Written {
    pub(crate) drive: DriveIdx,
    pub(crate) extent: Extent,
}

/// What the drive is asked that is given a copy.
pub(crate) struct ForComing {
    pub(crate) what: What,
    /// Its addresses are the drive's own.
    pub(crate) command: Command,
    pub(crate) segments: Segments,
    /// What is released when it has ended.
    pub(crate) bufs: Vec<BufId>,
}

/// What to put into a drive's queue.
pub(crate) struct Enqueue {
    pub(crate) purpose: Purpose,
    pub(crate) drive: DriveIdx,
    /// Its addresses are the layout's, or the drive's own where the purpose says so.
    pub(crate) command: Command,
    pub(crate) segments: Segments,
    pub(crate) origin: u64,
    pub(crate) end: End,
    pub(crate) fate: Fate,
    /// Since when a client waits for what it is part of, if one does.
    pub(crate) since: Option<Instant>,
}

impl Sub {
    /// The sectors of a read that is compared with checksums.
    pub(super) fn compared(&self) -> Option<Extent> {
        match (self.purpose, self.command) {
            (Purpose::Op(_), Command::Read { extent, .. }) => Some(extent),
            _ => None,
        }
    }

    /// How long ago it came into its drive's queue.
    pub(crate) fn age(&self, now: Instant) -> Nanos {
        now.saturating_since(self.enqueued)
    }

    pub(super) fn lba(&self) -> Lba {
        self.command.extent().map_or(Lba::ZERO, |extent: Extent| extent.lba)
    }

    /// The sectors that it writes, as the layout counts them, if these are places of the array. Of a drive that is there no
    /// write is ever abandoned.
    pub(super) fn writes_places(&self) -> Option<Extent> {
        match self.purpose {
            Purpose::Meta
            | Purpose::Ring
            | Purpose::Tag
            | Purpose::Recall(_)
            | Purpose::Abandoned => None,
            Purpose::Op(_)
            | Purpose::Place
            | Purpose::Fill
            | Purpose::Copy
            | Purpose::Verify
            | Purpose::Probe => self.command.extent().filter(|_| self.command.is_write()),
        }
    }

    /// Whether it was inside a drive whose place has another one now.
    pub(crate) fn is_orphan(&self) -> bool {
        self.is_orphan
    }

    /// The buffer that a write of one piece is written from.
    pub(crate) fn written_buf(&self) -> Option<BufId> {
        match (self.command, self.segments.as_slice()) {
            (Command::Write { .. }, [segment]) => Some(segment.place.buf),
            _ => None,
        }
    }

    /// The buffer a read fills.
    pub(crate) fn read_buf(&self) -> Option<BufId> {
        match (self.command, self.segments.as_slice()) {
            (Command::Read { .. }, [segment]) => Some(segment.place.buf),
            _ => None,
        }
    }
}

pub(super) fn submit(area: &Area, tags: Option<&Tags>, sub: SubId, state: &Sub) -> Submit {
    let (drive, command, origin) = (state.drive, on_drive(area, tags, state), state.origin);
    let segments = match (command, state.segments.as_slice()) {
        (Command::Read { extent, .. }, &[Segment { place, .. }]) => {
            Segment { place, sectors: extent.sectors.get() as u32 }.into()
        }
        _ => state.along.as_ref().map_or(&state.segments, |along| &along.1).clone(),
    };
    Submit { drive, sub, command, segments, origin }
}

/// A command as its drive gets it.
fn on_drive(area: &Area, tags: Option<&Tags>, sub: &Sub) -> Command {
    match (sub.purpose, sub.command.extent()) {
        (Purpose::Meta | Purpose::Ring | Purpose::Tag | Purpose::Recall(_), _) | (_, None) => {
            sub.command
        }
        (
            Purpose::Op(_)
            | Purpose::Place
            | Purpose::Fill
            | Purpose::Copy
            | Purpose::Verify
            | Purpose::Probe
            | Purpose::Abandoned,
            Some(extent),
        ) => {
            if let Command::Read { effort, .. } = sub.command {
                let there = sub.first.unwrap_or_else(|| match (tags, sub.compared()) {
                    (Some(tags), Some(extent)) => {
                        tags.widened(area, sub.drive, extent, sub.since.is_none())
                    }
                    _ if sub.purpose == Purpose::Copy => area.on_drive_to_next(extent),
                    _ => area.on_drive(extent),
                });
                return Command::Read { extent: there, effort };
            }
            if let (Command::Write { durability, zero_tail, .. }, Some(along)) =
                (sub.command, &sub.along)
            {
                return Command::Write { extent: along.0, durability, zero_tail };
            }
            let there = area.on_drive(extent);
            assert_eq!(there.sectors, extent.sectors, "a write would cover a tag sector");
            sub.command.at(there.lba)
        }
    }
}

/// What a command says of its drive as a read, if it was one.
pub(super) fn ended_read(sub: &Sub, outcome: &Outcome) -> Option<EndedRead> {
    let Command::Read { extent, effort } = sub.command else { return None };
    let reader = match sub.purpose {
        Purpose::Probe | Purpose::Abandoned | Purpose::Verify => Reader::None,
        Purpose::Op(_)
        | Purpose::Meta
        | Purpose::Ring
        | Purpose::Place
        | Purpose::Fill
        | Purpose::Copy
        | Purpose::Tag
        | Purpose::Recall(_) => Reader::Operation,
    };
    let unread = match (effort, outcome) {
        (Effort::Fast, Outcome::Done { unknown, .. }) => Some(unknown.len()),
        (Effort::Fast | Effort::Limited(_) | Effort::Full | Effort::Medium, _) => None,
    };
    Some(EndedRead { fate: sub.fate, reader, unread, sectors: extent.sectors.get() })
}

/// The outcome of a command that was not carried out at all.
pub(super) fn failed(command: &Command) -> Outcome {
    let all = SectorSet::first(command.payload());
    let (unknown, damaged) = match command {
        Command::Read { effort: Effort::Fast | Effort::Limited(_), .. } => (all, SectorSet::EMPTY),
        Command::Read { effort: Effort::Full | Effort::Medium, .. } | Command::Write { .. } => {
            (SectorSet::EMPTY, all)
        }
        Command::WriteZeroes { .. } | Command::Trim { .. } | Command::Flush => {
            return Outcome::Gone;
        }
    };
    Outcome::Done { unknown, damaged }
}

/// Whether an outcome means that the drive is lost: it does not answer, or it could not write.
pub(crate) fn loses_drive(command: &Command, outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Gone => true,
        Outcome::Done { damaged, .. } => command.is_write() && !damaged.is_empty(),
        Outcome::Refused | Outcome::Unreachable => false,
    }
}
