//! A key such as `[RS60]` in the sources has its entry in `docs/papers.md`.
//!
//! A key is what stands in backticks and brackets: a capital, then letters and digits, at least
//! three in all, and either a digit among them or capitals only. An entry is a line that opens with
//! its key.

use super::sources::{FileKind, Source};
use super::tree::Tree;
use super::{Finding, Rule};

const BIBLIOGRAPHY: &str = "docs/papers.md";

pub(crate) fn check(tree: &Tree, sources: &[Source<'_>]) -> Vec<Finding> {
    let bibliography = tree.file(BIBLIOGRAPHY).map_or("", |file| &file.text);
    let entry_lines = bibliography.lines().filter(|line| line.starts_with("`["));
    let entries: Vec<&str> = entry_lines.filter_map(|line| keys(line).next()).collect();
    let mut findings = Vec::new();
    for source in sources.iter().filter(|source| matches!(source.kind, FileKind::Crate(_))) {
        for (at, line) in source.text.lines().enumerate() {
            let unknown = keys(line).filter(|key| !entries.contains(key));
            findings.extend(unknown.map(|key| Finding {
                path: source.path.to_owned(),
                line: at + 1,
                rule: Rule::Citation,
                sentence: format!("{BIBLIOGRAPHY} has no entry for [{key}]"),
            }));
        }
    }
    findings
}

/// The keys that `line` cites.
fn keys(line: &str) -> impl Iterator<Item = &str> {
    let quoted = line.split('`').skip(1).step_by(2);
    let bracketed = quoted.filter_map(|text| text.strip_prefix('[')?.strip_suffix(']'));
    bracketed.filter(|key| {
        key.len() >= 3
            && key.starts_with(|c: char| c.is_ascii_uppercase())
            && key.chars().all(|c| c.is_ascii_alphanumeric())
            && (key.contains(|c: char| c.is_ascii_digit()) || !key.contains(char::is_lowercase))
    })
}

#[cfg(test)]
mod tests {
    use crate::tidy::Tree;

    fn check(cited: &str, entry: &str, want: &[&str]) {
        let path = "crates/array/src/tau.rs";
        let tree = Tree::planted()
            .with_file(path, &format!("//! A sum of\n//! {cited}.\n"))
            .with_file("docs/papers.md", &format!("# Papers\n\n{entry} some title\n"));
        let want: Vec<_> = want
            .iter()
            .map(|key| format!("{path}:2: citation: docs/papers.md has no entry for [{key}]"))
            .collect();
        assert_eq!(tree.findings(), want, "{cited}");
    }

    #[test]
    fn planted_keys_without_an_entry_are_found() {
        check("`[RS60]`", "`[RS60]`", &[]);
        check("`[RS60]`", "nothing", &["RS60"]);
        check("Eq. (7) of `[Blo95]`, `[NBD]`", "`[RS60]`", &["Blo95", "NBD"]);
        check("`[RS60]`", "see `x`, `[RS60]`", &["RS60"]);
    }

    #[test]
    fn brackets_that_are_no_keys_are_let_through() {
        check("`[u8]` `[A]` `[Lba]` `[0..1]` [`Lba`] [NBD] `a[NBD]`", "nothing", &[]);
    }
}
