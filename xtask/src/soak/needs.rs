//! Programs that are not the tree's own.

use std::path::Path;

use anyhow::bail;

/// A program, and the Debian package that has it.
pub(super) struct Need {
    pub(super) program: &'static str,
    pub(super) package: &'static str,
}

/// Whether all of them can be run; else the error says which cannot, and how to get them.
pub(super) fn check(needs: &[Need]) -> anyhow::Result<()> {
    let missing: Vec<&Need> = needs.iter().filter(|need| !is_there(need.program)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let join = |text: fn(&Need) -> &str| {
        missing.iter().map(|need| text(need)).collect::<Vec<_>>().join(" ")
    };
    let (programs, packages) = (join(|need| need.program), join(|need| need.package));
    bail!(
        "not installed: {programs}; on Debian: apt-get install --no-install-recommends {packages}"
    )
}

fn is_there(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    // Where root finds programs that others need not.
    let folders = std::env::split_paths(&path).chain([Path::new("/usr/sbin").into()]);
    folders.into_iter().any(|folder| folder.join(program).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn program_that_is_not_there_is_named_with_its_package() {
        let have = Need { program: "sh", package: "dash" };
        check(&[have]).unwrap();
        let [sh, one, other] = [("sh", "dash"), ("no-such-one", "one"), ("no-such-other", "two")]
            .map(|(program, package)| Need { program, package });
        let error = check(&[sh, one, other]).unwrap_err().to_string();
        let expected = "not installed: no-such-one no-such-other; on Debian: apt-get install \
                        --no-install-recommends one two";
        assert_eq!(error, expected);
    }
}
