//! Drive profiles by name or by file.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use levelhead_drive::Profile;

use crate::AppError;

/// The profile shipped under this name, or the one in the file of this path.
pub(crate) fn load(name: &str) -> Result<Arc<Profile>, AppError> {
    if let Some(profile) = Profile::shipped(name) {
        return Ok(Arc::new(profile));
    }
    if !Path::new(name).is_file() {
        let names = Profile::names().join(", ");
        return Err(AppError::usage(format!(
            "'{name}' is no drive profile: expected one of {names}, or the path of a TOML file"
        )));
    }
    let text =
        fs::read_to_string(name).map_err(|error| AppError::usage(format!("{name}: {error}")))?;
    let profile =
        Profile::parse(&text).map_err(|error| AppError::usage(format!("{name}: {error}")))?;
    Ok(Arc::new(profile))
}
