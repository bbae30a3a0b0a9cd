//! What an array is started with.

pub(crate) mod verify;

use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

use levelhead_units::{DriveSet, Extent, Nanos, Sectors};

use self::verify::VerifySettings;
use crate::budget::Budget;
use crate::log::rules::Rules;
use crate::meta::assembly::Assembly;
use crate::meta::metadata::{Kept, Logs, State};
use crate::meta::recorded::Recorded;
use crate::policy::Policy;
use crate::shape::{Area, Spec};

/// Everything an array needs to know when it starts.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Its shape.
    pub spec: Spec,
    /// The sectors of every drive that hold its data.
    pub area: Area,
    /// How reads are served.
    pub policy: Policy,
    /// Commands inside a drive at a time.
    pub window: u32,
    /// In which order commands leave the host's queues.
    pub order: HostOrder,
    /// Whether buffers have bytes.
    pub content: Content,
    /// Redundancy of stripes below this number is valid; all of it when that is `u64::MAX`.
    pub synced: u64,
    /// Drives that are not there.
    pub lost: DriveSet,
    /// What the array records of itself on its drives; nothing for a study, whose array is started once.
    pub recorded: Option<Recorded>,
    /// The redo journal that closes the write hole; nothing where writes go to their places at once.
    pub journal: Option<JournalSettings>,
    /// How long it waits for a drive. Absent in a study, whose drives end every command.
    pub patience: Option<Patience>,
    /// How much of the drives its own work may use. Absent in a study, where nothing begins by itself.
    pub background: Option<Budget>,
    /// How what was written is read back, if it is.
    pub verify: Option<VerifySettings>,
}

/// Where the journal lies, and how it was left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalSettings {
    /// The places on every drive that its ring lies in, in order, as the drive counts its sectors.
    pub pieces: Vec<Extent>,
    /// Where every drive with data has its list of checksums that no tag sector has yet, in two slots, as the drive counts its
    /// sectors; nothing without checksums.
    pub lists: Option<Extent>,
    /// Every transaction below this one is over.
    pub floor: u64,
    /// Whether it may hold what is not in place.
    pub left: Left,
    /// A write with at least this number of whole codewords is announced and not logged, or all writes of whole
    /// codewords where much is under way; nothing if the contents of every write are logged.
    pub intents_from: Option<NonZeroU32>,
    /// The least part of a drive, in sectors, that is copied to it when it has missed something there.
    pub region_min: Sectors,
    /// Which rules are kept: all of them, but where a test must notice that one is not.
    pub rules: Rules,
}

impl JournalSettings {
    /// From 64 codewords, 256 KiB on each drive, writes are announced and not logged: less is written faster twice,
    /// because it need not be in its place before the answer. Measured over `nearline-2tb`, raid5:5+1, full stripes in
    /// random places: 1.25 MiB, 8 at a time, 54 a second logged and 70 announced; 320 KiB, 16 at a time, 105 and 94.
    pub const INTENTS_FROM: Option<NonZeroU32> = NonZeroU32::new(64);

    /// 2 MiB: what lies in one takes little longer to copy than to get to.
    pub const REGION_MIN: Sectors = Sectors::new(512);

    /// The journal of an array that was found, if it keeps one.
    pub fn of(assembly: &Assembly) -> Option<Self> {
        let Kept { first: floor, logs } = assembly.metadata.journal?;
        let rings = assembly.metadata.spec.ring_drives();
        let mut members = assembly.places.iter().flatten();
        let member = members.find(|place| rings.contains(place.own.drive));
        let member = member.expect("an array that goes on has a ring");
        let intents_from = match logs {
            Logs::All => None,
            Logs::Parts => Self::INTENTS_FROM,
        };
        let left = match assembly.metadata.state {
            State::Clean => Left::Drained,
            State::Dirty => Left::CutOff,
        };
        let (region_min, rules) = (Self::REGION_MIN, Rules::ALL);
        let mut members = assembly.places.iter().flatten();
        let lists = members.find_map(|place| place.own.list());
        let pieces = member.own.journal();
        Some(Self { pieces, lists, floor, left, intents_from, region_min, rules })
    }
}

impl Settings {
    /// Where every drive with data has its list of checksums that no tag sector has yet, if it has one.
    pub(crate) fn tag_lists(&self) -> Option<Extent> {
        self.journal.as_ref()?.lists.filter(|_| self.spec.has_checksums())
    }
}

/// In which order commands leave the host's queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostOrder {
    /// First come, first served.
    Fcfs,
    /// Upwards through the addresses, then from the lowest again (C-LOOK). At most 64 new commands join a
    /// sweep, or a stream of reads ahead of the arm would delay all others without end.
    Elevator,
    /// The test bed of `[ERAID]`: 32 threads, each with a first-come queue of its own, chosen at
    /// random; each has one command inside the drive.
    Paper32,
}

impl HostOrder {
    const ALL: [(Self, &'static str); 3] =
        [(Self::Fcfs, "fcfs"), (Self::Elevator, "elevator"), (Self::Paper32, "paper32")];
}

impl fmt::Display for HostOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Self::ALL.iter().find(|(order, _)| order == self).map_or("", |(_, name)| name);
        f.write_str(name)
    }
}

impl FromStr for HostOrder {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.iter().find(|(_, name)| *name == text);
        found.map(|(order, _)| *order).ok_or_else(|| {
            format!("'{text}' is not a host order: expected fcfs, elevator or paper32")
        })
    }
}

/// How long an array waits for a drive that ends no command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// Then it counts as silent.
    pub silent: Nanos,
    /// Then it is lost, if writes or flushes wait for it.
    pub lost: Nanos,
}

impl Patience {
    /// 5 s, and 60 s: a drive whose recovery of a sector has no limit takes seconds to a minute, and the kernel
    /// resets a drive that has not answered after 30 s.
    pub const DEFAULT: Self = Self { silent: Nanos::from_secs(5), lost: Nanos::from_secs(60) };

    /// The longest that a client waits for an answer: until the drive it waits for should have been lost, and
    /// as long again for the next one.
    pub fn answer(self) -> Nanos {
        self.lost * 2
    }
}

/// How a journal was left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// Everything in it is over.
    Drained,
    /// The array was cut off: what is in the journal must be looked at first.
    CutOff,
}

/// Whether buffers have bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// They do: arithmetic is asked for.
    Carried,
    /// They do not, as in a timing study: they are names, and no [`Action`](crate::Action) that makes, fills or releases
    /// one is asked for.
    Absent,
}

impl Content {
    pub(crate) const fn is_carried(self) -> bool {
        match self {
            Self::Carried => true,
            Self::Absent => false,
        }
    }
}

#[cfg(test)]
impl Settings {
    /// An array of eight stripes with a journal behind its data and that records nothing.
    pub(crate) fn of_test(spec: Spec) -> Self {
        let size = spec.chunk() * 8;
        let piece = Extent::new(levelhead_units::Lba::ZERO + size, Sectors::new(64));
        let journal = JournalSettings {
            pieces: vec![piece],
            lists: None,
            floor: 1,
            left: Left::Drained,
            intents_from: NonZeroU32::new(2),
            region_min: JournalSettings::REGION_MIN,
            rules: Rules::ALL,
        };
        Self {
            spec,
            area: Area::plain(Extent::new(levelhead_units::Lba::ZERO, size)),
            policy: Policy::Normal,
            window: 3,
            order: HostOrder::Elevator,
            content: Content::Carried,
            synced: u64::MAX,
            lost: DriveSet::EMPTY,
            recorded: None,
            journal: Some(journal),
            patience: None,
            background: None,
            verify: None,
        }
    }
}
