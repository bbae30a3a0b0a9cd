//! A client of a running array: a conversation over its control socket, and what is shown of the answers.

use std::fmt;
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use levelhead_array::Spec;
use levelhead_array::superblock::Uuid;
use levelhead_host::{MemberSpec, array_of, array_of_member, words};
use levelhead_nbd::{Client, Uri};
use levelhead_report::{Column, Table, json};
use levelhead_units::Bytes;
use serde::de::DeserializeOwned;

use super::health::Health;
use super::messages::{CopyJson, DamagedJson, DriveJson, RebuildJson, Reply, StatusJson};
use super::scrub_json::ScrubJson;
use super::socket_path;
use super::status_text::{Detail, Shown};
use super::verbs::Verb;
use levelhead_app::{AppError, Show};

/// Asks the running array named by its control socket or any of its members.
pub fn ask(array: &Path, verb: &Verb) -> Result<Box<dyn Show>, AppError> {
    if *verb == Verb::Status {
        let status: Option<Box<StatusJson>> = converse(array, verb)?;
        let status = status.ok_or_else(|| AppError::trouble("the array returned no status"))?;
        return Ok(Box::new(shown(array, status, Detail::Brief)));
    }
    if let Verb::Scrub { .. } = verb {
        let scrub: Option<ScrubJson> = converse(array, verb)?;
        let scrub = scrub.ok_or_else(|| AppError::trouble("the array returned no scrub status"))?;
        return Ok(Box::new(scrub));
    }
    if *verb == Verb::Damaged {
        let damaged: Option<DamagedJson> = converse(array, verb)?;
        let damaged = damaged.ok_or_else(|| AppError::trouble("the array returned no list"))?;
        return Ok(Box::new(damaged));
    }
    let verb = verb.clone().made_absolute().map_err(AppError::usage)?;
    let done = verb.done();
    converse::<serde_json::Value>(array, &verb)?;
    Ok(Box::new(Done(done)))
}

/// How the running array is that is named by its control socket or any of its members, and how well.
pub fn status(array: &Path, detail: Detail) -> Result<(Box<dyn Show>, Health), AppError> {
    let status: Option<Box<StatusJson>> = converse(array, &Verb::Status)?;
    let status = status.ok_or_else(|| AppError::trouble("the array returned no status"))?;
    let shown = shown(array, status, detail);
    let health = shown.health.clone();
    Ok((Box::new(shown), health))
}

fn shown(array: &Path, status: Box<StatusJson>, detail: Detail) -> Shown {
    let health = status.health();
    Shown { status, health, array: array.display().to_string(), detail }
}

/// One question and its answer.
fn converse<T: DeserializeOwned>(array: &Path, verb: &Verb) -> Result<Option<T>, AppError> {
    let mut conversation = Conversation::begin(array)?;
    conversation.say(verb)?;
    match conversation.hear()? {
        Reply::Ok(answer) => Ok(answer),
        Reply::Error(sentence) if *verb == Verb::Stop => Err(AppError::trouble(sentence)),
        Reply::Error(sentence) => Err(AppError::usage(sentence)),
    }
}

/// The array that a file, a device or an NBD export is a drive of.
fn uuid_of(member: &Path) -> Result<Uuid, AppError> {
    match member.to_str().filter(|text| Uri::is_one(text)) {
        None => array_of(member).map_err(AppError::usage),
        Some(text) => {
            let uri: Uri = text.parse().map_err(AppError::usage)?;
            let client = Client::open(&uri).map_err(AppError::usage)?;
            let member = MemberSpec::handed_in(text, Arc::new(client));
            array_of_member(&member).map_err(AppError::usage)
        }
    }
}

/// What an NBD server begins with.
const NBD_GREETING: &[u8] = b"NBDMAGIC";

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
        let uuid = uuid_of(array).map_err(|error| {
            AppError::usage(format!("no running array answers at {name}: {error}"))
        })?;
        let places = socket_path::of_client(uuid);
        places.iter().find_map(|path| connect(path)).ok_or_else(|| {
            let places: Vec<String> = places.iter().map(|path| path.display().to_string()).collect();
            let places = places.join(" or ");
            AppError::usage(format!(
                "no running array answers at {name}, nor at {places}, where its array {uuid} would listen: array serve starts it"
            ))
        })
    }

    /// Asks something.
    pub(super) fn say(&mut self, verb: &Verb) -> Result<(), AppError> {
        let mut line = serde_json::to_string(verb).expect("a question is JSON");
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

    /// Refuses the beginning of an answer that no array gives.
    pub(super) fn check_kind(&self, line: &[u8]) -> Result<(), AppError> {
        let path = self.path.display();
        match line {
            [] | [b'{', ..] => Ok(()),
            _ if line.starts_with(NBD_GREETING) => Err(AppError::usage(format!(
                "{path} is a socket for NBD clients, not the control socket of an array"
            ))),
            _ => Err(AppError::usage(format!("{path} is not the control socket of an array"))),
        }
    }

    /// What a line says.
    pub(super) fn parse<T: DeserializeOwned>(&self, line: &[u8]) -> Result<Reply<T>, AppError> {
        self.check_kind(line)?;
        serde_json::from_slice(line).map_err(|error| self.blame(format!("odd answer: {error}")))
    }

    /// Where the array was found to listen.
    pub(super) fn path(&self) -> &Path {
        &self.path
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

impl StatusJson {
    /// How well the array is.
    fn health(&self) -> Health {
        let mut health = Health::HEALTHY;
        let away = self.drives.iter().filter(|drive| !drive.is_used());
        let away: Vec<String> =
            away.map(|drive| format!("drive {} is {}", drive.drive, drive.in_words())).collect();
        match self.state.as_str() {
            "whole" | "degraded" => away.into_iter().for_each(|fault| health.note(fault)),
            _ => health.fail(away.join(", ")),
        }
        if self.synced_percent < 100.0 {
            health.note(format!("{:.1} % of the redundancy is valid", self.synced_percent));
        }
        if self.damaged.sectors > 0 {
            let (sectors, are) = (self.damaged.sectors, words::is_or_are(self.damaged.sectors));
            health.note(format!("{} {are} damaged", words::counted(sectors, "sector")));
        }
        if self.scrub.unlocated > 0 {
            health.note(self.scrub.mismatches());
        }
        if self.forced {
            health.note("forced: some of the data may be wrong".to_owned());
        }
        for DriveJson { drive, silent, refusal, .. } in &self.drives {
            match (refusal, silent) {
                (Some(why), _) => {
                    health.note(format!("drive {drive}: its host refuses commands for it: {why}"));
                }
                (None, true) => health.note(format!("drive {drive} does not answer")),
                (None, false) => {}
            }
        }
        health
    }

    /// What an array is, and how: the lines above the table of its drives.
    pub(super) fn head(&self) -> String {
        let Self { array, uuid, policy, state, resync, outstanding, .. } = self;
        let size = Bytes::new(self.size_bytes).short();
        let forced = if self.forced { ", forced: some of its data may be wrong" } else { "" };
        let (journal, rebuild) = (self.journal_line(), self.rebuild_lines());
        format!(
            "array: {array}, {uuid}\nsize: {size}\nstate: {state}{forced}\npolicy: {policy}\n\
             redundancy: {:.1} % valid (resync {resync})\nredundancy left: {}\n{rebuild}{journal}\n\
             in progress: {}\n",
            self.synced_percent,
            self.margin(),
            words::counted(*outstanding, "request")
        )
    }

    /// How many more drives may be lost, whichever they are.
    pub(super) fn margin(&self) -> String {
        let lost = self.drives.iter().filter(|drive| drive.role == "data" && !drive.is_used());
        let survived = self.array.parse::<Spec>().map_or(0, |spec| match spec.is_mirror() {
            false if self.synced_percent < 100.0 => 0,
            true | false => spec.redundant(),
        });
        match survived.saturating_sub(lost.count()) {
            0 => "no more drives may fail".to_owned(),
            count => format!("{} may fail", words::counted(count, "more drive")),
        }
    }

    /// How far a rebuild and a copy are, and the spares; nothing where there are none.
    fn rebuild_lines(&self) -> String {
        let mut lines = String::new();
        if let Some(RebuildJson { drive, done_stripes, stripes, missed_regions, .. }) =
            &self.rebuild
        {
            let done = *done_stripes as f64 / (*stripes).max(1) as f64 * 100.0;
            let how = match (self.rebuild_paused, self.rebuild_min_rate) {
                (true, _) => ", paused".to_owned(),
                (false, Some(rate)) => format!(", {} a second at least", Bytes::new(rate)),
                (false, None) => String::new(),
            };
            let what = match missed_regions {
                None => format!("{done:.1} % done"),
                Some(left) => format!("partial resync, {} left", words::counted(*left, "region")),
            };
            lines.push_str(&format!("rebuild: drive {drive}, {what}{how}\n"));
        }
        if let Some(CopyJson { drive, member, left_regions, regions }) = &self.copy {
            let done = (regions - left_regions) as f64 / (*regions).max(1) as f64 * 100.0;
            let to = member.as_ref().map_or(String::new(), |member| format!(" to {member}"));
            let paused = if self.rebuild_paused { ", paused" } else { "" };
            lines.push_str(&format!(
                "copy: drive {drive}{to}, {done:.1} % done, {} left{paused}\n",
                words::counted(*left_regions, "region")
            ));
        }
        if !self.spares.is_empty() {
            lines.push_str(&format!("spares: {}\n", self.spares.join(" ")));
        }
        lines
    }

    pub(super) fn journal_line(&self) -> String {
        let Some(journal) = &self.journal else {
            return "journal: none: a crash may leave redundancy that is wrong".to_owned();
        };
        let is_apart = self.drives.iter().any(|drive| drive.role == "journal");
        let state = match (journal.recovering, is_apart) {
            (true, _) => "recovering",
            (false, false) => "on every drive",
            (false, true) => "on drives of its own",
        };
        let (open, unplaced) = (journal.open_transactions, journal.unplaced_sectors);
        let open = words::counted(open, "transaction");
        let unplaced = words::counted(unplaced, "sector");
        format!("journal: {state}, {open}, {unplaced} not in place")
    }

    /// What can be had no more, where there is something.
    pub(super) fn damaged_line(&self) -> String {
        let damaged = &self.damaged;
        match damaged.sectors {
            0 => String::new(),
            sectors => format!(
                "damaged: {} in {} (status --damaged lists them)\n",
                words::counted(sectors, "sector"),
                words::counted(damaged.ranges, "range")
            ),
        }
    }

    /// How long requests took lately.
    pub(super) fn latencies(&self) -> String {
        format!(
            "latency of the last requests: mean {:.3} ms, p50 {:.3}, p99 {:.3}, max {:.3}\n",
            self.mean_ms, self.p50_ms, self.p99_ms, self.max_ms
        )
    }

    /// Why drives have failed.
    pub(super) fn failures(&self) -> String {
        let failed =
            self.drives.iter().filter_map(|drive| Some((drive.drive, drive.failure.as_ref()?)));
        let failed = failed.map(|(drive, why)| format!("drive {drive} has failed: {why}\n"));
        let refused =
            self.drives.iter().filter_map(|drive| Some((drive.drive, drive.refusal.as_ref()?)));
        let refused = refused.map(|(drive, why)| {
            format!(
                "drive {drive}: its host refuses commands for it, and it stays in the array: {why}\n"
            )
        });
        failed.chain(refused).collect()
    }
}

impl DriveJson {
    /// Whether it holds everything, and the array counts on it.
    fn is_used(&self) -> bool {
        ["present", "copying"].contains(&self.state.as_str())
    }

    /// Its state in the words of a sentence.
    fn in_words(&self) -> &str {
        match self.state.as_str() {
            "lost" => "failed",
            "filling" => "being rebuilt",
            "catching-up" => "being resynced",
            other => other,
        }
    }

    /// How it is, in a word or two.
    pub(super) fn standing(&self) -> String {
        match (self.silent, self.sits_out) {
            (true, _) => "unresponsive".to_owned(),
            (false, true) => "avoided".to_owned(),
            (false, false) => match self.state.as_str() {
                "lost" => "failed",
                "filling" => "rebuilding",
                "catching-up" => "resyncing",
                "copying" => "replacing",
                other => other,
            }
            .to_owned(),
        }
    }
}

impl Show for DamagedJson {
    fn text(&self) -> String {
        if self.ranges.is_empty() {
            return "no sector is damaged".to_owned();
        }
        let names = ["drive", "first sector", "sectors", "on the drive from"];
        let mut table = Table::new(names.map(Column::right));
        for range in &self.ranges {
            let numbers = [range.first_sector, range.sectors, range.on_drive];
            let [first, sectors, on_drive] = numbers.map(|number| number.to_string());
            table.push([range.drive.to_string(), first, sectors, on_drive]);
        }
        let mut text = match self.sectors {
            1 => "1 sector is damaged until it is written\n".to_owned(),
            sectors => format!("{sectors} sectors are damaged until they are written\n"),
        };
        if self.full {
            text.push_str("the list was full: it covers sectors that were not damaged\n");
        }
        if !self.kept {
            text.push_str("the drives have no place for the list: it is gone after a stop\n");
        }
        text.push_str(&table.to_text());
        text
    }

    fn json(&self) -> String {
        json::pretty(self).expect("numbers are JSON")
    }
}
