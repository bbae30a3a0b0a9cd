//! The rooms of the array from the bottom to the top, and the arrows between their files that run up.
//!
//! A room is a folder or a file at the top of `crates/array/src`. An arrow leads from a file to a file of another
//! room that it names something of ([`circles`](super::circles) says what counts); two files have one arrow,
//! however often one names the other. An arrow runs up if its end lies in a higher room than its beginning.

use std::collections::BTreeMap;

use super::circles;
use super::sources::Source;
use super::{Finding, Rule};

/// The folder whose rooms have an order.
const ROOT: &str = "crates/array/src/";

/// The rooms, from the bottom to the top. `array` is the machine that steps all others, `lib` what outsiders see.
const ROOMS: &[&str] = &[
    "fields",
    "names",
    "server_clock",
    "timers",
    "shape",
    "budget",
    "progress",
    "policy",
    "meta",
    "log",
    "tags",
    "settings",
    "drives",
    "event",
    "action",
    "counters",
    "verify",
    "core",
    "store",
    "journal",
    "ops",
    "array",
    "offline",
    "lib",
];

/// How many arrows may run up.
const UP_MAX: usize = 5;

/// The arrows between files of different rooms.
#[derive(Debug)]
pub(crate) struct Arrows<'a> {
    /// How many there are.
    pub(crate) count: usize,
    /// Those of them that run up: from, line, to.
    up: Vec<(&'a str, usize, &'a str)>,
    /// Rooms that have no place in the order, with a file of each.
    unknown: BTreeMap<&'a str, &'a str>,
}

impl<'a> Arrows<'a> {
    pub(crate) fn of(sources: &[Source<'a>]) -> Self {
        let needs = circles::needs(sources);
        let mut arrows = Self { count: 0, up: Vec::new(), unknown: BTreeMap::new() };
        for (&from, needed) in needs.get(ROOT.trim_end_matches("/src/")).into_iter().flatten() {
            for (&to, &line) in needed.iter().filter(|&(to, _)| room(from) != room(to)) {
                arrows.count += 1;
                match (height(from), height(to)) {
                    (Some(low), Some(high)) if low < high => arrows.up.push((from, line, to)),
                    (Some(_), Some(_)) => {}
                    (None, _) => drop(arrows.unknown.insert(room(from), from)),
                    (_, None) => drop(arrows.unknown.insert(room(to), to)),
                }
            }
        }
        arrows
    }

    /// How many of them run up.
    pub(crate) fn up_count(&self) -> usize {
        self.up.len()
    }
}

/// The room of a file.
fn room(file: &str) -> &str {
    let below = file.strip_prefix(ROOT).unwrap_or(file);
    below.split(['/', '.']).next().unwrap_or(below)
}

/// How high the room of a file lies; nothing where it has no place in the order.
fn height(file: &str) -> Option<usize> {
    ROOMS.iter().position(|&name| name == room(file))
}

pub(crate) fn check(sources: &[Source<'_>]) -> Vec<Finding> {
    let Arrows { up, unknown, .. } = Arrows::of(sources);
    let unknown = unknown.iter().map(|(room, path)| Finding {
        path: (*path).to_owned(),
        line: 1,
        rule: Rule::Room,
        sentence: format!("{room} has no place in the order of the rooms"),
    });
    let too_many = up.iter().filter(|_| up.len() > UP_MAX).map(|(from, line, to)| Finding {
        path: (*from).to_owned(),
        line: *line,
        rule: Rule::Room,
        sentence: format!("{} reaches up to {}: {to}", room(from), room(to)),
    });
    unknown.chain(too_many).collect()
}

#[cfg(test)]
mod tests {
    use crate::tidy::{Tree, counts};

    /// An array of these files beside its root.
    fn planted(files: &[(&str, &str)]) -> Tree {
        let root = "//! A.\n#![forbid(unsafe_code)]\nmod ops;\nmod shape;\npub use ops::read::Read;\npub struct A;\n";
        let tree = Tree::planted()
            .with_file("crates/array/src/lib.rs", root)
            .with_file("crates/array/src/ops/mod.rs", "//! O.\npub mod read;\n")
            .with_file("crates/array/src/shape/mod.rs", "//! S.\npub mod spec;\n");
        files.iter().fold(tree, |tree, (name, text)| {
            tree.with_file(&format!("crates/array/src/{name}"), &format!("//! A.\n{text}"))
        })
    }

    fn check_count(files: &[(&str, &str)], up: usize, all: usize) {
        let want = format!("{up} of {all} arrows between files of the array's rooms run up");
        assert_eq!(counts(&planted(files)), want, "{files:?}");
    }

    const READ: (&str, &str) = ("ops/read.rs", "pub struct Read; pub struct Other;\n");

    #[test]
    fn planted_arrows_are_counted_once_for_two_files_and_where_the_name_is_defined() {
        check_count(&[READ, ("shape/spec.rs", "pub struct S;\n")], 0, 0);
        for up in [
            "use crate::ops::read::Read;\n",
            "use crate::Read;\n",
            "use crate::ops::read::{Other, Read}; fn f(_: crate::ops::read::Read) {}\n",
            "use super::super::ops::read;\nfn f(_: read::Read) {}\n",
        ] {
            check_count(&[READ, ("shape/spec.rs", up)], 1, 1);
            check_count(&[READ, ("shape/spec.rs", up), ("shape/area.rs", up)], 2, 2);
        }
        let root = "use crate::A; pub struct Read;\n";
        check_count(&[("ops/read.rs", root)], 1, 1);
    }

    #[test]
    fn arrows_down_within_a_room_and_of_tests_do_not_run_up() {
        let spec = ("shape/spec.rs", "pub struct S;\n");
        check_count(
            &[("ops/read.rs", "use crate::shape::spec::S; pub struct Read;\n"), spec],
            0,
            1,
        );
        check_count(&[READ, ("ops/write.rs", "use crate::ops::read::Read;\n")], 0, 0);
        let test = "#[cfg(test)]\nmod tests { use crate::ops::read::Read; }\n";
        check_count(&[READ, ("shape/spec.rs", test)], 0, 0);
    }

    #[test]
    fn too_many_arrows_up_and_rooms_without_a_place_are_findings() {
        let up = "use crate::ops::read::Read;\n";
        let names = ["a", "b", "c", "d", "e", "f"].map(|name| format!("shape/{name}.rs"));
        let mut files: Vec<(&str, &str)> =
            names[..5].iter().map(|name| (name.as_str(), up)).collect();
        files.push(READ);
        assert!(planted(&files).findings().is_empty(), "as many as may be");
        files.push((&names[5], up));
        let found = planted(&files).findings();
        assert_eq!(found.len(), 6, "{found:?}");
        let last = "crates/array/src/shape/f.rs:2: room: shape reaches up to ops: crates/array/src/ops/read.rs";
        assert_eq!(found[5], last);
        let found = planted(&[READ, ("vault.rs", up)]).findings();
        assert_eq!(
            found,
            ["crates/array/src/vault.rs:1: room: vault has no place in the order of the rooms"]
        );
    }
}
