//! Encrypted connections: who gets in, what is said before, and that all the rest is as it is without.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use levelhead_block::conformance::{SuiteSettings, check_service};
use levelhead_block::{Durability, Memory};
use levelhead_nbd::codec::{Answer, ClientOption, Refusal};
use levelhead_nbd::{Bounds, Client, Endpoint, Server, TlsClient, TlsServer, Uri};
use levelhead_stats::Streams;
use levelhead_units::{Bytes, Sectors};

use crate::common::{self, RawClient, Served, Shuffled, export, memory, pki, wait_until};

fn uri(served: &Served, certificates: &Path) -> Uri {
    let uri = served.running.endpoint().tls_uri("disk");
    let sign = if uri.contains('?') { '&' } else { '?' };
    format!("{uri}{sign}tls-certificates={}", certificates.display()).parse().unwrap()
}

fn served(sectors: u64, tls: TlsServer) -> Served {
    Served::of(vec![export(memory(sectors))], |server| server.with_tls(tls))
}

fn error(uri: &Uri) -> String {
    Client::open(uri).err().expect("it is not let in").to_string()
}

#[test]
fn encrypted_loopback_is_a_block_service_whatever_the_order_of_its_answers() {
    let certificates = pki::folder();
    let folder = certificates.path();
    let settings = SuiteSettings { seed: 5, requests: 1_000, sectors_max: 33, batch_max: 16 };
    for (tls, seed) in [(pki::server(folder), 1), (pki::server_for_known(folder), 2)] {
        let service = Shuffled::new(Memory::new(Sectors::new(300)), seed);
        let served = Served::of(vec![export(service)], |server| server.with_tls(tls));
        check_service(Arc::new(Client::open(&uri(&served, folder)).unwrap()), settings);
    }
}

#[test]
fn encrypted_loopback_over_tcp_is_a_block_service() {
    let certificates = pki::folder();
    let endpoint: Endpoint = "tcp:127.0.0.1:0".parse().unwrap();
    let server = Server::bind(&endpoint, vec![export(memory(300))]).unwrap();
    let running = server.with_tls(pki::server(certificates.path())).start().unwrap();
    let served = Served { running, dir: tempfile::tempdir().unwrap() };
    let settings = SuiteSettings { seed: 6, requests: 1_000, sectors_max: 33, batch_max: 16 };
    check_service(Arc::new(Client::open(&uri(&served, certificates.path())).unwrap()), settings);
}

/// Both directions full at once, on two connections: more than any buffer between holds.
#[test]
fn much_in_both_directions_at_once_comes_through_as_it_was() {
    const LEN: usize = 40 << 20;
    let certificates = pki::folder();
    let served = served(2 * LEN as u64 / 4096, pki::server(certificates.path()));
    thread::scope(|scope| {
        for number in 0..2 {
            let client = Arc::new(Client::open(&uri(&served, certificates.path())).unwrap());
            scope.spawn(move || {
                let mut bytes = vec![0; LEN];
                Streams::new(number).stream("bytes").fill(&mut bytes);
                let start = Bytes::new(number * LEN as u64);
                client.write_at(start, &bytes, Durability::Cached).unwrap();
                let other = Arc::clone(&client);
                let mut read = vec![0; LEN];
                thread::scope(|scope| {
                    // The same bytes again, while they are read.
                    let bytes = &bytes;
                    scope.spawn(move || {
                        other.write_at(start, bytes, Durability::Cached).unwrap();
                    });
                    client.read_at(start, &mut read).unwrap();
                });
                assert!(read == bytes);
            });
        }
    });
}

#[test]
fn nothing_is_told_and_nothing_is_served_before_tls() {
    let certificates = pki::folder();
    let served = served(64, pki::server(certificates.path()));
    let mut client = served.raw().impatient();
    client.greet();
    let (name, wanted) = ("disk".to_owned(), Vec::new());
    for option in [
        ClientOption::List,
        ClientOption::StructuredReply,
        ClientOption::Info { export: name.clone(), wanted: wanted.clone() },
        ClientOption::Go { export: name.clone(), wanted },
    ] {
        let answers = client.ask(&option);
        let refused =
            matches!(answers[..], [Answer::Refused { refusal: Refusal::TlsRequired, .. }]);
        assert!(refused, "{option:?}: {answers:?}");
    }
    let mut bytes = Vec::new();
    ClientOption::ExportName(name).encode(&mut bytes);
    client.send(&bytes);
    assert_eq!(client.receive(), None);
    let error = Client::connect(served.running.endpoint(), "disk").err().unwrap().to_string();
    assert!(error.contains("TlsRequired") && error.contains("nothing without TLS"), "{error}");
}

/// What comes with the option would be taken for encrypted.
#[test]
fn bytes_that_come_behind_the_wish_for_tls_end_the_connection() {
    let certificates = pki::folder();
    let served = served(64, pki::server(certificates.path()));
    let mut client = served.raw().impatient();
    client.greet();
    let mut bytes = Vec::new();
    ClientOption::StartTls.encode(&mut bytes);
    ClientOption::List.encode(&mut bytes);
    client.send(&bytes);
    assert!(client.receive().is_some(), "it is agreed to");
    assert_eq!(client.receive(), None);
}

#[test]
fn server_without_certificates_refuses_tls_and_is_named() {
    let certificates = pki::folder();
    let served = Served::over(memory(64));
    let error = error(&uri(&served, certificates.path()));
    assert!(error.contains("the server does not encrypt"), "{error}");
    assert!(error.starts_with("nbds+unix:///disk?socket="), "{error}");
}

#[test]
fn both_sides_believe_their_own_issuer_alone() {
    let (own, other) = (pki::folder(), pki::folder());
    let served = served(64, pki::server_for_known(own.path()));
    Client::open(&uri(&served, own.path())).unwrap();
    // The server is not believed.
    let said = error(&uri(&served, other.path()));
    assert!(said.contains("TLS") && said.contains("certificate"), "{said}");
    // The client is not believed, though it believes the server.
    fs::copy(own.path().join("ca-cert.pem"), other.path().join("ca-cert.pem")).unwrap();
    error(&uri(&served, other.path()));
    // It has nothing to show.
    for name in ["client-cert.pem", "client-key.pem"] {
        fs::remove_file(other.path().join(name)).unwrap();
    }
    error(&uri(&served, other.path()));
    Client::open(&uri(&served, own.path())).unwrap();
    wait_until("all have left", || served.running.connections() == 0);
}

#[test]
fn certificate_is_for_the_name_that_is_asked_for() {
    let certificates = pki::folder();
    let served = served(64, pki::server(certificates.path()));
    let named = |name: &str| -> Uri {
        format!("{}&tls-hostname={name}", uri(&served, certificates.path())).parse().unwrap()
    };
    Client::open(&named("localhost")).unwrap();
    Client::open(&named("127.0.0.1")).unwrap();
    let said = error(&named("example.org"));
    assert!(said.contains("certificate not valid for name"), "{said}");
    let said = error(&named("%20"));
    assert!(said.contains("' ' is not a name that a certificate could be for"), "{said}");
}

#[test]
fn clients_that_do_not_go_on_with_tls_are_disconnected() {
    let certificates = pki::folder();
    let bounds = Bounds { handshake_max: Duration::from_millis(500), ..Bounds::default() };
    let served = Served::of(vec![export(memory(64))], |server| {
        server.with_tls(pki::server(certificates.path())).with_bounds(bounds)
    });
    let begun = || {
        let mut client = served.raw().impatient();
        client.greet();
        assert_eq!(client.ask(&ClientOption::StartTls), [Answer::Ack]);
        client
    };
    let closed = |mut client: RawClient| {
        let mut rest = Vec::new();
        let _ended = client.0.read_to_end(&mut rest);
    };
    closed(begun());
    // The head of a record of 16 KiB, and no more.
    let mut half = begun();
    half.0.write_all(&[22, 3, 1, 0x40, 0]).unwrap();
    closed(half);
    let mut noise = begun();
    noise.0.write_all(&[0xFF; 64]).unwrap();
    closed(noise);
    wait_until("all have left", || served.running.connections() == 0);
    Client::open(&uri(&served, certificates.path())).unwrap();
}

/// It holds its answers, its pump and its threads; the end of the server waits for none of them for long.
#[test]
fn server_ends_although_an_encrypted_client_takes_no_answers() {
    let certificates = pki::folder();
    let served = served(8192, pki::server(certificates.path()));
    let client = Client::open(&uri(&served, certificates.path())).unwrap();
    let client = Arc::new(client);
    let stuck = Arc::clone(&client);
    // Its callback does not come back, so nothing more is read.
    let (sender, receiver) = std::sync::mpsc::channel::<()>();
    use levelhead_block::{BlockService, Effort, Request};
    use levelhead_units::{Extent, Lba};
    let extent = Extent::new(Lba::ZERO, Sectors::new(1));
    let done = Box::new(move |_| {
        let _end = receiver.recv();
    });
    stuck.submit(Request::read(extent, Effort::Full), done);
    let whole = Extent::new(Lba::ZERO, Sectors::new(4096));
    for _ in 0..32 {
        client.submit(Request::read(whole, Effort::Full), Box::new(|_| {}));
    }
    served.running.stop();
    drop(sender);
}

/// What it keeps is given back when another needs it, as without TLS.
#[test]
fn encrypted_client_that_takes_no_answers_is_disconnected_when_others_wait() {
    use levelhead_block::{BlockService, Effort, Request};
    use levelhead_units::{Extent, Lba};
    let certificates = pki::folder();
    let (bytes_max, hold_max) = (16 << 20, Duration::from_millis(100));
    let bounds = Bounds { bytes_max, hold_max, ..Bounds::default() };
    let served = Served::of(vec![export(memory(8192))], |server| {
        server.with_tls(pki::server(certificates.path())).with_bounds(bounds)
    });
    let greedy = Client::open(&uri(&served, certificates.path())).unwrap();
    // The first callback does not come back, so nothing more is read.
    let (sender, receiver) = std::sync::mpsc::channel::<()>();
    let (began, has_begun) = std::sync::mpsc::channel();
    let extent = |sectors| Extent::new(Lba::ZERO, Sectors::new(sectors));
    let done = Box::new(move |_| {
        began.send(()).unwrap();
        let _end = receiver.recv();
    });
    greedy.submit(Request::read(extent(1), Effort::Full), done);
    has_begun.recv().unwrap();
    for _ in 0..4 {
        greedy.submit(Request::read(extent(4096), Effort::Full), Box::new(|_| {}));
    }
    let other = Client::open(&uri(&served, certificates.path())).unwrap();
    wait_until("the greedy one has left", || {
        // More than what it has to itself.
        other.read_at(Bytes::new(0), &mut [0; 1 << 17]).unwrap();
        served.running.connections() == 1
    });
    drop(sender);
}

#[test]
fn dropped_encrypted_client_gets_what_is_in_flight_first() {
    use levelhead_block::{BlockService, Effort, Request};
    use levelhead_units::{Extent, Lba};
    let certificates = pki::folder();
    let held = Arc::new(common::Held::new(memory(64)));
    let tls = pki::server(certificates.path());
    let served = Served::of(vec![export(held.clone())], |server| server.with_tls(tls));
    let client = Client::open(&uri(&served, certificates.path())).unwrap();
    let (sender, receiver) = std::sync::mpsc::channel();
    let extent = Extent::new(Lba::ZERO, Sectors::new(60));
    let done = Box::new(move |reply: levelhead_block::Reply| sender.send(reply.outcome).unwrap());
    client.submit(Request::read(extent, Effort::Full), done);
    wait_until("it has come", || held.seen() == 1);
    drop(client);
    held.open();
    assert!(receiver.recv().unwrap().is_good());
    wait_until("it has left", || served.running.connections() == 0);
}

#[test]
fn files_that_cannot_be_used_are_named() {
    let certificates = pki::folder();
    let other = pki::folder();
    let file = |name: &str| certificates.path().join(name);
    let (cert, key, ca) = (file("server-cert.pem"), file("server-key.pem"), file("ca-cert.pem"));
    let load = |cert: &Path, key: &Path, ca: Option<&Path>| {
        TlsServer::load(cert, key, ca).err().unwrap().to_string()
    };
    let missing = file("missing.pem");
    let named = |error: &str, parts: &[&str]| {
        for part in parts {
            assert!(error.contains(part), "no '{part}' in {error}");
        }
    };
    named(&load(&missing, &key, None), &["cannot read", "missing.pem", "No such file"]);
    named(&load(&key, &key, None), &["server-key.pem holds no certificate in PEM"]);
    named(&load(&cert, &cert, None), &["server-cert.pem holds no private key in PEM"]);
    named(&load(&cert, &key, Some(&key)), &["server-key.pem holds no certificate"]);
    for (mode, is_taken) in [(0o600, true), (0o640, true), (0o644, false), (0o602, false)] {
        fs::set_permissions(&key, fs::Permissions::from_mode(mode)).unwrap();
        match is_taken {
            true => drop(TlsServer::load(&cert, &key, None).unwrap()),
            false => named(&load(&cert, &key, None), &["every user", "server-key.pem", "chmod"]),
        }
    }
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    let others = other.path().join("server-key.pem");
    named(&load(&cert, &others, Some(&ca)), &["server-cert.pem and key", "cannot be used"]);
    fs::write(&missing, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n").unwrap();
    named(&load(&missing, &key, None), &["missing.pem"]);
    fs::write(&missing, vec![b'x'; 2 << 20]).unwrap();
    named(&load(&missing, &key, None), &["missing.pem has more than 1048576 bytes"]);
    named(&load(certificates.path(), &key, None), &["cannot read", "directory"]);
    let nothing = tempfile::tempdir().unwrap();
    let error = TlsClient::load(nothing.path()).err().unwrap().to_string();
    named(&error, &["cannot read", "ca-cert.pem"]);
    fs::remove_file(file("client-key.pem")).unwrap();
    let error = TlsClient::load(certificates.path()).err().unwrap().to_string();
    named(&error, &["cannot read", "client-key.pem"]);
}
