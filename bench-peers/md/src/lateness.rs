//! How busy the host was while a run was on: what others' work does to figures in real time.

use std::fs;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use levelhead_stats::Summary;
use levelhead_units::Nanos;

/// One sleep of the thread that watches.
const NAP: Duration = Duration::from_millis(5);

/// What was seen.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lateness {
    /// By how much the host overslept naps.
    pub(crate) naps: Summary,
    /// Its load average over the last minute, at the end.
    pub(crate) load: f64,
}

/// A thread that sleeps for a moment, over and over.
#[derive(Debug)]
pub(crate) struct Watch {
    end: Sender<()>,
    thread: JoinHandle<Vec<Nanos>>,
}

impl Watch {
    pub(crate) fn start() -> Self {
        let (end, ended) = mpsc::channel();
        let thread = thread::spawn(move || {
            let mut late = Vec::new();
            loop {
                let due = Instant::now() + NAP;
                match ended.recv_timeout(NAP) {
                    Err(RecvTimeoutError::Timeout) => {
                        let micros = due.elapsed().as_micros();
                        late.push(Nanos::from_micros(u64::try_from(micros).expect("a nap ends")));
                    }
                    Ok(()) | Err(RecvTimeoutError::Disconnected) => return late,
                }
            }
        });
        Self { end, thread }
    }

    pub(crate) fn end(self) -> Lateness {
        drop(self.end);
        // A thread that panicked has said so on its own.
        let naps = Summary::of(&mut self.thread.join().unwrap_or_default());
        Lateness { naps, load: load() }
    }
}

/// The host's load average over the last minute, 0 where it is not told.
pub(crate) fn load() -> f64 {
    first_number(&fs::read_to_string("/proc/loadavg").unwrap_or_default())
}

fn first_number(text: &str) -> f64 {
    text.split_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_load_of_the_last_minute_is_the_first_number() {
        assert!((first_number("1.43 0.51 1.01 2/160 4711\n") - 1.43).abs() < f64::EPSILON);
        assert!(first_number("").abs() < f64::EPSILON);
    }

    #[test]
    fn a_watch_sees_naps_and_ends_when_it_is_told_to() {
        let watch = Watch::start();
        thread::sleep(20 * NAP);
        assert!(watch.end().naps.count > 0);
    }
}
