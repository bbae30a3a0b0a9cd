//! Writes the state and the record on a thread of its own: the disk that they are on may be the one that hangs.
//!
//! - WR1. A state that was not written yet gives way to a newer one; of a record [`RECORD_MAX`] bytes wait at most.
//! - WR2. Nothing waits for the thread but the end, and that for as long as it is told.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use levelhead_fleet::RECORD_HEADER as HEADER;
use levelhead_fleet::watch::Recorded;

use super::files::{open_record, write_state};
use levelhead_app::AppError;

/// Bytes of a record that wait to be written.
const RECORD_MAX: usize = 1 << 20;

/// See the module.
pub(super) struct Writer {
    desk: Arc<Desk>,
    has_record: bool,
    /// Is closed when everything is written.
    ended: Receiver<()>,
}

#[derive(Default)]
struct Desk {
    jobs: Mutex<Jobs>,
    changed: Condvar,
}

#[derive(Default)]
struct Jobs {
    state: Option<Vec<u8>>,
    record: String,
    is_over: bool,
    /// What went wrong since that was asked for last.
    trouble: Option<String>,
}

impl Desk {
    fn jobs(&self) -> MutexGuard<'_, Jobs> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Writer {
    pub(super) fn start(state: PathBuf, record: Option<PathBuf>) -> Result<Self, AppError> {
        let desk = Arc::<Desk>::default();
        let (has_record, shared) = (record.is_some(), Arc::clone(&desk));
        let (sender, ended) = mpsc::channel();
        let work = move || work(&shared, &state, record.as_deref(), sender);
        let thread = std::thread::Builder::new().name("writer".to_owned());
        thread.spawn(work).map_err(|error| AppError::trouble(format!("no thread: {error}")))?;
        Ok(Self { desk, has_record, ended })
    }

    pub(super) fn put_state(&self, bytes: Vec<u8>) {
        self.desk.jobs().state = Some(bytes);
        self.desk.changed.notify_all();
    }

    /// The rows of one window.
    pub(super) fn put_record(&self, rows: &[Recorded]) {
        if !self.has_record {
            return;
        }
        let mut jobs = self.desk.jobs();
        if jobs.record.len() > RECORD_MAX {
            jobs.trouble = Some("the record takes nothing: a window is left out of it".to_owned());
            return;
        }
        // Neither a name nor a key may end a field; lines they cannot end, being clean.
        let plain = |text: &str| text.replace([',', '"'], "_");
        for Recorded { at, group, key, latency_us, load } in rows {
            let (group, key) = (plain(group), plain(key));
            writeln!(jobs.record, "{at},{group},{key},{latency_us},{load}")
                .expect("a string takes everything");
        }
        self.desk.changed.notify_all();
    }

    /// What went wrong, once.
    pub(super) fn trouble(&self) -> Option<String> {
        self.desk.jobs().trouble.take()
    }

    /// Waits until everything is written, until then at most; returns what went wrong.
    pub(super) fn end(&self, by: Instant) -> Option<String> {
        self.desk.jobs().is_over = true;
        self.desk.changed.notify_all();
        let left = by.saturating_duration_since(Instant::now());
        match self.ended.recv_timeout(left) {
            Err(mpsc::RecvTimeoutError::Timeout) => {
                Some("the state takes longer to be written than a stop may take".to_owned())
            }
            Ok(()) | Err(mpsc::RecvTimeoutError::Disconnected) => self.trouble(),
        }
    }
}

fn work(desk: &Desk, state: &Path, record: Option<&Path>, ended: Sender<()>) {
    loop {
        let is_idle = |jobs: &mut Jobs| jobs.state.is_none() && jobs.record.is_empty();
        let waited = desk.changed.wait_while(desk.jobs(), |jobs| is_idle(jobs) && !jobs.is_over);
        let mut jobs = waited.unwrap_or_else(PoisonError::into_inner);
        if is_idle(&mut jobs) {
            break;
        }
        let (bytes, rows) = (jobs.state.take(), std::mem::take(&mut jobs.record));
        drop(jobs);
        if let Some(bytes) = bytes {
            note(desk, state, write_state(state, &bytes));
        }
        if let Some(record) = record.filter(|_| !rows.is_empty()) {
            note(desk, record, add(record, &rows));
        }
    }
    drop(ended);
}

fn note(desk: &Desk, path: &Path, written: std::io::Result<()>) {
    if let Err(error) = written {
        desk.jobs().trouble = Some(format!("{}: {error}", path.display()));
    }
}

/// In one write, so that a record ends with a whole window.
fn add(path: &Path, rows: &str) -> std::io::Result<()> {
    let mut file = open_record(path)?;
    if file.metadata()?.len() == 0 {
        return file.write_all(format!("{HEADER}\n{rows}").as_bytes());
    }
    file.write_all(rows.as_bytes())
}
