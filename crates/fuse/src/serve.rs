//! A mount from its first request to its last.
//!
//! ```text
//!   attached --> the core mounts --> ready: the kernel's requests are answered --> unmounted --> the core brings everything to its place
//!      |              |                                                                                ^
//!      |              +-- an unmount or a signal meanwhile is carried out once the core has mounted ---+
//!      |              +-- the journal or the root cannot be read, or the disk does not store: it is detached, not ready
//! ```

use std::io;
use std::path::Path;
use std::sync::{Arc, OnceLock, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use fuser::{Config, Notifier, Session, SessionACL};
use levelhead_block::BlockService;
use levelhead_fs::{Answer, Caller, Event, Filesystem, What};

use crate::attach::{Attached, Flags, Way, detach, make_read_only};
use crate::driver::{Driver, Ended, Parts};
use crate::error::FuseError;
use crate::gate::{Gate, Input, Inputs};
use crate::kernel::{Kernel, TRANSFER_MAX};
use crate::reading_ahead;
use crate::translate::Numbers;

/// How often the kernel is asked to remount a filesystem that nothing is written to any more, and how long between two of these:
/// ten minutes of a file that is open for writing.
const REMOUNTS_MAX: u32 = 600;
const REMOUNT_PAUSE: Duration = Duration::from_secs(1);

/// What is served.
pub struct Serving<'a> {
    /// The clock's beginning: the core was made at its moment zero.
    pub begun: Instant,
    /// The core.
    pub core: Filesystem,
    /// Its disk.
    pub service: Arc<dyn BlockService>,
    /// Told when the core has mounted, and requests are answered.
    pub on_ready: &'a mut dyn FnMut(),
    /// Told of what happens.
    pub on_event: Box<dyn FnMut(Event) + Send>,
}

/// How it has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Served {
    /// It was unmounted, and everything is in its place.
    InOrder,
    /// It was unmounted, and something that was written is not on the disk: what was synced is there after the next mount.
    NotStored,
    /// It was never mounted: the journal or the root directory cannot be read, or the disk does not store what is written.
    NotMounted,
    /// Something of ours has panicked, with this message: what was acknowledged is in the journal.
    Broken(String),
}

/// Answers the kernel's requests until the filesystem is unmounted, and brings everything to its place then.
///
/// # Errors
///
/// The kernel and this program do not understand each other, or a helper to mount with is missing.
pub fn serve(mut attached: Attached, serving: Serving<'_>) -> Result<Served, FuseError> {
    let Serving { begun, core, service, on_ready, on_event } = serving;
    let numbers = Numbers { root: core.root() };
    let on_event = also_in_the_kernel(on_event, &attached);
    let notifier: Arc<OnceLock<Notifier>> = Arc::default();
    let kernels = Arc::clone(&notifier);
    let on_invalidate = Box::new(move |inode| {
        if let Some(notifier) = kernels.get() {
            // Of attributes alone (-1): nothing that has a page locked waits for this. What is unmounted keeps nothing.
            drop(notifier.inval_inode(numbers.of_kernel(inode), -1, 0));
        }
    });
    let driver = Driver::new(Parts { core, service, on_event, on_invalidate, begun });
    let gate = Gate::new(Arc::clone(&driver) as Arc<dyn Inputs>);
    let kernel =
        Kernel { gate: gate.clone(), numbers, cache: attached.options.cache, opens_itself: false };
    let session = match std::mem::replace(&mut attached.way, Way::Taken) {
        Way::Open(fd) => Session::from_fd(kernel, fd, SessionACL::All, Config::default()),
        Way::Helper(config) => Session::new(kernel, &attached.point, &config),
        Way::Taken => unreachable!("it is taken once"),
    };
    let session = session.map_err(|error| {
        drop(detach(&attached.point));
        FuseError::new(format!("cannot mount on {}: {error}", attached.point.display()))
    })?;
    notifier.get_or_init(|| session.notifier());
    reading_ahead::widen(&attached.point, TRANSFER_MAX / 1_024);
    let thread = thread::Builder::new().name("filesystem".into()).spawn(move || driver.run());
    let thread = thread.map_err(|error| {
        drop(detach(&attached.point));
        FuseError::new(format!("cannot start a thread: {error}"))
    })?;
    let is_mounted = has_mounted(&gate, numbers.root);
    let ran = match is_mounted {
        true => {
            on_ready();
            session.run()
        }
        false => Err(io::Error::other("it was not mounted")),
    };
    if ran.is_err() {
        // The mount point is of no use any more; where it is gone already, nothing is undone.
        drop(detach(&attached.point));
    }
    gate.send(Input::Leave);
    let ended = thread.join().expect("the driver catches what panics");
    Ok(if is_mounted { served(ended, ran) } else { Served::NotMounted })
}

/// Waits until the core has mounted; whether the root can be read then, and a sync succeeds.
fn has_mounted(gate: &Gate, root: u64) -> bool {
    let ask = |what| {
        let (sender, answers) = mpsc::channel();
        let told = Box::new(move |answer| drop(sender.send(answer)));
        gate.ask(Caller { uid: 0, gid: 0 }, what, told);
        answers.recv().unwrap_or(Answer::Failed(levelhead_fs::Errno::Io))
    };
    matches!(ask(What::GetAttributes(root)), Answer::Attributes(_))
        && ask(What::Sync { inode: None }) == Answer::Done
}

/// When nothing is written any more, the kernel is told as well, where this program may.
fn also_in_the_kernel(
    mut on_event: Box<dyn FnMut(Event) + Send>,
    attached: &Attached,
) -> Box<dyn FnMut(Event) + Send> {
    let (point, flags) = (attached.point.clone(), attached.options.flags);
    Box::new(move |event| {
        on_event(event);
        if matches!(event, Event::ReadOnly { .. }) {
            let point = point.clone();
            // Not here: the kernel may ask something before it does so.
            let remount = move || remount_read_only(&point, flags);
            drop(thread::Builder::new().name("remount".into()).spawn(remount));
        }
    })
}

/// Remounts, and tries again for as long as a file is open for writing and what is mounted there is still the same.
fn remount_read_only(point: &Path, flags: Flags) {
    // Not by a look at its root: what answers for that may know nothing of it any more.
    let ours = reading_ahead::mounted_device(point);
    for _ in 0..REMOUNTS_MAX {
        match make_read_only(point, flags) {
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                thread::sleep(REMOUNT_PAUSE);
            }
            Ok(()) | Err(_) => return,
        }
        if ours.is_none() || reading_ahead::mounted_device(point) != ours {
            return;
        }
    }
}

fn served(ended: Ended, ran: io::Result<()>) -> Served {
    match (ended, ran) {
        (Ended::NotStored, _) => Served::NotStored,
        (Ended::InOrder, Ok(())) => Served::InOrder,
        (Ended::Broken(message), _) => Served::Broken(message),
        (Ended::InOrder, Err(error)) => Served::Broken(error.to_string()),
    }
}
