//! How late this machine's threads wake up.
//!
//! One thread waits for times, another for messages of the first, which waits for the answer to each, and both say by how much they
//! were late. They wait as an emulated drive does, on channels, at other moments than anything else here.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use levelhead_drive::measure::Wake;
use levelhead_units::Nanos;

use crate::clock::{precise_timers, receive_ahead_of, stay_awake_until};
use crate::error::HostError;

/// How long the waits are, by turns: some two hundred a second, in step with nothing.
const WAITS: [Duration; 5] = [
    Duration::from_micros(3_100),
    Duration::from_micros(5_300),
    Duration::from_micros(4_100),
    Duration::from_micros(6_700),
    Duration::from_micros(3_700),
];

/// See the module. Dropping it ends the threads.
pub struct WakeProbe {
    samples: Receiver<(Wake, Nanos)>,
    /// Absent only while it is dropped: the end of the channel is the threads' end.
    stop: Option<Sender<()>>,
    threads: Vec<JoinHandle<()>>,
}

impl WakeProbe {
    /// Starts to look.
    ///
    /// # Errors
    ///
    /// There are no more threads.
    pub fn start() -> Result<Self, HostError> {
        let (sender, samples) = mpsc::channel();
        let (stop, stopped) = mpsc::channel();
        let (ping, pings) = mpsc::channel();
        let (pong, pongs) = mpsc::channel();
        let mut probe = Self { samples, stop: Some(stop), threads: Vec::new() };
        let of_timer = sender.clone();
        let times = Times { stopped, ping, pongs, samples: of_timer };
        probe.spawn(move || times.wait())?;
        probe.spawn(move || wait_for_messages(&pings, &pong, &sender))?;
        Ok(probe)
    }

    /// How late they were since the last call.
    pub fn drain(&self) -> impl Iterator<Item = (Wake, Nanos)> + '_ {
        self.samples.try_iter()
    }

    fn spawn(&mut self, work: impl FnOnce() + Send + 'static) -> Result<(), HostError> {
        let thread = std::thread::Builder::new()
            .name("wake-up probe".into())
            .spawn(work)
            .map_err(|error| HostError::new(format!("cannot start a thread: {error}")))?;
        self.threads.push(thread);
        Ok(())
    }
}

impl Drop for WakeProbe {
    fn drop(&mut self) {
        self.stop = None;
        for thread in self.threads.drain(..) {
            // A thread that panicked has said so on its own.
            drop(thread.join());
        }
    }
}

/// What the thread has that waits for times.
struct Times {
    stopped: Receiver<()>,
    ping: Sender<Instant>,
    /// When the answers were sent.
    pongs: Receiver<Instant>,
    samples: Sender<(Wake, Nanos)>,
}

impl Times {
    fn wait(&self) {
        precise_timers();
        for wait in WAITS.into_iter().cycle() {
            let due = Instant::now() + wait;
            match receive_ahead_of(&self.stopped, due) {
                Err(RecvTimeoutError::Timeout) => stay_awake_until(due),
                Ok(()) | Err(RecvTimeoutError::Disconnected) => return,
            }
            let late = Instant::now().saturating_duration_since(due);
            // Without its reader the probe is about to be dropped.
            let _unheard = self.samples.send((Wake::Timer, nanos(late)));
            let _unheard = self.ping.send(Instant::now());
            let Ok(sent) = self.pongs.recv() else { return };
            let _unheard = self.samples.send((Wake::Answer, nanos(sent.elapsed())));
        }
    }
}

fn wait_for_messages(
    pings: &Receiver<Instant>,
    pong: &Sender<Instant>,
    samples: &Sender<(Wake, Nanos)>,
) {
    for sent in pings {
        let _unheard = samples.send((Wake::Message, nanos(sent.elapsed())));
        let _unheard = pong.send(Instant::now());
    }
}

fn nanos(time: Duration) -> Nanos {
    // Five hundred years fit.
    Nanos::new(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_kinds_of_waits_are_looked_at_until_the_probe_is_dropped() {
        let probe = WakeProbe::start().unwrap();
        let mut seen = [0; 3];
        while seen.iter().any(|&count| count < 10) {
            for (wake, _) in probe.drain() {
                seen[wake as usize] += 1;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        // Joins its threads.
        drop(probe);
    }
}
