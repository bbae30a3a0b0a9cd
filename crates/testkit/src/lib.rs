//! What the tests of several crates share, for development only.
//!
//! The crate depends on `units` and `stats` alone, so that unit tests can use it as well: the unit tests of a crate on
//! which it depended would see two copies of that crate's types. For the same reason a drive profile is text here.

#![forbid(unsafe_code)]

pub mod profiles;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use levelhead_stats::Streams;
use levelhead_units::{Extent, Lba, Sectors};

/// Debian's Python, which has Debian's packages; another one may be first in the path.
pub const PYTHON: &str = "/usr/bin/python3";

/// The longest wait of [`wait_until`]. It only ends tests that would hang.
const PATIENCE: Duration = Duration::from_secs(120);

/// `sectors` sectors from `lba` on.
pub fn extent(lba: u64, sectors: u64) -> Extent {
    Extent::new(Lba::new(lba), Sectors::new(sectors))
}

/// `len` random bytes that depend on the seed alone.
pub fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    Streams::new(seed).stream("noise").fill(&mut bytes);
    bytes
}

/// `len` random bytes with runs of zeroes, as a disk image has them.
pub fn image(seed: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    let mut rng = Streams::new(seed).stream("image");
    for part in bytes.chunks_mut(100_000) {
        if rng.below(3) > 0 {
            rng.fill(part);
        }
    }
    bytes
}

/// Panics unless the share `seen / of` lies within four standard errors of the probability `law`.
#[track_caller]
pub fn check_share(what: &str, seen: u64, of: u64, law: f64) {
    let (share, of) = (seen as f64 / of as f64, of as f64);
    let error = (law * (1.0 - law) / of).sqrt();
    assert!((share - law).abs() <= 4.0 * error, "{what}: {share}, law {law}, error {error}");
}

/// Waits until `is_so` returns true; panics if that takes more than two minutes.
#[track_caller]
pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "still not so: {what}");
        thread::sleep(Duration::from_millis(1));
    }
}

/// The path of a file or folder of `../shared/data` beside the repository; none, with a line on standard error, where it
/// does not exist.
pub fn shared(name: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data").join(name);
    let is_there = path.exists();
    if !is_there {
        eprintln!("SKIPPED: {} is not there", path.display());
    }
    is_there.then_some(path)
}

/// Whether `program` can be run. Where it cannot, a line on standard error says so; panics if the environment variable
/// `CI` is set.
pub fn is_there(program: &str) -> bool {
    let mut probe = Command::new(program);
    probe.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    is_installed(program, probe.status().is_ok())
}

/// Whether [`PYTHON`] can import `module`, which is in Debian's `package`; otherwise like [`is_there`].
pub fn python_has(module: &str, package: &str) -> bool {
    let mut probe = Command::new(PYTHON);
    probe.args(["-c", &format!("import {module}")]).stderr(Stdio::null());
    is_installed(package, probe.status().is_ok_and(|status| status.success()))
}

fn is_installed(what: &str, is_there: bool) -> bool {
    if !is_there {
        assert!(std::env::var_os("CI").is_none(), "{what} is not installed");
        eprintln!("SKIPPED: {what} is not installed");
    }
    is_there
}
