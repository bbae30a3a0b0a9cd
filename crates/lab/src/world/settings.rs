//! What a world is made of, and why it cannot be.

use std::fmt;
use std::sync::Arc;

use levelhead_array::{Area, Content, HostOrder, JournalSettings, Policy, Spec};
use levelhead_drive::{Profile, SettingsError};
use levelhead_units::Sectors;

/// What a world is made of.
#[derive(Clone, Debug)]
pub struct WorldSettings {
    /// The array's shape.
    pub spec: Spec,
    /// How it reads.
    pub policy: Policy,
    /// Commands inside a drive at a time.
    pub window: u32,
    /// In which order commands leave the host's queues.
    pub order: HostOrder,
    /// Whether buffers have bytes.
    pub content: Content,
    /// The drives' make.
    pub profile: Arc<Profile>,
    /// The faults of each drive, in the order of the drives. A single entry holds for all drives.
    pub drives: Vec<levelhead_drive::Settings>,
    /// The sectors of each drive that the array lies on; all that the smallest has, if it is not said.
    pub area: Option<Area>,
    /// The journal of an array that records nothing.
    pub journal: Option<JournalSettings>,
    /// What chance is drawn from.
    pub seed: u64,
}

/// A world that cannot be.
#[derive(Clone, Debug, PartialEq)]
pub enum WorldError {
    /// More commands than a drive can hold.
    Window {
        /// What was asked for.
        window: u32,
        /// What a drive can hold.
        most: u32,
    },
    /// A drive cannot be like that.
    Drive(SettingsError),
    /// The drives are too small for a single stripe.
    TooSmall {
        /// A drive's size.
        size: Sectors,
    },
}

impl fmt::Display for WorldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Window { window, most } => {
                write!(f, "the window is from 1 to {most} commands, got {window}")
            }
            Self::Drive(error) => write!(f, "{error}"),
            Self::TooSmall { size } => {
                write!(f, "a drive of {} holds no stripe of the array", size.bytes())
            }
        }
    }
}

impl std::error::Error for WorldError {}

impl From<SettingsError> for WorldError {
    fn from(error: SettingsError) -> Self {
        Self::Drive(error)
    }
}
