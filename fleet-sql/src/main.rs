//! Whether the answers of SQL engines to the queries of `levelhead-lab fleet sql` are, to the last drive hour, the kernel's.
//!
//! ```text
//!   hours table --> kernel (levelhead-fleet) --> Expected --.
//!        |                                                   >--> equal, or the first difference and exit 1
//!        '--> engine --> name.csv, a file a query ----------'
//! ```
//!
//! `run` asks DataFusion; `check` takes what another engine has written: `beside_duckdb.py` does so for DuckDB.

mod answers;
#[cfg(feature = "datafusion")]
mod engine;

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::{Parser, Subcommand};
use levelhead_fleet::HoursTable;
use levelhead_fleet::analysis::{Kernel, Rules, Scope, Summary};
use levelhead_fleet_io::hours::{Columns, HoursFile};

/// Compare SQL engines with the kernel
#[derive(Parser)]
struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Ask DataFusion all queries of a table, and compare
    #[cfg(feature = "datafusion")]
    Run {
        /// The hours table, Parquet
        table: PathBuf,
        /// How many threads it has
        #[arg(long, default_value_t = 2)]
        threads: usize,
    },
    /// Compare answers that an engine has written: counts.csv, slowdowns.csv, tails.csv, intervals.csv
    Check {
        /// The hours table, Parquet
        table: PathBuf,
        /// The folder of the answers
        answers: PathBuf,
    },
}

fn main() -> anyhow::Result<()> {
    match Args::parse().what {
        #[cfg(feature = "datafusion")]
        What::Run { table, threads } => {
            let answers = engine::ask(&table, threads)?;
            answers::check(&summary_of(&table)?, &answers)
        }
        What::Check { table, answers } => {
            answers::check(&summary_of(&table)?, &answers::read(&answers)?)
        }
    }
}

fn summary_of(path: &Path) -> anyhow::Result<Summary> {
    let file = HoursFile::open(path)?;
    let mut rows = file.part(0..file.row_group_count(), Columns::All)?;
    let mut kernel = Kernel::new(Rules { scope: Scope::Everything, ios_min: 1 });
    let mut table = HoursTable::default();
    while rows.next(&mut table)? {
        kernel.handle(table.hours()).with_context(|| path.display().to_string())?;
    }
    Ok(kernel.finish()?)
}
