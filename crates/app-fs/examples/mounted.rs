//! A mounted filesystem, measured in the same run as what it stands beside.
//!
//! ```text
//!   mounted ext4 DIR     an image in DIR, beside ext4 on a loop device over the same folder (root, mkfs.ext4, DIR on tmpfs)
//!   mounted drive DIR    an emulated nearline-18tb in DIR, in real time, beside the bare drive
//! ```
//!
//! Each figure is printed with its peer's and the ratio of both.

use std::error::Error;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use levelhead_app::Stop;
use levelhead_app_fs::{
    CodeWish, MakeFilesystem, Mount, MountHooks, MountOptions, Mounted, Redundancy,
    make_filesystem, mount, umount,
};
use levelhead_block::{BlockService, Effort, Request};
use levelhead_host::LoneDrive;
use levelhead_planner::Code;
use levelhead_stats::Streams;
use levelhead_units::{Extent, Lba, SECTOR_SIZE, Sectors};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

const MIB: usize = 1 << 20;

/// Bytes that are written and read in sequence.
const BYTES: usize = 1 << 30;

/// Files that are made and removed.
const FILES: u32 = 20_000;

/// Reads of one sector.
const READS: usize = 20_000;

/// Reads of one sector from a drive in real time, and how many of them are under way.
const RANDOM_READS: usize = 3_000;
const DEPTH: usize = 32;

/// The figure of a run that counts: the best of this many.
const ROUNDS: usize = 3;

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["ext4", folder] => beside_ext4(Path::new(folder)),
        ["drive", folder] => beside_the_drive(Path::new(folder)),
        _ => Err("usage: mounted ext4 DIR, or mounted drive DIR".into()),
    }
}

/// A filesystem of ours under a directory. Dropping it unmounts.
struct Ours {
    directory: PathBuf,
    thread: Option<JoinHandle<()>>,
}

impl Ours {
    fn make(target: &str, size: &str, code: &str) -> Result<()> {
        let size = if size.is_empty() { None } else { Some(size.parse()?) };
        let code: Code = code.parse()?;
        make_filesystem(&MakeFilesystem {
            target: target.into(),
            size,
            code: CodeWish::Code(code),
            redundancy: Redundancy::ByLength,
            metadata_copies: 3,
            interleave: 1,
            zero_forcing: false,
            label: String::new(),
            force: false,
        })?;
        Ok(())
    }

    fn mount(target: &str, directory: &Path) -> Result<Self> {
        let (target, directory) = (target.to_owned(), directory.to_owned());
        let (ready, is_ready) = mpsc::channel();
        let ask = Mount { target, directory: directory.clone(), options: MountOptions::DEFAULT };
        let thread = thread::spawn(move || {
            // What is repaired is told by the hundred.
            let on_event = Box::new(|_: &str| {});
            let ready_too = ready.clone();
            let on_ready = &mut |_: &Mounted| drop(ready.send(None));
            let hooks = MountHooks { on_begin: &mut || {}, on_ready, on_event };
            let ended = mount(&ask, &Stop::new(), hooks);
            drop(ready_too.send(ended.err().map(|error| error.to_string())));
        });
        match is_ready.recv()? {
            None => Ok(Self { directory, thread: Some(thread) }),
            Some(sentence) => Err(sentence.into()),
        }
    }
}

impl Drop for Ours {
    fn drop(&mut self) {
        if let Err(error) = umount(&self.directory) {
            eprintln!("{error}");
            return;
        }
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

/// What is removed at the end.
struct Bench {
    folder: PathBuf,
}

impl Bench {
    fn new(folder: &Path) -> Result<Self> {
        let folder = folder.canonicalize()?.join("mounted");
        fs::create_dir(&folder)?;
        Ok(Self { folder })
    }

    fn dir(&self, name: &str) -> Result<PathBuf> {
        let path = self.folder.join(name);
        fs::create_dir(&path)?;
        Ok(path)
    }

    fn path(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        drop(run("umount", &["-q", &self.path("peer")]));
        drop(fs::remove_dir_all(&self.folder));
    }
}

fn run(program: &str, args: &[&str]) -> Result<()> {
    let status = Command::new(program).args(args).status()?;
    if status.success() { Ok(()) } else { Err(format!("{program} {args:?}: {status}").into()) }
}

fn forget_what_was_read() -> Result<()> {
    rustix::fs::sync();
    Ok(fs::write("/proc/sys/vm/drop_caches", "3")?)
}

/// One figure of both.
struct Row {
    what: &'static str,
    unit: &'static str,
    peer: f64,
    ours: f64,
}

impl Row {
    fn print(&self) {
        let Self { what, unit, peer, ours } = self;
        println!(
            "{what:<28} {unit:<6} peer {peer:>10.1} ours {ours:>10.1} ratio {:.3}",
            ours / peer
        );
    }
}

fn per_second(count: f64, time: Duration) -> f64 {
    count / time.as_secs_f64()
}

/// MB a second of a file that is written once more, with a sync at its end.
fn write_again(path: &Path) -> Result<f64> {
    let bytes: Vec<u8> = (0..MIB).map(|at| ((at * 31) >> 3) as u8).collect();
    let mut file = OpenOptions::new().create(true).truncate(false).write(true).open(path)?;
    let begun = Instant::now();
    for _ in 0..BYTES / MIB {
        file.write_all(&bytes)?;
    }
    file.sync_all()?;
    Ok(per_second(BYTES as f64 / 1e6, begun.elapsed()))
}

fn read_cold(path: &Path) -> Result<f64> {
    forget_what_was_read()?;
    let (mut file, mut bytes) = (File::open(path)?, vec![0; MIB]);
    let begun = Instant::now();
    for _ in 0..BYTES / MIB {
        file.read_exact(&mut bytes)?;
    }
    Ok(per_second(BYTES as f64 / 1e6, begun.elapsed()))
}

/// Files made and files removed, a second.
fn make_and_remove(folder: &Path) -> Result<[f64; 2]> {
    let folder = folder.join("files");
    fs::create_dir(&folder)?;
    let names: Vec<PathBuf> = (0..FILES).map(|at| folder.join(format!("file {at:06}"))).collect();
    let begun = Instant::now();
    for name in &names {
        File::create_new(name)?;
    }
    let made = begun.elapsed();
    let begun = Instant::now();
    for name in &names {
        fs::remove_file(name)?;
    }
    let removed = begun.elapsed();
    fs::remove_dir(&folder)?;
    Ok([per_second(FILES.into(), made), per_second(FILES.into(), removed)])
}

/// A file that is read past the kernel's memory.
fn direct(path: &Path) -> Result<File> {
    let flags = rustix::fs::OFlags::DIRECT.bits() as i32;
    Ok(OpenOptions::new().read(true).custom_flags(flags).open(path)?)
}

/// A sector of memory that starts where direct reads want it to.
#[repr(align(4096))]
struct Page([u8; SECTOR_SIZE]);

/// Median time of a read of one sector, in us.
fn read_sectors(path: &Path) -> Result<f64> {
    let (file, mut page) = (direct(path)?, Box::new(Page([0; SECTOR_SIZE])));
    let mut rng = Streams::new(1).stream("reads");
    let mut times = Vec::with_capacity(READS);
    for _ in 0..READS {
        let at = rng.below((BYTES / SECTOR_SIZE) as u64) * SECTOR_SIZE as u64;
        let begun = Instant::now();
        file.read_exact_at(&mut page.0, at)?;
        times.push(begun.elapsed());
    }
    times.sort_unstable();
    Ok(times[READS / 2].as_secs_f64() * 1e6)
}

fn beside_ext4(folder: &Path) -> Result<()> {
    let bench = Bench::new(folder)?;
    let (image, other) = (bench.path("ours.img"), bench.path("peer.img"));
    let (ours_on, peer_on) = (bench.dir("ours")?, bench.dir("peer")?);
    Ours::make(&image, "4GiB", "5,250")?;
    File::create(&other)?.set_len(4 << 30)?;
    run("mkfs.ext4", &["-q", "-E", "lazy_itable_init=0,lazy_journal_init=0", &other])?;
    run("mount", &["-o", "loop", &other, &bench.path("peer")])?;
    let ours = Ours::mount(&image, &ours_on)?;
    let (a, b) = (peer_on.join("file"), ours_on.join("file"));
    for path in [&a, &b] {
        write_again(path)?;
    }
    let best = |of: &dyn Fn(&Path) -> Result<f64>, path: &Path| -> Result<f64> {
        (0..ROUNDS).map(|_| of(path)).try_fold(0.0_f64, |best, one| Ok(best.max(one?)))
    };
    Row {
        what: "write again, fsync",
        unit: "MB/s",
        peer: best(&write_again, &a)?,
        ours: best(&write_again, &b)?,
    }
    .print();
    Row {
        what: "cold read",
        unit: "MB/s",
        peer: best(&read_cold, &a)?,
        ours: best(&read_cold, &b)?,
    }
    .print();
    let (mut peer, mut mine) = ([0.0_f64; 2], [0.0_f64; 2]);
    for _ in 0..ROUNDS {
        let (one, other) = (make_and_remove(&peer_on)?, make_and_remove(&ours_on)?);
        for at in 0..2 {
            (peer[at], mine[at]) = (peer[at].max(one[at]), mine[at].max(other[at]));
        }
    }
    for (at, what) in ["create", "unlink"].into_iter().enumerate() {
        Row { what, unit: "/s", peer: peer[at], ours: mine[at] }.print();
    }
    let least = |path: &Path| -> Result<f64> {
        (0..ROUNDS).map(|_| read_sectors(path)).try_fold(f64::MAX, |best, one| Ok(best.min(one?)))
    };
    Row { what: "4 KiB direct read, median", unit: "us", peer: least(&a)?, ours: least(&b)? }
        .print();
    drop(ours);
    Ok(())
}

/// Reads extents of a drive, with a number of them under way at a time.
fn read_bare(drive: &LoneDrive, extents: impl Iterator<Item = Extent>, depth: usize) -> Duration {
    let (sender, ends) = mpsc::channel();
    let begun = Instant::now();
    let mut inside = 0;
    for extent in extents {
        if inside == depth {
            ends.recv().expect("the drive answers");
            inside -= 1;
        }
        let sender = sender.clone();
        drive.submit(
            Request::read(extent, Effort::Full),
            Box::new(move |_| sender.send(()).expect("it is waited for")),
        );
        inside += 1;
    }
    for _ in 0..inside {
        ends.recv().expect("the drive answers");
    }
    begun.elapsed()
}

/// The same sectors of a file, by threads that each wait for one.
fn read_by_threads(path: &Path, pages: Vec<u64>) -> Result<Duration> {
    let (file, pages) = (Arc::new(direct(path)?), Arc::new(Mutex::new(pages)));
    let begun = Instant::now();
    let reader = |_| {
        let (file, pages) = (Arc::clone(&file), Arc::clone(&pages));
        thread::spawn(move || {
            let mut into = Box::new(Page([0; SECTOR_SIZE]));
            loop {
                let next = pages.lock().expect("no reader panics").pop();
                let Some(page) = next else { return Ok(()) };
                file.read_exact_at(&mut into.0, page * SECTOR_SIZE as u64)?;
            }
        })
    };
    let threads: Vec<JoinHandle<std::io::Result<()>>> = (0..DEPTH).map(reader).collect();
    for thread in threads {
        thread.join().expect("no reader panics")?;
    }
    Ok(begun.elapsed())
}

fn beside_the_drive(folder: &Path) -> Result<()> {
    let bench = Bench::new(folder)?;
    let target =
        |rate: &str| format!("emu:{}?profile=nearline-18tb&size=64GiB{rate}", bench.path("a.img"));
    let on = bench.dir("ours")?;
    let path = on.join("file");
    Ours::make(&target(""), "", "9,246")?;
    let ours = Ours::mount(&target(""), &on)?;
    write_again(&path)?;
    drop(ours);
    let sectors = (BYTES / SECTOR_SIZE) as u64;
    let pages = || {
        let mut rng = Streams::new(1).stream("reads");
        (0..RANDOM_READS).map(|_| rng.below(sectors)).collect::<Vec<u64>>()
    };
    let bare = LoneDrive::open(&target("").parse()?)?;
    let pieces = (0..sectors).step_by(MIB / SECTOR_SIZE);
    let piece = Sectors::new((MIB / SECTOR_SIZE) as u64);
    let time = read_bare(&bare, pieces.map(|at| Extent::new(Lba::new(at), piece)), 8);
    let in_sequence = per_second(BYTES as f64 / 1e6, time);
    let one = |page| Extent::new(Lba::new(page), Sectors::new(1));
    let time = read_bare(&bare, pages().into_iter().map(one), DEPTH);
    let at_random = per_second(RANDOM_READS as f64, time);
    drop(bare);
    for (rate, names) in [
        ("", ["in sequence, healthy", "4 KiB, 32 threads, healthy"]),
        ("&retry-rate=0.5%", ["in sequence, 5e-3", "4 KiB, 32 threads, 5e-3"]),
    ] {
        let ours = Ours::mount(&target(rate), &on)?;
        Row { what: names[0], unit: "MB/s", peer: in_sequence, ours: read_cold(&path)? }.print();
        forget_what_was_read()?;
        let time = read_by_threads(&path, pages())?;
        let found = per_second(RANDOM_READS as f64, time);
        Row { what: names[1], unit: "/s", peer: at_random, ours: found }.print();
        drop(ours);
    }
    println!("k/(k+m) of 9,246 is {:.3}: 0.93 of it is {:.3}", 246.0 / 255.0, 0.93 * 246.0 / 255.0);
    Ok(())
}
