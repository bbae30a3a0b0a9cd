//! `levelhead array status|fail|stop`: questions to a running array.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use levelhead_report::{Column, Table, json};
use levelhead_units::Bytes;

use super::control::{Question, Reply, StatusJson};
use super::control_path;
use crate::{AppError, Show};

/// What to ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// How it is.
    Status,
    /// Do without a drive from now on.
    Fail {
        /// Which.
        drive: u8,
    },
    /// Do not read a drive where that can be helped.
    SitOut {
        /// Which.
        drive: u8,
    },
    /// Read a drive again that sits out.
    Admit {
        /// Which.
        drive: u8,
    },
    /// Stop in good order.
    Stop,
}

/// Asks the running array named by its control socket or any of its members.
pub fn ask(array: &Path, verb: Verb) -> Result<Box<dyn Show>, AppError> {
    let question = match verb {
        Verb::Status => Question::Status,
        Verb::Fail { drive } => Question::Fail { drive },
        Verb::SitOut { drive } => Question::SitOut { drive },
        Verb::Admit { drive } => Question::Admit { drive },
        Verb::Stop => Question::Stop,
    };
    match (converse(&find(array)?, question)?, verb) {
        (Reply::Ok(Some(status)), _) => Ok(status),
        (Reply::Ok(None), Verb::Fail { drive }) => {
            Ok(Box::new(Done(format!("the array does without drive {drive}"))))
        }
        (Reply::Ok(None), Verb::SitOut { drive }) => Ok(Box::new(Done(format!(
            "the array reads drive {drive} only where nothing else will do"
        )))),
        (Reply::Ok(None), Verb::Admit { drive }) => {
            Ok(Box::new(Done(format!("the array reads drive {drive} again"))))
        }
        (Reply::Ok(None), Verb::Stop) => Ok(Box::new(Done("the array has stopped".to_owned()))),
        (Reply::Ok(None), Verb::Status) => Err(AppError::trouble("the array gave no status")),
        (Reply::Error(sentence), Verb::Stop) => Err(AppError::trouble(sentence)),
        (
            Reply::Error(sentence),
            Verb::Status | Verb::Fail { .. } | Verb::SitOut { .. } | Verb::Admit { .. },
        ) => Err(AppError::usage(sentence)),
    }
}

fn find(array: &Path) -> Result<PathBuf, AppError> {
    let beside = control_path(array);
    let candidates = [array.to_owned(), beside];
    let is_live = |path: &&PathBuf| UnixStream::connect(path).is_ok();
    candidates.iter().find(is_live).cloned().ok_or_else(|| {
        let (array, beside) = (array.display(), candidates[1].display());
        AppError::usage(format!("no running array answers at {array} or {beside}"))
    })
}

fn converse(path: &Path, question: Question) -> Result<Reply, AppError> {
    let fail = |error: std::io::Error| AppError::trouble(format!("{}: {error}", path.display()));
    let mut stream = UnixStream::connect(path).map_err(fail)?;
    let mut line = serde_json::to_string(&question).expect("a question is JSON");
    line.push('\n');
    stream.write_all(line.as_bytes()).map_err(fail)?;
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer).map_err(fail)?;
    serde_json::from_str(&answer)
        .map_err(|error| AppError::trouble(format!("{}: odd answer: {error}", path.display())))
}

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
        let Self { array, uuid, policy, resync, outstanding, .. } = self;
        let mut text =
            format!("array: {array}, {uuid}\nsize: {}\n", Bytes::new(self.size_bytes).short());
        text.push_str(&format!(
            "policy: {policy}\nredundancy: {:.1} % valid (resync {resync})\n",
            self.synced_percent
        ));
        text.push_str(&format!(
            "requests: {} served, {outstanding} in progress; {} sub-requests, {} removed, {} \
             re-dispatched\n",
            self.requests, self.subrequests, self.removed, self.redispatched
        ));
        text.push_str(&format!(
            "latency of the last ones: mean {:.3} ms, p50 {:.3}, p99 {:.3}, max {:.3}\n\n",
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
                if drive.sits_out { "sits out".to_owned() } else { drive.state.clone() },
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
