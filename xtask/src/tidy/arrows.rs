//! Who may depend on whom: the table of the house, and the outside crates that are kept out.
//!
//! An ordinary dependency must stand in [`HOUSE`]. A dev-dependency may also lie on any lower
//! floor (or, on the ground floor, on the same one, and elsewhere where [`BESIDE`] says so), because a
//! test may build its world from what lies below, unless [`NEVER`] forbids it. `xtask` depends on no crate of the house, so that it
//! runs when they do not compile.

use super::tree::{Dependency, DependencyKind, Package, Tree};
use super::{Finding, Rule};

/// The house: floor, crate, and which crates it may use. `units` is open to all.
const HOUSE: &[(u8, &str, &str)] = &[
    (0, "units", ""),
    (0, "stats", ""),
    (0, "erasure", ""),
    (1, "block", "stats"),
    (1, "planner", ""),
    (1, "sim", "stats"),
    (1, "ldpc", "stats"),
    (1, "fleet", "stats"),
    (1, "rtl", "erasure stats"),
    (1, "testkit", "stats"),
    (2, "bytes", "block erasure"),
    (2, "array", "block erasure stats"),
    (2, "fs", "block erasure"),
    (2, "drive", "block ldpc stats"),
    (2, "trace", "block stats"),
    (3, "host", "array bytes drive block fleet erasure stats trace"),
    (3, "lab", "array bytes drive fs trace block planner sim ldpc fleet rtl erasure stats"),
    (4, "fuse", "fs block"),
    (4, "nbd", "block"),
    (4, "fleet-io", "fleet"),
    (4, "report", "stats"),
    (4, "metrics", ""),
    (4, "torture", "lab array bytes drive fs trace block erasure stats"),
    (5, "app", "nbd block"),
    (6, "app-array", "app nbd metrics report host array block erasure"),
    (6, "app-drive", "app nbd report host array drive block stats erasure"),
    (6, "app-fs", "app fuse report host fs block planner stats erasure"),
    (6, "app-watch", "app metrics report host fleet stats"),
    (6, "app-fleet", "app report fleet-io host lab fleet units"),
    (6, "terminal", "app drive"),
    (
        7,
        "app-lab",
        "app app-drive app-fs app-fleet report host lab array fs drive trace block planner ldpc rtl stats erasure",
    ),
    (
        8,
        "cli",
        "terminal app app-array app-drive app-fs app-watch nbd metrics host array drive planner erasure",
    ),
    (
        8,
        "cli-lab",
        "terminal app app-drive app-fs app-fleet app-lab host array drive trace planner ldpc rtl erasure",
    ),
    (
        8,
        "bench",
        "nbd report fleet-io host lab array fs drive trace block planner sim ldpc fleet rtl stats erasure",
    ),
];

/// What not even a test may use: crate, and what it must not see. `*` is every crate, or everything
/// that its row of the house does not name.
const NEVER: &[(&str, &str)] = &[
    ("*", "lab"),
    ("array", "drive"),
    ("fs", "array"),
    ("nbd", "array"),
    ("sim", "*"),
    ("planner", "erasure"),
    ("report", "*"),
    ("metrics", "*"),
];

/// What a test may use besides: the runtime of an array's tests holds its bytes, the demo's tests compare it with virtual
/// time, and a fleet's tests read data that others read, too.
const BESIDE: &[(&str, &str)] = &[("array", "bytes"), ("app-drive", "lab"), ("fleet", "testkit")];

/// Crates that know terminals, arguments and exit codes.
pub(crate) const PROGRAMS: &[&str] = &["cli", "cli-lab", "terminal"];

/// Cores: the crates that see no clock, thread, socket, file or environment.
pub(crate) const CORES: &[&str] = &[
    "units", "stats", "erasure", "block", "planner", "sim", "ldpc", "fleet", "rtl", "bytes",
    "drive", "array", "fs", "trace",
];

/// Outside crates for programs alone: terminals, arguments, errors that only a person reads.
const FOR_PROGRAMS: &[&str] = &[
    "anyhow",
    "anstream",
    "anstyle",
    "atty",
    "clap",
    "clap_complete",
    "clap_mangen",
    "colored",
    "console",
    "crossterm",
    "indicatif",
    "is-terminal",
    "owo-colors",
    "ratatui",
    "termcolor",
];

/// Outside crates that a core must not have: each brings a clock, a thread, a file, a socket or
/// chance that no seed controls.
const NOT_FOR_CORES: &[&str] = &[
    "async-std",
    "chrono",
    "crossbeam",
    "fastrand",
    "getrandom",
    "io-uring",
    "libc",
    "log",
    "mio",
    "nix",
    "rayon",
    "rustix",
    "signal-hook",
    "smol",
    "socket2",
    "tempfile",
    "time",
    "tokio",
    "tracing",
    "walkdir",
];

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in &tree.packages {
        for dependency in &package.dependencies {
            findings.extend(complaint(package, dependency).map(|sentence| Finding {
                path: package.manifest(),
                line: line_of(tree, package, &dependency.key),
                rule: Rule::Arrow,
                sentence,
            }));
        }
    }
    findings
}

/// What is wrong with one dependency, if anything.
fn complaint(package: &Package, dependency: &Dependency) -> Option<String> {
    let on = dependency.name.as_str();
    let inside = package.name.strip_prefix("levelhead-");
    let is_program = package.name == "xtask" || inside.is_some_and(|name| PROGRAMS.contains(&name));
    if FOR_PROGRAMS.contains(&on) && !is_program {
        return Some(format!("only programs know {on}"));
    }
    let Some(from) = name_in_house(&package.name) else {
        let inside = on.strip_prefix("levelhead-")?;
        return Some(format!("{} must build without the house, yet uses {inside}", package.name));
    };
    let Some(to) = on.strip_prefix("levelhead-") else {
        let is_dev = dependency.kind == DependencyKind::Dev;
        let is_kept_out = !is_dev && CORES.contains(&from) && NOT_FOR_CORES.contains(&on);
        return is_kept_out.then(|| format!("{from} is a core and must not have {on}"));
    };
    let Some((floor, allowed)) = row(from) else {
        return Some(format!("{from} is not in the table of the house"));
    };
    let Some((floor_below, _)) = row(to) else {
        return Some(format!("{from} uses {to}, which is not in the table of the house"));
    };
    if to == "units" || allowed.split(' ').any(|name| name == to) {
        return None;
    }
    match dependency.kind {
        DependencyKind::Normal | DependencyKind::Build => {
            Some(format!("{from} must not use {to}; it may use: units {allowed}"))
        }
        DependencyKind::Dev if BESIDE.contains(&(from, to)) => None,
        DependencyKind::Dev if is_never(from, to) => {
            Some(format!("{from} must not see {to}, not even in its tests"))
        }
        DependencyKind::Dev if floor_below < floor || (floor == 0 && floor_below == 0) => None,
        DependencyKind::Dev => Some(format!("the tests of {from} must not reach up to {to}")),
    }
}

/// What the table of the house calls a package. The benchmarks bear their name without the house's, so
/// that `cargo run -p bench` is all there is to type.
fn name_in_house(package: &str) -> Option<&str> {
    package.strip_prefix("levelhead-").or_else(|| (package == "bench").then_some(package))
}

/// The floor of a crate, and what it may use.
fn row(name: &str) -> Option<(u8, &'static str)> {
    HOUSE.iter().find(|row| row.1 == name).map(|row| (row.0, row.2))
}

fn is_never(from: &str, to: &str) -> bool {
    let matches = |pattern: &str, name: &str| pattern == "*" || pattern == name;
    NEVER.iter().any(|&(by, what)| matches(by, from) && matches(what, to))
}

/// The line of the manifest that declares `key`; the first where it cannot be found.
fn line_of(tree: &Tree, package: &Package, key: &str) -> usize {
    let Some(manifest) = tree.file(&package.manifest()) else { return 1 };
    let declares = |line: &str| {
        let words = line.trim().trim_start_matches('[').trim_end_matches(']');
        let name = words.split(['=', ' ']).next().unwrap_or_default();
        name == key
            || name.ends_with(&format!("dependencies.{key}"))
            || name == format!("{key}.workspace")
    };
    manifest.text.lines().position(declares).map_or(1, |at| at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_arrow_of_the_house_points_down() {
        for (floor, name, allowed) in HOUSE {
            for below in allowed.split(' ').filter(|below| !below.is_empty()) {
                let (floor_below, _) = row(below).unwrap_or_else(|| panic!("{name} uses {below}"));
                assert!(floor_below < *floor, "{name} uses {below}");
            }
        }
    }

    #[test]
    fn only_the_laboratory_and_the_benchmarks_see_lab_and_the_waist_hides_what_is_below_it() {
        let sees = |what: &str| -> Vec<&str> {
            HOUSE
                .iter()
                .filter(|row| row.2.split(' ').any(|n| n == what))
                .map(|row| row.1)
                .collect()
        };
        assert_eq!(sees("lab"), ["torture", "app-fleet", "app-lab", "bench"]);
        assert_eq!(sees("app-lab"), ["cli-lab"]);
        assert!(!sees("drive").contains(&"array"));
        assert!(!sees("array").contains(&"fs"));
        assert!(!sees("array").contains(&"nbd"));
        for (from, to) in NEVER {
            assert!(*from == "*" || *to == "*" || !sees(to).contains(from), "{from} {to}");
        }
    }

    #[test]
    fn every_core_is_in_the_house() {
        for core in CORES {
            assert!(row(core).is_some(), "{core}");
        }
    }

    fn check_planted(from: &str, on: &str, kind: DependencyKind, want: &[&str]) {
        let tree = Tree::planted()
            .with_package("drive", &[], "//! D.\n#![forbid(unsafe_code)]\n")
            .with_package("sim", &[], "//! S.\n#![forbid(unsafe_code)]\n")
            .with_package("bytes", &[], "//! B.\n#![forbid(unsafe_code)]\n")
            .with_package("host", &[], "//! H.\n#![forbid(unsafe_code)]\n")
            .with_package("nbd", &[], "//! N.\n#![forbid(unsafe_code)]\n")
            .with_package("report", &[], "//! R.\n#![forbid(unsafe_code)]\n")
            .with_dependency(from, on, kind);
        let manifest = tree.file(&format!("crates/{from}/Cargo.toml")).unwrap();
        let line = manifest.text.lines().count();
        let want: Vec<_> = want
            .iter()
            .map(|sentence| format!("crates/{from}/Cargo.toml:{line}: arrow: {sentence}"))
            .collect();
        assert_eq!(tree.findings(), want, "{from} {on} {kind:?}");
    }

    #[test]
    fn planted_arrows_are_found() {
        use DependencyKind::{Build, Dev, Normal};
        let array = "array must not use drive; it may use: units block erasure stats";
        check_planted("array", "levelhead-drive", Normal, &[array]);
        check_planted("array", "levelhead-drive", Build, &[array]);
        let hidden = "array must not see drive, not even in its tests";
        check_planted("array", "levelhead-drive", Dev, &[hidden]);
        check_planted("array", "levelhead-sim", Dev, &[]);
        check_planted("array", "levelhead-bytes", Dev, &[]);
        let bytes = "array must not use bytes; it may use: units block erasure stats";
        check_planted("array", "levelhead-bytes", Normal, &[bytes]);
        check_planted(
            "array",
            "levelhead-host",
            Dev,
            &["the tests of array must not reach up to host"],
        );
        let nbd = "nbd must not see array, not even in its tests";
        check_planted("nbd", "levelhead-array", Dev, &[nbd]);
        check_planted("nbd", "levelhead-host", Dev, &[]);
        let sim = "sim must not see erasure, not even in its tests";
        check_planted("sim", "levelhead-erasure", Dev, &[sim]);
        let report = "report must not see drive, not even in its tests";
        check_planted("report", "levelhead-drive", Dev, &[report]);
        let lab = "host must not see lab, not even in its tests";
        check_planted("host", "levelhead-lab", Dev, &[lab]);
        check_planted("erasure", "levelhead-stats", Dev, &[]);
        check_planted("host", "levelhead-drive", Normal, &[]);
        check_planted("cli", "levelhead-array", Normal, &[]);
        let cli = "cli must not use lab; it may use: units terminal app app-array app-drive app-fs app-watch nbd \
                   metrics host array drive planner erasure";
        check_planted("cli", "levelhead-lab", Normal, &[cli]);
        let unknown = "array uses vault, which is not in the table of the house";
        check_planted("array", "levelhead-vault", Normal, &[unknown]);
    }

    #[test]
    fn planted_outside_crates_are_found() {
        use DependencyKind::{Dev, Normal};
        check_planted("host", "clap", Normal, &["only programs know clap"]);
        check_planted("host", "anyhow", Dev, &["only programs know anyhow"]);
        check_planted("drive", "tempfile", Normal, &["drive is a core and must not have tempfile"]);
        check_planted("drive", "tempfile", Dev, &[]);
        check_planted("host", "rustix", Normal, &[]);
    }

    #[test]
    fn the_benchmarks_are_of_the_house_without_its_name() {
        let mut tree = Tree::planted();
        tree.packages[0].name = "bench".into();
        let tree = tree.with_dependency("units", "levelhead-app", DependencyKind::Normal);
        let want = "arrow: bench must not use app; it may use: units nbd report fleet-io host lab array fs \
                    drive trace block planner sim ldpc fleet rtl stats erasure";
        let ends = |line: &&String| line.contains("bench uses app") || line.ends_with(want);
        assert!(tree.findings().iter().any(|line| ends(&line)), "{:?}", tree.findings());
    }

    #[test]
    fn xtask_stands_outside_the_house() {
        let mut tree = Tree::planted();
        tree.packages[0].name = "xtask".into();
        let tree = tree.with_dependency("units", "levelhead-stats", DependencyKind::Normal);
        let want = "arrow: xtask must build without the house, yet uses stats";
        assert!(tree.findings().iter().any(|line| line.ends_with(want)), "{:?}", tree.findings());
    }
}
