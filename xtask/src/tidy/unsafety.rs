//! Where `unsafe` may stand: in modules named `kernel`, and in `host` in `uring` and `ioctl`.
//!
//! Tests count too: a test that needs `unsafe` tests something that should not exist. Every crate
//! root says so to the compiler as well: `forbid`, or `deny` where a permitted module lies below.

use super::rust::{Kind, Token};
use super::sources::Source;
use super::tree::Tree;
use super::{Finding, Rule};

pub(crate) fn check(tree: &Tree, sources: &[Source<'_>]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in sources {
        let kernels = kernel_modules(&source.code);
        let outside = |at: usize| kernels.iter().all(|&(start, end)| at < start || at >= end);
        for (at, token) in source.code.iter().enumerate() {
            if token.is_word("unsafe") && outside(at) && !is_permitted(source.path) {
                let sentence = "`unsafe` stands only in modules named kernel, in host/src/uring* and \
                                in host/src/ioctl*";
                findings.push(finding(source.path, token.line, sentence.to_owned()));
            }
        }
    }
    for package in &tree.packages {
        let src = format!("{}/src/", package.dir);
        let has_permitted = sources.iter().any(|source| {
            let is_own = source.path.starts_with(&src);
            is_own && (is_permitted(source.path) || !kernel_modules(&source.code).is_empty())
        });
        for root in &package.roots {
            let Some(source) = sources.iter().find(|source| source.path == *root) else {
                findings.push(finding(root, 1, format!("{} has no such root", package.name)));
                continue;
            };
            let guarded = guard(&source.code);
            if guarded == Some("forbid") || (guarded == Some("deny") && has_permitted) {
                continue;
            }
            let level = if has_permitted { "forbid or deny" } else { "forbid" };
            let sentence = format!("the root of {} must {level} unsafe_code", package.name);
            findings.push(finding(root, 1, sentence));
        }
    }
    findings
}

fn finding(path: &str, line: usize, sentence: String) -> Finding {
    Finding { path: path.to_owned(), line, rule: Rule::Unsafe, sentence }
}

/// Whether the whole file may hold `unsafe`.
fn is_permitted(path: &str) -> bool {
    // Beside the crates, one workspace has kernels of its own: reading memory as fast as it goes.
    let module = match path.strip_prefix("bench-peers/src/") {
        Some(module) => module,
        None => match path.strip_prefix("crates/").and_then(|path| path.split_once("/src/")) {
            Some((_, module)) => module,
            None => return false,
        },
    };
    let in_host = path.starts_with("crates/host/");
    module.split('/').any(|part| part.trim_end_matches(".rs") == "kernel")
        || (in_host && (module.starts_with("uring") || module.starts_with("ioctl")))
}

/// The tokens between the braces of each `mod kernel { .. }`.
fn kernel_modules(code: &[Token<'_>]) -> Vec<(usize, usize)> {
    let opens = code.windows(3).enumerate().filter(|(_, three)| {
        three[0].is_word("mod") && three[1].is_word("kernel") && three[2].is("{")
    });
    opens.map(|(at, _)| (at, super::sources::group_end(code, at + 2))).collect()
}

/// The level that the file's own `#![..(unsafe_code)]` sets.
fn guard<'a>(code: &[Token<'a>]) -> Option<&'a str> {
    let attributes = code.windows(6).filter(|six| {
        let marks = six[0].is("#") && six[1].is("!") && six[2].is("[") && six[4].is("(");
        marks && six[3].kind == Kind::Word
    });
    let mut about_unsafe = attributes.filter(|six| six[5].is_word("unsafe_code"));
    about_unsafe.next().map(|six| six[3].text)
}

#[cfg(test)]
mod tests {
    use crate::tidy::Tree;

    const STANDS: &str = "unsafe: `unsafe` stands only in modules named kernel, in host/src/uring* and in host/src/ioctl*";

    fn host() -> Tree {
        Tree::planted()
            .with_package("host", &[], "//! H.\n#![deny(unsafe_code)]\n")
            .with_file("crates/host/src/uring/mod.rs", "//! Rings.\nfn a() { unsafe { b() } }\n")
    }

    fn check(tree: &Tree, want: &[String]) {
        assert_eq!(tree.findings(), want);
    }

    #[test]
    fn planted_unsafe_is_found_in_code_and_in_tests() {
        for path in ["crates/array/src/read.rs", "crates/array/tests/a.rs", "fuzz/targets/a.rs"] {
            let tree = host().with_file(path, "//! A.\nfn a() { unsafe { b() } }\n");
            check(&tree, &[format!("{path}:2: {STANDS}")]);
        }
        let hidden = "//! A.\n#[cfg(test)]\nmod tests { fn a() { unsafe { b() } } }\n";
        let tree = host().with_file("crates/host/src/run.rs", hidden);
        check(&tree, &[format!("crates/host/src/run.rs:3: {STANDS}")]);
    }

    #[test]
    fn unsafe_is_let_through_where_it_may_stand() {
        let body = "//! A.\nunsafe fn a() {}\n";
        let inline = "//! A.\nmod kernel { unsafe fn a() {} }\n";
        let tree = host()
            .with_file("crates/host/src/uring_probe.rs", body)
            .with_file("crates/host/src/ioctl.rs", body)
            .with_file("crates/erasure/src/kernel/avx2.rs", body)
            .with_file("crates/erasure/src/field.rs", inline);
        check(&tree, &[]);
        let elsewhere = "crates/array/src/uring.rs";
        let tree = host().with_file(elsewhere, body);
        check(&tree, &[format!("{elsewhere}:2: {STANDS}")]);
        let after = "//! A.\nmod kernel { fn a() {} }\nunsafe fn b() {}\n";
        let tree = host().with_file("crates/erasure/src/field.rs", after);
        check(&tree, &[format!("crates/erasure/src/field.rs:3: {STANDS}")]);
    }

    #[test]
    fn planted_roots_without_a_guard_are_found() {
        let root = "crates/array/src/lib.rs";
        let want = |level: &str| {
            [format!("{root}:1: unsafe: the root of levelhead-array must {level} unsafe_code")]
        };
        check(&host().with_file(root, "//! A.\n"), &want("forbid"));
        check(&host().with_file(root, "//! A.\n// #![forbid(unsafe_code)]\n"), &want("forbid"));
        check(&host().with_file(root, "//! A.\n#![deny(unsafe_code)]\n"), &want("forbid"));
        let kernel = "//! A.\nmod kernel { }\n";
        check(&host().with_file(root, kernel), &want("forbid or deny"));
    }
}
