//! How far the kernel reads ahead of a program: as far as one request goes, instead of an eighth of that.
//!
//! The kernel lets a filesystem of this kind ask for less than its usual 128 KiB only. Root may change it where the kernel shows
//! it, once the filesystem has said what it can do.

use std::fs;
use std::path::{Path, PathBuf};

/// Sets it, in KiB; where that is not allowed, programs that read in sequence ask in smaller parts, and nothing else is lost.
pub(crate) fn widen(point: &Path, kib: u32) {
    let Some(device) = mounted_device(point) else { return };
    for suffix in ["", "-fuseblk"] {
        let path = PathBuf::from(format!("/sys/class/bdi/{device}{suffix}/read_ahead_kb"));
        if path.exists() {
            drop(fs::write(path, kib.to_string()));
        }
    }
}

/// The numbers of what is mounted last on a directory, without a question to it.
pub(crate) fn mounted_device(point: &Path) -> Option<String> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    device_of(&mounts, point).map(str::to_owned)
}

fn device_of<'a>(mounts: &'a str, point: &Path) -> Option<&'a str> {
    let point = escaped(point.to_str()?);
    let mut found = None;
    for line in mounts.lines() {
        let mut fields = line.split(' ');
        if let (Some(device), Some(on)) = (fields.nth(2), fields.nth(1))
            && on == point
        {
            found = Some(device);
        }
    }
    found
}

/// As the kernel shows it: spaces and the like are octal there.
fn escaped(point: &str) -> String {
    let mut text = String::with_capacity(point.len());
    for letter in point.chars() {
        match letter {
            ' ' | '\t' | '\n' | '\\' => text.push_str(&format!("\\{:03o}", letter as u32)),
            other => text.push(other),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_mounted_last_on_a_directory_counts() {
        let mounts = "22 27 0:21 / /proc rw,nosuid - proc proc rw\n\
                      90 27 0:45 / /mnt/a\\040b rw - ext4 /dev/sda rw\n\
                      91 90 0:46 / /mnt/a\\040b rw - fuse.levelhead /x.img rw\n";
        assert_eq!(device_of(mounts, Path::new("/mnt/a b")), Some("0:46"));
        assert_eq!(device_of(mounts, Path::new("/proc")), Some("0:21"));
        assert_eq!(device_of(mounts, Path::new("/mnt")), None);
    }
}
