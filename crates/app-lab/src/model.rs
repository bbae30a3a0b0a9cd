//! `levelhead-lab drive model`: what a make of drive does, as the model has it.

use std::path::PathBuf;

use levelhead_block::{Command, Effort};
use levelhead_drive::{
    CacheMode, Drive, Faults, Profile, QUEUE_DEPTH_MAX, Scheduler, Settings, Verify,
};
use levelhead_report::{Axis, Column, Figure, Page, Series, Table, bars, json};
use levelhead_stats::{Streams, Summary};
use levelhead_units::{Extent, Instant, Lba, Nanos, Sectors};
use serde::Serialize;

use crate::profiles;
use levelhead_app::{AppError, Show, VERSION, files};

/// Random reads simulated at each depth.
const READS: u64 = 20_000;
/// Commands inside the drive at a time.
const DEPTHS: [u32; 6] = [1, 2, 4, 8, 16, 32];
const _: () = assert!(DEPTHS[DEPTHS.len() - 1] <= QUEUE_DEPTH_MAX);
/// The most that is read to find a zone's rate: 256 MiB.
const STREAM_MAX: u64 = 65_536;
/// Parts of the stroke for which seeks are listed, besides short ones.
const STROKE_PARTS: [(u64, &str); 6] =
    [(64, "1/64"), (16, "1/16"), (8, "1/8"), (4, "1/4"), (2, "1/2"), (1, "all")];
/// Points of the seek curve in the figure.
const CURVE_POINTS: u32 = 200;
/// Characters of the longest bar.
const BAR: usize = 40;

/// What to show.
#[derive(Clone, Debug)]
pub struct Model {
    /// A shipped profile's name, or a file.
    pub profile: String,
    /// How much of its positioning time a waiting command may save, per time waited.
    pub age_weight: f64,
    /// What chance is drawn from.
    pub seed: u64,
    /// Where an HTML page goes, if anywhere.
    pub report: Option<PathBuf>,
}

/// A make and what it does.
#[derive(Debug)]
pub struct Modelled {
    profile: Profile,
    age_weight: f64,
    seed: u64,
    zones: Vec<Zone>,
    seeks: Vec<Seek>,
    random: Vec<Random>,
}

/// The makes that come with the program.
#[derive(Debug)]
pub struct Makes(Vec<Profile>);

#[derive(Clone, Debug, Serialize)]
struct Zone {
    first_lba: u64,
    sectors: u64,
    blocks_per_track: u32,
    bytes_per_s: f64,
}

#[derive(Clone, Debug, Serialize)]
struct Seek {
    length: String,
    cylinders: u32,
    read_ms: f64,
}

#[derive(Clone, Debug, Serialize)]
struct Random {
    depth: u32,
    reads_per_s: f64,
    mean_ms: f64,
    p99_ms: f64,
}

#[derive(Serialize)]
struct Json<'a> {
    name: &'a str,
    size_bytes: u64,
    rpm: u32,
    heads: u32,
    cylinders: u32,
    seed: u64,
    age_weight: f64,
    zones: &'a [Zone],
    seeks: &'a [Seek],
    random_reads: &'a [Random],
}

#[derive(Serialize)]
struct JsonMake<'a> {
    name: &'a str,
    size_bytes: u64,
    rpm: u32,
    heads: u32,
}

/// The makes that come with the program.
pub fn drive_makes() -> Makes {
    let shipped = Profile::names().iter().filter_map(|name| Profile::shipped(name));
    Makes(shipped.collect())
}

/// Simulates what a make does.
pub fn model_drive(ask: &Model) -> Result<Modelled, AppError> {
    if let Some(path) = &ask.report {
        files::check_place(path)?;
    }
    let profile = Profile::clone(&*profiles::load(&ask.profile)?);
    let bench = Bench { profile: &profile, age_weight: ask.age_weight, seed: ask.seed };
    let zones = profile.zones().iter().map(|zone| bench.zone(zone)).collect::<Result<_, _>>()?;
    let random = DEPTHS.iter().map(|&depth| bench.random(depth)).collect::<Result<_, _>>()?;
    let (age_weight, seed, seeks) = (ask.age_weight, ask.seed, seeks(&profile));
    let modelled = Modelled { profile, age_weight, seed, zones, seeks, random };
    if let Some(path) = &ask.report {
        let page = modelled.page().to_html();
        files::write_whole(path, |out| out.write_all(page.as_bytes()))?;
    }
    Ok(modelled)
}

/// Times of some seeks, from one cylinder to the whole stroke.
fn seeks(profile: &Profile) -> Vec<Seek> {
    let stroke = u64::from(profile.cylinders() - 1);
    let short = [1, 10, 100].map(|length| (length, format!("{length} cyl.")));
    let short = short.into_iter().filter(|(length, _)| *length < stroke / 64);
    let parts = STROKE_PARTS.map(|(of, name)| (stroke / of, name.to_owned()));
    short
        .chain(parts)
        .filter(|(length, _)| *length > 0)
        .filter_map(|(cylinders, length)| {
            let cylinders = cylinders as u32;
            let read_ms = profile.seek(cylinders)?.as_millis_f64();
            Some(Seek { length, cylinders, read_ms })
        })
        .collect()
}

/// A make to be tried.
struct Bench<'a> {
    profile: &'a Profile,
    age_weight: f64,
    seed: u64,
}

impl Bench<'_> {
    fn drive(&self) -> Result<Drive, AppError> {
        let settings = Settings {
            queue_depth: QUEUE_DEPTH_MAX,
            scheduler: Scheduler::Sptf { age_weight: self.age_weight },
            cache: CacheMode::Off,
            retention: None,
            verify: Verify::Off,
            faults: Faults::NONE,
            size: None,
        };
        Drive::new(self.profile.clone(), settings, Streams::new(self.seed), "drive/0")
            .map_err(AppError::usage)
    }

    /// The rate of a zone, from the difference in time between half of a long read and all of it.
    fn zone(&self, zone: &levelhead_drive::ZoneFigures) -> Result<Zone, AppError> {
        let sectors = zone.extent.sectors.get().min(STREAM_MAX);
        let first = zone.extent.lba;
        let half = (sectors / 2).max(1);
        let time = |sectors: u64| -> Result<f64, AppError> {
            let mut drive = self.drive()?;
            let extent = Extent::new(first, Sectors::new(sectors));
            drive.handle_submit(Instant::ZERO, 0, read(extent), 0);
            Ok(end(&mut drive).as_secs_f64())
        };
        let (all, part) = (time(sectors)?, if sectors > half { time(half)? } else { 0.0 });
        let bytes = Sectors::new(if sectors > half { sectors - half } else { sectors }).bytes();
        Ok(Zone {
            first_lba: first.get(),
            sectors: zone.extent.sectors.get(),
            blocks_per_track: zone.blocks_per_track,
            bytes_per_s: bytes.get() as f64 / (all - part),
        })
    }

    /// Random reads, `depth` of them inside the drive at a time.
    fn random(&self, depth: u32) -> Result<Random, AppError> {
        let mut drive = self.drive()?;
        let mut addresses = Streams::new(self.seed).stream("model/addresses");
        let size = drive.size().get();
        let (mut now, mut sent) = (Instant::ZERO, Vec::new());
        let mut latencies = Vec::new();
        while (latencies.len() as u64) < READS {
            while drive.queue_len() < depth {
                let extent = Extent::new(Lba::new(addresses.below(size)), Sectors::new(1));
                drive.handle_submit(now, sent.len() as u64, read(extent), sent.len() as u64);
                sent.push(now);
            }
            now = drive.deadline().unwrap_or(now);
            drive.handle_timeout(now);
            while let Some(done) = drive.poll() {
                latencies.push(done.ended - sent[done.id as usize]);
            }
        }
        let reads_per_s = latencies.len() as f64 / (now - Instant::ZERO).as_secs_f64();
        let Summary { mean, p99, .. } = Summary::of(&mut latencies);
        let (mean_ms, p99_ms) = (mean.as_millis_f64(), p99.as_millis_f64());
        Ok(Random { depth, reads_per_s, mean_ms, p99_ms })
    }
}

fn read(extent: Extent) -> Command {
    Command::Read { extent, effort: Effort::Full }
}

/// How long until the drive is through.
fn end(drive: &mut Drive) -> Nanos {
    let mut last = Instant::ZERO;
    while let Some(at) = drive.deadline() {
        drive.handle_timeout(at);
        while let Some(done) = drive.poll() {
            last = done.ended;
        }
    }
    last - Instant::ZERO
}

impl Modelled {
    fn facts(&self) -> [(&'static str, String); 8] {
        let profile = &self.profile;
        [
            ("model", profile.name().to_owned()),
            ("size", size(profile)),
            ("revolutions a minute", profile.rpm().to_string()),
            ("one revolution", format!("{:.3} ms", profile.rotation().as_millis_f64())),
            ("heads", profile.heads().to_string()),
            ("cylinders", profile.cylinders().to_string()),
            ("seed", self.seed.to_string()),
            ("order of what it holds", format!("soonest first, age weight {}", self.age_weight)),
        ]
    }

    fn zone_table(&self) -> Table {
        let names = ["first sector", "sectors", "blocks/track", "MB/s"];
        let columns = std::iter::once(Column::right("zone")).chain(names.map(Column::right));
        let mut table = Table::new(columns);
        for (at, zone) in self.zones.iter().enumerate() {
            table.push([
                at.to_string(),
                zone.first_lba.to_string(),
                zone.sectors.to_string(),
                zone.blocks_per_track.to_string(),
                format!("{:.1}", zone.bytes_per_s / 1e6),
            ]);
        }
        table
    }

    fn seek_table(&self) -> Table {
        let names = ["cylinders", "read ms"];
        let columns = std::iter::once(Column::left("seek")).chain(names.map(Column::right));
        let mut table = Table::new(columns);
        for seek in &self.seeks {
            let read = format!("{:.3}", seek.read_ms);
            table.push([seek.length.clone(), seek.cylinders.to_string(), read]);
        }
        table
    }

    fn random_table(&self) -> Table {
        let names = ["reads/s", "mean ms", "p99 ms"];
        let columns = std::iter::once(Column::right("depth")).chain(names.map(Column::right));
        let mut table = Table::new(columns);
        for random in &self.random {
            table.push([
                random.depth.to_string(),
                format!("{:.1}", random.reads_per_s),
                format!("{:.2}", random.mean_ms),
                format!("{:.2}", random.p99_ms),
            ]);
        }
        table
    }

    fn page(&self) -> Page {
        let stroke = self.profile.cylinders() - 1;
        let lengths = (1..=CURVE_POINTS).map(|at| {
            // Closer together where the curve is steep.
            let share = f64::from(at) / f64::from(CURVE_POINTS);
            ((f64::from(stroke) * share * share).ceil() as u32).min(stroke)
        });
        let curve = lengths.filter_map(|length| {
            Some((f64::from(length), self.profile.seek(length)?.as_millis_f64()))
        });
        let zones = self.zones.iter().flat_map(|zone| {
            let tb = |lba: u64| Sectors::new(lba).bytes().get() as f64 / 1e9;
            let rate = zone.bytes_per_s / 1e6;
            [(tb(zone.first_lba), rate), (tb(zone.first_lba + zone.sectors), rate)]
        });
        let random = self.random.iter().map(|random| (f64::from(random.depth), random.reads_per_s));
        let lines = |title: &str, x: Axis, y: &str, points: Vec<(f64, f64)>| {
            let series = vec![Series::line(self.profile.name(), points)];
            Figure::lines(title, x, Axis::linear(y), series)
        };
        Page::new(format!("The drive {}", self.profile.name()))
            .paragraph(
                "What the model makes of the profile: no faults, no cache, all of the drive.",
            )
            .facts(self.facts().into_iter().chain([("program", format!("levelhead {VERSION}"))]))
            .figure(lines("Seek before a read", Axis::linear("cylinders"), "ms", curve.collect()))
            .table("Seeks", self.seek_table())
            .figure(lines("Sustained reads", Axis::linear("GB"), "MB/s", zones.collect()))
            .table("Zones", self.zone_table())
            .figure(lines(
                "Random reads of 4 KiB",
                Axis::log("inside the drive at a time"),
                "reads a second",
                random.collect(),
            ))
            .table("Random reads of 4 KiB", self.random_table())
    }
}

fn size(profile: &Profile) -> String {
    let bytes = profile.size().bytes();
    let decimal = bytes.get() as f64;
    if decimal >= 1e12 {
        format!("{:.2} TB ({})", decimal / 1e12, bytes.short())
    } else {
        format!("{:.1} GB ({})", decimal / 1e9, bytes.short())
    }
}

impl Show for Modelled {
    fn text(&self) -> String {
        let mut text = String::new();
        for (name, value) in self.facts() {
            text.push_str(&format!("{name}: {value}\n"));
        }
        let plot = |rows: Vec<(String, f64, String)>| bars(&rows, BAR);
        text.push_str(&format!(
            "\nseeks before a read, ms\n{}",
            plot(
                self.seeks
                    .iter()
                    .map(|seek| (seek.length.clone(), seek.read_ms, format!("{:.3}", seek.read_ms)))
                    .collect()
            )
        ));
        text.push_str(&format!("\n{}", self.zone_table().to_text()));
        text.push_str(&format!(
            "\nsustained MB/s by zone\n{}",
            plot(
                self.zones
                    .iter()
                    .enumerate()
                    .map(|(at, zone)| {
                        let rate = zone.bytes_per_s / 1e6;
                        (at.to_string(), rate, format!("{rate:.1}"))
                    })
                    .collect()
            )
        ));
        text.push_str(&format!(
            "\nrandom reads of 4 KiB, {READS} at each depth\n{}",
            self.random_table().to_text()
        ));
        text.push_str(&format!(
            "\nreads a second by depth\n{}",
            plot(
                self.random
                    .iter()
                    .map(|random| {
                        let shown = format!("{:.1}", random.reads_per_s);
                        (random.depth.to_string(), random.reads_per_s, shown)
                    })
                    .collect()
            )
        ));
        text
    }

    fn json(&self) -> String {
        let profile = &self.profile;
        let value = Json {
            name: profile.name(),
            size_bytes: profile.size().bytes().get(),
            rpm: profile.rpm(),
            heads: profile.heads(),
            cylinders: profile.cylinders(),
            seed: self.seed,
            age_weight: self.age_weight,
            zones: &self.zones,
            seeks: &self.seeks,
            random_reads: &self.random,
        };
        json::pretty(&value).expect("numbers and names are JSON")
    }
}

impl Show for Makes {
    fn text(&self) -> String {
        let names = ["size", "rpm", "heads"];
        let columns = std::iter::once(Column::left("model")).chain(names.map(Column::right));
        let mut table = Table::new(columns);
        for profile in &self.0 {
            let (rpm, heads) = (profile.rpm().to_string(), profile.heads().to_string());
            table.push([profile.name().to_owned(), size(profile), rpm, heads]);
        }
        table.to_text()
    }

    fn json(&self) -> String {
        let makes = self.0.iter().map(|profile| JsonMake {
            name: profile.name(),
            size_bytes: profile.size().bytes().get(),
            rpm: profile.rpm(),
            heads: profile.heads(),
        });
        json::pretty(&makes.collect::<Vec<_>>()).expect("numbers and names are JSON")
    }
}
