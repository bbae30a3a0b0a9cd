//! What a sector is.

use levelhead_fs::format::unit::Kind;
use levelhead_fs::inspect::{CopyState, FoundSector, Member, SectorState, SectorUse};
use levelhead_units::escaped;
use serde::Serialize;

use super::ExtentShown;

/// See the module.
#[derive(Clone, Debug, Serialize)]
pub struct SectorShown {
    lba: u64,
    group: u64,
    /// Its place in the group.
    offset: u64,
    #[serde(flatten)]
    of: UseShown,
}

#[derive(Clone, Debug, Serialize)]
#[serde(tag = "use", rename_all = "lowercase")]
enum UseShown {
    Superblock,
    /// The first sector of a group that has no superblock.
    Kept,
    Journal {
        /// Its place there.
        at: u64,
    },
    Metadata {
        kind: &'static str,
        /// The inode that it is of, or 0.
        inode: u64,
        copies: Vec<CopyShown>,
    },
    File(Box<FilePart>),
    Free,
    Unknown,
}

#[derive(Clone, Copy, Debug, Serialize)]
struct CopyShown {
    lba: u64,
    state: &'static str,
}

#[derive(Clone, Debug, Serialize)]
struct FilePart {
    inode: u64,
    path: Option<String>,
    page: Option<u64>,
    redundant: bool,
    extent: ExtentShown,
    /// Which codeword of the extent, from 0.
    codeword: u32,
    /// Which symbol of the codeword, from 0; data symbols come first.
    symbol: usize,
    state: &'static str,
    codeword_data: u32,
    codeword_redundant: u8,
    /// Symbols of the codeword that have to be computed.
    codeword_bad: u32,
    /// Whether they can be.
    repairable: bool,
}

impl SectorShown {
    pub(super) fn new(found: &FoundSector) -> Self {
        let of = match &found.of {
            SectorUse::Superblock => UseShown::Superblock,
            SectorUse::Kept => UseShown::Kept,
            SectorUse::Journal { at } => UseShown::Journal { at: *at },
            SectorUse::Unit { kind, owner, copies } => UseShown::Metadata {
                kind: kind.map_or("unknown", kind_name),
                inode: *owner,
                copies: copies
                    .iter()
                    .map(|copy| CopyShown { lba: copy.lba.get(), state: copy_name(copy.state) })
                    .collect(),
            },
            SectorUse::File(member) => UseShown::File(Box::new(FilePart::new(member))),
            SectorUse::Free => UseShown::Free,
            SectorUse::Unknown => UseShown::Unknown,
        };
        Self { lba: found.lba.get(), group: found.group.0, offset: found.offset, of }
    }

    pub(super) fn text(&self) -> String {
        let Self { lba, group, offset, of } = self;
        let mut text = format!("sector {lba}: group {group}, offset {offset}\n");
        match of {
            UseShown::Superblock => text.push_str("a copy of the superblock\n"),
            UseShown::Kept => text.push_str("kept free for a superblock\n"),
            UseShown::Journal { at } => text.push_str(&format!("sector {at} of the journal\n")),
            UseShown::Metadata { kind, inode, copies } => {
                text.push_str(&format!("metadata: {kind}"));
                if *inode != 0 {
                    text.push_str(&format!(" of inode {inode}"));
                }
                text.push('\n');
                for CopyShown { lba, state } in copies {
                    text.push_str(&format!("copy at {lba}: {state}\n"));
                }
            }
            UseShown::File(part) => text.push_str(&part.text()),
            UseShown::Free => text.push_str("free\n"),
            UseShown::Unknown => text.push_str("taken, and nothing that was found has it\n"),
        }
        text
    }
}

impl FilePart {
    fn new(member: &Member) -> Self {
        let path = member.path.as_deref();
        Self {
            inode: member.inode,
            path: path.map(|path| String::from_utf8_lossy(path).into_owned()),
            page: member.page,
            redundant: member.at.symbol >= member.word_data as usize,
            extent: ExtentShown::new(&member.extent),
            codeword: member.at.word,
            symbol: member.at.symbol,
            state: state_name(member.state),
            codeword_data: member.word_data,
            codeword_redundant: member.extent.redundant,
            codeword_bad: member.word_bad,
            repairable: member.word_bad <= member.extent.redundant.into(),
        }
    }

    fn text(&self) -> String {
        let path = escaped(self.path.as_deref().unwrap_or("without a name that was found"));
        let part = match (self.redundant, self.page) {
            (true, _) => "a redundant sector".to_owned(),
            (false, Some(page)) => format!("page {page}"),
            (false, None) => "a data sector that is not a page any more".to_owned(),
        };
        let able = match (self.codeword_bad, self.repairable) {
            (0, _) => "",
            (_, true) => ", which can be computed",
            (_, false) => ", which is more than can be computed",
        };
        format!(
            "{part} of inode {}: {path}\nits checksum: {}\n{}\nsymbol {} of codeword {}: {} data and {} redundant symbols, {} \
             of them bad{able}\n",
            self.inode,
            self.state,
            self.extent.text(),
            self.symbol,
            self.codeword,
            self.codeword_data,
            self.codeword_redundant,
            self.codeword_bad
        )
    }
}

fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Bitmap => "bitmap",
        Kind::Sums => "checksums",
        Kind::Summary => "summary",
        Kind::Inodes => "inodes",
        Kind::Node => "node",
        Kind::Attributes => "attributes",
        Kind::Record => "record",
    }
}

fn copy_name(state: CopyState) -> &'static str {
    match state {
        CopyState::Right => "right",
        CopyState::Older => "older",
        CopyState::Wrong => "wrong",
        CopyState::Unreadable => "unreadable",
        CopyState::Unwritten => "never written",
    }
}

fn state_name(state: SectorState) -> &'static str {
    match state {
        SectorState::Right => "right",
        SectorState::Wrong => "wrong",
        SectorState::Unreadable => "unreadable",
        SectorState::Unwritten => "never written",
        SectorState::Unsummed => "lost",
    }
}
