//! The drive itself: takes commands, serves them one after the other, says how they ended.

use std::collections::VecDeque;
use std::sync::Arc;

use levelhead_block::{Aftermath, Command, Effort, Health, Outcome, Silent, What, ZeroTail};
use levelhead_stats::{Streams, hash_of};
use levelhead_units::{Bytes, Extent, Instant, Nanos, Ratio, Sectors};

use crate::cache::Write;
use crate::disk::{Disk, Work};
use crate::faults::{Misbehaviour, Retry, Unread};
use crate::health::{Account, Counters, Entry};
use crate::mechanics::{Pass, Stretch, TURN};
use crate::queue::{Queue, Waiting, is_durable, is_of_medium};
use crate::settings::UNIT;
use crate::tails::Tails;
use crate::verifying::Verifying;
use crate::{
    CacheMode, Faults, FaultsError, Placing, Profile, Retention, Settings, SettingsError, Verify,
};

/// How a command ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The name that came with the command.
    pub id: u64,
    /// How it ended.
    pub outcome: Outcome,
    /// When it ended, by the model's time: perhaps earlier than the call that found out.
    pub ended: Instant,
    /// How many revolutions were spent on retries.
    pub retries: u32,
    /// How long the drive was busy with it, retries included, its wait in the queue not, nor a
    /// stall that held the answer back.
    pub service: Nanos,
    /// How much of that it spent on retries.
    pub retrying: Nanos,
    /// What it did to the bytes although the outcome does not say so. Only the runtime that keeps the
    /// bytes may use this.
    pub silent: Silent,
    /// Whether it is a write that the drive reads back, or has read back: what becomes of it later says
    /// [`Drive::poll_aftermath`].
    pub is_read_back: bool,
    /// What has become of earlier writes until this command, and because of it; then, of this one within the command.
    pub after: Vec<Aftermath>,
}

impl Completion {
    /// An end without service.
    fn new(id: u64, outcome: Outcome, ended: Instant) -> Self {
        Self {
            id,
            outcome,
            ended,
            retries: 0,
            service: Nanos::ZERO,
            retrying: Nanos::ZERO,
            silent: Silent::Nothing,
            is_read_back: false,
            after: Vec::new(),
        }
    }

    fn with(self, service: Nanos, silent: Silent) -> Self {
        Self { service, silent, ..self }
    }
}

/// One drive. See the crate's documentation for what it models.
///
/// After every call that takes `now`, drain [`Drive::poll`], then [`Drive::poll_aftermath`], and look at
/// [`Drive::deadline`].
#[derive(Debug)]
pub struct Drive {
    disk: Disk,
    settings: Settings,
    size: Sectors,
    faults: Misbehaviour,
    tails: Tails,
    queue: Queue,
    state: ServiceState,
    account: Account,
    verifying: Verifying,
    completions: VecDeque<Completion>,
}

#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "a drive has one; a box would be an allocation a command"
)]
enum ServiceState {
    Idle,
    Busy(Active),
    Dead,
}

/// The command in service. How it will end was determined when it began.
#[derive(Debug)]
struct Active {
    completion: Completion,
    submitted: Instant,
    effect: Effect,
}

/// What the end of a command changes besides the arm.
#[derive(Debug)]
enum Effect {
    None,
    Flush,
    Read(Entry),
    Write(Written),
}

/// A write that has ended.
#[derive(Debug)]
struct Written {
    entry: Entry,
    extent: Extent,
    zero_tail: ZeroTail,
}

impl Drive {
    /// A drive of this make (a [`Profile`] or a shared one), at rest with its arm over the first
    /// cylinder. Its failures and the phase of its platter follow from the run's seed and `name`.
    pub fn new(
        profile: impl Into<Arc<Profile>>,
        settings: Settings,
        streams: Streams,
        name: &str,
    ) -> Result<Self, SettingsError> {
        let profile = profile.into();
        let size = settings.check(profile.size())?;
        profile.check_cache(settings.cache)?;
        let mut settings = settings;
        if let (Verify::Idle(_), None) = (settings.verify, settings.retention) {
            // What waits has to stay somewhere.
            let least = |memory: Bytes| Retention::new(Placing::MruMru, memory.max(UNIT));
            settings.retention = profile.memory().map(least);
        }
        let key = streams.key(name);
        Ok(Self {
            // No two drives of an array turn in step.
            disk: Disk::new(&profile, &settings, hash_of(key, &[]) % TURN),
            settings,
            size,
            faults: Misbehaviour::new(&settings.faults, key, size),
            tails: Tails::default(),
            queue: Queue::new(settings.scheduler),
            state: ServiceState::Idle,
            account: Account::default(),
            verifying: Verifying::new(settings.verify),
            completions: VecDeque::new(),
        })
    }

    /// The same drive with its platter at this angle at [`Instant::ZERO`], for comparisons that must know
    /// the phase.
    #[must_use]
    pub fn with_angle(mut self, angle: Ratio) -> Self {
        let units = (angle.get() * TURN as f64) as u64;
        let spindle = &mut self.disk.mechanics.spindle;
        *spindle = spindle.with_offset(units % TURN);
        self
    }

    /// It has these faults from `now` on, whatever it is in the middle of: the command in service
    /// ends as was determined when it began, the next one has the new ones. Queue, arm, account and the
    /// sectors that writes have mended stay as they are. A time of death that has passed is now.
    pub fn set_faults(&mut self, now: Instant, faults: Faults) -> Result<(), FaultsError> {
        faults.check()?;
        self.advance(now);
        self.settings.faults = faults;
        self.faults.change(now, &faults);
        self.advance(now);
        Ok(())
    }

    /// How many sectors it has.
    pub fn size(&self) -> Sectors {
        self.size
    }

    /// Whether what it has taken may be in its memory only.
    pub fn writes_back(&self) -> bool {
        self.settings.cache == CacheMode::WriteBack
    }

    /// Whether it can take another command.
    pub fn has_room(&self) -> bool {
        self.queue_len() < self.settings.queue_depth
    }

    /// How many commands it holds, the one in service included.
    pub fn queue_len(&self) -> u32 {
        let active = match self.state {
            ServiceState::Busy(_) => 1,
            ServiceState::Idle | ServiceState::Dead => 0,
        };
        self.queue.len() + active
    }

    /// A command arrives, to be known as `id`, on behalf of the client request `origin`: the same
    /// origin and sector fail or succeed alike, whatever command asks.
    ///
    /// Panics if there is no room, or if the command does not fit the drive.
    pub fn handle_submit(&mut self, now: Instant, id: u64, command: Command, origin: u64) {
        assert!(command.fits(self.size), "{command:?} past {} sectors", self.size.get());
        // What ended by now makes room, and picks its successor without knowing of this command.
        self.advance(now);
        assert!(self.has_room(), "command {id} submitted to a full queue");
        let geometry = &self.disk.geometry;
        let moved = pass(&command).map(|(extent, pass)| (geometry.blocks(extent), pass));
        let target = moved.as_ref().map(|(blocks, pass)| (geometry.position(blocks.start), *pass));
        let blocks = moved.map_or(0..0, |(blocks, _)| blocks);
        self.queue.push(Waiting { id, command, origin, submitted: now, target, blocks });
        self.advance(now);
    }

    /// The time [`Drive::deadline`] named has come. Early and late calls do no harm: the drive
    /// keeps its own time.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.advance(now);
    }

    /// The drive dies. What had not ended by now, and every later command, ends as
    /// [`Outcome::Gone`].
    pub fn handle_death(&mut self, now: Instant) {
        self.advance(now);
        self.faults.die(now);
        self.advance(now);
    }

    /// What the drive has taken and the medium does not have at `now`, lowest first, each a write into
    /// memory: what a power cut would lose. A runtime that keeps the bytes, and the old bytes under
    /// them, may forget the old ones of everything else.
    ///
    /// Nothing unless the drive writes back: [`CacheMode::WriteBack`].
    pub fn unwritten(&mut self, now: Instant) -> Vec<Extent> {
        self.advance(now);
        self.work_alone(now);
        let blocks = self.disk.unwritten(now);
        blocks.into_iter().map(|blocks| self.disk.geometry.extent(&blocks)).collect()
    }

    /// The power fails and comes back: what had not ended by now ends as [`Outcome::Gone`], and the
    /// memory is empty. Says what was lost: [`Drive::unwritten`]. Sectors of a write that was on its
    /// way to the medium may be the old ones or the new ones; all of it counts as lost. How long the
    /// platter takes to turn again is not modelled.
    pub fn handle_power_cut(&mut self, now: Instant) -> Vec<Extent> {
        let lost = self.unwritten(now);
        if matches!(self.state, ServiceState::Dead) {
            return lost;
        }
        // What was to replace these has not reached the medium either.
        let mut replaced = lost.clone();
        if let ServiceState::Busy(Active { completion, effect, .. }) =
            std::mem::replace(&mut self.state, ServiceState::Idle)
        {
            if let Effect::Write(Written { extent, .. }) = effect {
                replaced.push(extent);
            }
            self.end_as_gone(completion.id, now);
        }
        self.tails.lose_power(&replaced);
        for waiting in self.queue.take_all() {
            self.end_as_gone(waiting.id, now);
        }
        self.disk.forget_all(now);
        self.give_up();
        lost
    }

    /// When to call [`Drive::handle_timeout`], if ever.
    pub fn deadline(&self) -> Option<Instant> {
        let next = match &self.state {
            ServiceState::Busy(active) => Some(active.completion.ended),
            // Commands wait only for what the disk does on its own.
            ServiceState::Idle if self.queue.len() > 0 => self.disk.busy_until(),
            // A difference that will be found is an event for a runtime that keeps the bytes. A dead drive
            // finds none.
            ServiceState::Idle if self.verifying.expects() => {
                let is_alive = |at: &Instant| self.faults.death().is_none_or(|death| *at <= death);
                self.disk.alone_until().filter(is_alive)
            }
            ServiceState::Idle | ServiceState::Dead => None,
        };
        // All waiting commands end at once when the drive dies.
        next.map(|next| self.faults.death().map_or(next, |death| death.min(next)))
    }

    /// The next command that has ended, in the order of the ends.
    pub fn poll(&mut self) -> Option<Completion> {
        self.completions.pop_front()
    }

    /// The next thing that has become of a write after its end. To be asked after [`Drive::poll`] has nothing more.
    pub fn poll_aftermath(&mut self) -> Option<Aftermath> {
        self.verifying.aftermaths.pop_front()
    }

    /// Carries out what the drive has done on its own by `now`, with no command to make it do so: to look at
    /// [`Drive::counters`] then.
    pub fn settle(&mut self, now: Instant) {
        self.advance(now);
        self.work_alone(now);
    }

    /// What the drive says about itself.
    pub fn health(&self, now: Instant) -> Health {
        self.account.health(now)
    }

    /// What the drive has done so far.
    pub fn counters(&self) -> Counters {
        let verify = match &self.disk.idle.unverified {
            Some(unverified) => unverified.counters,
            None => self.verifying.raw,
        };
        Counters { verify, ..self.account.counters() }
    }

    /// Carries out all ends and starts of commands up to `now`. Only this function and death change
    /// `state`.
    fn advance(&mut self, now: Instant) {
        let death = self.faults.death().filter(|&death| death <= now);
        // A command that would end after the death ends as gone.
        let last = death.unwrap_or(now);
        loop {
            match &self.state {
                ServiceState::Dead => {
                    for waiting in self.queue.take_all() {
                        self.bury(waiting.id, waiting.submitted);
                    }
                    return;
                }
                ServiceState::Busy(active) if active.completion.ended > last => {
                    // Most calls come while a command is in service that goes on.
                    if death.is_none() {
                        return;
                    }
                    let (id, submitted) = (active.completion.id, active.submitted);
                    self.state = ServiceState::Dead;
                    self.bury(id, submitted);
                }
                ServiceState::Busy(_) => {
                    // What is large is moved only here, and when a command begins.
                    if let ServiceState::Busy(active) =
                        std::mem::replace(&mut self.state, ServiceState::Idle)
                    {
                        self.end(active);
                    }
                }
                ServiceState::Idle => {
                    let Some(came) = self.queue.oldest() else {
                        if self.verifying.expects() {
                            self.work_alone(now);
                        }
                        return;
                    };
                    self.work_alone_before(came.min(last), last);
                    if death.is_none() && self.disk.busy_until().is_some_and(|free| free > now) {
                        return;
                    }
                    let choice = self.disk.choice(came);
                    let Some(next) = self.queue.take_next(choice) else { return };
                    self.state = ServiceState::Busy(self.begin(next));
                }
            }
        }
    }

    /// Determines the whole service of a command: its end, its outcome and where it leaves the arm.
    fn begin(&mut self, waiting: Waiting) -> Active {
        let Waiting { id, command, origin, submitted, target, blocks } = waiting;
        let start = self.faults.stall_end(self.disk.free().max(submitted));
        let slowdown = self.faults.slowdown(start);
        if let Some(left) = self.disk.idle.left_at(submitted)
            && let Some(unverified) = &mut self.disk.idle.unverified
        {
            unverified.counters.delay(left);
        }
        let Some((extent, pass)) = pass(&command) else {
            let is_flush = command == Command::Flush;
            let silent = if is_flush { self.faults.flush(origin) } else { Silent::Nothing };
            let is_honest = silent == Silent::Nothing;
            let work = if is_flush && is_honest { Work::Flush } else { Work::Nothing };
            let served = self.disk.serve(start, work);
            let service = slowed(served.end - start, slowdown);
            let ended = self.faults.stall_end(start + service);
            let outcome = Outcome::GOOD;
            let completion = Completion::new(id, outcome, ended).with(service, silent);
            let effect = if is_flush && is_honest { Effect::Flush } else { Effect::None };
            return Active { completion, submitted, effect };
        };
        let (unread, silent) = match pass {
            Pass::Read => {
                (self.faults.first_pass(extent, &self.tails, origin), self.faults.read(extent))
            }
            Pass::Write => (Unread::default(), self.faults.write(extent, origin)),
        };
        let sectors_failed = unread.len();
        let Retry { rotations, unknown, damaged } = match command {
            Command::Read { effort, .. } if !unread.is_empty() => {
                let budget = self.revolutions(effort);
                self.faults.retry(extent, &self.tails, origin, unread, budget)
            }
            _ => Retry::NONE,
        };
        let (is_durable, zero_tail) = (is_durable(&command), zero_tail(&command));
        let again = match (pass, self.settings.verify) {
            (Pass::Write, Verify::Raw) => self.write_again(extent, origin, &silent),
            (Pass::Read | Pass::Write, _) => Vec::new(),
        };
        let written_again = again.len() as u32;
        let told = |silent| Aftermath { id, extent, what: What::WrittenAgain(silent) };
        let mut after: Vec<Aftermath> = again.into_iter().map(told).collect();
        if after.last().is_some_and(|one| one.what != What::WrittenAgain(Silent::Nothing)) {
            after.push(Aftermath { id, extent, what: What::LetGo });
        }
        let read_backs = match self.settings.verify {
            Verify::Raw => 1 + written_again,
            Verify::Off | Verify::Idle(_) => 0,
        };
        if pass == Pass::Write && self.writes_back() {
            self.begin_tails(extent, zero_tail);
        }
        let stretch = Stretch { blocks, first: target.map(|(first, _)| first) };
        let served = self.disk.serve(
            start,
            match pass {
                Pass::Read if is_of_medium(&command) => Work::ReadMedium { stretch, rotations },
                // Failures are the medium's: what fails is not in memory.
                Pass::Read if sectors_failed > 0 => Work::ReadHard { stretch, rotations },
                Pass::Read => Work::Read(stretch),
                Pass::Write => {
                    let blocks = stretch.blocks;
                    Work::Write(Write { blocks, is_durable, read_backs, id, origin, zero_tail })
                }
            },
        );
        let first_pass = slowed(served.first_pass - start, slowdown);
        let total = slowed(served.end - start, slowdown);
        let retrying = total - first_pass;
        let entry = Entry {
            sectors_read: if pass == Pass::Read { extent.sectors.get() } else { 0 },
            sectors_failed,
            first_pass,
            retrying,
            rotations,
            is_hit: served.is_hit,
        };
        let effect = match pass {
            Pass::Read => Effect::Read(entry),
            Pass::Write => Effect::Write(Written { entry, extent, zero_tail }),
        };
        let outcome = Outcome::Done { unknown, damaged };
        let ended = self.faults.stall_end(start + total);
        let is_read_back = pass == Pass::Write && self.settings.verify != Verify::Off;
        let completion = Completion {
            id,
            outcome,
            ended,
            retries: rotations,
            service: total,
            retrying,
            silent,
            is_read_back,
            after,
        };
        Active { completion, submitted, effect }
    }

    /// A write begins on a drive that writes back: what the medium has of the ends of its sectors is
    /// remembered until that does not matter any more.
    fn begin_tails(&mut self, extent: Extent, zero_tail: ZeroTail) {
        if zero_tail == ZeroTail::None && self.tails.is_empty() {
            return;
        }
        let blocks = self.disk.geometry.blocks(extent);
        let waiting = self.disk.waiting(&blocks);
        let waiting = waiting.iter().map(|blocks| self.disk.geometry.extent(blocks));
        self.tails.begin(extent, &waiting.collect::<Vec<_>>());
    }

    /// The command in service has ended.
    fn end(&mut self, Active { mut completion, effect, .. }: Active) {
        self.account.add_silent(&completion.silent);
        match effect {
            Effect::None => self.account.add_idle(completion.service),
            Effect::Flush => {
                self.account.add_idle(completion.service);
                self.tails.flush();
            }
            Effect::Read(entry) => self.account.add(entry),
            Effect::Write(Written { entry, extent, zero_tail }) => {
                self.account.add(entry);
                let again = std::mem::take(&mut completion.after);
                let after = &mut completion.after;
                self.store(extent, zero_tail, &completion.silent, |one| after.push(one));
                if self.settings.verify == Verify::Raw {
                    self.verifying.count_raw(&again);
                }
                for one in &again {
                    if let What::WrittenAgain(silent) = &one.what {
                        self.account.add_silent(silent);
                        self.store(extent, zero_tail, silent, |one| after.push(one));
                    }
                }
                completion.after.extend(again);
            }
        }
        if !self.verifying.aftermaths.is_empty() {
            // What the drive has done on its own came before this.
            completion.after.splice(0..0, self.verifying.aftermaths.drain(..));
        }
        self.disk.finish(completion.ended);
        self.give_up();
        self.completions.push_back(completion);
    }

    /// A command ends because the drive is dead, or was already when it came.
    fn bury(&mut self, id: u64, submitted: Instant) {
        let death = self.faults.death().expect("only a dead drive buries");
        self.end_as_gone(id, death.max(submitted));
    }

    fn end_as_gone(&mut self, id: u64, ended: Instant) {
        self.completions.push_back(Completion::new(id, Outcome::Gone, ended));
    }

    /// How many revolutions a read with this effort may spend on retries; nothing if as many as it takes.
    fn revolutions(&self, effort: Effort) -> Option<u64> {
        match effort {
            Effort::Fast => Some(0),
            Effort::Full | Effort::Medium => None,
            Effort::Limited(limit) => Some(self.disk.mechanics.spindle.rotations_floor(limit)),
        }
    }
}

/// What is known of the ends of the sectors that a command writes.
fn zero_tail(command: &Command) -> ZeroTail {
    match *command {
        Command::Write { zero_tail, .. } => zero_tail,
        Command::WriteZeroes { .. } => ZeroTail::B512,
        Command::Read { .. } | Command::Trim { .. } | Command::Flush => ZeroTail::None,
    }
}

/// `time` multiplied by `slowdown`.
fn slowed(time: Nanos, slowdown: f64) -> Nanos {
    // Exact for the usual 1: services are far shorter than 2^53 ns, a hundred days.
    Nanos::new((time.get() as f64 * slowdown).round() as u64)
}

/// What a command does to the medium, if it moves anything at all.
fn pass(command: &Command) -> Option<(Extent, Pass)> {
    let (extent, pass) = match *command {
        Command::Read { extent, .. } => (extent, Pass::Read),
        Command::Write { extent, .. } | Command::WriteZeroes { extent, .. } => {
            (extent, Pass::Write)
        }
        Command::Trim { .. } | Command::Flush => return None,
    };
    (extent.sectors > Sectors::ZERO).then_some((extent, pass))
}

mod alone;
#[cfg(test)]
mod oracle;
