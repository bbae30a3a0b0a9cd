//! A short limit of error recovery (SCT ERC) as a way to have reads of a SATA drive fail early. It holds for the whole
//! drive and not for one command, and outlives the program: so it is only used where an operator wants that.
//!
//! ```text
//!   flights of reads --- Gate: who is inside, whether the drive's own limit holds
//!                          |
//!   engine -- DriveLimit ---+-- thread of the drive: Keeper --- Rule     decides when the limit is short
//!               (handle)                                  +--- Access   ATA commands, which may hang
//!                                                         +--- Store    the drive's own limits, on disk
//! ```
//!
//! # Invariants
//!
//! - EC1. Before a drive's limit is changed for the first time its own limits are on disk for good, and they stay there until they
//!   were read back from the drive. What is on disk is never written over.
//! - EC2. A limit counts as set when it was read back, not before.
//! - EC3. While a read with retries is inside, the limit is not short. One that comes meanwhile waits until the drive's own
//!   limit was read back. If that fails it reads all the same, and what it does not give is not held against the drive.
//! - EC4. The limit is put back at once when what the drive holds could not be computed without it.
//! - EC5. The limit of writes at rest is the drive's own.
//! - EC6. At the end, and at the next start after an end without one, the drive gets its own limits. Where that fails, the record
//!   stays and is named.
//! - EC7. Nothing waits without a bound: each command is ended by the kernel, a drive that fails one is tried again after
//!   a pause and never made short again, and an end waits for no longer than [`FAREWELL`].

mod keeper;
mod records;
mod rule;
#[cfg(test)]
pub(crate) mod tests;

use std::fmt;
use std::path::Path;
use std::str::FromStr;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, TryRecvError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use levelhead_units::Nanos;

pub(crate) use self::keeper::{Gate, Pass};
use self::keeper::{Keeper, Means, Now, Standing};
use self::records::{Records, Store};
use super::ata::{self, ErrorRecovery};
use super::sysfs::{Bus, Disk, Sysfs};
use super::{Access, Driver, Fact};
use crate::clock::Clock;
use crate::error::{HostError, fail};

/// How often a drive's thread looks whether something is to be done.
const TICK: Duration = Duration::from_secs(1);

/// How long an array that ends waits for the limits of all its drives together.
pub(crate) const FAREWELL: Duration = Duration::from_secs(5);

/// By which ways drives are told to give up early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FastFail {
    /// Only by those that hold for one command.
    Command,
    /// Drives without such a way are given a short limit of error recovery, which holds for all reads, while redundancy stands
    /// in for what they do not give.
    Erc,
}

impl FastFail {
    const ALL: [(Self, &'static str); 2] = [(Self::Command, "command"), (Self::Erc, "erc")];
}

impl fmt::Display for FastFail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::ALL.iter().find(|(ways, _)| ways == self).map_or("", |(_, name)| name))
    }
}

impl FromStr for FastFail {
    type Err = HostError;

    fn from_str(text: &str) -> Result<Self, HostError> {
        let found = Self::ALL.iter().find(|(_, name)| *name == text);
        found.map(|(ways, _)| *ways).ok_or_else(|| {
            HostError::new(format!("'{text}' is not a fast-fail method: expected command or erc"))
        })
    }
}

/// A read with retries that waits for the drive's own limit. It is answered once, with a failure if it is dropped.
pub(crate) struct Waiting {
    tell: Option<Box<dyn FnOnce(Recovered) + Send>>,
}

/// Which limit a read with retries goes under.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Recovered {
    /// The drive's own, as it was read back.
    Own,
    /// One that may be short.
    Perhaps,
}

impl Waiting {
    pub(crate) fn new(tell: impl FnOnce(Recovered) + Send + 'static) -> Self {
        Self { tell: Some(Box::new(tell)) }
    }

    fn answer(mut self, recovered: Recovered) {
        if let Some(tell) = self.tell.take() {
            tell(recovered);
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some(tell) = self.tell.take() {
            tell(Recovered::Perhaps);
        }
    }
}

/// What the drive's thread is told.
enum Order {
    /// A read with retries waits.
    Wait(Waiting),
    /// What is allowed has changed.
    Look,
}

/// What the drive's thread and others share.
struct Shared {
    is_allowed: Mutex<bool>,
    standing: Mutex<Standing>,
}

/// A drive's limit as an array has it. Its drop is the end of the thread, which puts the limit back first.
pub(crate) struct DriveLimit {
    own: ErrorRecovery,
    gate: Arc<Gate>,
    shared: Arc<Shared>,
    orders: Mutex<Option<Sender<Order>>>,
    /// Gets why the limit was not put back, if it was not, and is closed when the thread has ended.
    left: Mutex<Receiver<String>>,
}

impl fmt::Debug for DriveLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DriveLimit").field("own", &self.own).finish_non_exhaustive()
    }
}

impl DriveLimit {
    /// A drive that has limits and none that is short already. Nothing is changed yet.
    pub(crate) fn find(disk: &Disk, path: &Path) -> Fact<Self> {
        let device = Driver::open(path).map_err(|error| format!("cannot open it: {error}"))?;
        let (device, records) = (Box::new(device), Box::new(Records::usual()));
        Self::start(disk, Means { device, records, hold: rule::HOLD })
    }

    /// The same by other means.
    pub(crate) fn start(disk: &Disk, means: Means) -> Fact<Self> {
        if disk.bus() != Bus::Ata {
            return Err("only SATA drives have a limit of error recovery".to_owned());
        }
        if disk.is_part {
            return Err("it is a part of a disk, and the limit would hold for all of it".to_owned());
        }
        let key = disk.lasting_name()?;
        let own = ata::ask_error_recovery(means.device.as_ref())?;
        let own = own.ok_or("the drive has no limit of error recovery")?;
        if own.read.is_some_and(|limit| limit <= rule::USEFUL_MAX) {
            return Err(format!("its own limit of reads is {} already", tell_limit(own.read)));
        }
        let gate = Arc::new(Gate::default());
        let standing = Mutex::new(Standing::Own);
        let shared = Arc::new(Shared { is_allowed: Mutex::new(false), standing });
        let keeper = Keeper::new(own, key, Arc::clone(&gate), means);
        let (orders, inbox) = mpsc::channel();
        let (leaves, left) = mpsc::channel();
        let known = Arc::clone(&shared);
        let work = move || {
            if let Some(why) = work(keeper, &inbox, &known, Clock::start()) {
                // An array that does not wait any more has its record on disk.
                drop(leaves.send(why));
            }
        };
        let spawned = std::thread::Builder::new().name("limit".into()).spawn(work);
        spawned.map_err(|error| format!("cannot start a thread: {error}"))?;
        let (orders, left) = (Mutex::new(Some(orders)), Mutex::new(left));
        Ok(Self { own, gate, shared, orders, left })
    }

    /// Reads with retries come in here, and reads without are seen.
    pub(crate) fn gate(&self) -> &Arc<Gate> {
        &self.gate
    }

    /// Whether what the drive holds can be computed without it.
    pub(crate) fn allow(&self, is_allowed: bool) {
        let mut known = self.shared.is_allowed.lock().unwrap_or_else(PoisonError::into_inner);
        if std::mem::replace(&mut *known, is_allowed) != is_allowed {
            drop(known);
            self.send(Order::Look);
        }
    }

    /// Has the drive's own limit put back for a read with retries, and told.
    pub(crate) fn wait(&self, waiting: Waiting) {
        self.send(Order::Wait(waiting));
    }

    /// What is dropped here is answered so.
    fn send(&self, order: Order) {
        let orders = self.orders.lock().unwrap_or_else(PoisonError::into_inner);
        drop(orders.as_ref().map(|orders| orders.send(order)));
    }

    /// The end: the thread puts the limit back.
    pub(crate) fn stop(&self) {
        *self.orders.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Why the limit was not put back within this time after the end, if it was not.
    pub(crate) fn left_behind(&self, patience: Duration) -> Option<String> {
        let left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        match left.recv_timeout(patience) {
            Ok(why) => Some(why),
            Err(RecvTimeoutError::Timeout) => Some("the drive does not answer".to_owned()),
            Err(RecvTimeoutError::Disconnected) => None,
        }
    }

    /// The drive's own limits, as `smartctl` names them.
    pub(crate) fn tell_own(&self) -> String {
        tell(self.own)
    }

    /// Whether the limit is used, and how it stands, for people.
    pub(crate) fn state(&self) -> Result<String, String> {
        let own = tell_limit(self.own.read);
        match &*self.shared.standing.lock().unwrap_or_else(PoisonError::into_inner) {
            Standing::Own => Ok(format!("its own limit of reads now: {own}")),
            Standing::Short(limit) => {
                Ok(format!("limit of reads {}, its own: {own}", tell_limit(Some(*limit))))
            }
            Standing::GivenUp(why) => Err(why.clone()),
            Standing::Changed(why) => {
                Err(format!("its own limit of reads, {own}, is not back yet: {why}"))
            }
        }
    }
}

/// What the thread of a drive does until its orders end. Why the limit was not put back, if it was not.
fn work(
    mut keeper: Keeper,
    orders: &Receiver<Order>,
    shared: &Shared,
    clock: Clock,
) -> Option<String> {
    let mut waiting = Vec::new();
    let mut is_over = false;
    while !is_over {
        match orders.recv_timeout(TICK) {
            Ok(Order::Wait(one)) => waiting.push(one),
            Ok(Order::Look) | Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => is_over = true,
        }
        // One change is for all who wait.
        loop {
            match orders.try_recv() {
                Ok(Order::Wait(one)) => waiting.push(one),
                Ok(Order::Look) => {}
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => {
                    is_over = true;
                    break;
                }
            }
        }
        let is_allowed = *shared.is_allowed.lock().unwrap_or_else(PoisonError::into_inner);
        let now = match (is_over, is_allowed) {
            (true, _) => Now::Last,
            (false, true) => Now::Allowed,
            (false, false) => Now::Forbidden,
        };
        keeper.advance(clock.now(), now);
        *shared.standing.lock().unwrap_or_else(PoisonError::into_inner) = keeper.standing();
        waiting.drain(..).for_each(|one| one.answer(keeper.recovered()));
    }
    keeper.end()
}

/// Gives a drive its own limits if an earlier run has changed them and did not put them back (EC6). It must be open for this
/// process alone.
pub(crate) fn put_back(path: &Path) -> Result<(), HostError> {
    put_back_on(path, Sysfs::new().disk_at(path), &Records::usual(), &|| {
        let device = Driver::open(path).map_err(|error| format!("cannot open it: {error}"))?;
        Ok(Box::new(device))
    })
}

fn put_back_on(
    path: &Path,
    disk: Fact<Disk>,
    records: &dyn Store,
    open: &dyn Fn() -> Fact<Box<dyn Access>>,
) -> Result<(), HostError> {
    // What has no lasting name was never changed.
    let Ok(key) = disk.and_then(|disk| disk.lasting_name()) else { return Ok(()) };
    give_back(records, &key, open).or_else(|why| {
        let (path, record) = (path.display(), records.name(&key));
        fail(format!(
            "{path}: an earlier run has left it with a short limit of error recovery, and its own could not be put back: \
             {why}; set it by smartctl, and then remove {}, where it is kept",
            record.display()
        ))
    })
}

/// Gives a drive the limits that there is a record of, if there is one.
fn give_back(records: &dyn Store, key: &str, open: &dyn Fn() -> Fact<Box<dyn Access>>) -> Fact<()> {
    let Some(own) = records.load(key)? else { return Ok(()) };
    let wanted = |why| format!("{why} ({} is wanted)", tell(own));
    let found = open().and_then(|device| keeper::restore(device.as_ref(), own)).map_err(wanted)?;
    if found != own {
        return Err(wanted(format!("it has {} now", tell(found))));
    }
    records.remove(key)
}

/// Both limits, as people and `smartctl` name them.
fn tell(limits: ErrorRecovery) -> String {
    let [read, write] = [limits.read, limits.write]
        .map(|limit| ata::in_tenths(limit).map_or_else(|| "?".to_owned(), |it| it.to_string()));
    format!("scterc,{read},{write}")
}

/// A limit for people.
fn tell_limit(limit: Option<Nanos>) -> String {
    limit.map_or_else(|| "none".to_owned(), |limit| format!("{} s", limit.as_secs_f64()))
}
