//! Where the sectors of a file lie.
//!
//! Pages of a file are its sectors, counted from its beginning. What a window of the tree does not cover is a hole.

use levelhead_units::{Extent, Lba, SECTOR_SIZE, Sectors};

use crate::attempt::{Attempt, CutPages, Stop, broken};
use crate::format::extent::{CodingExtent, Window};
use crate::format::inode::{FileKind, Inode};
use crate::format::ladder::Ladder;
use crate::format::node::Pair;
use crate::format::superblock::Superblock;
use crate::ops::attributes::SIZE_MAX;
use crate::space::Wanted;
use crate::tree::Owned;

/// Pages of the largest file.
pub(crate) const PAGES_MAX: u64 = SIZE_MAX / SECTOR_SIZE as u64;

/// A window and its first page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mapped {
    pub(crate) page: u64,
    pub(crate) window: Window,
}

impl Mapped {
    /// The page behind its last one.
    pub(crate) fn end(&self) -> u64 {
        self.page + u64::from(self.window.count)
    }

    /// The page that the coding extent's first sector would have.
    fn base(&self) -> u64 {
        self.page - u64::from(self.window.skip)
    }
}

/// Pages from one to before another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pages {
    pub(crate) from: u64,
    pub(crate) to: u64,
}

/// Fewer pages than this go into the journal first: 128 KiB, which takes as long to write as to come to another place.
pub(crate) const DIRECT_MIN: u64 = 32;

impl Pages {
    /// Whether they are so many that they go to another place at once.
    pub(crate) fn are_many(self) -> bool {
        self.to - self.from >= DIRECT_MIN
    }
}

impl Attempt<'_> {
    /// A pair of a file's tree.
    fn decode_window(&self, pair: &Pair) -> Result<Mapped, Stop> {
        let window = broken(Window::decode(&pair.value, self.superblock.geometry.sectors))?;
        // All of its coding extent would have a place in the file.
        let is_inside = (u64::from(window.skip)..PAGES_MAX).contains(&pair.key);
        broken(is_inside.then_some(Mapped { page: pair.key, window }))
    }

    /// The windows over some pages, each cut to them, in order; at most `most` of them.
    pub(crate) fn windows(
        &mut self,
        number: u64,
        inode: &Inode,
        pages: Pages,
        most: usize,
    ) -> Result<Vec<Mapped>, Stop> {
        let mut found = Vec::new();
        if let Some(pair) = self.tree_floor(number, inode, pages.from)?
            && pair.key < pages.from
        {
            found.extend(cut(self.decode_window(&pair)?, pages));
        }
        let mut from = pages.from;
        loop {
            let pairs = self.tree_from(number, inode, from)?;
            let Some(last) = pairs.last() else { return Ok(found) };
            from = last.key + 1;
            for pair in pairs {
                if pair.key >= pages.to || found.len() >= most {
                    return Ok(found);
                }
                found.extend(cut(self.decode_window(&pair)?, pages));
            }
        }
    }

    /// The window that a page lies in, uncut.
    pub(crate) fn window_at(
        &mut self,
        number: u64,
        inode: &Inode,
        page: u64,
    ) -> Result<Option<Mapped>, Stop> {
        let Some(pair) = self.tree_floor(number, inode, page)? else { return Ok(None) };
        let mapped = self.decode_window(&pair)?;
        Ok((page < mapped.end()).then_some(mapped))
    }

    /// Pages that no window covers get one.
    pub(crate) fn add_window(&mut self, of: &mut Owned<'_>, mapped: Mapped) -> Result<(), Stop> {
        self.tree_insert(of, mapped.page, mapped.window.encode())
    }

    /// Makes holes of some pages; frees coding extents that no window needs any more. Returns whether nothing is left of them, after
    /// at most `most` windows.
    pub(crate) fn cut_out(
        &mut self,
        of: &mut Owned<'_>,
        pages: Pages,
        most: usize,
    ) -> Result<bool, Stop> {
        for step in 0.. {
            if step == most {
                return Ok(false);
            }
            // The last one first: what is cut in two parts is looked at once.
            let found = match self.tree_floor(of.number, of.inode, pages.to.wrapping_sub(1))? {
                Some(pair) => self.decode_window(&pair)?,
                None => return Ok(true),
            };
            if found.end() <= pages.from {
                return Ok(true);
            }
            self.tree_remove(of, found.page)?;
            let (from, to) = (found.page.max(pages.from), found.end().min(pages.to));
            self.cut.push(CutPages { inode: of.number, from, to });
            let (left, right) =
                (pages.from.saturating_sub(found.page), found.end().saturating_sub(pages.to));
            if left > 0 {
                let window = found.window.part(0, left as u32);
                self.add_window(of, Mapped { page: found.page, window })?;
            }
            if right > 0 {
                let window = found.window.part(found.window.count - right as u32, right as u32);
                self.add_window(of, Mapped { page: pages.to, window })?;
            }
            if left == 0 && right == 0 && !self.is_needed(of, &found)? {
                self.free_extent(of.inode, &found.window.extent)?;
            }
        }
        unreachable!("it ends with the most windows")
    }

    /// Whether another window of the same coding extent is there: it lies where the extent's pages lay.
    fn is_needed(&mut self, of: &Owned<'_>, gone: &Mapped) -> Result<bool, Stop> {
        let from = gone.base();
        let to = from + u64::from(gone.window.extent.pages());
        let around = self.windows(of.number, of.inode, Pages { from, to }, usize::MAX)?;
        Ok(around.iter().any(|other| other.window.extent.lba == gone.window.extent.lba))
    }

    /// Frees a coding extent.
    pub(crate) fn free_extent(
        &mut self,
        inode: &mut Inode,
        extent: &CodingExtent,
    ) -> Result<(), Stop> {
        let all = extent.all();
        self.free_run(all)?;
        inode.sectors = inode.sectors.saturating_sub(all.sectors.get());
        Ok(())
    }

    /// A new coding extent for up to this number of pages near a place, as the file's kind has it, with the redundancy that goes with them; for
    /// fewer where no run is long enough.
    pub(crate) fn new_extent(
        &mut self,
        inode: &mut Inode,
        near: Lba,
        pages: u64,
    ) -> Result<CodingExtent, Stop> {
        let superblock = self.superblock;
        let kind = superblock.kind_of_extents(inode.kind);
        let mut fits = pages.min(superblock.pages_max(kind).into()) as u32;
        let most = superblock.shape(kind, fits).all().sectors.get();
        let least = superblock.shape(kind, 1).all().sectors.get();
        let run = self.take_run(near, Wanted { most, least })?;
        let shape = |fits| CodingExtent { lba: run.lba, ..superblock.shape(kind, fits) };
        while shape(fits).all().sectors > run.sectors {
            let over = (shape(fits).all().sectors - run.sectors).get() as u32;
            fits = fits.saturating_sub(over.div_ceil(2).max(1)).max(1);
        }
        let extent = shape(fits);
        if let Some(rest) = (run.end() - extent.all().end()).get().checked_sub(1) {
            let rest = Extent::new(extent.all().end(), Sectors::new(rest + 1));
            self.give_back(rest)?;
        }
        inode.sectors = inode.sectors.saturating_add(extent.all().sectors.get());
        // What was there before has left its sums.
        for lba in extent.all().iter() {
            self.set_sum(lba, None)?;
        }
        Ok(extent)
    }

    /// Lets a coding extent at the end of a run of pages grow by some data sectors, if what lies behind it is free.
    pub(crate) fn grow_extent(
        &mut self,
        inode: &mut Inode,
        extent: &CodingExtent,
        by: u64,
    ) -> Result<Option<CodingExtent>, Stop> {
        let superblock = self.superblock;
        let room = superblock.pages_max(extent.kind).saturating_sub(extent.pages());
        let by = by.min(room.into()) as u32;
        let is_of_kind = superblock.kind_of_extents(inode.kind) == extent.kind;
        if by == 0 || extent.kind.blocks().is_some() || !is_of_kind {
            return Ok(None);
        }
        let shape = superblock.shape(extent.kind, extent.pages() + by);
        let grown = CodingExtent { lba: extent.lba, ..shape };
        let (old, new) = (extent.all(), grown.all());
        if new.sectors <= old.sectors {
            return Ok(None);
        }
        let behind = Extent::new(old.end(), new.sectors - old.sectors);
        if !self.take_behind(behind)? {
            return Ok(None);
        }
        inode.sectors = inode.sectors.saturating_add(behind.sectors.get());
        for lba in new.iter().skip(extent.data as usize) {
            self.set_sum(lba, None)?;
        }
        Ok(Some(grown))
    }
}

impl Superblock {
    /// How the coding extents of a file are laid out: where the drive makes no use of zeroes, all alike.
    pub(crate) fn kind_of_extents(&self, kind: FileKind) -> FileKind {
        match kind {
            FileKind::B | FileKind::Mutable if self.forced.is_some() => kind,
            _ => FileKind::Auto,
        }
    }

    /// How much redundancy extents of a kind have; nothing where there is none.
    fn ladder_of(&self, kind: FileKind) -> Option<&Ladder> {
        match kind {
            FileKind::Auto | FileKind::A => Some(&self.ladder),
            FileKind::B => self.forced.as_ref(),
            FileKind::Mutable => None,
        }
    }

    /// The most pages of a coding extent.
    pub(crate) fn pages_max(&self, kind: FileKind) -> u32 {
        let Some(ladder) = self.ladder_of(kind) else { return UNCODED_PAGES_MAX };
        let sectors = u32::from(ladder.data_max()) * u32::from(self.interleave);
        // A block that is too short for a page is not begun.
        let pages = kind.pages(sectors).or_else(|| kind.pages(sectors.saturating_sub(1)));
        pages.unwrap_or(0)
    }

    /// A coding extent of this many pages, anywhere.
    pub(crate) fn shape(&self, kind: FileKind, pages: u32) -> CodingExtent {
        assert!(pages > 0, "an extent has pages");
        let (lba, data) = (Lba::ZERO, kind.sectors(pages));
        let Some(ladder) = self.ladder_of(kind) else {
            return CodingExtent { lba, data, redundant: 0, depth: 1, kind };
        };
        // Woven only as far as every codeword has some sectors, and so far that none has more than the ladder allows.
        let depth = u32::from(self.interleave).min(data.div_ceil(WOVEN_MIN));
        let depth = depth.max(data.div_ceil(ladder.data_max().into()));
        let redundant = ladder.redundant(data.div_ceil(depth));
        CodingExtent { lba, data, redundant, depth: depth as u8, kind }
    }
}

/// The most pages of a coding extent without redundancy: 112 blocks, 1,008 sectors.
const UNCODED_PAGES_MAX: u32 = 784;

/// The fewest data sectors for which another codeword is woven in.
const WOVEN_MIN: u32 = 8;

/// The pages between windows that lie in order in some pages.
pub(crate) fn holes_between(windows: &[Mapped], pages: Pages) -> Vec<Pages> {
    let starts = std::iter::once(pages.from).chain(windows.iter().map(Mapped::end));
    let ends = windows.iter().map(|mapped| mapped.page).chain([pages.to]);
    let holes = starts.zip(ends).map(|(from, to)| Pages { from, to });
    holes.filter(|hole| hole.from < hole.to).collect()
}

/// The part of a window that lies in some pages.
fn cut(mapped: Mapped, pages: Pages) -> Option<Mapped> {
    let (from, to) = (mapped.page.max(pages.from), mapped.end().min(pages.to));
    (from < to).then(|| Mapped {
        page: from,
        window: mapped.window.part((from - mapped.page) as u32, (to - from) as u32),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made::wishes;
    use crate::make::make;

    #[test]
    fn every_extent_has_codewords_that_its_ladder_has() {
        let superblock = make(&wishes(20_000, 3)).unwrap().superblock;
        for rungs in [&[2][..], &[4], &[0, 4], &[0, 4, 8, 16], &[0, 246]] {
            let ladder = Ladder::new(rungs).unwrap();
            for interleave in [1, 2, 8, 64] {
                let ladder = ladder.clone();
                let forced = Some(ladder.clone());
                let superblock = Superblock { interleave, forced, ladder, ..superblock.clone() };
                for kind in [FileKind::Auto, FileKind::B, FileKind::Mutable] {
                    assert!(superblock.pages_max(kind) > 0);
                    for pages in 1..=superblock.pages_max(kind) {
                        let extent = superblock.shape(kind, pages);
                        assert_eq!(extent.pages(), pages);
                        assert!((1..=interleave).contains(&extent.depth), "{pages} of {rungs:?}");
                        let longest = superblock.ladder_of(kind).map_or(1_008, Ladder::data_max);
                        assert!(extent.word_data(0) <= u32::from(longest));
                        assert!(extent.is_sane(1 << 30));
                    }
                }
            }
        }
    }
}
