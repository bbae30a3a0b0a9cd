use std::collections::BTreeMap;

use super::*;

fn stages(text: &str, seed: u64) -> Vec<Stage> {
    let workload: FileWorkload = text.parse().unwrap();
    workload.stages(Streams::new(seed))
}

/// What a stage leaves and does, checked step by step: FW2.
#[derive(Debug, Default)]
struct Disk {
    sizes: BTreeMap<FileId, u64>,
    habits: BTreeMap<FileId, Habit>,
    used: u64,
    used_most: u64,
    /// Writes at the end of files, and in place.
    appends: u64,
    changes: u64,
    changed_bytes: u64,
}

impl Disk {
    fn run(&mut self, stage: &Stage) {
        for step in &stage.steps {
            match *step {
                Step::Create { file, habit } => {
                    assert!(self.habits.insert(file, habit).is_none(), "{file:?} is made twice");
                    self.sizes.insert(file, 0);
                }
                Step::Read { file, offset, length } => {
                    let size = self.sizes[&file];
                    assert!(length > Bytes::new(0) && offset.get() + length.get() <= size);
                }
                Step::Write { file, offset, length } => {
                    let size = self.sizes.get_mut(&file).unwrap();
                    let end = offset.get() + length.get();
                    assert!(length.get() > 0 && length.get() <= REQUEST && offset.get() <= *size);
                    if offset.get() == *size {
                        self.appends += 1;
                        *size = end;
                        self.used += length.get();
                    } else {
                        assert!(end <= *size, "it is neither at the end nor in place");
                        self.changes += 1;
                        self.changed_bytes += length.get();
                    }
                }
                Step::Sync(file) => assert!(self.sizes.contains_key(&file)),
                Step::Remove(file) => self.used -= self.sizes.remove(&file).unwrap(),
                Step::Compute(time) => assert!(time > Nanos::ZERO),
            }
            self.used_most = self.used_most.max(self.used);
        }
    }

    fn after(stages: &[Stage]) -> Self {
        let mut disk = Self::default();
        stages.iter().for_each(|stage| disk.run(stage));
        disk
    }
}

const EVERY: [&str; 12] = [
    "hibench:sort",
    "hibench:wordcount,scale=20%,compute=3ms",
    "hibench:hivebench",
    "hibench:pagerank",
    "hibench:nutch,scale=10%,window=2",
    "hibench:bayes",
    "hibench:kmeans",
    "hibench:dfsioe,compute=1ms",
    "hibench:terasort",
    "ycsb:reads=90%",
    "ycsb:reads=70%,operations=40000,files=2,size=8MiB,flush=2MiB",
    "ycsb:reads=10%,operations=3000,files=1,size=1MiB,record=1KiB,flush=1MiB,clients=2",
];

#[test]
fn steps_are_the_same_for_a_seed_and_others_for_another_and_could_be_carried_out() {
    for text in EVERY {
        let workload: FileWorkload = text.parse().unwrap();
        assert_eq!(workload.to_string(), text);
        let (one, other) = (stages(text, 1), stages(text, 2));
        assert_eq!(one, stages(text, 1), "{text}");
        assert_ne!(one, other, "{text}");
        assert!(one.last().unwrap().is_measured, "{text}");
        for stages in [one, other] {
            let disk = Disk::after(&stages);
            let most = workload.size_max().get();
            assert!(disk.used_most <= most, "{text}: {} of {most}", disk.used_most);
        }
    }
}

/// In a window, too: nothing waits without end.
#[test]
fn every_workload_comes_to_its_end() {
    for text in EVERY {
        for stage in &stages(text, 3) {
            let mut window = Window::new(stage);
            let mut under_way = Vec::new();
            while !window.is_over() {
                under_way.extend(std::iter::from_fn(|| window.poll()));
                // The one that began last ends first.
                window.handle_end(under_way.pop().expect("something is under way"));
            }
        }
    }
}

/// The volumes of the table in `docs/workloads.md`, in hundredths of a GiB.
#[test]
fn programs_of_hibench_read_and_write_what_the_table_says() {
    for (name, [input, between, output, passes]) in [
        ("sort", [100, 100, 100, 1]),
        ("terasort", [100, 100, 100, 1]),
        ("wordcount", [100, 5, 1, 1]),
        ("hivebench", [200, 30, 30, 1]),
        ("pagerank", [50, 50, 30, 1]),
        ("nutch", [50, 50, 30, 1]),
        ("bayes", [50, 50, 30, 1]),
        ("kmeans", [100, 0, 1, 5]),
    ] {
        let bytes = |hundredths: u64| hundredths * (1 << 30) / 100;
        let stages = stages(&format!("hibench:{name}"), 5);
        let [first, run] = stages.as_slice() else { panic!("{name} has two stages") };
        assert!(!first.is_measured && run.is_measured);
        assert_eq!(first.moved().written.get(), bytes(input), "{name}");
        assert_eq!(run.moved().read.get(), passes * bytes(input) + bytes(between), "{name}");
        let disk = Disk::after(&stages);
        let written = run.moved().written.get() - disk.changed_bytes;
        assert_eq!(written, bytes(between) + bytes(output), "{name}");
        // What was between is removed.
        assert_eq!(disk.sizes.values().sum::<u64>(), bytes(input) + bytes(output), "{name}");
    }
    let [write, read] = &stages("hibench:dfsioe", 5)[..] else { panic!("two stages") };
    assert!(write.is_measured && read.is_measured);
    assert_eq!(write.moved().written, read.moved().read);
    assert_eq!(read.moved().read.get(), 1 << 30);
}

/// Four standard errors around the published shares, over the bytes of many files.
#[test]
fn small_files_have_the_published_shares_of_the_bytes() {
    let mut shares = [Vec::new(), Vec::new(), Vec::new()];
    for seed in 0..40 {
        let disk = Disk::after(&stages("hibench:pagerank", seed)[..1]);
        let all = disk.sizes.values().sum::<u64>() as f64;
        for (share, [from, to]) in
            shares.iter_mut().zip([[0, 10_000], [10_000, 100_000], [100_000, u64::MAX]])
        {
            let inside = disk.sizes.values().filter(|size| (from..to).contains(*size));
            share.push(inside.sum::<u64>() as f64 / all);
        }
    }
    for (share, law) in shares.into_iter().zip([0.014, 0.036, 0.95]) {
        let n = share.len() as f64;
        let mean = share.iter().sum::<f64>() / n;
        let variance = share.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0);
        assert!((mean - law).abs() <= 4.0 * (variance / n).sqrt(), "{mean}, law {law}");
    }
}

#[test]
fn large_files_are_as_large_as_said() {
    for (name, [least, most]) in [("sort", [64, 256 + 64]), ("hivebench", [96, 256 + 96])] {
        for seed in 0..20 {
            let disk = Disk::after(&stages(&format!("hibench:{name}"), seed));
            for size in disk.sizes.values() {
                assert!((least * MIB..=most * MIB).contains(size), "{name}: {size}");
            }
        }
    }
}

#[test]
fn two_percent_of_the_writes_of_small_files_are_in_place() {
    let (mut changes, mut all) = (0_u64, 0_u64);
    for seed in 0..10 {
        let stages = stages("hibench:nutch", seed);
        let mut disk = Disk::default();
        disk.run(&stages[0]);
        assert_eq!(disk.changes, 0);
        let before = disk.appends;
        disk.run(&stages[1]);
        changes += disk.changes;
        all += disk.changes + disk.appends - before;
        assert!(disk.changed_bytes <= disk.changes * (16 << 10));
    }
    let (share, n) = (changes as f64 / all as f64, all as f64);
    assert!((share - 0.02).abs() <= 4.0 * (0.02 * 0.98 / n).sqrt(), "{share} of {all}");
    assert_eq!(Disk::after(&stages("hibench:sort", 1)).changes, 0);
}

#[test]
fn a_program_computes_for_what_it_moves_and_for_nothing_that_is_not_measured() {
    let text = "hibench:wordcount,compute=4ms";
    let stages = stages(text, 1);
    assert_eq!(stages[0].moved().computed, Nanos::ZERO);
    let moved = stages[1].moved();
    let mib = (moved.read.get() + moved.written.get()) as f64 / MIB as f64;
    assert!((moved.computed.as_millis_f64() - 4.0 * mib).abs() < 0.01, "{moved:?}");
    // And that is all that differs.
    let bare = self::stages("hibench:wordcount", 1);
    let rest = stages[1].steps.iter().filter(|step| !matches!(step, Step::Compute(_)));
    assert!(rest.eq(bare[1].steps.iter()));
}

#[test]
fn clients_of_ycsb_read_and_write_in_the_shares_asked_for() {
    for (reads, law) in [("90%", 0.9), ("80%", 0.8), ("70%", 0.7)] {
        let stages = stages(&format!("ycsb:reads={reads}"), 9);
        let is_read = |step: &&Step| matches!(step, Step::Read { .. });
        let read = stages[1].steps.iter().filter(is_read).count() as f64;
        let n = 20_000.0;
        assert!((read / n - law).abs() <= 4.0 * (law * (1.0 - law) / n).sqrt(), "{read}");
        assert_eq!(stages[1].window, 8);
        // Each block that was read is one of 16 files of 256 MiB.
        for step in &stages[1].steps {
            if let Step::Read { file, offset, length } = step {
                assert!(file.0 < 16 && offset.get() % BLOCK == 0 && length.get() == BLOCK);
            }
        }
    }
}

const BLOCK: u64 = 64 << 10;

/// FW3.
#[test]
fn another_share_of_reads_asks_for_the_same_blocks() {
    let blocks = |reads: &str| -> Vec<Step> {
        let stages = stages(&format!("ycsb:reads={reads},operations=4000"), 2);
        let read = |step: &Step| matches!(step, Step::Read { .. }).then_some(*step);
        stages[1].steps.iter().filter_map(read).collect()
    };
    let (many, few) = (blocks("90%"), blocks("70%"));
    assert!(few.len() + 500 < many.len());
    assert_eq!(few, many[..few.len()]);
}

/// The hundred blocks that are read most of 65,536, as Zipf's law has it.
#[test]
fn the_most_popular_blocks_of_ycsb_have_their_share_of_the_reads() {
    let stages = stages("ycsb:reads=100%,operations=100000", 4);
    let mut counts: BTreeMap<(FileId, Bytes), u64> = BTreeMap::new();
    for step in &stages[1].steps {
        if let Step::Read { file, offset, .. } = step {
            *counts.entry((*file, *offset)).or_default() += 1;
        }
    }
    let mut counts: Vec<u64> = counts.into_values().collect();
    counts.sort_unstable_by(|one, other| other.cmp(one));
    let sum = |count: u32| (1..=count).map(|rank| f64::from(rank).powf(-0.99)).sum::<f64>();
    for top in [1, 10, 100] {
        let law = sum(top) / sum(65_536);
        let share = counts[..top as usize].iter().sum::<u64>() as f64 / 1e5;
        let error = (law * (1.0 - law) / 1e5_f64).sqrt();
        assert!((share - law).abs() <= 4.0 * error, "{top}: {share}, law {law}");
    }
}

#[test]
fn what_is_logged_is_flushed_to_files_and_its_log_removed() {
    let text = "ycsb:reads=50%,operations=9000,files=1,size=1MiB,flush=4MiB";
    let stages = stages(text, 6);
    let run = &stages[1];
    let disk = Disk::after(&stages);
    let is_write = |file: FileId| {
        run.steps
            .iter()
            .filter(move |step| matches!(step, Step::Write { file: of, .. } if *of == file))
    };
    let logged: u64 = disk
        .habits
        .iter()
        .filter(|(_, habit)| **habit == Habit::Changing)
        .map(|(file, _)| is_write(*file).count() as u64)
        .sum();
    let reads = run.steps.iter().filter(|step| matches!(step, Step::Read { .. })).count() as u64;
    assert_eq!(logged, 9_000 - reads, "a block for each record");
    let flushed: Vec<u64> = disk
        .sizes
        .iter()
        .filter(|(file, _)| file.0 > 0 && disk.habits[file] == Habit::Random)
        .map(|(_, size)| *size)
        .collect();
    assert_eq!(flushed.len() as u64, logged / 64);
    assert!(flushed.iter().all(|size| *size == 4 * MIB));
    let logs = disk.sizes.keys().filter(|file| disk.habits[file] == Habit::Changing).count();
    assert_eq!(logs, 1, "the log of what is not flushed");
    let syncs = run.steps.iter().filter(|step| matches!(step, Step::Sync(_))).count();
    assert_eq!(syncs, flushed.len());
}

#[test]
fn nonsense_is_refused_with_the_key_and_the_limit() {
    for (text, expected) in [
        ("sort", "workload, files: 'sort' does not begin with hibench: or ycsb:"),
        ("iraw:web", "workload, files: 'iraw:web' does not begin with hibench: or ycsb:"),
        (
            "hibench:join",
            "workload, hibench: 'join' is none of its programs: expected sort, wordcount, hivebench, \
             pagerank, nutch, bayes, kmeans, dfsioe, terasort",
        ),
        ("hibench:sort,scale=0%", "workload, scale: expected 0.1% to 100%, got 0%"),
        ("hibench:sort,compute=1h", "workload, compute: expected at most 10s, got 3600s"),
        ("hibench:sort,window=0", "workload, window: expected 1 to 1024, got 0"),
        ("hibench:sort,size=3", "workload, size: no such key: expected scale, compute, window"),
        (
            "hibench:sort,quick",
            "workload, quick: expected key=value, the keys being scale, compute, window",
        ),
        ("ycsb:files=2,files=3", "workload, files: given twice"),
        ("ycsb:operations=x", "workload, operations: 'x' is not a whole number"),
        ("ycsb:operations=0", "workload, operations: expected 1 to 1000000, got 0"),
        ("ycsb:files=5000", "workload, files: expected 1 to 4096, got 5000"),
        ("ycsb:clients=2000", "workload, clients: expected 1 to 1024, got 2000"),
        (
            "ycsb:size=100KiB",
            "workload, size: expected whole MiB, in all files at most 64GiB, got 100KiB",
        ),
        (
            "ycsb:size=8GiB",
            "workload, size: expected whole MiB, in all files at most 64GiB, got 8GiB",
        ),
        ("ycsb:record=1MiB", "workload, record: expected 1B to 64KiB, got 1MiB"),
        ("ycsb:flush=1KiB", "workload, flush: expected whole MiB, at most 1TiB, got 1KiB"),
    ] {
        assert_eq!(text.parse::<FileWorkload>().unwrap_err().to_string(), expected);
    }
}
