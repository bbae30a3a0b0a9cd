//! `levelhead-lab rtl emit`: the erasure engine in hardware as a folder of files.

use std::fs;
use std::path::{Path, PathBuf};

use levelhead_erasure::Code;
use levelhead_planner::Code as NamedCode;
use levelhead_report::json;
use levelhead_rtl::{Emit, File, Kind, Play, SECTOR_SIZES, emit};
use serde::Serialize;

use levelhead_app::{AppError, Show, files};

/// The most bytes of a testbench's tables.
const TABLES_MAX: u64 = 512 << 20;

/// The most symbols of a code that a testbench plays: the work for its coefficients grows with their square.
const LENGTH_MAX: usize = 4096;

/// What is written, and where.
#[derive(Clone, Debug)]
pub struct EmitEngine {
    /// The code of the engine.
    pub code: NamedCode,
    /// Which engine.
    pub kind: Kind,
    /// Bytes of a sector that the testbench plays.
    pub sector_size: usize,
    /// Patterns of each number of erasures that it plays.
    pub patterns: usize,
    /// What its bytes and erasures are drawn from.
    pub seed: u64,
    /// The folder, which is made if it is not there.
    pub folder: PathBuf,
    /// Write over files of the same names in a folder that is not empty.
    pub is_forced: bool,
}

/// What was written.
#[derive(Clone, Debug)]
pub struct EngineShown {
    code: NamedCode,
    kind: Kind,
    seed: u64,
    folder: PathBuf,
    files: Vec<File>,
}

/// Writes the modules, testbench, tables, script and README of an engine.
///
/// # Errors
///
/// A code that no engine has, a sector's size or a count outside of its limits, a folder that is not
/// empty, and files that cannot be written.
pub fn emit_engine(ask: &EmitEngine) -> Result<EngineShown, AppError> {
    let EmitEngine { code, kind, sector_size, patterns, seed, .. } = *ask;
    let engine = code_of(code)?;
    if engine.len() > LENGTH_MAX {
        return Err(AppError::usage(format!(
            "--code {code}: a testbench plays codes of at most {LENGTH_MAX} symbols"
        )));
    }
    let sizes = SECTOR_SIZES;
    if !sizes.contains(&sector_size) || !sector_size.is_power_of_two() {
        let (least, most) = (sizes.start(), sizes.end());
        return Err(AppError::usage(format!(
            "--sector-size {sector_size}: a testbench plays sectors of {least} to {most} bytes, a power of two"
        )));
    }
    if patterns == 0 {
        return Err(AppError::usage("--patterns 0: a testbench plays at least 1".to_owned()));
    }
    if tables(&engine, kind, sector_size, patterns) > TABLES_MAX {
        return Err(AppError::usage(format!(
            "--code {code}, --sector-size {sector_size}, --patterns {patterns}: the tables of its testbench would take \
             more than {} MiB",
            TABLES_MAX >> 20
        )));
    }
    check_is_free(&ask.folder, ask.is_forced)?;
    let play = Play::Patterns(patterns);
    let files = emit(&Emit { code: &engine, kind, sector_size, play, seed })
        .map_err(|problem| AppError::usage(format!("--code {code}: {problem}")))?;
    fs::create_dir_all(&ask.folder).map_err(|error| files::about(&ask.folder, &error))?;
    for file in &files {
        files::write_whole(&ask.folder.join(file.name), |out| out.write_all(file.text.as_bytes()))?;
    }
    Ok(EngineShown { code, kind, seed, folder: ask.folder.clone(), files })
}

fn code_of(code: NamedCode) -> Result<Code, AppError> {
    let count = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
    Code::new(count(code.data), count(code.redundant))
        .map_err(|problem| AppError::usage(format!("--code {code}: {problem}")))
}

/// About how many bytes the tables of a testbench take: a line of 37 for 16 bytes of a sector, one of 5 for a
/// coefficient.
fn tables(code: &Code, kind: Kind, sector_size: usize, patterns: usize) -> u64 {
    let [length, redundant, size, patterns] =
        [code.len(), code.redundant(), sector_size, patterns].map(|count| count as u64);
    let of = |count: u64, bytes: u64| count.saturating_mul(bytes);
    match kind {
        Kind::Sector => {
            let group = of(length, size / 16 * 37 + 5 * redundant);
            of(of(patterns, redundant).saturating_add(1), group)
        }
        Kind::Polynomial => of(of(patterns, 10), 3 * length),
    }
}

fn check_is_free(folder: &Path, is_forced: bool) -> Result<(), AppError> {
    let is_empty = match fs::read_dir(folder) {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => true,
        Err(error) => return Err(files::about(folder, &error)),
    };
    if is_empty || is_forced {
        return Ok(());
    }
    let folder = folder.display();
    Err(AppError::usage(format!(
        "{folder} is not empty; --force writes over files of the same names"
    )))
}

#[derive(Serialize)]
struct FileJson {
    name: &'static str,
    bytes: usize,
}

#[derive(Serialize)]
struct Json {
    code: String,
    kind: &'static str,
    seed: u64,
    folder: String,
    files: Vec<FileJson>,
}

impl Show for EngineShown {
    fn text(&self) -> String {
        let mut text = format!(
            "{} {} of seed {}, in {}:\n",
            self.kind,
            self.code,
            self.seed,
            self.folder.display()
        );
        for File { name, text: content } in &self.files {
            text.push_str(&format!("  {name:<17} {:>10} bytes\n", content.len()));
        }
        text
    }

    fn json(&self) -> String {
        let file = |File { name, text }: &File| FileJson { name, bytes: text.len() };
        json::pretty(&Json {
            code: self.code.to_string(),
            kind: self.kind.name(),
            seed: self.seed,
            folder: self.folder.display().to_string(),
            files: self.files.iter().map(file).collect(),
        })
        .expect("these are plain values")
    }
}
