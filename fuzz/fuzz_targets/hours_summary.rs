//! Any bytes: they are refused, or are a summary with this one form, which merges with itself or says why not.
#![no_main]

use levelhead_fleet::analysis::Summary;
use levelhead_fleet::exhibits::{Fleet, all};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(summary) = Summary::from_bytes(bytes) else { return };
    assert_eq!(summary.to_bytes(), bytes);
    for exhibit in all() {
        let fleet = Fleet { hours: &summary, events: None };
        exhibit.lines(&fleet);
        exhibit.picture(&fleet);
    }
    let mut both = summary.clone();
    if both.merge(&summary).is_ok() {
        assert!(both.counts().drive_hours >= summary.counts().drive_hours);
    }
});
