//! The control socket of a running array: one JSON value a line, question and answer in turn.
//!
//! ```text
//!   {"verb": "status"}              {"ok": {..}}
//!   {"verb": "fail", "drive": 2}    {"ok": null}
//!   {"verb": "sit-out", "drive": 2} {"ok": null}
//!   {"verb": "admit", "drive": 2}   {"ok": null}
//!   {"verb": "stop"}                {"ok": null}        {"error": "a sentence"}
//! ```
//!
//! The socket is a file that only its owner may open, with a link to it beside every other member, so
//! that any of them leads to it. It is described for users in `docs/control.md`.

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;

use levelhead_array::tau::DriveView;
use levelhead_array::{DriveEvent, Resync};
use levelhead_host::{ArrayHandle, DriveState, Status};
use levelhead_units::{DriveIdx, Nanos, Ratio};
use serde::{Deserialize, Serialize};

use crate::files::absolute;
use crate::{AppError, Stop};

/// The longest question.
const LINE_MAX: u64 = 4096;

/// A client that says nothing for so long is turned away.
const PATIENCE: Duration = Duration::from_secs(5);

/// Clients at a time; one more is sent away.
const CLIENTS_MAX: usize = 16;

/// What can be asked of a running array.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(tag = "verb", rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum Question {
    /// How it is.
    Status,
    /// Do without a drive from now on.
    Fail {
        /// Which.
        drive: u8,
    },
    /// Do not read a drive where that can be helped.
    SitOut {
        /// Which.
        drive: u8,
    },
    /// Read a drive again that sits out.
    Admit {
        /// Which.
        drive: u8,
    },
    /// Stop in good order.
    Stop,
}

/// What comes back.
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Reply {
    Ok(Option<Box<StatusJson>>),
    Error(String),
}

/// A [`Status`] as JSON.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct StatusJson {
    pub(crate) array: String,
    pub(crate) uuid: String,
    pub(crate) size_bytes: u64,
    pub(crate) policy: String,
    pub(crate) synced_percent: f64,
    pub(crate) resync: String,
    pub(crate) outstanding: u32,
    pub(crate) requests: u64,
    pub(crate) subrequests: u64,
    pub(crate) removed: u64,
    pub(crate) redispatched: u64,
    pub(crate) mean_ms: f64,
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
    pub(crate) max_ms: f64,
    pub(crate) drives: Vec<DriveJson>,
    pub(crate) events: Vec<EventJson>,
}

/// One drive of a [`StatusJson`].
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct DriveJson {
    pub(crate) drive: u8,
    pub(crate) member: Option<String>,
    pub(crate) state: String,
    pub(crate) failure: Option<String>,
    pub(crate) queue: u64,
    pub(crate) commands: Option<u64>,
    pub(crate) first_pass_failures: Option<u64>,
    pub(crate) retries: Option<u64>,
    pub(crate) retry_rate_percent: Option<f64>,
    pub(crate) retry_latency_ms: Option<f64>,
    pub(crate) service_time_ms: Option<f64>,
    pub(crate) fast_fail: Option<String>,
    pub(crate) fast_fail_detail: Option<String>,
    pub(crate) sits_out: bool,
    pub(crate) median_ms: f64,
    /// What policies decide from.
    pub(crate) estimates: EstimatesJson,
}

/// What policies decide from: the names are those of docs/level.md and of the paper.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(crate) struct EstimatesJson {
    /// lambda, sub-requests a second.
    pub(crate) arrival_rate: f64,
    /// p_c.
    pub(crate) removal_percent: f64,
    /// q.
    pub(crate) queued: f64,
    /// p_f, of the health page.
    pub(crate) retry_rate_percent: f64,
    /// tau_retry, of the health page.
    pub(crate) retry_latency_ms: f64,
    /// tau_hdd.
    pub(crate) service_time_ms: f64,
    pub(crate) pace_ms: f64,
    pub(crate) failure_rate_percent: f64,
}

impl From<&DriveView> for EstimatesJson {
    fn from(view: &DriveView) -> Self {
        Self {
            arrival_rate: view.arrival_rate,
            removal_percent: view.removal * 100.0,
            queued: view.queued,
            retry_rate_percent: view.retry_rate * 100.0,
            retry_latency_ms: view.retry_latency * 1e3,
            service_time_ms: view.service_time * 1e3,
            pace_ms: view.pace * 1e3,
            failure_rate_percent: view.failure_rate * 100.0,
        }
    }
}

/// Something that happened to a drive's standing, with the numbers that caused it.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct EventJson {
    pub(crate) event: String,
    pub(crate) drive: u8,
    /// Since the array was started.
    pub(crate) at_seconds: f64,
    pub(crate) median_ms: f64,
    pub(crate) cohort_median_ms: f64,
    pub(crate) cohort_mad_ms: f64,
    pub(crate) samples: u32,
}

impl From<&DriveEvent> for EventJson {
    fn from(event: &DriveEvent) -> Self {
        let figures = event.figures;
        Self {
            event: event.kind.name().to_owned(),
            drive: event.drive.as_usize() as u8,
            at_seconds: event.at.as_nanos() as f64 / 1e9,
            median_ms: millis(figures.median),
            cohort_median_ms: millis(figures.cohort_median),
            cohort_mad_ms: millis(figures.cohort_mad),
            samples: figures.samples,
        }
    }
}

impl EventJson {
    /// The same in a sentence.
    pub(crate) fn sentence(&self) -> String {
        let Self { event, drive, at_seconds, median_ms, cohort_median_ms, cohort_mad_ms, samples } =
            self;
        format!(
            "drive {drive} {event} at {at_seconds:.1} s: its last {samples} commands took \
             {median_ms:.1} ms, the drives' {cohort_median_ms:.1} ms (deviation {cohort_mad_ms:.1})"
        )
    }
}

impl From<&Status> for StatusJson {
    fn from(status: &Status) -> Self {
        let drives = (0_u8..).zip(&status.drives).map(|(drive, is)| DriveJson {
            drive,
            member: is.name.clone(),
            state: match is.state {
                DriveState::Present => "present",
                DriveState::Failed => "failed",
                DriveState::Lost => "lost",
                DriveState::Missing => "missing",
            }
            .to_owned(),
            failure: is.failure.clone(),
            queue: is.queue_len as u64,
            commands: is.health.and_then(|said| said.commands),
            first_pass_failures: is.health.and_then(|said| said.first_pass_failures),
            retries: is.health.and_then(|said| said.retries),
            retry_rate_percent: is.health.and_then(|said| said.retry_rate).map(percent),
            retry_latency_ms: is.health.and_then(|said| said.retry_latency_mean).map(millis),
            service_time_ms: is.health.and_then(|said| said.service_time_mean).map(millis),
            fast_fail: is.fast_fail.as_ref().map(|way| way.path.to_string()),
            fast_fail_detail: is.fast_fail.as_ref().map(|way| way.detail.clone()),
            sits_out: is.sits_out,
            median_ms: millis(is.figures.median),
            estimates: EstimatesJson::from(&is.view),
        });
        Self {
            array: status.spec.to_string(),
            uuid: status.uuid.to_string(),
            size_bytes: status.size.bytes().get(),
            policy: status.policy.to_string(),
            synced_percent: percent(status.synced),
            resync: match status.resync {
                Resync::Idle => "idle",
                Resync::Running => "running",
                Resync::Stuck => "stuck",
            }
            .to_owned(),
            outstanding: status.outstanding,
            requests: status.served.requests,
            subrequests: status.served.subs,
            removed: status.served.removed,
            redispatched: status.served.redispatched,
            mean_ms: millis(status.latency.mean),
            p50_ms: millis(status.latency.p50),
            p99_ms: millis(status.latency.p99),
            max_ms: millis(status.latency.max),
            drives: drives.collect(),
            events: status.events.iter().map(EventJson::from).collect(),
        }
    }
}

fn percent(share: Ratio) -> f64 {
    share.get() * 100.0
}

fn millis(time: Nanos) -> f64 {
    time.as_millis_f64()
}

/// A wish to stop, and how that went: known once the drives are closed.
#[derive(Clone)]
struct Ending {
    stop: Stop,
    ended: Arc<OnceLock<Result<(), String>>>,
}

/// A socket's file, removed when it is dropped.
struct SocketFile(PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        drop(fs::remove_file(&self.0));
    }
}

/// A control socket nobody answers at yet.
pub(super) struct Listener {
    file: SocketFile,
    listener: UnixListener,
}

/// A control socket at work. Dropping it closes and removes it.
pub(super) struct Controlled {
    file: Option<SocketFile>,
    links: Vec<SocketFile>,
    closing: Arc<AtomicBool>,
    ending: Ending,
    thread: Option<JoinHandle<()>>,
}

impl Listener {
    /// Listens at `path`. A socket file at which nobody answers is replaced.
    pub(super) fn bind(path: &Path) -> Result<Self, AppError> {
        let fail = |error: io::Error| {
            AppError::usage(format!("cannot listen for control at {}: {error}", path.display()))
        };
        if UnixStream::connect(path).is_ok() {
            let path = path.display();
            return Err(AppError::usage(format!("a running array answers at {path} already")));
        }
        if is_left_over(path) {
            fs::remove_file(path).map_err(fail)?;
        }
        // Bound where only the owner gets in, and named when only the owner may open it.
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            Some(_) | None => Path::new("."),
        };
        let private = tempfile::Builder::new().prefix(".lh").tempdir_in(folder).map_err(fail)?;
        let inside = private.path().join("s");
        let listener = UnixListener::bind(&inside).map_err(fail)?;
        fs::set_permissions(&inside, fs::Permissions::from_mode(0o600)).map_err(fail)?;
        // Not by renaming, which would put it in the place of any other file: a drive, perhaps.
        fs::hard_link(&inside, path).map_err(fail)?;
        let file = SocketFile(path.to_owned());
        Ok(Self { file, listener })
    }

    /// Answers from now on, also to those who come through these links.
    pub(super) fn start(self, links: &[PathBuf], handle: ArrayHandle, stop: Stop) -> Controlled {
        let Self { file, listener } = self;
        let closing = Arc::new(AtomicBool::new(false));
        let closed = Arc::clone(&closing);
        let ending = Ending { stop, ended: Arc::default() };
        let wanted = ending.clone();
        let answer = move || {
            let mut clients = Clients::default();
            for stream in listener.incoming() {
                if closed.load(Ordering::Relaxed) {
                    return;
                }
                if let Ok(stream) = stream {
                    clients.welcome(stream, &handle, &wanted);
                }
            }
        };
        let links = links.iter().filter_map(|link| lead(link, &file.0)).collect();
        let thread = Some(std::thread::spawn(answer));
        Controlled { file: Some(file), links, closing, ending, thread }
    }
}

/// Makes a link to a socket, in the place of an old one that leads nowhere. Where there is something
/// else, or none can be made, the array does without.
fn lead(link: &Path, socket: &Path) -> Option<SocketFile> {
    use std::os::unix::fs::symlink;
    if is_left_over(link) && UnixStream::connect(link).is_err() {
        fs::remove_file(link).ok()?;
    }
    symlink(absolute(socket), link).ok()?;
    Some(SocketFile(link.to_owned()))
}

/// Those who ask, each on a thread of its own.
#[derive(Default)]
struct Clients(Vec<(UnixStream, JoinHandle<()>)>);

impl Clients {
    fn welcome(&mut self, stream: UnixStream, handle: &ArrayHandle, ending: &Ending) {
        self.0.retain(|(_, thread)| !thread.is_finished());
        let Ok(shared) = stream.try_clone() else { return };
        if self.0.len() >= CLIENTS_MAX {
            let reply = Reply::Error(format!("{CLIENTS_MAX} clients ask already, try again"));
            drop(say(&stream, &reply)); // Whoever is sent away may have left.
            return;
        }
        let (handle, ending) = (handle.clone(), ending.clone());
        // A client that leaves early has its reasons.
        let talk = move || drop(converse(&stream, &handle, &ending));
        self.0.push((shared, std::thread::spawn(talk)));
    }
}

impl Drop for Clients {
    /// Everybody gets the answer to what was asked, and nobody is waited for who asks nothing.
    fn drop(&mut self) {
        for (stream, thread) in self.0.drain(..) {
            // One that has left is deaf already; one whose thread panicked has said so.
            drop(stream.shutdown(Shutdown::Read));
            drop(thread.join());
        }
    }
}

/// Whether a control socket lies here, or a link to one that may have gone.
fn is_left_over(path: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt;
    let Ok(own) = fs::symlink_metadata(path) else { return false };
    match fs::metadata(path) {
        Ok(metadata) => metadata.file_type().is_socket(),
        Err(_) => own.is_symlink(),
    }
}

impl Controlled {
    /// Closes the socket and tells whoever wanted the array to stop how that went.
    pub(super) fn end(mut self, result: Result<(), String>) {
        self.close(result);
    }

    fn close(&mut self, result: Result<(), String>) {
        let Some((file, thread)) = self.file.take().zip(self.thread.take()) else { return };
        self.closing.store(true, Ordering::Relaxed);
        // Wakes the thread, which looks at the flag first.
        let waker = UnixStream::connect(&file.0);
        // Before anybody learns of the end, who may serve the array again at once.
        self.links.clear();
        drop(file);
        assert!(self.ending.ended.set(result).is_ok(), "an array ends once");
        drop(thread.join());
        drop(waker);
    }
}

impl Drop for Controlled {
    fn drop(&mut self) {
        // Nobody is to wait for an end that has come some other way.
        self.close(Err("the array has ended before its time".to_owned()));
    }
}

fn converse(stream: &UnixStream, handle: &ArrayHandle, ending: &Ending) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut lines = BufReader::new(stream);
    loop {
        let mut line = String::new();
        if (&mut lines).take(LINE_MAX).read_line(&mut line)? == 0 {
            return Ok(());
        }
        let reply = match serde_json::from_str(&line) {
            Ok(question) => answer(question, handle, ending),
            Err(error) => Reply::Error(format!("not a question: {error}")),
        };
        say(stream, &reply)?;
        if ending.ended.get().is_some() {
            return Ok(()); // Also where the client would go on for ever.
        }
    }
}

fn say(mut stream: &UnixStream, reply: &Reply) -> io::Result<()> {
    let mut text = serde_json::to_string(reply)?;
    text.push('\n');
    stream.write_all(text.as_bytes())
}

fn answer(question: Question, handle: &ArrayHandle, ending: &Ending) -> Reply {
    let result = match question {
        Question::Status => handle.status().map(|status| Some(Box::new(StatusJson::from(&status)))),
        Question::Fail { drive } | Question::SitOut { drive } | Question::Admit { drive }
            if drive >= DriveIdx::MAX =>
        {
            return Reply::Error(format!("there is no drive {drive}"));
        }
        Question::Fail { drive } => handle.lose(DriveIdx::new(drive)).map(|()| None),
        Question::SitOut { drive } => handle.sit_out(DriveIdx::new(drive)).map(|()| None),
        Question::Admit { drive } => handle.admit(DriveIdx::new(drive)).map(|()| None),
        Question::Stop => {
            ending.stop.wish();
            return match ending.ended.wait() {
                Ok(()) => Reply::Ok(None),
                Err(sentence) => Reply::Error(sentence.clone()),
            };
        }
    };
    result.map_or_else(|error| Reply::Error(error.to_string()), Reply::Ok)
}
