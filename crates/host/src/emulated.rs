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
