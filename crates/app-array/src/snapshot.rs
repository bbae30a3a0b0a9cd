//! How a running array is, for those who must not wait long: a scrape of its metrics, a watchdog.
//!
//! The engine is asked between two other things that it does, and not again before it has answered: so however
//! many ask, and however busy it is, one question waits for it. An answer serves all who ask within [`FRESH`].

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use levelhead_host::{ArrayHandle, Asked, HostError, Status};
use levelhead_units::Nanos;

/// How long an answer is as good as a new one.
const FRESH: Duration = Duration::from_millis(100);

/// See the module.
pub(super) struct Snapshots {
    array: ArrayHandle,
    last: Mutex<Last>,
}

#[derive(Default)]
struct Last {
    /// The question that has not been answered.
    asked: Option<Asked<Status>>,
    answer: Option<(Instant, Arc<Status>)>,
}

impl Snapshots {
    pub(super) fn new(array: ArrayHandle) -> Self {
        Self { array, last: Mutex::default() }
    }

    /// How the array is; nothing if it does not say so within `patience`.
    ///
    /// # Errors
    ///
    /// The array has ended.
    pub(super) fn take(&self, patience: Duration) -> Result<Option<Arc<Status>>, HostError> {
        let by = Instant::now() + patience;
        // Others hold it no longer than their own patience, which has begun earlier.
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at, status)) = &last.answer
            && at.elapsed() < FRESH
        {
            return Ok(Some(Arc::clone(status)));
        }
        let asked = match last.asked.take() {
            Some(asked) => asked,
            None => self.array.ask_status()?,
        };
        let left = by.saturating_duration_since(Instant::now());
        match asked.wait(Nanos::new(left.as_nanos() as u64))? {
            Some(status) => {
                let status = Arc::new(status);
                last.answer = Some((Instant::now(), Arc::clone(&status)));
                Ok(Some(status))
            }
            None => {
                last.asked = Some(asked);
                Ok(None)
            }
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::mpsc;
    use std::thread;

    use levelhead_array::{HostOrder, Patience, Policy};
    use levelhead_erasure::{Kernel, Measured};
    use levelhead_host::{
        AssembleOptions, Bound, CreateOptions, FastFail, Io, MemberSpec, ServeOptions, assemble,
        create,
    };
    use levelhead_units::Sectors;
    use tempfile::TempDir;

    use super::*;

    /// A running array of two files.
    pub(crate) fn array(dir: &TempDir) -> ArrayHandle {
        let members = [0, 1].map(|at| {
            let path = dir.path().join(format!("{at}.img"));
            std::fs::File::create(&path).unwrap().set_len(8 << 20).unwrap();
            path.display().to_string().parse::<MemberSpec>().unwrap()
        });
        let spec = "raid0:2,chunk=8KiB".parse().unwrap();
        create(spec, &members[..].into(), CreateOptions::default()).unwrap();
        let options = ServeOptions {
            policy: Policy::DEFAULT,
            window: 32,
            order: HostOrder::Elevator,
            io: Io::Threads,
            arithmetic: Measured::none(Kernel::best(), &[]),
            bound: Bound { requests: 8, sectors: Sectors::new(1024) },
            seed: 1,
            patience: Patience::DEFAULT,
            on_event: None,
            verify: None,
            fast_fail: FastFail::Command,
        };
        assemble(&members, AssembleOptions::default()).unwrap().serve(options).unwrap()
    }

    #[test]
    fn engine_that_is_busy_is_waited_for_no_longer_than_asked_and_answers_the_next_one() {
        let dir = TempDir::new().unwrap();
        let array = array(&dir);
        let snapshots = Snapshots::new(array.clone());
        let (release, held) = mpsc::channel::<()>();
        let (begin, begun) = mpsc::channel();
        let busy = array.clone();
        let operator = thread::spawn(move || {
            busy.command(move |_| {
                begin.send(()).unwrap();
                let _released = held.recv();
                Ok(())
            })
        });
        begun.recv().unwrap();
        for _ in 0..3 {
            assert!(snapshots.take(Duration::from_millis(10)).unwrap().is_none());
        }
        assert!(snapshots.last.lock().unwrap().asked.is_some(), "the one question");
        release.send(()).unwrap();
        operator.join().unwrap().unwrap();
        let long = Duration::from_secs(60);
        let status = snapshots.take(long).unwrap().unwrap();
        assert_eq!(status.drives.len(), 2);
        array.stop().unwrap();
        while snapshots.take(long).is_ok() {} // What it last said is as good as new for a moment.
    }
}
