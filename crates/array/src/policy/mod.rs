//! Which drives a read asks, how hard they try, and what happens to what is not needed.
//!
//! One pure function decides, [`Policy::decide`]; [`read`](crate::ops::read) carries the plan out.
//!
//! ```text
//!   what is known of each drive, and its share of the read --> decide --> Plan: what is asked first and
//!                                                                         how, when a drive is late,
//!                                                                         what happens to the rest
//! ```
//!
//! | policy | first | retries in the drive | when a codeword lacks data | surplus |
//! |---|---|---|---|---|
//! | `normal` | requested data | on | rest of the group, retries on | removed |
//! | `on-failure` | requested data | off | rest of the group; then retries | removed |
//! | `assisted` | whole group | off | retries | removed |
//! | `assisted:no-removal` | whole group | off | retries | kept |
//! | `assisted:own-first` | whole group | off | retries | kept; decodes only if own data failed |
//! | `pro-active[:form]` | `assisted` iff tau > 0, else `normal` | | | |
//! | `tolerant:..` | see [`tolerant`] | on | as much as decodes | removed |
//! | `level[:extra-reads=P%]` | see [`level`] | off, or on where a second trip costs more | rest of the group; then the fewest retries | removed |
//!
//! `on-failure` is what a RAID of drives with limited retries does, the other five before `tolerant` are
//! of `[ERAID]`, `tolerant` is of `[TAIL16]`, `level` is our own. Under every policy a drive that an operator has
//! sat out is read only where the other drives do not suffice.

pub(crate) mod cost;
pub mod level;
pub(crate) mod mirror;
pub mod tau;
pub mod tolerant;

use std::fmt;
use std::str::FromStr;

use levelhead_block::Effort;
use levelhead_units::{DriveSet, meant};

use crate::policy::tau::{Form, Share, net_latency};
use crate::shape::Losses;
use level::Level;
use tolerant::Tolerant;

/// How reads are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Today's practice: drives retry, redundancy is for what they give up on.
    Normal,
    /// Requested data without retries; the rest of the group after a failure.
    OnFailure,
    /// The whole group without retries (system-assisted mode of `[ERAID]`), with one of its three
    /// implementations.
    Assisted(Assisted),
    /// Decides between the two for each request by the sign of tau.
    ProActive(Form),
    /// Tolerates whole drives that are late (`[TAIL16]`).
    Tolerant(Tolerant),
    /// Our own.
    Level(Level),
}

/// Three ways to serve a read with its whole coding group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Assisted {
    /// Answers as soon as the group decodes and withdraws what still waits.
    Removal,
    /// The same, and withdraws nothing ("pro-active" among the paper's implementations).
    NoRemoval,
    /// Waits for the requested data and decodes only if that failed; withdraws nothing ("reactive"
    /// among the paper's implementations).
    OwnFirst,
}

/// How one read is carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// What is asked for first.
    pub first: First,
    /// How hard the drives try.
    pub effort: Effort,
    /// When decoded data may stand in for requested data.
    pub answer: AnswerWhen,
    /// What happens to sub-requests still waiting at the answer.
    pub surplus: Surplus,
    /// When a drive that has not answered is *late*: what it still owes is not counted on any more.
    pub late: Late,
    /// What is done about sectors that the drives did not give without retries.
    pub again: Again,
    /// Drives that are not counted on while the others suffice.
    pub aside: DriveSet,
    /// Commands beyond those that must be made, to drives that are all healthy.
    pub extra: u32,
}

/// What a read asks for first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum First {
    /// The requested data.
    Wanted,
    /// All data of the codewords it is in, and the redundancy of this number of drives.
    Spare(u8),
    /// Every sector of the codewords it is in.
    Group,
    /// Every sector of the codewords of which at least half of the data is requested; of the others, the requested data.
    GroupOfHalf,
}

/// When a drive is late with its part of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Late {
    /// Never: it is waited for.
    Never,
    /// After this multiple of the median time that its fellows took for the same read.
    TimesMedian(u8),
    /// The same, but it is only noted for later reads, and waited for.
    Noted(u8),
    /// When it is far behind its fellows, compared with the usual distance, or has ended nothing for long, or has
    /// ended too many other commands. A long queue alone makes no drive late.
    WhenSlow,
}

/// Which lost sectors are asked for again, with retries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Again {
    /// The requested ones, or if that is not enough, all.
    Requested,
    /// The fewest that suffice.
    Fewest,
}

/// When decoded data may stand in for requested data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerWhen {
    /// As soon as enough symbols are there.
    Decodable,
    /// Only for sectors whose own drive has failed to give them.
    OwnFailed,
}

/// What happens to sub-requests still waiting at the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Surplus {
    /// They are withdrawn.
    Removed,
    /// They run.
    Kept,
}

impl Plan {
    /// The normal mode.
    pub const NORMAL: Self = Self {
        first: First::Wanted,
        effort: Effort::Full,
        answer: AnswerWhen::OwnFailed,
        surplus: Surplus::Removed,
        late: Late::Never,
        again: Again::Requested,
        aside: DriveSet::EMPTY,
        extra: 0,
    };

    const ON_FAILURE: Self =
        Self { effort: Effort::Fast, answer: AnswerWhen::Decodable, ..Self::NORMAL };

    const fn assisted(how: Assisted) -> Self {
        let (answer, surplus) = match how {
            Assisted::Removal => (AnswerWhen::Decodable, Surplus::Removed),
            Assisted::NoRemoval => (AnswerWhen::Decodable, Surplus::Kept),
            Assisted::OwnFirst => (AnswerWhen::OwnFailed, Surplus::Kept),
        };
        Self { first: First::Group, effort: Effort::Fast, answer, surplus, ..Self::NORMAL }
    }
}

/// What a decision is made from.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// The drives that are there, with their shares of the read. Policies that
    /// [do not look](Policy::looks_at_drives) are given none.
    pub shares: &'a [Share],
    /// How many drives may be done without: redundant drives less lost ones. Of a mirror those of `shares` less those
    /// with requested data.
    pub spare: usize,
    /// Present if the array is a mirror: `shares` are then the drives with copies of what is read.
    pub mirror: Option<Losses>,
    /// When requests come.
    pub arrivals: Arrivals,
    /// Commands inside a drive at most.
    pub window: f64,
    /// Commands that a read found at a drive, averaged over the last reads.
    pub seen: f64,
    /// How many commands healthy drives may be given beyond those that must be.
    pub extra: f64,
    /// Whether the read begins close to where the last command of its drive ends, and that drive has something to do.
    pub follows: bool,
    /// Drives that are not to be read while others suffice: sat out by the array or by an operator.
    pub sat_out: DriveSet,
    /// Those of them that an operator sat out, and silent drives.
    pub by_hand: DriveSet,
    /// Drives that were late in every one of their last reads, for `tolerant:adaptive`.
    pub persistent: DriveSet,
}

impl View<'_> {
    /// Whether these drives can be done without.
    pub(crate) fn can_spare(&self, aside: DriveSet) -> bool {
        match self.mirror {
            None => aside.len() as usize <= self.spare,
            Some(losses) => losses.can_spare(aside),
        }
    }
}

/// When requests come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrivals {
    /// Independently of the answers: a delay of one request delays those that are in the array with it.
    Independent,
    /// When others are answered, so that the same number is outstanding at all times: a delay of one request delays
    /// all that come after it, too.
    UponAnswers,
}

impl Policy {
    /// The default.
    pub const DEFAULT: Self = Self::Level(Level::DEFAULT);

    /// Decides one read. It takes under a microsecond (`cargo bench -p bench --bench decide`) and allocates
    /// nothing.
    pub fn decide(self, view: &View<'_>) -> Plan {
        let plan = match self {
            Self::Normal => Plan::NORMAL,
            Self::OnFailure => Plan::ON_FAILURE,
            Self::Assisted(how) => Plan::assisted(how),
            Self::ProActive(form) if net_latency(form, view.shares) > 0.0 => {
                Plan::assisted(Assisted::Removal)
            }
            Self::ProActive(_) => Plan::NORMAL,
            Self::Tolerant(tolerant) => tolerant.decide(view.persistent),
            Self::Level(_) => return level::decide(view),
        };
        if view.sat_out.is_empty() {
            return plan;
        }
        // Data on a drive that sits out is computed before the drive is waited for.
        Plan { aside: view.sat_out, answer: AnswerWhen::Decodable, ..plan }
    }

    /// How many commands healthy drives may be given beyond those that must be, as a share of these.
    pub fn extra_reads(self) -> f64 {
        match self {
            Self::Level(level) => f64::from(level.extra_percent) / 100.0,
            Self::Normal
            | Self::OnFailure
            | Self::Assisted(_)
            | Self::ProActive(_)
            | Self::Tolerant(_) => 0.0,
        }
    }

    /// Whether what is known of the drives matters to [`Policy::decide`].
    pub const fn looks_at_drives(self) -> bool {
        match self {
            Self::Normal | Self::OnFailure | Self::Assisted(_) | Self::Tolerant(_) => false,
            Self::ProActive(_) | Self::Level(_) => true,
        }
    }

    /// Whether the array may sit out a slow drive by itself. The papers' policies are left as they are.
    pub const fn sits_out(self) -> bool {
        match self {
            Self::Level(_) => true,
            Self::Normal
            | Self::OnFailure
            | Self::Assisted(_)
            | Self::ProActive(_)
            | Self::Tolerant(_) => false,
        }
    }

    /// Every policy, for messages and tests.
    pub fn all() -> Vec<Self> {
        let assisted = [Assisted::Removal, Assisted::NoRemoval, Assisted::OwnFirst];
        let mut all = vec![Self::Normal, Self::OnFailure];
        all.extend(assisted.map(Self::Assisted));
        all.extend(Form::ALL.map(|(form, _)| Self::ProActive(form)));
        all.extend(Tolerant::ALL.map(|(tolerant, _)| Self::Tolerant(tolerant)));
        all.push(Self::DEFAULT);
        all
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Normal => f.write_str("normal"),
            Self::OnFailure => f.write_str("on-failure"),
            Self::Assisted(Assisted::Removal) => f.write_str("assisted"),
            Self::Assisted(Assisted::NoRemoval) => f.write_str("assisted:no-removal"),
            Self::Assisted(Assisted::OwnFirst) => f.write_str("assisted:own-first"),
            Self::ProActive(Form::Paper) => f.write_str("pro-active"),
            Self::ProActive(form) => write!(f, "pro-active:{form}"),
            Self::Tolerant(tolerant) => write!(f, "tolerant:{tolerant}"),
            Self::Level(level) => write!(f, "{level}"),
        }
    }
}

impl FromStr for Policy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // It gave drives nothing new for the sake of old requests, or not; now that is never done.
        let text = if text == "level:no-admission" { "level" } else { text };
        if let Some(percent) = text.strip_prefix("level:extra-reads=") {
            return percent.parse().map(Self::Level);
        }
        let text = if text == "pro-active:paper" { "pro-active" } else { text };
        Self::all().into_iter().find(|policy| policy.to_string() == text).ok_or_else(|| {
            let names: Vec<String> = Self::all().iter().map(Self::to_string).collect();
            format!(
                "'{text}' is not a policy: expected one of {}, level:extra-reads=P%{}",
                names.join(", "),
                meant(text, names.iter().map(String::as_str))
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back() {
        for policy in Policy::all() {
            assert_eq!(policy.to_string().parse(), Ok(policy));
        }
        assert_eq!("pro-active:paper".parse(), Ok(Policy::ProActive(Form::Paper)));
        let level = |percent| Policy::Level(Level { extra_percent: percent });
        assert_eq!("level:extra-reads=25%".parse(), Ok(level(25)));
        assert_eq!("level:no-admission".parse(), Ok(Policy::DEFAULT));
        assert_eq!("level:extra-reads=5%".parse(), Ok(Policy::DEFAULT));
        assert_eq!(level(100).to_string(), "level:extra-reads=100%");
        for wrong in ["level:extra-reads=", "level:extra-reads=5", "level:extra-reads=1001%"] {
            assert!(wrong.parse::<Policy>().unwrap_err().contains("0% to 1000%"), "{wrong}");
        }
        assert!("proactive".parse::<Policy>().unwrap_err().contains("assisted:own-first"));
    }
}
