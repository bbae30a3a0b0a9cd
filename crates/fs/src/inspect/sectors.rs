//! What a sector is: a superblock, a copy of a unit, a part of the journal, or a symbol of a codeword of a file.

use levelhead_units::{Lba, Sectors};

use super::files::FileWindow;
use super::{CannotInspect, Inspector};
use crate::check::disk::Disk;
use crate::check::survey_of;
use crate::format::extent::{CodingExtent, WordSymbol};
use crate::format::unit::{Head, Kind};
use crate::geometry::GroupIdx;
use crate::request::Errno;
use crate::sums::sum_of;

/// A sector and what it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundSector {
    /// Where it lies.
    pub lba: Lba,
    /// Its group of the disk.
    pub group: GroupIdx,
    /// Its place in the group.
    pub offset: u64,
    /// What it is.
    pub of: SectorUse,
}

/// What a sector is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SectorUse {
    /// A copy of the superblock.
    Superblock,
    /// The first sector of a group that has no copy of the superblock.
    Kept,
    /// A part of the journal.
    Journal {
        /// Its place there, in sectors.
        at: u64,
    },
    /// A copy of a unit.
    Unit {
        /// What the unit holds, if that is known.
        kind: Option<Kind>,
        /// The inode that it is of, or 0.
        owner: u64,
        /// All copies of the unit, the lead first.
        copies: Vec<UnitCopy>,
    },
    /// A sector of a file.
    File(Member),
    /// Nothing has it.
    Free,
    /// It is taken, and nothing that was found has it.
    Unknown,
}

/// A copy of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnitCopy {
    /// Where it lies.
    pub lba: Lba,
    /// What is there.
    pub state: CopyState,
}

/// What is in the place of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyState {
    /// The unit.
    Right,
    /// The unit as it was before.
    Older,
    /// Something else.
    Wrong,
    /// It cannot be read.
    Unreadable,
    /// Zeroes, as in all other copies: the unit was never written.
    Unwritten,
}

/// A symbol of a codeword.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// The file.
    pub inode: u64,
    /// A path that leads there, if one was found.
    pub path: Option<Vec<u8>>,
    /// The page of the file that it is; nothing of a redundant sector, and of one that was cut off or punched out.
    pub page: Option<u64>,
    /// The coding extent.
    pub extent: CodingExtent,
    /// Which codeword of the extent, and which symbol of that.
    pub at: WordSymbol,
    /// How it stands.
    pub state: SectorState,
    /// Data symbols of the codeword.
    pub word_data: u32,
    /// Symbols of the codeword that are wrong or cannot be read: as many can be computed as are redundant.
    pub word_bad: u32,
}

/// How a sector of a file stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SectorState {
    /// It has its checksum.
    Right,
    /// It has another one.
    Wrong,
    /// It cannot be read.
    Unreadable,
    /// It was never written and counts as zeroes.
    Unwritten,
    /// Its checksum is lost.
    Unsummed,
}

impl SectorState {
    /// Whether it has to be computed.
    pub fn is_bad(self) -> bool {
        match self {
            Self::Right | Self::Unwritten => false,
            Self::Wrong | Self::Unreadable | Self::Unsummed => true,
        }
    }
}

impl Inspector<'_> {
    /// What a sector is.
    ///
    /// # Errors
    ///
    /// It lies beyond the end, or the device fails.
    pub fn sector(&mut self, lba: Lba) -> Result<FoundSector, CannotInspect> {
        let geometry = self.superblock.geometry;
        if lba.get() >= geometry.sectors {
            return Err(CannotInspect::Beyond { sectors: geometry.sectors });
        }
        let (group, offset) = (geometry.group_of(lba), geometry.offset(lba));
        let journal = geometry.journal();
        let of = match offset {
            0 if geometry.superblocks().contains(&lba) => SectorUse::Superblock,
            0 => SectorUse::Kept,
            _ if journal.contains(lba) => SectorUse::Journal { at: (lba - journal.lba).get() },
            offset if offset < geometry.fixed_end() => {
                let lead = self.fixed_unit(lba).ok_or(CannotInspect::Failed(Errno::Io))?;
                self.unit(lead)?
            }
            _ => self.movable(lba)?,
        };
        Ok(FoundSector { lba, group, offset, of })
    }

    /// The lead of the fixed unit of which a sector is a copy.
    fn fixed_unit(&self, lba: Lba) -> Option<Lba> {
        let geometry = self.superblock.geometry;
        let (group, groups) = (geometry.group_of(lba).0, geometry.groups());
        let fellow = (group + groups - groups / 2) % groups;
        let leads = [group, fellow].into_iter().flat_map(|group| {
            let first = geometry.group(GroupIdx(group)).lba;
            (0..geometry.fixed_units())
                .map(move |unit| first + Sectors::new(1 + unit * geometry.near()))
        });
        leads.into_iter().find(|&lead| geometry.copies_of(lead).contains(&lba))
    }

    /// What lies wherever there was room.
    fn movable(&mut self, lba: Lba) -> Result<SectorUse, CannotInspect> {
        let geometry = self.superblock.geometry;
        let survey = survey_of(&mut self.device, &self.superblock, self.kernel)?;
        let of_file = survey.extents.iter().find(|surveyed| surveyed.extent.all().contains(lba));
        if let Some(surveyed) = of_file {
            return self.member(lba, surveyed.inode, surveyed.extent).map(SectorUse::File);
        }
        let is_its = |&&lead: &&Lba| geometry.copies_of(lead).contains(&lba);
        if let Some(&lead) = survey.units.iter().find(is_its) {
            return self.unit(lead);
        }
        let group = geometry.group_of(lba);
        // Of a group of which nothing was ever taken there is no bitmap.
        let is_taken = self.attempt(|attempt| match attempt.free_of(group)? {
            Some(_) => attempt.is_taken(lba),
            None => Ok(false),
        });
        Ok(match is_taken {
            Ok(false) => SectorUse::Free,
            Ok(true) | Err(CannotInspect::Failed(_)) => SectorUse::Unknown,
            Err(why) => return Err(why),
        })
    }

    /// A unit and all its copies.
    fn unit(&mut self, lead: Lba) -> Result<SectorUse, CannotInspect> {
        let (geometry, filesystem) = (self.superblock.geometry, self.superblock.filesystem());
        let places = geometry.copies_of(lead);
        let mut disk = Disk::new(&mut self.device);
        let got = disk.read(places.clone());
        let head = |lba: Lba| {
            let head = Head::open(got.sector(lba)?).ok()?;
            ((head.filesystem, head.lba) == (filesystem, lead)).then_some(head)
        };
        let newest = places
            .iter()
            .filter_map(|&lba| Some((head(lba)?, lba)))
            .max_by_key(|(head, _)| head.generation);
        let right = newest.and_then(|(_, lba)| got.sector(lba));
        let is_zero =
            |lba: &Lba| got.sector(*lba).is_some_and(|sector| sector.iter().all(|&byte| byte == 0));
        let was_written = !places.iter().all(is_zero);
        let state = |lba: Lba| match got.sector(lba) {
            None => CopyState::Unreadable,
            Some(_) if !was_written => CopyState::Unwritten,
            Some(sector) if right == Some(sector) => CopyState::Right,
            Some(_) if head(lba).is_some() => CopyState::Older,
            Some(_) => CopyState::Wrong,
        };
        let copies = places.iter().map(|&lba| UnitCopy { lba, state: state(lba) }).collect();
        let kind = match newest {
            Some((head, _)) => Some(head.kind),
            // What a fixed unit should be follows from its place.
            None if geometry.is_fixed(lead) => {
                let group = geometry.group_of(lead);
                let is_bitmap = geometry.bitmaps(group).any(|bitmap| bitmap == lead);
                Some(if is_bitmap { Kind::Bitmap } else { Kind::Sums })
            }
            None => None,
        };
        Ok(SectorUse::Unit { kind, owner: newest.map_or(0, |(head, _)| head.owner), copies })
    }

    fn member(
        &mut self,
        lba: Lba,
        inode: u64,
        extent: CodingExtent,
    ) -> Result<Member, CannotInspect> {
        let sector = (lba - extent.lba).get() as u32;
        let at = extent.symbol(sector);
        let data = extent.word_data(at.word);
        let symbols = 0..data as usize + usize::from(extent.redundant);
        let places: Vec<Lba> = symbols
            .map(|symbol| {
                let sector = extent.sector(WordSymbol { word: at.word, symbol });
                extent.lba + Sectors::new(sector.into())
            })
            .collect();
        let states = self.states(&places)?;
        // Where it is woven wider than it has data, some redundant sectors are of no codeword.
        let mine = places.iter().position(|&place| place == lba);
        let state = match mine {
            Some(mine) => states[mine],
            None => self.states(&[lba])?[0],
        };
        let page = match extent.data().contains(lba) {
            true => self.page_of(inode, lba)?,
            false => None,
        };
        Ok(Member {
            inode,
            path: self.path_of(inode)?,
            page,
            extent,
            at,
            state,
            word_data: data,
            word_bad: states.iter().filter(|state| state.is_bad()).count() as u32,
        })
    }

    /// The page of a file that lies in a sector.
    fn page_of(&mut self, inode: u64, lba: Lba) -> Result<Option<u64>, CannotInspect> {
        let windows = match self.windows_of(inode) {
            Ok(windows) => windows,
            Err(CannotInspect::Failed(_)) => return Ok(None),
            Err(why) => return Err(why),
        };
        let page_in = |found: &FileWindow| {
            let page = found.window.extent.page_of(lba)?.checked_sub(found.window.skip)?;
            (page < found.window.count).then(|| found.page + u64::from(page))
        };
        Ok(windows.iter().find_map(page_in))
    }

    /// How some sectors of a file stand.
    fn states(&mut self, places: &[Lba]) -> Result<Vec<SectorState>, CannotInspect> {
        let filesystem = self.superblock.filesystem();
        let mut sums = Vec::with_capacity(places.len());
        for &lba in places {
            sums.push(match self.attempt(|attempt| attempt.sum(lba)) {
                Ok(sum) => Some(sum),
                Err(CannotInspect::Failed(_)) => None,
                Err(why) => return Err(why),
            });
        }
        let mut disk = Disk::new(&mut self.device);
        let got = disk.read(places.to_vec());
        let state = |(&lba, sum): (&Lba, Option<Option<u32>>)| match (sum, got.sector(lba)) {
            (None, _) => SectorState::Unsummed,
            (Some(None), _) => SectorState::Unwritten,
            (Some(Some(_)), None) => SectorState::Unreadable,
            (Some(Some(sum)), Some(bytes)) => match sum_of(filesystem, lba, &bytes[..]) == sum {
                true => SectorState::Right,
                false => SectorState::Wrong,
            },
        };
        Ok(places.iter().zip(sums).map(state).collect())
    }
}
