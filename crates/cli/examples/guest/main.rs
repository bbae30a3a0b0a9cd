//! What `cargo xtask soak guest` runs in a virtual machine: file systems on arrays, by way of the kernel's NBD client and
//! of the systemd unit, while drives are lost and replaced and servers are killed. See `story.rs`.
//!
//! It partitions nothing and asks nothing: it is meant for a machine that is thrown away, and refuses any other.

mod files;
mod kernel;
mod story;

use std::process::ExitCode;

fn main() -> ExitCode {
    match std::env::args().nth(1).and_then(|seed| seed.parse().ok()) {
        None => {
            eprintln!("guest: expected a seed, a whole number");
            ExitCode::from(2)
        }
        Some(_) if !std::path::Path::new("/etc/levelhead-soak").exists() => {
            eprintln!("guest: this is not the machine of `cargo xtask soak guest`");
            ExitCode::from(2)
        }
        Some(seed) => match story::run(seed) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                story::fail(error.as_ref());
                ExitCode::FAILURE
            }
        },
    }
}
