//! Panics that a test waits for.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;
use std::thread;

thread_local! {
    static IS_EXPECTED: Cell<bool> = const { Cell::new(false) };
}

/// What a run came to, or how it panicked, of which nothing is printed. Tests of other threads say what they have to say.
pub(crate) fn caught<T>(run: impl FnOnce() -> T) -> thread::Result<T> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let says = take_hook();
        set_hook(Box::new(move |panic| {
            if !IS_EXPECTED.get() {
                says(panic);
            }
        }));
    });
    let before = IS_EXPECTED.replace(true);
    let ended = catch_unwind(AssertUnwindSafe(run));
    IS_EXPECTED.set(before);
    ended
}

#[test]
fn panic_that_is_waited_for_is_caught_and_nothing_is_waited_for_after_it() {
    assert!(caught(|| panic!("not told")).is_err());
    assert!(!IS_EXPECTED.get());
    assert_eq!(caught(|| caught(|| 5).ok()).unwrap(), Some(5));
}
