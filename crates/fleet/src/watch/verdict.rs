//! What is said of a drive, and the line that says it.

use std::fmt;

use crate::detect::WINDOW;

/// A drive's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// As its peers.
    Fine,
    /// Slower than they are, but not yet for longer than chance explains.
    Suspect,
    /// Slower than they are, for longer than chance explains.
    Slow,
    /// Something is inside it and nothing ends.
    Hung,
    /// It and the others are slower than they have been, all together: the host or what is between.
    HostWide,
    /// Nothing can be said.
    CannotTell(Why),
}

/// Why nothing can be said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// It has fewer than [`super::PEERS_MIN`] peers.
    FewPeers,
    /// Its group has enough drives, but not of its model.
    UnlikeModels,
    /// Too little happened.
    Idle,
    /// Its group is being rebuilt or checked.
    Rebuilding,
    /// Its counters could not be read.
    NotRead,
}

impl State {
    /// All there are, by [`Self::name`].
    pub const NAMES: &'static [&'static str] =
        &["fine", "suspect", "slow", "hung", "host-wide", "cannot-tell"];

    /// In one word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fine => "fine",
            Self::Suspect => "suspect",
            Self::Slow => "slow",
            Self::Hung => "hung",
            Self::HostWide => "host-wide",
            Self::CannotTell(_) => "cannot-tell",
        }
    }
}

impl Why {
    /// In a few words.
    pub fn text(self) -> &'static str {
        match self {
            Self::FewPeers => "too few peers",
            Self::UnlikeModels => "too few peers of its model",
            Self::Idle => "too little to do",
            Self::Rebuilding => "its group is being rebuilt or checked",
            Self::NotRead => "its counters cannot be read",
        }
    }
}

/// How a drive compares with its peers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Comparison {
    /// Its latency over the median of its peers'.
    pub ratio: f64,
    /// The lower end of an interval of it.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// When it was first found slow, in unix seconds.
    pub decided_at: Option<i64>,
}

/// What is said of one drive of one group.
#[derive(Clone, Debug, PartialEq)]
pub struct DriveVerdict {
    /// The group's name.
    pub group: String,
    /// What identifies the drive.
    pub key: String,
    /// The kernel's name for it now.
    pub device: String,
    /// What it is found to be.
    pub state: State,
    /// How it compares; `None` before the first window.
    pub comparison: Option<Comparison>,
    /// Hours of windows that were of use.
    pub busy_hours: f64,
    /// Drives that it is compared with.
    pub peers: usize,
    /// Its load over the median of its peers', over the last hours.
    pub load_ratio: Option<f64>,
    /// Seconds that it has been slow or hung.
    pub slow_seconds: u64,
    /// Seconds from the end of the last window in which enough of its commands ended to the last sample.
    pub age: Option<i64>,
}

impl DriveVerdict {
    /// Whether its comparison is of now and not of a past in which the drive was busy.
    pub fn is_recent(&self) -> bool {
        self.age.is_some_and(|age| age <= RECENT)
    }

    /// Whether an operator should look at it.
    pub fn is_trouble(&self) -> bool {
        matches!(self.state, State::Slow | State::Hung)
    }
}

/// A comparison that is older, in seconds, is shown with its age: three windows.
const RECENT: i64 = 3 * WINDOW;

impl fmt::Display for DriveVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.group, self.device)?;
        if self.key != self.device {
            write!(f, " ({})", self.key)?;
        }
        match self.state {
            State::Hung => return write!(f, " hangs: commands are inside it and none ends"),
            State::CannotTell(why) => {
                let Self { peers, busy_hours, .. } = self;
                let why = why.text();
                return write!(
                    f,
                    ": cannot tell, {why} (peers: {peers}, busy hours: {busy_hours:.1})"
                );
            }
            State::Fine => write!(f, " is fine")?,
            State::Suspect => write!(f, " may be slow")?,
            State::Slow => write!(f, " is slow")?,
            State::HostWide => {
                write!(f, " is slower than it was, and so are all others: look at the host")?;
            }
        }
        if let Some(Comparison { ratio, low, high, .. }) = self.comparison {
            let Self { peers, busy_hours, .. } = self;
            write!(
                f,
                ": {ratio:.2} times the median of its {peers} peers ({low:.2} to {high:.2}), {busy_hours:.1} busy hours"
            )?;
        }
        if let Some(load) = self.load_ratio {
            write!(f, ", at {load:.2} times their load")?;
        }
        match self.age {
            Some(age) if !self.is_recent() => write!(f, ", {:.1} h ago", age as f64 / 3600.0),
            _ => Ok(()),
        }
    }
}

/// A drive is found to be something else.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// When, in unix seconds.
    pub at: i64,
    /// What it was found to be before.
    pub before: State,
    /// What is said now.
    pub now: DriveVerdict,
}

impl Event {
    /// Whether the verdict is another one, and not only why there is none.
    pub fn is_of_verdict(&self) -> bool {
        self.before.name() != self.now.state.name()
    }
}
