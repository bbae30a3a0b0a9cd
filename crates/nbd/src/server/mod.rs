//! A server: exports over block services, clients at one endpoint.
//!
//! Threads: one accepts, two serve each connection (see [`connection`]), a third one that is encrypted (see
//! [`pump`](crate::tls::pump)), one per service does what
//! must wait for a reply of it (see [`export`]).
//!
//! # Invariants
//!
//! - S1. Nothing a client sends makes the server panic, or the service see an address outside its
//!   size.
//! - S2. A connection has at most 128 requests and 64 MiB in flight, the one being received included,
//!   and all connections together [`BYTES_MAX`], a part of which is each connection's own (see [`budget`]);
//!   past that a socket is not read. The bytes of a write count before there is memory for them.
//! - S6. At most [`CONNECTIONS_MAX`] clients have agreed on an export. Those in the handshake are counted apart,
//!   have [`HANDSHAKE_MAX`] for it, and leave for newer ones (see [`roll`]). [`Bounds`] may say other figures.
//! - S3. Of two changes to one sector that are in flight together, on whatever connections, the
//!   service sees one after the other has ended, also if they came through different exports of it.
//! - S4. A service's callback never waits for a client.
//! - S5. [`Running::stop`] returns after the service has answered everything.

mod budget;
mod change;
mod clients;
mod connection;
mod export;
mod failure;
mod in_flight;
mod locks;
mod negotiation;
mod outbox;
mod pieces;
mod roll;
mod task;
mod turns;

use std::io;
use std::net::Shutdown;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use levelhead_block::{BlockService, Pool};
use levelhead_units::{SECTOR_SIZE, Sectors};

use self::budget::{Account, Budget, FLOOR_MAX};
use self::clients::{Clients, Connection, Counts};
use self::export::{Device, Events, LiveExport};
use self::in_flight::InFlight;
use self::negotiation::Described;
use crate::Endpoint;
use crate::codec::{ExportFlags, PAYLOAD_MAX, TEXT_MAX};
use crate::socket::{Listener, Origin, Socket};
use crate::tls::TlsServer;

/// The mode of a Unix socket's file unless another is asked for: its owner alone may connect.
pub const SOCKET_MODE: u32 = 0o600;

/// The most clients that have agreed on an export at the same time. Further ones are turned away.
pub const CONNECTIONS_MAX: usize = 64;

/// The most bytes that the requests of all connections have in flight together.
pub const BYTES_MAX: usize = 256 << 20;

// One connection leaves room for others, and no request is larger than all there is.
const _: () = assert!(in_flight::BYTES_MAX < BYTES_MAX - CONNECTIONS_MAX * FLOOR_MAX);
const _: () = assert!(PAYLOAD_MAX as usize + 2 * SECTOR_SIZE <= in_flight::BYTES_MAX);

/// What is kept of the memory of writes that are over, for all connections: 16 MiB.
const KEPT_MAX: Sectors = Sectors::new(4096);

/// How long a client may send nothing of a write, or take nothing of its answers, while a request of another
/// waits for room. It is disconnected after that.
pub const STALL_MAX: Duration = Duration::from_secs(5);

/// How long a client may take to send the bytes of a write, or to take an answer, while a request of
/// another waits for room. It is disconnected after that.
pub const HOLD_MAX: Duration = Duration::from_secs(60);

/// The most time that a client may take for its handshake, all of it. It is disconnected after that.
pub const HANDSHAKE_MAX: Duration = Duration::from_secs(10);

/// How long to wait after a client could not be accepted, for want of file descriptors perhaps.
const ACCEPT_PAUSE: Duration = Duration::from_millis(20);

/// What clients may do with an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Everything.
    ReadWrite,
    /// Read. All commands that write are refused.
    ReadOnly,
}

/// A device to be served, all of it.
pub struct Export {
    /// What clients ask for; at most 4096 bytes. May be empty.
    pub name: String,
    /// A text for people; at most 4096 bytes.
    pub description: String,
    /// The device.
    pub service: Arc<dyn BlockService>,
    /// What clients may do with it.
    pub access: Access,
}

/// A server that listens and does not answer yet.
pub struct Server {
    listener: Listener,
    /// Wakes the thread that waits for clients.
    waker: Socket,
    endpoint: Endpoint,
    exports: Vec<Arc<LiveExport>>,
    devices: Vec<(Arc<Device>, Events)>,
    bounds: Bounds,
    tls: Option<TlsServer>,
}

/// What clients may take of a server. The defaults are what `docs/nbd.md` promises; a test has less
/// to wait for with others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The most clients that have agreed on an export at the same time.
    pub connections_max: usize,
    /// The most time for a handshake, all of it.
    pub handshake_max: Duration,
    /// The most bytes that the requests of all connections have in flight together. A request of more
    /// runs while no other has any.
    pub bytes_max: usize,
    /// How long a client may send nothing of a write, or take nothing of its answers, while a request waits for
    /// room.
    pub stall_max: Duration,
    /// How long a client may take to send the bytes of a write, or to take an answer, while a request
    /// waits for room.
    pub hold_max: Duration,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            connections_max: CONNECTIONS_MAX,
            handshake_max: HANDSHAKE_MAX,
            bytes_max: BYTES_MAX,
            stall_max: STALL_MAX,
            hold_max: HOLD_MAX,
        }
    }
}

impl Server {
    /// Listens at `endpoint`. The first export is the one for clients that name none. Exports of one service
    /// are one device.
    ///
    /// The file of a Unix socket at which no server answers is replaced. The new one has the mode
    /// [`SOCKET_MODE`], whatever the umask is.
    ///
    /// # Errors
    ///
    /// No exports, two of one name, a name, text or device too long, or an endpoint that cannot be
    /// used: the error says which.
    pub fn bind(endpoint: &Endpoint, exports: Vec<Export>) -> io::Result<Self> {
        Self::bind_with_mode(endpoint, exports, SOCKET_MODE)
    }

    /// The same, where the file of a Unix socket has this mode: one from 0 to 0o777.
    ///
    /// # Errors
    ///
    /// As [`Server::bind`].
    pub fn bind_with_mode(
        endpoint: &Endpoint,
        exports: Vec<Export>,
        mode: u32,
    ) -> io::Result<Self> {
        if exports.is_empty() {
            return Err(wrong("a server needs at least one export".to_owned()));
        }
        let mut live: Vec<Arc<LiveExport>> = Vec::new();
        let mut devices: Vec<(Arc<Device>, Events)> = Vec::new();
        for export in exports {
            if live.iter().any(|other| other.described.name == export.name) {
                return Err(wrong(format!("two exports are called '{}'", export.name)));
            }
            live.push(enliven(export, &mut devices)?);
        }
        let listener = Listener::bind(endpoint, mode)?;
        let (waker, endpoint) = (listener.waker()?, listener.endpoint()?);
        Ok(Self {
            listener,
            waker,
            endpoint,
            exports: live,
            devices,
            bounds: Bounds::default(),
            tls: None,
        })
    }

    /// The same server with other bounds.
    pub fn with_bounds(self, bounds: Bounds) -> Self {
        Self { bounds, ..self }
    }

    /// The same server for clients that begin TLS alone: before that they are told nothing.
    pub fn with_tls(self, tls: TlsServer) -> Self {
        Self { tls: Some(tls), ..self }
    }

    /// Where it listens. If the port was left to the system, this names it.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Answers clients from now on.
    ///
    /// # Errors
    ///
    /// The system has no thread left.
    pub fn start(self) -> io::Result<Running> {
        let Self { listener, waker, endpoint, exports, devices, bounds, tls } = self;
        let at_work = devices.iter().map(|(device, _)| Arc::clone(device)).collect();
        let shared = Arc::new(Shared {
            clients: Clients::new(bounds.connections_max),
            exports,
            devices: at_work,
            bounds,
            tls,
            pool: Pool::new(KEPT_MAX),
            budget: Budget::new(&bounds),
            stopping: AtomicBool::new(false),
        });
        let acceptor = Arc::clone(&shared);
        // Its drop ends those that were started, where another one cannot be.
        let mut running = Running { shared, endpoint, waker, acceptor: None, workers: Vec::new() };
        for (device, events) in devices {
            running.workers.push(spawn("nbd-export", move || device.run(&events))?);
        }
        running.acceptor = Some(spawn("nbd-accept", move || acceptor.accept(&listener))?);
        Ok(running)
    }
}

/// The export at work, over its service's device, which is added if it is not there yet.
fn enliven(
    export: Export,
    devices: &mut Vec<(Arc<Device>, Events)>,
) -> io::Result<Arc<LiveExport>> {
    let Export { name, description, service, access } = export;
    for (text, what) in [(&name, "name"), (&description, "description")] {
        if text.len() > TEXT_MAX {
            let len = text.len();
            return Err(wrong(format!(
                "an export's {what} has {len} bytes: the limit is {TEXT_MAX}"
            )));
        }
    }
    let sectors = service.size().get();
    if sectors > SECTORS_MAX {
        return Err(wrong(format!(
            "export '{name}' has {sectors} sectors: the limit is {SECTORS_MAX}"
        )));
    }
    let size = service.size().bytes();
    let described = Described { name, description, size, flags: flags(access) };
    let known = devices.iter().find(|(device, _)| device.is_of(&service));
    let device = match known {
        Some((device, _)) => Arc::clone(device),
        None => {
            let (device, events) = Device::new(service);
            devices.push((Arc::clone(&device), events));
            device
        }
    };
    Ok(Arc::new(LiveExport { described, access, device }))
}

/// Clients keep sizes as signed bytes.
const SECTORS_MAX: u64 = i64::MAX as u64 / SECTOR_SIZE as u64;

fn flags(access: Access) -> ExportFlags {
    // One service answers all connections, so a flush on any of them covers all.
    let always = ExportFlags::HAS_FLAGS
        | ExportFlags::SEND_FLUSH
        | ExportFlags::SEND_FUA
        | ExportFlags::SEND_CACHE
        | ExportFlags::CAN_MULTI_CONN;
    match access {
        Access::ReadOnly => always | ExportFlags::READ_ONLY,
        Access::ReadWrite => {
            always
                | ExportFlags::SEND_TRIM
                | ExportFlags::SEND_WRITE_ZEROES
                | ExportFlags::SEND_FAST_ZERO
        }
    }
}

fn wrong(message: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, message)
}

fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    let fail = |error: io::Error| {
        io::Error::new(error.kind(), format!("cannot start a thread for NBD clients: {error}"))
    };
    thread::Builder::new().name(name.to_owned()).spawn(run).map_err(fail)
}

/// A server that answers clients. Stops when dropped.
pub struct Running {
    shared: Arc<Shared>,
    endpoint: Endpoint,
    waker: Socket,
    acceptor: Option<JoinHandle<()>>,
    workers: Vec<JoinHandle<()>>,
}

impl Running {
    /// Where it listens.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// How many clients are connected, those that left with requests in flight included.
    pub fn connections(&self) -> usize {
        self.shared.clients.count()
    }

    /// A look at the clients from elsewhere, also when the server has stopped.
    pub fn look(&self) -> Look {
        Look(Arc::clone(&self.shared))
    }

    /// Turns new clients away, removes the socket's file, waits until the service has answered every
    /// request, gives the answers a moment to be sent, and closes the connections.
    pub fn stop(self) {
        drop(self);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.shared.stopping.store(true, Ordering::Relaxed);
        self.shared.budget.close();
        self.waker.shutdown(Shutdown::Both);
        if let Some(acceptor) = self.acceptor.take() {
            acceptor.join().expect("the accepting thread does not panic");
        }
        self.shared.clients.close();
        for device in &self.shared.devices {
            device.stop();
        }
        for worker in self.workers.drain(..) {
            worker.join().expect("a device's thread does not panic");
        }
    }
}

/// See [`Running::look`].
#[derive(Clone)]
pub struct Look(Arc<Shared>);

impl Look {
    /// What clients do and have done.
    pub fn traffic(&self) -> Traffic {
        let Counts { agreed, refused, dropped, requests } = &**self.0.clients.counts();
        Traffic {
            open: self.0.clients.agreed() as u64,
            accepted: agreed.load(Ordering::Relaxed),
            refused: refused.load(Ordering::Relaxed),
            dropped: dropped.load(Ordering::Relaxed),
            requests: requests.load(Ordering::Relaxed),
        }
    }
}

/// What clients do and have done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Clients that have agreed on an export and are connected, those that left with requests in flight included.
    pub open: u64,
    /// Clients that have agreed on an export.
    pub accepted: u64,
    /// Clients that were turned away because there were too many of these.
    pub refused: u64,
    /// Connections in the handshake that were dropped for newer ones.
    pub dropped: u64,
    /// Requests that have come, good or not.
    pub requests: u64,
}

struct Shared {
    clients: Arc<Clients>,
    exports: Vec<Arc<LiveExport>>,
    devices: Vec<Arc<Device>>,
    bounds: Bounds,
    tls: Option<TlsServer>,
    pool: Pool,
    budget: Arc<Budget>,
    stopping: AtomicBool,
}

impl Shared {
    fn accept(self: &Arc<Self>, listener: &Listener) {
        for number in 0.. {
            let accepted = listener.accept();
            if self.stopping.load(Ordering::Relaxed) {
                return;
            }
            match accepted {
                Ok((socket, origin)) => self.admit(number, socket, origin),
                Err(_) => thread::sleep(ACCEPT_PAUSE),
            }
        }
    }

    fn admit(self: &Arc<Self>, number: u64, socket: Socket, origin: Origin) {
        let socket = Arc::new(socket);
        let account = Account::new(Arc::clone(&self.budget), Arc::clone(&socket));
        let connection = Arc::new(Connection {
            number,
            socket,
            in_flight: InFlight::new(account),
            handshake_max: self.bounds.handshake_max,
            pool: self.pool.clone(),
            tls: self.tls.clone(),
            counts: Arc::clone(self.clients.counts()),
        });
        let Some(seat) = self.clients.enter(number, origin, Arc::clone(&connection)) else {
            return;
        };
        let shared = Arc::clone(self);
        // Without a thread left, dropping the closure takes the client off the list again.
        let _spawned = thread::Builder::new().name("nbd-reader".to_owned()).spawn(move || {
            // No client is left to be told how it ended.
            let Shared { exports, stopping, .. } = &*shared;
            let _result = connection::serve(&connection, &seat, exports, stopping);
            connection.socket.shutdown(Shutdown::Both);
            drop(seat);
        });
    }
}
