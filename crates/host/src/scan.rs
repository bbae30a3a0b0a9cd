//! Looking for drives of arrays in folders: each file and block device there is looked at once, under its first
//! name, and nothing is changed, nor kept from other programs.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use levelhead_array::Spec;
use levelhead_array::assembly::{Found, Word};
use levelhead_array::superblock::Uuid;
use levelhead_units::Sectors;

use crate::error::{HostError, fail};
use crate::labels;
use crate::medium::{Identity, Medium, identify};
use crate::member::MemberSpec;
use crate::opened::Opened;

/// Something that says that it is a drive of an array.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) member: MemberSpec,
    pub(crate) found: Found,
}

/// What lies in some folders.
#[derive(Debug, Default)]
pub(crate) struct Scan {
    /// Files and devices that were looked at.
    pub(crate) looked_at: usize,
    /// Why others could not be, a sentence each.
    pub(crate) closed: Vec<String>,
    /// Drives of each array that is named by a good superblock.
    pub(crate) arrays: BTreeMap<Uuid, Vec<Seen>>,
    /// What has something like a superblock, but no good one: a sentence each.
    pub(crate) damaged: Vec<String>,
}

/// What one drive of an array says of it: the newest that any of them says.
pub(crate) fn newest(seen: &[Seen]) -> Word {
    let words = seen.iter().filter_map(|seen| seen.found.word());
    words.max_by_key(Word::generation).expect("each of them has a good superblock")
}

/// Looks at what lies in these folders, and at these files and devices.
pub(crate) fn scan(places: &[PathBuf]) -> Result<Scan, HostError> {
    let mut scan = Scan::default();
    let mut seen: Vec<Seen> = Vec::new();
    for path in candidates(places)? {
        let medium = match Medium::open_to_read(&path) {
            Ok(medium) => Opened::from(medium),
            Err(error) => {
                scan.closed.push(error.to_string());
                continue;
            }
        };
        scan.looked_at += 1;
        if medium.size() > Sectors::ZERO {
            let found = labels::find(&medium);
            seen.push(Seen { member: MemberSpec::at(&path), found });
        }
    }
    find_last_copies(&mut seen);
    for seen in seen {
        if let Some(superblock) = seen.found.good() {
            scan.arrays.entry(superblock.array).or_default().push(seen);
        } else if let Some(error) = seen.found.copies.iter().find_map(labels::damage) {
            scan.damaged.push(format!("{} cannot be used: {error}", seen.member));
        }
    }
    Ok(scan)
}

/// Drives that have grown and whose other copies are gone: where others had their ends, there is the last.
fn find_last_copies(seen: &mut [Seen]) {
    let sizes: BTreeSet<Sectors> =
        seen.iter().filter_map(|seen| labels::size_of_member(&seen.found)).collect();
    for Seen { member, found } in seen {
        if found.good().is_some() || sizes.iter().all(|&size| size >= found.size) {
            continue;
        }
        if let Ok(medium) = Medium::open_to_read(member.path()) {
            labels::find_last_copy(&Opened::from(medium), found, &sizes);
        }
    }
}

/// The array that is meant among those that were found: the only one, or the one whose UUID begins like this.
pub(crate) fn choose(
    scan: &Scan,
    places: &[PathBuf],
    wanted: Option<&str>,
) -> Result<Uuid, HostError> {
    let spec = |seen: &Vec<Seen>| newest(seen).superblock.spec;
    let arrays = scan.arrays.iter().map(|(&uuid, seen)| (uuid, spec(seen))).collect();
    let rest: Vec<&String> = scan.closed.iter().chain(&scan.damaged).collect();
    choose_of(&arrays, (scan.looked_at, &rest), places, wanted)
}

/// The same of these arrays. `looked_at` is how many files and devices were looked at, and why others could not be.
pub(crate) fn choose_of(
    arrays: &BTreeMap<Uuid, Spec>,
    (looked_at, rest): (usize, &[&String]),
    places: &[PathBuf],
    wanted: Option<&str>,
) -> Result<Uuid, HostError> {
    let names: Vec<String> = places.iter().map(|place| place.display().to_string()).collect();
    let place = names.join(" and ");
    let is_wanted = |uuid: &Uuid| {
        wanted.is_none_or(|wanted| uuid.to_string().starts_with(&wanted.to_lowercase()))
    };
    let mut fitting = arrays.keys().copied().filter(is_wanted);
    match (fitting.next(), fitting.next(), wanted) {
        (Some(uuid), None, _) => Ok(uuid),
        (None, _, None) => {
            let looked_at = match looked_at {
                1 => "1 file or device".to_owned(),
                looked_at => format!("{looked_at} files and devices"),
            };
            let rest: String = rest.iter().map(|text| format!("; {text}")).collect();
            fail(format!("no drive of an array is among the {looked_at} in {place}{rest}"))
        }
        (None, _, Some(wanted)) => {
            fail(format!("{place} holds no drive of an array whose UUID begins with {wanted}"))
        }
        (Some(_), Some(_), _) => {
            let arrays = arrays.iter().filter(|(uuid, _)| is_wanted(uuid));
            let arrays: Vec<String> =
                arrays.map(|(uuid, spec)| format!("{uuid} ({spec})")).collect();
            let count = arrays.len();
            fail(format!(
                "{place} holds drives of {count} arrays, only --array UUID says which one is meant: {}",
                arrays.join(", ")
            ))
        }
    }
}

/// Files and devices in these folders and under these names, each once, in the order of their names.
pub(crate) fn candidates(places: &[PathBuf]) -> Result<Vec<PathBuf>, HostError> {
    let mut known: BTreeSet<Identity> = BTreeSet::new();
    let mut paths = Vec::new();
    for place in places {
        if !place.is_dir() {
            match identify(place)? {
                None => return fail(format!("{} does not exist", place.display())),
                Some(identity) => {
                    if known.insert(identity) {
                        paths.push(place.clone());
                    }
                }
            }
            continue;
        }
        for path in entries(place)? {
            // What is neither, or leads nowhere, is no drive.
            if let Ok(Some(identity)) = identify(&path)
                && known.insert(identity)
            {
                paths.push(path);
            }
        }
    }
    Ok(paths)
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, HostError> {
    let blame = |error| HostError::new(format!("cannot read {}: {error}", folder.display()));
    let mut entries = Vec::new();
    for entry in fs::read_dir(folder).map_err(blame)? {
        entries.push(entry.map_err(blame)?.path());
    }
    entries.sort();
    Ok(entries)
}
