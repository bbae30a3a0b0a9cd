//! A drive's figures from reads alone, against the modelled drive that answered them: within 5 %, with
//! and without noise on the times.

use std::collections::BTreeMap;

use levelhead_block::{Command, Effort};
use levelhead_drive::measure::{
    MeasureError, Measured, Measurement, Options, Read, Thoroughness, Wake,
};
use levelhead_drive::{CacheMode, Completion, Drive, Profile, Settings};
use levelhead_stats::Streams;
use levelhead_units::{Instant, Nanos, Sectors};

use crate::support::read;
use crate::truth::{drive, drive_with, positioning, positioning_between, rate, run};

const READ_MAX: Sectors = Sectors::new(256);

/// Measures a drive in virtual time. Each end is reported up to `noise` late.
fn measure(drive: &mut Drive, thoroughness: Thoroughness, noise: Nanos) -> Measured {
    let options = Options { thoroughness, read_max: READ_MAX, end: Wake::Message, seed: 1 };
    let mut measurement = Measurement::new(drive.size(), options).unwrap();
    let mut late = Streams::new(4).stream("late");
    let mut began: BTreeMap<u64, Instant> = BTreeMap::new();
    let (mut now, mut asked) = (Instant::ZERO, 0);
    loop {
        while let Some(Read { id, extent }) = measurement.poll() {
            let command = Command::Read { extent, effort: Effort::Full };
            drive.handle_submit(now, id, command, id);
            began.insert(id, now);
            asked += 1;
        }
        let Some(deadline) = drive.deadline() else { break };
        now = now.max(deadline);
        drive.handle_timeout(now);
        while let Some(Completion { id, ended, .. }) = drive.poll() {
            let seen = now.max(ended) + Nanos::new(late.below(noise.get() + 1));
            measurement.handle_done(id, began.remove(&id).unwrap(), seen);
            now = seen;
        }
        let (done, total) = measurement.progress();
        assert!(done <= asked && done <= total, "{done} of {total}");
    }
    let (done, total) = measurement.progress();
    assert_eq!((done, total), (asked, asked));
    measurement.finish().unwrap()
}

/// Random reads a second, with `depth` reads at a time.
fn random(profile: &Profile, depth: u32) -> f64 {
    let mut drive = drive(profile.clone());
    let size = drive.size().get();
    let mut rng = Streams::new(6).stream("addresses");
    let mut reads = (0..40_000).map(|_| read(rng.below(size), 1));
    let done = run(&mut drive, depth, &mut reads);
    40_000.0 / (done.last().unwrap().ended - Instant::ZERO).as_secs_f64()
}

#[track_caller]
fn near(what: &str, found: f64, wanted: f64, within: f64) {
    let off = found / wanted - 1.0;
    eprintln!("  {what}: {found:.3}, truly {wanted:.3}: {:+.1} %", off * 100.0);
    assert!(off.abs() <= within, "{what}: {found}, truly {wanted}");
}

#[track_caller]
fn check(profile: &Profile, noise: Nanos) {
    eprintln!("{}, noise {noise}", profile.name());
    let measured = measure(&mut drive(profile.clone()), Thoroughness::Thorough, noise);
    let text = measured.to_toml("mine");
    let copy = Profile::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(copy.name(), "mine");
    assert_eq!(copy.size(), profile.size());
    near("rotation", measured.rotation * 1e3, profile.rotation().as_millis_f64(), 0.002);
    near("rpm", f64::from(copy.rpm()), f64::from(profile.rpm()), 0.002);
    let size = profile.size().get();
    // As much as was read at each place.
    let some = 16 * (READ_MAX.get() + READ_MAX.get() / 2);
    for measured in &measured.rates {
        let lba = measured.lba.get();
        let truly = rate(profile, lba, some);
        near(&format!("rate at {lba}"), measured.bytes_per_s / 1e6, truly / 1e6, 0.05);
        near(&format!("rate at {lba}, copy"), rate(&copy, lba, some) / 1e6, truly / 1e6, 0.05);
    }
    for (part, of) in [(1, 64), (1, 16), (1, 8), (1, 4), (1, 3), (1, 2), (3, 4), (15, 16)] {
        let distance = size / of * part;
        let (found, truly) = (positioning(&copy, distance), positioning(profile, distance));
        near(&format!("seek of {part}/{of}"), found, truly, 0.05);
    }
    for at in &measured.depths {
        let truly = random(profile, at.depth);
        near(&format!("depth {}", at.depth), at.per_s, truly, 0.05);
        near(&format!("depth {}, copy", at.depth), random(&copy, at.depth), truly, 0.05);
    }
}

#[test]
fn the_figures_of_a_nearline_drive_are_recovered() {
    check(&Profile::shipped("nearline-2tb").unwrap(), Nanos::ZERO);
}

#[test]
fn a_little_noise_does_not_matter() {
    check(&Profile::shipped("nearline-2tb").unwrap(), Nanos::from_micros(60));
}

/// Short tracks, slow busses, many or few heads.
#[test]
fn the_figures_of_old_drives_are_recovered() {
    for make in ["barracuda", "cheetah9lp", "atlas_III"] {
        check(&Profile::shipped(make).unwrap(), Nanos::ZERO);
        check(&Profile::shipped(make).unwrap(), Nanos::from_micros(60));
    }
}

#[test]
fn the_figures_of_fast_drives_are_recovered() {
    for make in ["simple15k", "cheetah15k5", "maxtor300g"] {
        check(&Profile::shipped(make).unwrap(), Nanos::from_micros(20));
    }
}

#[test]
fn the_figures_of_a_large_and_of_a_slow_drive_are_recovered() {
    check(&Profile::shipped("nearline-18tb").unwrap(), Nanos::from_micros(20));
    check(&Profile::shipped("st2000dm006").unwrap(), Nanos::from_micros(20));
}

/// What the drive remembers or reads ahead must not answer for the medium.
#[test]
fn a_drives_memory_does_not_matter() {
    for make in ["nearline-2tb", "cheetah9lp"] {
        let profile = Profile::shipped(make).unwrap();
        let noise = Nanos::from_micros(20);
        let with = |cache| {
            let mut drive = drive_with(profile.clone(), cache);
            measure(&mut drive, Thoroughness::Thorough, noise)
        };
        let (off, on) = (with(CacheMode::Off), with(CacheMode::Read));
        near("rotation", on.rotation, off.rotation, 0.002);
        for (on, off) in on.rates.iter().zip(&off.rates) {
            near("rate", on.bytes_per_s / 1e6, off.bytes_per_s / 1e6, 0.05);
        }
        for (on, off) in on.depths.iter().zip(&off.depths) {
            near("random", on.per_s, off.per_s, 0.05);
        }
        let copy = |measured: &Measured| Profile::parse(&measured.to_toml("copy")).unwrap();
        let (on, off) = (copy(&on), copy(&off));
        for of in [64, 8, 2] {
            let distance = profile.size().get() / of;
            near("seek", positioning(&on, distance), positioning(&off, distance), 0.05);
        }
    }
}

#[test]
fn a_quick_look_is_near_enough_to_know_the_drive_by() {
    let profile = Profile::shipped("nearline-2tb").unwrap();
    let measured = measure(&mut drive(profile), Thoroughness::Quick, Nanos::from_micros(60));
    assert_eq!(measured.rpm(), 7_200);
    near("outside", measured.rates[0].bytes_per_s / 1e6, 175.0, 0.05);
    near("one at a time", measured.depths[0].per_s, 1000.0 / 12.2, 0.10);
}

#[test]
fn the_same_answers_give_the_same_profile() {
    let text = || {
        let profile = Profile::shipped("nearline-2tb").unwrap();
        measure(&mut drive(profile), Thoroughness::Quick, Nanos::from_micros(60)).to_toml("a")
    };
    assert_eq!(text(), text());
}

#[test]
fn what_is_too_small_or_does_not_turn_is_refused() {
    let options = Options {
        thoroughness: Thoroughness::Quick,
        read_max: READ_MAX,
        end: Wake::Message,
        seed: 1,
    };
    let error = Measurement::new(Sectors::new(1_000), options).unwrap_err();
    assert!(matches!(error, MeasureError::TooSmall { .. }), "{error}");
    // Memory: every read takes as long as its bytes.
    let mut measurement = Measurement::new(Sectors::new(1 << 20), options).unwrap();
    let mut now = Instant::ZERO;
    while let Some(Read { id, extent }) = measurement.poll() {
        let ended = now + Nanos::new(10_000 + extent.sectors.get() * 1_000);
        measurement.handle_done(id, now, ended);
        now = ended;
    }
    let error = measurement.finish().unwrap_err();
    assert_eq!(error, MeasureError::NoRotation, "{error}");
}

/// A file in the page cache: large reads take longer by next to nothing, and so its tracks seem longer
/// than the drive.
#[test]
fn what_answers_at_once_is_asked_for_no_sector_past_its_end() {
    let size = Sectors::new(26_000);
    let options = Options {
        thoroughness: Thoroughness::Quick,
        read_max: READ_MAX,
        end: Wake::Message,
        seed: 1,
    };
    let mut measurement = Measurement::new(size, options).unwrap();
    let mut now = Instant::ZERO;
    while let Some(Read { id, extent }) = measurement.poll() {
        assert!(extent.fits(size), "{extent:?}");
        let ended = now + Nanos::new(extent.sectors.get());
        measurement.handle_done(id, now, ended);
        now = ended;
    }
    assert_eq!(measurement.finish().unwrap_err(), MeasureError::NoRotation);
}

/// In parts of the drive: from a sixty-fourth of it down to a few of its tracks.
const SHORT_PARTS: [u64; 9] = [64, 256, 1_024, 2_133, 4_096, 8_000, 16_384, 32_768, 65_536];

#[test]
fn short_seeks_are_near_the_truth_though_heads_do_not_show() {
    for make in [
        "nearline-2tb",
        "nearline-6tb",
        "nearline-18tb",
        "st2000dm006",
        "barracuda",
        "cheetah15k5",
        "cheetah9lp",
        "maxtor300g",
    ] {
        let profile = Profile::shipped(make).unwrap();
        let size = profile.size().min(Sectors::new(64 << 18));
        let settings = Settings { size: Some(size), cache: CacheMode::Off, ..Settings::PLAIN };
        let mut drive = Drive::new(profile.clone(), settings, Streams::new(3), "drive/0").unwrap();
        let measured = measure(&mut drive, Thoroughness::Quick, Nanos::from_micros(20));
        let copy = Profile::parse(&measured.to_toml("copy")).unwrap();
        let mut far_off = 0;
        for part in SHORT_PARTS {
            let distance = size.get() / part;
            let at = |profile: &Profile| {
                positioning_between(profile, size.min(profile.size()), &mut |rng| {
                    let spread = (distance / 20).max(1_000);
                    let near = rng.below(size.get() - distance - spread);
                    [near, near + distance + rng.below(spread)]
                })
            };
            let (found, truly) = (at(&copy), at(&profile));
            // Where a seek turns from a switch of heads into a movement of the arm, two sectors as far apart as two others
            // may lie in one cylinder or in two.
            near(&format!("{make}, a {part}th of the drive"), found, truly, 0.25);
            far_off += usize::from((found / truly - 1.0).abs() > 0.07);
        }
        assert!(far_off <= 2, "{make}: {far_off} of {} are off", SHORT_PARTS.len());
    }
}
