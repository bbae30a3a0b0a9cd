//! Files that commands leave behind: whole, or not at all.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::AppError;

/// Writes a file through a neighbour that takes its name when it is complete.
pub(crate) fn write_whole(
    path: &Path,
    fill: impl FnOnce(&mut dyn Write) -> std::io::Result<()>,
) -> Result<(), AppError> {
    let fail = |error: std::io::Error| AppError::usage(format!("{}: {error}", path.display()));
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        Some(_) | None => Path::new("."),
    };
    let file = tempfile::Builder::new()
        .prefix(".levelhead-")
        // As any program would create it: what the user's mask leaves of this.
        .permissions(fs::Permissions::from_mode(0o666))
        .tempfile_in(folder)
        .map_err(fail)?;
    let mut out = std::io::BufWriter::new(file);
    fill(&mut out).map_err(fail)?;
    let file = out.into_inner().map_err(|error| fail(error.into_error()))?;
    file.persist(path).map_err(|error| fail(error.error))?;
    Ok(())
}

/// Opens a file for reading, with a sentence if that fails.
pub(crate) fn open(path: &Path) -> Result<fs::File, AppError> {
    fs::File::open(path).map_err(|error| AppError::usage(format!("{}: {error}", path.display())))
}
