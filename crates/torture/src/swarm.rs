//! Random arrays, random traffic, random misfortune; every byte compared with plain memory.
//!
//! A seed decides all of it: layout, policy, window, order, failures, slowness, stalls, when drives
//! disappear. The misfortune comes out of a *budget*: only such drives disappear as the layout survives
//! the loss of, and sectors that no retry mends only where no drive does. Within the budget no sector may be
//! missing. A sector that is missing all the same must be named in the answer, and no sector may be wrong.
//!
//! Two phases: trouble with traffic (safety), then no more trouble and no more traffic, in which
//! everything must come to its end (liveness).

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use levelhead_array::journal::rules::Rules;
use levelhead_array::{
    Answer, Area, ArrayEvent, Content, HostOrder, JournalSettings, Left, Policy, RequestId, Spec,
    VerifySettings,
};
use levelhead_block::{
    BlockDevice, Buf, Command, Durability, Effort, Memory, Outcome, SectorSet, ZeroTail,
};
use levelhead_drive::{CacheMode, Faults, Profile, Settings};
use levelhead_stats::{Rng, Streams};
use levelhead_units::{DriveIdx, DriveSet, Extent, Lba, Nanos, Ratio, Sectors};

use levelhead_lab::{World, WorldSettings};

const LAYOUTS: [&str; 12] = [
    "raid0:3,chunk=8KiB",
    "raid4:3+1,chunk=8KiB",
    "raid5:5+1,chunk=16KiB",
    "raid6:4+2,chunk=4KiB",
    "raid6:3+2,chunk=12KiB,parity=fixed",
    "eraid:5+1,e=2,chunk=8KiB",
    "eraid:4+2,e=3,chunk=12KiB",
    "eraid:2+3,e=2,chunk=8KiB",
    "raid1:2,chunk=8KiB",
    "raid1:3,chunk=16KiB",
    "raid10:4,chunk=8KiB",
    "raid10:5,chunk=4KiB",
];

/// What drives suffer from besides, for a while or all the time. None of it loses anything.
const TROUBLES: [&str; 6] = [
    "rotations=1",
    "rotations=uniform:2-5",
    "rotations=geometric:2,episodes=300ms/1s/5",
    "rotations=1:70%+12:30%,stalls=700ms/60ms",
    "field=500ms,periodic=2s/300ms/4,bursts=1MiB/geometric:64KiB/20%",
    "episodes=1s/100ms/3,stalls=300ms/200ms,bursts=256KiB/16KiB/90%",
];

/// Sectors of one drive: small, so that requests meet.
const DRIVE_SIZE: Sectors = Sectors::new(480);

/// What one run has come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// What everything was drawn from.
    pub seed: u64,
    /// The array and its policy.
    pub what: String,
    /// Requests sent and answered.
    pub requests: u64,
    /// Sectors read and found right.
    pub verified: u64,
    /// Sectors that the array said it could not give.
    pub named: u64,
    /// Drives that disappeared.
    pub lost: u32,
    /// Codewords decoded.
    pub decoded: u64,
    /// Writes that were found not stored, or not as they were sent, where what was written is read back.
    pub flawed: u64,
    /// The hash of all that happened.
    pub log: u64,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seed, what, requests, verified, named, lost, decoded, flawed, log } = self;
        write!(
            f,
            "seed {seed}: {what}: {requests} requests, {verified} sectors right, {named} named \
             missing, {lost} drives lost, {decoded} codewords decoded, {flawed} writes flawed, \
             log {log:016x}"
        )
    }
}

/// Mischief behind the array's back, for a canary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sabotage {
    /// None.
    None,
    /// One bit of every platter's first sectors is flipped halfway.
    FlipBits,
    /// Some writes never reach the platter, though the drive says so.
    LoseWrites,
    /// Some writes reach it in part only.
    TearWrites,
    /// Some writes land somewhere else on it.
    MisdirectWrites,
    /// A bit of some sectors changes as they are stored.
    FlipStored,
}

/// Runs one seed.
///
/// Panics at the first wrong byte, unanswered request or unnamed loss, with the seed.
pub fn run(seed: u64, requests: u64, sabotage: Sabotage) -> Report {
    run_with(seed, requests, sabotage, None)
}

/// The same where what is written is read back. Where its bytes are not kept, sectors may be missing.
pub fn run_checked(seed: u64, requests: u64, sabotage: Sabotage, verify: VerifySettings) -> Report {
    run_with(seed, requests, sabotage, Some(verify))
}

fn run_with(
    seed: u64,
    requests: u64,
    sabotage: Sabotage,
    verify: Option<VerifySettings>,
) -> Report {
    let mut rng = Streams::new(seed).stream("swarm/plan");
    let mut settings = draw(&mut rng, seed);
    for Settings { faults, .. } in &mut settings.drives {
        match sabotage {
            Sabotage::None | Sabotage::FlipBits => {}
            Sabotage::LoseWrites => faults.lost_rate = Ratio::of(5, 100),
            Sabotage::TearWrites => faults.torn_rate = Ratio::of(20, 100),
            Sabotage::MisdirectWrites => faults.misdirected_rate = Ratio::of(5, 100),
            Sabotage::FlipStored => faults.flip_rate = Ratio::of(2, 100),
        }
    }
    let hard = settings.drives[0].faults.hard_rate > Ratio::ZERO;
    if verify.is_some() && seed % 2 == 1 && settings.spec.redundant() > 0 {
        journaled(&mut settings);
    }
    let mut swarm = Swarm::new(&settings, rng, hard);
    swarm.keeps_bytes = verify.is_none_or(|verify| verify.cache >= VerifySettings::IDLE.cache);
    if let Some(verify) = verify {
        swarm.world.verify_writes(verify);
    }
    for id in 0..requests {
        swarm.send(id);
        swarm.misfortune(requests);
        if sabotage == Sabotage::FlipBits && id == requests / 2 {
            swarm.flip_bits();
        }
        while swarm.in_flight.len() > 8 {
            swarm.step();
        }
        // Now and then everything in flight ends, so that lone requests occur too.
        while swarm.rng.below(12) == 0 && !swarm.in_flight.is_empty() {
            swarm.step();
        }
    }
    swarm.come_to_rest();
    swarm.report(requests)
}

fn draw(rng: &mut Rng, seed: u64) -> WorldSettings {
    let spec: Spec = pick(rng, &LAYOUTS).parse().expect("the layouts above are valid");
    let rate = |per_mille: u64| Ratio::of(per_mille, 1000);
    let hard = if rng.below(3) == 0 { rate(10) } else { Ratio::ZERO };
    let faults = Faults {
        retry_rate: rate(rng.below(60)),
        adjacency: 2.0,
        hard_rate: hard,
        ..pick(rng, &TROUBLES).parse().expect("the troubles above are possible")
    };
    let cache = *pick(rng, &[CacheMode::Off, CacheMode::Read, CacheMode::WriteBack]);
    let drive = |slowdown: f64| Settings {
        cache,
        faults: Faults { slowdown, ..faults },
        size: Some(DRIVE_SIZE),
        ..Settings::PLAIN
    };
    let slow = rng.below(spec.drives() as u64 * 2) as usize;
    let drives = (0..spec.drives()).map(|idx| drive(if idx == slow { 10.0 } else { 1.0 }));
    WorldSettings {
        spec,
        policy: *pick(rng, &Policy::all()),
        window: 1 + rng.below(32) as u32,
        order: *pick(rng, &[HostOrder::Fcfs, HostOrder::Elevator, HostOrder::Paper32]),
        content: Content::Carried,
        profile: Arc::new(Profile::shipped("nearline-2tb").expect("it is shipped")),
        drives: drives.collect(),
        area: None,
        journal: None,
        seed,
    }
}

/// The same with a journal before the data, so small that it is often full.
fn journaled(settings: &mut WorldSettings) {
    let ring = Sectors::new(160);
    settings.area = Some(Area::plain(Extent::new(Lba::ZERO + ring, DRIVE_SIZE - ring)));
    settings.journal = Some(JournalSettings {
        pieces: vec![Extent::new(Lba::ZERO, ring)],
        lists: None,
        floor: 1,
        left: Left::Drained,
        intents_from: JournalSettings::INTENTS_FROM,
        region_min: JournalSettings::REGION_MIN,
        rules: Rules::ALL,
    });
}

fn pick<'a, T>(rng: &mut Rng, choices: &'a [T]) -> &'a T {
    &choices[rng.below(choices.len() as u64) as usize]
}

struct Swarm {
    world: World,
    what: String,
    seed: u64,
    rng: Rng,
    model: Memory,
    /// Sectors whose last write was not acknowledged in full: anything may be there.
    undefined: Vec<bool>,
    /// The write of each sector that was sent last.
    written_last: Vec<RequestId>,
    in_flight: BTreeMap<RequestId, Expected>,
    /// Whether some sectors are beyond mending.
    hard: bool,
    /// Whether the bytes of every write are kept that is to be read back, if any is.
    keeps_bytes: bool,
    /// Drives that have disappeared.
    lost: DriveSet,
    verified: u64,
    named: u64,
    decoded: u64,
}

/// What an answer must bring.
enum Expected {
    Bytes(Extent, Vec<u8>),
    Stored(Extent),
    Flushed,
}

impl Swarm {
    fn new(settings: &WorldSettings, rng: Rng, hard: bool) -> Self {
        let (spec, policy, window, order, seed) =
            (settings.spec, settings.policy, settings.window, settings.order, settings.seed);
        let world = World::new(settings).expect("the settings above are valid");
        let size = world.size();
        Self {
            what: format!("{spec}, {policy}, window {window}, {order}"),
            seed,
            rng,
            model: Memory::new(size),
            undefined: vec![false; size.as_usize()],
            written_last: vec![RequestId(0); size.as_usize()],
            in_flight: BTreeMap::new(),
            hard,
            keeps_bytes: true,
            lost: DriveSet::EMPTY,
            verified: 0,
            named: 0,
            decoded: 0,
            world,
        }
    }

    fn send(&mut self, id: u64) {
        let request = RequestId(id);
        let size = self.world.size().get();
        let sectors = 1 + self.rng.below(40.min(size));
        let lba = Lba::new(self.rng.below(size - sectors + 1));
        let extent = Extent::new(lba, Sectors::new(sectors));
        let (command, buf, expected) = match self.rng.below(20) {
            0 => (Command::Flush, Buf::empty(), Expected::Flushed),
            1..9 => {
                let mut buf = Buf::zeroed(extent.sectors);
                self.rng.fill(buf.as_mut_slice());
                self.model.bytes_mut(extent).copy_from_slice(buf.as_slice());
                extent.iter().for_each(|lba| self.written_last[lba.get() as usize] = request);
                let (durability, zero_tail) = (Durability::Cached, ZeroTail::None);
                let command = Command::Write { extent, durability, zero_tail };
                (command, buf, Expected::Stored(extent))
            }
            _ => {
                let bytes = self.model.bytes(extent).to_vec();
                let command = Command::Read { extent, effort: Effort::Full };
                (command, Buf::zeroed(extent.sectors), Expected::Bytes(extent, bytes))
            }
        };
        self.in_flight.insert(request, expected);
        let gap = self.rng.exponential(Nanos::from_millis(4));
        let until = self.world.now() + gap;
        while self.world.next_at() < until {
            self.step();
        }
        self.world.submit(until, request, command, Some(buf));
        self.check();
    }

    /// Perhaps a drive disappears.
    fn misfortune(&mut self, requests: u64) {
        if !self.hard && self.rng.below(requests / 2 + 1) == 0 {
            let spec = *self.world.array().layout().spec();
            let drive = DriveIdx::from_usize(self.rng.below(spec.drives() as u64) as usize);
            // The array learns of it at the next command; the budget is spent either way.
            let lost = self.lost.with(drive);
            if lost == self.lost || !spec.survives(lost) {
                return;
            }
            self.world.kill(self.world.now(), drive);
            self.lost = lost;
            self.check();
        }
    }

    fn step(&mut self) {
        self.world.step();
        self.check();
    }

    fn check(&mut self) {
        for (_, answer) in self.world.take_answers() {
            let buf = self.world.take_buf(answer.request).expect("bytes are carried");
            let expected = self.in_flight.remove(&answer.request);
            let expected = expected.unwrap_or_else(|| self.fail(&answer, "answered twice"));
            self.decoded += u64::from(answer.cost.decoded);
            let Outcome::Done { unknown, damaged } = &answer.outcome else {
                self.fail(&answer, "not done")
            };
            if !unknown.is_empty() {
                self.fail(&answer, "unknown sectors at full effort");
            }
            match expected {
                Expected::Flushed => {}
                Expected::Stored(extent) => self.check_stored(&answer, extent, damaged),
                Expected::Bytes(extent, bytes) => {
                    self.check_bytes(&answer, extent, &bytes, &buf, damaged);
                }
            }
        }
    }

    fn check_stored(&mut self, answer: &Answer, extent: Extent, damaged: &SectorSet) {
        if !damaged.is_empty() {
            self.allow_damage(answer);
        }
        for at in extent.iter().map(|lba| lba.get() as usize) {
            // One that had joined it and could not be carried out is answered first.
            let is_last = self.written_last[at] == answer.request;
            self.undefined[at] = !damaged.is_empty() || (self.undefined[at] && !is_last);
        }
    }

    fn check_bytes(
        &mut self,
        answer: &Answer,
        extent: Extent,
        expected: &[u8],
        buf: &Buf,
        damaged: &SectorSet,
    ) {
        for (offset, lba) in (0_u32..).zip(extent.iter()) {
            let sector = offset as usize;
            if damaged.contains(offset) {
                self.allow_damage(answer);
                self.named += 1;
            } else if buf.part(sector, 1) == &expected[sector * 4096..][..4096] {
                self.verified += 1;
            } else if !self.undefined[lba.get() as usize] {
                self.fail(answer, &format!("sector {offset} holds other bytes than were written"));
            }
        }
    }

    /// Damage is allowed where there are sectors that no retry mends, or that nothing says how to mend.
    fn allow_damage(&self, answer: &Answer) {
        if !self.hard && self.keeps_bytes {
            self.fail(answer, "sectors are missing within the budget");
        }
    }

    fn fail(&self, answer: &Answer, what: &str) -> ! {
        panic!("seed {}: {}: {:?}: {what}", self.seed, self.what, answer.request)
    }

    fn flip_bits(&mut self) {
        for drive in 0..self.world.array().layout().spec().drives() {
            let platter = self.world.platter_mut(DriveIdx::from_usize(drive));
            let platter = platter.expect("bytes are carried");
            for lba in 0..platter.size().get() {
                platter.bytes_mut(Extent::new(Lba::new(lba), Sectors::new(1)))[9] ^= 4;
            }
        }
    }

    /// No more trouble: everything must come to its end, and in bounded time.
    fn come_to_rest(&mut self) {
        let limit = self.world.now() + Nanos::from_secs(600);
        while !self.world.array().is_quiet() {
            assert!(self.world.now() < limit, "seed {}: {}: no end", self.seed, self.what);
            self.step();
        }
        while self.world.array().verify_status().is_some_and(|status| status.waiting > 0) {
            if self.world.now() >= limit {
                let status = self.world.array().verify_status();
                let is_not_mended = |event: &ArrayEvent| {
                    matches!(event, ArrayEvent::WriteMended { is_mended: false, .. })
                };
                let events = self.world.array_events();
                let is_left = events.iter().any(is_not_mended);
                assert!(is_left, "seed {}: {}: no end: {status:?}", self.seed, self.what);
                self.world.stop(self.world.now()); // It would wait without end.
            }
            self.step();
        }
        // A probe or a mend may be on its way just then.
        let limit = self.world.now() + Nanos::from_secs(600);
        while !self.world.array().is_quiet() {
            assert!(self.world.now() < limit, "seed {}: {}: no end", self.seed, self.what);
            self.step();
        }
        if self.world.array().journal_status().is_some() {
            // A journal keeps some of its memory until it writes a mark.
            self.world.stop(self.world.now());
            while self.world.ending().is_none() {
                self.step();
            }
        }
        let left: Vec<&RequestId> = self.in_flight.keys().collect();
        assert!(left.is_empty(), "seed {}: {}: {left:?} unanswered", self.seed, self.what);
        let held = self.world.buffer_count();
        assert_eq!(held, 0, "seed {}: {}: buffers are left", self.seed, self.what);
    }

    fn report(self, requests: u64) -> Report {
        Report {
            seed: self.seed,
            what: self.what,
            requests,
            verified: self.verified,
            named: self.named,
            lost: self.lost.len(),
            decoded: self.decoded,
            flawed: self.world.array().counters().verify_found,
            log: self.world.log().get(),
        }
    }
}
