//! The names under which mount(8), mkfs(8) and fsck(8) call this program, and commands that it had once.
//!
//! ```text
//!   mount.levelhead TARGET DIR [-sfnv] [-N NAMESPACE] [-t TYPE] [-o OPTIONS]     levelhead fs mount ..
//!   mkfs.levelhead [OPTIONS] TARGET                                              levelhead fs mkfs ..
//!   fsck.levelhead [-apynf] TARGET                                               levelhead fs check .., with other exit codes
//! ```

use std::ffi::{OsStr, OsString};
use std::path::Path;

/// Flags of mount(8)'s helpers that have a value and mean nothing here.
const MOUNT_VALUES: [&str; 2] = ["-N", "-t"];

/// Letters of flags that mean nothing here: be tolerant, write no table, say more.
const MOUNT_LETTERS: &str = "snv";

/// Whether fsck(8) calls, by its name for this program.
pub(crate) fn is_fsck(program: Option<&OsStr>) -> bool {
    program.and_then(|program| Path::new(program).file_name()) == Some("fsck.levelhead".as_ref())
}

/// The command line as it would be without another name.
pub(crate) fn arguments(given: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let given: Vec<OsString> = given.collect();
    let Some((program, rest)) = given.split_first() else { return given };
    let verb = match Path::new(program).file_name().and_then(OsStr::to_str) {
        Some("mount.levelhead") => "mount",
        Some("mkfs.levelhead") => "mkfs",
        Some(_) | None => return given,
    };
    let rest = if verb == "mount" { without_helper_flags(rest) } else { rest.to_vec() };
    let program = OsString::from("levelhead");
    [program, "fs".into(), verb.into()].into_iter().chain(rest).collect()
}

/// Commands that are another program's now: what was typed, and what that is today.
const MOVED: [(&[&str], &str); 9] = [
    (&["replay"], "levelhead-lab replay"),
    (&["study"], "levelhead-lab study"),
    (&["plan"], "levelhead-lab plan"),
    (&["ecc"], "levelhead-lab ecc"),
    (&["rtl"], "levelhead-lab rtl"),
    (&["fleet"], "levelhead-lab fleet"),
    (&["drive", "model"], "levelhead-lab drive model"),
    (&["drive", "measure"], "levelhead-lab drive measure"),
    (&["fs", "replay"], "levelhead-lab fs replay"),
];

/// Says where a command is now that was one of this program's once.
pub(crate) fn moved(arguments: &[OsString]) -> Option<String> {
    let words: Vec<&str> = arguments.iter().skip(1).filter_map(|word| word.to_str()).collect();
    let typed = || words.iter().copied().filter(|word| !["--json", "--quiet"].contains(word));
    if typed().next() == Some("demo") && words.contains(&"--compare") {
        return Some("'demo --compare' is now 'levelhead-lab demo'".to_owned());
    }
    let (before, now) =
        MOVED.iter().find(|(before, _)| typed().take(before.len()).eq(before.iter().copied()))?;
    Some(format!("'{}' is now '{now}'", before.join(" ")))
}

fn without_helper_flags(given: &[OsString]) -> Vec<OsString> {
    let mut kept = Vec::new();
    let mut rest = given.iter();
    while let Some(argument) = rest.next() {
        let text = argument.to_str().unwrap_or_default();
        if MOUNT_VALUES.contains(&text) {
            rest.next();
            continue;
        }
        let letters = text.strip_prefix('-').filter(|letters| !letters.is_empty());
        if !letters.is_some_and(|letters| letters.chars().all(|one| MOUNT_LETTERS.contains(one))) {
            kept.push(argument.clone());
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(line: &str) -> String {
        let given = line.split(' ').map(OsString::from);
        let arguments = arguments(given);
        let texts: Vec<&str> = arguments.iter().map(|one| one.to_str().unwrap()).collect();
        texts.join(" ")
    }

    #[test]
    fn names_stand_for_their_commands() {
        for (line, expected) in [
            ("levelhead plan code", "levelhead plan code"),
            ("/sbin/mount.levelhead a.img /mnt -o ro", "levelhead fs mount a.img /mnt -o ro"),
            (
                "mount.levelhead a.img /mnt -sv -n -t fuse.levelhead -o rw,noexec",
                "levelhead fs mount a.img /mnt -o rw,noexec",
            ),
            ("mkfs.levelhead --force a.img", "levelhead fs mkfs --force a.img"),
        ] {
            assert_eq!(named(line), expected);
        }
        assert!(is_fsck(Some("/sbin/fsck.levelhead".as_ref())));
        assert!(!is_fsck(Some("levelhead".as_ref())) && !is_fsck(None));
        assert!(arguments(std::iter::empty()).is_empty());
    }
}
