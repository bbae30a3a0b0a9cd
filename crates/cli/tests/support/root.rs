//! A made-up root: drives, arrays and what the kernel counts of them, as files that can be changed while a watch reads them.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use tempfile::TempDir;

/// What is written where a `stat` stands, so that each one takes the place of all of the one before.
const STAT_LEN: usize = 160;

/// See the module.
pub(crate) struct Root {
    dir: TempDir,
    drives: Vec<Counted>,
}

/// What the kernel counts of one drive.
struct Counted {
    stat: File,
    ended: u64,
    millis: u64,
    inside: u64,
}

impl Root {
    /// `count` drives of one model in arrays of ten (RAID 6), or fewer in the last.
    pub(crate) fn new(count: usize) -> Self {
        let mut root = Self { dir: TempDir::new().unwrap(), drives: Vec::new() };
        for at in 0..count {
            let name = drive(at);
            let block = format!("sys/block/{name}");
            root.write(&format!("{block}/device/wwid"), &format!("naa.5000c500{at:08x}\n"));
            root.write(&format!("{block}/device/model"), "ST20000NM007D-3D\n");
            root.write(&format!("{block}/device/timeout"), "30\n");
            root.write(&format!("{block}/queue/rotational"), "1\n");
            // Where the block device would be.
            root.write(&format!("dev/{name}"), "");
            fs::create_dir_all(root.path().join(&block).join(format!("{name}1"))).unwrap();
            let stat = File::create(root.path().join(&block).join("stat")).unwrap();
            root.drives.push(Counted { stat, ended: 0, millis: 0, inside: 0 });
            root.put(at);
        }
        for array in 0..count.div_ceil(10) {
            let md = format!("sys/block/md{array}/md");
            root.write(&format!("{md}/level"), "raid6\n");
            root.write(&format!("{md}/sync_action"), "idle\n");
            for at in array * 10..count.min(array * 10 + 10) {
                let part = format!("{}1", drive(at));
                root.write(&format!("{md}/dev-{part}/slot"), &format!("{}\n", at % 10));
                root.write(&format!("{md}/dev-{part}/state"), "in_sync\n");
            }
        }
        root
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn text(&self) -> &str {
        self.path().to_str().unwrap()
    }

    pub(crate) fn write(&self, file: &str, text: &str) {
        let path = self.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(crate) fn read(&self, file: &str) -> String {
        fs::read_to_string(self.path().join(file)).unwrap()
    }

    /// A FIFO in the place of a file: to read it is to wait for a writer.
    pub(crate) fn hang(&self, file: &str) {
        let path = self.path().join(file);
        drop(fs::remove_file(&path));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        mknodat(CWD, &path, FileType::Fifo, Mode::from_bits_truncate(0o600), 0).unwrap();
    }

    /// A program in the folder that [`Root::programs`] names.
    pub(crate) fn program(&self, name: &str, text: &str) {
        self.write(&format!("bin/{name}"), &format!("#!/bin/sh\n{text}\n"));
        let path = self.path().join("bin").join(name);
        fs::set_permissions(path, PermissionsExt::from_mode(0o700)).unwrap();
    }

    /// A search path with this root's programs first.
    pub(crate) fn programs(&self) -> String {
        let bin: PathBuf = self.path().join("bin");
        format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default())
    }

    /// A number of reads of `millis` ms each end on a drive.
    pub(crate) fn end(&mut self, at: usize, count: u64, millis: u64) {
        self.drives[at].ended += count;
        self.drives[at].millis += count * millis;
        self.put(at);
    }

    /// A number of commands is inside a drive.
    pub(crate) fn inside(&mut self, at: usize, count: u64) {
        self.drives[at].inside = count;
        self.put(at);
    }

    fn put(&self, at: usize) {
        let Counted { stat, ended, millis, inside } = &self.drives[at];
        let sectors = ended * 8;
        let line = format!("{ended} 0 {sectors} {millis} 0 0 0 0 {inside} 0 0 0 0 0 0 0 0");
        // In one write of the same length, so that no reader sees half of it.
        stat.write_all_at(format!("{line:<STAT_LEN$}\n").as_bytes(), 0).unwrap();
    }
}

/// The kernel's name of a drive: `sda` .. `sdz`, `sdaa` ..
pub(crate) fn drive(at: usize) -> String {
    let letter = |at: usize| char::from(b'a' + (at % 26) as u8);
    match at / 26 {
        0 => format!("sd{}", letter(at)),
        more => format!("sd{}{}", letter(more - 1), letter(at)),
    }
}
