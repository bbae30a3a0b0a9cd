//! A copy of the workspace with mutants in it, and its build: those that do not compile are left out, and counted as unviable.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail, ensure};

use super::list::{List, SOURCES};
use super::splice::{Spliced, splice};
use crate::programs::cargo;

/// The switch, a file of the copy.
const SWITCH: &str = include_str!("switch.rs");

/// The copy.
pub(super) struct Copy {
    tree: PathBuf,
    target: PathBuf,
}

impl Copy {
    /// Makes it, or brings it up to date.
    pub(super) fn new(root: &Path, folder: &Path) -> anyhow::Result<Self> {
        let (tree, target) = (folder.join("tree"), folder.join("target"));
        let mut git = Command::new("git");
        git.current_dir(root).args([
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ]);
        let listed = git.output().context("git does not start")?;
        ensure!(listed.status.success(), "git ls-files: {}", listed.status);
        let listed = String::from_utf8(listed.stdout)?;
        let names = listed.split_terminator('\0').filter(|name| root.join(name).is_file());
        let names: BTreeSet<&str> = names.collect();
        for name in &names {
            write_if_new(&tree.join(name), &fs::read(root.join(name))?)?;
        }
        // Sources that are gone would be found by cargo.
        let source = tree.join("crates");
        remove_others(&source, &|path| {
            let name = path.strip_prefix(&tree).ok().and_then(Path::to_str);
            name.is_some_and(|name| names.contains(name))
        })?;
        let switch = tree.join(SOURCES).join("mutant.rs");
        write_if_new(&switch, SWITCH.as_bytes())?;
        let lib = tree.join(SOURCES).join("lib.rs");
        let text = fs::read_to_string(&lib)? + "\npub mod mutant;\n";
        fs::write(&lib, text)?;
        Ok(Self { tree, target })
    }

    /// Leaves out those of these mutants that do not compile: what is left, as numbers.
    pub(super) fn viable(
        &self,
        list: &List,
        mut numbers: BTreeSet<u32>,
    ) -> anyhow::Result<BTreeSet<u32>> {
        for round in 1.. {
            let spliced = self.write(list, &numbers)?;
            let blamed = self.check(&spliced)?;
            println!(
                "mutants: check {round}: {} of {} do not compile",
                blamed.len(),
                numbers.len()
            );
            if blamed.is_empty() {
                break;
            }
            numbers.retain(|number| !blamed.contains(number));
        }
        Ok(numbers)
    }

    /// Builds the runner with these mutants; returns where it is.
    pub(super) fn runner(&self) -> anyhow::Result<PathBuf> {
        let mut command = self.cargo("build");
        command.args(["--release", "--package", RUNNER, "--example", "mutants"]);
        crate::programs::good(&mut command)?;
        Ok(self.target.join("release/examples/mutants"))
    }

    /// Builds the tests of the crate with them; returns the programs.
    pub(super) fn tests(&self) -> anyhow::Result<Vec<PathBuf>> {
        let mut command = self.cargo("test");
        command.args(["--no-run", "--release", "--package", "levelhead-array", "--lib"]);
        command.args(["--test", "array", "--message-format", "json"]);
        let output = command.output().context("cargo does not start")?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let mut programs = Vec::new();
        for line in String::from_utf8(output.stdout)?.lines() {
            let message: serde_json::Value = serde_json::from_str(line)?;
            programs.extend(message["executable"].as_str().map(PathBuf::from));
        }
        ensure!(programs.len() == 2, "expected 2 programs of tests, got {programs:?}");
        Ok(programs)
    }

    /// Where the crate lies.
    pub(super) fn folder(&self) -> PathBuf {
        self.tree.join("crates/array")
    }

    fn cargo(&self, verb: &str) -> Command {
        let mut command = cargo(&self.tree);
        command.arg(verb).arg("--quiet").env("CARGO_TARGET_DIR", &self.target);
        // As in tests: a sum that overflows is noticed.
        command.env("CARGO_PROFILE_RELEASE_OVERFLOW_CHECKS", "true");
        command.env("CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS", "true");
        command.env("RUSTFLAGS", "--cap-lints=allow");
        command
    }

    fn write(
        &self,
        list: &List,
        numbers: &BTreeSet<u32>,
    ) -> anyhow::Result<BTreeMap<String, Spliced>> {
        let mut all = BTreeMap::new();
        for file in &list.files {
            let spliced = splice(&file.source, &file.chosen(numbers));
            write_if_new(&self.tree.join(&file.path), spliced.text.as_bytes())?;
            all.insert(file.path.clone(), spliced);
        }
        Ok(all)
    }

    /// The mutants because of which the copy does not compile.
    fn check(&self, spliced: &BTreeMap<String, Spliced>) -> anyhow::Result<BTreeSet<u32>> {
        let mut command = self.cargo("check");
        command.args(["--package", "levelhead-array", "--message-format", "json"]);
        let output = command.output().context("cargo does not start")?;
        if output.status.success() {
            return Ok(BTreeSet::new());
        }
        let mut blamed = BTreeSet::new();
        let mut others = Vec::new();
        for line in String::from_utf8(output.stdout)?.lines() {
            let message: serde_json::Value = serde_json::from_str(line)?;
            let message = &message["message"];
            if message["level"] != "error" {
                continue;
            }
            let spans = message["spans"].as_array().into_iter().flatten();
            let due: Vec<u32> = spans
                .filter(|span| span["is_primary"] == true)
                .filter_map(|span| {
                    let file = spliced.get(span["file_name"].as_str()?)?;
                    Some(file.blamed(span["byte_start"].as_u64()? as usize))
                })
                .flatten()
                .collect();
            if due.is_empty() {
                others.push(message["rendered"].as_str().unwrap_or_default().to_owned());
            }
            blamed.extend(due);
        }
        if blamed.is_empty() {
            let said = String::from_utf8_lossy(&output.stderr);
            bail!(
                "the copy does not compile, and no mutant is to blame: {}{said}",
                others.join("\n")
            );
        }
        Ok(blamed)
    }
}

/// The package that has the runner.
const RUNNER: &str = "levelhead-torture";

/// What has not changed keeps its time, and is not built again.
fn write_if_new(path: &Path, contents: &[u8]) -> anyhow::Result<()> {
    if fs::read(path).is_ok_and(|known| known == contents) {
        return Ok(());
    }
    fs::create_dir_all(path.parent().context("a file lies in a folder")?)?;
    fs::write(path, contents).with_context(|| path.display().to_string())
}

fn remove_others(folder: &Path, is_known: &dyn Fn(&Path) -> bool) -> anyhow::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            remove_others(&path, is_known)?;
        } else if !is_known(&path) {
            fs::remove_file(&path)?;
        }
    }
    Ok(())
}
