//! What tells two states apart: a hash of all that they hold, but for numbers that only give names.
//!
//! The array is hashed as its `Debug` text. The name of a command (`SubId(58)`) counts as the command that has it inside the
//! disks, and the name of a buffer (`Own(7)`) as what is in it; the entries of a map of names count in the order of their
//! texts then. Fields in [`LEFT_OUT`] count what has happened, and decide nothing.

use std::fmt::Write;
use std::hash::{DefaultHasher, Hash, Hasher};

use super::Left;
use crate::crash::image::Image;
use crate::crash::machine::Machine;

/// Kinds of names.
const NAMES: [&str; 2] = ["SubId", "Own"];

/// Fields that count what has happened, and a source of chance that nothing draws from without a policy.
const LEFT_OUT: [&str; 4] = ["counters", "sub_next", "buf_next", "probe_rng"];

/// Numbers from here on are names of the array's own requests, counted down.
const NAME_FROM: u64 = u64::MAX - (1 << 40);

/// The hash of a state.
pub(super) fn state(machine: &Machine, left: &Left) -> u128 {
    let mut hash = Hash128::default();
    left.hash(&mut hash);
    machine.hash_outside(&mut hash);
    let mut text = String::with_capacity(1 << 16);
    write!(text, "{:?}", machine.array).expect("a string takes everything");
    let name = |kind: &str, number: u64| match kind {
        "SubId" => machine.hash_of_command(number),
        _ => machine.hash_of_buffer(number),
    };
    hash.write(canonical(&text, &name).as_bytes());
    hash.finish128()
}

/// The hash of an image.
pub(super) fn image(image: &Image, left: &Left) -> u128 {
    let mut hash = Hash128::default();
    left.hash(&mut hash);
    image.hash(&mut hash);
    hash.finish128()
}

/// Two hashes of 64 bits, of different beginnings.
struct Hash128 {
    first: DefaultHasher,
    second: DefaultHasher,
}

impl Default for Hash128 {
    fn default() -> Self {
        let (first, mut second) = (DefaultHasher::new(), DefaultHasher::new());
        second.write_u64(0x9E37_79B9_7F4A_7C15);
        Self { first, second }
    }
}

impl Hash128 {
    fn finish128(&self) -> u128 {
        u128::from(self.first.finish()) << 64 | u128::from(self.second.finish())
    }
}

impl Hasher for Hash128 {
    fn write(&mut self, bytes: &[u8]) {
        self.first.write(bytes);
        self.second.write(bytes);
    }

    fn finish(&self) -> u64 {
        self.first.finish()
    }
}

/// What a name of this kind stands for.
type Meaning<'a> = &'a dyn Fn(&str, u64) -> u64;

/// The text with what names stand for; entries of a map that begin with one stand in the order of their texts.
fn canonical(text: &str, meaning: Meaning<'_>) -> String {
    let mut reader = Reader { text: text.as_bytes(), at: 0, meaning };
    let mut out = String::with_capacity(text.len());
    reader.copy(&mut out);
    out
}

struct Reader<'a> {
    text: &'a [u8],
    at: usize,
    meaning: Meaning<'a>,
}

impl<'a> Reader<'a> {
    /// Copies up to the closing bracket of where it stands, or to the end.
    fn copy(&mut self, out: &mut String) {
        let mut entries: Vec<usize> = vec![out.len()];
        while self.at < self.text.len() {
            if self.peek().is_ascii_alphabetic() {
                self.word(out);
                continue;
            }
            let byte = self.peek();
            self.at += 1;
            match byte {
                b'{' | b'(' | b'[' => {
                    out.push(byte as char);
                    self.copy(out);
                }
                b'}' | b')' | b']' => {
                    if NAMES.iter().any(|name| out[entries[0]..].starts_with(name)) && byte == b'}'
                    {
                        sort(out, &entries);
                    }
                    out.push(byte as char);
                    return;
                }
                b',' if self.is_at(" ") => {
                    self.at += 1;
                    out.push(',');
                    entries.push(out.len());
                }
                b'0'..=b'9' => {
                    let begin = self.at - 1;
                    self.at = begin;
                    match self.number() {
                        number if number >= NAME_FROM => out.push('#'),
                        _ => out.push_str(self.read_since(begin)),
                    }
                }
                _ => out.push(byte as char),
            }
        }
    }

    fn read_since(&self, begin: usize) -> &'a str {
        std::str::from_utf8(&self.text[begin..self.at]).expect("it is ASCII")
    }

    fn number(&mut self) -> u64 {
        let begin = self.at;
        while self.peek().is_ascii_digit() {
            self.at += 1;
        }
        let digits = &self.text[begin..self.at];
        digits.iter().fold(0, |all: u64, digit| all.wrapping_mul(10) + u64::from(digit - b'0'))
    }

    /// A word, and its value if it is a name or left out.
    fn word(&mut self, out: &mut String) {
        let begin = self.at;
        while self.peek().is_ascii_alphanumeric() || self.peek() == b'_' {
            self.at += 1;
        }
        let word = self.read_since(begin);
        if self.is_at(": ") && LEFT_OUT.contains(&word) {
            self.skip();
            return;
        }
        out.push_str(word);
        if self.is_at("(") && NAMES.contains(&word) {
            self.at += 1;
            let number = self.number();
            self.at += 1; // Its closing bracket.
            let _ = write!(out, "({:x})", (self.meaning)(word, number));
        }
    }

    /// Passes a value, and the comma behind it.
    fn skip(&mut self) {
        let mut depth = 0;
        while self.at < self.text.len() {
            match self.peek() {
                b'{' | b'(' | b'[' => depth += 1,
                b'}' | b')' | b']' if depth == 0 => return,
                b'}' | b')' | b']' => depth -= 1,
                b',' if depth == 0 => return,
                _ => {}
            }
            self.at += 1;
        }
    }

    fn peek(&self) -> u8 {
        self.text.get(self.at).copied().unwrap_or(0)
    }

    fn is_at(&self, what: &str) -> bool {
        self.text[self.at..].starts_with(what.as_bytes())
    }
}

/// Puts the entries of a map or set of names in the order of their texts.
fn sort(out: &mut String, entries: &[usize]) {
    let ends = entries[1..].iter().map(|&end| end - 1).chain([out.len()]);
    let mut parts: Vec<String> =
        entries.iter().zip(ends).map(|(&from, to)| out[from..to].to_owned()).collect();
    parts.sort_unstable();
    out.truncate(entries[0]);
    out.push_str(&parts.join(","));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_what_they_stand_for_and_stand_in_no_order() {
        let meaning = |kind: &str, number: u64| if kind == "Own" { 7 } else { number % 10 };
        let one = "A { subs: {SubId(15): B([1, Own(3)]), SubId(24): C}, counters: {x: (1, 2)}, of: 18446744073709551610 }";
        let other = "A { subs: {SubId(34): C, SubId(45): B([1, Own(9)])}, counters: 5, of: 18446744073709551600 }";
        assert_eq!(canonical(one, &meaning), canonical(other, &meaning));
        let third = one.replace("[1, Own(3)]", "[Own(3), 1]");
        assert_ne!(canonical(one, &meaning), canonical(&third, &meaning));
    }
}
