//! What has a path: its inode, and where its sectors lie.

use levelhead_fs::format::inode::{Form, Moment, mode};
use levelhead_fs::inspect::{FileFound, FileWindow};
use levelhead_units::escaped;
use serde::Serialize;

use super::{ExtentShown, lines};

/// See the module.
#[derive(Clone, Debug, Serialize)]
pub struct FileShown {
    path: String,
    inode: u64,
    r#type: &'static str,
    /// Permissions as octal digits.
    mode: String,
    links: u32,
    uid: u32,
    gid: u32,
    /// Bytes; of a directory its entries.
    size: u64,
    /// Sectors that its coding extents take.
    sectors: u64,
    accessed: When,
    modified: When,
    changed: When,
    created: When,
    generation: u32,
    kind: &'static str,
    /// Whether the inode has the root of a tree, or the content itself.
    form: &'static str,
    device: u32,
    /// The lead of the unit with its extended attributes, or 0.
    attributes_lba: u64,
    parent: u64,
    /// Whether it is on the list of files with lost sectors.
    damaged: bool,
    windows: Vec<WindowShown>,
}

/// A moment since 1970.
#[derive(Clone, Copy, Debug, Serialize)]
struct When {
    seconds: i64,
    nanos: u32,
}

/// Consecutive pages, and the coding extent that they lie in.
#[derive(Clone, Copy, Debug, Serialize)]
struct WindowShown {
    page: u64,
    pages: u32,
    lba: u64,
    /// Pages of the extent before the first of these.
    skip: u32,
    extent: ExtentShown,
}

impl FileShown {
    pub(super) fn new(path: &str, found: &FileFound) -> Self {
        let FileFound { number, inode, windows, is_listed_damaged } = found;
        let when = |moment: Moment| When { seconds: moment.seconds, nanos: moment.nanos };
        Self {
            path: path.to_owned(),
            inode: *number,
            r#type: type_of(inode.mode),
            mode: format!("{:04o}", inode.mode & mode::PERMISSIONS),
            links: inode.links,
            uid: inode.uid,
            gid: inode.gid,
            size: inode.size,
            sectors: inode.sectors,
            accessed: when(inode.accessed),
            modified: when(inode.modified),
            changed: when(inode.changed),
            created: when(inode.created),
            generation: inode.generation,
            kind: inode.kind.name(),
            form: match inode.form {
                Form::Tree => "tree",
                Form::Content => "content",
            },
            device: inode.device,
            attributes_lba: inode.attributes.get(),
            parent: inode.parent,
            damaged: *is_listed_damaged,
            windows: windows.iter().map(WindowShown::new).collect(),
        }
    }

    pub(super) fn text(&self) -> String {
        let when = |when: When| format!("{}.{:09}", when.seconds, when.nanos);
        let path = escaped(&self.path);
        let mut text = format!("{path}: {}, inode {}\n", self.r#type, self.inode);
        text.push_str(&lines(&[
            ("permissions", format!("{}, owner {}, group {}", self.mode, self.uid, self.gid)),
            ("names", self.links.to_string()),
            ("size", self.size.to_string()),
            ("sectors", self.sectors.to_string()),
            ("kind", self.kind.to_owned()),
            ("read", when(self.accessed)),
            ("content changed", when(self.modified)),
            ("changed", when(self.changed)),
            ("made", when(self.created)),
            ("generation", self.generation.to_string()),
            ("the inode has", format!("{} of its {}", self.part(), self.form)),
            ("extended attributes", self.place(self.attributes_lba)),
            ("damaged", if self.damaged { "yes" } else { "no" }.to_owned()),
        ]));
        for WindowShown { page, pages, lba, skip, extent } in &self.windows {
            let extent = extent.text();
            text.push_str(&format!(
                "page {page}: {pages} pages at {lba}, from {skip} on of {extent}\n"
            ));
        }
        text
    }

    fn part(&self) -> &'static str {
        if self.form == "tree" { "the root" } else { "all" }
    }

    fn place(&self, lba: u64) -> String {
        if lba == 0 { "none".to_owned() } else { format!("at {lba}") }
    }
}

impl WindowShown {
    fn new(found: &FileWindow) -> Self {
        let window = found.window;
        Self {
            page: found.page,
            pages: window.count,
            lba: window.first().get(),
            skip: window.skip,
            extent: ExtentShown::new(&window.extent),
        }
    }
}

fn type_of(of: u32) -> &'static str {
    match of & mode::TYPE {
        mode::FILE => "file",
        mode::DIRECTORY => "directory",
        mode::LINK => "symbolic link",
        mode::PIPE => "pipe",
        mode::SOCKET => "socket",
        mode::BLOCK_DEVICE => "block device",
        mode::CHARACTER_DEVICE => "character device",
        _ => "unknown",
    }
}
