//! `levelhead array status --watch`: how an array is, again and again, with what it did meanwhile.

use std::io::{BufRead, ErrorKind};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use levelhead_report::{Column, Table};
use levelhead_units::Nanos;

use super::client::Conversation;
use super::messages::{DriveJson, Reply, StatusJson};
use super::verbs::Verb;
use levelhead_app::{AppError, Show, Stop};

/// The last events that are shown.
const EVENTS_SHOWN: usize = 5;

/// How often it is seen whether to go on.
const MOMENT: Duration = Duration::from_millis(100);

/// What to watch.
#[derive(Clone, Debug)]
pub struct Watch {
    /// The running array: its control socket or any of its members.
    pub array: PathBuf,
    /// The time from one look to the next.
    pub every: Nanos,
}

/// The listener gets each look, and nothing every [`MOMENT`] between two of them, so that it may see whether its output is
/// still read. It returns whether to go on.
type See<'a> = dyn FnMut(Option<&dyn Show>) -> Result<ControlFlow<()>, AppError> + 'a;

/// Shows `see` how the array is, until `stop` is wished, `see` breaks it off, or the array has stopped; returns
/// whether it has.
///
/// # Errors
///
/// No array answers, or one that did has ended in some other way.
pub fn watch(ask: &Watch, stop: &Stop, see: &mut See<'_>) -> Result<bool, AppError> {
    let mut before: Option<Box<StatusJson>> = None;
    let mut control: Option<PathBuf> = None;
    loop {
        let next = Instant::now() + Duration::from(ask.every);
        let begun = Conversation::begin(control.as_deref().unwrap_or(&ask.array));
        let now = match (begun, &control) {
            (Ok(mut conversation), _) => {
                control = Some(conversation.path().to_owned());
                look(&mut conversation, stop)?
            }
            // A server that ends in good order takes its socket away.
            (Err(_), Some(control)) if !control.exists() => return Ok(true),
            (Err(error), Some(_)) => return Err(AppError::trouble(error)),
            (Err(error), None) => return Err(error),
        };
        let now = match now {
            Looked::Is(now) => now,
            Looked::Ended => return Ok(true),
            Looked::Stopped => return Ok(false),
            Looked::Refused(sentence) if before.is_none() => return Err(AppError::usage(sentence)),
            Looked::Refused(sentence) => {
                if see(Some(&Refused(sentence)))?.is_break() || wait(next, stop, see)?.is_break() {
                    return Ok(false);
                }
                continue;
            }
        };
        let view = View { rates: before.as_deref().and_then(|from| Rates::of(from, &now)), now };
        if see(Some(&view))?.is_break() || wait(next, stop, see)?.is_break() {
            return Ok(false);
        }
        before = Some(view.now);
    }
}

/// Until the next look, or a wish to stop.
fn wait(next: Instant, stop: &Stop, see: &mut See<'_>) -> Result<ControlFlow<()>, AppError> {
    while Instant::now() < next {
        let moment = next.min(Instant::now() + MOMENT);
        if stop.wait_until(moment) || see(None)?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    Ok(ControlFlow::Continue(()))
}

/// What comes of a look.
enum Looked {
    Is(Box<StatusJson>),
    /// The array has gone in good order.
    Ended,
    /// A sentence instead: too many ask, or the array is closing its drives.
    Refused(String),
    /// A stop was asked for.
    Stopped,
}

fn look(conversation: &mut Conversation, stop: &Stop) -> Result<Looked, AppError> {
    conversation.say(&Verb::Status)?;
    conversation.set_patience(MOMENT)?;
    let mut line = Vec::new();
    loop {
        if stop.is_wished() {
            return Ok(Looked::Stopped);
        }
        match conversation.lines.read_until(b'\n', &mut line) {
            Ok(_) if line.ends_with(b"\n") => break,
            Ok(_) if !conversation.path().exists() => return Ok(Looked::Ended),
            Ok(_) => {
                conversation.check_kind(&line)?;
                return Err(conversation.blame("the connection broke"));
            }
            // What has come is in the line already.
            Err(error) if is_early(error.kind()) => {}
            Err(error) => return Err(conversation.blame(error)),
        }
    }
    match conversation.parse(&line)? {
        Reply::Ok(Some(status)) => Ok(Looked::Is(status)),
        Reply::Ok(None) => Err(conversation.blame("the array returned no status")),
        Reply::Error(sentence) => Ok(Looked::Refused(sentence)),
    }
}

fn is_early(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

/// A look that came to nothing.
struct Refused(String);

impl Show for Refused {
    fn text(&self) -> String {
        self.0.clone()
    }

    fn json(&self) -> String {
        serde_json::json!({ "error": self.0 }).to_string()
    }
}

/// One look.
struct View {
    now: Box<StatusJson>,
    /// Nothing at the first one.
    rates: Option<Rates>,
}

/// What was done since the look before, a second.
struct Rates {
    requests: f64,
    subrequests: f64,
    drives: Vec<DriveRates>,
}

/// What a drive did since the look before, a second.
#[derive(Default)]
struct DriveRates {
    reads: f64,
    writes: f64,
    read_bytes: f64,
    written_bytes: f64,
    /// The share of the time in which it had something to do.
    busy: f64,
}

impl Rates {
    /// Nothing if these are not two looks at one run of an array, one after the other.
    fn of(from: &StatusJson, to: &StatusJson) -> Option<Self> {
        let seconds = to.at_seconds - from.at_seconds;
        if seconds <= 0.0 || from.uuid != to.uuid || from.drives.len() != to.drives.len() {
            return None;
        }
        let rate = |from: Option<u64>, to: Option<u64>| {
            to.unwrap_or_default().saturating_sub(from.unwrap_or_default()) as f64 / seconds
        };
        let of_array = |name: &str| {
            let count = |look: &StatusJson| {
                look.counted().find(|(other, _)| *other == name).map(|(_, count)| count)
            };
            rate(count(from), count(to))
        };
        let drives = from.drives.iter().zip(&to.drives).map(|(from, to)| {
            let of_drive = |name: &str| rate(from.counted(name), to.counted(name));
            DriveRates {
                reads: of_drive("reads"),
                writes: of_drive("writes"),
                read_bytes: of_drive("read_bytes"),
                written_bytes: of_drive("written_bytes"),
                busy: of_drive("busy") / 1e9,
            }
        });
        let (requests, subrequests) = (of_array("requests"), of_array("subrequests"));
        Some(Self { requests, subrequests, drives: drives.collect() })
    }
}

impl View {
    fn row(&self, idx: usize, drive: &DriveJson) -> Vec<String> {
        let rates = self.rates.as_ref().map(|rates| &rates.drives[idx]);
        let figure = |of: fn(&DriveRates) -> f64| {
            rates.map_or("-".to_owned(), |rates| format!("{:.1}", of(rates)))
        };
        vec![
            drive.drive.to_string(),
            drive.standing(),
            drive.member.clone().unwrap_or_else(|| "-".to_owned()),
            drive.queue.to_string(),
            drive.inflight.to_string(),
            figure(|rates| rates.reads),
            figure(|rates| rates.writes),
            figure(|rates| rates.read_bytes / 1e6),
            figure(|rates| rates.written_bytes / 1e6),
            figure(|rates| rates.busy * 100.0),
            format!("{:.2}", drive.median_ms),
        ]
    }
}

impl Show for View {
    fn text(&self) -> String {
        let now = &self.now;
        let mut text = now.head();
        text.push_str(&match &self.rates {
            Some(Rates { requests, subrequests, .. }) => {
                format!("a second: {requests:.1} requests, {subrequests:.1} commands for them\n")
            }
            None => "a second: known from the next look on\n".to_owned(),
        });
        text.push_str(&format!("{}\n", now.latencies()));
        let left = ["drive", "state", "member"].map(Column::left);
        let right = ["queue", "inside", "reads", "writes", "MB read", "MB written", "busy %", "ms"];
        let mut table = Table::new(left.into_iter().chain(right.map(Column::right)));
        for (idx, drive) in now.drives.iter().enumerate() {
            table.push(self.row(idx, drive));
        }
        text.push_str(&table.to_text());
        text.push_str(&now.failures());
        let hidden = now.events.len().saturating_sub(EVENTS_SHOWN);
        for event in &now.events[hidden..] {
            text.push_str(&format!("{}\n", event.line()));
        }
        text
    }

    /// One line: there are many.
    fn json(&self) -> String {
        serde_json::to_string(&self.now).expect("numbers and names are JSON")
    }
}
