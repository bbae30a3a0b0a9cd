//! The program of the benchmarks that are not divan's: see the library.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use bench::drive::{self, Lengths, Row};
use levelhead_report::json;

const USAGE: &str =
    "usage: cargo run --release -p bench -- drive [--json] [--lengths] [WORKLOAD ..]

  --json      rows as JSON
  --lengths   one drive's workloads over 100,000, 1,000,000 and 10,000,000 requests";

fn main() -> ExitCode {
    match run(std::env::args().skip(1)) {
        Ok(text) => {
            println!("{}", text.trim_end());
            ExitCode::SUCCESS
        }
        Err(sentence) => {
            eprintln!("bench: {sentence}\n\n{USAGE}");
            ExitCode::from(2)
        }
    }
}

fn run(args: impl Iterator<Item = String>) -> Result<String, String> {
    let (mut is_json, mut lengths, mut words) = (false, Lengths::One, Vec::new());
    for arg in args {
        match arg.as_str() {
            "--json" => is_json = true,
            "--lengths" => lengths = Lengths::Three,
            option if option.starts_with('-') => {
                return Err(format!("there is no option {option}"));
            }
            _ => words.push(arg),
        }
    }
    match words.split_first() {
        Some((first, names)) if first == "drive" => {
            let rows = drive::run(&drive::chosen(names)?, lengths);
            let as_json = |rows: &[Row]| json::pretty(rows).expect("numbers and names are JSON");
            Ok(if is_json { as_json(&rows) } else { drive::table(&rows).to_text() })
        }
        Some((other, _)) => Err(format!("there is no benchmark {other}")),
        None => Err("which benchmark?".to_owned()),
    }
}
