//! Copies and rebuilds of many regions, over drives that complete each command at once and store nothing.

use levelhead_block::Outcome;
use levelhead_stats::Streams;
use levelhead_units::{DriveIdx, DriveSet, Extent, Instant, Lba, Sectors};

use crate::log::rules::Rules;
use crate::meta::membership::Why;
use crate::progress::{CopyEnd, CopyProgress};
use crate::{
    Action, Area, Array, ArrayEvent, Content, Event, HostOrder, JournalSettings, Left, Policy,
    Settings, SubId,
};

struct Bench {
    array: Array,
    now: Instant,
    inside: Vec<SubId>,
    events: Vec<ArrayEvent>,
}

impl Bench {
    /// An array with a journal behind its data, on drives with this number of chunks.
    fn new(text: &str, chunks: u64) -> Self {
        let spec: crate::Spec = text.parse().unwrap();
        let size = spec.chunk() * chunks;
        let journal = JournalSettings {
            pieces: vec![Extent::new(Lba::ZERO + size, Sectors::new(100))],
            lists: None,
            floor: 1,
            left: Left::Drained,
            intents_from: None,
            region_min: Sectors::new(1),
            rules: Rules::ALL,
        };
        let settings = Settings {
            spec,
            area: Area::plain(Extent::new(Lba::ZERO, size)),
            policy: Policy::Normal,
            window: 8,
            order: HostOrder::Fcfs,
            content: Content::Carried,
            synced: u64::MAX,
            lost: DriveSet::EMPTY,
            recorded: None,
            patience: None,
            background: None,
            verify: None,
            journal: Some(journal),
        };
        let array = Array::new(&settings, Streams::new(1));
        Self { array, now: Instant::ZERO, inside: Vec::new(), events: Vec::new() }
    }

    fn carry_out(&mut self) {
        while let Some(action) = self.array.poll() {
            match action {
                Action::Submit(submit) | Action::Coming(submit) => self.inside.push(submit.sub),
                Action::Event(Event::Array(event)) => self.events.push(event),
                _ => {}
            }
        }
    }

    /// Completes a command or, if none is under way, lets time pass up to the array's deadline.
    fn step(&mut self) {
        self.carry_out();
        match self.inside.is_empty() {
            true => {
                self.now = self.array.deadline().expect("the array waits for something");
                self.array.handle_timeout(self.now);
            }
            false => {
                let sub = self.inside.remove(0);
                self.array.handle_done(self.now, sub, &Outcome::GOOD);
            }
        }
        self.carry_out();
    }
}

/// Copies a drive with this number of regions. Once a pass has begun its last region, a client writes to the first regions, as many
/// as `written` says of that pass. Returns the number of reads, and the number of regions left at the exchange or why none came.
fn copied(regions: u64, written: &[u64]) -> (u64, Result<u64, CopyEnd>) {
    let mut bench = Bench::new("raid1:2,chunk=4KiB", regions);
    let drive = DriveIdx::new(1);
    bench.array.handle_copy(bench.now, drive, None).unwrap();
    let mut due = regions;
    for &written in written {
        while bench.array.counters().copy_reads < due {
            bench.step();
        }
        let core = &mut bench.array.core;
        let first = Extent::new(Lba::ZERO, Sectors::new(written));
        core.holdings.copied_mut().expect("it goes on").mark(core.place.layout(), first);
        due += written;
    }
    loop {
        let ended = bench.events.iter().find_map(|event| match *event {
            ArrayEvent::CopyDone(CopyProgress { left, .. }) => Some(Ok(left)),
            ArrayEvent::CopyStopped { why, .. } => Some(Err(why)),
            _ => None,
        });
        if let Some(ended) = ended {
            return (bench.array.counters().copy_reads, ended);
        }
        bench.step();
    }
}

/// Another pass follows while more than 16 regions are left, if these are more than one in a hundred or at most half of those that
/// the pass began with. A pass that leaves more than half is in vain, and nine of these end the copy.
#[test]
fn passes_follow_each_other_until_little_is_left_or_nine_were_in_vain() {
    let cases = [
        (4_000, &[16][..], (4_000, Ok(16))),
        (4_000, &[17], (4_017, Ok(0))),
        (4_000, &[60, 30], (4_090, Ok(0))),
        (4_000, &[60, 31], (4_060, Ok(31))),
        (200, &[100; 8], (200 + 8 * 100, Ok(0))),
        (200, &[150; 8], (200 + 8 * 150, Ok(0))),
        (200, &[150; 9], (200 + 8 * 150, Err(CopyEnd::TooSlow))),
    ];
    for (regions, written, expected) in cases {
        assert_eq!(copied(regions, written), expected, "{regions}: {written:?}");
    }
}

/// Also where no time passes.
#[test]
fn mark_of_a_rebuild_follows_the_front_every_four_gibibytes() {
    const STRIPES_OF_4_GIB: u64 = (4 << 30) / (32 << 10);
    let mut bench = Bench::new("raid10:64,chunk=32KiB", STRIPES_OF_4_GIB / 32 * 5 / 4);
    let drive = DriveIdx::new(0);
    bench.array.handle_lost(bench.now, drive, Why::Failed);
    bench.carry_out();
    bench.array.handle_replaced(bench.now, drive, None).unwrap();
    let is_marked = |array: &Array| array.rebuild().is_none_or(|rebuild| rebuild.mark > 0);
    while !is_marked(&bench.array) {
        bench.step();
    }
    assert_eq!(bench.now, Instant::ZERO);
    let mark = bench.array.rebuild().map(|rebuild| rebuild.mark);
    assert!(
        mark.is_some_and(|mark| (STRIPES_OF_4_GIB..STRIPES_OF_4_GIB + 2_000).contains(&mark)),
        "{mark:?}"
    );
}
