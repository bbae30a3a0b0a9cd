//! What an operator must allow before an array is served: that a drive is missing which was there so far, and that data may
//! be wrong.

use std::path::PathBuf;

use levelhead_array::assembly::Assembly;
use levelhead_array::membership::not_present;
use levelhead_units::DriveSet;

use crate::member::MemberSpec;
use crate::refusals::tell_doubt;
use crate::select::{LeftOut, tell_with};
use crate::words::drives_are;

/// How an array is assembled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AssembleOptions {
    /// Go on where data may be wrong or missing: an array that lost both its power and a drive.
    pub force: bool,
    /// Go on without drives that are missing and that the array has not gone on without before. Drives that are named and
    /// that do not exist, or whose superblocks cannot be read, count as missing then.
    pub degraded: bool,
}

/// How the drives of an array are named.
#[derive(Clone, Copy, Debug)]
pub enum Which<'a> {
    /// Each by itself.
    Named(&'a [MemberSpec]),
    /// Those of one array that lie in these folders.
    Among {
        /// Where to look.
        folders: &'a [PathBuf],
        /// How the array's UUID begins, if several have drives there.
        array: Option<&'a str>,
    },
}

/// Where the drives of an array were looked for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Sought<'a> {
    /// Among the drives that were named, this many.
    Named(usize),
    /// In these folders.
    Among(&'a [PathBuf]),
}

impl<'a> From<Which<'a>> for Sought<'a> {
    fn from(which: Which<'a>) -> Self {
        match which {
            Which::Named(members) => Self::Named(members.len()),
            Which::Among { folders, array: _ } => Self::Among(folders),
        }
    }
}

/// Drives that are missing for the first time: the array has not gone on without them so far.
pub(crate) fn newly_missing(assembly: &Assembly) -> DriveSet {
    assembly.absent.without(not_present(&assembly.metadata.members))
}

/// Why an array is not served unless an operator says more than that, in one sentence; nothing where it is.
pub(crate) fn tell_start(
    assembly: &Assembly,
    options: AssembleOptions,
    sought: Sought<'_>,
    left_out: &[LeftOut],
) -> Option<String> {
    let missing = newly_missing(assembly);
    let is_missed = !missing.is_empty() && !options.degraded;
    let missed = is_missed.then(|| tell_missing(missing, sought));
    let doubt = assembly.doubt.filter(|_| !options.force).map(|doubt| tell_doubt(doubt, assembly));
    let sentence = [missed, doubt].into_iter().flatten().reduce(|a, b| format!("{a}; {b}"))?;
    Some(tell_with(sentence, if is_missed { left_out } else { &[] }))
}

/// Which drives are missing that the array has always had, and where they are not, in one sentence.
fn tell_missing(missing: DriveSet, sought: Sought<'_>) -> String {
    let (it, them) = match missing.len() {
        1 => ("it is", "it"),
        _ => ("they are", "them"),
    };
    let where_not = match sought {
        Sought::Named(count) => format!("{it} not among the {count} that were named"),
        Sought::Among(folders) => {
            let names: Vec<String> = folders.iter().map(|at| at.display().to_string()).collect();
            format!("{it} not found in {}", names.join(" and "))
        }
    };
    format!(
        "{} missing: {where_not}; use --degraded to start without \
         {them}",
        drives_are(missing)
    )
}
