//! The kernel as a driver sees it: steps go in, results come out. The real one is an io_uring; a test
//! has one of its own.
//!
//! Reads past the block layer need entries of twice the size, so a ring has them or it has not.
//!
//! A SCSI command is handed to a thread of [`helpers`](super::helpers) or of a drive's limit of error recovery, and its end
//! comes through a pipe.
//!
//! # Steps that wait
//!
//! The kernel tries each step without waiting, and hands one that would have to wait to a thread of its
//! own. There are few of these for one ring, unless told otherwise: a drive that hangs would take all of
//! them from the others. So the ring has as many as it has steps.
//!
//! # A kernel that takes nothing
//!
//! `EAGAIN` (no memory for a step) and `EBUSY` (too many ends that were not taken) leave the steps in the
//! queue. They are offered again once ends have been taken; if there are none, after a pause that
//! doubles up to [`PAUSE_MAX`] and is no longer than the ring is to wait at all. So a thread neither spins
//! nor gives up: a drive that ends nothing for too long is for the array to judge.

use std::collections::BTreeMap;
use std::io::{self, PipeReader};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::time::Duration;

use io_uring::types::{Fd, FsyncFlags, SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, opcode, squeue};
use levelhead_block::{Durability, Piece};
use rustix::io::{Errno, ReadWriteFlags};

use super::Under;
use super::flight::{Flight, Step};
use super::helpers::{Helpers, RECORD_LEN};

/// Pieces of one write: what the kernel takes at most.
const SLICES_MAX: usize = 1024;

/// How long the kernel is left alone after it has taken nothing, at first and at most.
const PAUSE_MIN: Duration = Duration::from_millis(1);
const PAUSE_MAX: Duration = Duration::from_millis(128);

/// The name of the pipe's read among the commands.
const WAKE: u64 = u64::MAX;

/// The name of the read of the pipe through which helpers tell of their ends.
const HELPED: u64 = u64::MAX - 1;

/// `NVME_URING_CMD_IO` of `<linux/nvme_ioctl.h>`.
const NVME_READ: u32 = 0xC048_4E80;

/// What has happened in the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// The bell has rung.
    Woken,
    /// A step has ended.
    Ended { name: u64, result: i32 },
}

/// See the module.
pub(crate) trait Kernel: Send {
    /// Starts what the flight needs next.
    ///
    /// # Safety
    ///
    /// U1: the memory of the step is neither moved nor freed nor looked at until the step has ended.
    /// There are never more steps under way than there is room for.
    unsafe fn start(&mut self, name: u64, flight: &mut Flight);

    /// Offers what was started, and waits until something has happened, for this long at most; for
    /// ever without a bound.
    fn wait(&mut self, patience: Option<Duration>, events: &mut Vec<Event>);

    /// Lets go of a drive that has no step under way and is given none any more.
    fn release(&mut self, _under: &Under) {}
}

impl Kernel for Box<dyn Kernel> {
    unsafe fn start(&mut self, name: u64, flight: &mut Flight) {
        // SAFETY: the caller sees to what it is to see to.
        unsafe { (**self).start(name, flight) }
    }

    fn wait(&mut self, patience: Option<Duration>, events: &mut Vec<Event>) {
        (**self).wait(patience, events);
    }

    fn release(&mut self, under: &Under) {
        (**self).release(under);
    }
}

/// How a ring enters the kernel, and how it waits outside.
pub(super) trait Door: Send {
    /// Offers the queue and waits until a step has ended, for this long at most, or without a limit.
    fn enter(&mut self, size: &Size, patience: Option<Duration>) -> io::Result<()>;

    /// Lets some time pass.
    fn pause(&mut self, time: Duration);
}

/// The real one.
pub(super) struct OpenDoor;

impl Door for OpenDoor {
    fn enter(&mut self, size: &Size, patience: Option<Duration>) -> io::Result<()> {
        let submitter = match size {
            Size::Small(ring) => ring.submitter(),
            Size::Large(ring) => ring.submitter(),
        };
        let entered = match patience {
            None => submitter.submit_and_wait(1),
            Some(Duration::ZERO) => submitter.submit(),
            Some(time) => {
                let time = Timespec::from(time);
                submitter.submit_with_args(1, &SubmitArgs::new().timespec(&time))
            }
        };
        match entered {
            Err(error) if error.raw_os_error() == Some(Errno::TIME.raw_os_error()) => Ok(()),
            entered => entered.map(drop),
        }
    }

    fn pause(&mut self, time: Duration) {
        std::thread::sleep(time);
    }
}

/// See the module.
pub(super) struct Ring<D> {
    size: Size,
    door: D,
    /// How long the next pause is.
    pause: Duration,
    bell: Ear,
    /// Absent where no drive needs a helper.
    helped: Option<(Helpers, Ear)>,
    /// The parts of memory of each write that is under way.
    slices: BTreeMap<u64, Vec<Slice>>,
}

/// A pipe that the ring reads.
struct Ear {
    pipe: PipeReader,
    name: u64,
    /// Where the pipe's bytes go. Leaked if the kernel may still fill it.
    room: Option<Box<[u8; EAR_LEN]>>,
    is_listening: bool,
}

/// Bytes of a pipe that are read at a time.
const EAR_LEN: usize = 1024;
const _: () = assert!(EAR_LEN.is_multiple_of(RECORD_LEN));

impl Ear {
    fn new(pipe: PipeReader, name: u64) -> Self {
        Self { pipe, name, room: Some(Box::new([0; EAR_LEN])), is_listening: false }
    }

    /// The entry that waits for it.
    fn listen(&mut self) -> Option<squeue::Entry> {
        let room = self.room.as_mut()?;
        let read = opcode::Read::new(Fd(self.pipe.as_raw_fd()), room.as_mut_ptr(), EAR_LEN as u32);
        self.is_listening = true;
        Some(read.build().user_data(self.name))
    }

    /// What has come, once the read has ended with this result.
    fn heard(&mut self, result: i32) -> &[u8] {
        self.is_listening = false;
        let len = usize::try_from(result).unwrap_or(0).min(EAR_LEN);
        self.room.as_ref().map_or(&[], |room| &room[..len])
    }
}

impl Drop for Ear {
    fn drop(&mut self) {
        if self.is_listening {
            std::mem::forget(self.room.take()); // U3
        }
    }
}

pub(super) enum Size {
    Small(IoUring),
    Large(IoUring<squeue::Entry128, cqueue::Entry32>),
}

/// A `struct iovec`, as readv(2) defines it.
#[repr(C)]
struct Slice {
    start: *const u8,
    len: usize,
}

// SAFETY: the pointers lead into pieces that a flight owns.
unsafe impl Send for Slice {}

impl<D: Door> Ring<D> {
    /// The steps that have ended, with their results.
    fn take_ends(&mut self) -> Vec<(u64, i32)> {
        match &mut self.size {
            Size::Small(ring) => {
                ring.completion().map(|entry| (entry.user_data(), entry.result())).collect()
            }
            Size::Large(ring) => {
                ring.completion().map(|entry| (entry.user_data(), entry.result())).collect()
            }
        }
    }

    /// A ring with room for `steps` steps at a time on these drives, woken through `pipe`.
    pub(super) fn new(
        steps: u32,
        drives: &[Arc<Under>],
        pipe: PipeReader,
        door: D,
    ) -> io::Result<Self> {
        // Two more for the pipes.
        let entries = (steps + 2).next_power_of_two();
        let mut past = drives.iter().filter(|under| under.ways.device().is_some()).peekable();
        let large = || IoUring::<squeue::Entry128, cqueue::Entry32>::builder().build(entries);
        let size = match past.peek().map(|_| large()) {
            Some(Ok(ring)) => Size::Large(ring),
            _ => {
                past.for_each(|under| {
                    under.ways.refuse();
                    under.ways.refuse_medium();
                });
                Size::Small(IoUring::new(entries)?)
            }
        };
        let submitter = match &size {
            Size::Small(ring) => ring.submitter(),
            Size::Large(ring) => ring.submitter(),
        };
        submitter.register_iowq_max_workers(&mut [steps, 0])?;
        let mut ring = Self {
            size,
            door,
            pause: PAUSE_MIN,
            bell: Ear::new(pipe, WAKE),
            helped: Helpers::start(drives)?
                .map(|(helpers, pipe)| (helpers, Ear::new(pipe, HELPED))),
            slices: BTreeMap::new(),
        };
        ring.listen(WAKE);
        ring.listen(HELPED);
        Ok(ring)
    }

    /// Whether there is something to be offered.
    fn has_steps(&mut self) -> bool {
        match &mut self.size {
            Size::Small(ring) => !ring.submission().is_empty(),
            Size::Large(ring) => !ring.submission().is_empty(),
        }
    }

    /// Waits for the pipe of this name, among other things.
    fn listen(&mut self, name: u64) {
        let ear = match &mut self.helped {
            _ if name == WAKE => Some(&mut self.bell),
            helped => helped.as_mut().map(|(_, ear)| ear),
        };
        if let Some(entry) = ear.and_then(Ear::listen) {
            self.push(&entry);
        }
    }

    fn push(&mut self, entry: &squeue::Entry) {
        // SAFETY: U1; the descriptors are open for as long as the ring and the flights are.
        let pushed = unsafe {
            match &mut self.size {
                Size::Small(ring) => ring.submission().push(entry),
                Size::Large(ring) => ring.submission().push(&entry.clone().into()),
            }
        };
        pushed.expect("U2");
    }

    fn push_large(&mut self, entry: &squeue::Entry128) {
        let Size::Large(ring) = &mut self.size else {
            panic!("a ring that cannot take such steps has refused them");
        };
        // SAFETY: U1; the descriptors are open for as long as the ring and the flights are.
        let pushed = unsafe { ring.submission().push(entry) };
        pushed.expect("U2");
    }
}

impl<D> Drop for Ring<D> {
    fn drop(&mut self) {
        // U3: while steps are under way, the kernel may still look at what they are made of.
        std::mem::forget(std::mem::take(&mut self.slices));
    }
}

/// The bytes of a write that are not through yet.
fn slices(pieces: &[Piece], mut skip: usize) -> Vec<Slice> {
    let mut slices = Vec::new();
    for piece in pieces {
        let bytes = piece.bytes();
        let rest = &bytes[skip.min(bytes.len())..];
        skip -= bytes.len() - rest.len();
        if !rest.is_empty() && slices.len() < SLICES_MAX {
            slices.push(Slice { start: rest.as_ptr(), len: rest.len() });
        }
    }
    slices
}

impl<D: Door> Kernel for Ring<D> {
    fn release(&mut self, under: &Under) {
        if let Some((helpers, _)) = &mut self.helped {
            helpers.release(under.medium.raw_fd());
        }
    }

    unsafe fn start(&mut self, name: u64, flight: &mut Flight) {
        let fd = Fd(flight.under().medium.raw_fd());
        let device = flight.under().ways.device().map_or(-1, AsRawFd::as_raw_fd);
        let entry = match flight.step() {
            Step::Sync => opcode::Fsync::new(fd).flags(FsyncFlags::DATASYNC).build(),
            Step::Read { offset, room, priority } => {
                let read = opcode::Read::new(fd, room.as_mut_ptr(), room.len() as u32);
                read.offset(offset).ioprio(priority).build()
            }
            Step::Write { offset, pieces, skip, durability } => {
                let parts = slices(pieces, skip);
                let write = opcode::Writev::new(fd, parts.as_ptr().cast(), parts.len() as u32);
                self.slices.insert(name, parts);
                let flags = match durability {
                    Durability::Cached => ReadWriteFlags::empty(),
                    Durability::Durable => ReadWriteFlags::DSYNC,
                };
                write.offset(offset).rw_flags(flags.bits() as i32).build()
            }
            Step::ForcedRead { offset, room } => {
                let (helpers, _) = self.helped.as_ref().expect("a drive with such reads has one");
                // SAFETY: U1, as the caller sees to it.
                return unsafe { helpers.send(fd.0, name, offset, room) };
            }
            Step::Recover => {
                let (helpers, _) = self.helped.as_ref().expect("a drive with a limit has one");
                let limit = flight.under().ways.drive_limit();
                return helpers.recover(limit.expect("only reads of such a drive wait"), name);
            }
            Step::PastRead { namespace, wanted, offset, room } => {
                let command =
                    namespace.read(wanted, offset, room.len() as u32, room.as_mut_ptr() as u64);
                let entry = opcode::UringCmd80::new(Fd(device), NVME_READ).cmd(command.bytes());
                return self.push_large(&entry.build().user_data(name));
            }
        };
        self.push(&entry.user_data(name));
    }

    fn wait(&mut self, patience: Option<Duration>, events: &mut Vec<Event>) {
        // What has ended can be seen without the kernel.
        let needs_entry = patience != Some(Duration::ZERO) || self.has_steps();
        let entered = if needs_entry { self.door.enter(&self.size, patience) } else { Ok(()) };
        let done = self.take_ends();
        let errno = entered.err().map(|error| error.raw_os_error().unwrap_or_default());
        let refusals = [Errno::AGAIN, Errno::BUSY].map(Errno::raw_os_error);
        match errno {
            None => self.pause = PAUSE_MIN,
            Some(errno) if errno == Errno::INTR.raw_os_error() => {}
            Some(errno) if !refusals.contains(&errno) => {
                let error = io::Error::from_raw_os_error(errno);
                panic!("an io_uring takes what its queue has room for: {error}")
            }
            // With what was taken, there may be room again.
            Some(_) if !done.is_empty() => self.pause = PAUSE_MIN,
            Some(_) => {
                self.door.pause(patience.map_or(self.pause, |most| most.min(self.pause)));
                self.pause = PAUSE_MAX.min(self.pause * 2);
            }
        }
        for (name, result) in done {
            match (name, &mut self.helped) {
                (WAKE, _) => {
                    self.bell.heard(result);
                    events.push(Event::Woken);
                }
                (HELPED, Some((_, ear))) => {
                    let ends = Helpers::ends(ear.heard(result));
                    events.extend(ends.map(|(name, result)| Event::Ended { name, result }));
                }
                _ => {
                    self.slices.remove(&name);
                    events.push(Event::Ended { name, result });
                    continue;
                }
            }
            // An end without bytes: no helper is left to write, and nothing will be heard of it.
            if result != 0 {
                self.listen(name);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::sync::{Mutex, PoisonError};

    use levelhead_block::{Buf, Effort, Request};
    use levelhead_units::{Extent, Lba, SECTOR_SIZE, Sectors};
    use tempfile::TempDir;

    use super::*;
    use crate::bell::Bell;
    use crate::devices::ways::ReadWays;
    use crate::medium::{Medium, Transfer};
    use crate::uring::alone::Worker;
    use crate::uring::check_available;

    /// A door that is shut at these times it is tried, in which nothing is offered to the kernel, and
    /// behind which pauses take no time.
    struct Shut {
        tries: u32,
        at: Vec<(u32, Errno)>,
        pauses: Arc<Mutex<Vec<Duration>>>,
    }

    impl Door for Shut {
        fn enter(&mut self, size: &Size, patience: Option<Duration>) -> io::Result<()> {
            self.tries += 1;
            match self.at.iter().find(|(at, _)| *at == self.tries) {
                Some((_, errno)) => Err((*errno).into()),
                None => OpenDoor.enter(size, patience),
            }
        }

        fn pause(&mut self, time: Duration) {
            self.pauses.lock().unwrap_or_else(PoisonError::into_inner).push(time);
        }
    }

    /// Reads twelve sectors one by one through a window of two, and a door that is shut at these times;
    /// the pauses that were made.
    fn read_through(at: Vec<(u32, Errno)>) -> Option<Vec<Duration>> {
        if let Err(error) = check_available() {
            eprintln!("SKIPPED: {error}");
            return None;
        }
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("a.img");
        let bytes: Vec<u8> = (0..12).flat_map(|sector| [sector; SECTOR_SIZE]).collect();
        std::fs::write(&path, bytes).unwrap();
        let medium = Arc::new(Medium::open(&path, Transfer::Direct).unwrap());
        let ways = Arc::new(ReadWays::none("a file"));
        let pauses = Arc::default();
        let door = Shut { tries: 0, at, pauses: Arc::clone(&pauses) };
        let (bell, pipe) = Bell::new().unwrap();
        let under = Arc::new(Under { medium, ways });
        let ring = Ring::new(4, &[Arc::clone(&under)], pipe, door).unwrap();
        let worker = Worker::new(ring, under, 2, Arc::new(bell));
        let ((orders, receiver), (ends, ended)) = (channel(), channel());
        for lba in 0..12 {
            let extent = Extent::new(Lba::new(lba), Sectors::new(1));
            let room = Buf::zeroed(extent.sectors);
            let ends = ends.clone();
            let done: levelhead_block::Done =
                Box::new(move |reply| ends.send((lba, reply)).unwrap());
            orders.send((Request::read_into(extent, Effort::Full, room), done)).unwrap();
        }
        drop((orders, ends));
        worker.run(&receiver);
        let mut count = 0;
        for (lba, reply) in ended {
            assert!(reply.outcome.is_good() && reply.data.holds(&[lba as u8; SECTOR_SIZE]));
            count += 1;
        }
        assert_eq!(count, 12);
        let pauses = pauses.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Some(pauses)
    }

    #[test]
    fn kernel_that_takes_nothing_is_offered_it_again_after_longer_and_longer_pauses() {
        let shut = (1..=10).map(|at| (at, Errno::AGAIN)).collect();
        let Some(pauses) = read_through(shut) else { return };
        let millis: Vec<u128> = pauses.iter().map(Duration::as_millis).collect();
        assert_eq!(millis, [1, 2, 4, 8, 16, 32, 64, 128, 128, 128]);
        // Once it has taken something, pauses are short again.
        let shut = vec![(1, Errno::AGAIN), (2, Errno::BUSY), (4, Errno::AGAIN), (6, Errno::BUSY)];
        let Some(pauses) = read_through(shut) else { return };
        let longest = pauses.iter().max().map(Duration::as_millis);
        assert_eq!((longest, pauses.first()), (Some(2), Some(&PAUSE_MIN)));
    }
}
