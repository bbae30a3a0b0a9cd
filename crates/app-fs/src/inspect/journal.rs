//! The journal as it lies on the disk.

use levelhead_fs::inspect::{Journal, JournalRecord};
use serde::Serialize;

/// See the module.
#[derive(Clone, Debug, Serialize)]
pub struct JournalShown {
    lba: u64,
    sectors: u64,
    /// Whether the filesystem was left in order: then nothing of it counts.
    in_order: bool,
    /// The name of the first record that may count.
    first_record: u64,
    records: Vec<RecordShown>,
}

#[derive(Clone, Copy, Debug, Serialize)]
struct RecordShown {
    record: u64,
    mark: bool,
    lba: u64,
    sectors: u32,
    /// The oldest record that counts beside it, as it says.
    oldest: u64,
    /// Whether all of it can be read or computed.
    whole: bool,
    /// Sectors of its payload that are bad.
    payload_bad: u32,
    /// Whether the next mount takes what it says.
    counts: bool,
    entries: Entries,
}

#[derive(Clone, Copy, Debug, Serialize)]
struct Entries {
    units: u32,
    data: u32,
    pages: u32,
    freed: u32,
    redundant: u32,
    stale: u32,
}

impl JournalShown {
    pub(super) fn new(journal: &Journal) -> Self {
        let lba = journal.extent.lba.get();
        let shown = |record: &JournalRecord| RecordShown {
            record: record.record,
            mark: record.is_mark,
            lba: lba + u64::from(record.at),
            sectors: record.sectors,
            oldest: record.oldest,
            whole: record.is_whole,
            payload_bad: record.payload_bad,
            counts: record.counts,
            entries: Entries {
                units: record.units,
                data: record.data,
                pages: record.pages,
                freed: record.revoked,
                redundant: record.redundant,
                stale: record.stale,
            },
        };
        Self {
            lba,
            sectors: journal.extent.sectors.get(),
            in_order: journal.is_clean,
            first_record: journal.first,
            records: journal.records.iter().map(shown).collect(),
        }
    }

    pub(super) fn text(&self) -> String {
        let Self { lba, sectors, in_order, first_record, records } = self;
        let state = match in_order {
            true => "clean: nothing of it counts",
            false => "in use: what counts comes to its place with the next mount",
        };
        let mut text = format!(
            "journal: {sectors} sectors at {lba}, {state}\nfirst record that may count: {first_record}\n"
        );
        for shown in records {
            let RecordShown { record, mark, lba, sectors, oldest, payload_bad, entries, .. } =
                shown;
            let what = if *mark { "mark" } else { "record" };
            let fate = match (shown.whole, shown.counts) {
                (true, true) => "counts",
                (true, false) => "over",
                (false, _) => "not whole",
            };
            let Entries { units, data, pages, freed, redundant, stale } = entries;
            text.push_str(&format!(
                "{what} {record} at {lba}: {fate}, {sectors} sectors, oldest {oldest}; {units} units, {data} data, {pages} pages, {freed} freed, \
                 {redundant} redundant, {stale} stale"
            ));
            if *payload_bad > 0 {
                text.push_str(&format!("; {payload_bad} bad sectors"));
            }
            text.push('\n');
        }
        text
    }
}
