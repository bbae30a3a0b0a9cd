//! What all operations of an array share: its shape, its drives' queues, the names it has given, and
//! the actions it wants done.

use std::collections::{BTreeMap, VecDeque};

use levelhead_block::{Command, Outcome};
use levelhead_erasure::Code;
use levelhead_stats::Streams;
use levelhead_units::{DriveIdx, DriveSet, Extent, Instant, Lba, Sectors};

use crate::action::{Action, BufId, Combine, Place, Segment, SubId, Submit};
use crate::drives::DriveTrack;
use crate::layout::Layout;
use crate::queue::{End, HostQueue};
use crate::tau::DriveView;
use crate::{Content, Settings};

/// An operation in progress: a read, a write, a flush or a resync. Numbered from 1.
pub(crate) type OpId = u64;

/// The operation of commands whose end nobody waits for.
const NOBODY: OpId = 0;

/// See the module.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) layout: Layout,
    /// Absent where nothing is redundant.
    pub(crate) code: Option<Code>,
    pub(crate) lost: DriveSet,
    /// Redundancy of stripes from here on is not valid yet.
    pub(crate) synced: u64,
    pub(crate) actions: VecDeque<Action>,
    content: Content,
    drives: Vec<Drive>,
    subs: BTreeMap<SubId, Sub>,
    sub_next: u64,
    buf_next: u64,
}

#[derive(Debug)]
struct Drive {
    queue: HostQueue,
    track: DriveTrack,
}

/// A command in a drive's queue or inside the drive.
#[derive(Clone, Debug)]
pub(crate) struct Sub {
    pub(crate) op: OpId,
    pub(crate) drive: DriveIdx,
    pub(crate) command: Command,
    segments: Vec<Segment>,
    origin: u64,
    fate: Fate,
    started: Option<Instant>,
}

/// Whether a command says something about how often commands are withdrawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It may be withdrawn at the answer.
    Withdrawable,
    /// It will run.
    Certain,
}

/// What to put into a drive's queue.
pub(crate) struct Enqueue {
    pub(crate) op: OpId,
    pub(crate) drive: DriveIdx,
    pub(crate) command: Command,
    pub(crate) segments: Vec<Segment>,
    pub(crate) origin: u64,
    pub(crate) end: End,
    pub(crate) fate: Fate,
}

impl Core {
    pub(crate) fn new(settings: &Settings, streams: Streams) -> Self {
        let layout = Layout::new(settings.spec, settings.drive_size);
        let drives = (0..settings.spec.drives()).map(|idx| {
            let rng = streams.stream(&format!("array/host-queue/{idx}"));
            let queue = HostQueue::new(settings.order, settings.window, rng);
            Drive { queue, track: DriveTrack::default() }
        });
        let redundant = layout.symbols() - layout.data_symbols();
        let code = (redundant > 0).then(|| {
            Code::new(layout.data_symbols(), redundant).expect("a spec's codeword is not too long")
        });
        Self {
            layout,
            code,
            lost: settings.lost,
            synced: settings.synced.min(layout.stripes()),
            actions: VecDeque::new(),
            content: settings.content,
            drives: drives.collect(),
            subs: BTreeMap::new(),
            sub_next: 0,
            buf_next: 0,
        }
    }

    pub(crate) fn present(&self) -> DriveSet {
        DriveSet::first(self.drives.len() as u8).without(self.lost)
    }

    pub(crate) fn view(&self, now: Instant, drive: DriveIdx) -> DriveView {
        let Drive { queue, track } = &self.drives[drive.as_usize()];
        track.view(now, queue.len())
    }

    pub(crate) fn track(&mut self, drive: DriveIdx) -> &mut DriveTrack {
        &mut self.drives[drive.as_usize()].track
    }

    pub(crate) fn queue_len(&self, drive: DriveIdx) -> usize {
        self.drives[drive.as_usize()].queue.len()
    }

    /// A name for a buffer of the array's own.
    pub(crate) fn name_buf(&mut self) -> BufId {
        self.buf_next += 1;
        BufId::Own(self.buf_next)
    }

    /// A buffer of the array's own, there at once.
    pub(crate) fn acquire(&mut self, sectors: Sectors) -> BufId {
        let buf = self.name_buf();
        self.actions.push_back(Action::Acquire { buf, sectors });
        buf
    }

    pub(crate) fn release(&mut self, buf: BufId) {
        self.actions.push_back(Action::Release(buf));
    }

    /// Puts a command into a drive's queue.
    pub(crate) fn enqueue(&mut self, now: Instant, what: Enqueue) -> SubId {
        let Enqueue { op, drive, command, segments, origin, end, fate } = what;
        assert!(!self.lost.contains(drive), "drive {drive} is lost");
        self.sub_next += 1;
        let sub = SubId(self.sub_next);
        let state = Sub { op, drive, command, segments, origin, fate, started: None };
        let Drive { queue, track } = &mut self.drives[drive.as_usize()];
        queue.push(sub, state.lba(), end);
        if state.command.extent().is_some() {
            track.handle_asked(now);
        }
        self.subs.insert(sub, state);
        sub
    }

    /// Withdraws a command if no drive has it yet.
    pub(crate) fn withdraw(&mut self, now: Instant, sub: SubId) -> bool {
        let Some(state) = self.subs.get(&sub) else { return false };
        let Drive { queue, track } = &mut self.drives[state.drive.as_usize()];
        if state.started.is_some() || !queue.remove(sub, state.lba()) {
            return false;
        }
        if state.fate == Fate::Withdrawable {
            track.handle_fate(now, true);
        }
        track.handle_withdrawn(now);
        self.subs.remove(&sub);
        true
    }

    /// Lets commands into every drive whose window has room.
    pub(crate) fn dispatch(&mut self, now: Instant) {
        for drive in &mut self.drives {
            while let Some(sub) = drive.queue.pop() {
                let state = self.subs.get_mut(&sub).expect("a queued command is known");
                state.started = Some(now);
                if state.fate == Fate::Withdrawable {
                    drive.track.handle_fate(now, false);
                }
                if let (Command::Read { extent, .. }, [segment]) =
                    (state.command, state.segments.as_slice())
                {
                    let buf = segment.place.buf;
                    self.actions.push_back(Action::Acquire { buf, sectors: extent.sectors });
                }
                self.actions.push_back(Action::Submit(Submit {
                    drive: state.drive,
                    sub,
                    command: state.command,
                    segments: state.segments.clone(),
                    origin: state.origin,
                }));
            }
        }
    }

    /// A command has come back from its drive; returns what it was.
    pub(crate) fn finish(&mut self, now: Instant, sub: SubId) -> Sub {
        let state = self.subs.remove(&sub).unwrap_or_else(|| panic!("{sub:?} is not known"));
        let started = state.started.unwrap_or_else(|| panic!("{sub:?} is not inside a drive"));
        let Drive { queue, track } = &mut self.drives[state.drive.as_usize()];
        queue.finish(sub);
        track.handle_finished(now, started);
        state
    }

    /// Takes everything that waits for `drive` out of its queue.
    pub(crate) fn drain_waiting(&mut self, drive: DriveIdx) -> Vec<(SubId, Sub)> {
        let waits = |sub: &Sub| sub.drive == drive && sub.started.is_none();
        let waiting: Vec<SubId> =
            self.subs.iter().filter(|(_, sub)| waits(sub)).map(|(&id, _)| id).collect();
        waiting
            .into_iter()
            .map(|id| {
                let sub = self.subs.remove(&id).expect("it was there");
                let removed = self.drives[drive.as_usize()].queue.remove(id, sub.lba());
                assert!(removed, "{id:?} waits in the queue");
                (id, sub)
            })
            .collect()
    }

    /// Everything inside `drive`. Nobody waits for its end any more; the commands stay known, because
    /// the drive may still come back with their buffers.
    pub(crate) fn give_up_inside(&mut self, drive: DriveIdx) -> Vec<(SubId, Sub)> {
        let inside = self.subs.iter_mut().filter(|(_, sub)| sub.drive == drive && sub.op != NOBODY);
        inside
            .map(|(&id, sub)| {
                let known = sub.clone();
                sub.op = NOBODY;
                (id, known)
            })
            .collect()
    }

    /// Whether any command is queued or inside a drive.
    pub(crate) fn is_quiet(&self) -> bool {
        self.subs.is_empty()
    }

    /// Asks for arithmetic, and joins it to the last such action where they continue each other.
    pub(crate) fn combine(&mut self, into: Place, from: Vec<(u8, Place)>) {
        match self.content {
            Content::Carried => {}
            Content::Absent => return,
        }
        if let Some(Action::Combine(last)) = self.actions.back_mut()
            && continues(last, into, &from)
        {
            last.sectors += 1;
            return;
        }
        self.actions.push_back(Action::Combine(Combine { into, sectors: 1, from }));
    }
}

/// Whether one more sector is the next one of everything in `last`.
fn continues(last: &Combine, into: Place, from: &[(u8, Place)]) -> bool {
    let next = |place: Place| place.plus(last.sectors);
    next(last.into) == into
        && last.from.len() == from.len()
        && last
            .from
            .iter()
            .zip(from)
            .all(|(&(coefficient, place), &other)| (coefficient, next(place)) == other)
}

impl Sub {
    fn lba(&self) -> Lba {
        self.command.extent().map_or(Lba::ZERO, |extent: Extent| extent.lba)
    }

    /// The buffer a read fills.
    pub(crate) fn read_buf(&self) -> Option<BufId> {
        match (self.command, self.segments.as_slice()) {
            (Command::Read { .. }, [segment]) => Some(segment.place.buf),
            _ => None,
        }
    }
}

/// Whether an outcome says that the drive is no longer with us: it does not answer, or it could not
/// write.
pub(crate) fn loses_drive(command: &Command, outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Gone => true,
        Outcome::Done { damaged, .. } => command.is_write() && !damaged.is_empty(),
        Outcome::Cancelled => false,
    }
}
