//! `levelhead array create`.

use levelhead_array::Spec;
use levelhead_array::metadata::Logs;
use levelhead_host::{CreateOptions, Created, NewDrives};
use levelhead_report::json;
use levelhead_units::Sectors;
use serde::Serialize;

use super::members;
use levelhead_app::{AppError, Show};

/// What to make.
#[derive(Clone, Debug)]
pub struct Create {
    /// The shape.
    pub spec: Spec,
    /// The drives with data, in order.
    pub members: Vec<String>,
    /// Those that are for the journal alone; none where the others have it.
    pub journals: Vec<String>,
    /// What is allowed and what is not.
    pub options: CreateOptions,
}

/// What was made, or would be.
#[derive(Debug)]
pub struct MadeArray {
    created: Created,
    dry_run: bool,
}

/// Makes an array.
pub fn create(ask: &Create) -> Result<MadeArray, AppError> {
    let all: Vec<String> = ask.members.iter().chain(&ask.journals).cloned().collect();
    let mut data = members(&all)?;
    let journal = data.split_off(ask.members.len());
    let drives = NewDrives { data, journal };
    let created =
        levelhead_host::create(ask.spec, &drives, ask.options).map_err(AppError::usage)?;
    Ok(MadeArray { created, dry_run: ask.options.dry_run })
}

#[derive(Serialize)]
struct Json {
    array: String,
    uuid: String,
    size_bytes: u64,
    drive_data_bytes: u64,
    synced: bool,
    /// Null where none is kept.
    journal_bytes: Option<u64>,
    journal_logs: Option<&'static str>,
    checksums: bool,
    dry_run: bool,
    drives: Vec<JsonDrive>,
}

#[derive(Serialize)]
struct JsonDrive {
    member: String,
    size_bytes: u64,
    unused_bytes: u64,
    new_file: bool,
    /// `data` or `journal`.
    role: &'static str,
}

impl Show for MadeArray {
    fn text(&self) -> String {
        let Created { spec, uuid, size, drive_size, is_synced, journal, logs, drives } =
            &self.created;
        let mut text = if self.dry_run { "would create" } else { "created" }.to_owned();
        text.push_str(&format!(" {spec}, {uuid}\nsize: {}\n", size.bytes().short()));
        text.push_str(&format!("data on each drive: {}\n", drive_size.bytes().short()));
        text.push_str(&match journal {
            Some(sectors) => {
                let of = match logs {
                    Logs::All => "every write is logged",
                    Logs::Parts => "long writes are intent-logged",
                };
                let on = match spec.journals() {
                    0 => "each drive".to_owned(),
                    count => format!("each of {count} drives of its own"),
                };
                format!("journal: {} of {on}, {of}\n", sectors.bytes().short())
            }
            None if spec.redundant() == 0 => String::new(),
            None => "journal: none: a crash may leave redundancy that is wrong\n".to_owned(),
        });
        if spec.has_checksums() {
            text.push_str("checksums: of every sector, computed by the initial sync\n");
        }
        for (at, drive) in drives.iter().enumerate() {
            let what = if at < spec.drives() { "drive" } else { "drive for the journal" };
            let new = if drive.is_new { ", a new file" } else { "" };
            text.push_str(&format!(
                "{what}: {} ({}{new})\n",
                drive.member,
                drive.size.bytes().short()
            ));
        }
        let unused: Vec<_> = drives.iter().filter(|drive| drive.unused > Sectors::ZERO).collect();
        if !unused.is_empty() {
            text.push_str("the drives differ in size and the smallest counts:\n");
            for drive in unused {
                let (member, unused) = (&drive.member, drive.unused.bytes().short());
                text.push_str(&format!("  {unused} of {member} stay unused\n"));
            }
        }
        text.push_str(if *is_synced {
            "redundancy: valid\n"
        } else {
            "redundancy: initial sync while the array is served\n"
        });
        text
    }

    fn json(&self) -> String {
        let Created { spec, uuid, size, drive_size, is_synced, journal, logs, drives } =
            &self.created;
        let drive = |(at, drive): (usize, &levelhead_host::CreatedDrive)| JsonDrive {
            member: drive.member.to_string(),
            size_bytes: drive.size.bytes().get(),
            unused_bytes: drive.unused.bytes().get(),
            new_file: drive.is_new,
            role: role_of(spec, at),
        };
        let value = Json {
            array: spec.to_string(),
            uuid: uuid.to_string(),
            size_bytes: size.bytes().get(),
            drive_data_bytes: drive_size.bytes().get(),
            synced: *is_synced,
            journal_bytes: journal.map(|sectors| sectors.bytes().get()),
            journal_logs: journal.map(|_| logs_name(*logs)),
            checksums: spec.has_checksums(),
            dry_run: self.dry_run,
            drives: drives.iter().enumerate().map(drive).collect(),
        };
        json::pretty(&value).expect("numbers and names are JSON")
    }
}
/// What a drive of an array has, by the name that `--json` gives it.
pub(super) fn role_of(spec: &Spec, drive: usize) -> &'static str {
    if drive < spec.drives() { "data" } else { "journal" }
}

/// Of which writes a journal has the contents, by the name that `--json` gives it.
fn logs_name(logs: Logs) -> &'static str {
    match logs {
        Logs::All => "all",
        Logs::Parts => "parts",
    }
}
