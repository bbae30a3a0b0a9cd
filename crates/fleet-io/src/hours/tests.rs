use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use levelhead_fleet::generate::{HoursGenerator, Kind, Shape};
use levelhead_fleet::{HoursTable, MODEL_UNKNOWN};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;

use super::*;
use crate::ReadError;

fn made_up(groups: usize, hours: usize) -> HoursTable {
    let shape = Shape { kind: Kind::Disk, group_count: groups, hour_count: hours, seed: 1 };
    let mut generator = HoursGenerator::new(shape);
    let mut table = HoursTable::default();
    while generator.next_hour(&mut table) {}
    table.models = ["A 1", "B, 2"].map(str::to_owned).to_vec();
    table.model =
        table.drive.iter().map(|drive| [0, 1, MODEL_UNKNOWN][(drive % 3) as usize]).collect();
    table.age_hours.iter_mut().step_by(7).for_each(|age| *age = -1);
    table
}

fn write(path: &Path, table: &HoursTable, rows: usize) {
    let mut writer =
        HoursWriter::begin_with(File::create(path).expect("a file"), rows).expect("room");
    writer.write(table).expect("room");
    writer.finish().expect("room");
}

fn append(whole: &mut HoursTable, part: &HoursTable) {
    whole.hour.extend(&part.hour);
    whole.raid.extend(&part.raid);
    whole.drive.extend(&part.drive);
    whole.latency_us.extend(&part.latency_us);
    whole.ios.extend(&part.ios);
    whole.bytes.extend(&part.bytes);
    whole.age_hours.extend(&part.age_hours);
    let name_of = |model: &u16| part.models.get(usize::from(*model)).cloned();
    for name in part.model.iter().map(name_of) {
        let place = name.map(|name| {
            let known = whole.models.iter().position(|other| *other == name);
            known.unwrap_or_else(|| {
                whole.models.push(name);
                whole.models.len() - 1
            })
        });
        whole.model.push(place.map_or(MODEL_UNKNOWN, |place| place as u16));
    }
}

fn read(mut rows: HoursRows<'_>) -> HoursTable {
    let (mut whole, mut table) = (HoursTable::default(), HoursTable::default());
    while rows.next(&mut table).expect("own file") {
        assert!(!table.is_empty());
        append(&mut whole, &table);
    }
    whole
}

#[test]
fn a_table_comes_back_as_it_was_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("hours.parquet");
    let table = made_up(20, 30);
    write(&path, &table, 1000);
    let file = HoursFile::open(&path).expect("own file");
    assert_eq!(file.row_count(), table.len() as u64);
    assert_eq!(file.row_group_count(), table.len().div_ceil(1000));
    let all = 0..file.row_group_count();
    assert_eq!(read(file.part(all.clone(), Columns::All).expect("own file")), table);
    let slowdown = read(file.part(all, Columns::Slowdown).expect("own file"));
    assert!(slowdown.bytes.is_empty() && slowdown.latency_us == table.latency_us);
}

#[test]
fn parts_have_each_row_once_and_no_hour_of_a_group_twice() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("hours.parquet");
    let table = made_up(3, 12);
    // From row groups that cut every hour of a group to one for all.
    for rows in [1, 2, 3, 5, 16, 40, 1000] {
        write(&path, &table, rows);
        let file = HoursFile::open(&path).expect("own file");
        let count = file.row_group_count();
        for parts in [1, 2, 3, 7, count] {
            let (mut whole, mut last) = (HoursTable::default(), None);
            for part in 0..parts {
                let range = part * count / parts..(part + 1) * count / parts;
                let table = read(file.part(range, Columns::All).expect("own file"));
                let key = |row: usize| (table.hour[row], table.raid[row]);
                if !table.is_empty() {
                    assert_ne!(Some(key(0)), last, "{rows} rows, {parts} parts");
                    last = Some(key(table.len() - 1));
                }
                append(&mut whole, &table);
            }
            assert_eq!(whole, table, "row groups of {rows}, {parts} parts");
        }
    }
}

#[test]
fn wide_numbers_and_missing_values_are_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("wide.parquet");
    let write = |hour: i64, ios: f64| {
        let schema = "message hours { required int64 hour; optional int64 raid; required int64 drive; optional double latency_us; \
                      required double ios; optional int64 bytes; optional int64 age_hours; optional binary model (utf8); }";
        let schema = Arc::new(parse_message_type(schema).expect("a schema"));
        let properties = Arc::new(WriterProperties::default());
        let file = File::create(&path).expect("a file");
        let mut writer = SerializedFileWriter::new(file, schema, properties).expect("room");
        let mut group = writer.next_row_group().expect("room");
        column::<Int64Type>(&mut group, &[hour, hour, hour], &[]);
        column::<Int64Type>(&mut group, &[4, 4, 4], &[1, 1, 1]);
        column::<Int64Type>(&mut group, &[7, 8, 9], &[]);
        column::<DoubleType>(&mut group, &[2.5, 3.5], &[1, 0, 1]);
        column::<DoubleType>(&mut group, &[ios, 6.0, 7.0], &[]);
        column::<Int64Type>(&mut group, &[4096], &[0, 1, 0]);
        column::<Int64Type>(&mut group, &[100], &[0, 0, 1]);
        column::<ByteArrayType>(&mut group, &[ByteArray::from("A")], &[0, 1, 0]);
        group.close().expect("room");
        writer.close().expect("room");
        let file = HoursFile::open(&path).expect("own file");
        let mut table = HoursTable::default();
        file.part(0..1, Columns::All).expect("own file").next(&mut table).map(|_| table)
    };
    let table = write(3, 5.0).expect("numbers that fit");
    assert_eq!((table.hour, table.ios), (vec![3; 3], vec![5, 6, 7]));
    assert!(table.latency_us[1].is_nan() && table.latency_us[2].total_cmp(&3.5).is_eq());
    assert!(table.bytes[0].is_nan() && table.bytes[1].total_cmp(&4096.0).is_eq());
    assert_eq!(table.age_hours, [-1, -1, 100]);
    assert_eq!(
        (table.model, table.models),
        (vec![MODEL_UNKNOWN, 0, MODEL_UNKNOWN], vec!["A".to_owned()])
    );
    let error = write(1 << 40, 5.0).expect_err("an hour that does not fit").to_string();
    assert!(error.contains("`hour` has no whole number"), "{error}");
    let error = write(3, 5.5).expect_err("half a request").to_string();
    assert!(error.contains("`ios` has no whole number"), "{error}");
}

fn column<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, File>,
    values: &[T::T],
    levels: &[i16],
) {
    let mut column = group.next_column().expect("room").expect("a column");
    let levels = (!levels.is_empty()).then_some(levels);
    column.typed::<T>().write_batch(values, levels, None).expect("room");
    column.close().expect("room");
}

#[test]
fn a_damaged_file_is_an_error_and_no_panic() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("hours.parquet");
    write(&path, &made_up(3, 12), 100);
    let whole = std::fs::read(&path).expect("own file");
    let try_read = |bytes: &[u8]| {
        std::fs::write(&path, bytes).expect("room");
        let file = HoursFile::open(&path)?;
        let mut table = HoursTable::default();
        let mut rows = file.part(1..file.row_group_count(), Columns::All)?;
        while rows.next(&mut table)? {}
        Ok::<_, ReadError>(())
    };
    for end in (0..whole.len()).step_by(97) {
        let error = try_read(&whole[..end]).expect_err("part of a file").to_string();
        assert!(error.contains("hours.parquet"), "{error}");
    }
    for at in (0..whole.len()).step_by(13) {
        let mut broken = whole.clone();
        broken[at] ^= 0x55;
        let _ = try_read(&broken);
    }
}

#[test]
fn lines_are_read_in_any_order_of_columns_and_names_get_numbers() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("hours.csv");
    let text = "model,drive,raid,\"hour\",latency_us,ios,bytes,note\n\
                A,sda,tank,5,100.5,20,4096,x\n\n\
                NA,sdb,tank,5,NA,20,,y\n\
                B,sda,pool,5,7,8,9,z\n";
    std::fs::write(&path, text).expect("room");
    let mut rows = CsvRows::open(&path, Ids::Texts).expect("a header");
    let mut table = HoursTable::default();
    assert!(rows.next(&mut table).expect("good lines"));
    assert_eq!((&table.raid, &table.drive), (&vec![0, 0, 1], &vec![0, 1, 2]));
    assert_eq!(table.model, [0, MODEL_UNKNOWN, 1]);
    assert!(table.latency_us[1].is_nan() && table.bytes[1].is_nan());
    assert!(table.age_hours.is_empty());
    assert_eq!(
        (rows.named()[2].raid_name.as_str(), rows.named()[2].drive_name.as_str()),
        ("pool", "sda")
    );
    assert!(!rows.next(&mut table).expect("the end"));

    let error = |text: &str| {
        std::fs::write(&path, text).expect("room");
        let read = CsvRows::open(&path, Ids::Numbers)
            .and_then(|mut rows| rows.next(&mut HoursTable::default()));
        read.expect_err("a bad line").to_string()
    };
    let header = "hour,raid,drive,latency_us,ios,bytes\n";
    assert!(error("hour,raid\n").contains("line 1: missing column `drive`"));
    assert!(error("hour,hour,raid,drive,latency_us,ios,bytes\n").contains("twice"));
    assert!(error(&format!("{header}1,2,3\n")).contains("line 2: 3 fields instead of 6"));
    assert!(error(&format!("{header}1,tank,3,4,5,6\n")).contains("line 2: raid 'tank'"));
    assert!(error("").contains("empty"));
}
