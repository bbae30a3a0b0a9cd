//! `levelhead array check`: whether an array that is not served is as it should be.

use std::sync::{Mutex, PoisonError};

use levelhead_erasure::Kernel;
use levelhead_host::{CheckOptions, Checked, Finding, MemberSpec, SumsChecked, Which, words};
use levelhead_report::json;
use levelhead_units::{DriveIdx, DriveSet, Extent};
use serde::Serialize;

use super::drives::{Drives, LeftOutJson};
use super::health::{self, Health};
use levelhead_app::{AppError, Progress, Show, Task};

/// Which array, and how.
#[derive(Clone, Debug)]
pub struct Check {
    /// Its drives.
    pub drives: Drives,
    /// Which code does the arithmetic: the one with the most instructions of this processor, unmeasured, if
    /// nothing else is asked for.
    pub kernel: Option<Kernel>,
}

/// What a check has found.
#[derive(Debug, Serialize)]
pub struct CheckedArray {
    uuid: String,
    array: String,
    size_bytes: u64,
    stopped_in_order: bool,
    drives: Vec<Option<String>>,
    left_out: Vec<LeftOutJson>,
    doubt: Option<String>,
    journal: Option<JournalJson>,
    codewords: CodewordsJson,
    /// Null where the array has no checksums.
    checksums: Option<SumsJson>,
    findings: Vec<FindingJson>,
    findings_beyond: u64,
    #[serde(skip)]
    health: Health,
    read_bytes: u64,
    seconds: f64,
    megabytes_per_second: f64,
}

#[derive(Debug, Serialize)]
struct JournalJson {
    records: usize,
    transactions: usize,
    dropped: usize,
    sectors: usize,
}

#[derive(Debug, Serialize)]
struct CodewordsJson {
    right: u64,
    wrong: u64,
    unknown: u64,
    unsynced: u64,
    unsynced_wrong: u64,
    announced: u64,
}

/// Sectors of the drives that have checksums.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct SumsJson {
    compared: u64,
    corrupt: u64,
    without: u64,
    bad_tags: u64,
}

impl SumsJson {
    pub(crate) fn of(sums: SumsChecked) -> Self {
        let SumsChecked { compared, corrupt, without, bad_tags } = sums;
        Self { compared, corrupt, without, bad_tags }
    }

    /// A line.
    pub(crate) fn text(self) -> String {
        let Self { compared, corrupt, without, bad_tags } = self;
        let sectors = words::counted(compared, "sector");
        let tags = words::counted(bad_tags, "bad tag sector");
        format!(
            "checksums: {sectors} compared, {corrupt} corrupt, {without} without checksum, {tags}\n"
        )
    }
}

#[derive(Debug, Serialize)]
struct FindingJson {
    kind: &'static str,
    /// Null where one of several drives is wrong and nothing says which.
    drive: Option<usize>,
    drives: Vec<usize>,
    member: Option<String>,
    on_drive: Option<SpanJson>,
    in_array: Option<SpanJson>,
    detail: String,
}

#[derive(Clone, Copy, Debug, Serialize)]
struct SpanJson {
    first_sector: u64,
    sectors: u64,
}

/// Looks at all of an array, and changes nothing.
pub fn check(ask: &Check, progress: &dyn Progress) -> Result<CheckedArray, AppError> {
    let kernel = super::serve::kernel(ask.kernel)?;
    let task: Mutex<Option<Box<dyn Task>>> = Mutex::new(None);
    let note = |done: u64, total: u64| {
        let mut task = task.lock().unwrap_or_else(PoisonError::into_inner);
        task.get_or_insert_with(|| progress.begin("check", total)).reach(done);
    };
    let checked = ask.drives.with_which(|which: Which<'_>| {
        levelhead_host::check(which, CheckOptions { kernel }, &note).map_err(health::of_refusal)
    })?;
    Ok(CheckedArray::of(&checked))
}

impl CheckedArray {
    /// How well the array is.
    pub fn health(&self) -> &Health {
        &self.health
    }

    fn of(checked: &Checked) -> Self {
        let seconds = checked.took.as_secs_f64();
        let name = |member: &MemberSpec| member.to_string();
        let findings = checked.findings.named.iter();
        Self {
            uuid: checked.uuid.to_string(),
            array: checked.spec.to_string(),
            size_bytes: checked.size.bytes().get(),
            stopped_in_order: checked.is_clean,
            drives: checked.drives.iter().map(|drive| drive.as_ref().map(name)).collect(),
            left_out: checked.left_out.iter().map(LeftOutJson::of).collect(),
            doubt: checked.doubt.clone(),
            journal: checked.journal.map(|journal| JournalJson {
                records: journal.records,
                transactions: journal.transactions,
                dropped: journal.dropped,
                sectors: journal.sectors,
            }),
            codewords: CodewordsJson {
                right: checked.codewords.right,
                wrong: checked.codewords.wrong,
                unknown: checked.codewords.unknown,
                unsynced: checked.codewords.unsynced,
                unsynced_wrong: checked.codewords.unsynced_wrong,
                announced: checked.codewords.announced,
            },
            checksums: checked.sums.map(SumsJson::of),
            findings: findings.map(|finding| FindingJson::of(finding, &checked.drives)).collect(),
            findings_beyond: checked.findings.beyond,
            health: health_of(checked),
            read_bytes: checked.read.get(),
            seconds,
            megabytes_per_second: checked.read.get() as f64 / 1e6 / seconds.max(1e-9),
        }
    }
}

fn health_of(checked: &Checked) -> Health {
    let mut health = Health::HEALTHY;
    let count = checked.findings.named.len() as u64 + checked.findings.beyond;
    if count > 0 {
        let (things, are) = (words::counted(count, "thing"), words::is_or_are(count));
        health.note(format!("{things} {are} wrong with the array"));
    }
    let is_there = |drive: &DriveIdx| checked.drives[drive.as_usize()].is_some();
    let filling: DriveSet = checked.absent.iter().filter(is_there).collect();
    for (drives, how) in [(checked.absent.without(filling), "missing"), (filling, "being rebuilt")]
    {
        if !drives.is_empty() {
            health.note(format!("{} {how}", words::drives_are(drives)));
        }
    }
    let unsynced = checked.codewords.unsynced;
    if unsynced > 0 {
        let codewords = words::counted(unsynced, "codeword");
        health.note(format!("the redundancy of {codewords} is not valid yet"));
    }
    health
}

impl FindingJson {
    fn of(finding: &Finding, members: &[Option<MemberSpec>]) -> Self {
        let drives: Vec<usize> = finding.drives.iter().map(DriveIdx::as_usize).collect();
        let drive = (drives.len() == 1).then(|| drives[0]);
        let member = drive.and_then(|drive| members[drive].as_ref()).map(ToString::to_string);
        let (on_drive, in_array) = (finding.on_drive.map(span), finding.in_array.map(span));
        let (kind, detail) = (finding.kind.name(), finding.detail.clone());
        Self { kind, drive, drives, member, on_drive, in_array, detail }
    }

    fn sentence(&self) -> String {
        let place = match (self.drive, &self.member) {
            (Some(drive), Some(member)) => format!("drive {drive} ({member})"),
            (Some(drive), None) => format!("drive {drive}"),
            (None, _) => words::numbered(&self.drives),
        };
        let on_drive = self.on_drive.map_or(String::new(), |span| format!(", {}", span.text()));
        let in_array =
            self.in_array.map_or(String::new(), |span| format!(", {} of the array", span.text()));
        format!("{}: {place}{on_drive}{in_array}: {}", self.kind, self.detail)
    }
}

impl SpanJson {
    fn text(self) -> String {
        let Self { first_sector: first, sectors } = self;
        match sectors {
            1 => format!("sector {first}"),
            _ => format!("sectors {first} to {}", first + sectors - 1),
        }
    }
}

fn span(extent: Extent) -> SpanJson {
    SpanJson { first_sector: extent.lba.get(), sectors: extent.sectors.get() }
}

impl Show for CheckedArray {
    fn text(&self) -> String {
        let Self { array, uuid, .. } = self;
        let mut text = format!("array: {array}, {uuid}\n");
        let is_missing = |at: &usize| self.drives[*at].is_none();
        let missing: Vec<usize> = (0..self.drives.len()).filter(is_missing).collect();
        if !missing.is_empty() {
            let (drives, are) = (words::numbered(&missing), words::is_or_are(missing.len()));
            text.push_str(&format!("{drives} {are} missing\n"));
        }
        for left in &self.left_out {
            text.push_str(&format!("left out: {}\n", left.reason));
        }
        if let Some(doubt) = &self.doubt {
            text.push_str(&format!("would not be served: {doubt}\n"));
        }
        if let Some(journal) = &self.journal {
            let JournalJson { records, transactions, dropped, sectors } = journal;
            text.push_str(&format!(
                "journal: {}, {} with {} to be put in place, {dropped} that {} as never begun\n",
                words::counted(*records, "record"),
                words::counted(*transactions, "transaction"),
                words::counted(*sectors, "sector"),
                if *dropped == 1 { "counts" } else { "count" }
            ));
        }
        let CodewordsJson { right, wrong, unknown, unsynced, unsynced_wrong, announced } =
            &self.codewords;
        let one = |count: u64, one: &'static str, more| if count == 1 { one } else { more };
        let (agree, not) = (one(*right, "agrees", "agree"), one(*wrong, "does not", "do not"));
        text.push_str(&format!("codewords: {right} {agree}, {wrong} {not}"));
        if *unknown > 0 {
            let have = one(*unknown, "has", "have");
            text.push_str(&format!(", {unknown} {have} nothing left to agree with"));
        }
        if *unsynced > 0 {
            let (are, not) = (words::is_or_are(*unsynced), words::is_or_are(*unsynced_wrong));
            text.push_str(&format!(
                ", {unsynced} {are} not synced yet, of which {unsynced_wrong} {not} wrong"
            ));
        }
        if *announced > 0 {
            let (were, are) = (one(*announced, "was", "were"), words::is_or_are(*announced));
            text.push_str(&format!(
                ", {announced} {were} being written and {are} repaired at the next start"
            ));
        }
        text.push('\n');
        if let Some(sums) = self.checksums {
            text.push_str(&sums.text());
        }
        text.push_str(&format!(
            "read: {:.0} MB in {:.1} s, {:.0} MB/s\n",
            self.read_bytes as f64 / 1e6,
            self.seconds,
            self.megabytes_per_second
        ));
        for finding in &self.findings {
            text.push_str(&format!("{}\n", finding.sentence()));
        }
        if self.findings_beyond > 0 {
            text.push_str(&format!(
                "and {} more\n",
                words::counted(self.findings_beyond, "finding")
            ));
        }
        match self.health.is_healthy() {
            true => text.push_str("nothing is wrong\n"),
            false => text.push_str(&format!("{}\n", self.health.sentence())),
        }
        text
    }

    fn json(&self) -> String {
        json::pretty(self).expect("numbers and names are JSON")
    }
}
