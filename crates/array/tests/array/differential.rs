//! Random requests to an array and to plain memory must give the same bytes: for every layout,
//! healthy and with every set of missing drives that it survives.

use std::collections::BTreeMap;

use crate::runtime::{Runtime, journaled, settings, survivable};
use levelhead_array::{Cell, Policy, Settings, Spec};
use levelhead_block::{Buf, Command, Memory};
use levelhead_stats::{Rng, Streams};
use levelhead_units::{DriveIdx, DriveSet, Extent, Lba, Nanos, Sectors};

const LAYOUTS: [&str; 14] = [
    "raid0:3,chunk=8KiB",
    "raid4:3+1,chunk=8KiB",
    "raid5:5+1,chunk=4KiB",
    "raid5:3+1,chunk=16KiB",
    "raid6:4+2,chunk=8KiB",
    "raid6:3+2,chunk=4KiB,parity=fixed",
    "eraid:5+1,e=2,chunk=8KiB",
    "eraid:3+2,e=3,chunk=24KiB",
    "eraid:2+3,e=2,chunk=16KiB",
    "raid1:2,chunk=8KiB",
    "raid1:3,chunk=16KiB",
    "raid10:4,chunk=8KiB",
    "raid10:6,chunk=4KiB",
    "raid10:5,chunk=8KiB",
];

const REQUESTS: u64 = 10_000;

fn specs() -> impl Iterator<Item = Spec> {
    LAYOUTS.iter().map(|text| text.parse().unwrap())
}

struct Client {
    model: Memory,
    rng: Rng,
    /// Reads in flight, with the bytes they must give.
    expected: BTreeMap<u64, Vec<u8>>,
    in_flight: Vec<u64>,
}

impl Client {
    fn new(size: Sectors, seed: u64) -> Self {
        let rng = Streams::new(seed).stream("test/client");
        let (expected, in_flight) = (BTreeMap::new(), Vec::new());
        Self { model: Memory::new(size), rng, expected, in_flight }
    }

    /// A request of at most three stripes, most of them far smaller. Conflicting requests take effect in the order of their
    /// arrival, so the model is up to date at once.
    fn send(&mut self, run: &mut Runtime, id: u64) {
        let spec = *run.array.layout().spec();
        let stripe = spec.chunk().get() * spec.data() as u64;
        let size = run.array.size().get();
        let most = if self.rng.below(8) == 0 { 3 * stripe } else { stripe / 2 + 1 };
        let sectors = 1 + self.rng.below(most.min(size));
        let lba = self.rng.below(size - sectors + 1);
        // Half of the requests begin at a stripe, so that full-stripe writes occur.
        let lba = if self.rng.below(2) == 0 { lba / stripe * stripe } else { lba };
        let extent = Extent::new(Lba::new(lba), Sectors::new(sectors));
        self.in_flight.push(id);
        if self.rng.below(2) == 0 {
            self.expected.insert(id, self.model.bytes(extent).to_vec());
            run.read(id, extent);
        } else {
            self.rng.fill(self.model.bytes_mut(extent));
            let bytes = self.model.bytes(extent).to_vec();
            run.write(id, extent, &bytes);
        }
    }

    fn check(&mut self, run: &mut Runtime, context: &str) {
        for at in (0..self.in_flight.len()).rev() {
            let id = self.in_flight[at];
            let Some((answer, buf)) = run.take(id) else { continue };
            self.in_flight.swap_remove(at);
            assert!(answer.outcome.is_good(), "{context}, request {id}: {:?}", answer.outcome);
            if let Some(expected) = self.expected.remove(&id) {
                assert!(buf.as_slice() == expected, "{context}, request {id}: other bytes");
            }
        }
    }
}

fn check(spec: Spec, policy: Policy, lost: DriveSet, requests: u64, seed: u64) {
    let context = format!("{spec}, {policy}, lost {{{lost}}}, seed {seed}");
    check_with(&settings(spec, 24, policy, lost), requests, seed, &context);
}

fn check_with(settings: &Settings, requests: u64, seed: u64, context: &str) {
    let Settings { spec, lost, .. } = *settings;
    let mut run = Runtime::new(settings, seed);
    run.soft_per_mille = 50;
    let mut client = Client::new(run.array.size(), seed);
    for id in 0..requests {
        client.send(&mut run, id);
        while client.in_flight.len() > 6 || (!run.inside.is_empty() && client.rng.below(3) == 0) {
            let at = client.rng.below(run.inside.len() as u64) as usize;
            run.finish(at);
            client.check(&mut run, context);
        }
    }
    run.run_until_quiet();
    client.check(&mut run, context);
    assert_eq!(client.in_flight, [], "{context}: unanswered");
    if settings.journal.is_some() {
        run.run_for(Nanos::from_secs(20));
    }
    assert!(run.array.is_quiet(), "{context}");
    assert!(run.buffers.is_empty(), "A4, {context}: {} buffers are left", run.buffers.len());
    if spec.is_mirror() {
        assert_copies(&run, &client, context);
        assert_eq!(run.combined, 0, "{context}: copies need no arithmetic");
    }
    if lost.is_empty() {
        assert_redundant(&mut run, &mut client, spec, context);
    }
}

/// All redundancy is right: any survivable loss now leaves every byte readable.
fn assert_redundant(run: &mut Runtime, client: &mut Client, spec: Spec, context: &str) {
    // Of copies the first ones, so that others must be right.
    let lost = (0..spec.drives()).map(DriveIdx::from_usize).fold(DriveSet::EMPTY, |lost, drive| {
        if spec.survives(lost.with(drive)) { lost.with(drive) } else { lost }
    });
    lost.iter().for_each(|drive| run.lose(drive));
    let whole = Extent::new(Lba::ZERO, run.array.size());
    run.read(u64::MAX - 1, whole);
    run.run_until_quiet();
    let (answer, buf) = run.take(u64::MAX - 1).unwrap();
    assert!(answer.outcome.is_good(), "{context}: {:?}", answer.outcome);
    assert!(buf.as_slice() == client.model.bytes(whole), "{context}: redundancy is wrong");
}

/// Every copy of a mirror holds the same bytes, each in its place.
fn assert_copies(run: &Runtime, client: &Client, context: &str) {
    let layout = run.array.layout();
    for lba in (0..layout.size().get()).map(Lba::new) {
        let expected = client.model.bytes(Extent::new(lba, Sectors::new(1)));
        let (row, _) = layout.find(lba);
        for copy in 0..layout.symbols() {
            let Cell { drive, lba: at } = layout.cell(row, copy);
            if !run.array.lost().contains(drive) {
                let at = run.array.area().on_drive(Extent::new(at, Sectors::new(1)));
                let held = run.drives[drive.as_usize()].bytes(at);
                assert!(held == expected, "{context}: sector {} on drive {drive}", lba.get());
            }
        }
    }
}

/// Ten thousand requests for each survivable loss; all policies in turn, so that each layout meets
/// each of them.
fn check_every_loss(spec: Spec) {
    let policies = Policy::all();
    for (seed, lost) in (1..).zip(survivable(&spec)) {
        check(spec, policies[seed as usize % policies.len()], lost, REQUESTS, seed);
    }
}

/// In two halves, for two processors: fewer and more drives to lose.
#[test]
fn layouts_with_little_redundancy_equal_memory_with_every_survivable_loss() {
    specs().filter(|spec| spec.redundant() < 2).for_each(check_every_loss);
}

#[test]
fn layouts_with_two_redundant_drives_equal_memory_with_every_survivable_loss() {
    specs().filter(|spec| spec.redundant() == 2).for_each(check_every_loss);
}

#[test]
fn layouts_with_three_redundant_drives_equal_memory_with_every_survivable_loss() {
    specs().filter(|spec| spec.redundant() > 2).for_each(check_every_loss);
}

#[test]
fn every_policy_equals_memory() {
    for policy in Policy::all() {
        for text in [
            "raid5:5+1,chunk=4KiB",
            "eraid:5+1,e=2,chunk=8KiB",
            "raid6:4+2,chunk=8KiB",
            "raid1:3,chunk=8KiB",
            "raid10:4,chunk=4KiB",
        ] {
            check(text.parse().unwrap(), policy, DriveSet::EMPTY, REQUESTS / 2, 99);
        }
    }
}

/// Everything goes through a journal that is nearly full.
#[test]
fn journaled_layouts_equal_memory_with_every_survivable_loss() {
    let policies = Policy::all();
    for spec in specs().filter(|spec| spec.redundant() > 0) {
        for (seed, lost) in (1..).zip(survivable(&spec)) {
            let policy = policies[seed as usize % policies.len()];
            let context = format!("journal, {spec}, {policy}, lost {{{lost}}}, seed {seed}");
            let settings = journaled(settings(spec, 24, policy, lost));
            check_with(&settings, 2_000, seed, &context);
        }
    }
}

/// The same where sectors have checksums.
#[test]
fn layouts_with_checksums_equal_memory_with_every_survivable_loss() {
    let policies = Policy::all();
    for text in [
        "raid5:3+1,chunk=16KiB,checksums",
        "raid6:3+2,chunk=20KiB,checksums",
        "eraid:3+2,e=3,chunk=24KiB,checksums",
        "raid1:2,chunk=16KiB,checksums",
        "raid10:5,chunk=8KiB,checksums",
    ] {
        let spec: Spec = text.parse().unwrap();
        for (seed, lost) in (1..).zip(survivable(&spec)) {
            let policy = policies[seed as usize % policies.len()];
            let context = format!("{spec}, {policy}, lost {{{lost}}}, seed {seed}");
            let settings = journaled(settings(spec, 24, policy, lost));
            check_with(&settings, 1_000, seed, &context);
        }
    }
}

/// Drives disappear in the middle of the traffic, one after the other, as many as the layout
/// survives.
#[test]
fn losses_under_way_cost_no_byte() {
    for spec in specs().filter(|spec| spec.redundant() > 0) {
        for seed in 0..12 {
            let policies = Policy::all();
            let policy = policies[seed as usize % policies.len()];
            let context = format!("{spec}, {policy}, seed {seed}");
            let settings = settings(spec, 24, policy, DriveSet::EMPTY);
            let mut run = Runtime::new(&settings, seed);
            run.soft_per_mille = 20;
            let mut client = Client::new(run.array.size(), seed);
            let mut is_survived = true;
            for id in 0..600 {
                client.send(&mut run, id);
                while client.in_flight.len() > 6 {
                    let at = client.rng.below(run.inside.len() as u64) as usize;
                    run.finish(at);
                    client.check(&mut run, &context);
                }
                if is_survived && client.rng.below(150) == 0 {
                    let drive = client.rng.below(spec.drives() as u64) as usize;
                    let drive = DriveIdx::from_usize(drive);
                    if spec.survives(run.array.lost().with(drive)) {
                        run.lose(drive);
                    }
                    let all = (0..spec.drives()).map(DriveIdx::from_usize);
                    let lost = run.array.lost();
                    is_survived = all
                        .filter(|&drive| !lost.contains(drive))
                        .any(|drive| spec.survives(lost.with(drive)));
                }
            }
            run.run_until_quiet();
            client.check(&mut run, &context);
            assert_eq!(client.in_flight, [], "{context}: unanswered");
            assert!(run.buffers.is_empty(), "A4, {context}");
        }
    }
}

/// Beyond the redundancy: every request still ends, and says what it could not give.
#[test]
fn loss_beyond_redundancy_is_named_and_never_wrong() {
    for spec in specs() {
        let mut run = Runtime::new(&settings(spec, 12, Policy::DEFAULT, DriveSet::EMPTY), 5);
        let whole = Extent::new(Lba::ZERO, run.array.size());
        let mut bytes = vec![0; whole.sectors.as_usize() * 4096];
        Streams::new(5).stream("test/bytes").fill(&mut bytes);
        run.write(0, whole, &bytes);
        run.run_until_quiet();
        for drive in (0..=spec.redundant()).map(DriveIdx::from_usize) {
            run.lose(drive);
        }
        run.read(1, whole);
        run.run_until_quiet();
        let (answer, buf) = run.take(1).unwrap();
        let levelhead_block::Outcome::Done { unknown, damaged } = answer.outcome else {
            panic!("{spec}: {:?}", answer.outcome)
        };
        assert!(unknown.is_empty() && !damaged.is_empty(), "{spec}");
        for (offset, sector) in (0..).zip(bytes.chunks_exact(4096)) {
            let given = buf.part(offset as usize, 1) == sector;
            assert!(given || damaged.contains(offset), "{spec}: sector {offset} is silently wrong");
        }
    }
}

#[test]
fn resync_makes_garbage_redundant_and_stale_parity_is_never_used() {
    for spec in specs().filter(|spec| spec.redundant() > 0) {
        let unsynced =
            Settings { synced: 0, ..settings(spec, 150, Policy::DEFAULT, DriveSet::EMPTY) };
        let mut run = Runtime::new(&unsynced, 3);
        let mut rng = Streams::new(3).stream("test/garbage");
        for drive in &mut run.drives {
            rng.fill(drive.bytes_mut(Extent::new(Lba::ZERO, unsynced.area.size())));
        }
        let mut client = Client::new(run.array.size(), 3);
        // The model starts from what the garbage says.
        let whole = Extent::new(Lba::ZERO, run.array.size());
        run.read(u64::MAX, whole);
        run.run_until_quiet();
        let (_, buf) = run.take(u64::MAX).unwrap();
        client.model.bytes_mut(whole).copy_from_slice(buf.as_slice());
        let context = format!("resync of {spec}");
        run.soft_per_mille = 50;
        for id in 0..400 {
            client.send(&mut run, id);
            if id % 20 == 0 {
                run.resync();
            }
            while client.in_flight.len() > 4 {
                let at = client.rng.below(run.inside.len() as u64) as usize;
                run.finish(at);
                client.check(&mut run, &context);
            }
        }
        run.run_until_quiet();
        client.check(&mut run, &context);
        assert_eq!(run.array.synced(), run.array.layout().stripes(), "{context}");
        assert_redundant(&mut run, &mut client, spec, &context);
    }
}

#[test]
fn flush_waits_for_every_drive() {
    let spec: Spec = "raid6:4+2,chunk=8KiB".parse().unwrap();
    let mut run = Runtime::new(&settings(spec, 8, Policy::DEFAULT, DriveSet::EMPTY), 1);
    run.request(7, Command::Flush, Buf::empty());
    assert_eq!(run.inside.len(), 6);
    (0..5).for_each(|_| run.finish(0));
    assert!(run.answers.is_empty());
    run.finish(0);
    assert!(run.take(7).unwrap().0.outcome.is_good());
}

/// The canary: with the bytes of one redundant sector changed behind the array's back, the check for
/// right redundancy must fail.
#[test]
#[should_panic(expected = "redundancy is wrong")]
fn wrong_redundancy_is_caught() {
    let spec: Spec = "raid5:3+1,chunk=8KiB".parse().unwrap();
    let mut run = Runtime::new(&settings(spec, 8, Policy::DEFAULT, DriveSet::EMPTY), 1);
    let mut client = Client::new(run.array.size(), 1);
    run.drives[3].bytes_mut(crate::runtime::extent(0, 1))[17] ^= 1;
    assert_redundant(&mut run, &mut client, spec, "canary");
}
