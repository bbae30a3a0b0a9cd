//! How far a scrub is, as JSON and as a sentence.

use levelhead_array::{DriveFound, ScrubFound, ScrubProgress, ScrubState};
use levelhead_host::{ScrubStatus, words};
use levelhead_report::json;
use serde::{Deserialize, Serialize};

use levelhead_app::Show;

/// See [`ScrubProgress`].
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub(crate) struct ScrubJson {
    pub(crate) state: String,
    pub(crate) scrubbed_stripes: u64,
    pub(crate) stripes: u64,
    /// Sectors that could not be read and were repaired.
    pub(crate) unreadable: u64,
    /// Sectors that held something else and were repaired.
    pub(crate) wrong: u64,
    pub(crate) unrepaired: u64,
    /// Codewords.
    pub(crate) unlocated: u64,
    /// The part of these that was found on each drive, of those on which something was.
    #[serde(default)]
    pub(crate) drives: Vec<DriveFoundJson>,
    /// Runs of these that no event has reported.
    #[serde(default)]
    pub(crate) unreported: u64,
}

/// See [`DriveFound`].
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub(crate) struct DriveFoundJson {
    pub(crate) drive: u8,
    pub(crate) unreadable: u64,
    pub(crate) wrong: u64,
    pub(crate) unrepaired: u64,
}

impl DriveFoundJson {
    fn of(found: &DriveFound) -> Self {
        let DriveFound { drive, unreadable, wrong, unrepaired } = *found;
        Self { drive: drive.as_usize() as u8, unreadable, wrong, unrepaired }
    }

    fn sentence(&self) -> String {
        let Self { drive, unreadable, wrong, unrepaired } = self;
        let counts = [(unreadable, "unreadable"), (wrong, "wrong"), (unrepaired, "not repaired")];
        let counts = counts.into_iter().filter(|(count, _)| **count > 0);
        let counts: Vec<String> = counts.map(|(count, what)| format!("{count} {what}")).collect();
        format!("drive {drive}: {}", counts.join(", "))
    }
}

impl From<&ScrubStatus> for ScrubJson {
    fn from(ScrubStatus { progress, found }: &ScrubStatus) -> Self {
        Self::new(*progress, found)
    }
}

impl ScrubJson {
    pub(crate) fn new(progress: ScrubProgress, found_on: &[DriveFound]) -> Self {
        let ScrubProgress { state, to, stripes, found, unreported } = progress;
        let ScrubFound { unreadable, wrong, unrepaired, unlocated } = found;
        let state = match state {
            ScrubState::Idle => "idle",
            ScrubState::Running => "running",
            ScrubState::Stopped => "stopped",
            ScrubState::Done => "done",
        };
        Self {
            state: state.to_owned(),
            scrubbed_stripes: to,
            stripes,
            unreadable,
            wrong,
            unrepaired,
            unlocated,
            drives: found_on.iter().map(DriveFoundJson::of).collect(),
            unreported,
        }
    }

    /// What does not match, and was left as it was.
    pub(crate) fn mismatches(&self) -> String {
        match self.unlocated {
            1 => "1 codeword does not match its redundancy".to_owned(),
            count => format!("{count} codewords do not match their redundancy"),
        }
    }

    pub(crate) fn sentence(&self) -> String {
        let Self {
            state,
            scrubbed_stripes,
            stripes,
            unreadable,
            wrong,
            unrepaired,
            unlocated,
            drives,
            unreported,
        } = self;
        let far = format!("scrub: {state}, {scrubbed_stripes} of {stripes} stripes");
        if unreadable + wrong + unrepaired + unlocated == 0 {
            return format!("{far}; nothing was wrong");
        }
        let mut sentence = far;
        if unreadable + wrong > 0 {
            let (sectors, were) =
                (words::counted(*unreadable, "sector"), if *wrong == 1 { "was" } else { "were" });
            let repaired = format!(
                "; repaired {sectors} that could not be read and {wrong} that {were} wrong"
            );
            sentence.push_str(&repaired);
        }
        if *unrepaired > 0 {
            let sectors = words::counted(*unrepaired, "sector");
            sentence.push_str(&format!("; {sectors} could not be repaired"));
        }
        if *unlocated > 0 {
            sentence.push_str(&format!(
                "; {}: nothing tells which drive is wrong, and nothing was changed",
                self.mismatches()
            ));
        }
        drives.iter().for_each(|found| sentence.push_str(&format!("; {}", found.sentence())));
        if *unreported > 0 {
            let runs = words::counted(*unreported, "run");
            sentence.push_str(&format!("; {runs} of sectors had no event of their own"));
        }
        sentence
    }
}

impl Show for ScrubJson {
    fn text(&self) -> String {
        self.sentence()
    }

    fn json(&self) -> String {
        json::pretty(self).expect("numbers are JSON")
    }
}
