//! Which code a filesystem gets, and how many redundant sectors its shorter groups have.

use levelhead_fs::format::ladder::Ladder;
use levelhead_fs::format::superblock::FORCED_RUNGS_MAX;
use levelhead_planner::Code;
use levelhead_planner::code::{Goal, failure_rate_max, least_redundant, lengths};
use levelhead_planner::system::forced_failure_rate;

use std::str::FromStr;

use levelhead_app::AppError;

/// Probability that a group cannot be computed although each of its sectors fails with the rate that the code is for:
/// `p_s` of `[LEC17]`.
const TARGET: f64 = 1e-6;

/// What is said about the code.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CodeWish {
    /// It is this one.
    Code(Code),
    /// It is the one with the least redundancy for sectors that fail with this probability.
    Least {
        /// Probability that a sector's first pass fails.
        failure_rate: f64,
        /// Sectors of a group, data and redundant.
        length: u64,
    },
}

/// How many redundant sectors a group gets that is shorter than the code's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Redundancy {
    /// As many as it takes for the same chance to be lost.
    #[default]
    ByLength,
    /// As many as the longest group has, as in `[LEC17]`.
    Fixed,
}

impl FromStr for Redundancy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "by-length" => Ok(Self::ByLength),
            "fixed" => Ok(Self::Fixed),
            _ => Err(format!("expected by-length or fixed, got '{text}'")),
        }
    }
}

/// The code and its ladder.
#[derive(Clone, Debug, PartialEq)]
pub struct Chosen {
    /// Of the longest groups.
    pub code: Code,
    /// What groups of each length get.
    pub ladder: Ladder,
    /// The failure rate that it is for.
    /// Probability that a sector fails.
    pub failure_rate: f64,
}

/// Chooses.
pub fn choose(wish: CodeWish, redundancy: Redundancy) -> Result<Chosen, AppError> {
    let (code, failure_rate) = match wish {
        CodeWish::Code(code) => (code, failure_rate_max(code, TARGET)),
        CodeWish::Least { failure_rate, length } => {
            let goal = Goal { failure_rate, target: TARGET };
            let code = least_redundant(length, goal).ok_or_else(|| {
                AppError::usage(format!(
                    "no code of length {length} reaches {TARGET:e} at failure rate {failure_rate:e}"
                ))
            })?;
            (Code { redundant: code.redundant.max(1), ..code }, failure_rate)
        }
    };
    let ladder = match redundancy {
        Redundancy::Fixed => fixed(code),
        Redundancy::ByLength => by_length(code, failure_rate),
    };
    let (redundant_max, length_max) = (Ladder::RUNGS_MAX, Ladder::LENGTH_MAX);
    let ladder = ladder.ok_or_else(|| {
        AppError::usage(format!(
            "{code} is not a code for files: REDUNDANT is from 1 to {redundant_max}, and both together are at \
             most {length_max}"
        ))
    })?;
    Ok(Chosen { code, ladder, failure_rate })
}

/// What groups of kind B get on a drive whose sectors fail with this probability and that makes use of the zeroes at their end.
pub fn forced(failure_rate: f64, redundancy: Redundancy) -> Result<Ladder, AppError> {
    let left = forced_failure_rate(failure_rate);
    let wish = CodeWish::Least { failure_rate: left, length: FORCED_LENGTH };
    let Chosen { code, ladder, .. } = choose(wish, redundancy)?;
    let most = FORCED_RUNGS_MAX;
    match code.redundant as usize <= most {
        true => Ok(ladder),
        false => Err(AppError::usage(format!(
            "at failure rate {failure_rate:e} files of kind B need {} redundant sectors in each group, they have at most {most}",
            code.redundant
        ))),
    }
}

/// Sectors of the longest group of kind B, `[SDHDD]` Table 2: less than a track, for its files are read at random.
const FORCED_LENGTH: u64 = 255;

fn fixed(code: Code) -> Option<Ladder> {
    Ladder::fixed(code.data.try_into().ok()?, code.redundant.try_into().ok()?)
}

/// Each rung is the most data sectors that are lost with a probability of no more than [`TARGET`].
fn by_length(code: Code, failure_rate: f64) -> Option<Ladder> {
    let data_max = u16::try_from(code.data).ok()?;
    let redundant_max = usize::try_from(code.redundant).ok()?;
    if !(1..=Ladder::RUNGS_MAX).contains(&redundant_max) {
        return None;
    }
    // No rung is longer than the code.
    let rungs = lengths(code, Goal { failure_rate, target: TARGET });
    let rungs: Vec<u16> = rungs.into_iter().map(|data| data.min(data_max.into()) as u16).collect();
    Ladder::new(&rungs)
}

#[cfg(test)]
mod tests {
    use levelhead_planner::code::failure;

    use super::*;

    fn code(text: &str) -> CodeWish {
        CodeWish::Code(text.parse().unwrap())
    }

    /// The figures of `[LEC17]`, Table 1, for lengths of 255 and 1023.
    #[test]
    fn reproduces_the_codes_for_a_failure_rate_and_a_length() {
        for (failure_rate, length, expected) in [
            (1e-3, 255, "5,250"),
            (5e-3, 255, "9,246"),
            (1e-3, 1023, "9,1014"),
            (5e-3, 1023, "19,1004"),
        ] {
            let wish = CodeWish::Least { failure_rate, length };
            let Chosen { code, ladder, .. } = choose(wish, Redundancy::Fixed).unwrap();
            assert_eq!(code.to_string(), expected);
            assert_eq!(u64::from(ladder.data_max()), code.data);
            assert!((0..code.redundant as usize - 1).all(|rung| ladder.lengths()[rung] == 0));
        }
    }

    #[test]
    fn shorter_groups_have_fewer_redundant_sectors_for_the_same_chance_to_be_lost() {
        let wish = CodeWish::Least { failure_rate: 1e-3, length: 255 };
        let Chosen { ladder, .. } = choose(wish, Redundancy::ByLength).unwrap();
        let redundant = [1, 15, 25, 50, 100, 250].map(|data| ladder.redundant(data));
        assert_eq!(redundant, [2, 2, 3, 3, 4, 5]);
    }

    #[test]
    fn code_alone_is_taken_for_the_failure_rate_that_it_bears() {
        let chosen = choose(code("9,246"), Redundancy::ByLength).unwrap();
        assert_eq!(chosen.ladder.lengths().len(), 9);
        assert_eq!((chosen.ladder.data_max(), chosen.ladder.redundant(246)), (246, 9));
        assert!(chosen.ladder.lengths().is_sorted());
        let rate = failure_rate_max(chosen.code, TARGET);
        for (rung, &data) in
            chosen.ladder.lengths().iter().enumerate().filter(|(_, data)| **data > 0)
        {
            let code = Code { data: data.into(), redundant: rung as u64 + 1 };
            assert!(failure(code, rate) <= TARGET * 1.000_001, "{code}");
        }
    }

    /// `[SDHDD]`, Table 2.
    #[test]
    fn kind_b_has_the_papers_codes() {
        for (failure_rate, redundant, data) in [(5e-3, 1, 254), (8e-3, 2, 253), (1e-2, 2, 253)] {
            let ladder = forced(failure_rate, Redundancy::ByLength).unwrap();
            assert_eq!((ladder.redundant_max(), ladder.data_max()), (redundant, data));
        }
        let refused = forced(0.7, Redundancy::ByLength).unwrap_err().to_string();
        assert!(refused.contains("kind B") || refused.contains("no code"), "{refused}");
    }

    #[test]
    fn codes_that_no_group_can_have_are_refused() {
        for text in ["0,10", "65,100", "9,1015", "9,60000"] {
            for redundancy in [Redundancy::ByLength, Redundancy::Fixed] {
                let refused = choose(code(text), redundancy).unwrap_err().to_string();
                assert!(
                    refused.starts_with(&format!("{text} is not a code for files")),
                    "{refused}"
                );
            }
        }
        let wish = CodeWish::Least { failure_rate: 1.0, length: 255 };
        let refused = choose(wish, Redundancy::ByLength).unwrap_err().to_string();
        assert_eq!(refused, "no code of length 255 reaches 1e-6 at failure rate 1e0");
        // What 64 redundant sectors do not do.
        let wish = CodeWish::Least { failure_rate: 0.2, length: 1023 };
        assert!(choose(wish, Redundancy::ByLength).is_err());
        // One that never fails has a redundant sector all the same.
        let wish = CodeWish::Least { failure_rate: 0.0, length: 255 };
        assert_eq!(choose(wish, Redundancy::ByLength).unwrap().code.redundant, 1);
    }
}
