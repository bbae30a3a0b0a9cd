//! One look at a host: what the state says, a short sample, and each drive's error recovery.
//!
//! - ON1. Nothing is written.
//! - ON2. It ends: a survey has [`SURVEY_MAX`], drives have [`AUDIT_MAX`] for their pages, and samples go on for [`HANG_MAX`] at most.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use levelhead_fleet::watch::{
    Counters, DriveVerdict, HUNG_AFTER, PEERS_MIN, Sample, Saved, State, Why,
};
use levelhead_host::words;
use levelhead_report::json;
use levelhead_stats::median_of;
use serde::Serialize;

use super::audits::AuditJson;
use super::files::{Kept, read_groups, read_state};
use super::keeper::Keeper;
use super::said::{GroupJson, VerdictJson, verdict_json};
use super::{DriveAudit, GroupLine, Host, LOOK, NO_GROUP, unix_now};
use levelhead_app::{AppError, Show, Stop};

/// How long the survey and `zpool` may take.
const SURVEY_MAX: Duration = Duration::from_secs(15);

/// How long drives may take, all together, to say how they recover errors.
const AUDIT_MAX: Duration = Duration::from_secs(40);

/// Seconds of samples beside a state, and without one.
const BESIDE_STATE: i64 = 2;
const ALONE: i64 = 10;

/// Seconds of samples while a drive ends nothing.
const HANG_MAX: i64 = HUNG_AFTER + 2;

/// Windows with which a state is worth something: an hour of them.
const WINDOWS_MIN: usize = 12;

/// Commands with which a short sample shows anything of a drive.
const ENDED_MIN: u64 = 20;

/// What was seen.
#[derive(Clone, Debug)]
pub struct Look {
    groups: Vec<GroupLine>,
    verdicts: Vec<DriveVerdict>,
    /// In the order of the verdicts.
    shorts: Vec<Option<Short>>,
    audits: Vec<DriveAudit>,
    notes: Vec<String>,
    basis: Basis,
}

/// What the verdicts go by.
#[derive(Clone, Copy, Debug)]
struct Basis {
    /// Windows of the state.
    windows: usize,
    /// Seconds since the last of them.
    age: Option<i64>,
    /// Seconds of samples.
    seconds: i64,
}

/// What a short sample shows of a drive.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Short {
    ended: u64,
    /// Latency over the median of the others of the group.
    ratio: Option<f64>,
}

/// Looks once.
///
/// # Errors
///
/// The groups or the state cannot be read.
pub fn once(host: &Host, state: &Path, stop: &Stop) -> Result<Look, AppError> {
    let groups = read_groups(host.groups.as_deref())?;
    let mut notes = Vec::new();
    let saved = match read_state(state)? {
        Kept::Nothing => Saved::default(),
        Kept::State(saved) => saved,
        Kept::Damaged(why) => {
            notes.push(format!("{}: {why}; it is left as it is", state.display()));
            Saved::default()
        }
    };
    let (windows, until) = (saved.windows_max(), saved.last_window_end());
    let mut looking =
        Looking { keeper: Keeper::new(host, groups, saved), groups: BTreeMap::new(), notes, stop };
    let survey_end = Instant::now() + SURVEY_MAX;
    looking.wait(survey_end, |keeper| keeper.finder.is_ready());
    if !looking.keeper.finder.is_ready() {
        let secs = SURVEY_MAX.as_secs();
        looking.notes.push(format!("not all groups are known after {secs} s"));
    }
    let age = until.map(|until| (unix_now() - until).max(0));
    let seconds_min = if windows >= WINDOWS_MIN { BESIDE_STATE } else { ALONE };
    let (samples, seconds) = looking.sample(seconds_min);
    looking.wait(Instant::now() + AUDIT_MAX, Keeper::is_audited);
    let Looking { keeper, groups, mut notes, .. } = looking;
    if groups.is_empty() {
        notes.push(NO_GROUP.to_owned());
    }
    let verdicts = keeper.watch.verdicts();
    let shorts = shorts(&verdicts, &samples);
    let basis = Basis { windows, age, seconds };
    Ok(Look {
        groups: groups.into_values().collect(),
        verdicts,
        shorts,
        audits: keeper.audits(),
        notes,
        basis,
    })
}

struct Looking<'a> {
    keeper: Keeper,
    groups: BTreeMap<String, GroupLine>,
    notes: Vec<String>,
    stop: &'a Stop,
}

/// The first sample and the last one.
struct Samples {
    first: Sample,
    last: Sample,
}

impl Looking<'_> {
    fn look(&mut self) {
        let looked = self.keeper.look(Instant::now());
        self.notes.extend(looked.notes);
        self.groups.extend(looked.groups.into_iter().map(|it| (it.name.clone(), it)));
        self.groups.retain(|_, it| !it.is_gone);
    }

    /// Looks at children until that is so, or until then.
    fn wait(&mut self, end: Instant, is_so: impl Fn(&Keeper) -> bool) {
        loop {
            self.look();
            let now = Instant::now();
            if is_so(&self.keeper) || now >= end || self.stop.is_wished() {
                return;
            }
            self.stop.wait_until(end.min(now + LOOK));
        }
    }

    /// Samples for that many seconds, and for as long as a drive ends nothing, up to when it is said to hang.
    fn sample(&mut self, seconds_min: i64) -> (Samples, i64) {
        // The few seconds are no window: where one would end within them, they count as some before.
        let (now, window) = (unix_now(), levelhead_fleet::detect::WINDOW);
        let is_late = now.rem_euclid(window) + HANG_MAX >= window;
        let base = if is_late { now - HANG_MAX - 1 } else { now };
        let (begun, mut seconds) = (Instant::now(), 0);
        let first = self.keeper.counters();
        self.keeper.take_sample(base, &first);
        let mut before = first.clone();
        loop {
            self.wait(begun + Duration::from_secs(seconds as u64 + 1), |_| false);
            seconds += 1;
            let last = self.keeper.counters();
            self.keeper.take_sample(base + seconds, &last);
            let is_stuck = |(key, counters): (&String, &Counters)| {
                before.get(key).is_some_and(|before| counters.is_stuck_since(before))
            };
            let may_hang = last.iter().any(is_stuck);
            let is_over = seconds >= if may_hang { HANG_MAX } else { seconds_min };
            if is_over || self.stop.is_wished() {
                return (Samples { first, last }, seconds);
            }
            before = last;
        }
    }
}

fn shorts(verdicts: &[DriveVerdict], samples: &Samples) -> Vec<Option<Short>> {
    let progress = |verdict: &DriveVerdict| {
        let (first, last) = (samples.first.get(&verdict.key)?, samples.last.get(&verdict.key)?);
        last.since(first)
    };
    let latency = |verdict: &DriveVerdict| {
        let progress = progress(verdict).filter(|it| it.ended >= ENDED_MIN && it.millis > 0)?;
        Some(progress.millis as f64 / progress.ended as f64)
    };
    let latencies: Vec<_> = verdicts.iter().map(latency).collect();
    let short = |(at, verdict): (usize, &DriveVerdict)| {
        let others = verdicts.iter().zip(&latencies).enumerate();
        let others = others.filter(|&(other, (it, _))| other != at && it.group == verdict.group);
        let mut others: Vec<f64> = others.filter_map(|(_, (_, latency))| *latency).collect();
        let median = (others.len() >= PEERS_MIN).then(|| median_of(&mut others));
        let ratio = latencies[at].zip(median).map(|(own, median)| own / median);
        Some(Short { ended: progress(verdict)?.ended, ratio })
    };
    verdicts.iter().enumerate().map(short).collect()
}

impl Look {
    /// Drives that are slow or hang.
    pub fn trouble_count(&self) -> usize {
        self.verdicts.iter().filter(|it| it.is_trouble()).count()
    }

    /// All drives that were compared.
    pub fn drive_count(&self) -> usize {
        self.verdicts.len()
    }

    /// What the verdicts are worth.
    fn worth(&self) -> String {
        let Basis { windows, age, seconds } = self.basis;
        match age {
            Some(age) if windows >= WINDOWS_MIN => format!(
                "judged by {windows} windows of five minutes at most, the last {} min ago, and by a sample of {seconds} s for what hangs",
                age / 60
            ),
            Some(_) | None => format!(
                "judged by a sample of {seconds} s: that shows a drive that hangs, or is many times slower, and no more; \
                 a verdict takes an hour of windows in which drives are busy, so let the watch run"
            ),
        }
    }

    fn line(&self, at: usize) -> String {
        let verdict = &self.verdicts[at];
        let mut line = verdict.to_string();
        if let (State::CannotTell(Why::Idle), Some(short)) = (verdict.state, self.shorts[at]) {
            let (seconds, ended) = (self.basis.seconds, words::counted(short.ended, "command"));
            write!(line, "; in {seconds} s it ended {ended}").expect("a string");
            if let Some(ratio) = short.ratio {
                write!(line, ", at {ratio:.2} times the median of the others").expect("a string");
            }
        }
        line
    }
}

#[derive(Serialize)]
struct LookJson<'a> {
    worth: String,
    windows: usize,
    sample_seconds: i64,
    groups: Vec<GroupJson<'a>>,
    drives: Vec<SeenJson<'a>>,
    audits: Vec<AuditJson<'a>>,
    notes: &'a [String],
}

#[derive(Serialize)]
struct SeenJson<'a> {
    #[serde(flatten)]
    verdict: VerdictJson<'a>,
    sample_ended: Option<u64>,
    sample_ratio: Option<f64>,
}

impl Show for Look {
    fn text(&self) -> String {
        let mut text = String::new();
        for note in &self.notes {
            text += &format!("{note}\n");
        }
        text += &format!("{}\n", self.worth());
        for group in &self.groups {
            text += &format!("{}\n", group.text());
        }
        for at in 0..self.verdicts.len() {
            text += &format!("{}\n", self.line(at));
        }
        for audit in &self.audits {
            text += &format!("{audit}\n");
        }
        text
    }

    fn json(&self) -> String {
        let seen = |(verdict, short): (_, &Option<Short>)| SeenJson {
            verdict: verdict_json(verdict, None),
            sample_ended: short.map(|it| it.ended),
            sample_ratio: short.and_then(|it| it.ratio).filter(|it| it.is_finite()),
        };
        json::pretty(&LookJson {
            worth: self.worth(),
            windows: self.basis.windows,
            sample_seconds: self.basis.seconds,
            groups: self.groups.iter().map(GroupLine::json).collect(),
            drives: self.verdicts.iter().zip(&self.shorts).map(seen).collect(),
            audits: self.audits.iter().map(DriveAudit::json).collect(),
            notes: &self.notes,
        })
        .expect("these are plain values")
    }
}
