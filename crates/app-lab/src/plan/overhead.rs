//! `levelhead-lab plan overhead`: the space that local erasure coding takes of files as they are.

use std::path::{Path, PathBuf};

use levelhead_host::{Walked, walk};
use levelhead_planner::Code;
use levelhead_planner::capacity::{FileSizes, HIVEBENCH, PAGERANK, overhead, overhead_of_classes};
use levelhead_report::{Axis, Column, Figure, Interval, Series, Table};
use levelhead_units::{Bytes, SECTOR_SIZE};

use super::answer::{Answer, Row};
use super::percent;
use levelhead_app::{AppError, Progress, files};

/// What is asked.
#[derive(Clone, Debug)]
pub struct OverheadAsk {
    /// The files.
    pub files: Files,
    /// The codes to compare.
    pub codes: Vec<Code>,
    /// Where an HTML page goes, if anywhere.
    pub report: Option<PathBuf>,
}

/// Where the sizes of files come from.
#[derive(Clone, Debug)]
pub enum Files {
    /// All files below a folder.
    Scan(PathBuf),
    /// A table `SIZE,COUNT`.
    Csv(PathBuf),
    /// The mixes that the paper describes.
    Published,
}

/// The largest table of sizes that is read.
const CSV_MAX: u64 = 256 << 20;

/// Capacity overhead of each code.
///
/// # Errors
///
/// The files cannot be read or are no table, or the page cannot be written.
pub fn plan_overhead(ask: &OverheadAsk, progress: &dyn Progress) -> Result<Answer, AppError> {
    if let Some(path) = &ask.report {
        files::check_place(path)?;
    }
    let mut answer = Answer::new("overhead", "Space that local erasure coding takes");
    answer.assumptions = vec![
        "every file has its own groups; the last one is shortened and keeps all redundant sectors"
            .to_owned(),
        "sizes are rounded up to whole sectors of 4 KiB; empty files take nothing".to_owned(),
    ];
    match &ask.files {
        Files::Published => published(&mut answer, ask),
        Files::Csv(path) => {
            let sizes = read_csv(path)?;
            answer.facts.push(("sizes from", path.display().to_string()));
            of_files(&mut answer, ask, &sizes);
        }
        Files::Scan(root) => {
            let (sizes, walked) = scan(root, progress)?;
            answer.facts.push(("scanned", root.display().to_string()));
            of_files(&mut answer, ask, &sizes);
            add_walk(&mut answer, walked);
        }
    }
    answer.with_report(ask.report.as_deref())
}

fn read_csv(path: &Path) -> Result<FileSizes, AppError> {
    let about =
        |error: &dyn std::fmt::Display| AppError::usage(format!("{}: {error}", path.display()));
    let text = files::read_text(path, CSV_MAX)?;
    let sizes = FileSizes::from_csv(&text).map_err(|sentence| about(&sentence))?;
    if sizes.files() == 0 {
        return Err(about(&"no sizes in it"));
    }
    Ok(sizes)
}

fn scan(root: &Path, progress: &dyn Progress) -> Result<(FileSizes, Walked), AppError> {
    files::check_folder(root)?;
    let task = progress.begin("names", 0);
    let mut sizes = FileSizes::new();
    let walked = walk(root, &mut |size| sizes.add(size, 1), &mut |seen| task.reach(seen));
    let walked = walked.map_err(|error| AppError::usage(format!("{}: {error}", root.display())))?;
    Ok((sizes, walked))
}

fn add_walk(answer: &mut Answer, walked: Walked) {
    let counts = [
        ("folders", walked.folders),
        ("links, not followed", walked.links),
        ("further names of counted files", walked.further_names),
        ("folders of other file systems, not entered", walked.mounts),
        ("unreadable folders", walked.unreadable_folders),
        ("unreadable files", walked.unreadable_files),
        ("devices, pipes and sockets", walked.others),
    ];
    for (name, count) in counts {
        answer.rows.push(Row::new("scan", name, "count", count as f64));
        if count > 0 {
            answer.facts.push((name, count.to_string()));
        }
    }
    answer.assumptions.push(
        "sizes are lengths: holes of sparse files count as data, and a file with several names once"
            .to_owned(),
    );
}

fn of_files(answer: &mut Answer, ask: &OverheadAsk, sizes: &FileSizes) {
    let bytes = sizes.sectors() * SECTOR_SIZE as u128;
    answer.facts.push(("files", format!("{}, {} of them empty", sizes.files(), sizes.empty())));
    let shown = u64::try_from(bytes).map_or_else(|_| bytes.to_string(), |b| Bytes::new(b).short());
    answer.facts.push(("whole sectors", shown));
    answer.rows.push(Row::new("files", "files", "count", sizes.files() as f64));
    let heads = [Column::left("code"), Column::right("overhead"), Column::right("large files")];
    let mut table = Table::new(heads);
    for &code in &ask.codes {
        let share = overhead(sizes, code);
        table.push([code.to_string(), percent(share), percent(code.redundancy())]);
        answer.rows.push(Row::new(format!("code {code}"), "overhead", "%", share * 100.0));
    }
    answer.tables = vec![("", table)];
    answer.figures = vec![by_size(sizes)];
}

/// Shares of files and of bytes up to a size.
fn by_size(sizes: &FileSizes) -> Figure {
    let (mut files, mut sectors) = (0, 0_u128);
    let mut curves = [Vec::new(), Vec::new()];
    let all = (sizes.files() - sizes.empty()).max(1) as f64;
    let all_sectors = sizes.sectors().max(1) as f64;
    for (size, count) in sizes.iter() {
        files += count;
        sectors += u128::from(size.get()) * u128::from(count);
        let at = size.bytes().get() as f64;
        curves[0].push((at, files as f64 / all));
        curves[1].push((at, sectors as f64 / all_sectors));
    }
    let [of_files, of_bytes] = curves;
    Figure::lines(
        "Files by size",
        Axis::log("size (bytes, whole sectors)"),
        Axis::linear("share at or below"),
        vec![Series::step("files", of_files), Series::step("bytes", of_bytes)],
    )
}

fn published(answer: &mut Answer, ask: &OverheadAsk) {
    let heads = ["code", "files", "overhead", "at least", "at most"];
    let columns = heads
        .iter()
        .enumerate()
        .map(|(at, name)| if at < 2 { Column::left(*name) } else { Column::right(*name) });
    let mut table = Table::new(columns);
    let kinds = [("pagerank", PAGERANK.as_slice()), ("hivebench", HIVEBENCH.as_slice())];
    let mut bars = vec![Vec::new(); kinds.len()];
    let mut bounds = vec![Vec::new(); kinds.len()];
    for &code in &ask.codes {
        for (((kind, classes), bars), bounds) in kinds.into_iter().zip(&mut bars).zip(&mut bounds) {
            let range = overhead_of_classes(classes, code);
            let [low, even, high] = [range.low, range.even, range.high].map(|share| share * 100.0);
            table.push([
                code.to_string(),
                kind.to_owned(),
                percent(range.even),
                percent(range.low),
                percent(range.high),
            ]);
            bars.push(even);
            bounds.push(Interval { low, high });
            let row = Row::new(format!("code {code}, {kind}"), "overhead", "%", even);
            answer.rows.push(row.between(low, high));
        }
    }
    answer.tables = vec![("", table)];
    answer.assumptions.push(
        "of pagerank and hivebench only shares of bytes by class of size are published; within a class \
         bytes are spread evenly over the sizes, and the bounds put all files at its best or worst"
            .to_owned(),
    );
    let codes: Vec<String> = ask.codes.iter().map(Code::to_string).collect();
    let groups: Vec<&str> = codes.iter().map(String::as_str).collect();
    let series: Vec<(&str, &[f64])> =
        kinds.iter().zip(&bars).map(|((kind, _), bars)| (*kind, bars.as_slice())).collect();
    let bars = Figure::bars("Capacity overhead", Axis::linear("overhead (%)"), &groups, &series);
    let figure = kinds
        .iter()
        .zip(&bounds)
        .fold(bars, |figure, ((kind, _), bounds)| figure.with_intervals(kind, bounds));
    answer.figures = vec![figure.with_note("Whiskers: at least and at most.")];
}
