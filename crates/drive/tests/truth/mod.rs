//! A make's true figures, from its model.

use levelhead_block::{Command, Effort};
use levelhead_drive::{CacheMode, Completion, Drive, Profile, Settings};
use levelhead_stats::Streams;
use levelhead_units::{Extent, Instant, Lba, Sectors};

pub(crate) fn drive(profile: Profile) -> Drive {
    drive_with(profile, CacheMode::Off)
}

pub(crate) fn drive_with(profile: Profile, cache: CacheMode) -> Drive {
    let settings = Settings { cache, ..Settings::PLAIN };
    Drive::new(profile, settings, Streams::new(3), "drive/0").unwrap()
}

pub(crate) fn read(lba: u64, sectors: u64) -> Command {
    let extent = Extent::new(Lba::new(lba), Sectors::new(sectors));
    Command::Read { extent, effort: Effort::Full }
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
    let mut drive = drive(profile.clone());
    // Any angle: sectors of one distance would always lie at the same.
    let spread = 1_000;
    let room = drive.size().get() - distance - spread;
    let mut rng = Streams::new(5).stream("pairs");
    let mut pairs = (0..24_000).flat_map(|_| {
        let lba = rng.below(room);
        [read(lba, 1), read(lba + distance + rng.below(spread), 1)]
    });
    let done = run(&mut drive, 1, &mut pairs);
    let there = done.iter().filter(|done| done.id % 2 == 1);
    let mean = there.map(|done| done.service.as_millis_f64()).sum::<f64>() / 24_000.0;
    mean - profile.rotation().as_millis_f64() / 2.0
}
