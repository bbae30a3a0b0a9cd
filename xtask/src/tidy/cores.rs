//! What a core never touches, and what only the programs may: the words of the product's code.
//!
//! A path is matched whole or by its first words, after imports are spelled out, so that
//! `use std::{time::Instant}` and `std::time::Instant::now()` are the same finding. A module whose
//! contents are mixed (`std::time` has `Duration` too) must be named further, so that what it gives
//! can be seen.

use super::arrows::{CORES, PROGRAMS};
use super::sources::{CalledAs, FileKind, Named, Source, named};
use super::{Finding, Rule};

/// What a core never names, and what to do instead.
const NEVERS: &[(&str, &str)] = &[
    ("std::time::Instant", "time comes in as an argument"),
    ("std::time::SystemTime", "time comes in as an argument"),
    ("std::time::UNIX_EPOCH", "time comes in as an argument"),
    ("std::thread", "a core is called, it does not run"),
    ("std::net", "a core decides, the shell acts"),
    ("std::fs", "a core decides, the shell acts"),
    ("std::os", "a core decides, the shell acts"),
    ("std::env", "options come in as arguments"),
    ("std::process", "a core decides, the shell acts"),
    ("std::io::stdin", "a core reads what it is given"),
    ("std::io::stdout", "a core returns what it has to say"),
    ("std::io::stderr", "a core returns what it has to say"),
    ("std::hash::RandomState", "the order would differ from run to run"),
    ("rand::random", "chance comes from a named stream of a seed"),
    ("rand::rng", "chance comes from a named stream of a seed"),
    ("rand::thread_rng", "chance comes from a named stream of a seed"),
    ("rand::rngs::OsRng", "chance comes from a named stream of a seed"),
    ("rand::rngs::ThreadRng", "chance comes from a named stream of a seed"),
];

/// Modules that a core must not import whole: name what is wanted.
const TOO_WIDE: &[&str] =
    &["std::time", "std::time::*", "std::*", "rand::*", "rand::rngs", "rand::rngs::*"];

/// Words that no core has, whatever path leads to them.
const NEVER_WORDS: &[(&str, &str)] = &[
    ("HashMap", "its order differs from run to run; use a BTreeMap or a Vec"),
    ("HashSet", "its order differs from run to run; use a BTreeSet or a Vec"),
    ("RandomState", "the order would differ from run to run"),
    ("async", "a core is a state machine that others poll"),
    ("await", "a core is a state machine that others poll"),
    ("thread_local", "state belongs to a value"),
    ("thread_rng", "chance comes from a named stream of a seed"),
    ("OsRng", "chance comes from a named stream of a seed"),
    ("from_os_rng", "chance comes from a named stream of a seed"),
    ("from_entropy", "chance comes from a named stream of a seed"),
];

/// Macros that write to the terminal.
const PRINTS: &[&str] = &["println", "eprintln", "print", "eprint", "dbg"];

/// What only a program knows: words that end a path.
const FOR_PROGRAMS: &[&str] = &[
    "process::exit",
    "process::ExitCode",
    "ExitCode",
    "IsTerminal",
    "is_terminal",
    "isatty",
    "io::stdin",
    "io::stdout",
    "io::stderr",
];

pub(crate) fn check(sources: &[Source<'_>]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in sources {
        let FileKind::Crate(name) = source.kind else { continue };
        let is_core = CORES.contains(&name);
        for named in named(&source.product) {
            let found = match (is_core, name) {
                (true, _) => in_core(name, &named).map(|sentence| (Rule::Core, sentence)),
                // What a test does not check, because its data or a tool is not there, it must say.
                (false, name) if PROGRAMS.contains(&name) || name == "testkit" => None,
                (false, _) => in_shell(name, &named).map(|sentence| (Rule::Terminal, sentence)),
            };
            findings.extend(found.map(|(rule, sentence)| Finding {
                path: source.path.to_owned(),
                line: named.line,
                rule,
                sentence,
            }));
        }
    }
    findings
}

/// What is wrong with a path in a core, if anything.
fn in_core(name: &str, named: &Named) -> Option<String> {
    let path = named.path.as_str();
    if let Some(print) = printing(named) {
        return Some(format!("{name} is a core and must not print (`{print}!`)"));
    }
    if let Some((never, instead)) = NEVERS.iter().find(|(never, _)| starts_with(path, never)) {
        return Some(format!("{name} is a core and must not see {never}: {instead}"));
    }
    if TOO_WIDE.contains(&path) {
        return Some(format!("{name} is a core and must name what it wants of {path}, one by one"));
    }
    let mut words = path.split("::");
    let never = words.find_map(|word| NEVER_WORDS.iter().find(|(never, _)| *never == word));
    never.map(|(word, instead)| format!("{name} is a core and must not have {word}: {instead}"))
}

/// What is wrong with a path in a crate that is neither a core nor a program, if anything.
fn in_shell(name: &str, named: &Named) -> Option<String> {
    if let Some(print) = printing(named) {
        return Some(format!(
            "only programs print; {name} returns what it has to say (`{print}!`)"
        ));
    }
    let path = named.path.as_str();
    let ends = |what: &&&str| path == **what || path.ends_with(&format!("::{what}"));
    let found = FOR_PROGRAMS.iter().find(ends)?;
    Some(format!("only programs know terminals and exit codes; {name} has {found}"))
}

/// The macro that `named` calls, if it writes to the terminal.
fn printing(named: &Named) -> Option<&str> {
    let word = named.path.rsplit("::").next()?;
    (named.called_as == CalledAs::Macro && PRINTS.contains(&word)).then_some(word)
}

/// Whether `path` is `prefix` or lies below it.
fn starts_with(path: &str, prefix: &str) -> bool {
    path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

#[cfg(test)]
mod tests {
    use crate::tidy::Tree;

    fn check(path: &str, code: &str, want: &[&str]) {
        let tree = Tree::planted()
            .with_package("host", &[], "//! H.\n#![forbid(unsafe_code)]\n")
            .with_file(path, &format!("//! A file.\n{code}\n"));
        let want: Vec<_> = want.iter().map(|what| format!("{path}:2: {what}")).collect();
        assert_eq!(tree.findings(), want, "{code}");
    }

    fn check_core(code: &str, what: &str) {
        check(
            "crates/array/src/read.rs",
            code,
            &[&format!("core: array is a core and must {what}")],
        );
    }

    #[test]
    fn planted_clocks_threads_and_files_are_found() {
        let time = "not see std::time::Instant: time comes in as an argument";
        check_core("fn a() { std::time::Instant::now(); }", time);
        check_core("use std::{fmt, time::{Duration, Instant}};", time);
        check_core(
            "use std::time::SystemTime;",
            "not see std::time::SystemTime: time comes in as an argument",
        );
        check_core("use std::time;", "name what it wants of std::time, one by one");
        check_core("use std::time::*;", "name what it wants of std::time::*, one by one");
        check_core(
            "use std::thread::sleep;",
            "not see std::thread: a core is called, it does not run",
        );
        let acts = "a core decides, the shell acts";
        check_core(
            "fn a() { std::net::UdpSocket::bind(b); }",
            &format!("not see std::net: {acts}"),
        );
        check_core("use std::fs;", &format!("not see std::fs: {acts}"));
        check_core("use std::env;", "not see std::env: options come in as arguments");
    }

    #[test]
    fn planted_disorder_chance_and_prints_are_found() {
        check_core(
            "use std::collections::HashMap;",
            "not have HashMap: its order differs from run to run; use a BTreeMap or a Vec",
        );
        check_core(
            "type A = std::collections::HashSet<u8>;",
            "not have HashSet: its order differs from run to run; use a BTreeSet or a Vec",
        );
        check_core("async fn a() {}", "not have async: a core is a state machine that others poll");
        check_core(
            "fn a() { rand::random::<u8>(); }",
            "not see rand::random: chance comes from a named stream of a seed",
        );
        for print in ["println", "eprintln", "print", "eprint", "dbg", "std::println"] {
            let word = print.trim_start_matches("std::");
            check_core(&format!("fn a() {{ {print}!(b); }}"), &format!("not print (`{word}!`)"));
        }
    }

    #[test]
    fn what_only_looks_like_a_violation_is_let_through() {
        let path = "crates/array/src/read.rs";
        check(path, "/// A HashMap would not do. println!", &[]);
        check(path, r#"const A: &str = "std::thread async println!()";"#, &[]);
        check(path, "use std::time::Duration;", &[]);
        check(path, "fn a(print: u8) -> bool { print != 1 }", &[]);
        check(path, "use levelhead_units::Instant;", &[]);
        check(path, "#[cfg(test)] mod tests { use std::{fs, env}; fn a() { println!(); } }", &[]);
        check("crates/array/tests/real.rs", "use std::collections::HashMap;", &[]);
        check("crates/host/src/clock.rs", "use std::{thread, time::Instant};", &[]);
    }

    #[test]
    fn planted_terminals_and_exits_are_found_outside_the_programs() {
        let path = "crates/host/src/run.rs";
        let exit = "terminal: only programs know terminals and exit codes; host has process::exit";
        check(path, "fn a() { std::process::exit(1); }", &[exit]);
        check(path, "use std::process; fn a() { process::exit(1); }", &[exit]);
        let code =
            "terminal: only programs know terminals and exit codes; host has process::ExitCode";
        check(path, "use std::process::ExitCode;", &[code]);
        let terminal = "terminal: only programs know terminals and exit codes; host has IsTerminal";
        check(path, "use std::io::IsTerminal;", &[terminal]);
        let print = "terminal: only programs print; host returns what it has to say (`println!`)";
        check(path, "fn a() { println!(); }", &[print]);
        let own = "use std::process::ExitCode; fn a() { println!(); std::process::exit(1) }";
        check("crates/cli/src/commands.rs", own, &[]);
        check("xtask/src/other.rs", own, &[]);
    }
}
