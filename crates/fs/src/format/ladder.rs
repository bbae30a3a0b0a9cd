//! How many redundant sectors a coding group of a length has.
//!
//! A short group needs fewer of them for the same chance to be lost: the code's first rows are a code of their own that repairs as
//! many erasures as it has rows. The ladder's rung `i` is the most data sectors that `i + 1` redundant ones go with.

use levelhead_erasure::Code;

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ladder(Vec<u16>);

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
        is_sane.then(|| Self(rungs.to_vec()))
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

    /// Its rungs.
    pub fn rungs(&self) -> &[u16] {
        &self.0
    }

    /// The most data sectors of a group.
    pub fn data_max(&self) -> u16 {
        *self.0.last().expect("it has a rung")
    }

    /// The most redundant sectors of a group.
    pub fn redundant_max(&self) -> u8 {
        self.0.len() as u8
    }

    /// How many redundant sectors go with this many data sectors, which are no more than [`Ladder::data_max`].
    pub fn redundant(&self, data: u32) -> u8 {
        let shorter = self.0.iter().filter(|&&rung| u32::from(rung) < data).count();
        assert!(shorter < self.0.len(), "{data} data sectors of {}", self.data_max());
        shorter as u8 + 1
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
    fn ladder_that_no_code_has_is_none() {
        assert!(Ladder::new(&[]).is_none() && Ladder::new(&[3, 2]).is_none());
        assert!(Ladder::new(&[0]).is_none() && Ladder::fixed(1_020, 9).is_none());
        assert!(Ladder::fixed(10, 0).is_none());
    }
}
