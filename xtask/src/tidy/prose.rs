//! How README and the book read: sentences that are short on average, and every page in the table of contents.

use super::tree::Tree;
use super::{Finding, Rule};

/// The most words of a sentence, on average over a page.
const WORDS_MAX: f64 = 22.0;

/// Pages for readers of papers, tables with their derivations: not measured.
const EXEMPT: [&str; 8] = [
    "docs/benchmarks.md",
    "docs/drive.md",
    "docs/ecc.md",
    "docs/level.md",
    "docs/papers.md",
    "docs/rtl.md",
    "docs/studies.md",
    "docs/SUMMARY.md",
];

const CONTENTS: &str = "docs/SUMMARY.md";

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let finding = |path: &str, sentence: String| Finding {
        path: path.to_owned(),
        line: 1,
        rule: Rule::Prose,
        sentence,
    };
    let contents = tree.file(CONTENTS).map(|file| file.text.as_str());
    for file in &tree.files {
        let Some(page) = page_of_the_book(&file.path) else { continue };
        if !EXEMPT.contains(&file.path.as_str()) && !page.starts_with("formats/") {
            let mean = mean_words(&file.text);
            if mean > WORDS_MAX {
                let sentence =
                    format!("its sentences have {mean:.1} words on average, {WORDS_MAX} at most");
                findings.push(finding(&file.path, sentence));
            }
        }
        // A book has a page once, and all its pages inside its folder.
        let page = if file.path == "README.md" { "../README.md" } else { page };
        let listed = |text: &str| text.matches(&format!("({page})")).count();
        let expected = usize::from(file.path.starts_with("docs/") && file.path != CONTENTS);
        match contents.map_or(expected, listed) {
            count if count == expected => {}
            0 => findings.push(finding(&file.path, format!("it is not in {CONTENTS}"))),
            _ => findings.push(finding(&file.path, format!("it is in {CONTENTS} too often"))),
        }
    }
    findings
}

/// The page as the table of contents names it.
fn page_of_the_book(path: &str) -> Option<&str> {
    let page = path.strip_prefix("docs/").or((path == "README.md").then_some(path))?;
    page.ends_with(".md").then_some(page)
}

/// The mean number of words of the sentences of running text: outside code, tables and headings.
fn mean_words(text: &str) -> f64 {
    let (mut is_fenced, mut prose) = (false, String::new());
    for line in text.lines() {
        if line.starts_with("```") {
            is_fenced = !is_fenced;
        }
        let is_prose = !is_fenced
            && !line.starts_with("    ")
            && !line.starts_with(['#', '|', '<', '!', '`'])
            && !line.trim().is_empty();
        // What stands between two paragraphs ends a sentence.
        prose.push_str(if is_prose { line } else { " . " });
        prose.push(if line.trim_start().starts_with(['*', '-']) { ' ' } else { '\n' });
    }
    let ends = |at: usize| {
        prose[at..].chars().next().is_some_and(|end| ".!?:".contains(end))
            && prose[at + 1..].chars().next().is_none_or(char::is_whitespace)
    };
    let (mut words, mut sentences, mut begin) = (0, 0, 0);
    for (at, _) in prose.char_indices().filter(|&(at, _)| ends(at)) {
        let count = prose[begin..at].split_whitespace().filter(|word| has_letters(word)).count();
        words += count;
        sentences += usize::from(count > 0);
        begin = at + 1;
    }
    f64::from(words as u32) / f64::from(sentences.max(1) as u32)
}

fn has_letters(word: &str) -> bool {
    word.chars().any(char::is_alphabetic)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_counted_in_running_text_alone() {
        let text = "# A heading of five words\n\nOne two three. One two\nthree four five.\n\n    code that goes on and on\n\n\
                    | a | table |\n\n```sh\nmore code\n```\n\n* One: two three\n* four.\n";
        assert!(
            (mean_words(text) - (3.0 + 5.0 + 1.0 + 3.0) / 4.0).abs() < 1e-9,
            "{}",
            mean_words(text)
        );
    }

    #[test]
    fn long_sentences_and_pages_that_nobody_finds_are_found() {
        let long = format!("A{} b.\n", " word".repeat(30));
        let tree = Tree::planted()
            .with_file(
                "docs/SUMMARY.md",
                "- [A](a.md)\n- [C](c.md)\n- [C](c.md)\n- [All](../README.md)\n",
            )
            .with_file("docs/a.md", &long)
            .with_file("docs/b.md", "Short.\n")
            .with_file("docs/c.md", "Short.\n")
            .with_file("README.md", "Short.\n")
            .with_file("docs/level.md", &long);
        let found: Vec<String> = check(&tree).iter().map(ToString::to_string).collect();
        assert_eq!(
            found,
            [
                "docs/a.md:1: prose: its sentences have 32.0 words on average, 22 at most",
                "docs/b.md:1: prose: it is not in docs/SUMMARY.md",
                "docs/c.md:1: prose: it is in docs/SUMMARY.md too often",
                "README.md:1: prose: it is in docs/SUMMARY.md too often",
                "docs/level.md:1: prose: it is not in docs/SUMMARY.md",
            ]
        );
    }
}
