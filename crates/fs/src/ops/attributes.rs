//! What is known of an inode, and changes of that.

use levelhead_units::Lba;

use crate::attempt::{Attempt, Stop};
use crate::format::inode::{Inode, Moment, mode};
use crate::ops::access::ACCESS;
use crate::ops::extended::CAPABILITY;
use crate::request::{Attributes, Caller, Changes, Errno};

/// The largest file: its last byte's place is a signed number of 64 bits, and its sectors have keys below 2^48.
pub(crate) const SIZE_MAX: u64 = 1 << 59;

/// What is known of an inode.
pub(crate) fn attributes(number: u64, inode: &Inode) -> Attributes {
    Attributes {
        inode: number,
        generation: inode.generation,
        mode: inode.mode,
        links: inode.links,
        uid: inode.uid,
        gid: inode.gid,
        device: inode.device,
        size: inode.size,
        sectors: inode.sectors,
        accessed: inode.accessed,
        modified: inode.modified,
        changed: inode.changed,
        created: inode.created,
    }
}

impl Attempt<'_> {
    /// What is known of an inode.
    pub(crate) fn attributes(&mut self, number: u64) -> Result<Attributes, Stop> {
        Ok(attributes(number, &self.inode(number)?))
    }

    /// Changes what is known of an inode, but for its size.
    pub(crate) fn set_attributes(
        &mut self,
        number: u64,
        changes: &Changes,
        now: Moment,
    ) -> Result<Attributes, Stop> {
        let mut inode = self.inode(number)?;
        let Changes { mode, uid, gid, size: _, accessed, modified, kind } = *changes;
        if let Some(mode) = mode {
            inode.mode = inode.mode & mode::TYPE | mode & mode::PERMISSIONS;
            self.change_list(number, &inode, now)?;
            inode.attributes = self.inode(number)?.attributes;
        } else if (uid.is_some() || gid.is_some()) && !inode.is_directory() {
            self.take_rights(number, &mut inode, Giver::OfAnother)?;
        }
        (inode.uid, inode.gid) = (uid.unwrap_or(inode.uid), gid.unwrap_or(inode.gid));
        inode.accessed = accessed.unwrap_or(inode.accessed);
        inode.modified = modified.unwrap_or(inode.modified);
        inode.kind = kind.unwrap_or(inode.kind);
        inode.changed = now;
        self.set_inode(number, &inode)?;
        Ok(attributes(number, &inode))
    }
}

/// Who does what takes a program's rights from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Giver {
    /// One who writes to it.
    Writer(Caller),
    /// One who makes it another one's.
    OfAnother,
}

impl Attempt<'_> {
    /// Whether a write takes rights from a file.
    pub(crate) fn has_rights(
        &mut self,
        number: u64,
        inode: &Inode,
        caller: Caller,
    ) -> Result<bool, Stop> {
        let has_bits = without_rights(inode, Giver::Writer(caller)) != inode.mode;
        Ok(has_bits || self.has_capability(number, inode)?)
    }

    /// A program that was written to, or given away, is not run with rights that its old content, or its old owner, had.
    pub(crate) fn take_rights(
        &mut self,
        number: u64,
        inode: &mut Inode,
        giver: Giver,
    ) -> Result<(), Stop> {
        inode.mode = without_rights(inode, giver);
        if self.has_capability(number, inode)? {
            self.set_inode(number, inode)?;
            self.remove_extended(number, CAPABILITY, inode.changed)?;
            *inode = self.inode(number)?;
        }
        Ok(())
    }

    fn has_capability(&mut self, number: u64, inode: &Inode) -> Result<bool, Stop> {
        // Most files have no attribute at all.
        if inode.attributes == Lba::ZERO || !inode.is_file() {
            return Ok(false);
        }
        Ok(self.extended(number)?.iter().any(|extended| extended.name == CAPABILITY))
    }

    /// The list of who may do what with an inode goes along with the bits of its mode.
    fn change_list(&mut self, number: u64, inode: &Inode, now: Moment) -> Result<(), Stop> {
        if inode.attributes == Lba::ZERO || inode.is_link() {
            return Ok(());
        }
        let Some(list) = self.access_list(number, ACCESS)? else { return Ok(()) };
        let list = list.with_bits(inode.mode);
        let mut all = self.extended(number)?;
        for extended in all.iter_mut().filter(|extended| extended.name == ACCESS) {
            extended.value = list.encode();
        }
        self.put_extended(number, &all, now)
    }
}

/// The mode that is left of one.
fn without_rights(inode: &Inode, giver: Giver) -> u32 {
    let keeps = match giver {
        Giver::Writer(caller) => caller.uid == 0 || !inode.is_file(),
        Giver::OfAnother => inode.is_directory(),
    };
    if keeps {
        return inode.mode;
    }
    let mode = inode.mode & !mode::SETUID;
    let keeps_group = match giver {
        // Without the right to be run by its group the bit means something else, and is the group's own: Linux takes it from those outside
        // it. A caller's other groups are not known here: one of them is outside, too.
        Giver::Writer(caller) => mode & 0o010 == 0 && caller.gid == inode.gid,
        Giver::OfAnother => mode & 0o010 == 0,
    };
    if keeps_group { mode } else { mode & !mode::SETGID }
}

/// Whether a file may have this size.
pub(crate) fn check_size(size: u64) -> Result<(), Errno> {
    if size > SIZE_MAX { Err(Errno::TooLarge) } else { Ok(()) }
}
