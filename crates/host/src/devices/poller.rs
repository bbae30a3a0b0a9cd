//! A thread that asks one drive for its counts now and then, and keeps what follows from them where
//! the engine finds it.
//!
//! One thread a drive: a drive that hangs holds up what is known about itself alone. No other waits for
//! the thread to end; the end of its channel is its own, once the drive has answered.

use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use levelhead_block::Health;

use super::Access;
use super::counters::{Source, Track};
use crate::clock::Clock;

/// How often a drive is asked. Some spend milliseconds on such a question.
pub(crate) const PERIOD: Duration = Duration::from_secs(10);

/// See the module.
pub(crate) struct Poller {
    health: Arc<Mutex<Option<Health>>>,
    /// Its drop is the thread's end.
    _stop: Sender<()>,
}

impl Poller {
    /// Asks `device` every `period` from now on; `None` where no thread is to be had, and then
    /// nothing is known.
    pub(crate) fn start(
        source: Source,
        device: Box<dyn Access>,
        clock: Clock,
        period: Duration,
    ) -> Option<Self> {
        let health = Arc::new(Mutex::new(None));
        let (stop, stopped) = mpsc::channel::<()>();
        let known = Arc::clone(&health);
        let work = move || {
            let mut track = Track::default();
            loop {
                // A drive that once did not answer may answer again; what it said grows old.
                if let Ok(reading) = source.read(device.as_ref()) {
                    let said = track.add(clock.now(), reading);
                    *known.lock().unwrap_or_else(PoisonError::into_inner) = Some(said);
                }
                match stopped.recv_timeout(period) {
                    Err(RecvTimeoutError::Timeout) => {}
                    Ok(()) | Err(RecvTimeoutError::Disconnected) => return,
                }
            }
        };
        std::thread::Builder::new().name("health".into()).spawn(work).ok()?;
        Some(Self { health, _stop: stop })
    }

    /// What the drive says, if it has said anything.
    pub(crate) fn health(&self) -> Option<Health> {
        *self.health.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::atomic::{AtomicU64, Ordering};

    use levelhead_testkit::wait_until;
    use levelhead_units::Ratio;

    use super::*;
    use crate::devices::nvme::{Passthrough, Queue, tests::smart_page};
    use crate::devices::scsi::{Answer, Data};

    /// Has read a thousand units more at every question and failed five times more; leaves out every
    /// third answer.
    struct Busy(Arc<AtomicU64>);

    impl Access for Busy {
        fn scsi(&self, _: &[u8], _: Data<'_>) -> io::Result<Answer> {
            Err(io::ErrorKind::Unsupported.into())
        }

        fn nvme(&self, _: Queue, _: &Passthrough, data: &mut [u8]) -> io::Result<Result<u32, u16>> {
            let turn = self.0.fetch_add(1, Ordering::SeqCst);
            if turn % 3 == 2 {
                return Ok(Err(0x004));
            }
            let page = smart_page(u128::from(turn) * 1_000, u128::from(turn) * 1_250);
            data.copy_from_slice(&page);
            Ok(Ok(0))
        }
    }

    impl Drop for Busy {
        fn drop(&mut self) {
            self.0.store(u64::MAX, Ordering::SeqCst);
        }
    }

    #[test]
    fn health_is_known_after_two_answers_and_the_thread_ends_with_its_poller() {
        let turns = Arc::new(AtomicU64::new(0));
        let device = Box::new(Busy(Arc::clone(&turns)));
        let period = Duration::from_millis(1);
        let poller = Poller::start(Source::NvmeSmart, device, Clock::start(), period).unwrap();
        let rate = || poller.health().and_then(|said| said.retry_rate);
        wait_until("health is known", || rate().is_some());
        assert_eq!(rate(), Some(Ratio::new(0.01).unwrap()));
        drop(poller);
        wait_until("the thread has ended", || turns.load(Ordering::SeqCst) == u64::MAX);
    }
}
