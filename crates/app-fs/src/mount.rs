//! `levelhead fs mount`: a filesystem under a directory until it is unmounted.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use levelhead_block::BlockService;
use levelhead_fs::{Event, FileKind, Filesystem, MountMode, Settings};
use levelhead_fuse::{Flags, Options, Served, Serving, Source, WriteCache, attach, detach, serve};
use levelhead_host::LoneDrive;
use levelhead_report::json;
use levelhead_units::{Bytes, Sectors};
use serde::Serialize;

use super::arithmetic::choices;
use super::kind::parse_kind;
use super::target::{Target, find_superblock};
use super::umount::by_helper;
use levelhead_app::{AppError, Show, Stop};

/// Memory for what was read: 256 MiB,
const CACHE: Sectors = Sectors::new(1 << 16);

/// and 4 MiB at least.
const CACHE_MIN: Bytes = Bytes::new(4 << 20);

/// What mount(8) and /etc/fstab say that is of no concern here.
const IGNORED: [&str; 16] = [
    "defaults",
    "auto",
    "noauto",
    "nofail",
    "_netdev",
    "user",
    "nouser",
    "users",
    "owner",
    "group",
    "async",
    "atime",
    "diratime",
    "norelatime",
    "nostrictatime",
    "nolazytime",
];

/// The options behind `-o`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MountOptions {
    cache: Sectors,
    /// The kind of new files in directories of kind auto.
    kind: FileKind,
    mount: Options,
}

impl MountOptions {
    /// To be read and written, with the default cache, without set-user-id programs and devices.
    pub const DEFAULT: Self = Self {
        cache: CACHE,
        kind: FileKind::Auto,
        mount: Options { flags: Flags::DEFAULT, cache: WriteCache::Core },
    };

    /// The same with these, which commas separate.
    ///
    /// # Errors
    ///
    /// One of them does not exist or has no such value.
    pub fn with(mut self, text: &str) -> Result<Self, String> {
        for option in text.split(',').filter(|option| !option.is_empty()) {
            self.set(option)?;
        }
        Ok(self)
    }

    fn mode(&self) -> MountMode {
        match self.mount.flags.is_read_only() {
            true => MountMode::ReadOnly,
            false => MountMode::ReadWrite,
        }
    }

    /// For what will be written to it takes a measurement.
    fn settings(&self) -> Settings {
        let mode = self.mode();
        Settings { mode, cache: self.cache, kind: self.kind, ..Settings::new(choices(mode)) }
    }

    fn set(&mut self, option: &str) -> Result<(), String> {
        let is_ignored = IGNORED.contains(&option)
            || ["x-", "X-", "comment="].iter().any(|prefix| option.starts_with(prefix));
        if is_ignored {
            return Ok(());
        }
        if let Some(flags) = self.mount.flags.with(option) {
            self.mount.flags = flags;
            return Ok(());
        }
        match option.split_once('=') {
            None if option == "writeback" => self.mount.cache = WriteCache::Kernel,
            Some(("cache", size)) => {
                let size: Bytes = size.parse().map_err(|error| format!("'{option}': {error}"))?;
                if size < CACHE_MIN {
                    return Err(format!("'{option}': a cache has at least {CACHE_MIN}"));
                }
                self.cache = size.sectors_floor();
            }
            Some(("kind", kind)) => {
                self.kind = parse_kind(kind).map_err(|why| format!("'{option}': {why}"))?;
            }
            Some(_) | None => {
                let names = Flags::NAMES;
                return Err(format!(
                    "'{option}' is not an option of a mount: expected {names}, cache=SIZE, kind=KIND or writeback"
                ));
            }
        }
        Ok(())
    }
}

/// What to mount.
#[derive(Clone, Debug)]
pub struct Mount {
    /// A file, a block device or an emulated drive.
    pub target: String,
    /// The directory.
    pub directory: PathBuf,
    /// How.
    pub options: MountOptions,
}

/// What is mounted.
#[derive(Clone, Debug, Serialize)]
pub struct Mounted {
    /// What it is on.
    pub target: String,
    /// Where it is.
    pub directory: String,
    /// Whether nothing may be written.
    pub read_only: bool,
    /// The process that answers for it.
    pub pid: u32,
}

/// Who is told how a mount goes.
pub struct MountHooks<'a> {
    /// From here on a stop unmounts: nothing is mounted or changed before.
    pub on_begin: &'a mut dyn FnMut(),
    /// It is mounted, and requests are answered.
    pub on_ready: &'a mut dyn FnMut(&Mounted),
    /// What happens, in a sentence.
    pub on_event: Box<dyn Fn(&str) + Send>,
}

/// Mounts a filesystem and answers for it until it is unmounted. `stop` unmounts it once nothing in it is open, also while it is being
/// mounted: then as soon as that is done.
///
/// # Errors
///
/// It cannot be mounted, something that was written was not stored, or something of ours went wrong.
pub fn mount(ask: &Mount, stop: &Stop, hooks: MountHooks<'_>) -> Result<(), AppError> {
    let MountHooks { on_begin, on_ready, on_event } = hooks;
    let Target { member, path, is_device } = Target::find(&ask.target)?;
    let name = member.to_string();
    // What is mounted as a device is claimed by the kernel, and locked by us.
    let drive = if is_device && !member.is_emulated() {
        LoneDrive::open_to_mount(&member)
    } else {
        LoneDrive::open(&member)
    };
    let drive = Arc::new(drive.map_err(AppError::usage)?);
    let superblock = find_superblock(&drive, &name)?;
    let MountOptions { kind, mount: options, .. } = ask.options;
    let mode = ask.options.mode();
    if drive.is_read_only() && mode == MountMode::ReadWrite {
        return Err(AppError::usage(format!(
            "{name} is read-only: the kernel takes no writes for it, and -o ro mounts it"
        )));
    }
    if !superblock.may_write() && mode == MountMode::ReadWrite {
        return Err(AppError::usage(format!(
            "{name} has the features {:#x}, with which this program can only read: -o ro mounts it",
            superblock.read_only
        )));
    }
    let needs_zeroes = matches!(kind, FileKind::B | FileKind::Mutable);
    if needs_zeroes && superblock.forced.is_none() {
        let kind = kind.name();
        return Err(AppError::usage(format!(
            "{name} was made without --zero-forcing: its files cannot be of kind {kind}"
        )));
    }
    let settings = ask.options.settings();
    let source = match is_device && !member.is_emulated() {
        true => Source::Device(path),
        false => Source::File(path),
    };
    on_begin();
    let attached = attach(&ask.directory, &source, options).map_err(AppError::usage)?;
    let directory = ask.directory.canonicalize().unwrap_or_else(|_| ask.directory.clone());
    unmount_on(stop, &directory)?;
    let mounted = Mounted {
        target: name.clone(),
        directory: directory.display().to_string(),
        read_only: mode == MountMode::ReadOnly,
        pid: std::process::id(),
    };
    let begun = Instant::now();
    let core = Filesystem::new(levelhead_units::Instant::ZERO, superblock, settings);
    let service: Arc<dyn BlockService> = Arc::clone(&drive) as Arc<dyn BlockService>;
    let event_name = name.clone();
    let serving = Serving {
        begun,
        core,
        service,
        on_ready: &mut || on_ready(&mounted),
        on_event: Box::new(move |event| on_event(&sentence(&event_name, event))),
    };
    let served = serve(attached, serving);
    drive.wind_up();
    match served.map_err(AppError::trouble)? {
        Served::InOrder => Ok(()),
        Served::NotStored => Err(AppError::trouble(format!(
            "{name}: not everything that was written is stored; what was synced is there after the next mount"
        ))),
        Served::NotMounted => {
            let read_only = match mode {
                MountMode::ReadWrite => "; -o ro mounts what can be read",
                MountMode::ReadOnly => "",
            };
            Err(AppError::trouble(format!(
                "{name} cannot be mounted: its journal or its root directory cannot be read, or the disk does not store what is \
                 written{read_only}"
            )))
        }
        Served::Broken(message) => Err(AppError::trouble(format!(
            "{name} was not stopped cleanly, the next mount repairs it: {message}"
        ))),
    }
}

/// Unmounts when a stop is wished for.
fn unmount_on(stop: &Stop, directory: &Path) -> Result<(), AppError> {
    let (stop, directory) = (stop.clone(), directory.to_owned());
    let wait = move || {
        stop.wait();
        let detached = detach(&directory);
        if detached.is_err_and(|error| error.kind() == ErrorKind::PermissionDenied) {
            drop(by_helper(&directory, &["-u", "-z"]));
        }
        // What is unmounted already ends by itself.
    };
    let thread = thread::Builder::new().name("stop".into()).spawn(wait);
    thread.map(drop).map_err(|error| AppError::trouble(format!("cannot start a thread: {error}")))
}

fn sentence(name: &str, event: Event) -> String {
    match event {
        Event::Repaired { lba } => format!("{name}: sector {} was repaired", lba.get()),
        Event::Worn { lba, inode } => {
            let lba = lba.get();
            format!("{name}: sector {lba} of inode {inode} has failed again, and is left")
        }
        Event::Lost { lba, inode } => {
            format!("{name}: sector {} of inode {inode} is lost", lba.get())
        }
        Event::MetadataLost { lead } => {
            format!(
                "{name}: metadata is lost in all its copies, the first at sector {}",
                lead.get()
            )
        }
        Event::NotWritten { inode } => {
            format!(
                "{name}: what was written last to inode {inode} has no place on the disk, and is lost"
            )
        }
        Event::Unwritable { lba } => {
            format!("{name}: sector {} cannot be written: it is not used any more", lba.get())
        }
        Event::ReadOnly { failure } => {
            format!("{name} is read-only from now on: {failure}")
        }
    }
}

impl Show for Mounted {
    fn text(&self) -> String {
        let Self { target, directory, read_only, .. } = self;
        format!(
            "{target} is mounted on {directory}{}\n",
            if *read_only { ", to be read" } else { "" }
        )
    }

    fn json(&self) -> String {
        json::pretty(self).expect("plain values")
    }
}

#[cfg(test)]
mod tests {
    use levelhead_erasure::{Choice, Choices, Kernel, Stores};

    use super::*;

    #[test]
    fn options_are_those_of_mount_and_ours() {
        let options = MountOptions::DEFAULT.with("ro,noexec,cache=64MiB,writeback,x-gvfs-show");
        let options = options.unwrap();
        let (settings, mount) = (options.settings(), options.mount);
        assert_eq!(settings.mode, MountMode::ReadOnly);
        assert_eq!(settings.cache, Sectors::new(16_384));
        assert_eq!(mount.cache, WriteCache::Kernel);
        assert_eq!(
            Some(mount.flags),
            Flags::DEFAULT.with("ro").and_then(|flags| flags.with("noexec"))
        );
        assert_eq!(MountOptions::DEFAULT.with("defaults,,ro,rw"), Ok(MountOptions::DEFAULT));
    }

    #[test]
    fn nothing_is_measured_where_nothing_is_written_and_results_go_into_the_cache() {
        let read_only = MountOptions::DEFAULT.with("ro").unwrap().settings();
        assert_eq!(read_only.choices, Kernel::best().into());
        let few = Choice { stores: Stores::Past, ..read_only.choices.few };
        let past = Choices { few, ..read_only.choices };
        assert_eq!(Settings::new(past).choices, read_only.choices);
    }

    #[test]
    fn options_that_do_not_exist_are_refused_by_name() {
        let refused = |text: &str| MountOptions::DEFAULT.with(text).unwrap_err();
        assert!(
            refused("rw,fast").starts_with("'fast' is not an option of a mount: expected ro, rw,")
        );
        assert!(refused("cache=much").starts_with("'cache=much': "));
        assert_eq!(refused("cache=1MiB"), "'cache=1MiB': a cache has at least 4MiB");
        assert_eq!(refused("kind=z"), "'kind=z': a kind is auto, a, b or mutable");
        assert_eq!(MountOptions::DEFAULT.with("kind=b,kind=auto"), Ok(MountOptions::DEFAULT));
        assert_eq!(MountOptions::DEFAULT.with("kind=b").unwrap().settings().kind, FileKind::B);
    }
}
