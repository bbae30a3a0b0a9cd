//! The list of all mutants, and which of them are drawn.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, ensure};

use super::named;
use super::sites::{Site, find};
use super::splice::Chosen;

/// The sources of the array.
pub(super) const SOURCES: &str = "crates/array/src";

/// What is mutated: folders with all that is in them, and files. Tests are left out.
const ROOMS: [&str; 14] = [
    "journal",
    "log",
    "meta",
    "tags",
    "core/tagging.rs",
    "store.rs",
    "store",
    "array/background",
    "array/journal.rs",
    "array/metadata.rs",
    "array/flush.rs",
    "ops/write.rs",
    "ops/write",
    "ops/fill.rs",
];

/// Mutants that do the same as the source, each with the argument: `NAME -> ARGUMENT`.
const EQUAL: &str = include_str!("equal.txt");

/// A mutant.
#[derive(Clone, Debug)]
pub(super) struct Mutant {
    /// It stays the same when other functions change: `FILE: FUNCTION: CHANGE`, and a count where there are several of these.
    pub(super) name: String,
    /// Where it is in today's source.
    pub(super) line: usize,
    /// Which of [`ROOMS`].
    pub(super) room: &'static str,
    /// Whether it was placed by hand.
    pub(super) is_named: bool,
    /// Why it does the same as the source, if that is known.
    pub(super) equal: Option<&'static str>,
}

impl Mutant {
    /// The file, below the sources of the array.
    pub(super) fn file(&self) -> &str {
        let name =
            self.name.split_once(' ').filter(|_| self.is_named).map_or(&*self.name, |of| of.1);
        name.split(':').next().unwrap_or_default()
    }
}

/// A source and its places, with the number of the first mutant of each.
pub(super) struct File {
    /// Below the root.
    pub(super) path: String,
    pub(super) source: String,
    sites: Vec<(Site, u32)>,
}

impl File {
    /// Its places, with those of their mutants that have one of these numbers.
    pub(super) fn chosen(&self, numbers: &BTreeSet<u32>) -> Vec<Chosen<'_>> {
        let chosen = self.sites.iter().map(|(site, first)| {
            let all = (0..site.changes.len()).map(|at| (at, first + at as u32));
            let mutants = all.filter(|(_, number)| numbers.contains(number)).collect();
            Chosen { site, mutants }
        });
        chosen.filter(|chosen| !chosen.mutants.is_empty()).collect()
    }
}

/// All mutants; their numbers begin with 1.
pub(super) struct List {
    pub(super) files: Vec<File>,
    mutants: Vec<Mutant>,
}

impl List {
    pub(super) fn read(root: &Path) -> anyhow::Result<Self> {
        let mut list = Self { files: Vec::new(), mutants: Vec::new() };
        for room in ROOMS {
            let mut files = Vec::new();
            sources(&root.join(SOURCES).join(room), room, &mut files)?;
            files.sort();
            for file in files {
                list.add(root, room, &file)?;
            }
        }
        let all = list.mutants.iter().filter(|mutant| mutant.is_named).count();
        ensure!(all == named::files().count(), "a mutant placed by hand lies in none of the rooms");
        for line in EQUAL.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let (name, why) = line.split_once(" -> ").context("equal.txt: NAME -> ARGUMENT")?;
            let mutant = list.mutants.iter_mut().find(|mutant| mutant.name == name);
            mutant.with_context(|| format!("equal.txt: no mutant is {name:?} any more"))?.equal =
                Some(why);
        }
        Ok(list)
    }

    fn add(&mut self, root: &Path, room: &'static str, file: &str) -> anyhow::Result<()> {
        let path = format!("{SOURCES}/{file}");
        let source = std::fs::read_to_string(root.join(&path)).with_context(|| path.clone())?;
        let found = find(&source).with_context(|| path.clone())?;
        let mut all: Vec<(Option<&str>, Site)> =
            found.into_iter().map(|site| (None, site)).collect();
        all.extend(named::of(file, &source)?.into_iter().map(|(name, site)| (Some(name), site)));
        all.sort_by_key(|(_, site)| (site.range.start, std::cmp::Reverse(site.range.end)));
        let mut open: Vec<usize> = Vec::new();
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        let mut sites = Vec::new();
        for (named, site) in all {
            open.retain(|&end| end > site.range.start);
            let is_nested = open.iter().all(|&end| site.range.end <= end);
            ensure!(is_nested, "{path}:{}: a mutant is in another one in part", site.line);
            open.push(site.range.end);
            let first = self.mutants.len() as u32 + 1;
            for change in &site.changes {
                let name = format!("{file}: {}: {}", site.function, change.what);
                let count = counts.entry(name.clone()).or_default();
                *count += 1;
                let name = match (named, *count) {
                    (Some(by_hand), _) => format!("{by_hand} {name}"),
                    (None, 1) => name,
                    (None, count) => format!("{name} #{count}"),
                };
                let (line, is_named) = (site.line, named.is_some());
                self.mutants.push(Mutant { name, line, room, is_named, equal: None });
            }
            sites.push((site, first));
        }
        self.files.push(File { path, source, sites });
        Ok(())
    }

    pub(super) fn mutant(&self, number: u32) -> &Mutant {
        &self.mutants[number as usize - 1]
    }

    pub(super) fn numbers(&self) -> std::ops::RangeInclusive<u32> {
        1..=self.mutants.len() as u32
    }

    /// All numbers in the order in which they are drawn: those placed by hand, and then by chance.
    pub(super) fn drawn(&self, seed: u64) -> Vec<u32> {
        let mut numbers: Vec<u32> = self.numbers().collect();
        numbers.sort_by_key(|&number| {
            (!self.mutant(number).is_named, mixed(seed.wrapping_add(mixed(u64::from(number)))))
        });
        numbers
    }
}

/// The mixing function of SplitMix64.
fn mixed(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Sources below a path, but no tests.
fn sources(path: &Path, name: &str, into: &mut Vec<String>) -> anyhow::Result<()> {
    if !path.is_dir() {
        into.push(name.to_owned());
        return Ok(());
    }
    for entry in std::fs::read_dir(path).with_context(|| path.display().to_string())? {
        let entry = entry?;
        let own = entry.file_name().into_string().ok().context("a source has a name in UTF-8")?;
        if own != "tests" && own != "tests.rs" {
            sources(&entry.path(), &format!("{name}/{own}"), into)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn today_s_sources_have_mutants_and_every_one_placed_by_hand() {
        let list = List::read(&crate::workspace_root()).expect("the sources are good");
        assert!(list.mutants.len() > 1_000, "{}", list.mutants.len());
        assert_eq!(list.drawn(1).iter().filter(|&&n| list.mutant(n).is_named).count(), 12);
        let mut names: Vec<&str> = list.mutants.iter().map(|mutant| &*mutant.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), list.mutants.len(), "each has a name of its own");
        assert_ne!(list.drawn(1), list.drawn(2));
    }
}
