//! What runs the commands of one drive: one small trait, and the parts that all its implementations
//! share.
//!
//! ```text
//!   engine --- Order ---> backend (its own threads) --- Ended ---> the engine's channel
//! ```
//!
//! # Invariants
//!
//! - B1. Every order ends exactly once, as an [`Ended`] with the same name.
//! - B2. Pieces are dropped before the end is reported; a buffer lent for reading comes back with it.
//! - B3. Sectors named unknown or damaged come back overwritten, so that nobody uses them by mistake.

use std::fmt;
use std::io;
use std::str::FromStr;
use std::sync::Arc;

use levelhead_array::{Piece, SubId};
use levelhead_block::{Buf, Command, Durability, Effort, Health, Outcome, SectorSet};
use levelhead_drive::Faults;
use levelhead_units::{Extent, SECTOR_SIZE};
use rustix::io::Errno;

use crate::error::HostError;
use crate::medium::Medium;

/// A command on its way to a drive; its addresses are the drive's own.
#[derive(Debug)]
pub(crate) struct Order {
    pub(crate) sub: SubId,
    pub(crate) command: Command,
    pub(crate) payload: Payload,
    pub(crate) origin: u64,
}

/// The bytes of an order.
#[derive(Debug)]
pub(crate) enum Payload {
    None,
    /// Room for what is read.
    Fill(Buf),
    /// What is written.
    Pieces(Vec<Piece>),
}

/// The end of an order.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) sub: SubId,
    pub(crate) outcome: Outcome,
    pub(crate) buf: Option<Buf>,
    /// What the machine said where it refused.
    pub(crate) error: Option<io::Error>,
}

/// Takes the ends of one drive's orders, on any thread.
pub(crate) type Report = Arc<dyn Fn(Ended) + Send + Sync>;

/// A drive at work. Dropping it waits for what is under way.
pub(crate) trait Backend: Send {
    /// Starts an order. There are never more at a time than the window.
    fn submit(&mut self, order: Order);

    /// What the drive says about itself, if it says anything.
    fn health(&self) -> Option<Health> {
        None
    }

    /// How to make it misbehave, if that is possible.
    fn emulated(&mut self) -> Option<&mut dyn Emulated> {
        None
    }
}

/// A drive that misbehaves when told to.
pub(crate) trait Emulated {
    /// It has these faults from now on; they were checked.
    fn set_faults(&mut self, faults: Faults);

    /// It dies.
    fn die(&mut self);
}

/// How commands reach files and block devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Io {
    /// By io_uring where the kernel has it, by threads elsewhere.
    Best,
    /// By io_uring.
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
            HostError::new(format!("'{text}' is no way to do I/O: expected best, uring or threads"))
        })
    }
}

/// Fills what nobody may use.
const GARBAGE: u8 = 0xEE;

/// Carries an order's command out on `medium`, waiting for it.
pub(crate) fn carry_out(medium: &Medium, sub: SubId, command: &Command, payload: Payload) -> Ended {
    let (outcome, buf, error) = match (*command, payload) {
        (Command::Read { extent, effort }, Payload::Fill(mut buf)) => {
            let error = medium.read(extent.lba, buf.as_mut_slice()).err();
            let failed = |error| failed_read(medium, extent, effort, &mut buf, 0, error);
            (error.as_ref().map_or(Outcome::GOOD, failed), Some(buf), error)
        }
        (Command::Write { extent, durability, .. }, Payload::Pieces(pieces)) => {
            let written = medium.write_pieces(extent.lba, &pieces);
            drop(pieces); // B2
            let error = written.and_then(|()| settle(medium, durability)).err();
            let failed = |error| failed_write(extent, error);
            (error.as_ref().map_or(Outcome::GOOD, failed), None, error)
        }
        (Command::Flush, Payload::None) => {
            let error = medium.sync().err();
            (flushed(error.as_ref()), None, error)
        }
        // An array asks its drives for nothing else.
        (command, payload) => panic!("{command:?} came with {payload:?}"),
    };
    Ended { sub, outcome, buf, error }
}

/// Puts what was written where its durability wants it.
fn settle(medium: &Medium, durability: Durability) -> io::Result<()> {
    match durability {
        Durability::Cached => Ok(()),
        Durability::Durable => medium.sync(),
    }
}

/// The outcome of a read that failed after its first `moved` bytes, which are there. With less than
/// full effort no sector is ever called damaged: a drive that was told to stop (`ETIME`, where it has
/// command duration limits) has, and one that could not be told has tried as it always does.
pub(crate) fn failed_read(
    medium: &Medium,
    extent: Extent,
    effort: Effort,
    buf: &mut Buf,
    moved: usize,
    error: &io::Error,
) -> Outcome {
    if is_gone(error) {
        return Outcome::Gone;
    }
    let first = (moved / SECTOR_SIZE) as u32;
    let left = (0_u32..).zip(extent.iter()).skip(first as usize);
    let (unknown, damaged) = match effort {
        Effort::Fast | Effort::Limited(_) => {
            (left.map(|(offset, _)| offset).collect(), SectorSet::EMPTY)
        }
        // Which sectors it was, nobody said: each is asked for alone.
        Effort::Full => (
            SectorSet::EMPTY,
            left.filter_map(|(offset, lba)| {
                medium.read(lba, buf.part_mut(offset as usize, 1)).is_err().then_some(offset)
            })
            .collect(),
        ),
    };
    spoil(buf, &unknown);
    spoil(buf, &damaged);
    Outcome::Done { unknown, damaged }
}

/// The outcome of a write that the machine refused: none of it counts as written.
pub(crate) fn failed_write(extent: Extent, error: &io::Error) -> Outcome {
    if is_gone(error) {
        return Outcome::Gone;
    }
    Outcome::Done { unknown: SectorSet::EMPTY, damaged: SectorSet::first(extent.sectors) }
}

/// The outcome of a flush. After one that failed nobody knows which of the writes before it are
/// there: the drive cannot be believed any more.
pub(crate) fn flushed(error: Option<&io::Error>) -> Outcome {
    error.map_or(Outcome::GOOD, |_| Outcome::Gone)
}

/// Overwrites sectors that were not read.
pub(crate) fn spoil(buf: &mut Buf, sectors: &SectorSet) {
    for offset in sectors.iter() {
        buf.part_mut(offset as usize, 1).fill(GARBAGE);
    }
}

/// Whether the drive has gone, as opposed to having a bad sector.
fn is_gone(error: &io::Error) -> bool {
    let errno = error.raw_os_error();
    [Errno::NXIO, Errno::NODEV].iter().any(|gone| errno == Some(gone.raw_os_error()))
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::sync::mpsc::{self, Receiver};

    use levelhead_array::{BufId, Buffers, Place, Segment};
    use levelhead_block::ZeroTail;
    use levelhead_erasure::Kernel;
    use levelhead_stats::Streams;
    use levelhead_units::{Lba, Sectors};
    use tempfile::TempDir;

    use super::*;
    use crate::devices::fast::FastFail;
    use crate::medium::Transfer;
    use crate::threads::Threads;
    use crate::uring::{self, Uring};

    /// A file of eight sectors that has lost its last three since it was opened.
    fn cut_off() -> (TempDir, Medium) {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("a.img");
        Medium::create(&path, Sectors::new(8)).unwrap();
        let medium = Medium::open(&path, Transfer::Direct).unwrap();
        File::options().write(true).open(&path).unwrap().set_len(5 * 4096).unwrap();
        (dir, medium)
    }

    fn check_read(effort: Effort, unknown: &[u32], damaged: &[u32]) {
        let (_dir, medium) = cut_off();
        let extent = Extent::new(Lba::new(3), Sectors::new(4));
        let command = Command::Read { extent, effort };
        let payload = Payload::Fill(Buf::zeroed(extent.sectors));
        let Ended { outcome, buf, .. } = carry_out(&medium, SubId(1), &command, payload);
        let sets = [unknown, damaged].map(|set| set.iter().copied().collect());
        let [unknown, damaged]: [SectorSet; 2] = sets;
        for offset in unknown.iter().chain(damaged.iter()) {
            let sector = buf.as_ref().unwrap().part(offset as usize, 1);
            assert!(sector.iter().all(|&byte| byte == GARBAGE), "B3: sector {offset}");
        }
        assert_eq!(outcome, Outcome::Done { unknown, damaged });
    }

    #[test]
    fn refused_read_is_unknown_unless_everything_was_tried() {
        check_read(Effort::Fast, &[0, 1, 2, 3], &[]);
        check_read(Effort::Limited(levelhead_units::Nanos::from_secs(1)), &[0, 1, 2, 3], &[]);
        check_read(Effort::Full, &[], &[2, 3]);
    }

    /// Every kind of backend over one file; `None` where this machine does not have it.
    fn start(io: Io, medium: &Arc<Medium>) -> Option<(Box<dyn Backend>, Receiver<Ended>)> {
        let (sender, ended) = mpsc::channel();
        let report: Report = Arc::new(move |ended| drop(sender.send(ended)));
        let medium = Arc::clone(medium);
        let backend: Box<dyn Backend> = match (io, uring::check_available()) {
            (Io::Threads | Io::Best, _) => Box::new(Threads::start(&medium, 4, &report).unwrap()),
            (Io::Uring, Ok(())) => {
                let fast = Arc::new(FastFail::none("a file"));
                Box::new(Uring::start(medium, fast, 4, report).unwrap())
            }
            (Io::Uring, Err(error)) => {
                eprintln!("SKIPPED: {error}");
                return None;
            }
        };
        Some((backend, ended))
    }

    fn order(sub: u64, command: Command, payload: Payload) -> Order {
        Order { sub: SubId(sub), command, payload, origin: 0 }
    }

    /// A write of more pieces than the kernel takes at a time, from the last sector to the first.
    #[test]
    fn scattered_writes_are_read_back() {
        const COUNT: u32 = 1_027;
        for (io, durability) in [
            (Io::Threads, Durability::Cached),
            (Io::Uring, Durability::Cached),
            (Io::Threads, Durability::Durable),
            (Io::Uring, Durability::Durable),
        ] {
            let dir = TempDir::new().unwrap();
            let path = dir.path().join("a.img");
            let extent = Extent::new(Lba::new(2), Sectors::new(COUNT.into()));
            Medium::create(&path, Sectors::new(u64::from(COUNT) + 4)).unwrap();
            let medium = Arc::new(Medium::open(&path, Transfer::Direct).unwrap());
            let Some((mut backend, ended)) = start(io, &medium) else { continue };
            let mut bytes = Buf::zeroed(extent.sectors);
            Streams::new(1).stream("bytes").fill(bytes.as_mut_slice());
            let mut expected = Buf::zeroed(extent.sectors);
            for at in 0..COUNT as usize {
                expected.part_mut(COUNT as usize - 1 - at, 1).copy_from_slice(bytes.part(at, 1));
            }
            let mut buffers = Buffers::new(Kernel::best());
            let buf = BufId::Own(1);
            buffers.insert(buf, bytes);
            let segment = |sector| Segment { place: Place { buf, sector }, sectors: 1 };
            let segments: Vec<Segment> = (0..COUNT).rev().map(segment).collect();
            let pieces = Payload::Pieces(buffers.share(&segments));
            let write = Command::Write { extent, durability, zero_tail: ZeroTail::None };
            backend.submit(order(1, write, pieces));
            let Ended { sub, outcome, .. } = ended.recv().unwrap();
            assert_eq!((sub, outcome), (SubId(1), Outcome::GOOD), "{io}");
            drop(buffers.remove(buf)); // B2: it would panic if the backend still had a piece.
            backend.submit(order(2, Command::Flush, Payload::None));
            assert_eq!(ended.recv().unwrap().outcome, Outcome::GOOD, "{io}");
            let read = Command::Read { extent, effort: Effort::Full };
            backend.submit(order(3, read, Payload::Fill(Buf::zeroed(extent.sectors))));
            let Ended { outcome, buf, .. } = ended.recv().unwrap();
            assert_eq!(outcome, Outcome::GOOD, "{io}");
            assert!(buf.unwrap().as_slice() == expected.as_slice(), "{io}");
        }
    }

    #[test]
    fn every_backend_tells_the_sectors_that_cannot_be_read() {
        for io in [Io::Threads, Io::Uring] {
            let (_dir, medium) = cut_off();
            let Some((mut backend, ended)) = start(io, &Arc::new(medium)) else { continue };
            let extent = Extent::new(Lba::new(3), Sectors::new(4));
            for effort in [Effort::Full, Effort::Fast] {
                let read = Command::Read { extent, effort };
                backend.submit(order(1, read, Payload::Fill(Buf::zeroed(extent.sectors))));
                let Ended { outcome, buf, .. } = ended.recv().unwrap();
                // Of less than full effort, the ring knows how far it came.
                let first = if io == Io::Uring { 2 } else { 0 };
                let (unknown, damaged) = match effort {
                    Effort::Full => (SectorSet::EMPTY, [2, 3].into_iter().collect()),
                    _ => ((first..4).collect(), SectorSet::EMPTY),
                };
                assert_eq!(outcome, Outcome::Done { unknown, damaged }, "{io}");
                assert!(buf.unwrap().part(3, 1).iter().all(|&byte| byte == GARBAGE), "{io}");
            }
        }
    }

    #[test]
    fn ways_to_do_io_read_back_as_they_are_printed() {
        for (io, name) in Io::ALL {
            assert_eq!((io.to_string().as_str(), name.parse()), (name, Ok(io)));
        }
        let error = "aio".parse::<Io>().unwrap_err().to_string();
        assert_eq!(error, "'aio' is no way to do I/O: expected best, uring or threads");
    }

    #[test]
    fn error_decides_between_a_bad_sector_and_a_drive_that_is_gone() {
        let extent = Extent::new(Lba::ZERO, Sectors::new(2));
        for errno in [Errno::NXIO, Errno::NODEV] {
            assert_eq!(failed_write(extent, &errno.into()), Outcome::Gone);
            let (_dir, medium) = cut_off();
            let mut buf = Buf::zeroed(extent.sectors);
            let outcome = failed_read(&medium, extent, Effort::Fast, &mut buf, 0, &errno.into());
            assert_eq!(outcome, Outcome::Gone);
        }
        let damaged = SectorSet::first(extent.sectors);
        let expected = Outcome::Done { unknown: SectorSet::EMPTY, damaged };
        assert_eq!(failed_write(extent, &Errno::IO.into()), expected);
        assert_eq!(flushed(Some(&Errno::IO.into())), Outcome::Gone);
    }
}
