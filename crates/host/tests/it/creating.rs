//! Arrays in the making, and what is wrong with some.

use std::fs;
use std::sync::Arc;

use levelhead_array::Spec;
use levelhead_array::metadata::Slot;
use levelhead_block::adapter::{OneByOne, Waiting};
use levelhead_block::{
    BlockDevice, BlockService, Command, Done, Durability, Effort, Memory, Outcome, Reply, Request,
    SectorSet,
};
use levelhead_host::{CreateOptions, FoundState, MemberSpec, create, survey};
use levelhead_testkit::extent;
use levelhead_units::{Lba, Sectors};

use crate::support::{
    CLEAN, Shelf, UNKNOWN, check_content, fill, found_on, gather, make, noise, options, serve,
    size_for,
};

/// The sentence, and that nothing on disk has changed.
fn check_refused(shelf: &Shelf, spec: &str, members: &[MemberSpec], expected: &str) {
    let spec: Spec = spec.parse().unwrap();
    for options in [UNKNOWN, CLEAN, CreateOptions { dry_run: true, ..UNKNOWN }] {
        let options = CreateOptions { force: false, ..options };
        let before = shelf.content();
        let error = create(spec, &members.into(), options).unwrap_err().to_string();
        assert_eq!(error, expected);
        assert!(shelf.content() == before, "something changed: {expected}");
    }
}

#[test]
fn wrong_number_of_drives_is_refused() {
    let shelf = Shelf::new();
    let members = shelf.files(2, 32);
    let [a, b] = [0, 1].map(|at: usize| members[at].path().display().to_string());
    let expected = format!("raid6:2+2,chunk=8KiB needs 4 drives, got 2: {a} {b}");
    check_refused(&shelf, "raid6:2+2,chunk=8KiB", &members, &expected);
}

#[test]
fn same_drive_under_two_names_is_refused() {
    let shelf = Shelf::new();
    let mut members = shelf.files(2, 32);
    let link = shelf.path("link.img");
    fs::hard_link(members[0].path(), &link).unwrap();
    members.push(shelf.named("link.img"));
    let (first, link) = (members[0].path().display().to_string(), link.display());
    let expected = format!("{first} and {link} are the same drive");
    check_refused(&shelf, "raid5:2+1", &members, &expected);
    let mut members = shelf.emulated(3, 32, "");
    members[2] = members[1].clone();
    let expected = format!("{} and {} are the same drive", members[1], members[1]);
    check_refused(&shelf, "raid5:2+1", &members, &expected);
}

#[test]
fn what_is_no_drive_is_refused() {
    let shelf = Shelf::new();
    let mut members = shelf.files(2, 32);
    members.push(shelf.named("missing.img"));
    let missing = shelf.path("missing.img").display().to_string();
    check_refused(&shelf, "raid5:2+1", &members, &format!("{missing} does not exist"));
    members[2] = "/dev/zero".parse().unwrap();
    let expected = "/dev/zero is a character device, not a drive";
    check_refused(&shelf, "raid5:2+1", &members, expected);
    fs::create_dir(shelf.path("folder")).unwrap();
    members[2] = shelf.named("folder");
    let folder = shelf.path("folder").display().to_string();
    let expected = format!("{folder} is a directory, not a drive");
    let error =
        create("raid5:2+1".parse().unwrap(), &members[..].into(), CLEAN).unwrap_err().to_string();
    assert_eq!(error, expected);
}

#[test]
fn drive_that_is_too_small_is_refused() {
    let shelf = Shelf::new();
    let mut members = shelf.files(2, 32);
    members.push(shelf.file("small.img", 1));
    let small = members[2].path().display().to_string();
    let expected =
        format!("{small} has 2052KiB, a drive of raid5:2+1,chunk=8KiB needs at least 2056KiB");
    check_refused(&shelf, "raid5:2+1,chunk=8KiB", &members, &expected);
}

#[test]
fn drive_of_another_array_is_refused_unless_forced() {
    let shelf = Shelf::new();
    let members = shelf.files(3, 32);
    let uuid = make("raid5:2+1,chunk=8KiB", &members, UNKNOWN).uuid;
    let fresh = shelf.emulated(1, 32, "");
    let members = [&fresh[0], &members[1], &members[2]].map(Clone::clone);
    let first = members[1].path().display().to_string();
    let expected = format!(
        "{first} is drive 1 of the array {uuid} (raid5:2+1,chunk=8KiB), only --force takes it"
    );
    check_refused(&shelf, "raid4:2+1,chunk=8KiB", &members, &expected);
    make("raid4:2+1,chunk=8KiB", &members, UNKNOWN);
    assert_eq!(gather(&members).unwrap().spec().to_string(), "raid4:2+1,chunk=8KiB");
}

#[test]
fn drive_with_a_damaged_superblock_is_refused_unless_forced() {
    let shelf = Shelf::new();
    let members = shelf.files(3, 32);
    make("raid5:2+1,chunk=8KiB", &members, UNKNOWN);
    for member in &members {
        let mut bytes = fs::read(member.path()).unwrap();
        let last = bytes.len() - 4096;
        for copy in [0, 255 * 4096, last] {
            bytes[copy + 100] ^= 1;
        }
        fs::write(member.path(), bytes).unwrap();
    }
    let careful = CreateOptions { force: false, ..CLEAN };
    let error =
        create("raid5:2+1".parse().unwrap(), &members[..].into(), careful).unwrap_err().to_string();
    let first = members[0].path().display();
    let start = format!("{first} was a drive of an array (the superblock is damaged: its checksum");
    assert!(error.starts_with(&start), "{error}");
    let error = gather(&members).unwrap_err().to_string();
    assert!(error.contains("cannot be used: the superblock is damaged"), "{error}");
    make("raid5:2+1", &members, UNKNOWN);
}

#[test]
fn drive_in_use_is_refused() {
    let shelf = Shelf::new();
    let members = shelf.files(3, 32);
    make("raid5:2+1,chunk=8KiB", &members, UNKNOWN);
    let assembled = gather(&members).unwrap();
    let first = members[0].path().display().to_string();
    let expected = format!("{first} is in use by another process");
    check_refused(&shelf, "raid5:2+1,chunk=8KiB", &members, &expected);
    assert_eq!(gather(&members).unwrap_err().to_string(), expected);
    drop(assembled);
    assert!(gather(&members).is_ok());
}

#[test]
fn failure_half_way_is_taken_back() {
    let shelf = Shelf::new();
    let mut members = shelf.files(1, 32);
    members.extend(shelf.emulated(1, 32, ""));
    let folder = shelf.path("missing").display().to_string();
    let member = format!("emu:{folder}/a.img?size=4MiB").parse().unwrap();
    members.push(member);
    let before = shelf.content();
    let error =
        create("raid5:2+1".parse().unwrap(), &members[..].into(), CLEAN).unwrap_err().to_string();
    let start = format!("cannot create {folder}/a.img: ");
    assert!(error.starts_with(&start), "{error}");
    assert!(shelf.content() == before, "something changed");
}

#[test]
fn dry_run_says_everything_and_changes_nothing() {
    let shelf = Shelf::new();
    let mut members = shelf.files(2, 33);
    members.extend(shelf.emulated(1, 40, ""));
    let before = shelf.content();
    let options = CreateOptions { dry_run: true, ..UNKNOWN };
    let dry = make("raid5:2+1,chunk=8KiB", &members, options);
    assert!(shelf.content() == before, "something changed");
    let wet = make("raid5:2+1,chunk=8KiB", &members, UNKNOWN);
    assert_eq!(levelhead_host::Created { uuid: wet.uuid, ..dry }, wet);
    assert_eq!(wet.drive_size, Sectors::new(32), "whole chunks of the smallest drive");
    assert_eq!(wet.size, Sectors::new(64));
    assert!(!wet.is_synced, "two of the files hold anything");
    let unused: Vec<u64> = wet.drives.iter().map(|drive| drive.unused.get()).collect();
    assert_eq!(unused, [0, 0, 7]);
    let sizes: Vec<u64> = wet.drives.iter().map(|drive| drive.size.get()).collect();
    assert_eq!(sizes, [33, 33, 40].map(size_for));
    assert_eq!(
        wet.drives.iter().map(|drive| drive.is_new).collect::<Vec<_>>(),
        [false, false, true]
    );
}

#[test]
fn array_of_new_files_or_without_redundancy_is_in_sync_from_the_start() {
    let shelf = Shelf::new();
    assert!(make("raid5:2+1", &shelf.emulated(3, 32, ""), UNKNOWN).is_synced);
    let members = shelf.files(3, 32);
    assert!(!make("raid5:2+1", &members, UNKNOWN).is_synced);
    assert!(make("raid0:3", &members, UNKNOWN).is_synced);
    assert!(make("raid5:2+1", &members, CLEAN).is_synced);
}

/// A file system is not overwritten without a word.
#[test]
fn drive_that_holds_something_is_named_and_left_alone() {
    let shelf = Shelf::new();
    let members = shelf.files(3, 32);
    let mut bytes = vec![0; fs::read(members[1].path()).unwrap().len()];
    members.iter().for_each(|member| fs::write(member.path(), &bytes).unwrap());
    bytes[0x438..0x43A].copy_from_slice(&[0x53, 0xEF]);
    fs::write(members[1].path(), bytes).unwrap();
    let before = shelf.content();
    let spec: Spec = "raid5:2+1,chunk=8KiB".parse().unwrap();
    let careful = CreateOptions { force: false, ..CLEAN };
    let error = create(spec, &members[..].into(), careful).unwrap_err().to_string();
    let name = members[1].path().display();
    let expected = format!("{name} holds an ext2, ext3 or ext4 file system; only --force takes it");
    assert_eq!(error, expected);
    assert!(before == shelf.content(), "something has changed");
    create(spec, &members[..].into(), CLEAN).unwrap();
    gather(&members).unwrap();
}

/// All superblocks are there before any metadata is.
#[test]
fn array_whose_making_was_cut_off_is_none_until_it_has_metadata_somewhere() {
    const SPEC: &str = "raid5:2+1,chunk=8KiB";
    const NONE: &str = "the drives of the array have no metadata: ";
    let shelf = Shelf::new();
    let members = shelf.files(3, 32);
    let uuid = make(SPEC, &members, UNKNOWN).uuid;
    let begun = shelf.snapshot(&members, "begun");
    begun.iter().for_each(|member| shelf.scribble(member, 1, 1, 0));
    let error = gather(&begun).unwrap_err().to_string();
    assert!(error.starts_with(NONE), "{error}");
    let places: Vec<_> = begun.iter().map(|member| member.path().to_owned()).collect();
    let seen = survey(&places).unwrap().arrays.remove(0);
    assert_eq!((seen.uuid, seen.state, seen.generation), (uuid, FoundState::Unclear, 0));
    assert_eq!((seen.spec.to_string().as_str(), seen.is_clean), (SPEC, false));
    assert!(seen.refusal.unwrap().starts_with(NONE));
    assert!(seen.drives.iter().all(|drive| drive.members.len() == 1));
    let careful = CreateOptions { force: false, ..UNKNOWN };
    let error = create(SPEC.parse().unwrap(), &begun[..].into(), careful).unwrap_err().to_string();
    assert!(error.contains(&format!("is drive 0 of the array {uuid}")), "{error}");
    make(SPEC, &begun, UNKNOWN);
    assert!(gather(&begun).unwrap().is_recorded());
    // Where one drive has it, a start gives it to all.
    shelf.scribble(&members[0], 1, 1, 0);
    shelf.scribble(&members[2], 1, 1, 0);
    let assembled = gather(&members).unwrap();
    assert!(!assembled.is_recorded() && assembled.lost().is_empty());
    let array = assembled.serve(options("normal")).unwrap();
    let content = fill(&array, 1);
    array.stop().unwrap();
    assert!(gather(&members).unwrap().is_recorded());
    check_content(&serve(&members, "normal"), &content);
}

/// What is old is not believed, whatever becomes of what is new.
#[test]
fn nothing_of_an_array_is_left_where_another_is_made() {
    let shelf = Shelf::new();
    let members = shelf.files(3, 32);
    make("raid5:2+1,chunk=8KiB", &members, UNKNOWN);
    let array = serve(&members, "normal");
    fill(&array, 1);
    array.stop().unwrap();
    let is_read = |slot: &Slot| matches!(slot, Slot::Read(_));
    assert!(members.iter().all(|member| found_on(member).slots.iter().all(is_read)));
    make("raid5:2+1,chunk=8KiB", &members, UNKNOWN);
    for member in &members {
        let found = found_on(member);
        assert!(is_read(&found.slots[0]) && found.slots[1] == Slot::Nothing);
        assert!(fs::read(member.path()).unwrap()[128 << 12..][..4096] == [0; 4096]);
    }
}

/// A drive that does not store one of its sectors.
struct Flawed {
    inner: Arc<OneByOne<Memory>>,
    flaw: Option<u64>,
}

impl BlockService for Flawed {
    fn size(&self) -> Sectors {
        self.inner.size()
    }

    fn submit(&self, request: Request, done: Done) {
        let flaw = self.flaw.map(Lba::new);
        match request.command {
            Command::Write { extent, .. } if flaw.is_some_and(|flaw| extent.contains(flaw)) => {
                let (unknown, damaged) = (SectorSet::EMPTY, SectorSet::first(extent.sectors));
                done(Reply::bare(Outcome::Done { unknown, damaged }));
            }
            _ => self.inner.submit(request, done),
        }
    }
}

/// C1: whichever copy of a superblock it is, or the metadata.
#[test]
fn drive_that_does_not_store_what_makes_it_a_member_leaves_all_as_they_were() {
    let size = size_for(32);
    for flaw in [0, 255, size - 1, 1] {
        let drive = |at: usize| {
            let inner = Arc::new(OneByOne::new(Memory::new(Sectors::new(size))));
            Arc::new(Flawed { inner, flaw: (at == 1).then_some(flaw) })
        };
        let drives: Vec<Arc<Flawed>> = (0..3).map(drive).collect();
        let all = extent(0, size);
        for (seed, drive) in drives.iter().enumerate() {
            let write = Request::write(all, Durability::Cached, noise(seed as u64, size));
            Waiting::new(Arc::clone(&drive.inner)).run(vec![write]);
        }
        let named = |(at, drive): (usize, &Arc<Flawed>)| {
            MemberSpec::handed_in(&format!("drive {at}"), drive.clone())
        };
        let members: Vec<MemberSpec> = drives.iter().enumerate().map(named).collect();
        let spec = "raid5:2+1,chunk=8KiB".parse().unwrap();
        let error = create(spec, &members[..].into(), UNKNOWN).unwrap_err().to_string();
        assert!(error.starts_with("cannot write to drive 1: "), "{error}");
        for (seed, drive) in drives.iter().enumerate() {
            let read = Request::read(all, Effort::Full);
            let reply = Waiting::new(drive.clone()).run(vec![read]).pop().unwrap();
            let bytes = reply.data.into_buf();
            assert!(bytes.as_slice() == noise(seed as u64, size).as_slice(), "{flaw}: {seed}");
        }
    }
}
