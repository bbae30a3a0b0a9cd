//! `levelhead man`.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::{Args, Command};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};
use levelhead_app::AppError;

use crate::examples::{self, Example};

/// Its options.
#[derive(Args)]
pub struct Options {
    /// The folder; it is made if it is not there
    folder: PathBuf,
}

/// What every command's exit code says, unless its page says more.
const EXIT_CODES: [(&str, &str); 4] = [
    ("0", "All went well."),
    ("1", "Trouble was found, or something could not be done in full."),
    ("2", "The call was wrong, or what it names cannot be used. Nothing was changed."),
    ("3", "What the command looked at, or worked on, has failed."),
];

/// Writes a page for each command.
///
/// # Errors
///
/// The folder cannot be made or written.
pub fn run(
    options: &Options,
    mut definition: Command,
    examples: &[Example],
) -> Result<(), AppError> {
    let folder = &options.folder;
    definition.build();
    std::fs::create_dir_all(folder)
        .and_then(|()| write_all(folder, &definition, &[definition.get_name()], examples))
        .map_err(|error| AppError::usage(format!("{}: {error}", folder.display())))
}

/// The page of the command that these names lead to, and those of its subcommands.
fn write_all(
    folder: &Path,
    command: &Command,
    names: &[&str],
    examples: &[Example],
) -> io::Result<()> {
    let page = Man::new(command.clone())
        .title(names.join("-"))
        .manual("Levelhead")
        .source(format!("{} {}", names[0], env!("CARGO_PKG_VERSION")));
    let file = File::create(folder.join(format!("{}.1", names.join("-"))))?;
    write_page(&page, command, names, examples, &mut io::BufWriter::new(file))?;
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        if below.get_name() != "help" {
            write_all(folder, below, &[names, &[below.get_name()]].concat(), examples)?;
        }
    }
    Ok(())
}

fn write_page(
    page: &Man,
    command: &Command,
    names: &[&str],
    examples: &[Example],
    out: &mut impl Write,
) -> io::Result<()> {
    page.render_title(out)?;
    page.render_name_section(out)?;
    page.render_synopsis_section(out)?;
    page.render_description_section(out)?;
    page.render_options_section(out)?;
    if command.has_subcommands() {
        page.render_subcommands_section(out)?;
    }
    let mut rest = Roff::new();
    rest.control("SH", ["EXIT STATUS"]);
    for (code, meaning) in EXIT_CODES {
        rest.control("TP", ["5"]).text([bold(code)]).text([roman(meaning)]);
    }
    if let Some(note) = command.get_after_help() {
        rest.control("PP", []).text([roman(note.to_string())]);
    }
    let examples =
        if command.has_subcommands() { Vec::new() } else { examples::of(names, examples) };
    if !examples.is_empty() {
        rest.control("SH", ["EXAMPLES"]);
    }
    for (what, line) in examples {
        rest.control("PP", []).text([roman(format!("{what}:"))]);
        rest.control("RS", ["4"]).control("EX", []).text([roman(*line)]);
        rest.control("EE", []).control("RE", []);
    }
    if let [above @ .., _] = names
        && !above.is_empty()
    {
        rest.control("SH", ["SEE ALSO"]);
        rest.text([bold(above.join("-")), roman("(1)")]);
    }
    rest.to_writer(out)?;
    out.flush()
}
