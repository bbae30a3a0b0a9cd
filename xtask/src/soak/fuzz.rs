//! Every fuzz target for a while, built as cargo-fuzz builds them but without it: a nightly toolchain is all it takes.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail, ensure};

use crate::programs::{good, target_folder};

/// What cargo-fuzz gives the compiler, without a sanitizer: coverage, comparisons, and checks of arithmetic.
const FLAGS: [&str; 8] = [
    "--cfg=fuzzing",
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Cdebug-assertions",
    "-Ccodegen-units=1",
];

/// Bytes of the longest input: eight sectors, and what a target reads before them.
const LEN_MAX: usize = 33_000;

/// MiB and seconds that no input may take.
const MEMORY_MAX: u32 = 1_024;
const TIME_MAX: u32 = 60;

/// Builds all targets and runs those that are wanted one after the other, all of them if none is named.
pub(super) fn run(root: &Path, minutes: u64, wanted: &[String]) -> anyhow::Result<()> {
    let folder = root.join("fuzz");
    let targets = targets(&folder)?;
    let is_wanted = |target: &&String| wanted.is_empty() || wanted.contains(target);
    let unknown: Vec<&String> = wanted.iter().filter(|name| !targets.contains(name)).collect();
    ensure!(unknown.is_empty(), "no such fuzz target: {unknown:?}, there are {targets:?}");
    let built = build(&folder)?;
    let mut failed = Vec::new();
    for target in targets.iter().filter(is_wanted) {
        println!("soak: fuzz target {target} for {minutes} min");
        // What was found stays for the next time; see .gitignore.
        let (corpus, artifacts) =
            (folder.join("corpus").join(target), folder.join("artifacts").join(target));
        std::fs::create_dir_all(&corpus)?;
        std::fs::create_dir_all(&artifacts)?;
        let mut command = Command::new(built.join(target));
        command.arg(corpus).arg(format!("-max_total_time={}", minutes * 60));
        command.args(["-print_final_stats=1", "-verbosity=0"]).arg(format!("-max_len={LEN_MAX}"));
        command.arg(format!("-rss_limit_mb={MEMORY_MAX}")).arg(format!("-timeout={TIME_MAX}"));
        command.arg(format!("-artifact_prefix={}/", artifacts.display()));
        let words = folder.join(format!("{target}.dict"));
        if words.exists() {
            command.arg(format!("-dict={}", words.display()));
        }
        if let Err(error) = good(&mut command) {
            println!(
                "soak: fuzz target {target}: {error}; the input is in {}",
                artifacts.display()
            );
            failed.push(target.as_str());
        }
    }
    ensure!(failed.is_empty(), "with findings: {}", failed.join(" "));
    Ok(())
}

/// The names of the targets: their files'.
fn targets(folder: &Path) -> anyhow::Result<Vec<String>> {
    let mut targets = Vec::new();
    for entry in std::fs::read_dir(folder.join("fuzz_targets"))? {
        let path = entry?.path();
        let name = path.file_stem().and_then(|name| name.to_str());
        targets.push(name.context("a target has a name")?.to_owned());
    }
    targets.sort_unstable();
    Ok(targets)
}

/// The folder of the built targets.
fn build(folder: &Path) -> anyhow::Result<PathBuf> {
    let nightly = ["run", "nightly"];
    let has_nightly = Command::new("rustup").args(nightly).args(["rustc", "-vV"]).output();
    let Ok(version) = has_nightly.as_ref().map(|output| String::from_utf8_lossy(&output.stdout))
    else {
        bail!("rustup is not installed; https://rustup.rs")
    };
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    let host =
        host.context("no nightly toolchain; get one with: rustup toolchain install nightly")?;
    // With a target named, programs that only the build runs are not changed by the flags.
    good(
        Command::new("rustup")
            .args(nightly)
            .args(["cargo", "build", "--release", "--bins", "--target", host])
            .env("RUSTFLAGS", FLAGS.join(" "))
            .env_remove("CARGO")
            .current_dir(folder),
    )?;
    Ok(target_folder(folder)?.join(host).join("release"))
}
