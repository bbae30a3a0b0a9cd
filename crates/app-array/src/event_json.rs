//! An event as JSON, as a sentence, and how much it matters: the one place that knows all three.
//!
//! The fields are described for users in `docs/control.md`. A client makes the sentence from the fields, so it
//! needs nothing else of an array than what a program gets.

use levelhead_array::detect::Figures;
use levelhead_array::membership::Why;
use levelhead_array::metadata::Forced;
use levelhead_array::{
    ArrayEvent, CopyEnd, CopyProgress, Ending, Event, EventKind, Fault, RebuildProgress, ScrubFound,
};
use levelhead_host::{NumberedEvent, words};
use levelhead_units::{DriveIdx, DriveSet, Nanos, escaped};
use serde::{Deserialize, Serialize};

use super::scrub_json::ScrubJson;
use levelhead_app::on_event::Severity;
use levelhead_app::utc;

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
                EventKind::Slow | EventKind::SatOut | EventKind::Silent => Self::Warning,
                EventKind::Heard
                | EventKind::Admitted
                | EventKind::AdmittedInNeed
                | EventKind::SatOutByHand => Self::Notice,
                EventKind::AdmittedByHand => Self::Info,
            },
            Event::Lost { why: Why::ByHand, .. } => Self::Notice,
            Event::Lost { why: Why::Failed | Why::Silent, .. } => Self::Warning,
            Event::Released { .. } => Self::Info,
            Event::Array(event) => match event {
                ArrayEvent::Failed { .. }
                | ArrayEvent::Fenced
                | ArrayEvent::Damaged { .. }
                | ArrayEvent::DamagedRead { .. }
                | ArrayEvent::Unrecovered { .. }
                | ArrayEvent::Unlocated { .. }
                | ArrayEvent::Repaired { is_repaired: false, .. }
                | ArrayEvent::WriteMended { is_mended: false, .. }
                | ArrayEvent::RecordLost { is_kept: true, .. }
                | ArrayEvent::Stopped(Ending::Failed | Ending::Unsafe { .. }) => Self::Error,
                ArrayEvent::ResyncStuck(_)
                | ArrayEvent::Corrupt { .. }
                | ArrayEvent::WriteFlawed { .. }
                | ArrayEvent::RecordLost { is_kept: false, .. }
                | ArrayEvent::WentBack { .. }
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
                ArrayEvent::ScrubDone(scrub) | ArrayEvent::ScrubStopped(scrub)
                    if scrub.found.unrepaired + scrub.found.unlocated > 0 =>
                {
                    Self::Error
                }
                ArrayEvent::ScrubDone(scrub) | ArrayEvent::ScrubStopped(scrub)
                    if scrub.found != ScrubFound::default() =>
                {
                    Self::Warning
                }
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

/// How much an event matters to those who are alerted: its priority, unless an operator asked for it and it went as asked.
pub(crate) fn severity(event: Event) -> Severity {
    match (Priority::from(event), is_asked_for(event)) {
        (Priority::Error, _) => Severity::Failed,
        (Priority::Warning, _) => Severity::Degraded,
        (Priority::Notice | Priority::Info, true) => Severity::Planned,
        (Priority::Notice, false) => Severity::Recovered,
        (Priority::Info, false) => Severity::Info,
    }
}

/// Whether it comes of what an operator asked for.
fn is_asked_for(event: Event) -> bool {
    match event {
        Event::Standing(event) => match event.kind {
            EventKind::SatOutByHand | EventKind::AdmittedByHand => true,
            EventKind::Slow
            | EventKind::SatOut
            | EventKind::Silent
            | EventKind::Heard
            | EventKind::Admitted
            | EventKind::AdmittedInNeed => false,
        },
        Event::Lost { why, .. } => why == Why::ByHand,
        Event::Released { .. } => true,
        Event::Array(event) => match event {
            ArrayEvent::RebuildBegun(RebuildProgress { is_copied, .. })
            | ArrayEvent::RebuildDone { is_copied, .. } => is_copied,
            ArrayEvent::Assembled { .. }
            | ArrayEvent::ScrubBegun(_)
            | ArrayEvent::ScrubStopped(_)
            | ArrayEvent::ScrubDone(_)
            | ArrayEvent::CopyBegun(_)
            | ArrayEvent::CopyDone(_)
            | ArrayEvent::CopyStopped { .. }
            | ArrayEvent::Stopped(_) => true,
            ArrayEvent::ResyncBegun(_)
            | ArrayEvent::ResyncStuck(_)
            | ArrayEvent::ResyncDone
            | ArrayEvent::Damaged { .. }
            | ArrayEvent::DamagedRead { .. }
            | ArrayEvent::Corrupt { .. }
            | ArrayEvent::Repaired { .. }
            | ArrayEvent::WriteFlawed { .. }
            | ArrayEvent::WriteMended { .. }
            | ArrayEvent::RecordLost { .. }
            | ArrayEvent::Fenced
            | ArrayEvent::WentBack { .. }
            | ArrayEvent::Unlocated { .. }
            | ArrayEvent::ReadErrors { .. }
            | ArrayEvent::RebuildStopped(_)
            | ArrayEvent::Failed { .. }
            | ArrayEvent::Unrecovered { .. } => false,
        },
    }
}

/// The names of all events.
pub(crate) const EVENTS: [&str; 43] = [
    "silent",
    "heard",
    "slow",
    "sat-out",
    "sat-out-by-hand",
    "admitted",
    "admitted-by-hand",
    "admitted-in-need",
    "lost",
    "released",
    "damaged",
    "damaged-read",
    "corrupt",
    "repaired",
    "unrepaired",
    "unlocated",
    "write-lost",
    "write-torn",
    "write-unreadable",
    "write-mended",
    "write-not-mended",
    "record-lost",
    "fenced",
    "went-back",
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
    /// How much it matters: a [`Severity`]. An array of an earlier version says neither that nor its UUID.
    #[serde(default)]
    pub(crate) severity: String,
    #[serde(default)]
    pub(crate) array: String,
    /// By the server's clock, in UTC, as RFC 3339 has it. An array of an earlier version does not say it.
    #[serde(default)]
    pub(crate) time: String,
    /// Since the array was started.
    pub(crate) at_seconds: f64,
    #[serde(flatten)]
    pub(crate) facts: Facts,
}

/// The fields that differ from event to event. A kind is known by the fields that it alone has.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(untagged)]
pub(crate) enum Facts {
    Standing {
        drive: u8,
        median_ms: f64,
        cohort_median_ms: f64,
        cohort_mad_ms: f64,
        samples: u32,
        /// Why a silent drive's commands are refused by its machine, or how its last command failed, if it did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    Lost {
        drive: u8,
        why: String,
        member: Option<String>,
        reason: Option<String>,
    },
    Repaired {
        drive: u8,
        first_sector: u64,
        sectors: u64,
        fault: String,
    },
    Checked {
        drive: u8,
        first_sector: u64,
        sectors: u64,
        promise: String,
    },
    Damaged {
        drive: u8,
        first_sector: u64,
        sectors: u64,
    },
    Unlocated {
        stripe: u64,
        first_sector: u64,
        #[serde(default)]
        sectors: u64,
    },
    ReadErrors {
        drive: u8,
        errors: u32,
        kept: bool,
    },
    RecordLost {
        drive: u8,
        kept: bool,
    },
    Scrub(ScrubJson),
    Failed {
        lost: Vec<u8>,
        survives: usize,
    },
    Assembled {
        absent: Vec<u8>,
        forced: bool,
        unsynced_stripes: u64,
    },
    Resync {
        synced_stripes: u64,
        stripes: u64,
    },
    Rebuild {
        drive: u8,
        done_stripes: u64,
        stripes: u64,
        missed_regions: Option<u64>,
    },
    Copy {
        drive: u8,
        left_regions: u64,
        regions: u64,
    },
    CopyStopped {
        drive: u8,
        because: String,
        member: Option<String>,
        reason: Option<String>,
    },
    Released {
        drive: u8,
        member: String,
    },
    OfDrive {
        drive: u8,
    },
    Silent {
        silent: Vec<u8>,
    },
    Unrecovered {
        first_sector: u64,
        sectors: u64,
    },
    None {},
}

impl From<&NumberedEvent> for EventJson {
    fn from(told: &NumberedEvent) -> Self {
        Self {
            number: told.number,
            event: told.event.name().to_owned(),
            severity: severity(told.event).name().to_owned(),
            array: told.array.to_string(),
            time: utc(told.time),
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
                    reason: told.lost.clone().and_then(|known| known.reason),
                }
            }
            Event::Lost { drive, why, is_copied } => {
                let why = match why {
                    Why::Failed => "failed",
                    Why::Silent => "silent",
                    Why::ByHand if is_copied => "replaced",
                    Why::ByHand => "by-hand",
                };
                let known = told.lost.clone().unwrap_or_default();
                let (member, reason) = (known.name, known.reason);
                Self::Lost { drive: number(drive), why: why.to_owned(), member, reason }
            }
            Event::Released { drive } => {
                let member = told.lost.clone().and_then(|known| known.name).unwrap_or_default();
                Self::Released { drive: number(drive), member }
            }
            Event::Array(
                ArrayEvent::Damaged { drive, extent }
                | ArrayEvent::DamagedRead { drive, extent }
                | ArrayEvent::Corrupt { drive, extent },
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
            Event::Array(ArrayEvent::Unlocated { stripe, first_sector, sectors }) => {
                Self::Unlocated { stripe, first_sector, sectors }
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
            ) => Self::Scrub(ScrubJson::new(now, &told.found)),
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
            Event::Array(
                ArrayEvent::RebuildDone { drive, is_copied: _ } | ArrayEvent::WentBack { drive },
            ) => Self::OfDrive { drive: number(drive) },
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
                ArrayEvent::ResyncDone
                | ArrayEvent::Fenced
                | ArrayEvent::Stopped(Ending::Clean | Ending::Failed),
            ) => Self::None {},
        }
    }
}

impl EventJson {
    /// When it was, and the sentence.
    pub(crate) fn line(&self) -> String {
        format!("{} {}", self.time, self.sentence()).trim_start().to_owned()
    }

    /// The same in a sentence.
    pub(crate) fn sentence(&self) -> String {
        let Self { event, at_seconds, .. } = self;
        let is_planned = self.severity == Severity::Planned.name();
        match &self.facts {
            Facts::Standing { drive, .. } if event == "heard" => {
                format!(
                    "drive {drive} responsive at {at_seconds:.1} s: it has completed a command again"
                )
            }
            Facts::Standing { drive, reason, .. } if event == "silent" => {
                let why = reason.as_ref().map_or(String::new(), |reason| format!(": {reason}"));
                format!(
                    "drive {drive} unresponsive at {at_seconds:.1} s: nothing has completed for long although \
                     I/O is outstanding{why}"
                )
            }
            Facts::Standing { drive, .. } if event.ends_with("-by-hand") => {
                format!("drive {drive} {} at {at_seconds:.1} s", standing(event))
            }
            Facts::Standing { drive, samples: 0, .. } => {
                format!(
                    "drive {drive} {} at {at_seconds:.1} s: it has completed no command lately",
                    standing(event)
                )
            }
            Facts::Standing {
                drive, median_ms, cohort_median_ms, cohort_mad_ms, samples, ..
            } => {
                format!(
                    "drive {drive} {} at {at_seconds:.1} s: its last {samples} commands took \
                 {median_ms:.1} ms (median), the drives' {cohort_median_ms:.1} ms (deviation \
                 {cohort_mad_ms:.1} ms)",
                    standing(event)
                )
            }
            Facts::Lost { drive, why, member, reason } => {
                let name = member
                    .as_ref()
                    .map_or(String::new(), |member| format!(", {},", escaped(member)));
                match (why.as_str(), reason) {
                    ("by-hand", _) => format!("drive {drive}{name} failed by an operator"),
                    ("replaced", _) => {
                        format!(
                            "drive {drive}{name} gives its slot to the new drive that holds its copy"
                        )
                    }
                    (_, Some(reason)) => format!("drive {drive}{name} has failed: {reason}"),
                    (_, None) => format!("drive {drive}{name} has failed"),
                }
            }
            Facts::Repaired { drive, first_sector, sectors, fault } => {
                let fault = match fault.as_str() {
                    "unreadable" => "could not be read",
                    _ => "held other data than was written",
                };
                let were = if *sectors == 1 { "was" } else { "were" };
                let end = match event == "repaired" {
                    true => format!("and {were} repaired"),
                    false => "and could not be repaired".to_owned(),
                };
                let sectors = span(*sectors, *first_sector);
                format!("{sectors} of drive {drive} {fault} {end}")
            }
            Facts::Checked { drive, first_sector, sectors, promise: _ } => {
                let (was, hold) = match sectors {
                    1 => ("was", "does not hold"),
                    _ => ("were", "do not hold"),
                };
                let what = match event.as_str() {
                    "write-lost" => format!("{hold} the data that was written there"),
                    "write-torn" => format!("{hold} the data of a write that was stored in part"),
                    "write-unreadable" => format!("{was} written and cannot be read"),
                    "write-mended" => {
                        format!("{was} not stored, and {was} repaired")
                    }
                    _ => {
                        format!("{was} not stored, and could not be repaired")
                    }
                };
                let sectors = span(*sectors, *first_sector);
                format!("{sectors} of drive {drive} {what}")
            }
            Facts::Unlocated { stripe, first_sector, sectors: 0 | 1 } => format!(
                "stripe {stripe} does not match at sector {first_sector}, and the wrong drive cannot be located: \
                 nothing was changed"
            ),
            Facts::Unlocated { stripe, first_sector, sectors } => format!(
                "{} of the drives, from stripe {stripe} on, do not match, and the wrong drive cannot be located: \
                 nothing was changed",
                span(*sectors, *first_sector)
            ),
            Facts::RecordLost { drive, kept: false } => {
                format!("drive {drive} does not store the array's metadata, and was failed")
            }
            Facts::RecordLost { drive, kept: true } => {
                format!("drive {drive} does not store the array's metadata, and the array needs it")
            }
            Facts::ReadErrors { drive, errors, kept: false } => {
                let errors = words::counted(*errors, "read error");
                format!("drive {drive} had {errors} lately, and was failed")
            }
            Facts::ReadErrors { drive, errors, kept: true } => format!(
                "drive {drive} had {} lately, and the array needs it",
                words::counted(*errors, "read error")
            ),
            Facts::Scrub(ScrubJson { scrubbed_stripes, stripes, .. }) if event == "scrub-begun" => {
                format!("scrub from stripe {scrubbed_stripes} of {stripes} on")
            }
            Facts::Scrub(scrub) => scrub.sentence(),
            Facts::Damaged { drive, first_sector, sectors } => {
                let (are, they, them) = match sectors {
                    1 => ("is", "it is", "it"),
                    _ => ("are", "they are", "them"),
                };
                let sectors = span(*sectors, *first_sector);
                match event.as_str() {
                    "corrupt" => format!(
                        "drive {drive} returned {sectors} with a wrong checksum: redundancy is used"
                    ),
                    "damaged-read" => format!(
                        "a client read unrecoverable data: {sectors} of drive {drive} {are} damaged until {they} \
                         written"
                    ),
                    _ => format!(
                        "{sectors} of drive {drive} {are} damaged: neither the drive nor redundancy returns {them}"
                    ),
                }
            }
            Facts::Failed { lost, survives } => format!(
                "the array has failed: {} {} missing or failed, it survives the loss of {}",
                words::numbered(lost),
                words::is_or_are(lost.len()),
                words::counted(*survives, "drive")
            ),
            Facts::Assembled { absent, forced, unsynced_stripes } => {
                let mut sentence = "the array is served".to_owned();
                match absent.as_slice() {
                    [] => sentence.push_str(" with all its drives"),
                    absent => sentence.push_str(&format!(" without {}", words::numbered(absent))),
                }
                if *forced {
                    sentence.push_str(", by force");
                }
                if *unsynced_stripes > 0 {
                    let stripes = words::counted(*unsynced_stripes, "stripe");
                    sentence.push_str(&format!(", redundancy of {stripes} is not valid yet"));
                }
                sentence
            }
            Facts::Resync { synced_stripes, stripes } if event == "resync-stuck" => format!(
                "resync stopped at stripe {synced_stripes} of {stripes}: a drive is missing or failed, or data \
                 cannot be \
                 read"
            ),
            Facts::Resync { synced_stripes, stripes } => {
                format!("resync from stripe {synced_stripes} of {stripes} on")
            }
            Facts::Rebuild { drive, done_stripes, stripes, .. } if event == "rebuild-stopped" => {
                format!(
                    "drive {drive} failed again: {done_stripes} of {stripes} stripes were rebuilt"
                )
            }
            Facts::Rebuild { drive, missed_regions: Some(left), .. } => {
                let left = words::counted(*left, "region");
                match is_planned {
                    true => format!("replacing drive {drive}: {left} to write to the new drive"),
                    false => format!("drive {drive} is back: partial resync of {left}"),
                }
            }
            Facts::Rebuild { drive, done_stripes, stripes, missed_regions: None } => {
                format!("drive {drive} is rebuilding from stripe {done_stripes} of {stripes} on")
            }
            Facts::Copy { drive, left_regions, regions } if event == "copy-done" => format!(
                "drive {drive} replaced by the new drive: {left_regions} of {} left to copy",
                words::counted(*regions, "region")
            ),
            Facts::Copy { drive, regions, .. } => {
                let regions = words::counted(*regions, "region");
                format!("replacing drive {drive}: {regions} to copy to the new drive")
            }
            Facts::CopyStopped { drive, because, member, reason } => {
                let why = match because.as_str() {
                    "failed" => "it did not store what was written to it",
                    "silent" => "it has completed nothing for too long",
                    "too-slow" => "clients write faster than it takes the writes",
                    "ending" => "the array is stopping",
                    _ => "more drives are missing or failed than the array survives",
                };
                let name = member
                    .as_ref()
                    .map_or(String::new(), |member| format!(", {},", escaped(member)));
                let reason = reason.as_ref().map_or(String::new(), |reason| format!(": {reason}"));
                format!("the new drive{name} does not replace drive {drive}: {why}{reason}")
            }
            Facts::Released { drive, member } => {
                format!("drive {drive}, {}, is closed: other programs can use it", escaped(member))
            }
            Facts::OfDrive { drive } if event == "went-back" => {
                format!(
                    "drive {drive} has less than was stored on it, an earlier copy perhaps, and was failed"
                )
            }
            Facts::OfDrive { drive } if is_planned => {
                format!("drive {drive} is replaced: the new drive holds all of its data")
            }
            Facts::OfDrive { drive } => format!("drive {drive} is rebuilt"),
            Facts::Silent { silent } => format!(
                "the array was not stopped cleanly: {} {} not answer",
                words::numbered(silent),
                if silent.len() == 1 { "does" } else { "do" }
            ),
            Facts::Unrecovered { first_sector, sectors } => format!(
                "{} may hold older data than was written last before the crash: the journal could not recover it",
                span(*sectors, *first_sector)
            ),
            Facts::None {} => match event.as_str() {
                "resync-done" => "all redundancy is valid".to_owned(),
                "fenced" => {
                    "another server has opened the array: this one gives up all drives".to_owned()
                }
                "stopped" => "the array was stopped cleanly".to_owned(),
                "stopped-failed" => {
                    "the array has stopped: more drives are missing or failed than it survives"
                        .to_owned()
                }
                // An array of a later version may tell more than is known here.
                other => other.to_owned(),
            },
        }
    }
}

/// A drive's standing in the words of a sentence, by the name of its event.
fn standing(event: &str) -> &str {
    match event {
        "sat-out" => "avoided",
        "sat-out-by-hand" => "avoided by an operator",
        "admitted" => "reinstated",
        "admitted-by-hand" => "reinstated by an operator",
        "admitted-in-need" => "reinstated in need",
        other => other,
    }
}

fn number(drive: DriveIdx) -> u8 {
    drive.as_usize() as u8
}

fn numbers(drives: DriveSet) -> Vec<u8> {
    drives.iter().map(number).collect()
}

/// `sector 7`, `2 sectors from 7 on`.
fn span(sectors: u64, first: u64) -> String {
    match sectors {
        1 => format!("sector {first}"),
        _ => format!("{sectors} sectors from {first} on"),
    }
}

/// Rounded to what people may want to know: then a number reads back as it was written.
fn thousandths(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

fn millis(time: Nanos) -> f64 {
    thousandths(time.as_millis_f64())
}

#[cfg(test)]
mod tests;
