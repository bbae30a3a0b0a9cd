//! What other programs know a drive by: nothing of it is left where `--force` takes the drive, by their own word.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::process::{Command, Stdio};

use crate::support::{Shelf, levelhead, refs};

const SIZE: u64 = 300 << 20;

/// Any key.
const KEY: [&str; 2] = ["--key-file=/dev/zero", "--keyfile-size=32"];

/// Programs that put something on a file: what they are called with before its name, and told.
const MAKERS: [(&[&str], &str); 10] = [
    (&["mkfs.ext4", "-q", "-F"], ""),
    (&["mkfs.xfs", "-q", "-f"], ""),
    (&["mkfs.btrfs", "-q", "-f"], ""),
    (&["mkfs.f2fs", "-q"], ""),
    (&["mkntfs", "-q", "-F", "-f"], ""),
    (&["mkswap", "-q"], ""),
    (&["sgdisk", "-o", "-n", "1:2048:+64M"], ""),
    (&["sfdisk", "-q"], "label: dos\n,\n"),
    (&["cryptsetup", "luksFormat", "-q", "--type=luks1", KEY[0], KEY[1]], ""),
    (&["cryptsetup", "luksFormat", "-q", "--type=luks2", "--pbkdf=pbkdf2", KEY[0], KEY[1]], ""),
];

/// What wipefs finds on a file.
fn signatures(path: &str) -> String {
    let found = Command::new("wipefs").args(["-n", path]).output().unwrap();
    String::from_utf8(found.stdout).unwrap()
}

/// Whether the program is there and has done it.
fn make((args, told): (&[&str], &str), path: &str) -> bool {
    let mut made = Command::new(args[0]);
    made.args(&args[1..]).arg(path).stdin(Stdio::piped());
    let mut made = match made.stdout(Stdio::null()).stderr(Stdio::piped()).spawn() {
        Ok(made) => made,
        Err(error) => {
            eprintln!("SKIPPED: {}: {error}", args[0]);
            return false;
        }
    };
    made.stdin.take().unwrap().write_all(told.as_bytes()).unwrap();
    let ended = made.wait_with_output().unwrap();
    assert!(ended.status.success(), "{args:?}: {}", String::from_utf8_lossy(&ended.stderr));
    true
}

fn renewed(path: &str) {
    drop(std::fs::remove_file(path));
    File::create(path).unwrap().set_len(SIZE).unwrap();
}

#[test]
fn nothing_is_left_that_wipefs_knows_where_force_takes_a_drive() {
    if Command::new("wipefs").arg("--version").output().is_err() {
        return eprintln!("SKIPPED: no wipefs");
    }
    let shelf = Shelf::new();
    let [path, other] = ["a.img", "b.img"].map(|name| shelf.path(name));
    for maker in MAKERS {
        for verb in
            [&["array", "create", "raid0:2", &other, "--force"][..], &["fs", "mkfs", "--force"]]
        {
            renewed(&path);
            renewed(&other);
            if !make(maker, &path) {
                continue;
            }
            assert_ne!(signatures(&path), "", "{maker:?} has made nothing");
            let unforced = levelhead(&[&verb[..verb.len() - 1], &[&path]].concat());
            assert!(unforced.refusal().contains(" holds "), "{maker:?}: {unforced:?}");
            levelhead(&[verb, &[&path]].concat()).good();
            assert_eq!(signatures(&path), "", "{maker:?} is still found after {verb:?}");
        }
    }
}

/// Redundancy would not match the data any more where some of it is erased.
#[test]
fn assume_clean_is_refused_where_what_is_erased_lies_in_the_data() {
    let shelf = Shelf::new();
    let drives = shelf.drives(3, SIZE);
    let file = File::options().write(true).open(&drives[1]).unwrap();
    file.write_all_at(b"_BHRfS_M", (64 << 20) + 0x40).unwrap();
    let before = std::fs::metadata(&drives[0]).unwrap().modified().unwrap();
    let create = ["array", "create", "raid5:2+1", "--force", "--assume-clean"];
    let ended = levelhead(&[&create[..], &refs(&drives)].concat());
    let sentence = ended.refusal();
    assert!(sentence.contains("holds a btrfs file system at byte 67108864"), "{sentence}");
    assert_eq!(std::fs::metadata(&drives[0]).unwrap().modified().unwrap(), before);
    levelhead(&[&create[..4], &refs(&drives)].concat()).good();
}
