//! Threads that may not be had: a system that has none left is said in a sentence, and nothing panics.

use std::thread::{Builder, JoinHandle, Scope, ScopedJoinHandle};

use crate::AppError;

/// Starts a thread of this name.
///
/// # Errors
///
/// The system has none left.
pub fn start<T: Send + 'static>(
    name: &str,
    run: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>, AppError> {
    let thread = Builder::new().name(name.to_owned()).spawn(run);
    thread.map_err(|error| AppError::trouble(format!("cannot start a thread ({name}): {error}")))
}

/// The same of a thread that ends with a scope.
///
/// # Errors
///
/// The system has none left.
pub fn start_in<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    name: &str,
    run: impl FnOnce() -> T + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, T>, AppError> {
    let thread = Builder::new().name(name.to_owned()).spawn_scoped(scope, run);
    thread.map_err(|error| AppError::trouble(format!("cannot start a thread ({name}): {error}")))
}

/// Has `work` done by up to `count` threads, and by this one too: so also where no other can be had.
pub fn work_by<'scope>(
    scope: &'scope Scope<'scope, '_>,
    count: usize,
    work: impl Fn() + Send + Copy + 'scope,
) {
    for _ in 1..count {
        if start_in(scope, "worker", work).is_err() {
            break;
        }
    }
    work();
}
