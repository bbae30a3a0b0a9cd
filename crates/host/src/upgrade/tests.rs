//! Arrays of version 2 as the build before left them are converted, served, and converted back; conversions are cut off anywhere.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use levelhead_array::{HostOrder, Patience, Policy};
use levelhead_block::adapter::Waiting;
use levelhead_block::{BlockDevice, BlockService, Durability, Effort, Request};
use levelhead_erasure::{Kernel, Measured};
use levelhead_testkit::extent;
use tempfile::TempDir;

use super::*;
use crate::assemble::assemble as open_array;
use crate::backend::Io;
use crate::devices::erc::FastFail;
use crate::gate::Bound;
use crate::offline::check::{CheckOptions, check};
use crate::service::{ArrayHandle, ServeOptions};
use crate::starting::AssembleOptions;

/// See its first lines.
const KEPT: &str = include_str!("version2.txt");

const SIZE: usize = 4 << 20;

/// Sectors of the array that were written, and what each of their bytes is.
const WRITTEN: [(u64, u8); 7] =
    [(0, 0x11), (1, 0x22), (2, 0x33), (5, 0x44), (100, 0x55), (445, 0x66), (895, 0x77)];

/// Sectors of the array that are on its bad-sector list.
const BAD: [u64; 3] = [312, 369, 882];

/// The bytes of the three files.
fn kept() -> Vec<Vec<u8>> {
    let mut files = vec![vec![0; SIZE]; 3];
    for line in KEPT.lines().filter(|line| !line.starts_with('#')) {
        let (place, hex) = line.split_once(": ").unwrap();
        let numbers: Vec<usize> = place.split(' ').map(|number| number.parse().unwrap()).collect();
        let &[drive, sector, byte, times] = &numbers[..] else { panic!("{line}") };
        let number = u128::from_str_radix(hex, 16).unwrap();
        let row = number.to_be_bytes().repeat(times);
        let at = sector * SECTOR_SIZE + byte;
        files[drive][at..at + row.len()].copy_from_slice(&row);
    }
    files
}

/// Files in a folder.
struct Shelf {
    dir: TempDir,
    members: Vec<MemberSpec>,
}

impl Shelf {
    fn with(files: &[Vec<u8>]) -> Self {
        let dir = TempDir::new().unwrap();
        let path = |at: usize| dir.path().join(format!("{at}.img"));
        let members: Vec<MemberSpec> =
            (0..files.len()).map(|at| MemberSpec::at(&path(at))).collect();
        let shelf = Self { dir, members };
        shelf.put(files);
        shelf
    }

    fn put(&self, files: &[Vec<u8>]) {
        for (member, bytes) in self.members.iter().zip(files) {
            fs::write(member.path(), bytes).unwrap();
        }
    }

    fn bytes(&self) -> Vec<Vec<u8>> {
        self.members.iter().map(|member| fs::read(member.path()).unwrap()).collect()
    }

    fn convert(&self, to: ArrayVersion) -> Result<Conversion, String> {
        let upgraded = upgrade(Which::Named(&self.members), to);
        upgraded.map(|upgraded| upgraded.conversion).map_err(|error| error.to_string())
    }

    fn opens(&self) -> bool {
        open_array(&self.members, AssembleOptions::default()).is_ok()
    }

    fn serve(&self) -> ArrayHandle {
        let options = ServeOptions {
            policy: Policy::Normal,
            window: 4,
            order: HostOrder::Elevator,
            io: Io::Threads,
            arithmetic: Measured::none(Kernel::best(), &[]),
            bound: Bound::DEFAULT,
            seed: 1,
            patience: Patience::DEFAULT,
            on_event: None,
            verify: None,
            fast_fail: FastFail::Command,
        };
        open_array(&self.members, AssembleOptions::default()).unwrap().serve(options).unwrap()
    }

    /// What the members say of the array.
    fn metadata(&self) -> Metadata {
        let members = open(Which::Named(&self.members)).unwrap();
        let founds = founds_of_three(&members, &self.members).unwrap();
        assemble(&founds).unwrap().metadata
    }
}

fn read(array: &ArrayHandle, lba: u64) -> Option<Vec<u8>> {
    let request = Request::read(extent(lba, 1), Effort::Full);
    let reply = Waiting::new(Arc::new(array.clone())).run(vec![request]).pop().unwrap();
    reply.outcome.is_good().then(|| reply.data.into_buf().as_slice().to_vec())
}

fn write(array: &ArrayHandle, lba: u64, byte: u8) {
    let buf = Buf::copy_of(&[byte; SECTOR_SIZE]);
    let request = Request::write(extent(lba, 1), Durability::Durable, buf);
    let reply = Waiting::new(Arc::new(array.clone())).run(vec![request]).pop().unwrap();
    assert!(reply.outcome.is_good(), "{:?}", reply.outcome);
}

/// Whether every sector is what was written, or bad.
fn assert_data(shelf: &Shelf, bad: &[u64]) {
    let array = shelf.serve();
    for lba in 0..array.size().get() {
        let written = WRITTEN.iter().find(|(at, _)| *at == lba).map_or(0, |(_, byte)| *byte);
        let expected = (!bad.contains(&lba)).then(|| vec![written; SECTOR_SIZE]);
        assert!(read(&array, lba) == expected, "sector {lba}");
    }
    array.stop().unwrap();
    let options = CheckOptions { kernel: Kernel::best() };
    let checked = check(Which::Named(&shelf.members), options, &|_, _| {}).unwrap();
    assert_eq!((checked.codewords.wrong, checked.findings.named.len()), (0, bad.len()));
}

/// What lies between the first and the last 256 sectors.
fn data(files: &[Vec<u8>]) -> Vec<&[u8]> {
    let end = 256 * SECTOR_SIZE;
    files.iter().map(|bytes| &bytes[end..bytes.len() - end]).collect()
}

/// CRC-32C, bit by bit.
fn seal(sector: &mut [u8]) {
    let (bytes, sum) = sector.split_at_mut(SECTOR_SIZE - 4);
    let shift = |crc: u32, _| if crc & 1 == 1 { crc >> 1 ^ 0x82F6_3B78 } else { crc >> 1 };
    let crc = bytes.iter().fold(u32::MAX, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), shift));
    sum.copy_from_slice(&(!crc).to_le_bytes());
}

/// Changes both superblocks of version 2 of a file.
fn change(bytes: &mut [u8], change: impl Fn(&mut [u8])) {
    let last = bytes.len() - SECTOR_SIZE;
    for at in [0, last] {
        change(&mut bytes[at..at + SECTOR_SIZE]);
        seal(&mut bytes[at..at + SECTOR_SIZE]);
    }
}

#[test]
fn array_of_the_build_before_is_converted_and_served_with_its_data_and_its_bad_sectors() {
    let files = kept();
    let shelf = Shelf::with(&files);
    let refused = open_array(&shelf.members, AssembleOptions::default()).unwrap_err().to_string();
    assert!(
        refused.ends_with("run levelhead array upgrade on all members of its array"),
        "{refused}"
    );
    assert_eq!(shelf.convert(ArrayVersion::Two), Ok(Conversion::Unneeded));
    assert_eq!(shelf.bytes(), files);
    assert_eq!(shelf.convert(ArrayVersion::Three), Ok(Conversion::Done));
    assert_eq!(data(&shelf.bytes()), data(&files), "no data moves");
    let converted = shelf.bytes();
    assert_eq!(shelf.convert(ArrayVersion::Three), Ok(Conversion::Unneeded));
    assert_eq!(shelf.bytes(), converted);
    assert_data(&shelf, &BAD);
    let array = shelf.serve();
    write(&array, BAD[0], 0);
    array.stop().unwrap();
    assert_data(&shelf, &BAD[1..]);
}

#[test]
fn members_are_found_in_a_folder_whatever_their_version() {
    let shelf = Shelf::with(&kept());
    fs::write(shelf.dir.path().join("note.txt"), vec![1; 9_000]).unwrap();
    let folders = [PathBuf::from(shelf.dir.path())];
    let which = |array| Which::Among { folders: &folders, array };
    let error = upgrade(which(Some("ff")), ArrayVersion::Three).unwrap_err().to_string();
    assert!(error.ends_with("holds no drive of an array whose UUID begins with ff"), "{error}");
    for (to, done) in [
        (ArrayVersion::Three, Conversion::Done),
        (ArrayVersion::Three, Conversion::Unneeded),
        (ArrayVersion::Two, Conversion::Done),
        (ArrayVersion::Two, Conversion::Unneeded),
    ] {
        let upgraded = upgrade(which(Some("32f9AD0c")), to).unwrap();
        assert_eq!((upgraded.conversion, upgraded.members.len()), (done, 3));
    }
    let other = Shelf::with(&[Vec::new()]);
    let folders = [other.dir.path().to_owned()];
    let which = Which::Among { folders: &folders, array: None };
    let error = upgrade(which, ArrayVersion::Three).unwrap_err().to_string();
    assert!(error.starts_with("no drive of an array is among the 1 file or device"), "{error}");
}

#[test]
fn array_that_was_used_and_went_back_and_forth_says_the_same() {
    let shelf = Shelf::with(&kept());
    shelf.convert(ArrayVersion::Three).unwrap();
    let array = shelf.serve();
    (0..40).for_each(|at| write(&array, 20 * at + 3, 0));
    array.stop().unwrap();
    let (before, files) = (shelf.metadata(), shelf.bytes());
    assert_eq!(shelf.convert(ArrayVersion::Two), Ok(Conversion::Done));
    let back = shelf.bytes();
    assert_eq!(data(&back), data(&files));
    for bytes in &back {
        let is_left =
            |at: usize| version2::is_of_version_3(&bytes[at * SECTOR_SIZE..][..SECTOR_SIZE]);
        assert!(!(0..1_024).any(is_left), "nothing of version 3 is left");
    }
    assert_eq!(shelf.convert(ArrayVersion::Three), Ok(Conversion::Done));
    let after = shelf.metadata();
    let expected = Metadata { base: after.base, members: after.members.clone(), ..before.clone() };
    assert_eq!(after, expected);
    let present = |metadata: &Metadata| -> Vec<_> {
        metadata.members.iter().map(|member| (member.id.uuid, member.membership)).collect()
    };
    assert_eq!(present(&after), present(&before));
    assert_data(&shelf, &BAD);
    // The second time the same bytes: nothing of the first time is left.
    shelf.put(&back);
    shelf.convert(ArrayVersion::Three).unwrap();
    shelf.convert(ArrayVersion::Two).unwrap();
    let heads = |files: &[Vec<u8>]| -> Vec<Vec<u8>> {
        files.iter().map(|bytes| bytes[..SECTOR_SIZE].to_vec()).collect()
    };
    assert_eq!(heads(&shelf.bytes()), heads(&back));
}

/// Stops before every step, and in the middle of every write, of a conversion of these files.
fn cut_everywhere(files: &[Vec<u8>], to: ArrayVersion) {
    let (shelf, copy) = (Shelf::with(files), Shelf::with(files));
    let members = open(Which::Named(&shelf.members)).unwrap();
    let steps = Plan::of(&members, to).unwrap().steps;
    drop(members);
    shelf.convert(to).unwrap();
    let converted = shelf.bytes();
    let is_switch = |step: &Step| match step {
        Step::Write { lba, bytes, .. } => {
            [0, 1_023].contains(&lba.get()) && bytes.iter().any(|&byte| byte != 0)
        }
        Step::Sync { .. } => false,
    };
    let first_switch = steps.iter().position(is_switch).unwrap();
    let last_switch = steps.iter().rposition(is_switch).unwrap();
    assert!(steps.len() > 20, "{} steps", steps.len());
    for (cut, torn) in (0..=steps.len()).flat_map(|cut| [(cut, 0), (cut, 512), (cut, SECTOR_SIZE)])
    {
        copy.put(files);
        let members = open(Which::Named(&copy.members)).unwrap();
        steps[..cut].iter().for_each(|step| step.run(&members).unwrap());
        if let Some(Step::Write { member, lba, bytes }) = steps.get(cut) {
            let is_erased = bytes.iter().all(|&byte| byte == 0);
            if (is_erased && torn > 0) || torn == bytes.len() {
                continue; // What is left of an erased sector begins like nothing.
            }
            // The first bytes alone reach the drive.
            let extent = Extent::new(*lba, Sectors::new((bytes.len() / SECTOR_SIZE) as u64));
            let mut found = members[*member].read_sectors(extent).unwrap();
            let torn = torn.min(bytes.len());
            found[..torn].copy_from_slice(&bytes[..torn]);
            let step = Step::Write { member: *member, lba: *lba, bytes: found };
            step.run(&members).unwrap();
        }
        drop(members);
        let opens = copy.opens();
        match to {
            ArrayVersion::Three if cut == last_switch => {}
            ArrayVersion::Three => assert_eq!(opens, cut > last_switch, "cut {cut}"),
            ArrayVersion::Two if cut == first_switch => {}
            ArrayVersion::Two => assert_eq!(opens, cut < first_switch, "cut {cut}"),
        }
        let again = copy.convert(to);
        assert!(again.is_ok(), "cut {cut}, {torn} bytes: {again:?}");
        for (at, (bytes, expected)) in copy.bytes().iter().zip(&converted).enumerate() {
            let differs = (0..1_024).find(|sector| {
                let range = sector * SECTOR_SIZE..(sector + 1) * SECTOR_SIZE;
                bytes[range.clone()] != expected[range]
            });
            assert_eq!(differs, None, "cut {cut}, {torn} bytes, member {at}");
        }
        assert_eq!(copy.opens(), to == ArrayVersion::Three, "cut {cut}");
    }
}

#[test]
fn conversion_that_is_cut_off_anywhere_is_finished_by_the_next() {
    let files = kept();
    cut_everywhere(&files, ArrayVersion::Three);
    let shelf = Shelf::with(&files);
    shelf.convert(ArrayVersion::Three).unwrap();
    assert_data(&shelf, &BAD);
    cut_everywhere(&shelf.bytes(), ArrayVersion::Two);
}

#[test]
fn member_that_was_changed_after_a_cut_is_refused() {
    let files = kept();
    let shelf = Shelf::with(&files);
    shelf.convert(ArrayVersion::Three).unwrap();
    let converted = shelf.bytes();
    // Served without the third, which was not converted yet.
    fs::write(shelf.members[2].path(), vec![0; SIZE]).unwrap();
    let options = AssembleOptions { degraded: true, ..AssembleOptions::default() };
    let two = Shelf { dir: TempDir::new().unwrap(), members: shelf.members[..2].to_vec() };
    assert!(open_array(&two.members, options).is_ok());
    for at in [1, 128, 255] {
        let mut mixed = vec![converted[0].clone(), converted[1].clone(), files[2].clone()];
        mixed[1][at * SECTOR_SIZE + 30] ^= 1;
        shelf.put(&mixed);
        let error = shelf.convert(ArrayVersion::Three).unwrap_err();
        assert!(error.ends_with("it was used, or changed, apart from them"), "{error}");
        assert_eq!(shelf.bytes(), mixed);
    }
}

#[test]
fn what_cannot_be_converted_is_refused_in_a_sentence_and_nothing_is_written() {
    let files = kept();
    let shelf = Shelf::with(&files);
    let refused = |files: Vec<Vec<u8>>, to: ArrayVersion, words: &str| {
        shelf.put(&files);
        let error = shelf.convert(to).unwrap_err();
        assert!(error.contains(words), "{error}");
        assert!(shelf.bytes() == files, "{words}: written");
    };
    let with = |at: usize, change: &dyn Fn(&mut Vec<u8>)| {
        let mut changed = files.clone();
        change(&mut changed[at]);
        changed
    };
    let three = ArrayVersion::Three;
    let dirty = with(1, &|bytes| change(bytes, |sector| sector[117] = 1));
    refused(dirty, three, "1.img cannot be converted: the array was not stopped cleanly");
    let away = with(0, &|bytes| change(bytes, |sector| sector[256 + 16] = 3));
    refused(away, three, "drive 1 is not present");
    let behind = with(2, &|bytes| change(bytes, |sector| sector[48] -= 1));
    refused(behind, three, "2.img holds old data: it is at generation 6");
    let otherwise = with(2, &|bytes| change(bytes, |sector| sector[90] ^= 1));
    refused(otherwise, three, "have gone different ways");
    let other = with(1, &|bytes| change(bytes, |sector| sector[60] ^= 1));
    refused(other, three, "belong to different arrays");
    let unknown = with(1, &|bytes| change(bytes, |sector| sector[46] = 1));
    refused(unknown, three, "features that this program does not know");
    let newer = with(1, &|bytes| change(bytes, |sector| sector[16] = 4));
    refused(newer, three, "1.img cannot be used: the superblock is of version 4");
    let differing = with(1, &|bytes| {
        bytes[117] = 1;
        seal(&mut bytes[..SECTOR_SIZE]);
    });
    refused(differing, three, "the two superblocks of");
    refused(with(1, &|bytes| bytes.fill(7)), three, "1.img is not a drive of an array");
    refused(with(1, &|bytes| bytes.truncate(SIZE - SECTOR_SIZE)), three, "has shrunk to");
    let twice = vec![files[0].clone(), files[1].clone(), files[1].clone()];
    refused(twice, three, "both say that they are drive 1");
    let torn = with(0, &|bytes| {
        for slot in [768, 832] {
            bytes[slot * SECTOR_SIZE..][..16].copy_from_slice(b"levelhead damage");
            bytes[slot * SECTOR_SIZE + 100] ^= 1;
        }
    });
    refused(torn, three, "the bad-sector list of");
    shelf.put(&files);
    let error = upgrade(Which::Named(&shelf.members[1..]), three).unwrap_err().to_string();
    assert_eq!(error, "drive 0 is missing: all members of an array are converted together");
    let error = upgrade(Which::Named(&shelf.members[2..]), three).unwrap_err().to_string();
    assert!(error.contains("survives the loss of 1 drive, 2 are missing"), "{error}");
    let held = shelf.members[1].open().unwrap();
    let error = shelf.convert(three).unwrap_err();
    assert!(error.contains("is in use"), "{error}");
    drop(held);
    assert_eq!(shelf.bytes(), files);
}

#[test]
fn array_that_is_dirty_degraded_or_lagging_does_not_go_back() {
    let shelf = Shelf::with(&kept());
    shelf.convert(ArrayVersion::Three).unwrap();
    let clean = shelf.bytes();
    let refused = |files: &[Vec<u8>], words: &str| {
        shelf.put(files);
        let error = shelf.convert(ArrayVersion::Two).unwrap_err();
        assert!(error.contains(words), "{error}");
        assert!(shelf.bytes() == files, "{words}: written");
    };
    let array = shelf.serve();
    write(&array, 3, 0);
    let dirty = shelf.bytes();
    array.stop().unwrap();
    refused(&dirty, "the array cannot be converted: the array was not stopped cleanly");
    let mut rot = clean.clone();
    (1..3).for_each(|at| rot[1][at * SECTOR_SIZE + 50] ^= 1);
    refused(&rot, "1.img holds old data: it is at generation 0");
    shelf.put(&clean);
    let two = Shelf { dir: TempDir::new().unwrap(), members: shelf.members[1..].to_vec() };
    let options = AssembleOptions { degraded: true, ..AssembleOptions::default() };
    drop(open_array(&two.members, options).unwrap());
    assert_eq!(
        two.convert(ArrayVersion::Two),
        Err("drive 0 is missing: all members of an array are converted together".to_owned())
    );
}
