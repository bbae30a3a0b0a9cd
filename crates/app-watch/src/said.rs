//! What a watch says as it runs: a line each, or a JSON object a line.

use std::path::PathBuf;
use std::time::Duration;

use levelhead_fleet::watch::{DriveVerdict, Event, State};
use levelhead_host::words;
use serde::Serialize;

use super::{DriveAudit, hook};
use levelhead_app::Show;

/// One thing that is said.
#[derive(Clone, Debug, PartialEq)]
pub enum Said {
    /// It watches.
    Begun(Begun),
    /// A group is there, is another one than before, or is gone.
    Group(GroupLine),
    /// A drive is found to be something else.
    Event(Event),
    /// Findings about a drive's error recovery are others than before.
    Audit(DriveAudit),
    /// A sentence about the watch itself.
    Note(String),
}

/// How it watches.
#[derive(Clone, Debug, PartialEq)]
pub struct Begun {
    /// Where the state is kept.
    pub state: PathBuf,
    /// Where metrics are to be had.
    pub metrics: Option<String>,
    /// Between two samples.
    pub every: Duration,
}

/// A group of drives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupLine {
    /// Its name.
    pub name: String,
    /// What binds its drives.
    pub kind: &'static str,
    /// Whether others hold what one of them holds.
    pub is_redundant: bool,
    /// The kernel's names of its drives.
    pub devices: Vec<String>,
    /// Whether it is there no more.
    pub is_gone: bool,
}

#[derive(Serialize)]
struct BegunJson<'a> {
    kind: &'static str,
    state: String,
    every_seconds: f64,
    metrics: Option<&'a str>,
}

/// See `docs/watch.md`.
#[derive(Serialize)]
pub(super) struct GroupJson<'a> {
    kind: &'static str,
    group: &'a str,
    of: &'static str,
    redundant: bool,
    devices: &'a [String],
    gone: bool,
}

/// See `docs/watch.md`.
#[derive(Serialize)]
pub(super) struct VerdictJson<'a> {
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    event: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    severity: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<i64>,
    group: &'a str,
    drive: &'a str,
    device: &'a str,
    state: &'static str,
    why: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<&'static str>,
    ratio: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
    decided_at: Option<i64>,
    busy_hours: f64,
    peers: usize,
    load_ratio: Option<f64>,
    slow_seconds: u64,
    window_age_seconds: Option<i64>,
}

#[derive(Serialize)]
struct NoteJson<'a> {
    kind: &'static str,
    text: &'a str,
}

impl GroupLine {
    pub(super) fn json(&self) -> GroupJson<'_> {
        let Self { name, kind, is_redundant, devices, is_gone } = self;
        GroupJson {
            kind: "group",
            group: name,
            of: kind,
            redundant: *is_redundant,
            devices,
            gone: *is_gone,
        }
    }

    pub(super) fn text(&self) -> String {
        let Self { name, kind, is_redundant, devices, is_gone } = self;
        let redundancy = if *is_redundant { "redundant" } else { "no redundancy" };
        let gone = if *is_gone { " is gone" } else { "" };
        let count = words::counted(devices.len(), "drive");
        format!("{name}{gone}: {kind}, {redundancy}, {count}: {}", devices.join(" "))
    }
}

/// A verdict as JSON; `event` is what has made it.
pub(super) fn verdict_json<'a>(
    verdict: &'a DriveVerdict,
    event: Option<&Event>,
) -> VerdictJson<'a> {
    let finite = |value: f64| value.is_finite().then_some(value);
    let compared = verdict.comparison;
    let why = match verdict.state {
        State::CannotTell(why) => Some(why.text()),
        State::Fine | State::Suspect | State::Slow | State::Hung | State::HostWide => None,
    };
    VerdictJson {
        kind: "verdict",
        event: event.map(|it| it.now.state.name()),
        severity: event.map(|it| hook::severity(it).name()),
        time: event.map(hook::time),
        at: event.map(|it| it.at),
        group: &verdict.group,
        drive: &verdict.key,
        device: &verdict.device,
        state: verdict.state.name(),
        why,
        before: event.map(|it| it.before.name()),
        ratio: compared.and_then(|it| finite(it.ratio)),
        low: compared.and_then(|it| finite(it.low)),
        high: compared.and_then(|it| finite(it.high)),
        decided_at: compared.and_then(|it| it.decided_at),
        busy_hours: verdict.busy_hours,
        peers: verdict.peers,
        load_ratio: verdict.load_ratio.and_then(finite),
        slow_seconds: verdict.slow_seconds,
        window_age_seconds: verdict.age,
    }
}

impl Show for Said {
    fn text(&self) -> String {
        match self {
            Self::Begun(Begun { state, metrics, every }) => {
                let state = state.display();
                let every = every.as_secs_f64();
                let begun = format!("watching, a sample every {every} s; state in {state}");
                metrics.as_ref().map_or(begun.clone(), |it| format!("{begun}; metrics at {it}"))
            }
            Self::Group(group) => group.text(),
            Self::Event(event) if !event.is_of_verdict() => event.now.to_string(),
            Self::Event(event) => {
                format!("{} (it was {})", event.now, event.before.name())
            }
            Self::Audit(audit) if audit.findings.is_empty() => {
                format!("{audit}\n  {}: nothing to find any more", audit.device())
            }
            Self::Audit(audit) => audit.to_string(),
            Self::Note(sentence) => sentence.clone(),
        }
    }

    fn json(&self) -> String {
        let json = match self {
            Self::Begun(Begun { state, metrics, every }) => serde_json::to_string(&BegunJson {
                kind: "watching",
                state: state.display().to_string(),
                every_seconds: every.as_secs_f64(),
                metrics: metrics.as_deref(),
            }),
            Self::Group(group) => serde_json::to_string(&group.json()),
            Self::Event(event) => serde_json::to_string(&verdict_json(&event.now, Some(event))),
            Self::Audit(audit) => serde_json::to_string(&audit.json()),
            Self::Note(text) => serde_json::to_string(&NoteJson { kind: "note", text }),
        };
        json.expect("these are plain values")
    }
}
