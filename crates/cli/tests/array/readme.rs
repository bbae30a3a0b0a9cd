//! The commands of README's section on arrays, one after the other as a reader pastes them.

use std::env;
use std::path::Path;
use std::process::Command;

use crate::support::{Shelf, command, is_there, run};

const README: &str = include_str!("../../../../README.md");

/// The first block of commands after a heading.
fn block(heading: &str) -> String {
    let (_, section) = README.split_once(heading).expect("README has the section");
    let lines = section.lines().skip_while(|line| !line.starts_with("    "));
    let lines = lines.take_while(|line| line.starts_with("    "));
    lines.map(|line| format!("{}\n", line.trim_start())).collect()
}

#[test]
fn commands_of_the_section_on_arrays_run_in_order_as_they_are_written() {
    let shelf = Shelf::new();
    let program = command(&["--version"]).get_program().to_owned();
    let folder = Path::new(&program).parent().unwrap().to_str().unwrap().to_owned();
    // Smaller drives, so that the syncs take a moment.
    let mut script = block("\n## An array\n").replace("-s 1G", "-s 64M").replace("-c 64M", "-c 1M");
    assert!(script.lines().count() >= 10, "{script}");
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
