//! The program that answers for a filesystem is killed under writers that know what they were promised.
//!
//! Each writer has a folder, and does one of three things at a time: it appends to a file, overwrites pages of another one, or brings a
//! new file under its name. What a sync has promised must be there after the next mount, and nothing may be half done: a page has one
//! of the contents that were written since it was synced last, and a name has all of its file.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use levelhead_stats::{Rng, Streams};

use crate::support::{Shelf, command, levelhead};

const PAGE: usize = 4_096;

/// Pages of the file that is overwritten.
const PAGES: u64 = 300;

/// Bytes of the file that grows, at most.
const GROWN_MAX: u64 = 400_000;

/// Names that a writer keeps.
const NAMES_MAX: usize = 60;

/// Kinds of the writers' files, where there are kinds.
const KINDS: [&str; 4] = ["auto", "b", "mutable", "a"];

/// How long a mount may take.
const MOUNT_MAX: Duration = Duration::from_secs(60);

/// What one of them has written, and what it knows of that.
struct Writer {
    number: u64,
    folder: PathBuf,
    rng: Rng,
    /// Bytes of the file that grows that were synced.
    grown: u64,
    pages: BTreeMap<u64, Versions>,
    /// Files under their names, by the number of their content.
    names: BTreeMap<u64, u64>,
    last: u64,
    /// Promises that were given.
    promises: u64,
}

/// What a page may hold.
#[derive(Default)]
struct Versions {
    synced: Option<u64>,
    since: Vec<u64>,
}

impl Writer {
    fn new(number: u64, point: &Path) -> Self {
        Self {
            number,
            folder: point.join(format!("writer {number}")),
            rng: Streams::new(number).stream("writer"),
            grown: 0,
            pages: BTreeMap::new(),
            names: BTreeMap::new(),
            last: 0,
            promises: 0,
        }
    }

    /// Writes until that cannot be done any more.
    fn write(mut self) -> Self {
        while let Ok(()) = self.step() {
            self.promises += 1;
        }
        self
    }

    fn step(&mut self) -> io::Result<()> {
        match self.rng.below(3) {
            0 => self.append(),
            1 => self.overwrite(),
            _ => self.bring_new(),
        }
    }

    fn append(&mut self) -> io::Result<()> {
        let count = 1 + self.rng.below(20_000);
        if self.grown + count > GROWN_MAX {
            return Ok(());
        }
        let file = self.open("grown")?;
        file.write_all_at(&self.grown_bytes(self.grown, count), self.grown)?;
        file.sync_all()?;
        self.grown += count;
        Ok(())
    }

    fn overwrite(&mut self) -> io::Result<()> {
        let file = self.open("pages")?;
        let version = self.next();
        let (first, count) = (self.rng.below(PAGES), 1 + self.rng.below(5));
        let pages: Vec<u64> = (0..count).map(|at| (first + at * 37) % PAGES).collect();
        for &page in &pages {
            // From here on it may be there.
            self.pages.entry(page).or_default().since.push(version);
            file.write_all_at(&self.content(version, PAGE), page * PAGE as u64)?;
        }
        file.sync_data()?;
        for page in pages {
            self.pages.insert(page, Versions { synced: Some(version), since: Vec::new() });
        }
        Ok(())
    }

    fn bring_new(&mut self) -> io::Result<()> {
        let version = self.next();
        let (hidden, name) =
            (self.folder.join("hidden"), self.folder.join(format!("new {version}")));
        let file = File::create(&hidden)?;
        file.write_all_at(&self.content(version, version as usize % 9_000 + 1), 0)?;
        file.sync_all()?;
        fs::rename(&hidden, &name)?;
        File::open(&self.folder)?.sync_all()?;
        self.names.insert(version, version);
        if self.names.len() > NAMES_MAX
            && let Some((oldest, _)) = self.names.pop_first()
        {
            fs::remove_file(self.folder.join(format!("new {oldest}")))?;
        }
        Ok(())
    }

    fn next(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    fn open(&self, name: &str) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false).open(self.folder.join(name))
    }

    /// Each byte follows from its place.
    fn grown_bytes(&self, from: u64, count: u64) -> Vec<u8> {
        (from..from + count).map(|at| ((at * 131 + self.number) % 251) as u8).collect()
    }

    fn content(&self, version: u64, count: usize) -> Vec<u8> {
        let word = (self.number << 48 | version).to_le_bytes();
        word.iter().copied().cycle().take(count).collect()
    }

    /// What is missing or wrong.
    fn look(&mut self) -> Vec<String> {
        let mut wrong = Vec::new();
        let grown = fs::read(self.folder.join("grown")).unwrap_or_default();
        let synced = self.grown_bytes(0, self.grown);
        if !grown.starts_with(&synced) {
            wrong.push(format!("of {} bytes that were synced some are gone", self.grown));
        }
        let bytes = fs::read(self.folder.join("pages")).unwrap_or_default();
        let mut pages = std::mem::take(&mut self.pages);
        for (&page, versions) in &mut pages {
            let held = bytes.chunks(PAGE).nth(page as usize).unwrap_or_default();
            let is = |version: &u64| held == self.content(*version, PAGE);
            let found = versions.synced.iter().chain(&versions.since).copied().find(is);
            let is_new = versions.synced.is_none() && held.iter().all(|&byte| byte == 0);
            if found.is_none() && !is_new {
                let synced = versions.synced;
                wrong.push(format!("page {page} is not {synced:?} nor {:?}", versions.since));
            }
            *versions = Versions { synced: found, since: Vec::new() };
        }
        self.pages = pages;
        for version in self.names.values() {
            let held = fs::read(self.folder.join(format!("new {version}")));
            let content = self.content(*version, *version as usize % 9_000 + 1);
            if held.as_ref().ok() != Some(&content) {
                wrong.push(format!("file {version} is not there as it was synced"));
            }
        }
        wrong
    }
}

/// A mount that stays in the foreground, until it is killed.
struct Mount(Child);

impl Mount {
    fn new(target: &str, point: &Path) -> Self {
        let shown = point.to_str().expect("a temporary folder's name is text");
        let mut command = command(&["fs", "mount", target, shown, "--foreground"]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().expect("the program is there");
        let (begun, outside) = (Instant::now(), device_of(point.parent().expect("it has one")));
        while device_of(point) == outside {
            let ended = child.try_wait().expect("it was started");
            assert!(ended.is_none(), "the mount has ended: {ended:?}");
            assert!(begun.elapsed() < MOUNT_MAX, "it is not mounted after {MOUNT_MAX:?}");
            thread::sleep(Duration::from_millis(5));
        }
        Self(child)
    }

    fn kill(mut self) {
        self.0.kill().expect("it was running");
        self.0.wait().expect("it was started");
    }
}

fn device_of(folder: &Path) -> Option<u64> {
    fs::metadata(folder).ok().map(|known| std::os::unix::fs::MetadataExt::dev(&known))
}

/// Kills so often; `mkfs` says how the filesystem is made. Returns how many promises were given.
pub(crate) fn kill_under_writers(mkfs: &[&str], rounds: u64) -> u64 {
    let shelf = Shelf::new();
    let (target, point) = (shelf.path("killed.img"), shelf.dir.path().join("killed"));
    levelhead(&[&["fs", "mkfs", &target, "--size", "256MiB"], mkfs].concat()).good();
    fs::create_dir(&point).unwrap();
    let shown = point.to_str().expect("a temporary folder's name is text");
    let mut writers: Vec<Writer> = (0..4).map(|number| Writer::new(number, &point)).collect();
    let mut pauses = Streams::new(1).stream("pauses");
    for round in 0..=rounds {
        let mount = Mount::new(&target, &point);
        if round == 0 {
            for (writer, kind) in writers.iter().zip(KINDS) {
                fs::create_dir(&writer.folder).unwrap();
                if mkfs.contains(&"--zero-forcing") {
                    let folder = writer.folder.to_str().expect("as above");
                    levelhead(&["fs", "set", folder, &format!("kind={kind}")]).good();
                }
            }
            File::open(&point).and_then(|folder| folder.sync_all()).unwrap();
        }
        for writer in &mut writers {
            let wrong = writer.look();
            assert!(wrong.is_empty(), "round {round}, writer {}: {wrong:?}", writer.number);
        }
        if round == rounds {
            levelhead(&["fs", "umount", shown]).good();
            break;
        }
        let threads: Vec<_> =
            writers.into_iter().map(|writer| thread::spawn(|| writer.write())).collect();
        thread::sleep(Duration::from_millis(50 + pauses.below(400)));
        mount.kill();
        writers = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
        // What was killed is taken off as what is mounted, and is not clean.
        assert_eq!(levelhead(&["fs", "umount", shown]).code, Some(1));
    }
    let found = levelhead(&["fs", "check", &target, "--data", "--json"]).json();
    assert_eq!(found["clean"].as_bool(), Some(true), "{found}");
    writers.iter().map(|writer| writer.promises).sum()
}
