//! What an array has promised of every sector, and whether it holds.

use levelhead_array::metadata::Logs;
use levelhead_block::{Durability, SectorSet};
use levelhead_units::{Extent, Lba, SECTOR_SIZE};

/// The promise for every sector of an array.
#[derive(Clone, Debug, Hash)]
pub struct Promise {
    sectors: Vec<History>,
    next: u64,
    logs: Logs,
    /// Whether a write that was answered outlasts a crash without a flush.
    is_durable: bool,
    /// What was answered and no flush has made durable, where that is needed.
    answered: Vec<Sent>,
}

/// The number of no write: what a sector on the list of damaged sectors held.
const NOWHERE: u64 = u64::MAX;

/// The writes of a sector that it may hold, in order, each by its number.
#[derive(Clone, Debug, Hash)]
struct History {
    versions: Vec<u64>,
    /// The first of them that it may hold from now on: the last one that was answered or read.
    floor: usize,
    /// The array has said that it could not bring the last of them back.
    is_given_up: bool,
    /// It was being replaced when the power failed, and is nowhere.
    is_damaged: bool,
}

impl Promise {
    /// Of an array full of zeroes, with a journal of these writes, or without one.
    pub fn new(sectors: u64, logs: Logs, has_journal: bool) -> Self {
        let zero = History { versions: vec![0], floor: 0, is_given_up: false, is_damaged: false };
        let is_durable = has_journal && logs == Logs::All;
        Self {
            sectors: vec![zero; sectors as usize],
            next: 1,
            logs,
            is_durable,
            answered: Vec::new(),
        }
    }

    /// What these sectors held is nowhere from the beginning: nothing may be read there before they are written.
    pub(crate) fn lack(&mut self, sectors: &[Lba]) {
        for lba in sectors {
            let history = &mut self.sectors[lba.get() as usize];
            (history.versions, history.is_damaged) = (vec![NOWHERE], true);
        }
    }

    /// A write of this is sent: its bytes, every sector full of a number of its own.
    pub fn send(&mut self, extent: Extent) -> Sent {
        let number = self.next;
        self.next += 1;
        for lba in extent.iter() {
            self.sectors[lba.get() as usize].versions.push(number);
        }
        Sent { extent, number }
    }

    /// It was answered well.
    pub fn answer(&mut self, sent: Sent, durability: Durability) {
        for lba in sent.extent.iter() {
            self.sectors[lba.get() as usize].is_damaged = false;
        }
        match self.is_durable || durability == Durability::Durable {
            true => self.keep(sent),
            false => self.answered.push(sent),
        }
    }

    /// What was answered and is not durable for sure.
    pub fn answered(&self) -> Vec<Sent> {
        self.answered.clone()
    }

    /// The power has failed: no later flush makes durable what was answered before.
    pub(crate) fn lose_power(&mut self) {
        self.answered.clear();
    }

    /// A flush was answered well that was sent when this had been answered.
    pub fn flush(&mut self, safe: &[Sent]) {
        self.answered.retain(|sent| !safe.contains(sent));
        safe.iter().for_each(|&sent| self.keep(sent));
    }

    /// The array says that what a sector held is nowhere.
    pub fn damage(&mut self, sector: Lba) -> Result<(), String> {
        let history = &mut self.sectors[sector.get() as usize];
        let is_being_replaced = history.versions.len() > history.floor + 1;
        let may_be = history.is_damaged || (self.logs == Logs::Parts && is_being_replaced);
        // It was named as what could not be brought back before.
        let may_be = may_be || history.is_given_up;
        history.is_damaged = true;
        may_be.then_some(()).ok_or_else(|| {
            format!("sector {} is damaged and was not being replaced: {history:?}", sector.get())
        })
    }

    /// It will outlast a crash.
    fn keep(&mut self, sent: Sent) {
        for lba in sent.extent.iter() {
            let history = &mut self.sectors[lba.get() as usize];
            let at = history.versions.iter().position(|&version| version == sent.number);
            // A crash has let go of what came before the version that was read after it.
            history.floor = history.floor.max(at.unwrap_or(0));
            history.is_given_up &= at.is_none();
        }
    }

    /// The array says that it could not bring back what these sectors held.
    pub fn give_up(&mut self, extent: Extent) {
        for lba in extent.iter() {
            self.sectors[lba.get() as usize].is_given_up = true;
        }
    }

    /// Nothing is promised of these sectors until they are written again.
    pub(crate) fn excuse(&mut self, sectors: impl IntoIterator<Item = Lba>) {
        for lba in sectors {
            self.sectors[lba.get() as usize].is_given_up = true;
        }
    }

    /// Whether the array may fail to give a sector.
    pub fn is_given_up(&self, sector: u64) -> bool {
        let history = &self.sectors[sector as usize];
        history.is_given_up || history.is_damaged
    }

    /// What a read that is sent now must bring at least, of each of its sectors.
    pub fn floors(&self, extent: Extent) -> Vec<usize> {
        extent.iter().map(|lba| self.sectors[lba.get() as usize].floor).collect()
    }

    /// Bytes were read beside writes: of each sector the whole of a version, from the floor on that it had when the
    /// read was sent. What was read counts from now on like a write that was answered.
    pub fn see(
        &mut self,
        extent: Extent,
        floors: &[usize],
        bytes: &[u8],
        lacking: &SectorSet,
    ) -> Result<(), String> {
        let sectors = extent.iter().zip(floors).zip(bytes.chunks_exact(SECTOR_SIZE));
        for (offset, ((lba, &floor), sector)) in (0..).zip(sectors) {
            if lacking.contains(offset) {
                continue;
            }
            let history = &mut self.sectors[lba.get() as usize];
            if history.is_given_up || history.is_damaged {
                continue;
            }
            let number = number_of(sector);
            let known = |number| history.versions.iter().rposition(|&version| version == number);
            let at = number.and_then(known).filter(|&at| at >= floor).ok_or_else(|| {
                let versions = &history.versions;
                let number = number.map_or("a mixture".into(), |number| number.to_string());
                format!(
                    "a read finds {number} in sector {}, of {versions:?} from {floor}",
                    lba.get()
                )
            })?;
            if self.is_durable {
                history.floor = history.floor.max(at);
            }
        }
        Ok(())
    }

    /// Bytes were read of a part of the array that nothing is writing: each sector must hold one of the versions that
    /// it may. From now on it holds this one.
    pub fn check(
        &mut self,
        extent: Extent,
        bytes: &[u8],
        lacking: &SectorSet,
    ) -> Result<(), String> {
        self.answered.clear();
        let sectors = (0..).zip(extent.iter()).zip(bytes.chunks_exact(SECTOR_SIZE));
        for ((offset, lba), sector) in sectors {
            let history = &mut self.sectors[lba.get() as usize];
            let History { versions, floor, is_given_up, is_damaged } = history;
            if *is_given_up || (*is_damaged && lacking.contains(offset)) {
                continue;
            }
            let number = number_of(sector).ok_or_else(|| {
                format!("sector {} holds a mixture, of {versions:?} from {floor}", lba.get())
            })?;
            let at = versions.iter().rposition(|&version| version == number);
            if at.is_none_or(|at| at < *floor) {
                return Err(format!(
                    "sector {} holds {number}, of {versions:?} from {floor}",
                    lba.get()
                ));
            }
            *history =
                History { versions: vec![number], floor: 0, is_given_up: false, is_damaged: false };
        }
        Ok(())
    }
}

/// A write that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Sent {
    extent: Extent,
    number: u64,
}

impl Sent {
    /// Its bytes.
    pub fn bytes(self) -> Vec<u8> {
        let count = self.extent.sectors.as_usize() * SECTOR_SIZE / 8;
        self.number.to_le_bytes().repeat(count)
    }
}

/// The number that a sector is full of.
fn number_of(sector: &[u8]) -> Option<u64> {
    let number = u64::from_le_bytes(sector[..8].try_into().expect("eight bytes"));
    sector.chunks_exact(8).all(|word| word == number.to_le_bytes()).then_some(number)
}
