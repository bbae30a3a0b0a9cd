//! The same of arrays with checksums.

use std::time::Duration;

use levelhead_array::TagSector;
use levelhead_array::journal::record::checksums;
use levelhead_units::Ratio;

use super::*;
use crate::offline::sums::SumsChecked;

const SPECS: [&str; 3] = [
    "raid5:3,chunk=8KiB,checksums",
    "raid1:2,chunk=8KiB,checksums",
    "raid6:5,chunk=1MiB,checksums",
];

/// What a salvage returns, and the runs that are not sure.
fn salvaged(shelf: &Shelf, members: &[MemberSpec]) -> (Vec<u8>, Vec<(Origin, Extent)>) {
    let to = shelf.dir.path().join("salvaged");
    let _ = fs::remove_file(&to);
    let options = SalvageOptions { kernel: Kernel::best() };
    let salvaged = salvage(Which::Named(members), &to, options, &|_, _| {}).unwrap();
    (fs::read(&to).unwrap(), salvaged.named)
}

fn sums(checked: &Checked) -> SumsChecked {
    checked.sums.expect("the array has checksums")
}

/// A sector of a drive, and the tag sector that has its checksum.
pub(super) struct Tagged {
    member: MemberSpec,
    lba: Lba,
    tag: Lba,
    offset: usize,
}

/// All sectors of an array; none without checksums.
pub(super) fn tagged(members: &[MemberSpec]) -> Vec<Tagged> {
    let array = Offline::open(Which::Named(members)).unwrap();
    let all = array.layout.chunks() * array.layout.spec().chunk().get();
    let one = |lba| array.area.on_drive(Extent::new(lba, Sectors::new(1))).lba;
    let of = |member: &MemberSpec, lba| {
        let tag = array.area.tag_of(lba)?;
        let offset = (lba - tag.covers.lba).as_usize();
        Some(Tagged { member: member.clone(), lba: one(lba), tag: tag.lba, offset })
    };
    let all = (0..all).map(Lba::new);
    members.iter().flat_map(|member| all.clone().filter_map(move |lba| of(member, lba))).collect()
}

/// Waits until redundancy is valid and all tag sectors say what is in place.
pub(super) fn wait_until_folded(array: &ArrayHandle, tagged: &[Tagged]) {
    while array.status().unwrap().synced != Ratio::ONE || !are_folded(tagged) {
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn are_folded(tagged: &[Tagged]) -> bool {
    tagged.chunk_by(|one, next| one.member == next.member).all(|of_drive| {
        let bytes = fs::read(of_drive[0].member.path()).unwrap();
        let sector = |lba: Lba| &bytes[lba.get() as usize * SECTOR_SIZE..][..SECTOR_SIZE];
        of_drive.iter().all(|of| {
            let sum = checksums(std::iter::once(sector(of.lba)))[0];
            TagSector::decode(sector(of.tag))
                .is_some_and(|tag| tag.sums.get(of.offset) == Some(sum))
        })
    })
}

/// Takes the lists away.
fn forget_lists(members: &[MemberSpec]) {
    let array = Offline::open(Which::Named(members)).unwrap();
    let lists: Vec<Extent> = array.there().map(|(_, of)| of.own.list().unwrap()).collect();
    drop(array);
    for (drive, list) in lists.iter().enumerate() {
        list.iter().for_each(|lba| change(members, drive, lba.get(), |of| of.fill(0)));
    }
}

/// Where the tag sector of the array's sector lies.
fn tag_place(members: &[MemberSpec], lba: u64) -> u64 {
    let array = Offline::open(Which::Named(members)).unwrap();
    let (row, symbol) = array.layout.find(Lba::new(lba));
    array.area.tag_of(array.layout.cell(row, symbol).lba).unwrap().lba.get()
}

fn change(members: &[MemberSpec], drive: usize, lba: u64, change: impl FnOnce(&mut [u8])) {
    let path = members[drive].path();
    let mut bytes = fs::read(path).unwrap();
    change(&mut bytes[lba as usize * SECTOR_SIZE..][..SECTOR_SIZE]);
    fs::write(path, bytes).unwrap();
}

#[test]
fn array_with_checksums_that_was_stopped_is_as_it_should_be() {
    for spec in SPECS {
        let shelf = Shelf::filled(spec);
        let checked = look(&shelf.members);
        assert_eq!(named(&checked), [], "{spec}");
        let layout = Offline::open(Which::Named(&shelf.members)).unwrap().layout;
        let rows = layout.stripes() * u64::from(layout.rows());
        let compared = rows * layout.symbols() as u64;
        assert_eq!(sums(&checked), SumsChecked { compared, ..SumsChecked::default() }, "{spec}");
    }
    assert_eq!(look(&Shelf::filled("raid5:3,chunk=8KiB").members).sums, None);
}

#[test]
fn sector_that_has_rotted_is_located_and_salvage_returns_what_it_was() {
    for spec in SPECS {
        let shelf = Shelf::filled(spec);
        let (whole, _) = salvaged(&shelf, &shelf.members);
        let (drive, lba) = place(&shelf.members, 117);
        scribble(&shelf.members, drive, lba);
        let checked = look(&shelf.members);
        let corrupt = (FindingKind::Corrupt, drive.to_string(), Some((lba, 1)), Some(117));
        assert_eq!(named(&checked), [corrupt], "{spec}");
        assert_eq!((checked.codewords.wrong, sums(&checked).corrupt), (1, 1), "{spec}");
        let (got, unsure) = salvaged(&shelf, &shelf.members);
        assert!(got == whole && unsure.is_empty(), "{spec}: {unsure:?}");
        // Without the others it is lost, and never taken as it is.
        let redundant = if spec.starts_with("raid6") { 2 } else { 1 };
        let others = (0..shelf.members.len()).filter(|&at| at != drive);
        let gone: Vec<usize> = others.take(redundant).collect();
        let left = (0..shelf.members.len()).filter(|at| !gone.contains(at));
        let left: Vec<MemberSpec> = left.map(|at| shelf.members[at].clone()).collect();
        let checked = look(&left);
        let lost = (FindingKind::Lost, drive.to_string(), Some((lba, 1)), Some(117));
        assert_eq!(named(&checked).iter().filter(|one| **one == lost).count(), 1, "{spec}");
        let (got, unsure) = salvaged(&shelf, &left);
        let run = (Origin::Lost, Extent::new(Lba::new(117), Sectors::new(1)));
        assert!(unsure.contains(&run), "{spec}: {unsure:?}");
        assert!(got[117 * SECTOR_SIZE..][..SECTOR_SIZE].iter().all(|&byte| byte == 0), "{spec}");
    }
}

#[test]
fn sectors_of_a_bad_tag_sector_have_no_checksum_and_the_others_prove_them() {
    for spec in SPECS {
        let shelf = Shelf::filled(spec);
        forget_lists(&shelf.members);
        let (whole, _) = salvaged(&shelf, &shelf.members);
        let (drive, lba) = place(&shelf.members, 117);
        let tag = tag_place(&shelf.members, 117);
        scribble(&shelf.members, drive, tag);
        let checked = look(&shelf.members);
        assert_eq!((named(&checked), sums(&checked).bad_tags), (vec![], 1), "{spec}");
        assert!((1..=64).contains(&sums(&checked).without), "{spec}: {checked:?}");
        scribble(&shelf.members, drive, lba);
        let mut members = shelf.members.clone();
        members[drive] = with_holes(&shelf.members[drive], &[tag]);
        for members in [&shelf.members, &members] {
            let checked = look(members);
            let wrong = (FindingKind::Mismatch, drive.to_string(), Some((lba, 1)), Some(117));
            assert_eq!((named(&checked), sums(&checked).bad_tags), (vec![wrong], 1), "{spec}");
            let (got, unsure) = salvaged(&shelf, members);
            assert!(got == whole && unsure.is_empty(), "{spec}: {unsure:?}");
        }
    }
}

/// A drive that lost the write of a tag sector alone, on every copy.
#[test]
fn sectors_that_agree_and_do_not_match_their_checksums_are_doubtful() {
    let shelf = Shelf::filled(SPECS[1]);
    let places = [0, 1].map(|drive| (drive, place(&shelf.members, 117).1));
    places.iter().for_each(|&(drive, lba)| change(&shelf.members, drive, lba, |of| of.fill(7)));
    let checked = look(&shelf.members);
    let doubtful =
        |drive: &str, lba| (FindingKind::Doubtful, drive.to_owned(), Some((lba, 1)), Some(117));
    let expected = [doubtful("0", places[0].1), doubtful("1", places[1].1)];
    assert_eq!(named(&checked), expected);
    let (got, unsure) = salvaged(&shelf, &shelf.members);
    assert_eq!(unsure, [(Origin::Doubtful, Extent::new(Lba::new(117), Sectors::new(1)))]);
    assert!(got[117 * SECTOR_SIZE..][..SECTOR_SIZE].iter().all(|&byte| byte == 7));
}

/// A drive that stored other data with its checksum.
#[test]
fn codeword_that_does_not_agree_though_its_sectors_match_is_not_located() {
    let shelf = Shelf::filled(SPECS[0]);
    forget_lists(&shelf.members);
    let (drive, lba) = place(&shelf.members, 117);
    let array = Offline::open(Which::Named(&shelf.members)).unwrap();
    let (row, symbol) = array.layout.find(Lba::new(117));
    let tag = array.area.tag_of(array.layout.cell(row, symbol).lba).unwrap();
    let offset = (array.layout.cell(row, symbol).lba - tag.covers.lba).as_usize();
    drop(array);
    change(&shelf.members, drive, lba, |of| of.fill(7));
    change(&shelf.members, drive, tag.lba.get(), |of| {
        let mut found = TagSector::decode(of).unwrap();
        found.sums.set(offset, checksums(std::iter::once(&[7; SECTOR_SIZE][..]))[0]);
        of.copy_from_slice(&found.encode());
    });
    let checked = look(&shelf.members);
    let [(kind, drives, _, _)] = &named(&checked)[..] else { panic!("{checked:?}") };
    assert_eq!((*kind, drives.as_str()), (FindingKind::Mismatch, "0,1,2"));
    assert_eq!(sums(&checked).corrupt, 0);
}

/// What was written last is on the list, and its tag sectors are older.
#[test]
fn list_counts_before_the_tag_sectors() {
    for spec in SPECS {
        let shelf = Shelf::filled(spec);
        let array = shelf.serve();
        (0..20).for_each(|at| write(&array, 7 * at, 1, 2 + at));
        array.stop().unwrap();
        assert_eq!(named(&look(&shelf.members)), [], "{spec}");
        forget_lists(&shelf.members);
        assert!(sums(&look(&shelf.members)).corrupt > 0, "{spec}: the list had nothing");
    }
}
