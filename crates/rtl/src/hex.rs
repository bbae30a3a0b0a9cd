//! Tables that `$readmemh` reads: one number a line, and the first bits are the lowest.

use std::fmt::Write;

/// A table.
#[derive(Default)]
pub(crate) struct Table {
    pub(crate) text: String,
    pub(crate) lines: usize,
}

impl Table {
    /// A number of these bits, the lowest first.
    pub(crate) fn push(&mut self, bits: impl IntoIterator<Item = bool>) {
        let mut digits = Vec::new();
        let mut bits = bits.into_iter().peekable();
        while bits.peek().is_some() {
            let digit = bits.by_ref().take(4).enumerate();
            digits.push(digit.fold(0, |digit, (at, bit)| digit | u32::from(bit) << at));
        }
        for digit in digits.into_iter().rev() {
            let digit = char::from_digit(digit, 16).expect("four bits are a digit");
            self.text.push(digit);
        }
        self.end();
    }

    /// A number of these bytes, the lowest first, and above them of `above`.
    pub(crate) fn push_bytes(&mut self, bytes: &[u8], above: &[u8]) {
        for byte in above.iter().rev().chain(bytes.iter().rev()) {
            write!(self.text, "{byte:02x}").expect("a string takes all");
        }
        self.end();
    }

    fn end(&mut self) {
        self.text.push('\n');
        self.lines += 1;
    }
}

/// The lowest `count` bits of a number, the lowest first.
pub(crate) fn bits_of(number: u16, count: usize) -> impl Iterator<Item = bool> {
    (0..count).map(move |bit| number >> bit & 1 == 1)
}
