//! What has been counted, in a file: a later run goes on from there.
//!
//! The file is one JSON value, written whole each time, so that there is always one that can be read. A point is known again by
//! everything that its chance depends on.

use std::path::{Path, PathBuf};

use levelhead_ldpc::{BlockCount, Point, Tally};
use levelhead_report::json;
use serde::{Deserialize, Serialize};

use levelhead_app::{AppError, VERSION, files};

/// The longest file that is read, in bytes.
const LENGTH_MAX: u64 = 1 << 20;

/// Counts by point.
#[derive(Debug)]
pub(super) struct Checkpoint {
    path: Option<PathBuf>,
    kept: Vec<Kept>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Content {
    program: String,
    points: Vec<Kept>,
}

/// A point and its blocks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Kept {
    forced: usize,
    channel: String,
    ber: f64,
    iterations_max: u32,
    seed: u64,
    blocks: u64,
    failures_before: u64,
    undetected_before: u64,
    iterations: u64,
    last_failed: u64,
    last_undetected: u64,
    last_iterations: u64,
}

impl Checkpoint {
    /// The one at `path`, empty if there is no such file or none is named.
    pub(super) fn open(path: Option<&Path>) -> Result<Self, AppError> {
        let Some(path) = path else { return Ok(Self { path: None, kept: Vec::new() }) };
        files::check_place(path)?;
        let kept = if path.exists() {
            let text = files::read_text(path, LENGTH_MAX)?;
            let wrong = |why: String| {
                AppError::usage(format!(
                    "{} is not a checkpoint of this program: {why}",
                    path.display()
                ))
            };
            let content: Content =
                serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
            if content.program != program() {
                return Err(wrong(format!("it is of {}", content.program)));
            }
            if let Some(point) = content.points.iter().find(|point| !point.can_be()) {
                return Err(wrong(format!("{} failures cannot be", point.failures_before)));
            }
            content.points
        } else {
            Vec::new()
        };
        Ok(Self { path: Some(path.to_owned()), kept })
    }

    /// What has been counted of a point.
    pub(super) fn tally(&self, point: &Point) -> Tally {
        self.kept.iter().find(|kept| kept.is_of(point)).map(Kept::tally).unwrap_or_default()
    }

    /// Keeps what has been counted of a point, unless more is known of it.
    pub(super) fn keep(&mut self, point: &Point, tally: &Tally) -> Result<(), AppError> {
        let now = Kept::new(point, tally);
        match self.kept.iter_mut().find(|kept| kept.is_of(point)) {
            Some(kept) if kept.blocks > now.blocks => return Ok(()),
            Some(kept) => *kept = now,
            None => self.kept.push(now),
        }
        let Some(path) = &self.path else { return Ok(()) };
        let content = Content { program: program(), points: self.kept.clone() };
        let text = json::pretty(&content).expect("these are plain values");
        files::write_whole(path, |out| out.write_all(text.as_bytes()))
    }
}

fn program() -> String {
    format!("levelhead {VERSION}")
}

impl Kept {
    fn new(point: &Point, tally: &Tally) -> Self {
        Self {
            forced: point.forced.bytes(),
            channel: point.channel.to_string(),
            ber: point.ber,
            iterations_max: point.iterations,
            seed: point.seed,
            blocks: tally.blocks,
            failures_before: tally.failures_before,
            undetected_before: tally.undetected_before,
            iterations: tally.iterations,
            last_failed: tally.last.failed,
            last_undetected: tally.last.undetected,
            last_iterations: tally.last.iterations,
        }
    }

    fn is_of(&self, point: &Point) -> bool {
        let other = Self::new(point, &self.tally());
        *self == other
    }

    fn tally(&self) -> Tally {
        Tally {
            blocks: self.blocks,
            failures_before: self.failures_before,
            undetected_before: self.undetected_before,
            iterations: self.iterations,
            last: BlockCount {
                failed: self.last_failed,
                undetected: self.last_undetected,
                iterations: self.last_iterations,
            },
        }
    }

    /// Whether the counts can be those of so many blocks.
    fn can_be(&self) -> bool {
        self.blocks < 1 << 50
            && self.failures_before <= self.blocks.saturating_sub(1) * u64::BITS as u64
            && self.undetected_before <= self.failures_before
            && self.last_undetected & !self.last_failed == 0
            && (self.blocks > 0 || self.last_failed == 0)
    }
}
