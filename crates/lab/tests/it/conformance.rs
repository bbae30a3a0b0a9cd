//! What lives in virtual time is a block device like any other.

use std::sync::Arc;

use levelhead_array::journal::rules::Rules;
use levelhead_array::{Content, HostOrder};
use levelhead_block::conformance::{SuiteSettings, check_device};
use levelhead_drive::{CacheMode, Drive, Profile, Settings};
use levelhead_lab::{Journaling, Lone, Pumped, World, WorldSettings};
use levelhead_stats::Streams;
use levelhead_units::Sectors;

const SETTINGS: SuiteSettings =
    SuiteSettings { seed: 7, requests: 1_000, sectors_max: 9, batch_max: 6 };

fn profile() -> Arc<Profile> {
    Arc::new(Profile::parse(include_str!("../../../drive/profiles/nearline-2tb.toml")).unwrap())
}

fn settings(cache: CacheMode) -> Settings {
    settings_of(cache, 200)
}

fn settings_of(cache: CacheMode, sectors: u64) -> Settings {
    // A batch holds more requests than the drive does.
    Settings { queue_depth: 3, cache, size: Some(Sectors::new(sectors)), ..Settings::PLAIN }
}

#[test]
fn lone_drive_conforms_with_a_memory_and_without() {
    for cache in [CacheMode::Off, CacheMode::Read, CacheMode::WriteBack] {
        let drive = Drive::new(profile(), settings(cache), Streams::new(1), "drive/0").unwrap();
        check_device(&mut Pumped::new(Lone::new(drive)), SETTINGS);
    }
}

#[test]
fn array_of_modelled_drives_conforms() {
    for spec in [
        "raid5:2+1,chunk=8KiB",
        "eraid:2+2,e=2,chunk=8KiB",
        "raid1:2,chunk=8KiB",
        "raid10:3,chunk=8KiB",
    ] {
        for cache in [CacheMode::Off, CacheMode::WriteBack] {
            let settings = WorldSettings {
                spec: spec.parse().unwrap(),
                policy: "level".parse().unwrap(),
                window: 3,
                order: HostOrder::Elevator,
                content: Content::Carried,
                profile: profile(),
                drives: vec![settings(cache)],
                area: None,
                journal: None,
                seed: 1,
            };
            check_device(&mut Pumped::new(World::new(&settings).unwrap()), SETTINGS);
            // The same array, which records what it is on drives that have room for them.
            let drives = vec![settings_of(cache, 600)];
            let settings = WorldSettings { drives, ..settings };
            let world = World::create(&settings, Journaling::Members, Rules::ALL).unwrap();
            check_device(&mut Pumped::new(world), SETTINGS);
        }
    }
}
