//! `levelhead fs sync`: everything that was written to a mounted filesystem outlasts a power cut when it returns.

use std::fs::File;
use std::path::Path;

use levelhead_fuse::sync;
use levelhead_report::json;
use serde::Serialize;

use super::points;
use crate::{AppError, Show};

/// What was synced.
#[derive(Clone, Debug, Serialize)]
pub struct Synced {
    /// Where it is mounted.
    pub directory: String,
    /// What it is on.
    pub target: String,
}

/// Makes durable what was written to the filesystem that a path is in.
///
/// # Errors
///
/// The path is in none of ours; or something that was written since the last such sync could not be stored.
pub fn sync_filesystem(path: &Path) -> Result<Synced, AppError> {
    let point = points::ours_above(path)?;
    let shown = point.directory.display().to_string();
    let failed = |error: std::io::Error| {
        AppError::trouble(format!("{shown}: not everything that was written is stored: {error}"))
    };
    // What the kernel keeps comes to the program that answers first: it passes no sync on.
    File::open(&point.directory)
        .and_then(|open| Ok(rustix::fs::syncfs(open)?))
        .and_then(|()| sync(&point.directory))
        .map_err(failed)?
        .ok_or_else(|| {
            AppError::trouble(format!("{shown}: the program that answers knows no sync"))
        })?;
    Ok(Synced { target: point.source.display().to_string(), directory: shown })
}

impl Show for Synced {
    fn text(&self) -> String {
        format!("everything that was written to {} is on {}\n", self.directory, self.target)
    }

    fn json(&self) -> String {
        json::pretty(self).expect("plain values")
    }
}
