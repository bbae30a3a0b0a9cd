//! What a filesystem is on: a file, a block device or an emulated drive, and the superblocks there.

use std::fs::File;
use std::io::{Seek, SeekFrom};
use std::os::unix::fs::{FileExt, FileTypeExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use levelhead_block::adapter::Waiting;
use levelhead_block::{BlockDevice, Command, Effort, Outcome, Request};
use levelhead_fs::format::superblock::{NoSuperblock, Superblock};
use levelhead_fs::format::unit::Sector;
use levelhead_fs::geometry::{COPIES_MAX, Geometry};
use levelhead_host::{LoneDrive, MemberSpec};
use levelhead_units::{Bytes, Extent, Lba, SECTOR_SIZE, Sectors};

use levelhead_app::AppError;

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

/// The superblock that counts of what is not in use, read without a lock; nothing if none can be read.
pub(super) fn superblock_of(disk: &mut File) -> Option<Superblock> {
    let size = Bytes::new(disk.seek(SeekFrom::End(0)).ok()?).sectors_floor();
    let read = |lba: Lba| {
        let mut sector: Sector = [0; SECTOR_SIZE];
        let read = disk.read_exact_at(&mut sector, lba.get() * SECTOR_SIZE as u64);
        read.map_err(|_| NoSuperblock::Damaged)?;
        Superblock::decode(&sector)
    };
    newest(size, read).ok()
}

/// The superblock that counts: of the copies that belong together the one with the highest generation.
pub(super) fn find_superblock(drive: &Arc<LoneDrive>, name: &str) -> Result<Superblock, AppError> {
    let mut device = Waiting::new(Arc::clone(drive));
    let size = device.size();
    let superblock = newest(size, |lba| read(&mut device, lba)).map_err(|why| {
        AppError::usage(match why {
            NoSuperblock::Unknown { version, features } => format!(
                "{name} has a filesystem of version {version} with the incompatible features {features:#x}, which this \
                 program does not know"
            ),
            NoSuperblock::Absent | NoSuperblock::Damaged => {
                format!("{name} has no levelhead filesystem")
            }
        })
    })?;
    if superblock.geometry.sectors > size.get() {
        let wanted = Sectors::new(superblock.geometry.sectors).bytes();
        let has = size.bytes();
        return Err(AppError::usage(format!(
            "the filesystem on {name} has {wanted}, but {name} has {has}"
        )));
    }
    Ok(superblock)
}

/// The superblock with the highest generation, of those that the first one belongs to if that can be read.
fn newest(
    size: Sectors,
    mut read: impl FnMut(Lba) -> Result<Superblock, NoSuperblock>,
) -> Result<Superblock, NoSuperblock> {
    let first = read(Lba::ZERO);
    let elsewhere = match &first {
        Ok(superblock) => superblock.geometry.superblocks()[1..].to_vec(),
        Err(_) => places(size),
    };
    let within = elsewhere.into_iter().filter(|lba| lba.get() < size.get());
    let mut found: Vec<Superblock> = within.filter_map(|lba| read(lba).ok()).collect();
    let none = match first {
        Ok(first) => {
            found.retain(|other| other.identity == first.identity);
            found.push(first);
            NoSuperblock::Absent
        }
        Err(unknown @ NoSuperblock::Unknown { .. }) => return Err(unknown),
        Err(none @ (NoSuperblock::Absent | NoSuperblock::Damaged)) => none,
    };
    found.into_iter().max_by_key(|superblock| superblock.generation).ok_or(none)
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
