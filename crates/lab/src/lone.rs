//! One modelled drive with its bytes and without an array, in virtual time.

use std::collections::BTreeMap;

use levelhead_block::{Buf, Command, Durability, Outcome, SectorSet};
use levelhead_drive::Drive;
use levelhead_units::{Instant, Sectors};

use crate::platter::Platter;

/// A drive full of zeroes to begin with. Requests have names; each is answered once, at the time the
/// model says.
#[derive(Debug)]
pub struct Lone {
    drive: Drive,
    platter: Platter,
    inside: BTreeMap<u64, (Command, Buf)>,
    now: Instant,
}

impl Lone {
    /// Gives a drive its bytes.
    pub fn new(drive: Drive) -> Self {
        let platter = Platter::new(drive.size());
        Self { drive, platter, inside: BTreeMap::new(), now: Instant::ZERO }
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

    /// A request arrives at `now`, which is not before any other call. `buf` has as many sectors as the
    /// command carries.
    ///
    /// Panics if there is no room, or if the command does not fit the drive.
    pub fn submit(&mut self, now: Instant, id: u64, command: Command, buf: Buf) {
        assert!(now >= self.now, "{now:?} is past");
        assert_eq!(buf.sectors(), command.payload(), "{command:?} with another size of buffer");
        self.now = now;
        self.inside.insert(id, (command, buf));
        self.drive.handle_submit(now, id, command, id);
    }

    /// Lets the time pass, with nothing new; what has ended by `now`, in that order.
    pub fn run_until(&mut self, now: Instant) -> Vec<(u64, Outcome, Buf)> {
        self.now = self.now.max(now);
        self.drive.handle_timeout(self.now);
        let mut ended = self.collect();
        let unwritten = self.drive.unwritten(self.now);
        self.platter.settle(&unwritten);
        ended.extend(self.collect());
        ended
    }

    /// Lets the time pass until everything inside has ended.
    pub fn run_out(&mut self) -> Vec<(u64, Outcome, Buf)> {
        let mut ended = self.run_until(self.now);
        while let Some(at) = self.drive.deadline() {
            ended.extend(self.run_until(at));
        }
        ended
    }

    /// The power fails and comes back. What had not ended by then is gone with its answer.
    pub fn power_cut(&mut self, now: Instant) -> Vec<(u64, Outcome, Buf)> {
        let mut ended = self.run_until(now);
        self.drive.handle_power_cut(self.now);
        self.platter.lose_power();
        ended.extend(self.collect());
        ended
    }

    /// How many sectors are in its memory only, as far as has been looked at.
    pub fn unwritten_len(&self) -> usize {
        self.platter.unwritten_len()
    }

    fn collect(&mut self) -> Vec<(u64, Outcome, Buf)> {
        let mut ended = Vec::new();
        while let Some(done) = self.drive.poll() {
            let (command, mut buf) = self.inside.remove(&done.id).expect("it was submitted");
            if let Outcome::Done { .. } = done.outcome {
                self.transfer(&command, &mut buf, &done.missing);
            }
            ended.push((done.id, done.outcome, buf));
        }
        ended
    }

    fn transfer(&mut self, command: &Command, buf: &mut Buf, missing: &SectorSet) {
        let write = |platter: &mut Platter, extent, bytes, durability: Durability| {
            platter.write(extent, std::iter::once(bytes), durability, missing);
        };
        match *command {
            Command::Read { extent, .. } => self.platter.read(extent, buf.as_mut_slice()),
            Command::Write { extent, durability, .. } => {
                write(&mut self.platter, extent, buf.as_slice(), durability);
            }
            Command::WriteZeroes { extent, durability } => {
                let zeroes = Buf::zeroed(extent.sectors);
                write(&mut self.platter, extent, zeroes.as_slice(), durability);
            }
            Command::Flush => self.platter.flush(),
            Command::Trim { .. } => {}
        }
    }
}
