//! A sync of everything, for want of one that the kernel passes on: sync(2) and syncfs(2) end in the kernel for FUSE.

use std::path::Path;

use levelhead_fs::Answer;
use rustix::io::Errno;

/// The attribute of the root that is read for it.
pub(crate) const SYNC: &str = "system.levelhead.sync";

/// What it says when everything is durable.
const TEXT: &[u8] = b"synced\n";

/// An answer as the attribute's value.
pub(crate) fn value(answer: Answer) -> Answer {
    if answer == Answer::Done { Answer::Bytes(TEXT.to_vec()) } else { answer }
}

/// Makes durable what was written to the filesystem that is mounted on `point`; nothing if the program that answers there knows no
/// sync. What the kernel keeps (of mappings, and with `writeback`) is to be brought before, by syncfs(2).
///
/// # Errors
///
/// Something that was written since the last such sync could not be stored, or the filesystem does not answer.
pub fn sync(point: &Path) -> std::io::Result<Option<()>> {
    match rustix::fs::getxattr(point, SYNC, &mut [0; TEXT.len()]) {
        Ok(_) => Ok(Some(())),
        Err(Errno::NODATA | Errno::OPNOTSUPP) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
