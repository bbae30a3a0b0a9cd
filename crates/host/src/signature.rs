//! What a drive holds before it becomes a member: nothing is overwritten without a word.
//!
//! A drive counts as empty if its first and its last mebibyte are zeroes. If they are not, what is there
//! is named where it is of a kind that has a mark at a known place.

use std::io;

use levelhead_block::Buf;
use levelhead_units::{Lba, SECTOR_SIZE, Sectors};

use crate::opened::Opened;

/// What is looked at, at both ends: 1 MiB.
const SPAN: Sectors = Sectors::new(256);

/// A mark by which something is known.
struct Mark {
    offset: usize,
    bytes: &'static [u8],
    what: &'static str,
}

const fn mark(offset: usize, bytes: &'static [u8], what: &'static str) -> Mark {
    Mark { offset, bytes, what }
}

/// Offsets from the drive's first byte, from the formats' own descriptions. Partition tables come last: other
/// things begin with a boot sector, too.
const MARKS: [Mark; 17] = [
    mark(0x438, &[0x53, 0xEF], "an ext2, ext3 or ext4 file system"),
    mark(0, b"XFSB", "an XFS file system"),
    mark(0x1_0040, b"_BHRfS_M", "a btrfs file system"),
    mark(0x400, &[0x10, 0x20, 0xF5, 0xF2], "an F2FS file system"),
    mark(3, b"NTFS    ", "an NTFS file system"),
    mark(3, b"EXFAT   ", "an exFAT file system"),
    mark(0x36, b"FAT", "a FAT file system"),
    mark(0x52, b"FAT32", "a FAT file system"),
    mark(0, b"LUKS\xBA\xBE", "a LUKS volume"),
    mark(512, b"LABELONE", "an LVM physical volume"),
    mark(4086, b"SWAPSPACE2", "swap space"),
    mark(4096, &[0xFC, 0x4E, 0x2B, 0xA9], "a member of a Linux MD array"),
    mark(0, &[0xFC, 0x4E, 0x2B, 0xA9], "a member of a Linux MD array"),
    mark(
        0x1018,
        &[0xC6, 0x85, 0x73, 0xF6, 0x4E, 0x1A, 0x45, 0xCA, 0x82, 0x65],
        "a bcache or bcachefs device",
    ),
    mark(512, b"EFI PART", "a GPT partition table"),
    mark(4096, b"EFI PART", "a GPT partition table"),
    mark(510, &[0x55, 0xAA], "a partition table or a boot sector"),
];

/// What the drive holds, in words that follow "holds"; nothing if it counts as empty.
pub(crate) fn content(medium: &Opened) -> io::Result<Option<String>> {
    let size = medium.size();
    let head = read(medium, Lba::ZERO, size.min(SPAN))?;
    let bytes = head.as_slice();
    let found = MARKS.iter().find(|Mark { offset, bytes: mark, .. }| {
        bytes.get(*offset..).is_some_and(|rest| rest.starts_with(mark))
    });
    if let Some(Mark { what, .. }) = found {
        return Ok(Some((*what).to_owned()));
    }
    let tail_start = size.saturating_sub(SPAN);
    let tail = read(medium, Lba::ZERO + tail_start, size - tail_start)?;
    let at = |buf: &Buf, start: Sectors| {
        let at = buf.as_slice().iter().position(|&byte| byte != 0)?;
        Some(start.bytes().get() + at as u64)
    };
    let first = at(&head, Sectors::ZERO).or_else(|| at(&tail, tail_start));
    Ok(first.map(|byte| format!("data: byte {byte} is not zero")))
}

fn read(medium: &Opened, lba: Lba, sectors: Sectors) -> io::Result<Buf> {
    let mut buf = Buf::zeroed(sectors);
    medium.read(lba, buf.as_mut_slice())?;
    assert_eq!(buf.as_slice().len(), sectors.as_usize() * SECTOR_SIZE);
    Ok(buf)
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::FileExt;

    use tempfile::TempDir;

    use super::*;
    use crate::medium::{Medium, Transfer};

    fn content_of(bytes: &[u8], offset: u64) -> Option<String> {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("a.img");
        Medium::create(&path, Sectors::new(1_000)).unwrap();
        File::options().write(true).open(&path).unwrap().write_all_at(bytes, offset).unwrap();
        content(&Medium::open(&path, Transfer::Direct).unwrap().into()).unwrap()
    }

    #[test]
    fn every_mark_is_known_by_name() {
        for Mark { offset, bytes, what } in &MARKS {
            assert_eq!(content_of(bytes, *offset as u64).as_deref(), Some(*what));
        }
    }

    #[test]
    fn what_has_no_mark_is_told_by_its_first_byte_at_either_end() {
        assert_eq!(content_of(&[0], 0), None);
        let data = |byte: u64| Some(format!("data: byte {byte} is not zero"));
        assert_eq!(content_of(&[1], 77), data(77));
        assert_eq!(content_of(&[1], 1_000 * 4096 - 1), data(1_000 * 4096 - 1));
        assert_eq!(content_of(&[1], 500 * 4096), None, "the middle is not looked at");
    }
}
