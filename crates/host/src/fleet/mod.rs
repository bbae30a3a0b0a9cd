//! Which drives this host has, which of them belong together, and what the kernel counts of them; all below a root folder.
//!
//! ```text
//!   survey   groups, identities, timers      a child's work: md's files, a links' tree and `zpool` may hang
//!   sampler  sys/block/X/stat                our own: kernel memory, opened without blocking, never a block device
//!   audit    `smartctl`                      a child a drive: its command reaches the disk
//! ```
//!
//! A process that waits inside the kernel cannot be killed, and a thread that does keeps its process from ending. So whatever may
//! wait is asked by a [`Child`] that nothing waits for: looked at now and then, killed after a deadline, and while it has not ended
//! none other is begun for the same source.

mod audit;
mod child;
mod sampler;
mod survey;
#[cfg(test)]
mod tests;
mod text;
mod zpool;

pub use audit::{Audit, Auditor, Fix, FixAsk, Identity, fix_drive, udev_rule};
pub use child::{Child, Look, Source};
pub use sampler::Sampler;
pub use survey::{Kind, Redundancy, Survey, SurveyedDrive, SurveyedGroup, survey, write_survey};
