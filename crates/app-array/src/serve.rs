//! `levelhead array serve`: an array on an NBD endpoint, until it is stopped.

use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use levelhead_array::metadata::State;
use levelhead_array::{HostOrder, Patience, Policy, VerifySettings};
use levelhead_block::{BlockService, Done, Request};
use levelhead_erasure::{Class, Kernel};
use levelhead_host::{
    ArrayHandle, Assembled, Bound, FastFail, Io, MemberSpec, NumberedEvent, ServeOptions, Take,
};
use levelhead_nbd::LATE;
use levelhead_report::json;
use levelhead_units::{Bytes, Nanos, Sectors};
use serde::Serialize;

use super::drives::{Allowed, Drives};
use super::event_json::Priority;
use super::events::Tell;
use super::messages::arithmetic;
use super::metrics::{Devices, Scrapes};
use super::service::{Pulse, Service, stop_bound};
use super::snapshot::Snapshots;
use super::{control, events, members, socket_path, would};
use levelhead_app::files::absolute;
use levelhead_app::{
    AppError, Exported, Listen, Progress, Show, Stop, on_event as programs, threads,
};

/// What to serve, and how.
#[derive(Clone, Debug)]
pub struct Serve {
    /// The drives.
    pub drives: Drives,
    /// Drives that wait for a place.
    pub spares: Vec<String>,
    /// Where NBD clients find it.
    pub nbd: Listen,
    /// Where it listens for control; in the run-time folder if nowhere else.
    pub control: Option<PathBuf>,
    /// How reads are served.
    pub policy: Policy,
    /// Commands inside a drive at a time.
    pub window: u32,
    /// The order of the host's queues.
    pub order: HostOrder,
    /// What is allowed at its start.
    pub allowed: Allowed,
    /// How files and devices are read and written.
    pub io: Io,
    /// By which ways drives are told to give up early.
    pub fast_fail: FastFail,
    /// Which code does the arithmetic: what is measured to be the fastest if nothing else is asked for.
    pub kernel: Option<Kernel>,
    /// A program that is run for each event.
    pub on_event: Option<PathBuf>,
    /// What chance is drawn from.
    pub seed: u64,
    /// How long a drive may be silent before the array does without it.
    pub lost_after: Nanos,
    /// Whether other machines can reach the drives although they look local.
    pub shared: bool,
    /// How what was written is read back, if it is.
    pub verify: Option<VerifySettings>,
    /// Where its metrics are to be had, if anywhere.
    pub metrics: Option<levelhead_metrics::Address>,
}

/// A drive counts as silent after the usual time, or after half of that after which it is lost.
fn patience(lost: Nanos) -> Patience {
    let silent = Patience::DEFAULT.silent.min(Nanos::new(lost.get() / 2));
    Patience { silent, lost }
}

/// The kernel asked for, if this processor has its instructions.
pub(super) fn kernel(asked: Option<Kernel>) -> Result<Kernel, AppError> {
    match asked {
        Some(kernel) if !kernel.is_available() => {
            let available: Vec<&str> = Kernel::available().map(Kernel::name).collect();
            let sentence =
                format!("this processor cannot run kernel {kernel}, only {}", available.join(", "));
            Err(AppError::usage(sentence))
        }
        asked => Ok(asked.unwrap_or_else(Kernel::best)),
    }
}

/// What `--kernel help` says: which kernels there are, which this processor has, and which ways of them
/// were the fastest here just now.
pub fn kernel_help() -> String {
    let mut text = String::from("Kernels, the slowest first; all return the same bytes:\n");
    for kernel in Kernel::ALL {
        let here = match kernel.is_available() {
            true => "",
            false => " (not on this processor)",
        };
        text.push_str(&format!("  {kernel}{here}\n"));
    }
    let measured = levelhead_host::arithmetic(None, &Class::ALL);
    text.push_str(&format!(
        "Measured from memory, in {:.1} ms:\n",
        measured.took.as_secs_f64() * 1e3
    ));
    for class in arithmetic(&measured) {
        text.push_str(&format!("  {}\n", class.sentence()));
    }
    text
}

/// An array that has begun to serve.
#[derive(Clone, Debug, Serialize)]
pub struct Serving {
    /// What it is.
    pub array: String,
    /// Its size.
    pub size_bytes: u64,
    /// How NBD clients reach the first of its exports.
    pub uri: String,
    /// Its exports.
    pub exports: Vec<Exported>,
    /// Where it listens for control.
    pub control: PathBuf,
    /// Where its metrics are to be had, if anywhere.
    pub metrics: Option<String>,
    /// Sentences worth reading before it is used.
    pub remarks: Vec<String>,
}

impl Show for Serving {
    fn text(&self) -> String {
        let Self { array, size_bytes, uri: _, exports, control, metrics, remarks } = self;
        let (size, control) = (Bytes::new(*size_bytes).short(), control.display());
        let mut text = format!("{array}\nsize: {size}\n");
        exports.iter().for_each(|export| text.push_str(&format!("{export}\n")));
        text.push_str(&format!("control: {control}\n"));
        if let Some(metrics) = metrics {
            text.push_str(&format!("metrics: {metrics}\n"));
        }
        remarks.iter().for_each(|remark| text.push_str(&format!("{remark}\n")));
        text.push_str("Ctrl-C stops it cleanly");
        text
    }

    fn json(&self) -> String {
        json::pretty(self).expect("numbers and names are JSON")
    }
}

/// What clients may have in flight: as many bytes as a few dozen of the largest requests.
const BOUND: Bound = Bound { requests: 256, sectors: Sectors::new(1 << 14) };

/// The array as the server sees it: its size at once, and the array itself before the first client.
struct Awaited {
    size: Sectors,
    array: OnceLock<ArrayHandle>,
}

impl BlockService for Awaited {
    fn size(&self) -> Sectors {
        self.size
    }

    fn submit(&self, request: Request, done: Done) {
        let array = self.array.get().expect("the server starts after the array");
        array.submit(request, done);
    }
}

/// Whom a served array tells what. None of them may wait for anything outside the program: an array is not
/// stopped by a terminal that takes no text.
pub struct Audience<'a> {
    /// Is called before the first command that may change anything: until then, the program may end at once.
    pub begun: Box<dyn FnOnce() + Send>,
    /// Is called once clients are welcome.
    pub ready: &'a mut dyn FnMut(&Serving),
    /// Is called with a sentence for each event.
    pub tell: Tell,
    /// Sees how far a resync is, from a thread of its own, which may wait.
    pub progress: Box<dyn Progress>,
    /// A service manager, where one waits to be told.
    pub service: Option<Service>,
}

/// How long the end waits for a progress bar to go away.
const FAREWELL: Duration = Duration::from_secs(1);

/// Serves until `stop` is wished.
pub fn serve(ask: &Serve, stop: &Stop, audience: Audience<'_>) -> Result<(), AppError> {
    if let Some(program) = &ask.on_event {
        programs::check(program)?;
    }
    let Audience { begun, ready, tell, progress, service } = audience;
    kernel(ask.kernel)?;
    let (spares, mut no_spares) = spares(&ask.spares);
    let assembled = ask.drives.wait_and_assemble(&spares, ask.allowed, &|sentence| {
        tell(Priority::Warning, sentence);
    })?;
    let assembled = if ask.shared { assembled.shared() } else { assembled };
    if assembled.is_in_reach() && ask.lost_after < LOST_AFTER_MIN {
        return Err(AppError::usage(format!(
            "--lost-after {} is too short for drives that other machines can reach: at least {LOST_AFTER_MIN}",
            ask.lost_after
        )));
    }
    let _only_one = socket_path::lock(assembled.uuid())?;
    if assembled.is_in_reach() && assembled.state() == State::Dirty {
        wait_for_others(&assembled, stop, &*tell)?;
    }
    no_spares.extend_from_slice(assembled.refused_spares());
    let spares = assembled.spares().to_vec();
    let usual = socket_path::of_server(assembled.uuid());
    let (control, link) = match (&ask.control, usual) {
        (None, usual) => (usual?, None),
        // Members lead to the usual place, and a link from there.
        (Some(control), usual) => (control.clone(), usual.ok().filter(|usual| usual != control)),
    };
    let mut serving = Serving {
        uri: String::new(),
        exports: Vec::new(),
        control: absolute(&control),
        metrics: None,
        array: assembled.spec().to_string(),
        size_bytes: assembled.size().bytes().get(),
        remarks: would::sentences(&assembled),
    };
    // All sockets are bound before the drives are touched.
    let listener = control::Listener::bind(&control)?;
    let awaited = Arc::new(Awaited { size: assembled.size(), array: OnceLock::new() });
    let device = Arc::clone(&awaited) as Arc<dyn BlockService>;
    let server = ask.nbd.bind(&device, &format!("levelhead {}", serving.array))?;
    if let Some(warning) = ask.nbd.warning() {
        tell(Priority::Warning, &warning);
        serving.remarks.push(warning);
    }
    let metrics = ask.metrics.map(levelhead_metrics::Server::bind).transpose();
    let metrics = metrics.map_err(AppError::usage)?;
    let members: Vec<MemberSpec> = assembled.drives().into_iter().flatten().cloned().collect();
    let (uuid, devices) = (assembled.uuid().to_string(), Devices::of(&members));
    let listening = events::listen(ask.on_event.clone(), tell)?;
    // The first event comes before the first command.
    let (begun, pass_on) = (Mutex::new(Some(begun)), listening.on_event);
    let on_event = move |event: &NumberedEvent| {
        if let Some(begun) = begun.lock().unwrap_or_else(PoisonError::into_inner).take() {
            begun();
        }
        pass_on(event);
    };
    let options = ServeOptions {
        policy: ask.policy,
        window: ask.window,
        order: ask.order,
        bound: BOUND,
        io: ask.io,
        fast_fail: ask.fast_fail,
        arithmetic: levelhead_host::arithmetic(ask.kernel, &[Class::One]),
        seed: ask.seed,
        patience: patience(ask.lost_after),
        verify: ask.verify,
        on_event: Some(Box::new(on_event)),
    };
    let handle = assembled.serve(options).map_err(AppError::usage)?;
    for spare in &spares {
        if let Err(error) = handle.add_spare(spare, Take::Empty) {
            no_spares.push(error.to_string());
        }
    }
    // The array is served all the same.
    serving.remarks.extend(no_spares.iter().map(|sentence| format!("no spare: {sentence}")));
    assert!(awaited.array.set(handle.clone()).is_ok(), "it is set here alone");
    let running = server.start().map_err(AppError::trouble)?;
    serving.exports = ask.nbd.exported(running.endpoint());
    serving.uri = serving.exports[0].uri.clone();
    let snapshots = Arc::new(Snapshots::new(handle.clone()));
    let nbd = running.look();
    let scrapes = Scrapes { uuid, snapshots: Arc::clone(&snapshots), nbd, devices };
    let metered = metrics.map(|server| server.start(Box::new(move || scrapes.scrape())));
    let metered = metered.transpose().map_err(AppError::trouble)?;
    serving.metrics = metered.as_ref().map(|metered| metered.address().to_string());
    let controlled = listener.start(link.as_deref(), handle.clone(), stop.clone())?;
    let (watched, wish) = (handle.clone(), stop.clone());
    // An array that ends by itself has nothing left to serve.
    let watcher = threads::start("end", move || {
        watched.wait_for_end();
        wish.wish();
    })?;
    ready(&serving);
    let pulse = service.map(|service| Pulse::start(service, snapshots)).transpose()?;
    let shown = show_resync(handle.clone(), stop.clone(), progress);
    stop.wait();
    if let Some(pulse) = &pulse {
        pulse.stopping(stop_bound(patience(ask.lost_after)));
    }
    handle.stop_soon();
    running.stop();
    let stopped = handle.stop().map_err(|error| error.to_string());
    drop(metered);
    listening.end.close();
    drop(watcher.join());
    controlled.end(stopped.clone());
    // A terminal that takes nothing is left behind.
    let _left_behind = shown.recv_timeout(FAREWELL);
    drop(pulse);
    stopped.map_err(AppError::trouble)
}

/// Waits until writes of a server that has died cannot come any more, and for a sign of one that lives: another machine can reach
/// the drives of an array that had an unclean shutdown.
fn wait_for_others(
    assembled: &Assembled,
    stop: &Stop,
    tell: &dyn Fn(Priority, &str),
) -> Result<(), AppError> {
    let seconds = TAKE_OVER.as_secs();
    let sentence = format!(
        "the array had an unclean shutdown, and other machines can reach its drives: waiting {seconds} s for \
         another server"
    );
    tell(Priority::Warning, &sentence);
    let (until, authors) = (Instant::now() + TAKE_OVER, assembled.authors());
    while Instant::now() < until {
        if stop.wait_until(until.min(Instant::now() + LOOK_EVERY)) {
            return Err(AppError::trouble("stopped before the array was started"));
        }
        if let Some(sentence) = assembled.newly_written(&authors) {
            return Err(AppError::usage(sentence));
        }
    }
    Ok(())
}

/// How long another server is waited for: longer than its connections wait before they write again.
const TAKE_OVER: Duration = LATE.saturating_add(Duration::from_secs(10));

/// Less, and the first write would be given up before a lease of another server is over.
const LOST_AFTER_MIN: Nanos = Nanos::from_secs(2);

/// How often the drives are looked at while another server is waited for.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Drives that wait for a place, and why others cannot, a sentence each.
fn spares(texts: &[String]) -> (Vec<MemberSpec>, Vec<String>) {
    let (mut spares, mut refused) = (Vec::new(), Vec::new());
    for text in texts {
        match members(std::slice::from_ref(text)) {
            Ok(spare) => spares.extend(spare),
            Err(error) => refused.push(error.to_string()),
        }
    }
    (spares, refused)
}

/// Shows the share of redundancy that is valid, until all is valid or a stop is asked for. What comes back is
/// closed when nothing is shown any more.
fn show_resync(handle: ArrayHandle, stop: Stop, progress: Box<dyn Progress>) -> Receiver<()> {
    let (shows, shown) = mpsc::channel();
    // Without a thread nothing is shown.
    drop(threads::start("progress", move || {
        watch_resync(&handle, &stop, progress.as_ref());
        drop((progress, shows));
    }));
    shown
}

fn watch_resync(handle: &ArrayHandle, stop: &Stop, progress: &dyn Progress) {
    /// A share in steps fine enough for a bar.
    const STEPS: u64 = 10_000;
    let Ok(status) = handle.status() else { return };
    if status.synced.get() >= 1.0 {
        return;
    }
    let task = progress.begin("resync", STEPS);
    loop {
        let Ok(status) = handle.status() else { return };
        task.reach((status.synced.get() * STEPS as f64) as u64);
        let soon = Instant::now() + Duration::from_millis(500);
        if status.synced.get() >= 1.0 || stop.wait_until(soon) {
            return;
        }
    }
}
