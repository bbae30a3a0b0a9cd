//! What each rule for checksums finds of one fault of one drive: a model without bytes and without time.
//!
//! It leaves out: crashes, restarts, the journal and the lists, faults of two drives, and a drive that says that it failed.

mod drive;
mod model;

use levelhead_stats::{Rng, Streams};
use levelhead_units::Ratio;

use self::drive::Fault;
use self::model::{Array, Outcome};
use super::plan::{Bars, Cell, Drawing, Head, Measured, Row, StudyPlan, Unit, Whose, sum};
use super::{Ask, Study, Takes, interval};

pub(super) const FAULTS: Study = Study {
    name: "array.faults",
    title: "Checksums: which faults they find",
    source: "ours",
    says: "Share of runs with one fault of one drive in which a client was given wrong data before a scrub, in which it is \
           given wrong data after it (and of a stripe that the array did not report), and in which the array reported a \
           failed read, or a stripe that does not match and cannot be repaired: without checksums and under six rules for \
           them.",
    bed: "a model of 16 stripes of one sector a drive, a tag sector for four; 80 steps: 50 % reads, 40 % writes of one \
          sector, 10 % writes of four stripes; before each step the drives are idle with probability 0.1 and tag sectors \
          leave memory with probability 0.3; the fault comes before one of the first 60 steps; then a scrub; no crash, no \
          restart",
    seeds_quick: 2,
    seeds_full: 10,
    takes: Takes::Nothing,
    plan: |ask| Ok(plan(ask)),
};

/// Stripes of the array, and how many of them share a tag sector on each drive.
const STRIPES: usize = 16;
const GROUP: usize = 4;
const GROUPS: usize = STRIPES / GROUP;

/// Steps of a run, and those before which the fault may come.
const STEPS: u64 = 80;
const FAULTY_STEPS: u64 = 60;

/// Where checksums are and when they are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    /// There are none.
    None,
    /// In the data's command, bound to its place.
    Inline,
    /// In tag sectors of the same drive, each written right behind its data.
    Beside,
    /// With whatever points to the data: on several drives, and always verified itself.
    Parent,
    /// In tag sectors of the same drive, written when the drive is idle.
    Deferred,
    /// The same, but whole groups have their tag sector in the data's command; memory keeps it until it was read back.
    Carried,
    /// As [`Rule::Deferred`], and the redundant drives keep a number of the last write of each data sector.
    Stamps,
}

const RULES: [(&str, Rule); 7] = [
    ("none", Rule::None),
    ("dm-integrity, inline", Rule::Inline),
    ("dm-integrity, journal", Rule::Beside),
    ("zfs", Rule::Parent),
    ("levelhead, tags always apart", Rule::Deferred),
    ("levelhead", Rule::Carried),
    ("levelhead, stamps (not built)", Rule::Stamps),
];

impl Rule {
    /// Whether checksums lie apart from the data.
    fn has_tags(self) -> bool {
        !matches!(self, Self::None | Self::Inline)
    }

    /// Sectors of a drive.
    fn sectors(self) -> usize {
        STRIPES + if self.has_tags() { GROUPS } else { 0 }
    }

    /// Where the sector of a stripe lies on its drive.
    fn position(self, stripe: usize) -> usize {
        let tags_before = (stripe + GROUP / 2) / GROUP;
        stripe + if self.has_tags() { tags_before } else { 0 }
    }

    /// Where the tag sector of a group lies: in its middle.
    fn tag_position(self, group: usize) -> usize {
        group * (GROUP + 1) + GROUP / 2
    }
}

/// Symbols of a stripe. With one data symbol the others are copies of it.
#[derive(Clone, Copy, Debug)]
struct Layout {
    data: usize,
    symbols: usize,
}

const LAYOUTS: [(&str, Layout); 3] = [
    ("raid1:2", Layout { data: 1, symbols: 2 }),
    ("raid5:2+1", Layout { data: 2, symbols: 3 }),
    ("raid6:2+2", Layout { data: 2, symbols: 4 }),
];

impl Layout {
    /// The drive of a symbol. They rotate from group to group.
    fn drive(self, stripe: usize, symbol: usize) -> usize {
        (symbol + stripe / GROUP) % self.symbols
    }

    /// How many symbols clients may be given: the data, or all copies.
    fn read(self) -> usize {
        if self.data == 1 { self.symbols } else { self.data }
    }
}

const FAULTS_OF_DRIVES: [(&str, Fault); 5] = [
    ("rot", Fault::Rot),
    ("lost write", Fault::Lost),
    ("torn write", Fault::Torn),
    ("misdirected write", Fault::Misdirected),
    ("2 to 7 lost writes", Fault::Burst),
];

/// A value of a cell: the name of its row, and in which runs it is counted.
type Counted = (&'static str, fn(&Outcome) -> bool);

const COUNTED: [Counted; 4] = [
    ("wrong before the scrub", |outcome| outcome.is_wrong),
    ("wrong after it", |outcome| outcome.is_left),
    ("wrong after it, not reported", |outcome| outcome.is_unreported),
    ("reported", |outcome| outcome.is_reported),
];

const RUNS: &str = "runs";

/// A layout, a fault and a rule.
#[derive(Clone, Copy, Debug)]
struct Case {
    layout: (&'static str, Layout),
    fault: (&'static str, Fault),
    rule: (&'static str, Rule),
}

impl Case {
    fn name(&self) -> String {
        format!("{}, {}, {}", self.layout.0, self.fault.0, self.rule.0)
    }

    /// What `runs` runs have shown. Rules meet the same clients.
    fn measure(&self, seed: u64, runs: u32) -> Measured {
        let clients =
            Streams::new(seed).stream(&format!("faults/{}/{}", self.layout.0, self.fault.0));
        let mut counts = [0_u32; COUNTED.len()];
        let mut rng = clients;
        for _ in 0..runs {
            let outcome = self.run(&Streams::new(rng.bits()));
            for (count, (_, is_counted)) in counts.iter_mut().zip(COUNTED) {
                *count += u32::from(is_counted(&outcome));
            }
        }
        let counts = counts.into_iter().zip(COUNTED);
        counts.fold(Measured::default().with(RUNS, runs.into()), |all, (count, (name, _))| {
            all.with(name, count.into())
        })
    }

    fn run(&self, streams: &Streams) -> Outcome {
        let [mut clients, mut memory, mut faults] =
            ["clients", "memory", "fault"].map(|name| streams.stream(name));
        let layout = self.layout.1;
        let mut array = Array::new(layout, self.rule.1, &mut clients);
        let faulty_step = faults.below(FAULTY_STEPS);
        let mut is_wrong = false;
        for step in 0..STEPS {
            if is_once_in(&mut memory, 0.1) {
                array.idle();
            }
            if is_once_in(&mut memory, 0.3) {
                array.evict();
            }
            if step == faulty_step {
                array.arm(self.fault.1, faults.clone());
            }
            let stripe = clients.below(STRIPES as u64) as usize;
            match clients.unit() {
                ..0.5 => {
                    is_wrong |= array.read(stripe, clients.below(layout.read() as u64) as usize);
                }
                0.5..0.9 => {
                    let data = clients.below(layout.data as u64) as usize;
                    array.write(stripe, data, model::content(&mut clients));
                }
                _ => {
                    let first = stripe / GROUP * GROUP;
                    array.write_all(first..first + GROUP, |_| model::content(&mut clients));
                }
            }
        }
        array.scrub();
        array.outcome(is_wrong)
    }
}

fn is_once_in(rng: &mut Rng, share: f64) -> bool {
    rng.chance(Ratio::new(share).unwrap_or(Ratio::ZERO))
}

fn plan(ask: &Ask) -> StudyPlan {
    let mut plan = StudyPlan::default();
    let runs = ask.pick(50, 400);
    for layout in LAYOUTS {
        for fault in FAULTS_OF_DRIVES {
            for rule in RULES {
                let case = Case { layout, fault, rule };
                let name = case.name();
                plan.cells.push(Cell::new(&name, move |seed| Ok(case.measure(seed, runs))));
                for (counted, _) in COUNTED {
                    let (head, cells) = (Head::new(&name, counted), vec![name.clone()]);
                    plan.rows.push(Row::together(head, Unit::Percent, move |seeds| {
                        let [count, of] = [counted, RUNS].map(|value| sum(seeds, &cells, value));
                        interval::of_count(count, of).map(|end| 100.0 * end)
                    }));
                }
            }
        }
        plan.drawings.extend([0, 1].map(|counted| drawing(layout, COUNTED[counted].0)));
    }
    plan.remarks.push(REMARK.to_owned());
    plan
}

const REMARK: &str = "Rows of dm-integrity and zfs are models of where these keep checksums, over the same array and the \
                      same scrub: not measurements of them. What is not built is said to be.";

/// A figure of one layout: a bar for each rule.
fn drawing(layout: (&'static str, Layout), counted: &'static str) -> Drawing {
    let bars = RULES.map(|rule| {
        let row = |fault| (Case { layout, fault, rule }.name(), counted.to_owned());
        let rows = FAULTS_OF_DRIVES.map(row).to_vec();
        Bars { name: rule.0.to_owned(), rows, whose: Whose::Ours }
    });
    Drawing::Bars {
        title: format!("{}: {counted}", layout.0),
        axis: "% of runs".to_owned(),
        is_log: false,
        groups: FAULTS_OF_DRIVES.map(|fault| fault.0.to_owned()).to_vec(),
        bars: bars.to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs of a case in which clients were given wrong data before the scrub or after it.
    fn wrong(layout: (&'static str, Layout), fault: (&'static str, Fault), rule: Rule) -> [u32; 2] {
        let case = Case { layout, fault, rule: ("", rule) };
        let measured = case.measure(7, 200);
        [0, 1].map(|counted| measured.values[COUNTED[counted].0] as u32)
    }

    #[test]
    fn without_checksums_every_fault_gives_wrong_data() {
        for layout in LAYOUTS {
            for fault in FAULTS_OF_DRIVES {
                let [before, _] = wrong(layout, fault, Rule::None);
                assert!(before > 0, "{layout:?} {fault:?}: {before} of 200, seed 7");
            }
        }
    }

    #[test]
    fn one_fault_is_found_where_the_checksum_lies_apart() {
        for layout in LAYOUTS {
            for fault in &FAULTS_OF_DRIVES[..4] {
                for rule in
                    [Rule::Beside, Rule::Parent, Rule::Deferred, Rule::Carried, Rule::Stamps]
                {
                    let found = wrong(layout, *fault, rule);
                    assert!(found == [0; 2], "{layout:?} {fault:?} {rule:?}: {found:?}, seed 7");
                }
            }
        }
    }

    #[test]
    fn checksums_in_the_data_s_command_find_rot_and_no_lost_write() {
        for layout in LAYOUTS {
            let [rot, lost, _, misdirected, _] =
                FAULTS_OF_DRIVES.map(|fault| wrong(layout, fault, Rule::Inline));
            assert!(rot == [0; 2], "{layout:?}: {rot:?}, seed 7");
            assert!(lost[0] > 0 && misdirected[0] > 0, "{layout:?}: {lost:?} {misdirected:?}");
        }
    }

    #[test]
    fn a_window_of_lost_writes_gives_wrong_data_and_stamps_leave_none_after_a_scrub() {
        for layout in LAYOUTS {
            let burst = FAULTS_OF_DRIVES[4];
            let [before, after] = wrong(layout, burst, Rule::Deferred);
            assert!(before > 0 && after > 0, "{layout:?}: {before} and {after} of 200, seed 7");
            let [before, after] = wrong(layout, burst, Rule::Stamps);
            assert!(before > 0 && after == 0, "{layout:?}: {before} and {after} of 200, seed 7");
            assert!(wrong(layout, burst, Rule::Parent) == [0; 2], "{layout:?}");
        }
    }

    #[test]
    fn sectors_and_tag_sectors_lie_beside_each_other() {
        for (_, rule) in RULES {
            let sectors = (0..STRIPES).map(|stripe| rule.position(stripe));
            let tags =
                (0..GROUPS).filter(|_| rule.has_tags()).map(|group| rule.tag_position(group));
            let mut all: Vec<usize> = sectors.chain(tags).collect();
            all.sort_unstable();
            assert_eq!(all, (0..rule.sectors()).collect::<Vec<_>>(), "{rule:?}");
        }
    }
}
