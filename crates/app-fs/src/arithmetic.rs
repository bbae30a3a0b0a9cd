//! How a filesystem's redundancy is computed.

use levelhead_erasure::{Choices, Class, Kernel};
use levelhead_fs::MountMode;

/// In the way that is measured to be the fastest here, where something is to be written. What is only read
/// has hardly anything computed, which is not worth a measurement.
pub(super) fn choices(mode: MountMode) -> Choices {
    match mode {
        MountMode::ReadWrite => levelhead_host::arithmetic(None, &Class::ALL).choices,
        MountMode::ReadOnly => Kernel::best().into(),
    }
}
