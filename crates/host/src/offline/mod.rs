//! Arrays that are read without being served: their drives are opened to be read alone, and nothing is written.
//!
//! ```text
//!   superblocks --> which drives: the same decision as for a server
//!   rings       --> what the journal lays over the places
//!   windows     --> each drive's next stretch by a thread of its own, all of the same stripes, compared with its checksums
//!                     --> check:   every codeword against its redundancy
//!                     --> salvage: every sector that can be had, into a file
//! ```

pub(crate) mod check;
mod codewords;
pub(crate) mod findings;
mod places;
mod reading;
mod rings;
pub(crate) mod salvage;
mod stream;
pub(crate) mod sums;
mod window;

use levelhead_array::assembly::{Assembly, Found, Placed, Refusal, assemble};
use levelhead_array::metadata::Metadata;
use levelhead_array::superblock::Own;
use levelhead_array::{Area, Layout};
use levelhead_units::{DriveIdx, DriveSet, Sectors};

use crate::create::check_distinct;
use crate::error::{HostError, fail};
use crate::labels;
use crate::member::MemberSpec;
use crate::opened::Opened;
use crate::refusals::tell;
use crate::scan::{choose, scan};
use crate::select::{LeftOut, select};
use crate::starting::Which;

/// Drives that are open to be read, and what their superblocks say.
struct Looked {
    members: Vec<MemberSpec>,
    opened: Vec<Opened>,
    found: Vec<Found>,
}

impl Looked {
    fn at(which: Which<'_>) -> Result<Self, HostError> {
        let members = match which {
            Which::Named(members) => members.to_vec(),
            Which::Among { folders, array } => {
                let mut scan = scan(folders)?;
                let uuid = choose(&scan, folders, array)?;
                let seen = scan.arrays.remove(&uuid).expect("it was chosen among them");
                seen.into_iter().map(|seen| seen.member).collect()
            }
        };
        check_distinct(&members)?;
        let opened = members.iter().map(open).collect::<Result<Vec<Opened>, HostError>>()?;
        let mut found: Vec<Found> = opened.iter().map(labels::find).collect();
        labels::find_last_copies(&opened, &mut found);
        Ok(Self { members, opened, found })
    }

    /// One of them, as a drive that says this of itself.
    fn drive(&self, found: usize, own: Own) -> OfflineDrive {
        OfflineDrive {
            member: self.members[found].clone(),
            opened: self.opened[found].clone(),
            found: self.found[found].clone(),
            own,
        }
    }
}

fn open(member: &MemberSpec) -> Result<Opened, HostError> {
    let opened = member.open_unchanging()?;
    if opened.size() == Sectors::ZERO {
        return fail(format!("{member} is empty"));
    }
    Ok(opened)
}

/// An array whose drives are open to be read.
pub(crate) struct Offline {
    pub(crate) metadata: Metadata,
    pub(crate) area: Area,
    pub(crate) layout: Layout,
    /// Stripes below this number have redundancy that may be trusted.
    pub(crate) trusted: u64,
    /// Its drives, in order; nothing where one is not there.
    pub(crate) drives: Vec<Option<OfflineDrive>>,
    pub(crate) left_out: Vec<LeftOut>,
    /// Why a server would not go on unless it is forced to.
    pub(crate) doubt: Option<String>,
}

/// One of its drives.
#[derive(Clone)]
pub(crate) struct OfflineDrive {
    pub(crate) member: MemberSpec,
    pub(crate) opened: Opened,
    pub(crate) found: Found,
    pub(crate) own: Own,
}

impl Offline {
    /// The array that a server would serve.
    fn open(which: Which<'_>) -> Result<Self, HostError> {
        let looked = Looked::at(which)?;
        let (assembly, left_out) = match which {
            Which::Named(members) => {
                let tell = |refusal: Refusal| match matches!(refusal, Refusal::TooFew { .. }) {
                    true => HostError::array_failed(tell(&refusal, members)),
                    false => HostError::new(tell(&refusal, members)),
                };
                (assemble(&looked.found).map_err(tell)?, Vec::new())
            }
            Which::Among { .. } => {
                let selection = select(&looked.members, &looked.found);
                let tell =
                    |refused: crate::select::Refused| refused.into_error(|sentence| sentence);
                (selection.outcome.map_err(tell)?, selection.left_out)
            }
        };
        Ok(Self::of(assembly, &looked, left_out))
    }

    fn of(assembly: Assembly, looked: &Looked, left_out: Vec<LeftOut>) -> Self {
        let doubt = assembly.doubt.map(|doubt| crate::refusals::tell_doubt(doubt, &assembly));
        let drive = |place: &Option<Placed>| {
            let place = place.as_ref()?;
            Some(looked.drive(place.found, place.own.clone()))
        };
        let drives = assembly.places.iter().map(drive).collect();
        let Assembly { metadata, area, trusted, .. } = assembly;
        let layout = Layout::new(metadata.spec, metadata.drive_size);
        Self { metadata, area, layout, trusted, drives, left_out, doubt }
    }

    /// The drives that are there, and their places.
    pub(crate) fn there(&self) -> impl Iterator<Item = (DriveIdx, &OfflineDrive)> {
        let drives = self.drives.iter().enumerate();
        drives.filter_map(|(at, drive)| Some((DriveIdx::from_usize(at), drive.as_ref()?)))
    }

    /// Those of them that hold what the array wrote to them. What one that is being filled holds is on others as well, and nothing
    /// is held against it or computed from it.
    pub(crate) fn present(&self) -> DriveSet {
        self.there().map(|(drive, _)| drive).filter(|&drive| !self.is_filling(drive)).collect()
    }

    pub(crate) fn is_filling(&self, drive: DriveIdx) -> bool {
        self.metadata.members[drive.as_usize()].is_filling()
    }
}

#[cfg(test)]
mod tests;
