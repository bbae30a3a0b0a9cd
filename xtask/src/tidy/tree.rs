//! What the checks look at: the packages as cargo sees them, and the text of every file.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail, ensure};
use serde::Deserialize;

/// A workspace.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tree {
    pub(crate) packages: Vec<Package>,
    /// Every file that is text and not ignored, by path.
    pub(crate) files: Vec<File>,
}

/// One member of the workspace. Paths are relative to its root, with `/` between names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Package {
    pub(crate) name: String,
    /// The folder of its manifest.
    pub(crate) dir: String,
    pub(crate) dependencies: Vec<Dependency>,
    /// The root files of its library and its binaries.
    pub(crate) roots: Vec<String>,
}

/// A dependency as the manifest declares it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Dependency {
    /// The package's name, whatever the manifest renames it to.
    pub(crate) name: String,
    /// The name the manifest has it under.
    pub(crate) key: String,
    pub(crate) kind: DependencyKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DependencyKind {
    Normal,
    Dev,
    Build,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct File {
    pub(crate) path: String,
    pub(crate) text: String,
}

impl Package {
    /// Its manifest.
    pub(crate) fn manifest(&self) -> String {
        format!("{}/Cargo.toml", self.dir)
    }
}

impl Tree {
    /// Reads the workspace whose root is `root`.
    pub(crate) fn read(root: &Path) -> anyhow::Result<Self> {
        let mut files = Vec::new();
        walk(root, "", &ignored(root)?, &mut files)?;
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(Self { packages: packages(root)?, files })
    }

    /// The file at `path`.
    pub(crate) fn file(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|file| file.path == path)
    }
}

/// The paths that the root's `.gitignore` names. Only rooted plain paths are understood.
fn ignored(root: &Path) -> anyhow::Result<Vec<String>> {
    let path = root.join(".gitignore");
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let entries = text.lines().map(str::trim).filter(|line| !line.is_empty() && line[..1] != *"#");
    entries
        .map(|entry| match entry.strip_prefix('/') {
            Some(plain) if !plain.contains(['*', '?', '[', '!']) => {
                Ok(plain.trim_end_matches('/').to_owned())
            }
            _ => bail!("{}: tidy understands rooted plain paths, not `{entry}`", path.display()),
        })
        .collect()
}

fn walk(root: &Path, at: &str, ignored: &[String], files: &mut Vec<File>) -> anyhow::Result<()> {
    let dir = root.join(at);
    for entry in fs::read_dir(&dir).with_context(|| dir.display().to_string())? {
        let entry = entry?;
        let Some(name) = entry.file_name().to_str().map(str::to_owned) else {
            bail!("{}: a file name is not UTF-8", dir.display());
        };
        let path = if at.is_empty() { name.clone() } else { format!("{at}/{name}") };
        if name == ".git" || ignored.contains(&path) {
            continue;
        }
        let kind = entry.file_type()?;
        if kind.is_dir() {
            walk(root, &path, ignored, files)?;
        } else if kind.is_file() {
            match fs::read(entry.path()).map(String::from_utf8) {
                Ok(Ok(text)) => files.push(File { path, text }),
                Ok(Err(_)) => {} // Not text: nothing to check.
                // Another process may remove a file while we look.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => return Err(error).context(path),
            }
        }
    }
    Ok(())
}

/// What `cargo metadata` prints, as far as we read it.
#[derive(Deserialize)]
struct Metadata {
    packages: Vec<MetadataPackage>,
    workspace_root: String,
}

#[derive(Deserialize)]
struct MetadataPackage {
    name: String,
    manifest_path: String,
    dependencies: Vec<MetadataDependency>,
    targets: Vec<MetadataTarget>,
}

#[derive(Deserialize)]
struct MetadataDependency {
    name: String,
    kind: Option<String>,
    rename: Option<String>,
}

#[derive(Deserialize)]
struct MetadataTarget {
    kind: Vec<String>,
    src_path: String,
}

fn packages(root: &Path) -> anyhow::Result<Vec<Package>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--no-deps", "--format-version=1"])
        .current_dir(root)
        .output()
        .context("cargo metadata")?;
    let complaint = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "cargo metadata: {}", complaint.trim());
    parse(&output.stdout)
}

fn parse(json: &[u8]) -> anyhow::Result<Vec<Package>> {
    let metadata: Metadata = serde_json::from_slice(json).context("cargo metadata")?;
    let relative = |path: &str| -> anyhow::Result<String> {
        let below = path.strip_prefix(&metadata.workspace_root).and_then(|p| p.strip_prefix('/'));
        below.map(str::to_owned).with_context(|| format!("{path} is outside the workspace"))
    };
    let mut packages = Vec::new();
    for package in &metadata.packages {
        let manifest = relative(&package.manifest_path)?;
        let dir = manifest.strip_suffix("/Cargo.toml").context("a virtual root has no package")?;
        let mut dependencies = Vec::new();
        for dependency in &package.dependencies {
            let kind = match dependency.kind.as_deref() {
                None => DependencyKind::Normal,
                Some("dev") => DependencyKind::Dev,
                Some("build") => DependencyKind::Build,
                Some(other) => bail!("{manifest}: unknown kind of dependency `{other}`"),
            };
            let key = dependency.rename.as_ref().unwrap_or(&dependency.name).clone();
            dependencies.push(Dependency { name: dependency.name.clone(), key, kind });
        }
        let is_root = |kind: &String| matches!(kind.as_str(), "lib" | "bin" | "proc-macro");
        let roots = package.targets.iter().filter(|target| target.kind.iter().any(is_root));
        packages.push(Package {
            name: package.name.clone(),
            dir: dir.to_owned(),
            dependencies,
            roots: roots.map(|target| relative(&target.src_path)).collect::<Result<_, _>>()?,
        });
    }
    Ok(packages)
}

#[cfg(test)]
impl Tree {
    /// A small workspace with nothing wrong: `stats`, `erasure` with a kernel, `array`, `cli`.
    pub(crate) fn planted() -> Self {
        let forbid = "//! What it is.\n\n#![forbid(unsafe_code)]\n";
        let deny = "//! What it is.\n\n#![deny(unsafe_code)]\n";
        Self::default()
            .with_package("units", &[], forbid)
            .with_package("stats", &["levelhead-units"], forbid)
            .with_package("erasure", &["levelhead-units"], deny)
            .with_file("crates/erasure/src/kernel/mod.rs", "//! Fast.\nunsafe fn xor() {}\n")
            .with_package("array", &["levelhead-units", "levelhead-stats", "crc32c"], forbid)
            .with_package("cli", &["clap", "anyhow", "levelhead-units"], forbid)
    }

    /// The tree and the crate `crates/<name>`, with `root` as its library.
    pub(crate) fn with_package(mut self, name: &str, dependencies: &[&str], root: &str) -> Self {
        let dir = format!("crates/{name}");
        self.packages.push(Package {
            name: format!("levelhead-{name}"),
            dir: dir.clone(),
            dependencies: Vec::new(),
            roots: vec![format!("{dir}/src/lib.rs")],
        });
        let head = format!(
            "[package]\nname = \"levelhead-{name}\"\n\n[lints]\nworkspace = true\n\n[dependencies]\n"
        );
        let tree = self
            .with_file(&format!("{dir}/Cargo.toml"), &head)
            .with_file(&format!("{dir}/src/lib.rs"), root);
        dependencies
            .iter()
            .fold(tree, |tree, on| tree.with_dependency(name, on, DependencyKind::Normal))
    }

    /// The tree where the crate `name` depends on the package `on` as well.
    pub(crate) fn with_dependency(mut self, name: &str, on: &str, kind: DependencyKind) -> Self {
        let dir = format!("crates/{name}");
        let package = self.packages.iter_mut().find(|package| package.dir == dir).unwrap();
        package.dependencies.push(Dependency { name: on.into(), key: on.into(), kind });
        let manifest = self.files.iter_mut().find(|file| file.path == format!("{dir}/Cargo.toml"));
        manifest.unwrap().text.push_str(&format!("{on}.workspace = true\n"));
        self
    }

    /// The tree and one more file, in the place of the one at that path if there is one.
    pub(crate) fn with_file(mut self, path: &str, text: &str) -> Self {
        self.files.retain(|file| file.path != path);
        self.files.push(File { path: path.into(), text: text.into() });
        self
    }

    /// What the checks say, one line a finding.
    pub(crate) fn findings(&self) -> Vec<String> {
        super::check(self).iter().map(ToString::to_string).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_is_read_relative_to_the_root() {
        let json = br#"{"workspace_root":"/w","packages":[{"name":"levelhead-nbd",
            "manifest_path":"/w/crates/nbd/Cargo.toml","dependencies":[
              {"name":"levelhead-block","kind":null,"rename":null},
              {"name":"tempfile","kind":"dev","rename":"temp"}],
            "targets":[{"kind":["lib"],"src_path":"/w/crates/nbd/src/lib.rs"},
              {"kind":["test"],"src_path":"/w/crates/nbd/tests/loop.rs"}]}]}"#;
        let packages = parse(json).unwrap();
        assert_eq!(packages.len(), 1);
        assert_eq!(packages[0].manifest(), "crates/nbd/Cargo.toml");
        assert_eq!(packages[0].roots, ["crates/nbd/src/lib.rs"]);
        assert_eq!(packages[0].dependencies[0].kind, DependencyKind::Normal);
        assert_eq!(packages[0].dependencies[1].key, "temp");
        assert_eq!(packages[0].dependencies[1].kind, DependencyKind::Dev);
    }
}
