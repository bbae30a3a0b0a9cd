//! Commands on a kernel of our own: no drive with duration limits, limited retry or bad sectors is
//! needed to see what becomes of what such a drive says.
//!
//! Differs from the real thing: every step ends at once, in the order of the starts, and the bytes of
//! a sector are the low byte of its number.

use std::collections::{BTreeSet, VecDeque};
use std::sync::mpsc::channel;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use levelhead_array::Promise;
use levelhead_block::{
    BlockService, Buf, Done, Durability, Effort, Outcome, Reply, Request, SectorSet,
};
use levelhead_units::{Extent, Lba, Nanos, SECTOR_SIZE, Sectors};
use rustix::io::Errno;
use tempfile::TempDir;

use super::alone::{Uring, Worker};
use super::flight::{Flight, Step};
use super::ring::Event;
use super::*;
use crate::devices::cdl::{Expiry, Limit, Pass, ReadLimit};
use crate::devices::erc::tests::{MadeUp, Manner};
use crate::devices::fake::FakeDevice;
use crate::devices::forced::{Blocks, Forced};
use crate::devices::nvme::{
    DO_NOT_RETRY, INVALID_FIELD, INVALID_OPCODE, Namespace, UNRECOVERED_READ, Wanted,
};
use crate::devices::ways::Hint;
use crate::doubles::{Heard, commands, fates};
use crate::medium::Transfer;

/// What a step that was asked for looked like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seen {
    Read { sector: u64, sectors: u64, priority: u16 },
    Limited { sector: u64, sectors: u64, blocks: u32 },
    FromMedium { sector: u64, sectors: u64, blocks: u32 },
    Forced { sector: u64, sectors: u64 },
    Write { sector: u64, skip: usize, durability: Durability },
    Sync,
    Recover,
}

/// How the next step ends.
#[derive(Clone, Copy, Debug)]
enum End {
    /// It has moved all it was asked for.
    Whole,
    /// It has moved this number of sectors.
    Short(usize),
    /// With an error of the kernel.
    Errno(Errno),
    /// With a status of the drive.
    Status(u16),
}

/// What a step that is not in the script ends with is a whole transfer, unless it reads a bad sector.
#[derive(Default)]
struct FakeKernel {
    script: VecDeque<End>,
    bad: BTreeSet<u64>,
    /// What every step ends with after the script, if not as usual.
    always: Option<Errno>,
    seen: Arc<Mutex<Vec<Seen>>>,
    ended: VecDeque<Event>,
}

impl FakeKernel {
    /// How a step that moves `len` bytes ends, and what the kernel answers.
    fn end(&mut self, len: usize, is_limited: bool, sectors: std::ops::Range<u64>) -> (usize, i32) {
        let is_bad = self.bad.range(sectors).next().is_some();
        let error = self.always.or(is_bad.then_some(Errno::IO));
        let usual = error.map_or(End::Whole, End::Errno);
        match self.script.pop_front().unwrap_or(usual) {
            End::Whole => (len, if is_limited { 0 } else { len as i32 }),
            End::Short(sectors) => (sectors * SECTOR_SIZE, (sectors * SECTOR_SIZE) as i32),
            End::Errno(errno) => (0, -errno.raw_os_error()),
            End::Status(status) => (0, i32::from(status)),
        }
    }
}

impl Kernel for FakeKernel {
    unsafe fn start(&mut self, name: u64, flight: &mut Flight) {
        let (seen, result) = match flight.step() {
            Step::Read { offset, room, priority } => {
                let (sector, sectors) = place(offset, room);
                let seen = Seen::Read { sector, sectors, priority };
                (seen, self.read(offset, room, false))
            }
            Step::PastRead { namespace, wanted, offset, room } => {
                let (sector, sectors) = place(offset, room);
                let blocks = namespace.read(wanted, offset, room.len() as u32, 0).cdw12 & 0xFFFF;
                let blocks = blocks + 1;
                let seen = match wanted {
                    Wanted::LimitedRetry => Seen::Limited { sector, sectors, blocks },
                    Wanted::FromMedium => Seen::FromMedium { sector, sectors, blocks },
                };
                (seen, self.read(offset, room, true))
            }
            Step::ForcedRead { offset, room } => {
                let (sector, sectors) = place(offset, room);
                (Seen::Forced { sector, sectors }, self.read(offset, room, false))
            }
            Step::Write { offset, pieces, skip, durability } => {
                let sector = offset / SECTOR_SIZE as u64;
                let len: usize = pieces.iter().map(|piece| piece.bytes().len()).sum();
                let seen = Seen::Write { sector, skip, durability };
                (seen, self.end(len - skip, false, 0..0).1)
            }
            Step::Sync => (Seen::Sync, self.end(0, false, 0..0).1),
            Step::Recover => (Seen::Recover, self.end(0, false, 0..0).1),
        };
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).push(seen);
        self.ended.push_back(Event::Ended { name, result });
    }

    fn wait(&mut self, _: Option<Duration>, events: &mut Vec<Event>) {
        events.extend(self.ended.pop_front());
    }
}

impl FakeKernel {
    fn read(&mut self, offset: u64, room: &mut [u8], is_limited: bool) -> i32 {
        let (sector, sectors) = place(offset, room);
        let (moved, result) = self.end(room.len(), is_limited, sector..sector + sectors);
        for (lba, sector) in (sector..).zip(room[..moved].chunks_mut(SECTOR_SIZE)) {
            sector.fill(lba as u8);
        }
        result
    }
}

fn place(offset: u64, room: &[u8]) -> (u64, u64) {
    (offset / SECTOR_SIZE as u64, (room.len() / SECTOR_SIZE) as u64)
}

/// Runs requests on a file of 128 sectors with this kernel. The answers in the order in which they came,
/// by the place of their request.
fn run(kernel: FakeKernel, ways: Arc<ReadWays>, requests: Vec<Request>) -> Vec<(usize, Reply)> {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("a.img");
    Medium::create(&path, Sectors::new(128)).unwrap();
    let medium = Arc::new(Medium::open(&path, Transfer::Direct).unwrap());
    run_on(kernel, medium, ways, requests)
}

fn run_on(
    kernel: FakeKernel,
    medium: Arc<Medium>,
    ways: Arc<ReadWays>,
    requests: Vec<Request>,
) -> Vec<(usize, Reply)> {
    let bell = Arc::new(Bell::new().unwrap().0);
    let worker = Worker::new(kernel, Arc::new(Under { medium, ways }), 2, bell);
    let (orders, receiver) = channel();
    let (ends, ended) = channel();
    for (at, request) in requests.into_iter().enumerate() {
        let ends = ends.clone();
        let done: Done = Box::new(move |reply| ends.send((at, reply)).unwrap());
        orders.send((request, done)).unwrap();
    }
    drop((orders, ends));
    worker.run(&receiver);
    ended.iter().collect()
}

/// Reads sectors 8 to 11 with a kernel that ends its steps so. What the kernel saw, and the answer.
fn read(ways: ReadWays, effort: Effort, script: &[End]) -> (Vec<Seen>, Outcome, Way) {
    let seen = Arc::default();
    let script = script.iter().copied().collect();
    let kernel = FakeKernel { script, seen: Arc::clone(&seen), ..FakeKernel::default() };
    let extent = Extent::new(Lba::new(8), Sectors::new(4));
    let ways = Arc::new(ways);
    let request = Request::read_into(extent, effort, Buf::zeroed(extent.sectors));
    let mut replies = run(kernel, Arc::clone(&ways), vec![request]);
    assert_eq!(replies.len(), 1, "M1: one answer");
    let (_, Reply { outcome, data, .. }) = replies.remove(0);
    if let Outcome::Done { unknown, damaged } = &outcome {
        let buf = data.into_buf();
        for offset in 0..4 {
            let is_lost = unknown.contains(offset) || damaged.contains(offset);
            let expected = if is_lost { 0xEE } else { 8 + offset as u8 };
            let sector = buf.part(offset as usize, 1);
            assert!(sector.iter().all(|&byte| byte == expected), "M3, W4: sector {offset}");
        }
    }
    let seen = seen.lock().unwrap_or_else(PoisonError::into_inner).clone();
    (seen, outcome, Way(ways))
}

/// The way to a drive as a read left it.
struct Way(Arc<ReadWays>);

impl Way {
    fn name(&self) -> String {
        self.0.state().path.to_string()
    }
}

const LIMITED: Effort = Effort::Limited(Nanos::from_millis(450));

/// A drive with limits of 100 ms and 500 ms, numbers 2 and 5.
fn limits() -> ReadWays {
    let limit = |number, millis| ReadLimit {
        number,
        inactive: None,
        active: Some(Limit { time: Nanos::from_millis(millis), expiry: Expiry::Unavailable }),
        guideline: None,
    };
    ReadWays::limits(vec![limit(2, 100), limit(5, 500)], Pass::ROTATING)
}

/// A namespace that takes two sectors at a time, in blocks of 512 bytes.
fn namespace() -> ReadWays {
    let namespace = Namespace { nsid: 1, block: 512, transfer_max: 2 * SECTOR_SIZE as u32 };
    ReadWays::limited_retry(namespace, tempfile::tempfile().unwrap())
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
        let (seen, outcome, _) = read(ReadWays::none("a file"), effort, &[]);
        assert_eq!((seen, outcome), (vec![plain(8, 4)], Outcome::GOOD), "{effort:?}");
    }
}

/// EC3, F4. What the drive itself holds back is asked for again, and not held against it.
#[test]
fn read_with_retries_waits_for_the_drives_own_limit_and_damages_nothing_without_it() {
    let short = || ReadWays::with_drive_limit(MadeUp::new(Manner::Accepts).short_limit());
    let (io, whole) = (End::Errno(Errno::IO), End::Whole);
    let read = |effort, script: &[End]| {
        let (seen, outcome, _) = read(short(), effort, script);
        (seen, outcome)
    };
    let first = |seen: Vec<Seen>| seen[..2].to_vec();
    let waited = vec![Seen::Recover, plain(8, 4)];
    for effort in [Effort::Full, Effort::Medium] {
        assert_eq!(read(effort, &[whole]), (waited.clone(), Outcome::GOOD));
        let damaged =
            Outcome::Done { unknown: SectorSet::EMPTY, damaged: [0].into_iter().collect() };
        // Halves: the first one fails, and of that its first sector.
        let (seen, outcome) = read(effort, &[whole, io, io, io, whole, whole]);
        assert_eq!((first(seen), outcome), (waited.clone(), damaged), "{effort:?}");
        // Its own limit is not back: what it gives counts, and what it does not give counts for nothing.
        assert_eq!(read(effort, &[io, whole]), (waited.clone(), Outcome::GOOD), "{effort:?}");
        assert_eq!(read(effort, &[io, io]), (waited.clone(), Outcome::Refused), "{effort:?}");
    }
    for effort in [Effort::Fast, LIMITED] {
        assert_eq!(read(effort, &[whole]), (vec![plain(8, 4)], Outcome::GOOD), "{effort:?}");
        assert_eq!(read(effort, &[io]), (vec![plain(8, 4)], unknown(0..4)), "{effort:?}");
    }
    let ways = ReadWays::with_drive_limit(MadeUp::new(Manner::Accepts).limit().unwrap());
    let (seen, outcome, _) = self::read(ways, Effort::Full, &[]);
    assert_eq!((seen, outcome), (vec![plain(8, 4)], Outcome::GOOD), "its own limit holds");
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
fn full_effort_asks_for_each_half_and_calls_none_unknown() {
    // The halves can be read, so nothing is damaged in the end.
    for errno in [Errno::TIME, Errno::IO] {
        let (seen, outcome, _) = read(limits(), Effort::Full, &[End::Errno(errno)]);
        let steps = vec![plain(8, 4), plain(8, 2), plain(10, 2)];
        assert_eq!((seen, outcome), (steps, Outcome::GOOD));
    }
    // What came before the failure is not read again, and neither is a sector that failed alone.
    let script = [End::Short(1), End::Errno(Errno::IO), End::Whole, End::Errno(Errno::IO)];
    let (seen, outcome, _) = read(limits(), Effort::Full, &[&script[..], &script[1..2]].concat());
    let steps = [plain(8, 4), plain(9, 3), plain(9, 1), plain(10, 2), plain(10, 1), plain(11, 1)];
    let (unknown, damaged) = (SectorSet::EMPTY, [2].into_iter().collect());
    assert_eq!((&seen[..], outcome), (&steps[..], Outcome::Done { unknown, damaged }));
}

/// F3: a bad sector takes two reads a halving, and other commands go on meanwhile.
#[test]
fn search_for_a_bad_sector_holds_nothing_up() {
    let seen = Arc::default();
    let bad = BTreeSet::from([37]);
    let kernel = FakeKernel { bad, seen: Arc::clone(&seen), ..FakeKernel::default() };
    let extent = |lba, sectors| Extent::new(Lba::new(lba), Sectors::new(sectors));
    let mut requests =
        vec![Request::read_into(extent(0, 64), Effort::Full, Buf::zeroed(Sectors::new(64)))];
    let other =
        |lba| Request::read_into(extent(lba, 1), Effort::Full, Buf::zeroed(Sectors::new(1)));
    requests.extend((100..106).map(other));
    let replies = run(kernel, Arc::new(ReadWays::none("a file")), requests);
    let order: Vec<usize> = replies.iter().map(|(at, _)| *at).collect();
    assert_eq!(order, [1, 2, 3, 4, 5, 6, 0], "the others did not wait");
    let (unknown, damaged) = (SectorSet::EMPTY, [37].into_iter().collect());
    assert_eq!(replies[6].1.outcome, Outcome::Done { unknown, damaged });
    let count = seen.lock().unwrap_or_else(PoisonError::into_inner).len();
    assert_eq!(count, 6 + 1 + 12, "reads of the kernel");
}

#[test]
fn drive_that_has_gone_is_gone_whatever_the_effort() {
    for effort in [Effort::Fast, LIMITED, Effort::Full] {
        for ways in [limits(), namespace()] {
            let (_, outcome, _) = read(ways, effort, &[End::Errno(Errno::NODEV)]);
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
fn read_from_the_medium_goes_past_the_block_layer_where_that_can_say_so() {
    let medium = |sector| Seen::FromMedium { sector, sectors: 2, blocks: 16 };
    let (seen, outcome, way) = read(namespace(), Effort::Medium, &[]);
    assert_eq!((seen, outcome), (vec![medium(8), medium(10)], Outcome::GOOD));
    assert_eq!(way.0.promise(), Promise::Medium);
    // What cannot be read is sought out, past the block layer as well.
    let (seen, outcome, _) =
        read(namespace(), Effort::Medium, &[End::Status(UNRECOVERED_READ), End::Errno(Errno::IO)]);
    assert!(matches!(outcome, Outcome::Done { .. }) && seen.len() > 2, "{seen:?}");
    assert!(seen.iter().all(|seen| matches!(seen, Seen::FromMedium { .. })), "{seen:?}");
    // What says nothing of the medium is no reason to call it damaged: that read goes on as an ordinary one.
    for status in [0x371, 0x006, 0x7FFF] {
        let script = [End::Whole, End::Status(status)];
        let (seen, outcome, way) = read(namespace(), Effort::Medium, &script);
        let expected = vec![medium(8), medium(10), plain(10, 2)];
        assert_eq!((seen, outcome), (expected, Outcome::GOOD), "{status:#x}");
        assert_eq!(way.0.promise(), Promise::Medium);
    }
    // Refused: from then on it is an ordinary read, and promises less. Limited retry has nothing to do with it.
    let refusal = [End::Status(INVALID_FIELD | DO_NOT_RETRY)];
    let (seen, outcome, way) = read(namespace(), Effort::Medium, &refusal);
    assert_eq!((seen, outcome), (vec![medium(8), plain(8, 4)], Outcome::GOOD));
    assert_eq!(
        (way.0.promise(), way.name()),
        (Promise::Interface, "nvme-limited-retry".to_owned())
    );
    assert_eq!(way.0.hint(Effort::Medium), Hint::None);
    for ways in [limits(), ReadWays::none("a file")] {
        let (seen, outcome, way) = read(ways, Effort::Medium, &[]);
        assert_eq!((seen, outcome), (vec![plain(8, 4)], Outcome::GOOD));
        assert_eq!(way.0.promise(), Promise::Interface);
    }
}

/// A disk with limits that takes two sectors of eight blocks at a time from its medium.
fn forced() -> ReadWays {
    let blocks = Blocks { block: 512, transfer_max: 2 * SECTOR_SIZE as u32 };
    limits().with_forced(Forced::new(blocks, Box::new(FakeDevice::default())))
}

fn from_medium(sector: u64, sectors: u64) -> Seen {
    Seen::Forced { sector, sectors }
}

#[test]
fn scsi_disk_is_read_from_the_medium_piece_by_piece() {
    let (seen, outcome, way) = read(forced(), Effort::Medium, &[]);
    assert_eq!((seen, outcome), (vec![from_medium(8, 2), from_medium(10, 2)], Outcome::GOOD));
    assert_eq!((way.0.promise(), way.name()), (Promise::Medium, "duration-limits".to_owned()));
    // What a short transfer has left is asked for next.
    let (seen, outcome, _) = read(forced(), Effort::Medium, &[End::Short(1)]);
    let steps = vec![from_medium(8, 2), from_medium(9, 2), from_medium(11, 1)];
    assert_eq!((seen, outcome), (steps, Outcome::GOOD));
    // Other efforts go the ways they have.
    let (seen, _, _) = read(forced(), Effort::Full, &[]);
    assert_eq!(seen, [plain(8, 4)]);
    let (seen, _, _) = read(forced(), Effort::Fast, &[]);
    assert_eq!(seen, [hinted(8, 4, 2)]);
}

#[test]
fn scsi_disk_that_refuses_reads_from_the_medium_is_read_as_usual_and_promises_less() {
    for errno in [Errno::OPNOTSUPP, Errno::NOTTY, Errno::PERM, Errno::INVAL] {
        let script = [End::Whole, End::Errno(errno)];
        let (seen, outcome, way) = read(forced(), Effort::Medium, &script);
        let steps = vec![from_medium(8, 2), from_medium(10, 2), plain(10, 2)];
        assert_eq!((seen, outcome), (steps, Outcome::GOOD));
        let left = (way.0.promise(), way.0.hint(Effort::Medium), way.name());
        assert_eq!(left, (Promise::Interface, Hint::None, "duration-limits".to_owned()));
    }
}

#[test]
fn sector_that_a_scsi_disk_cannot_read_from_its_medium_is_damaged() {
    let failed = End::Errno(Errno::IO);
    let script = [failed, End::Whole, failed, failed];
    let (seen, outcome, way) = read(forced(), Effort::Medium, &script);
    let searched = [(8, 2), (8, 2), (10, 2), (10, 1), (11, 1)];
    assert_eq!(seen, searched.map(|(sector, sectors)| from_medium(sector, sectors)));
    let (unknown, damaged) = (SectorSet::EMPTY, [2].into_iter().collect());
    assert_eq!(outcome, Outcome::Done { unknown, damaged });
    assert_eq!(way.0.promise(), Promise::Medium);
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

/// Writes sectors 8 to 11 durably with a kernel that ends its steps so, past the page cache or not.
fn write(transfer: Transfer, script: &[End]) -> (Vec<Seen>, Vec<Outcome>) {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("a.img");
    Medium::create(&path, Sectors::new(16)).unwrap();
    let medium = Arc::new(Medium::open(&path, transfer).unwrap());
    let seen = Arc::default();
    let script = script.iter().copied().collect();
    let kernel = FakeKernel { script, seen: Arc::clone(&seen), ..FakeKernel::default() };
    let extent = Extent::new(Lba::new(8), Sectors::new(4));
    let request = || Request::write(extent, Durability::Durable, Buf::zeroed(extent.sectors));
    let ways = Arc::new(ReadWays::none("a file"));
    // The second one after the first has ended: the first has taken the only place.
    let replies = run_on(kernel, medium, ways, vec![request(), request(), request()]);
    let seen = seen.lock().unwrap_or_else(PoisonError::into_inner).clone();
    (seen, replies.into_iter().map(|(_, reply)| reply.outcome).collect())
}

fn stored(durability: Durability) -> Seen {
    Seen::Write { sector: 8, skip: 0, durability }
}

#[test]
fn durable_write_says_so_itself_and_needs_no_sync() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("a.img");
    Medium::create(&path, Sectors::new(1)).unwrap();
    if !Medium::open(&path, Transfer::Direct).unwrap().is_direct() {
        eprintln!("SKIPPED: the file system knows no direct transfers");
        return;
    }
    let itself = stored(Durability::Durable);
    let (seen, outcomes) = write(Transfer::Direct, &[]);
    assert_eq!((seen, outcomes), (vec![itself; 3], vec![Outcome::GOOD; 3]));
    // Where that is refused, it is repeated with a sync after it, and so are all later ones.
    for errno in [Errno::OPNOTSUPP, Errno::INVAL] {
        let (seen, outcomes) = write(Transfer::Direct, &[End::Errno(errno); 2]);
        let plain = stored(Durability::Cached);
        let steps = [itself, itself, plain, plain, Seen::Sync, Seen::Sync, plain, Seen::Sync];
        assert_eq!((&seen[..], outcomes), (&steps[..], vec![Outcome::GOOD; 3]));
    }
}

/// A failure of both together could be one of an earlier write.
#[test]
fn durable_write_through_the_page_cache_is_followed_by_a_sync() {
    let (seen, outcomes) = write(Transfer::Cached, &[]);
    let plain = stored(Durability::Cached);
    let steps = [plain, plain, Seen::Sync, Seen::Sync, plain, Seen::Sync];
    assert_eq!((&seen[..], outcomes), (&steps[..], vec![Outcome::GOOD; 3]));
    let script = [End::Whole, End::Whole, End::Errno(Errno::NOSPC)];
    let (_, outcomes) = write(Transfer::Cached, &script);
    assert_eq!(outcomes[0], Outcome::Gone, "what was written before may be lost");
}

#[test]
fn every_error_of_the_kernel_means_what_the_table_says() {
    for fate in fates() {
        for (request, expected) in commands(fate) {
            let command = request.command;
            let seen = Arc::default();
            let kernel = FakeKernel {
                always: Some(fate.errno),
                seen: Arc::clone(&seen),
                ..FakeKernel::default()
            };
            let replies = run(kernel, Arc::new(ReadWays::none("a file")), vec![request]);
            let (_, Reply { outcome, reason, .. }) = &replies[0];
            assert_eq!(Heard::from(outcome), expected, "{command:?} and {:?}", fate.errno);
            assert_eq!(*reason, Some(io::Error::from(fate.errno).to_string()), "{command:?}");
            // Steps that the machine wants to be tried again have a bound.
            assert!(seen.lock().unwrap_or_else(PoisonError::into_inner).len() <= 10, "{command:?}");
        }
    }
}

/// Reads sectors 8 to 11 of a file through this machine's own kernel; `None` where it has no rings.
fn read_really(ways: ReadWays) -> Option<(Outcome, Way)> {
    if let Err(error) = check_available() {
        eprintln!("SKIPPED: {error}");
        return None;
    }
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("a.img");
    let bytes: Vec<u8> = (0..16).flat_map(|sector| [sector; SECTOR_SIZE]).collect();
    std::fs::write(&path, bytes).unwrap();
    let medium = Arc::new(Medium::open(&path, Transfer::Direct).unwrap());
    let (sender, ended) = channel();
    let ways = Arc::new(ways);
    let drive = Uring::start(medium, Arc::clone(&ways), 4).unwrap();
    let extent = Extent::new(Lba::new(8), Sectors::new(4));
    let done = Box::new(move |reply| sender.send(reply).unwrap());
    drive.submit(Request::read(extent, Effort::Fast), done);
    let Reply { outcome, data, .. } = ended.recv().unwrap();
    for (sector, bytes) in (8..).zip(data.into_buf().as_slice().chunks(SECTOR_SIZE)) {
        assert!(bytes.iter().all(|&byte| byte == sector), "sector {sector}");
    }
    Some((outcome, Way(ways)))
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
