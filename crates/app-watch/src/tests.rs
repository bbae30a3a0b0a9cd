//! The watch in a time of the test's own, over made-up roots whose counters the test steps.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, PermissionsExt};

use levelhead_fleet::detect::{Kind, Recording, Verdict, detect};
use levelhead_fleet::watch::{Saved, State};
use levelhead_fleet_io::samples::read_recordings;
use levelhead_testkit::shared;
use tempfile::TempDir;

use super::*;

/// A host with one array, `md0`.
struct Made {
    dir: TempDir,
    drives: Vec<Drive>,
}

struct Drive {
    stat: File,
    ended: u64,
    micros: f64,
    sectors: f64,
}

/// What a drive does in some seconds.
#[derive(Clone, Copy)]
struct Load {
    ended: u64,
    latency_us: f64,
    bytes: f64,
}

impl Made {
    fn new(count: usize) -> Self {
        let dir = TempDir::new().unwrap();
        let write = |file: String, text: &str| {
            let path = dir.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let mut drives = Vec::new();
        for at in 0..count {
            let block = format!("sys/block/sd{at}x");
            write(format!("{block}/device/wwid"), &format!("naa.{at:08x}"));
            write(format!("{block}/device/model"), "M");
            write(format!("sys/block/md0/md/dev-sd{at}x/slot"), &at.to_string());
            let stat = File::create(dir.path().join(block).join("stat")).unwrap();
            drives.push(Drive { stat, ended: 0, micros: 0.0, sectors: 0.0 });
        }
        write("sys/block/md0/md/level".to_owned(), "raid6");
        let made = Self { dir, drives };
        (0..count).for_each(|at| made.put(at));
        let mut survey = File::create(made.dir.path().join("survey")).unwrap();
        levelhead_host::fleet::write_survey(made.dir.path(), &mut survey).unwrap();
        made
    }

    fn host(&self) -> Host {
        Host {
            root: self.dir.path().to_owned(),
            surveyor: ["/bin/sh", "-c", "cat \"$0/survey\""].map(PathBuf::from).into(),
            zpool: "/nowhere/zpool".into(),
            smartctl: None,
            groups: None,
        }
    }

    fn work(&mut self, at: usize, load: Load) {
        let drive = &mut self.drives[at];
        drive.ended += load.ended;
        drive.micros += load.latency_us * load.ended as f64;
        drive.sectors += load.bytes / 512.0;
        self.put(at);
    }

    fn put(&self, at: usize) {
        let Drive { stat, ended, micros, sectors } = &self.drives[at];
        let line = format!("{ended} 0 {sectors:.0} {:.0} 0 0 0 0 0 0 0", micros / 1e3);
        stat.write_all_at(format!("{line:<128}\n").as_bytes(), 0).unwrap();
    }

    fn run(&self, record: Option<PathBuf>, on_event: Option<PathBuf>, saved: Saved) -> Run {
        let state = self.dir.path().join("state");
        let (hook, troubles) = start_hook(on_event).unwrap();
        let mut run = Run {
            keeper: Keeper::new(&self.host(), None, saved),
            hook,
            troubles,
            writer: Writer::start(state, record).unwrap(),
            board: Board::new(EVERY_MAX),
            told: BTreeMap::new(),
            is_told_of_none: false,
            recorded: None,
        };
        while !run.keeper.finder.is_ready() {
            run.look();
            std::thread::sleep(Duration::from_millis(2));
        }
        run
    }
}

/// A window of which every drive is busy, from `at` on; the last drive takes `ratio` times what the others do.
fn busy(made: &mut Made, run: &mut Run, at: i64, ratio: f64) -> Vec<Said> {
    let mut said = Vec::new();
    for step in 0..5 {
        let count = made.drives.len();
        for drive in 0..count {
            let noise = ((at / 60 * 7 + step * 3 + drive as i64 * 13) % 11) as f64;
            let latency_us = (9000.0 + noise * 90.0) * if drive + 1 == count { ratio } else { 1.0 };
            made.work(drive, Load { ended: 100, latency_us, bytes: 1e6 });
        }
        said.extend(run.sample(at + (step + 1) * 60));
    }
    said
}

const BEGIN: i64 = 1_700_000_100;

#[test]
fn record_gives_what_the_watch_said_and_a_restart_says_it_again() {
    let mut made = Made::new(6);
    let record = made.dir.path().join("record.csv");
    let mut run = made.run(Some(record.clone()), None, Saved::default());
    run.sample(BEGIN);
    let mut said = Vec::new();
    for window in 0..60 {
        let ratio = if window < 24 { 1.0 } else { 1.5 };
        said.extend(busy(&mut made, &mut run, BEGIN + window * 300, ratio));
    }
    let slow = said.iter().find_map(|it| match it {
        Said::Event(event) if event.now.state == State::Slow => Some(event.clone()),
        _ => None,
    });
    let slow = slow.expect("it is found");
    assert_eq!(slow.now.device, "sd5x");
    let states = |run: &Run| {
        let verdicts = run.keeper.watch.verdicts().into_iter();
        verdicts.map(|it| (it.state, it.comparison)).collect::<Vec<_>>()
    };
    assert_eq!(run.writer.end(Instant::now() + Duration::from_secs(60)), None);
    let recordings = read_recordings(&record).unwrap();
    assert_eq!((recordings.len(), recordings[0].windows.len()), (1, 60));
    check(&recordings[0], &run);
    let saved = Saved::decode(&run.keeper.watch.save().encode()).unwrap();
    let mut again = made.run(None, None, saved);
    let end = BEGIN + 60 * 300;
    again.sample(end + 15);
    again.sample(end + 30);
    assert_eq!(states(&again), states(&run));
}

/// What a detector says of a record is what the watch says.
#[track_caller]
fn check(recording: &Recording, run: &Run) -> usize {
    let rows = detect(recording, Kind::Level.detector(recording.drives.len()).as_mut());
    let verdicts = run.keeper.watch.verdicts();
    assert_eq!(rows.len(), verdicts.len());
    for (row, verdict) in rows.iter().zip(&verdicts) {
        let is = match verdict.state {
            State::Slow => Verdict::Slow,
            State::Fine | State::Suspect | State::HostWide => Verdict::Fine,
            State::Hung | State::CannotTell(_) => Verdict::CannotTell,
        };
        assert_eq!(is, row.finding.verdict, "{row:?}\n{verdict:?}");
        let decided_at = verdict.comparison.and_then(|it| it.decided_at);
        assert_eq!(decided_at, row.finding.decided_at, "{row:?}\n{verdict:?}");
    }
    rows.iter().filter(|it| it.finding.verdict == Verdict::Slow).count()
}

/// Each host of a cluster of PERSEUS as an array, its latencies as counters, stepped a given number of times a window.
fn replay(cluster: &str, steps: i64) -> Option<(usize, usize)> {
    let path = shared(&format!("fleet/perseus/{cluster}.parquet"))?;
    let (mut drives, mut slow) = (0, 0);
    for recording in read_recordings(&path).unwrap() {
        let mut made = Made::new(recording.drives.len());
        let mut run = made.run(None, None, Saved::default());
        let mut last = i64::MIN;
        for window in &recording.windows {
            if window.at != last {
                run.sample(window.at);
            }
            for step in 1..=steps {
                for (at, reading) in window.members.iter().enumerate() {
                    let Some(reading) = reading else { continue };
                    let bytes = reading.load * (300 / steps) as f64;
                    // Latencies are of tens of microseconds and the kernel counts milliseconds: many commands.
                    made.work(at, Load { ended: 1_000_000, latency_us: reading.latency_us, bytes });
                }
                run.sample(window.at + step * 300 / steps);
            }
            last = window.at + 300;
        }
        slow += check(&recording, &run);
        drives += recording.drives.len();
    }
    Some((drives, slow))
}

#[test]
fn perseus_a_by_its_counters_every_15_s_is_judged_as_by_its_record() {
    let Some(found) = replay("cluster_A", 20) else { return };
    assert_eq!(found, (360, 2));
}

#[test]
fn perseus_c_by_its_counters_twice_a_window_is_judged_as_by_its_record() {
    let Some(found) = replay("cluster_C", 2) else { return };
    assert_eq!(found, (1116, 32));
}

#[test]
fn each_event_runs_the_program_once_with_the_facts_of_a_watch() {
    let mut made = Made::new(6);
    let (program, out) = (made.dir.path().join("note"), made.dir.path().join("out"));
    let names =
        "$LEVELHEAD_EVENT $LEVELHEAD_SEVERITY $LEVELHEAD_GROUP $LEVELHEAD_DEVICE $LEVELHEAD_BEFORE";
    let script = format!(
        "#!/bin/sh\nexec >> {}\necho \"$LEVELHEAD_AT|$LEVELHEAD_SENTENCE|$LEVELHEAD_DRIVE|{names}\"\ncat\n",
        out.display()
    );
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, PermissionsExt::from_mode(0o700)).unwrap();
    let mut run = made.run(None, Some(program), Saved::default());
    run.sample(BEGIN);
    let mut events = Vec::new();
    for window in 0..40 {
        let ratio = if window < 14 { 1.0 } else { 4.0 };
        for said in busy(&mut made, &mut run, BEGIN + window * 300, ratio) {
            if let Said::Event(event) = said
                && event.is_of_verdict()
            {
                events.push(event);
            }
        }
    }
    run.hook.as_ref().unwrap().close();
    assert_eq!(run.troubles.try_iter().collect::<Vec<_>>(), Vec::<String>::new());
    let text = fs::read_to_string(&out).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let (first, last) = (events.first().unwrap(), events.last().unwrap());
    assert_eq!(lines.len(), 2 * events.len(), "{text}");
    assert_eq!((first.now.state.name(), last.now.state.name()), ("fine", "slow"));
    for (event, lines) in events.iter().zip(lines.chunks(2)) {
        let verdict = &event.now;
        let severity = if verdict.state == State::Slow { "degraded" } else { "info" };
        let (at, state) = (hook::time(event), verdict.state.name());
        let expected = format!(
            "{at}|{verdict}|{}|{state} {severity} {} {} {}",
            verdict.key,
            verdict.group,
            verdict.device,
            event.before.name()
        );
        assert_eq!(lines[0], expected);
        let json: serde_json::Value = serde_json::from_str(lines[1]).unwrap();
        let fields =
            ["event", "severity", "time", "drive"].map(|name| json[name].as_str().unwrap());
        assert_eq!(fields, [state, severity, &at, &verdict.key]);
    }
}

#[test]
fn severity_is_that_of_the_state_and_a_drive_that_is_fine_again_has_recovered() {
    use levelhead_fleet::watch::Why;
    let mut made = Made::new(6);
    let mut run = made.run(None, None, Saved::default());
    run.sample(BEGIN);
    let said = (0..14).flat_map(|window| busy(&mut made, &mut run, BEGIN + window * 300, 1.0));
    let event = said.into_iter().find_map(|said| match said {
        Said::Event(event) => Some(event),
        _ => None,
    });
    let mut event = event.unwrap();
    let unknown = State::CannotTell(Why::Idle);
    for (before, now, expected) in [
        (unknown, State::Fine, "info"),
        (State::Fine, State::Suspect, "info"),
        (State::Suspect, State::Slow, "degraded"),
        (State::Slow, State::Hung, "degraded"),
        (State::Hung, State::Fine, "recovered"),
        (State::Slow, unknown, "info"),
        (State::Fine, State::HostWide, "info"),
    ] {
        (event.before, event.now.state) = (before, now);
        assert_eq!(hook::severity(&event).name(), expected, "{before:?} to {now:?}");
    }
}

/// As where a file of md's waits for a lock: what the survey has said by then is there, and everything else goes on.
#[test]
fn survey_that_never_ends_holds_up_neither_looks_nor_the_end() {
    let made = Made::new(6);
    let surveyor = "grep -v end \"$0/survey\"; exec sleep 1000";
    let surveyor = ["/bin/sh", "-c", surveyor].map(PathBuf::from).into();
    let host = Host { surveyor, ..made.host() };
    let mut keeper = Keeper::new(&host, None, Saved::default());
    let begun = Instant::now();
    let mut notes = Vec::new();
    while !keeper.finder.is_ready() {
        let looked = Instant::now();
        notes.extend(keeper.look(looked).notes);
        keeper.sample(BEGIN);
        assert!(looked.elapsed() < Duration::from_secs(1));
        assert!(begun.elapsed() < Duration::from_secs(90));
        std::thread::sleep(Duration::from_millis(20));
    }
    let expected =
        "the survey of groups: it did not answer in time; what it did not say is as it was";
    assert_eq!(notes, [expected]);
    keeper.sample(BEGIN + 15);
    assert_eq!(keeper.watch.verdicts().len(), 6);
    let begun = Instant::now();
    drop(keeper);
    assert!(begun.elapsed() < Duration::from_secs(1));
}

/// A series that is shown twice, or a value that is stale, would be worse than none.
#[test]
fn scrape_after_too_long_a_time_shows_its_age_and_no_drive() {
    let mut made = Made::new(6);
    let mut run = made.run(None, None, Saved::default());
    run.board = Board::new(Duration::from_millis(50));
    run.sample(BEGIN);
    for window in 0..14 {
        busy(&mut made, &mut run, BEGIN + window * 300, 1.0);
    }
    let source = run.board.source();
    let count = |name: &str| {
        let families = source();
        let family = families.iter().find(|it| it.name() == name).unwrap();
        family.series().len()
    };
    run.sample(BEGIN + 14 * 300 + 15);
    assert_eq!(count("levelhead_drive_slowdown_ratio"), 6);
    assert_eq!(count("levelhead_group_tail_ratio"), 3);
    std::thread::sleep(Duration::from_millis(250));
    assert_eq!(count("levelhead_drive_state"), 0);
    assert_eq!(count("levelhead_watch_sample_age_seconds"), 1);
}

/// The page for users, the alert rules and the dashboard name what there is.
#[test]
fn page_rules_and_dashboard_name_metrics_that_there_are() {
    let families = metrics::families(&metrics::Shown::default(), None);
    let name = |it: &levelhead_metrics::Family| match it.kind() {
        levelhead_metrics::Kind::Counter => format!("{}_total", it.name()),
        levelhead_metrics::Kind::Info => format!("{}_info", it.name()),
        _ => it.name().to_owned(),
    };
    let names: Vec<_> = families.iter().map(name).collect();
    let page = include_str!("../../../docs/watch.md");
    for name in &names {
        assert!(page.contains(&format!("| `{name}` |")), "docs/watch.md has no {name}");
    }
    for (file, text) in [
        ("docs/watch.md", page),
        ("alerts", include_str!("../../../contrib/levelhead-watch-alerts.yml")),
        ("dashboard", include_str!("../../../contrib/levelhead-watch-dashboard.json")),
    ] {
        let words =
            text.split(|c: char| !c.is_ascii_lowercase() && !c.is_ascii_digit() && c != '_');
        let is_one = |word: &&str| {
            ["levelhead_drive_", "levelhead_group_", "levelhead_watch_"]
                .iter()
                .any(|it| word.starts_with(it))
        };
        for word in words.filter(is_one) {
            assert!(names.iter().any(|it| it == word), "{file} has {word}");
        }
    }
    let dashboard = include_str!("../../../contrib/levelhead-watch-dashboard.json");
    let dashboard: serde_json::Value = serde_json::from_str(dashboard).unwrap();
    assert!(dashboard["panels"].as_array().unwrap().len() >= 5);
}

#[test]
fn no_link_is_followed_by_what_is_written_as_root() {
    let dir = TempDir::new().unwrap();
    let path = |name: &str| dir.path().join(name);
    let victim = path("victim");
    fs::write(&victim, "precious").unwrap();
    for name in ["state", "state.new", "record"] {
        std::os::unix::fs::symlink(&victim, path(name)).unwrap();
    }
    std::os::unix::fs::symlink(path("made"), path("state.lock")).unwrap();
    let refused = files::lock_state(&path("state")).unwrap_err().to_string();
    assert!(refused.contains("state.lock: it is a symbolic link"), "{refused}");
    assert!(!path("made").exists(), "nothing is made where the link leads");
    files::write_state(&path("state"), b"new").unwrap();
    assert_eq!(fs::read(path("state")).unwrap(), b"new");
    assert!(fs::symlink_metadata(path("state")).unwrap().is_file(), "the link gave way");
    let refused = files::check_record(&path("record")).unwrap_err().to_string();
    assert!(refused.contains("record: it is a symbolic link"), "{refused}");
    let refused = files::open_record(&path("record")).unwrap_err().to_string();
    assert!(refused.contains("symbolic link"), "{refused}");
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
    let left = fs::read_dir(dir.path()).unwrap().count();
    assert_eq!(left, 5, "nothing of what was being written is left");
}
