//! Files of samples: what they mean, what is refused and in which words, and that no content makes a reader panic.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use levelhead_fleet::detect::{Label, Recording};
use levelhead_fleet_io::samples::{HEADER, Labels, read_recordings};
use levelhead_stats::Streams;
use parquet::data_type::{ByteArray, ByteArrayType, FloatType, Int32Type, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

fn written(folder: &Path, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
    let path = folder.join(name);
    fs::write(&path, content).unwrap();
    path
}

fn refusal(path: &Path) -> String {
    let text = read_recordings(path).unwrap_err().to_string();
    text.replace(&path.parent().unwrap().display().to_string(), "..")
}

/// Two hosts, two drives, three minutes.
fn compact(path: &Path, schema: &str) {
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let file = File::create(path).unwrap();
    let properties = Arc::new(WriterProperties::builder().build());
    let mut writer = SerializedFileWriter::new(file, schema, properties).unwrap();
    for host in ["host_1", "host_2"] {
        let mut group = writer.next_row_group().unwrap();
        let rows = 6;
        let minutes: Vec<i64> = (0..rows).map(|row| 600 + 60 * (row / 2)).collect();
        let disks: Vec<ByteArray> = (0..rows)
            .map(|row| ByteArray::from(format!("disk{}", row % 2 + 1).into_bytes()))
            .collect();
        let hosts = vec![ByteArray::from(host); rows as usize];
        let latencies = [100.0_f32, 200.0, 0.0, 220.0, 130.0, 240.0];
        let loads = [10.0_f32; 6];
        let samples = [4, 4, 4, 4, 2, 4];
        let mut column = 0;
        while let Some(mut open) = group.next_column().unwrap() {
            match column {
                0 => drop(open.typed::<ByteArrayType>().write_batch(&hosts, None, None).unwrap()),
                1 => drop(open.typed::<Int64Type>().write_batch(&minutes, None, None).unwrap()),
                2 => drop(open.typed::<ByteArrayType>().write_batch(&disks, None, None).unwrap()),
                3 => drop(open.typed::<FloatType>().write_batch(&loads, None, None).unwrap()),
                4 => {
                    // Null in the first row.
                    let levels = [0, 1, 1, 1, 1, 1];
                    let values = &latencies[1..];
                    open.typed::<FloatType>().write_batch(values, Some(&levels), None).unwrap();
                }
                _ => drop(open.typed::<Int32Type>().write_batch(&samples, None, None).unwrap()),
            }
            open.close().unwrap();
            column += 1;
        }
        group.close().unwrap();
    }
    writer.close().unwrap();
}

const SCHEMA: &str = "message rows { required binary host (utf8); required int64 ts; required binary disk_id (utf8);
    required float throughput; optional float latency; required int32 samples (integer(8, true)); }";

#[test]
fn the_compact_form_is_read_with_its_nulls_and_zeroes_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cluster.parquet");
    compact(&path, SCHEMA);
    let recordings = read_recordings(&path).unwrap();
    assert_eq!(recordings.len(), 2);
    assert_eq!(recordings[1].group, "host_2");
    assert_eq!(recordings[1].drives, ["disk1", "disk2"]);
    assert_eq!(recordings[1].windows.len(), 1);
    let window = &recordings[1].windows[0];
    assert_eq!(window.at, 600);
    assert!((window.members[0].unwrap().latency_us - 130.0).abs() < 1e-9);
    assert!((window.members[1].unwrap().latency_us - 220.0).abs() < 1e-9);
}

#[test]
fn a_table_of_other_columns_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c.parquet");
    compact(&path, &SCHEMA.replace("disk_id", "drive"));
    assert_eq!(refusal(&path), "../c.parquet: missing column disk_id");
    compact(&path, &SCHEMA.replace("throughput", "latency_max").replace("ts;", "throughput;"));
    assert_eq!(refusal(&path), "../c.parquet: missing column ts");
    compact(&path, &SCHEMA.replace("throughput", "samp").replace("samples", "throughput"));
    assert_eq!(refusal(&path), "../c.parquet: a column is not of type f32");
}

/// Bytes exchanged and ends cut off: an answer or a refusal each time.
#[test]
fn no_content_of_a_parquet_file_makes_the_reader_panic() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c.parquet");
    compact(&path, SCHEMA);
    let bytes = fs::read(&path).unwrap();
    let mut rng = Streams::new(17).stream("parquet");
    for _ in 0..4000 {
        let mut other = bytes.clone();
        for _ in 0..=rng.below(3) {
            let place = rng.below(other.len() as u64) as usize;
            other[place] = rng.bits() as u8;
        }
        if rng.below(4) == 0 {
            other.truncate(rng.below(other.len() as u64) as usize);
        }
        let path = written(folder.path(), "other.parquet", &other);
        let _ = read_recordings(&path);
    }
}

const WATCHED: &str = "ts,group,drive,latency_us,load\n0,md0,sdb,100,5\n15,md0,sda,NA,5\n\n30,md0,sdb,300,7\n300,md1,sda,50,1\n";

#[test]
fn what_watch_records_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let recordings = read_recordings(&written(folder.path(), "w.csv", WATCHED)).unwrap();
    assert!(WATCHED.starts_with(HEADER));
    let names: Vec<&str> = recordings.iter().map(|recording| recording.group.as_str()).collect();
    assert_eq!(names, ["md0", "md1"]);
    assert_eq!(recordings[0].drives, ["sda", "sdb"]);
    let reading = recordings[0].windows[0].members[1].unwrap();
    assert!((reading.latency_us - 200.0).abs() < 1e-12);
    assert!((reading.load - 6.0).abs() < 1e-12);
    assert_eq!(recordings[0].windows[0].members[0], None);
    assert_eq!(recordings[1].windows[0].at, 300);
}

const PERSEUS: &str = "\"ts\",\"disk_id\",\"throughput\",\"latency\"\n300,\"disk1\",10,5\n0,\"disk1\",NA,7\n15,\"disk1\",10,8\n15,\"disk2\",1e3,9\n";

#[test]
fn original_files_of_a_folder_are_groups_packed_or_not() {
    let folder = tempfile::tempdir().unwrap();
    written(folder.path(), "host_10.csv", PERSEUS);
    let packed = zstd::encode_all(PERSEUS.as_bytes(), 3).unwrap();
    written(folder.path(), "host_2.csv.zst", packed);
    written(folder.path(), "README", "no samples");
    let recordings = read_recordings(folder.path()).unwrap();
    let names: Vec<&str> = recordings.iter().map(|recording| recording.group.as_str()).collect();
    assert_eq!(names, ["host_2", "host_10"]);
    let same = Recording { group: "host_2".to_owned(), ..recordings[1].clone() };
    assert_eq!(recordings[0], same);
    assert_eq!(same.windows.len(), 2);
    assert!((same.windows[0].members[0].unwrap().latency_us - 8.0).abs() < 1e-12);
    let days = folder.path().join("host_3");
    fs::create_dir(&days).unwrap();
    written(&days, "2022-07-18.csv", PERSEUS);
    written(&days, "2022-07-19.csv", PERSEUS.replace("300,", "86700,").replace("\n0,", "\n86400,"));
    let with_days = read_recordings(folder.path()).unwrap();
    assert_eq!(with_days.len(), 3);
    assert_eq!(with_days[1].group, "host_3");
    assert_eq!(
        with_days[1].windows.iter().map(|window| window.at).collect::<Vec<_>>(),
        [0, 300, 86_700]
    );
    written(folder.path(), "host_2.csv", PERSEUS);
    let text = read_recordings(folder.path()).unwrap_err().to_string();
    assert!(text.ends_with("host_2.csv.zst: group host_2 is in another file as well"), "{text}");
}

#[test]
fn lines_are_refused_with_their_number() {
    let folder = tempfile::tempdir().unwrap();
    let after = |line: &str| {
        let text = format!("{HEADER}\n0,g,a,1,1\n{line}\n");
        refusal(&written(folder.path(), "w.csv", text))
    };
    assert_eq!(after("1,g,a,1"), "../w.csv: line 3: 4 fields instead of 5");
    assert_eq!(after("x,g,a,1,1"), "../w.csv: line 3: ts 'x' is not a whole number of seconds");
    assert_eq!(
        after("1,g,a,fast,1"),
        "../w.csv: line 3: latency_us 'fast' is neither a number nor NA"
    );
    assert_eq!(after("-1,g,a,1,1"), "../w.csv: line 3: the time -1 is not from 0 to 68719476736");
    let long = "9".repeat(2000);
    assert_eq!(after(&long), "../w.csv: line 3: the line is longer than 1024 bytes");
    let empty = written(folder.path(), "e.csv", "");
    assert_eq!(refusal(&empty), "../e.csv: the file is empty");
    let other = written(folder.path(), "o.csv", "a,b\n");
    assert!(refusal(&other).starts_with("../o.csv: line 1: the first line is neither 'ts,disk_id"));
    let bytes = written(folder.path(), "b.csv", [0xFF, 0xFE, b'\n']);
    assert_eq!(refusal(&bytes), "../b.csv: line 1: the line is not UTF-8");
    let packed = written(folder.path(), "p.csv.zst", "no zstd");
    assert!(refusal(&packed).starts_with("../p.csv.zst: line 1: "), "{}", refusal(&packed));
    let absent = folder.path().join("absent.csv");
    assert!(refusal(&absent).starts_with("../absent.csv: "));
}

#[test]
fn no_text_makes_the_readers_panic() {
    let folder = tempfile::tempdir().unwrap();
    let mut rng = Streams::new(17).stream("lines");
    for text in [WATCHED, PERSEUS] {
        for _ in 0..2000 {
            let mut other = text.as_bytes().to_vec();
            for _ in 0..=rng.below(4) {
                let place = rng.below(other.len() as u64) as usize;
                other[place] = b"0123456789,.-\"\neNA\xFF"[rng.below(19) as usize];
            }
            let path = written(folder.path(), "x.csv", &other);
            let _ = read_recordings(&path);
            let _ = Labels::read(&path);
        }
    }
}

#[test]
fn labels_are_those_of_the_cluster() {
    let folder = tempfile::tempdir().unwrap();
    let text = "cluster,host,workload,disk_id\nA,host_1,x,disk2\nB,host_1,x,disk3\n";
    let path = written(folder.path(), "l.csv", text);
    let label = |drive: &str| Label { group: "host_1".to_owned(), drive: drive.to_owned() };
    let labels = Labels::read(&path).unwrap();
    assert_eq!(labels.of_cluster("B"), [label("disk3")]);
    assert_eq!(labels.of_cluster("C"), [label("disk2"), label("disk3")]);
    let refused = |text: &str| {
        let path = written(folder.path(), "l.csv", text);
        Labels::read(&path).unwrap_err().to_string()
    };
    let text = refused("group,drive\nhost_1,disk2\nx\n");
    assert!(text.ends_with("l.csv: line 3: 1 fields instead of 2"), "{text}");
    let text = refused("host\n");
    assert!(text.ends_with("l.csv: line 1: missing column disk_id and no drive"), "{text}");
}
