//! A model of the membership and the log: all states of a small array, searched for one that loses data.
//!
//! The model is the specification of the log that the array is to have: one log in which each entry is either the contents of
//! stripes or a change of the membership. It has no code in common with today's journal but the layouts ([`spec::Layout`] asks
//! [`levelhead_array::Spec::survives`]). It decides whether a *rule* is needed, and whether the rules together are enough; it does
//! not show that the product follows them.
//!
//! # What is modelled
//!
//! An array has two to four drives, and one or two stripes of one codeword. Each drive has home locations behind a volatile cache,
//! and a ring of the journal, whose records become durable in order and at any pace. A write changes one data cell and the
//! redundancy (*journaled*: its records have the contents), or a whole codeword (*intent-logged*: its records have checksums, and
//! the contents go home at once). A drive fails while the array runs, or with a crash; it is re-added with its old contents, or
//! replaced and rebuilt; the replaced drive is plugged in again. The server crashes between any two steps, those of a recovery
//! included. A record may be unreadable in place of a failure.
//!
//! Each recovery is checked: every cell is decoded; it has the version that was acknowledged last, or a later one; and no version
//! comes back that an earlier recovery has served the absence of.
//!
//! ```text
//!   spec    layout, bound, rules      steps    what can happen next, and the check after each recovery
//!   state   drives, log, membership   recover  the decision, from what the drives show and nothing else
//!   commit  what is committed, what   search   breadth first, by hashes; the shortest trace to a violation
//!           is retired                step     names of steps and violations
//! ```
//!
//! # The rules
//!
//! An entry's *participants* are the drives that it reaches and that are in sync on its stripe. A *quorum* is a number of rings that
//! the array does not survive the loss of, together with the drives that have failed or are being rebuilt. The *epoch* of an entry
//! is the membership that it was made under.
//!
//! - S1. A journaled write is committed, and acknowledged, when the record of every participant is durable: on the participant's
//!   own ring, or handed off to a quorum of other rings.
//! - S2. Changes of the membership have one order. One is committed when a quorum under the new membership has its entry. Only
//!   failures are appended while an earlier change is not committed.
//! - S3. A write is acknowledged only when its epoch is committed, and a recovery counts an entry only if it found its epoch. The
//!   order of a ring sees to most of that. A record that was handed off lies on a ring that may not have the epoch.
//! - S4. A stripe has at most one entry that is not committed. An intent-logged write never shares a stripe with a journaled one that
//!   is not retired; it needs all drives in sync, and its intent on a quorum of rings first.
//! - S5. A home location is written when its entry is committed. No commit record is needed.
//! - S6. An entry is retired when each drive that it reaches has it, or a later one, durable at home, or a committed membership says
//!   that the drive is stale there.
//! - S7. A write names every drive that it reaches, failed ones too: that is how a membership knows what a drive has missed. A
//!   failure's entry names the stripes of all entries that are not retired and reach the drive.
//! - S8. A stripe is reported as rebuilt when its copy is flushed and no write came since. Earlier entries are void for that drive.
//! - S9. A ring proves something only if its drive is a member, by its identity, of the newest membership on any ring. A re-added
//!   drive gets a new identity.
//! - S10. Ring space is free below the retired mark that a durable record on the same ring has.
//! - S11. A recovery's decision is an entry of its own. It is committed before anything is written back or served, and retires nothing
//!   that is not at home.
//! - S12. That entry reaches every stripe of which an entry was seen, also of one that does not count because its epoch is nowhere.
//!
//! A recovery takes each stripe by itself: each symbol is that of the last entry that reaches it (`Rule::LastContents`), else what is
//! at home. Where too few are there, the last entry is left out, since it alone can be uncommitted (`Rule::LastMayBeLeftOut`). An
//! intent is decided by what is at home (`Rule::IntentUndecided`).
//!
//! # The tests
//!
//! Runs with all rules search all states within a bound, and assert how many there are: a changed number means a changed model. Each
//! rule has a *canary*, a run without it, that has to find a violation after a known number of states and steps. `cargo test -p
//! levelhead-array --test model -- --nocapture` prints the traces, one step a line.
//!
//! Some rules make no difference within bounds that a test can afford. They are kept for these reasons, and a test asserts that their
//! runs find nothing, so that the reason is looked at again when one does:
//!
//! - `ChangesInTurn`: there is no argument that it is needed beyond the bound, and none that it is not. All runs had it, so that
//!   nothing is known of longer ones without it.
//! - `RebuildingNotInQuorum`: a mirror of two has no third ring for which the rule would matter, and two failures in larger layouts
//!   with a rebuild between them are beyond the bound.
//! - `EpochFound`: an entry whose epoch was found nowhere was never acknowledged (S3), so that a recovery may count it or not. It has
//!   to decide for good, which S12 is about.
//! - `RecoveryNamesMissed`: a recovery marks every missing drive as stale on each stripe that it reaches, and no run here shows a
//!   stripe that only this rule marks.
//! - `RebuiltVoidsEarlier`, `MemberRenewed`: writes name failed drives, too, so that the last entry of a cell is never a stale one
//!   while a later one is visible. A stale one alone is visible only after two writes, two failures and a record handed off.
//! - `IntentUndecided`: a recovery here logs whole codewords, so that an interrupted one never leaves symbols that are neither old
//!   nor new. The rule is needed where only the computed cells are logged.
//!
//! # What is left out
//!
//! The other order of commits, the longest prefix of the whole log. Copies of a drive's image, and two halves of an array that went
//! on apart (two memberships of one epoch are to be refused). Torn records; the bad-sector list but for the codeword's own cells;
//! journals on drives of their own; codewords of more than one sector a drive; three or more data drives. A membership's write of its
//! label and of its snapshot is one step with its record.

mod commit;
mod recover;
mod search;
mod sets;
mod spec;
mod state;
mod step;
mod steps;

use std::env;

use search::{End, Outcome};
use spec::Part::{self, OldDrive, OnlineFailure, PresentAgain, ReAdd, Replacement, RingReuse};
use spec::{Bound, Layout, Model, Rule};

const RAID5: &str = "raid5:2+1";
const RAID6: &str = "raid6:2+2";
const MIRROR: &str = "raid1:2";

/// The most states that a test may see.
const LIMIT: usize = 3_000_000;

/// Number of rules of which no bound here shows that they are needed.
const BEYOND: usize = 7;

/// A run, but for the rule that it may leave out.
#[derive(Clone, Copy)]
struct Run {
    layout: &'static str,
    stripes: u8,
    bound: Bound,
    without: &'static [Part],
    has_unreadable_records: bool,
}

/// A run of one stripe with these writes, intents, failures, crashes and handoffs.
const fn run(layout: &'static str, bound: [u8; 5], without: &'static [Part]) -> Run {
    let [writes, intents, failures, crashes, handoffs] = bound;
    let bound = Bound { writes, intents, failures, crashes, handoffs };
    Run { layout, stripes: 1, bound, without, has_unreadable_records: false }
}

impl Run {
    const fn with_two_stripes(self) -> Self {
        Self { stripes: 2, ..self }
    }

    const fn with_unreadable_records(self) -> Self {
        Self { has_unreadable_records: true, ..self }
    }

    fn search(self, left_out: Option<Rule>, limit: usize) -> Outcome {
        let model = Model {
            layout: Layout::new(self.layout),
            stripes: self.stripes,
            bound: self.bound,
            without: self.without.to_vec(),
            left_out,
            has_unreadable_records: self.has_unreadable_records,
        };
        let outcome = model.search(limit);
        let Self { layout, stripes, bound, without, .. } = self;
        let rules = left_out.map_or("all rules".to_owned(), |rule| format!("without {rule:?}"));
        println!("{layout}, {stripes} stripes, {rules}, {bound:?}, without {without:?}:");
        println!("{} states, {:?}", outcome.states, outcome.end);
        outcome
    }

    /// All states are there, `states` of them, and none is a violation.
    fn finds_nothing(self, left_out: Option<Rule>, states: usize) {
        let outcome = self.search(left_out, LIMIT);
        assert!(matches!(outcome.end, End::All), "{left_out:?}: {:?}", outcome.end);
        assert_eq!(outcome.states, states, "{left_out:?}: the number of states has changed");
    }
}

/// Drives fail with crashes alone, and stay out.
const CRASHES_ONLY: &[Part] = &[OnlineFailure, ReAdd, Replacement];

#[test]
fn raid5_loses_nothing_in_two_crashes_with_a_failure() {
    let without = &[Replacement, OldDrive, RingReuse];
    run(RAID5, [1, 0, 1, 2, 0], without).finds_nothing(None, 1_796_312);
    run(RAID5, [0, 1, 1, 2, 0], &[OnlineFailure]).finds_nothing(None, 1_654_026);
}

#[test]
fn raid5_loses_nothing_with_a_record_handed_off() {
    let without = &[Replacement, OldDrive, RingReuse];
    run(RAID5, [1, 0, 1, 1, 1], without).finds_nothing(None, 783_417);
}

#[test]
fn two_stripes_lose_nothing() {
    let without = &[OnlineFailure, ReAdd, Replacement, RingReuse];
    run(RAID5, [2, 0, 1, 1, 0], without).with_two_stripes().finds_nothing(None, 43_837);
}

#[test]
fn mirror_loses_nothing_in_re_adds_and_replacements() {
    run(MIRROR, [2, 0, 1, 1, 0], &[]).finds_nothing(None, 1_696_518);
    run(MIRROR, [0, 1, 1, 1, 0], &[]).finds_nothing(None, 25_787);
}

#[test]
fn raid6_loses_nothing_in_two_failures() {
    let one_after_the_other = &[OnlineFailure, ReAdd, Replacement, PresentAgain, RingReuse];
    run(RAID6, [1, 0, 2, 1, 0], CRASHES_ONLY).finds_nothing(None, 8_203);
    run(RAID6, [1, 0, 1, 2, 0], CRASHES_ONLY).finds_nothing(None, 367_128);
    run(RAID6, [1, 0, 2, 2, 0], one_after_the_other).finds_nothing(None, 120_032);
}

#[test]
fn record_that_is_unreadable_costs_no_more_than_a_failure() {
    let without = &[OnlineFailure, ReAdd, Replacement, PresentAgain, RingReuse];
    let raid5 = run(RAID5, [2, 0, 1, 2, 0], CRASHES_ONLY);
    raid5.with_unreadable_records().finds_nothing(None, 761_141);
    let raid6 = run(RAID6, [2, 0, 2, 1, 0], without);
    raid6.with_unreadable_records().finds_nothing(None, 228_859);
}

/// Each rule that is found to be needed: the run, and the states and steps to the violation.
#[test]
fn canary_of_each_rule_is_found() {
    let fails = run(RAID5, [1, 0, 1, 1, 0], &[]);
    let crashes = run(RAID5, [1, 0, 1, 2, 0], &[]);
    let handoffs = run(RAID5, [1, 0, 1, 2, 1], &[]);
    let mirror_fails_twice = run(MIRROR, [1, 0, 2, 1, 0], &[OldDrive]);
    let two_stripes = run(MIRROR, [2, 0, 1, 2, 0], &[]).with_two_stripes();
    let two_writes = run(RAID5, [2, 0, 1, 2, 0], &[OnlineFailure]);
    let canaries = [
        (Rule::EveryRecord, fails, 55, 3),
        (Rule::HandoffQuorum, run(RAID5, [1, 0, 1, 1, 1], &[]), 964, 5),
        (Rule::FailureCommitted, handoffs, 2_407, 5),
        (Rule::MembershipQuorum, handoffs, 2_846, 5),
        (Rule::EpochCommitted, handoffs, 2_345, 5),
        (Rule::StripeLock, run(RAID5, [2, 0, 1, 1, 0], &[]), 3_562, 6),
        (Rule::IntentAlone, run(RAID5, [1, 1, 0, 1, 0], &[]), 171, 6),
        (Rule::IntentQuorum, run(RAID5, [0, 1, 1, 1, 0], &[]), 453, 5),
        (Rule::WriteBackAfterCommit, fails, 257, 4),
        (Rule::RetireAfterFlush, fails, 12_182, 8),
        (Rule::RetireAfterMissedCommitted, two_stripes, 1_348_290, 13),
        (Rule::FailureNamesUnretired, crashes, 65_717, 9),
        (Rule::WriteNamesMissed, mirror_fails_twice, 3_137, 8),
        (Rule::RebuiltAfterFlush, fails, 15_597, 8),
        (Rule::RebuiltAfterWrites, fails, 119_405, 11),
        (Rule::NewestMembership, fails, 997, 5),
        (Rule::MemberById, fails, 101_827, 11),
        (Rule::ReuseAfterRetiredDurable, two_writes, 545_480, 11),
        (Rule::RecoveryCommitted, crashes, 349, 4),
        (Rule::RecoveryRetiresNothing, crashes, 3_196, 6),
        (Rule::RecoverySupersedes, handoffs, 23_032, 7),
        (Rule::LastContents, run(RAID5, [2, 0, 0, 1, 0], &[]), 208, 7),
        (Rule::LastMayBeLeftOut, fails, 53, 3),
    ];
    assert_eq!(canaries.len() + BEYOND, Rule::IntentUndecided as usize + 1, "a rule has no canary");
    let mut wrong = Vec::new();
    for (rule, run, states, steps) in canaries {
        let outcome = run.search(Some(rule), LIMIT);
        match outcome.end {
            End::Found(trace) if (outcome.states, trace.steps.len()) == (states, steps) => {}
            end => wrong.push(format!(
                "{rule:?}, expected {states} states, {steps} steps: {} states,\n{end:?}",
                outcome.states
            )),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The rules of which no bound here shows that they are needed.
#[test]
fn canary_of_some_rules_is_beyond_the_bound() {
    let mirror = run(MIRROR, [1, 0, 1, 1, 0], &[]);
    let crashes = run(RAID5, [1, 0, 1, 2, 0], &[Replacement, OldDrive, RingReuse]);
    let handoffs = run(RAID5, [1, 0, 1, 1, 1], &[Replacement, OldDrive, RingReuse]);
    let intents = run(RAID5, [0, 1, 1, 2, 0], &[OnlineFailure, Replacement]);
    let canaries: [_; BEYOND] = [
        (Rule::ChangesInTurn, mirror, 194_100),
        (Rule::RebuildingNotInQuorum, mirror, 68_726),
        (Rule::RebuiltVoidsEarlier, mirror, 83_240),
        (Rule::MemberRenewed, mirror, 93_178),
        (Rule::EpochFound, handoffs, 784_313),
        (Rule::RecoveryNamesMissed, crashes, 1_796_312),
        (Rule::IntentUndecided, intents, 182_378),
    ];
    for (rule, run, states) in canaries {
        run.finds_nothing(Some(rule), states);
    }
}

/// A larger bound, from the environment: `MODEL_LAYOUT`, `MODEL_STRIPES`, `MODEL_BOUND` (writes, intents, failures, crashes and
/// handoffs, with commas), `MODEL_WITHOUT` (names of [`Part::NAMES`], with commas), `MODEL_UNREADABLE` (set: a record may be
/// unreadable), `MODEL_LIMIT` (millions of states). Without any: two writes, a failure and a crash, 11,428,903 states.
#[test]
#[ignore = "half a minute and gigabytes of memory"]
fn soak_model() {
    let text = |name: &str, default: &str| env::var(name).unwrap_or_else(|_| default.to_owned());
    let number = |name: &str, text: &str| -> u8 {
        text.parse().unwrap_or_else(|_| panic!("{name}: expected a number below 256, got '{text}'"))
    };
    let bound: Vec<u8> = text("MODEL_BOUND", "2,0,1,1,0")
        .split(',')
        .map(|part| number("MODEL_BOUND", part))
        .collect();
    let &[writes, intents, failures, crashes, handoffs] = bound.as_slice() else {
        panic!("MODEL_BOUND: expected five numbers, got {bound:?}");
    };
    let without = text("MODEL_WITHOUT", "ring-reuse,old-drive");
    let part = |name: &str| {
        let known = Part::NAMES.iter().find(|(known, _)| *known == name);
        known
            .unwrap_or_else(|| {
                panic!("MODEL_WITHOUT: expected one of {:?}, got '{name}'", Part::NAMES)
            })
            .1
    };
    let names = without.split(',').filter(|name| !name.is_empty());
    let model = Model {
        layout: Layout::new(&text("MODEL_LAYOUT", RAID5)),
        stripes: number("MODEL_STRIPES", &text("MODEL_STRIPES", "1")),
        bound: Bound { writes, intents, failures, crashes, handoffs },
        without: names.map(part).collect(),
        left_out: None,
        has_unreadable_records: env::var("MODEL_UNREADABLE").is_ok(),
    };
    assert!((1..=2).contains(&model.stripes), "MODEL_STRIPES: expected 1 or 2");
    let limit = usize::from(number("MODEL_LIMIT", &text("MODEL_LIMIT", "14"))) * 1_000_000;
    let outcome = model.search(limit);
    println!("{} states, {:?}", outcome.states, outcome.end);
    assert!(!matches!(outcome.end, End::Found(_)), "{:?}", outcome.end);
}
