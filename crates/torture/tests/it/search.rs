//! Searches that end soon, and rules left out that they notice.

use std::time::Duration;

use levelhead_array::journal::rules::{Rule, Rules};
use levelhead_torture::search::{Bound, Outcome, search};

/// A limit that is never reached where nothing is wrong.
const HOUR: Duration = Duration::from_secs(3_600);

fn bound(name: &str) -> Bound {
    let (_, bound) = Bound::ALL.into_iter().find(|(known, _)| *known == name).unwrap();
    bound
}

/// The least numbers are a tenth below those that were seen: a search that sees fewer does not search any more.
#[test]
fn no_order_and_no_power_cut_of_a_small_mirror_breaks_the_promise() {
    let outcome = search(bound("raid1-twice"), HOUR, u64::MAX, 2);
    println!("{outcome}");
    assert_eq!(outcome.broken, None);
    assert!(outcome.is_exhausted, "{outcome}");
    assert!(outcome.states >= 710 && outcome.images >= 520, "{outcome}");
}

#[test]
fn search_that_is_cut_short_does_not_say_that_it_has_seen_all() {
    let outcome = search(bound("raid1-twice"), HOUR, 100, 1);
    assert_eq!((outcome.is_exhausted, outcome.broken), (false, None));
}

#[test]
fn search_notices_rules_that_are_left_out() {
    for rule in [Rule::Records, Rule::Flush, Rule::Order] {
        let left_out = Bound { rules: Rules::without(rule), ..bound("raid1-twice") };
        let Outcome { broken, states, .. } = search(left_out, HOUR, 200, 1);
        let broken = broken.unwrap_or_else(|| panic!("{rule:?} was not noticed"));
        println!("{rule:?}: {states} states, {} steps: {}", broken.trace.len(), broken.how);
        assert!(broken.how.starts_with("sector 0 holds"), "{rule:?}: {}", broken.how);
    }
}

#[test]
fn same_states_are_seen_by_any_number_of_workers() {
    let [one, two] = [1, 2].map(|workers| search(bound("raid1-twice"), HOUR, u64::MAX, workers));
    assert_eq!(one, two);
}
