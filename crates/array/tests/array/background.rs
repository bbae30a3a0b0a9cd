//! The array's own work beside its clients: what it takes, and when it begins by itself.

use levelhead_array::{Budget, Policy, Settings};
use levelhead_block::Command;
use levelhead_units::{DriveSet, Nanos, Sectors};

use crate::runtime::{Runtime, extent, settings};

const STRIPES: u64 = 40;

const BUDGET: Budget = Budget {
    step: Sectors::new(4),
    memory: Sectors::new(64),
    pause: Nanos::from_millis(250),
    mark: Nanos::from_secs(30),
};

/// An array of single-sector chunks of which no redundancy is valid: a step is four stripes.
fn unsynced(background: Option<Budget>) -> Runtime {
    let spec = "raid5:3+1,chunk=4KiB".parse().unwrap();
    let plain = settings(spec, STRIPES, Policy::Normal, DriveSet::EMPTY);
    Runtime::new(&Settings { synced: 0, background, ..plain }, 1)
}

#[test]
fn idle_array_makes_its_redundancy_valid_by_itself_and_only_where_it_is_to() {
    let mut run = unsynced(Some(BUDGET));
    assert_eq!(run.array.deadline(), Some(run.now()), "no request is needed first");
    run.wait(Nanos::ZERO);
    run.run_until_quiet();
    assert_eq!(run.array.synced(), STRIPES);
    assert_eq!(run.written, STRIPES, "one redundant chunk a stripe");
    let mut run = unsynced(None);
    run.wait(Nanos::from_secs(9));
    assert!(run.inside.is_empty() && run.array.synced() == 0);
}

/// B2. How far it is, every 250 ms, while a client waits for a read that ends only then.
#[test]
fn resync_pauses_between_its_steps_while_a_client_waits() {
    let mut run = unsynced(Some(BUDGET));
    run.read(1, extent(STRIPES * 3 - 1, 1)); // the stripes of the last step
    let own = |run: &Runtime| {
        let is_own = |origin: u64| origin > u64::MAX / 2;
        run.inside.iter().position(|submit| is_own(submit.origin))
    };
    for step in 1..=5 {
        while let Some(at) = own(&run) {
            run.finish(at);
        }
        assert_eq!(run.array.synced(), step * 4, "one step each pause");
        run.wait(Nanos::from_millis(240));
        assert_eq!(own(&run), None, "it holds still");
        run.wait(Nanos::from_millis(10));
    }
    run.run_until_quiet();
    assert!(run.take(1).unwrap().0.outcome.is_good());
    run.wait(Nanos::from_millis(250));
    run.run_until_quiet();
    assert_eq!(run.array.synced(), STRIPES, "no request is unanswered");
}

#[test]
fn array_that_is_to_end_soon_begins_no_step() {
    let mut run = unsynced(Some(BUDGET));
    run.wait(Nanos::ZERO);
    assert!(run.inside.iter().all(|submit| matches!(submit.command, Command::Read { .. })));
    run.stop();
    run.run_until_quiet();
    assert_eq!(run.array.synced(), 4, "the step under way ends");
    assert!(run.ending.is_some());
}
