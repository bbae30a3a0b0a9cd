//! An emulated drive: the drive core paced by the clock, in front of a file.
//!
//! One thread owns the core. It sleeps until the core's deadline or the next message; the bytes move
//! when the model says that the command has ended. The core keeps its own time, so a thread that
//! wakes up late delays one report and nothing after it.
//!
//! New faults take effect once what is inside the drive has ended: commands that come meanwhile wait,
//! and the drive goes on as a new one of the same name, with its arm over the first cylinder and
//! nothing to say about its past.
//!
//! Differs from the real thing: what it has acknowledged is in the machine's page cache, safe from
//! the end of this program and not from a power failure of the machine.

use std::collections::{BTreeMap, VecDeque};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use levelhead_array::SubId;
use levelhead_block::{Buf, Command, Health, Outcome};
use levelhead_drive::{Completion, Drive, Faults, Profile, Settings, SettingsError};
use levelhead_stats::Streams;

use crate::backend::{Backend, Emulated, Ended, Order, Payload, Report, carry_out, spoil};
use crate::clock::Clock;
use crate::error::HostError;
use crate::medium::Medium;

/// See the module.
pub(crate) struct EmulatedDrive {
    /// Absent only while it is dropped.
    messages: Option<Sender<Message>>,
    health: Arc<Mutex<Health>>,
    thread: Option<JoinHandle<()>>,
}

/// What the drive core is made from.
#[derive(Clone, Debug)]
pub(crate) struct Model {
    pub(crate) profile: Arc<Profile>,
    pub(crate) settings: Settings,
    pub(crate) streams: Streams,
    pub(crate) name: String,
}

impl Model {
    pub(crate) fn drive(&self) -> Result<Drive, SettingsError> {
        Drive::new(Arc::clone(&self.profile), self.settings, self.streams, &self.name)
    }
}

enum Message {
    Order(Order),
    Faults(Faults),
    Death,
}

impl EmulatedDrive {
    pub(crate) fn start(
        model: Model,
        medium: Arc<Medium>,
        clock: Clock,
        report: Report,
    ) -> Result<Self, HostError> {
        let drive = model.drive().map_err(|error| HostError::new(error.to_string()))?;
        let (sender, messages) = mpsc::channel();
        let health = Arc::new(Mutex::new(Health::default()));
        let state = State {
            model,
            drive,
            medium,
            clock,
            report,
            orders: BTreeMap::new(),
            change: None,
            is_dead: false,
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
        self.send(Message::Faults(faults));
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
    model: Model,
    drive: Drive,
    medium: Arc<Medium>,
    clock: Clock,
    report: Report,
    /// Orders inside the drive, by the name they have there.
    orders: BTreeMap<u64, (Command, Payload)>,
    change: Option<Change>,
    is_dead: bool,
    health: Arc<Mutex<Health>>,
}

/// What waits for the drive to be empty.
struct Change {
    faults: Faults,
    orders: VecDeque<Order>,
}

impl State {
    fn run(mut self, messages: &Receiver<Message>) {
        loop {
            let message = match self.drive.deadline() {
                Some(deadline) => messages.recv_timeout(self.clock.until(deadline).into()),
                None => messages.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            match message {
                Ok(message) => self.handle(message),
                Err(RecvTimeoutError::Timeout) => self.drive.handle_timeout(self.clock.now()),
                Err(RecvTimeoutError::Disconnected) => return,
            }
            self.finish();
            if self.orders.is_empty()
                && let Some(change) = self.change.take()
            {
                self.apply(change);
            }
        }
    }

    fn handle(&mut self, message: Message) {
        match (message, &mut self.change) {
            (Message::Order(order), Some(change)) => change.orders.push_back(order),
            (Message::Order(order), None) => self.submit(order),
            (Message::Faults(faults), Some(change)) => change.faults = faults,
            (Message::Faults(_), None) if self.is_dead => {}
            (Message::Faults(faults), None) => {
                self.change = Some(Change { faults, orders: VecDeque::new() });
            }
            (Message::Death, change) => {
                let waiting = change.take().map(|change| change.orders);
                self.is_dead = true;
                self.drive.handle_death(self.clock.now());
                waiting.into_iter().flatten().for_each(|order| self.submit(order));
            }
        }
    }

    fn submit(&mut self, Order { sub, command, payload, origin }: Order) {
        self.orders.insert(sub.0, (command, payload));
        self.drive.handle_submit(self.clock.now(), sub.0, command, origin);
    }

    fn apply(&mut self, Change { faults, orders }: Change) {
        self.model.settings.faults = faults;
        self.drive = self.model.drive().expect("the faults were checked, the rest is as it was");
        orders.into_iter().for_each(|order| self.submit(order));
    }

    /// Moves the bytes of what has ended and reports it.
    fn finish(&mut self) {
        while let Some(Completion { id, outcome, .. }) = self.drive.poll() {
            let (command, payload) = self.orders.remove(&id).expect("it was ordered");
            let (outcome, buf) = self.transfer(&command, payload, outcome);
            let now = self.clock.now();
            *self.health.lock().unwrap_or_else(PoisonError::into_inner) = self.drive.health(now);
            (self.report)(Ended { sub: SubId(id), outcome, buf });
        }
    }

    /// What the model says, unless the file under it fails.
    fn transfer(
        &self,
        command: &Command,
        payload: Payload,
        modelled: Outcome,
    ) -> (Outcome, Option<Buf>) {
        let Outcome::Done { unknown, damaged } = &modelled else {
            return match payload {
                Payload::Fill(buf) => (modelled, Some(buf)),
                Payload::None | Payload::Pieces(_) => (modelled, None),
            };
        };
        let (real, mut buf) = match command {
            Command::Flush => (Outcome::GOOD, None), // There is no cache to flush: see the module.
            command => carry_out(&self.medium, command, payload),
        };
        if let Some(buf) = &mut buf {
            spoil(buf, unknown);
            spoil(buf, damaged);
        }
        (if real.is_good() { modelled } else { real }, buf)
    }
}

#[cfg(test)]
mod tests {
    use levelhead_block::{Effort, SectorSet};
    use levelhead_units::{Extent, Lba, Ratio, SECTOR_SIZE, Sectors};
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
        let drive = EmulatedDrive::start(model, Arc::new(medium), Clock::start(), report).unwrap();
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
    fn new_faults_come_after_what_is_inside_and_before_what_comes_later() {
        let mut bench = bench("");
        let hard = Faults { hard_rate: Ratio::ONE, rotations: 1, ..Faults::NONE };
        (0..4).for_each(|_| bench.ask(Effort::Full));
        bench.drive.set_faults(Faults { slowdown: 2.0, ..hard });
        bench.drive.set_faults(hard);
        (0..4).for_each(|_| bench.ask(Effort::Full));
        for _ in 0..4 {
            assert_eq!(bench.end(), (Outcome::GOOD, [1; 2]));
        }
        for _ in 0..4 {
            assert_eq!(bench.end().1, [0xEE; 2]);
        }
        assert_eq!(bench.drive.health().unwrap().retry_rate, Some(Ratio::ONE));
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
