//! The command blocks of a page.

/// Words with which a command begins.
const COMMANDS: [&str; 35] = [
    "levelhead",
    "levelhead-lab",
    "cargo",
    "truncate",
    "mkdir",
    "mount",
    "head",
    "cat",
    "curl",
    "fio",
    "nbdcopy",
    "nbdinfo",
    "nbd-client",
    "install",
    "nbdfuse",
    "certtool",
    "python3",
    "promtool",
    "systemctl",
    "udevadm",
    "apt-get",
    "cp",
    "rm",
    "ls",
    "echo",
    "until",
    "for",
    "while",
    "sleep",
    "export",
    "cd",
    "dd",
    "duckdb",
    "pip",
    "sudo",
];

/// Whether it is run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Run,
    /// For this reason not.
    Skipped(String),
}

/// A block of commands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Block {
    /// Where it begins, from 1.
    pub(super) line: usize,
    pub(super) commands: String,
    /// What is run before it, and not shown.
    pub(super) setup: String,
    pub(super) fate: Fate,
    /// The exit code.
    pub(super) code: u8,
    /// What the page says that it prints.
    pub(super) prints: Option<String>,
}

/// What comments before a block say.
#[derive(Default)]
struct Directions {
    setup: String,
    skip: Option<String>,
    with: Vec<(String, String)>,
    code: u8,
}

/// The blocks in order; or the line and what is wrong with a comment there.
pub(super) fn blocks(text: &str) -> Result<Vec<Block>, String> {
    let lines: Vec<&str> = text.lines().collect();
    let (mut blocks, mut at) = (Vec::<Block>::new(), 0);
    let mut directions = Directions::default();
    // The block of commands right before, whose output may follow.
    let mut last: Option<usize> = None;
    while at < lines.len() {
        let line = lines[at];
        if let Some(direction) = direction(line) {
            directions.take(direction).map_err(|error| format!("{}: {error}", at + 1))?;
            at += 1;
        } else if let Some(language) = line.strip_prefix("```") {
            let end = (at + 1..lines.len()).find(|&end| lines[end].starts_with("```"));
            let end = end.ok_or_else(|| format!("{}: a fence without an end", at + 1))?;
            let body = lines[at + 1..end].join("\n");
            match (language, last.take()) {
                ("sh", _) => {
                    blocks.push(std::mem::take(&mut directions).block(at + 1, &body));
                    last = Some(blocks.len() - 1);
                }
                ("text", Some(before)) => blocks[before].prints = Some(body),
                _ => {}
            }
            at = end + 1;
        } else if line.starts_with("    ") && (at == 0 || lines[at - 1].trim().is_empty()) {
            let is_inside = |line: &&&str| line.starts_with("    ") || line.trim().is_empty();
            let body: Vec<&str> = lines[at..].iter().take_while(is_inside).copied().collect();
            let length =
                body.iter().rposition(|line| !line.trim().is_empty()).map_or(1, |last| last + 1);
            let body: Vec<&str> =
                body[..length].iter().map(|line| line.strip_prefix("    ").unwrap_or("")).collect();
            if is_command(body[0]) {
                blocks.push(std::mem::take(&mut directions).block(at + 1, &body.join("\n")));
            }
            last = None;
            at += length;
        } else {
            if !line.trim().is_empty() {
                last = None;
            }
            at += 1;
        }
    }
    Ok(blocks)
}

fn direction(line: &str) -> Option<&str> {
    line.trim().strip_prefix("<!-- doctest: ")?.strip_suffix(" -->")
}

/// Whether a command is there, maybe behind variables of its environment.
fn is_command(line: &str) -> bool {
    let mut words = line.split_whitespace().skip_while(|word| is_assignment(word));
    words.next().is_some_and(|word| COMMANDS.contains(&word))
}

fn is_assignment(word: &str) -> bool {
    let is_name = |name: &str| name.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_');
    word.split_once('=').is_some_and(|(name, _)| !name.is_empty() && is_name(name))
}

impl Directions {
    fn take(&mut self, direction: &str) -> Result<(), String> {
        let (verb, rest) = direction.split_once(' ').unwrap_or((direction, ""));
        match verb {
            "skip" if !rest.is_empty() => self.skip = Some(rest.to_owned()),
            "setup" => self.setup += &format!("{rest}\n"),
            "exit" => {
                self.code =
                    rest.parse().map_err(|_| format!("expected an exit code, got '{rest}'"))?;
            }
            "with" => {
                for pair in rest.split(' ') {
                    let (word, text) = pair
                        .split_once('=')
                        .ok_or_else(|| format!("expected WORD=TEXT, got '{pair}'"))?;
                    self.with.push((word.to_owned(), text.to_owned()));
                }
            }
            _ => {
                return Err(format!(
                    "expected skip WHY, setup COMMANDS, with WORD=TEXT or exit N, got '{direction}'"
                ));
            }
        }
        Ok(())
    }

    fn block(self, line: usize, body: &str) -> Block {
        let Self { setup, skip, with, code } = self;
        let replaced = |text: String, (word, by): &(String, String)| replace_word(&text, word, by);
        Block {
            line,
            commands: with.iter().fold(body.to_owned(), replaced),
            setup,
            fate: skip.map_or(Fate::Run, Fate::Skipped),
            code,
            prints: None,
        }
    }
}

/// Replaces a word where no letter, digit or underscore is beside it.
fn replace_word(text: &str, word: &str, by: &str) -> String {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    let (mut done, mut rest) = (String::new(), text);
    while let Some(at) = rest.find(word) {
        let (before, behind) = (&rest[..at], &rest[at + word.len()..]);
        let is_whole = !before.ends_with(is_part) && !behind.starts_with(is_part);
        done += before;
        done += if is_whole { by } else { word };
        rest = behind;
    }
    done + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_found_with_their_directions_and_output() {
        let page = "# A\n\n<!-- doctest: with FILE=a.img -->\n```sh\nlevelhead fs status FILE\n```\n\nIt prints\n\n\
                    ```text\nno\n```\n\n```sh\nls\n```\n\n```text\na 12\n```\n\n    levelhead x\n      y\n\n    no command\n\n\
                    <!-- doctest: skip hardware -->\n\n    levelhead z\n";
        let blocks = blocks(page).unwrap();
        let commands: Vec<&str> = blocks.iter().map(|block| block.commands.as_str()).collect();
        assert_eq!(
            commands,
            ["levelhead fs status a.img", "ls", "levelhead x\n  y\n\nno command", "levelhead z"]
        );
        let prints: Vec<Option<&str>> =
            blocks.iter().map(|block| block.prints.as_deref()).collect();
        assert_eq!(prints, [None, Some("a 12"), None, None], "text behind a sentence is no output");
        assert_eq!(blocks[3].fate, Fate::Skipped("hardware".into()));
        assert_eq!(blocks[0].line, 4);
    }

    #[test]
    fn directions_that_say_nothing_are_refused() {
        for wrong in ["skip", "with A", "exit x", "skipp x"] {
            let page = format!("a\n<!-- doctest: {wrong} -->\n");
            assert!(blocks(&page).unwrap_err().starts_with("2: expected "), "{wrong}");
        }
    }

    #[test]
    fn a_command_may_have_variables_in_front() {
        assert!(is_command("THREADS=2 cargo test"));
        for none in ["MEMBERS=", "DEGRADED=--degraded=30s", "w=1 cargo", "g = 1"] {
            assert!(!is_command(none), "{none}");
        }
    }

    #[test]
    fn words_are_replaced_whole() {
        assert_eq!(replace_word("TRACE TRACES x/TRACE", "TRACE", "t.csv"), "t.csv TRACES x/t.csv");
    }
}
