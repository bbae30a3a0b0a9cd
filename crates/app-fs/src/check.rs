//! `levelhead fs check`: whether everything on a disk that is not mounted belongs together, and repairs.

use std::sync::Arc;
use std::time::SystemTime;

use levelhead_block::adapter::Waiting;
use levelhead_erasure::Kernel;
use levelhead_fs::Moment;
use levelhead_fs::check::{
    CannotCheck, CheckOptions, Depth, Fate, Listed, Repair, Report, check_with, find_superblock,
};
use levelhead_host::{LoneDrive, words};
use levelhead_report::json;
use serde::Serialize;

use super::points;
use super::target::Target;
use levelhead_app::{AppError, Progress, Show};

/// What to check, and how.
#[derive(Clone, Debug)]
pub struct CheckFilesystem {
    /// A file, a block device or an emulated drive.
    pub target: String,
    /// What is done about problems.
    pub repair: Repair,
    /// What is read.
    pub depth: Depth,
    /// When everything is read.
    pub when: CheckWhen,
}

/// When everything is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckWhen {
    /// Always.
    Always,
    /// If the filesystem was not stopped in order.
    NotInOrder,
}

/// What a check has found.
#[derive(Clone, Debug)]
pub struct FilesystemCheck {
    target: String,
    depth: Depth,
    report: Option<Report>,
}

/// How a filesystem was found, and how it stands now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckEnd {
    /// Nothing was wrong.
    Clean,
    /// Nothing is wrong any more.
    Corrected,
    /// Something is still wrong.
    Left,
}

/// Checks a filesystem that is not mounted.
///
/// # Errors
///
/// There is none, it is mounted or in use, or its disk does not answer.
pub fn check_filesystem(
    ask: &CheckFilesystem,
    progress: &dyn Progress,
) -> Result<FilesystemCheck, AppError> {
    let Target { member, .. } = Target::find(&ask.target)?;
    let name = member.to_string();
    points::check_unmounted(&member)?;
    let drive = Arc::new(LoneDrive::open(&member).map_err(AppError::usage)?);
    let mut device = Waiting::new(Arc::clone(&drive));
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let options = CheckOptions {
        repair: ask.repair,
        depth: ask.depth,
        kernel: Kernel::best(),
        now: Moment { seconds: since.as_secs() as i64, nanos: since.subsec_nanos() },
    };
    let refused = |why| refused(&name, why);
    let is_skipped = ask.when == CheckWhen::NotInOrder
        && find_superblock(&mut device).map_err(refused)?.is_clean;
    let checked = match is_skipped {
        true => None,
        false => {
            let task = progress.begin("metadata and sectors", 0);
            let checked = check_with(&mut device, &options, &mut |step| {
                task.reach(step.units + step.sectors);
            });
            drop(task);
            Some(checked)
        }
    };
    drive.wind_up();
    let report = checked.transpose().map_err(refused)?;
    Ok(FilesystemCheck { target: name, depth: ask.depth, report })
}

pub(super) fn refused(name: &str, why: CannotCheck) -> AppError {
    match why {
        CannotCheck::NoFilesystem => AppError::usage(format!("{name} has no levelhead filesystem")),
        CannotCheck::Unknown { version, features } => AppError::usage(format!(
            "{name} has a filesystem of version {version} with the incompatible features {features:#x}, which this program \
             does not know"
        )),
        CannotCheck::OnlyRead { features } => AppError::usage(format!(
            "{name} has the features {features:#x}, with which this program can only read"
        )),
        CannotCheck::Short { wanted, has } => AppError::usage(format!(
            "the filesystem on {name} has {}, but {name} has {}",
            wanted.bytes(),
            has.bytes()
        )),
        CannotCheck::Device { reason } => AppError::trouble(format!("{name}: {reason}")),
    }
}

impl FilesystemCheck {
    /// How the filesystem was found, and how it stands now.
    pub fn end(&self) -> CheckEnd {
        match &self.report {
            None => CheckEnd::Clean,
            Some(report) if report.problems == 0 => CheckEnd::Clean,
            Some(report) if report.is_clean() => CheckEnd::Corrected,
            Some(_) => CheckEnd::Left,
        }
    }

    /// The target, as it was named.
    pub fn target(&self) -> &str {
        &self.target
    }

    /// Problems that are still there.
    pub fn left(&self) -> u64 {
        self.report.as_ref().map_or(0, Report::left)
    }
}

#[derive(Serialize)]
struct Json {
    clean: bool,
    /// Problems that were found.
    problems: u64,
    repaired: u64,
    left: u64,
    in_order: bool,
    files: u64,
    directories: u64,
    orphans: u64,
    file_sectors: u64,
    metadata_sectors: u64,
    free_sectors: u64,
    sectors_compared: u64,
    /// The first problems, one sentence each.
    listed: Vec<JsonProblem>,
}

#[derive(Serialize)]
struct JsonProblem {
    problem: String,
    repaired: bool,
    /// Whether its sector cannot be written; something else has what it should hold.
    unwritable: bool,
}

impl Show for FilesystemCheck {
    fn text(&self) -> String {
        let Self { target, depth, report } = self;
        let Some(report) = report else {
            return format!("{target}: it was stopped cleanly and is not checked\n");
        };
        let mut text = String::new();
        for listed in &report.listed {
            let fate = match listed.fate {
                Fate::Left => "",
                Fate::Repaired => " (repaired)",
                Fate::Unwritable => " (cannot be written)",
            };
            text.push_str(&format!("{}{fate}\n", listed.problem));
        }
        let unlisted = report.problems - report.listed.len() as u64;
        if unlisted > 0 {
            let problems = if unlisted == 1 { "problem" } else { "problems" };
            text.push_str(&format!("and {unlisted} more {problems}\n"));
        }
        text.push_str(&format!(
            "{target}: {}, {}, {}",
            words::counted(report.files, "file"),
            match report.directories {
                1 => "1 directory".to_owned(),
                directories => format!("{directories} directories"),
            },
            words::counted(report.free_sectors, "free sector")
        ));
        if *depth == Depth::Data {
            let compared = words::counted(report.compared_sectors, "sector");
            text.push_str(&format!(", {compared} compared"));
        }
        let is_unwritable = |listed: &&Listed| listed.fate == Fate::Unwritable;
        let unwritable = report.listed.iter().filter(is_unwritable).count();
        text.push_str(&match (report.problems, report.left()) {
            (problems, 0) if unwritable > 0 => format!(
                "; {}, none left, {unwritable} of them in sectors that cannot be written\n",
                words::counted(problems, "problem")
            ),
            (0, _) => "; clean\n".to_owned(),
            (1, 0) => "; 1 problem, repaired\n".to_owned(),
            (problems, 0) => format!("; {problems} problems, all repaired\n"),
            (problems, left) => {
                format!("; {}, {left} of them left\n", words::counted(problems, "problem"))
            }
        });
        text
    }

    fn json(&self) -> String {
        let skipped = Report { was_in_order: true, ..Report::default() };
        let report = self.report.as_ref().unwrap_or(&skipped);
        let listed = report.listed.iter().map(|listed| JsonProblem {
            problem: listed.problem.to_string(),
            repaired: listed.fate == Fate::Repaired,
            unwritable: listed.fate == Fate::Unwritable,
        });
        json::pretty(&Json {
            clean: report.is_clean(),
            problems: report.problems,
            repaired: report.repaired,
            left: report.left(),
            in_order: report.was_in_order,
            files: report.files,
            directories: report.directories,
            orphans: report.orphans,
            file_sectors: report.file_sectors,
            metadata_sectors: report.metadata_sectors,
            free_sectors: report.free_sectors,
            sectors_compared: report.compared_sectors,
            listed: listed.collect(),
        })
        .expect("plain values")
    }
}
