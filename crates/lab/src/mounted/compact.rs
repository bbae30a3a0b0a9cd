//! What a modelled disk of any size stores, in little memory: a sector that repeats one word of 8 bytes is kept as that word.
//!
//! A workload whose pages are such sectors stays so on the disk: a code works on bytes at the same place of each sector, so that what
//! is redundant repeats a word as well. With forced zeroes a page's end is in a sector that it shares with others, in pieces of 256
//! or 512 bytes: there it is a word for each 256 bytes. All else, as metadata, is kept as it is.

use std::collections::BTreeMap;
use std::convert::Infallible;

use levelhead_block::{Durability, Piece};
use levelhead_bytes::Storage;
use levelhead_units::{Lba, SECTOR_SIZE, Sectors};

/// Sectors that are looked up together.
const RUN: u64 = 256;

/// See the module. What was never written is zero.
#[derive(Clone, Debug, Default)]
pub struct Compact {
    runs: BTreeMap<u64, Vec<Sector>>,
}

#[derive(Clone, Debug)]
enum Sector {
    Word(Word),
    /// A word, and a number of pieces of zeroes behind it.
    Tailed {
        word: Word,
        zeroes: u8,
    },
    /// A word for each piece.
    Pieces(Box<[Word; PIECES]>),
    Bytes(Box<[u8; SECTOR_SIZE]>),
}

type Word = [u8; 8];

/// The shortest run of zeroes at the end of a sector.
const PIECE: usize = 256;
const PIECES: usize = SECTOR_SIZE / PIECE;

impl Sector {
    const ZERO: Self = Self::Word([0; 8]);

    fn of(bytes: &[u8]) -> Self {
        if let Some(word) = repeated(bytes) {
            return Self::Word(word);
        }
        let mut words = [[0; 8]; PIECES];
        for (word, piece) in words.iter_mut().zip(bytes.chunks_exact(PIECE)) {
            let Some(repeated) = repeated(piece) else {
                return Self::Bytes(Box::new(bytes.try_into().expect("it is one sector")));
            };
            *word = repeated;
        }
        let zeroes = words.iter().rev().take_while(|word| **word == [0; 8]).count();
        match words[..PIECES - zeroes].iter().all(|word| *word == words[0]) {
            true => Self::Tailed { word: words[0], zeroes: zeroes as u8 },
            false => Self::Pieces(Box::new(words)),
        }
    }

    fn give(&self, into: &mut [u8]) {
        match self {
            Self::Word(word) => repeat(word, into),
            Self::Tailed { word, zeroes } => {
                let (front, tail) = into.split_at_mut(SECTOR_SIZE - usize::from(*zeroes) * PIECE);
                repeat(word, front);
                tail.fill(0);
            }
            Self::Pieces(words) => {
                let pieces = into.chunks_exact_mut(PIECE);
                words.iter().zip(pieces).for_each(|(word, piece)| repeat(word, piece));
            }
            Self::Bytes(bytes) => into.copy_from_slice(&bytes[..]),
        }
    }
}

/// The word that some bytes repeat, if they do.
fn repeated(bytes: &[u8]) -> Option<Word> {
    // Every word is as the one before it.
    let is_repeated = bytes[8..] == bytes[..bytes.len() - 8];
    is_repeated.then(|| bytes[..8].try_into().expect("there are 8 bytes"))
}

fn repeat(word: &Word, into: &mut [u8]) {
    into.chunks_exact_mut(8).for_each(|at| at.copy_from_slice(word));
}

impl Compact {
    /// Stores one sector.
    pub fn put(&mut self, lba: Lba, bytes: &[u8]) {
        assert_eq!(bytes.len(), SECTOR_SIZE, "one sector at a time");
        let (run, at) = (lba.get() / RUN, (lba.get() % RUN) as usize);
        let run = self.runs.entry(run).or_insert_with(|| vec![Sector::ZERO; RUN as usize]);
        run[at] = Sector::of(bytes);
    }

    /// What a sector holds.
    pub fn give(&self, lba: Lba, into: &mut [u8]) {
        let run = self.runs.get(&(lba.get() / RUN));
        run.map_or(&Sector::ZERO, |run| &run[(lba.get() % RUN) as usize]).give(into);
    }
}

impl Storage for Compact {
    type Error = Infallible;

    fn read(&mut self, lba: Lba, bytes: &mut [u8]) -> Result<(), Infallible> {
        for (at, into) in (0..).zip(bytes.chunks_exact_mut(SECTOR_SIZE)) {
            self.give(lba + Sectors::new(at), into);
        }
        Ok(())
    }

    fn write(&mut self, lba: Lba, pieces: &[Piece], _: Durability) -> Result<(), Infallible> {
        for (at, bytes) in (0..).zip(Piece::each_sector(pieces)) {
            self.put(lba + Sectors::new(at), bytes);
        }
        Ok(())
    }

    fn write_sector(&mut self, lba: Lba, bytes: &[u8]) -> Result<(), Infallible> {
        self.put(lba, bytes);
        Ok(())
    }

    fn sync(&mut self) -> Result<(), Infallible> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sectors_are_given_as_they_were_stored() {
        let mut disk = Compact::default();
        let mut odd = [7; SECTOR_SIZE];
        odd[SECTOR_SIZE - 1] = 8;
        let mut word = [0; SECTOR_SIZE];
        word.iter_mut().enumerate().for_each(|(at, byte)| *byte = (at % 8) as u8);
        for (lba, bytes) in [(3, odd), (1_000_000_000, word)] {
            disk.put(Lba::new(lba), &bytes);
        }
        let given = |lba| {
            let mut into = [1; SECTOR_SIZE];
            disk.give(Lba::new(lba), &mut into);
            into
        };
        assert_eq!((given(3), given(1_000_000_000), given(4)), (odd, word, [0; SECTOR_SIZE]));
        let is_word = |run: u64| matches!(disk.runs[&run][0], Sector::Word(_));
        assert!(is_word(1_000_000_000 / RUN) && is_word(0));
        assert!(matches!(disk.runs[&0][3], Sector::Bytes(_)));
    }

    #[test]
    fn sectors_with_zeroes_at_their_ends_take_a_word_or_one_for_each_piece() {
        let mut disk = Compact::default();
        let mut primary = [9; SECTOR_SIZE];
        primary[SECTOR_SIZE - 512..].fill(0);
        let mut complementary = [0; SECTOR_SIZE];
        for (at, piece) in (1..).zip(complementary[..SECTOR_SIZE - 256].chunks_exact_mut(256)) {
            piece.fill(at);
        }
        for (lba, bytes) in [(0, primary), (1, complementary)] {
            disk.put(Lba::new(lba), &bytes);
            let mut into = [1; SECTOR_SIZE];
            disk.give(Lba::new(lba), &mut into);
            assert_eq!(into, bytes, "{lba}");
        }
        assert!(matches!(disk.runs[&0][0], Sector::Tailed { zeroes: 2, .. }));
        assert!(matches!(disk.runs[&0][1], Sector::Pieces(_)));
        assert!(size_of::<Sector>() <= 16, "{}", size_of::<Sector>());
    }
}
