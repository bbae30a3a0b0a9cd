use super::*;
use crate::drives::detect::AGE_MAX;

/// Of drives that are all there.
fn started(text: &str, practice: Practice) -> Standings {
    Standings::new(text.parse().unwrap(), DriveSet::EMPTY, practice)
}

/// Feeds every drive `rounds` times, 20 ms apart; drive `at` takes `slow` ms, the others 8.
fn feed(
    standings: &mut Standings,
    now: &mut Instant,
    rounds: u32,
    slow: &[(usize, u64)],
) -> Vec<DriveEvent> {
    let mut events = Vec::new();
    for _ in 0..rounds {
        *now = *now + Nanos::from_millis(20);
        for at in 0..standings.records.len() {
            let own = slow.iter().find(|(drive, _)| *drive == at).map_or(8, |(_, ms)| *ms);
            let drive = DriveIdx::from_usize(at);
            let is_probe = standings.sat_out().contains(drive);
            events.extend(standings.note_read(*now, drive, Nanos::from_millis(own), is_probe));
        }
    }
    events
}

fn kinds(events: &[DriveEvent]) -> Vec<(u8, EventKind)> {
    events.iter().map(|event| (event.drive.as_usize() as u8, event.kind)).collect()
}

#[test]
fn slow_drive_sits_out_with_the_numbers_and_comes_back_by_probes_after_its_term() {
    let (mut standings, mut now) = (started("eraid:5+1", Practice::SitOut), Instant::ZERO);
    assert!(feed(&mut standings, &mut now, 100, &[(2, 20)]).is_empty(), "2.5 times is not slow");
    let events = feed(&mut standings, &mut now, 100, &[(2, 80)]);
    assert_eq!(kinds(&events), [(2, EventKind::SatOut)]);
    assert_eq!(events[0].figures.median, Nanos::from_millis(80));
    assert_eq!(events[0].figures.cohort_median, Nanos::from_millis(8));
    assert_eq!(standings.sat_out().len(), 1);
    assert!(standings.probe_at().is_some());
    assert!(feed(&mut standings, &mut now, 300, &[(2, 80)]).is_empty(), "still slow");
    let events = feed(&mut standings, &mut now, 300, &[]);
    assert_eq!(kinds(&events), [(2, EventKind::Admitted)]);
    assert!(standings.sat_out().is_empty() && standings.probe_at().is_none());
}

#[test]
fn no_more_drives_sit_out_than_the_layout_can_lose() {
    let (mut standings, mut now) = (started("eraid:6+2", Practice::SitOut), Instant::ZERO);
    let events = feed(&mut standings, &mut now, 100, &[(1, 80), (3, 90), (5, 70)]);
    assert_eq!(
        kinds(&events),
        [(1, EventKind::SatOut), (3, EventKind::SatOut), (5, EventKind::Slow)]
    );
    assert_eq!(standings.sit_out(now, DriveIdx::new(0)), Err(Refusal::Needed { spare: 2 }));
    let event = standings.handle_lost(now, DriveIdx::new(7)).remove(0);
    assert_eq!(event.kind, EventKind::AdmittedInNeed);
    assert_eq!(standings.sat_out().len(), 1);
}

#[test]
fn what_was_sat_out_by_hand_comes_back_by_hand_alone() {
    let (mut standings, mut now) = (started("eraid:3+1", Practice::SitOut), Instant::ZERO);
    let drive = DriveIdx::new(3);
    assert_eq!(standings.admit(now, drive), Err(Refusal::Already));
    assert_eq!(standings.sit_out(now, drive).unwrap().kind, EventKind::SatOutByHand);
    assert_eq!(standings.sit_out(now, drive), Err(Refusal::Already));
    assert!(feed(&mut standings, &mut now, 2_000, &[]).is_empty());
    assert_eq!(standings.admit(now, drive).unwrap().kind, EventKind::AdmittedByHand);
}

#[test]
fn a_policy_that_does_without_no_drive_is_told_once() {
    let (mut standings, mut now) = (started("eraid:5+1", Practice::Name), Instant::ZERO);
    let events = feed(&mut standings, &mut now, 500, &[(4, 80)]);
    assert_eq!(kinds(&events), [(4, EventKind::Slow)]);
    assert!(standings.sat_out().is_empty());
}

#[test]
fn a_relapse_doubles_the_term() {
    let (mut standings, mut now) = (started("eraid:5+1", Practice::SitOut), Instant::ZERO);
    let mut terms = Vec::new();
    for _ in 0..3 {
        feed(&mut standings, &mut now, 100, &[(0, 80)]);
        terms.push(standings.records[0].term);
        feed(&mut standings, &mut now, 1_500, &[]);
    }
    assert_eq!(terms, [TERM, Nanos::from_secs(10), Nanos::from_secs(20)]);
}

#[test]
fn a_drive_that_answers_seldom_is_found_all_the_same() {
    let (mut standings, mut now) = (started("eraid:5+1", Practice::SitOut), Instant::ZERO);
    let mut events = Vec::new();
    for _ in 0..40 {
        feed(&mut standings, &mut now, 35, &[(0, 8)]);
        let all = standings.note_read(now, DriveIdx::new(0), Nanos::from_millis(700), false);
        events.extend(all);
    }
    assert!(events.is_empty(), "one slow command in 36 is not a slow drive");
    let (mut standings, mut events) = (started("eraid:5+1", Practice::SitOut), Vec::new());
    for round in 0..2_000 {
        now = now + Nanos::from_millis(20);
        for at in 1..6 {
            let drive = DriveIdx::from_usize(at);
            events.extend(standings.note_read(now, drive, Nanos::from_millis(8), false));
        }
        if round % 35 == 0 {
            let slow = Nanos::from_millis(700);
            events.extend(standings.note_read(now, DriveIdx::new(0), slow, false));
        }
    }
    assert_eq!(kinds(&events), [(0, EventKind::SatOut)]);
}

#[test]
fn a_lost_drive_has_no_standing() {
    let (mut standings, mut now) = (started("eraid:4+2", Practice::SitOut), Instant::ZERO);
    feed(&mut standings, &mut now, 100, &[]);
    assert_eq!(standings.handle_lost(now, DriveIdx::new(1)), []);
    assert!(feed(&mut standings, &mut now, 200, &[(1, 90)]).is_empty());
    assert!(standings.sat_out().is_empty());
}

#[test]
fn quick_probes_alone_bring_a_drive_of_an_idle_array_back() {
    let (mut standings, mut now) = (started("eraid:5+1", Practice::SitOut), Instant::ZERO);
    feed(&mut standings, &mut now, 100, &[(0, 80)]);
    assert_eq!(standings.sat_out().len(), 1);
    now = now + AGE_MAX;
    let mut events = Vec::new();
    for millis in [80, 80, 80, 80, 80, 80, 8, 8, 8, 8, 8, 8, 8] {
        now = now + PROBE_INTERVAL;
        let took = Nanos::from_millis(millis);
        let drive = DriveIdx::new(0);
        assert_eq!(standings.note_read(now, drive, Nanos::from_millis(1), false), None, "no probe");
        events.extend(standings.note_read(now, drive, took, true));
    }
    assert_eq!(kinds(&events), [(0, EventKind::Admitted)]);
}

#[test]
fn the_one_that_has_sat_out_longest_is_needed_first_and_one_sat_out_by_hand_last() {
    let mut standings = started("eraid:5+3", Practice::SitOut);
    let at = |secs| Instant::ZERO + Nanos::from_secs(secs);
    standings.put_out(at(1), DriveIdx::new(4), Standing::SatOutByHand);
    // The term of the first is longer: it came back and relapsed.
    (standings.records[0].term, standings.records[0].back) = (TERM_MAX, Some(at(1)));
    standings.put_out(at(2), DriveIdx::new(0), Standing::SatOut);
    standings.put_out(at(50), DriveIdx::new(1), Standing::SatOut);
    let mut needed = Vec::new();
    for lost in [5, 6, 7] {
        needed.extend(
            standings.handle_lost(at(60), DriveIdx::new(lost)).iter().map(|event| event.drive),
        );
    }
    assert_eq!(needed, [0, 1, 4].map(DriveIdx::new));
}

/// Feeds every drive `rounds` times; drive `n` takes `millis[n]`.
fn feed_each(
    standings: &mut Standings,
    now: &mut Instant,
    rounds: u32,
    millis: [u64; 6],
) -> Vec<DriveEvent> {
    let each: Vec<(usize, u64)> = millis.into_iter().enumerate().collect();
    feed(standings, now, rounds, &each)
}

#[test]
fn what_was_measured_over_a_minute_ago_counts_no_more() {
    let (mut standings, mut now) = (started("eraid:5+1", Practice::SitOut), Instant::ZERO);
    feed(&mut standings, &mut now, 100, &[]);
    assert!(feed(&mut standings, &mut now, 24, &[(3, 80)]).is_empty(), "one look found it slow");
    assert_eq!(standings.figures(now, DriveIdx::new(3)).median, Nanos::from_millis(80));
    now = now + Nanos::from_secs(61);
    assert_eq!(standings.figures(now, DriveIdx::new(3)).samples, 0);
    assert!(feed(&mut standings, &mut now, 8, &[]).is_empty(), "it is as fast as the others now");
    assert!(feed(&mut standings, &mut now, 200, &[]).is_empty());
}

#[test]
fn a_drive_no_slower_than_an_arm_can_be_is_never_slow() {
    let (mut standings, mut now) = (started("eraid:5+1", Practice::SitOut), Instant::ZERO);
    let events = feed_each(&mut standings, &mut now, 500, [1, 1, 14, 1, 1, 1]);
    assert!(events.is_empty(), "14 times its fellows, which read ahead: {events:?}");
    let events = feed_each(&mut standings, &mut now, 500, [1, 1, 17, 1, 1, 1]);
    assert_eq!(kinds(&events), [(2, EventKind::SatOut)]);
}

/// M = 16 ms and MAD = 6 ms: the limit is 16 + 6 * 1.4826 * 6 = 69 ms.
#[test]
fn among_drives_that_differ_widely_slow_is_slower() {
    let (mut standings, mut now) = (started("eraid:5+1", Practice::SitOut), Instant::ZERO);
    let events = feed_each(&mut standings, &mut now, 500, [10, 12, 16, 30, 34, 65]);
    assert!(events.is_empty(), "four times the median, and not slow: {events:?}");
    let events = feed_each(&mut standings, &mut now, 500, [10, 12, 16, 30, 34, 75]);
    assert_eq!(kinds(&events), [(5, EventKind::SatOut)]);
}

/// M = 10 ms and MAD = 1 ms: the limit is 3 M, which is more than 10 + 6 * 1.4826 ms.
#[test]
fn among_drives_that_differ_little_slow_is_three_times_the_median() {
    let (mut standings, mut now) = (started("eraid:5+1", Practice::SitOut), Instant::ZERO);
    let events = feed_each(&mut standings, &mut now, 500, [8, 9, 10, 11, 12, 29]);
    assert!(events.is_empty(), "{events:?}");
    let events = feed_each(&mut standings, &mut now, 500, [8, 9, 10, 11, 12, 32]);
    assert_eq!(kinds(&events), [(5, EventKind::SatOut)]);
}

#[test]
fn a_drive_is_judged_by_sixteen_commands_and_a_second_look() {
    let (mut standings, mut now) = (started("eraid:5+1", Practice::SitOut), Instant::ZERO);
    assert!(
        feed(&mut standings, &mut now, 23, &[(2, 80)]).is_empty(),
        "one look at enough of them"
    );
    assert_eq!(kinds(&feed(&mut standings, &mut now, 1, &[(2, 80)])), [(2, EventKind::SatOut)]);
}

#[test]
fn a_drive_that_is_quick_again_sits_out_its_term_all_the_same() {
    let (mut standings, mut now) = (started("eraid:5+1", Practice::SitOut), Instant::ZERO);
    while feed(&mut standings, &mut now, 1, &[(2, 80)]).is_empty() {}
    let until = now + TERM;
    while now + Nanos::from_millis(20) < until {
        assert!(feed(&mut standings, &mut now, 1, &[]).is_empty());
    }
    assert_eq!(kinds(&feed(&mut standings, &mut now, 1, &[])), [(2, EventKind::Admitted)]);
}

#[test]
fn four_quick_probes_are_too_few() {
    let (mut standings, mut now) = (started("eraid:5+1", Practice::SitOut), Instant::ZERO);
    while feed(&mut standings, &mut now, 1, &[(2, 80)]).is_empty() {}
    now = now + AGE_MAX;
    let mut probes = Vec::new();
    for _ in 0..5 {
        now = now + PROBE_INTERVAL;
        let event = standings.note_read(now, DriveIdx::new(2), Nanos::from_millis(8), true);
        probes.push(event.is_some());
    }
    assert_eq!(probes, [false, false, false, false, true]);
}

#[test]
fn a_drive_comes_back_when_it_takes_less_than_two_and_a_half_times_what_the_others_take() {
    let (mut standings, mut now) = (started("eraid:5+1", Practice::SitOut), Instant::ZERO);
    let events = feed_each(&mut standings, &mut now, 100, [80, 20, 20, 20, 20, 20]);
    assert_eq!(kinds(&events), [(0, EventKind::SatOut)]);
    let events = feed_each(&mut standings, &mut now, 1_000, [51, 20, 20, 20, 20, 20]);
    assert!(events.is_empty(), "{events:?}");
    let events = feed_each(&mut standings, &mut now, 100, [49, 20, 20, 20, 20, 20]);
    assert_eq!(kinds(&events), [(0, EventKind::Admitted)]);
}

#[test]
fn a_drive_that_did_well_for_a_minute_gets_the_first_term_again() {
    let (mut standings, mut now) = (started("eraid:5+1", Practice::SitOut), Instant::ZERO);
    let mut terms = Vec::new();
    // Of 20 ms each: half a minute, and one and a half.
    for rounds in [1_500, 4_500, 0] {
        while feed(&mut standings, &mut now, 1, &[(2, 80)]).is_empty() {}
        terms.push(standings.records[2].term);
        feed(&mut standings, &mut now, rounds, &[]);
    }
    assert_eq!(terms, [TERM, Nanos::new(2 * TERM.get()), TERM]);
}

#[test]
fn of_pairs_one_drive_each_may_sit_out_and_its_fellow_is_needed_then() {
    let (mut standings, mut now) = (started("raid10:6", Practice::SitOut), Instant::ZERO);
    let events = feed(&mut standings, &mut now, 100, &[(1, 80), (3, 90)]);
    assert_eq!(kinds(&events), [(1, EventKind::SatOut), (3, EventKind::SatOut)]);
    let refused = standings.sit_out(now, DriveIdx::new(2));
    assert_eq!(refused, Err(Refusal::Needed { spare: 1 }));
    assert_eq!(standings.handle_lost(now, DriveIdx::new(4)), [], "neither is needed for it");
    let needed = standings.handle_lost(now, DriveIdx::new(0));
    assert_eq!(kinds(&needed), [(1, EventKind::AdmittedInNeed)]);
    assert!(!standings.has_failed() && standings.spare() == 0);
    assert!(standings.can_spare(DriveSet::EMPTY.with(DriveIdx::new(2))));
}

#[test]
fn in_a_ring_the_loss_of_a_drive_may_need_both_its_neighbours() {
    let (mut standings, now) = (started("raid10:5", Practice::SitOut), Instant::ZERO);
    for drive in [0, 2] {
        standings.sit_out(now, DriveIdx::new(drive)).unwrap();
    }
    let needed = standings.handle_lost(now, DriveIdx::new(1));
    assert_eq!(kinds(&needed), [(0, EventKind::AdmittedInNeed), (2, EventKind::AdmittedInNeed)]);
    assert!(standings.sat_out().is_empty());
}
