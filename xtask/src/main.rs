//! Chores of the tree.
//!
//! `cargo xtask tidy` checks what the compiler cannot: which crate may see which, what a core must
//! never touch, where `unsafe` may stand. See [`tidy`].
//!
//! `cargo xtask soak` runs what takes too long for every change: 10^5 stripes with silent corruption, and swarms with
//! ever new seeds.

#![forbid(unsafe_code)]

mod tidy;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use clap::{Parser, Subcommand};

/// Chores of the tree.
#[derive(Parser)]
struct Args {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Check the rules of the house; prints one line a finding, exits 1 if there is one
    Tidy,
    /// Run the swarms with ever new seeds; prints each seed that fails, exits 1 if there is one
    Soak {
        /// For how long
        #[arg(long, default_value_t = 10)]
        minutes: u64,
        /// The first seed
        #[arg(long, default_value_t = 1_000_000)]
        first: u64,
    },
}

fn main() -> anyhow::Result<ExitCode> {
    match Args::parse().chore {
        Chore::Tidy => {
            let tree = tidy::Tree::read(&workspace_root())?;
            let findings = tidy::check(&tree);
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
        Chore::Soak { minutes, first } => soak(minutes, first),
    }
}

/// Builds the swarms as they run fastest, and runs them, after the tests that are too long for every change.
fn soak(minutes: u64, first: u64) -> anyhow::Result<ExitCode> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let tests = ["test", "--release", "--package", "levelhead-array", "--test", "array", "--"];
    let status = Command::new(&cargo)
        .args(tests)
        .args(["--ignored", "soak_"])
        .current_dir(workspace_root())
        .status()?;
    if !status.success() {
        return Ok(ExitCode::FAILURE);
    }
    let build = ["run", "--release", "--package", "levelhead-lab", "--example", "soak", "--"];
    let (minutes, first) = (minutes.to_string(), first.to_string());
    let status = Command::new(cargo)
        .args(build)
        .args(["--minutes", &minutes, "--first", &first])
        .current_dir(workspace_root())
        .status()?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The folder that holds `xtask`.
fn workspace_root() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.parent().expect("xtask lies in the workspace").to_path_buf()
}
