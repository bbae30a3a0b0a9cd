//! Sectors of files: each has its checksum, and what is redundant belongs to the data.

use std::collections::BTreeMap;

use levelhead_erasure::{Code, Symbol};
use levelhead_units::{Extent, Lba, SECTOR_SIZE, Sectors};

use super::disk::Got;
use super::{Checker, Depth, Problem, Repair, WRONG_MAX};
use crate::format::extent::{CodingExtent, WordSymbol};
use crate::format::fields::Fields;
use crate::format::unit::{HEAD, Kind, Sector};
use crate::geometry::SumPlace;
use crate::sums::sum_of;

/// Sectors that are compared together, unless one coding extent has more: 16 MiB.
const COMPARED_MAX: u64 = 4_096;

/// Units of sums that stay in memory: 4 MiB.
const SUMS_MAX: usize = 1_024;

/// Coding extents that are still to be compared, and sums that were read for them.
#[derive(Default)]
pub(super) struct Comparing {
    extents: Vec<Whose>,
    sectors: u64,
    sums: BTreeMap<Lba, Option<Box<Sector>>>,
    codes: BTreeMap<(u32, u8), Code>,
    /// Checksums of redundant sectors that were computed anew.
    pub(super) anew: Vec<NewSum>,
}

/// The checksum that a sector has from now on.
#[derive(Clone, Copy)]
pub(super) struct NewSum {
    pub(super) lba: Lba,
    pub(super) sum: u32,
}

/// A coding extent and the inode that it is of.
#[derive(Clone, Copy)]
struct Whose {
    extent: CodingExtent,
    inode: u64,
}

/// What the sectors of a codeword hold, whatever their checksums should be.
pub(super) struct Whole {
    pub(super) places: Vec<Lba>,
    pub(super) sums: Vec<u32>,
    /// Which of them are what something redundant says.
    pub(super) belong: Vec<bool>,
}

/// A codeword whose sectors were read.
struct Word {
    places: Vec<Lba>,
    data: usize,
    /// Right sectors; zeroes for those that were never written; nothing for those that are bad.
    symbols: Vec<Option<Box<Sector>>>,
    sums: Vec<u32>,
}

impl Checker<'_> {
    /// A coding extent is compared, now or later, if sectors of files are read at all.
    pub(super) fn compare(&mut self, extent: &CodingExtent, inode: u64) {
        if self.options.depth == Depth::Metadata {
            return;
        }
        self.comparing.extents.push(Whose { extent: *extent, inode });
        self.comparing.sectors += extent.all().sectors.get();
        if self.comparing.sectors >= COMPARED_MAX {
            self.compare_left();
        }
    }

    /// Compares what waits for it.
    pub(super) fn compare_left(&mut self) {
        let mut extents = std::mem::take(&mut self.comparing.extents);
        extents.sort_by_key(|whose| whose.extent.lba);
        self.comparing.sectors = 0;
        let mut wanted: Vec<Lba> = Vec::new();
        let mut summed: Vec<(Whose, Vec<u32>)> = Vec::new();
        for whose in extents {
            match self.sums_of(whose.extent.all()) {
                Some(sums) => {
                    let written =
                        whose.extent.all().iter().zip(&sums).filter(|(_, sum)| **sum != 0);
                    wanted.extend(written.map(|(lba, _)| lba));
                    summed.push((whose, sums));
                }
                None => {
                    let Whose { extent, inode } = whose;
                    self.note(Problem::Unsummed { lba: extent.lba, inode });
                }
            }
        }
        let count = wanted.len() as u64;
        let got = self.disk.read(wanted);
        for (whose, sums) in summed {
            self.compare_extent(whose, &sums, &got);
        }
        self.report.compared_sectors += count;
        self.step.sectors += count;
        (self.on_step)(self.step);
    }

    /// The sums of some sectors; nothing if some of them are lost.
    fn sums_of(&mut self, extent: Extent) -> Option<Vec<u32>> {
        let geometry = self.superblock.geometry;
        let mut sums = Vec::with_capacity(extent.sectors.as_usize());
        for lba in extent.iter() {
            let SumPlace { lead, at } = geometry.sum_of(lba);
            if !self.comparing.sums.contains_key(&lead) {
                let unit = self.read_quietly(lead, Kind::Sums);
                if self.comparing.sums.len() >= SUMS_MAX {
                    self.comparing.sums.pop_first();
                }
                self.comparing.sums.insert(lead, unit);
            }
            let unit = self.comparing.sums[&lead].as_ref()?;
            sums.push(Fields(&unit[HEAD..]).u32(4 * at));
        }
        Some(sums)
    }

    fn compare_extent(&mut self, whose: Whose, sums: &[u32], got: &Got) {
        let Whose { extent, inode } = whose;
        let mut lost = 0;
        if extent.has_twins() {
            lost += self.compare_twins(&extent, inode, sums, got);
            if lost > 0 {
                self.note(Problem::GroupLost { lba: extent.lba, sectors: lost, inode });
            }
            return;
        }
        for word in 0..extent.words() {
            let word = self.read_word(&extent, word, sums, got);
            lost += self.compare_word(&extent, inode, word);
        }
        if lost > 0 {
            self.note(Problem::GroupLost { lba: extent.lba, sectors: lost, inode });
        }
    }

    /// Each sector of a mutable extent stands alone, but complementary ones, which are there twice. Returns how many sectors are lost.
    fn compare_twins(&mut self, extent: &CodingExtent, inode: u64, sums: &[u32], got: &Got) -> u32 {
        let filesystem = self.superblock.filesystem();
        let sum_at = |lba: Lba| sums[(lba - extent.lba).as_usize()];
        let right = |lba: Lba| {
            let is_right = |bytes: &&Sector| sum_of(filesystem, lba, &bytes[..]) == sum_at(lba);
            got.sector(lba).filter(is_right)
        };
        let differ = |lba: Lba| {
            let twin = extent.twin_of(lba).filter(|&twin| lba < twin);
            let both = right(lba).zip(twin.and_then(right));
            both.is_some_and(|(one, other)| one != other)
        };
        if extent.data().iter().any(differ) {
            self.note(Problem::Codeword { lba: extent.lba, inode });
        }
        let mut lost = 0;
        for lba in extent.data().iter().filter(|&lba| sum_at(lba) != 0 && right(lba).is_none()) {
            // What the twin has is what was here, or the two never were the same.
            let twin = extent.twin_of(lba).and_then(right);
            let is_its = |bytes: &&Sector| sum_of(filesystem, lba, &bytes[..]) == sum_at(lba);
            match twin.filter(is_its) {
                Some(bytes) => {
                    self.note_mended(Problem::Data { lba, inode });
                    self.mend_sector(lba, bytes);
                }
                None => lost += 1,
            }
        }
        lost
    }

    fn read_word(&self, extent: &CodingExtent, word: u32, sums: &[u32], got: &Got) -> Word {
        let filesystem = self.superblock.filesystem();
        let data = extent.word_data(word) as usize;
        let all = data + usize::from(extent.redundant);
        let (mut places, mut symbols) = (Vec::with_capacity(all), Vec::with_capacity(all));
        let mut of_word = Vec::with_capacity(all);
        for symbol in 0..all {
            let sector = extent.sector(WordSymbol { word, symbol });
            let lba = extent.lba + Sectors::new(sector.into());
            let sum = sums[sector as usize];
            let is_right = |bytes: &&Sector| sum_of(filesystem, lba, &bytes[..]) == sum;
            symbols.push(match sum {
                0 => Some(Box::new([0; SECTOR_SIZE])),
                _ => got.sector(lba).filter(is_right).map(|bytes| Box::new(*bytes)),
            });
            places.push(lba);
            of_word.push(sum);
        }
        Word { places, data, symbols, sums: of_word }
    }

    /// Returns how many data sectors are lost.
    fn compare_word(&mut self, extent: &CodingExtent, inode: u64, mut word: Word) -> u32 {
        let filesystem = self.superblock.filesystem();
        let bad: Vec<usize> =
            (0..word.symbols.len()).filter(|&at| word.symbols[at].is_none()).collect();
        let bad_data = bad.iter().filter(|&&at| at < word.data).count();
        if bad.len() > usize::from(extent.redundant) {
            return bad_data as u32;
        }
        if bad_data > 0 {
            self.reconstruct(extent, &mut word);
            let is_right = |&at: &usize| {
                let bytes = word.symbols[at].as_ref().expect("it was computed");
                sum_of(filesystem, word.places[at], &bytes[..]) == word.sums[at]
            };
            // What is redundant belongs to other data: what was computed is nothing.
            let wrong = bad.iter().filter(|&&at| at < word.data && !is_right(&at)).count();
            if wrong > 0 {
                return bad_data as u32;
            }
            for &at in bad.iter().filter(|&&at| at < word.data) {
                let lba = word.places[at];
                self.note_mended(Problem::Data { lba, inode });
                self.mend_sector(lba, word.symbols[at].as_ref().expect("it was computed"));
            }
        }
        let right = self.encode(extent, &word);
        let mut belongs = true;
        for (row, right) in right.iter().enumerate() {
            let at = word.data + row;
            let lba = word.places[at];
            match &word.symbols[at] {
                Some(known) if !bad.contains(&at) => belongs &= known == right,
                Some(_) | None => {
                    let is_right = sum_of(filesystem, lba, &right[..]) == word.sums[at];
                    belongs &= is_right;
                    if is_right {
                        self.note_mended(Problem::Redundant { lba, inode });
                        self.mend_sector(lba, right);
                    }
                }
            }
        }
        if !belongs {
            self.note(Problem::Codeword { lba: extent.lba, inode });
            self.replace_redundant(&word, &right);
        }
        0
    }

    /// All data is what its checksums say, and what is redundant follows from it.
    fn replace_redundant(&mut self, word: &Word, right: &[Box<Sector>]) {
        if self.options.repair == Repair::None || self.comparing.anew.len() >= WRONG_MAX {
            return;
        }
        let filesystem = self.superblock.filesystem();
        for (&lba, bytes) in word.places[word.data..].iter().zip(right) {
            self.mend_sector(lba, bytes);
            self.comparing.anew.push(NewSum { lba, sum: sum_of(filesystem, lba, &bytes[..]) });
        }
    }

    /// What a coding extent holds, a codeword at a time: its places, and which of them are what something redundant says.
    pub(super) fn read_extent(&mut self, extent: &CodingExtent) -> Vec<Whole> {
        let (filesystem, got) =
            (self.superblock.filesystem(), self.disk.read(extent.all().iter().collect()));
        let mut words = Vec::new();
        for word in 0..extent.words() {
            // As if each sector had the checksum of what is there.
            let sums: Vec<u32> = extent
                .all()
                .iter()
                .map(|lba| got.sector(lba).map_or(1, |bytes| sum_of(filesystem, lba, &bytes[..])))
                .collect();
            let word = self.read_word(extent, word, &sums, &got);
            let belongs = extent.redundant > 0 && word.symbols.iter().all(Option::is_some) && {
                let right = self.encode(extent, &word);
                right
                    .iter()
                    .zip(&word.symbols[word.data..])
                    .all(|(right, known)| known.as_ref() == Some(right))
            };
            let bytes = |lba: Lba| got.sector(lba).map(|bytes| &bytes[..]);
            let is_twin = |lba: &Lba| {
                let twin = extent.twin_of(*lba);
                twin.is_some_and(|twin| bytes(*lba).is_some() && bytes(*lba) == bytes(twin))
            };
            let belong = word.places.iter().map(|lba| belongs || is_twin(lba)).collect();
            words.push(Whole { places: word.places, sums: word.sums, belong });
        }
        words
    }

    fn mend_sector(&mut self, lba: Lba, bytes: &Sector) {
        if self.options.repair == Repair::All {
            self.disk.write(lba, bytes);
        }
    }

    fn code(&mut self, data: usize, redundant: u8) -> &Code {
        let key = (data as u32, redundant);
        self.comparing.codes.entry(key).or_insert_with(|| {
            Code::new(data, redundant.into()).expect("the extent's length was checked")
        })
    }

    /// Computes what is bad.
    fn reconstruct(&mut self, extent: &CodingExtent, word: &mut Word) {
        let kernel = self.options.kernel;
        let code = self.code(word.data, extent.redundant).clone();
        let mut room: Vec<Option<Box<Sector>>> = word
            .symbols
            .iter()
            .map(|known| known.is_none().then(|| Box::new([0; SECTOR_SIZE])))
            .collect();
        let mut all: Vec<Symbol<'_>> = word
            .symbols
            .iter()
            .zip(&mut room)
            .map(|(known, room)| match (known, room) {
                (Some(known), _) => Symbol::Available(&known[..]),
                (None, room) => Symbol::Wanted(&mut room.as_mut().expect("it is bad")[..]),
            })
            .collect();
        code.reconstruct(kernel, &mut all).expect("no more are bad than it computes");
        drop(all);
        for (known, computed) in word.symbols.iter_mut().zip(room) {
            if let Some(computed) = computed {
                *known = Some(computed);
            }
        }
    }

    /// What is redundant beside all data symbols.
    fn encode(&mut self, extent: &CodingExtent, word: &Word) -> Vec<Box<Sector>> {
        if extent.redundant == 0 {
            return Vec::new();
        }
        let kernel = self.options.kernel;
        let code = self.code(word.data, extent.redundant);
        let data: Vec<&[u8]> = word.symbols[..word.data]
            .iter()
            .map(|bytes| &bytes.as_ref().expect("data is there")[..])
            .collect();
        let mut rows: Vec<Box<Sector>> =
            (0..extent.redundant).map(|_| Box::new([0; SECTOR_SIZE])).collect();
        let mut into: Vec<&mut [u8]> = rows.iter_mut().map(|row| &mut row[..]).collect();
        code.encode(kernel, &data, &mut into).expect("one buffer for each symbol");
        rows
    }
}
