//! Drive profiles by name or by file.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use levelhead_drive::Profile;
use levelhead_units::{Bytes, meant};

use crate::error::{HostError, fail};

/// The most bytes of a profile's file: far more than any drive has figures, and far less than an
/// image of a drive that is named by mistake.
const SIZE_MAX: Bytes = Bytes::new(1 << 20);

/// The profile that comes with the program under this name, or the one that the file of this path
/// describes.
///
/// # Errors
///
/// There is neither, or the file describes no drive, or has more than a mebibyte.
pub fn load_profile(name: &str) -> Result<Arc<Profile>, HostError> {
    if let Some(profile) = shipped(name) {
        return Ok(profile);
    }
    if !Path::new(name).is_file() {
        let names = Profile::names().join(", ");
        return fail(format!(
            "'{name}' is not a drive profile: expected one of {names}, or the path of a TOML file{}",
            meant(name, Profile::names().iter().copied())
        ));
    }
    let mut text = String::new();
    File::open(name)
        .and_then(|file| file.take(SIZE_MAX.get() + 1).read_to_string(&mut text))
        .map_err(|error| HostError::new(format!("{name}: {error}")))?;
    if text.len() as u64 > SIZE_MAX.get() {
        return fail(format!("{name} is not a drive profile: it has more than {SIZE_MAX}"));
    }
    let profile = Profile::parse(&text);
    profile.map(Arc::new).map_err(|error| HostError::new(format!("{name}: {error}")))
}

/// A profile that comes with the program. Making one works out the time of every length of seek, so
/// each is made once.
fn shipped(name: &str) -> Option<Arc<Profile>> {
    static MADE: Mutex<Vec<(String, Arc<Profile>)>> = Mutex::new(Vec::new());
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, profile)) = made.iter().find(|(made, _)| made == name) {
        return Some(Arc::clone(profile));
    }
    let profile = Arc::new(Profile::shipped(name)?);
    made.push((name.to_owned(), Arc::clone(&profile)));
    Some(profile)
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    #[test]
    fn image_of_a_drive_is_no_profile_and_is_not_read_to_its_end() {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("d.img");
        let name = path.to_str().unwrap();
        // More than any memory holds.
        File::create(&path).unwrap().set_len(1 << 40).unwrap();
        let error = load_profile(name).unwrap_err().to_string();
        assert_eq!(error, format!("{name} is not a drive profile: it has more than 1MiB"));
        let folder = folder.path().to_str().unwrap();
        let error = load_profile(folder).unwrap_err().to_string();
        assert!(error.starts_with(&format!("'{folder}' is not a drive profile: ")), "{error}");
    }
}
