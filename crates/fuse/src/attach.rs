//! Mounting: where in the tree of directories the filesystem is, and what /proc/mounts says of it.
//!
//! A block device is mounted as `fuseblk.levelhead`, so that the kernel claims it, and all else as `fuse.levelhead`.

use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use fuser::{Config, MountOption, SessionACL};
use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags, mount, mount_remount, unmount};
use rustix::process::{getegid, geteuid};

use crate::error::FuseError;
use crate::kernel::WriteCache;

/// The kernel's end of all filesystems of this kind.
const DEVICE: &str = "/dev/fuse";

/// Which program answers.
const SUBTYPE: &str = "levelhead";

/// What is mounted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A block device, which the kernel claims.
    Device(PathBuf),
    /// A file, of which the name is shown.
    File(PathBuf),
}

/// What programs may do with files under the mount point, as mount(8) names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flags(MountFlags);

impl Flags {
    /// What a mount begins with: set-user-id programs and devices of the filesystem have no effect unless `suid` and `dev` are asked
    /// for, as on every FUSE mount. Whoever made an image may have put anything into it.
    pub const DEFAULT: Self = Self(MountFlags::NOSUID.union(MountFlags::NODEV));

    /// The names of all of them.
    pub const NAMES: &str = "ro, rw, nosuid, suid, allow_suid, nodev, dev, allow_dev, noexec, \
                             exec, noatime, relatime, nodiratime, sync, dirsync";

    /// Takes one more into account; nothing if there is none of that name.
    #[must_use]
    pub fn with(self, name: &str) -> Option<Self> {
        let (flag, is_set) = match name {
            "ro" => (MountFlags::RDONLY, true),
            "rw" => (MountFlags::RDONLY, false),
            "nosuid" => (MountFlags::NOSUID, true),
            // mount(8) does not pass on what it takes for the default, `suid` and `dev`.
            "suid" | "allow_suid" => (MountFlags::NOSUID, false),
            "nodev" => (MountFlags::NODEV, true),
            "dev" | "allow_dev" => (MountFlags::NODEV, false),
            "noexec" => (MountFlags::NOEXEC, true),
            "exec" => (MountFlags::NOEXEC, false),
            "noatime" => (MountFlags::NOATIME, true),
            "relatime" => (MountFlags::RELATIME, true),
            "nodiratime" => (MountFlags::NODIRATIME, true),
            "sync" => (MountFlags::SYNCHRONOUS, true),
            "dirsync" => (MountFlags::DIRSYNC, true),
            _ => return None,
        };
        let mut flags = self.0;
        flags.set(flag, is_set);
        Some(Self(flags))
    }

    /// Whether nothing may be written.
    pub fn is_read_only(self) -> bool {
        self.0.contains(MountFlags::RDONLY)
    }
}

/// How it is mounted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// What programs may do.
    pub flags: Flags,
    /// Who keeps what was written and not synced.
    pub cache: WriteCache,
}

/// A mount point at which requests wait to be read. Dropping it unmounts.
#[derive(Debug)]
pub struct Attached {
    pub(crate) point: PathBuf,
    pub(crate) options: Options,
    pub(crate) way: Way,
}

/// How the kernel's requests are read.
#[derive(Debug)]
pub(crate) enum Way {
    /// From this descriptor, which is mounted.
    Open(OwnedFd),
    /// From one that a helper of the machine's will mount: only root may do so itself.
    Helper(Config),
    /// It is read already.
    Taken,
}

/// Mounts.
///
/// # Errors
///
/// There is no such directory, no /dev/fuse, no right to mount, or the device is in use.
pub fn attach(point: &Path, source: &Source, options: Options) -> Result<Attached, FuseError> {
    let shown = point.display();
    let found = point.metadata();
    let found =
        found.map_err(|error| FuseError::new(format!("cannot mount on {shown}: {error}")))?;
    if !found.is_dir() {
        return Err(FuseError::new(format!("cannot mount on {shown}: it is not a directory")));
    }
    let point =
        point.canonicalize().map_err(|error| FuseError::new(format!("{shown}: {error}")))?;
    let way = match (source, geteuid().is_root()) {
        (Source::File(file), false) => Way::Helper(by_helper(file, options)?),
        (Source::File(_) | Source::Device(_), _) => Way::Open(by_itself(&point, source, options)?),
    };
    Ok(Attached { point, options, way })
}

fn by_itself(point: &Path, source: &Source, options: Options) -> Result<OwnedFd, FuseError> {
    let opened = OpenOptions::new().read(true).write(true).open(DEVICE);
    let device = opened.map_err(|error| {
        FuseError::new(format!(
            "cannot open {DEVICE}: {error} (is the kernel's module fuse there?)"
        ))
    })?;
    let mode = point.metadata().map_or(0o40_000, |found| found.mode());
    let text = data(&device, mode, source);
    let text = CString::new(text).expect("numbers and words have no zero byte");
    let (name, kind) = match source {
        Source::Device(path) => (path, "fuseblk"),
        Source::File(path) => (path, "fuse"),
    };
    let kind = format!("{kind}.{SUBTYPE}");
    mount(name, point, kind.as_str(), options.flags.0, text.as_c_str()).map_err(|errno| {
        let (name, point) = (name.display(), point.display());
        FuseError::new(match (errno, source) {
            (Errno::BUSY, Source::Device(_)) => {
                format!("{name} is mounted already, or another program has it")
            }
            (Errno::PERM | Errno::ACCESS, Source::Device(_)) => {
                format!("only root may mount the block device {name}")
            }
            (errno, _) => format!("cannot mount {name} on {point}: {errno}"),
        })
    })?;
    Ok(device.into())
}

/// What the kernel's part of the filesystem is told.
fn data(device: &File, mode: u32, source: &Source) -> String {
    let (uid, gid) = (geteuid().as_raw(), getegid().as_raw());
    let mut text = format!(
        "fd={},rootmode={mode:o},user_id={uid},group_id={gid},default_permissions,allow_other",
        device.as_raw_fd()
    );
    if let Source::Device(_) = source {
        text.push_str(",blksize=4096");
    }
    text
}

fn by_helper(file: &Path, options: Options) -> Result<Config, FuseError> {
    if !options.flags.0.contains(Flags::DEFAULT.0) {
        return Err(FuseError::new("only root may mount with the options suid and dev".to_owned()));
    }
    let mut config = Config::default();
    config.mount_options = vec![
        MountOption::FSName(file.display().to_string()),
        MountOption::Subtype(SUBTYPE.to_owned()),
        MountOption::DefaultPermissions,
    ];
    let flags = options.flags.0;
    for (flag, option) in [
        (MountFlags::RDONLY, MountOption::RO),
        (MountFlags::NOEXEC, MountOption::NoExec),
        (MountFlags::NOATIME, MountOption::NoAtime),
        (MountFlags::SYNCHRONOUS, MountOption::Sync),
        (MountFlags::DIRSYNC, MountOption::DirSync),
    ] {
        if flags.contains(flag) {
            config.mount_options.push(option);
        }
    }
    config.acl = SessionACL::Owner;
    Ok(config)
}

impl Drop for Attached {
    fn drop(&mut self) {
        if matches!(self.way, Way::Open(_)) {
            // Nothing has answered there yet: no one has it open.
            drop(detach(&self.point));
        }
    }
}

/// Has the kernel say that the filesystem which is mounted on `point` with these flags takes no writes any more, so that `/proc/mounts`
/// does.
///
/// # Errors
///
/// There is no right to do so: only root has it.
pub(crate) fn make_read_only(point: &Path, flags: Flags) -> std::io::Result<()> {
    Ok(mount_remount(point, flags.0 | MountFlags::RDONLY, c"")?)
}

/// Takes the filesystem that is mounted on `point` out of the tree; it ends when no file in it is open any more.
///
/// # Errors
///
/// Nothing is mounted there, or there is no right to do so.
pub fn detach(point: &Path) -> std::io::Result<()> {
    Ok(unmount(point, UnmountFlags::DETACH)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_have_the_names_that_mount_gives_them() {
        let mut flags = Flags::DEFAULT;
        for name in Flags::NAMES.split(", ") {
            flags = flags.with(name).unwrap();
        }
        assert!(!flags.is_read_only(), "rw comes after ro");
        assert!(flags.with("ro").unwrap().is_read_only());
        assert_eq!(flags.with("fast"), None);
    }

    #[test]
    fn set_user_id_and_devices_are_asked_for() {
        assert_eq!(Flags::DEFAULT.0, MountFlags::NOSUID | MountFlags::NODEV);
        assert_eq!(Flags::DEFAULT.with("suid").unwrap().0, MountFlags::NODEV);
        assert_eq!(Flags::DEFAULT.with("dev").unwrap().0, MountFlags::NOSUID);
        assert_eq!(Flags::DEFAULT.with("allow_suid"), Flags::DEFAULT.with("suid"));
        assert_eq!(Flags::DEFAULT.with("allow_dev"), Flags::DEFAULT.with("dev"));
        assert_eq!(Flags::DEFAULT.with("rw"), Some(Flags::DEFAULT));
    }

    #[test]
    fn helper_takes_no_set_user_id_and_no_devices() {
        let with = |name| {
            let flags = Flags::DEFAULT.with(name).unwrap();
            by_helper(Path::new("a.img"), Options { flags, cache: WriteCache::Core })
        };
        assert!(with("ro").is_ok());
        for name in ["suid", "dev"] {
            let refused = with(name).err().unwrap().to_string();
            assert_eq!(refused, "only root may mount with the options suid and dev");
        }
    }

    #[test]
    fn what_is_no_directory_is_no_mount_point() {
        let options = Options { flags: Flags::DEFAULT, cache: WriteCache::Core };
        let source = Source::File(PathBuf::from("a.img"));
        let refused = attach(Path::new("/dev/null"), &source, options).unwrap_err();
        assert_eq!(refused.to_string(), "cannot mount on /dev/null: it is not a directory");
        let refused = attach(Path::new("/nowhere/at/all"), &source, options).unwrap_err();
        assert!(refused.to_string().starts_with("cannot mount on /nowhere/at/all: No such file"));
    }
}
