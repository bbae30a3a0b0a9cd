//! The client as a block service: commands to requests, errors to outcomes.
//!
//! A read that failed is *damaged* at full effort and *unknown* below (NBD carries no effort, so the
//! server tried as hard as it does for anybody); a write that failed is damaged. A failed flush
//! leaves nothing to rely on and counts as gone, as does a server that is about to end. A refused
//! trim is fine: the content was not needed.

use levelhead_block::{BlockService, Command, Done, Effort, Outcome, Reply, Request, SectorSet};
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
        let Request { command, buf } = request;
        assert!(command.fits(self.size()), "{command:?} past the end");
        let finish = move |Ended { memory, troubles }: Ended| {
            let Memory::Sectors(buf) = memory else { panic!("sectors were lent, bytes came back") };
            done(Reply { outcome: outcome(&command, &troubles), buf });
        };
        self.start(ask(&command), Memory::Sectors(buf), Box::new(finish));
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
    let gone = |trouble: &Trouble| match trouble {
        Trouble::Lost => true,
        Trouble::Failed { error, .. } => *error == Errno::ShuttingDown,
    };
    if troubles.iter().any(gone) {
        return Outcome::Gone;
    }
    let failed: SectorSet = troubles.iter().flat_map(sectors).collect();
    let (unknown, damaged) = match command {
        Command::Read { effort: Effort::Fast | Effort::Limited(_), .. } => {
            (failed, SectorSet::EMPTY)
        }
        Command::Read { effort: Effort::Full, .. }
        | Command::Write { .. }
        | Command::WriteZeroes { .. } => (SectorSet::EMPTY, failed),
        Command::Trim { .. } => return Outcome::GOOD,
        Command::Flush if troubles.is_empty() => return Outcome::GOOD,
        Command::Flush => return Outcome::Gone,
    };
    Outcome::Done { unknown, damaged }
}

/// The sectors of a part that failed, by their place in the operation.
fn sectors(trouble: &Trouble) -> std::ops::Range<u32> {
    let place = |byte: u64| u32::try_from(byte / SECTOR).expect("an operation has 2^32 sectors");
    match trouble {
        Trouble::Failed { bytes, .. } => place(bytes.start)..place(bytes.end),
        Trouble::Lost => 0..0,
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
        assert_eq!(outcome(&write, &failed(Errno::NoSpace)), expected);
    }

    #[test]
    fn lost_connections_and_failed_flushes_are_gone_and_failed_trims_are_fine() {
        let read = Command::Read { extent: EXTENT, effort: Effort::Full };
        assert_eq!(outcome(&read, &[Trouble::Lost]), Outcome::Gone);
        assert_eq!(outcome(&read, &failed(Errno::ShuttingDown)), Outcome::Gone);
        assert_eq!(outcome(&Command::Flush, &failed(Errno::Io)), Outcome::Gone);
        let trim = Command::Trim { extent: EXTENT };
        assert_eq!(outcome(&trim, &failed(Errno::NotSupported)), Outcome::GOOD);
    }
}
