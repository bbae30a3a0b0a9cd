//! What a world's array records on its members: where that is, and how often it was written.

use levelhead_array::Submit;
use levelhead_array::journal::rules::Rules;
use levelhead_array::superblock::Own;
use levelhead_block::Command;

/// See the module.
#[derive(Debug)]
pub(crate) struct Records {
    pub(crate) rules: Rules,
    /// What each member says of itself.
    pub(crate) owns: Vec<Own>,
    /// How many times the array was started.
    pub(crate) runs: u64,
    /// Commands that wrote metadata or superblocks.
    pub(crate) writes: u64,
}

impl Records {
    /// Counts a command that writes metadata or a superblock.
    pub(crate) fn note_submitted(&mut self, submit: &Submit) {
        let Command::Write { extent, .. } = submit.command else { return };
        let own = &self.owns[submit.drive.as_usize()];
        let is_metadata = own.slots().iter().any(|slot| slot.lba == extent.lba);
        self.writes += u64::from(is_metadata || own.copies().contains(&extent.lba));
    }
}
