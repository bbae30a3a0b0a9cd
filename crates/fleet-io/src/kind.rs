//! Which kind a file is.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

/// Whether a file is read as Parquet: its name ends in `.parquet`, or it begins as such files do. All others are lines of text.
pub(crate) fn is_parquet(path: &Path) -> bool {
    let mut first = [0; 4];
    let mut begins = || File::open(path)?.read_exact(&mut first).map(|()| &first == b"PAR1");
    path.extension().is_some_and(|ending| ending == "parquet") || begins().unwrap_or(false)
}
