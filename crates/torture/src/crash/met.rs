//! What a swarm has met: how often each transition of each state machine of the array, as it is seen from outside, and each
//! fault in each phase.

use std::fmt;

use levelhead_array::{Array, Resync, ScrubState};
use levelhead_units::DriveIdx;

/// State machines, each with its states. The first is there for every drive.
const MACHINES: [(&str, [&str; 4]); 6] = [
    ("drive", ["present", "aside", "away", "filling"]),
    ("metadata", ["shut", "open", "", ""]),
    ("journal", ["", "recovering", "at rest", "at work"]),
    ("resync", ["idle", "running", "stuck", "done"]),
    ("scrub", ["idle", "running", "stopped", "done"]),
    ("copy", ["none", "copying", "", ""]),
];

/// The first of the machines that there is one of.
const METADATA: usize = 1;

/// A fault, or another thing that comes from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The power fails.
    Cut,
    /// A drive is lost.
    Loss,
    /// A lost drive is back.
    Return,
    /// A new drive has the place of a lost one.
    Replacement,
    /// A drive is to be copied to a new one.
    Copy,
    /// A drive is to sit out, or is admitted.
    Aside,
    /// Something is wrong with a drive for a time.
    Trouble,
    /// The server stands still.
    Standstill,
    /// A connection breaks.
    Disconnect,
    /// A write of an earlier connection or server lands.
    Late,
    /// A drive goes back to an earlier state of its own.
    Older,
    /// A scrub is started or stopped.
    Scrub,
    /// Rebuilds are paused, or go on.
    Pause,
    /// A resync is asked for.
    Resync,
    /// The array is to stop.
    Stop,
}

impl Fault {
    const NAMES: [&str; 15] = [
        "cut",
        "loss",
        "return",
        "replacement",
        "copy",
        "aside",
        "trouble",
        "standstill",
        "disconnect",
        "late",
        "older",
        "scrub",
        "pause",
        "resync",
        "stop",
    ];
}

/// Phases, several of which an array may be in.
const PHASES: [&str; 11] = [
    "shut",
    "open",
    "recovering",
    "at work",
    "degraded",
    "filling",
    "aside",
    "resyncing",
    "scrubbing",
    "copying",
    "without a journal",
];

/// The most drives of an array of a swarm.
const DRIVES_MAX: usize = 8;

/// See the module.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Met {
    /// From one state to another, of each machine.
    transitions: [[[u64; 4]; 4]; MACHINES.len()],
    pairs: [[u64; Fault::NAMES.len()]; PHASES.len()],
}

impl Met {
    /// A fault comes in these phases.
    pub(crate) fn note(&mut self, fault: Fault, array: &Array) {
        let states = States::of(array);
        for (pairs, is_in) in self.pairs.iter_mut().zip(states.phases()) {
            pairs[fault as usize] += u64::from(is_in);
        }
    }

    /// One more.
    pub fn add(&mut self, other: &Self) {
        let transitions = self.transitions.as_flattened_mut().as_flattened_mut().iter_mut();
        let others = other.transitions.as_flattened().as_flattened();
        transitions.zip(others).for_each(|(count, more)| *count += more);
        let pairs = self.pairs.as_flattened_mut().iter_mut();
        pairs.zip(other.pairs.as_flattened()).for_each(|(count, more)| *count += more);
    }

    /// What was never met: faults in phases, and transitions.
    pub fn never(&self) -> [Vec<String>; 2] {
        let pairs = self.pairs().filter(|&(.., count)| count == 0);
        let transitions = self.transitions().filter(|&(.., count)| count == 0);
        [
            pairs.map(|(phase, fault, _)| format!("{fault} while {phase}")).collect(),
            transitions.map(|(of, from, to, _)| format!("{of} {from} > {to}")).collect(),
        ]
    }

    /// Pairs of a phase and a fault that were met, and how often.
    pub fn pairs(&self) -> impl Iterator<Item = (&'static str, &'static str, u64)> {
        let of =
            |phase: usize| move |fault: usize| (PHASES[phase], Fault::NAMES[fault], phase, fault);
        let all = (0..PHASES.len()).flat_map(move |phase| (0..Fault::NAMES.len()).map(of(phase)));
        all.map(|(phase, fault, at, of)| (phase, fault, self.pairs[at][of]))
    }

    /// Transitions of each machine, and how often they were met.
    pub fn transitions(
        &self,
    ) -> impl Iterator<Item = (&'static str, &'static str, &'static str, u64)> {
        let states = |machine: usize| {
            (0..16).map(move |both| (machine, both / 4, both % 4)).filter(move |&(_, from, to)| {
                let [from_name, to_name] = [from, to].map(|state| MACHINES[machine].1[state]);
                from != to && !from_name.is_empty() && !to_name.is_empty()
            })
        };
        (0..MACHINES.len()).flat_map(states).map(|(machine, from, to)| {
            let (name, states) = MACHINES[machine];
            (name, states[from], states[to], self.transitions[machine][from][to])
        })
    }
}

/// How many of all.
impl fmt::Debug for Met {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pairs = self.pairs().filter(|&(.., count)| count > 0).count();
        let transitions = self.transitions().filter(|&(.., count)| count > 0).count();
        write!(f, "{pairs} pairs and {transitions} transitions")
    }
}

/// Two tables, and what was never met.
impl fmt::Display for Met {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>18}", "")?;
        Fault::NAMES.iter().try_for_each(|fault| write!(f, " {fault:>11}"))?;
        for (phase, pairs) in PHASES.iter().zip(&self.pairs) {
            write!(f, "\n{phase:>18}")?;
            pairs.iter().try_for_each(|count| write!(f, " {count:>11}"))?;
        }
        let met = self.transitions().filter(|&(.., count)| count > 0);
        let met: Vec<String> =
            met.map(|(of, from, to, count)| format!("{of} {from} > {to} {count}")).collect();
        write!(f, "\ntransitions: {}", met.join(", "))
    }
}

/// The state of each machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct States {
    drives: [u8; DRIVES_MAX],
    others: [u8; MACHINES.len() - METADATA],
}

impl States {
    fn of(array: &Array) -> Self {
        let (aside, away, filling) =
            (array.sat_out(), array.away(), array.lost().without(array.away()));
        let mut drives = [0; DRIVES_MAX];
        for (at, state) in drives.iter_mut().enumerate() {
            let drive = DriveIdx::from_usize(at);
            *state = match () {
                () if away.contains(drive) => 2,
                () if filling.contains(drive) => 3,
                () if aside.contains(drive) => 1,
                () => 0,
            };
        }
        let metadata = u8::from(array.is_open());
        let journal = array.journal_status().map_or(0, |status| match () {
            () if status.is_recovering => 1,
            () if status.open == 0 => 2,
            () => 3,
        });
        let resync = match array.resync() {
            _ if array.synced() == array.layout().stripes() => 3,
            Resync::Idle => 0,
            Resync::Running => 1,
            Resync::Stuck => 2,
        };
        let scrub = match array.scrub().state {
            ScrubState::Idle => 0,
            ScrubState::Running => 1,
            ScrubState::Stopped => 2,
            ScrubState::Done => 3,
        };
        let copy = u8::from(array.copy().is_some());
        Self { drives, others: [metadata, journal, resync, scrub, copy] }
    }

    fn phases(&self) -> [bool; PHASES.len()] {
        let Self { drives, others: [metadata, journal, resync, scrub, copy] } = self;
        let has = |state: u8| drives.contains(&state);
        [
            *metadata == 0,
            *metadata > 0,
            *journal == 1,
            *journal == 3,
            has(2) || has(3),
            has(3),
            has(1),
            *resync == 1,
            *scrub == 1,
            *copy == 1,
            *journal == 0,
        ]
    }
}

/// Notes the transitions of one array, from one moment to the next.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Watch {
    last: Option<States>,
}

impl Watch {
    pub(crate) fn look(&mut self, array: &Array, met: &mut Met) {
        let now = States::of(array);
        let Some(last) = self.last.replace(now).filter(|last| *last != now) else { return };
        let mut note = |machine: usize, from: u8, to: u8| {
            met.transitions[machine][usize::from(from)][usize::from(to)] += u64::from(from != to);
        };
        last.drives.iter().zip(&now.drives).for_each(|(&from, &to)| note(0, from, to));
        for (at, (&from, &to)) in last.others.iter().zip(&now.others).enumerate() {
            note(METADATA + at, from, to);
        }
    }
}
