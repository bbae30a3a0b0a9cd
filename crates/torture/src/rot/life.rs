//! The life of an array with a drive that misbehaves once.

use std::collections::BTreeSet;

use levelhead_array::journal::rules::Rules;
use levelhead_array::{ArrayEvent, Cell, Ending, Row};
use levelhead_block::Durability;
use levelhead_stats::Rng;
use levelhead_units::{DriveIdx, DriveSet, Extent, Lba, Sectors};

use super::{Aim, Fault, Tally, Way};
use crate::crash::Planted;
use crate::crash::faulty::Faulty;
use crate::crash::image::Image;
use crate::crash::machine::{Machine, Start};
use crate::crash::make::{Made, Make};
use crate::crash::promise::Promise;

/// The most requests of a session.
const REQUESTS_MAX: u64 = 24;

/// Steps in which a drive becomes idle and tag sectors are written.
const IDLE: u64 = 40;

/// Sectors that change at rest where several do.
const ROTS_MAX: u64 = 12;

/// One array, from its creation on.
pub(super) struct Life<'a> {
    rng: Rng,
    aim: Aim,
    tally: &'a mut Tally,
    pub(super) machine: Machine,
    /// Where most requests go.
    hot: Extent,
    /// Drives that misbehave, or have.
    faulty: DriveSet,
    /// A drive that is lost from the beginning.
    missing: DriveSet,
    /// Sectors that have changed at rest.
    rotten: Vec<(DriveIdx, Lba)>,
    /// Whether a read has returned wrong data since this was last asked.
    is_wrong: bool,
    /// Whether a request has failed, where that is counted.
    is_unread: bool,
    /// Whether nothing is read before the next power cut.
    is_blind: bool,
}

impl<'a> Life<'a> {
    pub(super) fn new(
        make: Make,
        aim: Aim,
        mut rng: Rng,
        tally: &'a mut Tally,
    ) -> Result<Self, String> {
        let Made { disks, .. } = make.disks(&mut rng);
        let size = make.layout().size().get();
        let promise = Promise::new(size, make.logs, true);
        let mut machine = start(Image::new(disks, promise), DriveSet::EMPTY, &mut rng)?;
        let mut missing = DriveSet::EMPTY;
        if aim.is_degraded {
            let drive = DriveIdx::from_usize(rng.below(make.spec.drives() as u64) as usize);
            machine.lose(drive);
            missing = missing.with(drive);
        }
        let sectors = 1 + rng.below(size.min(16));
        let hot = Extent::new(Lba::new(rng.below(size - sectors + 1)), Sectors::new(sectors));
        Ok(Self {
            rng,
            aim,
            tally,
            machine,
            hot,
            faulty: DriveSet::EMPTY,
            missing,
            rotten: Vec::new(),
            is_wrong: false,
            is_unread: false,
            is_blind: false,
        })
    }

    /// What has misbehaved.
    pub(super) fn in_words(&self) -> String {
        let (faulty, rotten) = (self.machine.faulty.as_ref(), &self.rotten);
        let done = faulty.map(|faulty| (faulty.drive, &faulty.done));
        format!("hot {:?}, rotten {rotten:?}, not stored {done:?}", self.hot)
    }

    /// Counts what has become of it.
    pub(super) fn add_up(self) {
        let writes = self.machine.faulty.as_ref().is_some_and(|faulty| !faulty.done.is_empty());
        self.tally.faulty += u64::from(writes || !self.rotten.is_empty());
        self.tally.unread += u64::from(self.is_unread);
    }

    /// Sessions, and the checks at the end.
    pub(super) fn all(&mut self) -> Result<(), String> {
        let sessions = 1 + self.rng.below(4);
        let faulty_in = self.rng.below(sessions);
        for session in 0..sessions {
            if session > 0 {
                self.restart()?;
            }
            self.session(session == faulty_in)?;
        }
        if self.is_blind {
            self.restart()?;
        }
        self.scrub()?;
        self.scrub_again()
    }

    /// Everything is read, scrubbed, read and compared with what the drives hold.
    fn scrub(&mut self) -> Result<(), String> {
        self.machine.flush(); // What is read from now on outlasts a restart.
        self.verify()?;
        self.tally.wrong_before += u64::from(std::mem::take(&mut self.is_wrong));
        // What goes wrong during the scrub may be behind it.
        self.machine.faulty.iter_mut().for_each(Faulty::behave);
        let scrubbed = self.machine.scrub_all(&mut self.rng);
        self.judge(scrubbed)?;
        self.verify().map_err(|how| format!("after a scrub, {how}"))?;
        match self.aim.fault {
            Fault::Dropped => Ok(()),
            _ => self.compare().map_err(|how| format!("after a scrub, {how}")),
        }
    }

    /// The same after a restart. Then nothing is corrupt, and redundancy is right.
    fn scrub_again(&mut self) -> Result<(), String> {
        self.stop()?;
        // Memory had what a tag sector lacked whose write was lost.
        let before = self.tally.corrupt;
        self.verify().map_err(|how| format!("after a scrub and a restart, {how}"))?;
        self.tally.wrong_after += u64::from(self.is_wrong);
        let scrubbed = self.machine.scrub_all(&mut self.rng);
        self.judge(scrubbed)?;
        self.look()?;
        self.tally.late += u64::from(self.tally.corrupt > before);
        self.tally.failed += u64::from(self.machine.gone() != self.missing);
        if self.aim.fault == Fault::Dropped {
            return Ok(());
        }
        self.stop()?;
        let found = self.tally.corrupt;
        self.verify().map_err(|how| format!("after two scrubs, {how}"))?;
        if self.tally.corrupt > found {
            return Err("something is corrupt after two scrubs".into());
        }
        self.compare()
            .and_then(|()| self.compare_tags())
            .map_err(|how| format!("after two scrubs, {how}"))?;
        self.lose_drives()
    }

    /// Some requests, and perhaps the fault among them.
    fn session(&mut self, is_faulty: bool) -> Result<(), String> {
        let requests = 1 + self.rng.below(REQUESTS_MAX);
        let fault_at = is_faulty.then(|| self.rng.below(requests));
        for request in 0..requests {
            if fault_at == Some(request) {
                self.misbehave();
            }
            while self.machine.outstanding() >= 3 {
                self.step()?;
            }
            match self.rng.below(16) {
                0 => self.machine.flush(),
                1 => self.steps(IDLE)?,
                2..6 if self.is_blind => {}
                2 => {
                    self.machine.start_or_stop_scrub();
                }
                3..6 => {
                    let extent = self.extent();
                    self.machine.read(extent);
                    self.tally.requests += 1;
                }
                _ => {
                    let extent = self.extent();
                    let is_durable = self.rng.below(8) == 0;
                    let durability =
                        if is_durable { Durability::Durable } else { Durability::Cached };
                    self.machine.write(extent, durability);
                    self.tally.requests += 1;
                }
            }
            let steps = self.rng.below(16);
            self.steps(steps)?;
        }
        Ok(())
    }

    fn steps(&mut self, count: u64) -> Result<(), String> {
        (0..count).try_for_each(|_| self.step())
    }

    fn step(&mut self) -> Result<(), String> {
        let may_go_on = self.machine.step(&mut self.rng) || self.machine.outstanding() == 0;
        let seen = self.machine.is_good();
        self.judge(seen)?;
        self.look()?;
        may_go_on.then_some(()).ok_or_else(|| "requests are never answered".into())
    }

    /// What a read or write covers: a few sectors, whole stripes or groups, or anything; mostly among the hot sectors.
    fn extent(&mut self) -> Extent {
        let layout = self.machine.array.layout();
        let (size, spec) = (layout.size().get(), layout.spec());
        let stripe = spec.chunk().get() * spec.data() as u64;
        let group = 64 * spec.data() as u64;
        let hot = self.hot.lba.get() + self.rng.below(self.hot.sectors.get());
        let at = if self.rng.below(4) > 0 { hot } else { self.rng.below(size) };
        let (lba, sectors) = match self.rng.below(8) {
            0 | 1 => (at - at % stripe, stripe * (1 + self.rng.below(3))),
            2 => (at - at % group, group * (1 + self.rng.below(2))),
            3 => (at, 1 + self.rng.below(size.min(100))),
            _ => (at, 1 + self.rng.below(3)),
        };
        Extent::new(Lba::new(lba), Sectors::new(sectors.min(size - lba)))
    }

    /// The fault comes now, or with a later write command.
    fn misbehave(&mut self) {
        let drives = DriveSet::first(self.machine.array.layout().spec().drives() as u8);
        let drives: Vec<DriveIdx> = drives.without(self.missing).iter().collect();
        let drive = drives[self.rng.below(drives.len() as u64) as usize];
        let way = match self.aim.fault {
            Fault::None => return,
            Fault::Rot => return self.rot_one(),
            Fault::Rots => return self.rot_some(drive),
            Fault::Write(way) => way,
            Fault::Dropped => Way::Lost,
        };
        let count = if self.aim.fault == Fault::Dropped { 2 + self.rng.below(6) } else { 1 };
        self.machine.faulty = Some(Faulty::new(drive, way, count, &mut self.rng));
        self.faulty = self.faulty.with(drive);
        self.is_blind = self.aim.has_cuts;
    }

    /// A sector of data or redundancy changes, often one of a hot codeword, or the tag sector of one, or one of the journal or a list.
    fn rot_one(&mut self) {
        let Cell { drive, lba } = self.any_cell();
        if self.missing.contains(drive) {
            return self.rot_one();
        }
        let lba = match self.rng.below(16) {
            0..11 => self.machine.place_of(Cell { drive, lba }),
            11..14 => match self.machine.area().tag_of(lba) {
                Some(tag) => tag.lba,
                None => return self.rot_one(),
            },
            _ => {
                let size = self.machine.disk(drive).size().get() - 1;
                let first = levelhead_array::reserve::HEAD.get();
                Lba::new(first + self.rng.below(size - first))
            }
        };
        self.rot(drive, lba);
        self.is_blind = self.aim.has_cuts;
    }

    /// Several sectors of one drive, or of each codeword as many as are redundant.
    fn rot_some(&mut self, drive: DriveIdx) {
        let count = 2 + self.rng.below(ROTS_MAX - 1);
        let is_spread = self.rng.below(2) == 0;
        let mut rows: BTreeSet<Row> = BTreeSet::new();
        for _ in 0..count {
            if !is_spread {
                let size = self.machine.area().size().get();
                let lba = self
                    .machine
                    .area()
                    .on_drive(Extent::new(Lba::new(self.rng.below(size)), Sectors::new(1)));
                self.rot(drive, lba.lba);
                continue;
            }
            let layout = *self.machine.array.layout();
            let row = layout.symbol(self.any_cell()).0;
            if !rows.insert(row) {
                continue;
            }
            let mut symbols: Vec<usize> = (0..layout.symbols()).collect();
            for _ in 0..layout.symbols() - layout.data_symbols() {
                let symbol = symbols.swap_remove(self.rng.below(symbols.len() as u64) as usize);
                let cell = layout.cell(row, symbol);
                self.rot(cell.drive, self.machine.place_of(cell));
            }
        }
    }

    fn any_cell(&mut self) -> Cell {
        let layout = *self.machine.array.layout();
        let hot = self.hot.lba + Sectors::new(self.rng.below(self.hot.sectors.get()));
        let any = Lba::new(self.rng.below(layout.size().get()));
        let row = layout.find(if self.rng.below(4) > 0 { hot } else { any }).0;
        layout.cell(row, self.rng.below(layout.symbols() as u64) as usize)
    }

    fn rot(&mut self, drive: DriveIdx, lba: Lba) {
        if self.machine.rot(drive, lba, &mut self.rng) {
            self.faulty = self.faulty.with(drive);
            self.rotten.push((drive, lba));
        }
    }

    /// A clean stop, or a power cut.
    fn restart(&mut self) -> Result<(), String> {
        let is_cut = self.aim.has_cuts && self.rng.below(4) > 0;
        if !is_cut {
            return self.stop();
        }
        self.tally.cuts += 1;
        let mut image = self.machine.image();
        image.crash(&mut self.rng);
        image.promise.lose_power();
        self.start(image)?;
        self.is_blind = false;
        if self.rng.below(2) == 0 { self.verify() } else { Ok(()) }
    }

    fn stop(&mut self) -> Result<(), String> {
        self.tally.stops += 1;
        while self.machine.outstanding() > 0 {
            self.step()?;
        }
        self.machine.stop();
        for _ in 0..20_000 {
            if self.machine.ending().is_some() {
                break;
            }
            self.machine.step(&mut self.rng);
            let seen = self.machine.is_good();
            self.judge(seen)?;
        }
        self.look()?;
        if self.machine.ending() != Some(Ending::Clean) {
            return Err(format!("a stop has ended as {:?}", self.machine.ending()));
        }
        let mut image = self.machine.image();
        image.crash(&mut self.rng);
        self.start(image)
    }

    fn start(&mut self, image: Image) -> Result<(), String> {
        let faulty = self.machine.faulty.take();
        self.machine = start(image, self.missing, &mut self.rng)?;
        self.machine.faulty = faulty;
        Ok(())
    }

    /// Reads everything.
    fn verify(&mut self) -> Result<(), String> {
        let seen = self.machine.verify(&mut self.rng);
        self.judge(seen)?;
        let given_up = self.machine.given_up;
        let seen = match given_up {
            0 => Ok(()),
            _ => Err(format!("{given_up} sectors cannot be read, and one drive is faulty")),
        };
        self.judge(seen)?;
        self.look()
    }

    /// Wrong data and failed requests are counted where the array need not survive the fault.
    fn judge(&mut self, seen: Result<(), String>) -> Result<(), String> {
        let Err(how) = seen else { return Ok(()) };
        let is_wrong = is_wrong_data(&how);
        let is_unread = how.contains("cannot be read") || how.contains(" failed: ");
        if self.aim.fault != Fault::Dropped || !(is_wrong || is_unread) {
            return Err(how);
        }
        self.is_wrong |= is_wrong;
        self.is_unread |= is_unread;
        Ok(())
    }

    /// What the array has reported since the last look: nothing of a healthy drive.
    fn look(&mut self) -> Result<(), String> {
        for event in std::mem::take(&mut self.machine.findings) {
            match event {
                ArrayEvent::Corrupt { .. } => self.tally.corrupt += 1,
                ArrayEvent::Repaired { .. } => self.tally.repaired += 1,
                _ => self.tally.unlocated += 1,
            }
            let is_false = match event {
                ArrayEvent::Corrupt { drive, .. } | ArrayEvent::Repaired { drive, .. } => {
                    !self.faulty.contains(drive)
                }
                _ => self.faulty.is_empty(),
            };
            if is_false && self.aim.fault != Fault::Dropped {
                return Err(format!(
                    "a false finding, drives {} are faulty: {event:?}",
                    self.faulty
                ));
            }
        }
        Ok(())
    }

    /// Drives are lost as the layout survives, those that have misbehaved last, and everything is read: redundancy is right.
    fn lose_drives(&mut self) -> Result<(), String> {
        let spec = *self.machine.array.layout().spec();
        let all = DriveSet::first(spec.drives() as u8);
        for drive in all.without(self.faulty).iter().chain(self.faulty.iter()) {
            let gone = self.machine.gone();
            if !gone.contains(drive) && spec.survives(gone.with(drive)) {
                self.machine.lose(drive);
            }
        }
        self.verify().map_err(|how| format!("with disks less, {how}"))
    }
}

fn start(image: Image, hidden: DriveSet, rng: &mut Rng) -> Result<Machine, String> {
    Machine::start(Start {
        image,
        hidden,
        rules: Rules::ALL,
        patience: None,
        slow_metadata: rng.below(4) == 0,
        slow_aside: false,
        fills: false,
        verify: None,
        lies: 0,
        has_background: true,
        planted: Planted::None,
        seed: rng.bits(),
    })
}

/// Whether a broken promise is one of what a read has returned.
fn is_wrong_data(how: &str) -> bool {
    how.contains("a read finds") || how.contains(" holds ")
}
