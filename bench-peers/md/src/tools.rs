//! What is needed of others and of us: Debian's programs, and our own two built.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde::Deserialize;

use crate::process::{Stop, output};

/// Programs, and the Debian packages that they are in.
const PROGRAMS: [(&str, &str); 6] = [
    ("qemu-system-x86_64", "qemu-system-x86"),
    ("mdadm", "mdadm"),
    ("integritysetup", "cryptsetup-bin"),
    ("busybox", "busybox-static"),
    ("dpkg-deb", "dpkg"),
    ("ldd", "libc-bin"),
];

/// What a program may take that has next to nothing to do.
const MOMENT: Duration = Duration::from_secs(30);

/// What a build may take on a slow machine.
const BUILD_MAX: Duration = Duration::from_secs(3600);

/// Where programs are that only root uses.
const SYSTEM_FOLDERS: [&str; 3] = ["/usr/local/sbin", "/usr/sbin", "/sbin"];

/// Where they are.
#[derive(Debug)]
pub(crate) struct Tools {
    pub(crate) qemu: PathBuf,
    pub(crate) mdadm: PathBuf,
    pub(crate) integritysetup: PathBuf,
    pub(crate) busybox: PathBuf,
}

impl Tools {
    /// Finds them all, or says in a sentence what to install.
    pub(crate) fn find() -> Result<Self, String> {
        let folders: Vec<PathBuf> = env::split_paths(&env::var_os("PATH").unwrap_or_default())
            .chain(SYSTEM_FOLDERS.map(PathBuf::from))
            .collect();
        Self::find_in(&folders)
    }

    fn find_in(folders: &[PathBuf]) -> Result<Self, String> {
        let find =
            |name: &str| folders.iter().map(|dir| dir.join(name)).find(|path| path.is_file());
        let missing: Vec<(&str, &str)> =
            PROGRAMS.into_iter().filter(|(name, _)| find(name).is_none()).collect();
        if !missing.is_empty() {
            let names: Vec<&str> = missing.iter().map(|(name, _)| *name).collect();
            let packages: Vec<&str> = missing.iter().map(|(_, package)| *package).collect();
            return Err(format!(
                "not found: {}; on Debian, apt-get install --no-install-recommends {}",
                names.join(", "),
                packages.join(" ")
            ));
        }
        let found = |name: &str| find(name).expect("nothing is missing");
        Ok(Self {
            qemu: found("qemu-system-x86_64"),
            mdadm: found("mdadm"),
            integritysetup: found("integritysetup"),
            busybox: found("busybox"),
        })
    }

    /// Versions of QEMU, mdadm and integritysetup, as they print them.
    pub(crate) fn versions(&self, stop: &Stop) -> Result<[String; 3], String> {
        let version = |program: &Path| {
            // Some print on their output, mdadm on its error output.
            let mut shell = Command::new("sh");
            shell.args(["-c", "exec \"$0\" --version 2>&1"]).arg(program);
            let text = output(&mut shell, MOMENT, stop)?;
            Ok::<_, String>(text.lines().next().unwrap_or("unknown").trim().to_owned())
        };
        Ok([version(&self.qemu)?, version(&self.mdadm)?, version(&self.integritysetup)?])
    }
}

/// The libraries that a program is loaded with, none for a static one.
pub(crate) fn libraries(program: &Path, stop: &Stop) -> Result<Vec<PathBuf>, String> {
    // For a static program `ldd` fails, and names no path.
    let mut shell = Command::new("sh");
    shell.args(["-c", "ldd \"$0\" 2>&1 || true"]).arg(program);
    Ok(paths_of(&output(&mut shell, MOMENT, stop)?))
}

/// The absolute paths that `ldd` prints.
fn paths_of(text: &str) -> Vec<PathBuf> {
    let paths = text.lines().filter_map(|line| {
        line.split_whitespace().find(|word| word.starts_with('/')).map(PathBuf::from)
    });
    paths.collect()
}

/// Builds the `levelhead` of this tree.
pub(crate) fn build_levelhead(stop: &Stop) -> Result<PathBuf, String> {
    let mut cargo = cargo();
    cargo.args(["--manifest-path", concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.toml")]);
    cargo.args(["--package", "levelhead-cli", "--bin", "levelhead"]);
    build(&mut cargo, "levelhead", stop)
}

/// Builds the client of the guest, which finds no library there.
pub(crate) fn build_client(stop: &Stop) -> Result<PathBuf, String> {
    let mut cargo = cargo();
    cargo.args(["--manifest-path", concat!(env!("CARGO_MANIFEST_DIR"), "/client/Cargo.toml")]);
    cargo.args(["--target", "x86_64-unknown-linux-gnu"]);
    cargo.env("RUSTFLAGS", "-C target-feature=+crt-static");
    build(&mut cargo, "levelhead-bench-md-client", stop)
}

fn cargo() -> Command {
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo")));
    cargo.args(["build", "--release", "--message-format", "json-render-diagnostics"]);
    cargo
}

/// What cargo says of each thing it has built, as far as it matters.
#[derive(Deserialize)]
struct Message {
    target: Option<Target>,
    executable: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
}

fn build(cargo: &mut Command, name: &str, stop: &Stop) -> Result<PathBuf, String> {
    let text = output(cargo, BUILD_MAX, stop)?;
    executable_of(&text, name).ok_or_else(|| format!("cargo built no {name}"))
}

fn executable_of(text: &str, name: &str) -> Option<PathBuf> {
    text.lines().find_map(|line| {
        let message: Message = serde_json::from_str(line).ok()?;
        message.executable.filter(|_| message.target.is_some_and(|target| target.name == name))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_told_with_its_packages() {
        let folder = tempfile::tempdir().expect("there is a place for files");
        for name in ["mdadm", "integritysetup", "dpkg-deb", "ldd"] {
            std::fs::write(folder.path().join(name), "").expect("it can be written");
        }
        let folders = [folder.path().to_owned()];
        let expected = "not found: qemu-system-x86_64, busybox; on Debian, \
                        apt-get install --no-install-recommends qemu-system-x86 busybox-static";
        assert_eq!(Tools::find_in(&folders).expect_err("two are missing"), expected);
        for name in ["qemu-system-x86_64", "busybox"] {
            std::fs::write(folder.path().join(name), "").expect("it can be written");
        }
        let found = Tools::find_in(&folders).expect("all are there");
        assert_eq!(found.mdadm, folder.path().join("mdadm"));
    }

    #[test]
    fn libraries_are_the_absolute_paths_of_ldd() {
        let text = "\tlinux-vdso.so.1 (0x00007ffc)\n\
                    \tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f20)\n\
                    \t/lib64/ld-linux-x86-64.so.2 (0x00007f20)\n";
        let expected = ["/lib/x86_64-linux-gnu/libc.so.6", "/lib64/ld-linux-x86-64.so.2"];
        assert_eq!(paths_of(text), expected.map(PathBuf::from));
        assert!(paths_of("\tnot a dynamic executable\n").is_empty());
    }

    #[test]
    fn the_executable_is_the_one_of_that_name() {
        let text = "{\"reason\":\"compiler-artifact\",\"target\":{\"name\":\"build-script\"},\
                    \"executable\":\"/t/b\"}\n\
                    {\"reason\":\"compiler-artifact\",\"target\":{\"name\":\"levelhead\"},\
                    \"executable\":null}\n\
                    {\"reason\":\"compiler-artifact\",\"target\":{\"name\":\"levelhead\"},\
                    \"executable\":\"/t/levelhead\"}\n\
                    {\"reason\":\"build-finished\",\"success\":true}\n";
        assert_eq!(executable_of(text, "levelhead"), Some(PathBuf::from("/t/levelhead")));
        assert_eq!(executable_of(text, "client"), None);
    }
}
