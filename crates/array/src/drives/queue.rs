//! The queue in front of one drive, and the window into it.
//!
//! A command inside a drive cannot be recalled; one that waits here can. So the array keeps its own
//! queue and lets at most `window` commands into the drive at a time.
//!
//! ```text
//!   push --> waiting, in some order --> pop (window not full) --> inside the drive --> finished
//!               |
//!               +--> remove
//! ```
//!
//! # Invariants
//!
//! - K1. At most `window` commands are inside the drive.
//! - K2. Commands pushed at the first place leave before those at the head, and these before all others, the first one pushed first.
//! - K3. Every command leaves in the end, however many come after it.

use std::collections::{BTreeSet, VecDeque};

use levelhead_stats::Rng;
use levelhead_units::Lba;

use crate::names::SubId;
use crate::settings::HostOrder;

const LANES: usize = 32;

/// The most newcomers that join a sweep under way.
const JOINING_MAX: u32 = 64;

/// Where in the queue a command goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// Before everything that waits.
    Head,
    /// Before those as well: metadata, without which nothing else may go.
    First,
    /// Where the order puts it.
    Tail,
}

/// The commands waiting for one drive, and the number inside it.
#[derive(Clone, Debug)]
pub(crate) struct HostQueue {
    window: u32,
    first: VecDeque<SubId>,
    urgent: VecDeque<SubId>,
    waiting: Waiting,
    /// Commands that wait, urgent ones included.
    waiting_count: usize,
    /// Commands inside the drive, and for `paper32` their lane.
    inside: Vec<(SubId, Option<usize>)>,
}

/// The sweep under way, and what waits for the next one.
#[derive(Clone, Debug, Default)]
struct Sweeps {
    current: BTreeSet<(Lba, SubId)>,
    next: BTreeSet<(Lba, SubId)>,
    /// The last address that left.
    arm: Lba,
    joined: u32,
}

#[derive(Clone, Debug)]
enum Waiting {
    Fcfs(VecDeque<SubId>),
    Elevator(Sweeps),
    Paper32(Lanes),
}

/// The queues of `paper32`, one a thread of the host. Sets of lanes are bits.
#[derive(Clone, Debug)]
struct Lanes {
    lanes: Vec<VecDeque<SubId>>,
    /// Lanes with a command inside the drive.
    busy: u32,
    /// Lanes in which something waits.
    filled: u32,
    rng: Rng,
}

const _: () = assert!(LANES == u32::BITS as usize);

impl HostQueue {
    pub(crate) fn new(order: HostOrder, window: u32, rng: Rng) -> Self {
        assert!(window >= 1);
        let waiting = match order {
            HostOrder::Fcfs => Waiting::Fcfs(VecDeque::new()),
            HostOrder::Elevator => Waiting::Elevator(Sweeps::default()),
            HostOrder::Paper32 => {
                let lanes = vec![VecDeque::new(); LANES];
                Waiting::Paper32(Lanes { lanes, busy: 0, filled: 0, rng })
            }
        };
        let (first, urgent, inside) = (VecDeque::new(), VecDeque::new(), Vec::new());
        Self { window, first, urgent, waiting, waiting_count: 0, inside }
    }

    /// Commands waiting or inside the drive.
    pub(crate) fn len(&self) -> usize {
        self.waiting_count + self.inside.len()
    }

    /// Whether [`HostQueue::pop`] has something to do: a command waits, or a sweep is to be ended that has taken
    /// newcomers.
    pub(crate) fn has_work(&self) -> bool {
        let is_sweeping = matches!(&self.waiting, Waiting::Elevator(sweeps) if sweeps.joined > 0);
        self.waiting_count > 0 || is_sweeping
    }

    pub(crate) fn push(&mut self, sub: SubId, lba: Lba, end: End) {
        self.waiting_count += 1;
        match (end, &mut self.waiting) {
            (End::First, _) => self.first.push_back(sub),
            (End::Head, _) => self.urgent.push_back(sub),
            (End::Tail, Waiting::Fcfs(queue)) => queue.push_back(sub),
            (End::Tail, Waiting::Elevator(sweeps)) => sweeps.push(sub, lba),
            (End::Tail, Waiting::Paper32(lanes)) => lanes.push(sub),
        }
    }

    /// Commands inside the drive.
    pub(crate) fn inside(&self) -> impl ExactSizeIterator<Item = SubId> {
        self.inside.iter().map(|(sub, _)| *sub)
    }

    /// The next command for the drive, if the window has room for one; of those at the very first place alone if `is_held`.
    pub(crate) fn pop(&mut self, is_held: bool) -> Option<SubId> {
        if self.inside.len() >= self.window as usize {
            return None;
        }
        let (sub, lane) = match self.first.pop_front() {
            Some(sub) => (sub, None),
            None if is_held => return None,
            None => match self.urgent.pop_front() {
                Some(sub) => (sub, None),
                None => self.waiting.pop()?,
            },
        };
        self.waiting_count -= 1;
        self.inside.push((sub, lane));
        assert!(self.inside.len() <= self.window as usize, "K1");
        Some(sub)
    }

    /// Withdraws a command that still waits; false if it is inside the drive or was never here.
    pub(crate) fn remove(&mut self, sub: SubId, lba: Lba) -> bool {
        let was_there = take(&mut self.first, sub)
            || take(&mut self.urgent, sub)
            || match &mut self.waiting {
                Waiting::Fcfs(queue) => take(queue, sub),
                Waiting::Elevator(sweeps) => sweeps.remove(sub, lba),
                Waiting::Paper32(lanes) => lanes.remove(sub),
            };
        self.waiting_count -= usize::from(was_there);
        was_there
    }

    /// A command has left the drive.
    pub(crate) fn finish(&mut self, sub: SubId) {
        let at = self.inside.iter().position(|(inside, _)| *inside == sub);
        let (_, lane) = self.inside.swap_remove(at.expect("only a command inside can finish"));
        if let (Some(lane), Waiting::Paper32(lanes)) = (lane, &mut self.waiting) {
            lanes.busy &= !(1 << lane);
        }
    }
}

/// Removes `sub` from a queue. Recent commands are the likeliest to be withdrawn: from the back.
fn take(queue: &mut VecDeque<SubId>, sub: SubId) -> bool {
    let at = queue.iter().rposition(|&waiting| waiting == sub);
    at.is_some_and(|at| queue.remove(at).is_some())
}

impl Sweeps {
    fn push(&mut self, sub: SubId, lba: Lba) {
        if lba >= self.arm && self.joined < JOINING_MAX {
            self.joined += 1;
            self.current.insert((lba, sub));
        } else {
            self.next.insert((lba, sub));
        }
    }

    fn pop(&mut self) -> Option<SubId> {
        if self.current.is_empty() {
            std::mem::swap(&mut self.current, &mut self.next);
            self.joined = 0;
        }
        let (lba, sub) = self.current.pop_first()?;
        self.arm = lba;
        Some(sub)
    }

    fn remove(&mut self, sub: SubId, lba: Lba) -> bool {
        self.current.remove(&(lba, sub)) || self.next.remove(&(lba, sub))
    }
}

impl Lanes {
    fn push(&mut self, sub: SubId) {
        let lane = self.rng.below(LANES as u64) as usize;
        self.lanes[lane].push_back(sub);
        self.filled |= 1 << lane;
    }

    /// The next command and its lane, which is busy from then on.
    fn pop(&mut self) -> Option<(SubId, usize)> {
        // Of the lanes that may send one, the oldest command first: names grow with time.
        let mut free = self.filled & !self.busy;
        let mut oldest: Option<(SubId, usize)> = None;
        while free != 0 {
            let lane = free.trailing_zeros() as usize;
            free &= free - 1;
            let first = (self.lanes[lane][0], lane);
            oldest = Some(oldest.map_or(first, |known| known.min(first)));
        }
        let (sub, lane) = oldest?;
        self.busy |= 1 << lane;
        self.lanes[lane].pop_front();
        self.note_emptied(lane);
        Some((sub, lane))
    }

    fn remove(&mut self, sub: SubId) -> bool {
        let found = (0..LANES).find(|&lane| take(&mut self.lanes[lane], sub));
        if let Some(lane) = found {
            self.note_emptied(lane);
        }
        found.is_some()
    }

    fn note_emptied(&mut self, lane: usize) {
        if self.lanes[lane].is_empty() {
            self.filled &= !(1 << lane);
        }
    }
}

impl Waiting {
    fn pop(&mut self) -> Option<(SubId, Option<usize>)> {
        match self {
            Self::Fcfs(queue) => queue.pop_front().map(|sub| (sub, None)),
            Self::Elevator(sweeps) => sweeps.pop().map(|sub| (sub, None)),
            Self::Paper32(lanes) => lanes.pop().map(|(sub, lane)| (sub, Some(lane))),
        }
    }
}

#[cfg(test)]
mod tests {
    use levelhead_stats::Streams;

    use super::*;

    fn queue(order: HostOrder, window: u32) -> HostQueue {
        HostQueue::new(order, window, Streams::new(3).stream("lanes"))
    }

    fn drain(queue: &mut HostQueue) -> Vec<u64> {
        let mut order = Vec::new();
        while let Some(sub) = queue.pop(false) {
            queue.finish(sub);
            order.push(sub.0);
        }
        order
    }

    /// Else the next sweep would take fewer newcomers, for having followed an empty queue.
    #[test]
    fn sweep_that_finds_nothing_more_is_over() {
        let mut queue = HostQueue::new(HostOrder::Elevator, 9, Streams::new(1).stream("queue"));
        assert!(!queue.has_work());
        queue.push(SubId(1), Lba::new(5), End::Tail);
        assert_eq!((queue.len(), queue.pop(false)), (1, Some(SubId(1))));
        assert!(queue.has_work(), "one newcomer was taken");
        assert_eq!((queue.pop(false), queue.has_work()), (None, false));
    }

    #[test]
    fn window_bounds_what_is_inside() {
        for order in [HostOrder::Fcfs, HostOrder::Elevator, HostOrder::Paper32] {
            let mut queue = queue(order, 2);
            (0..5).for_each(|n| queue.push(SubId(n), Lba::new(n), End::Tail));
            let inside: Vec<SubId> = std::iter::from_fn(|| queue.pop(false)).collect();
            assert!(inside.len() <= 2 && !inside.is_empty(), "{order}");
            assert_eq!(queue.len(), 5, "{order}");
            assert!(!queue.remove(inside[0], Lba::ZERO), "{order}: inside a drive, not removable");
        }
    }

    #[test]
    fn elevator_goes_up_and_starts_again() {
        let mut queue = queue(HostOrder::Elevator, 1);
        for (sub, lba) in [(0, 50), (1, 10), (2, 70)] {
            queue.push(SubId(sub), Lba::new(lba), End::Tail);
        }
        let first = queue.pop(false).unwrap();
        queue.push(SubId(3), Lba::new(5), End::Tail);
        queue.push(SubId(4), Lba::new(60), End::Tail);
        queue.finish(first);
        assert_eq!((first.0, drain(&mut queue)), (1, vec![0, 4, 2, 3]));
    }

    /// K3, against the two loads that starve a C-LOOK: an ascending stream, and one hot address.
    #[test]
    fn no_command_waits_without_end_behind_a_stream() {
        for order in [HostOrder::Fcfs, HostOrder::Elevator, HostOrder::Paper32] {
            for step in [0, 1] {
                let mut queue = queue(order, 1);
                queue.push(SubId(1), Lba::new(1), End::Tail);
                queue.push(SubId(0), Lba::ZERO, End::Tail);
                let mut left = Vec::new();
                for n in 2..200 {
                    queue.push(SubId(n), Lba::new(1 + n * step), End::Tail);
                    let sub = queue.pop(false).unwrap();
                    queue.finish(sub);
                    left.push(sub.0);
                }
                assert!(left.contains(&0), "{order}, step {step}");
            }
        }
    }

    #[test]
    fn head_goes_first_whatever_the_order() {
        for order in [HostOrder::Fcfs, HostOrder::Elevator, HostOrder::Paper32] {
            let mut queue = queue(order, 1);
            queue.push(SubId(0), Lba::new(0), End::Tail);
            queue.push(SubId(1), Lba::new(9), End::Head);
            queue.push(SubId(2), Lba::new(8), End::Head);
            assert_eq!(drain(&mut queue), [1, 2, 0], "{order}");
        }
    }

    #[test]
    fn removed_command_never_leaves() {
        for order in [HostOrder::Fcfs, HostOrder::Elevator, HostOrder::Paper32] {
            let mut queue = queue(order, 4);
            (0..4).for_each(|n| queue.push(SubId(n), Lba::new(n), End::Tail));
            assert!(queue.remove(SubId(2), Lba::new(2)), "{order}");
            assert!(!queue.remove(SubId(2), Lba::new(2)), "{order}");
            let mut left = drain(&mut queue);
            left.sort_unstable();
            assert_eq!(left, [0, 1, 3], "{order}");
        }
    }

    #[test]
    fn a_paper_lane_has_one_command_inside() {
        let mut queue = queue(HostOrder::Paper32, 32);
        (0..200).for_each(|n| queue.push(SubId(n), Lba::ZERO, End::Tail));
        let mut lanes: Vec<usize> = Vec::new();
        while queue.pop(false).is_some() {}
        lanes.extend(queue.inside.iter().filter_map(|(_, lane)| *lane));
        lanes.sort_unstable();
        let count = lanes.len();
        lanes.dedup();
        assert_eq!(lanes.len(), count);
        assert!(count > 16, "{count} of 32 lanes are busy with 200 commands");
    }
}
