//! Several exports of one server, what may be done through each, and who reaches its socket.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use levelhead_block::{BlockService, Durability, Memory};
use levelhead_nbd::codec::{Answer, ClientOption, CommandKind, Errno, ExportFlags, Info};
use levelhead_nbd::{Access, Client, Endpoint, Export, SOCKET_MODE, Server};
use levelhead_units::{Bytes, Sectors};
use rustix::fs::Mode;
use rustix::process::umask;

use crate::common::{self, Served, Shuffled, export, memory};

/// One service under two names, the second of which is for reading.
fn two_names(service: &Arc<dyn BlockService>) -> Vec<Export> {
    let second =
        Export { name: "look".to_owned(), access: Access::ReadOnly, ..export(Arc::clone(service)) };
    vec![export(Arc::clone(service)), second]
}

#[test]
fn every_export_is_listed_and_the_first_is_for_those_who_name_none() {
    let served = Served::new(two_names(&memory(4)));
    let mut client = served.raw().impatient();
    client.greet();
    let answers = client.ask(&ClientOption::List);
    let names: Vec<&str> = answers
        .iter()
        .filter_map(|answer| match answer {
            Answer::Server { name, .. } => Some(name.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(names, ["disk", "look"]);
    let flags = |client: &mut common::RawClient, name: &str| {
        let info = ClientOption::Info { export: name.to_owned(), wanted: Vec::new() };
        let answers = client.ask(&info);
        let Some(Answer::Info(Info::Export { flags, .. })) = answers.first() else { panic!() };
        *flags
    };
    assert_eq!(flags(&mut client, ""), flags(&mut client, "disk"));
    assert!(!flags(&mut client, "disk").contains(ExportFlags::READ_ONLY));
    let look = flags(&mut client, "look");
    assert!(look.contains(ExportFlags::READ_ONLY));
    assert!(!look.contains(ExportFlags::SEND_TRIM));
    assert!(!look.contains(ExportFlags::SEND_WRITE_ZEROES));
}

#[test]
fn whatever_changes_sectors_is_refused_by_a_read_only_export_and_changes_nothing() {
    let service = memory(4);
    let served = Served::new(two_names(&service));
    let writer = Client::connect(served.running.endpoint(), "disk").unwrap();
    writer.write_at(Bytes::new(0), &[7; 16_384], Durability::Cached).unwrap();
    let mut client = served.raw().impatient();
    client.go_to("look");
    client.request(1, CommandKind::Write, 0, 4096);
    client.send(&[1; 4096]);
    assert_eq!(client.simple(), (1, Some(Errno::NotPermitted)));
    for (cookie, kind) in [(2, CommandKind::WriteZeroes), (3, CommandKind::Trim)] {
        client.request(cookie, kind, 0, 4096);
        assert_eq!(client.simple(), (cookie, Some(Errno::NotPermitted)));
    }
    client.request(4, CommandKind::Flush, 0, 0);
    assert_eq!(client.simple(), (4, None), "a flush changes nothing, and the connection is there");
    let mut bytes = [0; 16_384];
    writer.read_at(Bytes::new(0), &mut bytes).unwrap();
    assert!(bytes == [7; 16_384]);
}

/// Each writer goes through an export of its own; without locks that both share, a sector written back with
/// an old neighbour would undo a write of the other.
#[test]
fn unaligned_writes_through_two_exports_of_one_device_lose_nothing() {
    const SLOT: usize = 96;
    const ROUNDS: u8 = 200;
    let service: Arc<dyn BlockService> = Shuffled::new(Memory::new(Sectors::new(1)), 3);
    let second = Export { name: "too".to_owned(), ..export(Arc::clone(&service)) };
    let served = Served::new(vec![export(service), second]);
    let names = ["disk", "too", "disk", "too"];
    thread::scope(|scope| {
        for (writer, name) in names.into_iter().enumerate() {
            let client = Client::connect(served.running.endpoint(), name).unwrap();
            scope.spawn(move || {
                let place = Bytes::new((writer * SLOT) as u64);
                for round in 1..=ROUNDS {
                    client.write_at(place, &[round; SLOT], Durability::Cached).unwrap();
                    let mut out = [0; SLOT];
                    client.read_at(place, &mut out).unwrap();
                    assert!(out == [round; SLOT], "writer {writer}, round {round}");
                }
            });
        }
    });
}

/// The umask is the whole program's: one test at a time changes it.
fn with_umask<T>(mask: u32, run: impl FnOnce() -> T) -> T {
    static ONE: Mutex<()> = Mutex::new(());
    let _one: MutexGuard<'_, ()> = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let before = umask(Mode::from_raw_mode(mask));
    let result = run();
    umask(before);
    result
}

#[test]
fn sockets_have_the_mode_that_was_asked_for_whatever_the_umask_is() {
    for mask in [0, 0o022, 0o077] {
        for mode in [SOCKET_MODE, 0o660, 0o666, 0o200] {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("nbd.sock");
            let endpoint = Endpoint::Unix(path.clone());
            let exports = vec![export(memory(1))];
            let server =
                with_umask(mask, || Server::bind_with_mode(&endpoint, exports, mode).unwrap());
            let made = fs::symlink_metadata(&path).unwrap().mode() & 0o777;
            assert_eq!(made, mode, "umask {mask:o}");
            drop(server);
            assert!(!path.exists());
        }
    }
    assert_eq!(SOCKET_MODE, 0o600);
}

#[test]
fn a_folder_that_takes_no_socket_is_named_and_left_as_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("nbd.sock");
    fs::write(&path, "a file").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    let endpoint = Endpoint::Unix(path.clone());
    let error = Server::bind(&endpoint, vec![export(memory(1))]).err().unwrap().to_string();
    assert!(error.contains("a file that is not a socket is there"), "{error}");
    assert_eq!(fs::read(&path).unwrap(), b"a file");
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o640);
}
