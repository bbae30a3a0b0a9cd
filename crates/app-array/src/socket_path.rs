//! Where the control socket of an array is: in the run-time folder, by the array's UUID.
//!
//! ```text
//!   $XDG_RUNTIME_DIR/levelhead/UUID.control     where that folder is the user's own
//!   /run/levelhead/UUID.control                 else, for root
//!   TMP/levelhead-UID/UUID.control              else, in the folder for temporary files
//! ```
//!
//! A server takes the first of these, a client looks at all: it may have been started with another
//! environment. The last folder of each is made for its owner alone, and is not used where another user could
//! put something into it.

use std::fs::{self, DirBuilder, File, TryLockError};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use levelhead_array::superblock::Uuid;

use levelhead_app::AppError;

/// What decides where run-time files are.
struct Surroundings {
    /// `XDG_RUNTIME_DIR`, if it is set.
    runtime: Option<PathBuf>,
    temporary: PathBuf,
    uid: u32,
}

impl Surroundings {
    fn find() -> Self {
        Self {
            runtime: std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from),
            temporary: std::env::temp_dir(),
            uid: rustix::process::geteuid().as_raw(),
        }
    }

    /// The folders for control sockets, the one that a server takes first.
    fn folders(&self) -> Vec<PathBuf> {
        let is_own = |path: &PathBuf| {
            path.is_absolute() && fs::metadata(path).is_ok_and(|found| found.uid() == self.uid)
        };
        let runtime = self.runtime.clone().filter(is_own).map(|path| path.join("levelhead"));
        let system = (self.uid == 0).then(|| PathBuf::from("/run/levelhead"));
        let temporary = self.temporary.join(format!("levelhead-{}", self.uid));
        runtime.into_iter().chain(system).chain([temporary]).collect()
    }

    /// Whether no other user can put something into a folder.
    fn is_private(&self, folder: &Path) -> bool {
        fs::symlink_metadata(folder).is_ok_and(|found| {
            found.is_dir() && found.uid() == self.uid && found.mode() & 0o022 == 0
        })
    }

    fn of_server(&self, array: Uuid) -> Result<PathBuf, AppError> {
        let folder = self.folders().swap_remove(0);
        let name = folder.display();
        match DirBuilder::new().mode(0o700).create(&folder) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => {
                let sentence = format!("cannot create {name} for the control socket: {error}");
                return Err(AppError::usage(format!("{sentence}; --control names another place")));
            }
        }
        if !self.is_private(&folder) {
            return Err(AppError::usage(format!(
                "other users could put something into {name}: --control names another place for the \
                 control socket"
            )));
        }
        Ok(socket(&folder, array))
    }

    fn lock(&self, array: Uuid) -> Result<Option<File>, AppError> {
        let Ok(path) = self.of_server(array).map(|socket| socket.with_extension("lock")) else {
            return Ok(None);
        };
        let trouble = |error| AppError::usage(format!("cannot lock {}: {error}", path.display()));
        let file = File::options().create(true).append(true).open(&path);
        let file = file.map_err(|error| trouble(error.to_string()))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(file)),
            Err(TryLockError::WouldBlock) => Err(AppError::usage(format!(
                "the array {array} is served by another process of this machine"
            ))),
            Err(TryLockError::Error(error)) => Err(trouble(error.to_string())),
        }
    }

    fn of_client(&self, array: Uuid) -> Vec<PathBuf> {
        let mut folders = self.folders();
        folders.retain(|folder| self.is_private(folder));
        folders.iter().map(|folder| socket(folder, array)).collect()
    }
}

fn socket(folder: &Path, array: Uuid) -> PathBuf {
    folder.join(format!("{array}.control"))
}

/// Where a server of this array listens unless told otherwise. Its folder is there afterwards.
pub(super) fn of_server(array: Uuid) -> Result<PathBuf, AppError> {
    Surroundings::find().of_server(array)
}

/// Keeps every other server of this array out, wherever that one listens, until what this returns is dropped. Nothing where there
/// is no run-time folder.
pub(super) fn lock(array: Uuid) -> Result<Option<File>, AppError> {
    Surroundings::find().lock(array)
}

/// Where a client may find it.
pub(super) fn of_client(array: Uuid) -> Vec<PathBuf> {
    Surroundings::find().of_client(array)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use tempfile::TempDir;

    use super::*;

    const ARRAY: Uuid = Uuid([7; 16]);

    fn own() -> u32 {
        rustix::process::geteuid().as_raw()
    }

    fn surroundings(temporary: &TempDir, runtime: Option<&TempDir>) -> Surroundings {
        Surroundings {
            runtime: runtime.map(|folder| folder.path().to_owned()),
            temporary: temporary.path().to_owned(),
            // Not root's own number, which would lead to /run.
            uid: own(),
        }
    }

    #[test]
    fn server_takes_the_users_own_folder_and_a_client_looks_everywhere() {
        let (temporary, runtime) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        let with = surroundings(&temporary, Some(&runtime));
        let path = with.of_server(ARRAY).unwrap();
        assert_eq!(path, runtime.path().join(format!("levelhead/{ARRAY}.control")));
        let mode = fs::metadata(path.parent().unwrap()).unwrap().mode();
        assert_eq!(mode & 0o777, 0o700);
        assert_eq!(with.of_server(ARRAY).unwrap(), path, "the folder may be there already");
        assert!(with.of_client(ARRAY).contains(&path));
        // A folder that is another user's is no run-time folder of this one.
        let other = Surroundings { uid: own() + 1, ..surroundings(&temporary, Some(&runtime)) };
        let expected = temporary.path().join(format!("levelhead-{}", own() + 1));
        assert_eq!(other.folders(), [expected]);
    }

    #[test]
    fn one_server_keeps_others_of_its_array_out() {
        let temporary = TempDir::new().unwrap();
        let here = surroundings(&temporary, None);
        let first = here.lock(ARRAY).unwrap();
        assert!(first.is_some());
        let error = here.lock(ARRAY).unwrap_err().to_string();
        assert!(error.ends_with("is served by another process of this machine"), "{error}");
        assert!(here.lock(Uuid([8; 16])).unwrap().is_some(), "another array");
        drop(first);
        assert!(here.lock(ARRAY).unwrap().is_some());
    }

    #[test]
    fn root_has_a_folder_of_the_system_and_others_have_one_for_temporary_files() {
        let temporary = TempDir::new().unwrap();
        let root = Surroundings { uid: 0, ..surroundings(&temporary, None) };
        assert_eq!(root.folders()[0], Path::new("/run/levelhead"));
        let user = Surroundings { uid: 1234, ..surroundings(&temporary, None) };
        assert_eq!(user.folders(), [temporary.path().join("levelhead-1234")]);
    }

    #[test]
    fn folder_that_others_can_write_to_is_not_used() {
        let (temporary, runtime) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        let with = surroundings(&temporary, Some(&runtime));
        let path = with.of_server(ARRAY).unwrap();
        let folder = path.parent().unwrap();
        for mode in [0o770, 0o702, 0o777] {
            fs::set_permissions(folder, fs::Permissions::from_mode(mode)).unwrap();
            let error = with.of_server(ARRAY).unwrap_err().to_string();
            assert!(error.contains("other users could put something into"), "{mode:o}: {error}");
            assert!(!with.of_client(ARRAY).contains(&path), "{mode:o}");
        }
        // Nor a link, wherever it leads.
        fs::remove_dir(folder).unwrap();
        symlink(temporary.path(), folder).unwrap();
        assert!(with.of_server(ARRAY).is_err());
    }
}
