//! Identities: random bytes of the machine.

use std::fs;
use std::io::Read;

use levelhead_array::superblock::Uuid;

use crate::error::HostError;

/// A new identity.
pub(crate) fn draw_uuid() -> Result<Uuid, HostError> {
    draw_identity().map(Uuid)
}

/// Sixteen random bytes.
///
/// # Errors
///
/// The machine gives none.
pub fn draw_identity() -> Result<[u8; 16], HostError> {
    let mut bytes = [0; 16];
    let source = "/dev/urandom";
    let drawn = fs::File::open(source).and_then(|mut file| file.read_exact(&mut bytes));
    drawn.map_err(|error| HostError::new(format!("cannot read {source}: {error}")))?;
    Ok(bytes)
}
