//! The virtual machine: what is in it, how it is started, and what it says.
//!
//! Its disks are exports that QEMU reads by its own NBD client. What the client in it prints comes over
//! the second serial port, apart from the kernel's messages on the first.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, Receiver, TryRecvError};
use std::thread;
use std::time::Duration;

use levelhead_units::{Bytes, Nanos};

use crate::cpio::Archive;
use crate::kernel::Kernel;
use crate::process::{Running, Stop, tail};
use crate::sample::Sample;
use crate::scenario::{SPAN, Scenario, System};
use crate::tools::{Tools, libraries};

/// From the start until the system under test is ready, with slow drives and a slow host.
const BOOT_MAX: Duration = Duration::from_secs(180);

/// From the end of the load until its figures are here.
const REPORT_MAX: Duration = Duration::from_secs(60);

const SCRIPT: &str = include_str!("guest.sh");

/// A machine that can be started.
#[derive(Debug)]
pub(crate) struct Guest {
    qemu: PathBuf,
    kernel: PathBuf,
    initrd: PathBuf,
}

/// What one start is for.
#[derive(Debug)]
pub(crate) struct Start<'a> {
    pub(crate) system: System,
    pub(crate) scenario: &'a Scenario,
    pub(crate) chunk: Bytes,
    pub(crate) seed: u64,
    pub(crate) length: Nanos,
    /// A socket for each disk.
    pub(crate) disks: &'a [PathBuf],
    /// Where logs go.
    pub(crate) folder: &'a Path,
}

impl Guest {
    /// Writes its first file system to `initrd`.
    pub(crate) fn make(
        tools: &Tools,
        kernel: &Kernel,
        client: &Path,
        initrd: PathBuf,
        stop: &Stop,
    ) -> Result<Self, String> {
        let archive = contents(tools, kernel, client, stop)?;
        fs::write(&initrd, archive).map_err(|error| format!("{}: {error}", initrd.display()))?;
        Ok(Self { qemu: tools.qemu.clone(), kernel: kernel.image.clone(), initrd })
    }

    /// Runs one load. `check` is called from the start until the figures are here.
    pub(crate) fn run(
        &self,
        start: &Start<'_>,
        stop: &Stop,
        check: &mut dyn FnMut() -> Result<(), String>,
    ) -> Result<Sample, String> {
        let mut machine = self.boot(&arguments(start), start.disks, start.folder)?;
        machine.wait("starting the guest", BOOT_MAX, "ready", stop, check)?;
        let limit = Duration::from(start.length) + REPORT_MAX;
        machine.wait("the load", limit, "end", stop, check)?;
        let lines = machine.said();
        let from = lines.iter().position(|line| line.starts_with("begin "));
        Sample::parse(lines[from.unwrap_or(0)..].iter().map(String::as_str))
    }

    /// Starts it with these words for its kernel, and a disk for each socket. Logs go into `folder`.
    pub(crate) fn boot(
        &self,
        words: &str,
        disks: &[PathBuf],
        folder: &Path,
    ) -> Result<Machine, String> {
        let (console, log) = (folder.join("console"), folder.join("qemu"));
        let mut command = self.command(words, disks, &console);
        let mut qemu = Running::start(&mut command, &log, Stdio::piped())?;
        let stdout = qemu.child.stdout.take().expect("it was piped");
        let lines = lines_of(BufReader::new(stdout));
        Ok(Machine { qemu, talk: Talk { lines, said: Vec::new(), is_over: false }, console })
    }

    fn command(&self, words: &str, disks: &[PathBuf], console: &Path) -> Command {
        let mut command = Command::new(&self.qemu);
        command.args(["-machine", "q35", "-accel", "tcg", "-cpu", "max", "-smp", "1", "-m", "512"]);
        command.args(["-nodefaults", "-display", "none", "-no-reboot"]);
        command.arg("-serial").arg(format!("file:{}", console.display()));
        command.args(["-serial", "stdio"]);
        command.arg("-kernel").arg(&self.kernel).arg("-initrd").arg(&self.initrd);
        command.arg("-append").arg(format!("console=ttyS0 quiet panic=-1 {words}"));
        for (idx, socket) in disks.iter().enumerate() {
            let path = socket.display();
            command.arg("-blockdev").arg(format!(
                "driver=nbd,node-name=n{idx},server.type=unix,server.path={path},cache.direct=on"
            ));
            command.arg("-device").arg(format!("virtio-blk-pci,drive=n{idx}"));
        }
        command
    }
}

/// A guest that runs until this is dropped.
pub(crate) struct Machine {
    qemu: Running,
    talk: Talk,
    console: PathBuf,
}

impl Machine {
    /// Waits until it says a line that begins with the word `last`. `check` is called meanwhile.
    pub(crate) fn wait(
        &mut self,
        what: &str,
        limit: Duration,
        last: &str,
        stop: &Stop,
        check: &mut dyn FnMut() -> Result<(), String>,
    ) -> Result<(), String> {
        let Self { qemu, talk, console } = self;
        let waited = stop.wait(what, limit, || {
            check()?;
            talk.listen();
            if let Some(trouble) = talk.find("trouble") {
                return Err(format!("in the guest: {trouble}"));
            }
            if talk.find(last).is_some() {
                return Ok(true);
            }
            if talk.is_over {
                qemu.check()?;
                return Err("the guest said nothing more".to_owned());
            }
            Ok(false)
        });
        waited.map_err(|error| format!("{error}{}", tail(console)))
    }

    /// Its lines so far.
    pub(crate) fn said(&self) -> &[String] {
        &self.talk.said
    }
}

/// What the guest's kernel is told.
fn arguments(start: &Start<'_>) -> String {
    let Start { system, scenario, chunk, seed, length, disks, .. } = start;
    let system = match system {
        System::Md => "md",
        System::Ours => "ours",
    };
    let load = [
        scenario.read_size().get(),
        scenario.period().get() / 1000,
        length.get() / 1000,
        SPAN.get(),
        *seed,
    ];
    let load: Vec<String> = load.iter().map(u64::to_string).collect();
    format!(
        "md_system={system} md_chunk_kib={} md_disks={} md_load={}",
        chunk.get() >> 10,
        letters(disks.len()),
        load.join(",")
    )
}

/// The last letters of the guest's names of so many disks.
pub(crate) fn letters(disks: usize) -> String {
    let letters: Vec<String> = ('a'..='z').take(disks).map(String::from).collect();
    letters.join(",")
}

/// The first file system.
fn contents(tools: &Tools, kernel: &Kernel, client: &Path, stop: &Stop) -> Result<Vec<u8>, String> {
    let mut archive = Archive::default();
    let mut folders = vec![String::new()];
    let mut put = |name: &str, bytes: &[u8]| {
        let parents = name.match_indices('/').map(|(at, _)| &name[..at]);
        for folder in parents {
            if !folders.iter().any(|known| known == folder) {
                archive.folder(folder);
                folders.push(folder.to_owned());
            }
        }
        archive.file(name, bytes);
    };
    let read = |path: &Path| fs::read(path).map_err(|error| format!("{}: {error}", path.display()));
    put("init", SCRIPT.as_bytes());
    let programs = [
        ("busybox", tools.busybox.as_path()),
        ("mdadm", &tools.mdadm),
        ("integritysetup", &tools.integritysetup),
        ("client", client),
    ];
    let mut loaded = Vec::new();
    for (name, path) in programs {
        put(&format!("bin/{name}"), &read(path)?);
        loaded.extend(libraries(path, stop)?);
    }
    loaded.sort();
    loaded.dedup();
    for path in loaded {
        let name = path.to_str().ok_or_else(|| format!("{} is no text", path.display()))?;
        put(name.trim_start_matches('/'), &read(&path)?);
    }
    let mut order = String::new();
    for module in &kernel.modules {
        put(&format!("modules/{}", module.name), &module.bytes);
        order.push_str(&module.name);
        order.push('\n');
    }
    put("modules/order", order.as_bytes());
    for folder in ["proc", "sys", "dev"] {
        put(&format!("{folder}/.keep"), &[]);
    }
    Ok(archive.finish())
}

/// What the guest has said so far.
struct Talk {
    lines: Receiver<String>,
    said: Vec<String>,
    is_over: bool,
}

impl Talk {
    fn listen(&mut self) {
        loop {
            match self.lines.try_recv() {
                Ok(line) => self.said.push(line),
                Err(TryRecvError::Empty) => return,
                Err(TryRecvError::Disconnected) => {
                    self.is_over = true;
                    return;
                }
            }
        }
    }

    /// The first line that begins with this word.
    fn find(&self, word: &str) -> Option<&str> {
        self.said.iter().map(String::as_str).find(|line| line.split(' ').next() == Some(word))
    }
}

/// The lines of `from`, read by a thread that ends with it.
fn lines_of(from: impl BufRead + Send + 'static) -> Receiver<String> {
    let (sender, lines) = mpsc::channel();
    thread::spawn(move || {
        for line in from.split(b'\n').map_while(Result::ok) {
            let line = String::from_utf8_lossy(&line).trim().to_owned();
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guest_is_told_what_to_do_on_its_kernels_command_line() {
        let scenario: Scenario = "slow-drive-busy".parse().expect("it is there");
        let disks = ["a.sock", "b.sock"].map(PathBuf::from);
        let start = Start {
            system: System::Ours,
            scenario: &scenario,
            chunk: Bytes::new(8 << 10),
            seed: 7,
            length: Nanos::from_millis(30_000),
            disks: &disks,
            folder: Path::new("."),
        };
        let expected = "md_system=ours md_chunk_kib=8 md_disks=a,b \
                        md_load=40960,40000,30000000,9981503995904,7";
        assert_eq!(arguments(&start), expected);
    }

    #[test]
    fn a_line_is_found_by_its_first_word() {
        let lines = lines_of(&b"\r\nready\r\nbegin 0\r\nend\r\n"[..]);
        let mut talk = Talk { lines, said: Vec::new(), is_over: false };
        while !talk.is_over {
            talk.listen();
        }
        assert_eq!(talk.said, ["", "ready", "begin 0", "end"]);
        assert_eq!(talk.find("begin"), Some("begin 0"));
        assert_eq!(talk.find("read"), None);
    }
}
