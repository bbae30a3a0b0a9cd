//! Debian's kernel for the guest: fetched and unpacked, not installed, and the modules it needs.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::process::{Stop, output};

/// The package that depends on the newest kernel for virtual machines.
const META_PACKAGE: &str = "linux-image-cloud-amd64";

/// What the guest needs; what these depend on comes before them.
const MODULES: [&str; 4] = ["virtio_pci", "virtio_blk", "raid456", "dm_integrity"];

/// What it may take to find, fetch or unpack a package.
const PACKAGE_MAX: Duration = Duration::from_secs(600);

/// An unpacked kernel.
#[derive(Debug)]
pub(crate) struct Kernel {
    pub(crate) image: PathBuf,
    /// As in `6.1.0-56-cloud-amd64`.
    pub(crate) version: String,
    /// In the order in which they are loaded.
    pub(crate) modules: Vec<Module>,
}

#[derive(Debug)]
pub(crate) struct Module {
    pub(crate) name: String,
    pub(crate) bytes: Vec<u8>,
}

impl Kernel {
    /// The kernel of the package file `deb`, or else the one that Debian's archive has now, unpacked
    /// into a folder of `work`, where a later run finds it.
    pub(crate) fn get(deb: Option<&Path>, work: &Path, stop: &Stop) -> Result<Self, String> {
        fs::create_dir_all(work).map_err(|error| format!("{}: {error}", work.display()))?;
        let deb = match deb {
            Some(deb) => deb.to_owned(),
            None => fetch(work, stop)?,
        };
        let stem = deb.file_stem().ok_or_else(|| format!("{} is no package", deb.display()))?;
        let root = work.join(stem);
        if !root.exists() {
            // Under another name until it is complete.
            let part = work.join("part");
            drop(fs::remove_dir_all(&part));
            let mut extract = Command::new("dpkg-deb");
            output(extract.arg("--extract").arg(&deb).arg(&part), PACKAGE_MAX, stop)?;
            fs::rename(&part, &root).map_err(|error| format!("{}: {error}", root.display()))?;
        }
        Self::open(&root)
    }

    fn open(root: &Path) -> Result<Self, String> {
        let image = entries(&root.join("boot"))?.into_iter().find_map(|path| {
            let name = path.file_name()?.to_str()?;
            Some((path.clone(), name.strip_prefix("vmlinuz-")?.to_owned()))
        });
        let (image, version) =
            image.ok_or_else(|| format!("{} holds no kernel", root.display()))?;
        let mut files = Vec::new();
        // Since Debian 13 the packages' /lib is /usr/lib.
        for lib in ["lib/modules", "usr/lib/modules"] {
            let folder = root.join(lib);
            if folder.is_dir() {
                walk(&folder, &mut files)?;
            }
        }
        let names = files.into_iter().filter_map(|path| Some((module_name(&path)?, path)));
        let modules = in_order(&MODULES, &mut load(&names.collect()))?;
        Ok(Self { image, version, modules })
    }
}

/// Fetches the newest package, unless it is there already, and returns its path.
fn fetch(work: &Path, stop: &Stop) -> Result<PathBuf, String> {
    let advice = "apt-get update may help, or --kernel with the package's file";
    let mut depends = Command::new("apt-cache");
    let text = output(depends.args(["depends", META_PACKAGE]), PACKAGE_MAX, stop)
        .map_err(|error| format!("{error}: {META_PACKAGE} is not known; {advice}"))?;
    let package = text.lines().find_map(|line| line.trim().strip_prefix("Depends: "));
    let package =
        package.ok_or_else(|| format!("{META_PACKAGE} depends on no kernel; {advice}"))?;
    let have = |paths: Vec<PathBuf>| {
        let prefix = format!("{package}_");
        paths.into_iter().find(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with(&prefix) && name.ends_with(".deb")
        })
    };
    if let Some(path) = have(entries(work)?) {
        return Ok(path);
    }
    eprintln!("fetching {package}");
    let mut download = Command::new("apt-get");
    download.args(["--quiet=2", "download", package]).current_dir(work);
    output(&mut download, PACKAGE_MAX, stop)
        .map_err(|error| format!("{error}: cannot fetch {package}; {advice}"))?;
    have(entries(work)?).ok_or_else(|| format!("apt-get left no {package} behind; {advice}"))
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let told = |error| format!("{}: {error}", folder.display());
    let entries = fs::read_dir(folder).map_err(told)?;
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.map(|entry| entry.path()).map_err(told))
        .collect::<Result<_, _>>()?;
    paths.sort();
    Ok(paths)
}

fn walk(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), String> {
    for path in entries(folder)? {
        if path.is_dir() && !path.is_symlink() {
            walk(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}

/// The name by which modules depend on one another: files may have hyphens.
fn module_name(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?.strip_suffix(".ko")?;
    Some(name.replace('-', "_"))
}

/// Reads modules by name.
fn load(paths: &HashMap<String, PathBuf>) -> impl FnMut(&str) -> Result<Vec<u8>, String> {
    |name| {
        let path = paths.get(name).ok_or_else(|| {
            format!("the kernel has no uncompressed module {name}, as Debian 12's has")
        })?;
        fs::read(path).map_err(|error| format!("{}: {error}", path.display()))
    }
}

/// The modules `wanted` and what they depend on, each after what it depends on.
fn in_order(
    wanted: &[&str],
    load: &mut impl FnMut(&str) -> Result<Vec<u8>, String>,
) -> Result<Vec<Module>, String> {
    let mut modules: Vec<Module> = Vec::new();
    for name in wanted {
        if modules.iter().any(|module| module.name == *name) {
            continue;
        }
        let bytes = load(name)?;
        let first = dependencies(&bytes);
        let first: Vec<&str> = first.iter().map(String::as_str).collect();
        // What is there already is not wanted again.
        let missing: Vec<&str> = first
            .into_iter()
            .filter(|name| modules.iter().all(|module| module.name != *name))
            .collect();
        for module in in_order(&missing, load)? {
            if modules.iter().all(|other| other.name != module.name) {
                modules.push(module);
            }
        }
        modules.push(Module { name: (*name).to_owned(), bytes });
    }
    Ok(modules)
}

/// What a module says it depends on: `depends=A,B`, between zeroes.
fn dependencies(module: &[u8]) -> Vec<String> {
    const KEY: &[u8] = b"depends=";
    let text = module.split(|byte| *byte == 0).find_map(|text| text.strip_prefix(KEY));
    let text = String::from_utf8_lossy(text.unwrap_or_default()).replace('-', "_");
    text.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_says_what_it_depends_on() {
        let module = b"\x7fELF..\0license=GPL\0depends=md-mod,raid6_pq\0retpoline=Y\0";
        assert_eq!(dependencies(module), ["md_mod", "raid6_pq"]);
        assert!(dependencies(b"license=GPL\0depends=\0").is_empty());
        assert!(dependencies(b"license=GPL\0").is_empty());
        assert_eq!(module_name(Path::new("a/md-mod.ko")), Some("md_mod".to_owned()));
        assert_eq!(module_name(Path::new("a/modules.order")), None);
    }

    #[test]
    fn a_module_comes_after_all_it_depends_on_and_once() {
        let depends = HashMap::from([
            ("raid456", "async_tx,xor,async_pq"),
            ("async_pq", "async_tx,raid6_pq"),
            ("async_tx", ""),
            ("xor", ""),
            ("raid6_pq", ""),
        ]);
        let mut load = |name: &str| {
            let text = depends.get(name).ok_or_else(|| name.to_owned())?;
            Ok(format!("\0depends={text}\0").into_bytes())
        };
        let modules = in_order(&["xor", "raid456"], &mut load).expect("all are there");
        let names: Vec<&str> = modules.iter().map(|module| module.name.as_str()).collect();
        assert_eq!(names, ["xor", "async_tx", "raid6_pq", "async_pq", "raid456"]);
        let missing = in_order(&["virtio_blk"], &mut load);
        assert_eq!(missing.expect_err("it is not there"), "virtio_blk");
    }
}
