//! What is known of an inode, and changes of that.

use crate::attempt::{Attempt, Stop};
use crate::format::inode::{Inode, Moment, mode};
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

/// A file that another one than root writes to, or gives away, is not run with its owner's rights any more.
pub(crate) fn without_rights(inode: &mut Inode, caller: Caller) {
    if caller.uid == 0 || !inode.is_file() {
        return;
    }
    inode.mode &= !mode::SETUID;
    // Without the right to be run by its group the bit means something else.
    if inode.mode & 0o010 != 0 {
        inode.mode &= !mode::SETGID;
    }
}

/// Whether a file may have this size.
pub(crate) fn check_size(size: u64) -> Result<(), Errno> {
    if size > SIZE_MAX { Err(Errno::TooLarge) } else { Ok(()) }
}
