//! Reads of every effort on a kernel of our own: no drive with duration limits or limited retry is
//! needed to see what becomes of what such a drive says.
//!
//! Differs from the real thing: every step ends at once, in the order of the starts, and the bytes of
//! a sector are the low byte of its number.

use std::collections::VecDeque;
use std::sync::mpsc::channel;
use std::sync::{Mutex, PoisonError};

use levelhead_array::SubId;
use levelhead_block::{Buf, Effort, SectorSet};
use levelhead_units::{Extent, Lba, Nanos, SECTOR_SIZE, Sectors};
use rustix::io::Errno;
use tempfile::TempDir;

use super::flight::Step;
use super::*;
use crate::devices::cdl::{Expiry, Limit, Pass, ReadLimit};
use crate::devices::nvme::{
    DO_NOT_RETRY, INVALID_FIELD, INVALID_OPCODE, Namespace, UNRECOVERED_READ,
};
use crate::medium::Transfer;

/// What a step that was asked for looked like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seen {
    Read { sector: u64, sectors: u64, priority: u16 },
    Limited { sector: u64, sectors: u64, blocks: u32 },
}

/// How the next step ends.
#[derive(Clone, Copy, Debug)]
enum End {
    /// It has moved all it was asked for.
    Whole,
    /// It has moved so many sectors.
    Short(usize),
    /// With an error of the kernel.
    Errno(Errno),
    /// With a status of the drive.
    Status(u16),
}

/// What a step that is not in the script ends with is a whole transfer.
struct FakeKernel {
    script: VecDeque<End>,
    seen: Arc<Mutex<Vec<Seen>>>,
    ended: VecDeque<Event>,
    is_woken: bool,
}

impl Kernel for FakeKernel {
    unsafe fn start(&mut self, name: u64, flight: &mut Flight) {
        let end = self.script.pop_front().unwrap_or(End::Whole);
        let (offset, room, seen) = match flight.step() {
            Step::Read { offset, room, priority } => {
                let (sector, sectors) = place(offset, room);
                (offset, room, Seen::Read { sector, sectors, priority })
            }
            Step::LimitedRead { namespace, offset, room } => {
                let (sector, sectors) = place(offset, room);
                let blocks = namespace.read(offset, room.len() as u32, 0).cdw12 & 0xFFFF;
                (offset, room, Seen::Limited { sector, sectors, blocks: blocks + 1 })
            }
            Step::Write { .. } | Step::Sync => panic!("these tests only read"),
        };
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).push(seen);
        let is_limited = matches!(seen, Seen::Limited { .. });
        let (moved, result) = match end {
            End::Whole => (room.len(), if is_limited { 0 } else { room.len() as i32 }),
            End::Short(sectors) => (sectors * SECTOR_SIZE, (sectors * SECTOR_SIZE) as i32),
            End::Errno(errno) => (0, -errno.raw_os_error()),
            End::Status(status) => (0, i32::from(status)),
        };
        let first = offset / SECTOR_SIZE as u64;
        for (lba, sector) in (first..).zip(room[..moved].chunks_mut(SECTOR_SIZE)) {
            sector.fill(lba as u8);
        }
        self.ended.push_back(Event::Ended { name, result });
    }

    fn wait(&mut self, events: &mut Vec<Event>) {
        let next = self.ended.pop_front();
        events.push(next.unwrap_or(if self.is_woken { Event::Closed } else { Event::Woken }));
        self.is_woken = true;
    }
}

fn place(offset: u64, room: &[u8]) -> (u64, u64) {
    (offset / SECTOR_SIZE as u64, (room.len() / SECTOR_SIZE) as u64)
}

/// Reads sectors 8 to 11 of a file of 16 with a kernel that ends its steps so. What the kernel saw,
/// and the answer.
fn read(fast: FastFail, effort: Effort, script: &[End]) -> (Vec<Seen>, Outcome, Way) {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("a.img");
    Medium::create(&path, Sectors::new(16)).unwrap();
    let medium = Arc::new(Medium::open(&path, Transfer::Cached).unwrap());
    let (seen, fast) = (Arc::default(), Arc::new(fast));
    let kernel = FakeKernel {
        script: script.iter().copied().collect(),
        seen: Arc::clone(&seen),
        ended: VecDeque::new(),
        is_woken: false,
    };
    let (ends, ended) = channel();
    let report: Report = Arc::new(move |ended| drop(ends.send(ended)));
    let state =
        State { flights: Flights::default(), kernel, medium, fast: Arc::clone(&fast), report };
    let (orders, receiver) = channel();
    let extent = Extent::new(Lba::new(8), Sectors::new(4));
    let command = Command::Read { extent, effort };
    let payload = Payload::Fill(Buf::zeroed(extent.sectors));
    orders.send(Order { sub: SubId(1), command, payload, origin: 0 }).unwrap();
    drop(orders);
    state.run(&receiver);
    let Ended { sub, outcome, buf, .. } = ended.recv().unwrap();
    assert_eq!(sub, SubId(1));
    assert!(ended.recv().is_err(), "B1: one end");
    let buf = buf.unwrap();
    // With full effort, sectors read alone come from the file.
    if let (Outcome::Done { unknown, .. }, Effort::Fast | Effort::Limited(_)) = (&outcome, effort) {
        for offset in 0..4 {
            let expected = if unknown.contains(offset) { 0xEE } else { 8 + offset as u8 };
            let sector = buf.part(offset as usize, 1);
            assert!(sector.iter().all(|&byte| byte == expected), "B3, W4: sector {offset}");
        }
    }
    let seen = seen.lock().unwrap_or_else(PoisonError::into_inner).clone();
    (seen, outcome, Way(fast))
}

/// The way to a drive as a read left it.
struct Way(Arc<FastFail>);

impl Way {
    fn name(&self) -> String {
        self.0.state().path.to_string()
    }
}

const LIMITED: Effort = Effort::Limited(Nanos::from_millis(450));

/// A drive with limits of 100 ms and 500 ms, numbers 2 and 5.
fn limits() -> FastFail {
    let limit = |number, millis| ReadLimit {
        number,
        inactive: None,
        active: Some(Limit { time: Nanos::from_millis(millis), expiry: Expiry::Unavailable }),
        guideline: None,
    };
    FastFail::limits(vec![limit(2, 100), limit(5, 500)], Pass::ROTATING)
}

/// A namespace that takes two sectors at a time, in blocks of 512 bytes.
fn namespace() -> FastFail {
    let namespace = Namespace { nsid: 1, block: 512, transfer_max: 2 * SECTOR_SIZE as u32 };
    FastFail::limited_retry(namespace, tempfile::tempfile().unwrap())
}

fn unknown(offsets: impl IntoIterator<Item = u32>) -> Outcome {
    Outcome::Done { unknown: offsets.into_iter().collect(), damaged: SectorSet::EMPTY }
}

fn plain(sector: u64, sectors: u64) -> Seen {
    Seen::Read { sector, sectors, priority: 0 }
}

fn hinted(sector: u64, sectors: u64, number: u16) -> Seen {
    Seen::Read { sector, sectors, priority: 0x4004 | number << 3 }
}

fn past(sector: u64) -> Seen {
    Seen::Limited { sector, sectors: 2, blocks: 16 }
}

#[test]
fn effort_chooses_the_limit() {
    for (effort, expected) in
        [(Effort::Full, plain(8, 4)), (Effort::Fast, hinted(8, 4, 2)), (LIMITED, hinted(8, 4, 5))]
    {
        let (seen, outcome, _) = read(limits(), effort, &[]);
        assert_eq!((seen, outcome), (vec![expected], Outcome::GOOD), "{effort:?}");
        let (seen, outcome, _) = read(FastFail::none("a file"), effort, &[]);
        assert_eq!((seen, outcome), (vec![plain(8, 4)], Outcome::GOOD), "{effort:?}");
    }
}

/// `ETIME` is what a limit that has run out ends a request with; the others are what a drive that
/// gave up on its own does.
#[test]
fn every_failure_of_little_effort_is_unknown() {
    for errno in [Errno::TIME, Errno::IO, Errno::NODATA, Errno::TIMEDOUT, Errno::REMOTEIO] {
        for effort in [Effort::Fast, LIMITED] {
            let (seen, outcome, way) = read(limits(), effort, &[End::Errno(errno)]);
            assert_eq!((seen.len(), outcome), (1, unknown(0..4)), "{errno:?}");
            assert_eq!(way.name(), "duration-limits", "{errno:?}");
        }
    }
}

#[test]
fn what_came_before_the_limit_ran_out_is_known() {
    let script = [End::Short(1), End::Short(2), End::Errno(Errno::TIME)];
    let (seen, outcome, _) = read(limits(), Effort::Fast, &script);
    assert_eq!(seen, [hinted(8, 4, 2), hinted(9, 3, 2), hinted(11, 1, 2)]);
    assert_eq!(outcome, unknown([3]));
}

#[test]
fn full_effort_asks_for_each_sector_and_calls_none_unknown() {
    // The file can be read, so nothing is damaged in the end.
    for errno in [Errno::TIME, Errno::IO] {
        let (seen, outcome, _) = read(limits(), Effort::Full, &[End::Errno(errno)]);
        assert_eq!((seen, outcome), (vec![plain(8, 4)], Outcome::GOOD));
    }
}

#[test]
fn drive_that_has_gone_is_gone_whatever_the_effort() {
    for effort in [Effort::Fast, LIMITED, Effort::Full] {
        for fast in [limits(), namespace()] {
            let (_, outcome, _) = read(fast, effort, &[End::Errno(Errno::NODEV)]);
            assert_eq!(outcome, Outcome::Gone);
        }
    }
}

#[test]
fn interrupted_step_is_started_again() {
    for errno in [Errno::INTR, Errno::AGAIN] {
        let (seen, outcome, _) = read(limits(), Effort::Fast, &[End::Errno(errno)]);
        assert_eq!((seen, outcome), (vec![hinted(8, 4, 2); 2], Outcome::GOOD));
    }
}

#[test]
fn refused_hint_is_left_out_from_then_on() {
    for errno in [Errno::INVAL, Errno::OPNOTSUPP] {
        let (seen, outcome, way) = read(limits(), Effort::Fast, &[End::Errno(errno)]);
        assert_eq!((seen, outcome), (vec![hinted(8, 4, 2), plain(8, 4)], Outcome::GOOD));
        assert_eq!(way.name(), "none");
    }
    // Without a hint it is a failure like any other.
    let end = [End::Errno(Errno::INVAL); 2];
    let (seen, outcome, _) = read(limits(), Effort::Fast, &end);
    assert_eq!((seen.len(), outcome), (2, unknown(0..4)));
}

#[test]
fn limited_retry_takes_as_many_commands_as_it_needs() {
    for effort in [Effort::Fast, LIMITED] {
        let (seen, outcome, way) = read(namespace(), effort, &[]);
        assert_eq!((seen, outcome), (vec![past(8), past(10)], Outcome::GOOD));
        assert_eq!(way.name(), "nvme-limited-retry");
    }
    let (seen, outcome, _) = read(namespace(), Effort::Full, &[]);
    assert_eq!((seen, outcome), (vec![plain(8, 4)], Outcome::GOOD));
}

#[test]
fn status_of_a_read_without_retries_is_unknown() {
    let statuses = [UNRECOVERED_READ, UNRECOVERED_READ | DO_NOT_RETRY, 0x282, 0x371, 0x7FFF];
    for status in statuses {
        let (seen, outcome, _) = read(namespace(), Effort::Fast, &[End::Status(status)]);
        assert_eq!((seen, outcome), (vec![past(8)], unknown(0..4)), "{status:#x}");
        let (seen, outcome, _) =
            read(namespace(), Effort::Fast, &[End::Whole, End::Status(status)]);
        assert_eq!((seen, outcome), (vec![past(8), past(10)], unknown(2..4)), "{status:#x}");
    }
    let (_, outcome, way) = read(namespace(), LIMITED, &[End::Errno(Errno::IO)]);
    assert_eq!((outcome, way.name()), (unknown(0..4), "nvme-limited-retry".to_owned()));
}

#[test]
fn refused_limited_retry_is_read_as_usual() {
    let ends = [
        End::Status(INVALID_FIELD | DO_NOT_RETRY),
        End::Status(INVALID_OPCODE),
        End::Errno(Errno::OPNOTSUPP),
        End::Errno(Errno::NOTTY),
        End::Errno(Errno::ACCESS),
    ];
    for end in ends {
        let (seen, outcome, way) = read(namespace(), Effort::Fast, &[End::Whole, end]);
        assert_eq!((seen, outcome), (vec![past(8), past(10), plain(10, 2)], Outcome::GOOD));
        assert_eq!(way.name(), "none", "{end:?}");
    }
}

/// Reads sectors 8 to 11 of a file through this machine's own kernel; `None` where it has no rings.
fn read_really(fast: FastFail) -> Option<(Outcome, Way)> {
    if let Err(error) = check_available() {
        eprintln!("SKIPPED: {error}");
        return None;
    }
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("a.img");
    let bytes: Vec<u8> = (0..16).flat_map(|sector| [sector; SECTOR_SIZE]).collect();
    std::fs::write(&path, bytes).unwrap();
    let medium = Arc::new(Medium::open(&path, Transfer::Direct).unwrap());
    let (ends, ended) = channel();
    let report: Report = Arc::new(move |ended| drop(ends.send(ended)));
    let fast = Arc::new(fast);
    let mut drive = Uring::start(medium, Arc::clone(&fast), 4, report).unwrap();
    let extent = Extent::new(Lba::new(8), Sectors::new(4));
    let command = Command::Read { extent, effort: Effort::Fast };
    let payload = Payload::Fill(Buf::zeroed(extent.sectors));
    drive.submit(Order { sub: SubId(1), command, payload, origin: 0 });
    let Ended { outcome, buf, .. } = ended.recv().unwrap();
    for (sector, bytes) in (8..).zip(buf.unwrap().as_slice().chunks(SECTOR_SIZE)) {
        assert!(bytes.iter().all(|&byte| byte == sector), "sector {sector}");
    }
    Some((outcome, Way(fast)))
}

/// A file is no namespace, and the kernel at hand says so.
#[test]
fn real_kernel_that_refuses_limited_retry_reads_as_usual() {
    if let Some((outcome, way)) = read_really(namespace()) {
        assert_eq!((outcome, way.name()), (Outcome::GOOD, "none".to_owned()));
    }
}

/// Below a file the hint means nothing; a kernel that does not know it at all refuses it.
#[test]
fn real_kernel_reads_with_a_hint_or_without() {
    if let Some((outcome, way)) = read_really(limits()) {
        assert_eq!(outcome, Outcome::GOOD);
        assert!(["duration-limits", "none"].contains(&way.name().as_str()));
        println!("the kernel at hand: {}", way.name());
    }
}
