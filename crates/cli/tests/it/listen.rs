//! Where a served array is found, under which names, and who may do what: by the program.

use std::fs;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;

use levelhead_block::Durability;
use levelhead_nbd::{Client, Endpoint};
use levelhead_units::Bytes;
use rustix::fs::Mode;
use rustix::process::{Signal, umask};

use crate::pki;
use crate::support::{Serving, Shelf, command, levelhead, refs, wait_until};

const DRIVE: u64 = 8 << 20;

/// Serves the drives at `nbd.sock`.
fn serve(shelf: &Shelf, drives: &[String], options: &[&str]) -> Serving {
    let nbd = shelf.path("nbd.sock");
    shelf.serve_with(drives, &[&["--nbd", &nbd], options].concat())
}

#[test]
fn exports_have_names_of_their_own_and_may_be_for_reading_alone() {
    let shelf = Shelf::new();
    let options = ["--export", "disk", "--export", "look,ro"];
    let serving = serve(&shelf, &shelf.array(DRIVE), &options);
    let exports = serving.said["exports"].as_array().unwrap();
    let names: Vec<_> = exports.iter().map(|export| export["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["disk", "look"]);
    assert_eq!(exports[0]["read_only"], false);
    assert_eq!(exports[1]["read_only"], true);
    assert_eq!(exports[0]["uri"], serving.said["uri"]);
    let endpoint = Endpoint::Unix(shelf.path("nbd.sock").into());
    let connect = |name: &str| Client::connect(&endpoint, name).unwrap();
    connect("").write_at(Bytes::new(9), b"by default", Durability::Cached).unwrap();
    let mut bytes = [0; 10];
    connect("look").read_at(Bytes::new(9), &mut bytes).unwrap();
    assert_eq!(&bytes, b"by default");
    let refused = connect("look").write_at(Bytes::new(9), b"x", Durability::Cached).unwrap_err();
    assert_eq!(refused.raw_os_error(), Some(1));
    assert!(Client::connect(&endpoint, "other").is_err());
    serving.stop();
}

#[test]
fn array_that_is_read_only_takes_no_write_through_any_export() {
    let shelf = Shelf::new();
    let options = ["--read-only", "--export", "a", "--export", "b,ro"];
    let serving = serve(&shelf, &shelf.array(DRIVE), &options);
    let endpoint = Endpoint::Unix(shelf.path("nbd.sock").into());
    for name in ["", "a", "b"] {
        let client = Client::connect(&endpoint, name).unwrap();
        let refused = client.write_at(Bytes::new(0), b"x", Durability::Cached).unwrap_err();
        assert_eq!(refused.raw_os_error(), Some(1), "'{name}'");
        client.read_at(Bytes::new(0), &mut [0; 9]).unwrap();
    }
    serving.stop();
}

#[test]
fn sockets_are_their_owners_alone_unless_a_mode_is_asked_for() {
    let before = umask(Mode::empty());
    let shelf = Shelf::new();
    let drives = shelf.array(DRIVE);
    let mode = |options: &[&str]| {
        let serving = serve(&shelf, &drives, options);
        let mode = fs::symlink_metadata(shelf.path("nbd.sock")).unwrap().mode() & 0o7777;
        serving.stop();
        mode
    };
    assert_eq!(mode(&[]), 0o600);
    assert_eq!(mode(&["--socket-mode", "660"]), 0o660);
    umask(before);
}

#[test]
fn port_that_others_reach_is_warned_about_and_one_that_they_do_not_is_not() {
    let shelf = Shelf::new();
    let drives = shelf.array(DRIVE);
    for (endpoint, expected) in [("tcp:0.0.0.0:0", 1), ("tcp:127.0.0.1:0", 0)] {
        let serve = [&["array", "serve", "--nbd", endpoint][..], &refs(&drives)].concat();
        let serving = Serving::start(&serve);
        let remarks = serving.said["remarks"].as_array().unwrap().clone();
        let warned = |text: &str| text.contains("everyone who reaches tcp:0.0.0.0:0 can read and");
        assert_eq!(remarks.iter().filter(|text| warned(text.as_str().unwrap())).count(), expected);
        serving.signal(Signal::TERM);
        let ended = serving.end();
        assert_eq!(ended.err.lines().filter(|line| warned(line)).count(), expected, "{ended:?}");
    }
}

#[test]
fn array_that_encrypts_serves_those_who_are_known_and_nothing_else() {
    let (shelf, folder) = (Shelf::new(), pki::folder());
    let certificates = folder.path().display().to_string();
    let file = |name: &str| folder.path().join(name).display().to_string();
    let drives = shelf.array(DRIVE);
    let (cert, key, ca) = (file("server-cert.pem"), file("server-key.pem"), file("ca-cert.pem"));
    for options in [
        ["--tls-cert", &cert, "--tls-key", &key, "--tls-client-ca", &ca],
        ["--tls-certificates", &certificates, "--tls-client-ca", &ca, "--export", "x"],
    ] {
        let serving = serve(&shelf, &drives, &options);
        let uri = serving.uri();
        assert!(uri.starts_with("nbds+unix:///"), "{uri}");
        let open = |more: &str| Client::open(&format!("{uri}{more}").parse().unwrap());
        let client = open(&format!("&tls-certificates={certificates}")).unwrap();
        client.write_at(Bytes::new(5), b"encrypted", Durability::Durable).unwrap();
        let mut bytes = [0; 9];
        client.read_at(Bytes::new(5), &mut bytes).unwrap();
        assert_eq!(&bytes, b"encrypted");
        let plain = Client::connect(&Endpoint::Unix(shelf.path("nbd.sock").into()), "");
        assert!(plain.err().unwrap().to_string().contains("nothing without TLS"));
        drop(client);
        serving.stop();
    }
}

#[test]
fn certificates_that_cannot_be_used_are_refused_and_named() {
    let (shelf, folder) = (Shelf::new(), pki::folder());
    let file = |name: &str| folder.path().join(name).display().to_string();
    let drives = shelf.array(DRIVE);
    let (cert, key, other) =
        (file("server-cert.pem"), file("server-key.pem"), file("client-key.pem"));
    let nowhere = shelf.path("nowhere");
    for (options, parts) in [
        (vec!["--tls-cert", &cert], ["required", "--tls-key"]),
        (vec!["--tls-key", &key], ["required", "--tls-cert"]),
        (vec!["--tls-client-ca", &cert], ["--tls-client-ca needs a certificate", "--tls-cert"]),
        (vec!["--tls-cert", &cert, "--tls-key", &other], ["client-key.pem", "cannot be used"]),
        (vec!["--tls-cert", &key, "--tls-key", &key], ["server-key.pem", "holds no certificate"]),
        (vec!["--tls-certificates", &nowhere], ["nowhere/server-cert.pem", "cannot read"]),
    ] {
        let serve = [&["array", "serve", "--nbd", "tcp:0"][..], &options, &refs(&drives)].concat();
        let ended = levelhead(&serve);
        for part in parts {
            assert!(ended.refusal().contains(part), "{options:?}: {ended:?}");
        }
    }
}

#[test]
fn limits_of_connections_are_what_is_asked_for() {
    let shelf = Shelf::new();
    let options = ["--max-connections", "2", "--handshake-limit", "300ms"];
    let serving = serve(&shelf, &shelf.array(DRIVE), &options);
    let endpoint = Endpoint::Unix(shelf.path("nbd.sock").into());
    let clients = [(); 2].map(|()| Client::connect(&endpoint, "").unwrap());
    assert!(Client::connect(&endpoint, "").is_err(), "a third one is turned away");
    drop(clients);
    // Silent clients take no place.
    let connect = |_| UnixStream::connect(shelf.path("nbd.sock")).unwrap();
    let mut silent: Vec<_> = (0..200).map(connect).collect();
    wait_until("there is a place again", || Client::connect(&endpoint, "").is_ok());
    // Their time is over.
    let is_closed = |stream: &mut UnixStream| stream.read_to_end(&mut Vec::new()).is_ok();
    assert!(silent.iter_mut().all(is_closed));
    serving.stop();
}

#[test]
fn exports_and_limits_that_cannot_be_are_refused() {
    let shelf = Shelf::new();
    let drives = shelf.array(DRIVE);
    let many: Vec<String> = (0..65).map(|number| format!("--export={number}")).collect();
    for (options, parts) in [
        (vec!["--export", "a,rw"], ["'a,rw' is not an export", "NAME or NAME,ro"]),
        (vec!["--export", "a", "--export", "a,ro"], ["two exports are called 'a'", ""]),
        (refs(&many), ["at most 64 exports", "got 65"]),
        (vec!["--socket-mode", "700"], ["'700' is not a socket mode", "660"]),
        (vec!["--socket-mode", "rw"], ["'rw' is not a socket mode", "660"]),
        (vec!["--max-connections", "0"], ["'0' is not a whole number", "1 to 1024"]),
        (vec!["--handshake-limit", "1ms"], ["'1ms' is not from", "100ms to 10min"]),
    ] {
        let serve = [&["array", "serve", "--nbd", "tcp:0"][..], &options, &refs(&drives)].concat();
        let ended = levelhead(&serve);
        for part in parts {
            assert!(ended.refusal().contains(part), "{options:?}: {ended:?}");
        }
    }
    let mut help = command(&["array", "serve", "--help"]);
    let help = String::from_utf8(help.output().unwrap().stdout).unwrap();
    for option in ["--export", "--read-only", "--socket-mode", "--max-connections"] {
        assert!(help.contains(option), "{option}");
    }
}
