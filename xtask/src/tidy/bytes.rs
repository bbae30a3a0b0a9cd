//! Which cores never see bytes: the words of the product's code that hold any, or lead to some.
//!
//! What such a core says of bytes it says with names (`BufId`, `Place`); a test may build the runtime
//! that holds them.

use super::sources::{FileKind, Named, Source, named};
use super::{Finding, Rule};

/// Cores that speak of bytes at most.
const BLIND: &[&str] = &["array", "drive", "planner", "sim"];

/// Types that hold bytes, whatever path leads to them.
const WORDS: &[&str] = &["Buf", "Buffers", "Piece"];

/// Paths to what holds bytes.
const PATHS: &[&str] = &[
    "levelhead_bytes",
    "levelhead_block::Data",
    "levelhead_block::Payload",
    "levelhead_block::Reply",
    "levelhead_block::Request",
];

pub(crate) fn check(sources: &[Source<'_>]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in sources {
        let FileKind::Crate(name) = source.kind else { continue };
        if !BLIND.contains(&name) {
            continue;
        }
        for named in named(&source.product) {
            findings.extend(holder(&named).map(|what| Finding {
                path: source.path.to_owned(),
                line: named.line,
                rule: Rule::Bytes,
                sentence: format!("{name} never sees bytes, yet names {what}"),
            }));
        }
    }
    findings
}

/// What in a path holds bytes, if anything does.
fn holder(named: &Named) -> Option<&str> {
    let path = named.path.as_str();
    let leads = |to: &&&str| {
        path.strip_prefix(**to).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
    };
    let word = || path.split("::").find(|word| WORDS.contains(word));
    PATHS.iter().find(leads).copied().or_else(word)
}

#[cfg(test)]
mod tests {
    use crate::tidy::Tree;

    fn check(path: &str, code: &str, want: &[&str]) {
        let tree = Tree::planted().with_package("host", &[], "//! H.\n#![forbid(unsafe_code)]\n");
        let tree = tree.with_file(path, &format!("//! A file.\n{code}\n"));
        let want: Vec<_> = want
            .iter()
            .map(|what| format!("{path}:2: bytes: array never sees bytes, yet names {what}"))
            .collect();
        assert_eq!(tree.findings(), want, "{code}");
    }

    #[test]
    fn planted_buffers_in_a_core_without_bytes_are_found() {
        let path = "crates/array/src/ops/read.rs";
        check(path, "use levelhead_block::{Buf, BufId};", &["Buf"]);
        check(path, "fn a(buf: &levelhead_block::Buf) {}", &["Buf"]);
        check(path, "pub use levelhead_bytes::Buffers;", &["levelhead_bytes"]);
        check(path, "struct A { buffers: super::Buffers }", &["Buffers"]);
        check(path, "use levelhead_block as block; type A = Vec<block::Piece>;", &["Piece"]);
        check(path, "fn a(b: levelhead_block::Request) {}", &["levelhead_block::Request"]);
    }

    #[test]
    fn names_of_bytes_tests_and_shells_are_let_through() {
        let path = "crates/array/src/read.rs";
        check(path, "use levelhead_block::{BufId, Command, FileKind, RequestId, Segment};", &[]);
        check(path, "/// A Buf would not do.\nenum Symbol { Data, Redundant }", &[]);
        check(path, "#[cfg(test)] mod tests { use levelhead_bytes::Buffers; }", &[]);
        check("crates/array/tests/real.rs", "use levelhead_block::{Buf, Request};", &[]);
        check("crates/host/src/medium.rs", "use levelhead_block::{Buf, Piece};", &[]);
    }
}
