//! Mutants under the crash swarms: one process each, until it is noticed or the time is over.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};

use super::list::{List, Mutant};

/// Images of the first round; each one has three times as many as that before it.
const IMAGES_FIRST: u64 = 1_000;

/// Tests that are left out, because they take most of the time of all of them: each layout against memory, which is what swarms
/// do, and three that wait for long.
const TESTS_LEFT_OUT: [&str; 4] = [
    "differential::",
    "array_that_stops_right_after_a_resync_says_clean",
    "array_that_is_cut_off_while_it_records_a_wish",
    "write_that_is_inside_the_drive_when_its_region",
];

/// The most processor time of the other tests, in seconds: they take 7 s where nothing is wrong.
const TESTS_SECONDS: u64 = 40;

/// The most time of them by the clock, in seconds. A busy machine does not reach it, and a test that sleeps for ever ends there.
const TESTS_WAIT: u64 = 600;

/// The most address space of a runner, in KiB: a mutant that allocates for ever ends there.
const MEMORY_KIB: u64 = 2 << 20;

/// The aims that come first for mutants of files that begin like this: those that use what is in them most.
const DIRECTED: [(&str, &[&str]); 32] = [
    (
        "tags/",
        &["drive-lost", "checksums-damaged", "drive-good", "drive-rot", "checksums-announced"],
    ),
    ("core/tagging", &["drive-rot", "drive-good-cuts", "checksums"]),
    ("meta/assembly", &["stops", "returns", "copies"]),
    ("meta/damaged", &["listed", "judged", "listed-fills"]),
    ("array/metadata", &["stops", "late-metadata", "unjournaled"]),
    ("meta/regions", &["lacks", "counted", "returns"]),
    ("meta/state", &["lacks", "listed", "returns"]),
    ("store", &["late-metadata", "stops", "fills"]),
    ("meta/", &["late-metadata", "returns", "fills"]),
    ("journal/recovery/judging", &["judged", "listed", "announced"]),
    ("journal/recovery", &["again", "flaky", "judged"]),
    ("journal/verdict", &["again", "judged", "flaky"]),
    ("journal/intents", &["judged", "announced", "held-up"]),
    ("journal/again", &["held-up", "announced", "full"]),
    ("log/at_risk", &["announced", "held-up"]),
    ("journal/beginning", &["full", "announced", "held-up"]),
    ("journal/placer", &["announced", "aside", "long"]),
    ("journal/placing", &["announced", "aside", "long"]),
    ("journal/hedging", &["aside", "held-up"]),
    ("journal/pace", &["aside", "held-up", "full"]),
    ("journal/room", &["full", "aside", "unsynced"]),
    ("journal/ring", &["full", "focused", "long"]),
    ("journal/apart", &["apart"]),
    ("journal/mod", &["tight-fills", "stops", "focused"]),
    ("journal/", &["focused", "losses", "stops"]),
    ("array/background/cop", &["copies", "verified-at-once"]),
    ("array/background/rebuild", &["counted", "fills", "scrubs"]),
    ("array/background/", &["scrubs", "unsynced", "returns"]),
    ("log/", &["focused", "losses", "stops"]),
    ("array/journal", &["focused", "losses", "stops"]),
    ("array/flush", &["listed-fills", "fills", "announced"]),
    ("ops/", &["listed-fills", "fills", "announced"]),
];

/// What became of a mutant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Caught { aim: String, seed: u64, images: u64, by: String, how: String },
    Missed { images: u64 },
}

/// A mutant that was not noticed yet.
#[derive(Clone, Copy)]
struct Left {
    number: u32,
    next: u64,
    images: u64,
    /// Whether the tests of the crate have not noticed it.
    is_tested: bool,
}

/// How mutants are run.
pub(super) struct Runner<'a> {
    pub(super) program: &'a Path,
    /// The tests of the crate, as programs.
    pub(super) tests: &'a [PathBuf],
    /// Where they are run.
    pub(super) folder: &'a Path,
    pub(super) list: &'a List,
    /// The first seed.
    pub(super) first: u64,
    /// The most images of a mutant.
    pub(super) images_max: u64,
    /// Whether the tests come before the first image.
    pub(super) tests_first: bool,
    /// When the run is over.
    pub(super) until: Instant,
}

struct State {
    left: VecDeque<Left>,
    fates: BTreeMap<u32, Fate>,
    /// How many of the round have ended.
    ended: usize,
    told_at: Instant,
}

impl Runner<'_> {
    /// The names of all aims.
    fn aims(&self) -> anyhow::Result<Vec<String>> {
        let output = Command::new(self.program).arg("aims").output()?;
        ensure!(output.status.success(), "{} aims: {}", self.program.display(), output.status);
        let aims: Vec<String> =
            String::from_utf8(output.stdout)?.lines().map(str::to_owned).collect();
        for name in DIRECTED.iter().flat_map(|(_, names)| *names) {
            ensure!(aims.iter().any(|known| known == name), "no aim is called {name} any more");
        }
        Ok(aims)
    }

    /// Makes sure that nothing is noticed while no mutant is on.
    pub(super) fn check_baseline(&self) -> anyhow::Result<()> {
        let aims = self.aims()?;
        let left = Left { number: 0, next: 0, images: 0, is_tested: true };
        if let Err(fate) = self.test(left)? {
            anyhow::bail!("a test fails while no mutant is on: {fate:?}");
        }
        let begun = Instant::now();
        match self.run(left, &aims.join(","), 10 * IMAGES_FIRST)? {
            Ok(left) => {
                let rate = left.images as f64 / begun.elapsed().as_secs_f64() * 60.0;
                println!("mutants: none on: {} images, {rate:.0} a minute", left.images);
                Ok(())
            }
            Err(fate) => anyhow::bail!("noticed while no mutant is on: {fate:?}"),
        }
    }

    /// Runs these in rounds until all were noticed, each has had its images, or the time is over.
    pub(super) fn all(&self, numbers: &BTreeSet<u32>) -> anyhow::Result<BTreeMap<u32, Fate>> {
        let aims = self.aims()?;
        let mut left: Vec<Left> = numbers
            .iter()
            .map(|&number| Left { number, next: 0, images: 0, is_tested: false })
            .collect();
        let (mut fates, mut images) = (BTreeMap::new(), IMAGES_FIRST);
        let is_time = |left: &[Left]| !left.is_empty() && Instant::now() < self.until;
        while is_time(&left) && left.iter().any(|one| one.images < self.images_max) {
            let most = images.min(self.images_max);
            println!("mutants: up to {most} images each of {} mutants", left.len());
            let state = State {
                left: left.iter().copied().collect(),
                fates: std::mem::take(&mut fates),
                ended: 0,
                told_at: Instant::now(),
            };
            let (state, over) = (Mutex::new(state), Mutex::new(Vec::new()));
            let workers = thread::available_parallelism()?.get();
            thread::scope(|scope| -> anyhow::Result<()> {
                let mut running = Vec::new();
                for _ in 0..workers {
                    let work = || self.work(&aims, most, left.len(), &state, &over);
                    running.push(thread::Builder::new().spawn_scoped(scope, work)?);
                }
                for worker in running {
                    worker.join().map_err(|_| anyhow::anyhow!("a worker panicked"))??;
                }
                Ok(())
            })?;
            let state = state.into_inner().unwrap_or_else(PoisonError::into_inner);
            fates = state.fates;
            left = over.into_inner().unwrap_or_else(PoisonError::into_inner);
            left.extend(state.left);
            left.sort_by_key(|one| (one.images, one.number));
            images *= 3;
        }
        fates.extend(left.iter().map(|one| (one.number, Fate::Missed { images: one.images })));
        Ok(fates)
    }

    fn work(
        &self,
        aims: &[String],
        most: u64,
        count: usize,
        state: &Mutex<State>,
        over: &Mutex<Vec<Left>>,
    ) -> anyhow::Result<()> {
        loop {
            let next = state.lock().unwrap_or_else(PoisonError::into_inner).left.pop_front();
            let Some(left) = next else { return Ok(()) };
            if Instant::now() >= self.until {
                over.lock().unwrap_or_else(PoisonError::into_inner).push(left);
                continue;
            }
            let order = order(self.list.mutant(left.number), aims);
            let ended = match (self.tests_first || left.images > 0) && !left.is_tested {
                true => self.test(left)?,
                false => Ok(left),
            };
            let ended = match ended {
                Ok(left) => self.run(left, &order, most.saturating_sub(left.images))?,
                Err(fate) => Err(fate),
            };
            let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
            state.ended += 1;
            match ended {
                Ok(left) => over.lock().unwrap_or_else(PoisonError::into_inner).push(left),
                Err(fate) => drop(state.fates.insert(left.number, fate)),
            }
            if state.told_at.elapsed() > Duration::from_secs(20) || state.ended == count {
                state.told_at = Instant::now();
                println!(
                    "mutants: {} of {count}, {} caught so far",
                    state.ended,
                    state.fates.len()
                );
            }
        }
    }

    /// Runs the tests of the crate with one on: formats, counters and limits are theirs to notice, and not a crash's.
    fn test(&self, left: Left) -> anyhow::Result<Result<Left, Fate>> {
        for program in self.tests {
            let limited = format!(
                "ulimit -t {TESTS_SECONDS}; exec timeout --kill-after 1 {TESTS_WAIT} \"$@\""
            );
            let mut command = Command::new("sh");
            command.args(["-c", &limited, "sh"]).arg(program);
            command.args(["--test-threads", "1"]).current_dir(self.folder);
            command.args(TESTS_LEFT_OUT.iter().flat_map(|name| ["--skip", name]));
            let output = command.env("MUTANT", left.number.to_string()).output()?;
            if output.status.success() {
                continue;
            }
            let text = String::from_utf8_lossy(&output.stdout);
            let failed = text.lines().find(|line| line.ends_with("... FAILED"));
            let name =
                failed.map(|line| line.trim_start_matches("test ").replace(" ... FAILED", ""));
            let how = name.unwrap_or_else(|| format!("it ended with {}", output.status));
            let (images, aim, by) = (left.images, "tests".into(), "test".into());
            return Ok(Err(Fate::Caught { aim, seed: 0, images, by, how }));
        }
        Ok(Ok(Left { is_tested: true, ..left }))
    }

    /// Runs one for this many more images: how far it came, or how it was noticed.
    fn run(&self, left: Left, aims: &str, most: u64) -> anyhow::Result<Result<Left, Fate>> {
        let mut command = Command::new("sh");
        command.args(["-c", &format!("ulimit -c 0; ulimit -v {MEMORY_KIB}; exec \"$@\""), "sh"]);
        command.arg(self.program).arg(aims);
        let seconds = self.until.saturating_duration_since(Instant::now()).as_secs().max(1);
        command.args([left.next, most, self.first, seconds].map(|number| number.to_string()));
        let output = command.env("MUTANT", left.number.to_string()).output()?;
        let text = String::from_utf8_lossy(&output.stdout);
        let last = text.lines().last().context("the runner says nothing")?;
        let mut words = last.splitn(6, ' ');
        let mut word = || words.next().unwrap_or_default();
        let kind = word();
        if kind == "left" {
            let next = word().parse()?;
            let images = left.images + word().parse::<u64>()?;
            return Ok(Ok(Left { next, images, ..left }));
        }
        let (aim, seed) = (word().to_owned(), word().parse()?);
        let images = left.images + word().parse::<u64>()?;
        let (by, how) = match kind {
            "caught" => (word().to_owned(), word().to_owned()),
            _ => ("death".into(), format!("the runner ended with {}", output.status)),
        };
        Ok(Err(Fate::Caught { aim, seed, images, by, how }))
    }
}

/// The aims in turns: those that are directed at the mutant's file come first, and again after every few others.
fn order(mutant: &Mutant, aims: &[String]) -> String {
    let meant = DIRECTED.iter().find(|(begin, _)| mutant.file().starts_with(begin));
    let directed = meant.map_or(&[][..], |(_, names)| names);
    let others: Vec<&str> =
        aims.iter().map(String::as_str).filter(|name| !directed.contains(name)).collect();
    let parts = others.chunks(others.len().div_ceil(3).max(1));
    let all: Vec<&str> = parts.flat_map(|part| directed.iter().chain(part).copied()).collect();
    all.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The runner refuses an aim that it does not know, after it was built for minutes.
    #[test]
    fn directed_aims_are_the_swarm_s() {
        let source = |file: &str| {
            let path = crate::workspace_root().join("crates/torture/src").join(file);
            std::fs::read_to_string(path).expect("the aims are there")
        };
        let (crash, rot) = (source("crash/aim.rs"), source("rot/mod.rs"));
        for name in DIRECTED.iter().flat_map(|(_, names)| *names) {
            let (of, name) =
                name.strip_prefix("drive-").map_or((&crash, *name), |name| (&rot, name));
            assert!(of.contains(&format!("(\"{name}\", Self::")), "{name}");
        }
    }
}
