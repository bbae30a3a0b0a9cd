//! Parquet files whose pages are looked at before they are inflated: a page of some bytes may claim to hold a gigabyte.
//!
//! The library reads the header of a page through [`Pages`], which reads it first. It gets exactly the bytes of a header whose page
//! is within the bounds, so that both understand the same by it; any other form than the one that all writers use is refused.
//!
//! - PG1. A page has at most [`PAGE_MAX`] bytes, inflated or not, and a dictionary at most [`DICTIONARY_MAX`] values.
//! - PG2. No page is of an encoding in which a few bytes stand for many: delta encodings of texts repeat what they have said.
//! - PG3. The description of the file at its end has at most [`FOOTER_MAX`] bytes.

use std::fs::File;
use std::io::{self, Cursor, Read};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use parquet::column::reader::{ColumnReader, get_column_reader};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader, RowGroupMetaData};
use parquet::file::reader::{ChunkReader, Length, SerializedPageReader};

/// The most bytes of a page. Writers make pages of 1 MiB.
pub(crate) const PAGE_MAX: i64 = 8 << 20;

/// The most values of a dictionary. Writers make dictionaries of 1 MiB, which is 2^18 numbers.
const DICTIONARY_MAX: i64 = 1 << 19;

/// The most bytes of a file's description.
const FOOTER_MAX: u64 = 64 << 20;

/// The most bytes of a page's header: beside some numbers it has the smallest and the largest value.
const HEADER_MAX: usize = 64 << 10;

/// How deep structures of a header lie in one another.
const DEPTH_MAX: usize = 4;

/// A file and its description.
pub(crate) struct ParquetFile {
    metadata: ParquetMetaData,
    pages: Arc<Pages>,
}

/// A run of rows of a file.
#[derive(Clone, Copy)]
pub(crate) struct RowGroup<'a> {
    file: &'a ParquetFile,
    pub(crate) metadata: &'a RowGroupMetaData,
}

impl ParquetFile {
    /// Reads a file's description (PG3).
    pub(crate) fn open(file: File) -> Result<Self> {
        let length = Length::len(&file);
        let mut tail = [0; 8];
        if length >= 8 {
            file.read_exact_at(&mut tail, length - 8)?;
        }
        let [a, b, c, d, ..] = tail;
        let footer = u64::from(u32::from_le_bytes([a, b, c, d]));
        if footer > FOOTER_MAX {
            let why = format!("its description has {footer} bytes, at most {FOOTER_MAX} are read");
            return Err(ParquetError::General(why));
        }
        let metadata = ParquetMetaDataReader::new().parse_and_finish(&file)?;
        Ok(Self { metadata, pages: Arc::new(Pages(Arc::new(file))) })
    }

    pub(crate) fn metadata(&self) -> &ParquetMetaData {
        &self.metadata
    }

    pub(crate) fn row_group(&self, number: usize) -> RowGroup<'_> {
        RowGroup { file: self, metadata: self.metadata.row_group(number) }
    }
}

impl RowGroup<'_> {
    /// The values of a column.
    pub(crate) fn column(&self, place: usize) -> Result<ColumnReader> {
        let rows = usize::try_from(self.metadata.num_rows())?;
        let column = self.metadata.column(place);
        let pages = SerializedPageReader::new(Arc::clone(&self.file.pages), column, rows, None)?;
        Ok(get_column_reader(column.column_descr_ptr(), Box::new(pages)))
    }
}

/// Where the library finds pages. See the module.
pub(crate) struct Pages(Arc<File>);

impl Length for Pages {
    fn len(&self) -> u64 {
        Length::len(&*self.0)
    }
}

impl ChunkReader for Pages {
    type T = HeaderReader;

    fn get_read(&self, start: u64) -> Result<HeaderReader> {
        Ok(HeaderReader { file: Arc::clone(&self.0), start, header: None })
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<bytes::Bytes> {
        let mut bytes = vec![0; length];
        self.0.read_exact_at(&mut bytes, start)?;
        Ok(bytes.into())
    }
}

/// The header of a page, read and looked at when its first byte is wanted. The library asks for one also where it knows the header
/// already, and then reads nothing of it.
pub(crate) struct HeaderReader {
    file: Arc<File>,
    start: u64,
    header: Option<Cursor<Vec<u8>>>,
}

impl Read for HeaderReader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.header.is_none() {
            self.header = Some(Cursor::new(header_at(&self.file, self.start)?));
        }
        self.header.as_mut().expect("it has been read").read(out)
    }
}

/// The bytes of the header that begins there, if its page is within the bounds (PG1, PG2).
fn header_at(file: &File, start: u64) -> io::Result<Vec<u8>> {
    let mut room = 256;
    loop {
        let mut bytes = vec![0; room];
        let mut filled = 0;
        while filled < room {
            match file.read_at(&mut bytes[filled..], start + filled as u64)? {
                0 => break,
                count => filled += count,
            }
        }
        bytes.truncate(filled);
        let mut header = Header { bytes: &bytes, at: 0 };
        match header.check() {
            Ok(()) => {
                let end = header.at;
                bytes.truncate(end);
                return Ok(bytes);
            }
            Err(Odd::Short) if filled == room && room < HEADER_MAX => room *= 4,
            Err(Odd::Short) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Err(Odd::Refused(why)) => return Err(io::Error::other(why)),
        }
    }
}

/// What is wrong with a header.
enum Odd {
    /// It goes on behind the bytes at hand.
    Short,
    Refused(String),
}

/// A header in Thrift's compact protocol, as far as it was read.
struct Header<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// Types of fields in the compact protocol.
const TRUE: u8 = 1;
const FALSE: u8 = 2;
const BYTE: u8 = 3;
const I16: u8 = 4;
const I32: u8 = 5;
const I64: u8 = 6;
const DOUBLE: u8 = 7;
const BINARY: u8 = 8;
const STRUCT: u8 = 12;

/// Encodings of texts in which each value is told by another (PG2).
const DELTA_LENGTH_BYTE_ARRAY: i64 = 6;
const DELTA_BYTE_ARRAY: i64 = 7;

impl Header<'_> {
    /// Reads it to its end. Field ids of `PageHeader`: 2 and 3 sizes, 5 data page, 7 dictionary page, 8 data page of version 2.
    fn check(&mut self) -> std::result::Result<(), Odd> {
        let mut id = 0;
        while let Some(kind) = self.field(&mut id)? {
            match (id, kind) {
                (1 | 4, I32) => drop(self.int()?),
                (2 | 3, I32) => {
                    let size = self.int()?;
                    within("a page has", size, "bytes", PAGE_MAX)?;
                }
                (5, STRUCT) => self.check_page(4, Some(2), i64::MAX)?,
                (6, STRUCT) => self.skip(STRUCT, 0)?,
                (7, STRUCT) => self.check_page(2, None, DICTIONARY_MAX)?,
                (8, STRUCT) => self.check_page(6, Some(4), i64::MAX)?,
                (1..=8, _) => return Err(odd()),
                (_, kind) => self.skip(kind, 0)?,
            }
        }
        Ok(())
    }

    /// A page's own header: the first `ints` fields are numbers, the first of them the count of values, one of them the encoding.
    fn check_page(
        &mut self,
        ints: i16,
        encoding: Option<i16>,
        values_max: i64,
    ) -> std::result::Result<(), Odd> {
        let mut id = 0;
        while let Some(kind) = self.field(&mut id)? {
            if id > ints {
                self.skip(kind, 1)?;
                continue;
            }
            if kind != I32 {
                return Err(odd());
            }
            let value = self.int()?;
            if id == 1 {
                within("a dictionary has", value, "values", values_max)?;
            }
            if encoding == Some(id) && matches!(value, DELTA_LENGTH_BYTE_ARRAY | DELTA_BYTE_ARRAY) {
                let why = "a page has texts in a delta encoding, which is not read".to_owned();
                return Err(Odd::Refused(why));
            }
        }
        Ok(())
    }

    /// The type of the next field, whose number is put into `id`; nothing at the end. Numbers grow, so that none is there twice.
    fn field(&mut self, id: &mut i16) -> std::result::Result<Option<u8>, Odd> {
        match self.byte()? {
            0 => Ok(None),
            byte if byte >> 4 == 0 => Err(odd()),
            byte => {
                *id = id.checked_add((byte >> 4).into()).ok_or_else(odd)?;
                Ok(Some(byte & 15))
            }
        }
    }

    fn skip(&mut self, kind: u8, depth: usize) -> std::result::Result<(), Odd> {
        match kind {
            TRUE | FALSE => Ok(()),
            BYTE => self.byte().map(drop),
            I16 | I32 | I64 => self.int().map(drop),
            DOUBLE => self.pass(8),
            BINARY => {
                let length = self.varint()?;
                self.pass(length)
            }
            STRUCT if depth < DEPTH_MAX => {
                let mut id = 0;
                while let Some(kind) = self.field(&mut id)? {
                    self.skip(kind, depth + 1)?;
                }
                Ok(())
            }
            _ => Err(odd()),
        }
    }

    fn pass(&mut self, length: u64) -> std::result::Result<(), Odd> {
        let left = self.bytes.len() - self.at;
        match usize::try_from(length) {
            Ok(length) if length <= left => {
                self.at += length;
                Ok(())
            }
            Ok(length) if length <= HEADER_MAX => Err(Odd::Short),
            Ok(_) | Err(_) => Err(odd()),
        }
    }

    fn byte(&mut self) -> std::result::Result<u8, Odd> {
        let byte = *self.bytes.get(self.at).ok_or(Odd::Short)?;
        self.at += 1;
        Ok(byte)
    }

    fn varint(&mut self) -> std::result::Result<u64, Odd> {
        let mut value = 0;
        for shift in (0..63).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(odd())
    }

    /// A number with its sign in the lowest bit.
    fn int(&mut self) -> std::result::Result<i64, Odd> {
        let value = self.varint()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }
}

fn within(what: &str, value: i64, unit: &str, most: i64) -> std::result::Result<(), Odd> {
    match value {
        value if (0..=most).contains(&value) => Ok(()),
        value => Err(Odd::Refused(format!("{what} {value} {unit}, at most {most} are read"))),
    }
}

fn odd() -> Odd {
    Odd::Refused("the header of a page has a form that no writer makes".to_owned())
}
