//! Rules of the house that the compiler does not check.
//!
//! A check is a pure function from a [`Tree`] (what `cargo metadata` says, and the text of every
//! file) to findings, so that a test plants a violation by writing down a small tree. Only
//! [`Tree::read`] touches the disk.
//!
//! ```text
//!   cargo metadata --no-deps --+                  +-- arrows     who may depend on whom
//!                              +--> Tree --> check -- cores      what cores never touch; terminals
//!   every file not ignored ----+                  +-- circles    no files that need each other
//!                                                +-- bytes      which cores never see bytes
//!                                                 +-- unsafety   where `unsafe` may stand
//!                                                 +-- threads    no thread by a call that panics
//!                                                 +-- machine    nothing of one machine in the text
//!                                                 +-- layout     names, module docs, format pages
//!                                                 +-- citations  keys of papers
//!                                                 +-- rooms      the rooms of the array, and arrows that run up
//!                                                 +-- prose      how README and the book read
//!                                                 +-- words      words that users do not read
//! ```
//!
//! Sources are read as tokens ([`rust`]), so that a word in a comment or in a string is not code,
//! and without their tests ([`sources`]) where a rule is about the product alone.
//!
//! What it leaves out: it expands no macros and resolves no names. A core that hides a clock behind
//! a macro of another crate is not caught here, only by its dependencies.

mod arrows;
mod bytes;
mod circles;
mod citations;
mod cores;
mod layout;
mod machine;
mod prose;
mod rooms;
mod rust;
mod sources;
mod threads;
mod tree;
mod unsafety;
mod words;

use std::fmt;

pub(crate) use tree::Tree;

/// One violation.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    path: String,
    line: usize,
    rule: Rule,
    sentence: String,
}

/// Which rule was broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rule {
    /// Dependencies between crates, and on outside crates.
    Arrow,
    /// No files of a crate that need each other.
    Circle,
    /// Cores decide and never act.
    Core,
    /// Some cores never see bytes.
    Bytes,
    /// Only the programs know terminals and exit codes.
    Terminal,
    /// Where `unsafe` may stand.
    Unsafe,
    /// No thread is started by a call that panics.
    Thread,
    /// Nothing of one machine in the text.
    Machine,
    /// Names, module docs, lints.
    Layout,
    /// On-disk formats have a page.
    Format,
    /// Keys of papers have an entry.
    Citation,
    /// How README and the book read.
    Prose,
    /// The order of the rooms of the array.
    Room,
    /// Words that sentences for users do without.
    Words,
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Arrow => "arrow",
            Self::Circle => "circle",
            Self::Core => "core",
            Self::Bytes => "bytes",
            Self::Terminal => "terminal",
            Self::Unsafe => "unsafe",
            Self::Thread => "thread",
            Self::Machine => "machine",
            Self::Layout => "layout",
            Self::Format => "format",
            Self::Citation => "citation",
            Self::Prose => "prose",
            Self::Room => "room",
            Self::Words => "words",
        })
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}: {}", self.path, self.line, self.rule, self.sentence)
    }
}

/// Everything wrong with `tree`, by path and line.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let sources = sources::read(tree);
    let mut findings = Vec::new();
    findings.extend(arrows::check(tree));
    findings.extend(circles::check(&sources));
    findings.extend(rooms::check(&sources));
    findings.extend(cores::check(&sources));
    findings.extend(bytes::check(&sources));
    findings.extend(unsafety::check(tree, &sources));
    findings.extend(threads::check(&sources));
    findings.extend(machine::check(tree));
    findings.extend(layout::check(tree, &sources));
    findings.extend(citations::check(tree, &sources));
    findings.extend(prose::check(tree));
    findings.extend(words::check(&sources));
    findings.sort();
    findings.dedup();
    findings
}

/// What is counted and always printed.
pub(crate) fn counts(tree: &Tree) -> String {
    let sources = sources::read(tree);
    let arrows = rooms::Arrows::of(&sources);
    format!(
        "{} of {} arrows between files of the array's rooms run up",
        arrows.up_count(),
        arrows.count
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_tree_is_tidy() {
        let tree = Tree::read(&crate::workspace_root()).expect("the tree is readable");
        assert!(tree.packages.len() >= 2, "cargo metadata names the members");
        assert!(tree.files.iter().any(|file| file.path == "xtask/src/tidy/mod.rs"));
        let findings = check(&tree);
        let lines: Vec<_> = findings.iter().map(ToString::to_string).collect();
        assert!(lines.is_empty(), "{} found:\n{}", lines.len(), lines.join("\n"));
    }

    #[test]
    fn a_finding_reads_as_path_line_rule_sentence() {
        let finding = Finding {
            path: "crates/sim/src/lib.rs".into(),
            line: 7,
            rule: Rule::Core,
            sentence: "no clocks".into(),
        };
        assert_eq!(finding.to_string(), "crates/sim/src/lib.rs:7: core: no clocks");
    }

    #[test]
    fn planted_trees_start_clean() {
        assert_eq!(check(&Tree::planted()), []);
    }
}
