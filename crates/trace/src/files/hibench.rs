//! Programs of HiBench 3.0, the nine of `[LEC17]` sec. 4.3, of which `[SDHDD]` sec. 4.2 takes six.
//!
//! ```text
//!   input (not measured): its files are written
//!   run:  read the input, once or more, and write what is between; read that and write the output; remove what was
//!         between
//! ```
//!
//! What is read and written, and in files of which sizes, stands in [`Benchmark::shape`]; what of it is published, in
//! `docs/workloads.md`.

use std::collections::VecDeque;
use std::fmt;
use std::str::FromStr;

use levelhead_stats::{Rng, Streams};
use levelhead_units::{Bytes, Nanos, Ratio};

use super::sizes::{Class, sizes};
use super::{FileId, Habit, MIB, REQUEST, Script, Stage, pairs, put};
use crate::synthetic::{SyntheticError, wrong};

/// A program of HiBench.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Benchmark {
    /// Sorts a text.
    Sort,
    /// Counts the words of a text.
    WordCount,
    /// Scans, joins and aggregates tables.
    HiveBench,
    /// Ranks pages by the links between them.
    PageRank,
    /// Makes an index of pages.
    Nutch,
    /// Learns to classify.
    Bayes,
    /// Finds clusters.
    KMeans,
    /// Writes files and reads them.
    Dfsioe,
    /// Sorts 1 GB of records.
    TeraSort,
}

impl Benchmark {
    /// All of them, in the order of the paper's Fig. 9, with their names.
    pub const ALL: [(Self, &str); 9] = [
        (Self::Sort, "sort"),
        (Self::WordCount, "wordcount"),
        (Self::HiveBench, "hivebench"),
        (Self::PageRank, "pagerank"),
        (Self::Nutch, "nutch"),
        (Self::Bayes, "bayes"),
        (Self::KMeans, "kmeans"),
        (Self::Dfsioe, "dfsioe"),
        (Self::TeraSort, "terasort"),
    ];

    /// The six that `[SDHDD]` runs, in the order of its Fig. 9.
    pub const SIX: [Self; 6] =
        [Self::Bayes, Self::KMeans, Self::WordCount, Self::HiveBench, Self::PageRank, Self::Nutch];

    /// What it reads and writes.
    const fn shape(self) -> Shape {
        const GIB: u64 = 1 << 30;
        // Hundredths of a GiB.
        const fn shape(input: u64, between: u64, output: u64, files: Files) -> Shape {
            Shape {
                input: part_of(input),
                between: part_of(between),
                output: part_of(output),
                passes: 1,
                files,
            }
        }
        const fn part_of(hundredths: u64) -> u64 {
            hundredths * GIB / 100
        }
        match self {
            Self::Sort | Self::TeraSort => shape(100, 100, 100, Files::Large),
            Self::WordCount => shape(100, 5, 1, Files::Large),
            Self::HiveBench => shape(200, 30, 30, Files::VeryLarge),
            Self::PageRank | Self::Nutch | Self::Bayes => shape(50, 50, 30, Files::Small),
            Self::KMeans => Shape { passes: 5, ..shape(100, 0, 1, Files::Large) },
            // Written, and read.
            Self::Dfsioe => shape(0, 0, 100, Files::Large),
        }
    }
}

/// What a program reads and writes, in bytes.
#[derive(Clone, Copy, Debug)]
struct Shape {
    input: u64,
    between: u64,
    output: u64,
    /// How many times it reads its input.
    passes: u64,
    files: Files,
}

/// Which sizes a program's files have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Files {
    /// 64 to 256 MiB.
    Large,
    /// 96 to 256 MiB: above 100 MB, as over 99 % of the bytes of hivebench (`[LEC17]` sec. 4.4).
    VeryLarge,
    /// As those of pagerank (`[LEC17]` sec. 4.4).
    Small,
}

impl Files {
    const fn classes(self) -> &'static [Class] {
        const MIB: f64 = super::MIB as f64;
        match self {
            Self::Large => &[Class { from: 64.0 * MIB, to: 256.0 * MIB, share: 1.0 }],
            Self::VeryLarge => &[Class { from: 96.0 * MIB, to: 256.0 * MIB, share: 1.0 }],
            Self::Small => &[
                Class { from: 1e3, to: 1e4, share: 0.014 },
                Class { from: 1e4, to: 1e5, share: 0.036 },
                Class { from: 1e5, to: 1e6, share: 0.95 },
            ],
        }
    }

    /// The share of writes that change something in place.
    const fn in_place(self) -> f64 {
        match self {
            Self::Large | Self::VeryLarge => 0.0,
            Self::Small => 0.02,
        }
    }
}

/// A workload like a program of HiBench: `hibench:sort`, `hibench:kmeans,scale=10%,compute=5ms`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HiBench {
    /// Which one.
    pub benchmark: Benchmark,
    /// The share of its volume; sizes of files stay, as far as they fit.
    pub scale: Ratio,
    /// How long the program computes for each MiB that it reads or writes.
    pub compute: Nanos,
    /// How many steps may be under way: its read-ahead and write-behind, in requests of up to 1 MiB.
    pub window: u32,
}

/// The longest computation for a MiB.
const COMPUTE_MAX: Nanos = Nanos::from_secs(10);

/// The least share of the volume.
const SCALE_MIN: f64 = 0.001;

/// The most steps under way.
pub(super) const WINDOW_MAX: u32 = 1_024;

/// The most bytes that are changed in place at a time, and what their place is a multiple of.
const CHANGE_MAX: u64 = 16 << 10;
const PAGE: u64 = 4 << 10;

impl HiBench {
    /// All of it, as fast as the filesystem is.
    pub const fn whole(benchmark: Benchmark) -> Self {
        Self { benchmark, scale: Ratio::ONE, compute: Nanos::ZERO, window: 8 }
    }

    pub(super) fn check(&self) -> Result<(), SyntheticError> {
        let Self { scale, compute, window, .. } = *self;
        if scale.get() < SCALE_MIN {
            return Err(wrong("scale", format!("expected 0.1% to 100%, got {scale}")));
        }
        if compute > COMPUTE_MAX {
            return Err(wrong("compute", format!("expected at most {COMPUTE_MAX}, got {compute}")));
        }
        if !(1..=WINDOW_MAX).contains(&window) {
            return Err(wrong("window", format!("expected 1 to {WINDOW_MAX}, got {window}")));
        }
        Ok(())
    }

    /// The shape at this scale.
    fn shape(&self) -> Shape {
        let shape = self.benchmark.shape();
        let part = |bytes: u64| match bytes {
            0 => 0,
            bytes => ((bytes as f64 * self.scale.get()).round() as u64).max(MIB),
        };
        let Shape { input, between, output, .. } = shape;
        Shape { input: part(input), between: part(between), output: part(output), ..shape }
    }

    /// A stream of its own for each program: they are alike and not the same.
    fn stream(&self, streams: Streams, name: &str) -> Rng {
        streams.stream(&format!("hibench/{}/{name}", self.benchmark))
    }

    pub(super) fn size_max(&self) -> Bytes {
        let Shape { input, between, output, .. } = self.shape();
        Bytes::new(input + between + output)
    }

    pub(super) fn stages(&self, streams: Streams) -> Vec<Stage> {
        let shape = self.shape();
        let classes = shape.files.classes();
        let planned = |name: &str, bytes| sizes(classes, bytes, &mut self.stream(streams, name));
        let mut script = Script::new(self.compute);
        if self.benchmark == Benchmark::Dfsioe {
            let mut output = Output::new(planned("output", shape.output));
            output.go_on(&mut script, None, u64::MAX);
            let write = script.stage("write", true, self.window);
            output.files.iter().for_each(|file| read_all(&mut script, *file, |_, _| ()));
            return vec![write, script.stage("read", true, self.window)];
        }
        let mut input = Output::new(planned("input", shape.input));
        input.go_on(&mut script, None, u64::MAX);
        // Nothing is computed for what is not measured.
        script.steps.retain(|step| !matches!(step, super::Step::Compute(_)));
        let first = script.stage("input", false, self.window);

        let mut changes =
            Changes { share: shape.files.in_place(), rng: self.stream(streams, "changes") };
        let mut between = Output::new(planned("between", shape.between));
        let mut output = Output::new(planned("output", shape.output));
        // What is written while something is read, in proportion to it; without anything between, the output is.
        let has_between = shape.between > 0;
        let mut read = 0;
        for _ in 0..shape.passes {
            for file in &input.files {
                read_all(&mut script, *file, |script, length| {
                    read += length;
                    let to = if has_between { &mut between } else { &mut output };
                    to.go_on_by(script, &mut changes, read, shape.input * shape.passes);
                });
            }
        }
        let mut read = 0;
        for file in between.files.clone() {
            read_all(&mut script, file, |script, length| {
                read += length;
                output.go_on_by(script, &mut changes, read, shape.between);
            });
        }
        between.files.iter().for_each(|file| script.remove(*file));
        vec![first, script.stage("run", true, self.window)]
    }
}

/// Reads a file in sequence; `then` comes after every request.
fn read_all(script: &mut Script, file: FileId, mut then: impl FnMut(&mut Script, u64)) {
    let size = script.size(file);
    let mut offset = 0;
    while offset < size {
        let length = REQUEST.min(size - offset);
        script.read(file, offset, length);
        then(script, length);
        offset += length;
    }
}

/// Files that are written one after the other.
struct Output {
    /// What is still to be written, each file's part.
    left: VecDeque<u64>,
    total: u64,
    written: u64,
    /// Whether the last of `files` is not all written.
    is_open: bool,
    files: Vec<FileId>,
}

impl Output {
    fn new(planned: Vec<u64>) -> Self {
        let total = planned.iter().sum();
        Self { left: planned.into(), total, written: 0, is_open: false, files: Vec::new() }
    }

    /// As much of it as `part` is of `whole`.
    fn go_on_by(&mut self, script: &mut Script, changes: &mut Changes, part: u64, whole: u64) {
        let share = u128::from(self.total) * u128::from(part) / u128::from(whole);
        self.go_on(script, Some(changes), share as u64);
    }

    /// Writes whole requests as long as no more than `up_to` bytes are written.
    fn go_on(&mut self, script: &mut Script, mut changes: Option<&mut Changes>, up_to: u64) {
        while let Some(&left) = self.left.front() {
            let length = REQUEST.min(left);
            if self.written + length > up_to {
                return;
            }
            if !std::mem::replace(&mut self.is_open, true) {
                // What HiBench writes changes no more, but for `Changes`.
                let habit = if changes.as_ref().is_some_and(|changes| changes.share > 0.0) {
                    Habit::Changing
                } else {
                    Habit::Sequential
                };
                self.files.push(script.create(habit));
            }
            let file = *self.files.last().expect("one is open");
            script.append(file, length);
            self.written += length;
            match left - length {
                0 => {
                    self.left.pop_front();
                    self.is_open = false;
                }
                rest => self.left[0] = rest,
            }
            if let Some(changes) = &mut changes {
                changes.follow(script, &self.files);
            }
        }
    }
}

/// Writes in place, among those at the end of files.
struct Changes {
    share: f64,
    rng: Rng,
}

impl Changes {
    /// What comes after a write to one of `files`.
    fn follow(&mut self, script: &mut Script, files: &[FileId]) {
        // A share s of all writes: each other one is followed by s / (1 - s) of them on average.
        if self.rng.unit() >= self.share / (1.0 - self.share) {
            return;
        }
        let file = files[self.rng.below(files.len() as u64) as usize];
        let size = script.size(file);
        let offset = self.rng.below(size.div_ceil(PAGE)) * PAGE;
        let length = PAGE * (1 + self.rng.below(CHANGE_MAX / PAGE));
        script.write(file, offset, length.min(size - offset));
    }
}

const KEYS: &str = "scale, compute, window";

pub(super) fn read(text: &str) -> Result<HiBench, SyntheticError> {
    let mut parts = text.split(',');
    let name = parts.next().unwrap_or_default().trim();
    let mut hibench = HiBench::whole(name.parse().map_err(|problem| wrong("hibench", problem))?);
    pairs(parts, KEYS, |key, value| {
        Some(match key {
            "scale" => put(&mut hibench.scale, value),
            "compute" => put(&mut hibench.compute, value),
            "window" => super::put_number(&mut hibench.window, value),
            _ => return None,
        })
    })?;
    Ok(hibench)
}

impl fmt::Display for HiBench {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = Self::whole(self.benchmark);
        let Self { benchmark, scale, compute, window } = self;
        write!(f, "{benchmark}")?;
        if *scale != whole.scale {
            write!(f, ",scale={scale}")?;
        }
        if *compute != whole.compute {
            write!(f, ",compute={compute}")?;
        }
        if *window != whole.window {
            write!(f, ",window={window}")?;
        }
        Ok(())
    }
}

impl FromStr for Benchmark {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.iter().find(|(_, name)| *name == text);
        found.map(|(benchmark, _)| *benchmark).ok_or_else(|| {
            let names: Vec<&str> = Self::ALL.iter().map(|(_, name)| *name).collect();
            format!("'{text}' is none of its programs: expected {}", names.join(", "))
        })
    }
}

impl fmt::Display for Benchmark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let found = Self::ALL.iter().find(|(benchmark, _)| benchmark == self);
        f.write_str(found.map_or("", |(_, name)| name))
    }
}
