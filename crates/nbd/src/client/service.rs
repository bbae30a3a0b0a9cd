//! The client as a block service: commands to requests, errors to outcomes.
//!
//! A read that failed is *damaged* at full effort and *unknown* below (NBD carries no effort, so the
//! server tried as hard as it does for every client); a write that failed is damaged. A failed flush
//! leaves nothing to rely on and counts as gone, as does a server that is about to end. A server
//! without space or memory has refused. A trim that failed is fine: the content was not needed.

use levelhead_block::{
    BlockService, Buf, Command, Data, Done, Effort, Outcome, Payload, Reply, Request, SectorSet,
};
use levelhead_units::{Extent, SECTOR_SIZE, Sectors};

use super::operation::{Ask, Ended, Memory, Trouble};
use super::{Client, flags};
use crate::codec::{CommandFlags, CommandKind, Errno};

const SECTOR: u64 = SECTOR_SIZE as u64;

impl BlockService for Client {
    /// The whole sectors of the export; bytes after them can be reached with
    /// [`Client::read_at`] alone.
    fn size(&self) -> Sectors {
        self.size_bytes().sectors_floor()
    }

    fn submit(&self, request: Request, done: Done) {
        self.run(request, Box::new(|reply, _source| done(reply)));
    }
}

/// Where the reply to a request comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    Server,
    /// There was no answer: the connection was lost, or the server is about to end.
    Loss,
}

/// What to call when a request has ended.
pub(super) type Told = Box<dyn FnOnce(Reply, Source) + Send>;

impl Client {
    /// Submits a request.
    pub(super) fn run(&self, request: Request, told: Told) {
        let Request { command, payload, .. } = request;
        assert!(command.fits(self.size()), "{command:?} past the end");
        let memory = match (&command, payload) {
            (Command::Read { extent, .. }, Payload::None) => {
                Memory::Sectors(Buf::zeroed(extent.sectors))
            }
            (_, Payload::None) => Memory::None,
            (_, Payload::Room(buf)) => Memory::Sectors(buf),
            (_, Payload::Pieces(pieces)) => Memory::Pieces(pieces),
        };
        let finish = move |Ended { memory, troubles }: Ended| {
            let data = match memory {
                Memory::Sectors(buf) => Data::Buf(buf),
                Memory::Pieces(pieces) => {
                    drop(pieces);
                    Data::None
                }
                Memory::None => Data::None,
                Memory::Bytes(_) => panic!("sectors were lent, bytes came back"),
            };
            let reason = troubles.first().map(reason);
            let source = if troubles.iter().any(is_loss) { Source::Loss } else { Source::Server };
            told(Reply { outcome: outcome(&command, &troubles), data, reason }, source);
        };
        self.start(ask(&command), memory, Box::new(finish));
    }
}

/// Whether it is not known what the server has done, because it does not answer any more.
fn is_loss(trouble: &Trouble) -> bool {
    match trouble {
        Trouble::Lost(_) => true,
        Trouble::Failed { error, .. } => *error == Errno::ShuttingDown,
    }
}

fn ask(command: &Command) -> Ask {
    let about = |kind, flags, Extent { lba, sectors }: Extent| Ask {
        kind,
        flags,
        offset: lba.get() * SECTOR,
        length: sectors.bytes().get(),
    };
    match *command {
        Command::Read { extent, .. } => about(CommandKind::Read, CommandFlags::NONE, extent),
        Command::Write { extent, durability, .. } => {
            about(CommandKind::Write, flags(durability), extent)
        }
        Command::WriteZeroes { extent, durability } => {
            about(CommandKind::WriteZeroes, flags(durability), extent)
        }
        Command::Trim { extent } => about(CommandKind::Trim, CommandFlags::NONE, extent),
        Command::Flush => {
            Ask { kind: CommandKind::Flush, flags: CommandFlags::NONE, offset: 0, length: 0 }
        }
    }
}

fn outcome(command: &Command, troubles: &[Trouble]) -> Outcome {
    if troubles.iter().any(is_loss) {
        return Outcome::Gone;
    }
    let refused = |trouble: &Trouble| match trouble {
        Trouble::Lost(_) => false,
        Trouble::Failed { error, .. } => [Errno::NoSpace, Errno::NoMemory].contains(error),
    };
    if troubles.iter().any(refused) && !matches!(command, Command::Flush | Command::Trim { .. }) {
        return Outcome::Refused;
    }
    let failed: SectorSet = troubles.iter().flat_map(sectors).collect();
    let (unknown, damaged) = match command {
        Command::Read { effort: Effort::Fast | Effort::Limited(_), .. } => {
            (failed, SectorSet::EMPTY)
        }
        Command::Read { effort: Effort::Full | Effort::Medium, .. }
        | Command::Write { .. }
        | Command::WriteZeroes { .. } => (SectorSet::EMPTY, failed),
        Command::Trim { .. } => return Outcome::GOOD,
        Command::Flush if troubles.is_empty() => return Outcome::GOOD,
        Command::Flush => return Outcome::Gone,
    };
    Outcome::Done { unknown, damaged }
}

/// What went wrong, for people.
fn reason(trouble: &Trouble) -> String {
    match trouble {
        Trouble::Lost(why) => format!("the connection to the NBD server was lost: {why}"),
        Trouble::Failed { error, .. } => {
            let error = std::io::Error::from_raw_os_error(error.to_wire() as i32);
            format!("the NBD server answered: {error}")
        }
    }
}

/// The sectors of a part that failed, by their place in the operation.
fn sectors(trouble: &Trouble) -> std::ops::Range<u32> {
    let place = |byte: u64| u32::try_from(byte / SECTOR).expect("an operation has 2^32 sectors");
    match trouble {
        Trouble::Failed { bytes, .. } => place(bytes.start)..place(bytes.end),
        Trouble::Lost(_) => 0..0,
    }
}

#[cfg(test)]
mod tests {
    use levelhead_block::{Durability, ZeroTail};
    use levelhead_units::Lba;

    use super::*;

    const EXTENT: Extent = Extent::new(Lba::new(5), Sectors::new(8));

    fn failed(error: Errno) -> [Trouble; 1] {
        [Trouble::Failed { bytes: 4096..12_288, error }]
    }

    #[test]
    fn failed_part_marks_its_sectors_by_effort() {
        let set: SectorSet = [1, 2].into_iter().collect();
        for (effort, unknown, damaged) in [
            (Effort::Fast, set.clone(), SectorSet::EMPTY),
            (Effort::Full, SectorSet::EMPTY, set.clone()),
        ] {
            let command = Command::Read { extent: EXTENT, effort };
            let expected = Outcome::Done { unknown, damaged };
            assert_eq!(outcome(&command, &failed(Errno::Io)), expected);
        }
        let (durability, zero_tail) = (Durability::Cached, ZeroTail::None);
        let write = Command::Write { extent: EXTENT, durability, zero_tail };
        let expected = Outcome::Done { unknown: SectorSet::EMPTY, damaged: set };
        assert_eq!(outcome(&write, &failed(Errno::Io)), expected);
    }

    #[test]
    fn server_without_room_has_refused() {
        let command = Command::WriteZeroes { extent: EXTENT, durability: Durability::Cached };
        for error in [Errno::NoSpace, Errno::NoMemory] {
            assert_eq!(outcome(&command, &failed(error)), Outcome::Refused);
            // What of the writes before it is safe is not known: it cannot just be sent again.
            assert_eq!(outcome(&Command::Flush, &failed(error)), Outcome::Gone);
        }
    }

    #[test]
    fn lost_connections_and_failed_flushes_are_gone_and_failed_trims_are_fine() {
        let read = Command::Read { extent: EXTENT, effort: Effort::Full };
        assert_eq!(outcome(&read, &[Trouble::Lost("it was cut".into())]), Outcome::Gone);
        assert_eq!(outcome(&read, &failed(Errno::ShuttingDown)), Outcome::Gone);
        assert_eq!(outcome(&Command::Flush, &failed(Errno::Io)), Outcome::Gone);
        let trim = Command::Trim { extent: EXTENT };
        assert_eq!(outcome(&trim, &failed(Errno::NotSupported)), Outcome::GOOD);
    }
}
