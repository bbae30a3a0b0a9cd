//! A new filesystem: what is written where before the first mount.

use levelhead_units::{Extent, Lba, Sectors};

use crate::attempt::{Attempt, Ground, RoomLeft, Stop};
use crate::cache::Cache;
use crate::format::inode::{Inode, InodePlace, Moment, mode};
use crate::format::ladder::Ladder;
use crate::format::superblock::{
    FORCED_DATA_MIN, FORCED_RUNGS_MAX, INTERLEAVE_MAX, LABEL_MAX, Superblock, ZERO_FORCING,
};
use crate::format::unit::{Head, Kind, Sector};
use crate::geometry::Geometry;
use crate::recent::Recent;
use crate::space::{Wanted, summary_leads};
use crate::tree::Owned;

/// What a new filesystem is to be like.
#[derive(Clone, Debug)]
pub struct Wishes {
    /// Sectors of the disk.
    pub size: Sectors,
    /// Copies of each sector of metadata, from 1 to 4.
    pub copies: u8,
    /// How many redundant sectors groups have.
    pub ladder: Ladder,
    /// Groups that are woven.
    pub interleave: u8,
    /// How many redundant sectors groups of kind B have, on a drive that makes use of zeroes at the end of a sector. Without it there are
    /// no such files.
    pub forced: Option<Ladder>,
    /// Random bytes.
    pub identity: [u8; 16],
    /// A name for people, at most 48 bytes.
    pub label: String,
    /// The owner of the root directory.
    pub uid: u32,
    /// Its group.
    pub gid: u32,
    /// The time of day.
    pub now: Moment,
}

/// Why it cannot be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CannotMake {
    /// The disk is smaller than [`Geometry::SECTORS_MIN`].
    TooSmall,
    /// The number of copies is not from 1 to 4.
    Copies,
    /// The depth is not from 1 to 64.
    Interleave,
    /// The label is longer than 48 bytes, or has a zero byte.
    Label,
    /// Groups of kind B have no redundant sector, or more than 8, or fewer than 2 data sectors.
    Forced,
}

/// Some sectors that are to be written.
#[derive(Debug)]
pub struct Written {
    /// Where.
    pub lba: Lba,
    /// Their bytes.
    pub bytes: Box<Sector>,
}

/// What is to be written, and flushed before `last`; after `last` and a flush the filesystem is there.
#[derive(Debug)]
pub struct NewFilesystem {
    /// What it is like.
    pub superblock: Superblock,
    /// In ascending order of the places.
    pub first: Vec<Written>,
    /// The superblocks.
    pub last: Vec<Written>,
}

/// Lays out a new filesystem.
pub fn make(wishes: &Wishes) -> Result<NewFilesystem, CannotMake> {
    if !(1..=crate::geometry::COPIES_MAX).contains(&wishes.copies) {
        return Err(CannotMake::Copies);
    }
    if !(1..=INTERLEAVE_MAX).contains(&wishes.interleave) {
        return Err(CannotMake::Interleave);
    }
    if wishes.label.len() > LABEL_MAX || wishes.label.contains('\0') {
        return Err(CannotMake::Label);
    }
    let is_sane = |ladder: &Ladder| {
        (1..=FORCED_RUNGS_MAX).contains(&ladder.redundant_max().into())
            && ladder.data_max() >= FORCED_DATA_MIN
    };
    if !wishes.forced.as_ref().is_none_or(is_sane) {
        return Err(CannotMake::Forced);
    }
    let geometry = Geometry::of_disk(wishes.size, wishes.copies).ok_or(CannotMake::TooSmall)?;
    // The fellow of the first group has the journal: the far copies lie behind it.
    let summary = Lba::new(geometry.fixed_end()) + geometry.journal().sectors;
    let mut superblock = Superblock {
        identity: wishes.identity,
        generation: 1,
        is_clean: true,
        read_only: 0,
        incompatible: if wishes.forced.is_some() { ZERO_FORCING } else { 0 },
        geometry,
        interleave: wishes.interleave,
        ladder: wishes.ladder.clone(),
        forced: wishes.forced.clone(),
        summary,
        root: 0,
        orphans: 0,
        damaged: 0,
        spare: 0,
        units: 0,
        created: wishes.now.seconds,
        record: 1,
        label: wishes.label.clone(),
    };
    let (mut cache, recent, lost) = (Cache::new(0), Recent::default(), Default::default());
    let ground = Ground {
        superblock: &superblock.clone(),
        recent: &recent,
        room: RoomLeft::default(),
        cache: &mut cache,
        lost: &lost,
    };
    let mut attempt = Attempt::new(ground);
    let inodes = lay_out(&mut attempt, wishes).expect("an empty disk has room for its first units");
    let number = |slot| InodePlace { lead: inodes, slot }.number();
    (superblock.root, superblock.orphans) = (number(0), number(1));
    (superblock.damaged, superblock.spare, superblock.units) = (number(2), number(3), number(4));
    let filesystem = superblock.filesystem();
    let mut first = Vec::new();
    for (lead, unit) in attempt.finish().units {
        let mut bytes = Box::new(*unit.bytes);
        let (kind, owner) = (unit.kind, unit.owner);
        Head { kind, filesystem, lba: lead, generation: 0, owner }.seal(&mut bytes);
        for lba in geometry.copies_of(lead) {
            first.push(Written { lba, bytes: bytes.clone() });
        }
    }
    first.sort_by_key(|written| written.lba);
    let bytes = superblock.encode();
    let written = |lba| Written { lba, bytes: bytes.clone() };
    let last = geometry.superblocks().map(written).into();
    Ok(NewFilesystem { superblock, first, last })
}

/// The first units: the summary, and five inodes. Returns the lead of the latter.
fn lay_out(attempt: &mut Attempt<'_>, wishes: &Wishes) -> Result<Lba, Stop> {
    let geometry = attempt.superblock.geometry;
    let leads: Vec<Lba> = summary_leads(&geometry, attempt.superblock.summary).collect();
    for &lead in &leads {
        attempt.create(lead, Kind::Summary, 0);
    }
    for &lead in &leads {
        let near = Extent::new(lead, Sectors::new(geometry.near()));
        attempt.take_here(near)?;
        if geometry.has_far() {
            let far = *geometry.copies_of(lead).last().expect("a unit has copies");
            attempt.take_here(Extent::new(far, Sectors::new(1)))?;
        }
    }
    let inodes = attempt.take_unit(attempt.superblock.summary, Kind::Inodes, |_| 0)?;
    let mut root = Inode::new(mode::DIRECTORY | 0o755, wishes.now);
    (root.links, root.uid, root.gid) = (2, wishes.uid, wishes.gid);
    root.parent = InodePlace { lead: inodes, slot: 0 }.number();
    let mut own = Inode::new(mode::FILE, wishes.now);
    own.links = 1;
    // Three of eight are free.
    let (mut spare, mut units) = (own.clone(), own.clone());
    units.size = 1;
    for (slot, inode) in [(3, &mut spare), (4, &mut units)] {
        let number = InodePlace { lead: inodes, slot }.number();
        attempt.tree_insert(&mut Owned { number, inode }, inodes.get(), Vec::new())?;
    }
    for (slot, inode) in [root, own.clone(), own, spare, units].iter().enumerate() {
        attempt.put_inode(InodePlace { lead: inodes, slot }, inode)?;
    }
    // The first file has its sums and bitmaps ready.
    let run = attempt.take_run(inodes, Wanted { most: 1, least: 1 })?;
    attempt.free_run(run)?;
    Ok(inodes)
}
