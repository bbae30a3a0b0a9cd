//! Arrays with checksums: what a drive has wrong is never answered, and is repaired.

use std::collections::BTreeSet;

use levelhead_array::{ArrayEvent, Blame, Budget, Cell, Policy, Settings, Spec};
use levelhead_stats::Streams;
use levelhead_units::{DriveIdx, DriveSet, Extent, Lba, Nanos, Sectors};

use crate::runtime::{Runtime, damaged, extent, journaled, settings};

const LAYOUTS: [&str; 5] = [
    "raid5:3+1,chunk=16KiB,checksums",
    "raid6:3+2,chunk=20KiB,checksums",
    "eraid:3+2,e=3,chunk=24KiB,checksums",
    "raid1:2,chunk=16KiB,checksums",
    "raid10:5,chunk=8KiB,checksums",
];

const ONE: Sectors = Sectors::new(1);

struct Bed {
    run: Runtime,
    settings: Settings,
    bytes: Vec<u8>,
    id: u64,
}

impl Bed {
    /// An array that is full of what was written, all of it in place.
    fn new(text: &str, background: Option<Budget>) -> Self {
        let spec: Spec = text.parse().unwrap();
        let plain = settings(spec, 24, Policy::DEFAULT, DriveSet::EMPTY);
        let settings = Settings { background, ..journaled(plain) };
        let run = Runtime::new(&settings, 1);
        let bytes = vec![0; run.array.size().as_usize() * 4096];
        let mut bed = Self { run, settings, bytes, id: 0 };
        bed.write_all(1);
        bed
    }

    fn all(&self) -> Extent {
        Extent::new(Lba::ZERO, self.run.array.size())
    }

    /// Writes every sector, a few at a time.
    fn write_all(&mut self, seed: u64) {
        Streams::new(seed).stream("test/bytes").fill(&mut self.bytes);
        let size = self.all().sectors.get();
        for first in (0..size).step_by(5) {
            let extent = Extent::new(Lba::new(first), Sectors::new(5.min(size - first)));
            let bytes = &self.bytes[first as usize * 4096..][..extent.sectors.as_usize() * 4096];
            self.id += 1;
            self.run.write(self.id, extent, bytes);
            self.run.run_until_quiet();
        }
        self.settle();
    }

    fn settle(&mut self) {
        self.run.run_for(Nanos::from_secs(40));
        assert!(self.run.array.is_quiet());
    }

    /// All that the array gives is what was written.
    fn assert_right(&mut self, context: &str) {
        self.id += 1;
        self.run.read(self.id, self.all());
        self.run.run_until_quiet();
        let (answer, buf) = self.run.take(self.id).unwrap();
        assert!(answer.outcome.is_good(), "{context}: {:?}", answer.outcome);
        assert!(buf.as_slice() == self.bytes, "{context}: other bytes");
    }

    /// The server starts again: memory has no checksum.
    fn restart(&mut self) {
        let drives = std::mem::take(&mut self.run.drives);
        self.run = Runtime::new(&self.settings, 2);
        self.run.drives = drives;
    }

    fn drives(&self) -> usize {
        self.settings.spec.drives()
    }

    fn on_drive(&self, lba: u64) -> Extent {
        self.settings.area.on_drive(Extent::new(Lba::new(lba), ONE))
    }

    fn sectors(&self) -> u64 {
        self.settings.area.size().get()
    }
}

/// A bit of every fourth sector of a drive flips, whichever drive it is, whether or not memory has its checksum.
#[test]
fn sector_that_rots_is_never_answered() {
    for text in LAYOUTS {
        let mut bed = Bed::new(text, None);
        for drive in 0..bed.drives() {
            for lba in (drive as u64..bed.sectors()).step_by(4) {
                let extent = bed.on_drive(lba);
                bed.run.drives[drive].bytes_mut(extent)[77] ^= 1;
            }
            bed.assert_right(&format!("{text}: drive {drive}"));
            bed.restart();
            bed.assert_right(&format!("{text}: drive {drive}, started again"));
            for lba in (drive as u64..bed.sectors()).step_by(4) {
                let extent = bed.on_drive(lba);
                bed.run.drives[drive].bytes_mut(extent)[77] ^= 1;
            }
        }
        assert!(bed.run.array.lost().is_empty());
    }
}

/// A drive has of some sectors what was there before, or what belongs to another one; or its tag sectors are not those that were
/// written, or are none.
#[test]
fn write_that_is_lost_or_lands_elsewhere_is_never_answered() {
    for text in LAYOUTS {
        let mut bed = Bed::new(text, None);
        let before = bed.run.drives.clone();
        bed.write_all(2);
        let mut rng = Streams::new(5).stream("test/faults");
        for (drive, old) in before.iter().enumerate() {
            let after = bed.run.drives[drive].clone();
            for kind in 0..4 {
                for _ in 0..20 {
                    let [lba, other] = [0; 2].map(|_| rng.below(bed.sectors()));
                    let (to, from) = (bed.on_drive(lba), bed.on_drive(other));
                    let tag = bed.settings.area.tag_of(Lba::new(lba)).unwrap().lba;
                    let tag = Extent::new(tag, ONE);
                    let medium = &mut bed.run.drives[drive];
                    match kind {
                        0 => medium.bytes_mut(to).copy_from_slice(old.bytes(to)),
                        1 => medium.bytes_mut(to).copy_from_slice(after.bytes(from)),
                        2 => medium.bytes_mut(tag).copy_from_slice(old.bytes(tag)),
                        _ => medium.bytes_mut(tag).fill(3),
                    }
                }
                bed.restart();
                bed.assert_right(&format!("{text}: drive {drive}, kind {kind}"));
                bed.run.drives[drive] = after.clone();
            }
        }
        assert!(bed.run.array.lost().is_empty());
    }
}

/// What was wrong is right on the drive soon after it was read.
#[test]
fn what_is_read_wrong_is_repaired() {
    for text in LAYOUTS {
        let mut bed = Bed::new(text, Some(Budget::DEFAULT));
        let right = bed.run.drives.clone();
        let layout = *bed.run.array.layout();
        let (row, _) = layout.find(Lba::new(7));
        let mut found = 0;
        for symbol in 0..layout.symbols() {
            let Cell { drive, lba } = layout.cell(row, symbol);
            let (drive, extent) = (drive.as_usize(), bed.on_drive(lba.get()));
            bed.run.drives[drive].bytes_mut(extent)[9] ^= 8;
            bed.restart();
            bed.assert_right(text);
            bed.settle();
            // Of a mirror one copy is read, and what is redundant is not.
            let is_read = !bed.run.array_events.is_empty();
            found += usize::from(is_read);
            let is_right = bed.run.drives[drive].bytes(extent) == right[drive].bytes(extent);
            assert_eq!(is_right, is_read, "{text}: {symbol}");
            bed.run.drives[drive] = right[drive].clone();
        }
        assert!(found > 0, "{text}");
    }
}

/// Of all drives but those that are lost the tag sectors are bad: what they give is used, since there is no other way (F5).
#[test]
fn bad_tag_sector_costs_no_data() {
    for text in LAYOUTS {
        let mut bed = Bed::new(text, None);
        let spec = bed.settings.spec;
        let drives = (0..spec.drives()).map(DriveIdx::from_usize);
        let lost = drives.fold(DriveSet::EMPTY, |lost, drive| {
            if spec.survives(lost.with(drive)) { lost.with(drive) } else { lost }
        });
        for drive in (0..spec.drives()).filter(|&at| !lost.contains(DriveIdx::from_usize(at))) {
            for lba in 0..bed.sectors() {
                let tag = bed.settings.area.tag_of(Lba::new(lba)).unwrap().lba;
                bed.run.drives[drive].bytes_mut(Extent::new(tag, ONE)).fill(0);
            }
        }
        bed.restart();
        lost.iter().for_each(|drive| bed.run.lose(drive));
        bed.assert_right(text);
    }
}

/// A drive has of its tag sectors what was there before, or none, while memory has what was written: a scrub has them written again,
/// so that what was right is right without the other drives after another start.
#[test]
fn scrub_writes_tag_sectors_again_that_are_not_what_memory_has() {
    for (text, is_none) in LAYOUTS.into_iter().flat_map(|text| [(text, false), (text, true)]) {
        let mut bed = Bed::new(text, Some(Budget::DEFAULT));
        let before = bed.run.drives[1].clone();
        bed.write_all(2);
        let tag = |lba: u64| Extent::new(bed.settings.area.tag_of(Lba::new(lba)).unwrap().lba, ONE);
        let tags: BTreeSet<Extent> = (0..bed.sectors()).map(tag).collect();
        for &tag in &tags {
            let old = if is_none { vec![0; 4096] } else { before.bytes(tag).to_vec() };
            assert_ne!(bed.run.drives[1].bytes(tag), old);
            bed.run.drives[1].bytes_mut(tag).copy_from_slice(&old);
        }
        let writes = bed.run.array.counters().tag_writes;
        bed.run.scrub(Blame::Drives);
        bed.settle();
        assert_eq!(bed.run.array.counters().tag_writes - writes, tags.len() as u64, "{text}");
        bed.run.scrub(Blame::Drives);
        bed.settle();
        assert_eq!(bed.run.array.counters().tag_writes - writes, tags.len() as u64, "{text}");
        bed.restart();
        bed.assert_right(text);
        assert!(bed.run.array_events.is_empty(), "{text}: {:?}", bed.run.array_events);
    }
}

/// What has another checksum than it should, and that no other drive gives, is an error to the client.
#[test]
fn what_no_drive_has_right_is_named() {
    for text in LAYOUTS {
        let mut bed = Bed::new(text, None);
        let layout = *bed.run.array.layout();
        let (row, _) = layout.find(Lba::new(7));
        for symbol in 0..layout.symbols() {
            let Cell { drive, lba } = layout.cell(row, symbol);
            let extent = bed.on_drive(lba.get());
            bed.run.drives[drive.as_usize()].bytes_mut(extent)[9] ^= 8;
        }
        bed.run.read(999, Extent::new(Lba::new(7), ONE));
        bed.run.run_until_quiet();
        let (answer, _) = bed.run.take(999).unwrap();
        assert_eq!(damaged(&answer.outcome), [0], "{text}");
    }
}

/// Four data drives and a redundant one with 16 chunks of four sectors in a group, all of it written, and then once more, so many
/// sectors at a time: the writes in place that go out for that, each with its drive.
fn written_twice(sectors: u64, background: Option<Budget>) -> (Bed, Vec<(usize, Extent)>) {
    let mut bed = Bed::new("raid5:4+1,chunk=16KiB,checksums", background);
    Streams::new(7).stream("test/bytes").fill(&mut bed.bytes);
    let (size, end) = (bed.sectors() * 4, bed.settings.area.runs().last().unwrap().end());
    let mut places = Vec::new();
    for at in (0..size).step_by(sectors as usize) {
        let extent = extent(at, sectors.min(size - at));
        let bytes = &bed.bytes[at as usize * 4096..][..extent.sectors.as_usize() * 4096];
        bed.id += 1;
        bed.run.write(bed.id, extent, bytes);
        while let Some(submit) = bed.run.inside.first() {
            let place = submit.command.extent().filter(|extent| extent.lba < end);
            let place = place.filter(|_| submit.command.is_write());
            places.extend(place.map(|extent| (submit.drive.as_usize(), extent)));
            bed.run.finish(0);
        }
    }
    (bed, places)
}

/// What has all of a group takes its tag sector along, and of what has parts of two groups the later one takes it along; nothing
/// writes any of these again.
#[test]
fn tag_sectors_go_with_long_writes() {
    for sectors in [256, 128] {
        let (mut bed, places) = written_twice(sectors, None);
        let area = bed.settings.area.clone();
        let has_tag = |of: &Extent, at: u64| of.contains(area.tag_of(Lba::new(at)).unwrap().lba);
        for drive in 0..bed.drives() {
            let writes = |at: u64| {
                let is_one = |(of, extent): &&(usize, Extent)| *of == drive && has_tag(extent, at);
                places.iter().filter(is_one).count()
            };
            assert_eq!(writes(0), 1, "{sectors}: drive {drive}: {places:?}");
        }
        bed.run.flush(9_999);
        bed.run.run_until_quiet();
        let reads = bed.run.array.counters().tag_reads;
        let writes = bed.run.array.counters().tag_writes;
        bed.settle();
        let counters = bed.run.array.counters();
        assert!(counters.tag_reads > reads, "they are read back");
        assert_eq!(counters.tag_writes, writes, "and are not written again");
        bed.assert_right("written");
        bed.restart();
        bed.assert_right("started again");
        assert!(bed.run.array_events.is_empty(), "{:?}", bed.run.array_events);
    }
}

/// A drive has of such a write nothing, tag sectors included: what it gives is not answered, neither before they were read back nor
/// after that, and not after another start.
#[test]
fn long_write_that_is_lost_is_found_when_its_tag_sector_is_read_back() {
    let before = Bed::new("raid5:4+1,chunk=16KiB,checksums", None).run.drives;
    for (drive, before) in before.iter().enumerate() {
        let is_read = drive % 2 == 0;
        let (mut bed, places) = written_twice(256, Some(Budget::DEFAULT));
        for (_, extent) in places.iter().filter(|(of, _)| *of == drive) {
            let old = before.bytes(*extent).to_vec();
            bed.run.drives[drive].bytes_mut(*extent).copy_from_slice(&old);
        }
        if is_read {
            bed.assert_right(&format!("drive {drive}"));
        }
        bed.run.flush(9_999);
        bed.settle();
        let is_corrupt = |event: &ArrayEvent| matches!(event, ArrayEvent::Corrupt { .. });
        assert!(bed.run.array_events.iter().any(is_corrupt));
        let of_drive = places.iter().filter(|(of, _)| *of == drive);
        for lba in of_drive.flat_map(|(_, extent)| extent.iter()) {
            let sector = Extent::new(lba, ONE);
            let is_old = bed.run.drives[drive].bytes(sector) == before.bytes(sector);
            assert!(!is_old, "drive {drive}: {lba:?} is to be repaired");
        }
        bed.assert_right(&format!("drive {drive}, read back"));
        bed.restart();
        bed.assert_right(&format!("drive {drive}, started again"));
    }
}
