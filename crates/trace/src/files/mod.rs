//! Workloads over files: what a program does with a filesystem, one step after the other.
//!
//! ```text
//!   text, seed --> [ hibench | ycsb ] --> stages of steps --> Window --> steps that may begin, and their ends
//! ```
//!
//! After the benchmarks that `[LEC17]` and `[SDHDD]` measured with, of which neither their input nor what they do with
//! files is published: `docs/workloads.md` says what is published, suggested and assumed. There is no clock in them
//! and no arrival: a step begins when those that it waits for have ended ([`Window`]), so that two filesystems do the
//! same steps and differ in how long that takes.
//!
//! # Invariants
//!
//! - FW1. The same text and seed give the same steps, whatever runs them.
//! - FW2. A file is made before anything else is done with it and nothing is done with it once it is removed; reads and
//!   writes lie within what has been written, and a write begins at most at the end.
//! - FW3. Each quantity is drawn from a stream of its own: another share of reads changes no size and no place.
//!
//! # What it leaves out
//!
//! Directories, names, and more than one program at a time.

mod hibench;
mod list;
mod sizes;
mod window;
mod ycsb;
mod zipf;

use std::fmt;
use std::str::FromStr;

use levelhead_stats::Streams;
use levelhead_units::{Bytes, Nanos};

pub use hibench::{Benchmark, HiBench};
pub use list::{FileList, MOVED_MAX, OPERATIONS_MAX, Operation, Verb};
pub use window::Window;
pub use ycsb::Ycsb;

use crate::synthetic::{SyntheticError, wrong};

/// A file of a workload, by its number from 0 on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId(pub u32);

/// How a file is used, which decides how it is best stored (`[SDHDD]` sec. 3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Habit {
    /// Written once, read in sequence.
    Sequential,
    /// Written once, read at random.
    Random,
    /// Appended to or written in place.
    Changing,
}

/// One thing that a program does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Makes a file, empty.
    Create {
        /// The file.
        file: FileId,
        /// How it will be used.
        habit: Habit,
    },
    /// Reads a part of a file.
    Read {
        /// The file.
        file: FileId,
        /// The first byte.
        offset: Bytes,
        /// How many bytes.
        length: Bytes,
    },
    /// Writes a part of a file: at its end, or in place.
    Write {
        /// The file.
        file: FileId,
        /// The first byte.
        offset: Bytes,
        /// How many bytes.
        length: Bytes,
    },
    /// What was written to a file outlasts a power cut from here on.
    Sync(FileId),
    /// Removes a file.
    Remove(FileId),
    /// The program's processor is busy for so long. It computes with what has been read before.
    Compute(Nanos),
}

/// A part of a workload. What it has written is on the medium before the next one begins, and nothing that was read or
/// written stays in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stage {
    /// Its name.
    pub name: &'static str,
    /// Whether its time counts; what it makes is only there for later stages otherwise.
    pub is_measured: bool,
    /// How many steps may be under way at a time: a program's read-ahead and write-behind, or its clients.
    pub window: u32,
    /// What is done.
    pub steps: Vec<Step>,
}

/// What the steps of a stage move.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// Bytes read.
    pub read: Bytes,
    /// Bytes written.
    pub written: Bytes,
    /// How many reads and writes.
    pub requests: u64,
    /// How long the processor is busy.
    pub computed: Nanos,
}

impl Stage {
    /// What its steps move.
    pub fn moved(&self) -> Moved {
        let mut moved = Moved::default();
        for step in &self.steps {
            match step {
                Step::Read { length, .. } => {
                    moved.read = sum(moved.read, *length);
                    moved.requests += 1;
                }
                Step::Write { length, .. } => {
                    moved.written = sum(moved.written, *length);
                    moved.requests += 1;
                }
                Step::Compute(time) => moved.computed += *time,
                Step::Create { .. } | Step::Sync(_) | Step::Remove(_) => {}
            }
        }
        moved
    }

    /// Gives files from number `first` on numbers that are higher by `by`, so that a stage can follow one that has made files of
    /// these numbers. Returns how many files it makes.
    ///
    /// # Panics
    ///
    /// If there are fewer numbers.
    pub fn renumber(&mut self, first: u32, by: u32) -> u32 {
        let mut made = 0;
        for step in &mut self.steps {
            let file = match step {
                Step::Create { file, .. } => {
                    made += 1;
                    file
                }
                Step::Read { file, .. } | Step::Write { file, .. } => file,
                Step::Sync(file) | Step::Remove(file) => file,
                Step::Compute(_) => continue,
            };
            if file.0 >= first {
                file.0 = file.0.checked_add(by).expect("files are fewer than that");
            }
        }
        made
    }
}

/// A workload over files: `hibench:sort` ([`HiBench`]) or `ycsb:reads=90%` ([`Ycsb`]).
///
/// ```
/// use levelhead_stats::Streams;
/// use levelhead_trace::FileWorkload;
///
/// let workload: FileWorkload = "hibench:pagerank,scale=10%".parse()?;
/// let stages = workload.stages(Streams::new(7));
/// assert!(stages.iter().any(|stage| stage.is_measured));
/// # Ok::<(), levelhead_trace::SyntheticError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FileWorkload {
    /// Like a program of HiBench.
    HiBench(HiBench),
    /// Like YCSB over HBase.
    Ycsb(Ycsb),
}

impl FileWorkload {
    /// What it does, in parts: the same for the same seed.
    pub fn stages(&self, streams: Streams) -> Vec<Stage> {
        match self {
            Self::HiBench(hibench) => hibench.stages(streams),
            Self::Ycsb(ycsb) => ycsb.stages(streams),
        }
    }

    /// The size of all files that are there at once, at most.
    pub fn size_max(&self) -> Bytes {
        match self {
            Self::HiBench(hibench) => hibench.size_max(),
            Self::Ycsb(ycsb) => ycsb.size_max(),
        }
    }

    /// Whether it can be; for values that were not read from a text.
    ///
    /// # Errors
    ///
    /// The first value beyond its limit.
    pub fn check(&self) -> Result<(), SyntheticError> {
        match self {
            Self::HiBench(hibench) => hibench.check(),
            Self::Ycsb(ycsb) => ycsb.check(),
        }
    }

    /// What it is, in a few words.
    pub const fn account(&self) -> &'static str {
        match self {
            Self::HiBench(_) => "synthetic, after what is known of a program of HiBench",
            Self::Ycsb(_) => "synthetic, after YCSB over HBase",
        }
    }
}

impl FromStr for FileWorkload {
    type Err = SyntheticError;

    fn from_str(text: &str) -> Result<Self, SyntheticError> {
        let text = text.trim();
        let workload = match text.split_once(':') {
            Some(("hibench", rest)) => Self::HiBench(hibench::read(rest)?),
            Some(("ycsb", rest)) => Self::Ycsb(ycsb::read(rest)?),
            Some(_) | None => {
                let problem = format!("'{text}' does not begin with hibench: or ycsb:");
                return Err(wrong("files", problem));
            }
        };
        workload.check()?;
        Ok(workload)
    }
}

/// The form that [`FileWorkload::from_str`] reads.
impl fmt::Display for FileWorkload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::HiBench(hibench) => write!(f, "hibench:{hibench}"),
            Self::Ycsb(ycsb) => write!(f, "ycsb:{ycsb}"),
        }
    }
}

/// Keys and values of a text, each key once.
fn pairs<'a>(
    parts: impl Iterator<Item = &'a str>,
    keys: &str,
    mut set: impl FnMut(&str, &str) -> Option<Result<(), String>>,
) -> Result<(), SyntheticError> {
    let mut seen: Vec<&str> = Vec::new();
    for part in parts.map(str::trim).filter(|part| !part.is_empty()) {
        let Some((key, value)) = part.split_once('=') else {
            return Err(wrong(part, format!("expected key=value, the keys being {keys}")));
        };
        let (key, value) = (key.trim(), value.trim());
        if seen.contains(&key) {
            return Err(wrong(key, "given twice"));
        }
        seen.push(key);
        match set(key, value) {
            None => return Err(wrong(key, format!("no such key: expected {keys}"))),
            Some(result) => result.map_err(|problem| wrong(key, problem))?,
        }
    }
    Ok(())
}

/// The value that a text names, put into its place.
fn put<T: FromStr<Err: fmt::Display>>(place: &mut T, text: &str) -> Result<(), String> {
    *place = text.parse().map_err(|error: T::Err| error.to_string())?;
    Ok(())
}

/// A whole number, put into its place.
fn put_number<T: FromStr>(place: &mut T, text: &str) -> Result<(), String> {
    *place = text.parse().map_err(|_| format!("'{text}' is not a whole number"))?;
    Ok(())
}

fn sum(one: Bytes, other: Bytes) -> Bytes {
    Bytes::new(one.get() + other.get())
}

const MIB: u64 = 1 << 20;

/// How much is read or written in sequence at a time: what the kernel asks a filesystem for.
const REQUEST: u64 = MIB;

/// Steps that are being made up, and the sizes of the files so far.
#[derive(Debug, Default)]
struct Script {
    steps: Vec<Step>,
    /// By number; nothing for a removed file.
    sizes: Vec<Option<u64>>,
    /// What the processor computes for each MiB that was moved.
    compute: Nanos,
}

impl Script {
    fn new(compute: Nanos) -> Self {
        Self { compute, ..Self::default() }
    }

    fn create(&mut self, habit: Habit) -> FileId {
        let file = FileId(u32::try_from(self.sizes.len()).expect("workloads have fewer files"));
        self.sizes.push(Some(0));
        self.steps.push(Step::Create { file, habit });
        file
    }

    fn size(&self, file: FileId) -> u64 {
        self.sizes[file.0 as usize].expect("the file is there")
    }

    fn append(&mut self, file: FileId, length: u64) {
        let size = self.size(file);
        self.sizes[file.0 as usize] = Some(size + length);
        self.write(file, size, length);
    }

    fn write(&mut self, file: FileId, offset: u64, length: u64) {
        assert!(offset + length <= self.size(file), "{file:?}, {offset}, {length}");
        let (offset, bytes) = (Bytes::new(offset), Bytes::new(length));
        self.steps.push(Step::Write { file, offset, length: bytes });
        self.compute(length);
    }

    fn read(&mut self, file: FileId, offset: u64, length: u64) {
        assert!(offset + length <= self.size(file), "{file:?}, {offset}, {length}");
        let (offset, bytes) = (Bytes::new(offset), Bytes::new(length));
        self.steps.push(Step::Read { file, offset, length: bytes });
        self.compute(length);
    }

    fn sync(&mut self, file: FileId) {
        self.steps.push(Step::Sync(file));
    }

    fn remove(&mut self, file: FileId) {
        self.sizes[file.0 as usize] = None;
        self.steps.push(Step::Remove(file));
    }

    fn compute(&mut self, length: u64) {
        let time = self.compute.get() as f64 * length as f64 / MIB as f64;
        if time >= 1.0 {
            self.steps.push(Step::Compute(Nanos::new(time.round() as u64)));
        }
    }

    /// What there is so far, as a stage; the files stay.
    fn stage(&mut self, name: &'static str, is_measured: bool, window: u32) -> Stage {
        Stage { name, is_measured, window, steps: std::mem::take(&mut self.steps) }
    }
}

#[cfg(test)]
mod tests;
