//! The ring of one member: where its records lie, and which of that space may be written over.
//!
//! ```text
//!   piece:   | mark | mark | record, payload .. | free .. | record, payload .. | free .. |
//! ```
//!
//! A ring lies in pieces over the whole drive. A record goes into the piece nearest to where the drive is, behind
//! the record before it, so that records that come together are one command. Marks have two sectors of
//! their own in every piece: there is always room for the mark that makes room.
//!
//! # Invariants
//!
//! - I1. The space of a record is written over only when a record that lies on this very ring, and is durable,
//!   says that its transaction is over.
//! - I2. The durable record with the ring's highest watermarks is never written over.
//! - I3. One append is inside the drive at a time, so that a later one says at least what an earlier one said.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use levelhead_block::BufId;
use levelhead_units::{DriveIdx, Extent, Instant, Lba, Nanos, Sectors};

use super::record::{FoundRecord, RingName};
use super::rules::{Rule, Rules};
use crate::meta::reserve::{JOURNAL_MARKS, JOURNAL_PIECE_MIN};
use crate::names::SubId;

/// Sectors of a piece that are for marks.
const MARKS: u64 = JOURNAL_MARKS;

/// The most sectors of one append: 1 MiB.
const APPEND_MAX: Sectors = Sectors::new(256);

/// A ring is clogged when this part of it is over: an eighth.
const CLOGGED: u64 = 8;

/// How long records wait for others before they go to a drive that is busy.
const GATHER: Nanos = Nanos::from_millis(20);

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Ring {
    pub(crate) drive: DriveIdx,
    pub(crate) name: RingName,
    pieces: Vec<Stretch>,
    /// What lies where: records, by their first sector.
    held: BTreeMap<Lba, Held>,
    /// Records that have a place and are not with the drive yet.
    pub(crate) waiting: VecDeque<Entry>,
    pub(crate) append: Option<Append>,
    /// Since when records wait.
    since: Option<Instant>,
    /// The record that must not be written over (I2).
    latest: Option<Lba>,
    /// What the ring says for good.
    pub(crate) durable: Watermarks,
    /// What was written to it since as much as all of it was.
    written: Sectors,
    rules: Rules,
}

/// How far the journal is, as its records say.
///
/// Of one ring, a later record says no less than an earlier one, of both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Watermarks {
    /// Every transaction below this one is over.
    pub(crate) retired: u64,
    /// Every transaction up to this one is committed.
    pub(crate) committed: u64,
}

#[derive(Clone, Debug)]
struct Stretch {
    extent: Extent,
    /// Where the next record goes.
    head: Lba,
}

#[derive(Clone, Copy, Debug)]
struct Held {
    sectors: Sectors,
    id: u64,
}

/// A record on its way to the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Whose; 0 of a mark.
    pub(crate) id: u64,
    /// The drive that it goes to.
    pub(crate) ring: DriveIdx,
    /// The drive that its payload is for.
    pub(crate) subject: DriveIdx,
    pub(crate) place: Lba,
    /// Header and payload.
    pub(crate) sectors: Sectors,
}

/// A record on the ring of another drive than its payload is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Copied {
    pub(crate) ring: DriveIdx,
    pub(crate) subject: DriveIdx,
}

impl Entry {
    /// What it is a copy of, if it is one.
    pub(crate) fn copied(&self) -> Option<Copied> {
        let &Self { ring, subject, .. } = self;
        (ring != subject).then_some(Copied { ring, subject })
    }
}

/// Records on their way into the drive, in one command.
#[derive(Clone, Debug)]
pub(crate) struct Append {
    pub(crate) sub: SubId,
    /// Where the headers are.
    pub(crate) buf: BufId,
    pub(crate) entries: Vec<Entry>,
    pub(crate) says: Watermarks,
}

impl Ring {
    /// A ring of which nothing is known but that everything on it is over.
    pub(crate) fn new(drive: DriveIdx, name: RingName, pieces: &[Extent], rules: Rules) -> Self {
        let piece = |&extent: &Extent| {
            assert!(extent.sectors >= JOURNAL_PIECE_MIN, "{extent:?} holds no record");
            Stretch { extent, head: body(extent).lba }
        };
        Self {
            drive,
            name,
            pieces: pieces.iter().map(piece).collect(),
            held: BTreeMap::new(),
            waiting: VecDeque::new(),
            append: None,
            since: None,
            latest: None,
            durable: Watermarks::default(),
            written: Sectors::ZERO,
            rules,
        }
    }

    /// Sectors go to it; returns whether that makes as much as all of it again.
    pub(crate) fn note_written(&mut self, sectors: Sectors) -> bool {
        self.written += sectors;
        let is_all = self.written >= self.pieces().map(|piece| piece.sectors).sum();
        if is_all {
            self.written = Sectors::ZERO;
        }
        is_all
    }

    /// The most sectors that a record may have, header and payload: half of the largest piece, so that a ring is
    /// never full with a single one.
    pub(crate) fn record_max(&self) -> Sectors {
        let largest = self.pieces.iter().map(|piece| body(piece.extent).sectors.get()).max();
        let largest = largest.unwrap_or(0);
        Sectors::new((largest / 2).max(2.min(largest))).min(APPEND_MAX)
    }

    /// The ring is on another drive now, on which nothing is of this ring.
    pub(crate) fn renew(&mut self, name: RingName) {
        assert!(self.is_idle(), "I3: drive {}", self.drive);
        let pieces: Vec<Extent> = self.pieces().collect();
        *self = Self::new(self.drive, name, &pieces, self.rules);
    }

    /// Nothing is known of what is here.
    pub(crate) fn forget(&mut self) {
        self.held.clear();
        self.waiting.clear();
        (self.latest, self.durable) = (None, Watermarks::default());
    }

    /// A record was found here after a crash. It counts if its transaction is not below `retired`.
    pub(crate) fn hold_found(&mut self, found: &FoundRecord, retired: u64) {
        let FoundRecord { record, is_whole, .. } = found;
        if *is_whole && record.id >= retired {
            let sectors = Sectors::new(1) + record.payload();
            self.held.insert(record.place, Held { sectors, id: record.id });
        }
        let says = Watermarks { committed: record.committed, retired: record.retired };
        // One that is not whole was never durable.
        if *is_whole && (self.latest.is_none() || says > self.durable) {
            (self.latest, self.durable) = (Some(record.place), says);
        }
    }

    /// A rule is left out: space comes free as soon as it is over.
    pub(crate) fn reclaim_below(&mut self, retired: u64) {
        if !self.rules.keep(Rule::Reuse) {
            self.held.retain(|_, held| held.id >= retired);
        }
    }

    /// A place for a record on a ring that is so full that what says most must give way to it.
    pub(crate) fn room_without_latest(&mut self, sectors: Sectors) -> Option<Lba> {
        let latest = self.latest.filter(|at| self.held.get(at).is_some_and(|held| held.id == 0))?;
        let held = self.held.remove(&latest);
        let room = self.tightest(sectors);
        if let (None, Some(held)) = (room, held) {
            self.held.insert(latest, held);
        }
        room
    }

    /// The smallest free stretch that has room for a record, so that larger ones are left for larger records.
    pub(crate) fn tightest(&self, sectors: Sectors) -> Option<Lba> {
        let free = self.pieces.iter().flat_map(|piece| self.free_in(body(piece.extent)));
        let large = free.filter(|free| free.sectors >= sectors);
        large.min_by_key(|free| free.sectors).map(|free| free.lba)
    }

    /// The free stretches of a part of the ring.
    fn free_in(&self, part: Extent) -> Vec<Extent> {
        let mut free = Vec::new();
        let mut from = part.lba;
        for (&at, held) in self.held.range(part.lba..part.end()) {
            if from < at {
                free.push(Extent::new(from, at - from));
            }
            from = at + held.sectors;
        }
        if from < part.end() {
            free.push(Extent::new(from, part.end() - from));
        }
        free
    }

    /// Nothing is written to this sector any more: it does not give what was written to it.
    pub(crate) fn give_up_sector(&mut self, lba: Lba) {
        let one = Sectors::new(1);
        if self.is_free(Extent::new(lba, one)) {
            self.held.insert(lba, Held { sectors: one, id: u64::MAX });
        }
    }

    /// The record that says most keeps its place (I2).
    pub(crate) fn hold_latest(&mut self) {
        let one = Sectors::new(1);
        if let Some(place) = self.latest.filter(|&place| self.is_free(Extent::new(place, one))) {
            self.held.insert(place, Held { sectors: one, id: 0 });
        }
    }

    /// Holds a place that [`Ring::room`] has found, for a record that is written at once.
    pub(crate) fn reserve(&mut self, place: Lba, sectors: Sectors, id: u64) {
        assert!(self.is_free(Extent::new(place, sectors)), "I1: drive {}", self.drive);
        self.held.insert(place, Held { sectors, id });
    }

    /// Lets go of the places that were held for a transaction.
    pub(crate) fn let_go(&mut self, id: u64) {
        self.held.retain(|_, held| held.id != id);
    }

    /// A place for a mark that is written at once, and says this.
    pub(crate) fn take_mark(&mut self, near: Lba, says: Watermarks) -> Lba {
        let place = self.mark_place(near);
        (self.latest, self.durable) = (Some(place), says);
        place
    }

    /// Lets go of the space of what is over (I1, I2).
    pub(crate) fn reclaim(&mut self) {
        let latest = self.latest.filter(|_| self.rules.keep(Rule::Latest));
        let retired = self.durable.retired;
        self.held.retain(|&at, held| held.id >= retired || Some(at) == latest);
    }

    /// The nearest place for a mark that may be written over.
    fn mark_place(&self, near: Lba) -> Lba {
        let slots = self
            .pieces
            .iter()
            .flat_map(|piece| (0..MARKS).map(|at| piece.extent.lba + Sectors::new(at)));
        let is_free = |slot| self.latest != Some(slot) || !self.rules.keep(Rule::Latest); // I2
        let free = slots.filter(|&slot| is_free(slot));
        let is_given_up = |slot| self.held.get(&slot).is_some_and(|held| held.id == u64::MAX);
        let place = free.min_by_key(|&slot| {
            (is_given_up(slot), distance(Extent::new(slot, Sectors::new(1)), near))
        });
        place.expect("a piece has two places for marks")
    }

    /// A place for a record, if there is one, as near as possible to where the drive is.
    pub(crate) fn room(&self, sectors: Sectors, near: Lba) -> Option<Lba> {
        // Behind what waits, so that it is one command with that.
        let near = self.waiting.back().map_or(near, |last| last.place);
        let mut order: Vec<&Stretch> = self.pieces.iter().collect();
        order.sort_by_key(|piece| distance(piece.extent, near));
        order.into_iter().find_map(|piece| self.room_in(piece, sectors))
    }

    fn room_in(&self, piece: &Stretch, sectors: Sectors) -> Option<Lba> {
        let body = body(piece.extent);
        let is_free =
            |at: Lba| at + sectors <= body.end() && self.is_free(Extent::new(at, sectors));
        if is_free(piece.head) {
            return Some(piece.head);
        }
        // Behind the last record first, so that several that come together are one command.
        let behind = |part: Range<Lba>| self.held.range(part).map(|(&at, held)| at + held.sectors);
        let ahead = behind(piece.head..body.end());
        let from_the_start = std::iter::once(body.lba).chain(behind(body.lba..piece.head));
        ahead.chain(from_the_start).find(|&at| is_free(at))
    }

    fn is_free(&self, extent: Extent) -> bool {
        let before = self.held.range(..extent.end()).next_back();
        before.is_none_or(|(&at, held)| at + held.sectors <= extent.lba)
    }

    /// Gives a record its place, which [`Ring::room`] has found, and puts it into the queue.
    pub(crate) fn enter(&mut self, now: Instant, entry: Entry) {
        let extent = Extent::new(entry.place, entry.sectors);
        assert!(self.is_free(extent), "I1: {extent:?} of drive {}", self.drive);
        self.held.insert(entry.place, Held { sectors: entry.sectors, id: entry.id });
        let piece = self.pieces.iter_mut().find(|piece| piece.extent.contains(entry.place));
        piece.expect("the place is in a piece").head = extent.end();
        self.waiting.push_back(entry);
        self.since = self.since.or(Some(now));
    }

    /// Takes the record of a drive back that waits for this one, and not its space (J8); returns whether it did.
    pub(crate) fn withdraw(&mut self, id: u64, subject: DriveIdx) -> bool {
        let is_meant = |entry: &Entry| entry.id == id && entry.subject == subject;
        let Some(at) = self.waiting.iter().position(is_meant) else { return false };
        self.waiting.remove(at);
        if self.waiting.is_empty() {
            self.since = None;
        }
        true
    }

    /// When what waits goes to a drive that is busy, if it could.
    pub(crate) fn gathered_at(&self) -> Option<Instant> {
        let is_due = self.append.is_none() && !self.waiting.is_empty();
        self.since.filter(|_| is_due).map(|since| since + GATHER)
    }

    /// Puts a mark into the queue, as near as possible to where the drive is.
    pub(crate) fn enter_mark(&mut self, near: Lba) {
        assert!(self.is_idle(), "I3: drive {}", self.drive);
        let place = self.mark_place(near);
        let (drive, sectors) = (self.drive, Sectors::new(1));
        self.waiting.push_back(Entry { id: 0, ring: drive, subject: drive, place, sectors });
    }

    /// The next records that lie side by side, taken from the queue; none while an append is under way (I3).
    pub(crate) fn take_append(&mut self) -> Vec<Entry> {
        let mut entries: Vec<Entry> = Vec::new();
        if self.append.is_some() {
            return entries;
        }
        let mut sectors = Sectors::ZERO;
        while let Some(&next) = self.waiting.front() {
            let end = entries.last().map(|last| last.place + last.sectors);
            let is_far = end.is_some_and(|end| end != next.place);
            if is_far || (!entries.is_empty() && sectors + next.sectors > APPEND_MAX) {
                break;
            }
            sectors += next.sectors;
            entries.push(next);
            self.waiting.pop_front();
        }
        if self.waiting.is_empty() {
            self.since = None;
        }
        entries
    }

    /// The append under way is durable: what the ring says counts, and space comes free.
    pub(crate) fn handle_appended(&mut self) -> Append {
        let append = self.append.take().expect("I3: an append is under way");
        let last = append.entries.last().expect("an append has a record");
        let Watermarks { committed, retired } = self.durable;
        assert!(append.says.committed >= committed && append.says.retired >= retired, "I3");
        (self.durable, self.latest) = (append.says, Some(last.place));
        self.reclaim();
        append
    }

    /// The drive is lost: nothing is on its way any more. Returns the buffer of what was.
    pub(crate) fn handle_lost(&mut self) -> Option<BufId> {
        self.waiting.clear();
        self.append.take().map(|append| append.buf)
    }

    /// Whether it keeps what is over, if `retired` says where that begins.
    pub(crate) fn holds_below(&self, retired: u64) -> bool {
        self.held.values().any(|held| held.id < retired)
    }

    /// Whether a good part of it is what is over, if `retired` says where that begins.
    pub(crate) fn is_clogged(&self, retired: u64) -> bool {
        let is_over = |&(&at, held): &(&Lba, &Held)| held.id < retired && Some(at) != self.latest;
        let over = self.held.iter().filter(is_over);
        let size: Sectors = self.pieces.iter().map(|piece| body(piece.extent).sectors).sum();
        over.map(|(_, held)| held.sectors).sum::<Sectors>() * CLOGGED > size
    }

    /// Whether it keeps nothing below `next` but the record that says most.
    pub(crate) fn is_spent(&self, next: u64) -> bool {
        self.held.iter().all(|(&at, held)| held.id >= next || Some(at) == self.latest)
    }

    /// Whether nothing is on its way.
    pub(crate) fn is_idle(&self) -> bool {
        self.append.is_none() && self.waiting.is_empty()
    }

    /// How many sectors it has for records.
    pub(crate) fn size(&self) -> u64 {
        self.pieces.iter().map(|piece| body(piece.extent).sectors.get()).sum()
    }

    /// The pieces, as they lie on the drive.
    pub(crate) fn pieces(&self) -> impl Iterator<Item = Extent> {
        self.pieces.iter().map(|piece| piece.extent)
    }
}

/// The part of a piece that is for records.
fn body(piece: Extent) -> Extent {
    let marks = Sectors::new(MARKS);
    Extent::new(piece.lba + marks, piece.sectors - marks)
}

fn distance(extent: Extent, near: Lba) -> u64 {
    if extent.contains(near) {
        return 0;
    }
    let to_start = extent.lba.get().abs_diff(near.get());
    to_start.min(extent.end().get().abs_diff(near.get()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meta::membership::MemberId;
    use crate::meta::superblock::Uuid;

    /// In pieces with room for this many sectors of records, from sectors 100 and 1,000 on.
    fn ring(sectors: u64) -> Ring {
        let name = RingName { array: Uuid::default(), member: MemberId::default() };
        let piece = |lba| Extent::new(Lba::new(lba), Sectors::new(MARKS + sectors));
        Ring::new(DriveIdx::new(0), name, &[piece(100), piece(1_000)], Rules::ALL)
    }

    #[test]
    fn as_much_as_all_of_a_ring_is_written_once_in_as_many_sectors_as_it_has() {
        let mut ring = ring(18);
        // Two pieces of 20 sectors.
        let written = (0..9).map(|_| ring.note_written(Sectors::new(10))).collect::<Vec<bool>>();
        let at: Vec<usize> = (0..9).filter(|&at| written[at]).collect();
        assert_eq!(at, [3, 7]);
    }

    #[test]
    fn a_record_may_fill_a_stretch_to_its_end_and_takes_half_of_a_piece_at_most() {
        for (piece, most) in [(2, 2), (3, 2), (40, 20), (512, 256), (600, 256)] {
            assert_eq!(ring(piece).record_max(), Sectors::new(most), "{piece}");
        }
        let mut ring = ring(40);
        let [first, second] = [100, 1_000].map(|lba| Lba::new(lba + MARKS));
        assert_eq!(ring.room(Sectors::new(40), Lba::new(1_000)), Some(second));
        assert_eq!(ring.room(Sectors::new(41), Lba::ZERO), None);
        // What is left has room for 30 sectors and for 5.
        ring.reserve(first, Sectors::new(10), 1);
        ring.reserve(second, Sectors::new(35), 2);
        let tightest = |sectors| ring.tightest(Sectors::new(sectors));
        assert_eq!(tightest(5), Some(second + Sectors::new(35)));
        assert_eq!(tightest(6), Some(first + Sectors::new(10)));
        assert_eq!((tightest(30).is_some(), tightest(31)), (true, None));
    }

    #[test]
    fn an_append_has_records_side_by_side_up_to_the_most_that_one_has() {
        let mut ring = ring(1_000);
        for id in 1..=3 {
            let (sectors, drive) = (Sectors::new(100), ring.drive);
            let place = ring.room(sectors, Lba::ZERO).expect("there is room");
            ring.enter(Instant::ZERO, Entry { id, ring: drive, subject: drive, place, sectors });
        }
        let mut ids = || ring.take_append().iter().map(|entry| entry.id).collect::<Vec<u64>>();
        assert_eq!([ids(), ids(), ids()], [vec![1, 2], vec![3], vec![]]);
    }

    #[test]
    fn a_ring_is_spent_when_nothing_of_it_comes_free_any_more() {
        let mut ring = ring(40);
        assert!(ring.is_spent(1), "nothing is on it");
        ring.reserve(Lba::new(110), Sectors::new(2), 5);
        assert_eq!([5, 6].map(|next| ring.is_spent(next)), [true, false]);
        ring.latest = Some(Lba::new(110));
        assert!(ring.is_spent(6), "it is the record that says most");
        ring.reserve(Lba::new(120), Sectors::new(2), 4);
        assert_eq!([4, 5].map(|next| ring.is_spent(next)), [true, false]);
    }

    #[test]
    fn a_ring_is_clogged_when_more_than_an_eighth_of_it_is_over() {
        let mut ring = ring(40);
        for id in 1..=7 {
            let place = ring.room(Sectors::new(2), Lba::ZERO).expect("there is room");
            ring.reserve(place, Sectors::new(2), id);
        }
        let clogged = |ring: &Ring| (1..=8).find(|&retired| ring.is_clogged(retired));
        assert_eq!(clogged(&ring), Some(7), "six records of two sectors are more than ten");
        ring.let_go(1);
        assert_eq!(clogged(&ring), Some(8));
    }

    /// Nothing goes to a sector that does not give what was written to it: no record, and no mark while others are free.
    #[test]
    fn sector_that_is_given_up_is_not_written_any_more() {
        let mut ring = ring(3);
        for piece in [100, 1_000] {
            ring.give_up_sector(Lba::new(piece + MARKS + 1));
        }
        assert_eq!(ring.tightest(Sectors::new(2)), None);
        assert!(ring.tightest(Sectors::new(1)).is_some());
        let near = Lba::new(100);
        assert_eq!(ring.mark_place(near), near);
        ring.give_up_sector(near);
        assert_eq!(ring.mark_place(near), Lba::new(101));
    }
}
