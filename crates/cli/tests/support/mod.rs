//! What the tests share: the built program run to its end, the same program serving until it
//! is stopped, and a folder with drives in it.
//!
//! Nothing here hopes that some time will do. A server is ready when it has said so, a process has
//! ended when the system says so, and [`PATIENCE`] only ends tests that would hang.

#![allow(dead_code, unused_imports, reason = "every test file uses another part")]

pub(crate) mod book;
pub(crate) mod demo;
pub(crate) mod mounts;
pub(crate) mod root;
pub(crate) mod watching;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{BufReader, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use levelhead_nbd::{Client, Endpoint};
use levelhead_stats::Streams;
pub(crate) use levelhead_testkit::{is_there, shared, wait_until};
use levelhead_units::Bytes;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

/// What nothing here may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// The array of the tests, of six drives.
pub(crate) const ARRAY: &str = "eraid:5+1,e=2,chunk=8KiB";

/// How a program ended and what it said.
#[derive(Debug)]
pub(crate) struct Ended {
    /// Absent where a signal ended it.
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ended {
    fn new(output: &Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Self { code: output.status.code(), out: text(&output.stdout), err: text(&output.stderr) }
    }

    /// What it printed, if it was content.
    #[track_caller]
    pub(crate) fn good(self) -> String {
        assert_eq!(self.code, Some(0), "{self:?}");
        self.out
    }

    /// What it printed of something that is degraded.
    #[track_caller]
    pub(crate) fn degraded(self) -> String {
        assert_eq!(self.code, Some(1), "{self:?}");
        assert!(self.err.starts_with("levelhead: degraded: "), "{self:?}");
        self.out
    }

    /// The one JSON value it printed, if it was content and printed nothing else.
    #[track_caller]
    pub(crate) fn json(self) -> Value {
        parse(&self.good())
    }

    /// The same of something that is degraded.
    #[track_caller]
    pub(crate) fn degraded_json(self) -> Value {
        parse(&self.degraded())
    }

    /// The sentence with which it refused what was asked.
    #[track_caller]
    pub(crate) fn refusal(&self) -> &str {
        self.sentence(2)
    }

    /// The sentence with which it said that an array has failed.
    #[track_caller]
    pub(crate) fn failure(&self) -> &str {
        self.sentence(3)
    }

    /// What it said as it ended with this code, having printed nothing.
    #[track_caller]
    fn sentence(&self, code: i32) -> &str {
        assert_eq!(self.code, Some(code), "{self:?}");
        // With --json the same as an object.
        let is_error =
            || serde_json::from_str::<Value>(&self.out).is_ok_and(|it| it["error"]["code"] == code);
        assert!(self.out.is_empty() || is_error(), "{self:?}");
        let sentence = self.err.lines().next().unwrap_or_default();
        let named = sentence.strip_prefix(NAME).and_then(|rest| rest.strip_prefix(": "));
        named.unwrap_or_else(|| panic!("{self:?}"))
    }
}

#[track_caller]
fn parse(out: &str) -> Value {
    serde_json::from_str(out).unwrap_or_else(|error| panic!("{error}: {out}"))
}

/// The built program: that of the package whose tests these are.
pub(crate) const PROGRAM: &str =
    match (option_env!("CARGO_BIN_EXE_levelhead"), option_env!("CARGO_BIN_EXE_levelhead-lab")) {
        (Some(program), _) | (None, Some(program)) => program,
        (None, None) => panic!("these are the tests of a program"),
    };

/// Its name, with which its sentences begin.
pub(crate) const NAME: &str =
    if option_env!("CARGO_BIN_EXE_levelhead").is_some() { "levelhead" } else { "levelhead-lab" };

/// The built program with these arguments.
pub(crate) fn command<S: AsRef<OsStr>>(args: &[S]) -> Command {
    let mut command = Command::new(PROGRAM);
    command.args(args).stdin(Stdio::null());
    command.env("XDG_RUNTIME_DIR", env!("CARGO_TARGET_TMPDIR"));
    command
}

/// Where the array of this UUID listens for control unless told otherwise.
pub(crate) fn usual_control(uuid: &str) -> String {
    format!("{}/levelhead/{uuid}.control", env!("CARGO_TARGET_TMPDIR"))
}

/// Runs the built program to its end.
pub(crate) fn levelhead<S: AsRef<OsStr>>(args: &[S]) -> Ended {
    run(command(args))
}

/// Runs a program to its end.
pub(crate) fn run(mut command: Command) -> Ended {
    let what = format!("{command:?}");
    let spawned = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    end(spawned.unwrap_or_else(|error| panic!("{what}: {error}")), &what)
}

/// Waits for the end of a program.
pub(crate) fn end(child: Child, what: &str) -> Ended {
    let pid = Pid::from_child(&child);
    let (sender, ended) = mpsc::channel();
    thread::spawn(move || sender.send(child.wait_with_output()));
    let Ok(output) = ended.recv_timeout(PATIENCE) else {
        // Not waited for, so the number is still its own.
        let _ = kill_process(pid, Signal::KILL);
        panic!("{what} does not end");
    };
    Ended::new(&output.unwrap())
}

/// `levelhead .. --json` that serves until it is stopped. Killed when dropped.
pub(crate) struct Serving {
    child: Option<Child>,
    /// What it said when clients were welcome.
    pub(crate) said: Value,
    /// What it says after that, which should be nothing.
    rest: Receiver<String>,
}

impl Serving {
    /// Starts it and waits until it says that clients are welcome.
    #[track_caller]
    pub(crate) fn start<S: AsRef<OsStr>>(args: &[S]) -> Self {
        let mut command = command(args);
        command.stderr(Stdio::piped());
        Self::spawn(command)
    }

    /// The same for a command whose standard error goes somewhere already.
    #[track_caller]
    pub(crate) fn spawn(mut command: Command) -> Self {
        command.arg("--json").stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let (sender, said) = mpsc::channel();
        let (rest_sender, rest) = mpsc::channel();
        thread::spawn(move || {
            let mut values = serde_json::Deserializer::from_reader(&mut out).into_iter();
            drop(sender.send(values.next()));
            let mut text = String::new();
            drop(out.read_to_string(&mut text));
            drop(rest_sender.send(text));
        });
        let first = said.recv_timeout(PATIENCE);
        let mut serving = Self { child: Some(child), said: Value::Null, rest };
        match first {
            Ok(Some(Ok(value))) => serving.said = value,
            Ok(Some(Err(_)) | None) => {
                panic!("{command:?}: {:?}", end(serving.child.take().unwrap(), "it"))
            }
            Err(_) => panic!("{command:?} says nothing"),
        }
        serving
    }

    /// The text under `key` of what it said.
    #[track_caller]
    pub(crate) fn text(&self, key: &str) -> &str {
        self.said[key].as_str().unwrap_or_else(|| panic!("no {key} in {}", self.said))
    }

    pub(crate) fn uri(&self) -> &str {
        self.text("uri")
    }

    pub(crate) fn control(&self) -> &str {
        self.text("control")
    }

    pub(crate) fn size(&self) -> u64 {
        self.said["size_bytes"].as_u64().unwrap()
    }

    /// The array's status.
    #[track_caller]
    pub(crate) fn status(&self) -> Value {
        levelhead(&["array", "status", self.control(), "--json"]).json()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).unwrap();
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(self.child.as_ref().expect("it is taken at the end only"))
    }

    /// Waits for its end.
    #[track_caller]
    pub(crate) fn end(mut self) -> Ended {
        let ended = end(self.child.take().unwrap(), "the server");
        let rest = self.rest.recv_timeout(PATIENCE).unwrap();
        assert_eq!(rest.trim(), "", "more than one JSON value");
        ended
    }

    /// Stops it in good order.
    #[track_caller]
    pub(crate) fn stop(self) {
        levelhead(&["array", "stop", self.control()]).good();
        self.end().good();
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            drop(child.kill());
            drop(child.wait());
        }
    }
}

/// A folder with drives in it.
pub(crate) struct Shelf {
    pub(crate) dir: TempDir,
}

impl Shelf {
    pub(crate) fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.dir.path().join(name).to_str().unwrap().to_owned()
    }

    /// `count` files of `size` bytes of zeroes that take no room.
    pub(crate) fn drives(&self, count: usize, size: u64) -> Vec<String> {
        let drive = |idx| {
            let path = self.path(&format!("d{idx}.img"));
            File::create_new(&path).unwrap().set_len(size).unwrap();
            path
        };
        (0..count).map(drive).collect()
    }

    /// [`Shelf::drives`] with old content everywhere but in the first and the last mebibyte: only `--force` takes them.
    pub(crate) fn used_drives(&self, count: usize, size: u64, seed: u64) -> Vec<String> {
        let drives = self.drives(count, size);
        for (idx, path) in drives.iter().enumerate() {
            let file = File::options().write(true).open(path).unwrap();
            file.write_all_at(&random(size - (2 << 20), seed + idx as u64), 1 << 20).unwrap();
        }
        drives
    }

    /// An array over six such drives, whose zeroes are redundant already.
    pub(crate) fn array(&self, size: u64) -> Vec<String> {
        let drives = self.drives(6, size);
        let args = [&["array", "create", ARRAY, "--assume-clean"][..], &refs(&drives)].concat();
        levelhead(&args).good();
        drives
    }

    /// Everything in the folder.
    pub(crate) fn content(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let entries = fs::read_dir(self.dir.path()).unwrap();
        let content = entries.map(|entry| entry.unwrap().path()).map(|path| {
            let bytes = if path.is_file() { fs::read(&path).unwrap() } else { Vec::new() };
            (path, bytes)
        });
        content.collect()
    }

    /// The names of everything in the folder, in order.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.dir.path()).unwrap();
        let name = |entry: std::io::Result<fs::DirEntry>| entry.unwrap().file_name();
        let mut names: Vec<String> =
            entries.map(name).map(|name| name.into_string().unwrap()).collect();
        names.sort_unstable();
        names
    }

    /// Serves an array at a socket in the folder.
    #[track_caller]
    pub(crate) fn serve(&self, members: &[String]) -> Serving {
        self.serve_with(members, &["--nbd", &self.path("nbd.sock")])
    }

    /// The same without drives that were there so far.
    #[track_caller]
    pub(crate) fn serve_degraded(&self, members: &[String]) -> Serving {
        self.serve_with(members, &["--nbd", &self.path("nbd.sock"), "--degraded"])
    }

    #[track_caller]
    pub(crate) fn serve_with(&self, members: &[String], options: &[&str]) -> Serving {
        Serving::start(&[&["array", "serve"][..], &refs(members), options].concat())
    }
}

/// The keys of an object.
pub(crate) fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

pub(crate) fn refs(texts: &[String]) -> Vec<&str> {
    texts.iter().map(String::as_str).collect()
}

/// Bytes that depend on the seed alone.
pub(crate) fn random(len: u64, seed: u64) -> Vec<u8> {
    let mut bytes = vec![0; len as usize];
    Streams::new(seed).stream("test/bytes").fill(&mut bytes);
    bytes
}

/// A client on the Unix socket at `path`.
pub(crate) fn connect(path: &str) -> Client {
    Client::connect(&Endpoint::Unix(path.into()), "").unwrap()
}

/// Everything the export at the Unix socket `path` holds.
pub(crate) fn read_all(path: &str) -> Vec<u8> {
    let client = connect(path);
    let mut bytes = vec![0; client.size_bytes().get() as usize];
    client.read_at(Bytes::new(0), &mut bytes).unwrap();
    bytes
}

/// Panics with the first difference and nothing more: these are many bytes.
#[track_caller]
pub(crate) fn assert_same(left: &[u8], right: &[u8]) {
    assert_eq!(left.len(), right.len(), "lengths");
    let differs = left.iter().zip(right).position(|(left, right)| left != right);
    assert_eq!(differs, None, "the first byte that differs");
}

/// Runs what must be refused with a sentence that has all `parts`; nothing in the folder may change.
#[track_caller]
pub(crate) fn check_refused(shelf: &Shelf, args: &[&str], parts: &[&str]) {
    let before = shelf.content();
    let ended = levelhead(args);
    let sentence = ended.refusal();
    for part in parts {
        assert!(sentence.contains(part), "no '{part}' in: {sentence}");
    }
    let after = shelf.content();
    assert!(before.keys().eq(after.keys()), "{args:?} left {:?}", after.keys());
    let changed = before.iter().find(|(path, bytes)| after[*path] != **bytes);
    assert!(changed.is_none(), "{args:?} changed {:?}", changed.map(|(path, _)| path));
}
