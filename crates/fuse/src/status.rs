//! How a mounted filesystem stands, as the text of an extended attribute of its root that is listed nowhere.
//!
//! ```text
//!   state writing
//!   groups_stale 12
//!   sectors_repaired 3
//!   ..
//! ```

use std::path::Path;

use levelhead_fs::{Answer, State, Status};
use rustix::io::Errno;

/// The attribute's name. The kernel lets every user read it.
pub const STATUS: &str = "system.levelhead.status";

/// Another one: inodes of files with sectors that are lost, one on each line.
pub const DAMAGED: &str = "system.levelhead.damaged";

/// The most bytes of the text.
const TEXT_MAX: usize = 4096;

/// The most bytes that an attribute has in Linux.
const ATTRIBUTE_MAX: usize = 1 << 16;

/// Each figure with its name.
fn figures(status: &Status) -> [(&'static str, u64); 7] {
    let Status {
        state: _,
        groups_stale,
        sectors_repaired,
        sectors_unwritable,
        sectors_lost,
        sectors_decoded,
        sectors_retried,
        files_damaged,
    } = *status;
    [
        ("groups_stale", groups_stale),
        ("sectors_repaired", sectors_repaired),
        ("sectors_unwritable", sectors_unwritable),
        ("sectors_lost", sectors_lost),
        ("sectors_decoded", sectors_decoded),
        ("sectors_retried", sectors_retried),
        ("files_damaged", files_damaged),
    ]
}

pub(crate) fn text(status: &Status) -> String {
    let figures = figures(status);
    let figures = figures.iter().map(|(name, value)| format!("{name} {value}\n"));
    std::iter::once(format!("state {}\n", status.state.name())).chain(figures).collect()
}

/// What a text says; nothing if a figure is missing or no number.
fn parse(text: &str) -> Option<Status> {
    let value =
        |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    let figure = |name: &str| value(name)?.parse().ok();
    Some(Status {
        state: State::named(value("state")?)?,
        sectors_unwritable: figure("sectors_unwritable")?,
        groups_stale: figure("groups_stale")?,
        sectors_repaired: figure("sectors_repaired")?,
        sectors_lost: figure("sectors_lost")?,
        sectors_decoded: figure("sectors_decoded")?,
        sectors_retried: figure("sectors_retried")?,
        files_damaged: figure("files_damaged")?,
    })
}

/// How the filesystem that is mounted on `point` stands; nothing if none of ours is mounted there.
///
/// # Errors
///
/// There is no such directory, or the filesystem does not answer.
pub fn read_status(point: &Path) -> std::io::Result<Option<Status>> {
    let mut bytes = vec![0; TEXT_MAX];
    match rustix::fs::getxattr(point, STATUS, &mut bytes) {
        Ok(count) => Ok(std::str::from_utf8(&bytes[..count]).ok().and_then(parse)),
        Err(Errno::NODATA | Errno::OPNOTSUPP) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Numbers as the text of an attribute.
pub(crate) fn damaged(answer: Answer) -> Answer {
    match answer {
        Answer::Inodes(inodes) => {
            let lines = inodes.iter().map(|inode| format!("{inode}\n"));
            Answer::Bytes(lines.collect::<String>().into_bytes())
        }
        other => other,
    }
}

/// Inodes of files with sectors that are lost, the first thousand, of the filesystem that is mounted on `point`.
///
/// # Errors
///
/// There is no such directory, none of ours is mounted there, or the filesystem does not answer.
pub fn read_damaged(point: &Path) -> std::io::Result<Vec<u64>> {
    let mut bytes = vec![0; ATTRIBUTE_MAX];
    let count = rustix::fs::getxattr(point, DAMAGED, &mut bytes)?;
    let text = String::from_utf8_lossy(&bytes[..count]).into_owned();
    Ok(text.lines().filter_map(|line| line.parse().ok()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_is_read_as_it_was_written() {
        let status = Status {
            state: State::Failed(levelhead_fs::Failure::Metadata),
            sectors_unwritable: 5,
            groups_stale: 3,
            sectors_repaired: 4,
            sectors_lost: 5,
            sectors_decoded: 6,
            sectors_retried: 7,
            files_damaged: u64::MAX,
        };
        for state in State::ALL {
            let status = Status { state, ..status };
            assert_eq!(parse(&text(&status)), Some(status));
        }
        let text = text(&status);
        assert!(text.len() < TEXT_MAX);
        assert_eq!(parse(&text), Some(status));
        assert_eq!(parse(&text.replace("groups_stale", "groups")), None);
        assert_eq!(parse("groups_stale x\n"), None);
    }
}
