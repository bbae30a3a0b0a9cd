//! The superblocks of a world's array: where they are, and how many were written.

use levelhead_array::Submit;
use levelhead_array::journal::rules::Rules;
use levelhead_block::Command;
use levelhead_units::{Lba, Sectors};

/// See the module.
#[derive(Debug)]
pub(crate) struct Superblocks {
    pub(crate) rules: Rules,
    /// Where each member has its superblocks.
    pub(crate) copies: Vec<[Lba; 2]>,
    pub(crate) sizes: Vec<Sectors>,
    /// How many times the array was started.
    pub(crate) runs: u64,
    /// Commands that wrote superblocks.
    pub(crate) writes: u64,
}

impl Superblocks {
    /// Counts what writes a superblock.
    pub(crate) fn note_submitted(&mut self, submit: &Submit) {
        let Command::Write { extent, .. } = submit.command else { return };
        self.writes += u64::from(self.copies[submit.drive.as_usize()].contains(&extent.lba));
    }
}
