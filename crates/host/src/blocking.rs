//! Commands that are carried out by a thread that waits for them.

use std::io;

use levelhead_block::{Buf, Command, Data, Effort, Outcome, Payload, Reply, Request, SectorSet};
use levelhead_bytes::{Storage, spoil};
use levelhead_units::{Extent, Sectors};

use crate::errno::{AGAIN_MAX, Doing, Meaning, failed_write, meaning};
use crate::search::Search;

/// Carries a command out on `storage`, waiting for it. It has come through
/// [`prepared`](crate::backend::prepared).
pub(crate) fn carry_out<S>(storage: &mut S, request: Request) -> Reply
where
    S: Storage<Error = io::Error>,
{
    match (request.command, request.payload) {
        (Command::Read { extent, effort }, Payload::Room(mut buf)) => {
            let mut read = |extent: Extent, bytes: &mut [u8]| storage.read(extent.lba, bytes);
            let result = again(Doing::Read, || read(extent, buf.as_mut_slice()));
            match result {
                Ok(()) => Reply::good(Data::Buf(buf)),
                Err(error) => failed_read(Asked { extent, effort }, buf, &error, read),
            }
        }
        (Command::Write { extent, durability, .. }, Payload::Pieces(pieces)) => {
            let result = again(Doing::Write, || storage.write(extent.lba, &pieces, durability));
            drop(pieces); // M2
            match result {
                Ok(()) => Reply::bare(Outcome::GOOD),
                Err(error) => because(failed_write(extent, &error), &error),
            }
        }
        (Command::Flush, _) => synced(again(Doing::Sync, || storage.sync())),
        (command, payload) => panic!("{command:?} came with {payload:?}"),
    }
}

/// Runs `step` until the machine does not want it to be tried again, or has wanted that too often.
fn again<T>(doing: Doing, mut step: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    for _ in 0..AGAIN_MAX {
        match step() {
            Err(error) if meaning(doing, &error) == Meaning::Again => {}
            result => return result,
        }
    }
    step()
}

/// What a read was to read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    pub(crate) extent: Extent,
    pub(crate) effort: Effort,
}

/// The end of a read into `buf` that has failed as a whole; `read` reads parts of it.
pub(crate) fn failed_read(
    Asked { extent, effort }: Asked,
    mut buf: Buf,
    error: &io::Error,
    mut read: impl FnMut(Extent, &mut [u8]) -> io::Result<()>,
) -> Reply {
    let all = SectorSet::first(extent.sectors);
    let (unknown, damaged) = match (meaning(Doing::Read, error), effort) {
        (Meaning::Again | Meaning::Refused, _) => return because(Outcome::Refused, error),
        (Meaning::Gone, _) => return because(Outcome::Gone, error),
        (Meaning::Failed, Effort::Fast | Effort::Limited(_)) => (all, SectorSet::EMPTY),
        (Meaning::Failed, Effort::Full | Effort::Medium) => {
            let mut search = Search::new(0..all.len() as u32);
            while let Some(part) = search.part() {
                let count = part.end - part.start;
                let lba = extent.lba + Sectors::new(part.start.into());
                let place = buf.part_mut(part.start as usize, count as usize);
                let extent = Extent::new(lba, Sectors::new(count.into()));
                match again(Doing::Read, || read(extent, place)) {
                    Ok(()) => search.handle_read(),
                    Err(error) => match meaning(Doing::Read, &error) {
                        Meaning::Failed => search.handle_failed(),
                        Meaning::Gone => return because(Outcome::Gone, &error),
                        Meaning::Again | Meaning::Refused => {
                            return because(Outcome::Refused, &error);
                        }
                    },
                }
            }
            (SectorSet::EMPTY, search.damaged())
        }
    };
    spoil(&mut buf, &unknown);
    spoil(&mut buf, &damaged);
    let reply = because(Outcome::Done { unknown, damaged }, error);
    Reply { data: Data::Buf(buf), ..reply }
}

/// The end of a flush.
pub(crate) fn synced(result: io::Result<()>) -> Reply {
    let ended = |error: &io::Error| match meaning(Doing::Sync, error) {
        Meaning::Refused => Outcome::Refused,
        Meaning::Again | Meaning::Gone | Meaning::Failed => Outcome::Gone,
    };
    result.map_or_else(|error| because(ended(&error), &error), |()| Reply::bare(Outcome::GOOD))
}

/// It ended so because of what the machine said.
pub(crate) fn because(outcome: Outcome, error: &io::Error) -> Reply {
    Reply { reason: Some(error.to_string()), ..Reply::bare(outcome) }
}
