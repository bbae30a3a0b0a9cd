//! What each command does: one function a command, from what was asked to what is shown.
//!
//! Composes the worlds below: `lab` in virtual time, `host` and `nbd` in real time, `trace` for
//! input and `report` for output. Knows files, and no terminal: the caller decides what to print
//! ([`Show`]) and how progress looks ([`Progress`]).

#![forbid(unsafe_code)]

pub mod array;
pub mod demo;
pub mod ecc;
mod emulate;
mod error;
mod files;
pub mod filesystem;
pub mod fleet;
mod listen;
mod measure;
mod model;
mod on_event;
pub mod plan;
mod probe;
mod profiles;
mod progress;
pub mod replay;
pub mod rtl;
mod show;
#[cfg(feature = "specimens")]
pub mod specimens;
mod stop;
pub mod study;
pub mod threads;
pub mod watch;

pub use emulate::{Emulate, Emulated, MemoryKey, Verified, emulate};
pub use error::AppError;
pub use listen::{EXPORTS_MAX, ExportName, Exported, Listen, TlsFiles};
pub use measure::{DriveMeasured, Measure, measure_drive};
pub use model::{Makes, Model, Modelled, drive_makes, model_drive};
pub use probe::{Probed, probe_device};
pub use progress::{NoProgress, Progress, Task};
pub use show::Show;
pub use stop::Stop;

/// The program's version.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
