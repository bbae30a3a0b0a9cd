//! Drive profiles by name or by file.

use std::sync::Arc;

use levelhead_drive::Profile;

use levelhead_app::AppError;

/// The profile shipped under this name, or the one in the file of this path.
pub(crate) fn load(name: &str) -> Result<Arc<Profile>, AppError> {
    levelhead_host::load_profile(name).map_err(AppError::usage)
}
