//! Writing copies of superblocks again that were overwritten, on members that are not served.
//!
//! ```text
//!   a good copy is left  --> the others are written from it
//!   none is left         --> the member's metadata says who it is, the other members how its array is divided
//! ```
//!
//! # Invariants
//!
//! - R1. Nothing is written before every member was checked.
//! - R2. A sector is written only where a member's superblock belongs and none of a newer program lies.

use std::convert::Infallible;

use levelhead_array::Spec;
use levelhead_array::assembly::{Copy, Found};
use levelhead_array::metadata::{Inscription, Metadata};
use levelhead_array::superblock::{Superblock, Uuid};
use levelhead_block::Buf;
use levelhead_units::{DriveIdx, Extent, Lba, Sectors};

use crate::create::{check_distinct, unwritable};
use crate::error::{HostError, fail};
use crate::labels;
use crate::member::MemberSpec;
use crate::opened::Opened;

/// Members with their superblocks.
#[derive(Clone, Debug)]
pub struct Repaired {
    /// The array.
    pub uuid: Uuid,
    /// Its shape.
    pub spec: Spec,
    /// The members, in the order in which they were named.
    pub members: Vec<RepairedMember>,
}

/// A member with its superblock.
#[derive(Clone, Debug)]
pub struct RepairedMember {
    /// As it was named.
    pub member: MemberSpec,
    /// Its place.
    pub drive: DriveIdx,
    /// How many copies were written again.
    pub written: usize,
}

/// A member that is open, and what is on it.
struct Looked<'a> {
    member: &'a MemberSpec,
    opened: Opened,
    found: Found,
}

/// Writes every copy of the superblocks of these members that is not as it was written. They are members of one array, in any
/// order, at least one of them with a good copy; others of the array may be missing.
///
/// # Errors
///
/// A member is in use or cannot be read; it is of another array, or nothing on it says which member it is; a newer program has
/// written it. Nothing was written then. Or a copy could not be written.
pub fn repair_superblocks(members: &[MemberSpec]) -> Result<Repaired, HostError> {
    check_distinct(members)?;
    let looked = members.iter().map(Looked::at).collect::<Result<Vec<_>, HostError>>()?;
    let known: Vec<&Superblock> = looked.iter().filter_map(|it| it.found.good()).collect();
    let Some(&model) = known.first() else {
        return fail("none of these drives has a superblock of an array");
    };
    let meant = looked.iter().map(|it| it.superblock(model, &known, &looked));
    let meant = meant.collect::<Result<Vec<Superblock>, HostError>>()?;
    for (at, superblock) in meant.iter().enumerate() {
        let drive = superblock.own.drive;
        if let Some(other) = meant[..at].iter().position(|other| other.own.drive == drive) {
            let (first, second) = (&members[other], &members[at]);
            return fail(format!("{first} and {second} both say that they are drive {drive}"));
        }
    }
    let written = looked.iter().zip(&meant).map(|(it, superblock)| {
        let written = it.write(superblock)?;
        let (member, drive) = (it.member.clone(), superblock.own.drive);
        Ok(RepairedMember { member, drive, written })
    });
    let members = written.collect::<Result<_, HostError>>()?;
    Ok(Repaired { uuid: model.array, spec: model.spec, members })
}

impl<'a> Looked<'a> {
    fn at(member: &'a MemberSpec) -> Result<Self, HostError> {
        let opened = member.open()?;
        if opened.size() == Sectors::ZERO {
            return fail(format!("{member} is empty"));
        }
        let found = labels::find(&opened);
        for copy in &found.copies {
            match copy {
                Copy::Read(read) => match &**read {
                    Err(error) if error.is_foreign() => {
                        return fail(format!("{member} cannot be used: {error}"));
                    }
                    Ok(_) | Err(_) => {}
                },
                Copy::Unreadable => {}
            }
        }
        Ok(Self { member, opened, found })
    }

    /// The superblock that it is to have.
    fn superblock(
        &self,
        model: &Superblock,
        known: &[&Superblock],
        all: &[Looked<'_>],
    ) -> Result<Superblock, HostError> {
        let member = self.member;
        let superblock = match self.found.good() {
            Some(good) => good.clone(),
            None => self.as_metadata_says(model, known, all)?,
        };
        if self.found.copies.iter().filter_map(Copy::good).any(|copy| *copy != superblock) {
            return fail(format!("{member} has superblocks that do not belong together"));
        }
        if superblock.array != model.array {
            let (own, other) = (superblock.array, model.array);
            return fail(format!("{member} is a drive of the array {own}, the others of {other}"));
        }
        if self.opened.size() < superblock.own.size {
            let (has, had) = (self.opened.size().bytes(), superblock.own.size.bytes());
            return fail(format!("{member} has shrunk to {has}, it had {had}"));
        }
        Ok(superblock)
    }

    /// The same of one without a good copy.
    fn as_metadata_says(
        &self,
        model: &Superblock,
        known: &[&Superblock],
        all: &[Looked<'_>],
    ) -> Result<Superblock, HostError> {
        let member = self.member;
        let Some(Inscription { metadata: own, holder }) = self.inscription(model) else {
            return fail(format!(
                "{member} has no superblock, and no metadata of the array {} that says which drive it is",
                model.array
            ));
        };
        // The newest of all says who sits where.
        let others = all.iter().filter_map(|it| it.found.word()?.metadata);
        let newest = others.chain([own]).max_by_key(|metadata| metadata.generation);
        let Metadata { members, spec, drive_size, .. } = &*newest.expect("there is its own");
        let Some(at) = members.iter().position(|of| of.id.uuid == holder.uuid) else {
            return fail(format!("{member} holds old data: another drive has come into its place"));
        };
        let drive = DriveIdx::from_usize(at);
        let has_data = |drive: DriveIdx| spec.data_drives().contains(drive);
        let like = known.iter().find(|of| has_data(of.own.drive) == has_data(drive));
        let drive_size = if has_data(drive) { *drive_size } else { Sectors::ZERO };
        let size = self.opened.size();
        let own = like.and_then(|like| like.own.on_another(drive, size, spec, drive_size));
        let Some(own) = own else {
            return fail(format!(
                "{member} is drive {drive} of the array, and its superblock cannot be made from those of the others"
            ));
        };
        Ok(Superblock { member: holder.uuid, own, ..model.clone() })
    }

    /// The newest metadata of this array in the slots of a member.
    fn inscription(&self, model: &Superblock) -> Option<Inscription> {
        let slots = model.own.slots().into_iter().filter_map(|slot| {
            let read = |extent: Extent| -> Result<Vec<u8>, Infallible> {
                let at = Extent::new(slot.lba + (extent.lba - Lba::ZERO), extent.sectors);
                Ok(labels::read_sectors(&self.opened, at).unwrap_or_default())
            };
            let Ok(decoded) = Inscription::decode(read);
            decoded.ok().filter(|inscription| inscription.metadata.array == model.array)
        });
        slots.max_by_key(|inscription| inscription.metadata.generation)
    }

    /// Writes those copies that are not there, each once the one before is safe; returns how many.
    fn write(&self, superblock: &Superblock) -> Result<usize, HostError> {
        let sector = Buf::copy_of(&superblock.encode());
        let places = superblock.own.copies().into_iter().zip(&self.found.copies);
        let bad = places.filter(|(_, copy)| copy.good().is_none());
        let mut written = 0;
        for (lba, _) in bad {
            let write = self.opened.write(lba, sector.as_slice()).and_then(|()| self.opened.sync());
            write.map_err(|error| unwritable(self.member, &error))?;
            written += 1;
        }
        Ok(written)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use levelhead_units::SECTOR_SIZE;
    use tempfile::TempDir;

    use super::*;
    use crate::create::{CreateOptions, create};

    fn shelf(spec: &str) -> (TempDir, Vec<MemberSpec>) {
        let dir = TempDir::new().unwrap();
        let spec: Spec = spec.parse().unwrap();
        let members: Vec<MemberSpec> = (0..spec.members())
            .map(|at| {
                let path = dir.path().join(format!("{at}.img"));
                fs::File::create(&path).unwrap().set_len(8 << 20).unwrap();
                MemberSpec::at(&path)
            })
            .collect();
        create(spec, &members[..].into(), CreateOptions::default()).unwrap();
        (dir, members)
    }

    fn erase(path: &Path, extents: &[(u64, u64)]) {
        let mut bytes = fs::read(path).unwrap();
        let sectors = (bytes.len() / SECTOR_SIZE) as u64;
        for &(first, count) in extents {
            let first = if first == u64::MAX { sectors - count } else { first } as usize;
            bytes[first * SECTOR_SIZE..][..count as usize * SECTOR_SIZE].fill(0);
        }
        fs::write(path, bytes).unwrap();
    }

    fn all(members: &[MemberSpec]) -> Vec<Vec<u8>> {
        members.iter().map(|member| fs::read(member.path()).unwrap()).collect()
    }

    const BOTH_ENDS: [(u64, u64); 2] = [(0, 1), (u64::MAX, 1)];
    const ALL_COPIES: [(u64, u64); 3] = [(0, 1), (255, 1), (u64::MAX, 1)];

    #[test]
    fn copies_are_written_from_one_that_is_left() {
        let (_dir, members) = shelf("raid6:2+2");
        let before = all(&members);
        members.iter().for_each(|member| erase(member.path(), &BOTH_ENDS));
        let found = labels::find(&members[0].open().unwrap());
        let are_good = found.copies.each_ref().map(|copy| copy.good().is_some());
        assert_eq!(are_good, [false, true, false]);
        let repaired = repair_superblocks(&members).unwrap();
        let written: Vec<usize> = repaired.members.iter().map(|of| of.written).collect();
        assert_eq!(written, [2; 4]);
        assert!(all(&members) == before);
        let again = repair_superblocks(&members).unwrap();
        assert!(again.members.iter().all(|of| of.written == 0));
    }

    #[test]
    fn member_without_any_copy_is_known_by_its_metadata() {
        for spec in ["raid6:2+2", "eraid:2+1,e=2,chunk=8KiB", "raid10:4"] {
            let (_dir, members) = shelf(spec);
            let before = all(&members);
            for at in 0..members.len() {
                erase(members[at].path(), &ALL_COPIES);
                let repaired = repair_superblocks(&members).unwrap();
                assert_eq!(repaired.members[at].written, 3, "{spec}, {at}");
                assert_eq!(repaired.members[at].drive, DriveIdx::from_usize(at), "{spec}");
                assert!(all(&members) == before, "{spec}, {at}");
            }
        }
    }

    #[test]
    fn nothing_is_written_where_it_is_not_known_what_belongs_there() {
        let ((_dir, members), (_other, others)) = (shelf("raid6:2+2"), shelf("raid6:2+2"));
        let refused = |members: &[MemberSpec], sentence: &str| {
            let before = all(members);
            let error = repair_superblocks(members).unwrap_err().to_string();
            assert!(error.contains(sentence), "{error}");
            assert!(all(members) == before, "{sentence}");
        };
        let mixed = [members[0].clone(), others[1].clone()];
        refused(&mixed, "is a drive of the array");
        erase(members[0].path(), &BOTH_ENDS);
        erase(members[1].path(), &[(0, 256), (u64::MAX, 1)]);
        refused(&members, "no metadata of the array");
        erase(others[0].path(), &ALL_COPIES);
        refused(&others[..1], "none of these drives has a superblock");
        let copy = others[1].path().with_extension("copy");
        fs::copy(others[1].path(), &copy).unwrap();
        refused(&[others[1].clone(), MemberSpec::at(&copy)], "both say that they are drive 1");
    }
}
