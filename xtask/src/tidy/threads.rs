//! How threads are started: by a call that says that none is left, and never by one that panics then.
//!
//! A limit of the user's or of a service's threads is no bug of the program, and a panic in the thread that accepts clients
//! would end that for good.

use super::rust::Token;
use super::sources::{FileKind, Source, named};
use super::{Finding, Rule};

const INSTEAD: &str =
    "it panics where no thread is left: use `thread::Builder`, and say what is done without one";

pub(crate) fn check(sources: &[Source<'_>]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in sources.iter().filter(|source| matches!(source.kind, FileKind::Crate(_))) {
        let mut note = |line, what: &str| {
            let (path, sentence) = (source.path.to_owned(), format!("`{what}`: {INSTEAD}"));
            findings.push(Finding { path, line, rule: Rule::Thread, sentence });
        };
        for named in named(&source.product) {
            let path = named.path.strip_prefix("std::").unwrap_or(&named.path);
            if path == "thread::spawn" {
                note(named.line, "thread::spawn");
            }
        }
        let in_scope = |four: &&[Token<'_>]| {
            four[0].is_word("scope")
                && four[1].is(".")
                && four[2].is_word("spawn")
                && four[3].is("(")
        };
        source
            .product
            .windows(4)
            .filter(in_scope)
            .for_each(|four| note(four[2].line, "scope.spawn"));
    }
    findings
}

#[cfg(test)]
mod tests {
    use crate::tidy::Tree;

    fn found(code: &str) -> Vec<String> {
        let tree = Tree::planted()
            .with_package("host", &[], "//! H.\n#![forbid(unsafe_code)]\n")
            .with_file("crates/host/src/a.rs", &format!("//! A file.\n{code}\n"));
        tree.findings()
    }

    #[test]
    fn threads_that_may_panic_are_found_and_tests_may_start_them() {
        for (code, what) in [
            ("fn a() { std::thread::spawn(|| {}); }", "thread::spawn"),
            ("use std::thread; fn a() { drop(thread::spawn(|| {})); }", "thread::spawn"),
            ("use std::thread::spawn; fn a() {}", "thread::spawn"),
            ("fn a() { std::thread::scope(|scope| { scope.spawn(|| {}); }); }", "scope.spawn"),
        ] {
            let expected = format!("crates/host/src/a.rs:2: thread: `{what}`: {}", super::INSTEAD);
            assert_eq!(found(code), [expected], "{code}");
        }
        for code in [
            "fn a() { drop(std::thread::Builder::new().spawn(|| {})); }",
            "#[cfg(test)] mod tests { fn a() { std::thread::spawn(|| {}); } }",
            "fn a(program: &mut Command) { drop(program.spawn()); }",
        ] {
            assert!(found(code).is_empty(), "{code}");
        }
    }
}
