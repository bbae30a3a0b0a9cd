//! `serve --metrics`: what a collector gets, read by the parsers of Debian's python3-prometheus-client.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};

use levelhead_block::Durability;
use levelhead_testkit::{PYTHON, python_has};
use levelhead_units::Bytes;
use serde_json::{Value, json};

use crate::support::{ARRAY, Serving, Shelf, connect, levelhead, random, refs, wait_until};
use crate::{DRIVE, without};

/// Reads metrics, writes them as JSON: for each family its type, and its samples with name, labels and value.
const PARSER: &str = r#"
import json, sys
from importlib import import_module
parser = import_module(sys.argv[1])
families = {}
for family in parser.text_string_to_metric_families(sys.stdin.read()):
    assert family.name not in families, family.name
    samples = [[s.name, s.labels, s.value] for s in family.samples]
    families[family.name] = {"type": family.type, "help": family.documentation, "samples": samples}
print(json.dumps(families))
"#;

const NEW: &str = "prometheus_client.openmetrics.parser";
const OLD: &str = "prometheus_client.parser";

fn parsed(parser: &str, text: &str) -> Value {
    let mut python = Command::new(PYTHON);
    python.args(["-c", PARSER, parser]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = python.spawn().unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{parser} refuses it: {text}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The head and the body of what is answered.
fn ask(serving: &Serving, request: &str) -> (String, String) {
    let address = serving.text("metrics").strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(address.strip_suffix("/metrics").unwrap()).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{text}"));
    (head.to_owned(), body.to_owned())
}

fn scrape(serving: &Serving) -> String {
    let (head, body) = ask(
        serving,
        "GET /metrics HTTP/1.1\r\nHost: localhost\r\nAccept: application/openmetrics-text\r\n\r\n",
    );
    assert!(head.starts_with("HTTP/1.1 200 OK"), "{head}");
    body
}

/// The value of the sample with this name and all these labels.
#[track_caller]
fn value(text: &str, name: &str, labels: &[&str]) -> f64 {
    shown(text, name, labels).parse().unwrap()
}

/// The same as it is written.
#[track_caller]
fn shown<'a>(text: &'a str, name: &str, labels: &[&str]) -> &'a str {
    let is_it = |line: &&str| {
        line.starts_with(&format!("{name}{{")) && labels.iter().all(|label| line.contains(label))
    };
    let line = text.lines().find(is_it).unwrap_or_else(|| panic!("no {name} {labels:?} in {text}"));
    line.rsplit_once(' ').unwrap().1
}

fn serve(shelf: &Shelf, members: &[String], more: &[&str]) -> Serving {
    let socket = shelf.path("nbd.sock");
    let options = ["--nbd", &socket, "--metrics", "0"];
    shelf.serve_with(members, &[&options[..], more].concat())
}

#[test]
fn parsers_of_others_read_every_metric_and_find_what_status_says() {
    if !python_has(NEW, "python3-prometheus-client") {
        return;
    }
    let shelf = Shelf::new();
    let mut members = without(&shelf.array(DRIVE), 5);
    members[2] = format!("emu:{}?retry-rate=20%&rotations=1", members[2]);
    let serving = serve(&shelf, &members, &["--policy", "normal", "--degraded"]);
    let client = connect(&shelf.path("nbd.sock"));
    client.write_at(Bytes::new(0), &random(1 << 20, 1), Durability::Durable).unwrap();
    // Not what was written: that may be in memory still.
    client.read_at(Bytes::new(4 << 20), &mut vec![0; 4 << 20]).unwrap();
    let status = serving.status();
    let new = scrape(&serving);
    let old = ask(&serving, "GET /metrics HTTP/1.0\r\nAccept: text/plain\r\n\r\n").1;
    let (by_new, by_old) = (parsed(NEW, &new), parsed(OLD, &old));
    let families = by_new.as_object().unwrap();
    // Every line of the page for users is there, under the name without what the format adds.
    let page = include_str!("../../../../docs/metrics.md");
    let rows: Vec<Vec<&str>> = page
        .lines()
        .filter(|line| line.starts_with("| `"))
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .collect();
    assert_eq!(rows.len(), families.len());
    for row in rows {
        let name = row[0].trim_matches('`');
        let family = name.trim_end_matches("_total").trim_end_matches("_info");
        assert_eq!(families[family]["type"], row[1], "{name}");
        assert_eq!(families[family]["help"], row[2], "{name}");
        let further = row.get(3).copied().unwrap_or_default();
        let samples = families[family]["samples"].as_array().unwrap();
        assert!(!samples.is_empty(), "{name} has nothing to show");
        for sample in samples {
            let labels: Vec<&String> = sample[1].as_object().unwrap().keys().collect();
            for label in labels {
                let usual = ["array", "drive", "device"].contains(&label.as_str());
                assert!(usual || further.contains(&format!("`{label}`")), "{name} has {label}");
            }
        }
    }
    assert!(by_old.as_object().unwrap().len() >= families.len(), "the older format has as many");
    let uuid = format!("array=\"{}\"", status["uuid"].as_str().unwrap());
    for name in ["subrequests", "decoded", "requests"] {
        let shown = value(&new, &format!("levelhead_array_{name}_total"), &[&uuid]);
        assert_eq!(json!(shown as u64), status[name], "{name}");
    }
    let info = format!("layout=\"{ARRAY}\"");
    assert_eq!(shown(&new, "levelhead_array_info", &[&uuid, &info]), "1");
    let state = |is: &str| shown(&new, "levelhead_array_state", &[&format!("_state=\"{is}\"")]);
    assert_eq!(["whole", "degraded", "failed"].map(state), ["0", "1", "0"]);
    let drive = |name: &str, drive: u8| {
        let label = format!("drive=\"{drive}\"");
        value(&new, &format!("levelhead_array_drive_{name}"), &[&uuid, &label])
    };
    let reported = status["drives"][2]["commands"].as_u64().unwrap();
    assert!(drive("reported_commands_total", 2) >= reported as f64);
    assert!(drive("written_bytes_total", 0) > 100_000.0);
    assert!(drive("writes_total", 5) < 1.0, "it is missing");
    let device = format!("device=\"{}\"", members[0]);
    assert_eq!(shown(&new, "levelhead_array_drive_info", &[&device, "drive=\"0\""]), "1");
    assert_eq!(shown(&new, "levelhead_array_nbd_connections", &[&uuid]), "1");
    assert!(value(&new, "levelhead_array_nbd_requests_total", &[&uuid]) >= 2.0);
    let reads = ["operation=\"read\"", "le=\"+Inf\""];
    assert!(value(&new, "levelhead_array_request_duration_seconds_bucket", &reads) >= 1.0);
    drop(client);
    serving.stop();
}

#[test]
fn what_is_left_of_a_rebuild_and_of_a_copy_is_told_while_there_is_one() {
    let shelf = Shelf::new();
    let members = shelf.array(DRIVE);
    let serving = serve(&shelf, &members, &[]);
    let left =
        |name: &str| value(&scrape(&serving), &format!("levelhead_array_{name}_left_ratio"), &[]);
    let is = |name: &str, share: f64| (left(name) - share).abs() < 1e-9;
    assert!(is("rebuild", 0.0) && is("copy", 0.0));
    let new = ["new.img", "copy.img"].map(|name| {
        let path = shelf.path(name);
        std::fs::File::create(&path).unwrap().set_len(DRIVE).unwrap();
        path
    });
    levelhead(&["array", "rebuild", &members[0], "--pause"]).good();
    for (drive, new, name) in [("1", &new[0], "rebuild"), ("2", &new[1], "copy")] {
        if name == "rebuild" {
            levelhead(&["array", "fail", &members[0], drive]).good();
        }
        levelhead(&["array", "replace", &members[0], drive, new]).good();
        wait_until("all of it is left", || is(name, 1.0));
        levelhead(&["array", "rebuild", &members[0]]).good();
        wait_until("it is over", || is(name, 0.0) && serving.status()["state"] == "whole");
        levelhead(&["array", "rebuild", &members[0], "--pause"]).good();
    }
    serving.stop();
}

#[test]
fn drive_that_hangs_holds_up_no_scrape() {
    let shelf = Shelf::new();
    let mut members = shelf.array(DRIVE);
    members[3] = format!("emu:{}?slowdown=1000", members[3]);
    let serving = serve(&shelf, &members, &["--lost-after", "2s"]);
    let client = connect(&shelf.path("nbd.sock"));
    let writer = std::thread::spawn(move || {
        client.write_at(Bytes::new(0), &[7; 200_000], Durability::Durable).unwrap();
    });
    let of_drive = |name: &str| {
        let name = format!("levelhead_array_drive_{name}");
        value(&scrape(&serving), &name, &["drive=\"3\""])
    };
    wait_until("the write is inside the drive", || of_drive("inflight_commands") > 0.0);
    let uuid = format!("array=\"{}\"", serving.status()["uuid"].as_str().unwrap());
    assert_eq!(shown(&scrape(&serving), "levelhead_array_up", &[&uuid]), "1");
    writer.join().unwrap();
    wait_until("the drive is lost", || {
        let failed = ["drive=\"3\"", "levelhead_array_drive_state=\"failed\""];
        shown(&scrape(&serving), "levelhead_array_drive_state", &failed) == "1"
    });
    assert_eq!(shown(&scrape(&serving), "levelhead_array_events_total", &["event=\"lost\""]), "1");
    serving.stop();
}

#[test]
fn nothing_but_metrics_is_to_be_had_and_an_address_in_use_is_refused() {
    let shelf = Shelf::new();
    let drives = shelf.array(DRIVE);
    let serving = serve(&shelf, &drives, &[]);
    for (request, status) in [
        ("GET /other HTTP/1.0\r\n\r\n", "404"),
        ("POST /metrics HTTP/1.0\r\nContent-Length: 3\r\n\r\nabc", "405"),
        ("nonsense\r\n\r\n", "400"),
    ] {
        let (head, _) = ask(&serving, request);
        assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{head}");
    }
    let other = Shelf::new();
    let others = other.array(DRIVE);
    let address = serving.text("metrics").strip_prefix("http://").unwrap();
    let address = address.strip_suffix("/metrics").unwrap();
    let socket = other.path("nbd.sock");
    let twice = ["array", "serve", "--nbd", &socket, "--metrics", address];
    let refused = levelhead(&[&twice[..], &refs(&others)].concat());
    let sentence = format!("cannot listen for metrics at http://{address}/metrics: Address");
    assert!(refused.refusal().starts_with(&sentence), "{refused:?}");
    let odd = ["array", "serve", "--nbd", &socket, "--metrics", "here"];
    let refused = levelhead(&[&odd[..], &refs(&others)].concat());
    assert!(refused.refusal().contains("'here' is not an address: expected PORT"), "{refused:?}");
    serving.stop();
}
