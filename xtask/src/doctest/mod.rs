//! Every command block of README and docs, run as it stands, and every number of a study that they quote, beside a quick run of
//! it ([`numbers`]): `cargo xtask doctest [PAGE..]`.
//!
//! ```text
//!   page --> blocks --> one bash a page, in an empty folder, block after block, each within a limit
//!              |                |
//!              |                '--> what it printed, beside what the page says that it prints
//!              '--> those that need more than this machine has: counted, with the reason
//! ```
//!
//! A block of commands is fenced as `sh`, or indented with a command in its first line. A block fenced as `text` behind one is
//! what that prints: compared line by line by its shape, that is with numbers, UUIDs and times left out; `...` stands for any
//! lines. Comments before a block say what the reader does by common sense:
//!
//! ```text
//!   <!-- doctest: skip WHY -->           it is not run, and counted: hardware, network, a summary of options, an hour
//!   <!-- doctest: with WORD=TEXT .. -->  placeholders of this block
//!   <!-- doctest: setup COMMANDS -->     what the reader has by now; not shown
//!   <!-- doctest: exit N -->             it is meant to end with this code
//! ```
//!
//! In the environment, `LEVELHEAD_TREE` is the root of the workspace.

mod numbers;
mod page;
mod shape;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, bail, ensure};
use clap::ValueEnum;

use crate::programs::{cargo, good, target_folder};
use page::{Block, Fate};

/// What a page's blocks may take together, in seconds.
const PAGE_MAX: u32 = 600;

/// What of a page is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Part {
    /// Command blocks
    Blocks,
    /// Numbers of studies
    Numbers,
}

/// What has been run.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    run: usize,
    skipped: usize,
    failed: usize,
}

/// Runs the blocks of these pages, or of all, and the studies that they quote; true if each did what its page says.
pub(crate) fn run(root: &Path, pages: &[PathBuf], only: Option<Part>) -> anyhow::Result<bool> {
    let pages = if pages.is_empty() { all_pages(root)? } else { pages.to_vec() };
    good(cargo(root).args([
        "build",
        "--release",
        "-p",
        "levelhead-cli",
        "-p",
        "levelhead-cli-lab",
    ]))?;
    let programs = target_folder(root)?.join("release");
    let is_wanted = |part| only.is_none_or(|only| only == part);
    let are_blocks_good = !is_wanted(Part::Blocks) || run_blocks(root, &pages, &programs)?;
    let are_numbers_good = !is_wanted(Part::Numbers) || check_numbers(root, &pages, &programs)?;
    Ok(are_blocks_good && are_numbers_good)
}

fn run_blocks(root: &Path, pages: &[PathBuf], programs: &Path) -> anyhow::Result<bool> {
    let mut tally = Tally::default();
    for page in pages {
        let start = Instant::now();
        let of_page = run_page(root, page, programs)?;
        let Tally { run, skipped, failed } = of_page;
        if run + skipped > 0 {
            let seconds = start.elapsed().as_secs_f64();
            let page = page.strip_prefix(root).unwrap_or(page).display();
            println!("{page}: {run} run, {skipped} left out, {failed} failed, {seconds:.0} s");
        }
        tally.run += run;
        tally.skipped += skipped;
        tally.failed += failed;
    }
    let Tally { run, skipped, failed } = tally;
    println!("doctest: {run} blocks run, {skipped} left out, {failed} failed");
    Ok(failed == 0)
}

fn check_numbers(root: &Path, pages: &[PathBuf], programs: &Path) -> anyhow::Result<bool> {
    let (mut count, mut studies, mut failed) = (0, 0, 0);
    for page in pages {
        let shown = page.strip_prefix(root).unwrap_or(page).display();
        let text = fs::read_to_string(page).with_context(|| shown.to_string())?;
        let quoted = numbers::quoted(&text).map_err(|error| anyhow::anyhow!("{shown}:{error}"))?;
        studies += quoted.len();
        for list in quoted {
            match list.check(programs) {
                Ok(held) => count += held,
                Err(error) => {
                    println!("{shown}:{}: {error}", list.line);
                    failed += 1;
                }
            }
        }
    }
    println!("doctest: {count} numbers of {studies} studies hold, {failed} studies failed");
    Ok(failed == 0)
}

/// README and the pages of `docs/`.
fn all_pages(root: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut pages: Vec<PathBuf> = fs::read_dir(root.join("docs"))?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()?;
    pages.retain(|page| page.extension().is_some_and(|ending| ending == "md"));
    pages.push(root.join("README.md"));
    pages.sort();
    Ok(pages)
}

fn run_page(root: &Path, path: &Path, programs: &Path) -> anyhow::Result<Tally> {
    let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let shown = path.strip_prefix(root).unwrap_or(path).display().to_string();
    let blocks = page::blocks(&text).map_err(|error| anyhow::anyhow!("{shown}:{error}"))?;
    let mut tally = Tally::default();
    for block in &blocks {
        if let Fate::Skipped(why) = &block.fate {
            println!("{shown}:{}: left out: {why}", block.line);
            tally.skipped += 1;
        }
    }
    let to_run: Vec<&Block> = blocks.iter().filter(|block| block.fate == Fate::Run).collect();
    if to_run.is_empty() {
        return Ok(tally);
    }
    let folder = tempfile::Builder::new().prefix("levelhead-doctest-").tempdir()?;
    let notes = folder.path().join("notes");
    let work = folder.path().join("work");
    for made in [&notes, &work] {
        fs::create_dir(made)?;
    }
    fs::write(notes.join("page.sh"), script(&to_run, &notes)?)?;
    let path_variable = std::env::var("PATH").unwrap_or_default();
    let mut bash = Command::new("timeout");
    bash.args(["--kill-after=10", &PAGE_MAX.to_string(), "bash"]).arg(notes.join("page.sh"));
    bash.current_dir(&work).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    bash.env("PATH", format!("{}:{path_variable}", programs.display()));
    bash.env("LEVELHEAD_TREE", root).env("XDG_RUNTIME_DIR", folder.path());
    bash.status().context("bash cannot be run")?;
    for (at, block) in to_run.iter().enumerate() {
        let said = fs::read(notes.join(format!("{at}.out"))).unwrap_or_default();
        let said = String::from_utf8_lossy(&said).into_owned();
        let code = fs::read_to_string(notes.join(format!("{at}.code"))).unwrap_or_default();
        match verdict(block, code.trim(), &said) {
            Ok(()) => tally.run += 1,
            Err(error) => {
                println!("{shown}:{}: {error}", block.line);
                tally.failed += 1;
                // Those behind it may need what it did not do.
                if code.trim().is_empty() {
                    break;
                }
            }
        }
    }
    Ok(tally)
}

/// One bash for all blocks: they see each other's files, variables and background jobs. A block's commands are read from its own
/// file, so that the first one that fails ends the bash, and what is behind it has no code.
fn script(blocks: &[&Block], notes: &Path) -> anyhow::Result<String> {
    let shown = notes.display();
    let mut script = "trap 'kill $(jobs -p) 2>/dev/null; wait' EXIT\n".to_owned();
    for (at, block) in blocks.iter().enumerate() {
        fs::write(notes.join(format!("{at}.sh")), &block.commands)?;
        script += &block.setup;
        let run = format!(". '{shown}/{at}.sh' > '{shown}/{at}.out' 2>&1");
        // A code that the page announces must not end it.
        script += &match block.code {
            0 => format!("set -e\n{run}\nset +e\necho 0 > '{shown}/{at}.code'\n"),
            _ => format!("{run}\necho $? > '{shown}/{at}.code'\n"),
        };
    }
    Ok(script)
}

fn verdict(block: &Block, code: &str, said: &str) -> anyhow::Result<()> {
    let last: Vec<&str> = said.lines().rev().take(8).collect();
    let last: Vec<&str> = last.into_iter().rev().collect();
    if code.is_empty() {
        bail!("a command failed, or it took too long; it printed\n{}", last.join("\n"));
    }
    ensure!(
        code == block.code.to_string(),
        "ended with {code} and not {}; it printed\n{}",
        block.code,
        last.join("\n")
    );
    match &block.prints {
        Some(expected) => shape::compare(expected, said),
        None => Ok(()),
    }
}
