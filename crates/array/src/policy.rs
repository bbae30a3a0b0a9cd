//! Which drives a read asks, how hard they try, and what happens to what is not needed.
//!
//! One pure function decides, [`Policy::decide`]; [`read`](crate::read) carries the plan out.
//!
//! | policy | first | retries in the drive | when a codeword lacks data | surplus |
//! |---|---|---|---|---|
//! | `normal` | requested data | on | rest of the group, retries on | removed |
//! | `on-failure` | requested data | off | rest of the group; then retries | removed |
//! | `assisted` | whole group | off | retries | removed |
//! | `assisted:no-removal` | whole group | off | retries | kept |
//! | `assisted:own-first` | whole group | off | retries | kept; decodes only if own data failed |
//! | `pro-active[:form]` | `assisted` iff tau > 0, else `normal` | | | |

use std::fmt;
use std::str::FromStr;

use levelhead_block::Effort;

use crate::tau::{Form, Share, net_latency};

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
}

/// What a read asks for first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum First {
    /// The requested data.
    Wanted,
    /// Every sector of the codewords they are in.
    Group,
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
    };

    const ON_FAILURE: Self =
        Self { effort: Effort::Fast, answer: AnswerWhen::Decodable, ..Self::NORMAL };

    const fn assisted(how: Assisted) -> Self {
        let (answer, surplus) = match how {
            Assisted::Removal => (AnswerWhen::Decodable, Surplus::Removed),
            Assisted::NoRemoval => (AnswerWhen::Decodable, Surplus::Kept),
            Assisted::OwnFirst => (AnswerWhen::OwnFailed, Surplus::Kept),
        };
        Self { first: First::Group, effort: Effort::Fast, answer, surplus }
    }
}

impl Policy {
    /// The default.
    pub const DEFAULT: Self = Self::ProActive(Form::Paper);

    /// Decides one read from what is known of the drives of its codewords.
    pub fn decide(self, shares: &[Share]) -> Plan {
        match self {
            Self::Normal => Plan::NORMAL,
            Self::OnFailure => Plan::ON_FAILURE,
            Self::Assisted(how) => Plan::assisted(how),
            Self::ProActive(form) if net_latency(form, shares) > 0.0 => {
                Plan::assisted(Assisted::Removal)
            }
            Self::ProActive(_) => Plan::NORMAL,
        }
    }

    /// Whether what is known of the drives matters to [`Policy::decide`].
    pub(crate) const fn looks_at_drives(self) -> bool {
        match self {
            Self::Normal | Self::OnFailure | Self::Assisted(_) => false,
            Self::ProActive(_) => true,
        }
    }

    /// Every policy, for messages and tests.
    pub fn all() -> Vec<Self> {
        let assisted = [Assisted::Removal, Assisted::NoRemoval, Assisted::OwnFirst];
        let mut all = vec![Self::Normal, Self::OnFailure];
        all.extend(assisted.map(Self::Assisted));
        all.extend(Form::ALL.map(|(form, _)| Self::ProActive(form)));
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
        }
    }
}

impl FromStr for Policy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = if text == "pro-active:paper" { "pro-active" } else { text };
        Self::all().into_iter().find(|policy| policy.to_string() == text).ok_or_else(|| {
            let names: Vec<String> = Self::all().iter().map(Self::to_string).collect();
            format!("'{text}' is no policy: expected one of {}", names.join(", "))
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
        assert!("proactive".parse::<Policy>().unwrap_err().contains("assisted:own-first"));
    }
}
