//! What a service manager is told, at a socket that plays systemd's.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::process::{Command, Stdio};

use levelhead_block::Durability;
use levelhead_units::Bytes;
use rustix::process::Signal;

use crate::DRIVE;
use crate::support::{
    ARRAY, PATIENCE, Serving, Shelf, command, connect, is_there, levelhead, refs,
};

/// A manager's socket.
struct Manager(UnixDatagram);

impl Manager {
    fn bind(address: &SocketAddr) -> Self {
        let socket = UnixDatagram::bind_addr(address).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        Self(socket)
    }

    /// The next line.
    fn hear(&self) -> String {
        let mut bytes = [0; 4096];
        let count = self.0.recv(&mut bytes).unwrap();
        String::from_utf8(bytes[..count].to_vec()).unwrap()
    }

    /// The lines up to the one that begins like this.
    fn hear_until(&self, begin: &str) -> Vec<String> {
        let mut heard = Vec::new();
        while heard.last().is_none_or(|last: &String| !last.starts_with(begin)) {
            heard.push(self.hear());
        }
        heard
    }

    /// What is there already, once the program has ended.
    fn rest(&self) -> Vec<String> {
        self.0.set_nonblocking(true).unwrap();
        let mut bytes = [0; 4096];
        let line = || {
            let count = self.0.recv(&mut bytes).ok()?;
            Some(String::from_utf8(bytes[..count].to_vec()).unwrap())
        };
        std::iter::from_fn(line).collect()
    }
}

fn serve(shelf: &Shelf, members: &[String], name: &str, more: &[&str]) -> Serving {
    let socket = shelf.path("nbd.sock");
    let options = [&["array", "serve", "--nbd", &socket][..], more].concat();
    let mut serve = command(&[&options[..], &refs(members)].concat());
    serve.env("NOTIFY_SOCKET", name).env("WATCHDOG_USEC", "100000").stderr(Stdio::piped());
    Serving::spawn(serve)
}

#[test]
fn manager_hears_of_the_beginning_the_life_and_the_end() {
    for is_abstract in [false, true] {
        let shelf = Shelf::new();
        let drives = shelf.array(DRIVE);
        let path = shelf.path("notify");
        let (address, name) = if is_abstract {
            (SocketAddr::from_abstract_name(&path), format!("@{path}"))
        } else {
            (SocketAddr::from_pathname(&path), path.clone())
        };
        let manager = Manager::bind(&address.unwrap());
        let serving = serve(&shelf, &drives, &name, &[]);
        assert_eq!(manager.hear(), "READY=1\n");
        let healthy = manager.hear_until("STATUS=");
        assert_eq!(healthy, [format!("STATUS={ARRAY}: whole\n")]);
        for _ in 0..3 {
            manager.hear_until("WATCHDOG=1\n");
        }
        levelhead(&["array", "fail", serving.control(), "4"]).good();
        let degraded = manager.hear_until("STATUS=").pop().unwrap();
        assert_eq!(degraded, format!("STATUS={ARRAY}: degraded, without drive 4\n"));
        serving.signal(Signal::TERM);
        let heard = manager.hear_until("STOPPING=1\n");
        assert!(heard.iter().rev().skip(1).all(|line| line == "WATCHDOG=1\n"), "{heard:?}");
        serving.end().good();
        let rest = manager.rest();
        let known = ["STATUS=it is being stopped\n", "WATCHDOG=1\n"];
        let is_known = |line: &String| {
            known.contains(&line.as_str()) || line.starts_with("EXTEND_TIMEOUT_USEC=")
        };
        assert!(rest.iter().all(is_known), "{rest:?}");
    }
}

#[test]
fn stop_that_a_drive_holds_up_asks_for_more_time_and_ends() {
    let shelf = Shelf::new();
    let mut drives = shelf.array(DRIVE);
    drives[2] = format!("emu:{}?slowdown=1000", drives[2]);
    let name = shelf.path("notify");
    let manager = Manager::bind(&SocketAddr::from_pathname(&name).unwrap());
    let serving = serve(&shelf, &drives, &name, &["--lost-after", "2s"]);
    let client = connect(&shelf.path("nbd.sock"));
    let writer = std::thread::spawn(move || {
        drop(client.write_at(Bytes::new(0), &[7; 200_000], Durability::Durable));
    });
    manager.hear_until("READY=1\n");
    crate::support::wait_until("the write is under way", || {
        serving.status()["outstanding"] != serde_json::json!(0)
    });
    serving.signal(Signal::TERM);
    manager.hear_until("STOPPING=1\n");
    // Half of the watchdog's time, three times ahead.
    for _ in 0..3 {
        let more = manager.hear_until("EXTEND_TIMEOUT_USEC=").pop().unwrap();
        assert_eq!(more, "EXTEND_TIMEOUT_USEC=150000\n");
    }
    writer.join().unwrap();
    let ended = serving.end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

#[test]
fn array_is_served_also_where_no_manager_listens_or_its_name_is_none() {
    let shelf = Shelf::new();
    let drives = shelf.array(DRIVE);
    for (name, complains) in [(shelf.path("nothing"), false), ("here".to_owned(), true)] {
        let serving = serve(&shelf, &drives, &name, &[]);
        serving.signal(Signal::TERM);
        let ended = serving.end();
        assert_eq!(ended.err.contains("NOTIFY_SOCKET, 'here', is not a socket"), complains);
        assert_eq!(ended.code, Some(0), "{ended:?}");
    }
}

/// The units that are delivered, by systemd's own checker.
#[test]
fn systemd_finds_nothing_wrong_with_the_unit() {
    if !is_there("systemd-analyze") {
        return;
    }
    let shelf = Shelf::new();
    let unit = include_str!("../../../../contrib/levelhead@.service");
    let program = env!("CARGO_BIN_EXE_levelhead");
    let path = shelf.path("levelhead@.service");
    std::fs::write(&path, unit.replace("/usr/bin/levelhead", program)).unwrap();
    let mut analyze = Command::new("systemd-analyze");
    analyze.args(["verify", "--man=no", &shelf.path("levelhead@test.service")]);
    std::fs::copy(&path, shelf.path("levelhead@test.service")).unwrap();
    let ended = crate::support::run(analyze);
    let about: Vec<&str> = ended.err.lines().filter(|line| line.contains("levelhead")).collect();
    assert_eq!((ended.code, about), (Some(0), vec![]), "{}", ended.err);
}
