//! The machine over a disk in memory.

use std::collections::BTreeMap;

use levelhead_erasure::Kernel;
use levelhead_testkit::noise;

use crate::bed::Bed;
use crate::format::inode::mode;
use crate::format::ladder::Ladder;
use crate::made::wishes;
use crate::make::Wishes;
use crate::request::{Answer, Changes, Errno, ScrubParts, ScrubPlace, Scrubbed, What};
use crate::{Settings, Update};

const FILE: u32 = mode::FILE | 0o644;

#[test]
fn what_was_written_is_read_and_outlasts_an_unmount() {
    let mut bed = Bed::new(20_000, 1);
    let name = bed.root("a file");
    let inode = bed.make(&name, FILE).inode;
    let bytes: Vec<u8> = (0..1_000_000_u32).map(|at| (at / 7) as u8).collect();
    bed.write(inode, 0, &bytes);
    assert_eq!(bed.read(inode, 0, 2_000_000).unwrap(), bytes);
    bed.sync(Some(inode));
    assert_eq!(bed.read(inode, 4_000, 5_000).unwrap(), bytes[4_000..9_000]);
    let disk = bed.unmount();
    let mut bed = Bed::mount(disk, 2);
    let Answer::Entry(found) = bed.run(What::Lookup(name)) else { panic!("it is there") };
    assert_eq!((found.inode, found.size), (inode, 1_000_000));
    assert_eq!(bed.read(inode, 0, 2_000_000).unwrap(), bytes);
}

#[test]
fn sync_of_a_small_new_file_is_one_durable_write() {
    let mut bed = Bed::new(20_000, 1);
    let name = bed.root("a file");
    let inode = bed.make(&name, FILE).inode;
    bed.write(inode, 0, &[7; 4_096]);
    let flushes = bed.flushes;
    bed.sync(Some(inode));
    assert_eq!(bed.flushes, flushes);
    let mut bed = Bed::mount(bed.cut(), 3);
    assert_eq!(bed.read(inode, 0, 5_000).unwrap(), [7; 4_096]);
}

/// Random writes, cuts and punches of some files against plain memory; now and then everything is unmounted.
#[test]
fn random_contents_are_as_plain_memory_says() {
    for seed in 0..if cfg!(debug_assertions) { 8 } else { 60 } {
        let mut bed = Bed::new(20_000, seed);
        let mut plain: BTreeMap<u64, Vec<u8>> = BTreeMap::new();
        for at in 0..3 {
            let name = bed.root(&format!("file {at}"));
            plain.insert(bed.make(&name, FILE).inode, Vec::new());
        }
        let inodes: Vec<u64> = plain.keys().copied().collect();
        for step in 0..300 {
            let inode = inodes[bed.rng().below(3) as usize];
            let known = plain.get_mut(&inode).unwrap();
            let offset = bed.rng().below(600_000);
            match bed.rng().below(12) {
                0..5 => {
                    let most = if bed.rng().below(4) == 0 { 300_000 } else { 9_000 };
                    let mut bytes = vec![0; 1 + bed.rng().below(most) as usize];
                    bed.rng().fill(&mut bytes);
                    bed.write(inode, offset, &bytes);
                    let end = offset as usize + bytes.len();
                    if known.len() < end {
                        known.resize(end, 0);
                    }
                    known[offset as usize..end].copy_from_slice(&bytes);
                }
                5 => {
                    let changes = Changes { size: Some(offset), ..Changes::default() };
                    let answer = bed.run(What::SetAttributes { inode, changes });
                    assert!(matches!(answer, Answer::Attributes(_)), "{answer:?}");
                    known.resize(offset as usize, 0);
                }
                6 => bed.sync(Some(inode)),
                7 => {
                    let count = 1 + bed.rng().below(200_000);
                    let how = crate::request::Allocation::Punch;
                    let answer = bed.run(What::Allocate { inode, offset, count, how });
                    assert_eq!(answer, Answer::Done);
                    let from = known.len().min(offset as usize);
                    let to = known.len().min((offset + count) as usize);
                    known[from..to].fill(0);
                }
                8 if step % 5 == 0 => {
                    let disk = bed.unmount();
                    bed = Bed::mount(disk, seed + 1_000);
                }
                _ => {
                    let count = bed.rng().below(100_000) as usize;
                    let read = bed.read(inode, offset, count as u32).unwrap();
                    let from = known.len().min(offset as usize);
                    let to = known.len().min(offset as usize + count);
                    assert!(read == known[from..to], "seed {seed}, step {step}: {offset}+{count}");
                }
            }
        }
        for (&inode, known) in &plain {
            assert!(bed.read(inode, 0, 2_000_000).unwrap() == *known, "seed {seed}");
        }
    }
}

/// What a file has been since it was synced last.
pub(crate) struct History {
    states: Vec<Vec<u8>>,
}

impl History {
    /// Of a file that holds this for certain.
    pub(crate) fn of(bytes: Vec<u8>) -> Self {
        Self { states: vec![bytes] }
    }

    pub(crate) fn now(&self) -> &Vec<u8> {
        self.states.last().unwrap()
    }

    /// From now on it may be like this.
    pub(crate) fn note(&mut self, state: Vec<u8>) {
        self.states.push(state);
    }

    /// It was synced.
    pub(crate) fn settle(&mut self) {
        self.states = vec![self.now().clone()];
    }

    /// Whether the bytes are of these states, page by page.
    pub(crate) fn allows(&self, bytes: &[u8]) -> Result<(), String> {
        // What does not fit into one transaction may have come up to a page.
        let is_on_the_way = |pair: &[Vec<u8>]| {
            bytes.len().is_multiple_of(4_096)
                && (pair[0].len()..pair[1].len()).contains(&bytes.len())
        };
        let is_one = self.states.iter().any(|state| state.len() == bytes.len());
        if !is_one && !self.states.windows(2).any(is_on_the_way) {
            let sizes: Vec<usize> = self.states.iter().map(Vec::len).collect();
            return Err(format!("{} bytes and not {sizes:?}", bytes.len()));
        }
        for (page, found) in bytes.chunks(4_096).enumerate() {
            // What is behind the end of a state is zero, should the file be longer.
            let is_of = |state: &Vec<u8>| {
                let known = state.get(page * 4_096..).unwrap_or_default();
                let known = &known[..known.len().min(found.len())];
                *known == found[..known.len()] && found[known.len()..].iter().all(|&byte| byte == 0)
            };
            if !self.states.iter().any(is_of) {
                return Err(format!("page {page} is of none of {} states", self.states.len()));
            }
        }
        Ok(())
    }
}

/// Cuts at any moment: what was synced is there, and what was not is old or new, page by page.
#[test]
fn power_cut_loses_nothing_that_was_synced() {
    let seeds = if cfg!(debug_assertions) { 12 } else { 400 };
    let mut cuts = 0;
    for seed in 0..seeds {
        let mut bed = Bed::new(20_000, seed);
        let mut plain: BTreeMap<u64, History> = BTreeMap::new();
        for at in 0..3 {
            let name = bed.root(&format!("file {at}"));
            let inode = bed.make(&name, FILE).inode;
            plain.insert(inode, History::of(Vec::new()));
        }
        bed.sync(None);
        let inodes: Vec<u64> = plain.keys().copied().collect();
        for step in 0..80 {
            let inode = inodes[bed.rng().below(3) as usize];
            let offset = bed.rng().below(100_000);
            let mut state = plain[&inode].now().clone();
            let what = match bed.rng().below(10) {
                0..5 => {
                    let most = if bed.rng().below(4) == 0 { 200_000 } else { 9_000 };
                    let mut bytes = vec![0; 1 + bed.rng().below(most) as usize];
                    bed.rng().fill(&mut bytes);
                    let end = offset as usize + bytes.len();
                    if state.len() < end {
                        state.resize(end, 0);
                    }
                    state[offset as usize..end].copy_from_slice(&bytes);
                    What::Write { inode, offset, bytes, appends: false }
                }
                5 => {
                    state.resize(offset as usize, 0);
                    let changes = Changes { size: Some(offset), ..Changes::default() };
                    What::SetAttributes { inode, changes }
                }
                6 => {
                    let count = 1 + bed.rng().below(50_000);
                    let from = state.len().min(offset as usize);
                    let to = state.len().min((offset + count) as usize);
                    state[from..to].fill(0);
                    let how = crate::request::Allocation::Punch;
                    What::Allocate { inode, offset, count, how }
                }
                7..9 => What::Sync { inode: Some(inode) },
                _ => What::Read { inode, offset, count: 50_000 },
            };
            let is_sync = matches!(what, What::Sync { .. });
            if !is_sync {
                // From now on it may be there.
                plain.get_mut(&inode).unwrap().note(state);
            }
            let is_cut = bed.rng().below(12) == 0;
            if is_cut {
                bed.ask(what);
                let steps = bed.rng().below(12);
                for _ in 0..steps {
                    bed.step();
                }
                bed = Bed::mount(bed.cut(), seed + 500);
                cuts += 1;
                for (&inode, history) in &mut plain {
                    let bytes = bed.read(inode, 0, 2_000_000).unwrap();
                    if let Err(how) = history.allows(&bytes) {
                        panic!("seed {seed}, step {step}, inode {inode}: {how}");
                    }
                    *history = History::of(bytes);
                }
                continue;
            }
            let answer = bed.run(what);
            assert!(!matches!(answer, Answer::Failed(_)), "{answer:?}");
            if is_sync {
                plain.get_mut(&inode).unwrap().settle();
            }
            for _ in 0..bed.rng().below(4) {
                bed.step();
            }
        }
    }
    println!("{cuts} cuts");
}

/// A file of this many bytes on a disk that was left in order, and where its sectors lie.
fn cold_file(bytes: &[u8]) -> (Bed, u64) {
    cold_file_in(Bed::new(20_000, 9), bytes)
}

fn cold_file_in(mut bed: Bed, bytes: &[u8]) -> (Bed, u64) {
    let name = bed.root("a file");
    let inode = bed.make(&name, FILE).inode;
    bed.write(inode, 0, bytes);
    (Bed::mount(bed.unmount(), 4), inode)
}

#[test]
fn sectors_that_cannot_be_read_are_computed_and_written_anew() {
    let bytes = noise(5, 400_000);
    let (mut bed, inode) = cold_file(&bytes);
    // Of 16 data sectors and 4 redundant ones that follow each other any 4 may be bad.
    let data = bed.find(&bytes);
    for (at, lba) in data.iter().enumerate() {
        if at % 16 < 4 {
            bed.bad.insert(*lba);
        }
    }
    let count = bed.bad.len() as u64;
    assert!(bed.read(inode, 0, 500_000).unwrap() == bytes);
    let status = bed.fs.status();
    assert_eq!((status.sectors_decoded, status.sectors_lost), (count, 0), "{status:?}");
    // Not before the disk has nothing else to do.
    assert_eq!((status.sectors_repaired, bed.bad.len() as u64), (0, count));
    while let Some(at) = bed.fs.deadline()
        && !bed.bad.is_empty()
    {
        bed.wait_until(at);
        while bed.step() {}
    }
    assert!(bed.bad.is_empty(), "they were written anew");
    assert_eq!(bed.fs.status().sectors_repaired, count);
    let disk = bed.unmount();
    let mut bed = Bed::mount(disk, 5);
    assert!(bed.read(inode, 0, 500_000).unwrap() == bytes);
    assert_eq!(bed.fs.status().sectors_decoded, 0);
}

#[test]
fn sector_with_other_bytes_is_never_given() {
    let bytes = noise(5, 400_000);
    let (mut bed, inode) = cold_file(&bytes);
    let data = bed.find(&bytes);
    for lba in data.iter().step_by(7) {
        bed.overwrite(*lba);
    }
    assert!(bed.read(inode, 0, 500_000).unwrap() == bytes);
    assert_eq!(bed.fs.status().sectors_decoded, data.len().div_ceil(7) as u64);
    // More than the code repairs: only what is lost is refused.
    let (mut bed, inode) = cold_file(&bytes);
    for lba in &data[16..21] {
        bed.overwrite(*lba);
    }
    assert_eq!(bed.read(inode, 16 * 4_096, 4_096), Err(Errno::Io));
    assert!(bed.read(inode, 0, 16 * 4_096).unwrap() == bytes[..16 * 4_096]);
    assert!(bed.read(inode, 22 * 4_096, 4_096).unwrap() == bytes[22 * 4_096..23 * 4_096]);
}

#[test]
fn metadata_is_had_from_any_of_its_copies() {
    let bytes = noise(5, 50_000);
    let (mut bed, inode) = cold_file(&bytes);
    let geometry = crate::bed::newest(&bed.disk).unwrap().geometry;
    for lead in (0..geometry.sectors).map(levelhead_units::Lba::new) {
        let is_unit = geometry.may_lead(lead) && bed.is_unit(lead.get());
        if is_unit {
            let copies = geometry.copies_of(lead);
            bed.bad.extend(copies[..2].iter().map(|lba| lba.get()));
        }
    }
    assert!(bed.bad.len() > 10);
    assert!(bed.read(inode, 0, 60_000).unwrap() == bytes);
    assert!(bed.fs.status().sectors_repaired > 0);
}

/// Every file that fits, until there is room for none.
fn fill_disk(bed: &mut Bed, bytes: usize) -> Vec<u64> {
    make_files(bed, "file", bytes, usize::MAX)
}

/// Files of random bytes, until there are as many as wanted or the disk is full.
fn make_files(bed: &mut Bed, name: &str, bytes: usize, most: usize) -> Vec<u64> {
    let mut inodes = Vec::new();
    for at in 0..most {
        let name = bed.root(&format!("{name} {at}"));
        let made = bed.run(What::Make { name, mode: FILE, umask: 0, device: 0 });
        let Answer::Entry(made) = made else {
            assert_eq!(made, Answer::Failed(Errno::NoSpace));
            return inodes;
        };
        let inode = made.inode;
        inodes.push(inode);
        let bytes = noise(5, bytes);
        match bed.run(What::Write { inode, offset: 0, bytes, appends: false }) {
            Answer::Written(_) => {}
            answer => {
                assert_eq!(answer, Answer::Failed(Errno::NoSpace));
                return inodes;
            }
        }
    }
    inodes
}

fn free(bed: &mut Bed) -> u64 {
    match bed.run(What::Room) {
        Answer::Room(room) => room.free,
        other => panic!("{other:?}"),
    }
}

#[test]
fn full_disk_says_so_and_all_of_it_comes_back() {
    for (bytes, seed) in [(100_000, 1), (3_000, 2)] {
        let mut bed = Bed::new(9_000, seed);
        bed.sync(None);
        let before = free(&mut bed);
        let mut counts = Vec::new();
        for _ in 0..3 {
            let inodes = fill_disk(&mut bed, bytes);
            counts.push(inodes.len());
            assert!(free(&mut bed) * 20 < before, "{} of {before} are left", free(&mut bed));
            let answer = bed.run(What::Sync { inode: None });
            assert!(matches!(answer, Answer::Done | Answer::Failed(Errno::NoSpace)), "{answer:?}");
            for (at, &inode) in inodes.iter().enumerate() {
                let name = bed.root(&format!("file {at}"));
                let what = crate::request::Removed::File;
                assert_eq!(bed.run(What::Remove { name, what }), Answer::Done);
                assert_eq!(bed.run(What::Forget { inode, count: 1 }), Answer::Done);
            }
            bed.sync(None);
            let disk = bed.unmount();
            bed = Bed::mount(disk, seed + 1);
        }
        assert!(counts[0] > 5 && counts[2] + 1 >= counts[0], "{counts:?}");
        bed.sync(None);
        let after = free(&mut bed);
        // Units of inodes stay for the next ones.
        assert!(after * 100 > before * 85, "{after} of {before} are left");
    }
}

/// Room for 256 sectors is left before the zone of units of three groups. Files of 261 pages take it with a new coding extent of 255,
/// which is written directly; 6 more would fit behind it, where its redundancy goes, unless units are there.
#[test]
fn files_are_right_whose_coding_extents_end_where_units_begin() {
    let wishes = Wishes { ladder: Ladder::fixed(400, 1).unwrap(), ..wishes(8_080, 3) };
    let mut bed = Bed::made(&wishes, 1);
    for at in 0..16 {
        assert_eq!(make_files(&mut bed, &format!("long {at}"), 400 * 4_096, 1).len(), 1);
        bed.sync(None);
    }
    let inodes = make_files(&mut bed, "short", 261 * 4_096, 2);
    bed.sync(None);
    let bytes = noise(5, 261 * 4_096);
    let mut bed = Bed::mount(bed.unmount(), 2);
    for inode in inodes {
        assert!(bed.read(inode, 0, 261 * 4_096).as_ref() == Ok(&bytes), "some of it is lost");
    }
}

#[test]
fn group_whose_bitmap_is_lost_is_left_alone() {
    let bytes = noise(5, 50_000);
    let (mut bed, inode) = cold_file(&bytes);
    let geometry = crate::bed::newest(&bed.disk).unwrap().geometry;
    for lead in geometry.bitmaps(crate::geometry::GroupIdx(0)) {
        bed.bad.extend(geometry.copies_of(lead).iter().map(|lba| lba.get()));
    }
    let bad = bed.bad.len();
    assert!(bad > 0);
    let name = bed.root("another");
    let read = bed.read;
    let made = bed.run(What::Make { name, mode: FILE, umask: 0, device: 0 });
    assert!(matches!(made, Answer::Entry(_) | Answer::Failed(Errno::Io)), "{made:?}");
    assert!(bed.read - read < 200, "{} sectors read", bed.read - read);
    assert!(bed.read(inode, 0, 60_000).unwrap() == bytes);
}

#[test]
fn neighbour_of_a_small_overwrite_is_computed_from_what_is_still_in_place() {
    let mut bytes = noise(5, 400_000);
    let (mut bed, inode) = cold_file(&bytes);
    let data = bed.find(&bytes);
    // Four that cannot be read, beside two that get other bytes.
    bed.bad.extend(&data[16..20]);
    for page in [20, 22] {
        bed.write(inode, page * 4_096, &[page as u8; 4_096]);
        bytes[page as usize * 4_096..][..4_096].fill(page as u8);
    }
    bed.sync(None);
    let mut bed = Bed::mount(bed.unmount(), 6);
    assert!(bed.read(inode, 0, 500_000).unwrap() == bytes);
    assert_eq!(bed.fs.status().sectors_lost, 0);
}

/// All steps of a scrub, added up.
fn scrub(bed: &mut Bed) -> Scrubbed {
    let (mut place, mut all) = (ScrubPlace::FIRST, Scrubbed::default());
    loop {
        let parts = ScrubParts::ALL;
        let step = match bed.run(What::Scrub { place, parts }) {
            Answer::Scrubbed(step) => step,
            other => panic!("{other:?}"),
        };
        all.read += step.read;
        all.damaged += step.damaged;
        all.repaired += step.repaired;
        all.lost += step.lost;
        match step.next {
            Some(next) => place = next,
            None => return all,
        }
    }
}

#[test]
fn scrub_writes_anew_what_is_bad_and_the_next_one_finds_nothing() {
    let bytes = noise(5, 3_000_000);
    let (mut bed, inode) = cold_file(&bytes);
    let data = bed.find(&bytes);
    let whole = scrub(&mut bed);
    assert_eq!((whole.damaged, whole.repaired, whole.lost), (0, 0, 0));
    assert!(whole.read > data.len() as u64 + 100, "{whole:?}");
    let geometry = crate::bed::newest(&bed.disk).unwrap().geometry;
    for lead in (0..geometry.sectors).map(levelhead_units::Lba::new) {
        if geometry.may_lead(lead) && bed.is_unit(lead.get()) {
            let copies = geometry.copies_of(lead);
            bed.overwrite(copies[0].get());
            bed.bad.insert(copies[2].get());
        }
    }
    for (at, &lba) in data.iter().enumerate() {
        match at % 100 {
            0..2 => drop(bed.bad.insert(lba)),
            7..9 => bed.overwrite(lba),
            _ => {}
        }
    }
    let found = scrub(&mut bed);
    assert!(found.damaged > data.len() as u64 / 25 && found.lost == 0, "{found:?}");
    assert_eq!(found.repaired, found.damaged);
    let again = scrub(&mut bed);
    assert_eq!((again.damaged, again.repaired, again.lost), (0, 0, 0));
    assert!(bed.read(inode, 0, 4_000_000).unwrap() == bytes);
    let mut bed = Bed::mount(bed.unmount(), 7);
    assert!(bed.bad.is_empty() && bed.read(inode, 0, 4_000_000).unwrap() == bytes);
}

#[test]
fn file_with_lost_sectors_is_named_until_they_are_written_or_it_goes() {
    let bytes = noise(5, 400_000);
    let (mut bed, inode) = cold_file(&bytes);
    let data = bed.find(&bytes);
    bed.bad.extend(&data[16..21]);
    let found = scrub(&mut bed);
    assert_eq!((found.damaged, found.repaired, found.lost), (5, 0, 5));
    assert_eq!(bed.fs.status().files_damaged, 1);
    let mut bed = Bed::mount(bed.unmount(), 8);
    bed.bad.extend(&data[16..21]);
    assert_eq!(bed.read(inode, 17 * 4_096, 10), Err(Errno::Io));
    assert_eq!(bed.fs.status().files_damaged, 1);
    bed.write(inode, 16 * 4_096, &bytes[16 * 4_096..21 * 4_096]);
    bed.sync(None);
    let mut bed = Bed::mount(bed.unmount(), 9);
    assert!(bed.read(inode, 0, 500_000).unwrap() == bytes);
    assert_eq!(scrub(&mut bed).lost, 0);
    assert_eq!(bed.fs.status().files_damaged, 0);
}

#[test]
fn redundancy_is_the_same_from_all_data_and_from_what_has_changed() {
    let bytes = noise(5, 1_000_000);
    let mut reads = Vec::new();
    for update in [Update::Scratch, Update::Difference, Update::Sooner] {
        let long = Wishes { ladder: Ladder::fixed(246, 9).unwrap(), ..wishes(20_000, 3) };
        let (bed, inode) = cold_file_in(Bed::made(&long, 9), &bytes);
        let data = bed.find(&bytes);
        let settings = Settings { update, ..Settings::new(Kernel::best()) };
        let mut bed = Bed::mount_with(bed.disk, 3, settings);
        let mut known = bytes.clone();
        for page in [3, 70, 71] {
            bed.write(inode, page * 4_096, &[page as u8; 4_096]);
            known[page as usize * 4_096..][..4_096].fill(page as u8);
        }
        bed.sync(None);
        let before = bed.read;
        let mut bed = {
            let (disk, read) = bed.unmount_counted();
            reads.push(read - before);
            Bed::mount(disk, 4)
        };
        // Of the codeword the changed ones and two others cannot be read.
        bed.bad.extend([3, 70, 71, 100, 101].map(|page| data[page]));
        assert!(bed.read(inode, 0, 2_000_000).unwrap() == known, "{update:?}");
        assert_eq!(bed.fs.status().sectors_lost, 0);
    }
    let [scratch, difference, sooner] = reads[..] else { panic!("three ways") };
    assert!(scratch > 240 && difference < 40 && sooner == difference, "{reads:?}");
}
