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
