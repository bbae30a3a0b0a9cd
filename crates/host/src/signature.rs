//! What a drive holds before it becomes a member: nothing is overwritten without a word, and what is overwritten leaves
//! nothing behind that another program would take for its own.
//!
//! | looked at | for |
//! |---|---|
//! | every place of every signature of the [table] | what is known |
//! | the first and the last mebibyte | anything but zeroes |
//! | 64 sectors between them, at equal distances | anything but zeroes |
//!
//! A drive where none of it is found counts as empty. One that holds a little in its middle alone may do so by
//! mistake; a file system that was used does not.
//!
//! What [`find`] finds is what refuses a drive, and what [`erase`] erases where `--force` takes it; after that it looks
//! again.
//!
//! Formats count from the last byte, and a drive may have some bytes behind its last sector of 4 KiB: a copy of a GPT
//! lies there, for example. They are looked at, and erased, too.

mod place;
mod table;

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;

use levelhead_block::Buf;
use levelhead_units::{Bytes, Lba, SECTOR_SIZE, Sectors};

use self::table::{Signature, TABLE};
use crate::opened::Opened;

/// What is looked at, at both ends: 1 MiB.
const SPAN: Sectors = Sectors::new(256);

/// Sectors that are looked at between the ends.
const SAMPLES: u64 = 64;

/// Sectors that are read at a time: 64 KiB.
const CHUNK: u64 = 16;

const SECTOR: u64 = SECTOR_SIZE as u64;

/// A signature that a drive has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    /// What it is, in words that follow "holds".
    pub(crate) what: &'static str,
    /// The bytes that are erased with it: whole sectors, but for the end of the drive.
    pub(crate) bytes: Range<u64>,
    is_partition_table: bool,
}

/// What the drive holds, in words that follow "holds"; nothing if it counts as empty.
pub(crate) fn content(medium: &Opened) -> io::Result<Option<String>> {
    if let Some(found) = find(medium)?.first() {
        return Ok(Some(found.what.to_owned()));
    }
    let size = medium.size();
    let head = read(medium, Lba::ZERO, size.min(SPAN))?;
    let tail_start = size.saturating_sub(SPAN);
    let tail = read(medium, Lba::ZERO + tail_start, size - tail_start)?;
    let not_zero = |buf: &Buf, start: Sectors| {
        let at = buf.as_slice().iter().position(|&byte| byte != 0)?;
        Some(start + Sectors::new((at / SECTOR_SIZE) as u64))
    };
    let mut first = not_zero(&head, Sectors::ZERO);
    if first.is_none() && tail_start > SPAN {
        let between = (tail_start - SPAN).get();
        let samples = SAMPLES.min(between);
        for sample in 0..samples {
            let at = SPAN + Sectors::new(between * sample / samples);
            first = not_zero(&read(medium, Lba::ZERO + at, Sectors::new(1))?, at);
            if first.is_some() {
                break;
            }
        }
    }
    let first = first.or_else(|| not_zero(&tail, tail_start));
    Ok(first.map(|sector| format!("data: sector {} is not zero", sector.get())))
}

/// All signatures that the drive has. The first one names what it holds.
pub(crate) fn find(medium: &Opened) -> io::Result<Vec<Found>> {
    let mut reader = Reader { medium, chunks: BTreeMap::new() };
    let mut found = Vec::new();
    for signature in TABLE {
        let &Signature { what, at, every: (step, count), is_partition_table, .. } = signature;
        for start in signature.places.iter().filter_map(|place| place.on(medium.bytes())) {
            for magic_at in (0..count).map(|nth| start + at + nth * step) {
                if let Some(magic) = reader.any_of(signature.magics, magic_at)? {
                    let bytes = erased(signature, start, magic_at, magic, medium.bytes());
                    found.push(Found { what, bytes, is_partition_table });
                    if signature.header > 0 {
                        break;
                    }
                }
            }
        }
    }
    Ok(found)
}

/// What is erased of a signature: the sectors with its magic, and its whole header where it has one.
fn erased(signature: &Signature, start: u64, at: u64, magic: &[u8], size: u64) -> Range<u64> {
    let (first, end) = match signature.header {
        0 => (at, at + magic.len() as u64),
        header => (start, start + header),
    };
    first / SECTOR * SECTOR..end.next_multiple_of(SECTOR).min(size)
}

/// Erases signatures, those at the end of the drive first, and makes sure that none is left.
///
/// # Errors
///
/// The drive cannot be read or written, or still has one.
pub(crate) fn erase(medium: &Opened, found: &[Found]) -> io::Result<()> {
    if found.is_empty() {
        return Ok(());
    }
    let mut ranges: Vec<&Range<u64>> = found.iter().map(|found| &found.bytes).collect();
    ranges.sort_by_key(|range| range.start);
    ranges.dedup();
    for range in ranges.into_iter().rev() {
        write_bytes(medium, range.start, &vec![0; (range.end - range.start) as usize])?;
    }
    medium.sync()?;
    if let Some(left) = find(medium)?.first() {
        let sentence = format!("it still holds {} after that was erased", left.what);
        return Err(io::Error::other(sentence));
    }
    if found.iter().any(|found| found.is_partition_table) {
        medium.forget_partitions();
    }
    Ok(())
}

/// Bytes of a drive as they were, to be put back if something goes wrong.
pub(crate) struct Saved(Vec<(u64, Vec<u8>)>);

/// What is about to be erased or overwritten.
pub(crate) fn save(
    medium: &Opened,
    ranges: impl IntoIterator<Item = Range<u64>>,
) -> io::Result<Saved> {
    let read = |range: Range<u64>| Ok((range.start, read_bytes(medium, range)?));
    Ok(Saved(ranges.into_iter().map(read).collect::<io::Result<_>>()?))
}

/// Puts back what was there.
pub(crate) fn restore(medium: &Opened, Saved(saved): &Saved) -> io::Result<()> {
    for (at, bytes) in saved {
        write_bytes(medium, *at, bytes)?;
    }
    medium.sync()
}

/// Reads what signatures are compared with, each part of the drive once.
struct Reader<'a> {
    medium: &'a Opened,
    chunks: BTreeMap<u64, Vec<u8>>,
}

impl Reader<'_> {
    /// Which of these lies at byte `at`.
    fn any_of(&mut self, magics: &'static [&[u8]], at: u64) -> io::Result<Option<&'static [u8]>> {
        for &magic in magics {
            if self.has(magic, at)? {
                return Ok(Some(magic));
            }
        }
        Ok(None)
    }

    fn has(&mut self, magic: &[u8], at: u64) -> io::Result<bool> {
        for (&byte, at) in magic.iter().zip(at..) {
            if at >= self.medium.bytes() || self.byte(at)? != byte {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn byte(&mut self, at: u64) -> io::Result<u8> {
        let start = at / (CHUNK * SECTOR) * (CHUNK * SECTOR);
        if !self.chunks.contains_key(&start) {
            let end = (start + CHUNK * SECTOR).min(self.medium.bytes());
            self.chunks.insert(start, read_bytes(self.medium, start..end)?);
        }
        Ok(self.chunks[&start][(at - start) as usize])
    }
}

/// Bytes from the beginning of a sector to the end of one, or of the drive.
fn read_bytes(medium: &Opened, range: Range<u64>) -> io::Result<Vec<u8>> {
    let (lba, whole) = whole_sectors(medium, &range);
    let mut bytes = read(medium, lba, whole)?.as_slice().to_vec();
    if range.end > medium.size().bytes().get() {
        bytes.extend(medium.read_rest()?);
    }
    Ok(bytes)
}

/// The same for writing.
fn write_bytes(medium: &Opened, at: u64, bytes: &[u8]) -> io::Result<()> {
    let range = at..at + bytes.len() as u64;
    let (lba, whole) = whole_sectors(medium, &range);
    let (sectors, rest) = bytes.split_at(whole.as_usize() * SECTOR_SIZE);
    if !rest.is_empty() {
        medium.write_rest(rest)?;
    }
    if sectors.is_empty() { Ok(()) } else { medium.write(lba, Buf::copy_of(sectors).as_slice()) }
}

/// The whole sectors at the beginning of a range.
fn whole_sectors(medium: &Opened, range: &Range<u64>) -> (Lba, Sectors) {
    let first = Bytes::new(range.start).sectors_exact().expect("it begins with a sector");
    let end = Bytes::new(range.end).sectors_floor().min(medium.size());
    (Lba::ZERO + first, end.saturating_sub(first))
}

fn read(medium: &Opened, lba: Lba, sectors: Sectors) -> io::Result<Buf> {
    let mut buf = Buf::zeroed(sectors);
    if sectors > Sectors::ZERO {
        medium.read(lba, buf.as_mut_slice())?;
    }
    assert_eq!(buf.as_slice().len(), sectors.as_usize() * SECTOR_SIZE);
    Ok(buf)
}

#[cfg(test)]
mod tests;
