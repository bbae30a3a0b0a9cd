//! What crash swarms aim at.

use levelhead_array::journal::rules::Rules;
use levelhead_array::{VerifyMode, VerifySettings};
use levelhead_units::{Nanos, Sectors};

use crate::disk::Manners;

/// What a run is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aim {
    /// What its disks do with flushes.
    pub manners: Manners,
    /// Which rules the array keeps.
    pub rules: Rules,
    /// Whether the array keeps a journal.
    pub has_journal: bool,
    /// The most writes of one life.
    pub writes: u64,
    /// Where most of them go: single sectors of this many at the beginning. Anywhere if that is 0.
    pub focus: u64,
    /// Of how many effect boundaries one is made an image of.
    pub one_of: u64,
    /// Of how many images one goes on with more writes once it is read.
    pub goes_on: u64,
    /// The fewest redundant disks of the arrays.
    pub redundant_min: usize,
    /// Whether what the array records of itself is carried out late.
    pub slow_metadata: bool,
    /// Whether the journal lies on disks of its own, one more than disks are redundant.
    pub is_apart: bool,
    /// Whether a disk that sits out ends its commands late.
    pub slow_aside: bool,
    /// Whether every image goes on in which sectors were found damaged.
    pub seeks_damage: bool,
    /// Whether arrays have more stripes, are filled stripe by stripe, and record that soon.
    pub fills: bool,
    /// How what is written is read back, if it is.
    pub verify: Option<VerifySettings>,
    /// Of how many writes in place a disk stores one only in part, or nothing of it, or all if that is 0.
    pub lies: u64,
    /// A piece of a journal has from 10 sectors to this many more.
    pub more_space: u64,
    /// Whether most writes are of whole stripes.
    pub is_whole: bool,
    /// Whether only mirrors are drawn.
    pub is_mirror: bool,
    /// Whether sectors have checksums.
    pub has_checksums: bool,
    /// Of how many sectors of data one is on the list of damaged sectors from the beginning, where that is kept.
    pub listed: u64,
    /// How often mishaps come.
    pub odds: Odds,
    /// How often faults come that are no loss and no power cut.
    pub faults: Faults,
    /// A fault of the server, for a canary.
    pub planted: Planted,
}

/// A fault of the server that starts the array and reads the clock for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Planted {
    /// None.
    None,
    /// Time in which the server did not run counts against drives.
    StandstillsCount,
    /// Redundancy is taken for valid after an unclean shutdown.
    TrustsRedundancy,
}

/// How often faults come beside losses and power cuts: of how many occasions one brings each, or none if that is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// Of steps: an operator starts a scrub, or stops the one that runs.
    pub scrub: u64,
    /// Of steps: an operator pauses rebuilds, or lets them go on.
    pub pause: u64,
    /// Of steps: the server stands still for longer than a drive may be silent.
    pub standstill: u64,
    /// Of unreadable sectors: one is read before it becomes unreadable, or becomes readable.
    pub flaky: u64,
    /// Of steps: the connection to a member breaks, and a write inside it may land at any later moment.
    pub disconnect: u64,
    /// Of starts: the server had died, and the members had lived on with the writes inside them.
    pub death: u64,
    /// Of steps: a late write lands.
    pub land: u64,
    /// Of starts: a member is in an earlier state of its own.
    pub older: u64,
    /// Of starts: some sectors of a member that the array keeps for itself are in an earlier state of their own.
    pub older_sectors: u64,
    /// Of steps: a member goes back to an earlier state of its own.
    pub going_back: u64,
    /// Of members that are missing at a start: a copy of another one is in the place.
    pub twins: u64,
    /// Of crashes: one fault more than the layout survives: a drive less, or a sector that cannot be read.
    pub beyond: u64,
    /// Of disks with which something is wrong: their writes and flushes fail, writes in any part.
    pub failed: u64,
    /// Of starts: the power fails at every boundary between the effects of a recovery.
    pub recovery: u64,
    /// Of lives: a second server serves the same members, as members on other machines may have one.
    pub second: u64,
}

impl Faults {
    /// None of them.
    pub const NONE: Self = Self {
        scrub: 0,
        pause: 0,
        standstill: 0,
        flaky: 0,
        disconnect: 0,
        death: 0,
        land: 0,
        older: 0,
        older_sectors: 0,
        going_back: 0,
        twins: 0,
        second: 0,
        beyond: 0,
        failed: 0,
        recovery: 0,
    };

    /// Whether one member has faults that are neither a loss nor an error.
    pub(super) fn has_remote(self) -> bool {
        self.disconnect + self.death + self.older + self.older_sectors + self.going_back > 0
    }
}

/// How often mishaps come: of how many occasions one brings each, or none if that is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Odds {
    /// Of arrays: writes of whole codewords are announced and not logged, even the shortest.
    pub announced: u64,
    /// Of arrays: the redundancy of some stripes is not valid yet.
    pub unsynced: u64,
    /// Of lives: a disk is lost.
    pub loss: u64,
    /// Of lives: something is wrong with a disk for a time: it hangs, has no room, or may not be written.
    pub trouble: u64,
    /// Of steps: a disk that was lost is taken back, if one is there.
    pub back: u64,
    /// Of steps: a disk that is there is copied to a new one, which then has its place.
    pub copy: u64,
    /// Of lives: a disk sits out, so that writes do not wait for it.
    pub aside: u64,
    /// Of steps: a read beside the writes.
    pub read: u64,
    /// Of steps: a flush.
    pub flush: u64,
    /// Of lives: the array is stopped cleanly.
    pub stop: u64,
    /// Of crashes, again and again: a disk does not come back.
    pub without: u64,
    /// Of crashes: a sector of a journal cannot be read.
    pub record: u64,
    /// Of crashes: a sector that holds data or redundancy cannot be read.
    pub place: u64,
    /// Of starts: a disk is lost while the array recovers.
    pub loss_again: u64,
    /// Of starts: the power fails again while the array recovers.
    pub again: u64,
}

impl Odds {
    /// Something of everything.
    pub const DEFAULT: Self = Self {
        announced: 2,
        unsynced: 8,
        loss: 3,
        trouble: 6,
        back: 0,
        copy: 0,
        aside: 3,
        read: 16,
        flush: 64,
        stop: 4,
        without: 3,
        record: 3,
        place: 6,
        loss_again: 6,
        again: 3,
    };
}

impl Aim {
    /// Nothing goes wrong but power cuts.
    const QUIET: Odds = Odds {
        announced: 0,
        unsynced: 0,
        loss: 0,
        trouble: 0,
        back: 0,
        copy: 0,
        aside: 0,
        read: 16,
        flush: 64,
        stop: 0,
        without: 0,
        record: 0,
        place: 0,
        loss_again: 0,
        again: 0,
    };

    /// Honest disks, a journal, an image at every boundary of up to three writes.
    pub const DEFAULT: Self = Self {
        manners: Manners::Honest,
        rules: Rules::ALL,
        has_journal: true,
        writes: 3,
        focus: 0,
        one_of: 1,
        goes_on: 16,
        redundant_min: 1,
        slow_metadata: false,
        is_apart: false,
        slow_aside: false,
        seeks_damage: false,
        fills: false,
        verify: None,
        lies: 0,
        more_space: 24,
        is_whole: false,
        is_mirror: false,
        has_checksums: false,
        listed: 0,
        odds: Odds::DEFAULT,
        faults: Faults::NONE,
        planted: Planted::None,
    };

    /// Many writes, so that the space of the journal is used again, and images of some moments only.
    pub const LONG: Self =
        Self { writes: 60, one_of: 12, goes_on: 3, more_space: 3, ..Self::DEFAULT };

    /// Many writes of very few sectors: the same few rings are filled again and again, and older records of the same
    /// sectors lie beside newer ones.
    pub const FOCUSED: Self = Self { writes: 80, focus: 2, more_space: 1, one_of: 6, ..Self::LONG };

    /// Disks are lost, and come back before that is recorded.
    pub const LOSSES: Self = Self {
        writes: 8,
        one_of: 2,
        odds: Odds { loss: 1, unsynced: 0, trouble: 0, ..Odds::DEFAULT },
        ..Self::DEFAULT
    };

    /// The same in busy arrays, whose metadata is late.
    pub const LATE_METADATA: Self =
        Self { writes: 40, focus: 4, slow_metadata: true, more_space: 1, ..Self::LOSSES };

    /// Recoveries that are cut off again and again, with a disk less each time.
    pub const AGAIN: Self = Self {
        writes: 6,
        one_of: 3,
        odds: Odds { again: 1, without: 2, unsynced: 0, ..Odds::DEFAULT },
        ..Self::DEFAULT
    };

    /// Arrays whose redundancy is not valid yet.
    pub const UNSYNCED: Self = Self {
        writes: 8,
        one_of: 2,
        odds: Odds { unsynced: 1, record: 2, ..Odds::DEFAULT },
        ..Self::DEFAULT
    };

    /// Whole codewords, announced, and flushes.
    pub const ANNOUNCED: Self = Self {
        writes: 6,
        one_of: 2,
        odds: Odds { announced: 1, flush: 12, unsynced: 0, ..Odds::DEFAULT },
        ..Self::DEFAULT
    };

    /// Disks that sit out, and recoveries that are cut off.
    pub const ASIDE: Self = Self {
        writes: 12,
        one_of: 3,
        odds: Odds { aside: 1, announced: 0, again: 2, without: 2, unsynced: 0, ..Odds::DEFAULT },
        ..Self::DEFAULT
    };

    /// Disks that are lost, come back and are caught up.
    pub const RETURNS: Self = Self {
        writes: 40,
        one_of: 6,
        focus: 4,
        more_space: 2,
        slow_metadata: true,
        odds: Odds { loss: 1, back: 12, without: 2, trouble: 0, unsynced: 0, ..Odds::DEFAULT },
        ..Self::DEFAULT
    };

    /// A journal on disks of its own, which are lost, fail, and are replaced like others.
    pub const APART: Self = Self {
        writes: 30,
        one_of: 5,
        focus: 4,
        more_space: 20,
        is_apart: true,
        odds: Odds { loss: 1, back: 12, again: 2, without: 2, ..Odds::DEFAULT },
        ..Self::DEFAULT
    };

    /// Announced writes that disks keep waiting, which sit out or hang.
    pub const HELD_UP: Self = Self {
        slow_aside: true,
        odds: Odds { aside: 1, trouble: 2, loss: 6, ..Self::ANNOUNCED.odds },
        ..Self::ANNOUNCED
    };

    /// Sectors that are damaged, because a disk did not come back while whole codewords were written, and are written again;
    /// what the array records of itself is late.
    pub const DAMAGED: Self = Self {
        writes: 10,
        one_of: 3,
        slow_metadata: true,
        seeks_damage: true,
        odds: Odds {
            flush: 64,
            without: 2,
            again: 6,
            loss: 6,
            trouble: 0,
            aside: 0,
            ..Self::ANNOUNCED.odds
        },
        ..Self::ANNOUNCED
    };

    /// Disks whose own sectors are smaller than the array's, so that a power cut tears these; all is logged.
    pub const TORN: Self = Self {
        manners: Manners::Tearing,
        writes: 40,
        focus: 4,
        more_space: 1,
        one_of: 6,
        odds: Odds { announced: 0, without: 2, unsynced: 0, ..Odds::DEFAULT },
        ..Self::DEFAULT
    };

    /// Disks that are there are replaced by copies, some of them lost meanwhile.
    pub const COPIES: Self =
        Self { odds: Odds { loss: 2, back: 40, copy: 6, ..Self::RETURNS.odds }, ..Self::RETURNS };

    /// Disks are replaced by blank ones and filled, with a crash at every stripe.
    pub const FILLS: Self = Self {
        writes: 24,
        one_of: 4,
        focus: 8,
        fills: true,
        more_space: 40,
        odds: Odds {
            loss: 1,
            back: 20,
            aside: 2,
            place: 3,
            announced: 4,
            trouble: 0,
            unsynced: 0,
            ..Odds::DEFAULT
        },
        ..Self::DEFAULT
    };

    /// What is written is read back, some of it with checksums only, and disks are lost meanwhile.
    pub const VERIFIED: Self = Self {
        verify: Some(VerifySettings {
            mode: VerifyMode::Idle,
            cache: Sectors::new(6),
            wait: Nanos::from_micros(300),
            ..VerifySettings::IDLE
        }),
        ..Self::LOSSES
    };

    /// The same at once, while disks are copied and come back.
    pub const VERIFIED_AT_ONCE: Self = Self {
        verify: Some(VerifySettings { mode: VerifyMode::Raw, ..VerifySettings::IDLE }),
        ..Self::COPIES
    };

    /// Disks do not store all that is written in place, and it is read back; the power fails before, meanwhile and after.
    pub const LIES: Self = Self {
        lies: 12,
        writes: 12,
        one_of: 3,
        odds: Odds {
            announced: 0,
            unsynced: 0,
            loss: 0,
            trouble: 0,
            record: 0,
            place: 0,
            loss_again: 0,
            ..Odds::DEFAULT
        },
        verify: Some(VerifySettings { wait: Nanos::from_micros(300), ..VerifySettings::IDLE }),
        ..Self::DEFAULT
    };

    /// Scrubs that are started and stopped beside writes, losses, rebuilds and sectors that cannot be read.
    pub const SCRUBS: Self = Self {
        faults: Faults { scrub: 30, pause: 40, ..Faults::NONE },
        odds: Odds { place: 2, stop: 2, ..Self::FILLS.odds },
        ..Self::FILLS
    };

    /// Servers that stand still for longer than a drive may be silent.
    pub const STANDSTILLS: Self = Self {
        faults: Faults { standstill: 60, ..Faults::NONE },
        odds: Odds { trouble: 2, ..Odds::DEFAULT },
        writes: 12,
        one_of: 3,
        ..Self::DEFAULT
    };

    /// Sectors that are read once and then not, or the reverse, in recoveries that are cut off.
    pub const FLAKY: Self = Self {
        faults: Faults { flaky: 1, ..Faults::NONE },
        odds: Odds { record: 1, place: 2, ..Self::AGAIN.odds },
        ..Self::AGAIN
    };

    /// Two redundant disks at least, so that one disk is not enough for anything that must survive every loss.
    pub const TWO_REDUNDANT: Self = Self { redundant_min: 2, ..Self::RETURNS };

    /// Connections to members break, and writes inside them land later, also under the next server.
    pub const LATE_WRITES: Self = Self {
        faults: Faults { disconnect: 40, death: 2, land: 60, ..Faults::NONE },
        odds: Odds { loss: 0, record: 0, place: 0, loss_again: 0, unsynced: 0, ..Odds::DEFAULT },
        writes: 24,
        focus: 4,
        one_of: 6,
        ..Self::DEFAULT
    };

    /// Members that are in an earlier state of their own when the array is started.
    pub const OLDER: Self = Self {
        faults: Faults { older: 4, ..Faults::NONE },
        odds: Self::LATE_WRITES.odds,
        ..Self::LATE_WRITES
    };

    /// Members with some sectors of rings and metadata in an earlier state of their own at a start.
    pub const OLDER_SECTORS: Self =
        Self { faults: Faults { older_sectors: 2, ..Faults::NONE }, ..Self::OLDER };

    /// Copies of members in the places of others.
    pub const TWINS: Self = Self {
        faults: Faults { twins: 2, ..Faults::NONE },
        odds: Odds { without: 1, ..Self::QUIET },
        writes: 6,
        ..Self::DEFAULT
    };

    /// Members that go back to an earlier state of their own while the array runs.
    pub const GOING_BACK: Self =
        Self { faults: Faults { going_back: 100, ..Faults::NONE }, ..Self::OLDER };

    /// Arrays without a journal: redundancy is not valid after an unclean shutdown, until a resync has made it so.
    pub const UNJOURNALED: Self = Self {
        has_journal: false,
        writes: 12,
        one_of: 3,
        // A place that cannot be read while redundancy is in doubt is a fault too many.
        odds: Odds { unsynced: 4, announced: 0, record: 0, place: 0, ..Odds::DEFAULT },
        ..Self::DEFAULT
    };

    /// Lists of damaged sectors that have entries from the beginning, while these are written, and written late.
    pub const LISTED: Self = Self {
        writes: 24,
        listed: 3,
        odds: Odds { announced: 1, flush: 16, again: 2, ..Self::DAMAGED.odds },
        ..Self::DAMAGED
    };

    /// The same while disks are replaced and rebuilt.
    pub const LISTED_FILLS: Self = Self {
        listed: 3,
        slow_metadata: true,
        odds: Odds { announced: 1, place: 2, ..Self::FILLS.odds },
        ..Self::FILLS
    };

    /// Whole stripes, announced, over sectors on the list, cut off while they go to their places.
    pub const JUDGED: Self = Self {
        writes: 4,
        is_whole: true,
        listed: 2,
        one_of: 1,
        more_space: 12,
        slow_metadata: true,
        odds: Odds { announced: 1, again: 6, without: 2, flush: 64, unsynced: 0, ..Self::QUIET },
        ..Self::DEFAULT
    };

    /// What drives lack, recorded on as few drives as will do, while the rest goes away.
    pub const LACKS: Self = Self {
        writes: 24,
        focus: 6,
        one_of: 4,
        redundant_min: 2,
        more_space: 4,
        slow_metadata: true,
        odds: Odds { loss: 1, back: 100, without: 1, ..Self::QUIET },
        ..Self::DEFAULT
    };

    /// Mirrors whose drives are replaced while the list has entries: the moment at which the new drive counts.
    pub const COUNTED: Self = Self {
        is_mirror: true,
        listed: 3,
        one_of: 2,
        writes: 8,
        fills: true,
        slow_metadata: true,
        more_space: 40,
        odds: Odds { announced: 1, loss: 1, back: 12, without: 1, loss_again: 3, ..Self::QUIET },
        ..Self::DEFAULT
    };

    /// Disks are replaced while writes wait for room in small rings, and others are lost after that.
    pub const TIGHT_FILLS: Self = Self {
        more_space: 1,
        writes: 40,
        focus: 6,
        odds: Odds { loss: 1, back: 8, without: 1, announced: 2, aside: 2, ..Self::QUIET },
        ..Self::FILLS
    };

    /// Full rings: long writes of whole and of parts of codewords, announced and logged, that wait for each other.
    pub const FULL: Self = Self {
        writes: 40,
        one_of: 40,
        more_space: 1,
        odds: Odds { announced: 1, flush: 24, aside: 3, trouble: 3, ..Self::QUIET },
        ..Self::DEFAULT
    };

    /// Stops that have something left to do, cut off all through.
    pub const STOPS: Self = Self {
        writes: 6,
        one_of: 1,
        odds: Odds { stop: 1, announced: 2, loss: 3, without: 2, again: 6, ..Self::QUIET },
        ..Self::DEFAULT
    };

    /// Disks whose writes and flushes fail: some sectors are written, and others are as before or cannot be read any more.
    pub const FAILED: Self = Self {
        faults: Faults { failed: 1, ..Faults::NONE },
        odds: Odds { trouble: 1, back: 12, loss: 6, ..Odds::DEFAULT },
        writes: 12,
        one_of: 3,
        ..Self::DEFAULT
    };

    /// Power cuts at every boundary of recoveries.
    pub const RECOVERIES: Self = Self {
        faults: Faults { recovery: 2, ..Faults::NONE },
        writes: 6,
        one_of: 12,
        odds: Odds { without: 2, ..Odds::DEFAULT },
        ..Self::DEFAULT
    };

    /// The same over disks that do not store all that is written in place.
    pub const RECOVERIES_LIES: Self =
        Self { faults: Self::RECOVERIES.faults, one_of: Self::RECOVERIES.one_of, ..Self::LIES };

    /// One fault more than the layout survives: the array may refuse or report, and must not return what was never written.
    pub const BEYOND: Self = Self {
        faults: Faults { beyond: 2, ..Faults::NONE },
        odds: Odds { unsynced: 0, trouble: 0, without: 2, place: 2, ..Odds::DEFAULT },
        writes: 12,
        one_of: 3,
        ..Self::DEFAULT
    };

    /// Two servers of one array.
    pub const TWO_SERVERS: Self = Self {
        faults: Faults { second: 2, ..Faults::NONE },
        odds: Odds { stop: 0, ..Self::LATE_WRITES.odds },
        ..Self::LATE_WRITES
    };

    /// Arrays with checksums, of whole writes and others, whose disks are lost and come back.
    pub const CHECKSUMS: Self = Self { has_checksums: true, ..Self::LONG };

    /// The same where most writes are announced,
    pub const CHECKSUMS_ANNOUNCED: Self = Self { has_checksums: true, ..Self::ANNOUNCED };

    /// where disks are filled,
    pub const CHECKSUMS_FILLS: Self = Self { has_checksums: true, ..Self::FILLS };

    /// and where sectors cannot be read.
    pub const CHECKSUMS_DAMAGED: Self = Self { has_checksums: true, ..Self::DAMAGED };

    /// Aims at faults that the array does not survive yet, and their names: tests assert that these are found.
    pub const KNOWN: [(&'static str, Self); 6] = [
        ("late-writes", Self::LATE_WRITES),
        ("older", Self::OLDER),
        ("older-sectors", Self::OLDER_SECTORS),
        ("going-back", Self::GOING_BACK),
        ("two-servers", Self::TWO_SERVERS),
        ("beyond", Self::BEYOND),
    ];

    /// Each aim that the array must survive, and its name.
    pub const ALL: [(&'static str, Self); 40] = [
        ("short", Self::DEFAULT),
        ("long", Self::LONG),
        ("focused", Self::FOCUSED),
        ("losses", Self::LOSSES),
        ("late-metadata", Self::LATE_METADATA),
        ("again", Self::AGAIN),
        ("unsynced", Self::UNSYNCED),
        ("announced", Self::ANNOUNCED),
        ("aside", Self::ASIDE),
        ("returns", Self::RETURNS),
        ("apart", Self::APART),
        ("held-up", Self::HELD_UP),
        ("damaged", Self::DAMAGED),
        ("torn", Self::TORN),
        ("copies", Self::COPIES),
        ("fills", Self::FILLS),
        ("verified", Self::VERIFIED),
        ("verified-at-once", Self::VERIFIED_AT_ONCE),
        ("lies", Self::LIES),
        ("scrubs", Self::SCRUBS),
        ("standstills", Self::STANDSTILLS),
        ("flaky", Self::FLAKY),
        ("two-redundant", Self::TWO_REDUNDANT),
        ("unjournaled", Self::UNJOURNALED),
        ("listed", Self::LISTED),
        ("listed-fills", Self::LISTED_FILLS),
        ("judged", Self::JUDGED),
        ("lacks", Self::LACKS),
        ("counted", Self::COUNTED),
        ("tight-fills", Self::TIGHT_FILLS),
        ("full", Self::FULL),
        ("stops", Self::STOPS),
        ("twins", Self::TWINS),
        ("failed", Self::FAILED),
        ("recoveries", Self::RECOVERIES),
        ("recoveries-lies", Self::RECOVERIES_LIES),
        ("checksums", Self::CHECKSUMS),
        ("checksums-announced", Self::CHECKSUMS_ANNOUNCED),
        ("checksums-fills", Self::CHECKSUMS_FILLS),
        ("checksums-damaged", Self::CHECKSUMS_DAMAGED),
    ];
}
