//! What takes too long for every change, in parts that are run one by one or all together.
//!
//! | part | what it does | what it needs |
//! |---|---|---|
//! | `corruption` | 10^5 stripes with silent corruption | |
//! | `swarms` | the swarms in virtual time, with ever new seeds | |
//! | `search` | every order, power cut and loss that small arrays may meet, as far as the time goes | git |
//! | `model` | every state of the model of the membership and the log, of larger arrays than the tests take | |
//! | `mutants` | small changes of the array's durable core, all in one build: which of them crash swarms notice | git |
//! | `sequences` | a filesystem's images at every command of every sequence of one operation and of two | |
//! | `kernels` | every kernel of the decoder in a drive against the one that defines them, over a thousand frames | |
//! | `fio` | servers that are killed under fio and under clients that keep book, on four layouts; every other one reads back what it has written | fio |
//! | `pauses` | a server that is stopped under fio for longer than a drive may be unresponsive, twenty times | fio |
//! | `clients` | requests that no client should send, two hundred clients at once, clients that read nothing | python3-libnbd |
//! | `files` | suites of other projects over mounted filesystems | root, fio, stress-ng; users nobody and tests |
//! | `guest` | file systems on arrays in a virtual machine, by the kernel's NBD client and the systemd unit | root, debootstrap, qemu-system-x86 |
//! | `pages` | pages of reports with a planted fault each | chromium |
//! | `rtl` | the erasure engine in hardware: planted faults, two codes under every tool; all eight: `cargo xtask rtl` | iverilog, verilator, yosys |
//! | `fleets` | made-up fleets of 200 million drive hours against the field's tables, and a thousand healthy groups in which no drive is to be found | |
//! | `watch` | what a watch over a hundred drives costs, for ten minutes | |
//! | `fleet` | the queries of `levelhead-lab fleet sql` in DataFusion and DuckDB against the kernel, over 23 million drive hours | python3; for DuckDB its module duckdb, else it is left out |
//! | `upgrades` | what the build of an earlier commit made and used, today's opens and uses, and the other way round | nbdcopy, git |
//! | `dist` | what `cargo xtask dist` makes, installed in an empty folder, a venv and a new Debian, and used there | musl-gcc, qemu-io; debootstrap |
//! | `fuzz` | every fuzz target | a nightly toolchain |
//!
//! A part whose programs are not there says so, and counts as failed; the others go on.

mod files;
mod fleet;
mod fuzz;
mod guest;
mod mutants;
mod needs;

use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use anyhow::ensure;
use clap::{Args, ValueEnum};

use crate::programs::{cargo, good, target_folder};
use needs::Need;

/// Which parts, and how much of each.
#[derive(Args)]
pub(crate) struct Wish {
    /// The parts to run, all of them if none is named
    #[arg(value_enum)]
    parts: Vec<Part>,
    /// For how long the swarms run, the search, each fuzz target, and the mutants, their build included; by default 10, for the search 15, for the mutants 20
    #[arg(long)]
    minutes: Option<u64>,
    /// The first seed of the swarms, also under mutants, and the seed of the guest's file systems
    #[arg(long, default_value_t = 1_000_000)]
    first: u64,
    /// How often a server is killed on each layout
    #[arg(long, default_value_t = 100)]
    kills: u64,
    /// How many seeds fsx has on each filesystem
    #[arg(long, default_value_t = 10)]
    seeds: u64,
    /// The fuzz targets to run, all of them if none is named
    #[arg(long)]
    target: Vec<String>,
    /// Where the guest's Debian comes from; by default from where this machine's does
    #[arg(long)]
    mirror: Option<String>,
    #[command(flatten)]
    mutants: mutants::Options,
}

impl Wish {
    /// For how long a part runs that is run by time.
    fn minutes(&self, default: u64) -> u64 {
        self.minutes.unwrap_or(default)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// 10^5 stripes with silent corruption
    Corruption,
    /// The swarms in virtual time
    Swarms,
    /// Every order, power cut and loss that small arrays may meet
    Search,
    /// Every state of the model of the membership and the log
    Model,
    /// Small changes of the array's durable core, and which of them crash swarms notice
    Mutants,
    /// Images of a filesystem at every command of every sequence of one operation and of two
    Sequences,
    /// Every kernel of the decoder in a drive, over a thousand frames
    Kernels,
    /// Servers killed under fio
    Fio,
    /// Servers stopped for longer than a drive may be unresponsive
    Pauses,
    /// Requests that no client should send, and clients that read nothing
    Clients,
    /// Suites of other projects over mounted filesystems
    Files,
    /// File systems on arrays in a virtual machine
    Guest,
    /// Pages of reports with a planted fault each
    Pages,
    /// The erasure engine in hardware: planted faults, and two codes under every tool
    Rtl,
    /// Made-up fleets against the field's tables, and healthy groups in which no drive is to be found
    Fleets,
    /// What a watch over a hundred drives costs
    Watch,
    /// The fleet's queries in SQL engines
    Fleet,
    /// Arrays and filesystems between the build of an earlier commit and today's
    Upgrades,
    /// What users install, installed and used
    Dist,
    /// Every fuzz target
    Fuzz,
}

impl Part {
    fn name(self) -> &'static str {
        match self {
            Self::Corruption => "corruption",
            Self::Swarms => "swarms",
            Self::Search => "search",
            Self::Model => "model",
            Self::Mutants => "mutants",
            Self::Sequences => "sequences",
            Self::Kernels => "kernels",
            Self::Fio => "fio",
            Self::Pauses => "pauses",
            Self::Clients => "clients",
            Self::Files => "files",
            Self::Guest => "guest",
            Self::Pages => "pages",
            Self::Rtl => "rtl",
            Self::Fleets => "fleets",
            Self::Watch => "watch",
            Self::Fleet => "fleet",
            Self::Upgrades => "upgrades",
            Self::Dist => "dist",
            Self::Fuzz => "fuzz",
        }
    }

    fn needs(self) -> &'static [Need] {
        match self {
            Self::Corruption
            | Self::Swarms
            | Self::Search
            | Self::Model
            | Self::Mutants
            | Self::Sequences
            | Self::Kernels
            | Self::Fleets
            | Self::Watch
            | Self::Fuzz => &[],
            Self::Fio | Self::Pauses => &[Need { program: "fio", package: "fio" }],
            Self::Pages => &[Need { program: "chromium", package: "chromium" }],
            Self::Rtl => &[
                Need { program: "iverilog", package: "iverilog" },
                Need { program: "verilator", package: "verilator" },
                Need { program: "yosys", package: "yosys" },
            ],
            Self::Clients => &[Need { program: "nbdsh", package: "python3-libnbd" }],
            Self::Files => files::NEEDS,
            Self::Fleet => &[Need { program: "python3", package: "python3" }],
            Self::Guest => guest::NEEDS,
            Self::Upgrades => &[Need { program: "nbdcopy", package: "libnbd-bin" }],
            Self::Dist => &[
                Need { program: "musl-gcc", package: "musl-tools" },
                Need { program: "qemu-io", package: "qemu-utils" },
                Need { program: "debootstrap", package: "debootstrap" },
            ],
        }
    }
}

/// Runs the parts one after the other; good if all of them were.
pub(crate) fn run(root: &Path, wish: &Wish) -> ExitCode {
    let all = Part::value_variants();
    let parts = if wish.parts.is_empty() { all } else { &wish.parts };
    let mut ends = Vec::new();
    for part in parts {
        println!("soak: {} begins", part.name());
        let begun = Instant::now();
        let end = needs::check(part.needs()).and_then(|()| run_part(root, *part, wish));
        ends.push((part.name(), begun.elapsed(), end));
    }
    for (name, time, end) in &ends {
        println!("soak: {}", told(name, *time, end));
    }
    let is_good = ends.iter().all(|(_, _, end)| end.is_ok());
    if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn told(name: &str, time: Duration, end: &anyhow::Result<()>) -> String {
    let seconds = time.as_secs();
    match end {
        Ok(()) => format!("{name}: good, {seconds} s"),
        Err(error) => format!("{name}: FAILED, {seconds} s: {error:#}"),
    }
}

fn run_part(root: &Path, part: Part, wish: &Wish) -> anyhow::Result<()> {
    match part {
        Part::Corruption => {
            let package = ["--package", "levelhead-array", "--test", "array"];
            test(root, &package, "soak_", &[])
        }
        Part::Swarms => {
            let (minutes, first) = (wish.minutes(10).to_string(), wish.first.to_string());
            let example =
                ["run", "--release", "--package", "levelhead-torture", "--example", "soak"];
            let options = ["--", "--minutes", &minutes, "--first", &first];
            good(cargo(root).args(example).args(options))
        }
        Part::Search => {
            let seconds = (60 * wish.minutes(15)).to_string();
            let example =
                ["run", "--release", "--package", "levelhead-torture", "--example", "search"];
            good(cargo(root).args(example).args(["--", "all", &seconds]))
        }
        Part::Model => {
            test(root, &["--package", "levelhead-array", "--test", "model"], "soak_", &[])
        }
        Part::Mutants => mutants::run(root, &wish.mutants, wish.minutes(20), wish.first),
        Part::Sequences => sequences(root),
        Part::Kernels => {
            let package = ["test", "--release", "--package", "levelhead-ldpc", "--lib"];
            let mut command = cargo(root);
            command
                .args(package)
                .args(["--", "kernels_give_the_levels"])
                .env("LDPC_FRAMES", "1000");
            good(&mut command)
        }
        Part::Fio => {
            let package = ["--package", "levelhead-cli", "--test", "soak"];
            test(root, &package, "soak_fio", &[("KILLS", wish.kills.to_string())])
        }
        Part::Pauses => {
            let package = ["--package", "levelhead-cli", "--test", "soak"];
            test(root, &package, "soak_pauses", &[])
        }
        Part::Clients => {
            let package = ["--package", "levelhead-cli", "--test", "soak"];
            test(root, &package, "soak_clients", &[])
        }
        Part::Files => files::run(root, wish.seeds),
        Part::Guest => guest::run(root, wish.first, wish.mirror.as_deref()),
        Part::Pages => test(root, &["--package", "levelhead-cli-lab", "--test", "pages"], "", &[]),
        Part::Rtl => test(root, &["--package", "levelhead-rtl", "--example", "tools"], "", &[]),
        // Every test of the crate that is too long.
        Part::Fleets => test(root, &["--package", "levelhead-fleet", "--lib"], "", &[]),
        Part::Watch => {
            let package = ["--package", "levelhead-cli", "--test", "it"];
            test(root, &package, "watch::cost_", &[])
        }
        Part::Fleet => fleet::run(root),
        Part::Upgrades => upgrades(root),
        Part::Dist => {
            crate::dist::run(root, &[])?;
            let dist = target_folder(root)?.join("dist");
            let mut bash = Command::new("bash");
            bash.arg(root.join("xtask/src/soak/dist.sh")).arg(&dist).arg(dist.join("soak"));
            good(bash.args(wish.mirror.as_deref()))
        }
        Part::Fuzz => fuzz::run(root, wish.minutes(10), &wish.target),
    }
}

/// The commit whose build is the old program: the first whose formats are those that today's program must open.
const OLD: &str = "3226ded5";

fn upgrades(root: &Path) -> anyhow::Result<()> {
    let target = target_folder(root)?;
    let (tree, built) = (target.join("upgrades/tree"), target.join("upgrades/target"));
    if !tree.exists() {
        let mut git = Command::new("git");
        git.current_dir(root).args(["worktree", "add", "--detach"]).arg(&tree).arg(OLD);
        good(&mut git)?;
    }
    good(cargo(&tree).args(["build", "--release"]).env("CARGO_TARGET_DIR", &built))?;
    good(cargo(root).args(["build", "--release", "--package", "levelhead-cli"]))?;
    let mut bash = Command::new("bash");
    bash.arg(root.join("xtask/src/soak/upgrades.sh"));
    good(bash.arg(built.join("release/levelhead")).arg(target.join("release/levelhead")))
}

/// All of them, a share of them on each core.
fn sequences(root: &Path) -> anyhow::Result<()> {
    let example = ["--release", "--package", "levelhead-torture", "--example", "files"];
    good(cargo(root).arg("build").args(example))?;
    let shares = std::thread::available_parallelism()?.get();
    let mut running = Vec::new();
    for share in 0..shares {
        let options = ["--", "sequences", &share.to_string(), &shares.to_string()];
        running.push(cargo(root).arg("run").args(example).args(options).spawn()?);
    }
    for mut share in running {
        let status = share.wait()?;
        ensure!(status.success(), "a share of the sequences ended with {status}");
    }
    Ok(())
}

/// Runs the tests that are too long for every change and whose names have `name` in them.
fn test(root: &Path, package: &[&str], name: &str, said: &[(&str, String)]) -> anyhow::Result<()> {
    let mut command = cargo(root);
    command.args(["test", "--release"]).args(package).args([
        "--",
        "--ignored",
        "--nocapture",
        name,
    ]);
    command.envs(said.iter().map(|(key, value)| (key, value))).env("CI", "true");
    good(&mut command)
}
