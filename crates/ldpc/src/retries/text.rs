//! A table as a file.
//!
//! ```text
//!   levelhead retry table 1
//!   # any number of such lines, anywhere below
//!   steps 0 1 1                                revolutions of each step
//!   class 0.25                                 the share of its sectors
//!   0    5e-3 1e-5 1e-9                        zeroes, and of each step the probability that it fails
//!   256  ..
//!   512  ..
//!   1024 ..
//!   class 0.75
//!   ..
//! ```

use std::fmt::{self, Write as _};
use std::str::FromStr;

use super::error::{CLASSES_MAX, STEPS_MAX, TEXT_MAX, TITLE, TableError};
use super::table::{Class, RetryTable, TableStep};
use crate::code::ZeroForcing;

impl fmt::Display for RetryTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (steps, classes) = self.parts();
        writeln!(f, "{TITLE}")?;
        let revolutions: Vec<String> =
            steps.iter().map(|step| step.revolutions.to_string()).collect();
        writeln!(f, "steps {}", revolutions.join(" "))?;
        for class in classes {
            writeln!(f, "class {:e}", class.share)?;
            for (at, level) in ZeroForcing::ALL.into_iter().enumerate() {
                let mut row = level.to_string();
                for levels in &class.fails {
                    write!(row, " {:e}", levels[at])?;
                }
                writeln!(f, "{row}")?;
            }
        }
        Ok(())
    }
}

impl RetryTable {
    /// Reads a table that is to be called `name`.
    pub fn parse(name: &str, text: &str) -> Result<Self, TableError> {
        if text.len() > TEXT_MAX {
            return Err(TableError::Size(text.len()));
        }
        let mut lines = text.lines().enumerate();
        if lines.next().map(|(_, line)| line.trim()) != Some(TITLE) {
            return Err(TableError::Title);
        }
        let mut rows = lines
            .map(|(at, line)| Line { number: at + 1, words: line.split_whitespace().collect() })
            .filter(|line| line.words.first().is_some_and(|word| !word.starts_with('#')));
        let head = rows.next().ok_or(TableError::End)?;
        let revolutions: Vec<u32> = head.after("steps", "'steps' and the revolutions of each")?;
        if !(1..=STEPS_MAX).contains(&revolutions.len()) {
            return Err(TableError::Steps(revolutions.len()));
        }
        let steps: Vec<TableStep> =
            revolutions.into_iter().map(|revolutions| TableStep { revolutions }).collect();
        let mut classes = Vec::new();
        while let Some(head) = rows.next() {
            let expected = "'class' and its share of the sectors";
            let share: [f64; 1] = head
                .after("class", expected)?
                .try_into()
                .map_err(|_: Vec<f64>| head.not(expected))?;
            let mut fails = vec![[0.0; 4]; steps.len()];
            for (level, forced) in ZeroForcing::ALL.into_iter().enumerate() {
                let row = rows.next().ok_or(TableError::End)?;
                let expected =
                    "0, 256, 512 or 1024 in their order, and a probability for each step";
                let levels: Vec<f64> = row.after(&forced.to_string(), expected)?;
                if levels.len() != steps.len() {
                    return Err(row.not(expected));
                }
                for (step, share) in fails.iter_mut().zip(levels) {
                    step[level] = share;
                }
            }
            if classes.len() == CLASSES_MAX {
                return Err(TableError::Classes(CLASSES_MAX + 1));
            }
            classes.push(Class { share: share[0], fails });
        }
        Self::from_parts(name, steps, classes)
    }
}

struct Line<'a> {
    number: usize,
    words: Vec<&'a str>,
}

impl Line<'_> {
    fn not(&self, expected: &'static str) -> TableError {
        TableError::Line { number: self.number, expected }
    }

    /// The values after the first word, which is to be this one.
    fn after<T: FromStr>(&self, first: &str, expected: &'static str) -> Result<Vec<T>, TableError> {
        let values = match self.words.split_first() {
            Some((word, values)) if *word == first => values,
            _ => return Err(self.not(expected)),
        };
        let read = |value: &&str| value.parse().map_err(|_| self.not(expected));
        values.iter().map(read).collect()
    }
}
