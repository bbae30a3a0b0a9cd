//! An event as JSON, as a sentence, and how much it matters: the one place that knows all three.
//!
//! The fields are described for users in `docs/control.md`. A client makes the sentence from the fields, so it
//! needs nothing else of an array than what a program gets.

use levelhead_array::detect::Figures;
use levelhead_array::membership::Why;
use levelhead_array::superblock::Forced;
use levelhead_array::{
    ArrayEvent, CopyEnd, CopyProgress, Ending, Event, EventKind, Fault, RebuildProgress, ScrubFound,
};
use levelhead_host::NumberedEvent;
use levelhead_units::{DriveIdx, DriveSet, Nanos};
use serde::{Deserialize, Serialize};

use super::scrub_json::ScrubJson;

/// How much an event matters, as a system's log has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Priority {
    /// Data cannot be had, or may not be safe.
    Error,
    /// Something is not as it should be: a drive is lost, slow, or sits out.
    Warning,
    /// All is well, and worth a look.
    Notice,
    /// All is well.
    Info,
}

impl From<Event> for Priority {
    fn from(event: Event) -> Self {
        match event {
            Event::Standing(event) => match event.kind {
                EventKind::Slow
                | EventKind::SatOut
                | EventKind::SatOutByHand
                | EventKind::Silent => Self::Warning,
                EventKind::Heard | EventKind::AdmittedInNeed => Self::Notice,
                EventKind::Admitted | EventKind::AdmittedByHand => Self::Info,
            },
            Event::Lost { .. } => Self::Warning,
            Event::Array(event) => match event {
                ArrayEvent::Failed { .. }
                | ArrayEvent::Damaged { .. }
                | ArrayEvent::DamagedRead { .. }
                | ArrayEvent::Unrecovered { .. }
                | ArrayEvent::Unlocated { .. }
                | ArrayEvent::Repaired { is_repaired: false, .. }
                | ArrayEvent::WriteMended { is_mended: false, .. }
                | ArrayEvent::RecordLost { is_kept: true, .. }
                | ArrayEvent::Stopped(Ending::Failed | Ending::Unsafe { .. }) => Self::Error,
                ArrayEvent::ResyncStuck(_)
                | ArrayEvent::WriteFlawed { .. }
                | ArrayEvent::RecordLost { is_kept: false, .. }
                | ArrayEvent::RebuildStopped(_)
                | ArrayEvent::CopyStopped {
                    why: CopyEnd::Failed | CopyEnd::Silent | CopyEnd::TooSlow | CopyEnd::ArrayFailed,
                    ..
                }
                | ArrayEvent::ReadErrors { .. }
                | ArrayEvent::Repaired { fault: Fault::Wrong, is_repaired: true, .. } => {
                    Self::Warning
                }
                ArrayEvent::RebuildBegun(_)
                | ArrayEvent::RebuildDone { .. }
                | ArrayEvent::WriteMended { is_mended: true, .. }
                | ArrayEvent::CopyBegun(_)
                | ArrayEvent::CopyDone(_)
                | ArrayEvent::CopyStopped { why: CopyEnd::Ending, .. }
                | ArrayEvent::Repaired { fault: Fault::Unreadable, is_repaired: true, .. } => {
                    Self::Notice
                }
                ArrayEvent::ScrubDone(done) if done.found != ScrubFound::default() => Self::Warning,
                ArrayEvent::Assembled { absent, forced, unsynced } => {
                    match (absent.is_empty(), forced, unsynced) {
                        (true, Forced::No, 0) => Self::Info,
                        (true, Forced::No, _) => Self::Notice,
                        (false, _, _) | (_, Forced::Yes, _) => Self::Warning,
                    }
                }
                ArrayEvent::ResyncBegun(_)
                | ArrayEvent::ResyncDone
                | ArrayEvent::ScrubBegun(_)
                | ArrayEvent::ScrubStopped(_)
                | ArrayEvent::ScrubDone(_)
                | ArrayEvent::Stopped(Ending::Clean) => Self::Info,
            },
        }
    }
}

/// The names of all events.
pub(crate) const EVENTS: [&str; 39] = [
    "silent",
    "heard",
    "slow",
    "sat-out",
    "sat-out-by-hand",
    "admitted",
    "admitted-by-hand",
    "admitted-in-need",
    "lost",
    "damaged",
    "damaged-read",
    "repaired",
    "unrepaired",
    "unlocated",
    "write-lost",
    "write-torn",
    "write-unreadable",
    "write-mended",
    "write-not-mended",
    "record-lost",
    "read-errors",
    "scrub-begun",
    "scrub-stopped",
    "scrub-done",
    "array-failed",
    "assembled",
    "resync-begun",
    "resync-stuck",
    "resync-done",
    "unrecovered",
    "rebuild-begun",
    "rebuild-stopped",
    "rebuild-done",
    "copy-begun",
    "copy-done",
    "copy-stopped",
    "stopped",
    "stopped-failed",
    "stopped-unsafe",
];

/// Something that happened, with the facts behind it.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct EventJson {
    /// 1 for the first since the array was started.
    pub(crate) number: u64,
    pub(crate) event: String,
    /// Since the array was started.
    pub(crate) at_seconds: f64,
    #[serde(flatten)]
    pub(crate) facts: Facts,
}

/// The fields that differ from event to event. A kind is known by the fields that it alone has.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(untagged)]
pub(crate) enum Facts {
    Standing { drive: u8, median_ms: f64, cohort_median_ms: f64, cohort_mad_ms: f64, samples: u32 },
    Lost { drive: u8, why: String, member: Option<String>, reason: Option<String> },
    Repaired { drive: u8, first_sector: u64, sectors: u64, fault: String },
    Checked { drive: u8, first_sector: u64, sectors: u64, promise: String },
    Damaged { drive: u8, first_sector: u64, sectors: u64 },
    Unlocated { stripe: u64, first_sector: u64 },
    ReadErrors { drive: u8, errors: u32, kept: bool },
    RecordLost { drive: u8, kept: bool },
    Scrub(ScrubJson),
    Failed { lost: Vec<u8>, survives: usize },
    Assembled { absent: Vec<u8>, forced: bool, unsynced_stripes: u64 },
    Resync { synced_stripes: u64, stripes: u64 },
    Rebuild { drive: u8, done_stripes: u64, stripes: u64, missed_regions: Option<u64> },
    Copy { drive: u8, left_regions: u64, regions: u64 },
    CopyStopped { drive: u8, because: String, member: Option<String>, reason: Option<String> },
    Rebuilt { drive: u8 },
    Silent { silent: Vec<u8> },
    Unrecovered { first_sector: u64, sectors: u64 },
    None {},
}

impl From<&NumberedEvent> for EventJson {
    fn from(told: &NumberedEvent) -> Self {
        Self {
            number: told.number,
            event: told.event.name().to_owned(),
            at_seconds: thousandths(told.at.as_nanos() as f64 / 1e9),
            facts: Facts::from(told),
        }
    }
}

impl From<&NumberedEvent> for Facts {
    fn from(told: &NumberedEvent) -> Self {
        match told.event {
            Event::Standing(event) => {
                let Figures { median, cohort_median, cohort_mad, samples } = event.figures;
                Self::Standing {
                    drive: number(event.drive),
                    median_ms: millis(median),
                    cohort_median_ms: millis(cohort_median),
                    cohort_mad_ms: millis(cohort_mad),
                    samples,
                }
            }
            Event::Lost { drive, why } => {
                let why = match why {
                    Why::Failed => "failed",
                    Why::Silent => "silent",
                    Why::ByHand => "by-hand",
                };
                let known = told.lost.clone().unwrap_or_default();
                let (member, reason) = (known.name, known.reason);
                Self::Lost { drive: number(drive), why: why.to_owned(), member, reason }
            }
            Event::Array(
                ArrayEvent::Damaged { drive, extent } | ArrayEvent::DamagedRead { drive, extent },
            ) => Self::Damaged {
                drive: number(drive),
                first_sector: extent.lba.get(),
                sectors: extent.sectors.get(),
            },
            Event::Array(ArrayEvent::Repaired { drive, extent, fault, is_repaired: _ }) => {
                Self::Repaired {
                    drive: number(drive),
                    first_sector: extent.lba.get(),
                    sectors: extent.sectors.get(),
                    fault: match fault {
                        Fault::Unreadable => "unreadable",
                        Fault::Wrong => "wrong",
                    }
                    .to_owned(),
                }
            }
            Event::Array(
                ArrayEvent::WriteFlawed { drive, extent, promise, flaw: _ }
                | ArrayEvent::WriteMended { drive, extent, promise, is_mended: _ },
            ) => Self::Checked {
                drive: number(drive),
                first_sector: extent.lba.get(),
                sectors: extent.sectors.get(),
                promise: promise.name().to_owned(),
            },
            Event::Array(ArrayEvent::Unlocated { stripe, first_sector }) => {
                Self::Unlocated { stripe, first_sector }
            }
            Event::Array(ArrayEvent::RecordLost { drive, is_kept }) => {
                Self::RecordLost { drive: number(drive), kept: is_kept }
            }
            Event::Array(ArrayEvent::ReadErrors { drive, errors, is_kept }) => {
                Self::ReadErrors { drive: number(drive), errors, kept: is_kept }
            }
            Event::Array(
                ArrayEvent::ScrubBegun(now)
                | ArrayEvent::ScrubStopped(now)
                | ArrayEvent::ScrubDone(now),
            ) => Self::Scrub(ScrubJson::from(now)),
            Event::Array(ArrayEvent::Failed { lost, survives }) => {
                Self::Failed { lost: numbers(lost), survives }
            }
            Event::Array(ArrayEvent::Assembled { absent, forced, unsynced }) => Self::Assembled {
                absent: numbers(absent),
                forced: forced == Forced::Yes,
                unsynced_stripes: unsynced,
            },
            Event::Array(ArrayEvent::ResyncBegun(now) | ArrayEvent::ResyncStuck(now)) => {
                Self::Resync { synced_stripes: now.synced, stripes: now.stripes }
            }
            Event::Array(ArrayEvent::Unrecovered { extent }) => {
                let (first_sector, sectors) = (extent.lba.get(), extent.sectors.get());
                Self::Unrecovered { first_sector, sectors }
            }
            Event::Array(ArrayEvent::RebuildBegun(now) | ArrayEvent::RebuildStopped(now)) => {
                let RebuildProgress { drive, front, stripes, regions, .. } = now;
                let (drive, done_stripes) = (number(drive), front);
                Self::Rebuild { drive, done_stripes, stripes, missed_regions: regions }
            }
            Event::Array(ArrayEvent::RebuildDone { drive }) => {
                Self::Rebuilt { drive: number(drive) }
            }
            Event::Array(ArrayEvent::CopyBegun(now) | ArrayEvent::CopyDone(now)) => {
                let CopyProgress { drive, left, regions } = now;
                Self::Copy { drive: number(drive), left_regions: left, regions }
            }
            Event::Array(ArrayEvent::CopyStopped { drive, why }) => {
                let why = match why {
                    CopyEnd::Failed => "failed",
                    CopyEnd::Silent => "silent",
                    CopyEnd::TooSlow => "too-slow",
                    CopyEnd::Ending => "ending",
                    CopyEnd::ArrayFailed => "array-failed",
                };
                let known = told.lost.clone().unwrap_or_default();
                let (member, reason) = (known.name, known.reason);
                Self::CopyStopped { drive: number(drive), because: why.to_owned(), member, reason }
            }
            Event::Array(ArrayEvent::Stopped(Ending::Unsafe { silent })) => {
                Self::Silent { silent: numbers(silent) }
            }
            Event::Array(
                ArrayEvent::ResyncDone | ArrayEvent::Stopped(Ending::Clean | Ending::Failed),
            ) => Self::None {},
        }
    }
}

impl EventJson {
    /// The same in a sentence.
    pub(crate) fn sentence(&self) -> String {
        let Self { event, at_seconds, .. } = self;
        match &self.facts {
            Facts::Standing { drive, .. } if event == "heard" => {
                format!("drive {drive} heard at {at_seconds:.1} s: it has ended a command again")
            }
            Facts::Standing { drive, .. } if event == "silent" => format!(
                "drive {drive} silent at {at_seconds:.1} s: it has had something to do for long and \
                 ended nothing"
            ),
            Facts::Standing { drive, samples: 0, .. } => {
                format!(
                    "drive {drive} {event} at {at_seconds:.1} s: it has ended no command lately"
                )
            }
            Facts::Standing { drive, median_ms, cohort_median_ms, cohort_mad_ms, samples } => {
                format!(
                    "drive {drive} {event} at {at_seconds:.1} s: its last {samples} commands took \
                 {median_ms:.1} ms (median), the drives' {cohort_median_ms:.1} ms (deviation \
                 {cohort_mad_ms:.1} ms)"
                )
            }
            Facts::Lost { drive, why, member, reason } => {
                let name = member.as_ref().map_or(String::new(), |member| format!(", {member},"));
                match (why.as_str(), reason) {
                    ("by-hand", _) => format!("drive {drive}{name} is lost: an operator wanted it"),
                    (_, Some(reason)) => format!("drive {drive}{name} has failed: {reason}"),
                    (_, None) => format!("drive {drive}{name} has failed"),
                }
            }
            Facts::Repaired { drive, first_sector, sectors, fault } => {
                let fault = match fault.as_str() {
                    "unreadable" => "could not be read",
                    _ => "held something else than what was written",
                };
                let end = if event == "repaired" {
                    "and are right again"
                } else {
                    "and still are not right"
                };
                format!("{sectors} sectors from {first_sector} on of drive {drive} {fault} {end}")
            }
            Facts::Checked { drive, first_sector, sectors, promise: _ } => {
                let what = match event.as_str() {
                    "write-lost" => "were written and do not hold that",
                    "write-torn" => "were written with others and do not hold that",
                    "write-unreadable" => "were written and cannot be read",
                    "write-mended" => "were not stored, were written again, and are right now",
                    _ => "were not stored, were written again, and still are not right",
                };
                format!("{sectors} sectors from {first_sector} on of drive {drive} {what}")
            }
            Facts::Unlocated { stripe, first_sector } => format!(
                "what the drives hold of stripe {stripe} at sector {first_sector} does not match, and it \
                 cannot be told which is wrong: nothing was changed"
            ),
            Facts::RecordLost { drive, kept: false } => format!(
                "drive {drive} does not store the array's records: the array does without it"
            ),
            Facts::RecordLost { drive, kept: true } => format!(
                "drive {drive} does not store the array's records, and the array cannot do without it"
            ),
            Facts::ReadErrors { drive, errors, kept: false } => {
                format!("drive {drive} has failed {errors} reads lately: the array does without it")
            }
            Facts::ReadErrors { drive, errors, kept: true } => format!(
                "drive {drive} has failed {errors} reads lately, and the array cannot do without it"
            ),
            Facts::Scrub(scrub) => scrub.sentence(),
            Facts::Damaged { drive, first_sector, sectors } if event == "damaged-read" => format!(
                "a client wanted what can be had no more: {sectors} sectors from {first_sector} on of \
                 drive {drive} are damaged until they are written"
            ),
            Facts::Damaged { drive, first_sector, sectors } => format!(
                "{sectors} sectors from {first_sector} on of drive {drive} are damaged: neither the \
                 drive nor redundancy gives them"
            ),
            Facts::Failed { lost, survives } => format!(
                "the array has failed: drives {} are lost, it survives the loss of {survives}",
                list(lost)
            ),
            Facts::Assembled { absent, forced, unsynced_stripes } => {
                let mut sentence = "the array is served".to_owned();
                match absent.as_slice() {
                    [] => sentence.push_str(" with all its drives"),
                    absent => sentence.push_str(&format!(" without drives {}", list(absent))),
                }
                if *forced {
                    sentence.push_str(", by force");
                }
                if *unsynced_stripes > 0 {
                    let left =
                        format!(", redundancy of {unsynced_stripes} stripes is not valid yet");
                    sentence.push_str(&left);
                }
                sentence
            }
            Facts::Resync { synced_stripes, stripes } if event == "resync-stuck" => format!(
                "redundancy cannot be made valid from stripe {synced_stripes} of {stripes} on: a \
                 drive is lost, or data there cannot be read"
            ),
            Facts::Resync { synced_stripes, stripes } => format!(
                "redundancy is being made valid from stripe {synced_stripes} of {stripes} on"
            ),
            Facts::Rebuild { drive, done_stripes, stripes, .. } if event == "rebuild-stopped" => {
                format!(
                    "drive {drive} is lost again: {done_stripes} of its {stripes} stripes were filled"
                )
            }
            Facts::Rebuild { drive, missed_regions: Some(left), .. } => {
                format!("drive {drive} is back, and is given the {left} regions that it has missed")
            }
            Facts::Rebuild { drive, done_stripes, stripes, missed_regions: None } => {
                format!("drive {drive} is being filled from stripe {done_stripes} of {stripes} on")
            }
            Facts::Copy { drive, left_regions, regions } if event == "copy-done" => format!(
                "a new drive {drive} has the place of the one that it was given a copy of: {left_regions} of \
                 {regions} regions are given to it yet"
            ),
            Facts::Copy { drive, regions, .. } => {
                format!("a new drive is given a copy of drive {drive}, {regions} regions")
            }
            Facts::CopyStopped { drive, because, member, reason } => {
                let why = match because.as_str() {
                    "failed" => "it did not store what it was given",
                    "silent" => "it has ended nothing for too long",
                    "too-slow" => "clients write faster than it takes that",
                    "ending" => "the array is ending",
                    _ => "more drives are lost than the array survives",
                };
                let name = member.as_ref().map_or(String::new(), |member| format!(", {member},"));
                let reason = reason.as_ref().map_or(String::new(), |reason| format!(": {reason}"));
                format!(
                    "the new drive{name} that was given a copy of drive {drive} does not get the place: \
                     {why}{reason}"
                )
            }
            Facts::Rebuilt { drive } => format!("drive {drive} is filled, and counts again"),
            Facts::Silent { silent } => format!(
                "the array was not stopped in good order: drives {} do not answer",
                list(silent)
            ),
            Facts::Unrecovered { first_sector, sectors } => format!(
                "{sectors} sectors from sector {first_sector} on may hold something older than was \
                 written last before the crash: the journal could not give it"
            ),
            Facts::None {} => match event.as_str() {
                "resync-done" => "all redundancy is valid".to_owned(),
                "stopped" => "the array was stopped in good order".to_owned(),
                "stopped-failed" => {
                    "the array has ended: more drives are lost than it survives".to_owned()
                }
                // An array of a later version may tell more than is known here.
                other => other.to_owned(),
            },
        }
    }
}

fn number(drive: DriveIdx) -> u8 {
    drive.as_usize() as u8
}

fn numbers(drives: DriveSet) -> Vec<u8> {
    drives.iter().map(number).collect()
}

fn list(drives: &[u8]) -> String {
    drives.iter().map(u8::to_string).collect::<Vec<_>>().join(",")
}

/// Rounded to what people may want to know: then a number reads back as it was written.
fn thousandths(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

fn millis(time: Nanos) -> f64 {
    thousandths(time.as_millis_f64())
}

#[cfg(test)]
mod tests {
    use levelhead_array::{DriveEvent, Flaw, Promise, ResyncProgress, ScrubProgress, ScrubState};
    use levelhead_host::LostMember;
    use levelhead_units::{Extent, Instant, Lba, Sectors};
    use serde_json::{Value, json};

    use super::*;

    fn told(event: Event, lost: Option<LostMember>) -> NumberedEvent {
        NumberedEvent { number: 7, at: Instant::from_nanos(1_234_567_890), event, lost }
    }

    /// Every shape of an event, its priority, its own fields, and its sentence.
    fn all() -> Vec<(NumberedEvent, Priority, Value, &'static str)> {
        let drive = DriveIdx::new(2);
        let drives: DriveSet = [1, 2].map(DriveIdx::new).into_iter().collect();
        let figures = Figures {
            median: Nanos::from_micros(20_250),
            cohort_median: Nanos::from_millis(4),
            cohort_mad: Nanos::from_micros(500),
            samples: 32,
        };
        let standing =
            |kind, figures| Event::Standing(DriveEvent { at: Instant::ZERO, drive, kind, figures });
        let lost = |why, reason: Option<&str>| {
            let (name, reason) = (Some("d2.img".to_owned()), reason.map(str::to_owned));
            told(Event::Lost { drive, why }, Some(LostMember { name, reason }))
        };
        let stopped = |why, reason: Option<&str>| {
            let (name, reason) = (Some("d2.img".to_owned()), reason.map(str::to_owned));
            let event = Event::Array(ArrayEvent::CopyStopped { drive, why });
            told(event, Some(LostMember { name, reason }))
        };
        let array = |event| told(Event::Array(event), None);
        let progress = ResyncProgress { synced: 10, stripes: 30 };
        let rebuild = RebuildProgress { drive, front: 10, mark: 5, stripes: 30, regions: None };
        let assembled =
            |absent, forced, unsynced| array(ArrayEvent::Assembled { absent, forced, unsynced });
        let none = DriveSet::EMPTY;
        let found = ScrubFound { unreadable: 1, wrong: 2, unrepaired: 3, unlocated: 4 };
        let scrub = ScrubProgress { state: ScrubState::Done, to: 30, stripes: 30, found };
        let extent = Extent::new(Lba::new(1_000), Sectors::new(3));
        use Priority::{Error, Info, Notice, Warning};
        vec![
            (
                told(standing(EventKind::SatOut, figures), None),
                Warning,
                json!({ "drive": 2, "median_ms": 20.25, "cohort_median_ms": 4.0,
                        "cohort_mad_ms": 0.5, "samples": 32 }),
                "drive 2 sat-out at 1.2 s: its last 32 commands took 20.2 ms (median), the drives' \
                 4.0 ms (deviation 0.5 ms)",
            ),
            (
                told(standing(EventKind::Heard, Figures::default()), None),
                Notice,
                json!({ "drive": 2, "median_ms": 0.0, "cohort_median_ms": 0.0,
                        "cohort_mad_ms": 0.0, "samples": 0 }),
                "drive 2 heard at 1.2 s: it has ended a command again",
            ),
            (
                told(standing(EventKind::Heard, figures), None),
                Notice,
                json!({ "drive": 2, "median_ms": 20.25, "cohort_median_ms": 4.0,
                        "cohort_mad_ms": 0.5, "samples": 32 }),
                "drive 2 heard at 1.2 s: it has ended a command again",
            ),
            (
                told(standing(EventKind::Silent, figures), None),
                Warning,
                json!({ "drive": 2, "median_ms": 20.25, "cohort_median_ms": 4.0,
                        "cohort_mad_ms": 0.5, "samples": 32 }),
                "drive 2 silent at 1.2 s: it has had something to do for long and ended nothing",
            ),
            (
                lost(Why::Failed, Some("no room")),
                Warning,
                json!({ "drive": 2, "why": "failed", "member": "d2.img", "reason": "no room" }),
                "drive 2, d2.img, has failed: no room",
            ),
            (
                lost(Why::Silent, Some("it says nothing")),
                Warning,
                json!({ "drive": 2, "why": "silent", "member": "d2.img",
                        "reason": "it says nothing" }),
                "drive 2, d2.img, has failed: it says nothing",
            ),
            (
                lost(Why::ByHand, None),
                Warning,
                json!({ "drive": 2, "why": "by-hand", "member": "d2.img", "reason": null }),
                "drive 2, d2.img, is lost: an operator wanted it",
            ),
            (
                array(ArrayEvent::Damaged { drive, extent }),
                Error,
                json!({ "drive": 2, "first_sector": 1000, "sectors": 3 }),
                "3 sectors from 1000 on of drive 2 are damaged: neither the drive nor redundancy \
                 gives them",
            ),
            (
                array(ArrayEvent::DamagedRead { drive, extent }),
                Error,
                json!({ "drive": 2, "first_sector": 1000, "sectors": 3 }),
                "a client wanted what can be had no more: 3 sectors from 1000 on of drive 2 are \
                 damaged until they are written",
            ),
            (
                array(ArrayEvent::Repaired {
                    drive,
                    extent,
                    fault: Fault::Unreadable,
                    is_repaired: true,
                }),
                Notice,
                json!({ "drive": 2, "first_sector": 1000, "sectors": 3, "fault": "unreadable" }),
                "3 sectors from 1000 on of drive 2 could not be read and are right again",
            ),
            (
                array(ArrayEvent::Repaired {
                    drive,
                    extent,
                    fault: Fault::Wrong,
                    is_repaired: false,
                }),
                Error,
                json!({ "drive": 2, "first_sector": 1000, "sectors": 3, "fault": "wrong" }),
                "3 sectors from 1000 on of drive 2 held something else than what was written and \
                 still are not right",
            ),
            (
                array(ArrayEvent::WriteFlawed {
                    drive,
                    extent,
                    flaw: Flaw::Lost,
                    promise: Promise::Medium,
                }),
                Warning,
                json!({ "drive": 2, "first_sector": 1000, "sectors": 3, "promise": "medium" }),
                "3 sectors from 1000 on of drive 2 were written and do not hold that",
            ),
            (
                array(ArrayEvent::WriteMended {
                    drive,
                    extent,
                    promise: Promise::Interface,
                    is_mended: true,
                }),
                Notice,
                json!({ "drive": 2, "first_sector": 1000, "sectors": 3, "promise": "interface" }),
                "3 sectors from 1000 on of drive 2 were not stored, were written again, and are right now",
            ),
            (
                array(ArrayEvent::Unlocated { stripe: 7, first_sector: 112 }),
                Error,
                json!({ "stripe": 7, "first_sector": 112 }),
                "what the drives hold of stripe 7 at sector 112 does not match, and it cannot be told \
                 which is wrong: nothing was changed",
            ),
            (
                array(ArrayEvent::RecordLost { drive, is_kept: true }),
                Error,
                json!({ "drive": 2, "kept": true }),
                "drive 2 does not store the array's records, and the array cannot do without it",
            ),
            (
                array(ArrayEvent::ReadErrors { drive, errors: 33, is_kept: false }),
                Warning,
                json!({ "drive": 2, "errors": 33, "kept": false }),
                "drive 2 has failed 33 reads lately: the array does without it",
            ),
            (
                array(ArrayEvent::ReadErrors { drive, errors: 33, is_kept: true }),
                Warning,
                json!({ "drive": 2, "errors": 33, "kept": true }),
                "drive 2 has failed 33 reads lately, and the array cannot do without it",
            ),
            (
                array(ArrayEvent::ScrubDone(scrub)),
                Warning,
                json!({ "state": "done", "scrubbed_stripes": 30, "stripes": 30, "unreadable": 1,
                        "wrong": 2, "unrepaired": 3, "unlocated": 4 }),
                "scrub: done, 30 of 30 stripes; repaired 1 sectors that could not be read and 2 that \
                 were wrong, 3 could not be repaired; 4 codewords do not match and cannot be told apart",
            ),
            (
                array(ArrayEvent::ScrubBegun(ScrubProgress {
                    state: ScrubState::Running,
                    to: 0,
                    found: ScrubFound::default(),
                    ..scrub
                })),
                Info,
                json!({ "state": "running", "scrubbed_stripes": 0, "stripes": 30, "unreadable": 0,
                        "wrong": 0, "unrepaired": 0, "unlocated": 0 }),
                "scrub: running, 0 of 30 stripes; nothing was wrong",
            ),
            (
                array(ArrayEvent::Failed { lost: drives, survives: 1 }),
                Error,
                json!({ "lost": [1, 2], "survives": 1 }),
                "the array has failed: drives 1,2 are lost, it survives the loss of 1",
            ),
            (
                assembled(none, Forced::No, 0),
                Info,
                json!({ "absent": [], "forced": false, "unsynced_stripes": 0 }),
                "the array is served with all its drives",
            ),
            (
                assembled(none, Forced::No, 9),
                Notice,
                json!({ "absent": [], "forced": false, "unsynced_stripes": 9 }),
                "the array is served with all its drives, redundancy of 9 stripes is not valid yet",
            ),
            (
                assembled(drives, Forced::Yes, 9),
                Warning,
                json!({ "absent": [1, 2], "forced": true, "unsynced_stripes": 9 }),
                "the array is served without drives 1,2, by force, redundancy of 9 stripes is not \
                 valid yet",
            ),
            (
                array(ArrayEvent::ResyncBegun(progress)),
                Info,
                json!({ "synced_stripes": 10, "stripes": 30 }),
                "redundancy is being made valid from stripe 10 of 30 on",
            ),
            (
                array(ArrayEvent::ResyncStuck(progress)),
                Warning,
                json!({ "synced_stripes": 10, "stripes": 30 }),
                "redundancy cannot be made valid from stripe 10 of 30 on: a drive is lost, or data \
                 there cannot be read",
            ),
            (array(ArrayEvent::ResyncDone), Info, json!({}), "all redundancy is valid"),
            (
                array(ArrayEvent::Unrecovered {
                    extent: Extent::new(Lba::new(8), Sectors::new(3)),
                }),
                Error,
                json!({ "first_sector": 8, "sectors": 3 }),
                "3 sectors from sector 8 on may hold something older than was written last before \
                 the crash: the journal could not give it",
            ),
            (
                array(ArrayEvent::RebuildBegun(rebuild)),
                Notice,
                json!({ "drive": 2, "done_stripes": 10, "stripes": 30, "missed_regions": null }),
                "drive 2 is being filled from stripe 10 of 30 on",
            ),
            (
                array(ArrayEvent::RebuildStopped(rebuild)),
                Warning,
                json!({ "drive": 2, "done_stripes": 10, "stripes": 30, "missed_regions": null }),
                "drive 2 is lost again: 10 of its 30 stripes were filled",
            ),
            (
                array(ArrayEvent::RebuildDone { drive }),
                Notice,
                json!({ "drive": 2 }),
                "drive 2 is filled, and counts again",
            ),
            (
                array(ArrayEvent::CopyBegun(CopyProgress { drive, left: 9, regions: 9 })),
                Notice,
                json!({ "drive": 2, "left_regions": 9, "regions": 9 }),
                "a new drive is given a copy of drive 2, 9 regions",
            ),
            (
                array(ArrayEvent::CopyDone(CopyProgress { drive, left: 1, regions: 9 })),
                Notice,
                json!({ "drive": 2, "left_regions": 1, "regions": 9 }),
                "a new drive 2 has the place of the one that it was given a copy of: 1 of 9 regions are given \
                 to it yet",
            ),
            (
                stopped(CopyEnd::Failed, Some("Input/output error")),
                Warning,
                json!({
                    "drive": 2, "because": "failed", "member": "d2.img", "reason": "Input/output error"
                }),
                "the new drive, d2.img, that was given a copy of drive 2 does not get the place: it did not \
                 store what it was given: Input/output error",
            ),
            (
                array(ArrayEvent::CopyStopped { drive, why: CopyEnd::TooSlow }),
                Warning,
                json!({ "drive": 2, "because": "too-slow", "member": null, "reason": null }),
                "the new drive that was given a copy of drive 2 does not get the place: clients write faster \
                 than it takes that",
            ),
            (
                array(ArrayEvent::CopyStopped { drive, why: CopyEnd::Ending }),
                Notice,
                json!({ "drive": 2, "because": "ending", "member": null, "reason": null }),
                "the new drive that was given a copy of drive 2 does not get the place: the array is ending",
            ),
            (
                array(ArrayEvent::Stopped(Ending::Clean)),
                Info,
                json!({}),
                "the array was stopped in good order",
            ),
            (
                array(ArrayEvent::Stopped(Ending::Failed)),
                Error,
                json!({}),
                "the array has ended: more drives are lost than it survives",
            ),
            (
                array(ArrayEvent::Stopped(Ending::Unsafe { silent: drives })),
                Error,
                json!({ "silent": [1, 2] }),
                "the array was not stopped in good order: drives 1,2 do not answer",
            ),
        ]
    }

    #[test]
    fn every_event_has_its_fields_its_sentence_and_its_priority() {
        for (told, priority, own, sentence) in all() {
            assert_eq!(Priority::from(told.event), priority, "{told:?}");
            let event = EventJson::from(&told);
            assert_eq!(event.sentence(), sentence);
            let mut expected =
                json!({ "number": 7, "event": told.event.name(), "at_seconds": 1.235 });
            expected.as_object_mut().unwrap().extend(own.as_object().unwrap().clone());
            assert_eq!(serde_json::to_value(&event).unwrap(), expected);
        }
    }

    #[test]
    fn names_of_all_events_are_known_and_on_the_page_for_users() {
        let page = include_str!("../../../../docs/control.md");
        let (_, rows) = page.split_once("| `event` | what happened |").unwrap();
        let named: Vec<&str> = rows
            .lines()
            .skip(2)
            .map_while(|row| row.strip_prefix('|')?.split('|').next())
            .flat_map(|cell| cell.split('`').skip(1).step_by(2))
            .collect();
        assert_eq!(named, EVENTS);
        assert!(all().iter().all(|(told, ..)| EVENTS.contains(&told.event.name())));
    }

    #[test]
    fn client_reads_each_event_as_the_array_wrote_it() {
        for (told, _, _, sentence) in all() {
            let line = serde_json::to_string(&EventJson::from(&told)).unwrap();
            let read: EventJson = serde_json::from_str(&line).unwrap();
            assert_eq!(read.sentence(), sentence);
            assert_eq!(serde_json::to_string(&read).unwrap(), line);
        }
        let later = r#"{"number": 1, "event": "moved", "at_seconds": 0.0, "where": "up"}"#;
        let read: EventJson = serde_json::from_str(later).unwrap();
        assert_eq!(read.sentence(), "moved", "an event that is not known here is at least named");
        let broken = r#"{"number": "one", "event": "stopped", "at_seconds": 0.0}"#;
        assert!(serde_json::from_str::<EventJson>(broken).is_err());
    }
}
