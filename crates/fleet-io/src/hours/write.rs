//! Hours tables as Parquet, written.

use std::io::Write;
use std::sync::Arc;

use levelhead_fleet::{HoursTable, MODEL_UNKNOWN};
use parquet::basic::{Compression, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, FloatType, Int32Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;

/// Rows of a row group that is written.
pub const ROWS_WRITTEN: usize = 1 << 20;

/// Writes an hours table, compressed by zstd.
pub struct HoursWriter<W: Write + Send> {
    writer: SerializedFileWriter<W>,
    /// Rows that wait until there are enough for a row group.
    waiting: HoursTable,
    rows: usize,
}

impl<W: Write + Send> HoursWriter<W> {
    /// Begins a table.
    ///
    /// # Errors
    ///
    /// `out` does not take the first bytes.
    pub fn begin(out: W) -> std::io::Result<Self> {
        Self::begin_with(out, ROWS_WRITTEN)
    }

    /// With row groups of this number of rows.
    pub(super) fn begin_with(out: W, rows: usize) -> std::io::Result<Self> {
        let schema = "message hours { required int32 hour; required int32 raid; required int32 drive; required float latency_us; \
                      required int32 ios; required float bytes; optional int32 age_hours; optional binary model (utf8); }";
        let schema = parse_message_type(schema).expect("the schema is well-formed");
        let zstd = ZstdLevel::try_new(3).expect("a level of zstd");
        let properties =
            WriterProperties::builder().set_compression(Compression::ZSTD(zstd)).build();
        let writer = SerializedFileWriter::new(out, Arc::new(schema), Arc::new(properties));
        Ok(Self { writer: writer?, waiting: HoursTable::default(), rows })
    }

    /// Adds rows. Their models are places in the names that come with them, which may grow from call to call.
    ///
    /// Panics if a column is shorter than another; ages and models may be without a row.
    ///
    /// # Errors
    ///
    /// `out` does not take the bytes.
    pub fn write(&mut self, table: &HoursTable) -> std::io::Result<()> {
        let HoursTable { hour, raid, drive, latency_us, ios, bytes, age_hours, model, models } =
            table;
        let (rows, waiting) = (hour.len(), &mut self.waiting);
        let rows_written = self.rows;
        for column in [raid.len(), drive.len(), latency_us.len(), ios.len(), bytes.len()] {
            assert_eq!(column, rows, "columns are as long as one another");
        }
        for column in [age_hours.len(), model.len()] {
            assert!(column == 0 || column == rows, "columns are as long as one another");
        }
        waiting.models.clone_from(models);
        let mut from = 0;
        while from < rows {
            let to = rows.min(from + rows_written - waiting.len());
            waiting.hour.extend(&hour[from..to]);
            waiting.raid.extend(&raid[from..to]);
            waiting.drive.extend(&drive[from..to]);
            waiting.latency_us.extend(&latency_us[from..to]);
            waiting.ios.extend(&ios[from..to]);
            waiting.bytes.extend(&bytes[from..to]);
            match age_hours.get(from..to) {
                Some(ages) => waiting.age_hours.extend(ages),
                None => waiting.age_hours.resize(waiting.hour.len(), -1),
            }
            match model.get(from..to) {
                Some(model) => waiting.model.extend(model),
                None => waiting.model.resize(waiting.hour.len(), MODEL_UNKNOWN),
            }
            if waiting.len() == rows_written {
                write_group(&mut self.writer, waiting)?;
                waiting.clear();
            }
            from = to;
        }
        Ok(())
    }

    /// Ends the table.
    ///
    /// # Errors
    ///
    /// `out` does not take the last bytes.
    pub fn finish(mut self) -> std::io::Result<()> {
        if !self.waiting.is_empty() {
            write_group(&mut self.writer, &self.waiting)?;
        }
        self.writer.close()?;
        Ok(())
    }
}

/// The first line of a table as CSV.
pub const CSV_HEADER: &str = "hour,raid,drive,latency_us,ios,bytes,age_hours,model";

/// Writes rows as CSV, without the first line. What is not known is empty.
///
/// # Errors
///
/// `out` does not take the lines.
pub fn write_csv(out: &mut dyn Write, table: &HoursTable) -> std::io::Result<()> {
    for row in 0..table.len() {
        let (hour, raid, drive) = (table.hour[row], table.raid[row], table.drive[row]);
        let ios = table.ios[row];
        let real = |value: f32| if value.is_nan() { String::new() } else { value.to_string() };
        let (latency_us, bytes) = (real(table.latency_us[row]), real(table.bytes[row]));
        let age = table.age_hours.get(row).filter(|&&age| age >= 0);
        let age = age.map_or(String::new(), i32::to_string);
        let model = table.model.get(row).and_then(|&model| table.models.get(usize::from(model)));
        let model = model.map_or("", String::as_str);
        writeln!(out, "{hour},{raid},{drive},{latency_us},{ios},{bytes},{age},\"{model}\"")?;
    }
    Ok(())
}

fn write_group<W: Write + Send>(
    writer: &mut SerializedFileWriter<W>,
    table: &HoursTable,
) -> Result<(), ParquetError> {
    let mut group = writer.next_row_group()?;
    write_whole(&mut group, &table.hour)?;
    write_whole(&mut group, &table.raid)?;
    write_whole(&mut group, &table.drive)?;
    write_real(&mut group, &table.latency_us)?;
    write_whole(&mut group, &table.ios)?;
    write_real(&mut group, &table.bytes)?;
    write_ages(&mut group, &table.age_hours)?;
    write_models(&mut group, table)?;
    group.close().map(|_| ())
}

/// What the next column of the schema is written by, which is there.
const COLUMN: &str = "the schema has this column";

fn write_whole<W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    values: &[i32],
) -> Result<(), ParquetError> {
    let mut column = group.next_column()?.expect(COLUMN);
    column.typed::<Int32Type>().write_batch(values, None, None)?;
    column.close()
}

fn write_real<W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    values: &[f32],
) -> Result<(), ParquetError> {
    let mut column = group.next_column()?.expect(COLUMN);
    column.typed::<FloatType>().write_batch(values, None, None)?;
    column.close()
}

/// Ages; of one below 0 nothing is known.
fn write_ages<W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    ages: &[i32],
) -> Result<(), ParquetError> {
    let levels: Vec<i16> = ages.iter().map(|&age| i16::from(age >= 0)).collect();
    let values: Vec<i32> = ages.iter().copied().filter(|&age| age >= 0).collect();
    let mut column = group.next_column()?.expect(COLUMN);
    column.typed::<Int32Type>().write_batch(&values, Some(&levels), None)?;
    column.close()
}

/// Names of models; one without a name is not known.
fn write_models<W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    table: &HoursTable,
) -> Result<(), ParquetError> {
    let names: Vec<ByteArray> =
        table.models.iter().map(|name| ByteArray::from(name.as_str())).collect();
    let name_of = |model: &u16| names.get(usize::from(*model)).filter(|name| !name.is_empty());
    let levels: Vec<i16> =
        table.model.iter().map(|model| i16::from(name_of(model).is_some())).collect();
    let values: Vec<ByteArray> = table.model.iter().filter_map(name_of).cloned().collect();
    let mut column = group.next_column()?.expect(COLUMN);
    column.typed::<ByteArrayType>().write_batch(&values, Some(&levels), None)?;
    column.close()
}
