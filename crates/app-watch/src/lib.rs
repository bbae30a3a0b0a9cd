//! `levelhead watch`: which drives of this host are slow, said as it runs.
//!
//! ```text
//!   survey, zpool, smartctl (children) --> [ keeper: groups, samples, audits ] --> lines
//!   stat (our own, never waits) ---------->      |          |         `---------> program of an event (a thread: one child)
//!                                            writer      board <-- scrapes (threads of the server)
//!                                          (a thread: state, record)
//! ```
//!
//! One thread samples and decides. What may hang is asked by children that it looks at between samples and never waits for; what may
//! hang in being written is written by a thread that is waited for [`FAREWELL`] at most; a scrape is answered from what the last
//! sample has left. At its end a watch waits for programs of events for a few seconds at most.
//!
//! - WT1. Samples are due every `every`, whatever hangs: only `stat` is read on their path.
//! - WT2. Nothing is written but the state, and the record where one is wanted; drives are changed by [`fix()`] alone.
//! - WT3. Everything is bounded: children (one a source), waiting events, waiting text of the record, groups and their members.
//!
//! It leaves out: rebuilds of LVM, ZFS resilvers that `zpool` of before 2.3 knows, hosts other than this one.

#![forbid(unsafe_code)]

mod audits;
mod board;
mod files;
mod finder;
mod fix;
mod hook;
mod keeper;
mod metrics;
mod once;
mod said;
#[cfg(test)]
mod tests;
mod writer;

use std::collections::BTreeMap;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use levelhead_metrics::{Address, Server};

pub use audits::DriveAudit;
pub use files::default_state;
pub use fix::{Fixed, Plan, fix};
pub use once::{Look, once};
pub use said::{Begun, GroupLine, Said};

use board::Board;
use keeper::Keeper;
use levelhead_app::on_event::{self, Hook};
use levelhead_app::{AppError, Show, Stop};
use writer::Writer;

/// Bounds of the time between two samples: what hangs is said after 30 s, and takes two of them.
pub const EVERY_MIN: Duration = Duration::from_secs(1);
/// See [`EVERY_MIN`].
pub const EVERY_MAX: Duration = Duration::from_secs(30);

/// Between two looks at children while one is open.
const LOOK: Duration = Duration::from_millis(250);

/// Between two writes of the state: a window.
const SAVE_PERIOD: Duration = Duration::from_secs(300);

/// How long the end waits for what is still to be written.
const FAREWELL: Duration = Duration::from_secs(1);

/// Where it looks, and whom it asks.
#[derive(Clone, Debug)]
pub struct Host {
    /// The folder that has `sys`, `proc`, `dev` and `var`.
    pub root: PathBuf,
    /// Writes the survey of a root to its output ([`write_survey`]): a program and its arguments, without the root.
    pub surveyor: Vec<PathBuf>,
    /// `zpool`, by a name that is looked for or a path.
    pub zpool: PathBuf,
    /// `smartctl`, the same way; no drive is asked without it.
    pub smartctl: Option<PathBuf>,
    /// The operator's groups instead of those that are found.
    pub groups: Option<PathBuf>,
}

/// What is asked for.
#[derive(Clone, Debug)]
pub struct Ask {
    /// Of which host.
    pub host: Host,
    /// Where the state is kept.
    pub state: PathBuf,
    /// Between two samples.
    pub every: Duration,
    /// Takes a line of each drive's window.
    pub record: Option<PathBuf>,
    /// Where metrics are to be had.
    pub metrics: Option<Address>,
    /// Is run for each event.
    pub on_event: Option<PathBuf>,
}

/// Takes what is said; a break ends the watch.
pub type Hear<'a> = dyn FnMut(Said) -> ControlFlow<()> + 'a;

/// Writes what is below `root` for the watch that has started this process for it.
///
/// # Errors
///
/// It is not taken.
pub fn write_survey(root: &Path, out: &mut dyn Write) -> Result<(), AppError> {
    levelhead_host::fleet::write_survey(root, out).map_err(AppError::trouble)
}

/// Watches until it is to stop.
///
/// # Errors
///
/// The groups or the state cannot be read, the state or the record cannot be written, or metrics cannot be had at that address.
pub fn watch(ask: &Ask, stop: &Stop, hear: &mut Hear<'_>) -> Result<(), AppError> {
    let groups = files::read_groups(ask.host.groups.as_deref())?;
    if let Some(record) = &ask.record {
        files::check_record(record)?;
    }
    if let Some(program) = &ask.on_event {
        on_event::check(program)?;
    }
    let server = ask.metrics.map(Server::bind).transpose().map_err(AppError::usage)?;
    // The last that may be refused: it is the first that is written.
    let _lock = files::lock_state(&ask.state)?;
    let state = files::open_state(&ask.state)?;
    let board = Board::new(ask.every);
    let source = board.source();
    let server = server.map(|it| it.start(source)).transpose().map_err(AppError::trouble)?;
    let begun = Begun {
        state: ask.state.clone(),
        metrics: server.as_ref().map(|it| it.address().to_string()),
        every: ask.every,
    };
    let (hook, troubles) = start_hook(ask.on_event.clone())?;
    let mut run = Run {
        keeper: Keeper::new(&ask.host, groups, state.saved),
        hook,
        troubles,
        writer: Writer::start(ask.state.clone(), ask.record.clone())?,
        board,
        told: BTreeMap::new(),
        is_told_of_none: false,
        recorded: None,
    };
    let mut first = vec![Said::Begun(begun)];
    first.extend(state.notes.into_iter().map(Said::Note));
    run.go(ask.every, stop, &mut |said| hear(said), first);
    drop(server);
    run.writer.put_state(run.keeper.watch.save().encode());
    if let Some(hook) = &run.hook {
        hook.close();
    }
    // Whoever hears nothing any more has ended the watch.
    let _is_heard = run.troubles.try_iter().try_for_each(|it| hear(Said::Note(it)));
    let left = run.writer.end(Instant::now() + FAREWELL);
    left.map_or(Ok(()), |trouble| Err(AppError::trouble(trouble)))
}

/// The program of an event, where there is one, and what goes wrong with it.
fn start_hook(program: Option<PathBuf>) -> Result<(Option<Hook>, Receiver<String>), AppError> {
    let (sender, troubles) = channel();
    let tell = Box::new(move |trouble: &str| drop(sender.send(trouble.to_owned())));
    let hook = program.map(|program| Hook::start(program, tell)).transpose()?;
    Ok((hook, troubles))
}

/// Unix seconds.
fn unix_now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

struct Run {
    keeper: Keeper,
    hook: Option<Hook>,
    /// What went wrong with its program.
    troubles: Receiver<String>,
    writer: Writer,
    board: Board,
    /// Of each drive the findings that were said.
    told: BTreeMap<String, Vec<String>>,
    /// Whether it was said that there are no groups.
    is_told_of_none: bool,
    /// The beginning of the window that was recorded last.
    recorded: Option<i64>,
}

impl Run {
    fn go(&mut self, every: Duration, stop: &Stop, hear: &mut Hear<'_>, first: Vec<Said>) {
        if first.into_iter().any(|said| hear(said).is_break()) {
            return;
        }
        let (mut next, mut save_next) = (Instant::now(), Instant::now() + SAVE_PERIOD);
        while !stop.is_wished() {
            let mut said = self.look();
            let now = Instant::now();
            if now >= next {
                // After a sleep of the machine the lost ones are not made up for.
                next = (next + every).max(now);
                said.extend(self.sample(unix_now()));
                if now >= save_next {
                    save_next = now + SAVE_PERIOD;
                    self.writer.put_state(self.keeper.watch.save().encode());
                }
            }
            if said.into_iter().any(|said| hear(said).is_break()) {
                return;
            }
            stop.wait_until(if self.keeper.is_waiting() { next.min(now + LOOK) } else { next });
        }
    }

    /// Takes what children have answered.
    fn look(&mut self) -> Vec<Said> {
        let looked = self.keeper.look(Instant::now());
        let mut said: Vec<_> = looked.notes.into_iter().map(Said::Note).collect();
        said.extend(looked.groups.into_iter().map(Said::Group));
        if self.keeper.finder.is_ready() && !self.is_told_of_none && self.keeper.has_no_group() {
            self.is_told_of_none = true;
            said.push(Said::Note(NO_GROUP.to_owned()));
        }
        if looked.is_audit_new {
            let audits = self.keeper.audits();
            let why = audits.first().and_then(|it| it.silent.clone());
            let is_all_silent = audits.iter().all(|it| it.silent.is_some());
            if let Some(why) = why.filter(|_| is_all_silent && self.keeper.is_audited()) {
                let is_new = self.told.insert(String::new(), vec![why.clone()]).is_none();
                said.extend(
                    is_new.then(|| {
                        Said::Note(format!("no drive says how it recovers errors: {why}"))
                    }),
                );
            }
            said.extend(audits.iter().filter_map(|it| self.news_of(it)));
            self.board.put_audits(audits);
        }
        said.extend(self.troubles.try_iter().map(Said::Note));
        said
    }

    /// An audit whose findings are others than those that were said.
    fn news_of(&mut self, audit: &DriveAudit) -> Option<Said> {
        let findings: Vec<_> = audit.findings.iter().map(ToString::to_string).collect();
        let told = self.told.get(&audit.key).map_or(&[][..], Vec::as_slice);
        if told == findings {
            return None;
        }
        self.told.insert(audit.key.clone(), findings);
        Some(Said::Audit(audit.clone()))
    }

    fn sample(&mut self, now: i64) -> Vec<Said> {
        let mut said = Vec::new();
        for event in self.keeper.sample(now) {
            if let Some(hook) = self.hook.as_ref().filter(|_| event.is_of_verdict()) {
                hook.put(hook::facts(&event, Said::Event(event.clone()).json()));
            }
            said.push(Said::Event(event));
        }
        let watch = &self.keeper.watch;
        self.board.put(watch.verdicts(), watch.tails());
        let rows = watch.last_window();
        let at = rows.first().map(|it| it.at).filter(|&at| self.recorded.is_none_or(|it| at != it));
        if at.is_some() {
            self.recorded = at;
            self.writer.put_record(&rows);
        }
        said.extend(self.writer.trouble().map(Said::Note));
        said
    }
}

/// What is said where nothing was found.
const NO_GROUP: &str = "no group of drives was found: --groups FILE names some";
