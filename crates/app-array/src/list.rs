//! `levelhead array list`: which arrays there are.

use std::path::{Path, PathBuf};

use levelhead_array::metadata::Forced;
use levelhead_host::{FoundArray, FoundDrive, FoundState, Survey, survey, words};
use levelhead_report::{Column, Table, json};
use levelhead_units::{Bytes, DriveSet, escaped};
use serde::Serialize;

use super::create::role_of;
use super::drives::LeftOutJson;
use super::health::Health;
use levelhead_app::{AppError, Show};

/// Where drives are looked for if nothing else is said: what udev keeps for people, each drive under a name that
/// stays.
const USUAL: &str = "/dev/disk/by-id";

/// The arrays that were found.
#[derive(Debug, Serialize)]
pub struct Listed {
    arrays: Vec<ArrayJson>,
    /// What has something like a superblock, but no good one: a sentence each.
    damaged: Vec<String>,
    looked_at: usize,
    /// Why others could not be looked at: a sentence each.
    closed: Vec<String>,
    #[serde(skip)]
    health: Health,
}

impl Listed {
    /// How well the worst of the arrays is.
    pub fn health(&self) -> &Health {
        &self.health
    }
}

#[derive(Debug, Serialize)]
struct ArrayJson {
    uuid: String,
    array: String,
    size_bytes: u64,
    state: &'static str,
    stopped_in_order: bool,
    in_use: bool,
    forced: bool,
    journal: bool,
    generation: u64,
    drives: Vec<DriveJson>,
    left_out: Vec<LeftOutJson>,
    refusal: Option<String>,
}

#[derive(Debug, Serialize)]
struct DriveJson {
    drive: usize,
    role: &'static str,
    state: &'static str,
    members: Vec<String>,
}

/// Looks for arrays in these folders; in the usual one if there are none.
pub fn list(folders: &[PathBuf]) -> Result<Listed, AppError> {
    let usual = [PathBuf::from(USUAL)];
    let folders = if folders.is_empty() { &usual[..] } else { folders };
    if folders == usual && !Path::new(USUAL).is_dir() {
        return Err(AppError::usage(format!(
            "this machine has no {USUAL}: name the folders to search for drives"
        )));
    }
    let Survey { arrays, damaged, looked_at, closed } = survey(folders).map_err(AppError::usage)?;
    let health = arrays.iter().map(health_of).fold(Health::HEALTHY, Health::and);
    let arrays = arrays.iter().map(ArrayJson::of).collect();
    Ok(Listed { arrays, damaged, looked_at, closed, health })
}

fn health_of(found: &FoundArray) -> Health {
    let mut health = Health::HEALTHY;
    let uuid = found.uuid;
    let is_away = |drive: &&FoundDrive| !drive.is_used();
    let away: DriveSet = found.drives.iter().filter(is_away).map(|drive| drive.drive).collect();
    let of = |what: String| format!("array {uuid}: {what}");
    match found.state {
        FoundState::Clean | FoundState::Dirty if away.is_empty() => {}
        FoundState::Clean | FoundState::Dirty | FoundState::Degraded => {
            for drive in found.drives.iter().filter(is_away) {
                health.note(of(format!("drive {} is {}", drive.drive, drive.state())));
            }
        }
        FoundState::Lost => health.fail(of(format!("{} missing", words::drives_are(away)))),
        FoundState::Unclear => {
            health
                .fail(of("the superblocks or the metadata of its drives do not match".to_owned()));
        }
    }
    if found.forced == Forced::Yes {
        health.note(of("forced: some of its data may be wrong".to_owned()));
    }
    health
}

impl ArrayJson {
    fn of(found: &FoundArray) -> Self {
        let drive = |drive: &FoundDrive| DriveJson {
            drive: drive.drive.as_usize(),
            role: role_of(&found.spec, drive.drive.as_usize()),
            state: drive.state(),
            members: drive.members.iter().map(ToString::to_string).collect(),
        };
        Self {
            uuid: found.uuid.to_string(),
            array: found.spec.to_string(),
            size_bytes: found.size.bytes().get(),
            state: found.state.name(),
            stopped_in_order: found.is_clean,
            in_use: found.is_in_use,
            forced: found.forced == Forced::Yes,
            journal: found.has_journal,
            generation: found.generation,
            drives: found.drives.iter().map(drive).collect(),
            left_out: found.left_out.iter().map(LeftOutJson::of).collect(),
            refusal: found.refusal.clone(),
        }
    }

    fn text(&self) -> String {
        let Self { uuid, array, size_bytes, state, .. } = self;
        let size = Bytes::new(*size_bytes).short();
        let how = match (self.in_use, self.stopped_in_order) {
            (true, _) => ", in use",
            (false, true) => "",
            (false, false) => ", unclean shutdown",
        };
        let forced = if self.forced { ", forced: some of its data may be wrong" } else { "" };
        let is_apart = self.drives.iter().any(|drive| drive.role == "journal");
        let journal = match (self.journal, is_apart) {
            (false, _) => "none",
            (true, false) => "on every drive",
            (true, true) => "on drives of its own",
        };
        let mut text = format!(
            "array: {array}, {uuid}\nsize: {size}\nstate: {state}{how}{forced}\njournal: {journal}\n"
        );
        let mut table = Table::new(["drive", "role", "state", "member"].map(Column::left));
        for DriveJson { drive, role, state, members } in &self.drives {
            let members = if members.is_empty() { "-".to_owned() } else { members.join(", ") };
            table.push([drive.to_string(), (*role).to_owned(), (*state).to_owned(), members]);
        }
        text.push_str(&table.to_text());
        for left in &self.left_out {
            text.push_str(&format!("left out: {}\n", escaped(&left.reason)));
        }
        if let Some(refusal) = &self.refusal {
            text.push_str(&format!("would not be served: {}\n", escaped(refusal)));
        }
        text
    }
}

impl Show for Listed {
    fn text(&self) -> String {
        let mut parts: Vec<String> = self.arrays.iter().map(ArrayJson::text).collect();
        if parts.is_empty() {
            let looked_at = self.looked_at;
            parts.push(format!(
                "no drive of an array is among {}\n",
                match looked_at {
                    1 => "1 file or device".to_owned(),
                    _ => format!("{looked_at} files and devices"),
                }
            ));
        }
        let mut text = parts.join("\n");
        for sentence in self.damaged.iter().chain(&self.closed) {
            text.push_str(&format!("{}\n", escaped(sentence)));
        }
        text
    }

    fn json(&self) -> String {
        json::pretty(self).expect("numbers and names are JSON")
    }
}
