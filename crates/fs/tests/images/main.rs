//! Filesystems that are damaged at random, with checksums that are right for most of it: whatever is on a disk, a check, a repair and
//! a mount end, and none of them panics.

mod story;

use levelhead_stats::Streams;

use self::story::{Told, tell, templates};

/// Stories of a swarm.
const STORIES: u64 = 200;

#[test]
fn damaged_images_are_checked_repaired_read_and_written_without_a_panic() {
    let templates = templates();
    let mut all = Told::default();
    let (mut found, mut troubled, mut mended) = (0, 0, 0);
    // One more in which a file's type had bits that no entry of a directory has.
    for seed in (0..STORIES).chain([306_717]) {
        let mut rng = Streams::new(seed).stream("images");
        let mut bytes = vec![0; 100 + rng.below(400) as usize];
        rng.fill(&mut bytes);
        let told = tell(&templates, &bytes);
        found += u64::from(told.was_found);
        troubled += u64::from(told.problems > 0);
        mended += u64::from(told.problems > 0 && told.left == 0);
        all.answered += told.answered;
        all.failed += told.failed;
    }
    // The damage is reached, and does not take everything with it.
    assert!(
        found > STORIES * 8 / 10 && troubled > STORIES / 2,
        "{found} found, {troubled} troubled"
    );
    assert!(mended > STORIES / 10, "{mended} repaired");
    assert!(all.answered > STORIES * 100 && all.failed > STORIES * 10, "{all:?}");
}
