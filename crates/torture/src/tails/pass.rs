//! One array under one list of requests: what it answered, when, and whether all of it was right.

use std::collections::BTreeMap;
use std::ops::Range;

use levelhead_array::membership::Why;
use levelhead_array::{Answer, Budget, Patience, RequestId, ScrubState, SubId};
use levelhead_block::{Buf, Command, Durability, Effort, Outcome, ZeroTail};
use levelhead_trace::{Arrival, Kind};
use levelhead_units::{DriveIdx, Extent, Instant, Lba, Nanos, SECTOR_SIZE, Sectors};

use super::Planted;
use super::care::{self, Care};
use super::draw::{Mishap, Standstill};
use levelhead_lab::{Step, World, WorldSettings};

/// The longest time that anything may take once no request comes any more.
const REST_MAX: Nanos = Nanos::from_secs(600);

/// Commands of the array's own for one drive: places, records, marks, flushes, probes.
const OWN_MAX: usize = 192;

/// Names of requests that are none of the list's.
const UNLISTED: u64 = 1 << 40;

/// Sectors that are read at once when everything is: 1 MiB.
const READ_AT_ONCE: u64 = 256;

/// What has become of the requests.
#[derive(Debug)]
pub(super) struct Outcomes {
    /// For each request how long its answer took.
    pub(super) latencies: Vec<Nanos>,
    /// From the beginning until all was at rest.
    pub(super) span: Nanos,
    /// Sectors read and found right.
    pub(super) verified: u64,
    /// Codewords decoded.
    pub(super) decoded: u64,
    /// Sectors corrupted in the end, of which every one was found.
    pub(super) corrupted: u64,
    /// Drives that were replaced.
    pub(super) replaced: u64,
    /// What is known of each request's way.
    pub(super) ways: Vec<Way>,
    pub(super) log: u64,
}

/// What drives were given for a request, and when, until it was answered.
#[derive(Clone, Debug, Default)]
pub(super) struct Way {
    /// Those that were unanswered when it came, have one of its stripes and exclude it.
    pub(super) behind: Vec<usize>,
    /// Whether the array was at work for itself then: a scrub or a rebuild.
    pub(super) is_beside_own_work: bool,
    /// When a drive was given its first command, and when its last one.
    pub(super) given: Option<[Instant; 2]>,
    /// The drive whose command ended last.
    pub(super) last: Option<DriveIdx>,
}

struct Pass<'a> {
    world: World,
    arrivals: &'a [Arrival],
    planted: Planted,
    /// What every sector was last written with; nothing was written where it is 0.
    contents: Vec<u64>,
    /// What each read that is not answered must bring.
    expected: BTreeMap<u64, Vec<u64>>,
    /// Sectors of unanswered requests.
    outstanding: usize,
    /// The stripes of unanswered requests.
    unanswered: BTreeMap<usize, Range<u64>>,
    latencies: Vec<Option<Nanos>>,
    ways: Vec<Way>,
    /// The requests of the commands that are inside drives.
    inside: BTreeMap<SubId, usize>,
    verified: u64,
    decoded: u64,
    corrupted: u64,
    span: Nanos,
}

/// What happens to an array besides its requests.
#[derive(Clone, Copy, Debug)]
pub(super) struct Events<'a> {
    pub(super) mishaps: &'a [Mishap],
    pub(super) standstills: &'a [Standstill],
    pub(super) care: Care,
    pub(super) planted: Planted,
}

impl<'a> Events<'a> {
    /// What happens to the server, and nothing else.
    pub(super) const fn of_server(standstills: &'a [Standstill]) -> Self {
        Self { mishaps: &[], standstills, care: Care::NONE, planted: Planted::None }
    }
}

/// Sends all requests, while the drives hang as the mishaps say and the array is cared for, and lets it come to rest.
///
/// # Errors
///
/// What was wrong, in one sentence.
pub(super) fn run(
    settings: &WorldSettings,
    arrivals: &[Arrival],
    events: Events<'_>,
) -> Result<Outcomes, String> {
    let Events { mishaps, standstills, mut care, planted } = events;
    let mut world = World::new(settings).map_err(|error| error.to_string())?;
    world.be_patient(Patience::DEFAULT);
    world.work_in_background(Budget::DEFAULT);
    world.trail().keep();
    let mut hangs: Vec<(Instant, Instant, DriveIdx)> = mishaps
        .iter()
        .flat_map(|mishap| mishap.hangs.iter().map(|&[from, until]| (from, until, mishap.drive)))
        .collect();
    hangs.sort();
    let mut pass = Pass {
        contents: vec![0; world.size().as_usize()],
        world,
        arrivals,
        planted,
        expected: BTreeMap::new(),
        outstanding: 0,
        unanswered: BTreeMap::new(),
        latencies: vec![None; arrivals.len()],
        ways: vec![Way::default(); arrivals.len()],
        inside: BTreeMap::new(),
        verified: 0,
        decoded: 0,
        corrupted: 0,
        span: Nanos::ZERO,
    };
    let mut hangs = hangs.into_iter().peekable();
    let mut standstills = standstills.iter().peekable();
    let mut resumed = Instant::ZERO;
    for (index, arrival) in arrivals.iter().enumerate() {
        while let Some((from, until, drive)) = hangs.next_if(|hang| hang.0 <= arrival.at) {
            let from = from.max(resumed);
            pass.run_until(from)?;
            pass.world.stall(from, drive, until.max(from));
        }
        let at = arrival.at.max(resumed);
        pass.run_until(at)?;
        care.take(&mut pass.world, at, (index * 100 / arrivals.len()) as u64);
        pass.send(index as u64, Arrival { at, ..*arrival })?;
        while let Some(standstill) = standstills.next_if(|one| one.after == index) {
            resumed = pass.stand_still(at.max(resumed), standstill.gap)?;
        }
    }
    pass.come_to_rest()?;
    pass.check_losses(mishaps)?;
    if care.corrupts {
        let bad = mishaps.iter().map(|mishap| mishap.drive).collect();
        pass.corrupted = care::corrupt_and_scrub(&mut pass.world, settings.seed, bad)?;
        pass.read_all()?;
    }
    Ok(pass.outcomes())
}

impl Pass<'_> {
    fn run_until(&mut self, at: Instant) -> Result<(), String> {
        while self.world.next_at() < at {
            self.world.step();
            self.check()?;
        }
        Ok(())
    }

    /// The server does not run for a while; when it goes on.
    fn stand_still(&mut self, at: Instant, gap: Nanos) -> Result<Instant, String> {
        if self.planted == Planted::Unnoticed {
            self.world.stand_still_unnoticed(at, gap);
        } else {
            self.world.stand_still(at, gap);
        }
        self.check()?;
        Ok(self.world.server_time())
    }

    /// Y6.
    fn check_losses(&self, mishaps: &[Mishap]) -> Result<(), String> {
        let hangs = |drive| mishaps.iter().any(|one| one.drive == drive && !one.hangs.is_empty());
        let mut losses = self.world.losses().iter();
        match losses.find(|&&(drive, why)| why == Why::Silent && !hangs(drive)) {
            Some((drive, _)) => {
                Err(format!("Y6: drive {drive} failed for a silence of the server"))
            }
            None => Ok(()),
        }
    }

    fn send(&mut self, index: u64, Arrival { at, kind, extent }: Arrival) -> Result<(), String> {
        let (command, buf) = match kind {
            Kind::Read => {
                let sectors = self.sectors(extent);
                let expected = self.contents[sectors].to_vec();
                self.expected.insert(index, expected);
                (Command::Read { extent, effort: Effort::Full }, Buf::zeroed(extent.sectors))
            }
            Kind::Write => {
                let number = index + 1;
                let sectors = self.sectors(extent);
                self.contents[sectors].fill(number);
                let mut buf = Buf::zeroed(extent.sectors);
                for word in buf.as_mut_slice().chunks_exact_mut(8) {
                    word.copy_from_slice(&number.to_le_bytes());
                }
                let (durability, zero_tail) = (Durability::Cached, ZeroTail::None);
                (Command::Write { extent, durability, zero_tail }, buf)
            }
        };
        self.outstanding += extent.sectors.as_usize();
        self.look_around(index as usize, kind, extent);
        self.world.submit(at, RequestId(index), command, Some(buf));
        if self.planted == Planted::Crowd {
            for more in 0..400 {
                let read = Command::Read { extent, effort: Effort::Full };
                let name = RequestId(UNLISTED + index * 400 + more);
                self.world.submit(at, name, read, Some(Buf::zeroed(extent.sectors)));
            }
        }
        self.check_queues()?;
        self.check()
    }

    /// What holds the stripes of a request that comes.
    fn look_around(&mut self, index: usize, kind: Kind, extent: Extent) {
        let array = self.world.array();
        let stripes = array.layout().stripes_of(extent);
        let excludes = |&(&other, held): &(&usize, &Range<u64>)| {
            let both_read = kind == Kind::Read && self.arrivals[other].kind == Kind::Read;
            !both_read && held.start < stripes.end && stripes.start < held.end
        };
        let behind = self.unanswered.iter().filter(excludes).map(|(&other, _)| other).collect();
        let is_scrubbing = array.scrub().state == ScrubState::Running;
        let is_beside_own_work = is_scrubbing || array.rebuild().is_some();
        self.ways[index] = Way { behind, is_beside_own_work, ..Way::default() };
        self.unanswered.insert(index, stripes);
    }

    fn sectors(&self, extent: Extent) -> Range<usize> {
        let first = (extent.lba - Lba::ZERO).as_usize();
        first..first + extent.sectors.as_usize()
    }

    /// Every command of a request reads or writes a sector of a codeword that the request is about, in the first
    /// pass or in the second.
    fn check_queues(&self) -> Result<(), String> {
        let most = 2 * self.outstanding + OWN_MAX;
        for drive in 0..self.world.array().layout().spec().drives() {
            let waiting = self.world.array().queue_len(DriveIdx::from_usize(drive));
            if waiting > most {
                return Err(format!(
                    "queue of drive {drive} has {waiting} commands, more than {most}"
                ));
            }
        }
        Ok(())
    }

    /// Keeps what drives were given for requests, and which command ended last before the answer.
    fn follow(&mut self) {
        for step in self.world.trail().take() {
            match step {
                Step::Given { at, sub, origin, .. } if origin < self.arrivals.len() as u64 => {
                    let way = &mut self.ways[origin as usize];
                    way.given = Some([way.given.map_or(at, |[first, _]| first), at]);
                    self.inside.insert(sub, origin as usize);
                }
                Step::Given { .. } => {}
                Step::Ended { drive, sub, .. } => {
                    let request = self.inside.remove(&sub);
                    if let Some(index) = request.filter(|&index| self.latencies[index].is_none()) {
                        self.ways[index].last = Some(drive);
                    }
                }
            }
        }
    }

    fn check(&mut self) -> Result<(), String> {
        self.follow();
        for (at, answer) in self.world.take_answers() {
            let index = answer.request.0;
            let buf = self.world.take_buf(answer.request).expect("bytes are carried");
            if index >= UNLISTED || (self.planted == Planted::Swallow && index == 1_000) {
                continue;
            }
            let times = if self.planted == Planted::Twice && index == 1_000 { 2 } else { 1 };
            for _ in 0..times {
                self.check_answer(at, &answer, buf.as_slice())
                    .map_err(|what| format!("request {index}: {what}"))?;
            }
        }
        Ok(())
    }

    fn check_answer(&mut self, at: Instant, answer: &Answer, bytes: &[u8]) -> Result<(), String> {
        let Answer { request, outcome, cost } = answer;
        let arrival = self.arrivals[request.0 as usize];
        let latency = &mut self.latencies[request.0 as usize];
        if latency.is_some() {
            return Err("answered twice".to_owned());
        }
        *latency = Some(at - arrival.at);
        if *outcome != Outcome::GOOD {
            return Err(format!("{outcome:?} within the budget"));
        }
        self.outstanding -= arrival.extent.sectors.as_usize();
        self.unanswered.remove(&(request.0 as usize));
        self.decoded += u64::from(cost.decoded);
        if arrival.kind == Kind::Write {
            return Ok(());
        }
        let wanted = self.expected.remove(&request.0).expect("it was asked");
        for (at, (sector, number)) in bytes.chunks_exact(SECTOR_SIZE).zip(wanted).enumerate() {
            if !is_full_of(sector, number) {
                return Err(format!("sector {at} has other bytes than were written"));
            }
            self.verified += 1;
        }
        Ok(())
    }

    /// No more requests: everything must come to its end, and in bounded time.
    fn come_to_rest(&mut self) -> Result<(), String> {
        let limit = self.world.now() + REST_MAX;
        // What the journal keeps in memory is not safe in its place yet, and comes to that.
        while !self.is_at_rest() {
            if self.world.now() >= limit {
                let (rest, held) = (REST_MAX.as_secs_f64(), self.world.buffer_count());
                return Err(format!("no rest after {rest} s, {held} buffers are held"));
            }
            self.world.step();
            self.check()?;
        }
        let unanswered = self.latencies.iter().position(Option::is_none);
        if let Some(index) = unanswered {
            return Err(format!("request {index}: unanswered"));
        }
        self.span = self.world.now() - Instant::ZERO;
        Ok(())
    }

    fn is_at_rest(&self) -> bool {
        let is_scrubbing = self.world.array().scrub().state == ScrubState::Running;
        let is_rebuilding = self.world.array().rebuild().is_some();
        let is_quiet = self.world.array().is_quiet() && self.world.buffer_count() == 0;
        is_quiet && !is_scrubbing && !is_rebuilding
    }

    /// Reads everything in the order of its addresses and compares it.
    fn read_all(&mut self) -> Result<(), String> {
        let size = self.world.size().get();
        for (name, first) in (UNLISTED..).zip((0..size).step_by(READ_AT_ONCE as usize)) {
            let extent = Extent::new(Lba::new(first), Sectors::new(READ_AT_ONCE.min(size - first)));
            let (now, request) = (self.world.now(), RequestId(name));
            let read = Command::Read { extent, effort: Effort::Full };
            self.world.submit(now, request, read, Some(Buf::zeroed(extent.sectors)));
            let limit = now + REST_MAX;
            let outcome = loop {
                if let Some((_, answer)) = self.world.take_answers().pop() {
                    break answer.outcome;
                }
                if self.world.now() >= limit {
                    return Err(format!("{extent:?} is not read at rest"));
                }
                self.world.step();
            };
            let buf = self.world.take_buf(request).expect("bytes are carried");
            let wanted = self.contents[self.sectors(extent)].iter();
            let mut sectors = buf.as_slice().chunks_exact(SECTOR_SIZE).zip(wanted);
            let is_right = sectors.all(|(sector, number)| is_full_of(sector, *number));
            if outcome != Outcome::GOOD || !is_right {
                return Err(format!("{extent:?} is not what was written in the end: {outcome:?}"));
            }
            self.verified += extent.sectors.get();
        }
        Ok(())
    }

    fn outcomes(self) -> Outcomes {
        Outcomes {
            latencies: self.latencies.into_iter().flatten().collect(),
            span: self.span,
            corrupted: self.corrupted,
            replaced: self.world.replaced(),
            verified: self.verified,
            decoded: self.decoded,
            ways: self.ways,
            log: self.world.log().get(),
        }
    }
}

/// Whether a sector holds this number again and again.
fn is_full_of(sector: &[u8], number: u64) -> bool {
    sector.chunks_exact(8).all(|word| word == number.to_le_bytes())
}
