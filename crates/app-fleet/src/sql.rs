//! `levelhead-lab fleet sql`: the same counts in SQL that engines share, for fleets that live in a warehouse.

use levelhead_report::{Column, Table, json};
use levelhead_units::meant;
use serde::Serialize;

use levelhead_app::{AppError, Show};

/// A query.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Query {
    /// What it is called.
    pub name: &'static str,
    /// What it counts.
    pub what: &'static str,
    /// The query.
    pub sql: &'static str,
}

/// All queries.
const QUERIES: [Query; 4] = [
    Query {
        name: "counts",
        what: "drive hours and group hours, and how many are slow",
        sql: include_str!("sql/counts.sql"),
    },
    Query {
        name: "slowdowns",
        what: "drive hours by slowdown",
        sql: include_str!("sql/slowdowns.sql"),
    },
    Query {
        name: "tails",
        what: "group hours by their three largest slowdowns",
        sql: include_str!("sql/tails.sql"),
    },
    Query {
        name: "intervals",
        what: "slow intervals by their length",
        sql: include_str!("sql/intervals.sql"),
    },
];

/// The query of this name.
///
/// # Errors
///
/// There is none.
pub fn query(name: &str) -> Result<Query, AppError> {
    let known = QUERIES.into_iter().find(|query| query.name == name);
    known.ok_or_else(|| {
        let names = QUERIES.map(|query| query.name);
        let (expected, meant) = (names.join(", "), meant(name, names));
        AppError::usage(format!("'{name}' is not a query: expected one of {expected}{meant}"))
    })
}

impl Show for Query {
    fn text(&self) -> String {
        self.sql.to_owned()
    }

    fn json(&self) -> String {
        json::pretty(self).expect("texts are JSON")
    }
}

/// The names of all queries.
#[derive(Clone, Copy, Debug)]
pub struct Queries;

impl Show for Queries {
    fn text(&self) -> String {
        let mut table = Table::new([Column::left("query"), Column::left("counts")]);
        for query in QUERIES {
            table.push([query.name, query.what]);
        }
        table.to_text()
    }

    fn json(&self) -> String {
        json::pretty(&QUERIES).expect("texts are JSON")
    }
}
