//! What the next mount would make of what a cut has left: the same recovery, over a disk to which nothing is written.

use std::collections::{BTreeMap, VecDeque};

use levelhead_block::{BlockDevice, Command, Data, Outcome, Payload, Piece, Reply, Request};
use levelhead_erasure::Kernel;
use levelhead_units::{Extent, Instant, Lba, Sectors};

use crate::format::superblock::Superblock;
use crate::settings::{MountMode, Settings};
use crate::{Action, Event, Filesystem, Submit};

/// Commands that are handed to the device at a time.
const BATCH_MAX: usize = 64;

/// Memory for what a recovery reads: 32 MiB.
const CACHE: Sectors = Sectors::new(1 << 13);

/// Waits after which a recovery that does nothing is given up.
const WAITS_MAX: u32 = 64;

/// How a recovery has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Settled {
    /// Everything is in its place.
    Done,
    /// A record that counts is lost.
    JournalLost,
    /// Not everything could come to its place.
    Broken,
}

/// Mounts and unmounts what is on a device.
pub(super) fn settle(
    device: &mut dyn BlockDevice,
    superblock: &Superblock,
    kernel: Kernel,
) -> Settled {
    let settings = Settings { mode: MountMode::ReadWrite, cache: CACHE, ..Settings::new(kernel) };
    let mut now = Instant::ZERO;
    let mut fs = Filesystem::new(now, superblock.clone(), settings);
    let (mut inside, mut waits) = (VecDeque::new(), 0);
    let mut settled = Settled::Done;
    while waits < WAITS_MAX {
        while let Some(action) = fs.poll() {
            match action {
                Action::Submit(submit) => inside.push_back(submit),
                Action::Event(Event::MetadataLost { lead })
                    if lead == superblock.geometry.journal().lba =>
                {
                    settled = Settled::JournalLost;
                }
                Action::Event(Event::ReadOnly { .. }) if settled == Settled::Done => {
                    settled = Settled::Broken;
                }
                Action::Event(_) | Action::Invalidate { .. } | Action::Reply { .. } => {}
            }
        }
        if inside.is_empty() {
            if fs.is_unmounted() {
                return settled;
            }
            waits += 1;
            fs.unmount(now);
            if let Some(at) = fs.deadline() {
                now = now.max(at);
                fs.handle_timeout(now);
            }
            continue;
        }
        waits = 0;
        // What is given to a device at once must not overlap, and a flush must come after what it is for.
        let (mut subs, mut batch) = (Vec::new(), Vec::new());
        while let Some(Submit { sub, request }) = inside.pop_front() {
            let is_alone = !matches!(request.command, Command::Read { .. });
            if is_alone && !batch.is_empty() {
                inside.push_front(Submit { sub, request });
                break;
            }
            subs.push(sub);
            batch.push(request);
            if is_alone || batch.len() == BATCH_MAX {
                break;
            }
        }
        for (sub, reply) in subs.into_iter().zip(device.run(batch)) {
            fs.handle_done(now, sub, reply);
        }
    }
    Settled::Broken
}

/// A device over another one: what is written stays in memory.
pub(crate) struct Laid<'a> {
    below: &'a mut dyn BlockDevice,
    written: BTreeMap<Lba, Piece>,
}

impl<'a> Laid<'a> {
    pub(crate) fn new(below: &'a mut dyn BlockDevice) -> Self {
        Self { below, written: BTreeMap::new() }
    }

    /// What was written over what was read.
    fn patch(&self, extent: Extent, reply: &mut Reply) {
        let over = self.written.range(extent.lba..extent.end());
        let Outcome::Done { unknown, damaged } = &mut reply.outcome else { return };
        let mut buf = std::mem::replace(&mut reply.data, Data::None).into_buf();
        for (&lba, piece) in over {
            let at = (lba - extent.lba).as_usize();
            buf.part_mut(at, 1).copy_from_slice(piece.bytes());
            for set in [&mut *unknown, &mut *damaged] {
                *set = set.iter().filter(|&bad| bad as usize != at).collect();
            }
        }
        reply.data = Data::Buf(buf);
    }

    fn write(&mut self, extent: Extent, pieces: &[Piece]) {
        let mut lba = extent.lba;
        for piece in pieces {
            for at in 0..Piece::count(std::slice::from_ref(piece)).get() {
                self.written.insert(lba, piece.part(at as u32, 1));
                lba = lba + Sectors::new(1);
            }
        }
    }
}

impl BlockDevice for Laid<'_> {
    fn size(&self) -> Sectors {
        self.below.size()
    }

    fn run(&mut self, batch: Vec<Request>) -> Vec<Reply> {
        // What reads do not see below lies above: their order among the writes of a batch does not count.
        let commands: Vec<Command> = batch.iter().map(|request| request.command).collect();
        let mut reads = Vec::new();
        for request in batch {
            match (request.command, request.payload) {
                (Command::Read { .. }, payload) => {
                    reads.push(Request { payload, ..Request::bare(request.command) });
                }
                (Command::Write { extent, .. }, Payload::Pieces(pieces)) => {
                    self.write(extent, &pieces);
                }
                (Command::Flush, _) => {}
                (command, _) => unreachable!("a filesystem does not ask for {command:?}"),
            }
        }
        let mut replies = self.below.run(reads).into_iter();
        let reply = |command: &Command| match *command {
            Command::Read { extent, .. } => {
                let mut reply = replies.next().expect("one for each read");
                self.patch(extent, &mut reply);
                reply
            }
            _ => Reply::bare(Outcome::GOOD),
        };
        commands.iter().map(reply).collect()
    }
}
