//! Suites of other projects over mounted filesystems. Those that Debian does not have are built in the target folder.

use std::env;
use std::path::Path;

use super::needs::Need;
use super::test;
use crate::programs::{cargo, good, target_folder};

pub(super) const NEEDS: &[Need] =
    &[Need { program: "fio", package: "fio" }, Need { program: "stress-ng", package: "stress-ng" }];

/// Suites, and their versions.
const SUITES: [&str; 2] = ["pjdfstest@0.2.2", "fsx@0.3.2"];

pub(super) fn run(root: &Path, seeds: u64) -> anyhow::Result<()> {
    let tools = target_folder(root)?.join("tools");
    for suite in SUITES {
        // One that is there already is not built again.
        good(cargo(root).args(["install", "--locked", "--root"]).arg(&tools).arg(suite))?;
    }
    let path = env::var_os("PATH").unwrap_or_default();
    let path = env::join_paths([tools.join("bin")].into_iter().chain(env::split_paths(&path)))?;
    let said = [("PATH", path.to_string_lossy().into_owned()), ("SEEDS", seeds.to_string())];
    test(root, &["--package", "levelhead-cli", "--test", "soak"], "soak_files", &said)
}
