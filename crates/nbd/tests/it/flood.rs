//! Clients that connect again and again and say nothing, or a little: an honest one gets in all the same.

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use levelhead_block::Durability;
use levelhead_nbd::codec::{ClientFlags, ClientOption, encode_flags};
use levelhead_nbd::{Client, Endpoint, Running, Server};
use levelhead_units::Bytes;

use crate::common::{Served, export, memory, pki, wait_until};

/// Times that the honest client connects.
const TIMES: u64 = 100;

/// Another program, and over TCP another machine as far as the server can tell: it connects without end, says what it is
/// told to, and keeps 200 connections, more than the server lets in. The oldest goes when the server has closed it, so
/// that none is closed while it still waits to be accepted.
const FLOOD: &str = "
import collections, socket, sys
where, said = sys.argv[1], bytes.fromhex(sys.argv[2])
kept = collections.deque()
while True:
    if where.startswith('/'):
        client = socket.socket(socket.AF_UNIX)
        client.connect(where)
    else:
        client = socket.create_connection(('127.0.0.1', int(where)), source_address=('127.0.0.2', 0))
    kept.append(client)
    try:
        client.sendall(said)
        while len(kept) > 200:
            if not kept[0].recv(4096):
                kept.popleft().close()
    except OSError:
        kept.popleft().close()
";

/// Ends with the test.
struct Flood(Child);

impl Flood {
    fn start(place: &str, said: &[u8]) -> Self {
        let hex = said.iter().fold(String::new(), |mut hex, byte| {
            write!(hex, "{byte:02x}").unwrap();
            hex
        });
        let mut python = Command::new("python3");
        python.args(["-c", FLOOD, place, &hex]).stderr(Stdio::null());
        Self(python.spawn().expect("python3 is installed"))
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// Connects again and again, which has to succeed every time, while a flood from `place` says `said`.
fn flood(running: &Running, place: &str, said: &[u8], connect: impl Fn() -> Client) {
    let _flood = Flood::start(place, said);
    wait_until("the server is full", || running.look().traffic().dropped > 0);
    for time in 0..TIMES {
        let client = connect();
        client.write_at(Bytes::new(time), &[1], Durability::Cached).unwrap();
    }
    let traffic = running.look().traffic();
    assert_eq!((traffic.accepted, traffic.refused), (TIMES, 0));
}

fn over_tcp(change: impl FnOnce(Server) -> Server) -> (Running, String) {
    let endpoint: Endpoint = "tcp:127.0.0.1:0".parse().unwrap();
    let running =
        change(Server::bind(&endpoint, vec![export(memory(64))]).unwrap()).start().unwrap();
    let &Endpoint::Tcp(address) = running.endpoint() else { panic!("it was TCP") };
    (running, address.port().to_string())
}

fn open(running: &Running, certificates: &Path) -> Client {
    let uri = running.endpoint().tls_uri("disk");
    let uri = format!("{uri}?tls-certificates={}", certificates.display());
    Client::open(&uri.parse().unwrap()).unwrap()
}

#[test]
fn honest_client_gets_in_every_time_while_another_opens_silent_connections() {
    let (running, port) = over_tcp(|server| server);
    flood(&running, &port, &[], || Client::connect(running.endpoint(), "").unwrap());
}

#[test]
fn honest_client_of_a_unix_socket_gets_in_every_time() {
    let served = Served::over(memory(64));
    let connect = || Client::connect(served.running.endpoint(), "").unwrap();
    flood(&served.running, served.path().to_str().unwrap(), &[], connect);
}

#[test]
fn honest_client_with_a_certificate_gets_in_every_time() {
    let folder = pki::folder();
    let (running, port) = over_tcp(|server| server.with_tls(pki::server_for_known(folder.path())));
    flood(&running, &port, &[], || open(&running, folder.path()));
}

/// They say as much as they can without a certificate, all at once.
#[test]
fn honest_client_with_a_certificate_gets_in_while_others_begin_and_do_not_go_on() {
    let folder = pki::folder();
    let (running, port) = over_tcp(|server| server.with_tls(pki::server_for_known(folder.path())));
    let mut begin = Vec::new();
    encode_flags(ClientFlags::KNOWN, &mut begin);
    ClientOption::StartTls.encode(&mut begin);
    flood(&running, &port, &begin, || open(&running, folder.path()));
}
