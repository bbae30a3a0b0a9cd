//! The Debian package, by dpkg-deb.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;

use super::commit_time;
use crate::programs::good;

/// Names under which mount(8), mkfs(8) and fsck(8) look for the program.
const HELPERS: [&str; 3] = ["mount.levelhead", "mkfs.levelhead", "fsck.levelhead"];

/// Runs after the files are there.
const POSTINST: &str = "#!/bin/sh
set -e
if [ \"$1\" = configure ]; then
    if command -v systemd-sysusers >/dev/null; then systemd-sysusers levelhead.conf || true; fi
    if command -v udevadm >/dev/null; then udevadm control --reload || true; fi
    if [ -d /run/systemd/system ]; then systemctl daemon-reload || true; fi
fi
";

/// Runs when they are gone. Arrays that are served go on until they are stopped.
const POSTRM: &str = "#!/bin/sh
set -e
if [ -d /run/systemd/system ]; then systemctl daemon-reload || true; fi
";

/// Makes it of the staged files.
pub(super) fn build(root: &Path, dist: &Path, version: &str) -> anyhow::Result<PathBuf> {
    let folder = dist.join("deb");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    good(Command::new("cp").arg("-a").arg(dist.join("stage")).arg(&folder))?;
    let man = folder.join("usr/share/man/man1");
    for page in fs::read_dir(&man)? {
        good(Command::new("gzip").args(["-9n"]).arg(page?.path()))?;
    }
    let sbin = folder.join("usr/sbin");
    fs::create_dir_all(&sbin)?;
    for helper in HELPERS {
        symlink("../bin/levelhead", sbin.join(helper))?;
    }
    let debian = folder.join("DEBIAN");
    fs::create_dir_all(&debian)?;
    fs::write(debian.join("control"), control(version, size_kib(&folder)?))?;
    for (name, text) in [("postinst", POSTINST), ("postrm", POSTRM)] {
        let path = debian.join(name);
        fs::write(&path, text)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
    }
    good(Command::new("chmod").args(["-R", "u=rwX,go=rX"]).arg(&folder))?;
    let path = dist.join(format!("levelhead_{version}_amd64.deb"));
    let mut dpkg = Command::new("dpkg-deb");
    dpkg.args(["--root-owner-group", "-Zxz", "--build"]).arg(&folder).arg(&path);
    good(dpkg.env("SOURCE_DATE_EPOCH", commit_time(root)?))?;
    fs::remove_dir_all(&folder).with_context(|| folder.display().to_string())?;
    Ok(path)
}

fn control(version: &str, size_kib: u64) -> String {
    format!(
        "Package: levelhead
Version: {version}
Architecture: amd64
Maintainer: The Levelhead authors
Installed-Size: {size_kib}
Section: admin
Priority: optional
Recommends: smartmontools, fuse3
Suggests: nbd-client
Description: software RAID for hard disks that stays fast with fail-slow drives
 Levelhead serves arrays of hard disks over NBD and reads around drives that are
 slow or retry. It has a filesystem with Reed-Solomon codes inside one disk, a
 watch over the drives of MD, ZFS and LVM arrays, and a laboratory that runs the
 same engine in virtual time (levelhead-lab).
"
    )
}

fn size_kib(folder: &Path) -> anyhow::Result<u64> {
    let du = Command::new("du").args(["-sk"]).arg(folder).output()?;
    let text = String::from_utf8_lossy(&du.stdout).into_owned();
    text.split_whitespace().next().and_then(|size| size.parse().ok()).context("du says no size")
}
