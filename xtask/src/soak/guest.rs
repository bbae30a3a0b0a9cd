//! A virtual machine with a Debian of its own: systemd, the kernel's NBD client, ext4 and xfs.
//!
//! ```text
//!   debootstrap -> folder -> mkfs.ext4 -d -> root.img ─┐
//!   levelhead, the unit of contrib/, the guest's program┘   QEMU, which emulates the processors
//!   d0 .. d6, sparse files that are disks of the guest ─────> serial port: a line an event
//! ```
//!
//! What happens in it is `crates/cli/examples/guest/story.rs`. The guest has no network. Everything lies in one temporary
//! folder, which is removed at the end; the kernel is the guest's own, so nothing is installed on this machine.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};

use super::needs::Need;
use crate::programs::{cargo, good, target_folder};

pub(super) const NEEDS: &[Need] = &[
    Need { program: "debootstrap", package: "debootstrap" },
    Need { program: "mkfs.ext4", package: "e2fsprogs" },
    Need { program: "qemu-system-x86_64", package: "qemu-system-x86" },
];

/// What the guest has beside what every Debian has.
const PACKAGES: &str =
    "dbus,e2fsprogs,kmod,linux-image-cloud-amd64,systemd,systemd-sysv,udev,xfsprogs";

/// Disks of the guest that are members of an array, the last of them to come later.
const DISKS: usize = 7;

/// Bytes of each, and of the files that the guest makes members.
const DISK: u64 = 192 << 20;

/// Bytes of the guest's own disk.
const ROOT: u64 = 4 << 30;

/// No guest takes longer.
const PATIENCE: Duration = Duration::from_secs(20 * 60);

/// What the guest says last if all was good.
const GOOD: &str = "soak: good after";

/// Runs the program.
const UNIT: &str = "[Unit]
Description=File systems on arrays
SuccessAction=poweroff
FailureAction=poweroff

[Service]
Type=oneshot
ExecStartPre=udevadm settle
ExecStart=/usr/bin/guest SEED
StandardOutput=tty
StandardError=tty
TTYPath=/dev/ttyS1
";

pub(super) fn run(root: &Path, seed: u64, mirror: Option<&str>) -> anyhow::Result<()> {
    let is_root = fs::metadata("/proc/self")?;
    ensure!(
        std::os::unix::fs::MetadataExt::uid(&is_root) == 0,
        "debootstrap wants to be run by root"
    );
    let build = ["build", "--release", "--package", "levelhead-cli"];
    good(cargo(root).args(build).args(["--bin", "levelhead", "--example", "guest"]))?;
    let built = target_folder(root)?.join("release");
    let folder = Folder { dir: tempfile::tempdir()? };
    let dir = folder.dir.path();
    bootstrap(dir, mirror)?;
    furnish(root, &built, &dir.join("root"), seed)?;
    disks(dir)?;
    start(dir)
}

/// The temporary folder. Nothing may be mounted in it when it is removed.
struct Folder {
    dir: tempfile::TempDir,
}

impl Drop for Folder {
    fn drop(&mut self) {
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        let all = mounts.lines().filter_map(|line| line.split(' ').nth(1));
        let own = self.dir.path().to_path_buf();
        // The innermost first.
        for mount in all.filter(|at| Path::new(at).starts_with(&own)).rev() {
            let status = Command::new("umount").args(["--lazy", mount]).status();
            if !status.is_ok_and(|status| status.success()) {
                eprintln!("soak: {mount} cannot be unmounted; it is left as it is");
                self.dir.disable_cleanup(true);
            }
        }
    }
}

/// A Debian like this machine's, so that what was built here runs there.
fn bootstrap(dir: &Path, mirror: Option<&str>) -> anyhow::Result<()> {
    let release = fs::read_to_string("/etc/os-release").unwrap_or_default();
    let suite = suite(&release);
    let sources = ["/etc/apt/sources.list.d/debian.sources", "/etc/apt/sources.list"];
    let texts: Vec<String> =
        sources.iter().filter_map(|path| fs::read_to_string(path).ok()).collect();
    let own = texts.iter().find_map(|text| mirror_of(text));
    let mirror = mirror.or(own).unwrap_or("http://deb.debian.org/debian");
    println!("soak: debootstrap {suite}");
    let log = dir.join("debootstrap.log");
    let status = Command::new("debootstrap")
        .args(["--variant=minbase", &format!("--include={PACKAGES}"), suite])
        .arg(dir.join("root"))
        .arg(mirror)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdin(Stdio::null())
        .stdout(File::create(&log)?)
        .stderr(File::options().append(true).open(&log)?)
        .status()?;
    ensure!(status.success(), "debootstrap: {status}\n{}", tail(&log, 20));
    Ok(())
}

/// The Debian that this machine has, if it is one.
fn suite(release: &str) -> &str {
    let value =
        |key: &str| release.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
    match (value("ID"), value("VERSION_CODENAME")) {
        (Some("debian"), Some(codename)) => codename,
        _ => "bookworm",
    }
}

/// The first mirror that apt is told of, in either of its formats.
fn mirror_of(sources: &str) -> Option<&str> {
    sources.lines().find_map(|line| match line.strip_prefix("URIs:") {
        Some(uris) => uris.split_whitespace().next(),
        None => line.strip_prefix("deb ")?.split_whitespace().find(|word| word.contains("://")),
    })
}

/// Puts into the guest what it is for.
fn furnish(tree: &Path, built: &Path, root: &Path, seed: u64) -> anyhow::Result<()> {
    let copy = |from: &Path, to: &str| {
        fs::copy(from, root.join(to)).with_context(|| from.display().to_string())
    };
    copy(&built.join("levelhead"), "usr/bin/levelhead")?;
    copy(&built.join("examples/guest"), "usr/bin/guest")?;
    let units = "etc/systemd/system";
    copy(&tree.join("contrib/levelhead@.service"), &format!("{units}/levelhead@.service"))?;
    fs::write(root.join(units).join("soak.service"), UNIT.replace("SEED", &seed.to_string()))?;
    let wants = root.join(units).join("multi-user.target.wants");
    fs::create_dir_all(&wants)?;
    symlink("../soak.service", wants.join("soak.service"))?;
    fs::write(root.join("etc/levelhead-soak"), "")?;
    fs::write(root.join("etc/hostname"), "soak\n")?;
    let members = root.join("var/lib/levelhead");
    fs::create_dir_all(&members)?;
    for at in 0..DISKS {
        File::create(members.join(format!("d{at}")))?.set_len(DISK)?;
    }
    Ok(())
}

/// Makes the guest's own disk of the folder, and those of its array.
fn disks(dir: &Path) -> anyhow::Result<()> {
    let image = dir.join("root.img");
    File::create(&image)?.set_len(ROOT)?;
    let mut command = Command::new("mkfs.ext4");
    command.args(["-q", "-L", "soak", "-d"]).arg(dir.join("root")).arg(&image);
    good(&mut command)?;
    for at in 0..DISKS {
        File::create(dir.join(format!("d{at}.img")))?.set_len(DISK)?;
    }
    Ok(())
}

/// Runs the guest to its end.
fn start(dir: &Path) -> anyhow::Result<()> {
    let console = dir.join("console.log");
    let root = dir.join("root");
    let mut command = Command::new("qemu-system-x86_64");
    command.args(["-machine", "q35", "-accel", "tcg,thread=multi", "-cpu", "max"]);
    command.args(["-m", "2048", "-smp", "2", "-nic", "none", "-display", "none", "-no-reboot"]);
    command.arg("-kernel").arg(root.join("vmlinuz")).arg("-initrd").arg(root.join("initrd.img"));
    command.args(["-append", "root=LABEL=soak rw console=ttyS0 quiet mitigations=off"]);
    command.arg("-serial").arg(format!("file:{}", console.display())).args(["-serial", "stdio"]);
    for at in std::iter::once("root".to_owned()).chain((0..DISKS).map(|at| format!("d{at}"))) {
        let file = dir.join(format!("{at}.img"));
        let drive = format!("file={},format=raw,if=none,id={at}", file.display());
        command.args(["-drive", &drive]);
        command.args(["-device", &format!("virtio-blk-pci,drive={at},serial={at}")]);
    }
    println!("soak: the guest starts");
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
    let is_good = follow(child)?;
    ensure!(is_good, "the guest has failed; the end of its console:\n{}", tail(&console, 20));
    Ok(())
}

/// Prints what the guest says until it ends. Whether all was good.
fn follow(mut child: Child) -> anyhow::Result<bool> {
    let out = BufReader::new(child.stdout.take().expect("it is a pipe"));
    let (sender, said) = mpsc::channel();
    thread::spawn(move || {
        for line in out.lines().map_while(Result::ok) {
            let _ = sender.send(line);
        }
    });
    let (begun, mut is_good) = (Instant::now(), false);
    loop {
        match said.recv_timeout(PATIENCE.saturating_sub(begun.elapsed())) {
            Ok(line) => {
                println!("{}", line.trim_end());
                is_good |= line.starts_with(GOOD);
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
            Err(mpsc::RecvTimeoutError::Timeout) => {
                child.kill()?;
                child.wait()?;
                bail!("the guest was not done after {} minutes", PATIENCE.as_secs() / 60);
            }
        }
    }
    Ok(child.wait()?.success() && is_good)
}

/// The last lines of a file.
fn tail(path: &Path, count: usize) -> String {
    let text = fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let text = text.unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mirror_is_read_from_either_format_of_apt() {
        let sources = "Types: deb\n# http://example.com\nURIs: http://example.org/debian http://example.net\n";
        assert_eq!(mirror_of(sources), Some("http://example.org/debian"));
        let list = "# deb http://example.com\ndeb [signed-by=/key] http://example.net/debian bookworm main\n";
        assert_eq!(mirror_of(list), Some("http://example.net/debian"));
        assert_eq!(mirror_of("Types: deb\n"), None);
    }

    #[test]
    fn suite_is_this_machines_if_that_is_a_debian() {
        assert_eq!(suite("ID=debian\nVERSION_CODENAME=trixie\n"), "trixie");
        assert_eq!(suite("ID=ubuntu\nVERSION_CODENAME=noble\n"), "bookworm");
    }
}
