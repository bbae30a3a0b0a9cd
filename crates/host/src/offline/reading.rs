//! Reading drives: what one has of a window.

use std::collections::BTreeSet;
use std::io;
use std::ops::Range;

use levelhead_array::Area;
use levelhead_block::Buf;
use levelhead_units::{Extent, Lba, SECTOR_SIZE, Sectors};

use super::window::Window;
use crate::opened::Opened;
use crate::search::Search;

/// The most sectors of one command: 1 MiB.
const COMMAND_MAX: u64 = 256;

/// What the checksum of a sector says of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Proof {
    /// Nothing: it is not compared. Its redundancy is not valid yet, it was being written, or it is not in its place.
    Exempt,
    /// Nothing: it has no checksum.
    Unknown,
    /// It is right.
    Match,
    /// It is wrong, and should have this checksum.
    Corrupt(u32),
    /// The drive does not return it, and it should have this checksum.
    Unread(u32),
}

/// What a drive has of a window.
#[derive(Debug)]
pub(crate) struct Stretch {
    pub(crate) buf: Buf,
    /// Sectors that the drive did not give.
    pub(crate) bad: BTreeSet<usize>,
    /// What the checksum of each sector says; empty where the array has no checksums.
    pub(crate) proofs: Vec<Proof>,
    /// For each group whose tag sector was read and is none the sectors that it has here.
    pub(crate) bad_tags: Vec<Range<usize>>,
}

/// What lies in a window, without its tag sectors.
pub(crate) fn read_window(opened: &Opened, area: &Area, window: &Window, mut buf: Buf) -> Stretch {
    let mut bad = BTreeSet::new();
    let mut index = 0;
    let mut run: Option<Extent> = None;
    let mut read = |run: Extent, buf: &mut Buf| {
        read_sectors(opened, run.lba, buf.part_mut(index, run.sectors.as_usize()), |at| {
            bad.insert(index + at);
        });
        index += run.sectors.as_usize();
    };
    for start in window.starts() {
        for piece in area.pieces(Extent::new(start, Sectors::new(window.len))) {
            let next = Extent::new(piece.lba, piece.counted.sectors);
            match &mut run {
                Some(run) if run.end() == next.lba => run.sectors += next.sectors,
                Some(_) | None => {
                    if let Some(run) = run.replace(next) {
                        read(run, &mut buf);
                    }
                }
            }
        }
    }
    if let Some(run) = run {
        read(run, &mut buf);
    }
    Stretch { buf, bad, proofs: Vec::new(), bad_tags: Vec::new() }
}

/// Fills `bytes`, whole sectors, from sector `lba` on, and names those that the drive does not give.
pub(crate) fn read_sectors(
    opened: &Opened,
    lba: Lba,
    bytes: &mut [u8],
    mut bad: impl FnMut(usize),
) {
    let largest = COMMAND_MAX as usize * SECTOR_SIZE;
    for (at, part) in bytes.chunks_mut(largest).enumerate() {
        let first = at * COMMAND_MAX as usize;
        let at = |sector: usize| lba + Sectors::new((first + sector) as u64);
        let count = part.len() / SECTOR_SIZE;
        // A drive may have become smaller.
        let there = opened.size().saturating_sub(at(0) - Lba::ZERO).as_usize().min(count);
        (there..count).for_each(|sector| bad(first + sector));
        let part = &mut part[..there * SECTOR_SIZE];
        if there == 0 {
            continue;
        }
        let count = there;
        let Err(error) = opened.read(at(0), part) else { continue };
        if is_gone(&error) {
            (0..count).for_each(|sector| bad(first + sector));
            continue;
        }
        let mut search = Search::new(0..count as u32);
        while let Some(range) = search.part() {
            let range = range.start as usize..range.end as usize;
            let part = &mut part[range.start * SECTOR_SIZE..range.end * SECTOR_SIZE];
            match opened.read(at(range.start), part) {
                Ok(()) => search.handle_read(),
                Err(_) => search.handle_failed(),
            }
        }
        for sector in search.damaged().iter() {
            bad(first + sector as usize);
        }
    }
}

/// Whether a drive that says this gives nothing else either: its sectors are not asked for one by one.
fn is_gone(error: &io::Error) -> bool {
    const ENXIO: i32 = 6;
    const ENODEV: i32 = 19;
    error.kind() == io::ErrorKind::TimedOut
        || error.raw_os_error().is_some_and(|errno| [ENXIO, ENODEV].contains(&errno))
}
