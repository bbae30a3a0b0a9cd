//! Arrays whose drives are given short limits of error recovery: files, with made-up drives beside them that have the limits.

use levelhead_block::adapter::Waiting;
use levelhead_block::{BlockDevice, Buf, Durability, Effort, Reply};
use levelhead_erasure::{Kernel, Measured};
use levelhead_testkit::wait_until;
use levelhead_units::{Extent, Lba};
use tempfile::TempDir;

use super::*;
use crate::assemble::assemble;
use crate::create::{CreateOptions, Journaling, create};
use crate::devices::erc::tests::{MadeUp, Manner};
use crate::devices::ways::{FastFailPath, ReadWays};
use crate::member::MemberSpec;
use crate::starting::AssembleOptions;
use crate::uring;

struct Bench {
    array: ArrayHandle,
    drives: Vec<MadeUp>,
    _folder: TempDir,
}

/// An array of three files with data everywhere, whose reads go without retries first. `None` where this machine has no rings.
fn bench(spec: &str, manner: Manner) -> Option<Bench> {
    if let Err(error) = uring::check_available() {
        eprintln!("SKIPPED: {error}");
        return None;
    }
    let folder = TempDir::new().unwrap();
    let path = |at| folder.path().join(format!("{at}.img")).display().to_string();
    let members: Vec<MemberSpec> = (0..3).map(|at| path(at).parse().unwrap()).collect();
    for member in &members {
        std::fs::File::create(member.path()).unwrap().set_len(600 * 4096).unwrap();
    }
    let journal = Journaling::None;
    let options = CreateOptions { assume_clean: true, journal, ..CreateOptions::default() };
    create(spec.parse().unwrap(), &members[..].into(), options).unwrap();
    let assembled = assemble(&members, AssembleOptions::default()).unwrap();
    let drives: Vec<MadeUp> = (0..3).map(|_| MadeUp::new(manner)).collect();
    let ways = |drive: DriveIdx| {
        Some(ReadWays::with_drive_limit(drives[drive.as_usize()].limit().unwrap()))
    };
    let options = ServeOptions {
        policy: Policy::DEFAULT,
        window: 4,
        order: HostOrder::Elevator,
        io: Io::Uring,
        arithmetic: Measured::none(Kernel::Naive, &[]),
        bound: Bound::DEFAULT,
        seed: 1,
        patience: Patience { silent: Nanos::from_secs(1), lost: Nanos::from_secs(2) },
        on_event: None,
        verify: None,
        fast_fail: FastFail::Erc,
    };
    let array = assembled.serve_over(options, &Doubles { ways: &ways, ..Doubles::NONE }).unwrap();
    Some(Bench { array, drives, _folder: folder })
}

impl Bench {
    fn run(&self, request: Request) -> Reply {
        Waiting::new(Arc::new(self.array.clone())).run(vec![request]).pop().unwrap()
    }

    fn write(&self) {
        let extent = Extent::new(Lba::ZERO, Sectors::new(64));
        let bytes = Buf::copy_of(&vec![7; extent.sectors.bytes().get() as usize]);
        assert!(self.run(Request::write(extent, Durability::Durable, bytes)).outcome.is_good());
    }

    fn read(&self) {
        let extent = Extent::new(Lba::ZERO, Sectors::new(64));
        let reply = self.run(Request::read(extent, Effort::Full));
        assert!(reply.outcome.is_good(), "{:?}", reply.outcome);
        assert!(reply.data.slices().flatten().all(|&byte| byte == 7));
    }

    fn is_short(&self, drive: usize) -> bool {
        self.drives[drive].tenths() == [1, 70]
    }

    /// Reads until this many of these drives have short limits.
    fn read_until_short(&self, count: usize, drives: &[usize]) {
        wait_until("limits are short", || {
            self.read();
            drives.iter().filter(|&&at| self.is_short(at)).count() >= count
        });
    }

    fn paths(&self) -> Vec<FastFailPath> {
        let drives = self.array.status().unwrap().drives;
        drives.into_iter().map(|drive| drive.fast_fail.unwrap().path).collect()
    }
}

/// EC1, EC4, EC6.
#[test]
fn limits_are_short_until_a_drive_is_lost_and_none_is_left_to_lose() {
    let Some(bench) = bench("raid5:2+1,chunk=8KiB", Manner::Accepts) else { return };
    bench.write();
    bench.read_until_short(3, &[0, 1, 2]);
    assert_eq!(bench.paths(), [FastFailPath::ErrorRecovery; 3]);
    assert!(bench.drives.iter().all(MadeUp::has_record));
    bench.array.lose(DriveIdx::new(1)).unwrap();
    wait_until("limits are back", || bench.drives.iter().all(|drive| drive.tenths() == [70; 2]));
    for _ in 0..100 {
        bench.read();
    }
    assert!(bench.drives.iter().all(|drive| drive.tenths() == [70; 2]), "nothing is redundant");
    bench.array.stop().unwrap();
    assert!(!bench.drives.iter().any(MadeUp::has_record));
}

#[test]
fn limits_stay_short_while_another_drive_can_be_lost_and_are_put_back_at_the_end() {
    let Some(bench) = bench("raid1:3", Manner::Accepts) else { return };
    bench.write();
    // Which copies are read is luck.
    bench.read_until_short(1, &[0, 1, 2]);
    bench.array.lose(DriveIdx::new(2)).unwrap();
    bench.read_until_short(1, &[0, 1]);
    assert_eq!(bench.drives[2].tenths(), [70; 2], "what is lost has its own");
    bench.array.stop().unwrap();
    for drive in &bench.drives {
        assert_eq!((drive.tenths(), drive.has_record()), ([70; 2], false));
    }
}

#[test]
fn drive_that_keeps_a_short_limit_is_named_at_the_end() {
    let Some(bench) = bench("raid5:2+1,chunk=8KiB", Manner::Sticks) else { return };
    bench.write();
    bench.read_until_short(3, &[0, 1, 2]);
    let error = bench.array.stop().unwrap_err().to_string();
    assert!(error.starts_with("the array was stopped cleanly; "), "{error}");
    assert_eq!(error.matches("smartctl -l scterc,70,70").count(), 3, "{error}");
    assert!(bench.drives.iter().all(MadeUp::has_record));
}

/// Nothing is asked of a drive that is not needed for that.
#[test]
fn limits_of_an_array_without_redundancy_are_left_alone() {
    let Some(bench) = bench("raid0:3+0,chunk=8KiB", Manner::Accepts) else { return };
    bench.write();
    (0..100).for_each(|_| bench.read());
    bench.array.stop().unwrap();
    for drive in &bench.drives {
        assert_eq!((drive.tenths(), drive.has_record()), ([70; 2], false));
    }
}
