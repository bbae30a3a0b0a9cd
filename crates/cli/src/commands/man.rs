//! `levelhead man`.

use std::path::PathBuf;

use clap::Args;
use levelhead_app::AppError;

#[derive(Args)]
pub(crate) struct Options {
    /// The folder; it must exist
    folder: PathBuf,
}

pub(crate) fn run(options: &Options, definition: clap::Command) -> Result<(), AppError> {
    let folder = &options.folder;
    clap_mangen::generate_to(definition, folder)
        .map_err(|error| AppError::usage(format!("{}: {error}", folder.display())))
}
