//! What all commands share: errors, results to show, progress, a wish to stop, files, threads, and where a device is served.
//!
//! The commands themselves are in `app-array`, `app-fs`, `app-watch`, `app-drive`, `app-lab` and `app-fleet`: one function each,
//! from what was asked to what is shown. They know files and no terminal: the caller decides what to print ([`Show`]) and how
//! progress looks ([`Progress`]).

#![forbid(unsafe_code)]

mod error;
pub mod files;
mod listen;
pub mod on_event;
mod progress;
mod show;
mod stop;
pub mod threads;
mod utc;

pub use error::AppError;
pub use listen::{EXPORTS_MAX, ExportName, Exported, Listen, TlsFiles};
pub use progress::{NoProgress, Progress, Task};
pub use show::Show;
pub use stop::Stop;
pub use utc::utc;

/// The program's version.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
