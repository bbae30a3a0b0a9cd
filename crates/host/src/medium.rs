//! An opened file or block device: sectors of real bytes, ours alone.
//!
//! Opening is exclusive. A file is locked (`flock`), a block device is opened with `O_EXCL`, which
//! keeps out mounts and other arrays as well; both ends with the last handle, however that dies.
//!
//! What the file system allows decides between direct transfers and the page cache. Either way a
//! write that has returned is safe from the end of this program, and only [`Medium::sync`], or being
//! durable, makes it safe from a power failure.
//!
//! # Durable writes
//!
//! Past the page cache a durable write says so itself (`RWF_DSYNC`): a drive that knows FUA then puts
//! these sectors on its medium and not all it has in memory. Where the kernel or the file system does not
//! take that, and through the page cache, a sync follows the write. Through the page cache a failure of
//! the two together could be one of an earlier write, told once and to the wrong client: see
//! [`errno`](crate::errno).
//!
//! # A file in memory
//!
//! What a tmpfs or a ramfs holds comes and goes at the speed of memory: a read or a write of it never waits
//! for a disk, unless the machine is so short of memory that it swaps, when every program waits. So
//! a thread that has a command for such a file may carry it out at once; a ring would hand it to a thread of the
//! kernel's. That a block device is in memory cannot be seen, and the file system its node lies on says
//! nothing of it.
//!
//! # A file that becomes shorter
//!
//! What was cut off is lost, and a write there would bring it back as zeroes. So a read that meets the
//! end fails with [`io::ErrorKind::UnexpectedEof`] and both sizes, and so does every write to such a
//! file: a file's size is looked at before each. A file that is cut off between that look and the end of a write behind the cut
//! is made as long as it was by that write, and no later look tells.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, IoSlice, Seek, SeekFrom};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use levelhead_block::{Buf, Durability, Piece};
use levelhead_bytes::Storage;
use levelhead_units::{Bytes, Lba, SECTOR_SIZE, Sectors};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl, fstatfs, fstatvfs};
use rustix::io::{Errno, ReadWriteFlags, pwritev2};

use crate::devices::sysfs::Sysfs;
use crate::errno::SyncFailed;
use crate::error::{HostError, fail};
use crate::{ioctl, new_file};

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

/// What something is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Access {
    /// To be changed, by this process alone.
    ReadWrite,
    /// The same, but the kernel may claim a device for a mount that this process answers for.
    Mount,
    /// To be read while it does not change.
    Read,
}

/// What tells two names of the same drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Identity {
    File { device: u64, inode: u64 },
    Device(u64),
}

/// A file that may take more room than it has now.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Thin {
    /// The file system.
    pub(crate) system: u64,
    /// Bytes that the file may take beyond those it has.
    pub(crate) wanted: u64,
    /// Bytes that the file system has for it.
    pub(crate) free: u64,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Medium {
    file: File,
    kind: Kind,
    size: Sectors,
    /// Its size to the byte: it need not end with a whole sector.
    bytes: u64,
    is_direct: bool,
    is_in_memory: bool,
    is_far: bool,
    /// Whether the kernel takes no writes for it.
    is_read_only: bool,
    /// How often it was synced.
    #[cfg(test)]
    syncs: std::sync::atomic::AtomicU32,
    /// Whether a write may say by itself that it is durable; not any more once that was refused.
    takes_dsync: AtomicBool,
    /// The fewest bytes it was seen to have.
    least: AtomicU64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    File,
    Device,
}

/// What lies at `path` before it is opened: `None` if nothing does.
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
    /// Opens what is there, for this process alone. What another process has is tried again for a while: the kernel
    /// lets go of what a killed server had only when the drives have ended what was inside them.
    pub(crate) fn open(path: &Path, transfer: Transfer) -> Result<Self, HostError> {
        Self::open_until(path, transfer, Access::ReadWrite)
    }

    /// The same, but a device can still be mounted: only programs that lock it are kept out.
    pub(crate) fn open_to_mount(path: &Path, transfer: Transfer) -> Result<Self, HostError> {
        Self::open_until(path, transfer, Access::Mount)
    }

    /// Opens what is there for reading, and keeps out those that would write to it.
    pub(crate) fn open_unchanging(path: &Path) -> Result<Self, HostError> {
        Self::open_until(path, Transfer::Direct, Access::Read)
    }

    /// Whether another process has it open to write to it.
    pub(crate) fn is_in_use(path: &Path) -> bool {
        Self::open_now(path, Transfer::Cached, Access::Read).is_ok_and(|opened| opened.is_none())
    }

    fn open_until(path: &Path, transfer: Transfer, access: Access) -> Result<Self, HostError> {
        let begun = Instant::now();
        loop {
            match Self::open_now(path, transfer, access)? {
                Some(medium) => return Ok(medium),
                None if begun.elapsed() < IN_USE_MAX => thread::sleep(Duration::from_millis(20)),
                None => return fail(format!("{} is in use by another process", path.display())),
            }
        }
    }

    /// Nothing if another process has it.
    fn open_now(
        path: &Path,
        transfer: Transfer,
        access: Access,
    ) -> Result<Option<Self>, HostError> {
        let name = path.display();
        let flags = match identify(path)? {
            None => return fail(format!("{name} does not exist")),
            Some(Identity::File { .. }) => OFlags::empty(),
            Some(Identity::Device(_)) if access == Access::Mount => OFlags::empty(),
            Some(Identity::Device(_)) => OFlags::EXCL,
        };
        let is_written = access != Access::Read;
        let mut options = OpenOptions::new();
        let opened =
            options.read(true).write(is_written).custom_flags(flags.bits() as i32).open(path);
        let file = match opened {
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => return Ok(None),
            Err(error) if is_written && takes_no_writes(&error) => {
                return Err(HostError::read_only(format!("cannot open {name} to write: {error}")));
            }
            Err(error) => return fail(format!("cannot open {name}: {error}")),
            Ok(file) => file,
        };
        let locked = match access {
            Access::ReadWrite | Access::Mount => file.try_lock(),
            Access::Read => file.try_lock_shared(),
        };
        match locked {
            Ok(()) => Self::measure(file, path, transfer).map(Some),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => fail(format!("cannot lock {name}: {error}")),
        }
    }

    /// Opens what is there for reading alone, also while other programs use it.
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
        let blame = |error| HostError::new(format!("cannot create {}: {error}", path.display()));
        new_file::create(path, size.bytes()).map(drop).map_err(blame)
    }

    fn measure(mut file: File, path: &Path, transfer: Transfer) -> Result<Self, HostError> {
        let end = file.seek(SeekFrom::End(0)).map_err(|error| {
            HostError::new(format!("cannot learn the size of {}: {error}", path.display()))
        })?;
        let is_direct = transfer == Transfer::Direct && go_direct(&file);
        let is_file = file.metadata().is_ok_and(|metadata| metadata.is_file());
        Ok(Self {
            is_in_memory: is_file && lies_in_memory(&file),
            is_far: is_file && lies_far(&file),
            is_read_only: !is_file && ioctl::is_read_only(&file),
            #[cfg(test)]
            syncs: std::sync::atomic::AtomicU32::new(0),
            file,
            kind: if is_file { Kind::File } else { Kind::Device },
            size: Bytes::new(end).sectors_floor(),
            bytes: end,
            is_direct,
            takes_dsync: AtomicBool::new(is_direct),
            least: AtomicU64::new(end),
        })
    }

    /// Whether reads and writes go past the page cache.
    pub(crate) fn is_direct(&self) -> bool {
        self.is_direct
    }

    /// Whether it is a file whose bytes are in memory, so that no command for it waits.
    pub(crate) fn is_in_memory(&self) -> bool {
        self.is_in_memory
    }

    /// Whether a question about it, its size even, may hang: some program or machine answers for it.
    pub(crate) fn is_far(&self) -> bool {
        self.is_far
    }

    /// Whether the kernel takes no writes for it, although it was opened for them.
    pub(crate) fn is_read_only(&self) -> bool {
        self.is_read_only
    }

    /// How many whole sectors it has.
    pub(crate) fn size(&self) -> Sectors {
        self.size
    }

    /// The file system that a file lies on, and what that must still find room for when all of the file is written; nothing
    /// for a device, and where the question may hang.
    pub(crate) fn thin(&self) -> Option<Thin> {
        let metadata =
            self.file.metadata().ok().filter(|_| self.kind == Kind::File && !self.is_far)?;
        let system = fstatvfs(&self.file).ok()?;
        Some(Thin {
            system: metadata.dev(),
            wanted: self.bytes.saturating_sub(metadata.blocks() * 512),
            free: system.f_bavail.saturating_mul(system.f_frsize),
        })
    }

    /// How many bytes it had when it was opened.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether a crash leaves every sector of 4 KiB as it was or as it was written: a file, or a device that says that its
    /// own sectors are no smaller.
    pub(crate) fn writes_whole_sectors(&self) -> bool {
        match self.kind {
            Kind::File => true,
            Kind::Device => {
                let number = self.file.metadata().map(|metadata| metadata.rdev());
                let Ok(number) = number else { return false };
                let number = (rustix::fs::major(number), rustix::fs::minor(number));
                let disk = Sysfs::new().disk(number);
                let bytes = disk.and_then(|disk| disk.number("queue/physical_block_size"));
                bytes.is_ok_and(|bytes| bytes >= SECTOR_SIZE as u64)
            }
        }
    }

    /// The descriptor, open for as long as this is.
    pub(crate) fn raw_fd(&self) -> RawFd {
        self.file.as_raw_fd()
    }

    /// Why it must not be used any more: it has been seen to be shorter than it was when it was opened.
    pub(crate) fn shortened(&self) -> Option<io::Error> {
        // Where the size cannot be learnt, reads will say what is wrong.
        let now = (&self.file).seek(SeekFrom::End(0)).unwrap_or(u64::MAX);
        let least = self.least.fetch_min(now, Ordering::Relaxed).min(now);
        let size = self.size.bytes().get();
        (least < size).then(|| {
            let sentence = format!("it has become shorter, from {size} bytes to {least}");
            io::Error::new(io::ErrorKind::UnexpectedEof, sentence)
        })
    }

    /// What a read says that has met the end.
    pub(crate) fn end(&self) -> io::Error {
        let met = || io::Error::new(io::ErrorKind::UnexpectedEof, "it ends before its last sector");
        self.shortened().unwrap_or_else(met)
    }

    /// Refuses to write to what has become shorter. Only files can be written past their end.
    pub(crate) fn check_writable(&self) -> io::Result<()> {
        match self.kind {
            Kind::File => self.shortened().map_or(Ok(()), Err),
            Kind::Device => Ok(()),
        }
    }

    /// Whether a write may say by itself that it is durable.
    pub(crate) fn takes_dsync(&self) -> bool {
        self.takes_dsync.load(Ordering::Relaxed)
    }

    /// A write that did so has ended with this error. Whether it is to be repeated without, and followed
    /// by a sync, as all later ones are.
    pub(crate) fn refuses_dsync(&self, errno: Errno) -> bool {
        let is_refusal = [Errno::OPNOTSUPP, Errno::INVAL, Errno::NOSYS].contains(&errno);
        if is_refusal {
            self.takes_dsync.store(false, Ordering::Relaxed);
        }
        is_refusal
    }

    /// Fills `bytes` from sector `lba` on. The memory is aligned to a sector.
    pub(crate) fn read(&self, lba: Lba, bytes: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(bytes, byte_offset(lba)).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => self.end(),
            _ => error,
        })
    }

    /// Stores `bytes` from sector `lba` on. The memory is aligned to a sector.
    pub(crate) fn write(&self, lba: Lba, bytes: &[u8]) -> io::Result<()> {
        self.check_writable()?;
        self.file.write_all_at(bytes, byte_offset(lba))
    }

    /// Stores the pieces one after the other, from sector `lba` on.
    pub(crate) fn write_pieces(
        &self,
        lba: Lba,
        pieces: &[Piece],
        durability: Durability,
    ) -> io::Result<()> {
        self.check_writable()?;
        if durability == Durability::Durable && self.takes_dsync() {
            match self.store(lba, pieces, ReadWriteFlags::DSYNC) {
                Err(errno) if self.refuses_dsync(errno) => {}
                result => return result.map_err(io::Error::from),
            }
        }
        self.store(lba, pieces, ReadWriteFlags::empty())?;
        match durability {
            Durability::Cached => Ok(()),
            Durability::Durable => self.sync().map_err(|error| io::Error::other(SyncFailed(error))),
        }
    }

    fn store(&self, lba: Lba, pieces: &[Piece], flags: ReadWriteFlags) -> Result<(), Errno> {
        let mut offset = byte_offset(lba);
        for some in pieces.chunks(SLICES_MAX) {
            let mut slices: Vec<IoSlice<'_>> =
                some.iter().map(|piece| IoSlice::new(piece.bytes())).collect();
            let mut left = slices.as_mut_slice();
            while !left.is_empty() {
                let written = match pwritev2(&self.file, left, offset, flags) {
                    // A drive that takes nothing and says nothing.
                    Ok(0) => return Err(Errno::IO),
                    Ok(written) => written,
                    Err(Errno::INTR) => continue,
                    Err(error) => return Err(error),
                };
                offset += written as u64;
                IoSlice::advance_slices(&mut left, written);
            }
        }
        Ok(())
    }

    /// The bytes behind its last whole sector.
    pub(crate) fn read_rest(&self) -> io::Result<Vec<u8>> {
        let start = self.size.bytes().get();
        let mut bytes = vec![0; (self.bytes - start) as usize];
        self.through_cache(|file| file.read_exact_at(&mut bytes, start))?;
        Ok(bytes)
    }

    /// Stores the bytes behind its last whole sector.
    pub(crate) fn write_rest(&self, bytes: &[u8]) -> io::Result<()> {
        self.check_writable()?;
        self.through_cache(|file| file.write_all_at(bytes, self.size.bytes().get()))
    }

    /// Does what cannot go past the page cache, before the drive is served.
    fn through_cache<T>(&self, act: impl FnOnce(&File) -> io::Result<T>) -> io::Result<T> {
        let flags = fcntl_getfl(&self.file)?;
        fcntl_setfl(&self.file, flags - OFlags::DIRECT)?;
        let done = act(&self.file);
        fcntl_setfl(&self.file, flags)?;
        done
    }

    /// Has the kernel look for partitions again, of which it keeps devices until then.
    pub(crate) fn forget_partitions(&self) {
        if self.kind == Kind::Device {
            // Where it cannot, because one of them is in use or there can be none, they stay until the next time.
            drop(ioctl::read_partitions_again(&self.file));
        }
    }

    /// Puts everything written so far where a power failure does not reach it.
    pub(crate) fn sync(&self) -> io::Result<()> {
        #[cfg(test)]
        self.syncs.fetch_add(1, Ordering::Relaxed);
        self.file.sync_data()
    }
}

/// What a member's threads keep sectors on, and what an engine asks about it.
pub(crate) trait Disk: Storage<Error = io::Error> + Clone + Send + Sync + 'static {
    /// How many whole sectors it has.
    fn size(&self) -> Sectors;

    /// Why it must not be used any more, if that can be seen. May hang.
    fn loss(&self) -> Option<String>;
}

/// A medium that several threads use.
#[derive(Clone, Debug)]
pub(crate) struct Shared(pub(crate) Arc<Medium>);

impl Storage for Shared {
    type Error = io::Error;

    fn read(&mut self, lba: Lba, bytes: &mut [u8]) -> io::Result<()> {
        self.0.read(lba, bytes)
    }

    fn write(&mut self, lba: Lba, pieces: &[Piece], durability: Durability) -> io::Result<()> {
        self.0.write_pieces(lba, pieces, durability)
    }

    fn write_sector(&mut self, lba: Lba, bytes: &[u8]) -> io::Result<()> {
        self.0.write(lba, bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.0.sync()
    }
}

impl Disk for Shared {
    fn size(&self) -> Sectors {
        self.0.size()
    }

    fn loss(&self) -> Option<String> {
        self.0.shortened().map(|error| error.to_string())
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

/// Whether a file or device can be opened to be read at best.
fn takes_no_writes(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied)
}

/// Whether the file system of a file keeps all it has in memory.
fn lies_in_memory(file: &File) -> bool {
    // What `<linux/magic.h>` calls their magic.
    const TMPFS: u64 = 0x0102_1994;
    const RAMFS: u64 = 0x8584_58F6;
    fstatfs(file).is_ok_and(|system| [TMPFS, RAMFS].contains(&(system.f_type as u64)))
}

/// Whether some program or machine answers for the file system of a file.
fn lies_far(file: &File) -> bool {
    // FUSE, NFS, SMB in three versions, Ceph, 9P, AFS, as `<linux/magic.h>` has them.
    const FAR: [u64; 8] = [
        0x6573_5546,
        0x6969,
        0x517B,
        0xFF53_4D42,
        0xFE53_4D42,
        0x00C3_6400,
        0x0102_1997,
        0x5346_414F,
    ];
    // Some of them fill more than 32 bits on machines where the field is signed.
    fstatfs(file).is_ok_and(|system| FAR.contains(&(system.f_type as u64 & 0xFFFF_FFFF)))
}

/// How long a member that another process has is tried again.
const IN_USE_MAX: Duration = Duration::from_secs(1);

/// Where a sector begins in its file.
pub(crate) fn byte_offset(lba: Lba) -> u64 {
    lba.get() * SECTOR_SIZE as u64
}

#[cfg(test)]
mod tests {
    use levelhead_block::adapter::Waiting;
    use levelhead_block::{BlockDevice, Request};
    use levelhead_units::Extent;
    use tempfile::TempDir;

    use super::*;
    use crate::threads::Threads;

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

    /// Past the page cache it says itself that it is durable; where that is not taken, one sync follows.
    #[test]
    fn durable_write_is_synced_only_where_it_cannot_say_so_itself() {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("a.img");
        Medium::create(&path, Sectors::new(4)).unwrap();
        let whole = || vec![Piece::whole(Arc::new(Buf::zeroed(Sectors::new(2))))];
        for transfer in [Transfer::Direct, Transfer::Cached] {
            let medium = Arc::new(Medium::open(&path, transfer).unwrap());
            let member = Threads::start(Shared(Arc::clone(&medium)), 1).unwrap();
            let mut client = Waiting::new(Arc::new(member));
            let mut syncs = |durability| {
                let before = medium.syncs.load(Ordering::Relaxed);
                let extent = Extent::new(Lba::new(1), Sectors::new(2));
                let write = Request::write_pieces(extent, durability, whole());
                assert!(client.run(vec![write])[0].outcome.is_good());
                medium.syncs.load(Ordering::Relaxed) - before
            };
            assert_eq!(syncs(Durability::Cached), 0);
            let says_so = medium.is_direct();
            assert_eq!(medium.takes_dsync(), says_so);
            assert_eq!(syncs(Durability::Durable), u32::from(!says_so), "{transfer:?}");
            if !says_so {
                eprintln!("SKIPPED: {transfer:?} goes through the page cache here");
            }
            // As a file system answers that does not know the flag.
            assert!(medium.refuses_dsync(Errno::OPNOTSUPP));
            assert_eq!(syncs(Durability::Durable), 1, "{transfer:?}");
            assert_eq!(syncs(Durability::Cached), 0);
        }
    }

    /// The node of a device lies in memory as well, and says nothing of the device.
    #[test]
    fn files_of_a_tmpfs_are_in_memory_and_nothing_else_is() {
        let open = |folder: &Path| {
            let path = folder.join("a.img");
            Medium::create(&path, Sectors::new(1)).unwrap();
            Medium::open(&path, Transfer::Direct).unwrap().is_in_memory()
        };
        let Ok(memory) = TempDir::new_in("/dev/shm") else {
            return eprintln!("SKIPPED: no /dev/shm");
        };
        assert!(open(memory.path()));
        let node = memory.path().join("node");
        let file = File::create(&node).unwrap();
        assert!(lies_in_memory(&file));
        assert!(!lies_in_memory(&File::open("/proc/self/stat").unwrap()));
        for device in ["/dev/loop0", "/dev/vda", "/dev/sda", "/dev/nvme0n1"] {
            if let Ok(medium) = Medium::open_to_read(Path::new(device)) {
                assert!(!medium.is_in_memory(), "{device}");
            }
        }
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
            // From the last sector to the first.
            let whole = Piece::whole(Arc::new(buf));
            let pieces: Vec<Piece> = (0..count as u32).rev().map(|at| whole.part(at, 1)).collect();
            for durability in [Durability::Cached, Durability::Durable] {
                medium.write_pieces(Lba::new(1), &pieces, durability).unwrap();
                let mut back = Buf::zeroed(Sectors::new(count as u64));
                medium.read(Lba::new(1), back.as_mut_slice()).unwrap();
                for at in 0..count {
                    let expected = ((count - 1 - at) % 251) as u8;
                    assert!(back.part(at, 1).iter().all(|&byte| byte == expected), "{at}");
                }
                medium
                    .write(Lba::new(1), Buf::zeroed(Sectors::new(count as u64)).as_slice())
                    .unwrap();
            }
        }
    }
}
