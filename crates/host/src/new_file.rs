//! A file that is made where nothing is, whole or not at all.

use std::fs::{File, remove_file};
use std::io;
use std::path::Path;

use levelhead_units::Bytes;

/// Makes a file of `size` of zeroes that take no room. Where it cannot have that size, nothing is left of it.
pub(crate) fn create(path: &Path, size: Bytes) -> io::Result<File> {
    let file = File::create_new(path)?;
    // The error that led here is the one to tell.
    file.set_len(size.get()).inspect_err(|_| drop(remove_file(path)))?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    #[test]
    fn nothing_is_left_of_a_file_that_cannot_have_its_size() {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("a.img");
        // No file system counts so far.
        assert!(create(&path, Bytes::new(u64::MAX)).is_err());
        assert!(!path.exists());
        assert_eq!(create(&path, Bytes::new(7)).unwrap().metadata().unwrap().len(), 7);
        // What was there stays.
        assert!(create(&path, Bytes::new(u64::MAX)).is_err());
        assert_eq!(path.metadata().unwrap().len(), 7);
    }
}
