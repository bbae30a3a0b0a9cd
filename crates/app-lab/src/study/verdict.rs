//! What came out of a study in a few sentences: our result with its interval, the paper's number, and
//! whether the one reproduces the other. Everything follows from the rows.

use levelhead_lab::studies::{Agreement, Claim, Estimate, Unit};

use super::number::number;

/// The most numbers of a paper that are named one by one, and the most metrics without a paper.
const NAMED_MAX: usize = 3;

/// The verdict on these rows.
pub(super) fn verdict(rows: &[Estimate]) -> String {
    let is_papers =
        |row: &&Estimate| row.paper.is_some() && !matches!(row.claim, Claim::Derived(_));
    let papers: Vec<&Estimate> = rows.iter().filter(is_papers).collect();
    match papers.as_slice() {
        [] => ranges(rows),
        few if few.len() <= NAMED_MAX => {
            few.iter().map(|row| beside("Ours", row)).collect::<Vec<_>>().join(" ")
        }
        [first, ..] => {
            let missed = papers.iter().filter(|row| row.agreement() == Some(Agreement::Missed));
            let example = match missed.max_by(|a, b| distance(a).total_cmp(&distance(b))) {
                Some(farthest) => beside("Ours, the farthest off", farthest),
                None => beside("Ours, the first", first),
            };
            format!("{}{example}", counted(&papers))
        }
    }
}

/// How many of the paper's numbers are reproduced, in a sentence and a space; nothing without intervals.
fn counted(papers: &[&Estimate]) -> String {
    let all = |what| papers.iter().filter(|row| row.agreement() == Some(what)).count();
    let (good, unknown) = (all(Agreement::Reproduced), all(Agreement::NoInterval));
    let count = papers.len() - unknown;
    if count == 0 {
        return String::new();
    }
    let within = match papers.iter().any(|row| has_interval(row)) {
        true => " within their 95 % intervals",
        false => "",
    };
    let sentence = match (good == count, unknown) {
        (true, 0) => format!("Our results reproduce all {count} numbers of the paper{within}"),
        _ => format!("Our results reproduce {good} of the paper's {count} numbers{within}"),
    };
    match unknown {
        0 => format!("{sentence}. "),
        _ => format!("{sentence}; {unknown} more have no interval to judge by. "),
    }
}

/// Whether something about our number is uncertain, and it is known how much.
fn has_interval(row: &Estimate) -> bool {
    row.low.is_finite() && row.high.is_finite() && row.low < row.high
}

/// A row's number as a table has it.
pub(super) fn ours(row: &Estimate) -> String {
    match row.ours {
        _ if row.is_bound_only() => format!("< {}", number(row.unit, row.high)),
        ours if ours.is_finite() => number(row.unit, ours),
        _ => "overloaded".to_owned(),
    }
}

/// The paper's number, if it has one.
pub(super) fn papers(row: &Estimate) -> Option<String> {
    let bound = match row.claim {
        Claim::Equal | Claim::Derived(_) => "",
        Claim::AtMost => "<= ",
        Claim::AtLeast => ">= ",
    };
    row.paper.map(|paper| format!("{bound}{}", number(row.unit, paper)))
}

/// Whether a row reproduces the paper's number, in a word.
pub(super) fn word(row: &Estimate) -> &'static str {
    match row.agreement() {
        Some(Agreement::Reproduced) => "yes",
        Some(Agreement::Missed | Agreement::Overloaded) => "no",
        Some(Agreement::NoInterval) | None => "-",
    }
}

/// Our number after `whose`, the paper's, and how they stand to each other.
fn beside(whose: &str, row: &Estimate) -> String {
    let Estimate { case, metric, unit, .. } = row;
    let what = match row.agreement() {
        Some(Agreement::Reproduced) if has_interval(row) => {
            "Reproduced within our interval.".to_owned()
        }
        Some(Agreement::Reproduced) => "Reproduced.".to_owned(),
        Some(Agreement::Missed) => format!("Not reproduced: {}.", apart(row)),
        Some(Agreement::Overloaded) => {
            "Not reproduced: our array does not carry this load.".to_owned()
        }
        Some(Agreement::NoInterval) => "One seed has no interval to judge by.".to_owned(),
        None => "The paper has no number.".to_owned(),
    };
    let paper = papers(row).unwrap_or_default();
    let ours = with_interval(row);
    format!("{whose}: {ours} ({metric}; {case}). The paper: {paper}{}. {what}", suffix(*unit))
}

/// Our number with its unit and its interval, where it has one.
fn with_interval(row: &Estimate) -> String {
    let Estimate { unit, low, high, .. } = row;
    let ours = ours(row) + &suffix(*unit);
    match has_interval(row) && !row.is_bound_only() {
        true => format!("{ours} [{}, {}]", number(*unit, *low), number(*unit, *high)),
        false => ours,
    }
}

/// A unit as it follows a number.
fn suffix(unit: Unit) -> String {
    match unit {
        Unit::Count | Unit::Probability => String::new(),
        Unit::Times => " times".to_owned(),
        unit => format!(" {}", unit.name()),
    }
}

/// How far our number lies from the paper's, in a common measure for all units.
fn distance(row: &Estimate) -> f64 {
    let paper = row.paper.unwrap_or(f64::NAN);
    match row.unit {
        Unit::Percent => (row.ours - paper).abs() / 100.0,
        _ => (row.ours / paper).ln().abs(),
    }
}

/// How far our number lies from the paper's, in words.
fn apart(row: &Estimate) -> String {
    let paper = row.paper.unwrap_or(f64::NAN);
    match (row.unit, row.ours / paper) {
        (Unit::Percent, _) => {
            format!("{} points apart", number(row.unit, (row.ours - paper).abs()))
        }
        (_, times) if times >= 2.0 => format!("{times:.1} times the paper's number"),
        (_, times) if times >= 1.0 => {
            format!("{:.1} % above the paper's number", 100.0 * (times - 1.0))
        }
        (_, times) => format!("{:.1} % below the paper's number", 100.0 * (1.0 - times)),
    }
}

/// Our results where no paper has numbers: each metric from its least to its largest.
fn ranges(rows: &[Estimate]) -> String {
    let mut metrics: Vec<(&str, Unit)> = Vec::new();
    for row in rows {
        if !metrics.contains(&(&row.metric, row.unit)) {
            metrics.push((&row.metric, row.unit));
        }
    }
    let range = |&(metric, unit): &(&str, Unit)| {
        let of: Vec<&Estimate> =
            rows.iter().filter(|row| row.metric == metric && row.unit == unit).collect();
        let numbers = || of.iter().map(|row| row.ours).filter(|ours| ours.is_finite());
        match of.as_slice() {
            [only] => format!("{metric}: {}", with_interval(only)),
            _ if numbers().next().is_none() => format!("{metric}: every case is overloaded"),
            all => {
                let (least, most) = (
                    numbers().fold(f64::INFINITY, f64::min),
                    numbers().fold(f64::NEG_INFINITY, f64::max),
                );
                let [least, most] = [least, most].map(|end| number(unit, end));
                format!("{metric}: {least} to {most}{} in {} cases", suffix(unit), all.len())
            }
        }
    };
    let shown: Vec<String> = metrics.iter().take(NAMED_MAX).map(range).collect();
    let rest = match metrics.len().saturating_sub(NAMED_MAX) {
        0 => String::new(),
        1 => "; and one more metric".to_owned(),
        more => format!("; and {more} more metrics"),
    };
    format!("Ours: {}{rest}. No number of a paper is there to be reproduced.", shown.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(paper: Option<f64>, unit: Unit, [ours, low, high]: [f64; 3]) -> Estimate {
        let (case, metric) = ("1 %, eRAID(2)".to_owned(), "mean against normal".to_owned());
        Estimate { case, metric, unit, paper, claim: Claim::Equal, ours, low, high }
    }

    #[test]
    fn our_result_comes_first_then_the_papers_then_whether_it_is_reproduced() {
        let missed = row(Some(-44.0), Unit::Percent, [-33.7, -34.3, -33.2]);
        assert_eq!(
            verdict(std::slice::from_ref(&missed)),
            "Ours: -33.70 % [-34.30, -33.20] (mean against normal; 1 %, eRAID(2)). The paper: -44.00 %. Not \
             reproduced: 10.30 points apart."
        );
        let good = row(Some(-44.0), Unit::Percent, [-43.7, -44.3, -43.2]);
        assert!(
            verdict(&[good.clone(), missed.clone()])
                .contains("Reproduced within our interval. Ours: -33.70 %")
        );
        let (unknown, more) =
            (row(None, Unit::Percent, [1.0; 3]), row(Some(10.0), Unit::Count, [22.0; 3]));
        assert_eq!(
            verdict(&[good.clone(), good.clone(), unknown, more, missed]),
            "Our results reproduce 2 of the paper's 4 numbers within their 95 % intervals. Ours, the farthest off: 22 \
             (mean against normal; 1 %, eRAID(2)). The paper: 10. Not reproduced: 2.2 times the paper's number."
        );
        assert_eq!(
            verdict(&[good.clone(), good.clone(), good.clone(), good]),
            "Our results reproduce all 4 numbers of the paper within their 95 % intervals. Ours, the first: -43.70 % \
             [-44.30, -43.20] (mean against normal; 1 %, eRAID(2)). The paper: -44.00 %. Reproduced within our interval."
        );
        // What has no chance in it has no interval.
        let exact = row(Some(28.0), Unit::Count, [28.0; 3]);
        let all = verdict(&[exact.clone(), exact.clone(), exact.clone(), exact]);
        assert!(
            all.starts_with(
                "Our results reproduce all 4 numbers of the paper. Ours, the first: 28 ("
            ),
            "{all}"
        );
        assert!(all.ends_with("The paper: 28. Reproduced."), "{all}");
        let single = row(Some(10.0), Unit::Millis, [4.0, f64::NEG_INFINITY, f64::INFINITY]);
        let all = verdict(&[single.clone(), single.clone(), single.clone(), single.clone()]);
        assert!(all.starts_with("Ours, the first: 4.00 ms ("), "{all}");
        // What cannot be judged is not called missed, and what we have derived is none of the paper's numbers.
        let exact = row(Some(28.0), Unit::Count, [28.0; 3]);
        let derived = row(Some(1.1), Unit::Times, [1.5; 3]);
        let derived = Estimate { claim: Claim::Derived(0.1), ..derived };
        let all = verdict(&[exact.clone(), exact.clone(), derived, single.clone(), single]);
        assert!(
            all.starts_with(
                "Our results reproduce 2 of the paper's 2 numbers; 2 more have no interval to judge by. Ours, the first"
            ),
            "{all}"
        );
    }

    #[test]
    fn bounds_single_seeds_and_overloads_are_named_as_such() {
        let bound = row(Some(10.0), Unit::Percent, [4.0, 3.0, 5.0]);
        let bound = Estimate { claim: Claim::AtMost, ..bound };
        let single = row(Some(10.0), Unit::Millis, [4.0, f64::NEG_INFINITY, f64::INFINITY]);
        let over = row(Some(10.0), Unit::Millis, [f64::INFINITY, f64::NEG_INFINITY, f64::INFINITY]);
        for (row, ending) in [
            (bound, "The paper: <= 10.00 %. Reproduced within our interval."),
            (single, "The paper: 10.00 ms. One seed has no interval to judge by."),
            (over, "The paper: 10.00 ms. Not reproduced: our array does not carry this load."),
        ] {
            let verdict = verdict(&[row]);
            assert!(verdict.ends_with(ending), "{verdict}");
        }
    }

    #[test]
    fn without_a_papers_number_our_results_are_ranges() {
        let one = row(None, Unit::Times, [0.5, 0.4, 0.6]);
        assert_eq!(
            verdict(std::slice::from_ref(&one)),
            "Ours: mean against normal: 0.500 times [0.400, 0.600]. No number of a paper is there to be reproduced."
        );
        let other = row(None, Unit::Times, [1.5, 1.4, 1.6]);
        let over = row(None, Unit::Times, [f64::INFINITY; 3]);
        assert!(verdict(&[one, over, other]).contains("0.500 to 1.500 times in 3 cases"));
    }
}
