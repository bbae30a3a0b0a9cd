//! Names of the steps and of the violations, and how a trace tells them.

use std::fmt;

use crate::sets::EntryNo;
use crate::spec::{Slot, StripeNo, Version};

/// One step of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    /// A journaled write begins.
    Write { stripe: StripeNo, cell: u8 },
    /// An intent-logged write begins.
    Intent { stripe: StripeNo },
    /// A record becomes durable on the ring of the drive that it is for.
    Record { entry: EntryNo, slot: Slot },
    /// A ring's space below the retired mark is used again.
    Reuse { slot: Slot },
    /// A record that was handed off becomes durable on another drive's ring.
    HandoffRecord { entry: EntryNo, slot: Slot },
    /// A symbol is written to its home location; the drive's cache has it.
    WriteBack { slot: Slot, stripe: StripeNo },
    /// It leaves the cache.
    Flush { slot: Slot, stripe: StripeNo },
    /// A drive that is being rebuilt gets its symbol.
    Copy { slot: Slot, stripe: StripeNo },
    /// The membership says that the stripe is rebuilt.
    Rebuilt { slot: Slot, stripe: StripeNo },
    /// A drive fails.
    Fail { slot: Slot },
    /// A failed drive returns with its contents.
    ReAdd { slot: Slot },
    /// A new drive is put into the slot.
    Replace { slot: Slot },
    /// What writes have missed is logged as a membership of its own.
    LogMissed,
    /// A record is handed off, because its drive lags.
    HandOff { entry: EntryNo, slot: Slot },
    /// The server crashes and recovers.
    Crash(Crash),
}

/// What happens to the drives at a crash.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Crash {
    pub(crate) drives: Chance,
    /// A record that cannot be read: on this drive.
    pub(crate) unreadable: Option<(EntryNo, Slot)>,
}

/// What happens to a drive at a crash.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Chance {
    /// Nothing.
    Unchanged,
    /// This one fails.
    Fails(Slot),
    /// This failed one is present again.
    PresentAgain(Slot),
    /// The replaced drive takes the place of its successor.
    OldDrive,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Write { stripe, cell } => write!(f, "write cell {cell} of stripe {stripe}"),
            Self::Intent { stripe } => write!(f, "intent-logged write of stripe {stripe}"),
            Self::Record { entry, slot } => {
                write!(f, "record of entry {entry} durable on drive {slot}")
            }
            Self::Reuse { slot } => write!(f, "ring space of drive {slot} used again"),
            Self::HandoffRecord { entry, slot } => {
                write!(f, "handed-off record of entry {entry} durable on drive {slot}")
            }
            Self::WriteBack { slot, stripe } => {
                write!(f, "drive {slot}: write back stripe {stripe}")
            }
            Self::Flush { slot, stripe } => write!(f, "drive {slot}: flush stripe {stripe}"),
            Self::Copy { slot, stripe } => write!(f, "drive {slot}: copy stripe {stripe} to it"),
            Self::Rebuilt { slot, stripe } => {
                write!(f, "drive {slot}: log stripe {stripe} as rebuilt")
            }
            Self::Fail { slot } => write!(f, "drive {slot} fails"),
            Self::ReAdd { slot } => write!(f, "drive {slot} is re-added"),
            Self::Replace { slot } => write!(f, "drive {slot} is replaced"),
            Self::LogMissed => f.write_str("log what failed drives have missed"),
            Self::HandOff { entry, slot } => {
                write!(f, "hand off the record of entry {entry} for drive {slot}")
            }
            Self::Crash(Crash { drives, unreadable }) => {
                match drives {
                    Chance::Unchanged => f.write_str("crash")?,
                    Chance::Fails(slot) => write!(f, "crash, drive {slot} fails")?,
                    Chance::PresentAgain(slot) => {
                        write!(f, "crash, drive {slot} is present again")?;
                    }
                    Chance::OldDrive => f.write_str("crash, the replaced drive is back")?,
                }
                match unreadable {
                    Some((entry, slot)) => {
                        write!(f, ", record of entry {entry} on drive {slot} is unreadable")
                    }
                    None => Ok(()),
                }
            }
        }
    }
}

/// What a recovery must not do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Violation {
    /// Too few symbols of a stripe are there.
    Unreadable { stripe: StripeNo },
    /// A cell reads as something else than what was promised.
    Promise { stripe: StripeNo, cell: u8, read: Version, acknowledged: Version },
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (stripe, cell, read, acknowledged) = match *self {
            Self::Unreadable { stripe } => return write!(f, "stripe {stripe} cannot be decoded"),
            Self::Promise { stripe, cell, read, acknowledged } => {
                (stripe, cell, read, acknowledged)
            }
        };
        write!(f, "cell {cell} of stripe {stripe} ")?;
        match read {
            Version::FOREIGN => f.write_str("is what a new drive has")?,
            Version::BAD => f.write_str("is reported as a bad sector")?,
            Version::MIXED => f.write_str("is decoded from symbols of different codewords")?,
            Version(read) => write!(f, "reads as version {read}")?,
        }
        let Version(acknowledged) = acknowledged;
        write!(f, "; version {acknowledged} was the last one acknowledged or served")?;
        if Version(acknowledged) < read && read.is_written() {
            f.write_str(", and clients have seen that the later one is not there")?;
        }
        Ok(())
    }
}
