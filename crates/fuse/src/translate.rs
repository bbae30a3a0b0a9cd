//! Words of the kernel in words of the core, and back.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fuser::{FileAttr, FileType, Generation, INodeNo, RenameFlags, TimeOrNow};
use levelhead_fs::{Allocation, Attributes, Errno, Moment, Renaming, Setting, Sought};
use levelhead_units::SECTOR_SIZE;

/// The kernel's number of the root directory.
const ROOT: u64 = 1;

/// Bytes of what the kernel calls a block.
const BLOCK: u64 = 512;

/// The bits of a mode that say what a file is.
const TYPE_SHIFT: u32 = 12;

/// The numbers of inodes: the kernel's root is always 1.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Numbers {
    /// The core's root.
    pub(crate) root: u64,
}

impl Numbers {
    /// The core's number. The two roots change places, so that each number has one meaning on either side.
    pub(crate) fn of_core(self, kernel: INodeNo) -> u64 {
        self.swap(kernel.0)
    }

    /// The kernel's number.
    pub(crate) fn of_kernel(self, core: u64) -> INodeNo {
        INodeNo(self.swap(core))
    }

    fn swap(self, number: u64) -> u64 {
        match number {
            ROOT => self.root,
            number if number == self.root => ROOT,
            number => number,
        }
    }

    /// What the kernel is told of an inode; nothing if its mode says nothing that there is.
    pub(crate) fn attributes(self, known: &Attributes) -> Option<FileAttr> {
        let kind = file_type(known.mode >> TYPE_SHIFT)?;
        Some(FileAttr {
            ino: self.of_kernel(known.inode),
            size: known.size,
            blocks: known.sectors.saturating_mul(SECTOR_SIZE as u64 / BLOCK),
            atime: system_time(known.accessed),
            mtime: system_time(known.modified),
            ctime: system_time(known.changed),
            crtime: system_time(known.created),
            kind,
            perm: (known.mode & 0o7777) as u16,
            nlink: known.links,
            uid: known.uid,
            gid: known.gid,
            rdev: known.device,
            blksize: SECTOR_SIZE as u32,
            flags: 0,
        })
    }

    /// The same of an inode of which the number and the type alone are known.
    pub(crate) fn bare(self, inode: u64, kind: FileType) -> FileAttr {
        FileAttr { ino: self.of_kernel(inode), ..nothing(kind) }
    }
}

/// What says that a name is not there, for the kernel to keep.
pub(crate) fn absent() -> FileAttr {
    nothing(FileType::RegularFile)
}

fn nothing(kind: FileType) -> FileAttr {
    FileAttr {
        ino: INodeNo(0),
        size: 0,
        blocks: 0,
        atime: UNIX_EPOCH,
        mtime: UNIX_EPOCH,
        ctime: UNIX_EPOCH,
        crtime: UNIX_EPOCH,
        kind,
        perm: 0,
        nlink: 0,
        uid: 0,
        gid: 0,
        rdev: 0,
        blksize: SECTOR_SIZE as u32,
        flags: 0,
    }
}

/// The type that the upper four bits of a mode name.
pub(crate) fn file_type(bits: u32) -> Option<FileType> {
    match bits {
        0o01 => Some(FileType::NamedPipe),
        0o02 => Some(FileType::CharDevice),
        0o04 => Some(FileType::Directory),
        0o06 => Some(FileType::BlockDevice),
        0o10 => Some(FileType::RegularFile),
        0o12 => Some(FileType::Symlink),
        0o14 => Some(FileType::Socket),
        _ => None,
    }
}

/// How many inodes have had the number before.
pub(crate) fn generation(known: &Attributes) -> Generation {
    Generation(known.generation.into())
}

/// A moment as the kernel's library wants it. What the machine's clock cannot say is 1970.
pub(crate) fn system_time(moment: Moment) -> SystemTime {
    let seconds = Duration::from_secs(moment.seconds.unsigned_abs());
    let whole = match moment.seconds >= 0 {
        true => UNIX_EPOCH.checked_add(seconds),
        false => UNIX_EPOCH.checked_sub(seconds),
    };
    let nanos = Duration::from_nanos(moment.nanos.into());
    whole.and_then(|whole| whole.checked_add(nanos)).unwrap_or(UNIX_EPOCH)
}

/// The moment that a clock says.
pub(crate) fn moment(time: SystemTime) -> Moment {
    match time.duration_since(UNIX_EPOCH) {
        Ok(since) => Moment { seconds: since.as_secs() as i64, nanos: since.subsec_nanos() },
        Err(error) => {
            let before = error.duration();
            let seconds = -(before.as_secs() as i64);
            match before.subsec_nanos() {
                0 => Moment { seconds, nanos: 0 },
                nanos => Moment { seconds: seconds - 1, nanos: 1_000_000_000 - nanos },
            }
        }
    }
}

/// The moment that a request of the kernel names. Its library counts the nanoseconds of a moment before 1970 backwards, which
/// the kernel counts forwards.
pub(crate) fn asked(time: TimeOrNow, now: Moment) -> Moment {
    match time {
        TimeOrNow::Now => now,
        TimeOrNow::SpecificTime(time) => match time.duration_since(UNIX_EPOCH) {
            Ok(_) => moment(time),
            Err(error) => {
                let before = error.duration();
                let seconds = (before.as_secs() as i64).wrapping_neg();
                Moment { seconds, nanos: before.subsec_nanos() }
            }
        },
    }
}

/// What fallocate(2) means; nothing if it is not supported.
pub(crate) fn allocation(mode: i32) -> Option<Allocation> {
    const KEEP: i32 = 1;
    const PUNCH_KEEP: i32 = 2 | KEEP;
    const ZERO: i32 = 16;
    const ZERO_KEEP: i32 = ZERO | KEEP;
    match mode {
        0 => Some(Allocation::Extend),
        KEEP => Some(Allocation::Keep),
        PUNCH_KEEP => Some(Allocation::Punch),
        ZERO => Some(Allocation::Zero),
        ZERO_KEEP => Some(Allocation::ZeroKeep),
        _ => None,
    }
}

/// What lseek(2) looks for; nothing if the kernel sees to it by itself.
pub(crate) fn sought(whence: i32) -> Option<Sought> {
    match whence {
        3 => Some(Sought::Data),
        4 => Some(Sought::Hole),
        _ => None,
    }
}

/// What renameat2(2) means; nothing if that is not supported.
pub(crate) fn renaming(flags: RenameFlags) -> Option<Renaming> {
    if flags.is_empty() {
        return Some(Renaming::Replace);
    }
    match flags {
        RenameFlags::RENAME_NOREPLACE => Some(Renaming::Keep),
        RenameFlags::RENAME_EXCHANGE => Some(Renaming::Exchange),
        _ => None,
    }
}

/// What setxattr(2) means; nothing if that cannot be.
pub(crate) fn setting(flags: i32) -> Option<Setting> {
    match flags {
        0 => Some(Setting::Any),
        1 => Some(Setting::Create),
        2 => Some(Setting::Replace),
        _ => None,
    }
}

/// The number of an error.
pub(crate) fn errno(errno: Errno) -> fuser::Errno {
    match errno {
        Errno::NotFound => fuser::Errno::ENOENT,
        Errno::Exists => fuser::Errno::EEXIST,
        Errno::NotDirectory => fuser::Errno::ENOTDIR,
        Errno::IsDirectory => fuser::Errno::EISDIR,
        Errno::NotEmpty => fuser::Errno::ENOTEMPTY,
        Errno::NoSpace => fuser::Errno::ENOSPC,
        Errno::Invalid => fuser::Errno::EINVAL,
        Errno::NameTooLong => fuser::Errno::ENAMETOOLONG,
        Errno::TooLarge => fuser::Errno::EFBIG,
        Errno::TooManyLinks => fuser::Errno::EMLINK,
        Errno::Io => fuser::Errno::EIO,
        Errno::ReadOnly => fuser::Errno::EROFS,
        Errno::NoData => fuser::Errno::ENODATA,
        // What ext4 says of an attribute for which an inode has no room.
        Errno::TooBig => fuser::Errno::ENOSPC,
        Errno::Beyond => fuser::Errno::ENXIO,
        Errno::NotPermitted => fuser::Errno::EPERM,
        Errno::NotSupported => fuser::Errno::EOPNOTSUPP,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Attributes = Attributes {
        inode: 800,
        generation: 3,
        mode: 0o104_755,
        links: 2,
        uid: 10,
        gid: 20,
        device: 0,
        size: 5_000,
        sectors: 3,
        accessed: Moment { seconds: 1, nanos: 2 },
        modified: Moment { seconds: -1, nanos: 800_000_000 },
        changed: Moment { seconds: 5, nanos: 6 },
        created: Moment { seconds: 7, nanos: 8 },
    };

    #[test]
    fn the_roots_change_places_and_no_number_has_two_meanings() {
        let numbers = Numbers { root: 800 };
        for (kernel, core) in [(1, 800), (800, 1), (7, 7)] {
            assert_eq!(numbers.of_core(INodeNo(kernel)), core);
            assert_eq!(numbers.of_kernel(core), INodeNo(kernel));
        }
    }

    #[test]
    fn attributes_reach_the_kernel_with_set_user_id_and_in_its_blocks() {
        let told = Numbers { root: 8 }.attributes(&ONE).unwrap();
        assert_eq!((told.ino, told.kind, told.perm), (INodeNo(800), FileType::RegularFile, 0o4755));
        assert_eq!((told.size, told.blocks, told.nlink), (5_000, 24, 2));
        assert_eq!(told.mtime, UNIX_EPOCH - Duration::from_millis(200));
        assert_eq!(generation(&ONE), Generation(3));
        let of_no_type = Attributes { mode: 0o755, ..ONE };
        assert_eq!(Numbers { root: 8 }.attributes(&of_no_type), None);
    }

    #[test]
    fn moments_come_back_as_they_went_also_those_before_1970() {
        for seconds in [-5_000_000_000, -2, -1, 0, 1, 4_000_000_000] {
            for nanos in [0, 1, 999_999_999] {
                let one = Moment { seconds, nanos };
                assert_eq!(moment(system_time(one)), one);
            }
        }
        for seconds in [i64::MIN, i64::MAX] {
            system_time(Moment { seconds, nanos: 999_999_999 });
        }
    }

    /// As the library has made it of -2 seconds and 800,000,000 nanoseconds.
    #[test]
    fn moment_before_1970_that_is_asked_for_is_the_one_that_the_kernel_meant() {
        let counted_backwards = UNIX_EPOCH - Duration::new(2, 800_000_000);
        let now = Moment { seconds: 9, nanos: 9 };
        let meant = Moment { seconds: -2, nanos: 800_000_000 };
        assert_eq!(asked(TimeOrNow::SpecificTime(counted_backwards), now), meant);
        assert_eq!(asked(TimeOrNow::Now, now), now);
    }

    #[test]
    fn flags_mean_what_the_system_calls_say_and_others_are_refused() {
        let allocations = [0, 1, 3, 16, 17].map(allocation);
        let expected = [
            Allocation::Extend,
            Allocation::Keep,
            Allocation::Punch,
            Allocation::Zero,
            Allocation::ZeroKeep,
        ];
        assert_eq!(allocations, expected.map(Some));
        // Punching that would end a file, collapsing, inserting, unsharing.
        assert!([2, 8, 32, 64, 65, -1].into_iter().all(|mode| allocation(mode).is_none()));
        let renamings = [0, 1, 2, 3, 4].map(|bits| renaming(RenameFlags::from_bits_retain(bits)));
        let [replace, keep, exchange] = [Renaming::Replace, Renaming::Keep, Renaming::Exchange];
        assert_eq!(renamings, [Some(replace), Some(keep), Some(exchange), None, None]);
        let settings = [0, 1, 2, 3].map(setting);
        let [any, create, replace] = [Setting::Any, Setting::Create, Setting::Replace];
        assert_eq!(settings, [Some(any), Some(create), Some(replace), None]);
        assert_eq!([2, 3, 4].map(sought), [None, Some(Sought::Data), Some(Sought::Hole)]);
    }
}
