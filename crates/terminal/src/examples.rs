//! Examples of commands: each program has a table of them, and its help and its man pages show them from there.
//!
//! ```text
//!   (what it does, "levelhead array scrub tank/d0.img stop")     a line belongs to the command that its words name
//!        |                      \__________/
//!        +--> --help: below the options        man page: EXAMPLES
//! ```

use clap::Command;

/// An example: what the command does, without a full stop, and the whole line.
pub type Example = (&'static str, &'static str);

/// A command with these examples below its long help, and below that of its subcommands.
///
/// Panics if a line names no command: the tests of the programs look at all of them.
#[must_use]
pub fn shown(definition: Command, examples: &[Example]) -> Command {
    examples.iter().fold(definition, |definition, (what, line)| {
        let words: Vec<&str> = words(line).collect();
        below(definition, &words, &format!("  {line}\n      {what}"))
    })
}

/// A line's words, as a shell would give them: none of ours has a space inside.
fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(' ').map(|word| word.trim_matches('\''))
}

/// `words` begins with the command's own name.
fn below(command: Command, words: &[&str], text: &str) -> Command {
    let words = &words[1..];
    let next = words.first().filter(|next| command.find_subcommand(next).is_some());
    if let Some(next) = next {
        return command.mut_subcommand(next, |command| below(command, words, text));
    }
    let before = command.get_after_long_help().or(command.get_after_help());
    let before = before.map(ToString::to_string).unwrap_or_default();
    let between = match before.as_str() {
        "" => "Examples:\n",
        before if before.contains("Examples:\n") => "\n",
        _ => "\n\nExamples:\n",
    };
    command.after_long_help(format!("{before}{between}{text}"))
}

/// Those of the command that these names lead to, the program's own first.
pub fn of<'a>(names: &[&str], examples: &'a [Example]) -> Vec<&'a Example> {
    let is_its =
        |line: &str| names.iter().zip(words(line)).filter(|(a, b)| *a == b).count() == names.len();
    examples.iter().filter(|(_, line)| is_its(line)).collect()
}

/// Looks at a program's table, for its tests.
///
/// # Panics
///
/// A command has no example, or a line is not one that the program takes.
pub fn check(definition: &Command, examples: &[Example]) {
    let error = |line| definition.clone().try_get_matches_from(words(line)).err();
    let refused: Vec<String> =
        examples.iter().filter_map(|(_, line)| Some(format!("{line}: {}", error(line)?))).collect();
    assert!(refused.is_empty(), "{}", refused.join("\n"));
    assert!(
        examples.iter().all(|(what, _)| !what.ends_with('.')),
        "a full stop comes with the page"
    );
    check_below(definition, &mut vec![definition.get_name()], examples);
}

fn check_below<'a>(command: &'a Command, names: &mut Vec<&'a str>, examples: &[Example]) {
    if !command.has_subcommands() {
        assert!(!of(names, examples).is_empty(), "{names:?} has no example");
    }
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        names.push(below.get_name());
        check_below(below, names, examples);
        names.pop();
    }
}
