//! Scrubbing: everything that is redundant is read and compared, and repaired where that can be done.
//!
//! ```text
//!   Idle, Stopped, Done --> Running: scan, pause, scan .. --> every row was seen and mended --> Done
//!                             |  suspects
//!                             v
//!                           mend one row at a time <-- reads of clients that a drive did not give
//! ```
//!
//! A scan is a step of the array's own work and keeps to its [`Budget`](crate::Budget). What is found is mended at
//! once, scrub or not: also what a client's read could not be given by a drive.
//!
//! Findings that adjoin are one event ([`Runs`]). Each run is told when nothing beside it can be found any more: the next scan has
//! found nothing, or no scan is to come.
//!
//! How far it is goes into the metadata now and then, so that it goes on from there after a restart.

use std::collections::BTreeSet;

use levelhead_block::{Command, Effort, Outcome};
use levelhead_units::{DriveIdx, DriveSet, Extent, Instant, Lba, Nanos, Sectors};

use crate::array::background::runs::Runs;
use crate::array::parts::Stop;
use crate::array::{Array, Moved, Op, Start};
use crate::core::{Purpose, Sub};
use crate::drives::read_errors::ReadErrors;
use crate::event::ArrayEvent;
use crate::journal::Journal;
use crate::meta::membership::Why;
use crate::meta::wishes::{GoesOn, ScrubMark};
use crate::names::OpId;
use crate::ops::check::{Checked, Finding, Scope};
use crate::progress::{Blame, DriveFound, Fault, Resync, ScrubFound, ScrubProgress, ScrubState};
use crate::shape::{Cell, Row};

/// The most rows that wait to be mended.
const SUSPECTS_MAX: usize = 1 << 10;

/// A scan begins nothing new while more wait.
const SUSPECTS_PAUSE: usize = 64;

/// How many of them are looked at for one that can be mended now.
const LOOKS_MAX: usize = 8;

/// How far a scrub is, is recorded this long after the last time, and when it begins or ends or the array is stopped.
const MARK_EVERY: Nanos = Nanos::from_secs(60);

/// The most runs of sectors of either kind (repaired or not) that a scrub reports one by one: how many it leaves out, its last event
/// says.
const TOLD_MAX: u64 = 256;

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Scrub {
    state: ScrubState,
    to: u64,
    /// What the scans blame.
    blame: Blame,
    found: ScrubFound,
    /// The same for each drive.
    found_on: Vec<DriveFound>,
    suspects: BTreeSet<Row>,
    scan: Option<OpId>,
    mend: Option<OpId>,
    /// The row that is being mended.
    mending: Option<Row>,
    /// Rows of which too little was given to repair the rest.
    hopeless: BTreeSet<Row>,
    runs: Runs,
    /// Whether the last scan has found something: what comes next may adjoin.
    has_found: bool,
    /// Runs of what was repaired, and of what was not: the many of one kind hide none of the other.
    told: [u64; 2],
    /// When it was recorded last how far it is.
    marked: Instant,
    against: HeldAgainst,
}

/// What is held against each drive since the array was started.
#[derive(Clone, Debug)]
struct HeldAgainst {
    /// Sectors that held something else.
    wrong: Vec<u64>,
    /// What it did not give.
    errors: Vec<ReadErrors>,
}

/// What a drive did not give.
#[derive(Clone, Debug)]
pub(crate) struct Unread {
    drive: DriveIdx,
    rows: Vec<Row>,
    error: ReadError,
}

/// What a read that did not give all says of its drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadError {
    /// The drive did not return sectors.
    Unread,
    /// It returned all that are lacking, with other checksums than they should have.
    Corrupt,
    /// Or no tag sector says which they should have.
    Unproven,
}

impl ReadError {
    /// That of a read that lacks these of its sectors.
    fn of(state: &Sub, lacking: impl Iterator<Item = u32>) -> Self {
        let of = |at: u32| match () {
            () if state.unproven.contains(&at) => Self::Unproven,
            () if state.corrupt.contains(&at) => Self::Corrupt,
            () => Self::Unread,
        };
        let rank = |error: &Self| match error {
            Self::Unread => 2,
            Self::Corrupt => 1,
            Self::Unproven => 0,
        };
        lacking.map(of).max_by_key(rank).unwrap_or(Self::Unread)
    }
}

impl Scrub {
    /// `mark` says where one goes on that was begun before the array was started.
    pub(crate) fn new(drives: usize, mark: Option<ScrubMark>) -> Self {
        let state = match mark.map(|mark| mark.goes_on) {
            None => ScrubState::Idle,
            Some(GoesOn::Yes) => ScrubState::Running,
            Some(GoesOn::WhenTold) => ScrubState::Stopped,
        };
        let (to, found) = mark.map(|mark| (mark.to, mark.found)).unwrap_or_default();
        Self {
            state,
            to,
            blame: Blame::Drives,
            found,
            found_on: (0..drives).map(DriveIdx::from_usize).map(DriveFound::nothing).collect(),
            suspects: BTreeSet::new(),
            scan: None,
            mend: None,
            mending: None,
            hopeless: BTreeSet::new(),
            runs: Runs::default(),
            has_found: false,
            told: [0; 2],
            marked: Instant::ZERO,
            against: HeldAgainst {
                wrong: vec![0; drives],
                errors: vec![ReadErrors::default(); drives],
            },
        }
    }

    pub(crate) fn blame(&self) -> Blame {
        self.blame
    }

    /// What is to be known of it after a restart: what waits to be mended is looked at again.
    pub(crate) fn mark(&self) -> Option<ScrubMark> {
        let goes_on = match self.state {
            ScrubState::Idle | ScrubState::Done => return None,
            ScrubState::Running => GoesOn::Yes,
            ScrubState::Stopped => GoesOn::WhenTold,
        };
        let waiting = self.suspects.first().into_iter().chain(&self.mending);
        let to = waiting.map(|row| row.stripe).fold(self.to, u64::min);
        Some(ScrubMark { goes_on, to, found: self.found })
    }
}

impl Array {
    /// Everything is to be read and compared; goes on where one was stopped. Returns whether there is anything to
    /// do: nothing is where nothing is redundant.
    pub fn handle_scrub_start(&mut self, now: Instant, blame: Blame) -> bool {
        if self.core.code().is_none() || self.core.has_failed() {
            return false;
        }
        if self.own.scrub.state != ScrubState::Running {
            self.begin_scrub(now, blame);
        }
        self.move_on(now);
        true
    }

    /// Begins one where none is under way.
    pub(crate) fn begin_scrub(&mut self, now: Instant, blame: Blame) {
        self.tell_runs();
        let scrub = &mut self.own.scrub;
        if scrub.state != ScrubState::Stopped {
            (scrub.to, scrub.found, scrub.told) = (0, ScrubFound::default(), [0; 2]);
            scrub.found_on.iter_mut().for_each(|found| *found = DriveFound::nothing(found.drive));
        }
        (scrub.state, scrub.blame) = (ScrubState::Running, blame);
        self.own.scrub.marked = now;
        let progress = self.scrub();
        self.tell(ArrayEvent::ScrubBegun(progress));
        self.note_wishes();
    }

    /// A scrub that was under way when the array was stopped, or ended without that, goes on.
    pub(crate) fn tell_scrub_goes_on(&mut self) {
        if self.own.scrub.state == ScrubState::Running {
            let progress = self.scrub();
            self.tell(ArrayEvent::ScrubBegun(progress));
        }
    }

    /// No more is to be read for that. Returns whether one was under way.
    pub fn handle_scrub_stop(&mut self, now: Instant) -> bool {
        let is_running = self.own.scrub.state == ScrubState::Running;
        if is_running {
            self.tell_runs();
            self.own.scrub.state = ScrubState::Stopped;
            let progress = self.scrub();
            self.tell(ArrayEvent::ScrubStopped(progress));
            self.note_wishes();
        }
        self.move_on(now);
        is_running
    }

    /// How far a scrub is.
    pub fn scrub(&self) -> ScrubProgress {
        let Scrub { state, to, found, told, .. } = self.own.scrub;
        let unreported = told.into_iter().map(|told| told.saturating_sub(TOLD_MAX)).sum();
        ScrubProgress { state, to, stripes: self.core.layout().stripes(), found, unreported }
    }

    /// The drives on which something was found since the scrub began, or since the array was started if that was later.
    pub fn found_on(&self) -> impl Iterator<Item = DriveFound> {
        let all = self.own.scrub.found_on.iter().copied();
        all.filter(|found| found.unreadable + found.wrong + found.unrepaired > 0)
    }

    /// Sectors of the drive in this slot that were found to hold something else than was written, since the array was started
    /// or the drive has had the slot.
    pub fn wrong_sectors(&self, drive: DriveIdx) -> u64 {
        self.own.scrub.against.wrong.get(drive.as_usize()).copied().unwrap_or(0)
    }

    pub(crate) fn note_wrong(&mut self, drive: DriveIdx, sectors: Sectors) {
        if let Some(wrong) = self.own.scrub.against.wrong.get_mut(drive.as_usize()) {
            *wrong += sectors.get();
        }
    }

    /// Which of the sums of a [`Action::Check`](crate::Action::Check) were zero, in their order.
    pub fn handle_checked(&mut self, now: Instant, op: OpId, zero: &[bool]) {
        if let Some(Op::Check(check)) = self.work.ops.get_mut(op) {
            check.handle_checked(&mut self.core, now, zero);
            self.advance(now, op);
        } else if let Some(Op::Mend(mend)) = self.work.ops.get_mut(op) {
            mend.handle_checked(&mut self.core, now, zero);
            self.advance(now, op);
        } else if !self.handle_bytes_compared(now, op, zero) {
            self.handle_record_compared(now, op, zero);
        }
        self.move_on(now);
    }

    /// When the next scan is to begin by itself although clients wait.
    pub(crate) fn scrub_at(&self) -> Option<Instant> {
        self.own.pacer.next().filter(|_| self.wants_scan())
    }

    fn may_work(&self) -> bool {
        let is_ready = self.journal.as_ref().is_none_or(Journal::is_ready);
        let is_ending = self.end.stop != Stop::No || self.end.give_up_at.is_some();
        is_ready && !is_ending && !self.core.has_failed() && self.core.code().is_some()
    }

    fn wants_scan(&self) -> bool {
        let scrub = &self.own.scrub;
        scrub.state == ScrubState::Running
            && scrub.scan.is_none()
            && scrub.suspects.len() < SUSPECTS_PAUSE
            && scrub.to < self.core.holdings.synced()
            && self.core.drives.silent().without(self.core.drives.lost()).is_empty()
            && self.may_work()
    }

    /// Whether more becomes redundant by itself, and is to be looked at then.
    fn awaits_resync(&self) -> bool {
        let is_coming = self.own.resync == Resync::Running || self.wants_resync();
        self.own.pacer.is_automatic() && is_coming
    }

    /// Starts the next scan if the budget has room for it, and mends what was found.
    pub(crate) fn scrub_within_budget(&mut self, now: Instant) -> Moved {
        if self.mend_next(now) == Moved::Yes {
            return Moved::Yes;
        }
        if !self.own.scrub.runs.is_empty() && !self.may_find_more() {
            self.tell_runs();
        }
        let is_over = self.own.scrub.state == ScrubState::Running
            && self.own.scrub.to >= self.core.holdings.synced()
            && self.own.scrub.scan.is_none()
            && self.own.scrub.mend.is_none()
            && self.own.scrub.suspects.is_empty()
            && !self.awaits_resync();
        if is_over {
            self.own.scrub.state = ScrubState::Done;
            let progress = self.scrub();
            self.tell(ArrayEvent::ScrubDone(progress));
            let ScrubProgress { to, stripes, found, .. } = progress;
            let is_right = to == stripes && found.unrepaired == 0 && found.unlocated == 0;
            let may_write = !self.core.has_failed() && self.end.stop == Stop::No;
            if let (true, true, Some(store)) = (is_right, may_write, &mut self.store) {
                store.note_scrubbed(&mut self.core);
            }
            self.note_wishes();
            return Moved::No;
        }
        if !self.wants_scan()
            || self.is_turn_of_checks()
            || !self.own.pacer.may_begin(now, self.clients.outstanding)
        {
            return Moved::No;
        }
        self.own.pacer.note_begin();
        self.note_scan();
        let first = self.own.scrub.to;
        let end = self
            .core
            .holdings
            .synced()
            .min(first + self.own.pacer.budget().stripes(self.core.layout()));
        self.own.scrub.scan = self.claim(now, Start::Check(Scope::Scan { first, end }));
        Moved::Yes
    }

    /// Whether something may be found soon that adjoins what was found last.
    fn may_find_more(&self) -> bool {
        let scrub = &self.own.scrub;
        // A drive that does not answer may hold up all that is under way.
        if !self.core.drives.silent().without(self.core.drives.lost()).is_empty() {
            return false;
        }
        let is_mending = scrub.mend.is_some() || (!scrub.suspects.is_empty() && self.may_work());
        is_mending || (scrub.has_found && (scrub.scan.is_some() || self.wants_scan()))
    }

    /// Begins to mend a row of which nothing waits for its place.
    fn mend_next(&mut self, now: Instant) -> Moved {
        if self.own.scrub.mend.is_some() || self.own.scrub.suspects.is_empty() || !self.may_work() {
            return Moved::No;
        }
        // Its row is locked until every drive has given its part.
        if !self.core.drives.silent().without(self.core.drives.lost()).is_empty() {
            return Moved::No;
        }
        let core = &self.core;
        let is_placed = |row: &&Row| {
            let mut cells =
                (0..core.layout().symbols()).map(|symbol| core.layout().cell(**row, symbol));
            core.log.unplaced.is_empty() || cells.all(|cell| core.log.unplaced.find(cell).is_none())
        };
        let next = self.own.scrub.suspects.iter().take(LOOKS_MAX).find(is_placed).copied();
        let Some(row) = next else { return Moved::No };
        self.own.scrub.suspects.remove(&row);
        self.own.scrub.mending = Some(row);
        self.own.scrub.mend = self.claim(now, Start::Check(Scope::Mend { row }));
        Moved::Yes
    }

    /// Whether nothing of a row waits for its place: a client may have written it since it was chosen.
    pub(crate) fn is_in_place(&self, row: Row) -> bool {
        let core = &self.core;
        let mut cells = (0..core.layout().symbols()).map(|symbol| core.layout().cell(row, symbol));
        core.log.unplaced.is_empty() || cells.all(|cell| core.log.unplaced.find(cell).is_none())
    }

    /// It is tried again later.
    pub(crate) fn put_off(&mut self, row: Row) {
        (self.own.scrub.mend, self.own.scrub.mending) = (None, None);
        self.suspect(row);
    }

    /// A client's read was not given it, or a scan has found it.
    fn suspect(&mut self, row: Row) {
        if self.own.scrub.suspects.len() < SUSPECTS_MAX {
            self.suspect_for_good(row);
        }
    }

    /// A scan counts what it has gone through as seen: none of what it finds is forgotten, however much that is.
    fn suspect_for_good(&mut self, row: Row) {
        if row.stripe < self.core.holdings.synced() {
            self.own.scrub.suspects.insert(row);
        }
    }

    /// What a read that has ended was not given although the drive tried everything.
    pub(crate) fn unread(&self, op: OpId, sub: &Sub, outcome: &Outcome) -> Option<Unread> {
        let Outcome::Done { damaged, .. } = outcome else { return None };
        let Command::Read { extent, effort: Effort::Full } = sub.command else { return None };
        // In a study, which looks at what reads cost, nothing begins by itself.
        let is_minded = self.own.pacer.is_automatic() && self.core.code().is_some();
        if damaged.is_empty() || !is_minded || self.own.scrub.mend == Some(op) {
            return None;
        }
        // What was not read back yet is looked at by that.
        let cell = |offset: u32| Cell {
            drive: sub.drive,
            lba: Lba::new(extent.lba.get() + u64::from(offset)),
        };
        let cells = damaged.iter().map(cell);
        let cells: Vec<Cell> =
            cells.filter(|&cell| !self.core.verify.records.waits(cell)).collect();
        if cells.is_empty() {
            return None;
        }
        let row = |cell: &Cell| self.core.layout().symbol(*cell).0;
        // A scan names its rows when it ends.
        let is_scan = self.own.scrub.scan == Some(op);
        let rows = if is_scan { Vec::new() } else { cells.iter().map(row).collect() };
        let error = ReadError::of(sub, damaged.iter());
        Some(Unread { drive: sub.drive, rows, error })
    }

    /// What a drive gave an operation had not its checksum (TG1): it is repaired, and held against the drive, whatever effort was
    /// asked for.
    pub(crate) fn note_corrupt(&mut self, now: Instant, state: &Sub, wrong: &[u32]) {
        let (Purpose::Op(op), Some(extent)) = (state.purpose, state.command.extent()) else {
            return;
        };
        self.core.counters.corrupt_sectors += state.corrupt.len() as u64;
        if wrong.is_empty() || self.own.scrub.mend == Some(op) {
            return; // What is being repaired is known.
        }
        let mut corrupt = state.corrupt.clone();
        corrupt.sort_unstable();
        for run in corrupt.chunk_by(|one, next| one + 1 == *next) {
            let lba = extent.lba + Sectors::new(run[0].into());
            let extent = Extent::new(lba, Sectors::new(run.len() as u64));
            self.tell(ArrayEvent::Corrupt { drive: state.drive, extent });
        }
        // With all retries it counts as damaged, and so it is looked after.
        let is_full = matches!(state.command, Command::Read { effort, .. } if effort.is_full());
        if is_full || !self.own.pacer.is_automatic() || self.own.scrub.scan == Some(op) {
            return;
        }
        let row = |&at: &u32| {
            let lba = extent.lba + Sectors::new(at.into());
            self.core.layout().symbol(Cell { drive: state.drive, lba }).0
        };
        let rows = wrong.iter().map(row).collect();
        let error = ReadError::of(state, wrong.iter().copied());
        self.note_unread(now, Unread { drive: state.drive, rows, error });
    }

    /// What a drive did not give is mended, and held against it.
    pub(crate) fn note_unread(&mut self, now: Instant, unread: Unread) {
        let Unread { drive, rows, error } = unread;
        // What cannot be repaired is asked for again and again: that says nothing new of the drive.
        let is_known = |row: &Row| self.own.scrub.hopeless.contains(row);
        let is_news = rows.is_empty() || !rows.iter().all(is_known);
        rows.into_iter().for_each(|row| self.suspect(row));
        if is_news {
            self.note_error(now, drive, error);
        }
    }

    /// A command that wrote sectors of a group with their tag sector is lost (TG8): the group is looked at soon.
    pub(crate) fn note_lost_group(&mut self, drive: DriveIdx, group: u64) {
        let tags = self.core.tags.as_ref().expect("only an array with checksums reads any back");
        let extent = tags.covers(self.core.area(), group);
        self.tell(ArrayEvent::Corrupt { drive, extent });
        if self.own.pacer.is_automatic() && self.core.code().is_some() {
            let row = |lba: Lba| self.core.layout().symbol(Cell { drive, lba }).0;
            let rows: Vec<Row> = extent.iter().map(row).collect();
            rows.into_iter().for_each(|row| self.suspect(row));
        }
    }

    /// What a drive that is copied did not give is mended. It is not held against the drive: it is to go anyway, and all of it
    /// is read at once.
    pub(crate) fn mend_uncopied(&mut self, rows: impl IntoIterator<Item = Row>) {
        if self.own.pacer.is_automatic() {
            rows.into_iter().for_each(|row| self.suspect(row));
        }
    }

    /// Whether something is being mended, or waits for that.
    pub(crate) fn is_mending(&self) -> bool {
        self.own.scrub.mend.is_some() || !self.own.scrub.suspects.is_empty()
    }

    /// A new drive has the place: what the one before it did not give, or had wrong, is not held against it.
    pub(crate) fn forget_errors(&mut self, drive: DriveIdx) {
        if let Some(wrong) = self.own.scrub.against.wrong.get_mut(drive.as_usize()) {
            *wrong = 0;
        }
        if let Some(found) = self.own.scrub.found_on.get_mut(drive.as_usize()) {
            *found = DriveFound::nothing(drive);
        }
        // Of one that has nothing but the journal none are counted.
        if let Some(errors) = self.own.scrub.against.errors.get_mut(drive.as_usize()) {
            *errors = ReadErrors::default();
        }
    }

    /// Does without a drive that gives too little, if the layout survives that.
    pub(crate) fn note_read_error(&mut self, now: Instant, drive: DriveIdx) {
        self.note_error(now, drive, ReadError::Unread);
    }

    fn note_error(&mut self, now: Instant, drive: DriveIdx, error: ReadError) {
        let errors = &mut self.own.scrub.against.errors[drive.as_usize()];
        if self.core.drives.lost().contains(drive) {
            return;
        }
        let are_too_many = match error {
            ReadError::Unread => errors.note(now),
            ReadError::Corrupt => errors.note_corrupt(now),
            // What it stores is repaired with its tag sector.
            ReadError::Unproven => false,
        };
        if !are_too_many {
            return;
        }
        let is_redundant = self.core.is_redundant(self.core.layout().stripes());
        let may_lose = is_redundant && self.core.drives.can_spare(DriveSet::EMPTY.with(drive));
        let count = errors.count();
        if may_lose || errors.tell_once() {
            self.tell(ArrayEvent::ReadErrors { drive, errors: count, is_kept: !may_lose });
        }
        if may_lose {
            self.lose(now, drive, Why::Failed);
        }
    }

    /// A scan or a repair has ended.
    pub(crate) fn note_checked(&mut self, now: Instant, op: OpId, scope: Scope, checked: Checked) {
        let Checked { suspects, findings, is_hopeless, is_unlocated, is_given_up } = checked;
        match scope {
            Scope::Scan { end, .. } => {
                assert_eq!(self.own.scrub.scan.take(), Some(op), "B1");
                self.own.pacer.note_end(now);
                if is_given_up {
                    return;
                }
                self.own.scrub.to = end;
                self.core.counters.scrubbed_stripes += end - scope.first();
                self.own.scrub.has_found = !suspects.is_empty();
                suspects.into_iter().for_each(|row| self.suspect_for_good(row));
                let is_last = self.own.scrub.state != ScrubState::Running;
                if is_last || now >= self.own.scrub.marked + MARK_EVERY {
                    self.own.scrub.marked = now;
                    self.note_wishes();
                }
            }
            Scope::Mend { row } => {
                assert_eq!(self.own.scrub.mend.take(), Some(op), "one at a time");
                self.own.scrub.mending = None;
                if is_unlocated {
                    self.own.scrub.found.unlocated += 1;
                    self.core.counters.unlocated_codewords += 1;
                    let Cell { lba, .. } = self.core.layout().cell(row, 0);
                    let first = lba.get();
                    let stripe = row.stripe;
                    let sectors = self.core.layout().spec().expansion() as u64;
                    self.note_found(
                        now,
                        ArrayEvent::Unlocated { stripe, first_sector: first, sectors },
                    );
                }
                if !is_hopeless {
                    self.own.scrub.hopeless.remove(&row);
                } else if self.own.scrub.hopeless.len() < SUSPECTS_MAX {
                    self.own.scrub.hopeless.insert(row);
                }
                if findings.iter().any(|finding| finding.is_repaired) {
                    self.look_again(row.stripe..row.stripe + 1);
                }
                for finding in findings {
                    // Where nothing could be computed nothing was written: the read that was not given has counted.
                    let is_refused = !finding.is_repaired && !is_hopeless;
                    let drive = finding.drive;
                    self.note_finding(now, finding);
                    if is_refused {
                        self.note_read_error(now, drive);
                    }
                }
            }
        }
    }

    fn note_finding(&mut self, now: Instant, finding: Finding) {
        let Finding { drive, extent, fault, is_repaired } = finding;
        let sectors = extent.sectors.get();
        let (found, counters) = (&mut self.own.scrub.found, &mut self.core.counters);
        let found_on = &mut self.own.scrub.found_on[drive.as_usize()];
        let (count, on_drive) = match (is_repaired, fault) {
            (true, Fault::Unreadable) => {
                counters.repaired_unreadable += sectors;
                (&mut found.unreadable, &mut found_on.unreadable)
            }
            (true, Fault::Wrong) => {
                counters.repaired_wrong += sectors;
                (&mut found.wrong, &mut found_on.wrong)
            }
            (false, _) => {
                counters.unrepaired_sectors += sectors;
                (&mut found.unrepaired, &mut found_on.unrepaired)
            }
        };
        *count += sectors;
        *on_drive += sectors;
        if fault == Fault::Wrong {
            self.note_wrong(drive, extent.sectors);
        }
        self.note_found(now, ArrayEvent::Repaired { drive, extent, fault, is_repaired });
    }

    fn note_found(&mut self, now: Instant, event: ArrayEvent) {
        if let Some(run) = self.own.scrub.runs.add(now, event) {
            self.tell_run(run);
        }
    }

    /// Tells all runs that are open.
    pub(crate) fn tell_runs(&mut self) {
        self.own.scrub.runs.close().for_each(|run| self.tell_run(run));
    }

    fn tell_run(&mut self, run: ArrayEvent) {
        // Beside no scrub it is one at a time, as clients come to it.
        let is_scrub = self.own.scrub.state == ScrubState::Running;
        let is_mended = matches!(run, ArrayEvent::Repaired { is_repaired: true, .. });
        let told = &mut self.own.scrub.told[usize::from(!is_mended)];
        *told += u64::from(is_scrub);
        if !is_scrub || *told <= TOLD_MAX {
            self.tell(run);
        }
    }

    /// When a run is to be told although more may be found beside it.
    pub(crate) fn runs_at(&self) -> Option<Instant> {
        self.own.scrub.runs.due_at()
    }

    /// Tells the runs that have been open for long.
    pub(crate) fn tell_old_runs(&mut self, now: Instant) {
        if self.runs_at().is_some_and(|at| at <= now) {
            self.tell_runs();
        }
    }
}

impl Scope {
    fn first(self) -> u64 {
        match self {
            Self::Scan { first, .. } => first,
            Self::Mend { row } => row.stripe,
        }
    }
}
