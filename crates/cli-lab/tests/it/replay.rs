//! `levelhead-lab replay`: the same numbers for the same seed, in every form of output, and options that
//! change what they should.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::support::{self, Ended, Shelf, levelhead, shared};

const TRACES: [&str; 5] = [
    "cloudphysics_w_sample.vscsi.zst",
    "msr_cut_10k.rw_20_80.105.trace.zst",
    "msr_cut_10k.rw_40_60.1370.trace.zst",
    "umass_financial1_first10k.ssdsim.ascii.zst",
    "websearch_small.mqsim.trace.zst",
];

const SHORT: &str = "count=2000,reads=80%";

fn replay(options: &[&str]) -> Ended {
    levelhead(&[&["replay"], options].concat())
}

/// A short made-up load under `options`, as JSON.
#[track_caller]
fn short(options: &[&str]) -> Value {
    replay(&[&["--synthetic", SHORT, "--json"], options].concat()).json()
}

#[track_caller]
fn mean(value: &Value, run: usize) -> f64 {
    value["runs"][run]["mean_ms"].as_f64().unwrap()
}

/// The rows of the table that begin with a policy's name.
fn row<'a>(table: &'a str, policy: &str) -> Vec<&'a str> {
    let line = table.lines().find(|line| line.split_whitespace().next() == Some(policy));
    line.unwrap_or_else(|| panic!("no {policy} in\n{table}")).split_whitespace().collect()
}

fn keys(value: &Value) -> Vec<&str> {
    let mut keys: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys
}

#[test]
fn a_closed_loop_has_a_rate_and_says_how_many_are_outstanding() {
    let open = short(&["--policy", "normal"]);
    assert_eq!(open["runs"][0].get("requests_per_second"), None, "requests come when they do");
    let rate = |outstanding: &str| {
        let result = short(&["--policy", "normal", "--closed-loop", outstanding]);
        result["runs"][0]["requests_per_second"].as_f64().unwrap()
    };
    assert!(rate("32") > 2.0 * rate("1"), "a drive that may choose is faster");
    let text = replay(&["--synthetic", SHORT, "--policy", "normal", "--closed-loop", "32"]);
    assert!(text.out.contains("closed loop: 32 requests outstanding"), "{}", text.out);
}

#[test]
fn a_closed_loop_of_none_or_too_many_is_refused() {
    for (outstanding, limit) in
        [("0", "from 1 to 4096"), ("4097", "from 1 to 4096"), ("x", "from 1 to 4096")]
    {
        let ended = replay(&["--synthetic", SHORT, "--closed-loop", outstanding]);
        assert_eq!(ended.code, Some(2), "{}", ended.err);
        assert!(ended.err.contains("--closed-loop") && ended.err.contains(limit), "{}", ended.err);
    }
}

#[test]
fn every_real_trace_prints_its_table() {
    for (name, requests) in TRACES.iter().zip(["113872", "10000", "10000", "10000", "24783"]) {
        let Some(path) = shared(&format!("traces/{name}")) else { return };
        let path = path.to_str().unwrap();
        let text = replay(&[path]).good();
        assert!(text.starts_with("seed: 7\n"), "{text}");
        assert!(text.contains(&format!("\nload: {path}\narray: {}\n", support::ARRAY)), "{text}");
        for policy in ["normal", "assisted", "pro-active"] {
            let row = row(&text, policy);
            assert_eq!(row.len(), 10, "{text}");
            assert_eq!(row[1], requests, "{text}");
            // All five latencies, in their order.
            let latencies: Vec<f64> = row[2..7].iter().map(|text| text.parse().unwrap()).collect();
            assert!(latencies[1..].is_sorted(), "{text}");
            assert!(latencies[0] > 0.0, "{text}");
        }
        assert!(text.contains("\nreads alone:\n"), "{text}");
        assert!(!text.contains("overloaded"), "{text}");
    }
}

#[test]
fn same_seed_gives_the_same_bytes_in_every_form() {
    let Some(trace) = shared("traces/msr_cut_10k.rw_40_60.1370.trace.zst") else { return };
    let shelf = Shelf::new();
    let (csv, page) = (shelf.path("lines.csv"), shelf.path("page.html"));
    let options =
        ["--retry-rate", "2%", "--host-order", "paper32", "--csv", &csv, "--report", &page];
    let forms = |form: &[&str]| {
        let out = replay(&[&[trace.to_str().unwrap()], &options[..], form].concat()).good();
        [out.into_bytes(), fs::read(&csv).unwrap(), fs::read(&page).unwrap()]
    };
    let (text, json) = (forms(&[]), forms(&["--json"]));
    assert!(text == forms(&[]), "another text, list or page for the same seed");
    assert!(json == forms(&["--json"]), "another value for the same seed");
    assert!(text[1..] == json[1..], "the form of the result has changed the files");
    assert!(text[0] != forms(&["--seed", "8"])[0], "the seed makes no difference");
    assert_eq!(shelf.names(), ["lines.csv", "page.html"]);
}

#[test]
fn json_has_these_keys_and_nothing_else_is_printed() {
    let value = short(&["--policy", "pro-active,normal", "--seed", "11"]);
    assert_eq!(keys(&value), ["array", "runs", "seed", "trace"]);
    assert_eq!(value["seed"], 11);
    assert_eq!(value["trace"], "size=40KiB,interval=8ms,count=2000,reads=80%");
    assert_eq!(value["array"], support::ARRAY);
    let runs = value["runs"].as_array().unwrap();
    // In the order they were asked for.
    let policies: Vec<&Value> = runs.iter().map(|run| &run["policy"]).collect();
    assert_eq!(policies, [&json!("pro-active"), &json!("normal")]);
    for run in runs {
        let expected = [
            "max_ms",
            "mean_ms",
            "p50_ms",
            "p999_ms",
            "p99_ms",
            "policy",
            "redispatched",
            "removed_per_request",
            "requests",
            "subrequests_per_request",
        ];
        assert_eq!(keys(run), expected);
        assert_eq!(run["requests"], 2000);
        assert!(run["mean_ms"].as_f64().unwrap() > 0.0);
    }
}

#[test]
fn overload_is_said_in_every_form() {
    let shelf = Shelf::new();
    let page = shelf.path("page.html");
    let load = "interval=100us,count=10000";
    let base = ["--synthetic", load, "--array", "raid0:2", "--slow", "0=20", "--policy", "normal"];
    let value = replay(&[&base[..], &["--json"]].concat()).json();
    assert_eq!(value["runs"][0]["overloaded"], true);
    let text = replay(&[&base[..], &["--report", &page]].concat()).good();
    assert!(text.contains("normal (overloaded)"), "{text}");
    assert!(text.contains("the oldest had waited 60s"), "{text}");
    let html = fs::read_to_string(page).unwrap();
    assert!(html.contains("the oldest had waited 60s"));
    // The verdict stands with its conditions.
    let (verdict, rest) = html.split_once("</p>\n<p>Conditions: load ").unwrap();
    assert!(verdict.ends_with("normal does not keep up with this load."), "{verdict}");
    let conditions = rest.split_once("</p>").unwrap().0;
    for part in
        ["interval=100us", "; array raid0:2", "; faults ", "; slow drives 0 (20 times); seed 7."]
    {
        assert!(conditions.contains(part), "{part} in {conditions}");
    }
}

#[test]
fn report_is_one_page_with_its_figure_inside() {
    let shelf = Shelf::new();
    let page = shelf.path("page.html");
    short(&["--report", &page]);
    let html = fs::read_to_string(&page).unwrap();
    assert!(html.starts_with("<!doctype html>"), "{html}");
    for part in ["<svg", "</svg>", "pro-active", "Reads alone", "levelhead 0."] {
        assert!(html.contains(part), "no {part} in the page");
    }
    for outside in ["src=", "href=\"http", "@import", "url("] {
        assert!(!html.contains(outside), "the page asks for {outside}");
    }
    assert_eq!(shelf.names(), ["page.html"]);
}

#[test]
fn csv_has_a_line_for_each_request_of_each_policy() {
    let shelf = Shelf::new();
    let csv = shelf.path("lines.csv");
    let value = short(&["--csv", &csv, "--policy", "normal,assisted", "--retry-rate", "2%"]);
    let text = fs::read_to_string(&csv).unwrap();
    let mut lines = text.lines();
    let header = "policy,request,arrival_ns,kind,lba,sectors,latency_ns,subrequests,removed,\
                  redispatched,decoded,verdict";
    assert_eq!(lines.next(), Some(header));
    let lines: Vec<Vec<&str>> = lines.map(|line| line.split(',').collect()).collect();
    assert_eq!(lines.len(), 4000);
    for (run, policy) in ["normal", "assisted"].iter().enumerate() {
        let own: Vec<&Vec<&str>> = lines.iter().filter(|line| line[0] == *policy).collect();
        let latencies = own.iter().map(|line| line[6].parse::<u64>().unwrap());
        let mean_ms = latencies.sum::<u64>() as f64 / 2000.0 / 1e6;
        assert!((mean_ms - mean(&value, run)).abs() < 1e-3, "{policy}: {mean_ms}");
    }
}

#[test]
fn result_can_go_to_a_pipe_or_nowhere() {
    let out = replay(&["--synthetic", "count=10", "--csv", "/dev/stderr"]);
    assert_eq!(out.code, Some(0), "{out:?}");
    assert_eq!(out.err.lines().count(), 41, "{out:?}");
    replay(&["--synthetic", "count=10", "--csv", "/dev/null"]).good();
    assert!(!Path::new("/dev/null").is_file());
}

#[test]
fn window_and_host_order_make_a_difference_where_drives_are_busy() {
    let runs = [
        short(&["--window", "32"]),
        short(&["--window", "1"]),
        short(&["--window", "1", "--host-order", "fcfs"]),
        short(&["--host-order", "paper32"]),
    ];
    for (idx, run) in runs.iter().enumerate() {
        for other in &runs[..idx] {
            assert_ne!(run["runs"], other["runs"]);
        }
    }
    // First come, first served with one command in the drive is the worst of all orders.
    assert!(mean(&runs[2], 0) > mean(&runs[1], 0));
    assert!(mean(&runs[1], 0) > mean(&runs[0], 0));
    // With fewer commands inside the drives, more can still be withdrawn.
    let removed = |value: &Value| value["runs"][1]["removed_per_request"].as_f64().unwrap();
    assert!(removed(&runs[1]) > removed(&runs[0]));
}

#[test]
fn retries_cost_time_on_the_drives_that_fail_and_only_there() {
    let none = short(&[]);
    let one = short(&["--retry-rate", "2%", "--failing", "0"]);
    let all = short(&["--retry-rate", "2%"]);
    let longer = short(&["--retry-rate", "2%", "--rotations", "10"]);
    let means = [&none, &one, &all, &longer].map(|value| mean(value, 0));
    assert!(means.is_sorted_by(|left, right| left < right), "{means:?}");
    let redispatched = |value: &Value| value["runs"][1]["redispatched"].as_u64().unwrap();
    assert_eq!(redispatched(&none), 0);
    assert_eq!(redispatched(&short(&["--failing", "0"])), 0);
    // The paper's point: asking the whole group without retries does not pay for them.
    assert!(mean(&all, 1) < mean(&all, 0));
}

#[test]
fn faults_in_one_are_the_same_as_their_options_and_reach_every_kind() {
    let apart = short(&["--retry-rate", "2%", "--rotations", "uniform:1-5", "--adjacency", "2"]);
    let in_one = short(&["--faults", "retry-rate=2%,rotations=uniform:1-5,adjacency=2"]);
    assert_eq!(apart["runs"], in_one["runs"]);
    let none = short(&["--faults", "none"]);
    assert_eq!(none["runs"], short(&[])["runs"]);
    for kind in ["episodes=1s/3s/4", "periodic=5s/2s/4", "stalls=2s/200ms", "field=1s"] {
        let slow = short(&["--faults", kind]);
        assert!(mean(&slow, 0) > mean(&none, 0), "{kind}");
    }
}

#[test]
fn sectors_that_no_retry_mends_are_computed_or_said_to_be_lost() {
    let computed = short(&["--hard-rate", "0.1%"]);
    assert!(mean(&computed, 0) > mean(&short(&[]), 0));
    let args = ["--synthetic", SHORT, "--hard-rate", "1%", "--array", "raid0:6"];
    let text = replay(&args).good();
    assert!(text.contains("requests could not be served in full"), "{text}");
}

#[test]
fn slow_drive_slows_the_array_down_and_less_so_where_it_is_read_around() {
    let options = ["--slow", "3=10", "--synthetic", "count=2000,interval=40ms", "--json"];
    let slow = replay(&options).json();
    let plain = replay(&options[2..]).json();
    assert!(mean(&slow, 0) > 2.0 * mean(&plain, 0));
    assert!(mean(&slow, 2) < mean(&slow, 0));
}

#[test]
fn trace_is_replayed_as_fast_as_asked_and_placed_as_asked() {
    let Some(trace) = shared("traces/umass_financial1_first10k.ssdsim.ascii.zst") else { return };
    let run = |options: &[&str]| replay(&[&[trace.to_str().unwrap()], options].concat()).good();
    let (plain, twice) = (run(&[]), run(&["--rate", "2"]));
    assert!(plain.contains("rate: 1 times as recorded, 260s in all"), "{plain}");
    assert!(twice.contains("rate: 2 times as recorded, 130s in all"), "{twice}");
    let mean = |text: &str| row(text, "normal")[2].parse::<f64>().unwrap();
    assert!(mean(&twice) > mean(&plain));
    let scaled = run(&["--placement", "scale"]);
    assert!(mean(&scaled) > mean(&plain), "longer seeks take longer");
    let format = run(&["--format", "mqsim"]);
    assert_eq!(format, plain);
}

#[test]
fn made_up_load_is_what_was_asked_for() {
    let shelf = Shelf::new();
    let csv = shelf.path("lines.csv");
    let load = "sizes=8KiB/64KiB,interval=20ms,count=1000,reads=30%,align=64KiB";
    replay(&["--synthetic", load, "--policy", "normal", "--csv", &csv]).good();
    let text = fs::read_to_string(&csv).unwrap();
    let lines: Vec<Vec<&str>> =
        text.lines().skip(1).map(|line| line.split(',').collect()).collect();
    let count =
        |column: usize, value: &str| lines.iter().filter(|line| line[column] == value).count();
    assert_eq!(lines.len(), 1000);
    assert_eq!(count(5, "2") + count(5, "16"), 1000);
    assert!((400..600).contains(&count(5, "2")), "{}", count(5, "2"));
    assert!((250..350).contains(&count(3, "read")), "{}", count(3, "read"));
    assert!(lines.iter().all(|line| line[4].parse::<u64>().unwrap().is_multiple_of(16)));
    let last: f64 = lines[999][2].parse().unwrap();
    assert!((last / 1e9 - 20.0).abs() < 2.0, "{last}");
}

#[test]
fn drive_profile_can_be_a_file() {
    let shelf = Shelf::new();
    let (profile, text) =
        (shelf.path("own.toml"), include_str!("../../../drive/profiles/nearline-2tb.toml"));
    fs::write(&profile, text).unwrap();
    let own = short(&["--drive", &profile]);
    assert_eq!(own["runs"], short(&[])["runs"]);
}
