//! `levelhead fs status`: how a filesystem stands, mounted or not.

use std::path::Path;

use levelhead_fs::{Answer, MountMode, State, Status, What};
use levelhead_fuse::{read_damaged, read_status};
use levelhead_report::json;
use levelhead_units::Sectors;
use serde::Serialize;

use super::alone::Alone;
use super::damaged::{DamagedFile, names_below, names_in};
use super::points;
use super::target::Target;
use levelhead_app::{AppError, Show};

/// How a filesystem stands.
#[derive(Clone, Debug, Serialize)]
pub struct FilesystemStatus {
    /// Of what is mounted; `unmounted` of what is not.
    state: &'static str,
    /// Why nothing is written any more; nothing where the disk stores what it should.
    failure: Option<String>,
    files: u64,
    usable_bytes: u64,
    free_bytes: u64,
    groups_stale: u64,
    sectors_repaired: u64,
    sectors_unwritable: u64,
    sectors_lost: u64,
    sectors_decoded: u64,
    sectors_retried: u64,
    files_damaged: u64,
    /// The first thousand of them.
    damaged: Vec<DamagedFile>,
}

/// Asks the program that answers for what is mounted on a directory, or looks at what is not mounted, without a change of it.
///
/// # Errors
///
/// There is none of ours, it is in use, or it does not answer.
pub fn filesystem_status(target: &str) -> Result<FilesystemStatus, AppError> {
    let path = Path::new(target);
    if path.is_dir() { mounted_status(path) } else { alone_status(target) }
}

fn mounted_status(directory: &Path) -> Result<FilesystemStatus, AppError> {
    let shown = directory.display();
    points::ours_on(directory)?;
    let blame = |error: std::io::Error| AppError::trouble(format!("{shown}: {error}"));
    // What is only read counts its damaged files when it is asked for its room.
    let room = rustix::fs::statvfs(directory).map_err(|errno| blame(errno.into()))?;
    let Some(status) = read_status(directory).map_err(blame)? else {
        return Err(AppError::trouble(format!(
            "{shown}: the program that answers returns no status"
        )));
    };
    let damaged = match status.files_damaged {
        0 => Vec::new(),
        _ => names_below(directory, &read_damaged(directory).map_err(blame)?),
    };
    Ok(FilesystemStatus {
        damaged,
        files: room.f_files.saturating_sub(room.f_ffree),
        usable_bytes: room.f_blocks.saturating_mul(room.f_frsize),
        free_bytes: room.f_bavail.saturating_mul(room.f_frsize),
        ..FilesystemStatus::of(&status)
    })
}

/// As the next mount would say it: what a cut has left is put in order in memory.
fn alone_status(target: &str) -> Result<FilesystemStatus, AppError> {
    points::check_unmounted(&Target::find(target)?.member)?;
    let mut alone = Alone::open_as(target, MountMode::ReadOnly, Box::new(drop))?;
    let answer = alone.run(What::Room)?;
    let damaged = match alone.run(What::Damaged)? {
        Answer::Inodes(inodes) if !inodes.is_empty() => names_in(&mut alone, &inodes)?,
        _ => Vec::new(),
    };
    let status = alone.close()?;
    let Answer::Room(room) = answer else {
        return Err(AppError::trouble(format!(
            "{target}: metadata cannot be read; fs check says what is lost"
        )));
    };
    Ok(FilesystemStatus {
        damaged,
        state: "unmounted",
        files: room.inodes,
        usable_bytes: Sectors::new(room.sectors).bytes().get(),
        free_bytes: Sectors::new(room.free).bytes().get(),
        ..FilesystemStatus::of(&status)
    })
}

impl FilesystemStatus {
    /// Why nothing is written any more, if so.
    pub fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    fn of(status: &Status) -> Self {
        let &Status {
            state,
            groups_stale,
            sectors_repaired,
            sectors_unwritable,
            sectors_lost,
            sectors_decoded,
            sectors_retried,
            files_damaged,
        } = status;
        let (files, usable_bytes, free_bytes) = (0, 0, 0);
        let failure = match state {
            State::Failed(failure) => Some(failure.to_string()),
            State::Mounting | State::Writing | State::ReadOnly | State::Unmounting => None,
        };
        // What it is besides is not of interest to who only wants to know whether writes are stored.
        let state = if failure.is_some() { State::ReadOnly.name() } else { state.name() };
        Self {
            state,
            failure,
            files,
            usable_bytes,
            free_bytes,
            groups_stale,
            sectors_repaired,
            sectors_unwritable,
            sectors_lost,
            sectors_decoded,
            sectors_retried,
            files_damaged,
            damaged: Vec::new(),
        }
    }
}

impl Show for FilesystemStatus {
    fn text(&self) -> String {
        let mut text = String::new();
        let bytes = |bytes: u64| levelhead_units::Bytes::new(bytes).short();
        let state = match &self.failure {
            Some(failure) => format!("{}: {failure}", self.state),
            None => self.state.to_owned(),
        };
        for (name, value) in [
            ("state", state),
            ("files", self.files.to_string()),
            ("room for files", bytes(self.usable_bytes)),
            ("free", bytes(self.free_bytes)),
            ("groups whose redundancy is behind", self.groups_stale.to_string()),
            ("sectors repaired", self.sectors_repaired.to_string()),
            ("sectors that cannot be written", self.sectors_unwritable.to_string()),
            ("sectors lost", self.sectors_lost.to_string()),
            ("sectors computed for readers", self.sectors_decoded.to_string()),
            ("sectors read by retries", self.sectors_retried.to_string()),
            ("files damaged", self.files_damaged.to_string()),
        ] {
            text.push_str(&format!("{name}: {value}\n"));
        }
        for file in &self.damaged {
            text.push_str(&format!("  {}\n", file.text()));
        }
        text
    }

    fn json(&self) -> String {
        json::pretty(self).expect("plain values")
    }
}
