//! Whether what a command printed is of the shape that a page shows.

use anyhow::bail;

/// Compares line by line; `...` stands for any lines.
pub(super) fn compare(expected: &str, said: &str) -> anyhow::Result<()> {
    let expected: Vec<String> = lines(expected);
    let said = lines(said);
    if !fits(&expected, &said) {
        bail!("printed\n{}\nwhere the page has\n{}", said.join("\n"), expected.join("\n"));
    }
    Ok(())
}

fn lines(text: &str) -> Vec<String> {
    text.lines().map(shape).filter(|line| !line.is_empty()).collect()
}

fn fits(expected: &[String], said: &[String]) -> bool {
    match expected.split_first() {
        None => said.is_empty(),
        Some((first, rest)) if first == "..." => (0..=said.len()).any(|at| fits(rest, &said[at..])),
        Some((first, rest)) => {
            said.split_first().is_some_and(|(line, behind)| line == first && fits(rest, behind))
        }
    }
}

/// A line with what differs from run to run left out: UUIDs are `U`, numbers `#`, and runs of spaces and the dashes under a
/// table's heading one.
fn shape(line: &str) -> String {
    let words = line.split_whitespace().map(|word| match word {
        _ if is_uuid(word) => "U".to_owned(),
        _ if word.bytes().all(|byte| byte == b'-') => "-".to_owned(),
        _ => without_numbers(word),
    });
    words.collect::<Vec<_>>().join(" ")
}

fn is_uuid(word: &str) -> bool {
    let word = word.trim_matches(|letter: char| !letter.is_ascii_hexdigit());
    let lengths: Vec<usize> = word.split('-').map(str::len).collect();
    lengths == [8, 4, 4, 4, 12]
        && word.chars().all(|letter| letter == '-' || letter.is_ascii_hexdigit())
}

fn without_numbers(word: &str) -> String {
    let (mut shape, mut is_number) = (String::new(), false);
    for letter in word.chars() {
        let goes_on = letter.is_ascii_digit() || (is_number && matches!(letter, '.' | ','));
        if goes_on && !is_number {
            shape.push('#');
        }
        if !goes_on {
            shape.push(letter);
        }
        is_number = goes_on;
    }
    shape
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_uuids_may_differ_and_words_may_not() {
        let page =
            "array: 11111111-2222-3333-4444-555555555555\nsize: 8.75MiB  (2 drives)\n...\nend";
        let said = "array: aaaaaaaa-2222-3333-4444-555555555555\nsize: 9MiB (6 drives)\nmore\nand more\nend\n";
        assert!(compare(page, said).is_ok());
        assert!(compare(page, &said.replace("drives", "disks")).is_err());
        assert!(compare(page, &said.replace("end", "")).is_err());
        assert!(compare("a\n...", "a\n").is_ok());
        assert!(compare("size  drive\n----  -----", "size    drive\n------  -----").is_ok());
        assert!(compare("--json", "--csv").is_err());
    }
}
