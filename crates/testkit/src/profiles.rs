//! Drive profiles, as text: small disks whose times can be worked out by hand, and disks that take next to no time.

/// The `[cache]` of 10 sectors for writes, for 100 ms.
pub const CACHE_OF_TEN: &str = r#"
    segments = 2
    segment_blocks = 20
    read_ahead_blocks = 8
    write_blocks = 10
    write_delay = "100ms"
    flush_overhead = "7ms"
"#;

/// A profile with 6000 rpm, 10 ms a revolution; 10 sectors a track, which take 1 ms each; 200 sectors in all.
#[derive(Clone, Copy)]
pub struct Tiny {
    /// How long the arm settles before a write, as a profile says it.
    pub write_settle: &'static str,
    /// The points of its seek times, as a profile says them.
    pub seek: &'static str,
    /// The lines of a profile's `[cache]`; none for a drive without memory.
    pub cache: Option<&'static str>,
}

impl Tiny {
    /// A drive with these lines of `[cache]`, and the same times for writes as for reads.
    pub const fn buffered(cache: &'static str) -> Self {
        let seek = r#"[[1, "1.5ms"], [9, "9.5ms"]]"#;
        Self { write_settle: "0ms", seek, cache: Some(cache) }
    }

    /// The text of the profile.
    pub fn text(self) -> String {
        let Self { write_settle, seek, cache } = self;
        let cache = cache.map_or_else(String::new, |lines| format!("[cache]\n{lines}"));
        format!(
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
        )
    }
}

/// A profile whose every motion takes next to nothing, with 1 ms a revolution.
pub const FAST: &str = r#"
    name = "fast"
    block_size = 4096
    rpm = 60000
    heads = 4
    overhead = "0.001ms"
    head_switch = "0.01ms"
    write_settle = "0.01ms"
    [seek]
    points = [[1, "0.01ms"], [99, "0.1ms"]]
    [[zone]]
    cylinders = 100
    blocks_per_track = 100
    track_skew = 10
    cylinder_skew = 10
"#;

/// [`FAST`] with a cache that keeps what is written for a day, unless it is flushed.
pub fn forgetful() -> String {
    let cache = r#"
        [cache]
        segments = 2
        segment_blocks = 20
        read_ahead_blocks = 8
        write_blocks = 64
        write_delay = "86400s"
        flush_overhead = "0.1ms"
    "#;
    format!("{FAST}{cache}")
}
