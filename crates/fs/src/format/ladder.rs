//! How many redundant sectors a coding group of a length has.
//!
//! A short group needs fewer of them for the same chance to be lost: the code's first rows are a code of their own that repairs as
//! many erasures as it has rows. The ladder's rung `i` is the most data sectors that `i + 1` redundant ones go with.
//! Without redundancy there is one length and no rung: what a code costs is measured against that.

use levelhead_erasure::Code;

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ladder {
    lengths: Vec<u16>,
    /// How many redundant sectors go with the first of them: 1, or 0 if there are none at all.
    first: u8,
}

impl Ladder {
    /// The most rungs.
    pub const RUNGS_MAX: usize = 64;

    /// The longest codeword.
    pub const LENGTH_MAX: usize = 1_023;

    /// From its rungs; nothing unless there are some, none is shorter than the one before, and codes of that length exist.
    pub fn new(rungs: &[u16]) -> Option<Self> {
        let &longest = rungs.last()?;
        let is_sane = rungs.is_sorted()
            && longest > 0
            && rungs.len() <= Self::RUNGS_MAX
            && usize::from(longest) + rungs.len() <= Self::LENGTH_MAX
            && Code::new(longest.into(), rungs.len()).is_ok();
        is_sane.then(|| Self { lengths: rungs.to_vec(), first: 1 })
    }

    /// No redundancy, with at most this many data sectors in a group; nothing if these are none, or more than a codeword's.
    pub fn without_redundancy(data_max: u16) -> Option<Self> {
        let is_sane = data_max > 0 && usize::from(data_max) <= Self::LENGTH_MAX;
        is_sane.then(|| Self { lengths: vec![data_max], first: 0 })
    }

    /// The same number of redundant sectors for every length, as in `[LEC17]`.
    pub fn fixed(data: u16, redundant: u8) -> Option<Self> {
        let mut rungs = vec![0; usize::from(redundant.max(1)) - 1];
        rungs.push(data);
        Self::new_fixed(&rungs, redundant)
    }

    fn new_fixed(rungs: &[u16], redundant: u8) -> Option<Self> {
        (redundant > 0).then(|| Self::new(rungs))?
    }

    /// Its lengths: those of its rungs, or the only one of a ladder without redundancy.
    pub fn lengths(&self) -> &[u16] {
        &self.lengths
    }

    /// The most data sectors of a group.
    pub fn data_max(&self) -> u16 {
        *self.lengths.last().expect("it has a length")
    }

    /// The most redundant sectors of a group.
    pub fn redundant_max(&self) -> u8 {
        self.lengths.len() as u8 - 1 + self.first
    }

    /// How many redundant sectors go with this many data sectors, which are no more than [`Ladder::data_max`].
    pub fn redundant(&self, data: u32) -> u8 {
        let shorter = self.lengths.iter().filter(|&&rung| u32::from(rung) < data).count();
        assert!(shorter < self.lengths.len(), "{data} data sectors of {}", self.data_max());
        shorter as u8 + self.first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longer_groups_have_more_redundant_sectors() {
        let ladder = Ladder::new(&[0, 15, 50, 100, 246]).unwrap();
        let redundant = [1, 15, 16, 50, 51, 101, 246].map(|data| ladder.redundant(data));
        assert_eq!(redundant, [2, 2, 3, 3, 4, 5, 5]);
        let fixed = Ladder::fixed(246, 9).unwrap();
        assert_eq!((fixed.redundant(1), fixed.redundant(246), fixed.data_max()), (9, 9, 246));
    }

    #[test]
    fn ladder_without_redundancy_has_one_length() {
        let ladder = Ladder::without_redundancy(1_000).unwrap();
        assert_eq!((ladder.redundant(1), ladder.redundant(1_000)), (0, 0));
        assert_eq!((ladder.redundant_max(), ladder.data_max()), (0, 1_000));
    }

    #[test]
    fn ladder_that_no_code_has_is_none() {
        assert!(Ladder::new(&[]).is_none() && Ladder::new(&[3, 2]).is_none());
        assert!(Ladder::new(&[0]).is_none() && Ladder::fixed(1_020, 9).is_none());
        assert!(Ladder::fixed(10, 0).is_none());
        assert!(Ladder::without_redundancy(0).is_none());
        assert!(Ladder::without_redundancy(1_024).is_none());
    }
}
