//! The queries of `levelhead-lab fleet sql` in DataFusion and DuckDB over a made-up fleet of 23 million drive hours: their answers are the
//! kernel's to the last drive hour, and what each took is printed.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};

use crate::programs::{cargo, good, target_folder};

/// How `beside_duckdb.py` ends where the module is not there.
const NO_MODULE: i32 = 3;

pub(super) fn run(root: &Path) -> anyhow::Result<()> {
    let engines = root.join("fleet-sql");
    good(cargo(root).args(["build", "--release", "--package", "levelhead-cli-lab"]))?;
    good(cargo(&engines).args(["build", "--release"]))?;
    let levelhead = target_folder(root)?.join("release/levelhead-lab");
    let program = target_folder(&engines)?.join("release/levelhead-fleet-sql");
    let folder = target_folder(root)?.join("soak-fleet");
    std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    let (table, answers) = (folder.join("fleet.parquet"), folder.join("answers"));
    let size = ["fleet", "generate", "--groups", "1000", "--hours", "2160", "--out"];
    good(Command::new(&levelhead).args(size).arg(&table))?;
    println!("soak: DataFusion");
    good(Command::new(&program).arg("run").arg(&table))?;
    println!("soak: DuckDB");
    let mut beside = Command::new("python3");
    beside.arg(engines.join("beside_duckdb.py")).arg(&levelhead).arg(&table).arg(&answers);
    let status = beside.status().context("python3 cannot be run")?;
    if status.code() == Some(NO_MODULE) {
        println!("soak: DuckDB was left out: there is no Python module duckdb");
    } else {
        ensure!(status.success(), "beside_duckdb.py ended with {status}");
        good(Command::new(&program).arg("check").arg(&table).arg(&answers))?;
    }
    std::fs::remove_dir_all(&folder).with_context(|| folder.display().to_string())
}
