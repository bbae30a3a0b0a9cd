//! Words that sentences for users do without: each has a plainer one, which readers know from other programs.
//!
//! Looked at are the strings of the product code of the programs and of the crates whose sentences they show, and the doc comments
//! of the two folders of commands, which are their help. A placeholder (`{mended}`) and a name in one piece (`write-mended`) are not
//! words of a sentence.

use super::rust::{Kind, Token};
use super::sources::{FileKind, Source};
use super::{Finding, Rule};

/// Crates whose strings users read, beside those whose names begin with `app`.
const CRATES: [&str; 12] = [
    "array", "cli", "cli-lab", "drive", "fs", "fuse", "host", "nbd", "planner", "terminal",
    "trace", "units",
];

/// Folders whose doc comments are help.
const COMMANDS: [&str; 2] = ["crates/cli/src/commands/", "crates/cli-lab/src/commands/"];

/// What is not said, and what is said instead.
const WORDS: [(&[&str], &str); 7] = [
    (&["anew"], "again, or from scratch"),
    (&["in", "good", "order"], "cleanly"),
    (&["made", "up"], "synthetic"),
    (&["made-up"], "synthetic"),
    (&["mend"], "repair"),
    (&["mended"], "repaired"),
    (&["is", "no"], "expected Y, got X; or X is not a Y"),
];

pub(crate) fn check(sources: &[Source<'_>]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in sources {
        let FileKind::Crate(name) = source.kind else { continue };
        if !name.starts_with("app") && !CRATES.contains(&name) {
            continue;
        }
        let literals = source.product.iter().filter(|token| token.kind == Kind::Literal);
        let strings = literals.map(|Token { text, line, .. }| (*line, *text));
        let is_help = COMMANDS.iter().any(|folder| source.path.starts_with(folder));
        let lines = source.text.lines().enumerate().filter(|_| is_help);
        let comments = lines.filter_map(|(at, line)| Some((at + 1, doc_comment(line)?)));
        for (line, text) in strings.chain(comments) {
            findings.extend(found(text).map(|(said, instead)| Finding {
                path: source.path.to_owned(),
                line,
                rule: Rule::Words,
                sentence: format!("`{said}` in a sentence for users: write {instead}"),
            }));
        }
    }
    findings
}

/// The text of a line that is a doc comment.
fn doc_comment(line: &str) -> Option<&str> {
    line.trim_start().strip_prefix("///")
}

/// The words in `text` that are not said, each with what is said instead.
fn found(text: &str) -> impl Iterator<Item = (String, &'static str)> {
    let words = words(text);
    WORDS.into_iter().filter_map(move |(said, instead)| {
        let is_there = words.windows(said.len() + 1).any(|window| {
            let (here, next) = window.split_at(said.len());
            // `is no longer` is the opposite of `is still`.
            here.iter().zip(said).all(|(word, said)| word.eq_ignore_ascii_case(said))
                && !(*said == ["is", "no"] && next[0] == "longer")
        });
        is_there.then(|| (said.join(" "), instead))
    })
}

/// The words of `text`, without placeholders and line breaks, and an empty one at the end.
fn words(text: &str) -> Vec<String> {
    let mut plain = String::new();
    let mut depth = 0;
    for c in text.replace("\\n", " ").chars() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ if depth > 0 => {}
            _ => plain.push(c),
        }
        // A brace is a letter of the word it stands in.
        if c == '}' {
            plain.push('_');
        }
    }
    let is_word = |c: char| c.is_alphanumeric() || "-_'".contains(c);
    let split = plain.split(|c: char| !is_word(c));
    let mut words: Vec<String> = split.filter(|word| !word.is_empty()).map(str::to_owned).collect();
    words.push(String::new());
    words
}

#[cfg(test)]
mod tests {
    use crate::tidy::Tree;

    fn check(path: &str, code: &str, want: &[&str]) {
        let tree = Tree::planted()
            .with_package("host", &[], "//! H.\n#![forbid(unsafe_code)]\n")
            .with_file(path, &format!("//! A file.\n{code}\n"));
        let found = tree.findings();
        let found: Vec<_> = found.iter().filter(|line| line.contains(": words: ")).collect();
        assert_eq!(found.len(), want.len(), "{code}: {found:?}");
        for (line, want) in found.iter().zip(want) {
            assert!(line.contains(&format!("`{want}` in a sentence")), "{code}: {line}");
        }
    }

    #[test]
    fn words_in_strings_are_found() {
        let path = "crates/host/src/a.rs";
        check(path, r#"const A: &str = "'{text}' is no drive";"#, &["is no"]);
        check(path, r#"const A: &str = "there is no drive";"#, &["is no"]);
        check(path, "const A: &str = \"it is \\\n    no drive, mended\";", &["is no", "mended"]);
        check(path, r#"const A: &str = "stopped in good order";"#, &["in good order"]);
        check(path, r#"const A: &str = "Made up, or made-up";"#, &["made up", "made-up"]);
        check(path, r##"const A: &str = r#"filled anew"#;"##, &["anew"]);
        check("crates/host/src/b.rs", r#"const A: &str = "we mend it";"#, &["mend"]);
    }

    #[test]
    fn names_placeholders_comments_and_tests_are_let_through() {
        let path = "crates/host/src/a.rs";
        check(path, r#"const A: &str = "write-mended";"#, &[]);
        check(path, r#"const A: &str = "{mended} of them, {is}no";"#, &[]);
        check(path, r#"const A: &str = "it is no longer there, and is not a drive";"#, &[]);
        check(path, "/// It is no drive.\nconst A: u8 = 0;", &[]);
        check(path, "#[cfg(test)]\nconst A: &str = \"it is no drive\";", &[]);
        check("crates/stats/src/a.rs", r#"const A: &str = "it is no share";"#, &[]);
    }

    #[test]
    fn doc_comments_are_help_where_commands_are() {
        let comment = "struct A {\n    /// Fill it anew\n    a: u8,\n}";
        check("crates/cli/src/commands/a.rs", comment, &["anew"]);
        check("crates/cli/src/a.rs", comment, &[]);
    }
}
