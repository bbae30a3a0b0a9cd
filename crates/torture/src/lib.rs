//! The judge of the cores: what may go wrong with drives, power and servers, drawn by seed, and promises that are checked
//! after every one of it. For development only: no program that is shipped contains it.
//!
//! | module | what runs | what goes wrong |
//! |---|---|---|
//! | [`crash`] | an array with its bytes, no time | power cuts at every effect boundary, losses, returns, drives that lie |
//! | [`rot`] | the same with checksums | a drive that rots, or loses, tears or misdirects writes |
//! | [`files`] | a filesystem | power cuts, damaged copies and redundancy |
//! | [`search`] | an array, in small | every order, every power cut, every loss within a bound |
//! | [`restarts`] | an array over modelled drives | stops and cuts between any two records, old members put back |
//! | [`swarm`] | the same | drives that fail, hang, stall, lose and tear writes |
//! | [`tails`] | the same | drives that are slow: the tail of reads is bounded |

#![forbid(unsafe_code)]

pub mod crash;
pub mod disk;
pub mod files;
pub mod restarts;
pub mod rot;
pub mod search;
pub mod swarm;
pub mod tails;

use std::fmt;

/// A promise that was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// The seed of the run.
    pub seed: u64,
    /// The array or filesystem.
    pub what: String,
    /// What was wrong.
    pub how: String,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "seed {}, {}: {}", self.seed, self.what, self.how)
    }
}

/// The commit of the folder in which a program is run, with `-dirty` where its files differ; `unknown` without git.
pub fn commit() -> String {
    let git = std::process::Command::new("git").args(["describe", "--always", "--dirty"]).output();
    let said = git.ok().filter(|output| output.status.success());
    said.map_or("unknown".into(), |output| {
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    })
}
