//! Chores of the tree.
//!
//! `cargo xtask tidy` checks what the compiler cannot: which crate may see which, what a core must
//! never touch, where `unsafe` may stand. See [`tidy`].
//!
//! `cargo xtask soak` runs what takes too long for every change. See [`soak`].
//!
//! `cargo xtask rtl` plays the erasure engine in hardware and counts its gates. See [`rtl`].

#![forbid(unsafe_code)]

mod needs;
mod rtl;
mod soak;
mod tidy;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

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
    /// Run what takes too long for every change; exits 1 if any of it has failed
    Soak(soak::Wish),
    /// Simulate the erasure engine in hardware and count its gates; exits 1 if any of it has failed
    Rtl(rtl::Wish),
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
        Chore::Soak(wish) => Ok(soak::run(&workspace_root(), &wish)),
        Chore::Rtl(wish) => rtl::run(&workspace_root(), &wish),
    }
}

/// The folder that holds `xtask`.
fn workspace_root() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.parent().expect("xtask lies in the workspace").to_path_buf()
}
