//! `levelhead fs umount`: takes a filesystem off its directory and waits until everything is on the disk.

use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use levelhead_report::json;
use rustix::io::Errno;
use rustix::mount::{UnmountFlags, unmount};
use serde::Serialize;

use super::points::{self, Point};
use crate::{AppError, Show};

/// What unmounts for users that may not do so themselves.
const HELPER: &str = "fusermount3";

/// What was unmounted.
#[derive(Clone, Debug, Serialize)]
pub struct Unmounted {
    /// Where it was.
    pub directory: String,
    /// What it is on.
    pub target: String,
}

/// Unmounts what is mounted on a directory. Returns when the program that answered for it has gone.
///
/// # Errors
///
/// None of ours is mounted there, or something in it is open.
pub fn umount(directory: &Path) -> Result<Unmounted, AppError> {
    let Point { directory: point, source, .. } = points::ours_on(directory)?;
    // Opened before, so that what is waited for is what was mounted.
    let lock = File::open(&source);
    match unmount(&point, UnmountFlags::empty()) {
        Ok(()) => {}
        Err(Errno::PERM) => by_helper(&point)?,
        Err(Errno::BUSY) => {
            return Err(AppError::usage(format!(
                "{} is in use: a file in it is open, or a program's folder is there",
                point.display()
            )));
        }
        Err(errno) => {
            return Err(AppError::trouble(format!("cannot unmount {}: {errno}", point.display())));
        }
    }
    wait(lock, &source)?;
    let shown = |path: PathBuf| path.display().to_string();
    Ok(Unmounted { directory: shown(point), target: shown(source) })
}

/// Waits for the lock that the program holds until it ends.
fn wait(lock: std::io::Result<File>, source: &Path) -> Result<(), AppError> {
    let shared = lock.and_then(|lock| lock.lock_shared());
    match shared {
        Ok(()) => Ok(()),
        // Its name is gone, and with it the way to its lock.
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(AppError::trouble(format!(
            "it is unmounted, but it cannot be told when everything is on {}: {error}",
            source.display()
        ))),
    }
}

fn by_helper(point: &Path) -> Result<(), AppError> {
    let mut command = Command::new(HELPER);
    command.arg("-u").arg("--").arg(point).stdin(Stdio::null()).stdout(Stdio::null());
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

impl Show for Unmounted {
    fn text(&self) -> String {
        format!("{} is unmounted, everything is on {}\n", self.directory, self.target)
    }

    fn json(&self) -> String {
        json::pretty(self).expect("plain values")
    }
}
