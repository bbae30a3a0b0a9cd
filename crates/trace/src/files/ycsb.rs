//! YCSB over HBase, as `[SDHDD]` sec. 4.2 runs it: clients that read records and write others.
//!
//! ```text
//!   read   a block of 64 KiB of the stored files, by Zipf's law
//!   write  a record into the log, which is appended to in blocks of 64 KiB
//!   flush  every time that so much has been logged: a new file, written behind the operations, synced; the log that it
//!          stands for is removed
//! ```
//!
//! All clients are one stream of steps, of which as many are under way as there are clients.

use std::collections::VecDeque;
use std::fmt;

use levelhead_stats::Streams;
use levelhead_units::{Bytes, Ratio};

use super::hibench::WINDOW_MAX;
use super::zipf::Zipf;
use super::{FileId, Habit, MIB, REQUEST, Script, Stage, pairs, put, put_number};
use crate::synthetic::{SyntheticError, wrong};

/// A workload like YCSB over HBase: `ycsb:reads=80%`, `ycsb:reads=90%,operations=5000,files=4`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ycsb {
    /// The share of operations that read; the rest write.
    pub reads: Ratio,
    /// How many operations.
    pub operations: u64,
    /// How many files there are to read from.
    pub files: u64,
    /// How large each of them is.
    pub size: Bytes,
    /// How much a write brings.
    pub record: Bytes,
    /// How much is logged before it is flushed to a file of that size.
    pub flush: Bytes,
    /// How many clients there are, each of which does one thing at a time.
    pub clients: u32,
}

/// What is read and logged at a time.
const BLOCK: u64 = 64 << 10;

/// The exponent of the law by which blocks are read: YCSB's.
const EXPONENT: f64 = 0.99;

/// After how many operations a MiB of what is flushed is written.
const FLUSH_EVERY: u64 = 8;

const OPERATIONS_MAX: u64 = 1_000_000;
const FILES_MAX: u64 = 4_096;

/// The most bytes to read from: a table of 2^20 blocks.
const STORED_MAX: u64 = BLOCK << 20;

/// The most bytes that a run may log, and flush.
const LOGGED_MAX: u64 = 1 << 40;

impl Ycsb {
    /// This share of reads, and what all other quantities are if they are not given.
    pub const fn new(reads: Ratio) -> Self {
        Self {
            reads,
            operations: 20_000,
            files: 16,
            size: Bytes::new(256 * MIB),
            record: Bytes::new(BLOCK),
            flush: Bytes::new(64 * MIB),
            clients: 8,
        }
    }

    pub(super) fn check(&self) -> Result<(), SyntheticError> {
        let Self { operations, files, size, record, flush, clients, .. } = *self;
        let range = |key, number: u64, most: u64| {
            if (1..=most).contains(&number) {
                return Ok(());
            }
            Err(wrong(key, format!("expected 1 to {most}, got {number}")))
        };
        range("operations", operations, OPERATIONS_MAX)?;
        range("files", files, FILES_MAX)?;
        range("clients", clients.into(), WINDOW_MAX.into())?;
        let whole = |bytes: Bytes| bytes.get() > 0 && bytes.get().is_multiple_of(MIB);
        let stored = files.checked_mul(size.get()).filter(|&stored| stored <= STORED_MAX);
        if !whole(size) || stored.is_none() {
            let most = Bytes::new(STORED_MAX);
            let problem = format!("expected whole MiB, in all files at most {most}, got {size}");
            return Err(wrong("size", problem));
        }
        if !(1..=BLOCK).contains(&record.get()) {
            let most = Bytes::new(BLOCK);
            return Err(wrong("record", format!("expected 1B to {most}, got {record}")));
        }
        if !whole(flush) || flush.get() > LOGGED_MAX {
            let most = Bytes::new(LOGGED_MAX);
            let problem = format!("expected whole MiB, at most {most}, got {flush}");
            return Err(wrong("flush", problem));
        }
        Ok(())
    }

    /// The files, what was logged, and what was flushed of it.
    pub(super) fn size_max(&self) -> Bytes {
        let written = self.operations * self.record.get();
        Bytes::new(self.files * self.size.get() + 2 * written + 2 * self.flush.get())
    }

    pub(super) fn stages(&self, streams: Streams) -> Vec<Stage> {
        let mut script = Script::default();
        let stored: Vec<FileId> = (0..self.files)
            .map(|_| {
                let file = script.create(Habit::Random);
                (0..self.size.get() / REQUEST).for_each(|_| script.append(file, REQUEST));
                file
            })
            .collect();
        let load = script.stage("load", false, self.clients);

        let blocks = self.size.get() / BLOCK;
        let count = u32::try_from(self.files * blocks).expect("at most 2^20 blocks");
        let zipf = Zipf::new(count, EXPONENT, &mut streams.stream("ycsb/places"));
        let mut ranks = streams.stream("ycsb/ranks");
        let mut kinds = streams.stream("ycsb/kinds");
        let mut store = Store::new(&mut script, self.flush.get());
        for operation in 1..=self.operations {
            if kinds.chance(self.reads) {
                let block = u64::from(zipf.draw(&mut ranks));
                let file = stored[(block / blocks) as usize];
                script.read(file, block % blocks * BLOCK, BLOCK);
            } else {
                store.log(&mut script, self.record.get());
            }
            if operation % FLUSH_EVERY == 0 {
                store.flush(&mut script);
            }
        }
        while store.flush(&mut script) {}
        vec![load, script.stage("run", true, self.clients)]
    }
}

/// What writes become: a log, and files that are flushed.
struct Store {
    flush: u64,
    log: FileId,
    /// Written by clients and not in the log yet.
    pending: u64,
    flushes: VecDeque<Flush>,
}

/// A file that is being flushed, or waits for that.
struct Flush {
    /// The log that stands for it until then.
    log: FileId,
    file: Option<FileId>,
    left: u64,
}

impl Store {
    fn new(script: &mut Script, flush: u64) -> Self {
        let log = script.create(Habit::Changing);
        Self { flush, log, pending: 0, flushes: VecDeque::new() }
    }

    /// A client writes a record.
    fn log(&mut self, script: &mut Script, record: u64) {
        self.pending += record;
        if self.pending < BLOCK {
            return;
        }
        self.pending -= BLOCK;
        script.append(self.log, BLOCK);
        if script.size(self.log) >= self.flush {
            self.flushes.push_back(Flush { log: self.log, file: None, left: self.flush });
            self.log = script.create(Habit::Changing);
        }
    }

    /// A MiB of what is being flushed, if anything is.
    fn flush(&mut self, script: &mut Script) -> bool {
        let Some(flush) = self.flushes.front_mut() else { return false };
        let file = *flush.file.get_or_insert_with(|| script.create(Habit::Random));
        script.append(file, REQUEST.min(flush.left));
        flush.left = flush.left.saturating_sub(REQUEST);
        if flush.left == 0 {
            script.sync(file);
            script.remove(flush.log);
            self.flushes.pop_front();
        }
        true
    }
}

const KEYS: &str = "reads, operations, files, size, record, flush, clients";

pub(super) fn read(text: &str) -> Result<Ycsb, SyntheticError> {
    let mut ycsb = Ycsb::new(Ratio::of(9, 10)); // The first of the three shares of `[SDHDD]`.
    pairs(text.split(','), KEYS, |key, value| {
        Some(match key {
            "reads" => put(&mut ycsb.reads, value),
            "operations" => put_number(&mut ycsb.operations, value),
            "files" => put_number(&mut ycsb.files, value),
            "size" => put(&mut ycsb.size, value),
            "record" => put(&mut ycsb.record, value),
            "flush" => put(&mut ycsb.flush, value),
            "clients" => put_number(&mut ycsb.clients, value),
            _ => return None,
        })
    })?;
    Ok(ycsb)
}

impl fmt::Display for Ycsb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let usual = Self::new(self.reads);
        write!(f, "reads={}", self.reads)?;
        for (key, is_usual, value) in [
            ("operations", self.operations == usual.operations, self.operations.to_string()),
            ("files", self.files == usual.files, self.files.to_string()),
            ("size", self.size == usual.size, self.size.to_string()),
            ("record", self.record == usual.record, self.record.to_string()),
            ("flush", self.flush == usual.flush, self.flush.to_string()),
            ("clients", self.clients == usual.clients, self.clients.to_string()),
        ] {
            if !is_usual {
                write!(f, ",{key}={value}")?;
            }
        }
        Ok(())
    }
}
