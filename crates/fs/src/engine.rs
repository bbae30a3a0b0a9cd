//! The machine itself.

use levelhead_block::Reply;
use levelhead_units::Instant;

use crate::action::{Action, SubId};
use crate::format::superblock::Superblock;
use crate::request::Request;
use crate::settings::Settings;
use crate::status::Status;

/// See the crate.
#[derive(Debug)]
pub struct Filesystem {
    superblock: Superblock,
    settings: Settings,
}

impl Filesystem {
    /// One that is mounted from now on: what a crash has left is put in order before the first request is answered.
    /// `superblock` is the one with the highest generation that was found.
    pub fn new(now: Instant, superblock: Superblock, settings: Settings) -> Self {
        let _ = now;
        Self { superblock, settings }
    }

    /// The root directory's inode.
    pub fn root(&self) -> u64 {
        self.superblock.root
    }

    /// Something is asked for.
    pub fn handle_request(&mut self, now: Instant, request: Request) {
        let _ = (now, request);
    }

    /// The disk has ended a command.
    pub fn handle_done(&mut self, now: Instant, sub: SubId, reply: Reply) {
        let _ = (now, sub, reply);
    }

    /// Time has passed; early calls do no harm.
    pub fn handle_timeout(&mut self, now: Instant) {
        let _ = now;
    }

    /// When [`Filesystem::handle_timeout`] is to be called.
    pub fn deadline(&self) -> Option<Instant> {
        None
    }

    /// What is to be done next.
    pub fn poll(&mut self) -> Option<Action> {
        None
    }

    /// Brings everything to its place, and says on the disk that it is there. No request may be under way or come any more.
    pub fn unmount(&mut self, now: Instant) {
        let _ = now;
    }

    /// Whether that is done: nothing is inside the disk.
    pub fn is_unmounted(&self) -> bool {
        false
    }

    /// How it stands.
    pub fn status(&self) -> Status {
        Status::default()
    }
}
