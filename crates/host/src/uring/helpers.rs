//! Threads that wait for SCSI commands, which a ring cannot take: one for each disk that has reads from the
//! medium, so that a disk that hangs holds up its own alone.
//!
//! ```text
//!   ring --- order ---> helper of the disk: SG_IO --- record of its end ---> pipe, which the ring reads
//! ```
//!
//! A disk whose limit of error recovery is changed has a thread of its own for that
//! ([`erc`](crate::devices::erc)), which writes to the same pipe.
//!
//! # Invariants
//!
//! - H1. A disk has at most its window of orders, so no channel grows, and the pipe takes a record of each.
//! - H2. A record goes into the pipe at once and as a whole, and a ring reads a multiple of records.
//! - H3. Nothing waits for a helper to end: it does when its channel has ended and its disk has answered.

use std::collections::BTreeMap;
use std::io::{self, PipeReader, PipeWriter, Write};
use std::os::fd::RawFd;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};

use rustix::io::Errno;

use super::Under;
use crate::devices::erc::{DriveLimit, Recovered, Waiting};
use crate::devices::forced::Forced;

/// Bytes of a record: the step's name and its result.
pub(super) const RECORD_LEN: usize = 16;

/// See the module.
pub(super) struct Helpers {
    by_drive: BTreeMap<RawFd, Sender<Order>>,
    pipe: Arc<PipeWriter>,
}

/// A read.
struct Order {
    name: u64,
    offset: u64,
    start: *mut u8,
    len: usize,
}

// SAFETY: the memory belongs to a flight, and nothing else looks at it (U1).
unsafe impl Send for Order {}

impl Helpers {
    /// The helpers of these drives and the pipe that they write to; nothing if none needs one. A drive for
    /// which no thread is to be had does without such reads.
    pub(super) fn start(drives: &[Arc<Under>]) -> io::Result<Option<(Self, PipeReader)>> {
        let needs_one = |under: &Arc<Under>| {
            under.ways.forced().is_some() || under.ways.drive_limit().is_some()
        };
        if !drives.iter().any(needs_one) {
            return Ok(None);
        }
        let (reader, pipe) = io::pipe()?;
        let pipe = Arc::new(pipe);
        let mut by_drive = BTreeMap::new();
        for under in drives {
            let Some(forced) = under.ways.forced().map(Arc::clone) else { continue };
            let (sender, orders) = mpsc::channel();
            let pipe = Arc::clone(&pipe);
            // Not the drive itself: no other program may have that for as long as it is open.
            let work = move || work(&orders, &forced, &pipe);
            match std::thread::Builder::new().name("medium".into()).spawn(work) {
                Ok(_) => drop(by_drive.insert(under.medium.raw_fd(), sender)),
                Err(_) => under.ways.refuse_medium(),
            }
        }
        Ok(Some((Self { by_drive, pipe }, reader)))
    }

    /// Has the room filled from this byte of the drive on.
    ///
    /// # Safety
    ///
    /// U1: the room is neither moved nor freed nor looked at until the step has ended.
    pub(super) unsafe fn send(&self, drive: RawFd, name: u64, offset: u64, room: &mut [u8]) {
        let helper = self.by_drive.get(&drive).expect("without a helper there are no such reads");
        let order = Order { name, offset, start: room.as_mut_ptr(), len: room.len() };
        assert!(helper.send(order).is_ok(), "a helper lives as long as the ring that it writes to");
    }

    /// Has a drive's own limit of error recovery put back. The step's result is below zero where that is not certain.
    pub(super) fn recover(&self, limit: &DriveLimit, name: u64) {
        let pipe = Arc::clone(&self.pipe);
        limit.wait(Waiting::new(move |recovered| {
            let result = match recovered {
                Recovered::Own => 0,
                Recovered::Perhaps => -Errno::IO.raw_os_error(),
            };
            // A ring that is gone needs no end.
            drop(tell(&pipe, name, result));
        }));
    }

    /// The helper of this drive ends.
    pub(super) fn release(&mut self, drive: RawFd) {
        self.by_drive.remove(&drive);
    }

    /// The steps that have ended, with their results, in what a pipe gave.
    pub(super) fn ends(bytes: &[u8]) -> impl Iterator<Item = (u64, i32)> {
        bytes.as_chunks::<RECORD_LEN>().0.iter().map(|record| {
            let record = u128::from_ne_bytes(*record);
            (record as u64, (record >> 64) as i32)
        })
    }
}

/// Tells the ring of the end of a step (H2).
fn tell(mut pipe: &PipeWriter, name: u64, result: i32) -> io::Result<()> {
    let record = u128::from(name) | u128::from(result as u32) << 64;
    pipe.write_all(&record.to_ne_bytes())
}

fn work(orders: &Receiver<Order>, forced: &Forced, pipe: &PipeWriter) {
    while let Ok(Order { name, offset, start, len }) = orders.recv() {
        // SAFETY: U1: it is the flight's memory, and the flight waits for the record.
        let room = unsafe { std::slice::from_raw_parts_mut(start, len) };
        let result = match forced.read(offset, room) {
            Ok(len) => i32::try_from(len).expect("a read has less than 2 GiB"),
            Err(errno) => -errno.raw_os_error(),
        };
        if tell(pipe, name, result).is_err() {
            return; // The ring is gone.
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::mpsc::channel;

    use levelhead_array::Promise;
    use levelhead_block::{BlockService, Effort, Outcome, Reply, Request};
    use levelhead_units::{Extent, Lba, SECTOR_SIZE, Sectors};
    use tempfile::TempDir;

    use super::*;
    use crate::devices::Access;
    use crate::devices::forced::Blocks;
    use crate::devices::nvme::{Passthrough, Queue};
    use crate::devices::scsi::{Answer, Data};
    use crate::devices::ways::ReadWays;
    use crate::medium::{Medium, Transfer};
    use crate::uring::alone::Uring;
    use crate::uring::check_available;

    /// A disk whose sectors hold the low byte of their number, plus 100 on the medium. It answers each
    /// command once it is let.
    struct Slow {
        let_through: Mutex<Receiver<Answer>>,
        asked: Sender<Vec<u8>>,
    }

    impl Access for Slow {
        fn scsi(&self, cdb: &[u8], data: Data<'_>) -> io::Result<Answer> {
            self.asked.send(cdb.to_vec()).unwrap();
            let answer = self.let_through.lock().unwrap().recv();
            let answer = answer.map_err(|_| io::Error::from(Errno::NODEV))?;
            let Data::In(room) = data else { panic!("nothing is written") };
            let first = u64::from_be_bytes(*cdb[2..].first_chunk().unwrap()) / 8;
            for (lba, sector) in (first..).zip(room[..answer.len].chunks_mut(SECTOR_SIZE)) {
                sector.fill(lba as u8 + 100);
            }
            Ok(answer)
        }

        fn nvme(&self, _: Queue, _: &Passthrough, _: &mut [u8]) -> io::Result<Result<u32, u16>> {
            Err(Errno::NOTTY.into())
        }
    }

    /// The ring's own reads go on while a helper waits for its disk, and what it brings is the medium's.
    #[test]
    fn disk_that_takes_long_over_a_read_from_its_medium_holds_up_no_other_read() {
        if let Err(error) = check_available() {
            eprintln!("SKIPPED: {error}");
            return;
        }
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("a.img");
        let bytes: Vec<u8> = (0..16).flat_map(|sector| [sector; SECTOR_SIZE]).collect();
        std::fs::write(&path, bytes).unwrap();
        let medium = Arc::new(Medium::open(&path, Transfer::Direct).unwrap());
        let ((through, let_through), (asked, cdbs)) = (channel(), channel());
        let blocks = Blocks { block: 512, transfer_max: 2 * SECTOR_SIZE as u32 };
        let disk = Slow { let_through: Mutex::new(let_through), asked };
        let ways = ReadWays::none("a disk").with_forced(Forced::new(blocks, Box::new(disk)));
        let ways = Arc::new(ways);
        let drive = Uring::start(medium, Arc::clone(&ways), 4).unwrap();
        // Dropped before the drive, which waits for what is under way: a test that fails ends.
        let through = through;
        let (sender, ended) = channel();
        let read = |lba, sectors, effort| {
            let sender = sender.clone();
            let extent = Extent::new(Lba::new(lba), Sectors::new(sectors));
            let done = Box::new(move |reply: Reply| sender.send((effort, reply)).unwrap());
            drive.submit(Request::read(extent, effort), done);
        };
        let check = |effort: Effort, byte: u8, sectors: usize| {
            let (ended, Reply { outcome, data, .. }) = ended.recv().unwrap();
            assert_eq!((ended, outcome), (effort, Outcome::GOOD));
            for (at, sector) in data.into_buf().as_slice().chunks(SECTOR_SIZE).enumerate() {
                assert!(at < sectors && sector.iter().all(|&found| found == byte + at as u8));
            }
        };
        read(8, 3, Effort::Medium);
        // READ (16), FUA, from block 64 on, 16 blocks.
        let cdb = [0x88, 8, 0, 0, 0, 0, 0, 0, 0, 64, 0, 0, 0, 16, 0, 0];
        assert_eq!(cdbs.recv().unwrap(), cdb);
        for _ in 0..5 {
            read(2, 2, Effort::Full);
            check(Effort::Full, 2, 2);
        }
        // The first one is short by a sector, so the second one has the other two.
        through.send(Answer::good(SECTOR_SIZE)).unwrap();
        assert_eq!(cdbs.recv().unwrap()[9..14], [72, 0, 0, 0, 16]);
        through.send(Answer::good(2 * SECTOR_SIZE)).unwrap();
        check(Effort::Medium, 108, 3);
        assert_eq!(ways.promise(), Promise::Medium);
        // Refused: the ring reads it in the ordinary way.
        read(4, 1, Effort::Medium);
        let sense = vec![0x72, 5, 0x24, 0, 0, 0, 0, 0];
        through.send(Answer { status: 2, host_status: 0, sense, len: 0 }).unwrap();
        check(Effort::Medium, 4, 1);
        assert_eq!(ways.promise(), Promise::Interface);
        read(4, 1, Effort::Medium);
        check(Effort::Medium, 4, 1);
        assert_eq!(cdbs.try_iter().count(), 1, "it is not tried again");
    }
}
