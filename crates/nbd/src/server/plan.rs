//! From bytes to sectors: what one request means for a service of whole sectors.
//!
//! Reads are widened to the sectors they touch. A write that ends inside a sector becomes a
//! [`Change`] that first fetches the sector, puts the new bytes in, and writes it back; whoever runs
//! it holds the change's sectors meanwhile, so that two such writes to one sector lose nothing.
//! Trims shrink to the sectors they cover.
//!
//! ```text
//!   WRITE         sectors:  [ kept|new ][ new ][ new|kept ]    fetch, fetch, write
//!   WRITE_ZEROES  sectors:  [ kept|0   ][  0  ][   0|kept ]    fetch, write, zeroes.., fetch, write
//!   TRIM          sectors:  [          ][trim ][          ]    trim.., flush if FUA
//! ```
//!
//! - P1. A change has at most one command in the service at a time, and none of more than
//!   [`PIECE`].
//! - P2. Bytes outside the request are never changed.

use std::collections::VecDeque;
use std::ops::Range;

use levelhead_block::{
    Buf, Command, Durability, Effort, Outcome, Reply, Request, SectorSet, ZeroTail,
};
use levelhead_units::{Bytes, Extent, Lba, SECTOR_SIZE, Sectors};

use super::Access;
use super::negotiation::{Agreed, Replies, Status};
use crate::codec::{Body, CommandFlags, CommandKind, Errno, PAYLOAD_MAX, RequestHeader};

/// The most sectors a service is asked for at once.
pub(super) const PIECE: Sectors = Bytes::new(PAYLOAD_MAX as u64).sectors_floor();

const SECTOR: u64 = SECTOR_SIZE as u64;

/// Why a request failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) error: Errno,
    pub(super) message: String,
    /// The first byte that failed, if that is known.
    pub(super) offset: Option<u64>,
}

impl Failure {
    fn new(error: Errno, message: impl Into<String>) -> Self {
        Self { error, message: message.into(), offset: None }
    }
}

/// What to do about a request.
#[derive(Debug)]
pub(super) enum Plan {
    /// Fetch `extent`; what was asked for is the `len` bytes from byte `skew` on.
    Read {
        extent: Extent,
        skew: usize,
        len: usize,
    },
    Flush,
    Change(Change),
    /// Say that so many bytes are allocated.
    Status {
        length: u32,
    },
    /// It is a hint that is not taken.
    Nothing,
    Disconnect,
}

/// What a request may do here.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    pub(super) size: Bytes,
    pub(super) access: Access,
    pub(super) agreed: Agreed,
}

/// What to do about `header` and what came with it, or why nothing will be done.
pub(super) fn plan(header: &RequestHeader, body: Body, rules: &Rules) -> Result<Plan, Failure> {
    check_flags(header, rules)?;
    let durability = match header.flags.contains(CommandFlags::FUA) {
        true => Durability::Durable,
        false => Durability::Cached,
    };
    let bytes = || {
        let start = header.offset;
        start..start + u64::from(header.length)
    };
    match header.kind {
        CommandKind::Disconnect => Ok(Plan::Disconnect),
        CommandKind::Flush => Ok(Plan::Flush),
        CommandKind::Read => {
            check_range(header, rules, Errno::Invalid)?;
            if header.length > PAYLOAD_MAX {
                return Err(too_long(header));
            }
            let skew = (header.offset % SECTOR) as usize;
            Ok(Plan::Read { extent: covering(bytes()), skew, len: header.length as usize })
        }
        CommandKind::Write => {
            check_access(rules)?;
            check_range(header, rules, Errno::NoSpace)?;
            match body {
                Body::Bytes(payload) => {
                    Ok(Plan::Change(Change::write(bytes(), payload.into_buf(), durability)))
                }
                Body::Skipped | Body::Nothing => Err(too_long(header)),
            }
        }
        CommandKind::WriteZeroes => {
            check_access(rules)?;
            check_range(header, rules, Errno::NoSpace)?;
            if header.flags.contains(CommandFlags::FAST_ZERO) {
                let message = "disks write zeroes no faster than anything else";
                return Err(Failure::new(Errno::NotSupported, message));
            }
            Ok(Plan::Change(Change::write_zeroes(bytes(), durability)))
        }
        CommandKind::Trim => {
            check_access(rules)?;
            check_range(header, rules, Errno::Invalid)?;
            Ok(Plan::Change(Change::trim(bytes(), durability)))
        }
        CommandKind::Cache => {
            check_range(header, rules, Errno::Invalid)?;
            Ok(Plan::Nothing)
        }
        CommandKind::BlockStatus => {
            if rules.agreed.status == Status::NotChosen {
                return Err(Failure::new(Errno::Invalid, "block status was not negotiated"));
            }
            check_range(header, rules, Errno::Invalid)?;
            Ok(Plan::Status { length: header.length })
        }
        CommandKind::Unknown(number) => {
            Err(Failure::new(Errno::Invalid, format!("there is no command {number}")))
        }
    }
}

fn check_flags(header: &RequestHeader, rules: &Rules) -> Result<(), Failure> {
    // Every command may carry FUA, whether it writes or not.
    let specific = match header.kind {
        CommandKind::Read if rules.agreed.replies == Replies::Structured => CommandFlags::DF,
        CommandKind::WriteZeroes => CommandFlags::NO_HOLE | CommandFlags::FAST_ZERO,
        CommandKind::BlockStatus => CommandFlags::REQ_ONE,
        CommandKind::Read
        | CommandKind::Write
        | CommandKind::Disconnect
        | CommandKind::Flush
        | CommandKind::Trim
        | CommandKind::Cache
        | CommandKind::Unknown(_) => CommandFlags::NONE,
    };
    let wrong = header.flags.without(specific | CommandFlags::FUA);
    // A client that leaves is not argued with.
    if wrong == CommandFlags::NONE || header.kind == CommandKind::Disconnect {
        return Ok(());
    }
    let message = format!("flags {:#x} do not go with {:?}", wrong.bits(), header.kind);
    Err(Failure::new(Errno::Invalid, message))
}

fn check_access(rules: &Rules) -> Result<(), Failure> {
    match rules.access {
        Access::ReadWrite => Ok(()),
        Access::ReadOnly => Err(Failure::new(Errno::NotPermitted, "the export is read-only")),
    }
}

fn check_range(header: &RequestHeader, rules: &Rules, past_end: Errno) -> Result<(), Failure> {
    let RequestHeader { offset, length, .. } = *header;
    if length == 0 {
        return Err(Failure::new(Errno::Invalid, "the request is about no bytes"));
    }
    let end = offset.checked_add(length.into());
    if end.is_some_and(|end| end <= rules.size.get()) {
        return Ok(());
    }
    let size = rules.size.get();
    let message = format!("{length} bytes at {offset} do not fit into {size} bytes");
    Err(Failure::new(past_end, message))
}

fn too_long(header: &RequestHeader) -> Failure {
    let message = format!("{} bytes are too many: the limit is {PAYLOAD_MAX}", header.length);
    Failure::new(Errno::Invalid, message)
}

/// The sectors that `bytes` touch.
fn covering(bytes: Range<u64>) -> Extent {
    let first = bytes.start / SECTOR;
    Extent::new(Lba::new(first), Sectors::new(bytes.end.div_ceil(SECTOR) - first))
}

/// The sectors that `bytes` cover, perhaps none.
fn covered(bytes: Range<u64>) -> Extent {
    let first = bytes.start.div_ceil(SECTOR);
    let count = (bytes.end / SECTOR).saturating_sub(first);
    Extent::new(Lba::new(first), Sectors::new(count))
}

/// `extent` in parts of at most [`PIECE`].
fn pieces(extent: Extent) -> impl Iterator<Item = Extent> {
    let (start, count) = (extent.lba, extent.sectors.get());
    (0..count).step_by(PIECE.as_usize()).map(move |done| {
        let left = Sectors::new(count - done);
        Extent::new(start + Sectors::new(done), left.min(PIECE))
    })
}

/// A request that changes sectors, as commands to be run one after the other.
#[derive(Debug)]
pub(super) struct Change {
    extent: Extent,
    steps: VecDeque<Step>,
    /// The edge whose sector was asked for last.
    fetching: Option<Edge>,
    /// What was asked for last.
    asked: Command,
}

#[derive(Debug)]
enum Step {
    /// Write `buf` to `extent` once every edge has been filled in.
    Write { extent: Extent, buf: Buf, edges: Vec<Edge>, durability: Durability },
    /// A command without bytes.
    Bare(Command),
}

/// A sector that is not written as a whole.
#[derive(Debug)]
struct Edge {
    /// Its place in the buffer.
    idx: usize,
    /// The bytes of it that are new.
    new: Range<usize>,
}

/// How a change goes on.
#[derive(Debug)]
pub(super) enum Next {
    /// Run this, then call [`Change::next`] with the reply.
    Submit(Request),
    /// Run this; it was the last if it succeeds.
    SubmitLast(Request),
    /// It has ended.
    Finished(Result<(), Failure>),
}

impl Change {
    /// `buf` holds the sectors that `bytes` touch, the new bytes in their places.
    fn write(bytes: Range<u64>, buf: Buf, durability: Durability) -> Self {
        let extent = covering(bytes.clone());
        assert_eq!(buf.sectors(), extent.sectors);
        Self::new(extent, [write_step(bytes, buf, durability)])
    }

    fn write_zeroes(bytes: Range<u64>, durability: Durability) -> Self {
        let (touched, whole) = (covering(bytes.clone()), covered(bytes.clone()));
        let zeroes = |bytes: Range<u64>| {
            let buf = Buf::zeroed(covering(bytes.clone()).sectors);
            write_step(bytes, buf, durability)
        };
        if whole.sectors == Sectors::ZERO {
            // It touches at most two sectors.
            return Self::new(touched, [zeroes(bytes)]);
        }
        let middle = whole.lba.get() * SECTOR..whole.end().get() * SECTOR;
        let head = (bytes.start < middle.start).then(|| zeroes(bytes.start..middle.start));
        let tail = (middle.end < bytes.end).then(|| zeroes(middle.end..bytes.end));
        let bare = |extent| Step::Bare(Command::WriteZeroes { extent, durability });
        Self::new(touched, head.into_iter().chain(pieces(whole).map(bare)).chain(tail))
    }

    fn trim(bytes: Range<u64>, durability: Durability) -> Self {
        let extent = covered(bytes);
        let trims = pieces(extent).map(|extent| Step::Bare(Command::Trim { extent }));
        let flush = match durability {
            Durability::Durable if extent.sectors > Sectors::ZERO => {
                Some(Step::Bare(Command::Flush))
            }
            Durability::Durable | Durability::Cached => None,
        };
        Self::new(extent, trims.chain(flush))
    }

    fn new(extent: Extent, steps: impl IntoIterator<Item = Step>) -> Self {
        let steps = steps.into_iter().collect();
        Self { extent, steps, fetching: None, asked: Command::Flush }
    }

    /// The sectors it changes, perhaps none.
    pub(super) fn extent(&self) -> Extent {
        self.extent
    }

    /// Bytes it holds in memory.
    pub(super) fn bytes_held(&self) -> usize {
        let held = |step: &Step| match step {
            Step::Write { buf, .. } => buf.as_slice().len(),
            Step::Bare(_) => 0,
        };
        self.steps.iter().map(held).sum()
    }

    /// What to do first, or after the reply to the last command.
    pub(super) fn next(&mut self, last: Option<Reply>) -> Next {
        if let Some(Reply { outcome, buf }) = last {
            if let Err(failure) = check_outcome(&outcome, &self.asked) {
                return Next::Finished(Err(failure));
            }
            if let Some(edge) = self.fetching.take() {
                self.fill_in(&edge, &buf);
            }
        }
        self.fetching = match self.steps.front_mut() {
            Some(Step::Write { edges, .. }) => edges.pop(),
            Some(Step::Bare(_)) | None => None,
        };
        if let Some(edge) = &self.fetching {
            let request = self.fetch(edge);
            return self.submit(request);
        }
        match self.steps.pop_front() {
            Some(Step::Write { extent, buf, durability, .. }) => {
                let zero_tail = ZeroTail::None;
                let command = Command::Write { extent, durability, zero_tail };
                self.submit(Request::new(command, buf))
            }
            Some(Step::Bare(command)) => self.submit(Request::bare(command)),
            None => Next::Finished(Ok(())),
        }
    }

    fn submit(&mut self, request: Request) -> Next {
        self.asked = request.command;
        if self.steps.is_empty() { Next::SubmitLast(request) } else { Next::Submit(request) }
    }

    fn fetch(&self, edge: &Edge) -> Request {
        let Some(Step::Write { extent, .. }) = self.steps.front() else {
            panic!("only writes have edges")
        };
        let one = Sectors::new(1);
        let extent = Extent::new(extent.lba + Sectors::new(edge.idx as u64), one);
        Request::new(Command::Read { extent, effort: Effort::Full }, Buf::zeroed(one))
    }

    /// Keeps what the sector holds outside the edge's new bytes.
    fn fill_in(&mut self, edge: &Edge, sector: &Buf) {
        let Some(Step::Write { buf, .. }) = self.steps.front_mut() else {
            panic!("only writes have edges")
        };
        let (old, merged) = (sector.as_slice(), buf.part_mut(edge.idx, 1));
        for kept in [0..edge.new.start, edge.new.end..SECTOR_SIZE] {
            merged[kept.clone()].copy_from_slice(&old[kept]);
        }
    }
}

/// The write of `bytes`, in their places in `buf`.
fn write_step(bytes: Range<u64>, buf: Buf, durability: Durability) -> Step {
    let extent = covering(bytes.clone());
    let last = extent.sectors.as_usize() - 1;
    let start = (bytes.start % SECTOR) as usize;
    // The last byte's place and one more, so that a write up to a sector's end gives 4096.
    let end = ((bytes.end - 1) % SECTOR) as usize + 1;
    let edges = match last {
        0 => vec![Edge { idx: 0, new: start..end }],
        _ => vec![Edge { idx: 0, new: start..SECTOR_SIZE }, Edge { idx: last, new: 0..end }],
    };
    let edges = edges.into_iter().filter(|edge| edge.new.len() < SECTOR_SIZE).collect();
    Step::Write { extent, buf, edges, durability }
}

/// Nothing, or why the command failed.
pub(super) fn check_outcome(outcome: &Outcome, command: &Command) -> Result<(), Failure> {
    let io = |message: String| Failure::new(Errno::Io, message);
    match outcome {
        Outcome::Done { unknown, damaged } if unknown.is_empty() && damaged.is_empty() => Ok(()),
        Outcome::Done { unknown, damaged } => {
            let first = |set: &SectorSet| set.iter().next();
            let place = [unknown, damaged].into_iter().filter_map(first).min();
            let start = command.extent().map(|extent| extent.lba.get() * SECTOR);
            let offset = start.zip(place).map(|(start, idx)| start + u64::from(idx) * SECTOR);
            let count = unknown.len() + damaged.len();
            Err(Failure { offset, ..io(format!("{count} sectors failed")) })
        }
        Outcome::Cancelled => Err(io("the request was withdrawn".to_owned())),
        Outcome::Gone => Err(io("the device is gone".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use levelhead_block::{BlockDevice, Memory};
    use levelhead_stats::Streams;

    use super::*;
    use crate::codec::{Cookie, Payload};

    const SIZE: Sectors = Sectors::new(16);
    const AGREED: Agreed =
        Agreed { export: 0, replies: Replies::Structured, status: Status::Chosen };
    const RULES: Rules = Rules { size: SIZE.bytes(), access: Access::ReadWrite, agreed: AGREED };

    fn header(kind: CommandKind, offset: u64, length: u32) -> RequestHeader {
        RequestHeader { flags: CommandFlags::NONE, kind, cookie: Cookie::new(1), offset, length }
    }

    fn body(header: &RequestHeader, byte: u8) -> Body {
        match header.kind {
            CommandKind::Write => {
                let bytes = vec![byte; header.length as usize];
                Body::Bytes(Payload::copy_of(header.offset, &bytes))
            }
            _ => Body::Nothing,
        }
    }

    /// Runs a change; how many commands that took.
    fn run(mut change: Change, device: &mut Memory) -> usize {
        let (mut last, mut count) = (None, 0);
        loop {
            match change.next(last.take()) {
                Next::Submit(request) | Next::SubmitLast(request) => {
                    last = device.run(vec![request]).pop();
                    count += 1;
                }
                Next::Finished(result) => {
                    assert_eq!(result, Ok(()));
                    return count;
                }
            }
        }
    }

    fn change(header: &RequestHeader, byte: u8) -> Change {
        match plan(header, body(header, byte), &RULES) {
            Ok(Plan::Change(change)) => change,
            other => panic!("{header:?} became {other:?}"),
        }
    }

    fn error(header: &RequestHeader, rules: &Rules) -> Errno {
        plan(header, body(header, 0), rules).expect_err("it cannot be done").error
    }

    #[test]
    fn writes_and_zeroes_of_any_alignment_change_their_bytes_and_no_others() {
        let everything = Extent::new(Lba::ZERO, SIZE);
        for seed in 0..32 {
            let mut rng = Streams::new(seed).stream("plan");
            let mut device = Memory::new(SIZE);
            rng.fill(device.bytes_mut(everything));
            for _ in 0..64 {
                let edges = [0, 1, 511, 512, 2048, 4095];
                let mut place = |end: u64| {
                    let edge = edges[rng.below(edges.len() as u64) as usize];
                    (rng.below(SIZE.get()) * SECTOR + edge).min(end)
                };
                let (one, two) = (place(SIZE.bytes().get() - 1), place(SIZE.bytes().get()));
                let (start, end) = if one < two { (one, two) } else { (two.min(one), one + 1) };
                let zeroes = rng.below(2) == 0;
                let kind = if zeroes { CommandKind::WriteZeroes } else { CommandKind::Write };
                let header = header(kind, start, (end - start) as u32);
                let mut expected = device.bytes(everything).to_vec();
                let byte = 1 + rng.below(255) as u8;
                expected[start as usize..end as usize].fill(if zeroes { 0 } else { byte });
                run(change(&header, byte), &mut device);
                assert!(device.bytes(everything) == expected, "seed {seed}: {header:?}");
            }
        }
    }

    #[test]
    fn whole_sectors_take_one_command_and_others_fetch_what_they_keep() {
        for (kind, offset, length, commands) in [
            (CommandKind::Write, 4096, 8192, 1),
            (CommandKind::Write, 0, 512, 2),
            (CommandKind::Write, 512, 512, 2),
            (CommandKind::Write, 512, 4096, 3),
            (CommandKind::Write, 512, 3584, 2),
            (CommandKind::WriteZeroes, 4096, 8192, 1),
            (CommandKind::WriteZeroes, 4095, 8194, 5),
            (CommandKind::WriteZeroes, 4095, 2, 3),
            (CommandKind::Trim, 1, 8191, 1),
            (CommandKind::Trim, 1, 4096, 0),
        ] {
            let header = header(kind, offset, length);
            let count = run(change(&header, 1), &mut Memory::new(SIZE));
            assert_eq!(count, commands, "{header:?}");
        }
    }

    #[test]
    fn long_zeroes_and_trims_come_in_pieces() {
        let size = PIECE * 3 + Sectors::new(5);
        let rules = Rules { size: size.bytes(), ..RULES };
        let length = u32::try_from(size.bytes().get()).unwrap();
        for (kind, fua, commands) in [
            (CommandKind::WriteZeroes, false, 4),
            (CommandKind::Trim, false, 4),
            (CommandKind::Trim, true, 5),
        ] {
            let flags = if fua { CommandFlags::FUA } else { CommandFlags::NONE };
            let header = RequestHeader { flags, ..header(kind, 0, length) };
            let Ok(Plan::Change(change)) = plan(&header, Body::Nothing, &rules) else { panic!() };
            assert_eq!(run(change, &mut Memory::new(size)), commands, "{kind:?}");
        }
    }

    #[test]
    fn durability_follows_the_flag() {
        for (flags, expected) in
            [(CommandFlags::NONE, Durability::Cached), (CommandFlags::FUA, Durability::Durable)]
        {
            let header = RequestHeader { flags, ..header(CommandKind::Write, 0, 4096) };
            let Next::SubmitLast(request) = change(&header, 1).next(None) else { panic!() };
            let Command::Write { durability, .. } = request.command else { panic!() };
            assert_eq!(durability, expected);
        }
    }

    #[test]
    fn damaged_sector_fails_the_write_that_needs_it_and_names_the_place() {
        let mut change = change(&header(CommandKind::Write, 4096, 4097), 1);
        let Next::Submit(fetch) = change.next(None) else { panic!() };
        let damaged = SectorSet::first(Sectors::new(1));
        let outcome = Outcome::Done { unknown: SectorSet::EMPTY, damaged };
        let Next::Finished(Err(failure)) = change.next(Some(Reply { outcome, buf: fetch.buf }))
        else {
            panic!("the write went on without what it keeps")
        };
        assert_eq!((failure.error, failure.offset), (Errno::Io, Some(8192)));
    }

    #[test]
    fn requests_that_make_no_sense_are_refused_as_other_servers_do() {
        let size = SIZE.bytes().get();
        let past = |kind| error(&header(kind, size - 4096, 4097), &RULES);
        for kind in [CommandKind::Read, CommandKind::Trim, CommandKind::Cache] {
            assert_eq!(past(kind), Errno::Invalid);
        }
        for kind in [CommandKind::Write, CommandKind::WriteZeroes] {
            assert_eq!(past(kind), Errno::NoSpace);
            assert_eq!(error(&header(kind, u64::MAX, 1), &RULES), Errno::NoSpace);
        }
        for kind in [CommandKind::Read, CommandKind::WriteZeroes, CommandKind::BlockStatus] {
            assert_eq!(error(&header(kind, 0, 0), &RULES), Errno::Invalid);
        }
        let unknown = header(CommandKind::Unknown(99), 0, 0);
        assert_eq!(error(&unknown, &RULES), Errno::Invalid);
        let large = Rules { size: Bytes::new(1 << 40), ..RULES };
        let long = header(CommandKind::Read, 0, PAYLOAD_MAX + 1);
        assert_eq!(error(&long, &large), Errno::Invalid);
        let long = header(CommandKind::Write, 0, PAYLOAD_MAX + 1);
        let failure = plan(&long, Body::Skipped, &large).unwrap_err();
        assert_eq!(failure.error, Errno::Invalid);
    }

    #[test]
    fn flags_that_do_not_belong_are_refused() {
        let with = |kind, flags| RequestHeader { flags, ..header(kind, 0, 4096) };
        assert_eq!(error(&with(CommandKind::Write, CommandFlags::DF), &RULES), Errno::Invalid);
        let payload = with(CommandKind::Write, CommandFlags::PAYLOAD_LEN);
        assert_eq!(error(&payload, &RULES), Errno::Invalid);
        let simple = Rules { agreed: Agreed { replies: Replies::Simple, ..AGREED }, ..RULES };
        let unfragmented = with(CommandKind::Read, CommandFlags::DF);
        assert_eq!(error(&unfragmented, &simple), Errno::Invalid);
        assert!(matches!(plan(&unfragmented, Body::Nothing, &RULES), Ok(Plan::Read { .. })));
        let fast = with(CommandKind::WriteZeroes, CommandFlags::FAST_ZERO);
        assert_eq!(error(&fast, &RULES), Errno::NotSupported);
        let no_hole = with(CommandKind::WriteZeroes, CommandFlags::NO_HOLE);
        assert!(matches!(plan(&no_hole, Body::Nothing, &RULES), Ok(Plan::Change(_))));
    }

    #[test]
    fn read_only_export_refuses_what_writes() {
        let rules = Rules { access: Access::ReadOnly, ..RULES };
        for kind in [CommandKind::Write, CommandKind::WriteZeroes, CommandKind::Trim] {
            assert_eq!(error(&header(kind, 0, 4096), &rules), Errno::NotPermitted);
        }
        let read = header(CommandKind::Read, 0, 4096);
        assert!(matches!(plan(&read, Body::Nothing, &rules), Ok(Plan::Read { .. })));
    }
}
