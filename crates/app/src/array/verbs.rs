//! What can be asked of a running array: everything about a verb but what the engine does for it.
//!
//! A [`Verb`] is the question as it goes over the control socket. [`OFFERS`] says how the command line spells
//! it, [`Verb::carry_out`] what the array does, [`Verb::done`] what the client says afterwards. A new verb is
//! an entry in each of them, and a method of [`levelhead_host::Engine`] where that cannot do it yet.

use levelhead_host::{ArrayHandle, HostError};
use levelhead_units::{DriveIdx, Nanos};
use serde::{Deserialize, Serialize};

use super::messages::{Answer, DamagedJson, EventsJson, StatusJson};
use super::scrub_json::ScrubJson;

/// What can be asked of a running array.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(tag = "verb", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Verb {
    /// Say how the array is.
    Status,
    /// Do without a drive from now on.
    Fail {
        /// The drive's number.
        drive: u8,
    },
    /// Do not read a drive where that can be helped.
    SitOut {
        /// The drive's number.
        drive: u8,
    },
    /// Read a drive again that sits out.
    Admit {
        /// The drive's number.
        drive: u8,
    },
    /// Say what has happened.
    Events {
        /// Since the event of this number.
        #[serde(default)]
        after: u64,
        /// Whether to go on and tell what happens from now on.
        #[serde(default)]
        follow: bool,
    },
    /// Say which sectors are damaged.
    Damaged,
    /// Read and compare everything, and repair what can be.
    Scrub {
        /// What is to be done about it.
        what: ScrubWhat,
    },
    /// Stop in good order.
    Stop,
}

/// What is to be done about a scrub. Whatever it is, the answer says how far the scrub is then.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ScrubWhat {
    /// Begin one, or go on with one that was stopped.
    Start,
    /// End it.
    Stop,
    /// Nothing.
    Status,
}

/// A verb as the command line offers it.
#[derive(Clone, Copy, Debug)]
pub struct Offer {
    /// Its name, which is also that of the question.
    pub name: &'static str,
    /// What it does, in one line.
    pub help: &'static str,
    /// What it is made from.
    pub make: Make,
}

/// What a verb is made from on the command line.
#[derive(Clone, Copy, Debug)]
pub enum Make {
    /// Nothing else.
    Alone(Verb),
    /// The number of a drive.
    OfDrive(fn(u8) -> Verb),
}

/// The verbs that change a running array, in the order of the help. `status`, `damaged` and `events` are not among them:
/// they have options and outputs of their own.
pub const OFFERS: [Offer; 4] = [
    Offer {
        name: "fail",
        help: "Make a running array do without a drive",
        make: Make::OfDrive(|drive| Verb::Fail { drive }),
    },
    Offer {
        name: "sit-out",
        help: "Make a running array read a drive only where nothing else will do",
        make: Make::OfDrive(|drive| Verb::SitOut { drive }),
    },
    Offer {
        name: "admit",
        help: "Make a running array read a drive again that sits out",
        make: Make::OfDrive(|drive| Verb::Admit { drive }),
    },
    Offer {
        name: "stop",
        help: "Stop a running array in good order",
        make: Make::Alone(Verb::Stop),
    },
];

impl Verb {
    /// What the array does and answers. `stop` ends it and says how that went.
    pub(super) fn carry_out(
        self,
        array: &ArrayHandle,
        stop: impl FnOnce() -> Result<(), String>,
    ) -> Result<Option<Answer>, String> {
        let done = match self {
            Self::Status => {
                let status = array.status().map_err(|error: HostError| error.to_string())?;
                return Ok(Some(Answer::Status(Box::new(StatusJson::from(&status)))));
            }
            Self::Damaged => {
                let damaged = array
                    .command(|engine| Ok(engine.damaged()))
                    .map_err(|error: HostError| error.to_string())?;
                return Ok(Some(Answer::Damaged(DamagedJson::from(&damaged))));
            }
            Self::Scrub { what } => {
                let scrub = array.command(move |engine| match what {
                    ScrubWhat::Start => engine.start_scrub(),
                    ScrubWhat::Stop => engine.stop_scrub(),
                    ScrubWhat::Status => Ok(engine.scrub()),
                });
                let scrub = scrub.map_err(|error: HostError| error.to_string())?;
                return Ok(Some(Answer::Scrub(ScrubJson::from(scrub))));
            }
            Self::Events { after, follow: _ } => {
                let since = array
                    .events(after, Nanos::ZERO)
                    .map_err(|error: HostError| error.to_string())?;
                return Ok(Some(Answer::Events(EventsJson::from(&since))));
            }
            Self::Fail { drive } => {
                let drive = known(drive)?;
                array.lose(drive)
            }
            Self::SitOut { drive } => {
                let drive = known(drive)?;
                array.command(move |engine| engine.sit_out(drive))
            }
            Self::Admit { drive } => {
                let drive = known(drive)?;
                array.command(move |engine| engine.admit(drive))
            }
            Self::Stop => return stop().map(|()| None),
        };
        done.map(|()| None).map_err(|error: HostError| error.to_string())
    }

    /// What the client says once it is done, for a verb that is answered with nothing else.
    pub(super) fn done(self) -> String {
        match self {
            Self::Status | Self::Damaged | Self::Scrub { .. } | Self::Events { .. } => {
                "the array has answered".to_owned()
            }
            Self::Fail { drive } => format!("the array does without drive {drive}"),
            Self::SitOut { drive } => {
                format!("the array reads drive {drive} only where nothing else will do")
            }
            Self::Admit { drive } => format!("the array reads drive {drive} again"),
            Self::Stop => "the array has stopped".to_owned(),
        }
    }
}

/// A number that a drive may have.
fn known(drive: u8) -> Result<DriveIdx, String> {
    if drive >= DriveIdx::MAX {
        return Err(format!("there is no drive {drive}"));
    }
    Ok(DriveIdx::new(drive))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn question(verb: Verb) -> Value {
        serde_json::to_value(verb).unwrap()
    }

    #[test]
    fn command_line_and_control_socket_have_the_same_names() {
        for Offer { name, make, .. } in OFFERS {
            let (verb, expected) = match make {
                Make::Alone(verb) => (verb, json!({ "verb": name })),
                Make::OfDrive(make) => (make(3), json!({ "verb": name, "drive": 3 })),
            };
            assert_eq!(question(verb), expected);
            assert_eq!(serde_json::from_value::<Verb>(expected).unwrap(), verb);
        }
    }

    #[test]
    fn every_verb_but_those_with_options_of_their_own_is_offered_once() {
        let mut offered: Vec<&str> = OFFERS.iter().map(|offer| offer.name).collect();
        offered.extend(["damaged", "events", "scrub", "status"]);
        offered.sort_unstable();
        // What the parser itself says that it knows.
        let error = serde_json::from_value::<Verb>(json!({ "verb": "dance" })).unwrap_err();
        let error = error.to_string();
        let mut known: Vec<&str> = error.split('`').skip(3).step_by(2).collect();
        known.sort_unstable();
        assert_eq!(offered, known, "{error}");
    }

    #[test]
    fn question_with_a_word_too_much_or_a_drive_that_cannot_be_is_refused() {
        let verb = json!({ "verb": "admit", "drive": 1, "now": true });
        assert!(serde_json::from_value::<Verb>(verb).is_err());
        assert_eq!(
            known(DriveIdx::MAX).unwrap_err(),
            format!("there is no drive {}", DriveIdx::MAX)
        );
        assert!(known(DriveIdx::MAX - 1).is_ok());
    }
}
