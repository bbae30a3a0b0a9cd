//! The commands of README's tour, one after the other as a reader pastes them. `cargo xtask doctest` runs all blocks of all pages.

use std::env;
use std::path::Path;
use std::process::Command;

use crate::support::{Shelf, command, is_there, run};

const README: &str = include_str!("../../../../README.md");

/// The blocks of commands of a section that need no more than a folder, one behind the other.
fn blocks(heading: &str) -> String {
    let (_, section) = README.split_once(heading).expect("README has the section");
    let (section, _) = section.split_once("\n## ").unwrap_or((section, ""));
    let is_run = |before: &str| !before.trim_end().ends_with("-->");
    let pieces: Vec<&str> = section.split("```sh\n").collect();
    let blocks = pieces.windows(2).filter(|pair| is_run(pair[0]));
    blocks.map(|pair| pair[1].split_once("```").expect("a fence ends").0).collect()
}

#[test]
fn commands_of_the_tour_run_in_order_as_they_are_written() {
    let shelf = Shelf::new();
    let program = command(&["--version"]).get_program().to_owned();
    let folder = Path::new(&program).parent().unwrap().to_str().unwrap().to_owned();
    // Smaller drives, so that the syncs take a moment.
    let script = blocks("\n## Five minutes\n");
    let mut script = script.replace("-s 1G", "-s 64M").replace("-c 64M", "-c 1M");
    assert!(script.lines().count() >= 15, "{script}");
    if !is_there("nbdcopy") {
        eprintln!("SKIPPED: the line with nbdcopy, which is not installed");
        script.insert_str(0, "nbdcopy() { :; }\n");
    }
    let mut shell = Command::new("sh");
    shell.args(["-euc", &script]).current_dir(shelf.dir.path());
    let path = env::var("PATH").unwrap_or_default();
    shell.env("PATH", format!("{folder}:{path}"));
    shell.env("XDG_RUNTIME_DIR", env!("CARGO_TARGET_TMPDIR"));
    let out = run(shell).good();
    assert!(out.ends_with("nothing is wrong\n"), "{out}");
}
