//! Reading what can be had of an array that is beyond help, into a file. No drive is written to.
//!
//! # Where a sector comes from
//!
//! The first of these that there is:
//!
//! 1. the drive that has it, or a copy of it, as it is in place or in the journal;
//! 2. the rest of its codeword, where redundancy is valid. Where the array was not stopped cleanly and keeps no
//!    journal, what is computed may be wrong: it counts as *doubtful*;
//! 3. a drive that the array went on without, or that was being filled, which may hold something older. Nothing is ever
//!    computed from such a drive: sectors of different times are no codeword;
//! 4. nothing: the sector is *lost*, and zeroes in the file.
//!
//! A sector that does not match its checksum counts as one that its drive does not return. Without a checksum it counts only where
//! sectors that match theirs compute no other. What is computed and does not match its checksum is doubtful.
//!
//! Where no drive has metadata left, every drive is one of those in 3, and what the journal held is not in the file.

use std::fs::File;
use std::io;
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use levelhead_array::assembly::Word;
use levelhead_array::damaged::DamagedList;
use levelhead_array::journal::record::checksums;
use levelhead_array::membership::{Generation, Member, Membership};
use levelhead_array::metadata::{Forced, Metadata, State};
use levelhead_array::offline::Overlay;
use levelhead_array::superblock::{Superblock, Uuid};
use levelhead_array::{Cell, Layout, Row, Spec, Wishes};
use levelhead_erasure::{Kernel, SymbolSet};
use levelhead_units::{DriveIdx, Extent, Lba, SECTOR_SIZE, Sectors};

use super::check::{read_all, total};
use super::codewords::Codewords;
use super::places::Places;
use super::reading::{Proof, Stretch, read_window};
use super::rings::Rings;
use super::sums::SumsChecked;
use super::{Looked, Offline, OfflineDrive, Which};
use crate::error::HostError;
use crate::member::MemberSpec;
use crate::new_file;
use crate::select::{Cause, Defect, LeftOut, Selection, select};

/// Runs of sectors that are named; those beyond are counted as sectors all the same.
const NAMED_MAX: usize = 1_000;

/// Where a sector comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// Its own place, or that of a copy.
    Read,
    /// The journal.
    Journal,
    /// The rest of its codeword.
    Computed,
    /// The same, with redundancy that may not match.
    Doubtful,
    /// A drive that the array went on without.
    Old,
    /// Nowhere.
    Lost,
}

impl Origin {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Read, Self::Journal, Self::Computed, Self::Doubtful, Self::Old, Self::Lost];

    /// Its name, in a word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Journal => "journal",
            Self::Computed => "computed",
            Self::Doubtful => "doubtful",
            Self::Old => "old",
            Self::Lost => "lost",
        }
    }

    /// Whether it is what the array held last.
    fn is_sure(self) -> bool {
        self < Self::Doubtful
    }
}

/// What was to be had of an array.
#[derive(Clone, Debug)]
pub struct Salvaged {
    /// The array's shape.
    pub spec: Spec,
    /// Its identity.
    pub uuid: Uuid,
    /// Its size.
    pub size: Sectors,
    /// Its drives, in order; nothing where one is not there.
    pub drives: Vec<Option<MemberSpec>>,
    /// Drives that may hold something older, which were asked for what nothing else gives.
    pub old: Vec<(DriveIdx, MemberSpec)>,
    /// What no server would take, a sentence each.
    pub left_out: Vec<LeftOut>,
    /// Why the array would not be served, if it would not.
    pub refusal: Option<String>,
    /// Sectors of each origin, in the order of [`Origin::ALL`].
    pub sectors: [u64; 6],
    /// Sectors of the drives with checksums, if the array has them.
    pub sums: Option<SumsChecked>,
    /// Runs of the array's sectors that are doubtful, old or lost, the first of them.
    pub named: Vec<(Origin, Extent)>,
}

/// How it is done.
#[derive(Clone, Copy, Debug)]
pub struct SalvageOptions {
    /// Which code does the arithmetic.
    pub kernel: Kernel,
}

/// Why it was not done.
#[derive(Clone, Debug)]
pub enum SalvageError {
    /// What was asked for cannot be, and nothing was written.
    Refused(HostError),
    /// The file could not be written; what is there of it is not all.
    Unwritten(HostError),
}

/// An array, and drives that may hold what it held earlier.
struct Wreck {
    array: Offline,
    old: Vec<Option<OldDrive>>,
    refusal: Option<String>,
    /// Whether what is computed may be wrong.
    is_doubtful: bool,
}

/// A drive that may hold what the array held earlier.
struct OldDrive {
    drive: OfflineDrive,
    /// It holds nothing of the array in stripes from this number on.
    to: u64,
}

/// Of a drive with which an array stands as `metadata` says: it holds nothing of the array in stripes from this number on.
fn held_to(metadata: &Metadata, drive: DriveIdx) -> u64 {
    let member = &metadata.members[drive.as_usize()];
    match member.membership {
        // A new one has no more than it was given; one that is back has all, and what it lacks is older.
        Membership::Filling { to } if member.lacks.is_none() => to,
        Membership::Filling { .. }
        | Membership::Present
        | Membership::Missing
        | Membership::Lost { .. }
        | Membership::Spare => u64::MAX,
    }
}

/// Whether a drive with this metadata holds what the array wrote to it last, as far as that says: the same that a server asks
/// for.
fn is_current(right: &Metadata, drive: &OfflineDrive, own: &Metadata) -> bool {
    let member = &right.members[drive.own.drive.as_usize()];
    let is_member = drive.found.good().is_some_and(|good| good.member == member.id.uuid);
    let is_of_past = own.run == right.run || own.generation <= right.base;
    is_member && is_of_past && member.is_present() && own.generation >= member.stored
}

/// Reads all that can be had of an array into a new file. `progress` is told how much was read, and how much there is,
/// in bytes.
pub fn salvage(
    which: Which<'_>,
    to: &Path,
    options: SalvageOptions,
    progress: &(dyn Fn(u64, u64) + Sync),
) -> Result<Salvaged, SalvageError> {
    let wreck = Wreck::open(which).map_err(SalvageError::Refused)?;
    let blame =
        |error: io::Error| HostError::new(format!("cannot write {}: {error}", to.display()));
    let array = &wreck.array;
    let file = new_file::create(to, array.layout.size().bytes());
    let file = file.map_err(|error| SalvageError::Refused(blame(error)))?;
    let (all, done) = (total(array).get(), AtomicU64::new(0));
    let note = |sectors: Sectors| {
        let bytes = sectors.bytes().get();
        progress(done.fetch_add(bytes, Ordering::Relaxed) + bytes, all);
    };
    let overlay = Rings::read(array, &note).overlay(array);
    let salvaged = wreck.run(&overlay, &file, options, &note);
    let salvaged = salvaged.and_then(|salvaged| file.sync_all().map(|()| salvaged));
    salvaged.map_err(|error| SalvageError::Unwritten(blame(error)))
}

impl Wreck {
    fn open(which: Which<'_>) -> Result<Self, HostError> {
        let looked = Looked::at(which)?;
        let Selection { kept, left_out, outcome, .. } = select(&looked.members, &looked.found);
        let (mut array, refusal) = match outcome {
            Ok(assembly) => (Offline::of(assembly, &looked, left_out), None),
            Err(refused) => {
                let array = match refused.cause {
                    Cause::TooFew => Self::of_kept(&looked, &kept, left_out),
                    Cause::Contradiction => Self::of_superblocks(&looked, &kept, left_out),
                };
                let array = array.ok_or_else(|| HostError::new(refused.sentence.clone()))?;
                (array, Some(refused.sentence))
            }
        };
        let refusal = refusal.or_else(|| array.doubt.clone());
        let is_sure = array.metadata.state == State::Clean || array.metadata.journal.is_some();
        array.trusted = match array.metadata.state {
            State::Clean => array.metadata.synced,
            State::Dirty => array.metadata.synced_last,
        };
        let mut old: Vec<Option<OldDrive>> = array.drives.iter().map(|_| None).collect();
        let mut left: Vec<OfflineDrive> =
            array.left_out.iter().filter_map(|left| array.is_of_use(&looked, left)).collect();
        // The newest first.
        left.sort_by_key(|drive| std::cmp::Reverse(generation(drive)));
        for drive in left {
            let at = drive.own.drive.as_usize();
            let word = drive.found.word();
            let own = word.as_ref().and_then(|word| word.metadata.as_deref());
            if own.is_some_and(|own| is_current(&array.metadata, &drive, own)) {
                array.drives[at].get_or_insert(drive);
            } else {
                let to = own.map_or(u64::MAX, |own| held_to(own, drive.own.drive));
                old[at].get_or_insert(OldDrive { drive, to });
            }
        }
        if array.drives.iter().all(Option::is_none) {
            // Nobody knows what they missed.
            let of_array = kept.iter().filter_map(|&at| {
                let own = looked.found[at].good()?.own.clone();
                Some(looked.drive(at, own))
            });
            for drive in of_array {
                old[drive.own.drive.as_usize()].get_or_insert(OldDrive { drive, to: u64::MAX });
            }
        }
        for (at, drive) in array.there().filter(|(at, _)| array.is_filling(*at)) {
            let to = held_to(&array.metadata, at);
            let place = &mut old[at.as_usize()];
            // An older one that has everything gives more than a new one that was given little.
            if place.is_none() || to == u64::MAX {
                *place = Some(OldDrive { drive: drive.clone(), to });
            }
        }
        Ok(Self { array, old, refusal, is_doubtful: !is_sure })
    }

    /// What these drives say, though they are too few.
    fn of_kept(looked: &Looked, kept: &[usize], left_out: Vec<LeftOut>) -> Option<Offline> {
        let words = kept.iter().filter_map(|&at| looked.found[at].word());
        let metadata = (*words.max_by_key(Word::generation)?.metadata?).clone();
        let own = |&at: &usize| Some(&looked.found[at].good()?.own);
        // Drives for the journal have none.
        let area = kept
            .iter()
            .filter_map(own)
            .find_map(|own| own.area(&metadata.spec, metadata.drive_size))?;
        let mut drives: Vec<Option<OfflineDrive>> = vec![None; metadata.spec.members()];
        for at in kept {
            let own = own(at)?.clone();
            let place = own.drive.as_usize();
            drives[place] = Some(looked.drive(*at, own));
        }
        let layout = Layout::new(metadata.spec, metadata.drive_size);
        Some(Offline { metadata, area, layout, trusted: 0, drives, left_out, doubt: None })
    }

    /// An array whose drives have nothing but superblocks, all alike: it has no drive that is known to have everything.
    fn of_superblocks(looked: &Looked, kept: &[usize], left_out: Vec<LeftOut>) -> Option<Offline> {
        let words =
            kept.iter().map(|&at| looked.found[at].word()).collect::<Option<Vec<Word>>>()?;
        let Superblock { array, spec, drive_size, .. } = words.first()?.superblock;
        let is_alike = |Word { superblock: of, metadata, .. }: &Word| {
            metadata.is_none() && (of.array, of.spec, of.drive_size) == (array, spec, drive_size)
        };
        let area = words.iter().find_map(|word| word.superblock.own.area(&spec, drive_size));
        let area = area.filter(|_| words.iter().all(is_alike))?;
        let missing = Member::new(Uuid::default(), Membership::Missing);
        let metadata = Metadata {
            generation: Generation::NONE,
            array,
            run: Uuid::default(),
            base: Generation::NONE,
            spec,
            drive_size,
            state: State::Dirty,
            forced: Forced::No,
            synced: 0,
            synced_last: 0,
            journal: None,
            wishes: Wishes::default(),
            members: vec![missing; spec.members()],
            damaged: DamagedList::default(),
        };
        let drives = vec![None; spec.members()];
        let layout = Layout::new(spec, drive_size);
        Some(Offline { metadata, area, layout, trusted: 0, drives, left_out, doubt: None })
    }

    fn run(
        &self,
        overlay: &Overlay,
        file: &File,
        options: SalvageOptions,
        note: &(dyn Fn(Sectors) + Sync),
    ) -> io::Result<Salvaged> {
        let array = &self.array;
        let mut work = Work {
            wreck: self,
            overlay,
            file,
            codewords: Codewords::new(&array.layout, options.kernel),
            sectors: [0; 6],
            sums: SumsChecked::default(),
            named: Vec::new(),
            run: None,
        };
        let mut result = Ok(());
        read_all(array, overlay, note, &mut |places| {
            result = work.take(places);
            if result.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        result?;
        work.end_run();
        let Work { sectors, sums, mut named, .. } = work;
        named.sort_by_key(|(_, extent)| extent.lba);
        let old = self.old.iter().flatten();
        Ok(Salvaged {
            spec: array.metadata.spec,
            uuid: array.metadata.array,
            size: array.layout.size(),
            drives: array.drives.iter().map(|drive| Some(drive.as_ref()?.member.clone())).collect(),
            old: old.map(|old| (old.drive.own.drive, old.drive.member.clone())).collect(),
            left_out: array.left_out.clone(),
            refusal: self.refusal.clone(),
            sectors,
            sums: array.metadata.spec.has_checksums().then_some(sums),
            named,
        })
    }
}

impl Offline {
    /// A drive that was left out and may still give something of this array.
    fn is_of_use(&self, looked: &Looked, left: &LeftOut) -> Option<OfflineDrive> {
        match left.defect {
            Defect::Shrunk | Defect::Stale | Defect::Unreadable => {}
            Defect::Absent
            | Defect::ReadOnly
            | Defect::Stranger
            | Defect::Damaged
            | Defect::Foreign => {
                return None;
            }
        }
        let superblock = looked.found[left.found].good()?;
        let shape = (superblock.array, superblock.spec, superblock.drive_size);
        let Metadata { array, spec, drive_size, .. } = self.metadata;
        let is_alike = shape == (array, spec, drive_size)
            && superblock.own.area(&spec, drive_size).as_ref() == Some(&self.area);
        is_alike.then(|| looked.drive(left.found, superblock.own.clone()))
    }
}

/// The generation of a drive's newest metadata.
fn generation(drive: &OfflineDrive) -> Generation {
    drive.found.word().as_ref().map_or(Generation::NONE, Word::generation)
}

/// A salvage under way.
struct Work<'a> {
    wreck: &'a Wreck,
    overlay: &'a Overlay,
    file: &'a File,
    codewords: Codewords,
    sectors: [u64; 6],
    sums: SumsChecked,
    named: Vec<(Origin, Extent)>,
    /// Sectors of one origin that are worth a name, so far.
    run: Option<(Origin, Extent)>,
}

impl Work<'_> {
    fn take(&mut self, places: &Places<'_>) -> io::Result<()> {
        let layout = &self.wreck.array.layout;
        let (spec, window) = (layout.spec(), places.window);
        self.sums.add(places.sums);
        let e = spec.expansion() as u64;
        let mut old: Vec<Option<Stretch>> = self.wreck.old.iter().map(|_| None).collect();
        let sectors = window.offset..window.offset + window.len;
        let mut bytes = vec![0; window.len as usize * SECTOR_SIZE];
        for stripe in window.stripes(layout) {
            let row = |offset: u64| Row { stripe, row: (offset / e) as u32 };
            let rows = sectors.clone().step_by(e as usize);
            let had: Vec<SymbolSet> = rows.map(|offset| places.had(row(offset))).collect();
            for slot in 0..spec.data() as u64 {
                bytes.fill(0);
                for (at, offset) in sectors.clone().enumerate() {
                    let symbol = (slot * e + offset % e) as usize;
                    let into = &mut bytes[at * SECTOR_SIZE..][..SECTOR_SIZE];
                    let had = had[at / e as usize];
                    let origin = self.sector(places, &mut old, row(offset), had, symbol, into);
                    self.count(origin, layout.sector(row(offset), symbol));
                }
                // What is zero is a hole of the file already.
                if bytes.iter().any(|&byte| byte != 0) {
                    let symbol = (slot * e) as usize;
                    let first = layout.sector(row(window.offset), symbol);
                    self.file.write_all_at(&bytes, first.get() * SECTOR_SIZE as u64)?;
                }
            }
        }
        Ok(())
    }

    /// Finds one sector, and where it comes from.
    fn sector(
        &mut self,
        places: &Places<'_>,
        old: &mut [Option<Stretch>],
        row: Row,
        had: SymbolSet,
        symbol: usize,
        into: &mut [u8],
    ) -> Origin {
        let array = &self.wreck.array;
        let cell = array.layout.cell(row, symbol);
        // Nothing is made up for it. Of a mirror another copy may be there.
        let is_damaged = array.metadata.damaged.covers(cell) && !array.layout.spec().is_mirror();
        if is_damaged && !self.overlay.is_made_right(cell) {
            return Origin::Lost;
        }
        let (spec, proof) = (array.layout.spec(), places.proof(row, symbol));
        if had.contains(symbol) {
            into.copy_from_slice(places.bytes(row, symbol));
            let (own, proven) = (SymbolSet::EMPTY.with(symbol), places.proven(row).and(had));
            let is_wrong = proof == Some(Proof::Unknown)
                && !self.codewords.differing(places, row, own, proven).is_empty();
            if !is_wrong {
                return if places.is_laid_over(cell) { Origin::Journal } else { Origin::Read };
            }
            into.copy_from_slice(self.codewords.compute(places, row, proven, symbol));
            return if spec.is_mirror() { Origin::Read } else { Origin::Computed };
        }
        let is_valid = spec.is_mirror() || row.stripe < array.trusted;
        if is_valid && self.codewords.may_compute(had) {
            let from = self.codewords.best(places, row, had);
            into.copy_from_slice(self.codewords.compute(places, row, from, symbol));
            let is_right = match proof {
                Some(Proof::Corrupt(sum) | Proof::Unread(sum)) => {
                    checksums(std::iter::once(&*into)) == [sum]
                }
                Some(Proof::Exempt | Proof::Unknown | Proof::Match) | None => true,
            };
            let is_doubtful = self.wreck.is_doubtful || self.overlay.is_announced(row);
            return match (spec.is_mirror(), is_doubtful) {
                _ if !is_right => Origin::Doubtful,
                (true, _) => Origin::Read,
                (false, true) => Origin::Doubtful,
                (false, false) => Origin::Computed,
            };
        }
        let corrupt = places.corrupt(row);
        if corrupt.contains(symbol) && self.codewords.is_right(places, row, had.or(corrupt)) {
            into.copy_from_slice(places.bytes(row, symbol));
            return Origin::Doubtful;
        }
        // Of a mirror every old copy will do.
        let symbols = if spec.is_mirror() { 0..spec.width() } else { symbol..symbol + 1 };
        for symbol in symbols {
            let cell = array.layout.cell(row, symbol);
            if self.take_old(places, old, cell, into) {
                return Origin::Old;
            }
        }
        Origin::Lost
    }

    fn take_old(
        &self,
        places: &Places<'_>,
        old: &mut [Option<Stretch>],
        cell: Cell,
        into: &mut [u8],
    ) -> bool {
        let at = cell.drive.as_usize();
        let (Row { stripe, .. }, _) = self.wreck.array.layout.symbol(cell);
        let has_it = |old: &&OldDrive| stripe < old.to;
        let Some(OldDrive { drive, .. }) = self.wreck.old[at].as_ref().filter(has_it) else {
            return false;
        };
        let stretch = old[at].get_or_insert_with(|| {
            let buf = levelhead_block::Buf::zeroed(places.window.sectors());
            read_window(&drive.opened, &self.wreck.array.area, &places.window, buf)
        });
        let index = places.window.index(cell);
        if stretch.bad.contains(&index) {
            return false;
        }
        into.copy_from_slice(stretch.buf.part(index, 1));
        true
    }

    fn count(&mut self, origin: Origin, lba: Lba) {
        self.sectors[origin as usize] += 1;
        match &mut self.run {
            Some((of, run)) if *of == origin && run.end() == lba => {
                run.sectors += Sectors::new(1);
            }
            Some(_) | None => {
                self.end_run();
                let run = (origin, Extent::new(lba, Sectors::new(1)));
                self.run = (!origin.is_sure()).then_some(run);
            }
        }
    }

    fn end_run(&mut self) {
        if let Some(run) = self.run.take()
            && self.named.len() < NAMED_MAX
        {
            self.named.push(run);
        }
    }
}
