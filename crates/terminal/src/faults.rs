//! The help of options about faults, from the drive's table of them.

use levelhead_drive::{FaultKind, Faults};

/// Of the option that sets the kind `key` alone.
pub fn one(key: &str) -> String {
    let kind = Faults::kind(key).expect("an option of a kind bears its name");
    match kind.examples {
        [_] => kind.help().to_owned(),
        examples => format!("{} ({})", kind.help(), examples.join(", ")),
    }
}

/// Of an option that takes all kinds: the names.
pub fn all(what: &str) -> String {
    format!("{what}: KEY=VALUE,.. with {} (docs/drive.md)", Faults::KEYS)
}

/// The same with a line about each.
pub fn each(what: &str) -> String {
    let line = |kind: &FaultKind| {
        let (key, form, examples) = (kind.key, kind.form, kind.examples.join(", "));
        format!("{key}={form}  {}; as in {examples}", kind.help())
    };
    let lines: Vec<String> = Faults::KINDS.iter().map(line).collect();
    format!("{what}: KEY=VALUE,.. (docs/drive.md) with\n\n{}", lines.join("\n"))
}
