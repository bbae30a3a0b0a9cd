//! The test bed: six drives, an array, a server and a client.

use std::sync::Arc;
use std::sync::mpsc;

use levelhead_array::{HostOrder, Patience, Policy, Spec};
use levelhead_block::{BlockService, Buf, Durability, Request};
use levelhead_drive::{Profile, QUEUE_DEPTH_MAX};
use levelhead_erasure::Kernel;
use levelhead_host::{
    ArrayHandle, AssembleOptions, Assembled, Bound, CreateOptions, FastFail, Io, MemberSpec, Model,
    ServeOptions, assemble, create,
};
use levelhead_nbd::{Access, Client, Endpoint, Export, Server};
use levelhead_units::{Bytes, Sectors};
use tempfile::TempDir;

use super::load::{self, Measured, Workload};
use super::predict::VirtualBed;
use super::{Demo, Scenario, interrupted};
use levelhead_app::{AppError, Progress, Stop, Task, files};

const ARRAY: &str = "eraid:5+1,e=2,chunk=8KiB";
const PROFILE: &str = "nearline-2tb";
const WINDOW: u32 = QUEUE_DEPTH_MAX;
const ORDER: HostOrder = HostOrder::Elevator;

/// Where a folder cannot hold sparse files of a whole drive's size, drives are this small; their seeks
/// are shorter then, and everything is faster than it would be.
const SMALL: Bytes = Bytes::new(64 << 30);

/// Writes in flight while the array is filled.
const FILL_WINDOW: usize = 32;

/// The drive that is slow in the scenario of that name.
const SLOW: usize = 2;

/// What the drives suffer from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    None,
    /// 2 % of sectors fail at first, on every drive.
    Retries,
    /// One drive takes ten times as long for everything.
    SlowDrive,
}

pub(super) struct Bed {
    /// Last to be dropped: the files go with it.
    folder: TempDir,
    seed: u64,
    size: Sectors,
    drive_size: Bytes,
}

impl Bed {
    pub(super) fn make(ask: &Demo) -> Result<Self, AppError> {
        let mut builder = tempfile::Builder::new();
        let builder = builder.prefix("levelhead-demo-");
        let folder = match &ask.folder {
            Some(folder) => {
                files::check_folder(folder)?;
                builder.tempdir_in(folder)
            }
            None => builder.tempdir(),
        };
        let folder = folder.map_err(|error| {
            AppError::usage(format!("cannot create a temporary folder: {error}"))
        })?;
        let whole = Profile::shipped(PROFILE).expect("it is shipped").size().bytes();
        let mut bed = Self { folder, seed: ask.seed, size: Sectors::ZERO, drive_size: whole };
        bed.size = bed.create().or_else(|_| {
            bed.drive_size = SMALL;
            bed.create()
        })?;
        Ok(bed)
    }

    fn create(&self) -> Result<Sectors, AppError> {
        let size = self.drive_size;
        let members = self.members(|path| format!("emu:{path}?profile={PROFILE}&size={size}"))?;
        let options = CreateOptions::default();
        let created = create(spec(), &members[..].into(), options).map_err(AppError::trouble)?;
        Ok(created.size)
    }

    pub(super) fn size(&self) -> Sectors {
        self.size
    }

    pub(super) fn describe(&self) -> String {
        let (drives, size) = (spec().drives(), self.drive_size.short());
        format!("{ARRAY} over {drives} emulated {PROFILE} drives of {size}, over NBD, in real time")
    }

    fn members(&self, text: impl Fn(String) -> String) -> Result<Vec<MemberSpec>, AppError> {
        (0..spec().drives())
            .map(|drive| {
                let path = self.folder.path().join(format!("drive-{drive}.img"));
                text(path.display().to_string()).parse().map_err(AppError::trouble)
            })
            .collect()
    }

    /// Writes everything that will be read, with the files as plain drives: as fast as they go.
    pub(super) fn fill(
        &self,
        workload: &Workload,
        stop: &Stop,
        progress: &dyn Progress,
    ) -> Result<(), AppError> {
        let members = self.members(|path| path)?;
        let array = self.serve(&members, Policy::Normal)?;
        let task = progress.begin("filling", workload.extents().len() as u64);
        let (sender, ends) = mpsc::sync_channel(FILL_WINDOW);
        let mut ended = 0;
        for (sent, &extent) in workload.extents().iter().enumerate() {
            if stop.is_wished() {
                std::mem::forget(array);
                return Err(interrupted());
            }
            let mut buf = Buf::zeroed(extent.sectors);
            workload.content(extent, buf.as_mut_slice());
            let request = Request::write(extent, Durability::Cached, buf);
            let sender = sender.clone();
            array.submit(request, Box::new(move |reply| drop(sender.send(reply.outcome))));
            while sent + 1 - ended >= FILL_WINDOW {
                ended += wait_good(&ends)?;
                task.reach(ended as u64);
            }
        }
        while ended < workload.extents().len() {
            ended += wait_good(&ends)?;
        }
        array.stop().map_err(AppError::trouble)
    }

    /// One run.
    pub(super) fn run(
        &self,
        workload: &Workload,
        scenario: &Scenario,
        stop: &Stop,
        task: &dyn Task,
    ) -> Result<Measured, AppError> {
        let array = self.serve(&self.emulated(scenario.trouble)?, scenario.policy)?;
        let endpoint = Endpoint::Unix(self.folder.path().join("array.sock"));
        let export = Export {
            name: String::new(),
            description: "levelhead demo".to_owned(),
            service: Arc::new(array.clone()),
            access: Access::ReadWrite,
        };
        let server = Server::bind(&endpoint, vec![export]).map_err(AppError::trouble)?;
        let server = server.start().map_err(AppError::trouble)?;
        let client = Client::connect(&endpoint, "").map_err(AppError::trouble)?;
        let measured = match load::run(&client, workload, scenario.shape, stop, task) {
            Ok(measured) => measured,
            Err(error) => {
                // Their ends would wait for slow drives: the files go with the folder, and these with the program.
                std::mem::forget((client, server, array));
                return Err(error);
            }
        };
        drop(client);
        server.stop();
        array.stop().map_err(AppError::trouble)?;
        Ok(measured)
    }

    /// The same array over the same drives, to be run in virtual time.
    pub(super) fn modelled(&self, scenario: &Scenario) -> Result<VirtualBed, AppError> {
        let assembled = open(&self.emulated(scenario.trouble)?)?;
        let models = assembled.models(WINDOW).map_err(AppError::trouble)?;
        let is_emulated = "every drive here is emulated";
        let models: Vec<Model> =
            models.into_iter().map(|model| model.expect(is_emulated)).collect();
        Ok(VirtualBed {
            spec: assembled.spec(),
            policy: scenario.policy,
            window: WINDOW,
            order: ORDER,
            models,
            area: assembled.area().clone(),
            seed: self.seed,
        })
    }

    /// The files as emulated drives in this trouble.
    pub(super) fn emulated(&self, trouble: Trouble) -> Result<Vec<MemberSpec>, AppError> {
        let seed = self.seed;
        let all = match trouble {
            Trouble::Retries => "&retry-rate=2%&rotations=3&adjacency=2",
            Trouble::None | Trouble::SlowDrive => "",
        };
        let slow = match trouble {
            Trouble::SlowDrive => format!("drive-{SLOW}.img"),
            Trouble::None | Trouble::Retries => String::new(),
        };
        self.members(|path| {
            let own = if !slow.is_empty() && path.ends_with(&slow) { "&slowdown=10" } else { "" };
            format!("emu:{path}?profile={PROFILE}&seed={seed}{all}{own}")
        })
    }

    pub(super) fn serve(
        &self,
        members: &[MemberSpec],
        policy: Policy,
    ) -> Result<ArrayHandle, AppError> {
        let options = ServeOptions {
            policy,
            window: WINDOW,
            order: ORDER,
            bound: Bound { requests: 1024, sectors: Sectors::new(1 << 16) },
            io: Io::Best,
            arithmetic: levelhead_erasure::Measured::none(Kernel::best(), &[]),
            seed: self.seed,
            patience: Patience::DEFAULT,
            on_event: None,
            verify: None,
            fast_fail: FastFail::Command,
        };
        open(members)?.serve(options).map_err(AppError::trouble)
    }
}

fn open(members: &[MemberSpec]) -> Result<Assembled, AppError> {
    assemble(members, AssembleOptions::default()).map_err(AppError::trouble)
}

fn spec() -> Spec {
    ARRAY.parse().expect("the array above is valid")
}

fn wait_good(ends: &mpsc::Receiver<levelhead_block::Outcome>) -> Result<usize, AppError> {
    match ends.recv() {
        Ok(outcome) if outcome.is_good() => Ok(1),
        Ok(outcome) => Err(AppError::trouble(format!("a write ended as {outcome:?}"))),
        Err(_) => Err(AppError::trouble("the array has ended")),
    }
}
