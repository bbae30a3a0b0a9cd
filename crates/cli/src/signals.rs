//! Signals that ask the program to end.

use levelhead_app::{AppError, Stop};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// A wish to stop that Ctrl-C, SIGTERM and SIGHUP make. The second one ends the program at once.
pub(crate) fn stop_on_signals() -> Result<Stop, AppError> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])
        .map_err(|error| AppError::trouble(format!("cannot listen for signals: {error}")))?;
    let stop = Stop::new();
    let wish = stop.clone();
    std::thread::spawn(move || {
        for signal in signals.forever() {
            if wish.is_wished() {
                std::process::exit(128 + signal);
            }
            wish.wish();
        }
    });
    Ok(stop)
}
