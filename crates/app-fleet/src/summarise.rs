//! Hours tables to one summary, on several threads.
//!
//! ```text
//!   files --> parts in the order of time --> a thread a part: rows --> Kernel --> Summary --.
//!                                                            in the order of parts: merge <-'--> Summary
//! ```
//!
//! A file is a part, or, where there are more threads than files, several, cut between hours of groups. No thread begins a part that
//! is further ahead of the merging than twice the count of threads, so that what is held stays small. The summary is, to the byte, that
//! of one pass by one thread.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Condvar, Mutex};

use levelhead_fleet::analysis::{Disorder, Kernel, Rules, Scope, Summary};
use levelhead_fleet::events::{EventsError, EventsKernel, EventsSummary};
use levelhead_fleet::{Hours, HoursTable};
use levelhead_fleet_io::hours::{Columns, Ids, TableFile};
use levelhead_fleet_io::read_events;

use levelhead_app::files::{check_are_apart, check_can_be_read_again};
use levelhead_app::{AppError, Progress, threads};

/// The most threads.
pub const THREADS_MAX: usize = 1024;

/// What is summed up.
#[derive(Clone, Debug)]
pub struct Summarise {
    /// Hours tables, Parquet or CSV.
    pub files: Vec<PathBuf>,
    /// What is counted of them.
    pub rules: Rules,
    /// On how many threads, at least 1.
    pub threads: usize,
}

/// The summary of all files.
///
/// # Errors
///
/// No file, one that cannot be read, rows out of order, and files that overlap in the hours of a group.
pub(super) fn summarise(ask: &Summarise, progress: &dyn Progress) -> Result<Summary, AppError> {
    if !(1..=THREADS_MAX).contains(&ask.threads) {
        let threads = ask.threads;
        return Err(AppError::usage(format!("expected 1 to {THREADS_MAX} threads, got {threads}")));
    }
    let sources = open_all(&ask.files)?;
    let parts = parts_of(&sources, ask.threads);
    let rows = sources.iter().map(|source| source.row_count).sum();
    let task = progress.begin("rows", rows);
    let (queue, (sender, receiver)) = (Queue::default(), channel());
    std::thread::scope(|scope| {
        for at in 0..ask.threads.min(parts.len()) {
            let (queue, parts, sender) = (&queue, &parts, sender.clone());
            let summarise = move || {
                while let Some(number) = queue.next(parts.len(), 2 * ask.threads) {
                    let passed = parts[number].pass(ask.rules, &sender);
                    let _ = sender.send(News::Passed { number, passed });
                }
            };
            match threads::start_in(scope, "rows", summarise) {
                Err(error) if at == 0 => return Err(error),
                Err(_) => break,
                Ok(_) => {}
            }
        }
        drop(sender);
        let mut merged = Merged { summary: Summary::new(ask.rules), last: None };
        let (mut waiting, mut next, mut done) = (BTreeMap::new(), 0, 0);
        for news in receiver {
            match news {
                News::Rows(rows) => {
                    done += rows;
                    task.reach(done);
                }
                News::Passed { number, passed } => {
                    waiting.insert(number, passed);
                }
            }
            while let Some(passed) = waiting.remove(&next) {
                let result = passed.and_then(|passed| merged.add(&parts[next], &passed));
                if let Err(error) = result {
                    queue.stop();
                    return Err(error);
                }
                next += 1;
                queue.reach(next);
            }
        }
        Ok(merged.summary)
    })
}

/// The spans between slow hours and events of all files, in one pass: events are of drives, and drives of all parts.
///
/// # Errors
///
/// As [`summarise`], and events that cannot be read.
pub(super) fn summarise_events(
    ask: &Summarise,
    events: &Path,
    progress: &dyn Progress,
) -> Result<EventsSummary, AppError> {
    let mut kernel = EventsKernel::new(ask.rules.ios_min);
    check_can_be_read_again(events)?;
    let table = read_events(events).map_err(AppError::usage)?;
    let wrong =
        |path: &Path, error: EventsError| AppError::usage(format!("{}: {error}", path.display()));
    kernel.handle_events(&table).map_err(|error| wrong(events, error))?;
    let sources = open_all(&ask.files)?;
    let task =
        progress.begin("rows, for events", sources.iter().map(|source| source.row_count).sum());
    let mut done = 0;
    for part in parts_of(&sources, 1) {
        part.read(Columns::Slowdown, |hours| {
            done += hours.hour.len() as u64;
            task.reach(done);
            kernel.handle_hours(hours).map_err(|error| wrong(part.source.path, error))
        })?;
    }
    Ok(kernel.finish())
}

/// Which part is next, and how far the merging is.
#[derive(Default)]
struct Queue {
    state: Mutex<QueueState>,
    changed: Condvar,
}

#[derive(Default)]
struct QueueState {
    next: usize,
    merged: usize,
    is_stopped: bool,
}

impl Queue {
    /// The next part, once it is fewer than `ahead` before the merging; `None` if there is none.
    fn next(&self, parts: usize, ahead: usize) -> Option<usize> {
        let mut state = self.state.lock().expect("no thread panics");
        while !state.is_stopped && state.next < parts && state.next >= state.merged + ahead {
            state = self.changed.wait(state).expect("no thread panics");
        }
        if state.is_stopped || state.next == parts {
            return None;
        }
        state.next += 1;
        Some(state.next - 1)
    }

    fn reach(&self, merged: usize) {
        self.state.lock().expect("no thread panics").merged = merged;
        self.changed.notify_all();
    }

    fn stop(&self) {
        self.state.lock().expect("no thread panics").is_stopped = true;
        self.changed.notify_all();
    }
}

enum News {
    /// This number of rows more has been read.
    Rows(u64),
    /// A part has been passed.
    Passed { number: usize, passed: Result<Box<Passed>, AppError> },
}

/// A part's summary, and its ends.
struct Passed {
    summary: Summary,
    /// `None` of a part without rows.
    ends: Option<Ends>,
}

/// The first and the last group's hour of a part.
struct Ends {
    first: Key,
    last: Key,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    hour: i32,
    raid: i32,
}

impl Key {
    fn of(hours: &Hours<'_>, row: usize) -> Self {
        Self { hour: hours.hour[row], raid: hours.raid[row] }
    }
}

struct Merged<'a> {
    summary: Summary,
    /// The file of the part before, and where that ended.
    last: Option<(&'a Path, Key)>,
}

impl<'a> Merged<'a> {
    fn add(&mut self, part: &Part<'a>, passed: &Passed) -> Result<(), AppError> {
        let path = part.source.path;
        if let Some(Ends { first, last }) = &passed.ends {
            // Parts of one file are one run of rows.
            if let Some((before, end)) = self.last
                && before == path
                && end >= *first
            {
                return Err(disorder(path, Disorder { hour: first.hour, raid: first.raid }));
            }
            self.last = Some((path, *last));
        }
        let merged = self.summary.merge(&passed.summary);
        merged.map_err(|error| AppError::usage(format!("{}: {error}", path.display())))
    }
}

fn disorder(path: &Path, disorder: Disorder) -> AppError {
    let path = path.display();
    AppError::usage(format!("{path}: {disorder}; `levelhead-lab fleet import` sorts a table"))
}

/// A file, which each thread opens for itself.
struct Source<'a> {
    path: &'a Path,
    row_groups: usize,
    /// Its rows, 0 if not known.
    row_count: u64,
    /// The hour of its first row, by which files are ordered.
    begins: Option<i32>,
}

fn open_all(files: &[PathBuf]) -> Result<Vec<Source<'_>>, AppError> {
    if files.is_empty() {
        return Err(AppError::usage("expected a file, got none"));
    }
    let mut sources = Vec::with_capacity(files.len());
    check_are_apart(files, &[])?;
    for path in files {
        check_can_be_read_again(path)?;
        let mut table = HoursTable::default();
        let file = TableFile::open(path).map_err(AppError::usage)?;
        let rows = file.rows(Columns::Slowdown, Ids::Numbers);
        rows.and_then(|mut rows| rows.next(&mut table)).map_err(AppError::usage)?;
        sources.push(Source {
            path,
            row_groups: file.row_group_count(),
            row_count: file.row_count().unwrap_or(0),
            begins: table.hour.first().copied(),
        });
    }
    sources.sort_by_key(|source| source.begins);
    Ok(sources)
}

/// Rows that one thread reads.
struct Part<'a> {
    source: &'a Source<'a>,
    row_groups: Range<usize>,
}

fn parts_of<'a>(sources: &'a [Source<'a>], threads: usize) -> Vec<Part<'a>> {
    let wanted = threads.div_ceil(sources.len());
    let mut parts = Vec::new();
    for source in sources {
        let groups = source.row_groups;
        let count = wanted.min(groups).max(1);
        let cut = |at: usize| at * groups / count;
        parts.extend((0..count).map(|at| Part { source, row_groups: cut(at)..cut(at + 1) }));
    }
    parts
}

impl Part<'_> {
    fn pass(&self, rules: Rules, news: &Sender<News>) -> Result<Box<Passed>, AppError> {
        let columns = match rules.scope {
            Scope::Slowdown => Columns::Slowdown,
            Scope::Everything => Columns::All,
        };
        let mut kernel = Kernel::new(rules);
        let mut ends: Option<Ends> = None;
        self.read(columns, |hours| {
            let last = Key::of(&hours, hours.hour.len() - 1);
            let first = ends.as_ref().map_or_else(|| Key::of(&hours, 0), |ends| ends.first);
            ends = Some(Ends { first, last });
            kernel.handle(hours).map_err(|error| disorder(self.source.path, error))?;
            // After another part has failed there is no receiver.
            let sent = news.send(News::Rows(hours.hour.len() as u64));
            sent.map_err(|_| AppError::trouble("another part has failed"))
        })?;
        let summary = kernel.finish().map_err(|error| disorder(self.source.path, error))?;
        Ok(Box::new(Passed { summary, ends }))
    }

    /// Hands the part's rows over, some at a time.
    fn read(
        &self,
        columns: Columns,
        mut take: impl FnMut(Hours<'_>) -> Result<(), AppError>,
    ) -> Result<(), AppError> {
        let file = TableFile::open(self.source.path).map_err(AppError::usage)?;
        let rows = file.part(self.row_groups.clone(), columns, Ids::Numbers);
        let mut rows = rows.map_err(AppError::usage)?;
        let mut table = HoursTable::default();
        while rows.next(&mut table).map_err(AppError::usage)? {
            take(table.hours())?;
        }
        Ok(())
    }
}
