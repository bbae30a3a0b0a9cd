//! How the drives of an array are set to work.
//!
//! | member | who sees to its commands |
//! |---|---|
//! | a file or device | the engine, through one ring for all of them |
//! | a file in memory, unless a way is asked for | the engine, at once |
//! | a file on a file system that a program or another machine answers for | [`Threads`], a few for each |
//! | any file or device by threads | [`Threads`], a few for each |
//! | an emulated drive | [`EmulatedDrive`], one thread each |
//! | what was handed in | the caller that handed it in, through [`FarMember`] |

use std::path::Path;
use std::sync::Arc;

use levelhead_array::Reach;
use levelhead_units::DriveIdx;

use crate::assemble;
use crate::backend::{Io, Member};
use crate::bell::Bell;
use crate::clock::Clock;
use crate::devices::Driver;
use crate::devices::counters::Source;
use crate::devices::erc::FastFail;
use crate::devices::poller::{self, Poller};
use crate::devices::sysfs::Sysfs;
use crate::devices::ways::ReadWays;
use crate::emulated::EmulatedDrive;
use crate::engine::own::{Own, ring};
use crate::error::HostError;
use crate::far::{Far, FarMember};
use crate::medium::Shared;
use crate::member::MemberSpec;
use crate::opened::Opened;
use crate::seat::{Backend, Seat, Work};
use crate::threads::Threads;
use crate::uring::{self, Kernel, Under};
use crate::watch::Watch;

/// What all drives are set to work with.
#[derive(Clone, Copy)]
pub(crate) struct Launch {
    pub(crate) window: u32,
    pub(crate) io: Io,
    pub(crate) clock: Clock,
    pub(crate) fast_fail: FastFail,
}

/// The drives of an array at work.
pub(crate) struct Launched {
    pub(crate) seats: Vec<Seat>,
    pub(crate) own: Own,
    /// What wakes a thread that waits for its own drives.
    pub(crate) bell: Option<Bell>,
}

/// What a test puts around a drive, and around the kernel.
pub(crate) struct Doubles<'a> {
    pub(crate) member: &'a dyn Fn(DriveIdx, Box<dyn Member>) -> Box<dyn Member>,
    pub(crate) kernel: &'a dyn Fn(Box<dyn Kernel>) -> Box<dyn Kernel>,
    /// What a drive of the ring offers, if it is not to be asked itself.
    pub(crate) ways: &'a dyn Fn(DriveIdx) -> Option<ReadWays>,
}

impl Doubles<'_> {
    /// Nothing.
    pub(crate) const NONE: Doubles<'static> =
        Doubles { member: &|_, member| member, kernel: &|kernel| kernel, ways: &|_| None };
}

impl Launch {
    /// Sets the drives in these seats to work.
    pub(crate) fn start(
        self,
        seats: &[Option<assemble::Seat>],
        doubles: &Doubles<'_>,
    ) -> Result<Launched, HostError> {
        let io = settle(self.io)?;
        let mut lanes = Vec::new();
        let seats = seats.iter().enumerate().map(|(at, seat)| {
            let drive = DriveIdx::from_usize(at);
            let start = |seat| self.seat(seat, drive, io, &mut lanes, doubles);
            let mut seat = seat.as_ref().map_or(Ok(Seat::missing()), start)?;
            seat.backend = seat.backend.take().map(|backend| match backend {
                Backend::Member(member) => {
                    Backend::Member((doubles.member)(DriveIdx::from_usize(at), member))
                }
                Backend::Ring { .. } | Backend::AtOnce(_) => backend,
            });
            seat.watch = seat.backend.as_ref().and_then(Backend::look).and_then(Watch::start);
            Ok(seat)
        });
        let seats = seats.collect::<Result<Vec<Seat>, HostError>>()?;
        if lanes.is_empty() {
            return Ok(Launched { seats, own: Own::default(), bell: None });
        }
        let (ring, bell) = ring(lanes, self.window, doubles.kernel)?;
        Ok(Launched { seats, own: Own::new(Some(ring)), bell: Some(bell) })
    }

    /// Sets one drive to work that threads of its own see to.
    pub(crate) fn start_one(
        self,
        seat: &assemble::Seat,
        drive: DriveIdx,
    ) -> Result<Seat, HostError> {
        let mut lanes = Vec::new();
        let mut seat = self.seat(seat, drive, Io::Threads, &mut lanes, &Doubles::NONE)?;
        assert!(lanes.is_empty(), "drive {drive} has threads of its own");
        seat.watch = seat.backend.as_ref().and_then(Backend::look).and_then(Watch::start);
        Ok(seat)
    }

    /// Sets one drive to work, in a lane of the ring if it is for that.
    fn seat(
        self,
        seat: &assemble::Seat,
        drive: DriveIdx,
        io: Io,
        lanes: &mut Vec<Arc<Under>>,
        doubles: &Doubles<'_>,
    ) -> Result<Seat, HostError> {
        let Self { window, io: asked, clock, fast_fail } = self;
        let assemble::Seat { member, opened } = seat;
        let medium = match opened {
            Opened::Medium(medium) => medium,
            Opened::Far(far) => return Ok(far_seat(member, far)),
        };
        let model = seat.model(drive, window)?;
        let ways = Arc::new(match (&model, io) {
            (Some(_), _) => ReadWays::emulated(),
            (None, Io::Uring) if medium.is_far() => ReadWays::none("threads see to such a file"),
            (None, Io::Uring) => (doubles.ways)(drive)
                .unwrap_or_else(|| ReadWays::find(member.path(), medium, fast_fail)),
            (None, Io::Threads | Io::Best) => ReadWays::none("only io_uring tells a drive"),
        });
        let poller = if model.is_none() { watch(member.path(), clock) } else { None };
        let is_near = medium.is_direct() && !medium.is_far();
        let reach = if is_near { Reach::Near } else { Reach::Far };
        let revolution = model.as_ref().map(|model| model.profile.rotation());
        let medium = Arc::clone(medium);
        let backend = match (model, io) {
            (None, _) if asked == Io::Best && medium.is_in_memory() => Backend::AtOnce(medium),
            (Some(model), _) => {
                Backend::Member(Box::new(EmulatedDrive::start(&model, Shared(medium), clock)?))
            }
            // Before each write its size is asked for, and the engine must not wait for that.
            (None, Io::Uring) if medium.is_far() => {
                Backend::Member(Box::new(Threads::start(Shared(medium), window)?))
            }
            (None, Io::Uring) => {
                let under = Arc::new(Under { medium, ways: Arc::clone(&ways) });
                lanes.push(Arc::clone(&under));
                Backend::Ring { lane: lanes.len() - 1, under }
            }
            (None, Io::Threads | Io::Best) => {
                Backend::Member(Box::new(Threads::start(Shared(medium), window)?))
            }
        };
        Ok(Seat {
            name: Some(member.to_string()),
            backend: Some(backend),
            ways: Some(ways),
            revolution,
            reach,
            poller,
            watch: None,
            is_removed: false,
            work: Work::default(),
        })
    }
}

/// A member that was handed in, which is at work already.
fn far_seat(member: &MemberSpec, far: &Far) -> Seat {
    Seat {
        name: Some(member.to_string()),
        backend: Some(Backend::Member(Box::new(FarMember(far.clone())))),
        ways: Some(Arc::new(ReadWays::none("what answers for it is unknown"))),
        revolution: None,
        reach: Reach::Far,
        poller: None,
        watch: None,
        is_removed: false,
        work: Work::default(),
    }
}

/// What to use, once it is known what there is.
fn settle(io: Io) -> Result<Io, HostError> {
    match (io, uring::check_available()) {
        (Io::Threads, _) | (Io::Best, Err(_)) => Ok(Io::Threads),
        (Io::Uring | Io::Best, Ok(())) => Ok(Io::Uring),
        (Io::Uring, Err(error)) => Err(error),
    }
}

/// Watches what a real drive says of its health, if it is of a kind that says something.
fn watch(path: &Path, clock: Clock) -> Option<Poller> {
    let disk = Sysfs::new().disk_at(path).ok()?;
    let source = Source::of(&disk)?;
    let driver = Driver::open(path).ok()?;
    Poller::start(source, Box::new(driver), clock, poller::PERIOD)
}
