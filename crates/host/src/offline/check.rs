//! Looking whether an array that is not served is as it should be. Nothing is written.

use std::io;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use levelhead_array::assembly::Copy;
use levelhead_array::journal::record::checksums;
use levelhead_array::membership::Generation;
use levelhead_array::metadata::{Metadata, Slot, State};
use levelhead_array::offline::Overlay;
use levelhead_array::superblock::Uuid;
use levelhead_array::{Cell, Row, Spec};
use levelhead_erasure::{Kernel, SymbolSet};
use levelhead_units::{Bytes, DriveIdx, DriveSet, Extent, Lba, Sectors};

use super::codewords::{Agreement, Codewords};
use super::findings::{AllFindings, Finding, FindingKind, Findings, only};
use super::places::Places;
use super::reading::Proof;
use super::rings::Rings;
use super::stream::Stream;
use super::sums::SumsChecked;
use super::window::Window;
use super::{Offline, Which};
use crate::error::HostError;
use crate::member::MemberSpec;
use crate::select::LeftOut;

const NOT_WHAT_OTHERS_SAY: &str = "it is not what the other drives say";
const LOCATED: &str = "it does not match its checksum, and what the other drives compute does";
const DOUBTFUL: &str = "it does not match its checksum, and is what the other drives compute";

/// What was looked at, and what is wrong with it.
#[derive(Clone, Debug)]
pub struct Checked {
    /// The array's shape.
    pub spec: Spec,
    /// Its identity.
    pub uuid: Uuid,
    /// Its size.
    pub size: Sectors,
    /// Whether it was stopped in good order.
    pub is_clean: bool,
    /// Its drives, in order; nothing where one is not there.
    pub drives: Vec<Option<MemberSpec>>,
    /// Drives that are not there, or do not hold everything yet.
    pub absent: DriveSet,
    /// Drives that were found in the folders, say that they are the array's, and are none of it.
    pub left_out: Vec<LeftOut>,
    /// Why a server would not go on unless it is forced to.
    pub doubt: Option<String>,
    /// What its journal holds, if it keeps one.
    pub journal: Option<JournalChecked>,
    /// Its codewords.
    pub codewords: CodewordsChecked,
    /// Its checksums, if it has them.
    pub sums: Option<SumsChecked>,
    /// What is wrong.
    pub findings: AllFindings,
    /// What was read of the drives.
    pub read: Bytes,
    /// How long that took.
    pub took: Duration,
}

/// What a journal holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JournalChecked {
    /// Records that are readable, those that are over among them.
    pub records: usize,
    /// Transactions that a start would bring to their places.
    pub transactions: usize,
    /// Transactions that a start would take as never begun.
    pub dropped: usize,
    /// Sectors that a start would write.
    pub sectors: usize,
}

/// How many codewords there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CodewordsChecked {
    /// Those whose sectors agree.
    pub right: u64,
    /// Those whose sectors do not.
    pub wrong: u64,
    /// Those of which no more is there than the data: nothing can be told.
    pub unknown: u64,
    /// Those of stripes whose redundancy is not valid yet and says so, and that do not agree.
    pub unsynced_wrong: u64,
    /// All of those stripes' codewords.
    pub unsynced: u64,
    /// Those that were being replaced as a whole when the array was cut off: a start makes their redundancy right.
    pub announced: u64,
}

/// How a check goes.
#[derive(Clone, Copy, Debug)]
pub struct CheckOptions {
    /// Which code does the arithmetic.
    pub kernel: Kernel,
}

/// Looks at all of an array. `progress` is told how much was read, and how much there is, in bytes; it may be
/// called by several threads at a time.
pub fn check(
    which: Which<'_>,
    options: CheckOptions,
    progress: &(dyn Fn(u64, u64) + Sync),
) -> Result<Checked, HostError> {
    let array = Offline::open(which)?;
    let begun = Instant::now();
    let total = total(&array);
    let done = AtomicU64::new(0);
    let note = |sectors: Sectors| {
        let bytes = sectors.bytes().get();
        progress(done.fetch_add(bytes, Ordering::Relaxed) + bytes, total.get());
    };
    let mut findings = Findings::default();
    superblocks(&array, &mut findings);
    metadata(&array, &mut findings);
    let rings = Rings::read(&array, &note);
    let overlay = rings.overlay(&array);
    of_journal(&rings, &overlay, &mut findings);
    let mut all = Check {
        array: &array,
        overlay: &overlay,
        codewords: Codewords::new(&array.layout, options.kernel),
        findings,
        counts: CodewordsChecked::default(),
        sums: SumsChecked::default(),
    };
    all.note_damaged();
    read_all(&array, &overlay, &note, &mut |places| {
        all.look_at(places);
        ControlFlow::Continue(())
    })
    .map_err(|error| HostError::new(format!("cannot start a thread: {error}")))?;
    let Check { findings, counts, sums, .. } = all;
    let [transactions, dropped] = overlay.transactions();
    let journal = JournalChecked {
        records: rings.records.len(),
        transactions,
        dropped,
        sectors: overlay.len(),
    };
    Ok(Checked {
        spec: array.metadata.spec,
        uuid: array.metadata.array,
        size: array.layout.size(),
        is_clean: array.metadata.state == State::Clean,
        drives: array.drives.iter().map(|drive| Some(drive.as_ref()?.member.clone())).collect(),
        absent: DriveSet::first(array.drives.len() as u8).without(array.present()),
        left_out: array.left_out.clone(),
        doubt: array.doubt.clone(),
        journal: array.metadata.journal.map(|_| journal),
        codewords: counts,
        sums: array.metadata.spec.has_checksums().then_some(sums),
        findings: findings.finish(),
        read: Bytes::new(done.into_inner()),
        took: begun.elapsed(),
    })
}

/// What there is to read.
pub(super) fn total(array: &Offline) -> Bytes {
    let data = array.layout.spec().chunk() * array.layout.chunks();
    let with_data = array.layout.spec().data_drives().and(array.present());
    let own = array.there().map(|(at, drive)| {
        let data = if with_data.contains(at) { data } else { Sectors::ZERO };
        let journal: Sectors = drive.own.journal().iter().map(|piece| piece.sectors).sum();
        let journal = if array.metadata.journal.is_some() { journal } else { Sectors::ZERO };
        (data + journal).bytes().get()
    });
    Bytes::new(own.sum())
}

/// Reads all windows of an array from the drives that are present, one after the other, each drive ahead of what is looked
/// at, until it breaks off.
///
/// # Errors
///
/// The system has no thread left.
pub(super) fn read_all(
    array: &Offline,
    overlay: &Overlay,
    note: &(dyn Fn(Sectors) + Sync),
    look_at: &mut dyn FnMut(&Places<'_>) -> ControlFlow<()>,
) -> io::Result<()> {
    std::thread::scope(|scope| {
        let present = array.present();
        let start = |at: usize| {
            let (at, of) = (DriveIdx::from_usize(at), array.drives[at].as_ref());
            let of = of.filter(|_| present.contains(at));
            let windows = Window::all(&array.layout);
            of.map(|of| Stream::start(scope, array, (at, of), windows)).transpose()
        };
        let streams = (0..array.layout.spec().drives()).map(start);
        let streams = streams.collect::<io::Result<Vec<Option<Stream>>>>()?;
        for window in Window::all(&array.layout) {
            let next = |stream: &Option<Stream>| {
                let stretch = stream.as_ref()?.next();
                note(window.sectors());
                Some(stretch)
            };
            let stretches = streams.iter().map(next).collect();
            let places = Places::new(array, overlay, window, stretches);
            if look_at(&places).is_break() {
                return Ok(());
            }
            let stretches = places.into_stretches().into_iter();
            for (stream, stretch) in streams.iter().zip(stretches) {
                if let (Some(stream), Some(stretch)) = (stream, stretch) {
                    stream.give_back(stretch.buf);
                }
            }
        }
        Ok(())
    })
}

/// Whether every copy of every superblock is good. That all of a drive say the same is known by now.
fn superblocks(array: &Offline, findings: &mut Findings) {
    for (drive, of) in array.there() {
        for (copy, lba) in of.found.copies.iter().zip(of.own.copies()) {
            let detail = match copy {
                Copy::Unreadable => "it cannot be read".to_owned(),
                Copy::Read(read) => match &**read {
                    Err(error) => error.to_string(),
                    Ok(_) => continue,
                },
            };
            let on_drive = Some(Extent::new(lba, Sectors::new(1)));
            let (kind, drives, in_array) = (FindingKind::Superblock, only(drive), None);
            findings.note(Finding { kind, drives, on_drive, in_array, detail });
        }
    }
}

/// Whether every drive has the metadata, in slots that can be read.
fn metadata(array: &Offline, findings: &mut Findings) {
    let mut note = |drive, extent, detail| {
        let (kind, drives, on_drive) = (FindingKind::Metadata, only(drive), Some(extent));
        findings.note(Finding { kind, drives, on_drive, in_array: None, detail });
    };
    for (drive, of) in array.there() {
        let slots = of.own.slots();
        for (slot, extent) in of.found.slots.iter().zip(slots) {
            if *slot == Slot::Unreadable {
                note(drive, extent, "it cannot be read, or is damaged".to_owned());
            }
        }
        let held = of.found.word().and_then(|word| word.held);
        let own = held.map_or(Generation::NONE, |held| held.generation);
        let right = &array.metadata;
        if !may_be_at(own, right) {
            let slot = slots[held.map_or(0, |held| held.slot)];
            let detail = format!("it is at generation {own}, the array at {}", right.generation);
            note(drive, slot, detail);
        }
    }
}

/// Whether a drive may be at this generation: the last one, or one of those that a crash leaves behind, and a start completes.
/// While the array is open a drive may lack the last changes, and what they were is in the metadata of the others.
fn may_be_at(own: Generation, right: &Metadata) -> bool {
    let is_last = own == right.generation || own.plus(1) == right.generation;
    is_last || own == right.base || right.state == State::Dirty
}

fn of_journal(rings: &Rings, overlay: &Overlay, findings: &mut Findings) {
    for &(drive, lba) in &rings.unreadable {
        let on_drive = Some(Extent::new(lba, Sectors::new(1)));
        let (kind, drives, in_array) = (FindingKind::Ring, only(drive), None);
        let detail = "the journal's space cannot be read".to_owned();
        findings.note(Finding { kind, drives, on_drive, in_array, detail });
    }
    for lacking in overlay.incomplete() {
        let (kind, drives) = (FindingKind::Record, only(lacking.drive));
        let detail = format!("the record of transaction {} is missing or damaged", lacking.id);
        findings.note(Finding { kind, drives, on_drive: None, in_array: None, detail });
    }
}

/// A check under way.
struct Check<'a> {
    array: &'a Offline,
    overlay: &'a Overlay,
    codewords: Codewords,
    findings: Findings,
    counts: CodewordsChecked,
    sums: SumsChecked,
}

impl Check<'_> {
    fn look_at(&mut self, places: &Places<'_>) {
        for cell in places.bad() {
            let in_array = self.in_array(cell);
            let detail = "the drive does not return it".to_owned();
            self.note(FindingKind::Unreadable, only(cell.drive), Some(cell), in_array, detail);
        }
        self.sums.add(places.sums);
        let all = self.array.layout.symbols();
        for row in places.rows() {
            let mut had = places.had(row);
            let is_trusted = row.stripe < self.array.trusted;
            if self.overlay.is_announced(row) {
                self.counts.announced += 1;
                continue;
            }
            let corrupt = places.corrupt(row);
            if !corrupt.is_empty() {
                had = self.note_corrupt(places, row, had, corrupt);
            }
            let is_corrupt = !corrupt.minus(had).is_empty();
            if had.len() < all {
                self.note_lost(row, had, is_trusted);
            }
            let agreement = self.codewords.judge(places, row, had);
            if !is_trusted {
                self.counts.unsynced += 1;
                let is_right = matches!(agreement, Agreement::Right | Agreement::Unknown);
                self.counts.unsynced_wrong += u64::from(!is_right);
                continue;
            }
            match agreement {
                Agreement::Right | Agreement::Unknown if is_corrupt => self.counts.wrong += 1,
                Agreement::Right => self.counts.right += 1,
                Agreement::Unknown => self.counts.unknown += 1,
                Agreement::Drive { symbols, .. } => {
                    self.counts.wrong += 1;
                    self.note_symbols(FindingKind::Mismatch, row, symbols, NOT_WHAT_OTHERS_SAY);
                }
                Agreement::Wrong => {
                    self.counts.wrong += 1;
                    let proven = places.proven(row).and(had);
                    match self.codewords.differing(places, row, had, proven) {
                        unknown if unknown.is_empty() => self.note_wrong(row, had),
                        symbols => {
                            self.note_symbols(
                                FindingKind::Mismatch,
                                row,
                                symbols,
                                NOT_WHAT_OTHERS_SAY,
                            );
                        }
                    }
                }
            }
        }
    }

    /// Sectors that do not match their checksums, and are not among those that are had. Returns all that are had then: with these, if
    /// the whole codeword agrees.
    fn note_corrupt(
        &mut self,
        places: &Places<'_>,
        row: Row,
        had: SymbolSet,
        corrupt: SymbolSet,
    ) -> SymbolSet {
        let all = had.or(corrupt);
        if self.codewords.is_right(places, row, all) {
            self.note_symbols(FindingKind::Doubtful, row, corrupt.iter(), DOUBTFUL);
            return all;
        }
        for symbol in corrupt.iter() {
            let from = self.codewords.best(places, row, had);
            let may_compute = self.codewords.may_compute(from);
            let computed = may_compute.then(|| self.codewords.compute(places, row, from, symbol));
            let sum = computed.map(|bytes| checksums(std::iter::once(bytes)));
            let (kind, detail) = match (places.proof(row, symbol), sum.as_deref(), computed) {
                (Some(Proof::Corrupt(right)), Some(&[sum]), _) if sum == right => {
                    (FindingKind::Corrupt, LOCATED)
                }
                (_, _, Some(bytes)) if *bytes == *places.bytes(row, symbol) => {
                    (FindingKind::Doubtful, DOUBTFUL)
                }
                (_, _, Some(_)) => (
                    FindingKind::Corrupt,
                    "redundancy does not return what matches its checksum either",
                ),
                (_, _, None) => (FindingKind::Corrupt, "it does not match its checksum"),
            };
            self.note_symbols(kind, row, [symbol], detail);
        }
        had
    }

    /// What the array itself says that it does not have.
    fn note_damaged(&mut self) {
        let array = self.array;
        for range in array.metadata.damaged.ranges() {
            for lba in range.extent.iter() {
                let cell = Cell { drive: range.drive, lba };
                let detail = "the array keeps it as damaged".to_owned();
                let (kind, in_array) = (FindingKind::Damaged, self.in_array(cell));
                self.note(kind, only(range.drive), Some(cell), in_array, detail);
            }
        }
    }

    /// Data that nothing gives.
    fn note_lost(&mut self, row: Row, had: SymbolSet, is_trusted: bool) {
        let layout = &self.array.layout;
        let may_compute = is_trusted || layout.spec().is_mirror();
        let is_enough = layout.spec().redundant() > 0 && had.len() >= self.codewords.needed();
        if may_compute && is_enough {
            return;
        }
        let lost = (0..layout.data_symbols()).filter(|&symbol| !had.contains(symbol));
        self.note_symbols(FindingKind::Lost, row, lost, "nothing returns it");
    }

    /// The same is wrong with sectors of a codeword.
    fn note_symbols(
        &mut self,
        kind: FindingKind,
        row: Row,
        symbols: impl IntoIterator<Item = usize>,
        detail: &str,
    ) {
        for symbol in symbols {
            let cell = self.array.layout.cell(row, symbol);
            let in_array = self.in_array(cell);
            self.note(kind, only(cell.drive), Some(cell), in_array, detail.to_owned());
        }
    }

    /// A codeword that does not agree, whichever drive is wrong.
    fn note_wrong(&mut self, row: Row, had: SymbolSet) {
        let layout = &self.array.layout;
        let cells: Vec<Cell> = had.iter().map(|symbol| layout.cell(row, symbol)).collect();
        let drives: DriveSet = cells.iter().map(|cell| cell.drive).collect();
        let data = layout.data_symbols();
        let spans = (0..data).filter_map(|symbol| self.in_array(layout.cell(row, symbol)));
        let (mut first, mut end) = (Lba::new(u64::MAX), Lba::ZERO);
        for span in spans {
            (first, end) = (first.min(span.lba), end.max(span.end()));
        }
        let in_array = Some(Extent::new(first, end - first));
        let e = layout.spec().expansion() as u64;
        for at in 0..e {
            let cell = layout.cell(row, at as usize);
            let detail = "the drives do not agree, and nothing says which is wrong".to_owned();
            self.note(FindingKind::Mismatch, drives, Some(cell), in_array, detail);
        }
    }

    /// The array's sector that a drive's sector holds, if it holds one.
    fn in_array(&self, cell: Cell) -> Option<Extent> {
        let layout = &self.array.layout;
        let spec = layout.spec();
        let (row, symbol) = layout.symbol(cell);
        if row.stripe >= layout.stripes() {
            return None;
        }
        // Each copy of a mirror's sector is that sector.
        let symbol = if spec.is_mirror() { 0 } else { symbol };
        if symbol >= layout.data_symbols() {
            return None;
        }
        Some(Extent::new(layout.sector(row, symbol), Sectors::new(1)))
    }

    fn note(
        &mut self,
        kind: FindingKind,
        drives: DriveSet,
        cell: Option<Cell>,
        in_array: Option<Extent>,
        detail: String,
    ) {
        let one = |cell: Cell| self.array.area.on_drive(Extent::new(cell.lba, Sectors::new(1)));
        let on_drive = cell.map(one);
        self.findings.note(Finding { kind, drives, on_drive, in_array, detail });
    }
}
