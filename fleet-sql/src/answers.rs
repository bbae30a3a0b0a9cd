//! Answers as tables of whole numbers, and what the kernel makes of them.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, bail, ensure};
use levelhead_fleet::analysis::{Histogram, Summary};

/// The queries, as `levelhead-lab fleet sql` prints them.
pub const QUERIES: [Query; 4] = [
    Query { name: "counts", sql: include_str!("../../crates/app/src/fleet/sql/counts.sql") },
    Query { name: "slowdowns", sql: include_str!("../../crates/app/src/fleet/sql/slowdowns.sql") },
    Query { name: "tails", sql: include_str!("../../crates/app/src/fleet/sql/tails.sql") },
    Query { name: "intervals", sql: include_str!("../../crates/app/src/fleet/sql/intervals.sql") },
];

/// A query.
pub struct Query {
    pub name: &'static str,
    #[cfg_attr(not(feature = "datafusion"), allow(dead_code, reason = "an engine's"))]
    pub sql: &'static str,
}

/// Rows of an answer, in any order.
pub type Rows = Vec<Vec<i64>>;

/// The answers by the query's name.
pub type Answers = BTreeMap<String, Rows>;

/// Reads the answers of a folder: CSV with a first line.
pub fn read(folder: &Path) -> anyhow::Result<Answers> {
    let mut answers = Answers::new();
    for query in QUERIES {
        let path = folder.join(format!("{}.csv", query.name));
        let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let row = |line: &str| line.split(',').map(|field| field.trim().parse::<i64>()).collect();
        let rows: Result<Rows, _> = text.lines().skip(1).map(row).collect();
        answers.insert(query.name.to_owned(), rows.with_context(|| path.display().to_string())?);
    }
    Ok(answers)
}

/// Compares every answer with the summary's; says how many rows were equal.
pub fn check(summary: &Summary, answers: &Answers) -> anyhow::Result<()> {
    let expected = expected(summary);
    for query in QUERIES {
        let mut rows = answers[query.name].clone();
        rows.sort_unstable();
        let mut wanted = expected[query.name].clone();
        wanted.sort_unstable();
        ensure!(!wanted.is_empty(), "{}: the table has nothing to compare", query.name);
        for (row, wanted) in rows.iter().zip(&wanted) {
            ensure!(row == wanted, "{}: {row:?}, and the kernel has {wanted:?}", query.name);
        }
        if rows.len() != wanted.len() {
            bail!("{}: {} rows, and the kernel has {}", query.name, rows.len(), wanted.len());
        }
        println!("{}: {} rows, equal", query.name, rows.len());
    }
    Ok(())
}

fn expected(summary: &Summary) -> Answers {
    let counts = summary.counts();
    let all = [counts.drive_hours, counts.slow_drive_hours, counts.raid_hours, counts.tail_hours];
    let buckets = |histogram: &Histogram| -> Rows {
        let row = |bucket: levelhead_fleet::analysis::Bucket| {
            vec![bucket.number as i64 - Histogram::ONE as i64, bucket.count as i64]
        };
        histogram.filled().map(row).collect()
    };
    let tails = (1..=3).flat_map(|k| {
        let rows = buckets(summary.tails(k)).into_iter();
        rows.map(move |row| [vec![k as i64], row].concat()).collect::<Rows>()
    });
    let intervals = summary.intervals().into_iter().enumerate().filter(|(_, count)| *count > 0);
    let interval = |(hours, count): (usize, u64)| vec![hours as i64, count as i64];
    Answers::from([
        ("counts".to_owned(), vec![all.map(|count| count as i64).to_vec()]),
        ("slowdowns".to_owned(), buckets(summary.slowdowns())),
        ("tails".to_owned(), tails.collect()),
        ("intervals".to_owned(), intervals.map(interval).collect()),
    ])
}
