//! One place of an array: the drive in it, and what the engine knows of its work.

use std::sync::Arc;

use levelhead_block::{Command, Health, Outcome, Reply};

use crate::backend::{Emulated, Look, Member};
use crate::devices::fast::FastFail;
use crate::devices::poller::Poller;
use crate::medium::Medium;
use crate::uring::Under;
use crate::watch::Watch;

/// One place of the array.
pub(crate) struct Seat {
    /// The member as it was named.
    pub(crate) name: Option<String>,
    /// Absent where the drive was missing from the start.
    pub(crate) backend: Option<Backend>,
    /// How the drive is told to try less.
    pub(crate) fast: Option<Arc<FastFail>>,
    /// Watches what a real drive says of itself.
    pub(crate) poller: Option<Poller>,
    /// Looks whether the drive can still be used.
    pub(crate) watch: Option<Watch>,
    pub(crate) work: Work,
}

impl Drop for Seat {
    fn drop(&mut self) {
        if self.work.is_at_work()
            && let Some(backend) = self.backend.take()
        {
            // It hangs, and its end is not to be waited for: its threads go with the program (E4 of the engine).
            backend.abandon();
        }
    }
}

/// Who sees to a drive's commands.
pub(crate) enum Backend {
    /// It does, on threads of its own.
    Member(Box<dyn Member>),
    /// The engine, through its ring, where the drive has this number.
    Ring { lane: usize, under: Arc<Under> },
    /// The engine, at once: no command for it waits.
    AtOnce(Arc<Medium>),
}

impl Backend {
    /// What the drive says about itself, if it says anything.
    fn health(&self) -> Option<Health> {
        match self {
            Self::Member(member) => member.health(),
            Self::Ring { .. } | Self::AtOnce(_) => None,
        }
    }

    /// How to make it misbehave, if that is possible.
    pub(crate) fn emulated(&self) -> Option<&dyn Emulated> {
        match self {
            Self::Member(member) => member.emulated(),
            Self::Ring { .. } | Self::AtOnce(_) => None,
        }
    }

    /// How to see that it must not be used any more although it answers.
    pub(crate) fn look(&self) -> Option<Look> {
        let medium = match self {
            Self::Member(member) => return member.look(),
            Self::Ring { under, .. } => Arc::clone(&under.medium),
            Self::AtOnce(medium) => Arc::clone(medium),
        };
        Some(Box::new(move || medium.shortened().map(|error| error.to_string())))
    }

    /// Lets go of it without waiting for what is under way.
    fn abandon(self) {
        match self {
            Self::Member(member) => std::mem::forget(member),
            // What is under way keeps it open.
            Self::Ring { .. } | Self::AtOnce(_) => {}
        }
    }
}

impl Seat {
    /// A place whose drive is missing.
    pub(crate) fn missing() -> Self {
        let work = Work::default();
        Self { name: None, backend: None, fast: None, poller: None, watch: None, work }
    }

    /// Why the drive must not be used any more although it answers, if that was seen.
    pub(crate) fn loss(&self) -> Option<String> {
        self.watch.as_ref()?.loss()
    }

    /// What the drive says about itself, if it says anything.
    pub(crate) fn health(&self) -> Option<Health> {
        let own = self.backend.as_ref().and_then(Backend::health);
        own.or_else(|| self.poller.as_ref()?.health())
    }
}

/// What an engine knows of a drive's work.
#[derive(Debug, Default)]
pub(crate) struct Work {
    /// Commands inside it.
    inside: u32,
    /// How it last failed.
    error: Option<String>,
    /// Why it was lost, unless somebody wanted that.
    failure: Option<String>,
}

impl Work {
    /// It has got a command.
    pub(crate) fn handle_submitted(&mut self) {
        self.inside += 1;
    }

    /// It has ended a command.
    pub(crate) fn handle_ended(&mut self, command: &Command, reply: &Reply) {
        assert!(self.inside > 0, "a drive ends what it was asked");
        self.inside -= 1;
        match (&reply.reason, &reply.outcome) {
            (Some(reason), _) => self.error = Some(reason.clone()),
            (None, Outcome::Gone) => self.error = Some("it does not answer any more".to_owned()),
            (None, Outcome::Refused) => self.error = Some("it has refused a command".to_owned()),
            // What a read does not give is no failure yet.
            (None, Outcome::Done { damaged, .. }) if command.is_write() && !damaged.is_empty() => {
                self.error = Some("it did not store what it got".to_owned());
            }
            (None, Outcome::Done { .. }) => {}
        }
    }

    /// It has failed in some other way.
    pub(crate) fn handle_error(&mut self, error: String) {
        self.error = Some(error);
    }

    /// The array does without it. Why, if it has failed.
    pub(crate) fn handle_lost(&mut self) -> Option<&str> {
        self.failure = self.error.take();
        self.failure()
    }

    /// Its errors do not count.
    pub(crate) fn forgive(&mut self) {
        self.error = None;
    }

    /// Why it was lost, if it failed.
    pub(crate) fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    /// Whether something is inside it.
    pub(crate) fn is_at_work(&self) -> bool {
        self.inside > 0
    }
}
