//! What an array has promised of every sector, and whether it holds.

use levelhead_units::{Extent, SECTOR_SIZE};

/// The promise for every sector of an array.
#[derive(Clone, Debug)]
pub struct Promise {
    sectors: Vec<History>,
    next: u64,
}

/// The writes of a sector that it may hold, in order, each by its number.
#[derive(Clone, Debug)]
struct History {
    versions: Vec<u64>,
    /// The first of them that it may hold after a crash: the last one that was answered.
    floor: usize,
}

impl Promise {
    /// Of an array full of zeroes.
    pub fn new(sectors: u64) -> Self {
        let zero = History { versions: vec![0], floor: 0 };
        Self { sectors: vec![zero; sectors as usize], next: 1 }
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
    pub fn answer(&mut self, sent: Sent) {
        for lba in sent.extent.iter() {
            let history = &mut self.sectors[lba.get() as usize];
            let at = history.versions.iter().position(|&version| version == sent.number);
            // A crash has let go of what came before the version that was read after it.
            history.floor = history.floor.max(at.unwrap_or(0));
        }
    }

    /// Bytes were read of a part of the array that nothing is writing: each sector must hold one of the versions that
    /// it may. From now on it holds this one.
    pub fn check(&mut self, extent: Extent, bytes: &[u8]) -> Result<(), String> {
        for (lba, sector) in extent.iter().zip(bytes.chunks_exact(SECTOR_SIZE)) {
            let history = &mut self.sectors[lba.get() as usize];
            let History { versions, floor } = history;
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
            *history = History { versions: vec![number], floor: 0 };
        }
        Ok(())
    }
}

/// A write that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
