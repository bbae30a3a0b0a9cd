//! What the kernel counts of each drive, read every few seconds.
//!
//! `stat` is made up from kernel memory and waits for no drive. It is opened once and read from its beginning each time, which costs
//! some microseconds; opened so that what is no such file (a FIFO in a test's tree) cannot hold anything up. A file that gives
//! nothing is opened anew next time: the drive may have gone and come back.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use levelhead_fleet::watch::{Counters, Sample, parse_stat};
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags};

/// The longest `stat`: 17 numbers of 20 digits and what separates them.
const STAT_MAX: usize = 512;

/// The drives that are sampled.
#[derive(Debug)]
pub struct Sampler {
    folder: PathBuf,
    /// By their keys: the kernel's names of the paths to each, and the open `stat` of each path.
    drives: BTreeMap<String, Vec<Way>>,
}

#[derive(Debug)]
struct Way {
    device: String,
    stat: Option<OwnedFd>,
}

impl Sampler {
    /// Of the kernel's files below `root`; no drive yet.
    pub fn new(root: &Path) -> Self {
        Self { folder: root.join("sys/block"), drives: BTreeMap::new() }
    }

    /// These are the drives now: each key with the kernel's names of the paths to it.
    pub fn handle_drives(&mut self, drives: impl IntoIterator<Item = (String, Vec<String>)>) {
        let mut olds = std::mem::take(&mut self.drives);
        for (key, devices) in drives {
            let mut old = olds.remove(&key).unwrap_or_default();
            let path = |device: String| {
                let at = old.iter().position(|it| it.device == device);
                at.map_or(Way { device, stat: None }, |at| old.swap_remove(at))
            };
            self.drives.insert(key, devices.into_iter().map(path).collect());
        }
    }

    /// What is counted now; drives of which nothing could be read are not among them.
    pub fn sample(&mut self) -> Sample {
        let folder = &self.folder;
        let read = |(key, paths): (&String, &mut Vec<Way>)| {
            let mut sum = Counters::default();
            for path in paths {
                // All of them or none: the counters of a drive must not jump with its paths.
                let counters = path.read(folder)?;
                sum.ended = sum.ended.wrapping_add(counters.ended);
                sum.sectors = sum.sectors.wrapping_add(counters.sectors);
                sum.millis = sum.millis.wrapping_add(counters.millis);
                sum.inside = sum.inside.wrapping_add(counters.inside);
                sum.others_ended = sum.others_ended.wrapping_add(counters.others_ended);
            }
            Some((key.clone(), sum))
        };
        self.drives.iter_mut().filter_map(read).collect()
    }
}

impl Way {
    fn read(&mut self, folder: &Path) -> Option<Counters> {
        let counters = self.try_read(folder);
        if counters.is_none() {
            self.stat = None;
        }
        counters
    }

    fn try_read(&mut self, folder: &Path) -> Option<Counters> {
        let stat = match self.stat.take() {
            Some(stat) => stat,
            None => {
                let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
                rustix::fs::open(folder.join(&self.device).join("stat"), flags, Mode::empty())
                    .ok()?
            }
        };
        let mut buffer = [0; STAT_MAX];
        let len = rustix::io::pread(&stat, &mut buffer, 0).ok()?;
        self.stat = Some(stat);
        parse_stat(std::str::from_utf8(&buffer[..len]).ok()?)
    }
}
