//! The files of a watch, looked at before it begins: what is wrong with one is said in a sentence, and nothing is half-written.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use levelhead_fleet::RECORD_HEADER as HEADER;
use levelhead_fleet::watch::Saved;
use levelhead_host::fleet::Survey;
use rustix::fs::OFlags;

use levelhead_app::AppError;

/// The longest file of groups, in bytes.
const GROUPS_BYTES_MAX: u64 = 1 << 20;

/// The longest state that is read, in bytes: a hundred times what a thousand drives take.
const STATE_BYTES_MAX: u64 = 512 << 20;

/// Where the state is kept unless told otherwise: in the folder that systemd names, or where it would be below this root.
pub fn default_state(root: &Path) -> PathBuf {
    // Of several folders the first.
    let folder = std::env::var_os("STATE_DIRECTORY").map(PathBuf::from);
    let folder = folder.filter(|it| it.is_absolute() && !it.to_string_lossy().contains(':'));
    folder.unwrap_or_else(|| root.join("var/lib/levelhead")).join("watch.state")
}

/// A watch runs as root, and may write into a folder where others do: a name is not followed to where they have led it.
const NO_LINK: i32 = OFlags::NOFOLLOW.bits() as i32;
const LINK: &str = "it is a symbolic link, which is not followed";

fn of(path: &Path, error: impl std::fmt::Display) -> AppError {
    AppError::usage(format!("{}: {error}", path.display()))
}

/// The operator's groups, looked through.
pub(super) fn read_groups(path: Option<&Path>) -> Result<Option<String>, AppError> {
    let Some(path) = path else { return Ok(None) };
    let file = File::open(path).map_err(|error| of(path, error))?;
    let mut text = String::new();
    file.take(GROUPS_BYTES_MAX + 1).read_to_string(&mut text).map_err(|error| of(path, error))?;
    if text.len() as u64 > GROUPS_BYTES_MAX {
        return Err(of(path, format!("a file of groups has at most {GROUPS_BYTES_MAX} bytes")));
    }
    let mut looked = Survey::default();
    looked.take_groups(&text).map_err(|error| of(path, error))?;
    if looked.groups.is_empty() {
        return Err(of(path, "it names no group"));
    }
    Ok(Some(text))
}

/// A state that was kept.
pub(super) struct State {
    pub(super) saved: Saved,
    /// What there is to say of it.
    pub(super) notes: Vec<String>,
}

/// What is kept in a file: nothing yet, a state, or what is none.
pub(super) enum Kept {
    Nothing,
    State(Saved),
    Damaged(String),
}

/// Reads a state and changes nothing.
pub(super) fn read_state(path: &Path) -> Result<Kept, AppError> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Kept::Nothing),
        Err(error) => return Err(of(path, error)),
    };
    let mut bytes = Vec::new();
    file.take(STATE_BYTES_MAX).read_to_end(&mut bytes).map_err(|error| of(path, error))?;
    Ok(Saved::decode(&bytes).map_or_else(Kept::Damaged, Kept::State))
}

/// Reads a state that is to be kept on, and sees that it can be. What is no state is put aside.
pub(super) fn open_state(path: &Path) -> Result<State, AppError> {
    let folder = folder_of(path);
    let kept = read_state(path)?;
    let cannot = |error: std::io::Error| {
        let path = path.display();
        AppError::usage(format!(
            "the state cannot be kept in {path}: {error}; --state FILE names another place"
        ))
    };
    fs::create_dir_all(folder).map_err(cannot)?;
    let (saved, mut notes) = match kept {
        Kept::Nothing => (Saved::default(), Vec::new()),
        Kept::State(saved) => (saved, Vec::new()),
        Kept::Damaged(why) => {
            let aside = with_suffix(path, ".damaged");
            fs::rename(path, &aside).map_err(cannot)?;
            let note = format!(
                "{}: {why}; it is kept as {}, and the watch starts from scratch",
                path.display(),
                aside.display()
            );
            (Saved::default(), vec![note])
        }
    };
    write_state(path, &saved.encode()).map_err(cannot)?;
    if let (true, Some(until)) = (saved.windows_max() > 0, saved.last_window_end()) {
        let windows = saved.windows_max();
        notes.push(format!(
            "taking up {windows} windows of five minutes, the last until {until} (unix s)"
        ));
    }
    Ok(State { saved, notes })
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn is_link(error: &std::io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error())
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Has the state for this watch alone, for as long as what is returned is kept: of two that wrote it each would lose what the other
/// has. Nothing where there cannot be a lock: what is wrong there is said when the state is opened.
pub(super) fn lock_state(path: &Path) -> Result<Option<File>, AppError> {
    if path.is_dir() {
        return Ok(None);
    }
    let lock = with_suffix(path, ".lock");
    let mut options = fs::OpenOptions::new();
    let options = options.create(true).truncate(false).write(true);
    let file = match options.custom_flags(NO_LINK).open(&lock) {
        Ok(file) => file,
        Err(error) if is_link(&error) => return Err(of(&lock, LINK)),
        Err(_) => return Ok(None),
    };
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(fs::TryLockError::WouldBlock) => Err(of(path, "another watch keeps this state")),
        // A file system without locks.
        Err(fs::TryLockError::Error(_)) => Ok(None),
    }
}

/// In one step: a crash leaves the old state or the new one. What has its name, a link too, gives way to it.
pub(super) fn write_state(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut builder = tempfile::Builder::new();
    let builder = builder.prefix(".levelhead-").permissions(fs::Permissions::from_mode(0o644));
    let mut new = builder.tempfile_in(folder_of(path))?;
    new.write_all(bytes)?;
    new.as_file().sync_data()?;
    new.persist(path).map(drop).map_err(|error| error.error)
}

/// A record, to be added to: the file itself and none that a link leads to.
pub(super) fn open_record(path: &Path) -> std::io::Result<File> {
    let mut options = fs::OpenOptions::new();
    let opened = options.create(true).append(true).custom_flags(NO_LINK).open(path);
    opened.map_err(|error| if is_link(&error) { std::io::Error::other(LINK) } else { error })
}

/// Sees whether a record can be added to, and leaves it as it is.
pub(super) fn check_record(path: &Path) -> Result<(), AppError> {
    let mut options = fs::OpenOptions::new();
    let file = match options.read(true).append(true).custom_flags(NO_LINK).open(path) {
        Ok(file) => file,
        Err(error) if is_link(&error) => return Err(of(path, LINK)),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let folder = path.parent().filter(|it| !it.as_os_str().is_empty());
            return match folder {
                Some(folder) if !folder.is_dir() => Err(of(path, "its folder is not there")),
                Some(_) | None => Ok(()),
            };
        }
        Err(error) => return Err(of(path, error)),
    };
    let is_file = file.metadata().map_err(|error| of(path, error))?.is_file();
    if !is_file {
        return Err(of(path, "a record is a file"));
    }
    let mut first = String::new();
    let mut line = BufReader::new(file).take(HEADER.len() as u64 + 1);
    line.read_line(&mut first).map_err(|error| of(path, error))?;
    if first.is_empty() || first.trim_end() == HEADER {
        return Ok(());
    }
    Err(of(path, format!("it is not a record: its first line is not '{HEADER}'")))
}
