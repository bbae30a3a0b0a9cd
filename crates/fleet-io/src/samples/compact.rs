//! PERSEUS's compact form: Parquet, a row a drive and minute.
//!
//! Columns, in any order, others beside them: `host` text, `ts` i64 (unix s), `disk_id` text, `throughput` f32 (bytes/s), `latency`
//! f32 (us), and, if it is there, `samples` (i32, 8 bits used: how many samples of 15 s a row is the mean of; else 1).

use std::collections::BTreeMap;
use std::path::Path;

use levelhead_fleet::detect::{Gather, Recording, Sample};
use parquet::column::reader::ColumnReader;
use parquet::data_type::ByteArray;

use super::csv::GROUPS_MAX;
use crate::pages::{ParquetFile, RowGroup};
use crate::{ReadError, damage};

/// Rows that are read at a time.
const ROWS: usize = 1 << 16;

/// The longest name of a host or a drive, in bytes.
const NAME_MAX: usize = 256;

pub(super) fn read(path: &Path) -> Result<Vec<Recording>, ReadError> {
    let reader = damage::open(path)?;
    damage::guarded(path, || read_whole(path, &reader))
}

fn read_whole(path: &Path, reader: &ParquetFile) -> Result<Vec<Recording>, ReadError> {
    let wrong = |error: parquet::errors::ParquetError| ReadError::of(path, error);
    let schema = reader.metadata().file_metadata().schema_descr();
    let place = |name: &str| {
        schema.columns().iter().position(|column| {
            column.path().parts().len() == 1
                && column.name() == name
                && column.max_rep_level() == 0
                && column.max_def_level() <= 1
        })
    };
    let needed = |name: &str| {
        place(name).ok_or_else(|| ReadError::of(path, format!("missing column {name}")))
    };
    let places = Places {
        host: needed("host")?,
        at: needed("ts")?,
        drive: needed("disk_id")?,
        load: needed("throughput")?,
        latency: needed("latency")?,
        samples: place("samples"),
    };
    let mut groups: BTreeMap<String, Gather> = BTreeMap::new();
    let mut row_number = 0;
    for idx in 0..reader.metadata().num_row_groups() {
        let group = reader.row_group(idx);
        let mut columns = Columns::open(group, &places).map_err(wrong)?;
        while columns.advance().map_err(|why| ReadError::of(path, why))? {
            for row in 0..columns.rows() {
                row_number += 1;
                let Some(taken) = columns.row(row) else { continue };
                let at = |why: String| ReadError::of(path, format!("row {row_number}: {why}"));
                if taken.host.len().max(taken.drive.len()) > NAME_MAX {
                    return Err(at(format!("a name is longer than {NAME_MAX} bytes")));
                }
                if !groups.contains_key(taken.host) {
                    if groups.len() == GROUPS_MAX {
                        return Err(at(format!("a file has at most {GROUPS_MAX} groups")));
                    }
                    groups.insert(taken.host.to_owned(), Gather::default());
                }
                let gather = groups.get_mut(taken.host).expect("it has just been put there");
                gather.add(taken.drive, &taken.sample).map_err(|why| at(why.to_string()))?;
            }
        }
    }
    Ok(groups.into_iter().map(|(group, gather)| gather.finish(&group)).collect())
}

struct Places {
    host: usize,
    at: usize,
    drive: usize,
    load: usize,
    latency: usize,
    samples: Option<usize>,
}

/// The columns of a row group, some rows at a time.
struct Columns {
    host: Column<ByteArray>,
    at: Column<i64>,
    drive: Column<ByteArray>,
    load: Column<f32>,
    latency: Column<f32>,
    samples: Option<Column<i32>>,
}

struct Row<'a> {
    host: &'a str,
    drive: &'a str,
    sample: Sample,
}

impl Columns {
    fn open(group: RowGroup<'_>, places: &Places) -> parquet::errors::Result<Self> {
        let samples = match places.samples {
            Some(place) => Some(Column::new(group.column(place)?)),
            None => None,
        };
        Ok(Self {
            host: Column::new(group.column(places.host)?),
            at: Column::new(group.column(places.at)?),
            drive: Column::new(group.column(places.drive)?),
            load: Column::new(group.column(places.load)?),
            latency: Column::new(group.column(places.latency)?),
            samples,
        })
    }

    /// Goes to the next rows; false at the end.
    fn advance(&mut self) -> Result<bool, String> {
        let rows = self.host.advance()?;
        let mut others = vec![
            self.at.advance()?,
            self.drive.advance()?,
            self.load.advance()?,
            self.latency.advance()?,
        ];
        if let Some(samples) = &mut self.samples {
            others.push(samples.advance()?);
        }
        if others.iter().any(|&other| other != rows) {
            return Err("the columns of a row group have different counts of rows".to_owned());
        }
        Ok(rows > 0)
    }

    fn rows(&self) -> usize {
        self.host.values.len()
    }

    /// A row, unless one of its values is null or no text.
    fn row(&self, row: usize) -> Option<Row<'_>> {
        let count = match &self.samples {
            Some(samples) => u32::try_from(samples.values[row]?).ok()?,
            None => 1,
        };
        let sample = Sample {
            at: self.at.values[row]?,
            latency_us: f64::from(self.latency.values[row]?),
            load: f64::from(self.load.values[row]?),
            count,
        };
        let host = self.host.values[row].as_ref()?.as_utf8().ok()?;
        let drive = self.drive.values[row].as_ref()?.as_utf8().ok()?;
        Some(Row { host, drive, sample })
    }
}

/// One column and the rows of it that have been read last: none for null.
struct Column<T> {
    reader: ColumnReader,
    values: Vec<Option<T>>,
}

impl<T: Value> Column<T> {
    fn new(reader: ColumnReader) -> Self {
        Self { reader, values: Vec::new() }
    }

    fn advance(&mut self) -> Result<usize, String> {
        self.values = T::read(&mut self.reader)?;
        Ok(self.values.len())
    }
}

trait Value: Clone + Sized {
    fn read(reader: &mut ColumnReader) -> Result<Vec<Option<Self>>, String>;
}

macro_rules! value {
    ($type:ty, $variant:ident) => {
        impl Value for $type {
            fn read(reader: &mut ColumnReader) -> Result<Vec<Option<Self>>, String> {
                let ColumnReader::$variant(reader) = reader else {
                    return Err(concat!("a column is not of type ", stringify!($type)).to_owned());
                };
                let (mut levels, mut values) = (Vec::new(), Vec::new());
                let (rows, _, _) = reader
                    .read_records(ROWS, Some(&mut levels), None, &mut values)
                    .map_err(|error| error.to_string())?;
                if levels.is_empty() && values.len() == rows {
                    return Ok(values.into_iter().map(Some).collect());
                }
                let mut values = values.into_iter();
                let value = |level: &i16| if *level > 0 { values.next() } else { None };
                let values: Vec<Option<Self>> = levels.iter().map(value).collect();
                if values.len() == rows {
                    Ok(values)
                } else {
                    Err("a column has more or fewer values than rows".to_owned())
                }
            }
        }
    };
}

value!(ByteArray, ByteArrayColumnReader);
value!(i64, Int64ColumnReader);
value!(i32, Int32ColumnReader);
value!(f32, FloatColumnReader);
