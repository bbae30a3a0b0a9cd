//! One column of a row group, some rows at a time, as the type that the table has.

use std::collections::HashMap;

use levelhead_fleet::MODEL_UNKNOWN;
use levelhead_units::escaped;
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, ByteArrayType, DataType};

use super::{MODEL_NAME_MAX, MODELS_MAX};
use crate::pages::RowGroup;

/// Where a row has no value.
const NONE: i16 = 0;

/// A column that is being read.
pub(super) struct Column {
    name: &'static str,
    reader: ColumnReader,
    is_nullable: bool,
    /// Of each row read last whether it has a value; empty for a column that always has.
    levels: Vec<i16>,
}

impl Column {
    /// The column of this name, if the row group has it.
    pub(super) fn find(group: RowGroup<'_>, name: &'static str) -> Result<Option<Self>, String> {
        let mut columns = group.metadata.columns().iter();
        let is_it = |path: &[String]| path.len() == 1 && path[0] == name;
        let Some(place) = columns.position(|column| is_it(column.column_path().parts())) else {
            return Ok(None);
        };
        let column = group.metadata.column(place).column_descr();
        if column.max_rep_level() > 0 || column.max_def_level() > 1 {
            return Err(format!("column `{name}` has lists, and not a value a row"));
        }
        let is_nullable = column.max_def_level() == 1;
        let reader = group.column(place).map_err(|error| format!("column `{name}`: {error}"))?;
        Ok(Some(Self { name, reader, is_nullable, levels: Vec::new() }))
    }

    /// Goes on behind `rows` rows.
    pub(super) fn skip(&mut self, rows: usize) -> Result<(), String> {
        let skipped = match &mut self.reader {
            ColumnReader::Int32ColumnReader(reader) => reader.skip_records(rows),
            ColumnReader::Int64ColumnReader(reader) => reader.skip_records(rows),
            ColumnReader::FloatColumnReader(reader) => reader.skip_records(rows),
            ColumnReader::DoubleColumnReader(reader) => reader.skip_records(rows),
            _ => return Err(self.is_not_of_numbers()),
        };
        match skipped {
            Ok(skipped) if skipped == rows => Ok(()),
            Ok(_) => Err(self.ends_early()),
            Err(error) => Err(format!("column `{}`: {error}", self.name)),
        }
    }

    /// Adds `rows` whole numbers.
    pub(super) fn read_whole(&mut self, rows: usize, out: &mut Vec<i32>) -> Result<(), String> {
        self.read_whole_or(rows, None, out)
    }

    fn read_whole_or(
        &mut self,
        rows: usize,
        none: Option<&i32>,
        out: &mut Vec<i32>,
    ) -> Result<(), String> {
        let from = out.len();
        match &mut self.reader {
            ColumnReader::Int32ColumnReader(reader) if !self.is_nullable => {
                fill(reader, rows, None, out)?;
            }
            ColumnReader::Int32ColumnReader(reader) => {
                let mut values = Vec::new();
                fill(reader, rows, Some(&mut self.levels), &mut values)?;
                spread(&self.levels, values, none, |value: Option<i32>| value, out);
            }
            ColumnReader::Int64ColumnReader(reader) => {
                let mut values = Vec::new();
                let levels = self.is_nullable.then_some(&mut self.levels);
                fill(reader, rows, levels, &mut values)?;
                let narrow = |value: Option<i64>| value?.try_into().ok();
                spread(&self.levels, values, none, narrow, out);
            }
            ColumnReader::DoubleColumnReader(reader) => {
                let mut values = Vec::new();
                let levels = self.is_nullable.then_some(&mut self.levels);
                fill(reader, rows, levels, &mut values)?;
                spread(&self.levels, values, none, whole_of, out);
            }
            _ => return Err(self.is_not_of_numbers()),
        }
        match out.len() - from {
            count if count == rows => Ok(()),
            count => Err(format!(
                "column `{}` has no whole number of 32 bits in row {} of those at hand",
                self.name,
                count + 1
            )),
        }
    }

    /// Adds `rows` ages; a missing one is -1.
    pub(super) fn read_age(&mut self, rows: usize, out: &mut Vec<i32>) -> Result<(), String> {
        self.read_whole_or(rows, Some(&-1), out)
    }

    /// Adds `rows` numbers; a missing one is none.
    pub(super) fn read_real(&mut self, rows: usize, out: &mut Vec<f32>) -> Result<(), String> {
        let from = out.len();
        let levels = self.is_nullable.then_some(&mut self.levels);
        match &mut self.reader {
            ColumnReader::FloatColumnReader(reader) if !self.is_nullable => {
                fill(reader, rows, None, out)?;
            }
            ColumnReader::FloatColumnReader(reader) => {
                let mut values = Vec::new();
                fill(reader, rows, levels, &mut values)?;
                spread(&self.levels, values, Some(&f32::NAN), |value: Option<f32>| value, out);
            }
            ColumnReader::DoubleColumnReader(reader) => {
                let mut values = Vec::new();
                fill(reader, rows, levels, &mut values)?;
                let narrow = |value: Option<f64>| value.map(|value| value as f32);
                spread(&self.levels, values, Some(&f32::NAN), narrow, out);
            }
            ColumnReader::Int32ColumnReader(reader) => {
                let mut values = Vec::new();
                fill(reader, rows, levels, &mut values)?;
                let real = |value: Option<i32>| value.map(|value| value as f32);
                spread(&self.levels, values, Some(&f32::NAN), real, out);
            }
            ColumnReader::Int64ColumnReader(reader) => {
                let mut values = Vec::new();
                fill(reader, rows, levels, &mut values)?;
                let real = |value: Option<i64>| value.map(|value| value as f32);
                spread(&self.levels, values, Some(&f32::NAN), real, out);
            }
            _ => return Err(self.is_not_of_numbers()),
        }
        if out.len() - from == rows { Ok(()) } else { Err(self.ends_early()) }
    }

    /// Adds `rows` models as places in `names`; a missing one is not known.
    pub(super) fn read_models(
        &mut self,
        rows: usize,
        names: &mut Names,
        out: &mut Vec<u16>,
    ) -> Result<(), String> {
        let ColumnReader::ByteArrayColumnReader(reader) = &mut self.reader else {
            return Err(format!("column `{}` is not of text", self.name));
        };
        let mut values = Vec::new();
        fill::<ByteArrayType>(
            reader,
            rows,
            self.is_nullable.then_some(&mut self.levels),
            &mut values,
        )?;
        let mut texts = Vec::with_capacity(rows);
        spread(&self.levels, values, None, |value: Option<ByteArray>| Some(value), &mut texts);
        if texts.len() != rows {
            return Err(self.ends_early());
        }
        for text in &texts {
            let text = text.as_ref().map_or(Ok(""), ByteArray::as_utf8);
            let text = text.map_err(|_| format!("column `{}` has no text", self.name))?;
            out.push(names.place_of(text)?);
        }
        Ok(())
    }

    fn is_not_of_numbers(&self) -> String {
        format!("column `{}` is not of numbers of 32 or 64 bits", self.name)
    }

    fn ends_early(&self) -> String {
        format!("column `{}` ends before its row group", self.name)
    }
}

/// Reads `rows` rows, or as many as there are: values that are there, and of each row its level.
fn fill<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    rows: usize,
    levels: Option<&mut Vec<i16>>,
    values: &mut Vec<T::T>,
) -> Result<(), String> {
    let mut read = 0;
    let mut levels = levels;
    if let Some(levels) = &mut levels {
        levels.clear();
    }
    while read < rows {
        let (records, _, _) = reader
            .read_records(rows - read, levels.as_deref_mut(), None, values)
            .map_err(|error| error.to_string())?;
        if records == 0 {
            break;
        }
        read += records;
    }
    Ok(())
}

/// Adds a value for each row, `none` where there is none; ends before the first row that `convert` cannot serve.
fn spread<T, U: Clone>(
    levels: &[i16],
    values: Vec<T>,
    none: Option<&U>,
    convert: impl Fn(Option<T>) -> Option<U>,
    out: &mut Vec<U>,
) {
    let mut values = values.into_iter();
    if levels.is_empty() {
        out.extend(values.map_while(|value| convert(Some(value))));
        return;
    }
    out.extend(levels.iter().map_while(|&level| {
        if level == NONE { convert(None).or_else(|| none.cloned()) } else { convert(values.next()) }
    }));
}

/// The whole number of 32 bits that a number is.
fn whole_of(value: Option<f64>) -> Option<i32> {
    let value = value?;
    let whole = value as i32;
    f64::from(whole).total_cmp(&value).is_eq().then_some(whole)
}

/// Names of models and their places.
#[derive(Default)]
pub(super) struct Names {
    places: HashMap<String, u16>,
    /// By place.
    pub(super) names: Vec<String>,
    /// The place that was asked for last.
    last: u16,
}

impl Names {
    /// The place of a name, which is [`MODEL_UNKNOWN`] of none.
    pub(super) fn place_of(&mut self, name: &str) -> Result<u16, String> {
        if name.is_empty() {
            return Ok(MODEL_UNKNOWN);
        }
        // Drives of a group are mostly of one model.
        if self.names.get(usize::from(self.last)).is_some_and(|last| last == name) {
            return Ok(self.last);
        }
        if let Some(&place) = self.places.get(name) {
            self.last = place;
            return Ok(place);
        }
        if name.len() > MODEL_NAME_MAX {
            return Err(format!("the name of a model is longer than {MODEL_NAME_MAX} bytes"));
        }
        if self.names.len() == MODELS_MAX {
            return Err(format!("a file has at most {MODELS_MAX} models"));
        }
        let place = self.names.len() as u16;
        self.names.push(escaped(name).into_owned());
        self.places.insert(name.to_owned(), place);
        Ok(place)
    }
}
