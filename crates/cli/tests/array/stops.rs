//! An array that is asked to stop ends: at every moment, also if its output is not read or a drive does not answer.

use std::fs::{self, File};
use std::io::{ErrorKind, PipeReader, PipeWriter, Read, Write};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use levelhead_stats::Streams;
use levelhead_units::Bytes;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::support::{
    ARRAY, Ended, PATIENCE, Shelf, command, connect, end, is_there, levelhead, refs, wait_until,
};
use crate::{DRIVE, SIZE};

/// Within this an array says how it is, whatever hangs.
const PROMISED: Duration = Duration::from_secs(1);

/// A pipe that takes nothing more, and that is not read.
fn full_pipe() -> (PipeReader, PipeWriter) {
    let (reader, mut writer) = std::io::pipe().unwrap();
    let flags = fcntl_getfl(&writer).unwrap();
    fcntl_setfl(&writer, flags | OFlags::NONBLOCK).unwrap();
    loop {
        match writer.write(&[0; 512]) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) => panic!("{error}"),
        }
    }
    fcntl_setfl(&writer, flags).unwrap();
    (reader, writer)
}

fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

#[test]
fn array_whose_output_is_not_read_stops_in_good_order() {
    for (unread_out, unread_err) in [(true, false), (false, true), (true, true)] {
        let shelf = Shelf::new();
        let drives = shelf.array(DRIVE);
        let (socket, control) = (shelf.path("nbd.sock"), shelf.path("control"));
        let options = ["array", "serve", "--nbd", &socket, "--control", &control];
        let mut serve = command(&[&options[..], &refs(&drives)].concat());
        let (_out, out) = full_pipe();
        let (_err, err) = full_pipe();
        serve.stdout(if unread_out { Stdio::from(out) } else { Stdio::null() });
        serve.stderr(if unread_err { Stdio::from(err) } else { Stdio::null() });
        let child = serve.spawn().unwrap();
        wait_until("it is served", || levelhead(&["array", "status", &control]).code == Some(0));
        signal(&child, Signal::TERM);
        let ended = end(child, "a server whose output is not read");
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let serving = shelf.serve(&drives);
        assert_eq!(serving.said["remarks"], json!([]), "it was not stopped cleanly");
        serving.stop();
    }
}

/// Holds a file so that opening it waits for the holder, as a file on a machine that does not answer does.
struct Lease(Child);

impl Lease {
    fn take(path: &str) -> Option<Self> {
        // The number of F_SETLEASE is Linux's own; its signal would end the holder.
        const HOLD: &str = "import fcntl, signal, sys, time\n\
            signal.signal(signal.SIGIO, signal.SIG_IGN)\n\
            file = open(sys.argv[1])\n\
            fcntl.fcntl(file, 1024, fcntl.F_RDLCK)\n\
            print('held', flush=True)\n\
            time.sleep(600)\n";
        if !is_there("python3") {
            return None;
        }
        let mut python = Command::new("python3");
        python.args(["-c", HOLD, path]).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut holder = python.spawn().unwrap();
        let mut said = [0; 5];
        if holder.stdout.take().unwrap().read_exact(&mut said).is_err() {
            eprintln!("SKIPPED: {path} cannot be leased: {:?}", end(holder, "the holder"));
            return None;
        }
        Some(Self(holder))
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

#[test]
fn start_that_hangs_is_ended_by_the_first_signal_and_has_changed_nothing() {
    for (sent, code) in [(Signal::TERM, 143), (Signal::INT, 130)] {
        let shelf = Shelf::new();
        let drives = shelf.array(DRIVE);
        let before = shelf.content();
        let Some(lease) = Lease::take(&drives[2]) else { return };
        let options = ["array", "serve", "--nbd", &shelf.path("nbd.sock")];
        let mut serve = command(&[&options[..], &refs(&drives)].concat());
        let child = serve.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // It waits for a file of which some thread of it wants a descriptor.
        let stack = format!("/proc/{}/wchan", child.id());
        let syscall = format!("/proc/{}/syscall", child.id());
        wait_until("the start hangs", || {
            let says = |path: &str| fs::read_to_string(path).unwrap_or_default();
            says(&stack).contains("lease") || says(&syscall).starts_with("257 ")
        });
        let begun = Instant::now();
        signal(&child, sent);
        let ended = end(child, "a start that hangs");
        assert_eq!(ended.code, Some(code), "{ended:?}");
        assert_eq!(ended.err, "levelhead: it was stopped before it had changed anything\n");
        // The kernel lets a lease go by itself after 45 seconds.
        assert!(begun.elapsed() < Duration::from_secs(30), "it waited for the drive");
        drop(lease);
        assert!(before == shelf.content(), "something has changed");
    }
}

/// Sends the signal so long after the start, and gives how it ended.
fn stop_after(members: &[String], socket: &str, wait: Duration) -> Ended {
    let serve = [&["array", "serve", "--nbd", socket][..], &refs(members)].concat();
    let mut serve = command(&serve);
    let child = serve.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(wait);
    signal(&child, Signal::TERM);
    end(child, "a server that was asked to stop")
}

/// In the start, in a resync, while it serves, and once more in the stop: a later start needs no force.
#[test]
fn array_that_is_stopped_at_any_moment_is_served_again() {
    const ROUNDS: u64 = 16;
    let mut rng = Streams::new(11).stream("moments");
    let shelf = Shelf::new();
    let files = shelf.used_drives(6, 4 << 20, 60);
    levelhead(&[&["array", "create", ARRAY, "--force"][..], &refs(&files)].concat()).good();
    // Its resync takes longer than any round.
    let slow: Vec<String> = files.iter().map(|path| format!("emu:{path}?slowdown=30")).collect();
    let socket = shelf.path("nbd.sock");
    let mut codes = Vec::new();
    for round in 0..ROUNDS {
        let most = if round % 3 == 0 { 60 } else { 1_500 };
        let wait = Duration::from_millis(rng.below(most));
        let ended = stop_after(&slow, &socket, wait);
        codes.push(ended.code);
        match ended.code {
            Some(0) => {}
            // Before its handler was there, and before anything had begun.
            None | Some(143) => assert!(!ended.err.contains("panicked"), "{ended:?}"),
            Some(_) => panic!("after {wait:?}: {ended:?}"),
        }
    }
    assert!(codes.contains(&Some(0)), "none was served: {codes:?}");
    let serving = shelf.serve(&files);
    wait_until("all redundancy is valid", || crate::synced(&serving.status()) >= 100.0);
    serving.stop();
}

/// The second signal comes at any moment of the stop: the array may be unclean then, and is served without force.
#[test]
fn stop_that_is_broken_off_leaves_an_array_that_is_served_again() {
    const ROUNDS: u64 = 10;
    let mut rng = Streams::new(12).stream("moments");
    let shelf = Shelf::new();
    let drives = shelf.array(DRIVE);
    let slow: Vec<String> = drives.iter().map(|path| format!("emu:{path}?slowdown=8")).collect();
    for _ in 0..ROUNDS {
        let serving = shelf.serve(&slow);
        let client = connect(&shelf.path("nbd.sock"));
        client.write_at(Bytes::new(0), &[7; 8192], levelhead_block::Durability::Durable).unwrap();
        drop(client);
        serving.signal(Signal::TERM);
        std::thread::sleep(Duration::from_millis(rng.below(150)));
        serving.signal(Signal::TERM);
        let ended = serving.end();
        assert!(matches!(ended.code, Some(0 | 143)), "{ended:?}");
    }
    let serving = shelf.serve(&drives);
    let mut back = vec![0; 8192];
    connect(&shelf.path("nbd.sock")).read_at(Bytes::new(0), &mut back).unwrap();
    assert!(back.iter().all(|&byte| byte == 7));
    serving.stop();
}

/// C1 of `create`: the machine stores no superblock, or only the first copy of each.
#[test]
fn array_that_cannot_be_recorded_is_not_made_and_nothing_has_changed() {
    // In blocks of 512 bytes; what lies beyond is not stored.
    for (blocks, names) in [(0, "d0.img"), (DRIVE / 1024, "d0.img")] {
        let shelf = Shelf::new();
        let drives = shelf.used_drives(6, DRIVE, 70);
        let before = shelf.content();
        let program = env!("CARGO_BIN_EXE_levelhead");
        let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" \"$@\"");
        let mut create = Command::new("sh");
        create.args(["-c", &script, program, "array", "create", ARRAY, "--force"]).args(&drives);
        let ended = crate::support::run(create);
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert!(ended.err.contains("cannot write to") && ended.err.contains(names), "{ended:?}");
        assert!(before == shelf.content(), "something has changed: {ended:?}");
    }
}

/// Asks for 1 MiB over and over, and reads no answer.
fn ask_and_do_not_listen(socket: &str, count: u64) -> UnixStream {
    let mut stream = UnixStream::connect(socket).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(Duration::from_secs(1))).unwrap();
    let mut greeting = [0; 18];
    stream.read_exact(&mut greeting).unwrap();
    let mut chosen = 3_u32.to_be_bytes().to_vec();
    chosen.extend(b"IHAVEOPT");
    chosen.extend(1_u32.to_be_bytes()); // NBD_OPT_EXPORT_NAME, of the name "".
    chosen.extend(0_u32.to_be_bytes());
    stream.write_all(&chosen).unwrap();
    let mut export = [0; 10];
    stream.read_exact(&mut export).unwrap();
    assert_eq!(u64::from_be_bytes(export[..8].try_into().unwrap()), SIZE);
    for cookie in 0..count {
        let mut request = 0x2560_9513_u32.to_be_bytes().to_vec();
        request.extend(0_u32.to_be_bytes()); // No flags, a read.
        request.extend(cookie.to_be_bytes());
        request.extend(((cookie % 20) << 20).to_be_bytes());
        request.extend((1_u32 << 20).to_be_bytes());
        // At some point the server takes no more of them.
        if stream.write_all(&request).is_err() {
            break;
        }
    }
    stream
}

#[test]
fn clients_that_read_no_answers_keep_no_one_from_anything() {
    let shelf = Shelf::new();
    let drives = shelf.array(DRIVE);
    let socket = shelf.path("nbd.sock");
    let serving = shelf.serve(&drives);
    let deaf: Vec<UnixStream> = (0..3).map(|_| ask_and_do_not_listen(&socket, 200)).collect();
    let mut stream = UnixStream::connect(serving.control()).unwrap();
    stream.set_read_timeout(Some(PROMISED)).unwrap();
    stream.write_all(b"{\"verb\": \"status\"}\n").unwrap();
    let mut first = [0; 6];
    stream.read_exact(&mut first).expect("status was not answered in time");
    assert_eq!(&first, b"{\"ok\":");
    // Others are served.
    let client = connect(&socket);
    client.write_at(Bytes::new(4096), &[9; 4096], levelhead_block::Durability::Durable).unwrap();
    let mut back = [0; 4096];
    client.read_at(Bytes::new(4096), &mut back).unwrap();
    assert!(back == [9; 4096]);
    serving.signal(Signal::TERM);
    let ended = serving.end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    drop(deaf);
    assert!(File::open(&drives[0]).is_ok());
    let serving = shelf.serve(&drives);
    assert_eq!(serving.said["remarks"], json!([]), "it was not stopped cleanly");
    serving.stop();
}
