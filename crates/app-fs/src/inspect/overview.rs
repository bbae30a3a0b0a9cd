//! The superblocks, where everything lies, and how much there is.

use levelhead_fs::format::superblock::{NoSuperblock, Superblock, ZERO_FORCING};
use levelhead_fs::inspect::{Counts, SuperblockCopy};
use levelhead_units::{Bytes, Sectors};
use serde::Serialize;

use super::lines;

/// See the module.
#[derive(Clone, Debug, Serialize)]
pub struct Overview {
    target: String,
    label: String,
    identity: String,
    /// Seconds since 1970.
    created: i64,
    in_order: bool,
    superblocks: Vec<CopyShown>,
    sectors: u64,
    bytes: u64,
    groups: u64,
    group_sectors: u64,
    metadata_copies: u8,
    /// Sectors at the beginning of each group whose use is fixed.
    fixed_sectors: u64,
    journal_lba: u64,
    journal_sectors: u64,
    summary_lba: u64,
    /// `REDUNDANT,DATA` of the longest groups.
    code: String,
    /// The most data symbols that go with one redundant symbol, with two, ..
    ladder: Vec<u16>,
    interleave: u8,
    zero_forcing: bool,
    /// Inodes of the root directory and of the filesystem's own lists.
    root_inode: u64,
    orphans_inode: u64,
    damaged_inode: u64,
    spare_units_inode: u64,
    units_inode: u64,
    /// The name of the first record of the journal that may count.
    first_record: u64,
    /// Nothing where they cannot be read.
    counts: Option<CountsShown>,
}

#[derive(Clone, Debug, Serialize)]
struct CopyShown {
    lba: u64,
    state: &'static str,
    generation: Option<u64>,
    in_order: Option<bool>,
}

#[derive(Clone, Debug, Serialize)]
struct CountsShown {
    files: u64,
    files_damaged: u64,
    free_sectors: u64,
    free_bytes: u64,
}

impl Overview {
    pub(super) fn new(
        target: &str,
        superblock: &Superblock,
        copies: &[SuperblockCopy],
        counts: Option<Counts>,
    ) -> Self {
        let Superblock { geometry, ladder, .. } = superblock;
        let journal = geometry.journal();
        let hex = superblock.identity.iter().map(|byte| format!("{byte:02x}"));
        Self {
            target: target.to_owned(),
            label: superblock.label.clone(),
            identity: hex.collect(),
            created: superblock.created,
            in_order: superblock.is_clean,
            superblocks: copies.iter().map(|copy| CopyShown::new(copy, superblock)).collect(),
            sectors: geometry.sectors,
            bytes: Sectors::new(geometry.sectors).bytes().get(),
            groups: geometry.groups(),
            group_sectors: geometry.group_sectors,
            metadata_copies: geometry.copies,
            fixed_sectors: geometry.fixed_end(),
            journal_lba: journal.lba.get(),
            journal_sectors: journal.sectors.get(),
            summary_lba: superblock.summary.get(),
            code: format!("{},{}", ladder.redundant_max(), ladder.data_max()),
            ladder: ladder.lengths().to_vec(),
            interleave: superblock.interleave,
            zero_forcing: superblock.incompatible & ZERO_FORCING != 0,
            root_inode: superblock.root,
            orphans_inode: superblock.orphans,
            damaged_inode: superblock.damaged,
            spare_units_inode: superblock.spare,
            units_inode: superblock.units,
            first_record: superblock.record,
            counts: counts.map(|counts| CountsShown {
                files: counts.inodes,
                files_damaged: counts.files_damaged,
                free_sectors: counts.free_sectors,
                free_bytes: Sectors::new(counts.free_sectors).bytes().get(),
            }),
        }
    }

    pub(super) fn text(&self) -> String {
        let mut text = format!("{}\n", self.target);
        for CopyShown { lba, state, generation, in_order } in &self.superblocks {
            text.push_str(&format!("superblock at {lba}: {state}"));
            if let Some((generation, in_order)) = generation.zip(*in_order) {
                let state = if in_order { "left in order" } else { "in use" };
                text.push_str(&format!(", generation {generation}, {state}"));
            }
            text.push('\n');
        }
        let rungs: Vec<String> = self.ladder.iter().map(u16::to_string).collect();
        text.push_str(&lines(&[
            ("label", self.label.clone()),
            ("identity", self.identity.clone()),
            ("made", format!("{} s after 1970", self.created)),
            ("sectors", format!("{} ({})", self.sectors, Bytes::new(self.bytes).short())),
            ("groups", format!("{} of {} sectors", self.groups, self.group_sectors)),
            ("fixed places", format!("the first {} sectors of each group", self.fixed_sectors)),
            ("journal", format!("{} sectors at {}", self.journal_sectors, self.journal_lba)),
            ("first record that may count", self.first_record.to_string()),
            ("summary", format!("at {}", self.summary_lba)),
            ("copies of metadata", self.metadata_copies.to_string()),
            ("code", format!("{} (redundant,data)", self.code)),
            ("ladder", rungs.join(" ")),
            ("interleave", self.interleave.to_string()),
            ("zero forcing", if self.zero_forcing { "yes" } else { "no" }.to_owned()),
            (
                "inodes",
                format!(
                    "{} root, {} without names, {} damaged files, {} units with room, {} units",
                    self.root_inode,
                    self.orphans_inode,
                    self.damaged_inode,
                    self.spare_units_inode,
                    self.units_inode
                ),
            ),
        ]));
        match &self.counts {
            Some(counts) => text.push_str(&lines(&[
                ("files", counts.files.to_string()),
                ("files damaged", counts.files_damaged.to_string()),
                ("free sectors", counts.free_sectors.to_string()),
            ])),
            None => text.push_str("what says how much there is cannot be read\n"),
        }
        text
    }
}

impl CopyShown {
    fn new(copy: &SuperblockCopy, right: &Superblock) -> Self {
        let state = match &copy.found {
            Ok(_) if copy.counts => "counts",
            Ok(found) if found == right => "the same",
            Ok(found) if found.identity != right.identity => "of another filesystem",
            Ok(found) if found.generation < right.generation => "older",
            Ok(_) => "different",
            Err(NoSuperblock::Absent) => "absent",
            Err(NoSuperblock::Damaged) => "damaged",
            Err(NoSuperblock::Unknown { .. }) => "of another version",
        };
        let found = copy.found.as_ref().ok();
        Self {
            lba: copy.lba.get(),
            state,
            generation: found.map(|found| found.generation),
            in_order: found.map(|found| found.is_clean),
        }
    }
}
