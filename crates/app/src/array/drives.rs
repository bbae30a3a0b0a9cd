//! How the drives of an array are named: each by itself, or by the folders that they lie in.

use std::path::PathBuf;

use levelhead_host::{AssembleOptions, Assembled, LeftOut, Which, assemble, assemble_among};
use serde::Serialize;

use super::members;
use crate::AppError;

/// See the module.
#[derive(Clone, Debug)]
pub enum Drives {
    /// These, in any order.
    Named(Vec<String>),
    /// Those of one array that lie in these folders.
    Among {
        /// Where to look.
        folders: Vec<PathBuf>,
        /// How the array's UUID begins, if several have drives there.
        array: Option<String>,
    },
}

impl Drives {
    /// As they were typed: folders, or else drives.
    pub fn of(names: Vec<String>, array: Option<String>) -> Result<Self, AppError> {
        let is_folder = |name: &&String| PathBuf::from(name.as_str()).is_dir();
        let folders = names.iter().filter(is_folder).count();
        if folders == 0 {
            return Ok(Self::Named(names));
        }
        if let Some(drive) = names.iter().find(|name| !is_folder(name)) {
            return Err(AppError::usage(format!(
                "{drive} is no folder: drives are named, or folders that they lie in, and not both"
            )));
        }
        Ok(Self::Among { folders: names.into_iter().map(PathBuf::from).collect(), array })
    }

    /// Calls `run` with what they are for those that read them and do not serve them.
    pub(super) fn with_which<T>(
        &self,
        run: impl FnOnce(Which<'_>) -> Result<T, AppError>,
    ) -> Result<T, AppError> {
        match self {
            Self::Named(names) => run(Which::Named(&members(names)?)),
            Self::Among { folders, array } => {
                run(Which::Among { folders, array: array.as_deref() })
            }
        }
    }

    /// Opens them as the array that they are, so that it can be served.
    pub(super) fn assemble(&self, options: AssembleOptions) -> Result<Assembled, AppError> {
        match self {
            Self::Named(names) => assemble(&members(names)?, options),
            Self::Among { folders, array } => assemble_among(folders, array.as_deref(), options),
        }
        .map_err(AppError::usage)
    }
}

/// A drive that is none of the array.
#[derive(Debug, Serialize)]
pub(super) struct LeftOutJson {
    member: String,
    state: &'static str,
    pub(super) reason: String,
}

impl LeftOutJson {
    pub(super) fn of(left: &LeftOut) -> Self {
        Self {
            member: left.member.to_string(),
            state: left.defect.name(),
            reason: left.sentence.clone(),
        }
    }
}
