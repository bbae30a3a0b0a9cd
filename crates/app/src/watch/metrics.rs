//! What a watch knows, as metrics: absent rather than stale.

use levelhead_fleet::watch::{DriveVerdict, State};
use levelhead_metrics::{Family, Kind, Value};

use super::Audited;

/// What is shown at a scrape.
pub(super) struct Shown<'a> {
    pub(super) verdicts: &'a [DriveVerdict],
    pub(super) tails: &'a [(String, Vec<f64>)],
    pub(super) audited: &'a [Audited],
}

impl Shown<'_> {
    pub(super) fn families(&self) -> Vec<Family> {
        let mut info =
            Family::new("levelhead_drive_group", Kind::Info, "Which drives belong together.");
        let mut ratio = Family::new(
            "levelhead_drive_slowdown_ratio",
            Kind::Gauge,
            "A drive's latency over the median of its peers'.",
        );
        let mut state =
            Family::new("levelhead_drive_state", Kind::StateSet, "What a drive is found to be.");
        let mut slow = Family::new(
            "levelhead_drive_slow_seconds",
            Kind::Counter,
            "How long a drive has been slow or hung.",
        );
        for verdict in self.verdicts {
            let labels =
                || vec![("group", verdict.group.clone()), ("device", verdict.device.clone())];
            let mut identity = labels();
            identity.push(("drive", verdict.key.clone()));
            info.push(identity, Value::Labels);
            state.push(labels(), Value::OneOf { states: State::NAMES, is: verdict.state.name() });
            slow.push(labels(), Value::Whole(verdict.slow_seconds));
            let is_told = matches!(
                verdict.state,
                State::Fine | State::Suspect | State::Slow | State::HostWide
            );
            if let Some(comparison) = verdict.comparison.filter(|_| is_told) {
                ratio.push(labels(), Value::Real(comparison.ratio));
            }
        }
        let mut tail = Family::new(
            "levelhead_group_tail_ratio",
            Kind::Gauge,
            "Latency of the k-th slowest drive of a group over its median, in the last window.",
        );
        for (group, ratios) in self.tails {
            for (at, ratio) in ratios.iter().enumerate() {
                tail.push(
                    vec![("group", group.clone()), ("k", (at + 1).to_string())],
                    Value::Real(*ratio),
                );
            }
        }
        let mut limit = Family::new(
            "levelhead_drive_erc_seconds",
            Kind::Gauge,
            "How long a drive tries to read a sector, where a limit is set.",
        );
        let mut timer = Family::new(
            "levelhead_drive_command_timeout_seconds",
            Kind::Gauge,
            "After how long the kernel gives up a command.",
        );
        for drive in self.audited {
            let labels = || vec![("device", drive.device.clone())];
            if let Some(seconds) = drive.audited.erc.read_seconds() {
                limit.push(labels(), Value::Real(seconds));
            }
            if let Some(seconds) = drive.audited.timer {
                timer.push(labels(), Value::Real(seconds));
            }
        }
        vec![info, ratio, state, slow, tail, limit, timer]
    }
}
