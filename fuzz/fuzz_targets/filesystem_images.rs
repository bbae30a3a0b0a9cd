//! Whatever is on a damaged disk: it is checked, repaired, mounted, read, written and scrubbed, without a panic, an endless work or a
//! write where nothing may be written.
//!
//! The disks are small filesystems that the code has made; the input says what is damaged, with checksums that are made right for most of
//! it, and what is asked then. The same stories are told by seeds in `crates/fs/tests/images`.

#![no_main]

#[path = "../../crates/fs/tests/images/story/mod.rs"]
mod story;

use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;

static TEMPLATES: OnceLock<Vec<story::Template>> = OnceLock::new();

fuzz_target!(|bytes: &[u8]| {
    let templates = TEMPLATES.get_or_init(story::templates);
    story::tell(templates, bytes);
});
