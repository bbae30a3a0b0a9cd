//! How an array is read from one end to the other: in *windows*, the same stretch of every drive.
//!
//! A window has whole codewords. It is some rows of chunks, or, where chunks are large, a part of as few rows of
//! them as hold whole stripes: one, but for mirrors whose stripes go on in the next row.
//!
//! ```text
//!             drive 0   drive 1   drive 2          large chunks:   drive 0   drive 1   drive 2
//!   chunk 0   +-------------------------+                          |         |         |
//!   chunk 1   |        a window         |                          +-------------------------+
//!   chunk 2   +-------------------------+                          +------ a window ---------+
//! ```

use levelhead_array::{Cell, Layout};
use levelhead_units::{Lba, Sectors};

/// Sectors of all windows of all drives at a time: 64 MiB.
const ALL: u64 = 1 << 14;

/// The most sectors of a window on one drive: 4 MiB.
const MOST: u64 = 1 << 10;

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    /// The first chunk of each drive.
    pub(crate) first: u64,
    pub(crate) chunks: u64,
    /// The first sector of each of these chunks.
    pub(crate) offset: u64,
    /// Sectors of each of these chunks.
    pub(crate) len: u64,
    chunk: u64,
}

impl Window {
    /// All windows of an array, in order.
    pub(crate) fn all(layout: &Layout) -> impl Iterator<Item = Self> + use<> {
        let spec = layout.spec();
        let (chunk, e) = (spec.chunk().get(), spec.expansion() as u64);
        let (width, drives) = (spec.width() as u64, spec.drives() as u64);
        // This number of chunks of every drive holds whole stripes.
        let period = width / gcd(width, drives);
        let most = (ALL / drives).clamp(1, MOST);
        let (step, len) = match most / (chunk * period) {
            0 => (period, (most / period / e * e).clamp(e, chunk)),
            periods => (periods * period, chunk),
        };
        let chunks = layout.chunks();
        let of_chunks = move |first: u64| {
            let chunks = step.min(chunks - first);
            (0..chunk).step_by(len as usize).map(move |offset| Self {
                first,
                chunks,
                offset,
                len: len.min(chunk - offset),
                chunk,
            })
        };
        (0..chunks).step_by(step as usize).flat_map(of_chunks)
    }

    /// How many sectors of each drive it has.
    pub(crate) fn sectors(&self) -> Sectors {
        Sectors::new(self.chunks * self.len)
    }

    /// The sectors that it has of each of its chunks, as the layout counts them.
    pub(crate) fn starts(&self) -> impl Iterator<Item = Lba> {
        let (chunk, offset) = (self.chunk, self.offset);
        (self.first..self.first + self.chunks).map(move |at| Lba::new(at * chunk + offset))
    }

    /// The stripes that it has parts of.
    pub(crate) fn stripes(&self, layout: &Layout) -> std::ops::Range<u64> {
        let (width, drives) = (layout.spec().width() as u64, layout.spec().drives() as u64);
        let end = (self.first + self.chunks) * drives / width;
        self.first * drives / width..end.min(layout.stripes())
    }

    /// Which of its sectors of the cell's drive the cell is. It lies in the window.
    pub(crate) fn index(&self, cell: Cell) -> usize {
        let (at, offset) = (cell.lba.get() / self.chunk, cell.lba.get() % self.chunk);
        ((at - self.first) * self.len + offset - self.offset) as usize
    }

    /// The cell's sector that is number `index` of the window, as the layout counts them.
    pub(crate) fn lba(&self, index: usize) -> Lba {
        let (at, offset) = (index as u64 / self.len, index as u64 % self.len);
        Lba::new((self.first + at) * self.chunk + self.offset + offset)
    }
}

fn gcd(left: u64, right: u64) -> u64 {
    if right == 0 { left } else { gcd(right, left % right) }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use levelhead_array::Row;
    use levelhead_units::DriveIdx;

    use super::*;

    /// Every sector of every drive lies in one window, and every codeword in one.
    #[test]
    fn windows_have_every_codeword_once_and_whole() {
        for (text, chunks) in [
            ("raid5:3,chunk=4KiB", 2_500),
            ("eraid:5+1,e=2,chunk=8KiB", 1_300),
            ("eraid:3+3,e=3,chunk=12KiB", 700),
            ("raid6:4,chunk=8MiB", 3),
            ("raid10:3,chunk=4KiB", 2_501),
            ("raid10:5,chunk=8MiB", 5),
            ("raid1:3,chunk=64KiB", 100),
            ("raid0:4,chunk=64KiB", 100),
        ] {
            let spec: levelhead_array::Spec = text.parse().unwrap();
            let layout = Layout::new(spec, spec.chunk() * chunks);
            let mut seen: BTreeSet<Lba> = BTreeSet::new();
            let mut rows: BTreeSet<Row> = BTreeSet::new();
            let e = spec.expansion() as u64;
            for window in Window::all(&layout) {
                assert!(window.sectors().get() * spec.drives() as u64 <= ALL, "{text}: {window:?}");
                let lbas = (0..window.sectors().as_usize()).map(|index| window.lba(index));
                assert!(lbas.clone().all(|lba| seen.insert(lba)), "{text}: {window:?}");
                let own: BTreeSet<Lba> = lbas.collect();
                for stripe in window.stripes(&layout) {
                    for row in window.offset / e..(window.offset + window.len) / e {
                        let row = Row { stripe, row: row as u32 };
                        assert!(rows.insert(row), "{text}: {row:?} twice");
                        let cells = (0..layout.symbols()).map(|symbol| layout.cell(row, symbol));
                        for cell in cells {
                            assert!(own.contains(&cell.lba), "{text}: {cell:?} in {window:?}");
                            assert_eq!(window.lba(window.index(cell)), cell.lba);
                        }
                    }
                }
                let drive = DriveIdx::new(0);
                assert!(window.starts().all(|lba| {
                    (window.index(Cell { drive, lba }) as u64).is_multiple_of(window.len)
                }));
            }
            assert_eq!(seen.len() as u64, layout.chunks() * spec.chunk().get(), "{text}");
            assert_eq!(rows.len() as u64, layout.stripes() * u64::from(layout.rows()), "{text}");
        }
    }
}
