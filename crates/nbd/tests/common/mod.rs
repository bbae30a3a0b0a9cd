//! What the tests share: servers on a temporary socket, services that take their time, and a client
//! that says whatever it is told to.

#![allow(dead_code, reason = "every test file uses another part")]

pub(crate) mod pki;

use std::io::{self, Read, Write};
use std::ops::Deref;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Command;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use levelhead_block::adapter::OneByOne;
use levelhead_block::{BlockDevice, BlockService, Data, Done, Memory, Piece, Reply, Request};
use levelhead_nbd::codec::{
    Answer, ClientDecoder, ClientFlags, ClientOption, CommandFlags, CommandKind, Cookie, Errno,
    RequestHeader, ServerMessage, encode_flags,
};
use levelhead_nbd::{Access, Bounds, Endpoint, Export, Running, Server};
use levelhead_stats::Streams;
pub(crate) use levelhead_testkit::wait_until;
use levelhead_units::Sectors;
use tempfile::TempDir;

pub(crate) fn memory(sectors: u64) -> Arc<dyn BlockService> {
    Arc::new(OneByOne::new(Memory::new(Sectors::new(sectors))))
}

pub(crate) fn export(service: Arc<dyn BlockService>) -> Export {
    let (name, description) = ("disk".to_owned(), "for a test".to_owned());
    Export { name, description, service, access: Access::ReadWrite }
}

/// What a program printed, if it was content.
pub(crate) fn good(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{program} {arguments:?}: {}\n{out}{err}", output.status);
    out
}

/// A server on a socket of its own.
pub(crate) struct Served {
    pub(crate) running: Running,
    pub(crate) dir: TempDir,
}

impl Served {
    pub(crate) fn new(exports: Vec<Export>) -> Self {
        Self::bounded(exports, Bounds::default())
    }

    pub(crate) fn bounded(exports: Vec<Export>, bounds: Bounds) -> Self {
        Self::of(exports, |server| server.with_bounds(bounds))
    }

    /// A server that is changed before it starts.
    pub(crate) fn of(exports: Vec<Export>, change: impl FnOnce(Server) -> Server) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let endpoint = Endpoint::Unix(dir.path().join("nbd.sock"));
        let running = change(Server::bind(&endpoint, exports).unwrap()).start().unwrap();
        Self { running, dir }
    }

    pub(crate) fn over(service: Arc<dyn BlockService>) -> Self {
        Self::new(vec![export(service)])
    }

    /// A server over a service that keeps requests until it is opened.
    pub(crate) fn held(sectors: u64) -> (Self, Opener) {
        let held = Arc::new(Held::new(memory(sectors)));
        let served = Self::over(Arc::clone(&held) as Arc<dyn BlockService>);
        (served, Opener(held))
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.dir.path().join("nbd.sock")
    }

    pub(crate) fn raw(&self) -> RawClient {
        RawClient(UnixStream::connect(self.path()).unwrap(), ClientDecoder::new())
    }
}

/// A service that keeps requests until it is opened.
pub(crate) struct Held {
    inner: Arc<dyn BlockService>,
    state: Mutex<HeldState>,
}

struct HeldState {
    /// `None` once it is open.
    kept: Option<Vec<(Request, Done)>>,
    seen: usize,
}

impl Held {
    pub(crate) fn new(inner: Arc<dyn BlockService>) -> Self {
        Self { inner, state: Mutex::new(HeldState { kept: Some(Vec::new()), seen: 0 }) }
    }

    /// How many requests have come.
    pub(crate) fn seen(&self) -> usize {
        self.state.lock().unwrap().seen
    }

    /// Lets one request go: the one that came last.
    pub(crate) fn release_last(&self) {
        let last = self.state.lock().unwrap().kept.as_mut().and_then(Vec::pop);
        let (request, done) = last.expect("a request is kept");
        self.inner.submit(request, done);
    }

    /// Lets everything go, now and later.
    pub(crate) fn open(&self) {
        let kept = self.state.lock().unwrap().kept.take();
        for (request, done) in kept.into_iter().flatten() {
            self.inner.submit(request, done);
        }
    }
}

/// A [`Held`] that is opened at the end of the test, however that ends.
pub(crate) struct Opener(pub(crate) Arc<Held>);

impl Deref for Opener {
    type Target = Held;
    fn deref(&self) -> &Held {
        &self.0
    }
}

impl Drop for Opener {
    fn drop(&mut self) {
        self.0.open();
    }
}

impl BlockService for Held {
    fn size(&self) -> Sectors {
        self.inner.size()
    }

    fn submit(&self, request: Request, done: Done) {
        let mut state = self.state.lock().unwrap();
        state.seen += 1;
        if let Some(kept) = &mut state.kept {
            kept.push((request, done));
            return;
        }
        drop(state);
        self.inner.submit(request, done);
    }
}

/// A service that runs what it has in an order of its own, on a thread of its own.
pub(crate) struct Shuffled {
    size: Sectors,
    queue: Mutex<Sender<(Request, Done)>>,
}

impl Shuffled {
    pub(crate) fn new(mut device: impl BlockDevice + 'static, seed: u64) -> Arc<Self> {
        let size = device.size();
        let (queue, requests): (_, Receiver<(Request, Done)>) = mpsc::channel();
        let mut rng = Streams::new(seed).stream("shuffled");
        thread::spawn(move || {
            let mut waiting: Vec<(Request, Done)> = Vec::new();
            while let Ok(first) = requests.recv() {
                waiting.push(first);
                // Others get a chance to come, so that there is something to choose from.
                for _ in 0..3 {
                    thread::yield_now();
                    waiting.extend(requests.try_iter());
                }
                while !waiting.is_empty() {
                    let at = rng.below(waiting.len() as u64) as usize;
                    let (request, done) = waiting.swap_remove(at);
                    done(device.run(vec![request]).pop().unwrap());
                    waiting.extend(requests.try_iter());
                }
            }
        });
        Arc::new(Self { size, queue: Mutex::new(queue) })
    }
}

impl BlockService for Shuffled {
    fn size(&self) -> Sectors {
        self.size
    }

    fn submit(&self, request: Request, done: Done) {
        assert!(request.command.fits(self.size), "{:?} past the end", request.command);
        self.queue.lock().unwrap().send((request, done)).unwrap();
    }
}

/// A service whose reads come back as pieces, the first sector apart from the others.
pub(crate) struct InPieces(pub(crate) Arc<dyn BlockService>);

impl BlockService for InPieces {
    fn size(&self) -> Sectors {
        self.0.size()
    }

    fn submit(&self, request: Request, done: Done) {
        let cut = |data: Data| match data.sectors().get() as u32 {
            0 => data,
            sectors => {
                let whole = Piece::whole(Arc::new(data.into_buf()));
                let pieces = [whole.part(0, 1), whole.part(1, sectors - 1)];
                Data::Pieces(pieces.into())
            }
        };
        self.0
            .submit(request, Box::new(move |reply| done(Reply { data: cut(reply.data), ..reply })));
    }
}

/// A client that says whatever it is told to.
pub(crate) struct RawClient(pub(crate) UnixStream, ClientDecoder);

impl RawClient {
    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.0.write_all(bytes).unwrap();
    }

    /// Fails what would wait for the server longer than any machine takes, instead of waiting on.
    pub(crate) fn impatient(self) -> Self {
        let time = Some(Duration::from_secs(60));
        self.0.set_read_timeout(time).unwrap();
        self.0.set_write_timeout(time).unwrap();
        self
    }

    /// The next message, or nothing if the server has closed the connection. Bytes of a good simple
    /// reply are not understood.
    pub(crate) fn receive(&mut self) -> Option<ServerMessage> {
        self.receive_with(0)
    }

    /// The same, where good simple replies carry `read_len` bytes.
    pub(crate) fn receive_with(&mut self, read_len: u32) -> Option<ServerMessage> {
        loop {
            if let Some(message) = self.1.next(&mut |_| Some(read_len)).unwrap() {
                return Some(message);
            }
            match self.0.read(self.1.space()) {
                Ok(0) => return None,
                Ok(count) => self.1.filled(count),
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return None,
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// Takes the greeting and answers it.
    pub(crate) fn greet(&mut self) {
        assert!(matches!(self.receive(), Some(ServerMessage::Greeting(_))));
        let mut bytes = Vec::new();
        encode_flags(ClientFlags::KNOWN, &mut bytes);
        self.send(&bytes);
    }

    /// Sends an option and takes its answers.
    pub(crate) fn ask(&mut self, option: &ClientOption) -> Vec<Answer> {
        let mut bytes = Vec::new();
        option.encode(&mut bytes);
        self.send(&bytes);
        let mut answers = Vec::new();
        loop {
            let Some(ServerMessage::Answer { answer, .. }) = self.receive() else { panic!() };
            let last = matches!(answer, Answer::Ack | Answer::Refused { .. });
            answers.push(answer);
            if last {
                return answers;
            }
        }
    }

    /// Greets, sends `options`, and goes for the default export.
    pub(crate) fn go(&mut self, options: &[ClientOption]) {
        self.greet();
        for option in options {
            assert_eq!(self.ask(option).last(), Some(&Answer::Ack), "{option:?}");
        }
        self.choose("");
    }

    /// Greets, and goes for the export of that name.
    pub(crate) fn go_to(&mut self, export: &str) {
        self.greet();
        self.choose(export);
    }

    fn choose(&mut self, export: &str) {
        let go = ClientOption::Go { export: export.to_owned(), wanted: Vec::new() };
        assert_eq!(self.ask(&go).last(), Some(&Answer::Ack));
        self.1.begin_transmission();
    }

    /// Sends the head of a request.
    pub(crate) fn request(&mut self, cookie: u64, kind: CommandKind, offset: u64, length: u32) {
        self.request_with(cookie, kind, CommandFlags::NONE, offset, length);
    }

    pub(crate) fn request_with(
        &mut self,
        cookie: u64,
        kind: CommandKind,
        flags: CommandFlags,
        offset: u64,
        length: u32,
    ) {
        let mut bytes = Vec::new();
        RequestHeader { flags, kind, cookie: Cookie::new(cookie), offset, length }
            .encode(&mut bytes);
        self.send(&bytes);
    }

    /// Takes a simple reply without bytes: its cookie and its error.
    pub(crate) fn simple(&mut self) -> (u64, Option<Errno>) {
        match self.receive() {
            Some(ServerMessage::Simple { cookie, error, .. }) => (cookie.get(), error),
            other => panic!("expected a simple reply, got {other:?}"),
        }
    }
}
