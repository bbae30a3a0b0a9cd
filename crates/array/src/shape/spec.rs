//! What an array is made of, and how people write it: `eraid:5+1,e=2,chunk=8KiB`.

use std::fmt;
use std::str::FromStr;

use levelhead_units::{Bytes, DriveIdx, Sectors};

/// The most symbols of one codeword over GF(2^8).
const CODEWORD_MAX: u32 = 256;

/// The largest chunk of any array.
const CHUNK_MAX: Sectors = Sectors::new(1 << 14);

/// The largest stripe, 256 MiB: what has to be in memory at a time to make a stripe redundant.
const STRIPE_MAX: Sectors = Sectors::new(1 << 16);

/// A family of arrays. The family fixes how many drives are redundant and whether parity moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Striping, no redundancy.
    Raid0,
    /// One parity drive.
    Raid4,
    /// One drive's worth of parity, rotating.
    Raid5,
    /// Two drives' worth of redundancy, rotating.
    Raid6,
    /// Any number of each, with codewords that take several sectors of every drive `[ERAID]`.
    Eraid,
}

/// Where the redundant chunks of a stripe lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parity {
    /// Always on the last drives.
    Fixed,
    /// One drive further to the left with each stripe (left-symmetric).
    Rotating,
}

/// The shape of an array. Only valid shapes exist: they come from [`Spec::new`] or a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spec {
    family: Family,
    data: u8,
    redundant: u8,
    expansion: u32,
    chunk: Sectors,
    parity: Parity,
}

/// How many drives of each kind an array has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DriveCounts {
    /// Drives' worth of data.
    pub data: u32,
    /// Drives' worth of redundancy.
    pub redundant: u32,
}

/// A shape that cannot be, in one sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecError(String);

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SpecError {}

fn fail<T>(sentence: String) -> Result<T, SpecError> {
    Err(SpecError(sentence))
}

impl Family {
    const ALL: [Self; 5] = [Self::Raid0, Self::Raid4, Self::Raid5, Self::Raid6, Self::Eraid];

    /// The family's name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Raid0 => "raid0",
            Self::Raid4 => "raid4",
            Self::Raid5 => "raid5",
            Self::Raid6 => "raid6",
            Self::Eraid => "eraid",
        }
    }

    /// How many redundant drives it has, where the family decides that.
    const fn redundant(self) -> Option<u8> {
        match self {
            Self::Raid0 => Some(0),
            Self::Raid4 | Self::Raid5 => Some(1),
            Self::Raid6 => Some(2),
            Self::Eraid => None,
        }
    }

    const fn parity(self) -> Parity {
        match self {
            Self::Raid0 | Self::Raid4 => Parity::Fixed,
            Self::Raid5 | Self::Raid6 | Self::Eraid => Parity::Rotating,
        }
    }
}

impl Spec {
    /// The shape with these drives, codewords of `expansion` sectors a drive, and chunks of `chunk`
    /// sectors; or the sentence that says what is wrong with it.
    pub fn new(
        family: Family,
        drives: DriveCounts,
        expansion: u32,
        chunk: Sectors,
        parity: Parity,
    ) -> Result<Self, SpecError> {
        let DriveCounts { data, redundant } = drives;
        let name = family.name();
        let drives = u64::from(data) + u64::from(redundant);
        if let Some(fixed) = family.redundant()
            && redundant != u32::from(fixed)
        {
            return fail(format!("{name} has {fixed} redundant drives, got {redundant}"));
        }
        let data_min = if family == Family::Eraid { 1 } else { 2 };
        if data < data_min {
            let least = data_min + redundant;
            return fail(format!("{name} needs at least {least} drives, got {drives}"));
        }
        if drives > u64::from(DriveIdx::MAX) {
            let limit = DriveIdx::MAX;
            return fail(format!(
                "an array has at most {limit} drives, {name}:{data}+{redundant} has {drives}"
            ));
        }
        if expansion == 0 || (expansion != 1 && family != Family::Eraid) {
            return fail(format!(
                "{name} cannot have e={expansion}: only eraid has an expansion, of at least 1"
            ));
        }
        let symbols = drives * u64::from(expansion);
        if symbols > u64::from(CODEWORD_MAX) {
            return fail(format!(
                "a codeword has at most {CODEWORD_MAX} sectors, {name}:{data}+{redundant} with e={expansion} has {symbols}"
            ));
        }
        if chunk == Sectors::ZERO || chunk > CHUNK_MAX {
            let (chunk, most) = (chunk.bytes(), CHUNK_MAX.bytes());
            return fail(format!("a chunk is from 4KiB to {most}, got {chunk}"));
        }
        if !chunk.get().is_multiple_of(u64::from(expansion)) {
            let (count, size) = (chunk.get(), chunk.bytes());
            return fail(format!(
                "a chunk of {size} is {count} sectors, which e={expansion} sectors do not divide"
            ));
        }
        let stripe = chunk * drives;
        if stripe > STRIPE_MAX {
            let (stripe, most) = (stripe.bytes(), STRIPE_MAX.bytes());
            return fail(format!("a stripe has at most {most}, {drives} chunks have {stripe}"));
        }
        let (data, redundant) = (data as u8, redundant as u8);
        Ok(Self { family, data, redundant, expansion, chunk, parity })
    }

    /// The family.
    pub const fn family(&self) -> Family {
        self.family
    }

    /// Data chunks in a stripe.
    pub const fn data(&self) -> usize {
        self.data as usize
    }

    /// Redundant chunks in a stripe, and so the number of drives that may be lost.
    pub const fn redundant(&self) -> usize {
        self.redundant as usize
    }

    /// Drives, which is also chunks in a stripe.
    pub const fn drives(&self) -> usize {
        self.data() + self.redundant()
    }

    /// Sectors that one codeword takes of every drive.
    pub const fn expansion(&self) -> usize {
        self.expansion as usize
    }

    /// Sectors in a chunk.
    pub const fn chunk(&self) -> Sectors {
        self.chunk
    }

    /// Where redundancy lies.
    pub const fn parity(&self) -> Parity {
        self.parity
    }
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (family, data, redundant) = (self.family.name(), self.data, self.redundant);
        write!(f, "{family}:{data}+{redundant}")?;
        if self.family == Family::Eraid {
            write!(f, ",e={}", self.expansion)?;
        }
        write!(f, ",chunk={}", self.chunk.bytes())?;
        if self.parity != self.family.parity() {
            let parity = if self.parity == Parity::Fixed { "fixed" } else { "rotating" };
            write!(f, ",parity={parity}")?;
        }
        Ok(())
    }
}

impl FromStr for Spec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let (name, rest) = text.split_once(':').unwrap_or((text, ""));
        let Some(family) = Family::ALL.into_iter().find(|family| family.name() == name) else {
            return fail(format!(
                "'{name}' is no array: expected raid0, raid4, raid5, raid6 or eraid, as in eraid:5+1,e=2,chunk=8KiB"
            ));
        };
        let mut parts = rest.split(',');
        let drives = drive_counts(family, parts.next().unwrap_or_default())?;
        let (mut expansion, mut chunk, mut parity) = (None, None, family.parity());
        for part in parts {
            match part.split_once('=') {
                Some(("e", value)) => expansion = Some(number(part, value)?),
                Some(("chunk", value)) => chunk = Some(chunk_size(value)?),
                Some(("parity", "fixed")) => parity = Parity::Fixed,
                Some(("parity", "rotating")) => parity = Parity::Rotating,
                Some(_) | None => {
                    return fail(format!(
                        "'{part}' in '{text}': expected e=NUMBER, chunk=SIZE or parity=fixed|rotating"
                    ));
                }
            }
        }
        // A codeword of two sectors a drive is the paper's own choice; a chunk of 64 KiB is what
        // most arrays on disks use.
        let expansion = expansion.unwrap_or(if family == Family::Eraid { 2 } else { 1 });
        let chunk = chunk.unwrap_or(Sectors::new(16));
        Self::new(family, drives, expansion, chunk, parity)
    }
}

/// `5+1`, or just `6` for families that know how many of their drives are redundant.
fn drive_counts(family: Family, text: &str) -> Result<DriveCounts, SpecError> {
    if let Some((data, redundant)) = text.split_once('+') {
        let (data, redundant) = (number(text, data)?, number(text, redundant)?);
        return Ok(DriveCounts { data, redundant });
    }
    match family.redundant() {
        Some(redundant) => {
            let drives = number(text, text)?;
            let redundant = u32::from(redundant);
            match drives.checked_sub(redundant) {
                Some(data) => Ok(DriveCounts { data, redundant }),
                None => fail(format!(
                    "{} needs at least {} drives, got {drives}",
                    family.name(),
                    redundant + 2
                )),
            }
        }
        None => {
            fail(format!("'{text}' is no shape: expected DATA+REDUNDANT drives, as in eraid:5+1"))
        }
    }
}

fn number(part: &str, text: &str) -> Result<u32, SpecError> {
    text.parse()
        .or_else(|_| fail(format!("'{text}' in '{part}' is no number of drives or sectors")))
}

fn chunk_size(text: &str) -> Result<Sectors, SpecError> {
    let size: Bytes = text.parse().map_err(|error| SpecError(format!("chunk={text}: {error}")))?;
    match size.sectors_exact() {
        Some(sectors) => Ok(sectors),
        None => fail(format!("a chunk is a whole number of 4KiB sectors, got {size}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_reads_back() {
        for text in [
            "eraid:5+1,e=2,chunk=8KiB",
            "raid0:4+0,chunk=64KiB",
            "raid4:3+1,chunk=4KiB",
            "raid5:5+1,chunk=512KiB",
            "raid6:6+2,chunk=4KiB,parity=fixed",
            "eraid:10+4,e=3,chunk=12KiB,parity=fixed",
        ] {
            let spec: Spec = text.parse().unwrap();
            assert_eq!(spec.to_string(), text);
        }
        let short: Spec = "raid6:8".parse().unwrap();
        assert_eq!(short.to_string(), "raid6:6+2,chunk=64KiB");
    }

    #[test]
    fn impossible_shapes_are_refused_with_the_limit() {
        for (text, sentence) in [
            ("raid7:4", "'raid7' is no array"),
            ("raid6:3", "raid6 needs at least 4 drives, got 3"),
            ("raid6:1", "raid6 needs at least 4 drives, got 1"),
            ("raid5:3+2", "raid5 has 1 redundant drives, got 2"),
            ("raid5:5+1,e=2", "raid5 cannot have e=2"),
            ("eraid:5+1,e=0", "eraid cannot have e=0"),
            (
                "eraid:5+1,e=2,chunk=12KiB",
                "a chunk of 12KiB is 3 sectors, which e=2 sectors do not divide",
            ),
            ("eraid:5+1,chunk=6KiB", "a chunk is a whole number of 4KiB sectors, got 6KiB"),
            ("eraid:60+8", "an array has at most 64 drives"),
            ("eraid:40+20,e=5,chunk=20KiB", "a codeword has at most 256 sectors"),
            ("eraid:6", "expected DATA+REDUNDANT drives"),
            ("eraid:5+1,size=3", "'size=3' in 'eraid:5+1,size=3'"),
            ("eraid:5+1,chunk=0KiB", "a chunk is from 4KiB to 64MiB, got 0B"),
            ("eraid:5+x", "'x' in '5+x' is no number"),
        ] {
            let error = text.parse::<Spec>().unwrap_err().to_string();
            assert!(error.contains(sentence), "{text}: {error}");
        }
    }
}
