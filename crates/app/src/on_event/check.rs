//! Whether the program of `--on-event` is there, before the first event.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

use crate::AppError;

/// Where a program without a slash in its name is looked for if there is no `PATH`, as execvp(3) does.
const PATH_UNSET: &str = "/bin:/usr/bin";

/// Whether there is such a program now, where it is looked for when it is run: a name without a slash in the folders of `PATH`.
///
/// # Errors
///
/// There is none, or only a file that this user may not execute.
pub fn check(program: &Path) -> Result<(), AppError> {
    let has_folder = program.as_os_str().as_encoded_bytes().contains(&b'/');
    let path = std::env::var_os("PATH").unwrap_or_else(|| OsString::from(PATH_UNSET));
    let places: Vec<PathBuf> = match has_folder {
        true => vec![program.to_owned()],
        false => std::env::split_paths(&path).map(|folder| folder.join(program)).collect(),
    };
    let found: Vec<bool> = places
        .iter()
        .filter(|place| place.is_file())
        .map(|place| access(place.as_path(), Access::EXEC_OK).is_ok())
        .collect();
    let says = |why: &str| Err(AppError::usage(format!("--on-event {}: {why}", program.display())));
    match found.iter().any(|&is_executable| is_executable) {
        true => Ok(()),
        false if program.as_os_str() == OsStr::new("") => says("it names no program"),
        false if found.is_empty() && has_folder => says("no such program"),
        false if found.is_empty() => says("no such program in the folders of PATH"),
        false => says("the file may not be executed"),
    }
}
