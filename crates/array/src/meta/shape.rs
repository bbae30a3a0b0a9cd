//! An array's shape in bytes, as superblocks and the metadata have it.

use levelhead_units::Sectors;

use crate::fields::{put, u32_at, u64_at};
use crate::shape::{DRIVE_SECTORS_MAX, DriveCounts, Family, Layout, Parity, Spec, SpecError};

/// How many bytes it takes.
pub(super) const SHAPE_BYTES: usize = 24;

/// Of which writes a journal has the contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Logs {
    /// Of all.
    All,
    /// Of those that change parts of codewords. Others it may only announce.
    Parts,
}

/// Why these bytes are no shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NoShape {
    /// They describe an array that cannot be.
    Spec(SpecError),
    /// A field has a value that cannot be.
    Field { name: &'static str, value: u64 },
}

/// An array's shape, and how much of every member is its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) spec: Spec,
    pub(super) drive_size: Sectors,
}

impl Shape {
    pub(super) fn encode(self) -> [u8; SHAPE_BYTES] {
        let Self { spec, drive_size } = self;
        let mut bytes = [0; SHAPE_BYTES];
        // All of these are small in every valid spec.
        let is_whole = spec.width() == spec.drives();
        bytes[0] = family_code(spec.family());
        bytes[1] = spec.data() as u8;
        bytes[2] = spec.redundant() as u8;
        bytes[3] = match spec.parity() {
            Parity::Fixed => 0,
            Parity::Rotating => 1,
        };
        bytes[4] = if is_whole { 0 } else { spec.drives() as u8 };
        bytes[5] = spec.journals() as u8;
        bytes[6] = u8::from(spec.has_checksums());
        put(&mut bytes, 8, &(spec.expansion() as u32).to_le_bytes());
        put(&mut bytes, 12, &(spec.chunk().get() as u32).to_le_bytes());
        put(&mut bytes, 16, &drive_size.get().to_le_bytes());
        bytes
    }

    pub(super) fn decode(bytes: [u8; SHAPE_BYTES]) -> Result<Self, NoShape> {
        let field = |name, value| NoShape::Field { name, value };
        let family = match bytes[0] {
            0 => Family::Raid0,
            1 => Family::Raid1,
            10 => Family::Raid10,
            4 => Family::Raid4,
            5 => Family::Raid5,
            6 => Family::Raid6,
            b'e' => Family::Eraid,
            other => return Err(field("family", other.into())),
        };
        let parity = match bytes[3] {
            0 => Parity::Fixed,
            1 => Parity::Rotating,
            other => return Err(field("parity", other.into())),
        };
        let (data, redundant) = (bytes[1].into(), bytes[2].into());
        let drives = match bytes[4] {
            0 => data + redundant,
            count => count.into(),
        };
        let drives = DriveCounts { drives, data, redundant };
        let chunk = Sectors::new(u32_at(&bytes, 12).into());
        let spec = Spec::new(family, drives, u32_at(&bytes, 8), chunk, parity)
            .and_then(|spec| spec.with_journals(bytes[5].into()))
            .map_err(NoShape::Spec)?;
        let spec = match bytes[6] {
            0 => spec,
            1 => spec.with_checksums().map_err(NoShape::Spec)?,
            other => return Err(field("checksums", other.into())),
        };
        let shape = Self { spec, drive_size: Sectors::new(u64_at(&bytes, 16)) };
        let size = shape.drive_size.get();
        if size > DRIVE_SECTORS_MAX || Layout::new(spec, shape.drive_size).stripes() == 0 {
            return Err(field("drive size", size));
        }
        Ok(shape)
    }
}

const fn family_code(family: Family) -> u8 {
    match family {
        Family::Raid0 => 0,
        Family::Raid1 => 1,
        Family::Raid10 => 10,
        Family::Raid4 => 4,
        Family::Raid5 => 5,
        Family::Raid6 => 6,
        Family::Eraid => b'e',
    }
}
