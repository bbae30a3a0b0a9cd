//! `levelhead fs ..`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::mpsc;

use clap::{Args, Subcommand};
use levelhead_app::{AppError, threads};
use levelhead_app_fs::{
    CheckEnd, CheckFilesystem, CheckWhen, CodeWish, DamageFilesystem, DamageGroup, Depth, FileKind,
    InspectFilesystem, InspectWhat, MakeFilesystem, Mount, MountHooks, MountOptions, PerGroup,
    Redundancy, Repair, ScrubFilesystem, ScrubParts, SetKind, SystemLog, check_filesystem,
    damage_filesystem, filesystem_status, inspect_filesystem, let_go, make_filesystem, mount,
    parse_setting, scrub_filesystem, scrub_parts, set_kind, start_in_background, sync_filesystem,
    umount,
};
use levelhead_host::words;
use levelhead_planner::Code;
use levelhead_units::{Bytes, Extent, Lba};

use crate::values;
use levelhead_terminal::signals::{stop_on_signals, stop_once_begun};
use levelhead_terminal::values as shared;
use levelhead_terminal::{Output, progress, say};

/// Sentences of a mount that wait to be printed.
const SENTENCES_MAX: usize = 1024;

#[derive(Subcommand)]
pub(crate) enum Options {
    /// Create a filesystem on a file, a block device or an emulated drive
    Mkfs(Box<MkfsArgs>),
    /// Mount a filesystem on a directory, and return when it is mounted
    Mount(MountArgs),
    /// Unmount a filesystem, and return when everything is on its disk; exit code 1 if something could not be stored
    Umount(UmountArgs),
    /// Make everything durable that was written to a mounted filesystem
    Sync(SyncArgs),
    /// Show the state of a filesystem, mounted or not
    Status(StatusArgs),
    /// Set the layout of a file, or of the new files of a directory
    Set(SetArgs),
    /// Show superblocks, a file, a sector or the journal of a filesystem that is not mounted
    Inspect(InspectArgs),
    /// Read everything once, mounted or not, and repair bad sectors
    Scrub(ScrubArgs),
    /// Check a filesystem that is not mounted, and repair it
    Check(CheckArgs),
    /// Damage a filesystem that is not mounted, to test its repair
    Damage(DamageArgs),
}

#[derive(Args)]
pub(crate) struct MkfsArgs {
    /// A file, a block device, or an emulated drive: emu:PATH?profile=nearline-2tb
    target: String,
    /// Its size, instead of all of the target; a file that does not exist is created with it, sparse
    #[arg(long, value_name = "SIZE")]
    size: Option<Bytes>,
    /// The code of the longest groups, REDUNDANT,DATA
    #[arg(long, default_value = "9,246", conflicts_with_all = ["failure_rate", "length"])]
    code: Code,
    /// Probability that a sector's first pass fails: chooses the smallest code that leaves 1e-6 of the groups
    #[arg(long, value_name = "P", requires = "length", value_parser = shared::probability, allow_negative_numbers = true)]
    failure_rate: Option<f64>,
    /// Sectors of a group, for a failure rate: 255 or 1023
    #[arg(long, requires = "failure_rate", value_parser = values::group_length, allow_negative_numbers = true)]
    length: Option<u64>,
    /// Redundancy of shorter groups: by-length (same probability of loss), or fixed (as many
    /// sectors as the longest)
    #[arg(long, value_name = "RULE", default_value = "by-length")]
    redundancy: Redundancy,
    /// Copies of each sector of metadata, 1 to 4
    #[arg(long, value_name = "COUNT", default_value = "3", value_parser = values::metadata_copies, allow_negative_numbers = true)]
    metadata_copies: u8,
    /// Groups of a file that are interleaved, 1 to 64: together they repair longer runs of bad sectors
    #[arg(long, value_name = "DEPTH", default_value = "1", value_parser = values::interleave, allow_negative_numbers = true)]
    interleave: u8,
    /// The drive supports zero forcing: it uses zeroes at the end of a sector
    #[arg(long)]
    zero_forcing: bool,
    /// Label, at most 48 bytes
    #[arg(long, value_name = "NAME", default_value = "")]
    label: String,
    /// Overwrite a target that holds data
    #[arg(long)]
    force: bool,
}

#[derive(Args)]
pub(crate) struct MountArgs {
    /// A file, a block device, or an emulated drive
    target: String,
    /// The directory
    directory: PathBuf,
    /// Options, separated by commas: ro, cache=SIZE (256MiB), writeback (the kernel joins small writes, and says late that the
    /// disk is full), and what mount(8) knows: noexec, noatime, ..; suid and dev let set-user-id programs and devices have an effect
    #[arg(long = "options", short, value_name = "OPTION,..")]
    options: Vec<String>,
    /// Stay in the foreground until it is unmounted, with messages on standard error
    #[arg(long)]
    foreground: bool,
    /// Let go of the caller once it is mounted
    #[arg(long, hide = true, requires = "foreground")]
    let_go: bool,
}

#[derive(Args)]
pub(crate) struct UmountArgs {
    /// The directory on which it is mounted
    directory: PathBuf,
}

#[derive(Args)]
pub(crate) struct SyncArgs {
    /// The directory on which it is mounted, or any path below
    path: PathBuf,
}

#[derive(Args)]
pub(crate) struct SetArgs {
    /// A file or a directory of a mounted filesystem
    path: PathBuf,
    /// kind=auto, a (read in sequence), b (read at random, not changed) or mutable
    #[arg(value_name = "kind=KIND", value_parser = parse_setting)]
    kind: FileKind,
}

#[derive(Args)]
pub(crate) struct StatusArgs {
    /// The directory on which it is mounted; or the file, the block device or the emulated drive that it is on
    target: String,
}

#[derive(Args)]
#[command(group = clap::ArgGroup::new("what").args(["path", "group", "journal"]))]
pub(crate) struct InspectArgs {
    /// A file, a block device, or an emulated drive
    target: String,
    /// Show a file or directory by its path: its inode, and the places of its sectors
    #[arg(long)]
    path: Option<String>,
    /// Show the use and state of this sector: a group of a file, or metadata
    #[arg(long, value_name = "LBA", value_parser = values::lba, allow_negative_numbers = true)]
    group: Option<Lba>,
    /// Show the marks and records of the journal
    #[arg(long)]
    journal: bool,
}

#[derive(Args)]
pub(crate) struct ScrubArgs {
    /// The directory on which it is mounted; or the file, the block device or the emulated drive that it is on
    target: String,
    /// What to read, separated by commas: data, redundancy, metadata
    #[arg(long, value_name = "PART,..", default_value = "data,redundancy,metadata", value_parser = scrub_parts)]
    only: ScrubParts,
    /// Maximum rate in bytes a second, such as 50MB
    #[arg(long, value_name = "SIZE")]
    rate: Option<Bytes>,
}

#[derive(Args)]
pub(crate) struct CheckArgs {
    /// A file, a block device, or an emulated drive
    target: String,
    /// Repair problems that have one correct solution
    #[arg(long)]
    repair: bool,
    /// Also read all sectors of files
    #[arg(long)]
    data: bool,
}

#[derive(Args)]
#[command(group = clap::ArgGroup::new("damage").required(true).multiple(true).args(["per_group", "metadata", "path", "run"]))]
pub(crate) struct DamageArgs {
    /// A file, a block device, or an emulated drive
    target: String,
    /// Seed that selects sectors and bytes: the same seed, the same damage
    #[arg(long, value_parser = shared::seed, allow_negative_numbers = true)]
    seed: u64,
    /// Sectors of each group, data and redundant ones alike; max: as many as it repairs
    #[arg(long, value_name = "COUNT|max", value_parser = values::per_group)]
    per_group: Option<PerGroup>,
    /// Copies of each sector of metadata, and of the superblock
    #[arg(long, value_name = "COUNT", value_parser = shared::whole::<u8>, allow_negative_numbers = true)]
    metadata: Option<u8>,
    /// Path of a file with one group to damage
    #[arg(long, requires = "group", requires = "sectors")]
    path: Option<String>,
    /// Which group of the file, from 0
    #[arg(long, value_name = "INDEX", requires = "path", value_parser = shared::whole::<usize>, allow_negative_numbers = true)]
    group: Option<usize>,
    /// Sectors of that group
    #[arg(long, value_name = "COUNT", requires = "path", value_parser = shared::whole::<u64>, allow_negative_numbers = true)]
    sectors: Option<u64>,
    /// Consecutive sectors: the first one, and how many
    #[arg(long, value_name = "LBA,COUNT", value_parser = values::run_of_sectors)]
    run: Option<Extent>,
}

pub(crate) fn run(options: Options, output: Output) -> Result<(), AppError> {
    match options {
        Options::Mkfs(args) => output.print_done(&make_filesystem(&args.ask())?),
        Options::Mount(args) => args.run(output),
        Options::Umount(UmountArgs { directory }) => {
            let unmounted = umount(&directory)?;
            output.print_done(&unmounted)?;
            unmounted.check()
        }
        Options::Sync(SyncArgs { path }) => {
            let synced = sync_filesystem(&path)?;
            output.print_done(&synced)?;
            synced.check()
        }
        Options::Scrub(ScrubArgs { target, only, rate }) => {
            let (stop, ask) = (stop_on_signals()?, ScrubFilesystem { target, parts: only, rate });
            let scrubbed = scrub_filesystem(&ask, &stop, progress::bars(output).as_ref())?;
            output.print(&scrubbed)?;
            scrubbed.check(&ask.target)
        }
        Options::Check(args) => args.run(output),
        Options::Damage(args) => {
            let damaged = damage_filesystem(&args.ask(), progress::bars(output).as_ref())?;
            output.print(&damaged)
        }
        Options::Status(StatusArgs { target }) => {
            let status = filesystem_status(&target)?;
            output.print(&status)?;
            match status.failure() {
                None => Ok(()),
                Some(failure) => {
                    Err(AppError::trouble(format!("{target} is read-only: {failure}")))
                }
            }
        }
        Options::Set(SetArgs { path, kind }) => output.print(&set_kind(&SetKind { path, kind })?),
        Options::Inspect(args) => output.print(&inspect_filesystem(&args.ask())?),
    }
}

impl DamageArgs {
    fn ask(self) -> DamageFilesystem {
        let Self { target, seed, per_group, metadata, path, group, sectors, run } = self;
        let group = match (path, group, sectors) {
            (Some(path), Some(group), Some(sectors)) => Some(DamageGroup { path, group, sectors }),
            _ => None,
        };
        DamageFilesystem { target, seed, per_group, metadata, group, run }
    }
}

impl InspectArgs {
    fn ask(self) -> InspectFilesystem {
        let Self { target, path, group, journal } = self;
        let what = match (path, group) {
            (Some(path), _) => InspectWhat::Path(path),
            (None, Some(lba)) => InspectWhat::Sector(lba),
            (None, None) if journal => InspectWhat::Journal,
            (None, None) => InspectWhat::Overview,
        };
        InspectFilesystem { target, what }
    }
}

impl CheckArgs {
    fn run(self, output: Output) -> Result<(), AppError> {
        let ask = CheckFilesystem {
            target: self.target,
            repair: if self.repair { Repair::All } else { Repair::None },
            depth: if self.data { Depth::Data } else { Depth::Metadata },
            when: CheckWhen::Always,
        };
        let checked = check_filesystem(&ask, progress::bars(output).as_ref())?;
        output.print(&checked)?;
        match checked.end() {
            CheckEnd::Clean | CheckEnd::Corrected => Ok(()),
            CheckEnd::Left => Err(AppError::trouble(format!(
                "{}: {} {} left",
                checked.target(),
                words::counted(checked.left(), "problem"),
                words::is_or_are(checked.left())
            ))),
        }
    }
}

impl MkfsArgs {
    fn ask(self) -> MakeFilesystem {
        let code = match self.failure_rate.zip(self.length) {
            Some((failure_rate, length)) => CodeWish::Least { failure_rate, length },
            None => CodeWish::Code(self.code),
        };
        MakeFilesystem {
            target: self.target,
            size: self.size,
            code,
            redundancy: self.redundancy,
            metadata_copies: self.metadata_copies,
            interleave: self.interleave,
            zero_forcing: self.zero_forcing,
            label: self.label,
            force: self.force,
        }
    }
}

impl MountArgs {
    fn run(self, output: Output) -> Result<(), AppError> {
        let options = MountOptions::DEFAULT.with(&self.options.join(","));
        let options = options.map_err(AppError::usage)?;
        if !self.foreground {
            return self.run_in_background(output);
        }
        let Self { target, directory, let_go: lets_go, .. } = self;
        let (stop, begun) = stop_once_begun()?;
        let ask = Mount { target, directory, options };
        let mut left = Ok(());
        let (lines, said) = mpsc::sync_channel::<String>(SENTENCES_MAX);
        let log = || if lets_go { SystemLog::open() } else { None };
        let told = log();
        let tell = move || {
            said.into_iter().for_each(|sentence| match &told {
                Some(log) => log.write(&sentence),
                None => say(&format!("levelhead: {sentence}")),
            });
        };
        let teller = threads::start("sentences", tell)?;
        // What a reader that has stopped has no room for is left out: files are not to wait for it.
        let on_event = Box::new(move |sentence: &str| drop(lines.try_send(sentence.to_owned())));
        let hooks = MountHooks {
            on_begin: &mut || begun.note(),
            on_ready: &mut |mounted| {
                // It is mounted all the same.
                drop(output.print_done(mounted));
                if lets_go {
                    left = let_go();
                }
            },
            on_event,
        };
        let ended = mount(&ask, &stop, hooks);
        if lets_go {
            // What is said last comes to the log, too; it does not wait for a reader.
            drop(teller.join());
            if let (Err(error), Some(log)) = (&ended, log()) {
                log.write(&error.to_string());
            }
        }
        left.and(ended)
    }

    /// The same by a program of its own.
    fn run_in_background(&self, output: Output) -> Result<(), AppError> {
        let mut arguments: Vec<OsString> =
            ["fs", "mount", "--foreground", "--let-go"].map(Into::into).into();
        if output.json {
            arguments.push("--json".into());
        }
        for options in &self.options {
            arguments.extend(["--options".into(), options.into()]);
        }
        arguments.extend(["--".into(), (&self.target).into(), (&self.directory).into()]);
        let said = start_in_background(&arguments)?;
        if output.is_silent() { Ok(()) } else { output.print_text(&said) }
    }
}
