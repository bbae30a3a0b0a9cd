//! Other programs, run to their ends.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};

/// Cargo, in this folder.
pub(crate) fn cargo(root: &Path) -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    let mut command = Command::new(program);
    command.current_dir(root);
    // What cargo has set for this program would have others built again.
    for (key, _) in std::env::vars_os() {
        let name = key.to_string_lossy();
        if ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_"].iter().any(|own| name.starts_with(own)) {
            command.env_remove(&key);
        }
    }
    command
}

/// Where cargo puts what it builds for the workspace in this folder.
pub(crate) fn target_folder(workspace: &Path) -> anyhow::Result<PathBuf> {
    let asked = ["metadata", "--no-deps", "--offline", "--format-version", "1"];
    let output = cargo(workspace).args(asked).output()?;
    ensure!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    let said: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let folder = said["target_directory"].as_str();
    folder.map(PathBuf::from).context("cargo metadata names no target folder")
}

/// Runs a program to its end, which should be a good one.
pub(crate) fn good(command: &mut Command) -> anyhow::Result<()> {
    let status = command.status().map_err(|error| {
        anyhow::anyhow!("{} cannot be run: {error}", command.get_program().display())
    })?;
    ensure!(status.success(), "{} ended with {status}", command.get_program().display());
    Ok(())
}
