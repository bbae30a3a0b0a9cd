//! The kernel's own NBD client, told by netlink what to do: linux/nbd-netlink.h, linux/genetlink.h.
//!
//! `nbd-client` connects as well, but cannot give a device a connection again whose server has died. Here a device waits
//! for [`DEAD_CONNECTION_MAX`] seconds for that, and goes on.

use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;

use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketType, netlink};

/// Seconds for which requests wait for another connection.
const DEAD_CONNECTION_MAX: u64 = 300;

/// Of linux/nbd-netlink.h.
mod nbd {
    pub(super) const CONNECT: u8 = 1;
    pub(super) const DISCONNECT: u8 = 2;
    pub(super) const RECONFIGURE: u8 = 3;
    pub(super) const INDEX: u16 = 1;
    pub(super) const SIZE_BYTES: u16 = 2;
    pub(super) const BLOCK_SIZE_BYTES: u16 = 3;
    pub(super) const SERVER_FLAGS: u16 = 5;
    pub(super) const SOCKETS: u16 = 7;
    pub(super) const DEAD_CONN_TIMEOUT: u16 = 8;
    pub(super) const SOCK_ITEM: u16 = 1;
    pub(super) const SOCK_FD: u16 = 1;
}

/// Of linux/netlink.h and linux/genetlink.h.
mod genl {
    pub(super) const ID_CTRL: u16 = 0x10;
    pub(super) const GETFAMILY: u8 = 3;
    pub(super) const FAMILY_ID: u16 = 1;
    pub(super) const FAMILY_NAME: u16 = 2;
    pub(super) const REQUEST: u16 = 1;
    pub(super) const ACK: u16 = 4;
    pub(super) const ERROR: u16 = 2;
    pub(super) const NESTED: u16 = 1 << 15;
    /// Bytes of the header of a message, and of the one behind it.
    pub(super) const HEAD: usize = 16 + 4;
}

/// `/dev/nbdINDEX`.
pub(crate) struct Device {
    pub(crate) index: u32,
    pub(crate) block_size: u64,
}

impl Device {
    /// Gives the device the default export of the server at this Unix socket.
    pub(crate) fn connect(&self, socket: &Path) -> io::Result<()> {
        let connection = Connection::open(socket)?;
        let mut attributes = self.index();
        put(&mut attributes, nbd::SIZE_BYTES, &connection.size.to_ne_bytes());
        put(&mut attributes, nbd::BLOCK_SIZE_BYTES, &self.block_size.to_ne_bytes());
        put(&mut attributes, nbd::SERVER_FLAGS, &u64::from(connection.flags).to_ne_bytes());
        put(&mut attributes, nbd::DEAD_CONN_TIMEOUT, &DEAD_CONNECTION_MAX.to_ne_bytes());
        put(&mut attributes, nbd::SOCKETS | genl::NESTED, &connection.nested());
        tell(nbd::CONNECT, &attributes)
    }

    /// Gives it another connection to the same export in the place of one that is dead.
    pub(crate) fn connect_again(&self, socket: &Path) -> io::Result<()> {
        let connection = Connection::open(socket)?;
        let mut attributes = self.index();
        put(&mut attributes, nbd::SOCKETS | genl::NESTED, &connection.nested());
        tell(nbd::RECONFIGURE, &attributes)
    }

    /// Takes the export from it.
    pub(crate) fn disconnect(&self) -> io::Result<()> {
        tell(nbd::DISCONNECT, &self.index())
    }

    fn index(&self) -> Vec<u8> {
        let mut attributes = Vec::new();
        put(&mut attributes, nbd::INDEX, &self.index.to_ne_bytes());
        attributes
    }
}

/// A connection that is past the handshake.
struct Connection {
    stream: UnixStream,
    size: u64,
    flags: u16,
}

impl Connection {
    fn open(socket: &Path) -> io::Result<Self> {
        let mut stream = UnixStream::connect(socket)?;
        let mut greeting = [0; 18];
        stream.read_exact(&mut greeting)?;
        if greeting[..16] != *b"NBDMAGICIHAVEOPT" {
            return Err(io::Error::other("it is not an NBD server"));
        }
        // Fixed newstyle without zeroes; then EXPORT_NAME of no bytes.
        stream.write_all(&3_u32.to_be_bytes())?;
        stream.write_all(b"IHAVEOPT\0\0\0\x01\0\0\0\0")?;
        let mut export = [0; 10];
        stream.read_exact(&mut export)?;
        let size = u64::from_be_bytes(*export.first_chunk().expect("there are ten"));
        let flags = u16::from_be_bytes(*export.last_chunk().expect("there are ten"));
        Ok(Self { stream, size, flags })
    }

    /// The list of sockets, this one alone. The kernel keeps what the number stands for.
    fn nested(&self) -> Vec<u8> {
        let (mut fd, mut item) = (Vec::new(), Vec::new());
        put(&mut fd, nbd::SOCK_FD, &self.stream.as_raw_fd().to_ne_bytes());
        put(&mut item, nbd::SOCK_ITEM | genl::NESTED, &fd);
        item
    }
}

/// Appends an attribute: its length and kind, its bytes, and zeroes up to a multiple of four.
fn put(attributes: &mut Vec<u8>, kind: u16, bytes: &[u8]) {
    attributes.extend((4 + bytes.len() as u16).to_ne_bytes());
    attributes.extend(kind.to_ne_bytes());
    attributes.extend(bytes);
    attributes.resize(attributes.len().next_multiple_of(4), 0);
}

/// Sends the NBD driver a command; an error is the driver's.
fn tell(command: u8, attributes: &[u8]) -> io::Result<()> {
    let socket =
        rustix::net::socket(AddressFamily::NETLINK, SocketType::RAW, Some(netlink::GENERIC))?;
    let mut name = Vec::new();
    put(&mut name, genl::FAMILY_NAME, b"nbd\0");
    let answer = ask(&socket, genl::ID_CTRL, genl::GETFAMILY, &name)?;
    let family = attribute(&answer, genl::FAMILY_ID)
        .and_then(|bytes| bytes.first_chunk())
        .ok_or_else(|| io::Error::other("the kernel knows no family nbd"))?;
    ask(&socket, u16::from_ne_bytes(*family), command, attributes).map(drop)
}

/// Sends a request and waits until it is acknowledged; the attributes that came before.
fn ask(socket: &OwnedFd, family: u16, command: u8, attributes: &[u8]) -> io::Result<Vec<u8>> {
    let mut message = Vec::new();
    message.extend(((genl::HEAD + attributes.len()) as u32).to_ne_bytes());
    message.extend(family.to_ne_bytes());
    message.extend((genl::REQUEST | genl::ACK).to_ne_bytes());
    message.extend([0; 8]); // Sequence number and sender.
    message.extend([command, 1, 0, 0]);
    message.extend(attributes);
    rustix::net::send(socket, &message, SendFlags::empty())?;
    let mut answer = Vec::new();
    loop {
        let mut bytes = [0; 8192];
        let (_, len) = rustix::net::recv(socket, &mut bytes[..], RecvFlags::empty())?;
        let mut rest = &bytes[..len];
        while rest.len() >= genl::HEAD {
            let len = u32::from_ne_bytes(*rest.first_chunk().expect("it is long enough")) as usize;
            let kind = u16::from_ne_bytes([rest[4], rest[5]]);
            if kind == genl::ERROR {
                let error = i32::from_ne_bytes(rest[16..20].try_into().expect("four bytes"));
                let is_good = error == 0;
                return if is_good {
                    Ok(answer)
                } else {
                    Err(io::Error::from_raw_os_error(-error))
                };
            }
            answer = rest[genl::HEAD..len].to_vec();
            rest = &rest[len.next_multiple_of(4).min(rest.len())..];
        }
    }
}

fn attribute(mut attributes: &[u8], wanted: u16) -> Option<&[u8]> {
    while attributes.len() >= 4 {
        let len = usize::from(u16::from_ne_bytes([attributes[0], attributes[1]]));
        let kind = u16::from_ne_bytes([attributes[2], attributes[3]]);
        if kind == wanted {
            return attributes.get(4..len);
        }
        attributes = attributes.get(len.next_multiple_of(4)..)?;
    }
    None
}
