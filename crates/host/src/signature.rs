//! What a drive holds before it becomes a member: nothing is overwritten without a word.
//!
//! | looked at | for |
//! |---|---|
//! | the first and the last mebibyte | marks of what is known, and anything but zeroes |
//! | 64 sectors between them, at equal distances | anything but zeroes |
//!
//! A drive where neither is found counts as empty. One that holds a little in its middle alone may do so by
//! mistake; a file system that was used does not.

use std::io;

use levelhead_block::Buf;
use levelhead_units::{Lba, SECTOR_SIZE, Sectors};

use crate::opened::Opened;

/// What is looked at, at both ends: 1 MiB.
const SPAN: Sectors = Sectors::new(256);

/// Sectors that are looked at between the ends.
const SAMPLES: u64 = 64;

/// A mark by which something is known.
struct Mark {
    offset: usize,
    bytes: &'static [u8],
    what: &'static str,
}

const fn mark(offset: usize, bytes: &'static [u8], what: &'static str) -> Mark {
    Mark { offset, bytes, what }
}

const MD: &str = "a member of a Linux MD array";
const LVM: &str = "an LVM physical volume";
const ZFS: &str = "a member of a ZFS pool";
const GPT: &str = "a GPT partition table";
const SWAP: &str = "swap space";

/// The first bytes of an MD superblock of every version (md_p.h).
const MD_MARK: &[u8] = &[0xFC, 0x4E, 0x2B, 0xA9];

/// Offsets from the drive's first byte, from the formats' own descriptions. Partition tables come last: other
/// things begin with a boot sector, too.
const MARKS: [Mark; 27] = [
    mark(0, b"levelhead disk\0\0", "a levelhead file system"),
    mark(0x438, &[0x53, 0xEF], "an ext2, ext3 or ext4 file system"),
    mark(0, b"XFSB", "an XFS file system"),
    mark(0x1_0040, b"_BHRfS_M", "a btrfs file system"),
    mark(0x400, &[0x10, 0x20, 0xF5, 0xF2], "an F2FS file system"),
    mark(3, b"NTFS    ", "an NTFS file system"),
    mark(3, b"EXFAT   ", "an exFAT file system"),
    mark(0x36, b"FAT", "a FAT file system"),
    mark(0x52, b"FAT32", "a FAT file system"),
    mark(0x8001, b"CD001", "an ISO 9660 file system"),
    mark(0, b"hsqs", "a squashfs file system"),
    mark(0, b"LUKS\xBA\xBE", "a LUKS volume"),
    mark(0x4000, b"SKUL\xBA\xBE", "a LUKS volume"),
    mark(0x8000, b"SKUL\xBA\xBE", "a LUKS volume"),
    // The label lies in one of the first four sectors of 512 bytes.
    mark(0, b"LABELONE", LVM),
    mark(512, b"LABELONE", LVM),
    mark(1024, b"LABELONE", LVM),
    mark(1536, b"LABELONE", LVM),
    // At the end of a page, of 4 and of 64 KiB.
    mark(4086, b"SWAPSPACE2", SWAP),
    mark(4086, b"SWAP-SPACE", SWAP),
    mark(65_526, b"SWAPSPACE2", SWAP),
    // Versions 1.2 and 1.1; the others lie at the end.
    mark(4096, MD_MARK, MD),
    mark(0, MD_MARK, MD),
    mark(
        0x1018,
        &[0xC6, 0x85, 0x73, 0xF6, 0x4E, 0x1A, 0x45, 0xCA, 0x82, 0x65],
        "a bcache or bcachefs device",
    ),
    mark(512, b"EFI PART", GPT),
    mark(4096, b"EFI PART", GPT),
    mark(510, &[0x55, 0xAA], "a partition table or a boot sector"),
];

/// A mark that lies at one of many places.
struct Recurring {
    /// Bytes from one place to the next.
    step: usize,
    bytes: &'static [u8],
    what: &'static str,
}

const fn recurring(step: usize, bytes: &'static [u8], what: &'static str) -> Recurring {
    Recurring { step, bytes, what }
}

/// The mark of a ZFS uberblock, in both orders of its bytes.
const UBERBLOCKS: [&[u8]; 2] =
    [&[0x0C, 0xB1, 0xBA, 0, 0, 0, 0, 0], &[0, 0, 0, 0, 0, 0xBA, 0xB1, 0x0C]];

/// Marks at the end of a drive: an MD superblock of version 0.90 lies at a multiple of 64 KiB and one of version 1.0 at
/// one of 4 KiB, a copy of a GPT in the last sector, of 512 bytes or 4 KiB, Intel's in the last but one of 512.
const TAIL: [Recurring; 4] = [
    recurring(4096, MD_MARK, MD),
    recurring(512, b"EFI PART", GPT),
    recurring(512, b"Intel Raid ISM Cfg Sig. ", "a member of an Intel RAID"),
    recurring(512, &[0xDE, 0x11, 0xDE, 0x11], "a member of a RAID in DDF format"),
];

/// What the drive holds, in words that follow "holds"; nothing if it counts as empty.
pub(crate) fn content(medium: &Opened) -> io::Result<Option<String>> {
    let size = medium.size();
    let head = read(medium, Lba::ZERO, size.min(SPAN))?;
    let tail_start = size.saturating_sub(SPAN);
    let tail = read(medium, Lba::ZERO + tail_start, size - tail_start)?;
    if let Some(what) = known(head.as_slice(), tail.as_slice()) {
        return Ok(Some(what.to_owned()));
    }
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

/// What is known by its mark, from the bytes at both ends.
fn known(head: &[u8], tail: &[u8]) -> Option<&'static str> {
    let at = |Mark { offset, bytes, .. }: &&Mark| {
        head.get(*offset..).is_some_and(|rest| rest.starts_with(bytes))
    };
    let recurs = |bytes: &[u8], mark: &Recurring| {
        bytes.chunks(mark.step).any(|part| part.starts_with(mark.bytes))
    };
    let found = MARKS.iter().find(at).map(|mark| mark.what);
    let found = found.or_else(|| {
        // A ring of uberblocks fills the second half of each of the labels, two at either end.
        let is_zfs = |bytes: &[u8]| {
            UBERBLOCKS.iter().any(|uberblock| recurs(bytes, &recurring(1024, uberblock, ZFS)))
        };
        (is_zfs(head) || is_zfs(tail)).then_some(ZFS)
    });
    found.or_else(|| TAIL.iter().find(|mark| recurs(tail, mark)).map(|mark| mark.what))
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

    /// Sectors of the drives here.
    const SIZE: u64 = 1_000;

    fn content_of(bytes: &[u8], offset: u64) -> Option<String> {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("a.img");
        Medium::create(&path, Sectors::new(SIZE)).unwrap();
        File::options().write(true).open(&path).unwrap().write_all_at(bytes, offset).unwrap();
        content(&Medium::open(&path, Transfer::Direct).unwrap().into()).unwrap()
    }

    #[test]
    fn every_mark_is_known_by_name() {
        for Mark { offset, bytes, what } in &MARKS {
            assert_eq!(content_of(bytes, *offset as u64).as_deref(), Some(*what));
        }
    }

    /// Where the formats' own programs put them on a drive of this size.
    #[test]
    fn what_lies_at_the_end_or_in_rings_is_known_by_name() {
        let size = SIZE * SECTOR_SIZE as u64;
        let old_md = (size & !0xFFFF) - 0x1_0000;
        let sectors = size / 512;
        let new_md = ((sectors - 16) & !7) * 512;
        for (bytes, offset, what) in [
            (MD_MARK, old_md, MD),
            (MD_MARK, new_md, MD),
            (&b"EFI PART"[..], size - 512, GPT),
            (b"EFI PART", size - 4096, GPT),
            (b"Intel Raid ISM Cfg Sig. 1.3.00", size - 1024, "a member of an Intel RAID"),
            (&[0xDE, 0x11, 0xDE, 0x11], size - 512, "a member of a RAID in DDF format"),
            (UBERBLOCKS[0], 128 << 10, ZFS),
            (UBERBLOCKS[1], (128 << 10) + 7 * 1024, ZFS),
            (UBERBLOCKS[0], (384 << 10) + 1024, ZFS),
        ] {
            assert_eq!(content_of(bytes, offset).as_deref(), Some(what), "{offset}");
        }
    }

    #[test]
    fn what_has_no_mark_is_told_by_its_first_sector() {
        assert_eq!(content_of(&[0], 0), None);
        let data = |sector: u64| Some(format!("data: sector {sector} is not zero"));
        assert_eq!(content_of(&[1], 77), data(0));
        assert_eq!(content_of(&[1], SIZE * 4096 - 1), data(SIZE - 1));
        // Every seventh or eighth sector between the ends is looked at.
        assert_eq!(content_of(&[1; 8 * 4096], 501 * 4096), data(507));
        assert_eq!(content_of(&[1], 278 * 4096 + 9), data(278));
        assert_eq!(content_of(&[1], 257 * 4096), None, "it lies between two that are looked at");
    }
}
