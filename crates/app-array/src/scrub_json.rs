//! How far a scrub is, as JSON and as a sentence.

use levelhead_array::{ScrubFound, ScrubProgress, ScrubState};
use levelhead_host::words;
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
}

impl From<ScrubProgress> for ScrubJson {
    fn from(progress: ScrubProgress) -> Self {
        let ScrubProgress { state, to, stripes, found } = progress;
        let ScrubFound { unreadable, wrong, unrepaired, unlocated } = found;
        let state = match state {
            ScrubState::Idle => "idle",
            ScrubState::Running => "running",
            ScrubState::Stopped => "stopped",
            ScrubState::Done => "done",
        };
        let (state, scrubbed_stripes) = (state.to_owned(), to);
        Self { state, scrubbed_stripes, stripes, unreadable, wrong, unrepaired, unlocated }
    }
}

impl ScrubJson {
    pub(crate) fn sentence(&self) -> String {
        let Self { state, scrubbed_stripes, stripes, unreadable, wrong, unrepaired, unlocated } =
            self;
        let far = format!("scrub: {state}, {scrubbed_stripes} of {stripes} stripes");
        if unreadable + wrong + unrepaired + unlocated == 0 {
            return format!("{far}; nothing was wrong");
        }
        format!(
            "{far}; repaired {} that could not be read and {wrong} that {} wrong, {unrepaired} could not be repaired; {} \
             not match and cannot be located",
            words::counted(*unreadable, "sector"),
            if *wrong == 1 { "was" } else { "were" },
            match unlocated {
                1 => "1 codeword does".to_owned(),
                _ => format!("{unlocated} codewords do"),
            }
        )
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
