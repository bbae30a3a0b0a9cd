//! `levelhead man`.

use std::path::PathBuf;

use clap::Args;
use levelhead_app::AppError;

/// Its options.
#[derive(Args)]
pub struct Options {
    /// The folder; it is made if it is not there
    folder: PathBuf,
}

/// Writes a page for each command.
///
/// # Errors
///
/// The folder cannot be made or written.
pub fn run(options: &Options, definition: clap::Command) -> Result<(), AppError> {
    let folder = &options.folder;
    std::fs::create_dir_all(folder)
        .and_then(|()| clap_mangen::generate_to(definition, folder))
        .map_err(|error| AppError::usage(format!("{}: {error}", folder.display())))
}
