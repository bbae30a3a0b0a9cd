//! The page of a replay: what came out in one sentence, what each policy cost, where the time of the
//! requests that took longest went, and what each drive did over time.

use levelhead_array::Cost;
use levelhead_lab::replay::account::{Account, Parts, Story};
use levelhead_lab::replay::{End, Run};
use levelhead_report::{Axis, Column, Figure, Page, Shading, Table};
use levelhead_stats::Summary;
use levelhead_units::Nanos;

use super::output::{Replayed, label};
use levelhead_app::VERSION;

/// Policies that differ by less than this, in their 99th percentile or their rate, count as equal.
const EQUAL: f64 = 0.02;
/// The most drives that a heat map shows.
const DRIVES_SHOWN: usize = 32;
/// Colours of queues have their full strength at the smallest number that is easy to read and not
/// exceeded by this share of the queues: a few that are far longer would leave all others pale.
const FULL_AT_SHARE: f64 = 0.99;

pub(super) fn page(replayed: &Replayed) -> Page {
    let runs = &replayed.runs;
    let mut page = Page::new("Levelhead replay")
        .lead(verdict(runs, replayed.closed_loop))
        .paragraph(replayed.conditions());
    for remark in replayed.remarks() {
        page = page.paragraph(remark);
    }
    page = page
        .paragraph(
            "One load, one array, the same failures of the drives for every policy. Times run from a \
             request's arrival, or in a closed loop from its sending, to its answer.",
        )
        .heading("What each policy cost")
        .figure(latencies(runs))
        .figure(commands(runs))
        .table("Latency and cost by policy", replayed.table());
    if let Some(reads) = replayed.reads_table() {
        page = page.table("Reads alone", reads);
    }
    page = page.figure(distributions(runs));
    let accounts: Vec<(&Run, &Account)> =
        runs.iter().filter_map(|run| Some((run, run.account.as_ref()?))).collect();
    if !accounts.is_empty() {
        page = slowest(page, &accounts);
        page = drives(page, &accounts, replayed.closed_loop);
    }
    page = page
        .heading("The run")
        .facts(replayed.facts().into_iter().chain([("program", format!("levelhead {VERSION}"))]));
    for line in replayed.account.lines() {
        page = page.paragraph(line);
    }
    page
}

/// What a run is judged by: in a closed loop how long it takes for a request, else its 99th percentile.
fn judged(run: &Run, closed_loop: Option<usize>) -> f64 {
    match closed_loop {
        Some(_) => run.span.as_secs_f64() / run.served.len().max(1) as f64,
        None => run.summary().p99.as_secs_f64(),
    }
}

/// The best run that went to its end; of equal ones the first.
fn best(runs: &[&Run], closed_loop: Option<usize>) -> Option<usize> {
    let complete = (0..runs.len()).filter(|&idx| runs[idx].end == End::Complete);
    complete.min_by(|&a, &b| judged(runs[a], closed_loop).total_cmp(&judged(runs[b], closed_loop)))
}

/// What others are compared with: the policy `normal`, or the worst.
fn base(runs: &[&Run], closed_loop: Option<usize>) -> usize {
    let normal = runs.iter().position(|run| run.policy.to_string() == "normal");
    let worst = || {
        let badness = |idx: usize| match runs[idx].end {
            End::Complete => judged(runs[idx], closed_loop),
            End::Overloaded => f64::INFINITY,
        };
        (0..runs.len()).max_by(|&a, &b| badness(a).total_cmp(&badness(b)))
    };
    normal.or_else(worst).expect("there is a run")
}

/// What came out, in a sentence, and what was given up for it.
fn verdict(runs: &[Run], closed_loop: Option<usize>) -> String {
    let all: Vec<&Run> = runs.iter().collect();
    let sentence = outcome(runs, closed_loop) + &others(&all, closed_loop);
    let Some(best) = best(&all, closed_loop) else { return sentence };
    let base = base(&all, closed_loop);
    let (best, base) = (&runs[best], &runs[base]);
    if best.damaged() == 0 {
        return sentence;
    }
    let count = best.served.len();
    let against = match base.damaged() {
        _ if best.policy == base.policy => String::new(),
        0 => format!(", {} all of them", base.policy),
        damaged => format!(", {} {damaged} of {} not", base.policy, base.served.len()),
    };
    let damaged = best.damaged();
    format!("{sentence} But {} could not serve {damaged} of {count} in full{against}.", best.policy)
}

/// What came of the policies that [`outcome`] does not name.
fn others(runs: &[&Run], closed_loop: Option<usize>) -> String {
    let Some(best) = best(runs, closed_loop) else { return String::new() };
    let named = [best, base(runs, closed_loop)];
    let of = |(_, run): (usize, &&Run)| match (run.end, closed_loop) {
        (End::Overloaded, _) => format!("{} does not keep up", run.policy),
        (End::Complete, Some(_)) => format!("{} serves {:.1}", run.policy, run.rate()),
        (End::Complete, None) => format!("{} takes {}", run.policy, time(run.summary().p99)),
    };
    let is_other = |(idx, run): &(usize, &&Run)| !named.contains(idx) && !run.served.is_empty();
    let all: Vec<String> = runs.iter().enumerate().filter(is_other).map(of).collect();
    if all.is_empty() { String::new() } else { format!(" Of the others, {}.", all.join(", ")) }
}

fn outcome(runs: &[Run], closed_loop: Option<usize>) -> String {
    let all: Vec<&Run> = runs.iter().collect();
    let Some(best) = best(&all, closed_loop) else {
        return match runs.len() {
            1 => format!("{} does not keep up with this load.", runs[0].policy),
            2 => {
                let [first, second] = [0, 1].map(|idx| runs[idx].policy);
                format!("Neither {first} nor {second} keeps up with this load.")
            }
            count => format!("None of the {count} policies keeps up with this load."),
        };
    };
    let best = &runs[best];
    let base = all[base(&all, closed_loop)];
    let Summary { count, p50, p99, max, .. } = best.summary();
    if count == 0 {
        return "The load has no requests.".to_owned();
    }
    if runs.len() == 1 && count == 1 {
        return format!("{} answers its only request within {}.", best.policy, time(max));
    }
    if runs.len() == 1 {
        return format!(
            "{} answers half of its {count} requests within {}, 99 of 100 within {}, and the slowest \
             after {}.",
            best.policy,
            time(p50),
            time(p99),
            time(max)
        );
    }
    let what = match closed_loop {
        Some(_) => format!("{} serves {:.1} requests a second", best.policy, best.rate()),
        None if count == 1 => format!("{} answers the request within {}", best.policy, time(p99)),
        None => format!("{} answers 99 of 100 requests within {}", best.policy, time(p99)),
    };
    if base.end == End::Overloaded {
        return format!("{what}; {} does not keep up with this load.", base.policy);
    }
    let (ours, theirs) = (judged(best, closed_loop), judged(base, closed_loop));
    if best.policy == base.policy || theirs <= ours * (1.0 + EQUAL) {
        let policy = base.policy;
        return format!("{what}: no policy does much better than {policy} on this load.");
    }
    let against = match closed_loop {
        Some(_) => format!("{:.1}", base.rate()),
        None => time(base.summary().p99),
    };
    let effort = match commands_of(best) / commands_of(base) {
        effort if !effort.is_finite() => "more commands to the drives".to_owned(),
        effort if (effort - 1.0).abs() < 0.005 => "as many commands to the drives".to_owned(),
        more if more > 1.0 => format!("{:.0} % more commands to the drives", (more - 1.0) * 100.0),
        less => format!("{:.0} % fewer commands to the drives", (1.0 - less) * 100.0),
    };
    let times = theirs / ours;
    let gain = match closed_loop {
        _ if !times.is_finite() => format!("where {} takes {against}", base.policy),
        Some(_) => format!("{} times as many as {} with its {against}", digits(times), base.policy),
        None => format!("where {} takes {against}, {} times as long", base.policy, digits(times)),
    };
    format!("{what}, {gain}, with {effort}.")
}

/// A ratio above one, to two or three digits.
fn digits(times: f64) -> String {
    match times {
        times if times >= 20.0 => format!("{times:.0}"),
        times if times >= 2.0 => format!("{times:.1}"),
        times => format!("{times:.2}"),
    }
}

fn time(time: Nanos) -> String {
    match time.as_millis_f64() {
        millis if millis >= 10_000.0 => format!("{:.1} s", millis / 1e3),
        millis if millis >= 1_000.0 => format!("{:.2} s", millis / 1e3),
        millis if millis >= 100.0 => format!("{millis:.0} ms"),
        millis if millis >= 1.0 => format!("{millis:.1} ms"),
        millis if millis >= 0.1 => format!("{:.0} µs", millis * 1e3),
        millis => format!("{:.1} µs", millis * 1e3),
    }
}

/// Commands that drives were given for a request, on average: for the first time or again.
fn commands_of(run: &Run) -> f64 {
    run.mean_of(|cost| first(cost) + again(cost))
}

/// Commands that drives were given for the first time.
fn first(cost: &Cost) -> u32 {
    cost.subs - cost.removed - again(cost)
}

/// Commands that drives were given again, with retries. What was withdrawn may be among them.
fn again(cost: &Cost) -> u32 {
    cost.redispatched.min(cost.subs - cost.removed)
}

fn names(runs: &[&Run]) -> Vec<String> {
    runs.iter().map(|run| label(run)).collect()
}

fn texts(names: &[String]) -> Vec<&str> {
    names.iter().map(String::as_str).collect()
}

fn latencies(runs: &[Run]) -> Figure {
    let all: Vec<&Run> = runs.iter().collect();
    let summaries: Vec<Summary> = runs.iter().map(Run::summary).collect();
    let of = |pick: fn(&Summary) -> Nanos| -> Vec<f64> {
        summaries.iter().map(|summary| pick(summary).as_millis_f64()).collect()
    };
    let (p50, p99, p999) = (of(|one| one.p50), of(|one| one.p99), of(|one| one.p999));
    let series: [(&str, &[f64]); 3] =
        [("half within", &p50), ("99 % within", &p99), ("99.9 % within", &p999)];
    Figure::bars("How long requests take", Axis::log("latency (ms)"), &texts(&names(&all)), &series)
}

fn commands(runs: &[Run]) -> Figure {
    let all: Vec<&Run> = runs.iter().collect();
    let of =
        |pick: fn(&Cost) -> u32| -> Vec<f64> { runs.iter().map(|run| run.mean_of(pick)).collect() };
    let (first, again, removed) = (of(first), of(again), of(|cost| cost.removed));
    let series: [(&str, &[f64]); 3] = [
        ("to the drives for the first time", &first),
        ("to the drives again, with retries", &again),
        ("withdrawn in time", &removed),
    ];
    Figure::stacks("Commands for a request", "commands", &texts(&names(&all)), &series)
}

fn distributions(runs: &[Run]) -> Figure {
    let latencies: Vec<(String, Vec<f64>)> = runs
        .iter()
        .map(|run| {
            let mut sorted = run.latencies(|_| true);
            sorted.sort_unstable();
            (label(run), sorted.into_iter().map(Nanos::as_millis_f64).collect())
        })
        .collect();
    let series: Vec<(&str, &[f64])> =
        latencies.iter().map(|(name, values)| (name.as_str(), values.as_slice())).collect();
    Figure::cdf("Latency of all requests", "latency (ms)", &series)
}

/// What a request can wait for, in the order of its way.
const WAITS: [Wait; 5] = [
    Wait { name: "for room in the array", of: |parts| parts.outside },
    Wait { name: "in the array's queues", of: |parts| parts.queued },
    Wait { name: "behind others in a drive", of: |parts| parts.behind },
    Wait { name: "a drive at work", of: |parts| parts.service },
    Wait { name: "a drive that retries", of: |parts| parts.retries },
];

struct Wait {
    name: &'static str,
    of: fn(&Parts) -> Nanos,
}

fn slowest(page: Page, accounts: &[(&Run, &Account)]) -> Page {
    // Times of a queue that grows without bound would dwarf all others.
    let is_shown = |one: &&(&Run, &Account)| one.0.end == End::Complete;
    let complete: Vec<(&Run, &Account)> = accounts.iter().filter(is_shown).copied().collect();
    let left_out = accounts.len() - complete.len();
    let accounts = if complete.is_empty() { accounts } else { complete.as_slice() };
    let count = accounts.iter().map(|(_, account)| account.slowest.len()).max().unwrap_or(0);
    let runs: Vec<&Run> = accounts.iter().map(|(run, _)| *run).collect();
    let mean = |stories: &[Story], pick: fn(&Parts) -> Nanos| {
        let total: Nanos = stories.iter().map(|story| pick(&story.parts)).sum();
        total.as_millis_f64() / stories.len().max(1) as f64
    };
    let parts: Vec<(&str, Vec<f64>)> = WAITS
        .iter()
        .map(|&Wait { name, of }| {
            (name, accounts.iter().map(|(_, account)| mean(&account.slowest, of)).collect())
        })
        // What no policy waited for is no part of the picture.
        .filter(|(_, values): &(_, Vec<f64>)| values.iter().any(|value| *value > 0.0))
        .collect();
    let series: Vec<(&str, &[f64])> =
        parts.iter().map(|(name, values)| (*name, values.as_slice())).collect();
    let figure = Figure::stacks(
        format!("What the slowest {count} requests waited for"),
        "mean time of each (ms)",
        &texts(&names(&runs)),
        &series,
    );
    page.heading("Where the slowest requests spent their time")
        .paragraph(format!(
            "The {count} requests of each policy that took longest. A request waits for the last of \
             its commands that it needs, and each command for others in its drive before it is served."
        ))
        .figure(match left_out {
            _ if complete.is_empty() => figure,
            0 => figure,
            1 => figure.with_note("Without the policy that does not keep up."),
            more => figure.with_note(format!("Without the {more} policies that do not keep up.")),
        })
        .table("Drives that the slowest requests waited for last", last_drives(accounts))
}

/// For each policy, the drives that most of its slowest requests waited for last.
fn last_drives(accounts: &[(&Run, &Account)]) -> Table {
    let heads =
        [Column::left("policy"), Column::right("requests"), Column::left("waited last for")];
    let mut table = Table::new(heads);
    for (run, account) in accounts {
        let mut counts = vec![0_usize; account.drives.len()];
        for story in &account.slowest {
            if let Some(drive) = story.last {
                counts[drive.as_usize()] += 1;
            }
        }
        let mut order: Vec<usize> = (0..counts.len()).filter(|&idx| counts[idx] > 0).collect();
        order.sort_by_key(|&idx| (std::cmp::Reverse(counts[idx]), idx));
        let shown = order.iter().take(4).map(|&idx| format!("drive {idx}: {}", counts[idx]));
        let mut text = shown.collect::<Vec<_>>().join(", ");
        let rest: usize = order.iter().skip(4).map(|&idx| counts[idx]).sum();
        if rest > 0 {
            text.push_str(&format!(", others: {rest}"));
        }
        table.push([label(run), account.slowest.len().to_string(), text]);
    }
    table
}

/// Two heat maps a policy: of the best and of what it is compared with at once, of others folded away.
fn drives(page: Page, accounts: &[(&Run, &Account)], closed_loop: Option<usize>) -> Page {
    let runs: Vec<&Run> = accounts.iter().map(|(run, _)| *run).collect();
    let base = base(&runs, closed_loop);
    let best = best(&runs, closed_loop).unwrap_or(base);
    let mut page = page.heading("Drive by drive over time").paragraph(
        "How many commands wait for each drive or are inside it, and how much of its time it serves \
         them. A drive that is dark in both is what requests wait for.",
    );
    // One scale for all policies, so that they can be compared.
    let of = |end: Option<End>| -> Vec<f64> {
        let picked = accounts.iter().filter(|(run, _)| end.is_none_or(|end| run.end == end));
        picked.flat_map(|(_, account)| account.queues().concat()).collect()
    };
    let complete = of(Some(End::Complete));
    let most = full_at(if complete.is_empty() { of(None) } else { complete });
    for idx in [base, best].into_iter().take(if base == best { 1 } else { 2 }) {
        page = maps(page, accounts[idx], most);
    }
    let others = accounts.iter().enumerate().filter(|(idx, _)| ![base, best].contains(idx));
    let others: Vec<_> = others.map(|(_, &one)| one).collect();
    if others.is_empty() {
        return page;
    }
    let name = format!("The other policies ({})", others.len());
    let folded = others.into_iter().fold(Page::new(""), |page, one| maps(page, one, most));
    page.folded(name, folded)
}

/// Where the colours of queues have their full strength, see [`FULL_AT_SHARE`].
fn full_at(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let at = (values.len().saturating_sub(1) as f64 * FULL_AT_SHARE) as usize;
    let high = values.get(at).copied().unwrap_or(1.0).max(1.0);
    // A number that is easy to read.
    let power = 10_f64.powf(high.log10().floor());
    let nice = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power);
    nice.into_iter().find(|nice| *nice >= high).unwrap_or(high)
}

fn maps(page: Page, (run, account): (&Run, &Account), most: f64) -> Page {
    let step = account.bin.as_secs_f64();
    let times = account.drives.first().map_or(0, Vec::len);
    let decimals = if step < 0.1 { 2 } else { usize::from(step < 2.0) };
    let times: Vec<String> =
        (0..times).map(|at| format!("{:.decimals$} s", at as f64 * step)).collect();
    let queues = account.queues();
    let percent = |shares: Vec<f64>| shares.into_iter().map(|share| 100.0 * share).collect();
    let busy: Vec<Vec<f64>> = account.utilization().into_iter().map(percent).collect();
    let shown = shown(&queues);
    let rows: Vec<String> = shown.iter().map(|idx| format!("drive {idx}")).collect();
    let map = |title: String, values: &[Vec<f64>], most: f64| {
        let values: Vec<Vec<f64>> = shown.iter().map(|&idx| values[idx].clone()).collect();
        let shading = Shading::up_to(most);
        let map = Figure::heat_map(title, &texts(&times), &texts(&rows), &values, shading);
        match account.drives.len() {
            all if all > shown.len() => map
                .with_note(format!("The {} drives of {all} with the longest queues.", shown.len())),
            _ => map,
        }
    };
    let policy = label(run);
    page.figure(map(format!("{policy}: commands at each drive"), &queues, most)).figure(map(
        format!("{policy}: time that each drive serves commands, %"),
        &busy,
        100.0,
    ))
}

/// The drives with the longest queues, in their order.
fn shown(queues: &[Vec<f64>]) -> Vec<usize> {
    let total = |idx: usize| queues[idx].iter().sum::<f64>();
    let mut order: Vec<usize> = (0..queues.len()).collect();
    order.sort_by(|&a, &b| total(b).total_cmp(&total(a)).then(a.cmp(&b)));
    order.truncate(DRIVES_SHOWN);
    order.sort_unstable();
    order
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use levelhead_array::{Counters, Policy};
    use levelhead_lab::replay::{Served, Verdict};
    use levelhead_units::Instant;

    use super::*;

    /// A run whose requests take `millis` each, but for one of fifty that takes ten times as long.
    fn run(policy: Policy, millis: u64, commands: u32, end: End) -> Run {
        let served = |index: u64| {
            let latency =
                Nanos::from_millis(if index.is_multiple_of(50) { 10 * millis } else { millis });
            let cost = Cost { subs: commands, removed: 1, redispatched: 0, decoded: 0 };
            let at = Instant::ZERO + Nanos::from_millis(millis * index);
            Served { index, at, latency, cost, verdict: Verdict::Good }
        };
        Run {
            policy,
            served: (0..200).map(served).collect(),
            end,
            span: Nanos::from_millis(200 * millis),
            submitted: 0,
            counters: Counters::default(),
            drive_events: Vec::new(),
            account: None,
            events: 0,
            log: 0,
        }
    }

    #[test]
    fn the_verdict_names_the_best_and_what_it_is_compared_with() {
        let good = |policy, millis, commands| run(policy, millis, commands, End::Complete);
        let (normal, level) = (Policy::Normal, Policy::DEFAULT);
        let cases: BTreeMap<&str, (Vec<Run>, Option<usize>)> = [
            (
                "level answers 99 of 100 requests within 300 ms, where normal takes 1.20 s, 4.0 times as long, with \
                 20 % more commands to the drives.",
                (vec![good(normal, 120, 6), good(level, 30, 7)], None),
            ),
            (
                "level answers 99 of 100 requests within 300 ms: no policy does much better than normal on this load.",
                (vec![good(normal, 30, 6), good(level, 30, 7)][..].iter().rev().cloned().collect(), None),
            ),
            (
                "level serves 33.3 requests a second, 4.0 times as many as normal with its 8.3, with as many \
                 commands to the drives.",
                (vec![good(normal, 120, 6), good(level, 30, 6)], Some(4)),
            ),
            (
                "level answers 99 of 100 requests within 300 ms; normal does not keep up with this load.",
                (vec![run(normal, 1, 6, End::Overloaded), good(level, 30, 6)], None),
            ),
            (
                "normal answers half of its 200 requests within 30.0 ms, 99 of 100 within 300 ms, and the slowest \
                 after 300 ms.",
                (vec![good(normal, 30, 6)], None),
            ),
            (
                "Neither normal nor level keeps up with this load.",
                (vec![run(normal, 1, 6, End::Overloaded), run(level, 1, 6, End::Overloaded)], None),
            ),
            ("normal does not keep up with this load.", (vec![run(normal, 1, 6, End::Overloaded)], None)),
            (
                "on-failure answers 99 of 100 requests within 300 ms, where normal takes 1.20 s, 4.0 times as long, with \
                 as many commands to the drives. Of the others, level takes 400 ms, pro-active does not keep up.",
                (
                    vec![
                        good(normal, 120, 6),
                        good(level, 40, 7),
                        run("pro-active".parse().unwrap(), 1, 6, End::Overloaded),
                        good(Policy::OnFailure, 30, 6),
                    ],
                    None,
                ),
            ),
        ]
        .into();
        for (sentence, (runs, closed_loop)) in cases {
            assert_eq!(verdict(&runs, closed_loop), sentence);
        }
    }

    #[test]
    fn the_verdict_says_what_its_best_policy_gave_up() {
        let good = |policy, millis| run(policy, millis, 6, End::Complete);
        let gives_up = |run: Run, count: usize| {
            let mut run = run;
            run.served.iter_mut().take(count).for_each(|one| one.verdict = Verdict::Damaged);
            run
        };
        let (normal, level) = (good(Policy::Normal, 120), good(Policy::DEFAULT, 30));
        for (ending, runs) in [
            ("drives.", vec![normal.clone(), level.clone()]),
            ("drives.", vec![gives_up(normal.clone(), 3), level.clone()]),
            (
                "drives. But level could not serve 3 of 200 in full, normal all of them.",
                vec![normal.clone(), gives_up(level.clone(), 3)],
            ),
            (
                "drives. But level could not serve 3 of 200 in full, normal 2 of 200 not.",
                vec![gives_up(normal.clone(), 2), gives_up(level.clone(), 3)],
            ),
            (
                "after 300 ms. But level could not serve 1 of 200 in full.",
                vec![gives_up(level.clone(), 1)],
            ),
        ] {
            let verdict = verdict(&runs, None);
            assert!(verdict.ends_with(ending), "{verdict}");
        }
    }

    #[test]
    fn few_requests_and_short_times_make_whole_sentences() {
        let few = |policy, millis, count| {
            let mut run = run(policy, millis, 6, End::Complete);
            run.served.truncate(count);
            run
        };
        let level = Policy::DEFAULT;
        for (sentence, runs) in [
            ("The load has no requests.", vec![few(level, 1, 0)]),
            ("level answers its only request within 300 ms.", vec![few(level, 30, 1)]),
            (
                "level answers the request within 0.0 µs: no policy does much better than normal on this load.",
                vec![few(level, 0, 1), few(Policy::Normal, 0, 1)],
            ),
            (
                "level answers the request within 0.0 µs, where normal takes 300 ms, with as many commands to the \
                 drives.",
                vec![few(level, 0, 1), few(Policy::Normal, 30, 1)],
            ),
        ] {
            assert_eq!(verdict(&runs, None), sentence);
        }
        for (nanos, text) in
            [(0, "0.0 µs"), (45_000, "45.0 µs"), (450_000, "450 µs"), (1_500_000, "1.5 ms")]
        {
            assert_eq!(time(Nanos::new(nanos)), text);
        }
    }

    #[test]
    fn the_figure_and_the_verdict_count_the_same_commands() {
        for (subs, removed, redispatched) in [(6, 0, 0), (7, 2, 1), (7, 5, 4), (3, 3, 1)] {
            let cost = Cost { subs, removed, redispatched, decoded: 0 };
            assert_eq!(first(&cost) + again(&cost) + removed, subs, "{cost:?}");
        }
    }

    #[test]
    fn colours_are_full_at_a_number_that_is_easy_to_read() {
        for (values, full) in
            [(vec![], 1.0), (vec![0.2], 1.0), (vec![3.4; 9], 5.0), (vec![17.0], 20.0)]
        {
            assert!((full_at(values.clone()) - full).abs() < 1e-9, "{values:?}");
        }
    }

    #[test]
    fn only_the_drives_with_the_longest_queues_are_shown() {
        let queues: Vec<Vec<f64>> = (0..40).map(|idx| vec![f64::from(idx % 39)]).collect();
        let shown = shown(&queues);
        assert_eq!(shown.len(), DRIVES_SHOWN);
        assert!(
            shown.contains(&38)
                && !shown.contains(&0)
                && shown.windows(2).all(|pair| pair[0] < pair[1])
        );
    }
}
