//! What the heart of the array knows of verification: what waits to be read back, and which drives are being read for it.

use std::collections::BTreeSet;

use levelhead_block::Segment;
use levelhead_units::{DriveIdx, DriveSet, Extent, Instant};

use super::promises::Promises;
use super::records::{Records, Room};
use crate::log::rules::Rule;
use crate::names::{OpId, SubId};
use crate::settings::verify::VerifySettings;
use crate::shape::Cell;

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Verify {
    /// How writes are read back, if they are.
    settings: Option<VerifySettings>,
    pub(crate) records: Records,
    /// What reading back is worth.
    pub(crate) promises: Promises,
    /// Drives that have a read of it in their queue or inside.
    pub(crate) reading: DriveSet,
    /// Reads that wait for the checksums of what they have brought, while their operations wait for them (VF3).
    pub(crate) held: BTreeSet<SubId>,
    /// The operation that mends.
    pub(crate) mending: Option<Mending>,
    /// For every drive when it has ended anything else last.
    ended: Vec<Instant>,
    /// For every drive when it has ended a write in place last.
    written: Vec<Instant>,
    /// Commands that clients wait for.
    asked: u64,
    /// Those of them that found such a read at their drive.
    delayed: u64,
}

/// An operation that mends sectors of a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mending {
    pub(crate) op: OpId,
    pub(crate) drive: DriveIdx,
}

/// What a write has sent to its drive.
pub(crate) struct Sent<'a> {
    pub(crate) segments: &'a [Segment],
    /// Whether a client waits for it, or has: then it makes older records give way.
    pub(crate) is_awaited: bool,
}

impl Verify {
    pub(crate) fn new(settings: Option<VerifySettings>, drives: usize) -> Self {
        let bytes = settings.map(|settings| settings.cache).unwrap_or_default();
        Self {
            settings,
            records: Records::new(drives, Room::of(bytes)),
            promises: Promises::new(drives),
            reading: DriveSet::EMPTY,
            held: BTreeSet::new(),
            mending: None,
            ended: vec![Instant::ZERO; drives],
            written: vec![Instant::ZERO; drives],
            asked: 0,
            delayed: 0,
        }
    }

    /// How writes are read back, if they are.
    pub(crate) fn settings(&self) -> Option<VerifySettings> {
        self.settings
    }

    /// Whether a rule is kept.
    pub(crate) fn keeps(&self, rule: Rule) -> bool {
        self.settings.is_none_or(|settings| settings.rules.keep(rule))
    }

    /// From now on none are.
    pub(crate) fn turn_off(&mut self) {
        self.settings = None;
        self.records.forget_all();
    }

    /// A command that a client waits for goes into the queue of a drive.
    pub(crate) fn note_asked(&mut self, drive: DriveIdx) {
        self.asked += 1;
        self.delayed += u64::from(self.reading.contains(drive));
    }

    /// Percent of the commands that clients wait for that found a read of the verification at their drive.
    pub(crate) fn delayed_percent(&self) -> f64 {
        if self.asked == 0 { 0.0 } else { 100.0 * self.delayed as f64 / self.asked as f64 }
    }

    /// A drive has ended a command of another kind.
    pub(crate) fn note_ended(&mut self, now: Instant, drive: DriveIdx) {
        self.ended[drive.as_usize()] = now;
    }

    /// A drive has ended a write in place.
    pub(crate) fn note_written(&mut self, now: Instant, drive: DriveIdx) {
        self.written[drive.as_usize()] = now;
    }

    /// When a drive has ended a write in place last.
    pub(crate) fn written(&self, drive: DriveIdx) -> Instant {
        self.written[drive.as_usize()]
    }

    /// When a drive has ended a command of another kind last.
    pub(crate) fn ended(&self, drive: DriveIdx) -> Instant {
        self.ended[drive.as_usize()]
    }

    /// Whether an operation mends what a record of a drive says, so that the record stays. What it writes beside is a write like
    /// others.
    pub(crate) fn is_mended_by(&self, op: OpId, drive: DriveIdx) -> bool {
        self.mending == Some(Mending { op, drive })
    }

    /// Whether the sector of a drive at each of these offsets has another checksum than it should.
    pub(crate) fn differing(&self, drive: DriveIdx, extent: Extent, sums: &[u32]) -> Vec<u32> {
        let differs = |&(lba, (_, sum)): &(levelhead_units::Lba, (u32, &u32))| {
            self.records.sum(Cell { drive, lba }).is_some_and(|known| known != *sum)
        };
        extent.iter().zip((0..).zip(sums)).filter(differs).map(|(_, (at, _))| at).collect()
    }
}
