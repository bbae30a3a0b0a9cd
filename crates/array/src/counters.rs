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
    subrequests, "commands", "Commands put into the drives' queues for requests.";
    removed, "commands", "Those of them that were withdrawn before a drive had them.";
    redispatched, "commands", "Those of them that asked again, with retries, after a first pass failed.";
    decoded, "codewords", "Codewords of which a part was computed from redundancy.";
    held, "requests", "Answers that waited until the loss of a drive was safely recorded.";
    ledger_entries, "entries", "Changes of what the drives say of the array, each written to all of them.";
    damaged_reads, "sectors", "Sectors that clients wanted and did not get because they are on the list of damaged sectors.";
    scrubbed_stripes, "stripes", "Stripes of which a scrub has read and compared everything.";
    repaired_unreadable, "sectors", "Sectors that a drive did not give, and does after they were written anew.";
    repaired_wrong, "sectors", "Sectors that held something else than what was written, and were written anew.";
    unrepaired_sectors, "sectors", "Sectors of either kind that could not be repaired.";
    unlocated_codewords, "codewords", "Codewords that do not match, and of which it cannot be told what is wrong.";
    journal_records, "records", "Records of transactions that were put onto the drives' rings.";
    journal_hints, "records", "Records that were put onto other rings than that of the drive they are for.";
    journal_intents, "transactions", "Transactions of whole codewords that were announced on the rings and not logged.";
    journal_logged_again, "transactions", "Transactions that were announced and logged after all, because a drive hindered.";
    journal_marks, "records", "Records without a transaction, which only say how far the journal is.";
    journal_appends, "commands", "Commands that put records onto a ring, one or more at a time.";
    journal_places, "commands", "Commands that wrote in place what the journal held.";
    journal_flushes, "commands", "Flushes of a drive that made such writes safe.";
    journal_unrecovered, "sectors", "Sectors of drives whose last content a start after a crash could not bring back.";
    missed_writes, "commands", "Sectors that were written to the maps of what drives have missed.";
    rebuild_reads, "commands", "Reads from which a rebuild computed what a new drive is to hold.";
    rebuild_writes, "commands", "Writes that filled a new drive.";
    rebuild_damaged, "sectors", "Sectors that a rebuild has put onto the list of damaged sectors.";
    copy_reads, "commands", "Reads of a drive that is there, for the new one that is given a copy of it.";
    copy_writes, "commands", "Writes that gave a new drive what was read so.";
    copy_twins, "commands", "Writes that went to a drive and to the new one that has a copy of it.";
    verify_reads, "commands", "Reads of sectors that were written, to see whether they were stored.";
    verify_writes, "commands", "Writes that mended what those reads found not stored.";
    verify_beside, "sectors", "Redundant sectors that counted what a drive had instead of what was written there, written again when that was mended.";
    verify_recalled, "writes", "Flawed writes that were mended with what a ring of the journal still had of them.";
    verify_records, "records", "Records of the array on its drives that were not stored, and were written again.";
    verify_found, "writes", "Writes of which some sectors were not stored, or not as they were sent.";
    verify_mended, "writes", "Those of them that were written again, read again, and found right, and of which no flaw is left that could not be mended.";
}

counters! {
    /// What a drive has done for its array since that was started.
    DriveCounters:
    reads, "commands", "Reads that the drive has ended, whatever came of them.";
    writes, "commands", "Writes that the drive has ended, those of zeroes included.";
    flushes, "commands", "Flushes that the drive has ended.";
    trims, "commands", "Trims that the drive has ended.";
    read_bytes, "bytes", "Bytes that those reads asked for.";
    written_bytes, "bytes", "Bytes that those writes were to store.";
    unknown_sectors, "sectors", "Sectors that reads did not give because they were told not to retry.";
    damaged_sectors, "sectors", "Sectors that the drive could not read or write with everything it has.";
    refused_commands, "commands", "Commands for which the machine had no room, and which are sent again.";
    gone_commands, "commands", "Commands that the drive has ended with nothing but that it failed.";
    busy, "nanoseconds", "Time in which something was inside the drive.";
    inside, "nanoseconds", "Time that commands have spent inside the drive, one by one, summed.";
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
