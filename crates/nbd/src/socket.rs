//! One type for the two kinds of socket.

use std::io::{self, IoSlice, Read, Write};
use std::net::{IpAddr, Ipv6Addr, Shutdown, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::sys::socket::getsockopt;
use nix::sys::socket::sockopt::PeerCredentials;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, chmod, fchmod};
use rustix::io::Errno;
use rustix::net::sockopt::{
    Timeout, set_socket_keepalive, set_socket_send_buffer_size, set_socket_timeout,
    set_tcp_keepcnt, set_tcp_keepidle, set_tcp_keepintvl, set_tcp_user_timeout,
};
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendFlags, SocketAddrUnix, SocketFlags, SocketType, bind,
    connect, listen, sendmsg, socket_with,
};

use crate::Endpoint;

/// Clients that may wait to be accepted; the system may allow fewer.
const BACKLOG: i32 = 4096;

/// Bytes that a Unix socket is asked to hold until the other side takes them. TCP finds out for itself.
const SEND_ROOM: usize = 2 << 20;

/// After this time without a packet from the other machine it is asked whether it is still there.
const QUIET_MAX: Duration = Duration::from_secs(15);

/// How long a server may leave what was sent without an acknowledgement: then the connection is lost, and so is what the system still
/// has of it, also of a client that has ended.
const UNSENT_MAX: Duration = Duration::from_secs(15);

/// How often, and with which pauses.
const PROBES: u32 = 3;
const PROBE_PAUSE: Duration = Duration::from_secs(5);

/// A connected socket. Reading and writing need no exclusive access.
#[derive(Debug)]
pub(crate) enum Socket {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Socket {
    /// Connects within `limit`.
    pub(crate) fn connect(endpoint: &Endpoint, limit: Duration) -> io::Result<Self> {
        match endpoint {
            Endpoint::Unix(path) => connect_unix(path, limit).map(Self::Unix),
            Endpoint::Tcp(addr) => {
                let stream = TcpStream::connect_timeout(addr, limit)?;
                set_tcp_user_timeout(&stream, UNSENT_MAX.as_millis() as u32)?;
                Self::from_tcp(stream)
            }
        }
    }

    fn from_tcp(stream: TcpStream) -> io::Result<Self> {
        // Small replies must not wait for each other.
        stream.set_nodelay(true)?;
        // The other machine may vanish without a word, and nothing else would ever tell.
        set_socket_keepalive(&stream, true)?;
        set_tcp_keepidle(&stream, QUIET_MAX)?;
        set_tcp_keepintvl(&stream, PROBE_PAUSE)?;
        set_tcp_keepcnt(&stream, PROBES)?;
        Ok(Self::Tcp(stream))
    }

    /// Asks for as much room for what is sent as large answers need. The system may give less.
    pub(crate) fn widen(&self) {
        // Without it, sending takes more turns.
        let _narrow = match self {
            Self::Unix(stream) => set_socket_send_buffer_size(stream, SEND_ROOM),
            Self::Tcp(_) => return,
        };
    }

    /// Ends one or both directions, for every clone. A socket that is closed already is fine.
    pub(crate) fn shutdown(&self, how: Shutdown) {
        // The only errors are "not connected" and "not a socket".
        let _closed_already = match self {
            Self::Unix(stream) => stream.shutdown(how),
            Self::Tcp(stream) => stream.shutdown(how),
        };
    }

    /// Whether the other side has said something that was not read yet.
    pub(crate) fn has_bytes(&self) -> bool {
        let found = self.look(PollFlags::IN | PollFlags::RDHUP);
        found.contains(PollFlags::IN) && !found.intersects(PollFlags::RDHUP | PollFlags::HUP)
    }

    /// Whether the other side says no more, or nothing more is heard of it.
    pub(crate) fn has_hung_up(&self) -> bool {
        let ends = PollFlags::RDHUP | PollFlags::HUP | PollFlags::ERR;
        self.look(PollFlags::RDHUP).intersects(ends)
    }

    /// Which of these are so now.
    fn look(&self, flags: PollFlags) -> PollFlags {
        let mut fds = [PollFd::new(self, flags)];
        // It can fail for want of memory in the system; then nothing is known.
        match poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })) {
            Ok(_) => fds[0].revents(),
            Err(_) => PollFlags::empty(),
        }
    }

    pub(crate) fn read(&self, space: &mut [u8]) -> io::Result<usize> {
        loop {
            let result = match self {
                Self::Unix(stream) => (&*stream).read(space),
                Self::Tcp(stream) => (&*stream).read(space),
            };
            match result {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => return result,
            }
        }
    }

    /// Sends `head`, then `payload`, from where they are.
    pub(crate) fn write_both<'a>(
        &self,
        head: &'a [u8],
        payload: impl IntoIterator<Item = &'a [u8]>,
    ) -> io::Result<()> {
        let mut slices: Vec<IoSlice<'a>> =
            std::iter::once(head).chain(payload).map(IoSlice::new).collect();
        let mut left = slices.as_mut_slice();
        // What is empty would look like a socket that takes nothing.
        IoSlice::advance_slices(&mut left, 0);
        while !left.is_empty() {
            let count = self.write(left)?;
            IoSlice::advance_slices(&mut left, count);
        }
        Ok(())
    }

    /// Sends a part of these bytes, of which there are some: how many it was.
    pub(crate) fn write(&self, left: &[IoSlice<'_>]) -> io::Result<usize> {
        loop {
            let result = match self {
                Self::Unix(stream) => (&*stream).write_vectored(left),
                Self::Tcp(stream) => (&*stream).write_vectored(left),
            };
            match result {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => return result,
            }
        }
    }

    /// Sends as much of these bytes as there is room for, without waiting: how many it was.
    pub(crate) fn write_at_once(&self, bytes: &[IoSlice<'_>]) -> io::Result<usize> {
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        loop {
            let mut none = SendAncillaryBuffer::default();
            let result = match self {
                Self::Unix(stream) => sendmsg(stream, bytes, &mut none, flags),
                Self::Tcp(stream) => sendmsg(stream, bytes, &mut none, flags),
            };
            match result {
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(0),
                result => return result.map_err(io::Error::from),
            }
        }
    }

    /// Lets reads and writes end as [`io::ErrorKind::WouldBlock`] instead of waiting, for every clone.
    pub(crate) fn set_nonblocking(&self) -> io::Result<()> {
        match self {
            Self::Unix(stream) => stream.set_nonblocking(true),
            Self::Tcp(stream) => stream.set_nonblocking(true),
        }
    }

    /// Lets every read end as [`io::ErrorKind::WouldBlock`] that has waited for `time`. Without
    /// a `time` reads wait for as long as it takes.
    pub(crate) fn limit_reads(&self, time: Option<Duration>) -> io::Result<()> {
        match self {
            Self::Unix(stream) => stream.set_read_timeout(time),
            Self::Tcp(stream) => stream.set_read_timeout(time),
        }
    }

    /// The same for writes.
    pub(crate) fn limit_writes(&self, time: Option<Duration>) -> io::Result<()> {
        match self {
            Self::Unix(stream) => stream.set_write_timeout(time),
            Self::Tcp(stream) => stream.set_write_timeout(time),
        }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Unix(stream) => stream.as_fd(),
            Self::Tcp(stream) => stream.as_fd(),
        }
    }
}

/// A listening socket. Its file, if it has one, goes when it is dropped.
#[derive(Debug)]
pub(crate) enum Listener {
    Unix { listener: UnixListener, file: SocketFile },
    Tcp(TcpListener),
}

impl Listener {
    /// Listens at `endpoint`. A socket file at which no server answers is replaced; the new one has this mode.
    pub(crate) fn bind(endpoint: &Endpoint, mode: u32) -> io::Result<Self> {
        match endpoint {
            Endpoint::Unix(path) => {
                remove_stale(path)?;
                let listener = bind_unix(path, mode).map_err(|e| about(endpoint, &e))?;
                let file = SocketFile::at(path)?;
                Ok(Self::Unix { listener, file })
            }
            Endpoint::Tcp(addr) => {
                TcpListener::bind(addr).map(Self::Tcp).map_err(|e| about(endpoint, &e))
            }
        }
    }

    /// Where it listens; a port that the system chose is filled in.
    pub(crate) fn endpoint(&self) -> io::Result<Endpoint> {
        match self {
            Self::Unix { file, .. } => Ok(Endpoint::Unix(file.path.clone())),
            Self::Tcp(listener) => listener.local_addr().map(Endpoint::Tcp),
        }
    }

    /// The next client, and where it comes from.
    pub(crate) fn accept(&self) -> io::Result<(Socket, Origin)> {
        match self {
            Self::Unix { listener, .. } => {
                let (stream, _) = listener.accept()?;
                // Zero for a process of which this one sees nothing, as across containers: all of these count as one.
                let origin = Origin::Process(getsockopt(&stream, PeerCredentials)?.pid());
                let socket = Socket::Unix(stream);
                socket.widen();
                Ok((socket, origin))
            }
            Self::Tcp(listener) => {
                let (stream, peer) = listener.accept()?;
                Ok((Socket::from_tcp(stream)?, Origin::Network(network(peer.ip()))))
            }
        }
    }

    /// A handle whose [`Socket::shutdown`] makes `accept` fail, also one that waits already: Linux
    /// allows that for listening sockets, and the standard library has no other way to wake one.
    pub(crate) fn waker(&self) -> io::Result<Socket> {
        Ok(match self {
            Self::Unix { listener, .. } => {
                Socket::Unix(UnixStream::from(OwnedFd::from(listener.try_clone()?)))
            }
            Self::Tcp(listener) => {
                Socket::Tcp(TcpStream::from(OwnedFd::from(listener.try_clone()?)))
            }
        })
    }
}

/// Where a client comes from, as far as it counts for a share among clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Origin {
    /// Over a Unix socket: the process that connected.
    Process(i32),
    Network(IpAddr),
}

/// The address, or what one subscriber has at the least: an IPv6 network of 64 bits.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => Ipv6Addr::from(u128::from(address) >> 64 << 64).into(),
    }
}

/// Connects to the socket at `path` within `limit`: a server that accepts none may have its queue full.
fn connect_unix(path: &Path, limit: Duration) -> io::Result<UnixStream> {
    let addr = SocketAddrUnix::new(path)?;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    set_socket_timeout(&socket, Timeout::Send, Some(limit))?;
    connect(&socket, &addr).map_err(|error| match error {
        Errno::AGAIN => io::Error::from(io::ErrorKind::TimedOut),
        error => error.into(),
    })?;
    set_socket_timeout(&socket, Timeout::Send, None)?;
    Ok(UnixStream::from(socket))
}

/// Listens at `path`, whose file has this mode from the moment it is there.
fn bind_unix(path: &Path, mode: u32) -> io::Result<UnixListener> {
    let addr = SocketAddrUnix::new(path)?;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    let mode = Mode::from_raw_mode(mode);
    // Linux makes the file with the mode that the socket has, less what the umask forbids.
    fchmod(&socket, mode)?;
    bind(&socket, &addr)?;
    let listening = || -> io::Result<()> {
        let made = Mode::from_raw_mode(path.symlink_metadata()?.mode() & 0o777);
        if made != mode {
            chmod(path, mode)?;
        }
        Ok(listen(&socket, BACKLOG)?)
    };
    if let Err(error) = listening() {
        // The error that led here is the one to tell.
        let _left = std::fs::remove_file(path);
        return Err(error);
    }
    Ok(UnixListener::from(socket))
}

/// The file of a listening Unix socket.
#[derive(Debug)]
pub(crate) struct SocketFile {
    path: PathBuf,
    /// What it is: a later server may have put its own file in the same place.
    identity: (u64, u64),
}

impl SocketFile {
    fn at(path: &Path) -> io::Result<Self> {
        Ok(Self { path: path.to_owned(), identity: identity(path)? })
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if identity(&self.path).is_ok_and(|now| now == self.identity) {
            // Nothing is left to be done about a file that cannot be removed.
            let _result = std::fs::remove_file(&self.path);
        }
    }
}

/// Device and inode of the file at `path`.
fn identity(path: &Path) -> io::Result<(u64, u64)> {
    path.symlink_metadata().map(|metadata| (metadata.dev(), metadata.ino()))
}

/// Removes the socket file at `path` if no server answers there.
fn remove_stale(path: &Path) -> io::Result<()> {
    let endpoint = Endpoint::Unix(path.to_owned());
    let metadata = match path.symlink_metadata() {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(about(&endpoint, &error)),
    };
    if !metadata.file_type().is_socket() {
        let error =
            io::Error::new(io::ErrorKind::AlreadyExists, "a file that is not a socket is there");
        return Err(about(&endpoint, &error));
    }
    match UnixStream::connect(path) {
        Ok(_) => {
            let error = io::Error::new(io::ErrorKind::AddrInUse, "another server answers there");
            Err(about(&endpoint, &error))
        }
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            std::fs::remove_file(path).map_err(|e| about(&endpoint, &e))
        }
        Err(error) => Err(about(&endpoint, &error)),
    }
}

fn about(endpoint: &Endpoint, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("cannot listen at {endpoint}: {error}"))
}
