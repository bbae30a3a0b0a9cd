//! The host's side of one run: emulated drives, and our array over them.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use levelhead_units::{Bytes, Nanos};
use tempfile::TempDir;

use crate::guest::{Guest, Start};
use crate::lateness::{self, Lateness};
use crate::process::{Running, Stop, output};
use crate::sample::Figures;
use crate::scenario::{DRIVE_SIZE, DRIVES, Scenario, System};

/// From the start of a server until it answers.
const SERVER_MAX: Duration = Duration::from_secs(30);

/// Commands inside a drive at a time. QEMU's NBD client keeps 16 in flight on a connection and has one
/// for each disk, so the drives under MD have no more; ours get as many.
pub(crate) const WINDOW: u32 = 16;

/// Times that our one export is attached to the guest, for the same reason: the client there uses them
/// in turn, as one disk with 64 requests in flight.
const CONNECTIONS: usize = 4;

/// The control socket of our array, in the folder of a run.
pub(crate) const CONTROL: &str = "array.control";

/// All that runs have in common.
#[derive(Debug)]
pub(crate) struct Rig {
    pub(crate) levelhead: PathBuf,
    pub(crate) guest: Guest,
    /// Where the folder of a run goes.
    pub(crate) parent: PathBuf,
    pub(crate) seed: u64,
    pub(crate) length: Nanos,
}

/// What one run came to.
#[derive(Debug)]
pub(crate) struct Measured {
    pub(crate) figures: Figures,
    /// How the host did meanwhile.
    pub(crate) lateness: Lateness,
}

impl Rig {
    /// Runs `scenario` on one system, over new drives, in a folder that is removed.
    pub(crate) fn run(
        &self,
        system: System,
        scenario: &Scenario,
        chunk: Bytes,
        stop: &Stop,
    ) -> Result<Measured, String> {
        let folder = self.folder()?;
        let (mut servers, disks) = match system {
            System::Md => self.drives(&folder, &self.members(&folder, scenario), stop)?,
            System::Ours => {
                let members = self.members(&folder, scenario);
                self.array(&folder, &members, chunk, "--assume-clean", stop)?
            }
        };
        let start = Start {
            system,
            scenario,
            chunk,
            seed: self.seed,
            length: self.length,
            disks: &disks,
            folder: folder.path(),
        };
        let watch = lateness::Watch::start();
        let sample = self.guest.run(&start, stop, &mut || {
            servers.iter_mut().try_for_each(|server| server.running.check())
        })?;
        let lateness = watch.end();
        Ok(Measured { figures: sample.figures(self.length)?, lateness })
    }

    /// A new folder for one run.
    pub(crate) fn folder(&self) -> Result<TempDir, String> {
        let folder = tempfile::Builder::new().prefix("levelhead-md-").tempdir_in(&self.parent);
        folder.map_err(|error| format!("{}: {error}", self.parent.display()))
    }

    /// Six drives, each served on its own.
    pub(crate) fn drives(
        &self,
        folder: &TempDir,
        members: &[String],
        stop: &Stop,
    ) -> Result<Servers, String> {
        let mut servers = Vec::new();
        for (drive, member) in members.iter().enumerate() {
            let socket = folder.path().join(format!("drive-{drive}.sock"));
            let mut command = Command::new(&self.levelhead);
            command.args(["drive", "emulate", "--quiet", member, "--nbd"]).arg(&socket);
            servers.push(Server::start(&mut command, socket)?);
        }
        let disks = servers.iter().map(|server| server.socket.clone()).collect();
        servers.iter_mut().try_for_each(|server| server.wait(stop))?;
        Ok((servers, disks))
    }

    /// Our array over six drives, created with this option and served as one.
    pub(crate) fn array(
        &self,
        folder: &TempDir,
        members: &[String],
        chunk: Bytes,
        option: &str,
        stop: &Stop,
    ) -> Result<Servers, String> {
        let spec = format!("raid5:5+1,chunk={}KiB", chunk.get() >> 10);
        let mut create = Command::new(&self.levelhead);
        create.args(["array", "create", "--quiet", option, &spec]).args(members);
        output(&mut create, SERVER_MAX, stop)?;
        self.serve(folder, members, stop)
    }

    /// The array that is on these drives, served as one.
    pub(crate) fn serve(
        &self,
        folder: &TempDir,
        members: &[String],
        stop: &Stop,
    ) -> Result<Servers, String> {
        let socket = folder.path().join("array.sock");
        let mut serve = Command::new(&self.levelhead);
        serve.args(["array", "serve", "--quiet", "--policy", "level"]);
        serve.args(["--window", &WINDOW.to_string(), "--seed", &self.seed.to_string()]);
        serve.arg("--control").arg(folder.path().join(CONTROL));
        serve.arg("--nbd").arg(&socket).args(members);
        let mut server = Server::start(&mut serve, socket.clone())?;
        server.wait(stop)?;
        Ok((vec![server], vec![socket; CONNECTIONS]))
    }

    fn members(&self, folder: &TempDir, scenario: &Scenario) -> Vec<String> {
        let path = |drive| folder.path().join(format!("drive-{drive}.img"));
        let member = |drive: usize| {
            scenario.trouble.member(drive, &path(drive).display().to_string(), self.seed)
        };
        (0..DRIVES).map(member).collect()
    }
}

/// Servers that answer, and a socket for each disk of the guest.
pub(crate) type Servers = (Vec<Server>, Vec<PathBuf>);

#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) running: Running,
    socket: PathBuf,
}

impl Server {
    fn start(command: &mut Command, socket: PathBuf) -> Result<Self, String> {
        let log = socket.with_extension("log");
        Ok(Self { running: Running::start(command, &log, Stdio::null())?, socket })
    }

    fn wait(&mut self, stop: &Stop) -> Result<(), String> {
        stop.wait("starting a server", SERVER_MAX, || {
            self.running.check()?;
            Ok(UnixStream::connect(&self.socket).is_ok())
        })
    }
}

/// Whether `folder` can hold the drives' files, which are sparse.
pub(crate) fn check_folder(folder: &Path) -> Result<(), String> {
    let told = |error: io::Error| {
        let size = DRIVE_SIZE.short();
        format!("{}: cannot hold sparse files of {size}: {error}; see --folder", folder.display())
    };
    let file = tempfile::tempfile_in(folder).map_err(told)?;
    file.set_len(DRIVE_SIZE.get()).map_err(told)
}
