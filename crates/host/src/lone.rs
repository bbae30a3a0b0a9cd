//! One drive without an array, for other programs to build on.
//!
//! Commands beyond what a drive holds wait, first come, first served. Zeroes are moved like any other
//! bytes, and trimmed sectors keep what they held.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use levelhead_block::{BlockService, Done, Request};
use levelhead_drive::{QUEUE_DEPTH_MAX, VerifyCounters};
use levelhead_units::Sectors;

use crate::backend::Member;
use crate::clock::Clock;
use crate::emulated::EmulatedDrive;
use crate::error::HostError;
use crate::medium::{Medium, Shared};
use crate::member::MemberSpec;
use crate::service::PIECE_MAX;
use crate::split;
use crate::threads::Threads;

/// See the module. Dropping it waits for what is under way, [`LoneDrive::abandon`] does not.
pub struct LoneDrive {
    drive: Box<dyn Member>,
    is_read_only: bool,
    /// Every request has an origin of its own, whatever its client says: another attempt is another
    /// chance.
    origin_last: AtomicU64,
}

impl LoneDrive {
    /// Opens a member exclusively; creates the file of an emulated one that says its size and is not
    /// there.
    pub fn open(member: &MemberSpec) -> Result<Self, HostError> {
        if let Some(size) = member.size_wanted()
            && !member.path().exists()
        {
            member.check_size(size)?;
            Medium::create(member.path(), size)?;
        }
        Self::start(member, member.open_medium()?)
    }

    /// The same of one that is there, but the kernel can still claim a block device for a mount.
    pub fn open_to_mount(member: &MemberSpec) -> Result<Self, HostError> {
        Self::start(member, member.open_medium_to_mount()?)
    }

    fn start(member: &MemberSpec, medium: Medium) -> Result<Self, HostError> {
        let is_read_only = medium.is_read_only();
        let medium = Arc::new(medium);
        let model = member.model(medium.size(), QUEUE_DEPTH_MAX, "drive/0")?;
        let disk = Shared(medium);
        let drive: Box<dyn Member> = match model {
            Some(model) => Box::new(EmulatedDrive::start(&model, disk, Clock::start())?),
            None => Box::new(Threads::start(disk, QUEUE_DEPTH_MAX)?),
        };
        Ok(Self { drive, is_read_only, origin_last: AtomicU64::new(0) })
    }

    /// Whether the kernel takes no writes for it.
    pub fn is_read_only(&self) -> bool {
        self.is_read_only
    }

    /// What it has read back so far, if it is an emulated drive.
    pub fn verified(&self) -> Option<VerifyCounters> {
        self.drive.emulated()?.verified()
    }

    /// Tells it to stop: everything inside ends, and what an emulated drive has in its memory goes to its medium. To be
    /// called when no client is left.
    pub fn wind_up(&self) {
        if let Some(emulated) = self.drive.emulated() {
            emulated.wind_up();
        }
    }

    /// Lets go of it at once: what is under way ends when it ends, and is told then.
    pub fn abandon(self) {
        let thread = std::thread::Builder::new().name("abandoned drive".into());
        // Without a thread left, the closure is dropped here, and with it the drive.
        drop(thread.spawn(move || drop(self)));
    }
}

impl BlockService for LoneDrive {
    fn size(&self) -> Sectors {
        self.drive.size()
    }

    fn submit(&self, request: Request, done: Done) {
        let command = request.command;
        assert!(command.fits(self.size()), "{command:?} is past the drive's end");
        split::run(request, done, PIECE_MAX, &mut |request, done| {
            let origin = self.origin_last.fetch_add(1, Ordering::Relaxed) + 1;
            self.drive.submit(request.with_origin(origin), done);
        });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use levelhead_block::conformance::{SuiteSettings, check_service};
    use levelhead_block::{Effort, Reply};
    use levelhead_units::{Extent, Lba};

    use super::*;

    #[test]
    fn an_abandoned_drive_is_not_waited_for() {
        let folder = tempfile::TempDir::new().unwrap();
        let file = folder.path().join("slow.img");
        let member = format!("emu:{}?size=256KiB&slowdown=1000", file.display());
        let drive = LoneDrive::open(&member.parse().unwrap()).unwrap();
        let (sender, ends) = mpsc::channel();
        for lba in (0..4).map(Lba::new) {
            let extent = Extent::new(lba, Sectors::new(1));
            let sender = sender.clone();
            let done = move |reply: Reply| drop(sender.send(reply.outcome));
            drive.submit(Request::read(extent, Effort::Full), Box::new(done));
        }
        drive.abandon();
        assert!(ends.try_recv().is_err(), "seconds of reads were waited for");
    }

    #[test]
    fn a_lone_drive_conforms_emulated_or_real() {
        let folder = tempfile::TempDir::new().unwrap();
        let file = folder.path().join("real.img");
        std::fs::File::create(&file).unwrap().set_len(64 * 4096).unwrap();
        let emulated = format!("emu:{}?size=256KiB", folder.path().join("emulated.img").display());
        let with_memory = format!("{emulated}&cache=write-back");
        let verifying = format!("{with_memory}&verify=idle");
        for (member, requests) in
            [(file.display().to_string(), 400), (emulated, 40), (with_memory, 40), (verifying, 40)]
        {
            let drive = LoneDrive::open(&member.parse().unwrap()).unwrap();
            let settings = SuiteSettings { seed: 5, requests, sectors_max: 9, batch_max: 6 };
            check_service(Arc::new(drive), settings);
        }
    }
}
