//! Any text as a page of `smartctl`, and any bytes as the state of a watch: no panic, and a page cut off claims no more than the whole one.

#![no_main]

use levelhead_fleet::smart::{Erc, read_page};
use levelhead_fleet::watch::{Saved, parse_stat};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let text = String::from_utf8_lossy(input);
    let page = read_page(&text);
    assert!(!page.erc.name().is_empty());
    assert!(page.erc == Erc::NotRead || !input.is_empty());
    let _counters = parse_stat(&text);
    if let Ok(saved) = Saved::decode(input) {
        assert_eq!(Saved::decode(&saved.encode()), Ok(saved));
    }
});
