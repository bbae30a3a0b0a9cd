//! Random use of a file system, held against what every file should be: what fsx does for one file, and fsstress for a
//! tree.
//!
//! Files are written, past their ends too, by way of the page cache and past it, synchronised, cut, punched, read,
//! renamed over each other, and removed. Now and then the kernel forgets what it has cached, so that reads come from the
//! device.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use levelhead_stats::{Rng, Streams};
use rustix::fs::{FallocateFlags, OFlags};

/// The most files at a time.
const FILES_MAX: u64 = 64;

/// The most bytes of a file.
const FILE_MAX: u64 = 1 << 20;

/// The most bytes of a write.
const WRITE_MAX: u64 = 128 << 10;

/// What every alignment that a device may want divides.
const ALIGNED: usize = 4096;

/// How far a load is.
#[derive(Default)]
pub(crate) struct Progress {
    /// Set to end it.
    pub(crate) is_over: AtomicBool,
    /// Operations done.
    pub(crate) done: AtomicU64,
}

/// A tree of files, and what each of them should hold.
pub(crate) struct Tree {
    root: PathBuf,
    rng: Rng,
    files: BTreeMap<u64, Vec<u8>>,
    /// Bytes written, bytes read and compared.
    pub(crate) written: u64,
    pub(crate) compared: u64,
}

impl Tree {
    pub(crate) fn new(root: &Path, seed: u64) -> io::Result<Self> {
        for folder in 0..4 {
            fs::create_dir(root.join(format!("folder{folder}")))?;
        }
        let rng = Streams::new(seed).stream("guest/files");
        Ok(Self { root: root.to_path_buf(), rng, files: BTreeMap::new(), written: 0, compared: 0 })
    }

    /// Goes on until it is told to end, or until an operation fails or finds what should not be.
    pub(crate) fn run(&mut self, progress: &Progress) -> io::Result<()> {
        while !progress.is_over.load(Ordering::SeqCst) {
            let number = progress.done.load(Ordering::SeqCst);
            self.operate().map_err(|error| {
                io::Error::other(format!("{}: operation {number}: {error}", self.root.display()))
            })?;
            progress.done.fetch_add(1, Ordering::SeqCst);
        }
        Ok(())
    }

    /// Compares every file, and that there are no others.
    pub(crate) fn check(&mut self) -> io::Result<()> {
        let mut found = 0;
        for folder in 0..4 {
            found += fs::read_dir(self.root.join(format!("folder{folder}")))?.count();
        }
        if found != self.files.len() {
            let have = self.files.len();
            return Err(io::Error::other(format!("{found} files where {have} should be")));
        }
        for (&name, content) in &self.files {
            let bytes = fs::read(path(&self.root, name))?;
            same(name, 0, &bytes, content)?;
            self.compared += bytes.len() as u64;
        }
        Ok(())
    }

    fn operate(&mut self) -> io::Result<()> {
        let name = self.rng.below(FILES_MAX);
        match self.rng.below(100) {
            0..45 => self.write(name),
            45..70 => self.read(name),
            70..78 => self.cut(name),
            78..84 => self.punch(name),
            84..90 => self.rename(name),
            90..93 => self.remove(name),
            93..98 => self.synchronise(name),
            98 => fs::write("/proc/sys/vm/drop_caches", "3"),
            _ => {
                let all = File::open(&self.root)?;
                rustix::fs::syncfs(all).map_err(io::Error::from)
            }
        }
    }

    fn write(&mut self, name: u64) -> io::Result<()> {
        let content = self.files.entry(name).or_default();
        let mut at = self.rng.below(FILE_MAX - WRITE_MAX) as usize;
        let mut len = 1 + self.rng.below(WRITE_MAX) as usize;
        let way = self.rng.below(8);
        let mut options = OpenOptions::new();
        options.write(true).create(true);
        let is_direct = way == 0;
        if is_direct {
            options.custom_flags(OFlags::DIRECT.bits() as i32);
            (at, len) = (at / ALIGNED * ALIGNED, len.next_multiple_of(ALIGNED));
        } else if way == 1 {
            options.custom_flags(OFlags::DSYNC.bits() as i32);
        }
        let mut room = vec![0; len + ALIGNED];
        // Direct writes want memory that is aligned, too.
        let skipped = room.as_ptr().align_offset(ALIGNED);
        let bytes = &mut room[skipped..skipped + len];
        self.rng.fill(bytes);
        let file = options.open(path(&self.root, name))?;
        file.write_all_at(bytes, at as u64)?;
        if content.len() < at + len {
            content.resize(at + len, 0);
        }
        content[at..at + len].copy_from_slice(bytes);
        self.written += len as u64;
        Ok(())
    }

    fn read(&mut self, name: u64) -> io::Result<()> {
        let Some(content) = self.files.get(&name).filter(|content| !content.is_empty()) else {
            let is_there = path(&self.root, name).exists();
            let expected = self.files.contains_key(&name);
            let wrong = || io::Error::other(format!("file {name} is there: {is_there}"));
            return (is_there == expected).then_some(()).ok_or_else(wrong);
        };
        let file = File::open(path(&self.root, name))?;
        if file.metadata()?.len() != content.len() as u64 {
            return Err(io::Error::other(format!("file {name} is not as long as it should be")));
        }
        let at = self.rng.below(content.len() as u64) as usize;
        let mut bytes = vec![0; content.len() - at];
        file.read_exact_at(&mut bytes, at as u64)?;
        same(name, at, &bytes, &content[at..])?;
        self.compared += bytes.len() as u64;
        Ok(())
    }

    fn cut(&mut self, name: u64) -> io::Result<()> {
        let Some(content) = self.files.get_mut(&name) else { return Ok(()) };
        let len = self.rng.below(FILE_MAX);
        OpenOptions::new().write(true).open(path(&self.root, name))?.set_len(len)?;
        content.resize(len as usize, 0);
        Ok(())
    }

    fn punch(&mut self, name: u64) -> io::Result<()> {
        let Some(content) = self.files.get_mut(&name) else { return Ok(()) };
        let (at, len) = (self.rng.below(FILE_MAX), 1 + self.rng.below(WRITE_MAX));
        let file = OpenOptions::new().write(true).open(path(&self.root, name))?;
        let mode = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        rustix::fs::fallocate(file, mode, at, len)?;
        let end = content.len().min((at + len) as usize);
        if (at as usize) < end {
            content[at as usize..end].fill(0);
        }
        Ok(())
    }

    fn rename(&mut self, name: u64) -> io::Result<()> {
        let Some(content) = self.files.remove(&name) else { return Ok(()) };
        let other = self.rng.below(FILES_MAX);
        fs::rename(path(&self.root, name), path(&self.root, other))?;
        self.files.insert(other, content);
        Ok(())
    }

    fn remove(&mut self, name: u64) -> io::Result<()> {
        if self.files.remove(&name).is_none() {
            return Ok(());
        }
        fs::remove_file(path(&self.root, name))
    }

    fn synchronise(&mut self, name: u64) -> io::Result<()> {
        if !self.files.contains_key(&name) {
            return Ok(());
        }
        File::open(path(&self.root, name))?.sync_all()
    }
}

fn path(root: &Path, name: u64) -> PathBuf {
    root.join(format!("folder{}/file{name}", name % 4))
}

fn same(name: u64, at: usize, bytes: &[u8], expected: &[u8]) -> io::Result<()> {
    if bytes == expected {
        return Ok(());
    }
    let first = bytes.iter().zip(expected).position(|(found, right)| found != right);
    let what = match first {
        Some(first) => format!("file {name}: byte {} is wrong", at + first),
        None => format!("file {name}: {} bytes, not {}", at + bytes.len(), at + expected.len()),
    };
    Err(io::Error::other(what))
}
