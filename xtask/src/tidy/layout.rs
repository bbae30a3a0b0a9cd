//! Names and papers: what lies where, what every file opens with, and that each on-disk format has
//! a page.

use super::rust::{Kind, Token};
use super::sources::{FileKind, Source};
use super::tree::Tree;
use super::{Finding, Rule};

/// Crates whose magic numbers belong to others: a protocol, foreign trace files.
const FOREIGN_FORMATS: &[&str] = &["nbd", "trace"];

pub(crate) fn check(tree: &Tree, sources: &[Source<'_>]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in &tree.packages {
        let manifest = package.manifest();
        let mut found = |sentence: String| {
            findings.push(Finding {
                path: manifest.clone(),
                line: 1,
                rule: Rule::Layout,
                sentence,
            });
        };
        if let Some(name) = package.dir.strip_prefix("crates/")
            && package.name != format!("levelhead-{name}")
        {
            found(format!("crates/{name} must hold levelhead-{name}, not {}", package.name));
        }
        let text = tree.file(&manifest).map_or("", |file| &file.text);
        if !has_workspace_lints(text) {
            found(format!("{} must take the lints of the workspace", package.name));
        }
    }
    for source in sources {
        let first = source.text.lines().find(|line| !line.trim().is_empty());
        let is_opened = first.is_some_and(|line| line.starts_with("//!"));
        let is_product = source.kind != FileKind::Test && source.path.contains("/src/");
        if is_product && !is_opened {
            findings.push(Finding {
                path: source.path.to_owned(),
                line: 1,
                rule: Rule::Layout,
                sentence: "a file opens with a module doc (`//!`) that says what it is".to_owned(),
            });
        }
        findings.extend(formats_without_page(tree, source));
    }
    findings
}

/// Whether a manifest says `[lints]`, `workspace = true`.
fn has_workspace_lints(manifest: &str) -> bool {
    let mut lines = manifest.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.any(|line| line == "[lints]") && lines.next() == Some("workspace = true")
}

/// Magic numbers of on-disk structures that no page of `docs/formats` names.
///
/// A magic is a constant with `MAGIC` in its name; a page names it by the text between the quotes,
/// or by the number in hex, as the source has it.
fn formats_without_page(tree: &Tree, source: &Source<'_>) -> Vec<Finding> {
    let FileKind::Crate(name) = source.kind else { return Vec::new() };
    if FOREIGN_FORMATS.contains(&name) {
        return Vec::new();
    }
    let is_page = |path: &str| path.starts_with("docs/formats/") && path.ends_with(".md");
    let pages = || tree.files.iter().filter(|file| is_page(&file.path));
    let mut findings = Vec::new();
    for (constant, value) in magics(&source.product) {
        let text = value.text.trim_start_matches('b').trim_matches(['"', '\'']);
        let wanted = plain(text.trim_end_matches("\\0"));
        if !pages().any(|page| plain(&page.text).contains(&wanted)) {
            findings.push(Finding {
                path: source.path.to_owned(),
                line: value.line,
                rule: Rule::Format,
                sentence: format!("no page of docs/formats names {constant}, {}", value.text),
            });
        }
    }
    findings
}

/// Text as it is compared: lower case, no `_` within numbers.
fn plain(text: &str) -> String {
    text.replace('_', "").to_ascii_lowercase()
}

/// Every `const ..MAGIC..` whose value opens with a literal or a number: its name and that value.
fn magics<'a>(code: &[Token<'a>]) -> Vec<(&'a str, Token<'a>)> {
    let mut found = Vec::new();
    for (at, pair) in code.windows(2).enumerate() {
        if !pair[0].is_word("const") || !pair[1].text.contains("MAGIC") {
            continue;
        }
        let Some(after) = code[at..].iter().position(|token| token.is("=")) else { continue };
        let is_value = |token: &&Token<'_>| {
            let is_number = token.text.starts_with(|c: char| c.is_ascii_digit());
            token.kind == Kind::Literal || (token.kind == Kind::Word && is_number)
        };
        let value =
            code[at + after..].iter().take(8).take_while(|token| !token.is(";")).find(is_value);
        found.extend(value.map(|value| (pair[1].text, *value)));
    }
    found
}

#[cfg(test)]
mod tests {
    use crate::tidy::Tree;

    #[test]
    fn planted_names_are_found() {
        let mut tree = Tree::planted();
        tree.packages[0].name = "levelhead-words".into();
        let want = "crates/units/Cargo.toml:1: layout: crates/units must hold levelhead-units, not \
                    levelhead-words";
        assert!(tree.findings().contains(&want.to_owned()), "{:?}", tree.findings());
    }

    #[test]
    fn planted_manifests_without_lints_are_found() {
        let tree = Tree::planted().with_file("crates/stats/Cargo.toml", "[package]\n");
        let want = "crates/stats/Cargo.toml:1: layout: levelhead-stats must take the lints of the \
                    workspace";
        assert_eq!(tree.findings(), [want]);
    }

    #[test]
    fn planted_files_without_a_doc_are_found() {
        let path = "crates/stats/src/seed.rs";
        let want = "layout: a file opens with a module doc (`//!`) that says what it is";
        let tree = Tree::planted().with_file(path, "fn a() {}\n//! Late.\n");
        assert_eq!(tree.findings(), [format!("{path}:1: {want}")]);
        let root = "crates/stats/src/lib.rs";
        let tree = Tree::planted().with_file(root, "#![forbid(unsafe_code)]\n");
        assert_eq!(tree.findings(), [format!("{root}:1: {want}")]);
        let test = "crates/stats/tests/a.rs";
        assert_eq!(Tree::planted().with_file(test, "fn a() {}\n").findings(), [""; 0]);
    }

    fn check_magic(path: &str, value: &str, page: &str, want: &[&str]) {
        let code = format!("//! A.\npub(crate) const PAGE_MAGIC: [u8; 8] = {value};\n");
        let tree = Tree::planted()
            .with_file(path, &code)
            .with_file("docs/formats/array.md", page)
            .with_file("docs/other.md", "LEVELSUP 0x4c45");
        assert_eq!(tree.findings(), want, "{value} {page}");
    }

    #[test]
    fn planted_formats_without_a_page_are_found() {
        let path = "crates/array/src/disk.rs";
        let text = "crates/array/src/disk.rs:2: format: no page of docs/formats names PAGE_MAGIC, ";
        check_magic(path, "*b\"LEVELSUP\"", "nothing", &[&format!("{text}b\"LEVELSUP\"")]);
        check_magic(path, "*b\"LEVELSUP\"", "magic `LEVELSUP`", &[]);
        check_magic(path, "0x4c45_5645", "nothing", &[&format!("{text}0x4c45_5645")]);
        check_magic(path, "0x4c45_5645", "magic 0x4C455645", &[]);
        check_magic("crates/nbd/src/wire.rs", "0x4e42_444d", "nothing", &[]);
        check_magic("crates/array/tests/disk.rs", "1", "nothing", &[]);
    }
}
