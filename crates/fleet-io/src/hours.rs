//! Hours tables as Parquet: a row group at a time, only the columns that are asked for.

use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use levelhead_fleet::generate::HoursTable;
use parquet::basic::{Compression, ZstdLevel};
use parquet::column::reader::ColumnReader;
use parquet::data_type::{FloatType, Int32Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;

/// Most rows of a row group that are read at once.
const ROWS_MAX: i64 = 1 << 24;
/// Rows of a row group that is written.
pub const ROWS_WRITTEN: usize = 1 << 20;

/// Which columns are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Columns {
    /// What slowdowns need: hour, raid, drive, latency and requests.
    Slowdown,
    /// Sizes too, and ages if there are any.
    All,
}

/// Why a table cannot be read or written.
#[derive(Debug)]
pub struct HoursError {
    path: PathBuf,
    what: String,
}

impl fmt::Display for HoursError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.what)
    }
}

impl std::error::Error for HoursError {}

/// An hours table in a Parquet file.
pub struct HoursFile {
    path: PathBuf,
    reader: SerializedFileReader<File>,
}

impl HoursFile {
    /// Opens a table; its columns are looked at when they are read.
    pub fn open(path: &Path) -> Result<Self, HoursError> {
        let fail = |what: String| HoursError { path: path.into(), what };
        let file = File::open(path).map_err(|error| fail(error.to_string()))?;
        let reader = SerializedFileReader::new(file).map_err(|error| fail(error.to_string()))?;
        Ok(Self { path: path.into(), reader })
    }

    /// How many row groups there are.
    pub fn row_group_count(&self) -> usize {
        self.reader.num_row_groups()
    }

    /// How many rows there are.
    pub fn row_count(&self) -> u64 {
        self.reader.metadata().file_metadata().num_rows().unsigned_abs()
    }

    /// Reads a row group into `table`, in place of what was there.
    pub fn read(
        &self,
        row_group: usize,
        columns: Columns,
        table: &mut HoursTable,
    ) -> Result<(), HoursError> {
        table.clear();
        self.read_into(row_group, columns, table)
            .map_err(|what| HoursError { path: self.path.clone(), what })
    }

    fn read_into(
        &self,
        row_group: usize,
        columns: Columns,
        table: &mut HoursTable,
    ) -> Result<(), String> {
        let group = self.reader.get_row_group(row_group).map_err(|error| error.to_string())?;
        let rows = group.metadata().num_rows();
        if !(0..=ROWS_MAX).contains(&rows) {
            return Err(format!(
                "row group {row_group} has {rows} rows, at most {ROWS_MAX} are read at once"
            ));
        }
        let source = Source { group: group.as_ref(), rows: rows as usize };
        source.whole("hour", &mut table.hour)?;
        source.whole("raid", &mut table.raid)?;
        source.whole("drive", &mut table.drive)?;
        source.real("latency_us", &mut table.latency_us)?;
        source.whole("ios", &mut table.ios)?;
        if columns == Columns::All {
            source.real("bytes", &mut table.bytes)?;
            if source.place("age_hours").is_some() {
                source.whole("age_hours", &mut table.age_hours)?;
            }
        }
        Ok(())
    }
}

struct Source<'a> {
    group: &'a dyn RowGroupReader,
    rows: usize,
}

impl Source<'_> {
    fn place(&self, name: &str) -> Option<usize> {
        self.group
            .metadata()
            .columns()
            .iter()
            .position(|column| column.column_path().string() == name)
    }

    /// A column, each value made a `T`; `None` stands for a missing one.
    fn column<T>(
        &self,
        name: &str,
        out: &mut Vec<T>,
        convert: &impl Convert<T>,
    ) -> Result<(), String> {
        let place = self.place(name).ok_or_else(|| format!("there is no column `{name}`"))?;
        let reader = self
            .group
            .get_column_reader(place)
            .map_err(|error| format!("column `{name}`: {error}"))?;
        let mut levels = Vec::new();
        macro_rules! read {
            ($reader:expr, $convert:expr) => {{
                let (mut reader, mut values) = ($reader, Vec::new());
                loop {
                    let asked = self.rows - levels.len().max(values.len());
                    if asked == 0 {
                        break;
                    }
                    let read = reader.read_records(asked, Some(&mut levels), None, &mut values);
                    let (records, _, _) =
                        read.map_err(|error| format!("column `{name}`: {error}"))?;
                    if records == 0 {
                        return Err(format!("column `{name}` ends before its {} rows", self.rows));
                    }
                }
                let mut values = values.into_iter();
                for row in 0..self.rows {
                    let value = if levels.get(row) == Some(&0) { None } else { values.next() };
                    let converted = $convert(value).ok_or_else(|| {
                        format!(
                            "column `{name}` lacks a value that fits in row {row} of a row group"
                        )
                    });
                    out.push(converted?);
                }
            }};
        }
        match reader {
            ColumnReader::Int32ColumnReader(reader) => {
                read!(reader, |value: Option<i32>| convert.whole(value.map(i64::from)));
            }
            ColumnReader::Int64ColumnReader(reader) => {
                read!(reader, |value: Option<i64>| convert.whole(value));
            }
            ColumnReader::FloatColumnReader(reader) => {
                read!(reader, |value: Option<f32>| convert.real(value.map(f64::from)));
            }
            ColumnReader::DoubleColumnReader(reader) => {
                read!(reader, |value: Option<f64>| convert.real(value));
            }
            _ => return Err(format!("column `{name}` must be of 32- or 64-bit numbers")),
        }
        Ok(())
    }

    fn whole(&self, name: &str, out: &mut Vec<i32>) -> Result<(), String> {
        self.column(name, out, &ToWhole)
    }

    fn real(&self, name: &str, out: &mut Vec<f32>) -> Result<(), String> {
        self.column(name, out, &ToReal)
    }
}

trait Convert<T> {
    fn whole(&self, value: Option<i64>) -> Option<T>;
    fn real(&self, value: Option<f64>) -> Option<T>;
}

struct ToWhole;

impl Convert<i32> for ToWhole {
    fn whole(&self, value: Option<i64>) -> Option<i32> {
        value?.try_into().ok()
    }

    fn real(&self, value: Option<f64>) -> Option<i32> {
        let value = value?;
        let whole = value as i32;
        f64::from(whole).total_cmp(&value).is_eq().then_some(whole)
    }
}

struct ToReal;

impl Convert<f32> for ToReal {
    fn whole(&self, value: Option<i64>) -> Option<f32> {
        Some(value.map_or(f32::NAN, |value| value as f32))
    }

    fn real(&self, value: Option<f64>) -> Option<f32> {
        Some(value.map_or(f32::NAN, |value| value as f32))
    }
}

/// Writes an hours table as Parquet, compressed by zstd.
pub struct HoursWriter {
    path: PathBuf,
    writer: SerializedFileWriter<File>,
}

impl HoursWriter {
    /// Begins a file, in place of one that may be there.
    pub fn create(path: &Path) -> Result<Self, HoursError> {
        let fail = |what: String| HoursError { path: path.into(), what };
        let schema = "message hours { required int32 hour; required int32 raid; required int32 drive; required float latency_us; \
                      required int32 ios; required float bytes; required int32 age_hours; }";
        let schema = parse_message_type(schema).expect("the schema is well-formed");
        let zstd = ZstdLevel::try_new(3).expect("a level of zstd");
        let properties =
            WriterProperties::builder().set_compression(Compression::ZSTD(zstd)).build();
        let file = File::create(path).map_err(|error| fail(error.to_string()))?;
        let writer = SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties));
        Ok(Self { path: path.into(), writer: writer.map_err(|error| fail(error.to_string()))? })
    }

    /// Writes all rows as one row group. Panics if a column is shorter than another.
    pub fn write(&mut self, table: &HoursTable) -> Result<(), HoursError> {
        let HoursTable { hour, raid, drive, latency_us, ios, bytes, age_hours } = table;
        let columns =
            [raid.len(), drive.len(), latency_us.len(), ios.len(), bytes.len(), age_hours.len()];
        assert!(columns.iter().all(|rows| *rows == hour.len()), "columns of {columns:?} rows");
        let written = write_group(&mut self.writer, table);
        written.map_err(|error| HoursError { path: self.path.clone(), what: error.to_string() })
    }

    /// Ends the file.
    pub fn finish(self) -> Result<(), HoursError> {
        let Self { path, writer } = self;
        writer.close().map(|_| ()).map_err(|error| HoursError { path, what: error.to_string() })
    }
}

fn write_group(
    writer: &mut SerializedFileWriter<File>,
    table: &HoursTable,
) -> Result<(), ParquetError> {
    let mut group = writer.next_row_group()?;
    write_whole(&mut group, &table.hour)?;
    write_whole(&mut group, &table.raid)?;
    write_whole(&mut group, &table.drive)?;
    write_real(&mut group, &table.latency_us)?;
    write_whole(&mut group, &table.ios)?;
    write_real(&mut group, &table.bytes)?;
    write_whole(&mut group, &table.age_hours)?;
    group.close().map(|_| ())
}

fn write_whole(
    group: &mut SerializedRowGroupWriter<'_, File>,
    values: &[i32],
) -> Result<(), ParquetError> {
    let mut column = group.next_column()?.expect("the schema has this column");
    column.typed::<Int32Type>().write_batch(values, None, None)?;
    column.close()
}

fn write_real(
    group: &mut SerializedRowGroupWriter<'_, File>,
    values: &[f32],
) -> Result<(), ParquetError> {
    let mut column = group.next_column()?.expect("the schema has this column");
    column.typed::<FloatType>().write_batch(values, None, None)?;
    column.close()
}

#[cfg(test)]
mod tests {
    use levelhead_fleet::generate::{HoursGenerator, Kind, Shape};

    use super::*;

    #[test]
    fn a_table_comes_back_as_it_was_written() {
        let path =
            std::env::temp_dir().join(format!("levelhead-hours-{}.parquet", std::process::id()));
        let mut generator = HoursGenerator::new(Shape {
            kind: Kind::Disk,
            group_count: 20,
            hour_count: 30,
            seed: 1,
        });
        let mut table = HoursTable::default();
        while generator.next_hour(&mut table) {}
        let mut writer = HoursWriter::create(&path).expect("a temporary file");
        writer.write(&table).expect("room");
        writer.write(&table).expect("room");
        writer.finish().expect("room");

        let file = HoursFile::open(&path).expect("own file");
        assert_eq!((file.row_group_count(), file.row_count()), (2, 2 * table.hour.len() as u64));
        let mut read = HoursTable::default();
        file.read(1, Columns::All, &mut read).expect("own columns");
        assert_eq!(read, table);
        file.read(0, Columns::Slowdown, &mut read).expect("own columns");
        assert!(read.bytes.is_empty() && read.latency_us == table.latency_us);

        let whole = std::fs::read(&path).expect("own file");
        std::fs::write(&path, &whole[..whole.len() / 2]).expect("room");
        let error = HoursFile::open(&path).err().expect("half a file").to_string();
        assert!(error.contains("levelhead-hours"), "{error}");
        std::fs::remove_file(&path).expect("own file");
    }
}
