//! Arrays whose drives are the engine's own: what becomes of requests when the kernel holds back what
//! a drive ends, and how often the kernel is entered.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use levelhead_block::adapter::Waiting;
use levelhead_block::conformance::{SuiteSettings, check_service};
use levelhead_block::{BlockDevice, Buf, Durability, Effort, Outcome, Reply};
use levelhead_erasure::{Kernel, Measured};
use levelhead_units::{Extent, Lba};
use tempfile::TempDir;

use super::*;
use crate::assemble::assemble;
use crate::create::{CreateOptions, Journaling, create};
use crate::medium::{Medium, Transfer};
use crate::member::MemberSpec;
use crate::starting::AssembleOptions;
use crate::status::DriveState;
use crate::uring::puppet::{Puppet, Strings};
use crate::uring::{self, Kernel as Steps};

/// A RAID-5 of three files with data everywhere.
struct Bench {
    folder: TempDir,
    array: ArrayHandle,
    strings: Arc<Strings>,
}

fn specs(folder: &Path) -> Vec<MemberSpec> {
    let path = |at| folder.join(format!("{at}.img")).display().to_string();
    (0..3).map(|at| path(at).parse().unwrap()).collect()
}

/// `None` where this machine has no rings.
fn bench(folder: TempDir, io: Io) -> Option<Bench> {
    if let Err(error) = uring::check_available() {
        eprintln!("SKIPPED: {error}");
        return None;
    }
    let members = specs(folder.path());
    for member in &members {
        std::fs::File::create(member.path()).unwrap().set_len(600 * 4096).unwrap();
    }
    // What is in a journal is read from memory.
    let journal = Journaling::None;
    let options = CreateOptions { assume_clean: true, journal, ..CreateOptions::default() };
    create("raid5:2+1,chunk=8KiB".parse().unwrap(), &members[..].into(), options).unwrap();
    let assembled = assemble(&members, AssembleOptions::default()).unwrap();
    let strings = Arc::new(Strings::default());
    let kernel = |kernel| -> Box<dyn Steps> { Box::new(Puppet::new(kernel, Arc::clone(&strings))) };
    let options = ServeOptions {
        policy: Policy::Normal,
        window: 4,
        order: HostOrder::Elevator,
        io,
        arithmetic: Measured::none(Kernel::Naive, &[]),
        bound: Bound::DEFAULT,
        seed: 1,
        patience: Patience { silent: Nanos::from_secs(1), lost: Nanos::from_secs(2) },
        on_event: None,
        verify: None,
        fast_fail: FastFail::Command,
    };
    let array = assembled.serve_over(options, &Doubles { kernel: &kernel, ..Doubles::NONE });
    Some(Bench { folder, array: array.unwrap(), strings })
}

impl Bench {
    fn run(&self, request: Request) -> Reply {
        Waiting::new(Arc::new(self.array.clone())).run(vec![request]).pop().unwrap()
    }

    fn write(&self, sectors: u64, value: u8) -> Reply {
        let extent = Extent::new(Lba::ZERO, Sectors::new(sectors));
        let bytes = Buf::copy_of(&vec![value; extent.sectors.bytes().get() as usize]);
        self.run(Request::write(extent, Durability::Durable, bytes))
    }

    fn read(&self, lba: u64, sectors: u64) -> Reply {
        let extent = Extent::new(Lba::new(lba), Sectors::new(sectors));
        self.run(Request::read(extent, Effort::Full))
    }

    fn check_read(&self, sectors: u64, value: u8) {
        let reply = self.read(0, sectors);
        assert!(reply.outcome.is_good(), "{:?}", reply.outcome);
        assert!(reply.data.slices().flatten().all(|&byte| byte == value));
    }

    fn path(&self, drive: usize) -> PathBuf {
        self.folder.path().join(format!("{drive}.img"))
    }
}

#[test]
fn array_over_the_ring_conforms_and_leaves_nothing_open() {
    let Some(bench) = bench(TempDir::new().unwrap(), Io::Uring) else { return };
    let settings = SuiteSettings { seed: 7, requests: 300, sectors_max: 20, batch_max: 12 };
    check_service(Arc::new(bench.array.clone()), settings);
    bench.array.stop().unwrap();
    assert!(bench.strings.steps.load(Ordering::SeqCst) > 0);
    for drive in 0..3 {
        Medium::open(&bench.path(drive), Transfer::Direct).unwrap();
    }
}

/// E2, E4, U3. Nothing waits for the drive: neither who asks how the array is, nor the requests, nor the stop.
#[test]
fn drive_that_hangs_in_the_ring_holds_nothing_up_and_keeps_its_memory() {
    for hanging in 0..3 {
        let Some(bench) = bench(TempDir::new().unwrap(), Io::Uring) else { return };
        assert!(bench.write(40, 7).outcome.is_good());
        bench.strings.hang(hanging);
        let reader = bench.array.clone();
        let extent = Extent::new(Lba::ZERO, Sectors::new(40));
        let reading = thread::spawn(move || {
            let read = Request::read(extent, Effort::Full);
            Waiting::new(Arc::new(reader)).run(vec![read]).pop().unwrap()
        });
        while !reading.is_finished() {
            assert_eq!(bench.array.status().unwrap().drives.len(), 3);
            thread::sleep(Duration::from_millis(1));
        }
        let reply = reading.join().unwrap();
        assert!(reply.outcome.is_good(), "{:?}", reply.outcome);
        assert!(reply.data.slices().flatten().all(|&byte| byte == 7));
        // A write needs the drive, or its loss.
        assert!(bench.write(40, 9).outcome.is_good());
        bench.check_read(8, 9);
        assert_eq!(bench.array.status().unwrap().drives[hanging].state, DriveState::Failed);
        bench.array.stop().unwrap();
        for drive in 0..3 {
            let opened = Medium::open(&bench.path(drive), Transfer::Direct);
            // Its commands may yet come back, and keep it.
            assert_eq!(opened.is_err(), drive == hanging, "{opened:?}");
        }
    }
}

#[test]
fn more_drives_that_hang_than_the_array_survives_leave_no_request_unanswered() {
    let Some(bench) = bench(TempDir::new().unwrap(), Io::Uring) else { return };
    assert!(bench.write(40, 7).outcome.is_good());
    bench.strings.hang(1);
    let writer = bench.array.clone();
    let extent = Extent::new(Lba::ZERO, Sectors::new(40));
    let writing = thread::spawn(move || {
        let write = Request::write(extent, Durability::Durable, Buf::zeroed(extent.sectors));
        Waiting::new(Arc::new(writer)).run(vec![write]).pop().unwrap()
    });
    while bench.array.status().unwrap().outstanding == 0 && !writing.is_finished() {
        thread::yield_now();
    }
    bench.strings.hang(2);
    drop(bench.array.stop());
    drop(writing.join().unwrap());
    assert_eq!(bench.read(0, 8).outcome, Outcome::Gone);
}

#[test]
fn file_that_becomes_shorter_under_the_ring_is_lost_and_done_without() {
    for cut_to in [4096, 20 * 4096 + 100] {
        let Some(bench) = bench(TempDir::new().unwrap(), Io::Uring) else { return };
        assert!(bench.write(40, 7).outcome.is_good());
        std::fs::File::options().write(true).open(bench.path(1)).unwrap().set_len(cut_to).unwrap();
        bench.check_read(40, 7);
        assert!(bench.write(40, 8).outcome.is_good());
        bench.check_read(40, 8);
        let status = bench.array.status().unwrap();
        let expected = format!("it has become shorter, from 2457600 bytes to {cut_to}");
        assert_eq!(status.drives[1].failure, Some(expected));
        assert_eq!(std::fs::metadata(bench.path(1)).unwrap().len(), cut_to);
        bench.array.stop().unwrap();
    }
}

#[test]
fn kernel_that_takes_nothing_for_a_while_delays_requests_and_nothing_else() {
    let Some(bench) = bench(TempDir::new().unwrap(), Io::Uring) else { return };
    assert!(bench.write(40, 7).outcome.is_good());
    bench.strings.refusals.store(200, Ordering::SeqCst);
    let reader = bench.array.clone();
    let reading = thread::spawn(move || {
        let extent = Extent::new(Lba::ZERO, Sectors::new(40));
        let read = Request::read(extent, Effort::Full);
        Waiting::new(Arc::new(reader)).run(vec![read]).pop().unwrap()
    });
    while bench.strings.refusals.load(Ordering::SeqCst) > 0 {
        assert_eq!(bench.array.status().unwrap().state, crate::status::ArrayState::Whole);
    }
    assert!(reading.join().unwrap().outcome.is_good());
    bench.array.stop().unwrap();
}

/// All steps of a request are handed over together, and the call that does so waits for them.
#[test]
fn request_enters_the_kernel_once_with_all_its_steps() {
    const READS: u32 = 200;
    let Some(bench) = bench(TempDir::new().unwrap(), Io::Uring) else { return };
    assert!(bench.write(40, 7).outcome.is_good());
    let count = |of: &AtomicU32| of.load(Ordering::SeqCst);
    // A sector is on one drive, and a stripe's data are on two.
    for (sectors, steps_expected) in [(1, READS), (4, 2 * READS)] {
        let (entries, steps) = (count(&bench.strings.entries), count(&bench.strings.steps));
        for at in 0..READS {
            assert!(bench.read(u64::from(at % 10) * 4, sectors).outcome.is_good());
        }
        // On a busy machine a drive may be so late that another one is asked, and a timer of the engine may be due, which is an entry of its own.
        let more = count(&bench.strings.steps) - steps - steps_expected;
        assert!(more <= READS / 20, "{more} steps besides");
        let more = count(&bench.strings.entries) - entries - READS;
        assert!(more <= READS / 20, "{more} entries besides");
    }
    bench.array.stop().unwrap();
}

#[test]
fn files_in_memory_need_no_kernel_unless_a_ring_is_asked_for() {
    for (io, uses_ring) in [(Io::Best, false), (Io::Uring, true)] {
        let Ok(folder) = TempDir::new_in("/dev/shm") else {
            return eprintln!("SKIPPED: no /dev/shm");
        };
        let Some(bench) = bench(folder, io) else { return };
        let settings = SuiteSettings { seed: 8, requests: 300, sectors_max: 20, batch_max: 12 };
        check_service(Arc::new(bench.array.clone()), settings);
        assert!(bench.write(40, 7).outcome.is_good());
        std::fs::File::options().write(true).open(bench.path(1)).unwrap().set_len(4096).unwrap();
        bench.check_read(40, 7);
        assert_eq!(bench.array.status().unwrap().drives[1].state, DriveState::Failed);
        bench.array.stop().unwrap();
        assert_eq!(bench.strings.steps.load(Ordering::SeqCst) > 0, uses_ring);
        Medium::open(&bench.path(0), Transfer::Direct).unwrap();
    }
}
