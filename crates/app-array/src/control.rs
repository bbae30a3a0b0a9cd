//! The control socket of a running array: one JSON value a line, question and answer in turn.
//!
//! ```text
//!   {"verb": "status"}              {"ok": {..}}
//!   {"verb": "fail", "drive": 2}    {"ok": null}
//!   {"verb": "sit-out", "drive": 2} {"ok": null}
//!   {"verb": "admit", "drive": 2}   {"ok": null}
//!   {"verb": "events", "after": 7}  {"ok": {..}}
//!   {"verb": "stop"}                {"ok": null}        {"error": "a sentence"}
//! ```
//!
//! Each client has a thread of its own here; where none can be had, the thread that accepts clients answers one question
//! itself, so that an array can be stopped however few threads are left. That thread ends with the array alone, and is woken
//! by its own socket and not by the socket's name, which others may have removed. One that follows the events (`"follow": true`) asks nothing
//! any more: it gets a line whenever there is news, an empty one every [`HEARTBEAT`] if there is none,
//! by which the thread learns that it has left, and a last one when the array has ended. Those who
//! follow cannot take all places, so that one is left for a client that stops the array.
//!
//! The socket is a file that only its owner may open, in the run-time folder under the array's UUID, which
//! every member tells; where it is elsewhere, a link to it is there. It is described for users in
//! `docs/control.md`.

use std::fmt;
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use levelhead_host::ArrayHandle;
use levelhead_units::Nanos;
use serde::Serialize;

use super::messages::{Answer, EventsJson, Reply};
use super::verbs::Verb;
use levelhead_app::files::absolute;
use levelhead_app::{AppError, Stop, threads};

/// The longest question.
const LINE_MAX: u64 = 4096;

/// A client whose question has not come within this time, all of it, is turned away.
const PATIENCE: Duration = Duration::from_secs(5);

/// Clients whose question is answered at a time; one more waits, and not for long.
const CLIENTS_MAX: usize = 16;

/// Clients without a question at a time; for one more the oldest is sent away.
const WAITING_MAX: usize = 32;

/// Threads at a time: those of these, and of those that were sent away and have yet to end. Before one of them has, no
/// other client is accepted.
const THREADS_MAX: usize = CLIENTS_MAX + 2 * WAITING_MAX;

/// Those of them that follow the events; one more is sent away.
const FOLLOWERS_MAX: usize = 12;
const _: () = assert!(FOLLOWERS_MAX < CLIENTS_MAX);

/// The longest time between two lines to a client that follows the events.
const HEARTBEAT: Nanos = Nanos::from_secs(5);

/// The time between two attempts to accept a client, where one has failed.
const ACCEPT_PAUSE: Duration = Duration::from_millis(20);

/// The time between two looks for a thread that has ended, where there are too many.
const CROWD_PAUSE: Duration = Duration::from_millis(1);

/// A wish to stop, and how that went: known once the drives are closed.
#[derive(Clone)]
struct Ending {
    stop: Stop,
    ended: Arc<OnceLock<Result<(), String>>>,
}

/// What answers come from.
#[derive(Clone)]
struct Desk {
    handle: ArrayHandle,
    ending: Ending,
    /// For clients that are answered.
    answering: Arc<Slots>,
    /// For clients that follow the events.
    followers: Arc<Slots>,
    /// Whether clients wait to be accepted. Those that were answered leave then.
    is_crowded: Arc<AtomicBool>,
}

/// A number of slots.
#[derive(Default)]
struct Slots {
    taken: Mutex<usize>,
    freed: Condvar,
}

/// A slot of a client, free again when it is dropped.
struct Slot(Arc<Slots>);

impl Slots {
    /// Waits for one of `max` slots; none if there is none in this time.
    fn take(self: &Arc<Self>, max: usize, patience: Duration) -> Option<Slot> {
        let is_full = |taken: &mut usize| *taken >= max;
        let waited = self.freed.wait_timeout_while(self.lock(), patience, is_full);
        let (mut taken, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
        if timeout.timed_out() {
            return None;
        }
        *taken += 1;
        Some(Slot(Arc::clone(self)))
    }

    fn lock(&self) -> MutexGuard<'_, usize> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        *self.0.lock() -= 1;
        self.0.freed.notify_one();
    }
}

/// A socket's file, removed when it is dropped, unless something else is there by then.
struct SocketFile {
    path: PathBuf,
    /// Device and inode.
    identity: Option<(u64, u64)>,
}

impl SocketFile {
    fn new(path: PathBuf) -> Self {
        let identity = identity(&path);
        Self { path, identity }
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if self.identity.is_some() && identity(&self.path) == self.identity {
            drop(fs::remove_file(&self.path));
        }
    }
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    let metadata = fs::symlink_metadata(path).ok()?;
    Some((metadata.dev(), metadata.ino()))
}

/// A control socket that does not answer yet.
pub(super) struct Listener {
    file: SocketFile,
    listener: UnixListener,
}

/// A control socket at work. Dropping it closes and removes it.
pub(super) struct Controlled {
    file: Option<SocketFile>,
    link: Option<SocketFile>,
    /// The socket that clients are accepted at.
    waker: UnixListener,
    closing: Arc<AtomicBool>,
    ending: Ending,
    thread: Option<JoinHandle<()>>,
}

impl Listener {
    /// Listens at `path`. A socket at which no program listens is replaced.
    pub(super) fn bind(path: &Path) -> Result<Self, AppError> {
        let fail = |error: io::Error| {
            AppError::usage(format!("cannot listen for control at {}: {error}", path.display()))
        };
        match UnixStream::connect(path) {
            Ok(_) => {
                let path = path.display();
                return Err(AppError::usage(format!(
                    "a running array answers at {path} already; --control names another place"
                )));
            }
            Err(error) if is_left_over(path, &error) => fs::remove_file(path).map_err(fail)?,
            Err(_) if path.symlink_metadata().is_ok() => {
                let path = path.display();
                return Err(AppError::usage(format!(
                    "cannot listen for control at {path}: something else is there, which is not a control socket"
                )));
            }
            Err(_) => {}
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
        let file = SocketFile::new(path.to_owned());
        Ok(Self { file, listener })
    }

    /// Answers from now on, also to those who come through a link.
    ///
    /// # Errors
    ///
    /// The system has no thread or no file descriptor left.
    pub(super) fn start(
        self,
        link: Option<&Path>,
        handle: ArrayHandle,
        stop: Stop,
    ) -> Result<Controlled, AppError> {
        let Self { file, listener } = self;
        let waker = listener.try_clone().map_err(|error| {
            AppError::trouble(format!(
                "cannot listen for control at {}: {error}",
                file.path.display()
            ))
        })?;
        let closing = Arc::new(AtomicBool::new(false));
        let closed = Arc::clone(&closing);
        let ending = Ending { stop, ended: Arc::default() };
        let (answering, followers, is_crowded) = Default::default();
        let desk = Desk { handle, ending: ending.clone(), answering, followers, is_crowded };
        let answer = move || {
            let mut clients = Clients::default();
            loop {
                let accepted = listener.accept();
                if closed.load(Ordering::Relaxed) {
                    return;
                }
                match accepted {
                    Ok((stream, _)) => {
                        clients.make_room(&closed, &desk.is_crowded);
                        clients.welcome(stream, &desk);
                    }
                    Err(_) => std::thread::sleep(ACCEPT_PAUSE),
                }
            }
        };
        let thread = threads::start("control", answer)?;
        let link = link.and_then(|link| lead(link, &file.path));
        Ok(Controlled { file: Some(file), link, waker, closing, ending, thread: Some(thread) })
    }
}

/// Makes a link to a socket, in the place of an old one that leads nowhere. Where there is something
/// else, or none can be made, the array does without.
fn lead(link: &Path, socket: &Path) -> Option<SocketFile> {
    use std::os::unix::fs::symlink;
    if UnixStream::connect(link).err().is_some_and(|error| is_left_over(link, &error)) {
        fs::remove_file(link).ok()?;
    }
    symlink(absolute(socket), link).ok()?;
    Some(SocketFile::new(link.to_owned()))
}

/// Those who are connected, each with a thread of its own; the oldest first.
#[derive(Default)]
struct Clients(Vec<Client>);

struct Client {
    stream: Arc<UnixStream>,
    /// Whether a question of it is answered, or it has been sent away.
    is_busy: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Clients {
    /// Sends those away that wait for too long a time, and waits for threads to end where there are too many.
    fn make_room(&mut self, closed: &AtomicBool, is_crowded: &AtomicBool) {
        loop {
            self.0.retain(|client| !client.thread.is_finished());
            let mut waiting = self.0.iter().filter(|client| client.is_waiting());
            if let Some(oldest) = waiting.next()
                && waiting.count() + 1 >= WAITING_MAX
            {
                oldest.is_busy.store(true, Ordering::Relaxed);
                drop(oldest.stream.shutdown(Shutdown::Both));
            }
            let is_full = self.0.len() >= THREADS_MAX && !closed.load(Ordering::Relaxed);
            is_crowded.store(is_full, Ordering::Relaxed);
            if !is_full {
                return;
            }
            std::thread::sleep(CROWD_PAUSE);
        }
    }

    fn welcome(&mut self, stream: UnixStream, desk: &Desk) {
        let is_busy = Arc::new(AtomicBool::new(false));
        let stream = Arc::new(stream);
        let desk_of_thread = desk.clone();
        let shared = Arc::clone(&stream);
        let its = Arc::clone(&is_busy);
        let talk = move || {
            // An error means that the client has left; nothing has to be done about that.
            drop(desk_of_thread.converse(&shared, &its));
            // There is another handle of the socket, so dropping this one alone would not end the connection.
            drop(shared.shutdown(Shutdown::Both));
        };
        match threads::start("control-client", talk) {
            Ok(thread) => self.0.push(Client { stream, is_busy, thread }),
            Err(error) => drop(desk.answer_one(&stream, &error)),
        }
    }
}

impl Client {
    /// Whether it has no question. One that it has asked may not have been read yet.
    fn is_waiting(&self) -> bool {
        let has_asked = || rustix::io::ioctl_fionread(&*self.stream).is_ok_and(|bytes| bytes > 0);
        !self.is_busy.load(Ordering::Relaxed) && !has_asked()
    }
}

/// A client's socket, of which a question comes in time, or an error.
struct Until<'a> {
    stream: &'a UnixStream,
    by: Instant,
}

impl Read for Until<'_> {
    fn read(&mut self, space: &mut [u8]) -> io::Result<usize> {
        let left = self.by.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.stream.set_read_timeout(Some(left))?;
        self.stream.read(space)
    }
}

impl Drop for Clients {
    /// Each client gets the answer to its question, and clients without a question are not waited for.
    fn drop(&mut self) {
        for Client { stream, thread, .. } in self.0.drain(..) {
            // Errors: the client has left, or its thread has panicked and has reported that itself.
            drop(stream.shutdown(Shutdown::Read));
            drop(thread.join());
        }
    }
}

/// Whether a socket lies here at which no program listens, or a link to one that has gone: a client cannot connect for
/// this reason. Sockets of other kinds, and those of others, give other reasons, and may be in use.
fn is_left_over(path: &Path, error: &io::Error) -> bool {
    use std::os::unix::fs::FileTypeExt;
    match error.kind() {
        // Files that are no sockets refuse, too.
        io::ErrorKind::ConnectionRefused => {
            fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_socket())
        }
        io::ErrorKind::NotFound => fs::symlink_metadata(path).is_ok_and(|own| own.is_symlink()),
        _ => false,
    }
}

impl Controlled {
    /// Closes the socket and tells the client that wanted the array to stop how that went.
    pub(super) fn end(mut self, result: Result<(), String>) {
        self.close(result);
    }

    fn close(&mut self, result: Result<(), String>) {
        let Some((file, thread)) = self.file.take().zip(self.thread.take()) else { return };
        self.closing.store(true, Ordering::Relaxed);
        // Wakes the thread, which looks at the flag first.
        let _awake = rustix::net::shutdown(&self.waker, rustix::net::Shutdown::Both);
        // Before any client learns of the end: it may serve the array again at once.
        self.link = None;
        drop(file);
        assert!(self.ending.ended.set(result).is_ok(), "an array ends once");
        drop(thread.join());
    }
}

impl Drop for Controlled {
    fn drop(&mut self) {
        // No client is to wait for a stop when the array has ended some other way.
        self.close(Err("the array has ended before its time".to_owned()));
    }
}

impl Desk {
    fn converse(&self, stream: &UnixStream, is_busy: &AtomicBool) -> io::Result<()> {
        let mut lines = hear(stream)?;
        loop {
            let mut line = String::new();
            is_busy.store(false, Ordering::Relaxed);
            lines.get_mut().by = Instant::now() + PATIENCE;
            if (&mut lines).take(LINE_MAX).read_line(&mut line)? == 0 {
                return Ok(());
            }
            is_busy.store(true, Ordering::Relaxed);
            let Some(_slot) = self.answering.take(CLIENTS_MAX, PATIENCE) else {
                return say(stream, &too_many());
            };
            let reply = match serde_json::from_str(&line) {
                Ok(Verb::Events { after, follow: true }) => return self.follow(stream, after),
                Ok(verb) => self.answer(verb),
                Err(error) => refuse(format!("not a question: {error}")),
            };
            say(stream, &reply)?;
            if self.has_ended() || self.is_crowded.load(Ordering::Relaxed) {
                return Ok(()); // Also where the client would go on without end.
            }
        }
    }

    /// Answers one question of a client for whom no thread can be had, for this reason.
    fn answer_one(&self, stream: &UnixStream, why: &AppError) -> io::Result<()> {
        let mut line = String::new();
        hear(stream)?.take(LINE_MAX).read_line(&mut line)?;
        let reply = match serde_json::from_str(&line) {
            Ok(Verb::Events { follow: true, .. }) => {
                refuse(format!("events cannot be followed now, try again: {why}"))
            }
            Ok(verb) => self.answer(verb),
            Err(error) => refuse(format!("not a question: {error}")),
        };
        say(stream, &reply)?;
        stream.shutdown(Shutdown::Both)
    }

    /// Tells what has happened after an event, and what happens, until the array has ended.
    fn follow(&self, stream: &UnixStream, mut after: u64) -> io::Result<()> {
        let Some(_slot) = self.followers.take(FOLLOWERS_MAX, Duration::ZERO) else {
            let sentence = format!("{FOLLOWERS_MAX} clients follow the events already, try again");
            return say(stream, &refuse(sentence));
        };
        let mut patience = Nanos::ZERO;
        loop {
            let since = match self.handle.events(after, patience) {
                Ok(since) => since,
                Err(error) => return say(stream, &refuse(error)),
            };
            patience = HEARTBEAT;
            after = since.events.last().map_or(after, |event| event.number);
            say(stream, &Reply::Ok(Some(Answer::Events(EventsJson::from(&since)))))?;
            if since.has_ended || self.has_ended() {
                return Ok(());
            }
        }
    }

    fn has_ended(&self) -> bool {
        self.ending.ended.get().is_some()
    }

    fn answer(&self, verb: Verb) -> Reply<Answer> {
        let stop = || {
            self.ending.stop.wish();
            self.ending.ended.wait().clone()
        };
        verb.carry_out(&self.handle, stop).map_or_else(refuse, Reply::Ok)
    }
}

/// What a client says. It is waited for, though not for long.
fn hear(stream: &UnixStream) -> io::Result<BufReader<Until<'_>>> {
    stream.set_write_timeout(Some(PATIENCE))?;
    Ok(BufReader::new(Until { stream, by: Instant::now() + PATIENCE }))
}

fn too_many() -> Reply<Answer> {
    refuse(format!("{CLIENTS_MAX} clients ask already, try again"))
}

fn refuse(sentence: impl fmt::Display) -> Reply<Answer> {
    Reply::Error(sentence.to_string())
}

fn say(mut stream: &UnixStream, reply: &impl Serialize) -> io::Result<()> {
    let mut text = serde_json::to_string(reply)?;
    text.push('\n');
    stream.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests;
