//! `levelhead watch` as it is typed, over made-up roots.

use std::fs;
use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use levelhead_fleet::detect::Kind;
use levelhead_fleet::watch::{Counters, Group, Member, Saved, Watch};
use levelhead_testkit::{PYTHON, python_has};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::support::root::{Root, drive};
use crate::support::watching::{Running, value, watch, watch_command};
use crate::support::{self, Shelf, is_there, wait_until};

/// What a drive with a limit of 7 s says.
const LIMITED: &str = "printf 'Device Model: X\\nWrite cache is: Enabled\\nSCT Error Recovery Control:\\n\
    Read:     70 (7.0 seconds)\\n Write:     70 (7.0 seconds)\\n'";

/// The same of one without.
const UNLIMITED: &str =
    "printf 'SCT Error Recovery Control:\\n Read: Disabled\\n Write: Disabled\\n'";

/// What hangs here does so for a thousand seconds. How long a scrape takes is measured by `cost_of_a_hundred_drives_at_15_s`, and
/// not on a machine that has other things to do.
const FAR_FROM_HANGING: Duration = Duration::from_secs(30);

fn unix_now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() as i64
}

/// What mostly waits for time to pass, a drive's 30 s above all, side by side: one after the other it would be minutes.
#[test]
fn what_takes_time_is_as_it_should_be() {
    let scenarios: [fn(); 8] = [
        look_without_a_state_says_what_it_is_worth_and_waits_for_what_may_hang,
        drive_that_hangs_is_said_to_and_returns,
        what_hangs_holds_up_neither_samples_nor_scrapes_nor_the_end,
        drives_are_audited_for_their_role_and_set_after_a_yes_alone,
        damaged_state_is_put_aside_and_said,
        groups_of_a_file_take_the_place_of_those_that_are_found,
        hundred_drives_take_a_read_each_a_sample_and_no_open_of_a_drive,
        hundred_drives_take_less_than_20_mb,
    ];
    thread::scope(|scope| {
        let running = scenarios.map(|scenario| scope.spawn(scenario));
        let failed = running.into_iter().filter_map(|one| one.join().err()).count();
        assert_eq!(failed, 0, "scenarios whose panics are above");
    });
}

/// A state as a watch of some hours leaves it, ended a minute ago: the last drive of `md0` takes `ratio` times what the others do.
fn state_of(root: &Root, drives: usize, hours: i64, ratio: f64) -> Saved {
    let member = |at: usize| Member {
        key: format!("naa.5000c500{at:08x}"),
        device: drive(at),
        model: "ST20000NM007D-3D".to_owned(),
    };
    let members: Vec<_> = (0..drives).map(member).collect();
    let keys: Vec<_> = members.iter().map(|it| it.key.clone()).collect();
    let mut watch = Watch::new(Box::new(|count| Kind::Level.detector(count)), Saved::default());
    watch.handle_groups(&[Group {
        id: "md0".into(),
        name: "md0".into(),
        members,
        is_rebuilding: false,
    }]);
    let mut counters = vec![Counters::default(); drives];
    let end = unix_now() - 60;
    for now in ((end - hours * 3600)..end).step_by(60) {
        for (at, counters) in counters.iter_mut().enumerate() {
            let millis = 10_000.0 + ((now / 60 * 7 + at as i64 * 13) % 11) as f64 * 100.0;
            let millis = if at + 1 == drives { millis * ratio } else { millis };
            counters.ended += 1000;
            counters.millis += millis as u64;
            counters.sectors += 8000;
        }
        let sample = keys.iter().cloned().zip(counters.iter().copied()).collect();
        watch.handle_sample(now, &sample);
    }
    let saved = watch.save();
    fs::create_dir_all(root.path().join("var/lib/levelhead")).unwrap();
    fs::write(root.path().join("var/lib/levelhead/watch.state"), saved.encode()).unwrap();
    saved
}

#[test]
fn look_by_the_state_names_the_slow_drive_and_ends_with_1() {
    let root = Root::new(6);
    root.program("smartctl", LIMITED);
    state_of(&root, 6, 8, 1.5);
    let ended = watch(&root, &["--once", "--json"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert_eq!(ended.err, "levelhead: 1 of 6 drives is slow or hangs\n");
    let value: Value = serde_json::from_str(&ended.out).unwrap();
    let drives = value["drives"].as_array().unwrap();
    let states: Vec<_> = drives.iter().map(|it| it["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["fine", "fine", "fine", "fine", "fine", "slow"]);
    let slow = &drives[5];
    assert!((slow["ratio"].as_f64().unwrap() - 1.5).abs() < 0.05, "{slow}");
    assert_eq!(slow["peers"], 5);
    assert!(slow["busy_hours"].as_f64().unwrap() > 0.5, "{slow}");
    assert!((slow["load_ratio"].as_f64().unwrap() - 1.0).abs() < 0.01, "{slow}");
    assert!(value["worth"].as_str().unwrap().contains("windows of five minutes"), "{value}");
    let text = watch(&root, &["--once"]).out;
    let line = text.lines().find(|it| it.contains(" sdf ")).unwrap();
    assert!(line.contains(" is slow: 1.") && line.contains("times the median of its 5 peers"));
    assert!(line.contains("busy hours, at 1.00 times their load"), "{line}");
}

/// Every way of saying that something is wrong stays silent.
#[test]
fn healthy_host_yields_no_finding() {
    let root = Root::new(6);
    root.program("smartctl", LIMITED);
    state_of(&root, 6, 8, 1.0);
    let ended = watch(&root, &["--once", "--json"]);
    let value: Value = ended.json();
    let drives = value["drives"].as_array().unwrap();
    assert!(drives.iter().all(|it| it["state"] == "fine"), "{value}");
    let audits = value["audits"].as_array().unwrap();
    assert_eq!(audits.len(), 6);
    for audit in audits {
        assert_eq!(audit["findings"].as_array().unwrap().len(), 0, "{audit}");
        assert_eq!((&audit["role"], &audit["erc"]), (&"redundant".into(), &"7 s".into()));
        assert_eq!(
            (&audit["timeout_seconds"], &audit["write_cache"]),
            (&30.0.into(), &true.into())
        );
    }
    assert_eq!(value["notes"].as_array().unwrap().len(), 0, "{value}");
}

fn look_without_a_state_says_what_it_is_worth_and_waits_for_what_may_hang() {
    let mut root = Root::new(6);
    root.program("smartctl", LIMITED);
    root.inside(2, 3);
    let ended = watch(&root, &["--once", "--json"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let value: Value = serde_json::from_str(&ended.out).unwrap();
    assert!(value["worth"].as_str().unwrap().starts_with("judged by a sample of 32 s"), "{value}");
    let states = value["drives"].as_array().unwrap().iter();
    let states: Vec<_> = states.map(|it| it["state"].as_str().unwrap()).collect();
    let idle = "cannot-tell";
    assert_eq!(states, [idle, idle, "hung", idle, idle, idle]);
    // It has left nothing.
    assert!(!root.path().join("var").exists());
}

fn drive_that_hangs_is_said_to_and_returns() {
    let mut root = Root::new(6);
    root.program("smartctl", LIMITED);
    let running = Running::start(&root, &["--every", "1s"]);
    let group = running.next();
    assert_eq!((&group["kind"], &group["group"]), (&"group".into(), &"md0".into()));
    assert_eq!(group["devices"].as_array().unwrap().len(), 6);
    root.inside(4, 1);
    let hung = running.until(|it| it["state"] == "hung");
    assert_eq!((&hung["device"], &hung["before"]), (&"sde".into(), &"cannot-tell".into()));
    root.end(4, 10, 9);
    let back = running.until(|it| it["device"] == "sde");
    assert_eq!((&back["before"], &back["state"]), (&"hung".into(), &"cannot-tell".into()));
    running.stop();
    assert!(root.path().join("var/lib/levelhead/watch.state").exists());
}

/// A sysfs file, a drive's page and `zpool`, none of which ever returns.
fn what_hangs_holds_up_neither_samples_nor_scrapes_nor_the_end() {
    let mut root = Root::new(12);
    root.hang("sys/block/sdb/stat");
    root.hang("sys/block/md1/md/sync_action");
    root.write("proc/spl/kstat/zfs/tank/state", "ONLINE\n");
    root.program("zpool", "exec sleep 1000");
    root.program("smartctl", &format!("case \"$2\" in *sdc) exec sleep 1000;; esac\n{LIMITED}"));
    let running = Running::start(&root, &["--every", "1s", "--metrics", "0"]);
    let samples = |text: &str| value(text, "levelhead_watch_samples_total ").unwrap();
    let limit = |text: &str, at: usize| {
        value(text, &format!("levelhead_drive_erc_seconds{{device=\"{}\"", drive(at)))
    };
    wait_until("every drive but the one that hangs has said its limit", || {
        let (text, took) = running.scrape();
        assert!(took < FAR_FROM_HANGING, "{took:?}");
        (0..12).all(|at| (limit(&text, at) == Some(7.0)) == (at != 2))
    });
    let first = samples(&running.scrape().0);
    wait_until("ten samples were taken", || {
        (0..12).for_each(|at| root.end(at, 5, 8));
        let (text, took) = running.scrape();
        assert!(took < FAR_FROM_HANGING, "{took:?}");
        samples(&text) >= first + 10.0
    });
    // They are of the other drives, too: one that ends nothing from now on is said to hang.
    root.inside(3, 1);
    running.until(|it| it["state"] == "hung" && it["device"] == "sdd");
    let stopped = running.stop();
    assert!(stopped < FAR_FROM_HANGING, "{stopped:?}");
}

fn drives_are_audited_for_their_role_and_set_after_a_yes_alone() {
    let root = Root::new(5);
    // Four are in an array, which a spare is not.
    root.write("sys/block/md0/md/dev-sde1/slot", "none\n");
    root.write("sys/block/sdb/device/wwid", "");
    let answers = "case \"$1 $2\" in '-l scterc,70,70') echo 70 > $0.limit; exit;;\n\
        '-l scterc,0,0') exit;; esac\n\
        case \"$2\" in *sde) printf 'SCT Error Recovery Control:\\n Read: 70 (x)\\n Write: 70 (x)\\n'; exit;; esac\n\
        [ -e $0.limit ] && printf 'Serial Number: ZA1B2C3D\\nSCT Error Recovery Control:\\n Read: 70 (x)\\n Write: 70 (x)\\n' && exit\n";
    root.program("smartctl", &format!("{answers}{UNLIMITED}"));
    let value: Value = watch(&root, &["--once", "--json"]).json();
    let audits = value["audits"].as_array().unwrap();
    assert_eq!(audits.len(), 5);
    for audit in audits {
        let is_spare = audit["devices"][0] == "sde";
        assert_eq!(audit["role"], if is_spare { "alone" } else { "redundant" });
        let finding = audit["findings"][0]["text"].as_str().unwrap();
        let expected = if is_spare { "gives a sector up after 7 s" } else { "is not limited" };
        assert!(finding.contains(expected), "{audit}");
    }
    let fix = |answer: &str| {
        let mut command = watch_command(&root, &["--fix"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(answer.as_bytes()).unwrap();
        support::end(child, "--fix")
    };
    // At the prompt a signal ends it at once, and nothing is set.
    let mut command = watch_command(&root, &["--fix"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // Open until the end: what closes it answers no.
    let answers = child.stdin.take();
    let prompt = "set these? yes or no:\n";
    let mut asked = vec![0; prompt.len()];
    child.stderr.as_mut().unwrap().read_exact(&mut asked).unwrap();
    assert_eq!(str::from_utf8(&asked).unwrap(), prompt);
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let said = support::end(child, "--fix at its prompt");
    drop(answers);
    assert_eq!(said.code, Some(130), "{said:?}");
    assert_eq!(said.err, "levelhead: it was stopped before it had changed anything\n");
    assert!(!root.path().join("bin/smartctl.limit").exists());
    let said = fix("no\n");
    assert!(said.err.ends_with("nothing was set\n"), "{said:?}");
    let text = said.good();
    assert!(text.contains("4 of 5 drives have something to set"), "{text}");
    assert!(text.contains("left out: it is in no group that is known here"), "{text}");
    assert!(!root.path().join("bin/smartctl.limit").exists());
    let said = fix("yes\n").good();
    assert!(
        said.contains("sda: read back: error recovery 7 s, kernel's timer of sda 30 s"),
        "{said}"
    );
    assert!(said.contains("ATTRS{wwid}==\"naa.5000c50000000000\""), "{said}");
    assert!(said.contains("ENV{ID_SERIAL_SHORT}==\"ZA1B2C3D\""), "{said}");
    assert!(!said.contains("sde: read back"), "{said}");
    assert_eq!(root.read("sys/block/sde/device/timeout"), "30\n");
    // With no member to spare nothing is said of the others, and nothing set.
    root.write("sys/block/md0/md/degraded", "2\n");
    let value: Value = watch(&root, &["--once", "--json"]).json();
    for audit in value["audits"].as_array().unwrap().iter().filter(|it| it["devices"][0] != "sde") {
        assert_eq!(audit["role"], "unknown");
        assert_eq!(audit["findings"].as_array().unwrap().len(), 0, "{audit}");
    }
}

fn damaged_state_is_put_aside_and_said() {
    let root = Root::new(4);
    let shelf = Shelf::new();
    let state = shelf.path("watch.state");
    fs::write(&state, "LHWATCH\u{1}and something else").unwrap();
    let ended = watch(&root, &["--once", "--no-smart", "--state", &state]);
    assert!(ended.good().contains("the state was cut off or changed; it is left as it is"));
    let running = Running::start(&root, &["--no-smart", "--state", &state]);
    let note = running.next()["text"].as_str().unwrap().to_owned();
    assert!(note.contains("the state was cut off or changed; it is kept as "), "{note}");
    let second = watch(&root, &["--no-smart", "--state", &state]);
    assert!(second.refusal().contains("another watch keeps this state"), "{second:?}");
    running.stop();
    assert_eq!(shelf.names(), ["watch.state", "watch.state.damaged", "watch.state.lock"]);
    Saved::decode(&fs::read(&state).unwrap()).unwrap();
}

/// A state is taken up and handed on, whatever happens before the groups are known.
#[test]
fn state_survives_a_watch_that_ends_at_once() {
    let root = Root::new(6);
    let saved = state_of(&root, 6, 2, 1.0);
    Running::start(&root, &["--no-smart"]).stop();
    let kept = fs::read(root.path().join("var/lib/levelhead/watch.state")).unwrap();
    assert_eq!(Saved::decode(&kept), Ok(saved));
}

fn groups_of_a_file_take_the_place_of_those_that_are_found() {
    let root = Root::new(8);
    let shelf = Shelf::new();
    let file = shelf.path("groups");
    fs::write(&file, "# mine\nlow sda sdb sdc sdd\nhigh naa.5000c50000000004 sdf /dev/sdg1 gone\n")
        .unwrap();
    let value: Value = watch(&root, &["--once", "--no-smart", "--groups", &file, "--json"]).json();
    let devices = |at: usize| value["groups"][at]["devices"].to_string();
    assert_eq!(devices(0), r#"["sde","sdf","sdg","gone"]"#);
    assert_eq!(devices(1), r#"["sda","sdb","sdc","sdd"]"#);
}

#[test]
fn what_cannot_be_is_refused_in_a_sentence_and_leaves_nothing() {
    let root = Root::new(4);
    let shelf = Shelf::new();
    let (file, state) = (shelf.path("file"), shelf.path("state"));
    let folder = shelf.dir.path().to_str().unwrap();
    fs::write(&file, "alone\n").unwrap();
    for (options, parts) in [
        (&["--every", "31s"][..], &["--every", "'31s' is not from 1s to 30s"][..]),
        (&["--every", "soon"], &["--every", "'soon'"]),
        (&["--groups", &file], &[&file, "line 1: group alone has no drive"]),
        (&["--groups", &shelf.path("none")], &["none", "No such file"]),
        (&["--record", &file], &[&file, "its first line is not 'ts,group,drive,latency_us,load'"]),
        (&["--record", &shelf.path("no/file")], &["no/file", "its folder is not there"]),
        (&["--on-event", &shelf.path("none")], &["--on-event", "none: no such program"]),
        (&["--on-event", folder], &[folder, "no such program"]),
        (&["--on-event", &file], &[&file, "the file may not be executed"]),
        (&["--on-event", "levelhead-none"], &["levelhead-none", "in the folders of PATH"]),
        (&["--state", folder], &[folder, "Is a directory"]),
        (&["--state", "/proc/watch.state"], &["/proc/watch.state", "--state FILE"]),
        (&["--metrics", "here"], &["'here' is not an address"]),
        (&["--metrics", "192.0.2.1:9"], &["192.0.2.1:9", "cannot listen"]),
        (&["--fix", "--json"], &["--fix", "--json"]),
        (&["--fix", "--once"], &["--fix", "--once"]),
        (&["--once", "--record", &file], &["--once", "--record"]),
    ] {
        let mut args = options.to_vec();
        if !options.contains(&"--state") && !options.contains(&"--fix") {
            args.extend(["--state", &state]);
        }
        let ended = watch(&root, &args);
        let sentence = ended.refusal();
        for part in parts {
            assert!(sentence.contains(part), "no '{part}' in: {sentence}");
        }
    }
    assert_eq!(shelf.names(), ["file"]);
    assert_eq!(fs::read_to_string(&file).unwrap(), "alone\n");
    let nowhere = support::levelhead(&["watch", "--root", &shelf.path("nowhere"), "--once"]);
    assert!(nowhere.refusal().contains("no such folder"));
}

#[test]
fn reference_parser_reads_every_metric() {
    if !python_has("prometheus_client.openmetrics.parser", "python3-prometheus-client") {
        return;
    }
    let root = Root::new(12);
    // Two models in one group.
    root.write("sys/block/sda/device/model", "other \"quoted\\\n");
    root.program("smartctl", LIMITED);
    state_of(&root, 10, 3, 1.5);
    let running = Running::start(&root, &["--metrics", "0", "--every", "1s"]);
    wait_until("all drives have said their limits and were sampled", || {
        let text = running.scrape().0;
        let limits = text.lines().filter(|it| it.starts_with("levelhead_drive_erc_seconds{"));
        limits.count() == 24 && text.contains("levelhead_drive_slowdown_ratio{")
    });
    let text = running.scrape().0;
    let parser = "import sys\nfrom prometheus_client.openmetrics import parser\n\
        for f in parser.text_string_to_metric_families(sys.stdin.read()):\n    print(f.name, f.type, len(f.samples))";
    let mut python = Command::new(PYTHON);
    python.args(["-c", parser]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = python.spawn().unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "the parser refuses it: {text}");
    let families = String::from_utf8(output.stdout).unwrap();
    for line in [
        "levelhead_drive_group info 12",
        "levelhead_drive_state stateset 72",
        "levelhead_drive_slow_seconds counter 12",
        "levelhead_drive_erc_seconds gauge 24",
        "levelhead_drive_command_timeout_seconds gauge 12",
        "levelhead_drive_audit_findings gauge 12",
    ] {
        assert!(families.lines().any(|it| it == line), "no '{line}' in:\n{families}");
    }
    running.stop();
}

/// The size of what a process has in memory, in bytes.
fn resident(pid: Pid) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", pid.as_raw_nonzero())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() * 1024
}

/// What it asks of the kernel: each `stat` is opened once and read once a sample, and nothing of `dev` is ever opened.
fn hundred_drives_take_a_read_each_a_sample_and_no_open_of_a_drive() {
    if !is_there("strace") {
        return;
    }
    let root = Root::new(100);
    root.program("smartctl", LIMITED);
    let shelf = Shelf::new();
    let log = shelf.path("log");
    let mut strace = Command::new("strace");
    strace.args(["-f", "-o", &log, "-e", "trace=open,openat,openat2,pread64,execve"]);
    strace.args([env!("CARGO_BIN_EXE_levelhead"), "watch", "--root", root.text()]);
    strace.args(["--every", "1s", "--metrics", "0", "--json"]);
    strace.env("PATH", root.programs()).env_remove("STATE_DIRECTORY").stdin(Stdio::null());
    let running = Running::spawn(strace);
    let samples = |text: &str| value(text, "levelhead_watch_samples_total ").unwrap() as usize;
    let mut text = String::new();
    wait_until("all drives were asked, and ten samples taken", || {
        text = running.scrape().0;
        let asked = text.lines().filter(|it| it.starts_with("levelhead_drive_erc_seconds{"));
        asked.count() == 200 && samples(&text) >= 10
    });
    let pid = running.pid();
    let taken = samples(&text);
    running.stop_traced(pid);
    let log = fs::read_to_string(&log).unwrap();
    let dev = root.path().join("dev");
    let opens: Vec<_> = log.lines().filter(|it| it.contains("open")).collect();
    assert!(!opens.iter().any(|it| it.contains(dev.to_str().unwrap())), "a drive was opened");
    let stats = opens.iter().filter(|it| it.contains("/stat\"")).count();
    assert_eq!(stats, 100, "opens of stat");
    let reads = log.lines().filter(|it| it.contains("pread64(")).count();
    assert!(reads >= (taken - 2) * 100 && reads <= (taken + 3) * 100, "{reads} of {taken} samples");
    // A survey, and a page of each drive.
    let programs = log.lines().filter(|it| it.contains("execve(")).count();
    assert!((102..=104).contains(&programs), "{programs}");
}

fn hundred_drives_take_less_than_20_mb() {
    let mut root = Root::new(100);
    root.program("smartctl", LIMITED);
    let running = Running::start(&root, &["--every", "1s", "--metrics", "0"]);
    wait_until("all drives were asked, and ten samples taken", || {
        (0..100).for_each(|at| root.end(at, 30, 9));
        let text = running.scrape().0;
        let asked = text.lines().filter(|it| it.starts_with("levelhead_drive_erc_seconds{"));
        asked.count() == 200 && value(&text, "levelhead_watch_samples_total ").unwrap() >= 10.0
    });
    let resident = resident(running.pid());
    println!("{resident} B resident");
    assert!(resident < 20_000_000, "{resident}");
}

/// Seconds of processor that a process has taken, and its children that have ended.
fn busy_seconds(pid: Pid) -> f64 {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap();
    // Behind the name, which may have blanks: fields 14 to 17 of all.
    let fields: Vec<_> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    let ticks: u64 = fields[11..15].iter().map(|it| it.parse::<u64>().unwrap()).sum();
    ticks as f64 / rustix::param::clock_ticks_per_second() as f64
}

/// What `docs/watch.md` prints: ten minutes of 100 busy drives, with surveys, two windows and a scrape every 15 s.
#[test]
#[ignore = "takes ten minutes: cargo xtask soak watch"]
fn cost_of_a_hundred_drives_at_15_s() {
    let mut root = Root::new(100);
    root.program("smartctl", LIMITED);
    let running = Running::start(&root, &["--metrics", "0"]);
    let asked = |text: &str| {
        text.lines().filter(|it| it.starts_with("levelhead_drive_erc_seconds{")).count()
    };
    wait_until("all drives were asked", || asked(&running.scrape().0) == 200);
    let (begun, before) = (Instant::now(), busy_seconds(running.pid()));
    let mut scrape_max = Duration::ZERO;
    for _ in 0..40 {
        thread::sleep(Duration::from_secs(15));
        (0..100).for_each(|at| root.end(at, 300, 9));
        scrape_max = scrape_max.max(running.scrape().1);
    }
    let took = begun.elapsed().as_secs_f64();
    let share = (busy_seconds(running.pid()) - before) / took * 100.0;
    let (resident, size) = (resident(running.pid()) as f64 / 1e6, running.scrape().0.len());
    println!("{share:.3} % of a core over {took:.0} s, {resident:.1} MB resident");
    println!("a scrape of {size} B took {scrape_max:?} at most");
    assert!(share < 0.1 && resident < 20.0);
}
