//! The two servers, and the client that asks them.

use std::env;
use std::ffi::OsString;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde::Deserialize;
use tempfile::TempDir;

use crate::Measured;
use crate::jobs::Job;
use crate::process::{Running, Stop, output};

/// Programs, and the Debian packages that they are in.
const PROGRAMS: [(&str, &str); 2] = [("nbdkit", "nbdkit"), ("fio", "fio")];

/// What a program may take that has next to nothing to do.
const MOMENT: Duration = Duration::from_secs(30);

/// What a build may take on a slow machine.
const BUILD_MAX: Duration = Duration::from_secs(3600);

/// What each server has.
const SIZE_MIB: u32 = 500;

/// What each of the six members has: a fifth of it, and room for what the array records.
const MEMBER_MIB: u32 = SIZE_MIB / 5 + 4;

const MEMBERS: u32 = 6;

/// Where they are.
#[derive(Debug)]
pub(crate) struct Tools {
    nbdkit: PathBuf,
    fio: PathBuf,
}

impl Tools {
    /// Finds them, or says in a sentence what to install.
    pub(crate) fn find() -> Result<Self, String> {
        let path = env::var_os("PATH").unwrap_or_default();
        Self::find_in(&env::split_paths(&path).chain(["/usr/sbin".into()]).collect::<Vec<_>>())
    }

    fn find_in(folders: &[PathBuf]) -> Result<Self, String> {
        let find = |name: &str, package: &str| {
            let found = folders.iter().map(|dir| dir.join(name)).find(|path| path.is_file());
            found.ok_or_else(|| {
                format!("{name} is not installed: on Debian, apt-get install {package}")
            })
        };
        let [nbdkit, fio] = PROGRAMS.map(|(name, package)| find(name, package));
        Ok(Self { nbdkit: nbdkit?, fio: fio? })
    }

    /// What nbdkit says of itself.
    pub(crate) fn version(&self, stop: &Stop) -> Result<String, String> {
        let text = output(Command::new(&self.nbdkit).arg("--version"), MOMENT, stop)?;
        Ok(text.lines().next().unwrap_or("unknown").trim().to_owned())
    }
}

/// Who is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum System {
    Nbdkit,
    Ours,
}

impl System {
    pub(crate) const BOTH: [Self; 2] = [Self::Nbdkit, Self::Ours];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Nbdkit => "nbdkit",
            Self::Ours => "levelhead",
        }
    }
}

/// Both, running, over files that are removed with this.
#[derive(Debug)]
pub(crate) struct Servers {
    running: [Running; 2],
    /// After the servers, so that it goes after them.
    folder: TempDir,
}

impl Servers {
    pub(crate) fn start(
        tools: &Tools,
        levelhead: &Path,
        parent: &Path,
        stop: &Stop,
    ) -> Result<Self, String> {
        let folder = tempfile::Builder::new().prefix("levelhead-nbd-").tempdir_in(parent);
        let folder = folder.map_err(|error| format!("{}: {error}", parent.display()))?;
        let place = |name: &str| folder.path().join(name);
        let file = |name: &str, mib: u32| {
            let made = std::fs::File::create(place(name));
            made.and_then(|file| file.set_len(u64::from(mib) << 20))
                .map_err(|error| format!("{}: {error}", place(name).display()))
        };
        file("one.img", SIZE_MIB)?;
        let mut nbdkit = Command::new(&tools.nbdkit);
        nbdkit.args(["--foreground", "--unix"]).arg(socket(&folder, System::Nbdkit));
        nbdkit.arg("file").arg(place("one.img"));
        let nbdkit = Running::start(&mut nbdkit, &place("nbdkit.log"), Stdio::null())?;

        let names: Vec<String> = (0..MEMBERS).map(|drive| format!("{drive}.img")).collect();
        for name in &names {
            file(name, MEMBER_MIB)?;
        }
        let members: Vec<PathBuf> = names.iter().map(|name| place(name)).collect();
        let mut create = Command::new(levelhead);
        create.args(["array", "create", "--quiet", "--assume-clean", "raid5:5+1,chunk=64KiB"]);
        output(create.args(&members), MOMENT, stop)?;
        let mut serve = Command::new(levelhead);
        serve.args(["array", "serve", "--quiet", "--nbd"]).arg(socket(&folder, System::Ours));
        let ours = Running::start(serve.args(&members), &place("ours.log"), Stdio::null())?;

        let mut servers = Self { running: [nbdkit, ours], folder };
        for system in System::BOTH {
            stop.wait("starting a server", MOMENT, || {
                servers.running.iter_mut().try_for_each(Running::check)?;
                Ok(UnixStream::connect(socket(&servers.folder, system)).is_ok())
            })?;
            servers.fill(tools, system, stop)?;
        }
        Ok(servers)
    }

    /// Writes all of it once, so that no run meets memory that is not there yet.
    fn fill(&mut self, tools: &Tools, system: System, stop: &Stop) -> Result<(), String> {
        let mut fio = self.client(tools, system);
        fio.args(["--rw=write", "--bs=1M", "--iodepth=4"]);
        output(&mut fio, MOMENT * 4, stop).map(drop)
    }

    /// Runs a job at one of them.
    pub(crate) fn run(
        &mut self,
        tools: &Tools,
        system: System,
        job: Job,
        seconds: u32,
        stop: &Stop,
    ) -> Result<Measured, String> {
        let Job { pattern, block_kib, depth, .. } = job;
        let mut fio = self.client(tools, system);
        fio.args([format!("--rw={pattern}"), format!("--bs={block_kib}k")]);
        fio.args([format!("--iodepth={depth}"), format!("--runtime={seconds}")]);
        fio.args(["--time_based", "--randrepeat=1", "--norandommap"]);
        let limit = MOMENT + Duration::from_secs(seconds.into());
        let text = output(&mut fio, limit, stop)?;
        self.running.iter_mut().try_for_each(Running::check)?;
        measured(&text)
    }

    fn client(&self, tools: &Tools, system: System) -> Command {
        let mut fio = Command::new(&tools.fio);
        let socket = socket(&self.folder, system);
        fio.args(["--name=job", "--ioengine=nbd", "--output-format=json"]);
        fio.arg(format!("--size={SIZE_MIB}M"));
        fio.arg(format!("--uri=nbd+unix:///?socket={}", socket.display()));
        fio
    }
}

fn socket(folder: &TempDir, system: System) -> PathBuf {
    folder.path().join(format!("{}.sock", system.name()))
}

/// What fio says, as far as it matters.
#[derive(Deserialize)]
struct Output {
    jobs: Vec<Ran>,
}

#[derive(Deserialize)]
struct Ran {
    error: i32,
    read: Side,
    write: Side,
}

#[derive(Deserialize)]
struct Side {
    total_ios: u64,
    bw_bytes: f64,
    lat_ns: Latency,
}

#[derive(Deserialize)]
struct Latency {
    mean: f64,
}

fn measured(text: &str) -> Result<Measured, String> {
    // fio may say something before the value.
    let start = text.find('{').unwrap_or_default();
    let output: Output =
        serde_json::from_str(&text[start..]).map_err(|error| format!("fio's output: {error}"))?;
    let [Ran { error: 0, read, write }] = output.jobs.as_slice() else {
        return Err("fio's job failed".to_owned());
    };
    let side = if read.total_ios > 0 { read } else { write };
    Ok(Measured { rate: side.bw_bytes, latency: side.lat_ns.mean / 1e3 })
}

/// What cargo says of each thing it has built, as far as it matters.
#[derive(Deserialize)]
struct Message {
    executable: Option<PathBuf>,
}

/// Builds the `levelhead` of this tree.
pub(crate) fn build_levelhead(stop: &Stop) -> Result<PathBuf, String> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    let mut cargo = Command::new(cargo);
    cargo.args(["build", "--release", "--message-format", "json-render-diagnostics"]);
    cargo.args(["--manifest-path", concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.toml")]);
    cargo.args(["--package", "levelhead-cli", "--bin", "levelhead"]);
    let text = output(&mut cargo, BUILD_MAX, stop)?;
    let executable = |line: &str| serde_json::from_str::<Message>(line).ok()?.executable;
    text.lines().filter_map(executable).next_back().ok_or_else(|| "cargo built nothing".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_told_with_its_package() {
        let folder = tempfile::tempdir().expect("there is a place for files");
        let folders = [folder.path().to_owned()];
        let missing = Tools::find_in(&folders).expect_err("nothing is there");
        assert_eq!(missing, "nbdkit is not installed: on Debian, apt-get install nbdkit");
        for (name, _) in PROGRAMS {
            std::fs::write(folder.path().join(name), "").expect("it can be written");
        }
        assert_eq!(Tools::find_in(&folders).expect("all are there").fio, folders[0].join("fio"));
    }

    #[test]
    fn figures_are_of_the_side_that_did_something() {
        let side = |ios, rate, mean| {
            format!("{{\"total_ios\":{ios},\"bw_bytes\":{rate},\"lat_ns\":{{\"mean\":{mean}}}}}")
        };
        let text = |error| {
            let (read, write) = (side(0, 0, 0), side(7, 4096, 2500));
            format!(
                "a word\n{{\"jobs\":[{{\"error\":{error},\"read\":{read},\"write\":{write}}}]}}"
            )
        };
        assert_eq!(measured(&text(0)), Ok(Measured { rate: 4096.0, latency: 2.5 }));
        assert_eq!(measured(&text(5)), Err("fio's job failed".to_owned()));
    }
}
