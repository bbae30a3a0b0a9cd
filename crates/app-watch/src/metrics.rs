//! What a watch knows, as metrics: absent rather than stale.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use levelhead_fleet::smart::{Erc, Limit};
use levelhead_fleet::watch::{DriveVerdict, State, Tail};
use levelhead_metrics::{Family, Kind, Value};

use super::DriveAudit;

/// What a scrape goes by.
#[derive(Clone, Default)]
pub(super) struct Shown {
    /// When the last sample was taken.
    pub(super) at: Option<Instant>,
    pub(super) samples: u64,
    pub(super) verdicts: Arc<[DriveVerdict]>,
    pub(super) tails: Arc<[Tail]>,
    pub(super) audits: Arc<[DriveAudit]>,
}

/// Labels of one drive, one value each.
type Labels = Vec<(&'static str, String)>;

/// All there are, those without a series too; `age` is of the last sample.
pub(super) fn families(shown: &Shown, age: Option<Duration>) -> Vec<Family> {
    let mut families = of_watch(shown, age);
    families.extend(of_verdicts(&shown.verdicts));
    families.push(of_tails(shown));
    families.extend(of_audits(&shown.audits));
    families
}

fn gauge(name: &str, help: &str) -> Family {
    Family::new(name, Kind::Gauge, help)
}

fn of_watch(shown: &Shown, age: Option<Duration>) -> Vec<Family> {
    let mut sample_age =
        gauge("levelhead_watch_sample_age_seconds", "Time since the last sample was taken.");
    if let Some(age) = age {
        sample_age.push(Vec::new(), Value::Real(age.as_secs_f64()));
    }
    let samples = Family::new("levelhead_watch_samples", Kind::Counter, "Samples taken.");
    vec![sample_age, samples.with(Vec::new(), Value::Whole(shown.samples))]
}

fn of_verdicts(verdicts: &[DriveVerdict]) -> [Family; 5] {
    let mut info = Family::new(
        "levelhead_drive_group",
        Kind::Info,
        "Groups of drives that are compared with each other.",
    );
    let mut ratio = gauge(
        "levelhead_drive_slowdown_ratio",
        "Recent latency of a drive over the median of its peers; absent without recent data.",
    );
    let mut state = Family::new("levelhead_drive_state", Kind::StateSet, "Verdict on a drive.");
    let mut slow = Family::new(
        "levelhead_drive_slow_seconds",
        Kind::Counter,
        "How long a drive has been slow or has hung.",
    );
    let mut age = gauge(
        "levelhead_drive_window_age_seconds",
        "Time since the last five minutes in which a drive was busy enough to be compared.",
    );
    let mut seen = BTreeSet::new();
    for verdict in verdicts {
        let DriveVerdict { group, device, .. } = verdict;
        // Two drives of one name: one of them is there no more, and a series can be shown once.
        if !seen.insert((group, device)) {
            continue;
        }
        let labels = || vec![("group", group.clone()), ("device", device.clone())];
        let mut identity = labels();
        identity.push(("drive", verdict.key.clone()));
        info.push(identity, Value::Labels);
        state.push(labels(), Value::OneOf { states: State::NAMES, is: verdict.state.name() });
        slow.push(labels(), Value::Whole(verdict.slow_seconds));
        if let Some(seconds) = verdict.age.and_then(|it| u64::try_from(it).ok()) {
            age.push(labels(), Value::Whole(seconds));
        }
        let is_told = match verdict.state {
            State::Fine | State::Suspect | State::Slow | State::HostWide => true,
            State::Hung | State::CannotTell(_) => false,
        };
        if let Some(comparison) = verdict.comparison.filter(|_| is_told && verdict.is_recent()) {
            ratio.push(labels(), Value::Real(comparison.ratio));
        }
    }
    [info, ratio, state, slow, age]
}

fn of_tails(shown: &Shown) -> Family {
    let mut tail = gauge(
        "levelhead_group_tail_ratio",
        "Latency of the k-th slowest drive of a group over the median of its model, in the last window.",
    );
    for of in &*shown.tails {
        for (at, ratio) in of.ratios.iter().enumerate() {
            let labels = vec![("group", of.group.clone()), ("k", (at + 1).to_string())];
            tail.push(labels, Value::Real(*ratio));
        }
    }
    tail
}

fn of_audits(audits: &[DriveAudit]) -> [Family; 3] {
    let mut limit = gauge(
        "levelhead_drive_erc_seconds",
        "How long a drive tries to read or write a sector, where a limit is set.",
    );
    let mut timer = gauge(
        "levelhead_drive_command_timeout_seconds",
        "Time after which the kernel aborts a command.",
    );
    let mut findings = gauge(
        "levelhead_drive_audit_findings",
        "Findings about a drive's error recovery that do not suit its redundancy.",
    );
    let mut seen = BTreeSet::new();
    for audit in audits {
        if !seen.insert(audit.device()) {
            continue;
        }
        let labels = || vec![("device", audit.device().to_owned()), ("drive", audit.key.clone())];
        let of = |command: &str| -> Labels {
            [labels(), vec![("command", command.to_owned())]].concat()
        };
        if let Erc::Limits { read, write } = audit.audited.erc {
            for (command, is) in [("read", read), ("write", write)] {
                if let Limit::Tenths(tenths) = is {
                    limit.push(of(command), Value::Real(f64::from(tenths) / 10.0));
                }
            }
        }
        if let Some(seconds) = audit.audited.timer {
            timer.push(labels(), Value::Real(seconds));
        }
        findings.push(labels(), Value::Whole(audit.findings.len() as u64));
    }
    [limit, timer, findings]
}
