//! One modelled drive with its bytes and without an array, in virtual time.

use std::collections::BTreeMap;
use std::convert::Infallible;

use levelhead_block::{Memory, Reply, Request};
use levelhead_bytes::{Caching, Ended, Platter, Storage};
use levelhead_drive::{Completion, Counters, Drive, Faults, FaultsError};
use levelhead_units::{Instant, Sectors};

/// A drive full of zeroes to begin with. Requests have names; each is answered once, at the time the
/// model says.
#[derive(Debug)]
pub struct Lone<S = Memory> {
    drive: Drive,
    platter: Platter<S>,
    inside: BTreeMap<u64, Request>,
    now: Instant,
}

impl Lone {
    /// Gives a drive its bytes.
    pub fn new(drive: Drive) -> Self {
        let memory = Memory::new(drive.size());
        Self::over(drive, memory)
    }
}

impl<S: Storage<Error = Infallible>> Lone<S> {
    /// Gives a drive its bytes, which are kept in `storage`.
    pub fn over(drive: Drive, storage: S) -> Self {
        let platter = Platter::new(storage, Caching::of(drive.writes_back()));
        Self { drive, platter, inside: BTreeMap::new(), now: Instant::ZERO }
    }

    /// What is on the medium, to look at it or to change it behind the drive's back.
    pub fn storage_mut(&mut self) -> &mut S {
        self.platter.storage_mut()
    }

    /// From `now` on it misbehaves like this.
    ///
    /// # Errors
    ///
    /// The faults cannot be.
    pub fn set_faults(&mut self, now: Instant, faults: Faults) -> Result<(), FaultsError> {
        self.drive.set_faults(now, faults)
    }

    /// When something happens here next.
    pub fn deadline(&self) -> Option<Instant> {
        self.drive.deadline()
    }

    /// How many sectors it has.
    pub fn size(&self) -> Sectors {
        self.drive.size()
    }

    /// The latest time that anything here has happened.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Whether it can take another request.
    pub fn has_room(&self) -> bool {
        self.drive.has_room()
    }

    /// A request arrives at `now`, which is not before any other call. Its origin is its name.
    ///
    /// Panics if there is no room, or if the command does not fit the drive.
    pub fn submit(&mut self, now: Instant, id: u64, request: Request) {
        assert!(now >= self.now, "{now:?} is past");
        self.now = now;
        self.drive.handle_submit(now, id, request.command, id);
        self.inside.insert(id, request);
    }

    /// Lets the time pass, with nothing new; what has ended by `now`, in that order.
    pub fn run_until(&mut self, now: Instant) -> Vec<(u64, Reply)> {
        self.now = self.now.max(now);
        self.drive.handle_timeout(self.now);
        let mut ended = self.collect();
        let unwritten = self.drive.unwritten(self.now);
        let Ok(()) = self.platter.destage(&unwritten);
        ended.extend(self.collect());
        while let Some(aftermath) = self.drive.poll_aftermath() {
            let Ok(()) = self.platter.carry_out(aftermath);
        }
        ended
    }

    /// Lets the time pass until something inside has ended; what has. Nothing if nothing is inside.
    pub fn run_on(&mut self) -> Vec<(u64, Reply)> {
        let mut ended = self.run_until(self.now);
        while ended.is_empty()
            && let Some(at) = self.drive.deadline()
        {
            ended = self.run_until(at);
        }
        ended
    }

    /// Lets the time pass until everything inside has ended.
    pub fn run_out(&mut self) -> Vec<(u64, Reply)> {
        let mut ended = self.run_until(self.now);
        while let Some(at) = self.drive.deadline() {
            ended.extend(self.run_until(at));
        }
        ended
    }

    /// The power fails and comes back. What had not ended by then is gone with its answer.
    pub fn power_cut(&mut self, now: Instant) -> Vec<(u64, Reply)> {
        let mut ended = self.run_until(now);
        self.drive.handle_power_cut(self.now);
        self.platter.lose_power();
        ended.extend(self.collect());
        ended
    }

    /// What the drive has done so far.
    pub fn counters(&self) -> Counters {
        self.drive.counters()
    }

    /// How many sectors are in its memory only, as far as has been looked at.
    pub fn unwritten_len(&self) -> usize {
        self.platter.unwritten_len()
    }

    fn collect(&mut self) -> Vec<(u64, Reply)> {
        let mut ended = Vec::new();
        while let Some(Completion { id, outcome, silent, is_read_back, after, .. }) =
            self.drive.poll()
        {
            let request = self.inside.remove(&id).expect("it was submitted");
            let read_back = is_read_back.then_some(id);
            let how = Ended { outcome, silent, read_back, after };
            let Ok(reply) = self.platter.end(request, how);
            ended.push((id, reply));
        }
        ended
    }
}
