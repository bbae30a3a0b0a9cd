//! `levelhead array upgrade`: the version of an array's superblock.

use levelhead_host::{ArrayVersion, Conversion, Upgraded};
use levelhead_report::json;
use serde::Serialize;

use super::drives::Drives;
use levelhead_app::{AppError, Show};

/// Which array, and to what.
#[derive(Clone, Debug)]
pub struct Upgrade {
    /// Its members, all of them.
    pub drives: Drives,
    /// The version that it is to have.
    pub to: ArrayVersion,
}

/// An array that has that version.
#[derive(Debug, Serialize)]
pub struct UpgradedArray {
    uuid: String,
    array: String,
    version: u8,
    converted: bool,
    members: Vec<String>,
}

/// Converts an array that is not served.
///
/// # Errors
///
/// It cannot be converted, or a member could not be written.
pub fn upgrade(ask: &Upgrade) -> Result<UpgradedArray, AppError> {
    let upgraded = ask
        .drives
        .with_which(|which| levelhead_host::upgrade(which, ask.to).map_err(AppError::usage))?;
    let Upgraded { uuid, spec, version, conversion, members } = upgraded;
    Ok(UpgradedArray {
        uuid: uuid.to_string(),
        array: spec.to_string(),
        version: match version {
            ArrayVersion::Two => 2,
            ArrayVersion::Three => 3,
        },
        converted: conversion == Conversion::Done,
        members: members.iter().map(ToString::to_string).collect(),
    })
}

impl Show for UpgradedArray {
    fn text(&self) -> String {
        let Self { uuid, array, version, converted, members } = self;
        let what = if *converted { "converted to" } else { "nothing to do: already" };
        format!("array: {array}, {uuid}\n{what} version {version}: {}\n", members.join(" "))
    }

    fn json(&self) -> String {
        json::pretty(self).expect("numbers and names are JSON")
    }
}
