//! Files that commands leave behind: whole, or not at all.

use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use levelhead_units::Bytes;
use tempfile::NamedTempFile;

use crate::AppError;

/// Checks before any work that a file can be written at `path` after it.
pub fn check_place(path: &Path) -> Result<(), AppError> {
    match destination(path)? {
        Destination::Stream => Ok(()),
        Destination::File(path) => neighbour(&path).map(drop),
    }
}

/// Writes a file through a neighbour that takes its name when it is complete. What is no file, such
/// as a pipe, is written to.
pub fn write_whole(
    path: &Path,
    fill: impl FnOnce(&mut (dyn Write + Send)) -> io::Result<()>,
) -> Result<(), AppError> {
    let fail = |error: io::Error| about(path, &error);
    match destination(path)? {
        Destination::Stream => {
            let file = fs::OpenOptions::new().write(true).open(path).map_err(fail)?;
            let mut out = io::BufWriter::new(file);
            fill(&mut out).and_then(|()| out.flush()).map_err(fail)
        }
        Destination::File(path) => {
            let folder = folder_of(&path);
            check_folder(folder)?;
            // Without a name nothing stays of it if the program ends meanwhile.
            match nameless(folder) {
                Some(file) => {
                    let mut out = io::BufWriter::new(file);
                    fill(&mut out).map_err(fail)?;
                    let file = out.into_inner().map_err(|error| fail(error.into_error()))?;
                    give_name(&file, folder, &path).map_err(fail)
                }
                None => {
                    let mut out = io::BufWriter::new(neighbour(&path)?);
                    fill(&mut out).map_err(fail)?;
                    let file = out.into_inner().map_err(|error| fail(error.into_error()))?;
                    file.persist(&path).map(drop).map_err(|error| fail(error.error))
                }
            }
        }
    }
}

/// Where the page of this name goes in `folder`, which is made if it is not there.
pub fn page_place(folder: &Path, name: &str) -> Result<PathBuf, AppError> {
    fs::create_dir_all(folder).map_err(|error| about(folder, &error))?;
    let place = folder.join(format!("{name}.html"));
    check_place(&place)?;
    Ok(place)
}

/// Checks that no output is another one, or what is read.
pub fn check_are_apart(inputs: &[PathBuf], outputs: &[&Path]) -> Result<(), AppError> {
    let places = inputs.iter().map(PathBuf::as_path).chain(outputs.iter().copied());
    let mut seen: Vec<PathBuf> = Vec::new();
    for (at, place) in places.enumerate() {
        // One that is not there yet is known by its folder.
        let folder = place.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new("."));
        let beside = || Some(folder.canonicalize().ok()?.join(place.file_name()?));
        let real = place.canonicalize().ok().or_else(beside).unwrap_or_else(|| place.to_owned());
        let is_stream = fs::metadata(place).is_ok_and(|it| !it.is_file() && !it.is_dir());
        if seen.contains(&real) && !is_stream {
            let why = match at < inputs.len() {
                true => "is named twice",
                false => "is to be written, and is read or written for something else, too",
            };
            return Err(AppError::usage(format!("{} {why}", place.display())));
        }
        seen.push(real);
    }
    Ok(())
}

/// Checks that what is read more than once can be: a pipe gives its bytes once, and then waits.
pub fn check_can_be_read_again(path: &Path) -> Result<(), AppError> {
    let kind = fs::metadata(path).map_err(|error| about(path, &error))?.file_type();
    if kind.is_file() || kind.is_dir() {
        return Ok(());
    }
    Err(AppError::usage(format!(
        "{} is not a regular file: it is read more than once",
        path.display()
    )))
}

/// Opens a file for reading, with a sentence if that fails.
pub fn open(path: &Path) -> Result<fs::File, AppError> {
    if path.is_dir() {
        return Err(AppError::usage(format!("{} is a directory, not a file", path.display())));
    }
    fs::File::open(path).map_err(|error| about(path, &error))
}

/// The text of a file of at most `most` bytes.
pub fn read_text(path: &Path, most: u64) -> Result<String, AppError> {
    let mut text = String::new();
    let read = open(path)?.take(most.saturating_add(1)).read_to_string(&mut text);
    read.map_err(|error| about(path, &error))?;
    if text.len() as u64 > most {
        let (name, most) = (path.display(), Bytes::new(most));
        return Err(AppError::usage(format!("{name} is too long: at most {most} are read")));
    }
    Ok(text)
}

/// The path that means the same in every folder.
pub fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// Where output goes.
enum Destination {
    /// A file that is there or not, at the end of all links.
    File(PathBuf),
    /// A device, a pipe or a socket: its name is not to be taken.
    Stream,
}

fn destination(path: &Path) -> Result<Destination, AppError> {
    // As the kernel does in folders that are everybody's: a link of somebody else leads where they like.
    if let Ok(link) = fs::symlink_metadata(path)
        && link.is_symlink()
        && ![0, rustix::process::geteuid().as_raw()].contains(&link.uid())
    {
        let path = path.display();
        return Err(AppError::usage(format!(
            "{path} is a link of another user, which is not followed"
        )));
    }
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => {
            Err(AppError::usage(format!("{} is a directory, not a file", path.display())))
        }
        Ok(metadata) if metadata.is_file() => {
            path.canonicalize().map(Destination::File).map_err(|error| about(path, &error))
        }
        Ok(_) => Ok(Destination::Stream),
        // Any other trouble shows when its neighbour is made.
        Err(_) => Ok(Destination::File(path.to_owned())),
    }
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        Some(_) | None => Path::new("."),
    }
}

/// A file of a folder that has no name there yet; nothing where the file system has no such files.
fn nameless(folder: &Path) -> Option<fs::File> {
    use rustix::fs::{Mode, OFlags, open};
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    let file = open(folder, flags, Mode::from_raw_mode(0o666)).ok().map(fs::File::from)?;
    // It gets its name by way of there.
    fs::metadata(opened(&file)).is_ok().then_some(file)
}

fn opened(file: &fs::File) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

/// Gives such a file its name, also where another one has it: by way of a name that is nobody's.
fn give_name(file: &fs::File, folder: &Path, path: &Path) -> io::Result<()> {
    use rustix::fs::{AtFlags, CWD, linkat};
    let beside =
        folder.join(format!(".levelhead-{}-{:x}", std::process::id(), file.metadata()?.ino()));
    linkat(CWD, opened(file), CWD, &beside, AtFlags::SYMLINK_FOLLOW)?;
    fs::rename(&beside, path).inspect_err(|_| drop(fs::remove_file(&beside)))
}

/// A file beside `path` to be filled first, as open to others as the user's other files.
fn neighbour(path: &Path) -> Result<NamedTempFile, AppError> {
    let folder = folder_of(path);
    check_folder(folder)?;
    tempfile::Builder::new()
        .prefix(".levelhead-")
        .permissions(fs::Permissions::from_mode(0o666))
        .tempfile_in(folder)
        .map_err(|error| about(path, &error))
}

/// Checks that `folder` is one.
pub fn check_folder(folder: &Path) -> Result<(), AppError> {
    match fs::metadata(folder) {
        Ok(metadata) if metadata.is_dir() => Ok(()),
        Ok(_) => Err(AppError::usage(format!("{} is not a directory", folder.display()))),
        Err(error) => Err(about(folder, &error)),
    }
}

/// What went wrong with a file, with its path.
pub fn about(path: &Path, error: &io::Error) -> AppError {
    AppError::usage(format!("{}: {error}", path.display()))
}
