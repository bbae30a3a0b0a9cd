//! Which steps of a stage may be under way together.
//!
//! ```text
//!   steps:   1  2  3 [4  5  6  7] 8  9      at most `window` have begun and not ended; they begin in their order
//!                     ^ has not ended
//! ```
//!
//! - WI1. A step begins when all steps before it have begun, fewer than `window` are under way, and none of those under
//!   way is one that it waits for.
//! - WI2. Making, syncing and removing a file wait for what came before of this file, and what comes after of this
//!   file waits for them; a read and a write, or two writes, of the same bytes keep their order.
//! - WI3. The processor computes one thing after the other, each when all reads before it have ended. What follows does
//!   not wait for it but for its place in the window: that is read-ahead.

use std::collections::BTreeSet;

use levelhead_units::Bytes;

use super::{Stage, Step};

/// The steps of one stage as they begin and end: see the module. A runtime asks [`Window::poll`] until there is
/// nothing, and tells of ends with [`Window::handle_end`].
///
/// ```
/// use levelhead_stats::Streams;
/// use levelhead_trace::{FileWorkload, Window};
///
/// let workload: FileWorkload = "ycsb:operations=100,files=1,size=1MiB".parse()?;
/// for stage in workload.stages(Streams::new(1)) {
///     let mut window = Window::new(&stage);
///     while let Some(step) = window.poll() {
///         // Carried out at once: only then are there steps that never wait.
///         window.handle_end(step);
///     }
///     assert!(window.is_over());
/// }
/// # Ok::<(), levelhead_trace::SyntheticError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Window<'a> {
    stage: &'a Stage,
    next: usize,
    under_way: BTreeSet<usize>,
    /// Computations in the window that the processor has not begun, or is at.
    computing: BTreeSet<usize>,
    is_computing: bool,
}

impl<'a> Window<'a> {
    /// Nothing has begun.
    ///
    /// # Panics
    ///
    /// If the stage lets nothing be under way.
    pub fn new(stage: &'a Stage) -> Self {
        assert!(stage.window > 0, "nothing could ever begin");
        let (under_way, computing) = (BTreeSet::new(), BTreeSet::new());
        Self { stage, next: 0, under_way, computing, is_computing: false }
    }

    /// The number of a step that begins now, in [`Stage::steps`].
    pub fn poll(&mut self) -> Option<usize> {
        loop {
            if let Some(computation) = self.computation() {
                self.is_computing = true;
                return Some(computation);
            }
            let number = self.next;
            let step = self.stage.steps.get(number)?;
            let is_full = self.under_way.len() >= self.stage.window as usize;
            if is_full || self.under_way.iter().any(|&other| waits(step, &self.stage.steps[other]))
            {
                return None;
            }
            self.next += 1;
            self.under_way.insert(number);
            if !matches!(step, Step::Compute(_)) {
                return Some(number);
            }
            self.computing.insert(number);
        }
    }

    /// A step that had begun is over.
    ///
    /// # Panics
    ///
    /// If it had not begun.
    pub fn handle_end(&mut self, number: usize) {
        let is_computation = self.computing.first() == Some(&number) && self.is_computing;
        assert!(is_computation || !self.computing.contains(&number), "step {number} has not begun");
        assert!(self.under_way.remove(&number), "step {number} is not under way");
        if is_computation {
            self.computing.remove(&number);
            self.is_computing = false;
        }
    }

    /// How many steps are under way, computations that wait for the processor or for a read included.
    pub fn len(&self) -> usize {
        self.under_way.len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.under_way.is_empty()
    }

    /// Whether all steps have ended.
    pub fn is_over(&self) -> bool {
        self.is_empty() && self.next == self.stage.steps.len()
    }

    /// The computation that the processor can begin with.
    fn computation(&self) -> Option<usize> {
        let first = *self.computing.first()?;
        let is_read = |&number: &usize| matches!(self.stage.steps[number], Step::Read { .. });
        let waits = self.is_computing || self.under_way.range(..first).any(is_read);
        (!waits).then_some(first)
    }
}

/// Whether `step` waits for the end of one that came before it.
fn waits(step: &Step, before: &Step) -> bool {
    let (Some((file, part)), Some((other, earlier))) = (touches(step), touches(before)) else {
        return false;
    };
    if file != other {
        return false;
    }
    match (part, earlier) {
        (Part::Bytes { is_write: false, .. }, Part::Bytes { is_write: false, .. }) => false,
        (Part::Bytes { first, end, .. }, Part::Bytes { first: from, end: to, .. }) => {
            first < to && from < end
        }
        (Part::Whole, _) | (_, Part::Whole) => true,
    }
}

/// What a step is about of a file.
enum Part {
    Whole,
    Bytes { first: u64, end: u64, is_write: bool },
}

fn touches(step: &Step) -> Option<(super::FileId, Part)> {
    let bytes = |offset: Bytes, length: Bytes, is_write| {
        let first = offset.get();
        Part::Bytes { first, end: first + length.get(), is_write }
    };
    match *step {
        Step::Create { file, .. } | Step::Sync(file) | Step::Remove(file) => {
            Some((file, Part::Whole))
        }
        Step::Read { file, offset, length } => Some((file, bytes(offset, length, false))),
        Step::Write { file, offset, length } => Some((file, bytes(offset, length, true))),
        Step::Compute(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use levelhead_stats::Streams;
    use levelhead_units::Nanos;

    use super::super::{FileId, Habit};
    use super::*;

    fn stage(window: u32, steps: &[Step]) -> Stage {
        Stage { name: "test", is_measured: true, window, steps: steps.to_vec() }
    }

    fn read(file: u32, offset: u64) -> Step {
        Step::Read { file: FileId(file), offset: Bytes::new(offset), length: Bytes::new(10) }
    }

    fn write(file: u32, offset: u64) -> Step {
        Step::Write { file: FileId(file), offset: Bytes::new(offset), length: Bytes::new(10) }
    }

    fn all(window: &mut Window<'_>) -> Vec<usize> {
        std::iter::from_fn(|| window.poll()).collect()
    }

    const COMPUTE: Step = Step::Compute(Nanos::new(5));

    #[test]
    fn as_many_steps_are_under_way_as_the_window_holds_and_they_begin_in_their_order() {
        let stage = stage(3, &[read(0, 0), read(0, 0), read(1, 0), read(0, 9), read(2, 0)]);
        let mut window = Window::new(&stage);
        assert_eq!(all(&mut window), [0, 1, 2]);
        window.handle_end(1);
        assert_eq!(all(&mut window), [3]);
        window.handle_end(3);
        window.handle_end(0);
        assert_eq!(all(&mut window), [4]);
        window.handle_end(2);
        assert!(!window.is_over());
        window.handle_end(4);
        assert!(window.is_over());
    }

    #[test]
    fn steps_of_one_file_wait_for_what_they_need_and_others_go_on_when_their_turn_comes() {
        let (file, habit) = (FileId(0), Habit::Changing);
        let create = Step::Create { file, habit };
        for (first, second, waits) in [
            (create, write(0, 0), true),
            (write(0, 0), write(0, 10), false),
            (write(0, 0), write(0, 9), true),
            (write(0, 0), read(0, 5), true),
            (read(0, 5), write(0, 0), true),
            (read(0, 5), read(0, 5), false),
            (write(0, 0), Step::Sync(file), true),
            (Step::Sync(file), read(0, 0), true),
            (read(0, 0), Step::Remove(file), true),
            (create, read(1, 0), false),
            (Step::Remove(file), write(1, 0), false),
        ] {
            let stage = stage(8, &[first, second, read(9, 0)]);
            let mut window = Window::new(&stage);
            let begun = all(&mut window);
            assert_eq!(begun, if waits { vec![0] } else { vec![0, 1, 2] }, "{first:?}, {second:?}");
            window.handle_end(0);
            assert_eq!(all(&mut window).len(), 3 - begun.len());
        }
    }

    /// WI3.
    #[test]
    fn the_processor_takes_reads_in_turn_while_others_are_under_way() {
        let steps = [read(0, 0), COMPUTE, read(0, 10), COMPUTE, write(1, 0), COMPUTE];
        let stage = stage(5, &steps);
        let mut window = Window::new(&stage);
        assert_eq!(all(&mut window), [0, 2, 4]);
        window.handle_end(2);
        assert_eq!(all(&mut window), Vec::<usize>::new(), "the first read is missing");
        window.handle_end(0);
        assert_eq!(all(&mut window), [1], "one computation at a time");
        window.handle_end(1);
        // The write is under way, and its computation has a place in the window.
        assert_eq!(all(&mut window), [3]);
        window.handle_end(3);
        assert_eq!(all(&mut window), [5]);
        window.handle_end(5);
        window.handle_end(4);
        assert!(window.is_over());
    }

    #[test]
    fn slow_computing_holds_up_what_does_not_fit_into_the_window() {
        let steps: Vec<Step> = (0..6).flat_map(|at| [read(0, at * 10), COMPUTE]).collect();
        let stage = stage(4, &steps);
        let mut window = Window::new(&stage);
        assert_eq!(all(&mut window), [0, 2]);
        window.handle_end(0);
        window.handle_end(2);
        // The computations take places of their own until they are over.
        assert_eq!(all(&mut window), [1, 4]);
        window.handle_end(4);
        assert_eq!(all(&mut window), [6]);
        window.handle_end(6);
        assert_eq!(all(&mut window), Vec::<usize>::new(), "four computations wait");
        window.handle_end(1);
        assert_eq!(all(&mut window), [3, 8]);
    }

    /// Whatever ends first, every step begins once and ends once.
    #[test]
    fn every_step_begins_once_in_whatever_order_they_end() {
        for seed in 0..200 {
            let mut rng = Streams::new(seed).stream("window");
            let steps: Vec<Step> = (0..60)
                .map(|_| match rng.below(8) {
                    0 => Step::Sync(FileId(rng.below(3) as u32)),
                    1..4 => write(rng.below(3) as u32, rng.below(30)),
                    4 => COMPUTE,
                    _ => read(rng.below(3) as u32, rng.below(30)),
                })
                .collect();
            let stage = stage(1 + rng.below(6) as u32, &steps);
            let mut window = Window::new(&stage);
            let (mut begun, mut under_way) = (vec![0; 60], Vec::new());
            while !window.is_over() {
                for number in all(&mut window) {
                    begun[number] += 1;
                    under_way.push(number);
                }
                assert!(window.len() <= stage.window as usize);
                assert!(!under_way.is_empty(), "seed {seed}: nothing is under way");
                let one = rng.below(under_way.len() as u64) as usize;
                window.handle_end(under_way.swap_remove(one));
            }
            assert_eq!(begun, vec![1; 60], "seed {seed}");
        }
    }
}
