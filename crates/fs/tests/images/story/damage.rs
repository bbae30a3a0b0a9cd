//! Damage as an input says: bytes are changed, and checksums made right for most of it, so that what is behind them is reached.

use levelhead_fs::INODES;
use levelhead_fs::format::inode::INODE;
use levelhead_fs::format::superblock::Superblock;
use levelhead_fs::format::unit::{HEAD, Head, Sector};
use levelhead_fs::sums::sum_of;
use levelhead_units::{Lba, SECTOR_SIZE};

use super::disk::Disk;
use super::input::Input;
use super::template::Template;

/// Places of fields of an inode whose numbers others trust.
const INODE_FIELDS: [usize; 14] = [0, 4, 16, 20, 24, 84, 85, 96, 104, 112, 114, 116, 118, 126];

/// Places of fields of a superblock that cannot all be what they like.
const SUPERBLOCK_FIELDS: [usize; 16] =
    [20, 48, 72, 80, 88, 89, 90, 96, 104, 112, 120, 136, 144, 152, 160, 208];

/// Damages a disk once.
pub(crate) fn damage(disk: &mut Disk, template: &Template, input: &mut Input<'_>) {
    match input.u8() % 16 {
        0 => {
            let lba = any_sector(template, input);
            change(disk, lba, |sector| spoil(sector, template, input));
        }
        1 => drop(disk.bad.insert(any_sector(template, input).get())),
        2 => disk.put(any_sector(template, input), &[0; SECTOR_SIZE]),
        3 => {
            let copies = template.superblock.geometry.copies_of(any_lead(template, input));
            let lba = input.pick(&copies);
            change(disk, lba, |sector| spoil(sector, template, input));
        }
        4 => {
            let from = any_lead(template, input);
            let to = any_lead(template, input);
            let bytes = disk.sector(from);
            put_unit(disk, template, to, bytes);
        }
        5 => change_superblocks(disk, template, input),
        6 | 12 => change_descriptor(disk, template, input),
        7 => change_data(disk, template, input),
        8..=11 => change_inode(disk, template, input),
        _ => {
            let lead = any_lead(template, input);
            let mut bytes = disk.sector(lead);
            spoil(&mut bytes[HEAD..], template, input);
            put_unit(disk, template, lead, bytes);
        }
    }
}

fn any_sector(template: &Template, input: &mut Input<'_>) -> Lba {
    let written = template.disk.written();
    Lba::new(written[input.below(written.len())])
}

fn any_lead(template: &Template, input: &mut Input<'_>) -> Lba {
    template.leads[input.below(template.leads.len())]
}

fn change(disk: &mut Disk, lba: Lba, how: impl FnOnce(&mut Sector)) {
    let mut bytes = disk.sector(lba);
    how(&mut bytes);
    disk.put(lba, &bytes);
}

/// All copies of a unit have these bytes, with a head that is right.
fn put_unit(disk: &mut Disk, template: &Template, lead: Lba, mut bytes: Sector) {
    // The head may have been damaged before.
    let Ok(head) = Head::open(&template.disk.sector(lead)) else { return };
    Head { lba: lead, ..head }.seal(&mut bytes);
    for lba in template.superblock.geometry.copies_of(lead) {
        disk.put(lba, &bytes);
    }
}

/// Some bytes are others, mostly where there were some.
fn spoil(bytes: &mut [u8], template: &Template, input: &mut Input<'_>) {
    let used = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    let area =
        if input.u8().is_multiple_of(8) { bytes.len() } else { (used + 16).min(bytes.len()) };
    let at = input.below(area);
    let value = value(template, input);
    let count = input.pick(&[1, 2, 4, 8]).min(bytes.len() - at);
    bytes[at..at + count].copy_from_slice(&value[..count]);
}

/// A number that may be what others expect there.
fn value(template: &Template, input: &mut Input<'_>) -> [u8; 8] {
    let number = match input.u8() % 8 {
        0 => 0,
        1 => u64::MAX,
        2 => 1 << (input.u8() % 64),
        3 => any_lead(template, input).get(),
        4 => template.inodes[input.below(template.inodes.len())],
        5 => any_lead(template, input).get() * INODES as u64 + u64::from(input.u8() % 8),
        6 => u64::from(input.u16()),
        _ => input.u64(),
    };
    number.to_le_bytes()
}

fn change_inode(disk: &mut Disk, template: &Template, input: &mut Input<'_>) {
    let number = template.inodes[input.below(template.inodes.len())];
    let lead = Lba::new(number / INODES as u64);
    // Of a filesystem that was cut off it may be in the journal alone.
    if !template.leads.contains(&lead) {
        return;
    }
    let slot = match input.u8() % 4 {
        0 => usize::from(input.u8()) % INODES,
        _ => (number % INODES as u64) as usize,
    };
    let mut bytes = disk.sector(lead);
    let at = HEAD + slot * INODE;
    match input.u8() % 4 {
        0 => spoil(&mut bytes[at..at + INODE], template, input),
        _ => {
            let (field, value) = (input.pick(&INODE_FIELDS), value(template, input));
            let count = input.pick(&[1, 2, 4, 8]);
            bytes[at + field..][..count].copy_from_slice(&value[..count]);
        }
    }
    put_unit(disk, template, lead, bytes);
}

fn change_superblocks(disk: &mut Disk, template: &Template, input: &mut Input<'_>) {
    let places = template.superblock.geometry.superblocks();
    let mut bytes = disk.sector(places[0]);
    let (field, value) = (input.pick(&SUPERBLOCK_FIELDS), value(template, input));
    let count = input.pick(&[1, 2, 4, 8]);
    bytes[field..field + count].copy_from_slice(&value[..count]);
    let sum = crc32c::crc32c(&bytes[..SECTOR_SIZE - 4]);
    bytes[SECTOR_SIZE - 4..].copy_from_slice(&sum.to_le_bytes());
    let is_for_all = !input.u8().is_multiple_of(4);
    places.iter().take(if is_for_all { 3 } else { 1 }).for_each(|&lba| disk.put(lba, &bytes));
}

/// Both descriptors of a record, or a mark, say something else; their checksums are right.
fn change_descriptor(disk: &mut Disk, template: &Template, input: &mut Input<'_>) {
    if template.descriptors.is_empty() {
        return;
    }
    let lba = template.descriptors[input.below(template.descriptors.len())];
    let right = disk.sector(lba);
    let Ok(head) = Head::open(&right) else { return };
    let mut bytes = right;
    spoil(&mut bytes[HEAD..], template, input);
    let is_twin = |other: &&Lba| disk.sector(**other)[HEAD..] == right[HEAD..];
    let twins: Vec<Lba> = template.descriptors.iter().filter(is_twin).copied().collect();
    for lba in twins {
        // The name of the record is in the head, too.
        let generation = u64::from_le_bytes(bytes[HEAD..HEAD + 8].try_into().expect("8 bytes"));
        Head { lba, generation, ..head }.seal(&mut bytes);
        disk.put(lba, &bytes);
    }
}

/// A sector of a file is another one, and its checksum says that this is right.
fn change_data(disk: &mut Disk, template: &Template, input: &mut Input<'_>) {
    let lba = any_sector(template, input);
    let place = template.superblock.geometry.sum_of(lba);
    if !template.leads.contains(&place.lead) {
        return;
    }
    change(disk, lba, |sector| spoil(sector, template, input));
    let sum = sum_of(template.superblock.filesystem(), lba, &disk.sector(lba));
    let mut sums = disk.sector(place.lead);
    sums[HEAD + 4 * place.at..][..4].copy_from_slice(&sum.to_le_bytes());
    put_unit(disk, template, place.lead, sums);
}

/// The superblock that a mount would find, if it is one of this disk.
pub(crate) fn superblock(disk: &Disk) -> Option<Superblock> {
    let mut disk = disk.read_only();
    levelhead_fs::check::find_superblock(&mut disk).ok()
}
