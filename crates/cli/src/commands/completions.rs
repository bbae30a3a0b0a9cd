//! `levelhead completions`.

use clap::Args;
use clap_complete::Shell;
use levelhead_app::AppError;

use crate::Output;

#[derive(Args)]
pub(crate) struct Options {
    /// The shell
    shell: Shell,
}

pub(crate) fn run(
    options: &Options,
    definition: &mut clap::Command,
    output: Output,
) -> Result<(), AppError> {
    // The generator panics over a reader that goes away.
    let mut script = Vec::new();
    clap_complete::generate(options.shell, definition, "levelhead", &mut script);
    output.print_text(&String::from_utf8_lossy(&script))
}
