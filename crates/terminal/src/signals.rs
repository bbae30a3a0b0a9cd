//! Signals that ask the program to end.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use levelhead_app::{AppError, Stop, threads};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::printer;

/// Whether something has begun that must not just be broken off.
#[derive(Clone)]
pub struct Begun(Arc<Mutex<bool>>);

impl Begun {
    /// It begins now. Does not come back if a signal has ended the program first.
    pub fn note(&self) {
        *self.lock() = true;
    }

    fn lock(&self) -> MutexGuard<'_, bool> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A wish to stop that Ctrl-C, SIGTERM and SIGHUP make. The second one ends the program at once.
pub fn stop_on_signals() -> Result<Stop, AppError> {
    let (stop, begun) = stop_once_begun()?;
    begun.note();
    Ok(stop)
}

/// The same, but until something has begun the first signal ends the program at once: whatever it waits for
/// then, nothing was changed yet.
pub fn stop_once_begun() -> Result<(Stop, Begun), AppError> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])
        .map_err(|error| AppError::trouble(format!("cannot listen for signals: {error}")))?;
    let (stop, begun) = (Stop::new(), Begun(Arc::default()));
    let (wish, beginning) = (stop.clone(), begun.clone());
    let listen = move || {
        for signal in signals.forever() {
            // Held until the program has ended, so that nothing begins meanwhile.
            let has_begun = beginning.lock();
            if !*has_begun {
                printer::say_last(
                    "levelhead: it was stopped before it had changed anything".into(),
                );
            }
            if !*has_begun || wish.is_wished() {
                std::process::exit(128 + signal);
            }
            wish.wish();
        }
    };
    threads::start("signals", listen)?;
    Ok((stop, begun))
}
