//! The names of files that have sectors which are lost: a filesystem has a list of their inodes, and a walk finds what they are called.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use levelhead_fs::{Answer, What};
use levelhead_units::escaped;
use serde::Serialize;

use super::alone::Alone;
use levelhead_app::AppError;

/// The most names that a walk looks at.
const NAMES_MAX: usize = 2_000_000;

/// Bytes of names that are listed at a time.
const LISTED: usize = 1 << 16;

/// The upper four bits of a directory's mode.
const DIRECTORY: u8 = 4;

/// A file with sectors that are lost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct DamagedFile {
    inode: u64,
    /// One of its names, from the root; nothing if none was found.
    path: Option<String>,
}

/// Names that a walk has found, of inodes that it looks for.
struct Walk {
    wanted: BTreeSet<u64>,
    found: BTreeMap<u64, PathBuf>,
    looked_at: usize,
}

impl DamagedFile {
    pub(super) fn text(&self) -> String {
        match &self.path {
            Some(path) => escaped(path).into_owned(),
            None => format!("inode {}, whose name was not found", self.inode),
        }
    }
}

impl Walk {
    fn new(inodes: &[u64]) -> Self {
        let wanted = inodes.iter().copied().collect();
        Self { wanted, found: BTreeMap::new(), looked_at: 0 }
    }

    fn note(&mut self, inode: u64, path: impl FnOnce() -> PathBuf) {
        self.looked_at += 1;
        if self.wanted.contains(&inode) {
            self.found.entry(inode).or_insert_with(path);
        }
    }

    fn is_over(&self) -> bool {
        self.found.len() == self.wanted.len() || self.looked_at >= NAMES_MAX
    }

    fn end(self) -> Vec<DamagedFile> {
        let Self { wanted, found, .. } = self;
        let path = |inode: &u64| Some(found.get(inode)?.display().to_string());
        wanted.iter().map(|inode| DamagedFile { inode: *inode, path: path(inode) }).collect()
    }
}

/// Of what is mounted on a directory. What cannot be listed is passed over.
pub(super) fn names_below(point: &Path, inodes: &[u64]) -> Vec<DamagedFile> {
    let mut walk = Walk::new(inodes);
    let mut directories = VecDeque::from([point.to_owned()]);
    while let Some(directory) = directories.pop_front()
        && !walk.is_over()
    {
        for entry in std::fs::read_dir(&directory).into_iter().flatten().flatten() {
            let (Ok(kind), Ok(known)) = (entry.file_type(), entry.metadata()) else { continue };
            let path = entry.path();
            let below = path.strip_prefix(point).unwrap_or(&path);
            walk.note(known.ino(), || Path::new("/").join(below));
            if kind.is_dir() {
                directories.push_back(path);
            }
        }
    }
    walk.end()
}

/// Of what is not mounted.
pub(super) fn names_in(alone: &mut Alone, inodes: &[u64]) -> Result<Vec<DamagedFile>, AppError> {
    let mut walk = Walk::new(inodes);
    let mut directories = VecDeque::from([(alone.root(), PathBuf::from("/"))]);
    while let Some((inode, directory)) = directories.pop_front()
        && !walk.is_over()
    {
        let mut after = 0;
        loop {
            let room = LISTED;
            let what = What::ReadDirectory { inode, after, room, with_attributes: false };
            let Answer::Entries(entries) = alone.run(what)? else { break };
            let Some(last) = entries.last() else { break };
            after = last.cookie;
            for entry in entries.iter().filter(|entry| !matches!(&entry.name[..], b"." | b"..")) {
                let path = || directory.join(OsStr::from_bytes(&entry.name));
                walk.note(entry.inode, path);
                if entry.kind == DIRECTORY {
                    directories.push_back((entry.inode, path()));
                }
            }
            if walk.is_over() {
                break;
            }
        }
    }
    Ok(walk.end())
}
