//! A thread that looks now and then whether a drive can still be used, and keeps what it saw where the engine
//! finds it.
//!
//! To learn how large a file is may take as long as a read of it: on a file system that some machine or program
//! behind it answers for, it hangs when they do. So no thread looks that others wait for, and one drive that
//! hangs holds up what is known of itself alone. A look that does not end is no loss.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::backend::Look;

/// How often a drive is looked at.
const PERIOD: Duration = Duration::from_secs(1);

/// How long an array that ends waits for a look to end, so that it has let go of the drive.
const FAREWELL: Duration = Duration::from_secs(1);

/// See the module.
pub(crate) struct Watch {
    loss: Arc<Mutex<Option<String>>>,
    /// Absent only while it is dropped: its drop is the thread's end.
    stop: Option<Sender<()>>,
    /// Is closed when the thread has let go of the drive.
    gone: Receiver<()>,
}

impl Watch {
    /// Looks from now on; `None` where no thread is to be had, and then reads and writes will say what is wrong.
    pub(crate) fn start(look: Look) -> Option<Self> {
        let loss = Arc::new(Mutex::new(None));
        let (stop, stopped) = mpsc::channel::<()>();
        let (goes, gone) = mpsc::channel::<()>();
        let seen = Arc::clone(&loss);
        let work = move || {
            loop {
                if let Some(why) = look() {
                    *seen.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
                    break;
                }
                match stopped.recv_timeout(PERIOD) {
                    Err(RecvTimeoutError::Timeout) => {}
                    Ok(()) | Err(RecvTimeoutError::Disconnected) => break,
                }
            }
            drop(look);
            drop(goes);
        };
        std::thread::Builder::new().name("watch".into()).spawn(work).ok()?;
        Some(Self { loss, stop: Some(stop), gone })
    }

    /// Why the drive must not be used any more, once that was seen.
    pub(crate) fn loss(&self) -> Option<String> {
        self.loss.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.stop = None;
        // A look that hangs is left behind.
        let _left_behind = self.gone.recv_timeout(FAREWELL);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[test]
    fn loss_is_kept_and_the_drive_is_let_go() {
        let looks = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&looks);
        let look = move || {
            (counted.fetch_add(1, Ordering::SeqCst) == 1).then(|| "it is shorter".to_owned())
        };
        let watch = Watch::start(Box::new(look)).unwrap();
        let loss = loop {
            if let Some(loss) = watch.loss() {
                break loss;
            }
            std::thread::yield_now();
        };
        assert_eq!(loss, "it is shorter");
        assert_eq!(looks.load(Ordering::SeqCst), 2, "it was looked at after it was lost");
        drop(watch);
        assert_eq!(Arc::strong_count(&looks), 1);
    }

    #[test]
    fn watch_that_ends_holds_nothing_any_more() {
        let held = Arc::new(());
        let own = Arc::clone(&held);
        let look = move || {
            let _own = &own;
            None
        };
        drop(Watch::start(Box::new(look)).unwrap());
        assert_eq!(Arc::strong_count(&held), 1);
    }
}
