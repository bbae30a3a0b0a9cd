//! `levelhead-lab drive measure`: a profile of one drive, by reads alone.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use levelhead_block::{BlockService, Effort, Request};
use levelhead_drive::Profile;
use levelhead_drive::measure::{
    Lateness, Measured, Measurement, Options, Read, Seek, Thoroughness, Wake,
};
use levelhead_host::{LoneDrive, MemberSpec, PIECE_MAX, Reader, WakeProbe};
use levelhead_report::{Column, Table, bars, json};
use levelhead_units::{Extent, Instant, Nanos, Sectors};
use serde::Serialize;

use levelhead_app::{AppError, Progress, Show, Stop, files};

/// Bytes that reach a device in one piece whatever the kernel's settings: 512 KiB.
const PIECE_OF_DEVICE: Sectors = Sectors::new(128);
/// How often a wish to stop is looked for.
const LOOK: Duration = Duration::from_millis(100);
/// A drive that ends no read for this long is not measured.
const SILENCE_MAX: Duration = Duration::from_secs(120);
/// Characters of the longest bar.
const BAR: usize = 40;

/// What to measure.
#[derive(Clone, Debug)]
pub struct Measure {
    /// A block device, a file, or an emulated drive: `emu:PATH?..`.
    pub drive: String,
    /// Where the profile goes.
    pub output: PathBuf,
    /// Replace what is there.
    pub force: bool,
    /// How many reads are spent.
    pub thoroughness: Thoroughness,
    /// What chance is drawn from.
    pub seed: u64,
}

/// What was measured, and where the profile is.
#[derive(Debug)]
pub struct DriveMeasured {
    drive: String,
    output: PathBuf,
    measured: Measured,
    remark: Option<String>,
}

/// What answers.
enum Target {
    Device(Reader),
    Emulated(LoneDrive),
}

/// Told how a read ended.
type Done = Box<dyn FnOnce(Result<(), String>) + Send>;

impl Target {
    fn open(name: &str) -> Result<Self, AppError> {
        let member: MemberSpec = name.parse().map_err(AppError::usage)?;
        if member.is_emulated() {
            return LoneDrive::open(&member).map(Self::Emulated).map_err(AppError::usage);
        }
        Reader::open(member.path()).map(Self::Device).map_err(AppError::usage)
    }

    fn size(&self) -> Sectors {
        match self {
            Self::Device(reader) => reader.size(),
            Self::Emulated(drive) => drive.size(),
        }
    }

    fn read_max(&self) -> Sectors {
        match self {
            Self::Device(_) => PIECE_OF_DEVICE,
            Self::Emulated(_) => PIECE_MAX,
        }
    }

    /// What tells the thread that says so of a read's end: the kernel's message, or the time when the model ends it.
    fn end(&self) -> Wake {
        match self {
            Self::Device(_) => Wake::Message,
            Self::Emulated(_) => Wake::Timer,
        }
    }

    fn read(&self, extent: Extent, done: Done) {
        match self {
            Self::Device(reader) => {
                let done = |result: std::io::Result<()>| done(result.map_err(|e| e.to_string()));
                reader.read(extent, Box::new(done));
            }
            Self::Emulated(drive) => {
                let request = Request::read(extent, Effort::Full);
                let done = |reply: levelhead_block::Reply| {
                    let is_good = reply.outcome.is_good();
                    done(if is_good { Ok(()) } else { Err("it gave up".to_owned()) });
                };
                drive.submit(request, Box::new(done));
            }
        }
    }

    fn abandon(self) {
        match self {
            Self::Device(reader) => reader.abandon(),
            Self::Emulated(drive) => drive.abandon(),
        }
    }

    /// Whether what is measured may not be a disk's own time.
    fn remark(&self) -> Option<String> {
        match self {
            Self::Device(reader) if !reader.is_direct() => {
                Some("reads went through the page cache: these may be times of memory".to_owned())
            }
            Self::Device(_) | Self::Emulated(_) => None,
        }
    }
}

/// Measures, and writes the profile. A wish to stop ends it at once, whatever the drive is at, and
/// nothing is written.
pub fn measure_drive(
    ask: &Measure,
    stop: &Stop,
    progress: &dyn Progress,
) -> Result<DriveMeasured, AppError> {
    let path = &ask.output;
    if !ask.force && path.exists() {
        let path = path.display();
        return Err(AppError::usage(format!("{path} exists: --force replaces it")));
    }
    check_apart(&ask.drive, path)?;
    files::check_place(path)?;
    let target = Target::open(&ask.drive)?;
    let blame = |error| AppError::usage(format!("{}: {error}", ask.drive));
    let Measure { thoroughness, seed, .. } = *ask;
    let (read_max, end) = (target.read_max(), target.end());
    let options = Options { thoroughness, read_max, end, seed };
    let measurement = Measurement::new(target.size(), options).map_err(blame)?;
    let measured = match run(&ask.drive, &target, measurement, stop, progress) {
        Ok(measured) => measured,
        Err(error) => {
            // The reads under way are not needed, and one of them may take a minute.
            target.abandon();
            return Err(error);
        }
    };
    let text = measured.to_toml(&name_of(path));
    if let Err(error) = Profile::parse(&text) {
        let name = &ask.drive;
        return Err(AppError::trouble(format!("{name} does not measure like a disk: {error}")));
    }
    files::write_whole(path, |out| out.write_all(text.as_bytes()))?;
    let (drive, output) = (ask.drive.clone(), path.clone());
    let remark = target.remark();
    Ok(DriveMeasured { drive, output, measured, remark })
}

/// Checks that the profile would not take the place of the drive it is measured from.
fn check_apart(drive: &str, output: &Path) -> Result<(), AppError> {
    let member: MemberSpec = drive.parse().map_err(AppError::usage)?;
    let place = |path: &Path| path.canonicalize().ok();
    match place(output).zip(place(member.path())) {
        Some((output, drive)) if output == drive => {
            let name = output.display();
            Err(AppError::usage(format!("{name} is the drive: its profile goes elsewhere")))
        }
        _ => Ok(()),
    }
}

/// The make is called like its file.
fn name_of(path: &Path) -> String {
    path.file_stem().map_or_else(|| "measured".into(), |stem| stem.to_string_lossy().into_owned())
}

/// Carries the measurement's reads out.
fn run(
    name: &str,
    target: &Target,
    mut measurement: Measurement,
    stop: &Stop,
    progress: &dyn Progress,
) -> Result<Measured, AppError> {
    let task = progress.begin("measure", measurement.progress().1);
    let epoch = std::time::Instant::now();
    let now = move || Instant::ZERO + nanos(epoch.elapsed());
    let (sender, ends) = mpsc::channel();
    let probe = WakeProbe::start().map_err(AppError::trouble)?;
    let (mut under_way, mut heard) = (0_usize, epoch);
    loop {
        while let Some(Read { id, extent }) = measurement.poll() {
            let (sender, began) = (sender.clone(), now());
            // After a wish to stop the receiver is gone; what ends then is dropped.
            let done = move |result| drop(sender.send((id, extent, began, now(), result)));
            target.read(extent, Box::new(done));
            under_way += 1;
        }
        if under_way == 0 {
            break;
        }
        match ends.recv_timeout(LOOK) {
            Ok((id, _, began, ended, Ok(()))) => {
                under_way -= 1;
                heard = std::time::Instant::now();
                measurement.handle_done(id, began, ended);
                task.reach(measurement.progress().0);
            }
            Ok((_, extent, _, _, Err(problem))) => {
                let lba = extent.lba.get();
                return Err(AppError::trouble(format!(
                    "{name}: sector {lba} could not be read, {problem}: only a drive without bad \
                     sectors can be measured"
                )));
            }
            Err(RecvTimeoutError::Timeout) if heard.elapsed() > SILENCE_MAX => {
                let seconds = SILENCE_MAX.as_secs();
                return Err(AppError::trouble(format!(
                    "{name}: no read has completed for {seconds} s, so that no profile was written"
                )));
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => unreachable!("a sender is kept here"),
        }
        probe.drain().for_each(|(wake, late)| measurement.handle_wake(wake, late));
        if stop.is_wished() {
            return Err(AppError::trouble("stopped before the end; no profile was written"));
        }
    }
    let measured =
        measurement.finish().map_err(|error| AppError::trouble(format!("{name}: {error}")))?;
    if measured.lateness.is_none() {
        return Err(AppError::trouble(format!(
            "{name}: too few of this program's own waits ended to say how late it is, so that no profile was written"
        )));
    }
    Ok(measured)
}

fn nanos(time: Duration) -> Nanos {
    // Five hundred years fit.
    Nanos::new(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}

#[derive(Serialize)]
struct Json<'a> {
    drive: &'a str,
    profile: String,
    size_bytes: u64,
    rpm: u32,
    rotation_ms: f64,
    rotation_error_ms: f64,
    rates: Vec<JsonRate>,
    seeks: Vec<JsonSeek>,
    random_reads: Vec<JsonDepth>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lateness: Option<JsonLateness>,
    #[serde(skip_serializing_if = "Option::is_none")]
    remark: Option<&'a str>,
}

#[derive(Serialize)]
struct JsonRate {
    lba: u64,
    bytes_per_s: f64,
    error_bytes_per_s: f64,
}

#[derive(Serialize)]
struct JsonSeek {
    stroke_share: f64,
    positioning_ms: f64,
    error_ms: f64,
}

#[derive(Serialize)]
struct JsonLateness {
    waits: u64,
    timer_median_ms: f64,
    message_median_ms: f64,
    answer_median_ms: f64,
    p99_ms: f64,
    late_share: f64,
}

#[derive(Serialize)]
struct JsonDepth {
    depth: u32,
    reads_per_s: f64,
    error_per_s: f64,
    mean_ms: f64,
    p99_ms: f64,
}

impl DriveMeasured {
    /// Each seek's part of the stroke, and the seek.
    fn shares(&self) -> impl Iterator<Item = (f64, &Seek)> {
        let stroke = (self.measured.cylinders() - 1).max(1) as f64;
        self.measured.seeks.iter().map(move |seek| (seek.length as f64 / stroke, seek))
    }
}

impl Show for DriveMeasured {
    fn text(&self) -> String {
        let measured = &self.measured;
        let bytes = measured.size.bytes();
        let mut text = format!(
            "{}: {}, {} revolutions a minute ({:.4} +-{:.4} ms)\n\nsustained MB/s by place\n",
            self.drive,
            bytes.short(),
            measured.rpm(),
            measured.rotation * 1e3,
            measured.rotation_error * 1e3
        );
        let percent =
            |lba: u64| format!("{:.0} %", 100.0 * lba as f64 / measured.size.get() as f64);
        let rates = measured.rates.iter().map(|rate| {
            let (rate_mb, error) = (rate.bytes_per_s / 1e6, rate.error / 1e6);
            (percent(rate.lba.get()), rate_mb, format!("{rate_mb:.1} +-{error:.1}"))
        });
        text.push_str(&bars(&rates.collect::<Vec<_>>(), BAR));
        text.push_str("\npositioning in ms (controller, seek, sector) by share of the stroke\n");
        let seeks = self.shares().map(|(share, seek)| {
            let (ms, error) = (seek.positioning * 1e3, seek.error * 1e3);
            (format!("{:.3} %", share * 100.0), ms, format!("{ms:.2} +-{error:.2}"))
        });
        text.push_str(&bars(&seeks.collect::<Vec<_>>(), BAR));
        let names = ["reads/s", "mean ms", "p99 ms"];
        let columns = std::iter::once(Column::right("depth")).chain(names.map(Column::right));
        let mut table = Table::new(columns);
        for at in &measured.depths {
            table.push([
                at.depth.to_string(),
                format!("{:.1} +-{:.1}", at.per_s, at.error),
                format!("{:.2}", at.mean * 1e3),
                format!("{:.2}", at.p99 * 1e3),
            ]);
        }
        text.push_str(&format!("\nrandom reads of 4 KiB\n{}", table.to_text()));
        if let Some(Lateness { count, timer, message, answer, p99, .. }) = &measured.lateness {
            text.push_str(&format!(
                "\nof {count} waits of this program, half of those for a time ended within {:.3} ms, half of those for a message \
                 within {:.3} and for an answer within {:.3}, 99 % of all within {:.3} ms; what is usual is taken off the \
                 positioning\n",
                timer.median * 1e3,
                message.median * 1e3,
                answer.median * 1e3,
                p99 * 1e3
            ));
        }
        if let Some(remark) = &self.remark {
            text.push_str(&format!("\n{remark}\n"));
        }
        text.push_str(&format!("\nprofile: {}\n", self.output.display()));
        text
    }

    fn json(&self) -> String {
        let measured = &self.measured;
        let rates = measured.rates.iter();
        let depths = measured.depths.iter();
        let value = Json {
            drive: &self.drive,
            profile: self.output.display().to_string(),
            size_bytes: measured.size.bytes().get(),
            rpm: measured.rpm(),
            rotation_ms: measured.rotation * 1e3,
            rotation_error_ms: measured.rotation_error * 1e3,
            rates: rates
                .map(|rate| JsonRate {
                    lba: rate.lba.get(),
                    bytes_per_s: rate.bytes_per_s,
                    error_bytes_per_s: rate.error,
                })
                .collect(),
            seeks: self
                .shares()
                .map(|(stroke_share, seek)| JsonSeek {
                    stroke_share,
                    positioning_ms: seek.positioning * 1e3,
                    error_ms: seek.error * 1e3,
                })
                .collect(),
            random_reads: depths
                .map(|at| JsonDepth {
                    depth: at.depth,
                    reads_per_s: at.per_s,
                    error_per_s: at.error,
                    mean_ms: at.mean * 1e3,
                    p99_ms: at.p99 * 1e3,
                })
                .collect(),
            lateness: measured.lateness.as_ref().map(|lateness| JsonLateness {
                waits: lateness.count,
                timer_median_ms: lateness.timer.median * 1e3,
                message_median_ms: lateness.message.median * 1e3,
                answer_median_ms: lateness.answer.median * 1e3,
                p99_ms: lateness.p99 * 1e3,
                late_share: lateness.late_share,
            }),
            remark: self.remark.as_deref(),
        };
        json::pretty(&value).expect("numbers and names are JSON")
    }
}
