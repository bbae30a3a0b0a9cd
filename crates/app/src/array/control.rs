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
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;

use levelhead_host::ArrayHandle;
use levelhead_units::Nanos;
use serde::Serialize;

use super::messages::{Answer, EventsJson, Reply};
use super::verbs::Verb;
use crate::files::absolute;
use crate::{AppError, Stop, threads};

/// The longest question.
const LINE_MAX: u64 = 4096;

/// A client that sends nothing for this time is turned away.
const PATIENCE: Duration = Duration::from_secs(5);

/// Clients at a time; one more is sent away.
const CLIENTS_MAX: usize = 16;

/// Those of them that follow the events; one more is sent away.
const FOLLOWERS_MAX: usize = 12;
const _: () = assert!(FOLLOWERS_MAX < CLIENTS_MAX);

/// The longest time between two lines to a client that follows the events.
const HEARTBEAT: Nanos = Nanos::from_secs(5);

/// The time between two attempts to accept a client, where one has failed.
const ACCEPT_PAUSE: Duration = Duration::from_millis(20);

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
    /// How many clients follow the events.
    followers: Arc<AtomicUsize>,
}

/// A slot for a client that follows the events, free again when it is dropped.
struct FollowerSlot(Arc<AtomicUsize>);

impl Drop for FollowerSlot {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
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
        let desk = Desk { handle, ending: ending.clone(), followers: Arc::default() };
        let answer = move || {
            let mut clients = Clients::default();
            loop {
                let accepted = listener.accept();
                if closed.load(Ordering::Relaxed) {
                    return;
                }
                match accepted {
                    Ok((stream, _)) => clients.welcome(stream, &desk),
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

/// Those who ask, each on a thread of its own.
#[derive(Default)]
struct Clients(Vec<(Arc<UnixStream>, JoinHandle<()>)>);

impl Clients {
    fn welcome(&mut self, stream: UnixStream, desk: &Desk) {
        self.0.retain(|(_, thread)| !thread.is_finished());
        if self.0.len() >= CLIENTS_MAX {
            let reply = refuse(format!("{CLIENTS_MAX} clients ask already, try again"));
            drop(say(&stream, &reply)); // The client that is turned away may have left.
            return;
        }
        let stream = Arc::new(stream);
        let (desk_of_thread, shared) = (desk.clone(), Arc::clone(&stream));
        let talk = move || {
            // An error means that the client has left; nothing has to be done about that.
            drop(desk_of_thread.converse(&shared));
            // There is another handle of the socket, so dropping this one alone would not end the connection.
            drop(shared.shutdown(Shutdown::Both));
        };
        match threads::start("control-client", talk) {
            Ok(thread) => self.0.push((stream, thread)),
            Err(error) => drop(desk.answer_one(&stream, &error)),
        }
    }
}

impl Drop for Clients {
    /// Each client gets the answer to its question, and clients without a question are not waited for.
    fn drop(&mut self) {
        for (stream, thread) in self.0.drain(..) {
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
    fn converse(&self, stream: &UnixStream) -> io::Result<()> {
        let mut lines = hear(stream)?;
        loop {
            let mut line = String::new();
            if (&mut lines).take(LINE_MAX).read_line(&mut line)? == 0 {
                return Ok(());
            }
            let reply = match serde_json::from_str(&line) {
                Ok(Verb::Events { after, follow: true }) => return self.follow(stream, after),
                Ok(verb) => self.answer(verb),
                Err(error) => refuse(format!("not a question: {error}")),
            };
            say(stream, &reply)?;
            if self.has_ended() {
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
        let Some(_slot) = self.slot() else {
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

    fn slot(&self) -> Option<FollowerSlot> {
        let more = |count| (count < FOLLOWERS_MAX).then_some(count + 1);
        let taken = self.followers.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        taken.is_ok().then(|| FollowerSlot(Arc::clone(&self.followers)))
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
fn hear(stream: &UnixStream) -> io::Result<BufReader<&UnixStream>> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    Ok(BufReader::new(stream))
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
