//! How well an array is, for programs that watch it: in an exit code, and in a sentence for people.
//!
//! | health | exit code | meaning |
//! |---|---|---|
//! | healthy | 0 | every drive is used, and all redundancy is valid |
//! | degraded | 1 | data can be had, and there is less redundancy than the layout gives, or something is wrong |
//! | failed | 3 | more drives are missing than the layout survives: data cannot be had |
//!
//! 2 is a wrong call, as everywhere.

use levelhead_host::HostError;

use levelhead_app::AppError;

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Health {
    is_failed: bool,
    /// What is wrong, in a few words each.
    faults: Vec<String>,
}

impl Health {
    pub(super) const HEALTHY: Self = Self { is_failed: false, faults: Vec::new() };

    /// Something is wrong.
    pub(super) fn note(&mut self, fault: String) {
        self.faults.push(fault);
    }

    /// Data cannot be had, for this reason.
    pub(super) fn fail(&mut self, fault: String) {
        self.is_failed = true;
        self.note(fault);
    }

    /// The worse of the two, with what is wrong in both.
    #[must_use]
    pub(super) fn and(mut self, other: Self) -> Self {
        self.is_failed |= other.is_failed;
        self.faults.extend(other.faults);
        self
    }

    pub(super) fn is_healthy(&self) -> bool {
        self.faults.is_empty()
    }

    /// The same in a sentence.
    pub(super) fn sentence(&self) -> String {
        let faults = self.faults.join("; ");
        match (self.is_healthy(), self.is_failed) {
            (true, _) => "healthy".to_owned(),
            (false, false) => format!("degraded: {faults}"),
            (false, true) => format!("failed: {faults}"),
        }
    }

    /// An error unless the array is healthy, with the exit code of the table.
    pub fn check(&self) -> Result<(), AppError> {
        match (self.is_healthy(), self.is_failed) {
            (true, _) => Ok(()),
            (false, false) => Err(AppError::Trouble(self.sentence())),
            (false, true) => Err(AppError::Failed(self.sentence())),
        }
    }
}

/// Why an array cannot be had: a wrong call, unless too many of its drives are missing.
pub(super) fn of_refusal(error: HostError) -> AppError {
    match error.has_array_failed() {
        true => AppError::Failed(error.to_string()),
        false => AppError::usage(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_of_several_is_told_with_all_that_is_wrong() {
        let mut degraded = Health::HEALTHY;
        assert!(degraded.check().is_ok());
        degraded.note("drive 3 is missing".to_owned());
        let mut failed = Health::HEALTHY;
        failed.fail("drives 1,2 are missing".to_owned());
        assert!(matches!(degraded.check(), Err(AppError::Trouble(_))));
        let both = Health::HEALTHY.and(degraded).and(failed).and(Health::HEALTHY);
        let Err(AppError::Failed(sentence)) = both.check() else { panic!("{both:?}") };
        assert_eq!(sentence, "failed: drive 3 is missing; drives 1,2 are missing");
    }
}
