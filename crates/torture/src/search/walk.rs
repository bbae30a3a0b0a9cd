//! The walk over all states: who has nothing to do takes one that was not left yet.

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use levelhead_array::Spec;
use levelhead_array::membership::Why;
use levelhead_array::metadata::Logs;
use levelhead_block::Durability;
use levelhead_stats::{Rng, Streams};
use levelhead_units::{DriveIdx, DriveSet, Extent, Lba, Sectors};

use super::{Bound, Broken, Left, Limits, Outcome, canon, cuts};
use crate::crash::aim::Planted;
use crate::crash::image::{Image, assemble};
use crate::crash::machine::{Machine, Start};
use crate::crash::make::{Made, Make};
use crate::crash::promise::Promise;
use crate::disk::Manners;

/// A thing that may happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Move {
    /// The command at this place inside the disks ends.
    End(usize),
    Write,
    Flush,
    Lose(DriveIdx),
    Return(DriveIdx),
    Replace(DriveIdx),
    /// Time goes on to what the array has planned.
    Wait,
}

/// The array at some moment, and what led there.
struct State {
    machine: Machine,
    left: Left,
    trace: Vec<String>,
}

/// What all workers share.
#[derive(Default)]
struct Shared {
    seen: HashSet<u128>,
    images: HashSet<u128>,
    /// States that were not left yet.
    stack: Vec<State>,
    /// Workers that are at a state, and may bring more.
    working: usize,
    outcome: Outcome,
    is_over: bool,
    /// When it was told last how far the search is.
    told: Option<Instant>,
}

/// How often it is told how far the search is.
const TELL_EVERY: Duration = Duration::from_secs(2);

pub(super) struct Search<'a> {
    bound: Bound,
    spec: Spec,
    limits: Limits,
    begun: Instant,
    tell: &'a (dyn Fn(&Outcome) + Sync),
    shared: Mutex<Shared>,
    /// There is a state to be left, or none will come.
    has_changed: Condvar,
}

impl<'a> Search<'a> {
    pub(super) fn new(bound: Bound, limits: Limits, tell: &'a (dyn Fn(&Outcome) + Sync)) -> Self {
        let spec = bound.layout.parse().expect("the bounds name good layouts");
        let (shared, has_changed) = Default::default();
        Self { bound, spec, limits, begun: Instant::now(), tell, shared, has_changed }
    }

    /// Leaves all states.
    pub(super) fn run(self) -> Outcome {
        let Bound { writes, is_announced, losses, returns, replacements, cuts, .. } = self.bound;
        let flushes = u8::from(is_announced && writes > 0);
        let left = Left { writes, flushes, losses, returns, replacements, cuts };
        match self.start(self.made(), DriveSet::EMPTY, cuts) {
            Ok(machine) => self.push(State { machine, left, trace: Vec::new() }),
            Err(how) => self.lock().outcome.broken = Some(broken(how, &[])),
        }
        thread::scope(|scope| {
            for _ in 1..self.limits.workers {
                // Without another thread there are fewer workers.
                let _ = thread::Builder::new().spawn_scoped(scope, || self.work());
            }
            self.work();
        });
        let shared = self.shared.into_inner().unwrap_or_else(PoisonError::into_inner);
        let Outcome { capped, ref broken, .. } = shared.outcome;
        let is_exhausted = shared.stack.is_empty() && broken.is_none() && capped == 0;
        Outcome { is_exhausted, ..shared.outcome }
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self) {
        while let Some(state) = self.next() {
            let left = catch_unwind(AssertUnwindSafe(|| self.leave(&state)));
            let left = left.unwrap_or_else(|_| Err(broken("a panic".into(), &state.trace)));
            let mut shared = self.lock();
            shared.working -= 1;
            if let Err(broken) = left {
                shared.outcome.broken.get_or_insert(broken);
                shared.is_over = true;
            }
            self.has_changed.notify_all();
        }
    }

    /// A state that was not left yet; `None` once there will be none, or the time or the number of states is over.
    fn next(&self) -> Option<State> {
        let mut shared = self.lock();
        loop {
            let is_long_enough = self.begun.elapsed() >= self.limits.time;
            shared.is_over |= is_long_enough || shared.outcome.states >= self.limits.states;
            if shared.told.unwrap_or(self.begun).elapsed() >= TELL_EVERY {
                shared.told = Some(Instant::now());
                (self.tell)(&shared.outcome);
            }
            if shared.is_over || (shared.stack.is_empty() && shared.working == 0) {
                return None;
            }
            if let Some(state) = shared.stack.pop() {
                shared.working += 1;
                return Some(state);
            }
            let waited = self.has_changed.wait(shared);
            shared = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn made(&self) -> Image {
        let width = self.spec.width() as u64 * (1 + self.spec.expansion() as u64);
        let make = Make {
            spec: self.spec,
            stripes: self.bound.stripes,
            synced: u64::MAX,
            piece: 2 + 2 * width,
            logs: if self.bound.is_announced { Logs::Parts } else { Logs::All },
            manners: Manners::Honest,
            listed: 0,
        };
        let Made { disks, .. } = make.disks(&mut rng(0));
        Image::new(disks, Promise::new(make.layout().size().get(), make.logs, true))
    }

    /// Starts the array when so many power cuts are left: each run has another name.
    fn start(&self, image: Image, hidden: DriveSet, cuts: u8) -> Result<Machine, String> {
        let mut machine = Machine::start(Start {
            image,
            hidden,
            rules: self.bound.rules,
            patience: None,
            slow_metadata: false,
            slow_aside: false,
            fills: false,
            verify: None,
            lies: 0,
            has_background: false,
            planted: Planted::None,
            seed: 1 + u64::from(cuts),
        })?;
        machine.end_harmless();
        is_good(&mut machine)?;
        Ok(machine)
    }

    /// Keeps a state that was not seen.
    fn push(&self, state: State) {
        let hash = canon::state(&state.machine, &state.left);
        let mut shared = self.lock();
        if shared.seen.insert(hash) {
            shared.outcome.states += 1;
            shared.stack.push(state);
            self.has_changed.notify_one();
        }
    }

    /// All that may happen to a state.
    fn leave(&self, state: &State) -> Result<(), Broken> {
        let State { machine, left, trace } = state;
        if machine.inside() == 0 && machine.outstanding() == 0 {
            self.check(machine.clone(), trace.clone())?;
        } else if machine.inside() == 0 && machine.array.deadline().is_none() {
            let how = format!("{} requests are never answered", machine.outstanding());
            return Err(broken(how, trace));
        }
        if left.cuts > 0 {
            self.cut(state)?;
        }
        for one in self.moves(state) {
            let mut next = State {
                machine: state.machine.clone(),
                left: state.left,
                trace: state.trace.clone(),
            };
            next.trace.push(in_words(&state.machine, one));
            self.carry_out(&mut next, one);
            next.machine.end_harmless();
            is_good(&mut next.machine).map_err(|how| broken(how, &next.trace))?;
            self.push(next);
        }
        Ok(())
    }

    /// What may happen next.
    fn moves(&self, state: &State) -> Vec<Move> {
        let State { machine, left, .. } = state;
        let inside = machine.inside();
        let mut moves: Vec<Move> = (0..inside).map(Move::End).collect();
        if left.writes > 0 && machine.outstanding() == 0 {
            moves.push(Move::Write);
        }
        if left.flushes > 0 && left.writes == 0 && machine.outstanding() == 0 {
            moves.push(Move::Flush);
        }
        let gone = machine.gone();
        if left.losses > 0 {
            let may_go = self.bound.may_be_lost().without(gone);
            let may_go = may_go.and(DriveSet::first(self.spec.members() as u8)).iter();
            let may_go = may_go.filter(|&drive| self.spec.survives(gone.with(drive)));
            moves.extend(may_go.map(Move::Lose));
        }
        if left.returns > 0 {
            moves.extend(machine.may_return().iter().map(Move::Return));
        }
        if left.replacements > 0 {
            moves.extend(machine.may_replace().iter().map(Move::Replace));
        }
        if inside == 0 && machine.array.deadline().is_some() {
            moves.push(Move::Wait);
        }
        moves
    }

    fn carry_out(&self, state: &mut State, one: Move) {
        let State { machine, left, .. } = state;
        match one {
            Move::End(at) => machine.end(at),
            Move::Write => {
                left.writes -= 1;
                machine.write(self.extent(), Durability::Cached);
            }
            Move::Flush => {
                left.flushes -= 1;
                machine.flush();
            }
            Move::Lose(drive) => {
                left.losses -= 1;
                let is_by_hand = self.bound.writes == 0;
                machine.fail(drive, if is_by_hand { Why::ByHand } else { Why::Failed });
            }
            Move::Return(drive) => {
                left.returns -= 1;
                machine.bring_back(drive);
            }
            Move::Replace(drive) => {
                left.replacements -= 1;
                machine.replace(drive, &mut rng(left.cuts));
            }
            Move::Wait => machine.wait(),
        }
    }

    fn extent(&self) -> Extent {
        let stripe = self.spec.chunk().get() * self.spec.data() as u64;
        let sectors = if self.bound.is_announced { stripe } else { 1 };
        Extent::new(Lba::ZERO, Sectors::new(sectors))
    }

    /// The power fails: every image that may be left, and every set of drives that may be missing.
    fn cut(&self, state: &State) -> Result<(), Broken> {
        let image = state.machine.image();
        let left = Left { cuts: state.left.cuts - 1, ..state.left };
        let (images, is_capped) = cuts::all(&image);
        self.lock().outcome.capped += u64::from(is_capped);
        for image in images {
            let hash = canon::image(&image, &left);
            let mut shared = self.lock();
            if !shared.images.insert(hash) {
                continue;
            }
            shared.outcome.images += 1;
            drop(shared);
            let mut trace = state.trace.clone();
            trace.push("the power fails".into());
            self.starts(&image, left, &trace)?;
        }
        Ok(())
    }

    fn starts(&self, image: &Image, left: Left, trace: &[String]) -> Result<(), Broken> {
        let known =
            assemble(&image.disks, image.dead, image.lost).map_err(|how| broken(how, trace))?;
        let gone = known.absent.or(known.assembly.filling).or(image.unfilled);
        let all = DriveSet::first(self.spec.members() as u8);
        let sets = 0..1_u32 << self.spec.members();
        let set = |bits: u32| -> DriveSet {
            all.iter().filter(|drive| bits >> drive.as_usize() & 1 == 1).collect()
        };
        let missing: Vec<DriveSet> =
            sets.map(set).filter(|&set| self.spec.survives(gone.or(set))).collect();
        if missing.is_empty() {
            return Err(broken(format!("{gone:?} are gone, more than may be lost"), trace));
        }
        for missing in missing {
            let hidden = image.dead.or(missing);
            let mut trace = trace.to_vec();
            trace.push(format!("a start without {missing:?}"));
            self.lock().outcome.starts += 1;
            let machine = self.start(image.clone(), hidden, left.cuts);
            let machine = machine.map_err(|how| broken(how, &trace))?;
            self.check(machine.clone(), trace.clone())?;
            if left.cuts > 0 {
                self.push(State { machine, left, trace });
            }
        }
        Ok(())
    }

    /// Reads everything, also without each drive that the layout survives the loss of; the same once every drive is back that may be
    /// taken back.
    fn check(&self, mut machine: Machine, mut trace: Vec<String>) -> Result<(), Broken> {
        read_all(&mut machine, &trace)?;
        self.lose_all(&machine, &trace)?;
        let mut is_back = false;
        while let Some(drive) = machine.may_return().iter().next() {
            is_back = true;
            trace.push(format!("drive {drive} is back"));
            machine.bring_back(drive);
            read_all(&mut machine, &trace)?;
        }
        if is_back { self.lose_all(&machine, &trace) } else { Ok(()) }
    }

    /// Loses every drive that may go, one after the other in every order, and reads everything after each.
    fn lose_all(&self, machine: &Machine, trace: &[String]) -> Result<(), Broken> {
        let gone = machine.gone();
        let there = DriveSet::first(self.spec.members() as u8).without(gone);
        for drive in there.iter().filter(|&drive| self.spec.survives(gone.with(drive))) {
            let (mut machine, mut trace) = (machine.clone(), trace.to_vec());
            trace.push(format!("drive {drive} is lost"));
            machine.lose(drive);
            read_all(&mut machine, &trace)?;
            self.lose_all(&machine, &trace)?;
        }
        Ok(())
    }
}

/// Commands end in order until all that the array was doing is done, and everything is read.
fn read_all(machine: &mut Machine, trace: &[String]) -> Result<(), Broken> {
    let read = machine.verify_in_order().and_then(|()| is_good(machine));
    read.map_err(|how| broken(how, trace))
}

/// Whether nothing was answered that must not be, and nothing was given up: the array survives all that happens to it here.
fn is_good(machine: &mut Machine) -> Result<(), String> {
    machine.is_good()?;
    match machine.given_up {
        0 => Ok(()),
        sectors => Err(format!("{sectors} sectors were given up without need")),
    }
}

fn in_words(machine: &Machine, one: Move) -> String {
    match one {
        Move::End(at) => machine.in_words(at),
        Move::Write => "a client writes".into(),
        Move::Flush => "a client flushes".into(),
        Move::Lose(drive) => format!("drive {drive} is lost"),
        Move::Return(drive) => format!("drive {drive} is back"),
        Move::Replace(drive) => format!("a new drive is in the place of {drive}"),
        Move::Wait => "time goes on".into(),
    }
}

fn broken(how: String, trace: &[String]) -> Broken {
    Broken { how, trace: trace.to_vec() }
}

/// Names of new members are drawn from it: they are the same in every state with so many power cuts left.
fn rng(cuts: u8) -> Rng {
    Streams::new(1 + u64::from(cuts)).stream("search")
}
