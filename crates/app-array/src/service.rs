//! What a service manager is told of a served array: systemd, or one that speaks as it does (sd_notify(3)).
//!
//! ```text
//!   clients are welcome                       Ready, Status
//!   every period, if the engine has answered  Alive             Status where it has changed
//!   a stop is wished                          Stopping
//!   every period until the end                Alive, MoreTime   no longer than a stop may take
//! ```
//!
//! A thread of its own asks the engine how the array is, and waits for half a period. An engine that answers nothing
//! gets no sign of life, so that the manager's watchdog ends the program; a drive that hangs stops no engine.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use levelhead_array::Patience;
use levelhead_host::{ArrayState, DriveStatus, Status, words};
use levelhead_units::{DriveIdx, DriveSet};

use super::snapshot::Snapshots;
use levelhead_app::{AppError, threads};

/// What a service manager is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// Clients are welcome.
    Ready,
    /// How the array is, in one line.
    Status(String),
    /// The program is alive.
    Alive,
    /// A stop has begun.
    Stopping,
    /// The stop goes on: it is not to be broken off for so long.
    MoreTime(Duration),
}

/// A service manager that waits to be told.
pub struct Service {
    /// Takes notices. It may not wait for the manager.
    pub tell: Box<dyn Fn(Notice) + Send>,
    /// How long the program may give no sign of life, if that is watched.
    pub watchdog: Option<Duration>,
}

/// The most time between two looks at the array.
const PERIOD_MAX: Duration = Duration::from_secs(5);

/// How many periods a stop asks for, each time: some notices may be late.
const PERIODS_AHEAD: u32 = 3;

/// What a stop may take besides what the array may: for clients' last answers, drives to be closed, programs of
/// `--on-event`, and what is printed.
const STOP_BESIDES: Duration = Duration::from_secs(30);

/// The most time from a wish to stop to the end of the program, whatever hangs: requests are given up, and then the
/// drives, each as long as the array waits for an answer.
pub fn stop_bound(patience: Patience) -> Duration {
    let given_up = patience.lost + patience.silent;
    Duration::from(given_up + patience.answer()) + STOP_BESIDES
}

/// See the module. Ends when dropped.
pub(super) struct Pulse {
    phase: Arc<(Mutex<Phase>, Condvar)>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Running,
    /// Until then there may be more time for the stop.
    Stopping(Instant),
    Ended,
}

impl Pulse {
    /// Says that the array is ready, and how it is from now on.
    ///
    /// # Errors
    ///
    /// The system has no thread left.
    pub(super) fn start(service: Service, snapshots: Arc<Snapshots>) -> Result<Self, AppError> {
        let phase = Arc::new((Mutex::new(Phase::Running), Condvar::new()));
        let shared = Arc::clone(&phase);
        let teller = Teller { service, snapshots, told: None };
        let thread = threads::start("service", move || teller.run(&shared))?;
        Ok(Self { phase, thread: Some(thread) })
    }

    /// A stop has begun, which takes no longer than `bound`.
    pub(super) fn stopping(&self, bound: Duration) {
        self.change(Phase::Stopping(Instant::now() + bound));
    }

    fn change(&self, next: Phase) {
        *lock(&self.phase.0) = next;
        self.phase.1.notify_all();
    }
}

impl Drop for Pulse {
    fn drop(&mut self) {
        self.change(Phase::Ended);
        if let Some(thread) = self.thread.take() {
            // One that panicked has said so on its own.
            drop(thread.join());
        }
    }
}

fn lock(phase: &Mutex<Phase>) -> MutexGuard<'_, Phase> {
    phase.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Teller {
    service: Service,
    snapshots: Arc<Snapshots>,
    /// The last status that was told.
    told: Option<String>,
}

impl Teller {
    fn run(mut self, phase: &(Mutex<Phase>, Condvar)) {
        (self.service.tell)(Notice::Ready);
        let period = self.service.watchdog.map_or(PERIOD_MAX, |limit| (limit / 2).min(PERIOD_MAX));
        let mut seen = Phase::Running;
        loop {
            let now = *lock(&phase.0);
            match (seen, now) {
                (_, Phase::Ended) => return,
                (Phase::Running, Phase::Stopping(_)) => {
                    (self.service.tell)(Notice::Stopping);
                    self.tell_status("it is being stopped".to_owned());
                }
                _ => {}
            }
            seen = now;
            self.look(now, period);
            let same = |phase: &mut Phase| *phase == seen;
            drop(phase.1.wait_timeout_while(lock(&phase.0), period, same));
        }
    }

    fn look(&mut self, phase: Phase, period: Duration) {
        let is_alive = match (self.snapshots.take(period / 2), phase) {
            (Ok(Some(status)), Phase::Running) => {
                self.tell_status(sentence(&status));
                true
            }
            (Ok(Some(_)), _) => true,
            (Ok(None), _) => false,
            // An array that has ended leaves the program little to do, which is bounded.
            (Err(_), _) => phase != Phase::Running,
        };
        if is_alive && self.service.watchdog.is_some() {
            (self.service.tell)(Notice::Alive);
        }
        if let Phase::Stopping(by) = phase {
            let left = by.saturating_duration_since(Instant::now());
            let more = left.min(period * PERIODS_AHEAD);
            if more > Duration::ZERO {
                (self.service.tell)(Notice::MoreTime(more));
            }
        }
    }

    fn tell_status(&mut self, status: String) {
        if self.told.as_ref() != Some(&status) {
            (self.service.tell)(Notice::Status(status.clone()));
            self.told = Some(status);
        }
    }
}

/// How an array is, in one line that does not change with every request.
fn sentence(status: &Status) -> String {
    let mut sentence = status.spec.to_string();
    sentence.push_str(match status.state {
        ArrayState::Whole => ": whole",
        ArrayState::Degraded => ": degraded",
        ArrayState::Failed => ": failed",
    });
    let those = |is: fn(&DriveStatus) -> bool| -> DriveSet {
        let drives = (0..).map(DriveIdx::from_usize).zip(&status.drives);
        drives.filter(|(_, drive)| is(drive)).map(|(idx, _)| idx).collect()
    };
    for (what, drives) in [
        ("without", those(|drive| !drive.state.is_used())),
        ("unresponsive:", those(|drive| drive.is_silent)),
        ("avoided:", those(|drive| drive.sits_out && !drive.is_silent)),
    ] {
        if !drives.is_empty() {
            sentence.push_str(&format!(", {what} {}", words::drives(drives)));
        }
    }
    let percent = (status.synced.get() * 100.0).floor();
    if percent < 100.0 {
        sentence.push_str(&format!(", {percent} % of its redundancy valid"));
    }
    sentence
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use tempfile::TempDir;

    use super::super::snapshot::tests::array;
    use super::*;

    #[test]
    fn unit_for_systemd_waits_for_as_long_as_a_stop_may_take() {
        let unit = include_str!("../../../contrib/levelhead@.service");
        let line = unit.lines().find_map(|line| line.strip_prefix("TimeoutStopSec=")).unwrap();
        let seconds: u64 = line.strip_suffix('s').unwrap().parse().unwrap();
        assert_eq!(stop_bound(Patience::DEFAULT), Duration::from_secs(seconds));
    }

    #[test]
    fn engine_that_does_nothing_gives_no_sign_of_life_and_one_that_goes_on_does() {
        let dir = TempDir::new().unwrap();
        let array = array(&dir);
        let (tells, told) = mpsc::channel();
        let service = Service {
            tell: Box::new(move |notice| drop(tells.send(notice))),
            watchdog: Some(Duration::from_millis(20)),
        };
        let pulse = Pulse::start(service, Arc::new(Snapshots::new(array.clone()))).unwrap();
        assert_eq!(told.recv().unwrap(), Notice::Ready);
        assert_eq!(told.recv().unwrap(), Notice::Status("raid0:2+0,chunk=8KiB: whole".into()));
        let wait_for_life = || while told.recv().unwrap() != Notice::Alive {};
        wait_for_life();
        let (release, held) = mpsc::channel::<()>();
        let (begin, begun) = mpsc::channel();
        let busy = array.clone();
        let operator = std::thread::spawn(move || {
            busy.command(move |_| {
                begin.send(()).unwrap();
                let _released = held.recv();
                Ok(())
            })
        });
        begun.recv().unwrap();
        // What the array said before it got busy is as good as new for a moment; then nothing comes any more.
        while told.recv_timeout(Duration::from_millis(500)).is_ok() {}
        release.send(()).unwrap();
        operator.join().unwrap().unwrap();
        wait_for_life();
        pulse.stopping(Duration::from_secs(60));
        while told.recv().unwrap() != Notice::Stopping {}
        array.stop().unwrap();
        let rest: Vec<Notice> = (0..8).map(|_| told.recv().unwrap()).collect();
        assert!(rest.contains(&Notice::Alive), "{rest:?}");
        let more = Notice::MoreTime(Duration::from_millis(10) * PERIODS_AHEAD);
        assert!(rest.contains(&more), "{rest:?}");
        drop(pulse);
        while told.recv().is_ok() {}
    }

    #[test]
    fn stop_that_takes_longer_than_it_may_gets_no_more_time() {
        let dir = TempDir::new().unwrap();
        let (tells, told) = mpsc::channel();
        let tell = Box::new(move |notice| drop(tells.send(notice)));
        let service = Service { tell, watchdog: Some(Duration::from_millis(20)) };
        let pulse = Pulse::start(service, Arc::new(Snapshots::new(array(&dir)))).unwrap();
        pulse.stopping(Duration::ZERO);
        while told.recv().unwrap() != Notice::Stopping {}
        let rest: Vec<Notice> = (0..5).map(|_| told.recv().unwrap()).collect();
        assert!(!rest.iter().any(|notice| matches!(notice, Notice::MoreTime(_))), "{rest:?}");
    }
}
