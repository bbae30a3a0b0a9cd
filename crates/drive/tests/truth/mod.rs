//! A make's true figures, from its model.

use levelhead_block::Command;
use levelhead_drive::{CacheMode, Completion, Drive, Profile, Settings};
use levelhead_stats::{Rng, Streams};
use levelhead_units::{Instant, Sectors};

use crate::support::read;

pub(crate) fn drive(profile: Profile) -> Drive {
    drive_with(profile, CacheMode::Off)
}

pub(crate) fn drive_with(profile: Profile, cache: CacheMode) -> Drive {
    let settings = Settings { cache, ..Settings::PLAIN };
    Drive::new(profile, settings, Streams::new(3), "drive/0").unwrap()
}

/// Runs commands, a fixed number of them at a time; the time of the last end.
pub(crate) fn run(
    drive: &mut Drive,
    depth: u32,
    commands: &mut dyn Iterator<Item = Command>,
) -> Vec<Completion> {
    let (mut now, mut done) = (Instant::ZERO, Vec::new());
    let mut commands = (0..).zip(commands).peekable();
    loop {
        while drive.queue_len() < depth
            && let Some((id, command)) = commands.next()
        {
            drive.handle_submit(now, id, command, id);
        }
        let Some(deadline) = drive.deadline() else { return done };
        now = deadline;
        drive.handle_timeout(now);
        done.extend(std::iter::from_fn(|| drive.poll()));
    }
}

/// Bytes a second from `lba` on.
pub(crate) fn rate(profile: &Profile, lba: u64, sectors: u64) -> f64 {
    let span = |sectors| {
        let mut drive = drive(profile.clone());
        let done = run(&mut drive, 1, &mut [read(lba, 1), read(lba + 1, sectors)].into_iter());
        (done[1].ended - done[0].ended).as_secs_f64()
    };
    // How the arm gets there does not count.
    sectors as f64 / 2.0 * 4096.0 / (span(sectors) - span(sectors / 2))
}

/// Milliseconds of positioning for reads that lie so far apart, on average: controller and seek.
pub(crate) fn positioning(profile: &Profile, distance: u64) -> f64 {
    let spread = 1_000;
    let room = profile.size().get() - distance - spread;
    positioning_between(profile, profile.size(), &mut |rng| {
        let near = rng.below(room);
        [near, near + distance + rng.below(spread)]
    })
}

/// Pairs of reads, and angles at which each second one begins.
const PAIRS: u64 = 1_600;
const ANGLES: u64 = 8;

/// The same between pairs of sectors of a drive that is made so small, there and back.
pub(crate) fn positioning_between(
    profile: &Profile,
    size: Sectors,
    pair: &mut dyn FnMut(&mut Rng) -> [u64; 2],
) -> f64 {
    let settings = Settings { size: Some(size), ..Settings::PLAIN };
    let mut drive = Drive::new(profile.clone(), settings, Streams::new(3), "drive/0").unwrap();
    let mut rng = Streams::new(5).stream("pairs");
    let (mut now, mut service, mut id) = (Instant::ZERO, 0.0, 0);
    let turn = profile.rotation().get();
    let mut read = |now: &mut Instant, lba| {
        id += 1;
        drive.handle_submit(*now, id, read(lba, 1), id);
        loop {
            *now = drive.deadline().unwrap();
            drive.handle_timeout(*now);
            if let Some(done) = drive.poll() {
                return done.service.as_millis_f64();
            }
        }
    };
    for at in 0..PAIRS {
        let [near, far] = pair(&mut rng);
        let (first, second) = if at % 2 == 0 { (near, far) } else { (far, near) };
        let angle = rng.below(turn / ANGLES);
        for step in 0..ANGLES {
            read(&mut now, first);
            // Every angle is as likely, so that the wait is half of a revolution on average.
            let turns = now.as_nanos().div_ceil(turn);
            now = Instant::from_nanos(turns * turn + step * turn / ANGLES + angle);
            service += read(&mut now, second);
        }
    }
    service / (PAIRS * ANGLES) as f64 - profile.rotation().as_millis_f64() / 2.0
}
