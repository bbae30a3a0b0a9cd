//! Arrays whose drives are NBD exports: of nbdkit, whose filters are faults of other authors, of processes
//! that are stopped or killed, and of this program. Without nbdkit most of it is skipped, loudly.

use std::io::{Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use levelhead_block::Durability;
use levelhead_nbd::{Client, Endpoint};
use levelhead_units::Bytes;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::pki;
use crate::support::{
    Serving, Shelf, assert_same, command, connect, is_there, levelhead, random, read_all, refs,
    run, wait_until,
};
use crate::{DRIVE, scribble};

const ARRAY: &str = "raid5:3+1,chunk=16KiB";
const COUNT: usize = 4;

/// nbdkit over a file, on a socket beside it. Killed when it is dropped.
struct Nbdkit {
    child: Child,
    /// What starts it again.
    arguments: Vec<String>,
    socket: String,
}

impl Nbdkit {
    fn start(file: &str, more: &[&str]) -> Self {
        let socket = format!("{file}.sock");
        let (filters, parameters): (Vec<&str>, Vec<&str>) =
            more.iter().partition(|text| text.starts_with("--"));
        let mut arguments = vec!["--foreground", "--unix", &socket];
        arguments.extend(filters);
        arguments.extend(["file", file]);
        arguments.extend(parameters);
        let arguments: Vec<String> = arguments.into_iter().map(str::to_owned).collect();
        let child = Self::spawn(&arguments, &socket);
        Self { child, arguments, socket }
    }

    fn spawn(arguments: &[String], socket: &str) -> Child {
        let mut command = Command::new("nbdkit");
        let child = command.args(arguments).stderr(Stdio::null()).spawn().unwrap();
        let endpoint = Endpoint::Unix(socket.into());
        wait_until("nbdkit listens", || Client::connect(&endpoint, "").is_ok());
        child
    }

    fn uri(&self) -> String {
        format!("nbd+unix:///?socket={}", self.socket)
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    fn start_again(&mut self) {
        let _left = std::fs::remove_file(&self.socket);
        self.child = Self::spawn(&self.arguments, &self.socket);
    }
}

impl Drop for Nbdkit {
    fn drop(&mut self) {
        let _ended = self.child.kill();
        let _waited = self.child.wait();
    }
}

/// An array of exports, each of a file, and what it holds.
struct Bench {
    shelf: Shelf,
    servers: Vec<Nbdkit>,
    model: Vec<u8>,
}

impl Bench {
    /// Drive 1 has these filters and parameters.
    fn new(more: &[&str]) -> Self {
        let shelf = Shelf::new();
        let files = shelf.drives(COUNT, DRIVE);
        let start =
            |(at, file): (usize, &String)| Nbdkit::start(file, if at == 1 { more } else { &[] });
        let servers: Vec<Nbdkit> = files.iter().enumerate().map(start).collect();
        // Made over the files: faults begin when it is served.
        levelhead(&[&["array", "create", ARRAY, "--assume-clean"][..], &refs(&files)].concat())
            .good();
        Self { shelf, servers, model: Vec::new() }
    }

    fn socket(&self) -> String {
        self.shelf.path("nbd.sock")
    }

    fn uris(&self) -> Vec<String> {
        self.servers.iter().map(Nbdkit::uri).collect()
    }

    fn serve(&mut self, options: &[&str]) -> Serving {
        let nbd = self.socket();
        let serving = self.shelf.serve_with(&self.uris(), &[&["--nbd", &nbd], options].concat());
        if self.model.is_empty() {
            self.model = random(serving.size(), 1);
            let client = connect(&nbd);
            client.write_at(Bytes::new(0), &self.model, Durability::Durable).unwrap();
        }
        serving
    }

    #[track_caller]
    fn check(&self) {
        assert_same(&read_all(&self.socket()), &self.model);
    }

    /// Redundancy is right, too: without drive `other` all of it reads the same.
    #[track_caller]
    fn check_without(&self, serving: &Serving, other: u8) {
        levelhead(&["array", "fail", serving.control(), &other.to_string()]).good();
        self.check();
    }
}

fn drive(status: &Value, at: usize) -> &Value {
    &status["drives"][at]
}

#[test]
fn array_over_exports_is_made_served_asked_and_stopped_by_their_uris() {
    if !is_there("nbdkit") {
        return;
    }
    let shelf = Shelf::new();
    let files = shelf.drives(COUNT, DRIVE);
    let servers: Vec<Nbdkit> = files[1..].iter().map(|file| Nbdkit::start(file, &[])).collect();
    // One is a file of this machine.
    let members: Vec<String> =
        files[..1].iter().cloned().chain(servers.iter().map(Nbdkit::uri)).collect();
    let create = [&["array", "create", ARRAY][..], &refs(&members)].concat();
    let made = levelhead(&[&create[..], &["--json"]].concat()).json();
    assert_eq!(made["drives"][2]["member"], members[2].as_str());
    let again = levelhead(&create);
    let sentence = again.refusal();
    assert!(sentence.contains("is drive 0 of the array"), "{sentence}");
    let serving = shelf.serve(&members);
    let mut model = vec![0; serving.size() as usize];
    let client = connect(&shelf.path("nbd.sock"));
    client.write_at(Bytes::new(0), &model, Durability::Cached).unwrap();
    scribble(&client, &mut model, 7);
    assert_same(&read_all(&shelf.path("nbd.sock")), &model);
    let status = levelhead(&["array", "status", &members[2], "--json"]).json();
    assert_eq!(status["state"], "whole");
    assert_eq!(drive(&status, 2)["member"], members[2].as_str());
    levelhead(&["array", "stop", &members[3]]).good();
    serving.end().good();
    drop((client, servers));
    // The same bytes, as files.
    let serving = shelf.serve(&files);
    assert_same(&read_all(&shelf.path("nbd.sock")), &model);
    serving.stop();
}

#[test]
fn drive_that_fails_a_fifth_of_its_reads_is_read_around() {
    if !is_there("nbdkit") {
        return;
    }
    let trigger = tempfile::tempdir().unwrap();
    let file = trigger.path().join("fail");
    let when = format!("error-file={}", file.display());
    let more = ["--filter=error", "error-pread=EIO", "error-pread-rate=20%", &when];
    let mut bench = Bench::new(&more);
    let serving = bench.serve(&[]);
    std::fs::write(&file, "").unwrap();
    for _ in 0..5 {
        bench.check();
    }
    let status = serving.status();
    assert_eq!(drive(&status, 1)["state"], "present");
    assert!(status["decoded"].as_u64().unwrap() > 0, "{status}");
    std::fs::remove_file(&file).unwrap();
    serving.stop();
}

#[test]
fn array_is_unhealthy_for_as_long_as_the_machine_of_a_drive_has_no_room() {
    if !is_there("nbdkit") {
        return;
    }
    let trigger = tempfile::tempdir().unwrap();
    let file = trigger.path().join("full");
    let when = format!("error-file={}", file.display());
    let more = ["--filter=error", "error-pwrite=ENOSPC", "error-pwrite-rate=100%", &when];
    let mut bench = Bench::new(&more);
    let serving = bench.serve(&[]);
    let check = || levelhead(&["array", "status", serving.control(), "--check"]);
    wait_until("it is healthy", || check().code == Some(0));
    std::fs::write(&file, "").unwrap();
    let client = connect(&bench.socket());
    thread::scope(|scope| {
        let first = &bench.model[..1 << 20];
        scope.spawn(|| client.write_at(Bytes::new(0), first, Durability::Durable).unwrap());
        let mut checked = check();
        wait_until("it is degraded", || {
            checked = check();
            checked.code == Some(1)
        });
        let sentence =
            "drive 1: its host refuses commands for it: the NBD server answered: No space";
        assert!(checked.err.contains(sentence), "{checked:?}");
        std::fs::remove_file(&file).unwrap();
    });
    wait_until("it is healthy again", || check().code == Some(0));
    bench.check();
    serving.stop();
}

#[test]
fn drive_that_takes_long_for_each_read_sits_out_and_what_is_read_is_right() {
    if !is_there("nbdkit") {
        return;
    }
    let mut bench = Bench::new(&["--filter=delay", "rdelay=300ms"]);
    let serving = bench.serve(&[]);
    let client = connect(&bench.socket());
    let mut at = 0;
    wait_until("it sits out", || {
        let mut bytes = vec![0; 4096];
        client.read_at(Bytes::new(at), &mut bytes).unwrap();
        assert_same(&bytes, &bench.model[at as usize..][..4096]);
        at = (at + 16_384) % (bench.model.len() as u64 - 4096);
        drive(&serving.status(), 1)["sits_out"] == true
    });
    serving.stop();
}

/// Its machine says nothing of it: the connection is there, and no answer comes.
#[test]
fn stopped_process_is_a_silent_drive_that_is_heard_again() {
    if !is_there("nbdkit") {
        return;
    }
    let mut bench = Bench::new(&[]);
    let serving = bench.serve(&["--lost-after", "60s"]);
    bench.servers[1].signal(Signal::STOP);
    bench.check();
    // Reads count on it until it is known to be silent, and do without from then on.
    let client = connect(&bench.socket());
    wait_until("it is silent", || {
        client.read_at(Bytes::new(0), &mut [0; 65_536]).unwrap();
        drive(&serving.status(), 1)["silent"] == true
    });
    bench.check();
    bench.servers[1].signal(Signal::CONT);
    wait_until("it is heard", || drive(&serving.status(), 1)["silent"] == false);
    let mut model = std::mem::take(&mut bench.model);
    scribble(&client, &mut model, 9);
    bench.model = model;
    bench.check();
    assert_eq!(serving.status()["state"], "whole");
    bench.check_without(&serving, 2);
    serving.stop();
}

#[test]
fn paused_drive_is_lost_where_writes_wait_for_it_and_the_array_goes_on() {
    if !is_there("nbdkit") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let control = folder.path().join("control");
    let mut bench =
        Bench::new(&["--filter=pause", &format!("pause-control={}", control.display())]);
    let serving = bench.serve(&["--lost-after", "2s"]);
    let mut pause = UnixStream::connect(&control).unwrap();
    pause.write_all(b"p").unwrap();
    let mut answer = [0];
    pause.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"P");
    let mut model = std::mem::take(&mut bench.model);
    scribble(&connect(&bench.socket()), &mut model, 3);
    bench.model = model;
    let status = serving.status();
    assert_eq!(drive(&status, 1)["failure"], "it has completed no command for 2 s");
    assert_eq!(status["state"], "degraded");
    bench.check();
    serving.stop();
    drop(pause);
}

/// Killed in the middle of writes, again and again: none fails, no drive is lost, and redundancy is right.
#[test]
fn killed_server_that_comes_back_in_time_is_the_same_drive() {
    if !is_there("nbdkit") {
        return;
    }
    let mut bench = Bench::new(&[]);
    let serving = bench.serve(&["--lost-after", "60s"]);
    let client = connect(&bench.socket());
    for round in 0..2 {
        let mut model = std::mem::take(&mut bench.model);
        thread::scope(|scope| {
            let (client, model) = (&client, &mut model);
            let writer = scope.spawn(move || scribble(client, model, 20 + round));
            bench.servers[1].kill();
            wait_until("a command waits for it", || {
                serving.status()["outstanding"] != 0 || writer.is_finished()
            });
            bench.servers[1].start_again();
            writer.join().unwrap();
        });
        bench.model = model;
        bench.check();
    }
    let status = serving.status();
    assert_eq!(status["state"], "whole", "{status}");
    bench.check_without(&serving, 2);
    serving.stop();
}

#[test]
fn killed_server_that_stays_away_is_a_lost_drive_and_says_why() {
    if !is_there("nbdkit") {
        return;
    }
    let mut bench = Bench::new(&[]);
    let serving = bench.serve(&["--lost-after", "2s"]);
    bench.servers[1].kill();
    let mut model = std::mem::take(&mut bench.model);
    scribble(&connect(&bench.socket()), &mut model, 3);
    bench.model = model;
    wait_until("it is lost", || drive(&serving.status(), 1)["state"] == "failed");
    bench.check();
    serving.stop();
    // It is back, and is given what it has missed.
    bench.servers[1].start_again();
    let serving = bench.serve(&[]);
    wait_until("it is caught up", || serving.status()["state"] == "whole");
    bench.check();
    serving.stop();
}

/// A copy from before the array was served: what it says is right, and old.
#[test]
fn older_copy_at_the_same_place_is_not_taken_for_the_drive() {
    if !is_there("nbdkit") {
        return;
    }
    let mut bench = Bench::new(&[]);
    let (file, copy) = (bench.shelf.path("d1.img"), bench.shelf.path("copy"));
    std::fs::copy(&file, &copy).unwrap();
    let serving = bench.serve(&["--lost-after", "60s"]);
    bench.servers[1].kill();
    std::fs::rename(&copy, &file).unwrap();
    bench.servers[1].start_again();
    let mut model = std::mem::take(&mut bench.model);
    scribble(&connect(&bench.socket()), &mut model, 3);
    bench.model = model;
    wait_until("it is lost", || drive(&serving.status(), 1)["state"] == "failed");
    let failure = drive(&serving.status(), 1)["failure"].clone();
    let expected = format!("another drive answers at {} now", bench.servers[1].uri());
    assert_eq!(failure, expected.as_str());
    bench.check();
    serving.stop();
}

/// Two servers over the same exports, as two machines would have them: each with a run-time folder of its own, which is what they
/// would meet in on one machine.
#[test]
fn server_of_another_machine_is_refused_or_fenced_before_it_changes_a_byte() {
    if !is_there("nbdkit") {
        return;
    }
    let mut bench = Bench::new(&[]);
    let first = bench.serve(&[]);
    let other = bench.shelf.path("other");
    std::fs::DirBuilder::new().mode(0o700).create(&other).unwrap();
    let (nbd, control) = (bench.shelf.path("nbd-2.sock"), bench.shelf.path("2.control"));
    let serve = |folder: Option<&String>| {
        let uris = bench.uris();
        let args = ["array", "serve", "--nbd", &nbd, "--control", &control];
        let mut command = command(&[&args[..], &refs(&uris)].concat());
        folder.map(|folder| command.env("XDG_RUNTIME_DIR", folder));
        command
    };
    // On the same machine, wherever it listens.
    let ended = run(serve(None));
    assert!(ended.err.contains("is served by another process of this machine"), "{ended:?}");
    assert_eq!(ended.code, Some(2), "{ended:?}");
    // While the first one writes.
    let refused = thread::scope(|scope| {
        let ended = scope.spawn(|| run(serve(Some(&other))));
        let client = connect(&bench.socket());
        while !ended.is_finished() {
            client.write_at(Bytes::new(0), &bench.model[..4096], Durability::Durable).unwrap();
            thread::sleep(Duration::from_millis(100));
        }
        ended.join().unwrap()
    });
    assert!(refused.err.contains("another server is using the array"), "{refused:?}");
    assert_eq!(refused.code, Some(2), "{refused:?}");
    bench.check();
    // While the first one does nothing, and knows of nothing.
    first.signal(Signal::STOP);
    let mut command = serve(Some(&other));
    command.stderr(Stdio::null());
    let second = Serving::spawn(command);
    let newer = random(4096, 9);
    let client = connect(&nbd);
    client.write_at(Bytes::new(0), &newer, Durability::Durable).unwrap();
    first.signal(Signal::CONT);
    let late = connect(&bench.socket());
    assert!(late.write_at(Bytes::new(0), &random(4096, 8), Durability::Durable).is_err());
    assert!(late.read_at(Bytes::new(0), &mut [0; 4096]).is_err());
    let mut found = vec![0; 4096];
    client.read_at(Bytes::new(0), &mut found).unwrap();
    assert!(found == newer, "the second server has what it has answered");
    wait_until("the first one has ended", || first.status()["state"] == "failed");
    bench.model[..4096].copy_from_slice(&newer);
    assert_same(&read_all(&nbd), &bench.model);
    second.stop();
}

/// The servers are this program's, too, so nothing has to be installed. One of them encrypts.
#[test]
fn arrays_stand_on_exports_of_this_program() {
    let (below, shelf) = (Shelf::new(), Shelf::new());
    let folder = below.path("");
    pki::make(folder.as_ref());
    let socket = |at: usize| below.path(&format!("e{at}.sock"));
    let tls = ["--tls-certificates", &folder, "--tls-client-ca", &below.path("ca-cert.pem")];
    let serve = |at: usize| {
        let member = format!("emu:{}?size=8MiB", below.path(&format!("e{at}.img")));
        let (nbd, tls) = (socket(at), if at == 1 { &tls[..] } else { &[] });
        let emulate = ["drive", "emulate", &member, "--nbd", &nbd, "--export", "a b"];
        Serving::start(&[&emulate[..], tls].concat())
    };
    let drives: Vec<Serving> = (0..3).map(serve).collect();
    let mut uris: Vec<String> = drives.iter().map(|drive| drive.uri().to_owned()).collect();
    uris[1].push_str(&format!("&tls-certificates={folder}"));
    let create = ["array", "create", "raid5:2+1,chunk=16KiB", "--assume-clean"];
    levelhead(&[&create[..], &refs(&uris)].concat()).good();
    let serving = shelf.serve(&uris);
    let client = connect(&shelf.path("nbd.sock"));
    client.write_at(Bytes::new(70_000), b"through two servers", Durability::Durable).unwrap();
    let mut bytes = [0; 19];
    client.read_at(Bytes::new(70_000), &mut bytes).unwrap();
    assert_eq!(&bytes, b"through two servers");
    serving.stop();
    for drive in drives {
        drive.signal(Signal::TERM);
        drive.end().good();
    }
}

#[test]
fn exports_that_cannot_be_drives_are_refused_by_name() {
    let (below, shelf) = (Shelf::new(), Shelf::new());
    let member = format!("emu:{}?size=8MiB", below.path("e.img"));
    let nbd = below.path("e.sock");
    let server = Serving::start(&["drive", "emulate", &member, "--nbd", &nbd, "--export", "x,ro"]);
    let uri = server.uri();
    let nowhere = format!("nbd+unix:///x?socket={}", below.path("nowhere.sock"));
    let elsewhere = nowhere.replace("nowhere", "elsewhere");
    let other = uri.replace(":///x?", ":///other?");
    let odd = "nbd://a:b/";
    for (members, parts) in [
        ([uri, uri], [format!("{uri} and {uri} are the same drive"), String::new()]),
        (
            [uri, "nbd://[::1"],
            ["'nbd://[::1' is not an NBD export".into(), "'[' is not closed".into()],
        ),
        ([odd, uri], ["'nbd://a:b/' is not an NBD export".into(), "'b' is not a port".into()]),
        ([uri, &nowhere], [format!("{uri}: the export is read-only"), String::new()]),
        // One that is away may be done without, which is asked once all others are there.
        ([&nowhere, &elsewhere], [nowhere.clone(), "No such file".into()]),
        ([&other, &elsewhere], [other.clone(), "export 'other'".into()]),
    ] {
        for verb in [&["create", "raid0:2"][..], &["serve", "--nbd", "tcp:0"]] {
            let ended = levelhead(&[&["array"], verb, &members].concat());
            for part in &parts {
                assert!(ended.refusal().contains(part.as_str()), "{members:?}: {ended:?}");
            }
        }
    }
    assert_eq!(shelf.names(), [""; 0]);
    server.signal(Signal::TERM);
    server.end().good();
}
