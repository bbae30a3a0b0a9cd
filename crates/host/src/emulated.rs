//! An emulated drive: the drive core paced by the clock, in front of a file.
//!
//! One thread owns the core. It sleeps until the core's deadline or the next message; the bytes move
//! when the model says that the command has ended. The core keeps its own time, so a thread that
//! wakes up late delays one report and nothing after it.
//!
//! New faults take effect with the next command that the drive begins; queue, arm and health page stay
//! as they are. Sectors of a write that silently did not reach the platter (the core's completion says
//! which, and nobody above hears of it) keep their old bytes in the file.
//!
//! # Memory
//!
//! What a drive that writes back has taken and not written stays in this process, over the file's old
//! bytes; it goes to the file when the model says that the medium has it. So a process that is killed
//! loses what a drive loses whose power fails, and nothing that was flushed or written durably. A drive
//! that is dropped in good order writes everything first, as one that is told to stop.
//!
//! A file that takes no bytes then is a drive that has failed: nobody waits for the write any more.
//!
//! Differs from the real thing: what the medium has is in the machine's page cache, safe from the end
//! of this program and not from a power failure of the machine.

use std::collections::BTreeMap;
use std::io;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use levelhead_array::SubId;
use levelhead_block::{Command, Durability, Health, Outcome, SectorSet, Unwritten};
use levelhead_drive::{CacheMode, Completion, Drive, Faults, Profile, Settings, SettingsError};
use levelhead_stats::Streams;
use levelhead_units::{Nanos, SECTOR_SIZE};

use crate::backend::{
    Backend, Emulated, Ended, Order, Payload, Report, carry_out, failed_write, flushed, spoil,
};
use crate::clock::Clock;
use crate::error::HostError;
use crate::medium::Medium;

/// How often an idle drive with bytes in its memory is asked what it has written meanwhile: the model
/// makes no event of that.
const SETTLE_INTERVAL: Nanos = Nanos::from_millis(50);

/// See the module.
pub(crate) struct EmulatedDrive {
    /// Absent only while it is dropped.
    messages: Option<Sender<Message>>,
    health: Arc<Mutex<Health>>,
    thread: Option<JoinHandle<()>>,
}

/// What the core of an emulated drive is made from.
#[derive(Clone, Debug)]
pub struct Model {
    /// Its make.
    pub profile: Arc<Profile>,
    /// What it is besides.
    pub settings: Settings,
    /// Where its chance comes from.
    pub streams: Streams,
    /// The name under which it draws from there: `drive/0` for the first of an array.
    pub name: String,
}

impl Model {
    /// The drive as it is when it is switched on, or what is wrong with the settings.
    pub fn drive(&self) -> Result<Drive, SettingsError> {
        Drive::new(Arc::clone(&self.profile), self.settings, self.streams, &self.name)
    }
}

enum Message {
    Order(Order),
    Faults(Box<Faults>),
    Death,
}

impl EmulatedDrive {
    pub(crate) fn start(
        model: &Model,
        medium: Arc<Medium>,
        clock: Clock,
        report: Report,
    ) -> Result<Self, HostError> {
        let drive = model.drive().map_err(|error| HostError::new(error.to_string()))?;
        let (sender, messages) = mpsc::channel();
        let health = Arc::new(Mutex::new(Health::default()));
        let state = State {
            drive,
            medium,
            clock,
            report,
            orders: BTreeMap::new(),
            writes_back: model.settings.cache == CacheMode::WriteBack,
            unwritten: Unwritten::new(),
            failure: None,
            health: Arc::clone(&health),
        };
        let thread = std::thread::Builder::new()
            .name("emulated drive".into())
            .spawn(move || state.run(&messages))
            .map_err(|error| HostError::new(format!("cannot start a thread: {error}")))?;
        Ok(Self { messages: Some(sender), health, thread: Some(thread) })
    }

    fn send(&mut self, message: Message) {
        let messages = self.messages.as_ref().expect("it is there until the drop");
        messages.send(message).expect("the thread lives as long as the channel");
    }
}

impl Backend for EmulatedDrive {
    fn submit(&mut self, order: Order) {
        self.send(Message::Order(order));
    }

    fn health(&self) -> Option<Health> {
        Some(*self.health.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn emulated(&mut self) -> Option<&mut dyn Emulated> {
        Some(self)
    }
}

impl Emulated for EmulatedDrive {
    fn set_faults(&mut self, faults: Faults) {
        self.send(Message::Faults(Box::new(faults)));
    }

    fn die(&mut self) {
        self.send(Message::Death);
    }
}

impl Drop for EmulatedDrive {
    fn drop(&mut self) {
        self.messages = None;
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has said so on its own.
            drop(thread.join());
        }
    }
}

/// What the thread owns.
struct State {
    drive: Drive,
    medium: Arc<Medium>,
    clock: Clock,
    report: Report,
    /// Orders inside the drive, by the name they have there.
    orders: BTreeMap<u64, (Command, Payload)>,
    writes_back: bool,
    /// What is in the drive's memory only.
    unwritten: Unwritten,
    /// Why the file did not take what was in memory, until somebody has heard of it.
    failure: Option<io::Error>,
    health: Arc<Mutex<Health>>,
}

impl State {
    fn run(mut self, messages: &Receiver<Message>) {
        loop {
            let now = self.clock.now();
            let look = (!self.unwritten.is_empty()).then(|| now + SETTLE_INTERVAL);
            let message = match [self.drive.deadline(), look].into_iter().flatten().min() {
                Some(at) => messages.recv_timeout(self.clock.until(at).into()),
                None => messages.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            match message {
                Ok(message) => self.handle(message),
                Err(RecvTimeoutError::Timeout) => self.drive.handle_timeout(self.clock.now()),
                Err(RecvTimeoutError::Disconnected) => {
                    // Told to stop, a drive writes what it has. Nobody is left to hear of a failure.
                    drop(self.settle_all());
                    return;
                }
            }
            self.finish();
            self.settle();
        }
    }

    /// Brings to the file what the model has brought to the medium.
    fn settle(&mut self) {
        if self.unwritten.is_empty() {
            return;
        }
        let now = self.clock.now();
        let waiting = self.drive.unwritten(now);
        let Self { unwritten, medium, .. } = self;
        if let Err(error) = unwritten.settle(&waiting, |lba, bytes| medium.write(lba, bytes)) {
            self.failure = Some(error);
            unwritten.lose();
            self.drive.handle_death(now);
        }
        // Asking may have ended commands.
        self.finish();
    }

    /// Brings everything to the file.
    fn settle_all(&mut self) -> io::Result<()> {
        let Self { unwritten, medium, .. } = self;
        unwritten.settle(&[], |lba, bytes| medium.write(lba, bytes))
    }

    fn handle(&mut self, message: Message) {
        let now = self.clock.now();
        match message {
            Message::Order(order) => self.submit(order),
            Message::Faults(faults) => {
                self.drive.set_faults(now, *faults).expect("whoever sent them has checked them");
            }
            Message::Death => self.drive.handle_death(now),
        }
    }

    fn submit(&mut self, Order { sub, command, payload, origin }: Order) {
        self.orders.insert(sub.0, (command, payload));
        self.drive.handle_submit(self.clock.now(), sub.0, command, origin);
    }

    /// Moves the bytes of what has ended and reports it.
    fn finish(&mut self) {
        while let Some(Completion { id, outcome, missing, .. }) = self.drive.poll() {
            let (command, payload) = self.orders.remove(&id).expect("it was ordered");
            let ended = self.transfer(SubId(id), &command, payload, outcome, &missing);
            let now = self.clock.now();
            *self.health.lock().unwrap_or_else(PoisonError::into_inner) = self.drive.health(now);
            (self.report)(ended);
        }
    }

    /// What the model says, unless the file under it fails.
    fn transfer(
        &mut self,
        sub: SubId,
        command: &Command,
        payload: Payload,
        modelled: Outcome,
        missing: &SectorSet,
    ) -> Ended {
        let Outcome::Done { unknown, damaged } = &modelled else {
            let buf = match payload {
                Payload::Fill(buf) => Some(buf),
                Payload::None | Payload::Pieces(_) => None,
            };
            return Ended { sub, outcome: modelled, buf, error: self.failure.take() };
        };
        let mut ended = match command {
            // All that was taken before it began: commands are served one after the other, and end
            // here in that order.
            Command::Flush => {
                let error = self.settle_all().err();
                Ended { sub, outcome: flushed(error.as_ref()), buf: None, error }
            }
            Command::Write { durability: Durability::Cached, .. } if self.writes_back => {
                self.keep(sub, command, payload, missing)
            }
            Command::Write { extent, .. } => {
                let reached = (0..).zip(extent.iter()).filter(|(at, _)| !missing.contains(*at));
                reached.for_each(|(_, lba)| self.unwritten.forget(lba));
                if missing.is_empty() {
                    carry_out(&self.medium, sub, command, payload)
                } else {
                    self.store_without(sub, command, payload, missing)
                }
            }
            Command::Read { .. } | Command::WriteZeroes { .. } | Command::Trim { .. } => {
                carry_out(&self.medium, sub, command, payload)
            }
        };
        if let (Command::Read { extent, .. }, Some(buf), true) =
            (command, &mut ended.buf, ended.outcome.is_good())
        {
            self.unwritten.overlay(*extent, buf.as_mut_slice());
        }
        if let Some(buf) = &mut ended.buf {
            spoil(buf, unknown);
            spoil(buf, damaged);
        }
        if ended.outcome.is_good() {
            ended.outcome = modelled;
        }
        ended
    }

    /// Takes what a write brings into memory, except for its sectors in `missing`.
    fn keep(
        &mut self,
        sub: SubId,
        command: &Command,
        payload: Payload,
        missing: &SectorSet,
    ) -> Ended {
        let (Command::Write { extent, .. }, Payload::Pieces(pieces)) = (*command, payload) else {
            panic!("{command:?} brings nothing");
        };
        let sectors = pieces.iter().flat_map(|piece| piece.bytes().chunks_exact(SECTOR_SIZE));
        for (at, (lba, bytes)) in (0..).zip(extent.iter().zip(sectors)) {
            if !missing.contains(at) {
                self.unwritten.put(lba, bytes);
            }
        }
        Ended { sub, outcome: Outcome::GOOD, buf: None, error: None }
    }

    /// Stores what a write brings except for its sectors in `missing`.
    fn store_without(
        &self,
        sub: SubId,
        command: &Command,
        payload: Payload,
        missing: &SectorSet,
    ) -> Ended {
        let (Command::Write { extent, .. }, Payload::Pieces(pieces)) = (*command, payload) else {
            panic!("{command:?} has sectors that are missing");
        };
        let sectors = pieces.iter().flat_map(|piece| piece.bytes().chunks_exact(SECTOR_SIZE));
        let stored = (0..).zip(extent.iter().zip(sectors)).try_for_each(|(at, (lba, bytes))| {
            if missing.contains(at) { Ok(()) } else { self.medium.write(lba, bytes) }
        });
        let error = stored.err();
        let outcome = error.as_ref().map_or(Outcome::GOOD, |error| failed_write(extent, error));
        Ended { sub, outcome, buf: None, error }
    }
}

#[cfg(test)]
mod tests {
    use levelhead_array::{BufId, Buffers, Place, Segment};
    use levelhead_block::{Buf, Durability, Effort, ZeroTail};
    use levelhead_erasure::Kernel;
    use levelhead_units::{Extent, Lba, Ratio, Sectors};
    use tempfile::TempDir;

    use super::*;
    use crate::member::MemberSpec;

    struct Bench {
        drive: EmulatedDrive,
        ended: Receiver<Ended>,
        last: u64,
        _dir: TempDir,
    }

    /// A drive whose every sector is full of ones, with these options.
    fn bench(options: &str) -> Bench {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("a.img");
        std::fs::write(&path, vec![1; 64 * SECTOR_SIZE]).unwrap();
        let member: MemberSpec = format!("emu:{}?{options}", path.display()).parse().unwrap();
        let medium = member.open().unwrap();
        let model = member.model(medium.size(), 32, "drive/0").unwrap().unwrap();
        let (sender, ended) = mpsc::channel();
        let report: Report = Arc::new(move |ended| drop(sender.send(ended)));
        let drive = EmulatedDrive::start(&model, Arc::new(medium), Clock::start(), report).unwrap();
        Bench { drive, ended, last: 0, _dir: dir }
    }

    impl Bench {
        /// Asks for two sectors.
        fn ask(&mut self, effort: Effort) {
            self.last += 1;
            let extent = Extent::new(Lba::new(7), Sectors::new(2));
            let command = Command::Read { extent, effort };
            let payload = Payload::Fill(Buf::zeroed(extent.sectors));
            self.drive.submit(Order { sub: SubId(self.last), command, payload, origin: 1 });
        }

        /// The next end; every byte of a sector is the same.
        fn end(&mut self) -> (Outcome, [u8; 2]) {
            let Ended { outcome, buf, .. } = self.ended.recv().unwrap();
            let buf = buf.expect("a read brings its buffer back");
            let values = [0, 1].map(|at| {
                let sector = buf.part(at, 1);
                assert!(sector.iter().all(|&byte| byte == sector[0]));
                sector[0]
            });
            (outcome, values)
        }
    }

    fn all() -> SectorSet {
        SectorSet::first(Sectors::new(2))
    }

    #[test]
    fn what_the_model_does_not_read_cannot_be_used() {
        let mut soft = bench("retry-rate=100%&rotations=1");
        soft.ask(Effort::Fast);
        let unknown = Outcome::Done { unknown: all(), damaged: SectorSet::EMPTY };
        assert_eq!(soft.end(), (unknown, [0xEE; 2]), "B3");
        soft.ask(Effort::Full);
        assert_eq!(soft.end(), (Outcome::GOOD, [1; 2]));
        let mut hard = bench("hard-rate=100%&rotations=1");
        hard.ask(Effort::Full);
        let damaged = Outcome::Done { unknown: SectorSet::EMPTY, damaged: all() };
        assert_eq!(hard.end(), (damaged, [0xEE; 2]), "B3");
    }

    #[test]
    fn new_faults_keep_the_queue_and_the_health_page() {
        let mut bench = bench("");
        let hard: Faults = "hard-rate=100%,rotations=1".parse().unwrap();
        (0..4).for_each(|_| bench.ask(Effort::Full));
        (0..4).for_each(|_| assert_eq!(bench.end(), (Outcome::GOOD, [1; 2])));
        bench.drive.set_faults(Faults { slowdown: 2.0, ..hard });
        (0..4).for_each(|_| bench.ask(Effort::Full));
        // What waits inside is neither lost nor delayed until the drive is empty.
        bench.drive.set_faults(hard);
        for _ in 0..4 {
            assert_eq!(bench.end().1, [0xEE; 2]);
        }
        let health = bench.drive.health().unwrap();
        assert_eq!((health.commands, health.first_pass_failures), (Some(8), Some(8)));
        assert_eq!(health.retry_rate, Ratio::new(0.5));
    }

    #[test]
    fn sectors_that_a_write_silently_missed_keep_their_old_bytes() {
        for (options, expected) in [
            ("", [2; 4]),
            ("lost-writes=100%", [1; 4]),
            // Where it is torn, a hash decides: here within the first piece.
            ("torn-writes=100%", [2, 1, 1, 1]),
        ] {
            let mut bench = bench(options);
            let extent = Extent::new(Lba::new(7), Sectors::new(4));
            let id = BufId::Own(1);
            let mut buffers = Buffers::new(Kernel::best());
            buffers.insert(id, Buf::copy_of(&[2; 4 * SECTOR_SIZE]));
            // From two places, as writes of an array come.
            let segment = |sector| Segment { place: Place { buf: id, sector }, sectors: 2 };
            let pieces = Payload::Pieces(buffers.share(&[segment(0), segment(2)]));
            let (durability, zero_tail) = (Durability::Durable, ZeroTail::None);
            let write = Command::Write { extent, durability, zero_tail };
            bench.drive.submit(Order { sub: SubId(1), command: write, payload: pieces, origin: 2 });
            assert_eq!(bench.ended.recv().unwrap().outcome, Outcome::GOOD, "{options}");
            let (read, payload) = (
                Command::Read { extent, effort: Effort::Full },
                Payload::Fill(Buf::zeroed(extent.sectors)),
            );
            bench.drive.submit(Order { sub: SubId(2), command: read, payload, origin: 3 });
            let buf = bench.ended.recv().unwrap().buf.unwrap();
            let seen = [0, 1, 2, 3].map(|at| buf.part(at, 1)[0]);
            assert_eq!(seen, expected, "{options}");
        }
    }

    #[test]
    fn dead_drive_ends_everything_as_gone_and_stays_dead() {
        let mut bench = bench("slowdown=1000");
        (0..3).for_each(|_| bench.ask(Effort::Full));
        bench.drive.set_faults(Faults::NONE);
        (0..3).for_each(|_| bench.ask(Effort::Full));
        bench.drive.die();
        bench.drive.set_faults(Faults::NONE);
        (0..3).for_each(|_| bench.ask(Effort::Full));
        for _ in 0..9 {
            assert_eq!(bench.end().0, Outcome::Gone);
        }
    }
}
