//! `levelhead-lab plan checksums`: what `array create --checksums` costs, and which wrong sectors it finds.

use std::path::PathBuf;
use std::sync::Arc;

use levelhead_array::{Groups, Spec, TAG_MEMORY, TAG_MEMORY_EACH};
use levelhead_drive::Profile;
use levelhead_planner::checksums::{
    ACCEPTED, Share, capacity, known, read_before_scrub, slower, widened,
};
use levelhead_report::{Axis, Column, Figure, Series, Table};
use levelhead_units::Bytes;

use super::answer::{Answer, Row};
use crate::profiles;
use levelhead_app::{AppError, files};

/// What is asked. Shares of drives are those of a year; nothing stands for what was counted in the field.
#[derive(Clone, Debug)]
pub struct ChecksumsAsk {
    /// The array.
    pub array: Spec,
    /// Model of its drives: a name or a path.
    pub drive: String,
    /// The data that clients use at random; nothing stands for all of it.
    pub working_set: Option<Bytes>,
    /// Random reads a second that a drive completes without checksums when it is never idle.
    pub read_rate: f64,
    /// Small writes a second, as one of the drives that they change counts them.
    pub write_rate: f64,
    /// How often clients read all data in a year.
    pub reads: f64,
    /// How often all data is scrubbed in a year.
    pub scrubs: f64,
    /// Drives that develop rotten sectors.
    pub rot: Option<f64>,
    /// Rotten sectors of each of these.
    pub rot_sectors: f64,
    /// Drives that lose a write.
    pub lost: Option<f64>,
    /// Drives that misdirect a write.
    pub misdirected: Option<f64>,
    /// Where an HTML page goes, if anywhere.
    pub report: Option<PathBuf>,
}

/// Of study `array.faults`: runs with a wrong answer before the scrub and after it, in percent, without checksums and with, of windows
/// in which a drive loses 2 to 7 writes.
const BURSTS: [(&str, [f64; 2], [f64; 2]); 3] = [
    ("raid1:2", [75.1, 46.7], [12.2, 8.0]),
    ("raid5:2+1", [62.3, 46.6], [11.8, 9.3]),
    ("raid6:2+2", [48.8, 25.5], [8.1, 3.8]),
];

/// The share of single lost and of misdirected writes after which a client was given wrong data: no run of 12,000 each of study
/// `array.faults`, so that it is below 3 in 12,000 with a confidence of 95 %.
const NO_RUN: Share = Share { mean: 0.0, low: 0.0, high: 3.0 / 12_000.0 };

/// An array with checksums; sizes are in bytes.
struct Site {
    spec: Spec,
    profile: Arc<Profile>,
    groups: Groups,
    /// The part of its sectors that is data.
    data_share: f64,
    data: f64,
    /// The part of the data that clients use.
    used: f64,
    /// Of how much data memory has the tags.
    room: f64,
}

/// What checksums cost and find.
///
/// # Errors
///
/// The array cannot have checksums, there is no such drive, the data is smaller than its part, or the page cannot be written.
pub fn plan_checksums(ask: &ChecksumsAsk) -> Result<Answer, AppError> {
    if let Some(path) = &ask.report {
        files::check_place(path)?;
    }
    let site = Site::new(ask)?;
    let mut answer =
        Answer::new("checksums", "Cost of checksums, and the wrong sectors that they find");
    answer.facts = vec![
        ("array", site.spec.to_string()),
        ("drive", format!("{}, {}", site.profile.name(), bytes(site.size()))),
        ("data", format!("{}, {} in use at random", bytes(site.data), bytes(site.used))),
        (
            "in a year",
            format!("data is read {} times and scrubbed {} times", ask.reads, ask.scrubs),
        ),
    ];
    answer.assumptions = ASSUMPTIONS.map(str::to_owned).to_vec();
    section(&mut answer, "cost in space", site.space());
    time(&mut answer, &site, ask);
    section(&mut answer, "faults in a year", faults(&site, ask));
    bursts(&mut answer, &site.spec);
    let then = match site.spec.redundant() * site.spec.expansion() {
        1 => "cannot locate it: it reports the stripe and repairs nothing",
        _ => {
            "repairs it, but writes over right data if a small write has used the wrong sector since"
        }
    };
    answer.remarks = vec![
        "Without scrubs and checksums, every wrong sector is answered when it is read.".to_owned(),
        format!("Without checksums, a scrub that finds a wrong sector {then}."),
        "Half of the drives with rot have 3 such sectors at most: the mean comes from a few drives with many.".to_owned(),
    ];
    answer.with_report(ask.report.as_deref())
}

impl Site {
    fn new(ask: &ChecksumsAsk) -> Result<Self, AppError> {
        let spec =
            ask.array.with_checksums().map_err(|error| AppError::usage(error.to_string()))?;
        let profile = profiles::load(&ask.drive)?;
        let groups = spec.tag_groups().expect("it has checksums");
        let data_share = spec.data() as f64 / spec.width() as f64;
        let all = spec.drives() as f64 * profile.size().bytes().get() as f64;
        let data = all * data_share * (1.0 - capacity(groups.data().get()));
        let used = ask.working_set.map_or(data, |used| used.get() as f64);
        if used > data {
            let [used, data] = [used, data].map(bytes);
            let sentence = format!("a working set of {used} is more than the {data} of the array");
            return Err(AppError::usage(sentence));
        }
        let each = TAG_MEMORY_EACH.get() as f64 / groups.data().bytes().get() as f64;
        let room = TAG_MEMORY.get() as f64 / each * data_share;
        Ok(Self { spec, profile, groups, data_share, data, used, room })
    }

    /// The size of a drive.
    fn size(&self) -> f64 {
        self.profile.size().bytes().get() as f64
    }

    fn space(&self) -> Vec<Row> {
        let tags = capacity(self.groups.data().get());
        let each = TAG_MEMORY.get() as f64 / self.room;
        let size = |case: &str, metric: &str, bytes: f64| Row::new(case, metric, "MB", bytes / 1e6);
        let known = known(self.room, self.used) * 100.0;
        vec![
            Row::new("tag sectors", "share of each drive", "%", tags * 100.0),
            size("tag sectors", "on each drive", self.size() * tags),
            size("memory for all tags", "for a TB of drives", each * self.data_share * 1e12),
            size("memory for all tags", "for the array", each * self.data),
            size("memory that an array has", "for tags", TAG_MEMORY.get() as f64),
            size("memory that an array has", "for the tags of so much data", self.room),
            Row::new("memory that an array has", "for a share of the data in use", "%", known),
        ]
    }
}

/// A load with something more in each of its commands, over the same one without.
type Over<'a> = &'a dyn Fn(f64) -> f64;

fn time(answer: &mut Answer, site: &Site, ask: &ChecksumsAsk) {
    let (read, group) = (site.profile.random_read(), site.groups.data().get());
    let sectors = widened(group, site.groups.before().get());
    let extra = sectors * read.sector.as_secs_f64();
    let idle = |extra: f64| 1.0 + extra / read.total().as_secs_f64();
    let reads = |extra: f64| slower(ask.read_rate, extra);
    let writes = |extra: f64| slower(ask.write_rate, extra);
    let loads: [(&str, &str, Over<'_>); 3] = [
        ("random reads, idle drive", "mean over none", &idle),
        ("random reads, busy drive", "rate over none", &reads),
        ("small writes, busy drive", "rate over none", &writes),
    ];
    let mut rows = vec![
        Row::new("random read without its tag", "sectors more", "count", sectors),
        Row::new("random read without its tag", "time more", "ms", extra * 1e3),
        Row::new("random reads, idle drive", "mean without", "ms", read.total().as_millis_f64()),
    ];
    let mut curves = Vec::new();
    for (load, metric, over) in loads {
        let at = |known: f64| over(extra * (1.0 - known));
        let known = known(site.room, site.used);
        rows.push(Row::new(load, format!("{metric}, no tag in memory"), "x", at(0.0)));
        rows.push(Row::new(load, format!("{metric}, tags as above"), "x", at(known)));
        let shares = (0..=20).map(|share| f64::from(share) / 20.0);
        let curve: Vec<_> = shares.map(|known| (known, at(known))).collect();
        curves.push(Series::line(format!("{load}, {metric}"), curve));
    }
    rows.push(Row::new("long sequential reads", "rate over none", "x", 1.0 - capacity(group)));
    section(answer, "cost in time", rows);
    let (x, y) = (Axis::linear("share of tags in memory"), Axis::linear("over none"));
    answer.figures = vec![Figure::lines("Cost by the share of tags in memory", x, y, curves)];
}

fn faults(site: &Site, ask: &ChecksumsAsk) -> Vec<Row> {
    let of_field = |given: Option<f64>, field: Share| given.map_or(field, Share::exactly);
    let kinds = [
        ("rot", of_field(ask.rot, Share::rot()), ask.rot_sectors, Share::exactly(ACCEPTED)),
        ("lost write", of_field(ask.lost, Share::misplaced()), 1.0, NO_RUN),
        // Two sectors: where it should be is the old data, and where it is was something else.
        ("misdirected write", of_field(ask.misdirected, Share::misplaced()), 2.0, NO_RUN),
    ];
    let drives = Share::exactly(site.spec.drives() as f64);
    let unseen = Share::exactly(read_before_scrub(ask.reads / ask.scrubs));
    let petabyte = Share::exactly(1e15 / (ask.reads * site.data));
    let rows = kinds.into_iter().flat_map(|(kind, share, each, accepted)| {
        let hit = share.times(drives);
        let wrong = hit.times(Share::exactly(each * site.data_share));
        let figures = [
            ("drives with it", hit),
            ("wrong sectors of data", wrong),
            ("wrong sectors of data, for a PB read", wrong.times(petabyte)),
            ("answered, scrubs alone", wrong.times(unseen)),
            ("answered, checksums", wrong.times(accepted)),
        ];
        figures
            .map(|(metric, of)| Row::new(kind, metric, "count", of.mean).between(of.low, of.high))
    });
    rows.collect()
}

/// What stays wrong with checksums.
fn bursts(answer: &mut Answer, spec: &Spec) {
    let at = if spec.redundant() > 1 { 2 } else { usize::from(!spec.is_mirror()) };
    let (array, without, with) = BURSTS[at];
    let of = |case: &'static str, [before, after]: [f64; 2]| {
        [("before", before), ("after", after)]
            .map(|(when, runs)| Row::new(case, format!("wrong answer {when} the scrub"), "%", runs))
    };
    let rows = [of("without checksums", without), of("with checksums", with)].concat();
    section(answer, "not promised: a drive loses 2 to 7 writes in a row", rows);
    let source = "writes lost in a row: runs of study array.faults";
    answer.assumptions.push(format!("{source}, {array}; no rate of such drives is published"));
}

const ASSUMPTIONS: [&str; 7] = [
    "unless given, drives with rot are 3,088 of 358,000 nearline drives, with 104 sectors each on average, and 365 of 1.53 million \
     drives have a lost or a misdirected write, half of them each: Bairavasundaram and others, FAST 2008, in 22 months on average; \
     the range is for 41 and 17 months, and at most all of the 365 are nearline drives",
    "CRC-32C accepts one corrupt sector in 2^32; after single lost and misdirected writes no run of study array.faults had a wrong \
     answer, which makes it less than 3 in 12,000; no power is cut beside a fault (docs/array.md)",
    "a wrong sector is not written before it is read, and wrong redundancy is not answered",
    "sectors are read and used alike, and reads are of 4 KiB",
    "the rates of busy drives, unless given, are those of study array.checksums: 1,130 reads of six drives a second, and 270 small \
     writes that change two of six",
    "a tag sector is written later, when the drive is idle: about 5 ms for each group with writes (study array.checksums), which is \
     not in the rates",
    "sizes include the journal and other reserved places",
];

/// Shows rows as a table, too.
fn section(answer: &mut Answer, caption: &'static str, rows: Vec<Row>) {
    let columns = [Column::left(""), Column::left("figure"), Column::right("value")];
    let has_ranges = rows.iter().any(|row| row.low < row.high);
    let range = has_ranges.then(|| Column::left("range"));
    let mut table = Table::new(columns.into_iter().chain(range));
    let mut last = "";
    for Row { case, metric, unit, ours, low, high, .. } in &rows {
        let text = |value: f64| match *unit {
            "MB" => bytes(value * 1e6),
            "count" if value <= 0.0 => "0".to_owned(),
            "count" if value < 1e-3 => format!("{value:.1e}"),
            "count" => format!("{value:.4}"),
            unit => format!("{value:.3} {unit}"),
        };
        let shown = if case == last { "" } else { case };
        let cells = [shown.to_owned(), metric.clone(), text(*ours)];
        let range =
            if low < high { format!("{} to {}", text(*low), text(*high)) } else { String::new() };
        table.push(cells.into_iter().chain(has_ranges.then_some(range)));
        last = case;
    }
    answer.tables.push((caption, table));
    answer.rows.extend(rows);
}

/// Bytes in the decimal units of drives.
fn bytes(value: f64) -> String {
    let units = [("TB", 1e12), ("GB", 1e9), ("MB", 1e6)];
    let (unit, size) = units.into_iter().find(|(_, size)| value >= *size).unwrap_or(("kB", 1e3));
    format!("{:.3} {unit}", value / size)
}
