//! A client of a running array: a conversation over its control socket, and what is shown of the answers.

use std::fmt;
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use levelhead_host::array_of;
use levelhead_report::{Column, Table, json};
use levelhead_units::Bytes;
use serde::de::DeserializeOwned;

use super::messages::{Reply, StatusJson};
use super::socket_path;
use super::verbs::Verb;
use crate::{AppError, Show};

/// Asks the running array named by its control socket or any of its members.
pub fn ask(array: &Path, verb: Verb) -> Result<Box<dyn Show>, AppError> {
    if verb == Verb::Status {
        let status: Option<Box<StatusJson>> = converse(array, verb)?;
        let status = status.ok_or_else(|| AppError::trouble("the array gave no status"))?;
        return Ok(status);
    }
    converse::<serde_json::Value>(array, verb)?;
    Ok(Box::new(Done(verb.done())))
}

/// One question and its answer.
fn converse<T: DeserializeOwned>(array: &Path, verb: Verb) -> Result<Option<T>, AppError> {
    let mut conversation = Conversation::begin(array)?;
    conversation.say(verb)?;
    match conversation.hear()? {
        Reply::Ok(answer) => Ok(answer),
        Reply::Error(sentence) if verb == Verb::Stop => Err(AppError::trouble(sentence)),
        Reply::Error(sentence) => Err(AppError::usage(sentence)),
    }
}

/// A connection to a running array.
pub(super) struct Conversation {
    path: PathBuf,
    pub(super) lines: BufReader<UnixStream>,
}

impl Conversation {
    /// With the array named by its control socket or any of its members.
    pub(super) fn begin(array: &Path) -> Result<Self, AppError> {
        let connect = |path: &Path| {
            let stream = UnixStream::connect(path).ok()?;
            Some(Self { path: path.to_owned(), lines: BufReader::new(stream) })
        };
        if let Some(begun) = connect(array) {
            return Ok(begun);
        }
        let name = array.display();
        let uuid = array_of(array).map_err(|error| {
            AppError::usage(format!("no running array answers at {name}: {error}"))
        })?;
        let places = socket_path::of_client(uuid);
        places.iter().find_map(|path| connect(path)).ok_or_else(|| {
            let places: Vec<String> = places.iter().map(|path| path.display().to_string()).collect();
            let places = places.join(" or ");
            AppError::usage(format!(
                "no running array answers at {name}, nor at {places}, where its array {uuid} would listen"
            ))
        })
    }

    /// Asks something.
    pub(super) fn say(&mut self, verb: Verb) -> Result<(), AppError> {
        let mut line = serde_json::to_string(&verb).expect("a question is JSON");
        line.push('\n');
        match self.lines.get_mut().write_all(line.as_bytes()) {
            // A client that is turned away finds the reason in the answer.
            Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(self.blame(error)),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// The next answer, however long that takes.
    fn hear<T: DeserializeOwned>(&mut self) -> Result<Reply<T>, AppError> {
        let mut line = Vec::new();
        self.lines.read_until(b'\n', &mut line).map_err(|error| self.blame(error))?;
        self.parse(&line)
    }

    /// How long a read waits.
    pub(super) fn set_patience(&self, patience: Duration) -> Result<(), AppError> {
        let set = self.lines.get_ref().set_read_timeout(Some(patience));
        set.map_err(|error| self.blame(error))
    }

    /// What a line says.
    pub(super) fn parse<T: DeserializeOwned>(&self, line: &[u8]) -> Result<Reply<T>, AppError> {
        serde_json::from_slice(line).map_err(|error| self.blame(format!("odd answer: {error}")))
    }

    pub(super) fn blame(&self, error: impl fmt::Display) -> AppError {
        AppError::trouble(format!("{}: {error}", self.path.display()))
    }
}

/// Something was done.
struct Done(String);

impl Show for Done {
    fn text(&self) -> String {
        self.0.clone()
    }

    fn json(&self) -> String {
        json::pretty(&serde_json::json!({ "done": self.0 })).expect("a sentence is JSON")
    }
}

impl Show for StatusJson {
    fn text(&self) -> String {
        let Self { array, uuid, policy, state, resync, outstanding, .. } = self;
        let mut text =
            format!("array: {array}, {uuid}\nsize: {}\n", Bytes::new(self.size_bytes).short());
        let forced = if self.forced { ", forced: some of its data may be wrong" } else { "" };
        text.push_str(&format!(
            "state: {state}{forced}\npolicy: {policy}\nredundancy: {:.1} % valid (resync {resync})\n",
            self.synced_percent
        ));
        text.push_str(&match &self.journal {
            None => "journal: none: a crash may leave redundancy that is wrong\n".to_owned(),
            Some(journal) => {
                let state = if journal.recovering { "recovering" } else { "on every drive" };
                let (open, unplaced) = (journal.open_transactions, journal.unplaced_sectors);
                format!("journal: {state}, {open} transactions, {unplaced} sectors not in place\n")
            }
        });
        text.push_str(&format!("in progress: {outstanding} requests\nsince the start: "));
        let counted =
            self.counted().map(|(name, value)| format!("{} {value}", name.replace('_', " ")));
        text.push_str(&format!("{}\n", counted.collect::<Vec<_>>().join(", ")));
        text.push_str(&format!(
            "latency of the last requests: mean {:.3} ms, p50 {:.3}, p99 {:.3}, max {:.3}\n\n",
            self.mean_ms, self.p50_ms, self.p99_ms, self.max_ms
        ));
        let names = ["queue", "retry rate %", "retry ms", "service ms"];
        let left = ["drive", "state", "member", "fast-fail"].map(Column::left);
        let mut table = Table::new(left.into_iter().chain(names.map(Column::right)));
        let figure =
            |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.2}"));
        for drive in &self.drives {
            table.push([
                drive.drive.to_string(),
                match (drive.silent, drive.sits_out) {
                    (true, _) => "silent".to_owned(),
                    (false, true) => "sits out".to_owned(),
                    (false, false) => drive.state.clone(),
                },
                drive.member.clone().unwrap_or_else(|| "-".to_owned()),
                drive.fast_fail.clone().unwrap_or_else(|| "-".to_owned()),
                drive.queue.to_string(),
                figure(drive.retry_rate_percent),
                figure(drive.retry_latency_ms),
                figure(drive.service_time_ms),
            ]);
        }
        text.push_str(&table.to_text());
        for drive in &self.drives {
            if let Some(failure) = &drive.failure {
                text.push_str(&format!("drive {} has failed: {failure}\n", drive.drive));
            }
        }
        for event in &self.events {
            text.push_str(&format!("{}\n", event.sentence()));
        }
        text
    }

    fn json(&self) -> String {
        json::pretty(self).expect("numbers and names are JSON")
    }
}
