//! Sizes of all files below a folder.
//!
//! Links are not followed, so that no loop of them has an end to be waited for; file systems mounted
//! below are not entered, so that neither a mount of the tree within itself nor a made-up one such as
//! `/proc` is. A file with several names counts once. What cannot be read is counted and passed over.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use levelhead_units::Bytes;

/// What a walk met.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Walked {
    /// Regular files, each once.
    pub files: u64,
    /// Folders that were read.
    pub folders: u64,
    /// Symbolic links, which were not followed.
    pub links: u64,
    /// Further names of files that had been counted.
    pub further_names: u64,
    /// Folders of other file systems, which were not entered.
    pub mounts: u64,
    /// Folders that could not be read, in full or at all.
    pub unreadable_folders: u64,
    /// Names whose file could not be looked at: gone, or not to be seen.
    pub unreadable_files: u64,
    /// Devices, pipes, sockets.
    pub others: u64,
}

/// How many names pass between two reports of progress.
const REPORT_EVERY: u64 = 4096;

/// Calls `found` with the size of every file below `root`, and `progress` now and then with the number
/// of names seen.
///
/// # Errors
///
/// If `root` itself cannot be read as a folder.
pub fn walk(
    root: &Path,
    found: &mut dyn FnMut(Bytes),
    progress: &mut dyn FnMut(u64),
) -> io::Result<Walked> {
    let device = fs::metadata(root)?.dev();
    let mut walked = Walked::default();
    let mut names = BTreeSet::new();
    let mut seen = 0_u64;
    let mut open = Some(fs::read_dir(root)?);
    let mut waiting = Vec::new();
    loop {
        let entries = match open.take() {
            Some(entries) => entries,
            None => {
                let Some(folder) = waiting.pop() else { return Ok(walked) };
                match fs::read_dir::<std::path::PathBuf>(folder) {
                    Ok(entries) => entries,
                    Err(_) => {
                        walked.unreadable_folders += 1;
                        continue;
                    }
                }
            }
        };
        walked.folders += 1;
        for entry in entries {
            // After an error within a folder its other names are unknown.
            let Ok(entry) = entry else {
                walked.unreadable_folders += 1;
                break;
            };
            seen += 1;
            if seen.is_multiple_of(REPORT_EVERY) {
                progress(seen);
            }
            let Ok(data) = entry.metadata() else {
                walked.unreadable_files += 1;
                continue;
            };
            if data.is_file() {
                if data.nlink() > 1 && !names.insert((data.dev(), data.ino())) {
                    walked.further_names += 1;
                } else {
                    walked.files += 1;
                    found(Bytes::new(data.len()));
                }
            } else if data.is_symlink() {
                walked.links += 1;
            } else if !data.is_dir() {
                walked.others += 1;
            } else if data.dev() == device {
                waiting.push(entry.path());
            } else {
                walked.mounts += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn loops_and_second_names_are_counted_and_walked_past() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        fs::create_dir_all(root.join("a/b")).unwrap();
        for (name, size) in [("one", 1), ("a/two", 5000), ("a/b/empty", 0)] {
            fs::write(root.join(name), vec![0; size]).unwrap();
        }
        symlink(root, root.join("a/b/up")).unwrap();
        symlink("self", root.join("self")).unwrap();
        symlink("nowhere", root.join("a/broken")).unwrap();
        fs::hard_link(root.join("one"), root.join("a/again")).unwrap();
        let mut sizes = Vec::new();
        let walked = walk(root, &mut |size| sizes.push(size.get()), &mut |_| {}).unwrap();
        sizes.sort_unstable();
        assert_eq!(sizes, [0, 1, 5000]);
        let want = Walked { files: 3, folders: 3, links: 3, further_names: 1, ..Walked::default() };
        assert_eq!(walked, want);
    }

    #[test]
    fn a_folder_that_cannot_be_read_is_counted() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let closed = dir.path().join("closed");
        fs::create_dir(&closed).unwrap();
        fs::write(closed.join("hidden"), "x").unwrap();
        fs::write(dir.path().join("open"), "x").unwrap();
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).unwrap();
        let is_locked_out = fs::read_dir(&closed).is_err();
        let walked = walk(dir.path(), &mut |_| {}, &mut |_| {}).unwrap();
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).unwrap();
        if is_locked_out {
            assert_eq!((walked.files, walked.unreadable_folders), (1, 1));
        } else {
            eprintln!("not shown: this user reads every folder");
            assert_eq!((walked.files, walked.unreadable_folders), (2, 0));
        }
    }

    /// Paths longer than the kernel takes, which no permission opens.
    #[test]
    fn a_path_too_long_is_counted_and_not_entered() {
        let dir = tempfile::tempdir().unwrap();
        let name = "x".repeat(200);
        let mut at =
            rustix::fs::open(dir.path(), rustix::fs::OFlags::DIRECTORY, rustix::fs::Mode::empty())
                .unwrap();
        for _ in 0..25 {
            rustix::fs::mkdirat(&at, &name, 0o700.into()).unwrap();
            at = rustix::fs::openat(
                &at,
                &name,
                rustix::fs::OFlags::DIRECTORY,
                rustix::fs::Mode::empty(),
            )
            .unwrap();
        }
        let walked = walk(dir.path(), &mut |_| {}, &mut |_| {}).unwrap();
        assert_eq!(walked.unreadable_folders, 1, "{walked:?}");
        assert!(walked.folders > 10);
    }

    #[test]
    fn no_folder_is_an_error() {
        assert!(walk(Path::new("no/such/folder"), &mut |_| {}, &mut |_| {}).is_err());
    }
}
