//! Large requests in parts, and their outcomes as one.
//!
//! What is written is shared by the parts and not copied. What is read into a room of the client's is
//! copied there; without one, the parts are handed on as they are.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use levelhead_block::{
    Buf, Command, Data, Done, Outcome, Payload, Piece, Reply, Request, SectorSet,
};
use levelhead_units::{Extent, Sectors};

/// Runs `request` through `send`, in parts of at most `most` sectors. What touches no sector is
/// answered at once.
pub(crate) fn run(
    request: Request,
    done: Done,
    most: Sectors,
    send: &mut dyn FnMut(Request, Done),
) {
    let extent = match request.command {
        Command::Read { extent, .. }
        | Command::Write { extent, .. }
        | Command::WriteZeroes { extent, .. } => extent,
        Command::Trim { extent } if extent.sectors > Sectors::ZERO => return send(request, done),
        Command::Trim { extent } => extent,
        Command::Flush => return send(request, done),
    };
    if extent.sectors == Sectors::ZERO {
        return done(Reply::good(Data::None));
    }
    if extent.sectors <= most {
        return send(request, done);
    }
    in_parts(request, extent, done, most, send);
}

/// What the parts of one request share.
struct Whole {
    read: Read,
    outcome: Merged,
    reason: Option<String>,
    left: u64,
    done: Option<Done>,
}

/// What the parts of a read have brought.
enum Read {
    Nothing,
    /// Into the client's room.
    Into(Buf),
    /// By the first sector of the part.
    Parts(BTreeMap<u64, Buf>),
}

/// The outcomes of the pieces so far.
enum Merged {
    Done {
        unknown: Vec<u32>,
        damaged: Vec<u32>,
    },
    /// The first that was not done at all; gone rather than refused.
    Other(Outcome),
}

fn in_parts(
    request: Request,
    extent: Extent,
    done: Done,
    most: Sectors,
    send: &mut dyn FnMut(Request, Done),
) {
    let Request { command, origin, payload } = request;
    let total = extent.sectors.get();
    let (read, pieces) = match payload {
        Payload::Room(buf) => (Read::Into(buf), None),
        Payload::Pieces(pieces) => (Read::Nothing, Some(pieces)),
        Payload::None => match command {
            Command::Read { .. } => (Read::Parts(BTreeMap::new()), None),
            _ => (Read::Nothing, None),
        },
    };
    let whole = Arc::new(Mutex::new(Whole {
        read,
        outcome: Merged::Done { unknown: Vec::new(), damaged: Vec::new() },
        reason: None,
        left: total.div_ceil(most.get()),
        done: Some(done),
    }));
    for first in (0..total).step_by(most.as_usize()) {
        let sectors = Sectors::new(most.get().min(total - first));
        let part = Extent::new(extent.lba + Sectors::new(first), sectors);
        let slice = |pieces: &Vec<Piece>| Payload::Pieces(Piece::slice(pieces, first, sectors));
        let payload = pieces.as_ref().map_or(Payload::None, slice);
        let shared = Arc::clone(&whole);
        let done = Box::new(move |reply| join(&shared, first, reply));
        send(Request { command: narrowed(command, part), origin, payload }, done);
    }
}

fn narrowed(command: Command, extent: Extent) -> Command {
    match command {
        Command::Read { effort, .. } => Command::Read { extent, effort },
        Command::Write { durability, zero_tail, .. } => {
            Command::Write { extent, durability, zero_tail }
        }
        Command::WriteZeroes { durability, .. } => Command::WriteZeroes { extent, durability },
        Command::Trim { .. } => Command::Trim { extent },
        Command::Flush => Command::Flush,
    }
}

/// A part has ended; the last one answers.
fn join(whole: &Mutex<Whole>, first: u64, reply: Reply) {
    let mut whole = whole.lock().unwrap_or_else(PoisonError::into_inner);
    let Whole { read, outcome, reason, left, done } = &mut *whole;
    let Reply { outcome: ended, data, reason: why } = reply;
    if let Outcome::Done { .. } = ended {
        read.take(first, data);
    }
    *reason = reason.take().or(why);
    match (&mut *outcome, ended) {
        (
            Merged::Done { unknown, damaged },
            Outcome::Done { unknown: more_unknown, damaged: more },
        ) => {
            let first = u32::try_from(first).expect("a request has less than 2^32 sectors");
            unknown.extend(more_unknown.iter().map(|offset| first + offset));
            damaged.extend(more.iter().map(|offset| first + offset));
        }
        (Merged::Done { .. }, other) => *outcome = Merged::Other(other),
        (Merged::Other(other), Outcome::Gone) => *other = Outcome::Gone,
        (Merged::Other(_), Outcome::Done { .. } | Outcome::Refused | Outcome::Unreachable) => {}
    }
    *left -= 1;
    if *left > 0 {
        return;
    }
    let outcome = match std::mem::replace(outcome, Merged::Other(Outcome::Gone)) {
        Merged::Done { unknown, damaged } => Outcome::Done {
            unknown: unknown.into_iter().collect::<SectorSet>(),
            damaged: damaged.into_iter().collect(),
        },
        Merged::Other(outcome) => outcome,
    };
    let data = match (std::mem::replace(read, Read::Nothing), &outcome) {
        (Read::Into(buf), _) => Data::Buf(buf),
        (Read::Parts(parts), Outcome::Done { .. }) => {
            let piece = |buf| Piece::whole(Arc::new(buf));
            Data::Pieces(parts.into_values().map(piece).collect())
        }
        (Read::Nothing | Read::Parts(_), _) => Data::None,
    };
    let reply = Reply { outcome, data, reason: reason.take() };
    let done = done.take().expect("the last part ends once");
    drop(whole);
    done(reply);
}

impl Read {
    /// What the part from sector `first` on has brought.
    fn take(&mut self, first: u64, data: Data) {
        match self {
            Self::Nothing => {}
            Self::Into(buf) => {
                let bytes = buf.part_mut(first as usize, data.sectors().as_usize());
                let mut rest = bytes;
                for slice in data.slices() {
                    let (place, after) = rest.split_at_mut(slice.len());
                    place.copy_from_slice(slice);
                    rest = after;
                }
            }
            Self::Parts(parts) => drop(parts.insert(first, data.into_buf())),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use levelhead_block::{Durability, Effort, ZeroTail};
    use levelhead_units::{Lba, SECTOR_SIZE};

    use super::*;

    fn extent(sectors: u64) -> Extent {
        Extent::new(Lba::new(100), Sectors::new(sectors))
    }

    /// Splits a request into parts of 4 sectors, ends each as `end` says, the last part first.
    fn check(request: Request, end: impl Fn(&Command) -> Outcome) -> (Vec<Request>, Reply) {
        let mut parts: Vec<(Request, Done)> = Vec::new();
        let (sender, receiver) = mpsc::channel();
        let done = Box::new(move |reply| sender.send(reply).unwrap());
        run(request, done, Sectors::new(4), &mut |request, done| parts.push((request, done)));
        let mut seen = Vec::new();
        for (request, done) in parts.into_iter().rev() {
            assert!(receiver.try_recv().is_err(), "it was answered too early");
            let mut reply = Reply::bare(end(&request.command));
            if let Command::Read { extent, .. } = request.command {
                let bytes = extent.iter().flat_map(|lba| [lba.get() as u8; SECTOR_SIZE]);
                reply.data = Data::Buf(Buf::copy_of(&bytes.collect::<Vec<u8>>()));
            }
            seen.push(request);
            done(reply);
        }
        seen.reverse();
        let reply = receiver.try_recv().expect("it was answered");
        assert!(receiver.try_recv().is_err(), "it was answered twice");
        (seen, reply)
    }

    #[test]
    fn parts_of_a_read_come_together_again_with_room_or_without() {
        let room = Buf::zeroed(Sectors::new(10));
        let place = room.as_slice().as_ptr();
        // Kept, so that no later buffer has the room's place.
        let mut kept = Vec::new();
        for request in [
            Request::read_into(extent(10), Effort::Full, room),
            Request::read(extent(10), Effort::Full),
        ] {
            let has_room = matches!(request.payload, Payload::Room(_));
            let (parts, reply) = check(request, |_| Outcome::GOOD);
            let sizes: Vec<u64> = parts.iter().map(|part| part.command.payload().get()).collect();
            assert_eq!(sizes, [4, 4, 2]);
            assert!(reply.outcome.is_good());
            let starts = reply.data.slices().map(<[u8]>::as_ptr).next().unwrap();
            assert_eq!(starts == place, has_room, "it comes back in the room, if there was one");
            let bytes: Vec<u8> = reply.data.slices().flatten().copied().collect();
            for (offset, sector) in bytes.chunks(SECTOR_SIZE).enumerate() {
                assert!(sector.iter().all(|&byte| byte == 100 + offset as u8), "{offset}");
            }
            assert_eq!(bytes.len(), 10 * SECTOR_SIZE);
            kept.push(reply);
        }
    }

    #[test]
    fn parts_of_a_write_are_its_bytes_and_no_copies() {
        let mut buf = Buf::zeroed(Sectors::new(9));
        for (offset, sector) in buf.as_mut_slice().chunks_mut(SECTOR_SIZE).enumerate() {
            sector.fill(offset as u8);
        }
        let place = buf.as_slice().as_ptr_range();
        let write = Request::write(extent(9), Durability::Durable, buf).with_origin(3);
        let (parts, _) = check(write, |_| Outcome::GOOD);
        let mut numbers = Vec::new();
        for part in &parts {
            assert_eq!(part.origin, 3);
            let Payload::Pieces(pieces) = &part.payload else { panic!("a write has pieces") };
            for sector in Piece::each_sector(pieces) {
                assert!(place.contains(&sector.as_ptr()), "a copy");
                numbers.push(sector[0]);
            }
        }
        assert_eq!(numbers, [0, 1, 2, 3, 4, 5, 6, 7, 8]);
        let (durability, zero_tail) = (Durability::Durable, ZeroTail::None);
        let last = Extent::new(Lba::new(108), Sectors::new(1));
        assert_eq!(parts[2].command, Command::Write { extent: last, durability, zero_tail });
    }

    #[test]
    fn sectors_that_failed_are_named_by_their_place_in_the_whole() {
        let (_, reply) = check(Request::read(extent(10), Effort::Full), |part| {
            let first = part.extent().unwrap().lba == Lba::new(104);
            let unknown = if first { [1].into_iter().collect() } else { SectorSet::EMPTY };
            Outcome::Done { unknown, damaged: [0].into_iter().collect() }
        });
        let (unknown, damaged) = ([5].into_iter().collect(), [0, 4, 8].into_iter().collect());
        assert_eq!(reply.outcome, Outcome::Done { unknown, damaged });
    }

    #[test]
    fn one_part_that_is_gone_makes_the_whole_gone() {
        let command = Command::WriteZeroes { extent: extent(10), durability: Durability::Cached };
        let end = |first: Outcome| {
            move |part: &Command| match part.extent().unwrap().lba.get() {
                104 => first.clone(),
                108 => Outcome::Refused,
                _ => Outcome::GOOD,
            }
        };
        let (parts, reply) = check(Request::bare(command), end(Outcome::Gone));
        assert_eq!((parts.len(), reply.outcome), (3, Outcome::Gone));
        let (_, reply) = check(Request::bare(command), end(Outcome::GOOD));
        assert_eq!(reply.outcome, Outcome::Refused);
    }
}
