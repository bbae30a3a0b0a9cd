//! What is counted of an array and of its drives: two tables, from which everything that shows counters is made.
//!
//! A counter is a line of a table and the place where it is counted. Those of an array are counted here, those
//! of a drive by the runtime that it hangs on.

use crate::action::Cost;

/// One counter as it is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counter {
    /// Its name in programs.
    pub name: &'static str,
    /// What is counted.
    pub unit: &'static str,
    /// What it means, in one sentence.
    pub help: &'static str,
    /// Since the array was started. It never falls.
    pub value: u64,
}

macro_rules! counters {
    ($(#[doc = $what:literal])+ $table:ident: $($name:ident, $unit:literal, $help:literal;)+) => {
        $(#[doc = $what])+
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $table {
            $(#[doc = $help] pub $name: u64,)+
        }

        impl $table {
            /// All counters, in the order in which they are shown.
            pub fn table(&self) -> impl Iterator<Item = Counter> + use<> {
                let table = [$(Counter {
                    name: stringify!($name),
                    unit: $unit,
                    help: $help,
                    value: self.$name,
                },)+];
                table.into_iter()
            }
        }
    };
}

counters! {
    /// What an array has done since it was started.
    Counters:
    requests, "requests", "Requests that were answered; a server counts each MiB of a large one.";
    subrequests, "commands", "Per-drive commands that were queued for requests.";
    removed, "commands", "Per-drive commands cancelled before they were sent to a drive.";
    redispatched, "commands", "Per-drive commands sent again, with retries, after a first pass failed.";
    decoded, "codewords", "Codewords of which a part was computed from redundancy.";
    held, "requests", "Answers that waited until the failure of a drive was durably recorded.";
    generations, "generations", "Updates of the metadata, each written to all drives.";
    damaged_reads, "sectors", "Sectors that clients asked for and did not get because they are on the bad-sector \
        list.";
    scrubbed_stripes, "stripes", "Stripes that a scrub has read and compared.";
    repaired_unreadable, "sectors", "Unreadable sectors that were repaired: written again, and read back.";
    repaired_wrong, "sectors", "Sectors that held other data than was written, and were repaired.";
    unrepaired_sectors, "sectors", "Sectors that could not be repaired.";
    unlocated_codewords, "codewords", "Codewords that do not match, and whose wrong sector cannot be located.";
    journal_records, "records", "Transaction records written to the journal rings.";
    journal_hints, "records", "Records written to another drive's ring than the one they are for.";
    journal_intents, "transactions", "Intent-logged transactions: whole codewords whose data was not journaled.";
    journal_logged_again, "transactions", "Intent-logged transactions that were journaled after all, because a \
        drive lagged.";
    journal_marks, "records", "Records without a transaction, which only advance the journal.";
    journal_appends, "commands", "Commands that wrote records to a ring, one or more at a time.";
    journal_places, "commands", "Commands that wrote journaled data back to its home location.";
    journal_flushes, "commands", "Flushes of a drive that made such writes durable.";
    corrupt_sectors, "sectors", "Sectors that a read returned with another checksum than they should have.";
    tag_reads, "commands", "Reads of tag sectors that were to be written, or that were written with their data.";
    tag_writes, "commands", "Writes of tag sectors.";
    tag_lists, "commands", "Writes of lists of checksums that tag sectors do not have yet.";
    journal_unrecovered, "sectors", "Sectors whose last contents could not be recovered at a start after a crash.";
    rebuild_reads, "commands", "Reads for a rebuild.";
    rebuild_writes, "commands", "Writes of a rebuild to a new drive.";
    rebuild_damaged, "sectors", "Sectors that a rebuild added to the bad-sector list.";
    copy_reads, "commands", "Reads of a drive that is being replaced, for the copy.";
    copy_writes, "commands", "Writes of the copy to the replacement.";
    copy_twins, "commands", "Writes sent both to a drive and to its replacement.";
    verify_reads, "commands", "Reads that verify writes.";
    verify_writes, "commands", "Writes that repaired what those reads found not stored.";
    verify_beside, "sectors", "Redundant sectors computed from stale data, and written again when that data was \
        repaired.";
    verify_recalled, "writes", "Writes that were repaired from the journal.";
    verify_records, "records", "Metadata records on the drives that were not stored, and were written again.";
    verify_found, "writes", "Writes found with sectors that were not stored, or not as sent.";
    verify_mended, "writes", "Writes found so that were repaired in full: written again, and read back.";
}

counters! {
    /// What a drive has done for its array since that was started.
    DriveCounters:
    reads, "commands", "Reads that the drive has completed, failed ones included.";
    writes, "commands", "Writes that the drive has completed, those of zeroes included.";
    flushes, "commands", "Flushes that the drive has completed.";
    trims, "commands", "Trims that the drive has completed.";
    read_bytes, "bytes", "Bytes of those reads.";
    written_bytes, "bytes", "Bytes of those writes.";
    unknown_sectors, "sectors", "Sectors that reads without retries did not return.";
    damaged_sectors, "sectors", "Sectors that the drive could not read or write, retries included.";
    refused_commands, "commands", "Commands refused by the host for lack of resources, and sent again.";
    read_errors, "errors", "Sectors that reads with retries did not return, and reads that returned only an error.";
    write_errors, "errors", "Sectors that writes did not store, and writes and flushes that returned only an error.";
    wrong_sectors, "sectors", "Sectors that held other data than was written, found by scrubs and verified writes.";
    gone_commands, "commands", "Commands that the drive completed with an error and nothing else.";
    busy, "nanoseconds", "Time with at least one command inside the drive.";
    inside, "nanoseconds", "Sum of the times that commands have spent inside the drive.";
}

impl Counters {
    /// A request was answered, and took this.
    pub(crate) fn note_answer(&mut self, cost: Cost) {
        let Cost { subs, removed, redispatched, decoded } = cost;
        self.requests += 1;
        self.subrequests += u64::from(subs);
        self.removed += u64::from(removed);
        self.redispatched += u64::from(redispatched);
        self.decoded += u64::from(decoded);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_counter_has_a_name_of_its_own_a_unit_and_a_sentence() {
        let drives = DriveCounters::default();
        for table in [Counters::default().table().collect(), drives.table().collect::<Vec<_>>()] {
            for (at, counter) in table.iter().enumerate() {
                assert!(table[..at].iter().all(|other| other.name != counter.name), "{counter:?}");
                assert!(!counter.unit.is_empty() && counter.help.ends_with('.'), "{counter:?}");
            }
        }
    }

    #[test]
    fn answer_counts_once_and_all_of_its_cost() {
        let mut counters = Counters::default();
        for _ in 0..2 {
            counters.note_answer(Cost { subs: 5, removed: 3, redispatched: 2, decoded: 1 });
        }
        let values: Vec<u64> = counters.table().map(|counter| counter.value).collect();
        assert_eq!(values[..7], [2, 10, 6, 4, 2, 0, 0]);
        assert!(values[7..].iter().all(|&value| value == 0));
    }
}
