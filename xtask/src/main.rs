//! Chores of the tree.
//!
//! `cargo xtask tidy` checks what the compiler cannot: which crate may see which, what a core must
//! never touch, where `unsafe` may stand. See [`tidy`].
//!
//! `cargo xtask dist` makes what users install. See [`dist`].
//!
//! `cargo xtask doctest` runs the commands of README and docs. See [`doctest`].
//!
//! `cargo xtask soak` runs what takes too long for every change. See [`soak`].
//!
//! `cargo xtask rtl` plays the erasure engine in hardware and counts its gates, by `crates/rtl/examples/tools`.

#![forbid(unsafe_code)]

mod dist;
mod doctest;
mod programs;
mod soak;
mod tidy;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::Context;
use clap::{Args, Parser, Subcommand};

/// Chores of the tree.
#[derive(Parser)]
struct Xtask {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Check the rules of the house; prints one line a finding, exits 1 if there is one
    Tidy,
    /// Make what users install: an archive of static programs, a Debian package, a Python wheel
    Dist {
        /// Which of them; all if none is named
        #[arg(value_enum)]
        parts: Vec<dist::Part>,
    },
    /// Run every command block of README and docs, or of these pages, and compare the numbers of studies that they quote with
    /// quick runs; exits 1 if a page is wrong
    Doctest {
        /// Markdown files
        pages: Vec<PathBuf>,
        /// Only this
        #[arg(long)]
        only: Option<doctest::Part>,
    },
    /// Run what takes too long for every change; exits 1 if any of it has failed
    Soak(soak::Wish),
    /// Simulate the erasure engine in hardware and count its gates; exits 1 if any of it has failed
    Rtl(Engines),
}

/// Which engines, and how much of them.
#[derive(Args)]
struct Engines {
    /// The codes, as in 9,246; all eight of the paper's table if none is named
    #[arg(long = "code", value_name = "REDUNDANT,DATA")]
    codes: Vec<String>,
    /// Count gates and measure throughput only
    #[arg(long)]
    table: bool,
    /// Print the table as JSON
    #[arg(long)]
    json: bool,
    /// Keep the table in the tree, where the study lec.table2 has it from; of all codes only
    #[arg(long, conflicts_with = "codes")]
    keep: bool,
    /// Where random bytes and erasures come from
    #[arg(long, default_value_t = 7)]
    seed: u64,
}

fn main() -> anyhow::Result<ExitCode> {
    match Xtask::parse().chore {
        Chore::Tidy => {
            let tree = tidy::Tree::read(&workspace_root())?;
            let findings = tidy::check(&tree);
            println!("tidy: {}", tidy::counts(&tree));
            for finding in &findings {
                println!("{finding}");
            }
            if findings.is_empty() {
                println!("tidy: {} files, nothing found", tree.files.len());
                return Ok(ExitCode::SUCCESS);
            }
            eprintln!("tidy: {} found in {} files", findings.len(), tree.files.len());
            Ok(ExitCode::FAILURE)
        }
        Chore::Dist { parts } => dist::run(&workspace_root(), &parts).map(|()| ExitCode::SUCCESS),
        Chore::Doctest { pages, only } => {
            let is_good = doctest::run(&workspace_root(), &pages, only)?;
            Ok(if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
        }
        Chore::Soak(wish) => Ok(soak::run(&workspace_root(), &wish)),
        Chore::Rtl(engines) => rtl(&engines),
    }
}

/// The engines in hardware: built and run apart, since this program builds without the house.
fn rtl(engines: &Engines) -> anyhow::Result<ExitCode> {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(workspace_root());
    cargo.args([
        "run",
        "--quiet",
        "--release",
        "--package",
        "levelhead-rtl",
        "--example",
        "tools",
        "--",
    ]);
    cargo.args(engines.codes.iter().flat_map(|code| ["--code", code]));
    for (option, is_set) in
        [("--table", engines.table), ("--json", engines.json), ("--keep", engines.keep)]
    {
        cargo.args(is_set.then_some(option));
    }
    cargo.args(["--seed", &engines.seed.to_string()]);
    let status = cargo.status().context("cargo does not start")?;
    Ok(ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1)))
}

/// The folder that holds `xtask`.
fn workspace_root() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.parent().expect("xtask lies in the workspace").to_path_buf()
}
