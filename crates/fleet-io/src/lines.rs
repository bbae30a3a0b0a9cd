//! Lines of text files, of bounded length, and their fields.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use crate::ReadError;

/// The longest line, in bytes.
const LINE_MAX: usize = 1024;

/// The lines of a file, one at a time, each of bounded length.
pub(crate) struct Lines {
    path: PathBuf,
    input: Box<dyn BufRead + Send>,
    line: Vec<u8>,
    number: u64,
}

impl Lines {
    /// Opens a file, which is packed by zstd if its name ends in `.zst`.
    pub(crate) fn open(path: &Path) -> Result<Self, ReadError> {
        let wrong = |error| ReadError::of(path, error);
        let file = File::open(path).map_err(wrong)?;
        let is_packed = path.extension().is_some_and(|ending| ending == "zst");
        let input: Box<dyn BufRead + Send> = if is_packed {
            Box::new(BufReader::new(zstd::Decoder::new(file).map_err(wrong)?))
        } else {
            Box::new(BufReader::new(file))
        };
        Ok(Self { path: path.to_owned(), input, line: Vec::new(), number: 0 })
    }

    /// The number of the line that came last, the first of which is 1.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// The next line, without its end.
    pub(crate) fn next(&mut self) -> Result<Option<&str>, ReadError> {
        self.line.clear();
        self.number += 1;
        let read = self
            .input
            .by_ref()
            .take(LINE_MAX as u64 + 1)
            .read_until(b'\n', &mut self.line)
            .map_err(|error| ReadError::at(&self.path, self.number, error))?;
        if read == 0 {
            return Ok(None);
        }
        if read > LINE_MAX {
            let why = format!("the line is longer than {LINE_MAX} bytes");
            return Err(ReadError::at(&self.path, self.number, why));
        }
        let line = std::str::from_utf8(&self.line)
            .map_err(|_| ReadError::at(&self.path, self.number, "the line is not UTF-8"))?;
        Ok(Some(line.trim_end_matches(['\n', '\r'])))
    }
}

/// A field without the blanks and the quotes around it.
pub(crate) fn unquoted(field: &str) -> &str {
    let field = field.trim();
    field.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(field)
}

/// The fields of a line, however many, without their quotes.
pub(crate) fn all_fields(line: &str) -> Vec<String> {
    line.split(',').map(|field| unquoted(field).to_owned()).collect()
}

/// The fields of a line, without their quotes.
pub(crate) fn fields<const COUNT: usize>(line: &str) -> Result<[&str; COUNT], String> {
    let mut fields = [""; COUNT];
    let mut count = 0;
    for field in line.split(',') {
        if count < COUNT {
            fields[count] = unquoted(field);
        }
        count += 1;
    }
    if count == COUNT { Ok(fields) } else { Err(format!("{count} fields instead of {COUNT}")) }
}
