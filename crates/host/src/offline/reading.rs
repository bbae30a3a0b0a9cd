//! Reading drives: what each has of the next windows, by a thread of its own.

use std::collections::BTreeSet;
use std::io;
use std::ops::Range;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, Scope};

use levelhead_array::Area;
use levelhead_block::Buf;
use levelhead_units::{DriveIdx, Extent, Lba, SECTOR_SIZE, Sectors};

use super::sums::{DriveSums, Proof};
use super::window::Window;
use super::{Offline, OfflineDrive};
use crate::opened::Opened;
use crate::search::Search;

/// The most sectors of one command: 1 MiB.
const COMMAND_MAX: u64 = 256;

/// Windows of a drive that are read before they are wanted.
const AHEAD: usize = 2;

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

/// What a drive has of all windows, one after the other.
pub(crate) struct Stream {
    stretches: Receiver<Stretch>,
    empty: SyncSender<Buf>,
}

impl Stream {
    /// Begins to read what lies in these windows.
    ///
    /// # Errors
    ///
    /// The system has no thread left.
    pub(crate) fn start<'scope>(
        scope: &'scope Scope<'scope, '_>,
        array: &'scope Offline,
        (at, drive): (DriveIdx, &'scope OfflineDrive),
        windows: impl Iterator<Item = Window> + Send + 'scope,
    ) -> io::Result<Self> {
        let (sender, stretches) = sync_channel(AHEAD);
        let (empty, returned) = sync_channel::<Buf>(AHEAD + 2);
        let read = move || {
            let mut sums = DriveSums::begin(array, at, drive);
            for window in windows {
                let buf = returned.try_recv().ok().filter(|buf| buf.sectors() == window.sectors());
                let buf = buf.unwrap_or_else(|| Buf::zeroed(window.sectors()));
                let stretch = match &mut sums {
                    Some(sums) => sums.read_window(&window, buf),
                    None => read_window(&drive.opened, &array.area, &window, buf),
                };
                // What is not wanted any more is not read.
                if sender.send(stretch).is_err() {
                    return;
                }
            }
        };
        thread::Builder::new().name("reading".into()).spawn_scoped(scope, read)?;
        Ok(Self { stretches, empty })
    }

    /// What it has of the next window.
    pub(crate) fn next(&self) -> Stretch {
        self.stretches.recv().expect("its thread reads every window")
    }

    /// Takes a buffer back.
    pub(crate) fn give_back(&self, buf: Buf) {
        // Beyond what is read ahead they are not kept.
        drop(self.empty.try_send(buf));
    }
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
