//! How late this machine wakes threads up: what real time has and virtual time has not.
//!
//! A thread sleeps for a moment, over and over, and takes down by how much it overslept. Client, server,
//! engine and drives sleep on the same machine and oversleep alike.

use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use levelhead_stats::Summary;
use levelhead_units::Nanos;

use levelhead_app::threads;

/// One sleep.
const NAP: Duration = Duration::from_millis(5);

/// The thread, while a run is on.
pub(super) struct Watch {
    end: Sender<()>,
    /// Absent where none could be had.
    thread: Option<JoinHandle<Vec<Nanos>>>,
}

impl Watch {
    pub(super) fn start() -> Self {
        let (end, ended) = mpsc::channel();
        let watch = move || {
            let mut late = Vec::new();
            loop {
                let due = Instant::now() + NAP;
                match ended.recv_timeout(NAP) {
                    Err(RecvTimeoutError::Timeout) => late.push(nanos(due.elapsed())),
                    Ok(()) | Err(RecvTimeoutError::Disconnected) => return late,
                }
            }
        };
        let thread = threads::start("lateness", watch).ok();
        Self { end, thread }
    }

    /// How late it was, each time.
    pub(super) fn end(self) -> Summary {
        drop(self.end);
        // A thread that panicked has said so on its own.
        let late = self.thread.and_then(|thread| thread.join().ok());
        Summary::of(&mut late.unwrap_or_default())
    }
}

fn nanos(length: Duration) -> Nanos {
    Nanos::new(u64::try_from(length.as_nanos()).expect("a sleep is short"))
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn watch_ends_when_it_is_told_to_and_has_looked_meanwhile() {
        let watch = Watch::start();
        thread::sleep(20 * NAP);
        let late = watch.end();
        assert!(late.count > 0, "{late:?}");
        assert_eq!(Watch::start().end().count, 0, "over before the first sleep");
    }
}
