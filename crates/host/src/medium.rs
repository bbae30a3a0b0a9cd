//! An opened file or block device: sectors of real bytes, ours alone.
//!
//! Opening is exclusive. A file is locked (`flock`), a block device is opened with `O_EXCL`, which
//! keeps out mounts and other arrays as well; both ends with the last handle, however that dies.
//!
//! What the file system allows decides between direct transfers and the page cache. Either way a
//! write that has returned is safe from the end of this program, and only [`Medium::sync`] makes it
//! safe from a power failure.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, IoSlice, Seek, SeekFrom};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use levelhead_array::Piece;
use levelhead_block::Buf;
use levelhead_units::{Bytes, Lba, SECTOR_SIZE, Sectors};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::pwritev;

use crate::error::{HostError, fail};

/// Slices of one `pwritev`: what the kernel takes at most.
const SLICES_MAX: usize = 1024;

/// How bytes travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transfer {
    /// Past the page cache, where the file system allows it.
    Direct,
    /// Through the page cache.
    Cached,
}

/// What tells two names of the same drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Identity {
    File { device: u64, inode: u64 },
    Device(u64),
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Medium {
    file: File,
    size: Sectors,
    is_direct: bool,
}

/// What lies at `path` before anybody opens it: `None` if nothing does.
pub(crate) fn identify(path: &Path) -> Result<Option<Identity>, HostError> {
    let name = path.display();
    let metadata = match path.metadata() {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return fail(format!("cannot look at {name}: {error}")),
    };
    let kind = metadata.file_type();
    if kind.is_file() {
        return Ok(Some(Identity::File { device: metadata.dev(), inode: metadata.ino() }));
    }
    if kind.is_block_device() {
        return Ok(Some(Identity::Device(metadata.rdev())));
    }
    let what = if kind.is_dir() {
        "a directory"
    } else if kind.is_char_device() {
        "a character device"
    } else {
        "neither a file nor a block device"
    };
    fail(format!("{name} is {what}, not a drive"))
}

impl Medium {
    /// Opens what is there, for nobody else to use.
    pub(crate) fn open(path: &Path, transfer: Transfer) -> Result<Self, HostError> {
        let name = path.display();
        let flags = match identify(path)? {
            None => return fail(format!("{name} does not exist")),
            Some(Identity::File { .. }) => OFlags::empty(),
            Some(Identity::Device(_)) => OFlags::EXCL,
        };
        let opened = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(flags.bits() as i32)
            .open(path)
            .map_err(|error| match error.kind() {
                io::ErrorKind::ResourceBusy => in_use(path),
                _ => HostError::new(format!("cannot open {name}: {error}")),
            });
        Self::claim(opened?, path, transfer)
    }

    /// Opens what is there for reading alone, whoever else uses it.
    pub(crate) fn open_to_read(path: &Path) -> Result<Self, HostError> {
        let name = path.display();
        if identify(path)?.is_none() {
            return fail(format!("{name} does not exist"));
        }
        let file = File::open(path)
            .map_err(|error| HostError::new(format!("cannot open {name}: {error}")))?;
        Self::measure(file, path, Transfer::Direct)
    }

    /// Makes a file of `size` sectors of zeroes that take no room, where nothing is.
    pub(crate) fn create(path: &Path, size: Sectors) -> Result<(), HostError> {
        let created = File::create_new(path).and_then(|file| file.set_len(size.bytes().get()));
        created
            .map_err(|error| HostError::new(format!("cannot create {}: {error}", path.display())))
    }

    fn claim(file: File, path: &Path, transfer: Transfer) -> Result<Self, HostError> {
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(in_use(path)),
            Err(TryLockError::Error(error)) => {
                return fail(format!("cannot lock {}: {error}", path.display()));
            }
        }
        Self::measure(file, path, transfer)
    }

    fn measure(mut file: File, path: &Path, transfer: Transfer) -> Result<Self, HostError> {
        let end = file.seek(SeekFrom::End(0)).map_err(|error| {
            HostError::new(format!("cannot learn the size of {}: {error}", path.display()))
        })?;
        let is_direct = transfer == Transfer::Direct && go_direct(&file);
        Ok(Self { file, size: Bytes::new(end).sectors_floor(), is_direct })
    }

    /// Whether reads and writes go past the page cache.
    pub(crate) fn is_direct(&self) -> bool {
        self.is_direct
    }

    /// How many whole sectors it has.
    pub(crate) fn size(&self) -> Sectors {
        self.size
    }

    /// The descriptor, open for as long as this is.
    pub(crate) fn raw_fd(&self) -> RawFd {
        self.file.as_raw_fd()
    }

    /// Fills `bytes` from sector `lba` on. The memory is aligned to a sector.
    pub(crate) fn read(&self, lba: Lba, bytes: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(bytes, byte_offset(lba))
    }

    /// Stores `bytes` from sector `lba` on. The memory is aligned to a sector.
    pub(crate) fn write(&self, lba: Lba, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, byte_offset(lba))
    }

    /// Stores the pieces one after the other, from sector `lba` on.
    pub(crate) fn write_pieces(&self, lba: Lba, pieces: &[Piece]) -> io::Result<()> {
        let mut offset = byte_offset(lba);
        for some in pieces.chunks(SLICES_MAX) {
            let mut slices: Vec<IoSlice<'_>> =
                some.iter().map(|piece| IoSlice::new(piece.bytes())).collect();
            let mut left = slices.as_mut_slice();
            while !left.is_empty() {
                let written = match pwritev(&self.file, left, offset) {
                    Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                    Ok(written) => written,
                    Err(rustix::io::Errno::INTR) => continue,
                    Err(error) => return Err(error.into()),
                };
                offset += written as u64;
                IoSlice::advance_slices(&mut left, written);
            }
        }
        Ok(())
    }

    /// Puts everything written so far where a power failure does not reach it.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }
}

/// Switches the page cache off if reads work without it: some file systems take the flag and then
/// refuse every read. Returns whether it is off.
fn go_direct(file: &File) -> bool {
    let Ok(flags) = fcntl_getfl(file) else { return false };
    if fcntl_setfl(file, flags | OFlags::DIRECT).is_err() {
        return false;
    }
    let mut probe = Buf::zeroed(Sectors::new(1));
    let works = file.read_at(probe.as_mut_slice(), 0).is_ok();
    if !works {
        // Back to where it was a moment ago; if even that fails, reads will say so.
        let _ = fcntl_setfl(file, flags);
    }
    works
}

/// Where a sector begins in its file.
pub(crate) fn byte_offset(lba: Lba) -> u64 {
    lba.get() * SECTOR_SIZE as u64
}

fn in_use(path: &Path) -> HostError {
    HostError::new(format!("{} is in use by another process", path.display()))
}

#[cfg(test)]
mod tests {
    use levelhead_array::{BufId, Buffers, Place, Segment};
    use levelhead_erasure::Kernel;
    use tempfile::TempDir;

    use super::*;

    fn check_refused(path: &Path, expected: &str) {
        let error = Medium::open(path, Transfer::Direct).unwrap_err().to_string();
        assert_eq!(error, expected);
    }

    #[test]
    fn what_is_no_drive_is_refused_by_name() {
        let dir = TempDir::new().unwrap();
        let missing = dir.path().join("missing.img");
        check_refused(&missing, &format!("{} does not exist", missing.display()));
        let folder = dir.path();
        check_refused(folder, &format!("{} is a directory, not a drive", folder.display()));
        check_refused(Path::new("/dev/null"), "/dev/null is a character device, not a drive");
    }

    #[test]
    fn second_opening_is_refused_until_the_first_has_ended() {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("a.img");
        Medium::create(&path, Sectors::new(4)).unwrap();
        let first = Medium::open(&path, Transfer::Direct).unwrap();
        assert_eq!(first.size(), Sectors::new(4));
        for transfer in [Transfer::Direct, Transfer::Cached] {
            let error = Medium::open(&path, transfer).unwrap_err().to_string();
            assert_eq!(error, format!("{} is in use by another process", path.display()));
        }
        drop(first);
        assert!(Medium::open(&path, Transfer::Cached).is_ok());
    }

    #[test]
    fn pieces_are_stored_one_after_the_other() {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("a.img");
        // More pieces than one call of the kernel takes.
        let count = SLICES_MAX + 3;
        Medium::create(&path, Sectors::new(count as u64 + 2)).unwrap();
        for transfer in [Transfer::Direct, Transfer::Cached] {
            let medium = Medium::open(&path, transfer).unwrap();
            let mut buf = Buf::zeroed(Sectors::new(count as u64));
            for (at, sector) in buf.as_mut_slice().chunks_exact_mut(SECTOR_SIZE).enumerate() {
                sector.fill((at % 251) as u8);
            }
            let mut buffers = Buffers::new(Kernel::best());
            buffers.insert(BufId::Own(1), buf);
            // From the last sector to the first.
            let segment =
                |sector| Segment { place: Place { buf: BufId::Own(1), sector }, sectors: 1 };
            let segments: Vec<Segment> = (0..count as u32).rev().map(segment).collect();
            medium.write_pieces(Lba::new(1), &buffers.share(&segments)).unwrap();
            let mut back = Buf::zeroed(Sectors::new(count as u64));
            medium.read(Lba::new(1), back.as_mut_slice()).unwrap();
            for at in 0..count {
                let expected = ((count - 1 - at) % 251) as u8;
                assert!(back.part(at, 1).iter().all(|&byte| byte == expected), "{at}");
            }
        }
    }
}
