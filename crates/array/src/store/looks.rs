//! What the store does against another server on the same drives: it looks at what was written there last ([`fence`]).
//!
//! [`fence`]: crate::meta::fence

use levelhead_units::{DriveIdx, DriveSet, Instant, Lba};

use super::{Phase, Store};
use crate::core::Core;
use crate::meta::fence::{Fence, Seen, Target};
use crate::meta::membership::Generation;
use crate::meta::metadata::Author;

impl Store {
    /// Where the slot lies beside one that begins here.
    pub(crate) fn slot_beside(&self, drive: DriveIdx, lba: Lba) -> Option<usize> {
        let slots = self.own(drive)?.slots();
        slots.iter().position(|slot| slot.lba == lba).map(|slot| 1 - slot)
    }

    /// Drives at which the array is to look, at both slots.
    pub(crate) fn take_wanted_looks(&mut self) -> DriveSet {
        self.fence.take_wanted()
    }

    /// A slot that is to be looked at now.
    pub(crate) fn target(&self, drive: DriveIdx, slot: usize) -> Target {
        let holder = &self.holders[drive.as_usize()];
        let has = if slot == holder.next { Generation::NONE } else { holder.has };
        self.fence.target(drive, slot, has)
    }

    /// The server stood still: what it has seen of others may be old.
    pub(crate) fn handle_standstill(&mut self) {
        self.fence.forget_round();
    }

    /// A slot was looked at, which this has written, if it can be read. Returns what that shows, and whether the slot is to be
    /// looked at again.
    pub(crate) fn handle_look(&mut self, target: Target, author: Option<Author>) -> (Seen, bool) {
        // What is left of another member is nobody's.
        let member = self.content.members[target.drive.as_usize()].id.uuid;
        let author = author.filter(|author| author.holder == member);
        let seen = self.fence.judge(author, target.has);
        let is_wanted_again = match seen {
            Seen::Own | Seen::Nothing => self.fence.note_looked(target, seen),
            Seen::AnotherServer | Seen::Earlier => false,
        };
        (seen, is_wanted_again)
    }

    /// Renews the lease, where one is needed, while there is work (N4 of the fence).
    pub(super) fn keep_lease(&mut self, core: &mut Core, now: Instant, silent: DriveSet) {
        let Some(end) = core.gate.lease_end() else { return };
        let is_opening = self.phase == Phase::Opening(0) || self.are_wishes_due;
        let spec = *core.layout().spec();
        let begun = if is_opening { None } else { self.fence.take_enough(&spec, silent) };
        if let Some(begun) = begun {
            core.gate.set_lease_end(Fence::lease_end(begun));
        } else if Fence::is_old(now, end)
            && !self.fence.is_asked()
            && (!core.is_quiet() || !self.have_newest(self.meant(core)))
        {
            self.fence.ask(now, core.drives.reachable());
        }
    }

    /// Whether all drives that answer were looked at, which is begun here (N1 of the fence).
    pub(super) fn has_looked(&mut self, core: &mut Core, now: Instant, silent: DriveSet) -> bool {
        if !core.out.carries_content() {
            return true;
        }
        if !self.fence.is_asked() {
            self.fence.ask(now, core.drives.reachable());
        }
        let begun = self.fence.take_over(silent);
        if let Some(begun) = begun {
            core.gate.set_lease_end(Fence::lease_end(begun));
        }
        begun.is_some()
    }
}
