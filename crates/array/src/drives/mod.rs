//! All that is known of an array's drives: what waits for each, what was seen of each, and how the array stands
//! with each. Facts come in by `note_*` and `handle_*`; views go out.
//!
//! ```text
//!   note_ended --> track    times, failures: predicted waits ------> policies (View)
//!             +--> detect   slow, compared with its fellows --+
//!             +--> silence  has ended nothing for long -------+---> standing --> sat out, silent, lost
//!   policies' plans --> aside --------------------------------+
//!   requests' arrivals --> arrivals                queue: what waits, what is inside
//! ```
//!
//! The words late, slow, aside, sat out, silent, lost and missing are those of ARCHITECTURE.md.
//!
//! # What makes a drive slow: the constants, and where they act
//!
//! | constant | value | in | a drive .. |
//! |---|---|---|---|
//! | `SLOW_TIMES`, `DEVIATIONS`, `SLOW_MIN` | 3 medians, 6 deviations, 15 ms | [`detect`] | is found slow by its last commands, and sits out |
//! | `ADMIT_TIMES` | 2.5 medians | [`detect`] | that sits out is quick again |
//! | `TERM`, `TERM_MAX`, `RELAPSE` | 5 s, 160 s, 60 s | [`standing`] | sits out at least for such a term |
//! | `LAGS` | 1.5 medians | [`level`](crate::policy::level) | lags: it is set aside by a read, by its predicted wait and its pace |
//! | `LAGS_FOR_WRITES` | 3 medians | [`level`](crate::policy::level) | the same, and writes go round it where that takes few reads |
//! | `EXCESS` | 3 median paces | [`track`] | is slow now and then: the mean of the time above it counts |
//! | `SILENCE` | 4 paces | [`track`] | that works on one command for longer has a pace of a quarter of that time |
//! | `FAR_BEHIND`, `USUAL_MIN` | 2.5, 0.25 | [`lateness`](crate::ops::lateness) | is late with its part of a `level` read, by what its fellows took |
//! | `LOOK_TAILS` | 2 tails | [`lateness`](crate::ops::lateness) | is late because it has ended nothing in that time, or .. |
//! | `PASSED_OVER` | 100 windows | here | .. because it has ended that many other commands and must have lost this one |
//! | `SLOW_TIMES`, `REPEATS` | 2 medians, 3 in a row | [`tolerant`](crate::policy::tolerant) | is late for ToleRAID, and persistently so |
//! | [`Patience`](silence::Patience) | 5 s, 60 s | [`silence`] | is silent, and lost |

pub(crate) mod arrivals;
pub mod detect;
mod facts;
pub(crate) mod quantile;
pub(crate) mod queue;
pub(crate) mod read_errors;
pub(crate) mod silence;
pub(crate) mod standing;
pub(crate) mod track;

use levelhead_block::Health;
use levelhead_stats::{Rng, Streams};
use levelhead_units::{DriveIdx, DriveSet, Instant, Lba, Nanos, Sectors};

use crate::names::SubId;
use crate::policy::View;
use crate::policy::level;
use crate::policy::tau::{DriveView, Share};
use crate::policy::tolerant::Streaks;
use crate::settings::{HostOrder, Patience, Settings};
use arrivals::Rhythm;
use detect::{DriveEvent, Figures, Refusal};
pub(crate) use facts::{Ended, EndedRead, Fate, Left, Push, Reader, Silenced};
use quantile::Quantile;
use queue::HostQueue;
use silence::Heard;
use standing::{PROBE_INTERVAL, Practice, Standings};
use track::{DriveTrack, Work};

/// Reads over which what they found at the drives is averaged.
const SEEN_MEMORY: f64 = 64.0;

/// What starts no further than this behind the end of the last command follows it: as much passes under the head before
/// the next command is heard.
const NEXT_MAX: Sectors = Sectors::new(8);

/// The most commands that are saved for reads of whole groups.
const EXTRA_MAX: f64 = 64.0;

/// A drive that has ended more than this number of windows of other commands since a command went in has lost that
/// command. A good drive serves nearer commands first, but in one case of 20,000 it does so for ten windows, and
/// for longer where the host's queue is in the order of the addresses.
const PASSED_OVER: f64 = 100.0;

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Drives {
    each: Vec<Drive>,
    standings: Standings,
    /// Which drives were late again and again.
    streaks: Streaks,
    times: Times,
    rhythm: Rhythm,
    extra: Allowance,
    /// Commands inside a drive at most.
    window: f64,
    /// Commands that a read found at a drive, averaged over the last reads.
    seen: f64,
    /// The median drive's pace, in seconds.
    pace: f64,
    /// Drives that were given something since nothing was left to do for them: the others need no look after every event.
    with_work: DriveSet,
    patience: Option<Patience>,
    /// The end of the server's last standstill.
    resumed: Instant,
    probe_rng: Rng,
    order: HostOrder,
    streams: Streams,
}

/// Commands that reads may make beyond those that must be made.
#[derive(Clone, Copy, Debug)]
struct Allowance {
    saved: f64,
    /// How many more of them each command that must be made brings.
    share: f64,
}

#[derive(Clone, Debug)]
struct Drive {
    queue: HostQueue,
    track: DriveTrack,
    heard: Heard,
    /// Commands that it has ended.
    ended: u64,
    /// Where the command ends that was put into its queue last.
    asked_last: Lba,
}

/// Quantiles of what commands take, over all drives.
#[derive(Clone, Debug)]
struct Times {
    /// The median latency of reads sent to drives, from entering the queue to their end.
    median: Quantile,
    /// Their 99th percentile.
    tail: Quantile,
    /// The 90th percentile of a part's latency divided by the median latency of the read's parts.
    spread: Quantile,
}

impl Drive {
    fn new(queue: HostQueue) -> Self {
        Self {
            queue,
            track: DriveTrack::default(),
            heard: Heard::default(),
            ended: 0,
            asked_last: Lba::ZERO,
        }
    }

    fn work(&self) -> Work {
        let inside = self.queue.inside().len();
        Work { queued: self.queue.len(), inside, since: self.heard.busy_since() }
    }
}

/// Whether the place of a lost drive has one that is being filled.
fn is_filled(settings: &Settings, drive: DriveIdx) -> bool {
    settings.recorded.as_ref().is_some_and(|known| known.filled_to(drive).is_some())
}

impl Drives {
    pub(crate) fn new(settings: &Settings, streams: Streams) -> Self {
        let count = settings.spec.members();
        let drive = |idx| {
            let rng = streams.stream(&format!("array/host-queue/{idx}"));
            Drive::new(HostQueue::new(settings.order, settings.window, rng))
        };
        let practice = if settings.policy.sits_out() { Practice::SitOut } else { Practice::Name };
        let mut standings = Standings::new(settings.spec, settings.lost, practice);
        for drive in settings.lost.iter().filter(|&drive| is_filled(settings, drive)) {
            standings.begin_filling(drive);
        }
        Self {
            each: (0..count).map(drive).collect(),
            standings,
            streaks: Streaks::new(count),
            times: Times {
                median: Quantile::new(0.5),
                tail: Quantile::new(0.99),
                spread: Quantile::new(0.9),
            },
            rhythm: Rhythm::default(),
            extra: Allowance { saved: 0.0, share: settings.policy.extra_reads() },
            window: f64::from(settings.window),
            seen: 0.0,
            pace: 0.0,
            with_work: DriveSet::EMPTY,
            patience: settings.patience,
            resumed: Instant::ZERO,
            probe_rng: streams.stream("array/probes"),
            order: settings.order,
            streams,
        }
    }

    /// A drive of which nothing is known, in the place of this one.
    fn fresh(&self, drive: DriveIdx) -> Drive {
        let rng = self.streams.stream(&format!("array/host-queue/{drive}/again"));
        Drive::new(HostQueue::new(self.order, self.window as u32, rng))
    }

    fn of(&mut self, drive: DriveIdx) -> &mut Drive {
        &mut self.each[drive.as_usize()]
    }

    fn all(&self) -> DriveSet {
        DriveSet::first(self.each.len() as u8)
    }
}

/// How the array stands with them.
impl Drives {
    /// Drives that the array does without.
    pub(crate) fn lost(&self) -> DriveSet {
        self.standings.lost()
    }

    /// Those of them that have data.
    pub(crate) fn lost_data(&self) -> DriveSet {
        self.standings.lost_data()
    }

    /// All others.
    pub(crate) fn present(&self) -> DriveSet {
        self.standings.present()
    }

    /// Those of them that have data.
    pub(crate) fn present_data(&self) -> DriveSet {
        self.present().and(self.standings.spec().data_drives())
    }

    /// Those of the lost ones that are being filled.
    pub(crate) fn filling(&self) -> DriveSet {
        self.standings.filling()
    }

    /// Drives that are given no commands.
    pub(crate) fn away(&self) -> DriveSet {
        self.lost().without(self.filling())
    }

    /// All others: those that are there and those that are being filled.
    pub(crate) fn reachable(&self) -> DriveSet {
        self.present().or(self.filling())
    }

    /// The place of a lost drive has a new one, which is to be filled. What the old one has inside it ends, or does
    /// not, without a trace here.
    pub(crate) fn begin_filling(&mut self, drive: DriveIdx) {
        let fresh = self.fresh(drive);
        *self.of(drive) = fresh;
        self.standings.begin_filling(drive);
    }

    /// A drive that was being filled holds everything, and counts.
    pub(crate) fn end_filling(&mut self, now: Instant, drive: DriveIdx) {
        self.standings.end_filling(now, drive);
    }

    /// Whether the layout survives the loss of these drives, besides those that are lost.
    pub(crate) fn can_spare(&self, drives: DriveSet) -> bool {
        self.standings.can_spare(drives)
    }

    /// Whether more drives are lost than the layout survives.
    pub(crate) fn has_failed(&self) -> bool {
        self.standings.has_failed()
    }

    /// Drives that sit out: no read asks them while others suffice.
    pub(crate) fn sat_out(&self) -> DriveSet {
        self.standings.sat_out()
    }

    /// Drives that are silent.
    pub(crate) fn silent(&self) -> DriveSet {
        self.standings.silent()
    }

    /// Those of them that are to be lost once something waits for them.
    pub(crate) fn overdue(&self) -> DriveSet {
        self.standings.overdue()
    }

    /// How fast a drive is, compared with the others.
    pub(crate) fn figures(&self, now: Instant, drive: DriveIdx) -> Figures {
        self.standings.figures(now, drive)
    }

    /// An operator wants a drive not to be read while others suffice.
    pub(crate) fn sit_out(&mut self, now: Instant, drive: DriveIdx) -> Result<DriveEvent, Refusal> {
        self.standings.sit_out(now, drive)
    }

    /// An operator wants a drive that sits out to be read again.
    pub(crate) fn admit(&mut self, now: Instant, drive: DriveIdx) -> Result<DriveEvent, Refusal> {
        self.standings.admit(now, drive)
    }

    /// The array does without a drive from now on.
    pub(crate) fn handle_lost(&mut self, now: Instant, drive: DriveIdx) -> Vec<DriveEvent> {
        self.streaks.forget(drive);
        self.standings.handle_lost(now, drive)
    }

    /// How long a drive is waited for, where there is a limit.
    pub(crate) fn patience(&self) -> Option<Patience> {
        self.patience
    }

    /// When [`Drives::look_for_silence`] has something to find.
    pub(crate) fn silence_at(&self) -> Option<Instant> {
        let patience = self.patience?;
        let silent = self.silent();
        let watched = self.all().without(self.overdue()).without(self.away().and(silent));
        let at = |drive: DriveIdx| {
            let after = if silent.contains(drive) { patience.lost } else { patience.silent };
            Some(self.each[drive.as_usize()].heard.silent_since()? + after)
        };
        watched.iter().filter_map(at).min()
    }

    /// The server runs again: what drives have completed meanwhile it has still to see.
    pub(crate) fn note_standstill(&mut self, now: Instant) {
        self.resumed = now;
    }

    /// Drives that have had something to do for this long, and ended nothing, since the server runs.
    pub(crate) fn stalled(&self, now: Instant, time: Nanos) -> DriveSet {
        let is_stalled = |&drive: &DriveIdx| {
            let since = self.each[drive.as_usize()].heard.silent_since();
            since.is_some_and(|since| now.saturating_since(since.max(self.resumed)) >= time)
        };
        self.present().iter().filter(is_stalled).collect()
    }

    /// When [`Drives::stalled`] has another one, besides these.
    pub(crate) fn stall_at(&self, known: DriveSet, time: Nanos) -> Option<Instant> {
        let since = |drive: DriveIdx| self.each[drive.as_usize()].heard.silent_since();
        self.present()
            .without(known)
            .iter()
            .filter_map(since)
            .min()
            .map(|since| since.max(self.resumed) + time)
    }

    /// Finds drives that have just become silent, and those that have been silent for [`Patience::lost`] and are
    /// overdue.
    pub(crate) fn look_for_silence(&mut self, now: Instant) -> Silenced {
        let mut found = Silenced { newly: DriveSet::EMPTY, events: Vec::new() };
        let Some(patience) = self.patience else { return found };
        let mut overdue = DriveSet::EMPTY;
        for drive in self.all().iter() {
            let Some(since) = self.of(drive).heard.silent_since() else { continue };
            let silent_for = now.saturating_since(since);
            if silent_for >= patience.silent && !self.silent().contains(drive) {
                found.newly = found.newly.with(drive);
                found.events.extend(self.standings.note_silent(now, drive));
            }
            if silent_for >= patience.lost && !self.away().contains(drive) {
                overdue = overdue.with(drive);
            }
        }
        self.standings.set_overdue(overdue);
        found
    }

    /// A read does without these drives: they are probed if nothing is heard of them.
    pub(crate) fn note_aside(&mut self, aside: DriveSet) {
        self.standings.note_aside(aside);
    }

    /// When [`Drives::take_probe`] may have something to say.
    pub(crate) fn probe_at(&self) -> Option<Instant> {
        let stale = self.standings.stale().without(self.lost());
        let stale_at = stale.iter().map(|drive| self.stale_at(drive));
        stale_at.chain(self.standings.probe_at()).min()
    }

    fn stale_at(&self, drive: DriveIdx) -> Instant {
        self.each[drive.as_usize()].track.finished_last() + PROBE_INTERVAL
    }

    /// Whether a drive is to be probed now, and if so, from which stripe: a number below `stripes`.
    pub(crate) fn take_probe(
        &mut self,
        now: Instant,
        drive: DriveIdx,
        stripes: u64,
    ) -> Option<u64> {
        assert!(!self.lost().contains(drive), "D3: drive {drive} is probed");
        let is_stale = self.standings.stale().contains(drive) && self.stale_at(drive) <= now;
        if is_stale {
            self.standings.note_fresh(drive);
        }
        let is_wanted = self.standings.take_probe(now, drive) || is_stale;
        (is_wanted && self.queue_len(drive) == 0).then(|| self.probe_rng.below(stripes))
    }
}

/// What is seen of them.
impl Drives {
    /// A drive's own account of itself.
    pub(crate) fn handle_health(&mut self, drive: DriveIdx, health: Health) {
        self.of(drive).track.handle_health(health);
    }

    /// What is known of a drive, for policies.
    pub(crate) fn view(&self, now: Instant, drive: DriveIdx) -> DriveView {
        let drive = &self.each[drive.as_usize()];
        drive.track.view(now, drive.work())
    }

    /// What a decision is made from, but for the drives' shares.
    pub(crate) fn overview(&self) -> View<'static> {
        // Of an array that has failed some drives may sit out that another one's loss makes needed.
        let is_spared = |drives: DriveSet| drives.is_empty() || self.can_spare(drives);
        let spared = |drives| if is_spared(drives) { drives } else { DriveSet::EMPTY };
        let losses = self.standings.losses();
        View {
            shares: &[],
            mirror: losses.spec.is_mirror().then_some(losses),
            spare: self.standings.spare(),
            arrivals: self.rhythm.arrivals(),
            window: self.window,
            seen: self.seen,
            extra: self.extra.saved,
            follows: false,
            sat_out: spared(self.sat_out()),
            by_hand: spared(self.not_to_be_read()),
            persistent: self.streaks.persistent().without(self.sat_out()),
        }
    }

    /// Drives that an operator sat out and, as far as the layout can do without more, those that are silent.
    fn not_to_be_read(&self) -> DriveSet {
        let by_hand = self.standings.by_hand();
        let silent = self.silent().without(self.lost()).without(by_hand);
        silent.iter().fold(by_hand, |all, drive| {
            if self.can_spare(all.with(drive)) { all.with(drive) } else { all }
        })
    }

    /// A read is to make `extra` commands beyond those that must be made.
    pub(crate) fn note_extra(&mut self, shares: &[Share], extra: u32) {
        let wanted = shares.iter().filter(|share| share.wanted > 0).count();
        let saved = self.extra.saved + self.extra.share * wanted as f64;
        self.extra.saved = saved.min(EXTRA_MAX) - f64::from(extra);
    }

    /// A read has looked at the drives that are there.
    pub(crate) fn note_views(&mut self, shares: &[Share]) {
        if shares.is_empty() {
            return;
        }
        self.pace = level::median(shares, |drive| drive.pace);
        let queued: f64 = shares.iter().map(|share| share.drive.queued).sum();
        self.seen += (queued / shares.len() as f64 - self.seen) / SEEN_MEMORY;
    }

    /// Drives that take more than `times` as long for a command as the median drive, as if each had
    /// one command inside.
    pub(crate) fn slower(&self, now: Instant, times: f64) -> DriveSet {
        let pace = |drive| self.view(now, drive).pace_alone;
        let mut paces: Vec<f64> = self.present_data().iter().map(pace).collect();
        paces.sort_unstable_by(f64::total_cmp);
        let Some(&median) = paces.get(paces.len().saturating_sub(1) / 2) else {
            return DriveSet::EMPTY;
        };
        self.present_data().iter().filter(|&drive| pace(drive) > times * median).collect()
    }

    /// The predicted wait of one command more at each drive, in nanoseconds.
    pub(crate) fn waits(&self, now: Instant) -> Vec<u64> {
        let wait = |drive: &Drive| {
            let pace = Nanos::from_secs_f64_round(drive.track.pace(now, drive.work()));
            pace.get() * (drive.queue.len() as u64 + 1)
        };
        self.each.iter().map(wait).collect()
    }

    /// From the end of the command that a drive was given last to a sector of it.
    pub(crate) fn distance(&self, drive: DriveIdx, lba: Lba) -> Sectors {
        Sectors::new(self.each[drive.as_usize()].asked_last.get().abs_diff(lba.get()))
    }

    /// Whether a sector follows that command at once.
    pub(crate) fn is_next(&self, drive: DriveIdx, lba: Lba) -> bool {
        let last = self.each[drive.as_usize()].asked_last;
        (last..last + NEXT_MAX).contains(&lba)
    }

    /// Whether a sector lies where that command ends, or shortly before or behind it.
    pub(crate) fn is_near(&self, drive: DriveIdx, lba: Lba) -> bool {
        self.distance(drive, lba) <= NEXT_MAX
    }

    /// The drives whose waits and paces are more than `times` the median.
    pub(crate) fn lagging(&self, now: Instant, times: f64) -> DriveSet {
        let share = |idx| Share { idx, drive: self.view(now, idx), wanted: 0 };
        level::lagging(&self.present_data().iter().map(share).collect::<Vec<Share>>(), times)
    }

    /// Commands at a drive that is there, on average.
    pub(crate) fn mean_queue(&self) -> f64 {
        let present = self.present_data();
        let queued: usize = present.iter().map(|drive| self.queue_len(drive)).sum();
        queued as f64 / f64::from(present.len().max(1))
    }

    /// Commands waiting for a drive or inside it.
    pub(crate) fn queue_len(&self, drive: DriveIdx) -> usize {
        self.each[drive.as_usize()].queue.len()
    }

    /// The median latency of reads sent to drives, once it is known.
    pub(crate) fn median(&self) -> Option<Nanos> {
        self.times.median.get()
    }

    /// Their 99th percentile.
    pub(crate) fn tail(&self) -> Option<Nanos> {
        self.times.tail.get()
    }

    /// The 90th percentile of a part's latency divided by the median latency of the read's parts.
    pub(crate) fn spread(&self) -> Option<f64> {
        self.times.spread.number()
    }

    /// One part's latency divided by the median latency of its read's parts.
    pub(crate) fn note_spread(&mut self, times: f64) {
        self.times.spread.note_number(times);
    }

    /// A drive was late with its part of a read, or in time.
    pub(crate) fn note_late(&mut self, drive: DriveIdx, is_late: bool) {
        self.streaks.note(drive, is_late);
    }

    /// A client's request has come, and found `others` that are not answered yet.
    pub(crate) fn note_arrival(&mut self, now: Instant, others: usize) {
        self.rhythm.note_arrival(now, others);
    }
}

/// What waits for them and what is inside them.
impl Drives {
    /// A command is to wait for its drive.
    pub(crate) fn push(&mut self, now: Instant, push: Push) {
        let Push { drive, sub, extent, end } = push;
        assert!(!self.away().contains(drive), "A2: drive {drive} is lost");
        self.with_work = self.with_work.with(drive);
        let Drive { queue, track, asked_last, .. } = self.of(drive);
        queue.push(sub, extent.map_or(Lba::ZERO, |extent| extent.lba), end);
        if let Some(extent) = extent {
            track.handle_asked(now);
            *asked_last = extent.end();
        }
    }

    /// Drives for which [`Drives::pop`] may have something to do.
    pub(crate) fn with_work(&self) -> DriveSet {
        self.with_work
    }

    /// Whether it has. If not, the drive is not one of [`Drives::with_work`] any more until it is given something.
    pub(crate) fn has_work(&mut self, drive: DriveIdx) -> bool {
        let has_work = self.of(drive).queue.has_work();
        if !has_work {
            self.with_work = self.with_work.without(DriveSet::EMPTY.with(drive));
        }
        has_work
    }

    /// The next command for a drive whose window has room, of metadata alone if all else `is_held`. It is inside from then on.
    pub(crate) fn pop(&mut self, now: Instant, drive: DriveIdx, is_held: bool) -> Option<SubId> {
        let Drive { queue, heard, .. } = self.of(drive);
        let sub = queue.pop(is_held)?;
        heard.begin(now);
        Some(sub)
    }

    /// A command that could have been withdrawn has gone into its drive.
    pub(crate) fn note_kept(&mut self, now: Instant, drive: DriveIdx) {
        self.of(drive).track.handle_fate(now, false);
    }

    /// Takes a command out of the queue before its drive has it; false if the drive has it.
    pub(crate) fn remove(&mut self, drive: DriveIdx, sub: SubId, lba: Lba) -> bool {
        self.of(drive).queue.remove(sub, lba)
    }

    /// A command was taken out of the queue because it is not needed any more.
    pub(crate) fn note_withdrawn(&mut self, now: Instant, drive: DriveIdx, fate: Fate) {
        let track = &mut self.of(drive).track;
        if fate == Fate::Withdrawable {
            track.handle_fate(now, true);
        }
        track.handle_withdrawn(now);
    }

    /// Commands that a drive has ended.
    pub(crate) fn ended(&self, drive: DriveIdx) -> u64 {
        self.each[drive.as_usize()].ended
    }

    /// Whether a drive has lost or forgotten a command that went in at `started`, when it had ended `ended_before`
    /// commands: it has ended nothing for `patience`, or more than [`PASSED_OVER`] windows of other commands.
    pub(crate) fn is_stuck(
        &self,
        now: Instant,
        drive: DriveIdx,
        started: Instant,
        ended_before: u64,
        patience: Nanos,
    ) -> bool {
        let Drive { track, ended, .. } = &self.each[drive.as_usize()];
        let passed_over = (ended - ended_before) as f64 > PASSED_OVER * self.window;
        passed_over || track.busy(now, started) >= patience
    }

    /// A command has left its drive.
    pub(crate) fn handle_left(&mut self, now: Instant, drive: DriveIdx, sub: SubId) -> Left {
        let Drive { queue, heard, ended, .. } = self.of(drive);
        *ended += 1;
        let inside = queue.inside().len();
        queue.finish(sub);
        let left = queue.inside().len();
        heard.end(now, left);
        Left { inside, event: self.standings.note_heard(now, drive) }
    }

    /// A command for sectors has ended, well or not.
    pub(crate) fn note_ended(&mut self, now: Instant, what: &Ended) -> Option<DriveEvent> {
        let &Ended { drive, enqueued, started, inside, read } = what;
        let pace = self.pace;
        let track = &mut self.of(drive).track;
        let busy = track.busy(now, started);
        let reader = read.as_ref().map_or(Reader::Operation, |read| read.reader);
        track.handle_finished(now, started, inside, reader);
        track.handle_busy(busy, pace);
        let EndedRead { fate, reader, unread, sectors } = read?;
        if let Some(unread) = unread {
            track.handle_fast_read(unread, sectors);
        }
        if fate == Fate::Again {
            track.handle_retried(busy);
        }
        if reader == Reader::Operation {
            let took = now.saturating_since(enqueued);
            self.times.median.note(took);
            self.times.tail.note(took);
        }
        self.standings.note_read(now, drive, busy, reader == Reader::None)
    }
}
