//! Sentences for the system's journal.
//!
//! A service's standard error may be a stream of the systemd journal, which files each line under the
//! priority that the line begins with: `<4>` is a warning. Whether it is one, the environment says
//! (systemd.exec(5), `JOURNAL_STREAM`); the markers are those of sd-daemon(3).

use std::fs::{File, Metadata};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;

use levelhead_app_array::Priority;

/// Whether standard error is a stream of the journal.
pub(crate) fn is_standard_error() -> bool {
    let Some(stream) = std::env::var_os("JOURNAL_STREAM") else { return false };
    let own = std::io::stderr().as_fd().try_clone_to_owned().map(File::from);
    let is_same = |own: Metadata| is_stream(&stream.to_string_lossy(), own.dev(), own.ino());
    own.and_then(|own| own.metadata()).is_ok_and(is_same)
}

/// Whether `stream`, a device's number and an inode's with a colon between, is this one.
fn is_stream(stream: &str, device: u64, inode: u64) -> bool {
    let numbers = stream.split_once(':').map(|(device, inode)| (device.parse(), inode.parse()));
    numbers == Some((Ok(device), Ok(inode)))
}

/// The sentence as it is written: with its priority if the journal reads it.
pub(crate) fn line(to_journal: bool, priority: Priority, sentence: &str) -> String {
    let marker = match priority {
        Priority::Error => "<3>",
        Priority::Warning => "<4>",
        Priority::Notice => "<5>",
        Priority::Info => "<6>",
    };
    format!("{}levelhead: {sentence}", if to_journal { marker } else { "" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stream_is_known_by_device_and_inode() {
        assert!(is_stream("9:28345", 9, 28345));
        for other in
            ["9:28346", "8:28345", "9:", ":28345", "", "9", "9:28345:1", "nine:28345", "9: 28345"]
        {
            assert!(!is_stream(other, 9, 28345), "{other}");
        }
    }

    #[test]
    fn lines_carry_their_priority_for_the_journal_only() {
        for (priority, marked) in [
            (Priority::Error, "<3>levelhead: x"),
            (Priority::Warning, "<4>levelhead: x"),
            (Priority::Notice, "<5>levelhead: x"),
            (Priority::Info, "<6>levelhead: x"),
        ] {
            assert_eq!(line(true, priority, "x"), marked);
            assert_eq!(line(false, priority, "x"), "levelhead: x");
        }
    }
}
