//! `levelhead fs damage`: wrong bytes on a disk whose filesystem is not mounted, to see what becomes of them.

use std::collections::BTreeSet;
use std::sync::Arc;

use levelhead_block::adapter::Waiting;
use levelhead_block::{BlockDevice, Buf, Command, Durability, Effort, Request};
use levelhead_erasure::Kernel;
use levelhead_fs::check::{Survey, Surveyed, survey};
use levelhead_fs::{Answer, Named, What};
use levelhead_host::LoneDrive;
use levelhead_report::json;
use levelhead_stats::{Rng, Streams};
use levelhead_units::{Extent, Lba, SECTOR_SIZE, Sectors};
use serde::Serialize;

use super::alone::Alone;
use super::check::refused;
use super::points;
use super::target::Target;
use levelhead_app::{AppError, Progress, Show};

/// Sectors that are damaged with one batch: 1 MiB.
const BATCH: usize = 256;

/// What to damage.
#[derive(Clone, Debug)]
pub struct DamageFilesystem {
    /// A file, a block device or an emulated drive.
    pub target: String,
    /// Says which sectors, and which bytes.
    pub seed: u64,
    /// Sectors of each group.
    pub per_group: Option<PerGroup>,
    /// Copies of each sector of metadata and of the superblock.
    pub metadata: Option<u8>,
    /// Sectors of one group of a file.
    pub group: Option<DamageGroup>,
    /// Consecutive sectors.
    pub run: Option<Extent>,
}

/// How many sectors of each group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PerGroup {
    /// As many.
    Sectors(u64),
    /// As many as the group repairs; of a mutable one a copy of each sector that is there twice.
    Max,
}

/// Sectors of one group.
#[derive(Clone, Debug)]
pub struct DamageGroup {
    /// The file's path in the filesystem.
    pub path: String,
    /// Which group of the file, from 0.
    pub group: usize,
    /// How many sectors.
    pub sectors: u64,
}

/// What was damaged.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct DamagedFilesystem {
    seed: u64,
    sectors_damaged: u64,
}

/// Damages a filesystem.
///
/// # Errors
///
/// There is none, it is mounted, in use or not in order, or what is to be damaged is not there.
pub fn damage_filesystem(
    ask: &DamageFilesystem,
    progress: &dyn Progress,
) -> Result<DamagedFilesystem, AppError> {
    let Target { member, .. } = Target::find(&ask.target)?;
    let name = member.to_string();
    points::check_unmounted(&member)?;
    let inode = match &ask.group {
        Some(group) => Some(find_inode(&ask.target, &group.path)?),
        None => None,
    };
    let drive = Arc::new(LoneDrive::open(&member).map_err(AppError::usage)?);
    let mut device = Waiting::new(Arc::clone(&drive));
    let survey = survey(&mut device, Kernel::best()).map_err(|why| refused(&name, why))?;
    if !survey.superblock.is_clean {
        return Err(AppError::usage(format!(
            "{name} was not stopped cleanly: what its journal has would undo the damage; mount and unmount it first"
        )));
    }
    let mut rng = Streams::new(ask.seed).stream("damage");
    let places = choose(ask, &survey, inode, &mut rng)?;
    let task = progress.begin("sectors damaged", places.len() as u64);
    let places: Vec<Lba> = places.into_iter().collect();
    let mut done = 0;
    for some in places.chunks(BATCH) {
        spoil(&mut device, some, &mut rng)
            .map_err(|reason| AppError::trouble(format!("cannot damage {name}: {reason}")))?;
        done += some.len() as u64;
        task.reach(done);
    }
    drive.wind_up();
    Ok(DamagedFilesystem { seed: ask.seed, sectors_damaged: done })
}

/// The number of a file by its path.
fn find_inode(target: &str, path: &str) -> Result<u64, AppError> {
    let mut alone = Alone::open(target, Box::new(drop))?;
    let mut at = Some(alone.root());
    for part in path.split('/').filter(|part| !part.is_empty()) {
        let Some(parent) = at else { break };
        let named = Named { parent, name: part.as_bytes().to_vec() };
        at = match alone.run(What::Lookup(named))? {
            Answer::Entry(found) => Some(found.inode),
            _ => None,
        };
    }
    alone.close()?;
    at.ok_or_else(|| AppError::usage(format!("{target} has no file {path}")))
}

fn choose(
    ask: &DamageFilesystem,
    survey: &Survey,
    inode: Option<u64>,
    rng: &mut Rng,
) -> Result<BTreeSet<Lba>, AppError> {
    let geometry = survey.superblock.geometry;
    let mut places: BTreeSet<Lba> = BTreeSet::new();
    if let Some(per_group) = ask.per_group {
        for surveyed in &survey.extents {
            if per_group == PerGroup::Max && surveyed.extent.has_twins() {
                let pairs = surveyed.extent.twins();
                places.extend(pairs.flat_map(|pair| pick(pair.to_vec(), 1, rng)));
                continue;
            }
            for group in surveyed.groups() {
                let count = match per_group {
                    PerGroup::Sectors(count) => count,
                    PerGroup::Max => surveyed.extent.redundant.into(),
                };
                places.extend(pick(group, count, rng));
            }
        }
    }
    if let Some(copies) = ask.metadata {
        if copies > geometry.copies {
            return Err(AppError::usage(format!(
                "{} has {} copies of metadata, got --metadata {copies}",
                ask.target, geometry.copies
            )));
        }
        for &lead in &survey.units {
            places.extend(pick(geometry.copies_of(lead), copies.into(), rng));
        }
        places.extend(pick(geometry.superblocks().to_vec(), copies.into(), rng));
    }
    if let (Some(DamageGroup { path, group, sectors }), Some(inode)) = (&ask.group, inode) {
        let of_file = survey.extents.iter().filter(|surveyed| surveyed.inode == inode);
        let mut groups = of_file.flat_map(Surveyed::groups);
        let Some(places_of) = groups.nth(*group) else {
            return Err(AppError::usage(format!("{path} has no group {group}")));
        };
        if *sectors > places_of.len() as u64 {
            return Err(AppError::usage(format!(
                "group {group} of {path} has {} sectors, got --sectors {sectors}",
                places_of.len()
            )));
        }
        places.extend(pick(places_of, *sectors, rng));
    }
    if let Some(run) = ask.run {
        if run.end().get() > geometry.sectors {
            return Err(AppError::usage(format!(
                "{} has {} sectors, got --run {},{}",
                ask.target,
                geometry.sectors,
                run.lba.get(),
                run.sectors.get()
            )));
        }
        places.extend(run.iter());
    }
    Ok(places)
}

/// Some of these, each with the same chance.
fn pick(mut from: Vec<Lba>, count: u64, rng: &mut Rng) -> Vec<Lba> {
    let mut picked = Vec::new();
    while (picked.len() as u64) < count && !from.is_empty() {
        let at = rng.below(from.len() as u64) as usize;
        picked.push(from.swap_remove(at));
    }
    picked
}

/// These sectors get bytes that they did not have.
fn spoil(device: &mut dyn BlockDevice, places: &[Lba], rng: &mut Rng) -> Result<(), String> {
    let one = |lba: Lba| Extent::new(lba, Sectors::new(1));
    let reads = places.iter().map(|&lba| Request::read(one(lba), Effort::Full)).collect();
    let mut writes = Vec::new();
    for (&lba, reply) in places.iter().zip(device.run(reads)) {
        let mut bytes = vec![0; SECTOR_SIZE];
        rng.fill(&mut bytes);
        if reply.outcome.is_good() && reply.data.into_buf().as_slice() == bytes {
            bytes[0] ^= 1;
        }
        writes.push(Request::write(one(lba), Durability::Cached, Buf::copy_of(&bytes)));
    }
    let flush =
        device.run(writes).into_iter().chain(device.run(vec![Request::bare(Command::Flush)]));
    match flush.into_iter().find(|reply| !reply.outcome.is_good()) {
        None => Ok(()),
        Some(reply) => Err(reply.reason.unwrap_or_else(|| format!("{:?}", reply.outcome))),
    }
}

impl Show for DamagedFilesystem {
    fn text(&self) -> String {
        format!("sectors damaged: {}\nseed: {}\n", self.sectors_damaged, self.seed)
    }

    fn json(&self) -> String {
        json::pretty(self).expect("plain values")
    }
}
