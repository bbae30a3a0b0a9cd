//! One place of an array: the drive in it, and what the engine knows of its work.

use std::sync::Arc;

use levelhead_array::{Array, DriveCounters, Promise, Reach};
use levelhead_block::{Command, Health, Outcome, Reply};
use levelhead_units::{DriveIdx, Instant, Nanos};

use crate::backend::{Emulated, Look, Member};
use crate::devices::erc::FAREWELL;
use crate::devices::poller::Poller;
use crate::devices::ways::ReadWays;
use crate::medium::Medium;
use crate::uring::Under;
use crate::watch::Watch;

/// One place of the array.
pub(crate) struct Seat {
    /// The member as it was named; absent where the drive was missing from the start, or was removed.
    pub(crate) name: Option<String>,
    /// Absent where the drive was missing from the start, or is closed.
    pub(crate) backend: Option<Backend>,
    /// How reads that are no ordinary ones reach the drive.
    pub(crate) ways: Option<Arc<ReadWays>>,
    /// How long a revolution takes, where that is known.
    pub(crate) revolution: Option<Nanos>,
    /// Whether what its reads take says where they come from.
    pub(crate) reach: Reach,
    /// Watches what a real drive says of itself.
    pub(crate) poller: Option<Poller>,
    /// Looks whether the drive can still be used.
    pub(crate) watch: Option<Watch>,
    /// Whether an operator removed the drive that was here.
    pub(crate) is_removed: bool,
    pub(crate) work: Work,
}

impl Drop for Seat {
    fn drop(&mut self) {
        // The ring may keep the ways of a drive that has left its place.
        if let Some(limit) = self.ways.as_ref().and_then(|ways| ways.drive_limit()) {
            limit.stop();
        }
        if self.work.is_at_work()
            && let Some(backend) = self.backend.take()
        {
            // It hangs, and its end is not to be waited for: its threads go with the program (E4 of the engine).
            backend.abandon();
        }
    }
}

/// What holds a drive open.
pub(crate) struct Parts {
    pub(crate) backend: Backend,
    ways: Option<Arc<ReadWays>>,
    poller: Option<Poller>,
    watch: Option<Watch>,
}

impl Parts {
    /// Closes the drive. Waits for what is under way, unless another machine or program answers for it.
    pub(crate) fn close(self) {
        let Self { backend, ways, poller, watch } = self;
        drop((poller, watch));
        if let Backend::Member(member) = &backend {
            member.leave();
        }
        drop(backend);
        if let Some(limit) = ways.as_ref().and_then(|ways| ways.drive_limit()) {
            limit.stop();
            // The record of one that does not answer stays.
            let _left_behind = limit.left_behind(FAREWELL);
        }
    }
}

/// Who sees to a drive's commands.
pub(crate) enum Backend {
    /// It does, on threads of its own.
    Member(Box<dyn Member>),
    /// The engine, through its ring, where the drive has this number.
    Ring { lane: usize, under: Arc<Under> },
    /// The engine, at once: no command for it waits.
    AtOnce(Arc<Medium>),
}

impl Backend {
    /// What the drive says about itself, if it says anything.
    fn health(&self) -> Option<Health> {
        match self {
            Self::Member(member) => member.health(),
            Self::Ring { .. } | Self::AtOnce(_) => None,
        }
    }

    /// How to make it misbehave, if that is possible.
    pub(crate) fn emulated(&self) -> Option<&dyn Emulated> {
        match self {
            Self::Member(member) => member.emulated(),
            Self::Ring { .. } | Self::AtOnce(_) => None,
        }
    }

    /// How to see that it must not be used any more although it answers.
    pub(crate) fn look(&self) -> Option<Look> {
        let medium = match self {
            Self::Member(member) => return member.look(),
            Self::Ring { under, .. } => Arc::clone(&under.medium),
            Self::AtOnce(medium) => Arc::clone(medium),
        };
        Some(Box::new(move || medium.shortened().map(|error| error.to_string())))
    }

    /// Lets go of it without waiting for what is under way.
    fn abandon(self) {
        match self {
            Self::Member(member) => {
                // An export would be brought back, and what it was given written there again.
                member.leave();
                std::mem::forget(member);
            }
            // What is under way keeps it open.
            Self::Ring { .. } | Self::AtOnce(_) => {}
        }
    }
}

impl Seat {
    /// A place whose drive is missing.
    pub(crate) fn missing() -> Self {
        Self {
            name: None,
            backend: None,
            ways: None,
            revolution: None,
            reach: Reach::Far,
            poller: None,
            watch: None,
            is_removed: false,
            work: Work::default(),
        }
    }

    /// Takes what holds the drive open; nothing if nothing does.
    pub(crate) fn take_parts(&mut self) -> Option<Parts> {
        let backend = self.backend.take()?;
        let Self { ways, poller, watch, .. } = self;
        Some(Parts { backend, ways: ways.take(), poller: poller.take(), watch: watch.take() })
    }

    /// What a read from its medium is worth now.
    pub(crate) fn promise(&self) -> Promise {
        self.ways.as_ref().map_or(Promise::Interface, |ways| ways.promise())
    }

    /// Tells an array what it has to know of the drive, which is in this place from now on.
    pub(crate) fn introduce(&self, drive: DriveIdx, array: &mut Array) {
        array.handle_promise(drive, self.promise());
        array.handle_revolution(drive, self.revolution);
        array.handle_reach(drive, self.reach);
    }

    /// Why the drive must not be used any more although it answers, if that was seen.
    pub(crate) fn loss(&self) -> Option<String> {
        self.watch.as_ref()?.loss()
    }

    /// Why this machine refuses commands of the drive in this place, if some wait for another attempt.
    pub(crate) fn refusal(&self, drive: DriveIdx, array: &Array) -> Option<&str> {
        self.work.refusal.as_deref().filter(|_| array.has_refused(drive))
    }

    /// What the drive says about itself, if it says anything.
    pub(crate) fn health(&self) -> Option<Health> {
        let own = self.backend.as_ref().and_then(Backend::health);
        own.or_else(|| self.poller.as_ref()?.health())
    }
}

/// What an engine knows of a drive's work.
#[derive(Debug, Default)]
pub(crate) struct Work {
    /// Commands inside it.
    inside: u32,
    /// How it last failed.
    error: Option<String>,
    /// Whether nothing has gone well since then.
    is_failing: bool,
    /// Why it was lost, unless an operator wanted that.
    failure: Option<String>,
    /// Why this machine has refused a command last, unless the drive was out of reach after that.
    refusal: Option<String>,
    counters: DriveCounters,
    /// When the time inside was last added up.
    counted_until: Instant,
}

impl Work {
    /// It has got a command.
    pub(crate) fn handle_submitted(&mut self, now: Instant) {
        self.let_pass(now);
        self.inside += 1;
    }

    /// It has ended a command.
    pub(crate) fn handle_ended(&mut self, now: Instant, command: &Command, reply: &Reply) {
        assert!(self.inside > 0, "a drive ends what it was asked");
        self.let_pass(now);
        self.inside -= 1;
        self.count(command, &reply.outcome);
        let said = || reply.reason.clone().unwrap_or_else(|| "it does not say why".to_owned());
        match reply.outcome {
            Outcome::Refused => self.refusal = Some(said()),
            Outcome::Unreachable | Outcome::Gone => self.refusal = None,
            // Others may still be refused: it is the array that knows when none is.
            Outcome::Done { .. } => {}
        }
        self.is_failing = !reply.outcome.is_good();
        match (&reply.reason, &reply.outcome) {
            (Some(reason), _) => self.error = Some(reason.clone()),
            (None, Outcome::Gone) => self.error = Some("it does not answer any more".to_owned()),
            (None, Outcome::Refused) => self.error = Some("it has refused a command".to_owned()),
            (None, Outcome::Unreachable) => self.error = Some("it cannot be reached".to_owned()),
            // What a read does not give is no failure yet.
            (None, Outcome::Done { damaged, .. }) if command.is_write() && !damaged.is_empty() => {
                self.error = Some("it did not store what was written to it".to_owned());
            }
            (None, Outcome::Done { .. }) => {}
        }
    }

    /// Time passes with what is inside.
    fn let_pass(&mut self, now: Instant) {
        let passed = now.saturating_since(self.counted_until).get();
        self.counted_until = now;
        if self.inside > 0 {
            self.counters.busy += passed;
            self.counters.inside += passed * u64::from(self.inside);
        }
    }

    fn count(&mut self, command: &Command, outcome: &Outcome) {
        let counters = &mut self.counters;
        let bytes = command.extent().map_or(0, |extent| extent.sectors.bytes().get());
        match command {
            Command::Read { .. } => {
                counters.reads += 1;
                counters.read_bytes += bytes;
            }
            Command::Write { .. } | Command::WriteZeroes { .. } => {
                counters.writes += 1;
                counters.written_bytes += bytes;
            }
            Command::Flush => counters.flushes += 1,
            Command::Trim { .. } => counters.trims += 1,
        }
        let errors = match command {
            Command::Read { .. } => &mut counters.read_errors,
            Command::Write { .. }
            | Command::WriteZeroes { .. }
            | Command::Flush
            | Command::Trim { .. } => &mut counters.write_errors,
        };
        match outcome {
            Outcome::Done { unknown, damaged } => {
                counters.unknown_sectors += unknown.len() as u64;
                counters.damaged_sectors += damaged.len() as u64;
                *errors += damaged.len() as u64;
            }
            Outcome::Refused | Outcome::Unreachable => counters.refused_commands += 1,
            Outcome::Gone => {
                counters.gone_commands += 1;
                *errors += 1;
            }
        }
    }

    /// What the drive has done.
    pub(crate) fn counters(&self, now: Instant) -> DriveCounters {
        let mut until_now = Self { counters: self.counters, ..Self::default() };
        (until_now.inside, until_now.counted_until) = (self.inside, self.counted_until);
        until_now.let_pass(now);
        until_now.counters
    }

    /// How many commands are inside it.
    pub(crate) fn inside(&self) -> u32 {
        self.inside
    }

    /// It has failed in some other way.
    pub(crate) fn handle_error(&mut self, error: String) {
        self.error = Some(error);
    }

    /// Why it ends nothing, as far as that is known: how its last command failed.
    pub(crate) fn trouble(&self) -> Option<&str> {
        self.error.as_deref().filter(|_| self.is_failing)
    }

    /// It has ended nothing for that long.
    pub(crate) fn handle_silence(&mut self, secs: f64) {
        let why = self.trouble().map_or(String::new(), |why| format!(": {why}"));
        self.error = Some(format!("it has completed no command for {secs} s{why}"));
    }

    /// The array does without it. Why, if it has failed.
    pub(crate) fn handle_lost(&mut self) -> Option<&str> {
        self.failure = self.error.take();
        self.failure()
    }

    /// Its errors do not count.
    pub(crate) fn forgive(&mut self) {
        self.error = None;
    }

    /// The drive is given another chance.
    pub(crate) fn forget_failure(&mut self) {
        (self.error, self.failure) = (None, None);
    }

    /// Why it was lost, if it failed.
    pub(crate) fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    /// Whether something is inside it.
    pub(crate) fn is_at_work(&self) -> bool {
        self.inside > 0
    }
}

#[cfg(test)]
mod tests {
    use levelhead_block::{Data, Durability, Effort, SectorSet, ZeroTail};
    use levelhead_units::{Extent, Lba, Sectors};

    use super::*;

    #[test]
    fn what_a_drive_ends_is_counted_with_the_time_that_it_was_inside() {
        let at = Instant::from_nanos;
        let extent = Extent::new(Lba::ZERO, Sectors::new(2));
        let read = Command::Read { extent, effort: Effort::Full };
        let (durability, zero_tail) = (Durability::Cached, ZeroTail::None);
        let write = Command::Write { extent, durability, zero_tail };
        let sectors = |offsets: &[u32]| offsets.iter().copied().collect::<SectorSet>();
        let reply = |outcome| Reply { outcome, data: Data::None, reason: None };
        let mut work = Work::default();
        work.handle_submitted(at(10));
        work.handle_submitted(at(20));
        let (unknown, damaged) = (sectors(&[0]), sectors(&[1]));
        work.handle_ended(at(50), &read, &reply(Outcome::Done { unknown, damaged }));
        let seen = work.counters(at(60));
        assert_eq!((seen.busy, seen.inside, work.inside()), (50, 10 + 2 * 30 + 10, 1));
        work.handle_ended(at(100), &write, &reply(Outcome::Refused));
        for (command, outcome) in [(Command::Flush, Outcome::GOOD), (write, Outcome::Gone)] {
            work.handle_submitted(at(200));
            work.handle_ended(at(201), &command, &reply(outcome));
        }
        let expected = DriveCounters {
            reads: 1,
            writes: 2,
            flushes: 1,
            trims: 0,
            read_bytes: 8192,
            written_bytes: 2 * 8192,
            unknown_sectors: 1,
            damaged_sectors: 1,
            refused_commands: 1,
            read_errors: 1,
            write_errors: 1,
            wrong_sectors: 0,
            gone_commands: 1,
            busy: 90 + 2,
            inside: 10 + 2 * 30 + 50 + 2,
        };
        assert_eq!(work.counters(at(999)), expected);
    }

    #[test]
    fn a_silent_drive_is_lost_for_what_was_last_wrong_with_it() {
        let at = Instant::from_nanos;
        let failed = |reason: &str| Reply {
            reason: Some(reason.to_owned()),
            ..Reply::bare(Outcome::Refused)
        };
        let mut work = Work::default();
        let mut end = |reply: &Reply| {
            work.handle_submitted(at(1));
            work.handle_ended(at(2), &Command::Flush, reply);
            work.trouble().map(str::to_owned)
        };
        assert_eq!(end(&failed("it sent nonsense")).as_deref(), Some("it sent nonsense"));
        assert_eq!(end(&Reply::bare(Outcome::GOOD)), None, "what is over is not a reason");
        assert!(end(&failed("it sent a wrong cookie")).is_some());
        work.handle_silence(60.0);
        let lost = work.handle_lost().map(str::to_owned);
        assert_eq!(
            lost.as_deref(),
            Some("it has completed no command for 60 s: it sent a wrong cookie")
        );
        let mut work = Work::default();
        work.handle_silence(60.0);
        assert_eq!(work.handle_lost(), Some("it has completed no command for 60 s"));
    }
}
