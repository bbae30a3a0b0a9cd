use levelhead_trace::{FileId, Habit, Stage, Step};
use levelhead_units::{Bytes, Ratio};

use super::*;

fn profile() -> Profile {
    Profile::shipped("nearline-2tb").expect("it comes with the program")
}

const MIB: u64 = 1 << 20;

fn written(size: u64) -> Stage {
    let file = FileId(0);
    let mut steps = vec![Step::Create { file, habit: Habit::Sequential }];
    steps.extend((0..size / MIB).map(|at| Step::Write {
        file,
        offset: Bytes::new(at * MIB),
        length: Bytes::new(MIB),
    }));
    steps.push(Step::Sync(file));
    Stage { name: "write", is_measured: false, window: 8, steps }
}

fn read(size: u64) -> Stage {
    let steps = (0..size / MIB).map(|at| Step::Read {
        file: FileId(0),
        offset: Bytes::new(at * MIB),
        length: Bytes::new(MIB),
    });
    Stage { name: "read", is_measured: true, window: 8, steps: steps.collect() }
}

/// Nanoseconds to read a file in sequence that was written before.
fn reading(ladder: &Ladder, rate: Ratio, size: u64) -> f64 {
    let settings = MountedSettings::new(profile(), ladder.clone(), 1);
    let mut mounted = Mounted::new(settings).unwrap();
    mounted.carry_out(&written(size)).unwrap();
    mounted.set_faults(Faults { retry_rate: rate, ..Faults::NONE }).unwrap();
    let took = mounted.carry_out(&read(size)).unwrap();
    assert_eq!(took.steps.len() as u64, size / MIB);
    took.all.as_secs_f64()
}

#[test]
fn reads_in_sequence_take_little_longer_than_without_a_code() {
    let size = 256 * MIB;
    let (none, coded) =
        (Ladder::without_redundancy(1_000).unwrap(), Ladder::fixed(246, 9).unwrap());
    let bare = reading(&none, Ratio::ZERO, size);
    let healthy = reading(&coded, Ratio::ZERO, size) / bare;
    let failing = reading(&coded, Ratio::new(5e-3).unwrap(), size) / bare;
    // In parts of 6 MiB it was 1.039: each command more costs a part of a turn.
    assert!(healthy < 1.03 && failing < 1.06, "{healthy} {failing}");
    // The share of redundant sectors has to be passed at least.
    assert!(healthy > 1.0, "{healthy}");
}
