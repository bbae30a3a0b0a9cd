//! A machine with an array over the disks of a crash swarm. Who ends first is drawn, and so is when time passes.

use std::collections::BTreeMap;

use levelhead_array::journal::record::{checksums, examine};
use levelhead_array::journal::rules::Rules;
use levelhead_array::membership::{Member, Membership, Why};
use levelhead_array::quorum::{Copy, Found, Refusal, quorum};
use levelhead_array::reserve::{Reserved, Use};
use levelhead_array::superblock::{Book, Forced, Kept, Logs, Own, State, Superblock, Uuid};
use levelhead_array::{
    Action, Answer, Array, Books, BufId, Content, Deliver, Ending, HostOrder, JournalSettings,
    Layout, Policy, RequestId, Settings, Spec, Submit, Sums,
};
use levelhead_block::{
    Buf, Command, Data, Durability, Effort, Outcome, Piece, SectorSet, ZeroTail,
};
use levelhead_bytes::Buffers;
use levelhead_erasure::Kernel;
use levelhead_stats::{Rng, Streams};
use levelhead_units::{DriveIdx, DriveSet, Extent, Instant, Lba, Nanos, Sectors};

use super::disk::{Disk, Manners};
use super::promise::{Promise, Sent};

/// What an array of a crash swarm is like.
#[derive(Clone, Copy, Debug)]
pub struct Make {
    /// Its shape.
    pub spec: Spec,
    /// Stripes.
    pub stripes: u64,
    /// Sectors of each of the two pieces of its journal; without one if that is 0.
    pub piece: u64,
    /// What its disks do with flushes.
    pub manners: Manners,
}

/// A write that was inside a disk when the power failed.
#[derive(Clone, Debug)]
struct Torn {
    drive: DriveIdx,
    extent: Extent,
    durability: Durability,
    bytes: Vec<u8>,
}

/// What is left of a machine whose power fails at some moment.
#[derive(Clone, Debug)]
pub struct Image {
    pub(crate) disks: Vec<Disk>,
    torn: Vec<Torn>,
    pub(crate) promise: Promise,
    pub(crate) lost: DriveSet,
}

/// A command inside a disk, and what it writes.
#[derive(Debug)]
struct Inside {
    submit: Submit,
    pieces: Vec<Piece>,
}

/// See the module.
#[derive(Debug)]
pub struct Machine {
    pub(crate) array: Array,
    disks: Vec<Disk>,
    buffers: Buffers,
    inside: Vec<Inside>,
    pub(crate) now: Instant,
    request_next: u64,
    writes: BTreeMap<RequestId, Sent>,
    reads: BTreeMap<RequestId, Extent>,
    /// Reads that were answered.
    delivered: BTreeMap<RequestId, (Answer, Data)>,
    pub(crate) promise: Promise,
    ending: Option<Ending>,
    /// What was answered badly.
    pub(crate) failed: u64,
}

impl Make {
    /// Disks with a new array on them.
    pub fn disks(&self) -> Vec<Disk> {
        let (data, piece) = (self.spec.chunk() * self.stripes, Sectors::new(self.piece));
        let size = Sectors::new(2) + data + piece * 2;
        let half = self.spec.chunk() * (self.stripes / 2);
        let one = Sectors::new(1);
        let place = |at: Sectors, sectors: Sectors, purpose| Reserved {
            extent: Extent::new(Lba::ZERO + at, sectors),
            purpose,
        };
        let mut reserved = vec![place(Sectors::ZERO, one, Use::Superblock)];
        if piece > Sectors::ZERO {
            reserved.push(place(one, piece, Use::Journal));
            reserved.push(place(one + piece + half, piece, Use::Journal));
        }
        reserved.push(place(size - one, one, Use::Superblock));
        let (drives, stripes) = (self.spec.drives(), Layout::new(self.spec, data).stripes());
        let member =
            |at: usize| Member { uuid: Uuid([at as u8 + 1; 16]), membership: Membership::Present };
        let book = Book {
            generation: 1,
            array: Uuid([0xA1; 16]),
            run: Uuid([0; 16]),
            spec: self.spec,
            drive_size: data,
            state: State::Clean,
            forced: Forced::No,
            synced: stripes,
            synced_last: stripes,
            journal: (self.piece > 0).then_some(Kept { first: 1, logs: Logs::All }),
            members: (0..drives).map(member).collect(),
        };
        let disk = |at: usize| {
            let mut disk = Disk::new(size, self.manners);
            let own = Own { drive: DriveIdx::from_usize(at), size, reserved: reserved.clone() };
            let copies = own.copies();
            let sector = Superblock { book: book.clone(), own, read_only: 0 }.encode();
            for lba in copies {
                disk.write(Extent::new(lba, one), &sector);
            }
            disk.flush();
            disk
        };
        let mut disks: Vec<Disk> = (0..drives).map(disk).collect();
        // Also those that lie have this on their media.
        disks.iter_mut().for_each(Disk::settle);
        disks
    }
}

impl Machine {
    /// Finds the array on its disks and starts it. Disks in `left_out` are not shown to it, and others are left
    /// out that hold old data.
    pub fn start(
        disks: Vec<Disk>,
        promise: Promise,
        left_out: DriveSet,
        rules: Rules,
        seed: u64,
    ) -> Result<Self, String> {
        let mut left_out = left_out;
        let assembly = loop {
            let shown: Vec<usize> = (0..disks.len())
                .filter(|&at| !left_out.contains(DriveIdx::from_usize(at)))
                .collect();
            let found: Vec<Found> = shown.iter().map(|&at| find(&disks[at])).collect();
            match quorum(&found) {
                Ok(assembly) => break assembly,
                Err(
                    Refusal::Stale { found: [stale, _], .. }
                    | Refusal::LeftBehind { found: stale, .. },
                ) => left_out = left_out.with(DriveIdx::from_usize(shown[stale])),
                Err(refusal) => return Err(format!("the array was refused: {refusal:?}")),
            }
        };
        if let Some(doubt) = assembly.doubt {
            return Err(format!("the array is in doubt: {doubt}"));
        }
        let settings = Settings {
            spec: assembly.book.spec,
            area: assembly.area.clone(),
            policy: Policy::Normal,
            window: 4,
            order: HostOrder::Fcfs,
            content: Content::Carried,
            synced: assembly.trusted,
            lost: assembly.absent,
            books: Some(Books::of(&assembly, Uuid(u128::from(seed).to_le_bytes()))),
            patience: None,
            background: None,
            journal: JournalSettings::of(&assembly).map(|known| JournalSettings { rules, ..known }),
        };
        let mut machine = Self {
            array: Array::new(&settings, Streams::new(seed)),
            disks,
            buffers: Buffers::new(Kernel::best()),
            inside: Vec::new(),
            now: Instant::ZERO,
            request_next: 0,
            writes: BTreeMap::new(),
            reads: BTreeMap::new(),
            delivered: BTreeMap::new(),
            promise,
            ending: None,
            failed: 0,
        };
        machine.carry_out();
        Ok(machine)
    }

    /// What would be left if the power failed now.
    pub fn image(&self) -> Image {
        let mut torn = Vec::new();
        for Inside { submit: Submit { drive, command, .. }, pieces } in &self.inside {
            if let Command::Write { extent, durability, .. } = *command {
                let bytes = pieces.iter().flat_map(Piece::bytes).copied().collect();
                torn.push(Torn { drive: *drive, extent, durability, bytes });
            }
        }
        let (disks, promise) = (self.disks.clone(), self.promise.clone());
        Image { disks, torn, promise, lost: self.array.lost() }
    }

    /// Whether the array has nothing to do, but for what comes with time.
    pub fn is_quiet(&self) -> bool {
        self.inside.is_empty()
    }

    /// Requests that are not answered.
    pub fn outstanding(&self) -> usize {
        self.writes.len() + self.reads.len()
    }

    /// Sends a write.
    pub fn write(&mut self, extent: Extent) {
        let sent = self.promise.send(extent);
        let (durability, zero_tail) = (Durability::Cached, ZeroTail::None);
        let id = self.name();
        self.writes.insert(id, sent);
        self.buffers.insert(BufId::Client(id), Buf::copy_of(&sent.bytes()));
        self.send(id, Command::Write { extent, durability, zero_tail });
    }

    /// Sends a flush.
    pub fn flush(&mut self) {
        let id = self.name();
        self.send(id, Command::Flush);
    }

    fn name(&mut self) -> RequestId {
        self.request_next += 1;
        RequestId(self.request_next)
    }

    fn send(&mut self, id: RequestId, command: Command) {
        self.array.handle_request(self.now, id, command);
        self.carry_out();
    }

    /// The array does without a disk from now on.
    pub fn lose(&mut self, drive: DriveIdx) {
        self.array.handle_lost(self.now, drive, Why::Failed);
        self.carry_out();
    }

    /// The array is to end.
    pub fn stop(&mut self) {
        self.array.handle_stop(self.now);
        self.carry_out();
    }

    /// How it has ended, once it has.
    pub fn ending(&self) -> Option<Ending> {
        self.ending
    }

    /// One command ends, or time passes if there is none: a step from one effect to the next. Returns whether there was
    /// anything to do.
    pub fn step(&mut self, rng: &mut Rng) -> bool {
        self.now = self.now + Nanos::from_micros(100);
        let waits_for_time = self.inside.is_empty() || rng.below(12) == 0;
        match self.array.deadline() {
            Some(at) if waits_for_time => {
                self.now = self.now.max(at);
                self.array.handle_timeout(self.now);
                self.carry_out();
            }
            Some(_) | None if self.inside.is_empty() => return false,
            Some(_) | None => {
                let at = rng.below(self.inside.len() as u64) as usize;
                self.finish(at);
            }
        }
        true
    }

    /// Steps until every request is answered.
    pub fn run_until_answered(&mut self, rng: &mut Rng) -> Result<(), String> {
        for _ in 0..20_000 {
            if self.outstanding() == 0 {
                return Ok(());
            }
            if !self.step(rng) {
                return Err(format!("{} requests are never answered", self.outstanding()));
            }
        }
        Err("requests are not answered in 20,000 steps".into())
    }

    /// Reads the whole array and holds it against the promise.
    pub fn verify(&mut self, rng: &mut Rng) -> Result<(), String> {
        let id = self.name();
        let extent = Extent::new(Lba::ZERO, self.array.size());
        self.reads.insert(id, extent);
        self.send(id, Command::Read { extent, effort: Effort::Full });
        self.run_until_answered(rng)?;
        let (answer, data) = self.delivered.remove(&id).expect("it was answered");
        if !answer.outcome.is_good() {
            return Err(format!("the array cannot be read: {:?}", answer.outcome));
        }
        self.promise.check(extent, data.into_buf().as_slice())
    }

    fn finish(&mut self, at: usize) {
        let inside = self.inside.remove(at);
        let outcome = self.execute(&inside);
        let Inside { submit, .. } = inside;
        self.array.handle_done(self.now, submit.sub, &outcome);
        self.carry_out();
    }

    fn execute(&mut self, inside: &Inside) -> Outcome {
        let Inside { submit: Submit { drive, command, segments, .. }, pieces } = inside;
        if self.array.lost().contains(*drive) {
            return Outcome::Gone;
        }
        let disk = &mut self.disks[drive.as_usize()];
        match *command {
            Command::Read { extent, .. } => {
                let id = segments[0].place.buf;
                let mut buf = self.buffers.lend(id);
                buf.as_mut_slice().copy_from_slice(&disk.read(extent));
                let bad = (0..).zip(extent.iter()).filter(|(_, lba)| disk.bad.contains(lba));
                let damaged: SectorSet = bad.map(|(offset, _)| offset).collect();
                for offset in damaged.iter() {
                    buf.part_mut(offset as usize, 1).fill(0xEE);
                }
                self.buffers.give_back(id, Data::Buf(buf));
                Outcome::Done { unknown: SectorSet::EMPTY, damaged }
            }
            Command::Write { extent, durability, .. } => {
                let bytes: Vec<u8> = pieces.iter().flat_map(Piece::bytes).copied().collect();
                match durability {
                    Durability::Cached => disk.write(extent, &bytes),
                    Durability::Durable => disk.write_durably(extent, &bytes),
                }
                Outcome::GOOD
            }
            Command::Flush => {
                disk.flush();
                Outcome::GOOD
            }
            Command::WriteZeroes { .. } | Command::Trim { .. } => {
                unreachable!("an array never asks a drive for {command:?}")
            }
        }
    }

    fn carry_out(&mut self) {
        while let Some(action) = self.array.poll() {
            match action {
                Action::Acquire { buf, sectors } => {
                    let mut fresh = Buf::zeroed(sectors);
                    fresh.as_mut_slice().fill(0xA5);
                    self.buffers.insert(buf, fresh);
                }
                Action::Submit(submit) => self.take(submit),
                Action::Combine(combine) => self.buffers.combine(&combine),
                Action::Deliver(Deliver { request, segments }) => {
                    self.buffers.deliver(BufId::Client(request), &segments);
                }
                Action::Release(buf) => self.buffers.discard(buf),
                Action::Inscribe { into, superblock } => {
                    self.buffers.inscribe(into, &superblock.encode());
                }
                Action::Enlist { into, listing } => {
                    self.buffers.inscribe(into, &listing.encode());
                }
                Action::Log { into, record, sums } => {
                    let sums = match sums {
                        Sums::Known(sums) => sums,
                        Sums::Of(contents) => {
                            checksums(self.buffers.share(&contents).iter().map(Piece::bytes))
                        }
                    };
                    self.buffers.inscribe(into, &record.encode(&sums));
                }
                Action::Examine { buf, first, unreadable, ring } => {
                    let found = examine(self.buffers.bytes(buf), first, &unreadable, ring);
                    self.array.handle_examined(self.now, buf, found);
                }
                Action::Sum { buf } => {
                    let sums = checksums(std::iter::once(self.buffers.bytes(buf)));
                    self.array.handle_summed(self.now, buf, &sums);
                }
                Action::Stopped(ending) => self.ending = Some(ending),
                Action::Event(_) => {}
                Action::Answer(answer) => self.note_answer(answer),
            }
        }
    }

    /// A command goes into a disk. What is being written there is neither read nor written meanwhile.
    fn take(&mut self, submit: Submit) {
        if let Some(extent) = submit.command.extent() {
            let meets = |Inside { submit: other, .. }: &&Inside| {
                other.drive == submit.drive
                    && (other.command.is_write() || submit.command.is_write())
                    && other
                        .command
                        .extent()
                        .is_some_and(|own| own.lba < extent.end() && extent.lba < own.end())
            };
            if let Some(other) = self.inside.iter().find(meets) {
                panic!("J6: {submit:?} meets {other:?}");
            }
        }
        let pieces = match submit.command {
            Command::Write { .. } => self.buffers.share(&submit.segments),
            _ => Vec::new(),
        };
        self.inside.push(Inside { submit, pieces });
    }

    fn note_answer(&mut self, answer: Answer) {
        let id = answer.request;
        if self.reads.remove(&id).is_some() {
            let data = self.buffers.take_delivered(BufId::Client(id));
            let data = data.unwrap_or(Data::None);
            self.delivered.insert(id, (answer, data));
            return;
        }
        let Some(sent) = self.writes.remove(&id) else { return };
        if answer.outcome.is_good() {
            self.promise.answer(sent);
        } else {
            self.failed += 1;
        }
    }
}

impl Image {
    /// The power fails: what was inside the disks is carried out in part, and what was in their caches may be gone.
    pub fn crash(&mut self, rng: &mut Rng) {
        for Torn { drive, extent, durability, bytes } in std::mem::take(&mut self.torn) {
            let disk = &mut self.disks[drive.as_usize()];
            let how = rng.below(4);
            for (lba, sector) in extent.iter().zip(bytes.chunks_exact(4096)) {
                let is_written = match how {
                    0 => false,
                    1 => true,
                    _ => rng.below(2) == 0,
                };
                let one = Extent::new(lba, Sectors::new(1));
                match durability {
                    _ if !is_written => {}
                    Durability::Cached => disk.write(one, sector),
                    Durability::Durable => disk.write_durably(one, sector),
                }
            }
        }
        self.disks.iter_mut().for_each(|disk| disk.crash(rng));
    }
}

/// What is on a member.
fn find(disk: &Disk) -> Found {
    let size = disk.size();
    let read = |lba: Lba| {
        let sector = disk.read(Extent::new(lba, Sectors::new(1)));
        Copy::Read(Box::new(Superblock::decode(&sector)))
    };
    let copies = [Lba::ZERO, Lba::ZERO + (size - Sectors::new(1))].map(read);
    let mut found = Found::new(copies, size);
    found.read_lists(|extent| Some(disk.read(extent)));
    found
}

/// Where the journal of a member lies.
pub(crate) fn journal_of(disk: &Disk) -> Option<Vec<Extent>> {
    let sector = disk.read(Extent::new(Lba::ZERO, Sectors::new(1)));
    let superblock = Superblock::decode(&sector).ok()?;
    Some(superblock.own.journal())
}
