//! What runs the commands of one drive apart from the engine: a [`BlockService`] like any other, and the
//! little that an engine asks of it besides. Files and devices behind a ring are the engine's own.
//!
//! ```text
//!   engine --- Request, Done ---> member (queue, window, threads of its own) --- Reply ---> Done
//! ```
//!
//! # Invariants
//!
//! - M1. Every request is answered exactly once, also more of them at a time than the window: the rest
//!   waits inside the member, first come, first served.
//! - M2. The pieces of a write are dropped before it is answered; room for a read comes back with the
//!   answer unless the drive is gone or has refused.
//! - M3. Sectors named unknown or damaged come back overwritten, so that they cannot be used by mistake.

use std::fmt;
use std::str::FromStr;

use levelhead_block::{BlockService, Buf, Command, Data, Done, Health, Payload, Reply, Request};
use levelhead_drive::{Faults, VerifyCounters};
use levelhead_units::Sectors;

use crate::error::HostError;

/// A drive at work; addresses are the drive's own. Dropping it waits for what is under way.
pub(crate) trait Member: BlockService {
    /// What the drive says about itself, if it says anything.
    fn health(&self) -> Option<Health> {
        None
    }

    /// How to make it misbehave, if that is possible.
    fn emulated(&self) -> Option<&dyn Emulated> {
        None
    }

    /// How to see that it must not be used any more although it answers, if that can be seen.
    fn look(&self) -> Option<Look> {
        None
    }
}

/// Says why a drive must not be used any more, if there is a reason. May take as long as a read, and hang as one
/// may: so it is for a [`Watch`](crate::watch::Watch).
pub(crate) type Look = Box<dyn Fn() -> Option<String> + Send>;

/// What a drive is asked for such a request: a flush, a write with its pieces (zeroes are spelled out), or
/// a read with room. Nothing where no drive is needed and all is good as it is.
///
/// Panics if the command is past the end of `size` sectors.
pub(crate) fn prepare(size: Sectors, request: Request) -> Option<Request> {
    let command = request.command;
    assert!(command.fits(size), "{command:?} is past the drive's end");
    let is_empty = command.extent().is_some_and(|extent| extent.sectors == Sectors::ZERO);
    match command {
        // What was trimmed may stay.
        Command::Trim { .. } => None,
        _ if is_empty => None,
        Command::Read { extent, .. } => {
            let room = |payload| match payload {
                Payload::Room(buf) => Payload::Room(buf),
                Payload::None | Payload::Pieces(_) => Payload::Room(Buf::zeroed(extent.sectors)),
            };
            Some(Request { payload: room(request.payload), ..request })
        }
        Command::Write { .. } | Command::WriteZeroes { .. } | Command::Flush => {
            Some(request.spelled_out())
        }
    }
}

/// The same, where `done` is called at once if no drive is needed.
pub(crate) fn prepared(size: Sectors, request: Request, done: Done) -> Option<(Request, Done)> {
    let Some(request) = prepare(size, request) else {
        done(Reply::good(Data::None));
        return None;
    };
    Some((request, done))
}

/// A drive that misbehaves when told to.
pub(crate) trait Emulated {
    /// It has these faults from now on; they were checked.
    fn set_faults(&self, faults: Faults);

    /// It dies.
    fn die(&self);

    /// It is told to stop: everything inside ends, and what is in its memory goes to its medium. Returns when that is
    /// over.
    fn wind_up(&self);

    /// What it has read back so far; nothing if its thread has ended.
    fn verified(&self) -> Option<VerifyCounters>;
}

/// How commands reach files and block devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Io {
    /// Files in memory at once, by the engine's own thread; all others by io_uring where the kernel has it, and
    /// by threads elsewhere.
    Best,
    /// By io_uring, one for all drives of an array.
    Uring,
    /// By a few threads for every drive.
    Threads,
}

impl Io {
    const ALL: [(Self, &'static str); 3] =
        [(Self::Best, "best"), (Self::Uring, "uring"), (Self::Threads, "threads")];
}

impl fmt::Display for Io {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::ALL.iter().find(|(io, _)| io == self).map_or("", |(_, name)| name))
    }
}

impl FromStr for Io {
    type Err = HostError;

    fn from_str(text: &str) -> Result<Self, HostError> {
        let found = Self::ALL.iter().find(|(_, name)| *name == text);
        found.map(|(io, _)| *io).ok_or_else(|| {
            HostError::new(format!(
                "'{text}' is not an I/O method: expected best, uring or threads"
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::path::Path;
    use std::sync::Arc;

    use levelhead_block::adapter::Waiting;
    use levelhead_block::conformance::{SuiteSettings, check_device, check_service};
    use levelhead_block::crash::Crash;
    use levelhead_block::faulty::{Faults as ReadFaults, Faulty};
    use levelhead_block::{BlockDevice, Durability, Effort, Outcome, Piece, SectorSet};
    use levelhead_bytes::GARBAGE;
    use levelhead_stats::Streams;
    use levelhead_units::{Extent, Lba, Ratio};
    use rustix::io::Errno;
    use tempfile::TempDir;

    use super::*;
    use crate::clock::Clock;
    use crate::devices::ways::ReadWays;
    use crate::doubles::{Flawed, Heard, commands, fates};
    use crate::emulated::EmulatedDrive;
    use crate::medium::{Medium, Shared, Transfer};
    use crate::member::MemberSpec;
    use crate::threads::Threads;
    use crate::uring;
    use crate::uring::alone::Uring;

    /// More requests at a time than this come in a batch.
    const WINDOW: u32 = 3;

    const SETTINGS: SuiteSettings =
        SuiteSettings { seed: 5, requests: 400, sectors_max: 9, batch_max: 12 };

    fn file(path: &Path, sectors: u64, transfer: Transfer) -> Arc<Medium> {
        Medium::create(path, Sectors::new(sectors)).unwrap();
        Arc::new(Medium::open(path, transfer).unwrap())
    }

    /// Every kind of member over a file; without the ring where this machine does not have it.
    fn members(dir: &TempDir, sectors: u64) -> Vec<(&'static str, Box<dyn Member>)> {
        let direct = |name: &str| file(&dir.path().join(name), sectors, Transfer::Direct);
        let cached = |name: &str| Shared(file(&dir.path().join(name), sectors, Transfer::Cached));
        let mut members: Vec<(&'static str, Box<dyn Member>)> = vec![
            ("threads", Box::new(Threads::start(Shared(direct("threads.img")), WINDOW).unwrap())),
            ("emulated", Box::new(emulated("", cached("emulated.img")))),
            ("with memory", Box::new(emulated("cache=write-back", cached("memory.img")))),
        ];
        match uring::check_available() {
            Ok(()) => {
                let ways = Arc::new(ReadWays::none("a file"));
                let ring = Uring::start(direct("uring.img"), ways, WINDOW).unwrap();
                members.push(("uring", Box::new(ring)));
            }
            Err(error) => eprintln!("SKIPPED: {error}"),
        }
        members
    }

    fn emulated<D: crate::medium::Disk>(options: &str, disk: D) -> EmulatedDrive<D> {
        let member: MemberSpec = format!("emu:a.img?{options}").parse().unwrap();
        let model = member.model(disk.size(), WINDOW, "drive/0").unwrap().unwrap();
        EmulatedDrive::start(&model, disk, Clock::start()).unwrap()
    }

    fn run(member: &Arc<Box<dyn Member>>, request: Request) -> Reply {
        Waiting::new(Arc::clone(member)).run(vec![request]).pop().unwrap()
    }

    impl BlockService for Box<dyn Member> {
        fn size(&self) -> Sectors {
            (**self).size()
        }

        fn submit(&self, request: Request, done: Done) {
            (**self).submit(request, done);
        }
    }

    #[test]
    fn every_member_conforms() {
        let dir = TempDir::new().unwrap();
        for (name, member) in members(&dir, 64) {
            let requests = if name == "threads" || name == "uring" { 400 } else { 40 };
            check_service(Arc::new(member), SuiteSettings { requests, ..SETTINGS });
        }
    }

    #[test]
    fn decorators_over_a_file_conform() {
        let dir = TempDir::new().unwrap();
        let faults = ReadFaults { soft: Ratio::new(0.5).unwrap(), hard: Ratio::ZERO };
        let rng = Streams::new(1).stream("faults");
        let threads = |name: &str| {
            let disk = Shared(file(&dir.path().join(name), 64, Transfer::Direct));
            Waiting::new(Arc::new(Threads::start(disk, WINDOW).unwrap()))
        };
        check_device(&mut Faulty::new(threads("faulty.img"), faults, rng), SETTINGS);
        check_device(&mut Crash::new(threads("crash.img")), SETTINGS);
    }

    /// A write of more pieces than the kernel takes at a time, from the last sector to the first.
    #[test]
    fn scattered_writes_are_read_back() {
        const COUNT: u32 = 1_027;
        let extent = Extent::new(Lba::new(2), Sectors::new(COUNT.into()));
        let dir = TempDir::new().unwrap();
        for (name, member) in members(&dir, u64::from(COUNT) + 4) {
            let member = Arc::new(member);
            for durability in [Durability::Cached, Durability::Durable] {
                let mut bytes = Buf::zeroed(extent.sectors);
                Streams::new(durability as u64).stream("bytes").fill(bytes.as_mut_slice());
                let bytes = Arc::new(bytes);
                let whole = Piece::whole(Arc::clone(&bytes));
                let pieces: Vec<Piece> = (0..COUNT).rev().map(|at| whole.part(at, 1)).collect();
                drop(whole);
                let reply = run(&member, Request::write_pieces(extent, durability, pieces));
                assert_eq!(reply.outcome, Outcome::GOOD, "{name}");
                assert_eq!(Arc::strong_count(&bytes), 1, "M2: {name}");
                assert!(run(&member, Request::bare(Command::Flush)).outcome.is_good(), "{name}");
                let reply = run(&member, Request::read(extent, Effort::Full));
                assert_eq!(reply.outcome, Outcome::GOOD, "{name}");
                let read = reply.data.into_buf();
                for at in 0..COUNT as usize {
                    assert!(read.part(COUNT as usize - 1 - at, 1) == bytes.part(at, 1), "{name}");
                }
            }
        }
    }

    #[test]
    fn sectors_that_cannot_be_read_are_unknown_unless_everything_was_tried() {
        let extent = Extent::new(Lba::new(3), Sectors::new(4));
        let set = |offsets: &[u32]| -> SectorSet { offsets.iter().copied().collect() };
        for (effort, unknown, damaged) in [
            (Effort::Fast, set(&[0, 1, 2, 3]), SectorSet::EMPTY),
            (Effort::Limited(levelhead_units::Nanos::from_secs(1)), set(&[0, 1, 2, 3]), set(&[])),
            (Effort::Full, SectorSet::EMPTY, set(&[2, 3])),
        ] {
            let disk = || Flawed::new(8).with_bad(5..8);
            let members: [Box<dyn Member>; 2] =
                [Box::new(Threads::start(disk(), WINDOW).unwrap()), Box::new(emulated("", disk()))];
            for member in members {
                let reply = run(&Arc::new(member), Request::read(extent, effort));
                for offset in unknown.iter().chain(damaged.iter()) {
                    let buf = match &reply.data {
                        Data::Buf(buf) => buf,
                        other => panic!("{other:?}"),
                    };
                    let sector = buf.part(offset as usize, 1);
                    assert!(sector.iter().all(|&byte| byte == GARBAGE), "M3: sector {offset}");
                }
                let (unknown, damaged) = (unknown.clone(), damaged.clone());
                assert_eq!(reply.outcome, Outcome::Done { unknown, damaged });
                assert!(reply.reason.is_some_and(|reason| reason.contains("os error 5")));
            }
        }
    }

    #[test]
    fn every_error_of_the_machine_means_what_the_table_says() {
        for fate in fates() {
            let disk = Flawed::new(8);
            let errno = Some(fate.errno);
            {
                let mut flaws = disk.flaws();
                (flaws.read, flaws.write, flaws.sync) = (errno, errno, errno);
            }
            let threads = Threads::start(disk.clone(), WINDOW).unwrap();
            let emulated = emulated("", disk);
            let members: [(&str, Box<dyn Member>); 2] =
                [("threads", Box::new(threads)), ("emulated", Box::new(emulated))];
            for (name, member) in members {
                let member = Arc::new(member);
                for (request, expected) in commands(fate) {
                    let command = request.command;
                    if name == "emulated" && command == Command::Flush {
                        continue; // What it has flushed may be in the page cache.
                    }
                    let reply = run(&member, request);
                    let heard = Heard::from(&reply.outcome);
                    assert_eq!(heard, expected, "{name}: {command:?} and {:?}", fate.errno);
                    let reason = std::io::Error::from(fate.errno).to_string();
                    assert_eq!(reply.reason, Some(reason), "{name}: {command:?}");
                }
            }
        }
    }

    /// What failed then may have been answered long ago, so that drive is gone whatever the error.
    #[test]
    fn memory_that_the_file_does_not_take_is_a_drive_that_is_gone() {
        for errno in [Errno::NOSPC, Errno::IO] {
            let disk = Flawed::new(8);
            let member = emulated("cache=write-back", disk.clone());
            let member: Arc<Box<dyn Member>> = Arc::new(Box::new(member));
            let extent = Extent::new(Lba::ZERO, Sectors::new(2));
            let write = Request::write(extent, Durability::Cached, Buf::zeroed(extent.sectors));
            assert!(run(&member, write).outcome.is_good());
            disk.flaws().write = Some(errno);
            for _ in 0..2 {
                let reply = run(&member, Request::bare(Command::Flush));
                assert_eq!(reply.outcome, Outcome::Gone);
            }
        }
    }

    #[test]
    fn bad_sector_is_found_by_halving() {
        let disk = Flawed::new(64).with_bad([37]);
        let member = Threads::start(disk.clone(), WINDOW).unwrap();
        let extent = Extent::new(Lba::ZERO, Sectors::new(64));
        let reply = run(&Arc::new(Box::new(member)), Request::read(extent, Effort::Full));
        let (unknown, damaged) = (SectorSet::EMPTY, [37].into_iter().collect());
        assert_eq!(reply.outcome, Outcome::Done { unknown, damaged });
        assert_eq!(disk.flaws().reads.len(), 1 + 12);
        let values = reply.data.into_buf();
        for at in (0..64).filter(|&at| at != 37) {
            assert!(values.part(at, 1).iter().all(|&byte| byte == at as u8), "W4: sector {at}");
        }
    }

    fn loss(member: &Arc<Box<dyn Member>>) -> Option<String> {
        member.look().expect("each of these can be looked at")()
    }

    /// What was cut off is lost: it is neither read as zeroes nor brought back as such by a write.
    #[test]
    fn file_that_becomes_shorter_is_a_drive_that_is_gone() {
        let extent = |lba, sectors| Extent::new(Lba::new(lba), Sectors::new(sectors));
        let write = |at| Request::write(at, Durability::Cached, Buf::zeroed(at.sectors));
        // Within a sector as well: direct transfers meet that end in another way.
        for cut_to in [5 * 4096, 5 * 4096 + 100] {
            let dir = TempDir::new().unwrap();
            for (name, member) in members(&dir, 8) {
                let member = Arc::new(member);
                assert_eq!(loss(&member), None, "{name}");
                let path = dir.path().join(match name {
                    "with memory" => "memory.img".to_owned(),
                    name => format!("{name}.img"),
                });
                let file = File::options().write(true).open(&path).unwrap();
                file.set_len(cut_to).unwrap();
                // What a drive with memory has taken is not in the file yet.
                if name != "with memory" {
                    let reply = run(&member, write(extent(6, 2)));
                    assert_eq!(reply.outcome, Outcome::Gone, "{name}");
                    assert_eq!(file.metadata().unwrap().len(), cut_to, "{name} made it longer");
                }
                for effort in [Effort::Full, Effort::Fast] {
                    let reply = run(&member, Request::read(extent(3, 4), effort));
                    assert_eq!(reply.outcome, Outcome::Gone, "{name}");
                    let expected = format!("it has become shorter, from 32768 bytes to {cut_to}");
                    assert_eq!(reply.reason, Some(expected.clone()), "{name}");
                    assert_eq!(loss(&member), Some(expected), "{name}");
                }
                file.set_len(8 * 4096).unwrap();
                assert!(loss(&member).is_some(), "{name}: what came back are zeroes");
            }
        }
    }

    #[test]
    fn ways_to_do_io_read_back_as_they_are_printed() {
        for (io, name) in Io::ALL {
            assert_eq!((io.to_string().as_str(), name.parse()), (name, Ok(io)));
        }
        let error = "aio".parse::<Io>().unwrap_err().to_string();
        assert_eq!(error, "'aio' is not an I/O method: expected best, uring or threads");
    }
}
