//! The cost of checksums: MD over dm-integrity and our array with checksums, each compared with itself without them.
//!
//! Closed loops of 4 KiB requests at random places, over emulated drives with the mechanics of [`PROFILE`] and a
//! thousandth of its tracks. Drives are small because each of them is prepared in full: `integritysetup` writes every
//! sector once, and our initial sync is complete.
//!
//! * I1: all systems get requests for the same places in the same order, with as many in flight.
//! * I2: the drives' commands are counted by the guest's kernel (MD) or by our array; up to the last answer, and
//!   again once nothing waits to be written: after 30 s, and after MD and dm-integrity have stopped.
//! * I3: no load finds tags in memory that the preparation or another load has read: our array is restarted after the
//!   sync, dm-integrity is reopened after each load, and the places of the loads differ. Our array is not restarted
//!   between loads, and so keeps the few tags that it has read.

use std::fmt;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use levelhead_units::Bytes;
use serde::{Deserialize, Serialize};
use tempfile::TempDir;

use crate::guest::letters;
use crate::process::{Stop, output};
use crate::rig::{CONTROL, Rig, Server, WINDOW};
use crate::sample::Sample;
use crate::scenario::{DRIVES, PROFILE};
use crate::table::{Versions, digits, millis};

/// The profile of a whole drive.
const WHOLE_PROFILE: &str = include_str!("../../../crates/drive/profiles/nearline-2tb.toml");

/// Lines of it, and those of a drive with a thousandth of the tracks.
const SMALLER: [(&str, &str); 2] =
    [("\nheads = 5 ", "\nheads = 2 "), ("\ncylinders = 16040\n", "\ncylinders = 40\n")];

/// Size of a drive.
const DRIVE_SIZE: Bytes = Bytes::new(1860 << 20);

/// Requests begin below this byte, which every system has.
const SPAN: Bytes = Bytes::new(8600 << 20);

const CHUNK: Bytes = Bytes::new(64 << 10);

/// Requests in flight.
const DEPTH: usize = 4;

/// Time limit for a guest to prepare its disks.
const PREPARE_MAX: Duration = Duration::from_secs(1200);

/// Time limit for a load, and for the writes that follow it.
const LOAD_MAX: Duration = Duration::from_secs(1200);

/// Time limit for the initial sync.
const SYNC_MAX: Duration = Duration::from_secs(1200);

/// Time limit for one command to our array.
const STATUS_MAX: Duration = Duration::from_secs(30);

/// Time between two queries of our array.
const PERIOD: Duration = Duration::from_secs(1);

/// The loads: names of the client, and of the table.
const LOADS: [(&str, &str); 3] =
    [("read", "reads"), ("write", "writes"), ("durable-write", "durable writes")];

/// A system that is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum System {
    /// MD, over dm-integrity in this mode if one is given.
    Md(Option<&'static str>),
    Ours {
        checksums: bool,
    },
}

/// Each system without checksums comes before the same system with them.
const SYSTEMS: [System; 6] = [
    System::Md(None),
    System::Md(Some("journal")),
    System::Md(Some("bitmap")),
    System::Md(Some("direct")),
    System::Ours { checksums: false },
    System::Ours { checksums: true },
];

impl System {
    fn name(self) -> String {
        match self {
            Self::Md(None) => "MD".to_owned(),
            Self::Md(Some(mode)) => format!("MD over dm-integrity, {mode}"),
            Self::Ours { checksums: false } => "Levelhead".to_owned(),
            Self::Ours { checksums: true } => "Levelhead with checksums".to_owned(),
        }
    }

    /// Whether the systems after it are compared with it.
    fn is_base(self) -> bool {
        matches!(self, Self::Md(None) | Self::Ours { checksums: false })
    }
}

/// Commands of all drives of a system since their start, or the mean of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
struct Work {
    reads: f64,
    writes: f64,
    flushes: f64,
    kib: f64,
    /// Time in which a drive had at least one command inside, added up over the drives.
    busy_ms: f64,
}

impl Work {
    fn plus(self, other: Self, sign: f64) -> Self {
        Self {
            reads: self.reads + sign * other.reads,
            writes: self.writes + sign * other.writes,
            flushes: self.flushes + sign * other.flushes,
            kib: self.kib + sign * other.kib,
            busy_ms: self.busy_ms + sign * other.busy_ms,
        }
    }

    /// The mean of so many requests since `from`.
    fn since(self, from: Self, requests: f64) -> Self {
        let all = self.plus(from, -1.0);
        Self {
            reads: all.reads / requests,
            writes: all.writes / requests,
            flushes: all.flushes / requests,
            kib: all.kib / requests,
            busy_ms: all.busy_ms / requests,
        }
    }

    /// From the guest's line about one disk: `disk` and the kernel's `stat` of the block device.
    fn of_disk(line: &str) -> Option<Self> {
        let fields: Vec<f64> = line
            .strip_prefix("disk ")?
            .split_whitespace()
            .map_while(|word| word.parse().ok())
            .collect();
        let &[reads, _, read, _, writes, _, written, _, _, busy_ms, _, _, _, _, _, flushes, ..] =
            fields.as_slice()
        else {
            return None;
        };
        // The kernel counts in 512 bytes.
        let kib = (read + written) / 2.0;
        Some(Self { reads, writes, flushes, kib, busy_ms })
    }
}

/// The fields of `array status --json` that are used.
#[derive(Deserialize)]
struct Status {
    drives: Vec<DriveStatus>,
}

#[derive(Deserialize)]
struct DriveStatus {
    reads: u64,
    writes: u64,
    flushes: u64,
    read_bytes: u64,
    written_bytes: u64,
    /// In nanoseconds.
    busy: u64,
}

impl From<Status> for Work {
    fn from(status: Status) -> Self {
        status.drives.iter().fold(Self::default(), |sum, drive| {
            let one = Self {
                reads: drive.reads as f64,
                writes: drive.writes as f64,
                flushes: drive.flushes as f64,
                kib: (drive.read_bytes + drive.written_bytes) as f64 / 1024.0,
                busy_ms: drive.busy as f64 / 1e6,
            };
            sum.plus(one, 1.0)
        })
    }
}

/// Result of one load on one system.
#[derive(Debug, Serialize)]
struct Row {
    load: &'static str,
    system: String,
    is_base: bool,
    requests_per_second: f64,
    mean_ms: f64,
    p50_ms: f64,
    p99_ms: f64,
    /// Commands of the drives for each request, up to the last answer.
    until_answered: Work,
    /// The same, with the writes that follow.
    until_settled: Work,
}

/// Results of one call.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    drives: String,
    guest: Versions,
    seed: u64,
    depth: usize,
    /// Requests of one load.
    requests: u64,
    rows: Vec<Row>,
}

/// Runs `count` requests of every load on every system.
pub(crate) fn compare(
    rig: &Rig,
    versions: Versions,
    count: u64,
    stop: &Stop,
) -> Result<Report, String> {
    let mut rows = Vec::new();
    for system in SYSTEMS {
        eprintln!("{}", system.name());
        rows.extend(run(rig, system, count, stop)?);
    }
    let place = |row: &Row| LOADS.iter().position(|(_, name)| *name == row.load);
    rows.sort_by_key(place);
    let drives = format!("{DRIVES} emulated {PROFILE} with a thousandth of the tracks");
    Ok(Report { drives, guest: versions, seed: rig.seed, depth: DEPTH, requests: count, rows })
}

fn run(rig: &Rig, system: System, count: u64, stop: &Stop) -> Result<Vec<Row>, String> {
    let folder = rig.folder()?;
    let members = members(&folder, rig.seed)?;
    let (mut servers, mut disks) = match system {
        System::Md(_) => rig.drives(&folder, &members, stop)?,
        System::Ours { checksums: false } => {
            rig.array(&folder, &members, CHUNK, "--assume-clean", stop)?
        }
        System::Ours { checksums: true } => {
            rig.array(&folder, &members, CHUNK, "--checksums", stop)?
        }
    };
    if matches!(system, System::Ours { .. }) {
        wait_for_sync(rig, &folder, &mut servers, stop)?;
        // Without the tags that the sync has left in memory.
        let mut end = Command::new(&rig.levelhead);
        end.args(["array", "stop", "--quiet"]).arg(folder.path().join(CONTROL));
        output(&mut end, STATUS_MAX, stop)?;
        drop(servers);
        (servers, disks) = rig.serve(&folder, &members, stop)?;
    }
    let words = arguments(system, disks.len(), count, rig.seed);
    let mut machine = rig.guest.boot(&words, &disks, folder.path())?;
    let mut wait = |what: &str, limit, last: &str| {
        machine.wait(what, limit, last, stop, &mut || {
            servers.iter_mut().try_for_each(|server| server.running.check())
        })?;
        // Counters of disks come before the line that is waited for.
        let end = machine.said().iter().position(|line| line == last).unwrap_or(0);
        Ok::<_, String>(machine.said()[..=end].to_vec())
    };
    wait("preparing the guest", PREPARE_MAX, "ready")?;
    let mut rows = Vec::new();
    for (load, name) in LOADS {
        let mut at = |point: &str| {
            let said = wait(point, LOAD_MAX, &format!("{load}-{point}"))?;
            let work = match system {
                System::Md(_) => counters(&said)?,
                System::Ours { .. } => status(rig, folder.path(), stop)?,
            };
            Ok::<_, String>((work, said))
        };
        let (begun, _) = at("begun")?;
        let (ended, said) = at("ended")?;
        let (settled, _) = at("settled")?;
        let from = said.iter().rposition(|line| line.starts_with("begin "));
        let sample = Sample::parse(said[from.unwrap_or(0)..].iter().map(String::as_str))?;
        let elapsed = sample.last_answer();
        // Every request of a closed loop is answered.
        let latency = sample.figures(elapsed)?.latency;
        let requests = latency.count as f64;
        rows.push(Row {
            load: name,
            system: system.name(),
            is_base: system.is_base(),
            requests_per_second: requests / (elapsed.as_millis_f64() / 1e3),
            mean_ms: millis(latency.mean),
            p50_ms: millis(latency.p50),
            p99_ms: millis(latency.p99),
            until_answered: ended.since(begun, requests),
            until_settled: settled.since(begun, requests),
        });
    }
    Ok(rows)
}

/// Names of emulated drives in `folder`, where their profile is written to.
fn members(folder: &TempDir, seed: u64) -> Result<Vec<String>, String> {
    let profile = folder.path().join("small.toml");
    fs::write(&profile, small_profile())
        .map_err(|error| format!("{}: {error}", profile.display()))?;
    let (profile, size) = (profile.display(), DRIVE_SIZE.get());
    let member = |drive| {
        let path = folder.path().join(format!("drive-{drive}.img"));
        format!("emu:{}?profile={profile}&size={size}&seed={seed}", path.display())
    };
    Ok((0..DRIVES).map(member).collect())
}

fn small_profile() -> String {
    SMALLER.iter().fold(WHOLE_PROFILE.to_owned(), |text, (whole, small)| {
        assert!(text.contains(whole), "the profile has other lines");
        text.replace(whole, small)
    })
}

/// Words for the guest's kernel.
fn arguments(system: System, disks: usize, count: u64, seed: u64) -> String {
    let kinds = LOADS.map(|(kind, _)| kind).join(",");
    let (chunk, disks, span) = (CHUNK.get() >> 10, letters(disks), SPAN.get());
    let system = match system {
        System::Md(None) => "md".to_owned(),
        System::Md(Some(mode)) => format!("md md_tags={mode}"),
        System::Ours { .. } => "ours".to_owned(),
    };
    format!(
        "md_system={system} md_chunk_kib={chunk} md_disks={disks} md_closed={kinds} \
         md_load={DEPTH},{count},{span},{seed}"
    )
}

/// Waits until the initial sync is complete and all drives are idle.
fn wait_for_sync(
    rig: &Rig,
    folder: &TempDir,
    servers: &mut [Server],
    stop: &Stop,
) -> Result<(), String> {
    let mut last = Work::default();
    stop.wait("the initial sync", SYNC_MAX, || {
        servers.iter_mut().try_for_each(|server| server.running.check())?;
        thread::sleep(PERIOD);
        let mut check = Command::new(&rig.levelhead);
        check.args(["array", "status", "--check"]).arg(folder.path().join(CONTROL));
        let checked =
            check.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
        let is_synced = checked.map_err(|error| format!("array status: {error}"))?.success();
        let now = status(rig, folder.path(), stop)?;
        let is_idle = now == last;
        last = now;
        Ok(is_synced && is_idle)
    })
}

fn status(rig: &Rig, folder: &Path, stop: &Stop) -> Result<Work, String> {
    let mut command = Command::new(&rig.levelhead);
    command.args(["array", "status", "--json"]).arg(folder.join(CONTROL));
    let text = output(&mut command, STATUS_MAX, stop)?;
    let status: Status =
        serde_json::from_str(&text).map_err(|error| format!("array status: {error}"))?;
    Ok(status.into())
}

/// Sum of the guest's last counters of its disks.
fn counters(said: &[String]) -> Result<Work, String> {
    let disks = said.iter().rev().filter(|line| line.starts_with("disk ")).take(DRIVES);
    let mut sum = Work::default();
    for line in disks {
        let one = Work::of_disk(line)
            .ok_or_else(|| format!("expected a disk's counters, got '{line}'"))?;
        sum = sum.plus(one, 1.0);
    }
    Ok(sum)
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { drives, guest, seed, depth, requests, rows } = self;
        let size = DRIVE_SIZE.short();
        writeln!(f, "* {drives}: {size}, at most {WINDOW} commands in each; seed {seed}")?;
        writeln!(
            f,
            "* RAID-5 of 5+1 in chunks of {} KiB; {requests} requests of each kind, {depth} in flight",
            CHUNK.get() >> 10
        )?;
        writeln!(f, "* MD: Linux {}, {}, {}", guest.kernel, guest.mdadm, guest.integritysetup)?;
        writeln!(f, "* Guest: {}, TCG, one CPU", guest.qemu)?;
        write!(f, "\n| 4 KiB, random | system | requests/s | over none | mean ms | p99 ms ")?;
        write!(
            f,
            "| reads, writes, flushes of drives a request | KiB | drive ms | the same, settled "
        )?;
        writeln!(f, "| KiB | drive ms | over none |")?;
        writeln!(f, "|-|-|-:|-:|-:|-:|-:|-:|-:|-:|-:|-:|-:|")?;
        let mut base = None;
        for row in rows {
            if row.is_base {
                base = Some(row);
            }
            let base = base.expect("the first system has no checksums");
            let rate = row.requests_per_second / base.requests_per_second;
            let busy = row.until_settled.busy_ms / base.until_settled.busy_ms;
            let cells = [
                row.load.to_owned(),
                row.system.clone(),
                digits(row.requests_per_second),
                format!("{rate:.2}"),
                digits(row.mean_ms),
                digits(row.p99_ms),
                row.until_answered.to_string(),
                row.until_settled.to_string(),
                format!("{busy:.2}"),
            ];
            writeln!(f, "| {} |", cells.join(" | "))?;
        }
        Ok(())
    }
}

/// Three cells of a row.
impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { reads, writes, flushes, kib, busy_ms } = self;
        let commands = format!("{reads:.2}, {writes:.2}, {flushes:.2}");
        write!(f, "{commands} | {} | {}", digits(*kib), digits(*busy_ms))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_drive_has_the_mechanics_of_a_whole_one() {
        let small = small_profile();
        assert_eq!(small.matches("cylinders = 40\n").count(), 20);
        assert!(!small.contains("cylinders = 16040"));
        assert!(small.contains("\nrpm = 7200"));
    }

    #[test]
    fn the_counters_of_six_disks_are_added() {
        let line = "disk 10 1 80 7 20 2 160 9 0 33 40 0 0 0 0 5 1".to_owned();
        let mut said = vec!["disk 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9".to_owned()];
        said.extend(vec![line; DRIVES]);
        let sum = counters(&said).expect("they are disks");
        let expected =
            Work { reads: 60.0, writes: 120.0, flushes: 30.0, kib: 720.0, busy_ms: 198.0 };
        assert_eq!(sum, expected);
        assert_eq!(
            expected.since(Work::default(), 60.0).to_string(),
            "1.00, 2.00, 0.50 | 12 | 3.3"
        );
        assert!(counters(&["disk 1 2 3".to_owned()]).is_err());
    }

    #[test]
    fn the_guest_gets_the_loads_and_the_mode() {
        let words = arguments(System::Md(Some("bitmap")), 2, 100, 7);
        let expected = "md_system=md md_tags=bitmap md_chunk_kib=64 md_disks=a,b \
                        md_closed=read,write,durable-write md_load=4,100,9017753600,7";
        assert_eq!(words, expected);
    }

    #[test]
    fn ratios_are_over_the_same_system_without_checksums() {
        let row = |system: System, rate, busy_ms| Row {
            load: "reads",
            system: system.name(),
            is_base: system.is_base(),
            requests_per_second: rate,
            mean_ms: 10.0,
            p50_ms: 9.0,
            p99_ms: 20.0,
            until_answered: Work::default(),
            until_settled: Work { busy_ms, ..Work::default() },
        };
        let text = || "1".to_owned();
        let guest =
            Versions { kernel: text(), qemu: text(), mdadm: text(), integritysetup: text() };
        let rows = vec![
            row(SYSTEMS[0], 200.0, 10.0),
            row(SYSTEMS[1], 100.0, 25.0),
            row(SYSTEMS[4], 400.0, 10.0),
            row(SYSTEMS[5], 300.0, 15.0),
        ];
        let report = Report { drives: text(), guest, seed: 7, depth: DEPTH, requests: 10, rows };
        let text = report.to_string();
        let ratios = ["| 200 | 1.00 |", "| 100 | 0.50 |", "| 300 | 0.75 |", "| 25 | 2.50 |"];
        for ratio in ratios {
            assert!(text.contains(ratio), "{ratio}: {text}");
        }
    }
}
