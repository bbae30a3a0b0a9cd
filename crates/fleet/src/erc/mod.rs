//! What a drive does about errors, and whether that suits the redundancy it belongs to.
//!
//! ```text
//!            drive's limit     kernel's timer          what comes of a bad sector
//!   member   7 s               30 s                    an error in time: the others' redundancy answers and mends it
//!   member   off or missing    30 s                    the kernel resets the link and may throw the member out
//!   member   off or missing    180 s                   slow, and nothing is thrown out
//!   member   missing, flash    any                     an error in time: nothing in it is tried for minutes
//!   alone    off or missing    any                     the drive tries all it can
//!   alone    7 s               any                     data given up that a longer try might have saved
//! ```
//!
//! - EA1. A member that suits its role, with nothing else to say of it, has no finding.
//! - EA2. What was not read is no finding.

use std::fmt;

use crate::smart::{Erc, Limit, Rotation, Smr};

/// Seconds that the kernel has to grant a drive without a limit: none is known to try for longer.
pub const TIMER_WITHOUT_LIMIT: f64 = 180.0;

/// Seconds between a drive's limit and the end of the kernel's patience: a command may wait for others first.
pub const MARGIN: f64 = 10.0;

/// A limit of a drive that is alone on its data and below these seconds gives up sectors.
pub const LIMIT_ALONE: f64 = 30.0;

/// What stands behind a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Others hold what it holds, or enough to compute it.
    Redundant,
    /// No other has its data.
    Alone,
    /// That is not known, or the redundancy is used up: nothing is said of it, and nothing set.
    Unknown,
}

/// Command duration limits, as the kernel shows them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cdl {
    /// The drive has none, or the kernel does not say.
    None,
    /// The drive has them and they are off.
    Off,
    /// They are on.
    On,
}

/// What is known of one drive.
#[derive(Clone, Debug, PartialEq)]
pub struct Audited {
    /// What stands behind it.
    pub role: Role,
    /// Its own limits.
    pub erc: Erc,
    /// Seconds after which the kernel gives up a command, if it was read.
    pub timer: Option<f64>,
    /// Its command duration limits. They hold for commands that ask for them, so they stand in for no limit.
    pub cdl: Cdl,
    /// Whether its volatile write cache is on, if it was read.
    pub write_cache: Option<bool>,
    /// What speaks for shingled tracks.
    pub smr: Smr,
    /// What turns in it.
    pub rotation: Rotation,
}

/// What does not suit a drive's role.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Finding {
    /// It may try for longer than the kernel waits.
    NoLimit {
        /// Whether it has limits at all, so that one can be set.
        can_set: bool,
        /// The kernel's timer in seconds.
        timer: f64,
    },
    /// Its limit of a read is not safely below the kernel's timer.
    LimitTooLong {
        /// In seconds.
        limit: f64,
        /// In seconds.
        timer: f64,
    },
    /// Its reads are limited and its writes are not.
    WriteNotLimited {
        /// The kernel's timer in seconds.
        timer: f64,
    },
    /// Its limit of a write is not safely below the kernel's timer.
    WriteLimitTooLong {
        /// In seconds.
        limit: f64,
        /// In seconds.
        timer: f64,
    },
    /// Alone on its data, it gives up early.
    GivesUp {
        /// In seconds.
        limit: f64,
    },
    /// A member with overlapping tracks: a rebuild onto it may take many times as long.
    Shingled {
        /// What the page says.
        sign: Smr,
    },
}

impl Finding {
    /// What would mend it; nothing where only another drive would.
    pub fn mend(&self) -> Option<&'static str> {
        match self {
            Self::NoLimit { can_set: true, .. }
            | Self::LimitTooLong { .. }
            | Self::WriteNotLimited { .. }
            | Self::WriteLimitTooLong { .. } => {
                Some("set both limits to 7 s: smartctl -l scterc,70,70")
            }
            Self::NoLimit { can_set: false, .. } => {
                Some("let the kernel wait for 180 s: device/timeout")
            }
            Self::GivesUp { .. } => Some(
                "switch the limit off and let the kernel wait for 180 s: smartctl -l scterc,0,0",
            ),
            Self::Shingled { .. } => None,
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoLimit { can_set: true, timer } => {
                write!(
                    f,
                    "its error recovery is not limited, and the kernel gives a command up after {timer} s"
                )
            }
            Self::NoLimit { can_set: false, timer } => {
                write!(
                    f,
                    "its error recovery cannot be limited, and the kernel gives a command up after {timer} s"
                )
            }
            Self::LimitTooLong { limit, timer } => {
                write!(
                    f,
                    "it tries a sector for {limit} s, and the kernel gives a command up after {timer} s"
                )
            }
            Self::WriteNotLimited { timer } => {
                write!(
                    f,
                    "its writes are not limited as its reads are, and the kernel gives them up after {timer} s"
                )
            }
            Self::WriteLimitTooLong { limit, timer } => {
                write!(
                    f,
                    "it tries a write for {limit} s, and the kernel gives a command up after {timer} s"
                )
            }
            Self::GivesUp { limit } => {
                write!(f, "it gives a sector up after {limit} s, and no other drive has that data")
            }
            Self::Shingled { sign: Smr::Zoned } => {
                write!(f, "its tracks overlap: a rebuild onto it may take days")
            }
            Self::Shingled { .. } => {
                write!(
                    f,
                    "it takes TRIM and turns, so its tracks seem to overlap: a rebuild onto it may take days"
                )
            }
        }
    }
}

/// What does not suit the drive's role (EA1, EA2).
pub fn audit(drive: &Audited) -> Vec<Finding> {
    match drive.role {
        Role::Redundant => of_member(drive),
        Role::Alone => of_lone(drive),
        Role::Unknown => Vec::new(),
    }
}

fn of_member(drive: &Audited) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Some(timer) = drive.timer {
        findings.extend(of_limits(drive, timer));
    }
    if drive.smr != Smr::NoSign {
        findings.push(Finding::Shingled { sign: drive.smr });
    }
    findings
}

fn of_limits(drive: &Audited, timer: f64) -> Option<Finding> {
    let is_short = timer < TIMER_WITHOUT_LIMIT;
    let seconds = |tenths: u16| f64::from(tenths) / 10.0;
    match drive.erc {
        Erc::NotRead => None,
        // Flash has no sector to try again and again for minutes.
        Erc::NoSct | Erc::SctWithoutErc if drive.rotation == Rotation::SolidState => None,
        Erc::NoSct | Erc::SctWithoutErc => {
            is_short.then_some(Finding::NoLimit { can_set: false, timer })
        }
        Erc::Limits { read: Limit::Off, .. } => {
            is_short.then_some(Finding::NoLimit { can_set: true, timer })
        }
        Erc::Limits { read: Limit::Tenths(tenths), .. } if seconds(tenths) + MARGIN >= timer => {
            Some(Finding::LimitTooLong { limit: seconds(tenths), timer })
        }
        Erc::Limits { write: Limit::Off, .. } => {
            is_short.then_some(Finding::WriteNotLimited { timer })
        }
        Erc::Limits { write: Limit::Tenths(tenths), .. } if seconds(tenths) + MARGIN >= timer => {
            Some(Finding::WriteLimitTooLong { limit: seconds(tenths), timer })
        }
        Erc::Limits { .. } => None,
    }
}

fn of_lone(drive: &Audited) -> Vec<Finding> {
    let limit = drive.erc.read_seconds().filter(|&limit| limit < LIMIT_ALONE);
    limit.map(|limit| Finding::GivesUp { limit }).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drive(role: Role, read: Limit, timer: f64) -> Audited {
        Audited {
            role,
            erc: Erc::Limits { read, write: read },
            timer: Some(timer),
            cdl: Cdl::None,
            write_cache: Some(true),
            smr: Smr::NoSign,
            rotation: Rotation::PerMinute(7200),
        }
    }

    #[test]
    fn member_with_a_limit_below_the_timer_has_no_finding() {
        for tenths in [1, 70, 100, 140, 199] {
            assert_eq!(audit(&drive(Role::Redundant, Limit::Tenths(tenths), 30.0)), []);
        }
        assert_eq!(audit(&drive(Role::Redundant, Limit::Off, 180.0)), []);
        assert_eq!(audit(&drive(Role::Alone, Limit::Off, 30.0)), []);
    }

    #[test]
    fn member_that_outlasts_the_kernel_has_one() {
        let off = audit(&drive(Role::Redundant, Limit::Off, 179.0));
        assert_eq!(off, [Finding::NoLimit { can_set: true, timer: 179.0 }]);
        let long = audit(&drive(Role::Redundant, Limit::Tenths(200), 30.0));
        assert_eq!(long, [Finding::LimitTooLong { limit: 20.0, timer: 30.0 }]);
        let none = Audited { erc: Erc::NoSct, ..drive(Role::Redundant, Limit::Off, 30.0) };
        assert_eq!(audit(&none), [Finding::NoLimit { can_set: false, timer: 30.0 }]);
        let flash = Audited { rotation: Rotation::SolidState, ..none.clone() };
        assert_eq!(audit(&flash), []);
        let write = Erc::Limits { read: Limit::Tenths(70), write: Limit::Off };
        let write = Audited { erc: write, ..none };
        assert_eq!(audit(&write), [Finding::WriteNotLimited { timer: 30.0 }]);
    }

    #[test]
    fn lone_drive_has_the_opposite() {
        let short = audit(&drive(Role::Alone, Limit::Tenths(1), 30.0));
        assert_eq!(short, [Finding::GivesUp { limit: 0.1 }]);
    }

    #[test]
    fn what_was_not_read_is_no_finding() {
        for limit in [Limit::Off, Limit::Tenths(1), Limit::Tenths(200)] {
            assert_eq!(audit(&drive(Role::Unknown, limit, 30.0)), []);
        }
        for role in [Role::Redundant, Role::Alone] {
            let unread = Audited { erc: Erc::NotRead, timer: None, ..drive(role, Limit::Off, 0.0) };
            assert_eq!(audit(&unread), []);
        }
    }
}
