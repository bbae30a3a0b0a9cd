//! The drives of one group and one model, compared with one another.

use super::counters::Counters;
use super::history::{History, Window, median};
use super::saved::{Saved, SavedCohort, SavedMember};
use super::verdict::{Comparison, DriveVerdict, Event, State, Why};
use super::{HUNG_AFTER, MakeDetector, Member, PEERS_MIN, Recorded, Sample};
use crate::detect::{Detector, Finding, Reading, Verdict, WINDOW};

/// A window in which fewer commands ended says nothing of a drive.
const ENDED_MIN: u64 = 20;

/// A ratio below is no suspicion: healthy drives differ by some hundredths lastingly.
const SUSPECT_RATIO: f64 = 1.1;

/// Seconds without a sample after which a drive is called unread.
const UNREAD_AFTER: i64 = 60;

/// Windows of its own past that a drive is compared with, and the fewest that are enough.
const OWN_PAST: usize = 48;
const OWN_PAST_MIN: usize = 12;

/// Seconds after its last window of use from which a drive that was not found slow is called idle: a day, so that hosts which are
/// busy for some hours of it keep their verdicts.
const IDLE_AFTER: i64 = 24 * 3600;

/// Windows of the load ratio.
const LOAD_WINDOWS: usize = 36;

/// See the module.
pub(super) struct Cohort {
    /// What identifies the group, and the model.
    pub(super) name: String,
    /// The group's name.
    pub(super) group: String,
    group_size: usize,
    drives: Vec<Drive>,
    detector: Box<dyn Detector>,
    findings: Vec<Finding>,
    history: History,
    is_rebuilding: bool,
    /// Whether it was at any time of the running window.
    was_rebuilding: bool,
    pub(super) is_host_wide: bool,
    /// When a sample was last looked at.
    now: Option<i64>,
}

struct Drive {
    member: Member,
    seen: Option<Seen>,
    /// Since when something has been inside and nothing has ended.
    stuck_since: Option<i64>,
    window: Ended,
    state: State,
    slow_seconds: u64,
    /// Its own latency in the last window over its past.
    own_ratio: Option<f64>,
    /// When its state was last looked at.
    judged_at: Option<i64>,
    /// When the last window ended in which enough of its commands did.
    used_until: Option<i64>,
    /// Its load over the median of its peers', over the last windows.
    load_ratio: Option<f64>,
}

#[derive(Clone, Copy)]
struct Seen {
    at: i64,
    counters: Counters,
}

/// What ended in the running window.
#[derive(Clone, Copy, Default)]
struct Ended {
    ended: u64,
    millis: u64,
    sectors: u64,
    seconds: i64,
}

impl Ended {
    fn reading(&self) -> Option<Reading> {
        if self.ended < ENDED_MIN || self.millis == 0 || self.seconds <= 0 {
            return None;
        }
        Some(Reading {
            latency_us: self.millis as f64 * 1e3 / self.ended as f64,
            load: self.sectors as f64 * 512.0 / self.seconds as f64,
        })
    }
}

impl Drive {
    fn new(member: Member, slow_seconds: u64) -> Self {
        Self {
            member,
            seen: None,
            stuck_since: None,
            window: Ended::default(),
            state: State::CannotTell(Why::Idle),
            slow_seconds,
            own_ratio: None,
            judged_at: None,
            used_until: None,
            load_ratio: None,
        }
    }

    fn handle_counters(&mut self, now: i64, counters: Counters) {
        // Two samples of one second: the later one would have nothing to be divided by.
        if self.seen.is_some_and(|seen| seen.at >= now) {
            return;
        }
        let before = self.seen.replace(Seen { at: now, counters });
        let Some(before) = before else { return };
        let is_stuck = counters.is_stuck_since(&before.counters);
        self.stuck_since = is_stuck.then(|| self.stuck_since.unwrap_or(before.at));
        let seconds = now - before.at;
        // Of a gap longer than a window nothing is known but its sum.
        let Some(progress) = counters.since(&before.counters).filter(|_| seconds <= WINDOW) else {
            return;
        };
        self.window.ended = self.window.ended.saturating_add(progress.ended);
        self.window.millis = self.window.millis.saturating_add(progress.millis);
        self.window.sectors = self.window.sectors.saturating_add(progress.sectors);
        self.window.seconds += seconds;
    }

    fn is_hung(&self, now: i64) -> bool {
        let is_read = self.seen.is_some_and(|seen| now - seen.at <= UNREAD_AFTER);
        is_read && self.stuck_since.is_some_and(|since| now - since >= HUNG_AFTER)
    }
}

impl Cohort {
    /// Without members and without a group's name; what was kept of it is taken out of `saved`.
    pub(super) fn new(make: &MakeDetector, name: String, saved: &mut Saved) -> Self {
        let at = saved.cohorts.iter().position(|it| it.name == name);
        let kept = at.map(|at| saved.cohorts.swap_remove(at));
        let SavedCohort { members, history, .. } = kept.unwrap_or_else(|| SavedCohort {
            name: name.clone(),
            members: Vec::new(),
            history: History::default(),
        });
        let drive = |it: SavedMember| {
            let member = Member { device: it.key.clone(), key: it.key, model: String::new() };
            Drive::new(member, it.slow_seconds)
        };
        Self {
            name,
            group: String::new(),
            group_size: 0,
            detector: make(members.len()),
            drives: members.into_iter().map(drive).collect(),
            findings: Vec::new(),
            history,
            is_rebuilding: false,
            was_rebuilding: false,
            is_host_wide: false,
            now: None,
        }
    }

    pub(super) fn handle_members(
        &mut self,
        make: &MakeDetector,
        mut members: Vec<Member>,
        group_size: usize,
    ) {
        self.group_size = group_size;
        members.sort_by(|a, b| a.key.cmp(&b.key));
        members.dedup_by(|a, b| a.key == b.key);
        let is_same =
            members.iter().map(|it| &it.key).eq(self.drives.iter().map(|it| &it.member.key));
        if is_same && !self.findings.is_empty() {
            for (drive, member) in self.drives.iter_mut().zip(members) {
                drive.member = member;
            }
            return;
        }
        let place = |member: &Member| self.drives.iter().position(|it| it.member.key == member.key);
        let from: Vec<_> = members.iter().map(place).collect();
        let mut olds: Vec<_> = std::mem::take(&mut self.drives).into_iter().map(Some).collect();
        for (member, &from) in members.into_iter().zip(&from) {
            let old = from.and_then(|at| olds[at].take());
            self.drives.push(match old {
                Some(old) => Drive { member, ..old },
                None => Drive::new(member, 0),
            });
        }
        self.history = self.history.rearranged(&from);
        self.detector = make(self.drives.len());
        for window in self.history.windows() {
            self.detector.handle_window(window.at, &window.readings());
        }
        self.findings = self.detector.findings();
        self.look_back();
    }

    /// What follows from the history alone, worked out when that changes and not at every sample.
    fn look_back(&mut self) {
        for (member, drive) in self.drives.iter_mut().enumerate() {
            drive.used_until = self.history.last_of(member).map(|at| at + WINDOW);
            drive.load_ratio = self.history.load_ratio(member, LOAD_WINDOWS);
        }
    }

    pub(super) fn handle_rebuilding(&mut self, is_rebuilding: bool) {
        self.is_rebuilding = is_rebuilding;
        self.was_rebuilding |= is_rebuilding;
    }

    pub(super) fn handle_sample(&mut self, now: i64, sample: &Sample) {
        for drive in &mut self.drives {
            if let Some(counters) = sample.get(&drive.member.key) {
                drive.handle_counters(now, *counters);
            }
        }
    }

    pub(super) fn abandon_window(&mut self) {
        for drive in &mut self.drives {
            drive.seen = None;
            drive.stuck_since = None;
            drive.judged_at = None;
            drive.window = Ended::default();
        }
    }

    /// The window that began at `at` is over (WA1).
    pub(super) fn end_window(&mut self, at: i64) {
        let is_usable = !self.was_rebuilding;
        self.was_rebuilding = self.is_rebuilding;
        let take = |drive: &mut Drive| std::mem::take(&mut drive.window).reading();
        let readings: Vec<_> = self.drives.iter_mut().map(take).collect();
        // Where the clock was set back, what is of times to come would stand in the way until then.
        self.history.end_before(at);
        let is_later = self.history.windows().next_back().is_none_or(|last| last.at < at);
        if !is_usable || !is_later || readings.iter().all(Option::is_none) {
            self.drives.iter_mut().for_each(|drive| drive.own_ratio = None);
            return;
        }
        for (member, (drive, reading)) in self.drives.iter_mut().zip(&readings).enumerate() {
            let mut past: Vec<f64> = self.history.latencies(member).take(OWN_PAST).collect();
            let past = if past.len() < OWN_PAST_MIN { None } else { median(&mut past) };
            drive.own_ratio = reading.zip(past).map(|(reading, past)| reading.latency_us / past);
        }
        let window = Window::new(at, &readings);
        // As it is kept: a detector that is told again after a restart is told the same.
        self.detector.handle_window(at, &window.readings());
        self.history.push(window);
        self.findings = self.detector.findings();
        self.look_back();
    }

    pub(super) fn own_ratios(&self) -> impl Iterator<Item = f64> {
        self.drives.iter().filter_map(|drive| drive.own_ratio)
    }

    pub(super) fn advance(&mut self, now: i64) -> Vec<Event> {
        self.now = Some(now);
        let mut events = Vec::new();
        for at in 0..self.drives.len() {
            let state = self.state(at, now);
            let drive = &mut self.drives[at];
            let since = drive.judged_at.replace(now).unwrap_or(now);
            if matches!(drive.state, State::Slow | State::Hung) {
                let more = u64::try_from(now - since).unwrap_or(0);
                drive.slow_seconds = drive.slow_seconds.saturating_add(more);
            }
            let before = std::mem::replace(&mut drive.state, state);
            if before != state {
                events.push(Event { at: now, before, now: self.verdict(at) });
            }
        }
        events
    }

    fn state(&self, at: usize, now: i64) -> State {
        let drive = &self.drives[at];
        if drive.is_hung(now) {
            return State::Hung;
        }
        if drive.seen.is_none_or(|seen| now - seen.at > UNREAD_AFTER) {
            return State::CannotTell(Why::NotRead);
        }
        if self.is_rebuilding {
            return State::CannotTell(Why::Rebuilding);
        }
        let finding = self.findings.get(at).copied();
        let is_slow = finding.is_some_and(|it| it.verdict == Verdict::Slow);
        if self.is_host_wide && !is_slow {
            return State::HostWide;
        }
        if self.drives.len() <= PEERS_MIN {
            let why = if self.group_size > PEERS_MIN { Why::UnlikeModels } else { Why::FewPeers };
            return State::CannotTell(why);
        }
        let is_idle = drive.used_until.is_none_or(|until| now - until > IDLE_AFTER);
        match finding {
            Some(Finding { verdict: Verdict::Slow, .. }) => State::Slow,
            _ if is_idle => State::CannotTell(Why::Idle),
            Some(Finding { verdict: Verdict::Fine, ratio, low, .. })
                if ratio > SUSPECT_RATIO && low > 1.0 =>
            {
                State::Suspect
            }
            Some(Finding { verdict: Verdict::Fine, .. }) => State::Fine,
            Some(Finding { verdict: Verdict::CannotTell, .. }) | None => {
                State::CannotTell(Why::Idle)
            }
        }
    }

    pub(super) fn verdicts(&self) -> impl Iterator<Item = DriveVerdict> {
        (0..self.drives.len()).map(|at| self.verdict(at))
    }

    fn verdict(&self, at: usize) -> DriveVerdict {
        let drive = &self.drives[at];
        let finding = self.findings.get(at).filter(|it| it.ratio.is_finite() && it.ratio > 0.0);
        let compared = |it: &Finding| Comparison {
            ratio: it.ratio,
            low: it.low,
            high: it.high,
            decided_at: it.decided_at,
        };
        DriveVerdict {
            group: self.group.clone(),
            key: drive.member.key.clone(),
            device: drive.member.device.clone(),
            state: drive.state,
            comparison: finding.map(compared),
            busy_hours: finding.map_or(0.0, |it| it.busy_hours),
            peers: self.drives.len() - 1,
            load_ratio: drive.load_ratio,
            age: self.now.zip(drive.used_until).map(|(now, until)| (now - until).max(0)),
            slow_seconds: drive.slow_seconds,
        }
    }

    /// Each drive's latency over their median, in the window that began at `at`.
    pub(super) fn tail(&self, at: i64) -> Option<Vec<f64>> {
        let window = self.history.windows().next_back().filter(|it| it.at == at)?;
        let mut latencies: Vec<f64> =
            window.readings.iter().flatten().map(|&(latency, _)| latency.into()).collect();
        if latencies.len() <= PEERS_MIN {
            return None;
        }
        let median = median(&mut latencies)?;
        Some(latencies.iter().map(|latency| latency / median).collect())
    }

    pub(super) fn recorded(&self, at: i64) -> Vec<Recorded> {
        let window = self.history.windows().next_back().filter(|it| it.at == at);
        let Some(window) = window else { return Vec::new() };
        let readings = self.drives.iter().zip(&window.readings);
        let recorded = |(drive, reading): (&Drive, &Option<(f32, f32)>)| {
            let (latency, load) = (*reading)?;
            let (group, key) = (self.group.clone(), drive.member.key.clone());
            Some(Recorded {
                at: window.at,
                group,
                key,
                latency_us: latency.into(),
                load: load.into(),
            })
        };
        readings.filter_map(recorded).collect()
    }

    pub(super) fn save(&self) -> SavedCohort {
        let member =
            |it: &Drive| SavedMember { key: it.member.key.clone(), slow_seconds: it.slow_seconds };
        let members = self.drives.iter().map(member).collect();
        SavedCohort { name: self.name.clone(), members, history: self.history.clone() }
    }
}
