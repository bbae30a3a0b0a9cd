//! The limits that drives had of their own, on disk for as long as they may have others.
//!
//! A file for each drive, named after what the kernel calls it for good (`device/wwid`):
//!
//! ```text
//!   levelhead error recovery 1
//!   drive naa.5000c500a1b2c3d4
//!   read 70        tenths of a second; 0: no limit
//!   write 70
//! ```
//!
//! It comes whole or not at all, and is never written over.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::super::Fact;
use super::super::ata::{ErrorRecovery, in_tenths, of_tenths};

/// Where the records lie.
const FOLDER: &str = "/var/lib/levelhead/error-recovery";

const HEAD: &str = "levelhead error recovery 1";

/// Keeps the limits of drives over the end of the program.
pub(crate) trait Store: Send {
    /// The limits of a drive, if there is a record of them.
    fn load(&self, key: &str) -> Fact<Option<ErrorRecovery>>;

    /// Keeps a drive's limits for good, from when this returns. Fails if there is a record already.
    fn save(&self, key: &str, limits: ErrorRecovery) -> Fact<()>;

    /// Drops the record of a drive.
    fn remove(&self, key: &str) -> Fact<()>;

    /// What people call the record of a drive.
    fn name(&self, key: &str) -> PathBuf;
}

/// Records as files in a folder.
pub(crate) struct Records(PathBuf);

impl Records {
    /// Those of this machine.
    pub(crate) fn usual() -> Self {
        Self(FOLDER.into())
    }

    /// Those in this folder.
    #[cfg(test)]
    pub(crate) fn at(folder: &Path) -> Self {
        Self(folder.to_owned())
    }

    fn write(&self, key: &str, limits: ErrorRecovery) -> io::Result<()> {
        let path = self.name(key);
        let mut half = path.clone().into_os_string();
        half.push(".half");
        fs::create_dir_all(&self.0)?;
        // Of an earlier run that was cut off; a link in its place is not followed.
        match fs::remove_file(&half) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        let mut file = File::create_new(&half)?;
        file.write_all(encode(key, limits).as_bytes())?;
        file.sync_all()?;
        // Unlike a rename, it does not take the place of what is there.
        let linked = fs::hard_link(&half, &path);
        fs::remove_file(&half)?;
        linked?;
        // The folder may be new, and so may those that it lies in.
        self.0.ancestors().take(3).try_for_each(sync_folder)
    }
}

impl Store for Records {
    fn load(&self, key: &str) -> Fact<Option<ErrorRecovery>> {
        let path = self.name(key);
        match fs::read_to_string(&path) {
            Ok(text) => match decode(key, &text) {
                Some(limits) => Ok(Some(limits)),
                None => Err(format!("{} is not a record of that drive", path.display())),
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(format!("cannot read {}: {error}", path.display())),
        }
    }

    fn save(&self, key: &str, limits: ErrorRecovery) -> Fact<()> {
        let failed = |error| format!("cannot write {}: {error}", self.name(key).display());
        self.write(key, limits).map_err(failed)
    }

    fn remove(&self, key: &str) -> Fact<()> {
        let path = self.name(key);
        let removed = fs::remove_file(&path).and_then(|()| sync_folder(&self.0));
        removed.map_err(|error| format!("cannot remove {}: {error}", path.display()))
    }

    fn name(&self, key: &str) -> PathBuf {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '.' || c == '-';
        self.0.join(key.chars().map(|c| if is_plain(c) { c } else { '_' }).collect::<String>())
    }
}

fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

fn encode(key: &str, limits: ErrorRecovery) -> String {
    let tenths = |limit| in_tenths(limit).expect("a drive has said this limit itself");
    let (read, write) = (tenths(limits.read), tenths(limits.write));
    format!("{HEAD}\ndrive {key}\nread {read}\nwrite {write}\n")
}

fn decode(key: &str, text: &str) -> Option<ErrorRecovery> {
    let rest = text.strip_prefix(HEAD)?.strip_prefix("\ndrive ")?.strip_prefix(key)?;
    let (read, write) = rest.strip_prefix("\nread ")?.strip_suffix('\n')?.split_once("\nwrite ")?;
    let [read, write] = [read, write].map(|tenths| tenths.parse().ok());
    Some(ErrorRecovery { read: of_tenths(read?), write: of_tenths(write?) })
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    #[test]
    fn record_is_kept_until_it_is_removed_and_never_written_over() {
        let folder = TempDir::new().unwrap();
        let records = Records::at(&folder.path().join("a/b"));
        let key = "t10.ATA     ST1000NM/0001  Z1";
        let limits = ErrorRecovery { read: of_tenths(70), write: None };
        assert_eq!(records.load(key), Ok(None));
        assert_eq!(records.save(key, limits), Ok(()));
        assert_eq!(records.load(key), Ok(Some(limits)));
        assert_eq!(Records::at(&folder.path().join("a/b")).load(key), Ok(Some(limits)));
        let error = records.save(key, ErrorRecovery { read: None, ..limits }).unwrap_err();
        assert!(error.contains("exists"), "{error}");
        assert_eq!(records.load(key), Ok(Some(limits)));
        assert_eq!(
            fs::read_dir(folder.path().join("a/b")).unwrap().count(),
            1,
            "nothing else is left"
        );
        assert_eq!(records.remove(key), Ok(()));
        assert_eq!(records.load(key), Ok(None));
        assert!(records.remove(key).is_err());
    }

    #[test]
    fn what_is_no_record_of_a_drive_is_not_taken_for_one() {
        let limits = ErrorRecovery { read: of_tenths(70), write: of_tenths(65535) };
        let text = encode("naa.1", limits);
        assert_eq!(decode("naa.1", &text), Some(limits));
        assert_eq!(decode("naa.2", &text), None);
        assert_eq!(decode("naa.", &text), None, "its name goes on");
        for len in 0..text.len() {
            assert_eq!(decode("naa.1", &text[..len]), None, "{len}");
        }
        assert_eq!(decode("naa.1", &format!("{text}\n")), None);
        assert_eq!(decode("naa.1", &text.replace("65535", "65536")), None);
    }
}
