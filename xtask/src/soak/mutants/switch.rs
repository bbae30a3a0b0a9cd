//! Which mutant is on.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

const UNREAD: u32 = u32::MAX;

static NOW: AtomicU32 = AtomicU32::new(UNREAD);

/// The number of the mutant that is on, as `MUTANT` says; 0 for none.
#[inline]
pub fn now() -> u32 {
    match NOW.load(Relaxed) {
        UNREAD => read(),
        now => now,
    }
}

#[cold]
fn read() -> u32 {
    let now = std::env::var("MUTANT").map_or(0, |text| text.parse().expect("MUTANT is a number"));
    NOW.store(now, Relaxed);
    now
}
