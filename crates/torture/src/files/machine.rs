//! A machine with a filesystem over the disk of a crash swarm. Which command ends first is drawn; what is answered is compared with
//! the model.

use std::collections::{BTreeMap, BTreeSet};

use levelhead_block::{
    Buf, Command, Data, Effort, Outcome, Payload, Piece, Reply, RequestId, SectorSet,
};
use levelhead_erasure::Kernel;
use levelhead_fs::format::superblock::Superblock;
use levelhead_fs::rules::Rules;
use levelhead_fs::{
    Action, Answer, Caller, Event, FileKind, Filesystem, Moment, Request, Settings, Submit, What,
};
use levelhead_stats::{Rng, Streams};
use levelhead_units::{Extent, Instant, Lba, Nanos, SECTOR_SIZE, Sectors};

use super::Files;
use super::asked::{Asked, short};
use super::disk::{Coming, Disk, Fate};
use super::model::Model;
use super::survey::newest;

/// Commands that may end before a request must be answered, and steps of a mount or an unmount: far more than any takes.
const STEPS_MAX: u32 = 100_000;

/// How a machine is started.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Start {
    pub(crate) rules: Rules,
    pub(crate) seed: u64,
    /// One of this number of sectors needs retries; 0 for none.
    pub(crate) retries: u64,
    /// Whether sectors of the disk were damaged on purpose.
    pub(crate) is_damaged: bool,
    /// Sectors of memory that the filesystem may take for what it has read.
    pub(crate) cache: u64,
    /// The kind of new files.
    pub(crate) kind: FileKind,
    /// What is made and changed.
    pub(crate) files: Files,
}

/// A command inside the disk.
#[derive(Debug)]
struct Inside {
    submit: Submit,
    command: u64,
    /// Of a flush what had arrived when it was sent.
    arrived: u64,
    /// Of a read what is being written meanwhile.
    met: Vec<Coming>,
}

/// What is left of a machine whose power fails.
#[derive(Clone, Debug)]
pub(crate) struct Image {
    pub(crate) disk: Disk,
    pub(crate) inside: Vec<Coming>,
    pub(crate) model: Model,
}

impl Image {
    /// The power fails.
    pub(crate) fn cut(&mut self, fate: Fate, rng: &mut Rng) {
        self.disk.cut(fate, std::mem::take(&mut self.inside), rng);
    }
}

/// What is left of a machine that has ended cleanly.
pub(crate) struct Left {
    pub(crate) disk: Disk,
    /// Sectors that it has written.
    pub(crate) written: BTreeSet<Lba>,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Machine {
    pub(crate) fs: Filesystem,
    disk: Disk,
    inside: Vec<Inside>,
    /// Sectors that were written since it was started.
    written: BTreeSet<Lba>,
    pub(crate) now: Instant,
    pub(super) rng: Rng,
    pub(super) start: Start,
    pub(super) asked: BTreeMap<RequestId, Asked>,
    /// Answers to requests of a walk.
    answers: BTreeMap<RequestId, Answer>,
    request_last: u64,
    command_last: u64,
    pub(crate) model: Model,
    /// The number of the next write's bytes.
    pub(super) stamp: u64,
    /// What was wrong first.
    pub(super) broken: Option<String>,
    /// What was asked for, for people.
    pub(crate) told: Vec<String>,
}

impl Machine {
    /// Mounts what is on a disk.
    pub(crate) fn start(disk: Disk, model: Model, start: Start) -> Result<Self, String> {
        let superblock: Superblock = newest(&disk).ok_or("no superblock is left")?;
        let settings = Settings {
            cache: Sectors::new(start.cache),
            rules: start.rules,
            kind: start.kind,
            ..Settings::new(Kernel::best())
        };
        let mut machine = Self {
            fs: Filesystem::new(Instant::ZERO, superblock, settings),
            disk,
            inside: Vec::new(),
            written: BTreeSet::new(),
            now: Instant::ZERO,
            rng: Streams::new(start.seed).stream("machine"),
            start,
            asked: BTreeMap::new(),
            answers: BTreeMap::new(),
            request_last: 0,
            command_last: 0,
            model,
            stamp: start.seed & 0xffff_ff00,
            broken: None,
            told: Vec::new(),
        };
        machine.take();
        Ok(machine)
    }

    /// How many requests wait for their answers.
    pub(crate) fn outstanding(&self) -> usize {
        self.asked.len()
    }

    /// What was wrong, if anything was.
    pub(crate) fn is_good(&self) -> Result<(), String> {
        self.broken.clone().map_or(Ok(()), Err)
    }

    pub(super) fn note_broken(&mut self, how: String) {
        self.broken.get_or_insert(how);
    }

    /// What a power cut would leave to chance.
    pub(crate) fn image(&self) -> Image {
        let inside = self.inside.iter().flat_map(coming).collect();
        Image { disk: self.disk.clone(), inside, model: self.model.clone() }
    }

    /// The disk of a machine that has ended.
    pub(crate) fn into_disk(self) -> Disk {
        assert!(self.inside.is_empty(), "nothing is inside");
        let mut disk = self.disk;
        // What was repaired at the end needs no flush: it may be lost.
        disk.end_flush(u64::MAX);
        disk
    }

    fn take(&mut self) {
        while let Some(action) = self.fs.poll() {
            match action {
                Action::Submit(submit) => self.submit(submit),
                Action::Reply { id, answer } => match self.asked.remove(&id) {
                    Some(asked) => self.answered(asked, &answer),
                    None => {
                        let before = self.answers.insert(id, answer);
                        assert!(before.is_none(), "{id:?} has two answers");
                    }
                },
                Action::Event(Event::Repaired { lba }) => drop(self.disk.rewritten.insert(lba)),
                // A sector that wants retries may fail right after it was written anew, by chance.
                Action::Event(Event::Worn { .. }) | Action::Invalidate { .. } => {}
                Action::Event(Event::Unwritable { lba }) if self.disk.unwritable.contains(&lba) => {
                }
                Action::Event(event) if self.start.is_damaged => {
                    self.note_broken(format!("with damage that can be repaired: {event:?}"));
                }
                Action::Event(event) => self.note_broken(format!("{event:?}")),
            }
        }
    }

    fn submit(&mut self, submit: Submit) {
        self.command_last += 1;
        let command = self.command_last;
        let arrived = self.disk.begin_flush();
        let mut inside = Inside { submit, command, arrived, met: Vec::new() };
        let own = inside.submit.request.command;
        if let Some(extent) = own.extent() {
            for other in &mut self.inside {
                let Some(others) = other.submit.request.command.extent() else { continue };
                if others.lba >= extent.end() || extent.lba >= others.end() {
                    continue;
                }
                match (own.is_write(), other.submit.request.command.is_write()) {
                    (false, false) => {}
                    (true, true) => {
                        let how = format!("writes that overlap are inside: {extent:?}, {others:?}");
                        self.broken.get_or_insert(how);
                    }
                    (true, false) => {
                        let met = coming(&inside);
                        other.met.extend(met.filter(|coming| others.contains(coming.lba)));
                    }
                    (false, true) => {
                        let met: Vec<Coming> = coming(other).collect();
                        inside.met.extend(met.into_iter().filter(|met| extent.contains(met.lba)));
                    }
                }
            }
        }
        self.inside.push(inside);
    }

    /// Ends a command that is inside; whether there was one.
    pub(crate) fn step(&mut self) -> bool {
        if self.inside.is_empty() {
            return false;
        }
        let at = self.rng.below(self.inside.len() as u64) as usize;
        let inside = self.inside.swap_remove(at);
        self.now = self.now + Nanos::from_micros(100);
        let reply = self.execute(&inside);
        self.fs.handle_done(self.now, inside.submit.sub, reply);
        self.take();
        true
    }

    fn execute(&mut self, inside: &Inside) -> Reply {
        match inside.submit.request.command {
            Command::Read { extent, effort } => self.read(extent, effort, &inside.met),
            Command::Write { extent, .. }
                if extent.iter().any(|lba| self.disk.unwritable.contains(&lba)) =>
            {
                let (unknown, damaged) = (SectorSet::EMPTY, SectorSet::first(extent.sectors));
                Reply::bare(Outcome::Done { unknown, damaged })
            }
            Command::Write { durability, .. } => {
                for coming in coming(inside) {
                    self.written.insert(coming.lba);
                    self.disk.write(coming, durability);
                }
                Reply::bare(Outcome::GOOD)
            }
            Command::Flush => {
                self.disk.end_flush(inside.arrived);
                Reply::bare(Outcome::GOOD)
            }
            other => panic!("a filesystem never asks for {other:?}"),
        }
    }

    fn read(&mut self, extent: Extent, effort: Effort, met: &[Coming]) -> Reply {
        let mut buf = Buf::zeroed(extent.sectors);
        let mut missing = Vec::new();
        for ((at, lba), into) in
            (0..).zip(extent.iter()).zip(buf.as_mut_slice().chunks_mut(SECTOR_SIZE))
        {
            let needs_retries = self.start.retries > 0
                && effort == Effort::Fast
                && self.rng.below(self.start.retries) == 0;
            if self.disk.bad.contains(&lba) || needs_retries {
                missing.push(at);
                into.fill(0xEE);
                continue;
            }
            match met.iter().rev().find(|coming| coming.lba == lba) {
                Some(coming) => {
                    into.copy_from_slice(&self.disk.torn(lba, &coming.bytes, &mut self.rng));
                }
                None => into.copy_from_slice(self.disk.sector(lba)),
            }
        }
        let missing: SectorSet = missing.into_iter().collect();
        let outcome = match effort {
            Effort::Full | Effort::Medium => {
                Outcome::Done { unknown: SectorSet::EMPTY, damaged: missing }
            }
            Effort::Fast | Effort::Limited { .. } => {
                Outcome::Done { unknown: missing, damaged: SectorSet::EMPTY }
            }
        };
        Reply { data: Data::Buf(buf), ..Reply::bare(outcome) }
    }

    /// Asks for something.
    pub(super) fn ask(&mut self, what: What, asked: Option<Asked>) -> RequestId {
        self.request_last += 1;
        let id = RequestId(self.request_last);
        let now = Moment { seconds: self.request_last as i64, nanos: 0 };
        if let Some(asked) = asked {
            self.asked.insert(id, asked);
        }
        let caller = Caller { uid: 0, gid: 0 };
        self.fs.handle_request(self.now, Request { id, caller, now, what });
        self.take();
        id
    }

    /// Time passes.
    pub(crate) fn wait(&mut self, time: Nanos) {
        self.now = self.now + time;
        self.fs.handle_timeout(self.now);
        self.take();
    }

    /// Nothing is inside: time passes until something has to be done.
    pub(crate) fn wait_on(&mut self) -> Result<(), String> {
        let Some(at) = self.fs.deadline() else {
            return Err("something that was asked for never ends".into());
        };
        self.now = (self.now + Nanos::from_micros(1)).max(at);
        self.fs.handle_timeout(self.now);
        self.take();
        Ok(())
    }

    /// Asks for something and waits for the answer.
    pub(crate) fn run(&mut self, what: What) -> Result<Answer, String> {
        let text = short(&what);
        let id = self.ask(what, None);
        for _ in 0..STEPS_MAX {
            if let Some(answer) = self.answers.remove(&id) {
                return Ok(answer);
            }
            if !self.step() {
                self.wait_on().map_err(|how| format!("{how}: {text}"))?;
            }
        }
        Err(format!("never answered: {text}"))
    }

    /// A mount, or something that was asked for, goes on for some commands.
    pub(crate) fn steps(&mut self, most: u64) {
        for _ in 0..most {
            if !self.step() {
                break;
            }
        }
    }

    /// Begins to unmount.
    pub(crate) fn begin_unmount(&mut self) {
        self.fs.unmount(self.now);
        self.take();
    }

    /// Unmounts, and gives the disk and what was written since it was mounted.
    pub(crate) fn unmount(mut self) -> Result<Left, String> {
        self.begin_unmount();
        for _ in 0..STEPS_MAX {
            if !self.step() {
                self.is_good()?;
                return match self.fs.is_unmounted() {
                    true => {
                        let written = std::mem::take(&mut self.written);
                        Ok(Left { disk: self.into_disk(), written })
                    }
                    false => Err("an unmount never ends".into()),
                };
            }
        }
        Err("an unmount goes on and on".into())
    }
}

/// What a write brings.
fn coming(inside: &Inside) -> impl Iterator<Item = Coming> {
    let request = &inside.submit.request;
    let pieces: &[Piece] = match &request.payload {
        Payload::Pieces(pieces) if request.command.is_write() => pieces,
        Payload::Pieces(_) | Payload::Room(_) | Payload::None => &[],
    };
    let extent = request.command.extent().unwrap_or(Extent::new(Lba::ZERO, Sectors::ZERO));
    let command = inside.command;
    extent.iter().zip(Piece::each_sector(pieces)).map(move |(lba, bytes)| Coming {
        lba,
        bytes: bytes.into(),
        command,
    })
}
