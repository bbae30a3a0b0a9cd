//! `levelhead array events`: what has happened to an array and its drives, and what happens.

use std::io::{self, BufRead};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Duration;

use levelhead_host::EVENTS_MAX;

use super::client::Conversation;
use super::event_json::EventJson;
use super::messages::{EventsJson, Reply};
use super::verbs::Verb;
use levelhead_app::{AppError, Show, Stop};

/// What to show.
#[derive(Clone, Debug)]
pub struct Events {
    /// The running array: its control socket or any of its members.
    pub array: PathBuf,
    /// Go on with what happens, until the array has ended.
    pub follow: bool,
}

/// One thing that is heard.
pub enum Heard<'a> {
    /// An event, one line as text and as JSON.
    Event(&'a dyn Show),
    /// A sentence about the events.
    Sentence(&'a str),
    /// Nothing has come for a moment: the caller may look whether its output is still read.
    Nothing,
}

/// The listener returns whether to go on.
type Hear<'a> = dyn FnMut(Heard<'_>) -> Result<ControlFlow<()>, AppError> + 'a;

/// The time without an event after which the listener is called with [`Heard::Nothing`].
const MOMENT: Duration = Duration::from_millis(100);

/// What comes next.
enum Next {
    News(EventsJson),
    /// A stop was asked for.
    Stopped,
    /// The listener does not want to go on.
    Unheard,
}

/// Tells `hear` the events that the array keeps, oldest first, and those that come if asked to, each
/// once, until `stop` is wished, `hear` breaks it off, or the array ends in good order. A connection that
/// breaks is an error, since what happens after it is not known.
pub fn events(ask: &Events, stop: &Stop, hear: &mut Hear<'_>) -> Result<(), AppError> {
    let mut conversation = Conversation::begin(&ask.array)?;
    conversation.say(&Verb::Events { after: 0, follow: ask.follow })?;
    conversation.set_patience(MOMENT)?;
    let mut last = 0;
    loop {
        let EventsJson { events, missed, ended } = match next(&mut conversation, stop, hear, last)?
        {
            Next::News(news) => news,
            Next::Stopped => return hear(Heard::Sentence(&farewell(last))).map(drop),
            Next::Unheard => return Ok(()),
        };
        if missed > 0 {
            let (first, end) = (last + 1, last + missed);
            let sentence = format!(
                "events {first} to {end} are missing: the array keeps the last {EVENTS_MAX}"
            );
            if hear(Heard::Sentence(&sentence))?.is_break() {
                return Ok(());
            }
        }
        for event in &events {
            last = event.number;
            if hear(Heard::Event(event))?.is_break() {
                return Ok(());
            }
        }
        match (ask.follow, ended) {
            (false, _) => return Ok(()),
            (true, true) => return hear(Heard::Sentence("the array has stopped")).map(drop),
            (true, false) => {}
        }
    }
}

fn farewell(last: u64) -> String {
    match last {
        0 => "there was no event so far".to_owned(),
        last => format!("event {last} was the last one so far"),
    }
}

/// What the array says after event number `last`, unless something comes first.
fn next(
    conversation: &mut Conversation,
    stop: &Stop,
    hear: &mut Hear<'_>,
    last: u64,
) -> Result<Next, AppError> {
    let mut line = Vec::new();
    loop {
        if stop.is_wished() {
            return Ok(Next::Stopped);
        }
        match conversation.lines.read_until(b'\n', &mut line) {
            Ok(_) if line.ends_with(b"\n") => break,
            Ok(_) => {
                conversation.check_kind(&line)?;
                let sentence =
                    format!("the connection broke; what came after event {last} is not known");
                return Err(conversation.blame(sentence));
            }
            // What has come is in the line already.
            Err(error) if is_early(&error) => {
                if hear(Heard::Nothing)?.is_break() {
                    return Ok(Next::Unheard);
                }
            }
            Err(error) => return Err(conversation.blame(error)),
        }
    }
    match conversation.parse(&line)? {
        Reply::Ok(Some(events)) => Ok(Next::News(events)),
        Reply::Ok(None) => Err(conversation.blame("the array returned no events")),
        Reply::Error(sentence) => Err(AppError::usage(sentence)),
    }
}

fn is_early(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

impl Show for EventJson {
    fn text(&self) -> String {
        self.line()
    }

    /// One line: there are many.
    fn json(&self) -> String {
        serde_json::to_string(self).expect("numbers and names are JSON")
    }
}
