//! `levelhead array repair-superblock`: copies of superblocks that were overwritten.

use levelhead_host::Repaired;
use levelhead_report::json;
use serde::Serialize;

use super::members;
use levelhead_app::{AppError, Show};

/// Members that have their superblocks.
#[derive(Debug, Serialize)]
pub struct RepairedArray {
    uuid: String,
    array: String,
    members: Vec<MemberJson>,
}

#[derive(Debug, Serialize)]
struct MemberJson {
    member: String,
    drive: usize,
    copies_written: usize,
}

/// Writes again what is missing of the superblocks of these drives, which are not served.
///
/// # Errors
///
/// They are not members of one array, or it is unknown which; then nothing was written. Or one could not be written.
pub fn repair_superblocks(drives: &[String]) -> Result<RepairedArray, AppError> {
    let repaired = levelhead_host::repair_superblocks(&members(drives)?);
    let Repaired { uuid, spec, members } = repaired.map_err(AppError::usage)?;
    let members = members.iter().map(|of| MemberJson {
        member: of.member.to_string(),
        drive: of.drive.as_usize(),
        copies_written: of.written,
    });
    Ok(RepairedArray {
        uuid: uuid.to_string(),
        array: spec.to_string(),
        members: members.collect(),
    })
}

impl Show for RepairedArray {
    fn text(&self) -> String {
        let Self { uuid, array, members } = self;
        let mut text = format!("array: {array}, {uuid}\n");
        for MemberJson { member, drive, copies_written } in members {
            let what = match copies_written {
                0 => "all copies of the superblock are there".to_owned(),
                1 => "1 copy of the superblock written again".to_owned(),
                count => format!("{count} copies of the superblock written again"),
            };
            text.push_str(&format!("{member}: drive {drive}, {what}\n"));
        }
        text
    }

    fn json(&self) -> String {
        json::pretty(self).expect("numbers and names are JSON")
    }
}
