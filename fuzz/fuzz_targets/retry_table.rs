//! Any text as a retry table: a table or a sentence, and a table is written as it is read.

#![no_main]

use levelhead_ldpc::{RetryTable, ZeroForcing};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let text = String::from_utf8_lossy(input);
    match RetryTable::parse("fuzzed", &text) {
        Ok(table) => {
            assert_eq!(RetryTable::parse("fuzzed", &table.to_string()), Ok(table.clone()));
            for level in ZeroForcing::ALL {
                for step in 0..table.step_count() {
                    assert!((0.0..=1.000_000_001).contains(&table.all_fail(level, step)));
                }
            }
            assert!(table.class(0.999_999) < table.class_count());
        }
        Err(error) => assert!(!error.to_string().contains('\n')),
    }
});
