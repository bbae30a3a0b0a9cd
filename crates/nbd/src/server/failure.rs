//! Why a request failed, for the client to be told.

use levelhead_block::{Command, Outcome, SectorSet};
use levelhead_units::SECTOR_SIZE;

use crate::codec::Errno;

const SECTOR: u64 = SECTOR_SIZE as u64;

/// Why a request failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) error: Errno,
    pub(super) message: String,
    /// The first byte that failed, if that is known.
    pub(super) offset: Option<u64>,
}

/// What to call when a change has ended.
pub(super) type Finish = Box<dyn FnOnce(Result<(), Failure>) + Send>;

impl Failure {
    pub(super) fn new(error: Errno, message: impl Into<String>) -> Self {
        Self { error, message: message.into(), offset: None }
    }
}

/// Nothing, or why the command failed.
pub(super) fn check_outcome(outcome: &Outcome, command: &Command) -> Result<(), Failure> {
    let io = |message: String| Failure::new(Errno::Io, message);
    match outcome {
        Outcome::Done { unknown, damaged } if unknown.is_empty() && damaged.is_empty() => Ok(()),
        Outcome::Done { unknown, damaged } => {
            let first = |set: &SectorSet| set.iter().next();
            let place = [unknown, damaged].into_iter().filter_map(first).min();
            let start = command.extent().map(|extent| extent.lba.get() * SECTOR);
            let offset = start.zip(place).map(|(start, idx)| start + u64::from(idx) * SECTOR);
            let count = unknown.len() + damaged.len();
            Err(Failure {
                offset,
                ..io(format!("{count} {} failed", if count == 1 { "sector" } else { "sectors" }))
            })
        }
        Outcome::Refused => {
            Err(Failure::new(Errno::NoSpace, "the machine does not carry the request out now"))
        }
        Outcome::Unreachable => Err(io("the device cannot be reached now".to_owned())),
        Outcome::Gone => Err(io("the device is gone".to_owned())),
    }
}
