//! `levelhead fs umount`: takes a filesystem off its directory and waits until everything is on the disk.
//!
//! Whether everything is, two parties say: the program that answers, which is asked to sync first, and the superblock that it leaves
//! when it ends, which says "clean" if nothing waits in the journal any more.

use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use levelhead_fuse::sync;
use levelhead_report::json;
use rustix::io::Errno;
use rustix::mount::{UnmountFlags, unmount};
use serde::Serialize;

use super::points::{self, Point};
use super::target::superblock_of;
use levelhead_app::{AppError, Show};

/// What unmounts for users that may not do so themselves.
const HELPER: &str = "fusermount3";

/// How long something in it may be open, and how long to wait between two attempts.
const BUSY_MAX: Duration = Duration::from_secs(1);
const BUSY_PAUSE: Duration = Duration::from_millis(20);

/// What was unmounted.
#[derive(Clone, Debug, Serialize)]
pub struct Unmounted {
    /// Where it was.
    pub directory: String,
    /// What it is on.
    pub target: String,
    /// Whether everything that was written is there.
    pub stored: bool,
    /// If not, why.
    pub why: Option<String>,
}

/// Unmounts what is mounted on a directory. Returns when the program that answered for it has gone; [`Unmounted::check`] says whether
/// everything was stored.
///
/// # Errors
///
/// None of ours is mounted there, or something in it is open.
pub fn umount(directory: &Path) -> Result<Unmounted, AppError> {
    let point = points::ours_on(directory)?;
    // Opened before, so that what is waited for is what was mounted.
    let mut lock = File::open(&point.source);
    let synced = sync(&point.directory);
    let Point { directory: shown, .. } = &point;
    match unmount_patiently(shown) {
        Ok(()) => {}
        Err(Errno::PERM) => by_helper(shown, &["-u"])?,
        Err(Errno::BUSY) => {
            let sentence = "is in use: a file in it is open, or a program's folder is there";
            let shown = shown.display();
            return Err(match synced {
                // It is said once.
                Err(error) => AppError::trouble(format!(
                    "{shown} {sentence}; and not everything that was written could be stored: {error}"
                )),
                Ok(_) => AppError::usage(format!("{shown} {sentence}")),
            });
        }
        Err(errno) => {
            return Err(AppError::trouble(format!("cannot unmount {}: {errno}", shown.display())));
        }
    }
    wait(&lock, &point.source)?;
    let why = not_stored(synced, lock.as_mut().ok(), point.is_read_only);
    let Point { directory, source, .. } = point;
    let shown = |path: PathBuf| path.display().to_string();
    Ok(Unmounted { directory: shown(directory), target: shown(source), stored: why.is_none(), why })
}

/// Unmounts, and tries again for a moment while something in it is open: a program that is being started holds what its parent had
/// open.
fn unmount_patiently(point: &Path) -> Result<(), Errno> {
    for _ in 0..BUSY_MAX.as_millis() / BUSY_PAUSE.as_millis() {
        match unmount(point, UnmountFlags::empty()) {
            Err(Errno::BUSY) => thread::sleep(BUSY_PAUSE),
            ended => return ended,
        }
    }
    unmount(point, UnmountFlags::empty())
}

fn errno_of(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

/// Why something that was written is not on the disk, if something is not.
fn not_stored(
    synced: std::io::Result<Option<()>>,
    disk: Option<&mut File>,
    is_read_only: bool,
) -> Option<String> {
    let is_asked = match synced {
        // A request that it had not answered when it ended is aborted.
        Err(error) if [Errno::NOTCONN, Errno::CONNABORTED].contains(&errno_of(&error)) => {
            return Some("the program that answered for it had ended before".into());
        }
        Err(error) => return Some(format!("a sync fails: {error}")),
        Ok(answer) => answer.is_some(),
    };
    if is_read_only && is_asked {
        // Its superblock may be an older crash's.
        return None;
    }
    match superblock_of(disk?) {
        Some(superblock) if superblock.is_clean => None,
        Some(_) => Some("it was not stopped cleanly".into()),
        None => Some("its superblock cannot be read".into()),
    }
}

/// Waits for the lock that the program holds until it ends.
fn wait(lock: &std::io::Result<File>, source: &Path) -> Result<(), AppError> {
    let failed = |error: &std::io::Error| {
        Err(AppError::trouble(format!(
            "it is unmounted, but it is unknown when everything is on {}: {error}",
            source.display()
        )))
    };
    match lock {
        Ok(lock) => lock.lock_shared().or_else(|error| failed(&error)),
        // Its name is gone, and with it the way to its lock.
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => failed(error),
    }
}

/// Unmounts by a program that may do so for users who may not.
pub(super) fn by_helper(point: &Path, flags: &[&str]) -> Result<(), AppError> {
    let mut command = Command::new(HELPER);
    command.args(flags).arg("--").arg(point).stdin(Stdio::null()).stdout(Stdio::null());
    let ended = command.stderr(Stdio::piped()).output();
    let ended = ended.map_err(|error| {
        AppError::usage(format!(
            "only root may unmount without {HELPER}, which cannot be run: {error}"
        ))
    })?;
    if ended.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&ended.stderr);
    Err(AppError::usage(format!("{HELPER} does not unmount {}: {}", point.display(), said.trim())))
}

impl Unmounted {
    /// That everything was stored.
    ///
    /// # Errors
    ///
    /// It was not: a sentence that says why.
    pub fn check(&self) -> Result<(), AppError> {
        let Some(why) = &self.why else { return Ok(()) };
        Err(AppError::trouble(format!(
            "{} is unmounted, but not everything that was written last is on {}: {why}; what was synced is there after the next mount",
            self.directory, self.target
        )))
    }
}

impl Show for Unmounted {
    fn text(&self) -> String {
        match self.stored {
            true => {
                format!("{} is unmounted, everything is on {}\n", self.directory, self.target)
            }
            // The error says it.
            false => String::new(),
        }
    }

    fn json(&self) -> String {
        json::pretty(self).expect("plain values")
    }
}
