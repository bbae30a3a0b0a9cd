//! A line as fields, each of which knows its column.

use std::borrow::Cow;
use std::ops::Range;

use crate::collect::{ONE_MORE, Part, Refused};
use crate::error::{Problem, quoted};

/// How many fields of a line can be looked at. No format needs more.
const FIELDS_MAX: usize = 10;

/// The fields of one line.
#[derive(Debug)]
pub(crate) struct Fields<'a> {
    line: &'a [u8],
    spans: [(usize, usize); FIELDS_MAX],
    /// How many fields the line has; those beyond [`FIELDS_MAX`] are counted and no more.
    count: usize,
}

/// Which fields of a line hold which part of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Places {
    pub(crate) at: usize,
    pub(crate) device: usize,
    pub(crate) offset: usize,
    pub(crate) length: usize,
}

impl<'a> Fields<'a> {
    /// Fields with blanks between them.
    pub(crate) fn by_space(line: &'a [u8]) -> Self {
        let mut fields = Self { line, spans: [(0, 0); FIELDS_MAX], count: 0 };
        let mut at = 0;
        loop {
            at += line[at..].iter().take_while(|byte| is_blank(**byte)).count();
            if at == line.len() {
                return fields;
            }
            let length = line[at..].iter().take_while(|byte| !is_blank(**byte)).count();
            fields.push(at..at + length);
            at += length;
        }
    }

    /// Fields with commas between them, without the blanks around each.
    pub(crate) fn by_comma(line: &'a [u8]) -> Self {
        let mut fields = Self { line, spans: [(0, 0); FIELDS_MAX], count: 0 };
        let mut at = 0;
        for field in line.split(|byte| *byte == b',') {
            let blank = field.iter().take_while(|byte| is_blank(**byte)).count();
            fields.push(at + blank..at + blank + field[blank..].trim_ascii_end().len());
            at += field.len() + 1;
        }
        fields
    }

    fn push(&mut self, span: Range<usize>) {
        if let Some(place) = self.spans.get_mut(self.count) {
            *place = (span.start, span.end);
        }
        self.count += 1;
    }

    /// How many fields there are.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Field `idx`, or nothing where the line is too short.
    pub(crate) fn get(&self, idx: usize) -> Option<&'a [u8]> {
        assert!(idx < FIELDS_MAX);
        let (start, end) = self.spans[idx];
        (idx < self.count).then(|| &self.line[start..end])
    }

    /// Field `idx`, which must be there.
    pub(crate) fn text(&self, idx: usize, expected: &'static str) -> Result<&'a [u8], Problem> {
        self.get(idx).ok_or_else(|| self.problem(idx, expected))
    }

    /// Field `idx` as a whole number.
    pub(crate) fn whole(&self, idx: usize, expected: &'static str) -> Result<u64, Problem> {
        whole(self.text(idx, expected)?).ok_or_else(|| self.problem(idx, expected))
    }

    /// Field `idx` as a decimal number of units of `unit` nanoseconds, rounded down to one of them.
    pub(crate) fn decimal(
        &self,
        idx: usize,
        unit: u32,
        expected: &'static str,
    ) -> Result<u128, Problem> {
        decimal(self.text(idx, expected)?, unit).ok_or_else(|| self.problem(idx, expected))
    }

    /// Field `idx` is not what was expected.
    pub(crate) fn problem(&self, idx: usize, expected: impl Into<Cow<'static, str>>) -> Problem {
        let expected = expected.into();
        match self.get(idx) {
            Some(field) => Problem { column: self.spans[idx].0, expected, found: quoted(field) },
            None => Problem {
                column: self.line.len(),
                expected,
                found: "the end of the line".to_owned(),
            },
        }
    }

    /// The collector refused the request whose parts are in `places`.
    pub(crate) fn refused(&self, refused: Refused, places: Places) -> Problem {
        let idx = match refused.part {
            Part::Count => {
                let (expected, found) = (refused.expected.into(), ONE_MORE.to_owned());
                return Problem { column: 0, expected, found };
            }
            Part::At => places.at,
            Part::Device => places.device,
            Part::Offset => places.offset,
            Part::Length => places.length,
        };
        self.problem(idx, refused.expected)
    }
}

fn is_blank(byte: u8) -> bool {
    byte == b' ' || byte == b'\t'
}

/// The whole number that `text` writes in decimal digits and nothing else.
pub(crate) fn whole(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0_u64, |value, byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        value.checked_mul(10)?.checked_add(digit)
    })
}

/// The digits of a whole number without leading zeros, so that one device has one name.
pub(crate) fn canonical(digits: &[u8]) -> &[u8] {
    let zeros = digits.iter().take_while(|byte| **byte == b'0').count();
    &digits[zeros.min(digits.len().saturating_sub(1))..]
}

/// `text` as a decimal number of `unit` nanoseconds, rounded down to one nanosecond. No sign, no
/// exponent.
pub(crate) fn decimal(text: &[u8], unit: u32) -> Option<u128> {
    /// Digits after the point that can make a difference: units are at most 10^9 ns.
    const PLACES_MAX: usize = 18;
    let point = text.iter().position(|byte| *byte == b'.').unwrap_or(text.len());
    let (before, after) = (&text[..point], text.get(point + 1..).unwrap_or_default());
    if !after.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let fraction = match &after[..after.len().min(PLACES_MAX)] {
        [] => 0,
        digits => u128::from(whole(digits)?) * u128::from(unit) / 10_u128.pow(digits.len() as u32),
    };
    Some(u128::from(whole(before)?) * u128::from(unit) + fraction)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_know_their_text_and_their_column() {
        let spaced = Fields::by_space(b"  8,0 \t 1  Q");
        assert_eq!(spaced.count(), 3);
        assert_eq!(spaced.get(1), Some(&b"1"[..]));
        assert_eq!(spaced.problem(2, "x").column, 11);
        assert_eq!(spaced.problem(3, "x").column, 12);
        assert_eq!(spaced.problem(3, "x").found, "the end of the line");

        let commas = Fields::by_comma(b" a b ,,c ");
        assert_eq!(commas.count(), 3);
        assert_eq!(commas.get(0), Some(&b"a b"[..]));
        assert_eq!(commas.get(1), Some(&b""[..]));
        assert_eq!(commas.problem(2, "x").column, 7);
        assert_eq!(Fields::by_space(b" \t ").count(), 0);
        assert_eq!(Fields::by_space(&b"a ".repeat(50)).count(), 50);
    }

    #[test]
    fn whole_numbers_are_digits_below_2_to_the_64() {
        assert_eq!(whole(b"18446744073709551615"), Some(u64::MAX));
        for text in ["", "18446744073709551616", "-1", "+1", "1.0", "1e3", " 1", "0x10"] {
            assert_eq!(whole(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn decimals_are_exact_and_rounded_down() {
        assert_eq!(decimal(b"223.412", 1_000_000), Some(223_412_000));
        assert_eq!(
            decimal(b"1456135200.013118000", 1_000_000_000),
            Some(1_456_135_200_013_118_000)
        );
        assert_eq!(decimal(b"0.0000000019999999999999999999", 1_000_000_000), Some(1));
        assert_eq!(decimal(b"7", 1_000), Some(7_000));
        assert_eq!(decimal(b"7.", 1_000), Some(7_000));
        for text in ["", ".", ".5", "-1.0", "1.0e3", "1.2.3", "nan", "1.x"] {
            assert_eq!(decimal(text.as_bytes(), 1_000), None, "{text}");
        }
        assert!(decimal(b"18446744073709551615.999999999999999999", 1_000_000_000).is_some());
    }

    #[test]
    fn one_number_has_one_name() {
        assert_eq!(canonical(b"007"), b"7");
        assert_eq!(canonical(b"000"), b"0");
        assert_eq!(canonical(b"70"), b"70");
        assert_eq!(canonical(b""), b"");
    }
}
