//! A mount from its first request to its last.

use std::io;
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use fuser::{Config, Session, SessionACL};
use levelhead_block::BlockService;
use levelhead_fs::{Event, Filesystem};

use crate::attach::{Attached, Way, detach, make_read_only};
use crate::driver::{Driver, Ended, Parts};
use crate::error::FuseError;
use crate::gate::{Gate, Input, Inputs};
use crate::kernel::{Kernel, TRANSFER_MAX};
use crate::reading_ahead;
use crate::translate::Numbers;

/// What is served.
pub struct Serving<'a> {
    /// The clock's beginning: the core was made at its moment zero.
    pub begun: Instant,
    /// The core.
    pub core: Filesystem,
    /// Its disk.
    pub service: Arc<dyn BlockService>,
    /// Told when the kernel has everything that it needs.
    pub on_ready: &'a mut dyn FnMut(),
    /// Told of what happens.
    pub on_event: Box<dyn FnMut(Event) + Send>,
}

/// How it has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Served {
    /// It was unmounted, and everything is in its place.
    InOrder,
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
    let driver = Driver::new(Parts { core, service, on_event, begun });
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
    reading_ahead::widen(&attached.point, TRANSFER_MAX / 1_024);
    let thread = thread::Builder::new().name("filesystem".into()).spawn(move || driver.run());
    let thread = thread.map_err(|error| {
        drop(detach(&attached.point));
        FuseError::new(format!("cannot start a thread: {error}"))
    })?;
    on_ready();
    let ran = session.run();
    if ran.is_err() {
        // The mount point is of no use any more; where it is gone already, nothing is undone.
        drop(detach(&attached.point));
    }
    gate.send(Input::Leave);
    let ended = thread.join().expect("the driver catches what panics");
    Ok(served(ended, ran))
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
            let remount = move || drop(make_read_only(&point, flags));
            drop(thread::Builder::new().name("remount".into()).spawn(remount));
        }
    })
}

fn served(ended: Ended, ran: io::Result<()>) -> Served {
    match (ended, ran) {
        (Ended::InOrder, Ok(())) => Served::InOrder,
        (Ended::Broken(message), _) => Served::Broken(message),
        (Ended::InOrder, Err(error)) => Served::Broken(error.to_string()),
    }
}
