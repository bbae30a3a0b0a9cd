//! `levelhead array events`: what has happened to drives' standings, and what happens.

use std::io::{self, BufRead};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Duration;

use super::client::Conversation;
use super::messages::{EventJson, EventsJson, Question, Reply};
use crate::{AppError, Show, Stop};

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
}

/// Whoever is told says whether to go on.
type Hear<'a> = dyn FnMut(Heard<'_>) -> Result<ControlFlow<()>, AppError> + 'a;

/// How often it is looked whether somebody wishes to stop.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Tells `hear` the events that the array keeps, oldest first, and those that come if asked to, each
/// once, until `stop` is wished, `hear` breaks it off, or the array ends in good order. One that ends in
/// some other way is an error, since its last events are not known.
pub fn events(ask: &Events, stop: &Stop, hear: &mut Hear<'_>) -> Result<(), AppError> {
    let mut conversation = Conversation::begin(&ask.array)?;
    conversation.say(Question::Events { after: 0, follow: ask.follow })?;
    let mut last = 0;
    while let Some(EventsJson { events, missed, ended }) = next(&mut conversation, stop)? {
        if missed > 0 {
            let sentence = format!("{missed} events were missed: only the last ones are kept");
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
        if ended && ask.follow {
            return hear(Heard::Sentence("the array has stopped")).map(drop);
        }
        if ended || !ask.follow {
            return Ok(());
        }
    }
    hear(Heard::Sentence(&format!("event {last} was the last one so far"))).map(drop)
}

/// What the array says next, unless somebody wishes to stop first.
fn next(conversation: &mut Conversation, stop: &Stop) -> Result<Option<EventsJson>, AppError> {
    conversation.set_patience(LOOK_EVERY)?;
    let mut line = Vec::new();
    loop {
        if stop.is_wished() {
            return Ok(None);
        }
        match conversation.lines.read_until(b'\n', &mut line) {
            Ok(_) if line.ends_with(b"\n") => break,
            Ok(_) => return Err(conversation.blame("the array has ended, and did not say so")),
            // What has come is in the line already.
            Err(error) if is_early(&error) => {}
            Err(error) => return Err(conversation.blame(error)),
        }
    }
    match conversation.parse(&line)? {
        Reply::Ok(Some(events)) => Ok(Some(events)),
        Reply::Ok(None) => Err(conversation.blame("the array gave no events")),
        Reply::Error(sentence) => Err(AppError::usage(sentence)),
    }
}

fn is_early(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

impl Show for EventJson {
    fn text(&self) -> String {
        self.sentence()
    }

    /// One line: there are many.
    fn json(&self) -> String {
        serde_json::to_string(self).expect("numbers and names are JSON")
    }
}
