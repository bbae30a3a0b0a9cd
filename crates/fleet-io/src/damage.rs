//! Parquet files that may be damaged: what the library would trust or assert is looked at first, or caught.

use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use parquet::file::metadata::RowGroupMetaData;
use parquet::file::reader::FileReader;
use parquet::file::serialized_reader::SerializedFileReader;

use crate::ReadError;

/// Opens a file whose columns lie inside of it.
pub(crate) fn open(path: &Path) -> Result<SerializedFileReader<File>, ReadError> {
    let file = File::open(path).map_err(|error| ReadError::of(path, error))?;
    let length = file.metadata().map_err(|error| ReadError::of(path, error))?.len();
    let reader = guarded(path, || {
        SerializedFileReader::new(file).map_err(|error| ReadError::of(path, error))
    })?;
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
    catch_unwind(AssertUnwindSafe(read))
        .unwrap_or_else(|_| Err(ReadError::of(path, "the file is damaged")))
}
