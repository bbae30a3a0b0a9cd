//! Clients that connect again and again and say nothing, or a little: an honest one gets in all the same.

use std::collections::VecDeque;
use std::io::Write;
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use levelhead_block::Durability;
use levelhead_nbd::codec::{ClientFlags, ClientOption, encode_flags};
use levelhead_nbd::{Client, Endpoint, Running, Server};
use levelhead_units::Bytes;

use crate::common::{Served, export, memory, pki, wait_until};

/// Connections that the flood keeps: more than the server lets in.
const KEPT: usize = 200;

/// Times that the honest client connects.
const TIMES: u64 = 100;

/// Sets a flag when it goes, however that comes.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Connects without end on one thread, while `connect` has to succeed every time.
fn flood<S>(running: &Running, silent: impl Fn() -> Option<S> + Sync, connect: impl Fn() -> Client)
where
    S: Send,
{
    let is_over = AtomicBool::new(false);
    let dropped = || running.look().traffic().dropped;
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut kept = VecDeque::new();
            while !is_over.load(Ordering::Relaxed) {
                // Those that wait to be accepted do not fill the server: none is closed before it is full.
                if kept.len() == KEPT && dropped() == 0 {
                    thread::yield_now();
                    continue;
                }
                kept.extend(silent());
                if kept.len() > KEPT {
                    kept.pop_front();
                }
            }
        });
        let _over = Over(&is_over);
        wait_until("the server is full", || dropped() > 0);
        for time in 0..TIMES {
            let client = connect();
            client.write_at(Bytes::new(time), &[1], Durability::Cached).unwrap();
        }
    });
    let traffic = running.look().traffic();
    assert_eq!((traffic.accepted, traffic.refused), (TIMES, 0));
}

fn over_tcp(change: impl FnOnce(Server) -> Server) -> (Running, std::net::SocketAddr) {
    let endpoint: Endpoint = "tcp:127.0.0.1:0".parse().unwrap();
    let running =
        change(Server::bind(&endpoint, vec![export(memory(64))]).unwrap()).start().unwrap();
    let &Endpoint::Tcp(address) = running.endpoint() else { panic!("it was TCP") };
    (running, address)
}

fn open(running: &Running, certificates: &Path) -> Client {
    let uri = running.endpoint().tls_uri("disk");
    let uri = format!("{uri}?tls-certificates={}", certificates.display());
    Client::open(&uri.parse().unwrap()).unwrap()
}

#[test]
fn honest_client_gets_in_every_time_while_another_opens_silent_connections() {
    let (running, address) = over_tcp(|server| server);
    let connect = || Client::connect(running.endpoint(), "").unwrap();
    flood(&running, || TcpStream::connect(address).ok(), connect);
}

#[test]
fn honest_client_of_a_unix_socket_gets_in_every_time() {
    let served = Served::over(memory(64));
    let connect = || Client::connect(served.running.endpoint(), "").unwrap();
    flood(&served.running, || UnixStream::connect(served.path()).ok(), connect);
}

#[test]
fn honest_client_with_a_certificate_gets_in_every_time() {
    let folder = tempfile::tempdir().unwrap();
    pki::make(folder.path());
    let (running, address) =
        over_tcp(|server| server.with_tls(pki::server_for_known(folder.path())));
    flood(&running, || TcpStream::connect(address).ok(), || open(&running, folder.path()));
}

/// They say as much as they can without a certificate, all at once.
#[test]
fn honest_client_with_a_certificate_gets_in_while_others_begin_and_do_not_go_on() {
    let folder = tempfile::tempdir().unwrap();
    pki::make(folder.path());
    let (running, address) =
        over_tcp(|server| server.with_tls(pki::server_for_known(folder.path())));
    let mut bytes = Vec::new();
    encode_flags(ClientFlags::KNOWN, &mut bytes);
    ClientOption::StartTls.encode(&mut bytes);
    let begin = || {
        let mut stream = TcpStream::connect(address).ok()?;
        stream.write_all(&bytes).ok()?;
        // As far as one thread of one machine gets that waits for each answer.
        std::io::Read::read(&mut stream, &mut [0; 64]).ok()?;
        Some(stream)
    };
    flood(&running, begin, || open(&running, folder.path()));
}
