//! `levelhead fs set`: how a file of a mounted filesystem is laid out, or the new files of a directory.

use std::path::{Path, PathBuf};

use levelhead_fs::FileKind;
use levelhead_report::json;
use rustix::fs::XattrFlags;
use rustix::io::Errno;
use serde::Serialize;

use super::points;
use levelhead_app::{AppError, Show};

/// The extended attribute that is the kind.
const ATTRIBUTE: &str = "user.levelhead.kind";

/// Names of the kinds.
const NAMES: &str = "a kind is auto, a, b or mutable";

/// What is to be set.
#[derive(Clone, Debug)]
pub struct SetKind {
    /// A file or a directory.
    pub path: PathBuf,
    /// Its kind.
    pub kind: FileKind,
}

/// What was set.
#[derive(Clone, Debug, Serialize)]
pub struct KindSet {
    path: String,
    kind: &'static str,
    /// Whether it says what new files in it are, and not how its own pages lie.
    is_directory: bool,
}

/// The kind of this name.
///
/// # Errors
///
/// There is none.
pub fn parse_kind(name: &str) -> Result<FileKind, String> {
    let found = FileKind::ALL.into_iter().find(|kind| kind.name() == name);
    found.ok_or_else(|| NAMES.to_owned())
}

/// The kind behind `kind=`.
///
/// # Errors
///
/// It is another word, or there is no such kind.
pub fn parse_setting(text: &str) -> Result<FileKind, String> {
    let name = text.strip_prefix("kind=").ok_or("expected kind=KIND")?;
    parse_kind(name)
}

/// Sets the kind of a file or a directory. A file that lies as another kind has it is written anew in the background.
///
/// # Errors
///
/// It is in no filesystem of ours, may not be changed, or its filesystem was made without zero forcing.
pub fn set_kind(ask: &SetKind) -> Result<KindSet, AppError> {
    let SetKind { path, kind } = ask;
    let value = kind.name().as_bytes();
    let shown = path.display();
    // Another filesystem would take it for an attribute like any other.
    points::ours_above(path)?;
    let set = rustix::fs::setxattr(path, ATTRIBUTE, value, XattrFlags::empty());
    set.map_err(|errno| {
        AppError::usage(match errno {
            Errno::OPNOTSUPP => format!(
                "{shown} cannot be of kind {}: only files and directories of a filesystem that was made with --zero-forcing can",
                kind.name()
            ),
            errno => format!("cannot set the kind of {shown}: {errno}"),
        })
    })?;
    Ok(KindSet {
        path: shown.to_string(),
        kind: kind.name(),
        is_directory: Path::new(path).is_dir(),
    })
}

impl Show for KindSet {
    fn text(&self) -> String {
        let Self { path, kind, is_directory } = self;
        match is_directory {
            true => format!("new files in {path} are of kind {kind}\n"),
            false => format!("{path} is of kind {kind}\n"),
        }
    }

    fn json(&self) -> String {
        json::pretty(self).expect("plain values")
    }
}
