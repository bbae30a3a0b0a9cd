//! Measurements that outlive the process, so that a later run goes on from them.
//!
//! ```text
//!   {"study":"level.all","version":"0.1.0","seed":7,"options":{..},"shard":"1/1"}    the question
//!   {"cell":0,"seed":0,"values":{"mean":17.4,..},"quantiles":[..]}                   a job
//!   {"cell":2,"seed":0,"values":{"mean":16.9,..},"quantiles":[..]}                   in any order
//!   {"cell":1,"seed":0,"val                                                          torn
//! ```
//!
//! - J1. A line is there once its line break is. What follows the last line break was being written
//!   when the process ended; it is cut off, and measured again.
//! - J2. A file that is refused is left as it is.
//! - J3. After a write that has failed there is no other, so that only the last line can be torn.
//! - J4. One process at a time has the file: it is locked.
//!
//! Lines survive the end of the process, however it ends, and not a power cut: nothing is flushed to
//! the disk.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use levelhead_lab::studies::{Job, Measured};
use levelhead_units::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::PART_MAX;
use super::record::{Done, Question};
use levelhead_app::AppError;

/// What has been measured so far.
#[derive(Debug)]
pub(super) struct Journal {
    measured: BTreeMap<Job, Measured>,
    keeper: Keeper,
}

/// Who remembers it.
#[derive(Debug)]
enum Keeper {
    Memory,
    File(LineFile),
}

impl Journal {
    /// An empty one that ends with the process.
    pub(super) fn in_memory() -> Self {
        Self { measured: BTreeMap::new(), keeper: Keeper::Memory }
    }

    /// The one at `path`, with those of `jobs` that are in it; begun if it is not there.
    pub(super) fn open(path: &Path, question: &Question, jobs: &[Job]) -> Result<Self, AppError> {
        let mut lines = LineFile::claim(path)?;
        let content = lines.content()?;
        let found = Found::read(&content, question, jobs)
            .map_err(|problem| AppError::usage(format!("{}{problem}", path.display())))?;
        lines.cut(found.length)?;
        if found.length == 0 {
            lines.push(question)?;
        }
        Ok(Self { measured: found.measured, keeper: Keeper::File(lines) })
    }

    pub(super) fn measured(&self) -> &BTreeMap<Job, Measured> {
        &self.measured
    }

    pub(super) fn into_measured(self) -> BTreeMap<Job, Measured> {
        self.measured
    }

    /// Keeps what came of a job. Not to be called again once it has failed (J3).
    pub(super) fn add(&mut self, job: Job, measured: Measured) -> Result<(), AppError> {
        if let Keeper::File(lines) = &mut self.keeper {
            lines.push(&Done::new(job, &measured))?;
        }
        let before = self.measured.insert(job, measured);
        assert!(before.is_none(), "a job is measured once");
        Ok(())
    }
}

/// What a file has.
#[derive(Debug)]
struct Found {
    measured: BTreeMap<Job, Measured>,
    /// How many bytes its whole lines have.
    length: usize,
}

impl Found {
    /// Reads a file's whole lines; a problem is what comes after the file's name in a sentence.
    fn read(content: &[u8], question: &Question, jobs: &[Job]) -> Result<Self, String> {
        let length = content.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let mut lines = content[..length].split_inclusive(|byte| *byte == b'\n').zip(1..);
        let Some((first, _)) = lines.next() else {
            // A file of something else is not to be overwritten.
            return match line(question).as_bytes().starts_with(content) {
                true => Ok(Self { measured: BTreeMap::new(), length }),
                false => Err(" is not the journal of a study".to_owned()),
            };
        };
        let theirs: Question = parsed(first)
            .map_err(|problem| format!(" is not the journal of a study, line 1: {problem}"))?;
        if let Some(difference) = theirs.difference(question) {
            return Err(format!(" is the journal of another question: {difference}"));
        }
        let jobs: BTreeSet<Job> = jobs.iter().copied().collect();
        let mut measured = BTreeMap::new();
        for (text, number) in lines {
            let about = |problem| format!(", line {number}: {problem}");
            let done = job_of(text, &jobs).map_err(about)?;
            if measured.insert(done.job(), done.measured()).is_some() {
                return Err(about(format!("{} is there twice", named(done.job()))));
            }
        }
        Ok(Self { measured, length })
    }
}

/// What a line has, if that is one of `jobs`.
fn job_of(line: &[u8], jobs: &BTreeSet<Job>) -> Result<Done, String> {
    let done: Done = parsed(line)?;
    if !jobs.contains(&done.job()) {
        return Err(format!("{} is not of this question", named(done.job())));
    }
    if !done.is_whole() {
        return Err(format!("{} has a distribution that is cut short", named(done.job())));
    }
    Ok(done)
}

/// A job as its line has it.
fn named(job: Job) -> String {
    format!("cell {} with seed {}", job.cell, job.seed)
}

/// A value of a line; a problem without serde's own count of lines.
fn parsed<T: DeserializeOwned>(line: &[u8]) -> Result<T, String> {
    serde_json::from_slice(line).map_err(|error| {
        let text = error.to_string();
        let (problem, _) = text.rsplit_once(" at line ").unwrap_or((&text, ""));
        format!("{problem} at column {}", error.column())
    })
}

fn line(value: &impl Serialize) -> String {
    let mut text = serde_json::to_string(value).expect("numbers and names are JSON");
    text.push('\n');
    text
}

/// A file of lines that belongs to this process.
#[derive(Debug)]
struct LineFile {
    path: PathBuf,
    file: File,
}

impl LineFile {
    /// Opens the file at `path`, which is made if it is not there, and locks it.
    fn claim(path: &Path) -> Result<Self, AppError> {
        let name = path.display();
        if fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
            return Err(AppError::usage(format!("{name} is not a regular file")));
        }
        let opened = OpenOptions::new().read(true).append(true).create(true).open(path);
        let file = opened.map_err(|error| AppError::usage(format!("{name}: {error}")))?;
        match file.try_lock() {
            Ok(()) => Ok(Self { path: path.to_owned(), file }),
            Err(TryLockError::WouldBlock) => {
                Err(AppError::usage(format!("{name} is in use by another run")))
            }
            Err(TryLockError::Error(error)) => {
                Err(AppError::usage(format!("cannot lock {name}: {error}")))
            }
        }
    }

    fn content(&self) -> Result<Vec<u8>, AppError> {
        let name = self.path.display();
        let fail = |error: std::io::Error| AppError::usage(format!("{name}: {error}"));
        if self.file.metadata().map_err(fail)?.len() > PART_MAX {
            let most = Bytes::new(PART_MAX);
            return Err(AppError::usage(format!("{name} is too long: at most {most} are read")));
        }
        let mut content = Vec::new();
        (&self.file).take(PART_MAX).read_to_end(&mut content).map_err(fail)?;
        Ok(content)
    }

    /// Cuts off what lies behind the first `length` bytes.
    fn cut(&self, length: usize) -> Result<(), AppError> {
        self.file.set_len(length as u64).map_err(|error| self.failed(&error))
    }

    /// Adds a line at the end, in one write where the system takes it whole.
    fn push(&mut self, value: &impl Serialize) -> Result<(), AppError> {
        self.file.write_all(line(value).as_bytes()).map_err(|error| self.failed(&error))
    }

    fn failed(&self, error: &std::io::Error) -> AppError {
        AppError::trouble(format!("cannot write {}: {error}", self.path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::Options;
    use super::*;

    const JOBS: [Job; 3] =
        [Job { cell: 0, seed: 0 }, Job { cell: 1, seed: 0 }, Job { cell: 0, seed: 1 }];

    fn question(seed: u64) -> Question {
        Question {
            study: "made.up".to_owned(),
            version: "1".to_owned(),
            seed,
            options: Options { quick: true, seeds: 2, traces: vec!["ü".to_owned()] },
            shard: "1/1".to_owned(),
        }
    }

    fn measured(at: usize) -> Measured {
        Measured::default().with("mean", 0.1 + at as f64).with("worst", f64::INFINITY)
    }

    /// A folder, and in it a journal of all of [`JOBS`].
    fn journal() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let mut journal = Journal::open(&path, &question(7), &JOBS).unwrap();
        for (at, job) in JOBS.into_iter().enumerate() {
            journal.add(job, measured(at)).unwrap();
        }
        (folder, path)
    }

    fn refusal(path: &Path) -> String {
        let before = fs::read(path).unwrap();
        let problem = Journal::open(path, &question(7), &JOBS).unwrap_err();
        assert_eq!(fs::read(path).unwrap(), before, "J2");
        assert!(matches!(problem, AppError::Usage(_)), "{problem:?}");
        problem.to_string().strip_prefix(path.to_str().unwrap()).expect("it is named").to_owned()
    }

    /// J1: cut anywhere, what is read are the whole lines, and what is written goes on behind them.
    #[test]
    fn a_journal_cut_at_any_byte_goes_on_from_its_last_whole_line() {
        let (_folder, path) = journal();
        let whole = fs::read(&path).unwrap();
        for length in 0..=whole.len() {
            fs::write(&path, &whole[..length]).unwrap();
            let mut journal = Journal::open(&path, &question(7), &JOBS).unwrap();
            let lines = whole[..length].iter().filter(|byte| **byte == b'\n').count();
            let count = lines.saturating_sub(1);
            let wanted = JOBS.into_iter().enumerate().take(count);
            let wanted: BTreeMap<Job, Measured> =
                wanted.map(|(at, job)| (job, measured(at))).collect();
            assert_eq!(journal.measured(), &wanted, "{length}");
            for (at, job) in JOBS.into_iter().enumerate().skip(count) {
                journal.add(job, measured(at)).unwrap();
            }
            assert!(fs::read(&path).unwrap() == whole, "{length}");
        }
    }

    #[test]
    fn a_journal_of_another_question_is_refused_and_left_alone() {
        let (_folder, path) = journal();
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, text.replace("\"seed\":7", "\"seed\":8") + "{\"torn").unwrap();
        assert_eq!(refusal(&path), " is the journal of another question: its seed is 8, not 7",);
    }

    #[test]
    fn lines_that_do_not_belong_are_named() {
        let (_folder, path) = journal();
        let text = fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let last = text.clone() + lines[3] + "\n";
        let short = text.replacen("\"quantiles\":[]", "\"quantiles\":[1.5]", 1);
        let foreign = text.replacen("\"cell\":1", "\"cell\":2", 1);
        for (content, sentence) in [
            (last, ", line 5: cell 0 with seed 1 is there twice"),
            (short, ", line 2: cell 0 with seed 0 has a distribution that is cut short"),
            (foreign, ", line 3: cell 2 with seed 0 is not of this question"),
            (text.clone() + "\n{", ", line 5: EOF while parsing a value at column 0"),
            (text.replacen("{\"cell\":1", "[\"cell\":1", 1), ", line 3: invalid type: "),
            (text.replacen("\"values\"", "\"value\"", 1), ", line 2: missing field `values`"),
            (lines[1].to_owned() + "\n", " is not the journal of a study, line 1: missing field"),
            ("groceries\n".to_owned(), " is not the journal of a study, line 1: expected value"),
            ("groceries".to_owned(), " is not the journal of a study"),
            (lines[0].replace("made", "make"), " is not the journal of a study"),
        ] {
            fs::write(&path, &content).unwrap();
            let said = refusal(&path);
            assert!(said.starts_with(sentence), "{said} for {content}");
        }
    }

    #[test]
    fn one_process_at_a_time_has_a_journal() {
        let (_folder, path) = journal();
        let first = Journal::open(&path, &question(7), &JOBS).unwrap();
        assert_eq!(refusal(&path), " is in use by another run");
        drop(first);
        assert_eq!(Journal::open(&path, &question(7), &JOBS).unwrap().measured().len(), 3);
    }

    #[test]
    fn what_is_no_file_or_too_long_or_has_no_folder_is_refused() {
        let (folder, path) = journal();
        let open = |path: &Path| Journal::open(path, &question(7), &JOBS).unwrap_err().to_string();
        assert!(open(folder.path()).ends_with(" is not a regular file"));
        assert!(open(Path::new("/dev/full")).ends_with(" is not a regular file"));
        assert!(open(&folder.path().join("none/journal")).contains("none/journal: "));
        OpenOptions::new().write(true).open(&path).unwrap().set_len(PART_MAX + 1).unwrap();
        assert!(open(&path).ends_with(" is too long: at most 1GiB are read"));
    }

    #[test]
    fn a_write_that_fails_is_a_sentence_that_names_the_file() {
        let file = OpenOptions::new().append(true).open("/dev/full").unwrap();
        let lines = LineFile { path: PathBuf::from("some/journal"), file };
        let mut journal = Journal { measured: BTreeMap::new(), keeper: Keeper::File(lines) };
        let problem = journal.add(JOBS[0], measured(0)).unwrap_err();
        assert!(matches!(problem, AppError::Trouble(_)), "{problem:?}");
        assert!(problem.to_string().starts_with("cannot write some/journal: "), "{problem}");
        assert!(journal.measured().is_empty());
    }
}
