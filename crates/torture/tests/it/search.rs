//! Searches that end soon, and rules left out that they notice.

use std::time::Duration;

use levelhead_array::journal::rules::{Rule, Rules};
use levelhead_torture::search::{Bound, Limits, Outcome, search};

/// A limit that is never reached where nothing is wrong.
const HOUR: Duration = Duration::from_secs(3_600);

fn bound(name: &str) -> Bound {
    let (_, bound) = Bound::ALL.into_iter().find(|(known, _)| *known == name).unwrap();
    bound
}

/// The numbers are those that were seen, and a tenth beside them: a search that sees fewer states does not search any more, and
/// one that sees more tells states apart that are the same.
#[test]
fn no_order_and_no_power_cut_of_a_small_array_breaks_the_promise() {
    let seen = [
        ("raid1-twice", 322, 304),
        ("raid1", 379, 551),
        ("metadata-lost", 411, 282),
        ("raid1-sums", 159, 42),
        ("raid1-sums-announced", 173, 71),
    ];
    for (name, states, images) in seen {
        let outcome = outcome(bound(name), u64::MAX, 2);
        println!("{name}: {outcome}");
        assert_eq!(outcome.broken, None, "{name}");
        assert!(outcome.is_exhausted, "{name}: {outcome}");
        let is_near = |number: u64, of: u64| number.abs_diff(of) <= of / 10;
        let is_near = is_near(outcome.states, states) && is_near(outcome.images, images);
        assert!(is_near, "{name}: {outcome}");
    }
}

/// What a search comes to that sees at most so many states.
fn outcome(bound: Bound, states: u64, workers: usize) -> Outcome {
    search(bound, Limits { time: HOUR, states, workers }, &|_| ())
}

#[test]
fn search_that_is_cut_short_does_not_say_that_it_has_seen_all() {
    let outcome = outcome(bound("raid1-twice"), 100, 1);
    assert_eq!((outcome.is_exhausted, outcome.broken), (false, None));
}

#[test]
fn search_notices_rules_that_are_left_out() {
    for rule in [Rule::Records, Rule::Flush, Rule::Order] {
        let left_out = Bound { rules: Rules::without(rule), ..bound("raid1-twice") };
        let Outcome { broken, states, .. } = outcome(left_out, 200, 1);
        let broken = broken.unwrap_or_else(|| panic!("{rule:?} was not noticed"));
        println!("{rule:?}: {states} states, {} steps: {}", broken.trace.len(), broken.how);
        assert!(broken.how.starts_with("sector 0 holds"), "{rule:?}: {}", broken.how);
    }
}

#[test]
fn same_states_are_seen_by_any_number_of_workers() {
    let [one, two] = [1, 2].map(|workers| outcome(bound("raid1-twice"), u64::MAX, workers));
    assert_eq!(one, two);
}
