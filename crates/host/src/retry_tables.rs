//! Retry tables by name or by file, and faults that name them.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use levelhead_drive::{Ecc, Faults, RetryTable, TEXT_MAX};
use levelhead_units::Bytes;

use crate::error::{HostError, fail};

/// The most bytes of a table's file: what [`RetryTable::parse`] takes.
const SIZE_MAX: Bytes = Bytes::new(TEXT_MAX as u64);

/// The most different tables that a process reads from files: each stays in memory until the process ends.
const TABLES_MAX: usize = 64;

/// The retry table that comes with the program under this name, or the one in the file of this path.
///
/// # Errors
///
/// There is neither, the file is no table, or 64 others have been read.
pub fn load_retry_table(name: &str) -> Result<Ecc, HostError> {
    if let Some(ecc) = Ecc::shipped(name) {
        return Ok(ecc);
    }
    if !Path::new(name).is_file() {
        let names = Ecc::names();
        return fail(format!(
            "'{name}' is not a retry table: expected one of {names}, or the path of a file that 'levelhead-lab \
             ecc table' has written"
        ));
    }
    let mut text = String::new();
    File::open(name)
        .and_then(|file| file.take(SIZE_MAX.get() + 1).read_to_string(&mut text))
        .map_err(|error| HostError::new(format!("{name}: {error}")))?;
    if text.len() as u64 > SIZE_MAX.get() {
        return fail(format!("{name} is not a retry table: it has more than {SIZE_MAX}"));
    }
    let table = RetryTable::parse(name, &text)
        .map_err(|error| HostError::new(format!("{name}: {error}")))?;
    keep(table).map(Ecc::of)
}

/// The table, for the rest of the process; one that is the same as an earlier one is that one.
fn keep(table: RetryTable) -> Result<&'static RetryTable, HostError> {
    static KEPT: Mutex<Vec<&'static RetryTable>> = Mutex::new(Vec::new());
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(same) = kept.iter().find(|kept| ***kept == table) {
        return Ok(same);
    }
    if kept.len() == TABLES_MAX {
        return fail(format!("{TABLES_MAX} retry tables have been read from files: no more are"));
    }
    let table: &'static RetryTable = Box::leak(Box::new(table));
    kept.push(table);
    Ok(table)
}

/// Faults as people write them, whose `ecc` may name a file.
///
/// # Errors
///
/// The text is no faults, or names no table.
pub fn read_faults(text: &str) -> Result<Faults, String> {
    let read = |name: &str| load_retry_table(name).map_err(|error| error.to_string());
    Faults::parse_with(text, &read).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    #[test]
    fn tables_come_from_names_and_from_files_and_each_once() {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("my.table");
        let name = path.to_str().unwrap();
        let shipped = load_retry_table("wander-2").unwrap();
        std::fs::write(&path, shipped.table().to_string()).unwrap();
        let faults = read_faults(&format!("ecc={name},slowdown=2")).unwrap();
        assert_eq!(faults.to_string(), format!("ecc={name},slowdown=2"));
        let loaded = faults.ecc.unwrap().table();
        assert_eq!(loaded.rows(), shipped.table().rows());
        assert!(std::ptr::eq(loaded, load_retry_table(name).unwrap().table()));
        std::fs::write(&path, "levelhead retry table 1\nsteps 0\nclass 2\n").unwrap();
        let error = read_faults(&format!("ecc={name}")).unwrap_err();
        assert_eq!(error, format!("'ecc={name}': {name}: it ends before its last class does"));
        let error = read_faults("ecc=none-such").unwrap_err();
        assert!(
            error.starts_with("'ecc=none-such': 'none-such' is not a retry table: "),
            "{error}"
        );
    }

    #[test]
    fn image_of_a_drive_is_no_table_and_is_not_read_to_its_end() {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("d.img");
        File::create(&path).unwrap().set_len(1 << 40).unwrap();
        let name = path.to_str().unwrap();
        let error = load_retry_table(name).unwrap_err().to_string();
        assert_eq!(error, format!("{name} is not a retry table: it has more than 4MiB"));
    }
}
