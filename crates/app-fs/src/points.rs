//! What is mounted where, as the kernel says.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use levelhead_host::MemberSpec;

use levelhead_app::AppError;

/// Where the kernel says it, for this program's view of the machine.
const LIST: &str = "/proc/self/mountinfo";

/// Something that is mounted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Point {
    /// The directory.
    pub(super) directory: PathBuf,
    /// What kind of filesystem it is.
    pub(super) kind: String,
    /// What it is on.
    pub(super) source: PathBuf,
    /// Whether the filesystem, not only this view of it, may not be written to.
    pub(super) is_read_only: bool,
}

impl Point {
    /// Whether this program answers for it.
    fn is_ours(&self) -> bool {
        matches!(self.kind.as_str(), "fuse.levelhead" | "fuseblk.levelhead")
    }
}

/// All of them, the latest last.
fn points() -> Result<Vec<Point>, AppError> {
    let text = fs::read(LIST);
    let text = text.map_err(|error| AppError::trouble(format!("cannot read {LIST}: {error}")))?;
    Ok(text.split(|&byte| byte == b'\n').filter_map(parse).collect())
}

/// A line: `36 35 98:0 / /point options .. - kind source options` (proc(5)).
fn parse(line: &[u8]) -> Option<Point> {
    let mut fields = line.split(|&byte| byte == b' ');
    let directory = path(fields.nth(4)?);
    let mut fields = fields.skip_while(|field| *field != b"-").skip(1);
    let kind = String::from_utf8(fields.next()?.to_vec()).ok()?;
    let source = path(fields.next()?);
    let is_read_only = fields.next()?.split(|&byte| byte == b',').any(|option| option == b"ro");
    Some(Point { directory, kind, source, is_read_only })
}

/// A path, in which spaces and their like are three octal digits behind a backslash.
fn path(field: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let [first, after @ ..] = rest {
        let digits = after.get(..3).filter(|_| *first == b'\\');
        let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[3..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    OsString::from_vec(bytes).into()
}

/// What this program answers for on a directory.
pub(super) fn ours_on(directory: &Path) -> Result<Point, AppError> {
    let shown = directory.display();
    // What is mounted there may not answer: only the folder above it is asked.
    let absolute = std::path::absolute(directory);
    let absolute = absolute.map_err(|error| AppError::usage(format!("{shown}: {error}")))?;
    let parent = absolute.parent().and_then(|parent| parent.canonicalize().ok());
    let place = match (parent, absolute.file_name()) {
        (Some(parent), Some(name)) => parent.join(name),
        (_, _) => absolute,
    };
    let whole = directory.canonicalize().unwrap_or_else(|_| place.clone());
    let there = |point: &Point| point.directory == place || point.directory == whole;
    match points()?.into_iter().rfind(there) {
        Some(point) if point.is_ours() => Ok(point),
        Some(Point { kind, .. }) => Err(AppError::usage(format!(
            "{shown} has a filesystem of the kind {kind}, not levelhead"
        ))),
        None => Err(AppError::usage(format!("nothing is mounted on {shown}"))),
    }
}

/// The filesystem of ours that is mounted and that a path is in.
///
/// # Errors
///
/// It is in none, or is not there.
pub(super) fn ours_above(path: &Path) -> Result<Point, AppError> {
    let shown = path.display();
    let whole = path.canonicalize();
    let whole = whole.map_err(|error| AppError::usage(format!("{shown}: {error}")))?;
    let above = points()?.into_iter().filter(|point| whole.starts_with(&point.directory));
    // The last one that is mounted on the deepest directory.
    match above.max_by_key(|point| point.directory.components().count()) {
        Some(point) if point.is_ours() => Ok(point),
        Some(_) | None => Err(AppError::usage(format!(
            "{shown} is in no filesystem that is mounted by levelhead"
        ))),
    }
}

/// Refuses what is mounted.
pub(super) fn check_unmounted(member: &MemberSpec) -> Result<(), AppError> {
    let Ok(path) = member.path().canonicalize() else { return Ok(()) };
    let is_it = |point: &Point| {
        let source = &point.source;
        source.as_os_str().as_bytes().starts_with(b"/")
            && (*source == path || source.canonicalize().is_ok_and(|source| source == path))
    };
    match points()?.into_iter().find(is_it) {
        None => Ok(()),
        Some(Point { directory, .. }) => {
            Err(AppError::usage(format!("{member} is mounted on {}", directory.display())))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_of_the_kernel_is_read() {
        let line = br"64 27 0:48 / /mnt/a\040b rw,relatime shared:33 - fuse.levelhead /d/x\134y.img rw,user_id=0";
        let expected = Point {
            directory: "/mnt/a b".into(),
            kind: "fuse.levelhead".into(),
            source: r"/d/x\y.img".into(),
            is_read_only: false,
        };
        assert_eq!(parse(line), Some(expected.clone()));
        assert!(expected.is_ours());
        let read_only = br"64 27 0:48 / /mnt ro shared:33 - fuse.levelhead /x.img ro,user_id=0";
        assert!(parse(read_only).is_some_and(|point| point.is_read_only));
        assert_eq!(parse(b""), None);
        assert_eq!(parse(b"64 27 0:48 / /mnt rw"), None);
        assert_eq!(path(br"\9\04"), PathBuf::from(r"\9\04"));
    }

    #[test]
    fn directory_on_which_nothing_is_mounted_is_named() {
        let folder = tempfile::TempDir::new().unwrap();
        let refused = ours_on(folder.path()).unwrap_err().to_string();
        assert_eq!(refused, format!("nothing is mounted on {}", folder.path().display()));
        let refused = ours_on(Path::new("/proc")).unwrap_err().to_string();
        assert_eq!(refused, "/proc has a filesystem of the kind proc, not levelhead");
    }
}
