//! Mutation score: how many small changes of the durable core crash swarms notice.
//!
//! ```text
//!   sources --> list ([`sites`], [`named`]) --> drawn by a seed --> one build with all ([`splice`], [`build`])
//!                                                                       | MUTANT=n, a process each ([`run`])
//!                                                                       v
//!                                                   caught by an aim | missed | unviable
//! ```
//!
//! Mutants are made by the rules of `cargo-mutants`, not chosen. A build for each would take a day; all are in one program and
//! an environment variable says which is on. One that does not compile is unviable. Survivors get more images in rounds
//! until the time is over. One that does the same as the source can be named in `equal.txt`, with the argument; it is
//! counted apart.

mod build;
mod list;
mod named;
mod run;
mod sites;
mod splice;
mod values;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use clap::Args;

use self::build::Copy;
use self::list::List;
use self::run::{Fate, Runner};
use crate::programs::target_folder;

/// Which mutants, and how much of each.
#[derive(Args)]
#[command(next_help_heading = "Mutants")]
pub(super) struct Options {
    /// How many mutants are drawn that compile, all of them if there are no more
    #[arg(long, default_value_t = usize::MAX, hide_default_value = true)]
    count: usize,
    /// The seed by which mutants are drawn
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The most crash images of one mutant
    #[arg(long, default_value_t = 1_000_000)]
    images: u64,
    /// Only mutants with this in their names
    #[arg(long)]
    only: Option<String>,
    /// Only those that an earlier result says were missed, and first under the tests of the crate
    #[arg(long, value_name = "RESULT.JSON")]
    survivors: Option<PathBuf>,
    /// Print the names of all mutants, and run none
    #[arg(long)]
    list: bool,
    /// Write what became of each mutant to this file, as JSON
    #[arg(long)]
    json: Option<PathBuf>,
}

/// Runs mutants for this many minutes, with seeds from `first` on, and prints what was noticed.
pub(super) fn run(root: &Path, options: &Options, minutes: u64, first: u64) -> anyhow::Result<()> {
    let until = Instant::now() + Duration::from_secs(60 * minutes);
    let list = List::read(root)?;
    if options.list {
        for number in list.numbers() {
            let mutant = list.mutant(number);
            println!("{number}: {} (line {})", mutant.name, mutant.line);
        }
        return Ok(());
    }
    let survivors = options.survivors.as_deref().map(missed_of).transpose()?;
    let is_meant = |number: &u32| {
        let name = &list.mutant(*number).name;
        options.only.as_ref().is_none_or(|text| name.contains(text))
            && survivors.as_ref().is_none_or(|missed| missed.contains(name))
    };
    let mut drawn = list.drawn(options.seed).into_iter().filter(is_meant).peekable();
    println!(
        "mutants: commit {}, drawn by seed {}, swarms from seed {first} on",
        commit(root)?,
        options.seed
    );
    let copy = Copy::new(root, &target_folder(root)?.join("mutants"))?;
    let (mut viable, mut asked) = (BTreeSet::new(), BTreeSet::new());
    while viable.len() < options.count && drawn.peek().is_some() {
        // One in ten does not compile.
        let more = (options.count - viable.len()).saturating_mul(10).div_ceil(9);
        let more: Vec<u32> = drawn.by_ref().take(more).collect();
        asked.extend(&more);
        viable.extend(more);
        viable = copy.viable(&list, viable)?;
    }
    ensure!(!viable.is_empty(), "no mutant is left to be run");
    let program = copy.runner()?;
    let images_max = options.images;
    let (tests, folder) = (copy.tests()?, copy.folder());
    let runner = Runner {
        program: &program,
        tests: &tests,
        folder: &folder,
        list: &list,
        first,
        images_max,
        tests_first: survivors.is_some(),
        until,
    };
    runner.check_baseline()?;
    let (equal, viable): (BTreeSet<u32>, BTreeSet<u32>) =
        viable.iter().partition(|&&number| list.mutant(number).equal.is_some());
    let fates = runner.all(&viable)?;
    let unviable: BTreeSet<u32> = asked
        .into_iter()
        .filter(|number| !viable.contains(number) && !equal.contains(number))
        .collect();
    print(&list, &fates, &unviable, &equal);
    match &options.json {
        None => Ok(()),
        Some(path) => Ok(fs::write(path, json(&list, &fates, &unviable, &equal)?)?),
    }
}

/// The names of those that a result says were missed.
fn missed_of(result: &Path) -> anyhow::Result<BTreeSet<String>> {
    let bad = || format!("{} is no result of mutants", result.display());
    let all: Vec<serde_json::Value> =
        serde_json::from_str(&fs::read_to_string(result).with_context(bad)?).with_context(bad)?;
    let missed = all.iter().filter(|one| one["fate"].get("missed").is_some());
    Ok(missed.filter_map(|one| one["name"].as_str().map(str::to_owned)).collect())
}

fn commit(root: &Path) -> anyhow::Result<String> {
    let mut git = Command::new("git");
    let output = git.current_dir(root).args(["describe", "--always", "--dirty"]).output()?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// How many of a room's mutants ended in which way.
#[derive(Default)]
struct Score {
    caught: usize,
    missed: usize,
    unviable: usize,
    equal: usize,
}

fn print(
    list: &List,
    fates: &BTreeMap<u32, Fate>,
    unviable: &BTreeSet<u32>,
    equal: &BTreeSet<u32>,
) {
    let mut rooms: BTreeMap<&str, Score> = BTreeMap::new();
    for &number in unviable {
        let mutant = list.mutant(number);
        rooms.entry(mutant.room).or_default().unviable += 1;
        println!("unviable  {} (line {})", mutant.name, mutant.line);
    }
    for &number in equal {
        let mutant = list.mutant(number);
        rooms.entry(mutant.room).or_default().equal += 1;
        let why = mutant.equal.unwrap_or_default();
        println!("equal     {} (line {}): {why}", mutant.name, mutant.line);
    }
    for (&number, fate) in fates {
        let mutant = list.mutant(number);
        let score = rooms.entry(mutant.room).or_default();
        if let Fate::Caught { aim, seed, images, by, how } = fate {
            score.caught += 1;
            let (name, line) = (&mutant.name, mutant.line);
            println!(
                "caught    {name} (line {line}): {aim}, seed {seed}, {images} images, {by}: {how}"
            );
        }
    }
    for (&number, fate) in fates {
        let mutant = list.mutant(number);
        if let Fate::Missed { images } = fate {
            rooms.entry(mutant.room).or_default().missed += 1;
            println!("missed    {} (line {}): {images} images", mutant.name, mutant.line);
        }
    }
    let mut all = Score::default();
    println!(
        "{:<14} {:>7} {:>7} {:>9} {:>6} {:>7}",
        "room", "caught", "missed", "unviable", "equal", "score"
    );
    let line = |name: &str, score: &Score| {
        let Score { caught, missed, unviable, equal } = score;
        let percent = 100.0 * *caught as f64 / (caught + missed).max(1) as f64;
        println!("{name:<14} {caught:>7} {missed:>7} {unviable:>9} {equal:>6} {percent:>6.1}%");
    };
    for (name, score) in &rooms {
        line(name, score);
        all.caught += score.caught;
        all.missed += score.missed;
        all.unviable += score.unviable;
        all.equal += score.equal;
    }
    line("all", &all);
}

fn json(
    list: &List,
    fates: &BTreeMap<u32, Fate>,
    unviable: &BTreeSet<u32>,
    equal: &BTreeSet<u32>,
) -> anyhow::Result<String> {
    let entry = |number: u32, fate: serde_json::Value| {
        let mutant = list.mutant(number);
        serde_json::json!({ "name": mutant.name, "line": mutant.line, "room": mutant.room, "fate": fate })
    };
    let mut all = Vec::new();
    all.extend(unviable.iter().map(|&number| entry(number, "unviable".into())));
    all.extend(equal.iter().map(|&number| entry(number, "equal".into())));
    all.extend(fates.iter().map(|(&number, fate)| {
        let fate = match fate {
            Fate::Missed { images } => serde_json::json!({ "missed": { "images": images } }),
            Fate::Caught { aim, seed, images, by, how } => serde_json::json!({ "caught": {
                "aim": aim, "seed": seed, "images": images, "by": by, "how": how,
            } }),
        };
        entry(number, fate)
    }));
    Ok(serde_json::to_string_pretty(&all)?)
}
