//! What happens to bad input: one clear sentence that names the thing and the limit, exit code 2,
//! nothing on standard output, and nothing changed on disk.

use std::fs;
use std::os::unix::fs::symlink;

use levelhead_array::Policy;
use levelhead_drive::Faults;

use crate::support::{
    ARRAY, Ended, PROGRAM, Shelf, check_refused as check, command, levelhead, refs, run,
};

/// A drive with room for the reserved parts and a little more.
const DRIVE: u64 = 4 << 20;

/// [`check`] of an array that cannot be made.
#[track_caller]
fn check_create(shelf: &Shelf, array: &str, members: &[&str], parts: &[&str]) {
    check(shelf, &[&["array", "create", array], members].concat(), parts);
    // Not even in earnest.
    check(shelf, &[&["array", "create", array, "--dry-run"], members].concat(), parts);
}

#[test]
fn wrong_number_of_drives_is_refused() {
    let shelf = Shelf::new();
    let drives = shelf.drives(7, DRIVE);
    let drives = refs(&drives);
    let parts = [ARRAY, "needs 6 drives, got 5", drives[4]];
    check_create(&shelf, ARRAY, &drives[..5], &parts);
    check_create(&shelf, ARRAY, &drives, &["needs 6 drives, got 7"]);
    check_create(&shelf, "raid6:3", &drives[..3], &["raid6 needs at least 4 drives, got 3"]);
    check_create(&shelf, "raid5:65", &drives, &["at most 64 drives", "65"]);
    check(&shelf, &["array", "create", ARRAY], &["required", "<MEMBERS>"]);
}

#[test]
fn impossible_arrays_are_refused() {
    let shelf = Shelf::new();
    let drives = shelf.drives(6, DRIVE);
    for (array, parts) in [
        ("eraid:5+1,e=2,chunk=12KiB", ["a chunk of 12KiB is 3 sectors", "e=2"]),
        ("eraid:5+1,chunk=5KiB", ["a chunk is a whole number of 4KiB sectors", "5KiB"]),
        ("eraid:5+1,chunk=128MiB", ["a chunk is from 4KiB to 64MiB", "128MiB"]),
        ("raid5:5+1,chunk=64MiB", ["a stripe has at most 256MiB", "384MiB"]),
        ("raid5:6,e=2", ["raid5 cannot have e=2", "only eraid"]),
        (
            "raid9:6",
            ["'raid9' is not an array", "raid0, raid1, raid10, raid4, raid5, raid6 or eraid"],
        ),
        ("eraid:6", ["'6' is not an array shape", "as in eraid:5+1"]),
        (
            "eraid:5+1,speed=9",
            [
                "'speed=9'",
                "e=NUMBER, chunk=SIZE, parity=fixed|rotating, journals=NUMBER or checksums",
            ],
        ),
    ] {
        check_create(&shelf, array, &refs(&drives), &parts);
    }
}

#[test]
fn help_of_the_kernels_shows_them_and_how_each_class_is_computed_here() {
    let out = levelhead(&["array", "serve", "--kernel", "help"]);
    assert_eq!(out.code, Some(0), "{out:?}");
    let text = &out.out;
    for part in ["avx512-gfni", "naive", "redundancy, few: ", "redundancy, tower: "] {
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn help_as_the_kernel_of_the_environment_is_refused_as_any_other_name() {
    let mut command = command(&["array", "check", "none.img"]);
    command.env("LEVELHEAD_KERNEL", "help");
    let out = run(command);
    assert_eq!(out.code, Some(2), "{out:?}");
    assert!(out.err.contains("'help' is not a kernel"), "{out:?}");
}

#[test]
fn a_kernel_nobody_has_is_refused_with_those_there_are() {
    let shelf = Shelf::new();
    let drives = shelf.drives(6, DRIVE);
    let parts = ["'avx3' is not a kernel", "naive, portable, avx2, avx2-gfni or avx512-gfni"];
    check(&shelf, &["array", "serve", &drives[0], "--nbd", "x.sock", "--kernel", "avx3"], &parts);
}

#[test]
fn what_is_no_drive_is_refused() {
    let shelf = Shelf::new();
    let drives = shelf.drives(6, DRIVE);
    let missing = shelf.path("missing.img");
    let folder = shelf.path("folder");
    fs::create_dir(&folder).unwrap();
    let tiny = shelf.path("tiny.img");
    fs::write(&tiny, "too little").unwrap();
    for (what, parts) in [
        (folder.as_str(), [folder.as_str(), "is a directory, not a drive"]),
        (&missing, [&missing, "does not exist"]),
        ("/dev/null", ["/dev/null", "is a character device, not a drive"]),
        (&tiny, [&tiny, "has 0B, a drive of"]),
    ] {
        let members = [&refs(&drives)[..5], &[what]].concat();
        check_create(&shelf, ARRAY, &members, &parts);
    }
    let socket = shelf.path("nbd.sock");
    check(
        &shelf,
        &["array", "serve", &drives[0], "--nbd", &socket],
        &[&drives[0], "is not a drive"],
    );
    check(&shelf, &["array", "serve", "/dev/null", "--nbd", &socket], &["a character device"]);
}

#[test]
fn drive_named_twice_is_refused() {
    let shelf = Shelf::new();
    let drives = shelf.drives(6, DRIVE);
    let (link, hard) = (shelf.path("link.img"), shelf.path("hard.img"));
    symlink(&drives[2], &link).unwrap();
    fs::hard_link(&drives[2], &hard).unwrap();
    let emulated = format!("emu:{}", drives[2]);
    for again in [drives[2].as_str(), &link, &hard, &emulated] {
        let members = [&refs(&drives)[..5], &[again]].concat();
        let parts = [drives[2].as_str(), again, "are the same drive"];
        check_create(&shelf, ARRAY, &members, &parts);
    }
}

/// The dry run says what the real one would, also of files that are yet to be made.
#[test]
fn new_file_named_twice_is_refused_before_it_is_made() {
    let shelf = Shelf::new();
    let folder = shelf.path("c");
    fs::create_dir(&folder).unwrap();
    let members =
        ["a.img", "b.img", "../c/a.img"].map(|name| format!("emu:{folder}/{name}?size=8MiB"));
    let all: Vec<&str> = members.iter().map(String::as_str).collect();
    for dry in [&[][..], &["--dry-run"]] {
        let create = [&["array", "create", "raid5:2+1"][..], dry, &all].concat();
        check(&shelf, &create, &["/c/a.img and emu:", "/c/../c/a.img are the same drive"]);
        let nowhere = format!("emu:{folder}/none/a.img?size=8MiB");
        let create = [&["array", "create", "raid1:2"][..], dry, &[all[0], &nowhere]].concat();
        check(&shelf, &create, &["cannot create", "/c/none is not a folder"]);
    }
}

/// As where a file system cannot hold so much, or a quota is full.
#[test]
fn file_that_cannot_have_its_size_is_not_left_behind() {
    let shelf = Shelf::new();
    let members = ["a.img", "b.img"].map(|name| format!("emu:{}?size=8MiB", shelf.path(name)));
    let bounded = |args: &[&str]| {
        let mut command = std::process::Command::new("bash");
        let bound = "trap '' XFSZ; ulimit -f 1024; exec \"$0\" \"$@\"";
        command.args(["-c", bound, PROGRAM]).args(args);
        run(command)
    };
    let create = [&["array", "create", "raid1:2"][..], &refs(&members)].concat();
    let before = shelf.content();
    let refused = bounded(&create);
    assert!(refused.refusal().starts_with("cannot create "), "{refused:?}");
    assert!(before == shelf.content(), "something is left of it: {:?}", shelf.names());
    levelhead(&create).good();
    let (to, before) = (shelf.path("salvaged.img"), shelf.content());
    let salvage = ["array", "salvage", "--to", &to, &members[0], &members[1]];
    let refused = bounded(&salvage);
    assert!(refused.refusal().starts_with("cannot write "), "{refused:?}");
    assert!(before == shelf.content(), "something is left of it: {:?}", shelf.names());
    levelhead(&salvage).good();
}

#[test]
fn drive_of_another_array_is_taken_by_force_only() {
    let shelf = Shelf::new();
    let drives = shelf.array(DRIVE);
    let members = refs(&drives[..4]);
    let parts = ["d0.img is drive 0 of the array", ARRAY, "force"];
    check_create(&shelf, "raid5:4", &members, &parts);
    levelhead(&[&["array", "create", "raid5:4", "--force"][..], &members].concat()).good();
    // The two that are left of the first array are one too few.
    let socket = shelf.path("nbd.sock");
    let rest = [&["array", "serve", "--nbd", &socket][..], &refs(&drives[4..])].concat();
    check(&shelf, &rest, &["survives the loss of 1 drive", "4 are missing", "0,1,2,3"]);
    let mixed = [&["array", "serve", "--nbd", &socket][..], &refs(&drives)].concat();
    check(&shelf, &mixed, &["belong to different arrays"]);
}

#[test]
fn smallest_drive_counts_and_it_is_said() {
    let shelf = Shelf::new();
    let mut drives = shelf.drives(5, 2 * DRIVE);
    let small = shelf.path("small.img");
    fs::File::create_new(&small).unwrap().set_len(DRIVE).unwrap();
    drives.push(small);
    let create = [&["array", "create", ARRAY][..], &refs(&drives)].concat();
    let dry = [&create[..], &["--dry-run"]].concat();
    let value = levelhead(&[&dry[..], &["--json"]].concat()).json();
    // 1 MiB is reserved at both ends of every drive, and 256 KiB for the journal.
    assert_eq!(value["size_bytes"], 5 * (DRIVE - (2 << 20) - (256 << 10)));
    let unused: Vec<u64> =
        (0..6).map(|at| value["drives"][at]["unused_bytes"].as_u64().unwrap()).collect();
    assert_eq!(unused, [DRIVE, DRIVE, DRIVE, DRIVE, DRIVE, 0]);
    for args in [dry, create] {
        let text = levelhead(&args).good();
        assert!(text.contains("size: 8.75MiB\n"), "{text}");
        assert!(text.contains("the drives differ in size and the smallest counts:\n"), "{text}");
        assert!(text.contains(&format!("  4MiB of {} stay unused\n", drives[0])), "{text}");
        assert!(!text.contains("small.img stay"), "{text}");
    }
}

#[test]
fn emulated_drive_that_cannot_be_is_refused() {
    let shelf = Shelf::new();
    let (file, socket) = (shelf.path("a.img"), shelf.path("nbd.sock"));
    let keys = "profile, cache, verify, idle-wait, verify-start, verify-sums, retention, size, seed, retry-rate, adjacency, zero-tails, bursts, rotations, hard-rate";
    for (options, parts) in [
        ("?size=4MiB&profile=foo", ["'foo' is not a drive profile", "nearline-2tb"]),
        ("?size=4MiB&retry-rate=101%", ["retry-rate=101%", "a percentage from 0% to 100%"]),
        ("?size=4MiB&hard-rate=2", ["hard-rate=2", "expected a number and %, as in 2%"]),
        ("?size=4MiB&rpm=9", ["rpm=9", keys]),
        ("?size=5kB", ["size=5kB", "a whole number of 4KiB sectors"]),
        ("?size=4MiB&cache=on", ["cache=on", "expected off, read or write-back"]),
        ("?size=4MiB&slowdown=2000", ["1 to 1000 times", "2000"]),
        ("?size=4MiB&rotations=0", ["1 to 1000", "0"]),
        ("?size=4MiB&stalls=1s/9s", ["a stall every 1s lasts at most 1s", "9s"]),
        ("?size=4MiB&episodes=1s/9s", ["episodes=1s/9s", "SLOW/WELL/FACTOR, as in 20s/5min/5"]),
        ("?size=3TB", ["a.img", "a drive of this model has 1 to"]),
        ("", ["a.img", "does not exist"]),
    ] {
        let member = format!("emu:{file}{options}");
        check(&shelf, &["drive", "emulate", &member, "--nbd", &socket], &parts);
        let members = [shelf.path("b.img"), shelf.path("c.img"), shelf.path("d.img")];
        let members = members.map(|path| format!("emu:{path}?size=4MiB"));
        check_create(&shelf, "raid5:4", &[&refs(&members)[..], &[&member]].concat(), &parts);
    }
    check(
        &shelf,
        &["drive", "emulate", &file, "--nbd", &socket],
        &[&file, "is not an emulated drive"],
    );
    let member = format!("emu:{file}?size=4MiB");
    let emulate = ["drive", "emulate", &member, "--nbd", &socket, "--faults", "stalls=9"];
    check(&shelf, &emulate, &["--faults", "'stalls=9'", "GAP/DURATION, as in 10min/5s"]);
    // A file that is there has the size it has.
    fs::File::create_new(&file).unwrap().set_len(DRIVE).unwrap();
    let member = format!("emu:{file}?size=8MiB");
    let parts = [file.as_str(), "has 4MiB", "size=8MiB"];
    check(&shelf, &["drive", "emulate", &member, "--nbd", &socket], &parts);
}

#[test]
fn endpoint_that_cannot_be_used_is_refused_and_leaves_nothing() {
    let shelf = Shelf::new();
    let drives = shelf.array(DRIVE);
    let fresh = format!("emu:{}?size=4MiB", shelf.path("fresh.img"));
    let nowhere = shelf.path("no/such/folder/nbd.sock");
    let file = format!("unix:{}", drives[0]);
    let long = format!("{}/{}.sock", shelf.path("x"), "y".repeat(120));
    for (endpoint, parts) in [
        ("somewhere", ["'somewhere' is not an endpoint", "tcp:PORT"]),
        ("tcp:localhost:1", ["'tcp:localhost:1' is not an endpoint", "a numeric address"]),
        ("tcp:70000", ["'tcp:70000' is not an endpoint", "tcp:PORT"]),
        ("tcp:192.0.2.1:9", ["tcp:192.0.2.1:9", "cannot listen"]),
        (&nowhere, [&nowhere, "No such file or directory"]),
        (&long, [&long, "File name too long"]),
        (&file, [&drives[0], "a file that is not a socket is there"]),
    ] {
        let serve = [&["array", "serve", "--nbd", endpoint][..], &refs(&drives)].concat();
        check(&shelf, &serve, &parts);
        check(&shelf, &["drive", "emulate", &fresh, "--nbd", endpoint], &parts);
    }
    check(&shelf, &["array", "serve", &drives[0]], &["required", "--nbd <NBD>"]);
    let name = "x".repeat(5000);
    let serve = ["array", "serve", "--nbd", "tcp:0", "--export", &name];
    check(&shelf, &[&serve[..], &refs(&drives)].concat(), &["5000 bytes", "the limit is 4096"]);
}

#[test]
fn sockets_that_are_busy_are_refused() {
    let (busy, shelf) = (Shelf::new(), Shelf::new());
    let serving = busy.serve(&busy.array(DRIVE));
    let drives = shelf.array(DRIVE);
    let nbd = busy.path("nbd.sock");
    let serve = [&["array", "serve"][..], &refs(&drives)].concat();
    let parts = [nbd.as_str(), "another server answers there"];
    check(&shelf, &[&serve[..], &["--nbd", &nbd]].concat(), &parts);
    let emulate = format!("emu:{}?size=4MiB", shelf.path("fresh.img"));
    check(&shelf, &["drive", "emulate", &emulate, "--nbd", &nbd], &parts);
    let parts = ["a running array answers at", serving.control()];
    check(
        &shelf,
        &[&serve[..], &["--nbd", "tcp:0", "--control", serving.control()]].concat(),
        &parts,
    );
    let parts = ["cannot listen for control", &drives[0]];
    check(&shelf, &[&serve[..], &["--nbd", "tcp:0", "--control", &drives[0]]].concat(), &parts);
    // The two sockets of one array are two.
    let own = shelf.path("own.sock");
    check(&shelf, &[&serve[..], &["--nbd", &own, "--control", &own]].concat(), &[&own]);
    // Who was there first has not noticed.
    assert_eq!(serving.status()["requests"], 0);
    serving.stop();
    let tcp = busy.serve_with(&refs_to_strings(&busy), &["--nbd", "tcp:0"]);
    let port = tcp.uri().trim_start_matches("nbd://").trim_end_matches('/').to_owned();
    let endpoint = format!("tcp:{port}");
    check(&shelf, &[&serve[..], &["--nbd", &endpoint]].concat(), &[&port, "in use"]);
    tcp.stop();
}

/// The drives of an array made earlier.
fn refs_to_strings(shelf: &Shelf) -> Vec<String> {
    (0..6).map(|idx| shelf.path(&format!("d{idx}.img"))).collect()
}

#[test]
fn numbers_out_of_range_are_refused_with_the_range() {
    let shelf = Shelf::new();
    let drives = shelf.array(DRIVE);
    let serve = [&["array", "serve", "--nbd", "tcp:0"][..], &refs(&drives)].concat();
    for window in ["0", "33", "-1", "many"] {
        let parts = ["--window", &format!("'{window}'"), "from 1 to 32"];
        check(&shelf, &[&serve[..], &["--window", window]].concat(), &parts);
    }
    for drive in ["64", "-1", "x"] {
        let parts = ["<DRIVE>", &format!("'{drive}'"), "from 0 to 63"];
        check(&shelf, &["array", "fail", &drives[0], drive], &parts);
    }
    check(&shelf, &["demo", "--seed", "x"], &["--seed", "'x' is not a whole number"]);
}

#[test]
fn names_nobody_knows_are_refused_with_those_that_there_are() {
    let shelf = Shelf::new();
    let drives = shelf.array(DRIVE);
    let serve = [&["array", "serve", "--nbd", "tcp:0"][..], &refs(&drives)].concat();
    let policy = ["'turbo' is not a policy", "normal, on-failure, assisted", "pro-active"];
    let order = ["'turbo' is not a host order", "fcfs, elevator or paper32"];
    for (option, parts) in [("--policy", &policy[..]), ("--host-order", &order)] {
        check(&shelf, &[&serve[..], &[option, "turbo"]].concat(), parts);
    }
    check(&shelf, &["turbo"], &["'turbo'"]);
    check(&shelf, &["array", "list", "--turbo"], &["'--turbo'"]);
    check(&shelf, &["completions", "turbo"], &["'turbo'", "bash"]);
}

#[test]
fn array_that_is_not_running_is_said_to_be() {
    let shelf = Shelf::new();
    let drives = shelf.array(DRIVE);
    let parts = ["no running array answers at", &drives[0], "/levelhead/", ".control"];
    check(&shelf, &["array", "status", &drives[0]], &parts);
    check(&shelf, &["array", "events", &drives[0], "--follow"], &parts);
    check(&shelf, &["array", "fail", &drives[0], "1"], &parts);
    check(&shelf, &["array", "stop", &drives[0]], &parts);
}

/// A result that cannot be written is refused before it is worked for.
#[test]
fn place_that_cannot_be_written_is_refused_first() {
    let shelf = Shelf::new();
    let nowhere = shelf.path("no/such/file");
    check(&shelf, &["demo", "--report", &nowhere], &["no/such", "No such file"]);
    check(&shelf, &["demo", "--folder", &nowhere], &["no/such/file", "No such file"]);
    fs::write(shelf.path("file"), "").unwrap();
    check(&shelf, &["man", &shelf.path("file/pages")], &["file/pages", "Not a directory"]);
}

/// Where a command went that this program had once.
#[test]
fn commands_that_moved_say_where_to() {
    let shelf = Shelf::new();
    for (args, now) in [
        (&["replay", "--synthetic", "count=10"][..], "levelhead-lab replay"),
        (&["--json", "study", "list"], "levelhead-lab study"),
        (&["plan", "code"], "levelhead-lab plan"),
        (&["fleet", "detect", "x"], "levelhead-lab fleet"),
        (&["drive", "model"], "levelhead-lab drive model"),
        (&["fs", "replay", "hibench:sort"], "levelhead-lab fs replay"),
        (&["demo", "--compare"], "levelhead-lab demo"),
    ] {
        check(&shelf, args, &["is now", now]);
    }
    let help = levelhead(&["--help"]).good();
    assert!(!help.contains("replay") && !help.contains("study"), "{help}");
}

#[test]
fn failures_are_one_json_object_where_json_is_asked_for() {
    let shelf = Shelf::new();
    let (none, point) = (shelf.path("none.img"), shelf.path("point"));
    fs::create_dir(&point).unwrap();
    for (args, kind, code) in [
        (&["array", "status", &none, "--json"][..], "usage", 2),
        (&["--json", "array", "turbo"], "usage", 2),
        (&["array", "list", &none, "--json"], "usage", 2),
        (&["fs", "mount", &none, &point, "--json"], "usage", 2),
    ] {
        let ended = levelhead(args);
        let object: serde_json::Value = serde_json::from_str(&ended.out).unwrap();
        let error = &object["error"];
        assert_eq!((&error["kind"], &error["code"]), (&kind.into(), &code.into()), "{ended:?}");
        let sentence = error["message"].as_str().unwrap();
        assert!(ended.err.starts_with(&format!("levelhead: {sentence}")), "{ended:?}");
        assert_eq!(ended.code, Some(code), "{ended:?}");
    }
}

#[test]
fn help_and_version_are_no_mistakes() {
    for args in [&["--help"][..], &["watch", "--help"], &["array", "serve", "--help"], &["help"]] {
        assert!(levelhead(args).good().contains("Usage: levelhead"), "{args:?}");
    }
    let version = format!("levelhead {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(levelhead(&["--version"]).good(), version);
    // Nothing asked for is one: the help goes to standard error.
    let Ended { code, out, err } = levelhead(&[] as &[&str]);
    assert_eq!((code, out.as_str()), (Some(2), ""));
    assert!(err.contains("Usage: levelhead"), "{err}");
}

#[test]
fn help_names_every_kind_of_fault() {
    for help in ["-h", "--help"] {
        let text = levelhead(&[&["drive", "emulate"][..], &[help]].concat()).good();
        let words: Vec<&str> = text.split([' ', '=', ',', '\n']).collect();
        for kind in Faults::KINDS {
            assert!(words.contains(&kind.key), "{help}: no {}\n{text}", kind.key);
        }
    }
}

#[test]
fn help_has_a_line_for_every_policy() {
    let text = levelhead(&["array", "serve", "--help"]).good();
    let words: Vec<&str> = text.split([' ', ',', '\n']).collect();
    for policy in Policy::all() {
        assert!(words.contains(&policy.to_string().as_str()), "no {policy}\n{text}");
    }
    // In the order of use, policies before what few need.
    let places = ["--nbd", "--degraded", "--spare", "--policy", "--metrics", "--kernel", "--seed"]
        .map(|option| text.find(&format!(" {option}")).expect("the help has every option"));
    assert!(places.is_sorted(), "{places:?}\n{text}");
}

#[test]
fn completions_and_manual_pages_come_from_the_same_definitions() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let text = levelhead(&["completions", shell]).good();
        for word in ["levelhead", "emulate", "faults", "host-order"] {
            assert!(text.contains(word), "{shell}: no {word}");
        }
    }
    let shelf = Shelf::new();
    levelhead(&["man", shelf.dir.path().to_str().unwrap()]).good();
    let names = shelf.names();
    for page in ["levelhead.1", "levelhead-array-serve.1", "levelhead-fs-mount.1"] {
        assert!(names.iter().any(|name| name == page), "no {page} in {names:?}");
    }
}

#[test]
fn completions_end_quietly_if_nobody_reads_them() {
    let mut command = command(&["completions", "bash"]);
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    drop(child.stdout.take());
    let ended = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&ended.stderr), "");
    assert!(ended.status.success(), "{}", ended.status);
}

#[test]
fn sentence_is_one_line_whatever_a_name_is() {
    let shelf = Shelf::new();
    let name = shelf.path("a\x1b]0;title\x07\nlevelhead: \u{202e}fake");
    for arguments in [
        &["array", "assemble", &name][..],
        &["array", "status", &name],
        &["fs", "status", &name],
        &["array", "check", &name],
    ] {
        let ended = levelhead(arguments);
        let said = ended.err.trim_end();
        assert!(!said.contains(|c: char| c.is_control() && c != '\n'), "{said:?}");
        assert!(!said.contains('\u{202e}'), "{said:?}");
        let is_forged = said.lines().skip(1).any(|line| line.starts_with("levelhead:"));
        assert!(!is_forged, "{said:?}");
        assert!(said.contains(r"\x1b"), "{said:?}");
    }
}

/// What cannot be said is still in the exit code.
#[test]
fn sentence_that_has_no_room_leaves_the_exit_code() {
    let mut command = std::process::Command::new("sh");
    command.args(["-c", &format!("exec {PROGRAM} array status nowhere 2>/dev/full")]);
    assert_eq!(run(command).code, Some(2));
}
