//! A machine whose every step is chosen, not drawn: what may happen next, each by itself, and what tells two machines apart.

use std::hash::{Hash, Hasher};

use levelhead_array::{BufId, SubId};
use levelhead_block::{Command, Piece};
use levelhead_units::{DriveIdx, DriveSet, Extent, Lba};

use super::{Inside, Machine, Of};
use crate::crash::image::find;

impl Machine {
    /// How many commands are inside the disks.
    pub(crate) fn inside(&self) -> usize {
        self.inside.len()
    }

    /// All commands end that change nothing on the disks: reads, and those of disks that are nothing to the array any more.
    pub(crate) fn end_harmless(&mut self) {
        let is_harmless = |inside: &Inside| {
            inside.of == Of::Gone || matches!(inside.submit.command, Command::Read { .. })
        };
        while let Some(at) = self.inside.iter().position(is_harmless) {
            self.end(at);
        }
    }

    /// A command ends well.
    pub(crate) fn end(&mut self, at: usize) {
        let inside = self.inside.remove(at);
        self.conclude(inside, None);
    }

    /// Which command that is.
    pub(crate) fn in_words(&self, at: usize) -> String {
        let Inside { of, submit, .. } = &self.inside[at];
        let of = if *of == Of::Place { "" } else { ", of another disk" };
        format!("{:?} of drive {} ends{of}", submit.command, submit.drive)
    }

    /// Disks that are back and may be taken back: the start has found that, or the array knows them.
    pub(crate) fn may_return(&self) -> DriveSet {
        let back = self.returning.or(self.array.wanted_back()).without(self.dead);
        let may = |drive: &DriveIdx| self.array.may_return(*drive).is_ok() && self.is_known(*drive);
        back.iter().filter(may).collect()
    }

    /// Whether a disk is known to be the one that its place has lost. One that can be read and has metadata must be.
    fn is_known(&self, drive: DriveIdx) -> bool {
        let disk = &self.disks[drive.as_usize()];
        let Some(word) = find(disk).word() else { return false };
        let is_known = !self.lost.contains(drive) || self.array.knows(drive, &word);
        let may_be_strange = word.metadata.is_none() || !disk.bad.is_empty();
        assert!(is_known || may_be_strange, "drive {drive} is back, and is not known: {word:?}");
        is_known
    }

    /// Disks that new ones may replace.
    pub(crate) fn may_replace(&self) -> DriveSet {
        let away = self.array.away();
        away.iter().filter(|&drive| self.array.may_replace(drive).is_ok()).collect()
    }

    /// Time goes on to what the array has planned next.
    pub(crate) fn wait(&mut self) {
        let Some(at) = self.array.deadline() else { return };
        self.now = self.now.max(at);
        self.array.handle_timeout(self.now);
        self.carry_out();
    }

    /// Commands end in the order in which they were sent until every request is answered, and the array is at rest.
    pub(crate) fn come_to_rest(&mut self) -> Result<(), String> {
        for _ in 0..20_000 {
            self.is_good()?;
            match () {
                () if !self.inside.is_empty() => self.end(0),
                () if self.outstanding() == 0 => return Ok(()),
                () if self.array.deadline().is_some() => self.wait(),
                () => return Err(format!("{} requests are never answered", self.outstanding())),
            }
        }
        Err("requests are not answered in 20,000 steps".into())
    }

    /// Reads the whole array and holds it against the promise, one command after the other.
    pub(crate) fn verify_in_order(&mut self) -> Result<(), String> {
        self.come_to_rest()?;
        self.excuse();
        let extent = Extent::new(Lba::ZERO, self.array.size());
        let id = self.ask(extent, None);
        self.come_to_rest()?;
        let (answer, data) = self.delivered.remove(&id).expect("it was answered");
        self.hold_against_promise(extent, &answer.outcome, &data)
    }

    /// All that two machines of a search may differ in, but for their arrays.
    pub(crate) fn hash_outside(&self, hash: &mut impl Hasher) {
        self.hash_disks(hash);
        self.promise.hash(hash);
        for set in [self.returning, self.lost, self.unfilled, self.dead] {
            set.hash(hash);
        }
        (self.now, self.recorded).hash(hash);
        let mut inside: Vec<u64> = self.inside.iter().map(|inside| self.hash_of(inside)).collect();
        inside.sort_unstable();
        inside.hash(hash);
    }

    fn hash_disks(&self, hash: &mut impl Hasher) {
        self.disks.hash(hash);
        for replaced in &self.replaced {
            (replaced.drive, &replaced.disk).hash(hash);
        }
        self.coming.as_ref().map(|coming| (&coming.disk, coming.has_copy)).hash(hash);
    }

    /// What a command is that has this name: one that waits outside the disks is its name, because their order decides.
    pub(crate) fn hash_of_command(&self, name: u64) -> u64 {
        let inside = self.inside.iter().find(|inside| inside.submit.sub == SubId(name));
        inside.map_or(name, |inside| self.hash_of(inside))
    }

    /// What is in a buffer of the array's own.
    pub(crate) fn hash_of_buffer(&self, name: u64) -> u64 {
        let id = BufId::Own(name);
        let mut hash = std::hash::DefaultHasher::new();
        self.buffers.has(id).then(|| self.buffers.bytes(id)).hash(&mut hash);
        hash.finish()
    }

    fn hash_of(&self, inside: &Inside) -> u64 {
        let Inside { of, submit, pieces, covers, met, .. } = inside;
        let mut hash = std::hash::DefaultHasher::new();
        std::mem::discriminant(of).hash(&mut hash);
        format!("{:?}", submit.command).hash(&mut hash);
        (submit.drive, met).hash(&mut hash);
        if submit.command == Command::Flush && *of != Of::Gone {
            let disk = match (of, &self.coming) {
                (Of::Coming, Some(coming)) => &coming.disk,
                _ => &self.disks[submit.drive.as_usize()],
            };
            disk.covered(*covers).hash(&mut hash);
        }
        pieces.iter().map(Piece::bytes).collect::<Vec<_>>().hash(&mut hash);
        hash.finish()
    }
}
