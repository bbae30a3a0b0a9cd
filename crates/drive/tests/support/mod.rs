//! What the tests of several crates share: a small make, whose times can be worked out by hand.

use levelhead_drive::Profile;

/// A make with 6000 rpm, 10 ms a revolution; 10 sectors a track, which take 1 ms each; 200 sectors in all.
#[derive(Clone, Copy)]
pub(crate) struct Tiny {
    /// How long the arm settles before a write, as a profile says it.
    pub(crate) write_settle: &'static str,
    /// The points of its seek times, as a profile says them.
    pub(crate) seek: &'static str,
    /// The lines of a profile's `[cache]`; none for a make without memory.
    pub(crate) cache: Option<&'static str>,
}

impl Tiny {
    pub(crate) fn profile(self) -> Profile {
        let Self { write_settle, seek, cache } = self;
        let cache = cache.map_or_else(String::new, |lines| format!("[cache]\n{lines}"));
        let text = format!(
            r#"
                name = "tiny"
                block_size = 4096
                rpm = 6000
                heads = 2
                overhead = "0.5ms"
                head_switch = "2ms"
                write_settle = "{write_settle}"
                [seek]
                points = {seek}
                [[zone]]
                cylinders = 10
                blocks_per_track = 10
                track_skew = 3
                cylinder_skew = 4
                {cache}
            "#
        );
        Profile::parse(&text).expect("the lines of a test are good")
    }
}
