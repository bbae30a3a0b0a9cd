//! What tells two states apart: a hash of all that they hold, but for numbers that only give names.
//!
//! The array is hashed as its `Debug` text. The name of a command (`SubId(58)`) counts as the command that has it inside the
//! disks, and the name of a buffer (`Own(7)`) as what is in it; the entries of a map of names count in the order of their
//! texts then. What decides nothing does not count ([`LEFT_OUT`]).

use std::fmt::Write;
use std::hash::{DefaultHasher, Hash, Hasher};

use super::Left;
use crate::crash::image::Image;
use crate::crash::machine::Machine;

/// Kinds of names, as they begin.
const NAMES: [&[u8]; 2] = [b"SubId", b"Own"];

/// Fields that decide nothing here: counters; a source of chance that nothing draws from without a policy; what was measured of
/// the drives, because no time passes while a command is inside one; how many commands they have completed, which counts
/// from hundreds on only; and which drives may have work, which only saves a look at the others.
const LEFT_OUT: [(&[u8], &[u8]); 12] = [
    (b"Core", b"counters"),
    (b"Commands", b"last"),
    (b"Output", b"buf_next"),
    (b"Sub", b"ended_before"),
    (b"Drives", b"probe_rng"),
    (b"Drives", b"streaks"),
    (b"Drives", b"times"),
    (b"Drives", b"with_work"),
    (b"Standings", b"detector"),
    (b"Drive", b"track"),
    (b"Drive", b"heard"),
    (b"Drive", b"ended"),
];

/// Lists whose order decides nothing.
const SETS: [(&[u8], &[u8]); 1] = [(b"HostQueue", b"inside")];

/// Numbers from here on are names of the array's own requests, counted down, where the number of a request stands.
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
    hash.write(&canonical(&text, &name));
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
fn canonical(text: &str, meaning: Meaning<'_>) -> Vec<u8> {
    let mut reader = Reader { text: text.as_bytes(), at: 0, meaning };
    let mut out = Vec::with_capacity(text.len());
    reader.copy(b"", false, &mut out);
    out
}

struct Reader<'a> {
    text: &'a [u8],
    at: usize,
    meaning: Meaning<'a>,
}

impl<'a> Reader<'a> {
    /// Copies a value of type `of`, from behind its opening bracket to its closing one or the end.
    fn copy(&mut self, of: &[u8], is_set: bool, out: &mut Vec<u8>) {
        let mut entries: Vec<usize> = Vec::new();
        let begin = out.len();
        let mut word: &[u8] = b"";
        while let Some(&byte) = self.text.get(self.at) {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' => {
                    word = self.word(of, out);
                    continue;
                }
                b'0'..=b'9' => {
                    self.number(word == b"origin" || of == b"RequestId", out);
                    continue;
                }
                b',' if is_set => entries.push(out.len() - begin),
                _ => {}
            }
            self.at += 1;
            match byte {
                b'{' | b'(' | b'[' => {
                    let is_map_of_names = byte == b'{' && NAMES.iter().any(|name| self.is_at(name));
                    let is_set = is_map_of_names || SETS.contains(&(of, word));
                    out.push(byte);
                    self.copy(word, is_set, out);
                    word = b"";
                }
                b'}' | b')' | b']' => {
                    if is_set {
                        sort(out, begin, &entries);
                    }
                    out.push(byte);
                    return;
                }
                b' ' => {}
                byte => out.push(byte),
            }
        }
    }

    /// A number as it is, unless it is the name of one of the array's own requests.
    fn number(&mut self, is_of_request: bool, out: &mut Vec<u8>) {
        let digits = self.run(|byte| byte.is_ascii_digit());
        let is_name = is_of_request && value(digits) >= NAME_FROM;
        out.extend_from_slice(if is_name { b"#" } else { digits });
    }

    /// A word, and its value if it is a name or left out.
    fn word(&mut self, of: &[u8], out: &mut Vec<u8>) -> &'a [u8] {
        let word = self.run(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if self.is_at(b": ") && LEFT_OUT.contains(&(of, word)) {
            self.skip();
            return b"";
        }
        out.extend_from_slice(word);
        if self.is_at(b"(") && NAMES.contains(&word) {
            self.at += 1;
            let number = value(self.run(|byte| byte.is_ascii_digit()));
            self.at += 1; // Its closing bracket.
            let kind = std::str::from_utf8(word).expect("a name is ASCII");
            out.extend_from_slice(&(self.meaning)(kind, number).to_le_bytes());
        }
        word
    }

    /// Passes a value, up to the comma or bracket behind it.
    fn skip(&mut self) {
        let mut depth = 0;
        while let Some(byte) = self.text.get(self.at) {
            match byte {
                b'{' | b'(' | b'[' => depth += 1,
                b'}' | b')' | b']' | b',' if depth == 0 => return,
                b'}' | b')' | b']' => depth -= 1,
                _ => {}
            }
            self.at += 1;
        }
    }

    /// What is of one kind, from here on.
    fn run(&mut self, is_one: impl Fn(u8) -> bool) -> &'a [u8] {
        let rest = &self.text[self.at..];
        let count = rest.iter().position(|&byte| !is_one(byte)).unwrap_or(rest.len());
        self.at += count;
        &rest[..count]
    }

    fn is_at(&self, what: &[u8]) -> bool {
        self.text[self.at..].starts_with(what)
    }
}

fn value(digits: &[u8]) -> u64 {
    digits.iter().fold(0, |all: u64, digit| all.wrapping_mul(10) + u64::from(digit - b'0'))
}

/// Puts the entries of a map or set of names in the order of their texts. Each but the first begins with its comma, at one of
/// these places behind the first.
fn sort(out: &mut Vec<u8>, begin: usize, entries: &[usize]) {
    let mut text = vec![b','];
    text.extend(out.drain(begin..));
    let begins = [0].into_iter().chain(entries.iter().map(|at| at + 1));
    let ends = entries.iter().map(|at| at + 1).chain([text.len()]);
    let mut parts: Vec<&[u8]> = begins.zip(ends).map(|(from, to)| &text[from..to]).collect();
    parts.sort_unstable();
    out.extend(parts.concat());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_what_they_stand_for_and_stand_in_no_order() {
        let meaning = |kind: &str, number: u64| if kind == "Own" { 7 } else { number % 10 };
        let one = "Core { subs: {SubId(15): B([1, Own(3)]), SubId(24): C}, counters: N {x: (1, 2)}, origin: 18446744073709551610 }";
        let other = "Core { subs: {SubId(34): C, SubId(45): B([1, Own(9)])}, counters: 5, origin: 18446744073709551600 }";
        assert_eq!(canonical(one, &meaning), canonical(other, &meaning));
        let third = one.replace("[1, Own(3)]", "[Own(3), 1]");
        assert_ne!(canonical(one, &meaning), canonical(&third, &meaning));
        let words =
            ["Map { words: [18446744073709551614] }", "Map { words: [18446744073709551615] }"];
        let [one_word, other_word] = words.map(|text| canonical(text, &meaning));
        assert_ne!(one_word, other_word, "they are no names");
        let of_another =
            [one, other].map(|text| canonical(&text.replace("Core", "Other"), &meaning));
        assert_ne!(of_another[0], of_another[1], "its counters count");
    }
}
