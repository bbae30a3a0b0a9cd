//! The erasure engine in hardware under the tools: played against its tables, and counted.
//!
//! Of each code and kind: verilator's lint; iverilog with an encoding and a decoding; verilator with 20 patterns
//! of each number of erasures; both simulators with stalls of both sides. For the table: ten groups in a
//! row without stalls, with sectors of 4,096 bytes, and yosys.

mod programs;

#[cfg(test)]
mod tests;

use std::error::Error;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use levelhead_rtl::{
    COMMITTED, Emit, Gates, Kind, PAPER, Play, Published, Row, bytes_of_beat, emit, modules,
};

use self::programs::{Played, Simulator};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// Which codes, and how much of them; `cargo xtask rtl --help` says it in words.
#[derive(Default)]
struct Wish {
    codes: Vec<Published>,
    is_table: bool,
    is_json: bool,
    is_kept: bool,
    seed: u64,
}

impl Wish {
    fn read(mut words: impl Iterator<Item = String>) -> Result<Self> {
        let mut wish = Self::default();
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or_else(|| format!("{word} has no value"));
            match word.as_str() {
                "--code" => wish.codes.push(code(&value()?)?),
                "--seed" => wish.seed = value()?.parse()?,
                "--table" => wish.is_table = true,
                "--json" => wish.is_json = true,
                "--keep" => wish.is_kept = true,
                _ => return Err(format!("'{word}' is not an option").into()),
            }
        }
        if wish.is_kept && !wish.codes.is_empty() {
            return Err("--keep is of all codes".into());
        }
        Ok(wish)
    }
}

/// One of the paper's codes.
fn code(text: &str) -> std::result::Result<Published, String> {
    let is_named = |of: &&Published| format!("{},{}", of.redundant, of.data) == text;
    let names = || PAPER.map(|of| format!("{},{}", of.redundant, of.data)).join(" ");
    PAPER.iter().find(is_named).copied().ok_or_else(|| format!("expected one of {}", names()))
}

/// Bytes of a sector in runs with stalls, and in those for throughput.
const SHORT: usize = 256;
const WHOLE: usize = 4096;

/// In how many of 8 cycles each side rests.
const STALLS: u32 = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Lint,
    Iverilog,
    Verilator,
    Throughput,
    Gates,
}

/// One run of a tool.
#[derive(Clone, Copy, Debug)]
struct Job {
    published: Published,
    kind: Kind,
    step: Step,
}

/// What a run has found.
#[derive(Clone, Copy, Debug)]
enum Found {
    Nothing,
    BytesPerCycle(f64),
    Gates(Gates),
}

struct Done {
    job: Job,
    found: Result<Found>,
}

/// Runs it all, a line for each run on standard error, then the table.
fn main() -> ExitCode {
    run().unwrap_or_else(|problem| {
        eprintln!("rtl: {problem}");
        ExitCode::from(2)
    })
}

fn run() -> Result<ExitCode> {
    let wish = Wish::read(std::env::args().skip(1))?;
    programs::check()?;
    let codes = if wish.codes.is_empty() { PAPER.to_vec() } else { wish.codes.clone() };
    let jobs = jobs(&codes, wish.is_table);
    eprintln!("seed {}, {} runs", wish.seed, jobs.len());
    let done = all(&jobs, wish.seed);
    let failed = done.iter().filter(|done| done.found.is_err()).count();
    let rows = rows(&codes, &done);
    if wish.is_json {
        println!("{}", json(&rows)?);
    } else {
        print!("{}", text(&rows));
    }
    if failed > 0 {
        eprintln!("rtl: {failed} of {} runs failed", done.len());
        return Ok(ExitCode::FAILURE);
    }
    if wish.is_kept {
        let place = Path::new(env!("CARGO_MANIFEST_DIR")).join(COMMITTED);
        std::fs::write(&place, Row::write(&rows))?;
        eprintln!("rtl: kept in {}", place.display());
    }
    Ok(ExitCode::SUCCESS)
}

/// What there is to do, the longest runs first.
fn jobs(codes: &[Published], is_table: bool) -> Vec<Job> {
    let steps: &[Step] = if is_table {
        &[Step::Gates, Step::Throughput]
    } else {
        &[Step::Gates, Step::Iverilog, Step::Verilator, Step::Throughput, Step::Lint]
    };
    let mut codes = codes.to_vec();
    codes.sort_by_key(|code| std::cmp::Reverse(code.redundant * code.data));
    let of_step = |&step: &Step| {
        let of_code = move |published| Kind::ALL.map(|kind| Job { published, kind, step });
        codes.iter().copied().flat_map(of_code).collect::<Vec<_>>()
    };
    steps.iter().flat_map(of_step).collect()
}

/// Does all of it, as many at once as there are processors.
fn all(jobs: &[Job], seed: u64) -> Vec<Done> {
    let workers = thread::available_parallelism().map_or(1, usize::from);
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some(&job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let begun = Instant::now();
                    let found = one(job, seed);
                    let Job { published: Published { redundant, data, .. }, kind, step } = job;
                    let end = match &found {
                        Ok(Found::Nothing) => "good".to_owned(),
                        Ok(Found::BytesPerCycle(bytes)) => format!("{bytes:.2} bytes a cycle"),
                        Ok(Found::Gates(gates)) => {
                            format!(
                                "{:.0} XOR equivalents, depth {}",
                                gates.xor_equivalent(),
                                gates.depth
                            )
                        }
                        Err(problem) => format!("FAILED: {problem}"),
                    };
                    let seconds = begun.elapsed().as_secs();
                    eprintln!("{kind} {redundant},{data} {step:?}: {end} ({seconds} s)");
                    done.lock().expect("no worker panics with it").push(Done { job, found });
                }
            });
        }
    });
    done.into_inner().expect("no worker panics with it")
}

/// Does one of it.
fn one(job: Job, seed: u64) -> Result<Found> {
    let Job { published, kind, step } = job;
    let code = published.code();
    let folder = tempfile::tempdir()?;
    let (play, sector_size) = match step {
        Step::Lint | Step::Gates | Step::Iverilog => (Play::Row(2), SHORT),
        Step::Verilator => (Play::Patterns(20), SHORT),
        Step::Throughput => (Play::Row(10), WHOLE),
    };
    programs::write(folder.path(), &emit(&Emit { code: &code, kind, sector_size, play, seed })?)?;
    // The polynomial encoder has few beats and much to compile.
    let verilator = Simulator::Verilator { is_optimised: kind == Kind::Sector };
    Ok(match step {
        Step::Lint => {
            programs::lint(folder.path(), kind.name(), &modules(&code, kind)?)?;
            Found::Nothing
        }
        Step::Iverilog => {
            programs::play(folder.path(), Simulator::Iverilog, STALLS)?;
            Found::Nothing
        }
        Step::Verilator => {
            programs::play(folder.path(), verilator, STALLS)?;
            Found::Nothing
        }
        Step::Throughput => {
            let simulator = match kind {
                Kind::Sector => verilator,
                Kind::Polynomial => Simulator::Iverilog,
            };
            let played = programs::play(folder.path(), simulator, 0)?;
            if played.latency != kind.latency() {
                return Err(format!("{played:?}, and its README says another latency").into());
            }
            Found::BytesPerCycle(bytes_per_cycle(published, kind, played))
        }
        Step::Gates => Found::Gates(programs::gates(folder.path())?),
    })
}

/// Bytes of data that went in for each cycle: the padding of a codeword's first beat is not data.
fn bytes_per_cycle(published: Published, kind: Kind, played: Played) -> f64 {
    bytes_of_beat(&published.code(), kind) * played.beats as f64 / played.cycles as f64
}

/// Rows of the codes of which both figures were found, in the paper's order.
fn rows(codes: &[Published], done: &[Done]) -> Vec<Row> {
    let mut rows = Vec::new();
    for kind in Kind::ALL {
        for &published in codes {
            let of_it =
                done.iter().filter(|done| done.job.kind == kind && done.job.published == published);
            let (mut gates, mut bytes) = (None, None);
            for found in of_it.filter_map(|done| done.found.as_ref().ok()) {
                match *found {
                    Found::Nothing => {}
                    Found::BytesPerCycle(figure) => bytes = Some(figure),
                    Found::Gates(figure) => gates = Some(figure),
                }
            }
            let (Some(gates), Some(bytes_per_cycle)) = (gates, bytes) else { continue };
            let ram_bits = Row::ram_bits(kind, &published.code());
            rows.push(Row { published, kind, gates, ram_bits, bytes_per_cycle });
        }
    }
    rows
}

/// The table as `docs/rtl.md` has it.
fn text(rows: &[Row]) -> String {
    let mut text = String::from(
        "| kind       | code    |    XOR |  other | flip-flops | RAM bits |  XOR eq. | NAND2 eq. | depth | bytes a cycle | paper: encoder | decoder |\n\
         |------------|---------|-------:|-------:|-----------:|---------:|---------:|----------:|------:|--------------:|---------------:|--------:|\n",
    );
    for row in rows {
        let Published { redundant, data, encoder, decoder } = row.published;
        let Gates { xor, and, flip_flops, depth, .. } = row.gates;
        let (kind, code) = (row.kind.name(), format!("{redundant},{data}"));
        let (xors, nands) = (row.gates.xor_equivalent(), row.gates.nand2_equivalent());
        let (ram, bytes) = (row.ram_bits, row.bytes_per_cycle);
        text.push_str(&format!(
            "| {kind:<10} | {code:<7} | {xor:>6} | {and:>6} | {flip_flops:>10} | {ram:>8} | {xors:>8.0} \
             | {nands:>9.0} | {depth:>5} | {bytes:>13.2} | {encoder:>14} | {decoder:>7} |\n"
        ));
    }
    text
}

fn json(rows: &[Row]) -> Result<String> {
    let row = |row: &Row| {
        let Row { published: Published { redundant, data, encoder, decoder }, gates, .. } = row;
        serde_json::json!({
            "code": format!("{redundant},{data}"),
            "kind": row.kind.name(),
            "xor": gates.xor,
            "and": gates.and,
            "flip_flops": gates.flip_flops,
            "ram_bits": row.ram_bits,
            "nand2_equivalent": gates.nand2_equivalent(),
            "xor_equivalent": gates.xor_equivalent(),
            "depth": gates.depth,
            "bytes_per_cycle": row.bytes_per_cycle,
            "paper_encoder": encoder,
            "paper_decoder": decoder,
        })
    };
    Ok(serde_json::to_string_pretty(&rows.iter().map(row).collect::<Vec<_>>())?)
}
