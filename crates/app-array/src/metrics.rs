//! A running array as metrics. What each means for users stands in `docs/metrics.md`, which a test compares
//! with what is here.
//!
//! The counters and their sentences are those of `levelhead_array::counters`; everything else is a line of the
//! tables below.
//!
//! A scrape takes a snapshot as `array status` does. It waits for the engine for [`PATIENCE`] at most, and the engine waits
//! for no drive: one that hangs holds up no scrape.

use std::collections::BTreeMap;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use levelhead_array::{Counter, DriveCounters, JournalStatus, Resync};
use levelhead_block::Health;
use levelhead_host::{
    Answered, ArrayState, DriveState, DriveStatus, MemberSpec, Operation, Status,
};
use levelhead_metrics::{Family, Kind, Value};
use levelhead_nbd::Look;
use levelhead_units::Nanos;

use super::event_json::EVENTS;
use super::process;
use super::snapshot::Snapshots;
use levelhead_app::VERSION;

/// What the names of all metrics of an array begin with.
const PREFIX: &str = "levelhead_array";

/// How long a scrape waits for the engine.
const PATIENCE: Duration = Duration::from_secs(2);

type Labels = Vec<(&'static str, String)>;

/// Where the metrics come from.
pub(super) struct Scrapes {
    pub(super) uuid: String,
    pub(super) snapshots: Arc<Snapshots>,
    pub(super) nbd: Look,
    pub(super) devices: Devices,
}

impl Scrapes {
    /// All metrics as they are now. Of an array that does not answer in time only what is known without it.
    pub(super) fn scrape(&self) -> Vec<Family> {
        let status = self.snapshots.take(PATIENCE).ok().flatten();
        let scrape = Scrape { uuid: &self.uuid, status: status.as_deref(), devices: &self.devices };
        let mut families = scrape.families();
        families.extend(nbd(&self.uuid, &self.nbd.traffic()));
        families.extend(process::families());
        families
    }
}

/// How the kernel calls each member, by the name that it was given: `sdb` for a block device, as other exporters have
/// it, and the path for a file.
#[derive(Debug, Default)]
pub(super) struct Devices(BTreeMap<String, String>);

impl Devices {
    /// Looked up once: a path may lead to a file system that hangs later. Names below `/dev` cannot.
    pub(super) fn of(members: &[MemberSpec]) -> Self {
        Self(members.iter().map(|member| (member.to_string(), device(member.path()))).collect())
    }

    fn name(&self, member: &str) -> String {
        let later = || match member.starts_with("/dev/") {
            true => device(Path::new(member)),
            false => member.to_owned(),
        };
        self.0.get(member).cloned().unwrap_or_else(later)
    }
}

fn device(path: &Path) -> String {
    let shown = path.display().to_string();
    let Ok(real) = path.canonicalize() else { return shown };
    let is_device = real.metadata().is_ok_and(|metadata| metadata.file_type().is_block_device());
    match real.file_name() {
        Some(name) if is_device => name.to_string_lossy().into_owned(),
        _ => shown,
    }
}

/// A metric of the array: name after the prefix, kind, meaning, and what it has.
struct OfArray(&'static str, Kind, &'static str, fn(&Status) -> Vec<(Labels, Value)>);

/// A metric of each drive.
struct OfDrive(&'static str, Kind, &'static str, fn(&DriveStatus) -> Option<(Labels, Value)>);

const STATES: &[&str] = &["whole", "degraded", "failed"];
const RESYNC: &[&str] = &["idle", "running", "stuck"];
const JOURNAL: &[&str] = &["none", "recovering", "kept"];
const DRIVE_STATES: &[&str] = &[
    "present",
    "copying",
    "filling",
    "catching-up",
    "behind",
    "failed",
    "lost",
    "removed",
    "missing",
];

const OF_ARRAY: &[OfArray] = &[
    OfArray("", Kind::Info, "Layout, policy and version.", |status| {
        vec![(
            vec![
                ("layout", status.spec.to_string()),
                ("policy", status.policy.to_string()),
                ("version", VERSION.to_owned()),
            ],
            Value::Labels,
        )]
    }),
    OfArray(
        "_state",
        Kind::StateSet,
        "Whether all drives are in use, or enough of them.",
        |status| {
            let is = match status.state {
                ArrayState::Whole => "whole",
                ArrayState::Degraded => "degraded",
                ArrayState::Failed => "failed",
            };
            alone(Value::OneOf { states: STATES, is })
        },
    ),
    OfArray(
        "_forced",
        Kind::Gauge,
        "Whether an operator has ever forced it to start with data that may be wrong.",
        |status| alone(flag(status.is_forced)),
    ),
    OfArray("_size_bytes", Kind::Gauge, "Usable capacity.", |status| {
        alone(Value::Whole(status.size.bytes().get()))
    }),
    OfArray("_uptime_seconds", Kind::Gauge, "Time since the array was started.", |status| {
        alone(Value::Real(status.at.as_nanos() as f64 / 1e9))
    }),
    OfArray(
        "_redundancy_valid_ratio",
        Kind::Gauge,
        "Share of the stripes whose redundancy is valid.",
        |status| alone(Value::Real(status.synced.get())),
    ),
    OfArray("_resync", Kind::StateSet, "State of the resync of the other stripes.", |status| {
        let is = match status.resync {
            Resync::Idle => "idle",
            Resync::Running => "running",
            Resync::Stuck => "stuck",
        };
        alone(Value::OneOf { states: RESYNC, is })
    }),
    OfArray(
        "_rebuild_left_ratio",
        Kind::Gauge,
        "Share of the stripes that are left to rebuild; 0 without a rebuild.",
        |status| {
            let left =
                status.rebuild.map(|rebuild| (rebuild.stripes - rebuild.front, rebuild.stripes));
            alone(share(left))
        },
    ),
    OfArray(
        "_copy_left_ratio",
        Kind::Gauge,
        "Share of a drive's regions that are left to copy to its replacement; 0 without a replacement.",
        |status| alone(share(status.copy.map(|copy| (copy.left, copy.regions)))),
    ),
    OfArray("_journal", Kind::StateSet, "State of the journal.", |status| {
        let is = match status.journal {
            None => "none",
            Some(JournalStatus { is_recovering: true, .. }) => "recovering",
            Some(JournalStatus { is_recovering: false, .. }) => "kept",
        };
        alone(Value::OneOf { states: JOURNAL, is })
    }),
    OfArray(
        "_journal_open_transactions",
        Kind::Gauge,
        "Transactions of the journal that are not retired.",
        |status| of_journal(status, |journal| journal.open),
    ),
    OfArray(
        "_journal_unplaced_sectors",
        Kind::Gauge,
        "Sectors that are durable in the journal and not yet written back to their home location.",
        |status| of_journal(status, |journal| journal.unplaced),
    ),
    OfArray("_outstanding_requests", Kind::Gauge, "Client requests in progress.", |status| {
        alone(Value::Whole(status.outstanding.into()))
    }),
    OfArray(
        "_buffer_bytes",
        Kind::Gauge,
        "Memory of the array's own buffers, without those of requests.",
        |status| alone(Value::Whole(status.buffers.bytes().get())),
    ),
    OfArray(
        "_request_duration_seconds",
        Kind::Histogram,
        "Latency of requests; a server counts each MiB of a large one.",
        |status| of_each_operation(status, spread),
    ),
    OfArray(
        "_failed_requests",
        Kind::Counter,
        "Requests that failed in whole or in part.",
        |status| of_each_operation(status, |answered| Value::Whole(answered.failed)),
    ),
    OfArray(
        "_recent_request_duration_seconds",
        Kind::Summary,
        "Latency of the last 4096 requests.",
        |status| {
            let latency = &status.latency;
            if latency.count == 0 {
                return Vec::new();
            }
            let shares = [
                (0.5, latency.p50),
                (0.9, latency.p90),
                (0.99, latency.p99),
                (0.999, latency.p999),
                (1.0, latency.max),
            ];
            alone(Value::Quantiles(
                shares.map(|(share, time)| (share, time.as_secs_f64())).to_vec(),
            ))
        },
    ),
    OfArray("_events", Kind::Counter, "Events by name.", |status| {
        let others = status.event_counts.keys().copied().filter(|name| !EVENTS.contains(name));
        let count = |name: &'static str| {
            let count = status.event_counts.get(name).copied().unwrap_or_default();
            (vec![("event", name.to_owned())], Value::Whole(count))
        };
        EVENTS.into_iter().chain(others).map(count).collect()
    }),
    OfArray(
        "_cohort_median_seconds",
        Kind::Gauge,
        "Median of the drives' median command latencies.",
        |status| cohort(status, |first| first.figures.cohort_median),
    ),
    OfArray(
        "_cohort_mad_seconds",
        Kind::Gauge,
        "Median absolute deviation of the drives' median command latencies.",
        |status| cohort(status, |first| first.figures.cohort_mad),
    ),
];

/// What is left of all there is; nothing where nothing is to be done.
fn share(left: Option<(u64, u64)>) -> Value {
    Value::Real(left.map_or(0.0, |(left, all)| left as f64 / all.max(1) as f64))
}

const OF_DRIVE: &[OfDrive] = &[
    OfDrive("_drive", Kind::Info, "Name of the drive and its fast-fail method.", |drive| {
        let fast = drive.fast_fail.as_ref().map(|way| way.path.to_string()).unwrap_or_default();
        let member = drive.name.clone().unwrap_or_default();
        Some((vec![("member", member), ("fast_fail", fast)], Value::Labels))
    }),
    OfDrive("_drive_state", Kind::StateSet, "State of the drive in the array.", |drive| {
        let is = match drive.state {
            DriveState::Present => "present",
            DriveState::Copying => "copying",
            DriveState::Filling => "filling",
            DriveState::CatchingUp => "catching-up",
            DriveState::Behind => "behind",
            DriveState::Failed => "failed",
            DriveState::Lost => "lost",
            DriveState::Removed => "removed",
            DriveState::Missing => "missing",
        };
        just(Value::OneOf { states: DRIVE_STATES, is })
    }),
    OfDrive(
        "_drive_sits_out",
        Kind::Gauge,
        "Whether the array avoids reading from the drive.",
        |drive| just(flag(drive.sits_out)),
    ),
    OfDrive(
        "_drive_silent",
        Kind::Gauge,
        "Whether the drive is unresponsive: I/O is outstanding and nothing has completed for long.",
        |drive| just(flag(drive.is_silent)),
    ),
    OfDrive(
        "_drive_queue_length",
        Kind::Gauge,
        "Commands queued for the drive or inside it.",
        |drive| just(Value::Whole(drive.queue_len as u64)),
    ),
    OfDrive("_drive_inflight_commands", Kind::Gauge, "Commands inside the drive.", |drive| {
        just(Value::Whole(drive.inside.into()))
    }),
    OfDrive(
        "_drive_median_seconds",
        Kind::Gauge,
        "Median latency of the drive's last commands, by which it is compared with its peers.",
        |drive| just(seconds(drive.figures.median)),
    ),
    OfDrive("_drive_median_samples", Kind::Gauge, "Number of commands in that median.", |drive| {
        just(Value::Whole(drive.figures.samples.into()))
    }),
    OfDrive(
        "_drive_reported_commands",
        Kind::Counter,
        "Reads and writes over the drive's life, as it reports.",
        |drive| said(drive, |health| health.commands.map(Value::Whole)),
    ),
    OfDrive(
        "_drive_reported_first_pass_failures",
        Kind::Counter,
        "Sectors whose first pass failed over the drive's life, as it reports.",
        |drive| said(drive, |health| health.first_pass_failures.map(Value::Whole)),
    ),
    OfDrive(
        "_drive_reported_retries",
        Kind::Counter,
        "Reads retried over the drive's life, as it reports.",
        |drive| said(drive, |health| health.retries.map(Value::Whole)),
    ),
    OfDrive(
        "_drive_reported_retry_ratio",
        Kind::Gauge,
        "Share of recently read sectors whose first pass failed, as the drive reports.",
        |drive| said(drive, |health| health.retry_rate.map(|rate| Value::Real(rate.get()))),
    ),
    OfDrive(
        "_drive_reported_retry_seconds",
        Kind::Gauge,
        "Mean time of a recent retry, as the drive reports.",
        |drive| said(drive, |health| health.retry_latency_mean.map(seconds)),
    ),
    OfDrive(
        "_drive_reported_service_seconds",
        Kind::Gauge,
        "Mean time of a recent command without retries, as the drive reports.",
        |drive| said(drive, |health| health.service_time_mean.map(seconds)),
    ),
    OfDrive(
        "_drive_estimated_arrivals_per_second",
        Kind::Gauge,
        "Commands per second for the drive, as estimated by policies.",
        |drive| just(Value::Real(drive.view.arrival_rate)),
    ),
    OfDrive(
        "_drive_estimated_queue_length",
        Kind::Gauge,
        "Commands queued for the drive or inside it, as estimated by policies.",
        |drive| just(Value::Real(drive.view.queued)),
    ),
    OfDrive(
        "_drive_estimated_removal_ratio",
        Kind::Gauge,
        "Share of commands cancelled before the drive begins them, as estimated by policies.",
        |drive| just(Value::Real(drive.view.removal)),
    ),
    OfDrive(
        "_drive_estimated_service_seconds",
        Kind::Gauge,
        "Mean mechanical time of a command, as estimated by policies.",
        |drive| just(Value::Real(drive.view.service_time)),
    ),
    OfDrive(
        "_drive_estimated_pace_seconds",
        Kind::Gauge,
        "Recent time of one command, as estimated by policies.",
        |drive| just(Value::Real(drive.view.pace)),
    ),
    OfDrive(
        "_drive_estimated_retry_ratio",
        Kind::Gauge,
        "Probability that a sector's first pass fails, as estimated by policies.",
        |drive| just(Value::Real(drive.view.retry_rate)),
    ),
    OfDrive(
        "_drive_estimated_retry_seconds",
        Kind::Gauge,
        "Mean time of a retry, as estimated by policies.",
        |drive| just(Value::Real(drive.view.retry_latency)),
    ),
    OfDrive(
        "_drive_estimated_failure_ratio",
        Kind::Gauge,
        "Share of sectors that the drive did not return without retries, as measured by the array.",
        |drive| just(Value::Real(drive.view.failure_rate)),
    ),
];

fn alone(value: Value) -> Vec<(Labels, Value)> {
    vec![(Vec::new(), value)]
}

/// Nothing where no journal is kept.
fn of_journal(status: &Status, of: fn(JournalStatus) -> usize) -> Vec<(Labels, Value)> {
    status.journal.map_or_else(Vec::new, |journal| alone(Value::Whole(of(journal) as u64)))
}

fn just(value: Value) -> Option<(Labels, Value)> {
    Some((Vec::new(), value))
}

fn said(drive: &DriveStatus, of: impl Fn(Health) -> Option<Value>) -> Option<(Labels, Value)> {
    drive.health.and_then(of).and_then(just)
}

fn flag(is_so: bool) -> Value {
    Value::Whole(is_so.into())
}

fn seconds(time: Nanos) -> Value {
    Value::Real(time.as_secs_f64())
}

fn of_each_operation(status: &Status, of: fn(&Answered) -> Value) -> Vec<(Labels, Value)> {
    let label = |operation: Operation| vec![("operation", operation.name().to_owned())];
    let each = Operation::ALL.into_iter().zip(&status.answered);
    each.map(|(operation, answered)| (label(operation), of(answered))).collect()
}

fn spread(answered: &Answered) -> Value {
    Value::Spread {
        bounds: Answered::BOUNDS.iter().map(|bound| bound.as_secs_f64()).collect(),
        counts: answered.counts.to_vec(),
        sum: answered.total.as_secs_f64(),
    }
}

/// A figure that is the same for all drives.
fn cohort(status: &Status, of: fn(&DriveStatus) -> Nanos) -> Vec<(Labels, Value)> {
    let first = status.drives.iter().find(|drive| drive.state.is_used());
    first.map_or_else(Vec::new, |first| alone(seconds(of(first))))
}

/// One scrape.
struct Scrape<'a> {
    uuid: &'a str,
    /// Nothing if the array did not say in time how it is.
    status: Option<&'a Status>,
    devices: &'a Devices,
}

impl Scrape<'_> {
    fn families(&self) -> Vec<Family> {
        let help = "Whether the array answered in time; if not, no other metric of it is shown.";
        let up = Family::new(format!("{PREFIX}_up"), Kind::Gauge, help);
        let mut families = vec![up.with(self.own(Vec::new()), flag(self.status.is_some()))];
        families.extend(OF_ARRAY.iter().map(|metric| self.of_array(metric)));
        families.extend(self.counters());
        families.extend(OF_DRIVE.iter().map(|metric| self.of_drive(metric)));
        families.extend(self.drive_counters());
        families
    }

    fn of_array(&self, OfArray(name, kind, help, values): &OfArray) -> Family {
        let mut family = Family::new(format!("{PREFIX}{name}"), *kind, *help);
        for (labels, value) in self.status.map(values).unwrap_or_default() {
            family.push(self.own(labels), value);
        }
        family
    }

    fn of_drive(&self, OfDrive(name, kind, help, value): &OfDrive) -> Family {
        let mut family = Family::new(format!("{PREFIX}{name}"), *kind, *help);
        for (idx, drive) in self.drives() {
            if let Some((labels, value)) = value(drive) {
                family.push(self.with_drive(idx, drive, labels), value);
            }
        }
        family
    }

    fn counters(&self) -> Vec<Family> {
        let values = self.status.map(|status| status.counters);
        let family = |counter: Counter| {
            let (mut family, value) = counted("", &counter);
            if values.is_some() {
                family.push(self.own(Vec::new()), value);
            }
            family
        };
        values.unwrap_or_default().table().map(family).collect()
    }

    fn drive_counters(&self) -> Vec<Family> {
        let known = DriveCounters::default();
        let mut families: Vec<Family> =
            known.table().map(|counter| counted("_drive", &counter).0).collect();
        for (idx, drive) in self.drives() {
            for (family, counter) in families.iter_mut().zip(drive.counters.table()) {
                let labels = self.with_drive(idx, drive, Vec::new());
                family.push(labels, counted("_drive", &counter).1);
            }
        }
        families
    }

    fn drives(&self) -> impl Iterator<Item = (usize, &DriveStatus)> {
        self.status.iter().flat_map(|status| status.drives.iter().enumerate())
    }

    fn own(&self, more: Labels) -> Labels {
        [("array", self.uuid.to_owned())].into_iter().chain(more).collect()
    }

    fn with_drive(&self, idx: usize, drive: &DriveStatus, more: Labels) -> Labels {
        let device = drive.name.as_deref().map(|name| self.devices.name(name)).unwrap_or_default();
        let drive = [("drive", idx.to_string()), ("device", device)];
        self.own(drive.into_iter().chain(more).collect())
    }
}

/// A counter of the tables: in base units, and named so.
fn counted(of: &str, counter: &Counter) -> (Family, Value) {
    let (unit, value) = match counter.unit {
        "nanoseconds" => ("_seconds", seconds(Nanos::new(counter.value))),
        _ => ("", Value::Whole(counter.value)),
    };
    let name = format!("{PREFIX}{of}_{}{unit}", counter.name);
    (Family::new(name, Kind::Counter, counter.help), value)
}

fn nbd(uuid: &str, traffic: &levelhead_nbd::Traffic) -> [Family; 5] {
    let levelhead_nbd::Traffic { open, accepted, refused, dropped, requests } = *traffic;
    [
        ("connections", Kind::Gauge, "NBD clients that have chosen an export.", open),
        (
            "accepted_connections",
            Kind::Counter,
            "NBD connections that have chosen an export.",
            accepted,
        ),
        (
            "refused_connections",
            Kind::Counter,
            "NBD connections that were refused because there were as many as --max-connections.",
            refused,
        ),
        (
            "dropped_connections",
            Kind::Counter,
            "NBD connections that were dropped in the handshake for newer ones.",
            dropped,
        ),
        ("requests", Kind::Counter, "NBD requests received, valid or not.", requests),
    ]
    .map(|(name, kind, help, value)| {
        let labels = vec![("array", uuid.to_owned())];
        Family::new(format!("{PREFIX}_nbd_{name}"), kind, help).with(labels, Value::Whole(value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every metric without a series, as there is one in the page.
    fn known() -> Vec<Family> {
        let (uuid, devices) = ("", Devices::default());
        let mut families = Scrape { uuid, status: None, devices: &devices }.families();
        families.extend(nbd("", &levelhead_nbd::Traffic::default()));
        families.extend(process::families());
        families
    }

    fn row(family: &Family) -> [String; 3] {
        let suffix = match family.kind() {
            Kind::Counter => "_total",
            Kind::Info => "_info",
            Kind::Gauge | Kind::StateSet | Kind::Histogram | Kind::Summary => "",
        };
        let name = format!("`{}{suffix}`", family.name());
        [name, family.kind().name().to_owned(), family.help().to_owned()]
    }

    #[test]
    fn page_for_users_lists_what_is_exported_and_nothing_else() {
        let page = include_str!("../../../docs/metrics.md");
        let cells = |line: &str| -> Vec<String> {
            line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()
        };
        let rows: Vec<Vec<String>> =
            page.lines().filter(|line| line.starts_with("| `")).map(cells).collect();
        let expected: Vec<[String; 3]> = known().iter().map(row).collect();
        for (row, expected) in rows.iter().zip(&expected) {
            assert_eq!(row[..3], expected[..]);
        }
        assert_eq!(rows.len(), expected.len(), "{:?}", expected.last());
    }

    #[test]
    fn no_two_metrics_have_the_same_name_and_counted_times_are_in_seconds() {
        let names: Vec<String> = known().iter().map(|family| family.name().to_owned()).collect();
        let unique: std::collections::BTreeSet<&String> = names.iter().collect();
        assert_eq!(unique.len(), names.len());
        let times = DriveCounters::default();
        let times = times.table().filter(|counter| counter.unit == "nanoseconds");
        for counter in times {
            let (family, value) = counted("_drive", &Counter { value: 1_500_000_000, ..counter });
            assert_eq!((family.unit(), value), (Some("seconds"), Value::Real(1.5)));
        }
        assert!(names.iter().all(|name| !name.contains("nano") && !name.contains("_ms")));
    }

    #[test]
    fn file_is_called_by_its_path_and_a_link_to_it_too() {
        let dir = tempfile::TempDir::new().unwrap();
        let (file, link) = (dir.path().join("a.img"), dir.path().join("b.img"));
        std::fs::write(&file, []).unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert_eq!(device(&file), file.display().to_string());
        assert_eq!(device(&link), link.display().to_string());
        // Those that have come since.
        assert_eq!(Devices::default().name("x"), "x");
        assert_eq!(Devices::default().name("/dev/no-such-drive"), "/dev/no-such-drive");
    }
}
