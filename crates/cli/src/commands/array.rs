//! `levelhead array ..`.

use std::ffi::OsStr;
use std::io::IsTerminal;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Instant;

use clap::builder::TypedValueParser;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches, Subcommand};
use levelhead_app::{AppError, Stop};
use levelhead_app_array::{
    Allowed, Assemble, Audience, Check, Create, Degraded, Detail, Drives, Events, Heard, Make,
    Notice, OFFERS, Salvage, ScrubWhat, Serve, Service, Serving, Upgrade, Verb, Watch, ask, check,
    create, events, kernel_help, list, repair_superblocks, salvage, serve, status, upgrade, watch,
    would_serve,
};
use levelhead_array::{HostOrder, Policy, Spec, VerifySettings, VerifyWrites};
use levelhead_erasure::Kernel;
use levelhead_host::{ArrayVersion, CreateOptions, FastFail, Io};
use levelhead_metrics::Address;
use levelhead_units::{Bytes, Nanos};

use super::listen::ListenArgs;
use crate::manager::Manager;
use crate::values::JournalChoice;
use crate::{journal, values};
use levelhead_terminal::policies;
use levelhead_terminal::printer::{self, Printer};
use levelhead_terminal::signals::{stop_on_signals, stop_once_begun};
use levelhead_terminal::values as shared;
use levelhead_terminal::{Output, progress};

#[derive(Subcommand)]
pub(crate) enum Options {
    /// Create an array over files, block devices or emulated drives
    Create(CreateArgs),
    /// List the arrays on this machine
    List(ListArgs),
    /// Show what serve would do with these drives, and change nothing
    Assemble(AssembleArgs),
    /// Check an array that is not served, and change nothing
    #[command(after_help = EXIT_CODES)]
    Check(CheckArgs),
    /// Copy all readable data of a failed array to a file, and change nothing on its drives
    Salvage(SalvageArgs),
    /// Write copies of superblocks again that something else has overwritten, such as an empty partition table
    RepairSuperblock(RepairArgs),
    /// Convert an array of an earlier build to today's format, or back
    ///
    /// No data moves. An array does not get checksums by this: create another one with `--checksums`, and copy the data to it.
    Upgrade(UpgradeArgs),
    /// Serve an array over NBD until it is stopped
    Serve(Box<ServeArgs>),
    /// Show the state of a running array
    Status(StatusArgs),
    /// Show the events of a running array and its drives
    Events(EventsArgs),
    /// Read and compare everything in a running array in the background, and repair what it can
    Scrub(ScrubArgs),
    #[command(flatten)]
    Ask(Ask),
}

#[derive(Args)]
pub(crate) struct CreateArgs {
    /// The array: raid0, raid1, raid10, raid4, raid5 or raid6 of all the drives named, or with data and redundant drives, as in
    /// raid6:6+2,chunk=64KiB or eraid:5+1,e=2,chunk=8KiB
    array: String,
    /// The drives in order: paths, emu:PATH?profile=nearline-2tb&size=1GiB&retry-rate=2%, or NBD exports:
    /// nbd://HOST:PORT/EXPORT, nbd+unix:///EXPORT?socket=PATH, or nbds and &tls-certificates=DIR
    #[arg(required = true)]
    members: Vec<String>,
    /// Check everything and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Overwrite drives that hold data: another array, a file system or anything else
    #[arg(long)]
    force: bool,
    /// Where the write journal is: members, all, none, or drives of its own as DEVICE,DEVICE
    ///
    /// After a crash the journal makes each write complete or absent. members: on all members; long writes are
    /// intent-logged. all: the same, and long writes are journaled with their data. none: no journal; a crash
    /// may leave wrong redundancy. DEVICE,DEVICE: on these drives alone, at least one more than the array can lose,
    /// each with the whole journal.
    #[arg(long, value_parser = values::journal, default_value = "members")]
    journal: JournalChoice,
    /// Skip the initial sync: assume that redundancy is already consistent
    #[arg(long)]
    assume_clean: bool,
    /// Keep a checksum of every sector, which every read verifies; takes a 65th of each drive
    #[arg(long)]
    checksums: bool,
}

/// What `list`, `assemble`, `check` and `status --check` say by how they end.
const EXIT_CODES: &str = "Exit codes: 0 healthy, 1 degraded (less redundancy than the layout has, or something \
    is wrong), 2 wrong call, \
3 failed (more drives are missing than the layout survives).";

#[derive(Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct ListArgs {
    /// Folders to search, or drives; /dev/disk/by-id if none is given
    #[arg(value_name = "DIR")]
    folders: Vec<PathBuf>,
}

#[derive(Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct AssembleArgs {
    /// Folders that the drives lie in, or the drives themselves, as serve takes them
    #[arg(required = true, value_name = "DIR|MEMBER")]
    drives: Vec<String>,
    /// Beginning of the array's UUID, where the folders hold drives of several arrays
    #[arg(long, value_name = "UUID")]
    array: Option<String>,
    #[command(flatten)]
    allowed: AllowedArgs,
}

/// What may be so at an array's start.
#[derive(Args)]
pub(crate) struct AllowedArgs {
    /// Start without missing drives, at once or after waiting for them, 1s to 1h
    ///
    /// The first write records that the drives are missing; later starts do not need this option.
    #[arg(long, value_name = "AFTER", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "0s", value_parser = values::look_for)]
    degraded: Option<Nanos>,
    /// Start after an unclean shutdown with missing drives: may return wrong data
    #[arg(long)]
    force: bool,
}

impl AllowedArgs {
    fn allowed(&self) -> Allowed {
        let Self { degraded, force } = *self;
        Allowed { force, degraded: degraded.map_or(Degraded::No, Degraded::After) }
    }
}

/// The drives of an array that exists.
#[derive(Args)]
pub(crate) struct DrivesArgs {
    /// The drives in any order: paths, emu:PATH?.., nbd://HOST:PORT/EXPORT, nbd+unix:///EXPORT?socket=PATH, ..
    #[arg(required_unless_present = "scan", conflicts_with = "scan")]
    members: Vec<String>,
    /// Take the drives of one array from a folder; may be given more than once
    #[arg(long, value_name = "DIR")]
    scan: Vec<PathBuf>,
    /// Beginning of the array's UUID, where the folders hold drives of several arrays
    #[arg(long, value_name = "UUID", requires = "scan")]
    array: Option<String>,
}

impl DrivesArgs {
    fn drives(self) -> Drives {
        let Self { members, scan: folders, array } = self;
        if folders.is_empty() { Drives::Named(members) } else { Drives::Among { folders, array } }
    }
}

/// Takes a kernel's name, and shows all there is to know about them for `help` on the command line.
#[derive(Clone)]
struct KernelParser;

impl TypedValueParser for KernelParser {
    type Value = Kernel;

    fn parse_ref(
        &self,
        command: &Command,
        arg: Option<&Arg>,
        value: &OsStr,
    ) -> Result<Kernel, clap::Error> {
        clap::builder::StringValueParser::new()
            .try_map(|name| name.parse::<Kernel>())
            .parse_ref(command, arg, value)
    }

    fn parse_ref_(
        &self,
        command: &Command,
        arg: Option<&Arg>,
        value: &OsStr,
        source: ValueSource,
    ) -> Result<Kernel, clap::Error> {
        if value == "help" && source == ValueSource::CommandLine {
            // Whatever else is missing on the command line, it ends here. See `main::refuse`.
            let mut help = clap::Error::new(ErrorKind::DisplayHelp);
            help.insert(ContextKind::Custom, ContextValue::String(kernel_help()));
            return Err(help);
        }
        self.parse_ref(command, arg, value)
    }
}

#[derive(Args)]
#[command(after_help = "The exit code is 1 if anything wrong is found.")]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    drives: DrivesArgs,
    /// Erasure-coding kernel, as for serve; by default the widest instruction set of this processor, unmeasured
    #[arg(long, env = "LEVELHEAD_KERNEL", hide_env_values = true, value_parser = KernelParser)]
    kernel: Option<Kernel>,
}

#[derive(Args)]
#[command(after_help = "The exit code is 1 if some data of the array could not be read.")]
pub(crate) struct SalvageArgs {
    #[command(flatten)]
    drives: DrivesArgs,
    /// The file to create; it must not exist
    #[arg(long, value_name = "FILE")]
    to: PathBuf,
    /// Erasure-coding kernel, as for serve; by default the widest instruction set of this processor, unmeasured
    #[arg(long, env = "LEVELHEAD_KERNEL", hide_env_values = true, value_parser = KernelParser)]
    kernel: Option<Kernel>,
}

#[derive(Args)]
#[command(
    after_help = "The array must not be served. One good copy on any member is enough, and the metadata of those without one. \
    A start repairs single copies by itself."
)]
pub(crate) struct RepairArgs {
    /// The array's members, in any order; those that are as they should be help to know the others
    #[arg(required = true, value_name = "MEMBER")]
    members: Vec<String>,
}

#[derive(Args)]
#[command(
    after_help = "The array must have been stopped cleanly and have all its members. No data is moved; an interrupted \
    conversion is finished by the same command."
)]
pub(crate) struct UpgradeArgs {
    #[command(flatten)]
    drives: DrivesArgs,
    /// Version of the superblock: 3, or 2 for builds before 28 November 2026
    #[arg(long, value_name = "VERSION", default_value = "3", value_parser = values::array_version)]
    to: ArrayVersion,
}

#[derive(Args)]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    drives: DrivesArgs,
    #[command(flatten)]
    nbd: ListenArgs,
    #[command(flatten)]
    allowed: AllowedArgs,
    /// A drive that replaces one that fails, as with add-spare; may be given more than once
    ///
    /// Once it has replaced a drive, it is a member and is named among the drives.
    #[arg(long, value_name = "DEVICE")]
    spare: Vec<String>,
    /// Read policy, such as level, normal or pro-active; --help describes each
    #[arg(long, default_value_t = Policy::DEFAULT, long_help = policies::each("Read policy"))]
    policy: Policy,
    /// Serve metrics over HTTP for Prometheus: PORT for this machine only, ADDRESS:PORT, or [ADDRESS]:PORT
    #[arg(long, value_name = "ADDRESS")]
    metrics: Option<Address>,
    /// A program to run, without a shell, for each event; it gets one line of JSON on standard input, and LEVELHEAD_EVENT,
    /// _SEVERITY, _AT, _SENTENCE, _ARRAY and _DRIVE in its environment
    #[arg(long, value_name = "PROGRAM")]
    on_event: Option<PathBuf>,
    /// Path of the control socket; by default UUID.control in $XDG_RUNTIME_DIR/levelhead, or in
    /// /run/levelhead for root
    #[arg(long)]
    control: Option<PathBuf>,
    /// Time after which an unresponsive drive is failed, 1s to 1h
    ///
    /// Only while writes wait for the drive and the layout survives its failure.
    #[arg(long, default_value = "60s", value_parser = values::patience)]
    lost_after: Nanos,
    /// Other machines can reach the drives (iSCSI, SAS with two ports, a cluster file system): keep to a lease, as over NBD exports
    #[arg(long)]
    shared: bool,
    /// Read back what was written, and repair it: off, raw (at once) or idle[:CACHE] (when the drive is idle)
    ///
    /// With idle, CACHE is the memory for written data; writes beyond it are verified by their checksums.
    #[arg(long, value_name = "WHEN", default_value = "off")]
    verify_writes: VerifyWrites,
    /// Time that a drive must have been idle before it reads back what was written
    #[arg(long, value_name = "TIME", default_value = "1ms")]
    verify_wait: Nanos,
    /// How drives are asked to give up a read early: command or erc
    ///
    /// command: command duration limits and limited retry. erc: in addition, SATA drives without those get a read limit
    /// of 0.1 s while redundancy can stand in for them (smartctl -l scterc, needs root). That limit holds for the whole
    /// drive; its own limit is restored for reads with retries, when no further drive may fail, at the end, and at
    /// the next start after a crash.
    #[arg(long, value_name = "WAYS", default_value = "command")]
    fast_fail: FastFail,
    /// Commands inside a drive at a time, 1 to 32
    #[arg(long, default_value_t = 32, value_parser = shared::window, allow_negative_numbers = true)]
    window: u32,
    /// Order of the host's queues: fcfs, elevator or paper32
    #[arg(long, default_value = "elevator")]
    host_order: HostOrder,
    /// I/O method: uring, threads, or best
    ///
    /// best: files in a tmpfs by the array's own thread, all others by io_uring where the kernel has it.
    #[arg(long, env = "LEVELHEAD_IO", hide_env_values = true, default_value = "best")]
    io: Io,
    /// Erasure-coding kernel: naive, portable, avx2, avx2-gfni or avx512-gfni; by default the fastest here
    ///
    /// The default is measured at the start. `--kernel help` lists the kernels and their measurements.
    #[arg(long, env = "LEVELHEAD_KERNEL", hide_env_values = true, value_parser = KernelParser)]
    kernel: Option<Kernel>,
    /// Seed of random choices
    #[arg(long, default_value_t = 7, value_parser = shared::seed, allow_negative_numbers = true)]
    seed: u64,
}

/// A verb for a running array, as the table of verbs offers it.
pub(crate) struct Ask {
    array: PathBuf,
    verb: Verb,
}

impl FromArgMatches for Ask {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let is_known = |name: &str| OFFERS.into_iter().find(|offer| offer.name == name);
        let Some((offer, own)) =
            matches.subcommand().and_then(|(name, own)| Some((is_known(name)?, own)))
        else {
            return Err(clap::Error::new(ErrorKind::InvalidSubcommand));
        };
        Ok(match offer.make {
            Make::Alone(verb) => {
                let Running { array } = Running::from_arg_matches(own)?;
                Self { array, verb }
            }
            Make::OfDrive(make) => {
                let OfDrive { array, drive } = OfDrive::from_arg_matches(own)?;
                Self { array, verb: make(drive) }
            }
            Make::Replace => {
                let Replace { array, drive, device, force } = Replace::from_arg_matches(own)?;
                Self { array, verb: Verb::Replace { drive, device, force } }
            }
            Make::AddSpare => {
                let AddSpare { array, device, force } = AddSpare::from_arg_matches(own)?;
                Self { array, verb: Verb::AddSpare { device, force } }
            }
            Make::RemoveSpare => {
                let OfSpare { array, device } = OfSpare::from_arg_matches(own)?;
                Self { array, verb: Verb::RemoveSpare { device } }
            }
            Make::Rebuild => {
                let Rebuild { array, pause, start: _, min_rate } = Rebuild::from_arg_matches(own)?;
                Self { array, verb: Verb::Rebuild { pause, min_rate: min_rate.map(Bytes::get) } }
            }
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Subcommand for Ask {
    fn augment_subcommands(command: Command) -> Command {
        OFFERS.into_iter().fold(command, |command, offer| {
            let own = Command::new(offer.name).about(offer.help);
            command.subcommand(match offer.make {
                Make::Alone(_) => Running::augment_args(own),
                Make::OfDrive(_) => OfDrive::augment_args(own),
                Make::Replace => Replace::augment_args(own),
                Make::AddSpare => AddSpare::augment_args(own),
                Make::RemoveSpare => OfSpare::augment_args(own),
                Make::Rebuild => Rebuild::augment_args(own),
            })
        })
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        Self::augment_subcommands(command)
    }

    fn has_subcommand(name: &str) -> bool {
        OFFERS.iter().any(|offer| offer.name == name)
    }
}

#[derive(Args)]
pub(crate) struct Running {
    /// The array's control socket, or any of its drives
    array: PathBuf,
}

#[derive(Args)]
#[command(
    after_help = "With --watch and --json it prints one JSON object a line. With --check it exits with 0 if the \
        array is \
                        healthy, 1 if it is degraded, 3 if it has failed; 2 is a wrong call."
)]
pub(crate) struct StatusArgs {
    /// The array's control socket, or any of its drives
    array: PathBuf,
    /// Refresh every SECONDS, 0.1 to 3600, with the rates since the last refresh, until Ctrl-C or the array's end
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "1")]
    #[arg(value_parser = values::look_every)]
    watch: Option<Nanos>,
    /// Show only the damaged sectors, which neither their drives nor redundancy can return
    #[arg(long, conflicts_with = "watch")]
    damaged: bool,
    /// Exit with 1 if the array is degraded and with 3 if it has failed, and print why
    #[arg(long, conflicts_with_all = ["watch", "damaged"])]
    check: bool,
    /// Show every counter, and all events that are kept
    #[arg(long, short, conflicts_with_all = ["watch", "damaged"])]
    verbose: bool,
}

#[derive(Args)]
pub(crate) struct ScrubArgs {
    /// The array's control socket, or any of its drives
    array: PathBuf,
    /// start or resume a scrub; stop it; or show its progress
    #[arg(value_parser = ["start", "stop", "status"], default_value = "start")]
    what: String,
}

#[derive(Args)]
#[command(after_help = "With --json it prints one JSON object a line.")]
pub(crate) struct EventsArgs {
    /// The array's control socket, or any of its drives
    array: PathBuf,
    /// Print new events as they happen, until Ctrl-C or the array's end
    #[arg(long)]
    follow: bool,
}

#[derive(Args)]
pub(crate) struct OfDrive {
    /// The array's control socket, or any of its drives
    array: PathBuf,
    /// The drive's number
    #[arg(value_parser = shared::drive, allow_negative_numbers = true)]
    drive: u8,
}

#[derive(Args)]
pub(crate) struct Replace {
    /// The array's control socket, or any of its drives
    array: PathBuf,
    /// The number of the drive to replace, failed or not
    #[arg(value_parser = shared::drive, allow_negative_numbers = true)]
    drive: u8,
    /// The new drive: a path, emu:PATH?.., or an NBD export
    device: String,
    /// Overwrite a drive that holds data: another array, a file system or anything else
    #[arg(long)]
    force: bool,
}

#[derive(Args)]
pub(crate) struct AddSpare {
    /// The array's control socket, or any of its drives
    array: PathBuf,
    /// The spare: a path, emu:PATH?.., or an NBD export
    device: String,
    /// Overwrite a drive that holds data: another array, a file system or anything else
    #[arg(long)]
    force: bool,
}

#[derive(Args)]
pub(crate) struct OfSpare {
    /// The array's control socket, or any of its drives
    array: PathBuf,
    /// The spare, as status names it
    device: String,
}

#[derive(Args)]
pub(crate) struct Rebuild {
    /// The array's control socket, or any of its drives
    array: PathBuf,
    /// Pause rebuilding and copying
    #[arg(long, conflicts_with = "start")]
    pause: bool,
    /// Resume; the default without any option
    #[arg(long)]
    start: bool,
    /// Minimum rate in bytes a second, whatever the load from clients, as in 5MB; 0 for none
    #[arg(long, value_name = "RATE", value_parser = values::rebuild_rate)]
    min_rate: Option<Bytes>,
}

pub(crate) fn run(options: Options, output: Output) -> Result<(), AppError> {
    match options {
        Options::Create(args) => {
            let CreateArgs { array, members, assume_clean, dry_run, force, journal, checksums } =
                args;
            let JournalChoice { journaling, drives: journals } = journal;
            let options = CreateOptions { assume_clean, dry_run, force, journal: journaling };
            let spec = Spec::of_drives(&array, members.len()).map_err(AppError::usage)?;
            let spec = if checksums { spec.with_checksums() } else { Ok(spec) };
            let spec = spec.map_err(AppError::usage)?;
            output.print(&create(&Create { spec, members, journals, options })?)
        }
        Options::List(ListArgs { folders }) => {
            let listed = list(&folders)?;
            output.print(&listed)?;
            listed.health().check()
        }
        Options::Assemble(AssembleArgs { drives, array, allowed }) => {
            let ask = Assemble { drives: Drives::of(drives, array)?, allowed: allowed.allowed() };
            let would = would_serve(&ask)?;
            output.print(&would)?;
            would.health().check()
        }
        Options::Check(CheckArgs { drives, kernel }) => {
            let drives = drives.drives();
            let checked = check(&Check { drives, kernel }, progress::bars(output).as_ref())?;
            output.print(&checked)?;
            checked.health().check()
        }
        Options::Salvage(SalvageArgs { drives, to, kernel }) => {
            let ask = Salvage { drives: drives.drives(), to, kernel };
            let salvaged = salvage(&ask, progress::bars(output).as_ref())?;
            output.print(&salvaged)?;
            salvaged.trouble().map_or(Ok(()), |trouble| Err(AppError::trouble(trouble)))
        }
        Options::RepairSuperblock(RepairArgs { members }) => {
            output.print(&repair_superblocks(&members)?)
        }
        Options::Upgrade(UpgradeArgs { drives, to }) => {
            output.print(&upgrade(&Upgrade { drives: drives.drives(), to })?)
        }
        Options::Serve(args) => run_serve(*args, output),
        Options::Status(StatusArgs { array, watch: None, damaged: true, .. }) => {
            output.print(ask(&array, &Verb::Damaged)?.as_ref())
        }
        Options::Status(StatusArgs { array, watch: None, damaged: false, check, verbose }) => {
            let detail = if verbose { Detail::Verbose } else { Detail::Brief };
            let (shown, health) = status(&array, detail)?;
            output.print(shown.as_ref())?;
            if check { health.check() } else { Ok(()) }
        }
        Options::Status(StatusArgs { array, watch: Some(every), .. }) => {
            watch_status(&Watch { array, every }, output)
        }
        Options::Events(EventsArgs { array, follow }) => show_events(array, follow, output),
        Options::Scrub(ScrubArgs { array, what }) => {
            let what = match what.as_str() {
                "stop" => ScrubWhat::Stop,
                "status" => ScrubWhat::Status,
                _ => ScrubWhat::Start,
            };
            output.print(ask(&array, &Verb::Scrub { what })?.as_ref())
        }
        Options::Ask(Ask { array, verb }) => output.print(ask(&array, &verb)?.as_ref()),
    }
}

/// On a terminal each look takes the place of the one before.
fn watch_status(ask: &Watch, output: Output) -> Result<(), AppError> {
    let is_redrawn = !output.json && std::io::stdout().is_terminal();
    let stop = stop_on_signals()?;
    let mut is_first = true;
    let has_ended = watch(ask, &stop, &mut |look| {
        let Some(look) = look else {
            let is_over = levelhead_terminal::is_unread();
            return Ok(if is_over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) });
        };
        let between = match (is_redrawn, output.json || is_first) {
            (true, _) => CLEAR,
            (false, true) => "",
            (false, false) => "\n",
        };
        is_first = false;
        output.print_after(between, look)
    })?;
    if has_ended {
        levelhead_terminal::say("levelhead: the array has stopped");
    }
    Ok(())
}

/// Moves to the top of the terminal, and takes away what is there (ECMA-48: CUP, ED).
const CLEAR: &str = "\x1b[H\x1b[2J";

fn show_events(array: PathBuf, follow: bool, output: Output) -> Result<(), AppError> {
    let stop = if follow { stop_on_signals()? } else { Stop::new() };
    events(&Events { array, follow }, &stop, &mut |heard| match heard {
        Heard::Event(event) => output.print_on(event),
        Heard::Sentence(sentence) => {
            levelhead_terminal::say(&format!("levelhead: {sentence}"));
            Ok(ControlFlow::Continue(()))
        }
        Heard::Nothing if levelhead_terminal::is_unread() => Ok(ControlFlow::Break(())),
        Heard::Nothing => Ok(ControlFlow::Continue(())),
    })
}

fn run_serve(args: ServeArgs, output: Output) -> Result<(), AppError> {
    let ask = Serve {
        drives: args.drives.drives(),
        spares: args.spare,
        nbd: args.nbd.listen()?,
        control: args.control,
        policy: args.policy,
        window: args.window,
        order: args.host_order,
        allowed: args.allowed.allowed(),
        io: args.io,
        fast_fail: args.fast_fail,
        on_event: args.on_event,
        kernel: args.kernel,
        seed: args.seed,
        lost_after: args.lost_after,
        shared: args.shared,
        verify: args
            .verify_writes
            .0
            .map(|verify| VerifySettings { wait: args.verify_wait, ..verify }),
        metrics: args.metrics,
    };
    let (stop, begun) = stop_once_begun()?;
    // Printed on threads of their own: what reads them may be slow, or read nothing at all.
    let out = Printer::start(move |serving: Serving| {
        // It serves all the same.
        drop(output.print(&serving));
    })?;
    let err = Printer::start(|line: String| levelhead_terminal::say(&line))?;
    let manager = Manager::of_environment(&|name| std::env::var_os(name));
    let manager = manager.unwrap_or_else(|sentence| {
        drop(err.lines().send(format!("levelhead: {sentence}")));
        None
    });
    let is_managed = manager.is_some();
    let watchdog = manager.as_ref().and_then(Manager::watchdog);
    let notices = Printer::start(move |notice: Notice| {
        if let Some(manager) = &manager {
            manager.tell(&notice);
        }
    })?;
    let told = notices.lines();
    let (to_journal, lines) = (journal::is_standard_error(), err.lines());
    let audience = Audience {
        begun: Box::new(move || begun.note()),
        ready: &mut |serving| drop(out.lines().send(serving.clone())),
        tell: Box::new(move |priority, sentence| {
            drop(lines.send(journal::line(to_journal, priority, sentence)));
        }),
        progress: progress::bars(output),
        service: is_managed
            .then(|| Service { tell: Box::new(move |notice| drop(told.send(notice))), watchdog }),
    };
    let served = serve(&ask, &stop, audience);
    let by = Instant::now() + printer::FAREWELL;
    out.end(by);
    err.end(by);
    notices.end(by);
    served
}
