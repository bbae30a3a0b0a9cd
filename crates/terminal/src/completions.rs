//! `levelhead completions`.

use clap::Args;
use clap_complete::Shell;
use levelhead_app::AppError;

use crate::Output;

/// Its options.
#[derive(Args)]
pub struct Options {
    /// The shell
    shell: Shell,
}

/// Prints the completions of `program`.
///
/// # Errors
///
/// Standard output takes nothing.
pub fn run(
    options: &Options,
    program: &str,
    definition: &mut clap::Command,
    output: Output,
) -> Result<(), AppError> {
    // The generator panics over a reader that goes away.
    let mut script = Vec::new();
    clap_complete::generate(options.shell, definition, program, &mut script);
    output.print_text(&String::from_utf8_lossy(&script))
}
