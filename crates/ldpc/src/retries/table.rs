//! The table: of each class of sectors, each level of zero forcing and each step, the probability that the step fails.

use super::error::{CLASSES_MAX, REVOLUTIONS_MAX, STEPS_MAX, TableError};
use crate::code::ZeroForcing;

/// How often each try of a drive fails.
///
/// ```text
///   class: a share of the sectors, by the offset they were written with
///     level 0, 256, 512, 1024:  step 0   step 1   step 2 ..       P(fails), given the class
/// ```
///
/// # Invariants
///
/// - TB1. Shares add up to one. There is a step, and the first one costs no revolution.
/// - TB2. A sector with more zeroes fails no step more often than one with fewer.
/// - TB3. A step without revolutions fails no more often than the one before it: it has the same samples.
#[derive(Clone, Debug, PartialEq)]
pub struct RetryTable {
    name: String,
    steps: Vec<TableStep>,
    classes: Vec<Class>,
    /// What the shares add up to: 1 but for rounding.
    total: f64,
    /// For each class, the shares of those before it and its own, of that sum.
    shares: Vec<f64>,
    /// By level: the largest probability, of all classes, that the first pass fails.
    first_max: [f64; 4],
}

/// What a step costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TableStep {
    pub(super) revolutions: u32,
}

/// A class of sectors.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Class {
    pub(super) share: f64,
    /// By step and level.
    pub(super) fails: Vec<[f64; 4]>,
}

/// A step as a row of a table that people read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ShownStep {
    /// The zeroes at the sector's end.
    pub forced: ZeroForcing,
    /// Its number; 0 is the first pass.
    pub step: usize,
    /// Revolutions up to its end.
    pub revolutions: u32,
    /// The probability that it and all before it fail.
    pub fails: f64,
}

impl RetryTable {
    /// The table of these parts, unless one of its invariants does not hold.
    pub(super) fn from_parts(
        name: &str,
        steps: Vec<TableStep>,
        classes: Vec<Class>,
    ) -> Result<Self, TableError> {
        if !(1..=STEPS_MAX).contains(&steps.len()) {
            return Err(TableError::Steps(steps.len()));
        }
        if !(1..=CLASSES_MAX).contains(&classes.len()) {
            return Err(TableError::Classes(classes.len()));
        }
        if steps[0].revolutions != 0 {
            return Err(TableError::First(steps[0].revolutions));
        }
        let revolutions = steps.iter().map(|step| u64::from(step.revolutions)).sum();
        if revolutions > u64::from(REVOLUTIONS_MAX) {
            return Err(TableError::Revolutions(revolutions));
        }
        let sum: f64 = classes.iter().map(|class| class.share).sum();
        let is_share = |share: f64| (0.0..=1.0).contains(&share);
        if !classes.iter().all(|class| is_share(class.share)) || (sum - 1.0).abs() > 1e-6 {
            return Err(TableError::Shares(sum));
        }
        for (number, class) in classes.iter().enumerate() {
            assert_eq!(class.fails.len(), steps.len(), "a class has a row for each step");
            for (at, levels) in class.fails.iter().enumerate() {
                let falls = levels.windows(2).all(|pair| pair[0] >= pair[1]);
                let is_same = at > 0 && steps[at].revolutions == 0;
                let grows = is_same
                    && levels.iter().zip(&class.fails[at - 1]).any(|(now, then)| now > then);
                if !levels.iter().all(|share| is_share(*share)) || !falls || grows {
                    return Err(TableError::Row { class: number, step: at });
                }
            }
        }
        let mut before = 0.0;
        let shares = classes.iter().map(|class| {
            before += class.share / sum;
            before
        });
        let shares = shares.collect();
        let first_max = std::array::from_fn(|level| {
            classes.iter().map(|class| class.fails[0][level]).fold(0.0, f64::max)
        });
        Ok(Self { name: name.to_owned(), steps, classes, total: sum, shares, first_max })
    }

    /// What it is called: a shipped table's name, or where it was read from.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How many steps there are, the first pass included.
    pub fn step_count(&self) -> usize {
        self.steps.len()
    }

    /// How many classes of sectors there are.
    pub fn class_count(&self) -> usize {
        self.classes.len()
    }

    /// Revolutions that a step costs.
    ///
    /// Panics if there is no such step, as do the methods below.
    pub fn revolutions(&self, step: usize) -> u32 {
        self.steps[step].revolutions
    }

    /// The number of the pass whose samples a step decodes: a step without revolutions has those of the step before.
    pub fn pass(&self, step: usize) -> usize {
        self.steps[1..=step].iter().filter(|step| step.revolutions > 0).count()
    }

    /// The class of a sector for which this number from 0 up to but not including 1 was drawn.
    pub fn class(&self, uniform: f64) -> usize {
        let class = self.shares.partition_point(|share| *share <= uniform);
        class.min(self.classes.len() - 1) // Shares add up to one but for rounding.
    }

    /// The share of sectors in a class.
    pub fn share(&self, class: usize) -> f64 {
        self.classes[class].share / self.total
    }

    /// The probability that a step fails on a sector of this class.
    pub fn fails(&self, class: usize, level: ZeroForcing, step: usize) -> f64 {
        self.classes[class].fails[step][level_idx(level)]
    }

    /// The largest probability, of all classes, that the first pass fails.
    pub fn first_fails_max(&self, level: ZeroForcing) -> f64 {
        self.first_max[level_idx(level)]
    }

    /// The share of sectors on which all steps up to this one fail.
    pub fn all_fail(&self, level: ZeroForcing, step: usize) -> f64 {
        let of = |class: &Class| class.share * self.class_fails(class, level, step);
        self.classes.iter().map(of).sum::<f64>() / self.total
    }

    /// The last step that costs no revolution, of those with which a drive begins: it ends the first pass.
    pub fn first_pass_end(&self) -> usize {
        self.steps[1..].iter().take_while(|step| step.revolutions == 0).count()
    }

    /// The probability that all steps up to this one fail on a sector of a class.
    fn class_fails(&self, class: &Class, level: ZeroForcing, last: usize) -> f64 {
        let level = level_idx(level);
        let mut product = 1.0;
        for step in 0..=last {
            // Of a pass's steps the last one decides: where it fails, the others have failed.
            let is_last_of_pass = step == last || self.steps[step + 1].revolutions > 0;
            if is_last_of_pass {
                product *= class.fails[step][level];
            }
        }
        product
    }

    /// The mean number of revolutions of a read of one sector, of those whose first pass fails: up to the step that
    /// mends it, or to the last one. Nothing if no first pass fails.
    pub fn revolutions_mean(&self, level: ZeroForcing) -> Option<f64> {
        let first = self.all_fail(level, self.first_pass_end());
        let later = 1..self.steps.len();
        let sum: f64 = later
            .map(|step| f64::from(self.steps[step].revolutions) * self.all_fail(level, step - 1))
            .sum();
        (first > 0.0).then(|| sum / first)
    }

    /// All rows, level by level.
    pub fn rows(&self) -> Vec<ShownStep> {
        let row = |forced, step| ShownStep {
            forced,
            step,
            revolutions: self.steps[..=step].iter().map(|step| step.revolutions).sum(),
            fails: self.all_fail(forced, step),
        };
        ZeroForcing::ALL
            .into_iter()
            .flat_map(|forced| (0..self.steps.len()).map(move |step| row(forced, step)))
            .collect()
    }

    pub(super) fn parts(&self) -> (&[TableStep], &[Class]) {
        (&self.steps, &self.classes)
    }
}

/// Where a level stands in a row.
fn level_idx(level: ZeroForcing) -> usize {
    match level {
        ZeroForcing::None => 0,
        ZeroForcing::B256 => 1,
        ZeroForcing::B512 => 2,
        ZeroForcing::B1024 => 3,
    }
}
