//! `levelhead fs scrub`: everything is read once, and what is bad is written anew.

use std::path::Path;
use std::time::{Duration, Instant};

use levelhead_fs::{Answer, ScrubParts, ScrubPlace, Scrubbed, State, What};
use levelhead_fuse::{read_status, scrub_step};
use levelhead_report::json;
use levelhead_units::{Bytes, Sectors};
use serde::Serialize;

use super::alone::Alone;
use super::points;
use levelhead_app::{AppError, Progress, Show, Stop};

/// What to scrub, and how.
#[derive(Clone, Debug)]
pub struct ScrubFilesystem {
    /// A directory on which it is mounted; or a file, a block device or an emulated drive that it is on.
    pub target: String,
    /// What is read.
    pub parts: ScrubParts,
    /// The most bytes that are read in a second.
    pub rate: Option<Bytes>,
}

/// Reads `--only data,redundancy,metadata`.
///
/// # Errors
///
/// A word is none of these.
pub fn scrub_parts(text: &str) -> Result<ScrubParts, String> {
    let mut parts = ScrubParts { data: false, redundancy: false, metadata: false };
    for word in text.split(',') {
        match word {
            "data" => parts.data = true,
            "redundancy" => parts.redundancy = true,
            "metadata" => parts.metadata = true,
            _ => return Err(format!("'{word}' is none of data, redundancy, metadata")),
        }
    }
    Ok(parts)
}

/// What a scrub has found.
#[derive(Clone, Debug, Default, Serialize)]
pub struct FilesystemScrub {
    sectors_read: u64,
    sectors_damaged: u64,
    sectors_repaired: u64,
    sectors_lost: u64,
    files_damaged: u64,
    /// Whether it has come to the end.
    complete: bool,
    /// Why nothing is written any more: nothing is scrubbed then, because what was written last may not be on the disk.
    failure: Option<String>,
}

impl FilesystemScrub {
    /// That the disk stores what it should.
    ///
    /// # Errors
    ///
    /// It does not: a sentence that says why.
    pub fn check(&self, target: &str) -> Result<(), AppError> {
        let Some(failure) = &self.failure else { return Ok(()) };
        Err(AppError::trouble(format!(
            "{target} is read-only: {failure}; a scrub after the next mount finds what was synced"
        )))
    }

    fn add(&mut self, step: &Scrubbed) {
        self.sectors_read += step.read;
        self.sectors_damaged += step.damaged;
        self.sectors_repaired += step.repaired;
        self.sectors_lost += step.lost;
    }
}

/// Whom a step is asked of.
enum Asked {
    Mounted,
    Alone(Box<Alone>),
}

/// Scrubs a filesystem, mounted or not, until its end or until `stop`.
///
/// # Errors
///
/// There is none, it does not answer, or the caller may not scrub.
pub fn scrub_filesystem(
    ask: &ScrubFilesystem,
    stop: &Stop,
    progress: &dyn Progress,
) -> Result<FilesystemScrub, AppError> {
    let point = Path::new(&ask.target);
    let blame = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::PermissionDenied => {
            AppError::usage(format!("{}: only the superuser may scrub what is mounted", ask.target))
        }
        _ => AppError::trouble(format!("{}: {error}", ask.target)),
    };
    let mut asked = match point.is_dir() {
        true => {
            points::ours_on(point)?;
            Asked::Mounted
        }
        false => Asked::Alone(Box::new(Alone::open(&ask.target, Box::new(drop))?)),
    };
    let mut found = FilesystemScrub::default();
    let mut place = Some(ScrubPlace::FIRST);
    let task = progress.begin("sectors read", 0);
    let begun = Instant::now();
    let parts = ask.parts;
    let status = || read_status(point).map_err(blame);
    while let Some(at) = place {
        if stop.is_wished() {
            break;
        }
        if let Asked::Mounted = asked
            && let Some(State::Failed(failure)) = status()?.map(|status| status.state)
        {
            found.failure = Some(failure.to_string());
            break;
        }
        let step = match &mut asked {
            Asked::Mounted => scrub_step(point, at, parts).map_err(blame)?.ok_or_else(|| {
                AppError::trouble(format!("{}: the program that answers cannot scrub", ask.target))
            })?,
            Asked::Alone(alone) => match alone.run(What::Scrub { place: at, parts })? {
                Answer::Scrubbed(step) => step,
                other => {
                    return Err(AppError::trouble(format!("{}: {other:?}", ask.target)));
                }
            },
        };
        found.add(&step);
        place = step.next;
        task.reach(found.sectors_read);
        if let Some(rate) = ask.rate {
            wait(begun, found.sectors_read, rate, stop);
        }
    }
    found.complete = place.is_none();
    match asked {
        Asked::Mounted => {
            found.files_damaged = status()?.map_or(0, |status| status.files_damaged);
        }
        Asked::Alone(alone) => found.files_damaged = alone.close()?.files_damaged,
    }
    Ok(found)
}

/// Waits until no more was read than a rate allows.
fn wait(begun: Instant, sectors: u64, rate: Bytes, stop: &Stop) {
    let bytes = Sectors::new(sectors).bytes().get();
    let due = Duration::from_secs_f64(bytes as f64 / rate.get().max(1) as f64);
    if let Some(left) = due.checked_sub(begun.elapsed()) {
        stop.wait_until(Instant::now() + left);
    }
}

impl Show for FilesystemScrub {
    fn text(&self) -> String {
        let mut text = String::new();
        if !self.complete {
            text.push_str("the scrub was stopped before its end\n");
        }
        for (name, value) in [
            ("sectors read", self.sectors_read),
            ("damaged", self.sectors_damaged),
            ("repaired", self.sectors_repaired),
            ("lost", self.sectors_lost),
            ("files damaged", self.files_damaged),
        ] {
            text.push_str(&format!("{name}: {value}\n"));
        }
        text
    }

    fn json(&self) -> String {
        json::pretty(self).expect("plain values")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_read_by_name_and_others_refused() {
        assert_eq!(scrub_parts("data,redundancy,metadata"), Ok(ScrubParts::ALL));
        let some = ScrubParts { data: true, redundancy: false, metadata: true };
        assert_eq!(scrub_parts("metadata,data"), Ok(some));
        assert_eq!(
            scrub_parts("data,all"),
            Err("'all' is none of data, redundancy, metadata".to_owned())
        );
    }
}
