//! Arrays and emulated drives against NBD clients that others wrote: libnbd (`nbdinfo`, `nbdcopy`),
//! QEMU (`qemu-img`) and fio. A tool that is not installed is skipped, loudly; where the environment
//! variable `CI` is set, that is a failure.

use std::fs;
use std::process::{Child, Command, Stdio};

use rustix::process::Signal;
use serde_json::Value;

use crate::support::{self, Serving, Shelf, assert_same, end, is_there, levelhead, run};

const DRIVE: u64 = 64 << 20;

/// What a tool printed, if it was content.
#[track_caller]
fn tool(program: &str, args: &[&str]) -> String {
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::null());
    run(command).good()
}

/// A file as big as the export: random bytes with runs of zeroes.
fn image(shelf: &Shelf, size: u64, seed: u64) -> String {
    let path = shelf.path("image");
    fs::write(&path, levelhead_testkit::image(seed, size as usize)).unwrap();
    path
}

/// What `nbdcopy` gets out of an export.
#[track_caller]
fn copy_out(shelf: &Shelf, uri: &str) -> Vec<u8> {
    let path = shelf.path("copy");
    tool("nbdcopy", &[uri, &path]);
    fs::read(path).unwrap()
}

#[track_caller]
fn check_info(serving: &Serving, description: &str) {
    let size = serving.size();
    assert_eq!(tool("nbdinfo", &["--size", serving.uri()]), format!("{size}\n"));
    let info = tool("nbdinfo", &[serving.uri()]);
    for line in [
        "protocol: newstyle-fixed without TLS, using structured packets",
        &format!("description: levelhead {description}\n"),
        &format!("export-size: {size} "),
        "is_read_only: false",
        "can_flush: true",
        "can_fua: true",
        "can_multi_conn: true",
        "block_size_minimum: 1\n",
        "block_size_preferred: 4096\n",
        "block_size_maximum: 33554432\n",
    ] {
        assert!(info.contains(line), "no '{line}' in\n{info}");
    }
}

#[test]
fn nbdinfo_tells_an_arrays_size_and_block_sizes_on_a_unix_socket_and_on_tcp() {
    if !is_there("nbdinfo") {
        return;
    }
    let shelf = Shelf::new();
    let drives = shelf.array(DRIVE);
    // 1 MiB is reserved at both ends of every drive, and a 64th of it for the journal.
    let size = 5 * (DRIVE - (2 << 20) - DRIVE / 64);
    for (endpoint, scheme) in
        [(shelf.path("a b.sock").as_str(), "nbd+unix:///disk?socket=/"), ("tcp:0", "nbd://127.")]
    {
        let options = ["--nbd", endpoint, "--export", "disk"];
        let serving = shelf.serve_with(&drives, &options);
        assert!(serving.uri().starts_with(scheme), "{}", serving.uri());
        assert_eq!(serving.size(), size);
        check_info(&serving, support::ARRAY);
        let list = tool("nbdinfo", &["--list", serving.uri()]);
        assert!(list.contains("export=\"disk\""), "{list}");
        serving.stop();
    }
}

#[test]
fn nbdcopy_gets_out_of_an_array_what_it_put_in() {
    if !is_there("nbdcopy") {
        return;
    }
    let shelf = Shelf::new();
    let drives = shelf.array(DRIVE);
    let serving = shelf.serve(&drives);
    let image = image(&shelf, serving.size(), 1);
    tool("nbdcopy", &["--flush", &image, serving.uri()]);
    let bytes = fs::read(&image).unwrap();
    assert_same(&copy_out(&shelf, serving.uri()), &bytes);
    serving.stop();
    // Again over TCP, and by way of what is on the drives.
    let serving = shelf.serve_with(&drives, &["--nbd", "tcp:127.0.0.1:0"]);
    assert_same(&copy_out(&shelf, serving.uri()), &bytes);
    // Over what was there before, its zeroes sent as zeroes.
    tool("nbdcopy", &["--allocated", "--connections=1", &image, serving.uri()]);
    assert_same(&copy_out(&shelf, serving.uri()), &bytes);
    serving.stop();
}

#[test]
fn qemu_img_converts_onto_an_array_and_finds_both_sides_equal() {
    if !is_there("qemu-img") {
        return;
    }
    let shelf = Shelf::new();
    let serving = shelf.serve(&shelf.array(DRIVE));
    let (image, uri) = (image(&shelf, serving.size(), 2), serving.uri());
    tool("qemu-img", &["convert", "-n", "-f", "raw", "-O", "raw", "-W", &image, uri]);
    tool("qemu-img", &["compare", "-f", "raw", "-F", "raw", &image, uri]);
    // And out of it again, with a drive less.
    levelhead(&["array", "fail", serving.control(), "4"]).good();
    let copy = shelf.path("copy");
    tool("qemu-img", &["convert", "-f", "raw", "-O", "qcow2", uri, &copy]);
    tool("qemu-img", &["compare", "-f", "raw", "-F", "qcow2", &image, &copy]);
    serving.stop();
}

/// fio, which ends with an error at the first wrong byte and at the first failed request.
fn fio(uri: &str, size: &str, report: &str) -> Child {
    Command::new("fio")
        .args(["--name=verify", "--ioengine=nbd", "--rw=randrw", "--bs=4k", "--iodepth=16"])
        .args(["--verify=crc32c", "--verify_fatal=1", "--verify_state_save=0", "--randseed=7"])
        .args([format!("--uri={uri}"), format!("--size={size}")])
        .args(["--output-format=json".to_owned(), format!("--output={report}")])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// The bar of the project: a drive goes in the middle of a load, and no client notices.
#[test]
fn fio_verifies_every_byte_while_a_drive_is_lost() {
    if !(is_there("fio") && is_there("nbdcopy")) {
        return;
    }
    let shelf = Shelf::new();
    let drives = shelf.array(DRIVE);
    let serving = shelf.serve(&drives);
    let report = shelf.path("report.json");
    let load = fio(serving.uri(), "96m", &report);
    let requests = |status: &Value| status["requests"].as_u64().unwrap();
    let mut before = 0;
    support::wait_until("the load has begun", || {
        before = requests(&serving.status());
        before >= 5_000
    });
    levelhead(&["array", "fail", serving.control(), "2"]).good();
    let during = serving.status();
    assert_eq!(during["drives"][2]["state"], "lost");
    end(load, "fio").good();
    let report: Value = serde_json::from_slice(&fs::read(report).unwrap()).unwrap();
    // Every 4 KiB is read or written once, and what was written is read back.
    let job = &report["jobs"][0];
    let count = |way: &str| job[way]["total_ios"].as_u64().unwrap();
    assert_eq!(job["error"], 0);
    assert!(count("read") + count("write") >= 24_576, "{job}");
    let after = requests(&serving.status());
    assert!(after > requests(&during) + 5_000, "lost at {before} of {after}: too late a drive");
    let bytes = copy_out(&shelf, serving.uri());
    serving.stop();
    // The same bytes from those that are left, and never from the one that was lost.
    let sentence =
        levelhead(&[&["array", "serve", "--nbd", "tcp:0"][..], &support::refs(&drives)].concat());
    assert!(sentence.refusal().contains("d2.img holds old data"), "{sentence:?}");
    let rest: Vec<String> = drives.into_iter().filter(|name| !name.ends_with("d2.img")).collect();
    let serving = shelf.serve(&rest);
    assert_eq!(serving.status()["drives"][2]["state"], "missing");
    assert_same(&copy_out(&shelf, serving.uri()), &bytes);
    serving.stop();
}

#[test]
fn emulated_drive_is_a_disk_to_peers() {
    if !(is_there("nbdinfo") && is_there("nbdcopy")) {
        return;
    }
    let shelf = Shelf::new();
    let file = shelf.path("drive.img");
    let member = format!("emu:{file}?profile=nearline-2tb&size=16MiB&retry-rate=1%");
    let (socket, text) = (shelf.path("nbd.sock"), format!("emu:{file}"));
    let options = ["drive", "emulate", &member, "--nbd", &socket];
    let serving = Serving::start(&options);
    assert_eq!(serving.size(), 16 << 20);
    assert_eq!(serving.text("drive"), member);
    check_info(&serving, &text);
    let image = image(&shelf, serving.size(), 3);
    tool("nbdcopy", &["--flush", &image, serving.uri()]);
    let bytes = fs::read(&image).unwrap();
    assert_same(&copy_out(&shelf, serving.uri()), &bytes);
    serving.signal(Signal::TERM);
    serving.end().good();
    // A sector of the drive is a sector of its file.
    assert_same(&fs::read(&file).unwrap(), &bytes);
    assert_eq!(shelf.names(), ["copy", "drive.img", "image"]);
}
