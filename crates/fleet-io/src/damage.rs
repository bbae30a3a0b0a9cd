//! Parquet files that may be damaged: what the library would trust or assert is looked at first, or caught.

use std::cell::Cell;
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::path::Path;
use std::sync::Once;

use parquet::file::metadata::RowGroupMetaData;

use crate::ReadError;
use crate::pages::ParquetFile;

/// Opens a file whose columns lie inside of it.
pub(crate) fn open(path: &Path) -> Result<ParquetFile, ReadError> {
    let file = File::open(path).map_err(|error| ReadError::of(path, error))?;
    let length = file.metadata().map_err(|error| ReadError::of(path, error))?.len();
    let reader =
        guarded(path, || ParquetFile::open(file).map_err(|error| ReadError::of(path, error)))?;
    let is_outside = |place: i64| u64::try_from(place).map_or(true, |place| place > length);
    let groups = reader.metadata().row_groups().iter();
    let columns = groups.flat_map(RowGroupMetaData::columns).any(|column| {
        let offsets = [Some(column.data_page_offset()), column.dictionary_page_offset()];
        offsets.into_iter().flatten().chain([column.compressed_size()]).any(is_outside)
    });
    if columns {
        return Err(ReadError::of(path, "a column of the file is outside of it"));
    }
    Ok(reader)
}

/// What `read` gives. The library asserts some of what it reads; a damaged file is its reader's business, and no fault of this program.
pub(crate) fn guarded<T>(
    path: &Path,
    read: impl FnOnce() -> Result<T, ReadError>,
) -> Result<T, ReadError> {
    hush();
    let was_guarded = IS_GUARDED.replace(true);
    let ended = catch_unwind(AssertUnwindSafe(read));
    IS_GUARDED.set(was_guarded);
    ended.unwrap_or_else(|_| Err(ReadError::of(path, "the file is damaged")))
}

thread_local! {
    /// Whether this thread reads what may be damaged.
    static IS_GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// From the first call on nothing is said of panics in a guarded read, which become an error; of all others what was said before.
fn hush() {
    static HUSHED: Once = Once::new();
    HUSHED.call_once(|| {
        let says = take_hook();
        set_hook(Box::new(move |panic| {
            if !IS_GUARDED.get() {
                says(panic);
            }
        }));
    });
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// Set in the process that panics.
    const PANICS: &str = "LEVELHEAD_PANICS_OVER_A_FILE";

    /// In a process of its own: there is one panic hook for all threads, and other tests use it.
    #[test]
    fn a_panic_over_a_file_is_an_error_and_says_nothing_and_another_panic_is_heard() {
        if std::env::var_os(PANICS).is_some() {
            let path = Path::new("hours.parquet");
            let read = guarded(path, || -> Result<(), ReadError> { panic!("over the file") });
            let error = read.expect_err("it panics").to_string();
            assert_eq!(error, "hours.parquet: the file is damaged");
            assert!(guarded(path, || Ok(())).is_ok());
            assert!(catch_unwind(|| panic!("over something else")).is_err());
            return;
        }
        let own = std::env::current_exe().expect("the tests have a program");
        let name = "damage::tests::a_panic_over_a_file_is_an_error_and_says_nothing_and_another_panic_is_heard";
        let mut child = Command::new(own);
        let child = child.args([name, "--exact", "--nocapture"]).env(PANICS, "1");
        let output = child.output().expect("it was started once");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{said}");
        assert!(said.contains("over something else"), "{said}");
        assert!(!said.contains("over the file"), "{said}");
    }
}
