//! How the drives of an array are named: each by itself, or by the folders that they lie in.

use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use levelhead_host::{
    AssembleOptions, Assembled, LeftOut, MemberSpec, Which, assemble_with_spares,
};
use levelhead_units::Nanos;
use serde::Serialize;

use super::members_that_may_be_away;
use levelhead_app::AppError;

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

/// What may be so at an array's start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowed {
    /// Whether data may be wrong.
    pub force: bool,
    /// Whether drives may be missing that were there so far.
    pub degraded: Degraded,
}

/// Whether an array may start without drives that were there so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Degraded {
    /// It may not.
    No,
    /// It may once they have been looked for so long.
    After(Nanos),
}

impl Allowed {
    /// When no drive is waited for any more.
    pub(super) fn options(self) -> AssembleOptions {
        let degraded = matches!(self.degraded, Degraded::After(_));
        AssembleOptions { force: self.force, degraded }
    }
}

/// How often drives are looked for that an array waits for.
const LOOK_EVERY: Duration = Duration::from_secs(1);

impl Drives {
    /// As they were typed: folders, or else drives.
    pub fn of(names: Vec<String>, array: Option<String>) -> Result<Self, AppError> {
        let is_folder = |name: &&String| PathBuf::from(name.as_str()).is_dir();
        let folders = names.iter().filter(is_folder).count();
        if let (0, Some(array)) = (folders, &array) {
            return Err(AppError::usage(format!(
                "--array {array} chooses among the arrays in a folder, and no folder is named"
            )));
        }
        if folders == 0 {
            return Ok(Self::Named(names));
        }
        if let Some(drive) = names.iter().find(|name| !is_folder(name)) {
            return Err(AppError::usage(format!(
                "{drive} is not a folder: expected drives, or folders that hold drives, not both"
            )));
        }
        Ok(Self::Among { folders: names.into_iter().map(PathBuf::from).collect(), array })
    }

    /// Calls `run` with what they are for the host.
    pub(super) fn with_which<T>(
        &self,
        run: impl FnOnce(Which<'_>) -> Result<T, AppError>,
    ) -> Result<T, AppError> {
        match self {
            Self::Named(names) => run(Which::Named(&members_that_may_be_away(names)?)),
            Self::Among { folders, array } => {
                run(Which::Among { folders, array: array.as_deref() })
            }
        }
    }

    /// The same, after a wait for drives that are missing, where one is allowed. `tell` hears why it waits.
    pub(super) fn wait_and_assemble(
        &self,
        spares: &[MemberSpec],
        allowed: Allowed,
        tell: &dyn Fn(&str),
    ) -> Result<Assembled, AppError> {
        let patience = match allowed.degraded {
            Degraded::No => Nanos::ZERO,
            Degraded::After(patience) => patience,
        };
        let (begun, all) =
            (Instant::now(), AssembleOptions { degraded: false, ..allowed.options() });
        let mut is_told = false;
        loop {
            let left = Duration::from_nanos(patience.get()).saturating_sub(begun.elapsed());
            if left.is_zero() {
                return self.assemble(spares, allowed.options());
            }
            match self.assemble(spares, all) {
                Ok(assembled) => return Ok(assembled),
                Err(error) if !is_told => {
                    tell(&format!("{error}; waiting {patience} for drives"));
                    is_told = true;
                }
                Err(_) => {}
            }
            thread::sleep(left.min(LOOK_EVERY));
        }
    }

    /// Opens them as the array that they are, so that it can be served. A spare that has stepped in is one of them.
    pub(super) fn assemble(
        &self,
        spares: &[MemberSpec],
        options: AssembleOptions,
    ) -> Result<Assembled, AppError> {
        self.with_which(|which| {
            assemble_with_spares(which, spares, options).map_err(AppError::usage)
        })
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
