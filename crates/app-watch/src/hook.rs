//! What the program of `--on-event` is given of a watch's event.

use std::time::{Duration, SystemTime};

use levelhead_app::on_event::{Facts, Severity, Source};
use levelhead_app::utc;
use levelhead_fleet::watch::{Event, State};

/// How much it matters that a drive is found to be something else.
pub(super) fn severity(event: &Event) -> Severity {
    match (event.before, event.now.state) {
        (_, State::Slow | State::Hung) => Severity::Degraded,
        (State::Suspect | State::Slow | State::Hung | State::HostWide, State::Fine) => {
            Severity::Recovered
        }
        (State::Fine | State::CannotTell(_), State::Fine)
        | (_, State::Suspect | State::HostWide | State::CannotTell(_)) => Severity::Info,
    }
}

/// When it was.
pub(super) fn time(event: &Event) -> String {
    utc(SystemTime::UNIX_EPOCH + Duration::from_secs(event.at.max(0).unsigned_abs()))
}

/// See the module; `json` is the event as the watch prints it.
pub(super) fn facts(event: &Event, json: String) -> Facts {
    let verdict = &event.now;
    let ratio = verdict.comparison.map(|it| format!("{:.3}", it.ratio));
    Facts {
        event: verdict.state.name().to_owned(),
        severity: severity(event),
        at: time(event),
        sentence: verdict.to_string(),
        source: Source::Group(verdict.group.clone()),
        drive: Some(verdict.key.clone()),
        more: vec![
            ("LEVELHEAD_DEVICE", verdict.device.clone()),
            ("LEVELHEAD_STATE", verdict.state.name().to_owned()),
            ("LEVELHEAD_BEFORE", event.before.name().to_owned()),
            ("LEVELHEAD_RATIO", ratio.unwrap_or_default()),
            ("LEVELHEAD_TEXT", verdict.to_string()),
        ],
        json,
    }
}
