//! Large requests in pieces, and their outcomes as one.

use std::sync::{Arc, Mutex, PoisonError};

use levelhead_block::{Buf, Command, Done, Outcome, Reply, Request, SectorSet};
use levelhead_units::{Extent, Sectors};

/// Runs `request` through `send`, in pieces of at most `most` sectors. What touches no sector is
/// answered at once.
pub(crate) fn run(
    request: Request,
    done: Done,
    most: Sectors,
    send: &mut dyn FnMut(Request, Done),
) {
    let Request { command, buf } = request;
    let extent = match command {
        Command::Read { extent, .. }
        | Command::Write { extent, .. }
        | Command::WriteZeroes { extent, .. } => extent,
        Command::Trim { extent } if extent.sectors > Sectors::ZERO => {
            return send(Request { command, buf }, done);
        }
        Command::Trim { extent } => extent,
        Command::Flush => return send(Request { command, buf }, done),
    };
    if extent.sectors == Sectors::ZERO {
        return done(Reply { outcome: Outcome::GOOD, buf });
    }
    if extent.sectors <= most {
        return send(Request { command, buf }, done);
    }
    in_pieces(command, extent, buf, done, most, send);
}

/// What the pieces of one request share.
struct Whole {
    buf: Buf,
    outcome: Merged,
    left: u64,
    done: Option<Done>,
}

/// The outcomes of the pieces so far.
enum Merged {
    Done {
        unknown: Vec<u32>,
        damaged: Vec<u32>,
    },
    /// The first that was not done at all.
    Other(Outcome),
}

fn in_pieces(
    command: Command,
    extent: Extent,
    buf: Buf,
    done: Done,
    most: Sectors,
    send: &mut dyn FnMut(Request, Done),
) {
    let total = extent.sectors.get();
    let whole = Arc::new(Mutex::new(Whole {
        buf,
        outcome: Merged::Done { unknown: Vec::new(), damaged: Vec::new() },
        left: total.div_ceil(most.get()),
        done: Some(done),
    }));
    for first in (0..total).step_by(most.as_usize()) {
        let sectors = Sectors::new(most.get().min(total - first));
        let part = Extent::new(extent.lba + Sectors::new(first), sectors);
        let command = narrowed(command, part);
        let mut buf = Buf::zeroed(command.payload());
        if let Command::Write { .. } = command {
            let whole = whole.lock().unwrap_or_else(PoisonError::into_inner);
            let bytes = whole.buf.part(first as usize, sectors.as_usize());
            buf.as_mut_slice().copy_from_slice(bytes);
        }
        let shared = Arc::clone(&whole);
        let done = Box::new(move |reply| join(&shared, first, command, reply));
        send(Request { command, buf }, done);
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

/// A piece has ended; the last one answers.
fn join(whole: &Mutex<Whole>, first: u64, command: Command, reply: Reply) {
    let mut whole = whole.lock().unwrap_or_else(PoisonError::into_inner);
    let Whole { buf, outcome, left, done } = &mut *whole;
    if let Command::Read { extent, .. } = command {
        let bytes = buf.part_mut(first as usize, extent.sectors.as_usize());
        bytes.copy_from_slice(reply.buf.as_slice());
    }
    match (&mut *outcome, reply.outcome) {
        (
            Merged::Done { unknown, damaged },
            Outcome::Done { unknown: more_unknown, damaged: more },
        ) => {
            let first = u32::try_from(first).expect("a request has less than 2^32 sectors");
            unknown.extend(more_unknown.iter().map(|offset| first + offset));
            damaged.extend(more.iter().map(|offset| first + offset));
        }
        (Merged::Done { .. }, other) => *outcome = Merged::Other(other),
        (Merged::Other(_), _) => {}
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
    let reply = Reply { outcome, buf: std::mem::replace(buf, Buf::empty()) };
    let done = done.take().expect("the last piece ends once");
    drop(whole);
    done(reply);
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

    /// Splits a request into pieces of 4 sectors, ends each as `end` says, the last piece first.
    fn check(
        command: Command,
        buf: Buf,
        end: impl Fn(&Request) -> Outcome,
    ) -> (Vec<(Command, Buf)>, Reply) {
        let mut pieces: Vec<(Request, Done)> = Vec::new();
        let (sender, receiver) = mpsc::channel();
        let done = Box::new(move |reply| sender.send(reply).unwrap());
        run(Request::new(command, buf), done, Sectors::new(4), &mut |request, done| {
            pieces.push((request, done));
        });
        let mut seen = Vec::new();
        for (mut request, done) in pieces.into_iter().rev() {
            assert!(receiver.try_recv().is_err(), "it was answered too early");
            seen.push((request.command, Buf::copy_of(request.buf.as_slice())));
            let outcome = end(&request);
            if let Command::Read { extent, .. } = request.command {
                for (sector, lba) in
                    request.buf.as_mut_slice().chunks_mut(SECTOR_SIZE).zip(extent.iter())
                {
                    sector.fill(lba.get() as u8);
                }
            }
            done(Reply { outcome, buf: request.buf });
        }
        seen.reverse();
        let reply = receiver.try_recv().expect("it was answered");
        assert!(receiver.try_recv().is_err(), "it was answered twice");
        (seen, reply)
    }

    #[test]
    fn pieces_of_a_read_come_together_again() {
        let command = Command::Read { extent: extent(10), effort: Effort::Full };
        let (pieces, reply) = check(command, Buf::zeroed(Sectors::new(10)), |_| Outcome::GOOD);
        let sizes: Vec<u64> = pieces.iter().map(|(command, _)| command.payload().get()).collect();
        assert_eq!(sizes, [4, 4, 2]);
        assert!(reply.outcome.is_good());
        for offset in 0..10 {
            let expected = 100 + offset as u8;
            assert!(reply.buf.part(offset, 1).iter().all(|&byte| byte == expected), "{offset}");
        }
    }

    #[test]
    fn pieces_of_a_write_are_parts_of_its_bytes() {
        let (durability, zero_tail) = (Durability::Durable, ZeroTail::B256);
        let command = Command::Write { extent: extent(9), durability, zero_tail };
        let mut buf = Buf::zeroed(Sectors::new(9));
        for (offset, sector) in buf.as_mut_slice().chunks_mut(SECTOR_SIZE).enumerate() {
            sector.fill(offset as u8);
        }
        let whole = Buf::copy_of(buf.as_slice());
        let (pieces, reply) = check(command, buf, |_| Outcome::GOOD);
        assert_eq!(reply.buf.as_slice(), whole.as_slice());
        let together: Vec<u8> =
            pieces.iter().flat_map(|(_, buf)| buf.as_slice().iter().copied()).collect();
        assert!(together == whole.as_slice());
        let last = Extent::new(Lba::new(108), Sectors::new(1));
        assert_eq!(pieces[2].0, Command::Write { extent: last, durability, zero_tail });
    }

    #[test]
    fn sectors_that_failed_are_named_by_their_place_in_the_whole() {
        let command = Command::Read { extent: extent(10), effort: Effort::Full };
        let (_, reply) = check(command, Buf::zeroed(Sectors::new(10)), |piece| {
            let first = piece.command.extent().unwrap().lba == Lba::new(104);
            let unknown = if first { [1].into_iter().collect() } else { SectorSet::EMPTY };
            Outcome::Done { unknown, damaged: [0].into_iter().collect() }
        });
        let (unknown, damaged) = ([5].into_iter().collect(), [0, 4, 8].into_iter().collect());
        assert_eq!(reply.outcome, Outcome::Done { unknown, damaged });
    }

    #[test]
    fn one_piece_that_is_gone_makes_the_whole_gone() {
        let command = Command::WriteZeroes { extent: extent(10), durability: Durability::Cached };
        let (pieces, reply) = check(command, Buf::empty(), |piece| {
            let is_middle = piece.command.extent().unwrap().lba == Lba::new(104);
            if is_middle { Outcome::Gone } else { Outcome::GOOD }
        });
        assert_eq!(pieces.len(), 3);
        assert_eq!(reply.outcome, Outcome::Gone);
    }
}
