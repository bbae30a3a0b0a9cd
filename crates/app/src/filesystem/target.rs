//! What a filesystem is on: a file, a block device or an emulated drive, and the superblocks there.

use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use levelhead_block::adapter::Waiting;
use levelhead_block::{BlockDevice, Command, Effort, Outcome, Request};
use levelhead_fs::format::superblock::{NoSuperblock, Superblock};
use levelhead_fs::format::unit::Sector;
use levelhead_fs::geometry::{COPIES_MAX, Geometry};
use levelhead_host::{LoneDrive, MemberSpec};
use levelhead_units::{Extent, Lba, SECTOR_SIZE, Sectors};

use crate::AppError;

/// A target that is there.
pub(super) struct Target {
    pub(super) member: MemberSpec,
    /// Its path, without links.
    pub(super) path: PathBuf,
    pub(super) is_device: bool,
}

impl Target {
    /// Reads a name.
    pub(super) fn parse(text: &str) -> Result<MemberSpec, AppError> {
        text.parse().map_err(AppError::usage)
    }

    /// Looks for it.
    pub(super) fn find(text: &str) -> Result<Self, AppError> {
        let member = Self::parse(text)?;
        let shown = member.path().display().to_string();
        let path = member.path().canonicalize();
        let path =
            path.map_err(|error| AppError::usage(format!("cannot open {shown}: {error}")))?;
        let is_device = is_device(&path);
        Ok(Self { member, path, is_device })
    }
}

/// Whether a block device is there.
pub(super) fn is_device(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| found.file_type().is_block_device())
}

/// The superblock that counts: of the copies that belong together the one with the highest generation.
pub(super) fn find_superblock(drive: &Arc<LoneDrive>, name: &str) -> Result<Superblock, AppError> {
    let mut device = Waiting::new(Arc::clone(drive));
    let size = device.size();
    let first = read(&mut device, Lba::ZERO);
    let elsewhere = match &first {
        Ok(superblock) => superblock.geometry.superblocks()[1..].to_vec(),
        Err(_) => places(size),
    };
    let within = elsewhere.into_iter().filter(|lba| lba.get() < size.get());
    let others: Vec<Superblock> = within.filter_map(|lba| read(&mut device, lba).ok()).collect();
    let newest = |mut found: Vec<Superblock>| {
        found.sort_by_key(|superblock| superblock.generation);
        found.pop()
    };
    let superblock = match first {
        Ok(first) => {
            let fellows = others.into_iter().filter(|other| other.identity == first.identity);
            newest(fellows.chain([first.clone()]).collect())
        }
        Err(NoSuperblock::Unknown { version, features }) => {
            return Err(AppError::usage(format!(
                "{name} has a filesystem of version {version} with the incompatible features {features:#x}, which this \
                 program does not know"
            )));
        }
        Err(NoSuperblock::Absent | NoSuperblock::Damaged) => newest(others),
    };
    let none = || AppError::usage(format!("{name} has no levelhead filesystem"));
    let superblock = superblock.ok_or_else(none)?;
    if superblock.geometry.sectors > size.get() {
        let wanted = Sectors::new(superblock.geometry.sectors).bytes();
        let has = size.bytes();
        return Err(AppError::usage(format!(
            "the filesystem on {name} has {wanted}, but {name} has {has}"
        )));
    }
    Ok(superblock)
}

/// Where superblocks lie on a disk of this size, for each number of copies of metadata.
fn places(size: Sectors) -> Vec<Lba> {
    let geometries = (1..=COPIES_MAX).filter_map(|copies| Geometry::of_disk(size, copies));
    let mut places: Vec<Lba> = geometries.flat_map(|geometry| geometry.superblocks()).collect();
    places.sort_unstable();
    places.dedup();
    places
}

fn read(device: &mut Waiting<LoneDrive>, lba: Lba) -> Result<Superblock, NoSuperblock> {
    let extent = Extent::new(lba, Sectors::new(1));
    if !(Command::Read { extent, effort: Effort::Full }).fits(device.size()) {
        return Err(NoSuperblock::Absent);
    }
    let replies = device.run(vec![Request::read(extent, Effort::Full)]);
    let reply = replies.into_iter().next().expect("one request, one reply");
    if reply.outcome != Outcome::GOOD {
        return Err(NoSuperblock::Damaged);
    }
    let buf = reply.data.into_buf();
    let sector: &Sector = buf.as_slice()[..SECTOR_SIZE].try_into().expect("one sector");
    Superblock::decode(sector)
}
