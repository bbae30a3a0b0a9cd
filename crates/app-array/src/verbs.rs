//! What can be asked of a running array: everything about a verb but what the engine does for it.
//!
//! A [`Verb`] is the question as it goes over the control socket. [`OFFERS`] says how the command line spells
//! it, [`Verb::carry_out`] what the array does, [`Verb::done`] what the client says afterwards. A new verb is
//! an entry in each of them, and a method of [`levelhead_host::Engine`] where that cannot do it yet.

use levelhead_array::RebuildWish;
use levelhead_host::{ArrayHandle, HostError, MemberSpec, Take};
use levelhead_nbd::Uri;
use levelhead_units::{Bytes, DriveIdx, Nanos};
use serde::{Deserialize, Serialize};

use super::members;
use super::messages::{Answer, DamagedJson, EventsJson, StatusJson};
use super::scrub_json::ScrubJson;

/// What can be asked of a running array.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(tag = "verb", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Verb {
    /// Say how the array is.
    Status,
    /// Do without a drive from now on.
    Fail {
        /// The drive's number.
        drive: u8,
    },
    /// Empty the slot of a drive that has failed.
    Remove {
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
    /// Fill a new drive in the place of a lost one.
    Replace {
        /// The drive's number.
        drive: u8,
        /// The new drive.
        device: String,
        /// Whether it is taken although it holds something.
        #[serde(default)]
        force: bool,
    },
    /// Keep a drive that steps in when another one is lost.
    AddSpare {
        /// The spare.
        device: String,
        /// Whether it is taken although it holds something.
        #[serde(default)]
        force: bool,
    },
    /// Let go of a spare.
    RemoveSpare {
        /// The spare, as it was named.
        device: String,
    },
    /// Say how rebuilds go from now on.
    Rebuild {
        /// Whether nothing is copied for now.
        #[serde(default)]
        pause: bool,
        /// Bytes a second that are copied at least, whatever clients ask; 0 for none. What was said before holds where
        /// it is not said.
        #[serde(default)]
        min_rate: Option<u64>,
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
#[derive(Clone, Debug)]
pub struct Offer {
    /// Its name, which is also that of the question.
    pub name: &'static str,
    /// What it does, in one line.
    pub help: &'static str,
    /// What it is made from.
    pub make: Make,
}

/// What a verb is made from on the command line.
#[derive(Clone, Debug)]
pub enum Make {
    /// Nothing else.
    Alone(Verb),
    /// The number of a drive.
    OfDrive(fn(u8) -> Verb),
    /// The number of a drive, and a new drive.
    Replace,
    /// A drive that is to be a spare.
    AddSpare,
    /// A spare.
    RemoveSpare,
    /// How rebuilds go.
    Rebuild,
}

/// The verbs that change a running array, in the order of the help. `status`, `damaged` and `events` are not among them:
/// they have options and outputs of their own.
pub const OFFERS: [Offer; 9] = [
    Offer {
        name: "fail",
        help: "Fail a drive of a running array: the array does not use it any more",
        make: Make::OfDrive(|drive| Verb::Fail { drive }),
    },
    Offer {
        name: "remove",
        help: "Remove a failed drive from its slot, and close it",
        make: Make::OfDrive(|drive| Verb::Remove { drive }),
    },
    Offer {
        name: "sit-out",
        help: "Avoid reading from a drive (admit undoes this)",
        make: Make::OfDrive(|drive| Verb::SitOut { drive }),
    },
    Offer {
        name: "admit",
        help: "Read from an avoided drive again",
        make: Make::OfDrive(|drive| Verb::Admit { drive }),
    },
    Offer {
        name: "replace",
        help: "Replace a drive, failed or not, with a new one",
        make: Make::Replace,
    },
    Offer {
        name: "add-spare",
        help: "Add a spare, which replaces the next drive that fails",
        make: Make::AddSpare,
    },
    Offer { name: "remove-spare", help: "Remove a spare", make: Make::RemoveSpare },
    Offer {
        name: "rebuild",
        help: "Set the minimum rebuild rate, or pause and resume rebuilding",
        make: Make::Rebuild,
    },
    Offer { name: "stop", help: "Stop a running array cleanly", make: Make::Alone(Verb::Stop) },
];

impl Verb {
    /// The same as a server in another folder has to hear it: with the paths of devices made absolute.
    pub(super) fn made_absolute(self) -> Result<Self, HostError> {
        let absolute = |device: String| match Uri::is_one(&device) {
            true => Ok(device),
            false => MemberSpec::absolute(&device),
        };
        Ok(match self {
            Self::Replace { drive, device, force } => {
                Self::Replace { drive, device: absolute(device)?, force }
            }
            Self::AddSpare { device, force } => Self::AddSpare { device: absolute(device)?, force },
            Self::RemoveSpare { device } => Self::RemoveSpare { device: absolute(device)? },
            Self::Status
            | Self::Fail { .. }
            | Self::Remove { .. }
            | Self::SitOut { .. }
            | Self::Admit { .. }
            | Self::Rebuild { .. }
            | Self::Events { .. }
            | Self::Damaged
            | Self::Scrub { .. }
            | Self::Stop => self,
        })
    }

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
                return Ok(Some(Answer::Scrub(ScrubJson::from(&scrub))));
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
            Self::Remove { drive } => array.remove(known(drive)?),
            Self::SitOut { drive } => {
                let drive = known(drive)?;
                array.command(move |engine| engine.sit_out(drive))
            }
            Self::Admit { drive } => {
                let drive = known(drive)?;
                array.command(move |engine| engine.admit(drive))
            }
            Self::Replace { drive, device, force } => {
                let drive = known(drive)?;
                array.replace(drive, &member(&device)?, take(force))
            }
            Self::AddSpare { device, force } => array.add_spare(&member(&device)?, take(force)),
            Self::RemoveSpare { device } => array.remove_spare(&named(&device)?),
            Self::Rebuild { pause, min_rate } => array.command(move |engine| {
                engine.set_rebuild_wish(|before| RebuildWish {
                    is_paused: pause,
                    rate_min: match min_rate {
                        None => before.rate_min,
                        Some(0) => None,
                        Some(rate) => Some(Bytes::new(rate)),
                    },
                });
                Ok(())
            }),
            Self::Stop => return stop().map(|()| None),
        };
        done.map(|()| None).map_err(|error: HostError| error.to_string())
    }

    /// What the client says once it is done, for a verb that is answered with nothing else.
    pub(super) fn done(&self) -> String {
        match self {
            Self::Status | Self::Damaged | Self::Scrub { .. } | Self::Events { .. } => {
                "the array has answered".to_owned()
            }
            Self::Fail { drive } => format!("drive {drive} failed by an operator"),
            Self::Remove { drive } => format!("drive {drive} is removed"),
            Self::SitOut { drive } => {
                format!("the array avoids reading from drive {drive}")
            }
            Self::Admit { drive } => format!("the array reads from drive {drive} again"),
            Self::Replace { drive, device, .. } => {
                format!("replacing drive {drive} with {device}: see array status for progress")
            }
            Self::AddSpare { device, .. } => format!("{device} is a spare"),
            Self::RemoveSpare { device } => format!("{device} is not a spare any more"),
            Self::Rebuild { pause: true, .. } => "rebuilding is paused".to_owned(),
            Self::Rebuild { min_rate: None, .. } => "rebuilding continues".to_owned(),
            Self::Rebuild { min_rate: Some(0), .. } => {
                "rebuilding continues, at the rate that clients leave".to_owned()
            }
            Self::Rebuild { min_rate: Some(rate), .. } => {
                let rate = Bytes::new(*rate);
                format!("rebuilding continues, at {rate} a second at least")
            }
            Self::Stop => "the array has stopped".to_owned(),
        }
    }
}

/// A drive as it was named.
fn member(device: &str) -> Result<MemberSpec, String> {
    check_absolute(device)?;
    let mut all = members(&[device.to_owned()]).map_err(|error| error.to_string())?;
    Ok(all.remove(0))
}

/// The same of one that need not be opened.
fn named(device: &str) -> Result<MemberSpec, String> {
    check_absolute(device)?;
    device.parse().map_err(|error: HostError| error.to_string())
}

/// Refuses a path that means one thing to a client and another one here.
fn check_absolute(device: &str) -> Result<(), String> {
    // An empty name is refused with the reason of its own.
    if device.is_empty() || Uri::is_one(device) || MemberSpec::is_absolute(device) {
        return Ok(());
    }
    Err(format!("{device} is a relative path: expected an absolute one, as in /dev/sdb"))
}

fn take(force: bool) -> Take {
    if force { Take::Any } else { Take::Empty }
}

/// A number that a drive may have.
fn known(drive: u8) -> Result<DriveIdx, String> {
    if drive >= DriveIdx::MAX {
        return Err(format!("drive {drive} does not exist"));
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
                Make::Replace => (
                    Verb::Replace { drive: 3, device: "new".to_owned(), force: true },
                    json!({ "verb": name, "drive": 3, "device": "new", "force": true }),
                ),
                Make::AddSpare => (
                    Verb::AddSpare { device: "new".to_owned(), force: false },
                    json!({ "verb": name, "device": "new", "force": false }),
                ),
                Make::RemoveSpare => (
                    Verb::RemoveSpare { device: "new".to_owned() },
                    json!({ "verb": name, "device": "new" }),
                ),
                Make::Rebuild => (
                    Verb::Rebuild { pause: true, min_rate: Some(5) },
                    json!({ "verb": name, "pause": true, "min_rate": 5 }),
                ),
            };
            assert_eq!(question(verb.clone()), expected);
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
            format!("drive {} does not exist", DriveIdx::MAX)
        );
        assert!(known(DriveIdx::MAX - 1).is_ok());
    }
}
