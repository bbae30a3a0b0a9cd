//! The real clock, as the cores see it.

use std::cell::Cell;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{self, Duration};

use levelhead_array::ServerClock;
use levelhead_units::{Instant, Nanos};
use rustix::time::{ClockId, clock_gettime};

/// Lets this thread wake up from its waits as soon as they are over. Without it the kernel takes up to 50 microseconds more
/// (`PR_SET_TIMERSLACK` in prctl(2)), which is as much as a tenth of the shortest seek of an emulated drive.
pub(crate) fn precise_timers() {
    // Where it is not allowed, the thread is as late as others.
    let _refused = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
}

/// How long before its time a thread is woken up that must not be late: a sleep ends some sixty microseconds after it should, each
/// another amount, and the bytes of a read take as long.
const AHEAD: Duration = Duration::from_micros(150);
/// A shorter wait ends at its time and not before, so that each thread is kept awake for less than a sixth of its time.
const LONG: Duration = Duration::from_millis(1);

/// Waits for a message until `due`, or until a little before it if that is far: [`stay_awake_until`] is the rest.
pub(crate) fn receive_ahead_of<T>(
    messages: &Receiver<T>,
    due: time::Instant,
) -> Result<T, RecvTimeoutError> {
    let wait = due.saturating_duration_since(time::Instant::now());
    messages.recv_timeout(if wait < LONG { wait } else { wait - AHEAD })
}

/// Waits without sleeping, at most for as long as a thread is woken up ahead of its time.
pub(crate) fn stay_awake_until(due: time::Instant) {
    let end = due.min(time::Instant::now() + AHEAD);
    while time::Instant::now() < end {
        std::hint::spin_loop();
    }
}

/// The machine's monotonic time since the array was started. Copies agree.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock(time::Instant);

/// Less is no sleep: the two clocks are read one after the other.
const SLEEP_MIN: Duration = Duration::from_millis(50);

/// The longest that an engine with commands under way waits at a time, so that a standstill cannot hide in a wait.
const WAIT_MAX: Nanos = Nanos::from_millis(100);

/// The time in which the engine ran ([`ServerClock`]), which is the only time that its array sees.
#[derive(Debug)]
pub(crate) struct ServerTime {
    machine: Clock,
    clock: Cell<ServerClock>,
    /// How long the machine has slept so far.
    asleep: Cell<Duration>,
    stamps: Stamps,
}

/// The same time for other threads, as of the engine's last reading.
#[derive(Clone, Debug)]
pub(crate) struct Stamps {
    machine: Clock,
    /// [`ServerClock::stopped`], in nanoseconds.
    stopped: Arc<AtomicU64>,
}

impl ServerTime {
    pub(crate) fn new(machine: Clock) -> Self {
        let stamps = Stamps { machine, stopped: Arc::default() };
        Self { machine, clock: Cell::default(), asleep: Cell::new(time_asleep()), stamps }
    }

    pub(crate) fn stamps(&self) -> Stamps {
        self.stamps.clone()
    }

    pub(crate) fn now(&self) -> Instant {
        self.change(|clock| clock.read(self.machine.now()))
    }

    /// How long to wait now, for something that is due at `deadline`. The next reading follows that wait.
    pub(crate) fn plan_wait(&self, deadline: Instant, is_busy: bool) -> Nanos {
        let now = self.now();
        let wait = deadline.saturating_since(now);
        let wait = if is_busy { wait.min(WAIT_MAX) } else { wait };
        self.change(|clock| clock.plan_wait(wait));
        wait
    }

    /// Whether the engine did not run for a while since the last call, or the machine slept.
    pub(crate) fn take_standstill(&self) -> bool {
        let asleep = time_asleep();
        let has_slept = asleep > self.asleep.get() + SLEEP_MIN;
        self.asleep.set(asleep);
        self.change(ServerClock::take_standstill) || has_slept
    }

    fn change<T>(&self, change: impl FnOnce(&mut ServerClock) -> T) -> T {
        let mut clock = self.clock.get();
        let result = change(&mut clock);
        self.clock.set(clock);
        self.stamps.stopped.store(clock.stopped().get(), Ordering::Relaxed);
        result
    }
}

/// How long the machine has slept since it was booted, which its monotonic clock does not count.
fn time_asleep() -> Duration {
    let [with, without] = [ClockId::Boottime, ClockId::Monotonic].map(|clock| {
        let time = clock_gettime(clock);
        Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
    });
    with.saturating_sub(without)
}

impl Stamps {
    pub(crate) fn now(&self) -> Instant {
        let stopped = Nanos::new(self.stopped.load(Ordering::Relaxed));
        Instant::ZERO + self.machine.now().saturating_since(Instant::ZERO + stopped)
    }
}

impl Clock {
    pub(crate) fn start() -> Self {
        Self(time::Instant::now())
    }

    pub(crate) fn now(self) -> Instant {
        // 2^64 ns are 584 years.
        Instant::from_nanos(self.0.elapsed().as_nanos() as u64)
    }

    /// The same moment for the standard library.
    pub(crate) fn moment(self, at: Instant) -> time::Instant {
        self.0 + Duration::from_nanos(at.as_nanos())
    }

    /// How long it is until `deadline`; nothing if that has passed.
    pub(crate) fn until(self, deadline: Instant) -> Nanos {
        deadline.saturating_since(self.now())
    }
}
