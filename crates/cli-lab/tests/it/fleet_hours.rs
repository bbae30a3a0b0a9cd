//! `levelhead-lab fleet generate`, `import`, `analyze`, `map`, `reduce` and `sql` as they are typed.

use std::fs;

use serde_json::Value;

use crate::support::{Ended, Shelf, levelhead, shared};

/// Checks that what was asked was refused in a sentence with this part.
#[track_caller]
fn refused(ended: &Ended, part: &str) {
    let sentence = ended.refusal();
    assert!(sentence.contains(part), "{sentence}");
}

/// A made-up fleet of 40 groups for 400 hours, 190,000 drive hours.
fn fleet(shelf: &Shelf, kind: &str) -> String {
    fleet_as(shelf, kind, "parquet")
}

fn fleet_as(shelf: &Shelf, kind: &str, form: &str) -> String {
    let path = shelf.path(&format!("{kind}.{form}"));
    let sizes = ["--groups", "40", "--hours", "400", "--kind", kind, "-o", &path];
    levelhead(&[&["fleet", "generate"], &sizes[..]].concat()).good();
    path
}

#[test]
fn threads_change_nothing_and_the_numbers_are_beside_the_studys() {
    let shelf = Shelf::new();
    let path = fleet(&shelf, "disk");
    let one = levelhead(&["fleet", "analyze", &path, "--json", "--threads", "1"]).good();
    for threads in ["2", "3", "16"] {
        let many = levelhead(&["fleet", "analyze", &path, "--json", "--threads", threads]).good();
        assert_eq!(many, one, "{threads} threads");
    }
    let value: Value = serde_json::from_str(&one).unwrap();
    let counts = value["counts"].as_object().unwrap();
    let names: Vec<&String> = counts.keys().collect();
    assert_eq!(names, ["drive_hours", "raid_hours", "slow_drive_hours", "tail_hours"]);
    let rows = value["rows"].as_array().unwrap();
    let row = rows.iter().find(|row| row["metric"] == "RAID hours, T1 >= 2").unwrap();
    let share = counts["tail_hours"].as_f64().unwrap() / counts["raid_hours"].as_f64().unwrap();
    assert!((row["ours"].as_f64().unwrap() - 100.0 * share).abs() < 1e-9, "{row}");
    assert_eq!((&row["study"], &row["paper"]), (&"fleet.table1".into(), &1.54.into()));
    let ssd = levelhead(&["fleet", "analyze", &path, "--json", "--kind", "ssd"]).json();
    let rows = ssd["rows"].as_array().unwrap();
    let row = rows.iter().find(|row| row["metric"] == "RAID hours, T1 >= 2").unwrap();
    assert_eq!(row["paper"], 2.23);

    let slowdown = ["fleet", "analyze", &path, "--json", "--only", "slowdown"];
    let slowdown = levelhead(&slowdown).json();
    assert_eq!(slowdown["counts"], value["counts"]);
    let rows = |value: &Value| value["rows"].as_array().unwrap().len();
    assert!(rows(&slowdown) < rows(&value));
}

#[test]
fn parts_by_time_reduce_to_the_bytes_of_one_run() {
    let shelf = Shelf::new();
    let path = fleet(&shelf, "disk");
    let whole = levelhead(&["fleet", "analyze", &path, "--json"]).good();
    let (mut parts, mut summaries) = (Vec::new(), Vec::new());
    let text = fs::read_to_string(fleet_as(&shelf, "disk", "csv")).unwrap();
    let rows: Vec<&str> = text.lines().collect();
    for (at, hours) in [0..150, 150..151, 151..400].into_iter().enumerate() {
        let (part, summary) = (shelf.path(&format!("{at}.csv")), shelf.path(&format!("{at}.sum")));
        let inside = |row: &&&str| hours.contains(&row.split(',').next().unwrap().parse().unwrap());
        let lines: Vec<&str> = rows[1..].iter().filter(inside).copied().collect();
        fs::write(&part, format!("{}\n{}\n", rows[0], lines.join("\n"))).unwrap();
        levelhead(&["fleet", "map", &part, "-o", &summary]).good();
        parts.push(part);
        summaries.push(summary);
    }
    let [a, b, c] = &summaries[..] else { panic!("three parts") };
    let all = shelf.path("all.sum");
    assert_eq!(levelhead(&["fleet", "reduce", c, a, b, "-o", &all, "--json"]).good(), whole);
    assert_eq!(levelhead(&["fleet", "reduce", &all, "--json"]).good(), whole);
    let analyze = ["fleet", "analyze", &parts[2], &parts[0], &parts[1], "--json"];
    assert_eq!(levelhead(&analyze).good(), whole);

    let twice = levelhead(&["fleet", "reduce", a, a]);
    refused(&twice, "is named twice");
    refused(&levelhead(&["fleet", "reduce", &all, a]), "overlap in the hours of group 0");
    let slowdown = shelf.path("slowdown.sum");
    levelhead(&["fleet", "map", &parts[1], "--only", "slowdown", "-o", &slowdown]).good();
    refused(&levelhead(&["fleet", "reduce", a, &slowdown]), "slowdowns only");
}

#[test]
fn tables_in_any_order_are_sorted_and_names_get_numbers() {
    let shelf = Shelf::new();
    let text = shelf.path("named.csv");
    let header = "drive,raid,hour,latency_us,ios,bytes,model\n";
    let mut lines = String::new();
    for hour in (0..5).rev() {
        for drive in ["sdc", "sda", "sdb", "sdd"] {
            let latency = if drive == "sdc" { 300 } else { 100 };
            lines += &format!("{drive},tank,{hour},{latency},10,4096,A\n");
        }
    }
    fs::write(&text, format!("{header}{lines}")).unwrap();
    refused(&levelhead(&["fleet", "analyze", &text]), "raid 'tank'");
    let out = shelf.path("named.parquet");
    let value = levelhead(&["fleet", "import", &text, "-o", &out, "--json"]).json();
    assert_eq!(
        (&value["rows"], &value["groups"], &value["drives"]),
        (&20.into(), &1.into(), &4.into())
    );
    let names = fs::read_to_string(shelf.path("named.names.csv")).unwrap();
    assert!(names.contains("0,0,\"tank\",\"sdc\"\n"), "{names}");
    let value = levelhead(&["fleet", "analyze", &out, "--json"]).json();
    assert_eq!(value["counts"]["slow_drive_hours"], 5);
    let rows = value["rows"].as_array().unwrap();
    assert!(rows.iter().any(|row| row["metric"] == "A: S < 2" && row["ours"] == 75.0));
    let worst = value["worst_drives"].as_array().unwrap();
    assert_eq!((worst.len(), &worst[0]["drive_name"]), (1, &"sdc".into()));
    assert_eq!((&worst[0]["raid_name"], &worst[0]["slow_hours"]), (&"tank".into(), &5.into()));
    let shown = levelhead(&["fleet", "analyze", &out]).good();
    let row = shown.lines().find(|line| line.starts_with("sdc ")).unwrap();
    assert_eq!(row.split_whitespace().take(3).collect::<Vec<_>>(), ["sdc", "tank", "5"]);
    assert!(
        shown.starts_with("verdict: 1 of 4 drives was slow in at least one hour (25.00 %), "),
        "{shown}"
    );

    fs::write(&text, format!("{header}{lines}sdc,tank,0,1,1,1,A\n")).unwrap();
    let kept = fs::read(&out).unwrap();
    refused(&levelhead(&["fleet", "import", &text, "-o", &out]), "is there twice");
    assert_eq!(fs::read(&out).unwrap(), kept);
    refused(&levelhead(&["fleet", "import", &text, "-o", &shelf.path("x.txt")]), ".parquet");
}

#[test]
fn perseus_becomes_hours_and_samples_that_detect_reads() {
    let Some(host) = shared("data/fleet/perseus/cluster_C/host_53.csv.zst") else { return };
    let host = host.to_str().unwrap().to_owned();
    let shelf = Shelf::new();
    let (hours, samples) = (shelf.path("hours.parquet"), shelf.path("samples.csv"));
    let value = levelhead(&["fleet", "import", &host, "-o", &hours, "--json"]).json();
    assert_eq!((&value["groups"], &value["drives"]), (&1.into(), &12.into()));
    let value = levelhead(&["fleet", "analyze", &hours, "--json"]).json();
    // Three busy hours a day for some two weeks; the last sample of a day may be the first of the next hour.
    let raid_hours = value["counts"]["raid_hours"].as_u64().unwrap();
    assert!((39..=60).contains(&raid_hours), "{raid_hours}");
    levelhead(&["fleet", "import", &host, "-o", &samples]).good();
    let verdicts = |path: &str| {
        let value: Value =
            serde_json::from_str(&levelhead(&["fleet", "detect", path, "--json"]).out).unwrap();
        let drives = value["drives"].as_array().unwrap().clone();
        let verdict = |drive: &Value| (drive["drive"].clone(), drive["verdict"].clone());
        drives.iter().map(verdict).collect::<Vec<_>>()
    };
    assert_eq!(verdicts(&samples), verdicts(&host));
}

#[test]
fn made_up_samples_have_the_slow_drives_that_their_labels_name() {
    let shelf = Shelf::new();
    let (samples, labels) = (shelf.path("samples.csv"), shelf.path("labels.csv"));
    let generate = |more: &[&str]| {
        let size = ["--samples", "--groups", "4", "--days", "7", "--drives", "8..10"];
        let files = ["-o", &samples];
        levelhead(&[&["fleet", "generate"], &size[..], &files[..], more].concat())
    };
    let slow = ["--noise", "0.05", "--slow", "0.2", "--slow-ratio", "1.6"];
    generate(&[&slow[..], &["--slow-labels", &labels]].concat()).good();
    let named = fs::read_to_string(&labels).unwrap().lines().count() - 1;
    assert!(named > 0);
    let detect = ["fleet", "detect", &samples, "--labels", &labels, "--json"];
    let value: Value = serde_json::from_str(&levelhead(&detect).out).unwrap();
    assert_eq!(value["labels"]["found"], named);
    assert_eq!(value["labels"]["false"].as_array().unwrap().len(), 0);
    refused(&generate(&["--noise", "0.2..0.1"]), "deviation of the noise");
    refused(&generate(&["--missing", "2"]), "share of missing samples of 2");
    refused(&generate(&["--lasting", "x"]), "invalid value 'x'");
    refused(&generate(&["--hours", "3"]), "cannot be used with");
}

#[test]
fn answers_of_prometheus_become_samples() {
    let shelf = Shelf::new();
    let (answer, members) = (shelf.path("answer.json"), shelf.path("members.csv"));
    let series = ["sda", "sdb", "sdc", "sdx"].map(|device| {
        let latency = if device == "sdb" { "0.03" } else { "0.01" };
        format!(r#"{{"metric":{{"device":"{device}"}},"values":[[3600,"{latency}"],[3900,"{latency}"]]}}"#)
    });
    let series = series.join(",");
    let text =
        format!(r#"{{"status":"success","data":{{"resultType":"matrix","result":[{series}]}}}}"#);
    fs::write(&answer, text).unwrap();
    fs::write(&members, "group,drive,device\nmd0,A,sda\nmd0,B,sdb\nmd0,C,sdc\n").unwrap();
    let (hours, samples) = (shelf.path("hours.parquet"), shelf.path("samples.csv"));
    let import = |out: &str| {
        levelhead(&["fleet", "import", &answer, "--members", &members, "-o", out, "--json"]).json()
    };
    assert_eq!(import(&hours)["strangers"], 1);
    let value = levelhead(&["fleet", "analyze", &hours, "--json"]).json();
    assert_eq!(value["counts"]["slow_drive_hours"], 1);
    import(&samples);
    let lines = fs::read_to_string(&samples).unwrap();
    assert!(lines.contains("3900,md0,B,30000,1\n"), "{lines}");
    refused(
        &levelhead(&[
            "fleet",
            "import",
            "http://127.0.0.1:1",
            "--members",
            &members,
            "-o",
            &samples,
        ]),
        "needs --query",
    );
}

#[test]
fn pages_have_every_table_and_load_nothing() {
    let shelf = Shelf::new();
    let (path, folder) = (fleet(&shelf, "ssd"), shelf.path("report"));
    levelhead(&["fleet", "analyze", &path, "--kind", "ssd", "--report", &folder]).good();
    let page = fs::read_to_string(format!("{folder}/fleet.html")).unwrap();
    for part in ["table 1", "figure 2", "table 3", "figure 4", "figure 5", "figure 6", "figure 10"]
    {
        assert!(page.contains(&format!("<figcaption>As {part} of the study<")), "{part}");
    }
    let place = |text: &str| page.find(text).unwrap_or_else(|| panic!("{text}"));
    let [verdict, terms, worst, study] = [
        "% of the drive hours are slow; ",
        "The slowdown S of a drive",
        "<h2>Drives to look at first",
        "table 1",
    ]
    .map(place);
    assert!(verdict < terms && terms < worst && worst < study);
    assert!(page.matches("class=\"lh-fig\"").count() >= 6);
    assert!(page.contains("default-src 'none'") && !page.contains("src="));
}

#[test]
fn queries_are_listed_and_printed() {
    let list = levelhead(&["fleet", "sql", "--json"]).json();
    assert_eq!(list.as_array().unwrap().len(), 4);
    for query in list.as_array().unwrap() {
        let name = query["name"].as_str().unwrap();
        let text = levelhead(&["fleet", "sql", name]).good();
        assert!(text.contains("SELECT") && text.contains("FROM hours"), "{text}");
    }
    refused(&levelhead(&["fleet", "sql", "nothing"]), "expected one of counts, slowdowns");
}

#[test]
fn what_cannot_be_is_said_in_a_sentence() {
    let shelf = Shelf::new();
    let path = fleet(&shelf, "disk");
    let (cut, out) = (shelf.path("cut.parquet"), shelf.path("x.parquet"));
    let whole = fs::read(&path).unwrap();
    fs::write(&cut, &whole[..whole.len() / 2]).unwrap();
    refused(&levelhead(&["fleet", "analyze", &cut]), "cut.parquet");
    let summary = shelf.path("summary");
    refused(&levelhead(&["fleet", "map", &cut, "-o", &summary]), "cut.parquet");
    assert!(!fs::exists(&summary).unwrap());
    refused(
        &levelhead(&["fleet", "analyze", &path, "--threads", "0"]),
        "expected 1 to 1024 threads, got 0",
    );
    refused(&levelhead(&["fleet", "reduce", &path]), "not a fleet summary");
    refused(&levelhead(&["fleet", "analyze", &path, &path]), "is named twice");
    let apart = "is to be written, and is read";
    refused(&levelhead(&["fleet", "map", &path, "-o", &path]), apart);
    assert_eq!(fs::read(&path).unwrap(), whole);
    let events = ["--hours", "9", "-o", &out, "--events", &out];
    refused(&levelhead(&[&["fleet", "generate", "--groups", "3"], &events[..]].concat()), apart);
    let [a, b] = ["a.sum", "b.sum"].map(|name| shelf.path(name));
    for place in [&a, &b] {
        levelhead(&["fleet", "map", &path, "--only", "slowdown", "-o", place]).good();
    }
    refused(&levelhead(&["fleet", "reduce", &a, &b]), "is the same summary as");
    refused(&levelhead(&["fleet", "analyze", "/dev/null"]), "is not a regular file");
    refused(&levelhead(&["fleet", "import", "/dev/null", "-o", &cut]), "is not a regular file");
    let zero = ["fleet", "generate", "--groups", "0", "--hours", "1", "-o", &out];
    refused(&levelhead(&zero), "0 groups");
    refused(&levelhead(&["fleet", "analyze", &path, "--kind", "tape"]), "is not a kind of drive");
    let text = shelf.path("falling.csv");
    let header = "hour,raid,drive,latency_us,ios,bytes\n";
    fs::write(&text, format!("{header}2,1,1,1,1,1\n1,1,1,1,1,1\n")).unwrap();
    refused(&levelhead(&["fleet", "analyze", &text]), "fleet import");
}

#[test]
fn the_worst_drives_are_named_by_number_where_they_have_no_name() {
    let shelf = Shelf::new();
    let path = fleet(&shelf, "disk");
    let value = levelhead(&["fleet", "analyze", &path, "--json"]).json();
    let worst = value["worst_drives"].as_array().unwrap();
    assert!((1..=20).contains(&worst.len()), "{worst:?}");
    let hours: Vec<u64> = worst.iter().map(|one| one["slow_hours"].as_u64().unwrap()).collect();
    assert!(hours.is_sorted_by(|a, b| a >= b), "{hours:?}");
    let first = &worst[0];
    assert!(first["drive"].is_i64() && first["raid"].is_i64() && first["drive_name"].is_null());
    let text = levelhead(&["fleet", "analyze", &path]).good();
    let (_, table) = text.split_once("Drives to look at first\n").unwrap();
    let row = table.lines().nth(2).unwrap().split_whitespace().collect::<Vec<_>>();
    let numbers = [&first["drive"], &first["raid"], &first["slow_hours"]];
    assert_eq!(row[..3], numbers.map(ToString::to_string));
    let slowdown = ["fleet", "analyze", &path, "--only", "slowdown"];
    let text = levelhead(&slowdown).good();
    assert!(text.contains("% of the drive hours are slow.\n") && !text.contains("look at first"));
}

#[test]
fn names_that_contradict_each_other_or_have_another_form_are_refused() {
    let shelf = Shelf::new();
    let hours = |from: u32| {
        let row = |hour: u32, drive: u32| {
            format!("{hour},0,{drive},{},10,4096\n", 100 + 200 * (drive / 2))
        };
        let rows: String =
            (from..from + 2).flat_map(|hour| (0..3).map(move |drive| row(hour, drive))).collect();
        format!("hour,raid,drive,latency_us,ios,bytes\n{rows}")
    };
    let [early, late] = [("early", 0), ("late", 9)].map(|(name, from)| {
        let path = shelf.path(&format!("{name}.csv"));
        fs::write(&path, hours(from)).unwrap();
        path
    });
    let analyze = ["fleet", "analyze", &early, &late];
    let name = |of: &str, text: &str| {
        fs::write(
            shelf.path(&format!("{of}.names.csv")),
            format!("raid,drive,raid_name,drive_name\n{text}\n"),
        )
        .unwrap();
    };
    name("early", "0,2,\"tank\",\"sda\"");
    assert!(levelhead(&analyze).good().contains("\nsda "));
    name("late", "0,2,\"tank\",\"sdb\"");
    refused(&levelhead(&analyze), "another name");
    name("late", "sdb");
    refused(&levelhead(&analyze), "late.names.csv:2: expected raid,drive");
    // Somebody else's file.
    fs::write(shelf.path("late.names.csv"), "my,own,notes\nfoo,bar,baz\n").unwrap();
    assert!(levelhead(&analyze).good().contains("\nsda "));
}
