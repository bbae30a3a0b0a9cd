//! What may become of a damaged disk: it is checked, repaired, mounted, read, written and scrubbed. Nothing of it may panic, ask
//! without an end, or write where nothing may be written; whether anything succeeds is another matter.
//!
//! The bytes of an input decide what is damaged and what is asked, so that the same story is told by a seed and by a fuzzer
//! (`fuzz/fuzz_targets/filesystem_images.rs`).

mod damage;
mod disk;
mod input;
mod mounted;
mod template;
mod visit;

use levelhead_erasure::Kernel;
use levelhead_fs::MountMode;
use levelhead_fs::check::{CheckOptions, Depth, Repair, Report, check, survey};
use levelhead_fs::inspect::{Inspector, read_journal, superblock_copies};
use levelhead_units::Lba;

use self::damage::{damage, superblock};
use self::disk::Disk;
use self::input::Input;
use self::mounted::Mounted;
pub(crate) use self::template::{Template, templates};
use self::visit::visit;

/// The most that is damaged in one story.
const DAMAGE_MAX: usize = 12;

/// What a story has come to.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Told {
    /// Whether there was still a filesystem.
    pub(crate) was_found: bool,
    /// Problems that the check has found.
    pub(crate) problems: u64,
    /// Problems that were left by a repair.
    pub(crate) left: u64,
    /// Requests that were answered well over the mount.
    pub(crate) answered: u64,
    /// Requests that were answered with an error.
    pub(crate) failed: u64,
}

/// Tells the story of an input.
pub(crate) fn tell(templates: &[Template], bytes: &[u8]) -> Told {
    let mut input = Input::new(bytes);
    let template = &templates[input.below(templates.len())];
    let mut disk = template.disk.fresh();
    for _ in 0..1 + input.below(DAMAGE_MAX) {
        damage(&mut disk, template, &mut input);
    }
    let mut told = Told::default();
    look(&disk, &mut told);
    show(&disk, &mut input.clone());
    if superblock(&disk).is_none() {
        return told;
    }
    told.was_found = true;
    mend(&disk, &mut input.clone(), &mut told);
    read(&disk, &mut input.clone(), &mut told);
    write(&disk, &mut input, &mut told);
    told
}

/// Checks without a repair: nothing is written.
fn look(disk: &Disk, told: &mut Told) {
    let kernel = Kernel::best();
    let options = CheckOptions { depth: Depth::Data, ..CheckOptions::new(kernel) };
    if let Ok(report) = check(&mut disk.read_only(), &options) {
        told.problems = report.problems;
        assert_eq!(report.left(), report.problems, "nothing is repaired");
    }
    if superblock(disk).is_some_and(|superblock| superblock.is_clean) {
        drop(survey(&mut disk.read_only(), kernel));
    }
}

/// Shows superblocks, journal, a file and some sectors: nothing is written.
fn show(disk: &Disk, input: &mut Input<'_>) {
    drop(superblock_copies(&mut disk.read_only()));
    drop(read_journal(&mut disk.read_only()));
    let mut disk = disk.read_only();
    let Ok(mut inspector) = Inspector::open(&mut disk, Kernel::best()) else { return };
    drop(inspector.counts());
    for path in [&b"folder/inner/large"[..], b"holes", b"long", b"../folder/./again"] {
        if let Ok(found) = inspector.file(path) {
            drop(inspector.path_of(found.number));
        }
    }
    for _ in 0..4 {
        drop(inspector.sector(Lba::new(input.u16().into())));
    }
}

/// Repairs: what is left is found once more; what is clean stays so, also after it was mounted and used.
fn mend(disk: &Disk, input: &mut Input<'_>, told: &mut Told) {
    let mut disk = disk.fresh();
    let options = CheckOptions { depth: Depth::Data, ..CheckOptions::new(Kernel::best()) };
    let repairs = CheckOptions { repair: Repair::All, ..options };
    let Ok(report) = check(&mut disk, &repairs) else { return };
    told.left = report.left();
    assert_clean(&disk, &options, &report, "after a repair");
    let superblock = superblock(&disk).expect("it was repaired");
    if !report.is_clean() || !superblock.may_write() {
        return;
    }
    let mode = MountMode::ReadWrite;
    let mut mounted = Mounted::new(disk.fresh(), superblock, mode, input.u64());
    visit(&mut mounted, input, &mut Told::default());
    assert_clean(&mounted.unmount(), &options, &report, "after it was used");
}

/// What a report calls clean is clean in the next one.
fn assert_clean(disk: &Disk, options: &CheckOptions, report: &Report, when: &str) {
    let Ok(later) = check(&mut disk.read_only(), options) else {
        panic!("it could be repaired and cannot be checked {when}");
    };
    if report.is_clean() {
        let first = later.listed.first();
        assert!(later.is_clean(), "clean, and not {when}: {first:?}");
    }
}

/// Mounts to read: nothing is written.
fn read(disk: &Disk, input: &mut Input<'_>, told: &mut Told) {
    let Some(superblock) = superblock(disk) else { return };
    let mode = MountMode::ReadOnly;
    let mut mounted = Mounted::new(disk.read_only(), superblock, mode, input.u64());
    visit(&mut mounted, input, told);
    drop(mounted.unmount());
}

/// Mounts to write, and looks what is left of it after that.
fn write(disk: &Disk, input: &mut Input<'_>, told: &mut Told) {
    let Some(superblock) = superblock(disk) else { return };
    if !superblock.may_write() {
        return;
    }
    let mode = MountMode::ReadWrite;
    let mut mounted = Mounted::new(disk.fresh(), superblock, mode, input.u64());
    visit(&mut mounted, input, told);
    let disk = mounted.unmount();
    look(&disk, &mut Told::default());
}
