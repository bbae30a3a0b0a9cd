//! Why a sector is no superblock, each in a sentence.

use std::fmt;

use levelhead_units::SECTOR_SIZE;

use super::{CODE_VERSION, VERSION};
use crate::meta::shape::NoShape;
use crate::shape::SpecError;

/// Why a sector is no superblock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SuperblockError {
    /// It is not one sector.
    Length {
        /// Its bytes.
        bytes: usize,
    },
    /// It does not begin like one.
    Absent,
    /// It is of another version of the layout.
    Version {
        /// The version it names.
        version: u32,
    },
    /// Its bytes are not those that were written.
    Checksum {
        /// The checksum that is stored.
        stored: u32,
        /// The checksum of the bytes.
        computed: u32,
    },
    /// It uses features that this program does not know and cannot do without.
    Features {
        /// Their bits.
        bits: u64,
    },
    /// Its redundancy follows another version of the codewords.
    CodeVersion {
        /// The version it names.
        version: u32,
    },
    /// It describes an array that cannot be.
    Spec(SpecError),
    /// A field has a value that cannot be.
    Field {
        /// Which.
        name: &'static str,
        /// Its value.
        value: u64,
    },
    /// A byte that means nothing is not zero.
    Unnamed {
        /// Where.
        offset: usize,
    },
}

impl SuperblockError {
    /// Whether the sector was written as it is, by a program that knows more than this one.
    pub fn is_foreign(&self) -> bool {
        matches!(self, Self::Version { .. } | Self::Features { .. } | Self::CodeVersion { .. })
    }
}

impl fmt::Display for SuperblockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length { bytes } => {
                write!(f, "a superblock has {SECTOR_SIZE} bytes, got {bytes}")
            }
            Self::Absent => f.write_str("no superblock was found"),
            Self::Version { version: 2 } => write!(
                f,
                "the superblock is of version 2, this program reads {VERSION}: run levelhead array upgrade on all members of its array"
            ),
            Self::Version { version } => {
                write!(f, "the superblock is of version {version}, this program reads {VERSION}")
            }
            Self::Checksum { stored, computed } => write!(
                f,
                "the superblock is damaged: its checksum is {computed:#010x}, not {stored:#010x}"
            ),
            Self::Features { bits } => {
                write!(f, "the array uses features that this program does not know: bits {bits:#x}")
            }
            Self::CodeVersion { version } => write!(
                f,
                "the array's codewords are of version {version}, this program knows {CODE_VERSION}"
            ),
            Self::Spec(error) => write!(f, "the superblock describes no array: {error}"),
            Self::Field { name, value } => {
                write!(f, "the superblock cannot have {value} as its {name}")
            }
            Self::Unnamed { offset } => {
                write!(f, "byte {offset} of the superblock is not zero and means nothing")
            }
        }
    }
}

impl std::error::Error for SuperblockError {}

impl From<NoShape> for SuperblockError {
    fn from(no: NoShape) -> Self {
        match no {
            NoShape::Spec(error) => Self::Spec(error),
            NoShape::Field { name, value } => Self::Field { name, value },
        }
    }
}
