//! `levelhead-lab plan ..`: closed forms for someone who chooses a configuration, and one run of the drive model.
//!
//! Every answer is a table, JSON rows and a picture of the same numbers, and says what it assumes.

mod answer;
mod checksums;
mod code;
mod decode;
mod idle;
mod mode;
mod overhead;
mod redundancy;
mod tail;

pub use answer::Answer;
pub use checksums::{ChecksumsAsk, plan_checksums};
pub use code::{CodeAsk, plan_code};
pub use idle::{IdleAsk, IdleLoad, plan_idle};
pub use mode::{ModeAsk, plan_mode};
pub use overhead::{Files, OverheadAsk, plan_overhead};
pub use redundancy::{RedundancyAsk, plan_redundancy};
pub use tail::{CodeChoice, Decoding, RandomAsk, TailAsk, plan_tail};

/// Sectors fail one by one.
const INDEPENDENT: &str = "sectors fail independently, each with the given rate; real failures come in groups, so that \
     the figures are the best case";
/// The code is as good as a code can be.
const MDS: &str = "the code is maximum distance separable (Reed-Solomon): as many failures as it has \
                   redundant symbols are repaired, and not one more";

/// A probability as people read it.
fn probability(value: f64) -> String {
    if value > 0.0 && value < 1e-3 { format!("{value:.3e}") } else { format!("{value:.6}") }
}

/// A share in percent.
fn percent(value: f64) -> String {
    format!("{:.3} %", value * 100.0)
}

/// A share in percent as it was typed, without the noise of binary fractions: 0.55 is 55.
fn typed_percent(share: f64) -> String {
    let percent = share * 100.0;
    let rounded = (percent * 1e9).round() / 1e9;
    if rounded > 0.0 || percent <= 0.0 { format!("{rounded}") } else { format!("{percent:e}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_come_back_as_they_were_typed() {
        for percent in ["0", "7", "28", "55", "99.9", "99.999999", "1e-12"] {
            let share = percent.parse::<f64>().unwrap() / 100.0;
            assert_eq!(typed_percent(share), percent);
        }
    }
}
