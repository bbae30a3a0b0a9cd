//! A kernel on strings: the machine's own, which a test can have refuse and hold back.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::flight::Flight;
use super::ring::{Event, Kernel};

/// What a test may do to the kernel, and what it learns of it.
#[derive(Default)]
pub(crate) struct Strings {
    /// The drives whose steps never begin from now on.
    hanging: Mutex<Vec<String>>,
    /// How often the kernel takes nothing from now on.
    pub(crate) refusals: AtomicU32,
    /// Steps that were started.
    pub(crate) steps: AtomicU32,
    /// Calls of the kernel that hand steps over.
    pub(crate) entries: AtomicU32,
}

impl Strings {
    /// The drive of this number hangs from now on; its file is called after it.
    pub(crate) fn hang(&self, drive: usize) {
        self.hanging.lock().unwrap().push(format!("{drive}.img"));
    }
}

/// A kernel on strings.
///
/// Differs from the real thing: a drive that hangs does so from its next step on, and what it has got is not
/// in the kernel.
pub(crate) struct Puppet {
    kernel: Box<dyn Kernel>,
    strings: Arc<Strings>,
    has_steps: bool,
}

impl Puppet {
    pub(crate) fn new(kernel: Box<dyn Kernel>, strings: Arc<Strings>) -> Self {
        Self { kernel, strings, has_steps: false }
    }
}

impl Kernel for Puppet {
    unsafe fn start(&mut self, name: u64, flight: &mut Flight) {
        self.strings.steps.fetch_add(1, Ordering::SeqCst);
        let link = format!("/proc/self/fd/{}", flight.under().medium.raw_fd());
        let path = std::fs::read_link(link).unwrap();
        if self.strings.hanging.lock().unwrap().iter().any(|name| path.ends_with(name)) {
            return;
        }
        self.has_steps = true;
        // SAFETY: the caller sees to what it is to see to.
        unsafe { self.kernel.start(name, flight) }
    }

    fn wait(&mut self, patience: Option<Duration>, events: &mut Vec<Event>) {
        let less = |left: u32| left.checked_sub(1);
        if self.strings.refusals.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less).is_ok() {
            return std::thread::sleep(patience.unwrap_or(Duration::MAX).min(PAUSE));
        }
        if std::mem::take(&mut self.has_steps) {
            self.strings.entries.fetch_add(1, Ordering::SeqCst);
        }
        self.kernel.wait(patience, events);
    }
}

const PAUSE: Duration = Duration::from_millis(1);
