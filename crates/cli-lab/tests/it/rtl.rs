//! `levelhead-lab rtl ..` as it is typed.

use std::fs;
use std::path::Path;

use crate::support::{Shelf, levelhead};

/// What lies in a folder, by name.
fn contents(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let entries = fs::read_dir(folder).unwrap();
    let mut contents: Vec<_> = entries
        .map(|entry| {
            let entry = entry.unwrap();
            (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap())
        })
        .collect();
    contents.sort_unstable();
    contents
}

#[test]
fn same_command_writes_the_same_bytes_and_says_what_it_wrote() {
    let shelf = Shelf::new();
    for kind in ["sector", "polynomial"] {
        let [one, two] = ["one", "two"].map(|name| shelf.path(&format!("{kind}-{name}")));
        let emit = |folder: &str| {
            levelhead(&["rtl", "emit", "--code", "3,20", "--kind", kind, "-o", folder, "--json"])
        };
        let value = emit(&one).json();
        emit(&two).good();
        let written = contents(Path::new(&one));
        assert_eq!(written, contents(Path::new(&two)));
        let said = value["files"].as_array().unwrap();
        assert_eq!(said.len(), written.len());
        for (name, bytes) in &written {
            let said = said.iter().find(|said| said["name"] == **name).unwrap();
            assert_eq!(said["bytes"].as_u64(), Some(bytes.len() as u64), "{name}");
        }
        let top = format!("{kind}.sv");
        assert!(written.iter().any(|(name, _)| *name == top), "{value}");
    }
}

#[test]
fn folder_in_use_is_left_alone_but_with_force() {
    let shelf = Shelf::new();
    let folder = shelf.path("engine");
    let emit = ["rtl", "emit", "--code", "3,20", "-o", &folder];
    levelhead(&emit).good();
    let kept = contents(Path::new(&folder));
    let other = [&emit[..], &["--seed", "8"]].concat();
    let refused = levelhead(&other);
    let sentence = "is not empty; --force writes over files of the same names";
    assert!(refused.refusal().contains(sentence), "{}", refused.refusal());
    assert_eq!(contents(Path::new(&folder)), kept);
    levelhead(&[&other[..], &["--force"]].concat()).good();
    assert_ne!(contents(Path::new(&folder)), kept);
}

#[test]
fn what_no_engine_has_is_refused_before_anything_is_written() {
    let shelf = Shelf::new();
    let folder = shelf.path("engine");
    for (options, sentence) in [
        (&["--code", "0,20"][..], "redundant symbols, not 0"),
        (&["--code", "300,500"], "1 to 255 redundant symbols, not 300"),
        (&["--code", "65,500", "--kind", "polynomial"], "1 to 64 redundant symbols, not 65"),
        (&["--code", "4,1020", "--kind", "polynomial"], "at most 1023 symbols, not 1024"),
        (&["--code", "9,70000"], "'9,70000' is not a code"),
        (&["--code", "9,60000"], "--code 9,60000: a testbench plays codes of at most 4096 symbols"),
        (&["--kind", "decoder"], "expected sector or polynomial"),
        (&["--sector-size", "300"], "256 to 65536 bytes, a power of two"),
        (&["--sector-size", "131072"], "256 to 65536 bytes, a power of two"),
        (&["--patterns", "0"], "a testbench plays at least 1"),
        (&["--patterns", "18446744073709551615"], "would take more than 512 MiB"),
        (&["--patterns", "18446744073709551615", "--kind", "polynomial"], "more than 512 MiB"),
        (&["--code", "255,3841"], "would take more than 512 MiB"),
        (&["--code", "9,4000", "--sector-size", "65536"], "would take more than 512 MiB"),
    ] {
        let refused = levelhead(&[&["rtl", "emit", "-o", &folder], options].concat());
        assert!(refused.refusal().contains(sentence), "{options:?}: {}", refused.refusal());
        assert!(!Path::new(&folder).exists(), "{options:?}");
    }
}
