//! `levelhead fs sync`: everything that was written to a mounted filesystem outlasts a power cut when it returns.

use std::fs::File;
use std::path::Path;

use levelhead_fuse::sync;
use levelhead_report::json;
use serde::Serialize;

use super::points;
use levelhead_app::{AppError, Show};

/// What was synced.
#[derive(Clone, Debug, Serialize)]
pub struct Synced {
    /// Where it is mounted.
    pub directory: String,
    /// What it is on.
    pub target: String,
    /// Whether everything that was written is there.
    pub stored: bool,
    /// If not, why.
    pub why: Option<String>,
}

/// Makes durable what was written to the filesystem that a path is in; [`Synced::check`] says whether everything was stored.
///
/// # Errors
///
/// The path is in none of ours.
pub fn sync_filesystem(path: &Path) -> Result<Synced, AppError> {
    let point = points::ours_above(path)?;
    // What the kernel keeps comes to the program that answers first: it passes no sync on.
    let synced = File::open(&point.directory)
        .and_then(|open| Ok(rustix::fs::syncfs(open)?))
        .and_then(|()| sync(&point.directory));
    let why = match synced {
        Ok(Some(())) => None,
        Ok(None) => Some("the program that answers knows no sync".to_owned()),
        Err(error) => Some(error.to_string()),
    };
    let shown = |path: &Path| path.display().to_string();
    let (directory, target) = (shown(&point.directory), shown(&point.source));
    Ok(Synced { directory, target, stored: why.is_none(), why })
}

impl Synced {
    /// That everything was stored.
    ///
    /// # Errors
    ///
    /// Something that was written since the last such sync was not: a sentence that says why.
    pub fn check(&self) -> Result<(), AppError> {
        let Some(why) = &self.why else { return Ok(()) };
        Err(AppError::trouble(format!(
            "{}: not everything that was written is stored: {why}",
            self.directory
        )))
    }
}

impl Show for Synced {
    fn text(&self) -> String {
        match self.stored {
            true => {
                format!("everything that was written to {} is on {}\n", self.directory, self.target)
            }
            // The error says it.
            false => String::new(),
        }
    }

    fn json(&self) -> String {
        json::pretty(self).expect("plain values")
    }
}
