use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use tempfile::TempDir;

use super::place::Place;
use super::*;
use crate::medium::{Medium, Transfer};

/// Sectors of the drives here, unless a signature needs a larger one.
const SIZE: u64 = 1_000;

fn drive(folder: &TempDir, bytes: u64) -> std::path::PathBuf {
    let path = folder.path().join("a.img");
    File::create(&path).unwrap().set_len(bytes).unwrap();
    path
}

fn plant(path: &Path, bytes: &[u8], at: u64) {
    File::options().write(true).open(path).unwrap().write_all_at(bytes, at).unwrap();
}

fn open(path: &Path) -> Opened {
    Medium::open(path, Transfer::Direct).unwrap().into()
}

fn content_of(bytes: &[u8], offset: u64) -> Option<String> {
    let folder = TempDir::new().unwrap();
    let path = drive(&folder, SIZE * SECTOR);
    plant(&path, bytes, offset);
    content(&open(&path)).unwrap()
}

/// Each magic at each of its places, on a drive that ends with a whole sector, on one that does not, and on a large one: it
/// refuses the drive by name, and erasing leaves nothing of it.
#[test]
fn every_signature_is_known_by_name_and_erased_wherever_it_lies() {
    let folder = TempDir::new().unwrap();
    let (whole, odd) = (SIZE * SECTOR, SIZE * SECTOR + 3 * 512);
    let large = (1_001 << 30) + 512;
    for size in [whole, odd, large] {
        let path = drive(&folder, size);
        for signature in TABLE {
            for place in signature.places {
                let is_tested = match place {
                    Place::Start(at) => (size == whole) == (*at < whole) && size != odd,
                    Place::End { .. } => size != large,
                };
                if let Some(start) = place.on(size).filter(|_| is_tested) {
                    check(&path, signature, start);
                }
            }
        }
    }
}

fn check(path: &Path, signature: &Signature, start: u64) {
    let Signature { what, at, every: (step, count), .. } = signature;
    for (magic, nth) in signature.magics.iter().zip([0, count - 1].into_iter().cycle()) {
        let at = start + at + nth * step;
        plant(path, magic, at);
        let opened = open(path);
        let found = find(&opened).unwrap();
        let name = found.first().map(|found| found.what);
        assert_eq!(name, Some(*what), "{magic:?} at byte {at} of {}", opened.bytes());
        // It has looked again by itself.
        erase(&opened, &found).unwrap();
        let mut left = vec![1; magic.len()];
        File::open(path).unwrap().read_exact_at(&mut left, at).unwrap();
        assert!(left.iter().all(|&byte| byte == 0), "{what} at byte {at} of {}", opened.bytes());
    }
}

/// Where the formats' own programs put them on a drive of this size.
#[test]
fn what_lies_at_the_end_or_in_rings_is_known_by_name() {
    let size = SIZE * SECTOR;
    let old_md = (size & !0xFFFF) - 0x1_0000;
    let new_md = ((size / 512 - 16) & !7) * 512;
    let md: &[u8] = &[0xFC, 0x4E, 0x2B, 0xA9];
    let uberblock: &[u8] = &[0x0C, 0xB1, 0xBA, 0, 0, 0, 0, 0];
    let last_label = (size & !0x3_FFFF) - 0x4_0000;
    for (bytes, offset, what) in [
        (md, old_md, "a member of a Linux MD array"),
        (md, new_md, "a member of a Linux MD array"),
        (b"EFI PART", size - 512, "a GPT partition table"),
        (b"EFI PART", size - 4096, "a GPT partition table"),
        (b"Intel Raid ISM Cfg Sig. 1.3.00", size - 1024, "a member of an Intel RAID"),
        (&[0xDE, 0x11, 0xDE, 0x11], size - 512, "a member of a RAID in DDF format"),
        (&[0xDE, 0x11, 0xDE, 0x11], size - 257 * 512, "a member of a RAID in DDF format"),
        (uberblock, 128 << 10, "a member of a ZFS pool"),
        (uberblock, (384 << 10) + 1024, "a member of a ZFS pool"),
        (uberblock, last_label + (128 << 10) + 7 * 1024, "a member of a ZFS pool"),
    ] {
        assert_eq!(content_of(bytes, offset).as_deref(), Some(what), "{offset}");
    }
}

/// A name of the pool is left in a label without uberblocks, and the other way round.
#[test]
fn label_of_zfs_is_erased_as_a_whole() {
    let folder = TempDir::new().unwrap();
    let path = drive(&folder, SIZE * SECTOR);
    plant(&path, &[7; 100_000], 16 << 10);
    plant(&path, &[0x0C, 0xB1, 0xBA, 0, 0, 0, 0, 0], 132 << 10);
    let opened = open(&path);
    erase(&opened, &find(&opened).unwrap()).unwrap();
    assert_eq!(content(&opened).unwrap(), None);
}

#[test]
fn what_was_erased_can_be_put_back() {
    let folder = TempDir::new().unwrap();
    let size = SIZE * SECTOR + 512;
    let path = drive(&folder, size);
    plant(&path, b"EFI PART", 512);
    plant(&path, b"EFI PART", size - 512);
    let opened = open(&path);
    let found = find(&opened).unwrap();
    let saved = save(&opened, found.iter().map(|found| found.bytes.clone())).unwrap();
    erase(&opened, &found).unwrap();
    restore(&opened, &saved).unwrap();
    assert_eq!(find(&opened).unwrap(), found);
}

#[test]
fn what_has_no_signature_is_told_by_its_first_sector() {
    assert_eq!(content_of(&[0], 0), None);
    let data = |sector: u64| Some(format!("data: sector {sector} is not zero"));
    assert_eq!(content_of(&[1], 77), data(0));
    assert_eq!(content_of(&[1], SIZE * 4096 - 1), data(SIZE - 1));
    // Every seventh or eighth sector between the ends is looked at.
    assert_eq!(content_of(&[1; 8 * 4096], 501 * 4096), data(507));
    assert_eq!(content_of(&[1], 278 * 4096 + 9), data(278));
    assert_eq!(content_of(&[1], 257 * 4096), None, "it lies between two that are looked at");
}
