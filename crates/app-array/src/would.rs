//! `levelhead array assemble`: what `serve` would do with these drives, and nothing of it done.
//!
//! It opens the same drives in the same way and asks the same question; only then it lets go of them.

use std::collections::BTreeMap;

use levelhead_array::metadata::Forced;
use levelhead_host::{Assembled, MemberSpec, Recovery, assemble_with_spares, words};
use levelhead_report::{Column, Table, json};
use levelhead_units::{Bytes, DriveIdx, DriveSet};
use serde::Serialize;

use super::create::role_of;
use super::drives::{Allowed, Drives, LeftOutJson};
use super::health::{self, Health};
use levelhead_app::{AppError, Show};

/// Which drives, and what is allowed.
#[derive(Clone, Debug)]
pub struct Assemble {
    /// The drives.
    pub drives: Drives,
    /// What is allowed.
    pub allowed: Allowed,
}

/// What a start would do.
#[derive(Debug, Serialize)]
pub struct WouldServe {
    uuid: String,
    array: String,
    size_bytes: u64,
    state: &'static str,
    stopped_in_order: bool,
    forced: bool,
    journal: bool,
    generation: u64,
    recovery: &'static str,
    unsynced_stripes: u64,
    stripes: u64,
    drives: Vec<DriveJson>,
    /// Drives that are missing for the first time.
    newly_missing: Vec<usize>,
    left_out: Vec<LeftOutJson>,
    /// What it would do first, a sentence each.
    would: Vec<String>,
    #[serde(skip)]
    health: Health,
}

#[derive(Debug, Serialize)]
struct DriveJson {
    drive: usize,
    role: &'static str,
    state: &'static str,
    member: Option<String>,
}

/// Says what `serve` would do.
pub fn would_serve(ask: &Assemble) -> Result<WouldServe, AppError> {
    let options = ask.allowed.options();
    let assembled = ask.drives.with_which(|which| {
        assemble_with_spares(which, &[], options).map_err(health::of_refusal)
    })?;
    Ok(WouldServe::of(&assembled))
}

impl WouldServe {
    /// How well the array is.
    pub fn health(&self) -> &Health {
        &self.health
    }

    fn of(assembled: &Assembled) -> Self {
        let ((synced, stripes), spec) = (assembled.synced(), assembled.spec());
        let recovery = match assembled.recovery() {
            Recovery::None => "none",
            Recovery::Journal => "journal",
            Recovery::Resync => "resync",
        };
        let returning: BTreeMap<DriveIdx, &MemberSpec> =
            assembled.returning().into_iter().collect();
        let drive = |(at, taken): (usize, Option<&MemberSpec>)| {
            let (state, member) = match (taken, returning.get(&DriveIdx::from_usize(at))) {
                (Some(member), _) => ("taken", Some(member)),
                (None, Some(&member)) => ("returning", Some(member)),
                (None, None) => ("missing", None),
            };
            DriveJson {
                drive: at,
                role: role_of(&spec, at),
                state,
                member: member.map(ToString::to_string),
            }
        };
        let drives = assembled.drives().into_iter().enumerate().map(drive);
        let newly_missing = assembled.newly_missing();
        let away = assembled.lost().or(assembled.filling());
        let mut health = Health::HEALTHY;
        let back: DriveSet = returning.keys().copied().collect();
        for (drives, how) in [
            (assembled.lost().without(back), "missing"),
            (back, "out of date"),
            (assembled.filling(), "being rebuilt"),
        ] {
            if !drives.is_empty() {
                health.note(format!("{} {how}", words::drives_are(drives)));
            }
        }
        if synced < stripes {
            health.note(format!(
                "the redundancy of {} is not valid",
                words::counted(stripes - synced, "stripe")
            ));
        }
        if let Some(doubt) = assembled.doubt() {
            health.note(doubt);
        }
        Self {
            health,
            uuid: assembled.uuid().to_string(),
            array: assembled.spec().to_string(),
            size_bytes: assembled.size().bytes().get(),
            state: if away.is_empty() { "whole" } else { "degraded" },
            stopped_in_order: assembled.recovery() == Recovery::None,
            forced: assembled.forced() == Forced::Yes,
            journal: assembled.has_journal(),
            generation: assembled.generation(),
            recovery,
            unsynced_stripes: stripes - synced,
            stripes,
            drives: drives.collect(),
            newly_missing: newly_missing.iter().map(DriveIdx::as_usize).collect(),
            left_out: assembled.left_out().iter().map(LeftOutJson::of).collect(),
            would: sentences(assembled),
        }
    }
}

/// What the start of this array is like.
pub(super) fn sentences(assembled: &Assembled) -> Vec<String> {
    let mut sentences: Vec<String> = Vec::new();
    if let Some(doubt) = assembled.doubt() {
        sentences.push(format!("forced to go on: {doubt}"));
    }
    let returning = assembled.returning();
    let back: DriveSet = returning.iter().map(|(drive, _)| *drive).collect();
    let missing = assembled.lost().without(back);
    if !missing.is_empty() {
        let its = if missing.len() == 1 { "its" } else { "their" };
        sentences.push(format!("{} missing, {its} data is computed", words::drives_are(missing)));
    }
    let newly = assembled.newly_missing();
    if !newly.is_empty() {
        sentences.push(format!(
            "{} missing for the first time: the first write records that, and goes on without {}",
            words::drives_are(newly),
            if newly.len() == 1 { "it" } else { "them" }
        ));
    }
    for (drive, member) in returning {
        sentences.push(format!("drive {drive} is back, {member}: partial resync"));
    }
    for left in assembled.left_out() {
        sentences.push(format!("left out: {}", left.sentence));
    }
    sentences.extend(assembled.short_of_room());
    if !assembled.is_recorded() {
        sentences.push(
            "the latest metadata is on too few drives: it is written to all of them first"
                .to_owned(),
        );
    }
    if assembled.recovery() == Recovery::Journal {
        sentences.push("unclean shutdown: the journal is written back first".to_owned());
    }
    let (synced, stripes) = assembled.synced();
    if synced < stripes {
        let unsynced = stripes - synced;
        sentences.push(format!(
            "resync: redundancy of {unsynced} of {stripes} stripes is not valid yet"
        ));
    }
    sentences
}

impl Show for WouldServe {
    fn text(&self) -> String {
        let Self { array, uuid, size_bytes, state, would, .. } = self;
        let size = Bytes::new(*size_bytes).short();
        let is_apart = self.drives.iter().any(|drive| drive.role == "journal");
        let journal = match (self.journal, is_apart) {
            (false, _) => "none",
            (true, false) => "on every drive",
            (true, true) => "on drives of its own",
        };
        let mut text = format!(
            "would serve {array}, {uuid}\nsize: {size}\nstate: {state}\njournal: {journal}\n"
        );
        let mut table = Table::new(["drive", "role", "state", "member"].map(Column::left));
        for DriveJson { drive, role, state, member } in &self.drives {
            let member = member.clone().unwrap_or_else(|| "-".to_owned());
            table.push([drive.to_string(), (*role).to_owned(), (*state).to_owned(), member]);
        }
        text.push_str(&table.to_text());
        if !self.health.is_healthy() {
            text.push_str(&format!("{}\n", self.health.sentence()));
        }
        would.iter().for_each(|sentence| text.push_str(&format!("{sentence}\n")));
        text
    }

    fn json(&self) -> String {
        json::pretty(self).expect("numbers and names are JSON")
    }
}
