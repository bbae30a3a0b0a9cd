//! Files and answers that are small and claim to hold much: what is read of them has a bound.
//!
//! Memory is that of a process of its own: what other tests take at the same time is not counted.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use levelhead_fleet::HoursTable;
use levelhead_fleet_io::hours::{Columns, HoursFile};
use levelhead_fleet_io::prometheus::{self, Members};
use levelhead_fleet_io::samples::read_recordings;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, FloatType, Int32Type, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;

/// The file that is read in a process of its own.
const READ: &str = "LEVELHEAD_FILE_TO_BE_READ";

/// What the process may take, its program and the test's own frame included.
const MEMORY_MAX: u64 = 64 << 20;

/// Runs a test of this file once more in a process of its own, with that file.
fn in_own_process(test: &str, file: &Path) {
    let own = std::env::current_exe().expect("the tests have a program");
    let mut child = Command::new(own);
    let name = format!("bounds::{test}");
    let output = child.args([&name, "--exact", "--nocapture"]).env(READ, file).output();
    let output = output.expect("it was started once");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
}

/// The most memory that this process has had.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("the kernel knows");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak");
    let kib: u64 = line.trim().trim_end_matches(" kB").parse().expect("a number");
    kib << 10
}

fn column<T: DataType>(group: &mut SerializedRowGroupWriter<'_, File>, value: T::T) {
    let mut column = group.next_column().expect("room").expect("a column");
    column.typed::<T>().write_batch(&[value], None, None).expect("room");
    column.close().expect("room");
}

fn properties() -> parquet::file::properties::WriterPropertiesBuilder {
    let zstd = ZstdLevel::try_new(3).expect("a level of zstd");
    WriterProperties::builder().set_compression(Compression::ZSTD(zstd))
}

/// An hours table of one row whose model has that name.
fn write_hours(path: &Path, name: &[u8], properties: WriterProperties) {
    let schema = "message hours { required int32 hour; required int32 raid; required int32 drive; required float latency_us; \
                  required int32 ios; required float bytes; required binary model (utf8); }";
    let schema = Arc::new(parse_message_type(schema).expect("a schema"));
    let file = File::create(path).expect("a file");
    let mut writer = SerializedFileWriter::new(file, schema, Arc::new(properties)).expect("room");
    let mut group = writer.next_row_group().expect("room");
    column::<Int32Type>(&mut group, 1);
    column::<Int32Type>(&mut group, 1);
    column::<Int32Type>(&mut group, 1);
    column::<FloatType>(&mut group, 1.0);
    column::<Int32Type>(&mut group, 1);
    column::<FloatType>(&mut group, 1.0);
    column::<ByteArrayType>(&mut group, ByteArray::from(name.to_vec()));
    group.close().expect("room");
    writer.close().expect("room");
}

fn read_hours(path: &Path) -> Result<HoursTable, String> {
    let file = HoursFile::open(path).map_err(|error| error.to_string())?;
    let mut table = HoursTable::default();
    let mut rows = file.part(0..1, Columns::All).map_err(|error| error.to_string())?;
    rows.next(&mut table).map_err(|error| error.to_string())?;
    Ok(table)
}

#[test]
fn a_page_that_claims_much_is_refused_before_it_is_inflated() {
    if let Some(path) = std::env::var_os(READ) {
        let error = read_hours(path.as_ref()).expect_err("a page of 160 MiB");
        assert!(error.contains("bytes, at most 8388608 are read"), "{error}");
        assert!(peak() < MEMORY_MAX, "{} bytes", peak());
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("hours.parquet");
    let name = vec![b'x'; 160 << 20];
    for has_dictionary in [false, true] {
        let properties = properties().set_dictionary_enabled(has_dictionary);
        let properties = properties.set_dictionary_page_size_limit(1 << 30);
        write_hours(&path, &name, properties.build());
        let length = fs::metadata(&path).expect("a file").len();
        assert!(length < 100_000, "{length} bytes on disk");
        in_own_process("a_page_that_claims_much_is_refused_before_it_is_inflated", &path);
    }
}

#[test]
fn pages_of_either_version_within_the_bounds_are_read_and_delta_encoded_texts_are_not() {
    use parquet::file::properties::WriterVersion::{PARQUET_1_0, PARQUET_2_0};
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("hours.parquet");
    for version in [PARQUET_1_0, PARQUET_2_0] {
        write_hours(&path, b"ST1", properties().set_writer_version(version).build());
        assert_eq!(read_hours(&path).expect("small pages").models, ["ST1"]);
        let plain = properties().set_writer_version(version).set_dictionary_enabled(false);
        write_hours(&path, b"ST1", plain.clone().set_encoding(Encoding::PLAIN).build());
        assert_eq!(read_hours(&path).expect("small pages").models, ["ST1"]);
        for encoding in [Encoding::DELTA_BYTE_ARRAY, Encoding::DELTA_LENGTH_BYTE_ARRAY] {
            let column = "model".into();
            let delta = plain.clone().set_encoding(Encoding::PLAIN);
            write_hours(&path, b"ST1", delta.set_column_encoding(column, encoding).build());
            let error = read_hours(&path).expect_err("a delta encoding");
            assert!(error.contains("delta encoding, which is not read"), "{error}");
        }
    }
}

#[test]
fn names_of_hosts_and_drives_have_a_bound() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("cluster.parquet");
    let write = |host: &str, drive: &str| {
        let schema = "message m { required binary host (utf8); required int64 ts; required binary disk_id (utf8); \
                      required float throughput; required float latency; }";
        let schema = Arc::new(parse_message_type(schema).expect("a schema"));
        let file = File::create(&path).expect("a file");
        let properties = Arc::new(properties().build());
        let mut writer = SerializedFileWriter::new(file, schema, properties).expect("room");
        let mut group = writer.next_row_group().expect("room");
        column::<ByteArrayType>(&mut group, ByteArray::from(host));
        column::<Int64Type>(&mut group, 600);
        column::<ByteArrayType>(&mut group, ByteArray::from(drive));
        column::<FloatType>(&mut group, 1.0);
        column::<FloatType>(&mut group, 1.0);
        group.close().expect("room");
        writer.close().expect("room");
        read_recordings(&path).map(|groups| groups.len()).map_err(|error| error.to_string())
    };
    let (most, longer) = ("n".repeat(256), "n".repeat(257));
    assert_eq!(write(&most, &most), Ok(1));
    for (host, drive) in [(&longer, &most), (&most, &longer)] {
        let error = write(host, drive).expect_err("a long name");
        assert!(error.contains("row 1: a name is longer than 256 bytes"), "{error}");
    }
}

#[test]
fn an_answer_of_prometheus_takes_the_memory_of_its_windows_and_not_of_its_text() {
    if let Some(path) = std::env::var_os(READ) {
        let path = Path::new(&path);
        let members = Members::read(&path.with_file_name("members.csv")).expect("good lines");
        let imported = prometheus::read(path, &members, 1.0).expect("an answer");
        assert_eq!((imported.groups.len(), imported.strangers), (1, 1));
        assert!(peak() < MEMORY_MAX, "{} bytes", peak());
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("answer.json");
    fs::write(folder.path().join("members.csv"), "group,drive,device\nmd0,one,sda\n")
        .expect("room");
    let mut file = std::io::BufWriter::new(File::create(&path).expect("a file"));
    write!(file, r#"{{"status":"success","data":{{"resultType":"matrix","result":["#)
        .expect("room");
    for device in ["sda", "sdb"] {
        write!(file, r#"{{"metric":{{"device":"{device}"}},"values":["#).expect("room");
        for _ in 0..4 << 20 {
            file.write_all(br#"[0,""],"#).expect("room");
        }
        write!(file, r#"[600,"1"]]}}{}"#, if device == "sda" { "," } else { "" }).expect("room");
    }
    write!(file, "]}}}}").expect("room");
    file.flush().expect("room");
    in_own_process(
        "an_answer_of_prometheus_takes_the_memory_of_its_windows_and_not_of_its_text",
        &path,
    );
    let members = Members::read(&folder.path().join("members.csv")).expect("good lines");
    let long = format!(r#"{{"status":"{}"}}"#, "s".repeat(1 << 20));
    fs::write(&path, long).expect("room");
    let error = prometheus::read(&path, &members, 1.0).expect_err("a long string").to_string();
    assert!(error.contains("a string is longer than 65536 bytes"), "{error}");
}
