//! The server: one thread that takes connections, and one for each of them, as many as there may be.
//!
//! # Invariants
//!
//! - H1. A connection carries one request and is closed after its answer. From its beginning on it has
//!   [`REQUEST_MAX`] for the request's head, and from then on [`ANSWER_MAX`] to take the answer, besides what the source takes.
//! - H2. At most [`CLIENTS_MAX`] requests are answered at a time; one more gets a short refusal. At most
//!   [`WAITING_MAX`] other connections are open: those without a whole request, and those that have their answer. One
//!   more drops the oldest of them from the address that has most, so that one who opens ever more drops its own.
//! - H3. What a client sends is held up to [`HEAD_MAX`] bytes.
//! - H4. Stopping waits for no client: for the source alone, if it is being asked.
//! - H5. At a loopback address it answers to this machine's own names alone: a page in a browser here may call the address by a name of
//!   its own, and would read the answer.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::request::{Asked, HEAD_MAX, Host, Page, Refusal, end_of_head, parse};
use crate::{Address, Exposition, Family, Format};

/// Requests that are answered at a time.
const CLIENTS_MAX: usize = 16;

/// Connections at a time of which nothing is answered.
const WAITING_MAX: usize = 64;

/// Threads at a time: those of these, and of those that were dropped and have yet to end.
const THREADS_MAX: usize = CLIENTS_MAX + 2 * WAITING_MAX;

/// How long a request's head may take to come, all of it.
const REQUEST_MAX: Duration = Duration::from_secs(5);

/// How long an answer may take to be sent, all of it.
const ANSWER_MAX: Duration = Duration::from_secs(10);

/// How long a client may take to close a connection after its answer, and how much it may still send.
const FAREWELL: Duration = Duration::from_millis(500);
const FAREWELL_BYTES: usize = 64 * 1024;

/// How long to wait after a client could not be accepted, for want of file descriptors perhaps.
const ACCEPT_PAUSE: Duration = Duration::from_millis(20);

/// What is measured, asked for at every scrape. Its answer takes a limited time.
pub type Source = Box<dyn Fn() -> Vec<Family> + Send + Sync>;

/// A server that listens and does not answer yet.
pub struct Server {
    listener: TcpListener,
    address: Address,
}

/// A server that answers. Stops when dropped.
pub struct Running {
    address: Address,
    waker: TcpListener,
    stopping: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Listens at `address`.
    ///
    /// # Errors
    ///
    /// One sentence that names the address and what is wrong with it.
    pub fn bind(address: Address) -> Result<Self, String> {
        let fail = |error: io::Error| format!("cannot listen for metrics at {address}: {error}");
        let listener = TcpListener::bind(address.0).map_err(fail)?;
        let port = listener.local_addr().map_err(fail)?.port();
        Ok(Self { listener, address: address.with_port(port) })
    }

    /// Answers from now on.
    ///
    /// # Errors
    ///
    /// The system has no thread or no file descriptor left.
    pub fn start(self, source: Source) -> Result<Running, String> {
        let Self { listener, address } = self;
        let fail = |error: io::Error| format!("cannot answer for metrics at {address}: {error}");
        let waker = listener.try_clone().map_err(fail)?;
        let stopping = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stopping);
        let desk = Arc::new(Desk { source, is_for_own: address.0.ip().is_loopback() });
        let accept = move || accept(&listener, &desk, &stopped);
        let thread =
            thread::Builder::new().name("metrics".to_owned()).spawn(accept).map_err(fail)?;
        Ok(Running { address, waker, stopping, thread: Some(thread) })
    }
}

impl Running {
    /// Where it listens. If the port was left to the system, this names it.
    pub fn address(&self) -> Address {
        self.address
    }

    /// Turns clients away and closes their connections (H4).
    pub fn stop(self) {
        drop(self);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stopping.store(true, Ordering::Relaxed);
        // Wakes the thread that waits for clients, which then sees the flag.
        let _awake = rustix::net::shutdown(&self.waker, rustix::net::Shutdown::Both);
        if let Some(thread) = self.thread.take() {
            // One that panicked has said so on its own.
            drop(thread.join());
        }
    }
}

/// What answers.
struct Desk {
    source: Source,
    /// Whether only this machine's own names for itself are answered to (H5).
    is_for_own: bool,
}

fn accept(listener: &TcpListener, desk: &Arc<Desk>, stopping: &AtomicBool) {
    let mut clients = Clients::default();
    loop {
        let accepted = listener.accept();
        if stopping.load(Ordering::Relaxed) {
            return;
        }
        match accepted {
            Ok((stream, peer)) => clients.welcome(stream, peer.ip().to_canonical(), desk),
            Err(_) => thread::sleep(ACCEPT_PAUSE),
        }
    }
}

/// Those who are connected, each with a thread of its own; the oldest first.
#[derive(Default)]
struct Clients {
    all: Vec<Client>,
    /// How many requests are answered.
    answering: Arc<AtomicUsize>,
}

struct Client {
    stream: Arc<Mutex<Option<TcpStream>>>,
    address: IpAddr,
    state: Arc<State>,
    thread: JoinHandle<()>,
}

/// How far a client is.
#[derive(Default)]
struct State {
    is_answered: AtomicBool,
    is_dropped: AtomicBool,
}

/// A place among those who are answered, until it is dropped.
struct Slot<'a> {
    answering: &'a AtomicUsize,
    state: &'a State,
}

impl<'a> Slot<'a> {
    /// None if there are [`CLIENTS_MAX`].
    fn take(answering: &'a AtomicUsize, state: &'a State) -> Option<Self> {
        let more = |count| (count < CLIENTS_MAX).then_some(count + 1);
        answering.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()?;
        state.is_answered.store(true, Ordering::Relaxed);
        Some(Self { answering, state })
    }
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        self.state.is_answered.store(false, Ordering::Relaxed);
        self.answering.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Client {
    fn is_waiting(&self) -> bool {
        let State { is_answered, is_dropped } = &*self.state;
        !is_answered.load(Ordering::Relaxed) && !is_dropped.load(Ordering::Relaxed)
    }
}

impl Clients {
    fn welcome(&mut self, stream: TcpStream, address: IpAddr, desk: &Arc<Desk>) {
        self.all.retain(|client| !client.thread.is_finished());
        if self.all.len() >= THREADS_MAX {
            turn_away(&stream);
            return;
        }
        self.make_room();
        let Ok(own) = stream.try_clone() else { return };
        let (held, desk) = (Arc::new(Mutex::new(Some(own))), Arc::clone(desk));
        let (shared, state) = (Arc::clone(&held), Arc::new(State::default()));
        let (its, answering) = (Arc::clone(&state), Arc::clone(&self.answering));
        let talk = move || {
            // A client that has left, or takes too long, hears no more.
            drop(converse(&stream, &desk, || Slot::take(&answering, &its)));
            drop(stream.shutdown(Shutdown::Both));
            *lock(&shared) = None;
        };
        // Without a thread left, dropping the closure closes the connection.
        if let Ok(thread) = thread::Builder::new().name("metrics-client".to_owned()).spawn(talk) {
            self.all.push(Client { stream: held, address, state, thread });
        }
    }

    /// Drops a connection if there are too many of which nothing is answered (H2).
    fn make_room(&self) {
        let waiting = || self.all.iter().filter(|client| client.is_waiting());
        if waiting().count() < WAITING_MAX {
            return;
        }
        let mut addresses: BTreeMap<IpAddr, usize> = BTreeMap::new();
        waiting().for_each(|client| *addresses.entry(client.address).or_default() += 1);
        let most = addresses.into_iter().max_by_key(|&(_, count)| count);
        let oldest =
            waiting().find(|client| Some(client.address) == most.map(|(address, _)| address));
        if let Some(client) = oldest {
            client.state.is_dropped.store(true, Ordering::Relaxed);
            client.shut_down();
        }
    }
}

impl Client {
    fn shut_down(&self) {
        if let Some(stream) = &*lock(&self.stream) {
            drop(stream.shutdown(Shutdown::Both));
        }
    }
}

impl Drop for Clients {
    fn drop(&mut self) {
        self.all.iter().for_each(Client::shut_down);
        for Client { thread, .. } in self.all.drain(..) {
            drop(thread.join());
        }
    }
}

fn lock(stream: &Mutex<Option<TcpStream>>) -> std::sync::MutexGuard<'_, Option<TcpStream>> {
    stream.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Tells a client that there are too many, without waiting for it.
fn turn_away(mut stream: &TcpStream) {
    let answer = answer_to_refusal(Refusal::TooMany);
    if stream.set_nonblocking(true).is_ok() {
        drop(stream.write(answer.as_bytes()));
        drop(stream.shutdown(Shutdown::Write));
    }
}

/// One request and its answer (H1).
fn converse<'a>(
    stream: &TcpStream,
    desk: &Desk,
    slot: impl Fn() -> Option<Slot<'a>>,
) -> io::Result<()> {
    let head = read_head(stream, Instant::now() + REQUEST_MAX);
    let slot = slot();
    let answer = match (head, &slot) {
        (Ok(None), _) => return Ok(()),
        (Ok(Some(_)), None) => answer_to_refusal(Refusal::TooMany),
        (Ok(Some(head)), Some(_)) => match parse(&head) {
            Ok(Asked { host: Host::Other, .. }) if desk.is_for_own => {
                answer_to_refusal(Refusal::Misdirected)
            }
            Ok(asked) => answer(asked, &desk.source),
            Err(refusal) => answer_to_refusal(refusal),
        },
        (Err(refusal), _) => answer_to_refusal(refusal),
    };
    write_all(stream, answer.as_bytes(), Instant::now() + ANSWER_MAX)?;
    drop(slot);
    // To close it with something unread would take the answer back from a client that has not read it.
    stream.shutdown(Shutdown::Write)?;
    let (by, mut left) = (Instant::now() + FAREWELL, FAREWELL_BYTES);
    while left > 0 {
        let mut rest = [0; 4096];
        match read(stream, &mut rest, by)? {
            0 => break,
            count => left = left.saturating_sub(count),
        }
    }
    Ok(())
}

/// The head of a request; nothing if the client has left without one.
fn read_head(stream: &TcpStream, by: Instant) -> Result<Option<Vec<u8>>, Refusal> {
    let mut head = Vec::new();
    loop {
        let mut part = [0; 1024];
        let room = (HEAD_MAX - head.len()).min(part.len());
        if room == 0 {
            return Err(Refusal::TooLong); // H3
        }
        match read(stream, &mut part[..room], by) {
            Ok(0) => return Ok(None),
            Ok(count) => head.extend_from_slice(&part[..count]),
            Err(error) if is_late(&error) => return Err(Refusal::Slow),
            Err(_) => return Ok(None),
        }
        if let Some(end) = end_of_head(&head) {
            head.truncate(end);
            return Ok(Some(head));
        }
    }
}

fn is_late(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

fn left_until(by: Instant) -> io::Result<Duration> {
    let left = by.saturating_duration_since(Instant::now());
    if left == Duration::ZERO { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
}

fn read(mut stream: &TcpStream, bytes: &mut [u8], by: Instant) -> io::Result<usize> {
    loop {
        stream.set_read_timeout(Some(left_until(by)?))?;
        match stream.read(bytes) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

fn write_all(mut stream: &TcpStream, mut bytes: &[u8], by: Instant) -> io::Result<()> {
    while !bytes.is_empty() {
        stream.set_write_timeout(Some(left_until(by)?))?;
        match stream.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => bytes = &bytes[count..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn answer(Asked { page, is_head, host: _ }: Asked, source: &Source) -> String {
    let (media_type, body) = match page {
        Page::Index => ("text/plain; charset=utf-8", "The metrics are at /metrics.\n".to_owned()),
        Page::Metrics(format) => (format.media_type(), text(source, format)),
    };
    http("200 OK", media_type, &body, is_head)
}

fn text(source: &Source, format: Format) -> String {
    Exposition(&source()).text(format)
}

fn answer_to_refusal(refusal: Refusal) -> String {
    let body = format!("{}\n", refusal.sentence());
    http(refusal.status(), "text/plain; charset=utf-8", &body, false)
}

fn http(status: &str, media_type: &str, body: &str, is_head: bool) -> String {
    let length = body.len();
    let allow = if status.starts_with("405") { "Allow: GET, HEAD\r\n" } else { "" };
    let body = if is_head { "" } else { body };
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {media_type}\r\nContent-Length: {length}\r\n{allow}\
         Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n{body}"
    )
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;
    use crate::exposition::every_kind;

    fn serve(source: impl Fn() -> Vec<Family> + Send + Sync + 'static) -> Running {
        let server = Server::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        server.start(Box::new(source)).unwrap()
    }

    fn connect(running: &Running) -> TcpStream {
        TcpStream::connect(running.address().0).unwrap()
    }

    /// The head and the body of the answer.
    fn ask(running: &Running, request: &str) -> (String, String) {
        let mut stream = connect(running);
        stream.write_all(request.as_bytes()).unwrap();
        hear(&mut stream)
    }

    fn hear(stream: &mut TcpStream) -> (String, String) {
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{text}"));
        (head.to_owned(), body.to_owned())
    }

    #[test]
    fn scrape_gets_the_families_in_the_format_it_wants() {
        let running = serve(every_kind);
        let expected = |format| Exposition(&every_kind()).text(format);
        let newer = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\
                     Accept: application/openmetrics-text; version=1.0.0\r\n\r\n";
        let (head, body) = ask(&running, newer);
        assert!(head.starts_with("HTTP/1.1 200 OK\r\nContent-Type: application/openmetrics-text;"));
        assert_eq!(body, expected(Format::OpenMetrics));
        assert!(head.contains(&format!("\r\nContent-Length: {}\r\n", body.len())), "{head}");
        let older = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nAccept: text/plain\r\n\r\n";
        let (head, body) = ask(&running, older);
        assert!(head.contains("\r\nContent-Type: text/plain; version=0.0.4;"), "{head}");
        assert_eq!(body, expected(Format::Prometheus));
        let (head, nothing) = ask(
            &running,
            "HEAD /metrics HTTP/1.1\r\nHost: localhost\r\nAccept: text/plain\r\n\r\n",
        );
        assert!(head.contains(&format!("\r\nContent-Length: {}\r\n", body.len())), "{head}");
        assert_eq!(nothing, "");
        let (head, body) = ask(&running, "GET / HTTP/1.0\r\n\r\n");
        assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
        assert_eq!(body, "The metrics are at /metrics.\n");
        running.stop();
    }

    #[test]
    fn what_is_not_answered_is_refused_and_the_next_client_is_served() {
        let running = serve(every_kind);
        let long = format!("GET / HTTP/1.0\r\nX: {}\r\n\r\n", "x".repeat(20_000));
        for (request, status) in [
            ("GET /other HTTP/1.0\r\n\r\n", "404"),
            ("DELETE /metrics HTTP/1.0\r\n\r\n", "405"),
            ("GET /metrics HTTP/1.1\r\n\r\n", "400"),
            ("\r\n\r\n", "400"),
            ("GET / HTTP/3.0\r\n\r\n", "505"),
            (&long, "431"),
            ("GET /metrics HTTP/1.1\r\nHost: evil.example:9469\r\n\r\n", "421"),
        ] {
            let (head, body) = ask(&running, request);
            assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{request:.40}: {head}");
            assert_eq!(head.contains("Allow: GET, HEAD"), status == "405");
            assert!(body.ends_with(".\n") && !body.trim().contains('\n'), "{body}");
        }
        // One that leaves in the middle of its request.
        let mut left = connect(&running);
        left.write_all(b"GET /met").unwrap();
        drop(left);
        assert!(ask(&running, "GET / HTTP/1.0\r\n\r\n").0.starts_with("HTTP/1.1 200 "));
    }

    #[test]
    fn clients_that_say_nothing_keep_nobody_out_and_hold_up_no_stop() {
        let running = serve(every_kind);
        let is_over = AtomicBool::new(false);
        let opened = AtomicUsize::new(0);
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut silent = std::collections::VecDeque::new();
                while !is_over.load(Ordering::Relaxed) {
                    silent.extend(TcpStream::connect(running.address().0));
                    opened.fetch_add(1, Ordering::Relaxed);
                    if silent.len() > 200 {
                        silent.pop_front();
                    }
                }
            });
            while opened.load(Ordering::Relaxed) < 2 * WAITING_MAX {
                thread::yield_now();
            }
            let served = || {
                let mut stream = connect(&running);
                stream.write_all(b"GET / HTTP/1.0\r\n\r\n").is_ok() && {
                    let mut text = Vec::new();
                    drop(stream.read_to_end(&mut text));
                    text.starts_with(b"HTTP/1.1 200 ")
                }
            };
            let count = (0..100).filter(|_| served()).count();
            is_over.store(true, Ordering::Relaxed);
            assert_eq!(count, 100, "H2");
        });
        let _silent: Vec<TcpStream> = (0..CLIENTS_MAX).map(|_| connect(&running)).collect();
        running.stop(); // H4
    }

    #[test]
    fn requests_beyond_the_bound_are_refused() {
        let gate = Arc::new((Mutex::new((0, false)), std::sync::Condvar::new()));
        let inside = Arc::clone(&gate);
        let running = serve(move || {
            let (state, changed) = &*inside;
            let mut state = state.lock().unwrap();
            state.0 += 1;
            changed.notify_all();
            drop(changed.wait_while(state, |state| !state.1).unwrap());
            Vec::new()
        });
        let ask_once = || {
            let mut stream = connect(&running);
            stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").unwrap();
            stream
        };
        let mut asking: Vec<TcpStream> = (0..CLIENTS_MAX).map(|_| ask_once()).collect();
        let (state, changed) = &*gate;
        let all = |state: &mut (usize, bool)| state.0 < CLIENTS_MAX;
        drop(changed.wait_while(state.lock().unwrap(), all).unwrap());
        let (head, _) = hear(&mut ask_once());
        assert!(head.starts_with("HTTP/1.1 503 "), "H2: {head}");
        state.lock().unwrap().1 = true;
        changed.notify_all();
        for stream in &mut asking {
            assert!(hear(stream).0.starts_with("HTTP/1.1 200 "));
        }
    }

    #[test]
    fn source_that_takes_long_holds_up_its_own_client_alone() {
        let (release, held) = mpsc::channel::<()>();
        let (began, begun) = mpsc::channel();
        let held = Mutex::new(Some((held, began)));
        let running = serve(move || {
            let first = held.lock().unwrap().take();
            if let Some((held, began)) = first {
                began.send(()).unwrap();
                let _released = held.recv();
            }
            Vec::new()
        });
        let mut slow = connect(&running);
        slow.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").unwrap();
        begun.recv().unwrap();
        assert_eq!(ask(&running, "GET /metrics HTTP/1.0\r\n\r\n").1, "");
        release.send(()).unwrap();
        assert_eq!(hear(&mut slow).1, "");
    }

    #[test]
    fn address_in_use_is_refused_with_its_name() {
        let running = serve(Vec::new);
        let address = running.address();
        let refused = Server::bind(address).err().unwrap();
        assert!(
            refused.starts_with(&format!("cannot listen for metrics at {address}: ")),
            "{refused}"
        );
    }
}
