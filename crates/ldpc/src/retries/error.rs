//! Why something is no table, and the limits of tables.

use std::fmt;

/// The most steps of a table.
pub const STEPS_MAX: usize = 32;

/// The most revolutions of all steps of a table together.
pub(super) const REVOLUTIONS_MAX: u32 = 1_000;

/// The most classes of a table.
pub(super) const CLASSES_MAX: usize = 1_024;

/// The first line.
pub(super) const TITLE: &str = "levelhead retry table 1";

/// The most bytes of a file that is read as a table.
pub const TEXT_MAX: usize = 4 << 20;

/// Why a text is no table.
#[derive(Clone, Debug, PartialEq)]
pub enum TableError {
    /// It is larger than any table.
    Size(usize),
    /// The first line is another one.
    Title,
    /// A line that is not what must stand there.
    Line {
        /// Its number, from 1 on.
        number: usize,
        /// What must stand there.
        expected: &'static str,
    },
    /// It ends within a class, or before the first.
    End,
    /// A number of steps that no table has.
    Steps(usize),
    /// A number of classes that no table has.
    Classes(usize),
    /// Revolutions of a first pass.
    First(u32),
    /// More revolutions than a drive spends on a sector.
    Revolutions(u64),
    /// Shares of classes that do not add up to one.
    Shares(f64),
    /// A row that breaks an invariant of tables.
    Row {
        /// The class, from 0 on.
        class: usize,
        /// The step, from 0 on.
        step: usize,
    },
}

impl fmt::Display for TableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Size(bytes) => {
                write!(f, "a retry table has at most {TEXT_MAX} bytes, not {bytes}")
            }
            Self::Title => write!(f, "a retry table begins with the line '{TITLE}'"),
            Self::Line { number, expected } => write!(f, "line {number}: expected {expected}"),
            Self::End => f.write_str("it ends before its last class does"),
            Self::Steps(count) => {
                write!(f, "a retry table has 1 to {STEPS_MAX} steps, not {count}")
            }
            Self::Classes(count) => {
                write!(f, "a retry table has 1 to {CLASSES_MAX} classes, not {count}")
            }
            Self::First(revolutions) => {
                write!(f, "the first step costs no revolution, not {revolutions}")
            }
            Self::Revolutions(sum) => {
                write!(
                    f,
                    "all steps together cost at most {REVOLUTIONS_MAX} revolutions, not {sum}"
                )
            }
            Self::Shares(sum) => {
                write!(f, "the shares of the classes are 0 to 1 and add up to 1, not {sum}")
            }
            Self::Row { class, step } => write!(
                f,
                "step {step} of class {class}: probabilities are 0 to 1, do not grow with zeroes, nor from one step to the \
                 next on the same samples"
            ),
        }
    }
}

impl std::error::Error for TableError {}
