//! The watch over loads that are counted as the kernel counts them.

use std::collections::BTreeMap;

use super::*;
use crate::detect::{Finding, Reading, Verdict};

/// The plainest of rules: the mean of the last six ratios to the others' median above 1.3.
struct Plain {
    ratios: Vec<Vec<f64>>,
}

impl Plain {
    fn make() -> MakeDetector {
        Box::new(|count| Box::new(Self { ratios: vec![Vec::new(); count] }))
    }
}

impl Detector for Plain {
    fn handle_window(&mut self, _at: i64, members: &[Option<Reading>]) {
        assert_eq!(members.len(), self.ratios.len());
        for (at, own) in members.iter().enumerate() {
            let others = members.iter().enumerate().filter(|&(other, _)| other != at);
            let mut others: Vec<_> =
                others.filter_map(|(_, it)| it.map(|it| it.latency_us)).collect();
            let median = history::median(&mut others);
            if let Some((own, median)) = own.zip(median) {
                self.ratios[at].push(own.latency_us / median);
            }
        }
    }

    fn findings(&self) -> Vec<Finding> {
        let finding = |ratios: &Vec<f64>| {
            let last = &ratios[ratios.len().saturating_sub(6)..];
            let ratio = last.iter().sum::<f64>() / last.len() as f64;
            let verdict = match last.len() {
                0..6 => Verdict::CannotTell,
                _ if ratio > 1.3 => Verdict::Slow,
                _ => Verdict::Fine,
            };
            let busy_hours = ratios.len() as f64 / 12.0;
            Finding {
                verdict,
                ratio,
                low: ratio * 0.9,
                high: ratio * 1.1,
                decided_at: None,
                busy_hours,
            }
        };
        self.ratios.iter().map(finding).collect()
    }
}

fn group(count: usize) -> Group {
    let member = |at: usize| Member {
        key: format!("wwn{at}"),
        device: format!("sd{at}"),
        model: "M".into(),
    };
    Group {
        id: "md0".into(),
        name: "md0".into(),
        members: (0..count).map(member).collect(),
        is_rebuilding: false,
    }
}

/// A host whose drives have a latency in milliseconds each, and end 40 reads in each sample unless they hang.
struct Host {
    watch: Watch,
    now: i64,
    millis: Vec<u64>,
    counters: Vec<Counters>,
    events: Vec<Event>,
}

impl Host {
    fn new(count: usize) -> Self {
        let mut watch = Watch::new(Plain::make(), Saved::default());
        watch.handle_groups(&[group(count)]);
        let counters = vec![Counters::default(); count];
        Self { watch, now: 1_000_000_200, millis: vec![10; count], counters, events: Vec::new() }
    }

    fn run(&mut self, windows: i64) {
        for _ in 0..windows * 20 {
            self.now += 15;
            for (counters, &millis) in self.counters.iter_mut().zip(&self.millis) {
                let ended = if millis == 0 { 0 } else { 40 };
                counters.ended += ended;
                counters.millis += ended * millis;
                counters.sectors += ended * 8;
                counters.inside = u64::from(millis == 0);
            }
            let sample = self.counters.iter().enumerate().map(|(at, it)| (format!("wwn{at}"), *it));
            self.watch.handle_sample(self.now, &sample.collect::<BTreeMap<_, _>>());
            self.events.extend(std::iter::from_fn(|| self.watch.poll()));
        }
    }

    fn states(&self) -> Vec<&'static str> {
        self.watch.verdicts().iter().map(|it| it.state.name()).collect()
    }
}

#[test]
fn slow_drive_is_found_and_returns() {
    let mut host = Host::new(5);
    host.run(10);
    assert_eq!(host.states(), ["fine"; 5]);
    host.millis[2] = 20;
    host.run(10);
    assert_eq!(host.states(), ["fine", "fine", "slow", "fine", "fine"]);
    let event = host.events.last().expect("an event");
    assert_eq!((event.before.name(), event.now.state), ("suspect", State::Slow));
    let line = host.watch.verdicts()[2].to_string();
    assert!(
        line.starts_with("md0 sd2 (wwn2) is slow: 2.00 times the median of its 4 peers"),
        "{line}"
    );
    assert!(line.ends_with("at 1.00 times their load"), "{line}");
    host.millis[2] = 10;
    host.run(10);
    assert_eq!(host.states(), ["fine"; 5]);
    let verdict = &host.watch.verdicts()[2];
    assert!(
        verdict.slow_seconds > 1500 && verdict.slow_seconds.is_multiple_of(15),
        "{}",
        verdict.slow_seconds
    );
    assert_eq!(host.watch.tails(), [Tail { group: "md0".to_owned(), ratios: vec![1.0; 3] }]);
}

#[test]
fn drive_that_ends_nothing_hangs_within_three_samples_and_returns() {
    let mut host = Host::new(5);
    host.run(10);
    host.millis[1] = 0;
    host.run(1);
    assert_eq!(host.states(), ["fine", "hung", "fine", "fine", "fine"]);
    let hung = host.events.iter().find(|it| it.now.state == State::Hung).expect("an event");
    assert!(hung.at <= 1_000_000_200 + 10 * 300 + 45, "{}", hung.at);
    host.millis[1] = 10;
    host.run(1);
    assert_eq!(host.states(), ["fine"; 5]);
}

#[test]
fn all_together_is_the_host() {
    let mut host = Host::new(6);
    host.run(20);
    host.millis = vec![30; 6];
    host.run(2);
    assert_eq!(host.states(), ["host-wide"; 6]);
    host.millis = vec![10; 6];
    host.run(2);
    assert_eq!(host.states(), ["fine"; 6]);
}

#[test]
fn what_cannot_be_told_says_why() {
    let mut host = Host::new(3);
    host.run(10);
    let why = |host: &Host| host.watch.verdicts()[0].state;
    assert_eq!(why(&host), State::CannotTell(Why::FewPeers));
    let mut host = Host::new(5);
    host.run(1);
    assert_eq!(why(&host), State::CannotTell(Why::Idle));
    host.run(9);
    host.watch.handle_groups(&[Group { is_rebuilding: true, ..group(5) }]);
    host.millis[0] = 50;
    host.run(8);
    assert_eq!(why(&host), State::CannotTell(Why::Rebuilding));
    host.millis[0] = 10;
    host.watch.handle_groups(&[group(5)]);
    host.run(2);
    assert_eq!(why(&host), State::Fine);
    let mut unlike = group(5);
    for at in [0, 1] {
        unlike.members[at].model = "N".into();
    }
    host.watch.handle_groups(&[unlike]);
    host.run(1);
    assert!(
        host.watch.verdicts().iter().all(|it| it.state == State::CannotTell(Why::UnlikeModels))
    );
}

/// A host that has been idle for long is told of as such, with the age of what was seen, and its figures of now are absent.
#[test]
fn idle_host_has_no_figures_of_now_and_no_verdict_after_a_day() {
    let mut host = Host::new(5);
    host.run(10);
    assert_eq!((host.watch.tails().len(), host.watch.last_window().len()), (1, 5));
    let idle = |host: &mut Host, hours: i64| {
        for _ in 0..hours * 12 {
            host.now += 300;
            let sample = host.counters.iter().enumerate();
            let sample = sample.map(|(at, it)| (format!("wwn{at}"), *it)).collect();
            host.watch.handle_sample(host.now, &sample);
        }
    };
    idle(&mut host, 2);
    let verdict = host.watch.verdicts().remove(0);
    assert!(!verdict.is_recent() && verdict.state == State::Fine, "{verdict}");
    assert!(verdict.to_string().ends_with(" h ago"), "{verdict}");
    assert_eq!((host.watch.tails().len(), host.watch.last_window().len()), (0, 0));
    idle(&mut host, 23);
    assert_eq!(host.states(), ["cannot-tell"; 5]);
}

#[test]
fn group_of_two_models_has_one_tail() {
    let mut host = Host::new(10);
    let mut unlike = group(10);
    unlike.members.iter_mut().take(5).for_each(|it| it.model = "N".into());
    host.watch.handle_groups(&[unlike]);
    host.millis[7] = 20;
    host.run(2);
    assert_eq!(host.watch.tails(), [Tail { group: "md0".into(), ratios: vec![2.0, 1.0, 1.0] }]);
}

/// A survey that has missed a group, or a start before the first one, loses nothing.
#[test]
fn group_that_is_gone_is_remembered_until_it_returns() {
    let mut host = Host::new(5);
    host.millis[4] = 20;
    host.run(10);
    host.watch.handle_groups(&[]);
    assert_eq!(host.states().len(), 0);
    let kept = host.watch.save();
    assert_eq!(kept.windows_max(), 10);
    host.watch = Watch::new(Plain::make(), kept.clone());
    assert_eq!(host.watch.save(), kept);
    host.watch.handle_groups(&[group(5)]);
    host.run(1);
    assert_eq!(host.states(), ["fine", "fine", "fine", "fine", "slow"]);
    let other = [Group { id: "md1".into(), name: "md1".into(), ..group(5) }];
    host.watch.handle_groups(&other);
    let names = |host: &Host| host.watch.save().cohorts.iter().map(|it| it.name.clone()).collect();
    let (both, one): (Vec<String>, Vec<String>) = (names(&host), {
        host.now += GONE_AFTER + 10_000;
        host.run(1);
        host.watch.handle_groups(&other);
        names(&host)
    });
    assert_eq!((both.len(), one), (2, vec!["md1\tM".to_owned()]));
}

#[test]
fn restart_and_renaming_change_no_verdict() {
    let mut host = Host::new(5);
    host.millis[4] = 20;
    host.run(10);
    let bytes = host.watch.save().encode();
    let saved = Saved::decode(&bytes).expect("what was encoded");
    assert_eq!(saved, host.watch.save());
    host.watch = Watch::new(Plain::make(), saved);
    let mut renamed = group(5);
    renamed.members[4].device = "sdz".into();
    host.watch.handle_groups(&[renamed]);
    host.run(1);
    assert_eq!(host.states(), ["fine", "fine", "fine", "fine", "slow"]);
    assert_eq!(host.watch.verdicts()[4].device, "sdz");
}

#[test]
fn drive_that_is_replaced_begins_anew_and_the_others_go_on() {
    let mut host = Host::new(5);
    host.run(10);
    let mut other = group(5);
    other.members[0].key = "new".into();
    host.watch.handle_groups(&[other]);
    host.run(1);
    let verdicts = host.watch.verdicts();
    let state = |key: &str| verdicts.iter().find(|it| it.key == key).map(|it| it.state);
    assert_eq!(state("wwn1"), Some(State::Fine));
    assert_eq!(state("new"), Some(State::CannotTell(Why::NotRead)));
    assert_eq!(state("wwn0"), None);
}

#[test]
fn counters_that_go_back_and_time_that_goes_back_harm_nothing() {
    let mut host = Host::new(5);
    host.run(10);
    host.counters[3] = Counters::default();
    host.run(1);
    host.now -= 10_000;
    host.run(2);
    assert_eq!(host.states(), ["fine"; 5]);
}

/// As after a battery has died: the state is of a time that has not come yet.
#[test]
fn clock_set_back_by_a_year_stops_no_verdict() {
    let mut host = Host::new(5);
    host.run(10);
    host.now -= 365 * 24 * 3600;
    host.millis[3] = 20;
    host.run(10);
    assert_eq!(host.states(), ["fine", "fine", "fine", "slow", "fine"]);
    assert!(host.watch.save().last_window_end().is_some_and(|until| until <= host.now));
}

#[test]
fn state_cut_off_or_changed_is_refused() {
    let mut host = Host::new(4);
    host.run(8);
    let bytes = host.watch.save().encode();
    for end in 0..bytes.len() {
        assert!(Saved::decode(&bytes[..end]).is_err());
        let mut changed = bytes.clone();
        changed[end] ^= 1;
        assert!(Saved::decode(&changed).is_err());
    }
}

#[test]
fn state_of_a_hundred_drives_is_bounded() {
    let mut host = Host::new(100);
    host.run(WINDOWS_MAX as i64 + 50);
    let size = host.watch.save().encode().len();
    assert!(size < 100 * (8 * WINDOWS_MAX + 64) + 16 * WINDOWS_MAX, "{size}");
}

#[test]
fn a_group_that_is_called_otherwise_keeps_what_is_known_of_it_and_no_other_takes_it() {
    let mut host = Host::new(5);
    host.run(10);
    let named = |id: &str, name: &str| Group { id: id.into(), name: name.into(), ..group(5) };
    host.watch.handle_groups(&[named("other", "md0"), named("md0", "md0 (2)")]);
    let verdicts = host.watch.verdicts();
    let of = |name: &str| verdicts.iter().find(|it| it.group == name).expect("a verdict");
    assert_eq!(of("md0 (2)").state.name(), "fine");
    assert_eq!(of("md0").state.name(), "cannot-tell");
}
