//! Checks of arrays whose bytes, drives and journals are as a test wants them.

mod checksums;

use std::collections::BTreeSet;
use std::fs;
use std::sync::Arc;

use levelhead_array::membership::Membership;
use levelhead_array::metadata::Inscription;
use levelhead_array::offline::Content;
use levelhead_array::regions::{Grid, Regions};
use levelhead_array::{Cell, HostOrder, Patience, Policy};
use levelhead_block::adapter::Waiting;
use levelhead_block::{
    BlockDevice, BlockService, Buf, Command, Data, Done, Durability, Outcome, Reply, Request,
    SectorSet,
};
use levelhead_erasure::{Kernel, Measured};
use levelhead_testkit::{extent, noise};
use levelhead_units::{Extent, Lba, SECTOR_SIZE};
use tempfile::TempDir;

use super::check::{CheckOptions, Checked, check};
use super::findings::{Finding, FindingKind};
use super::rings::Rings;
use super::salvage::{Origin, SalvageOptions, salvage};
use super::*;
use crate::assemble::assemble;
use crate::backend::Io;
use crate::create::{CreateOptions, create};
use crate::devices::erc::FastFail;
use crate::gate::Bound;
use crate::service::{ArrayHandle, ServeOptions};
use crate::starting::AssembleOptions;

/// Drives of 4 MiB, in a folder.
struct Shelf {
    dir: TempDir,
    members: Vec<MemberSpec>,
}

impl Shelf {
    fn new(spec: &str) -> Self {
        let dir = TempDir::new().unwrap();
        let parsed: levelhead_array::Spec = spec.parse().unwrap();
        let members: Vec<MemberSpec> = (0..parsed.drives())
            .map(|at| {
                let path = dir.path().join(format!("{at}.img"));
                fs::File::create(&path).unwrap().set_len(4 << 20).unwrap();
                MemberSpec::at(&path)
            })
            .collect();
        create(
            parsed,
            &members[..].into(),
            CreateOptions { assume_clean: !parsed.has_checksums(), ..CreateOptions::default() },
        )
        .unwrap();
        Self { dir, members }
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
        assemble(&self.members, AssembleOptions::default()).unwrap().serve(options).unwrap()
    }

    /// Copies of the drives as they are at this moment, as a crash would leave them.
    fn copies(&self) -> Vec<MemberSpec> {
        let copy = |member: &MemberSpec| {
            let name = member.path().file_name().unwrap().to_str().unwrap();
            let path = self.dir.path().join(format!("copy-{name}"));
            fs::copy(member.path(), &path).unwrap();
            MemberSpec::at(&path)
        };
        self.members.iter().map(copy).collect()
    }

    /// An array full of noise that was stopped.
    fn filled(spec: &str) -> Self {
        let shelf = Self::new(spec);
        let tagged = checksums::tagged(&shelf.members);
        let array = shelf.serve();
        checksums::wait_until_folded(&array, &tagged);
        write(&array, 0, array.size().get(), 1);
        array.stop().unwrap();
        if !tagged.is_empty() {
            let array = shelf.serve();
            checksums::wait_until_folded(&array, &tagged);
            array.stop().unwrap();
        }
        shelf
    }
}

fn write(array: &ArrayHandle, lba: u64, sectors: u64, seed: u64) {
    let buf = Buf::copy_of(&noise(seed, sectors as usize * SECTOR_SIZE));
    let request = Request::write(extent(lba, sectors), Durability::Cached, buf);
    let reply = Waiting::new(Arc::new(array.clone())).run(vec![request]).pop().unwrap();
    assert!(reply.outcome.is_good(), "{:?}", reply.outcome);
}

fn look(members: &[MemberSpec]) -> Checked {
    let options = CheckOptions { kernel: Kernel::best() };
    check(Which::Named(members), options, &|_, _| {}).unwrap()
}

/// Kind, drives, first sector on the drive and number, first of the array.
type Named = (FindingKind, String, Option<(u64, u64)>, Option<u64>);

fn named(checked: &Checked) -> Vec<Named> {
    let of = |finding: &Finding| {
        let on_drive = finding.on_drive.map(|on| (on.lba.get(), on.sectors.get()));
        let in_array = finding.in_array.map(|on| on.lba.get());
        (finding.kind, finding.drives.to_string(), on_drive, in_array)
    };
    checked.findings.named.iter().map(of).collect()
}

/// Flips bits of a sector, of every drive others.
fn scribble(members: &[MemberSpec], drive: usize, lba: u64) {
    let path = members[drive].path();
    let mut bytes = fs::read(path).unwrap();
    bytes[lba as usize * SECTOR_SIZE + 77] ^= 0x40 + drive as u8;
    fs::write(path, bytes).unwrap();
}

/// Where the array's sector lies: the drive, and its sector there.
fn place(members: &[MemberSpec], lba: u64) -> (usize, u64) {
    let array = Offline::open(Which::Named(members)).unwrap();
    let (row, symbol) = array.layout.find(Lba::new(lba));
    let cell = array.layout.cell(row, symbol);
    let at = Extent::new(cell.lba, Sectors::new(1));
    (cell.drive.as_usize(), array.area.on_drive(at).lba.get())
}

#[test]
fn array_that_was_stopped_is_as_it_should_be() {
    for spec in [
        "raid5:3,chunk=8KiB",
        "raid6:5,chunk=4KiB",
        "eraid:3+2,e=2,chunk=16KiB",
        "raid1:3",
        "raid10:3,chunk=8KiB",
        "raid10:4",
        "raid0:3",
        "raid5:3,chunk=1MiB",
    ] {
        let shelf = Shelf::filled(spec);
        let checked = look(&shelf.members);
        assert_eq!(named(&checked), [], "{spec}");
        let layout = Offline::open(Which::Named(&shelf.members)).unwrap().layout;
        let rows = layout.stripes() * u64::from(layout.rows());
        let counts = checked.codewords;
        let is_redundant = layout.spec().redundant() > 0;
        let expected = if is_redundant { (rows, 0) } else { (0, rows) };
        assert_eq!((counts.right, counts.unknown), expected, "{spec}");
        assert_eq!((counts.wrong, counts.unsynced), (0, 0), "{spec}");
    }
}

#[test]
fn byte_that_has_flipped_is_found_and_with_two_redundant_drives_its_drive_named() {
    for (spec, is_located) in [
        ("raid5:3,chunk=8KiB", false),
        ("raid1:2,chunk=8KiB", false),
        ("raid6:5,chunk=8KiB", true),
        ("eraid:3+2,e=2,chunk=8KiB", true),
        ("raid1:3,chunk=8KiB", true),
    ] {
        let shelf = Shelf::filled(spec);
        let (drive, lba) = place(&shelf.members, 117);
        scribble(&shelf.members, drive, lba);
        let checked = look(&shelf.members);
        let [(kind, drives, on_drive, in_array)] = &named(&checked)[..] else {
            panic!("{spec}: {checked:?}")
        };
        assert_eq!((*kind, checked.codewords.wrong), (FindingKind::Mismatch, 1), "{spec}");
        assert_eq!(*drives == drive.to_string(), is_located, "{spec}: {drives}");
        if is_located {
            assert_eq!((*on_drive, *in_array), (Some((lba, 1)), Some(117)), "{spec}");
        }
    }
}

/// What a recovery would put in place counts, and what is there does not.
#[test]
fn journal_of_a_crash_is_laid_over_the_places() {
    for spec in ["raid5:3,chunk=8KiB", "eraid:3+2,e=2,chunk=8KiB", "raid1:2,chunk=8KiB"] {
        let shelf = Shelf::filled(spec);
        let array = shelf.serve();
        (0..20).for_each(|at| write(&array, 7 * at, 3, 2 + at));
        let copies = shelf.copies();
        array.stop().unwrap();
        let offline = Offline::open(Which::Named(&copies)).unwrap();
        let overlay = Rings::read(&offline, &|_| {}).overlay(&offline);
        assert!(!overlay.is_empty(), "{spec}: the journal has nothing");
        let end = Lba::ZERO + offline.metadata.drive_size;
        let mut torn = 0;
        for drive in offline.present().iter() {
            for (lba, _) in overlay.between(drive, Lba::ZERO, end) {
                let at = Extent::new(lba, Sectors::new(1));
                let at = offline.area.on_drive(at).lba.get();
                scribble(&copies, drive.as_usize(), at);
                torn += 1;
            }
        }
        let checked = look(&copies);
        assert_eq!(named(&checked), [], "{spec}: {torn} torn");
        let journal = checked.journal.unwrap();
        assert!(!checked.is_clean && journal.sectors == torn, "{spec}: {journal:?}");
        // Without it they are found.
        let mut wrong = 0;
        let mut codewords = codewords::Codewords::new(&offline.layout, Kernel::best());
        check::read_all(&offline, &Default::default(), &|_| {}, &mut |places| {
            for row in places.rows() {
                let agreement = codewords.judge(places, row, places.had(row));
                wrong += u64::from(agreement != codewords::Agreement::Right);
            }
            std::ops::ControlFlow::Continue(())
        })
        .unwrap();
        assert!(wrong > 0, "{spec}: {torn} torn");
    }
}

/// The ring of a drive that is being filled has what the other one was to get, and a start takes it from there.
#[test]
fn journal_of_a_drive_that_is_being_filled_counts() {
    let shelf = Shelf::filled("raid1:2,chunk=8KiB");
    let array = shelf.serve();
    write(&array, 21, 1, 2);
    let copies = shelf.copies();
    array.stop().unwrap();
    let offline = Offline::open(Which::Named(&copies)).unwrap();
    let overlay = Rings::read(&offline, &|_| {}).overlay(&offline);
    let (row, symbol) = offline.layout.find(Lba::new(21));
    let content = overlay.content(offline.layout.cell(row, symbol)).unwrap();
    let Content::Ring { drive, lba } = content else { panic!("{content:?}") };
    drop(offline);
    scribble(&copies, drive.as_usize(), lba.get());
    fill(&copies, 1 - drive.as_usize(), Filled { to: 3, is_returned: true });
    let checked = look(&copies);
    assert!(named(&checked).iter().all(|(kind, ..)| *kind == FindingKind::Record), "{checked:?}");
    let to = shelf.dir.path().join("to");
    let options = SalvageOptions { kernel: Kernel::best() };
    let salvaged = salvage(Which::Named(&copies), &to, options, &|_, _| {}).unwrap();
    assert_eq!(salvaged.named, []);
    let got = fs::read(&to).unwrap();
    assert!(got[21 * SECTOR_SIZE..][..SECTOR_SIZE] == noise(2, SECTOR_SIZE)[..]);
}

/// A drive that does not give some of its sectors, and says of a whole read only that it failed.
struct Holey {
    bytes: Vec<u8>,
    holes: Vec<u64>,
}

impl BlockService for Holey {
    fn size(&self) -> Sectors {
        Sectors::new((self.bytes.len() / SECTOR_SIZE) as u64)
    }

    fn submit(&self, request: Request, done: Done) {
        let Command::Read { extent, .. } = request.command else { panic!("it is read only") };
        if self.holes.iter().any(|&hole| extent.contains(Lba::new(hole))) {
            let (unknown, damaged) = (SectorSet::EMPTY, SectorSet::first(extent.sectors));
            let data = Data::Buf(Buf::zeroed(extent.sectors));
            return done(Reply { data, ..Reply::bare(Outcome::Done { unknown, damaged }) });
        }
        let start = extent.lba.get() as usize * SECTOR_SIZE;
        let bytes = &self.bytes[start..start + extent.sectors.as_usize() * SECTOR_SIZE];
        let (unknown, damaged) = (SectorSet::EMPTY, SectorSet::EMPTY);
        let data = Data::Buf(Buf::copy_of(bytes));
        done(Reply { data, ..Reply::bare(Outcome::Done { unknown, damaged }) });
    }
}

fn with_holes(member: &MemberSpec, holes: &[u64]) -> MemberSpec {
    let bytes = fs::read(member.path()).unwrap();
    let holey = Holey { bytes, holes: holes.to_vec() };
    MemberSpec::handed_in(&format!("holey {member}"), Arc::new(holey))
}

#[test]
fn sectors_that_a_drive_does_not_give_are_named_and_those_that_nothing_gives_are_lost() {
    let shelf = Shelf::filled("raid5:3,chunk=8KiB");
    let mut members = shelf.members.clone();
    // Sectors 0 and 2 of the array are of one codeword.
    let (one, other) = (place(&members, 0), place(&members, 2));
    let ring =
        Offline::open(Which::Named(&members)).unwrap().drives[2].as_ref().unwrap().own.journal();
    let ring = ring[0].lba.get() + 3;
    members[one.0] = with_holes(&shelf.members[one.0], &[one.1]);
    members[2] = with_holes(&shelf.members[2], &[ring]);
    let checked = look(&members);
    let drive = one.0.to_string();
    let unreadable = (FindingKind::Unreadable, drive.clone(), Some((one.1, 1)), Some(0));
    let of_ring = (FindingKind::Ring, "2".to_owned(), Some((ring, 1)), None);
    assert_eq!(named(&checked), [of_ring, unreadable.clone()]);
    assert_eq!((checked.codewords.wrong, checked.codewords.unknown), (0, 1));
    // A hole in another drive of the codeword.
    members[other.0] = with_holes(&shelf.members[other.0], &[other.1]);
    members[2] = if other.0 == 2 { members[2].clone() } else { shelf.members[2].clone() };
    let checked = look(&members);
    let (also, other_drive) = (Some((other.1, 1)), other.0.to_string());
    assert_eq!(
        named(&checked),
        [
            unreadable,
            (FindingKind::Unreadable, other_drive.clone(), also, Some(2)),
            (FindingKind::Lost, drive, Some((one.1, 1)), Some(0)),
            (FindingKind::Lost, other_drive, also, Some(2)),
        ]
    );
}

#[test]
fn damaged_copy_of_a_superblock_is_found() {
    let shelf = Shelf::filled("raid5:3,chunk=8KiB");
    let last = fs::metadata(shelf.members[0].path()).unwrap().len() / SECTOR_SIZE as u64 - 1;
    for (drive, lba) in [(0, 0), (1, 255), (2, last)] {
        scribble(&shelf.members, drive, lba);
    }
    let checked = look(&shelf.members);
    let at = |drive: &str, lba| (FindingKind::Superblock, drive.to_owned(), Some((lba, 1)), None);
    assert_eq!(named(&checked), [at("0", 0), at("1", 255), at("2", last)]);
    for finding in &checked.findings.named {
        let Finding { detail, .. } = finding;
        assert!(detail.starts_with("the superblock is damaged: its checksum"), "{detail}");
    }
}

/// A crash in the middle of a change leaves a drive one generation behind, or at the one that the run began with.
#[test]
fn metadata_that_cannot_be_read_is_found_and_so_is_what_is_older_than_a_crash_leaves_it() {
    let shelf = Shelf::filled("raid5:3,chunk=8KiB");
    let held = |members: &[MemberSpec], drive: usize| {
        let array = Offline::open(Which::Named(members)).unwrap();
        let of = array.drives[drive].clone().unwrap();
        let held = of.found.word().unwrap().held.unwrap();
        (of.own.slots(), held)
    };
    let (slots, at_first) = held(&shelf.members, 1);
    let is_found = |members: &[MemberSpec], at: usize, detail: &str| {
        let checked = look(members);
        let slot = (slots[at].lba.get(), slots[at].sectors.get());
        let finding = (FindingKind::Metadata, "1".to_owned(), Some(slot), None);
        assert_eq!(named(&checked), [finding]);
        assert_eq!(checked.findings.named[0].detail, detail);
    };
    // The older one.
    let mut members = shelf.members.clone();
    members[1] = with_holes(&members[1], &[slots[1 - at_first.slot].lba.get()]);
    is_found(&members, 1 - at_first.slot, "it cannot be read, or is damaged");
    let but_for_one = |by: u64| {
        record(&shelf.members, &[0, 2], |metadata| {
            metadata.generation = at_first.generation.plus(by);
        });
    };
    but_for_one(1);
    assert_eq!(named(&look(&shelf.members)), []);
    but_for_one(2);
    let newest = at_first.generation.plus(2);
    let detail = format!("it is at generation {}, the array at {newest}", at_first.generation);
    is_found(&shelf.members, at_first.slot, &detail);
    record(&shelf.members, &[0, 2], |metadata| metadata.base = at_first.generation);
    assert_eq!(named(&look(&shelf.members)), []);
}

/// Gives some drives of an array its next metadata, with a change, as the array would.
fn record(members: &[MemberSpec], drives: &[usize], change: impl FnOnce(&mut Metadata)) {
    let array = Offline::open(Which::Named(members)).unwrap();
    let mut metadata = array.metadata.clone();
    metadata.generation = metadata.generation.plus(1);
    change(&mut metadata);
    let metadata = Arc::new(metadata);
    for (drive, of) in array.there().filter(|(drive, _)| drives.contains(&drive.as_usize())) {
        let holder = metadata.members[drive.as_usize()].id;
        let encoded = Inscription { metadata: Arc::clone(&metadata), holder }.encode();
        let held = of.found.word().unwrap().held.unwrap();
        let slot = of.own.slots()[1 - held.slot].lba.get() as usize * SECTOR_SIZE;
        let mut bytes = fs::read(of.member.path()).unwrap();
        bytes[slot..slot + encoded.len()].copy_from_slice(&encoded);
        fs::write(of.member.path(), bytes).unwrap();
    }
}

/// Puts a sector of an array onto its list of damaged ones.
fn put_on_list(members: &[MemberSpec], lba: u64) {
    let array = Offline::open(Which::Named(members)).unwrap();
    let (row, symbol) = array.layout.find(Lba::new(lba));
    let cell = array.layout.cell(row, symbol);
    let all: Vec<usize> = (0..members.len()).collect();
    record(members, &all, |metadata| {
        metadata.damaged.add(cell.drive, Extent::new(cell.lba, Sectors::new(1)));
    });
}

/// Zeroes are as good as a sector that is read: one more drive may be away.
#[test]
fn sector_on_the_list_of_a_drive_that_is_not_there_helps_to_compute_others() {
    for spec in ["raid5:3,chunk=8KiB", "raid6:5,chunk=8KiB"] {
        let shelf = Shelf::filled(spec);
        let array = shelf.serve();
        let extent = Extent::new(Lba::new(21), Sectors::new(1));
        let zeroes = Request::write(extent, Durability::Cached, Buf::zeroed(extent.sectors));
        let reply = Waiting::new(Arc::new(array.clone())).run(vec![zeroes]).pop().unwrap();
        assert!(reply.outcome.is_good(), "{:?}", reply.outcome);
        array.stop().unwrap();
        let (drive, lba) = place(&shelf.members, 21);
        scribble(&shelf.members, drive, lba);
        put_on_list(&shelf.members, 21);
        let options = SalvageOptions { kernel: Kernel::best() };
        let [whole, to] = ["whole", "to"].map(|name| shelf.dir.path().join(name));
        salvage(Which::Named(&shelf.members), &whole, options, &|_, _| {}).unwrap();
        let array = Offline::open(Which::Named(&shelf.members)).unwrap();
        let (row, _) = array.layout.find(extent.lba);
        let others = (0..array.layout.data_symbols())
            .map(|symbol| (symbol, array.layout.cell(row, symbol).drive.as_usize()));
        // As many as are redundant, beside the drive itself.
        let others: Vec<(usize, usize)> = others.filter(|&(_, other)| other != drive).collect();
        let redundant = array.layout.spec().redundant();
        let gone: BTreeSet<usize> = others.iter().map(|&(_, other)| other).collect();
        let gone: Vec<usize> = gone.into_iter().take(redundant).collect();
        let is_left = |at: &usize| *at != drive && !gone.contains(at);
        let left: Vec<MemberSpec> =
            (0..shelf.members.len()).filter(is_left).map(|at| shelf.members[at].clone()).collect();
        let is_computed = |&&(_, other): &&(usize, usize)| gone.contains(&other);
        let computed = others.iter().filter(is_computed);
        let computed: Vec<Lba> =
            computed.map(|&(symbol, _)| array.layout.sector(row, symbol)).collect();
        drop(array);
        let salvaged = salvage(Which::Named(&left), &to, options, &|_, _| {}).unwrap();
        let [whole, got] = [&whole, &to].map(|path| fs::read(path).unwrap());
        for sector in computed {
            let is_named = salvaged.named.iter().any(|(_, extent)| extent.contains(sector));
            assert!(!is_named, "{spec}: {sector:?} in {:?}", salvaged.named);
            let at = sector.get() as usize * SECTOR_SIZE..(sector.get() as usize + 1) * SECTOR_SIZE;
            assert!(whole[at.clone()] == got[at.clone()], "{spec}: {sector:?}");
            assert!(whole[at].iter().any(|&byte| byte != 0), "{spec}: {sector:?}");
        }
    }
}

/// What the array keeps as damaged counts as zeroes, whatever its drive gives, and is never made up.
#[test]
fn sectors_on_the_list_of_damaged_ones_are_named_and_nothing_is_made_of_them() {
    for spec in ["raid5:3,chunk=8KiB", "raid6:5,chunk=8KiB", "raid1:2,chunk=8KiB"] {
        let shelf = Shelf::new(spec);
        let (drive, lba) = place(&shelf.members, 21);
        scribble(&shelf.members, drive, lba);
        assert!(!named(&look(&shelf.members)).is_empty(), "{spec}");
        put_on_list(&shelf.members, 21);
        let checked = look(&shelf.members);
        let kept = (FindingKind::Damaged, drive.to_string(), Some((lba, 1)), Some(21));
        assert_eq!(named(&checked), [kept], "{spec}");
        let mut left = shelf.members.clone();
        for name in ["whole", "without"] {
            let to = shelf.dir.path().join(name);
            let options = SalvageOptions { kernel: Kernel::best() };
            let salvaged = salvage(Which::Named(&left), &to, options, &|_, _| {}).unwrap();
            let run = (Origin::Lost, Extent::new(Lba::new(21), Sectors::new(1)));
            // Of a mirror the other copy is not on the list.
            let expected = if spec.starts_with("raid1:") { vec![] } else { vec![run] };
            assert_eq!(salvaged.named, expected, "{spec}, {name}");
            left.remove(drive);
        }
    }
}

#[test]
fn array_without_a_drive_has_what_is_left_checked() {
    let shelf = Shelf::filled("raid6:5,chunk=8KiB");
    let mut left = shelf.members.clone();
    left.remove(1);
    scribble(&left, 0, 300);
    let checked = look(&left);
    assert_eq!((checked.codewords.wrong, checked.codewords.unknown), (1, 0));
    left.remove(3);
    let checked = look(&left);
    assert_eq!(checked.codewords.right, 0);
    assert_eq!(named(&checked), [], "nothing is left to tell it by");
}

/// Says on these drives, of those of the array, that one is being filled, and writes noise over its data: below stripe `to` it holds
/// what it should.
fn fill(members: &[MemberSpec], drive: usize, filling: Filled) {
    let Filled { to, is_returned } = filling;
    let array = Offline::open(Which::Named(members)).unwrap();
    let all: Vec<usize> = (0..members.len()).collect();
    let grid = Grid { shift: 0, regions: array.layout.stripes() };
    record(members, &all, |metadata| {
        let member = &mut metadata.members[drive];
        member.membership = Membership::Filling { to };
        member.lacks = is_returned.then(|| Regions::none(grid));
    });
    for (at, of) in array.there() {
        let mut bytes = fs::read(of.member.path()).unwrap();
        let layout = &array.layout;
        let data = (0..layout.chunks() * layout.spec().chunk().get()).map(Lba::new);
        let is_beyond = |lba: &Lba| layout.symbol(Cell { drive: at, lba: *lba }).0.stripe >= to;
        let is_noise = at.as_usize() == drive && !is_returned;
        for lba in data.filter(|lba| is_noise && is_beyond(lba)) {
            let at = array.area.on_drive(Extent::new(lba, Sectors::new(1))).lba.get() as usize;
            bytes[at * SECTOR_SIZE..(at + 1) * SECTOR_SIZE].fill(0xEE);
        }
        fs::write(of.member.path(), bytes).unwrap();
    }
}

/// How far a drive is filled.
#[derive(Clone, Copy)]
struct Filled {
    to: u64,
    /// Whether it was the array's before: it is known what it lacks.
    is_returned: bool,
}

#[test]
fn drive_that_is_being_filled_is_not_held_against_the_others() {
    for spec in ["raid5:3,chunk=8KiB", "raid6:5,chunk=8KiB", "raid1:2,chunk=8KiB", "raid10:3"] {
        let shelf = Shelf::filled(spec);
        let options = SalvageOptions { kernel: Kernel::best() };
        let [whole, to] = ["whole", "to"].map(|name| shelf.dir.path().join(name));
        salvage(Which::Named(&shelf.members), &whole, options, &|_, _| {}).unwrap();
        for drive in 0..2 {
            let shelf = Shelf::filled(spec);
            fill(&shelf.members, drive, Filled { to: 3, is_returned: false });
            assert_eq!(named(&look(&shelf.members)), [], "{spec}, drive {drive}");
            let _ = fs::remove_file(&to);
            let salvaged = salvage(Which::Named(&shelf.members), &to, options, &|_, _| {}).unwrap();
            assert_eq!(salvaged.named, [], "{spec}, drive {drive}");
            assert!(fs::read(&whole).unwrap() == fs::read(&to).unwrap(), "{spec}, drive {drive}");
        }
    }
}

/// The drives that had all of it are gone: what was given to the new one, and what one that is back holds, is better than nothing.
#[test]
fn drive_that_is_being_filled_is_salvaged_as_far_as_it_has_held_the_array() {
    let options = SalvageOptions { kernel: Kernel::best() };
    for is_returned in [false, true] {
        let shelf = Shelf::filled("raid1:2,chunk=8KiB");
        let [whole, to] = ["whole", "to"].map(|name| shelf.dir.path().join(name));
        salvage(Which::Named(&shelf.members), &whole, options, &|_, _| {}).unwrap();
        fill(&shelf.members, 1, Filled { to: 3, is_returned });
        let salvaged =
            salvage(Which::Named(&shelf.members[1..]), &to, options, &|_, _| {}).unwrap();
        let (mut whole, got) = (fs::read(&whole).unwrap(), fs::read(&to).unwrap());
        let filled = 3 * 2;
        let size = salvaged.size.get();
        let old = if is_returned { size } else { filled };
        assert_eq!(salvaged.sectors, [0, 0, 0, 0, old, size - old], "{is_returned}");
        whole[old as usize * SECTOR_SIZE..].fill(0);
        assert!(whole == got, "{is_returned}");
    }
}

/// Both slots of every member were written over, and its first superblocks: the last ones are left.
#[test]
fn members_with_nothing_but_superblocks_are_salvaged_as_old() {
    let options = SalvageOptions { kernel: Kernel::best() };
    for spec in ["raid6:5,chunk=8KiB", "raid10:4", "eraid:3+2,e=2,chunk=8KiB"] {
        let shelf = Shelf::filled(spec);
        let [whole, to] = ["whole", "to"].map(|name| shelf.dir.path().join(name));
        salvage(Which::Named(&shelf.members), &whole, options, &|_, _| {}).unwrap();
        for member in &shelf.members {
            let mut bytes = fs::read(member.path()).unwrap();
            bytes[..1 << 20].fill(0);
            fs::write(member.path(), bytes).unwrap();
        }
        let salvaged = salvage(Which::Named(&shelf.members), &to, options, &|_, _| {}).unwrap();
        assert_eq!(salvaged.sectors, [0, 0, 0, 0, salvaged.size.get(), 0], "{spec}");
        assert!(salvaged.refusal.unwrap().contains("have no metadata"), "{spec}");
        assert!(fs::read(&whole).unwrap() == fs::read(&to).unwrap(), "{spec}");
    }
}
