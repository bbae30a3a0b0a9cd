//! The five servers: what is published of each, and what was fitted to it.

use std::fmt;
use std::str::FromStr;

use levelhead_units::{Bytes, Nanos, Ratio};

/// A server whose trace `[IRAW08]` describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Server {
    /// A web server.
    Web,
    /// An e-mail server.
    Email,
    /// The home directories of users.
    UserAcc,
    /// A server that code is developed on.
    CodeDev,
    /// A server of the statistical package SAS.
    Sas,
}

/// What `[IRAW08]`, Table 1 says of a trace.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Published {
    /// How long the trace is.
    pub length: Nanos,
    /// The share of the time in which the drive had nothing to do.
    pub idle: Ratio,
    /// The mean length of an idle interval.
    pub idle_mean: Nanos,
    /// The share of reads; the rest are writes.
    pub reads: Ratio,
}

/// How the trace of a server is made up.
#[derive(Clone, Debug)]
pub(super) struct Description {
    pub(super) calm: Calm,
    pub(super) storms: Storms,
    pub(super) heavy: Option<Heavy>,
    /// The probability that a write goes to where a recent one went.
    pub(super) rewrites: f64,
}

/// What is particular to most cycles.
#[derive(Clone, Copy, Debug)]
pub(super) struct Calm {
    /// The mean number of requests in a busy period.
    pub(super) requests_mean: f64,
    /// The mean size of a write.
    pub(super) write: Bytes,
}

/// Stretches of writes alone, whose idle intervals are too short for a verification of 5 ms.
#[derive(Clone, Debug)]
pub(super) struct Storms {
    /// How many cycles each of them has.
    pub(super) cycles: Vec<u64>,
    /// The shortest and the longest idle interval.
    pub(super) idle: [Nanos; 2],
    /// The number of writes in a busy period.
    pub(super) writes: u64,
    /// The mean size of a write.
    pub(super) write: Bytes,
    /// The mean service time of a write.
    pub(super) service: Nanos,
}

/// A stretch that a slow drive cannot carry.
#[derive(Clone, Copy, Debug)]
pub(super) struct Heavy {
    /// How many cycles it has.
    pub(super) cycles: u64,
    /// The shortest and the longest idle interval.
    pub(super) idle: [Nanos; 2],
    /// The mean number of requests in a busy period.
    pub(super) requests_mean: f64,
    /// The share of writes.
    pub(super) writes: f64,
    /// The mean service time of a request.
    pub(super) service: Nanos,
}

impl Server {
    /// All of them, in the paper's order.
    pub const ALL: [Self; 5] = [Self::Web, Self::Email, Self::UserAcc, Self::CodeDev, Self::Sas];

    /// What it is called: `web`, `email`, `user-acc`, `code-dev` or `sas`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Web => "web",
            Self::Email => "email",
            Self::UserAcc => "user-acc",
            Self::CodeDev => "code-dev",
            Self::Sas => "sas",
        }
    }

    /// What the paper says of its trace. The reads of the e-mail server are those of section 5.2,
    /// which says 1.3 % of writes where Table 1 has 99/1.
    pub fn published(self) -> Published {
        let (hours, idle, idle_mean, reads) = match self {
            Self::Web => (7, 96.0, 274, 44.0),
            Self::Email => (25, 92.0, 119, 98.7),
            Self::UserAcc => (12, 98.0, 625, 87.0),
            Self::CodeDev => (12, 94.0, 183, 88.0),
            Self::Sas => (24, 99.0, 88, 40.0),
        };
        let share = |percent: f64| Ratio::new(percent / 100.0).expect("it is a percentage");
        Published {
            length: Nanos::from_secs(hours * 3600),
            idle: share(idle),
            idle_mean: Nanos::from_millis(idle_mean),
            reads: share(reads),
        }
    }

    /// How its trace is made up. Every number here was fitted to tables 1 to 4 or assumed:
    /// `docs/iraw.md` says which.
    pub(super) fn description(self) -> Description {
        const KIB: u64 = 1 << 10;
        let idle = [Nanos::from_micros(500), Nanos::from_micros(4_900)];
        let (requests_mean, write) = match self {
            Self::Web => (2.2, 8 * KIB),
            Self::Email => (2.06, 8 * KIB),
            Self::UserAcc => (2.5, 8 * KIB),
            Self::CodeDev => (2.2, 12 * KIB),
            Self::Sas => (1.2, 8 * KIB),
        };
        let calm = Calm { requests_mean, write: Bytes::new(write) };
        let (writes, write, service) = match self {
            Self::Web => (2, 21_500, 1_800),
            Self::Email => (4, 4_100, 800),
            Self::UserAcc => (4, 7_300, 800),
            Self::CodeDev => (4, 8_400, 2_500),
            Self::Sas => (12, 8_250, 2_550),
        };
        let storms = Storms {
            cycles: self.storm_cycles(),
            idle: if self == Self::Web { [Nanos::from_micros(250), idle[1]] } else { idle },
            writes,
            write: Bytes::new(write),
            service: Nanos::from_micros(service),
        };
        let heavy = Heavy {
            cycles: 2_500,
            idle: [Nanos::from_micros(15_200), Nanos::from_millis(17)],
            requests_mean: 30.0,
            writes: 0.066,
            service: Nanos::from_micros(1_200),
        };
        let (heavy, rewrites) = match self {
            Self::Web | Self::Sas => (None, 0.2),
            Self::Email | Self::UserAcc => (None, 0.0),
            Self::CodeDev => (Some(heavy), 0.0),
        };
        Description { calm, storms, heavy, rewrites }
    }

    fn storm_cycles(self) -> Vec<u64> {
        match self {
            Self::Web => [spread(17, 375.0), vec![1_900]].concat(),
            Self::Email => exponential(4, 12.0, 28),
            Self::UserAcc => exponential(3, 33.0, 58),
            Self::CodeDev => exponential(20, 64.0, 235),
            Self::Sas => spread(5, 1_100.0),
        }
    }
}

/// The quantiles at which `count` lengths stand for their distribution.
fn quantiles(count: u64) -> impl Iterator<Item = f64> {
    (0..count).map(move |at| (at as f64 + 0.5) / count as f64)
}

/// Lengths that are uniform within 15 % of their mean.
fn spread(count: u64, mean: f64) -> Vec<u64> {
    quantiles(count).map(|q| (mean * (0.85 + 0.3 * q)).round() as u64).collect()
}

/// Lengths that are exponential, and none above `cut`.
fn exponential(count: u64, mean: f64, cut: u64) -> Vec<u64> {
    quantiles(count).map(|q| ((-mean * (1.0 - q).ln()).round() as u64).clamp(1, cut)).collect()
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Server {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|server| server.name() == text).ok_or_else(|| {
            format!("no such server '{text}': expected web, email, user-acc, code-dev or sas")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn storms_have_the_lengths_of_their_quantiles() {
        assert_eq!(Server::Email.storm_cycles(), [2, 6, 12, 25]);
        assert_eq!(Server::UserAcc.storm_cycles(), [6, 23, 58]);
        let web = Server::Web.storm_cycles();
        assert_eq!((web.len(), web[0], web[8], web[16], web[17]), (18, 322, 375, 428, 1_900));
        assert_eq!(Server::Sas.storm_cycles(), [968, 1034, 1100, 1166, 1232]);
        let code = Server::CodeDev.storm_cycles();
        assert_eq!((code.len(), code[0], code[19]), (20, 2, 235));
    }

    #[test]
    fn servers_are_known_by_their_names() {
        for server in Server::ALL {
            assert_eq!(server.to_string().parse(), Ok(server));
        }
    }
}
