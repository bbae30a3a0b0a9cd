//! Nothing of one machine in the text: no folder that only it has, no host that only it resolves,
//! and no package that comes from anywhere but crates.io.
//!
//! The words are put together here rather than written out, so that this file passes its own check.

use super::tree::{File, Tree};
use super::{Finding, Rule};

/// First folders of paths that a build machine or a person's account has.
const FOLDERS: &[&str] = &["work", "farm", "root", "home", "tmp", "Users"];

/// Last labels of host names that exist inside one network only.
const PRIVATE_NAMES: &[&str] = &["internal", "local", "lan", "corp", "intranet", "svc", "cluster"];

/// Where Cargo.lock may say that a package comes from.
const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    tree.files.iter().flat_map(in_file).collect()
}

fn in_file(file: &File) -> Vec<Finding> {
    let mut findings = Vec::new();
    let is_lock = file.path.ends_with("Cargo.lock");
    let is_cargo_config = file.path.contains(".cargo/");
    for (at, line) in file.text.lines().enumerate() {
        let mut found = |sentence: String| {
            let path = file.path.clone();
            findings.push(Finding { path, line: at + 1, rule: Rule::Machine, sentence });
        };
        if let Some(folder) = FOLDERS.iter().find(|folder| has_folder(line, folder)) {
            found(format!("a path below {}{folder} exists on one machine only", '/'));
        }
        if let Some(host) = hosts(line).find(|host| is_private(host)) {
            found(format!("{host} is a host of one network only"));
        }
        if is_lock && line.starts_with("source = ") && !line.contains(CRATES_IO) {
            found("packages come from crates.io".to_owned());
        }
        if is_cargo_config
            && ["[source", "[registr", "replace-with"]
                .iter()
                .any(|key| line.trim_start().starts_with(key))
        {
            found("which registry a machine uses is that machine's own setting".to_owned());
        }
    }
    findings
}

/// Whether `line` names the top folder `name` or something in it.
fn has_folder(line: &str, name: &str) -> bool {
    let folder = format!("/{name}");
    line.match_indices(&folder).any(|(at, _)| {
        let (before, after) = (&line[..at], &line[at + folder.len()..]);
        let goes_on = |c: char| c.is_alphanumeric() || "._-".contains(c);
        // A path starts here unless one goes on, but after a scheme one may start.
        let is_start = before.ends_with("://")
            || !before.ends_with(|c: char| goes_on(c) || "/~$})]<>*".contains(c));
        is_start && !after.starts_with(goes_on)
    })
}

/// The hosts of the web addresses in `line`.
fn hosts(line: &str) -> impl Iterator<Item = &str> {
    let addresses = line.match_indices("://").filter(|&(at, _)| {
        let scheme = &line[..at];
        scheme.ends_with("http") || scheme.ends_with("https")
    });
    addresses.map(|(at, separator)| {
        let rest = &line[at + separator.len()..];
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && !"-._@".contains(c));
        let host = &rest[..end.unwrap_or(rest.len())];
        host.rsplit('@').next().unwrap_or(host).trim_end_matches('.')
    })
}

/// Whether only one network knows `host`. This machine itself is known everywhere.
fn is_private(host: &str) -> bool {
    if host.is_empty() || host == "localhost" || host.starts_with("127.") {
        return false;
    }
    let numbers: Option<Vec<u8>> = host.split('.').map(|label| label.parse().ok()).collect();
    match numbers.as_deref() {
        Some([10, ..] | [192, 168, ..] | [172, 16..=31, ..] | [169, 254, ..]) => true,
        Some(_) => false,
        None => {
            let last = host.rsplit('.').next().unwrap_or(host);
            !host.contains('.') || PRIVATE_NAMES.contains(&last)
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::tidy::Tree;

    fn check(path: &str, text: &str, want: &[&str]) {
        let tree = Tree::planted().with_file(path, text);
        let want: Vec<_> = want.iter().map(|what| format!("{path}:1: machine: {what}")).collect();
        assert_eq!(tree.findings(), want, "{text}");
    }

    /// A path below a folder, put together so that this file stays clean itself.
    fn below(folder: &str) -> String {
        format!("{}{folder}/x", '/')
    }

    #[test]
    fn planted_paths_are_found() {
        for folder in super::FOLDERS {
            let want = format!("a path below {}{folder} exists on one machine only", '/');
            check("README.md", &format!("run it in {}", below(folder)), &[&want]);
            check("a.toml", &format!("a = \"{}\"", below(folder)), &[&want]);
            check("a.md", &format!("cd {}{folder}, then", '/'), &[&want]);
            check("a.md", &format!("file://{}", below(folder)), &[&want]);
        }
    }

    #[test]
    fn paths_of_anywhere_are_let_through() {
        check("a.md", &format!("crates{}, ..{0}, $OUT{0}, {{}}{0}", below("tmp")), &[]);
        check("a.md", &format!("https://example.org{}", below("work")), &[]);
        check("a.md", &format!("~{}, work/hard, and/or, /etc/fstab", below("work")), &[]);
        check("a.md", "/workload, </root>", &[]);
    }

    #[test]
    fn planted_hosts_are_found() {
        for host in ["mirror", "10.0.0.7", "192.168.1.1", "crates.corp", "index.svc.internal"] {
            let want = format!("{host} is a host of one network only");
            check("a.md", &format!("see http{}//{host}:8080/x", ':'), &[&want]);
        }
        for host in ["localhost:10809", "127.0.0.1", "docs.rs", "example.org", "8.8.8.8"] {
            check("a.md", &format!("see https://{host}/x"), &[]);
        }
        check("a.md", "nbd://mirror and nbd+unix:///?socket=a", &[]);
    }

    #[test]
    fn planted_registries_are_found() {
        let from = |source: &str| format!("source = \"{source}\"");
        check("Cargo.lock", &from(super::CRATES_IO), &[]);
        let other = "registry+https://example.org/index";
        check("Cargo.lock", &from(other), &["packages come from crates.io"]);
        let setting = "which registry a machine uses is that machine's own setting";
        check(".cargo/config.toml", "[source.crates-io]", &[setting]);
    }
}
