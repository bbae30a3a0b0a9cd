//! What a running array answers at the control socket: one JSON value a line, described for users in
//! `docs/control.md`. The questions are in [`verbs`](super::verbs).

use std::collections::BTreeMap;

use levelhead_array::tau::DriveView;
use levelhead_array::{
    CopyProgress, Counter, Counters, DamagedSummary, JournalStatus, RebuildProgress, Resync,
    VerifyStatus,
};
use levelhead_erasure::{Measured, MeasuredClass};
use levelhead_host::{ArrayState, Damaged, DriveState, EventsSince, FoundRange, Status};
use levelhead_units::{Bytes, Nanos, Ratio};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::create::role_of;
use super::event_json::EventJson;
use super::scrub_json::ScrubJson;

/// What comes back: `T` where there is something to say.
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Reply<T> {
    Ok(Option<T>),
    Error(String),
}

/// What there may be to say.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum Answer {
    Status(Box<StatusJson>),
    Events(EventsJson),
    Damaged(DamagedJson),
    Scrub(ScrubJson),
}

/// The list of damaged sectors as JSON.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct DamagedJson {
    pub(crate) sectors: u64,
    /// Whether it was full once and covers more than is damaged.
    pub(crate) full: bool,
    /// Whether the drives have it.
    pub(crate) kept: bool,
    pub(crate) ranges: Vec<RangeJson>,
}

/// A range of damaged sectors.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct RangeJson {
    pub(crate) drive: u8,
    /// As the layout counts the sectors of a drive.
    pub(crate) first_sector: u64,
    pub(crate) sectors: u64,
    /// The first sector as the drive counts it.
    pub(crate) on_drive: u64,
}

impl From<&Damaged> for DamagedJson {
    fn from(damaged: &Damaged) -> Self {
        let range = |found: &FoundRange| RangeJson {
            drive: found.range.drive.as_usize() as u8,
            first_sector: found.range.extent.lba.get(),
            sectors: found.range.extent.sectors.get(),
            on_drive: found.on_drive.get(),
        };
        Self {
            sectors: damaged.summary.sectors.get(),
            full: damaged.summary.is_widened,
            kept: damaged.summary.is_kept,
            ranges: damaged.ranges.iter().map(range).collect(),
        }
    }
}

/// How much is on that list, as JSON.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(crate) struct DamagedSummaryJson {
    pub(crate) sectors: u64,
    pub(crate) ranges: usize,
    pub(crate) full: bool,
    pub(crate) kept: bool,
}

impl From<DamagedSummary> for DamagedSummaryJson {
    fn from(damaged: DamagedSummary) -> Self {
        let DamagedSummary { sectors, ranges, is_widened, is_kept } = damaged;
        Self { sectors: sectors.get(), ranges, full: is_widened, kept: is_kept }
    }
}

/// What a journal has, as JSON.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct JournalJson {
    pub(crate) recovering: bool,
    pub(crate) open_transactions: usize,
    pub(crate) unplaced_sectors: usize,
}

impl JournalJson {
    fn of(journal: JournalStatus) -> Self {
        let JournalStatus { is_recovering, open, unplaced } = journal;
        Self { recovering: is_recovering, open_transactions: open, unplaced_sectors: unplaced }
    }
}

/// How far a rebuild is, as JSON.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct RebuildJson {
    pub(crate) drive: u8,
    pub(crate) done_stripes: u64,
    pub(crate) recorded_stripes: u64,
    pub(crate) stripes: u64,
    /// Null where the drive is filled from the beginning.
    pub(crate) missed_regions: Option<u64>,
}

impl RebuildJson {
    fn of(progress: RebuildProgress) -> Self {
        let RebuildProgress { drive, front, mark, stripes, regions: missed_regions, is_copied: _ } =
            progress;
        let drive = drive.as_usize() as u8;
        Self { drive, done_stripes: front, recorded_stripes: mark, stripes, missed_regions }
    }
}

/// How far a copy of a drive is, as JSON.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct CopyJson {
    pub(crate) drive: u8,
    /// The drive that is to have the place.
    pub(crate) member: Option<String>,
    pub(crate) left_regions: u64,
    pub(crate) regions: u64,
}

impl CopyJson {
    fn of(progress: CopyProgress, member: Option<String>) -> Self {
        let CopyProgress { drive, left, regions } = progress;
        Self { drive: drive.as_usize() as u8, member, left_regions: left, regions }
    }
}

/// How the verification of writes stands, as JSON.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct VerifyJson {
    pub(crate) mode: String,
    /// What the weakest of the drives promises.
    pub(crate) guarantee: String,
    pub(crate) writes: u64,
    pub(crate) verified: u64,
    pub(crate) superseded: u64,
    /// Given up.
    pub(crate) unverified: u64,
    pub(crate) waiting: u64,
    pub(crate) memory_bytes: u64,
    pub(crate) found: u64,
    pub(crate) mended: u64,
    pub(crate) not_mended: u64,
    pub(crate) delayed_percent: f64,
}

impl From<VerifyStatus> for VerifyJson {
    fn from(status: VerifyStatus) -> Self {
        Self {
            mode: status.mode.name().to_owned(),
            guarantee: status.guarantee.name().to_owned(),
            writes: status.writes,
            verified: status.verified,
            superseded: status.superseded,
            unverified: status.unverified,
            waiting: status.waiting,
            memory_bytes: status.memory_bytes,
            found: status.found,
            mended: status.mended,
            not_mended: status.not_mended,
            delayed_percent: status.delayed_percent,
        }
    }
}

impl VerifyJson {
    /// The same in a sentence.
    pub(crate) fn sentence(&self) -> String {
        let Self { mode, guarantee, writes, verified, waiting, found, mended, .. } = self;
        format!(
            "writes are read back ({mode}, {guarantee}): {verified} of {writes} verified, {waiting} wait, \
             {found} were not stored as sent, {mended} of them repaired"
        )
    }
}

/// A [`Status`] as JSON.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct StatusJson {
    pub(crate) array: String,
    pub(crate) uuid: String,
    pub(crate) size_bytes: u64,
    pub(crate) policy: String,
    pub(crate) state: String,
    pub(crate) forced: bool,
    /// Null where none is kept.
    pub(crate) journal: Option<JournalJson>,
    pub(crate) damaged: DamagedSummaryJson,
    /// Null where what is written is not read back.
    #[serde(default)]
    pub(crate) verify: Option<VerifyJson>,
    pub(crate) scrub: ScrubJson,
    /// Null where no drive is being filled.
    pub(crate) rebuild: Option<RebuildJson>,
    /// Null where no drive is being copied.
    #[serde(default)]
    pub(crate) copy: Option<CopyJson>,
    /// Null where nothing was asked for.
    pub(crate) rebuild_min_rate: Option<u64>,
    pub(crate) rebuild_paused: bool,
    pub(crate) spares: Vec<String>,
    pub(crate) synced_percent: f64,
    pub(crate) resync: String,
    pub(crate) outstanding: u32,
    pub(crate) mean_ms: f64,
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
    pub(crate) max_ms: f64,
    pub(crate) drives: Vec<DriveJson>,
    /// How redundancy is computed, for each class of computations.
    #[serde(default)]
    pub(crate) arithmetic: Vec<ArithmeticJson>,
    pub(crate) events: Vec<EventJson>,
    /// When this was so, since the array was started.
    pub(crate) at_seconds: f64,
    /// What the array counts, by the names of [`Counters`].
    #[serde(flatten)]
    pub(crate) counters: BTreeMap<String, Value>,
}

impl StatusJson {
    /// What the array has counted, in the order of [`Counters`].
    pub(crate) fn counted(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let known = Counters::default().table().map(|counter| counter.name);
        known.filter_map(|name| Some((name, self.counters.get(name)?.as_u64()?)))
    }
}

/// How one class of computations is done.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct ArithmeticJson {
    /// `one`, `few`, `many`, `many-by-many`, `tower` or `transform`.
    pub(crate) class: String,
    pub(crate) kernel: String,
    /// The kernel, the order of the sources, the width, what is fetched ahead and how results are stored.
    pub(crate) choice: String,
    /// How many choices were compared; 1 where nothing was measured.
    pub(crate) compared: usize,
    /// Bytes of sources a second when it was measured; null where it was not.
    pub(crate) bytes_per_second: Option<f64>,
    /// The same with what is taken unmeasured.
    pub(crate) unmeasured_bytes_per_second: Option<f64>,
}

/// How redundancy is computed.
pub(super) fn arithmetic(measured: &Measured) -> Vec<ArithmeticJson> {
    let of_class = |class: &MeasuredClass| ArithmeticJson {
        class: class.class.to_string(),
        kernel: class.choice.kernel.to_string(),
        choice: class.choice.to_string(),
        compared: class.choice_count,
        bytes_per_second: class.bytes_per_second.map(f64::round),
        unmeasured_bytes_per_second: class.unmeasured_bytes_per_second.map(f64::round),
    };
    measured.classes.iter().map(of_class).collect()
}

impl ArithmeticJson {
    pub(crate) fn sentence(&self) -> String {
        let Self { class, choice, compared, bytes_per_second, unmeasured_bytes_per_second, .. } =
            self;
        match (bytes_per_second, unmeasured_bytes_per_second) {
            (Some(bytes), Some(unmeasured)) => format!(
                "redundancy, {class}: {choice}; {:.1} GB/s, the best of {compared} within 3 %, {:.1} unmeasured",
                bytes / 1e9,
                unmeasured / 1e9
            ),
            (None, _) | (_, None) => format!("redundancy, {class}: {choice}; not measured"),
        }
    }
}

/// One drive of a [`StatusJson`].
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct DriveJson {
    pub(crate) drive: u8,
    /// `data` or `journal`.
    pub(crate) role: String,
    pub(crate) member: Option<String>,
    pub(crate) state: String,
    pub(crate) failure: Option<String>,
    /// Why the machine refuses its commands, which says nothing of the drive.
    #[serde(default)]
    pub(crate) refusal: Option<String>,
    pub(crate) queue: u64,
    pub(crate) commands: Option<u64>,
    pub(crate) first_pass_failures: Option<u64>,
    pub(crate) retries: Option<u64>,
    pub(crate) retry_rate_percent: Option<f64>,
    pub(crate) retry_latency_ms: Option<f64>,
    pub(crate) service_time_ms: Option<f64>,
    pub(crate) fast_fail: Option<String>,
    pub(crate) fast_fail_detail: Option<String>,
    /// Null where what is written is not read back.
    #[serde(default)]
    pub(crate) promise: Option<String>,
    pub(crate) sits_out: bool,
    pub(crate) silent: bool,
    pub(crate) median_ms: f64,
    /// What policies decide from.
    pub(crate) estimates: EstimatesJson,
    /// Commands inside the drive.
    pub(crate) inflight: u32,
    /// What it has done for the array, by the names of [`DriveCounters`](levelhead_array::DriveCounters).
    #[serde(flatten)]
    pub(crate) counters: BTreeMap<String, Value>,
}

impl DriveJson {
    /// What is counted under this name of [`DriveCounters`](levelhead_array::DriveCounters).
    pub(crate) fn counted(&self, name: &str) -> Option<u64> {
        self.counters.get(name)?.as_u64()
    }
}

/// What policies decide from: the names are those of docs/level.md and of the paper.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(crate) struct EstimatesJson {
    /// lambda, sub-requests a second.
    pub(crate) arrival_rate: f64,
    /// p_c.
    pub(crate) removal_percent: f64,
    /// q.
    pub(crate) queued: f64,
    /// p_f, of the health page.
    pub(crate) retry_rate_percent: f64,
    /// tau_retry, of the health page.
    pub(crate) retry_latency_ms: f64,
    /// tau_hdd.
    pub(crate) service_time_ms: f64,
    pub(crate) pace_ms: f64,
    pub(crate) failure_rate_percent: f64,
}

impl From<&DriveView> for EstimatesJson {
    fn from(view: &DriveView) -> Self {
        Self {
            arrival_rate: view.arrival_rate,
            removal_percent: view.removal * 100.0,
            queued: view.queued,
            retry_rate_percent: view.retry_rate * 100.0,
            retry_latency_ms: view.retry_latency * 1e3,
            service_time_ms: view.service_time * 1e3,
            pace_ms: view.pace * 1e3,
            failure_rate_percent: view.failure_rate * 100.0,
        }
    }
}

/// An [`EventsSince`] as JSON.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct EventsJson {
    pub(crate) events: Vec<EventJson>,
    /// Events before these that are not kept any more.
    pub(crate) missed: u64,
    /// Whether there will be no more.
    pub(crate) ended: bool,
}

impl From<&EventsSince> for EventsJson {
    fn from(EventsSince { events, missed, has_ended }: &EventsSince) -> Self {
        let events = events.iter().map(EventJson::from).collect();
        Self { events, missed: *missed, ended: *has_ended }
    }
}

impl From<&Status> for StatusJson {
    fn from(status: &Status) -> Self {
        let drives = (0_u8..).zip(&status.drives).map(|(drive, is)| DriveJson {
            drive,
            role: role_of(&status.spec, drive.into()).to_owned(),
            member: is.name.clone(),
            state: match is.state {
                DriveState::Present => "present",
                DriveState::Copying => "copying",
                DriveState::Filling => "filling",
                DriveState::CatchingUp => "catching-up",
                DriveState::Behind => "behind",
                DriveState::Failed => "failed",
                DriveState::Lost => "lost",
                DriveState::Removed => "removed",
                DriveState::Missing => "missing",
            }
            .to_owned(),
            failure: is.failure.clone(),
            refusal: is.refusal.clone(),
            queue: is.queue_len as u64,
            commands: is.health.and_then(|said| said.commands),
            first_pass_failures: is.health.and_then(|said| said.first_pass_failures),
            retries: is.health.and_then(|said| said.retries),
            retry_rate_percent: is.health.and_then(|said| said.retry_rate).map(percent),
            retry_latency_ms: is.health.and_then(|said| said.retry_latency_mean).map(millis),
            service_time_ms: is.health.and_then(|said| said.service_time_mean).map(millis),
            fast_fail: is.fast_fail.as_ref().map(|way| way.path.to_string()),
            fast_fail_detail: is.fast_fail.as_ref().map(|way| way.detail.clone()),
            promise: status.verify.map(|_| is.promise.name().to_owned()),
            sits_out: is.sits_out,
            silent: is.is_silent,
            median_ms: millis(is.figures.median),
            estimates: EstimatesJson::from(&is.view),
            inflight: is.inside,
            counters: by_name(is.counters.table()),
        });
        Self {
            array: status.spec.to_string(),
            uuid: status.uuid.to_string(),
            size_bytes: status.size.bytes().get(),
            policy: status.policy.to_string(),
            state: match status.state {
                ArrayState::Whole => "whole",
                ArrayState::Degraded => "degraded",
                ArrayState::Failed => "failed",
            }
            .to_owned(),
            forced: status.is_forced,
            journal: status.journal.map(JournalJson::of),
            damaged: status.damaged.into(),
            verify: status.verify.map(VerifyJson::from),
            scrub: ScrubJson::from(&status.scrub),
            rebuild: status.rebuild.map(RebuildJson::of),
            copy: status.copy.map(|copy| CopyJson::of(copy, status.coming.clone())),
            rebuild_min_rate: status.rebuild_wish.rate_min.map(Bytes::get),
            rebuild_paused: status.rebuild_wish.is_paused,
            spares: status.spares.clone(),
            synced_percent: percent(status.synced),
            resync: match status.resync {
                Resync::Idle => "idle",
                Resync::Running => "running",
                Resync::Stuck => "stuck",
            }
            .to_owned(),
            outstanding: status.outstanding,
            mean_ms: millis(status.latency.mean),
            p50_ms: millis(status.latency.p50),
            p99_ms: millis(status.latency.p99),
            max_ms: millis(status.latency.max),
            drives: drives.collect(),
            arithmetic: arithmetic(&status.arithmetic),
            events: status.events.iter().map(EventJson::from).collect(),
            at_seconds: status.at.as_nanos() as f64 / 1e9,
            counters: by_name(status.counters.table()),
        }
    }
}

fn by_name(counters: impl Iterator<Item = Counter>) -> BTreeMap<String, Value> {
    counters.map(|counter| (counter.name.to_owned(), counter.value.into())).collect()
}

fn percent(share: Ratio) -> f64 {
    share.get() * 100.0
}

fn millis(time: Nanos) -> f64 {
    time.as_millis_f64()
}
