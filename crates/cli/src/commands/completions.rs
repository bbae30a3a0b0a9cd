//! `levelhead completions`.

use clap::Args;
use clap_complete::Shell;

#[derive(Args)]
pub(crate) struct Options {
    /// The shell
    shell: Shell,
}

pub(crate) fn run(options: &Options, definition: &mut clap::Command) {
    clap_complete::generate(options.shell, definition, "levelhead", &mut std::io::stdout());
}
