//! What users install, made from this tree: `cargo xtask dist [musl|deb|wheel]`.
//!
//! ```text
//!   cargo build (static, musl) --> stage/: programs, man pages, completions, units, licences
//!                                    |--> levelhead-VERSION-x86_64-linux-musl.tar.gz
//!                                    |--> levelhead_VERSION_amd64.deb      (dpkg-deb)
//!                                    '--> levelhead-VERSION-py3-..whl      (wheel.py)
//!                                         SHA256SUMS
//! ```
//!
//! All three have the same programs: static ones, which need no library of the system. Everything lies in `target/dist`.
//! Times in archives are those of the last commit, so that the same tree gives the same archives.

mod deb;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail, ensure};
use clap::ValueEnum;

use crate::programs::{cargo, good, target_folder};

/// The static target.
const TARGET: &str = "x86_64-unknown-linux-musl";

/// The programs and the packages that have them.
pub(crate) const PROGRAMS: [(&str, &str); 2] =
    [("levelhead", "levelhead-cli"), ("levelhead-lab", "levelhead-cli-lab")];

/// Shells whose completions are shipped, and where Debian keeps them; `NAME` is the program's.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "usr/share/bash-completion/completions/NAME"),
    ("zsh", "usr/share/zsh/vendor-completions/_NAME"),
    ("fish", "usr/share/fish/vendor_completions.d/NAME.fish"),
];

/// What can be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Part {
    /// An archive with static programs, for any Linux on x86-64
    Musl,
    /// A Debian package
    Deb,
    /// A Python wheel with both programs
    Wheel,
}

/// Makes these parts, or all; prints the path of each.
pub(crate) fn run(root: &Path, parts: &[Part]) -> anyhow::Result<()> {
    let all = [Part::Musl, Part::Deb, Part::Wheel];
    let parts = if parts.is_empty() { &all[..] } else { parts };
    let dist = target_folder(root)?.join("dist");
    let stage = dist.join("stage");
    if stage.exists() {
        fs::remove_dir_all(&stage).with_context(|| stage.display().to_string())?;
    }
    let version = version(root)?;
    build(root)?;
    fill(root, &stage)?;
    // Whatever the checkout and the umask are.
    good(Command::new("chmod").args(["-R", "u=rwX,go=rX"]).arg(&stage))?;
    let mut made = Vec::new();
    for part in parts {
        made.push(match part {
            Part::Musl => archive(root, &dist, &version)?,
            Part::Deb => deb::build(root, &dist, &version)?,
            Part::Wheel => wheel(root, &dist, &version)?,
        });
    }
    fs::remove_dir_all(&stage).with_context(|| stage.display().to_string())?;
    let names = made.iter().map(|path| path.file_name().expect("it is a file"));
    let sums = Command::new("sha256sum").args(names).current_dir(&dist).output();
    let sums = sums.context("sha256sum cannot be run")?;
    ensure!(sums.status.success(), "sha256sum ended with {}", sums.status);
    fs::write(dist.join("SHA256SUMS"), &sums.stdout)?;
    for path in made {
        println!("{}", path.display());
    }
    Ok(())
}

/// The workspace's version.
pub(crate) fn version(root: &Path) -> anyhow::Result<String> {
    let manifest = fs::read_to_string(root.join("Cargo.toml"))?;
    let line = manifest.lines().find_map(|line| line.strip_prefix("version = \""));
    let version = line.and_then(|rest| rest.strip_suffix('"'));
    version.map(str::to_owned).context("Cargo.toml has no version")
}

/// Builds the programs, static.
fn build(root: &Path) -> anyhow::Result<()> {
    let gcc = Command::new("musl-gcc").arg("--version").output();
    if !gcc.is_ok_and(|gcc| gcc.status.success()) {
        bail!("musl-gcc is not there: install musl-tools");
    }
    if let Ok(status) = Command::new("rustup").args(["target", "add", TARGET]).status() {
        ensure!(status.success(), "rustup target add {TARGET} ended with {status}");
    }
    let packages = PROGRAMS.iter().flat_map(|(_, package)| ["--package", package]);
    let mut cargo = cargo(root);
    cargo.args(["build", "--release", "--target", TARGET]).args(packages);
    good(cargo.env("CC_x86_64_unknown_linux_musl", "musl-gcc"))
}

/// Puts everything that is installed where Debian keeps it.
fn fill(root: &Path, stage: &Path) -> anyhow::Result<()> {
    let built = target_folder(root)?.join(TARGET).join("release");
    for (name, _) in PROGRAMS {
        let program = stage.join("usr/bin").join(name);
        copy(&built.join(name), &program)?;
        let man = stage.join("usr/share/man/man1");
        good(Command::new(&program).arg("man").arg(&man))?;
        for (shell, place) in COMPLETIONS {
            let script = Command::new(&program).args(["completions", shell]).output()?;
            ensure!(script.status.success(), "{name} completions {shell}: {}", script.status);
            let path = stage.join(place.replace("NAME", name));
            fs::create_dir_all(path.parent().expect("it has a folder"))?;
            fs::write(&path, script.stdout).with_context(|| path.display().to_string())?;
        }
    }
    let contrib = root.join("contrib");
    for unit in ["levelhead@.service", "levelhead-watch.service"] {
        copy(&contrib.join(unit), &stage.join("usr/lib/systemd/system").join(unit))?;
    }
    copy(&contrib.join("sysusers.conf"), &stage.join("usr/lib/sysusers.d/levelhead.conf"))?;
    copy(&contrib.join("udev.rules"), &stage.join("usr/lib/udev/rules.d/60-levelhead.rules"))?;
    let share = stage.join("usr/share/doc/levelhead");
    for name in ["README.md", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT"] {
        copy(&root.join(name), &share.join(name))?;
    }
    for entry in fs::read_dir(&contrib)? {
        let path = entry?.path();
        let name = path.file_name().expect("it is in a folder").to_string_lossy().into_owned();
        if name.ends_with(".yml") || name.ends_with(".json") || name == "levelhead.conf" {
            copy(&path, &share.join("examples").join(name))?;
        }
    }
    Ok(())
}

/// The archive of what [`fill`] has put together.
fn archive(root: &Path, dist: &Path, version: &str) -> anyhow::Result<PathBuf> {
    let name = format!("levelhead-{version}-x86_64-linux-musl");
    let path = dist.join(format!("{name}.tar.gz"));
    let mut tar = Command::new("tar");
    tar.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--mode=u=rwX,go=rX"]);
    tar.arg(format!("--mtime=@{}", commit_time(root)?));
    tar.arg(format!("--transform=s,^\\.,{name},")).arg("-C").arg(dist.join("stage"));
    tar.arg("-czf").arg(&path).arg(".");
    // What makes an image of it lies at its top.
    good(tar.arg("-C").arg(root.join("contrib")).arg("./Containerfile"))?;
    Ok(path)
}

fn wheel(root: &Path, dist: &Path, version: &str) -> anyhow::Result<PathBuf> {
    let script = root.join("xtask/src/dist/wheel.py");
    let mut python = Command::new("python3");
    python.arg(script).arg(dist.join("stage/usr/bin")).arg(dist).arg(version);
    good(python.env("SOURCE_DATE_EPOCH", commit_time(root)?))?;
    Ok(dist.join(format!("levelhead-{version}-py3-none-{WHEEL_TAG}.whl")))
}

/// Static programs run with either C library.
const WHEEL_TAG: &str = "manylinux_2_17_x86_64.musllinux_1_1_x86_64";

/// Unix seconds of the last commit.
fn commit_time(root: &Path) -> anyhow::Result<String> {
    let git = Command::new("git").args(["log", "-1", "--format=%ct"]).current_dir(root).output();
    let time = git.map(|git| String::from_utf8_lossy(&git.stdout).trim().to_owned());
    Ok(time.ok().filter(|time| !time.is_empty()).unwrap_or_else(|| "0".to_owned()))
}

fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(to.parent().expect("it has a folder"))?;
    fs::copy(from, to).map(drop).with_context(|| from.display().to_string())
}
