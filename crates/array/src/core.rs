//! What all operations of an array share: its shape, its drives' queues, the names it has given, and
//! the actions it wants done.

use std::collections::{BTreeMap, VecDeque};

use levelhead_block::{
    BufId, Combine, Command, Effort, Outcome, Place, RequestId, SectorSet, Segment,
};
use levelhead_erasure::Code;
use levelhead_stats::{Rng, Streams};
use levelhead_units::{DriveIdx, DriveSet, Extent, Instant, Lba, Nanos, Sectors};

use crate::action::{Action, Answer, Deliver, SubId, Submit};
use crate::counters::Counters;
use crate::drives::admission::{Awaited, Gate};
use crate::drives::detect::{Detector, DriveEvent, EventKind, PROBE_INTERVAL};
use crate::drives::quantile::Quantile;
use crate::drives::queue::{End, HostQueue};
use crate::drives::silence::Patience;
use crate::drives::track::{DriveTrack, Work};
use crate::event::Event;
use crate::ops::refused::Postponed;
use crate::policy::cost::Costs;
use crate::policy::tau::{DriveView, Share};
use crate::policy::tolerant::Streaks;
use crate::policy::{View, level};
use crate::shape::{Area, Layout};
use crate::{Content, Settings};

/// An operation in progress: a read, a write, a flush or a resync. Numbered from 1.
pub(crate) type OpId = u64;

/// What a command to a drive is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// An operation waits for its end.
    Op(OpId),
    /// It shows how a drive is that is not read otherwise.
    Probe,
    /// It keeps the array's books; its address is the drive's own.
    Ledger,
    /// It was an operation's, which does not wait for it any more.
    Abandoned,
}

/// Reads over which what they found at the drives is averaged.
const SEEN_MEMORY: f64 = 64.0;

/// A drive that has ended so many windows' worth of others has lost a command: passed by in favour of nearer
/// ones it is for ten of them in one case of 20,000, and for longer where the host's queue feeds it in the
/// order of the addresses.
const PASSED_OVER: f64 = 100.0;

/// What a probe reads, or one chunk if that is less: 8 KiB.
const PROBE_SIZE: Sectors = Sectors::new(2);

/// See the module.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) layout: Layout,
    /// Where the layout's sectors lie on the drives.
    pub(crate) area: Area,
    /// Absent where nothing is redundant.
    pub(crate) code: Option<Code>,
    pub(crate) lost: DriveSet,
    /// Those of the lost drives whose loss is not safely recorded yet, where losses are recorded.
    pub(crate) unrecorded: DriveSet,
    /// Answers that rely on such a loss.
    held: Vec<Held>,
    /// Commands that were refused, in the order in which they are sent again.
    pub(crate) postponed: VecDeque<Postponed>,
    /// Clients' writes that have been carried out.
    pub(crate) writes_ended: u64,
    /// Those of them that a flush has made safe.
    pub(crate) writes_flushed: u64,
    /// Whether some that were not flushed may be gone with a drive, and no flush has said so.
    pub(crate) has_lost_writes: bool,
    /// Redundancy of stripes from here on is not valid yet.
    pub(crate) synced: u64,
    pub(crate) actions: VecDeque<Action>,
    pub(crate) counters: Counters,
    pub(crate) detector: Detector,
    /// Who was late again and again.
    pub(crate) streaks: Streaks,
    /// What half of the reads sent to drives take, from their place in the queue to their end.
    pub(crate) median: Quantile,
    /// The same for 99 of 100.
    pub(crate) tail: Quantile,
    /// What 9 of 10 drives take for their part of a read, in medians of the drives that have parts.
    pub(crate) spread: Quantile,
    /// Which drives are given something new.
    pub(crate) gate: Gate,
    /// Commands inside a drive at most.
    pub(crate) window: f64,
    /// Commands that a read found at a drive, averaged over the last reads.
    pub(crate) seen: f64,
    /// The median drive's pace, in seconds.
    pace: f64,
    /// Drives that the last read did without.
    aside: DriveSet,
    patience: Option<Patience>,
    /// Drives that have ended nothing for long.
    pub(crate) silent: DriveSet,
    /// Those of them that were found overdue.
    pub(crate) overdue: DriveSet,
    /// Drives done without of which nothing has been heard since.
    stale: DriveSet,
    probe_rng: Rng,
    /// Room for decisions.
    shares: Vec<Share>,
    content: Content,
    drives: Vec<Drive>,
    subs: BTreeMap<SubId, Sub>,
    sub_next: u64,
    buf_next: u64,
}

/// An answer that waits until the loss of some drives is safely recorded.
#[derive(Debug)]
struct Held {
    relies_on: DriveSet,
    answer: Answer,
}

#[derive(Debug)]
struct Drive {
    queue: HostQueue,
    track: DriveTrack,
    /// Commands inside that somebody waits for.
    awaited: Awaited,
    /// Since when it has had something to do.
    busy_since: Option<Instant>,
    /// Commands that it has ended.
    ended: u64,
    /// When it ended the last of them.
    heard_last: Instant,
}

impl Drive {
    fn work(&self) -> Work {
        let inside = self.queue.inside().len();
        Work { queued: self.queue.len(), inside, since: self.busy_since }
    }
}

/// A command in a drive's queue or inside the drive.
#[derive(Clone, Debug)]
pub(crate) struct Sub {
    pub(crate) purpose: Purpose,
    pub(crate) drive: DriveIdx,
    pub(crate) command: Command,
    segments: Vec<Segment>,
    origin: u64,
    fate: Fate,
    since: Option<Instant>,
    enqueued: Instant,
    started: Option<Instant>,
    /// It is late from then on, for those who count that.
    due: Option<Instant>,
    /// Commands that its drive had ended when it went in.
    ended_before: u64,
}

/// Whether a command says something about how often commands are withdrawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It may be withdrawn at the answer.
    Withdrawable,
    /// It will run.
    Certain,
    /// It will run, and reads with retries what was not given without them.
    Again,
}

/// What to put into a drive's queue.
pub(crate) struct Enqueue {
    pub(crate) purpose: Purpose,
    pub(crate) drive: DriveIdx,
    /// Its addresses are the layout's, or the drive's own where the purpose says so.
    pub(crate) command: Command,
    pub(crate) segments: Vec<Segment>,
    pub(crate) origin: u64,
    pub(crate) end: End,
    pub(crate) fate: Fate,
    /// Since when a client waits for what it is part of, if one does.
    pub(crate) since: Option<Instant>,
}

impl Core {
    pub(crate) fn new(settings: &Settings, streams: Streams) -> Self {
        let layout = Layout::new(settings.spec, settings.area.size());
        let drives = (0..settings.spec.drives()).map(|idx| {
            let rng = streams.stream(&format!("array/host-queue/{idx}"));
            let queue = HostQueue::new(settings.order, settings.window, rng);
            let (track, awaited) = (DriveTrack::default(), Awaited::default());
            Drive { queue, track, awaited, busy_since: None, ended: 0, heard_last: Instant::ZERO }
        });
        let count = settings.spec.drives();
        let redundant = layout.symbols() - layout.data_symbols();
        let code = (redundant > 0).then(|| {
            Code::new(layout.data_symbols(), redundant).expect("a spec's codeword is not too long")
        });
        Self {
            layout,
            area: settings.area.clone(),
            code,
            lost: settings.lost,
            unrecorded: DriveSet::EMPTY,
            held: Vec::new(),
            postponed: VecDeque::new(),
            writes_ended: 0,
            writes_flushed: 0,
            has_lost_writes: false,
            synced: settings.synced.min(layout.stripes()),
            actions: VecDeque::new(),
            counters: Counters::default(),
            detector: Detector::new(
                count,
                settings.spec.redundant(),
                settings.lost,
                settings.policy.sits_out(),
            ),
            streaks: Streaks::new(count),
            median: Quantile::new(0.5),
            tail: Quantile::new(0.99),
            spread: Quantile::new(0.9),
            gate: Gate::new(settings.policy.admission()),
            window: f64::from(settings.window),
            seen: 0.0,
            pace: 0.0,
            aside: DriveSet::EMPTY,
            patience: settings.patience,
            silent: DriveSet::EMPTY,
            overdue: DriveSet::EMPTY,
            stale: DriveSet::EMPTY,
            probe_rng: streams.stream("array/probes"),
            shares: Vec::with_capacity(count),
            content: settings.content,
            drives: drives.collect(),
            subs: BTreeMap::new(),
            sub_next: 0,
            buf_next: 0,
        }
    }

    pub(crate) fn present(&self) -> DriveSet {
        DriveSet::first(self.drives.len() as u8).without(self.lost)
    }

    pub(crate) fn view(&self, now: Instant, drive: DriveIdx) -> DriveView {
        let drive = &self.drives[drive.as_usize()];
        drive.track.view(now, drive.work())
    }

    /// How many more drives the layout can lose.
    pub(crate) fn spare(&self) -> usize {
        self.layout.spec().redundant().saturating_sub(self.lost.len() as usize)
    }

    /// Room for the shares of a read, to be given back.
    pub(crate) fn take_shares(&mut self) -> Vec<Share> {
        let mut shares = std::mem::take(&mut self.shares);
        shares.clear();
        shares
    }

    pub(crate) fn give_back_shares(&mut self, shares: Vec<Share>) {
        self.shares = shares;
    }

    /// A read has looked at the drives that are there.
    pub(crate) fn note_views(&mut self, shares: &[Share]) {
        if shares.is_empty() {
            return;
        }
        self.pace = level::median(shares, |drive| drive.pace);
        let queued: f64 = shares.iter().map(|share| share.drive.queued).sum();
        self.seen += (queued / shares.len() as f64 - self.seen) / SEEN_MEMORY;
        self.gate.note_queues(self.seen, self.window);
    }

    /// The drives that `level` does without at this moment in a read that asked these first, and of how many
    /// others it asks the rest before it has retries made.
    pub(crate) fn slow(&mut self, now: Instant, asked: DriveSet) -> (DriveSet, usize) {
        let mut shares = self.take_shares();
        for idx in self.present().iter() {
            let wanted = u32::from(asked.contains(idx));
            shares.push(Share { idx, drive: self.view(now, idx), wanted });
        }
        let view = View { shares: &shares, ..self.overview() };
        let slow = level::slow(&view);
        let rest_max = Costs::of(&view, slow).rest_max();
        self.give_back_shares(shares);
        self.note_slow(slow);
        (slow, rest_max)
    }

    /// Drives that take more than so many times as long for a command as the median drive, as if each had
    /// one command inside.
    pub(crate) fn slower(&self, now: Instant, times: f64) -> DriveSet {
        let pace = |drive| self.view(now, drive).pace_alone;
        let mut paces: Vec<f64> = self.present().iter().map(pace).collect();
        paces.sort_unstable_by(f64::total_cmp);
        let Some(&median) = paces.get(paces.len().saturating_sub(1) / 2) else {
            return DriveSet::EMPTY;
        };
        self.present().iter().filter(|&drive| pace(drive) > times * median).collect()
    }

    /// What a decision is made from, but for the drives' shares.
    pub(crate) fn overview(&self) -> View<'static> {
        View {
            shares: &[],
            spare: self.spare(),
            arrivals: self.gate.arrivals(),
            window: self.window,
            seen: self.seen,
            sat_out: self.detector.sat_out(),
            by_hand: self.not_to_be_read(),
            persistent: self.streaks.persistent().without(self.detector.sat_out()),
        }
    }

    /// Since when a drive that has something to do has ended nothing.
    fn silent_since(&self, drive: DriveIdx) -> Option<Instant> {
        let Drive { heard_last, busy_since, .. } = &self.drives[drive.as_usize()];
        busy_since.map(|since| since.max(*heard_last))
    }

    /// When [`Core::look_for_silence`] has something to find.
    pub(crate) fn silence_at(&self) -> Option<Instant> {
        let patience = self.patience?;
        let all = DriveSet::first(self.drives.len() as u8);
        let watched = all.without(self.overdue).without(self.lost.and(self.silent));
        let at = |drive| {
            let is_silent = self.silent.contains(drive);
            let after = if is_silent { patience.lost } else { patience.silent };
            Some(self.silent_since(drive)? + after)
        };
        watched.iter().filter_map(at).min()
    }

    /// Finds drives that have been silent for too long, and those that have just become so, which it returns.
    pub(crate) fn look_for_silence(&mut self, now: Instant) -> DriveSet {
        let Some(patience) = self.patience else { return DriveSet::EMPTY };
        let (mut newly, mut overdue) = (DriveSet::EMPTY, DriveSet::EMPTY);
        for drive in DriveSet::first(self.drives.len() as u8).iter() {
            let Some(since) = self.silent_since(drive) else { continue };
            let silent_for = now.saturating_since(since);
            let is_present = !self.lost.contains(drive);
            if silent_for >= patience.silent && !self.silent.contains(drive) {
                newly = newly.with(drive);
                if is_present {
                    self.note_standing(now, drive, EventKind::Silent);
                }
            }
            if is_present && silent_for >= patience.lost {
                overdue = overdue.with(drive);
            }
        }
        self.silent = self.silent.or(newly);
        self.overdue = overdue;
        newly
    }

    /// A drive has ended something.
    fn note_heard(&mut self, now: Instant, drive: DriveIdx) {
        let only = DriveSet::EMPTY.with(drive);
        if self.silent.contains(drive) && !self.lost.contains(drive) {
            self.note_standing(now, drive, EventKind::Heard);
        }
        (self.silent, self.overdue) = (self.silent.without(only), self.overdue.without(only));
    }

    fn note_standing(&mut self, at: Instant, drive: DriveIdx, kind: EventKind) {
        let figures = self.detector.figures(at, drive);
        self.note_event(Some(DriveEvent { at, drive, kind, figures }));
    }

    /// How long a drive is waited for, where there is a limit.
    pub(crate) fn patience(&self) -> Option<Patience> {
        self.patience
    }

    /// Whether the ledger waits for a drive, or an operation that `waits` says so of.
    pub(crate) fn is_waited_for(&self, drive: DriveIdx, waits: impl Fn(&OpId) -> bool) -> bool {
        self.subs.values().any(|sub| {
            sub.drive == drive
                && match &sub.purpose {
                    Purpose::Op(op) => waits(op),
                    Purpose::Ledger => true,
                    Purpose::Probe | Purpose::Abandoned => false,
                }
        })
    }

    /// Drives that an operator sat out and, as far as the layout can do without more, those that are silent.
    fn not_to_be_read(&self) -> DriveSet {
        let by_hand = self.detector.by_hand();
        let room = self.spare().saturating_sub(by_hand.len() as usize);
        let silent = self.silent.without(self.lost).without(by_hand);
        silent.iter().take(room).fold(by_hand, DriveSet::with)
    }

    /// These drives are done without: they are probed if nothing is heard of them.
    pub(crate) fn note_slow(&mut self, slow: DriveSet) {
        self.aside = slow;
        self.stale = self.stale.or(slow.without(self.detector.sat_out()));
    }

    pub(crate) fn note_event(&mut self, event: Option<DriveEvent>) {
        self.actions.extend(event.map(Event::Standing).map(Action::Event));
    }

    /// When [`Core::probe`] has something to do.
    pub(crate) fn probe_at(&self) -> Option<Instant> {
        let stale = self.stale.without(self.lost).iter().map(|drive| self.stale_at(drive));
        stale.chain(self.detector.probe_at()).min()
    }

    fn stale_at(&self, drive: DriveIdx) -> Instant {
        self.drives[drive.as_usize()].track.finished_last() + PROBE_INTERVAL
    }

    /// Reads a little from drives that are done without, to hear how they are.
    pub(crate) fn probe(&mut self, now: Instant) {
        for drive in self.present().iter() {
            let is_stale = self.stale.contains(drive) && self.stale_at(drive) <= now;
            if is_stale {
                self.stale = self.stale.without(DriveSet::EMPTY.with(drive));
            }
            if !(self.detector.take_probe(now, drive) || is_stale) || self.queue_len(drive) > 0 {
                continue;
            }
            let chunk = self.layout.spec().chunk();
            let lba = Lba::new(self.probe_rng.below(self.layout.stripes()) * chunk.get());
            let sectors = chunk.min(PROBE_SIZE);
            let place = Place { buf: self.name_buf(), sector: 0 };
            let count = sectors.get() as u32;
            self.enqueue(
                now,
                Enqueue {
                    purpose: Purpose::Probe,
                    drive,
                    command: Command::Read {
                        extent: Extent::new(lba, sectors),
                        effort: Effort::Fast,
                    },
                    segments: vec![Segment { place, sectors: count }],
                    origin: self.own_origin(),
                    end: End::Tail,
                    fate: Fate::Certain,
                    since: None,
                },
            );
        }
    }

    pub(crate) fn track(&mut self, drive: DriveIdx) -> &mut DriveTrack {
        &mut self.drives[drive.as_usize()].track
    }

    /// The predicted wait of one command more at each drive, in nanoseconds.
    pub(crate) fn waits(&self, now: Instant) -> Vec<u64> {
        let wait = |drive: &Drive| {
            let pace = Nanos::from_secs_f64_round(drive.track.pace(now, drive.work()));
            pace.get() * (drive.queue.len() as u64 + 1)
        };
        self.drives.iter().map(wait).collect()
    }

    /// Commands at a drive that is there, on average.
    pub(crate) fn mean_queue(&self) -> f64 {
        let present = self.present();
        let queued: usize = present.iter().map(|drive| self.queue_len(drive)).sum();
        queued as f64 / f64::from(present.len().max(1))
    }

    pub(crate) fn queue_len(&self, drive: DriveIdx) -> usize {
        self.drives[drive.as_usize()].queue.len()
    }

    /// The origin of the next command of the array's own: a number that no client's request has.
    pub(crate) fn own_origin(&self) -> u64 {
        u64::MAX - self.sub_next
    }

    /// A name for a buffer of the array's own.
    pub(crate) fn name_buf(&mut self) -> BufId {
        self.buf_next += 1;
        BufId::Own(self.buf_next)
    }

    /// A buffer of the array's own, there at once.
    pub(crate) fn acquire(&mut self, sectors: Sectors) -> BufId {
        let buf = self.name_buf();
        self.actions.push_back(Action::Acquire { buf, sectors });
        buf
    }

    pub(crate) fn release(&mut self, buf: BufId) {
        self.actions.push_back(Action::Release(buf));
    }

    /// Puts a command into a drive's queue.
    pub(crate) fn enqueue(&mut self, now: Instant, what: Enqueue) -> SubId {
        let Enqueue { purpose, drive, command, segments, origin, end, fate, since } = what;
        assert!(!self.lost.contains(drive), "drive {drive} is lost");
        self.sub_next += 1;
        let sub = SubId(self.sub_next);
        let (enqueued, started, due) = (now, None, None);
        let state = Sub {
            purpose,
            drive,
            command,
            segments,
            origin,
            fate,
            since,
            enqueued,
            started,
            due,
            ended_before: 0,
        };
        let Drive { queue, track, .. } = &mut self.drives[drive.as_usize()];
        queue.push(sub, state.lba(), end);
        if state.command.extent().is_some() {
            track.handle_asked(now);
        }
        self.subs.insert(sub, state);
        sub
    }

    /// Whether more drives are lost than the layout survives.
    pub(crate) fn has_failed(&self) -> bool {
        self.lost.len() as usize > self.layout.spec().redundant()
    }

    /// A drive is lost: what it held of stripes that are not redundant is gone.
    pub(crate) fn note_lost_writes(&mut self) {
        let is_covered = self.synced == self.layout.stripes() && !self.has_failed();
        self.has_lost_writes |= !is_covered && self.writes_ended > self.writes_flushed;
    }

    /// Answers a request, once the loss of these drives is safely recorded.
    pub(crate) fn answer(&mut self, relies_on: DriveSet, answer: Answer) {
        self.counters.held += u64::from(!relies_on.and(self.unrecorded).is_empty());
        self.answer_or_hold(relies_on, answer);
    }

    fn answer_or_hold(&mut self, relies_on: DriveSet, answer: Answer) {
        let relies_on = relies_on.and(self.unrecorded);
        if relies_on.is_empty() {
            self.actions.push_back(Action::Answer(answer));
        } else {
            self.held.push(Held { relies_on, answer });
        }
    }

    /// The loss of these drives is safely recorded.
    pub(crate) fn note_recorded(&mut self, drives: DriveSet) {
        self.unrecorded = self.unrecorded.without(drives);
        for Held { relies_on, answer } in std::mem::take(&mut self.held) {
            self.answer_or_hold(relies_on, answer);
        }
    }

    /// No loss will ever be recorded again: what relies on one cannot be promised.
    pub(crate) fn fail_held(&mut self) {
        for Held { answer, .. } in self.held.drain(..) {
            let answer = Answer { outcome: Outcome::Gone, ..answer };
            self.actions.push_back(Action::Answer(answer));
        }
    }

    /// Withdraws a command if no drive has it yet.
    pub(crate) fn withdraw(&mut self, now: Instant, sub: SubId) -> bool {
        let Some(state) = self.subs.get(&sub) else { return false };
        let Drive { queue, track, .. } = &mut self.drives[state.drive.as_usize()];
        if state.started.is_some() || !queue.remove(sub, state.lba()) {
            return false;
        }
        if state.fate == Fate::Withdrawable {
            track.handle_fate(now, true);
        }
        track.handle_withdrawn(now);
        self.subs.remove(&sub);
        true
    }

    /// Nobody waits for a command any more that a drive may have. It was late from `due` on.
    pub(crate) fn leave(&mut self, sub: SubId, due: Option<Instant>) {
        let Some(state) = self.subs.get_mut(&sub) else { return };
        state.due = due;
        self.drives[state.drive.as_usize()].awaited.leave(sub);
    }

    /// Whether an operation counts on a command of its own.
    pub(crate) fn count_on(&mut self, drive: DriveIdx, sub: SubId, is_counted_on: bool) {
        self.drives[drive.as_usize()].awaited.count_on(sub, is_counted_on);
    }

    /// Whether a drive has ended nothing for so long that it could have ended this command, or so much else
    /// that it must have lost it.
    pub(crate) fn is_stuck(&self, now: Instant, sub: SubId, patience: Nanos) -> bool {
        let Some(Sub { drive, started: Some(started), ended_before, .. }) = self.subs.get(&sub)
        else {
            return false;
        };
        let Drive { track, ended, .. } = &self.drives[drive.as_usize()];
        let passed_over = (ended - ended_before) as f64 > PASSED_OVER * self.window;
        passed_over || track.busy(now, *started) >= patience
    }

    /// Lets commands into every drive whose window has room and that is not held for an old request.
    /// Where a slow drive is needed after all, as writes need it, it wants a choice more than others do.
    pub(crate) fn dispatch(&mut self, now: Instant) {
        for (at, drive) in self.drives.iter_mut().enumerate() {
            let is_aside = self.aside.contains(DriveIdx::from_usize(at));
            let room = if is_aside { usize::MAX } else { self.gate.room(now, &drive.awaited) };
            while drive.queue.inside().len() < room
                && let Some(sub) = drive.queue.pop()
            {
                let state = self.subs.get_mut(&sub).expect("a queued command is known");
                state.started = Some(now);
                state.ended_before = drive.ended;
                drive.busy_since.get_or_insert(now);
                if let Some(since) = state.since {
                    drive.awaited.enter(sub, since);
                }
                if state.fate == Fate::Withdrawable {
                    drive.track.handle_fate(now, false);
                }
                if let (Command::Read { extent, .. }, [segment]) =
                    (state.command, state.segments.as_slice())
                {
                    let buf = segment.place.buf;
                    self.actions.push_back(Action::Acquire { buf, sectors: extent.sectors });
                }
                self.actions.push_back(Action::Submit(submit(&self.area, sub, state)));
            }
        }
    }

    /// What a command is for, and its drive.
    pub(crate) fn whose(&self, sub: SubId) -> Option<(Purpose, DriveIdx)> {
        self.subs.get(&sub).map(|state| (state.purpose, state.drive))
    }

    /// A command as its drive gets it, and what it is for.
    pub(crate) fn submit_of(&self, sub: SubId) -> Option<(Submit, Purpose)> {
        self.subs.get(&sub).map(|state| (submit(&self.area, sub, state), state.purpose))
    }

    /// How a command has ended that a drive answered so: one that was refused counts as failed.
    pub(crate) fn settled(&self, sub: SubId, outcome: &Outcome) -> Outcome {
        match outcome {
            Outcome::Done { .. } | Outcome::Gone => outcome.clone(),
            Outcome::Refused => {
                let sub = self.subs.get(&sub).unwrap_or_else(|| panic!("{sub:?} is not known"));
                failed(&sub.command)
            }
        }
    }

    /// A command has come back from its drive; returns what it was.
    pub(crate) fn finish(&mut self, now: Instant, sub: SubId, outcome: &Outcome) -> Sub {
        let state = self.subs.remove(&sub).unwrap_or_else(|| panic!("{sub:?} is not known"));
        let started = state.started.unwrap_or_else(|| panic!("{sub:?} is not inside a drive"));
        let Drive { queue, track: _, awaited, busy_since, ended, heard_last } =
            &mut self.drives[state.drive.as_usize()];
        (*ended, *heard_last) = (*ended + 1, now);
        let inside = queue.inside().len();
        queue.finish(sub);
        awaited.leave(sub);
        if queue.inside().len() == 0 {
            *busy_since = None;
        }
        if let Some(due) = state.due {
            self.streaks.note(state.drive, now > due);
        }
        self.note_heard(now, state.drive);
        if state.command == Command::Flush || state.purpose == Purpose::Ledger {
            return state;
        }
        let track = &mut self.drives[state.drive.as_usize()].track;
        let busy = track.busy(now, started);
        track.handle_finished(now, started, inside);
        track.handle_busy(busy, self.pace);
        if let Command::Read { extent, effort } = state.command {
            if let (Effort::Fast, Outcome::Done { unknown, .. }) = (effort, outcome) {
                track.handle_fast_read(unknown.len(), extent.sectors.get());
            }
            if state.fate == Fate::Again {
                track.handle_retried(busy);
            }
            let is_probe = matches!(state.purpose, Purpose::Probe | Purpose::Abandoned);
            if !is_probe {
                let took = now.saturating_since(state.enqueued);
                self.median.note(took);
                self.tail.note(took);
            }
            let event = self.detector.note(now, state.drive, busy, is_probe);
            self.note_event(event);
        }
        state
    }

    /// Takes everything that waits for `drive` out of its queue.
    pub(crate) fn drain_waiting(&mut self, drive: DriveIdx) -> Vec<(SubId, Sub)> {
        let waits = |sub: &Sub| sub.drive == drive && sub.started.is_none();
        let waiting: Vec<SubId> =
            self.subs.iter().filter(|(_, sub)| waits(sub)).map(|(&id, _)| id).collect();
        waiting
            .into_iter()
            .map(|id| {
                let sub = self.subs.remove(&id).expect("it was there");
                let removed = self.drives[drive.as_usize()].queue.remove(id, sub.lba());
                assert!(removed, "{id:?} waits in the queue");
                (id, sub)
            })
            .collect()
    }

    /// Everything inside `drive`. Nobody waits for its end any more; the commands stay known, because
    /// the drive may still come back with their buffers.
    pub(crate) fn give_up_inside(&mut self, drive: DriveIdx) -> Vec<(SubId, Sub)> {
        let waited = |purpose| matches!(purpose, Purpose::Op(_) | Purpose::Ledger);
        let inside =
            self.subs.iter_mut().filter(|(_, sub)| sub.drive == drive && waited(sub.purpose));
        inside
            .map(|(&id, sub)| {
                let known = sub.clone();
                sub.purpose = Purpose::Abandoned;
                (id, known)
            })
            .collect()
    }

    /// Whether no command is queued or inside a drive, except for those that are silent.
    pub(crate) fn is_quiet_but_for_silent(&self) -> bool {
        self.subs.values().all(|sub| self.silent.contains(sub.drive))
    }

    /// Whether any command is queued or inside a drive.
    pub(crate) fn is_quiet(&self) -> bool {
        self.subs.is_empty()
    }

    /// Whether anyone looks at bytes.
    pub(crate) fn carries_content(&self) -> bool {
        match self.content {
            Content::Carried => true,
            Content::Absent => false,
        }
    }

    /// Says where the data of a read lie.
    pub(crate) fn deliver(&mut self, request: RequestId, segments: Vec<Segment>) {
        self.actions.push_back(Action::Deliver(Deliver { request, segments }));
    }

    /// Asks for arithmetic, and joins it to the last such action where they continue each other.
    pub(crate) fn combine(&mut self, into: Place, from: Vec<(u8, Place)>) {
        match self.content {
            Content::Carried => {}
            Content::Absent => return,
        }
        if let Some(Action::Combine(last)) = self.actions.back_mut()
            && continues(last, into, &from)
        {
            last.sectors += 1;
            return;
        }
        self.actions.push_back(Action::Combine(Combine { into, sectors: 1, from }));
    }
}

/// Whether one more sector is the next one of everything in `last`.
fn continues(last: &Combine, into: Place, from: &[(u8, Place)]) -> bool {
    let next = |place: Place| place.plus(last.sectors);
    next(last.into) == into
        && last.from.len() == from.len()
        && last
            .from
            .iter()
            .zip(from)
            .all(|(&(coefficient, place), &other)| (coefficient, next(place)) == other)
}

fn submit(area: &Area, sub: SubId, state: &Sub) -> Submit {
    let Sub { drive, segments, origin, .. } = state;
    let (drive, command) = (*drive, on_drive(area, state));
    Submit { drive, sub, command, segments: segments.clone(), origin: *origin }
}

/// A command as its drive gets it.
fn on_drive(area: &Area, sub: &Sub) -> Command {
    match (sub.purpose, sub.command.extent()) {
        (Purpose::Ledger, _) | (_, None) => sub.command,
        (Purpose::Op(_) | Purpose::Probe | Purpose::Abandoned, Some(extent)) => {
            sub.command.at(area.on_drive(extent).lba)
        }
    }
}

impl Sub {
    fn lba(&self) -> Lba {
        self.command.extent().map_or(Lba::ZERO, |extent: Extent| extent.lba)
    }

    /// The buffer a read fills.
    pub(crate) fn read_buf(&self) -> Option<BufId> {
        match (self.command, self.segments.as_slice()) {
            (Command::Read { .. }, [segment]) => Some(segment.place.buf),
            _ => None,
        }
    }
}

/// The outcome of a command that was not carried out at all.
fn failed(command: &Command) -> Outcome {
    let all = SectorSet::first(command.payload());
    let (unknown, damaged) = match command {
        Command::Read { effort: Effort::Fast | Effort::Limited(_), .. } => (all, SectorSet::EMPTY),
        Command::Read { effort: Effort::Full, .. } | Command::Write { .. } => {
            (SectorSet::EMPTY, all)
        }
        Command::WriteZeroes { .. } | Command::Trim { .. } | Command::Flush => {
            return Outcome::Gone;
        }
    };
    Outcome::Done { unknown, damaged }
}

/// Whether an outcome says that the drive is no longer with us: it does not answer, or it could not
/// write.
pub(crate) fn loses_drive(command: &Command, outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Gone => true,
        Outcome::Done { damaged, .. } => command.is_write() && !damaged.is_empty(),
        Outcome::Refused => false,
    }
}
